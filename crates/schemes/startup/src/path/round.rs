//! Round trips, counted by data: a round ends when data sent after its beginning is acknowledged.

use headstart_units::Bytes;

use crate::event::Ack;

/// Counts round trips by delivered bytes (draft-ietf-ccwg-bbr §4.5.1, as BBR v1 does).
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    ends_at: Bytes,
    count: u64,
}

impl Round {
    /// True if this ack begins a new round.
    #[inline]
    pub fn on_ack(&mut self, ack: &Ack) -> bool {
        let begins = ack.rate.prior_delivered >= self.ends_at;
        if begins {
            self.ends_at = ack.delivered;
            self.count += 1;
        }
        begins
    }

    /// Restarts the round: it ends when data sent after this ack is acknowledged. The number of
    /// rounds stays the same.
    pub fn restart(&mut self, ack: &Ack) {
        self.ends_at = ack.delivered;
    }

    /// Rounds begun so far.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }
}
