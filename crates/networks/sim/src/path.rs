//! The path: elements, the routes across them, and an account of every packet.
//!
//! [`Path::new`] builds a [`PathPlan`]; [`PathBuilder`] any other topology.

use headstart_net::Packet as _;
use headstart_net::{
    AnyElement, Delay, Direction, Element, Output, PacketCounts, PathPlan, PushResult, QueueingDelays, Seed,
};
use headstart_units::{Bytes, Time};

use crate::packet::Packet;
use crate::record::{ElementEvent, Recorder};
use crate::schedule::Tournament;

/// Elements and routes. Each class of hosts has two: forward is from sender to receiver.
#[derive(Debug)]
pub struct Path {
    elements: Vec<Hop>,
    /// Forward routes at even numbers, the reverse of each at the odd number after it.
    routes: Vec<Vec<u16>>,
    /// Routers on each route.
    routers: Vec<u8>,
    tournament: Tournament,
}

#[derive(Debug)]
struct Hop {
    name: String,
    element: AnyElement<Packet>,
    counts: PacketCounts,
}

/// Builds a path.
#[derive(Debug, Default)]
pub struct PathBuilder {
    elements: Vec<Hop>,
    /// Elements into which a router forwards.
    routers: Vec<bool>,
    routes: Vec<Vec<u16>>,
}

impl PathBuilder {
    /// Adds an element and returns its number.
    pub fn element(&mut self, name: impl Into<String>, element: AnyElement<Packet>) -> u16 {
        let has_router = element.is_link();
        self.place(name.into(), element, has_router)
    }

    fn place(&mut self, name: String, element: AnyElement<Packet>, has_router: bool) -> u16 {
        self.routers.push(has_router);
        self.elements.push(Hop { name, element, counts: PacketCounts::default() });
        self.elements.len() as u16 - 1
    }

    /// Adds a class of hosts: the elements its packets cross from sender to receiver, and back.
    pub fn class(&mut self, forward: Vec<u16>, reverse: Vec<u16>) -> &mut Self {
        self.routes.push(forward);
        self.routes.push(reverse);
        self
    }

    /// The path.
    #[must_use]
    pub fn build(self) -> Path {
        let tournament = Tournament::new(self.elements.len());
        let crossed = |route: &Vec<u16>| -> u8 {
            let routers = route.iter().filter(|number| self.routers[usize::from(**number)]).count();
            // A time to live is a byte: packets cannot cross a longer path.
            routers.min(usize::from(u8::MAX)) as u8
        };
        let routers = self.routes.iter().map(crossed).collect();
        Path { elements: self.elements, routes: self.routes, routers, tournament }
    }
}

impl Path {
    /// The path of `plan`, its elements numbered as by [`PathPlan::elements`], then access links.
    #[must_use]
    pub fn new(plan: &PathPlan, seed: Seed) -> Self {
        let mut builder = PathBuilder::default();
        let (mut down, mut up) = (vec![0; plan.down.len()], vec![0; plan.up.len()]);
        for placed in plan.elements(seed) {
            let mut element = placed.plan.build(placed.seed);
            if (placed.direction, placed.position) == (Direction::Down, 0)
                && let Some(place) = Element::<Packet>::queueing_delays(&mut element)
            {
                *place = Some(QueueingDelays::default());
            }
            let number = builder.place(placed.name, element, placed.plan.has_router());
            match placed.direction {
                Direction::Down => down[placed.position] = number,
                Direction::Up => up[placed.position] = number,
            }
        }
        for delay in &plan.access {
            let (mut there, mut back) = (down.clone(), up.clone());
            if !delay.is_zero() {
                there.push(builder.element("access", AnyElement::Delay(Delay::new(*delay))));
                back.insert(0, builder.element("access back", AnyElement::Delay(Delay::new(*delay))));
            }
            builder.class(there, back);
        }
        builder.build()
    }

    /// Routers on this route: the decrease of a packet's time to live.
    ///
    /// # Panics
    /// If the path has no such route.
    #[must_use]
    pub fn routers(&self, route: u16) -> u8 {
        self.routers[usize::from(route)]
    }

    /// Time at which the next packet leaves an element.
    #[inline]
    pub fn next_at(&self) -> Time {
        self.tournament.first().0
    }

    /// Sends a packet on its way. Returned if its route is empty or all of it was crossed at once.
    ///
    /// A packet whose way begins with a plain link is written straight into it. Building it in one
    /// place and copying it at once costs more than the link itself, because the processor cannot
    /// forward several narrow stores to one wide load.
    #[inline(always)]
    pub fn launch(&mut self, now: Time, mut packet: Packet, recorder: &mut impl Recorder) -> Option<Packet> {
        let first = self.routes[usize::from(packet.route)].first().copied().map(usize::from);
        if let Some(number) = first
            && let Hop { element: AnyElement::Link(link), counts, .. } = &mut self.elements[number]
        {
            packet.hop = 1;
            counts.offered += 1;
            match link.push(now, packet) {
                PushResult::Accepted | PushResult::Passed(_) => {
                    recorder.element(now, number, ElementEvent::Accepted, &packet);
                    recorder.queue(now, number, || link.queue(now));
                    self.tournament.update(number, link.next_at());
                }
                PushResult::Dropped(_, reason) => {
                    counts.drop(packet.size(), reason);
                    recorder.element(now, number, ElementEvent::Refused(reason), &packet);
                }
            }
            return None;
        }
        self.offer(now, packet, recorder)
    }

    /// Sends a packet on from where it is. Returned if it has crossed its whole route.
    #[inline(never)]
    fn offer(&mut self, now: Time, mut packet: Packet, recorder: &mut impl Recorder) -> Option<Packet> {
        loop {
            let Some(&at) = self.routes[usize::from(packet.route)].get(usize::from(packet.hop)) else {
                return Some(packet);
            };
            let number = usize::from(at);
            packet.hop += 1;
            let hop = &mut self.elements[number];
            hop.counts.offered += 1;
            match hop.element.push(now, packet) {
                PushResult::Accepted => {
                    recorder.element(now, number, ElementEvent::Accepted, &packet);
                    recorder.queue(now, number, || hop.element.queue(now));
                    self.tournament.update(number, hop.element.next_at());
                    return None;
                }
                PushResult::Passed(passed) => {
                    hop.counts.deliver(passed.size());
                    recorder.element(now, number, ElementEvent::Passed, &passed);
                    // A copy may have stayed behind.
                    self.tournament.update(number, hop.element.next_at());
                    packet = passed;
                }
                PushResult::Dropped(dropped, reason) => {
                    hop.counts.drop(dropped.size(), reason);
                    recorder.element(now, number, ElementEvent::Refused(reason), &dropped);
                    return None;
                }
            }
        }
    }

    /// Takes the packet that is due first. Returned if it has crossed its whole route.
    #[inline(always)]
    pub fn advance(&mut self, now: Time, recorder: &mut impl Recorder) -> Option<Packet> {
        let (_, number) = self.tournament.first();
        let Hop { element: AnyElement::Link(link), counts, .. } = &mut self.elements[number] else {
            return self.advance_elsewhere(now, number, recorder);
        };
        let packet = *link.first_due(now)?;
        link.remove_first();
        self.tournament.update(number, link.next_at());
        counts.deliver(packet.size());
        recorder.element(now, number, ElementEvent::Delivered, &packet);
        recorder.queue(now, number, || link.queue(now));
        if usize::from(packet.hop) == self.routes[usize::from(packet.route)].len() {
            return Some(packet);
        }
        self.offer(now, packet, recorder)
    }

    #[inline(never)]
    fn advance_elsewhere(
        &mut self,
        now: Time,
        number: usize,
        recorder: &mut impl Recorder,
    ) -> Option<Packet> {
        let hop = &mut self.elements[number];
        let output = hop.element.pop(now);
        self.tournament.update(number, hop.element.next_at());
        recorder.queue(now, number, || hop.element.queue(now));
        match output? {
            Output::Delivered(packet) => {
                hop.counts.deliver(packet.size());
                recorder.element(now, number, ElementEvent::Delivered, &packet);
                self.offer(now, packet, recorder)
            }
            Output::Dropped(packet, reason) => {
                hop.counts.drop(packet.size(), reason);
                recorder.element(now, number, ElementEvent::Dropped(reason), &packet);
                None
            }
        }
    }

    /// Each element's name and account.
    pub fn packet_counts(&self) -> impl Iterator<Item = (&str, &PacketCounts)> {
        self.elements.iter().map(|hop| (hop.name.as_str(), &hop.counts))
    }

    /// Queueing delays before the first element, if it is a link of a plan.
    #[must_use]
    pub fn queueing_delays(&mut self) -> Option<&QueueingDelays> {
        Element::<Packet>::queueing_delays(&mut self.elements.first_mut()?.element)?.as_ref()
    }

    /// Packets and bytes that wait before the first element.
    #[must_use]
    pub fn first_queue(&mut self, now: Time) -> (u64, Bytes) {
        self.elements.first_mut().map_or_else(Default::default, |hop| hop.element.queue(now))
    }

    /// The element of that number.
    ///
    /// # Panics
    /// If the path has no such element.
    pub fn element_mut(&mut self, number: u16) -> &mut AnyElement<Packet> {
        &mut self.elements[usize::from(number)].element
    }
}
