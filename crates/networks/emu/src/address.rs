//! Addresses of paths, so that several coexist side by side and nested.
//!
//! Every path owns a block of 100.64.0.0/10, the shared address space between carriers and
//! customers (RFC 6598). The first four addresses of a block are for its two ends; the rest is for
//! nested paths. A top-level path has a /18, of which 256 fit; a nested one has an eighth of its
//! parent's block, of which seven are free: five levels in all. Each IPv4 address has an IPv6
//! counterpart, fd68:6561:6473:: and the same four bytes (RFC 4193).

use core::fmt;
use core::str::FromStr;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A block of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    first: u32,
    length: u8,
}

/// RFC 6598.
const ALL: Block = Block { first: u32::from_be_bytes([100, 64, 0, 0]), length: 10 };
/// Prefix length of top-level blocks.
const TOP: u8 = 18;
/// Prefix bits added by each level of nesting.
const STEP: u8 = 3;
/// Prefix length of the smallest block with two ends.
const MAX_LENGTH: u8 = 30;

impl Block {
    /// Number of addresses in it.
    const fn size(self) -> u32 {
        1 << (32 - self.length)
    }

    /// The end towards the outside.
    #[must_use]
    pub const fn outside(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.first + 1)
    }

    /// The end of the program.
    #[must_use]
    pub const fn inside(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.first + 2)
    }

    /// First address of the block and the length of its prefix.
    #[must_use]
    pub const fn prefix(self) -> (Ipv4Addr, u8) {
        (Ipv4Addr::from_bits(self.first), self.length)
    }

    /// The blocks for paths nested in `parent`, or at the top level.
    pub fn candidates(parent: Option<Self>) -> impl Iterator<Item = Self> {
        let (all, length, skip) = match parent {
            None => (ALL, TOP, 0),
            // The first eighth holds the parent's own ends.
            Some(parent) => (parent, parent.length + STEP, 1),
        };
        let count = if length > MAX_LENGTH { 0 } else { 1_u32 << (length - all.length) };
        (skip..count).map(move |number| {
            let size = 1 << (32 - length);
            Self { first: all.first + number * size, length }
        })
    }

    /// True if the blocks share an address.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        let length = if self.length < other.length { self.length } else { other.length };
        // A prefix of length zero covers everything, and a shift by 32 is undefined.
        length == 0 || (self.first ^ other.first) >> (32 - length) == 0
    }

    /// A block from a routing table's destination and mask.
    #[must_use]
    pub const fn from_mask(first: u32, mask: u32) -> Self {
        Self { first, length: mask.leading_ones() as u8 }
    }
}

/// The IPv6 counterpart of an IPv4 address.
#[must_use]
pub const fn beside(address: Ipv4Addr) -> Ipv6Addr {
    let [a, b, c, d] = address.octets();
    Ipv6Addr::new(0xfd68, 0x6561, 0x6473, 0, 0, 0, (a as u16) << 8 | b as u16, (c as u16) << 8 | d as u16)
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from_bits(self.first), self.length)
    }
}

impl FromStr for Block {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("found `{text}`, expected a block of 100.64.0.0/10 such as 100.64.64.0/18");
        let (first, length) = text.split_once('/').ok_or_else(expected)?;
        let first: Ipv4Addr = first.parse().map_err(|_| expected())?;
        let length = length.parse().map_err(|_| expected())?;
        if !(TOP..=MAX_LENGTH).contains(&length) {
            return Err(expected());
        }
        let block = Self { first: first.to_bits(), length };
        if !block.first.is_multiple_of(block.size()) || !ALL.overlaps(block) {
            return Err(expected());
        }
        Ok(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_and_nested_paths_have_disjoint_address_blocks() {
        let top: Vec<Block> = Block::candidates(None).collect();
        assert_eq!(top.len(), 256);
        assert_eq!(top[1].to_string(), "100.64.64.0/18");
        assert_eq!(top[255].to_string(), "100.127.192.0/18");
        assert!(top.windows(2).all(|two| !two[0].overlaps(two[1])));
        let mut parent = top[3];
        for level in 2..=5 {
            let inside: Vec<Block> = Block::candidates(Some(parent)).collect();
            assert_eq!(inside.len(), 7, "level {level}");
            for block in &inside {
                assert!(parent.overlaps(*block));
                let ends = Block { length: MAX_LENGTH, ..parent };
                assert!(!ends.overlaps(*block), "the parent's own ends are not given away");
            }
            parent = inside[6];
        }
        assert_eq!(Block::candidates(Some(parent)).count(), 0, "five levels and no more");
    }

    #[test]
    fn ends_have_ipv4_and_ipv6_addresses() {
        let block: Block = "100.64.64.0/18".parse().expect("a block");
        assert_eq!(block.outside().to_string(), "100.64.64.1");
        assert_eq!(block.inside().to_string(), "100.64.64.2");
        assert_eq!(beside(block.inside()).to_string(), "fd68:6561:6473::6440:4002");
    }

    #[test]
    fn text_that_is_not_a_block_is_refused() {
        for text in
            ["", "100.64.0.0", "100.64.0.0/9", "100.64.0.1/18", "10.0.0.0/18", "100.64.0.0/31", "x/18"]
        {
            let error = text.parse::<Block>().expect_err(text);
            assert!(error.contains("expected"), "{error}");
        }
    }
}
