//! Probe a rate with a short train of packets; adopt it if the train built no queue.
//!
//! Source (PCP below): T. Anderson, A. Collins, A. Krishnamurthy, J. Zahorjan, "PCP: Efficient
//! Endpoint Congestion Control", NSDI 2006. PCP never hands over.
//!
//! ```text
//!                whole train left         delay flat or falling: base = probed rate,
//!                                                                increase doubles
//!  +-> Probing -----------------> Judging ------------------------------------------------+
//!  |      |                          | delay rises, or loss of a packet of the train:     |
//!  |      +-------- loss ----------> |                           increase halves          |
//!  |                                 +---- increase above its minimum --------------------+
//!  |                                 | at its minimum                                     |
//!  |                                 v                                                    |
//!  |       so many round trips    Waiting                                                 |
//!  +---------------------------------+----------------------------------------------------+
//! ```
//!
//! | phase | pace |
//! |---|---|
//! | Probing | base rate + increase |
//! | Judging, Waiting | base rate |
//!
//! Data leaves at the base rate, at least one segment for each round trip. Once in two round trips
//! a queue that persisted for a whole round trip lowers the base rate by as much as drains it
//! (§3.2, *rate compensation*). Where that does not help for several round trips, a TCP flow is
//! assumed to fill the queue, and the compensation is a tenth (§3.5, *tit for tat*). A timeout
//! halves the base rate.
//!
//! # Deviations
//!
//! - The text of §3.2, of the end of §3.1 and of the end of §3.3 was not available. The rules for
//!   their part are ours: the size of the compensation, the meaning of *consistent with flat*,
//!   back-off and minimum.
//! - Probes carry *limited payload* (Table 2) on top of the base traffic. Here a train is five full
//!   segments of the flow's own data, sent at base rate + increase instead of the base rate: the
//!   load is the same. At the first rate, two segments per RTT (§3.3), the first train takes two.
//! - §3.1 accepts with a probability that depends on the variance. There is no random source here:
//!   the train is accepted if the fitted slope is within one standard error of zero.
//! - §3.1 measures one-way delay by timestamps of the receiver; here it is the RTT of each ack, so
//!   a queue on the return path counts too.
//! - A train sent below the probed rate, because the application had no more data, is evidence of
//!   its own rate only.
//! - §3.3 *binary search* is the doubling and halving of the increase that the same section
//!   describes: a refused probe is followed by the middle between it and the base rate. No refused
//!   rate is remembered.
//! - Back-off spreads probes out (Table 2) but draws no random times here: no random source.
//! - Loss: §3 does not need it. Once for each episode the base rate is halved, as after a timeout.
//! - §3.4 remembers base rates; a record's delivery rate is used. The record of how well earlier
//!   predictions held is not kept.
//!
//! # Limits
//!
//! Each packet of a train needs an ack of its own. With delayed acks the receiver's timer looks
//! like a queue: the scheme requires an ack per segment ([`Requirements::every_ack`]);
//! over a stack without that it is slower than PCP.

mod queue;
mod train;

use headstart_units::{Bytes, Rate, Ratio, Span};

use super::{Requirements, Startup};
use crate::about::{About, Needs};
use crate::allowance::{Allowance, FlightPlan, Next};
use crate::event::{Ack, Congestion, Sent, Signal, Timeout};
use crate::path::Round;
use crate::prior::Prior;

use queue::Queue;
use train::Train;

/// The scheme's row of the catalogue.
pub const ABOUT: About = About {
    not_over_udp: Some(
        "it judges trains of packets by the delay of each; the stack's acknowledgements cover several at once",
    ),
    ..About::new("pcp", Needs::Nothing, "paced probes of the path, then the probed rate")
        .not_over_tcp("it stays in charge for ever: select the kernel's own control instead")
};

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// Packets in a train.
        train: u64 = 5, in 2..=1000, from "ours";
        /// The share of a remembered rate that is probed first.
        history_share: Ratio = Ratio::new(1, 3), in Ratio::percent(1)..=Ratio::percent(100), from "PCP §3.4";
        /// Delay increases along a train below this are ignored.
        resolution: Span = Span::from_micros(1), in Span::ZERO..=Span::from_secs(1), from "the unit of the measurement";
        /// Standing queues below this share of the minimum RTT are not compensated.
        queue_slack: Ratio = Ratio::new(1, 8), in Ratio::percent(0)..=Ratio::percent(1000), from "ours";
        /// Ineffective compensations after which a competing TCP flow is assumed.
        patience: u32 = 3, in 1..=1000, from "PCP §3.5 (\"several\")";
        /// The share of the compensation that remains then.
        tit_for_tat: Ratio = Ratio::new(1, 10), in Ratio::percent(0)..=Ratio::percent(100), from "PCP §3.5";
        /// The longest wait between two probes, in round trips.
        max_wait: u64 = 32, in 1..=10_000, from "ours";
    }
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The train is being sent; `left` packets remain.
    Probing { train: Train, left: u64 },
    /// The train has been sent; the ack of its last packet is awaited.
    Judging { train: Train },
    /// Round trips until the next probe.
    Waiting { rounds: u64 },
}

/// PCP.
#[derive(Clone, Copy, Debug)]
pub struct Pcp {
    pub(super) params: Params,
    phase: Phase,
    mss: Bytes,
    srtt: Span,
    /// Base rate; zero until a probe was accepted.
    base: Rate,
    /// Rate that the next probe adds to the base rate.
    increase: Rate,
    /// Round trips to wait after the next refusal at the smallest increase.
    wait: u64,
    round: Round,
    queue: Queue,
}

impl Pcp {
    /// [`Pcp`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            phase: Phase::Waiting { rounds: 1 },
            mss: Bytes::ZERO,
            srtt: Span::ZERO,
            base: Rate::ZERO,
            increase: Rate::ZERO,
            wait: 1,
            round: Round::default(),
            queue: Queue::default(),
        }
    }

    /// One segment for each round trip: the least base rate, and the least increase worth a probe.
    fn min_window(&self) -> Rate {
        (self.mss / self.srtt).max(Rate::from_bytes_per_sec(1))
    }

    fn base_rate(&self) -> Rate {
        self.base.max(self.min_window())
    }

    fn begin_probing(&mut self) {
        let rate = sum(self.base, self.increase).max(self.min_window());
        self.phase = Phase::Probing { train: Train::new(rate), left: self.params.train };
    }

    /// The train is complete.
    fn judge(&mut self, train: &Train) {
        if train.trend().count() < 2 {
            self.begin_probing();
        } else if train.trend().is_flat_or_falling(self.params.resolution) {
            // PCP §3.1, *direct jump*, to the rate that the train has shown.
            self.base = self.base.max(train.shown());
            self.increase = self.increase * 2;
            self.wait = 1;
            self.begin_probing();
        } else {
            self.refuse();
        }
    }

    fn refuse(&mut self) {
        let (halved, least) = (self.increase * Ratio::new(1, 2), self.min_window());
        self.increase = halved.max(least);
        if halved < least {
            self.phase = Phase::Waiting { rounds: self.wait };
            self.wait = (self.wait * 2).min(self.params.max_wait);
        } else {
            self.begin_probing();
        }
    }

    /// The train, once its first packet has left.
    fn train(&mut self) -> Option<&mut Train> {
        match &mut self.phase {
            Phase::Probing { train, .. } | Phase::Judging { train } if train.has_left() => Some(train),
            _ => None,
        }
    }

    fn on_round(&mut self, min_rtt: Span) {
        self.base = self.queue.on_round(&self.params, self.base, min_rtt);
        if let Phase::Waiting { rounds } = &mut self.phase {
            *rounds = rounds.saturating_sub(1);
            if *rounds == 0 {
                self.begin_probing();
            }
        }
    }
}

impl Startup for Pcp {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.mss = prior.mss;
        self.srtt = prior.handshake_rtt;
        // PCP §3.4, or else §3.3: one segment in half of the RTT.
        self.increase = match prior.history {
            Some(known) => known.record.btl_bw * self.params.history_share,
            None => prior.mss * 2 / prior.handshake_rtt,
        }
        .max(self.min_window());
        self.begin_probing();
        FlightPlan { burst: prior.mss, flight: prior.mss * self.params.train, allowance: self.allowance() }
    }

    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        let Phase::Probing { train, left } = &mut self.phase else { return };
        train.on_sent(sent);
        *left = left.saturating_sub(1);
        if *left == 0 || sent.is_app_limited {
            self.phase = Phase::Judging { train: *train };
        }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) -> Next {
        if !ack.rtt.smoothed.is_zero() {
            self.srtt = ack.rtt.smoothed;
        }
        if self.round.on_ack(ack) {
            self.on_round(ack.rtt.min);
        }
        if let Some(rtt) = ack.rtt_sample {
            self.queue.on_sample(rtt);
            if let Some(train) = self.train() {
                train.on_sample(ack.newest_sent_at, rtt);
            }
        }
        if let Phase::Judging { train } = self.phase
            && train.has_arrived(ack.newest_sent_at)
        {
            self.judge(&train);
        }
        Next::Stay
    }

    fn on_congestion(&mut self, signal: &Congestion) -> Next {
        if signal.opens_episode {
            self.base = self.base * Ratio::new(1, 2);
        }
        let is_mark = signal.signal == Signal::CongestionExperienced;
        if self.train().is_some_and(|train| is_mark || train.has_begun(signal.newest_lost_sent_at)) {
            self.refuse();
        }
        Next::Stay
    }

    fn on_timeout(&mut self, _: &Timeout) -> Next {
        self.base = self.base * Ratio::new(1, 2);
        self.increase = (self.increase * Ratio::new(1, 2)).max(self.min_window());
        self.phase = Phase::Waiting { rounds: 1 };
        Next::Stay
    }

    /// The pace governs; the window only stops a sender that receives no acks.
    #[inline]
    fn allowance(&self) -> Allowance {
        let pace = match self.phase {
            Phase::Probing { train, .. } => train.rate(),
            Phase::Judging { .. } | Phase::Waiting { .. } => self.base_rate(),
        };
        Allowance { window: pace * (self.srtt * 2) + self.mss * self.params.train, pace: Some(pace) }
    }

    fn is_slow_start(&self) -> bool {
        false
    }

    fn phase(&self) -> &'static str {
        match self.phase {
            Phase::Probing { .. } => "Probing",
            Phase::Judging { .. } => "Judging",
            Phase::Waiting { .. } => "Waiting",
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

fn sum(a: Rate, b: Rate) -> Rate {
    Rate::from_bytes_per_sec(a.as_bytes_per_sec().saturating_add(b.as_bytes_per_sec()))
}

#[cfg(test)]
mod tests;
