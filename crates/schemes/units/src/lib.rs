//! Bytes, packets, rates, ratios and times as types, with the physics as operators.
//!
//! A number does not travel without its unit: `Bytes / Rate` is a [`Span`], `Bytes / Span` a
//! [`Rate`], `Rate * Span` is [`Bytes`]. Everything is an integer, so that every machine computes
//! the same; every rounding is documented where it happens.
//!
//! | module | holds |
//! |---|---|
//! | [`hash`] | hashes that are the same on every machine |
//! | [`quantity`] | [`Bytes`], [`Packets`], [`Rate`], [`Ratio`] |
//! | [`time`] | [`Time`] (an instant) and [`Span`] (a length of time), in nanoseconds |
//! | [`text`] | reading and printing `15 Mbit/s`, `50 ms`, `115 kB`, `104 packets` |

#![no_std]

extern crate alloc;

pub mod hash;
pub mod quantity;
pub mod text;
pub mod time;

pub use quantity::{Bytes, Packets, Rate, Ratio};
pub use text::ParseError;
pub use time::{Span, Time};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
