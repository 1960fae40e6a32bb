//! Instants and lengths of time, in whole nanoseconds.

use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

use crate::Ratio;

/// An instant: nanoseconds since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Time {
    /// The instant at which a run begins.
    pub const ZERO: Self = Self(0);
    /// The largest instant: a deadline that never expires.
    pub const NEVER: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the run began.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The instant `millis` milliseconds after the run began.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// Nanoseconds since the run began.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the run began; for output only.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span since `earlier`; zero if `earlier` is in fact later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// The largest span, longer than any run.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `nanos` nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A span of `micros` microseconds.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }

    /// A span of `millis` milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// A span of `secs` seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// Length of the span in nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Length of the span in seconds; for output only.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Length of the span in milliseconds; for output only.
    #[must_use]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// True if it is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The difference, or zero if `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The distance between two spans.
    #[must_use]
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl Add<Span> for Time {
    type Output = Self;
    /// Saturates at [`Time::NEVER`].
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Time {
    type Output = Self;
    /// Saturates at [`Time::ZERO`].
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

crate::quantity::arithmetic!(Span);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_on_an_infinite_deadline_keeps_it() {
        assert_eq!(Time::NEVER + Span::from_secs(1), Time::NEVER);
    }

    #[test]
    fn numbers_are_in_the_unit_that_they_say() {
        let span = Span::from_secs(2);
        assert_eq!(span, Span::from_nanos(2_000_000_000));
        assert_eq!((span.as_secs_f64(), span.as_millis_f64()), (2.0, 2000.0));
        let time = Time::from_millis(500);
        assert_eq!((time.as_nanos(), time.as_secs_f64()), (500_000_000, 0.5));
        assert!(Span::ZERO.is_zero() && !span.is_zero());
        let mut later = time;
        later += span;
        assert_eq!(
            (later, later - Span::from_millis(400)),
            (Time::from_millis(2500), Time::from_millis(2100))
        );
    }

    #[test]
    fn times_before_the_start_saturate() {
        assert_eq!(Time::from_millis(1) - Span::from_millis(2), Time::ZERO);
        assert_eq!(Time::from_millis(1).since(Time::from_millis(2)), Span::ZERO);
    }
}
