//! Begin with an initial window in one burst and double it every round trip.
//!
//! Source: RFC 5681 §3.1, RFC 6928 (initial window 10, *Initial-Start* in the fast-startup comparison),
//! RFC 9406 (HyStart++). Windows of 32 and 64 are what content networks use (WiseStart §4.1).
//! [`Params::spread`] is Google QUIC's slow start as Blitzstart §4 describes it: of a window of 32
//! segments 10 leave at once, the rest over half an RTT; avoidance is paced over three quarters.
//!
//! ```text
//!  slow start ---- loss or CE, or HyStart++'s exit ----> hand over
//! ```
//!
//! # Deviations
//!
//! - RFC 5681 §3.1 begins with one segment if the SYN was lost. Linux does so only after two losses, ns-3
//!   never; here never, and the prior says that it happened.
//! - RFC 3742's limited slow start is not implemented: no source compares with it.

use headstart_units::{Bytes, Ratio, Span};

use super::Startup;
use crate::allowance::{Allowance, HandOver, Next, Plan};
use crate::event::{Ack, Congestion, Timeout};
use crate::growth::{Growth, Verdict};
use crate::prior::Prior;

/// What may be tuned, with the source of each default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Initial window in segments. 10: RFC 6928 §2.
    pub initial_window: u64,
    /// Leave slow start when delay grows. Off: the papers' baselines leave it on loss.
    pub hystart: bool,
    /// Pace as Google QUIC does; `None` sends the window as it opens.
    pub spread: Option<Spread>,
}

impl Default for Params {
    fn default() -> Self {
        Self { initial_window: 10, hystart: false, spread: None }
    }
}

/// Pacing of slow start and of the avoidance after it (Blitzstart §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Segments that leave at once before pacing begins. 10.
    pub burst: u64,
    /// The share of an RTT over which a slow start window leaves. 1/2.
    pub slow_start: Ratio,
    /// The share of an RTT over which an avoidance window leaves. 3/4.
    pub avoidance: Ratio,
    /// Leave slow start as soon as delay grows ([`Growth::until_delay`]). Off: Blitzstart does not say, but Google QUIC did so, and
    /// its Figure 1 leaves slow start without a loss.
    pub leaves_on_delay: bool,
}

impl Default for Spread {
    fn default() -> Self {
        Self { burst: 10, slow_start: Ratio::new(1, 2), avoidance: Ratio::new(3, 4), leaves_on_delay: false }
    }
}

/// Slow start.
#[derive(Clone, Copy, Debug)]
pub struct SlowStart {
    params: Params,
    growth: Growth,
    window: Bytes,
    /// For pacing only.
    srtt: Span,
    is_linux: bool,
}

impl SlowStart {
    /// Nothing is known until [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        let leaves_on_delay = params.spread.is_some_and(|spread| spread.leaves_on_delay);
        let growth = if leaves_on_delay { Growth::until_delay() } else { Growth::new(params.hystart) };
        Self { params, growth, window: Bytes::ZERO, srtt: Span::ZERO, is_linux: false }
    }

    /// As Linux's CUBIC begins: 10 segments, and the older HyStart. It is what the kernel is held against.
    #[must_use]
    pub fn linux() -> Self {
        Self { is_linux: true, ..Self::new(Params::default()) }
    }

    /// How it was tuned.
    #[must_use]
    pub const fn params(&self) -> &Params {
        &self.params
    }

    fn hand_over(&self, mut how: HandOver) -> Next {
        how.pace_over = self.params.spread.map(|spread| spread.avoidance);
        Next::HandOver(how)
    }
}

impl Startup for SlowStart {
    fn establish(&mut self, prior: &Prior) -> Plan {
        self.window = prior.mss * self.params.initial_window;
        self.srtt = prior.handshake_rtt;
        if self.is_linux {
            self.growth = Growth::linux(prior.mss);
        }
        let burst = self.params.spread.map_or(self.window, |spread| prior.mss * spread.burst);
        Plan { burst, flight: self.window, allowance: self.allowance() }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) -> Next {
        self.srtt = ack.rtt.smoothed;
        match self.growth.on_ack(&mut self.window, ack) {
            Verdict::GoOn => Next::Stay,
            Verdict::Exit => self.hand_over(HandOver::avoiding(self.window)),
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
        let pace = self.params.spread.map(|spread| self.window / (self.srtt * spread.slow_start));
        Allowance { window: self.window, pace }
    }

    fn phase(&self) -> &'static str {
        self.growth.phase()
    }
}

/// What may be tuned of schemes that are slow start with something beside it (Reactive, Proactive).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    /// How the window grows. From 2 segments: Halfback §4.1.
    pub slow_start: Params,
}

impl Default for Beside {
    fn default() -> Self {
        Self { slow_start: Params { initial_window: 2, ..Params::default() } }
    }
}

/// A scheme whose window is that of the slow start in its field `slow_start`.
macro_rules! starts_slowly {
    ($scheme:ty) => {
        impl $crate::scheme::Startup for $scheme {
            fn establish(&mut self, prior: &$crate::prior::Prior) -> $crate::allowance::Plan {
                self.slow_start.establish(prior)
            }

            #[inline]
            fn on_ack(&mut self, ack: &$crate::event::Ack) -> $crate::allowance::Next {
                self.slow_start.on_ack(ack)
            }

            fn on_congestion(&mut self, signal: &$crate::event::Congestion) -> $crate::allowance::Next {
                self.slow_start.on_congestion(signal)
            }

            #[inline]
            fn allowance(&self) -> $crate::allowance::Allowance {
                self.slow_start.allowance()
            }

            fn phase(&self) -> &'static str {
                self.slow_start.phase()
            }
        }
    };
}
pub(super) use starts_slowly;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::{acked, lost};
    use headstart_units::{Rate, Time};

    const MSS: Bytes = Bytes::new(1000);

    fn prior() -> Prior {
        Prior::bare(Time::ZERO, MSS, Span::from_millis(100), Bytes::new(141_000))
    }

    #[test]
    fn the_initial_window_leaves_at_once_and_doubles() {
        for segments in [2, 3, 10, 32, 64] {
            let mut start = SlowStart::new(Params { initial_window: segments, ..Params::default() });
            assert_eq!(start.establish(&prior()), Plan::burst(MSS * segments));
            for _ in 0..segments {
                assert_eq!(start.on_ack(&acked(Time::ZERO, MSS)), Next::Stay);
            }
            assert_eq!(start.allowance(), Allowance::window(MSS * segments * 2));
        }
    }

    #[test]
    fn an_ack_of_a_window_that_was_not_full_grows_nothing() {
        let mut start = SlowStart::new(Params::default());
        let plan = start.establish(&prior());
        let ack = Ack { is_window_limited: false, ..acked(Time::ZERO, MSS) };
        assert_eq!(start.on_ack(&ack), Next::Stay);
        assert_eq!(start.allowance().window, plan.allowance.window);
    }

    #[test]
    fn google_quic_may_leave_on_delay_with_the_window_it_has() {
        let spread = Some(Spread { leaves_on_delay: true, ..Spread::default() });
        let mut start = SlowStart::new(Params { initial_window: 32, hystart: false, spread });
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

    #[test]
    fn a_loss_hands_over_the_window_for_the_base_to_cut() {
        let mut start = SlowStart::new(Params::default());
        let _ = start.establish(&prior());
        assert_eq!(
            start.on_congestion(&lost(Time::ZERO, MSS)),
            Next::HandOver(HandOver::to_be_cut(MSS * 10))
        );
    }

    /// Blitzstart §4: "32 segments ... of which 10 are sent in a burst followed by paced segments over half
    /// of the RTT"; avoidance over 75 %.
    #[test]
    fn google_quic_spreads_its_window_over_half_an_rtt() {
        let spread = Some(Spread::default());
        let mut start = SlowStart::new(Params { initial_window: 32, hystart: false, spread });
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
