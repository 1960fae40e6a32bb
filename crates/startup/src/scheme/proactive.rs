//! Slow start, and every packet twice.
//!
//! Source: Proactive of T. Flach et al., "Reducing Web Latency: the Virtue of Gentle Aggression", SIGCOMM 2013,
//! as Halfback §2.2 and §4.1 compare with it: "two copies of every packet", initial window 2.
//!
//! ```text
//!  slow start ---- loss or CE ----> hand over          every packet twice, before and after
//! ```
//!
//! # Deviations
//!
//! - Halfback's account is followed, not Flach et al.: every packet of every flow is doubled.
//! - Copies are not counted against the window, which makes the additional bandwidth the 100 % of Halfback §5.

use super::slow_start::{self, SlowStart};
use super::{Next, Plan, Startup};
use crate::allowance::Allowance;
use crate::event::{Ack, Congestion};
use crate::prior::Prior;
use crate::repair::{self, Repair};

/// What may be tuned: slow start's own, with an initial window of 2 segments (Halfback §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// How the window grows.
    pub slow_start: slow_start::Params,
}

impl Default for Params {
    fn default() -> Self {
        Self { slow_start: slow_start::Params { initial_window: 2, ..slow_start::Params::default() } }
    }
}

/// Proactive TCP.
#[derive(Clone, Copy, Debug)]
pub struct Proactive {
    slow_start: SlowStart,
}

impl Proactive {
    /// Nothing is known until [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self { slow_start: SlowStart::new(params.slow_start) }
    }

    /// Every packet is sent again, right after it was sent.
    #[must_use]
    pub fn repair(&self) -> Repair {
        Repair::Proactive(repair::Proactive::default())
    }
}

impl Startup for Proactive {
    fn establish(&mut self, prior: &Prior) -> Plan {
        self.slow_start.establish(prior)
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) -> Next {
        self.slow_start.on_ack(ack)
    }

    fn on_congestion(&mut self, signal: &Congestion) -> Next {
        self.slow_start.on_congestion(signal)
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        self.slow_start.allowance()
    }

    fn phase(&self) -> &'static str {
        self.slow_start.phase()
    }
}

#[cfg(test)]
mod tests {
    use super::super::steps::{Event, Says, play};
    use super::*;
    use crate::base::testing::{acked, lost};
    use headstart_units::{Bytes, Span, Time};

    const MSS: Bytes = Bytes::new(1000);

    #[test]
    fn two_segments_double_and_each_has_a_copy() {
        let mut start = Proactive::new(Params::default());
        let prior = Prior::bare(Time::ZERO, MSS, Span::from_millis(100), MSS * 141);
        assert_eq!(start.establish(&prior), Plan::burst(MSS * 2));
        assert!(matches!(start.repair(), Repair::Proactive(_)));
        let ack = Event::Ack(acked(Time::ZERO, MSS));
        #[rustfmt::skip]
        let steps = [
            (100, ack, Says::Window(3_000), "slow start"),
            (101, ack, Says::Window(4_000), "twice the initial window"),
            (300, Event::Congestion(lost(Time::ZERO, MSS)), Says::Cut(4_000), "both copies of one packet were lost"),
        ];
        play(&mut start, &steps);
    }
}
