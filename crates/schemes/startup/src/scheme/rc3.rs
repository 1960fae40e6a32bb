//! Slow start, and at once the rest of the data at priorities below all other traffic.
//!
//! Source (RC3 below): R. Mittal, J. Sherry, S. Ratnasamy, S. Shenker, "Recursively Cautious
//! Congestion Control", NSDI 2014. The paper was not at hand: its abstract and its authors' code
//! were. The abstract promises over 40 % less completion time on average, and over 70 % between
//! 100 kB and 3 MB.
//!
//! ```text
//!  slow start ---- loss or CE ----> hand over          the data's end: once, before its turn
//! ```
//!
//! As priorities decide who waits, it can harm nobody where every queue has them (`--queue
//! priority`). Where no queue has them, it is one burst of the whole flow.
//!
//! # Deviations
//!
//! - As listed for [`crate::repair::early`].
//! - RC3 sends acknowledgements of early data at the priority of that data; here all acks have the
//!   usual one.
//! - The receiver's window holds for early data as well: it begins where that window ends.

use super::Startup;
use super::slow_start::{SlowStart, as_slow_start};
use crate::about::{About, Needs};
use crate::allowance::FlightPlan;
use crate::prior::Prior;
use crate::repair::{Early, Repair};

/// The scheme's row of the catalogue.
pub const ABOUT: About = About {
    is_compared: false,
    not_over_udp: Some("the rest of the data leaves before its turn, which no stack's sender can do"),
    ..About::new("rc3", Needs::Nothing, "slow start, and the data's end at low priority (RC3)")
};

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// Initial window in segments.
        initial_window: u64 = 10, in 1..=10_000, from "RFC 6928 §2";
        /// Segments of the priority next to other traffic's; each further one has ten times
        /// as many.
        first: u64 = 40, in 1..=10_000, from "RC3, tcp-rc3-sack.cc (four slots)";
    }
}

/// RC3.
#[derive(Clone, Copy, Debug)]
pub struct Rc3 {
    pub(super) params: Params,
    slow_start: SlowStart,
}

impl Rc3 {
    /// [`Rc3`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self { params, slow_start: SlowStart::from_segments(params.initial_window) }
    }
}

impl Startup for Rc3 {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.slow_start.establish(prior)
    }

    as_slow_start!();

    fn repair(&self) -> Repair {
        Repair::Early(Early::new(self.params.first))
    }
}

#[cfg(test)]
mod tests {
    use super::super::steps::{Event, Expected, play};
    use super::*;
    use crate::base::testing::{MSS, acked, lost};
    use headstart_units::{Span, Time};

    #[test]
    fn the_window_is_slow_starts_whatever_leaves_early() {
        let mut start = Rc3::new(Params { initial_window: 2, ..Params::default() });
        let prior = Prior::bare(Time::ZERO, MSS, Span::from_millis(100), MSS * 141);
        assert_eq!(start.establish(&prior), FlightPlan::burst(MSS * 2));
        assert!(matches!(start.repair(), Repair::Early(_)));
        #[rustfmt::skip]
        let steps = [
            (100, Event::Ack(acked(Time::ZERO, MSS)), Expected::Window(3_000), "slow start"),
            (300, Event::Congestion(lost(Time::ZERO, MSS)), Expected::Cut(3_000), "as any other"),
        ];
        play(&mut start, &steps);
    }
}
