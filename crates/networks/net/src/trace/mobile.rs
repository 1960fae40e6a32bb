//! Generate a trace like a phone's: standing still, on the move, or on Wi-Fi.
//!
//! WiseStart §4.3 runs on three kinds of recorded traces, which it does not publish. These are
//! models of the three:
//!
//! | kind | the rate | opportunities |
//! |---|---|---|
//! | stationary | a step of 3 % of the mean every 20 ms, within 60 to 140 % of it | binomial |
//! | variable | that of [`Cellular`], with outages | binomial |
//! | Wi-Fi | two states: 5/4 and 1/2 of the mean | in bursts, every 1 to 19 ms |
//!
//! The rate of a stationary trace moves up or down and is reflected at its bounds; opportunities of
//! the first two kinds are drawn as in [`Cellular`]. The rate of a variable trace is between zero
//! and twice the mean, with outages of a second once in half a minute. Wi-Fi stays in its better
//! state for half a second on average, in the other for a quarter; opportunities accumulate until
//! the medium is won, and then leave at once.
//!
//! Hence, in the long run: a stationary trace carries its mean and its rate is spread evenly over
//! the 60 to 140 %; a variable one carries 30/31 of its mean. A Wi-Fi trace carries its mean, two
//! thirds of the time at 5/4 and one third at 1/2 of it. Nine in ten of its milliseconds have no
//! opportunity, at any rate. The last line is at the requested length.
//!
//! # Limits
//!
//! Not models of any operator or place. Wi-Fi does not retransmit: loss on the air is the path's.

use headstart_units::{Rate, Ratio, Span};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::cellular::Cellular;
use super::{MAX_LINES, MAX_MILLIS, PACKET, Trace, TraceError};
use crate::chance::{Chance, up_to};

/// Kind of a mobile link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A cellular link at one place.
    Stationary,
    /// A cellular link on the move.
    Variable,
    /// A wireless LAN.
    Wifi,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Stationary, Self::Variable, Self::Wifi];
}

/// Parameters of a generated trace.
#[derive(Clone, Copy, Debug)]
pub struct Mobile {
    /// Kind of the link.
    pub kind: Kind,
    /// The mean rate; of a variable link, that outside outages.
    pub mean: Rate,
    /// Length of the trace, in whole milliseconds.
    pub length: Span,
    /// Seed of the random draws; the same seed gives the same trace.
    pub seed: u64,
}

const TICK_MILLIS: u64 = 20;
const STEP: Ratio = Ratio::percent(3);
const MIN_SHARE: Ratio = Ratio::percent(60);
const MAX_SHARE: Ratio = Ratio::percent(140);
/// One opportunity per millisecond, in the fixed point of rates.
const ONE: u64 = 1 << 32;

const GOOD: Ratio = Ratio::percent(125);
const BAD: Ratio = Ratio::percent(50);
const GOOD_ENDS: Chance = Chance::new(Ratio::new(TICK_MILLIS as u32, 500));
const BAD_ENDS: Chance = Chance::new(Ratio::new(TICK_MILLIS as u32, 250));
/// Largest wait for the medium in addition to the first, in milliseconds.
const CONTENTION_MILLIS: u64 = 18;

impl Mobile {
    /// Generates the trace.
    ///
    /// # Errors
    /// If no trace can have that rate or length.
    pub fn trace(&self) -> Result<Trace, TraceError> {
        let Self { kind, mean, length, seed } = *self;
        if kind == Kind::Variable {
            return Cellular { mean, length, seed }.trace();
        }
        let millis = length.as_nanos() / 1_000_000;
        if millis == 0 || millis > MAX_MILLIS {
            let expected = "a length from 1 ms to 2^32 - 1 ms";
            return Err(TraceError::OutOfRange { found: length.to_string(), expected });
        }
        if (mean * length).get() / PACKET.get() > MAX_LINES as u64 / 2 {
            let expected = "a rate and a length that make 2^23 packets or fewer";
            return Err(TraceError::OutOfRange { found: mean.to_string(), expected });
        }
        let per_milli = PACKET.get() * 1000;
        let mean = (u128::from(mean.as_bytes_per_sec()) * u128::from(ONE) / u128::from(per_milli)) as u64;
        let mut source = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut times = match kind {
            Kind::Wifi => wifi(mean, millis, &mut source),
            Kind::Stationary | Kind::Variable => stationary(mean, millis, &mut source),
        };
        times.push(millis as u32);
        Trace::from_millis(times)
    }
}

fn stationary(mean: u64, length: u64, source: &mut Xoshiro256PlusPlus) -> Vec<u32> {
    let (step, least, most) = (STEP.of(mean), MIN_SHARE.of(mean), MAX_SHARE.of(mean));
    let slots = most.div_ceil(ONE).max(1) * 4;
    let mut rate = mean;
    let mut times = vec![];
    for now in 0..length {
        if now % TICK_MILLIS == 0 {
            let is_up = source.next_u64() >> 63 == 1;
            rate = match is_up {
                true if rate + step > most => 2 * most - rate - step,
                true => rate + step,
                false if rate < least + step => 2 * least + step - rate,
                false => rate - step,
            };
        }
        let threshold = rate / slots;
        let count: u64 = (0..slots).map(|_| u64::from(source.next_u64() >> 32 < threshold)).sum();
        times.extend((0..count).map(|_| now as u32));
    }
    times
}

fn wifi(mean: u64, length: u64, source: &mut Xoshiro256PlusPlus) -> Vec<u32> {
    let (good, bad) = (GOOD.of(mean), BAD.of(mean));
    // Two thirds of the time are good: so is the beginning, by the same chance.
    let mut is_good = up_to(2, source) < 2;
    let (mut gathered, mut wins_at) = (0_u64, 0);
    let mut times = vec![];
    for now in 0..length {
        if now % TICK_MILLIS == 0 {
            let ends = if is_good { GOOD_ENDS } else { BAD_ENDS };
            is_good ^= ends.happens(source);
        }
        gathered += if is_good { good } else { bad };
        if now >= wins_at {
            times.extend((0..gathered / ONE).map(|_| now as u32));
            gathered %= ONE;
            wins_at = now + 1 + up_to(CONTENTION_MILLIS, source);
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(kind: Kind, mbit: u64, secs: u64, seed: u64) -> Trace {
        let mean = Rate::from_mbit_per_sec(mbit);
        Mobile { kind, mean, length: Span::from_secs(secs), seed }.trace().expect("in range")
    }

    /// Opportunities in each whole second.
    fn seconds(trace: &Trace, secs: usize) -> Vec<u64> {
        let mut seconds = vec![0; secs];
        for at in trace.as_millis().iter().filter(|at| (**at as usize) < secs * 1000) {
            seconds[*at as usize / 1000] += 1;
        }
        seconds
    }

    #[test]
    fn the_same_seed_gives_the_same_trace_of_the_requested_length() {
        for kind in Kind::ALL {
            assert_eq!(trace(kind, 6, 10, 1), trace(kind, 6, 10, 1));
            assert_ne!(trace(kind, 6, 10, 1), trace(kind, 6, 10, 2));
            assert_eq!(trace(kind, 6, 10, 1).period(), Span::from_secs(10));
        }
    }

    #[test]
    fn long_traces_carry_the_documented_mean() {
        for (kind, low, high) in
            [(Kind::Stationary, 950, 1050), (Kind::Variable, 920, 1010), (Kind::Wifi, 960, 1040)]
        {
            for mbit in [1, 6, 40] {
                let mean = trace(kind, mbit, 1800, 1).mean_rate().as_bytes_per_sec() * 1000
                    / Rate::from_mbit_per_sec(mbit).as_bytes_per_sec();
                assert!((low..high).contains(&mean), "{kind:?} at {mbit} Mbit/s: {mean} thousandths");
            }
        }
    }

    /// At 12 Mbit/s a second has 1000 opportunities on average, with a deviation of 30 by chance.
    #[test]
    fn a_stationary_rate_stays_within_its_bounds_and_a_variable_one_does_not() {
        let still = seconds(&trace(Kind::Stationary, 12, 1800, 1), 1800);
        assert!(still.iter().all(|count| (500..1500).contains(count)));
        let near = still.iter().filter(|count| (800..1200).contains(*count)).count();
        assert!((750..1150).contains(&near), "{near} of 1800 seconds in the middle half, about 900 expected");
        let moving = seconds(&trace(Kind::Variable, 12, 1800, 1), 1800);
        let beyond = moving.iter().filter(|count| !(600..1400).contains(*count)).count();
        assert!(
            beyond > 700,
            "{beyond} of 1800 seconds are beyond the bounds of a stationary link, about 1080 expected"
        );
    }

    #[test]
    fn wifi_has_two_rates_and_sends_in_bursts() {
        let trace = trace(Kind::Wifi, 12, 1800, 1);
        let mut distinct: Vec<u32> = trace.as_millis().to_vec();
        distinct.dedup();
        let share = distinct.len() as f64 / 1_800_000.0;
        assert!(
            (0.09..0.11).contains(&share),
            "opportunities in {share} of the milliseconds, a tenth expected"
        );
        let seconds = seconds(&trace, 1800);
        let high = seconds.iter().filter(|count| **count > 1150).count() as f64 / 1800.0;
        let low = seconds.iter().filter(|count| **count < 650).count() as f64 / 1800.0;
        assert!(high > 0.15 && low > 0.03, "whole seconds in one state: {high} good, {low} bad");
    }

    #[test]
    fn invalid_parameters_of_a_trace_are_refused() {
        for kind in Kind::ALL {
            let fine =
                Mobile { kind, mean: Rate::from_mbit_per_sec(6), length: Span::from_secs(10), seed: 0 };
            for bad in [
                Mobile { length: Span::ZERO, ..fine },
                Mobile { length: Span::MAX, ..fine },
                Mobile { mean: Rate::MAX, ..fine },
                Mobile { mean: Rate::from_mbit_per_sec(100_000), ..fine },
            ] {
                let error = bad.trace().expect_err("out of range").to_string();
                assert!(error.contains("expected a"), "{error}");
            }
            assert!(Mobile { mean: Rate::ZERO, ..fine }.trace().is_ok(), "nothing but the last line");
        }
    }
}
