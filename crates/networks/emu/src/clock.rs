//! The real clock: nanoseconds since the start of a run, monotonic.

use std::time::{SystemTime, UNIX_EPOCH};

use headstart_units::Time;
use rustix::time::{ClockId, clock_gettime};

/// A clock that starts with the run.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: u64,
    /// Nanoseconds from 1970 to the run's start, for files with dates.
    pub began_at_unix_nanos: u64,
}

impl Clock {
    /// Starts now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the emulator is what gives time to the elements")]
    pub fn start() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let began_at_unix_nanos = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        Self { origin: monotonic(), began_at_unix_nanos }
    }

    /// Time since the start.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Time {
        Time::from_nanos(monotonic().saturating_sub(self.origin))
    }
}

fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Seconds since boot and nanoseconds below 10^9: neither is ever negative.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
