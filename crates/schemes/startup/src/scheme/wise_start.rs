//! Begin with the recorded bandwidth-delay product at twice the recorded rate, and decide by the
//! first acks between probing for more and draining the excess.
//!
//! Source: "Cold Start or Hot Start? Robust Slow Start in Congestion Control with *A Priori*
//! Knowledge for Mobile Web Services" (WS below), Algorithm 1, equation (1), §3.2 to §3.4.
//!
//! ```text
//!  Sending --- 1st ack ---> Maintenance --- 6th ack ---> Probe ---- HyStart++ -------> hand over
//!                                             |
//!                                             +--------> Drain ---- in flight = BDP -> hand over
//!  slow start (no record) ------ HyStart++ ----------------------------------------> hand over
//!  any of them ----------------- loss or CE -----------------------------> hand over, to be cut
//! ```
//!
//! | phase | window | pace |
//! |---|---|---|
//! | Sending | BtlBw x RTprop | 2, 0.5 and then 1 times BtlBw |
//! | Maintenance | bytes in flight | none |
//! | Maintenance, application-limited | as Sending | as Sending |
//! | Probe | slow start | none |
//! | Drain | bytes in flight, down to the estimated BDP | none |
//!
//! # Deviations
//!
//! - Algorithm 1 compares `Inflight` "on each packet sent": the packet is included here.
//! - Algorithm 1 sets CWND to `Cur_Inflight`, and §3.3.2 sends packets only when acks arrive. If
//!   the acked bytes were subtracted first, none could be sent at all: they are counted in, losses
//!   are not.
//! - §3.3.3 lets Drain converge "to the BDP according to the strategy of the Maintenance phase".
//!   With one packet sent for each acknowledged one it would not converge, so in Drain acked bytes
//!   are not counted. Nothing is sent until bytes in flight are at the estimated BDP, where
//!   avoidance takes over.
//! - WS does not state the effect of a loss before the decision. It ends the start, as it ends
//!   CUBIC's slow start; the lost bytes are subtracted first (§3.3.2), then the base cuts.
//!   [`Params::tolerates_loss`] is the other reading: Algorithm 1 has no branch for a loss, and if
//!   a loss ended the start, no window would remain to subtract it from.
//! - §3.4 does not say how `Est_SendRate` is averaged. At the first ack: over the time since the
//!   first byte left, less the time during which the window was full. Nor its reference while the
//!   pacing rate changes: here the time that the same bytes would have taken at the rates set when
//!   they left. Nor the threshold of being limited: here a tenth below.
//! - At the sixth ack it is the sending rate of the bytes that equation (1) counts. These are the
//!   acks of the second to the sixth, over the time between the sendings of the first and the
//!   sixth. Only so can a lower `Est_BtlBw` mean that "the actual sending data fills the path". An
//!   application that pauses between two acks slows both rates alike. The threshold is a quarter.
//!   Data sent at twice the rate of the path is acknowledged at half its sending rate, and
//!   differences below a quarter are jitter and delayed acks.
//! - §3.4 lets an application-limited sender continue pacing "as the Sending phase" after the first
//!   ack: window, pace and the thresholds of lines 9 to 17 stay. The limit is measured again at the
//!   sixth ack, for the measurement "lasts in all three phases". A sender that was not limited at
//!   the first has no pacing rate to be compared with and is not limited at the sixth.
//! - Equation (1) divides by zero if the acks arrived together: the decision waits for the first
//!   one that did not.
//! - After the decision nothing is paced, for slow start is not.
//!
//! # Limits
//!
//! No age, RTT or other connection stops it from using the record: so the paper measured it.

use headstart_units::{Bytes, Rate, Ratio, Span, Time};

use super::Startup;
use crate::about::{About, Needs, Preset};
use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::event::{Ack, Congestion, Sent, Signal};
use crate::growth::{Decision, Exit, Growth};
use crate::path::{LARGEST_WINDOW, SendRate};
use crate::prior::Prior;

/// The scheme's row of the catalogue.
pub const ABOUT: About = About {
    presets: &[Preset {
        name: "wise-start-wa",
        text: "wise-start(adaptation=off)",
        summary: "wise-start without its adaptation to the application",
    }],
    ..About::new(
        "wise-start",
        Needs::History,
        "the peer's last rate x RTT, then probe or drain at the sixth ack",
    )
    .over_tcp()
};

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// gamma: number of the deciding ack. Two at least, since equation (1) sums from the
        /// second.
        gamma: u32 = 6, in 2..=10_000, from "WiseStart Algorithm 1";
        /// kappa in segments: those sent at twice the rate.
        kappa: u64 = 20, in 1..=100_000, from "WiseStart Algorithm 1";
        /// Adapt to a limiting application (§3.4); without it, WiseStart-wa of §4.4.2.
        adaptation: bool = true, from "WiseStart §3.4";
        /// Initial window in segments where no record exists.
        initial_window: u64 = 10, in 1..=10_000, from "WiseStart §3.2";
        /// End of slow start other than by congestion.
        exit: Exit = Exit::HyStart, from "WiseStart §5";
        /// Subtract losses until the decision, and in Drain, from the window (§3.3.2) without
        /// ending the start. Algorithm 1 does so, and a public fork of ngtcp2, presumably the
        /// authors' (`Centaurus99/ngtcp2`, `lib/ngtcp2_stateful_cubic_2.c`, end of 2022). Else a
        /// loss ends the start.
        tolerates_loss: bool = false, from "ours: the safe side";
    }
}

/// The phase of a start from a record, before its first ack.
pub const SENDING: &str = "Sending";
/// Between the first ack and the decision.
pub const MAINTENANCE: &str = "Maintenance";
/// After the decision to probe.
pub const PROBE: &str = "Probe";
/// After the decision to drain.
pub const DRAIN: &str = "Drain";

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// No record.
    SlowStart,
    /// §3.3.1: until the first ack.
    Sending,
    /// §3.3.2: until ack number gamma.
    Maintenance(Feedback),
    /// §3.3.3: the path has unused capacity.
    Probe,
    /// §3.3.3: the path is full.
    Drain { est_bdp: Bytes },
}

/// Measurements from the first acks.
#[derive(Clone, Copy, Debug)]
struct Feedback {
    acks: u32,
    /// `Recv_Tstamp_1`.
    first_at: Time,
    /// Sending time of the data that the first ack acknowledges.
    first_sent_at: Time,
    /// The sum of `Ack_Bytes` from the second ack on.
    acked: Bytes,
    /// `Est_RTprop` so far.
    min_rtt: Span,
}

/// WiseStart.
#[derive(Clone, Copy, Debug)]
pub struct WiseStart {
    pub(super) params: Params,
    phase: Phase,
    growth: Growth,
    mss: Bytes,
    /// `Last_BtlBw`.
    last_btl_bw: Rate,
    window: Bytes,
    pace: Option<Rate>,
    /// `Est_SendRate` of §3.4.
    sending: SendRate,
}

impl WiseStart {
    /// [`WiseStart`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            phase: Phase::SlowStart,
            growth: Growth::new(params.exit),
            mss: Bytes::ZERO,
            last_btl_bw: Rate::ZERO,
            window: Bytes::ZERO,
            pace: None,
            sending: SendRate::default(),
        }
    }

    /// Algorithm 1, lines 18 to 22.
    fn begin_maintenance(&mut self, ack: &Ack) {
        let min_rtt = ack.rtt_sample.unwrap_or(Span::MAX);
        self.phase = Phase::Maintenance(Feedback {
            acks: 1,
            first_at: ack.now,
            first_sent_at: ack.newest_sent_at,
            acked: Bytes::ZERO,
            min_rtt,
        });
        if !self.is_app_limited(ack.now) {
            self.pace = None;
            self.maintain(ack);
        }
    }

    /// One packet may leave for each that arrived.
    fn maintain(&mut self, ack: &Ack) {
        self.set_window(ack.in_flight + ack.newly_acked);
    }

    fn set_window(&mut self, window: Bytes) {
        self.window = window.clamp(self.mss * MINIMUM_SEGMENTS, LARGEST_WINDOW);
    }

    /// §3.4; never without adaptation, nor once nothing is paced.
    fn is_app_limited(&self, now: Time) -> bool {
        self.params.adaptation && self.pace.is_some() && self.sending.is_app_limited(now)
    }

    /// Algorithm 1, lines 23 to 31, and the Decision phase of §3.4.
    fn decide(&mut self, ack: &Ack, feedback: &Feedback) -> Next {
        let est_btl_bw = feedback.acked / ack.now.since(feedback.first_at);
        let est_rt_prop = if feedback.min_rtt == Span::MAX { ack.rtt.min } else { feedback.min_rtt };
        let est_bdp = (est_btl_bw * est_rt_prop).clamp(self.mss * MINIMUM_SEGMENTS, LARGEST_WINDOW);
        let is_filled = if self.is_app_limited(ack.now) {
            let est_send_rate = feedback.acked / ack.newest_sent_at.since(feedback.first_sent_at);
            est_btl_bw < est_send_rate * FILLED
        } else {
            self.window >= est_bdp
        };
        self.pace = None;
        if is_filled {
            self.phase = Phase::Drain { est_bdp };
            self.drain(ack, est_bdp)
        } else {
            self.phase = Phase::Probe;
            Next::Stay
        }
    }

    fn drain(&mut self, ack: &Ack, est_bdp: Bytes) -> Next {
        self.set_window(self.window.min(ack.in_flight.max(est_bdp)));
        if ack.in_flight <= est_bdp { Next::HandOver(HandOver::avoiding(self.window)) } else { Next::Stay }
    }
}

impl Startup for WiseStart {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.mss = prior.mss;
        let resumed = prior.history.and_then(|it| it.record.window_and_rate(prior.mss, prior.handshake_rtt));
        let Some((bdp, btl_bw)) = resumed else {
            self.window = prior.mss * self.params.initial_window;
            return FlightPlan::burst(self.window);
        };
        self.phase = Phase::Sending;
        self.last_btl_bw = btl_bw;
        self.window = bdp;
        let pace = btl_bw * 2;
        self.pace = Some(pace);
        FlightPlan::paced(prior.mss, bdp, pace)
    }

    /// Algorithm 1, lines 9 to 17.
    fn on_sent(&mut self, sent: &Sent) {
        if !self.needs_sent_events() {
            return;
        }
        let is_full = sent.in_flight + self.mss > self.window;
        self.sending.on_sent(sent, self.pace, is_full);
        if self.pace.is_some() {
            let kappa = self.mss * self.params.kappa;
            if sent.in_flight >= self.window.min(kappa) {
                self.pace = Some((self.last_btl_bw * HALF).max(MIN_PACE));
            }
            if sent.in_flight >= self.window.min(kappa * ONE_AND_A_HALF) {
                self.pace = Some(self.last_btl_bw);
            }
        }
    }

    fn on_ack(&mut self, ack: &Ack) -> Next {
        self.sending.on_ack(ack.now);
        match self.phase {
            Phase::Sending => {
                self.begin_maintenance(ack);
                Next::Stay
            }
            Phase::Maintenance(mut feedback) => {
                feedback.on_ack(ack);
                if feedback.acks >= self.params.gamma.max(2) && ack.now > feedback.first_at {
                    return self.decide(ack, &feedback);
                }
                self.phase = Phase::Maintenance(feedback);
                if self.pace.is_none() {
                    self.maintain(ack);
                }
                Next::Stay
            }
            Phase::SlowStart | Phase::Probe => match self.growth.on_ack(&mut self.window, ack) {
                Decision::Continue => Next::Stay,
                Decision::Exit => Next::HandOver(HandOver::avoiding(self.window)),
            },
            Phase::Drain { est_bdp } => self.drain(ack, est_bdp),
        }
    }

    fn on_congestion(&mut self, signal: &Congestion) -> Next {
        if matches!(self.phase, Phase::Sending | Phase::Maintenance(_) | Phase::Drain { .. }) {
            self.set_window(self.window.saturating_sub(signal.lost));
            if self.params.tolerates_loss && signal.signal == Signal::Loss {
                return Next::Stay;
            }
        }
        Next::HandOver(HandOver::to_be_cut(self.window))
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        Allowance { window: self.window, pace: self.pace }
    }

    fn is_slow_start(&self) -> bool {
        !matches!(self.phase, Phase::Drain { .. })
    }

    fn phase(&self) -> &'static str {
        match self.phase {
            Phase::SlowStart => "slow start",
            Phase::Sending => SENDING,
            Phase::Maintenance(_) => MAINTENANCE,
            Phase::Probe => PROBE,
            Phase::Drain { .. } => DRAIN,
        }
    }

    /// True until the decision; after it, and without a record, sent data has no effect.
    #[inline]
    fn needs_sent_events(&self) -> bool {
        matches!(self.phase, Phase::Sending | Phase::Maintenance(_))
    }
}

impl Feedback {
    fn on_ack(&mut self, ack: &Ack) {
        self.acks += 1;
        self.acked += ack.newly_acked;
        self.min_rtt = self.min_rtt.min(ack.rtt_sample.unwrap_or(Span::MAX));
    }
}

const HALF: Ratio = Ratio::new(1, 2);
const ONE_AND_A_HALF: Ratio = Ratio::new(3, 2);
/// The path is full if the delivery rate is below this share of the sending rate.
const FILLED: Ratio = Ratio::new(3, 4);
/// Least pace: at zero the pacer would never send again.
const MIN_PACE: Rate = Rate::from_bytes_per_sec(1);
/// RFC 5681 §3.1: the least window of a controller.
const MINIMUM_SEGMENTS: u64 = 2;

#[cfg(test)]
mod tests;
