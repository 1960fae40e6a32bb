//! A sender's account of its packets: makes the events of a scheme from a transport's reports.
//!
//! A transport reports packets sent, acknowledged and lost, with their times. From these a
//! [`Sender`] makes the events of the contract, by a [`Moment`] as every sender. It keeps ledger,
//! RTT and delivery-rate samples, recovery periods, counters, and the record for the next
//! connection.
//!
//! ```text
//!  on_sent --> ledger --+--> on_delivered, ..., end_of_acks --> Ack ---------> controller
//!                       +--> on_lost, ..., end_of_losses ----> Congestion ---> controller
//! ```
//!
//! It is for transports whose packets are sent once, as in QUIC: lost data leaves in new packets.
//! Where the transport does not report numbers, the adapter counts packets, and finds them by
//! departure and size ([`Ledger::deliver_unnumbered`]). After a loss, as many bytes as were lost
//! count as retransmissions. It reads no clock and holds no lock.

mod cached_controller;
mod first_answer;
mod ledger;
mod limit;
mod measurement;
mod moment;
mod tally;

use alloc::boxed::Box;

use headstart_units::{Bytes, Rate, Span, Time};

pub use cached_controller::CachedController;
pub use first_answer::FirstAnswer;
pub use ledger::{Ledger, OpenPacket, Packet, ResolvedPacket};
pub use limit::{LimitClock, LimitedBy};
pub use measurement::{Measurement, sent_by_slow_start};
pub use moment::{AckState, Delivered, Losses, Moment};
pub use tally::Tally;

use crate::event::Transmission;
use crate::history::{Record, RecordUpdate};
use crate::path::{PacketTrain, RateEstimator, Rtt, SendStamp};
use crate::repair::Segments;
use crate::trace::{SenderEvent, SenderTrace};
use crate::{Controller, Startup as _};

/// Round trips after which a reduction is not undone: the stacks remember lost packets for two
/// probe timeouts, which is about as long.
const UNDO_ROUNDS: u64 = 4;

/// Packets delivered by one acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    is_any: bool,
    /// The transport's smoothed RTT before this ack.
    smoothed: Span,
    delivered: Delivered,
    packets: u64,
    /// One past the highest ordinal.
    newest: u64,
    /// Send stamp of that packet.
    stamp: SendStamp,
    /// End of that packet, as an offset in the bytes sent.
    end: Bytes,
}

impl Batch {
    #[inline]
    fn add(&mut self, packet: &ResolvedPacket) {
        self.delivered.add(packet.bytes, packet.is_first_flight);
        self.packets += 1;
        // Later packets carry later stamps: the rate is sampled once per batch, from the latest, at
        // the end of the batch.
        if packet.ordinal >= self.newest {
            self.newest = packet.ordinal + 1;
            self.stamp = packet.stamp;
            self.end = packet.offset + packet.bytes;
        }
    }
}

/// A packet that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The packet's number among the sender's packets, without gaps.
    pub ordinal: u64,
    /// Bytes sent before the packet.
    pub offset: Bytes,
    /// A retransmission, if lost bytes were not sent again before it.
    pub transmission: Transmission,
}

/// A sample of the RTT that the sender has counted ([`Sender::on_rtt_sample`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the scheme learns of it by `Sender::end_of_acks`"]
pub struct RttSample(Span);

/// An acknowledgement as the scheme got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Packets that it delivered.
    pub packets: u64,
    /// Bytes of the delivered packets.
    pub bytes: Bytes,
    /// End of the newest of them, as an offset in the bytes sent.
    pub end: Bytes,
}

/// Data that has not left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// The window or the pacer may hold some back.
    More,
    /// The receiver's window does.
    Withheld,
    /// There is none.
    Nothing,
}

/// The sender of one connection.
#[derive(Clone, Debug)]
pub struct Sender {
    controller: CachedController,
    packet: Bytes,
    rtt: Rtt,
    rate: RateEstimator,
    /// Highest delivery rate, computed once per ack.
    fastest: Option<Rate>,
    train: PacketTrain,
    ledger: Ledger,
    batch: Batch,
    /// Losses detected and not passed to the scheme yet.
    losses: Losses,
    /// Start of the newest recovery period, which may be over.
    reduced_at: Option<Time>,
    in_recovery: bool,
    /// The controller before that, restored if the loss was spurious.
    before_recovery: Option<(Time, Box<Controller>)>,
    last_ack_at: Time,
    /// The window or the pacer was the limit for all packets below this ordinal.
    limited_below: u64,
    /// Lost bytes not retransmitted yet.
    retransmission_debt: Bytes,
    first_flight: Bytes,
    first_flight_delivered: Bytes,
    first_answer: FirstAnswer,
    limits: LimitClock,
    rest: Rest,
    tally: Tally,
}

impl Sender {
    /// A sender of packets of `packet` bytes.
    #[must_use]
    pub fn new(controller: Controller, packet: Bytes) -> Self {
        Self {
            controller: CachedController::new(controller),
            packet,
            rtt: Rtt::default(),
            rate: RateEstimator::default(),
            fastest: None,
            train: PacketTrain::default(),
            ledger: Ledger::default(),
            batch: Batch::default(),
            losses: Losses::default(),
            reduced_at: None,
            in_recovery: false,
            before_recovery: None,
            last_ack_at: Time::ZERO,
            limited_below: 0,
            retransmission_debt: Bytes::ZERO,
            first_flight: Bytes::ZERO,
            first_flight_delivered: Bytes::ZERO,
            first_answer: FirstAnswer::default(),
            limits: LimitClock::default(),
            rest: Rest::More,
            tally: Tally::default(),
        }
    }

    /// Sets the size of a full packet: until the first flight begins.
    pub const fn set_packet(&mut self, packet: Bytes) {
        self.packet = packet;
    }

    /// Exchanges the controller.
    pub fn set_controller(&mut self, controller: CachedController) {
        self.controller = controller;
    }

    /// Passes the controller something other than a packet's event.
    pub fn update<T>(&mut self, what: impl FnOnce(&mut Controller) -> T) -> T {
        self.controller.update(what)
    }

    /// The first flight begins: the path is measured from here on.
    pub fn begin(&mut self, first_flight: Bytes) {
        self.rate = RateEstimator::default();
        self.train = PacketTrain::default();
        self.first_flight = first_flight;
    }

    /// A further flight of that size begins.
    pub fn begin_next(&mut self, flight: Bytes) {
        self.first_flight = self.ledger.sent() + flight;
    }

    /// A packet of the number given left. Numbers rise.
    pub fn on_sent(&mut self, now: Time, number: u64, bytes: Bytes) -> Departure {
        if self.limits.since() != Some(now) {
            self.was_held(now, LimitedBy::Application, self.ledger.in_flight());
        }
        self.rest = if bytes < self.packet { Rest::Nothing } else { Rest::More };
        self.first_answer.on_sent(now, self.ledger.in_flight(), self.rtt.smoothed);
        let stamp = self.rate.on_sent(now, self.ledger.in_flight());
        let is_retransmission = !self.retransmission_debt.is_zero();
        self.retransmission_debt = self.retransmission_debt.saturating_sub(bytes);
        let (ordinal, offset) = (self.ledger.end(), self.ledger.sent());
        let is_first_flight = !is_retransmission && offset < self.first_flight;
        self.ledger.push(number, bytes, &stamp, is_first_flight);
        self.tally.sent += bytes;
        if is_first_flight {
            self.tally.first_flight += bytes;
        }
        if self.tally.delivered.is_zero() {
            self.tally.first_round += bytes;
        }
        let transmission =
            if is_retransmission { Transmission::Retransmission } else { Transmission::Original };
        if self.controller.needs_sent_events() {
            let sent = self.moment(now).sent(bytes, transmission, bytes < self.packet);
            self.controller.update(|controller| controller.on_sent(&sent));
        }
        Departure { ordinal, offset, transmission }
    }

    /// The window or the pacer holds back data.
    pub const fn on_limited(&mut self) {
        self.limited_below = self.ledger.end();
        self.rest = Rest::More;
    }

    /// The transport has nothing to send although the window is open. `has_more`: the application
    /// announced more than was sent, so that the receiver's window holds it back.
    pub fn on_app_limited(&mut self, has_more: bool) {
        self.rate.on_app_limited(self.ledger.in_flight());
        self.rest = if has_more { Rest::Withheld } else { Rest::Nothing };
    }

    /// The wait that ends now: `all_sent` is the limit if all had left.
    fn was_held(&mut self, now: Time, all_sent: LimitedBy, in_flight: Bytes) {
        let waited = self.limits.since().map_or(Span::ZERO, |since| now.since(since));
        let probe_timeout = self.rtt.smoothed + self.rtt.variation * 4;
        let by = if self.in_recovery {
            LimitedBy::Recovery
        } else if self.rest == Rest::Withheld {
            LimitedBy::Receiver
        } else if self.rest == Rest::Nothing {
            // Data that is not acknowledged for so long was lost.
            if in_flight.is_zero() || waited <= probe_timeout { all_sent } else { LimitedBy::Recovery }
        } else if in_flight + self.packet > self.controller.allowance().window {
            LimitedBy::Window
        } else {
            LimitedBy::Pacer
        };
        self.limits.charge(now, by);
    }

    /// Time by what held back the next packet, from the first one to the last acknowledgement.
    #[must_use]
    pub const fn limits(&self) -> &LimitClock {
        &self.limits
    }

    /// The first packet of an acknowledgement: notes the transport's smoothed RTT before it. True
    /// once per acknowledgement.
    #[inline]
    pub fn opens_batch(&mut self, smoothed: impl FnOnce() -> Span) -> bool {
        let is_first = !core::mem::replace(&mut self.batch.is_any, true);
        if is_first {
            self.batch.smoothed = smoothed();
        }
        is_first
    }

    /// A packet was acknowledged; false if it is not one of the sender's, or was settled before.
    #[inline]
    pub fn on_delivered(&mut self, number: u64, sent_at: Time) -> bool {
        let packet = self.ledger.deliver(number, sent_at);
        packet.inspect(|packet| self.batch.add(packet)).is_some()
    }

    /// A packet was acknowledged, of a transport that reports departure and size, but no number. A
    /// packet smaller by more than `slack` is not meant.
    #[inline]
    pub fn on_delivered_unnumbered(&mut self, sent_at: Time, bytes: Bytes, slack: Bytes) -> bool {
        let packet = self.ledger.deliver_unnumbered(sent_at, bytes, slack);
        packet.inspect(|packet| self.batch.add(packet)).is_some()
    }

    /// Packets of so many bytes in all were acknowledged, the newest of which has that number. For
    /// a transport that reports no other of them: they are taken to be the ones just before it.
    /// True if the newest is one of the sender's, and was not settled before.
    pub fn on_delivered_up_to(&mut self, number: u64, sent_at: Time, bytes: Bytes) -> bool {
        let Self { ledger, batch, .. } = self;
        ledger.deliver_up_to(number, sent_at, bytes, |packet| batch.add(packet))
    }

    /// The acknowledgement's sample of the RTT. It goes on to [`Self::end_of_acks`], which takes no
    /// other: a sample that is not counted cannot reach the scheme.
    pub fn on_rtt_sample(&mut self, sample: Span) -> RttSample {
        let is_first = self.rtt.smoothed.is_zero();
        self.rtt.update(sample);
        if !is_first {
            self.rtt.smoothed = self.batch.smoothed;
        }
        RttSample(sample)
    }

    /// The acknowledgement is complete: passes it to the scheme, if it delivered a packet.
    pub fn end_of_acks(
        &mut self,
        now: Time,
        sample: Option<RttSample>,
        is_all_sent: bool,
    ) -> Option<Delivery> {
        let batch = core::mem::take(&mut self.batch);
        let delivered = Delivered { rtt_sample: sample.map(|RttSample(span)| span), ..batch.delivered };
        self.last_ack_at = now;
        if delivered.bytes.is_zero() {
            return None;
        }
        self.was_held(now, LimitedBy::Path, self.ledger.in_flight() + delivered.bytes);
        if self.tally.lost.is_zero() {
            let slow_start = sent_by_slow_start(self.packet, self.tally.delivered);
            self.tally.is_ahead |= self.tally.sent > slow_start;
        }
        self.tally.delivered += delivered.bytes;
        self.first_flight_delivered += delivered.first_flight;
        self.first_answer.on_delivered(now, delivered.bytes);
        self.in_recovery &= self.reduced_at.is_some_and(|at| batch.stamp.sent_at <= at);
        self.rate.on_delivered(now, delivered.bytes, &batch.stamp);
        let rate = self.rate.sample(now, self.rtt.min);
        self.fastest = self.rate.fastest().rate();
        let state = AckState {
            newest_sent_at: batch.stamp.sent_at,
            rate,
            is_window_limited: batch.newest <= self.limited_below,
            in_recovery: self.in_recovery,
            is_all_sent,
            marked: Bytes::ZERO,
            stamped: None,
        };
        let ack = self.moment(now).ack(&delivered, &state);
        self.train.on_ack(&ack, self.packet);
        self.controller.update(|controller| controller.on_ack(&ack));
        Some(Delivery { packets: batch.packets, bytes: delivered.bytes, end: batch.end })
    }

    /// A packet was declared lost; [`Self::end_of_losses`] follows. `None` if it is not one of the
    /// sender's, or was settled before.
    pub fn on_lost(&mut self, number: u64, bytes: Bytes) -> Option<ResolvedPacket> {
        let packet = self.ledger.lose(number, bytes)?;
        self.retransmission_debt += packet.bytes;
        self.tally.lost += packet.bytes;
        if packet.is_first_flight {
            self.tally.first_flight_lost += packet.bytes;
        }
        self.losses.add(packet.bytes, packet.is_first_flight, packet.stamp.sent_at);
        Some(packet)
    }

    /// A packet was not subject to congestion control, an acknowledgement for example: it leaves
    /// the account. For transports that report only the bytes that left.
    pub fn discard(&mut self, number: u64, bytes: Bytes) {
        let Some(packet) = self.ledger.lose(number, bytes) else { return };
        self.tally.sent = self.tally.sent.saturating_sub(packet.bytes);
        if packet.is_first_flight {
            self.tally.first_flight = self.tally.first_flight.saturating_sub(packet.bytes);
        }
    }

    /// All losses of one loss detection are known: passes them to the scheme. `sent_at` is the
    /// departure of the newest of them. False if there is nothing to pass.
    pub fn end_of_losses(&mut self, now: Time, sent_at: Time, is_persistent: bool) -> bool {
        let losses = core::mem::take(&mut self.losses);
        if losses.bytes.is_zero() && !is_persistent {
            return false;
        }
        if !self.batch.is_any {
            // No acknowledgement has shown them, but a timer.
            self.limits.charge(now, LimitedBy::Recovery);
        }
        let opens_episode = self.opens_episode(now, sent_at);
        let prior_in_flight = self.ledger.in_flight() + losses.bytes;
        let congestion = self.moment(now).loss(&losses, prior_in_flight, opens_episode);
        self.controller.update(|controller| controller.on_congestion(&congestion));
        if is_persistent {
            self.tally.timeouts += 1;
            let timeout = self.moment(now).timeout(prior_in_flight, 1);
            self.controller.update(|controller| controller.on_timeout(&timeout));
        }
        true
    }

    /// A packet arrived with a congestion mark.
    pub fn on_mark(&mut self, now: Time, sent_at: Time) {
        self.tally.marks += 1;
        let opens_episode = self.opens_episode(now, sent_at);
        let mark = self.moment(now).mark(self.ledger.in_flight(), opens_episode);
        self.controller.update(|controller| controller.on_congestion(&mark));
        // A mark is no loss: it cannot be spurious.
        self.before_recovery = None;
    }

    /// One reduction per round trip (RFC 9002 §7.3.2): losses of packets sent before the newest
    /// recovery period began change nothing, also where they are found after its end. It ends with
    /// the first packet sent in it, and a loss shows by the third one behind.
    fn opens_episode(&mut self, now: Time, sent_at: Time) -> bool {
        self.train.end();
        let opens = self.reduced_at.is_none_or(|at| sent_at > at);
        if opens {
            self.reduced_at = Some(now);
            self.in_recovery = true;
            self.before_recovery = Some((now, Box::new(*self.controller)));
        }
        opens
    }

    #[inline]
    fn moment(&self, now: Time) -> Moment<'_> {
        Moment {
            now,
            rtt: &self.rtt,
            in_flight: self.ledger.in_flight(),
            delivered: self.rate.delivered(),
            first_flight_delivered: self.first_flight_delivered,
        }
    }

    /// Every packet declared lost has arrived: the window is restored (RFC 9438 §4.9.2). The
    /// transport does not report the time of the losses: a reduction long ago is not undone. Nor is
    /// any where copies were sent: one may have arrived in place of a packet that was lost. True if
    /// it was undone.
    pub fn undo(&mut self) -> bool {
        let Some((since, before)) = self.before_recovery.take() else { return false };
        let is_recent = self.last_ack_at.since(since) <= self.rtt.smoothed * UNDO_ROUNDS;
        let is_spurious = is_recent && self.tally.copies == 0;
        if is_spurious {
            self.controller = CachedController::new(*before);
            self.reduced_at = None;
            self.in_recovery = false;
            self.retransmission_debt = Bytes::ZERO;
            self.tally.spurious += 1;
        }
        is_spurious
    }

    /// A copy of a packet leaves.
    pub fn on_copied(&mut self, bytes: Bytes) {
        self.tally.copies += 1;
        self.tally.copy_bytes += bytes;
    }

    /// The data until the first pause.
    #[must_use]
    pub const fn first_answer(&self) -> &FirstAnswer {
        &self.first_answer
    }

    /// Every packet of the first flight is acknowledged or lost.
    #[must_use]
    pub fn is_first_flight_over(&self) -> bool {
        let settled = self.tally.delivered + self.tally.lost;
        !self.tally.sent.is_zero() && settled >= self.first_flight.min(self.tally.sent)
    }

    /// The fate of the record of a peer at the end of a connection that began from `used`, if from
    /// any.
    #[must_use]
    pub fn record_update(&self, now: Time, used: Option<&Record>) -> RecordUpdate {
        self.controller.scheme().record_update(self.measured(now, used))
    }

    /// The path's record by this connection; `None`: the previous record stays.
    fn measured(&self, now: Time, used: Option<&Record>) -> Option<Record> {
        Measurement {
            rate: &self.rate,
            train: &self.train,
            rt_prop: self.rtt.min,
            controller: &self.controller,
            packet: self.packet,
            first_flight: self.tally.first_flight,
            first_flight_lost: self.tally.first_flight_lost,
            has_lost: !self.tally.lost.is_zero(),
        }
        .record(now, used)
    }

    /// The sender's state after an event. A transport that knows no backlog has nothing unsent.
    #[must_use]
    pub fn trace(&self, event: SenderEvent) -> SenderTrace {
        let allowance = self.controller.allowance();
        SenderTrace {
            event,
            in_flight: self.ledger.in_flight(),
            unsent: Bytes::ZERO,
            window: allowance.window,
            pace: allowance.pace,
            smoothed_rtt: self.rtt.smoothed,
            phase: self.controller.phase(),
            in_recovery: self.in_recovery,
        }
    }

    /// The sender's packets, as a repair reads them; `is_all_sent` if the application has no more.
    #[must_use]
    pub const fn segments(&self, is_all_sent: bool) -> LedgerSegments<'_> {
        LedgerSegments { ledger: &self.ledger, first_flight: self.first_flight, is_all_sent }
    }

    /// The scheme and base controller.
    #[must_use]
    pub const fn controller(&self) -> &CachedController {
        &self.controller
    }

    /// Size of a full packet.
    #[must_use]
    pub const fn packet(&self) -> Bytes {
        self.packet
    }

    /// The path's round-trip time.
    #[must_use]
    pub const fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    /// The highest delivery rate; `None` before the first sample.
    #[must_use]
    pub const fn fastest(&self) -> Option<Rate> {
        self.fastest
    }

    /// Bytes delivered since the first flight began.
    #[must_use]
    pub const fn delivered(&self) -> Bytes {
        self.rate.delivered()
    }

    /// The packets that are neither acknowledged nor lost.
    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Time of the last acknowledgement.
    #[must_use]
    pub const fn last_ack_at(&self) -> Time {
        self.last_ack_at
    }

    /// End of the flight, as an offset in the bytes sent.
    #[must_use]
    pub const fn first_flight(&self) -> Bytes {
        self.first_flight
    }

    /// The sender's totals of bytes, copies, marks and timeouts.
    #[must_use]
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }
}

/// The ledger, as a repair reads it.
#[derive(Clone, Copy, Debug)]
pub struct LedgerSegments<'a> {
    ledger: &'a Ledger,
    first_flight: Bytes,
    is_all_sent: bool,
}

impl Segments for LedgerSegments<'_> {
    fn first_unacked(&self) -> u64 {
        self.ledger.base()
    }
    fn end(&self) -> u64 {
        self.ledger.end()
    }
    /// The data of a lost packet is already being retransmitted: a copy would come too late.
    fn is_delivered(&self, segment: u64) -> bool {
        self.ledger.open(segment).is_none()
    }
    fn offset(&self, segment: u64) -> Bytes {
        self.ledger.offset(segment)
    }
    fn is_first_flight_sent(&self) -> bool {
        self.is_all_sent || self.ledger.sent() >= self.first_flight
    }
}
