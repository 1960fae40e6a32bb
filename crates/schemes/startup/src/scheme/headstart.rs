//! Send a first flight of the size that probably fits the path, and learn that size from losses.
//!
//! Source: this project's own (docs/headstart.md; HS below). From JumpStart it takes the paced
//! first flight, and half of the delivered bytes as the window after a loss. The record by peer is
//! WiseStart's.
//!
//! # Idea
//!
//! The capacity K of a path for the next round trip is a random variable. Of a flight of n bytes,
//! those that fit save round trips, and n - K are lost, at a cost to this flow and to others. If a
//! lost byte costs p times the gain of a delivered byte, the flight of least expected cost loses
//! the share 1/(1 + p) on average: the newsvendor's quantile. A **credit** that rises by 1/e of
//! each delivered byte and falls by p/e of each lost byte has its equilibrium exactly there, for
//! any distribution. Random losses rarer than that share do not move it.
//!
//! # Rule
//!
//! 1. The flight is the peer's credit; of a first contact, 50 segments at first, and a credit that
//!    all first contacts move together. It is at least three quarters of the recorded rate times
//!    the smallest RTT on record. Above 50 segments, a known peer's flight is multiplied by the
//!    trust in records. All flights of its network move that: e / 4 x the share delivered - p e / 4
//!    x the share lost.
//! 2. Less the flights of this host to the same peer that are not acknowledged yet. Times
//!    m/(m + 8 q) if the handshake took q longer than m, the RTT on record, and the time in which
//!    both ends process it, which is on record too.
//! 3. Two segments leave at once, and the rest at the flight's limit over one RTT, also where the
//!    flow is shorter. That is the handshake's, less the time on record in which both ends process
//!    it, and no less than the RTT on record. A pace above the flow over one RTT is at most twice
//!    that, and at most the recorded rate. Ten segments or less leave at once (RFC 6928), and so
//!    below 10 ms.
//! 4. Credit + 1/16 of the delivered bytes - 2 times the lost ones (p = 32): not above twice the
//!    bytes in flight, not below ten segments. A flight that the path spread earns a quarter of
//!    that: it filled a queue. A mark counts as an eighth of the flight lost.
//! 5. The recorded rate is that of the flight's arrival ([`FlightTrain`]), and twice that where the
//!    path did not spread the flight; at least the delivery rate of the connection. After a loss or
//!    a mark it is the rate that arrived. A connection too short to fill the path on record does
//!    not lower the rate, unless the path spread its flight.
//! 6. Neither credit nor rate ages. A false record costs one flight, which corrects it.
//!
//! ```text
//!                      first ack with                    loss elsewhere,
//!   > ten segments     all of it sent                    CE or delay
//!  --------------> first flight ---------> slow start -----------------> hand over
//!                       |                   ^      |                         ^
//!                       | loss of first-    |      | loss of first-          | the recovery
//!                       | flight packets    |      | flight packets          | ends
//!                       +-------------------|------+-------> recovery -------+
//!                                           |
//!  -----------------------------------------+
//!   ten segments or less, or a short path
//! ```
//!
//! | phase | window | pace |
//! |---|---|---|
//! | first flight | rules 1 and 2; two segments at once | the limit over one RTT |
//! | slow start | one byte more for each byte acked, with [`Growth::after_flight`] | none |
//! | recovery | half of the delivered bytes, at least one segment more than in flight | none |
//!
//! # Deviations
//!
//! There is no text to deviate from.
//!
//! # Limits
//!
//! - It relies on a recovery that detects lost retransmissions (RACK, or QUIC's); with RFC 6675
//!   alone it is slower than slow start.
//! - Without a store that accounts for flights ([`Prior::shared_credit`]) every start is a first
//!   contact, and none updates the credit.
//! - Later flights of a connection ([`Startup::on_new_data`]) stay within the limit of the first
//!   one but are not reserved.
//! - Losses of five segments or fewer lower a false credit by their price ([`Revision::most`]).

use headstart_units::{Bytes, Rate, Ratio, Span, Time};

use super::flights::is_out;
use super::later_flights::later_flight;
use super::{Requirements, Startup};
use crate::about::{About, Needs};
use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::event::{Ack, Congestion, Progress, Signal, Timeout};
use crate::first_recovery::{FirstRecovery, WINDOW_AFTER_LOSS};
use crate::growth::{Decision, Exit, Growth};
use crate::history::{FlightOutcome, Record, RecordUpdate, Revision, raised_slowly};
use crate::path::{FlightTrain, LARGEST_WINDOW};
use crate::prior::Prior;

/// The scheme's row of the catalogue.
pub const ABOUT: About = About::new(
    "headstart",
    Needs::Nothing,
    "as much as a credit allows that each loss lowers, paced over one RTT",
)
.over_tcp();

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// The least first flight in segments, which leaves at once.
        initial_window: u64 = 10, in 1..=1000, from "RFC 6928";
        /// Segments of a larger flight that leave at once.
        burst: u64 = 2, in 1..=1000, from "HS";
        /// Segments of 1448 bytes that a first contact may send before any result of another.
        initial_credit: u64 = 50, in 1..=100_000, from "HS";
        /// Bytes by which the credit rises for each delivered byte.
        credit_gain: Ratio = Ratio::new(1, 16), in Ratio::percent(0)..=Ratio::ONE, from "HS";
        /// Cost of a lost byte, in delivered bytes.
        price: u64 = 32, in 0..=1_000_000, from "HS";
        /// Weight c of the handshake's queueing delay q: the credit is scaled by RTT / (RTT + c q).
        queue_weight: u64 = 8, in 0..=1000, from "HS";
        /// Least handshake RTT for a flight; below it a round trip costs less than pacing: slow
        /// start.
        min_rtt: Span = Span::from_millis(10), in Span::ZERO..=Span::from_secs(60), from "HS";
        /// Count other connections' first flights to the peer. For ablations.
        counts_concurrent: bool = true, from "HS";
        /// First contacts use and update a shared credit. For ablations.
        learns_initial_credit: bool = true, from "HS";
    }
}

/// `Headstart`.
#[derive(Clone, Copy, Debug)]
pub struct Headstart {
    pub(super) params: Params,
    mss: Bytes,
    /// Limit of the first flight in bytes.
    flight: Bytes,
    /// Limit in bytes of all flights of the connection together.
    limit: Bytes,
    /// Pace planned for the last flight.
    pace: Option<Rate>,
    allowance: Allowance,
    growth: Growth,
    recovery: FirstRecovery,
    /// Bytes of the first flight that were lost; a mark counts as [`MARKED_SHARE`] of those sent.
    lost: Bytes,
    train: FlightTrain,
    /// Time of the last ack, and the smallest RTT.
    last_ack: Option<(Time, Span)>,
    is_settled: bool,
    record: Option<Record>,
    /// RTT of the handshake; `None` if one of its packets was retransmitted.
    handshake_rtt: Option<Span>,
    /// Bytes of other first flights to the peer in progress when this one began.
    reserved_by_others: Bytes,
}

/// Payload of a TCP segment on Ethernet: a path has room for bytes, and QUIC's packets are smaller.
const SEGMENT: Bytes = Bytes::new(1448);
/// Share of a marked first flight that counts as lost: a mark signals a queue, not its length.
const MARKED_SHARE: Ratio = Ratio::new(1, 8);
/// Share of the path on record that a flight takes at least: its queue belongs to others too.
const FLOOR: Ratio = Ratio::new(3, 4);
/// A flight shorter than its limit leaves at most so many times as fast as over one RTT.
const MOST_PACE: u64 = 2;
/// A flight that the path spread filled a queue, and the next one may find that room taken: what it
/// delivered earns this part of the gain.
const TAKEN: u64 = 4;
/// Factor by which a record exceeds the rate of a flight that the path did not spread.
const PROBE: u64 = 2;
/// Noise of an RTT: a smaller excess over the expected one is not a queue.
const NOISE: Span = Span::from_millis(1);
/// The most that is taken for processing of the handshake and not for a queue.
const LARGEST_EXCESS: Span = Span::from_millis(20);

impl Headstart {
    /// [`Headstart`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            mss: Bytes::ZERO,
            flight: Bytes::ZERO,
            limit: Bytes::ZERO,
            pace: None,
            allowance: Allowance::window(Bytes::ZERO),
            growth: Growth::new(Exit::HyStart),
            recovery: FirstRecovery::new(Bytes::ZERO, WINDOW_AFTER_LOSS),
            lost: Bytes::ZERO,
            train: FlightTrain::default(),
            last_ack: None,
            is_settled: false,
            record: None,
            handshake_rtt: None,
            reserved_by_others: Bytes::ZERO,
        }
    }

    fn initial_bytes(&self) -> Bytes {
        self.mss * self.params.initial_window
    }

    fn initial_credit(&self) -> Bytes {
        SEGMENT * self.params.initial_credit
    }

    /// First flight in bytes that the credit allows on the path at present.
    fn allowed(&self, prior: &Prior) -> Bytes {
        let shared = prior.shared_credit.unwrap_or_default();
        let credit = match &self.record {
            None if !self.params.learns_initial_credit => self.initial_credit(),
            _ => shared.credit.unwrap_or(self.initial_credit()),
        };
        let of_record = self.record.and_then(|record| record.bdp()).unwrap_or_default();
        let credit = credit.max(of_record * FLOOR);
        let credit = match self.record {
            // A peer that is known gets no less than a stranger for the losses of others.
            Some(_) => (credit * shared.trust()).max(credit.min(self.initial_credit())),
            None => credit,
        };
        let least_rtt = self.record.map_or(prior.handshake_rtt, |record| record.rt_prop);
        let beyond = prior.handshake_rtt.saturating_sub(least_rtt);
        let queue = beyond.saturating_sub(self.excess()).saturating_sub(NOISE);
        let weighed = least_rtt + queue * self.params.queue_weight;
        let less_queue = if queue.is_zero() { credit } else { (credit / weighed) * least_rtt };
        less_queue
            .min(credit.saturating_sub(self.reserved_by_others))
            .clamp(self.initial_bytes(), LARGEST_WINDOW)
    }

    /// Time of the handshake that processing took on earlier visits.
    fn excess(&self) -> Span {
        self.record.map_or(Span::ZERO, |record| record.handshake_excess.min(LARGEST_EXCESS))
    }

    /// Revision of the credit by the first `known` bytes of the flight, of which some were lost.
    fn revision(&self, known: Bytes) -> Revision {
        let credit_gain = self.params.credit_gain;
        let earned = known.saturating_sub(self.lost) * credit_gain;
        let is_spread = self.train.arrival(self.mss).is_some_and(|arrival| arrival.is_spread);
        Revision {
            start: self.initial_credit(),
            earned: if is_spread { earned / TAKEN } else { earned },
            // A delivered flight shows room for at most twice the bytes that were then in flight.
            most: (known + self.reserved_by_others) * 2,
            spent: self.lost * credit_gain * self.params.price,
            least: self.initial_bytes(),
            known,
        }
    }

    /// Record of the first flight alone, of a connection too short to measure more. It is no
    /// evidence against a larger rate on record, unless the path spread it or it lost.
    fn of_flight(&self) -> Option<Record> {
        let (saved_at, rt_prop) = self.last_ack?;
        let before = self.record.map(|it| it.btl_bw);
        let btl_bw = match self.train.arrival(self.mss) {
            Some(arrival) if arrival.is_spread || !self.lost.is_zero() => arrival.rate,
            Some(arrival) => before.map_or(arrival.rate, |before| before.max(arrival.rate)),
            None => before.filter(|_| !self.lost.is_zero())?,
        };
        Some(Record { saved_at, rt_prop, btl_bw, ..Record::default() })
    }

    /// The path's rate: the rate of the flight's arrival if the path was full, otherwise twice
    /// that, so that the next flight finds out.
    fn rate(&self, measured: Rate) -> Rate {
        let is_clean = self.lost.is_zero();
        let rate = match (self.train.arrival(self.mss), &self.record) {
            (Some(arrival), _) if arrival.is_spread || !is_clean => arrival.rate,
            (Some(arrival), _) => arrival.rate * PROBE,
            (None, Some(before)) if is_clean => before.btl_bw,
            _ => measured,
        };
        if is_clean { rate.max(measured) } else { rate }
    }
}

impl Startup for Headstart {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.mss = prior.mss;
        self.recovery = FirstRecovery::new(prior.mss, WINDOW_AFTER_LOSS);
        self.record = prior.history.map(|shared| shared.record).filter(|record| !record.rt_prop.is_zero());
        self.reserved_by_others = prior
            .shared_credit
            .filter(|_| self.params.counts_concurrent)
            .map_or(Bytes::ZERO, |shared| shared.reserved);
        self.handshake_rtt = Some(prior.handshake_rtt).filter(|_| !prior.handshake_retransmitted);
        // A queue in the handshake does not make the path longer.
        let least_rtt = self.record.map_or(prior.handshake_rtt, |it| it.rt_prop.min(prior.handshake_rtt));
        let is_short = least_rtt < self.params.min_rtt;
        let allowed = if is_short { self.initial_bytes() } else { self.allowed(prior) };
        self.limit = allowed.min(prior.receive_window);
        let admitted = self.limit.get() / prior.mss.get();
        let wanted = prior.flow_size.map_or(u64::MAX, |size| size.get().div_ceil(prior.mss.get()));
        let segments = admitted.min(wanted).max(1);
        let plan = if segments <= self.params.initial_window {
            let window = self.initial_bytes();
            FlightPlan { flight: prior.flow_size.unwrap_or(window).min(window), ..FlightPlan::burst(window) }
        } else {
            let window = prior.mss * segments;
            let flight = prior.flow_size.map_or(window, |size| size.min(window));
            let burst = window.min(self.mss * self.params.burst);
            let least = window / prior.handshake_rtt;
            // All of the limit may leave in one RTT, so shorter flights may have more than their
            // own rate. A false record must not send them all at once, and above the path's rate
            // they would only queue.
            let rtt = prior.handshake_rtt.saturating_sub(self.excess()).max(least_rtt);
            let most = self.limit.min(flight * MOST_PACE) / rtt;
            let pace = self.record.map_or(most, |record| most.min(record.btl_bw)).max(least);
            FlightPlan { flight, ..FlightPlan::paced(burst, window, pace) }
        };
        self.flight = plan.flight;
        self.pace = plan.allowance.pace;
        self.allowance = plan.allowance;
        if self.pace.is_some() {
            let of_record = self.record.and_then(|record| record.bdp());
            self.growth = Growth::after_flight(of_record.is_some_and(|bdp| self.flight >= bdp));
        }
        plan
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) -> Next {
        self.train.on_ack(ack, self.mss);
        self.last_ack = Some((ack.now, ack.rtt.min));
        if self.recovery.on_ack(ack) {
            self.is_settled = true;
            return Next::HandOver(HandOver::avoiding(self.recovery.final_window()));
        }
        if self.recovery.is_under_way() {
            return Next::Stay;
        }
        if self.allowance.pace.is_some() && is_out(self.limit.min(self.flight), ack) {
            self.allowance.pace = None;
            self.allowance.window = self.allowance.window.max(self.initial_bytes());
        }
        if !self.is_settled && self.recovery.delivered() + self.lost >= self.flight {
            self.is_settled = true;
        }
        match self.growth.on_ack(&mut self.allowance.window, ack) {
            Decision::Continue => Next::Stay,
            Decision::Exit => Next::HandOver(HandOver::avoiding(self.allowance.window)),
        }
    }

    fn on_congestion(&mut self, signal: &Congestion) -> Next {
        self.lost += signal.first_flight_lost;
        let is_mark = signal.signal == Signal::CongestionExperienced;
        if is_mark && !self.is_settled {
            self.lost += self.flight * MARKED_SHARE;
        }
        let is_first_flight = !is_mark && !signal.first_flight_lost.is_zero();
        if self.recovery.is_under_way() || is_first_flight && self.flight > self.initial_bytes() {
            self.recovery.on_loss(signal);
            Next::Stay
        } else {
            self.is_settled = true;
            Next::HandOver(HandOver::to_be_cut(self.allowance.window))
        }
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Next {
        let is_delivered = timeout.delivered >= self.flight && !self.recovery.is_under_way();
        if !self.is_settled {
            self.lost = self.lost.max(self.flight.saturating_sub(self.recovery.delivered()));
            self.is_settled = true;
        }
        let window = if is_delivered { self.allowance.window } else { self.recovery.delivered() };
        Next::HandOver(HandOver::to_be_cut(window))
    }

    fn on_new_data(&mut self, prior: &Prior, so_far: &Progress) -> Option<FlightPlan> {
        if self.recovery.is_under_way() || self.limit <= self.initial_bytes() {
            return None;
        }
        let under_way = if so_far.delivered < self.flight { self.pace } else { None };
        let plan = later_flight(prior, so_far, self.limit, under_way)?;
        self.is_settled = true;
        self.flight = so_far.sent + plan.flight;
        self.pace = plan.allowance.pace;
        self.allowance = plan.allowance;
        Some(plan)
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        if self.recovery.is_under_way() { Allowance::window(self.recovery.window()) } else { self.allowance }
    }

    fn is_slow_start(&self) -> bool {
        !self.recovery.is_under_way()
    }

    fn requirements(&self) -> Requirements {
        Requirements { reserves_credit: true, ..Requirements::default() }
    }

    fn credit_revision(&self, has_ended: bool) -> Option<Revision> {
        let known = self.flight.min(self.recovery.delivered() + self.lost);
        let known = if self.is_settled { self.flight } else { known };
        (self.is_settled || has_ended).then(|| self.revision(known))
    }

    fn record_update(&self, measured: Option<Record>) -> RecordUpdate {
        let Some(measured) = measured.or_else(|| self.of_flight()) else { return RecordUpdate::Keep };
        // A mark is a sign of a full path too.
        let outcome = if self.lost.is_zero() { measured.outcome } else { FlightOutcome::Lossy };
        let measured = Record { outcome, btl_bw: self.rate(measured.btl_bw), ..measured };
        let excess = self.handshake_rtt.map(|rtt| rtt.saturating_sub(measured.rt_prop).min(LARGEST_EXCESS));
        let Some(before) = &self.record else {
            let handshake_excess = excess.unwrap_or_default();
            return RecordUpdate::Replace(Record { handshake_excess, ..measured });
        };
        RecordUpdate::Replace(Record {
            rt_prop: raised_slowly(before.rt_prop, measured.rt_prop),
            handshake_excess: excess
                .map_or(before.handshake_excess, |excess| raised_slowly(before.handshake_excess, excess)),
            ..measured
        })
    }

    fn phase(&self) -> &'static str {
        if self.recovery.is_under_way() {
            "recovery"
        } else if self.allowance.pace.is_some() {
            "first flight"
        } else {
            self.growth.phase()
        }
    }
}

#[cfg(test)]
mod tests;
