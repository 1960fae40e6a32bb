//! Lose packets at random, independently.

use core::fmt;

use headstart_units::{Ratio, Time};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::chance::Chance;
use crate::changing::Schedule;
use crate::element::{DropReason, Element, Packet, PushResult};
use crate::plan::{Part, Refusal, at_time, checked_share};
use crate::seed::Seed;

/// Share of packets that are lost, now and later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// The share at first.
    pub share: Ratio,
    /// Later shares, with their times.
    pub changes: Vec<(Time, Ratio)>,
}

impl Params {
    /// A constant share of losses.
    #[must_use]
    pub const fn constant(share: Ratio) -> Self {
        Self { share, changes: vec![] }
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "loss {}", self.share)?;
        self.changes.iter().try_for_each(|(at, share)| {
            at_time(f, *at)?;
            write!(f, "loss {share}")
        })
    }
}

impl Part for Params {
    const NAME: &'static str = "random loss";
    const SEED: &'static str = "loss";
    const OPTION: &'static str = "loss";
    type Element<P> = Loss;

    fn build<P>(&self, seed: Seed) -> Loss {
        Loss { changes: Schedule::new(self.changes.iter().copied()), ..Loss::new(self.share, seed.0) }
    }

    fn check(&self) -> Result<(), Refusal> {
        self.changes.iter().map(|(_, share)| share).chain([&self.share]).try_for_each(|it| checked_share(*it))
    }

    fn drops(&self) -> Option<DropReason> {
        Some(DropReason::RandomLoss)
    }
}

/// Independent random loss.
#[derive(Debug)]
pub struct Loss {
    chance: Chance,
    source: Xoshiro256PlusPlus,
    changes: Schedule<Ratio>,
}

impl Loss {
    /// Loses each packet with `probability`; more than one counts as one. With the same `seed`, the
    /// packets lost at a low probability are among those lost at a higher one.
    #[must_use]
    pub fn new(probability: Ratio, seed: u64) -> Self {
        Self {
            chance: Chance::new(probability),
            source: Xoshiro256PlusPlus::seed_from_u64(seed),
            changes: Schedule::new([]),
        }
    }
}

impl<P: Packet> Element<P> for Loss {
    #[inline]
    fn push(&mut self, now: Time, packet: P) -> PushResult<P> {
        // The sequence of draws is unaffected by a change.
        while let Some((_, share)) = self.changes.pop(now) {
            self.chance = Chance::new(share);
        }
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
    use crate::element::testing::{Numbered, packet};

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

    #[test]
    fn the_loss_probability_follows_its_schedule() {
        let changes =
            [(10, Ratio::ONE), (20, Ratio::percent(0))].map(|(ms, share)| (Time::from_millis(ms), share));
        let mut loss =
            Params { share: Ratio::percent(0), changes: changes.into() }.build::<Numbered>(Seed(1));
        let lost = |at: &u64| {
            let fate: PushResult<Numbered> = loss.push(Time::from_millis(*at), packet(*at));
            matches!(fate, PushResult::Dropped(..))
        };
        assert_eq!((0..30).filter(lost).collect::<Vec<_>>(), (10..20).collect::<Vec<_>>());
    }
}
