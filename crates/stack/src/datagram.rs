//! Packets on the path.

use bytes::Bytes;
use headstart_units::Bytes as Size;
use noq_proto::EcnCodepoint;

/// A UDP datagram under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Its codepoint, where it has one.
    pub ecn: Option<EcnCodepoint>,
    /// What is in it.
    pub contents: Bytes,
    /// It is a copy of one that left before.
    pub is_copy: bool,
}

/// IPv4 and UDP headers.
pub const HEADERS: Size = Size::new(28);

impl Datagram {
    /// Its size without IP and UDP headers.
    #[must_use]
    pub fn payload(&self) -> Size {
        Size::new(self.contents.len() as u64)
    }

    /// Whether it begins with a packet of application data (RFC 9000 §17.3: a short header).
    #[must_use]
    pub fn is_data(&self) -> bool {
        self.contents.first().is_some_and(|first| first & 0x80 == 0)
    }
}
