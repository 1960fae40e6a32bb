//! A real packet for the elements, with its header fields, parsed without trust.

mod quick_start;

use headstart_startup::quick_start::Request;
use headstart_units::{Bytes, Time};

/// A packet on the path: its bytes, and the state noted on arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Number, from zero in each direction.
    pub number: u64,
    /// Time of arrival.
    pub arrived: Time,
    /// The client it belongs to, where the relay has several.
    pub client: u64,
    /// The packet's bytes.
    pub content: Content,
    /// Fields of its headers.
    pub header: HeaderSummary,
}

/// The bytes of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A whole IP packet.
    Ip(Vec<u8>),
    /// The payload of a UDP datagram, whose headers stay in the kernel.
    Datagram {
        /// The payload.
        payload: Vec<u8>,
        /// Bytes of its headers on a link.
        headers: u8,
        /// The two ECN bits of its IP header (RFC 3168 §5).
        ecn: u8,
    },
}

/// Header fields for the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeaderSummary {
    /// IP protocol number; zero if there is none.
    pub protocol: u8,
    /// TCP's flags; zero for others.
    pub tcp_flags: u8,
    /// Source port.
    pub from: u16,
    /// Destination port.
    pub to: u16,
    /// TCP's sequence number.
    pub sequence: u32,
    /// Bytes after the transport header.
    pub payload: u32,
}

/// IP protocol number of TCP.
pub const TCP: u8 = 6;
/// IP protocol number of UDP.
pub const UDP: u8 = 17;
/// The ECN code points (RFC 3168 §5): congestion experienced.
const CE: u8 = 3;

impl Packet {
    /// The bytes to send.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match &self.content {
            Content::Ip(bytes) => bytes,
            Content::Datagram { payload, .. } => payload,
        }
    }

    /// The two ECN bits.
    #[must_use]
    pub fn ecn(&self) -> u8 {
        match &self.content {
            Content::Ip(bytes) => traffic_class(bytes) & CE,
            Content::Datagram { ecn, .. } => *ecn,
        }
    }
}

impl headstart_net::Packet for Packet {
    fn size(&self) -> Bytes {
        let headers = match &self.content {
            Content::Ip(_) => 0,
            Content::Datagram { headers, .. } => u64::from(*headers),
        };
        Bytes::new(self.bytes().len() as u64 + headers)
    }

    fn is_ecn_capable(&self) -> bool {
        self.ecn() != 0
    }

    fn is_l4s(&self) -> bool {
        self.ecn() & 1 == 1
    }

    fn mark_congestion_experienced(&mut self) {
        match &mut self.content {
            Content::Ip(bytes) => mark(bytes),
            Content::Datagram { ecn, .. } => *ecn = CE,
        }
    }

    fn priority(&self) -> u8 {
        match &self.content {
            Content::Ip(bytes) => u8::from(traffic_class(bytes) >> 2 == LOWER_EFFORT),
            Content::Datagram { .. } => 0,
        }
    }

    fn request(&self) -> Option<Request> {
        match &self.content {
            Content::Ip(bytes) => quick_start::read(bytes),
            Content::Datagram { .. } => None,
        }
    }

    fn set_request(&mut self, request: Option<Request>) {
        if let Content::Ip(bytes) = &mut self.content {
            quick_start::write(bytes, request);
        }
    }

    fn has_ip_option(&self) -> bool {
        match &self.content {
            Content::Ip(bytes) => match version(bytes) {
                Some(4) => bytes[0] & 15 > 5,
                Some(_) => bytes[6] == quick_start::HOP_BY_HOP,
                None => false,
            },
            Content::Datagram { .. } => false,
        }
    }

    fn forward(&mut self) {
        if let Content::Ip(bytes) = &mut self.content {
            quick_start::lower_time_to_live(bytes);
        }
    }

    fn flow_key(&self) -> u64 {
        let HeaderSummary { protocol, from, to, .. } = self.header;
        (u64::from(self.host_key()) << 32 ^ self.client << 40) ^ u64::from(protocol) << 33
            | u64::from(from) << 16
            | u64::from(to)
    }

    fn host_key(&self) -> u32 {
        match &self.content {
            Content::Ip(bytes) if version(bytes) == Some(4) => word(bytes, 12).unwrap_or(0),
            Content::Ip(bytes) => (8..24)
                .step_by(4)
                .filter_map(|at| word(bytes, at))
                .fold(0, |all, one| all.rotate_left(5) ^ one),
            Content::Datagram { .. } => self.client as u32,
        }
    }
}

/// 4 or 6, if the packet is long enough to have that version's header.
#[must_use]
pub fn version(packet: &[u8]) -> Option<u8> {
    match (packet.first()? >> 4, packet.len()) {
        (4, 20..) => Some(4),
        (6, 40..) => Some(6),
        _ => None,
    }
}

/// True if it is link-local, so that no router forwards it (RFC 5771 §4, RFC 4291 §2.7).
#[must_use]
pub fn is_link_local(packet: &[u8]) -> bool {
    match version(packet) {
        Some(4) => packet[16..19] == [224, 0, 0],
        Some(_) => packet[24] == 0xff && packet[25] & 15 <= 2 || packet[24] == 0xfe && packet[25] >> 6 == 2,
        None => false,
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

/// Code point of the Lower Effort behaviour (RFC 8622 §4).
const LOWER_EFFORT: u8 = 1;

/// The octet that holds DSCP and ECN.
fn traffic_class(packet: &[u8]) -> u8 {
    match version(packet) {
        Some(4) => packet[1],
        Some(_) => packet[0] << 4 | packet[1] >> 4,
        None => 0,
    }
}

/// Sets both ECN bits, and updates IPv4's checksum (RFC 1624 Eq. 3).
fn mark(packet: &mut [u8]) {
    match version(packet) {
        Some(4) => {
            let old = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] |= CE;
            let new = u16::from_be_bytes([packet[0], packet[1]]);
            update_checksum(packet, old, new);
        }
        Some(_) => packet[1] |= CE << 4,
        None => {}
    }
}

/// Updates the checksum for one 16-bit word of an IPv4 header: HC' = ~(~HC + ~m + m') (RFC 1624 Eq.
/// 3).
pub(crate) fn update_checksum(packet: &mut [u8], old: u16, new: u16) {
    let Some(checksum) = half(packet, 10) else { return };
    let mut sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

impl HeaderSummary {
    /// Parses the headers. Fragments, IPv6 extension headers other than hop-by-hop options and
    /// unknown protocols have no ports.
    #[must_use]
    pub fn of_ip(packet: &[u8]) -> Self {
        match version(packet) {
            Some(4) => {
                let header = usize::from(packet[0] & 15) * 4;
                let is_first = half(packet, 6).unwrap_or(0) & 0x1fff == 0;
                let whole = half(packet, 2).map_or(0, usize::from).min(packet.len());
                let rest = packet[..whole].get(header.max(20)..).filter(|_| is_first);
                Self::of_transport(packet[9], rest.unwrap_or(&[]))
            }
            Some(_) => {
                let whole = half(packet, 4).map_or(0, |length| 40 + usize::from(length)).min(packet.len());
                let rest = packet[..whole].get(40..).unwrap_or(&[]);
                // Hop-by-hop options are skipped; no other header is.
                match (packet[6], rest) {
                    (0, [next, units, ..]) => {
                        Self::of_transport(*next, rest.get(8 + usize::from(*units) * 8..).unwrap_or(&[]))
                    }
                    (next, _) => Self::of_transport(next, rest),
                }
            }
            None => Self::default(),
        }
    }

    fn of_transport(protocol: u8, rest: &[u8]) -> Self {
        let none = Self { protocol, ..Self::default() };
        let ports = || Some((half(rest, 0)?, half(rest, 2)?));
        match (protocol, ports()) {
            (TCP, Some((from, to))) if rest.len() >= 20 => {
                let header = usize::from(rest[12] >> 4) * 4;
                let payload = rest.len().saturating_sub(header) as u32;
                Self { from, to, tcp_flags: rest[13], sequence: word(rest, 4).unwrap_or(0), payload, ..none }
            }
            (UDP, Some((from, to))) if rest.len() >= 8 => {
                Self { from, to, payload: rest.len() as u32 - 8, ..none }
            }
            _ => Self { payload: rest.len() as u32, ..none },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_net::Packet as _;
    use proptest::prelude::*;

    /// An IPv4 SYN of 40 bytes from port 1000 to port 80, ECT(0), with a correct checksum.
    pub(crate) fn syn() -> Vec<u8> {
        let mut packet = vec![0x45, 2, 0, 40, 0, 1, 0x40, 0, 64, TCP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend([3, 232, 0, 80, 0, 0, 0, 7, 0, 0, 0, 0, 0x50, 2, 255, 255, 0, 0, 0, 0]);
        let sum = checksum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    /// The Internet checksum of an IPv4 header, its checksum field included.
    fn checksum(packet: &[u8]) -> u16 {
        let sum: u32 =
            packet[..20].chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        !(((sum & 0xffff) + (sum >> 16)) as u16)
    }

    fn packet(bytes: Vec<u8>) -> Packet {
        let header = HeaderSummary::of_ip(&bytes);
        Packet { number: 0, arrived: Time::ZERO, client: 0, content: Content::Ip(bytes), header }
    }

    #[test]
    fn a_syn_is_read() {
        let HeaderSummary { protocol, tcp_flags, from, to, sequence, payload } = HeaderSummary::of_ip(&syn());
        assert_eq!((protocol, tcp_flags, from, to, sequence, payload), (TCP, 2, 1000, 80, 7, 0));
    }

    #[test]
    fn marking_a_packet_updates_its_checksum() {
        let mut packet = packet(syn());
        assert!(packet.is_ecn_capable());
        assert_eq!(checksum(packet.bytes()), 0, "right before");
        packet.mark_congestion_experienced();
        assert_eq!((packet.ecn(), checksum(packet.bytes())), (CE, 0), "marked, and still right");
    }

    #[test]
    fn an_ipv6_packet_is_marked_in_its_traffic_class() {
        let mut bytes = vec![0; 48];
        bytes[..8].copy_from_slice(&[0x60, 0x10, 0, 0, 0, 8, UDP, 64]);
        bytes[40..44].copy_from_slice(&[0, 9, 1, 187]);
        let mut packet = packet(bytes);
        assert_eq!((packet.header.from, packet.header.to, packet.ecn()), (9, 443, 1));
        packet.mark_congestion_experienced();
        assert_eq!((packet.ecn(), packet.bytes()[1]), (CE, 0x30));
    }

    #[test]
    fn lower_effort_is_a_lower_priority_in_both_versions() {
        use headstart_net::Packet as _;
        let of = |first: [u8; 2]| {
            let mut bytes = vec![0; 48];
            bytes[..2].copy_from_slice(&first);
            packet(bytes).priority()
        };
        assert_eq!([of([0x45, 0b0000_0110]), of([0x45, 0b0000_1010])], [1, 0], "DSCP 1 and 2");
        assert_eq!([of([0x60, 0b0110_0000]), of([0x60, 0b1010_0000])], [1, 0]);
    }

    #[test]
    fn a_datagram_counts_its_headers_and_carries_its_mark_beside_it() {
        let content = Content::Datagram { payload: vec![0; 1200], headers: 28, ecn: 1 };
        let mut packet = Packet { content, ..packet(vec![]) };
        assert_eq!(packet.size(), Bytes::new(1228));
        packet.mark_congestion_experienced();
        assert_eq!(packet.ecn(), CE);
    }

    proptest! {
        /// For any bytes: no panic, and a mark keeps the length and, for IPv4, a correct checksum.
        #[test]
        fn no_packet_bytes_cause_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120), first in any::<u8>()) {
            let mut bytes = bytes;
            if let Some(byte) = bytes.first_mut() {
                *byte = [first, 0x45, 0x60, 0x4f][usize::from(first) % 4];
            }
            let before = bytes.clone();
            let mut packet = packet(bytes);
            let _ = (packet.flow_key(), packet.host_key(), packet.is_ecn_capable());
            packet.mark_congestion_experienced();
            prop_assert_eq!(packet.bytes().len(), before.len());
            if version(&before) == Some(4) && checksum(&before) == 0 {
                prop_assert_eq!(checksum(packet.bytes()), 0);
            }
        }
    }
}
