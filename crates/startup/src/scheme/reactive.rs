//! Slow start, and a probe for a lost tail.
//!
//! Source: Reactive of T. Flach et al., "Reducing Web Latency: the Virtue of Gentle Aggression", SIGCOMM 2013,
//! as Halfback §2.2 and §4.1 compare with it: after a probe timeout the last packet is sent again, initial
//! window 2. What it became is the tail loss probe of RFC 8985 §7.
//!
//! ```text
//!  slow start ---- loss or CE ----> hand over          a tail probe, before and after
//! ```
//!
//! # Deviations
//!
//! - The probe is the transport's part and not to be found here: the scheme says that it wants one
//!   ([`super::Scheme::wants_tail_probe`]), and a transport without a probe timer must refuse it.

use super::slow_start::{SlowStart, starts_slowly};

pub use super::slow_start::Beside as Params;

/// Reactive TCP.
#[derive(Clone, Copy, Debug)]
pub struct Reactive {
    slow_start: SlowStart,
}

impl Reactive {
    /// Nothing is known until [`super::Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self { slow_start: SlowStart::new(params.slow_start) }
    }
}

starts_slowly!(Reactive);

#[cfg(test)]
mod tests {
    use super::super::Scheme;
    use super::super::Startup;
    use super::super::steps::{Event, Says, play};
    use super::*;
    use crate::allowance::Plan;
    use crate::base::testing::{acked, lost};
    use crate::prior::Prior;
    use crate::repair::Repair;
    use headstart_units::{Bytes, Span, Time};

    const MSS: Bytes = Bytes::new(1000);

    #[test]
    fn two_segments_double_and_a_probe_watches_the_tail() {
        let mut start = Scheme::Reactive(Reactive::new(Params::default()));
        let prior = Prior::bare(Time::ZERO, MSS, Span::from_millis(100), MSS * 141);
        assert_eq!(start.establish(&prior), Plan::burst(MSS * 2));
        assert!(start.wants_tail_probe());
        assert!(matches!(start.repair(), Repair::Reactive), "nothing is sent again unasked");
        let ack = Event::Ack(acked(Time::ZERO, MSS));
        #[rustfmt::skip]
        let steps = [
            (100, ack, Says::Window(3_000), "slow start"),
            (101, ack, Says::Window(4_000), "twice the initial window"),
            (300, Event::Congestion(lost(Time::ZERO, MSS)), Says::Cut(4_000), "a loss, found by the probe or not"),
        ];
        play(&mut start, &steps);
    }
}
