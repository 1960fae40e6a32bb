//! Reading and printing quantities as people write them.
//!
//! A number, optional space, a unit: `15 Mbit/s`, `25mbit`, `50 ms`, `115 kB`, `104 packets`.
//! Letters of the unit are read without regard to case, except that `B` is always bytes, `bit`
//! always bits, and a small `b` of a rate a bit. The prefixes `k`, `M` and `G` are powers of 1000,
//! `Ki` and `Mi` of 1024. A number without a unit is refused.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use crate::{Bytes, Packets, Rate, Ratio, Span};

/// The reason why a text is not the expected quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    found: String,
    expected: &'static str,
    is_part: bool,
}

impl ParseError {
    /// True if the form is right, and the quantity a part of what can be had: `1.5 B`.
    #[must_use]
    pub fn is_part(&self) -> bool {
        self.is_part
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "found `{}`, expected {}", self.found, self.expected)
    }
}

impl core::error::Error for ParseError {}

/// Splits `15.5 Mbit/s` into 15 500 000 millionths of a unit, and the unit's letters.
///
/// The number is returned as millionths, exact for up to six decimals; more are refused.
fn split(text: &str) -> Option<(u128, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || whole.len() > 15 || fraction.len() > 6 {
        return None;
    }
    let mut millionths: u128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        if !digit.is_ascii_digit() {
            return None;
        }
        millionths = millionths * 10 + u128::from(digit - b'0');
    }
    for _ in fraction.len()..6 {
        millionths *= 10;
    }
    Some((millionths, unit.trim()))
}

/// The text times the unit's size, in millionths of a base unit; `None` if the unit is unknown.
fn in_millionths(text: &str, units: &[(&str, u64)]) -> Option<u128> {
    let (millionths, unit) = split(text)?;
    let (_, size) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    Some(millionths * u128::from(*size))
}

/// The text times the unit's size, in base units rounded down; `None` if the unit is unknown.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    u64::try_from(in_millionths(text, units)? / 1_000_000).ok()
}

/// As [`scaled`], but what is not zero must not become it.
fn scaled_above_zero(
    text: &str,
    units: &[(&str, u64)],
    expected: &'static str,
    least: &'static str,
) -> Result<u64, ParseError> {
    let amount = scaled(text, units).ok_or_else(|| refuse(text, expected))?;
    let is_lost = amount == 0 && in_millionths(text, units) != Some(0);
    if is_lost { Err(refuse_part(text, least)) } else { Ok(amount) }
}

/// As [`scaled`], but without a part of a base unit.
fn whole(
    text: &str,
    units: &[(&str, u64)],
    expected: &'static str,
    parts: &'static str,
) -> Result<u64, ParseError> {
    let amount = scaled(text, units).ok_or_else(|| refuse(text, expected))?;
    let is_whole = in_millionths(text, units).is_some_and(|millionths| millionths % 1_000_000 == 0);
    if is_whole { Ok(amount) } else { Err(refuse_part(text, parts)) }
}

fn refuse(text: &str, expected: &'static str) -> ParseError {
    let found = text.trim().to_owned();
    let expected = if found.starts_with('-') { "no sign: a quantity is zero or more" } else { expected };
    ParseError { found, expected, is_part: false }
}

fn refuse_part(text: &str, expected: &'static str) -> ParseError {
    ParseError { is_part: true, ..refuse(text, expected) }
}

impl FromStr for Bytes {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const UNITS: &[(&str, u64)] = &[
            ("B", 1),
            ("bytes", 1),
            ("kB", 1_000),
            ("MB", 1_000_000),
            ("GB", 1_000_000_000),
            ("KiB", 1 << 10),
            ("MiB", 1 << 20),
            ("GiB", 1 << 30),
        ];
        const EXPECTED: &str = "a size with its unit (B, kB, MB, GB, KiB, MiB or GiB), such as `100 kB`";
        whole(text, UNITS, EXPECTED, "whole bytes").map(Bytes::new)
    }
}

impl FromStr for Rate {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: &str = "a rate with its unit (bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s, MB/s or GB/s), such as `15 Mbit/s`";
        const BITS: &[(&str, u64)] = &[
            ("bit/s", 1),
            ("kbit/s", 1_000),
            ("Mbit/s", 1_000_000),
            ("Gbit/s", 1_000_000_000),
            ("bit", 1),
            ("kbit", 1_000),
            ("mbit", 1_000_000),
            ("gbit", 1_000_000_000),
            ("bps", 1),
            ("kbps", 1_000),
            ("mbps", 1_000_000),
            ("gbps", 1_000_000_000),
        ];
        // Case decides here alone: a small b is a bit.
        const SMALL: &[(&str, u64)] =
            &[("b/s", 1), ("kb/s", 1_000), ("mb/s", 1_000_000), ("gb/s", 1_000_000_000)];
        const BYTES: &[(&str, u64)] = &[
            ("B/s", 1),
            ("kB/s", 1_000),
            ("MB/s", 1_000_000),
            ("GB/s", 1_000_000_000),
            ("Bps", 1),
            ("kBps", 1_000),
            ("MBps", 1_000_000),
            ("GBps", 1_000_000_000),
        ];
        let small = if text.contains("b/s") { SMALL } else { &[] };
        // A large B is a byte, and `MBps` is no `Mbps`.
        let bits = if text.contains("Bps") { &[] } else { BITS };
        let rate = scaled(text, bits)
            .or_else(|| scaled(text, small))
            .map(Rate::from_bits_per_sec)
            .or_else(|| scaled(text, BYTES).map(Rate::from_bytes_per_sec))
            .ok_or_else(|| refuse(text, EXPECTED))?;
        // A positive rate must not round down to zero.
        if rate.is_zero() && split(text).is_some_and(|(millionths, _)| millionths > 0) {
            return Err(refuse(text, "8 bit/s at least: rates are whole bytes in a second"));
        }
        Ok(rate)
    }
}

impl FromStr for Span {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const UNITS: &[(&str, u64)] = &[
            ("ns", 1),
            ("us", 1_000),
            ("µs", 1_000),
            ("ms", 1_000_000),
            ("s", 1_000_000_000),
            ("min", 60_000_000_000),
            ("h", 3_600_000_000_000),
        ];
        const EXPECTED: &str = "a time with its unit (ns, us, ms, s, min or h), such as `60 ms`";
        scaled_above_zero(text, UNITS, EXPECTED, "0 or at least 1 ns").map(Span::from_nanos)
    }
}

impl FromStr for Packets {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const UNITS: &[(&str, u64)] = &[("p", 1), ("pkt", 1), ("packet", 1), ("packets", 1)];
        const EXPECTED: &str = "a number of packets, such as `104 packets` or `104p`";
        whole(text, UNITS, EXPECTED, "whole packets").map(Packets::new)
    }
}

impl FromStr for Ratio {
    type Err = ParseError;
    /// A percentage, exact to a millionth.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: &str = "a share in percent, such as `25 %` or `0.1%`";
        const UNITS: &[(&str, u64)] = &[("%", 10_000), ("percent", 10_000)];
        let millionths = scaled_above_zero(text, UNITS, EXPECTED, "0 or at least 0.0001 %")?;
        let millionths = u32::try_from(millionths).map_err(|_| refuse(text, EXPECTED))?;
        Ok(Self::new(millionths, 1_000_000))
    }
}

/// Prints `amount` of `base` units in the largest of `steps` that keeps it at least one, with at
/// most three decimals and no trailing zeros.
fn print(f: &mut fmt::Formatter<'_>, amount: u64, steps: &[(u64, &str)]) -> fmt::Result {
    let (size, name) = steps.iter().rev().find(|(size, _)| amount >= *size).unwrap_or(&steps[0]);
    let whole = amount / size;
    let mut thousandths = (u128::from(amount % size) * 1000 / u128::from(*size)) as u64;
    if thousandths == 0 {
        return write!(f, "{whole} {name}");
    }
    let mut width = 3;
    while thousandths.is_multiple_of(10) {
        thousandths /= 10;
        width -= 1;
    }
    write!(f, "{whole}.{thousandths:0width$} {name}")
}

impl fmt::Display for Ratio {
    /// As a percentage, with at most four decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millionths = self.of(1_000_000);
        if millionths.is_multiple_of(10_000) {
            return write!(f, "{} %", millionths / 10_000);
        }
        let fraction = format!("{:04}", millionths % 10_000);
        write!(f, "{}.{} %", millionths / 10_000, fraction.trim_end_matches('0'))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(f, self.get(), &[(1, "B"), (1_000, "kB"), (1_000_000, "MB"), (1_000_000_000, "GB")])
    }
}

impl fmt::Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} packets", self.get())
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = [(1, "bit/s"), (1_000, "kbit/s"), (1_000_000, "Mbit/s"), (1_000_000_000, "Gbit/s")];
        print(f, self.as_bits_per_sec(), &steps)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = [(1, "ns"), (1_000, "us"), (1_000_000, "ms"), (1_000_000_000, "s")];
        print(f, self.as_nanos(), &steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn units_are_accepted_in_many_spellings() {
        for text in [
            "15 Mbit/s",
            "15mbit",
            "15Mbps",
            "15Mb/s",
            "15 mb/s",
            "15000 kb/s",
            "15000 kbit/s",
            "1.875 MB/s",
            "1.875 MBps",
            "1875kBps",
            " 15 mbit/s ",
        ] {
            assert_eq!(text.parse(), Ok(Rate::from_mbit_per_sec(15)), "{text}");
        }
        assert_eq!("115 kB".parse(), Ok(Bytes::new(115_000)));
        assert_eq!("1.5 KiB".parse(), Ok(Bytes::new(1536)));
        assert_eq!("1.5 MiB".parse(), Ok(Bytes::new(1_572_864)));
        assert_eq!("1.5 GiB".parse(), Ok(Bytes::new(1_610_612_736)));
        assert_eq!("60ms".parse(), Ok(Span::from_millis(60)));
        assert_eq!("0.5 s".parse(), Ok(Span::from_millis(500)));
        assert_eq!("104p".parse(), Ok(Packets::new(104)));
        assert_eq!("1.123456 s".parse(), Ok(Span::from_micros(1_123_456)));
        assert_eq!("999999999999999 B".parse(), Ok(Bytes::new(999_999_999_999_999)));
        assert!("1000000000000000 B".parse::<Bytes>().is_err());
    }

    #[test]
    fn an_invalid_quantity_is_refused_with_the_expected_form() {
        for text in ["", "15", "1e3 ms", "1.2.3 ms", "ms", "3 parsecs", "1.1234567 s"] {
            let error = text.parse::<Span>().expect_err(text).to_string();
            assert!(error.contains("expected a time with its unit"), "{error}");
        }
        assert!("9999999999999999 GB".parse::<Bytes>().is_err(), "too large to count");
        let negative = "-5 Mbit/s".parse::<Rate>().expect_err("below zero").to_string();
        assert_eq!(negative, "found `-5 Mbit/s`, expected no sign: a quantity is zero or more");
    }

    #[test]
    fn an_amount_that_would_be_cut_off_is_refused() {
        let share = "0.00001%".parse::<Ratio>().expect_err("below a millionth").to_string();
        assert_eq!(share, "found `0.00001%`, expected 0 or at least 0.0001 %");
        let time = "0.001 ns".parse::<Span>().expect_err("below a nanosecond").to_string();
        assert_eq!(time, "found `0.001 ns`, expected 0 or at least 1 ns");
        for text in ["1.5 B", "0.1 KiB", "0.0001 kB"] {
            let size = text.parse::<Bytes>().expect_err(text).to_string();
            assert_eq!(size, format!("found `{text}`, expected whole bytes"));
        }
        let packets = "1.5 packets".parse::<Packets>().expect_err("half of one").to_string();
        assert_eq!(packets, "found `1.5 packets`, expected whole packets");
        assert_eq!("0.0001 %".parse(), Ok(Ratio::new(1, 1_000_000)));
        assert_eq!(("0 %".parse(), "0 s".parse()), (Ok(Ratio::new(0, 1)), Ok(Span::ZERO)));
        assert_eq!("1.0 B".parse(), Ok(Bytes::new(1)));
    }

    #[test]
    fn an_unknown_unit_is_refused_with_the_known_ones() {
        let refused = |error: ParseError| error.to_string();
        let rate = "1tbit".parse::<Rate>().map_err(refused).expect_err("no such unit");
        assert!(rate.starts_with("found `1tbit`, expected a rate") && rate.contains("Gbit/s, B/s"), "{rate}");
        let size = "1 TB".parse::<Bytes>().map_err(refused).expect_err("no such unit");
        assert!(size.contains("MB, GB, KiB"), "{size}");
        let time = "1 d".parse::<Span>().map_err(refused).expect_err("no such unit");
        assert!(time.contains("ms, s, min or h"), "{time}");
    }

    #[test]
    fn a_rate_below_a_byte_in_a_second_is_refused_as_it_was_written() {
        for text in ["1bit", "7 bit/s", "0.001 kbit/s", "0.5 B/s"] {
            let error = text.parse::<Rate>().expect_err(text).to_string();
            assert_eq!(
                error,
                format!("found `{text}`, expected 8 bit/s at least: rates are whole bytes in a second")
            );
        }
        assert_eq!("8bit".parse(), Ok(Rate::from_bytes_per_sec(1)));
        assert_eq!("0 bit".parse(), Ok(Rate::ZERO), "whoever wants more than that says so");
    }

    #[test]
    fn shares_are_percentages() {
        assert_eq!("25 %".parse(), Ok(Ratio::new(1, 4)));
        assert_eq!("0.1%".parse(), Ok(Ratio::new(1, 1000)));
        assert!("0.25".parse::<Ratio>().is_err(), "without its unit nobody knows what it is");
        assert_eq!(Ratio::new(1, 4).to_string(), "25 %");
        assert_eq!(Ratio::new(1, 8).to_string(), "12.5 %");
    }

    #[test]
    fn printing_uses_the_largest_unit_that_fits() {
        assert_eq!(Rate::from_mbit_per_sec(15).to_string(), "15 Mbit/s");
        assert_eq!(Bytes::new(112_500).to_string(), "112.5 kB");
        assert_eq!(Packets::new(104).to_string(), "104 packets");
        assert_eq!(Span::from_micros(60_050).to_string(), "60.05 ms");
        assert_eq!(Span::ZERO.to_string(), "0 ns");
    }
}
