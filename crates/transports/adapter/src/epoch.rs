//! The stack's instants as [`Time`]: nanoseconds since 1970 by default, so that records outlive the
//! process.

use std::time::{Duration, Instant, SystemTime};

use headstart_units::{Span, Time};

/// The mapping between the stack's clock and [`Time`]: one moment on both.
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    base: Instant,
    at: Time,
}

impl Epoch {
    /// An epoch that maps `base` to `at`: for virtual time.
    #[must_use]
    pub const fn new(base: Instant, at: Time) -> Self {
        Self { base, at }
    }

    /// Reads both clocks of this host, once.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the edge: from here on time is an argument")]
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { base: Instant::now(), at: Time::ZERO + span(since) }
    }

    /// The moment's [`Time`].
    #[must_use]
    pub const fn at(&self) -> Time {
        self.at
    }

    /// An instant as [`Time`].
    #[must_use]
    pub fn time(&self, instant: Instant) -> Time {
        match instant.checked_duration_since(self.base) {
            Some(after) => self.at + span(after),
            None => self.at - span(self.base.duration_since(instant)),
        }
    }

    /// A [`Time`] as an instant; the base for times before it.
    #[must_use]
    pub fn instant(&self, time: Time) -> Instant {
        self.base + Duration::from_nanos(time.since(self.at).as_nanos())
    }
}

/// An epoch that caches the last instant: the stack passes the same one for all packets of a batch.
#[derive(Clone, Copy, Debug)]
pub struct EpochCache {
    epoch: Epoch,
    read: (Instant, Time),
}

impl EpochCache {
    /// A cache that holds `now`.
    #[must_use]
    pub fn new(epoch: Epoch, now: Instant) -> Self {
        Self { epoch, read: (now, epoch.time(now)) }
    }

    /// An instant as [`Time`], as [`Epoch::time`] gives it.
    #[inline]
    pub fn time(&mut self, instant: Instant) -> Time {
        if self.read.0 != instant {
            self.read = (instant, self.epoch.time(instant));
        }
        self.read.1
    }

    /// The time that [`Self::time`] returned last.
    #[must_use]
    pub const fn last(&self) -> Time {
        self.read.1
    }
}

/// A duration as [`Span`]; saturates after 584 years.
#[must_use]
pub fn span(duration: Duration) -> Span {
    // In 64 bits: this runs for each packet.
    let seconds = duration.as_secs().saturating_mul(1_000_000_000);
    Span::from_nanos(seconds.saturating_add(duration.subsec_nanos().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_keep_their_differences() {
        let epoch = Epoch::now();
        let base = epoch.base;
        let (early, late) = (epoch.time(base), epoch.time(base + Duration::from_nanos(1_500)));
        assert_eq!(late.since(early), Span::from_nanos(1_500));
        assert_eq!(epoch.instant(late), base + Duration::from_nanos(1_500));
        let before = base.checked_sub(Duration::from_millis(1));
        assert!(before.is_none_or(|before| early.since(epoch.time(before)) == Span::from_millis(1)));
    }
}
