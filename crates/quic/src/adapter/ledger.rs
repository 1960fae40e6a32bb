//! Data packets by number, as long as their fate is open.
//!
//! Packet numbers rise but skip values; ordinals count the scheme's packets from zero without a gap, and stand for the
//! segments of a repair.

use std::collections::VecDeque;

use headstart_startup::path::SendStamp;
use headstart_units::{Bytes, Time};

/// A data packet that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub number: u64,
    /// Bytes sent before it.
    pub offset: Bytes,
    pub stamp: SendStamp,
    pub is_first_flight: bool,
    /// A copy of it was sent.
    pub is_copied: bool,
    fate: Fate,
    /// A datagram's length fits; a packet must not take more than a line of the cache.
    size: u16,
}

impl Packet {
    pub fn bytes(&self) -> Bytes {
        Bytes::new(self.size.into())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Delivered,
    Lost,
}

/// The scheme's packets whose fate is open, and some that are not.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    packets: VecDeque<Packet>,
    /// Ordinal of the first of them.
    base: u64,
    sent: Bytes,
    in_flight: Bytes,
}

impl Ledger {
    pub fn push(&mut self, number: u64, bytes: Bytes, stamp: SendStamp, is_first_flight: bool) {
        self.packets.push_back(Packet {
            number,
            offset: self.sent,
            stamp,
            is_first_flight,
            is_copied: false,
            fate: Fate::Open,
            size: bytes.get().try_into().unwrap_or(u16::MAX),
        });
        self.sent += bytes;
        self.in_flight += bytes;
    }

    /// The packet of that number was acknowledged, if it is one of ours whose fate was open: its ordinal and itself.
    pub fn deliver(&mut self, number: u64, sent_at: Time) -> Option<(u64, Packet)> {
        let at = self.find(number)?;
        if self.packets[at].stamp.sent_at != sent_at {
            return None;
        }
        Some((self.base + at as u64, self.settle(at, Fate::Delivered)?))
    }

    /// The packet of that number was declared lost.
    pub fn lose(&mut self, number: u64, bytes: Bytes) -> Option<Packet> {
        let at = self.find(number)?;
        if self.packets[at].bytes() != bytes {
            return None;
        }
        self.settle(at, Fate::Lost)
    }

    fn settle(&mut self, at: usize, fate: Fate) -> Option<Packet> {
        let packet = self.packets.get_mut(at)?;
        if packet.fate != Fate::Open {
            return None;
        }
        packet.fate = fate;
        let settled = *packet;
        self.in_flight = self.in_flight.saturating_sub(settled.bytes());
        while self.packets.front().is_some_and(|it| it.fate != Fate::Open) {
            self.packets.pop_front();
            self.base += 1;
        }
        Some(settled)
    }

    fn find(&self, number: u64) -> Option<usize> {
        // Were no number skipped, it would be at `high`; few are, so it is hardly before that.
        let (first, last) = (self.packets.front()?.number, self.packets.back()?.number);
        let index = |number: u64| usize::try_from(number.checked_sub(first)?).ok();
        let mut high = index(number.min(last))?;
        let mut low = high.saturating_sub((index(last)? + 1).saturating_sub(self.packets.len()));
        high = high.min(self.packets.len() - 1);
        while low < high {
            let middle = low.midpoint(high);
            if self.packets[middle].number < number { low = middle + 1 } else { high = middle }
        }
        (self.packets[low].number == number).then_some(low)
    }

    /// Bytes sent.
    pub const fn sent(&self) -> Bytes {
        self.sent
    }

    /// Bytes in flight.
    pub const fn in_flight(&self) -> Bytes {
        self.in_flight
    }

    /// One past the last ordinal.
    pub fn end(&self) -> u64 {
        self.base + self.packets.len() as u64
    }

    /// The ordinal before which every fate is settled.
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// The packet of that ordinal, if its fate is open.
    pub fn open(&self, ordinal: u64) -> Option<&Packet> {
        let at = usize::try_from(ordinal.checked_sub(self.base)?).ok()?;
        self.packets.get(at).filter(|packet| packet.fate == Fate::Open)
    }

    /// Bytes sent before the packet of that ordinal.
    pub fn offset(&self, ordinal: u64) -> Bytes {
        match ordinal.checked_sub(self.base).and_then(|at| usize::try_from(at).ok()) {
            // Settled long ago: before the first that is still here.
            None => {
                self.packets.front().map_or(self.sent, |first| first.offset).saturating_sub(Bytes::new(1))
            }
            Some(at) => self.packets.get(at).map_or(self.sent, |packet| packet.offset),
        }
    }

    /// A copy of that packet leaves.
    pub fn copied(&mut self, ordinal: u64) {
        let at = ordinal.checked_sub(self.base).and_then(|at| usize::try_from(at).ok());
        if let Some(packet) = at.and_then(|at| self.packets.get_mut(at)) {
            packet.is_copied = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Bytes = Bytes::new(1200);

    /// Packets 0, 1, 3, 4 and 7.
    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        for number in [0, 1, 3, 4, 7] {
            let stamp = SendStamp { sent_at: Time::from_millis(number), ..SendStamp::default() };
            ledger.push(number, SIZE, stamp, true);
        }
        ledger
    }

    #[test]
    fn a_packet_is_found_wherever_numbers_are_skipped() {
        let skips = [vec![], vec![1], vec![2, 3, 4, 5], vec![1, 3, 5, 7, 9, 11], (3..60).collect(), vec![62]];
        for skipped in skips {
            let numbers: Vec<u64> =
                (0..64).filter(|number| !skipped.contains(number)).map(|it| it + 100).collect();
            let mut ledger = Ledger::default();
            for &number in &numbers {
                ledger.push(number, SIZE, SendStamp::default(), true);
            }
            for number in 90..180 {
                assert_eq!(
                    ledger.find(number),
                    numbers.iter().position(|&it| it == number),
                    "{number} of {numbers:?}"
                );
            }
        }
        assert_eq!(Ledger::default().find(0), None);
    }

    #[test]
    fn a_packet_is_settled_once() {
        let mut ledger = ledger();
        assert_eq!(ledger.deliver(3, Time::from_millis(3)).map(|(ordinal, _)| ordinal), Some(2));
        assert!(ledger.deliver(3, Time::from_millis(3)).is_none());
        assert!(ledger.lose(3, SIZE).is_none());
        assert_eq!(ledger.in_flight(), SIZE * 4);
    }

    #[test]
    fn the_handshakes_packets_of_the_same_number_are_not_ours() {
        let mut ledger = ledger();
        assert!(ledger.deliver(0, Time::from_millis(90)).is_none(), "sent at another time");
        assert!(ledger.lose(0, Bytes::new(900)).is_none(), "of another size");
        assert!(ledger.deliver(2, Time::from_millis(2)).is_none(), "a number that was skipped");
    }

    #[test]
    fn what_is_settled_at_the_front_is_forgotten_and_ordinals_go_on() {
        let mut ledger = ledger();
        assert!(ledger.lose(1, SIZE).is_some());
        assert_eq!((ledger.base(), ledger.end()), (0, 5));
        assert!(ledger.deliver(0, Time::ZERO).is_some());
        assert_eq!((ledger.base(), ledger.end()), (2, 5));
        assert_eq!(ledger.open(2).map(|packet| packet.number), Some(3));
        assert!(ledger.open(1).is_none());
        assert_eq!([2, 4, 5].map(|ordinal| ledger.offset(ordinal)), [SIZE * 2, SIZE * 4, SIZE * 5]);
    }
}
