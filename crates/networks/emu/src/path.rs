//! One direction of a path: elements in series, sans I/O.
//!
//! Events inside happen at their own deadlines, not at the time of the call: a delayed driver gets
//! the same outcomes with the same times, and can measure its lateness.

use headstart_net::{
    AnyElement, Direction, DropReason, Element, Output, Packet, PacketCounts, PathPlan, PushResult, Seed,
};
use headstart_units::{Bytes, Time};

/// Outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOutcome<P> {
    /// The packet crossed the path.
    Out {
        /// Deadline of its departure at the far end.
        due: Time,
        /// The packet.
        packet: P,
    },
    /// An element dropped the packet.
    Dropped {
        /// Time of the drop.
        at: Time,
        /// The packet.
        packet: P,
        /// Reason of the drop.
        reason: DropReason,
    },
}

/// Elements in series.
#[derive(Debug)]
pub struct Path<P> {
    hops: Vec<Hop<P>>,
}

#[derive(Debug)]
struct Hop<P> {
    name: String,
    element: AnyElement<P>,
    counts: PacketCounts,
}

impl<P: Packet + Clone> Path<P> {
    /// Named elements, in the order of traversal; without elements packets pass unchanged.
    #[must_use]
    pub fn new(elements: impl IntoIterator<Item = (String, AnyElement<P>)>) -> Self {
        let hop = |(name, element)| Hop { name, element, counts: PacketCounts::default() };
        Self { hops: elements.into_iter().map(hop).collect() }
    }

    /// A packet arrives, after all events due before. Times never decrease from call to call.
    pub fn arrive(&mut self, now: Time, packet: P, out: &mut Vec<PacketOutcome<P>>) {
        self.advance(now, out);
        self.offer(now, 0, packet, out);
    }

    /// Processes every event due at or before `now`.
    pub fn advance(&mut self, now: Time, out: &mut Vec<PacketOutcome<P>>) {
        while let Some((at, number)) = self.first().filter(|(at, _)| *at <= now) {
            let hop = &mut self.hops[number];
            match hop.element.pop(at) {
                Some(Output::Delivered(packet)) => {
                    hop.counts.deliver(packet.size());
                    self.offer(at, number + 1, packet, out);
                }
                Some(Output::Dropped(packet, reason)) => {
                    hop.counts.drop(packet.size(), reason);
                    out.push(PacketOutcome::Dropped { at, packet, reason });
                }
                None => {}
            }
        }
    }

    /// One direction of `plan`, for its first class of hosts, with the simulator's random draws.
    #[must_use]
    pub fn of(plan: &PathPlan, direction: Direction, seed: Seed) -> Self {
        Self::new(plan.row(direction, 0, seed))
    }

    /// Time of the next event; [`Time::NEVER`] if only an arrival can change anything.
    #[must_use]
    pub fn next_at(&self) -> Time {
        self.first().map_or(Time::NEVER, |(at, _)| at)
    }

    /// Queue of the first link, as counted by its limit.
    pub fn queue(&mut self, now: Time) -> (u64, Bytes) {
        let link = self.hops.iter_mut().find(|hop| hop.element.is_link());
        link.map_or((0, Bytes::ZERO), |hop| hop.element.queue(now))
    }

    /// Name and counters of each element.
    pub fn packet_counts(&self) -> impl Iterator<Item = (&str, &PacketCounts)> {
        self.hops.iter().map(|hop| (hop.name.as_str(), &hop.counts))
    }

    /// The element with the earliest event; of several the first on the path, as in the simulator.
    fn first(&self) -> Option<(Time, usize)> {
        let times = self.hops.iter().zip(0..).map(|(hop, number)| (hop.element.next_at(), number));
        times.min().filter(|(at, _)| *at != Time::NEVER)
    }

    fn offer(&mut self, now: Time, from: usize, mut packet: P, out: &mut Vec<PacketOutcome<P>>) {
        for hop in &mut self.hops[from..] {
            hop.counts.offered += 1;
            match hop.element.push(now, packet) {
                PushResult::Accepted => return,
                PushResult::Passed(passed) => {
                    hop.counts.deliver(passed.size());
                    packet = passed;
                }
                PushResult::Dropped(packet, reason) => {
                    hop.counts.drop(packet.size(), reason);
                    out.push(PacketOutcome::Dropped { at: now, packet, reason });
                    return;
                }
            }
        }
        out.push(PacketOutcome::Out { due: now, packet });
    }
}
