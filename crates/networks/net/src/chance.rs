//! A probability and its random draws.

use headstart_units::Ratio;
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// A probability as a threshold below which a 64-bit draw must fall; exact to 2^-63.
///
/// Every trial takes exactly one draw, whatever the probability. So with the same seed an event at
/// 1 % also happens at 2 %, and a comparison of two probabilities varies nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chance {
    threshold: u64,
}

impl Chance {
    /// The probability `ratio`; more than one counts as one.
    pub(crate) const fn new(ratio: Ratio) -> Self {
        const HALF: u64 = 1 << 31;
        let is_certain = ratio.of(HALF) >= HALF;
        Self { threshold: if is_certain { u64::MAX } else { ratio.of(u64::MAX) } }
    }

    /// Draws once; true with this probability.
    #[inline]
    pub(crate) fn happens(self, source: &mut Xoshiro256PlusPlus) -> bool {
        let draw = source.next_u64();
        draw < self.threshold || self.threshold == u64::MAX
    }
}

/// A whole number from 0 to `most`, each equally likely to 2^-64.
#[inline]
pub(crate) fn up_to(most: u64, source: &mut Xoshiro256PlusPlus) -> u64 {
    ((u128::from(source.next_u64()) * (u128::from(most) + 1)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    fn happenings(ratio: Ratio) -> Vec<bool> {
        let mut source = Xoshiro256PlusPlus::seed_from_u64(1);
        (0..100_000).map(|_| Chance::new(ratio).happens(&mut source)).collect()
    }

    #[test]
    fn never_and_always_are_exact() {
        assert!(!happenings(Ratio::new(0, 1)).contains(&true));
        for certain in [Ratio::ONE, Ratio::new(3, 2), Ratio::new(u32::MAX, 1)] {
            assert!(!happenings(certain).contains(&false));
        }
        assert_eq!(Chance::new(Ratio::new(1, 2)).threshold, u64::MAX / 2);
    }

    #[test]
    fn the_share_of_hits_is_the_probability() {
        let count = happenings(Ratio::new(1, 100)).iter().filter(|x| **x).count();
        assert!((900..1100).contains(&count), "{count} of 1000 expected");
    }

    #[test]
    fn hits_at_one_percent_are_also_hits_at_two() {
        let (one, two) = (happenings(Ratio::percent(1)), happenings(Ratio::percent(2)));
        assert!(one.iter().zip(&two).all(|(rare, common)| !rare || *common));
    }

    #[test]
    fn draws_reach_both_ends() {
        let mut source = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut seen = [0; 3];
        for _ in 0..300 {
            seen[up_to(2, &mut source) as usize] += 1;
        }
        assert!(seen.iter().all(|count| *count > 70), "{seen:?}");
    }
}
