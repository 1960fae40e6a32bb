//! Copies: packets that the scheme's repair duplicates, given to the sender of duplicates.

use std::net::SocketAddr;
use std::sync::Arc;

use headstart_startup::repair::Repair;
use headstart_startup::trace::SenderEvent;
use headstart_startup::{Controller, Startup as _, Transmission};
use headstart_units::{Bytes, Time};

use super::Adapter;
use crate::copies::{Duplicate, DuplicateSender, REACH, SendTiming};
use crate::shared::Shared;

/// Sends the duplicates that the scheme's repair selects.
#[derive(Debug)]
pub(super) struct Duplicator {
    repair: Repair,
    sender: Arc<dyn DuplicateSender>,
    destination: SocketAddr,
    left: Bytes,
}

impl Drop for Duplicator {
    fn drop(&mut self) {
        self.sender.unregister(self.destination);
    }
}

impl Duplicator {
    fn new(shared: &Shared, repair: Repair, left: Bytes) -> Option<Self> {
        let sender = shared.rules.duplicate_sender.clone()?;
        sender.register(shared.connection.peer);
        Some(Self { repair, sender, destination: shared.connection.peer, left })
    }
}

impl Adapter {
    /// A flight begins: its copies, if the scheme makes some.
    pub(super) fn start_copies(&mut self) {
        // The previous flight's copies end first: the sender tells flights apart only by peer.
        self.duplicator = None;
        self.duplicator = self.copies_left(self.driver.sender.controller()).and_then(|left| {
            let repair = self.driver.sender.controller().scheme().repair();
            Duplicator::new(&self.shared, repair, left)
        });
        self.shared.set_retention(self.duplicator.is_some());
    }

    /// Bytes that may still be copied; `None` if the scheme copies nothing.
    pub(super) fn copies_left(&self, controller: &Controller) -> Option<Bytes> {
        let has_sender = self.shared.rules.duplicate_sender.is_some();
        let left = self.shared.rules.copies.budget.saturating_sub(self.driver.sender.tally().copy_bytes);
        (has_sender && controller.scheme().repair().is_active()).then_some(left)
    }

    /// An original left; Proactive doubles it.
    pub(super) fn copy_after_sending(&mut self, now: Time, ordinal: u64) {
        let Some(duplicator) = &mut self.duplicator else { return };
        duplicator.repair.on_sent(ordinal);
        if duplicator.repair.is_prompt() {
            self.send_copies(now, SendTiming::AfterOriginal, false);
        }
    }

    /// QUIC acknowledges several packets at once.
    pub(super) fn copy_after_acks(&mut self, now: Time, packets: u64, is_all_sent: bool) {
        let Some(duplicator) = &mut self.duplicator else { return };
        if packets > 0 {
            duplicator.repair.on_ack(packets, &self.driver.sender.segments(is_all_sent));
        }
        self.send_copies(now, SendTiming::Now, is_all_sent);
        if self.duplicator.as_ref().is_some_and(|duplicator| !duplicator.repair.is_active()) {
            self.end_copies();
        }
    }

    fn send_copies(&mut self, now: Time, timing: SendTiming, is_all_sent: bool) {
        while let Some(duplicator) = &mut self.duplicator {
            let segments = self.driver.sender.segments(is_all_sent);
            let Some(ordinal) = duplicator.repair.next(&segments) else { return };
            if ordinal + REACH < self.driver.sender.ledger().end() {
                continue;
            }
            let Some(packet) = self.driver.sender.ledger().open(ordinal) else { continue };
            let Some(contents) = self.shared.retained_packet(packet.number) else { continue };
            let (position, bytes) = (packet.offset, Bytes::new(contents.len() as u64));
            if bytes > duplicator.left {
                return self.end_copies();
            }
            duplicator.left = duplicator.left.saturating_sub(bytes);
            let (destination, source) = (duplicator.destination, self.shared.local);
            duplicator.sender.send(Duplicate { destination, source, contents, timing });
            self.driver.sender.on_copied(bytes);
            let transmission = Transmission::Copy;
            self.journal(now, SenderEvent::Sent { offset: position.get(), payload: bytes, transmission });
        }
    }

    /// Congestion: a loss, of a packet that was copied too, or a mark.
    pub(super) fn report_congestion_to_repair(&mut self) {
        let Some(duplicator) = &mut self.duplicator else { return };
        duplicator.repair.on_congestion();
        if self.shared.rules.copies.stop_at_congestion {
            self.end_copies();
        }
    }

    fn end_copies(&mut self) {
        self.duplicator = None;
        self.shared.set_retention(false);
    }
}
