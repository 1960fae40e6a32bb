//! Cuback: CUBIC's curves as functions of acknowledged data instead of time.
//!
//! Source (CB below): K. Oku, "CUBACK: CUBIC Driven by the ACK Clock",
//! draft-kazuho-ccwg-cuback-00, September 2026. Each curve is turned around: A(w) is the data that
//! must be acknowledged, since avoidance began, for the window to reach w. The window grows by a
//! segment each time that D(w) = max(2 segments, A(w + 1) - A(w)) has been acknowledged, as Reno's
//! does each time that w has. All else is CUBIC's ([`cubic`](super::cubic)).
//!
//! # Deviations
//!
//! - CB §3 sets the clock's rate, the window over the smoothed RTT, when congestion is detected or
//!   avoidance is entered without. After a timeout it is set when avoidance is entered, as RFC 9438
//!   §4.8 begins its curve there.
//! - Growth stops for a sender that is not window-limited, which CB §3.3 leaves open.
//! - CB §3.2's undo of a spurious cut is not implemented: losses are never revoked.
//! - The cube root is one of whole nanoseconds.

use headstart_units::{Bytes, Ratio, Span};

use super::abba::{Abba, Refill};
use super::cubic::{BETA, Constants, cube_root};
use super::{LOSS_SEGMENTS, MINIMUM_SEGMENTS};
use crate::allowance::HandOver;
use crate::event::{Ack, Congestion, Signal, Timeout};

/// Cuback's state.
#[derive(Clone, Copy, Debug)]
pub struct Cuback {
    mss: Bytes,
    pub(super) window: Bytes,
    pub(super) ssthresh: Bytes,
    w_max: Bytes,
    /// Bytes acknowledged since the window last grew by a segment.
    pending: Bytes,
    epoch: Option<Epoch>,
    abba: Option<Abba>,
}

/// The constants of a stretch of avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    curves: Curves,
    refill: Refill,
    /// The window to which `reached` and `step` belong.
    window: Bytes,
    /// A(w + 1).
    reached: Bytes,
    /// D(w).
    step: Bytes,
}

/// CB §3, all in bytes.
#[derive(Clone, Copy, Debug)]
struct Curves {
    mss: Bytes,
    /// cwnd_epoch.
    began: Bytes,
    w_max: Bytes,
    /// cwnd_prior: from here the Reno-friendly curve has an alpha of one (RFC 9438 §4.3).
    prior: Bytes,
    /// cwnd_prior over this is the rate of the clock.
    rtt: Span,
}

impl Cuback {
    pub(super) fn new(mss: Bytes) -> Self {
        Self {
            mss,
            window: mss * LOSS_SEGMENTS,
            ssthresh: Bytes::MAX,
            w_max: Bytes::ZERO,
            pending: Bytes::ZERO,
            epoch: None,
            abba: None,
        }
    }

    pub(super) fn with_abba(mss: Bytes) -> Self {
        Self { abba: Some(Abba::NEW), ..Self::new(mss) }
    }

    pub(super) fn take_over(&mut self, from: &HandOver) {
        self.window = from.window.max(self.mss * LOSS_SEGMENTS);
        self.ssthresh = from.ssthresh;
        if let Some(abba) = &mut self.abba
            && self.window >= self.ssthresh
        {
            abba.on_slow_start_end();
        }
    }

    pub(super) fn on_ack(&mut self, ack: &Ack) {
        let is_avoiding = self.window >= self.ssthresh;
        if let Some(abba) = &mut self.abba
            && abba.observe(ack, self.epoch.filter(|_| is_avoiding).map(|epoch| epoch.refill))
        {
            // AB §5.3: back to slow start with the same window, and without a maximum.
            self.w_max = Bytes::ZERO;
            self.ssthresh = Bytes::MAX;
            self.epoch = None;
        }
        if ack.in_recovery || !ack.is_window_limited {
            return;
        }
        let mut acked = ack.newly_acked;
        if self.window < self.ssthresh {
            let grown = (self.window + acked).min(self.ssthresh);
            acked -= grown - self.window;
            self.window = grown;
        }
        if acked.is_zero() {
            return;
        }
        let window = self.window;
        let by_abba = self.abba.map_or(Bytes::ZERO, |abba| abba.growth(acked, ack));
        if self.epoch.is_none() {
            self.pending = Bytes::ZERO;
        }
        let (mss, rtt) = (self.mss, ack.rtt.smoothed);
        let epoch = self.epoch.get_or_insert_with(|| {
            Epoch::begin(Curves { mss, began: window, w_max: window, prior: window, rtt })
        });
        if epoch.window != window {
            // Set from outside (restart after idle).
            epoch.move_to(window);
        }
        self.pending += acked;
        while self.pending >= epoch.step {
            self.pending -= epoch.step;
            self.window += mss;
            epoch.advance();
        }
        if window + by_abba > self.window {
            // Another place of the curve: what was counted towards the last one is spent.
            self.window = window + by_abba;
            self.pending = Bytes::ZERO;
        }
    }

    pub(super) fn on_congestion(&mut self, signal: &Congestion, share: Option<Ratio>) {
        if let (Some(abba), Signal::CongestionExperienced) = (&mut self.abba, signal.signal) {
            abba.on_mark(signal.now);
        }
        if signal.opens_episode {
            self.end_period();
            let prior = self.window;
            self.record_maximum();
            self.ssthresh = (prior * share.unwrap_or(BETA)).max(self.mss * MINIMUM_SEGMENTS);
            self.window = self.ssthresh;
            let (mss, began, w_max) = (self.mss, self.window, self.w_max.max(self.window));
            self.epoch = Some(Epoch::begin(Curves { mss, began, w_max, prior, rtt: signal.rtt.smoothed }));
        }
    }

    /// The first congestion of an episode, for ABBA.
    fn end_period(&mut self) {
        if let Some(abba) = &mut self.abba {
            abba.on_congestion();
            if self.window < self.ssthresh {
                abba.on_slow_start_end();
            }
        }
    }

    pub(super) fn on_timeout(&mut self, timeout: &Timeout) {
        self.end_period();
        // RFC 9438 §4.8; RFC 5681 §3.1: a repeated timeout of a segment keeps the threshold.
        if timeout.consecutive == 1 {
            self.ssthresh = (self.window * BETA).max(self.mss * MINIMUM_SEGMENTS);
            self.record_maximum();
        }
        self.epoch = None;
        self.window = self.mss * LOSS_SEGMENTS;
    }

    /// CB §3.1.
    fn record_maximum(&mut self) {
        self.w_max = match self.window < self.w_max {
            true => self.window * Constants::ONE.fast_convergence(),
            false => self.window,
        };
        self.pending = Bytes::ZERO;
    }
}

impl Epoch {
    fn begin(curves: Curves) -> Self {
        let mut epoch = Self {
            curves,
            refill: curves.refill(),
            window: Bytes::ZERO,
            reached: Bytes::ZERO,
            step: Bytes::ZERO,
        };
        epoch.move_to(curves.began);
        epoch
    }

    fn move_to(&mut self, window: Bytes) {
        self.window = window;
        self.reached = self.curves.acknowledged(window + self.curves.mss);
        self.step = self.curves.step(self.curves.acknowledged(window), self.reached);
    }

    fn advance(&mut self) {
        self.window += self.curves.mss;
        let next = self.curves.acknowledged(self.window + self.curves.mss);
        self.step = self.curves.step(self.reached, next);
        self.reached = next;
    }
}

impl Curves {
    /// The way from cwnd_epoch to cwnd_epoch / beta.
    fn refill(&self) -> Refill {
        let missing = self.began * Ratio::new(3, 7);
        let rounds = missing.get() / self.mss.get().max(1) * 17 / 9;
        Refill { k: Span::from_nanos(self.root(missing)), rounds }
    }

    fn step(&self, from: Bytes, to: Bytes) -> Bytes {
        to.saturating_sub(from).max(self.mss * 2)
    }

    /// A(w).
    fn acknowledged(&self, window: Bytes) -> Bytes {
        self.by_cubic(window).min(self.by_reno(window))
    }

    /// A_cubic(w), of windows from cwnd_epoch.
    fn by_cubic(&self, window: Bytes) -> Bytes {
        let climb = self.root(self.w_max.saturating_sub(self.began));
        let time = match window < self.w_max {
            true => climb.saturating_sub(self.root(self.w_max - window)),
            false => climb + self.root(window - self.w_max),
        };
        // cwnd_prior / RTT x time.
        let acked = u128::from(self.prior.get()) * u128::from(time) / u128::from(self.rtt.as_nanos().max(1));
        Bytes::new(u64::try_from(acked).unwrap_or(u64::MAX))
    }

    /// The time in nanoseconds in which the cubic climbs `bytes` from its plateau: cbrt(w / C).
    fn root(&self, bytes: Bytes) -> u64 {
        // C is 0.4 segments per second cubed; a second cubed is 10^27 nanoseconds cubed.
        let segments = (u128::from(bytes.get()) << SEGMENT_SHIFT) / u128::from(self.mss.get().max(1));
        cube_root(segments.min(LARGEST) * (PER_C >> SEGMENT_SHIFT))
    }

    /// A_reno(w), of windows from cwnd_epoch.
    fn by_reno(&self, window: Bytes) -> Bytes {
        let slow = self.sum(self.began, window.min(self.prior));
        let fast = self.sum(self.prior.max(self.began), window);
        // alpha is 9/17: 3 (1 - beta) / (1 + beta).
        Bytes::new(u64::try_from(slow * 17 / 9 + fast).unwrap_or(u64::MAX))
    }

    /// The sum of the windows from `from` up to `to`, a segment apart.
    fn sum(&self, from: Bytes, to: Bytes) -> u128 {
        let (mss, from, to) =
            (u128::from(self.mss.get().max(1)), u128::from(from.get()), u128::from(to.get()));
        to.saturating_sub(from) * (to + from).saturating_sub(mss) / (2 * mss)
    }
}

/// 10^27 / C, rounded to a multiple of 2^[`SEGMENT_SHIFT`].
const PER_C: u128 = (2_500_000_000_000_000_000_000_000_000 >> SEGMENT_SHIFT) << SEGMENT_SHIFT;
/// Fraction bits of a window in segments.
const SEGMENT_SHIFT: u32 = 16;
/// Above 2^34 segments the cube root stays as it is: 10^37 nanoseconds cubed, near the end of the
/// integers.
const LARGEST: u128 = 1 << (34 + SEGMENT_SHIFT);

#[cfg(test)]
mod tests {
    use super::super::testing::{MSS, acked, lost, timed_out};
    use super::*;
    use headstart_units::Time;

    /// Curves of windows in segments of 10 000 bytes, so that four decimals are visible.
    fn curves(began: u64, w_max: u64) -> Curves {
        let mss = Bytes::new(10_000);
        let (began, w_max) = (mss * began, mss * w_max);
        Curves { mss, began, w_max, prior: w_max, rtt: Span::from_millis(100) }
    }

    /// CB, Appendix B: "the Reno-friendly curve", with A(w) and D(w) to four decimals.
    #[test]
    fn the_drafts_vector_of_the_reno_friendly_curve_passes() {
        let curves = curves(7, 10);
        let expected =
            [(7, 0, 132_222), (8, 132_222, 151_111), (9, 283_333, 170_000), (10, 453_333, 100_000)];
        let beyond = [(11, 553_333, 110_000), (12, 663_333, 120_000)];
        for (segments, total, step) in expected.into_iter().chain(beyond) {
            let window = curves.mss * segments;
            let (a, next) = (curves.acknowledged(window), curves.acknowledged(window + curves.mss));
            assert_eq!(a, Bytes::new(total), "A({segments})");
            assert!(curves.step(a, next).get().abs_diff(step) <= 1, "D({segments})");
        }
    }

    /// CB, Appendix B: "the parameters being chosen so that K is exactly 10 seconds".
    #[test]
    fn the_drafts_vector_of_the_cubic_curve_passes() {
        let curves = curves(600, 1000);
        assert!(curves.root(curves.mss * 400).abs_diff(10_000_000_000) < 10, "K");
        for (segments, total) in [(600, 0), (950, 50_000), (1000, 100_000), (1050, 150_000), (1400, 200_000)]
        {
            let found = curves.acknowledged(curves.mss * segments).get();
            assert!(found.abs_diff(total * 10_000) <= 100, "A({segments}) = {found}");
        }
    }

    /// The window in segments after `count` acks of `each`.
    fn acks(cuback: &mut Cuback, each: Bytes, count: u64) -> u64 {
        for _ in 0..count {
            cuback.on_ack(&acked(Time::ZERO, each));
        }
        cuback.window.get() / MSS.get()
    }

    /// CB §4.2: at the recorded rate the curve is CUBIC's, which is back at its maximum after
    /// (300 / 0.4)^(1/3) = 9.086 s; "one that has halved its share, half as fast".
    #[test]
    fn at_the_recorded_rate_the_curve_is_cubics_and_at_half_of_it_half_as_fast() {
        let cut = || {
            let mut cuback = Cuback::new(MSS);
            cuback.take_over(&HandOver::avoiding(MSS * 1000));
            let rtt = crate::path::Rtt { smoothed: Span::from_millis(100), ..Default::default() };
            cuback.on_congestion(&Congestion { rtt, ..lost(Time::ZERO, MSS) }, None);
            assert_eq!(cuback.window, MSS * 700);
            cuback
        };
        let at_full = acks(&mut cut(), MSS * 1000, 91);
        assert!((999..=1001).contains(&at_full), "{at_full}");
        let at_half = acks(&mut cut(), MSS * 500, 91);
        let expected = 1000 - 300 / 8;
        assert!(at_half.abs_diff(expected) <= 2, "{at_half}: an eighth of the way is left");
    }

    #[test]
    fn from_a_window_without_a_maximum_it_grows_along_the_convex_part() {
        let mut cuback = Cuback::new(MSS);
        cuback.take_over(&HandOver::avoiding(MSS * 1000));
        // 0.4 x 2^3 segments in two seconds of acks; Reno adds nearly twenty, and is followed.
        let grown = acks(&mut cuback, MSS * 1000, 20);
        assert!((1019..=1020).contains(&grown), "{grown}");
        // 0.4 x 20^3 in twenty.
        let grown = acks(&mut cuback, MSS * 1000, 180);
        assert!(grown.abs_diff(1000 + 3200) <= 5, "{grown}");
    }

    /// CB, Appendix A: "one half of the congestion window per round trip".
    #[test]
    fn it_never_grows_by_more_than_half_of_the_window_in_a_round_trip() {
        let mut cuback = Cuback::new(MSS);
        cuback.take_over(&HandOver::avoiding(MSS * 100));
        let rtt = crate::path::Rtt { smoothed: Span::from_secs(100), ..Default::default() };
        cuback.on_congestion(&Congestion { rtt, ..lost(Time::ZERO, MSS) }, None);
        cuback.on_ack(&acked(Time::ZERO, MSS * 70));
        assert_eq!(cuback.window, MSS * 105);
    }

    #[test]
    fn a_second_cut_below_the_maximum_lowers_it_and_a_timeout_begins_from_one_segment() {
        let mut cuback = Cuback::new(MSS);
        cuback.take_over(&HandOver::avoiding(MSS * 100));
        cuback.on_congestion(&lost(Time::ZERO, MSS), None);
        cuback.on_congestion(&lost(Time::ZERO, MSS), None);
        assert_eq!((cuback.window, cuback.w_max), (MSS * 49, Bytes::new(59_500)));
        cuback.on_timeout(&timed_out(Time::ZERO));
        assert_eq!((cuback.window, cuback.ssthresh), (MSS, Bytes::new(34_300)));
        cuback.on_timeout(&Timeout { consecutive: 2, ..timed_out(Time::ZERO) });
        assert_eq!(cuback.ssthresh, Bytes::new(34_300));
    }

    #[test]
    fn absurd_windows_and_times_do_no_harm() {
        for (window, rtt) in [(1, 0), (1 << 40, 1), (1 << 40, u64::MAX), (2_000, u64::MAX)] {
            let mut cuback = Cuback::new(MSS);
            cuback.take_over(&HandOver::avoiding(Bytes::new(window)));
            let rtt = crate::path::Rtt { smoothed: Span::from_nanos(rtt), ..Default::default() };
            cuback.on_congestion(&Congestion { rtt, ..lost(Time::ZERO, MSS) }, None);
            let before = cuback.window;
            cuback.on_ack(&acked(Time::ZERO, MSS * 1000));
            assert!(cuback.window >= before && cuback.window <= before + MSS * 500);
        }
    }
}
