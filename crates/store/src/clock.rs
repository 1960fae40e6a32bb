//! The time that records carry.

use std::time::{SystemTime, UNIX_EPOCH};

use headstart_units::Time;

/// The wall clock as a [`Time`]: nanoseconds since 1970, the same before and after a restart. Whoever gives records to a
/// [`History`](crate::History) and asks schemes about their age uses this clock for both.
#[must_use]
pub fn unix_now() -> Time {
    // This is where the outside's time comes in; everything else is told.
    #[allow(clippy::disallowed_methods)]
    let now = SystemTime::now();
    // A clock before 1970 is no clock; 64 bits of nanoseconds last until 2554.
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}
