//! Trend of delay along a train of packets: a straight line fitted by least squares, in integers.
//!
//! Times are in whole microseconds and at most four and a half minutes, so that the sums of a train
//! of a hundred packets fit into 64 bits.

use headstart_units::{Span, Time};

/// The running sums of a least-squares fit of delay over sending time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trend {
    count: i64,
    /// The first sample; the others are relative to it.
    origin: Option<(Time, Span)>,
    /// Sending time of the newest sample.
    last_x: i64,
    sum_x: i64,
    sum_y: i64,
    sum_xx: i64,
    sum_xy: i64,
    sum_yy: i64,
}

impl Trend {
    /// A packet sent at `sent_at` took `delay`.
    pub fn add(&mut self, sent_at: Time, delay: Span) {
        let (first_sent_at, first_delay) = *self.origin.get_or_insert((sent_at, delay));
        let x = micros(sent_at.as_nanos(), first_sent_at.as_nanos());
        let y = micros(delay.as_nanos(), first_delay.as_nanos());
        self.count += 1;
        self.last_x = self.last_x.max(x);
        self.sum_x += x;
        self.sum_y += y;
        self.sum_xx += x * x;
        self.sum_xy += x * y;
        self.sum_yy += y * y;
    }

    /// Number of packets measured.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count as u64
    }

    /// True if the delays are consistent with a flat or falling line. Then the slope is not above
    /// zero by more than its own standard error, or all of the rise is below `resolution`.
    #[must_use]
    pub fn is_flat_or_falling(&self, resolution: Span) -> bool {
        let n = i128::from(self.count);
        let (sum_x, sum_y) = (i128::from(self.sum_x), i128::from(self.sum_y));
        let variance_x = n * i128::from(self.sum_xx) - sum_x * sum_x;
        let variance_y = n * i128::from(self.sum_yy) - sum_y * sum_y;
        let covariance = n * i128::from(self.sum_xy) - sum_x * sum_y;
        if covariance <= 0 || variance_x == 0 {
            return true;
        }
        // The rise is the slope, covariance / variance_x, times the length of the train.
        let resolution = i128::from(resolution.as_nanos() / 1_000);
        if covariance * i128::from(self.last_x) <= resolution * variance_x {
            return true;
        }
        // slope <= its standard error, squared and multiplied out; with n = 2 the error is zero.
        covariance * covariance * (n - 1) <= variance_x * variance_y && n > 2
    }
}

/// Microseconds after `since`; negative if before.
fn micros(nanos: u64, since: u64) -> i64 {
    let span = (nanos.abs_diff(since) / 1_000).min(LONGEST) as i64;
    if nanos < since { -span } else { span }
}

/// Times are capped at this many microseconds: four and a half minutes.
const LONGEST: u64 = 1 << 28;

#[cfg(test)]
mod tests {
    use super::*;

    /// Delays in microseconds of packets sent 10 ms apart.
    fn trend(delays: &[u64]) -> Trend {
        let mut trend = Trend::default();
        for (n, &delay) in delays.iter().enumerate() {
            trend.add(Time::from_millis(10 * n as u64), Span::from_micros(delay));
        }
        trend
    }

    /// Slopes and errors by hand: x = 0 to 4, slope = Sxy / 10, error^2 = (Syy - Sxy^2/10) / 30.
    #[test]
    fn a_rise_counts_when_it_is_more_than_its_own_error() {
        #[rustfmt::skip]
        let rows: [(&[u64], bool, &str); 8] = [
            (&[100, 100, 100, 100, 100], true,  "flat"),
            (&[500, 400, 300, 200, 100], true,  "falling"),
            (&[100, 200, 300, 400, 500], false, "rising without any error"),
            (&[100, 400, 100, 400, 100], true,  "up and down: slope 0"),
            (&[100, 100, 100, 100, 400], false, "Sxy 600: slope 60, error 34.6"),
            (&[100, 100, 400, 100, 200], true,  "Sxy 200: slope 20, error 46.2"),
            (&[100, 200],                false, "two packets: any rise counts"),
            (&[100],                     true,  "one packet rises nowhere"),
        ];
        for (delays, expected, why) in rows {
            assert_eq!(trend(delays).is_flat_or_falling(Span::ZERO), expected, "{why}");
        }
    }

    #[test]
    fn a_rise_below_the_resolution_is_none() {
        let trend = trend(&[100, 110, 120, 130, 140]);
        assert!(!trend.is_flat_or_falling(Span::from_micros(39)));
        assert!(trend.is_flat_or_falling(Span::from_micros(40)));
    }
}
