//! Triple the window each round trip until a queue begins to form, and on overflow shrink it to the
//! delivered bytes.
//!
//! Source (RS below): K. Oku, "Rapid Startup of Congestion Control",
//! draft-kazuho-ccwg-rapid-start-02 of 16 March 2026.
//!
//! ```text
//!            floor <= threshold
//!           +------------------+
//!           v                  |
//!       Tripling ----------> Doubling
//!           |    floor above   |
//!           +--------+---------+
//!                    | first loss or CE
//!                    v
//!                Shrinking ---- ack of data sent since ----> hand over
//! ```
//!
//! # Deviations
//!
//! - The constant K is 2/3, as in revision 02; earlier ones and quicly have 11/18 ([`Params::k`]).
//! - RS §3.3 does not say whether the losses that open the recovery are charged to the loss factor
//!   besides the silence factor. RS Appendix A sums all data in flight before: they are, and so is
//!   the ack that reported them. quicly charges them to the silence factor alone.
//! - quicly compares the floor with the *larger* of the two thresholds; RS §3.2 says the smaller,
//!   which is used here.
//! - RS §3.1: only the first flight is paced here, over one handshake RTT; afterwards the
//!   transport's pacer spreads the window.
//! - RS §3.3 lets a sender stop shrinking at the initial window times beta (MAY). Not taken.
//! - The recovery period ends as QUIC's does (RFC 9002 §7.3.2), when data sent since its beginning
//!   is acknowledged.
//!
//! # Limits
//!
//! quicly switches to slow start where the minimum RTT is below 4 ms. RS does not, and neither does
//! this: there the threshold is a tenth of the RTT, which scheduling noise exceeds.

use headstart_units::{Bytes, Ratio, Span, Time};

use super::Startup;
use crate::about::{About, Needs};
use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::event::{Ack, Congestion};
use crate::path::{Floor, LARGEST_WINDOW};
use crate::prior::Prior;

/// The scheme's row of the catalogue.
pub const ABOUT: About =
    About::new("rapid-start", Needs::Nothing, "three times the window each RTT while no queue forms");

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// Initial window in segments. RS §3.1 would allow twice the default.
        initial_window: u64 = 10, in 1..=10_000, from "RFC 6928 §2";
        /// Jitter tolerated before a queue is inferred.
        slack: Span = Span::from_millis(4), in Span::ZERO..=Span::from_secs(10), from "RS §3.2";
        /// Jitter tolerated before a queue is inferred, as a multiple of the minimum RTT.
        slack_gain: Ratio = Ratio::new(11, 10), in Ratio::percent(100)..=Ratio::percent(1000), from "RS §3.2";
        /// Decrease factor of the controller that takes over; NewReno has 50 %.
        beta: Ratio = Ratio::new(7, 10), in Ratio::percent(1)..=Ratio::percent(100), from "RFC 9438 §4.6";
        /// K of RS §3.3.1.
        k: Ratio = Ratio::new(2, 3), in Ratio::percent(0)..=Ratio::percent(100), from "RS §3.3.1";
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No queue in sight: 3x per round trip.
    Tripling,
    /// A queue may be forming: 2x per round trip, as classic slow start.
    Doubling,
    /// First recovery period: the window follows the delivered bytes.
    Shrinking { since: Time, floor: Bytes },
}

/// The Rapid Start scheme.
#[derive(Clone, Copy, Debug)]
pub struct RapidStart {
    pub(super) params: Params,
    phase: Phase,
    mss: Bytes,
    window: Bytes,
    /// RTT over which the first flight is paced, while it is being sent.
    spread_over: Option<Span>,
    rtt_floor: Floor,
}

impl RapidStart {
    /// [`RapidStart`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            phase: Phase::Tripling,
            mss: Bytes::ZERO,
            window: Bytes::ZERO,
            spread_over: None,
            rtt_floor: Floor::default(),
        }
    }

    fn begin_shrinking(&mut self, now: Time) {
        // RS §3.3: "SHOULD NOT reduce the congestion window below pre_recovery_cwnd * beta / 3";
        // the minimum of RFC 5681 is a MUST NOT.
        let floor = (self.window * self.params.beta * THIRD).max(self.mss * MINIMUM_SEGMENTS);
        self.window = self.params.silence_factor(self.window).max(floor);
        self.phase = Phase::Shrinking { since: now, floor };
    }

    fn shrink_by(&mut self, amount: Bytes, floor: Bytes) {
        self.window = self.window.saturating_sub(amount).max(floor);
    }

    fn grow(&mut self, ack: &Ack) {
        if let Some(sample) = ack.rtt_sample {
            self.rtt_floor.update(ack.now, sample, ack.rtt.min);
        }
        // RS §3.2: queue_buildup_thresh.
        let threshold = (ack.rtt.min + self.params.slack).min(ack.rtt.min * self.params.slack_gain);
        let (phase, growth) = if self.rtt_floor.get() <= threshold {
            (Phase::Tripling, ack.newly_acked * 2)
        } else {
            (Phase::Doubling, ack.newly_acked)
        };
        self.phase = phase;
        if ack.is_window_limited {
            self.window = (self.window + growth).min(LARGEST_WINDOW);
        }
    }
}

impl Startup for RapidStart {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.mss = prior.mss;
        self.window = prior.mss * self.params.initial_window;
        // RS §3.1: the first flight takes a full RTT.
        self.spread_over = Some(prior.handshake_rtt);
        FlightPlan { burst: prior.mss, flight: self.window, allowance: self.allowance() }
    }

    fn on_ack(&mut self, ack: &Ack) -> Next {
        self.spread_over = None;
        match self.phase {
            Phase::Tripling | Phase::Doubling => {
                self.grow(ack);
                Next::Stay
            }
            Phase::Shrinking { since, .. } if ack.newest_sent_at > since => {
                Next::HandOver(HandOver::avoiding(self.window))
            }
            Phase::Shrinking { floor, .. } => {
                self.shrink_by(self.params.ack_factor(ack.newly_acked), floor);
                Next::Stay
            }
        }
    }

    fn on_congestion(&mut self, signal: &Congestion) -> Next {
        self.spread_over = None;
        if !matches!(self.phase, Phase::Shrinking { .. }) {
            self.begin_shrinking(signal.now);
        }
        if let Phase::Shrinking { floor, .. } = self.phase {
            self.shrink_by(self.params.loss_factor(signal.lost), floor);
        }
        Next::Stay
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        Allowance { window: self.window, pace: self.spread_over.map(|rtt| self.window / rtt) }
    }

    fn is_slow_start(&self) -> bool {
        !matches!(self.phase, Phase::Shrinking { .. })
    }

    fn phase(&self) -> &'static str {
        match self.phase {
            Phase::Tripling => "tripling",
            Phase::Doubling => "doubling",
            Phase::Shrinking { .. } => "shrinking",
        }
    }
}

/// RS §3.3.1. Each applies its factor to an amount in one step: a factor itself would be rounded.
impl Params {
    /// beta + K (1 - beta).
    fn silence_factor(&self, amount: Bytes) -> Bytes {
        amount * self.beta + self.ack_factor(amount)
    }

    /// K (1 - beta).
    fn ack_factor(&self, amount: Bytes) -> Bytes {
        amount.saturating_sub(amount * self.beta) * self.k
    }

    /// beta + K (1 - beta).
    fn loss_factor(&self, amount: Bytes) -> Bytes {
        self.silence_factor(amount)
    }
}

const THIRD: Ratio = Ratio::new(1, 3);
/// RFC 5681 §3.1 and RFC 9002 §4.8.
const MINIMUM_SEGMENTS: u64 = 2;

#[cfg(test)]
mod tests {
    use super::super::timeline::{Event, MSS, ack, apply, loss, mark, play, timeout, withstand_extremes};
    use super::*;
    use crate::history::testing::{absurd_priors, prior_with};
    use crate::path::Rtt;
    use headstart_units::Rate;

    fn established(params: Params) -> RapidStart {
        let mut start = RapidStart::new(params);
        let plan = start.establish(&prior_with(1, 1));
        assert_eq!(
            plan,
            FlightPlan::paced(MSS, MSS * 10, Rate::from_bytes_per_sec(100_000)),
            "10 kB over 100 ms"
        );
        start
    }

    /// As [`ack`], on a path whose minimum RTT is 100 ms.
    fn acked(at: u64, sent_at: u64, segments: u64) -> Event {
        let Event::Ack(ack) = ack(at, sent_at, segments, segments) else { unreachable!("an ack") };
        Event::Ack(Ack { rtt: Rtt { min: Span::from_millis(100), ..ack.rtt }, ..ack })
    }

    /// The two worked rows of RS §3.3.1, and rows of earlier revisions.
    #[test]
    fn factors_match_the_draft() {
        let (half, seven_tenths) = (Ratio::new(1, 2), Ratio::new(7, 10));
        let (two_thirds, earlier) = (Ratio::new(2, 3), Ratio::new(11, 18));
        for (k, beta, silence, ack) in [
            (two_thirds, half, (5, 6), (1, 3)),
            (two_thirds, seven_tenths, (9, 10), (1, 5)),
            (earlier, half, (29, 36), (11, 36)),
            (earlier, seven_tenths, (53, 60), (11, 60)),
        ] {
            let params = Params { k, beta, ..Params::default() };
            let amount = Bytes::new(180_000);
            assert_eq!(params.silence_factor(amount), amount * Ratio::new(silence.0, silence.1));
            assert_eq!(params.loss_factor(amount), amount * Ratio::new(silence.0, silence.1));
            assert_eq!(params.ack_factor(amount), amount * Ratio::new(ack.0, ack.1));
        }
    }

    #[test]
    fn the_window_grows_with_the_path_then_shrinks_to_the_delivered_bytes() {
        let mut start = established(Params::default());
        #[rustfmt::skip]
        let steps = [
            (acked(100, 0, 10),         "tripling",   30_000, 0, "round 1: 3x, and no pace any more"),
            (acked(204, 104, 30),       "tripling",   90_000, 0, "round 2: 3x"),
            (acked(305, 204, 30),       "tripling",  150_000, 0, "101 ms are no queue"),
            (acked(410, 305, 30),       "doubling",  180_000, 0, "105 ms are more than min + 4 ms: 2x"),
            (acked(500, 400, 10),       "tripling",  200_000, 0, "back at the minimum: 3x"),
            (loss(510, 1, 199),         "shrinking", 179_100, 0, "9/10 of 200 kB, and of the lost one"),
            (loss(520, 79, 120),        "shrinking", 108_000, 0, "then 9/10 of each lost byte"),
            (acked(530, 430, 50),       "shrinking",  98_000, 0, "and 1/5 of each acked byte"),
            (acked(600, 500, 70),       "shrinking",  84_000, 0, "0.7 x the 120 kB that got through"),
(acked(610, 510, 0),        "shrinking",  84_000, 0, "data sent just before it began"),
            (acked(611, 511, 1),        "hand over",  84_000, 0, "data sent in recovery arrived: it is over"),
        ];
        assert_eq!(play(&mut start, &steps), Some(HandOver::avoiding(MSS * 84)));
    }

    /// RS Appendix A: after recovery the window is beta times the acked bytes, whatever was lost.
    #[test]
    fn the_window_ends_at_beta_times_the_delivered_bytes() {
        for lost in [0, 1, 30, 60, 66] {
            let mut start = established(Params::default());
            let _ = apply(&mut start, acked(100, 0, 45));
            assert_eq!(start.allowance().window, MSS * 100);
            let _ = apply(&mut start, if lost == 0 { mark(200, 100) } else { loss(200, lost, 100 - lost) });
            let _ = apply(&mut start, acked(210, 110, 100 - lost));
            assert_eq!(start.allowance().window, (MSS * (100 - lost)) * Ratio::new(7, 10), "{lost} lost");
        }
    }

    /// The lowest RTT of the last 100 ms counts, not the latest.
    #[test]
    fn one_late_ack_is_not_taken_for_a_queue() {
        let mut start = established(Params::default());
        #[rustfmt::skip]
        let steps = [
            (acked(1_100, 1_000, 1), "tripling", 12_000, 0, "whatever the clock began with"),
            (acked(1_110, 1_000, 1), "tripling", 14_000, 0, "110 ms, but 100 ms were seen 10 ms ago"),
            (acked(1_220, 1_110, 1), "doubling", 15_000, 0, "nothing below 110 ms for a round trip"),
        ];
        assert_eq!(play(&mut start, &steps), None);
    }

    /// RS §3.2: the smaller of the two; they meet at 40 ms.
    #[test]
    fn a_short_path_forgives_a_tenth_of_its_rtt() {
        for (min, rtt, phase) in
            [(10, 11, "tripling"), (10, 12, "doubling"), (80, 84, "tripling"), (80, 85, "doubling")]
        {
            let mut start = established(Params::default());
            let Event::Ack(ack) = ack(500, 500 - rtt, 1, 1) else { unreachable!("an ack") };
            let _ = start.on_ack(&Ack { rtt: Rtt { min: Span::from_millis(min), ..ack.rtt }, ..ack });
            assert_eq!(start.phase(), phase, "{rtt} ms on a path of {min} ms");
        }
    }

    #[test]
    fn shrinking_ends_at_a_third_of_beta_and_at_two_segments() {
        let mut start = RapidStart::new(Params { initial_window: 30, ..Params::default() });
        let _ = start.establish(&prior_with(1, 1));
        let why = "0.7 / 3 of 30 kB";
        play(&mut start, &[(loss(100, 29, 1), "shrinking", 7_000, 0, why)]);
        let mut start = RapidStart::new(Params { initial_window: 2, ..Params::default() });
        let _ = start.establish(&prior_with(1, 1));
        play(&mut start, &[(loss(100, 2, 0), "shrinking", 2_000, 0, "the minimum window holds")]);
    }

    #[test]
    fn a_window_that_was_not_full_does_not_grow() {
        let mut start = established(Params::default());
        let Event::Ack(ack) = acked(100, 0, 5) else { unreachable!("an ack") };
        assert_eq!(start.on_ack(&Ack { is_window_limited: false, ..ack }), Next::Stay);
        assert_eq!(start.allowance().window, MSS * 10);
    }

    #[test]
    fn a_timeout_is_handled_by_the_base() {
        let mut start = established(Params::default());
        let how = play(&mut start, &[(timeout(1000), "hand over", 10_000, 0, "")]);
        assert_eq!(how, Some(HandOver::to_be_cut(MSS * 10)));
    }

    #[test]
    fn absurd_paths_do_no_harm() {
        withstand_extremes(&absurd_priors(), 2, || RapidStart::new(Params::default()));
    }
}
