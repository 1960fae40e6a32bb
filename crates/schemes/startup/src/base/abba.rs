//! ABBA: growth faster than CUBIC's while the bottleneck's queue is seen drained, and a return to
//! slow start when it stays so.
//!
//! Source (AB below): K. Oku, "Accelerated Bottleneck Bandwidth Adaptation (ABBA)",
//! draft-kazuho-ccwg-abba, October 2026. It changes the growth of the window alone; each loss and
//! each mark has the answer of the controller below it, which is [`cuback`](super::cuback).
//!
//! ```text
//!   RTT of a full queue  ----  measured when slow start ends
//!      no acceleration above 95 % of it; none if it is less than 10 ms above the floor
//!   floor + 2 ms         ----
//!      accelerated: about 2 ms of queue more in a round trip
//!   floor                ----  the smallest RTT between two congestion events, averaged
//! ```
//!
//! # Deviations
//!
//! - AB §5.1 takes the RTT of a full queue when the recovery ends that slow start entered. A start
//!   that ends on delay has no recovery; here it is then taken where avoidance begins.
//! - A timeout counts as a congestion event.
//! - Cuback's curve goes on from a window that was accelerated, CUBIC's would not have moved.
//! - AB §5 restores its state after a spurious cut: losses are never revoked here.

use headstart_units::{Bytes, Ratio, Span, Time};

use super::cubic::cube_root;
use crate::event::Ack;

/// AB §3: the sender's state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Abba {
    /// full_rtt; [`Span::ZERO`] while unset.
    full_rtt: Span,
    /// cur_period_min; [`Span::MAX`] while unset.
    current_min: Span,
    /// past_periods_min: smoothed and variance; [`Span::ZERO`] while unset.
    past_min: (Span, Span),
    last_high_queue_at: Time,
    /// The smoothed RTT before the last ack.
    smoothed_before: Span,
    /// Slow start ended, and its recovery has not.
    leaves_slow_start: bool,
}

impl Abba {
    pub(super) const NEW: Self = Self {
        full_rtt: Span::ZERO,
        current_min: Span::MAX,
        past_min: (Span::ZERO, Span::ZERO),
        last_high_queue_at: Time::ZERO,
        smoothed_before: Span::ZERO,
        leaves_slow_start: false,
    };

    /// Avoidance begins with the next ack outside recovery, after slow start.
    pub(super) fn on_slow_start_end(&mut self) {
        self.leaves_slow_start = true;
    }

    /// AB §5.2: a period between congestion events ends.
    pub(super) fn on_congestion(&mut self) {
        if self.current_min == Span::MAX {
            return;
        }
        let (sample, (smoothed, variance)) = (self.current_min, self.past_min);
        self.past_min = match smoothed.is_zero() {
            true => (sample, FIRST_VARIANCE),
            false => (
                smoothed - smoothed / 8 + sample / 8,
                variance - variance / 4 + smoothed.abs_diff(sample) / 4,
            ),
        };
        self.current_min = Span::MAX;
    }

    /// AB §5.3: a mark is proof of a queue.
    pub(super) fn on_mark(&mut self, now: Time) {
        self.last_high_queue_at = now;
    }

    /// Takes the RTT of an ack; `refill` is that in which a flow refills the queue, if
    /// avoidance is under way. True if the queue has stayed away for twice as long: back to slow
    /// start.
    pub(super) fn observe(&mut self, ack: &Ack, refill: Option<Refill>) -> bool {
        let smoothed_before = core::mem::replace(&mut self.smoothed_before, ack.rtt.smoothed);
        if ack.in_recovery {
            return false;
        }
        if core::mem::take(&mut self.leaves_slow_start) {
            self.full_rtt = if smoothed_before.is_zero() { ack.rtt.smoothed } else { smoothed_before };
            self.last_high_queue_at = ack.now;
        }
        if let Some(sample) = ack.rtt_sample {
            self.current_min = self.current_min.min(sample);
        }
        let Some(refill) = refill.filter(|_| ack.is_window_limited) else { return false };
        let bottom = self.bottom(ack.rtt.min);
        if ack.rtt.smoothed >= bottom + HIGH_QUEUE {
            self.last_high_queue_at = ack.now;
            return false;
        }
        ack.now.since(self.last_high_queue_at) >= refill.interval(self.full_rtt, bottom) * 2
    }

    /// bottom_rtt.
    fn bottom(&self, min: Span) -> Span {
        let (smoothed, variance) = self.past_min;
        smoothed.saturating_sub(variance).max(min).min(self.current_min)
    }

    /// drain_threshold.
    fn drained(&self, min: Span) -> Span {
        let (smoothed, variance) = self.past_min;
        let threshold = smoothed.saturating_sub(variance / 2).max(min + QUEUE_A_ROUND);
        match self.current_min {
            Span::MAX => threshold,
            current => threshold.min(current + QUEUE_A_ROUND),
        }
    }

    /// AB §4: the growth for data acknowledged in avoidance; zero where it is CUBIC's alone.
    pub(super) fn growth(&self, acked: Bytes, ack: &Ack) -> Bytes {
        let (latest, min) = (ack.rtt.latest, ack.rtt.min);
        let drained = self.drained(min);
        let is_drained = !self.past_min.0.is_zero()
            && self.full_rtt > self.bottom(min) + HIGH_QUEUE
            && self.full_rtt > latest + latest / 20
            && latest < drained;
        if !is_drained {
            return Bytes::ZERO;
        }
        let by_queue = Bytes::new(
            (u128::from(acked.get()) * u128::from(QUEUE_A_ROUND.as_nanos())
                / u128::from(drained.as_nanos().max(1))) as u64,
        );
        by_queue.max(acked * LEAST_RATIO).min(acked * LARGEST_RATIO)
    }
}

/// The time in which a flow refills the queue along its own curve.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refill {
    /// K of CUBIC's curve from cwnd_epoch to cwnd_epoch / beta.
    pub(super) k: Span,
    /// C K^3 / alpha: round trips of the Reno-friendly curve over the same way.
    pub(super) rounds: u64,
}

impl Refill {
    /// expected_high_queue_interval.
    fn interval(&self, full_rtt: Span, bottom: Span) -> Span {
        let reno = Span::from_nanos(full_rtt.as_nanos().saturating_mul(self.rounds));
        let depth = (u128::from(full_rtt.as_nanos()) << 30) / u128::from(bottom.as_nanos().max(1));
        let stretched = (u128::from(self.k.min(reno).as_nanos()) * u128::from(cube_root(depth))) >> 10;
        Span::from_nanos(u64::try_from(stretched).unwrap_or(u64::MAX / 2).min(u64::MAX / 2))
    }
}

/// AB §4: the queue that acceleration adds in a round trip.
const QUEUE_A_ROUND: Span = Span::from_millis(2);
/// AB §4 and §5.3: a queue that can be told from none.
const HIGH_QUEUE: Span = Span::from_millis(10);
/// AB §5.2.
const FIRST_VARIANCE: Span = Span::from_millis(5);
/// AB §4.
const LEAST_RATIO: Ratio = Ratio::new(1, 40);
/// AB §4: half of what would undo a cut, (1 / 0.7 - 1) / 2.
const LARGEST_RATIO: Ratio = Ratio::new(3, 14);

#[cfg(test)]
mod tests {
    use super::super::testing::{MSS, acked, lost};
    use super::super::{Base, Kind};
    use super::*;
    use crate::allowance::HandOver;
    use crate::event::{Congestion, Signal};
    use crate::path::Rtt;

    /// A flow on a path of 100 ms, cut at 1000 segments with a queue of 60 ms.
    struct Play {
        base: Base,
        now: Time,
    }

    fn rtt(millis: u64) -> Rtt {
        let of = Span::from_millis(millis);
        Rtt { latest: of, smoothed: of, variation: Span::ZERO, min: Span::from_millis(100) }
    }

    impl Play {
        fn new(kind: Kind) -> Self {
            let mut base = Base::new(kind, MSS);
            base.take_over(&HandOver::growing(MSS * 500));
            let mut play = Self { base, now: Time::ZERO };
            play.round(100, false);
            play.base.on_congestion(&Congestion { rtt: rtt(160), ..lost(play.now, MSS) });
            play.round(160, true);
            play
        }

        /// A window of acks with this RTT, of no more than the path holds.
        fn round(&mut self, millis: u64, in_recovery: bool) {
            let window = self.base.window().min(MSS * 1000);
            for _ in 0..10 {
                self.now += Span::from_millis(millis) / 10;
                let sample = Some(Span::from_millis(millis));
                let ack = acked(self.now, window / 10);
                self.base.on_ack(&Ack { rtt_sample: sample, rtt: rtt(millis), in_recovery, ..ack });
            }
        }

        fn segments(&self) -> u64 {
            self.base.window().get() / MSS.get()
        }
    }

    /// AB §4: 2 ms of 102 ms are two percent, below the least of one fortieth.
    #[test]
    fn a_drained_queue_makes_it_grow_by_a_fortieth_in_a_round_trip_or_as_cubic() {
        let (mut abba, mut cuback) = (Play::new(Kind::Abba), Play::new(Kind::Cuback));
        let before = abba.segments();
        assert_eq!(before, cuback.segments(), "the cut is the same");
        // CUBIC's curve is the steeper one just after a cut.
        for play in [&mut abba, &mut cuback] {
            for _ in 0..60 {
                play.round(160, false);
            }
        }
        assert_eq!(abba.segments(), cuback.segments(), "with a queue it is Cuback");
        let at = abba.segments();
        abba.round(101, false);
        cuback.round(101, false);
        let acked = at.min(1000);
        assert_eq!(abba.segments() - at, acked / 40, "of {acked} at {at}");
        assert!(cuback.segments() - at < 10, "{}", cuback.segments());
    }

    #[test]
    fn without_a_queue_that_can_be_told_from_none_it_is_cuback() {
        let shallow = |kind| {
            let mut play = Play::new(kind);
            // The first cut at an RTT of 109 ms: nine above the floor.
            let mut base = Base::new(kind, MSS);
            base.take_over(&HandOver::growing(MSS * 500));
            play.base = base;
            play.round(100, false);
            play.base.on_congestion(&Congestion { rtt: rtt(109), ..lost(play.now, MSS) });
            play.round(109, true);
            for _ in 0..5 {
                play.round(101, false);
            }
            play.base.window()
        };
        assert_eq!(shallow(Kind::Abba), shallow(Kind::Cuback));
    }

    /// AB §5.3: K from 700 segments is 9.09 s, times the cube root of 1.6, twice.
    #[test]
    fn a_queue_that_stays_away_for_twice_its_interval_brings_back_slow_start() {
        let mut play = Play::new(Kind::Abba);
        let began = play.now;
        let mut rounds = 0;
        while !play.base.is_slow_start() {
            play.round(100, false);
            rounds += 1;
            assert!(rounds < 1000, "never");
        }
        let after = play.now.since(began).as_nanos() as f64 / 1e9;
        let expected = 2.0 * (700.0_f64 * 3.0 / 7.0 / 0.4).cbrt() * 1.6_f64.cbrt();
        assert!((after - expected).abs() < 0.2, "{after} s, expected {expected} s");
        assert_eq!(play.base.ssthresh(), Bytes::MAX);
    }

    #[test]
    fn a_mark_or_a_queue_puts_it_off() {
        let mut play = Play::new(Kind::Abba);
        for round in 0..400 {
            play.round(100, false);
            let mark = Congestion {
                signal: Signal::CongestionExperienced,
                opens_episode: false,
                ..lost(play.now, MSS)
            };
            match round % 100 {
                50 => play.base.on_congestion(&mark),
                99 => play.round(115, false),
                _ => {}
            }
            assert!(!play.base.is_slow_start(), "round {round}");
        }
    }
}
