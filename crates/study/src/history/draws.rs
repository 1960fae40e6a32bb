//! Random numbers in the shapes that models need. Logarithms and powers are libm's, so that every machine draws the same.

use headstart_sim::{Random, Seed};

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Dice(Random);

impl Dice {
    /// The stream called `name` of `seed`: a draw more of one stream does not disturb another.
    #[must_use]
    pub fn new(seed: Seed, name: &str) -> Self {
        Self(Random::new(seed.child(name)))
    }

    /// Uniform from 0 to 1, without the 1.
    pub fn unit(&mut self) -> f64 {
        (self.0.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Uniform on a logarithmic scale.
    pub fn scale(&mut self, low: f64, high: f64) -> f64 {
        low * libm::pow(high / low, self.unit())
    }

    /// Exponentially distributed.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -libm::log(1.0 - self.unit()) * mean
    }

    /// Log-normally distributed with this mean; `spread` is the deviation of the logarithm.
    pub fn log_normal(&mut self, mean: f64, spread: f64) -> f64 {
        // Box and Muller.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        let normal = radius * libm::cos(2.0 * core::f64::consts::PI * self.unit());
        mean * libm::exp(spread * normal - spread * spread / 2.0)
    }

    /// Whether something of this probability happens.
    pub fn is_below(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    /// Uniform over `0..count`.
    pub fn below(&mut self, count: u64) -> u64 {
        self.0.below(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_their_mean_and_their_spread() {
        let mut dice = Dice::new(Seed(1), "sizes");
        let sizes: Vec<f64> = (0..200_000).map(|_| dice.log_normal(10.0, 1.0)).collect();
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        assert!((9.8..10.2).contains(&mean), "{mean}");
        let below = sizes.iter().filter(|size| **size < 10.0 * libm::exp(-0.5)).count() as f64 / 200_000.0;
        assert!((0.49..0.51).contains(&below), "half lie below the median: {below}");
    }
}
