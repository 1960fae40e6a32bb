//! One direction of a path: elements in a row, sans I/O.
//!
//! Whatever is due inside happens at its own time, not at the time of asking: a driver that comes
//! late finds the same outcomes with the same times, and can say how late it is.

use headstart_net::{
    Account, AnyElement, Direction, DropReason, Element, Fate, Output, Packet, PathPlan, Seed,
};
use headstart_units::{Bytes, Time};

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<P> {
    /// It is through, or will be sent too late to be.
    Out {
        /// When it is due at the far end.
        due: Time,
        /// The packet.
        packet: P,
    },
    /// It is gone.
    Dropped {
        /// When.
        at: Time,
        /// The packet.
        packet: P,
        /// DropReason.
        reason: DropReason,
    },
}

/// Elements in a row.
#[derive(Debug)]
pub struct Path<P> {
    hops: Vec<Hop<P>>,
}

#[derive(Debug)]
struct Hop<P> {
    name: String,
    element: AnyElement<P>,
    account: Account,
}

impl<P: Packet + Clone> Path<P> {
    /// Named elements, in the order in which packets cross them; none is a path that does nothing.
    #[must_use]
    pub fn new(elements: impl IntoIterator<Item = (String, AnyElement<P>)>) -> Self {
        let hop = |(name, element)| Hop { name, element, account: Account::default() };
        Self { hops: elements.into_iter().map(hop).collect() }
    }

    /// A packet arrives. What was due before comes out first. Times never go back from call to
    /// call.
    pub fn arrive(&mut self, now: Time, packet: P, out: &mut Vec<Outcome<P>>) {
        self.advance(now, out);
        self.offer(now, 0, packet, out);
    }

    /// Everything that is due at or before `now`.
    pub fn advance(&mut self, now: Time, out: &mut Vec<Outcome<P>>) {
        while let Some((at, number)) = self.first().filter(|(at, _)| *at <= now) {
            let hop = &mut self.hops[number];
            match hop.element.pop(at) {
                Some(Output::Delivered(packet)) => {
                    hop.account.deliver(packet.size());
                    self.offer(at, number + 1, packet, out);
                }
                Some(Output::Dropped(packet, reason)) => {
                    hop.account.drop(packet.size(), reason);
                    out.push(Outcome::Dropped { at, packet, reason });
                }
                None => {}
            }
        }
    }

    /// One direction of `plan`, for its first class of hosts. The draws are those of the simulator.
    #[must_use]
    pub fn of(plan: &PathPlan, direction: Direction, seed: Seed) -> Self {
        Self::new(plan.row(direction, 0, seed))
    }

    /// When to ask again; [`Time::NEVER`] while only an arrival can change anything.
    #[must_use]
    pub fn next_at(&self) -> Time {
        self.first().map_or(Time::NEVER, |(at, _)| at)
    }

    /// What waits before the first link, as its limit counts it.
    pub fn queue(&mut self, now: Time) -> (u64, Bytes) {
        let link = self.hops.iter_mut().find(|hop| hop.element.is_link());
        link.map_or((0, Bytes::ZERO), |hop| hop.element.queue(now))
    }

    /// Each element's name and account.
    pub fn accounts(&self) -> impl Iterator<Item = (&str, &Account)> {
        self.hops.iter().map(|hop| (hop.name.as_str(), &hop.account))
    }

    /// The element that is due first; of several the one that comes first on the way, as in the
    /// simulator.
    fn first(&self) -> Option<(Time, usize)> {
        let times = self.hops.iter().zip(0..).map(|(hop, number)| (hop.element.next_at(), number));
        times.min().filter(|(at, _)| *at != Time::NEVER)
    }

    fn offer(&mut self, now: Time, from: usize, mut packet: P, out: &mut Vec<Outcome<P>>) {
        for hop in &mut self.hops[from..] {
            hop.account.offered += 1;
            match hop.element.push(now, packet) {
                Fate::Taken => return,
                Fate::Passed(passed) => {
                    hop.account.deliver(passed.size());
                    packet = passed;
                }
                Fate::Dropped(packet, reason) => {
                    hop.account.drop(packet.size(), reason);
                    out.push(Outcome::Dropped { at: now, packet, reason });
                    return;
                }
            }
        }
        out.push(Outcome::Out { due: now, packet });
    }
}
