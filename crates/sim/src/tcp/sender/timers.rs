//! Timers: retransmission timeout (RFC 6298), tail loss probe (RFC 8985 §7), QUIC's probe timeout
//! (RFC 9002 §6.2).

use super::*;

/// Linux: least wait of a probe beyond two round trips (TCP_TIMEOUT_MIN_US).
const MIN_PROBE_WAIT: Span = Span::from_millis(2);

impl Sender {
    /// Time at which [`Self::on_loss_timer`] is due.
    #[inline]
    pub fn loss_timer(&self) -> Time {
        self.reorder_at.min(self.probe_at).min(self.rto_at)
    }

    pub(super) fn rto(&self, config: &TcpConfig) -> Span {
        let base = if self.rtt.smoothed.is_zero() {
            config.initial_rto
        } else if config.as_linux {
            self.rtt.smoothed + (self.rtt.variation * 4).max(config.min_rto)
        } else {
            self.rtt.timeout()
        };
        (base.max(config.min_rto) * (1 << self.backoff.min(16))).min(config.max_rto)
    }

    /// RFC 9002 §6.2.1.
    pub(super) fn quic_probe_timeout(&self, config: &TcpConfig) -> Span {
        let variation = (self.rtt.variation * 4).max(Span::from_millis(1));
        let once = self.rtt.smoothed + variation + config.delayed_ack.timeout;
        (once * (1 << self.backoff.min(16))).min(config.max_rto)
    }

    /// Restarts the timers. The retransmission timer restarts only after progress, or if it was off
    /// (RFC 6298 §5.1 to §5.3), the probe timer each time (RFC 8985 §7.2, RFC 9002 §6.2.1).
    #[inline]
    pub(super) fn rearm(&mut self, now: Time, is_progress: bool, config: &TcpConfig) {
        self.probe_at = Time::NEVER;
        if self.in_flight.is_zero() && self.lost_pending == 0 {
            self.rto_at = Time::NEVER;
            return;
        }
        if config.probe == Probe::Quic {
            self.probe_at = now + self.quic_probe_timeout(config);
            return;
        }
        if is_progress || self.rto_at == Time::NEVER {
            self.rto_at = now + self.rto(config);
        }
        if self.tail_probe && self.state == State::Open && !self.tail_probe_out {
            // RFC 8985 §7.2: twice the RTT, and the receiver's delay if a single segment is out.
            let mut timeout = self.rtt.smoothed * 2;
            let is_single = self.in_flight <= config.mss;
            timeout += match (is_single, config.as_linux) {
                (true, true) => config.min_rto,
                (true, false) => config.delayed_ack.timeout,
                (false, true) => MIN_PROBE_WAIT,
                (false, false) => Span::ZERO,
            };
            let mut probe_at = now + timeout;
            if config.as_linux {
                probe_at = probe_at.min(self.rto_at);
            }
            if probe_at < self.rto_at || config.as_linux {
                self.probe_at = probe_at;
            }
        }
    }

    /// A loss timer is due.
    pub fn on_loss_timer(&mut self, now: Time, config: &TcpConfig, recorder: &mut impl Recorder) {
        if self.reorder_at <= now {
            if !matches!(config.detection, Detection::Udt(_)) {
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
        let prior_in_flight = self.in_flight;
        for number in self.segments.base()..self.segments.end() {
            let segment = &mut self.segments[number];
            if !segment.is(DELIVERED) && !segment.is(LOST) {
                segment.flags = (segment.flags | LOST) & !IN_FLIGHT;
                self.lost_pending += 1;
                self.counts.lost += 1;
            }
        }
        if matches!(config.detection, Detection::Udt(Udt { goes_back: true, .. })) {
            self.back = self.segments.base()..self.segments.end();
        }
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
        self.counts.probes += 1;
        self.probe_due = true;
        self.tail_probe_out = true;
        self.probe_at = Time::NEVER;
        if config.as_linux {
            // The timeout counts from the probe on, which is the latest transmission.
            self.rto_at = now + self.rto(config);
        }
        if config.probe == Probe::Quic {
            self.backoff += 1;
            self.probe_at = now + self.quic_probe_timeout(config);
        }
    }
}
