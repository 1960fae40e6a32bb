//! A link: a constant rate, a propagation delay, and a drop-tail queue before it.
//!
//! On a first-in-first-out link of known rate the departure of a packet is determined on arrival:
//! serialisation begins when the previous packet's ends. So there is no event between `push`
//! and the arrival at the far end. The queue's length is computed on demand: packets whose
//! serialisation has begun are no longer in it.

use std::collections::VecDeque;

use headstart_units::{Bytes, Rate, Span, Time};

use crate::element::{DropReason, Element, Output, Packet, PushResult};
use crate::limit::Limit;
use crate::queueing_delays::QueueingDelays;

/// A constant-rate link with a drop-tail queue.
#[derive(Debug)]
pub struct Link<P> {
    rate: Rate,
    delay: Span,
    limit: Limit,
    /// Time at which the transmitter becomes free.
    free_at: Time,
    /// Waiting packets: beginning of their serialisation, and size in bytes.
    waiting: VecDeque<(Time, u32)>,
    waiting_bytes: Bytes,
    /// All packets inside, with their arrival at the far end.
    inside: VecDeque<(Time, P)>,
    queueing_delays: Option<QueueingDelays>,
}

impl<P> Link<P> {
    /// A link of `rate` and one-way propagation `delay` behind a queue of `limit`.
    #[must_use]
    pub fn new(rate: Rate, delay: Span, limit: Limit) -> Self {
        Self {
            rate,
            delay,
            limit,
            free_at: Time::ZERO,
            waiting: VecDeque::new(),
            waiting_bytes: Bytes::ZERO,
            inside: VecDeque::new(),
            queueing_delays: None,
        }
    }

    /// The next packet to leave, if it is due at or before `now`; it stays inside.
    #[inline(always)]
    pub fn first_due(&self, now: Time) -> Option<&P> {
        self.inside.front().filter(|(at, _)| *at <= now).map(|(_, packet)| packet)
    }

    /// Removes the next packet to leave: for a driver that has copied it in place.
    #[inline(always)]
    pub fn remove_first(&mut self) {
        self.inside.pop_front();
    }

    #[inline]
    fn begin_due(&mut self, now: Time) {
        while let Some(&(begins, size)) = self.waiting.front() {
            if begins > now {
                break;
            }
            self.waiting_bytes -= Bytes::new(u64::from(size));
            self.waiting.pop_front();
        }
    }
}

impl<P: Packet> Element<P> for Link<P> {
    #[inline(always)]
    fn push(&mut self, now: Time, packet: P) -> PushResult<P> {
        let size = packet.size();
        if now < self.free_at {
            self.begin_due(now);
            if !self.limit.admits(self.waiting.len() as u64, self.waiting_bytes, size) {
                return PushResult::Dropped(packet, DropReason::QueueFull);
            }
            self.waiting.push_back((self.free_at, size.get() as u32));
            self.waiting_bytes += size;
        } else {
            self.waiting.clear();
            self.waiting_bytes = Bytes::ZERO;
            self.free_at = now;
        }
        if let Some(delays) = &mut self.queueing_delays {
            delays.add(self.free_at.since(now));
        }
        self.free_at += size / self.rate;
        self.inside.push_back((self.free_at + self.delay, packet));
        PushResult::Accepted
    }

    #[inline(always)]
    fn pop(&mut self, now: Time) -> Option<Output<P>> {
        if self.inside.front()?.0 > now {
            return None;
        }
        self.inside.pop_front().map(|(_, packet)| Output::Delivered(packet))
    }

    #[inline(always)]
    fn next_at(&self) -> Time {
        self.inside.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// The packet being sent is not among the waiting ones.
    fn queue(&mut self, now: Time) -> (u64, Bytes) {
        self.begin_due(now);
        (self.waiting.len() as u64, self.waiting_bytes)
    }

    fn queueing_delays(&mut self) -> Option<&mut Option<QueueingDelays>> {
        Some(&mut self.queueing_delays)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::testing::{drain, packet};
    use headstart_units::Packets;

    fn twelve_mbit(limit: Limit) -> Link<crate::element::testing::Numbered> {
        Link::new(Rate::from_mbit_per_sec(12), Span::from_millis(10), limit)
    }

    /// 12 Mbit/s carries one 1500-byte packet per millisecond.
    #[test]
    fn packets_leave_one_serialisation_time_apart() {
        let mut link = twelve_mbit(Limit::NONE);
        for n in 0..3 {
            assert_eq!(link.push(Time::ZERO, packet(n)), PushResult::Accepted);
        }
        assert_eq!(drain(&mut link), [(11_000, 0), (12_000, 1), (13_000, 2)]);
    }

    #[test]
    fn the_packet_being_sent_is_not_in_the_buffer() {
        for limit in [Limit::packets(Packets::new(2)), Limit::bytes(Bytes::new(3000))] {
            let mut link = twelve_mbit(limit);
            for n in 0..3 {
                assert_eq!(
                    link.push(Time::ZERO, packet(n)),
                    PushResult::Accepted,
                    "one in service, two wait"
                );
            }
            assert_eq!(
                link.push(Time::ZERO, packet(3)),
                PushResult::Dropped(packet(3), DropReason::QueueFull)
            );
            assert_eq!(link.queue(Time::ZERO), (2, Bytes::new(3000)));
            assert_eq!(
                link.push(Time::from_millis(1), packet(4)),
                PushResult::Accepted,
                "one place became free"
            );
        }
    }

    #[test]
    fn an_idle_link_sends_at_once() {
        let mut link = twelve_mbit(Limit::packets(Packets::new(0)));
        assert_eq!(link.push(Time::ZERO, packet(0)), PushResult::Accepted);
        assert_eq!(link.push(Time::from_millis(1), packet(1)), PushResult::Accepted);
        assert_eq!(drain(&mut link), [(11_000, 0), (12_000, 1)]);
    }
}
