//! Quick-Start: send at the rate that every router approved for one RTT, then continue as TCP.
//!
//! Sources: P. Sarolahti, M. Allman, S. Floyd, "Evaluating Quick-Start for TCP", February 2005 (QS
//! below); RFC 4782 §4.
//!
//! ```text
//!              not granted, or not more than the initial window
//!  (prior) --------------------------------------------------> slow start
//!     | granted                                                    | loss or CE
//!     |                                                            +---> hand over, to be cut
//!     v            ack of a Quick-Start packet                 all delivered
//!  quick start -----------------------------> validating ---------------> hand over, in slow start
//!     |                                           |                           ^
//!     +---- loss or CE of a Quick-Start packet ---+                           |
//!                                |                                            |
//!                                +--------------> restarting --- repaired ----+
//!                                +--------------> hand over, half the window (if failures halve)
//! ```
//!
//! | phase | window | pace |
//! |---|---|---|
//! | quick start | rate x RTT / (MSS + H) segments (QS Equation 1) | the granted rate |
//! | validating | one byte more per byte acked, from the flight size on | none |
//! | slow start | one byte more per byte acked | none |
//! | restarting | the default initial window, growing by acks of later data | none |
//!
//! # Deviations
//!
//! - QS ends the Quick-Start phase at the first ack; a packet sent in it can still be lost
//!   afterwards, a failure too. Hence the phase "validating", with slow start's growth.
//! - The window at the first ack is cut to the flight size (RFC 4782 §4.4), so that a short burst
//!   leaves no unused window behind.
//! - RFC 4782 §4.4 recommends limited slow start (RFC 3742) after the flight. QS does not, and no
//!   other scheme here implements it: omitted.
//! - QS's "slow-start, using the default initial window," happens while the losses are repaired.
//!   Acks of data sent before the failure do not open the window: they are no evidence of its rate.
//! - After a failure the threshold stays where it was (none), "as it would have done if Quick-Start
//!   had not been approved". RFC 4782 §4.6, which is younger, lowers it to half of the delivered
//!   bytes (SHOULD).
//! - In the middle of a connection a failure is answered as at its beginning. RFC 4782 §4.8 takes
//!   half the Quick-Start window where that is less than the default one, which holds for very
//!   small grants only.
//! - A timeout before the flight is delivered is handled by the base controller from the default
//!   initial window.
//! - A grant of no more than the default initial window is not used.
//! - Figure 4's third answer, no Quick-Start at all, is [`Amount::Never`].
//!
//! # Limits
//!
//! In the middle of a connection the scheme starts anew when it is established anew with a grant;
//! the base controller's threshold is not remembered longer. No sender reports the approved
//! rate, which RFC 4782 §3.1 requires for policing: no router here polices.

use headstart_units::{Bytes, Rate, Ratio, Span, Time};

use super::{Requirements, Startup};
use crate::about::{About, Needs};
use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::event::{Ack, Congestion, Timeout};
use crate::growth::{Decision, Exit, Growth};
use crate::prior::Prior;
use crate::quick_start::router::Granularity;
use crate::quick_start::{Amount, RequestInputs};

/// The response to a failure (QS §6.3, Figure 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Slow start from the default initial window.
    SlowStart,
    /// Half the window, then avoidance, as TCP after any loss.
    Halve,
}

crate::words!(Failure { SlowStart = "slow-start", Halve = "halve" });

/// The scheme's row of the catalogue.
pub const ABOUT: About = About {
    not_over_udp: Some("its requests are options of the IP header, which a UDP socket does not let through"),
    ..About::new("quick-start", Needs::Routers, "the rate that every router grants, for one RTT (RFC 4782)").not_over_tcp(
        "a server's request is an IP option of its SYN-ACK, which the kernel refuses to sock_ops with EINVAL and has no place for \
         in a congestion control, and its grant is in the routers' copy of it",
    )
};

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// The default initial window in segments; QS has 3.
        initial_window: u64 = 10, in 1..=10_000, from "RFC 6928 §2";
        /// H of Equation 1: header bytes per segment.
        header: Bytes = Bytes::new(52), in Bytes::ZERO..=Bytes::new(1000), from "IPv4, TCP and timestamps";
        /// The rate to request.
        amount: Amount = Amount::Object, in Rate::from_bytes_per_sec(1)..=Rate::from_mbit_per_sec(1_000_000), from "QS §6.2";
        /// The socket's buffer, for requests that depend on a window: of `window`, and of `object`
        /// for an unknown size.
        socket_buffer: Bytes = Bytes::new(65_536), in Bytes::new(1)..=Bytes::new(1 << 40), from "QS §6.2";
        /// Resolution of a requested rate: the four bits of RFC 4782, rounded up, or one byte per
        /// second.
        granularity: Granularity = Granularity::Encoded, from "RFC 4782";
        /// RTT assumed for the request where none has been measured.
        assumed_rtt: Span = Span::from_millis(100), in Span::from_micros(1)..=Span::from_secs(100), from "RFC 4782 §4.1";
        /// The response to a failure: slow start from the default initial window, or half the
        /// window.
        failure: Failure = Failure::SlowStart, from "QS §6.3";
        /// Request again when there is more to send after an idle period.
        repeats_request: bool = true, from "QS §1, RFC 4782 §4.8";
        /// End of slow start other than by congestion, if nothing was granted.
        exit: Exit = Exit::Loss, from "QS is older than that";
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The flight leaves at the granted rate.
    QuickStart { pace: Rate },
    /// Ack clocking; part of the flight is not delivered yet.
    Validating,
    /// The flight failed at `since`; data sent before does not count.
    Restarting { since: Time },
    /// As TCP.
    SlowStart,
}

/// Quick-Start's sender.
#[derive(Clone, Copy, Debug)]
pub struct QuickStart {
    pub(super) params: Params,
    phase: Phase,
    mss: Bytes,
    window: Bytes,
    /// The flight in bytes, and its delivered part.
    flight: Bytes,
    through: Bytes,
    growth: Growth,
    /// A Quick-Start packet of this connection was lost or marked.
    has_failed: bool,
}

impl QuickStart {
    /// [`QuickStart`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            phase: Phase::SlowStart,
            mss: Bytes::ZERO,
            window: Bytes::ZERO,
            flight: Bytes::ZERO,
            through: Bytes::ZERO,
            growth: Growth::new(params.exit),
            has_failed: false,
        }
    }

    /// The scheme with this RTT in requests for which none was measured.
    #[must_use]
    pub const fn assuming_rtt(mut self, rtt: Span) -> Self {
        self.params.assumed_rtt = rtt;
        self
    }

    fn initial_window(&self) -> Bytes {
        self.mss * self.params.initial_window
    }

    /// Further lost or marked packets of the flight belong to the same failure.
    fn begin_restarting(&mut self, now: Time) {
        self.window = self.initial_window();
        self.phase = Phase::Restarting { since: now };
    }

    fn grow(&mut self, ack: &Ack) -> Next {
        match self.growth.on_ack(&mut self.window, ack) {
            Decision::Continue => Next::Stay,
            Decision::Exit => Next::HandOver(HandOver::avoiding(self.window)),
        }
    }
}

impl Startup for QuickStart {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.mss = prior.mss;
        self.phase = Phase::SlowStart;
        self.window = self.initial_window();
        let Some((window, pace)) = prior.granted.map(|rate| flight(rate, prior, self.params.header)) else {
            return FlightPlan::burst(self.window);
        };
        if window <= self.window {
            return FlightPlan::burst(self.window);
        }
        self.window = window;
        self.flight = window.min(prior.sendable());
        self.through = Bytes::ZERO;
        self.phase = Phase::QuickStart { pace };
        FlightPlan { burst: self.mss, flight: self.flight, allowance: self.allowance() }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) -> Next {
        self.through += ack.first_flight_acked;
        match self.phase {
            // In the middle of a connection data sent before the grant is acknowledged first.
            Phase::QuickStart { .. } if ack.first_flight_acked.is_zero() => Next::Stay,
            Phase::QuickStart { .. } => {
                self.window = self.window.min(ack.in_flight + ack.newly_acked).max(self.initial_window());
                self.phase = Phase::Validating;
                let _ = self.growth.on_ack(&mut self.window, ack);
                Next::Stay
            }
            Phase::Validating => {
                let _ = self.growth.on_ack(&mut self.window, ack);
                if self.through >= self.flight {
                    return Next::HandOver(HandOver::growing(self.window));
                }
                Next::Stay
            }
            Phase::Restarting { since } if ack.newest_sent_at > since => {
                self.window += ack.newly_acked;
                if ack.in_recovery { Next::Stay } else { Next::HandOver(HandOver::growing(self.window)) }
            }
            Phase::Restarting { .. } => Next::Stay,
            Phase::SlowStart => self.grow(ack),
        }
    }

    fn on_congestion(&mut self, signal: &Congestion) -> Next {
        match self.phase {
            Phase::QuickStart { .. } | Phase::Validating => {
                self.has_failed = true;
                match self.params.failure {
                    Failure::SlowStart => {
                        self.begin_restarting(signal.now);
                        Next::Stay
                    }
                    Failure::Halve => {
                        let half = (self.window * HALF).max(self.mss * MINIMUM_SEGMENTS);
                        Next::HandOver(HandOver::avoiding(half))
                    }
                }
            }
            // Losses of the same flight; a loss of later data hands over to the base controller.
            Phase::Restarting { since } if signal.newest_lost_sent_at <= since => Next::Stay,
            Phase::Restarting { .. } | Phase::SlowStart => Next::HandOver(HandOver::to_be_cut(self.window)),
        }
    }

    fn on_timeout(&mut self, _: &Timeout) -> Next {
        let window = match self.phase {
            Phase::QuickStart { .. } | Phase::Validating => {
                self.has_failed = true;
                self.window.min(self.initial_window())
            }
            Phase::Restarting { .. } | Phase::SlowStart => self.window,
        };
        Next::HandOver(HandOver::to_be_cut(window))
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        match self.phase {
            Phase::QuickStart { pace } => Allowance { window: self.window, pace: Some(pace) },
            _ => Allowance::window(self.window),
        }
    }

    fn phase(&self) -> &'static str {
        match self.phase {
            Phase::QuickStart { .. } => "quick start",
            Phase::Validating => "validating",
            Phase::Restarting { .. } => "restarting",
            Phase::SlowStart => self.growth.phase(),
        }
    }

    fn request(&self, known: &RequestInputs) -> Option<Rate> {
        // Not on a connection that has seen a failure (RFC 4782 §4.6).
        if known.is_after_idle && (!self.params.repeats_request || self.has_failed) {
            return None;
        }
        let Params { initial_window, header, amount, socket_buffer, assumed_rtt, .. } = self.params;
        let initial = known.mss * initial_window;
        let rate = amount.rate(known, header, initial, assumed_rtt, socket_buffer)?;
        Some(self.params.granularity.round_up(rate))
    }

    fn requirements(&self) -> Requirements {
        Requirements {
            fixed_request: matches!(self.params.amount, Amount::Fixed(_)),
            ..Requirements::default()
        }
    }
}

/// QS §6.3: the reduction of TCP after a loss.
const HALF: Ratio = Ratio::new(1, 2);
/// RFC 5681 §3.1: never below two segments after a loss.
const MINIMUM_SEGMENTS: u64 = 2;

/// QS Equation 1: rate x RTT / (MSS + H) whole segments; and the pace that fills the RTT.
fn flight(rate: Rate, prior: &Prior, header: Bytes) -> (Bytes, Rate) {
    let segments = (rate * prior.handshake_rtt).get() / (prior.mss + header).get().max(1);
    let window = prior.mss * segments;
    (window, (window / prior.handshake_rtt).max(Rate::from_bytes_per_sec(1)))
}

#[cfg(test)]
mod tests {
    use super::super::steps::{Event, Expected, play};
    use super::super::timeline::apply;
    use super::*;
    use crate::base::testing::{MSS, acked, lost, timed_out};
    use crate::event::Signal;

    /// A path of 100 ms with a grant in bytes per second; without headers 1 kB/s is 0.1 segments.
    fn prior(granted: Option<u64>) -> Prior {
        let bare = Prior::bare(Time::ZERO, MSS, Span::from_millis(100), MSS * 10_000);
        Prior { granted: granted.map(Rate::from_bytes_per_sec), ..bare }
    }

    fn start(failure: Failure) -> QuickStart {
        let header = Bytes::ZERO;
        QuickStart::new(Params { initial_window: 3, header, failure, ..Params::default() })
    }

    /// An ack of one segment of the flight; `in_flight` segments remain in flight.
    fn ack(in_flight: u64) -> Event {
        let ack = acked(Time::ZERO, MSS);
        Event::Ack(Ack { first_flight_acked: MSS, in_flight: MSS * in_flight, ..ack })
    }

    /// An ack of one segment that was sent again at `sent_at`.
    fn again(sent_at: u64, in_recovery: bool) -> Event {
        let newest_sent_at = Time::from_millis(sent_at);
        Event::Ack(Ack { newest_sent_at, in_recovery, ..acked(Time::ZERO, MSS) })
    }

    fn loss(sent_at: u64) -> Event {
        Event::Congestion(Congestion {
            newest_lost_sent_at: Time::from_millis(sent_at),
            first_flight_lost: MSS,
            ..lost(Time::ZERO, MSS)
        })
    }

    /// QS Equation 1 at its corners.
    #[test]
    fn the_window_is_the_rate_over_one_rtt_in_whole_segments() {
        #[rustfmt::skip]
        let rows = [
            // bytes per second  header  segments  pace
            (Some(1_000_000),    0,      100,      Some(1_000_000), "100 kB in 100 ms"),
            (Some(1_000_000),    250,    80,       Some(800_000),   "headers take a fifth"),
            (Some(1_009_999),    0,      100,      Some(1_000_000), "whole segments"),
            (Some(40_000),       0,      4,        Some(40_000),    "one more than the initial window"),
            (Some(39_999),       0,      3,        None,            "nothing to gain"),
            (None,               0,      3,        None,            "not granted"),
        ];
        for (granted, header, segments, pace, why) in rows {
            let params = Params { initial_window: 3, header: Bytes::new(header), ..Params::default() };
            let plan = QuickStart::new(params).establish(&prior(granted));
            let found = (plan.allowance.window, plan.allowance.pace.map(Rate::as_bytes_per_sec));
            assert_eq!(found, (MSS * segments, pace), "{why}");
            assert_eq!(plan.burst, if pace.is_some() { MSS } else { MSS * 3 }, "{why}");
        }
    }

    #[test]
    fn a_delivered_flight_continues_in_slow_start() {
        let mut start = start(Failure::SlowStart);
        let _ = start.establish(&Prior { flow_size: Some(MSS * 6), ..prior(Some(60_000)) });
        #[rustfmt::skip]
        let steps = [
            (100, ack(5), Expected::Window(7_000),  "the first ack: ack clocking, two for one"),
            (101, ack(4), Expected::Window(8_000),  "one byte for each byte"),
            (102, ack(3), Expected::Window(9_000),  ""),
            (103, ack(2), Expected::Window(10_000), ""),
            (104, ack(1), Expected::Window(11_000), ""),
            (105, ack(0), Expected::Grows(12_000), "all of it is through: TCP goes on"),
        ];
        play(&mut start, &steps);
    }

    /// RFC 4782 §4.6: no further request on this connection (SHOULD NOT).
    #[test]
    fn no_request_follows_a_failure() {
        let timeout = Event::Timeout(timed_out(Time::ZERO));
        let after_idle = RequestInputs {
            mss: MSS,
            size: Some(Bytes::new(100_000)),
            rtt: Some(Span::from_millis(100)),
            receive_window: None,
            is_after_idle: true,
        };
        for (event, asks) in [(ack(5), true), (loss(50), false), (timeout, false)] {
            for failure in [Failure::SlowStart, Failure::Halve] {
                let mut start = start(failure);
                let _ = start.establish(&prior(Some(60_000)));
                let _ = apply(&mut start, event);
                let requests = |start: &QuickStart| start.request(&after_idle).is_some();
                assert_eq!(requests(&start), asks, "{event:?}");
                let _ = start.establish(&prior(None));
                assert_eq!(requests(&start), asks, "whatever is granted later");
            }
        }
    }

    #[test]
    fn an_unused_grant_does_not_raise_the_window() {
        let mut start = start(Failure::SlowStart);
        let _ = start.establish(&prior(Some(1_000_000)));
        play(&mut start, &[(100, ack(19), Expected::Window(21_000), "20 of the 100 had left")]);
    }

    /// QS §6.3, the middle plot of Figure 4.
    #[test]
    fn a_failure_starts_over_from_the_initial_window() {
        let mut start = start(Failure::SlowStart);
        let _ = start.establish(&prior(Some(1_000_000)));
        #[rustfmt::skip]
        let steps = [
            (101, ack(99),          Expected::Window(101_000), "the first ack"),
            (110, loss(9),          Expected::Window(3_000),   "a packet is missing"),
            (120, ack(60),          Expected::Window(3_000),   "what was sent before does not count"),
            (130, loss(60),         Expected::Window(3_000),   "more of the same failure"),
            (215, again(112, true), Expected::Window(4_000),   "slow start, while it is repaired"),
            (216, again(113, true), Expected::Window(5_000),   ""),
            (320, again(217, false), Expected::Grows(6_000), "repaired: slow start goes on"),
        ];
        play(&mut start, &steps);
    }

    /// QS §6.3, the top plot of Figure 4.
    #[test]
    fn a_failure_halves_the_window_if_configured() {
        let mut start = start(Failure::Halve);
        let _ = start.establish(&prior(Some(1_000_000)));
        let steps = [
            (101, ack(99), Expected::Window(101_000), "the first ack"),
            (110, loss(9), Expected::HandsOver(50_500), "half, and avoidance"),
        ];
        play(&mut start, &steps);
    }

    /// QS §6.3, last paragraph: ECN is handled like a loss.
    #[test]
    fn a_mark_is_a_failure_as_a_loss_is() {
        let mut start = start(Failure::SlowStart);
        let _ = start.establish(&prior(Some(1_000_000)));
        let mark = Congestion { signal: Signal::CongestionExperienced, ..lost(Time::ZERO, Bytes::ZERO) };
        let steps = [
            (101, Event::Congestion(mark), Expected::Window(3_000), "before the first ack is told"),
            (101, ack(99), Expected::Window(3_000), "which was sent before"),
            (205, again(105, false), Expected::Grows(4_000), "nothing to repair: slow start"),
        ];
        play(&mut start, &steps);
    }

    #[test]
    fn a_timeout_does_not_begin_from_the_size_of_the_flight() {
        let mut start = start(Failure::SlowStart);
        let _ = start.establish(&prior(Some(1_000_000)));
        let steps =
            [(1_000, Event::Timeout(timed_out(Time::ZERO)), Expected::Cut(3_000), "the default window")];
        play(&mut start, &steps);
    }

    #[test]
    fn absurd_grants_do_no_harm() {
        for mut prior in crate::history::testing::absurd_priors() {
            prior.granted = prior.history.map(|known| known.record.btl_bw);
            let mut start = QuickStart::new(Params::default());
            let plan = start.establish(&prior);
            assert!(!plan.burst.is_zero() && plan.allowance.pace != Some(Rate::ZERO));
            let _ = start.on_ack(&acked(Time::from_millis(1), prior.mss));
        }
    }
}
