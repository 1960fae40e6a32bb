//! The counts that a path keeps of each of its elements.

use headstart_units::Bytes;

use crate::element::DropReason;

/// Packets that met an element, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Packets offered.
    pub offered: u64,
    /// Packets that came out, copies included.
    pub delivered: u64,
    /// Bytes that came out.
    pub delivered_bytes: u64,
    /// Packets dropped, by cause in the order of [`DropReason::ALL`].
    pub dropped: [u64; DropReason::ALL.len()],
    /// Bytes of these.
    pub dropped_bytes: u64,
}

impl Account {
    /// Counts a packet of `size` that came out.
    #[inline]
    pub fn deliver(&mut self, size: Bytes) {
        self.delivered += 1;
        self.delivered_bytes += size.get();
    }

    /// Counts a packet of `size` that was dropped.
    #[inline]
    pub fn drop(&mut self, size: Bytes, reason: DropReason) {
        self.dropped[reason as usize] += 1;
        self.dropped_bytes += size.get();
    }

    /// Packets dropped for whatever cause.
    #[must_use]
    pub fn dropped_in_all(&self) -> u64 {
        self.dropped.iter().sum()
    }
}
