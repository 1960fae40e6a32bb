//! Lateness of departures against their deadlines, and the validity of a run.

use std::fmt;

use hdrhistogram::Histogram;
use headstart_units::{Span, Time};

/// Highest lateness of a valid run's departures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerance {
    /// Limit on the 99th percentile.
    pub p99: Span,
    /// Limit on the maximum.
    pub worst: Span,
}

impl Default for Tolerance {
    /// 0.5 ms and 20 ms: later departures change completion times of tens of milliseconds by 1 %.
    fn default() -> Self {
        Self { p99: Span::from_micros(500), worst: Span::from_millis(20) }
    }
}

/// The distribution of lateness, to three digits.
#[derive(Clone, Debug)]
pub struct Lateness(Histogram<u64>);

/// Quantiles of the distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Departures measured.
    pub count: u64,
    /// Median.
    pub p50: Span,
    /// 90th percentile.
    pub p90: Span,
    /// 99th percentile.
    pub p99: Span,
    /// 99.9th percentile.
    pub p999: Span,
    /// Maximum.
    pub worst: Span,
}

impl Default for Lateness {
    fn default() -> Self {
        // Values above a minute count as one. The bounds are constants that the histogram accepts.
        Self(Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("bounds and digits are in range"))
    }
}

impl Lateness {
    /// Records a departure at `at` with deadline `due`.
    #[inline]
    pub fn record(&mut self, due: Time, at: Time) {
        self.0.saturating_record(at.since(due).as_nanos());
    }

    /// The quantiles.
    #[must_use]
    pub fn report(&self) -> Report {
        let quantile = |share| Span::from_nanos(self.0.value_at_quantile(share));
        Report {
            count: self.0.len(),
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            worst: Span::from_nanos(self.0.max()),
        }
    }
}

impl Report {
    /// True if the run was in time.
    #[must_use]
    pub fn is_within(&self, tolerance: Tolerance) -> bool {
        self.p99 <= tolerance.p99 && self.worst <= tolerance.worst
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |span: Span| span.as_nanos() as f64 / 1000.0;
        write!(
            f,
            "p50 {:.1} us, p90 {:.1} us, p99 {:.1} us, p99.9 {:.1} us, max {:.1} us",
            micros(self.p50),
            micros(self.p90),
            micros(self.p99),
            micros(self.p999),
            micros(self.worst)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(late_micros: impl IntoIterator<Item = u64>) -> Report {
        let mut lateness = Lateness::default();
        for late in late_micros {
            lateness.record(Time::from_millis(5), Time::from_nanos(5_000_000 + late * 1000));
        }
        lateness.report()
    }

    #[test]
    fn quantiles_are_those_of_the_departures() {
        let report = report(1..=1000);
        let micros = |span: Span| span.as_nanos() / 1000;
        assert_eq!(report.count, 1000);
        assert!((499..=502).contains(&micros(report.p50)), "{report}");
        assert!((989..=992).contains(&micros(report.p99)), "{report}");
        assert!((1000..=1001).contains(&micros(report.worst)), "{report}");
    }

    #[test]
    fn a_run_is_refused_for_many_late_departures_or_for_one_very_late() {
        let tolerance = Tolerance::default();
        assert!(report([10; 1000]).is_within(tolerance));
        assert!(report([]).is_within(tolerance), "nothing was late");
        assert!(!report([600; 1000]).is_within(tolerance));
        assert!(!report((0..1000).map(|n| if n == 7 { 30_000 } else { 10 })).is_within(tolerance));
        assert!(report((0..1000).map(|n| if n == 7 { 15_000 } else { 10 })).is_within(tolerance));
    }

    #[test]
    fn early_and_absurdly_late_departures_are_counted_without_overflow() {
        let mut lateness = Lateness::default();
        lateness.record(Time::from_millis(5), Time::from_millis(4));
        lateness.record(Time::ZERO, Time::NEVER);
        assert_eq!(lateness.report().count, 2);
    }
}
