//! Amounts of data, rates and exact ratios.

use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

use crate::Span;

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// An amount of data in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

/// A number of packets, where a source counts packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Packets(u64);

/// A rate in bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// An exact ratio of two whole numbers.
#[derive(Clone, Copy, Debug)]
pub struct Ratio {
    numerator: u32,
    denominator: u32,
}

impl Bytes {
    /// Zero bytes.
    pub const ZERO: Self = Self(0);
    /// The largest amount: an absent limit.
    pub const MAX: Self = Self(u64::MAX);

    /// `count` bytes.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The number of bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// True if it is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The difference, or zero if `other` is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Packets {
    /// `count` packets.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The number of packets.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Rate {
    /// No bytes per second.
    pub const ZERO: Self = Self(0);
    /// The largest rate: an absent limit.
    pub const MAX: Self = Self(u64::MAX);

    /// `count` bytes per second.
    #[must_use]
    pub const fn from_bytes_per_sec(count: u64) -> Self {
        Self(count)
    }

    /// `bits` bits per second, rounded down to whole bytes per second.
    #[must_use]
    pub const fn from_bits_per_sec(bits: u64) -> Self {
        Self(bits / 8)
    }

    /// `mbit` million bits per second.
    #[must_use]
    pub const fn from_mbit_per_sec(mbit: u64) -> Self {
        Self(mbit * 125_000)
    }

    /// The rate in bytes per second.
    #[must_use]
    pub const fn as_bytes_per_sec(self) -> u64 {
        self.0
    }

    /// The rate in bits per second.
    #[must_use]
    pub const fn as_bits_per_sec(self) -> u64 {
        self.0.saturating_mul(8)
    }

    /// True if it is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Ratio {
    /// The whole: 1/1.
    pub const ONE: Self = Self::new(1, 1);

    /// `numerator / denominator`.
    ///
    /// # Panics
    /// If the denominator is zero: a ratio is a constant of a scheme, never an input.
    #[must_use]
    pub const fn new(numerator: u32, denominator: u32) -> Self {
        assert!(denominator != 0, "a ratio needs a denominator");
        Self { numerator, denominator }
    }

    /// `percent / 100`.
    #[must_use]
    pub const fn percent(percent: u32) -> Self {
        Self::new(percent, 100)
    }

    /// This share of a plain number, rounded down; saturates.
    #[must_use]
    pub const fn of(self, amount: u64) -> u64 {
        mul_div(amount, self.numerator as u64, self.denominator as u64)
    }

    /// As a floating-point number; for output only.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.numerator) / f64::from(self.denominator)
    }
}

impl PartialEq for Ratio {
    fn eq(&self, other: &Self) -> bool {
        u64::from(self.numerator) * u64::from(other.denominator)
            == u64::from(other.numerator) * u64::from(self.denominator)
    }
}

impl Eq for Ratio {}

/// `a * b / c` without overflow on the way; saturates.
const fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / c,
        None => {
            let wide = a as u128 * b as u128 / c as u128;
            if wide > u64::MAX as u128 { u64::MAX } else { wide as u64 }
        }
    }
}

/// Sums and multiples of an amount saturate at the largest, differences must not be negative, and
/// parts are rounded down.
macro_rules! arithmetic {
    ($amount:ty) => {
        impl Add for $amount {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl AddAssign for $amount {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl Sub for $amount {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl SubAssign for $amount {
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }

        impl Mul<u64> for $amount {
            type Output = Self;
            fn mul(self, times: u64) -> Self {
                Self(self.0.saturating_mul(times))
            }
        }

        impl Div<u64> for $amount {
            type Output = Self;
            fn div(self, parts: u64) -> Self {
                Self(self.0 / parts)
            }
        }

        impl Mul<Ratio> for $amount {
            type Output = Self;
            fn mul(self, ratio: Ratio) -> Self {
                Self(ratio.of(self.0))
            }
        }
    };
}
pub(crate) use arithmetic;

arithmetic!(Bytes);

impl Mul<Packets> for Bytes {
    type Output = Self;
    fn mul(self, packets: Packets) -> Self {
        self * packets.0
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl Div<Rate> for Bytes {
    type Output = Span;
    /// Transmission time of these bytes at that rate, rounded up, so that a link is never faster
    /// than its rate. At rate zero: [`Span::MAX`].
    fn div(self, rate: Rate) -> Span {
        if rate.0 == 0 {
            return Span::MAX;
        }
        match self.0.checked_mul(NANOS_PER_SEC) {
            Some(product) => Span::from_nanos(product.div_ceil(rate.0)),
            None => {
                let wide = (u128::from(self.0) * u128::from(NANOS_PER_SEC)).div_ceil(u128::from(rate.0));
                Span::from_nanos(u64::try_from(wide).unwrap_or(u64::MAX))
            }
        }
    }
}

impl Div<Span> for Bytes {
    type Output = Rate;
    /// The rate of these bytes in that time, rounded down. In zero time: [`Rate::MAX`].
    fn div(self, span: Span) -> Rate {
        if span.is_zero() {
            return Rate::MAX;
        }
        Rate(mul_div(self.0, NANOS_PER_SEC, span.as_nanos()))
    }
}

impl Mul<Span> for Rate {
    type Output = Bytes;
    /// Bytes at this rate in that time (the bandwidth-delay product), rounded down.
    fn mul(self, span: Span) -> Bytes {
        Bytes(mul_div(self.0, span.as_nanos(), NANOS_PER_SEC))
    }
}

impl Mul<Ratio> for Rate {
    type Output = Self;
    /// Rounds down.
    fn mul(self, ratio: Ratio) -> Self {
        Self(ratio.of(self.0))
    }
}

impl Mul<u64> for Rate {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_sizes_and_times_are_consistent() {
        let rate = Rate::from_mbit_per_sec(12);
        assert_eq!(Bytes::new(1500) / rate, Span::from_millis(1));
        assert_eq!(Bytes::new(1500) / Span::from_millis(1), rate);
        assert_eq!(rate * Span::from_millis(1), Bytes::new(1500));
    }

    #[test]
    fn a_serialisation_time_is_never_too_short() {
        // 1 byte at 3 bytes per second is 333 333 333.3 ns.
        assert_eq!(Bytes::new(1) / Rate::from_bytes_per_sec(3), Span::from_nanos(333_333_334));
    }

    #[test]
    fn huge_amounts_do_not_overflow_on_the_way() {
        let huge = Bytes::new(u64::MAX / 2);
        assert_eq!(huge * Ratio::new(1, 2), Bytes::new(u64::MAX / 4));
        assert_eq!(Rate::MAX * Span::from_secs(2), Bytes::MAX);
        assert_eq!(Bytes::MAX * Ratio::new(3, 2), Bytes::MAX);
        assert_eq!(huge / Rate::from_bytes_per_sec(1), Span::MAX);
    }

    #[test]
    fn products_sums_and_numbers_are_those_of_the_amounts() {
        assert_eq!(Bytes::new(1500) * Packets::new(3), Bytes::new(4500));
        assert_eq!([1, 20, 300].map(Bytes::new).into_iter().sum::<Bytes>(), Bytes::new(321));
        let rate = Rate::from_mbit_per_sec(12);
        assert_eq!(
            (rate * 3, rate * Ratio::new(5, 4)),
            (Rate::from_mbit_per_sec(36), Rate::from_mbit_per_sec(15))
        );
        assert_eq!((Packets::new(7).get(), rate.as_bytes_per_sec()), (7, 1_500_000));
        assert_eq!(Ratio::new(5, 4).as_f64(), 1.25);
        assert!(Bytes::ZERO.is_zero() && !Bytes::new(1).is_zero());
        // Four times it is above 64 bits, four thirds are not.
        assert_eq!(Bytes::new(u64::MAX / 2) * Ratio::new(4, 3), Bytes::new(12_297_829_382_473_034_409));
    }

    #[test]
    fn ratios_are_equal_by_value() {
        assert_eq!(Ratio::new(1, 2), Ratio::percent(50));
        assert_ne!(Ratio::new(1, 2), Ratio::new(53, 60));
    }
}
