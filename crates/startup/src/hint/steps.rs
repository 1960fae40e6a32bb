//! How coarse a bandwidth is made before it is told.
//!
//! BS §7 names the danger: an exact bandwidth, read off a modem, is nearly a name. The cure
//! proposed there is quantisation, and the questions left open are how coarse it must be and what
//! that costs.
//!
//! The steps are preferred numbers (ISO 3): ten to a decade, R10, or five, R5. Links are sold at
//! such rates, so that many a client loses nothing. A rate is rounded *down*: what is told is never
//! more than what was estimated, and what it is short of is made up by the avoidance that follows.
//! From 1 Mbit/s to 1 Gbit/s there are 31 values (R10) or 16 (R5): not more than 5.0 or 4 bits that
//! tell clients apart, and with the access technology 2.8 bits more, if all were equally frequent;
//! they are not, and it is less.

use headstart_units::Rate;

/// Which steps a bandwidth is rounded down to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Steps {
    /// Ten to a decade: at most 22 % is lost, 11 % on average.
    #[default]
    Ten,
    /// Five to a decade: at most 38 % is lost, 20 % on average.
    Five,
    /// As estimated, to the kbit/s. Tells clients apart.
    Exact,
}

/// ISO 3, R10, to three digits; every other one is R5.
const R10: [u64; 10] = [100, 125, 160, 200, 250, 315, 400, 500, 630, 800];

/// With less than this, nothing that a hint could say is faster than an initial window of ten.
const LEAST_KBIT: u64 = 100;

/// Clients beyond it would be so few that it named them.
const MOST_KBIT: u64 = 10_000_000;

impl Steps {
    /// The largest step that is not more than `rate`; the largest of all for anything above; `None`
    /// below the smallest.
    #[must_use]
    pub fn floor(self, rate: Rate) -> Option<Rate> {
        if rate < kbit(LEAST_KBIT) {
            return None;
        }
        let every = match self {
            Self::Exact => return Some(rate),
            Self::Ten => 1,
            Self::Five => 2,
        };
        let rate = rate.min(kbit(MOST_KBIT));
        let mut decade = 1;
        while kbit(LEAST_KBIT * decade * 10) <= rate {
            decade *= 10;
        }
        let steps = R10.iter().step_by(every).map(|step| kbit(step * decade));
        steps.take_while(|step| *step <= rate).last()
    }
}

fn kbit(count: u64) -> Rate {
    Rate::from_bits_per_sec(count * 1000)
}
