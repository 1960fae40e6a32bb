//! Reduce the window in proportion to the share of congestion marks, and add a segment per RTT.
//!
//! Source (Prague below): K. De Schepper, O. Tilmans, B. Briscoe, V. Goel, "Prague Congestion
//! Control", draft-briscoe-iccrg-prague-congestion-control-04, July 2024, which takes the average
//! of marks from DCTCP (RFC 8257). Its data is L4S traffic, ECT(1) (Prague §2.2, RFC 9331 §4.1),
//! whether other senders use ECN or not. It has a start-up of its own and needs no base controller:
//! it never hands over.
//!
//! ```text
//!  slow start ---- first mark: W / 2 ----> avoidance --+ marks: W (1 - alpha / 2), once a round
//!     ^     `----- loss: W / 2 ----------->   |   ^    | loss: W / 2
//!     |                                       |   +----+ unmarked acks: a segment a round
//!     +------------- timeout -----------------+
//! ```
//!
//! With a share p of marks the window of the steady state is 2 (1 - p) / p segments. It halves when
//! marks double, so there are about two marks in a round trip at any rate.
//!
//! # Deviations
//!
//! - Marks are counted in packets, modulo 256, on every ack (AccECN, RFC 9768, has three bits for
//!   it in the header) and converted to bytes as full segments.
//! - A round in which the average is computed, or further cuts are suppressed, is a smoothed RTT by
//!   the clock, at least the virtual RTT once that counts (Prague §2.4.4). RFC 8257 counts it in
//!   sequence numbers.
//! - The initial window is paced as slow start is, at twice the window per RTT, and avoidance at
//!   the window per RTT. Prague §2.5.1 paces everything and leaves the first round open.
//! - The window is two segments at least. Prague §2.4.2 recommends less on short paths.
//! - It does not detect queues that mark ECT(1) as if it were ECT(0) (RFC 9331 §4.3, item 3).
//!   With Classic traffic in one queue that marks, it takes more than its share.
//! - Loss detection is the transport's. Prague §2.3.3 requires a time-based one, such as RACK.

use headstart_units::{Bytes, Rate, Span, Time};

use super::{Requirements, Startup};
use crate::about::{About, Needs};
use crate::allowance::{Allowance, FlightPlan, Next};
use crate::event::{Ack, Congestion, Signal, Timeout};
use crate::prior::Prior;

/// The scheme's row of the catalogue.
pub const ABOUT: About = About {
    is_compared: false,
    not_over_udp: Some(
        "its stack sends ECT(0) and tells a congestion controller that there were marks, not how many",
    ),
    ..About::new("prague", Needs::Nothing, "Prague: scalable, for L4S queues")
};

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// Initial window in segments.
        initial_window: u64 = 10, in 1..=10_000, from "RFC 6928 §2";
        /// Virtual RTT: shorter RTTs count as this when the window grows.
        virtual_rtt: Span = Span::from_millis(25), in Span::ZERO..=Span::from_secs(60), from "Prague §2.4.4";
        /// Round trips after which the virtual RTT applies.
        independent_after: u64 = 500, in 0..=u64::MAX, from "Prague §2.4.4";
    }
}

/// One, in the fixed point of alpha.
const ONE: u64 = 1 << 32;
/// The gain of the average, 2^-4 (Prague §2.3.2, RFC 8257 §3.3).
const GAIN_SHIFT: u32 = 4;
const MINIMUM_SEGMENTS: u64 = 2;
/// Binary places of a fraction of a byte of window.
const PLACES: u32 = 16;

/// Prague.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prague {
    pub(super) params: Params,
    mss: Bytes,
    window: Bytes,
    ssthresh: Bytes,
    srtt: Span,
    /// The average share of marks in units of [`ONE`]; `None` before the first mark.
    alpha: Option<u64>,
    /// Bytes acknowledged, and marked, since the average was last computed.
    acked: Bytes,
    marked: Bytes,
    averaged_at: Time,
    /// Time of the last cut by marks, and the window before it.
    cut: Option<(Time, Bytes)>,
    /// Fraction of a byte of growth, in 2^-16 bytes.
    carry: u64,
    /// Rounds since establishment, by the clock.
    rounds: u64,
    round_at: Time,
}

impl Prague {
    /// [`Prague`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self { params, ssthresh: Bytes::MAX, ..Self::default() }
    }

    /// Prague §2.4.4: R_virt, or the RTT itself while the dependence on it is not reduced yet.
    fn virtual_rtt(&self) -> Span {
        if self.rounds < self.params.independent_after {
            self.srtt
        } else {
            self.srtt.max(self.params.virtual_rtt)
        }
    }

    /// Prague §2.3.2: the average of marks, once a round.
    fn average(&mut self, ack: &Ack) {
        if self.alpha.is_none() {
            if ack.marked.is_zero() {
                return;
            }
            self.alpha = Some(ONE);
            self.averaged_at = ack.now;
        }
        self.acked += ack.newly_acked;
        self.marked += ack.marked.min(ack.newly_acked);
        if ack.now.since(self.averaged_at) < self.virtual_rtt() {
            return;
        }
        let share = u128::from(self.marked.get()) * u128::from(ONE) / u128::from(self.acked.get().max(1));
        if let Some(alpha) = &mut self.alpha {
            *alpha = *alpha - (*alpha >> GAIN_SHIFT) + (share as u64 >> GAIN_SHIFT);
        }
        (self.acked, self.marked) = (Bytes::ZERO, Bytes::ZERO);
        self.averaged_at = ack.now;
    }

    /// Prague §2.4.2: a cut by half of the average, then none for a round.
    fn cut(&mut self, now: Time) {
        if self.cut.is_some_and(|(at, _)| now.since(at) < self.virtual_rtt()) {
            return;
        }
        let alpha = self.alpha.unwrap_or(ONE);
        self.cut = Some((now, self.window));
        let by = (u128::from(self.window.get()) * u128::from(alpha) / u128::from(2 * ONE)) as u64;
        self.set_threshold(self.window.saturating_sub(Bytes::new(by)));
    }

    /// Congestion avoidance from `window`.
    fn set_threshold(&mut self, window: Bytes) {
        self.window = window.max(self.mss * MINIMUM_SEGMENTS);
        self.ssthresh = self.window;
    }

    /// Prague §2.4.3: a segment for each window of unmarked bytes, also in the round after a cut.
    /// Prague §2.4.4: less by (R / R_virt)^2 where the RTT is shorter than the virtual one.
    fn grow(&mut self, unmarked: Bytes) {
        let whole = 1_u128 << PLACES;
        let virtual_rtt = self.virtual_rtt().as_nanos().max(1);
        let ratio = (u128::from(self.srtt.as_nanos()) * whole / u128::from(virtual_rtt)).min(whole);
        let window = u128::from(self.window.get().max(1));
        let bytes = u128::from(unmarked.get().min(self.window.get())) * u128::from(self.mss.get());
        let more = u128::from(self.carry) + bytes * (ratio * ratio / whole) / window;
        self.carry = (more % whole) as u64;
        self.window += Bytes::new((more / whole) as u64);
    }
}

impl Startup for Prague {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.mss = prior.mss;
        self.window = prior.mss * self.params.initial_window.max(MINIMUM_SEGMENTS);
        self.srtt = prior.handshake_rtt;
        self.round_at = prior.now;
        let allowance = self.allowance();
        let burst = if allowance.pace.is_some() { prior.mss } else { self.window };
        FlightPlan { burst, flight: self.window, allowance }
    }

    fn on_ack(&mut self, ack: &Ack) -> Next {
        self.srtt = ack.rtt.smoothed;
        if ack.now.since(self.round_at) >= self.srtt {
            self.rounds = self.rounds.saturating_add(1);
            self.round_at = ack.now;
        }
        self.average(ack);
        if !ack.marked.is_zero() {
            self.cut(ack.now);
        }
        if ack.is_window_limited && !ack.in_recovery {
            let unmarked = ack.newly_acked.saturating_sub(ack.marked);
            if self.window < self.ssthresh {
                self.window = (self.window + unmarked).min(self.ssthresh);
            } else {
                self.grow(unmarked);
            }
        }
        Next::Stay
    }

    /// Prague §2.4.1: as Reno, less the cut by marks in the same round. Marks are handled when they
    /// are counted.
    fn on_congestion(&mut self, signal: &Congestion) -> Next {
        if signal.signal == Signal::Loss && signal.opens_episode {
            let recent = self.cut.filter(|(at, _)| signal.now.since(*at) < self.virtual_rtt());
            let before = recent.map_or(self.window, |(_, before)| before);
            self.cut = None;
            self.set_threshold(self.window.min(before / 2));
        }
        Next::Stay
    }

    /// RFC 5681 §3.1.
    fn on_timeout(&mut self, timeout: &Timeout) -> Next {
        if timeout.consecutive == 1 {
            self.set_threshold(self.window / 2);
        }
        self.window = self.mss;
        self.cut = None;
        Next::Stay
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        let gain = if self.is_slow_start() { 2 } else { 1 };
        let pace = (!self.srtt.is_zero()).then(|| ((self.window * gain) / self.srtt).max(MIN_PACE));
        Allowance { window: self.window, pace }
    }

    fn is_slow_start(&self) -> bool {
        self.window < self.ssthresh
    }

    fn phase(&self) -> &'static str {
        if self.is_slow_start() { "slow start" } else { "avoidance" }
    }

    fn requirements(&self) -> Requirements {
        Requirements { l4s: true, ..Requirements::default() }
    }
}

/// Least pace: at zero the pacer would never send again.
const MIN_PACE: Rate = Rate::from_bytes_per_sec(1);

#[cfg(test)]
mod tests {
    use super::super::timeline::{MSS, apply, loss, timeout, withstand_extremes};
    use super::*;
    use crate::base::testing::acked;
    use crate::history::testing::{absurd_priors, prior_with};

    /// An ack of `segments` at `at` milliseconds of which `marked` had a mark.
    fn ack(at: u64, segments: u64, marked: u64) -> Ack {
        Ack { marked: MSS * marked, ..acked(Time::from_millis(at), MSS * segments) }
    }

    fn established(params: Params) -> Prague {
        let mut prague = Prague::new(params);
        let plan = prague.establish(&prior_with(1, 1));
        assert_eq!((plan.burst, plan.flight), (MSS, MSS * 10));
        prague
    }

    fn at_forty() -> Prague {
        let mut prague = established(Params::default());
        prague.set_threshold(MSS * 40);
        prague.alpha = Some(ONE / 4);
        prague
    }

    #[test]
    fn slow_start_doubles_until_the_first_mark_which_halves() {
        let mut prague = established(Params::default());
        #[rustfmt::skip]
        let steps = [
            // ms   acked marked  window  pace     why
            (7_100,   10,    0,  20_000, 400_000, "doubled; twice the window in 100 ms"),
            (7_200,   20,    0,  40_000, 800_000, "again"),
            (7_300,    1,    1,  20_000, 200_000, "the first mark: alpha is one"),
            (7_310,    1,    1,  20_000, 200_000, "not again in this round, and no growth for what was marked"),
            (7_320,   10,    0,  20_500, 205_000, "half a window of unmarked bytes: half a segment"),
        ];
        for (row, (at, segments, marked, window, pace, why)) in steps.into_iter().enumerate() {
            let _ = prague.on_ack(&ack(at, segments, marked));
            let Allowance { window: found, pace: paced } = prague.allowance();
            assert_eq!(found, Bytes::new(window), "row {row}: {why}");
            assert_eq!(paced, Some(Rate::from_bytes_per_sec(pace)), "row {row}: {why}");
        }
    }

    /// alpha = 15/16 alpha + 1/16 share (RFC 8257 §3.3), each 100 ms.
    #[test]
    fn the_average_moves_by_a_sixteenth_a_round() {
        let mut prague = at_forty();
        prague.averaged_at = Time::from_millis(1000);
        let mut expected = 0.25_f64;
        for (round, (acked, marked)) in [(40, 0), (40, 10), (20, 20), (40, 1)].into_iter().enumerate() {
            let at = 1000 + 100 * (round as u64 + 1);
            prague.average(&ack(at - 50, acked / 2, 0));
            prague.average(&ack(at, acked / 2, marked.min(acked / 2)));
            expected += (marked.min(acked / 2) as f64 / acked as f64 - expected) / 16.0;
            let found = prague.alpha.expect("marked before") as f64 / ONE as f64;
            assert!((found - expected).abs() < 1e-8, "round {round}: {found}, {expected} expected");
        }
    }

    #[test]
    fn a_cut_is_half_of_the_average_and_comes_once_a_round() {
        let mut prague = at_forty();
        for (at, window) in [(1000, 35_000), (1050, 35_000), (1099, 35_000), (1100, 30_625)] {
            prague.cut(Time::from_millis(at));
            assert_eq!(prague.window, Bytes::new(window), "{at} ms: 1 - 1/8 of it");
        }
    }

    #[test]
    fn a_loss_halves_what_there_was_before_marks_cut_it_in_the_same_round() {
        for (at, window) in [(1050, 20_000), (1200, 17_500)] {
            let mut prague = at_forty();
            prague.cut(Time::from_millis(1000));
            apply(&mut prague, loss(at, 1, 30));
            assert_eq!(prague.window, Bytes::new(window), "{at} ms");
        }
    }

    #[test]
    fn a_timeout_starts_over_towards_half() {
        let mut prague = at_forty();
        apply(&mut prague, timeout(1000));
        assert_eq!((prague.window, prague.ssthresh), (MSS, MSS * 20));
        assert_eq!(prague.phase(), "slow start");
        for _ in 0..19 {
            let _ = prague.on_ack(&ack(1500, 1, 0));
        }
        assert_eq!((prague.window, prague.phase()), (MSS * 20, "avoidance"));
    }

    /// Rounds of 0.1 s in which every n-th segment has a mark: 2 (1 - p) / p segments.
    #[test]
    fn a_steady_share_of_marks_gives_the_window_of_the_formula() {
        for every in [5, 10, 20, 40] {
            let mut prague = established(Params::default());
            let (mut count, mut at, mut sum, mut samples) = (0_u64, 10_000, 0, 0);
            for round in 0..3000 {
                let window = prague.window.get() / MSS.get();
                for n in 0..window {
                    count += 1;
                    let _ =
                        prague.on_ack(&ack(at + 100 * n / window, 1, u64::from(count.is_multiple_of(every))));
                }
                at += 100;
                if round >= 1000 {
                    (sum, samples) = (sum + prague.window.get(), samples + 1);
                }
            }
            let mean = sum as f64 / samples as f64 / MSS.get() as f64;
            let p = 1.0 / every as f64;
            let expected = 2.0 * (1.0 - p) / p;
            assert!((mean / expected - 1.0).abs() < 0.15, "1 in {every}: {mean}, {expected} expected");
        }
    }

    /// Over a second of unmarked acks: with 100 ms a segment in each of ten rounds. With 5 ms, once
    /// it is independent, (5/25)^2 in each of 200, so the rate grows as fast as with 25 ms.
    #[test]
    fn short_round_trips_grow_as_if_they_took_25_ms() {
        for (rtt, independent_after, segments) in
            [(100, 500, 10.0), (5, 500, 200.0), (5, 0, 8.0), (25, 0, 40.0)]
        {
            let mut prague = established(Params { independent_after, ..Params::default() });
            prague.set_threshold(MSS * 1000);
            for round in 0..1000 / rtt {
                let base = ack(7_000 + rtt * round, 100, 0);
                let rtt = crate::path::Rtt { smoothed: Span::from_millis(rtt), ..base.rtt };
                for _ in 0..10 {
                    let _ = prague.on_ack(&Ack { rtt, ..base });
                }
            }
            let grown = (prague.window.get() as f64 - 1e6) / 1e3;
            let expected = segments * (1.0 - segments / 3000.0);
            assert!((grown / expected - 1.0).abs() < 0.05, "{rtt} ms: {grown} segments, {expected} expected");
        }
    }

    #[test]
    fn absurd_numbers_neither_panic_nor_stop_it() {
        withstand_extremes(&absurd_priors(), 1, || Prague::new(Params::default()));
        let extreme = Params { virtual_rtt: Span::from_secs(60), independent_after: 0, ..Params::default() };
        withstand_extremes(&absurd_priors(), 1, || Prague::new(extreme));
    }
}
