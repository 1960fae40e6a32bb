//! What the stack is told, as long as nothing of it hangs on what leaves.
//!
//! The stack asks for window and pace several times for each packet. Once a scheme's burst is out it hears of changes only with acks and
//! losses, and the answer is worked out there.

use headstart_units::{Bytes, Rate};

use super::Adapter;
use super::opening::Stage;

/// The answer until the next ack or loss.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steady {
    /// Of the scheme's packets alone.
    pub window: Bytes,
    /// Bytes per second.
    pub pacing_rate: Option<u64>,
    pub ssthresh: Option<u64>,
    /// Bits per second.
    pub bandwidth: Option<u64>,
}

impl Adapter {
    /// Acks, losses or marks have been told.
    pub(super) fn settle_down(&mut self) {
        let sent = self.ledger.sent();
        let is_steady = matches!(self.stage, Stage::Started)
            && !self.controller.watches_sending()
            && sent >= self.burst
            && self.ledger.end() > 1
            && !(self.is_whole_flow && sent < self.first_flight);
        self.steady = is_steady.then(|| {
            let allowance = self.controller.allowance();
            Steady {
                window: allowance.window,
                pacing_rate: allowance.pace.map(Rate::as_bytes_per_sec),
                ssthresh: self.ssthresh(),
                bandwidth: self.bandwidth(),
            }
        });
    }

    /// The answer, if it can be given without working it out.
    #[inline]
    pub(super) fn steady(&self) -> Option<&Steady> {
        self.steady.as_ref().filter(|_| !self.has_more())
    }

    pub(super) fn ssthresh(&self) -> Option<u64> {
        let ssthresh = self.controller.ssthresh();
        (ssthresh != Bytes::MAX).then(|| ssthresh.get())
    }

    pub(super) fn bandwidth(&self) -> Option<u64> {
        self.fastest.map(Rate::as_bits_per_sec)
    }
}
