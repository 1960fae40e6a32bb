//! A scheme's parameters, declared once: name, type, default, range and source.
//!
//! From the declaration come the `Params` of a scheme, what `headstart list schemes NAME` lists,
//! the parser of `halfback(additional=25%)` and its canonical spelling. A scheme's file holds it
//! (the macro `parameters!`):
//!
//! ```
//! headstart_startup::parameters! {
//!     /// What may be tuned.
//!     pub struct Params {
//!         /// Segments of the initial window.
//!         initial_window: u64 = 10, in 1..=1000, from "RFC 6928 §2";
//!         /// Leave slow start when delay grows.
//!         hystart: bool = false, from "RFC 9406";
//!     }
//! }
//! assert_eq!(Params::default().initial_window, 10);
//! ```
//!
//! A parameter's name in text is the field's name, with hyphens. Values are written as everywhere
//! in headstart: `25%`, `64 KiB`, `2 MB/s`, `100ms`, `on`.

mod text;
mod value;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

pub use text::{Error, is_same_name, split_list};
pub(crate) use text::{Setting, settings, split};
pub use value::{Value, Word, as_word, from_word, words_expected};

/// One parameter of the parameters `P`.
#[derive(Debug)]
pub struct Field<P> {
    /// The field's name in the struct.
    pub name: &'static str,
    /// Description: the field's documentation.
    pub about: &'static str,
    /// Source of its default.
    pub source: &'static str,
    /// The type of its values.
    pub kind: &'static str,
    /// Sets the parameter; `false` if the text is no value of its type, or not within its range.
    pub set: fn(&mut P, &str) -> bool,
    /// Prints the parameter's value, exactly.
    pub print: fn(&P, &mut dyn Write) -> fmt::Result,
    /// True if two structs have different values of it.
    pub differs: fn(&P, &P) -> bool,
    /// Prints the form of its values, and their range.
    pub expected: fn(&mut dyn Write) -> fmt::Result,
    /// Values for tests: the ends of its range, or all values. Empty for a number without a range.
    pub ends: fn() -> Vec<String>,
}

/// Parameters that were declared by the macro `parameters!`.
pub trait Parameters: Copy + Default + PartialEq + 'static {
    /// In the order of declaration.
    const FIELDS: &'static [Field<Self>];
}

/// A parameter in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Name of the parameter.
    pub name: String,
    /// The type of its values.
    pub kind: &'static str,
    /// The form of its values, and their range.
    pub expected: String,
    /// Default of the parameter.
    pub default: String,
    /// Description: the field's documentation.
    pub about: &'static str,
    /// Source of its default.
    pub source: &'static str,
    /// Values for tests.
    pub ends: Vec<String>,
}

/// All parameters, for a listing.
#[must_use]
pub fn describe<P: Parameters>() -> Vec<Description> {
    let text = |print: &dyn Fn(&mut String) -> fmt::Result| {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = print(&mut text);
        text
    };
    let description = |field: &Field<P>| Description {
        name: field.name.replace('_', "-"),
        kind: field.kind,
        expected: text(&|out| (field.expected)(out)),
        default: text(&|out| (field.print)(&P::default(), out)),
        about: field.about.trim(),
        source: field.source,
        ends: (field.ends)(),
    };
    P::FIELDS.iter().map(description).collect()
}

/// Reads settings, each `name=value`, on top of the defaults; `scheme` is for errors.
pub(crate) fn read<P: Parameters>(scheme: &str, settings: &[Setting<'_>]) -> Result<P, Error> {
    let mut params = P::default();
    for (name, value) in settings {
        let Some(field) = P::FIELDS.iter().find(|field| is_same_name(field.name, name)) else {
            return Err(Error::unknown_parameter::<P>(scheme, name));
        };
        if !(field.set)(&mut params, value) {
            return Err(Error::bad_value(scheme, field, value));
        }
    }
    Ok(params)
}

/// Prints the parameters that differ from their defaults, in the order of declaration:
/// `(additional=25%,burst=10)`, or nothing.
pub(crate) fn print<P: Parameters>(params: &P, out: &mut dyn Write) -> fmt::Result {
    let default = P::default();
    let mut separator = '(';
    for field in P::FIELDS.iter().filter(|field| (field.differs)(params, &default)) {
        out.write_char(separator)?;
        field.name.chars().try_for_each(|c| out.write_char(if c == '_' { '-' } else { c }))?;
        out.write_char('=')?;
        (field.print)(params, out)?;
        separator = ',';
    }
    if separator == ',' { out.write_char(')') } else { Ok(()) }
}

/// Declares a scheme's parameters ([`mod@crate::parameters`]): for each its documentation, name,
/// type, default, the range of a number, and the source of the default.
#[macro_export]
macro_rules! parameters {
    (
        $(#[doc = $title:literal])+
        pub struct $params:ident {
            $(
                $(#[doc = $about:literal])+
                $field:ident: $type:ty = $default:expr $(, in $range:expr)?, from $source:literal;
            )*
        }
    ) => {
        $(#[doc = $title])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $params {
            $(
                $(#[doc = $about])+
                #[doc = concat!("\n\nBy default `", stringify!($default), "`: ", $source, ".")]
                pub $field: $type,
            )*
        }

        impl Default for $params {
            fn default() -> Self {
                Self { $($field: $default),* }
            }
        }

        impl $crate::parameters::Parameters for $params {
            const FIELDS: &'static [$crate::parameters::Field<Self>] = &[$({
                type Type = $type;
                $crate::parameters::Field {
                    name: stringify!($field),
                    about: concat!($($about),+),
                    source: $source,
                    kind: <Type as $crate::parameters::Value>::KIND,
                    set: |params, text| {
                        let value = <Type as $crate::parameters::Value>::parse(text);
                        let value = value.filter(|value| {
                            $crate::parameters::Value::is_within(value, $crate::parameters!(@range $($range)?))
                        });
                        value.map(|value| params.$field = value).is_some()
                    },
                    print: |params, out| $crate::parameters::Value::print(&params.$field, out),
                    differs: |one, other| one.$field != other.$field,
                    expected: |out| {
                        <Type as $crate::parameters::Value>::expected($crate::parameters!(@range $($range)?), out)
                    },
                    ends: || <Type as $crate::parameters::Value>::ends($crate::parameters!(@range $($range)?)),
                }
            }),*];
        }
    };
    (@range) => { None };
    (@range $range:expr) => { Some($range) };
}

/// Implements [`Value`](crate::parameters::Value) for an enum of one word, or else a share in
/// percent.
#[macro_export]
macro_rules! word_or_share {
    ($type:ty { $word:ident = $text:literal, $share:ident }) => {
        impl $crate::parameters::Value for $type {
            type Bound = headstart_units::Ratio;

            const KIND: &'static str = "share";

            fn parse(text: &str) -> Option<Self> {
                $crate::parameters::from_word(&[($text, Self::$word)], text)
                    .or_else(|| $crate::parameters::Value::parse(text).map(Self::$share))
            }

            fn print(&self, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
                match self {
                    Self::$word => out.write_str($text),
                    Self::$share(share) => $crate::parameters::Value::print(share, out),
                }
            }

            fn expected(
                range: Option<core::ops::RangeInclusive<Self::Bound>>,
                out: &mut dyn core::fmt::Write,
            ) -> core::fmt::Result {
                write!(out, "`{}`, or ", $text)?;
                <Self::Bound as $crate::parameters::Value>::expected(range, out)
            }

            fn is_within(&self, range: Option<core::ops::RangeInclusive<Self::Bound>>) -> bool {
                match self {
                    Self::$word => true,
                    Self::$share(share) => $crate::parameters::Value::is_within(share, range),
                }
            }

            fn ends(
                range: Option<core::ops::RangeInclusive<Self::Bound>>,
            ) -> alloc::vec::Vec<alloc::string::String> {
                let mut ends = <Self::Bound as $crate::parameters::Value>::ends(range);
                ends.push($text.into());
                ends
            }
        }
    };
}

/// Implements [`Value`](crate::parameters::Value) for an enum without data, a word for each.
#[macro_export]
macro_rules! words {
    ($type:ty { $first:ident = $first_word:literal $(, $other:ident = $other_word:literal)* $(,)? }) => {
        impl $crate::parameters::Value for $type {
            type Bound = core::convert::Infallible;

            const KIND: &'static str = "choice";

            fn parse(text: &str) -> Option<Self> {
                $crate::parameters::from_word(Self::WORDS, text)
            }

            fn print(&self, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
                out.write_str($crate::parameters::as_word(Self::WORDS, self))
            }

            fn expected(
                _: Option<core::ops::RangeInclusive<Self::Bound>>,
                out: &mut dyn core::fmt::Write,
            ) -> core::fmt::Result {
                $crate::parameters::words_expected(Self::WORDS, out)
            }

            fn ends(_: Option<core::ops::RangeInclusive<Self::Bound>>) -> alloc::vec::Vec<alloc::string::String> {
                Self::WORDS.iter().map(|(word, _)| (*word).into()).collect()
            }
        }

        impl $type {
            const WORDS: &'static [$crate::parameters::Word<Self>] =
                &[($first_word, Self::$first) $(, ($other_word, Self::$other))*];
        }
    };
}
