//! Proportional rate reduction: the bytes that may leave on each ack of a recovery.
//!
//! Source: RFC 9937 §6, and RFC 6937 §3.1, whose slow start reduction bound calls every ack safe
//! ([`prr_slow_start`](super::TcpConfig::prr_slow_start)).

use headstart_units::Bytes;

/// State of one recovery episode.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prr {
    /// Delivered since the episode began (prr_delivered).
    delivered: u64,
    /// Sent since the episode began (prr_out).
    out: u64,
    /// In flight when it began (RecoverFS).
    recover_fs: u64,
    /// Limit of the bytes in flight after the present ack.
    window: u64,
}

impl Prr {
    /// A new episode after `prior_in_flight` bytes in flight; `mss` may be retransmitted at once.
    pub fn begin(&mut self, prior_in_flight: Bytes, in_flight: Bytes, mss: Bytes) {
        *self = Self {
            delivered: 0,
            out: 0,
            recover_fs: prior_in_flight.get().max(1),
            window: (in_flight + mss).get(),
        };
    }

    /// One ack of the episode. The reduction is rounded up to `grain`: a byte, or a segment.
    /// `is_safe` (SafeACK): the ack advanced the cumulative point and found no new loss.
    pub fn on_ack(
        &mut self,
        newly_delivered: Bytes,
        in_flight: Bytes,
        ssthresh: Bytes,
        mss: Bytes,
        grain: Bytes,
        is_safe: bool,
    ) {
        let (delivered, in_flight, ssthresh) = (newly_delivered.get(), in_flight.get(), ssthresh.get());
        self.delivered += delivered;
        let may_send = if in_flight > ssthresh {
            let share = u128::from(self.delivered) * u128::from(ssthresh);
            (share.div_ceil(u128::from(self.recover_fs)) as u64).next_multiple_of(grain.get().max(1))
        } else {
            // Packet conservation; one segment more, as in slow start, only while the ack is safe.
            let limit = self.delivered.max(self.out + delivered) + if is_safe { mss.get() } else { 0 };
            (ssthresh - in_flight).saturating_add(self.out).min(limit)
        };
        // Fast retransmit: the first ack of an episode always allows one segment.
        let floor = if self.out == 0 { mss.get() } else { 0 };
        self.window = in_flight + may_send.saturating_sub(self.out).max(floor);
    }

    /// Bytes were sent.
    pub fn on_sent(&mut self, bytes: Bytes) {
        self.out += bytes.get();
    }

    /// Limit of the bytes in flight.
    #[must_use]
    pub fn window(&self) -> Bytes {
        Bytes::new(self.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(1000);
    const BYTE: Bytes = Bytes::new(1);

    /// Ten in flight, one lost, threshold five: half of the acks allow a segment.
    #[test]
    fn a_single_loss_halves_the_rate_at_once() {
        let mut prr = Prr::default();
        prr.begin(MSS * 10, MSS * 8, MSS);
        let (mut in_flight, mut sent) = (MSS * 8, 0);
        for _ in 0..8 {
            in_flight -= MSS;
            prr.on_ack(MSS, in_flight, MSS * 5, MSS, BYTE, false);
            while in_flight + MSS <= prr.window() {
                prr.on_sent(MSS);
                in_flight += MSS;
                sent += 1;
            }
        }
        assert!((4..=5).contains(&sent), "{sent} segments for eight acks");
        assert_eq!(in_flight, MSS * 5 - MSS * (5 - sent.min(5)).min(1), "about the threshold in the end");
    }

    #[test]
    fn after_heavy_loss_the_window_grows_back_no_faster_than_slow_start() {
        let mut prr = Prr::default();
        prr.begin(MSS * 100, MSS * 10, MSS);
        prr.on_ack(MSS, MSS * 9, MSS * 50, MSS, BYTE, true);
        assert_eq!(prr.window(), MSS * 11, "what was delivered, and one more");
    }

    #[test]
    fn an_unsafe_ack_allows_only_the_delivered_bytes() {
        let mut prr = Prr::default();
        prr.begin(MSS * 100, MSS * 10, MSS);
        prr.on_ack(MSS, MSS * 9, MSS * 50, MSS, BYTE, false);
        assert_eq!(prr.window(), MSS * 10);
    }

    /// Seventeen in flight, threshold eight: after each of the acks so many have left, by the byte
    /// and as Linux counts.
    #[test]
    fn whole_segments_are_rounded_up() {
        for (grain, expected) in [(BYTE, [1, 1, 1, 1, 2]), (MSS, [1, 1, 2, 2, 3])] {
            let mut prr = Prr::default();
            prr.begin(MSS * 17, MSS * 16, MSS);
            let (mut in_flight, mut sent) = (MSS * 16, 0);
            for expected in expected {
                in_flight -= MSS;
                prr.on_ack(MSS, in_flight, MSS * 8, MSS, grain, false);
                while in_flight + MSS <= prr.window() {
                    prr.on_sent(MSS);
                    in_flight += MSS;
                    sent += 1;
                }
                assert_eq!(sent, expected, "in steps of {grain:?}");
            }
        }
    }

    /// A scheme that stays in charge may have a practically unlimited window.
    #[test]
    fn no_threshold_is_too_large() {
        let mut prr = Prr::default();
        prr.begin(MSS * 10, MSS * 8, MSS);
        prr.on_sent(MSS);
        prr.on_ack(MSS, MSS * 8, Bytes::MAX, MSS, BYTE, true);
        assert_eq!(prr.window(), MSS * 10, "what was delivered, and one more");
    }
}
