//! Begin with an initial window in one burst and double it every round trip.
//!
//! Source: RFC 5681 §3.1, RFC 6928 (initial window 10, *Initial-Start* in the fast-startup
//! comparison), RFC 9406 (HyStart++), draft-chung-ccwg-search-09 (SEARCH), RFC 3742 (limited slow
//! start). Windows of 32 and 64 are used by content networks (WiseStart §4.1).
//!
//! ```text
//!  slow start ---- loss or CE, or an exit of [`crate::growth`] ----> hand over
//! ```
//!
//! Slow start ends with up to twice what path and buffer hold, of which CUBIC keeps 0.7: so a
//! second and a third cut follow. `first-cut` is the share that the first one keeps, after loss
//! (Firefox's stack tries 0.4 and 0.5: mozilla/neqo, issue 3162).
//!
//! # Deviations
//!
//! - RFC 5681 §3.1 begins with one segment if the SYN was lost. Linux does so only after two
//!   losses, ns-3 never; here never, though the prior reports the lost SYN.
//! - RFC 3742 grows by whole MSS / K for each ack; here by the bytes acknowledged over K.

use headstart_units::{Bytes, Ratio};

use super::{Requirements, Startup};
use crate::about::{About, Native, Needs, Preset};
use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::event::{Ack, Congestion, Signal};
use crate::growth::{Decision, Exit, Growth};
use crate::prior::Prior;

/// Slow start's row of the catalogue; the windows of the papers have names.
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
    ..About::new("slow-start", Needs::Nothing, "slow start").over_tcp()
};

const fn named(name: &'static str, text: &'static str, summary: &'static str) -> Preset {
    Preset { name, text, summary }
}

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// Initial window in segments.
        initial_window: u64 = 10, in 1..=10_000, from "RFC 6928 §2";
        /// End of slow start other than by congestion.
        exit: Exit = Exit::Loss, from "the papers' baselines leave it on loss";
        /// Limited slow start: segments from which on the window grows by half as many in each
        /// round trip (`max_ssthresh`). RFC 3742 recommends 100.
        max_ssthresh: Option<u64> = None, in 2..=1_000_000, from "RFC 6928 §2, which sets no limit";
        /// Share of the window that a loss leaves which ends slow start; the base controller's
        /// own where none is set.
        first_cut: Option<Ratio> = None, in Ratio::percent(1)..=Ratio::percent(100), from "RFC 9438 §4.6";
    }
}

/// Slow start.
#[derive(Clone, Copy, Debug)]
pub struct SlowStart {
    pub(super) params: Params,
    growth: Growth,
    window: Bytes,
    /// `max_ssthresh` in bytes.
    limit: Bytes,
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

    /// [`SlowStart`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self { params, growth: Growth::new(params.exit), window: Bytes::ZERO, limit: Bytes::MAX }
    }

    /// After an idle time the window is at most `restart` (RFC 2861 §3).
    pub fn on_idle(&mut self, restart: Bytes) {
        self.window = self.window.min(restart);
    }
}

impl Startup for SlowStart {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.window = prior.mss * self.params.initial_window;
        self.limit = self.params.max_ssthresh.map_or(Bytes::MAX, |segments| prior.mss * segments);
        FlightPlan::burst(self.window)
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) -> Next {
        let before = self.window;
        let decision = self.growth.on_ack(&mut self.window, ack);
        if before > self.limit && self.window > before {
            // RFC 3742 §2: K = int(cwnd / (0.5 max_ssthresh)).
            let k = before.get() / (self.limit.get() / 2).max(1);
            self.window = before + (self.window - before) / k;
        }
        match decision {
            Decision::Continue => Next::Stay,
            Decision::Exit => Next::HandOver(HandOver::avoiding(self.window)),
        }
    }

    fn on_congestion(&mut self, signal: &Congestion) -> Next {
        let first_cut = self.params.first_cut.filter(|_| signal.signal == Signal::Loss);
        Next::HandOver(HandOver { first_cut, ..HandOver::to_be_cut(self.window) })
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
    use crate::Scheme;
    use crate::base::Kind;
    use crate::base::testing::{MSS, acked, lost};
    use crate::controller::Controller;
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

    /// Of 100 segments: the base's 0.7, the parameter's share after a loss, and never of a mark.
    #[test]
    fn the_first_cut_keeps_its_share_of_a_loss_and_the_later_ones_keep_the_bases() {
        let mark = Congestion { signal: Signal::CongestionExperienced, ..lost(Time::ZERO, MSS) };
        for (first_cut, signal, windows) in [
            (None, lost(Time::ZERO, MSS), [70, 49]),
            (Some(Ratio::percent(40)), lost(Time::ZERO, MSS), [40, 28]),
            (Some(Ratio::percent(40)), mark, [70, 49]),
        ] {
            let scheme = SlowStart::new(Params { initial_window: 100, first_cut, ..Params::default() });
            let mut controller = Controller::new(Scheme::SlowStart(scheme), Kind::Cubic, MSS);
            let _ = controller.establish(&prior());
            for segments in windows {
                controller.on_congestion(&signal);
                assert_eq!(controller.allowance().window, MSS * segments, "{first_cut:?}");
            }
        }
    }

    /// RFC 3742 §2: up to max_ssthresh by one segment for each ack, then by half of max_ssthresh in
    /// each round trip.
    #[test]
    fn limited_slow_start_grows_by_half_of_its_limit_in_a_round_trip() {
        let mut start = SlowStart::new(Params { max_ssthresh: Some(20), ..Params::default() });
        let _ = start.establish(&prior());
        let mut round = || {
            let before = start.allowance().window;
            for _ in 0..before.get() / MSS.get() {
                assert_eq!(start.on_ack(&acked(Time::ZERO, MSS)), Next::Stay);
            }
            (start.allowance().window - before).get()
        };
        assert_eq!(round(), 10_000, "not limited up to 20 segments");
        assert_eq!(round(), 1_000 + 18 * 500 + 333, "one more, then K is two, and three at the last");
        for _ in 0..6 {
            let grown = round();
            assert!((8_500..=10_500).contains(&grown), "{grown}");
        }
    }
}
