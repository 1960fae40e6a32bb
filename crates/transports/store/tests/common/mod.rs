//! Records that can be told from torn ones: everything in a record follows from one number.

#![allow(dead_code)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use headstart_startup::history::{FlightOutcome, Record, RecordUpdate};
use headstart_store::{History, Store};
use headstart_units::{Bytes, Rate, Span, Time};

/// Some moment of the year 2026, so that no record is from the future.
pub const EPOCH: u64 = 1_780_000_000_000_000_000;

pub fn record(number: u64) -> Record {
    let mix = |salt: u64| (number ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
    Record {
        saved_at: Time::from_nanos(EPOCH + number),
        btl_bw: Rate::from_bytes_per_sec(mix(1)),
        rt_prop: Span::from_nanos(mix(2)),
        window: Bytes::new(mix(3)),
        ssthresh: if number.is_multiple_of(3) { Bytes::MAX } else { Bytes::new(mix(4)) },
        outcome: if number.is_multiple_of(2) { FlightOutcome::Clean } else { FlightOutcome::Lossy },
        credit: Bytes::ZERO,
        handshake_excess: Span::from_micros(250 * (number % 128)),
    }
}

/// The number of a record; nothing if it is torn.
pub fn number(found: &Record) -> Option<u64> {
    let number = found.saved_at.as_nanos().checked_sub(EPOCH)?;
    (record(number) == *found).then_some(number)
}

/// Half of the peers have IPv4 addresses, half IPv6.
pub fn peer(number: u32) -> IpAddr {
    let four = Ipv4Addr::from(0x0a00_0000 + number);
    if number.is_multiple_of(2) {
        IpAddr::V4(four)
    } else {
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, (number >> 16) as u16, number as u16))
    }
}

/// A connection to the peer, after which the record is there.
pub fn visit(history: &History, peer: IpAddr, record: Record) {
    let (_, lease) = history.open(peer);
    history.close(lease, RecordUpdate::Replace(record));
}
