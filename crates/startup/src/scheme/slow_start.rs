//! Begin with an initial window in one burst and double it every round trip.
//!
//! Source: RFC 5681 §3.1, RFC 6928 (initial window 10, *Initial-Start* in the fast-startup
//! comparison), RFC 9406 (HyStart++), draft-chung-ccwg-search-09 (SEARCH). Windows of 32 and 64 are
//! used by content networks (WiseStart §4.1).
//!
//! ```text
//!  slow start ---- loss or CE, or an exit of [`crate::growth`] ----> hand over
//! ```
//!
//! # Deviations
//!
//! - RFC 5681 §3.1 begins with one segment if the SYN was lost. Linux does so only after two
//!   losses, ns-3 never; here never, though the prior reports the lost SYN.
//! - RFC 3742's limited slow start is not implemented: no source compares with it.

use headstart_units::Bytes;

use super::{Requirements, Startup};
use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::catalogue::{About, Native, Needs, Preset};
use crate::event::{Ack, Congestion};
use crate::growth::{Decision, Exit, Growth};
use crate::prior::Prior;

/// Its row of the catalogue; the windows of the papers have names.
pub const ABOUT: About = About {
    also: &["initial-start", "tcp-10"],
    is_compared: false,
    presets: &[
        named(
            "iw2",
            "slow-start(initial-window=2)",
            "slow start from 2 segments (TCP in the Halfback paper)",
        ),
        named(
            "iw3",
            "slow-start(initial-window=3)",
            "slow start from 3 segments (TCP in the Quick-Start paper)",
        ),
        named("iw10", "slow-start", "slow start from 10 segments (RFC 6928; TCP-10, Initial-Start)"),
        named(
            "iw10-hystart",
            "slow-start(exit=hystart)",
            "slow start from 10 segments with HyStart++ (RFC 9406)",
        ),
        named(
            "iw10-search",
            "slow-start(exit=search)",
            "slow start from 10 segments until deliveries fall behind (SEARCH)",
        ),
        named("iw32", "slow-start(initial-window=32)", "slow start from 32 segments (Cubic32)"),
        named(
            "iw32-paced",
            "google-quic(leaves-on-delay=off)",
            "Google QUIC's: 10 at once, 22 over half an RTT (Blitzstart's baseline)",
        ),
        named("iw64", "slow-start(initial-window=64)", "slow start from 64 segments (Cubic64)"),
    ],
    native: Some(Native::SlowStart),
    ..About::new("slow-start", Needs::Nothing, "slow start")
};

const fn named(name: &'static str, text: &'static str, summary: &'static str) -> Preset {
    Preset { name, text, summary }
}

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// Initial window in segments.
        initial_window: u64 = 10, in 1..=10_000, from "RFC 6928 §2";
        /// End of slow start beside congestion.
        exit: Exit = Exit::Loss, from "the papers' baselines leave it on loss";
    }
}

/// Slow start.
#[derive(Clone, Copy, Debug)]
pub struct SlowStart {
    pub(super) params: Params,
    growth: Growth,
    window: Bytes,
}

/// The methods of a scheme whose field `slow_start` decides.
macro_rules! as_slow_start {
    () => {
        #[inline]
        fn on_ack(&mut self, ack: &$crate::event::Ack) -> $crate::allowance::Next {
            self.slow_start.on_ack(ack)
        }

        fn on_congestion(&mut self, signal: &$crate::event::Congestion) -> $crate::allowance::Next {
            self.slow_start.on_congestion(signal)
        }

        #[inline]
        fn allowance(&self) -> $crate::allowance::Allowance {
            self.slow_start.allowance()
        }

        fn phase(&self) -> &'static str {
            self.slow_start.phase()
        }
    };
}
pub(super) use as_slow_start;

impl SlowStart {
    /// From a window of so many segments, with the other defaults.
    pub(super) fn from_segments(initial_window: u64) -> Self {
        Self::new(Params { initial_window, ..Params::default() })
    }

    /// Establishes it with another rule of growth.
    pub(super) fn establish_with(&mut self, growth: Growth, prior: &Prior) -> FlightPlan {
        self.growth = growth;
        self.establish(prior)
    }

    /// A scheme before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self { params, growth: Growth::new(params.exit), window: Bytes::ZERO }
    }
}

impl Startup for SlowStart {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.window = prior.mss * self.params.initial_window;
        FlightPlan::burst(self.window)
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) -> Next {
        match self.growth.on_ack(&mut self.window, ack) {
            Decision::Continue => Next::Stay,
            Decision::Exit => Next::HandOver(HandOver::avoiding(self.window)),
        }
    }

    fn on_congestion(&mut self, _: &Congestion) -> Next {
        Next::HandOver(HandOver::to_be_cut(self.window))
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        Allowance::window(self.window)
    }

    fn phase(&self) -> &'static str {
        self.growth.phase()
    }

    fn requirements(&self) -> Requirements {
        Requirements { initial_segments: Some(self.params.initial_window), ..Requirements::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::{MSS, acked, lost};
    use headstart_units::{Span, Time};

    fn prior() -> Prior {
        Prior::bare(Time::ZERO, MSS, Span::from_millis(100), Bytes::new(141_000))
    }

    #[test]
    fn the_initial_window_leaves_at_once_and_doubles() {
        for segments in [2, 3, 10, 32, 64] {
            let mut start = SlowStart::new(Params { initial_window: segments, ..Params::default() });
            assert_eq!(start.establish(&prior()), FlightPlan::burst(MSS * segments));
            for _ in 0..segments {
                assert_eq!(start.on_ack(&acked(Time::ZERO, MSS)), Next::Stay);
            }
            assert_eq!(start.allowance(), Allowance::window(MSS * segments * 2));
        }
    }

    #[test]
    fn an_ack_of_an_unfilled_window_does_not_grow_it() {
        let mut start = SlowStart::new(Params::default());
        let plan = start.establish(&prior());
        let ack = Ack { is_window_limited: false, ..acked(Time::ZERO, MSS) };
        assert_eq!(start.on_ack(&ack), Next::Stay);
        assert_eq!(start.allowance().window, plan.allowance.window);
    }

    #[test]
    fn a_loss_hands_over_the_window_for_the_base_to_cut() {
        let mut start = SlowStart::new(Params::default());
        let _ = start.establish(&prior());
        assert_eq!(
            start.on_congestion(&lost(Time::ZERO, MSS)),
            Next::HandOver(HandOver::to_be_cut(MSS * 10))
        );
    }
}
