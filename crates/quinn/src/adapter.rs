//! quinn's congestion controller, implemented by a scheme and a base controller.
//!
//! It holds no algorithm of its own: it passes quinn's reports to a [`Sender`], and turns its
//! allowance into a window ([`crate::pacing`]).
//!
//! ```text
//!              first ack                 first full data packet
//!  Unmeasured -----------> Ready --------------------------------> Started
//!  window 10 packets       record, gates and hint are known        the scheme decides
//! ```
//!
//! # Deviations
//!
//! - quinn reports what left as the bytes of a batch, without numbers. A batch is taken for full
//!   packets and a rest; acknowledged packets are found by departure and size, lost ones are the
//!   oldest.
//! - quinn does not distinguish handshake from data. A scheme begins with the first full packet
//!   after the first round-trip sample, which at a server is the first answer. A datagram of less
//!   than 64 bytes is no packet of the scheme; others that turn out not to be in flight leave its
//!   account with the next acknowledgement.
//! - quinn updates its smoothed RTT after an acknowledgement was reported. It is foreseen without
//!   the peer's ack delay.
//! - quinn does not report losses found spurious: a reduction is not undone.
//! - While quinn validates a path, after the peer's port has changed, it reports no acknowledgement
//!   of packets that left before, nor their loss: all of them count as delivered afterwards.
//! - The peer's flow control limits are not known here; quinn obeys them.
//! - The path MTU's probes are not reported as sent or lost: they are no packets of the scheme.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use headstart_adapter::epoch::span;
use headstart_adapter::gates::NothingToGain;
use headstart_adapter::sizes::{self, INITIAL_PACKETS, MINIMUM_PACKETS, SLACK};
use headstart_adapter::{EpochCache, Inputs, Publication, announced};
use headstart_host::locked;
use headstart_startup::catalogue::Needs;
use headstart_startup::sending::{CachedController, Sender, Tally};
use headstart_startup::{Allowance, Controller, FlightPlan, Prior, Progress, Startup as _};
use headstart_units::{Bytes, Rate, Span, Time};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{self, ControllerMetrics};

use crate::pacing;
use crate::shared::Shared;

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

/// The connection's stage before its scheme begins.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Unmeasured,
    /// The RTT is measured: every input but the flow's size is known.
    Ready(Prior),
    Started,
}

/// The congestion controller of a connection's path.
#[derive(Debug)]
pub struct Adapter {
    shared: Arc<Shared>,
    /// Time of the event that quinn reports.
    event_clock: EpochCache,
    /// Departure time of the packets that it is about.
    sent_clock: EpochCache,
    sender: Sender,
    stage: Stage,
    /// The window for quinn, as of the last event.
    window: u64,
    /// The scheme is one that plans with the flow's size.
    plans_with_size: bool,
    /// On a path other than the connection's first: slow start, no record.
    is_late: bool,
    /// A clone made by quinn that has received no event since.
    is_unused_clone: bool,
    /// The path's current packet size; the scheme keeps the size it began with.
    largest: Bytes,
    /// Bytes in flight outside of the scheme's account: the handshake's, and path MTU probes.
    unmanaged_in_flight: Bytes,
    /// Number of the next packet.
    next_number: u64,
    /// Number of the first packet since the peer's port changed.
    first_on_path: u64,
    /// Departure of the newest packet of this acknowledgement.
    newest_acked: Option<Time>,
    /// Departure of the newest packet acknowledged before.
    newest_before: Time,
    /// quinn's smoothed RTT, without this acknowledgement's sample and with it.
    smoothed_before: Span,
    smoothed: Span,
    handshake_retransmitted: bool,
    /// Bytes announced by the application when the scheme last planned.
    announced: Bytes,
    /// The flight covers all announced data.
    is_whole_flow: bool,
    /// All data announced when the scheme began fits into the initial window.
    began_small: bool,
    /// End of the burst, as an offset in the bytes sent.
    burst: Bytes,
    /// The flight has left, as of the last event.
    is_flight_out: bool,
    started_at: Time,
    phase: &'static str,
    publication: Publication,
}

/// Packets for which the window has room beyond a flight of which less than a packet is left. They
/// are that packet, and a probe of the path's MTU that may be in flight.
const REST: u64 = 2;
/// A datagram below this size carries an acknowledgement and nothing else, or next to nothing.
const MIN_DATA: Bytes = Bytes::new(64);

impl Adapter {
    pub(crate) fn new(shared: Arc<Shared>, now: Instant, mtu: u16, is_first: bool) -> Self {
        shared.register_controller();
        let packet = Bytes::new(mtu.into());
        let rules = &shared.rules;
        let choice = if is_first { rules.choice } else { rules.control };
        let controller = Controller::new(choice.scheme(), rules.base, packet);
        let cache = EpochCache::new(rules.epoch, now);
        let mut adapter = Self {
            event_clock: cache,
            sent_clock: cache,
            sender: Sender::new(controller, packet),
            stage: Stage::Unmeasured,
            window: 0,
            plans_with_size: is_first && choice.needs() == Needs::FlowSize,
            is_late: !is_first,
            is_unused_clone: false,
            largest: packet,
            unmanaged_in_flight: Bytes::ZERO,
            next_number: 0,
            first_on_path: 0,
            newest_acked: None,
            newest_before: Time::ZERO,
            smoothed_before: Span::ZERO,
            smoothed: Span::ZERO,
            handshake_retransmitted: false,
            announced: Bytes::ZERO,
            is_whole_flow: false,
            began_small: false,
            burst: Bytes::ZERO,
            is_flight_out: false,
            started_at: cache.last(),
            phase: "",
            publication: Publication::default(),
            shared,
        };
        if !is_first {
            locked(&adapter.shared.account).note_migration();
        }
        adapter.refresh_window();
        adapter
    }

    /// The scheme and base controller in their current state.
    #[must_use]
    pub fn controller(&self) -> &Controller {
        self.sender.controller()
    }

    /// Counters so far.
    #[must_use]
    pub const fn tally(&self) -> &Tally {
        self.sender.tally()
    }

    // --- the window -----------------------------------------------------------------------------

    #[inline]
    fn refresh_window(&mut self) {
        let allowance = self.sender.controller().allowance();
        self.window = match allowance.pace {
            None if self.is_flight_out => self.for_quinn(allowance.window),
            _ => self.compute_window(),
        };
    }

    /// A window of the scheme as quinn counts it: with all bytes in flight.
    #[inline]
    fn for_quinn(&self, window: Bytes) -> u64 {
        // A packet leaves only while bytes in flight stay below the window.
        let window = window + self.unmanaged_in_flight;
        window.max(self.sender.packet() * MINIMUM_PACKETS).get().saturating_add(1)
    }

    /// Nothing but the scheme's allowance decides until another flight begins.
    fn is_flight_out(&self) -> bool {
        let sent = self.sender.ledger().sent();
        matches!(self.stage, Stage::Started)
            && !self.began_small
            && sent >= self.burst
            && sent >= self.sender.first_flight()
    }

    #[cold]
    fn compute_window(&self) -> u64 {
        let initial = self.sender.packet() * INITIAL_PACKETS;
        let in_flight = self.sender.ledger().in_flight();
        let (allowance, burst_left, rest) = match &self.stage {
            Stage::Unmeasured => (Allowance::window(initial), Bytes::ZERO, Bytes::ZERO),
            Stage::Ready(prior) => {
                let plan = self.foresee(prior);
                (plan.allowance, plan.burst, Bytes::ZERO)
            }
            Stage::Started => {
                let mut allowance = self.sender.controller().allowance();
                if self.is_small() {
                    allowance = Allowance::window(allowance.window.max(initial));
                }
                let rest = if self.has_rest() { self.largest * REST } else { Bytes::ZERO };
                (allowance, self.burst.saturating_sub(self.sender.ledger().sent()), rest)
            }
        };
        let state =
            pacing::State { allowance, in_flight, burst_left, smoothed: self.smoothed, packet: self.largest };
        self.for_quinn(pacing::window(&state) + rest)
    }

    /// A part of the flight has not left, and the window has room for no more than that part. The
    /// rest may be smaller than a packet, and quinn requires the room of a full one.
    fn has_rest(&self) -> bool {
        let (sent, flight) = (self.sender.ledger().sent(), self.sender.first_flight());
        let controller = self.sender.controller();
        let ends_with_flight = || !controller.is_handed_over() && controller.scheme().ends_with_flight();
        sent < flight && (self.is_whole_flow || (ends_with_flight() && flight - sent < self.largest))
    }

    // --- the start ------------------------------------------------------------------------------

    /// The first round trip was measured: reads record and hint.
    fn read_inputs(&mut self, now: Time) {
        let shared = &self.shared;
        let rules = &shared.rules;
        let mut prior = Prior::bare(now, self.sender.packet(), self.sender.rtt().min, Bytes::ZERO);
        prior.handshake_retransmitted = self.handshake_retransmitted;
        if !self.is_late {
            let inputs = Inputs {
                store: rules.store(),
                gates: &rules.gates,
                rollout: &rules.rollout,
                limits: &rules.limits,
                needs: rules.choice.needs(),
                key: shared.key,
                peer: shared.peer.ip(),
                number: shared.number,
                hint: shared.hint,
            };
            let runs = locked(&shared.account).judge(&inputs, &self.sender, &mut prior);
            if !runs {
                self.run_control();
            }
        }
        self.stage = Stage::Ready(prior);
    }

    /// The control scheme takes the place of one that has not begun.
    fn run_control(&mut self) {
        let rules = &self.shared.rules;
        let controller = Controller::new(rules.control.scheme(), rules.base, self.sender.packet());
        self.sender.set_controller(CachedController::new(controller));
    }

    /// Completes the prior with what is known now.
    fn complete(&self, prior: &Prior) -> Prior {
        Prior {
            mss: self.sender.packet(),
            flow_size: self.shared.expected().map(|bytes| self.wire(bytes)),
            receive_window: self.wire(self.shared.rules.flight_limit),
            initial_window: self.sender.packet() * INITIAL_PACKETS,
            ..*prior
        }
    }

    /// The plan of a flight that begins now.
    fn foresee(&self, prior: &Prior) -> FlightPlan {
        Controller::clone(self.sender.controller()).establish(&self.complete(prior))
    }

    /// The first full packet leaves: the scheme begins.
    fn start(&mut self, now: Time, prior: &Prior) {
        let mut prior = Prior { now, ..self.complete(prior) };
        let is_outrun = self.is_outrun(&prior);
        if is_outrun {
            self.run_control();
        }
        let shared = Arc::clone(&self.shared);
        let plan = if self.is_late {
            self.sender.update(|controller| controller.establish(&prior))
        } else {
            locked(&shared.account).establish(shared.rules.store(), &mut self.sender, &mut prior)
        };
        self.stage = Stage::Started;
        self.started_at = now;
        self.burst = plan.burst;
        self.sender.begin(plan.flight.min(prior.flow_size.unwrap_or(Bytes::MAX)));
        self.announced = shared.expected().unwrap_or_default();
        self.is_whole_flow = prior.flow_size.is_some_and(|size| size <= plan.flight);
        self.began_small = self.fits_initial_window();
        if self.is_late {
            return;
        }
        let is_small = self.began_small && plan.allowance.pace.is_some();
        let nothing_to_gain = match (is_outrun, is_small) {
            (_, true) => Some(NothingToGain::InitialWindow),
            (true, false) => Some(NothingToGain::LongAnswer),
            (false, false) => None,
        };
        let needs = shared.rules.choice.needs();
        locked(&shared.account).begin(&plan, needs, shared.expected(), nothing_to_gain);
        self.note_phase(now);
    }

    /// Slow start does as well for so long an answer.
    fn is_outrun(&self, prior: &Prior) -> bool {
        let plan = Controller::clone(self.sender.controller()).establish(prior);
        !self.is_late && announced::is_outrun(&self.shared.rules.gates, &self.sender, prior, &plan)
    }

    /// All announced data fits into the initial window, and none of it was lost.
    fn fits_initial_window(&self) -> bool {
        announced::fits_initial_window(&self.shared.rules.gates, &self.sender, self.shared.expected())
    }

    /// The scheme began with data that fits into the initial window, and no more was announced.
    fn is_small(&self) -> bool {
        self.began_small && self.fits_initial_window()
    }

    /// Size in packets on the wire of `bytes` of application data.
    fn wire(&self, bytes: Bytes) -> Bytes {
        sizes::wire(bytes, self.sender.packet())
    }

    /// The application has announced more than the scheme planned with: passes it on.
    fn plan_next_flight(&mut self, now: Time) {
        let Some(announced) = self.shared.expected().filter(|&bytes| bytes > self.announced) else { return };
        self.announced = announced;
        let sent = self.sender.ledger().sent();
        let left = self.wire(announced).saturating_sub(sent);
        let packet = self.sender.packet();
        let limit = self.wire(self.shared.rules.flight_limit);
        let prior = Prior {
            flow_size: Some(left),
            initial_window: packet * INITIAL_PACKETS,
            ..Prior::bare(self.sender.last_ack_at(), packet, self.sender.rtt().smoothed, limit)
        };
        let so_far = Progress {
            sent,
            segments: self.sender.ledger().end(),
            delivered: self.sender.delivered(),
            in_flight: self.sender.ledger().in_flight(),
            window: self.sender.controller().allowance().window,
        };
        let Some(plan) = self.sender.update(|controller| controller.on_new_data(&prior, &so_far)) else {
            return;
        };
        self.sender.begin_next(plan.flight);
        self.is_whole_flow = left <= plan.flight;
        self.burst = sent + plan.burst;
        let mut account = locked(&self.shared.account);
        account.report.flights += 1;
        account.report.flow_size = Some(announced);
        drop(account);
        self.note_phase(now);
    }

    /// The application has nothing to send: true if all announced data has left.
    fn is_all_sent(&self) -> bool {
        announced::is_all_sent(&self.sender, self.announced, self.shared.expected(), self.is_whole_flow)
    }

    // --- reports --------------------------------------------------------------------------------

    /// A batch of datagrams left.
    fn sent(&mut self, now: Time, bytes: Bytes) {
        self.use_clone();
        if let Stage::Ready(prior) = self.stage
            && (bytes + SLACK >= self.sender.packet()
                || (self.plans_with_size && self.shared.expected().is_some()))
        {
            self.start(now, &prior);
        }
        if matches!(self.stage, Stage::Started) && bytes >= MIN_DATA {
            if self.plans_with_size {
                self.plan_next_flight(now);
            }
            let mut left = bytes;
            while !left.is_zero() {
                let packet = left.min(self.largest);
                self.sender.on_sent(now, self.next_number, packet);
                self.next_number += 1;
                left -= packet;
            }
            self.is_flight_out = self.is_flight_out();
        } else {
            self.unmanaged_in_flight += bytes;
        }
        self.refresh_window();
    }

    /// A packet was acknowledged; `smoothed` is quinn's RTT before that.
    fn acked(&mut self, sent: Time, bytes: Bytes, app_limited: bool, smoothed: impl FnOnce() -> Span) {
        self.use_clone();
        let smoothed_before = &mut self.smoothed_before;
        let smoothed = || {
            *smoothed_before = smoothed();
            *smoothed_before
        };
        if self.sender.opens_batch(smoothed) && app_limited && matches!(self.stage, Stage::Started) {
            self.sender.on_app_limited();
        }
        self.newest_acked = self.newest_acked.max(Some(sent));
        if !self.sender.on_delivered_unnumbered(sent, bytes, SLACK) {
            self.unmanaged_in_flight = self.unmanaged_in_flight.saturating_sub(bytes);
        }
    }

    /// The acknowledgement is complete.
    fn end_of_acks(&mut self, now: Time, in_flight: Bytes, app_limited: bool) {
        let newest = self.newest_acked.take();
        self.settle_what_is_not_in_flight(in_flight, newest);
        self.unmanaged_in_flight = in_flight.saturating_sub(self.sender.ledger().in_flight());
        let sample = newest.filter(|&sent| sent >= self.newest_before).map(|sent| now.since(sent));
        self.newest_before = self.newest_before.max(newest.unwrap_or(Time::ZERO));
        if let Some(sample) = sample {
            let is_first = self.sender.rtt().smoothed.is_zero();
            // RFC 9002 §5.3.
            self.smoothed = if is_first { sample } else { (self.smoothed_before * 7 + sample) / 8 };
            self.sender.on_rtt_sample(sample);
            if matches!(self.stage, Stage::Unmeasured) {
                self.read_inputs(now);
            }
        }
        if !app_limited {
            self.sender.on_limited();
        }
        let is_all_sent = app_limited && self.is_all_sent();
        if self.sender.end_of_acks(now, sample, is_all_sent).is_some() {
            self.publication.on_event(now);
            self.note_phase(now);
            if self.publication.is_due(&self.sender) {
                self.publish();
            }
        }
        self.refresh_window();
    }

    /// quinn has fewer bytes in flight than the account. The oldest packets below the newest
    /// acknowledged one carried nothing but acknowledgements. Or they left before the peer's port
    /// changed, and were acknowledged while quinn validated the path.
    #[inline]
    fn settle_what_is_not_in_flight(&mut self, in_flight: Bytes, newest: Option<Time>) {
        while self.sender.ledger().in_flight() > in_flight {
            let excess = self.sender.ledger().in_flight() - in_flight;
            let oldest = self.sender.ledger().oldest();
            let Some(packet) = oldest.filter(|it| it.bytes <= excess && Some(it.sent_at) <= newest) else {
                return;
            };
            if packet.number < self.first_on_path {
                self.sender.on_delivered(packet.number, packet.sent_at);
            } else {
                self.sender.discard(packet.number, packet.bytes);
            }
        }
    }

    /// Losses were detected; the newest of the packets left at `sent`.
    fn lost(&mut self, now: Time, sent: Time, bytes: Bytes, is_persistent: bool) {
        let mut left = bytes;
        while !left.is_zero() {
            let Some(packet) = self.sender.ledger().oldest().filter(|it| it.sent_at <= sent) else { break };
            self.sender.on_lost(packet.number, packet.bytes);
            left = left.saturating_sub(packet.bytes);
        }
        self.unmanaged_in_flight = self.unmanaged_in_flight.saturating_sub(left);
        if matches!(self.stage, Stage::Unmeasured) {
            self.handshake_retransmitted = true;
        }
        if matches!(self.stage, Stage::Started) && self.sender.end_of_losses(now, sent, is_persistent) {
            self.publication.on_event(now);
            self.note_phase(now);
            self.publish();
        }
    }

    /// Notes the scheme's phase if it has changed.
    #[inline]
    fn note_phase(&mut self, now: Time) {
        let phase = self.sender.controller().phase();
        // Nearly always it is the same string.
        if !std::ptr::eq(phase, self.phase) && phase != self.phase && !self.is_late {
            self.phase = phase;
            locked(&self.shared.account).note_phase(now.since(self.started_at), phase);
            self.publish();
        }
    }

    /// Brings the account up to date with the latest acknowledgement or loss.
    pub(crate) fn publish(&mut self) {
        if let Some(at) = self.publication.take().filter(|_| !self.is_late) {
            let store = self.shared.rules.store();
            locked(&self.shared.account).publish(at, &self.sender, store, false);
        }
    }

    /// After a change of the peer's port quinn goes on with a clone: same path, another address.
    #[inline]
    fn use_clone(&mut self) {
        if self.is_unused_clone {
            self.is_unused_clone = false;
            self.first_on_path = self.next_number;
            locked(&self.shared.account).note_migration();
        }
    }
}

impl congestion::Controller for Adapter {
    fn on_sent(&mut self, now: Instant, bytes: u64, _: u64) {
        let now = self.event_clock.time(now);
        self.sent(now, Bytes::new(bytes));
    }

    fn on_ack(&mut self, _: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        let sent = self.sent_clock.time(sent);
        self.acked(sent, Bytes::new(bytes), app_limited, || span(rtt.get()));
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _: Option<u64>) {
        let now = self.event_clock.time(now);
        self.end_of_acks(now, Bytes::new(in_flight), app_limited);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        let (now, sent) = (self.event_clock.time(now), self.sent_clock.time(sent));
        self.use_clone();
        if lost_bytes > 0 {
            self.lost(now, sent, Bytes::new(lost_bytes), is_persistent);
        } else if matches!(self.stage, Stage::Started) {
            self.sender.on_mark(now, sent);
            self.publication.on_event(now);
            self.note_phase(now);
        }
        self.refresh_window();
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.largest = Bytes::new(mtu.into());
        // A scheme keeps the segment size it began with; the new one applies only before that.
        if !matches!(self.stage, Stage::Started) {
            self.sender.set_packet(self.largest);
        }
        self.refresh_window();
    }

    fn window(&self) -> u64 {
        self.window
    }

    /// Window and pace as the scheme means them, for qlog.
    fn metrics(&self) -> ControllerMetrics {
        let Allowance { window, pace } = self.sender.controller().allowance();
        let ssthresh = self.sender.controller().ssthresh();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = window.get();
        metrics.ssthresh = (ssthresh != Bytes::MAX).then(|| ssthresh.get());
        metrics.pacing_rate = pace.map(Rate::as_bits_per_sec);
        metrics
    }

    fn clone_box(&self) -> Box<dyn congestion::Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        (self.sender.packet() * INITIAL_PACKETS).get()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// quinn clones a controller when the peer's port changes, and to export its state.
impl Clone for Adapter {
    fn clone(&self) -> Self {
        self.shared.register_controller();
        Self { shared: Arc::clone(&self.shared), sender: self.sender.clone(), is_unused_clone: true, ..*self }
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        if !self.is_unused_clone {
            self.publish();
        }
        self.shared.unregister_controller();
    }
}

#[cfg(test)]
mod tests;
