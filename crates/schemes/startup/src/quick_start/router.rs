//! A router's decision on a request, from the recent use of its link and its recent grants.
//!
//! Sources: QS §7.1 (Share, its Figure 7; Target, Figure 8), §7.2 ([`extreme`]), §8 (a limit on
//! requests); RFC 4782 §3.3 (handling of the option by a router that does not approve).
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
//! | Extreme | as Target, with each grant counted only until its flow's packets arrive |
//!
//! # Deviations
//!
//! - Earlier grants count for at least the memory's length, and for a sixteenth more at most
//!   ([`recent`]): exact expiry would need an entry for each grant.
//! - RFC 4782 App. D gives Target with the peak as an example, with the grants of two intervals of
//!   150 ms, and attributes that to the paper. It is a memory of 150 ms in one bin
//!   ([`Params::memory_bins`]). The default is the paper's text.
//! - The text compares rates in bytes per second and grants any; RFC 4782 has four bits. Both are
//!   here ([`Granularity`]). The rounded rate counts as granted.
//! - A request that arrives with the rate zero was denied before: it is only forwarded.

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

/// A router's algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// A share of the free capacity (QS Figure 7).
    Share {
        /// Share of the free capacity that a request gets, `ALLOC_RATE`.
        alloc_rate: Ratio,
    },
    /// All up to a share of the link (QS Figure 8).
    Target {
        /// Share of the link up to which it grants, `qs_thresh`.
        threshold: Ratio,
    },
    /// QS §7.2: Target with a memory of each flow.
    Extreme {
        /// Share of the link up to which it grants, `qs_thresh`.
        threshold: Ratio,
        /// State kept of flows and hosts.
        tracking: extreme::Params,
    },
}

/// Resolution of an approved rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// In the four bits of RFC 4782 §3.1, rounded down.
    Encoded,
    /// To the byte per second, as in the paper.
    Exact,
}

crate::words!(Granularity { Encoded = "encoded", Exact = "exact" });

/// Handling of the option by a router that does not approve (RFC 4782 §3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// Leaves it unchanged: the TTLs show that it did not approve.
    Ignore,
    /// Sets rate, TTL and nonce to zero.
    Zero,
    /// Removes it from the packet.
    Delete,
}

/// Parameters of a router, with the source of each default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// The link's bandwidth.
    pub bandwidth: Rate,
    /// The algorithm. Target with 90 %: QS §7.1, Figure 10.
    pub algorithm: Algorithm,
    /// Measurement of the link's use. The peak of five times 150 ms: QS §7.1.
    pub measure: Measure,
    /// Time for which a grant counts (`recent_qs_approvals`). 150 ms: QS §7.1.
    pub memory: Span,
    /// Bins of that memory: a grant counts for at most one bin longer. 16: ours; 1: ns-2's router.
    pub memory_bins: u8,
    /// Resolution of an approved rate. Four bits: RFC 4782.
    pub granularity: Granularity,
    /// Handling of a denied request. Zero, which spares later routers work: RFC 4782 §3.3.
    pub denial: Denial,
    /// Limit on processed requests per second (QS §8). None: the paper gives no number.
    pub requests_per_second: Option<u32>,
}

impl Params {
    /// The defaults for a link of this bandwidth.
    #[must_use]
    pub const fn new(bandwidth: Rate) -> Self {
        Self {
            bandwidth,
            algorithm: Algorithm::Target { threshold: Ratio::percent(90) },
            measure: Measure::Peak { interval: Span::from_millis(150), intervals: 5 },
            memory: Span::from_millis(150),
            memory_bins: recent::MAX_BINS,
            granularity: Granularity::Encoded,
            denial: Denial::Zero,
            requests_per_second: None,
        }
    }
}

/// Result of a request at a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestResult {
    /// Approved at this rate, which the request now carries.
    Approved(Rate),
    /// The request is forwarded unchanged.
    Untouched,
    /// Rate, TTL and nonce are zero.
    Zeroed,
    /// The request is to be removed from the packet.
    Delete,
}

/// Counters of a router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that arrived with a rate.
    pub requests: u64,
    /// Requests approved, in full or in part.
    pub approved: u64,
    /// Requests above the limit.
    pub beyond_limit: u64,
    /// Sum of the granted rates, in bytes per second.
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
    /// A router at an idle link.
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

    /// A packet of `flow` was accepted by the link.
    #[inline]
    pub fn on_packet(&mut self, now: Time, size: Bytes, flow: u64) {
        self.meter.on_packet(now, size / self.params.bandwidth);
        if let Some(extreme) = &mut self.extreme {
            extreme.on_packet(now, size, flow);
        }
    }

    /// Processes a request of `flow`, sent by `host`; `random` supplies new fields of the nonce.
    pub fn on_request(
        &mut self,
        now: Time,
        request: &mut Request,
        flow: u64,
        host: u32,
        random: u32,
    ) -> RequestResult {
        if request.rate.is_zero() {
            return RequestResult::Untouched;
        }
        self.counts.requests += 1;
        if self.limiter.as_mut().is_some_and(|limiter| !limiter.admits(now)) {
            self.counts.beyond_limit += 1;
            return RequestResult::Untouched;
        }
        let granted = self.grant(now, request.rate, flow, host);
        if granted.is_zero() {
            return match self.params.denial {
                Denial::Ignore => RequestResult::Untouched,
                Denial::Zero => {
                    request.deny();
                    RequestResult::Zeroed
                }
                Denial::Delete => RequestResult::Delete,
            };
        }
        self.counts.approved += 1;
        self.counts.granted += granted.as_bytes_per_sec();
        request.approve(granted, random);
        RequestResult::Approved(granted)
    }

    /// The granted rate, rounded to the granularity; it counts from now on.
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
                // Without a free entry the flow is counted as in Target.
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

    /// Counters of requests and grants.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The link's measured use, in parts of 10^9.
    pub fn utilisation(&mut self, now: Time) -> u64 {
        self.meter.utilisation(now)
    }

    /// The sum of grants that still count.
    pub fn outstanding(&mut self, now: Time) -> Rate {
        let tracked = self.extreme.as_mut().map_or(Rate::ZERO, |extreme| extreme.outstanding(now));
        sum(self.recent.sum(now), tracked)
    }

    /// Numbers of flows and hosts tracked individually.
    #[must_use]
    pub fn tracked(&self) -> (usize, usize) {
        self.extreme.as_ref().map_or((0, 0), |extreme| extreme.tracked())
    }

    /// Largest numbers of flows and hosts tracked at the same time.
    #[must_use]
    pub fn most_tracked(&self) -> (usize, usize) {
        self.extreme.as_ref().map_or((0, 0), |extreme| extreme.most_tracked())
    }

    /// The score of a host (QS Equation 4) in parts of 10^9; all of them if it is not tracked.
    #[must_use]
    pub fn score(&self, host: u32) -> u64 {
        self.extreme.as_ref().map_or(utilisation::FULL, |extreme| extreme.score(host))
    }

    /// Bytes of state, tracked flows and hosts included (without allocator overhead).
    #[must_use]
    pub fn state_bytes(&self) -> usize {
        size_of::<Self>()
            + self.meter.heap_bytes()
            + self.extreme.as_ref().map_or(0, |extreme| size_of::<Extreme>() + extreme.heap_bytes())
    }
}

impl Granularity {
    /// The largest representable rate that is not above `rate`, for a router.
    fn round(self, rate: Rate) -> Rate {
        match self {
            Self::Encoded => EncodedRate::at_most(rate).rate(),
            Self::Exact => rate,
        }
    }

    /// The smallest representable rate that is not below `rate`, if there is one, for a sender.
    #[must_use]
    pub fn round_up(self, rate: Rate) -> Rate {
        match self {
            Self::Encoded => EncodedRate::at_least(rate).rate(),
            Self::Exact => rate,
        }
    }
}

/// The difference, or zero.
fn minus(rate: Rate, other: Rate) -> Rate {
    Rate::from_bytes_per_sec(rate.as_bytes_per_sec().saturating_sub(other.as_bytes_per_sec()))
}

fn sum(rate: Rate, other: Rate) -> Rate {
    Rate::from_bytes_per_sec(rate.as_bytes_per_sec().saturating_add(other.as_bytes_per_sec()))
}

/// `parts` of 10^9 of a rate, rounded up: use is never underestimated.
fn part(rate: Rate, parts: u64) -> Rate {
    let wide = u128::from(rate.as_bytes_per_sec()) * u128::from(parts);
    Rate::from_bytes_per_sec(wide.div_ceil(u128::from(utilisation::FULL)) as u64)
}

#[cfg(test)]
mod tests;
