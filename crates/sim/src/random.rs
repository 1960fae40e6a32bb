//! Random numbers: one seed in, child seeds by name, the same everywhere.
//!
//! Each source of chance (arrivals, sizes, one loss element) has a child seed derived from the run's seed
//! and its own name. Adding an element does not disturb another's draws, and two schemes in one
//! comparison meet the same arrivals.

use headstart_units::Span;
use headstart_units::hash::{FNV64, fnv64};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A seed from which children are derived by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// The child called `name`: FNV-1a over the name, started from this seed, then mixed.
    #[must_use]
    pub fn child(self, name: &str) -> Self {
        let mut hash = fnv64(self.0 ^ FNV64, name.bytes());
        // The finaliser of SplitMix64: every input bit reaches every output bit.
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self(hash ^ (hash >> 31))
    }
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream that begins at `seed`.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed.0))
    }

    /// Uniform over all 64-bit numbers.
    pub fn draw(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform over `0..bound`; `bound` must not be zero. The bias is below 2^-32 for any bound used here.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }

    /// Exponentially distributed with the given mean: the gaps of a Poisson process.
    pub fn exponential(&mut self, mean: Span) -> Span {
        // 53 random bits in (0, 1]: the logarithm is finite. libm's logarithm, not the platform's,
        // so that every machine draws the same.
        let uniform = ((self.draw() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        Span::from_nanos((-libm::log(uniform) * mean.as_nanos() as f64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_differ_by_name_and_by_parent() {
        let seed = Seed(1);
        assert_ne!(seed.child("arrivals"), seed.child("loss"));
        assert_ne!(seed.child("arrivals"), Seed(2).child("arrivals"));
        assert_eq!(seed.child("arrivals"), Seed(1).child("arrivals"));
    }

    #[test]
    fn exponential_gaps_have_their_mean() {
        let mut random = Random::new(Seed(7));
        let mean = Span::from_millis(10);
        let sum: u64 = (0..100_000).map(|_| random.exponential(mean).as_nanos()).sum();
        let ratio = sum as f64 / 100_000.0 / mean.as_nanos() as f64;
        assert!((0.99..1.01).contains(&ratio), "{ratio}");
    }
}
