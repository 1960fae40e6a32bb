//! BBR3 §5.6: pacing rate, send quantum and congestion window.

use headstart_units::{Bytes, Rate, Ratio, Span};

use super::{BbrV3, MIN_PACE, PROBE_RTT_GAIN, Phase};
use crate::event::Ack;

impl BbrV3 {
    /// BBR.MinPipeCwnd.
    pub(super) fn min_window(&self) -> Bytes {
        self.mss * MINIMUM_SEGMENTS
    }

    /// SetSendQuantum.
    pub(super) fn send_quantum(&self) -> Bytes {
        (self.pace * Span::from_millis(1)).min(LARGEST_QUANTUM).max(self.mss * 2)
    }

    /// QuantizationBudget.
    pub(super) fn budget(&self, inflight: Bytes) -> Bytes {
        let least = inflight.max(self.send_quantum() * 3).max(self.min_window());
        if self.phase == Phase::Up { least + self.mss * 2 } else { least }
    }

    pub(in super::super) fn inflight(&self, bw: Rate, gain: Ratio) -> Bytes {
        self.budget(self.bdp(bw) * gain)
    }

    pub(super) fn probe_rtt_window(&self) -> Bytes {
        (self.bdp(self.bw()) * PROBE_RTT_GAIN).max(self.min_window())
    }

    /// SetPacingRateWithGain.
    pub(super) fn set_pace(&mut self, gain: Ratio) {
        let pace = self.bw() * gain * PACING_SHARE;
        if self.full_bw_reached || pace > self.pace {
            self.pace = pace.max(MIN_PACE);
        }
    }

    pub(super) fn is_repairing(&self, ack: &Ack) -> bool {
        ack.in_recovery || ack.delivered < self.repaired_at
    }

    /// SetCwnd, with BoundCwndForProbeRTT and BoundCwndForModel.
    pub(super) fn set_window(&mut self, ack: &Ack) {
        if self.in_recovery && !self.is_repairing(ack) {
            self.in_recovery = false;
            self.window = self.window.max(self.prior_window);
        }
        let target = self.budget(self.bdp(self.bw()) * self.gains().1 + self.extra.most());
        if self.full_bw_reached {
            self.window = (self.window + ack.newly_acked).min(target);
        } else if self.window < target || ack.delivered < self.mss * u64::from(self.params.initial_window) {
            self.window += ack.newly_acked;
        }
        self.window = self.window.max(self.min_window());
        if matches!(self.phase, Phase::ProbeRtt) {
            self.window = self.window.min(self.probe_rtt_window());
        }
        let longterm = match self.phase {
            Phase::Startup | Phase::Drain => Bytes::MAX,
            Phase::Down | Phase::Refill | Phase::Up => self.inflight_longterm,
            Phase::Cruise | Phase::ProbeRtt => self.inflight_with_headroom(),
        };
        self.window = self.window.min(longterm.min(self.inflight_shortterm).max(self.min_window()));
    }

    /// SaveCwnd.
    pub(super) fn save_window(&mut self) {
        let is_reduced = self.in_recovery || matches!(self.phase, Phase::ProbeRtt);
        self.prior_window = if is_reduced { self.prior_window.max(self.window) } else { self.window };
    }
}

/// BBR.PacingMarginPercent (BBR3 §2.5).
const PACING_SHARE: Ratio = Ratio::new(99, 100);
/// BBR.MinPipeCwnd in segments (BBR3 §2.8).
const MINIMUM_SEGMENTS: u64 = 4;
/// BBR3 §5.6.3.
const LARGEST_QUANTUM: Bytes = Bytes::new(64 * 1024);
