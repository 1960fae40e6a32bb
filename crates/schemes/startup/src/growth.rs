//! Slow start's doubling and its exits: used by most schemes after their first flight.
//!
//! Sources: RFC 5681 §3.1 with appropriate byte counting unlimited (RFC 3465 with L = infinity, as
//! RFC 9406 §4.3 recommends for a paced sender and as Linux does); RFC 9406 (HyStart++); S. Ha, I.
//! Rhee, "Hybrid Slow Start for High-Bandwidth and Long-Distance Networks", PFLDNeT 2008 (HyStart),
//! with the constants of Google QUIC in 2018.
//!
//! HyStart ends slow start at once where HyStart++ first grows more slowly for five rounds. In each
//! round the smallest of the first eight RTT samples is compared with the smallest RTT of the whole
//! connection.
//!
//! SEARCH ends it where deliveries fall behind what was sent ([`search`]). A scheme that has the
//! parameter `exit` can have any of [`Exit`].
//!
//! [`Growth::after_flight`] is this project's own. Both HyStarts judge a round trip by its first
//! samples, but a paced first flight can fill the path within its own round trip. So each four
//! samples are judged there, by HyStart's threshold. The first four above it pause growth for one
//! round trip, and HyStart++ judges the next ones. A flight that holds all that the
//! record's path does begins paused: the samples that say so come when all is sent.
//!
//! There are two HyStarts because two were published and both are deployed. The one of 2008, as in
//! Google QUIC, uses delay only and is here. The one of 2011, as in Linux, uses trains of acks too
//! and counts its samples differently ([`linux`]).
//!
//! # Deviations
//!
//! - RFC 9406 §4.2 ends a round when the window's right edge is acknowledged. Here a round ends
//!   when data sent after its beginning is ([`Round`]): the same edge in delivered bytes.
//! - RFC 9406 §4.3 limits growth per ack to L = 8 segments for a sender that is not paced. An ack
//!   covers two segments at most here, so the limit never binds and is not implemented.
//! - HyStart's second trigger, the length of a train of acks, is left out: it is no evidence for a
//!   paced sender, and Google QUIC has removed it.

pub mod linux;
pub mod search;

use headstart_units::{Bytes, Span, Time};

use crate::event::Ack;
use crate::path::Round;

/// Decision on slow start after an ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Keep growing.
    Continue,
    /// HyStart or HyStart++ detected a growing queue: avoidance begins at the present window.
    Exit,
}

/// End of slow start other than by congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// No exit: only a loss or a mark ends slow start.
    Loss,
    /// Delay that stays for five rounds (RFC 9406).
    HyStart,
    /// Missing deliveries; the queue is drained first (SEARCH 4.0).
    Search,
    /// Missing deliveries; avoidance begins at the present window, as in Firefox.
    SearchUndrained,
}

crate::words!(Exit {
    Loss = "loss",
    HyStart = "hystart",
    Search = "search",
    SearchUndrained = "search-undrained",
});

/// The ack that begins a round of HyStart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoundStart {
    /// The first of what was sent since the round before began.
    #[default]
    Flight,
    /// The last of what had been sent when the round before began, as in s2n-quic.
    Early,
    /// The one after the first, as in Google QUIC and quic-go.
    Late,
}

crate::words!(RoundStart { Flight = "flight", Early = "early", Late = "late" });

/// The phase of a scheme that doubles its window each round trip.
pub const SLOW_START: &str = "slow start";

/// Slow start's growth rule.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    delay: DelayResponse,
}

#[derive(Clone, Copy, Debug)]
enum DelayResponse {
    /// No detector: only congestion ends slow start.
    Ignored,
    /// HyStart++ (RFC 9406).
    HyStartPlusPlus(HyStartPlusPlus),
    /// HyStart++, and a pause in the round trip in which a queue first stands.
    Paused(HyStartPlusPlus, Pause),
    /// HyStart (Ha and Rhee 2008).
    HyStart(HyStart),
    /// HyStart as in Linux.
    Linux(linux::Linux),
    /// SEARCH.
    Search(search::Search),
}

impl Growth {
    /// Doubles every round trip, until congestion or this exit.
    #[must_use]
    pub fn new(exit: Exit) -> Self {
        let delay = match exit {
            Exit::Loss => DelayResponse::Ignored,
            Exit::HyStart => DelayResponse::HyStartPlusPlus(HyStartPlusPlus::default()),
            Exit::Search => DelayResponse::Search(search::Search::new(true)),
            Exit::SearchUndrained => DelayResponse::Search(search::Search::new(false)),
        };
        Self { delay }
    }

    /// Doubles every round trip, until congestion or until HyStart++ ends it, and pauses while a
    /// queue first stands; from the beginning if the first flight `fills` the path on record.
    #[must_use]
    pub fn after_flight(fills: bool) -> Self {
        Self { delay: DelayResponse::Paused(HyStartPlusPlus::default(), Pause::new(fills)) }
    }

    /// Doubles every round trip, until congestion or until HyStart detects delay, without
    /// HyStart++'s second check.
    #[must_use]
    pub fn until_delay(mss: Bytes, rounds: RoundStart) -> Self {
        Self {
            delay: DelayResponse::HyStart(HyStart {
                rounds,
                low_window: mss * LOW_WINDOW,
                ..HyStart::default()
            }),
        }
    }

    /// Doubles every round trip, until congestion or until Linux's HyStart ends it.
    #[must_use]
    pub fn linux(mss: Bytes) -> Self {
        Self { delay: DelayResponse::Linux(linux::Linux::new(mss)) }
    }

    /// Grows `window` for one ack.
    #[inline]
    pub fn on_ack(&mut self, window: &mut Bytes, ack: &Ack) -> Decision {
        let (divisor, is_done) = match &mut self.delay {
            DelayResponse::Ignored => (1, false),
            DelayResponse::HyStartPlusPlus(hystart) => (hystart.on_ack(ack), hystart.is_done()),
            DelayResponse::Paused(hystart, pause) => {
                let divisor = hystart.on_ack(ack);
                (if pause.on_ack(ack) { u64::MAX } else { divisor }, hystart.is_done())
            }
            DelayResponse::HyStart(hystart) => (1, hystart.on_ack(ack) && *window >= hystart.low_window),
            DelayResponse::Linux(linux) => (1, linux.on_ack(*window, ack)),
            DelayResponse::Search(search) => match search.on_ack(*window, ack) {
                search::Step::Grow => (1, false),
                search::Step::Drain(drained) => {
                    *window = drained;
                    return Decision::Continue;
                }
                search::Step::Exit(left) => {
                    *window = left;
                    return Decision::Exit;
                }
            },
        };
        if ack.is_window_limited
            && !(is_done && matches!(self.delay, DelayResponse::HyStart(_) | DelayResponse::Linux(_)))
        {
            *window += ack.newly_acked / divisor;
        }
        if is_done { Decision::Exit } else { Decision::Continue }
    }

    /// `slow start`, `CSS` while HyStart++ checks whether the delay was real, `pause` while a queue
    /// first stands, or SEARCH's `drain`.
    #[must_use]
    pub fn phase(&self) -> &'static str {
        match self.delay {
            DelayResponse::Paused(_, pause) if pause.is_under_way() => "pause",
            DelayResponse::HyStartPlusPlus(HyStartPlusPlus { conservative_rounds: 1.., .. })
            | DelayResponse::Paused(HyStartPlusPlus { conservative_rounds: 1.., .. }, _) => "CSS",
            DelayResponse::Search(search) if search.is_draining() => "drain",
            _ => SLOW_START,
        }
    }
}

/// RFC 9406's state: the two rounds' minima and the conservative phase.
#[derive(Clone, Copy, Debug)]
struct HyStartPlusPlus {
    round: Round,
    last_round_min: Span,
    current_round_min: Span,
    samples: u32,
    /// Rounds spent in conservative slow start, the present one included; zero: not in it.
    conservative_rounds: u32,
    baseline_min: Span,
}

// RFC 9406 §4.3.
const MIN_RTT_THRESH: Span = Span::from_millis(4);
const MAX_RTT_THRESH: Span = Span::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;

impl Default for HyStartPlusPlus {
    fn default() -> Self {
        Self {
            round: Round::default(),
            last_round_min: Span::MAX,
            current_round_min: Span::MAX,
            samples: 0,
            conservative_rounds: 0,
            baseline_min: Span::MAX,
        }
    }
}

impl HyStartPlusPlus {
    /// Returns the divisor of growth.
    fn on_ack(&mut self, ack: &Ack) -> u64 {
        if self.round.on_ack(ack) {
            self.last_round_min = self.current_round_min;
            self.current_round_min = Span::MAX;
            self.samples = 0;
            if self.conservative_rounds > 0 {
                self.conservative_rounds += 1;
            }
        }
        if let Some(rtt) = ack.rtt_sample {
            self.current_round_min = self.current_round_min.min(rtt);
            self.samples += 1;
        }
        if self.samples >= N_RTT_SAMPLE && self.current_round_min != Span::MAX {
            if self.conservative_rounds > 0 {
                // §4.2: the exit was spurious if the delay fell again.
                if self.current_round_min < self.baseline_min {
                    self.baseline_min = Span::MAX;
                    self.conservative_rounds = 0;
                }
            } else if self.last_round_min != Span::MAX
                && self.current_round_min >= self.last_round_min + threshold(self.last_round_min)
            {
                self.baseline_min = self.current_round_min;
                self.conservative_rounds = 1;
            }
        }
        if self.conservative_rounds > 0 { CSS_GROWTH_DIVISOR } else { 1 }
    }

    fn is_done(&self) -> bool {
        self.conservative_rounds > CSS_ROUNDS
    }
}

/// RTT samples that are judged together by a [`Pause`]: eight would be sixteen packets.
const PAUSE_SAMPLES: u32 = 4;

/// One round trip without growth: others may have made the queue, and the price is one doubling.
#[derive(Clone, Copy, Debug)]
struct Pause {
    /// The smallest of the latest samples, and their number.
    least: Span,
    samples: u32,
    state: PauseState,
}

/// Both times are of the ack at which growth stopped: data that leaves later ends the pause.
#[derive(Clone, Copy, Debug)]
enum PauseState {
    /// No queue has stood.
    Watching,
    /// The flight should fill the path, and samples have not said so yet; `None` before any ack.
    Assumed(Option<Time>),
    /// Samples say so.
    Paused(Time),
    Over,
}

impl Pause {
    /// `is_assumed` begins with a pause, which four samples without a queue take back.
    const fn new(is_assumed: bool) -> Self {
        let state = if is_assumed { PauseState::Assumed(None) } else { PauseState::Watching };
        Self { least: Span::MAX, samples: 0, state }
    }

    const fn is_under_way(&self) -> bool {
        matches!(self.state, PauseState::Assumed(_) | PauseState::Paused(_))
    }

    /// Returns true while there is no growth.
    fn on_ack(&mut self, ack: &Ack) -> bool {
        match self.state {
            PauseState::Over => return false,
            PauseState::Assumed(None) => self.state = PauseState::Assumed(Some(ack.now)),
            PauseState::Assumed(Some(since)) | PauseState::Paused(since) if ack.newest_sent_at >= since => {
                self.state = PauseState::Over;
                return false;
            }
            _ => {}
        }
        if let Some(rtt) = ack.rtt_sample {
            self.least = self.least.min(rtt);
            self.samples += 1;
        }
        if self.samples == PAUSE_SAMPLES {
            let stands = self.least >= ack.rtt.min + threshold(ack.rtt.min);
            self.state = match self.state {
                PauseState::Assumed(Some(since)) | PauseState::Paused(since) if stands => {
                    PauseState::Paused(since)
                }
                PauseState::Paused(_) => PauseState::Over,
                _ if stands => PauseState::Paused(ack.now),
                _ => PauseState::Watching,
            };
            (self.least, self.samples) = (Span::MAX, 0);
        }
        self.is_under_way()
    }
}

/// An eighth more, between 4 and 16 ms: the same in HyStart, as deployed, and in RFC 9406 §4.2.
fn threshold(of: Span) -> Span {
    (of / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH)
}

#[derive(Clone, Copy, Debug)]
struct HyStart {
    round: Round,
    rounds: RoundStart,
    /// Late ones: the next ack begins a round.
    is_over: bool,
    /// Early ones: the round ends when so much is delivered.
    ends_at: Bytes,
    /// The smallest of the round's first samples.
    current_round_min: Span,
    samples: u32,
    /// HyStart is inactive below.
    low_window: Bytes,
}

impl Default for HyStart {
    fn default() -> Self {
        Self {
            round: Round::default(),
            rounds: RoundStart::Flight,
            is_over: false,
            ends_at: Bytes::ZERO,
            current_round_min: Span::MAX,
            samples: 0,
            low_window: Bytes::ZERO,
        }
    }
}

impl HyStart {
    /// Returns true if delay has grown. Each round is judged once, at its eighth sample.
    fn on_ack(&mut self, ack: &Ack) -> bool {
        let begins = match self.rounds {
            RoundStart::Flight => self.round.on_ack(ack),
            RoundStart::Early => ack.delivered >= self.ends_at,
            RoundStart::Late => {
                let begins = self.is_over;
                if begins {
                    self.round.restart(ack);
                }
                self.is_over = self.round.on_ack(ack);
                begins
            }
        };
        if begins {
            (self.current_round_min, self.samples) = (Span::MAX, 0);
            self.ends_at = ack.delivered + ack.in_flight;
        }
        let Some(rtt) = ack.rtt_sample else { return false };
        self.samples = self.samples.saturating_add(1);
        if self.samples <= N_RTT_SAMPLE {
            self.current_round_min = self.current_round_min.min(rtt);
        }
        self.samples == N_RTT_SAMPLE && self.current_round_min > ack.rtt.min + threshold(ack.rtt.min)
    }
}

/// HyStart is inactive below this many segments (Ha and Rhee 2008, §4).
const LOW_WINDOW: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::{MSS, acked};
    use crate::path::{RateSample, Rtt};

    /// Plays rounds of `per_round` acks with the given RTTs in milliseconds; returns the window.
    fn play(growth: &mut Growth, rounds: &[u64], per_round: u64) -> (Bytes, Decision) {
        let (mut window, mut delivered, mut verdict) = (MSS * 10, Bytes::ZERO, Decision::Continue);
        for &rtt in rounds {
            let sent_after = delivered;
            for _ in 0..per_round {
                delivered += MSS;
                let ack = Ack {
                    rtt_sample: Some(Span::from_millis(rtt)),
                    rtt: Rtt::default(),
                    delivered,
                    rate: RateSample { prior_delivered: sent_after, ..RateSample::default() },
                    ..acked(Time::ZERO, MSS)
                };
                verdict = growth.on_ack(&mut window, &ack);
            }
        }
        (window, verdict)
    }

    #[test]
    fn without_hystart_every_acked_byte_adds_one() {
        let mut growth = Growth::new(Exit::Loss);
        assert_eq!(play(&mut growth, &[50, 90, 200], 10), (MSS * 40, Decision::Continue));
    }

    #[test]
    fn delay_for_good_ends_slow_start_after_five_conservative_rounds() {
        let mut growth = Growth::new(Exit::HyStart);
        // 60 ms: the threshold is 7.5 ms; 70 ms is above it, found at the eighth sample.
        let (window, verdict) = play(&mut growth, &[60, 70], 8);
        assert_eq!((window, verdict), (Bytes::new(10_000 + 8_000 + 7_000 + 250), Decision::Continue));
        assert_eq!(growth.phase(), "CSS");
        let mut growth = Growth::new(Exit::HyStart);
        let (_, verdict) = play(&mut growth, &[60, 70, 70, 70, 70, 70], 8);
        assert_eq!(verdict, Decision::Continue, "four conservative rounds and the one that found the delay");
        let mut growth = Growth::new(Exit::HyStart);
        let (_, verdict) = play(&mut growth, &[60, 70, 70, 70, 70, 70, 70], 8);
        assert_eq!(verdict, Decision::Exit);
    }

    /// As [`play`], with a given smallest RTT of the connection.
    fn play_with_minimum(
        growth: &mut Growth,
        segments: u64,
        rounds: &[u64],
        per_round: u64,
    ) -> (Bytes, Decision) {
        let (mut window, mut delivered, mut smallest) = (MSS * segments, Bytes::ZERO, u64::MAX);
        for (round, &rtt) in rounds.iter().enumerate() {
            let sent_after = delivered;
            for packet in 0..per_round {
                delivered += MSS;
                smallest = smallest.min(rtt);
                let at = |round: usize| Time::from_millis(1_000 * round as u64 + packet);
                let ack = Ack {
                    newest_sent_at: at(round),
                    rtt_sample: Some(Span::from_millis(rtt)),
                    rtt: Rtt { min: Span::from_millis(smallest), ..Rtt::default() },
                    delivered,
                    rate: RateSample { prior_delivered: sent_after, ..RateSample::default() },
                    ..acked(at(round + 1), MSS)
                };
                if growth.on_ack(&mut window, &ack) == Decision::Exit {
                    return (window, Decision::Exit);
                }
            }
        }
        (window, Decision::Continue)
    }

    #[test]
    fn hystart_exits_at_the_eighth_sample_of_the_first_round_an_eighth_above_the_minimum_rtt() {
        for (rounds, expected) in [
            // 64 ms: the threshold is 8 ms, to be exceeded. Ten acks per round grow the window.
            (&[64, 72, 72][..], (MSS * 46, Decision::Continue)),
            (&[64, 73][..], (MSS * (16 + 10 + 7), Decision::Exit)),
            (&[64, 64, 73][..], (MSS * (16 + 20 + 7), Decision::Exit)),
            // 4 ms at least and 16 ms at most.
            (&[10, 14][..], (MSS * 36, Decision::Continue)),
            (&[10, 15][..], (MSS * 33, Decision::Exit)),
            (&[400, 417][..], (MSS * 33, Decision::Exit)),
        ] {
            let mut growth = Growth::until_delay(MSS, RoundStart::Flight);
            assert_eq!(play_with_minimum(&mut growth, 16, rounds, 10), expected, "{rounds:?}");
        }
        // One ack later in the first round, and one more in the second.
        let mut late = Growth::until_delay(MSS, RoundStart::Late);
        let found = play_with_minimum(&mut late, 16, &[64, 73], 10);
        assert_eq!(found, (MSS * (16 + 10 + 8), Decision::Exit));
    }

    #[test]
    fn growth_pauses_once_for_a_round_trip_from_the_fourth_sample_of_a_queue() {
        let paused = |fills, rounds: &[u64], per_round| {
            let mut growth = Growth::after_flight(fills);
            let (window, decision) = play_with_minimum(&mut growth, 10, rounds, per_round);
            assert_eq!(decision, Decision::Continue);
            (window.get() / MSS.get(), growth.phase())
        };
        // 64 ms: the threshold is 8 ms.
        assert_eq!(paused(false, &[64, 71, 71], 8), (34, SLOW_START));
        assert_eq!(paused(false, &[64, 72], 8), (10 + 8 + 3, "pause"));
        assert_eq!(paused(false, &[64, 72], 24), (10 + 24 + 3, "pause"));
        // HyStart++ has judged the second round too: a quarter for each ack after the pause.
        assert_eq!(paused(false, &[64, 72, 72], 24), (10 + 24 + 3 + 5, "CSS"));
        // Without a queue it is a quarter up to the eighth sample.
        assert_eq!(paused(false, &[64, 72, 64, 64], 24), (10 + 24 + 3 + 1 + 17 + 24, SLOW_START));
        // One sample of four without a queue is enough, as there is one with jitter.
        assert_eq!(paused(false, &[64, 90, 64, 90, 64, 90, 64], 2), (24, SLOW_START));
        // A flight that fills the path on record: no growth up to the fourth sample at least.
        assert_eq!(paused(true, &[64], 3), (10, "pause"));
        assert_eq!(paused(true, &[64], 8), (10 + 5, SLOW_START));
        assert_eq!(paused(true, &[64, 72], 8), (10 + 5 + 3, "pause"));
        assert_eq!(paused(true, &[64, 64, 64], 3), (10 + 3 + 3, SLOW_START));
    }

    #[test]
    fn a_pause_that_samples_end_does_not_come_again_unless_it_was_assumed() {
        let judged = |is_assumed, rtts: [u64; 3]| {
            let mut pause = Pause::new(is_assumed);
            let ack = |rtt| Ack {
                newest_sent_at: Time::ZERO,
                rtt_sample: Some(Span::from_millis(rtt)),
                rtt: Rtt { min: Span::from_millis(64), ..Rtt::default() },
                ..acked(Time::from_millis(100), MSS)
            };
            rtts.map(|rtt| (0..PAUSE_SAMPLES).fold(false, |_, _| pause.on_ack(&ack(rtt))))
        };
        assert_eq!(judged(false, [72, 64, 72]), [true, false, false]);
        assert_eq!(judged(true, [64, 72, 72]), [false, true, true]);
    }

    #[test]
    fn hystart_ignores_rounds_of_seven_samples_and_windows_of_fifteen_segments() {
        let mut growth = Growth::until_delay(MSS, RoundStart::Flight);
        assert_eq!(play_with_minimum(&mut growth, 16, &[64, 99, 99], 7).1, Decision::Continue);
        let mut growth = Growth::until_delay(MSS, RoundStart::Flight);
        assert_eq!(
            play_with_minimum(&mut growth, 0, &[64, 99], 8).1,
            Decision::Continue,
            "15 segments at the eighth"
        );
        let mut growth = Growth::until_delay(MSS, RoundStart::Flight);
        assert_eq!(play_with_minimum(&mut growth, 1, &[64, 99], 8).1, Decision::Exit);
    }

    #[test]
    fn a_round_of_hystart_begins_with_a_flight_or_an_ack_before_or_after() {
        let exit = |rounds| {
            let (mut growth, mut window) = (Growth::until_delay(MSS, rounds), MSS * 16);
            (1..40).find(|&number| {
                let rtt = Span::from_millis(if number < 11 { 64 } else { 73 });
                let ack = Ack {
                    rtt_sample: Some(rtt),
                    rtt: Rtt { min: Span::from_millis(64), ..Rtt::default() },
                    in_flight: MSS * 10,
                    delivered: MSS * number,
                    // Ten are in flight when it leaves.
                    rate: RateSample {
                        prior_delivered: MSS * number.saturating_sub(11),
                        ..RateSample::default()
                    },
                    ..acked(Time::ZERO, MSS)
                };
                growth.on_ack(&mut window, &ack) == Decision::Exit
            })
        };
        assert_eq!(exit(RoundStart::Early), Some(11 + 7));
        assert_eq!(exit(RoundStart::Flight), Some(12 + 7));
        // Each begins behind the one before.
        assert_eq!(exit(RoundStart::Late), Some(12 + 2 + 7));
    }

    /// s2n-quic's receiver acknowledges every tenth packet.
    #[test]
    fn hystart_counts_segments_of_the_window_however_many_an_ack_covers() {
        let (mut growth, mut window) = (Growth::until_delay(MSS, RoundStart::Flight), MSS * 16);
        let mut ack = acked(Time::ZERO, MSS * 10);
        ack.rtt.min = Span::from_millis(80);
        ack.delivered = MSS;
        let mut decide = || growth.on_ack(&mut window, &ack);
        assert_eq!([(); 7].map(|()| decide()), [Decision::Continue; 7]);
        assert_eq!(decide(), Decision::Exit, "100 ms is more than 80 + 10");
        assert_eq!(window, MSS * (16 + 70));
    }

    #[test]
    fn search_drains_the_window_and_hands_over_at_its_target() {
        let mut growth = Growth::new(Exit::Search);
        let (mut window, mut phases) = (MSS * 10, alloc::vec::Vec::new());
        for bin in 0..40 {
            let delivered = MSS * (20 * bin);
            let ack = Ack {
                delivered,
                in_flight: delivered.min(window.saturating_sub(MSS * 20)),
                ..acked(Time::from_millis(35 * bin), MSS * 20)
            };
            let decision = growth.on_ack(&mut window, &ack);
            phases.push(growth.phase());
            if decision == Decision::Exit {
                break;
            }
        }
        phases.dedup();
        assert_eq!(phases, [SLOW_START, "drain"]);
        assert!(window >= MSS * 59 && window <= MSS * 61, "three bins of 20 segments: {window}");
    }

    #[test]
    fn delay_that_goes_away_was_spurious() {
        let mut growth = Growth::new(Exit::HyStart);
        let _ = play(&mut growth, &[60, 70, 60], 8);
        assert_eq!(growth.phase(), "slow start");
    }
}
