//! Quadruple the window in a round trip where ack train and delay foretell that doubling would go
//! on, and pace the data that doubling would not send.
//!
//! Source (SU below): M. Arghavani, H. Zhang, D. Eyers, A. Arghavani, "SUSS: Improving TCP
//! Performance by Speeding Up Slow-Start", SIGCOMM 2024, by its authors' change of Linux 6.8
//! (`tcp_cubic.c` of SUSSdeveloper/SUSS, the behaviour in own words). Slow start as Linux's CUBIC
//! begins ([`crate::growth::linux`]), and in each round trip:
//!
//! ```text
//!  |<- blue acks ->|<-- guard -->|<------- red data, paced ------->|
//!  |  clocked, 2x  |             |                                 |
//!  first ack       tail: is the next round foretold to fit?        first ack of the next round
//! ```
//!
//! *Blue* is the data that acks of blue data released: twice as much in each round. *Red* is what
//! the pacing added, so that four times as much is in flight after each accelerated round. The
//! initial window is round 1. Accelerated are three rounds at most, without a gap:
//!
//! - Round 2 is if the minimum RTT is above 10 ms and the blue train has less than a quarter of
//!   it. Else nothing is accelerated at all.
//! - A later round is if the train of its whole flight, extrapolated to the next round by its
//!   growth since the last, fits into the minimum RTT. The delay, extrapolated by one round, must
//!   stay within 9/8 of that RTT as well.
//!
//! HyStart's train, too, counts only blue acks and extrapolates them to the whole flight.
//!
//! # Deviations
//!
//! - SU waits for the guard, half of the time that the blue train leaves free, and then paces. A
//!   scheme has no timer: here the pace is lower and the red data takes the guard as well.
//! - Linux raises the window with each red packet. Here it is raised at once; red data that has not
//!   left by the next round, or by a loss, is taken off it.
//! - The authors' change sends more than the receiver's window. Not taken.
//! - It leaves with what is in flight, if two rounds were accelerated; here with two segments at
//!   least.

use headstart_units::{Bytes, Rate, Span, Time};

use super::Startup;
use crate::about::{About, Needs};
use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::event::{Ack, Congestion, Timeout};
use crate::growth::{SLOW_START, linux};
use crate::prior::Prior;

/// The scheme's row of the catalogue.
pub const ABOUT: About = About::new(
    "suss",
    Needs::Nothing,
    "four times the window in a round trip where doubling is foretold to go on (SUSS)",
);

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// Initial window in segments.
        initial_window: u64 = 10, in 1..=10_000, from "Linux's TCP_INIT_CWND";
        /// The most accelerated rounds (`suss_max`).
        rounds: u32 = 3, in 1..=8, from "SU, the authors' change of Linux";
    }
}

/// SUSS.
#[derive(Clone, Copy, Debug)]
pub struct Suss {
    pub(super) params: Params,
    hystart: linux::Linux,
    mss: Bytes,
    window: Bytes,
    /// Set while red data leaves.
    pace: Option<Rate>,
    /// Every round so far was accelerated (G = 4).
    accelerates: bool,
    /// Set if round 2 was not: the rest is Linux's slow start.
    is_off: bool,
    /// Number of the round, from 1.
    round: u32,
    /// The round in which the minimum RTT was last lowered.
    min_round: u32,
    /// Rounds that were paced.
    paced_rounds: u32,
    /// Time and delivered bytes at which the round began.
    begun: (Time, Bytes),
    /// Bytes of blue data that are acknowledged in this round; not all of them yet if `is_blue`.
    blue: Bytes,
    is_blue: bool,
    /// Length of the last blue train.
    last_train: Span,
    /// The window at which slow start ends, once HyStart's train was too long.
    cap: Option<Bytes>,
}

impl Suss {
    /// [`Suss`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            hystart: linux::Linux::new(Bytes::ZERO),
            mss: Bytes::ZERO,
            window: Bytes::ZERO,
            pace: None,
            accelerates: true,
            is_off: false,
            round: 1,
            min_round: 1,
            paced_rounds: 0,
            begun: (Time::ZERO, Bytes::ZERO),
            blue: Bytes::ZERO,
            is_blue: false,
            last_train: Span::ZERO,
            cap: None,
        }
    }

    /// The window without red data that has not left; `in_flight` is what was in flight last.
    fn used_window(&self, in_flight: Bytes) -> Bytes {
        let used = if self.pace.is_some() { self.window.min(in_flight) } else { self.window };
        used.max(self.mss * MINIMUM_SEGMENTS)
    }

    fn begin_round(&mut self, ack: &Ack) {
        self.window = self.used_window(ack.in_flight + ack.newly_acked);
        self.pace = None;
        self.round += 1;
        self.begun = (ack.now, ack.delivered.saturating_sub(ack.newly_acked));
        // The first round's data is blue as a whole.
        self.blue = if self.round == 2 { self.window } else { self.blue * 2 };
        self.is_blue = true;
    }

    /// The blue train is complete with this ack: accelerates the round, or does not.
    fn end_blue(&mut self, ack: &Ack) {
        let (began, head) = self.begun;
        let before = ack.delivered.saturating_sub(ack.newly_acked + head);
        let elapsed = ack.now.since(began);
        // The gaps between its acks, and one gap more.
        let train = scaled(elapsed, self.blue.get(), before.get().max(1));
        let train = if before.is_zero() { elapsed } else { train };
        self.is_blue = false;
        self.accelerates = self.accelerates && self.is_foretold(train);
        if !self.accelerates {
            return;
        }
        self.last_train = train;
        let (delay_min, number) = (self.hystart.delay_min, self.round);
        let blue = self.blue * 2;
        let red = blue * ((1 << (number - 1)) - 1);
        let red_acks = self.blue * ((1 << (number - 2)) - 1);
        let room = delay_min / (1 << (number - 1));
        if room > train && ack.is_window_limited {
            self.paced_rounds += 1;
            self.window += red - red_acks;
            self.pace = Some(red / (delay_min - room + (room - train) / 2));
        }
    }

    /// Exponential growth is foretold to go on for another round.
    fn is_foretold(&mut self, train: Span) -> bool {
        let (delay_min, round_min, number) = (self.hystart.delay_min, self.hystart.round_min, self.round);
        if number == 2 {
            self.is_off = delay_min <= SMALLEST_RTT || train >= delay_min / 4;
            return !self.is_off;
        }
        if number >= self.params.rounds + 2 {
            return false;
        }
        let (now, last) = (train * (1 << (number - 2)), self.last_train * (1 << (number - 3)));
        let next = scaled(now, now.as_nanos(), last.as_nanos().max(1));
        let rounds = u64::from(number - self.min_round);
        let delay_limit = delay_min * (rounds + 1) + delay_min * rounds / 8;
        next <= delay_min && round_min * (rounds + 1) <= delay_limit
    }

    /// Slow start is over by HyStart.
    fn leave(&self, ack: &Ack) -> Next {
        let in_flight = if self.paced_rounds > 1 { ack.in_flight } else { ack.in_flight + ack.newly_acked };
        let is_inflated = self.paced_rounds > 1 || self.pace.is_some();
        let window = if is_inflated { self.window.min(in_flight) } else { self.window };
        Next::HandOver(HandOver::avoiding(window.max(self.mss * MINIMUM_SEGMENTS)))
    }
}

impl Startup for Suss {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.mss = prior.mss;
        self.hystart = linux::Linux::new(prior.mss);
        self.window = prior.mss * self.params.initial_window;
        FlightPlan::burst(self.window)
    }

    fn on_ack(&mut self, ack: &Ack) -> Next {
        let delay_min = self.hystart.delay_min;
        let found = self.hystart.examine(self.window, ack, self.paced_rounds);
        if self.hystart.delay_min < delay_min {
            self.min_round = self.round;
        }
        if found.delay || (self.is_off && found.train) || self.cap.is_some_and(|cap| self.window > cap) {
            return self.leave(ack);
        }
        if self.is_blue && found.train && self.cap.is_none() {
            let blue = ack.delivered.saturating_sub(ack.newly_acked + self.begun.1);
            self.cap = Some(self.window + blue * ((1 << self.paced_rounds) - 1));
        }
        let is_measured = !self.is_off && self.cap.is_none();
        if is_measured && found.begins_round {
            self.begin_round(ack);
        }
        let is_red = !self.is_blue;
        if ack.is_window_limited && !(is_red && self.pace.is_some()) {
            self.window += ack.newly_acked;
        }
        if is_measured && self.is_blue && ack.delivered.saturating_sub(self.begun.1) >= self.blue {
            self.end_blue(ack);
        }
        Next::Stay
    }

    fn on_congestion(&mut self, signal: &Congestion) -> Next {
        Next::HandOver(HandOver::to_be_cut(self.used_window(signal.prior_in_flight)))
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Next {
        Next::HandOver(HandOver::to_be_cut(self.used_window(timeout.prior_in_flight)))
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        Allowance { window: self.window, pace: self.pace }
    }

    fn phase(&self) -> &'static str {
        match self.pace {
            Some(_) => "pacing",
            None if self.accelerates && self.cap.is_none() => "clocking",
            None => SLOW_START,
        }
    }
}

/// `span` x `by` / `over`.
fn scaled(span: Span, by: u64, over: u64) -> Span {
    let scaled = u128::from(span.as_nanos()) * u128::from(by) / u128::from(over);
    Span::from_nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
}

/// At a minimum RTT of this or less nothing is accelerated.
const SMALLEST_RTT: Span = Span::from_millis(10);
/// RFC 5681 §3.1 and RFC 9002 §4.8.
const MINIMUM_SEGMENTS: u64 = 2;

#[cfg(test)]
mod tests {
    use super::super::timeline::{loss, timeout, withstand_extremes};
    use super::*;
    use crate::base::testing::{MSS, acked};
    use crate::history::testing::absurd_priors;
    use crate::path::RateSample;
    use headstart_units::Span;

    /// A path whose bottleneck takes `gap` microseconds for a segment.
    struct Play {
        suss: Suss,
        gap: u64,
        now: Time,
        delivered: u64,
        round_ends: u64,
    }

    impl Play {
        fn new(params: Params, gap: u64) -> Self {
            let mut suss = Suss::new(params);
            let prior = Prior::bare(Time::ZERO, MSS, Span::from_millis(100), Bytes::new(1 << 30));
            assert_eq!(suss.establish(&prior), FlightPlan::burst(MSS * params.initial_window));
            Self { suss, gap, now: Time::ZERO, delivered: 0, round_ends: 0 }
        }

        /// Begins a round 100 ms after the last one began and acknowledges `segments` one by one,
        /// with an RTT of 100 ms and `queue`; the window stays full. Stops at the exit.
        fn round(&mut self, segments: u64, queue: u64) -> Option<HandOver> {
            let begins = self.now;
            let prior = self.round_ends;
            for n in 0..segments {
                self.delivered += 1;
                let window = self.suss.allowance().window;
                let ack = Ack {
                    rtt_sample: Some(Span::from_millis(100 + queue)),
                    delivered: MSS * self.delivered,
                    in_flight: window.saturating_sub(MSS),
                    rate: RateSample { prior_delivered: MSS * prior, ..RateSample::default() },
                    ..acked(begins + Span::from_micros(self.gap * n), MSS)
                };
                if n == 0 {
                    self.round_ends = self.delivered;
                }
                if let Next::HandOver(how) = self.suss.on_ack(&ack) {
                    return Some(how);
                }
            }
            self.now = begins + Span::from_millis(100);
            None
        }

        fn state(&self) -> (&'static str, u64, u64) {
            let Allowance { window, pace } = self.suss.allowance();
            let pace = pace.map_or(0, |pace| pace.as_bytes_per_sec());
            (self.suss.phase(), window.get() / 1000, pace / 1000)
        }
    }

    /// A segment each 0.05 ms: 2000 segments in a round trip.
    #[test]
    fn three_rounds_quadruple_the_window_and_the_fourth_doubles_it() {
        let mut play = Play::new(Params::default(), 50);
        assert_eq!(play.state(), ("clocking", 10, 0));
        play.round(10, 0);
        // 20 segments over half the RTT and half of the 49.5 ms that the train of 0.5 ms left.
        assert_eq!(play.state(), ("pacing", 40, 267), "10 doubled, and 20 red ones");
        play.round(20, 0);
        // 160 - 40 over 75 ms and half of 25 - 1 ms; of 40 acks 20 are red.
        assert_eq!(play.state(), ("pacing", 40 + 20 + 100, 1379));
        let before = play.suss.allowance();
        for _ in 0..3 {
            play.delivered += 1;
            let ack = Ack { delivered: MSS * play.delivered, in_flight: MSS * 159, ..acked(play.now, MSS) };
            assert_eq!(play.suss.on_ack(&ack), Next::Stay);
            assert_eq!(play.suss.allowance(), before, "red acks do not grow it");
        }
        play.round(40, 0);
        assert_eq!(play.state(), ("pacing", 160 + 40 + 560 - 120, 6037), "640");
        play.round(80, 0);
        assert_eq!(play.state(), ("slow start", 640 + 80, 0), "only three rounds");
    }

    #[test]
    fn the_blue_train_is_complete_with_its_last_ack() {
        let mut play = Play::new(Params::default(), 100);
        play.round(9, 0);
        assert_eq!(play.state(), ("clocking", 19, 0));
    }

    #[test]
    fn as_many_rounds_as_the_parameter_says_are_accelerated() {
        let mut play = Play::new(Params { rounds: 1, ..Params::default() }, 100);
        play.round(10, 0);
        assert_eq!(play.state().0, "pacing");
        play.round(20, 0);
        assert_eq!(play.state(), ("slow start", 60, 0));
    }

    /// Of 160 segments, the next round's, each takes 0.625 ms at most, for 100 ms of all.
    #[test]
    fn a_flight_that_would_not_fit_into_the_rtt_is_not_sent() {
        for (gap, phase) in [(625, "pacing"), (626, "slow start")] {
            let mut play = Play::new(Params::default(), gap);
            play.round(10, 0);
            assert_eq!(play.state().0, "pacing", "round 2 has a rule of its own");
            play.round(20, 0);
            assert_eq!(play.state().0, phase, "{gap} us");
        }
    }

    /// Two rounds added 8 ms to 100 ms: three add 12 ms, which is below an eighth.
    #[test]
    fn a_delay_that_would_pass_an_eighth_in_the_next_round_ends_it() {
        for (queue, phase) in [(8, "pacing"), (9, "slow start")] {
            let mut play = Play::new(Params::default(), 100);
            play.round(10, 0);
            play.round(20, queue);
            assert_eq!(play.state().0, phase, "{queue} ms");
        }
    }

    #[test]
    fn a_train_of_a_quarter_rtt_in_round_2_turns_it_off_for_good() {
        for (gap, phase) in [(2_499, "pacing"), (2_500, "slow start")] {
            let mut play = Play::new(Params::default(), gap);
            play.round(10, 0);
            assert_eq!(play.state().0, phase, "{gap} us");
        }
        let mut play = Play::new(Params::default(), 2_500);
        play.round(10, 0);
        play.gap = 1;
        play.round(20, 0);
        assert_eq!(play.state(), ("slow start", 40, 0));
    }

    #[test]
    fn red_data_that_has_not_left_by_the_next_round_is_taken_off_the_window() {
        let mut play = Play::new(Params::default(), 100);
        play.round(10, 0);
        let ack = Ack {
            rtt_sample: Some(Span::from_millis(100)),
            delivered: MSS * 11,
            in_flight: MSS * 24,
            rate: RateSample { prior_delivered: MSS, ..RateSample::default() },
            ..acked(play.now, MSS)
        };
        let _ = play.suss.on_ack(&ack);
        assert_eq!(play.state(), ("clocking", 26, 0), "25 were in flight, and one grows it");
        for (event, in_flight) in [(loss(150, 1, 24), 25), (timeout(150), 2)] {
            let mut play = Play::new(Params::default(), 100);
            play.round(10, 0);
            let expected = HandOver::to_be_cut(MSS * in_flight);
            assert_eq!(super::super::timeline::apply(&mut play.suss, event), Next::HandOver(expected));
        }
    }

    /// HyStart's train may have 50.5 ms. After three accelerated rounds one segment of eight is
    /// blue, so that an eighth of it counts.
    #[test]
    fn hystarts_train_is_extrapolated_to_the_whole_flight() {
        let mut play = Play::new(Params::default(), 100);
        for segments in [10, 20, 40] {
            assert_eq!(play.round(segments, 0), None);
        }
        // 6.4 ms are more than 50.5 / 8: found at the 65th, of which 64 are blue before it.
        let exit = play.round(640, 0).expect("the cap is passed");
        let cap = 640 + 64 + 64 * 7;
        assert_eq!(exit, HandOver::avoiding(MSS * cap), "what is in flight, above the cap by one");
    }

    #[test]
    fn a_delay_above_an_eighth_ends_it_and_without_jumps_it_is_linuxs_slow_start() {
        let mut play = Play::new(Params::default(), 2_500);
        play.round(10, 0);
        let exit = play.round(20, 13).expect("13 ms are more than an eighth");
        assert_eq!(exit, HandOver::avoiding(MSS * 28), "at the ninth sample");
    }

    #[test]
    fn absurd_paths_do_no_harm() {
        withstand_extremes(&absurd_priors(), 2, || Suss::new(Params::default()));
    }
}
