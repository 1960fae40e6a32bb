//! Send all available data, by default paced over one round trip, then continue as TCP.
//!
//! Source (JS below): D. Liu, M. Allman, S. Jin, L. Wang, "Congestion Control Without a Startup
//! Phase", PFLDNeT 2007; and, for the variant that others compare with, Halfback §2.2 and §3.1 (Q.
//! Li, M. Dong, P. B. Godfrey, "Halfback: Running Short Flows Quickly and Safely", CoNEXT 2015).
//!
//! ```text
//!             first ack with                      loss elsewhere, CE,
//!             all of it sent                      or an exit
//!  jump start --------------> slow start ------------------------------> hand over
//!       |                         |                                          ^
//!       | loss of first-flight    | loss of first-flight                     | the recovery ends
//!       | packets                 | packets                                  |
//!       +-------------------------+---------------> recovery ----------------+
//! ```
//!
//! | phase | window | pace |
//! |---|---|---|
//! | jump start | min(flow size, receive window) | all over [`Params::pace_over`] x handshake RTT |
//! | slow start | one byte more for each byte acked | none |
//! | recovery | half of the delivered bytes, at least one segment more than in flight | none |
//!
//! # Deviations
//!
//! - Available of JS were the abstract, Halfback's account of it, and its rule for the window after
//!   a loss. Where those are silent the choice is ours, and listed here.
//! - Pacing ends at the first ack after the whole flight has left, not at the very first. An RTT
//!   below the handshake's would release the rest of the flight in one burst (Halfback §3.2 waits
//!   for the same reason).
//! - If the flow is longer than the flight, slow start continues.
//! - The base controller responds to a CE mark on the first flight, as to a mark in slow start.
//!   Nothing has to be repaired, so there is no recovery to govern.
//! - A timeout before the flight is delivered hands over the delivered bytes, not its size.
//! - [`Params::burst`], [`Params::cap`] and [`Params::min_window`] are not in JS: Halfback §4.2.4
//!   suggests the first for very small flows, every deployment has the second, and connections with
//!   several requests need the third. JS paces over one RTT, [`Params::pace_over`]'s default.
//! - JS has one flow per connection; later responses on a connection are handled by
//!   [`LaterFlights`](super::LaterFlights).
//!
//! # Limits
//!
//! A flow of unknown size that ends before its first flight is full stays in the first phase,
//! paced.

use headstart_units::{Bytes, Ratio};

use super::Startup;
use super::flights::{is_out, paced};
use super::later_flights::Flights;
use crate::about::{About, Needs};
use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::event::{Ack, Congestion, Progress, Signal, Timeout};
use crate::first_recovery::{self, FirstRecovery};
use crate::growth::{Decision, Exit, Growth};
use crate::prior::Prior;

/// The scheme's row of the catalogue.
pub const ABOUT: About =
    About::new("jump-start", Needs::FlowSize, "all of the flow paced over one RTT").over_tcp();

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// Segments that leave at once; the others follow paced. Halfback §4.2.4 suggests 10
        /// for very small flows.
        burst: u64 = 0, in 0..=10_000, from "JS: all is paced";
        /// Time over which the first flight is paced, as a share of the handshake RTT.
        pace_over: Ratio = Ratio::ONE, in Ratio::percent(1)..=Ratio::percent(1000), from "JS";
        /// A limit on the first flight in addition to flow size and receive window; every
        /// deployment has one.
        cap: Option<Bytes> = None, in Bytes::new(1)..=Bytes::new(1 << 40), from "JS";
        /// Least window in segments after the flight: after a first flight of one segment, later
        /// data is sent no more slowly than by TCP.
        min_window: u64 = 0, in 0..=10_000, from "JS, whose connections have one flow";
        /// The window after a loss, as a share of the delivered bytes.
        window_after_loss: Ratio = first_recovery::WINDOW_AFTER_LOSS, in Ratio::percent(1)..=Ratio::percent(100), from "JS";
        /// End of slow start other than by congestion.
        exit: Exit = Exit::Loss, from "JS is older than that";
    }
}

/// State of JumpStart.
#[derive(Clone, Copy, Debug)]
pub struct JumpStart {
    pub(super) params: Params,
    mss: Bytes,
    /// Offset at which the flight ends, in bytes since the connection began.
    flight: Bytes,
    allowance: Allowance,
    growth: Growth,
    recovery: FirstRecovery,
}

impl JumpStart {
    /// [`JumpStart`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            mss: Bytes::ZERO,
            flight: Bytes::ZERO,
            allowance: Allowance::window(Bytes::ZERO),
            growth: Growth::new(params.exit),
            recovery: FirstRecovery::new(Bytes::ZERO, params.window_after_loss),
        }
    }
}

impl Startup for JumpStart {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        let Params { burst, pace_over, .. } = self.params;
        let plan = paced(prior, self.limit(prior), burst, prior.handshake_rtt * pace_over);
        self.mss = prior.mss;
        self.flight = plan.flight;
        self.allowance = plan.allowance;
        self.recovery = FirstRecovery::new(prior.mss, self.params.window_after_loss);
        plan
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) -> Next {
        if self.recovery.on_ack(ack) {
            return Next::HandOver(HandOver::avoiding(self.recovery.final_window()));
        }
        if self.recovery.is_under_way() {
            return Next::Stay;
        }
        if self.allowance.pace.is_some() && is_out(self.flight, ack) {
            self.flight = self.flight.min(ack.delivered + ack.in_flight);
            self.allowance.pace = None;
            self.allowance.window = self.allowance.window.max(self.mss * self.params.min_window);
        }
        match self.growth.on_ack(&mut self.allowance.window, ack) {
            Decision::Continue => Next::Stay,
            Decision::Exit => Next::HandOver(HandOver::avoiding(self.allowance.window)),
        }
    }

    fn on_congestion(&mut self, signal: &Congestion) -> Next {
        let is_of_the_flight = signal.signal == Signal::Loss && !signal.first_flight_lost.is_zero();
        if is_of_the_flight || self.recovery.is_under_way() {
            self.recovery.on_loss(signal);
            Next::Stay
        } else {
            Next::HandOver(HandOver::to_be_cut(self.allowance.window))
        }
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Next {
        let is_through = timeout.delivered >= self.flight && !self.recovery.is_under_way();
        let window = if is_through { self.allowance.window } else { self.recovery.delivered() };
        Next::HandOver(HandOver::to_be_cut(window))
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        if self.recovery.is_under_way() { Allowance::window(self.recovery.window()) } else { self.allowance }
    }

    fn is_slow_start(&self) -> bool {
        !self.recovery.is_under_way()
    }

    fn phase(&self) -> &'static str {
        if self.recovery.is_under_way() {
            "recovery"
        } else if self.allowance.pace.is_some() {
            "jump start"
        } else {
            self.growth.phase()
        }
    }
}

impl Flights for JumpStart {
    fn limit(&self, prior: &Prior) -> Bytes {
        self.params.cap.unwrap_or(Bytes::MAX).min(prior.receive_window)
    }

    fn flight_end(&self) -> Bytes {
        self.flight
    }

    fn extend(&mut self, plan: &FlightPlan, so_far: &Progress) {
        self.flight = so_far.sent + plan.flight;
        self.allowance = plan.allowance;
    }
}

#[cfg(test)]
mod tests {
    use super::super::steps::{Event, Expected, play};
    use super::*;
    use crate::base::testing::{MSS, acked, lost, timed_out};
    use headstart_units::{Rate, Span, Time};

    const RTT: Span = Span::from_millis(100);

    /// 100 segments to send, a receive window of 141.
    fn prior() -> Prior {
        let bare = Prior::bare(Time::ZERO, MSS, RTT, MSS * 141);
        Prior { flow_size: Some(MSS * 100), ..bare }
    }

    /// An ack of one original; `delivered` and `in_flight` in segments, after it.
    fn ack(delivered: u64, in_flight: u64) -> Event {
        Event::Ack(Ack {
            first_flight_acked: MSS,
            delivered: MSS * delivered,
            in_flight: MSS * in_flight,
            ..acked(Time::ZERO, MSS)
        })
    }

    fn repairing(originals: u64, in_flight: u64, in_recovery: bool) -> Event {
        Event::Ack(Ack {
            first_flight_acked: MSS * originals,
            in_flight: MSS * in_flight,
            in_recovery,
            ..acked(Time::ZERO, MSS)
        })
    }

    fn loss(of_flight: u64, in_flight: u64) -> Event {
        Event::Congestion(Congestion {
            first_flight_lost: MSS * of_flight,
            in_flight: MSS * in_flight,
            ..lost(Time::ZERO, MSS)
        })
    }

    /// JS, Halfback §3.1: the flight is min(flow size, receive window).
    #[test]
    fn the_flight_is_the_flow_within_its_limits() {
        #[rustfmt::skip]
        let rows = [
            // flow size      receive window  cap             flight   window
            (Some(100_000),   141_000,        None,           100_000, 100_000, "the flow"),
            (Some(99_001),    141_000,        None,            99_001, 100_000, "its last segment is a short one"),
            (Some(200_000),   141_500,        None,           141_000, 141_000, "whole segments of the receive window"),
            (None,            141_000,        None,           141_000, 141_000, "nobody knows the size"),
            (Some(100_000),   141_000,        Some(50_000),    50_000,  50_000, "the cap"),
            (Some(0),         141_000,        None,                 0,   1_000, "a window is never nothing"),
        ];
        for (size, receive_window, cap, flight, window, why) in rows {
            let prior = Prior {
                flow_size: size.map(Bytes::new),
                receive_window: Bytes::new(receive_window),
                ..prior()
            };
            let mut start = JumpStart::new(Params { cap: cap.map(Bytes::new), ..Params::default() });
            let plan = start.establish(&prior);
            assert_eq!(
                (plan.flight, plan.allowance.window),
                (Bytes::new(flight), Bytes::new(window)),
                "{why}"
            );
        }
    }

    #[test]
    fn of_n_segments_one_leaves_at_once_and_the_next_an_nth_of_an_rtt_later() {
        for (segments, burst, at_once, gap) in [
            (100, 0, 1, Span::from_millis(1)),
            (10, 0, 1, Span::from_millis(10)),
            (1, 0, 1, RTT),
            (100, 1, 1, RTT / 99),
            (110, 10, 10, Span::from_millis(1)),
            (4, 10, 4, RTT),
        ] {
            let prior = Prior { flow_size: Some(MSS * segments), ..prior() };
            let paced_over = |pace_over| {
                let plan = JumpStart::new(Params { burst, pace_over, ..Params::default() }).establish(&prior);
                assert_eq!(plan.burst, MSS * at_once, "{segments} segments, burst {burst}");
                MSS / plan.allowance.pace.expect("paced")
            };
            let next = paced_over(Ratio::ONE);
            let slower = paced_over(Ratio::percent(200));
            assert!(slower.abs_diff(next * 2) < Span::from_micros(1), "over two: {slower:?}");
            let error = next.abs_diff(gap);
            assert!(error < Span::from_micros(1), "{segments} segments, burst {burst}: {next:?}");
        }
    }

    #[test]
    fn a_delivered_flight_is_paced_once_and_slow_start_continues() {
        let mut start = JumpStart::new(Params::default());
        let plan = start.establish(&prior());
        assert_eq!(plan.allowance.pace, Some(Rate::from_bytes_per_sec(1_000_000)));
        #[rustfmt::skip]
        let steps = [
            (90,  ack(1, 89),         Expected::Paced(101_000, 1_000_000), "an early ack: ten segments are still to leave"),
            (100, ack(2, 98),         Expected::Window(102_000),           "all of it is out: no more pacing"),
            (101, ack(3, 97),         Expected::Window(103_000),           "slow start: one byte for each byte"),
            (250, loss(0, 90),        Expected::Cut(103_000),              "a later loss is the base controller's"),
        ];
        play(&mut start, &steps);
    }

    #[test]
    fn a_short_first_flight_leaves_the_minimum_window() {
        let mut start = JumpStart::new(Params { min_window: 3, ..Params::default() });
        let _ = start.establish(&Prior { flow_size: Some(MSS), ..prior() });
        let steps = [(100, ack(1, 0), Expected::Window(4_000), "three segments, and one for the ack")];
        play(&mut start, &steps);
    }

    #[test]
    fn a_flight_with_losses_hands_over_half_of_the_delivered_bytes() {
        let mut start = JumpStart::new(Params::default());
        let _ = start.establish(&prior());
        #[rustfmt::skip]
        let steps = [
            (101, ack(1, 99),              Expected::Window(101_000),    "the first ack"),
            (103, loss(2, 94),             Expected::Window(95_000),     "one segment may be sent again"),
            (103, repairing(1, 93, true),  Expected::Window(94_000),     "and one for each ack"),
            (104, loss(40, 20),            Expected::Window(21_000),     "more losses: the window follows"),
            (150, repairing(38, 10, true), Expected::Window(20_000),     "half of the 40 that got through"),
            (190, repairing(20, 0, true),  Expected::Window(30_000),     "rising as more arrives"),
            (205, repairing(0, 0, false),  Expected::HandsOver(30_000),  "(D - R)/2 of JS: (100 - 40)/2"),
        ];
        play(&mut start, &steps);
    }

    #[test]
    fn a_timeout_hands_over_the_delivered_bytes() {
        let mut start = JumpStart::new(Params::default());
        let _ = start.establish(&prior());
        #[rustfmt::skip]
        let steps = [
            (100, ack(1, 99), Expected::Window(101_000), "one segment got through, and then nothing"),
            (400, Event::Timeout(timed_out(Time::ZERO)), Expected::Cut(1_000), "the flight's size is no measure"),
        ];
        play(&mut start, &steps);
    }

    #[test]
    fn a_mark_is_handled_by_the_base_controller() {
        let mut start = JumpStart::new(Params::default());
        let _ = start.establish(&prior());
        let mark = Congestion { signal: Signal::CongestionExperienced, ..lost(Time::ZERO, Bytes::ZERO) };
        let steps = [(100, Event::Congestion(mark), Expected::Cut(100_000), "as in slow start")];
        play(&mut start, &steps);
    }
}
