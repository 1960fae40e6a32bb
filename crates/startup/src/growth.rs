//! Slow start's doubling, with HyStart++ or without: the part that most schemes go on with when
//! their first flight is through.
//!
//! Sources: RFC 5681 §3.1 with appropriate byte counting unlimited (RFC 3465 with L = infinity, as
//! RFC 9406 §4.3 recommends for a paced sender and as Linux does); RFC 9406 (HyStart++).
//!
//! # Deviations
//!
//! - RFC 9406 §4.2 ends a round when the window's right edge is acknowledged; here a round ends when
//!   data sent after its beginning is ([`Round`]), which is the same edge told by delivered bytes.
//! - RFC 9406 §4.3 limits growth per ack to L = 8 segments for a sender that is not paced. An ack
//!   covers two segments at most here, so the limit never binds and is not implemented.

pub mod linux;

use headstart_units::{Bytes, Span};

use crate::event::Ack;
use crate::path::Round;

/// Whether slow start goes on after an ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Keep growing.
    GoOn,
    /// HyStart++ says that the queue is growing for good: avoidance begins at the present window.
    Exit,
}

/// Slow start's growth rule.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    hystart: Option<HyStart>,
    /// Linux's instead.
    linux: Option<linux::Linux>,
}

impl Growth {
    /// Doubles every round trip, until congestion or, with HyStart++, until delay grows.
    #[must_use]
    pub fn new(with_hystart: bool) -> Self {
        Self { hystart: with_hystart.then(HyStart::default), linux: None }
    }

    /// Doubles every round trip, until congestion or until Linux's HyStart has seen enough.
    #[must_use]
    pub fn linux(mss: Bytes) -> Self {
        Self { hystart: None, linux: Some(linux::Linux::new(mss)) }
    }

    /// Grows `window` for one ack.
    #[inline]
    pub fn on_ack(&mut self, window: &mut Bytes, ack: &Ack) -> Verdict {
        let Some(hystart) = &mut self.hystart else {
            if let Some(linux) = &mut self.linux
                && linux.on_ack(*window, ack)
            {
                return Verdict::Exit;
            }
            if ack.is_window_limited {
                *window += ack.newly_acked;
            }
            return Verdict::GoOn;
        };
        let divisor = hystart.on_ack(ack);
        if ack.is_window_limited {
            *window += ack.newly_acked / divisor;
        }
        if hystart.is_done() { Verdict::Exit } else { Verdict::GoOn }
    }

    /// `slow start`, or `CSS` while HyStart++ checks whether the delay was real.
    #[must_use]
    pub fn phase(&self) -> &'static str {
        match self.hystart {
            Some(HyStart { conservative_rounds: 1.., .. }) => "CSS",
            _ => "slow start",
        }
    }
}

/// RFC 9406's state: the two rounds' minima and the conservative phase.
#[derive(Clone, Copy, Debug)]
struct HyStart {
    round: Round,
    last_round_min: Span,
    current_round_min: Span,
    samples: u32,
    /// Rounds spent in conservative slow start, the present one included; zero: not in it.
    conservative_rounds: u32,
    baseline_min: Span,
}

// RFC 9406 §4.3.
const MIN_RTT_THRESH: Span = Span::from_millis(4);
const MAX_RTT_THRESH: Span = Span::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;

impl Default for HyStart {
    fn default() -> Self {
        Self {
            round: Round::default(),
            last_round_min: Span::MAX,
            current_round_min: Span::MAX,
            samples: 0,
            conservative_rounds: 0,
            baseline_min: Span::MAX,
        }
    }
}

impl HyStart {
    /// Returns what growth is divided by.
    fn on_ack(&mut self, ack: &Ack) -> u64 {
        if self.round.on_ack(ack) {
            self.last_round_min = self.current_round_min;
            self.current_round_min = Span::MAX;
            self.samples = 0;
            if self.conservative_rounds > 0 {
                self.conservative_rounds += 1;
            }
        }
        if let Some(rtt) = ack.rtt_sample {
            self.current_round_min = self.current_round_min.min(rtt);
            self.samples += 1;
        }
        if self.samples >= N_RTT_SAMPLE && self.current_round_min != Span::MAX {
            if self.conservative_rounds > 0 {
                // §4.2: the exit was spurious if the delay went away.
                if self.current_round_min < self.baseline_min {
                    self.baseline_min = Span::MAX;
                    self.conservative_rounds = 0;
                }
            } else if self.last_round_min != Span::MAX {
                let threshold = (self.last_round_min / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if self.current_round_min >= self.last_round_min + threshold {
                    self.baseline_min = self.current_round_min;
                    self.conservative_rounds = 1;
                }
            }
        }
        if self.conservative_rounds > 0 { CSS_GROWTH_DIVISOR } else { 1 }
    }

    fn is_done(&self) -> bool {
        self.conservative_rounds > CSS_ROUNDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{RateSample, Rtt};
    use headstart_units::Time;

    const MSS: Bytes = Bytes::new(1000);

    /// Plays rounds of `per_round` acks each with the given RTTs in milliseconds; returns the window.
    fn play(growth: &mut Growth, rounds: &[u64], per_round: u64) -> (Bytes, Verdict) {
        let (mut window, mut delivered, mut verdict) = (MSS * 10, Bytes::ZERO, Verdict::GoOn);
        for &rtt in rounds {
            let sent_after = delivered;
            for _ in 0..per_round {
                delivered += MSS;
                let ack = Ack {
                    now: Time::ZERO,
                    newest_sent_at: Time::ZERO,
                    newly_acked: MSS,
                    first_flight_acked: Bytes::ZERO,
                    rtt_sample: Some(Span::from_millis(rtt)),
                    rtt: Rtt::default(),
                    in_flight: MSS,
                    delivered,
                    rate: RateSample { prior_delivered: sent_after, ..RateSample::default() },
                    is_window_limited: true,
                    in_recovery: false,
                    stamped: None,
                };
                verdict = growth.on_ack(&mut window, &ack);
            }
        }
        (window, verdict)
    }

    #[test]
    fn without_hystart_every_acked_byte_adds_one() {
        let mut growth = Growth::new(false);
        assert_eq!(play(&mut growth, &[50, 90, 200], 10), (MSS * 40, Verdict::GoOn));
    }

    #[test]
    fn delay_for_good_ends_slow_start_after_five_conservative_rounds() {
        let mut growth = Growth::new(true);
        // 60 ms: the threshold is 7.5 ms; 70 ms is above it, found at the eighth sample.
        let (window, verdict) = play(&mut growth, &[60, 70], 8);
        assert_eq!((window, verdict), (Bytes::new(10_000 + 8_000 + 7_000 + 250), Verdict::GoOn));
        assert_eq!(growth.phase(), "CSS");
        let mut growth = Growth::new(true);
        let (_, verdict) = play(&mut growth, &[60, 70, 70, 70, 70, 70], 8);
        assert_eq!(verdict, Verdict::GoOn, "four conservative rounds and the one that found the delay");
        let mut growth = Growth::new(true);
        let (_, verdict) = play(&mut growth, &[60, 70, 70, 70, 70, 70, 70], 8);
        assert_eq!(verdict, Verdict::Exit);
    }

    #[test]
    fn delay_that_goes_away_was_spurious() {
        let mut growth = Growth::new(true);
        let _ = play(&mut growth, &[60, 70, 60], 8);
        assert_eq!(growth.phase(), "slow start");
    }
}
