//! Times at which a connection's account is brought up to date.
//!
//! The account is behind a lock, which an adapter does not take for each acknowledgement. An
//! acknowledgement is published if the scheme's phase has changed with it, or if the first flight
//! ends, its credit is known, or nothing is left in flight. Every loss is published. At the end the
//! adapter publishes its latest event.

use headstart_startup::Startup as _;
use headstart_startup::sending::Sender;
use headstart_units::Time;

/// State of one connection: the event that its account does not have yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Publication {
    /// Time of the latest event, if it is not published.
    pending: Option<Time>,
    /// The first flight was over, and its credit known.
    seen: (bool, bool),
    is_settled: bool,
}

impl Publication {
    /// The sender got an event.
    #[inline]
    pub const fn on_event(&mut self, now: Time) {
        self.pending = Some(now);
    }

    /// True if an acknowledgement that the sender got now is to be published.
    #[inline]
    pub fn is_due(&mut self, sender: &Sender) -> bool {
        sender.ledger().in_flight().is_zero() || !self.is_settled && self.settles(sender)
    }

    fn settles(&mut self, sender: &Sender) -> bool {
        let scheme = sender.controller().scheme();
        let (is_over, is_known) = (sender.is_first_flight_over(), scheme.credit_revision(false).is_some());
        self.is_settled = is_over && (is_known || !scheme.requirements().reserves_credit);
        let before = std::mem::replace(&mut self.seen, (is_over, is_known));
        is_over && !before.0 || is_known && !before.1
    }

    /// The event to publish now, if there is one.
    pub const fn take(&mut self) -> Option<Time> {
        self.pending.take()
    }
}
