//! The counts that a path keeps of each of its elements.

use headstart_units::Bytes;

use crate::element::DropReason;

/// Packets offered to an element, by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Packets offered.
    pub offered: u64,
    /// Packets delivered, copies included.
    pub delivered: u64,
    /// Bytes delivered.
    pub delivered_bytes: u64,
    /// Packets dropped, by cause in the order of [`DropReason::ALL`].
    pub dropped: [u64; DropReason::ALL.len()],
    /// Bytes dropped.
    pub dropped_bytes: u64,
}

impl PacketCounts {
    /// Counts a delivered packet of `size`.
    #[inline]
    pub fn deliver(&mut self, size: Bytes) {
        self.delivered += 1;
        self.delivered_bytes += size.get();
    }

    /// Counts a dropped packet of `size`.
    #[inline]
    pub fn drop(&mut self, size: Bytes, reason: DropReason) {
        self.dropped[reason as usize] += 1;
        self.dropped_bytes += size.get();
    }

    /// Packets dropped, all causes together.
    #[must_use]
    pub fn total_dropped(&self) -> u64 {
        self.dropped.iter().sum()
    }
}
