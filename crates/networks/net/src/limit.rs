//! The limit of a buffer, in packets and bytes.

use core::fmt;

use headstart_units::{Bytes, Packets};

/// The limit of a buffer. The packet being sent has left the buffer and does not count
/// (as in mahimahi and in ns-3's device queue).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Packets that may wait at most.
    pub packets: u64,
    /// Bytes that may wait at most, as counted on the link.
    pub bytes: Bytes,
}

impl Limit {
    /// No limit.
    pub const NONE: Self = Self { packets: u64::MAX, bytes: Bytes::MAX };

    /// A buffer of `packets` packets of whatever size.
    #[must_use]
    pub const fn packets(packets: Packets) -> Self {
        Self { packets: packets.get(), ..Self::NONE }
    }

    /// A buffer of `bytes` bytes.
    #[must_use]
    pub const fn bytes(bytes: Bytes) -> Self {
        Self { bytes, ..Self::NONE }
    }

    /// True if one more packet of `size` fits with the waiting ones.
    #[must_use]
    #[inline]
    pub fn admits(&self, packets: u64, bytes: Bytes, size: Bytes) -> bool {
        packets < self.packets && bytes + size <= self.bytes
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.packets, self.bytes) {
            (u64::MAX, Bytes::MAX) => f.write_str("unlimited"),
            (u64::MAX, bytes) => bytes.fmt(f),
            (1, Bytes::MAX) => f.write_str("1 packet"),
            (packets, Bytes::MAX) => write!(f, "{packets} packets"),
            (packets, bytes) => write!(f, "{packets} packets and {bytes}"),
        }
    }
}
