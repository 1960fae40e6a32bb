//! The receiver's window where it grows, as acknowledgements show it.
//!
//! The receiver is not asked: its rules are followed at the arrival of each acknowledgement, when
//! a window in that would arrive.

use headstart_units::{Span, Time};

use crate::tcp::config::{ReceiveGrowth, TcpConfig};

/// Linux's `tcp_rmem[2]` (6.18), in bytes.
const LINUX: u64 = 32 << 20;
/// Chrome's largest stream window, in bytes.
const CHROME: u64 = 6 << 20;

/// A window that grows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceiveWindow {
    /// Offset up to which the sender may send; zero before the first use.
    limit: u64,
    window: u64,
    /// Bound of the window by the receiver's buffer (Linux).
    clamp: u64,
    /// Most bytes that its application read in a round trip (Linux).
    space: u64,
    /// Begin of the present measurement, or the latest update.
    since: Time,
    read: u64,
}

impl ReceiveWindow {
    pub fn limit(&self, acknowledged: u64, config: &TcpConfig) -> u64 {
        match config.receive_growth {
            ReceiveGrowth::Fixed => acknowledged + config.receive_window.get(),
            // A stack would divide a segment that does not fit as a whole.
            _ => self.limit.max(config.receive_window.get()).max(acknowledged + config.mss.get()),
        }
    }

    /// An acknowledgement arrived of everything before `read`.
    pub fn on_ack(&mut self, now: Time, read: u64, rtt: Span, config: &TcpConfig) {
        if self.window == 0 {
            let window = config.receive_window.get();
            // The buffer holds a fifth more once the size of packets in memory is known.
            let clamp = window * 6 / 5;
            *self = Self { limit: window, window, clamp, since: now, ..Self::default() };
            self.space = (10 * config.mss.get()).min(window);
        }
        match config.receive_growth {
            ReceiveGrowth::Fixed => {}
            ReceiveGrowth::Eighths => {
                let next = read + self.window;
                if next - self.limit >= self.window / 8 {
                    self.limit = next;
                }
            }
            ReceiveGrowth::Linux => self.as_linux(now, read, rtt),
            ReceiveGrowth::Chromium => self.as_chromium(now, read, rtt),
        }
    }

    /// Linux's dynamic right-sizing (tcp_input.c, tcp_rcv_space_adjust and tcp_grow_window). The
    /// buffer doubles with the bytes read in a round trip, and more where these rise. The window
    /// grows by four thirds of what arrives, as measured on Linux 6.18
    /// (docs/records/agreement.md).
    fn as_linux(&mut self, now: Time, read: u64, rtt: Span) {
        if now.since(self.since) >= rtt {
            let copied = read.saturating_sub(self.read);
            if copied > self.space {
                let doubled = 2 * copied;
                let rise = doubled * (copied - self.space) / self.space.max(1);
                self.clamp = self.clamp.max((doubled + 2 * rise).min(LINUX));
                self.space = copied;
            }
            (self.since, self.read) = (now, read);
        }
        let arrived = read.saturating_sub(self.limit.saturating_sub(self.window));
        self.window = (self.window + arrived * 4 / 3).min(self.clamp);
        self.limit = self.limit.max(read + self.window);
    }

    /// Chromium's quic_flow_controller.cc: an update when half of the window is read, and twice the
    /// window if the one before is less than two round trips old.
    fn as_chromium(&mut self, now: Time, read: u64, rtt: Span) {
        if self.limit.saturating_sub(read) >= self.window / 2 {
            return;
        }
        if now.since(self.since) < rtt * 2 {
            self.window = (2 * self.window).min(CHROME.max(self.window));
        }
        (self.limit, self.since) = (read + self.window, now);
    }
}
