//! s2n-quic's congestion controller, implemented by a scheme and a base controller.
//!
//! It holds no algorithm of its own: it passes s2n-quic's reports to a [`Sender`], and turns its
//! allowance into a window and departure times.
//!
//! ```text
//!              first ack                 first full data packet
//!  Unmeasured -----------> Ready --------------------------------> Started
//!  window 10 packets       record, gates and hint are known        the scheme decides
//! ```
//!
//! # Deviations
//!
//! - s2n-quic reports the newest packet of an acknowledgement and the sum of bytes. The others are
//!   taken to be the packets just before it. One that is later reported lost, though it counts as
//!   delivered, takes the place of the oldest packet of its size.
//! - Losses are reported one by one, without an end: a scheme gets one event for each.
//! - A path to which a connection migrated has a controller of its own, made as if for a new
//!   connection. It is known by its first packet, which is none of the handshake. It runs slow
//!   start and writes no record. The connection's first path writes one of what it measured.
//! - A packet may leave a millisecond before its departure time: s2n-quic's granularity.
//! - s2n-quic does not report losses found spurious: a reduction is not undone.
//! - The peer's flow control limits are not known here; s2n-quic obeys them.
//! - Probes of the path's MTU are larger than it: they are no packets of the scheme.

use std::sync::Arc;

use headstart_adapter::announced::{self, ESTIMATED};
use headstart_adapter::epoch::span;
use headstart_adapter::gates::NothingToGain;
use headstart_adapter::sizes::{self, INITIAL_PACKETS, MINIMUM_PACKETS, SLACK};
use headstart_adapter::{Inputs, Publication};
use headstart_host::locked;
use headstart_startup::catalogue::Needs;
use headstart_startup::sending::{CachedController, Sender, Tally};
use headstart_startup::{Allowance, Controller, FlightPlan, Prior, Progress, Startup as _};
use headstart_units::{Bytes, Span, Time};
use s2n_quic_core::random::Generator;
use s2n_quic_core::recovery::RttEstimator;
use s2n_quic_core::recovery::congestion_controller::{CongestionController, Publisher};
use s2n_quic_core::time::Timestamp;

use crate::pacer::{Pace, Pacer};
use crate::shared::Shared;

/// The connection's stage before its scheme begins.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Unmeasured,
    /// The RTT is measured: every input but the flow's size is known.
    Ready(Prior),
    Started,
}

/// A packet that left, as s2n-quic returns it with its fate.
#[derive(Clone, Copy, Debug)]
pub enum Packet {
    /// Of the handshake.
    Handshake,
    /// Of application data, but not of the scheme: a probe, or one from before the scheme began.
    Other {
        /// Number of the scheme's next packet.
        next: u64,
        /// Its own size.
        bytes: Bytes,
    },
    /// The scheme's packet of that number.
    Data(u64),
}

/// The congestion controller of a connection's path.
#[derive(Debug)]
pub struct Adapter {
    shared: Arc<Shared>,
    sender: Sender,
    stage: Stage,
    pacer: Pacer,
    /// Window and next departure for s2n-quic, as of the last event.
    window: Bytes,
    departure: Option<Timestamp>,
    /// The scheme is one that plans with the flow's size.
    plans_with_size: bool,
    has_sent: bool,
    /// On a path other than the connection's first: slow start, no record.
    is_late: bool,
    /// The path's current packet size; the scheme keeps the size it began with.
    largest: Bytes,
    /// All bytes in flight, as s2n-quic counts them.
    in_flight: Bytes,
    /// The application had no more to send when the last packet left.
    app_limited: bool,
    /// Departure of the newest packet that gave an RTT sample, and the sample until it is used.
    newest_sent: Time,
    sample: Option<Span>,
    /// s2n-quic's smoothed RTT, as of the last packet or acknowledgement.
    smoothed: Span,
    /// Time of the last loss detection that found persistent congestion.
    persistent_at: Option<Time>,
    handshake_retransmitted: bool,
    /// Bytes announced by the application when the scheme last planned.
    announced: Bytes,
    /// The flight covers all announced data.
    is_whole_flow: bool,
    /// All data announced when the scheme began fits into the initial window.
    began_small: bool,
    /// End of the burst, as an offset in the bytes sent.
    burst: Bytes,
    started_at: Time,
    phase: &'static str,
    publication: Publication,
}

/// Packets for which the window has room beyond a flight of which less than a packet is left.
const REST: u64 = 2;

impl Adapter {
    pub(crate) fn new(shared: Arc<Shared>, packet: u16) -> Self {
        shared.register_controller();
        let packet = Bytes::new(packet.into());
        let rules = &shared.rules;
        let mut adapter = Self {
            sender: Sender::new(Controller::new(rules.choice.scheme(), rules.base, packet), packet),
            stage: Stage::Unmeasured,
            pacer: Pacer::default(),
            window: Bytes::ZERO,
            departure: None,
            plans_with_size: rules.choice.needs() == Needs::FlowSize,
            has_sent: false,
            is_late: false,
            largest: packet,
            in_flight: Bytes::ZERO,
            app_limited: false,
            newest_sent: Time::ZERO,
            sample: None,
            smoothed: Span::ZERO,
            persistent_at: None,
            handshake_retransmitted: false,
            announced: Bytes::ZERO,
            is_whole_flow: false,
            began_small: false,
            burst: Bytes::ZERO,
            started_at: Time::ZERO,
            phase: "",
            publication: Publication::default(),
            shared,
        };
        adapter.window = adapter.compute_window();
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

    // --- window and departure -------------------------------------------------------------------

    fn compute_window(&self) -> Bytes {
        let initial = self.sender.packet() * INITIAL_PACKETS;
        let window = match &self.stage {
            Stage::Unmeasured => initial,
            Stage::Ready(prior) => self.foresee(prior).allowance.window,
            Stage::Started => {
                let window = self.sender.controller().allowance().window;
                let window = if self.is_small() { window.max(initial) } else { window };
                if self.has_rest() { window + self.largest * REST } else { window }
            }
        };
        window.max(self.sender.packet() * MINIMUM_PACKETS) + self.unmanaged_in_flight()
    }

    fn refresh(&mut self, now: Timestamp) {
        self.window = self.compute_window();
        let next = self.pacer.next().filter(|_| self.pace().is_some());
        self.departure = next.map(|at| self.shared.rules.clock.timestamp(at, now));
    }

    /// The pace of the next packet; `None` if it may leave at once.
    fn pace(&self) -> Option<Pace> {
        let is_paced = matches!(self.stage, Stage::Started)
            && !self.is_small()
            && self.sender.ledger().sent() >= self.burst;
        let Allowance { pace, window, .. } = self.sender.controller().allowance();
        let of_window =
            || (!self.smoothed.is_zero()).then(|| Pace::of_window(window, self.smoothed, self.largest));
        if is_paced { pace.map(Pace::of_scheme).or_else(of_window) } else { None }
    }

    /// Bytes in flight that are not the scheme's: the handshake's, and path MTU probes.
    fn unmanaged_in_flight(&self) -> Bytes {
        self.in_flight.saturating_sub(self.sender.ledger().in_flight())
    }

    /// A part of the flight has not left, and the window has room for no more than that part. The
    /// rest may be smaller than a packet, and s2n-quic requires the room of a full one.
    fn has_rest(&self) -> bool {
        let (sent, flight) = (self.sender.ledger().sent(), self.sender.first_flight());
        let controller = self.sender.controller();
        let ends_with_flight = || !controller.is_handed_over() && controller.scheme().ends_with_flight();
        // The size on the wire is an estimate.
        let is_rest_of_flow = self.is_whole_flow && sent < flight + flight / ESTIMATED;
        is_rest_of_flow || (sent < flight && ends_with_flight() && flight - sent < self.largest)
    }

    // --- the start ------------------------------------------------------------------------------

    /// The first packet leaves, and is none of the handshake: the connection migrated to this path.
    fn become_late(&mut self) {
        self.is_late = true;
        self.plans_with_size = false;
        self.run_control();
        self.shared.leave_account();
    }

    /// The first round trip was measured: reads record and hint.
    fn read_inputs(&mut self, now: Time) {
        let shared = Arc::clone(&self.shared);
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
        let plan = self.foresee(&prior);
        let shared = Arc::clone(&self.shared);
        let is_outrun =
            !self.is_late && announced::is_outrun(&shared.rules.gates, &self.sender, &prior, &plan);
        if is_outrun {
            self.run_control();
        }
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

    /// A packet left; `app_limited` is `None` for packets of the handshake.
    fn sent(&mut self, now: Time, bytes: Bytes, app_limited: Option<bool>) -> Packet {
        if !std::mem::replace(&mut self.has_sent, true) && app_limited.is_some() {
            self.become_late();
        }
        self.in_flight += bytes;
        let is_data = app_limited.is_some() && !bytes.is_zero() && bytes <= self.largest;
        if let Stage::Ready(prior) = self.stage
            && is_data
            && (bytes + SLACK >= self.sender.packet()
                || (self.plans_with_size && self.shared.expected().is_some()))
        {
            self.start(now, &prior);
        }
        if !is_data || !matches!(self.stage, Stage::Started) {
            let next = self.sender.ledger().end();
            return if app_limited.is_none() { Packet::Handshake } else { Packet::Other { next, bytes } };
        }
        if self.plans_with_size {
            self.plan_next_flight(now);
        }
        // Without gaps: the number of a packet is its ordinal.
        let number = self.sender.on_sent(now, self.sender.ledger().end(), bytes).ordinal;
        self.app_limited = app_limited == Some(true);
        if self.app_limited {
            self.sender.on_app_limited();
        } else {
            self.sender.on_limited();
        }
        self.pacer.on_sent(now, bytes, self.pace());
        Packet::Data(number)
    }

    /// An acknowledgement of so many bytes, whose newest packet that is.
    fn acked(&mut self, now: Time, sent: Time, bytes: Bytes, newest: Packet) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
        let smoothed = self.smoothed;
        self.sender.opens_batch(|| smoothed);
        match newest {
            Packet::Handshake => {}
            Packet::Other { next, bytes: others } => {
                self.sender.on_delivered_up_to(next, sent, bytes.saturating_sub(others));
            }
            Packet::Data(number) => {
                self.sender.on_delivered_up_to(number, sent, bytes);
            }
        }
        self.settle_what_is_not_in_flight();
        let sample = self.sample.take();
        if let Some(sample) = sample {
            self.sender.on_rtt_sample(sample);
            if matches!(self.stage, Stage::Unmeasured) {
                self.read_inputs(now);
            }
        }
        let is_all_sent = self.app_limited && self.is_all_sent();
        if self.sender.end_of_acks(now, sample, is_all_sent).is_some() {
            self.publication.on_event(now);
            self.note_phase(now);
            if self.publication.is_due(&self.sender) {
                self.publish();
            }
        }
    }

    /// s2n-quic has fewer bytes in flight than the account: a packet was taken for another. The
    /// oldest packets are the ones that have arrived.
    fn settle_what_is_not_in_flight(&mut self) {
        while self.sender.ledger().in_flight() > self.in_flight {
            let excess = self.sender.ledger().in_flight() - self.in_flight;
            let oldest = self.sender.ledger().oldest();
            let Some(packet) = oldest.filter(|it| it.bytes <= excess) else { return };
            self.sender.on_delivered(packet.number, packet.sent_at);
        }
    }

    /// A packet was declared lost.
    fn lost(&mut self, now: Time, bytes: Bytes, packet: Packet, is_persistent: bool) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
        if matches!(self.stage, Stage::Unmeasured) {
            self.handshake_retransmitted = true;
        }
        let Packet::Data(number) = packet else { return };
        let lost = self.sender.on_lost(number, bytes).or_else(|| {
            // It was taken for one that is still open.
            let oldest = self.sender.ledger().oldest().filter(|it| it.bytes == bytes)?;
            self.sender.on_lost(oldest.number, bytes)
        });
        let Some(lost) = lost else { return };
        let is_persistent = is_persistent && self.persistent_at.replace(now) != Some(now);
        if self.sender.end_of_losses(now, lost.stamp.sent_at, is_persistent) {
            self.publication.on_event(now);
            self.note_phase(now);
            self.publish();
        }
    }

    /// Notes the scheme's phase if it has changed.
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
    fn publish(&mut self) {
        if let Some(at) = self.publication.take().filter(|_| !self.is_late) {
            let store = self.shared.rules.store();
            locked(&self.shared.account).publish(at, &self.sender, store, false);
        }
    }

    fn time(&self, at: Timestamp) -> Time {
        self.shared.rules.clock.time(at)
    }
}

impl CongestionController for Adapter {
    type PacketInfo = Packet;

    fn congestion_window(&self) -> u32 {
        u32::try_from(self.window.get()).unwrap_or(u32::MAX)
    }

    fn bytes_in_flight(&self) -> u32 {
        u32::try_from(self.in_flight.get()).unwrap_or(u32::MAX)
    }

    fn is_congestion_limited(&self) -> bool {
        self.window.saturating_sub(self.in_flight) < self.largest
    }

    fn requires_fast_retransmission(&self) -> bool {
        false
    }

    fn on_packet_sent<Pub: Publisher>(
        &mut self,
        time_sent: Timestamp,
        sent_bytes: usize,
        app_limited: Option<bool>,
        rtt: &RttEstimator,
        _: &mut Pub,
    ) -> Packet {
        self.smoothed = span(rtt.smoothed_rtt());
        let packet = self.sent(self.time(time_sent), Bytes::new(sent_bytes as u64), app_limited);
        self.refresh(time_sent);
        packet
    }

    fn on_rtt_update<Pub: Publisher>(
        &mut self,
        time_sent: Timestamp,
        _: Timestamp,
        rtt: &RttEstimator,
        _: &mut Pub,
    ) {
        self.newest_sent = self.time(time_sent);
        self.sample = Some(span(rtt.latest_rtt()));
    }

    fn on_ack<Pub: Publisher>(
        &mut self,
        newest_acked_time_sent: Timestamp,
        bytes_acknowledged: usize,
        newest_acked_packet_info: Packet,
        rtt: &RttEstimator,
        _: &mut dyn Generator,
        ack_receive_time: Timestamp,
        _: &mut Pub,
    ) {
        let (now, sent) = (self.time(ack_receive_time), self.time(newest_acked_time_sent));
        self.acked(now, sent, Bytes::new(bytes_acknowledged as u64), newest_acked_packet_info);
        self.smoothed = span(rtt.smoothed_rtt());
        self.refresh(ack_receive_time);
    }

    fn on_packet_lost<Pub: Publisher>(
        &mut self,
        lost_bytes: u32,
        packet_info: Packet,
        persistent_congestion: bool,
        _: bool,
        _: &mut dyn Generator,
        timestamp: Timestamp,
        _: &mut Pub,
    ) {
        let now = self.time(timestamp);
        self.lost(now, Bytes::new(lost_bytes.into()), packet_info, persistent_congestion);
        self.refresh(timestamp);
    }

    fn on_explicit_congestion<Pub: Publisher>(&mut self, _: u64, event_time: Timestamp, _: &mut Pub) {
        let now = self.time(event_time);
        if matches!(self.stage, Stage::Started) {
            // The marked packet is not reported; it is not newer than this one.
            self.sender.on_mark(now, self.newest_sent);
            self.publication.on_event(now);
            self.note_phase(now);
        }
        self.refresh(event_time);
    }

    fn on_mtu_update<Pub: Publisher>(&mut self, max_data_size: u16, _: &mut Pub) {
        self.largest = Bytes::new(max_data_size.into());
        // A scheme keeps the segment size it began with; the new one applies only before that.
        if !matches!(self.stage, Stage::Started) {
            self.sender.set_packet(self.largest);
        }
        self.window = self.compute_window();
    }

    fn on_packet_discarded<Pub: Publisher>(&mut self, bytes_sent: usize, _: &mut Pub) {
        self.in_flight = self.in_flight.saturating_sub(Bytes::new(bytes_sent as u64));
        self.window = self.compute_window();
    }

    fn earliest_departure_time(&self) -> Option<Timestamp> {
        self.departure
    }
}

/// The trait requires it: the last copy that is dropped closes the connection.
impl Clone for Adapter {
    fn clone(&self) -> Self {
        self.shared.register_controller();
        Self { shared: Arc::clone(&self.shared), sender: self.sender.clone(), ..*self }
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        self.publish();
        self.shared.unregister_controller();
    }
}

#[cfg(test)]
mod tests;
