//! NewReno: one segment more per round trip, half the window on loss.
//!
//! Source: RFC 5681 §3.1 and §3.2, with appropriate byte counting (RFC 3465) in avoidance.
//!
//! # Deviations
//!
//! - RFC 5681 equation (4) halves the FlightSize; the window is halved here, as Linux does. The two
//!   are equal for a window-limited sender, and growth stops for any other.
//! - As in Linux ([`Kind::RenoLinux`](super::Kind)) windows before and after a cut are rounded down
//!   to whole segments (tcp_cong.c, tcp_reno_ssthresh). It serves the comparison with the kernel
//!   and is not the default.
//! - As in Google QUIC a loss leaves seven tenths of the window. quic-go has kept that, with which
//!   the QUIC stack is compared.

use headstart_units::{Bytes, Ratio};

use super::{LOSS_SEGMENTS, MINIMUM_SEGMENTS};
use crate::allowance::HandOver;
use crate::event::{Ack, Congestion, Timeout};

/// RFC 5681 equation (4).
const BETA: Ratio = Ratio::new(1, 2);
/// `kRenoBeta` of Google QUIC, and of quic-go.
const GOOGLE_BETA: Ratio = Ratio::new(7, 10);

/// NewReno's state.
#[derive(Clone, Copy, Debug)]
pub struct Reno {
    mss: Bytes,
    pub(super) window: Bytes,
    pub(super) ssthresh: Bytes,
    /// Bytes acknowledged since the window last grew by a segment.
    counted: Bytes,
    /// The share of the window that a loss leaves.
    beta: Ratio,
    is_linux: bool,
}

impl Reno {
    pub(super) fn new(mss: Bytes) -> Self {
        let window = mss * LOSS_SEGMENTS;
        Self { mss, window, ssthresh: Bytes::MAX, counted: Bytes::ZERO, beta: BETA, is_linux: false }
    }

    pub(super) fn linux(mss: Bytes) -> Self {
        Self { is_linux: true, ..Self::new(mss) }
    }

    pub(super) fn google(mss: Bytes) -> Self {
        Self { beta: GOOGLE_BETA, ..Self::new(mss) }
    }

    /// The window after a cut (RFC 5681 equation (4)).
    fn cut(&self, share: Ratio) -> Bytes {
        let kept = if self.is_linux {
            self.mss * share.of(self.window.get() / self.mss.get().max(1))
        } else {
            self.window * share
        };
        kept.max(self.mss * MINIMUM_SEGMENTS)
    }

    pub(super) fn take_over(&mut self, from: &HandOver) {
        self.window = from.window.max(self.mss * LOSS_SEGMENTS);
        self.ssthresh = from.ssthresh;
    }

    pub(super) fn on_ack(&mut self, ack: &Ack) {
        if ack.in_recovery || !ack.is_window_limited {
            return;
        }
        let mut acked = ack.newly_acked;
        if self.window < self.ssthresh {
            let grown = (self.window + acked).min(self.ssthresh);
            acked -= grown - self.window;
            self.window = grown;
        }
        self.counted += acked;
        if self.counted >= self.window {
            self.counted -= self.window;
            self.window += self.mss;
        }
    }

    pub(super) fn on_congestion(&mut self, signal: &Congestion, share: Option<Ratio>) {
        if signal.opens_episode {
            self.ssthresh = self.cut(share.unwrap_or(self.beta));
            self.window = self.ssthresh;
            self.counted = Bytes::ZERO;
        }
    }

    pub(super) fn on_timeout(&mut self, timeout: &Timeout) {
        // RFC 5681 §3.1: a repeated timeout of a segment keeps the threshold.
        if timeout.consecutive == 1 {
            self.ssthresh = self.cut(BETA);
        }
        self.window = self.mss * LOSS_SEGMENTS;
        self.counted = Bytes::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MSS, acked, lost, timed_out};
    use super::*;
    use headstart_units::Time;

    fn at_ten() -> Reno {
        let mut reno = Reno::new(MSS);
        reno.take_over(&HandOver::avoiding(MSS * 10));
        reno
    }

    #[test]
    fn a_window_of_acks_adds_one_segment() {
        let mut reno = at_ten();
        for _ in 0..10 {
            reno.on_ack(&acked(Time::ZERO, MSS));
        }
        assert_eq!(reno.window, MSS * 11);
    }

    #[test]
    fn a_loss_halves_the_window_once_an_episode_and_never_below_two_segments() {
        let mut reno = at_ten();
        let mut loss = lost(Time::ZERO, MSS);
        for expected in [5_000, 5_000, 2_500, 2_500, 2_000] {
            reno.on_congestion(&loss, None);
            assert_eq!(reno.window, Bytes::new(expected));
            loss.opens_episode = !loss.opens_episode;
        }
    }

    #[test]
    fn as_google_quic_has_it_a_loss_leaves_seven_tenths_and_a_timeout_half_as_threshold() {
        let mut reno = Reno::google(MSS);
        reno.take_over(&HandOver::avoiding(MSS * 10));
        reno.on_congestion(&lost(Time::ZERO, MSS), None);
        assert_eq!(reno.window, MSS * 7);
        reno.on_timeout(&timed_out(Time::ZERO));
        assert_eq!(reno.ssthresh, MSS * 7 / 2);
    }

    #[test]
    fn as_linux_has_it_windows_before_and_after_a_cut_are_whole_segments() {
        for (window, linux, text) in [(17_000, 8_000, 8_500), (18_900, 9_000, 9_450), (3_000, 2_000, 2_000)] {
            let cut = |mut reno: Reno| {
                reno.take_over(&HandOver::avoiding(Bytes::new(window)));
                reno.on_congestion(&lost(Time::ZERO, MSS), None);
                reno.window.get()
            };
            assert_eq!((cut(Reno::linux(MSS)), cut(Reno::new(MSS))), (linux, text), "{window}");
        }
    }

    #[test]
    fn a_timeout_starts_over_towards_half() {
        let mut reno = at_ten();
        reno.on_timeout(&timed_out(Time::ZERO));
        assert_eq!((reno.window, reno.ssthresh), (MSS, MSS * 5));
        for _ in 0..4 {
            reno.on_ack(&acked(Time::ZERO, MSS));
        }
        assert_eq!(reno.window, MSS * 5, "slow start up to the threshold");
        reno.on_ack(&acked(Time::ZERO, MSS));
        assert_eq!(reno.window, MSS * 5, "avoidance above");
    }
}
