//! The packets of one flow on its path: when each was sent, dequeued, and arrived or lost.

use std::collections::BTreeSet;

use headstart_sim::packet::{Body, Ecn, Packet};
use headstart_sim::record::ElementEvent;
use headstart_units::{Span, Time};
use serde::Serialize;

use headstart_study::carrier::Observer;

/// Most packets kept of one flow.
const MAX_PACKETS: usize = 6_000;

/// Kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A segment, for the first time.
    Data,
    /// A segment again: retransmission or copy.
    Again,
    /// An acknowledgement.
    Ack,
    /// A packet of the handshake, or a request.
    Other,
}

/// A packet's way over the path.
#[derive(Clone, Copy, Debug)]
pub struct Journey {
    /// Kind of packet.
    pub kind: Kind,
    /// Segment of the packet, where it has one.
    pub segment: u32,
    /// True if it goes back to the sender of the data.
    pub is_back: bool,
    /// When it reached the first element.
    pub sent: Time,
    /// When it left the first element, propagation included.
    pub crossed: Option<Time>,
    /// When it left the last element that it reached, or was dropped.
    pub end: Time,
    /// True if it was dropped.
    pub is_lost: bool,
    packet: Packet,
    /// The element that it is in.
    inside: Option<usize>,
}

impl Journey {
    /// When its last bit left the first link's queue, whose propagation takes `delay`; a packet
    /// that the queue dropped never does.
    #[must_use]
    pub fn transmitted(&self, delay: Span) -> Option<Time> {
        self.crossed.map(|crossed| Time::from_nanos(crossed.as_nanos().saturating_sub(delay.as_nanos())))
    }
}

/// Follows the packets of a run with one flow.
#[derive(Debug, Default)]
pub struct PacketTracer {
    /// Packets on their way.
    open: Vec<Journey>,
    done: Vec<Journey>,
    segments: BTreeSet<u32>,
    /// More packets were sent than are kept.
    pub is_cut: bool,
}

impl PacketTracer {
    /// All packets, in the order of sending.
    #[must_use]
    pub fn journeys(mut self) -> Vec<Journey> {
        self.done.append(&mut self.open);
        self.done.sort_by_key(|journey| journey.sent);
        self.done
    }

    fn begin(&mut self, now: Time, packet: Packet) -> usize {
        let (kind, segment) = match packet.body {
            Body::Data { segment, .. } if self.segments.insert(segment) => (Kind::Data, segment),
            Body::Data { segment, .. } => (Kind::Again, segment),
            Body::Ack(..) => (Kind::Ack, 0),
            _ => (Kind::Other, 0),
        };
        // Routes come in pairs, there and back.
        let is_back = packet.route % 2 == 1;
        let (sent, end) = (now, now);
        let journey = Journey {
            kind,
            segment,
            is_back,
            sent,
            crossed: None,
            end,
            is_lost: false,
            packet,
            inside: None,
        };
        self.open.push(journey);
        self.open.len() - 1
    }
}

/// The packet without the fields that change on its way.
fn identity(packet: &Packet) -> Packet {
    let mut same = packet.without_notes();
    (same.hop, same.ecn) = (0, Ecn::NotCapable);
    same
}

impl Observer for PacketTracer {
    fn watches(&self) -> bool {
        true
    }

    fn element(&mut self, now: Time, element: usize, event: ElementEvent, packet: &Packet) {
        if self.done.len() + self.open.len() >= MAX_PACKETS {
            self.is_cut = true;
            return;
        }
        let packet = identity(packet);
        // One that left an element earlier has arrived: the next element follows at once.
        let (open, arrived) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|journey| journey.inside.is_some() || journey.end == now);
        self.open = open;
        self.done.extend::<Vec<Journey>>(arrived);
        let is_leaving = matches!(event, ElementEvent::Delivered | ElementEvent::Dropped(_));
        let inside = is_leaving.then_some(element);
        let found = self.open.iter().position(|journey| journey.inside == inside && journey.packet == packet);
        let place = match found {
            Some(place) => place,
            // A copy of the network's own.
            None if is_leaving => return,
            None => self.begin(now, packet),
        };
        let journey = &mut self.open[place];
        journey.end = now;
        match event {
            ElementEvent::Accepted => journey.inside = Some(element),
            ElementEvent::Delivered | ElementEvent::Passed => {
                journey.inside = None;
                journey.crossed.get_or_insert(now);
            }
            ElementEvent::Refused(_) | ElementEvent::Dropped(_) => {
                journey.inside = None;
                journey.is_lost = true;
                let journey = self.open.remove(place);
                self.done.push(journey);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use headstart_sim::Seed;
    use headstart_units::Bytes;

    use super::*;

    fn journeys(line: &str) -> Vec<Journey> {
        let setup = headstart_study::settings::Settings::parse(headstart_carriers::ALL, line.split(' '))
            .expect("fine");
        let entry = headstart_study::schemes::find("iw10").expect("it is in the catalogue");
        let run = setup.single_flow(entry, Bytes::new(100_000), Seed(1)).checked();
        run.observe(PacketTracer::default()).expect("it runs").observer.journeys()
    }

    #[test]
    fn every_packet_takes_its_serialisation_and_half_the_round_trip() {
        let journeys = journeys("--rate 12mbit --rtt 60ms");
        let of = |kind| journeys.iter().filter(move |journey| journey.kind == kind);
        assert_eq!(of(Kind::Data).count(), 70, "100 kB in segments of 1448 B");
        assert_eq!((of(Kind::Again).count(), of(Kind::Ack).count()), (0, 70));
        let first = of(Kind::Data).next().expect("there are");
        let takes = first.end.since(first.sent);
        // 1500 B at 12 Mbit/s and 30 ms.
        assert_eq!(takes, Span::from_millis(31));
        let waits = first.transmitted(Span::from_millis(30)).expect("sent").since(first.sent);
        assert_eq!(waits, Span::from_millis(1));
        assert!(of(Kind::Ack).all(|journey| journey.is_back && !journey.is_lost));
    }

    #[test]
    fn packets_that_the_queue_or_the_link_drops_are_lost_and_sent_again() {
        let dropped = journeys("--rate 12mbit --rtt 60ms --buffer 5p");
        let lost = dropped.iter().filter(|journey| journey.is_lost).count();
        assert!(lost > 0 && dropped.iter().any(|journey| journey.kind == Kind::Again), "{lost}");
        assert!(dropped.iter().all(|journey| !journey.is_lost || journey.crossed.is_none()));
        let at_random = journeys("--rate 12mbit --rtt 60ms --loss 10%");
        assert!(at_random.iter().any(|journey| journey.is_lost && journey.crossed.is_some()));
    }
}
