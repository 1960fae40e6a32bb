//! Slow start as Google QUIC had it: a part of the window at once, the rest paced over half an RTT.
//!
//! Source (BS below): J. Rüth, K. Wolsing, M. Serror, K. Wehrle, O. Hohlfeld, "Blitz-starting QUIC
//! Connections", technical report, RWTH Aachen, §4: of a window of 32 segments 10 leave at once,
//! the rest over half an RTT. Avoidance is paced over three quarters.
//!
//! ```text
//!  slow start ---- loss or CE, or HyStart's exit ----> hand over, paced
//! ```
//!
//! # Deviations
//!
//! - BS does not mention an exit on delay growth. Google QUIC had one (HyStart of 2008,
//!   [`Growth::until_delay`]), and Figure 1 of BS leaves slow start without a loss. Without it this
//!   is `iw32-paced`.

use headstart_units::{Bytes, Ratio, Span};

use super::{Requirements, Startup};
use crate::about::{About, Needs};
use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::event::{Ack, Congestion, Timeout};
use crate::growth::{Decision, Exit, Growth, RoundStart};
use crate::prior::Prior;

/// The scheme's row of the catalogue.
pub const ABOUT: About = About {
    is_compared: false,
    ..About::new(
        "google-quic",
        Needs::Nothing,
        "iw32-paced that leaves slow start when delay grows (HyStart), as Google QUIC did",
    )
};

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// Initial window in segments.
        initial_window: u64 = 32, in 1..=10_000, from "Blitzstart §4";
        /// Segments that leave at once before pacing begins.
        burst: u64 = 10, in 1..=10_000, from "Blitzstart §4";
        /// The share of an RTT over which a slow start window leaves.
        slow_start: Ratio = Ratio::new(1, 2), in Ratio::percent(1)..=Ratio::percent(1000), from "Blitzstart §4";
        /// The share of an RTT over which an avoidance window leaves.
        avoidance: Ratio = Ratio::new(3, 4), in Ratio::percent(1)..=Ratio::percent(1000), from "Blitzstart §4";
        /// Leave slow start as soon as delay grows.
        leaves_on_delay: bool = true, from "Google QUIC's sources of 2018";
        /// The ack that begins a round of HyStart: the first of a flight, the last of the one
        /// before (s2n-quic), or the one after the first (quic-go).
        rounds: RoundStart = RoundStart::Flight, from "the experiments on record";
    }
}

/// Google QUIC's slow start.
#[derive(Clone, Copy, Debug)]
pub struct GoogleQuic {
    pub(super) params: Params,
    growth: Growth,
    window: Bytes,
    srtt: Span,
}

impl GoogleQuic {
    /// [`GoogleQuic`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self { params, growth: Growth::new(Exit::Loss), window: Bytes::ZERO, srtt: Span::ZERO }
    }

    const fn hand_over(&self, mut how: HandOver) -> Next {
        how.pace_over = Some(self.params.avoidance);
        Next::HandOver(how)
    }
}

impl Startup for GoogleQuic {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        if self.params.leaves_on_delay {
            self.growth = Growth::until_delay(prior.mss, self.params.rounds);
        }
        self.window = prior.mss * self.params.initial_window;
        self.srtt = prior.handshake_rtt;
        FlightPlan { burst: prior.mss * self.params.burst, flight: self.window, allowance: self.allowance() }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) -> Next {
        self.srtt = ack.rtt.smoothed;
        match self.growth.on_ack(&mut self.window, ack) {
            Decision::Continue => Next::Stay,
            Decision::Exit => self.hand_over(HandOver::avoiding(self.window)),
        }
    }

    fn on_congestion(&mut self, _: &Congestion) -> Next {
        self.hand_over(HandOver::to_be_cut(self.window))
    }

    fn on_timeout(&mut self, _: &Timeout) -> Next {
        self.hand_over(HandOver::to_be_cut(self.window))
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        let pace = self.window / (self.srtt * self.params.slow_start);
        Allowance { window: self.window, pace: Some(pace) }
    }

    fn phase(&self) -> &'static str {
        self.growth.phase()
    }

    fn requirements(&self) -> Requirements {
        Requirements { initial_segments: Some(self.params.initial_window), ..Requirements::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::{MSS, acked, lost};
    use headstart_units::{Rate, Time};

    fn prior() -> Prior {
        Prior::bare(Time::ZERO, MSS, Span::from_millis(100), Bytes::new(141_000))
    }

    #[test]
    fn google_quic_may_leave_on_delay_with_the_window_it_has() {
        let mut start = GoogleQuic::new(Params::default());
        let _ = start.establish(&prior());
        let mut ack = acked(Time::ZERO, MSS);
        ack.rtt.min = Span::from_millis(80);
        ack.delivered = MSS;
        for _ in 0..7 {
            assert_eq!(start.on_ack(&ack), Next::Stay);
        }
        let expected = HandOver { pace_over: Some(Ratio::new(3, 4)), ..HandOver::avoiding(MSS * 39) };
        assert_eq!(start.on_ack(&ack), Next::HandOver(expected), "100 ms is more than 80 + 10");
    }

    /// Blitzstart §4: "32 segments ... of which 10 are sent in a burst followed by paced segments
    /// over half of the RTT"; avoidance over 75 %.
    #[test]
    fn google_quic_spreads_its_window_over_half_an_rtt() {
        let mut start = GoogleQuic::new(Params { leaves_on_delay: false, ..Params::default() });
        let plan = start.establish(&prior());
        assert_eq!(plan.burst, MSS * 10);
        assert_eq!(plan.allowance.pace, Some(Rate::from_bytes_per_sec(32_000 * 20)));
        let mut at_timeout = start;
        for next in [
            start.on_congestion(&lost(Time::ZERO, MSS)),
            at_timeout.on_timeout(&crate::base::testing::timed_out(Time::ZERO)),
        ] {
            let Next::HandOver(how) = next else { panic!("hands over") };
            assert_eq!(how.pace_over, Some(Ratio::new(3, 4)));
        }
    }
}
