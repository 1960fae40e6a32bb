//! Peers that do not answer: their connections take no share of the peer's record.
//!
//! A stack reports no probe timeout, but each probe as it leaves. Timeouts double, so that the
//! second probe leaves three of the first after the last packet (RFC 9002 §6.2.1).

use headstart_startup::sending::Sender;
use headstart_units::{Span, Time};

/// Probe timeouts without an acknowledgement after which a peer counts as silent.
const TIMEOUTS: u64 = 3;
/// The stack's granularity of time and the default of `max_ack_delay` (RFC 9002 §6.1.2, RFC 9000
/// §18.2).
const GRANULARITY: Span = Span::from_millis(1);
const ACK_DELAY: Span = Span::from_millis(25);

/// The peer of one path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silence {
    /// The last acknowledgement, or the first packet that left with nothing in flight.
    since: Time,
    is_silent: bool,
}

impl Silence {
    /// A packet leaves, which is not in the account yet. True if the peer counts as silent now, and
    /// did not before.
    #[inline]
    #[must_use]
    pub fn begins(&mut self, now: Time, sender: &Sender) -> bool {
        if sender.ledger().in_flight().is_zero() {
            self.since = now;
            return false;
        }
        let elapsed = now.since(self.since);
        // The second comparison costs more.
        if self.is_silent || elapsed < ACK_DELAY * TIMEOUTS || elapsed < probe_timeout(sender) * TIMEOUTS {
            return false;
        }
        self.is_silent = true;
        true
    }

    /// An acknowledgement arrived. True if the peer was silent.
    #[inline]
    #[must_use]
    pub fn ends(&mut self, now: Time) -> bool {
        self.since = now;
        std::mem::take(&mut self.is_silent)
    }
}

fn probe_timeout(sender: &Sender) -> Span {
    let rtt = sender.rtt();
    rtt.smoothed + (rtt.variation * 4).max(GRANULARITY) + ACK_DELAY
}
