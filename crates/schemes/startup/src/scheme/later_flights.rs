//! Send later data of a connection as further flights of a scheme that is defined for one flow.
//!
//! Source: this project's own (docs/decisions/0013-several-answers-on-one-connection.md has the
//! measurements). Halfback §3.3, "transmit aggressively for the first k bytes", and JumpStart's
//! min(flow, receive window) are read as limits of the connection.
//!
//! ```text
//!                  +---- more to send, below the limit, nothing lost ----+
//!                  v                                                     |
//!  establish --> flight, as in the scheme --> slow start, the scheme's or the base controller's
//!                  |                                                     |
//!                  +------ loss, CE, or the limit: no more flights ------+
//! ```
//!
//! A connection carries several responses if the transport sets its initial window
//! ([`Prior::initial_window`]; the models of the papers' set-ups do not, and then this has no
//! effect). Four additions to the papers then apply:
//!
//! - A flight that fits into the initial window leaves at once, as it would on any connection.
//! - Later data is a flight too ([`Startup::on_new_data`]), until the connection's flights together
//!   have reached the limit of the first one, or data was lost. The initial window leaves at once,
//!   the rest over one RTT.
//! - Of a scheme that ends with its flight (Halfback), a flight that ended for lack of data has
//!   measured the application, not the path. Slow start continues from the initial window, or if
//!   the flight was larger, from twice the flight.
//! - A later flight of such a scheme that the limit cuts short is not begun if the window W is more
//!   than a quarter of it. In the two round trips until it is delivered slow start sends W and 2 W.
//!   In the third it sends 4 W, and the scheme's window is about the flight.

use headstart_units::{Bytes, Rate};

use super::flights::paced;
use super::{Requirements, Startup};
use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::event::{Ack, Congestion, Progress, Sent, Signal, Timeout};
use crate::first_recovery;
use crate::history::{Record, RecordUpdate, Revision};
use crate::prior::Prior;
use crate::quick_start::RequestInputs;
use crate::repair::Repair;

/// Least size, in windows, of a later flight that does not carry all available data.
const WORTH: u64 = 4;

/// A scheme that can begin another flight.
pub trait Flights: Startup {
    /// Limit of the first flight in bytes, whatever the flow size.
    fn limit(&self, prior: &Prior) -> Bytes;

    /// Offset at which the flight ends, in bytes since the connection began.
    fn flight_end(&self) -> Bytes;

    /// The size in bytes of a flight delivered without any retransmission; else `None`. Called at
    /// the end of the flight, for a scheme that ends with it.
    fn clean(&self) -> Option<Bytes> {
        None
    }

    /// Another flight begins, after all that was sent so far.
    fn begin(&mut self, plan: &FlightPlan, so_far: &Progress) {
        self.extend(plan, so_far);
    }

    /// Replaces the unsent part of the flight by `plan`.
    fn extend(&mut self, plan: &FlightPlan, so_far: &Progress);

    /// The allowance, for a scheme that ends with its flight: with a window of at least `least`,
    /// except while it repairs losses.
    #[inline]
    fn allowance_of_at_least(&self, least: Bytes) -> Allowance {
        let _ = least;
        self.allowance()
    }
}

/// A scheme on a connection with several responses.
#[derive(Clone, Copy, Debug)]
pub struct LaterFlights<S> {
    scheme: S,
    mss: Bytes,
    initial_window: Bytes,
    /// Limit in bytes of all flights together.
    limit: Bytes,
    /// Pace planned for the last flight.
    pace: Option<Rate>,
    /// The window before a later flight began, plus that flight's first segment.
    before: Bytes,
    first: u64,
    has_lost: bool,
}

impl<S: Copy> LaterFlights<S> {
    /// Around a scheme that is not established yet.
    #[must_use]
    pub const fn new(scheme: S) -> Self {
        Self {
            scheme,
            mss: Bytes::ZERO,
            initial_window: Bytes::ZERO,
            limit: Bytes::ZERO,
            pace: None,
            before: Bytes::ZERO,
            first: 0,
            has_lost: false,
        }
    }

    /// The scheme, as its paper has it.
    #[must_use]
    pub const fn scheme(&self) -> &S {
        &self.scheme
    }
}

impl<S: Flights> LaterFlights<S> {
    /// True while the flight carried all available data and the application may have more.
    #[inline]
    fn is_open(&self) -> bool {
        !self.initial_window.is_zero() && self.scheme.flight_end() + self.mss <= self.limit
    }

    /// The hand-over after a flight that carried all available data, instead of the one that the
    /// scheme `measured`.
    fn go_on(&self, measured: &HandOver) -> HandOver {
        match self.scheme.clean() {
            Some(flight) if !self.has_lost => {
                // As in slow start the window doubles, unless the flight was not window-limited.
                let grown = if flight > self.initial_window { flight * 2 } else { self.initial_window };
                HandOver::growing(grown.max(self.before))
            }
            // The share kept by any connection after a loss in its initial window.
            _ => HandOver::avoiding(
                measured.window.max(self.initial_window * first_recovery::WINDOW_AFTER_LOSS),
            ),
        }
    }
}

/// Calls the decorated scheme.
macro_rules! decorated {
    ($self:expr, $scheme:ident => $call:expr) => {{
        let $scheme = &$self.scheme;
        $call
    }};
}

impl<S: Flights + Copy> Startup for LaterFlights<S> {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        let plan = self.scheme.establish(prior);
        *self = Self {
            mss: prior.mss,
            initial_window: prior.initial_window,
            limit: self.scheme.limit(prior),
            pace: plan.allowance.pace,
            ..Self::new(self.scheme)
        };
        if self.initial_window.is_zero() || plan.flight > self.initial_window {
            return plan;
        }
        // Any connection may send the initial window at once.
        let window = self.initial_window.min(self.limit).max(plan.allowance.window);
        let plan = FlightPlan { flight: plan.flight, ..FlightPlan::burst(window) };
        self.pace = None;
        self.scheme.extend(&plan, &Progress::default());
        plan
    }

    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        self.scheme.on_sent(sent);
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) -> Next {
        match self.scheme.on_ack(ack) {
            Next::HandOver(how) if self.scheme.requirements().ends_with_flight && self.is_open() => {
                Next::HandOver(self.go_on(&how))
            }
            next => next,
        }
    }

    fn on_congestion(&mut self, signal: &Congestion) -> Next {
        self.has_lost |= signal.signal == Signal::Loss;
        self.scheme.on_congestion(signal)
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Next {
        self.scheme.on_timeout(timeout)
    }

    fn on_new_data(&mut self, prior: &Prior, so_far: &Progress) -> Option<FlightPlan> {
        if self.has_lost || self.scheme.requirements().ends_with_flight && !self.is_open() {
            return None;
        }
        let is_over = so_far.delivered >= self.scheme.flight_end();
        let plan = later_flight(prior, so_far, self.limit, if is_over { None } else { self.pace })?;
        if !is_over {
            self.scheme.extend(&plan, so_far);
        } else if self.scheme.requirements().ends_with_flight
            && prior.flow_size.is_none_or(|size| size > plan.flight)
            && plan.flight <= so_far.window * WORTH
        {
            return None;
        } else {
            self.before = so_far.window;
            self.first = so_far.segments;
            self.scheme.begin(&plan, so_far);
        }
        self.pace = plan.allowance.pace;
        Some(plan)
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        // Window while acks are awaited: at least the initial one, and slow start's last one.
        let awaited = if self.scheme.requirements().ends_with_flight && self.is_open() {
            self.initial_window
        } else {
            self.mss
        };
        self.scheme.allowance_of_at_least(awaited.max(self.mss).max(self.before))
    }

    fn repair(&self) -> Repair {
        match self.scheme.repair() {
            Repair::Ropr(ropr) => Repair::Ropr(ropr.from(self.first)),
            other => other,
        }
    }

    forward_answers!(decorated);
}

/// A flight of the data available now, up to the `limit` of all flights together. `None` if the
/// present window admits as much, or if this is a connection with one flow.
///
/// The part of the initial window that is not in flight leaves at once, as on any connection. The
/// rest is paced over one round trip, but no more slowly than a flight in progress.
pub(super) fn later_flight(
    prior: &Prior,
    so_far: &Progress,
    limit: Bytes,
    under_way: Option<Rate>,
) -> Option<FlightPlan> {
    let room = limit.saturating_sub(so_far.sent);
    if prior.initial_window.is_zero() || room < prior.mss {
        return None;
    }
    let at_once = prior.initial_window.saturating_sub(so_far.in_flight).get() / prior.mss.get();
    let plan = paced(prior, room, at_once, prior.handshake_rtt);
    if so_far.in_flight + plan.flight <= so_far.window {
        return None;
    }
    let pace = plan.allowance.pace.max(under_way);
    let allowance = Allowance { window: so_far.in_flight + plan.allowance.window, pace };
    Some(FlightPlan { burst: prior.mss * at_once, allowance, ..plan })
}

#[cfg(test)]
mod tests {
    use super::super::steps::{Event, Expected, play};
    use super::super::{Halfback, JumpStart, Scheme, halfback, jump_start};
    use super::*;
    use crate::base;
    use crate::base::testing::{MSS, acked, lost};
    use crate::controller::Controller;
    use headstart_units::{Span, Time};

    const RTT: Span = Span::from_millis(100);

    /// A connection with an initial window of ten segments, `segments` to send, and a limit of 141
    /// for its flights.
    fn prior(segments: u64) -> Prior {
        let bare = Prior::bare(Time::ZERO, MSS, RTT, MSS * 141);
        Prior { flow_size: Some(MSS * segments), initial_window: MSS * 10, ..bare }
    }

    fn so_far(sent: u64, in_flight: u64, window: u64) -> Progress {
        Progress {
            sent: MSS * sent,
            segments: sent,
            delivered: MSS * (sent - in_flight),
            in_flight: MSS * in_flight,
            window: MSS * window,
        }
    }

    /// An ack of so many originals.
    fn ack(originals: u64, delivered: u64, in_flight: u64) -> Event {
        Event::Ack(Ack {
            first_flight_acked: MSS * originals,
            delivered: MSS * delivered,
            in_flight: MSS * in_flight,
            ..acked(Time::ZERO, MSS)
        })
    }

    fn jump_start() -> LaterFlights<JumpStart> {
        LaterFlights::new(JumpStart::new(jump_start::Params::default()))
    }

    fn halfback() -> LaterFlights<Halfback> {
        LaterFlights::new(Halfback::new(halfback::Params::default()))
    }

    /// RFC 9002 §7.2: ten packets may leave at once on any connection.
    #[test]
    fn a_flight_within_the_initial_window_is_not_paced() {
        for (segments, at_once, window, pace) in [
            (1, 10, 10, None),
            (10, 10, 10, None),
            (11, 1, 11, Some(Rate::from_bytes_per_sec(110_000))),
            (100, 1, 100, Some(Rate::from_bytes_per_sec(1_000_000))),
        ] {
            for mut start in [Scheme::JumpStart(jump_start()), Scheme::Halfback(halfback())] {
                let alone = Prior { initial_window: Bytes::ZERO, ..prior(segments) };
                let paced = Some(MSS * segments / RTT);
                assert_eq!(start.clone().establish(&alone).allowance.pace, paced, "one flow: as its paper");
                let plan = start.establish(&prior(segments));
                assert_eq!((plan.burst, plan.flight), (MSS * at_once, MSS * segments), "{segments}");
                assert_eq!(plan.allowance, Allowance { window: MSS * window, pace }, "{segments}");
                assert_eq!(start.allowance(), plan.allowance, "{segments}");
            }
        }
    }

    #[test]
    fn a_later_flight_is_the_new_data_within_the_rest_of_the_limit() {
        #[rustfmt::skip]
        let rows = [
            // sent, in flight, window, new    burst, flight, window, pace
            ((1,     0,         10,     60), Some((10, 60,  60,  500_000)), "after a first answer of one segment"),
            ((1,     0,         10,     10), None,                          "the window lets all of it go"),
            ((17,    17,        17,     60), Some((0,  60,  77,  600_000)), "the answer before is under way: nothing at once"),
            ((5,     5,         10,     20), Some((5,  20,  25,  150_000)), "of the initial window five are left"),
            ((41,    0,         10,     200), Some((10, 100, 100, 900_000)), "as far as the limit"),
            ((131,   0,         30,     60), None,                          "what is left of the limit is less than the window"),
            ((141,   0,         10,     60), None,                          "nothing is left of it"),
        ];
        for ((sent, in_flight, window, new), expected, why) in rows {
            let plan = later_flight(&prior(new), &so_far(sent, in_flight, window), MSS * 141, None);
            let expected = expected.map(|(burst, flight, window, pace)| FlightPlan {
                burst: MSS * burst,
                flight: MSS * flight,
                allowance: Allowance { window: MSS * window, pace: Some(Rate::from_bytes_per_sec(pace)) },
            });
            assert_eq!(plan, expected, "{why}");
            let alone = Prior { initial_window: Bytes::ZERO, ..prior(new) };
            assert_eq!(
                later_flight(&alone, &so_far(sent, in_flight, window), MSS * 141, None),
                None,
                "one flow"
            );
        }
    }

    #[test]
    fn a_flight_that_grows_does_not_slow_down() {
        let under_way = Some(Rate::from_bytes_per_sec(1_000_000));
        let grown = |new| later_flight(&prior(new), &so_far(98, 98, 100), MSS * 1000, under_way);
        assert_eq!(
            grown(7).and_then(|plan| plan.allowance.pace),
            under_way,
            "7 over one RTT would be 70 kB/s"
        );
        let faster = Some(Rate::from_bytes_per_sec(1_200_000));
        assert_eq!(grown(120).and_then(|plan| plan.allowance.pace), faster);
    }

    #[test]
    fn jump_start_jumps_again_and_goes_on_in_slow_start() {
        let mut start = jump_start();
        let _ = start.establish(&prior(1));
        play(
            &mut start,
            &[(100, ack(1, 1, 0), Expected::Window(11_000), "the initial window, and slow start")],
        );
        let plan = start.on_new_data(&prior(60), &so_far(1, 0, 11)).expect("more than the window");
        assert_eq!(start.allowance(), plan.allowance);
        #[rustfmt::skip]
        let steps = [
            (250, ack(1, 2, 40),   Expected::Paced(61_000, 500_000), "twenty are still to leave"),
            (300, ack(19, 21, 40), Expected::Window(62_000),         "all are out"),
        ];
        play(&mut start, &steps);
        let loss = Congestion { first_flight_lost: MSS, in_flight: MSS * 30, ..lost(Time::ZERO, MSS) };
        let _ = start.on_congestion(&loss);
        assert_eq!(start.on_new_data(&prior(200), &so_far(61, 30, 31)), None, "never after a loss");
    }

    #[test]
    fn halfback_leaves_a_small_response_to_slow_start_and_sends_the_next_as_a_flight() {
        for (originals, says, why) in [
            (29, Expected::Grows(120_000), "all of it came through, and that was all there was"),
            (20, Expected::HandsOver(22_000), "some came through as copies: s is 11 segments in 50 ms"),
        ] {
            let mut start = halfback();
            let _ = start.establish(&prior(1));
            play(
                &mut start,
                &[(100, ack(1, 1, 0), Expected::Grows(10_000), "it has measured nothing but itself")],
            );
            let _ = start.on_new_data(&prior(60), &so_far(1, 0, 12)).expect("more than the window");
            #[rustfmt::skip]
            let steps = [
                (250, ack(1, 2, 40),          Expected::Paced(59_000, 500_000), "what is missing of the flight"),
                (300, ack(19, 21, 40),        Expected::Window(40_000),         "all are out: copies"),
                (350, ack(11, 32, 29),        Expected::Window(29_000),         "past the middle of this flight"),
                (400, ack(originals, 61, 0),  says,                         why),
            ];
            play(&mut start, &steps);
        }
    }

    #[test]
    fn a_flight_of_halfbacks_that_the_threshold_cuts_short_must_be_worth_two_round_trips() {
        for (window, expected) in [(27, true), (28, false)] {
            let mut start = halfback();
            let _ = start.establish(&prior(31));
            play(&mut start, &[(200, ack(31, 31, 0), Expected::Grows(62_000), "all of it is delivered")]);
            let plan = start.on_new_data(&prior(500), &so_far(31, 0, window));
            assert_eq!(plan.is_some(), expected, "110 segments against a window of {window}");
        }
    }

    #[test]
    fn after_a_loss_or_a_mark_no_other_flight_begins() {
        for scheme in [Scheme::JumpStart(jump_start()), Scheme::Halfback(halfback())] {
            for signal in [Signal::Loss, Signal::CongestionExperienced] {
                let mut start = Controller::new(scheme, base::Kind::default(), MSS);
                let _ = start.establish(&prior(20));
                assert!(start.clone().on_new_data(&prior(60), &so_far(20, 5, 20)).is_some());
                start.on_congestion(&Congestion { signal, first_flight_lost: MSS, ..lost(Time::ZERO, MSS) });
                assert_eq!(start.on_new_data(&prior(60), &so_far(20, 5, 20)), None, "{signal:?}");
            }
        }
    }
}
