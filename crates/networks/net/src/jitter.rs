//! Delay each packet by a random time of its own, in order or not.

use core::cmp::{Ordering, Reverse};
use core::fmt;
use std::collections::BinaryHeap;

use headstart_units::{Span, Time};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::chance::up_to;
use crate::element::{Element, Output, Packet, PushResult};
use crate::plan::{Part, Refusal, checked_time};
use crate::seed::Seed;

/// Effect of jitter on the order of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A packet waits until the one before has left, as on a link layer that retransmits in order.
    Kept,
    /// A packet may overtake, as on parallel paths.
    Free,
}

/// Extra delay and its effect on the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// The longest extra delay.
    pub bound: Span,
    /// Effect on the order of packets.
    pub order: Order,
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reorders = if self.order == Order::Free { " that reorders" } else { "" };
        write!(f, "jitter {}{reorders}", self.bound)
    }
}

impl Part for Params {
    const NAME: &'static str = "jitter";
    type Element<P> = Jitter<P>;

    fn build<P>(&self, seed: Seed) -> Jitter<P> {
        Jitter::new(self.bound, self.order, seed.0)
    }

    fn check(&self) -> Result<(), Refusal> {
        checked_time("bound", self.bound)
    }
}

/// A random extra delay from zero to a bound, each length equally likely.
#[derive(Debug)]
pub struct Jitter<P> {
    bound: Span,
    order: Order,
    source: Xoshiro256PlusPlus,
    /// Time at which the last packet leaves, for [`Order::Kept`].
    last: Time,
    pushed: u64,
    inside: BinaryHeap<Reverse<Due<P>>>,
}

/// A packet in transit; ordered by departure, then by arrival.
#[derive(Debug)]
struct Due<P> {
    at: Time,
    number: u64,
    packet: P,
}

impl<P> Jitter<P> {
    /// Extra delay up to `bound`, the bound included, drawn from `seed`.
    #[must_use]
    pub fn new(bound: Span, order: Order, seed: u64) -> Self {
        Self {
            bound,
            order,
            source: Xoshiro256PlusPlus::seed_from_u64(seed),
            last: Time::ZERO,
            pushed: 0,
            inside: BinaryHeap::new(),
        }
    }
}

impl<P: Packet> Element<P> for Jitter<P> {
    fn push(&mut self, now: Time, packet: P) -> PushResult<P> {
        let extra = Span::from_nanos(up_to(self.bound.as_nanos(), &mut self.source));
        let at = match self.order {
            Order::Kept => (now + extra).max(self.last),
            Order::Free => now + extra,
        };
        self.last = at;
        self.inside.push(Reverse(Due { at, number: self.pushed, packet }));
        self.pushed += 1;
        PushResult::Accepted
    }

    fn pop(&mut self, now: Time) -> Option<Output<P>> {
        if self.next_at() > now {
            return None;
        }
        self.inside.pop().map(|Reverse(due)| Output::Delivered(due.packet))
    }

    fn next_at(&self) -> Time {
        self.inside.peek().map_or(Time::NEVER, |Reverse(due)| due.at)
    }
}

impl<P> Due<P> {
    const fn key(&self) -> (Time, u64) {
        (self.at, self.number)
    }
}

impl<P> PartialEq for Due<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for Due<P> {}

impl<P> PartialOrd for Due<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Due<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::testing::{drain, packet};

    /// One packet per millisecond through up to 10 ms of jitter: `(extra in microseconds, number)`.
    fn extras(order: Order) -> Vec<(u64, u64)> {
        let mut jitter = Jitter::new(Span::from_millis(10), order, 1);
        for n in 0..10_000 {
            assert_eq!(jitter.push(Time::from_millis(n), packet(n)), PushResult::Accepted);
        }
        drain(&mut jitter).into_iter().map(|(at, n)| (at - n * 1000, n)).collect()
    }

    #[test]
    fn extra_delays_are_spread_evenly_up_to_the_bound() {
        let extras = extras(Order::Free);
        let mean = extras.iter().map(|(extra, _)| extra).sum::<u64>() / 10_000;
        assert!((4_900..5_100).contains(&mean), "{mean} us, 5000 expected");
        assert!(extras.iter().all(|(extra, _)| *extra <= 10_000));
        assert!(extras.iter().any(|(extra, _)| *extra < 10));
        assert!(extras.iter().any(|(extra, _)| *extra > 9_990));
    }

    #[test]
    fn packets_are_reordered_only_where_allowed() {
        assert!(extras(Order::Kept).is_sorted_by_key(|(_, n)| *n));
        assert!(!extras(Order::Free).is_sorted_by_key(|(_, n)| *n));
    }
}
