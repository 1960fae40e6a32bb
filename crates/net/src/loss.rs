//! Lose packets at random, independently.

use headstart_units::{Ratio, Time};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::chance::Chance;
use crate::element::{DropReason, Element, Packet, PushResult};

/// Independent random loss.
#[derive(Debug)]
pub struct Loss {
    chance: Chance,
    source: Xoshiro256PlusPlus,
}

impl Loss {
    /// Loses each packet with `probability`; more than one counts as one. With the same `seed`, the
    /// packets lost at a low probability are among those lost at a higher one.
    #[must_use]
    pub fn new(probability: Ratio, seed: u64) -> Self {
        Self { chance: Chance::new(probability), source: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// Sets the probability for all later packets. The sequence of draws is unaffected.
    pub fn set(&mut self, probability: Ratio) {
        self.chance = Chance::new(probability);
    }
}

impl<P: Packet> Element<P> for Loss {
    #[inline]
    fn push(&mut self, _now: Time, packet: P) -> PushResult<P> {
        if self.chance.happens(&mut self.source) {
            PushResult::Dropped(packet, DropReason::RandomLoss)
        } else {
            PushResult::Passed(packet)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::testing::packet;

    #[test]
    fn one_packet_in_twenty_is_lost_and_the_rest_pass_at_once() {
        let mut loss = Loss::new(Ratio::percent(5), 7);
        let mut lost = 0;
        for n in 0..20_000 {
            match loss.push(Time::ZERO, packet(n)) {
                PushResult::Passed(same) => assert_eq!(same, packet(n)),
                PushResult::Dropped(same, DropReason::RandomLoss) => {
                    assert_eq!(same, packet(n));
                    lost += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!((900..1100).contains(&lost), "{lost} of 1000 expected");
    }
}
