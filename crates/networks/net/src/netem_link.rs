//! A link as `tc` emulates it with netem below a token bucket: one limit for delay and queue.
//!
//! `tbf` or `htb` with a netem child holds every packet in one queue, netem's: first for the
//! emulated delay, then until the bucket has tokens for it. The limit is netem's and counts both.
//! Where it was meant to be the buffer of the link, the buffer is smaller by the packets in the
//! delay, most of all when they arrive in a burst. Mininet's links with a bandwidth and a delay are
//! of this kind.
//!
//! tc passes a packet on when its tokens are there. This link delivers it when its serialisation
//! ends, as [`Link`](crate::Link) does: without a limit the two agree packet by packet.

use std::collections::VecDeque;

use headstart_units::{Bytes, Rate, Span, Time};

use crate::element::{DropReason, Element, Output, Packet, PushResult};
use crate::limit::Limit;
use crate::queueing_delays::QueueingDelays;
use crate::ring::Ring;

/// A constant-rate link whose limit counts packets in the delay and in the queue.
#[derive(Debug)]
pub struct NetemLink<P> {
    rate: Rate,
    delay: Span,
    limit: Limit,
    /// Time at which the transmitter becomes free.
    free_at: Time,
    /// Packets in the delay or in the queue: beginning of their serialisation, and size.
    held: VecDeque<(Time, Bytes)>,
    held_bytes: Bytes,
    /// All packets inside, with the end of their serialisation.
    inside: Ring<P>,
    queueing_delays: Option<QueueingDelays>,
}

impl<P> NetemLink<P> {
    /// A link that delays packets by `delay` and then sends them at `rate`, and holds as many as
    /// `limit` allows before they are sent.
    #[must_use]
    pub const fn new(rate: Rate, delay: Span, limit: Limit) -> Self {
        Self {
            rate,
            delay,
            limit,
            free_at: Time::ZERO,
            held: VecDeque::new(),
            held_bytes: Bytes::ZERO,
            inside: Ring::new(),
            queueing_delays: None,
        }
    }

    fn begin_due(&mut self, now: Time) {
        while let Some(&(begins, size)) = self.held.front() {
            if begins > now {
                break;
            }
            self.held_bytes -= size;
            self.held.pop_front();
        }
    }
}

impl<P: Packet> Element<P> for NetemLink<P> {
    fn push(&mut self, now: Time, packet: P) -> PushResult<P> {
        let size = packet.size();
        self.begin_due(now);
        if !self.limit.admits(self.held.len() as u64, self.held_bytes, size) {
            return PushResult::Dropped(packet, DropReason::QueueFull);
        }
        let delayed = now + self.delay;
        let begins = self.free_at.max(delayed);
        if let Some(delays) = &mut self.queueing_delays {
            delays.add(begins.since(delayed));
        }
        self.held.push_back((begins, size));
        self.held_bytes += size;
        self.free_at = begins + size / self.rate;
        self.inside.push(self.free_at, packet);
        PushResult::Accepted
    }

    fn pop(&mut self, now: Time) -> Option<Output<P>> {
        self.inside.pop(now).map(Output::Delivered)
    }

    fn next_at(&self) -> Time {
        self.inside.next_at()
    }

    /// Packets in the delay and in the queue; the one being sent is in neither.
    fn queue(&mut self, now: Time) -> (u64, Bytes) {
        self.begin_due(now);
        (self.held.len() as u64, self.held_bytes)
    }

    fn queueing_delays(&mut self) -> Option<&mut Option<QueueingDelays>> {
        Some(&mut self.queueing_delays)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Link;
    use crate::element::testing::{Numbered, drain, packet};
    use headstart_units::Packets;

    const DELAY: Span = Span::from_millis(10);

    /// 12 Mbit/s carries one 1500-byte packet per millisecond.
    fn twelve_mbit(limit: Limit) -> NetemLink<Numbered> {
        NetemLink::new(Rate::from_mbit_per_sec(12), DELAY, limit)
    }

    #[test]
    fn without_a_limit_it_is_the_link() {
        let mut link = Link::new(Rate::from_mbit_per_sec(12), DELAY, Limit::NONE);
        let mut netem = twelve_mbit(Limit::NONE);
        for (n, micros) in [0, 0, 0, 700, 2_900, 40_000, 40_000, 41_500].into_iter().enumerate() {
            let (now, packet) = (Time::from_nanos(micros * 1000), packet(n as u64));
            assert_eq!(link.push(now, packet), netem.push(now, packet));
        }
        assert_eq!(drain(&mut link), drain(&mut netem));
    }

    #[test]
    fn packets_in_the_delay_count() {
        for limit in [Limit::packets(Packets::new(4)), Limit::bytes(Bytes::new(6000))] {
            let mut link = twelve_mbit(limit);
            for n in 0..4 {
                assert_eq!(link.push(Time::from_millis(n), packet(n)), PushResult::Accepted);
            }
            let full = PushResult::Dropped(packet(4), DropReason::QueueFull);
            assert_eq!(
                link.push(Time::from_millis(9), packet(4)),
                full,
                "nobody waits for the link, but four packets are in the delay"
            );
            assert_eq!(link.queue(Time::from_millis(9)), (4, Bytes::new(6000)));
            assert_eq!(
                link.push(Time::from_millis(10), packet(5)),
                PushResult::Accepted,
                "one is being sent"
            );
            assert_eq!(drain(&mut link), [(11_000, 0), (12_000, 1), (13_000, 2), (14_000, 3), (21_000, 5)]);
        }
    }

    /// At the link's own rate the delay holds ten packets, so that of twelve places two are left.
    #[test]
    fn at_full_rate_the_queue_is_the_limit_less_the_packets_in_the_delay() {
        let mut link = twelve_mbit(Limit::packets(Packets::new(12)));
        link.queueing_delays = Some(QueueingDelays::default());
        let mut number = 0;
        let mut send = |link: &mut NetemLink<Numbered>, millis: u64, count: u64| -> u64 {
            (0..count)
                .filter(|_| {
                    number += 1;
                    matches!(link.push(Time::from_millis(millis), packet(number)), PushResult::Accepted)
                })
                .count() as u64
        };
        for millis in 0..50 {
            assert_eq!(send(&mut link, millis, 1), 1);
        }
        assert_eq!(send(&mut link, 50, 8), 3, "a place for the packet of this millisecond, and two more");
    }
}
