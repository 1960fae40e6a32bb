//! Windows of senders that use less than they may: RFC 7661, and the rate-limited increase.
//!
//! RFC 7661 is from memory. A loss in the phase without validation leaves the base controller's
//! share of the data that was used. The RFC leaves half of it, and at the end of the recovery takes
//! off what was lost.

use super::*;

/// The phase without validation ends after this time (RFC 7661 §4.4.3); another may follow.
const NON_VALIDATED: Span = Span::from_secs(300);
/// The sampling period of pipeACK is three round trips, and this at least (RFC 7661 §4.2).
const LEAST_PERIOD: Span = Span::from_secs(1);

/// Recent usage of the window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// Beginning of the present round trip, and what was delivered before.
    round: (Time, Bytes),
    /// Delivered at the latest look.
    delivered: Bytes,
    /// Largest deliveries of a round trip in the present sampling period and the one before.
    pipe: [Bytes; 2],
    period_at: Time,
    /// Since when less than half of the window was used.
    since: Option<Time>,
    /// The most in flight since the window was last cut (maxFS), and the window at the latest look.
    most: Bytes,
    window: Bytes,
    was_cut: bool,
}

impl Sender {
    /// A packet has left.
    pub(super) fn note_flight(&mut self) {
        let window = self.controller.allowance().window;
        let usage = &mut self.usage;
        if window < usage.window {
            (usage.most, usage.was_cut) = (Bytes::ZERO, true);
        }
        (usage.window, usage.most) = (window, usage.most.max(self.in_flight));
    }

    /// The window may grow for an ack by draft-ietf-ccwg-ratelimited-increase §3. maxFS is the
    /// initial window at least until the first cut.
    pub(super) fn may_increase(&self, config: &TcpConfig) -> bool {
        let window = self.controller.allowance().window;
        let initial = if self.usage.was_cut { Bytes::ZERO } else { config.mss * config.restart_window };
        let most = self.usage.most.max(initial);
        window < if self.controller.is_slow_start() { most * 2 } else { most + config.mss }
    }

    /// An ack arrived, or data was written: what was used of the window, and for how long less
    /// than half of it was (RFC 7661 §4.2, §4.3).
    pub(super) fn validate(&mut self, now: Time, config: &TcpConfig) {
        let (delivered, rtt) = (self.rate.delivered(), self.rtt.smoothed);
        let usage = &mut self.usage;
        let period = LEAST_PERIOD.max(rtt * 3);
        let elapsed = now.since(usage.period_at);
        if elapsed >= period {
            let before = if elapsed < period * 2 { usage.pipe[0] } else { Bytes::ZERO };
            (usage.pipe, usage.period_at) = ([Bytes::ZERO, before], now);
        }
        if now.since(usage.round.0) >= rtt {
            usage.round = (now, usage.delivered);
        }
        usage.delivered = delivered;
        usage.pipe[0] = usage.pipe[0].max(delivered.saturating_sub(usage.round.1));
        let window = self.controller.allowance().window;
        if self.pipe_ack() * 2 >= window {
            self.usage.since = None;
            return;
        }
        // An idle sender notices only when it writes: nothing was used since its last packet.
        let since = *self.usage.since.get_or_insert(self.last_sent_at.min(now));
        let phases = now.since(since).as_nanos() / NON_VALIDATED.as_nanos();
        if phases > 0 {
            let restart = config.mss * config.restart_window;
            self.controller.on_idle(restart.max(window / (1 << phases.min(32))), window * 3 / 4);
            self.usage.since = Some(now);
        }
    }

    /// The most that a round trip of the last sampling periods delivered.
    fn pipe_ack(&self) -> Bytes {
        self.usage.pipe[0].max(self.usage.pipe[1])
    }

    /// A loss or a mark cuts what was used, where less than half of the window was (RFC 7661
    /// §4.4.2).
    pub(super) fn cap_unused(&mut self, prior_in_flight: Bytes) {
        if self.usage.since.is_some() {
            self.controller.cap_window(self.pipe_ack().max(prior_in_flight));
        }
    }
}
