//! HyStart as in Linux: the older one, which leaves slow start at once.
//!
//! Source: S. Ha and I. Rhee, "Taming the elephants: New TCP slow start", Computer Networks 55,
//! 2011, as in the kernel's CUBIC (`net/ipv4/tcp_cubic.c`, the behaviour in own words). Two
//! detectors, either of which ends slow start at the present window:
//!
//! - *ack train*: acks that follow each other within 2 ms form a train from the round's beginning.
//!   It is too long above half of the smallest delay plus half a millisecond. The latter is half
//!   of the kernel's allowance for its own bursts, 1 ms without pacing at rates below 2 Gbit/s.
//! - *delay*: after eight samples in a round, its smallest delay is above the smallest of all by an
//!   eighth of that, at least 4 ms and at most 16 ms.
//!
//! Neither is active below a window of 16 segments.
//!
//! # Deviations
//!
//! - The kernel takes the whole smallest delay for the train of a paced sender; here none is paced.
//! - The kernel restarts a round when an idle connection sends again; here rounds continue.

use headstart_units::{Bytes, Span, Time};

use crate::event::Ack;
use crate::path::Round;

/// `hystart_low_window`, segments.
const LOW_WINDOW: u64 = 16;
/// `hystart_ack_delta_us`.
const ACK_DELTA: Span = Span::from_millis(2);
/// Value of `hystart_ack_delay` without pacing.
const ACK_DELAY: Span = Span::from_millis(1);
/// `HYSTART_MIN_SAMPLES`.
const MIN_SAMPLES: u32 = 8;
/// `HYSTART_DELAY_MIN` and `HYSTART_DELAY_MAX`.
const DELAY_MIN: Span = Span::from_millis(4);
const DELAY_MAX: Span = Span::from_millis(16);

/// Findings of one ack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// True if the ack begins a round.
    pub begins_round: bool,
    /// True if the train of acks is too long.
    pub train: bool,
    /// True if the round's smallest delay is too large.
    pub delay: bool,
}

/// The state of both detectors.
#[derive(Clone, Copy, Debug)]
pub struct Linux {
    low_window: Bytes,
    round: Round,
    round_start: Time,
    last_ack: Time,
    /// Smallest delay of all; [`Span::MAX`] before there is one.
    pub(crate) delay_min: Span,
    /// Smallest delay of the round, from a window of 16 segments on.
    pub(crate) round_min: Span,
    samples: u32,
}

impl Linux {
    /// Both detectors, for segments of `mss`.
    #[must_use]
    pub fn new(mss: Bytes) -> Self {
        Self {
            low_window: mss * LOW_WINDOW,
            round: Round::default(),
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            delay_min: Span::MAX,
            round_min: Span::MAX,
            samples: 0,
        }
    }

    /// True if slow start ends with this ack, which has not grown the window yet.
    pub fn on_ack(&mut self, window: Bytes, ack: &Ack) -> bool {
        let found = self.examine(window, ack, 0);
        found.train || found.delay
    }

    /// Both detectors, where the acks so far stand for `2^doublings` times as many.
    pub fn examine(&mut self, window: Bytes, ack: &Ack, doublings: u32) -> Found {
        let mut found = Found { begins_round: self.round.on_ack(ack), ..Found::default() };
        if found.begins_round {
            (self.round_start, self.last_ack) = (ack.now, ack.now);
            (self.round_min, self.samples) = (Span::MAX, 0);
        }
        let Some(delay) = ack.rtt_sample else { return found };
        self.delay_min = self.delay_min.min(delay);
        if window < self.low_window {
            return found;
        }
        if ack.now.since(self.last_ack) <= ACK_DELTA {
            self.last_ack = ack.now;
            let train = ack.now.since(self.round_start) * (1 << doublings.min(32));
            found.train = train > (self.delay_min + ACK_DELAY) / 2;
        }
        self.round_min = self.round_min.min(delay);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
        } else {
            let slack = (self.delay_min / 8).clamp(DELAY_MIN, DELAY_MAX);
            found.delay = self.round_min > self.delay_min + slack;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::{MSS, acked};
    use crate::path::{RateSample, Rtt};

    /// Acks of one round at these times (us) with this RTT (us): the first that ends slow start.
    fn round(
        hystart: &mut Linux,
        window: Bytes,
        delivered: &mut Bytes,
        times: impl Iterator<Item = u64>,
        rtt: u64,
    ) -> Option<u64> {
        let prior = *delivered;
        let mut over = None;
        for at in times {
            *delivered += MSS;
            let ack = Ack {
                newest_sent_at: Time::ZERO,
                rtt_sample: Some(Span::from_micros(rtt)),
                rtt: Rtt::default(),
                delivered: *delivered,
                rate: RateSample { prior_delivered: prior, ..RateSample::default() },
                ..acked(Time::from_nanos(at * 1000), MSS)
            };
            if hystart.on_ack(window, &ack) {
                over = over.or(Some(at));
            }
        }
        over
    }

    #[test]
    fn a_train_longer_than_half_the_delay_ends_slow_start() {
        let (mut hystart, mut delivered) = (Linux::new(MSS), Bytes::ZERO);
        let first = round(&mut hystart, MSS * 10, &mut delivered, (0..10).map(|n| 50_000 + n * 1000), 50_000);
        assert_eq!(first, None, "the window is below 16 segments");
        let second =
            round(&mut hystart, MSS * 40, &mut delivered, (0..40).map(|n| 100_000 + n * 1000), 50_000);
        assert_eq!(second, Some(126_000), "more than 25.5 ms after the round's beginning");
    }

    #[test]
    fn a_gap_breaks_the_train() {
        let (mut hystart, mut delivered) = (Linux::new(MSS), Bytes::ZERO);
        let times = (0..40).map(|n| 100_000 + n * 1000 + if n > 5 { 1500 } else { 0 });
        assert_eq!(round(&mut hystart, MSS * 40, &mut delivered, times, 50_000), None);
    }

    #[test]
    fn a_longer_delay_ends_slow_start_at_the_ninth_sample() {
        let (mut hystart, mut delivered) = (Linux::new(MSS), Bytes::ZERO);
        assert_eq!(
            round(&mut hystart, MSS * 20, &mut delivered, (0..20).map(|n| 50_000 + n * 10), 50_000),
            None
        );
        let times = || (0..20).map(|n| 150_000 + n * 10);
        let mut same = hystart;
        assert_eq!(
            round(&mut same, MSS * 40, &mut delivered.clone(), times(), 56_000),
            None,
            "below an eighth"
        );
        assert_eq!(round(&mut hystart, MSS * 40, &mut delivered, times(), 57_000), Some(150_080));
    }
}
