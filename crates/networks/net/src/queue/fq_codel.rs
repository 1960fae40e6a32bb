//! A queue for each flow, CoDel in each, and new flows first.
//!
//! Source: T. Hoeiland-Joergensen, P. McKenney, D. Taht, J. Gettys, E. Dumazet, "The Flow Queue
//! CoDel Packet Scheduler and Active Queue Management Algorithm", RFC 8290, January 2018. CoDel
//! itself is [`CoDel`] (RFC 8289).
//!
//! ```text
//!            arrival (§4.1)                         departure (§4.2)
//!
//!   none ------------------> new queues --- served before the old ones
//!    ^                        |      |
//!    |                        |      | credit used up: a quantum more  empty: last of the old ones
//!    |                        v      v
//!    +------ empty ------- old queues --+
//!                             ^         | credit used up: a quantum more, last of the old ones
//!                             +---------+
//! ```
//!
//! # Deviations
//!
//! - The limit is the link's buffer, in packets, bytes or both, instead of §5.2.3's 10 240 packets.
//!   Above it the flow with the most bytes loses half of its packets, 64 at most, at its head
//!   (§4.1). A limit in bytes may need more than one such batch.
//! - A flow is identified by [`Packet::flow_key`]; §4.1 hashes the 5-tuple. The hash is the
//!   finaliser of SplitMix64 over key and perturbation instead of Jenkins'.
//! - CoDel compares the bytes of its own flow with a packet; Linux with the bytes of all flows.
//! - A turn ends at zero credits, as in §3 and in Linux; §4.2 has negative ones.
//! - There is no CE threshold (§5.2.7: off by default).
//! - A packet that finds the link idle passes its flow's queue, not the limit, as everywhere here.

use std::collections::VecDeque;

use headstart_units::{Bytes, Time};

use super::codel::{self, CoDel};
use crate::element::{DropReason, Packet, PushResult};
use crate::limit::Limit;
use crate::queue::Dropped;

/// Parameters of FQ-CoDel, with the source of each default.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// Target and interval of every flow's CoDel: 5 ms and 100 ms, RFC 8290 §5.2.2 and §5.2.1.
    pub codel: codel::Params,
    /// Bytes that a flow may send per turn. 1514: RFC 8290 §5.2.4.
    pub quantum: Bytes,
    /// Queues into which flows are hashed; zero counts as one. 1024: RFC 8290 §5.2.5.
    pub flows: u16,
}

impl Default for Params {
    fn default() -> Self {
        Self { codel: codel::Params::default(), quantum: Bytes::new(1514), flows: 1024 }
    }
}

/// Packets that a flow loses at once when the buffer overflows (RFC 8290 §4.1).
const LARGEST_BATCH: u64 = 64;

/// The queue of one flow, or of several with the same hash.
#[derive(Debug)]
struct Flow<P> {
    queue: CoDel<P>,
    credit: i64,
    is_listed: bool,
}

/// The FQ-CoDel queue.
#[derive(Debug)]
pub struct FqCoDel<P> {
    params: Params,
    limit: Limit,
    perturbation: u64,
    /// Empty until the first packet arrives.
    flows: Vec<Flow<P>>,
    /// Bytes that wait in each of them, close together: an overflow looks for the most.
    backlogs: Vec<u64>,
    /// New flows, and the other backlogged flows; each is in one list at most.
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    packets: u64,
    bytes: Bytes,
}

impl<P> FqCoDel<P> {
    /// An empty queue of `limit`; `perturbation` decides which flows share one (RFC 8290 §4.1).
    #[must_use]
    pub fn new(params: Params, limit: Limit, perturbation: u64) -> Self {
        Self {
            params: Params { quantum: params.quantum.max(Bytes::new(1)), ..params },
            limit,
            perturbation,
            flows: vec![],
            backlogs: vec![],
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: Bytes::ZERO,
        }
    }

    pub(crate) fn waiting(&self) -> (u64, Bytes) {
        (self.packets, self.bytes)
    }

    /// The queue of a flow.
    fn index(&self, key: u64) -> u16 {
        let mut hash = key ^ self.perturbation;
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
        let flows = u64::from(self.params.flows.max(1));
        ((u128::from(hash) * u128::from(flows)) >> 64) as u16
    }

    fn quantum(&self) -> i64 {
        signed(self.params.quantum)
    }

    /// The list of the next packet, and its first queue.
    fn first(&self) -> Option<(u16, bool)> {
        match self.new.front() {
            Some(&index) => Some((index, true)),
            None => self.old.front().map(|&index| (index, false)),
        }
    }

    fn unlist_first(&mut self, is_new: bool) {
        if is_new {
            self.new.pop_front()
        } else {
            self.old.pop_front()
        };
    }
}

fn signed(bytes: Bytes) -> i64 {
    i64::try_from(bytes.get()).unwrap_or(i64::MAX)
}

impl<P: Packet> FqCoDel<P> {
    pub(crate) fn enqueue(&mut self, now: Time, packet: P, dropped: &mut Dropped<P>) -> PushResult<P> {
        self.classify(now, packet);
        while self.packets > self.limit.packets || self.bytes > self.limit.bytes {
            self.drop_from_fattest(now, dropped);
        }
        PushResult::Accepted
    }

    pub(crate) fn pass(&mut self, now: Time, packet: P) -> PushResult<P> {
        self.classify(now, packet);
        let mut dropped = Dropped::new();
        if let Some(packet) = self.dequeue(now, &mut dropped) {
            return PushResult::Passed(packet);
        }
        match dropped.pop(Time::NEVER) {
            Some((packet, reason)) => PushResult::Dropped(packet, reason),
            None => PushResult::Accepted,
        }
    }

    /// RFC 8290 §4.1: into the queue of its flow, which is a new one if it was in no list.
    fn classify(&mut self, now: Time, packet: P) {
        if self.flows.is_empty() {
            let params = self.params.codel;
            let flow = || Flow { queue: CoDel::new(params, Limit::NONE), credit: 0, is_listed: false };
            self.flows = std::iter::repeat_with(flow).take(usize::from(self.params.flows.max(1))).collect();
            self.backlogs = vec![0; self.flows.len()];
        }
        let (index, quantum) = (self.index(packet.flow_key()), self.quantum());
        self.packets += 1;
        self.bytes += packet.size();
        self.backlogs[usize::from(index)] += packet.size().get();
        let flow = &mut self.flows[usize::from(index)];
        let PushResult::Accepted = flow.queue.enqueue(now, packet) else {
            unreachable!("its buffer has no limit")
        };
        if !flow.is_listed {
            flow.is_listed = true;
            flow.credit = quantum;
            self.new.push_back(index);
        }
    }

    fn drop_from_fattest(&mut self, now: Time, dropped: &mut Dropped<P>) {
        let most = self.backlogs.iter().copied().max();
        // Of several with as many bytes the first, as in Linux.
        let Some(fattest) = self.backlogs.iter().position(|bytes| Some(*bytes) == most) else { return };
        let batch = self.flows[fattest].queue.waiting().0.div_ceil(2).min(LARGEST_BATCH);
        for _ in 0..batch {
            let Some(packet) = self.flows[fattest].queue.take_head() else { break };
            self.packets -= 1;
            self.bytes -= packet.size();
            self.backlogs[fattest] -= packet.size().get();
            dropped.push(now, (packet, DropReason::QueueFull));
        }
    }

    /// RFC 8290 §4.2.
    pub(crate) fn dequeue(&mut self, now: Time, dropped: &mut Dropped<P>) -> Option<P> {
        let quantum = self.quantum();
        while let Some((index, is_new)) = self.first() {
            let flow = &mut self.flows[usize::from(index)];
            if flow.credit <= 0 {
                flow.credit = flow.credit.saturating_add(quantum);
                self.unlist_first(is_new);
                self.old.push_back(index);
                continue;
            }
            let (before, bytes_before) = flow.queue.waiting();
            let next = flow.queue.dequeue(now, dropped);
            let (after, bytes_after) = flow.queue.waiting();
            self.packets -= before - after;
            self.bytes -= bytes_before.saturating_sub(bytes_after);
            self.backlogs[usize::from(index)] = bytes_after.get();
            if let Some(packet) = next {
                flow.credit = flow.credit.saturating_sub(signed(packet.size()));
                return Some(packet);
            }
            flow.is_listed = is_new;
            self.unlist_first(is_new);
            if is_new {
                // §4.2: else a flow that returns at once would always be new, with priority.
                self.old.push_back(index);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::testing::{Numbered, packet};
    use headstart_units::{Packets, Span};

    fn of(flow: u64, number: u64) -> Numbered {
        Numbered { flow, ..packet(number) }
    }

    fn queue(limit: Limit) -> FqCoDel<Numbered> {
        FqCoDel::new(Params::default(), limit, 7)
    }

    /// Numbers in the order of departure, all dequeued at `now`.
    fn drain(queue: &mut FqCoDel<Numbered>, now: Time) -> Vec<u64> {
        let mut dropped = Dropped::new();
        let out =
            std::iter::from_fn(|| queue.dequeue(now, &mut dropped)).map(|packet| packet.number).collect();
        assert!(dropped.is_empty(), "nothing has waited");
        out
    }

    fn take(queue: &mut FqCoDel<Numbered>, packets: impl IntoIterator<Item = Numbered>) {
        for packet in packets {
            assert_eq!(queue.enqueue(Time::ZERO, packet, &mut Dropped::new()), PushResult::Accepted);
        }
    }

    #[test]
    fn the_defaults_are_those_of_the_rfc() {
        let Params { codel, quantum, flows } = Params::default();
        assert_eq!((codel.target, codel.interval), (Span::from_millis(5), Span::from_millis(100)));
        assert_eq!((quantum, flows), (Bytes::new(1514), 1024));
    }

    /// §4.2 by hand: 1500 bytes leave 14 of the first quantum, so each flow sends two packets in
    /// its first turn and falls to -1486. A quantum makes that 28, a packet -1472.
    #[test]
    fn flows_take_turns_by_their_credit() {
        let mut queue = queue(Limit::NONE);
        take(&mut queue, (0..6).map(|n| of(1, n)).chain((10..16).map(|n| of(2, n))));
        assert_eq!(drain(&mut queue, Time::ZERO), [0, 1, 10, 11, 2, 12, 3, 13, 4, 14, 5, 15]);
    }

    #[test]
    fn small_packets_get_as_many_bytes_as_large_ones() {
        let mut queue = queue(Limit::NONE);
        let small = |n| Numbered { size: Bytes::new(100), ..of(2, n) };
        take(&mut queue, (0..40).map(|n| of(1, n)).chain((100..600).map(small)));
        let mut dropped = Dropped::new();
        let mut bytes = [0, 0];
        for _ in 0..300 {
            let packet = queue.dequeue(Time::ZERO, &mut dropped).expect("plenty");
            bytes[usize::from(packet.flow == 2)] += packet.size.get();
        }
        assert!(bytes[0].abs_diff(bytes[1]) <= 2 * 1514, "{bytes:?}");
    }

    #[test]
    fn a_new_flow_goes_before_the_old_ones_once() {
        let mut queue = queue(Limit::NONE);
        let mut dropped = Dropped::new();
        // Four packets of 500 bytes use up a quantum: with the fifth, flow 1 is old, 528 left.
        let small = |n| Numbered { size: Bytes::new(500), ..of(1, n) };
        take(&mut queue, (0..10).map(small));
        for _ in 0..5 {
            assert!(queue.dequeue(Time::ZERO, &mut dropped).is_some());
        }
        take(&mut queue, [of(2, 100)]);
        assert_eq!(queue.dequeue(Time::ZERO, &mut dropped), Some(of(2, 100)), "it is new");
        // The next of flow 1 finds flow 2's queue empty and moves it behind the old ones.
        assert_eq!(queue.dequeue(Time::ZERO, &mut dropped), Some(small(5)));
        take(&mut queue, [of(2, 101)]);
        assert_eq!(drain(&mut queue, Time::ZERO), [6, 101, 7, 8, 9], "back too soon to be new");
        take(&mut queue, [of(1, 11), of(2, 102)]);
        assert_eq!(drain(&mut queue, Time::ZERO), [11, 102], "in the order of arrival: both are new again");
    }

    /// §4.1: the flow with the most bytes loses half of its packets, from its head.
    #[test]
    fn overflow_drops_at_the_head_of_the_largest_flow() {
        let mut queue = queue(Limit::packets(Packets::new(12)));
        take(&mut queue, (0..2).map(|n| of(2, 100 + n)).chain((0..10).map(|n| of(1, n))));
        let mut dropped = Dropped::new();
        assert_eq!(queue.enqueue(Time::ZERO, of(3, 200), &mut dropped), PushResult::Accepted);
        let lost: Vec<u64> =
            std::iter::from_fn(|| dropped.pop(Time::NEVER)).map(|(it, _)| it.number).collect();
        assert_eq!(lost, [0, 1, 2, 3, 4]);
        assert_eq!(queue.waiting(), (8, Bytes::new(12_000)));
        let mut rest = drain(&mut queue, Time::ZERO);
        rest.sort_unstable();
        assert_eq!(rest, [5, 6, 7, 8, 9, 100, 101, 200]);
    }

    #[test]
    fn at_most_64_packets_are_dropped_at_once_and_a_zero_limit_drops_all() {
        let mut large = queue(Limit::packets(Packets::new(300)));
        take(&mut large, (0..300).map(|n| of(1, n)));
        let mut dropped = Dropped::new();
        assert_eq!(large.enqueue(Time::ZERO, of(1, 300), &mut dropped), PushResult::Accepted);
        assert_eq!((dropped.len(), large.waiting().0), (64, 237));
        let mut none = queue(Limit::bytes(Bytes::new(100)));
        let mut dropped = Dropped::new();
        assert_eq!(none.enqueue(Time::ZERO, of(1, 0), &mut dropped), PushResult::Accepted);
        assert_eq!(dropped.pop(Time::ZERO), Some((of(1, 0), DropReason::QueueFull)));
        assert_eq!((none.waiting(), drain(&mut none, Time::ZERO)), ((0, Bytes::ZERO), vec![]));
    }

    #[test]
    fn each_flow_has_a_codel_of_its_own() {
        // Flow 1 has waited for long, flow 2 has not: the first loses a packet, the second none.
        let mut queue = queue(Limit::NONE);
        let mut dropped = Dropped::new();
        take(&mut queue, (0..40).map(|n| of(1, n)));
        for ms in [10, 60, 115] {
            let now = Time::from_millis(ms);
            assert_eq!(queue.enqueue(now, of(2, 100 + ms), &mut dropped), PushResult::Accepted);
            while queue.dequeue(now, &mut dropped).is_some_and(|packet| packet.flow == 2) {}
        }
        let lost = dropped.pop(Time::NEVER).expect("above the target for an interval");
        assert_eq!((lost.0.flow, lost.1), (1, DropReason::CoDel));
        assert!(dropped.is_empty());
    }

    #[test]
    fn flows_are_hashed_over_the_queues_depending_on_the_perturbation() {
        let spread = |perturbation| {
            let queue: FqCoDel<Numbered> = FqCoDel::new(Params::default(), Limit::NONE, perturbation);
            let mut seen: Vec<u16> = (0..100).map(|key| queue.index(key)).collect();
            assert!(seen.iter().all(|index| *index < 1024));
            let first = seen.clone();
            seen.sort_unstable();
            seen.dedup();
            (first, seen.len())
        };
        // A hundred balls in 1024 boxes fall into 95.3 different ones on average.
        for seed in 0..20 {
            assert!((88..=100).contains(&spread(seed).1), "{seed}: {}", spread(seed).1);
        }
        assert_ne!(spread(1).0, spread(2).0);
    }

    #[test]
    fn extreme_parameters_neither_hang_nor_lose_packets() {
        for (quantum, flows) in [(0, 0), (1, 1), (u64::MAX, u16::MAX)] {
            let params = Params { quantum: Bytes::new(quantum), flows, ..Params::default() };
            let mut queue = FqCoDel::new(params, Limit::NONE, 0);
            take(&mut queue, (0..6).map(|n| of(n, n)));
            let mut out = drain(&mut queue, Time::ZERO);
            out.sort_unstable();
            assert_eq!(out, [0, 1, 2, 3, 4, 5]);
        }
    }
}
