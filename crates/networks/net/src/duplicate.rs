//! Deliver some packets twice.

use core::fmt;

use headstart_units::{Ratio, Time};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::chance::Chance;
use crate::element::{Element, Output, Packet, PushResult};
use crate::plan::{Part, Refusal, checked_share};
use crate::ring::Ring;
use crate::seed::Seed;

/// Share of packets that are delivered twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// The share.
    pub share: Ratio,
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "duplicates {}", self.share)
    }
}

impl Part for Params {
    const NAME: &'static str = "duplicates";
    const SEED: &'static str = "duplicate";
    const OPTION: &'static str = "duplicate";
    const COPIES: bool = true;
    type Element<P> = Duplicate<P>;

    fn build<P>(&self, seed: Seed) -> Duplicate<P> {
        Duplicate::new(self.share, seed.0)
    }

    fn check(&self) -> Result<(), Refusal> {
        checked_share(self.share)
    }
}

/// Random duplication: the packet passes at once, and its copy follows at the same instant.
#[derive(Debug)]
pub struct Duplicate<P> {
    chance: Chance,
    source: Xoshiro256PlusPlus,
    copies: Ring<P>,
}

impl<P> Duplicate<P> {
    /// Duplicates each packet with `probability`, drawn from `seed`; more than one counts as one.
    #[must_use]
    pub fn new(probability: Ratio, seed: u64) -> Self {
        Self {
            chance: Chance::new(probability),
            source: Xoshiro256PlusPlus::seed_from_u64(seed),
            copies: Ring::new(),
        }
    }
}

impl<P: Packet + Clone> Element<P> for Duplicate<P> {
    fn push(&mut self, now: Time, packet: P) -> PushResult<P> {
        if self.chance.happens(&mut self.source) {
            self.copies.push(now, packet.clone());
        }
        PushResult::Passed(packet)
    }

    fn pop(&mut self, now: Time) -> Option<Output<P>> {
        self.copies.pop(now).map(Output::Delivered)
    }

    fn next_at(&self) -> Time {
        self.copies.next_at()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::testing::packet;

    #[test]
    fn the_copy_follows_at_once() {
        let mut duplicate = Duplicate::new(Ratio::ONE, 0);
        let now = Time::from_millis(5);
        assert_eq!(duplicate.push(now, packet(1)), PushResult::Passed(packet(1)));
        assert_eq!(duplicate.next_at(), now);
        assert_eq!(duplicate.pop(now), Some(Output::Delivered(packet(1))));
        assert_eq!((duplicate.pop(now), duplicate.next_at()), (None, Time::NEVER), "twice, not more");
    }

    #[test]
    fn one_packet_in_ten_is_copied() {
        let mut duplicate = Duplicate::new(Ratio::percent(10), 4);
        for n in 0..10_000 {
            assert_eq!(duplicate.push(Time::ZERO, packet(n)), PushResult::Passed(packet(n)));
        }
        let copies = duplicate.copies.len();
        assert!((900..1100).contains(&copies), "{copies} of 1000 expected");
    }
}
