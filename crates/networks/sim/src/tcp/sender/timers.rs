//! Timers: retransmission timeout (RFC 6298), loss detection, probes.

use super::*;

impl Sender {
    /// Time at which [`Self::on_loss_timer`] is due.
    #[inline]
    pub fn loss_timer(&self) -> Time {
        self.reorder_at.min(self.probe_at).min(self.rto_at)
    }

    pub(super) fn rto(&self, config: &TcpConfig) -> Span {
        let base = if self.rtt.smoothed.is_zero() { config.initial_rto } else { config.timeout(&self.rtt) };
        (base.max(config.min_rto) * (1 << self.backoff.min(16))).min(config.max_rto)
    }

    /// Restarts the timers, after progress or a transmission.
    #[inline]
    pub(super) fn rearm(&mut self, now: Time, is_progress: bool, config: &TcpConfig) {
        self.probe_at = Time::NEVER;
        if self.in_flight.is_zero() && self.lost_pending == 0 {
            self.rto_at = Time::NEVER;
            return;
        }
        config.probe.rearm(self, now, is_progress, config);
    }

    /// A loss timer is due.
    pub fn on_loss_timer(&mut self, now: Time, config: &TcpConfig, recorder: &mut impl Recorder) {
        if self.reorder_at <= now {
            if !config.detection.keeps_timer() {
                self.reorder_at = Time::NEVER;
            }
            self.detect(now, config, recorder);
        } else if self.probe_at <= now {
            self.on_probe_timer(now, config);
        } else if self.rto_at <= now {
            self.on_timeout(now, config, recorder);
        }
    }

    /// RFC 6298 §5.4 to §5.7; everything in flight is taken for lost (RFC 6675 §5.1).
    fn on_timeout(&mut self, now: Time, config: &TcpConfig, recorder: &mut impl Recorder) {
        self.limits.was_loss(now);
        let prior_in_flight = self.in_flight;
        for number in self.segments.base()..self.segments.end() {
            let segment = &mut self.segments[number];
            if !segment.is(DELIVERED) && !segment.is(LOST) {
                segment.flags = (segment.flags | LOST) & !IN_FLIGHT;
                self.lost_pending += 1;
                self.counts.lost += 1;
            }
        }
        config.detection.on_timeout(self);
        self.in_flight = Bytes::ZERO;
        self.flights.forget_below(self.flights.end());
        self.lost_hint = self.segments.base();
        self.judged = self.segments.end();
        self.state = State::Loss { until: self.segments.end() };
        self.tail_probe_out = false;
        self.reorder_at = Time::NEVER;
        self.backoff += 1;
        self.counts.timeouts += 1;
        self.repair.on_congestion();
        let timeout = self.moment(now).timeout(prior_in_flight, self.backoff);
        self.controller.on_timeout(&timeout);
        self.rto_at = now + self.rto(config);
        self.next_send_at = self.next_send_at.min(now);
        recorder.sender(now, || self.snapshot(SenderEvent::Timeout));
    }

    /// Allows one probe on the next call of [`Self::next_departure`], regardless of the window.
    fn on_probe_timer(&mut self, now: Time, config: &TcpConfig) {
        self.limits.was_loss(now);
        self.counts.probes += 1;
        self.probe_due = true;
        self.tail_probe_out = true;
        self.probe_at = Time::NEVER;
        config.probe.on_expiry(self, now, config);
    }
}
