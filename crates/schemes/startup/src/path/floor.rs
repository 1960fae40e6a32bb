//! The smallest RTT of about the last round trip.
//!
//! A window as long as the path's minimum RTT slides in four steps: each quarter keeps its own
//! minimum and the oldest is dropped as a whole. So the window is three to four quarters long.

use headstart_units::{Span, Time};

const QUARTERS: usize = 4;

/// A sliding minimum over the last minimum RTT.
#[derive(Clone, Copy, Debug)]
pub struct Floor {
    /// The quarters' minima, newest first; [`Span::MAX`] where there was no sample.
    quarters: [Span; QUARTERS],
    /// Beginning of the newest quarter.
    began: Time,
}

impl Default for Floor {
    fn default() -> Self {
        Self { quarters: [Span::MAX; QUARTERS], began: Time::ZERO }
    }
}

impl Floor {
    /// Takes a sample of a path whose minimum RTT is `min_rtt`.
    pub fn update(&mut self, now: Time, sample: Span, min_rtt: Span) {
        let quarter = (min_rtt / QUARTERS as u64).max(Span::from_nanos(1));
        let passed = now.since(self.began).as_nanos() / quarter.as_nanos();
        if passed >= QUARTERS as u64 {
            self.quarters = [Span::MAX; QUARTERS];
            self.began = now;
        } else {
            self.quarters.rotate_right(passed as usize);
            self.quarters[..passed as usize].fill(Span::MAX);
            self.began += quarter * passed;
        }
        self.quarters[0] = self.quarters[0].min(sample);
    }

    /// The smallest sample of the window; [`Span::MAX`] before there is any.
    #[must_use]
    pub fn get(&self) -> Span {
        self.quarters.into_iter().min().unwrap_or(Span::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_sample_counts_for_about_one_round_trip() {
        let mut floor = Floor::default();
        let min = Span::from_millis(40);
        assert_eq!(floor.get(), Span::MAX);
        for (at, sample, expected, why) in [
            (5_000, 40, 40, "whatever the clock showed when it began"),
            (5_010, 60, 40, ""),
            (5_039, 60, 40, "39 ms old"),
            (5_040, 60, 60, "the quarter of 5 000 has gone"),
            (5_041, 50, 50, "a lower one counts at once"),
            (5_079, 70, 50, "still in the window"),
            (5_081, 70, 70, "gone"),
            (9_000, 90, 90, "after a pause nothing of the past is left"),
        ] {
            floor.update(Time::from_millis(at), Span::from_millis(sample), min);
            assert_eq!(floor.get(), Span::from_millis(expected), "{at}: {why}");
        }
    }

    #[test]
    fn a_path_without_length_still_has_a_floor() {
        let mut floor = Floor::default();
        floor.update(Time::NEVER, Span::ZERO, Span::ZERO);
        assert_eq!(floor.get(), Span::ZERO);
    }
}
