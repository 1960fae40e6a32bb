//! Start normally; once the path is confirmed, jump to half of the saved window, and retreat on
//! congestion.
//!
//! Source (CR below): RFC 9959, "Convergence of Congestion Control from Retained State" (Careful
//! Resume), cited by the names of its phases and rules.
//!
//! ```text
//!  Reconnaissance -- initial data acked, path confirmed -> Unvalidated -- sent -> Validating
//!      |                                                     |    |               |    |
//!      | refused                       nothing to validate   |    |  congestion   |    | all acked
//!      v                                                     |    v               v    |
//!    Normal <------------------------------------------------+   Safe Retreat <---+    |
//!      ^                                                           | all acked         |
//!      +-----------------------------------------------------------|-------------------+
//!                                                                  v
//!  Normal -- loss or CE, or an exit ----> hand over            hand over: window PipeSize / 2,
//!                                                              threshold PipeSize x beta
//! ```
//!
//! | phase | window | pace |
//! |---|---|---|
//! | Reconnaissance, Normal | slow start from the initial window | none |
//! | Unvalidated | min(max_jump, saved_cwnd / 2) | over the current RTT |
//! | Validating | the flight size, then slow start | none |
//! | Safe Retreat | half the PipeSize, never growing | none |
//!
//! The transport observes ([`crate::history`]): saved_cwnd is BtlBw x RTprop, saved_rtt RTprop.
//!
//! # Deviations
//!
//! - CR may enter Unvalidated as soon as the path is confirmed, or wait until it is window-limited.
//!   Here it waits, and does not jump to a window no larger than the current one.
//! - CR compares the RTT with ten times the saved one as an "indication" only. It refuses above.
//! - CR identifies packets by number. Here the first and last unvalidated packet are identified by
//!   their sending times, which never decrease.
//! - The initial data is all data sent before the first ack.
//! - "flight_size equals the CWND" is reached when there is no room for another segment.
//! - The current RTT for pacing is the smoothed one: of one sample a delayed ack slows the jump.
//! - After a timeout CR stops. The record of a connection that had jumped is then removed as
//!   after a Safe Retreat, and the threshold follows PipeSize and not the jump.
//! - The extra packet that may leave at once on entry to Safe Retreat is not granted.
//! - There is no signal of a path change, and the RTT is not checked again after the jump.
//!
//! # Limits
//!
//! A record of less than four initial windows gains nothing and is refused.

use headstart_units::{Bytes, Ratio, Span, Time};

use super::Startup;
use crate::about::{About, Needs};
use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::event::{Ack, Congestion, Sent, Timeout};
use crate::growth::{Decision, Exit, Growth};
use crate::history::{Record, RecordUpdate, Refusal};
use crate::prior::Prior;

/// The scheme's row of the catalogue.
pub const ABOUT: About = About::new(
    "careful-resume",
    Needs::History,
    "half of the peer's last rate x RTT, once it is confirmed (RFC 9959)",
)
.over_tcp();

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// Initial window in segments.
        initial_window: u64 = 10, in 1..=10_000, from "RFC 6928 §2, which CR asks to respect";
        /// The operator's limit of a jump. CR gives no number; the rule is half of the saved
        /// window.
        max_jump: Option<Bytes> = None, in Bytes::new(1)..=Bytes::new(1 << 40), from "CR";
        /// Lifetime of a record. CR speaks of minutes for paths that vary and hours for those that
        /// do not, and may exceed the five of RFC 7661.
        lifetime: Span = Span::from_secs(600), in Span::ZERO..=Span::from_secs(31_536_000), from "CR";
        /// Beta of Safe Retreat; CUBIC's 70 % is allowed.
        beta: Ratio = Ratio::new(1, 2), in Ratio::percent(1)..=Ratio::percent(100), from "CR";
        /// End of slow start other than by congestion.
        exit: Exit = Exit::Loss, from "the papers' baselines leave it on loss";
    }
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// As Normal, while checking that the path is the recorded one.
    Reconnaissance { record: Record, initial: Bytes, acked: Bytes },
    /// The jump is leaving.
    Unvalidated { jump: Jump, entered: Time, rtt: Span },
    /// The jump has been sent and is not acknowledged yet.
    Validating(Jump),
    /// Congestion in the jump.
    SafeRetreat(Jump),
    /// Without Careful Resume, or after it.
    Normal,
}

#[derive(Clone, Copy, Debug)]
struct Jump {
    /// PipeSize: bytes validated by acks.
    pipe_size: Bytes,
    /// Sending time of the first unvalidated packet, if any.
    first_sent_at: Option<Time>,
    /// Sending time of the last one; before there is one, the beginning of the phase.
    last_sent_at: Time,
}

/// Careful Resume.
#[derive(Clone, Copy, Debug)]
pub struct CarefulResume {
    pub(super) params: Params,
    phase: Phase,
    /// `None` once its exit has ended slow start.
    growth: Option<Growth>,
    mss: Bytes,
    window: Bytes,
    refusal: Option<Refusal>,
    discards_history: bool,
}

impl CarefulResume {
    /// [`CarefulResume`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            phase: Phase::Normal,
            growth: Some(Growth::new(params.exit)),
            mss: Bytes::ZERO,
            window: Bytes::ZERO,
            refusal: None,
            discards_history: false,
        }
    }

    /// The reason why there was no jump, once that is decided.
    #[must_use]
    pub const fn refusal(&self) -> Option<Refusal> {
        self.refusal
    }

    fn initial_window(&self) -> Bytes {
        self.mss * self.params.initial_window
    }

    fn refuse(&mut self, why: Refusal) {
        self.refusal = Some(why);
        self.phase = Phase::Normal;
    }

    /// The checks that are possible before the first byte.
    fn examine(&mut self, prior: &Prior) {
        let Some(known) = prior.history.filter(|known| known.record.bdp().is_some()) else {
            return self.refuse(Refusal::NoRecord);
        };
        if known.record.is_expired(prior.now, self.params.lifetime) {
            self.discards_history = true;
            self.refuse(Refusal::Expired);
        } else if known.live > 0 {
            self.refuse(Refusal::InUse);
        } else {
            let record = known.record;
            self.phase = Phase::Reconnaissance { record, initial: Bytes::ZERO, acked: Bytes::ZERO };
        }
    }

    /// Path confirmed: jumps, or records the reason for none.
    fn begin_unvalidated(&mut self, record: &Record, ack: &Ack) {
        let saved_cwnd = record.bdp().unwrap_or(Bytes::ZERO);
        let jump_cwnd = (saved_cwnd / 2).min(self.params.max_jump.unwrap_or(Bytes::MAX));
        if let Some(why) = record.contradicted_by(ack.rtt.min) {
            self.refuse(why);
        } else if jump_cwnd <= self.window {
            self.refuse(Refusal::NothingToGain);
        } else {
            let jump = Jump { pipe_size: ack.in_flight, first_sent_at: None, last_sent_at: ack.now };
            self.window = jump_cwnd;
            self.phase = Phase::Unvalidated { jump, entered: ack.now, rtt: ack.rtt.smoothed };
        }
    }

    /// Unvalidated Phase (Check flight_size).
    fn end_unvalidated(&mut self, jump: Jump, flight_size: Bytes) {
        if flight_size < self.initial_window() || flight_size <= jump.pipe_size {
            self.window = jump.pipe_size.max(self.initial_window());
            self.phase = Phase::Normal;
        } else {
            self.window = flight_size;
            self.phase = Phase::Validating(jump);
        }
    }

    fn begin_safe_retreat(&mut self, jump: Jump) {
        self.discards_history = true;
        self.window = (jump.pipe_size / 2).max(self.mss * MINIMUM_SEGMENTS);
        self.phase = Phase::SafeRetreat(jump);
    }

    /// Normal growth; clears `growth` when its exit ends it.
    fn grow(&mut self, ack: &Ack) {
        if let Some(growth) = &mut self.growth
            && growth.on_ack(&mut self.window, ack) == Decision::Exit
        {
            self.growth = None;
        }
    }
}

impl Startup for CarefulResume {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.mss = prior.mss;
        self.window = self.initial_window();
        self.examine(prior);
        FlightPlan::burst(self.window)
    }

    fn on_sent(&mut self, sent: &Sent) {
        match &mut self.phase {
            Phase::Reconnaissance { initial, acked, .. } if acked.is_zero() => *initial += sent.bytes,
            Phase::Unvalidated { jump, entered, rtt } => {
                jump.first_sent_at.get_or_insert(sent.now);
                jump.last_sent_at = sent.now;
                let (jump, is_late) = (*jump, sent.now.since(*entered) > *rtt);
                if is_late || sent.in_flight + self.mss > self.window {
                    self.end_unvalidated(jump, sent.in_flight);
                }
            }
            _ => {}
        }
    }

    fn on_ack(&mut self, ack: &Ack) -> Next {
        match &mut self.phase {
            Phase::Reconnaissance { record, initial, acked } => {
                *acked += ack.newly_acked;
                let (record, is_confirmed) = (*record, *acked >= *initial);
                self.grow(ack);
                if is_confirmed && ack.is_window_limited && self.growth.is_some() {
                    self.begin_unvalidated(&record, ack);
                }
            }
            Phase::Unvalidated { jump, entered, rtt } => {
                jump.pipe_size += ack.newly_acked;
                *rtt = ack.rtt.smoothed;
                let is_validated = jump.first_sent_at.is_some_and(|first| ack.newest_sent_at >= first);
                let (jump, is_late) = (*jump, ack.now.since(*entered) > *rtt);
                if is_validated || is_late {
                    self.end_unvalidated(jump, ack.in_flight);
                }
            }
            Phase::Validating(jump) => {
                jump.pipe_size += ack.newly_acked;
                let is_validated = ack.newest_sent_at >= jump.last_sent_at;
                self.grow(ack);
                if is_validated {
                    self.phase = Phase::Normal;
                }
            }
            Phase::SafeRetreat(jump) => {
                jump.pipe_size += ack.newly_acked;
                if ack.newest_sent_at >= jump.last_sent_at {
                    let ssthresh = (jump.pipe_size * self.params.beta).max(self.mss * MINIMUM_SEGMENTS);
                    let how = HandOver { ssthresh, ..HandOver::growing(self.window) };
                    return Next::HandOver(how);
                }
            }
            Phase::Normal => self.grow(ack),
        }
        let is_normal = matches!(self.phase, Phase::Normal | Phase::Reconnaissance { .. });
        if is_normal && self.growth.is_none() {
            return Next::HandOver(HandOver::avoiding(self.window));
        }
        Next::Stay
    }

    fn on_congestion(&mut self, _: &Congestion) -> Next {
        match self.phase {
            Phase::Unvalidated { jump, .. } | Phase::Validating(jump) => {
                self.begin_safe_retreat(jump);
                Next::Stay
            }
            Phase::SafeRetreat(_) => Next::Stay,
            Phase::Reconnaissance { .. } => {
                self.refuse(Refusal::Congested);
                Next::HandOver(HandOver::to_be_cut(self.window))
            }
            Phase::Normal => Next::HandOver(HandOver::to_be_cut(self.window)),
        }
    }

    fn on_timeout(&mut self, _: &Timeout) -> Next {
        match self.phase {
            Phase::Unvalidated { jump, .. } | Phase::Validating(jump) | Phase::SafeRetreat(jump) => {
                self.discards_history = true;
                self.window = self.window.min(jump.pipe_size).max(self.mss * MINIMUM_SEGMENTS);
            }
            Phase::Reconnaissance { .. } => self.refuse(Refusal::Congested),
            Phase::Normal => {}
        }
        Next::HandOver(HandOver::to_be_cut(self.window))
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        // ITT = RTT x MPS / jump_cwnd.
        let pace = match self.phase {
            Phase::Unvalidated { rtt, .. } => Some(self.window / rtt),
            _ => None,
        };
        Allowance { window: self.window, pace }
    }

    fn is_slow_start(&self) -> bool {
        !matches!(self.phase, Phase::SafeRetreat(_))
    }

    fn record_update(&self, measured: Option<Record>) -> RecordUpdate {
        if self.discards_history {
            RecordUpdate::Remove
        } else {
            measured.map_or(RecordUpdate::Keep, RecordUpdate::Replace)
        }
    }

    fn phase(&self) -> &'static str {
        match self.phase {
            Phase::Reconnaissance { .. } => "Reconnaissance",
            Phase::Unvalidated { .. } => "Unvalidated",
            Phase::Validating(_) => "Validating",
            Phase::SafeRetreat(_) => "Safe Retreat",
            Phase::Normal => "Normal",
        }
    }

    #[inline]
    fn needs_sent_events(&self) -> bool {
        true
    }
}

/// RFC 9002 §4.8.
const MINIMUM_SEGMENTS: u64 = 2;

#[cfg(test)]
mod tests;
