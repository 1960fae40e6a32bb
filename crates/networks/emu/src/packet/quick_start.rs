//! Quick-Start requests in the IP header of a real packet, for the routers of a path.
//!
//! Source: RFC 4782 §3.1 (the IPv4 option), §3.2 (the IPv6 hop-by-hop option) and §3.3 (processing
//! by routers); the codec and the routers' algorithms are the simulator's.
//!
//! # Deviations
//!
//! - A router that deletes a request (RFC 4782 §3.3) writes no-operation bytes (of IPv6: padding,
//!   RFC 8200 §4.2) over it, so that the header keeps its length.

use core::ops::Range;

use headstart_startup::quick_start::{IpOption, Request};

use super::{update_checksum, version};

/// RFC 791 §3.1: end of option list, no operation.
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
/// RFC 4782 §3.1.
const KIND: u8 = 25;
const LENGTH: usize = 8;

/// RFC 4782 §3.2; RFC 8200 §4.2: padding of one byte, and of more.
const KIND_6: u8 = 0x26;
const PAD_ONE: u8 = 0;
const PAD: u8 = 1;
/// Replacement of a deleted IPv6 request.
const PADDING: [u8; LENGTH] = [PAD, LENGTH as u8 - 2, 0, 0, 0, 0, 0, 0];
/// RFC 8200 §4.3: hop-by-hop options precede all other headers.
pub(super) const HOP_BY_HOP: u8 = 0;

/// Position of the request in a packet's header, if it is complete.
fn place(packet: &[u8]) -> Option<Range<usize>> {
    match version(packet)? {
        4 => place_ipv4(packet),
        _ => place_ipv6(packet),
    }
}

fn place_ipv6(packet: &[u8]) -> Option<Range<usize>> {
    if packet[6] != HOP_BY_HOP {
        return None;
    }
    let end = 48 + usize::from(*packet.get(41)?) * 8;
    let mut at = 42;
    while at < end.min(packet.len()) {
        let length = match packet[at] {
            PAD_ONE => 1,
            kind => {
                let length = usize::from(*packet.get(at + 1)?) + 2;
                if at + length > end || at + length > packet.len() {
                    return None;
                }
                if kind == KIND_6 && length == LENGTH {
                    return Some(at..at + LENGTH);
                }
                length
            }
        };
        at += length;
    }
    None
}

fn place_ipv4(packet: &[u8]) -> Option<Range<usize>> {
    let header = usize::from(packet[0] & 15) * 4;
    let mut at = 20;
    while at < header.min(packet.len()) {
        let length = match packet[at] {
            END => return None,
            NO_OPERATION => 1,
            kind => {
                let length = usize::from(*packet.get(at + 1)?);
                if length < 2 || at + length > header || at + length > packet.len() {
                    return None;
                }
                if kind == KIND && length == LENGTH {
                    return Some(at..at + LENGTH);
                }
                length
            }
        };
        at += length;
    }
    None
}

pub(super) fn read(packet: &[u8]) -> Option<Request> {
    let option = &packet[place(packet)?];
    let is_six = version(packet) == Some(6);
    match if is_six { IpOption::parse_ipv6(option) } else { IpOption::parse_ipv4(option) } {
        Ok(IpOption::Request { rate, ttl, nonce }) => Some(Request { rate: rate.rate(), ttl, nonce }),
        // A report is for the receiver; a malformed option is left unchanged.
        Ok(IpOption::Report { .. }) | Err(_) => None,
    }
}

/// Updates or deletes the packet's request, if it has one.
pub(super) fn write(packet: &mut [u8], request: Option<Request>) {
    let Some(place) = place(packet) else { return };
    if version(packet) == Some(6) {
        packet[place].copy_from_slice(&request.map_or(PADDING, |request| request.option().emit_ipv6()));
        return;
    }
    let option = request.map_or([NO_OPERATION; LENGTH], |request| request.option().emit_ipv4());
    change_header(packet, |header| header[place].copy_from_slice(&option));
}

/// Forwards the packet: decrements its time to live, but not to zero, as no element would drop it.
pub(super) fn lower_time_to_live(packet: &mut [u8]) {
    match version(packet) {
        Some(4) => change_header(packet, |header| header[8] = header[8].saturating_sub(1).max(1)),
        Some(_) => packet[7] = packet[7].saturating_sub(1).max(1),
        None => {}
    }
}

/// Changes an IPv4 header and updates the checksum, which stays correct or incorrect.
fn change_header(packet: &mut [u8], change: impl FnOnce(&mut [u8])) {
    let length = (usize::from(packet[0] & 15) * 4).max(20).min(packet.len());
    let mut before = [0; 60];
    before[..length].copy_from_slice(&packet[..length]);
    change(packet);
    for at in (0..length.saturating_sub(1)).step_by(2).filter(|at| *at != 10) {
        let old = u16::from_be_bytes([before[at], before[at + 1]]);
        let new = u16::from_be_bytes([packet[at], packet[at + 1]]);
        if old != new {
            update_checksum(packet, old, new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_startup::quick_start::Nonce;
    use headstart_units::Rate;
    use proptest::prelude::*;

    /// An IPv4 header with a no-operation, a request of code 9 (20.48 Mbit/s), padding, checksum.
    fn packet() -> Vec<u8> {
        let mut packet = vec![0x48, 0, 0, 32, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend([NO_OPERATION, KIND, 8, 0x09, 200, 0, 0, 4, 0xd0, NO_OPERATION, NO_OPERATION, END]);
        let sum = checksum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    fn checksum(packet: &[u8]) -> u16 {
        let sum: u32 =
            packet.chunks_exact(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        !(((sum & 0xffff) + (sum >> 16)) as u16)
    }

    #[test]
    fn a_request_is_read_changed_and_deleted_and_the_checksum_stays_right() {
        let mut packet = packet();
        let mut request = read(&packet).expect("a request");
        assert_eq!((request.rate, request.ttl), (Rate::from_bits_per_sec(20_480_000), 200));
        assert_eq!(request.nonce, Nonce::new(0x4d0 >> 2));
        request.approve(Rate::from_bits_per_sec(1_280_000), 77);
        write(&mut packet, Some(request));
        assert_eq!(read(&packet), Some(request));
        assert_eq!((request.ttl, checksum(&packet)), (199, 0));
        lower_time_to_live(&mut packet);
        assert_eq!((packet[8], checksum(&packet)), (63, 0));
        write(&mut packet, None);
        assert_eq!((read(&packet), checksum(&packet)), (None, 0));
        assert_eq!(packet[20..], [[NO_OPERATION; 11].as_slice(), &[END]].concat());
    }

    /// An IPv6 packet to port 80 with padding and a request of code 9 among its hop-by-hop options.
    fn packet_ipv6() -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 24, HOP_BY_HOP, 64];
        packet.extend([0; 32]);
        packet.extend([17, 1, PAD, 2, 0, 0, KIND_6, 6, 0x09, 200, 0, 0, 4, 0xd0, PAD_ONE, PAD_ONE]);
        packet.extend([0, 9, 0, 80, 0, 8, 0, 0]);
        packet
    }

    #[test]
    fn an_ipv6_request_is_read_changed_and_deleted_in_its_place() {
        let mut packet = packet_ipv6();
        let (before, length) = (packet.clone(), packet.len());
        let mut request = read(&packet).expect("a request");
        assert_eq!((request.rate, request.ttl), (Rate::from_bits_per_sec(20_480_000), 200));
        request.approve(Rate::from_bits_per_sec(1_280_000), 77);
        write(&mut packet, Some(request));
        assert_eq!(read(&packet), Some(request));
        lower_time_to_live(&mut packet);
        assert_eq!((packet[7], packet.len()), (63, length));
        write(&mut packet, None);
        assert_eq!(read(&packet), None);
        assert_eq!(packet[46..54], PADDING);
        assert_eq!((&packet[..7], &packet[54..]), (&before[..7], &before[54..]), "nothing else has changed");
        assert_eq!(
            super::super::HeaderSummary::of_ip(&packet).to,
            80,
            "what follows the options is still found"
        );
    }

    #[test]
    fn packets_with_options_are_told_from_those_without() {
        use headstart_net::Packet as _;
        let has_option = |bytes: Vec<u8>| {
            let content = crate::packet::Content::Ip(bytes);
            let (arrived, header) = (headstart_units::Time::ZERO, Default::default());
            crate::packet::Packet { number: 0, arrived, client: 0, content, header }.has_ip_option()
        };
        let mut plain = packet_ipv6();
        plain[6] = 17;
        assert!(has_option(packet()) && has_option(packet_ipv6()));
        assert!(!has_option(plain) && !has_option(crate::packet::tests::syn()) && !has_option(vec![]));
    }

    #[test]
    fn ipv6_options_that_do_not_end_are_not_read() {
        for (at, value) in [(41, 0), (43, 40), (47, 30), (6, 17)] {
            let mut packet = packet_ipv6();
            packet[at] = value;
            assert_eq!(read(&packet), None, "byte {at} is {value}");
        }
        let packet = packet_ipv6();
        for length in 0..54 {
            assert_eq!(read(&packet[..length]), None, "cut after {length} bytes");
        }
    }

    proptest! {
        /// For any options: no panic, the same length, and a request written can be read.
        #[test]
        fn no_hop_by_hop_options_cause_a_panic(rest in proptest::collection::vec(any::<u8>(), 0..60), units in 0_u8..8) {
            let mut packet = packet_ipv6()[..40].to_vec();
            packet.extend([17, units]);
            packet.extend(rest);
            let length = packet.len();
            let request = read(&packet).map(|request| Request { ttl: 3, ..request });
            write(&mut packet, request);
            prop_assert_eq!(read(&packet), request);
            lower_time_to_live(&mut packet);
            prop_assert_eq!(packet.len(), length);
        }

        /// For any header: no panic, the same length, and a correct checksum stays correct.
        #[test]
        fn no_header_causes_a_panic(bytes in proptest::collection::vec(any::<u8>(), 20..70), words in 0_u8..16) {
            let mut packet = bytes;
            packet[0] = 0x40 | words;
            let header = (usize::from(words) * 4).max(20).min(packet.len()) / 2 * 2;
            packet[10..12].copy_from_slice(&[0, 0]);
            let sum = checksum(&packet[..header]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            let length = packet.len();
            let request = read(&packet);
            write(&mut packet, request.map(|request| Request { ttl: 3, ..request }));
            lower_time_to_live(&mut packet);
            prop_assert_eq!(packet.len(), length);
            prop_assert_eq!(checksum(&packet[..header]), 0);
        }
    }
}
