//! Slow start, and a probe for a lost tail.
//!
//! Source: Reactive of T. Flach et al., "Reducing Web Latency: the Virtue of Gentle Aggression",
//! SIGCOMM 2013, as Halfback §2.2 and §4.1 compare with it. After a probe timeout the last packet
//! is sent again; the initial window is 2. Its successor is the tail loss probe of RFC 8985 §7.
//!
//! ```text
//!  slow start ---- loss or CE ----> hand over          a tail probe, before and after
//! ```
//!
//! # Deviations
//!
//! - The probe is implemented by the transport: the scheme requires one
//!   ([`Requirements::tail_probe`]), and a transport without a probe timer must refuse it.

use super::slow_start::{SlowStart, as_slow_start};
use super::{Requirements, Startup};
use crate::about::{About, Needs};
use crate::allowance::FlightPlan;
use crate::prior::Prior;

/// The scheme's row of the catalogue.
pub const ABOUT: About =
    About::new("reactive", Needs::Nothing, "slow start from 2, and a probe for a lost tail")
        .not_over_tcp("the kernel's tail loss probe is the same, and always on");

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// Initial window in segments.
        initial_window: u64 = 2, in 1..=10_000, from "Halfback §4.1";
    }
}

/// Reactive TCP.
#[derive(Clone, Copy, Debug)]
pub struct Reactive {
    pub(super) params: Params,
    slow_start: SlowStart,
}

impl Reactive {
    /// [`Reactive`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self { params, slow_start: SlowStart::from_segments(params.initial_window) }
    }
}

impl Startup for Reactive {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.slow_start.establish(prior)
    }

    as_slow_start!();

    fn requirements(&self) -> Requirements {
        Requirements { tail_probe: true, ..Requirements::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scheme;
    use super::super::steps::{Event, Expected, play};
    use super::*;
    use crate::base::testing::{MSS, acked, lost};
    use crate::repair::Repair;
    use headstart_units::{Span, Time};

    #[test]
    fn two_segments_double_and_the_tail_is_probed() {
        let mut start = Scheme::Reactive(Reactive::new(Params::default()));
        let prior = Prior::bare(Time::ZERO, MSS, Span::from_millis(100), MSS * 141);
        assert_eq!(start.establish(&prior), FlightPlan::burst(MSS * 2));
        assert!(start.requirements().tail_probe);
        assert!(matches!(start.repair(), Repair::Reactive), "nothing is sent again unasked");
        let ack = Event::Ack(acked(Time::ZERO, MSS));
        #[rustfmt::skip]
        let steps = [
            (100, ack, Expected::Window(3_000), "slow start"),
            (101, ack, Expected::Window(4_000), "twice the initial window"),
            (300, Event::Congestion(lost(Time::ZERO, MSS)), Expected::Cut(4_000), "a loss, found by the probe or not"),
        ];
        play(&mut start, &steps);
    }
}
