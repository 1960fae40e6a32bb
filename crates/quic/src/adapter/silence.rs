//! Peers that do not answer: their connections take no share of the peer's record.
//!
//! The stack reports no probe timeout, but each probe as it leaves. Timeouts double, so that the
//! second probe leaves three of the first after the last packet (RFC 9002 §6.2.1).
//!
//! A path that was left keeps its state: its peer's address does not answer any more.

use headstart_host::locked;
use headstart_units::{Span, Time};

use super::Adapter;

/// Probe timeouts without an acknowledgement after which a peer counts as silent.
const TIMEOUTS: u64 = 3;
/// The stack's granularity of time and the default of `max_ack_delay` (RFC 9002 §6.1.2, RFC 9000
/// §18.2).
const GRANULARITY: Span = Span::from_millis(1);
const ACK_DELAY: Span = Span::from_millis(25);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Silence {
    /// The last acknowledgement, or the first packet that left with nothing in flight.
    since: Time,
    is_silent: bool,
}

impl Adapter {
    /// A packet leaves.
    #[inline]
    pub(super) fn watch_silence(&mut self, now: Time) {
        if self.sender.ledger().in_flight().is_zero() {
            self.silence.since = now;
        } else if !self.silence.is_silent && now.since(self.silence.since) >= self.probe_timeout() * TIMEOUTS
        {
            self.set_silent(true);
        }
    }

    /// An acknowledgement arrived.
    #[inline]
    pub(super) fn end_silence(&mut self, now: Time) {
        self.silence.since = now;
        if self.silence.is_silent {
            self.set_silent(false);
        }
    }

    #[cold]
    fn set_silent(&mut self, is_silent: bool) {
        self.silence.is_silent = is_silent;
        if !self.is_late {
            locked(&self.shared.account).set_silent(self.shared.rules.store(), is_silent);
        }
    }

    fn probe_timeout(&self) -> Span {
        let rtt = self.sender.rtt();
        rtt.smoothed + (rtt.variation * 4).max(GRANULARITY) + ACK_DELAY
    }
}
