//! Datagrams as the simulator's packets: paths carry sizes, routes, codepoints; contents are here.

use std::collections::VecDeque;

use bytes::Bytes;
use headstart_sim::packet::{Body, Ecn, FlowId, Label, Packet};
use noq_proto::EcnCodepoint;

use crate::datagram::{Datagram, HEADERS};

/// Contents of a flow's datagrams in flight in one direction.
#[derive(Debug, Default)]
pub(super) struct Wire {
    in_flight: VecDeque<Option<Bytes>>,
    /// Number of the first datagram.
    base: u32,
}

/// Most datagrams in flight; contents of lost datagrams are kept until so many more have left.
const MAX_IN_FLIGHT: usize = 1 << 16;

impl Wire {
    fn insert(&mut self, contents: Bytes) -> u32 {
        if self.in_flight.len() == MAX_IN_FLIGHT {
            self.in_flight.pop_front();
            self.base = self.base.wrapping_add(1);
        }
        let number = self.base.wrapping_add(self.in_flight.len() as u32);
        self.in_flight.push_back(Some(contents));
        number
    }

    /// Contents of the datagram of that number. A second one of the same number is a duplicate made
    /// by the path: the receiver discards it (RFC 9000 §12.3), so it has none.
    fn take(&mut self, number: u32) -> Option<Bytes> {
        let contents = self.in_flight.get_mut(number.wrapping_sub(self.base) as usize)?.take();
        while let Some(None) = self.in_flight.front() {
            self.in_flight.pop_front();
            self.base = self.base.wrapping_add(1);
        }
        contents
    }
}

/// Both directions.
#[derive(Debug, Default)]
pub(super) struct Wires {
    forward: Wire,
    reverse: Wire,
}

impl Wires {
    /// The packet that represents a datagram on `route`; even routes lead from sender to receiver.
    pub fn send(&mut self, id: FlowId, route: u16, is_ecn_on: bool, datagram: Datagram) -> Packet {
        let is_forward = route.is_multiple_of(2);
        let is_data = is_forward && datagram.is_data();
        let size = (datagram.payload() + HEADERS).get().min(u64::from(u16::MAX)) as u16;
        let ecn = match datagram.ecn {
            Some(EcnCodepoint::Ce) if is_ecn_on => Ecn::Marked,
            Some(EcnCodepoint::Ect1) if is_ecn_on => Ecn::L4s,
            Some(_) if is_ecn_on => Ecn::Capable,
            _ => Ecn::NotCapable,
        };
        let wire = if is_forward { &mut self.forward } else { &mut self.reverse };
        let number = wire.insert(datagram.contents);
        let body = match is_data {
            true => {
                let label = Label::default();
                Body::Data { segment: number, transmission: number, is_pushed: false, priority: 0, label }
            }
            false => Body::Datagram { number },
        };
        Packet { slot: id.slot, generation: id.generation, size, route, hop: 0, ecn, body }
    }

    /// Contents and codepoint of a packet that arrived.
    pub fn receive(&mut self, packet: &Packet) -> Option<(Bytes, Option<EcnCodepoint>)> {
        let number = match packet.body {
            Body::Data { segment: number, .. } | Body::Datagram { number } => number,
            _ => return None,
        };
        let wire = if packet.route.is_multiple_of(2) { &mut self.forward } else { &mut self.reverse };
        let ecn = match packet.ecn {
            Ecn::NotCapable => None,
            Ecn::Capable => Some(EcnCodepoint::Ect0),
            Ecn::L4s => Some(EcnCodepoint::Ect1),
            Ecn::Marked => Some(EcnCodepoint::Ce),
        };
        Some((wire.take(number)?, ecn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_taken_once_in_any_order_within_their_bound() {
        let mut wire = Wire::default();
        for number in 0..10_u8 {
            assert_eq!(wire.insert(Bytes::copy_from_slice(&[number])), u32::from(number));
        }
        for number in [3, 0, 9, 1] {
            assert_eq!(wire.take(number).as_deref(), Some(&[number as u8][..]));
            assert_eq!(wire.take(number), None, "a duplicate");
        }
        assert_eq!(wire.base, 2, "what came out is forgotten");
        for number in 10..MAX_IN_FLIGHT as u32 + 100 {
            assert_eq!(wire.insert(Bytes::new()), number);
        }
        assert_eq!(wire.in_flight.len(), MAX_IN_FLIGHT);
        assert_eq!(wire.take(2), None, "taken for lost");
        assert_eq!(wire.take(5_000_000), None, "never sent");
    }
}
