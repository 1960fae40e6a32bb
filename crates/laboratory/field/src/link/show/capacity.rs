//! Capacity of a link over time: a line of its log's header, and the shaded area of a figure.

use std::fmt;
use std::str::FromStr;

use headstart_net::changing::LinkChange;
use headstart_net::{LinkPlan, LinkRate};
use headstart_units::{Bytes, Rate, Span, Time};

/// The names of the header's lines.
pub const DOWN_CAPACITY: &str = "down capacity, ms:kbit/s";
/// Name of the header's line for the way back.
pub const UP_CAPACITY: &str = "up capacity, ms:kbit/s";

/// More steps do not fit into a line of a log's header.
const MAX_STEPS: u64 = 250;
/// More steps cannot be distinguished in a picture.
const MAX_DRAWN: u64 = 2000;

/// A rate that changes in steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Since when which rate, in order; the first one at zero.
    steps: Vec<(Time, Rate)>,
    /// After this they begin anew.
    period: Option<Span>,
}

impl Capacity {
    /// The capacity of a link; of a trace in parts, each with its mean. `None` if it changes too
    /// often.
    #[must_use]
    pub fn of(link: &LinkPlan) -> Option<Self> {
        let (steps, period) = match &link.rate {
            LinkRate::Trace(trace) => {
                let period = trace.period();
                let millis = (period.as_nanos() / 1_000_000).div_ceil(MAX_STEPS).max(1);
                let part = |number: u64| {
                    let (from, to) =
                        (Span::from_millis(number * millis), Span::from_millis((number + 1) * millis));
                    let to = to.min(period);
                    let bytes = trace.bytes_in(to) - trace.bytes_in(from);
                    (Time::ZERO + from, bytes / to.saturating_sub(from))
                };
                let parts = (period.as_nanos() / 1_000_000).div_ceil(millis);
                ((0..parts).map(part).collect(), Some(period))
            }
            LinkRate::Constant(rate) => {
                let changes = link.changes.iter().filter_map(|(at, change)| match change {
                    LinkChange::Rate(rate) => Some((*at, *rate)),
                    LinkChange::Delay(_) => None,
                });
                ([(Time::ZERO, *rate)].into_iter().chain(changes).collect::<Vec<_>>(), None)
            }
        };
        (steps.len() as u64 <= MAX_STEPS).then_some(Self { steps, period })
    }

    /// Highest rate of the link.
    #[must_use]
    pub fn peak(&self) -> Rate {
        self.steps.iter().map(|(_, rate)| *rate).max().unwrap_or_default()
    }

    /// Steps of the rate up to `end`, of which the last holds the rate at `end`. Steps too short to
    /// be visible are one, of their mean.
    #[must_use]
    pub fn until(&self, end: Time) -> Vec<(Time, Rate)> {
        let rounds = self.period.map_or(1, |period| end.as_nanos() / period.as_nanos().max(1) + 1);
        if let Some(period) =
            self.period.filter(|_| rounds.saturating_mul(self.steps.len() as u64) > MAX_DRAWN)
        {
            let ends = self.steps.iter().skip(1).map(|(at, _)| *at).chain([Time::ZERO + period]);
            let bytes: Bytes =
                self.steps.iter().zip(ends).map(|((at, rate), end)| *rate * end.since(*at)).sum();
            return vec![(Time::ZERO, bytes / period), (end, bytes / period)];
        }
        let mut steps = vec![];
        let mut round = Span::ZERO;
        loop {
            for (at, rate) in &self.steps {
                let at = *at + round;
                if at > end {
                    break;
                }
                steps.push((at, *rate));
            }
            match self.period.filter(|period| !period.is_zero() && Time::ZERO + round + *period <= end) {
                Some(period) => round += period,
                None => break,
            }
        }
        if let Some((_, rate)) = steps.last().copied() {
            steps.push((end, rate));
        }
        steps
    }
}

impl fmt::Display for Capacity {
    /// `0:25000 10000:5000`: milliseconds and kbit/s; it repeats with `every 60000` at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (at, rate)) in self.steps.iter().enumerate() {
            let space = if number > 0 { " " } else { "" };
            write!(f, "{space}{}:{}", at.as_nanos() / 1_000_000, rate.as_bits_per_sec() / 1000)?;
        }
        match self.period {
            Some(period) => write!(f, " every {}", period.as_nanos() / 1_000_000),
            None => Ok(()),
        }
    }
}

impl FromStr for Capacity {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (steps, period) = match text.split_once(" every ") {
            Some((steps, period)) => (steps, Some(Span::from_millis(period.parse().map_err(drop)?))),
            None => (text, None),
        };
        let step = |text: &str| {
            let (millis, kbit) = text.split_once(':')?;
            let kbit = kbit.parse::<u64>().ok()?;
            Some((Time::from_millis(millis.parse().ok()?), Rate::from_bits_per_sec(kbit.checked_mul(1000)?)))
        };
        let steps: Vec<_> = steps.split(' ').map(step).collect::<Option<_>>().ok_or(())?;
        Ok(Self { steps, period })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_net::Limit;
    use std::sync::Arc;

    fn steps(capacity: &Capacity, end_ms: u64) -> Vec<(u64, u64)> {
        let steps = capacity.until(Time::from_millis(end_ms));
        steps.iter().map(|(at, rate)| (at.as_nanos() / 1_000_000, rate.as_bits_per_sec() / 1000)).collect()
    }

    #[test]
    fn the_capacity_of_a_link_survives_writing_and_reading() {
        let mut link = LinkPlan::new(Rate::from_mbit_per_sec(25), Span::ZERO, Limit::NONE);
        link.changes.push((Time::from_millis(10_000), LinkChange::Rate(Rate::from_mbit_per_sec(5))));
        link.changes.push((Time::from_millis(11_000), LinkChange::Delay(Span::ZERO)));
        let capacity = Capacity::of(&link).expect("two steps");
        assert_eq!(capacity.to_string(), "0:25000 10000:5000");
        assert_eq!(capacity.to_string().parse(), Ok(capacity.clone()));
        assert_eq!(steps(&capacity, 20_000), [(0, 25_000), (10_000, 5000), (20_000, 5000)]);
        assert_eq!(steps(&capacity, 9), [(0, 25_000), (9, 25_000)]);
        assert_eq!(capacity.peak(), Rate::from_mbit_per_sec(25));
        for text in ["", "0:", "0:1 every", "0:1 every x", "0:99999999999999999999"] {
            assert!(text.parse::<Capacity>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_capacity_of_a_trace_is_reported_in_parts_and_repeats() {
        // 12 Mbit/s for ten milliseconds, then half of it.
        let trace = (1..=10).chain([12, 14, 16, 18, 20]).map(|ms| format!("{ms}\n")).collect::<String>();
        let mut link = LinkPlan::new(Rate::ZERO, Span::ZERO, Limit::NONE);
        link.rate = LinkRate::Trace(Arc::new(trace.parse().expect("a trace")));
        let capacity = Capacity::of(&link).expect("twenty steps");
        assert!(capacity.to_string().ends_with(" 18:0 19:12000 every 20"), "{capacity}");
        assert_eq!(capacity.to_string().parse(), Ok(capacity.clone()));
        let all = steps(&capacity, 25);
        assert_eq!((all.len(), all[0], all[20], all[25]), (27, (0, 12_000), (20, 12_000), (25, 12_000)));
        assert_eq!(steps(&capacity, 1_000_000), [(0, 9_000), (1_000_000, 9_000)], "its mean");
    }
}
