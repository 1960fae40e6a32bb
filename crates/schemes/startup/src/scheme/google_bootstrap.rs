//! BBR that begins with the window of the last connection, and slows down once if that was wrong.
//!
//! Source (GB below): Google's QUICHE, August 2026, the behaviour in own words:
//! `AdjustNetworkParameters` and the detector of overshoot in
//! `quic/core/congestion_control/bbr_sender.cc`, as the connection option `BWRE` calls it. The
//! largest deployment of a start from a record, without a published result.
//!
//! ```text
//!  Startup, window and pace of the record -- losses, and the pace is above the estimate's --> pace
//!     |                                                       of the estimate, or of the initial
//!     +-- BBR's way: Drain, ProbeBW, ProbeRTT                  window over the RTT if that is more
//! ```
//!
//! The window is the recorded rate times the smaller of the recorded RTT and the handshake's, of 10
//! to 200 segments. A record that gives less than the initial window of 32 changes nothing. The
//! pace is that window over the RTT. Startup never lowers either, so a wrong record would hold
//! until the pipe is found full. Therefore the pace is lowered once if data was lost. A sample must
//! not have been application-limited, or twice the lost bytes exceed the initial window.
//!
//! # Deviations
//!
//! - The controller below is [`bbr`], after Linux. Of GB's own many differences one
//!   counts here: while the pipe is not full it does not answer a loss at all.
//! - GB takes records of the same serving region; here it is the same peer.
//! - Experiments that a client may ask for (`ICW1`, `BWM3`, `DTOS`) are not carried, but for the
//!   detector's multiplier.

use headstart_units::{Bytes, Rate, Span};

use super::bbr::{self, Bbr, HIGH_GAIN};
use super::{Requirements, Startup};
use crate::about::{About, Needs};
use crate::allowance::{Allowance, FlightPlan, Next};
use crate::event::{Ack, Congestion, Sent, Signal, Timeout};
use crate::prior::Prior;

/// The scheme's row of the catalogue.
pub const ABOUT: About = About {
    is_compared: false,
    ..About::new("google-bootstrap", Needs::History, "BBR from the last window, with a detector of overshoot")
};

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// Initial window in segments.
        initial_window: u64 = 32, in 1..=10_000, from "GB";
        /// The largest window of a record, in segments.
        most: u64 = 200, in 1..=10_000, from "GB, kMaxInitialCongestionWindow";
        /// Lifetime of a record.
        lifetime: Span = Span::from_secs(3600), in Span::from_secs(1)..=Span::from_secs(86_400), from "GB";
        /// Lost bytes times this exceed the initial window: the record was wrong.
        multiplier: u64 = 2, in 1..=100, from "GB";
    }
}

/// Google's bootstrap of BBR's window.
#[derive(Clone, Copy, Debug)]
pub struct GoogleBootstrap {
    pub(super) params: Params,
    bbr: Bbr,
    initial: Bytes,
    detector: Detector,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detector {
    /// No record was used.
    Off,
    /// Watches; bytes lost so far, and whether a sample was not limited by the application.
    Watches { lost: Bytes, has_sample: bool },
    /// Found an overshoot, and lowered the pace.
    Found,
}

impl GoogleBootstrap {
    /// [`GoogleBootstrap`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        let bbr = Bbr::new(bbr::Params { initial_window: params.initial_window, ..bbr::Params::default() });
        Self { params, bbr, initial: Bytes::ZERO, detector: Detector::Off }
    }

    /// The recorded rate and RTT, unless it says nothing or is too old.
    fn recorded(&self, prior: &Prior) -> Option<(Rate, Span)> {
        let record = prior.history?.record;
        let is_usable = record.bdp().is_some() && !record.is_expired(prior.now, self.params.lifetime);
        is_usable.then_some((record.btl_bw, record.rt_prop))
    }

    fn detect(&mut self) {
        let Detector::Watches { lost, has_sample } = self.detector else { return };
        let target = self.bbr.btl_bw.get() * HIGH_GAIN;
        let is_sure = has_sample || lost * self.params.multiplier > self.initial;
        if self.bbr.is_filled || self.bbr.pace <= target || lost.is_zero() || !is_sure {
            return;
        }
        self.bbr.pace = target.max(self.initial / self.bbr.rt_prop);
        self.detector = Detector::Found;
    }
}

impl Startup for GoogleBootstrap {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        let mut plan = self.bbr.establish(prior);
        self.initial = plan.flight;
        plan.burst = prior.mss * BURST_SEGMENTS;
        if let Some((rate, rt_prop)) = self.recorded(prior) {
            self.bbr.rt_prop = self.bbr.rt_prop.min(rt_prop);
            let most = (prior.mss * self.params.most).max(self.initial);
            let window = crate::path::bdp(rate, self.bbr.rt_prop).unwrap_or(Bytes::ZERO).min(most);
            if window >= self.initial {
                self.bbr.window = window;
                self.bbr.pace = (window / self.bbr.rt_prop).max(Rate::from_bytes_per_sec(1));
                self.detector = Detector::Watches { lost: Bytes::ZERO, has_sample: false };
                plan.flight = window;
                plan.allowance = self.allowance();
            }
        }
        plan
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.bbr.on_sent(sent);
    }

    fn on_ack(&mut self, ack: &Ack) -> Next {
        if let Detector::Watches { has_sample, .. } = &mut self.detector {
            *has_sample |= ack.rate.rate().is_some() && !ack.rate.is_app_limited;
        }
        let next = self.bbr.on_ack(ack);
        self.detect();
        next
    }

    fn on_congestion(&mut self, signal: &Congestion) -> Next {
        if let (Detector::Watches { lost, .. }, Signal::Loss) = (&mut self.detector, signal.signal) {
            *lost += signal.lost;
        }
        self.bbr.on_congestion(signal)
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Next {
        self.bbr.on_timeout(timeout)
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        self.bbr.allowance()
    }

    fn is_slow_start(&self) -> bool {
        self.bbr.is_slow_start()
    }

    fn phase(&self) -> &'static str {
        match self.detector {
            Detector::Watches { .. } if self.bbr.is_slow_start() => "Startup from record",
            Detector::Found if self.bbr.is_slow_start() => "Startup after overshoot",
            _ => self.bbr.phase(),
        }
    }

    fn requirements(&self) -> Requirements {
        self.bbr.requirements()
    }

    #[inline]
    fn needs_sent_events(&self) -> bool {
        true
    }
}

/// GB: what leaves without a pace.
const BURST_SEGMENTS: u64 = 10;

#[cfg(test)]
mod tests {
    use super::super::timeline::{MSS, ack, apply, loss, withstand_extremes};
    use super::*;
    use crate::history::testing::{absurd_priors, prior_with};
    use crate::path::RateSample;

    fn begun(kilobytes_per_sec: u64, rt_prop: u64) -> (GoogleBootstrap, FlightPlan) {
        let mut scheme = GoogleBootstrap::new(Params::default());
        let plan = scheme.establish(&prior_with(kilobytes_per_sec, rt_prop));
        (scheme, plan)
    }

    /// GB: 10 to 200 packets, at the recorded rate times the smaller RTT.
    #[test]
    fn the_window_is_the_recorded_rate_times_the_smaller_rtt_within_its_limits() {
        for (rate, rt_prop, segments, phase) in [
            (1000, 100, 100, "Startup from record"),
            (1000, 50, 50, "Startup from record"),
            (1000, 200, 100, "Startup from record"),
            (1_000_000, 100, 200, "Startup from record"),
            (319, 100, 32, "Startup"),
        ] {
            let (scheme, plan) = begun(rate, rt_prop);
            assert_eq!((plan.flight, scheme.phase()), (MSS * segments, phase), "{rate} kB/s, {rt_prop} ms");
            assert_eq!(plan.burst, MSS * 10);
        }
        let paced = begun(1000, 100).1.allowance.pace;
        assert_eq!(paced, Some(Rate::from_bytes_per_sec(1_000_000)), "the window over the RTT");
    }

    #[test]
    fn a_record_of_an_hour_is_used_and_an_older_one_is_not() {
        for (age, segments) in [(3600, 100), (3601, 32)] {
            let mut prior = prior_with(1000, 100);
            let saved_at = prior.history.expect("a record").record.saved_at;
            prior.now = saved_at + Span::from_secs(age);
            assert_eq!(GoogleBootstrap::new(Params::default()).establish(&prior).flight, MSS * segments);
        }
    }

    /// An ack with a sample of this rate.
    fn sampled(at: u64, kilobytes_per_sec: u64, is_app_limited: bool) -> super::super::timeline::Event {
        let super::super::timeline::Event::Ack(ack) = ack(at, at - 100, 1, 50) else { unreachable!() };
        let rate = RateSample {
            delivered: Bytes::new(kilobytes_per_sec * 100),
            interval: Span::from_millis(100),
            is_app_limited,
            ..RateSample::default()
        };
        super::super::timeline::Event::Ack(Ack { rate, ..ack })
    }

    /// GB's test of a record eight times the rate: the pace recovers while still in Startup.
    #[test]
    fn an_overshoot_lowers_the_pace_once_to_the_estimates_and_not_below_the_initial_windows() {
        for (sample, expected) in [(250, 250 * 739 / 256), (50, 320)] {
            let (mut scheme, plan) = begun(2000, 100);
            let before = plan.allowance.pace;
            apply(&mut scheme, sampled(100, sample, false));
            assert_eq!(scheme.allowance().pace, before, "nothing is lost");
            apply(&mut scheme, loss(110, 1, 50));
            apply(&mut scheme, sampled(120, sample, false));
            let pace = scheme.allowance().pace.expect("a pace").as_bytes_per_sec() / 1000;
            assert!(pace.abs_diff(expected) <= 1, "{pace} kB/s, expected {expected}");
            assert_eq!(scheme.phase(), "Startup after overshoot");
            // Growth may raise it again; a second loss does not lower it.
            apply(&mut scheme, sampled(130, 700, false));
            let raised = scheme.allowance().pace;
            apply(&mut scheme, loss(140, 40, 50));
            apply(&mut scheme, sampled(150, 100, false));
            assert_eq!(scheme.allowance().pace, raised);
        }
    }

    /// GB's second case: half of the initial window is lost.
    #[test]
    fn where_the_application_limits_all_samples_half_of_the_initial_window_must_be_lost() {
        for (lost, phase) in [(16, "Startup from record"), (17, "Startup after overshoot")] {
            let (mut scheme, _) = begun(2000, 100);
            apply(&mut scheme, loss(110, lost, 50));
            apply(&mut scheme, sampled(120, 100, true));
            assert_eq!(scheme.phase(), phase, "{lost} of 32");
        }
    }

    #[test]
    fn absurd_records_do_no_harm() {
        withstand_extremes(&absurd_priors(), 1, || GoogleBootstrap::new(Params::default()));
    }
}
