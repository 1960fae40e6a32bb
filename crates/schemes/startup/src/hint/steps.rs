//! Quantisation of the bandwidth in a hint.
//!
//! BS §7 names the privacy risk: an exact bandwidth, read from a modem, nearly identifies the
//! client. It proposes quantisation, and leaves its step and its cost open.
//!
//! The steps are preferred numbers (ISO 3): ten to a decade, R10, or five, R5. Links are sold at
//! such rates, so that many clients lose nothing. A rate is rounded *down*: a hint never exceeds
//! the estimate, and congestion avoidance makes up the difference. From 1 Mbit/s to 1 Gbit/s there
//! are 31 values (R10) or 16 (R5): at most 5.0 or 4 bits of identifying information. The access
//! technology adds at most 2.8 bits. The true amount is less: values are not equally frequent.

use headstart_units::Rate;

/// The steps to which a bandwidth is rounded down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Steps {
    /// Ten to a decade: at most 22 % is lost, 11 % on average.
    #[default]
    Ten,
    /// Five to a decade: at most 38 % is lost, 20 % on average.
    Five,
    /// As estimated, to the kbit/s. Identifies clients.
    Exact,
}

/// ISO 3, R10, to three digits; every other one is R5.
const R10: [u64; 10] = [100, 125, 160, 200, 250, 315, 400, 500, 630, 800];

/// Smallest step: a lower rate would be no faster than an initial window of ten.
const MIN_KBIT: u64 = 100;

/// Largest step: clients above are few enough to be identified by it.
const MAX_KBIT: u64 = 10_000_000;

impl Steps {
    /// The largest step not above `rate`; `None` below the smallest.
    #[must_use]
    pub fn floor(self, rate: Rate) -> Option<Rate> {
        if rate < kbit(MIN_KBIT) {
            return None;
        }
        let every = match self {
            Self::Exact => return Some(rate),
            Self::Ten => 1,
            Self::Five => 2,
        };
        let rate = rate.min(kbit(MAX_KBIT));
        let mut decade = 1;
        while kbit(MIN_KBIT * decade * 10) <= rate {
            decade *= 10;
        }
        let steps = R10.iter().step_by(every).map(|step| kbit(step * decade));
        steps.take_while(|step| *step <= rate).last()
    }
}

fn kbit(count: u64) -> Rate {
    Rate::from_bits_per_sec(count * 1000)
}
