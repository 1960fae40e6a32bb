//! The adapter's metrics, cached while no departure can change them.
//!
//! The stack reads window and pacing rate several times per packet. After a scheme's burst they
//! change only with acks and losses, and are computed there.

use noq_proto::congestion::ControllerMetrics;

use super::Adapter;
use super::opening::Stage;

/// Metrics for the stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// Window, in bytes, foreign bytes in flight included.
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
    /// Called after acks, losses or marks: caches the metrics if they stay valid.
    pub(super) fn settle_down(&mut self) {
        let sent = self.ledger.sent();
        let is_steady = matches!(self.stage, Stage::Started)
            && !self.controller.watches_sending()
            && !self.is_small()
            && sent >= self.burst
            && self.ledger.end() > 1
            && !self.is_flight_leaving();
        self.steady = is_steady.then(|| {
            let allowance = self.controller.allowance();
            self.answer(self.with_foreign(allowance.window), allowance.pace)
        });
    }

    /// The cached metrics, if they are valid.
    #[inline]
    pub(super) fn steady(&self) -> Option<&Answer> {
        self.steady.as_ref().filter(|_| !self.has_more())
    }
}
