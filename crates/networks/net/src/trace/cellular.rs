//! Generate a trace like a cellular link's: a random-walk rate, and outages.
//!
//! The model is from K. Winstein, A. Sivaraman, H. Balakrishnan, "Stochastic Forecasts Achieve
//! High Throughput and Low Delay over Cellular Networks" (Sprout), USENIX NSDI 2013. Opportunities
//! are a Poisson process whose rate is a Brownian motion, with outages that end at a rate of one
//! per second. Sprout's step of 200 packets per second in a root second is half the mean of a 4.8
//! Mbit/s link; here it is half the mean of any link.
//!
//! Every 20 ms:
//!
//! | | |
//! |---|---|
//! | the rate | moves up or down by 7 % of the mean, reflected at zero and at twice the mean |
//! | an outage | begins with probability 1/1500, so once in 30 s in the mean |
//! | | ends with probability 1/50, so after 1 s in the mean |
//!
//! Hence the rate is spread evenly between zero and twice the mean. One part in 31 of the time is
//! outage, and the trace carries 30/31 of the mean in the long run. A short trace may be far from
//! it. Inside a millisecond the number of opportunities is binomial, with a variance from 3/4 of
//! Poisson's to all of it. The last line is at the requested length, whatever the model's state.
//!
//! # Limits
//!
//! Not a model of any operator or place. It has no handover, no scheduler pattern and no daily
//! rhythm, and its two directions, where two are generated, are independent.

use headstart_units::{Rate, Ratio, Span};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{MAX_LINES, MAX_MILLIS, PACKET, Trace, TraceError};
use crate::chance::Chance;

/// Parameters of a generated trace.
#[derive(Clone, Copy, Debug)]
pub struct Cellular {
    /// The mean rate outside outages.
    pub mean: Rate,
    /// Length of the trace, in whole milliseconds.
    pub length: Span,
    /// Seed of the random draws; the same seed gives the same trace.
    pub seed: u64,
}

const TICK_MILLIS: u64 = 20;
const STEP: Ratio = Ratio::percent(7);
const OUTAGE_BEGINS: Chance = Chance::new(Ratio::new(1, 1500));
const OUTAGE_ENDS: Chance = Chance::new(Ratio::new(1, 50));
/// One opportunity per millisecond, in the fixed point of rates.
const ONE: u64 = 1 << 32;

impl Cellular {
    /// Generates the trace.
    ///
    /// # Errors
    /// If no trace can have that rate or length.
    pub fn trace(&self) -> Result<Trace, TraceError> {
        let length = self.length.as_nanos() / 1_000_000;
        if length == 0 || length > MAX_MILLIS {
            let expected = "a length from 1 ms to 2^32 - 1 ms";
            return Err(TraceError::OutOfRange { found: self.length.to_string(), expected });
        }
        // Upper bound: twice the mean for the whole length.
        if (self.mean * self.length).get() / PACKET.get() > MAX_LINES as u64 / 2 {
            let expected = "a rate and a length that make 2^23 packets or fewer";
            return Err(TraceError::OutOfRange { found: self.mean.to_string(), expected });
        }
        let mut walk = Walk::new(self.mean, self.seed);
        let mut millis = vec![];
        for now in 0..length {
            if now % TICK_MILLIS == 0 {
                walk.step();
            }
            let count = walk.opportunities();
            millis.extend((0..count).map(|_| now as u32));
        }
        millis.push(length as u32);
        Trace::from_millis(millis)
    }
}

struct Walk {
    mean: u64,
    /// Opportunities per millisecond, 32 binary places.
    rate: u64,
    is_outage: bool,
    /// Draws in a millisecond; four times the largest rate, so that no probability is above 1/4.
    slots: u64,
    source: Xoshiro256PlusPlus,
}

impl Walk {
    fn new(mean: Rate, seed: u64) -> Self {
        let per_milli = PACKET.get() * 1000;
        let mean = (u128::from(mean.as_bytes_per_sec()) * u128::from(ONE) / u128::from(per_milli)) as u64;
        Self {
            mean,
            rate: mean,
            is_outage: false,
            slots: (mean * 2).div_ceil(ONE).max(1) * 4,
            source: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    fn step(&mut self) {
        let step = STEP.of(self.mean);
        let is_up = self.source.next_u64() >> 63 == 1;
        self.rate = match is_up {
            true if self.rate + step > self.mean * 2 => self.mean * 4 - self.rate - step,
            true => self.rate + step,
            false => self.rate.abs_diff(step),
        };
        let change = if self.is_outage { OUTAGE_ENDS } else { OUTAGE_BEGINS };
        self.is_outage ^= change.happens(&mut self.source);
    }

    fn opportunities(&mut self) -> u64 {
        if self.is_outage {
            return 0;
        }
        let threshold = self.rate / self.slots;
        (0..self.slots).map(|_| u64::from(self.source.next_u64() >> 32 < threshold)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(mbit: u64, secs: u64, seed: u64) -> Trace {
        let cellular = Cellular { mean: Rate::from_mbit_per_sec(mbit), length: Span::from_secs(secs), seed };
        cellular.trace().expect("in range")
    }

    #[test]
    fn the_same_seed_gives_the_same_trace() {
        assert_eq!(trace(6, 10, 1), trace(6, 10, 1));
        assert_ne!(trace(6, 10, 1), trace(6, 10, 2));
    }

    #[test]
    fn the_trace_has_the_requested_length() {
        assert_eq!(trace(6, 10, 1).period(), Span::from_secs(10));
    }

    /// An hour of 6 Mbit/s: 500 opportunities per second.
    #[test]
    fn a_long_trace_has_the_documented_statistics() {
        let trace = trace(6, 3600, 1);
        let share =
            trace.mean_rate().as_bytes_per_sec() * 1000 / Rate::from_mbit_per_sec(6).as_bytes_per_sec();
        assert!((920..1010).contains(&share), "{share} thousandths of the mean, 968 expected");

        let mut seconds = vec![0; 3600];
        for at in trace.as_millis().iter().filter(|at| **at < 3_600_000) {
            seconds[*at as usize / 1000] += 1;
        }
        assert!(seconds.iter().max() < Some(&1100), "never much above twice the mean");
        let above = seconds.iter().filter(|count| **count > 750).count();
        assert!((750..1050).contains(&above), "{above} seconds in the upper quarter, about 870 expected");

        // Above 5 % of the mean rate a gap of half a second is unlikely: nearly all are outages.
        let gaps: Vec<u32> = trace.as_millis().windows(2).map(|pair| pair[1] - pair[0]).collect();
        let outage = gaps.iter().filter(|gap| **gap > 200).sum::<u32>();
        assert!((80_000..160_000).contains(&outage), "{outage} ms in outage, about 116 000 expected");
    }

    #[test]
    fn invalid_parameters_of_a_trace_are_refused() {
        let fine = Cellular { mean: Rate::from_mbit_per_sec(6), length: Span::from_secs(10), seed: 0 };
        for bad in [
            Cellular { length: Span::ZERO, ..fine },
            Cellular { length: Span::MAX, ..fine },
            Cellular { mean: Rate::MAX, ..fine },
            Cellular { mean: Rate::from_mbit_per_sec(100_000), ..fine },
        ] {
            let error = bad.trace().expect_err("out of range").to_string();
            assert!(error.contains("expected a"), "{error}");
        }
        assert!(Cellular { mean: Rate::ZERO, ..fine }.trace().is_ok(), "nothing but the last line");
    }
}
