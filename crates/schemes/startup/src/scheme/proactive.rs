//! Slow start with every packet sent twice.
//!
//! Source: Proactive of T. Flach et al., "Reducing Web Latency: the Virtue of Gentle Aggression",
//! SIGCOMM 2013, as Halfback §2.2 and §4.1 compare with it: "two copies of every packet", initial
//! window 2.
//!
//! ```text
//!  slow start ---- loss or CE ----> hand over          every packet twice, before and after
//! ```
//!
//! # Deviations
//!
//! - Halfback's account is followed, not Flach et al.: every packet of every flow is doubled.
//! - Copies are not counted against the window: hence the additional 100 % of Halfback §5.

use super::Startup;
use super::slow_start::{SlowStart, as_slow_start};
use crate::about::{About, Needs};
use crate::allowance::FlightPlan;
use crate::prior::Prior;
use crate::repair::{self, Repair};

/// The scheme's row of the catalogue.
pub const ABOUT: About = About::new("proactive", Needs::Nothing, "slow start from 2, every packet twice");

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// Initial window in segments.
        initial_window: u64 = 2, in 1..=10_000, from "Halfback §4.1";
    }
}

/// Proactive TCP.
#[derive(Clone, Copy, Debug)]
pub struct Proactive {
    pub(super) params: Params,
    slow_start: SlowStart,
}

impl Proactive {
    /// [`Proactive`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self { params, slow_start: SlowStart::from_segments(params.initial_window) }
    }
}

impl Startup for Proactive {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.slow_start.establish(prior)
    }

    as_slow_start!();

    /// Every packet is duplicated right after it was sent.
    fn repair(&self) -> Repair {
        Repair::Proactive(repair::Proactive::default())
    }
}

#[cfg(test)]
mod tests {
    use super::super::steps::{Event, Expected, play};
    use super::*;
    use crate::base::testing::{MSS, acked, lost};
    use headstart_units::{Span, Time};

    #[test]
    fn two_segments_double_and_each_has_a_copy() {
        let mut start = Proactive::new(Params::default());
        let prior = Prior::bare(Time::ZERO, MSS, Span::from_millis(100), MSS * 141);
        assert_eq!(start.establish(&prior), FlightPlan::burst(MSS * 2));
        assert!(matches!(start.repair(), Repair::Proactive(_)));
        let ack = Event::Ack(acked(Time::ZERO, MSS));
        #[rustfmt::skip]
        let steps = [
            (100, ack, Expected::Window(3_000), "slow start"),
            (101, ack, Expected::Window(4_000), "twice the initial window"),
            (300, Event::Congestion(lost(Time::ZERO, MSS)), Expected::Cut(4_000), "both copies of one packet were lost"),
        ];
        play(&mut start, &steps);
    }
}
