//! Reports of the stack, for the sender.

use headstart_startup::Transmission;
use headstart_startup::trace::SenderEvent;
use headstart_units::{Bytes, Span, Time};

use super::Adapter;
use super::first_flight::Bucket;

impl Adapter {
    /// One of the scheme's packets left.
    pub(super) fn sent(&mut self, now: Time, number: u64, bytes: Bytes) {
        let departure = self.driver.sender.on_sent(now, number, bytes);
        let (offset, transmission) = (departure.offset.get(), departure.transmission);
        self.journal(now, SenderEvent::Sent { offset, payload: bytes, transmission });
        if transmission == Transmission::Original {
            self.copy_after_sending(now, departure.ordinal);
        }
    }

    /// A packet was acknowledged; `smoothed` is the stack's RTT before the first of a batch.
    #[inline]
    pub(super) fn acked(
        &mut self,
        sent: Time,
        bytes: Bytes,
        number: u64,
        app_limited: bool,
        smoothed: impl FnOnce() -> Span,
    ) {
        let is_limited = self.driver.sender.opens_batch(smoothed) && app_limited;
        if is_limited && self.driver.is_started() {
            // Nothing has left since the stack was application-limited, so the bytes in flight are
            // those of that time.
            self.driver.on_app_limited();
        }
        if sent >= self.made_at && self.newest_acked.is_none_or(|(newest, _)| number > newest) {
            self.newest_acked = Some((number, sent));
        }
        if !self.driver.sender.on_delivered(number, sent) {
            self.set_unmanaged_in_flight(self.unmanaged_in_flight.saturating_sub(bytes));
        }
    }

    /// The acknowledgement is complete: passes it to the scheme.
    pub(super) fn end_of_acks(
        &mut self,
        now: Time,
        in_flight: Bytes,
        app_limited: bool,
        largest: Option<u64>,
    ) {
        self.set_unmanaged_in_flight(in_flight.saturating_sub(self.driver.sender.ledger().in_flight()));
        self.driver.note_answer(now);
        let newest = self.newest_acked.take();
        let is_new = |&(number, _): &(u64, Time)| Some(number) == largest;
        let sample = newest.filter(is_new).map(|(_, sent)| {
            let sample = self.driver.sender.on_rtt_sample(now.since(sent));
            if self.driver.is_unmeasured() {
                if let Some(address) = self.shared.paths.as_ref().and_then(|paths| paths.destination()) {
                    self.shared.connection.set_destination(address);
                }
                self.driver.read_inputs(now);
                self.bucket = Bucket::since(now);
            }
            sample
        });
        if !app_limited {
            self.driver.sender.on_limited();
        }
        let is_all_sent = app_limited && self.driver.is_all_sent();
        let Some(delivery) = self.driver.sender.end_of_acks(now, sample, is_all_sent) else { return };
        self.journal(now, SenderEvent::Acked { acknowledged: delivery.end.get(), newly: delivery.bytes });
        self.copy_after_acks(now, delivery.packets, app_limited);
        self.driver.on_ack_event(now);
        self.refresh_cached_metrics();
    }

    /// A packet was declared lost; [`Self::lost`] follows.
    pub(super) fn packet_lost(&mut self, now: Time, bytes: Bytes, number: u64) {
        if let Some(packet) = self.driver.sender.on_lost(number, bytes) {
            self.journal(now, SenderEvent::Lost { offset: packet.offset.get(), payload: packet.bytes });
            return;
        }
        self.set_unmanaged_in_flight(self.unmanaged_in_flight.saturating_sub(bytes));
        self.driver.note_handshake_loss();
    }

    /// All losses of one loss detection are known: passes them to the scheme.
    pub(super) fn lost(&mut self, now: Time, sent: Time, is_persistent: bool) {
        if !self.driver.is_started() || !self.driver.sender.end_of_losses(now, sent, is_persistent) {
            return self.driver.on_other_loss(now);
        }
        if is_persistent {
            self.journal(now, SenderEvent::Timeout);
        }
        self.after_congestion(now);
    }

    /// A packet arrived with a congestion mark.
    pub(super) fn marked(&mut self, now: Time, sent: Time) {
        if !self.driver.is_started() {
            return;
        }
        self.driver.sender.on_mark(now, sent);
        self.after_congestion(now);
    }

    fn after_congestion(&mut self, now: Time) {
        self.report_congestion_to_repair();
        self.driver.on_loss_event(now);
        self.refresh_cached_metrics();
    }

    /// Appends to the journal, if one is kept.
    #[inline]
    pub(super) fn journal(&self, at: Time, event: SenderEvent) {
        if self.shared.journal.is_kept() {
            self.append_to_journal(at, event);
        }
    }

    #[cold]
    fn append_to_journal(&self, at: Time, event: SenderEvent) {
        if !self.driver.is_late() {
            self.shared.journal.add((at, self.driver.sender.trace(event)));
        }
    }
}
