//! Data packets by number, as long as their fate is open.
//!
//! Packet numbers rise but skip values; ordinals count the scheme's packets from zero without a gap, and stand for the
//! segments of a repair.
//!
//! A packet is looked at again when it is acknowledged, a thousand packets later on a fast path, and what lies in memory then is no longer
//! in the processor's cache. So it is kept small, and packets that left together share what they have in common.

use std::collections::VecDeque;
use std::num::NonZeroU16;

use headstart_startup::path::SendStamp;
use headstart_units::{Bytes, Time};

/// A data packet that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub number: u64,
    pub bytes: Bytes,
    /// Bytes sent before it.
    pub offset: Bytes,
    pub stamp: SendStamp,
    pub is_first_flight: bool,
    /// A copy of it was sent.
    pub is_copied: bool,
}

/// A packet as it is kept.
#[derive(Clone, Copy, Debug)]
struct Entry {
    number: u64,
    offset: Bytes,
    /// Which of the departures was its.
    departure: u32,
    /// Its length as long as its fate is open, and nothing after that.
    open: Option<NonZeroU16>,
    is_first_flight: bool,
    is_copied: bool,
}

impl Entry {
    const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    fn bytes(&self) -> Bytes {
        Bytes::new(self.open.map_or(0, NonZeroU16::get).into())
    }
}

/// The scheme's packets whose fate is open, and some that are not.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    packets: VecDeque<Entry>,
    /// Ordinal of the first of them.
    base: u64,
    /// The number of the last one.
    last: u64,
    /// What the packets have in common that left together.
    departures: VecDeque<SendStamp>,
    /// Which one is the first of them.
    first_departure: u32,
    sent: Bytes,
    in_flight: Bytes,
}

impl Ledger {
    #[inline]
    pub fn push(&mut self, number: u64, bytes: Bytes, stamp: SendStamp, is_first_flight: bool) {
        if self.departures.back() != Some(&stamp) {
            self.departures.push_back(stamp);
        }
        self.packets.push_back(Entry {
            number,
            offset: self.sent,
            departure: self.next_departure().wrapping_sub(1),
            open: NonZeroU16::new(u16::try_from(bytes.get()).unwrap_or(u16::MAX)),
            is_first_flight,
            is_copied: false,
        });
        self.last = number;
        self.sent += bytes;
        self.in_flight += bytes;
    }

    /// The packet of that number was acknowledged, if it is one of ours whose fate was open: its ordinal and itself.
    #[inline]
    pub fn deliver(&mut self, number: u64, sent_at: Time) -> Option<(u64, Packet)> {
        let at = self.find(number)?;
        let ordinal = self.base + at as u64;
        let packet = self.whole(&self.packets[at]);
        if packet.stamp.sent_at != sent_at || !self.settle(at) {
            return None;
        }
        Some((ordinal, packet))
    }

    /// The packet of that number was declared lost.
    pub fn lose(&mut self, number: u64, bytes: Bytes) -> Option<Packet> {
        let at = self.find(number)?;
        let packet = self.whole(&self.packets[at]);
        if packet.bytes != bytes || !self.settle(at) {
            return None;
        }
        Some(packet)
    }

    /// Whether its fate was open.
    #[inline]
    fn settle(&mut self, at: usize) -> bool {
        let Some(size) = self.packets[at].open.take() else { return false };
        self.in_flight = self.in_flight.saturating_sub(Bytes::new(size.get().into()));
        while self.packets.front().is_some_and(|it| !it.is_open()) {
            self.packets.pop_front();
            self.base += 1;
        }
        let first = self.packets.front().map_or(self.next_departure(), |packet| packet.departure);
        while self.first_departure != first {
            self.departures.pop_front();
            self.first_departure = self.first_departure.wrapping_add(1);
        }
        true
    }

    /// One past the last departure.
    fn next_departure(&self) -> u32 {
        self.first_departure.wrapping_add(self.departures.len() as u32)
    }

    #[inline]
    fn whole(&self, entry: &Entry) -> Packet {
        let departure = entry.departure.wrapping_sub(self.first_departure) as usize;
        Packet {
            number: entry.number,
            bytes: entry.bytes(),
            offset: entry.offset,
            stamp: self.departures.get(departure).copied().unwrap_or_default(),
            is_first_flight: entry.is_first_flight,
            is_copied: entry.is_copied,
        }
    }

    #[inline]
    fn find(&self, number: u64) -> Option<usize> {
        // Nearly always it is the oldest that is still out.
        if self.packets.front()?.number == number {
            return Some(0);
        }
        self.search(number)
    }

    fn search(&self, number: u64) -> Option<usize> {
        // Were no number skipped, it would be at `high`; few are, so it is hardly before that.
        let (first, last) = (self.packets.front()?.number, self.last);
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
    pub fn open(&self, ordinal: u64) -> Option<Packet> {
        let at = usize::try_from(ordinal.checked_sub(self.base)?).ok()?;
        self.packets.get(at).filter(|packet| packet.is_open()).map(|packet| self.whole(packet))
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
    fn packets_that_left_together_share_a_departure_until_the_last_of_them_is_settled() {
        let mut ledger = Ledger::default();
        let stamp = |millis| SendStamp { sent_at: Time::from_millis(millis), ..SendStamp::default() };
        for (number, millis) in [(0, 5), (1, 5), (2, 6), (3, 6), (4, 6), (5, 9)] {
            ledger.push(number, SIZE, stamp(millis), true);
        }
        assert_eq!(ledger.departures.len(), 3);
        for (number, millis, left) in [(0, 5, 3), (3, 6, 3), (1, 5, 2), (5, 9, 2), (2, 6, 2), (4, 6, 0)] {
            let (_, packet) = ledger.deliver(number, Time::from_millis(millis)).expect("open");
            assert_eq!((packet.number, packet.stamp), (number, stamp(millis)));
            assert_eq!(ledger.departures.len(), left, "after {number}");
        }
        ledger.push(6, SIZE, stamp(9), true);
        assert_eq!(ledger.deliver(6, Time::from_millis(9)).map(|(ordinal, _)| ordinal), Some(6));
    }

    #[test]
    fn a_packet_is_kept_in_less_than_half_a_line_of_the_cache() {
        assert!(size_of::<Entry>() <= 24);
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
