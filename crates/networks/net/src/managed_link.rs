//! A link of constant rate with any queue discipline.
//!
//! With a plain buffer [`Link`](crate::Link) does the same at less cost; the two agree packet by
//! packet. Here the transmitter dequeues a packet each time it becomes free, because disciplines
//! such as CoDel decide only then. Of a queue that decides on arrival packets are dequeued later,
//! for the earlier instant: that saves the event.

use headstart_units::{Bytes, Rate, Span, Time};

use crate::element::{Element, Output, Packet, PushResult};
use crate::queue::{Dropped, Queue};
use crate::queueing_delays::{Queued, QueueingDelays};
use crate::ring::Ring;

/// A constant-rate link and its propagation delay behind any queue.
#[derive(Debug)]
pub struct ManagedLink<P> {
    rate: Rate,
    delay: Span,
    queue: Queue<Queued<P>>,
    /// Time at which the transmitter becomes, or became, free.
    free_at: Time,
    /// True if the queue was empty when the transmitter became free.
    is_idle: bool,
    /// Packets being sent or in transit, with their arrival at the far end.
    inside: Ring<P>,
    /// The latest of these arrivals: a shorter delay does not let packets overtake.
    last_at: Time,
    dropped: Dropped<Queued<P>>,
    queueing_delays: Option<QueueingDelays>,
}

impl<P: Packet> ManagedLink<P> {
    /// A link of `rate` and one-way propagation `delay` behind `queue`.
    #[must_use]
    pub const fn new(rate: Rate, delay: Span, queue: Queue<Queued<P>>) -> Self {
        Self {
            rate,
            delay,
            queue,
            free_at: Time::ZERO,
            is_idle: true,
            inside: Ring::new(),
            last_at: Time::ZERO,
            dropped: Ring::new(),
            queueing_delays: None,
        }
    }

    /// Packets are sent at `rate` from `now` on; the one being sent continues at the old rate. At
    /// zero all packets wait.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.advance_before(now);
        if self.rate.is_zero() {
            self.free_at = self.free_at.max(now);
        }
        self.rate = rate;
    }

    /// Packets sent from `now` on are delayed by `delay`, or longer where they would overtake.
    pub fn set_delay(&mut self, now: Time, delay: Span) {
        self.advance_before(now);
        self.delay = delay;
    }

    /// True if packets wait at rate zero.
    pub(crate) fn is_held(&self) -> bool {
        self.rate.is_zero() && !self.queue.is_empty()
    }

    fn advance_before(&mut self, now: Time) {
        if let Some(before) = now.as_nanos().checked_sub(1) {
            self.advance(Time::from_nanos(before));
        }
    }

    /// Begins every serialisation that is due at or before `now`, each at its own time.
    fn advance(&mut self, now: Time) {
        while !self.is_idle && self.free_at <= now && !self.rate.is_zero() {
            match self.queue.dequeue(self.free_at, &mut self.dropped) {
                Some(queued) => self.send(self.free_at, queued),
                None => self.is_idle = true,
            }
        }
    }

    fn send(&mut self, now: Time, queued: Queued<P>) {
        let Queued { packet, since, .. } = queued;
        if let Some(delays) = &mut self.queueing_delays {
            delays.add(now.since(since));
        }
        self.free_at = now + packet.size() / self.rate;
        self.is_idle = false;
        self.last_at = self.last_at.max(self.free_at + self.delay);
        self.inside.push(self.last_at, packet);
    }
}

impl<P: Packet> Element<P> for ManagedLink<P> {
    fn push(&mut self, now: Time, packet: P) -> PushResult<P> {
        self.advance(now);
        let queued = Queued { packet, since: now, overhead: Bytes::ZERO };
        let fate = if !self.is_idle || self.rate.is_zero() {
            self.is_idle = false;
            self.queue.enqueue(now, queued, &mut self.dropped)
        } else {
            self.queue.pass(now, queued)
        };
        match fate {
            PushResult::Passed(queued) => {
                self.send(now, queued);
                PushResult::Accepted
            }
            PushResult::Accepted => PushResult::Accepted,
            PushResult::Dropped(queued, reason) => PushResult::Dropped(queued.packet, reason),
        }
    }

    fn pop(&mut self, now: Time) -> Option<Output<P>> {
        self.advance(now);
        if let Some((queued, reason)) = self.dropped.pop(now) {
            return Some(Output::Dropped(queued.packet, reason));
        }
        self.inside.pop(now).map(Output::Delivered)
    }

    fn next_at(&self) -> Time {
        let out = self.inside.next_at().min(self.dropped.next_at());
        let asks = self.queue.drops_at_head() && !self.queue.is_empty() && !self.rate.is_zero();
        if asks { out.min(self.free_at) } else { out }
    }

    fn queue(&mut self, now: Time) -> (u64, Bytes) {
        self.advance(now);
        self.queue.waiting()
    }

    fn queueing_delays(&mut self) -> Option<&mut Option<QueueingDelays>> {
        Some(&mut self.queueing_delays)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::DropReason;
    use crate::element::testing::{Numbered, drain, packet};
    use crate::limit::Limit;
    use headstart_units::Packets;

    fn twelve_mbit(queue: Queue<Queued<Numbered>>) -> ManagedLink<Numbered> {
        ManagedLink::new(Rate::from_mbit_per_sec(12), Span::from_millis(10), queue)
    }

    /// 12 Mbit/s carries one 1500-byte packet per millisecond.
    #[test]
    fn packets_leave_one_serialisation_time_apart() {
        let mut link = twelve_mbit(Queue::codel(Limit::NONE));
        for n in 0..3 {
            assert_eq!(link.push(Time::ZERO, packet(n)), PushResult::Accepted);
        }
        assert_eq!(link.queue(Time::ZERO), (2, Bytes::new(3000)));
        assert_eq!(drain(&mut link), [(11_000, 0), (12_000, 1), (13_000, 2)]);
    }

    #[test]
    fn the_packet_being_sent_is_not_in_the_buffer() {
        let mut link = twelve_mbit(Queue::drop_tail(Limit::packets(Packets::new(1))));
        assert_eq!(link.push(Time::ZERO, packet(0)), PushResult::Accepted);
        assert_eq!(link.push(Time::ZERO, packet(1)), PushResult::Accepted);
        assert_eq!(link.push(Time::ZERO, packet(2)), PushResult::Dropped(packet(2), DropReason::QueueFull));
        assert_eq!(link.push(Time::from_millis(1), packet(3)), PushResult::Accepted);
    }

    /// Two packets per millisecond into a link for one, for two seconds: CoDel makes the queue
    /// shorter than an unmanaged one, and reports each drop at the time it happens.
    #[test]
    fn codel_drops_are_reported_when_they_happen() {
        let mut link = twelve_mbit(Queue::codel(Limit::NONE));
        let (mut delivered, mut drops) = (0, vec![]);
        let mut take = |link: &mut ManagedLink<Numbered>, until: Time| {
            while link.next_at() <= until && link.next_at() != Time::NEVER {
                let now = link.next_at();
                while let Some(output) = link.pop(now) {
                    match output {
                        Output::Delivered(_) => delivered += 1,
                        Output::Dropped(_, DropReason::CoDel) => drops.push(now),
                        Output::Dropped(..) => panic!("no other cause"),
                    }
                }
                assert!(link.next_at() > now);
            }
        };
        for n in 0..4000 {
            let now = Time::from_nanos(n * 500_000);
            take(&mut link, now);
            assert_eq!(link.push(now, packet(n)), PushResult::Accepted);
        }
        take(&mut link, Time::from_nanos(u64::MAX - 1));
        // The wait passes 5 ms with the packet of 10 ms, dequeued at 10 ms; an interval later:
        assert!(drops[0] > Time::from_millis(105) && drops[0] < Time::from_millis(115), "{:?}", drops[0]);
        assert_eq!(
            drops[1].since(drops[0]),
            Span::from_millis(100),
            "interval / sqrt(1), on the grid of 1 ms"
        );
        assert_eq!(delivered + drops.len(), 4000);
    }
}
