//! BBR whose Startup resumes from half of the recorded window after its first round trip.
//!
//! Source (MV below): Meta's mvfst, March 2026, the behaviour in own words:
//! `quic/congestion_control/modular/Bbr2Startup.cpp` (`checkResumptionState`, `calculateCwnd`,
//! `checkStartupHighLoss`, `enterDrain`) and its session tickets, which carry a BDP and an RTT. The
//! other deployed reading of RFC 9959 besides [`careful_resume`](super::careful_resume).
//!
//! ```text
//!  Startup -- first round, nothing lost, RTT of half to ten times the record's --> resuming
//!
//!  resuming: window of 2.885 x BDP / 2, pace of BDP / 2 in an RTT, at least
//!     |-- two rounds ----------------------------> Startup
//!     |-- more than 2 % lost in a round ---------> Drain, at half of the measured rate
//!     |-- the pipe is found full ----------------> Drain, at half of the measured rate
//! ```
//!
//! # Deviations
//!
//! - The controller below is [`bbr_v3`]. mvfst's is BBR version 2, whose Startup has
//!   a gain of 2.885. While it resumes, the window's gain is MV's.
//! - mvfst paces at the larger of the model's rate and the initial window's. Here the initial
//!   pace is BBR's, which does not fall in Startup either.
//! - The record's RTT is the minimum; mvfst's ticket has the smoothed one.
//! - MV counts loss by rounds of its own; here a round is BBR's.

use headstart_units::{Bytes, Ratio, Span};

use super::Startup;
use super::bbr_v3::{self, BbrV3};
use crate::about::{About, Needs};
use crate::allowance::{Allowance, FlightPlan, Next};
use crate::event::{Ack, Congestion, Sent, Signal, Timeout};
use crate::prior::Prior;

/// The scheme's row of the catalogue.
pub const ABOUT: About = About {
    is_compared: false,
    ..About::new("mvfst-resume", Needs::History, "BBR that resumes from half of the last window (mvfst)")
};

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// Initial window in segments.
        initial_window: u32 = 10, in 1..=10_000, from "mvfst, kInitCwndInMss";
        /// Share of the recorded BDP from which it resumes.
        share: Ratio = Ratio::new(1, 2), in Ratio::percent(1)..=Ratio::percent(100), from "MV";
        /// Rounds in which it resumes.
        rounds: u32 = 2, in 1..=100, from "MV";
    }
}

/// mvfst's resumption in BBR's Startup.
#[derive(Clone, Copy, Debug)]
pub struct MvfstResume {
    pub(super) params: Params,
    bbr: BbrV3,
    phase: Phase,
    /// Bytes lost and delivered since the round began.
    lost: Bytes,
    delivered: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Until the first round ends.
    Waiting { bdp: Bytes, rt_prop: Span },
    /// From half of the BDP, since that round.
    Resuming { half: Bytes, since: u32 },
    /// BBR's.
    Done,
}

impl MvfstResume {
    /// [`MvfstResume`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        let below = bbr_v3::Params { initial_window: params.initial_window, ..bbr_v3::Params::default() };
        let (lost, delivered) = (Bytes::ZERO, Bytes::ZERO);
        Self { params, bbr: BbrV3::new(below), phase: Phase::Done, lost, delivered }
    }

    /// A round has ended, with this ack.
    fn on_round(&mut self, ack: &Ack) {
        let (lost, delivered) = (self.lost, self.delivered);
        (self.lost, self.delivered) = (Bytes::ZERO, Bytes::ZERO);
        let round = self.bbr.rounds();
        match self.phase {
            Phase::Waiting { bdp, rt_prop } if lost.is_zero() => {
                let rtt = ack.rtt.latest;
                // mvfst compares in milliseconds, both ends included.
                let is_path = rtt >= rt_prop / 2 && rtt <= rt_prop * RTT_TOO_LARGE;
                self.phase = match is_path {
                    true => Phase::Resuming { half: bdp * self.params.share, since: round },
                    false => Phase::Done,
                };
            }
            Phase::Resuming { .. } if lost > (lost + delivered) * LOSS_THRESHOLD => self.retreat(ack),
            Phase::Resuming { since, .. } if round >= since + self.params.rounds => self.phase = Phase::Done,
            _ => {}
        }
    }

    /// Startup is over while it resumes: half of the measured rate is left.
    fn retreat(&mut self, ack: &Ack) {
        self.phase = Phase::Done;
        self.bbr.end_startup(ack, self.bbr.max_bw() * Ratio::new(1, 2));
    }

    /// Raises the window while it resumes, or ends that with Startup.
    fn resume(&mut self, ack: &Ack) {
        let Phase::Resuming { half, .. } = self.phase else { return };
        if !self.bbr.is_slow_start() {
            self.retreat(ack);
        } else if half > self.bbr.inflight(self.bbr.max_bw(), STARTUP_GAIN) {
            self.bbr.window = self.bbr.window.max(half * STARTUP_GAIN);
        }
    }
}

impl Startup for MvfstResume {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        if let Some(record) = prior.history.map(|known| known.record)
            && let Some(bdp) = record.bdp()
        {
            self.phase = Phase::Waiting { bdp, rt_prop: record.rt_prop };
        }
        self.bbr.establish(prior)
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.bbr.on_sent(sent);
    }

    fn on_ack(&mut self, ack: &Ack) -> Next {
        let round = self.bbr.rounds();
        let next = self.bbr.on_ack(ack);
        if self.phase != Phase::Done {
            if self.bbr.rounds() != round {
                self.on_round(ack);
            }
            self.delivered += ack.newly_acked;
            self.resume(ack);
        }
        next
    }

    fn on_congestion(&mut self, signal: &Congestion) -> Next {
        if signal.signal == Signal::Loss {
            self.lost += signal.lost;
        }
        self.bbr.on_congestion(signal)
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Next {
        self.phase = Phase::Done;
        self.bbr.on_timeout(timeout)
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        let mut allowance = self.bbr.allowance();
        if let Phase::Resuming { half, .. } = self.phase {
            let pace = half / self.bbr.min_rtt;
            allowance.pace = allowance.pace.map(|modelled| modelled.max(pace));
        }
        allowance
    }

    fn is_slow_start(&self) -> bool {
        self.bbr.is_slow_start()
    }

    fn phase(&self) -> &'static str {
        match self.phase {
            Phase::Resuming { .. } => "resuming",
            _ => self.bbr.phase(),
        }
    }

    #[inline]
    fn needs_sent_events(&self) -> bool {
        true
    }
}

/// kStartupCwndGain of mvfst: 2 / ln 2.
const STARTUP_GAIN: Ratio = Ratio::new(2885, 1000);
/// kLossThreshold of mvfst.
const LOSS_THRESHOLD: Ratio = Ratio::percent(2);
const RTT_TOO_LARGE: u64 = 10;

#[cfg(test)]
mod tests {
    use super::super::timeline::{MSS, withstand_extremes};
    use super::*;
    use crate::base::testing::{acked, lost};
    use crate::history::testing::{absurd_priors, prior_with};
    use crate::path::{RateSample, Rtt};
    use headstart_units::{Rate, Time};

    /// A path of 100 ms that delivers what is in flight once in a round trip.
    struct Play {
        scheme: MvfstResume,
        now: Time,
        delivered: Bytes,
    }

    impl Play {
        /// From a record of 1 MB/s and `rt_prop`: a BDP of 100 segments at 100 ms.
        fn new(rt_prop: u64) -> Self {
            let mut scheme = MvfstResume::new(Params::default());
            let plan = scheme.establish(&prior_with(100_000 / rt_prop, rt_prop));
            assert_eq!(plan.flight, MSS * 10, "nothing is resumed before a round trip");
            Self { scheme, now: Time::from_millis(7_000), delivered: Bytes::ZERO }
        }

        /// A round trip of `segments`, at this rate, of which `lost` are lost after the first ack.
        fn round(&mut self, segments: u64, kilobytes_per_sec: u64, lost_segments: u64) {
            self.now += Span::from_millis(100);
            let (before, of) = (self.delivered, Span::from_millis(100));
            for segments in [1, segments - 1] {
                self.delivered += MSS * segments;
                let rate = RateSample {
                    delivered: Bytes::new(kilobytes_per_sec * 100),
                    interval: of,
                    prior_delivered: before,
                    ..RateSample::default()
                };
                let ack = Ack {
                    rtt_sample: Some(of),
                    rtt: Rtt { latest: of, smoothed: of, variation: Span::ZERO, min: of },
                    in_flight: MSS * 1000,
                    delivered: self.delivered,
                    rate,
                    ..acked(self.now, MSS * segments)
                };
                assert_eq!(self.scheme.on_ack(&ack), Next::Stay);
            }
            if lost_segments > 0 {
                let delivered = self.delivered;
                self.scheme.on_congestion(&Congestion { delivered, ..lost(self.now, MSS * lost_segments) });
            }
        }

        fn state(&self) -> (&'static str, u64, u64) {
            let Allowance { window, pace } = self.scheme.allowance();
            let pace = pace.map_or(0, Rate::as_bytes_per_sec);
            (self.scheme.phase(), window.get() / 1000, pace / 1000)
        }
    }

    /// MV: pace of half of the BDP in an RTT, window of 2.885 times that, two rounds.
    #[test]
    fn after_the_first_round_it_resumes_from_half_of_the_bdp_for_two_rounds() {
        let mut play = Play::new(100);
        play.round(10, 100, 0);
        // BBR's own pace would be 2.77 x 100 kB/s.
        assert_eq!(play.state(), ("resuming", 144, 500));
        play.round(2, 100, 0);
        assert_eq!(play.state(), ("resuming", 144, 500), "the model's window is less");
        play.round(2, 100, 0);
        assert_eq!(play.state().0, "Startup");
    }

    #[test]
    fn an_rtt_of_less_than_half_or_more_than_ten_times_the_records_is_another_path() {
        for (rt_prop, phase) in [(201, "Startup"), (200, "resuming"), (10, "resuming"), (9, "Startup")] {
            let mut play = Play::new(rt_prop);
            play.round(10, 100, 0);
            assert_eq!(play.state().0, phase, "{rt_prop} ms");
        }
    }

    #[test]
    fn a_loss_in_the_first_round_puts_it_off() {
        let mut play = Play::new(100);
        play.scheme.on_congestion(&lost(play.now, MSS));
        play.round(10, 100, 0);
        assert_eq!(play.state().0, "Startup");
        play.round(10, 100, 0);
        assert_eq!(play.state().0, "resuming");
    }

    /// MV: while it resumes, 2 % lost end Startup without six events, and half of the rate is left.
    #[test]
    fn more_than_two_percent_lost_in_a_round_end_it_at_half_of_the_rate() {
        for (lost, phase) in [(1, "resuming"), (2, "Drain")] {
            let mut play = Play::new(100);
            play.round(50, 500, lost);
            // The rest of that round's acks, and the first of the next one.
            play.round(2, 100, 0);
            assert_eq!(play.state().0, phase, "{lost} of 51");
            if phase == "Drain" {
                // Drain paces at half of the estimate, less a percent.
                assert_eq!(play.state().2, 500 / 2 / 2 * 99 / 100);
            }
        }
    }

    #[test]
    fn absurd_records_do_no_harm() {
        withstand_extremes(&absurd_priors(), 1, || MvfstResume::new(Params::default()));
    }
}
