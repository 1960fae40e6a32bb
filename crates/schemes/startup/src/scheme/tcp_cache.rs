//! Begin with the window and slow start threshold at which the last connection to the peer ended.
//!
//! Source: *TCP-Cache* of Halfback §4 ("caching older values of the cwnd and ssthresh"), after V.
//! Padmanabhan and R. Katz, "TCP Fast Start: A technique for speeding up web transfers", GLOBECOM
//! 1998 (PK below).
//!
//! ```text
//!  cached ------- first ack --------> hand over: slow start below the cached threshold,
//!     |                                          avoidance above
//!     +---------- loss or CE -------> hand over, to be cut
//!
//!  slow start (no record) -- loss or CE --> hand over
//! ```
//!
//! # Deviations
//!
//! - PK marks the packets of the first flight so that routers drop them first, and goes back to
//!   plain slow start if one is lost. Halfback mentions neither: a loss is handled by the base
//!   controller as any other.
//! - Halfback does not say whether a cached window smaller than the initial one is used. A
//!   connection that ended after a timeout would leave one segment: the larger of the two is used.
//! - A cached threshold below the cached window means avoidance from the first byte.
//!
//! # Limits
//!
//! It uses the record whatever its age, the RTT and other connections: so the papers measured it.

use headstart_units::Bytes;

use super::{Requirements, Startup};
use crate::about::{About, Needs};
use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::event::{Ack, Congestion};
use crate::path::LARGEST_WINDOW;
use crate::prior::Prior;

/// The scheme's row of the catalogue.
pub const ABOUT: About =
    About::new("tcp-cache", Needs::History, "window and threshold of the last connection to the peer")
        .over_tcp();

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// Initial window in segments where no record exists.
        initial_window: u64 = 2, in 1..=10_000, from "Halfback §4.1";
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No record.
    SlowStart,
    /// The window is the record's, and so is the threshold.
    Cached { ssthresh: Bytes },
}

/// TCP-Cache.
#[derive(Clone, Copy, Debug)]
pub struct TcpCache {
    pub(super) params: Params,
    phase: Phase,
    window: Bytes,
}

impl TcpCache {
    /// [`TcpCache`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub const fn new(params: Params) -> Self {
        Self { params, phase: Phase::SlowStart, window: Bytes::ZERO }
    }
}

impl Startup for TcpCache {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.window = prior.mss * self.params.initial_window;
        if let Some(known) = prior.history {
            self.window = known.record.window.clamp(self.window, LARGEST_WINDOW.max(self.window));
            self.phase = Phase::Cached { ssthresh: known.record.ssthresh };
        }
        FlightPlan::burst(self.window)
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) -> Next {
        let ssthresh = match self.phase {
            Phase::SlowStart => Bytes::MAX,
            Phase::Cached { ssthresh } => ssthresh,
        };
        if ack.is_window_limited && self.window < ssthresh {
            self.window = (self.window + ack.newly_acked).min(ssthresh);
        }
        match self.phase {
            Phase::SlowStart => Next::Stay,
            // Nothing remains to be decided: the base controller continues with its own state.
            Phase::Cached { ssthresh } => {
                Next::HandOver(HandOver { ssthresh, ..HandOver::growing(self.window) })
            }
        }
    }

    fn on_congestion(&mut self, _: &Congestion) -> Next {
        Next::HandOver(HandOver::to_be_cut(self.window))
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        Allowance::window(self.window)
    }

    fn is_slow_start(&self) -> bool {
        match self.phase {
            Phase::SlowStart => true,
            Phase::Cached { ssthresh } => self.window < ssthresh,
        }
    }

    fn phase(&self) -> &'static str {
        match self.phase {
            Phase::SlowStart => "slow start",
            Phase::Cached { .. } => "cached",
        }
    }

    fn requirements(&self) -> Requirements {
        Requirements { caches_window: true, ..Requirements::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::timeline::{MSS, ack, loss, play, timeout, withstand_extremes};
    use super::*;
    use crate::history::testing::{absurd_priors, prior_with};

    fn established(window: u64, ssthresh: Bytes) -> (TcpCache, FlightPlan) {
        let mut prior = prior_with(1000, 100);
        let known = prior.history.as_mut().expect("a record");
        (known.record.window, known.record.ssthresh) = (MSS * window, ssthresh);
        let mut start = TcpCache::new(Params::default());
        let plan = start.establish(&prior);
        (start, plan)
    }

    #[test]
    fn the_cached_window_leaves_in_a_burst_and_slow_start_goes_on_to_the_cached_threshold() {
        let (mut start, plan) = established(40, MSS * 41);
        assert_eq!(plan, FlightPlan::burst(MSS * 40));
        #[rustfmt::skip]
        let steps = [
            (ack(100, 0, 2, 38), "hand over", 41_000, 0, "two segments more, but not above the threshold"),
        ];
        let how = play(&mut start, &steps);
        assert_eq!(how, Some(HandOver::avoiding(MSS * 41)));
    }

    #[test]
    fn a_threshold_below_the_window_is_avoidance_at_once() {
        let (mut start, _) = established(40, MSS * 20);
        assert!(!start.is_slow_start());
        let how = play(&mut start, &[(ack(100, 0, 1, 39), "hand over", 40_000, 0, "nothing grows here")]);
        assert_eq!(how.map(|how| how.ssthresh), Some(MSS * 20));
    }

    #[test]
    fn without_a_record_it_is_slow_start_from_two_segments() {
        let mut start = TcpCache::new(Params::default());
        let prior = Prior { history: None, ..prior_with(1000, 100) };
        assert_eq!(start.establish(&prior), FlightPlan::burst(MSS * 2));
        #[rustfmt::skip]
        let steps = [
            (ack(100, 0, 2, 0),     "slow start", 4_000, 0, "doubles"),
            (ack(200, 100, 4, 0),   "slow start", 8_000, 0, "and doubles"),
            (loss(300, 1, 7),       "hand over",  8_000, 0, "until a loss"),
        ];
        assert_eq!(play(&mut start, &steps), Some(HandOver::to_be_cut(MSS * 8)));
    }

    #[test]
    fn a_loss_or_a_timeout_of_the_burst_is_cut_by_the_base() {
        let (mut start, _) = established(40, Bytes::MAX);
        let how = play(&mut start, &[(loss(101, 5, 30), "hand over", 40_000, 0, "the base halves it")]);
        assert_eq!(how, Some(HandOver::to_be_cut(MSS * 40)));
        let (mut start, _) = established(40, Bytes::MAX);
        let how = play(&mut start, &[(timeout(1000), "hand over", 40_000, 0, "the base begins again")]);
        assert_eq!(how, Some(HandOver::to_be_cut(MSS * 40)));
    }

    #[test]
    fn a_cached_window_is_never_below_the_initial_one() {
        let (_, plan) = established(1, Bytes::MAX);
        assert_eq!(plan.flight, MSS * 2);
    }

    #[test]
    fn absurd_records_do_no_harm() {
        withstand_extremes(&absurd_priors(), 2, || TcpCache::new(Params::default()));
    }
}
