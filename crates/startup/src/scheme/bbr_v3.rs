//! Send at the path's delivery rate, probe periodically for more, and bound in-flight data by the
//! amount at which a probe met loss or marks.
//!
//! Source (BBR3 below): N. Cardwell, I. Swett, J. Beshay, "BBR Congestion Control",
//! draft-ietf-ccwg-bbr-06, July 2026, which is BBR version 3; the code follows its pseudocode. It
//! leaves the response to ECN open (BBR3 §3.7) and demands that there is one. Here it is that of
//! Google's Linux tree, branch v3, tcp_bbr.c (Linux below, the behaviour in own words). It has a
//! start-up of its own and needs no base controller: it never hands over.
//!
//! ```text
//!  Startup -- no 25 % more in 3 rounds, losses, marks --> Drain
//!                                                           | in flight = BDP, or 3 rounds
//!                                                           v
//!    +--> Up -- no 25 % more in 3 rounds, --------> ProbeBW: Down
//!    |          2 % lost, half marked                       | in flight = BDP,
//!    | a round                                              v and 15 % of headroom
//!    +--- Refill <-- 2 to 3 s, or as many rounds -------- Cruise
//!                    as segments in flight (63 at most)
//!
//!  from any: no lower RTT for 5 s --> ProbeRTT
//!  ProbeRTT -- 200 ms and a round --> Cruise, or Startup if the pipe was not full yet
//! ```
//!
//! | phase | pacing gain | window gain | rate bound | window bound |
//! |---|---|---|---|---|
//! | Startup | 2.77 | 2 | | |
//! | Drain | 0.5 | 2 | bw_shortterm | inflight_shortterm |
//! | Down | 0.9 | 2 | bw_shortterm | inflight_longterm, inflight_shortterm |
//! | Cruise | 1 | 2 | bw_shortterm | 0.85 inflight_longterm, inflight_shortterm |
//! | Refill | 1 | 2 | | inflight_longterm |
//! | Up | 1.25 | 2.25 | | inflight_longterm |
//! | ProbeRTT | 1 | 0.5 | bw_shortterm | 0.85 inflight_longterm, inflight_shortterm |
//!
//! Versions before the sixth of the draft, and Linux, call the bounds bw_lo, inflight_lo
//! (short-term) and inflight_hi (long-term).
//!
//! # Deviations
//!
//! - The transport provides no P.tx_in_flight and no P.lost. Without reordering, data in flight
//!   when a packet left has been delivered or lost when the packet is acknowledged: RS.tx_in_flight
//!   is RS.delivered + RS.lost. C.lost at the time of sending is kept to a sixth of a window, so
//!   that RS.lost is too large by the losses in that sixth.
//! - HandleLostPacket runs once for all data declared lost, at the next ack, with its sample.
//! - Ranges of lost data in start-up (BBR3 §5.3.1.3) are counted by the acks that detect them.
//! - C.is_cwnd_limited: no segment more would have fitted when data left, this round or last.
//! - Random waits are drawn from time of establishment, handshake RTT and the parameter `draw`.
//! - BBR.extra_acked is the largest of the last five to ten rounds, as in Linux, not of ten.
//! - The transport does not report spurious recoveries, so none is undone (BBR3 §5.5.11).
//! - Restarting from idle, MarkConnectionAppLimited and recovery after a timeout are as in
//!   [`bbr`](super::bbr).
//! - Marks: the share of marked bytes is averaged each round with a gain of 1/16, from one. A round
//!   with marks cuts inflight_shortterm by a third of that average. A round with half of its bytes
//!   marked means too much in flight when probing. Two such rounds in a row mean a full pipe in
//!   Startup. Linux responds to marks only at an RTT of 5 ms at most (data centres); here wherever
//!   ECN is on. Without counts of marks, each report of a mark counts as one marked segment.

use headstart_units::{Bytes, Rate, Ratio, Span, Time};

use super::Startup;
use crate::allowance::{Allowance, FlightPlan, Next};
use crate::catalogue::{About, Needs};
use crate::event::{Ack, Congestion, Sent, Signal, Timeout};
use crate::path::{Round, bdp};
use crate::prior::Prior;

/// Its row of the catalogue.
pub const ABOUT: About =
    About { also: &["bbr3"], is_compared: false, ..About::new("bbr-v3", Needs::Nothing, "BBR version 3") };

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// Initial window in segments.
        initial_window: u32 = 10, in 1..=10_000, from "RFC 6928 §2";
        /// Seed of the random waits between probes.
        seed: u32 = 0, in 0..=u32::MAX, from "ours";
        /// Respond to marks as Linux's BBRv3 does, not only to losses.
        responds_to_marks: bool = true, from "BBR3 §3.7 demands an answer";
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Doubles the rate each round trip.
    #[default]
    Startup,
    /// Drains the queue that Startup left.
    Drain,
    /// ProbeBW_DOWN: drains the queue and leaves headroom for other flows.
    Down,
    /// ProbeBW_CRUISE: holds the rate.
    Cruise,
    /// ProbeBW_REFILL: fills the pipe before it probes.
    Refill,
    /// ProbeBW_UP: probes for more.
    Up,
    /// Half of the BDP, to measure the RTT without a self-made queue.
    ProbeRtt,
}

/// BBR.ack_phase: the relation of arriving acks to the last probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// BBR version 3.
#[derive(Clone, Copy, Debug, Default)]
pub struct BbrV3 {
    pub(super) params: Params,
    phase: Phase,
    mss: Bytes,
    window: Bytes,
    pace: Rate,
    round: Round,
    // --- rate ---
    /// The largest samples of the cycle before and of this one (BBR.max_bw_filter).
    max_bw: [Rate; 2],
    /// [`Rate::MAX`]: no bound.
    bw_shortterm: Rate,
    bw_latest: Rate,
    // --- volume; [`Bytes::MAX`]: no bound ---
    inflight_longterm: Bytes,
    inflight_shortterm: Bytes,
    inflight_latest: Bytes,
    /// [`Span::MAX`] while unknown.
    min_rtt: Span,
    min_rtt_at: Time,
    probe_rtt_min: Span,
    probe_rtt_min_at: Time,
    /// [`Time::NEVER`] until in flight is at the ProbeRTT window.
    probe_rtt_done_at: Time,
    probe_rtt_had_round: bool,
    extra: Extra,
    // --- full pipe ---
    full_bw: Rate,
    full_bw_count: u8,
    full_bw_now: bool,
    full_bw_reached: bool,
    drain_since: u32,
    // --- probing ---
    ack_phase: AckPhase,
    is_probe_sample: bool,
    probe_up_acked_per_inc: Bytes,
    probe_up_acked: Bytes,
    probe_up_rounds: u8,
    rounds_since_probe: u32,
    /// Latest time of the next probe.
    probe_at: Time,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    random: u32,
    // --- congestion ---
    losses: Losses,
    /// Bytes declared lost since the last ack.
    newly_lost: Bytes,
    loss_events: u8,
    loss_round_ends: Bytes,
    is_loss_in_round: bool,
    marks: Marks,
    in_recovery: bool,
    recovery_since: u32,
    /// After a timeout: total delivered at which all data then in flight has been repaired.
    repaired_at: Bytes,
    /// The window before recovery or ProbeRTT reduced it.
    prior_window: Bytes,
    // --- the sender ---
    /// Window-limited in this round, and in the one before.
    is_limited: [bool; 2],
    /// Samples of data sent before this total was delivered count only if they exceed the estimate.
    limited_until: Bytes,
    restarts_from_idle: bool,
}

/// Rate sample of an ack, in the draft's names.
#[derive(Clone, Copy, Debug)]
struct Sample {
    rate: Option<Rate>,
    /// RS.delivered in bytes; zero: no sample.
    delivered: Bytes,
    is_app_limited: bool,
    tx_in_flight: Bytes,
    lost: Bytes,
    begins_round: bool,
    ends_loss_round: bool,
}

impl BbrV3 {
    /// A scheme before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            pace: Rate::MAX,
            bw_shortterm: Rate::MAX,
            inflight_longterm: Bytes::MAX,
            inflight_shortterm: Bytes::MAX,
            min_rtt: Span::MAX,
            probe_rtt_min: Span::MAX,
            probe_rtt_done_at: Time::NEVER,
            probe_up_acked_per_inc: Bytes::MAX,
            random: 1,
            ..Self::default()
        }
    }

    fn max_bw(&self) -> Rate {
        self.max_bw[0].max(self.max_bw[1])
    }

    /// BBR.bw (BoundBWForModel).
    fn bw(&self) -> Rate {
        self.max_bw().min(self.bw_shortterm)
    }

    /// BBR.round_count.
    fn rounds(&self) -> u32 {
        self.round.count().min(u64::from(u32::MAX)) as u32
    }

    /// The connection's next random number (xorshift32).
    fn draw_random(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random
    }

    const fn is_probe_bw(&self) -> bool {
        matches!(self.phase, Phase::Down | Phase::Cruise | Phase::Refill | Phase::Up)
    }

    /// IsProbingBW.
    const fn is_probing(&self) -> bool {
        matches!(self.phase, Phase::Startup | Phase::Refill | Phase::Up)
    }

    /// The table of BBR3 §5.6.1: pacing gain and window gain.
    const fn gains(&self) -> (Ratio, Ratio) {
        const TWICE: Ratio = Ratio::new(2, 1);
        match self.phase {
            Phase::Startup => (STARTUP_GAIN, TWICE),
            Phase::Drain => (Ratio::new(1, 2), TWICE),
            Phase::Down => (Ratio::new(9, 10), TWICE),
            Phase::Cruise | Phase::Refill => (Ratio::ONE, TWICE),
            Phase::Up => (Ratio::new(5, 4), Ratio::new(9, 4)),
            Phase::ProbeRtt => (Ratio::ONE, PROBE_RTT_GAIN),
        }
    }

    // --- model (BBR3 §5.5) -----------------------------------------------------------------------

    /// The rate sample of the ack, and the rounds that it ends: UpdateRound and the first half of
    /// UpdateLatestDeliverySignals.
    fn sample(&mut self, ack: &Ack) -> Sample {
        let delivered = ack.rate.delivered;
        let prior = ack.rate.prior_delivered;
        let lost = self.losses.since(prior, ack.delivered);
        let begins_round = self.round.on_ack(ack);
        if begins_round {
            self.rounds_since_probe = self.rounds_since_probe.saturating_add(1);
            self.is_limited = [false, self.is_limited[0]];
        }
        let ends_loss_round = prior >= self.loss_round_ends;
        if ends_loss_round {
            self.loss_round_ends = ack.delivered;
        }
        Sample {
            rate: ack.rate.rate().map(|rate| rate.min(MAX_RATE_SAMPLE)),
            delivered,
            is_app_limited: ack.rate.is_app_limited || prior < self.limited_until,
            tx_in_flight: delivered + lost,
            lost,
            begins_round,
            ends_loss_round,
        }
    }

    /// UpdateLatestDeliverySignals and UpdateCongestionSignals.
    fn update_signals(&mut self, sample: &Sample) {
        let rate = sample.rate.unwrap_or(Rate::ZERO);
        self.bw_latest = self.bw_latest.max(rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        if !rate.is_zero() && (rate >= self.max_bw() || !sample.is_app_limited) {
            self.max_bw[1] = self.max_bw[1].max(rate);
        }
        if sample.ends_loss_round {
            if !self.is_probing() {
                self.adapt_lower_bounds();
            }
            self.marks.in_loss_round = false;
        }
    }

    /// AdaptLowerBoundsFromCongestion, InitLowerBounds and LossLowerBounds.
    fn adapt_lower_bounds(&mut self) {
        let is_marked = self.marks.in_loss_round && self.params.responds_to_marks;
        if !self.is_loss_in_round && !is_marked {
            return;
        }
        if self.inflight_shortterm == Bytes::MAX {
            self.inflight_shortterm = self.window;
        }
        let by_marks = if is_marked { self.marks.cut(self.inflight_shortterm) } else { Bytes::MAX };
        if self.is_loss_in_round {
            if self.bw_shortterm == Rate::MAX {
                self.bw_shortterm = self.max_bw();
            }
            self.bw_shortterm = self.bw_latest.max(self.bw_shortterm * BETA);
            self.inflight_shortterm = self.inflight_latest.max(self.inflight_shortterm * BETA);
        }
        self.inflight_shortterm = self.inflight_shortterm.min(by_marks);
    }

    /// AdvanceLatestDeliverySignals.
    fn advance_signals(&mut self, sample: &Sample) {
        if sample.ends_loss_round {
            self.bw_latest = sample.rate.unwrap_or(Rate::ZERO);
            self.inflight_latest = sample.delivered;
            self.is_loss_in_round = false;
            self.loss_events = 0;
        }
    }

    /// ResetCongestionSignals.
    fn reset_signals(&mut self) {
        self.is_loss_in_round = false;
        self.marks.in_loss_round = false;
        self.bw_latest = Rate::ZERO;
        self.inflight_latest = Bytes::ZERO;
    }

    /// ResetShortTermModel.
    fn reset_short_term(&mut self) {
        self.bw_shortterm = Rate::MAX;
        self.inflight_shortterm = Bytes::MAX;
    }

    fn is_inflight_too_high(&self, sample: &Sample) -> bool {
        if sample.delivered.is_zero() {
            return false;
        }
        let is_marked = self.params.responds_to_marks && self.marks.is_half();
        is_marked || sample.lost > sample.tx_in_flight * LOSS_THRESHOLD
    }

    /// HandleLostPacket, for all data declared lost since the last ack, with this ack's sample.
    fn handle_losses(&mut self, ack: &Ack, sample: &Sample) {
        if !self.is_probe_sample || !self.is_inflight_too_high(sample) {
            return;
        }
        let size = self.newly_lost.min(sample.lost);
        let before = sample.tx_in_flight.saturating_sub(size);
        let lost_before = sample.lost.saturating_sub(size);
        // InflightAtLoss: the prefix of the lost data at which losses crossed the threshold.
        let prefix = (before * LOSS_THRESHOLD).saturating_sub(lost_before) * Ratio::new(100, 98);
        self.handle_inflight_too_high(ack, before + prefix, sample.is_app_limited);
    }

    fn handle_inflight_too_high(&mut self, ack: &Ack, tx_in_flight: Bytes, is_app_limited: bool) {
        self.prev_probe_too_high = true;
        self.is_probe_sample = false;
        if !is_app_limited {
            self.inflight_longterm = tx_in_flight.max(self.target_inflight() * BETA);
        }
        if self.phase == Phase::Up {
            self.start_down(ack);
        }
    }

    fn target_inflight(&self) -> Bytes {
        self.bdp(self.bw()).min(self.window)
    }

    fn bdp(&self, bw: Rate) -> Bytes {
        if self.min_rtt == Span::MAX {
            return self.mss * u64::from(self.params.initial_window);
        }
        bdp(bw, self.min_rtt).unwrap_or(Bytes::ZERO)
    }

    /// UpdateMinRTT; returns BBR.probe_rtt_expired.
    fn update_min_rtt(&mut self, ack: &Ack) -> bool {
        let is_expired = ack.now.since(self.probe_rtt_min_at) > PROBE_RTT_INTERVAL;
        if let Some(rtt) = ack.rtt_sample
            && (rtt < self.probe_rtt_min || is_expired)
        {
            self.probe_rtt_min = rtt;
            self.probe_rtt_min_at = ack.now;
        }
        if self.probe_rtt_min < self.min_rtt || ack.now.since(self.min_rtt_at) > MIN_RTT_LIFETIME {
            self.min_rtt = self.probe_rtt_min;
            self.min_rtt_at = self.probe_rtt_min_at;
        }
        is_expired
    }

    // --- states (BBR3 §5.3) ----------------------------------------------------------------------

    /// ResetFullBW, with a baseline.
    fn reset_full_bw(&mut self, baseline: Rate) {
        self.full_bw = baseline;
        self.full_bw_count = 0;
        self.full_bw_now = false;
    }

    /// CheckFullBWReached.
    fn check_full_bw(&mut self, sample: &Sample) {
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
    fn check_startup(&mut self, sample: &Sample) {
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
            self.full_bw_reached = true;
            self.inflight_longterm = self.bdp(self.bw()).max(self.inflight_latest);
        }
        if self.full_bw_reached {
            self.phase = Phase::Drain;
            self.drain_since = self.rounds();
        }
    }

    /// CheckDrainDone.
    fn check_drain(&mut self, ack: &Ack) {
        if self.phase == Phase::Drain
            && (ack.in_flight <= self.inflight(self.bw(), Ratio::ONE)
                || self.rounds().saturating_sub(self.drain_since) > DRAIN_ROUNDS)
        {
            self.start_down(ack);
        }
    }

    /// StartProbeBW_DOWN with PickProbeWait.
    fn start_down(&mut self, ack: &Ack) {
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
    fn start_refill(&mut self, ack: &Ack) {
        self.reset_short_term();
        self.probe_up_rounds = 0;
        self.probe_up_acked = Bytes::ZERO;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.round.restart(ack);
        self.phase = Phase::Refill;
    }

    /// StartProbeBW_UP.
    fn start_up(&mut self, ack: &Ack, sample: &Sample) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.round.restart(ack);
        self.reset_full_bw(sample.rate.unwrap_or(Rate::ZERO));
        self.phase = Phase::Up;
        self.raise_slope();
    }

    /// UpdateProbeBWCyclePhase.
    fn update_cycle(&mut self, ack: &Ack, sample: &Sample) {
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
    fn is_time_to_probe(&self, ack: &Ack) -> bool {
        let segments = self.target_inflight().get() / self.mss.get().max(1);
        ack.now > self.probe_at || u64::from(self.rounds_since_probe) >= segments.min(MAX_ROUNDS)
    }

    fn is_time_to_cruise(&self, ack: &Ack) -> bool {
        ack.in_flight <= self.inflight_with_headroom()
            && ack.in_flight <= self.inflight(self.max_bw(), Ratio::ONE)
    }

    fn is_time_to_go_down(&mut self, ack: &Ack, sample: &Sample) -> bool {
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

    const fn is_window_limited(&self) -> bool {
        self.is_limited[0] || self.is_limited[1]
    }

    fn inflight_with_headroom(&self) -> Bytes {
        if self.inflight_longterm == Bytes::MAX {
            return Bytes::MAX;
        }
        let headroom = self.mss.max(self.inflight_longterm * HEADROOM);
        self.inflight_longterm.saturating_sub(headroom).max(self.min_window())
    }

    /// RaiseInflightLongtermSlope.
    fn raise_slope(&mut self) {
        let growth = 1_u64 << self.probe_up_rounds;
        self.probe_up_rounds = (self.probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_inc = (self.window / growth).max(self.mss);
    }

    /// ProbeInflightLongtermUpward.
    fn probe_upward(&mut self, ack: &Ack, sample: &Sample) {
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
    fn adapt_long_term(&mut self, ack: &Ack, sample: &Sample) -> bool {
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

    fn check_probe_rtt(&mut self, ack: &Ack, sample: &Sample, is_expired: bool) {
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
    fn exit_probe_rtt(&mut self, ack: &Ack) {
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

    // --- control (BBR3 §5.6) ---------------------------------------------------------------------

    /// BBR.MinPipeCwnd.
    fn min_window(&self) -> Bytes {
        self.mss * MINIMUM_SEGMENTS
    }

    /// SetSendQuantum.
    fn send_quantum(&self) -> Bytes {
        (self.pace * Span::from_millis(1)).min(LARGEST_QUANTUM).max(self.mss * 2)
    }

    /// QuantizationBudget.
    fn budget(&self, inflight: Bytes) -> Bytes {
        let least = inflight.max(self.send_quantum() * 3).max(self.min_window());
        if self.phase == Phase::Up { least + self.mss * 2 } else { least }
    }

    fn inflight(&self, bw: Rate, gain: Ratio) -> Bytes {
        self.budget(self.bdp(bw) * gain)
    }

    fn probe_rtt_window(&self) -> Bytes {
        (self.bdp(self.bw()) * PROBE_RTT_GAIN).max(self.min_window())
    }

    /// SetPacingRateWithGain.
    fn set_pace(&mut self, gain: Ratio) {
        let pace = self.bw() * gain * PACING_SHARE;
        if self.full_bw_reached || pace > self.pace {
            self.pace = pace.max(MIN_PACE);
        }
    }

    fn is_repairing(&self, ack: &Ack) -> bool {
        ack.in_recovery || ack.delivered < self.repaired_at
    }

    /// SetCwnd, with BoundCwndForProbeRTT and BoundCwndForModel.
    fn set_window(&mut self, ack: &Ack) {
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
    fn save_window(&mut self) {
        let is_reduced = self.in_recovery || matches!(self.phase, Phase::ProbeRtt);
        self.prior_window = if is_reduced { self.prior_window.max(self.window) } else { self.window };
    }
}

impl Startup for BbrV3 {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.mss = prior.mss;
        self.window = prior.mss * u64::from(self.params.initial_window);
        self.min_rtt_at = prior.now;
        self.probe_rtt_min_at = prior.now;
        self.extra.since = prior.now;
        if !prior.handshake_rtt.is_zero() && !prior.handshake_retransmitted {
            self.min_rtt = prior.handshake_rtt;
        }
        let seed = prior.now.as_nanos()
            ^ prior.handshake_rtt.as_nanos().rotate_left(32)
            ^ u64::from(self.params.seed);
        // Never zero, a fixed point of xorshift.
        self.random = ((seed | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32 | 1;
        // InitPacingRate.
        let is_unknown = prior.handshake_rtt.is_zero();
        let rtt = if is_unknown { Span::from_millis(1) } else { prior.handshake_rtt };
        self.pace = ((self.window * STARTUP_GAIN) / rtt).max(MIN_PACE);
        FlightPlan { burst: self.send_quantum(), flight: self.window, allowance: self.allowance() }
    }

    /// BBR3 §5.4.1: after idleness at the estimated rate.
    fn on_sent(&mut self, sent: &Sent) {
        if sent.in_flight + self.mss > self.window {
            self.is_limited[0] = true;
        }
        if sent.in_flight <= sent.bytes {
            self.restarts_from_idle = true;
            self.extra.restart(sent.now);
            if self.is_probe_bw() {
                self.set_pace(Ratio::ONE);
            }
        }
    }

    /// BBR3 §5.2.3: UpdateOnACK.
    fn on_ack(&mut self, ack: &Ack) -> Next {
        self.losses.on_ack(ack, self.window);
        let sample = self.sample(ack);
        self.marks.on_ack(ack, self.mss, sample.begins_round);
        if !self.newly_lost.is_zero() {
            self.handle_losses(ack, &sample);
        }
        self.update_signals(&sample);
        if sample.begins_round {
            self.extra.on_round(self.rounds(), self.full_bw_reached);
        }
        self.extra.on_ack(ack, self.bw(), self.window);
        self.check_full_bw(&sample);
        self.check_startup(&sample);
        self.check_drain(ack);
        self.update_cycle(ack, &sample);
        let is_expired = self.update_min_rtt(ack);
        self.check_probe_rtt(ack, &sample, is_expired);
        self.advance_signals(&sample);
        self.newly_lost = Bytes::ZERO;
        self.set_pace(self.gains().0);
        self.set_window(ack);
        Next::Stay
    }

    /// BBR3 §5.2.4 and §5.6.4.4.
    fn on_congestion(&mut self, signal: &Congestion) -> Next {
        if signal.signal == Signal::CongestionExperienced {
            self.marks.on_signal();
            return Next::Stay;
        }
        self.losses.lost += signal.lost;
        self.newly_lost += signal.lost;
        self.loss_events = self.loss_events.saturating_add(1);
        if signal.opens_episode {
            self.save_window();
            self.in_recovery = true;
            self.recovery_since = self.rounds();
        }
        // NoteLoss.
        if !self.is_loss_in_round {
            self.loss_round_ends = signal.delivered;
        }
        self.is_loss_in_round = true;
        Next::Stay
    }

    /// BBR3 §5.6.4.4: one segment, and back as acks arrive.
    fn on_timeout(&mut self, timeout: &Timeout) -> Next {
        self.save_window();
        self.in_recovery = true;
        self.recovery_since = self.rounds();
        self.repaired_at = timeout.delivered + timeout.prior_in_flight;
        self.window = self.mss;
        Next::Stay
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        Allowance { window: self.window, pace: Some(self.pace) }
    }

    fn is_slow_start(&self) -> bool {
        self.phase == Phase::Startup
    }

    fn phase(&self) -> &'static str {
        match self.phase {
            Phase::Startup => "Startup",
            Phase::Drain => "Drain",
            Phase::Down => "ProbeBW_DOWN",
            Phase::Cruise => "ProbeBW_CRUISE",
            Phase::Refill => "ProbeBW_REFILL",
            Phase::Up => "ProbeBW_UP",
            Phase::ProbeRtt => "ProbeRTT",
        }
    }

    #[inline]
    fn needs_sent_events(&self) -> bool {
        true
    }
}

/// C.lost when data acknowledged now was sent, sampled at a few points of the last round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    /// C.lost.
    lost: Bytes,
    /// Delivered and lost bytes, the newest first, both modulo 2^32: windows are smaller.
    points: [(u32, u32); 7],
}

const fn low(bytes: Bytes) -> u32 {
    bytes.get() as u32
}

impl Losses {
    /// Adds a point for each sixth of a window.
    fn on_ack(&mut self, ack: &Ack, window: Bytes) {
        let before = low(ack.delivered.saturating_sub(ack.newly_acked));
        if before.wrapping_sub(self.points[0].0) >= low(window / 6).max(1) {
            self.points.rotate_right(1);
            self.points[0] = (before, low(self.lost));
        }
    }

    /// Bytes lost while the delivered total rose from `delivered` to `now`; since the oldest point,
    /// if that is later.
    fn since(&self, delivered: Bytes, now: Bytes) -> Bytes {
        let age = |at: u32| low(now).wrapping_sub(at);
        let known = self.points.iter().find(|(at, _)| age(*at) >= age(low(delivered)));
        let (_, lost) = known.unwrap_or(&self.points[self.points.len() - 1]);
        Bytes::new(u64::from(low(self.lost).wrapping_sub(*lost)))
    }
}

/// BBR3 §5.5.9: bytes acknowledged beyond the expected (ack aggregation).
#[derive(Clone, Copy, Debug, Default)]
struct Extra {
    since: Time,
    acked: Bytes,
    /// The largest aggregates of the current and of the previous rounds.
    largest: [Bytes; 2],
}

impl Extra {
    /// UpdateACKAggregation.
    fn on_ack(&mut self, ack: &Ack, bw: Rate, window: Bytes) {
        let mut expected = bdp(bw, ack.now.since(self.since)).unwrap_or(Bytes::ZERO);
        if self.acked <= expected {
            self.restart(ack.now);
            expected = Bytes::ZERO;
        }
        self.acked += ack.newly_acked;
        let extra = self.acked.saturating_sub(expected).min(window);
        self.largest[0] = self.largest[0].max(extra);
    }

    /// Drops samples older than five to ten rounds; in Startup, older than this one.
    fn on_round(&mut self, round: u32, is_filled: bool) {
        if !is_filled {
            self.largest = [Bytes::ZERO; 2];
        } else if round.is_multiple_of(EXTRA_ROUNDS) {
            self.largest = [Bytes::ZERO, self.largest[0]];
        }
    }

    fn restart(&mut self, now: Time) {
        self.since = now;
        self.acked = Bytes::ZERO;
    }

    fn most(&self) -> Bytes {
        self.largest[0].max(self.largest[1])
    }
}

/// The share of marks, as Linux's BBRv3 averages it.
#[derive(Clone, Copy, Debug)]
struct Marks {
    /// The average, in 2^-16.
    average: u32,
    /// The share of the last whole round, in 2^-16.
    share: u32,
    acked: Bytes,
    marked: Bytes,
    /// The transport reported a mark since the last ack.
    is_signalled: bool,
    in_loss_round: bool,
    /// Consecutive rounds with at least half of their bytes marked.
    full_rounds: u8,
}

impl Default for Marks {
    fn default() -> Self {
        Self {
            average: MARK_ONE,
            share: 0,
            acked: Bytes::ZERO,
            marked: Bytes::ZERO,
            is_signalled: false,
            in_loss_round: false,
            full_rounds: 0,
        }
    }
}

impl Marks {
    fn on_signal(&mut self) {
        self.is_signalled = true;
    }

    fn on_ack(&mut self, ack: &Ack, mss: Bytes, begins_round: bool) {
        let least = if self.is_signalled { mss.min(ack.newly_acked) } else { Bytes::ZERO };
        let marked = ack.marked.max(least);
        self.is_signalled = false;
        self.acked += ack.newly_acked;
        self.marked += marked;
        self.in_loss_round |= !marked.is_zero();
        if begins_round {
            let share =
                u128::from(self.marked.get()) * u128::from(MARK_ONE) / u128::from(self.acked.get().max(1));
            self.share = share.min(u128::from(MARK_ONE)) as u32;
            self.average = self.average - self.average / 16 + self.share / 16;
            self.full_rounds = if self.is_half() { self.full_rounds.saturating_add(1) } else { 0 };
            (self.acked, self.marked) = (Bytes::ZERO, Bytes::ZERO);
        }
    }

    /// True if at least half of the last round was marked.
    const fn is_half(&self) -> bool {
        self.share >= MARK_ONE / 2
    }

    /// `bytes` reduced by a third of the average.
    fn cut(&self, bytes: Bytes) -> Bytes {
        bytes.saturating_sub(bytes * Ratio::new(self.average, MARK_ONE * 3))
    }
}

const MARK_ONE: u32 = 1 << 16;
/// BBR.StartupPacingGain (BBR3 §2.5): 4 ln 2.
const STARTUP_GAIN: Ratio = Ratio::new(277, 100);
/// BBR.ProbeRTTCwndGain (BBR3 §2.16.2).
const PROBE_RTT_GAIN: Ratio = Ratio::new(1, 2);
/// BBR.PacingMarginPercent (BBR3 §2.5).
const PACING_SHARE: Ratio = Ratio::new(99, 100);
/// BBR.LossThresh (BBR3 §2.8).
const LOSS_THRESHOLD: Ratio = Ratio::new(2, 100);
/// BBR.Beta (BBR3 §2.8).
const BETA: Ratio = Ratio::new(7, 10);
/// BBR.Headroom (BBR3 §2.8).
const HEADROOM: Ratio = Ratio::new(15, 100);
/// BBR.MinPipeCwnd in segments (BBR3 §2.8).
const MINIMUM_SEGMENTS: u64 = 4;
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
/// Half of BBR.ExtraAckedFilterLen (BBR3 §2.12).
const EXTRA_ROUNDS: u32 = 5;
/// BBR.MinRTTFilterLen (BBR3 §2.16.1).
const MIN_RTT_LIFETIME: Span = Span::from_secs(10);
/// BBR.ProbeRTTInterval (BBR3 §2.16.2).
const PROBE_RTT_INTERVAL: Span = Span::from_secs(5);
/// BBR.ProbeRTTDuration (BBR3 §2.16.2).
const PROBE_RTT_DURATION: Span = Span::from_millis(200);
/// BBR3 §5.6.3.
const LARGEST_QUANTUM: Bytes = Bytes::new(64 * 1024);
/// Upper bound of a sample: a petabyte per second, clear of every overflow.
const MAX_RATE_SAMPLE: Rate = Rate::from_bytes_per_sec(1 << 50);
/// Least pace: at zero the pacer would never send again.
const MIN_PACE: Rate = Rate::from_bytes_per_sec(1);

#[cfg(test)]
mod tests;
