//! s2n-quic's congestion controller, implemented by a scheme and a base controller.
//!
//! It holds no algorithm of its own: it passes s2n-quic's reports to a [`Driver`] and its `Sender`,
//! and turns their allowance into a window and departure times.
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

use headstart_adapter::epoch::span;
use headstart_adapter::sizes::{MINIMUM_PACKETS, SLACK};
use headstart_adapter::{Connection, Driver};
use headstart_startup::sending::Tally;
use headstart_startup::{Allowance, Controller};
use headstart_units::{Bytes, Span, Time};
use s2n_quic_core::random::Generator;
use s2n_quic_core::recovery::RttEstimator;
use s2n_quic_core::recovery::congestion_controller::{CongestionController, Publisher};
use s2n_quic_core::time::Timestamp;

use crate::pacer::{Pace, Pacer};
use crate::shared::{Clock, Connections, Now};

/// A packet that left, as s2n-quic returns it with its fate. s2n-quic keeps one for each packet, so
/// it is of eight bytes: numbers are the low 32 bits.
#[derive(Clone, Copy, Debug)]
pub enum Packet {
    /// A packet of the handshake.
    Handshake,
    /// A packet of application data, but not of the scheme: a probe, or one from before the scheme
    /// began.
    Other {
        /// Number of the scheme's next packet.
        next: u32,
        /// Size of the packet in bytes.
        bytes: u16,
    },
    /// The scheme's packet of that number.
    Data(u32),
}

/// The congestion controller of a connection's path.
#[derive(Debug)]
pub struct Adapter {
    /// Boxed: s2n-quic moves a connection about while it begins.
    driver: Box<Driver>,
    connections: Arc<Connections>,
    clock: Arc<Clock>,
    pacer: Pacer,
    /// Window and next departure for s2n-quic, and the pace, as of the last event.
    window: Bytes,
    departure: Option<Timestamp>,
    pace: Option<Pace>,
    /// The time of the last event: packets that leave together have one.
    now: Option<Now>,
    /// As of the last event, no departure changes window and pace.
    is_steady: bool,
    has_sent: bool,
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
}

/// Packets for which the window has room in addition to a flight of which less than a packet is
/// left.
const REST: u64 = 2;

impl Adapter {
    pub(crate) fn new(
        connection: Arc<Connection>,
        connections: Arc<Connections>,
        clock: Arc<Clock>,
        packet: u16,
    ) -> Self {
        connection.register_controller();
        let packet = Bytes::new(packet.into());
        let mut adapter = Self {
            driver: Box::new(Driver::new(connection, packet, true, Time::ZERO)),
            connections,
            clock,
            pacer: Pacer::default(),
            window: Bytes::ZERO,
            departure: None,
            pace: None,
            now: None,
            is_steady: false,
            has_sent: false,
            largest: packet,
            in_flight: Bytes::ZERO,
            app_limited: false,
            newest_sent: Time::ZERO,
            sample: None,
            smoothed: Span::ZERO,
            persistent_at: None,
        };
        adapter.window = adapter.compute_window();
        adapter
    }

    /// The scheme and base controller in their current state.
    #[must_use]
    pub fn controller(&self) -> &Controller {
        self.driver.sender.controller()
    }

    /// Counters so far.
    #[must_use]
    pub const fn tally(&self) -> &Tally {
        self.driver.sender.tally()
    }

    // --- window and departure -------------------------------------------------------------------

    fn compute_window(&self) -> Bytes {
        let (Allowance { window, .. }, _) = self.driver.allowance();
        let rest = if self.driver.has_rest(self.largest, true) { self.largest * REST } else { Bytes::ZERO };
        let least = self.driver.sender.packet() * MINIMUM_PACKETS;
        (window + rest).max(least) + self.unmanaged_in_flight()
    }

    fn refresh(&mut self, now: Now) {
        self.window = self.compute_window();
        self.pace = self.compute_pace();
        self.is_steady = self.driver.is_flight_out() && !self.controller().needs_sent_events();
        self.schedule(now);
    }

    /// A packet of the scheme left, by which nothing but the next departure changes.
    fn schedule(&mut self, now: Now) {
        let next = self.pacer.next().filter(|_| self.pace.is_some());
        self.departure = next.map(|at| now.departure(at));
    }

    /// The pace of the next packet; `None` if it may leave at once.
    fn compute_pace(&self) -> Option<Pace> {
        let is_paced = self.driver.is_started()
            && !self.driver.is_small()
            && self.driver.sender.ledger().sent() >= self.driver.burst();
        let Allowance { pace, window, .. } = self.controller().allowance();
        let of_window =
            || (!self.smoothed.is_zero()).then(|| Pace::of_window(window, self.smoothed, self.largest));
        if is_paced { pace.map(Pace::of_scheme).or_else(of_window) } else { None }
    }

    /// Bytes in flight that are not the scheme's: the handshake's, and path MTU probes.
    fn unmanaged_in_flight(&self) -> Bytes {
        self.in_flight.saturating_sub(self.driver.sender.ledger().in_flight())
    }

    /// Window and pace are the last event's, unless a departure began another flight.
    fn is_steady(&self) -> bool {
        self.is_steady && self.driver.is_flight_out()
    }

    // --- reports --------------------------------------------------------------------------------

    /// A packet left; `app_limited` is `None` for packets of the handshake.
    fn sent(&mut self, now: Time, bytes: Bytes, app_limited: Option<bool>) -> Packet {
        if !std::mem::replace(&mut self.has_sent, true) && app_limited.is_some() {
            // None of the handshake: the connection migrated to this path.
            self.driver.become_late();
        }
        self.in_flight += bytes;
        let is_data = app_limited.is_some() && !bytes.is_zero() && bytes <= self.largest;
        let is_full = bytes + SLACK >= self.driver.sender.packet();
        if !is_data || !self.driver.before_send(now, is_full) {
            if app_limited.is_none() {
                return Packet::Handshake;
            }
            let next = self.driver.sender.ledger().end() as u32;
            return Packet::Other { next, bytes: u16::try_from(bytes.get()).unwrap_or(u16::MAX) };
        }
        self.driver.before_packet(now);
        let sender = &mut self.driver.sender;
        // Without gaps: the number of a packet is its ordinal.
        let number = sender.on_sent(now, sender.ledger().end(), bytes).ordinal;
        self.app_limited = app_limited == Some(true);
        if self.app_limited {
            self.driver.on_app_limited();
        } else {
            sender.on_limited();
        }
        if !self.is_steady() {
            self.pace = self.compute_pace();
        }
        self.pacer.on_sent(now, bytes, self.pace);
        Packet::Data(number as u32)
    }

    /// An acknowledgement of so many bytes, whose newest packet that is.
    fn acked(&mut self, now: Time, sent: Time, bytes: Bytes, newest: Packet) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
        let newest = match newest {
            Packet::Handshake => None,
            Packet::Other { next, bytes: others } => {
                Some((self.number(next), bytes.saturating_sub(Bytes::new(others.into()))))
            }
            Packet::Data(number) => Some((self.number(number), bytes)),
        };
        let (smoothed, sender) = (self.smoothed, &mut self.driver.sender);
        sender.opens_batch(|| smoothed);
        if let Some((number, bytes)) = newest {
            sender.on_delivered_up_to(number, sent, bytes);
        }
        self.settle_what_is_not_in_flight();
        let sample = self.sample.take().map(|sample| {
            let sample = self.driver.sender.on_rtt_sample(sample);
            if self.driver.is_unmeasured() {
                self.driver.read_inputs(now);
            }
            sample
        });
        let is_all_sent = self.app_limited && self.driver.is_all_sent();
        if self.driver.sender.end_of_acks(now, sample, is_all_sent).is_some() {
            self.driver.on_ack_event(now);
        }
    }

    /// s2n-quic has fewer bytes in flight than the account: a packet was taken for another. The
    /// oldest packets are the ones that have arrived.
    fn settle_what_is_not_in_flight(&mut self) {
        let sender = &mut self.driver.sender;
        while sender.ledger().in_flight() > self.in_flight {
            let excess = sender.ledger().in_flight() - self.in_flight;
            let Some(packet) = sender.ledger().oldest().filter(|it| it.bytes <= excess) else { return };
            sender.on_delivered(packet.number, packet.sent_at);
        }
    }

    /// A packet was declared lost.
    fn lost(&mut self, now: Time, bytes: Bytes, packet: Packet, is_persistent: bool) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
        self.driver.note_handshake_loss();
        let Packet::Data(number) = packet else { return };
        let number = self.number(number);
        let sender = &mut self.driver.sender;
        let lost = sender.on_lost(number, bytes).or_else(|| {
            // It was taken for one that is still open.
            let oldest = sender.ledger().oldest().filter(|it| it.bytes == bytes)?;
            sender.on_lost(oldest.number, bytes)
        });
        let Some(lost) = lost else { return };
        let is_persistent = is_persistent && self.persistent_at.replace(now) != Some(now);
        if sender.end_of_losses(now, lost.stamp.sent_at, is_persistent) {
            self.driver.on_loss_event(now);
        }
    }

    fn now(&mut self, stamp: Timestamp) -> Now {
        match self.now {
            Some(now) if now.stamp == stamp => now,
            _ => *self.now.insert(Now { stamp, time: self.clock.time(stamp) }),
        }
    }

    fn number(&self, low: u32) -> u64 {
        number(low, self.driver.sender.ledger().end())
    }
}

/// The latest number with these low bits that is at most `end`: fewer than 2^32 packets are in
/// flight.
fn number(low: u32, end: u64) -> u64 {
    end.saturating_sub((end as u32).wrapping_sub(low).into())
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
        let now = self.now(time_sent);
        let packet = self.sent(now.time, Bytes::new(sent_bytes as u64), app_limited);
        if matches!(packet, Packet::Data(_)) && self.is_steady() {
            self.schedule(now);
        } else {
            self.refresh(now);
        }
        packet
    }

    fn on_rtt_update<Pub: Publisher>(
        &mut self,
        time_sent: Timestamp,
        _: Timestamp,
        rtt: &RttEstimator,
        _: &mut Pub,
    ) {
        self.newest_sent = self.clock.time(time_sent);
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
        let (now, sent) = (self.now(ack_receive_time), self.clock.time(newest_acked_time_sent));
        self.acked(now.time, sent, Bytes::new(bytes_acknowledged as u64), newest_acked_packet_info);
        self.smoothed = span(rtt.smoothed_rtt());
        self.refresh(now);
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
        let now = self.now(timestamp);
        self.lost(now.time, Bytes::new(lost_bytes.into()), packet_info, persistent_congestion);
        self.refresh(now);
    }

    fn on_explicit_congestion<Pub: Publisher>(&mut self, _: u64, event_time: Timestamp, _: &mut Pub) {
        let now = self.now(event_time);
        if self.driver.is_started() {
            // The marked packet is not reported; it is not newer than this one.
            self.driver.sender.on_mark(now.time, self.newest_sent);
            self.driver.on_mark_event(now.time);
        }
        self.refresh(now);
    }

    fn on_mtu_update<Pub: Publisher>(&mut self, max_data_size: u16, _: &mut Pub) {
        self.largest = Bytes::new(max_data_size.into());
        // A scheme keeps the segment size it began with; the new one applies only before that.
        if !self.driver.is_started() {
            self.driver.sender.set_packet(self.largest);
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
        self.driver.connection().register_controller();
        let (connections, clock) = (Arc::clone(&self.connections), Arc::clone(&self.clock));
        Self { driver: self.driver.clone(), connections, clock, ..*self }
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        self.driver.publish();
        let connection = self.driver.connection();
        if connection.unregister_controller() {
            self.connections.remove(connection);
        }
    }
}

#[cfg(test)]
mod tests;
