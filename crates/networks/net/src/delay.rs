//! Delay every packet by the same time.

use core::fmt;

use headstart_units::{Span, Time};

use crate::element::{Element, Output, Packet, PushResult};
use crate::plan::{Part, Refusal, checked_time};
use crate::ring::Ring;
use crate::seed::Seed;

/// The delay of every packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// One-way delay; zero is allowed.
    pub delay: Span,
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "delay {}", self.delay)
    }
}

impl Part for Params {
    const NAME: &'static str = "delay";
    type Element<P> = Delay<P>;

    fn build<P>(&self, _: Seed) -> Delay<P> {
        Delay::new(self.delay)
    }

    fn check(&self) -> Result<(), Refusal> {
        checked_time("delay", self.delay)
    }

    fn delay(&self) -> Span {
        self.delay
    }
}

/// A router that knows no options: packets pass at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NonCapableRouter;

impl fmt::Display for NonCapableRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a non-capable router")
    }
}

impl Part for NonCapableRouter {
    const NAME: &'static str = "non-capable router";
    const HAS_ROUTER: bool = true;
    type Element<P> = Delay<P>;

    fn build<P>(&self, _: Seed) -> Delay<P> {
        Delay::new(Span::ZERO)
    }
}

/// A constant one-way delay: first in, first out, so a ring holds the packets in transit.
#[derive(Debug)]
pub struct Delay<P> {
    delay: Span,
    inside: Ring<P>,
}

impl<P> Delay<P> {
    /// Delays by `delay`; zero is allowed.
    #[must_use]
    pub const fn new(delay: Span) -> Self {
        Self { delay, inside: Ring::new() }
    }
}

impl<P: Packet> Element<P> for Delay<P> {
    #[inline]
    fn push(&mut self, now: Time, packet: P) -> PushResult<P> {
        if self.delay.is_zero() && self.inside.is_empty() {
            return PushResult::Passed(packet);
        }
        self.inside.push(now + self.delay, packet);
        PushResult::Accepted
    }

    #[inline]
    fn pop(&mut self, now: Time) -> Option<Output<P>> {
        self.inside.pop(now).map(Output::Delivered)
    }

    #[inline]
    fn next_at(&self) -> Time {
        self.inside.next_at()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::testing::{drain, packet};

    #[test]
    fn every_packet_is_delayed_by_the_same_time() {
        let mut delay = Delay::new(Span::from_millis(20));
        for n in 0..3 {
            assert_eq!(delay.push(Time::from_millis(n), packet(n)), PushResult::Accepted);
        }
        assert_eq!(delay.pop(Time::from_nanos(19_999_999)), None);
        assert_eq!(drain(&mut delay), [(20_000, 0), (21_000, 1), (22_000, 2)]);
    }

    #[test]
    fn no_delay_is_no_event() {
        assert_eq!(Delay::new(Span::ZERO).push(Time::ZERO, packet(0)), PushResult::Passed(packet(0)));
    }
}
