//! Hashes that are the same on every machine and in every run: for seeds, keys and fingerprints.
//!
//! None of them is collision-resistant.

/// Offset basis of FNV-1a of 64 bits (draft-eastlake-fnv §5).
pub const FNV64: u64 = 0xcbf2_9ce4_8422_2325;
/// Offset basis of FNV-1a of 128 bits.
pub const FNV128: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;

/// FNV-1a of 64 bits, continued from `hash`; begin with [`FNV64`].
#[must_use]
pub fn fnv64(hash: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.into_iter().fold(hash, step)
}

/// FNV-1a of 128 bits, continued from `hash`; begin with [`FNV128`].
#[must_use]
pub fn fnv128(hash: u128, bytes: impl IntoIterator<Item = u8>) -> u128 {
    let step =
        |hash: u128, byte| (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    bytes.into_iter().fold(hash, step)
}

/// A hash of large inputs, continued from `hash`: eight bytes are mixed in at a time.
///
/// An input in two pieces gives the same as in one only if the first has a multiple of eight bytes.
#[must_use]
pub fn by_words(hash: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(hash, |hash, word| step(hash, u64::from_le_bytes(*word)));
    rest.iter().fold(hash, |hash, byte| step(hash, u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of draft-eastlake-fnv §6 for "", "a" and "foobar".
    #[test]
    fn fnv_gives_the_published_values() {
        assert_eq!(fnv64(FNV64, *b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv64(FNV64, *b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv64(FNV64, *b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(fnv128(FNV128, *b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(fnv128(FNV128, *b"foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
    }

    #[test]
    fn every_byte_and_its_place_count() {
        let whole = by_words(0, b"0123456789");
        assert_eq!(by_words(by_words(0, b"01234567"), b"89"), whole);
        for other in [&b"0123456798"[..], b"1023456789", b"012345678", b"01234567890"] {
            assert_ne!(by_words(0, other), whole);
        }
    }
}
