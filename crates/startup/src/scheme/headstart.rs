//! Send what the path is likely to have room for, and learn at the price of a loss how much that
//! is.
//!
//! Source: this project's own (docs/headstart.md has the measurements; HS below). Of others it
//! takes the paced first flight (JumpStart), half of what got through after a loss (JumpStart), the
//! record by peer (WiseStart), the test of the path's RTT (RFC 9959).
//!
//! # Idea
//!
//! What a path has room for in its next round trip, K, is not known: it is a random variable, of
//! which a record is what earlier starts showed. A flight of n bytes saves round trips for those
//! that fit, and n - K are lost, at a cost to this flow and to others. If a lost byte costs p times
//! what a byte that came through gains, the flight that costs least in expectation is the one of
//! which the share 1/(1 + p) is lost on average: the newsvendor's quantile. It need not be
//! computed. A **credit** that rises by 1/e of each byte that came through and falls by p/e of each
//! that was lost rests exactly there, whatever the distribution is, follows it when it changes, and
//! is one number for each peer. Random losses rarer than 1/(1 + p) do not move it.
//!
//! Three things that are known at the start change what the credit allows: first flights of the
//! same host to the same peer that are still under way share it (they are reserved,
//! [`Room`](crate::history::Room)); a handshake that took longer than the smallest RTT on record
//! met a queue, whose room is gone; and a record fades with age. A peer without a record gets the
//! credit of first contacts, which is learnt in the same way over all of them. Ten segments leave
//! in any case, at once, as RFC 6928 has it.
//!
//! ```text
//!  more than ten segments                     first ack with all of it sent                loss elsewhere, CE
//!  ---------------------> first flight -------------------------------------> slow start -------------------> hand over
//!                              |                                                 ^   |                              ^
//!                              | loss of first-flight packets                    |   | loss of first-flight packets |
//!                              +------------------> recovery <-------------------|---+                              |
//!  ten segments or less, or a short path                |                        |          the recovery ends       |
//!  ----------------------------------------------------------------------------> +   +------------------------------+
//! ```
//!
//! | phase | window | pace |
//! |---|---|---|
//! | first flight | what the credit allows; ten segments at once | all of it over the handshake RTT |
//! | slow start | one byte more for each byte acked | none |
//! | recovery | half of what got through, at least one segment more than is in flight | none |
//!
//! # Deviations
//!
//! There is no text to deviate from. From the trial that preceded it: the credit moves by bytes and
//! not by flights, so that six flights that share it are one, and that it is at home on any path; a
//! loss has a price instead of halving it; first contacts learn.
//!
//! # Limits
//!
//! - It relies on a recovery that finds lost retransmissions (RACK, or QUIC's); with RFC 6675 alone
//!   it is slower than slow start.
//! - Where no store keeps account ([`Prior::room`]) every start is a first contact that nobody
//!   learns from.
//! - Later flights of a connection ([`Startup::on_more`]) stay within what its first one was
//!   allowed but are not reserved.

use headstart_units::{Bytes, Rate, Ratio, Span};

use super::Startup;
use super::flights::is_out;
use super::later_flights::later_flight;
use crate::allowance::{Allowance, HandOver, Next, Plan};
use crate::catalogue::{About, Needs};
use crate::event::{Ack, Congestion, Progress, Signal, Timeout};
use crate::first_recovery::{self, FirstRecovery};
use crate::growth::{Growth, Verdict};
use crate::history::{Record, Refusal, Revision};
use crate::path::LARGEST_WINDOW;
use crate::prior::Prior;

/// Its row of the catalogue.
pub const ABOUT: About = About {
    is_compared: false,
    ..About::new(
        "headstart",
        Needs::Nothing,
        "what a credit learnt at the price of a loss allows, paced over one RTT",
    )
};

crate::parameters! {
    /// What may be tuned, with the source of each default.
    pub struct Params {
        /// Segments that leave at once, and that any first flight may hold.
        floor: u64 = 10, in 1..=1000, from "RFC 6928";
        /// Segments that a first contact may send while no other has said how it fared.
        cold: u64 = 50, in 1..=100_000, from "HS";
        /// What the credit rises by for each byte that came through.
        earn: Ratio = Ratio::new(1, 16), in Ratio::percent(0)..=Ratio::ONE, from "HS";
        /// What a lost byte costs, in bytes that came through.
        price: u64 = 32, in 0..=1_000_000, from "HS";
        /// How many times over a queue that the handshake met counts, as a share of the smallest
        /// RTT.
        caution: u64 = 4, in 0..=1000, from "HS";
        /// On a path shorter than this a round trip costs less than pacing does: slow start.
        short: Span = Span::from_millis(10), in Span::ZERO..=Span::from_secs(60), from "HS";
        /// The time in which half of what a record says is forgotten.
        fades: Span = Span::from_secs(3600), in Span::from_millis(1)..=Span::from_secs(100_000_000), from "HS";
        /// The share of what got through that is the window after a loss.
        kept: Ratio = first_recovery::KEPT, in Ratio::percent(1)..=Ratio::percent(100), from "JumpStart";
        /// Other connections' first flights to the peer are counted. For ablations.
        shares: bool = true, from "HS";
        /// First contacts learn of each other. For ablations.
        learns: bool = true, from "HS";
    }
}

/// `Headstart`.
#[derive(Clone, Copy, Debug)]
pub struct Headstart {
    params: Params,
    mss: Bytes,
    /// What the first flight holds at most.
    flight: Bytes,
    /// What all flights of the connection may hold.
    limit: Bytes,
    /// At which the last flight was planned to leave.
    pace: Option<Rate>,
    allowance: Allowance,
    growth: Growth,
    recovery: FirstRecovery,
    /// Bytes of the first flight that were lost; a mark counts as [`MARK`] of what was sent.
    lost: Bytes,
    is_settled: bool,
    known: Option<Record>,
    /// First flights to the peer that were under way when this one began.
    beside: Bytes,
}

/// A mark on the first flight says that its queue is too long and not by how much: as if so much of
/// it had been lost.
const MARK: Ratio = Ratio::new(1, 8);
/// The smallest RTT on record rises by this share towards one that is larger, with each connection.
const RISES: u64 = 8;
/// More halvings leave nothing.
const FORGOTTEN: u64 = 40;
/// A handshake that is longer than the smallest RTT by no more than this met no queue: it is the
/// noise of handshakes.
const NOISE: Span = Span::from_millis(1);

impl Headstart {
    /// Nothing is known until [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            mss: Bytes::ZERO,
            flight: Bytes::ZERO,
            limit: Bytes::ZERO,
            pace: None,
            allowance: Allowance::window(Bytes::ZERO),
            growth: Growth::new(false),
            recovery: FirstRecovery::new(Bytes::ZERO, params.kept),
            lost: Bytes::ZERO,
            is_settled: false,
            known: None,
            beside: Bytes::ZERO,
        }
    }

    /// How it was tuned.
    #[must_use]
    pub const fn params(&self) -> &Params {
        &self.params
    }

    fn floor(&self) -> Bytes {
        self.mss * self.params.floor
    }

    fn cold(&self) -> Bytes {
        self.mss * self.params.cold
    }

    /// What the credit allows on the path as it is now.
    fn allowed(&self, prior: &Prior) -> Bytes {
        let room = prior.room.unwrap_or_default();
        let credit = match &self.known {
            Some(record) => self.faded(record, room.credit, prior),
            // The credit of a record that is of another path says nothing.
            None if self.params.learns && prior.history.is_none() => room.credit.unwrap_or(self.cold()),
            None => self.cold(),
        };
        let least_rtt = self.known.map_or(prior.handshake_rtt, |record| record.rt_prop);
        let queue = prior.handshake_rtt.saturating_sub(least_rtt).saturating_sub(NOISE);
        let weighed = least_rtt + queue * self.params.caution;
        let beside_queue = if queue.is_zero() { credit } else { (credit / weighed) * least_rtt };
        beside_queue.min(credit.saturating_sub(self.beside)).clamp(self.floor(), LARGEST_WINDOW)
    }

    /// A record's credit as old as it is: what is forgotten makes room for what first contacts get.
    fn faded(&self, record: &Record, credit: Option<Bytes>, prior: &Prior) -> Bytes {
        let (credit, cold) = (credit.unwrap_or(self.cold()), self.cold());
        let age = prior.now.since(record.saved_at).as_nanos() / self.params.fades.as_nanos().max(1);
        let parts = 1 << age.min(FORGOTTEN);
        if credit > cold { cold + (credit - cold) / parts } else { cold - (cold - credit) / parts }
    }
}

impl Startup for Headstart {
    fn establish(&mut self, prior: &Prior) -> Plan {
        self.mss = prior.mss;
        self.recovery = FirstRecovery::new(prior.mss, self.params.kept);
        let record = prior.history.map(|known| known.record).filter(|record| !record.rt_prop.is_zero());
        self.known =
            record.filter(|it| it.contradicted_by(prior.handshake_rtt) != Some(Refusal::RttTooSmall));
        self.beside = prior.room.filter(|_| self.params.shares).map_or(Bytes::ZERO, |room| room.reserved);
        // The queue that a handshake met makes no path longer.
        let least_rtt = self.known.map_or(prior.handshake_rtt, |it| it.rt_prop.min(prior.handshake_rtt));
        let is_short = least_rtt < self.params.short;
        let allowed = if is_short { self.floor() } else { self.allowed(prior) };
        self.limit = allowed.min(prior.receive_window);
        let admitted = self.limit.get() / prior.mss.get();
        let wanted = prior.flow_size.map_or(u64::MAX, |size| size.get().div_ceil(prior.mss.get()));
        let segments = admitted.min(wanted).max(1);
        let plan = if segments <= self.params.floor {
            let window = self.floor();
            Plan { flight: prior.flow_size.unwrap_or(window).min(window), ..Plan::burst(window) }
        } else {
            let window = prior.mss * segments;
            let flight = prior.flow_size.map_or(window, |size| size.min(window));
            Plan { flight, ..Plan::paced(self.floor(), window, window / prior.handshake_rtt) }
        };
        self.flight = plan.flight;
        self.pace = plan.allowance.pace;
        self.allowance = plan.allowance;
        plan
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) -> Next {
        if self.recovery.on_ack(ack) {
            self.is_settled = true;
            return Next::HandOver(HandOver::avoiding(self.recovery.inherited()));
        }
        if self.recovery.is_under_way() {
            return Next::Stay;
        }
        if self.allowance.pace.is_some() && is_out(self.limit.min(self.flight), ack) {
            self.allowance.pace = None;
            self.allowance.window = self.allowance.window.max(self.floor());
        }
        if !self.is_settled && self.recovery.through() + self.lost >= self.flight {
            self.is_settled = true;
        }
        match self.growth.on_ack(&mut self.allowance.window, ack) {
            Verdict::GoOn => Next::Stay,
            Verdict::Exit => Next::HandOver(HandOver::avoiding(self.allowance.window)),
        }
    }

    fn on_congestion(&mut self, signal: &Congestion) -> Next {
        self.lost += signal.first_flight_lost;
        let is_mark = signal.signal == Signal::CongestionExperienced;
        if is_mark && !self.is_settled {
            self.lost += self.flight * MARK;
        }
        let is_of_the_flight = !is_mark && !signal.first_flight_lost.is_zero();
        if self.recovery.is_under_way() || is_of_the_flight && self.flight > self.floor() {
            self.recovery.on_loss(signal);
            Next::Stay
        } else {
            self.is_settled = true;
            Next::HandOver(HandOver::to_be_cut(self.allowance.window))
        }
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Next {
        let is_through = timeout.delivered >= self.flight && !self.recovery.is_under_way();
        if !self.is_settled {
            self.lost = self.lost.max(self.flight.saturating_sub(self.recovery.through()));
            self.is_settled = true;
        }
        let window = if is_through { self.allowance.window } else { self.recovery.through() };
        Next::HandOver(HandOver::to_be_cut(window))
    }

    fn on_more(&mut self, prior: &Prior, so_far: &Progress) -> Option<Plan> {
        if self.recovery.is_under_way() || self.limit <= self.floor() {
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

    fn reserves(&self) -> bool {
        true
    }

    fn fate(&self) -> Option<Revision> {
        if !self.is_settled {
            return None;
        }
        let (earn, through) = (self.params.earn, self.flight.saturating_sub(self.lost));
        Some(Revision {
            start: self.cold(),
            earned: through * earn,
            // A flight that came through says nothing of more than twice what was under way with
            // it.
            most: (self.flight + self.beside) * 2,
            spent: self.lost * earn * self.params.price,
            least: self.floor(),
        })
    }

    fn remember(&self, measured: Record) -> Record {
        let mut record = measured;
        if let Some(before) = self.known.filter(|before| before.rt_prop < measured.rt_prop) {
            record.rt_prop = before.rt_prop + (measured.rt_prop - before.rt_prop) / RISES;
        }
        record
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
