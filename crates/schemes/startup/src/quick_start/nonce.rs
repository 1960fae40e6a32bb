//! Thirty random bits; each step down of the rate destroys two, and raising a rate requires them.
//!
//! Source: RFC 4782 §3.4 and its Table 2. There are fifteen fields of two bits, the leftmost for
//! the step from rate 15 to rate 14, the rightmost for the step from 1 to 0. A router that lowers
//! the rate from K to L draws the fields of all steps between anew. For an echoed rate K the
//! rightmost 2K bits must be those that were sent.

use super::rate::EncodedRate;

/// The nonce of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nonce(u32);

const BITS: u32 = 30;

/// The lowest `2 x code` bits.
const fn below(rate: EncodedRate) -> u32 {
    (1 << (2 * rate.code() as u32)) - 1
}

impl Nonce {
    /// The low thirty bits of `bits`.
    #[must_use]
    pub const fn new(bits: u32) -> Self {
        Self(bits & ((1 << BITS) - 1))
    }

    /// The thirty bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The nonce after a router lowered the rate; `random` supplies the new fields. Unchanged if
    /// the rate was not lowered.
    #[must_use]
    pub const fn lowered(self, from: EncodedRate, to: EncodedRate, random: u32) -> Self {
        let fields = below(from) & !below(to);
        Self(self.0 & !fields | random & fields)
    }

    /// True if this can be the echo of `original` where no router approved less than `rate`.
    #[must_use]
    pub const fn confirms(self, rate: EncodedRate, original: Self) -> bool {
        (self.0 ^ original.0) & below(rate) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 4782, Table 2: bits 0-1 are the step from 15 to 14, bits 28-29 that from 1 to 0; bit 0
    /// is the leftmost.
    #[test]
    fn each_step_down_has_its_two_bits() {
        for code in 1..=15_u8 {
            let (from, to) = (EncodedRate::from_code(code), EncodedRate::from_code(code - 1));
            let changed = Nonce::new(0).lowered(from, to, u32::MAX).bits();
            let leftmost = 2 * (15 - u32::from(code));
            assert_eq!(changed, 0b11 << (BITS - 2 - leftmost), "from {code}");
        }
    }

    #[test]
    fn an_unmodified_nonce_confirms_every_rate() {
        let nonce = Nonce::new(0x2aaa_aaaa);
        for code in 0..=15 {
            assert!(nonce.confirms(EncodedRate::from_code(code), nonce));
        }
    }

    proptest! {
        /// However routers lower the rate, the nonce confirms the rate that arrived, and a higher
        /// claim is detected unless each field between was drawn equal by chance.
        #[test]
        fn a_lowered_rate_is_accepted_and_a_raised_one_is_not(
            bits: u32, random: u32, from in 0_u8..16, to in 0_u8..16, claimed in 0_u8..16,
        ) {
            let code = EncodedRate::from_code;
            let (from, to) = (code(from.max(to)), code(from.min(to)));
            let original = Nonce::new(bits);
            let arrived = original.lowered(from, to, random);
            prop_assert!(arrived.confirms(to, original));
            let claimed = code(claimed);
            if claimed > to && arrived.confirms(claimed, original) {
                let destroyed = below(claimed.min(from)) & !below(to);
                prop_assert_eq!(random & destroyed, original.bits() & destroyed, "a lucky guess");
            }
        }
    }
}
