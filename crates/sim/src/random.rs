//! Random numbers: one seed in, child seeds by name, the same everywhere.

use headstart_units::Span;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub use headstart_net::Seed;

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
    fn exponential_gaps_have_their_mean() {
        let mut random = Random::new(Seed(7));
        let mean = Span::from_millis(10);
        let sum: u64 = (0..100_000).map(|_| random.exponential(mean).as_nanos()).sum();
        let ratio = sum as f64 / 100_000.0 / mean.as_nanos() as f64;
        assert!((0.99..1.01).contains(&ratio), "{ratio}");
    }
}
