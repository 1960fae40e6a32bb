//! Begin congestion avoidance at once, with the window computed from the client's bandwidth hint.
//!
//! Source: J. Rüth, K. Wolsing, M. Serror, K. Wehrle, O. Hohlfeld, "Blitz-starting QUIC
//! Connections", technical report, RWTH Aachen (BS below).
//!
//! ```text
//!  avoidance ------ first ack ------> hand over: avoidance from hint x RTT x factor,
//!       |                                        paced over 75 % of an RTT
//!       +---------- loss or CE -----> hand over, to be cut
//!
//!  slow start (no hint) -- as Google QUIC: 32 segments, 10 at once, the rest over half an RTT
//! ```
//!
//! # Deviations
//!
//! - BS §3 lets the access technology scale the BDP and §4.1 finds it useful with deep buffers, but
//!   gives no factor. Here each technology has a factor, by default one.
//! - BS §3 takes the RTT from an earlier connection or from the handshake, and BS §4.2 calls what
//!   it used "an observed min RTT". The smaller of the two is used for the window
//!   ([`Params::rtt`]): with a full buffer the handshake's includes the queue. The pace spreads the
//!   window over 75 % of the handshake's RTT, the present RTT of the path. BS speaks of "an RTT
//!   sample" from either. A sender with a single sample spreads the window over that too, and with
//!   a full buffer sends up to four times as fast ([`Params::paced_by`]). BS's Table 1 suggests
//!   this reading; it is not the default.
//! - BS §4 sends 10 segments in a burst "during Slow Start" and says of its own start only that it
//!   is paced over 75 % of the RTT. Google's pacer would release the burst there too; here the
//!   first segment leaves and the rest is paced ([`Params::burst`]).
//! - The ack that ends the start grows nothing: avoidance grows from the second.
//! - BS trusts the hint, and so does this by default; [`Params::max_over_measured`] and
//!   [`Params::shares_hint`] are the limits that BS §7 proposes against false hints.

use core::ops::RangeInclusive;

use headstart_units::{Bytes, Rate, Ratio, Span};

use super::{GoogleQuic, Startup, google_quic};
use crate::about::{About, Needs};
use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::event::{Ack, Congestion, Timeout};
use crate::hint::Guard;
use crate::path::{LARGEST_WINDOW, bdp};
use crate::prior::{Access, Prior};

/// Ranges of a factor and of a hint.
const FACTORS: RangeInclusive<Ratio> = RangeInclusive::new(Ratio::percent(1), Ratio::percent(10_000));
const RATES: RangeInclusive<Rate> =
    RangeInclusive::new(Rate::from_bytes_per_sec(1), Rate::from_mbit_per_sec(1_000_000));

/// The scheme's row of the catalogue.
pub const ABOUT: About =
    About::new("blitzstart", Needs::Hint, "the client's hint x RTT, avoidance at once").over_tcp();

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// The RTT that the bandwidth is multiplied by: the smallest known, or the handshake's,
        /// queues included.
        rtt: RttChoice = RttChoice::Smallest, from "BS §4.2";
        /// The RTT over which the first window is paced.
        paced_by: RttChoice = RttChoice::Handshake, from "see Deviations";
        /// The share of an RTT over which a window leaves, before and after the hand-over.
        pace_over: Ratio = Ratio::new(3, 4), in Ratio::percent(1)..=Ratio::percent(1000), from "BS §4";
        /// Segments that leave at once before pacing begins.
        burst: u64 = 1, in 1..=10_000, from "see Deviations";
        /// Upper bound of the hinted rate.
        max_hint: Option<Rate> = None, in RATES, from "BS §4";
        /// Upper bound of the hinted rate as a multiple of the largest delivery rate measured to
        /// the peer.
        max_over_measured: Option<Ratio> = None, in FACTORS, from "BS §4; §7 proposes a limit";
        /// With `max_over_measured`, the upper bound for a peer without a measured delivery rate.
        max_unmeasured: Option<Rate> = None, in RATES, from "BS §4";
        /// Concurrent connections of the peer that began from one record share the bounded rate.
        shares_hint: bool = false, from "BS §4; §7 proposes it";
        /// Factor on the BDP behind Ethernet, to a gateway of unknown technology.
        ethernet: Ratio = Ratio::ONE, in FACTORS, from "BS §4.1 varies the hint instead";
        /// Factor on the BDP behind a digital subscriber line.
        dsl: Ratio = Ratio::ONE, in FACTORS, from "BS §4.1 varies the hint instead";
        /// Factor on the BDP behind cable.
        cable: Ratio = Ratio::ONE, in FACTORS, from "BS §4.1 varies the hint instead";
        /// Factor on the BDP behind wireless LAN.
        wifi: Ratio = Ratio::ONE, in FACTORS, from "BS §4.1 varies the hint instead";
        /// Factor on the BDP over third-generation mobile.
        three_g: Ratio = Ratio::ONE, in FACTORS, from "BS §4.1 varies the hint instead";
        /// Factor on the BDP over fourth-generation mobile.
        lte: Ratio = Ratio::ONE, in FACTORS, from "BS §4.1 varies the hint instead";
        /// Factor on the BDP where the technology is another, or not in the hint.
        unknown: Ratio = Ratio::ONE, in FACTORS, from "BS §4.1 varies the hint instead";
    }
}

/// Selects the RTT that is used as the path's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttChoice {
    /// The smaller of the handshake's and of what an earlier connection to the peer measured.
    Smallest,
    /// The handshake's, queues included.
    Handshake,
}

crate::words!(RttChoice { Smallest = "smallest", Handshake = "handshake" });

impl RttChoice {
    fn of(self, prior: &Prior) -> Span {
        let recorded = prior.history.map(|known| known.record.rt_prop).filter(|rtt| !rtt.is_zero());
        match (self, recorded) {
            (Self::Smallest, Some(recorded)) => prior.handshake_rtt.min(recorded),
            _ => prior.handshake_rtt,
        }
    }
}

impl Params {
    /// Factor on the BDP for an access technology (BS §3: by its typical buffers).
    const fn factor(&self, access: Access) -> Ratio {
        match access {
            Access::Ethernet => self.ethernet,
            Access::Dsl => self.dsl,
            Access::Cable => self.cable,
            Access::Wifi => self.wifi,
            Access::ThreeG => self.three_g,
            Access::Lte => self.lte,
            Access::Unknown => self.unknown,
        }
    }

    fn guard(&self) -> Guard {
        Guard {
            max_hint: self.max_hint.unwrap_or(Rate::MAX),
            max_over_measured: self.max_over_measured,
            max_unmeasured: self.max_unmeasured.unwrap_or(Rate::MAX),
            shares_hint: self.shares_hint,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// No hint.
    SlowStart(GoogleQuic),
    /// The hinted window, before the first ack.
    Avoidance { window: Bytes, rtt: Span },
}

/// Blitzstart.
#[derive(Clone, Copy, Debug)]
pub struct Blitzstart {
    pub(super) params: Params,
    phase: Phase,
}

impl Blitzstart {
    /// [`Blitzstart`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self { params, phase: Phase::SlowStart(without_hint()) }
    }

    /// The window from hint and RTT, if there is a usable hint.
    fn hinted(&self, prior: &Prior) -> Option<Bytes> {
        let hint = self.params.guard().admit(prior.hint?, prior.history.as_ref());
        let scaled = bdp(hint.bandwidth, self.params.rtt.of(prior))? * self.params.factor(hint.access);
        Some(scaled.clamp(prior.mss * MINIMUM_SEGMENTS, LARGEST_WINDOW))
    }

    const fn hand_over(&self, mut how: HandOver) -> Next {
        how.pace_over = Some(self.params.pace_over);
        Next::HandOver(how)
    }
}

impl Startup for Blitzstart {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        if let Some(window) = self.hinted(prior) {
            self.phase = Phase::Avoidance { window, rtt: self.params.paced_by.of(prior) };
            let burst = (prior.mss * self.params.burst).min(window);
            return FlightPlan { burst, flight: window, allowance: self.allowance() };
        }
        let mut slow_start = without_hint();
        let plan = slow_start.establish(prior);
        self.phase = Phase::SlowStart(slow_start);
        plan
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) -> Next {
        match &mut self.phase {
            Phase::SlowStart(slow_start) => slow_start.on_ack(ack),
            &mut Phase::Avoidance { window, .. } => self.hand_over(HandOver::avoiding(window)),
        }
    }

    fn on_congestion(&mut self, signal: &Congestion) -> Next {
        match &mut self.phase {
            Phase::SlowStart(slow_start) => slow_start.on_congestion(signal),
            &mut Phase::Avoidance { window, .. } => self.hand_over(HandOver::to_be_cut(window)),
        }
    }

    fn on_timeout(&mut self, _: &Timeout) -> Next {
        self.hand_over(HandOver::to_be_cut(self.allowance().window))
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        match &self.phase {
            Phase::SlowStart(slow_start) => slow_start.allowance(),
            Phase::Avoidance { window, rtt } => {
                Allowance { window: *window, pace: Some(*window / (*rtt * self.params.pace_over)) }
            }
        }
    }

    fn is_slow_start(&self) -> bool {
        matches!(self.phase, Phase::SlowStart(_))
    }

    fn phase(&self) -> &'static str {
        match &self.phase {
            Phase::SlowStart(slow_start) => slow_start.phase(),
            Phase::Avoidance { .. } => "avoidance",
        }
    }
}

/// BS §4: without a hint, Google QUIC's slow start.
fn without_hint() -> GoogleQuic {
    GoogleQuic::new(google_quic::Params { leaves_on_delay: false, ..google_quic::Params::default() })
}

/// RFC 5681 §3.1: the least window of a controller.
const MINIMUM_SEGMENTS: u64 = 2;

#[cfg(test)]
mod tests {
    use super::super::timeline::{MSS, ack, loss, play, timeout, withstand_extremes};
    use super::*;
    use crate::history::testing::{absurd_priors, prior_with};
    use crate::prior::Hint;
    use headstart_units::Rate;

    /// 8 Mbit/s at an RTT of 100 ms: a BDP of 100 kB.
    fn established(access: Access, params: Params) -> (Blitzstart, FlightPlan) {
        let hint = Some(Hint { bandwidth: Rate::from_mbit_per_sec(8), access });
        let prior = Prior { hint, history: None, ..prior_with(1, 1) };
        let mut start = Blitzstart::new(params);
        let plan = start.establish(&prior);
        (start, plan)
    }

    #[test]
    fn the_hinted_window_is_paced_over_three_quarters_of_an_rtt_and_avoidance_goes_on_so() {
        let (mut start, plan) = established(Access::Dsl, Params::default());
        // 100 kB in 75 ms.
        assert_eq!(plan, FlightPlan::paced(MSS, MSS * 100, Rate::from_bytes_per_sec(1_333_333)));
        assert_eq!(start.phase(), "avoidance");
        assert!(!start.is_slow_start());
        let steps = [(ack(100, 0, 2, 98), "hand over", 100_000, 0, "nothing is checked: avoidance")];
        let expected = HandOver { pace_over: Some(Ratio::new(3, 4)), ..HandOver::avoiding(MSS * 100) };
        assert_eq!(play(&mut start, &steps), Some(expected));
    }

    #[test]
    fn congestion_is_cut_by_the_base_and_stays_paced() {
        for event in [loss(100, 10, 90), timeout(1000)] {
            let (mut start, _) = established(Access::Dsl, Params::default());
            let steps = [(event, "hand over", 100_000, 0, "as it always would")];
            let expected = HandOver { pace_over: Some(Ratio::new(3, 4)), ..HandOver::to_be_cut(MSS * 100) };
            assert_eq!(play(&mut start, &steps), Some(expected));
        }
    }

    #[test]
    fn each_access_technology_has_its_own_factor() {
        let factors = Params {
            ethernet: Ratio::new(1, 10),
            dsl: Ratio::new(2, 10),
            cable: Ratio::new(3, 10),
            wifi: Ratio::new(4, 10),
            three_g: Ratio::new(5, 10),
            lte: Ratio::new(6, 10),
            unknown: Ratio::new(7, 10),
            ..Params::default()
        };
        for (access, segments) in [
            (Access::Ethernet, 10),
            (Access::Dsl, 20),
            (Access::Cable, 30),
            (Access::Wifi, 40),
            (Access::ThreeG, 50),
            (Access::Lte, 60),
            (Access::Unknown, 70),
        ] {
            let (_, plan) = established(access, factors);
            assert_eq!(plan.flight, MSS * segments, "{access:?}");
            let (_, plan) = established(access, Params::default());
            assert_eq!(plan.flight, MSS * 100, "{access:?}: by default the BDP itself");
        }
    }

    #[test]
    fn without_a_hint_it_is_googles_slow_start() {
        let prior = Prior { hint: None, ..prior_with(1, 1) };
        let mut start = Blitzstart::new(Params::default());
        let plan = start.establish(&prior);
        assert_eq!((plan.burst, plan.flight), (MSS * 10, MSS * 32));
        #[rustfmt::skip]
        let steps = [
            (ack(100, 0, 32, 0), "slow start", 64_000, 1_280_000, "doubles, paced over half an RTT"),
            (timeout(1000),      "hand over",  64_000, 0,         "the base begins again"),
        ];
        let how = play(&mut start, &steps).expect("hands over");
        assert_eq!(how.pace_over, Some(Ratio::new(3, 4)), "and stays paced");
    }

    #[test]
    fn a_burst_is_never_larger_than_the_window() {
        let hint = Some(Hint { bandwidth: Rate::from_mbit_per_sec(1), access: Access::Lte });
        let prior = Prior { hint, history: None, ..prior_with(1, 1) };
        let plan = Blitzstart::new(Params { burst: 100, ..Params::default() }).establish(&prior);
        assert_eq!((plan.burst, plan.flight), (Bytes::new(12_500), Bytes::new(12_500)));
    }

    #[test]
    fn the_window_is_that_of_the_smallest_rtt_known_and_paced_over_the_present_one() {
        let hint = Some(Hint { bandwidth: Rate::from_mbit_per_sec(8), access: Access::Dsl });
        for (recorded, rtt, segments) in [
            (Some(40), RttChoice::Smallest, 40),
            (Some(40), RttChoice::Handshake, 100),
            (Some(400), RttChoice::Smallest, 100),
            (Some(0), RttChoice::Smallest, 100),
            (None, RttChoice::Smallest, 100),
        ] {
            let mut prior = prior_with(1, recorded.unwrap_or(1));
            prior.hint = hint;
            prior.history = prior.history.filter(|_| recorded.is_some());
            let plan = Blitzstart::new(Params { rtt, ..Params::default() }).establish(&prior);
            // The handshake took 100 ms.
            let pace = MSS * segments / Span::from_millis(75);
            assert_eq!(plan, FlightPlan::paced(MSS, MSS * segments, pace), "{recorded:?} {rtt:?}");
        }
    }

    /// BS §3: "an RTT sample (which can be derived from a previous connection or an explicit
    /// handshake)".
    #[test]
    fn a_sender_with_one_rtt_sample_paces_over_that() {
        let hint = Some(Hint { bandwidth: Rate::from_mbit_per_sec(8), access: Access::Dsl });
        for (recorded, paced_by, spread) in [
            (40, RttChoice::Smallest, 30),
            (40, RttChoice::Handshake, 75),
            (400, RttChoice::Smallest, 75),
            (0, RttChoice::Smallest, 75),
        ] {
            let prior = Prior { hint, ..prior_with(1, recorded) };
            let plan = Blitzstart::new(Params { paced_by, ..Params::default() }).establish(&prior);
            let pace = Some(plan.flight / Span::from_millis(spread));
            assert_eq!(plan.allowance.pace, pace, "{recorded} {paced_by:?}");
        }
    }

    #[test]
    fn a_guard_bounds_the_accepted_hint() {
        let max_over_measured = Some(Ratio::new(2, 1));
        let hint = Some(Hint { bandwidth: Rate::from_mbit_per_sec(80), access: Access::Dsl });
        // 1 MB/s was measured: of the hinted 10 MB/s, 2 MB/s are used.
        let prior = Prior { hint, ..prior_with(1000, 100) };
        let plan = Blitzstart::new(Params { max_over_measured, ..Params::default() }).establish(&prior);
        assert_eq!(plan.flight, MSS * 200);
        let plan = Blitzstart::new(Params::default()).establish(&prior);
        assert_eq!(plan.flight, MSS * 1000);
    }

    #[test]
    fn absurd_hints_do_no_harm() {
        let params = Params { lte: Ratio::new(4, 1), ..Params::default() };
        withstand_extremes(&absurd_priors(), 2, || Blitzstart::new(params));
        let hint = Some(Hint { bandwidth: Rate::MAX, access: Access::Lte });
        let plan = Blitzstart::new(params).establish(&Prior { hint, ..prior_with(1, 1) });
        assert_eq!(plan.flight, LARGEST_WINDOW);
        withstand_extremes(&absurd_priors(), 2, || Blitzstart::new(Params::default()));
    }
}
