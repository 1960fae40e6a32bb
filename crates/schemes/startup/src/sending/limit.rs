//! The time of a transfer, divided by the reason that held back the next packet.

use headstart_units::{Span, Time};

/// The reason for which the next packet of a transfer, or its last byte, was held back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitedBy {
    /// The connection was not established at the sender.
    Handshake,
    /// The congestion window was full.
    Window,
    /// The pacer had not released it.
    Pacer,
    /// The receiver's window was full.
    Receiver,
    /// The application had not written it.
    #[default]
    Application,
    /// Lost data was under repair, or a timer had to find the loss.
    Recovery,
    /// All was sent: the last bytes were on the path.
    Path,
}

impl LimitedBy {
    /// All limits, in the order of [`LimitClock::spans`].
    pub const ALL: [Self; 7] = [
        Self::Handshake,
        Self::Window,
        Self::Pacer,
        Self::Receiver,
        Self::Application,
        Self::Recovery,
        Self::Path,
    ];

    /// The limit in one word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Window => "window",
            Self::Pacer => "pacer",
            Self::Receiver => "receiver",
            Self::Application => "application",
            Self::Recovery => "recovery",
            Self::Path => "path",
        }
    }
}

/// Adds up the time under each limit. The sum of all is the time from the beginning to the stop.
#[derive(Clone, Copy, Debug, Default)]
pub struct LimitClock {
    /// Since when the present limit holds; `None` before the beginning.
    since: Option<Time>,
    limit: LimitedBy,
    /// The transfer is complete: time counts again from [`Self::resume`] on.
    is_stopped: bool,
    spans: [Span; LimitedBy::ALL.len()],
}

impl LimitClock {
    /// The connection is established; the time before it is `handshake`.
    pub const fn begin(&mut self, now: Time, handshake: Span) {
        self.since = Some(now);
        self.spans[LimitedBy::Handshake as usize] = handshake;
    }

    /// From now on this is the limit.
    #[inline]
    pub fn switch(&mut self, now: Time, limit: LimitedBy) {
        if limit != self.limit && !self.is_stopped && self.since.is_some() {
            self.charge(now, self.limit);
            self.limit = limit;
        }
    }

    /// A timer ended the present wait: it was for a loss to be found.
    pub fn was_loss(&mut self, now: Time) {
        if !self.is_stopped && self.since.is_some() {
            self.charge(now, LimitedBy::Recovery);
        }
    }

    /// The receiver has everything that was written.
    pub fn stop(&mut self, now: Time) {
        if !self.is_stopped {
            self.charge(now, self.limit);
            (self.limit, self.is_stopped) = (LimitedBy::Application, true);
        }
    }

    /// The application writes more; the time since the stop was its own.
    pub fn resume(&mut self, now: Time) {
        if core::mem::take(&mut self.is_stopped) {
            self.charge(now, LimitedBy::Application);
        }
    }

    /// Time under each limit up to the latest change, in the order of [`LimitedBy::ALL`].
    #[must_use]
    pub const fn spans(&self) -> &[Span; LimitedBy::ALL.len()] {
        &self.spans
    }

    /// The time since the latest change was under this limit. For senders to which that is known
    /// only afterwards; the first call begins.
    pub fn charge(&mut self, now: Time, limit: LimitedBy) {
        if let Some(since) = self.since.replace(now) {
            self.spans[limit as usize] += now.since(since);
        }
    }

    /// The latest change; `None` before the first.
    #[must_use]
    pub const fn since(&self) -> Option<Time> {
        self.since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_under_all_limits_is_that_of_the_transfer() {
        let at = Time::from_millis;
        let mut clock = LimitClock::default();
        // Before the beginning nothing counts.
        clock.switch(at(3), LimitedBy::Window);
        clock.begin(at(100), Span::from_millis(50));
        clock.switch(at(110), LimitedBy::Pacer);
        clock.switch(at(130), LimitedBy::Path);
        clock.was_loss(at(200));
        clock.switch(at(201), LimitedBy::Recovery);
        clock.stop(at(220));
        // Acknowledgements after the end do not count; the wait for the next message does.
        clock.switch(at(240), LimitedBy::Path);
        clock.stop(at(250));
        let of = |clock: &LimitClock| clock.spans().map(|span| span.as_nanos() / 1_000_000);
        assert_eq!(of(&clock), [50, 0, 20, 0, 10, 89, 1]);
        clock.resume(at(320));
        clock.switch(at(320), LimitedBy::Receiver);
        clock.stop(at(325));
        assert_eq!(of(&clock), [50, 0, 20, 5, 110, 89, 1]);
        assert_eq!(of(&clock).iter().sum::<u64>(), 325 - 100 + 50);
    }
}
