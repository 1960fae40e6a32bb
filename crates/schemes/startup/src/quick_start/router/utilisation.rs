//! Utilisation of a link: the moving average, or the peak of the last intervals.
//!
//! Source: QS §7.1, Equation 3 and the paragraph after it.
//!
//! The measure is the time during which the transmitter was busy. A first-in-first-out link is busy
//! without a break until all accepted data is sent, so acceptance times and sizes suffice.
//!
//! # Deviations
//!
//! - The text leaves M(t) open; here it is the busy share of the interval that ended at t, so never
//!   above one, also while a queue stands.
//! - Intervals without a query are computed later, with the same result.

use alloc::vec;
use alloc::vec::Vec;

use headstart_units::{Ratio, Span, Time};

/// Full utilisation: counted in parts of 10^9.
pub const FULL: u64 = 1_000_000_000;

/// Measurement of the use of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// U <- w M + (1 - w) U after each interval (Equation 3).
    MovingAverage {
        /// Delta, the interval between measurements.
        interval: Span,
        /// The weight w of the new measurement.
        weight: Ratio,
    },
    /// The highest of the last N measurements.
    Peak {
        /// The length of one measurement.
        interval: Span,
        /// N: the number of measurements.
        intervals: u16,
    },
}

/// A link's meter.
#[derive(Clone, Debug)]
pub struct Meter {
    measure: Measure,
    interval: Span,
    /// Time at which the transmitter will have sent all accepted data.
    free_at: Time,
    /// Time to send all data accepted so far.
    taken: Span,
    /// The part of it that was sent at the end of the last interval.
    sent: Span,
    /// End of the present interval.
    ends_at: Time,
    /// The average; or the last measurements, of which `oldest` is overwritten next.
    average: u64,
    last: Vec<u64>,
    oldest: usize,
}

impl Meter {
    /// The meter of an idle link.
    #[must_use]
    pub fn new(measure: Measure) -> Self {
        let (interval, kept) = match measure {
            Measure::MovingAverage { interval, .. } => (interval, 0),
            Measure::Peak { interval, intervals } => (interval, usize::from(intervals.max(1))),
        };
        let interval = interval.max(Span::from_nanos(1));
        Self {
            measure,
            interval,
            free_at: Time::ZERO,
            taken: Span::ZERO,
            sent: Span::ZERO,
            ends_at: Time::ZERO + interval,
            average: 0,
            last: vec![0; kept],
            oldest: 0,
        }
    }

    /// The link accepted a packet with the transmission time `service`.
    #[inline]
    pub fn on_packet(&mut self, now: Time, service: Span) {
        if now >= self.ends_at {
            self.advance(now);
        }
        self.free_at = self.free_at.max(now) + service;
        self.taken += service;
    }

    /// The use of the link in parts of 10^9, from the intervals that are over.
    pub fn utilisation(&mut self, now: Time) -> u64 {
        self.advance(now);
        match self.measure {
            Measure::MovingAverage { .. } => self.average,
            Measure::Peak { .. } => self.last.iter().copied().max().unwrap_or(0),
        }
    }

    fn advance(&mut self, now: Time) {
        while self.ends_at <= now {
            let sent = self.taken.saturating_sub(self.free_at.since(self.ends_at));
            let busy = sent.saturating_sub(self.sent);
            self.sent = sent;
            self.measured(parts(busy, self.interval));
            self.ends_at += self.interval;
            if busy.is_zero() && self.free_at <= self.ends_at && self.is_all_zero() {
                // Nothing changes any more: advance to the present interval in one step.
                let missed = now.since(self.ends_at).as_nanos() / self.interval.as_nanos();
                self.ends_at += self.interval * missed;
            }
        }
    }

    fn measured(&mut self, use_of_interval: u64) {
        match self.measure {
            Measure::MovingAverage { weight, .. } => {
                let (old, new) = (weight.of(self.average), weight.of(use_of_interval));
                // Rounded towards the measurement: an idle link's average does reach zero.
                self.average = if self.average > use_of_interval {
                    (self.average - old + new).saturating_sub(u64::from(old == new)).max(use_of_interval)
                } else {
                    self.average - old + new
                };
            }
            Measure::Peak { .. } => {
                self.last[self.oldest] = use_of_interval;
                self.oldest = (self.oldest + 1) % self.last.len();
            }
        }
    }

    fn is_all_zero(&self) -> bool {
        self.average == 0 && self.last.iter().all(|measured| *measured == 0)
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.last.capacity() * size_of::<u64>()
    }
}

fn parts(busy: Span, interval: Span) -> u64 {
    let wide = u128::from(busy.as_nanos()) * u128::from(FULL) / u128::from(interval.as_nanos());
    (wide as u64).min(FULL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INTERVAL: Span = Span::from_millis(100);

    fn peak(intervals: u16) -> Meter {
        Meter::new(Measure::Peak { interval: INTERVAL, intervals })
    }

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn a_backlog_keeps_the_link_busy_in_the_intervals_after_it() {
        let mut meter = peak(1);
        meter.on_packet(at(50), Span::from_millis(120));
        #[rustfmt::skip]
        let rows = [
            (99, 0, "the first interval is not over"),
            (100, 500, "busy from 50 to 100"),
            (200, 700, "and to 170"),
            (300, 0, "idle"),
        ];
        for (millis, thousandths, why) in rows {
            assert_eq!(meter.utilisation(at(millis)), thousandths * FULL / 1000, "{why}");
        }
    }

    /// QS §7.1: the highest of the most recent N measurements.
    #[test]
    fn the_peak_is_remembered_for_n_intervals() {
        let mut meter = peak(3);
        meter.on_packet(at(0), Span::from_millis(60));
        meter.on_packet(at(100), Span::from_millis(20));
        for (millis, thousandths) in [(100, 600), (200, 600), (399, 600), (400, 200), (500, 0), (5_000, 0)] {
            assert_eq!(meter.utilisation(at(millis)), thousandths * FULL / 1000, "at {millis} ms");
        }
    }

    /// QS Equation 3 with w = 1/4: 0.25 x 1; 0.25 x 0 + 0.75 x 0.25; ...
    #[test]
    fn the_average_moves_by_its_weight() {
        let weight = Ratio::new(1, 4);
        let mut meter = Meter::new(Measure::MovingAverage { interval: INTERVAL, weight });
        meter.on_packet(at(0), INTERVAL);
        for (millis, parts) in [(99, 0), (100, 250_000_000), (200, 187_500_000), (300, 140_625_000)] {
            assert_eq!(meter.utilisation(at(millis)), parts, "at {millis} ms");
        }
        assert_eq!(meter.utilisation(at(100_000_000)), 0, "an idle link is idle in the end");
    }

    proptest! {
        /// For any arrivals, use is never above one, and queries in between change nothing.
        #[test]
        fn reading_the_utilisation_changes_nothing(
            packets in proptest::collection::vec((0_u64..80, 0_u64..50), 1..60),
            average: bool,
        ) {
            let weight = Ratio::new(3, 10);
            let measure = if average {
                Measure::MovingAverage { interval: INTERVAL, weight }
            } else {
                Measure::Peak { interval: INTERVAL, intervals: 4 }
            };
            let (mut polled, mut left_alone) = (Meter::new(measure), Meter::new(measure));
            let mut now = 0;
            for (gap, service) in packets {
                now += gap;
                for meter in [&mut polled, &mut left_alone] {
                    meter.on_packet(at(now), Span::from_millis(service));
                }
                prop_assert!(polled.utilisation(at(now)) <= FULL);
            }
            prop_assert_eq!(polled.utilisation(at(now + 1000)), left_alone.utilisation(at(now + 1000)));
        }
    }
}
