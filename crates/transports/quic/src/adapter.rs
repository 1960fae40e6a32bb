//! The stack's congestion controller, implemented by a scheme and a base controller.
//!
//! It holds no algorithm of its own: it passes the stack's reports to a [`Driver`] and its sender.
//! Their allowance becomes the stack's window (bytes) and pacing rate (bytes per second).
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
//! response sent in 0-RTT has ten packets until then.
//!
//! | module | holds |
//! |---|---|
//! | `first_flight` | pacing until the first flight, and of a burst |
//! | `cached_metrics` | the adapter's metrics, cached while they cannot change |
//! | `events` | the stack's reports, for the sender |
//! | `repairs` | copies |
//!
//! Between the announcement of more data and the next packet the stack reads only window and pacing
//! rate, which changes nothing. These are computed from a preview of the next flight; the scheme
//! itself gets the announcement with the packet.
//!
//! # Deviations
//!
//! - A scheme receives losses before the ack that showed them; the stack reports them in the other
//!   order, within the same acknowledgement.
//! - A QUIC packet corresponds to a segment of the simulator's TCP; sizes count whole
//!   packets, headers and AEAD tag included, as the stack counts them. Each is sent once: lost data
//!   leaves in new packets, which the stack does not identify. After a loss, as many bytes as were
//!   lost count as retransmissions.
//! - The smoothed RTT is the stack's, which accounts for the peer's ack delay, as of the previous
//!   ack; minimum and variation are of plain samples.
//! - The stack does not report idle periods; a base controller keeps its window over them.
//! - Reactive's probe of the last packet is the stack's probe timeout (RFC 9002 §6.2).

mod cached_metrics;
mod events;
mod first_flight;
mod repairs;

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use headstart_adapter::driver::NextFlight;
use headstart_adapter::epoch::span;
use headstart_adapter::sizes::{INITIAL_PACKETS, MINIMUM_PACKETS, SLACK};
use headstart_adapter::{Driver, EpochCache};
use headstart_startup::trace::SenderEvent;
use headstart_startup::{Controller, Startup as _};
use headstart_units::{Bytes, Rate, Time};
use noq_proto::RttEstimator;
use noq_proto::congestion::{self, ControllerMetrics};

use crate::shared::Shared;
use crate::start_report::Tally;
use cached_metrics::CachedMetrics;
use first_flight::Bucket;
use repairs::Duplicator;

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
    event_clock: EpochCache,
    /// Departure time of the packets that it is about.
    sent_clock: EpochCache,
    pub(crate) driver: Driver,
    /// Metrics for the stack until the next ack or loss, where no departure changes them.
    cached_metrics: Option<CachedMetrics>,
    /// A clone made by the stack that has received no event since.
    is_unused_clone: bool,
    /// The path's current packet size; the scheme keeps the size it began with when the stack's
    /// path MTU discovery finds a larger one.
    largest: Bytes,
    /// Bytes in flight outside of the scheme's account: the handshake's, and path MTU probes.
    unmanaged_in_flight: Bytes,
    /// Highest packet number of the acknowledgement so far, and when that packet was sent.
    newest_acked: Option<(u64, Time)>,
    /// Packets sent earlier were another path's.
    made_at: Time,
    bucket: Bucket,
    duplicator: Option<Duplicator>,
}

impl Adapter {
    fn new(shared: Arc<Shared>, now: Instant, mtu: u16, is_first: bool) -> Self {
        shared.connection.register_controller();
        let packet = Bytes::new(mtu.into());
        let cache = EpochCache::new(shared.rules.epoch, now);
        if !is_first {
            shared.set_retention(false);
        }
        Self {
            event_clock: cache,
            sent_clock: cache,
            driver: Driver::new(Arc::clone(&shared.connection), packet, is_first, cache.last()),
            cached_metrics: None,
            is_unused_clone: false,
            largest: packet,
            unmanaged_in_flight: Bytes::ZERO,
            newest_acked: None,
            made_at: cache.last(),
            bucket: Bucket::default(),
            duplicator: None,
            shared,
        }
    }

    /// Sets bytes in flight outside of the scheme's account; a window cached for others is void.
    #[inline]
    fn set_unmanaged_in_flight(&mut self, bytes: Bytes) {
        if self.unmanaged_in_flight != bytes {
            self.unmanaged_in_flight = bytes;
            self.cached_metrics = None;
        }
    }

    fn min_window(&self) -> Bytes {
        self.driver.sender.packet() * MINIMUM_PACKETS
    }

    /// A window of the scheme as the stack counts it: with all bytes in flight.
    fn with_unmanaged_in_flight(&self, window: Bytes) -> u64 {
        (window + self.unmanaged_in_flight).max(self.min_window()).get()
    }

    #[cold]
    fn compute_window(&self) -> u64 {
        self.window_with(self.preview_next_flight().as_ref())
    }

    #[cold]
    fn compute_metrics(&self) -> CachedMetrics {
        let next_flight = self.preview_next_flight();
        self.metrics_with(self.window_with(next_flight.as_ref()), self.pacing_rate(next_flight.as_ref()))
    }

    fn metrics_with(&self, window: u64, pacing_rate: Option<Rate>) -> CachedMetrics {
        let ssthresh = self.driver.sender.controller().ssthresh();
        CachedMetrics {
            window,
            pacing_rate: pacing_rate.map(Rate::as_bytes_per_sec),
            ssthresh: (ssthresh != Bytes::MAX).then(|| ssthresh.get()),
            bandwidth: self.driver.sender.fastest().map(Rate::as_bits_per_sec),
        }
    }

    /// Bytes that may be in flight, those outside of the scheme's account included; `next_flight`
    /// is the next flight's preview.
    fn window_with(&self, next_flight: Option<&NextFlight>) -> u64 {
        let initial = self.driver.sender.packet() * INITIAL_PACKETS;
        if !self.driver.is_started() {
            let foreseen = self.driver.foreseen().map_or(initial, |plan| plan.allowance.window);
            return foreseen.max(initial).get();
        }
        let controller = next_flight.map_or(self.driver.sender.controller(), |next| &next.controller);
        // The stack requires room for a full packet even for the flow's last bytes.
        let is_last = next_flight.is_some() || self.driver.has_rest(self.largest, false);
        let rest = if is_last { self.largest } else { Bytes::ZERO };
        let least = if self.driver.is_small() { initial } else { Bytes::ZERO };
        self.with_unmanaged_in_flight(controller.allowance().window.max(least) + rest)
    }

    /// Preview of a flight of all data announced since the last plan, if the scheme plans one.
    #[inline]
    fn preview_next_flight(&self) -> Option<NextFlight> {
        if self.driver.has_more_announced() { self.preview_flight() } else { None }
    }

    #[cold]
    fn preview_flight(&self) -> Option<NextFlight> {
        let next_flight = self.driver.preview_next_flight()?;
        // The stack must retain packets before the first one to be copied leaves.
        if self.copies_left(&next_flight.controller).is_some() {
            self.shared.set_retention(true);
        }
        Some(next_flight)
    }

    /// A part of the flight has not left, and the window has room for no more than that part.
    fn is_flight_leaving(&self) -> bool {
        let sender = &self.driver.sender;
        let ends_with_flight = || {
            !sender.controller().is_handed_over()
                && sender.controller().scheme().requirements().ends_with_flight
        };
        sender.ledger().sent() < sender.first_flight() && (self.driver.is_whole_flow() || ends_with_flight())
    }

    /// If the peer's port changes the stack goes on with a clone: same path, other address.
    #[inline]
    fn on_clone_used(&mut self) {
        if self.is_unused_clone {
            self.continue_as_clone();
        }
    }

    #[cold]
    fn continue_as_clone(&mut self) {
        self.is_unused_clone = false;
        self.duplicator = None;
        self.shared.set_retention(false);
        self.driver.note_migration();
    }

    /// One of the scheme's packets is about to leave, if that has begun: true.
    fn leaves(&mut self, now: Time, bytes: Bytes) -> bool {
        let has_begun = self.driver.is_started();
        if !self.driver.before_send(now, bytes + SLACK >= self.driver.sender.packet()) {
            return false;
        }
        if !has_begun {
            self.journal(now, SenderEvent::Established);
            if !self.driver.is_late() {
                self.start_copies();
            }
        }
        if self.driver.before_packet(now) {
            self.cached_metrics = None;
            self.start_copies();
            self.journal(now, SenderEvent::Established);
        }
        true
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
}

impl congestion::Controller for Adapter {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, number: u64) {
        self.on_clone_used();
        let (now, bytes) = (self.event_clock.time(now), Bytes::new(bytes.into()));
        let is_data = self.shared.last_encrypted.is_data();
        // A packet above the path's current packet size is a path MTU probe, not the scheme's.
        let is_ours = is_data && bytes <= self.largest;
        if !self.driver.is_started() {
            self.spend(now, bytes);
        }
        if is_ours && self.leaves(now, bytes) {
            self.sent(now, number, bytes);
        } else {
            self.set_unmanaged_in_flight(self.unmanaged_in_flight + bytes);
        }
    }

    fn on_cwnd_limited(&mut self) {
        self.driver.sender.on_limited();
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
        self.on_clone_used();
        let sent = self.sent_clock.time(sent);
        self.acked(sent, Bytes::new(bytes), number, app_limited, || span(rtt.get()));
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        let now = self.event_clock.time(now);
        self.end_of_acks(now, Bytes::new(in_flight), app_limited, largest);
    }

    fn on_packet_lost(&mut self, bytes: u16, number: u64, now: Instant) {
        self.on_clone_used();
        let now = self.event_clock.time(now);
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
        let (now, sent) = (self.event_clock.time(now), self.sent_clock.time(sent));
        if is_ecn { self.marked(now, sent) } else { self.lost(now, sent, is_persistent) }
    }

    fn on_spurious_congestion_event(&mut self) {
        if self.driver.sender.undo() {
            self.cached_metrics = None;
        }
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.largest = Bytes::new(mtu.into());
        // A scheme keeps the segment size it began with; the new one applies only before that.
        if !self.driver.is_started() {
            self.driver.sender.set_packet(self.largest);
            self.driver.preview();
        }
    }

    fn window(&self) -> u64 {
        self.cached_metrics().map_or_else(|| self.compute_window(), |metrics| metrics.window)
    }

    fn metrics(&self) -> ControllerMetrics {
        self.cached_metrics().map_or_else(|| self.compute_metrics().into(), |&metrics| metrics.into())
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

#[cfg(test)]
mod tests;

/// The stack clones a controller when the peer's port changes, and to export its state.
impl Clone for Adapter {
    fn clone(&self) -> Self {
        self.shared.connection.register_controller();
        let (shared, driver) = (Arc::clone(&self.shared), self.driver.clone());
        Self { shared, driver, is_unused_clone: true, duplicator: None, ..*self }
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        if !self.is_unused_clone {
            self.driver.publish();
        }
        self.shared.connection.unregister_controller();
    }
}
