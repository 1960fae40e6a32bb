//! Segments that leave together, as in Linux: one buffer is handed down and cut into segments on
//! the way.
//!
//! Source: Linux tcp_output.c (tcp_tso_autosize, tcp_write_xmit, tcp_tso_should_defer as of 6.18,
//! __tcp_transmit_skb), the behaviour in own words. In use only with [`TcpConfig::as_linux`].

use super::*;

/// Segments of 64 kB.
const LARGEST: u64 = 44;
/// Divisor of the window: a buffer of at least that share is never deferred (tcp_tso_win_divisor).
const WINDOW_SHARE: u64 = 3;
/// Largest age of the latest transmission, or of the pacer's next departure, at which a buffer is
/// deferred, and largest time until the ack that it waits for.
const SOON: Span = Span::from_millis(1);

/// Segments of one buffer at that pace: those of a 1024th of a second, two at least.
pub(super) fn largest_buffer(pace: Rate, config: &TcpConfig) -> u32 {
    ((pace.as_bytes_per_sec() >> 10) / config.mss.get().max(1)).clamp(2, LARGEST) as u32
}

/// The buffer that is leaving.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Buffer {
    segments: u32,
    left: u32,
}

impl Sender {
    /// True if new data is deferred until more can leave with it: the window allows less than a
    /// buffer, and an ack is due soon.
    pub(super) fn defers(&self, now: Time, window: Bytes, config: &TcpConfig) -> bool {
        let latest = self.last_sent_at.max(self.next_send_at);
        if self.buffer.left > 0 || self.state != State::Open || now.since(latest) > SOON {
            return false;
        }
        let (segments, is_all) = self.next_buffer(window, config);
        if is_all
            || segments >= self.largest_buffer(window, config)
            || config.mss.get() * u64::from(segments)
                >= window.min(config.receive_window).get() / WINDOW_SHARE
        {
            return false;
        }
        let oldest = self.segments.get(self.segments.base());
        let Some(flight) = oldest.and_then(|oldest| self.flights.get(oldest.transmission)) else {
            return false;
        };
        let expected = flight.stamp.sent_at + self.rtt.smoothed;
        expected <= now + SOON.min(self.rtt.smoothed / 2)
    }

    /// One more segment of new data leaves; true if it is the last of a buffer of several.
    pub(super) fn fill_buffer(&mut self, window: Bytes, config: &TcpConfig) -> bool {
        if self.buffer.left == 0 {
            let (segments, _) = self.next_buffer(window, config);
            self.buffer = Buffer { segments, left: segments };
        }
        self.buffer.left -= 1;
        self.buffer.left == 0 && self.buffer.segments > 1
    }

    fn largest_buffer(&self, window: Bytes, config: &TcpConfig) -> u32 {
        let percent = if self.controller.is_slow_start() { 200 } else { 120 };
        let pace = self.controller.allowance().pace;
        largest_buffer(pace.unwrap_or_else(|| window * percent / 100 / self.rtt.smoothed), config)
    }

    /// Segments of the next buffer, and true if they are all of the data.
    fn next_buffer(&self, window: Bytes, config: &TcpConfig) -> (u32, bool) {
        let mss = config.mss.get().max(1);
        let admitted = window.saturating_sub(self.in_flight).get() / mss;
        let receivable = self.peer_window.limit(self.acknowledged, config).saturating_sub(self.sent) / mss;
        let end = self.ends.front().copied().unwrap_or(self.written);
        let waiting = end.saturating_sub(self.sent).div_ceil(mss);
        let segments =
            admitted.min(receivable).min(waiting).min(u64::from(self.largest_buffer(window, config))).max(1);
        (segments as u32, segments >= waiting)
    }
}
