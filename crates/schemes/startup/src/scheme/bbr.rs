//! Send at the path's delivery rate, and probe periodically for more bandwidth and a lower RTT.
//!
//! Source (BBR below): N. Cardwell, Y. Cheng, S. Hassas Yeganeh, V. Jacobson, "BBR Congestion
//! Control", draft-cardwell-iccrg-bbr-congestion-control-00, which is BBR version 1; where it is
//! silent, and in later changes, Linux's tcp_bbr.c is followed, as the implementation in use. It
//! has a start-up of its own and needs no base controller: it never hands over.
//!
//! ```text
//!  Startup -- no 25 % more in 3 rounds --> Drain -- in flight = BDP --> ProbeBW --+
//!     ^                                                                 ^   |     | next phase of
//!     |                                                                 |   +-----+ the gain cycle
//!     +--- pipe was not full ---- ProbeRTT ---- pipe was full ----------+
//!                                    ^
//!                                    +--- from any: no lower RTT for 10 s
//! ```
//!
//! | phase | pacing gain | window gain |
//! |---|---|---|
//! | Startup | 2.887 | 2.887 |
//! | Drain | 0.344 | 2.887 |
//! | ProbeBW | 5/4, 3/4, 1, 1, 1, 1, 1, 1 | 2 |
//! | ProbeRTT | 1 | four segments |
//!
//! # Deviations
//!
//! - BBR begins the gain cycle at a random phase, any but 3/4. Here it is a parameter.
//! - Linux marks data sent during ProbeRTT as application-limited. A scheme cannot, so samples of
//!   that time count only if they exceed the estimate, which has the same effect.
//! - BBR regards a connection as idle when nothing is in flight and it was application-limited;
//!   here the first condition suffices.
//! - BBR ignores ECN, and so does this.
//! - BBR paces at the estimate, and its first gain is 2.89. Here it is one percent less and
//!   739/256, as Linux has both. With a slightly smaller growth, start-up may take one more round
//!   until three rounds are below 25 %. A further round at that gain overflows the buffer
//!   (`docs/records/agreement.md`).
//! - From Linux, too: room for aggregated acks, and windows of an even number of segments, two more
//!   while it probes.
//! - Linux detects policers; BBR does not, nor does this scheme.
//! - After a timeout the window grows from one segment until the data then in flight is delivered;
//!   data declared lost before is not counted.

use headstart_units::{Bytes, Rate, Ratio, Span, Time};

use self::aggregation::Aggregation;
use super::{Requirements, Startup};
use crate::about::{About, Native, Needs};
use crate::allowance::{Allowance, FlightPlan, Next};
use crate::event::{Ack, Congestion, Sent, Signal, Timeout};
use crate::path::{Round, WindowedMax, bdp};
use crate::prior::Prior;

/// The scheme's row of the catalogue.
pub const ABOUT: About = About {
    native: Some(Native::Bbr),
    ..About::new("bbr", Needs::Nothing, "BBR version 1")
        .not_over_tcp("it stays in charge for ever: select the kernel's own control instead")
};

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// Initial window in segments.
        initial_window: u64 = 10, in 1..=10_000, from "RFC 6928 §2";
        /// Index in the gain cycle at which ProbeBW begins; 1 (gain 3/4) is replaced by 2. BBR
        /// §4.3.4.3 draws it at random, so that flows do not probe in step: give flows that share a
        /// path different ones.
        cycle_start: u32 = 2, in 0..=7, from "ours";
        /// Take the peer's hint for BtlBw and begin in ProbeBW. The estimate expires as any
        /// sample is, ten rounds later.
        begins_from_hint: bool = false, from "BBR knows nothing of hints; Blitzstart §6 asks for it";
        /// As ngtcp2's BBR of 2022 (`lib/ngtcp2_bbr.c`, the behaviour in own words). It sets its
        /// first pace when a connection is created, before an RTT sample exists, as for an RTT of 1
        /// ms. Startup only raises it, so that nothing is paced until the pipe is full. Its send
        /// quantum is ten segments at least and, above 24 Mbit/s, the data of a round trip, up to
        /// 64 KiB; three quanta are added to every window. Its pacer sends such a burst, this one
        /// does not. It has none of Linux's additions.
        as_ngtcp2: bool = false, from "BBR";
    }
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Doubles the rate each round trip.
    Startup,
    /// Drains the queue that Startup left.
    Drain,
    /// Cycles around the estimated bandwidth.
    ProbeBw { index: usize, since: Time },
    /// Drains the queue to measure the propagation delay. `done`, once in flight is at the window:
    /// the earliest end, and true after a full round.
    ProbeRtt { done: Option<(Time, bool)> },
}

/// BBR version 1.
#[derive(Clone, Copy, Debug)]
pub struct Bbr {
    pub(super) params: Params,
    phase: Phase,
    mss: Bytes,
    pub(super) window: Bytes,
    pub(super) pace: Rate,
    round: Round,
    pub(super) btl_bw: WindowedMax<Rate>,
    /// RTprop; [`Span::MAX`] while unknown.
    pub(super) rt_prop: Span,
    rt_prop_at: Time,
    /// Baseline of BtlBw: the pipe is full if it grows by less than a quarter from here.
    full_bw: Rate,
    full_rounds: u32,
    pub(super) is_filled: bool,
    /// The window before recovery or ProbeRTT reduced it.
    prior_window: Bytes,
    in_recovery: bool,
    /// After a timeout: total delivered at which all data then in flight has been repaired.
    repaired_at: Bytes,
    /// Recovery began since the last ack.
    enters_recovery: bool,
    /// Packet conservation, until the round ends.
    conserves: bool,
    /// Bytes declared lost since the last ack.
    lost: Bytes,
    /// Samples of data sent before this total was delivered count only if they exceed the estimate.
    limited_until: Bytes,
    restarts_from_idle: bool,
    aggregation: Aggregation,
}

impl Bbr {
    /// [`Bbr`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            phase: Phase::Startup,
            mss: Bytes::ZERO,
            window: Bytes::ZERO,
            pace: Rate::MAX,
            round: Round::default(),
            btl_bw: WindowedMax::new(BTL_BW_ROUNDS),
            rt_prop: Span::MAX,
            rt_prop_at: Time::ZERO,
            full_bw: Rate::ZERO,
            full_rounds: 0,
            is_filled: false,
            prior_window: Bytes::ZERO,
            in_recovery: false,
            repaired_at: Bytes::ZERO,
            enters_recovery: false,
            conserves: false,
            lost: Bytes::ZERO,
            limited_until: Bytes::ZERO,
            restarts_from_idle: false,
            aggregation: Aggregation::default(),
        }
    }

    /// BBR §4.1.1: updates BtlBw; true if a round began.
    fn update_btl_bw(&mut self, ack: &Ack) -> bool {
        let begins = self.round.on_ack(ack);
        if begins {
            self.conserves = false;
        }
        if let Some(rate) = ack.rate.rate() {
            let rate = rate.min(MAX_RATE_SAMPLE);
            let is_limited = ack.rate.is_app_limited || ack.rate.prior_delivered < self.limited_until;
            if !is_limited || rate >= self.btl_bw.get() {
                self.btl_bw.update(self.round.count(), rate);
            }
            self.aggregation.on_ack(ack, begins, self.btl_bw.get(), self.window);
        }
        begins
    }

    /// BBR §4.3.4.3: the gain cycle.
    fn check_cycle_phase(&mut self, ack: &Ack) {
        let Phase::ProbeBw { index, since } = self.phase else { return };
        let gain = GAIN_CYCLE[index];
        let in_flight_before = ack.in_flight + ack.newly_acked + self.lost;
        let is_full_length = ack.now.since(since) > self.rt_prop;
        let is_over = match index {
            PROBING => is_full_length && (!self.lost.is_zero() || in_flight_before >= self.inflight(gain)),
            YIELDING => is_full_length || in_flight_before <= self.inflight(Ratio::ONE),
            _ => is_full_length,
        };
        if is_over {
            self.phase = Phase::ProbeBw { index: (index + 1) % GAIN_CYCLE.len(), since: ack.now };
        }
    }

    /// BBR §4.3.2.2: three rounds without a quarter more.
    fn check_full_pipe(&mut self, ack: &Ack, begins_round: bool) {
        if self.is_filled || !begins_round || ack.rate.is_app_limited {
            return;
        }
        if self.btl_bw.get() >= self.full_bw * STILL_GROWING {
            self.full_bw = self.btl_bw.get();
            self.full_rounds = 0;
        } else {
            self.full_rounds += 1;
            self.is_filled = self.full_rounds >= FULL_ROUNDS;
        }
    }

    /// BBR §4.3.3.
    fn check_drain(&mut self, ack: &Ack) {
        if matches!(self.phase, Phase::Startup) && self.is_filled {
            self.phase = Phase::Drain;
        }
        if matches!(self.phase, Phase::Drain) && ack.in_flight <= self.inflight(Ratio::ONE) {
            self.begin_probe_bw(ack.now);
        }
    }

    fn begin_probe_bw(&mut self, now: Time) {
        let index = match self.params.cycle_start as usize % GAIN_CYCLE.len() {
            YIELDING => YIELDING + 1,
            index => index,
        };
        self.phase = Phase::ProbeBw { index, since: now };
    }

    /// BBR §4.1.2 and §4.3.5: RTprop, and ProbeRTT when it has expired.
    fn update_rt_prop(&mut self, ack: &Ack, begins_round: bool) {
        let is_expired = ack.now.since(self.rt_prop_at) > RT_PROP_LIFETIME;
        if let Some(rtt) = ack.rtt_sample
            && (rtt <= self.rt_prop || is_expired)
        {
            self.rt_prop = rtt;
            self.rt_prop_at = ack.now;
        }
        let is_probing = matches!(self.phase, Phase::ProbeRtt { .. });
        if is_expired && !self.restarts_from_idle && !is_probing {
            self.save_window();
            self.phase = Phase::ProbeRtt { done: None };
        }
        if let Phase::ProbeRtt { done } = &mut self.phase {
            self.limited_until = ack.delivered + ack.in_flight;
            match *done {
                None if ack.in_flight <= self.mss * MINIMUM_SEGMENTS => {
                    *done = Some((ack.now + PROBE_RTT_DURATION, false));
                    self.round.restart(ack);
                }
                None => {}
                Some((at, had_round)) => {
                    let has_round = had_round || begins_round;
                    *done = Some((at, has_round));
                    if has_round && ack.now >= at {
                        self.end_probe_rtt(ack.now);
                    }
                }
            }
        }
        self.restarts_from_idle = false;
    }

    fn end_probe_rtt(&mut self, now: Time) {
        self.rt_prop_at = now;
        self.window = self.window.max(self.prior_window);
        if self.is_filled { self.begin_probe_bw(now) } else { self.phase = Phase::Startup }
    }

    /// BBR §4.2.3.5: the window to restore later.
    fn save_window(&mut self) {
        let is_reduced = self.in_recovery || matches!(self.phase, Phase::ProbeRtt { .. });
        self.prior_window = if is_reduced { self.prior_window.max(self.window) } else { self.window };
    }

    const fn gains(&self) -> (Ratio, Ratio) {
        match self.phase {
            Phase::Startup => (HIGH_GAIN, HIGH_GAIN),
            Phase::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Phase::ProbeBw { index, .. } => (GAIN_CYCLE[index], WINDOW_GAIN),
            Phase::ProbeRtt { .. } => (Ratio::ONE, Ratio::ONE),
        }
    }

    /// BBR §4.2.1.
    fn set_pace(&mut self, gain: Ratio) {
        let pace = self.btl_bw.get() * gain * self.pacing_share();
        if self.is_filled || pace > self.pace {
            self.pace = pace.max(MIN_PACE);
        }
    }

    /// BBR §4.2.2, as Linux's bbr_tso_segs_goal: segments in one burst.
    fn send_quantum(&self) -> u64 {
        if self.params.as_ngtcp2 {
            return self.send_quantum_of_ngtcp2();
        }
        let least = if self.pace < Rate::from_bits_per_sec(1_200_000) { 1 } else { 2 };
        let bytes = (self.pace.as_bytes_per_sec() >> 10).min(LARGEST_QUANTUM);
        (bytes / self.mss.get().max(1)).clamp(least, MAX_AT_ONCE)
    }

    /// BBR §4.2.2 in ngtcp2, in segments: ten at least, above 24 Mbit/s the segments of a round
    /// trip.
    fn send_quantum_of_ngtcp2(&self) -> u64 {
        let long = if self.rt_prop == Span::MAX { Span::from_millis(1) } else { self.rt_prop };
        let is_fast = self.pace >= Rate::from_mbit_per_sec(24);
        let bytes = if is_fast { (self.pace * long).min(Bytes::new(64 * 1024)) } else { Bytes::ZERO };
        bytes.get().div_ceil(self.mss.get().max(1)).max(10)
    }

    /// Share of the estimate at which it paces.
    const fn pacing_share(&self) -> Ratio {
        if self.params.as_ngtcp2 { Ratio::ONE } else { PACING_SHARE }
    }

    /// BBR §4.2.3.2: `gain` times the estimated BDP, plus three send quanta for the hosts' buffers.
    fn inflight(&self, gain: Ratio) -> Bytes {
        self.inflight_and(gain, Bytes::ZERO)
    }

    /// The window at `gain` plus `more` bytes. An even number of segments, so that delayed acks do
    /// not stall it; while probing two more, so that a small BDP is exceeded too
    /// (bbr_quantization_budget).
    fn inflight_and(&self, gain: Ratio, more: Bytes) -> Bytes {
        if self.rt_prop == Span::MAX {
            return self.mss * self.params.initial_window;
        }
        let bytes = bdp(self.btl_bw.get(), self.rt_prop).unwrap_or(Bytes::ZERO) * gain + more;
        let segments = bytes.get().div_ceil(self.mss.get().max(1)) + 3 * self.send_quantum();
        if self.params.as_ngtcp2 {
            return self.mss * segments;
        }
        let is_probing = matches!(self.phase, Phase::ProbeBw { index: PROBING, .. });
        self.mss * (segments.next_multiple_of(2) + if is_probing { 2 } else { 0 })
    }

    /// BBR §4.2.3.4 and §4.2.3.6.
    fn set_window(&mut self, ack: &Ack, gain: Ratio) {
        let is_repairing = ack.in_recovery || ack.delivered < self.repaired_at;
        if self.in_recovery && !is_repairing {
            self.in_recovery = false;
            self.conserves = false;
            self.window = self.window.max(self.prior_window);
        } else if self.enters_recovery {
            // Rounds of bandwidth filter and full-pipe check restart too: losses prolong Startup.
            self.round.restart(ack);
            self.conserves = true;
        }
        self.enters_recovery = false;
        if self.conserves {
            self.window = self.window.max(ack.in_flight + ack.newly_acked);
        } else {
            let room = if self.is_filled && !self.params.as_ngtcp2 {
                self.aggregation.room(self.btl_bw.get())
            } else {
                Bytes::ZERO
            };
            let target = self.inflight_and(gain, room);
            if self.is_filled {
                self.window = (self.window + ack.newly_acked).min(target);
            } else if self.window < target || ack.delivered < self.mss * self.params.initial_window {
                self.window += ack.newly_acked;
            }
            self.window = self.window.max(self.mss * MINIMUM_SEGMENTS);
        }
        if matches!(self.phase, Phase::ProbeRtt { .. }) {
            self.window = self.window.min(self.mss * MINIMUM_SEGMENTS);
        }
    }
}

impl Startup for Bbr {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.mss = prior.mss;
        self.window = prior.mss * self.params.initial_window;
        self.rt_prop_at = prior.now;
        if !prior.handshake_rtt.is_zero() && !prior.handshake_retransmitted {
            self.rt_prop = prior.handshake_rtt;
        }
        // BBR §4.2.1: an RTT of 1 ms where none is known.
        let is_unknown = prior.handshake_rtt.is_zero() || self.params.as_ngtcp2;
        let rtt = if is_unknown { Span::from_millis(1) } else { prior.handshake_rtt };
        self.pace = ((self.window * HIGH_GAIN) / rtt) * self.pacing_share();
        if let Some(hint) =
            prior.hint.filter(|hint| self.params.begins_from_hint && !hint.bandwidth.is_zero())
        {
            let recorded = prior.history.map(|known| known.record.rt_prop).filter(|rtt| !rtt.is_zero());
            self.rt_prop = self.rt_prop.min(recorded.unwrap_or(Span::MAX));
            self.btl_bw.update(self.round.count(), hint.bandwidth.min(MAX_RATE_SAMPLE));
            self.is_filled = true;
            self.begin_probe_bw(prior.now);
            self.set_pace(Ratio::ONE);
            self.window = self.inflight(WINDOW_GAIN);
        }
        FlightPlan { burst: self.mss * self.send_quantum(), flight: self.window, allowance: self.allowance() }
    }

    /// BBR §4.3.4.4: after idleness at the estimated rate, without another probe.
    fn on_sent(&mut self, sent: &Sent) {
        if sent.in_flight <= sent.bytes {
            self.restarts_from_idle = true;
            self.aggregation.restart(sent.now);
            if matches!(self.phase, Phase::ProbeBw { .. }) {
                self.set_pace(Ratio::ONE);
            }
        }
    }

    fn on_ack(&mut self, ack: &Ack) -> Next {
        let begins_round = self.update_btl_bw(ack);
        self.check_cycle_phase(ack);
        self.check_full_pipe(ack, begins_round);
        self.check_drain(ack);
        self.update_rt_prop(ack, begins_round);
        let (pacing_gain, window_gain) = self.gains();
        self.set_pace(pacing_gain);
        self.set_window(ack, window_gain);
        self.lost = Bytes::ZERO;
        Next::Stay
    }

    /// BBR §4.2.3.4: the model ignores loss; the window responds to it for a round trip.
    fn on_congestion(&mut self, signal: &Congestion) -> Next {
        if signal.signal == Signal::CongestionExperienced {
            return Next::Stay;
        }
        self.lost += signal.lost;
        if self.in_recovery {
            self.window = self.window.saturating_sub(signal.lost).max(self.mss);
        } else if signal.opens_episode {
            self.save_window();
            self.in_recovery = true;
            self.enters_recovery = true;
            self.window = signal.in_flight + self.mss;
        }
        Next::Stay
    }

    /// BBR §4.2.3.4: one segment, then slow start to the window before.
    fn on_timeout(&mut self, timeout: &Timeout) -> Next {
        self.save_window();
        self.in_recovery = true;
        self.repaired_at = timeout.delivered + timeout.prior_in_flight;
        self.enters_recovery = false;
        self.conserves = false;
        self.window = self.mss;
        self.full_bw = Rate::ZERO;
        Next::Stay
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        Allowance { window: self.window, pace: Some(self.pace) }
    }

    fn is_slow_start(&self) -> bool {
        matches!(self.phase, Phase::Startup)
    }

    fn requirements(&self) -> Requirements {
        Requirements { needs: self.params.begins_from_hint.then_some(Needs::Hint), ..Requirements::default() }
    }

    fn phase(&self) -> &'static str {
        match self.phase {
            Phase::Startup => "Startup",
            Phase::Drain => "Drain",
            Phase::ProbeBw { .. } => "ProbeBW",
            Phase::ProbeRtt { .. } => "ProbeRTT",
        }
    }

    #[inline]
    fn needs_sent_events(&self) -> bool {
        true
    }
}

/// BBRHighGain: about 2 / ln 2, the least that doubles the rate each round (BBR §4.3.2.1), in
/// Linux's 256ths (bbr_high_gain).
pub(super) const HIGH_GAIN: Ratio = Ratio::new(739, 256);
/// Inverse of BBRHighGain, in units of 1/256 (bbr_drain_gain).
const DRAIN_GAIN: Ratio = Ratio::new(88, 256);
/// One percent less than the estimate, so that queues become shorter on average
/// (bbr_pacing_margin_percent).
const PACING_SHARE: Ratio = Ratio::new(99, 100);
/// Size of one buffer (skb) in Linux: 64 kB less its headers.
const LARGEST_QUANTUM: u64 = 65_535 - 320;
/// Limit of a burst in segments (bbr_tso_segs_goal).
const MAX_AT_ONCE: u64 = 127;
/// BBR §4.2.3.2: twice the BDP, for delayed and aggregated acks.
const WINDOW_GAIN: Ratio = Ratio::new(2, 1);
/// BBR §4.3.4.3.
const GAIN_CYCLE: [Ratio; 8] = [
    Ratio::new(5, 4),
    Ratio::new(3, 4),
    Ratio::ONE,
    Ratio::ONE,
    Ratio::ONE,
    Ratio::ONE,
    Ratio::ONE,
    Ratio::ONE,
];
const PROBING: usize = 0;
const YIELDING: usize = 1;
/// BtlBwFilterLen, in rounds (BBR §4.1.1.3).
const BTL_BW_ROUNDS: u64 = 10;
/// RTpropFilterLen (BBR §4.1.2.1).
const RT_PROP_LIFETIME: Span = Span::from_secs(10);
/// BBRProbeRTTDuration (BBR §4.3.5).
const PROBE_RTT_DURATION: Span = Span::from_millis(200);
/// BBRMinPipeCwnd (BBR §4.2.3.1).
const MINIMUM_SEGMENTS: u64 = 4;
/// BBR §4.3.2.2.
const STILL_GROWING: Ratio = Ratio::new(5, 4);
const FULL_ROUNDS: u32 = 3;
/// Upper bound of a sample: a petabyte per second, clear of every overflow.
const MAX_RATE_SAMPLE: Rate = Rate::from_bytes_per_sec(1 << 50);
/// Least pace: at zero the pacer would never send again.
const MIN_PACE: Rate = Rate::from_bytes_per_sec(1);

mod aggregation;
#[cfg(test)]
mod tests;
