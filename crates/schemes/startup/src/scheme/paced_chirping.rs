//! Send packets at ever smaller gaps, and take the gap at which their delay grows as the path's.
//!
//! Source (PC below): J. Misund, B. Briscoe, "Paced Chirping", 2019, by the first author's module
//! for Linux, `latest/module/paced_chirping.c` of JoakimMisund/PacedChirping (the behaviour in own
//! words). The gap of a chirp is found as in pathChirp. It looks for the rate without filling the
//! queue, for L4S first of all.
//!
//! ```text
//!  gap 2x, 1.9x, ... 0.25x of the estimate |<- guard ->| next chirp
//!  |  |  |  | | | |||                       |
//!  +-- delay grows from here: this gap -----+---> average, half old and half new
//!
//!  Chirping: 2 chirps in the first rounds, then twice as many in each
//!     |-- chirps of a round fill an RTT --> Settling: one BDP at the estimate --> hand over
//!     +-- loss or timeout ----------------> hand over, to be cut
//! ```
//!
//! The first two chirps have five packets, the next two eight, the others sixteen. A round ends
//! when the first of its chirps is acknowledged; the rest of its RTT is guards between chirps.
//!
//! # Deviations
//!
//! - PC knows the scheduled gaps. Here a packet's gap is that between the sending times that acks
//!   report, so that a packet that waited is judged by it.
//! - PC sends less data than a chirp needs at once; here it leaves as the beginning of one.
//! - PC counts a chirp's length without the gap after it, and of more than 16 chirps the sum would
//!   stay below an RTT. Here an average gap is counted, too.
//! - PC continues in DCTCP; here in the base controller. It does not answer marks, as PC does not.
//! - PC has a limit of development, gaps from 30 us to 10 ms. Here from 1 us, so that paths of more
//!   than 400 Mbit/s are found.
//!
//! # Limits
//!
//! Each packet needs an ack of its own ([`Requirements::every_ack`]). A path much slower than the
//! first gap has a queue until the average has followed, of 42 packets at 10 Mbit/s and 50 ms.

use headstart_units::{Bytes, Rate, Span, Time};

use super::{Requirements, Startup};
use crate::about::{About, Needs};
use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::event::{Ack, Congestion, Sent, Signal, Timeout};
use crate::prior::Prior;

mod chirp;

use chirp::{Analysis, LONGEST, Schedule};

/// The scheme's row of the catalogue.
pub const ABOUT: About = About {
    is_compared: false,
    not_over_udp: Some(
        "it judges packets by the delay of each; the stack's acknowledgements cover several at once",
    ),
    ..About::new("paced-chirping", Needs::Nothing, "the gap between packets at which their delay grows")
};

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// First estimate of the gap.
        gap: Span = Span::from_micros(200), in Span::from_micros(1)..=Span::from_millis(100), from "PC, init_paced_chirping";
        /// Growth of the number of chirps from one round to the next.
        gain: u32 = 2, in 1..=16, from "PC, dctcp_pc_initial_gain";
        /// The first gap of a chirp, in average gaps.
        geometry: u64 = 2, in 1..=3, from "PC, dctcp_pc_initial_geometry";
        /// Packets of rising delay from which on it counts.
        excursion: u32 = 5, in 1..=16, from "PC, dctcp_pc_L";
    }
}

/// Paced Chirping.
#[derive(Clone, Copy, Debug)]
pub struct PacedChirping {
    pub(super) params: Params,
    phase: Phase,
    mss: Bytes,
    srtt: Span,
    in_flight: Bytes,
    /// The estimate.
    gap: Span,
    round: Round,
    /// The chirp that is being sent.
    schedule: Schedule,
    /// The chirp whose acks arrive.
    analysis: Analysis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Chirping,
    /// All chirps of the round have left.
    Waiting,
    /// The gap is found; acks of so many bytes remain.
    Settling {
        left: Bytes,
    },
}

/// The chirps between two estimates of their number.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Chirps that it has.
    chirps: u32,
    /// Number of its first chirp.
    first: u32,
    sent: u32,
    /// The time that its chirps take, with an average gap after each.
    length: Span,
}

impl PacedChirping {
    /// [`PacedChirping`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            phase: Phase::Chirping,
            mss: Bytes::ZERO,
            srtt: Span::ZERO,
            in_flight: Bytes::ZERO,
            gap: params.gap,
            round: Round { chirps: 2, first: 0, sent: 0, length: Span::ZERO },
            schedule: Schedule::default(),
            analysis: Analysis::default(),
        }
    }

    /// The next chirp, unless the round has all of its own.
    fn begin_chirp(&mut self) {
        if self.round.sent >= self.round.chirps {
            self.phase = Phase::Waiting;
            return;
        }
        self.phase = Phase::Chirping;
        let share = self.srtt / u64::from(self.round.chirps);
        self.schedule = Schedule::new(self.schedule.number_of_next(), self.gap, self.params.geometry, share);
        self.round.sent += 1;
        self.round.length += self.schedule.length() + self.gap;
    }

    fn begin_round(&mut self) {
        if self.schedule.number_of_next() >= FIXED_CHIRPS && self.round.sent >= self.round.chirps {
            self.round.chirps = self.round.chirps.saturating_mul(self.params.gain).min(MOST_CHIRPS);
        }
        self.round =
            Round { first: self.schedule.number_of_next(), sent: 0, length: Span::ZERO, ..self.round };
        if self.phase == Phase::Waiting {
            self.begin_chirp();
        }
    }

    /// A packet that left at `sent_at` arrived after `rtt`.
    fn on_packet(&mut self, sent_at: Time, rtt: Span, min_rtt: Span) {
        let (number, is_first) = (self.analysis.number(), self.analysis.is_empty());
        if number >= self.schedule.number_of_next() {
            return;
        }
        if number >= 2 && number == self.round.first && is_first {
            self.begin_round();
        }
        let Some(gap) = self.analysis.add(sent_at, rtt, self.params.excursion) else { return };
        if let Some(gap) = gap {
            self.gap = (self.gap + gap.clamp(SMALLEST_GAP, LARGEST_GAP)) / 2;
        }
        if number == 0 {
            self.begin_round();
        }
        if self.srtt <= self.round.length {
            self.phase = Phase::Settling { left: self.path(min_rtt) };
        }
    }

    fn pace(&self) -> Rate {
        self.mss / self.gap.min(SETTLED_GAP)
    }

    /// The BDP of the estimate.
    fn path(&self, min_rtt: Span) -> Bytes {
        self.mss * (min_rtt.as_nanos() / self.gap.as_nanos().max(1))
    }
}

impl Startup for PacedChirping {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.mss = prior.mss;
        self.srtt = prior.handshake_rtt;
        self.begin_chirp();
        let flight = prior.mss * (2 * u64::from(chirp::packets(0)));
        FlightPlan { burst: prior.mss, flight, allowance: self.allowance() }
    }

    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        self.in_flight = sent.in_flight;
        if self.phase == Phase::Chirping && self.schedule.on_sent() {
            self.begin_chirp();
        }
    }

    fn on_ack(&mut self, ack: &Ack) -> Next {
        self.in_flight = ack.in_flight;
        self.srtt = ack.rtt.smoothed;
        if let Phase::Settling { left } = &mut self.phase {
            *left = left.saturating_sub(ack.newly_acked);
            if left.is_zero() {
                return Next::HandOver(HandOver::avoiding(ack.in_flight.max(self.mss * MINIMUM_SEGMENTS)));
            }
            return Next::Stay;
        }
        if let Some(rtt) = ack.rtt_sample {
            let packets = ack.newly_acked.get().div_ceil(self.mss.get().max(1)).min(u64::from(LONGEST));
            for _ in 0..packets {
                self.on_packet(ack.newest_sent_at, rtt, ack.rtt.min);
            }
        }
        Next::Stay
    }

    fn on_congestion(&mut self, signal: &Congestion) -> Next {
        match signal.signal {
            Signal::Loss => {
                let window = signal.prior_in_flight.max(self.mss * MINIMUM_SEGMENTS);
                Next::HandOver(HandOver::to_be_cut(window))
            }
            Signal::CongestionExperienced => Next::Stay,
        }
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Next {
        let window = timeout.prior_in_flight.max(self.mss * MINIMUM_SEGMENTS);
        Next::HandOver(HandOver::to_be_cut(window))
    }

    /// The schedule governs; the window only holds back what is not scheduled.
    #[inline]
    fn allowance(&self) -> Allowance {
        let (window, pace) = match self.phase {
            Phase::Chirping => {
                (self.in_flight + self.mss * u64::from(LONGEST), self.mss / self.schedule.gap())
            }
            Phase::Waiting => (self.in_flight.max(self.mss), self.mss / self.schedule.gap()),
            Phase::Settling { .. } => {
                (self.path(self.srtt).max(self.mss * SETTLED_SEGMENTS) * 2, self.pace())
            }
        };
        Allowance { window, pace: Some(pace.max(Rate::from_bytes_per_sec(1))) }
    }

    fn phase(&self) -> &'static str {
        match self.phase {
            Phase::Chirping => "Chirping",
            Phase::Waiting => "Waiting",
            Phase::Settling { .. } => "Settling",
        }
    }

    #[inline]
    fn needs_sent_events(&self) -> bool {
        true
    }

    fn requirements(&self) -> Requirements {
        Requirements { every_ack: true, ..Requirements::default() }
    }
}

/// PC: the number of chirps grows once so many have been scheduled.
const FIXED_CHIRPS: u32 = 6;
/// A bound of a round's chirps, far above any path's.
const MOST_CHIRPS: u32 = 1 << 20;
const SMALLEST_GAP: Span = Span::from_micros(1);
/// PC's bound.
const LARGEST_GAP: Span = Span::from_millis(10);
/// PC: the largest gap at which it settles.
const SETTLED_GAP: Span = Span::from_millis(5);
/// PC: half of the least window while it settles.
const SETTLED_SEGMENTS: u64 = 5;
/// RFC 5681 §3.1.
const MINIMUM_SEGMENTS: u64 = 2;

#[cfg(test)]
mod tests;
