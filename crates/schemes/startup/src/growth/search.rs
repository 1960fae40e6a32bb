//! SEARCH: slow start ends when deliveries fall behind what was sent a round trip before.
//!
//! Source (SE below): J. Chung, M. Kachooei, F. Li, M. Claypool, "SEARCH -- a New Slow Start
//! Algorithm for TCP and QUIC", draft-chung-ccwg-search-09 (SEARCH 4.0), by two implementations of
//! it: Firefox's (`neqo-transport/src/cc/search.rs`) and the authors' for Linux
//! (`tcp_cubic_search4.0.c`), the behaviour in own words.
//!
//! Time is divided into bins. At the end of each, the bytes delivered in the last ten bins are
//! compared with the bytes sent in the ten bins that ended one RTT earlier. While the path has room
//! the two are equal. Once it is full, deliveries keep its rate while sending still doubled.
//!
//! ```text
//!  sent        |<- window ->|           delivered |<- window ->|
//!  -----+------+------------+--- time   ----------+------------+ now
//!                           |<---------- RTT ----------------->|
//! ```
//!
//! Once 26 % of the bytes sent are missing, the window is drained to what was delivered in the
//! last initial RTT: of three bytes acknowledged, one is replaced. Then congestion is avoided.
//!
//! # Deviations
//!
//! - Of SE itself only the beginning could be read; constants are Firefox's, which names SE. The
//!   authors' module of the same version has a threshold of 35 % and forty extra bins.
//! - SE interpolates with the bin after; both implementations with the bin before, as here, since
//!   SE's authors call that a mistake (Firefox's comment).
//! - SE leaves to the sender what happens after missed bins. They are empty, and after a whole
//!   window of them everything begins anew, as in Firefox.
//! - The drain does not go below the window at which the bins began. Linux has ten segments.
//! - Sent is what is delivered or in flight: bytes that were lost are not in it. Only a scheme that
//!   goes on after a loss notices.

use headstart_units::{Bytes, Span, Time};

use crate::event::Ack;

/// Bins of a window.
const WINDOW_BINS: usize = 10;
/// Bins by which a window may lie further back; an RTT of more is not judged.
const EXTRA_BINS: usize = 15;
/// Bins of the window that lies furthest back, and of all after it.
const SENT_BINS: usize = WINDOW_BINS + EXTRA_BINS;
/// A window has 3.5 initial RTTs, so a bin has seven twentieths of one.
const BIN_OF_RTT: (u64, u64) = (7, 20);
/// Whole bins that an initial RTT takes.
const BINS_OF_RTT: usize = 3;
/// Missing share of the bytes sent, in per cent, at which slow start ends.
const THRESHOLD: u64 = 26;
/// Bytes acknowledged in the drain for each that may leave.
const DRAIN: u64 = 3;
/// Bits of a bin's bytes that are kept, rounded down: the rest are an exponent.
const MANTISSA: u32 = 11;

/// Decision after an ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The window may grow.
    Grow,
    /// The window while the queue is drained.
    Drain(Bytes),
    /// Slow start is over, at this window.
    Exit(Bytes),
}

/// State of SEARCH.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    drains: bool,
    is_draining: bool,
    /// Bins that have ended.
    index: u32,
    /// Duration of a bin; zero before the first RTT sample.
    bin: Span,
    /// End of the bin that is filling.
    ends: Time,
    /// Bytes delivered, and delivered or in flight, at the end of the last bin.
    delivered: Bytes,
    sent: Bytes,
    /// Bytes in each of the last bins, as [`packed`] has them: every flow carries these.
    acked_bins: [u16; WINDOW_BINS],
    sent_bins: [u16; SENT_BINS],
    /// The least window of the drain; its target once the path was found full.
    target: Bytes,
}

impl Search {
    /// SEARCH, which drains the queue after its exit, or leaves at the present window.
    #[must_use]
    pub const fn new(drains: bool) -> Self {
        Self {
            drains,
            is_draining: false,
            index: 0,
            bin: Span::ZERO,
            ends: Time::ZERO,
            delivered: Bytes::ZERO,
            sent: Bytes::ZERO,
            acked_bins: [0; WINDOW_BINS],
            sent_bins: [0; SENT_BINS],
            target: Bytes::MAX,
        }
    }

    /// True between the exit and the end of the drain.
    #[must_use]
    pub const fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Takes an ack, which has not grown `window` yet.
    #[inline]
    pub fn on_ack(&mut self, window: Bytes, ack: &Ack) -> Step {
        if self.is_draining {
            return self.drain(window, ack);
        }
        if ack.now < self.ends {
            return Step::Grow;
        }
        let rtt = ack.rtt_sample.unwrap_or(ack.rtt.latest);
        if self.bin.is_zero() || !self.end_bins(ack) {
            self.begin(window, rtt, ack);
            return Step::Grow;
        }
        if !self.is_behind(rtt) {
            return Step::Grow;
        }
        if !self.drains {
            return Step::Exit(window);
        }
        let last_rtt = sum(&self.acked_bins, self.index, BINS_OF_RTT);
        self.target = Bytes::new(last_rtt).max(self.target).min(window);
        self.is_draining = true;
        self.drain(window, ack)
    }

    /// The first bin begins with this ack. Nothing begins without an RTT.
    fn begin(&mut self, window: Bytes, rtt: Span, ack: &Ack) {
        self.bin = rtt * BIN_OF_RTT.0 / BIN_OF_RTT.1;
        self.ends = ack.now + self.bin;
        self.target = self.target.min(window);
        self.index = 0;
        self.count(ack);
    }

    /// Bytes delivered and sent since the last time.
    fn count(&mut self, ack: &Ack) -> (u64, u64) {
        let (delivered, sent) = (ack.delivered, ack.delivered + ack.in_flight);
        let since = (delivered.saturating_sub(self.delivered).get(), sent.saturating_sub(self.sent).get());
        (self.delivered, self.sent) = (delivered, sent);
        since
    }

    /// Ends the bins up to now; false if more than a window of them was missed.
    fn end_bins(&mut self, ack: &Ack) -> bool {
        let missed = ack.now.since(self.ends).as_nanos() / self.bin.as_nanos();
        if missed >= WINDOW_BINS as u64 {
            return false;
        }
        self.ends += self.bin * (missed + 1);
        let (acked, sent) = self.count(ack);
        for left in (0..=missed).rev() {
            self.index += 1;
            let now = u64::from(left == 0);
            self.acked_bins[self.index as usize % WINDOW_BINS] = packed(acked * now);
            self.sent_bins[self.index as usize % SENT_BINS] = packed(sent * now);
        }
        true
    }

    /// Compares the two windows, with an RTT of `rtt` between them.
    fn is_behind(&self, rtt: Span) -> bool {
        let (rtt, bin) = (rtt.as_nanos(), self.bin.as_nanos());
        let back = rtt / bin;
        if back >= EXTRA_BINS as u64 || u64::from(self.index) <= WINDOW_BINS as u64 + back {
            return false;
        }
        let end = self.index - back as u32;
        let part = (u128::from(rtt % bin) * 100 / u128::from(bin)) as u64;
        let window = |end: u32| sum(&self.sent_bins, end, WINDOW_BINS);
        let sent = (window(end - 1) * part + window(end) * (100 - part)) / 100;
        let delivered = sum(&self.acked_bins, self.index, WINDOW_BINS);
        sent > 0 && sent.saturating_sub(delivered) * 100 / sent >= THRESHOLD
    }

    fn drain(&self, window: Bytes, ack: &Ack) -> Step {
        let window = (ack.in_flight + ack.newly_acked / DRAIN).min(window);
        if window > self.target { Step::Drain(window) } else { Step::Exit(self.target) }
    }
}

/// Bytes of the `count` bins up to `end`.
fn sum<const N: usize>(bins: &[u16; N], end: u32, count: usize) -> u64 {
    let bytes = |bin: u32| unpacked(bins[bin as usize % N]);
    (0..count as u32).map(|back| bytes(end - back)).sum()
}

/// The highest bits, and how far they are shifted.
fn packed(bytes: u64) -> u16 {
    let shift = (u64::BITS - bytes.leading_zeros()).saturating_sub(MANTISSA).min(31);
    let highest = (bytes >> shift).min((1 << MANTISSA) - 1);
    (highest as u16) | (shift as u16) << MANTISSA
}

fn unpacked(bin: u16) -> u64 {
    u64::from(bin & ((1 << MANTISSA) - 1)) << (bin >> MANTISSA)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::{MSS, acked};
    use crate::path::Rtt;

    const BIN: u64 = 35;

    /// An ack at the end of bin `bin`, with these totals, after an RTT in milliseconds.
    fn at(bin: u64, delivered: Bytes, sent: Bytes, rtt: u64) -> Ack {
        let rtt = Span::from_millis(rtt);
        Ack {
            rtt_sample: Some(rtt),
            rtt: Rtt { latest: rtt, ..Rtt::default() },
            delivered,
            in_flight: sent.saturating_sub(delivered),
            ..acked(Time::from_millis(1000 + bin * BIN), MSS)
        }
    }

    /// Sends 32 kB in each bin and delivers `share` per cent of it, two bins later; the initial RTT
    /// is 100 ms, of the others it is `rtt`. Returns the first bin that ends slow start.
    fn exit_at(share: u64, rtt: u64) -> Option<u64> {
        let mut search = Search::new(false);
        (0..60).find(|&bin| {
            let (sent, rtt) = (Bytes::new(32_000 * bin), if bin == 0 { 100 } else { rtt });
            let delivered = Bytes::new(320 * bin.saturating_sub(2) * share);
            match search.on_ack(MSS * 100, &at(bin, delivered, sent, rtt)) {
                Step::Grow => false,
                step => {
                    assert_eq!(step, Step::Exit(MSS * 100));
                    true
                }
            }
        })
    }

    #[test]
    fn a_bin_has_a_tenth_of_three_and_a_half_initial_rtts() {
        let mut search = Search::new(true);
        let _ = search.on_ack(MSS * 10, &at(0, MSS, MSS * 10, 100));
        assert_eq!((search.bin, search.ends), (Span::from_millis(35), Time::from_millis(1035)));
        let _ = search.on_ack(MSS * 10, &at(0, MSS, MSS * 10, 900));
        assert_eq!(search.bin, Span::from_millis(35), "later RTTs do not change it");
    }

    /// Sent ends two bins back (70 ms): a whole window before them is there after bin 13.
    #[test]
    fn slow_start_ends_where_26_percent_are_missing_and_not_where_25_are() {
        assert_eq!(exit_at(75, 70), None);
        assert_eq!(exit_at(74, 70), Some(13));
    }

    #[test]
    fn an_rtt_of_fifteen_bins_is_not_judged() {
        assert_eq!(exit_at(50, 15 * BIN), None);
        assert_eq!(exit_at(50, 15 * BIN - 1), Some(25));
    }

    /// Sent bytes double in each bin. Between bins 12 and 11 lies 40 % of one, 14 ms.
    #[test]
    fn a_window_between_two_bins_is_interpolated_with_the_bin_before() {
        let behind = |of_sent: u64| {
            let mut search = Search::new(false);
            let total = |bin: u64| Bytes::new(1600 << bin);
            for bin in 0..14 {
                let _ = search.on_ack(MSS, &at(bin, Bytes::ZERO, total(bin), 100));
            }
            let window = |end: u64| total(end).get() - total(end - 10).get();
            let sent = (window(12) * 60 + window(11) * 40) / 100;
            search.on_ack(MSS, &at(14, Bytes::new(sent * of_sent / 1000), total(14), 84)) != Step::Grow
        };
        assert!(behind(739), "26.1 % are missing");
        assert!(!behind(741), "25.9 %; with the bin after it would be more than a half");
    }

    #[test]
    fn a_missed_bin_has_the_totals_before_it_and_a_missed_window_begins_anew() {
        let mut search = Search::new(true);
        let _ = search.on_ack(MSS * 10, &at(0, MSS, MSS * 10, 100));
        let _ = search.on_ack(MSS * 10, &at(4, MSS * 9, MSS * 20, 100));
        assert_eq!((search.index, search.ends), (4, Time::from_millis(1175)));
        let kept = |bin: usize| (unpacked(search.acked_bins[bin]), unpacked(search.sent_bins[bin]));
        assert_eq!([kept(1), kept(3), kept(4)], [(0, 0), (0, 0), (8_000, 10_000)]);
        let mut whole = search;
        let _ = whole.on_ack(MSS * 10, &at(14, MSS * 20, MSS * 30, 200));
        assert_eq!((whole.index, whole.bin), (14, Span::from_millis(35)), "nine were missed");
        let _ = search.on_ack(MSS * 10, &at(15, MSS * 20, MSS * 30, 200));
        assert_eq!((search.index, search.bin), (0, Span::from_millis(70)), "ten, so the RTT is taken anew");
    }

    #[test]
    fn the_drain_replaces_a_third_of_what_arrives_down_to_the_last_rtts_deliveries() {
        let mut search = Search::new(true);
        let mut window = MSS * 200;
        // 20 kB in each bin: 60 kB in an initial RTT. The bins began at a window of 200 segments.
        for bin in 0..13 {
            let ack = at(bin, Bytes::new(20_000 * bin), Bytes::new(40_000 * bin), 70);
            let rtt = if bin == 0 { Some(Span::from_millis(100)) } else { ack.rtt_sample };
            assert_eq!(search.on_ack(MSS * 10, &Ack { rtt_sample: rtt, ..ack }), Step::Grow);
        }
        let full = at(13, Bytes::new(260_000), Bytes::new(450_000), 70);
        let step = search.on_ack(window, &full);
        assert_eq!(step, Step::Drain(Bytes::new(190_333)), "190 kB in flight and a third of a segment");
        assert!(search.is_draining());
        for in_flight in [150, 100, 61] {
            let ack = Ack { in_flight: MSS * in_flight, newly_acked: MSS * 3, ..full };
            window = MSS * (in_flight + 1);
            assert_eq!(search.on_ack(window + MSS, &ack), Step::Drain(window));
        }
        let last = Ack { in_flight: MSS * 58, newly_acked: MSS * 3, ..full };
        assert_eq!(search.on_ack(window, &last), Step::Exit(Bytes::new(60_000)));
    }

    #[test]
    fn the_drain_ends_at_the_first_window_and_never_raises_the_present_one() {
        for (first, window, expected) in [(80, 200, 80), (10, 50, 50)] {
            let mut search = Search::new(true);
            for bin in 0..13 {
                let ack = at(bin, Bytes::new(20_000 * bin), Bytes::new(40_000 * bin), 70);
                let rtt = if bin == 0 { Some(Span::from_millis(100)) } else { ack.rtt_sample };
                let _ = search.on_ack(MSS * first, &Ack { rtt_sample: rtt, ..ack });
            }
            let ack = Ack { in_flight: Bytes::ZERO, ..at(13, Bytes::new(260_000), Bytes::ZERO, 70) };
            assert_eq!(search.on_ack(MSS * window, &ack), Step::Exit(MSS * expected));
        }
    }

    #[test]
    fn a_bin_keeps_its_highest_eleven_bits() {
        for bytes in [0, 1, 2047, 2048, 1_000_001, u64::from(u32::MAX), 1 << 41] {
            let kept = unpacked(packed(bytes));
            assert!(kept <= bytes && bytes - kept <= bytes / 1024, "{bytes}: {kept}");
        }
        assert_eq!(unpacked(packed(u64::MAX)), 2047 << 31, "the largest");
    }
}
