//! Drop arrivals at a full buffer: the queue of most links, and buffer of the other disciplines.

use std::collections::VecDeque;

use headstart_units::{Bytes, Time};

use crate::element::{DropReason, Packet, PushResult};
use crate::limit::Limit;

/// A first-in-first-out buffer with a limit in packets, bytes or both.
#[derive(Debug)]
pub struct DropTail<P> {
    limit: Limit,
    /// Packets with their arrival times, for disciplines that use the queueing delay.
    waiting: VecDeque<(Time, P)>,
    bytes: Bytes,
}

impl<P> DropTail<P> {
    /// An empty buffer of `limit`.
    #[must_use]
    pub const fn new(limit: Limit) -> Self {
        Self { limit, waiting: VecDeque::new(), bytes: Bytes::ZERO }
    }

    pub(crate) fn waiting(&self) -> (u64, Bytes) {
        (self.waiting.len() as u64, self.bytes)
    }

    /// Arrival time of the oldest packet.
    pub(crate) fn oldest(&self) -> Option<Time> {
        self.waiting.front().map(|(since, _)| *since)
    }
}

impl<P: Packet> DropTail<P> {
    /// True if one more packet of `size` has room.
    pub(crate) fn admits(&self, size: Bytes) -> bool {
        self.limit.admits(self.waiting.len() as u64, self.bytes, size)
    }

    pub(crate) fn enqueue(&mut self, now: Time, packet: P) -> PushResult<P> {
        let size = packet.size();
        if !self.admits(size) {
            return PushResult::Dropped(packet, DropReason::QueueFull);
        }
        self.bytes += size;
        self.waiting.push_back((now, packet));
        PushResult::Accepted
    }

    /// The newest packet, to make room.
    pub(crate) fn drop_newest(&mut self) -> Option<P> {
        let (_, packet) = self.waiting.pop_back()?;
        self.bytes -= packet.size();
        Some(packet)
    }

    /// The oldest packet, and its arrival time.
    pub(crate) fn dequeue(&mut self) -> Option<(Time, P)> {
        let (since, packet) = self.waiting.pop_front()?;
        self.bytes -= packet.size();
        Some((since, packet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::testing::packet;
    use headstart_units::Packets;

    #[test]
    fn the_limit_may_count_packets_or_bytes() {
        for limit in [Limit::packets(Packets::new(2)), Limit::bytes(Bytes::new(3000))] {
            let mut queue = DropTail::new(limit);
            assert_eq!(queue.enqueue(Time::ZERO, packet(0)), PushResult::Accepted);
            assert_eq!(queue.enqueue(Time::ZERO, packet(1)), PushResult::Accepted);
            assert_eq!(
                queue.enqueue(Time::ZERO, packet(2)),
                PushResult::Dropped(packet(2), DropReason::QueueFull)
            );
            assert_eq!(queue.waiting(), (2, Bytes::new(3000)));
            assert_eq!(queue.dequeue(), Some((Time::ZERO, packet(0))), "first in, first out");
            assert_eq!(queue.enqueue(Time::ZERO, packet(3)), PushResult::Accepted, "one place became free");
        }
    }
}
