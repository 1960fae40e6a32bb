//! A kill switch that acts by itself: it stops fast starts if the treatment is worse than control.
//!
//! The arms are compared at the end of each of their connections. Compared are the time of the
//! first answer, among answers of about one size, and the share of the bytes that were lost.
//! Where a [confidence sequence](crate::sequential) shows the treatment to be worse by more than a
//! bound, every later connection runs the control scheme, until [`Rollout::resume_guarded`].
//!
//! The comparison begins anew whenever both arms have 500 connections, so that a path that changes
//! after weeks is seen as soon as one that was bad from the beginning. Without a control arm, that
//! is with a rollout of 100 %, there is nothing to compare with.
//!
//! # Limits
//!
//! A connection counts when it ends. Connections are taken to be independent, though connections of
//! one peer are not: see [`sequential`](crate::sequential).

use std::fmt;
use std::sync::{Arc, Mutex};

use headstart_host::{Exposition, locked};

use crate::gates::{Arm, Rollout};
use crate::metrics::SIZES;
use crate::sequential::{Difference, Moments, Sequence};
use crate::start_report::StartReport;

/// Bounds of a guard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Tolerated excess of the treatment's time of first answers, as a share of the control's. 0.1.
    pub slower: f64,
    /// Tolerated excess of the treatment's share of lost bytes. 0.02.
    pub lossier: f64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { slower: 0.1, lossier: 0.02 }
    }
}

/// Probability that a comparison of two arms that are alike ends in a stop.
const ALPHA: f64 = 0.001;
/// Difference of the logarithms of times that is found soonest: a factor of 1.5.
const TIME_EFFECT: f64 = 0.4;
/// Difference of the loss shares that is found soonest.
const LOSS_EFFECT: f64 = 0.1;
/// Connections in each arm after which the comparison begins anew.
const MOST: u64 = 500;

/// The measure in which the treatment was worse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    /// First answers take longer.
    Slower {
        /// Time of the treatment over the control's.
        ratio: f64,
        /// Lower end of its confidence interval.
        low: f64,
    },
    /// The treatment loses more.
    Lossier {
        /// Share of the bytes lost by the treatment, less the share lost by the control.
        difference: f64,
        /// Lower end of its confidence interval.
        low: f64,
    },
}

impl Stop {
    /// Name of the reason in logs and labels.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Slower { .. } => "slower",
            Self::Lossier { .. } => "lossier",
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slower { ratio, low } => {
                write!(f, "first answers of the treatment take {ratio:.2} times as long as the control's")?;
                write!(f, " (at least {low:.2} times)")
            }
            Self::Lossier { difference, low } => {
                write!(f, "the treatment loses {:.1} points more of its bytes", difference * 100.0)?;
                write!(f, " than the control (at least {:.1})", low * 100.0)
            }
        }
    }
}

/// Treatment and control.
type Pair = [Moments; 2];

#[derive(Debug, Default)]
struct State {
    times: [Pair; SIZES.len() + 1],
    losses: Pair,
    /// Comparisons that ended without a stop.
    ended: u64,
    stop: Option<Stop>,
}

/// Watches the arms of a rollout.
#[derive(Debug)]
pub struct Guard {
    bounds: Bounds,
    rollout: Arc<Rollout>,
    state: Mutex<State>,
}

impl Guard {
    /// A guard that stops `rollout` when a bound is exceeded.
    #[must_use]
    pub fn new(rollout: Arc<Rollout>, bounds: Bounds) -> Self {
        Self { bounds, rollout, state: Mutex::default() }
    }

    /// The reason of the stop, if it has stopped the rollout.
    #[must_use]
    pub fn stop(&self) -> Option<Stop> {
        locked(&self.state).stop
    }

    /// A connection ended. Returns the reason when this one makes it stop the rollout.
    pub fn observe(&self, report: &StartReport) -> Option<Stop> {
        self.observe_connection(report.arm, report.answer_class(), report.loss_share())
    }

    /// A connection ended whose report has another form: as [`StartReport::answer_class`] and
    /// [`StartReport::loss_share`].
    pub fn observe_connection(
        &self,
        arm: Arm,
        answer: Option<(usize, f64)>,
        loss_share: Option<f64>,
    ) -> Option<Stop> {
        let arm = match arm {
            Arm::Treatment => 0,
            Arm::Control => 1,
            _ => return None,
        };
        let mut state = locked(&self.state);
        if let Some((size, time)) = answer {
            state.times[size][arm].add(time);
        }
        if let Some(share) = loss_share {
            state.losses[arm].add(share);
        }
        if state.stop.is_some() {
            return None;
        }
        let stop = self.judge(&state);
        if stop.is_some() {
            state.stop = stop;
            self.rollout.stop_guarded();
        } else if state.losses.iter().all(|arm| arm.count >= MOST) {
            *state = State { ended: state.ended + 1, ..State::default() };
        }
        stop
    }

    fn judge(&self, state: &State) -> Option<Stop> {
        let times = Difference::stratified(state.times).and_then(|found| {
            let [low, _] = Sequence::new(ALPHA / 2.0, TIME_EFFECT).interval(&found);
            let is_worse = low > self.bounds.slower.ln_1p();
            is_worse.then(|| Stop::Slower { ratio: found.value.exp(), low: low.exp() })
        });
        times.or_else(|| {
            let found = Difference::stratified([state.losses])?;
            let [low, _] = Sequence::new(ALPHA / 2.0, LOSS_EFFECT).interval(&found);
            (low > self.bounds.lossier).then_some(Stop::Lossier { difference: found.value, low })
        })
    }

    /// Counters of the guard, in Prometheus' text format.
    #[must_use]
    pub fn render(&self) -> String {
        let state = locked(&self.state);
        let mut metrics = Exposition::default();
        metrics.family("guard_stopped", "gauge", "Fast starts were stopped by the guard, by reason.");
        for reason in ["slower", "lossier"] {
            let is_stopped = u8::from(state.stop.is_some_and(|stop| stop.name() == reason));
            metrics.sample(&[("reason", reason)], is_stopped);
        }
        let help = "Comparisons of the arms that ended without a stop.";
        metrics.family("guard_comparisons_total", "counter", help).sample(&[], state.ended);
        metrics.take()
    }
}

#[cfg(test)]
mod tests {
    use headstart_startup::sending::{FirstAnswer, Tally};
    use headstart_units::{Bytes, Span, Time};

    use super::*;

    fn report(arm: Arm, millis: u64, lost: u64) -> StartReport {
        let tally = Tally { sent: Bytes::new(100_000), lost: Bytes::new(lost), ..Tally::default() };
        let first_answer =
            FirstAnswer::of(Time::from_millis(7), Span::from_millis(millis), Bytes::new(100_000));
        StartReport { arm, tally, first_answer, ..StartReport::default() }
    }

    /// Passes connections of these times and losses to the guard in turn; the number of the stop.
    fn stopped_after(guard: &Guard, treatment: (u64, u64), control: (u64, u64)) -> Option<u64> {
        (0..3_000).find(|number| {
            let (arm, (millis, lost)) = match number % 2 {
                0 => (Arm::Treatment, treatment),
                _ => (Arm::Control, control),
            };
            // Times vary by half.
            let millis = millis * (100 + number * 37 % 50) / 100;
            guard.observe(&report(arm, millis, lost * (number % 3))).is_some()
        })
    }

    #[test]
    fn it_stops_the_rollout_once_the_treatment_is_worse() {
        for (treatment, control, reason) in
            [((300, 0), (150, 0), "slower"), ((150, 20_000), (150, 0), "lossier")]
        {
            let rollout = Arc::new(Rollout::new(50.0));
            let guard = Guard::new(Arc::clone(&rollout), Bounds::default());
            let after = stopped_after(&guard, treatment, control).expect("it stops");
            assert!(after < 200, "{reason}: {after} connections");
            assert_eq!(guard.stop().map(|stop| stop.name()), Some(reason));
            assert_eq!(rollout.draw(true, 0), Arm::Stopped);
            rollout.resume();
            assert_eq!(rollout.draw(true, 0), Arm::Stopped, "another switch changes nothing");
            let expected = format!("headstart_guard_stopped{{reason=\"{reason}\"}} 1\n");
            assert!(guard.render().contains(&expected), "{}", guard.render());
            assert_eq!(guard.observe(&report(Arm::Treatment, 900, 0)), None, "once");
            rollout.resume_guarded();
            assert_eq!(rollout.draw(true, 0), Arm::Treatment);
        }
    }

    /// Treatments worse by half of a bound are significantly worse.
    #[test]
    fn it_does_not_stop_a_treatment_that_is_better_alike_or_worse_within_the_bounds() {
        for (treatment, control) in [
            ((150, 0), (300, 0)),
            ((150, 20_000), (150, 20_000)),
            ((0, 0), (0, 0)),
            ((315, 0), (300, 0)),
            ((150, 1_000), (150, 0)),
        ] {
            let rollout = Arc::new(Rollout::new(50.0));
            let guard = Guard::new(Arc::clone(&rollout), Bounds::default());
            assert_eq!(stopped_after(&guard, treatment, control), None);
            assert_eq!(rollout.draw(true, 0), Arm::Treatment);
            assert!(guard.render().contains("headstart_guard_comparisons_total 3\n"), "{}", guard.render());
        }
    }

    /// 10 000 connections that were better do not outweigh those that are worse now.
    #[test]
    fn a_change_is_seen_after_a_long_good_time() {
        let rollout = Arc::new(Rollout::new(50.0));
        let guard = Guard::new(Arc::clone(&rollout), Bounds::default());
        for _ in 0..4 {
            assert_eq!(stopped_after(&guard, (100, 0), (300, 0)), None);
        }
        assert!(stopped_after(&guard, (900, 0), (300, 0)).expect("it stops") < 1_200);
    }

    #[test]
    fn other_arms_do_not_count() {
        let guard = Guard::new(Arc::default(), Bounds::default());
        // A treatment like this would be worse than the control arm.
        for arm in [Arm::Ineligible, Arm::Stopped, Arm::Undecided] {
            for _ in 0..500 {
                assert_eq!(guard.observe(&report(arm, 9_000, 90_000)), None);
                assert_eq!(guard.observe(&report(Arm::Control, 150, 0)), None);
            }
        }
    }
}
