//! Pace a short flow, by default over one RTT, then retransmit it proactively from its end, one
//! packet for each that arrived.
//!
//! Source (HB below): Q. Li, M. Dong, P. B. Godfrey, "Halfback: Running Short Flows Quickly and
//! Safely", CoNEXT 2015, §3.
//!
//! ```text
//!          first ack with all of it sent        acks meet copies       all of it delivered
//!  Pacing ------------------------------> ROPR ----------------> ended ----------------> hand over
//!     |                                     |                      |
//!     +------------------ CE: hand over ----+----------------------+
//! ```
//!
//! | phase | window | pace | repair |
//! |---|---|---|---|
//! | Pacing | undelivered part of the first flight | over `pace-over` x handshake RTT | none |
//! | ROPR, ended | the same | none | [`crate::repair::ropr`], with normal retransmission |
//!
//! The window covers the undelivered part of the first flight and nothing else: a longer flow
//! continues after the hand-over, with s x RTT (§3.3).
//!
//! # Deviations
//!
//! - §3.3 estimates s "from arriving ACKs during the ROPR phase". Here from the first ack of the
//!   phase to the one that meets the copies: later acks may have been delayed by a timer. With a
//!   single ack, or none, there is no rate; then the window is the delivered bytes.
//! - §3.3 leaves open whether slow start or avoidance follows with s x RTT: avoidance, since s is a
//!   measurement of the path. RTT is the smoothed one.
//! - HB §4.2.1 "runs normal TCP retransmission in parallel with ROPR" and names no window for it;
//!   UDT, its transport, sends lost packets first and without one. None limits it here. With
//!   [`Params::limits_repair`] the window follows the delivered bytes ([`crate::first_recovery`]),
//!   as after a failed jump.
//! - A CE mark, which HB does not consider, hands the flight over to the base controller's cut, and
//!   its unsent part is still paced, over [`Params::pace_over`] of the smoothed RTT.
//! - §3.1's other threshold, "largest throughput observed on recent connections, times the RTT", is
//!   one record's rate here ([`Params::threshold_by_history`]), or without a record the fixed one.
//! - The share of additional bandwidth is a parameter because HB §5 compares 0, 50 and 100 %. HB
//!   §3.4 has none, for acks and copies meet: [`Additional::Met`]. In forward order and at line
//!   rate, where they do not, that is 50 %. At 100 % every packet is sent twice, as HB says of
//!   Proactive TCP.
//! - HB has one flow per connection; later responses on a connection are handled by
//!   [`LaterFlights`](super::LaterFlights).
//!
//! # Limits
//!
//! A transport that counts copies as in flight delays normal retransmissions until they are acked.
//!
//! A flow of unknown size that ends before the threshold stays in Pacing; its copies leave all the
//! same if the transport says that its first flight was sent.

use headstart_units::{Bytes, Rate, Ratio, Span, Time};

use super::flights::{is_out, paced};
use super::later_flights::Flights;
use super::{Requirements, Startup};
use crate::about::{About, Needs, Preset};
use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::event::{Ack, Congestion, Progress, Signal, Timeout};
use crate::first_recovery::{self, FirstRecovery};
use crate::prior::Prior;
use crate::repair::ropr::{self, Clock, Order, Per};
use crate::repair::{Proactive, Repair, Ropr};

/// The scheme's row of the catalogue.
pub const ABOUT: About = About {
    presets: &[
        Preset {
            name: "halfback-forward",
            text: "halfback(order=forward)",
            summary: "halfback, but again from the beginning",
        },
        Preset {
            name: "halfback-burst",
            text: "halfback(clock=line-rate)",
            summary: "halfback, but again at line rate",
        },
    ],
    ..About::new("halfback", Needs::FlowSize, "as jump-start, then again from the end, one for each arrival")
};

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// The Pacing Threshold; more than 95 % of web transfers are smaller.
        threshold: Bytes = PACING_THRESHOLD, in Bytes::new(1)..=Bytes::new(1 << 40), from "HB §3.1";
        /// Where there is a record, the threshold is its rate times the handshake RTT instead.
        threshold_by_history: bool = false, from "HB §3.1";
        /// Segments that leave at once before the Pacing phase; HB §4.2.4 suggests 10 as a
        /// refinement.
        burst: u64 = 0, in 0..=10_000, from "HB §3.1";
        /// The recorded window, if there is one, leaves at once instead, as in TCP-Cache.
        burst_by_history: bool = false, from "HB §4.2.4";
        /// Time over which the first flight is paced, as a share of the handshake RTT.
        pace_over: Ratio = Ratio::ONE, in Ratio::percent(1)..=Ratio::percent(1000), from "HB §3.1";
        /// Order of proactive retransmission; forward is Halfback-forward of HB §5.
        order: Order = Order::Reverse, from "HB §3.2";
        /// Copies for each packet that arrived; HB §5 proposes two for every three. At line rate
        /// the first ack releases all of them (Halfback-burst of HB §5).
        clock: Clock = Clock::Counted(Ratio::ONE), in Ratio::percent(1)..=Ratio::percent(1000), from "HB §3.2";
        /// A copy for each packet that is known to have arrived, or for each ack, which may be for
        /// several.
        per: Per = Per::Packet, from "HB §3.2";
        /// End of the copies: `met` when all that is not acknowledged has been sent again, or a
        /// share of the flight.
        additional: Additional = Additional::Met, in Ratio::percent(0)..=Ratio::percent(100), from "HB §3.4";
        /// After a loss the window is half of the delivered bytes, as JumpStart's; otherwise
        /// nothing limits normal retransmission.
        limits_repair: bool = false, from "HB §4.2.1";
        /// Stop sending copies after a congestion signal.
        stops_at_congestion: bool = false, from "HB §4.2.1";
    }
}

/// End of the copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Additional {
    /// All that is not acknowledged has been sent again (HB §3.4).
    Met,
    /// So much of the flight has (HB §5).
    Share(Ratio),
}

crate::word_or_share!(Additional { Met = "met", Share });

/// HB §3.1: more than 95 % of web transfers are smaller.
pub const PACING_THRESHOLD: Bytes = Bytes::new(141_000);

/// HB §5: 50 % of additional bandwidth.
const HALF: Ratio = Ratio::new(1, 2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The flight is being sent.
    Pacing,
    /// Copies are sent, one for each packet that arrived from the first of the phase on.
    Ropr { since: Time, delivered_before: Bytes },
    /// Acks have met the copies; `delivered` bytes arrived `within` that time.
    Ended { delivered: Bytes, within: Span },
}

/// Halfback.
#[derive(Clone, Copy, Debug)]
pub struct Halfback {
    pub(super) params: Params,
    mss: Bytes,
    phase: Phase,
    /// Offsets at which the flight begins and ends, in bytes since the connection began.
    begin: Bytes,
    flight: Bytes,
    /// The end in whole segments: the end of the window.
    end: Bytes,
    pace: Option<Rate>,
    delivered: Bytes,
    recovery: FirstRecovery,
}

impl Halfback {
    /// [`Halfback`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            mss: Bytes::ZERO,
            phase: Phase::Pacing,
            begin: Bytes::ZERO,
            flight: Bytes::ZERO,
            end: Bytes::ZERO,
            pace: None,
            delivered: Bytes::ZERO,
            recovery: FirstRecovery::new(Bytes::ZERO, first_recovery::WINDOW_AFTER_LOSS),
        }
    }

    /// With a flight in order, one copy for each ack and one ack for each segment, acks meet copies
    /// when this much is delivered (HB §3.2: half-way).
    fn meeting_point(&self) -> Bytes {
        (self.begin + self.flight) / 2
    }

    /// HB §3.1's Pacing Threshold.
    fn threshold(&self, prior: &Prior) -> Bytes {
        let recorded = prior.history.filter(|_| self.params.threshold_by_history);
        recorded.map_or(self.params.threshold, |known| known.record.btl_bw * prior.handshake_rtt)
    }

    /// Segments that leave at once: HB §4.2.4's first batch.
    fn burst(&self, prior: &Prior) -> u64 {
        let recorded = prior.history.filter(|_| self.params.burst_by_history);
        recorded.map_or(self.params.burst, |known| known.record.window.get() / prior.mss.get())
    }

    /// HB §3.3: a congestion window of s x RTT.
    fn hand_over(&self, rtt: Span) -> Next {
        let window = match self.phase {
            Phase::Ended { delivered, within } if !within.is_zero() => delivered / within * rtt,
            _ => self.delivered.saturating_sub(self.begin),
        };
        Next::HandOver(HandOver::avoiding(window.max(self.recovery.min_window())))
    }
}

impl Startup for Halfback {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        let over = prior.handshake_rtt * self.params.pace_over;
        let plan = paced(prior, self.limit(prior), self.burst(prior), over);
        self.mss = prior.mss;
        self.flight = plan.flight;
        self.end = plan.allowance.window;
        self.pace = plan.allowance.pace;
        self.recovery = FirstRecovery::new(prior.mss, first_recovery::WINDOW_AFTER_LOSS);
        plan
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) -> Next {
        let _ = self.recovery.on_ack(ack);
        self.delivered = ack.delivered;
        if ack.is_all_sent {
            self.flight = self.flight.min(ack.delivered + ack.in_flight).max(self.begin);
        }
        match self.phase {
            Phase::Pacing if is_out(self.flight, ack) => {
                self.phase = Phase::Ropr { since: ack.now, delivered_before: ack.delivered };
            }
            Phase::Ropr { since, delivered_before } if ack.delivered > self.meeting_point() => {
                let (delivered, within) = (ack.delivered - delivered_before, ack.now.since(since));
                self.phase = Phase::Ended { delivered, within };
            }
            _ => {}
        }
        if ack.delivered >= self.flight { self.hand_over(ack.rtt.smoothed) } else { Next::Stay }
    }

    fn on_congestion(&mut self, signal: &Congestion) -> Next {
        if signal.signal == Signal::Loss {
            self.recovery.on_loss(signal);
            return Next::Stay;
        }
        let pace_over = (self.phase == Phase::Pacing).then_some(self.params.pace_over);
        Next::HandOver(HandOver { pace_over, ..HandOver::to_be_cut(self.flight - self.begin) })
    }

    fn on_timeout(&mut self, _: &Timeout) -> Next {
        Next::HandOver(HandOver::to_be_cut(self.recovery.delivered()))
    }

    /// Never less than a segment: message boundaries need not coincide with the flight's end.
    #[inline]
    fn allowance(&self) -> Allowance {
        self.allowance_of_at_least(self.mss)
    }

    fn is_slow_start(&self) -> bool {
        !self.recovery.is_under_way()
    }

    fn requirements(&self) -> Requirements {
        Requirements { ends_with_flight: true, ..Requirements::default() }
    }

    fn phase(&self) -> &'static str {
        match self.phase {
            _ if self.recovery.is_under_way() => "recovery",
            Phase::Pacing => "Pacing",
            Phase::Ropr { .. } => "ROPR",
            Phase::Ended { .. } => "ROPR ended",
        }
    }

    fn repair(&self) -> Repair {
        let Params { order, clock, per, additional, stops_at_congestion, .. } = self.params;
        let budget = match additional {
            Additional::Share(share) => share,
            Additional::Met if order == Order::Reverse && clock != Clock::LineRate => Ratio::ONE,
            Additional::Met => HALF,
        };
        if budget == Ratio::new(0, 1) {
            Repair::Reactive
        } else if additional == Additional::Share(Ratio::ONE) && order == Order::Reverse {
            Repair::Proactive(Proactive::default())
        } else {
            let params = ropr::Params { order, clock, per, budget, stops_at_congestion };
            // Before `establish` it covers all data sent when it begins, rather than nothing.
            let flight = if self.flight.is_zero() { Bytes::MAX } else { self.flight };
            Repair::Ropr(Ropr::new(params, flight))
        }
    }
}

impl Flights for Halfback {
    fn limit(&self, prior: &Prior) -> Bytes {
        self.threshold(prior).min(prior.receive_window)
    }

    fn flight_end(&self) -> Bytes {
        self.flight
    }

    fn clean(&self) -> Option<Bytes> {
        let flight = self.flight - self.begin;
        (self.recovery.delivered() >= flight).then_some(flight)
    }

    fn begin(&mut self, plan: &FlightPlan, so_far: &Progress) {
        self.begin = so_far.sent;
        self.recovery = FirstRecovery::new(self.mss, first_recovery::WINDOW_AFTER_LOSS);
        self.extend(plan, so_far);
    }

    fn extend(&mut self, plan: &FlightPlan, so_far: &Progress) {
        self.phase = Phase::Pacing;
        self.flight = so_far.sent + plan.flight;
        self.end = so_far.delivered + plan.allowance.window;
        self.pace = plan.allowance.pace;
        self.delivered = so_far.delivered;
    }

    #[inline]
    fn allowance_of_at_least(&self, least: Bytes) -> Allowance {
        let missing = self.end.saturating_sub(self.delivered).max(least);
        let is_limited = self.params.limits_repair && self.recovery.is_under_way();
        let window = if is_limited { missing.min(self.recovery.window()) } else { missing };
        let pace = if self.phase == Phase::Pacing { self.pace } else { None };
        Allowance { window, pace }
    }
}

#[cfg(test)]
mod tests {
    use super::super::steps::{Event, Expected, play};
    use super::*;
    use crate::base::testing::{MSS, acked, lost, timed_out};
    use crate::history::{Record, SharedRecord};
    use headstart_units::Rate;

    /// A flow of unknown size, a receive window of ten segments, an RTT of 100 ms.
    fn prior() -> Prior {
        Prior::bare(Time::ZERO, MSS, Span::from_millis(100), MSS * 10)
    }

    fn established(params: Params) -> Halfback {
        let mut start = Halfback::new(params);
        let _ = start.establish(&prior());
        start
    }

    /// An ack of one original; `delivered` and `in_flight` in segments, after it.
    fn ack(delivered: u64, in_flight: u64) -> Event {
        Event::Ack(repairing(delivered, in_flight, false))
    }

    fn repairing(delivered: u64, in_flight: u64, in_recovery: bool) -> Ack {
        Ack {
            first_flight_acked: MSS,
            delivered: MSS * delivered,
            in_flight: MSS * in_flight,
            in_recovery,
            ..acked(Time::ZERO, MSS)
        }
    }

    /// HB §3.1: the minimum of the flow control window, the flow size and the Pacing Threshold.
    #[test]
    fn the_first_flight_is_bounded_by_the_pacing_threshold() {
        let history = |rate| {
            let record = Record {
                btl_bw: Rate::from_bytes_per_sec(rate),
                rt_prop: Span::from_millis(100),
                window: MSS,
                ssthresh: MSS,
                ..Record::default()
            };
            Some(SharedRecord { record, live: 0 })
        };
        let (fixed, largest) = (false, true);
        #[rustfmt::skip]
        let rows = [
            (fixed,   None,             None,          141_000, "the threshold"),
            (fixed,   None,             Some(100_000), 100_000, "the flow is smaller"),
            (fixed,   history(500_000), None,          141_000, "history is not asked"),
            (largest, history(500_000), None,           50_000, "500 kB/s for 100 ms"),
            (largest, history(500_000), Some(20_000),   20_000, "the flow is smaller"),
            (largest, None,             None,          141_000, "no record: the fixed threshold"),
        ];
        for (threshold_by_history, history, size, flight, why) in rows {
            let prior = Prior {
                history,
                flow_size: size.map(Bytes::new),
                receive_window: Bytes::new(1_000_000),
                ..prior()
            };
            let plan = Halfback::new(Params { threshold_by_history, ..Params::default() }).establish(&prior);
            assert_eq!(plan.flight, Bytes::new(flight), "{why}");
            assert_eq!(
                plan.allowance.pace,
                Some(Bytes::new(flight) / Span::from_millis(100)),
                "over one RTT"
            );
        }
    }

    /// HB §4.2.4: "a historically-sized window as in TCP-Cache", before the Pacing phase.
    #[test]
    fn a_recorded_window_leaves_at_once_and_the_rest_is_paced() {
        let record = Record { window: MSS * 4, ..Record::default() };
        let known = Prior { history: Some(SharedRecord { record, live: 0 }), ..prior() };
        let over_two = Params { pace_over: Ratio::percent(200), ..Params::default() };
        let by_history = Params { burst_by_history: true, ..over_two };
        #[rustfmt::skip]
        let rows = [
            (by_history, known,   4, MSS * 6,  "the window of the record, and six segments over two RTT"),
            (by_history, prior(), 1, MSS * 10, "no record"),
            (over_two,   known,   1, MSS * 10, "history is not asked"),
        ];
        for (params, prior, burst, rest, why) in rows {
            let plan = Halfback::new(params).establish(&prior);
            assert_eq!(plan.burst, MSS * burst, "{why}");
            assert_eq!(plan.allowance.pace, Some(rest / Span::from_millis(200)), "{why}");
        }
    }

    /// HB §3.4's ten packets at ten milliseconds each, of a flow that continues.
    #[test]
    fn ten_packets_are_paced_protected_and_followed_by_a_window_of_s_times_rtt() {
        let mut start = established(Params::default());
        #[rustfmt::skip]
        let steps = [
            (85,  ack(1, 7), Expected::Paced(9_000, 100_000), "an early ack: two packets are still to leave, no more"),
            (100, ack(2, 8), Expected::Window(8_000),         "all out: ROPR, and no new data with it"),
            (110, ack(3, 7), Expected::Window(7_000),         "what is missing of the flight may be in flight"),
            (120, ack(4, 6), Expected::Window(6_000),         "again"),
            (130, ack(5, 5), Expected::Window(5_000),         "again"),
            (140, ack(6, 4), Expected::Window(4_000),         "acks have met the copies: s is 4 packets in 40 ms"),
            (400, ack(9, 1), Expected::Window(1_000),         "what comes later does not change s"),
            (410, ack(10, 0), Expected::HandsOver(10_000),    "HB §3.3: 100 kB/s x 100 ms"),
        ];
        play(&mut start, &steps);
    }

    #[test]
    fn a_window_is_a_segment_at_least_though_messages_end_where_segments_do_not() {
        let mut start = established(Params::default());
        let _ = start.on_ack(&Ack { delivered: MSS * 10 - Bytes::new(1), ..repairing(10, 0, false) });
        assert_eq!(start.allowance().window, MSS);
    }

    #[test]
    fn a_slow_path_hands_over_less_than_the_flight() {
        let mut start = established(Params::default());
        #[rustfmt::skip]
        let steps = [
            (100, ack(1, 9),  Expected::Window(9_000),    "ROPR"),
            (200, ack(6, 4),  Expected::Window(4_000),    "5 packets in 100 ms"),
            (280, ack(10, 0), Expected::HandsOver(5_000), "50 kB/s x 100 ms"),
        ];
        play(&mut start, &steps);
    }

    #[test]
    fn normal_retransmission_runs_beside_the_copies() {
        let loss = |in_flight| {
            Event::Congestion(Congestion {
                first_flight_lost: MSS,
                in_flight: MSS * in_flight,
                ..lost(Time::ZERO, MSS)
            })
        };
        #[rustfmt::skip]
        let steps = [
            (100, ack(1, 9),                              Expected::Window(9_000),    "ROPR"),
            (130, ack(4, 6),                              Expected::Window(6_000),    "the second packet is missing"),
            (140, loss(4),                                Expected::Window(6_000),    "declared lost: room for it"),
            (140, Event::Ack(repairing(5, 4, true)),      Expected::Window(5_000),    "and for what else will be"),
            (180, Event::Ack(repairing(9, 1, true)),      Expected::Window(1_000),    "the last one missing"),
            (240, Event::Ack(repairing(10, 0, false)),    Expected::HandsOver(10_000), "repaired: 8 packets in 80 ms"),
        ];
        play(&mut established(Params::default()), &steps);
        #[rustfmt::skip]
        let limited = [
            steps[0], steps[1],
            (140, loss(3),                                Expected::Window(4_000),    "no more than packet conservation lets go"),
            (140, Event::Ack(repairing(5, 1, true)),      Expected::Window(2_000),    "half of the two that are known to be originals"),
        ];
        play(&mut established(Params { limits_repair: true, ..Params::default() }), &limited);
    }

    #[test]
    fn a_timeout_hands_over_the_delivered_bytes() {
        let mut start = established(Params::default());
        #[rustfmt::skip]
        let steps = [
            (100, ack(1, 9), Expected::Window(9_000), "one packet got through"),
            (400, Event::Timeout(timed_out(Time::ZERO)), Expected::Cut(1_000), "and nothing else"),
        ];
        play(&mut start, &steps);
    }

    #[test]
    fn a_mark_hands_over_but_the_flight_stays_paced() {
        for pace_over in [Ratio::ONE, Ratio::percent(200)] {
            let mut start = established(Params { pace_over, ..Params::default() });
            let mark = Congestion { signal: Signal::CongestionExperienced, ..lost(Time::ZERO, Bytes::ZERO) };
            let expected = HandOver { pace_over: Some(pace_over), ..HandOver::to_be_cut(MSS * 10) };
            assert_eq!(start.on_congestion(&mark), Next::HandOver(expected), "no faster than before");
        }
    }

    /// HB §5: the ablations are parameters of the same scheme.
    #[test]
    fn variants_differ_in_their_repair_alone() {
        let half = Params::default();
        let ropr = |params: Params| match established(params).repair() {
            Repair::Ropr(ropr) => ropr.params(),
            other => panic!("{other:?}"),
        };
        assert_eq!(ropr(half), ropr::Params::default());
        assert_eq!(ropr(Params { order: Order::Forward, ..half }).order, Order::Forward);
        assert_eq!(ropr(Params { clock: Clock::LineRate, ..half }).clock, Clock::LineRate);
        assert_eq!(ropr(Params { per: Per::Ack, ..half }).per, Per::Ack);
        let of = |percent| Additional::Share(Ratio::percent(percent));
        assert_eq!(ropr(Params { additional: of(25), ..half }).budget, Ratio::new(1, 4));
        for params in [Params { order: Order::Forward, ..half }, Params { clock: Clock::LineRate, ..half }] {
            assert_eq!(ropr(params).budget, HALF, "acks do not meet these copies");
        }
        let none = established(Params { additional: of(0), ..half });
        assert!(matches!(none.repair(), Repair::Reactive));
        let twice = established(Params { additional: of(100), ..half });
        assert!(matches!(twice.repair(), Repair::Proactive(_)));
        // Forward order at 100 % still sends one copy per ack, to the end of the flight.
        let forward = Params { order: Order::Forward, additional: of(100), ..half };
        assert_eq!(
            ropr(forward),
            ropr::Params { order: Order::Forward, budget: Ratio::ONE, ..ropr::Params::default() }
        );
    }
}
