//! Packets on the path.

use bytes::Bytes;
use headstart_units::Bytes as Size;
use noq_proto::EcnCodepoint;

/// A UDP datagram in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// ECN codepoint of the datagram; `None` for Not-ECT.
    pub ecn: Option<EcnCodepoint>,
    /// UDP payload of the datagram.
    pub contents: Bytes,
    /// True for a copy of an earlier datagram.
    pub is_copy: bool,
}

/// Size of the IPv4 and UDP headers.
pub const HEADERS: Size = Size::new(28);

impl Datagram {
    /// Size of its UDP payload.
    #[must_use]
    pub fn payload(&self) -> Size {
        Size::new(self.contents.len() as u64)
    }

    /// True if it begins with a packet of application data (RFC 9000 §17.3: a short header).
    #[must_use]
    pub fn is_data(&self) -> bool {
        self.contents.first().is_some_and(|first| first & 0x80 == 0)
    }
}
