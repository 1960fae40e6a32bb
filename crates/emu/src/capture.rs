//! A capture of both sides in the pcapng format, for packet analysers.
//!
//! Source: the pcapng format (draft-ietf-opsawg-pcapng §4.1 section header, §4.2 interface
//! description, §4.3 enhanced packet). Two interfaces, `inside` and `outside`, nanosecond time
//! stamps. A packet is recorded on arrival and on departure; a dropped one on arrival only.
//!
//! # Deviations
//!
//! - Link type RAW (101), IPv4 or IPv6 without a header, would be the natural one. But libpcap
//!   1.10.3, and with it tcpdump, refuses a file with two interfaces of that type: "an interface
//!   has a type 101 different from the type of the first interface". So it is NULL (0): four bytes
//!   before the packet with its address family.

use std::io::{self, Write};

use headstart_net::Direction;
use headstart_units::Time;

use crate::background::Background;
use crate::packet::version;

/// Bytes in a block for the disk.
const BLOCK: usize = 1 << 17;
/// Most bytes of a usual packet's block.
const LONGEST: usize = 2000;
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const LINKTYPE_NULL: u32 = 0;
/// Address families in the section's byte order, as BSD numbers them (IPv6: one of three).
const FAMILY_IPV4: u32 = 2;
const FAMILY_IPV6: u32 = 30;
/// Options: end, interface name, time resolution, application of the section.
const END: u16 = 0;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const SHB_USERAPPL: u16 = 4;

/// An end of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The program's end.
    Inside,
    /// The network's end.
    Outside,
}

impl Side {
    /// The end where a packet of that direction arrives.
    #[must_use]
    pub const fn entrance(direction: Direction) -> Self {
        match direction {
            Direction::Up => Self::Inside,
            Direction::Down => Self::Outside,
        }
    }

    /// The end where it departs.
    #[must_use]
    pub const fn exit(direction: Direction) -> Self {
        match direction {
            Direction::Up => Self::Outside,
            Direction::Down => Self::Inside,
        }
    }
}

/// A capture in progress.
#[derive(Debug)]
pub struct Capture {
    began: u64,
    buffer: Vec<u8>,
    packets: u64,
    left_out: u64,
    background: Background<u8>,
}

impl Capture {
    /// Writes to `file`; `began` is the run's start in nanoseconds since 1970.
    ///
    /// # Errors
    /// If the header cannot be written, or no thread can be started.
    /// If the beginning cannot be written, or no thread can be started.
    pub fn new(mut file: impl Write + Send + 'static, began: u64) -> io::Result<Self> {
        file.write_all(&opening())?;
        let background =
            Background::start("headstart-pcap", BLOCK + LONGEST, move |block: Option<&[u8]>| match block {
                Some(block) => file.write_all(block),
                None => file.flush(),
            })?;
        Ok(Self { began, buffer: background.empty(), packets: 0, left_out: 0, background })
    }

    /// Adds a packet.
    pub fn add(&mut self, at: Time, side: Side, packet: &[u8]) {
        let stamp = self.began.saturating_add(at.as_nanos());
        self.packets += 1;
        write_packet(&mut self.buffer, side as u32, stamp, packet);
        if self.buffer.len() >= BLOCK {
            if !self.background.submit(&mut self.buffer) {
                self.left_out += self.packets;
            }
            self.packets = 0;
        }
    }

    /// Packets dropped because the disk was too slow.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Writes the rest and waits for the disk.
    ///
    /// # Errors
    /// If a write failed.
    /// If something could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        let last = core::mem::take(&mut self.buffer);
        self.background.finish(last)
    }
}

/// Section header and the two interfaces.
fn opening() -> Vec<u8> {
    let mut bytes = vec![];
    let mut body = BYTE_ORDER.to_le_bytes().to_vec();
    body.extend([1, 0, 0, 0]);
    // The section's length is not known in advance.
    body.extend(u64::MAX.to_le_bytes());
    option(&mut body, SHB_USERAPPL, b"headstart");
    option(&mut body, END, &[]);
    block(&mut bytes, SECTION_HEADER, &body);
    for name in ["inside", "outside"] {
        let mut body = LINKTYPE_NULL.to_le_bytes().to_vec();
        // No limit on the length of packets.
        body.extend([0; 4]);
        option(&mut body, IF_NAME, name.as_bytes());
        option(&mut body, IF_TSRESOL, &[9]);
        option(&mut body, END, &[]);
        block(&mut bytes, INTERFACE, &body);
    }
    bytes
}

fn write_packet(bytes: &mut Vec<u8>, interface: u32, stamp: u64, packet: &[u8]) {
    let family = if version(packet) == Some(6) { FAMILY_IPV6 } else { FAMILY_IPV4 };
    // A packet is at most 64 kB long.
    let length = packet.len() as u32 + 4;
    let total = 36 + padded(packet.len()) as u32;
    for word in [PACKET, total, interface, (stamp >> 32) as u32, stamp as u32, length, length, family] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend_from_slice(packet);
    bytes.resize(bytes.len() + padded(packet.len()) - packet.len(), 0);
    bytes.extend(total.to_le_bytes());
}

const fn padded(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend_from_slice(value);
    body.resize(padded(body.len()), 0);
}

fn block(bytes: &mut Vec<u8>, kind: u32, body: &[u8]) {
    let total = (12 + body.len()) as u32;
    bytes.extend(kind.to_le_bytes());
    bytes.extend(total.to_le_bytes());
    bytes.extend_from_slice(body);
    bytes.extend(total.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Shared;

    /// Kind and body of each block, both lengths checked.
    fn blocks(mut bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"));
        let mut blocks = vec![];
        while !bytes.is_empty() {
            let total = word(&bytes[4..]) as usize;
            assert_eq!(total % 4, 0);
            assert_eq!(word(&bytes[total - 4..]) as usize, total, "the length stands at both ends");
            blocks.push((word(bytes), bytes[8..total - 4].to_vec()));
            bytes = &bytes[total..];
        }
        blocks
    }

    #[test]
    fn a_capture_is_a_sequence_of_well_formed_blocks() {
        let file = Shared::default();
        let began = 1_700_000_000_000_000_000_u64;
        let mut capture = Capture::new(file.clone(), began).expect("a thread");
        for (first, length) in [(0x45, 20), (0x60, 41), (0x45, 1500)] {
            capture.add(Time::from_nanos(5), Side::exit(Direction::Up), &vec![first; length]);
        }
        assert_eq!(capture.left_out(), 0);
        capture.finish().expect("memory is never full");
        let blocks = blocks(&file.0.lock().expect("nobody panics"));
        let kinds: Vec<u32> = blocks.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [SECTION_HEADER, INTERFACE, INTERFACE, PACKET, PACKET, PACKET]);
        let (_, packet) = &blocks[4];
        let words: Vec<u32> =
            packet[..24].chunks(4).map(|four| u32::from_le_bytes(four.try_into().expect("four"))).collect();
        let stamp = began + 5;
        assert_eq!(words, [1, (stamp >> 32) as u32, stamp as u32, 45, 45, 30]);
        assert_eq!(packet[24..], [&[0x60; 41][..], &[0; 3]].concat());
    }
}
