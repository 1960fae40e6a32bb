//! The stack's congestion controller, implemented by a scheme and a base controller.
//!
//! It holds no algorithm of its own: it turns the stack's reports into the events of
//! [`headstart_startup::event`], and the [`Controller`]'s allowance into the stack's window (bytes)
//! and pacing rate (bytes per second).
//!
//! ```text
//!              first ack                 first full data packet
//!  Unmeasured -----------> Ready --------------------------------> Started
//!  window 10 packets,      record, gates and hint are known,       the scheme decides
//!  no pacing               the plan is foreseen
//! ```
//!
//! A scheme is established with the first full data packet after the first round-trip sample: only
//! then are the RTT, the flow's size and the hint all known. A scheme that plans with the flow's
//! size begins with the first data packet after [`Handle::expect`](crate::Handle::expect). A
//! response sent in 0-RTT begins earlier, with ten packets.
//!
//! | module | holds |
//! |---|---|
//! | `ledger` | data packets by number, until acknowledged or lost |
//! | `opening` | inputs of the scheme before the first byte; pacing until then |
//! | `more` | flow sizes announced later on the same connection |
//! | `decided` | the controller with its allowance cached |
//! | `steady` | the adapter's metrics, cached while they cannot change |
//! | `events` | acks and losses in the scheme's order |
//! | `repairs` | copies |
//! | `closing` | the record written at the end |
//!
//! # Deviations
//!
//! - A scheme receives losses before the ack that showed them; the stack reports them in the other
//!   order, within the same acknowledgement.
//! - A QUIC packet corresponds to a segment of the simulator's TCP; sizes are those of whole
//!   packets, headers and AEAD tag included, as the stack counts them. Each is sent once: lost data
//!   leaves in new packets, which the stack does not identify. After a loss, as many bytes as were
//!   lost count as retransmissions.
//! - The smoothed RTT is the stack's, which accounts for the peer's ack delay, as of the previous
//!   ack; minimum and variation are of plain samples.
//! - The stack does not report idle periods; a base controller keeps its window over them.
//! - Reactive's probe of the last packet is the stack's probe timeout (RFC 9002 §6.2).

mod closing;
mod decided;
mod events;
mod ledger;
mod more;
mod opening;
mod repairs;
mod steady;

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use headstart_startup::catalogue::Needs;
use headstart_startup::path::RateEstimator;
use headstart_startup::{Controller, Plan, Prior, Rtt, Scheme, Startup as _};
use headstart_units::{Bytes, Rate, Time};
use noq_proto::RttEstimator;
use noq_proto::congestion::{self, ControllerMetrics};

use crate::epoch::{Watch, span};
use crate::shared::Shared;
use crate::why::Tally;
use decided::Decided;
use events::{Batch, Losses};
use ledger::Ledger;
use more::More;
use opening::{Bucket, Stage};
use repairs::Copier;
use steady::Answer;

/// Makes the controllers of one connection: the first runs the scheme; a later one means that the
/// path has changed, and runs slow start.
#[derive(Debug)]
pub(crate) struct Factory {
    shared: Arc<Shared>,
    has_built: AtomicBool,
}

impl Factory {
    pub fn new(shared: Arc<Shared>) -> Arc<Self> {
        Arc::new(Self { shared, has_built: AtomicBool::new(false) })
    }
}

impl congestion::ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn congestion::Controller> {
        let is_first = !self.has_built.swap(true, Ordering::Relaxed);
        Box::new(Adapter::new(Arc::clone(&self.shared), now, mtu, is_first))
    }
}

/// The congestion controller of a connection's path.
#[derive(Debug)]
pub struct Adapter {
    shared: Arc<Shared>,
    /// Time of the event that the stack reports.
    now: Watch,
    /// Departure time of the packets that it is about.
    then: Watch,
    controller: Decided,
    /// Metrics for the stack until the next ack or loss, where no departure changes them.
    steady: Option<Answer>,
    stage: Stage,
    /// The scheme is one that plans with the flow's size.
    plans_with_size: bool,
    /// On a path other than the connection's first: slow start, no record, no copies.
    is_late: bool,
    /// A clone made by the stack that has received no event since.
    is_idle_copy: bool,
    packet: Bytes,
    /// The path's current packet size; the scheme keeps the size it began with when the stack's
    /// path MTU discovery finds a larger one.
    largest: Bytes,
    rtt: Rtt,
    rate: RateEstimator,
    /// Highest delivery rate, computed once per ack: the stack reads it several times per packet.
    fastest: Option<Rate>,
    ledger: Ledger,
    /// Bytes in flight outside of the scheme's account: the handshake's, and path MTU probes.
    foreign: Bytes,
    batch: Batch,
    losses: Losses,
    /// Start of the current recovery period.
    recovering_since: Option<Time>,
    /// The controller before that, restored if the loss was spurious.
    before_recovery: Option<(Time, Box<Controller>)>,
    heard_at: Time,
    /// The window or the pacer was the limit for all data packets below this ordinal.
    limited_below: u64,
    /// Lost bytes not retransmitted yet.
    owed: Bytes,
    first_flight: Bytes,
    /// Bytes announced by the application when the scheme last planned.
    told: Bytes,
    /// The first flight covers all announced data.
    is_whole_flow: bool,
    /// All data announced when the scheme began fits into the initial window.
    began_small: bool,
    burst: Bytes,
    bucket: Bucket,
    started_at: Time,
    phase: &'static str,
    tally: Tally,
    copier: Option<Copier>,
}

/// RFC 9002 §7.2.
const INITIAL_PACKETS: u64 = 10;
/// RFC 9002 §7.2: the minimum window.
const MINIMUM_PACKETS: u64 = 2;

impl Adapter {
    fn new(shared: Arc<Shared>, now: Instant, mtu: u16, is_first: bool) -> Self {
        shared.controller_begins();
        let packet = Bytes::new(mtu.into());
        let scheme = if is_first { shared.rules.choice.scheme() } else { shared.rules.control.scheme() };
        let controller = Controller::new(scheme.unwrap_or_else(plain_slow_start), shared.rules.base, packet);
        let watch = Watch::new(shared.rules.epoch, now);
        let adapter = Self {
            now: watch,
            then: watch,
            controller: Decided::new(controller),
            steady: None,
            stage: Stage::Unmeasured,
            plans_with_size: is_first && shared.rules.choice.needs() == Needs::FlowSize,
            is_late: !is_first,
            is_idle_copy: false,
            packet,
            largest: packet,
            rtt: Rtt::default(),
            rate: RateEstimator::default(),
            fastest: None,
            ledger: Ledger::default(),
            foreign: Bytes::ZERO,
            batch: Batch::default(),
            losses: Losses::default(),
            recovering_since: None,
            before_recovery: None,
            heard_at: Time::ZERO,
            limited_below: 0,
            owed: Bytes::ZERO,
            first_flight: Bytes::ZERO,
            told: Bytes::ZERO,
            is_whole_flow: false,
            began_small: false,
            burst: Bytes::ZERO,
            bucket: Bucket::default(),
            started_at: watch.last(),
            phase: "",
            tally: Tally::default(),
            copier: None,
            shared,
        };
        if !is_first {
            adapter.note_migration();
        }
        adapter
    }

    /// Sets the foreign bytes in flight; a cached window for another number is void.
    #[inline]
    fn set_foreign(&mut self, bytes: Bytes) {
        if self.foreign != bytes {
            self.foreign = bytes;
            self.steady = None;
        }
    }

    fn least(&self) -> Bytes {
        self.packet * MINIMUM_PACKETS
    }

    /// A window of the scheme as the stack counts it: with the foreign bytes in flight.
    fn with_foreign(&self, window: Bytes) -> u64 {
        (window + self.foreign).max(self.least()).get()
    }

    #[cold]
    fn work_out_window(&self) -> u64 {
        self.window_with(self.foresee_more().as_deref())
    }

    #[cold]
    fn work_out(&self) -> Answer {
        let more = self.foresee_more();
        self.answer(self.window_with(more.as_deref()), self.pacing_rate(more.as_deref()))
    }

    fn answer(&self, window: u64, pacing_rate: Option<Rate>) -> Answer {
        let ssthresh = self.controller.ssthresh();
        Answer {
            window,
            pacing_rate: pacing_rate.map(Rate::as_bytes_per_sec),
            ssthresh: (ssthresh != Bytes::MAX).then(|| ssthresh.get()),
            bandwidth: self.fastest.map(Rate::as_bits_per_sec),
        }
    }

    /// Bytes that may be in flight, foreign ones included; `more` is the next flight's preview.
    fn window_with(&self, more: Option<&More>) -> u64 {
        let window = match &self.stage {
            Stage::Unmeasured => self.packet * INITIAL_PACKETS,
            Stage::Ready(ready) => ready.plan.allowance.window.max(self.packet * INITIAL_PACKETS),
            Stage::Started => {
                let allowance = more.map_or(&self.controller, |more| &more.controller).allowance();
                // The stack requires room for a full packet even if only the flow's last bytes are
                // left.
                let is_last = more.is_some() || self.has_rest();
                let least = if self.is_small() { self.packet * INITIAL_PACKETS } else { Bytes::ZERO };
                let rest = if is_last { self.largest } else { Bytes::ZERO };
                return self.with_foreign(allowance.window.max(least) + rest);
            }
        };
        window.max(self.least()).get()
    }

    /// A part of the flight has not left, and the window has room for no more than that part.
    fn is_flight_leaving(&self) -> bool {
        let ends_with_flight =
            || !self.controller.is_handed_over() && self.controller.scheme().ends_with_flight();
        self.ledger.sent() < self.first_flight && (self.is_whole_flow || ends_with_flight())
    }

    /// The rest of the flight may be smaller than a packet: because the data end there or, if a
    /// limit cuts the flight short, because the path was found to carry larger packets than it was
    /// planned in. In the second case up to a packet more than the flight leaves.
    fn has_rest(&self) -> bool {
        let left = self.first_flight.saturating_sub(self.ledger.sent());
        self.is_flight_leaving() && (self.is_whole_flow || left < self.largest)
    }

    /// After a change of the peer's port the stack continues with a clone: the same path, another
    /// address.
    #[inline]
    fn wake(&mut self) {
        if self.is_idle_copy {
            self.go_on_as_a_copy();
        }
    }

    #[cold]
    fn go_on_as_a_copy(&mut self) {
        self.is_idle_copy = false;
        self.copier = None;
        self.note_migration();
    }

    /// The scheme and base controller in their current state.
    #[must_use]
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Counters so far.
    #[must_use]
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }
}

fn plain_slow_start() -> Scheme {
    Scheme::SlowStart(headstart_startup::scheme::SlowStart::new(Default::default()))
}

impl congestion::Controller for Adapter {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, number: u64) {
        self.wake();
        let (now, bytes) = (self.now.time(now), Bytes::new(bytes.into()));
        let is_data = self.shared.sealing.is_data();
        // A packet above the path's current packet size is a path MTU probe, not the scheme's.
        let is_ours = is_data && bytes <= self.largest;
        if self.steady().is_none() {
            self.spend(now, bytes);
            if is_ours && matches!(self.stage, Stage::Ready(_)) && self.is_awaited(bytes) {
                self.start(now);
            }
            if is_ours {
                self.learn(now);
            }
        }
        if is_ours && matches!(self.stage, Stage::Started) {
            self.sent(now, number, bytes);
        } else {
            self.set_foreign(self.foreign + bytes);
        }
    }

    fn on_cwnd_limited(&mut self) {
        self.limited_below = self.ledger.end();
    }

    fn on_ack(
        &mut self,
        _: Instant,
        sent: Instant,
        bytes: u64,
        number: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.wake();
        let sent = self.then.time(sent);
        self.acked(sent, Bytes::new(bytes), number, app_limited, || span(rtt.get()));
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        let now = self.now.time(now);
        self.end_of_acks(now, Bytes::new(in_flight), app_limited, largest);
    }

    fn on_packet_lost(&mut self, bytes: u16, number: u64, now: Instant) {
        self.wake();
        let now = self.now.time(now);
        self.packet_lost(now, Bytes::new(bytes.into()), number);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent: bool,
        is_ecn: bool,
        _: u64,
        _: u64,
    ) {
        let (now, sent) = (self.now.time(now), self.then.time(sent));
        if is_ecn { self.marked(now, sent) } else { self.lost(now, sent, is_persistent) }
    }

    fn on_spurious_congestion_event(&mut self) {
        self.undo();
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.largest = Bytes::new(mtu.into());
        // A scheme keeps the segment size it began with; the new one applies only before that.
        if !matches!(self.stage, Stage::Started) {
            self.packet = Bytes::new(mtu.into());
            self.foresee();
        }
    }

    fn window(&self) -> u64 {
        self.steady().map_or_else(|| self.work_out_window(), |answer| answer.window)
    }

    fn metrics(&self) -> ControllerMetrics {
        self.steady().map_or_else(|| self.work_out().into(), |&answer| answer.into())
    }

    fn clone_box(&self) -> Box<dyn congestion::Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        (self.packet * INITIAL_PACKETS).get()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// A packet this much below the largest still counts as full: frames do not always fill the last
/// bytes.
const SLACK: Bytes = Bytes::new(64);

/// Inputs known once the first round trip was measured.
#[derive(Clone, Copy, Debug)]
struct Ready {
    prior: Prior,
    plan: Plan,
}

#[cfg(test)]
mod tests;

/// The stack clones a controller when the peer's port changes, and to export its state.
impl Clone for Adapter {
    fn clone(&self) -> Self {
        self.shared.controller_begins();
        Self {
            shared: Arc::clone(&self.shared),
            now: self.now,
            then: self.then,
            controller: self.controller,
            steady: self.steady,
            stage: self.stage,
            plans_with_size: self.plans_with_size,
            is_late: self.is_late,
            is_idle_copy: true,
            packet: self.packet,
            largest: self.largest,
            rtt: self.rtt,
            rate: self.rate,
            fastest: self.fastest,
            ledger: self.ledger.clone(),
            foreign: self.foreign,
            batch: self.batch,
            losses: self.losses,
            recovering_since: self.recovering_since,
            before_recovery: self.before_recovery.clone(),
            heard_at: self.heard_at,
            limited_below: self.limited_below,
            owed: self.owed,
            first_flight: self.first_flight,
            told: self.told,
            is_whole_flow: self.is_whole_flow,
            began_small: self.began_small,
            burst: self.burst,
            bucket: self.bucket,
            started_at: self.started_at,
            phase: self.phase,
            tally: self.tally,
            copier: None,
        }
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        self.shared.controller_ends();
    }
}
