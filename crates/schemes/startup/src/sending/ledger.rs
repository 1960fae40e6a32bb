//! Data packets by number, until they are acknowledged or lost.
//!
//! Packet numbers rise but skip values; ordinals count the scheme's packets from zero without a
//! gap, and are the segment numbers of a repair.
//!
//! A packet is looked up again when it is acknowledged, a thousand packets later on a fast path,
//! when its memory has left the processor's cache. So packets that left together are kept as one
//! entry: a server hands the kernel ten at a time.

use alloc::collections::VecDeque;

use headstart_units::{Bytes, Time};

use crate::path::SendStamp;

/// A data packet that is neither acknowledged nor lost.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Packet number, as the transport counts.
    pub number: u64,
    /// Bytes sent before the packet.
    pub offset: Bytes,
}

/// A data packet that was acknowledged or lost.
#[derive(Clone, Copy, Debug)]
pub struct ResolvedPacket {
    /// Number of the packet without gaps.
    pub ordinal: u64,
    /// Size of the packet.
    pub bytes: Bytes,
    /// Bytes sent before the packet.
    pub offset: Bytes,
    /// State of the connection when it left.
    pub stamp: SendStamp,
    /// Part of the first flight.
    pub is_first_flight: bool,
}

/// Packets of one size with successive numbers that left at the same time.
#[derive(Clone, Copy, Debug)]
struct PacketRange {
    /// Number of the first packet.
    number: u64,
    /// Ordinal of the first packet.
    ordinal: u64,
    /// Bytes sent before the packet.
    offset: Bytes,
    stamp: SendStamp,
    /// Size of each packet.
    bytes: Bytes,
    length: u32,
    is_first_flight: bool,
    /// Packets neither acknowledged nor lost, a bit for each.
    open: u64,
}

/// Most packets in a range: one per bit.
const MAX_LENGTH: u32 = u64::BITS;

impl PacketRange {
    /// Appends a packet, if its size, number and stamp continue the range.
    #[inline]
    fn try_extend(&mut self, number: u64, bytes: Bytes, stamp: &SendStamp, is_first_flight: bool) -> bool {
        let fits = self.length < MAX_LENGTH
            && number == self.number + u64::from(self.length)
            && bytes == self.bytes
            && is_first_flight == self.is_first_flight
            && *stamp == self.stamp;
        if fits {
            self.open |= 1 << self.length;
            self.length += 1;
        }
        fits
    }

    /// Position of that packet in the range.
    #[inline]
    fn position(&self, number: u64) -> Option<u32> {
        position(self.number, number, self.length)
    }

    #[inline]
    const fn is_open(&self, position: u32) -> bool {
        self.open & (1 << position) != 0
    }

    fn offset(&self, position: u32) -> Bytes {
        self.offset + self.bytes * u64::from(position)
    }

    /// The last open packet with a number below that one.
    fn last_open_before(&self, number: u64) -> Option<OpenPacket> {
        let before = number.saturating_sub(self.number).min(u64::BITS.into());
        let open = self.open & u64::MAX.checked_shr(u64::BITS - before as u32).unwrap_or(0);
        (open != 0).then(|| OpenPacket {
            number: self.number + u64::from(open.ilog2()),
            bytes: self.bytes,
            sent_at: self.stamp.sent_at,
        })
    }

    fn first_open(&self) -> Option<OpenPacket> {
        (self.open != 0).then(|| OpenPacket {
            number: self.number + u64::from(self.open.trailing_zeros()),
            bytes: self.bytes,
            sent_at: self.stamp.sent_at,
        })
    }
}

/// A packet that is neither acknowledged nor lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenPacket {
    /// Packet number, as the transport counts.
    pub number: u64,
    /// Size of the packet in bytes.
    pub bytes: Bytes,
    /// When it left.
    pub sent_at: Time,
}

/// Distance of `number` from `first`, if less than `length`.
#[inline]
fn position(first: u64, number: u64, length: u32) -> Option<u32> {
    let position = number.checked_sub(first)?;
    (position < u64::from(length)).then_some(position as u32)
}

/// The scheme's packets that are neither acknowledged nor lost, and some that are.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    ranges: VecDeque<PacketRange>,
    /// One past the last ordinal.
    end: u64,
    sent: Bytes,
    in_flight: Bytes,
}

impl Ledger {
    /// A packet leaves; numbers rise.
    #[inline]
    pub fn push(&mut self, number: u64, bytes: Bytes, stamp: &SendStamp, is_first_flight: bool) {
        let joins =
            self.ranges.back_mut().is_some_and(|last| last.try_extend(number, bytes, stamp, is_first_flight));
        if !joins {
            self.begin(number, bytes, *stamp, is_first_flight);
        }
        self.end += 1;
        self.sent += bytes;
        self.in_flight += bytes;
    }

    /// Starts a range with a single packet.
    #[inline(never)]
    fn begin(&mut self, number: u64, bytes: Bytes, stamp: SendStamp, is_first_flight: bool) {
        let (ordinal, offset, length, open) = (self.end, self.sent, 1, 1);
        let range = PacketRange { number, ordinal, offset, stamp, bytes, length, is_first_flight, open };
        self.ranges.push_back(range);
    }

    /// Settles the packet of that number as acknowledged, if it is one of the scheme's and open.
    #[inline]
    pub fn deliver(&mut self, number: u64, sent_at: Time) -> Option<ResolvedPacket> {
        self.settle(number, |range| range.stamp.sent_at == sent_at)
    }

    /// Settles the packet of that number as lost.
    pub fn lose(&mut self, number: u64, bytes: Bytes) -> Option<ResolvedPacket> {
        self.settle(number, |range| range.bytes == bytes)
    }

    #[inline]
    fn settle(&mut self, number: u64, is_ours: impl FnOnce(&PacketRange) -> bool) -> Option<ResolvedPacket> {
        let at = self.range_of(number)?;
        let position = self.open_position(at, number, is_ours)?;
        let settled = self.resolve(at, position);
        self.remove_resolved();
        Some(settled)
    }

    #[inline]
    fn open_position(
        &self,
        at: usize,
        number: u64,
        is_ours: impl FnOnce(&PacketRange) -> bool,
    ) -> Option<u32> {
        let range = self.ranges.get(at)?;
        range.position(number).filter(|&position| range.is_open(position) && is_ours(range))
    }

    /// Settles an open packet; [`Self::remove_resolved`] follows.
    #[inline]
    fn resolve(&mut self, at: usize, position: u32) -> ResolvedPacket {
        let range = &mut self.ranges[at];
        range.open &= !(1 << position);
        self.in_flight = self.in_flight.saturating_sub(range.bytes);
        ResolvedPacket {
            ordinal: range.ordinal + u64::from(position),
            bytes: range.bytes,
            offset: range.offset(position),
            stamp: range.stamp,
            is_first_flight: range.is_first_flight,
        }
    }

    #[inline]
    fn remove_resolved(&mut self) {
        while self.ranges.front().is_some_and(|range| range.open == 0) {
            self.ranges.pop_front();
        }
    }

    /// Settles as acknowledged the packet of that number, if it is one of the scheme's and open:
    /// true then. So are open packets before it, the latest first, of `bytes` in all with that one;
    /// a packet larger than the rest of them is passed over. `each` gets each of them.
    pub fn deliver_up_to(
        &mut self,
        number: u64,
        sent_at: Time,
        bytes: Bytes,
        mut each: impl FnMut(&ResolvedPacket),
    ) -> bool {
        let Some(mut at) = self.range_of(number) else { return false };
        let mut left = bytes;
        let newest = self.open_position(at, number, |range| range.stamp.sent_at == sent_at);
        if let Some(position) = newest {
            let packet = self.resolve(at, position);
            left = left.saturating_sub(packet.bytes);
            each(&packet);
        }
        while !left.is_zero() {
            let range = &self.ranges[at];
            match range.last_open_before(number).filter(|packet| packet.bytes <= left) {
                Some(packet) => {
                    let position = (packet.number - range.number) as u32;
                    left -= packet.bytes;
                    each(&self.resolve(at, position));
                }
                None if at == 0 => break,
                None => at -= 1,
            }
        }
        self.remove_resolved();
        newest.is_some()
    }

    /// The last range that begins at or before that number.
    #[inline]
    fn range_of(&self, number: u64) -> Option<usize> {
        // Nearly always it is the oldest.
        if self.ranges.front()?.position(number).is_some() { Some(0) } else { self.search(number) }
    }

    #[cold]
    fn search(&self, number: u64) -> Option<usize> {
        self.ranges.partition_point(|range| range.number <= number).checked_sub(1)
    }

    /// Settles as acknowledged the packet that left at that time and is nearest to that size, the
    /// first of several: for transports that report no numbers. None that is smaller by more than
    /// `slack`.
    #[inline]
    pub fn deliver_unnumbered(
        &mut self,
        sent_at: Time,
        bytes: Bytes,
        slack: Bytes,
    ) -> Option<ResolvedPacket> {
        let oldest = self.ranges.front()?;
        // Nearly always it is the oldest.
        if oldest.stamp.sent_at == sent_at && oldest.bytes == bytes {
            let settled = self.resolve(0, oldest.open.trailing_zeros());
            self.remove_resolved();
            return Some(settled);
        }
        let packet = self.departed(sent_at, bytes).filter(|packet| packet.bytes + slack >= bytes)?;
        self.deliver(packet.number, sent_at)
    }

    #[cold]
    fn departed(&self, at: Time, bytes: Bytes) -> Option<OpenPacket> {
        let first = self.ranges.partition_point(|range| range.stamp.sent_at < at);
        let of_that_time = self.ranges.iter().skip(first).take_while(|range| range.stamp.sent_at == at);
        let open = of_that_time.filter_map(PacketRange::first_open);
        open.min_by_key(|packet| packet.bytes.get().abs_diff(bytes.get()))
    }

    /// The first packet that is neither acknowledged nor lost.
    #[must_use]
    pub fn oldest(&self) -> Option<OpenPacket> {
        self.ranges.front()?.first_open()
    }

    /// Bytes sent.
    #[must_use]
    pub const fn sent(&self) -> Bytes {
        self.sent
    }

    /// Bytes in flight.
    #[must_use]
    pub const fn in_flight(&self) -> Bytes {
        self.in_flight
    }

    /// One past the last ordinal.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// The ordinal below which every packet is settled.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.ranges.front().map_or(self.end, |range| range.ordinal + u64::from(range.open.trailing_zeros()))
    }

    /// The range of that ordinal, and the packet's position in it.
    fn find(&self, ordinal: u64) -> Option<(usize, u32)> {
        let at = self.ranges.partition_point(|range| range.ordinal <= ordinal).checked_sub(1)?;
        let range = &self.ranges[at];
        Some((at, position(range.ordinal, ordinal, range.length)?))
    }

    /// The packet of that ordinal, if it is neither acknowledged nor lost.
    #[must_use]
    pub fn open(&self, ordinal: u64) -> Option<Packet> {
        let (at, position) = self.find(ordinal)?;
        let range = &self.ranges[at];
        range
            .is_open(position)
            .then(|| Packet { number: range.number + u64::from(position), offset: range.offset(position) })
    }

    /// Bytes sent before the packet of that ordinal.
    #[must_use]
    pub fn offset(&self, ordinal: u64) -> Bytes {
        match self.find(ordinal) {
            Some((at, position)) => self.ranges[at].offset(position),
            None if ordinal >= self.end => self.sent,
            // Settled earlier than the first packet still kept.
            None => self.ranges.front().map_or(self.sent, |first| first.offset).saturating_sub(Bytes::new(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    const SIZE: Bytes = Bytes::new(1200);

    /// Packets 0, 1, 3, 4 and 7.
    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        for number in [0, 1, 3, 4, 7] {
            let stamp = SendStamp { sent_at: Time::from_millis(number), ..SendStamp::default() };
            ledger.push(number, SIZE, &stamp, true);
        }
        ledger
    }

    /// An operation on a ledger.
    #[derive(Clone, Debug)]
    enum Event {
        /// So many packets leave, after a gap in packet numbers and in time (ms).
        Push {
            count: u8,
            skipped: u8,
            later: u8,
            bytes: u16,
            is_first_flight: bool,
        },
        /// The packet sent at this position among all packets.
        Deliver(u16),
        /// The packet sent at this position, and packets before it up to so many bytes in all.
        DeliverUpTo(u16, u16),
        Lose(u16),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            3 => (1..30_u8, 0..3_u8, 0..2_u8, 1199..1201_u16, any::<bool>()).prop_map(
                |(count, skipped, later, bytes, is_first_flight)| Event::Push { count, skipped, later, bytes, is_first_flight }),
            3 => any::<u16>().prop_map(Event::Deliver),
            3 => (any::<u16>(), 0..20_000_u16).prop_map(|(at, bytes)| Event::DeliverUpTo(at, bytes)),
            2 => any::<u16>().prop_map(Event::Lose),
        ]
    }

    /// Reference model: each packet kept on its own.
    #[derive(Clone, Copy, Debug)]
    struct Plain {
        number: u64,
        bytes: Bytes,
        offset: Bytes,
        stamp: SendStamp,
        is_first_flight: bool,
        is_open: bool,
    }

    #[derive(Default)]
    struct Model(Vec<Plain>);

    impl Model {
        fn settle(&mut self, ordinal: usize) -> Option<Plain> {
            let packet = &mut self.0[ordinal];
            core::mem::take(&mut packet.is_open).then_some(*packet)
        }

        fn in_flight(&self) -> Bytes {
            self.0.iter().filter(|packet| packet.is_open).map(|packet| packet.bytes).sum()
        }

        fn base(&self) -> usize {
            self.0.iter().position(|packet| packet.is_open).unwrap_or(self.0.len())
        }
    }

    fn same(settled: Option<ResolvedPacket>, ordinal: usize, packet: Option<Plain>) {
        let Some(packet) = packet else { return assert!(settled.is_none(), "{settled:?}") };
        let settled = settled.expect("its fate was open");
        assert_eq!((settled.ordinal, settled.bytes), (ordinal as u64, packet.bytes));
        assert_eq!((settled.offset, settled.stamp), (packet.offset, packet.stamp));
        assert_eq!(settled.is_first_flight, packet.is_first_flight);
    }

    proptest! {
        #[test]
        fn packets_stored_as_a_range_equal_packets_stored_alone(events in prop::collection::vec(event(), 1..80)) {
            let (mut ledger, mut model) = (Ledger::default(), Model::default());
            let (mut number, mut stamp, mut sent) = (0, SendStamp::default(), Bytes::ZERO);
            for event in events {
                let at = |position: u16| (!model.0.is_empty()).then(|| usize::from(position) % model.0.len());
                match event {
                    Event::Push { count, skipped, later, bytes, is_first_flight } => {
                        number += u64::from(skipped);
                        stamp.sent_at += headstart_units::Span::from_millis(later.into());
                        let bytes = Bytes::new(bytes.into());
                        for _ in 0..count {
                            ledger.push(number, bytes, &stamp, is_first_flight);
                            let (offset, is_open) = (sent, true);
                            model.0.push(Plain { number, bytes, offset, stamp, is_first_flight, is_open });
                            (number, sent) = (number + 1, sent + bytes);
                        }
                    }
                    Event::Deliver(position) => if let Some(at) = at(position) {
                        let Plain { number, stamp, .. } = model.0[at];
                        same(ledger.deliver(number, stamp.sent_at), at, model.settle(at));
                    },
                    Event::DeliverUpTo(position, bytes) => if let Some(at) = at(position) {
                        let Plain { number, stamp, is_open, .. } = model.0[at];
                        let mut left = Bytes::new(bytes.into());
                        let mut expected = Vec::new();
                        for ordinal in (0..=at).rev() {
                            let Plain { bytes, is_open, .. } = model.0[ordinal];
                            let is_next = ordinal == at || !left.is_zero() && bytes <= left;
                            if is_open && is_next {
                                left = left.saturating_sub(bytes);
                                expected.push((ordinal, model.settle(ordinal)));
                            }
                        }
                        let mut expected = expected.into_iter();
                        let each = |found: &ResolvedPacket| {
                            let (ordinal, packet) = expected.next().expect("as many");
                            same(Some(*found), ordinal, packet);
                        };
                        prop_assert_eq!(ledger.deliver_up_to(number, stamp.sent_at, Bytes::new(bytes.into()), each), is_open);
                        prop_assert_eq!(expected.count(), 0);
                    },
                    Event::Lose(position) => if let Some(at) = at(position) {
                        let Plain { number, bytes, .. } = model.0[at];
                        same(ledger.lose(number, bytes), at, model.settle(at));
                    },
                }
                prop_assert_eq!((ledger.sent(), ledger.in_flight()), (sent, model.in_flight()));
                prop_assert_eq!((ledger.base(), ledger.end()), (model.base() as u64, model.0.len() as u64));
                for (ordinal, packet) in model.0.iter().enumerate() {
                    let found = ledger.open(ordinal as u64).map(|it| (it.number, it.offset));
                    let expected = packet.is_open.then_some((packet.number, packet.offset));
                    prop_assert_eq!(found, expected);
                    if ordinal >= model.base() {
                        prop_assert_eq!(ledger.offset(ordinal as u64), packet.offset);
                    } else {
                        prop_assert!(ledger.offset(ordinal as u64) < ledger.offset(ledger.base()));
                    }
                }
                prop_assert_eq!(ledger.offset(ledger.end()), sent);
            }
        }
    }

    #[test]
    fn a_batch_takes_no_more_room_than_two_lines_of_the_cache() {
        let mut ledger = Ledger::default();
        for number in 0..64 {
            ledger.push(number, SIZE, &SendStamp::default(), true);
        }
        assert_eq!(ledger.ranges.len(), 1);
        assert!(size_of::<PacketRange>() <= 128);
        ledger.push(64, SIZE, &SendStamp::default(), true);
        assert_eq!(ledger.ranges.len(), 2, "there are no more bits");
    }

    #[test]
    fn without_numbers_packets_are_found_by_departure_and_size() {
        let mut ledger = Ledger::default();
        let at = Time::from_millis;
        for (number, (millis, bytes)) in (0..).zip([(1, 1200), (1, 1200), (1, 700), (2, 1200), (4, 90)]) {
            let stamp = SendStamp { sent_at: at(millis), ..SendStamp::default() };
            ledger.push(number, Bytes::new(bytes), &stamp, true);
        }
        let find = |ledger: &Ledger, millis, bytes| {
            let mut ledger = ledger.clone();
            let slack = Bytes::new(10);
            ledger.deliver_unnumbered(at(millis), Bytes::new(bytes), slack).map(|packet| packet.ordinal)
        };
        for (millis, bytes, expected) in [
            (1, 1200, Some(0)),
            (1, 1190, Some(0)),
            (1, 690, Some(2)),
            (2, 700, Some(3)),
            (2, 1211, None),
            (3, 1200, None),
            (5, 90, None),
        ] {
            assert_eq!(find(&ledger, millis, bytes), expected, "{bytes} bytes at {millis} ms");
        }
        assert!(ledger.deliver(0, at(1)).is_some() && ledger.deliver(2, at(1)).is_some());
        assert_eq!(find(&ledger, 1, 700), Some(1), "the only one left of that time");
        assert_eq!(ledger.oldest().map(|packet| packet.number), Some(1));
        assert!(ledger.lose(1, Bytes::new(1200)).is_some());
        assert_eq!(find(&ledger, 1, 1200), None);
        assert_eq!(ledger.oldest().map(|packet| (packet.number, packet.sent_at)), Some((3, at(2))));
    }

    #[test]
    fn a_packet_is_settled_once() {
        let mut ledger = ledger();
        assert_eq!(ledger.deliver(3, Time::from_millis(3)).map(|packet| packet.ordinal), Some(2));
        assert!(ledger.deliver(3, Time::from_millis(3)).is_none());
        assert!(ledger.lose(3, SIZE).is_none());
        assert_eq!(ledger.in_flight(), SIZE * 4);
    }

    #[test]
    fn handshake_packets_of_the_same_number_are_not_counted() {
        let mut ledger = ledger();
        assert!(ledger.deliver(0, Time::from_millis(90)).is_none(), "sent at another time");
        assert!(ledger.lose(0, Bytes::new(900)).is_none(), "of another size");
        assert!(ledger.deliver(2, Time::from_millis(2)).is_none(), "a number that was skipped");
    }

    #[test]
    fn resolved_ranges_at_the_front_are_removed_and_ordinals_continue() {
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
