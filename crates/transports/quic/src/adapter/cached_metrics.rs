//! The adapter's metrics, cached while no departure can change them.
//!
//! The stack reads window and pacing rate several times per packet. After a scheme's burst they
//! change only with acks and losses, and are computed there.

use noq_proto::congestion::ControllerMetrics;

use super::Adapter;

#[derive(Clone, Copy, Debug)]
pub(super) struct CachedMetrics {
    /// Window in bytes, with bytes in flight that are not in the scheme's account.
    pub window: u64,
    /// Pace in bytes per second.
    pub pacing_rate: Option<u64>,
    pub ssthresh: Option<u64>,
    /// Delivery rate in bits per second.
    pub bandwidth: Option<u64>,
}

impl From<CachedMetrics> for ControllerMetrics {
    #[inline]
    fn from(cached: CachedMetrics) -> Self {
        let mut metrics = Self::default();
        metrics.congestion_window = cached.window;
        metrics.pacing_rate = cached.pacing_rate;
        metrics.ssthresh = cached.ssthresh;
        metrics.bandwidth_estimate = cached.bandwidth;
        metrics
    }
}

impl Adapter {
    /// Called after acks, losses or marks: caches the metrics if they stay valid.
    pub(super) fn refresh_cached_metrics(&mut self) {
        let sent = self.driver.sender.ledger().sent();
        let stays_valid = self.driver.is_started()
            && !self.driver.sender.controller().needs_sent_events()
            && !self.driver.is_small()
            && sent >= self.driver.burst()
            && self.driver.sender.ledger().end() > 1
            && !self.is_flight_leaving();
        self.cached_metrics = stays_valid.then(|| {
            let allowance = self.driver.sender.controller().allowance();
            self.metrics_with(self.with_unmanaged_in_flight(allowance.window), allowance.pace)
        });
    }

    #[inline]
    pub(super) fn cached_metrics(&self) -> Option<&CachedMetrics> {
        self.cached_metrics.as_ref().filter(|_| !self.driver.has_more_announced())
    }
}
