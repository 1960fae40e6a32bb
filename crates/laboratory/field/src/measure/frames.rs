//! The IP packet within a frame: link layers, tags and tunnels.

use anyhow::{Result, bail};
use pcap_parser::Linktype;

/// Content of a frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Inner<'a> {
    /// It begins with an IP header.
    Ip(&'a [u8]),
    /// Name of another protocol.
    Other(String),
}

/// Point-to-point protocol, by itself and within PPPoE; raw IP of BSD.
const PPP: Linktype = Linktype(9);
const PPPOE: Linktype = Linktype(51);
const RAW_OF_BSD: [Linktype; 2] = [Linktype(12), Linktype(14)];

/// Bytes of the header of Linux's "any" device, second version.
const COOKED: usize = 20;

/// The packet within a frame of this link layer.
///
/// # Errors
/// If the link layer is unknown.
pub fn packet(link: Linktype, frame: &[u8]) -> Result<Inner<'_>> {
    let found = match link {
        Linktype::ETHERNET => ether(frame.get(12..)),
        Linktype::LINUX_SLL => ether(frame.get(14..)),
        Linktype::LINUX_SLL2 => by_type(word(frame), frame.get(COOKED..)),
        Linktype::NULL | Linktype::LOOP => frame.get(4..).map(Inner::Ip),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 => Some(Inner::Ip(frame)),
        PPP => ppp(frame.strip_prefix(&[0xff, 3]).unwrap_or(frame)),
        PPPOE => frame.get(6..).and_then(ppp),
        raw if RAW_OF_BSD.contains(&raw) => Some(Inner::Ip(frame)),
        Linktype(other) => {
            bail!("found link layer {other}, expected Ethernet (1), raw IP (101) or Linux's (113, 276)")
        }
    };
    Ok(found.unwrap_or_else(|| Inner::Other("frames that end within their headers".into())))
}

fn word(bytes: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.first()?, *bytes.get(1)?]))
}

/// A frame's type and what follows it.
fn ether(rest: Option<&[u8]>) -> Option<Inner<'_>> {
    by_type(rest.and_then(word), rest?.get(2..))
}

fn by_type(kind: Option<u16>, rest: Option<&[u8]>) -> Option<Inner<'_>> {
    let rest = rest?;
    let name = match kind? {
        0x0800 | 0x86dd => return Some(Inner::Ip(rest)),
        // VLANs, also within VLANs.
        0x8100 | 0x88a8 | 0x9100 | 0x9200 => return ether(rest.get(2..)),
        0x8864 => return rest.get(6..).and_then(ppp),
        0x8847 | 0x8848 => return labelled(rest),
        0x0806 => "ARP".into(),
        0x8863 => "PPPoE's discovery".into(),
        0x88cc => "LLDP".into(),
        0x88e5 => "MACsec".into(),
        ..0x0600 => "IEEE 802.3 with LLC".into(),
        other => format!("EtherType {other:#06x}"),
    };
    Some(Inner::Other(name))
}

/// A frame of PPP: the number of the protocol, of which one byte may be left out.
fn ppp(frame: &[u8]) -> Option<Inner<'_>> {
    let (number, length) = match frame.first()? {
        odd if odd % 2 == 1 => (u16::from(*odd), 1),
        _ => (word(frame)?, 2),
    };
    Some(match number {
        0x21 | 0x57 => Inner::Ip(frame.get(length..)?),
        other => Inner::Other(format!("PPP's protocol {other:#06x}")),
    })
}

/// Content behind the labels of MPLS: IP has its version in the first bits.
fn labelled(mut frame: &[u8]) -> Option<Inner<'_>> {
    loop {
        let is_last = frame.get(2)? & 1 == 1;
        frame = frame.get(4..)?;
        if is_last {
            break;
        }
    }
    let is_ip = matches!(frame.first()? >> 4, 4 | 6);
    Some(if is_ip { Inner::Ip(frame) } else { Inner::Other("MPLS without IP".into()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_tunnels_of_the_link_are_passed_over() {
        let addresses = [2; 12];
        let ethernet = |rest: &[u8]| [&addresses[..], rest].concat();
        let cases = [
            (1, ethernet(&[8, 0, 0x45])),
            (1, ethernet(&[0x81, 0, 0, 9, 8, 0, 0x45])),
            (1, ethernet(&[0x88, 0xa8, 0, 9, 0x81, 0, 0, 9, 8, 0, 0x45])),
            (1, ethernet(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 3, 0, 0x21, 0x45])),
            (1, ethernet(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 2, 0x21, 0x45])),
            (1, ethernet(&[0x81, 0, 0, 7, 0x88, 0x64, 0x11, 0, 0, 1, 0, 3, 0, 0x57, 0x45])),
            (1, ethernet(&[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64, 0x45])),
            (113, [&[0; 14][..], &[8, 0, 0x45]].concat()),
            (113, [&[0; 14][..], &[0x81, 0, 0, 9, 8, 0, 0x45]].concat()),
            (276, [&[8, 0][..], &[0; 18], &[0x45]].concat()),
            (276, [&[0x81, 0][..], &[0; 18], &[0, 9, 8, 0, 0x45]].concat()),
            (9, vec![0xff, 3, 0, 0x21, 0x45]),
            (9, vec![0x21, 0x45]),
            (51, vec![0x11, 0, 0, 1, 0, 3, 0, 0x21, 0x45]),
            (0, vec![2, 0, 0, 0, 0x45]),
            (101, vec![0x45]),
        ];
        for (link, frame) in cases {
            let found = packet(Linktype(link), &frame).expect("the link layer is known");
            assert_eq!(found, Inner::Ip(&[0x45]), "{link}: {frame:x?}");
            for length in 0..frame.len() {
                let _ = packet(Linktype(link), &frame[..length]);
            }
        }
        assert_eq!(packet(Linktype(1), &ethernet(&[8, 6])).unwrap(), Inner::Other("ARP".into()));
        assert!(packet(Linktype(999), &[]).is_err());
    }
}
