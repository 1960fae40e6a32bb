//! What the stack is told, as long as nothing of it hangs on what leaves.
//!
//! The stack asks for window and pace several times for each packet. Once a scheme's burst is out
//! it hears of changes only with acks and losses, and the answer is worked out there.

use noq_proto::congestion::ControllerMetrics;

use super::Adapter;
use super::opening::Stage;

/// What the stack asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// Bytes in flight, whoever sent them.
    pub window: u64,
    /// Bytes per second.
    pub pacing_rate: Option<u64>,
    pub ssthresh: Option<u64>,
    /// Bits per second.
    pub bandwidth: Option<u64>,
}

impl From<Answer> for ControllerMetrics {
    #[inline]
    fn from(answer: Answer) -> Self {
        let mut metrics = Self::default();
        metrics.congestion_window = answer.window;
        metrics.pacing_rate = answer.pacing_rate;
        metrics.ssthresh = answer.ssthresh;
        metrics.bandwidth_estimate = answer.bandwidth;
        metrics
    }
}

impl Adapter {
    /// Acks, losses or marks have been told.
    pub(super) fn settle_down(&mut self) {
        let sent = self.ledger.sent();
        let is_steady = matches!(self.stage, Stage::Started)
            && !self.controller.watches_sending()
            && !self.is_small()
            && sent >= self.burst
            && self.ledger.end() > 1
            && !(self.is_whole_flow && sent < self.first_flight);
        self.steady = is_steady.then(|| {
            let allowance = self.controller.allowance();
            self.answer(self.with_foreign(allowance.window), allowance.pace)
        });
    }

    /// The answer, if it can be given without working it out.
    #[inline]
    pub(super) fn steady(&self) -> Option<&Answer> {
        self.steady.as_ref().filter(|_| !self.has_more())
    }
}
