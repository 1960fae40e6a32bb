//! Proactive retransmission of whole datagrams, byte for byte, before a loss is detected: the
//! repair of Halfback and Proactive.
//!
//! The TLS session retains the wire bytes of the latest data packets (`SentPackets`); the
//! congestion controller lets the scheme's repair select packets, and a [`DuplicateSender`] sends
//! them. A repeated datagram repeats a nonce with the same plaintext, which reveals nothing; the
//! receiver processes the first copy to arrive and drops the other.
//!
//! # Rules
//!
//! - A copy has the ECN codepoint of its original. The receiver drops duplicates before it counts
//!   codepoints, but a sender that sees fewer marks than packets treats ECN as broken on the path.
//! - Nothing older than [`REACH`] packets is copied: receivers remember 128 packet numbers and
//!   treat older ones as duplicates (noq and quinn do).
//! - Copies are not in flight, neither for the stack nor for the scheme (`docs/decisions/0003`):
//!   they are bounded by the budget of the repair itself and by [`CopyPolicy`].
//! - They end for good when the path changes, and by default at congestion. The loss of a packet is
//!   congestion whether it was copied or not, as in the TCP model (RFC 9002 §7.3.2).

use std::collections::VecDeque;
use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use headstart_units::Bytes as Size;

/// Highest distance of a copied packet from the newest, in packets.
pub const REACH: u64 = 120;

/// Limits on copies; values given are the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyPolicy {
    /// Ends copies at the first congestion. On; Halfback as published goes on (its §4.2.1).
    pub stop_at_congestion: bool,
    /// Most bytes of copies per connection. 300 kB: twice Halfback's pacing threshold, and a bound
    /// for Proactive.
    pub budget: Size,
}

impl Default for CopyPolicy {
    fn default() -> Self {
        Self { stop_at_congestion: true, budget: Size::new(300_000) }
    }
}

/// A datagram to be sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The peer's address.
    pub destination: SocketAddr,
    /// Local source address, if the stack reports it.
    pub source: Option<IpAddr>,
    /// Wire bytes of the whole datagram.
    pub contents: Bytes,
    /// Time of its departure.
    pub timing: SendTiming,
}

/// Departure of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendTiming {
    /// At once: triggered by an ack.
    Now,
    /// Right after its original, which is being sent.
    AfterOriginal,
}

/// Sends copies.
pub trait DuplicateSender: Send + Sync + Debug {
    /// A connection may send copies to `destination` from now on.
    fn register(&self, destination: SocketAddr) {
        let _ = destination;
    }

    /// Sends a copy with the ECN codepoint of the connection's latest datagram. It may be dropped:
    /// copies are not retransmitted.
    fn send(&self, copy: Duplicate);

    /// A connection sends no more copies to `destination`.
    fn unregister(&self, destination: SocketAddr) {
        let _ = destination;
    }
}

/// The wire bytes of the latest data packets.
#[derive(Debug, Default)]
pub(crate) struct SentPackets {
    packets: VecDeque<(u64, Bytes)>,
}

impl SentPackets {
    pub fn push(&mut self, number: u64, packet: &[u8]) {
        while self.packets.len() as u64 >= REACH {
            self.packets.pop_front();
        }
        self.packets.push_back((number, Bytes::copy_from_slice(packet)));
    }

    pub fn get(&self, number: u64) -> Option<Bytes> {
        let at = self.packets.partition_point(|(other, _)| *other < number);
        self.packets.get(at).filter(|(other, _)| *other == number).map(|(_, packet)| packet.clone())
    }

    pub fn clear(&mut self) {
        self.packets.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_packets_are_kept_and_found_by_number() {
        let mut sent = SentPackets::default();
        // Packet numbers skip values.
        for number in (0..400).filter(|number| number % 7 != 3) {
            sent.push(number, &number.to_be_bytes());
        }
        assert_eq!(sent.packets.len() as u64, REACH);
        assert_eq!(sent.get(399).as_deref(), Some(399_u64.to_be_bytes().as_slice()));
        assert_eq!(sent.get(3 + 7 * 56), None, "never sent");
        assert_eq!(sent.get(100), None, "too old");
    }
}
