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
//! | module | section |
//! |---|---|
//! | `states` | BBR3 §5.3 |
//! | `model` | BBR3 §5.5 |
//! | `control` | BBR3 §5.6 |
//! | `marks` | Linux |
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
use crate::about::{About, Needs};
use crate::allowance::{Allowance, FlightPlan, Next};
use crate::event::{Ack, Congestion, Sent, Signal, Timeout};
use crate::path::Round;
use crate::prior::Prior;

mod control;
mod marks;
mod model;
mod states;
#[cfg(test)]
mod tests;

use marks::Marks;
use model::{Extra, Losses, Sample};

/// The scheme's row of the catalogue.
pub const ABOUT: About = About {
    also: &["bbr3"],
    is_compared: false,
    ..About::new("bbr-v3", Needs::Nothing, "BBR version 3")
        .not_over_tcp("it stays in charge for ever: select the kernel's own control instead")
};

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
    pub(super) window: Bytes,
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
    pub(super) min_rtt: Span,
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

impl BbrV3 {
    /// [`BbrV3`] with `params`, before [`Startup::establish`].
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

    pub(super) fn max_bw(&self) -> Rate {
        self.max_bw[0].max(self.max_bw[1])
    }

    /// BBR.bw (BoundBWForModel).
    fn bw(&self) -> Rate {
        self.max_bw().min(self.bw_shortterm)
    }

    /// BBR.round_count.
    pub(super) fn rounds(&self) -> u32 {
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

/// BBR.StartupPacingGain (BBR3 §2.5): 4 ln 2.
const STARTUP_GAIN: Ratio = Ratio::new(277, 100);
/// BBR.ProbeRTTCwndGain (BBR3 §2.16.2).
const PROBE_RTT_GAIN: Ratio = Ratio::new(1, 2);
/// Least pace: at zero the pacer would never send again.
const MIN_PACE: Rate = Rate::from_bytes_per_sec(1);
