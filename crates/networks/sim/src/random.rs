//! Random numbers: one seed in, child seeds by name, the same everywhere.
//!
//! Logarithms, powers and the cosine are libm's, not the platform's: every machine draws the same.

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

    /// The stream called `name` of `seed`: a draw more of one stream does not disturb another.
    #[must_use]
    pub fn named(seed: Seed, name: &str) -> Self {
        Self::new(seed.child(name))
    }

    /// Uniform over all 64-bit numbers.
    pub fn draw(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform over `0..bound`; zero for a bound of zero. Biased by less than 2^-32 up to 2^32.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }

    /// Exponentially distributed with the given mean: the gaps of a Poisson process.
    pub fn exponential(&mut self, mean: Span) -> Span {
        let uniform = unit_above_zero(self.draw());
        Span::from_nanos((-libm::log(uniform) * mean.as_nanos() as f64) as u64)
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        unit(self.draw())
    }

    /// Uniform in [`low`, `high`).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Uniform in [`low`, `high`) on a logarithmic scale.
    pub fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        low * libm::pow(high / low, self.unit())
    }

    /// Exponentially distributed with the given mean.
    pub fn exponential_f64(&mut self, mean: f64) -> f64 {
        -libm::log(1.0 - self.unit()) * mean
    }

    /// Log-normally distributed with this mean; `spread` is the logarithm's standard deviation.
    pub fn log_normal(&mut self, mean: f64, spread: f64) -> f64 {
        // Box and Muller.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        let normal = radius * libm::cos(2.0 * core::f64::consts::PI * self.unit());
        mean * libm::exp(spread * normal - spread * spread / 2.0)
    }

    /// True with this probability.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }
}

/// The number in [0, 1) that belongs to a draw: its upper 53 bits.
#[must_use]
pub fn unit(draw: u64) -> f64 {
    (draw >> 11) as f64 / (1_u64 << 53) as f64
}

/// The number in (0, 1] that belongs to a draw: its logarithm is finite.
#[must_use]
pub fn unit_above_zero(draw: u64) -> f64 {
    ((draw >> 11) + 1) as f64 / (1_u64 << 53) as f64
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

    #[test]
    fn sizes_have_their_mean_and_their_spread() {
        let mut random = Random::named(Seed(1), "sizes");
        let sizes: Vec<f64> = (0..200_000).map(|_| random.log_normal(10.0, 1.0)).collect();
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        assert!((9.8..10.2).contains(&mean), "{mean}");
        let below = sizes.iter().filter(|size| **size < 10.0 * libm::exp(-0.5)).count() as f64 / 200_000.0;
        assert!((0.49..0.51).contains(&below), "half lie below the median: {below}");
    }
}
