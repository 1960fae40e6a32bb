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

use super::slow_start::{SlowStart, starts_slowly};
use crate::repair::{self, Repair};

pub use super::slow_start::Beside as Params;

/// Proactive TCP.
#[derive(Clone, Copy, Debug)]
pub struct Proactive {
    slow_start: SlowStart,
}

impl Proactive {
    /// Nothing is known until [`super::Startup::establish`].
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

starts_slowly!(Proactive);

#[cfg(test)]
mod tests {
    use super::super::Startup;
    use super::super::steps::{Event, Says, play};
    use super::*;
    use crate::allowance::Plan;
    use crate::base::testing::{acked, lost};
    use crate::prior::Prior;
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
