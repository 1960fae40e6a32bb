//! Rules of Linux's sender in addition to the RFCs', one function for each.
//!
//! [`TcpConfig::as_linux`] names the sources. Linux's buffers are in a module of their own.

use super::*;

/// Least wait of a probe in addition to two round trips (TCP_TIMEOUT_MIN_US).
const MIN_PROBE_WAIT: Span = Span::from_millis(2);

impl TcpConfig {
    /// The retransmission timeout before backoff and bounds.
    pub(super) fn timeout(&self, rtt: &Rtt) -> Span {
        if self.as_linux { rtt.smoothed + (rtt.variation * 4).max(self.min_rto) } else { rtt.timeout() }
    }

    /// Wait of a tail loss probe in addition to two round trips. RFC 8985 §7.2: the receiver's
    /// delay if a single segment is out.
    pub(super) fn probe_wait(&self, is_single: bool) -> Span {
        match (is_single, self.as_linux) {
            (true, true) => self.min_rto,
            (true, false) => self.delayed_ack.timeout,
            (false, true) => MIN_PROBE_WAIT,
            (false, false) => Span::ZERO,
        }
    }

    /// Time of a probe: at the timeout at the latest, or none that is not before it.
    pub(super) fn probe_before(&self, probe_at: Time, rto_at: Time) -> Time {
        match (probe_at < rto_at, self.as_linux) {
            (true, _) => probe_at,
            (false, true) => rto_at,
            (false, false) => Time::NEVER,
        }
    }

    /// The timeout counts from the probe on, which is the latest transmission.
    pub(super) fn probe_restarts_timeout(&self) -> bool {
        self.as_linux
    }

    /// Unit to which a proportional rate reduction is rounded up.
    pub(super) fn reduction_grain(&self) -> Bytes {
        if self.as_linux { self.mss } else { Bytes::new(1) }
    }

    /// The application is the limit when it writes, and not when it has nothing to send.
    pub(super) fn is_limited_at_writes(&self) -> bool {
        self.as_linux
    }

    /// New data leaves in buffers.
    pub(super) fn has_buffers(&self) -> bool {
        self.as_linux
    }
}
