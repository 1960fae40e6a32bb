//! What a router grants: from the recent use of its link, and from what it granted recently.
//!
//! Sources: QS §7.1 (Share, its Figure 7; Target, Figure 8), §7.2 ([`extreme`]), §8 (a limit on
//! requests); RFC 4782 §3.3 (what a router that does not agree does to the option).
//!
//! ```text
//!                      too many a second          nothing to grant
//!  request ----> limit ------> untouched   algorithm ------> untouched, zeroed or deleted
//!                  |                          ^   |
//!                  +--------------------------+   +------> rate lowered, TTL - 1, remembered
//! ```
//!
//! | algorithm | grants at most |
//! |---|---|
//! | Share | a share of bandwidth - use - recent grants, whatever the use |
//! | Target | a share of the bandwidth - use - recent grants |
//! | Extreme | as Target, of which each grant counts only until its flow's packets come |
//!
//! # Deviations
//!
//! - What was granted before counts for at least the memory's length, and for a sixteenth more at
//!   most ([`recent`]): exact forgetting would need a place for each grant.
//! - RFC 4782 App. D gives Target with the peak as an example, with the grants of two intervals of
//!   150 ms, and says that this is what the paper did: that is a memory of 150 ms in one bin
//!   ([`Params::memory_bins`]). The default is the paper's text.
//! - The text compares rates in bytes per second and grants any; RFC 4782 has four bits. Both are
//!   here ([`Granularity`]). What counts as granted is what is left after rounding, not what the
//!   algorithm said.
//! - A request that arrives with the rate zero was denied before: it is passed on and costs
//!   nothing.

pub mod extreme;
pub mod limiter;
pub mod recent;
pub mod utilisation;

use alloc::boxed::Box;

use headstart_units::{Bytes, Rate, Ratio, Span, Time};

use super::rate::EncodedRate;
use super::request::Request;

use extreme::Extreme;
use limiter::Limiter;
use recent::Recent;
use utilisation::{Measure, Meter};

/// How a router decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// QS Figure 7.
    Share {
        /// `ALLOC_RATE`.
        alloc_rate: Ratio,
    },
    /// QS Figure 8.
    Target {
        /// `qs_thresh`.
        threshold: Ratio,
    },
    /// QS §7.2: Target with a memory of each flow.
    Extreme {
        /// `qs_thresh`.
        threshold: Ratio,
        /// What is kept of flows and hosts.
        tracking: extreme::Params,
    },
}

/// How finely a router can say what it grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// In the four bits of RFC 4782 §3.1, rounded down.
    Encoded,
    /// To the byte per second, as in the paper.
    Exact,
}

crate::words!(Granularity { Encoded = "encoded", Exact = "exact" });

/// What a router that does not agree does to the option (RFC 4782 §3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// Nothing: the TTLs tell.
    Ignore,
    /// Sets rate, TTL and nonce to zero.
    Zero,
    /// Takes it out of the packet.
    Delete,
}

/// Parameters of the scheme, with the source of each default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// The link's bandwidth.
    pub bandwidth: Rate,
    /// How it decides. Target with 90 %: QS §7.1, Figure 10.
    pub algorithm: Algorithm,
    /// How the link's use is measured. The peak of five times 150 ms: QS §7.1.
    pub measure: Measure,
    /// How long a grant counts (`recent_qs_approvals`). 150 ms: QS §7.1.
    pub memory: Span,
    /// How finely that is kept: what was granted counts for one bin more than the memory at most.
    /// 16: ours; 1: ns-2's router.
    pub memory_bins: u8,
    /// How finely it can say what it grants. Four bits: RFC 4782.
    pub granularity: Granularity,
    /// What it does to a request that it denies. Zero, which spares the routers behind it the work:
    /// RFC 4782 §3.3.
    pub denial: Denial,
    /// Requests a second beyond which further ones are not looked at (QS §8). None: the paper names
    /// no number.
    pub requests_per_second: Option<u32>,
}

impl Params {
    /// The defaults before a link of this bandwidth.
    #[must_use]
    pub const fn new(bandwidth: Rate) -> Self {
        Self {
            bandwidth,
            algorithm: Algorithm::Target { threshold: Ratio::percent(90) },
            measure: Measure::Peak { interval: Span::from_millis(150), intervals: 5 },
            memory: Span::from_millis(150),
            memory_bins: recent::MOST_BINS,
            granularity: Granularity::Encoded,
            denial: Denial::Zero,
            requests_per_second: None,
        }
    }
}

/// What became of a request at a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Agreed to this much; the request says so.
    Approved(Rate),
    /// The request goes on as it came.
    Untouched,
    /// Rate, TTL and nonce are zero.
    Zeroed,
    /// The request is to be taken out of the packet.
    Delete,
}

/// What a router counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that arrived with a rate.
    pub requests: u64,
    /// Those of them agreed to, in full or in part.
    pub approved: u64,
    /// Those of them beyond the limit on requests.
    pub beyond_limit: u64,
    /// The rates granted, added up, in bytes per second.
    pub granted: u64,
}

/// A router's Quick-Start side, for one output link.
#[derive(Clone, Debug)]
pub struct Router {
    params: Params,
    meter: Meter,
    recent: Recent,
    limiter: Option<Limiter>,
    /// Boxed: the others are a third of its size.
    extreme: Option<Box<Extreme>>,
    counts: Counts,
}

impl Router {
    /// Before an idle link.
    #[must_use]
    pub fn new(params: Params) -> Self {
        let extreme = match params.algorithm {
            Algorithm::Extreme { tracking, .. } => Some(Box::new(Extreme::new(tracking, params.memory))),
            Algorithm::Share { .. } | Algorithm::Target { .. } => None,
        };
        Self {
            params,
            meter: Meter::new(params.measure),
            recent: Recent::new(params.memory, params.memory_bins),
            limiter: params.requests_per_second.map(Limiter::new),
            extreme,
            counts: Counts::default(),
        }
    }

    /// A packet of `flow` was taken by the link: it will be sent, or is.
    #[inline]
    pub fn on_packet(&mut self, now: Time, size: Bytes, flow: u64) {
        self.meter.on_packet(now, size / self.params.bandwidth);
        if let Some(extreme) = &mut self.extreme {
            extreme.on_packet(now, size, flow);
        }
    }

    /// A request of `flow`, sent by `host`; `random` is for the nonce.
    pub fn on_request(
        &mut self,
        now: Time,
        request: &mut Request,
        flow: u64,
        host: u32,
        random: u32,
    ) -> Verdict {
        if request.rate.is_zero() {
            return Verdict::Untouched;
        }
        self.counts.requests += 1;
        if self.limiter.as_mut().is_some_and(|limiter| !limiter.admits(now)) {
            self.counts.beyond_limit += 1;
            return Verdict::Untouched;
        }
        let granted = self.grant(now, request.rate, flow, host);
        if granted.is_zero() {
            return match self.params.denial {
                Denial::Ignore => Verdict::Untouched,
                Denial::Zero => {
                    request.deny();
                    Verdict::Zeroed
                }
                Denial::Delete => Verdict::Delete,
            };
        }
        self.counts.approved += 1;
        self.counts.granted += granted.as_bytes_per_sec();
        request.approve(granted, random);
        Verdict::Approved(granted)
    }

    /// How much is granted, as the granularity can say it; it counts from now on.
    fn grant(&mut self, now: Time, wanted: Rate, flow: u64, host: u32) -> Rate {
        let bandwidth = self.params.bandwidth;
        let used = part(bandwidth, self.meter.utilisation(now));
        let (granted, counts_here) = match (self.params.algorithm, &mut self.extreme) {
            (Algorithm::Share { alloc_rate }, _) => {
                let available = minus(minus(bandwidth, used), self.recent.sum(now));
                (wanted.min(available * alloc_rate), true)
            }
            (Algorithm::Target { threshold } | Algorithm::Extreme { threshold, .. }, None) => {
                (wanted.min(minus(minus(bandwidth * threshold, used), self.recent.sum(now))), true)
            }
            (Algorithm::Target { threshold } | Algorithm::Extreme { threshold, .. }, Some(extreme)) => {
                let free = minus(bandwidth * threshold, used);
                let granted = self.params.granularity.round(extreme.grant(now, wanted, free, host));
                // A flow for which there is no place is remembered as Target would.
                let free = minus(free, self.recent.sum(now));
                let granted = granted.min(self.params.granularity.round(minus(free, extreme.promised())));
                (granted, !extreme.remember(now, granted, flow, host))
            }
        };
        let granted = self.params.granularity.round(granted);
        if counts_here {
            self.recent.add(now, granted);
        }
        granted
    }

    /// What was counted.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The link's use as the router sees it, in parts of 10^9.
    pub fn utilisation(&mut self, now: Time) -> u64 {
        self.meter.utilisation(now)
    }

    /// What is promised and still expected.
    pub fn outstanding(&mut self, now: Time) -> Rate {
        let tracked = self.extreme.as_mut().map_or(Rate::ZERO, |extreme| extreme.outstanding(now));
        sum(self.recent.sum(now), tracked)
    }

    /// Flows and hosts that are remembered one by one.
    #[must_use]
    pub fn tracked(&self) -> (usize, usize) {
        self.extreme.as_ref().map_or((0, 0), |extreme| extreme.tracked())
    }

    /// Most flows and hosts that were remembered at the same time.
    #[must_use]
    pub fn most_tracked(&self) -> (usize, usize) {
        self.extreme.as_ref().map_or((0, 0), |extreme| extreme.most_tracked())
    }

    /// The score of a host (QS Equation 4) in parts of 10^9; the full score for hosts that are not
    /// remembered.
    #[must_use]
    pub fn score(&self, host: u32) -> u64 {
        self.extreme.as_ref().map_or(utilisation::FULL, |extreme| extreme.score(host))
    }

    /// Bytes of state, what is remembered of flows and hosts included (without what the allocator
    /// adds).
    #[must_use]
    pub fn state_bytes(&self) -> usize {
        size_of::<Self>()
            + self.meter.heap_bytes()
            + self.extreme.as_ref().map_or(0, |extreme| size_of::<Extreme>() + extreme.heap_bytes())
    }
}

impl Granularity {
    /// What a router can say that grants `rate`: not more.
    fn round(self, rate: Rate) -> Rate {
        match self {
            Self::Encoded => EncodedRate::at_most(rate).rate(),
            Self::Exact => rate,
        }
    }

    /// What a sender can say that wants `rate`: not less, if there is such a code.
    #[must_use]
    pub fn round_up(self, rate: Rate) -> Rate {
        match self {
            Self::Encoded => EncodedRate::at_least(rate).rate(),
            Self::Exact => rate,
        }
    }
}

/// The difference, or nothing.
fn minus(rate: Rate, other: Rate) -> Rate {
    Rate::from_bytes_per_sec(rate.as_bytes_per_sec().saturating_sub(other.as_bytes_per_sec()))
}

fn sum(rate: Rate, other: Rate) -> Rate {
    Rate::from_bytes_per_sec(rate.as_bytes_per_sec().saturating_add(other.as_bytes_per_sec()))
}

/// `parts` of 10^9 of a rate, rounded up: what is used is never made smaller.
fn part(rate: Rate, parts: u64) -> Rate {
    let wide = u128::from(rate.as_bytes_per_sec()) * u128::from(parts);
    Rate::from_bytes_per_sec(wide.div_ceil(u128::from(utilisation::FULL)) as u64)
}

#[cfg(test)]
mod tests;
