//! The times at which a discipline updates its probability.

use headstart_units::{Span, Time};

/// Update times, one period apart. They need no timer: a queue does not change between calls, so
/// updates due since the last call are computed at the next.
#[derive(Debug)]
pub(super) struct Updates {
    next: Time,
    period: Span,
}

/// Limit of updates computed at once. By then the probability of an idle queue has converged.
pub(super) const MAX_UPDATES: usize = 4096;

impl Updates {
    /// The first is one period after time zero.
    pub(super) fn new(period: Span) -> Self {
        let period = period.max(Span::from_nanos(1));
        Self { next: Time::ZERO + period, period }
    }

    /// Updates due at or before `now`, in order; at most [`MAX_UPDATES`], the others are skipped.
    pub(super) fn due(&mut self, now: Time) -> impl Iterator<Item = Time> + use<> {
        let (first, period) = (self.next, self.period);
        let count = if first > now { 0 } else { now.since(first).as_nanos() / period.as_nanos() + 1 };
        self.next = first + period * count;
        (0..count.min(MAX_UPDATES as u64)).map(move |n| first + period * n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(updates: &mut Updates, now: u64) -> Vec<u64> {
        updates.due(Time::from_millis(now)).map(|at| at.as_nanos() / 1_000_000).collect()
    }

    #[test]
    fn each_instant_comes_once_and_in_order() {
        let mut updates = Updates::new(Span::from_millis(15));
        assert_eq!(due(&mut updates, 14), []);
        assert_eq!(due(&mut updates, 15), [15]);
        assert_eq!(due(&mut updates, 15), []);
        assert_eq!(due(&mut updates, 61), [30, 45, 60]);
        assert_eq!(due(&mut updates, 10), [], "time that goes back changes nothing");
        assert_eq!(due(&mut updates, 75), [75]);
    }

    #[test]
    fn a_long_idle_time_costs_a_bounded_number_of_steps() {
        let mut updates = Updates::new(Span::ZERO);
        assert_eq!(updates.due(Time::from_nanos(u64::MAX - 5)).count(), MAX_UPDATES);
        assert!(updates.due(Time::from_nanos(u64::MAX - 5)).count() == 0);
    }
}
