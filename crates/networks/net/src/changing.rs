//! Links that change at given times: a path whose rate halves, drops to zero and recovers.
//!
//! A change takes effect at its own instant: a late call of the element gives the same result.
//!
//! - A new rate holds for packets sent from then on; the packet being sent continues at the old
//!   one. At rate zero all packets wait, as in an outage whose link layer keeps them; an outage
//!   that loses them is a loss of 100 %.
//! - A new delay holds for packets sent from then on. When it is shorter, packets do not overtake:
//!   they arrive together with the last one that was sent before.

use std::collections::VecDeque;

use headstart_units::{Bytes, Rate, Span, Time};

use crate::element::{Element, Output, Packet, PushResult};
use crate::managed_link::ManagedLink;
use crate::queueing_delays::QueueingDelays;

/// A change of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkChange {
    /// The rate; at zero all packets wait.
    Rate(Rate),
    /// The one-way propagation delay.
    Delay(Span),
}

/// Changes in the order of their times; those at one time are applied in the order of the list.
#[derive(Debug)]
pub(crate) struct Schedule<T>(VecDeque<(Time, T)>);

impl<T: Copy> Schedule<T> {
    pub(crate) fn new(changes: impl IntoIterator<Item = (Time, T)>) -> Self {
        let mut changes: Vec<_> = changes.into_iter().collect();
        changes.sort_by_key(|(at, _)| *at);
        Self(changes.into())
    }

    fn next_at(&self) -> Time {
        self.0.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    pub(crate) fn pop(&mut self, now: Time) -> Option<(Time, T)> {
        if self.next_at() > now { None } else { self.0.pop_front() }
    }
}

/// A link behind any queue, with changing rate and delay.
#[derive(Debug)]
pub struct ChangingLink<P> {
    link: ManagedLink<P>,
    changes: Schedule<LinkChange>,
}

impl<P: Packet> ChangingLink<P> {
    /// `link` with changes at these times.
    #[must_use]
    pub fn new(link: ManagedLink<P>, changes: impl IntoIterator<Item = (Time, LinkChange)>) -> Self {
        Self { link, changes: Schedule::new(changes) }
    }

    fn settle(&mut self, now: Time) {
        while let Some((at, change)) = self.changes.pop(now) {
            match change {
                LinkChange::Rate(rate) => self.link.set_rate(at, rate),
                LinkChange::Delay(delay) => self.link.set_delay(at, delay),
            }
        }
    }
}

impl<P: Packet> Element<P> for ChangingLink<P> {
    fn push(&mut self, now: Time, packet: P) -> PushResult<P> {
        self.settle(now);
        self.link.push(now, packet)
    }

    fn pop(&mut self, now: Time) -> Option<Output<P>> {
        self.settle(now);
        self.link.pop(now)
    }

    fn next_at(&self) -> Time {
        let out = self.link.next_at();
        if self.link.is_held() { out.min(self.changes.next_at()) } else { out }
    }

    fn queue(&mut self, now: Time) -> (u64, Bytes) {
        self.settle(now);
        self.link.queue(now)
    }

    fn queueing_delays(&mut self) -> Option<&mut Option<QueueingDelays>> {
        self.link.queueing_delays()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::testing::{Numbered, drain, packet};
    use crate::limit::Limit;
    use crate::queue::Queue;
    use crate::queueing_delays::Queued;
    use headstart_units::Packets;

    const fn mbit(rate: u64) -> LinkChange {
        LinkChange::Rate(Rate::from_mbit_per_sec(rate))
    }

    fn link(queue: Queue<Queued<Numbered>>, changes: &[(u64, LinkChange)]) -> ChangingLink<Numbered> {
        let link = ManagedLink::new(Rate::from_mbit_per_sec(12), Span::from_millis(10), queue);
        ChangingLink::new(link, changes.iter().map(|(ms, change)| (Time::from_millis(*ms), *change)))
    }

    fn fill(link: &mut ChangingLink<Numbered>, count: u64) {
        for n in 0..count {
            assert_eq!(link.push(Time::ZERO, packet(n)), PushResult::Accepted);
        }
    }

    /// 12 Mbit/s carries a packet in 1 ms, 6 Mbit/s in 2 ms.
    #[test]
    fn a_link_follows_a_halved_rate_an_outage_and_its_end() {
        let changes = [(2, mbit(6)), (5, mbit(0)), (50, mbit(12))];
        let mut link = link(Queue::drop_tail(Limit::NONE), &changes);
        fill(&mut link, 6);
        assert_eq!(
            drain(&mut link),
            [(11_000, 0), (12_000, 1), (14_000, 2), (16_000, 3), (61_000, 4), (62_000, 5)],
            "the fourth is being sent when the link goes dark at 5 ms, and goes on"
        );
    }

    #[test]
    fn packets_that_arrive_during_an_outage_wait_in_the_queue() {
        let changes = [(0, mbit(0)), (30, mbit(12))];
        let mut link = link(Queue::drop_tail(Limit::packets(Packets::new(2))), &changes);
        fill(&mut link, 2);
        assert!(matches!(link.push(Time::from_millis(1), packet(2)), PushResult::Dropped(..)));
        assert_eq!(link.next_at(), Time::from_millis(30));
        assert_eq!(drain(&mut link), [(41_000, 0), (42_000, 1)]);
    }

    #[test]
    fn a_shorter_delay_does_not_reorder() {
        let mut link = link(Queue::drop_tail(Limit::NONE), &[(2, LinkChange::Delay(Span::from_millis(1)))]);
        fill(&mut link, 4);
        assert_eq!(drain(&mut link), [(11_000, 0), (12_000, 1), (12_000, 2), (12_000, 3)]);
    }

    #[test]
    fn late_polling_changes_nothing() {
        let changes = [(3, mbit(3)), (9, mbit(0)), (20, mbit(24)), (21, LinkChange::Delay(Span::ZERO))];
        for queue in [Queue::codel, Queue::drop_tail] {
            let (mut early, mut late) =
                (link(queue(Limit::NONE), &changes), link(queue(Limit::NONE), &changes));
            fill(&mut early, 40);
            fill(&mut late, 40);
            let expected = drain(&mut early).iter().map(|(_, n)| *n).collect::<Vec<_>>();
            let mut found = vec![];
            while let Some(output) = late.pop(Time::from_millis(1000)) {
                if let Output::Delivered(packet) = output {
                    found.push(packet.number);
                }
            }
            assert_eq!(found, expected);
        }
    }
}
