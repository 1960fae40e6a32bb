//! Begin with a window that other connections to the peer's prefix have had.
//!
//! Source (RT below): M. Flores, A. Khakpour, H. Bedi, "Riptide: Jump-Starting Back-Office
//! Connections in Cloud Systems", ICDCS 2016, and its authors' article on it, 2017. A tool reads
//! the windows of a server's connections and averages them by destination prefix. Within limits,
//! that is the route's initial window (`ip route ... initcwnd`), and the kernel stays as it is. A
//! fleet's operator can do it today (`headstart history prefixes --routes`).
//!
//! ```text
//!  slow start from the prefix's window ------- loss or CE -------> hand over
//! ```
//!
//! # Deviations
//!
//! - RT reads the windows of living connections each second; here each connection adds its last one
//!   to a moving average, as it closes.
//! - RT's weight of history, its limits and its lifetime are settings of a fleet. Here they are
//!   parameters, and nothing expires.
//! - RT takes the prefixes of routes; here a /24 of IPv4 and a /48 of IPv6.

use headstart_units::{Bytes, Ratio};

use super::{Requirements, Startup};
use crate::about::{About, Needs};
use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::event::{Ack, Congestion};
use crate::history::{Record, RecordUpdate};
use crate::prior::Prior;

/// The scheme's row of the catalogue.
pub const ABOUT: About = About {
    also: &["riptide"],
    is_compared: false,
    ..About::new("prefix-window", Needs::History, "an initial window learnt from the peer's prefix (Riptide)")
};

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// Initial window in segments of a prefix without connections, and the least of any.
        least: u64 = 10, in 1..=10_000, from "RFC 6928 §2";
        /// The largest initial window in segments.
        most: u64 = 100, in 1..=10_000, from "ours";
        /// Weight of a connection's window in the prefix's average.
        weight: Ratio = Ratio::new(1, 8), in Ratio::percent(1)..=Ratio::percent(100), from "ours";
    }
}

/// A window learnt by prefix.
#[derive(Clone, Copy, Debug)]
pub struct PrefixWindow {
    pub(super) params: Params,
    window: Bytes,
    /// The prefix's average so far.
    learnt: Option<Bytes>,
}

impl PrefixWindow {
    /// [`PrefixWindow`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub const fn new(params: Params) -> Self {
        Self { params, window: Bytes::ZERO, learnt: None }
    }
}

impl Startup for PrefixWindow {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        let least = prior.mss * self.params.least;
        self.learnt = prior.history.map(|known| known.record.window);
        let most = (prior.mss * self.params.most).max(least);
        self.window = self.learnt.unwrap_or(least).clamp(least, most);
        FlightPlan::burst(self.window)
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) -> Next {
        if ack.is_window_limited {
            self.window += ack.newly_acked;
        }
        Next::Stay
    }

    fn on_congestion(&mut self, _: &Congestion) -> Next {
        Next::HandOver(HandOver::to_be_cut(self.window))
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        Allowance::window(self.window)
    }

    fn phase(&self) -> &'static str {
        if self.learnt.is_some() { "learnt window" } else { "slow start" }
    }

    fn record_update(&self, measured: Option<Record>) -> RecordUpdate {
        let Some(mut record) = measured else { return RecordUpdate::Keep };
        if let Some(before) = self.learnt {
            let share = self.params.weight;
            record.window = record.window * share + (before - before * share);
        }
        RecordUpdate::Replace(record)
    }

    fn requirements(&self) -> Requirements {
        Requirements { caches_window: true, by_prefix: true, ..Requirements::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::timeline::{MSS, ack, apply, loss, withstand_extremes};
    use super::*;
    use crate::history::testing::{absurd_priors, prior_with};

    fn begun(window: u64) -> (PrefixWindow, Bytes) {
        let mut scheme = PrefixWindow::new(Params::default());
        let mut prior = prior_with(1000, 100);
        prior.history.as_mut().expect("a record").record.window = MSS * window;
        let plan = scheme.establish(&prior);
        assert_eq!(plan, FlightPlan::burst(plan.flight));
        (scheme, plan.flight)
    }

    /// RT: the window of earlier connections, within limits.
    #[test]
    fn it_begins_with_the_prefixs_window_within_the_limits() {
        for (learnt, expected) in [(3, 10), (40, 40), (4000, 100)] {
            assert_eq!(begun(learnt).1, MSS * expected, "{learnt}");
        }
        let mut prior = prior_with(1000, 100);
        prior.history = None;
        assert_eq!(PrefixWindow::new(Params::default()).establish(&prior), FlightPlan::burst(MSS * 10));
    }

    /// RT: a weighted average of the windows; a connection moves it by an eighth.
    #[test]
    fn a_connection_moves_the_prefixs_average_by_its_weight() {
        let window_after = |scheme: &PrefixWindow, window: u64| {
            let measured = Record { window: MSS * window, ..Record::default() };
            match scheme.record_update(Some(measured)) {
                RecordUpdate::Replace(record) => record.window,
                other => panic!("{other:?}"),
            }
        };
        let (scheme, _) = begun(40);
        assert_eq!(window_after(&scheme, 80), MSS * 45);
        assert_eq!(window_after(&scheme, 8), MSS * 36);
        assert_eq!(window_after(&PrefixWindow::new(Params::default()), 80), MSS * 80, "the first one");
        assert_eq!(scheme.record_update(None), RecordUpdate::Keep);
    }

    #[test]
    fn a_loss_is_cut_by_the_base() {
        let (mut scheme, _) = begun(40);
        assert_eq!(scheme.phase(), "learnt window");
        apply(&mut scheme, ack(100, 0, 40, 0));
        let next = apply(&mut scheme, loss(200, 1, 79));
        assert_eq!(next, Next::HandOver(HandOver::to_be_cut(MSS * 80)));
    }

    #[test]
    fn absurd_priors_do_no_harm() {
        withstand_extremes(&absurd_priors(), 1, || PrefixWindow::new(Params::default()));
    }
}
