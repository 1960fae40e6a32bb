//! Copies: packets that the scheme's repair duplicates, and their submission to the courier.

use std::net::SocketAddr;
use std::sync::Arc;

use headstart_startup::repair::{Repair, Segments};
use headstart_startup::trace::SenderEvent;
use headstart_startup::{Controller, Startup as _, Transmission};
use headstart_units::{Bytes, Time};

use super::Adapter;
use super::ledger::Ledger;
use crate::copies::{Courier, Duplicate, REACH, When};
use crate::shared::Shared;

/// Sends the duplicates that the scheme's repair selects.
#[derive(Debug)]
pub(super) struct Copier {
    repair: Repair,
    courier: Arc<dyn Courier>,
    destination: SocketAddr,
    left: Bytes,
}

impl Drop for Copier {
    fn drop(&mut self) {
        self.courier.end(self.destination);
    }
}

impl Copier {
    fn new(shared: &Shared, repair: Repair, left: Bytes) -> Option<Self> {
        let courier = shared.rules.courier.clone()?;
        courier.begin(shared.peer);
        Some(Self { repair, courier, destination: shared.peer, left })
    }
}

/// The ledger, as a repair reads it.
struct Board<'a> {
    ledger: &'a Ledger,
    first_flight: Bytes,
    is_all_sent: bool,
}

impl Segments for Board<'_> {
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

impl Adapter {
    /// A flight begins: its copies, if the scheme makes some.
    pub(super) fn copy_anew(&mut self) {
        // The previous flight's copies end first: the courier tells flights apart only by peer.
        self.copier = None;
        self.copier = self.copies_left(&self.controller).and_then(|left| {
            let repair = self.controller.scheme().repair();
            Copier::new(&self.shared, repair, left)
        });
        self.shared.tap(self.copier.is_some());
    }

    /// Bytes that may still be copied; `None` if the scheme copies nothing.
    pub(super) fn copies_left(&self, controller: &Controller) -> Option<Bytes> {
        let has_courier = self.shared.rules.courier.is_some();
        let left = self.shared.rules.copies.budget.saturating_sub(self.tally.copy_bytes);
        (has_courier && controller.scheme().repair().is_active()).then_some(left)
    }

    /// An original left; Proactive doubles it.
    pub(super) fn copy_after_sending(&mut self, now: Time, ordinal: u64) {
        let Some(copier) = &mut self.copier else { return };
        copier.repair.on_sent(ordinal);
        if copier.repair.is_prompt() {
            self.send_copies(now, When::Behind, false);
        }
    }

    /// Halfback sends one copy per ack, with an ack per packet; QUIC acknowledges several packets
    /// at once, so each acknowledged packet counts as an ack.
    pub(super) fn copy_after_acks(&mut self, now: Time, packets: u64, is_all_sent: bool) {
        let first_flight = self.first_flight;
        let Some(copier) = &mut self.copier else { return };
        for _ in 0..packets {
            copier.repair.on_ack(&Board { ledger: &self.ledger, first_flight, is_all_sent });
        }
        self.send_copies(now, When::Now, is_all_sent);
        if self.copier.as_ref().is_some_and(|copier| !copier.repair.is_active()) {
            self.end_copies();
        }
    }

    fn send_copies(&mut self, now: Time, when: When, is_all_sent: bool) {
        let first_flight = self.first_flight;
        while let Some(copier) = &mut self.copier {
            let board = Board { ledger: &self.ledger, first_flight, is_all_sent };
            let Some(ordinal) = copier.repair.next(&board) else { return };
            if ordinal + REACH < self.ledger.end() {
                continue;
            }
            let Some(packet) = self.ledger.open(ordinal) else { continue };
            let Some(contents) = self.shared.kept(packet.number) else { continue };
            let (place, bytes) = (packet.offset, Bytes::new(contents.len() as u64));
            if bytes > copier.left {
                return self.end_copies();
            }
            copier.left = copier.left.saturating_sub(bytes);
            let (destination, source) = (copier.destination, self.shared.local);
            copier.courier.carry(Duplicate { destination, source, contents, when });
            self.ledger.copied(ordinal);
            self.tally.copies += 1;
            self.tally.copy_bytes += bytes;
            let transmission = Transmission::Copy;
            self.journal(now, SenderEvent::Sent { offset: place.get(), payload: bytes, transmission });
        }
    }

    /// Congestion: a loss of a packet that was not copied, or a mark.
    pub(super) fn copies_meet_congestion(&mut self) {
        let Some(copier) = &mut self.copier else { return };
        copier.repair.on_congestion();
        if self.shared.rules.copies.stop_at_congestion {
            self.end_copies();
        }
    }

    fn end_copies(&mut self) {
        self.copier = None;
        self.shared.tap(false);
    }
}
