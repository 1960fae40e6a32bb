//! Values of parameters: how each type is read and printed.
//!
//! Printed values parse to the same value; `Display` of a quantity rounds to three decimals.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::ops::RangeInclusive;

use headstart_units::{Bytes, Rate, Ratio, Span};

use super::text::is_same_name;

/// A type of parameters.
pub trait Value: Copy + PartialEq + 'static {
    /// Type of the bounds of a range.
    type Bound;

    /// The type's name.
    const KIND: &'static str;

    /// Parses a value; `None` if the text is not one.
    fn parse(text: &str) -> Option<Self>;

    /// Prints it so that [`Self::parse`] gives the same value.
    ///
    /// # Errors
    /// If nothing more can be written.
    fn print(&self, out: &mut dyn Write) -> fmt::Result;

    /// Prints the form of values.
    ///
    /// # Errors
    /// If nothing more can be written.
    fn expected(range: Option<RangeInclusive<Self::Bound>>, out: &mut dyn Write) -> fmt::Result;

    /// True if the range admits it.
    fn is_within(&self, range: Option<RangeInclusive<Self::Bound>>) -> bool {
        let _ = range;
        true
    }

    /// The ends of a range, or all values if there are few.
    fn ends(range: Option<RangeInclusive<Self::Bound>>) -> Vec<String>;
}

fn text(print: impl FnOnce(&mut String) -> fmt::Result) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = print(&mut text);
    text
}

/// A number of some unit: read, compared in base units, printed.
macro_rules! quantity {
    ($type:ty, $kind:literal, $expected:literal, $parse:expr, $amount:expr, $print:expr) => {
        impl Value for $type {
            type Bound = Self;

            const KIND: &'static str = $kind;

            fn parse(text: &str) -> Option<Self> {
                $parse(text)
            }

            fn print(&self, out: &mut dyn Write) -> fmt::Result {
                $print(*self, out)
            }

            fn expected(range: Option<RangeInclusive<Self>>, out: &mut dyn Write) -> fmt::Result {
                out.write_str($expected)?;
                let Some(range) = range else { return Ok(()) };
                out.write_str(", from ")?;
                $print(*range.start(), out)?;
                out.write_str(" to ")?;
                $print(*range.end(), out)
            }

            fn is_within(&self, range: Option<RangeInclusive<Self>>) -> bool {
                range.is_none_or(|range| {
                    ($amount(*range.start())..=$amount(*range.end())).contains(&$amount(*self))
                })
            }

            fn ends(range: Option<RangeInclusive<Self>>) -> Vec<String> {
                let ends = range.map(|range| [*range.start(), *range.end()]);
                ends.into_iter().flatten().map(|end| text(|out| $print(end, out))).collect()
            }
        }
    };
}

quantity!(
    u64,
    "count",
    "a whole number",
    |text: &str| count(text),
    |count: u64| count,
    |count: u64, out: &mut dyn Write| write!(out, "{count}")
);
quantity!(
    u32,
    "count",
    "a whole number",
    |text: &str| count(text).and_then(|count| u32::try_from(count).ok()),
    u64::from,
    |count: u32, out: &mut dyn Write| write!(out, "{count}")
);
quantity!(
    Bytes,
    "size",
    "a size such as `64 KiB` or `1500 B`",
    |text: &str| text.parse().ok(),
    Bytes::get,
    |bytes: Bytes, out: &mut dyn Write| {
        exactly(bytes.get(), &[("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000), ("B", 1)], out)
    }
);
quantity!(
    Rate,
    "rate",
    "a rate such as `15 Mbit/s` or `2 MB/s`",
    |text: &str| text.parse().ok(),
    Rate::as_bytes_per_sec,
    |rate: Rate, out: &mut dyn Write| {
        const UNITS: &[(&str, u64)] =
            &[("Gbit/s", 125_000_000), ("Mbit/s", 125_000), ("kbit/s", 125), ("B/s", 1)];
        exactly(rate.as_bytes_per_sec(), UNITS, out)
    }
);
quantity!(
    Span,
    "time",
    "a time such as `60 ms` or `1.5 s`",
    |text: &str| text.parse().ok(),
    Span::as_nanos,
    |span: Span, out: &mut dyn Write| {
        exactly(span.as_nanos(), &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)], out)
    }
);
quantity!(
    Ratio,
    "share",
    "a share in percent such as `25%`",
    |text: &str| text.parse().ok(),
    |ratio: Ratio| ratio.of(1_000_000),
    |ratio: Ratio, out: &mut dyn Write| exactly(ratio.of(1_000_000), &[("%", 10_000)], out)
);

/// Digits and nothing else: a sign, a fraction or a unit is no count.
fn count(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Prints `amount` in the largest unit that takes at most three decimals, or in the smallest.
fn exactly(amount: u64, units: &[(&str, u64)], out: &mut dyn Write) -> fmt::Result {
    let fits = |size: u64| amount >= size && (u128::from(amount) * 1000).is_multiple_of(u128::from(size));
    let Some((unit, size)) = units.iter().find(|(_, size)| fits(*size)).or(units.last()) else {
        return Ok(());
    };
    write!(out, "{}", amount / size)?;
    let mut rest = amount % size;
    if rest > 0 {
        out.write_char('.')?;
    }
    while rest > 0 {
        rest *= 10;
        write!(out, "{}", rest / size)?;
        rest %= size;
    }
    out.write_str(unit)
}

impl Value for bool {
    type Bound = core::convert::Infallible;

    const KIND: &'static str = "switch";

    fn parse(text: &str) -> Option<Self> {
        const WORDS: [(&str, bool); 6] =
            [("on", true), ("off", false), ("yes", true), ("no", false), ("true", true), ("false", false)];
        from_word(&WORDS, text)
    }

    fn print(&self, out: &mut dyn Write) -> fmt::Result {
        out.write_str(if *self { "on" } else { "off" })
    }

    fn expected(_: Option<RangeInclusive<Self::Bound>>, out: &mut dyn Write) -> fmt::Result {
        out.write_str("`on` or `off`")
    }

    fn ends(_: Option<RangeInclusive<Self::Bound>>) -> Vec<String> {
        Vec::from(["off".into(), "on".into()])
    }
}

/// An optional limit.
impl<T: Value> Value for Option<T> {
    type Bound = T::Bound;

    const KIND: &'static str = T::KIND;

    fn parse(text: &str) -> Option<Self> {
        if is_same_name(text, NONE) { Some(None) } else { T::parse(text).map(Some) }
    }

    fn print(&self, out: &mut dyn Write) -> fmt::Result {
        match self {
            Some(value) => value.print(out),
            None => out.write_str(NONE),
        }
    }

    fn expected(range: Option<RangeInclusive<Self::Bound>>, out: &mut dyn Write) -> fmt::Result {
        out.write_str("`none`, or ")?;
        T::expected(range, out)
    }

    fn is_within(&self, range: Option<RangeInclusive<Self::Bound>>) -> bool {
        self.as_ref().is_none_or(|value| value.is_within(range))
    }

    fn ends(range: Option<RangeInclusive<Self::Bound>>) -> Vec<String> {
        let mut ends = T::ends(range);
        ends.push(NONE.into());
        ends
    }
}

const NONE: &str = "none";

/// A value with its word.
pub type Word<T> = (&'static str, T);

/// The value of a word.
#[must_use]
pub fn from_word<T: Copy>(words: &[Word<T>], text: &str) -> Option<T> {
    words.iter().find(|(word, _)| is_same_name(word, text)).map(|(_, value)| *value)
}

/// The word of a value.
#[must_use]
pub fn as_word<T: PartialEq>(words: &[Word<T>], value: &T) -> &'static str {
    words.iter().find(|(_, known)| known == value).map_or("", |(word, _)| word)
}

/// Prints all words.
///
/// # Errors
/// If nothing more can be written.
pub fn words_expected<T>(words: &[Word<T>], out: &mut dyn Write) -> fmt::Result {
    let last = words.len().saturating_sub(1);
    words.iter().enumerate().try_for_each(|(at, (word, _))| {
        let before = if at == 0 {
            ""
        } else if at == last {
            " or "
        } else {
            ", "
        };
        write!(out, "{before}`{word}`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    fn printed(value: impl Value) -> String {
        text(|out| value.print(out))
    }

    #[test]
    fn quantities_are_printed_exactly_and_short() {
        for (amount, expected) in
            [(0, "0B"), (999, "999B"), (65_536, "65.536kB"), (1_234_567, "1234.567kB"), (2_000_000, "2MB")]
        {
            assert_eq!(printed(Bytes::new(amount)), expected);
            assert_eq!(Bytes::parse(expected), Some(Bytes::new(amount)));
        }
        for (rate, expected) in [(2_000_000, "16Mbit/s"), (37_500, "300kbit/s"), (1, "1B/s"), (123, "123B/s")]
        {
            assert_eq!(printed(Rate::from_bytes_per_sec(rate)), expected);
            assert_eq!(Rate::parse(expected), Some(Rate::from_bytes_per_sec(rate)));
        }
        for (share, expected) in
            [(Ratio::new(1, 4), "25%"), (Ratio::new(1, 8), "12.5%"), (Ratio::ONE, "100%")]
        {
            assert_eq!(printed(share), expected);
            assert_eq!(Ratio::parse(expected), Some(share));
        }
        assert_eq!(printed(Span::from_micros(1_500)), "1.5ms");
        assert_eq!((printed(7_u64), printed(true)), ("7".into(), "on".into()));
        assert_eq!((printed(None::<Bytes>), Option::<Bytes>::parse("None")), ("none".into(), Some(None)));
    }

    #[test]
    fn counts_are_digits_alone() {
        for text in ["", "+1", "-1", "1.0", "1e3", " 1", "1 packet", "99999999999999999999"] {
            assert_eq!(u64::parse(text), None, "{text:?}");
        }
        assert_eq!(u64::parse("0010"), Some(10));
    }

    #[test]
    fn a_range_holds_both_of_its_ends() {
        let range = || Some(Ratio::new(1, 100)..=Ratio::ONE);
        for (percent, expected) in [(0, false), (1, true), (100, true), (101, false)] {
            assert_eq!(Ratio::percent(percent).is_within(range()), expected, "{percent}");
        }
        assert_eq!(Ratio::ends(range()), ["1%", "100%"]);
        let expected = text(|out| Ratio::expected(range(), out));
        assert_eq!(expected, "a share in percent such as `25%`, from 1% to 100%");
        assert!(format!("{:?}", Option::<Bytes>::ends(Some(Bytes::new(1)..=Bytes::new(9)))).contains("none"));
    }
}
