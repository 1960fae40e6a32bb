//! Clocks: the time of records, the time until which to wait, the processor time of a thread.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use headstart_units::Time;

/// The wall clock as a [`Time`]: nanoseconds since 1970, the same before and after a restart.
/// Records are written and aged by this one clock.
#[must_use]
pub fn unix_now() -> Time {
    #[expect(clippy::disallowed_methods, reason = "the outside's time comes in here")]
    let now = SystemTime::now();
    // A clock before 1970 reads as 1970; 64 bits of nanoseconds last until 2554.
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// The time since something began.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// A stopwatch that begins now.
    #[must_use]
    pub fn start() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the outside's time comes in here")]
        let now = Instant::now();
        Self(now)
    }

    /// The time since then.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        #[expect(clippy::disallowed_methods, reason = "the outside's time comes in here")]
        let now = Instant::now();
        now.saturating_duration_since(self.0)
    }
}

/// Processor time of the calling thread so far. Elsewhere than on Linux: zero.
#[must_use]
pub fn processor_time() -> Duration {
    #[cfg(target_os = "linux")]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
    }
    #[cfg(not(target_os = "linux"))]
    Duration::ZERO
}

/// When to give up.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline after this time from now.
    #[must_use]
    pub fn after(wait: Duration) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the outside's time comes in here")]
        let now = Instant::now();
        // A year is longer than any run, and no instant overflows with it.
        Self(now + wait.min(Duration::from_secs(365 * 24 * 3600)))
    }

    /// The time left; `None` if it is over.
    #[must_use]
    pub fn left(self) -> Option<Duration> {
        #[expect(clippy::disallowed_methods, reason = "the outside's time comes in here")]
        let now = Instant::now();
        let left = self.0.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }
}
