//! The path's round-trip time: smoothed, its variation, and its minimum (RFC 6298 §2).

use headstart_units::Span;

/// Round-trip time as measured so far. Before the first sample everything is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rtt {
    /// The latest sample.
    pub latest: Span,
    /// SRTT of RFC 6298: a moving average with gain 1/8.
    pub smoothed: Span,
    /// RTTVAR of RFC 6298: mean deviation with gain 1/4.
    pub variation: Span,
    /// The smallest sample.
    pub min: Span,
}

impl Rtt {
    /// Takes one sample (RFC 6298 §2.2 and §2.3).
    pub fn update(&mut self, sample: Span) {
        let sample = sample.max(Span::from_nanos(1));
        self.latest = sample;
        if self.smoothed.is_zero() {
            self.smoothed = sample;
            self.variation = sample / 2;
            self.min = sample;
            return;
        }
        let deviation = self.smoothed.abs_diff(sample);
        let (variation, smoothed) = (self.variation.as_nanos(), self.smoothed.as_nanos());
        self.variation = Span::from_nanos(variation - variation / 4 + deviation.as_nanos() / 4);
        self.smoothed = Span::from_nanos(smoothed - smoothed / 8 + sample.as_nanos() / 8);
        self.min = self.min.min(sample);
    }

    /// SRTT + max(G, 4 RTTVAR), without bounds (RFC 6298 §2.3; G is a nanosecond here).
    #[must_use]
    pub fn timeout(&self) -> Span {
        self.smoothed + (self.variation * 4).max(Span::from_nanos(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_sets_everything() {
        let mut rtt = Rtt::default();
        rtt.update(Span::from_millis(100));
        assert_eq!(rtt.smoothed, Span::from_millis(100));
        assert_eq!(rtt.variation, Span::from_millis(50));
        assert_eq!(rtt.timeout(), Span::from_millis(300));
    }

    #[test]
    fn later_samples_move_the_average_by_an_eighth() {
        let mut rtt = Rtt::default();
        rtt.update(Span::from_millis(100));
        rtt.update(Span::from_millis(180));
        assert_eq!(rtt.smoothed, Span::from_millis(110));
        assert_eq!(rtt.variation, Span::from_micros(57_500), "3/4 of 50 ms plus 1/4 of 80 ms");
        assert_eq!(rtt.min, Span::from_millis(100));
    }
}
