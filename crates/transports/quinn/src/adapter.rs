//! quinn's congestion controller, implemented by a scheme and a base controller.
//!
//! It holds no algorithm of its own: it passes quinn's reports to a [`Driver`] and its `Sender`,
//! and turns their allowance into a window ([`crate::pacing`]).
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
use headstart_adapter::sizes::{INITIAL_PACKETS, MINIMUM_PACKETS, SLACK};
use headstart_adapter::{Connection, Driver, Epoch, EpochCache};
use headstart_startup::sending::Tally;
use headstart_startup::{Allowance, Controller};
use headstart_units::{Bytes, Rate, Span, Time};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{self, ControllerMetrics};

use crate::pacing;

/// Makes the controllers of one connection: the first runs the scheme; a later one means that the
/// path has changed, and runs slow start.
#[derive(Debug)]
pub(crate) struct Factory {
    connection: Arc<Connection>,
    epoch: Epoch,
    has_built: AtomicBool,
}

impl Factory {
    pub fn new(connection: Arc<Connection>, epoch: Epoch) -> Arc<Self> {
        Arc::new(Self { connection, epoch, has_built: AtomicBool::new(false) })
    }
}

impl congestion::ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn congestion::Controller> {
        let is_first = !self.has_built.swap(true, Ordering::Relaxed);
        let clock = EpochCache::new(self.epoch, now);
        Box::new(Adapter::new(Arc::clone(&self.connection), clock, mtu, is_first))
    }
}

/// The congestion controller of a connection's path.
#[derive(Debug)]
pub struct Adapter {
    driver: Driver,
    /// Time of the event that quinn reports.
    event_clock: EpochCache,
    /// Departure time of the packets that it is about.
    sent_clock: EpochCache,
    /// The window for quinn, as of the last event.
    window: u64,
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
    /// The flight has left, as of the last event.
    is_flight_out: bool,
}

/// Packets for which the window has room in addition to a flight of which less than a packet is
/// left. They are that packet, and a probe of the path's MTU that may be in flight.
const REST: u64 = 2;
/// A datagram below this size carries an acknowledgement and nothing else, or next to nothing.
const MIN_DATA: Bytes = Bytes::new(64);

impl Adapter {
    pub(crate) fn new(connection: Arc<Connection>, clock: EpochCache, mtu: u16, is_first: bool) -> Self {
        connection.register_controller();
        let packet = Bytes::new(mtu.into());
        let mut adapter = Self {
            driver: Driver::new(connection, packet, is_first, clock.last()),
            event_clock: clock,
            sent_clock: clock,
            window: 0,
            is_unused_clone: false,
            largest: packet,
            unmanaged_in_flight: Bytes::ZERO,
            next_number: 0,
            first_on_path: 0,
            newest_acked: None,
            newest_before: Time::ZERO,
            smoothed_before: Span::ZERO,
            smoothed: Span::ZERO,
            is_flight_out: false,
        };
        adapter.refresh_window();
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

    // --- the window -----------------------------------------------------------------------------

    #[inline]
    fn refresh_window(&mut self) {
        let allowance = self.driver.sender.controller().allowance();
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
        window.max(self.driver.sender.packet() * MINIMUM_PACKETS).get().saturating_add(1)
    }

    #[cold]
    fn compute_window(&self) -> u64 {
        let (allowance, burst_left) = self.driver.allowance();
        let in_flight = self.driver.sender.ledger().in_flight();
        let rest = if self.driver.has_rest(self.largest, true) { self.largest * REST } else { Bytes::ZERO };
        let state =
            pacing::State { allowance, in_flight, burst_left, smoothed: self.smoothed, packet: self.largest };
        self.for_quinn(pacing::window(&state) + rest)
    }

    // --- reports --------------------------------------------------------------------------------

    /// A batch of datagrams left.
    fn sent(&mut self, now: Time, bytes: Bytes) {
        self.use_clone();
        let is_full = bytes + SLACK >= self.driver.sender.packet();
        if self.driver.before_send(now, is_full) && bytes >= MIN_DATA {
            self.driver.before_packet(now);
            let mut left = bytes;
            while !left.is_zero() {
                let packet = left.min(self.largest);
                self.driver.sender.on_sent(now, self.next_number, packet);
                self.next_number += 1;
                left -= packet;
            }
            self.is_flight_out = self.driver.is_flight_out();
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
        if self.driver.sender.opens_batch(smoothed) && app_limited && self.driver.is_started() {
            self.driver.on_app_limited();
        }
        self.newest_acked = self.newest_acked.max(Some(sent));
        if !self.driver.sender.on_delivered_unnumbered(sent, bytes, SLACK) {
            self.unmanaged_in_flight = self.unmanaged_in_flight.saturating_sub(bytes);
        }
    }

    /// The acknowledgement is complete.
    fn end_of_acks(&mut self, now: Time, in_flight: Bytes, app_limited: bool) {
        let newest = self.newest_acked.take();
        self.settle_what_is_not_in_flight(in_flight, newest);
        self.unmanaged_in_flight = in_flight.saturating_sub(self.driver.sender.ledger().in_flight());
        let sample = newest.filter(|&sent| sent >= self.newest_before).map(|sent| now.since(sent));
        self.newest_before = self.newest_before.max(newest.unwrap_or(Time::ZERO));
        let sample = sample.map(|sample| {
            let is_first = self.driver.sender.rtt().smoothed.is_zero();
            // RFC 9002 §5.3.
            self.smoothed = if is_first { sample } else { (self.smoothed_before * 7 + sample) / 8 };
            let sample = self.driver.sender.on_rtt_sample(sample);
            if self.driver.is_unmeasured() {
                self.driver.read_inputs(now);
            }
            sample
        });
        if !app_limited {
            self.driver.sender.on_limited();
        }
        let is_all_sent = app_limited && self.driver.is_all_sent();
        if self.driver.sender.end_of_acks(now, sample, is_all_sent).is_some() {
            self.driver.on_ack_event(now);
        }
        self.refresh_window();
    }

    /// quinn has fewer bytes in flight than the account. The oldest packets below the newest
    /// acknowledged one carried nothing but acknowledgements. Or they left before the peer's port
    /// changed, and were acknowledged while quinn validated the path.
    #[inline]
    fn settle_what_is_not_in_flight(&mut self, in_flight: Bytes, newest: Option<Time>) {
        while self.driver.sender.ledger().in_flight() > in_flight {
            let excess = self.driver.sender.ledger().in_flight() - in_flight;
            let oldest = self.driver.sender.ledger().oldest();
            let Some(packet) = oldest.filter(|it| it.bytes <= excess && Some(it.sent_at) <= newest) else {
                return;
            };
            if packet.number < self.first_on_path {
                self.driver.sender.on_delivered(packet.number, packet.sent_at);
            } else {
                self.driver.sender.discard(packet.number, packet.bytes);
            }
        }
    }

    /// Losses were detected; the newest of the packets left at `sent`.
    fn lost(&mut self, now: Time, sent: Time, bytes: Bytes, is_persistent: bool) {
        let mut left = bytes;
        while !left.is_zero() {
            let Some(packet) = self.driver.sender.ledger().oldest().filter(|it| it.sent_at <= sent) else {
                break;
            };
            self.driver.sender.on_lost(packet.number, packet.bytes);
            left = left.saturating_sub(packet.bytes);
        }
        self.unmanaged_in_flight = self.unmanaged_in_flight.saturating_sub(left);
        self.driver.note_handshake_loss();
        if self.driver.is_started() && self.driver.sender.end_of_losses(now, sent, is_persistent) {
            self.driver.on_loss_event(now);
        }
    }

    /// Brings the account up to date with the latest acknowledgement or loss.
    pub(crate) fn publish(&mut self) {
        self.driver.publish();
    }

    /// After a change of the peer's port quinn goes on with a clone: same path, another address.
    #[inline]
    fn use_clone(&mut self) {
        if self.is_unused_clone {
            self.is_unused_clone = false;
            self.first_on_path = self.next_number;
            self.driver.note_migration();
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
        } else if self.driver.is_started() {
            self.driver.sender.on_mark(now, sent);
            self.driver.on_mark_event(now);
        }
        self.refresh_window();
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.largest = Bytes::new(mtu.into());
        // A scheme keeps the segment size it began with; the new one applies only before that.
        if !self.driver.is_started() {
            self.driver.sender.set_packet(self.largest);
        }
        self.refresh_window();
    }

    fn window(&self) -> u64 {
        self.window
    }

    /// Window and pace as the scheme means them, for qlog.
    fn metrics(&self) -> ControllerMetrics {
        let Allowance { window, pace } = self.driver.sender.controller().allowance();
        let ssthresh = self.driver.sender.controller().ssthresh();
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
        (self.driver.sender.packet() * INITIAL_PACKETS).get()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// quinn clones a controller when the peer's port changes, and to export its state.
impl Clone for Adapter {
    fn clone(&self) -> Self {
        self.driver.connection().register_controller();
        Self { driver: self.driver.clone(), is_unused_clone: true, ..*self }
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        if !self.is_unused_clone {
            self.publish();
        }
        self.driver.connection().unregister_controller();
    }
}

#[cfg(test)]
mod tests;
