//! Four bits for a rate: zero, or 80 kbit/s doubled up to fourteen times.
//!
//! Source: RFC 4782 §3.1, its Table 1: code zero is rate zero, code N is 40 000 x 2^N bit/s.

use headstart_units::Rate;

/// A rate as the options carry it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EncodedRate(u8);

/// 40 000 bit/s in bytes: the base of the table, itself not in it.
const BASE: u64 = 5_000;
/// The largest code: 1.310 72 Gbit/s.
const LARGEST: u8 = 15;

impl EncodedRate {
    /// Rate zero: a request that was not approved.
    pub const ZERO: Self = Self(0);
    /// 1.310 72 Gbit/s.
    pub const MAX: Self = Self(LARGEST);

    /// The rate encoded by the low four bits of `code`.
    #[must_use]
    pub const fn from_code(code: u8) -> Self {
        Self(code & 0x0f)
    }

    /// The four bits.
    #[must_use]
    pub const fn code(self) -> u8 {
        self.0
    }

    /// The rate.
    #[must_use]
    pub const fn rate(self) -> Rate {
        Rate::from_bytes_per_sec(if self.0 == 0 { 0 } else { BASE << self.0 })
    }

    /// The largest that is not above `rate`: the code of a router that approves `rate`.
    #[must_use]
    pub const fn at_most(rate: Rate) -> Self {
        let multiple = rate.as_bytes_per_sec() / BASE;
        if multiple < 2 {
            return Self::ZERO;
        }
        let power = multiple.ilog2();
        if power > LARGEST as u32 { Self::MAX } else { Self(power as u8) }
    }

    /// The smallest that is not below `rate`, if there is one: the code of a sender's request.
    #[must_use]
    pub fn at_least(rate: Rate) -> Self {
        let below = Self::at_most(rate);
        if below.rate() < rate && below < Self::MAX { Self(below.0 + 1) } else { below }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4782 §3.1, Table 1, the whole of it in kbit/s.
    #[test]
    fn the_table_of_the_standard() {
        #[rustfmt::skip]
        let table = [
            0, 80, 160, 320, 640, 1_280, 2_560, 5_120, 10_240, 20_480, 40_960, 81_920, 163_840, 327_680, 655_360, 1_310_720,
        ];
        for (code, kbit) in table.into_iter().enumerate() {
            let rate = Rate::from_bits_per_sec(kbit * 1000);
            let encoded = EncodedRate::from_code(code as u8);
            assert_eq!(encoded.rate(), rate, "code {code}");
            assert_eq!((EncodedRate::at_most(rate), EncodedRate::at_least(rate)), (encoded, encoded));
        }
    }

    #[test]
    fn between_two_codes_a_router_rounds_down_and_a_sender_up() {
        #[rustfmt::skip]
        let rows = [
            // bit/s          router  sender
            (8,               0,      1),
            (79_992,          0,      1),
            (80_008,          1,      2),
            (10_000_000,      7,      8),
            (1_400_000_000,   15,     15),
        ];
        for (bits, below, above) in rows {
            let rate = Rate::from_bits_per_sec(bits);
            let found = (EncodedRate::at_most(rate).code(), EncodedRate::at_least(rate).code());
            assert_eq!(found, (below, above), "{bits} bit/s");
        }
        assert_eq!(EncodedRate::at_most(Rate::MAX), EncodedRate::MAX);
        assert_eq!(EncodedRate::at_least(Rate::ZERO), EncodedRate::ZERO);
    }
}
