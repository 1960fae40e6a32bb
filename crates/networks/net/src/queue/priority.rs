//! Serve the highest priority first, and push out the lowest for room.
//!
//! Source: R. Mittal et al., "Recursively Cautious Congestion Control", NSDI 2014, whose low
//! priorities such queues serve; its authors' code for ns-3 (`priority-queue.cc`, the behaviour in
//! own words).
//!
//! All priorities share one buffer. An arrival at a full one drops the newest packets of the lowest
//! priority below its own until it has room; where there is none below, it is dropped itself.
//! Packets that say nothing of a priority have the highest.

use headstart_units::{Bytes, Time};

use super::Dropped;
use super::drop_tail::DropTail;
use crate::element::{DropReason, Packet, PushResult};
use crate::limit::Limit;

/// Priorities that are told apart; lower ones share the last.
const LEVELS: usize = 4;

/// A queue for each priority, in one buffer.
#[derive(Debug)]
pub struct Priority<P> {
    limit: Limit,
    levels: [DropTail<P>; LEVELS],
}

impl<P> Priority<P> {
    /// Empty queues with one buffer of `limit`.
    #[must_use]
    pub const fn new(limit: Limit) -> Self {
        Self { limit, levels: [const { DropTail::new(Limit::NONE) }; LEVELS] }
    }

    pub(crate) fn waiting(&self) -> (u64, Bytes) {
        self.levels
            .iter()
            .map(DropTail::waiting)
            .fold((0, Bytes::ZERO), |(packets, bytes), (more, more_bytes)| {
                (packets + more, bytes + more_bytes)
            })
    }
}

impl<P: Packet> Priority<P> {
    pub(crate) fn enqueue(&mut self, now: Time, packet: P, dropped: &mut Dropped<P>) -> PushResult<P> {
        let level = usize::from(packet.priority()).min(LEVELS - 1);
        loop {
            let (packets, bytes) = self.waiting();
            if self.limit.admits(packets, bytes, packet.size()) {
                return self.levels[level].enqueue(now, packet);
            }
            let Some(last) = self.levels[level + 1..].iter_mut().rev().find_map(DropTail::drop_newest) else {
                return PushResult::Dropped(packet, DropReason::QueueFull);
            };
            dropped.push(now, (last, DropReason::QueueFull));
        }
    }

    pub(crate) fn dequeue(&mut self) -> Option<P> {
        self.levels.iter_mut().find_map(DropTail::dequeue).map(|(_, packet)| packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::testing::{Numbered, packet};
    use headstart_units::Packets;

    fn of_priority(number: u64, priority: u8) -> Numbered {
        Numbered { priority, ..packet(number) }
    }

    fn numbers(queue: &mut Priority<Numbered>) -> Vec<u64> {
        core::iter::from_fn(|| queue.dequeue()).map(|packet| packet.number).collect()
    }

    #[test]
    fn higher_priorities_are_served_first_and_each_in_order() {
        let mut queue = Priority::new(Limit::NONE);
        for (number, priority) in [3, 0, 1, 3, 0, 200, 2].into_iter().enumerate() {
            let packet = of_priority(number as u64, priority);
            assert_eq!(queue.enqueue(Time::ZERO, packet, &mut Dropped::new()), PushResult::Accepted);
        }
        assert_eq!(queue.waiting(), (7, Bytes::new(7 * 1500)));
        assert_eq!(numbers(&mut queue), [1, 4, 2, 6, 0, 3, 5], "below the last level there is none");
    }

    #[test]
    fn a_full_buffer_pushes_out_the_newest_of_the_lowest_priority() {
        let mut queue = Priority::new(Limit::packets(Packets::new(3)));
        let mut dropped = Dropped::new();
        let mut offer = |queue: &mut Priority<Numbered>, number, priority| {
            let result = queue.enqueue(Time::ZERO, of_priority(number, priority), &mut dropped);
            let pushed_out = dropped.pop(Time::ZERO).map(|(packet, _)| packet.number);
            (result == PushResult::Accepted, pushed_out)
        };
        for number in 0..3 {
            assert_eq!(offer(&mut queue, number, 1 + number as u8 / 2), (true, None), "1, 1, 2");
        }
        assert_eq!(offer(&mut queue, 3, 2), (false, None), "nothing is lower");
        assert_eq!(offer(&mut queue, 4, 0), (true, Some(2)));
        assert_eq!(offer(&mut queue, 5, 0), (true, Some(1)), "the newer one of its priority");
        assert_eq!(offer(&mut queue, 6, 1), (false, None));
        assert_eq!(numbers(&mut queue), [4, 5, 0]);
    }

    #[test]
    fn a_large_packet_pushes_out_as_many_as_it_needs() {
        let mut queue = Priority::new(Limit::bytes(Bytes::new(3000)));
        let mut dropped = Dropped::new();
        for number in 0..4 {
            let small = Numbered { size: Bytes::new(700), ..of_priority(number, 3) };
            assert_eq!(queue.enqueue(Time::ZERO, small, &mut dropped), PushResult::Accepted);
        }
        assert_eq!(queue.enqueue(Time::ZERO, packet(9), &mut dropped), PushResult::Accepted);
        let pushed_out = core::iter::from_fn(|| dropped.pop(Time::ZERO)).count();
        assert_eq!((pushed_out, numbers(&mut queue)), (2, vec![9, 0, 1]));
    }
}
