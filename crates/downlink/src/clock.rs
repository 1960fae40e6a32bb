//! The two places where time is read.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use headstart_units::Time;

/// The wall clock, as nanoseconds since 1970.
#[must_use]
pub fn unix_now() -> Time {
    // The outside's time comes in here; everything else is told.
    #[allow(clippy::disallowed_methods)]
    let now = SystemTime::now();
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// When to give up.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// That long from now.
    #[must_use]
    pub fn after(wait: Duration) -> Self {
        #[allow(clippy::disallowed_methods)]
        let now = Instant::now();
        // A year is for ever here, and no instant overflows with it.
        Self(now + wait.min(Duration::from_secs(365 * 24 * 3600)))
    }

    /// What is left; `None` if it is over.
    #[must_use]
    pub fn left(self) -> Option<Duration> {
        #[allow(clippy::disallowed_methods)]
        let now = Instant::now();
        let left = self.0.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    /// Whichever comes first.
    #[must_use]
    pub fn or_after(self, wait: Duration) -> Self {
        Self(self.0.min(Self::after(wait).0))
    }
}
