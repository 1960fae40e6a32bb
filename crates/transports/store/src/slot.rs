//! One record as 64 bytes with a checksum.
//!
//! ```text
//! offset 0        16        24       32       40      48        56     57    58        60
//!        +---------+---------+--------+--------+-------+---------+------+-----+---------+--------+
//!        | address | savedat | BtlBw  | RTprop | cwnd  | ssthresh| ended| use | credit  | CRC-32 |
//!        +---------+---------+--------+--------+-------+---------+------+-----+---------+--------+
//! ```
//!
//! Numbers are little-endian; nanoseconds since 1970, bytes per second, nanoseconds, bytes, bytes.
//! The lowest bit of *ended* is the outcome, 1 with losses. The others are the handshake's excess
//! in units of 0.25 ms, rounded down, 127 at most; zero in files written before it existed.
//! The credit is in units of 1024 bytes, rounded up, 65 535 at most; zero is none, as in files that
//! were written before there were credits. An IPv4 address is written as its IPv6-mapped form. The
//! checksum covers the 60 bytes before it. A slot of zeroes is free (the checksum of sixty zeroes
//! is not zero, so no record looks like that).
//!
//! 64 divides every sector and page there is: a slot is never written in two parts by the machine,
//! and if it were, the checksum would say so.

use core::net::{IpAddr, Ipv6Addr};

use headstart_startup::history::{FlightOutcome, Record};
use headstart_units::{Bytes, Rate, Span, Time};

/// Bytes of a slot.
pub const SIZE: usize = 64;
const CHECKED: usize = 60;
const IN_USE: u8 = 1;
/// Unit of the credit in bytes: 64 MiB at most, and no credit in use is near to one unit.
const CREDIT_UNIT: u64 = 1024;
const EXCESS_UNIT: Span = Span::from_micros(250);
const LARGEST_EXCESS: u64 = 127;

/// Content of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The slot is free.
    Free,
    /// A record of this peer.
    Used(IpAddr, Record),
    /// The slot was written in part, or has changed since.
    Damaged,
}

/// A free slot.
pub const FREE: [u8; SIZE] = [0; SIZE];

/// The bytes of a record.
#[must_use]
pub fn emit(peer: IpAddr, record: &Record) -> [u8; SIZE] {
    let mut bytes = FREE;
    let address = match peer {
        IpAddr::V4(four) => four.to_ipv6_mapped(),
        IpAddr::V6(six) => six,
    };
    bytes[..16].copy_from_slice(&address.octets());
    let numbers = [
        record.saved_at.as_nanos(),
        record.btl_bw.as_bytes_per_sec(),
        record.rt_prop.as_nanos(),
        record.window.get(),
        record.ssthresh.get(),
    ];
    for (place, number) in bytes[16..56].chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    let is_lossy = record.outcome == FlightOutcome::Lossy;
    let excess = record.handshake_excess.as_nanos() / EXCESS_UNIT.as_nanos();
    bytes[56] = (excess.min(LARGEST_EXCESS) as u8) << 1 | u8::from(is_lossy);
    bytes[57] = IN_USE;
    let credit = u16::try_from(record.credit.get().div_ceil(CREDIT_UNIT)).unwrap_or(u16::MAX);
    bytes[58..CHECKED].copy_from_slice(&credit.to_le_bytes());
    let sum = crc32fast::hash(&bytes[..CHECKED]);
    bytes[CHECKED..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Parses the bytes of a slot.
#[must_use]
pub fn parse(bytes: &[u8; SIZE]) -> Slot {
    if *bytes == FREE {
        return Slot::Free;
    }
    let number = |at: usize| {
        let mut eight = [0; 8];
        eight.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(eight)
    };
    let sum = crc32fast::hash(&bytes[..CHECKED]).to_le_bytes();
    let outcome = if bytes[56] & 1 == 0 { FlightOutcome::Clean } else { FlightOutcome::Lossy };
    if bytes[CHECKED..] != sum || bytes[57] != IN_USE {
        return Slot::Damaged;
    }
    let mut address = [0; 16];
    address.copy_from_slice(&bytes[..16]);
    let record = Record {
        saved_at: Time::from_nanos(number(16)),
        btl_bw: Rate::from_bytes_per_sec(number(24)),
        rt_prop: Span::from_nanos(number(32)),
        window: Bytes::new(number(40)),
        ssthresh: Bytes::new(number(48)),
        outcome,
        credit: Bytes::new(u64::from(u16::from_le_bytes([bytes[58], bytes[59]])) * CREDIT_UNIT),
        handshake_excess: EXCESS_UNIT * u64::from(bytes[56] >> 1),
    };
    Slot::Used(Ipv6Addr::from(address).to_canonical(), record)
}
