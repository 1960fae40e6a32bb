//! Pace the bandwidth-delay product that the last connection measured, then avoid congestion from
//! the first ack on.
//!
//! Source: *S-Cubic* of WiseStart §4.1 to §4.4, that is *Stateful-TCP*: L. Guo and J. Lee,
//! "Stateful-TCP: a new approach to accelerate TCP slow-start", IEEE Access 8, 2020.
//!
//! ```text
//!  paced ------- first ack ------> hand over: avoidance from BtlBw x RTprop
//!    |---------- loss or CE -----> hand over, to be cut
//!
//!  slow start (no record) -- loss or CE --> hand over
//! ```
//!
//! # Deviations
//!
//! - WiseStart describes S-Cubic in three places and never in full. It "enters into congestion
//!   avoidance directly at the first ACK"; §4.2 adds that without adaptation to the application
//!   "the CWND setting" is "much lower when exiting". The window stays at the BDP here;
//!   [`AvoidanceWindow`] has the other readings, among them that of perhaps the authors' own stack.
//! - The ack that ends the start grows nothing: avoidance grows from the second.
//! - The rate is not specified, the record's or the window over the present RTT: here the record's.
//!
//! # Limits
//!
//! It uses the record whatever its age, the RTT and other connections: so the paper measured it.

use headstart_units::{Bytes, Rate};

use super::{Requirements, Startup};
use crate::about::{About, Needs};
use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::event::{Ack, Congestion};
use crate::growth::{Decision, Exit, Growth};
use crate::prior::Prior;

/// The scheme's row of the catalogue.
pub const ABOUT: About = About {
    also: &["stateful-tcp"],
    ..About::new("s-cubic", Needs::History, "the peer's last rate x RTT, avoidance at once (Stateful-TCP)")
        .over_tcp()
};

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// Initial window in segments where no record exists.
        initial_window: u64 = 10, in 1..=10_000, from "WiseStart §3.2, its default slow start";
        /// End of that slow start other than by congestion.
        exit: Exit = Exit::Loss, from "the paper's baselines leave it on loss";
        /// Hold window and rate to the end: Ideal of WiseStart §4.4.1, where the record describes
        /// the path exactly.
        holds_record: bool = false, from "WiseStart §4.2";
        /// The window with which avoidance begins.
        avoidance_window: AvoidanceWindow = AvoidanceWindow::Record, from "WiseStart §4.1";
    }
}

/// The window with which avoidance begins at the first ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AvoidanceWindow {
    /// The recorded BDP.
    Record,
    /// Bytes in flight, without a minimum.
    Flight,
    /// Bytes in flight, but at least the initial window: WiseStart §4.2 as in a public fork of
    /// ngtcp2, presumably the authors' (`Centaurus99/ngtcp2`, `lib/ngtcp2_stateful_cubic.c`, end of
    /// 2022). Bytes acknowledged by the ack count here, as in WiseStart; there they do not.
    FlightOrInitial,
}

crate::words!(AvoidanceWindow { Record = "record", Flight = "flight", FlightOrInitial = "flight-or-initial" });

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// No record.
    SlowStart(Growth),
    /// The first flight leaves at the recorded rate.
    Paced(Rate),
}

/// S-Cubic: Stateful-TCP with any base controller, CUBIC in the paper.
#[derive(Clone, Copy, Debug)]
pub struct SCubic {
    pub(super) params: Params,
    phase: Phase,
    window: Bytes,
    initial: Bytes,
    min_window: Bytes,
}

impl SCubic {
    /// [`SCubic`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            phase: Phase::SlowStart(Growth::new(params.exit)),
            window: Bytes::ZERO,
            initial: Bytes::ZERO,
            min_window: Bytes::ZERO,
        }
    }
}

impl Startup for SCubic {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.min_window = prior.mss * MINIMUM_SEGMENTS;
        self.initial = prior.mss * self.params.initial_window;
        let resumed = prior.history.and_then(|it| it.record.window_and_rate(prior.mss, prior.handshake_rtt));
        match resumed {
            Some((bdp, btl_bw)) => {
                self.window = bdp;
                self.phase = Phase::Paced(btl_bw);
                FlightPlan::paced(prior.mss, self.window, btl_bw)
            }
            None => {
                self.window = self.initial;
                FlightPlan::burst(self.window)
            }
        }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) -> Next {
        let verdict = match &mut self.phase {
            Phase::SlowStart(growth) => growth.on_ack(&mut self.window, ack),
            Phase::Paced(_) if self.params.holds_record => Decision::Continue,
            Phase::Paced(_) => {
                let in_flight = ack.in_flight + ack.newly_acked;
                self.window = match self.params.avoidance_window {
                    AvoidanceWindow::FlightOrInitial => in_flight.max(self.initial),
                    AvoidanceWindow::Flight => in_flight.max(self.min_window),
                    AvoidanceWindow::Record => self.window,
                };
                Decision::Exit
            }
        };
        match verdict {
            Decision::Continue => Next::Stay,
            Decision::Exit => Next::HandOver(HandOver::avoiding(self.window)),
        }
    }

    fn on_congestion(&mut self, _: &Congestion) -> Next {
        if self.params.holds_record && matches!(self.phase, Phase::Paced(_)) {
            return Next::Stay;
        }
        Next::HandOver(HandOver::to_be_cut(self.window))
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        let pace = match self.phase {
            Phase::SlowStart(_) => None,
            Phase::Paced(rate) => Some(rate),
        };
        Allowance { window: self.window, pace }
    }

    fn phase(&self) -> &'static str {
        match &self.phase {
            Phase::SlowStart(growth) => growth.phase(),
            Phase::Paced(_) => "paced",
        }
    }

    fn requirements(&self) -> Requirements {
        Requirements { holds_record: self.params.holds_record, ..Requirements::default() }
    }
}

/// RFC 5681 §3.1: the least window of a controller.
const MINIMUM_SEGMENTS: u64 = 2;

#[cfg(test)]
mod tests {
    use super::super::timeline::{MSS, ack, loss, play, timeout, withstand_extremes};
    use super::*;
    use crate::history::testing::{absurd_priors, prior_with};

    /// 1 MB/s and 40 ms: a BDP of 40 kB.
    fn established() -> (SCubic, FlightPlan) {
        let mut start = SCubic::new(Params::default());
        let plan = start.establish(&prior_with(1000, 40));
        (start, plan)
    }

    #[test]
    fn the_recorded_bdp_leaves_at_the_recorded_rate_and_the_first_ack_ends_the_start() {
        let (mut start, plan) = established();
        assert_eq!(plan, FlightPlan::paced(MSS, MSS * 40, Rate::from_bytes_per_sec(1_000_000)));
        assert_eq!(start.phase(), "paced");
        let how = play(&mut start, &[(ack(100, 0, 2, 38), "hand over", 40_000, 0, "avoidance at the BDP")]);
        assert_eq!(how, Some(HandOver::avoiding(MSS * 40)));
    }

    /// WiseStart §4.2: without adaptation to the application the window is "much lower when exiting
    /// slow start".
    #[test]
    fn avoidance_begins_with_the_bytes_in_flight_by_each_reading() {
        let (fill, few) = ((2, 30), (1, 0));
        for (avoidance_window, (acked, in_flight), window) in [
            (AvoidanceWindow::FlightOrInitial, fill, 32_000),
            (AvoidanceWindow::FlightOrInitial, few, 10_000),
            (AvoidanceWindow::Flight, fill, 32_000),
            (AvoidanceWindow::Flight, few, 2_000),
            (AvoidanceWindow::Record, fill, 40_000),
            (AvoidanceWindow::Record, few, 40_000),
        ] {
            let mut start = SCubic::new(Params { avoidance_window, ..Params::default() });
            let _ = start.establish(&prior_with(1000, 40));
            let how = play(&mut start, &[(ack(100, 0, acked, in_flight), "hand over", window, 0, "")]);
            assert_eq!(
                how,
                Some(HandOver::avoiding(Bytes::new(window))),
                "{avoidance_window:?}, {acked} of {in_flight}"
            );
        }
    }

    #[test]
    fn held_it_never_hands_over_but_to_a_timeout() {
        let mut start = SCubic::new(Params { holds_record: true, ..Params::default() });
        let _ = start.establish(&prior_with(1000, 40));
        #[rustfmt::skip]
        let steps = [
            (ack(100, 0, 2, 38),    "paced",     40_000, 1_000_000, "window and rate stay"),
            (loss(200, 3, 35),      "paced",     40_000, 1_000_000, "whatever is lost"),
            (timeout(1000),         "hand over", 40_000, 1_000_000, "nothing comes back any more"),
        ];
        assert_eq!(play(&mut start, &steps), Some(HandOver::to_be_cut(MSS * 40)));
    }

    #[test]
    fn without_a_record_it_is_the_default_slow_start() {
        let mut start = SCubic::new(Params::default());
        let prior = Prior { history: None, ..prior_with(1000, 100) };
        assert_eq!(start.establish(&prior), FlightPlan::burst(MSS * 10));
        #[rustfmt::skip]
        let steps = [
            (ack(100, 0, 10, 0),    "slow start", 20_000, 0, "doubles"),
            (loss(200, 1, 19),      "hand over",  20_000, 0, "until a loss"),
        ];
        assert_eq!(play(&mut start, &steps), Some(HandOver::to_be_cut(MSS * 20)));
    }

    #[test]
    fn a_loss_or_a_timeout_is_cut_by_the_base() {
        for event in [loss(100, 3, 37), timeout(1000)] {
            let (mut start, _) = established();
            let how = play(&mut start, &[(event, "hand over", 40_000, 0, "as it always would")]);
            assert_eq!(how, Some(HandOver::to_be_cut(MSS * 40)));
        }
    }

    #[test]
    fn absurd_records_do_no_harm() {
        withstand_extremes(&absurd_priors(), 2, || SCubic::new(Params::default()));
    }

    #[test]
    fn a_record_of_next_to_nothing_still_lets_two_segments_go() {
        let mut start = SCubic::new(Params::default());
        let plan = start.establish(&prior_with(1, 1));
        assert_eq!(plan, FlightPlan::paced(MSS, MSS * 2, Rate::from_bytes_per_sec(20_000)), "within one RTT");
    }
}
