//! BBR3 §5.3: the states, and when each gives way to the next.

use headstart_units::{Bytes, Rate, Ratio, Span, Time};

use super::{AckPhase, BbrV3, Phase, Sample};
use crate::event::Ack;

impl BbrV3 {
    /// ResetFullBW, with a baseline.
    pub(super) fn reset_full_bw(&mut self, baseline: Rate) {
        self.full_bw = baseline;
        self.full_bw_count = 0;
        self.full_bw_now = false;
    }

    /// CheckFullBWReached.
    pub(super) fn check_full_bw(&mut self, sample: &Sample) {
        if self.full_bw_now || !sample.begins_round || sample.is_app_limited {
            return;
        }
        let rate = sample.rate.unwrap_or(Rate::ZERO);
        if rate >= self.full_bw * STILL_GROWING {
            return self.reset_full_bw(rate);
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= FULL_ROUNDS;
        self.full_bw_reached |= self.full_bw_now;
    }

    /// CheckStartupDone with CheckStartupHighLoss, and Linux's exit on marks.
    pub(super) fn check_startup(&mut self, sample: &Sample) {
        if self.phase != Phase::Startup {
            return;
        }
        let has_lost = sample.ends_loss_round
            && self.in_recovery
            && self.rounds() > self.recovery_since
            && self.loss_events >= STARTUP_LOSSES
            && self.is_inflight_too_high(sample);
        let is_marked = self.params.responds_to_marks && self.marks.full_rounds >= FULL_MARKED_ROUNDS;
        if !self.full_bw_reached && (has_lost || is_marked) {
            self.fill();
        }
        if self.full_bw_reached {
            self.begin_drain();
        }
    }

    fn fill(&mut self) {
        self.full_bw_reached = true;
        self.inflight_longterm = self.bdp(self.bw()).max(self.inflight_latest);
    }

    fn begin_drain(&mut self) {
        self.phase = Phase::Drain;
        self.drain_since = self.rounds();
    }

    /// Leaves Startup by a reason from outside, with `rate` as the estimate.
    pub(in super::super) fn end_startup(&mut self, ack: &Ack, rate: Rate) {
        if self.phase == Phase::Startup {
            self.fill();
            self.begin_drain();
        }
        self.max_bw = [Rate::ZERO, rate];
        self.set_pace(self.gains().0);
        self.set_window(ack);
    }

    /// CheckDrainDone.
    pub(super) fn check_drain(&mut self, ack: &Ack) {
        if self.phase == Phase::Drain
            && (ack.in_flight <= self.inflight(self.bw(), Ratio::ONE)
                || self.rounds().saturating_sub(self.drain_since) > DRAIN_ROUNDS)
        {
            self.start_down(ack);
        }
    }

    /// StartProbeBW_DOWN with PickProbeWait.
    pub(super) fn start_down(&mut self, ack: &Ack) {
        self.reset_signals();
        self.probe_up_acked_per_inc = Bytes::MAX;
        self.rounds_since_probe = self.draw_random() & 1;
        self.probe_at =
            ack.now + Span::from_secs(2) + Span::from_nanos(u64::from(self.draw_random() % 1_000_000_000));
        self.ack_phase = AckPhase::ProbeStopping;
        self.round.restart(ack);
        self.phase = Phase::Down;
    }

    /// StartProbeBW_REFILL.
    pub(super) fn start_refill(&mut self, ack: &Ack) {
        self.reset_short_term();
        self.probe_up_rounds = 0;
        self.probe_up_acked = Bytes::ZERO;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.round.restart(ack);
        self.phase = Phase::Refill;
    }

    /// StartProbeBW_UP.
    pub(super) fn start_up(&mut self, ack: &Ack, sample: &Sample) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.round.restart(ack);
        self.reset_full_bw(sample.rate.unwrap_or(Rate::ZERO));
        self.phase = Phase::Up;
        self.raise_slope();
    }

    /// UpdateProbeBWCyclePhase.
    pub(super) fn update_cycle(&mut self, ack: &Ack, sample: &Sample) {
        if !self.full_bw_reached || self.adapt_long_term(ack, sample) {
            return;
        }
        let phase = self.phase;
        match phase {
            Phase::Down | Phase::Cruise if self.is_time_to_probe(ack) => self.start_refill(ack),
            Phase::Down if self.is_time_to_cruise(ack) => self.phase = Phase::Cruise,
            Phase::Refill if sample.begins_round => {
                self.is_probe_sample = true;
                self.start_up(ack, sample);
            }
            Phase::Up if self.is_time_to_go_down(ack, sample) => {
                self.prev_probe_too_high = false;
                self.start_down(ack);
            }
            _ => {}
        }
    }

    /// IsTimeToProbeBW, with IsRenoCoexistenceProbeTime.
    pub(super) fn is_time_to_probe(&self, ack: &Ack) -> bool {
        let segments = self.target_inflight().get() / self.mss.get().max(1);
        ack.now > self.probe_at || u64::from(self.rounds_since_probe) >= segments.min(MAX_ROUNDS)
    }

    pub(super) fn is_time_to_cruise(&self, ack: &Ack) -> bool {
        ack.in_flight <= self.inflight_with_headroom()
            && ack.in_flight <= self.inflight(self.max_bw(), Ratio::ONE)
    }

    pub(super) fn is_time_to_go_down(&mut self, ack: &Ack, sample: &Sample) -> bool {
        // BBR3 §5.3.3.6: no further than the bound that the last probe set.
        if self.prev_probe_too_high && ack.in_flight >= self.inflight_longterm {
            self.prev_probe_precautionary = true;
            return true;
        }
        if self.is_window_limited() && self.window >= self.inflight_longterm {
            self.reset_full_bw(sample.rate.unwrap_or(Rate::ZERO));
            return false;
        }
        self.full_bw_now
    }

    pub(super) const fn is_window_limited(&self) -> bool {
        self.is_limited[0] || self.is_limited[1]
    }

    pub(super) fn inflight_with_headroom(&self) -> Bytes {
        if self.inflight_longterm == Bytes::MAX {
            return Bytes::MAX;
        }
        let headroom = self.mss.max(self.inflight_longterm * HEADROOM);
        self.inflight_longterm.saturating_sub(headroom).max(self.min_window())
    }

    /// RaiseInflightLongtermSlope.
    pub(super) fn raise_slope(&mut self) {
        let growth = 1_u64 << self.probe_up_rounds;
        self.probe_up_rounds = (self.probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_inc = (self.window / growth).max(self.mss);
    }

    /// ProbeInflightLongtermUpward.
    pub(super) fn probe_upward(&mut self, ack: &Ack, sample: &Sample) {
        if !self.is_window_limited() || self.window < self.inflight_longterm {
            return;
        }
        self.probe_up_acked += ack.newly_acked;
        let step = self.probe_up_acked_per_inc.get().max(1);
        let delta = self.probe_up_acked.get() / step;
        self.probe_up_acked = Bytes::new(self.probe_up_acked.get() % step);
        self.inflight_longterm += self.mss * delta;
        if sample.begins_round {
            self.raise_slope();
        }
    }

    /// AdaptLongTermModel; true if it decided on a transition.
    pub(super) fn adapt_long_term(&mut self, ack: &Ack, sample: &Sample) -> bool {
        if self.ack_phase == AckPhase::ProbeStarting && sample.begins_round {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && sample.begins_round {
            self.is_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.is_probe_bw() {
                if !sample.is_app_limited {
                    // AdvanceMaxBwFilter.
                    self.max_bw = [self.max_bw[1], Rate::ZERO];
                }
                if self.prev_probe_precautionary && !self.prev_probe_too_high {
                    self.start_refill(ack);
                    return true;
                }
            }
        }
        if self.is_inflight_too_high(sample) {
            // Losses were handled when detected; marks are handled here.
            if self.is_probe_sample && self.newly_lost.is_zero() {
                self.handle_inflight_too_high(ack, sample.tx_in_flight, sample.is_app_limited);
            }
            return false;
        }
        if self.inflight_longterm != Bytes::MAX {
            self.inflight_longterm = self.inflight_longterm.max(sample.tx_in_flight);
            if self.phase == Phase::Up {
                self.probe_upward(ack, sample);
            }
        }
        false
    }

    pub(super) fn check_probe_rtt(&mut self, ack: &Ack, sample: &Sample, is_expired: bool) {
        if is_expired && !self.restarts_from_idle && !matches!(self.phase, Phase::ProbeRtt) {
            self.save_window();
            self.phase = Phase::ProbeRtt;
            self.probe_rtt_done_at = Time::NEVER;
            self.ack_phase = AckPhase::ProbeStopping;
            self.round.restart(ack);
        }
        if self.phase == Phase::ProbeRtt {
            self.limited_until = ack.delivered + ack.in_flight;
            if self.probe_rtt_done_at == Time::NEVER {
                if ack.in_flight <= self.probe_rtt_window() {
                    self.probe_rtt_done_at = ack.now + PROBE_RTT_DURATION;
                    self.probe_rtt_had_round = false;
                    self.round.restart(ack);
                }
            } else {
                self.probe_rtt_had_round |= sample.begins_round;
                if self.probe_rtt_had_round && ack.now > self.probe_rtt_done_at {
                    self.exit_probe_rtt(ack);
                }
            }
        }
        if !sample.delivered.is_zero() {
            self.restarts_from_idle = false;
        }
    }

    /// CheckProbeRTTDone and ExitProbeRTT.
    pub(super) fn exit_probe_rtt(&mut self, ack: &Ack) {
        self.probe_rtt_min_at = ack.now;
        self.window = self.window.max(self.prior_window);
        self.reset_short_term();
        if self.full_bw_reached {
            self.start_down(ack);
            self.phase = Phase::Cruise;
        } else {
            self.phase = Phase::Startup;
        }
    }
}

/// BBR.Headroom (BBR3 §2.8).
const HEADROOM: Ratio = Ratio::new(15, 100);
/// BBR3 §5.3.1.2.
const STILL_GROWING: Ratio = Ratio::new(5, 4);
const FULL_ROUNDS: u8 = 3;
/// BBRStartupFullLossCnt (BBR3 §5.3.1.3).
const STARTUP_LOSSES: u8 = 6;
/// bbr_full_ecn_cnt (Linux).
const FULL_MARKED_ROUNDS: u8 = 2;
/// BBR3 §5.3.2.
const DRAIN_ROUNDS: u32 = 3;
/// BBR3 §5.3.3.8.2.
const MAX_ROUNDS: u64 = 63;
/// BBR.ProbeRTTDuration (BBR3 §2.16.2).
const PROBE_RTT_DURATION: Span = Span::from_millis(200);
