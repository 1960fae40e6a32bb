//! Datagrams sent again, byte for byte, although nobody knows them lost: Halfback's and Proactive's
//! repair.
//!
//! The TLS session keeps the wire bytes of the data packets sent last (`Tap`); the congestion
//! controller asks the scheme's repair which to send again, and a [`Courier`] puts them on the
//! wire. Repeating a datagram repeats a nonce with the same plaintext, so nothing is learnt from
//! it; the receiver takes the first that comes and drops the other.
//!
//! # Rules
//!
//! - A copy bears the ECN codepoint of its original: the receiver drops duplicates before it counts
//!   codepoints, but a sender that sees fewer marks than packets takes ECN for broken on the path.
//! - Nothing older than [`REACH`] packets is copied: receivers remember 128 packet numbers and take
//!   older ones for duplicates (noq and quinn do).
//! - Copies are not in flight, neither for the stack nor for the scheme (`docs/decisions/0003`):
//!   what bounds them is the budget of the repair itself, and the most that [`CopyPolicy`] allows.
//! - They end for good when the path changes, and by default when congestion is seen: a loss of
//!   something that was not copied, or a mark.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use headstart_units::Bytes as Size;

/// The most packets before the newest that are worth a copy.
pub const REACH: u64 = 120;

/// What an operator allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyPolicy {
    /// No more copies once congestion was seen. On; Halfback as published goes on (its §4.2.1).
    pub stop_at_congestion: bool,
    /// The most bytes of copies for one connection. 300 kB: twice Halfback's pacing threshold, and
    /// a bound for Proactive.
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
    /// To whom.
    pub destination: SocketAddr,
    /// From which of our addresses, if the stack knows.
    pub source: Option<IpAddr>,
    /// The whole datagram.
    pub contents: Bytes,
    /// When.
    pub when: When,
}

/// When a copy may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At once: an ack asked for it.
    Now,
    /// Right after what is being sent, of which it is a copy.
    Behind,
}

/// Puts copies on the wire.
pub trait Courier: Send + Sync + Debug {
    /// A connection to that peer may send copies from now on.
    fn begin(&self, destination: SocketAddr) {
        let _ = destination;
    }

    /// Sends a copy with the ECN codepoint of the connection's latest datagram. It may be dropped:
    /// nobody waits for it.
    fn carry(&self, copy: Duplicate);

    /// It does not any more.
    fn end(&self, destination: SocketAddr) {
        let _ = destination;
    }
}

/// The wire bytes of the data packets sent last.
#[derive(Debug, Default)]
pub(crate) struct Tap {
    kept: VecDeque<(u64, Bytes)>,
}

impl Tap {
    pub fn keep(&mut self, number: u64, packet: &[u8]) {
        while self.kept.len() as u64 >= REACH {
            self.kept.pop_front();
        }
        self.kept.push_back((number, Bytes::copy_from_slice(packet)));
    }

    pub fn get(&self, number: u64) -> Option<Bytes> {
        let at = self.kept.partition_point(|(other, _)| *other < number);
        self.kept.get(at).filter(|(other, _)| *other == number).map(|(_, packet)| packet.clone())
    }

    pub fn clear(&mut self) {
        self.kept.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_packets_are_kept_and_found_by_number() {
        let mut tap = Tap::default();
        // Packet numbers skip values.
        for number in (0..400).filter(|number| number % 7 != 3) {
            tap.keep(number, &number.to_be_bytes());
        }
        assert_eq!(tap.kept.len() as u64, REACH);
        assert_eq!(tap.get(399).as_deref(), Some(399_u64.to_be_bytes().as_slice()));
        assert_eq!(tap.get(3 + 7 * 56), None, "never sent");
        assert_eq!(tap.get(100), None, "too old");
    }
}
