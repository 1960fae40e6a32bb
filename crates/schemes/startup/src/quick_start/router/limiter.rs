//! A limit on the requests processed per second (QS §8).
//!
//! Implemented by the scheduled time of the next request; requests of 0.1 s may arrive early.

use headstart_units::{Span, Time};

/// A limit on requests.
#[derive(Clone, Copy, Debug)]
pub struct Limiter {
    gap: Span,
    slack: Span,
    on_schedule_at: Time,
}

const SECOND: u64 = 1_000_000_000;

impl Limiter {
    /// A limit of `per_second` requests in the long run; zero admits none.
    #[must_use]
    pub fn new(per_second: u32) -> Self {
        let gap = SECOND.checked_div(u64::from(per_second)).map_or(Span::MAX, Span::from_nanos);
        let slack = if per_second == 0 { Span::ZERO } else { Span::from_nanos(SECOND / 10).max(gap) };
        Self { gap, slack, on_schedule_at: Time::ZERO }
    }

    /// True if one more request may be processed.
    pub fn admits(&mut self, now: Time) -> bool {
        let next = self.on_schedule_at.max(now) + self.gap;
        let is_admitted = next <= now + self.slack;
        if is_admitted {
            self.on_schedule_at = next;
        }
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_above_the_rate_limit_are_refused() {
        for (per_second, micros_between, expected) in
            [(100, 10, 1009..=1009), (100, 20_000, 500..=500), (1, 1, 10..=10), (0, 1, 0..=0)]
        {
            let mut limiter = Limiter::new(per_second);
            let ten_seconds = 10_000_000 / micros_between;
            let admitted = (0..ten_seconds)
                .filter(|n| limiter.admits(Time::from_nanos(n * micros_between * 1000)))
                .count();
            assert!(expected.contains(&admitted), "{per_second} a second: {admitted}");
        }
    }
}
