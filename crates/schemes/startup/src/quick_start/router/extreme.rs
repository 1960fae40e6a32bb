//! Extreme Quick-Start: tracks each grant until it is used, and the share that each host uses.
//!
//! Source: QS §7.2 and §8 with its Equation 4.
//!
//! ```text
//!               first packet of the flow          5/4 RTT later, or all arrived
//!  granted ------------------------------> arriving -----------------> settled: score of the host
//!      |                                                                  ^
//!      +------- no packet within the interval ----------------------------+
//! ```
//!
//! A grant counts in full until the flow's first packet arrives. The time until then is the flow's
//! RTT at the router, so rate x RTT bytes are expected. Each byte that arrives reduces the grant by
//! its share, since the meter counts it from then on. After 5/4 RTT the rest is given up.
//!
//! # Deviations
//!
//! - QS assumes that "the Extreme Quick-Start router implements a reliable method for evaluating
//!   RTTs": this one is it.
//! - Fairness is only sketched: "reduce the rate approved for individual requests". Here: if a
//!   request of the last memory was granted nothing, none gets more than the free rate over the
//!   number of requests in that time.
//! - Equation 4 cannot recover from zero: a host at score zero is granted nothing, so it cannot use
//!   a grant and its score never rises. A reduced request is never less than [`Params::least`]
//!   (unless less was requested): one flow that uses it raises the score. A floor under the score
//!   instead leaves an attacker whose request is many times the link as strong.
//! - The measurement interval of 1.5 s is for flows that never send; for others the end of the
//!   Quick-Start phase is known.
//!
//! # Limits
//!
//! At most [`Params::flows`] flows and [`Params::hosts`] hosts are tracked. A further grant is
//! counted as in Target; the least recently used score is evicted first, so a flood of spoofed
//! hosts evicts scores.

use alloc::collections::{BTreeMap, BTreeSet};

use headstart_units::{Bytes, Rate, Ratio, Span, Time};

use super::super::rate::EncodedRate;
use super::recent::{self, Recent};
use super::utilisation::FULL;
use super::{minus, part};

/// Parameters of the tracking, with the source of each default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Flows tracked at the same time. 1024: ours.
    pub flows: usize,
    /// Hosts tracked at the same time. 4096: ours.
    pub hosts: usize,
    /// Time after which a flow without packets is given up. 1.5 s: QS §8.
    pub interval: Span,
    /// Reduce a host's grants by its score. On: QS §8.
    pub scores: bool,
    /// The gain w of Equation 4. 0.2: QS §8.
    pub gain: Ratio,
    /// Lower bound of a request reduced by the score. 80 kbit/s, RFC 4782's least rate: ours.
    pub least: Rate,
    /// Limit each request to an equal share while others are granted nothing. On: QS §7.2.
    pub fair: bool,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            flows: 1024,
            hosts: 4096,
            interval: Span::from_millis(1_500),
            scores: true,
            gain: Ratio::new(1, 5),
            least: EncodedRate::from_code(1).rate(),
            fair: true,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    host: u32,
    granted: Rate,
    approved_at: Time,
    /// rate x RTT in bytes; known from the first packet on.
    expected: Option<Bytes>,
    arrived: Bytes,
    /// The part of the grant that still counts.
    outstanding: Rate,
    due_at: Time,
}

/// State of flows and hosts.
#[derive(Clone, Debug)]
pub struct Extreme {
    params: Params,
    flows: BTreeMap<u64, Flow>,
    /// Time at which each flow is settled.
    due: BTreeSet<(Time, u64)>,
    promised: u64,
    /// Score in parts of 10^9, and the count at which it was last used.
    scores: BTreeMap<u32, (u64, u64)>,
    hosts_by_use: BTreeMap<u64, u32>,
    use_count: u64,
    /// Requests within the last memory, and those granted nothing.
    recent_requests: Recent,
    denied_requests: Recent,
    /// Largest numbers of flows and hosts tracked at the same time.
    most: (usize, usize),
}

/// One request, in sums of rates.
const ONE: Rate = Rate::from_bytes_per_sec(1);

impl Extreme {
    /// A state without flows and hosts.
    #[must_use]
    pub fn new(params: Params, memory: Span) -> Self {
        Self {
            params,
            flows: BTreeMap::new(),
            due: BTreeSet::new(),
            promised: 0,
            scores: BTreeMap::new(),
            hosts_by_use: BTreeMap::new(),
            use_count: 0,
            recent_requests: Recent::new(memory, recent::MAX_BINS),
            denied_requests: Recent::new(memory, recent::MAX_BINS),
            most: (0, 0),
        }
    }

    /// A packet passed. Nearly all belong to flows that are not tracked.
    #[inline]
    pub fn on_packet(&mut self, now: Time, size: Bytes, key: u64) {
        if let Some(flow) = self.flows.get_mut(&key) {
            let due_before = flow.due_at;
            if flow.approved_at == now && flow.expected.is_none() {
                // The packet that carried the request.
                return;
            }
            if flow.expected.is_none() {
                let rtt = now.since(flow.approved_at);
                flow.expected = Some((flow.granted * rtt).max(Bytes::new(1)));
                flow.due_at = now + rtt * ARRIVAL_LIMIT;
            }
            flow.arrived += size;
            let expected = flow.expected.unwrap_or(size).get();
            let missing = expected.saturating_sub(flow.arrived.get());
            let share = u128::from(flow.granted.as_bytes_per_sec()) * u128::from(missing);
            let outstanding = (share / u128::from(expected)) as u64;
            let before = flow.outstanding.as_bytes_per_sec();
            let outstanding = outstanding.min(before);
            flow.outstanding = Rate::from_bytes_per_sec(outstanding);
            self.promised -= before - outstanding;
            if flow.due_at != due_before {
                let due_at = flow.due_at;
                self.due.remove(&(due_before, key));
                self.due.insert((due_at, key));
            }
        }
    }

    /// The rate to grant out of `free`, the threshold less the use of the link.
    pub fn grant(&mut self, now: Time, wanted: Rate, free: Rate, host: u32) -> Rate {
        self.settle(now);
        self.recent_requests.add(now, ONE);
        let wanted = if self.params.scores {
            part(wanted, self.score(host)).max(wanted.min(self.params.least))
        } else {
            wanted
        };
        let mut granted = wanted.min(minus(free, self.promised()));
        if self.params.fair && !self.denied_requests.sum(now).is_zero() {
            let share = free.as_bytes_per_sec() / self.recent_requests.sum(now).as_bytes_per_sec().max(1);
            granted = granted.min(Rate::from_bytes_per_sec(share));
        }
        granted
    }

    /// Unused grants of all tracked flows.
    #[must_use]
    pub const fn promised(&self) -> Rate {
        Rate::from_bytes_per_sec(self.promised)
    }

    /// Adds a grant, after rounding; `false` if there is no free entry.
    pub fn remember(&mut self, now: Time, granted: Rate, key: u64, host: u32) -> bool {
        if granted.is_zero() {
            self.denied_requests.add(now, ONE);
            return true;
        }
        if self.flows.len() >= self.params.flows || self.flows.contains_key(&key) {
            return false;
        }
        let due_at = now + self.params.interval;
        self.flows.insert(
            key,
            Flow {
                host,
                granted,
                approved_at: now,
                expected: None,
                arrived: Bytes::ZERO,
                outstanding: granted,
                due_at,
            },
        );
        self.due.insert((due_at, key));
        self.promised = self.promised.saturating_add(granted.as_bytes_per_sec());
        self.most.0 = self.most.0.max(self.flows.len());
        true
    }

    /// Outstanding grants, after removal of the expired ones.
    pub fn outstanding(&mut self, now: Time) -> Rate {
        self.settle(now);
        self.promised()
    }

    fn settle(&mut self, now: Time) {
        while let Some(&(due_at, key)) = self.due.first() {
            if due_at > now {
                break;
            }
            self.due.pop_first();
            let Some(flow) = self.flows.remove(&key) else { continue };
            self.promised = self.promised.saturating_sub(flow.outstanding.as_bytes_per_sec());
            if self.params.scores {
                let expected = flow.expected.map_or(u64::MAX, |expected| expected.get().max(1));
                let used = u128::from(flow.arrived.get()) * u128::from(FULL) / u128::from(expected);
                self.rate_host(flow.host, (used as u64).min(FULL));
            }
        }
    }

    /// Equation 4.
    fn rate_host(&mut self, host: u32, used: u64) {
        let old = self.score(host);
        let (most, least) = (used.max(old), used.min(old));
        let gain = self.params.gain;
        let score = gain.of(most) + least - gain.of(least);
        if let Some((_, use_count)) = self.scores.get(&host) {
            self.hosts_by_use.remove(use_count);
        } else if self.scores.len() >= self.params.hosts
            && let Some((_, forgotten)) = self.hosts_by_use.pop_first()
        {
            self.scores.remove(&forgotten);
        }
        self.use_count += 1;
        self.scores.insert(host, (score, self.use_count));
        self.hosts_by_use.insert(self.use_count, host);
        self.most.1 = self.most.1.max(self.scores.len());
    }

    /// A host's score in parts of 10^9.
    #[must_use]
    pub fn score(&self, host: u32) -> u64 {
        self.scores.get(&host).map_or(FULL, |(score, _)| *score)
    }

    /// Numbers of flows and hosts tracked.
    #[must_use]
    pub fn tracked(&self) -> (usize, usize) {
        (self.flows.len(), self.scores.len())
    }

    /// Largest numbers of flows and hosts tracked at the same time.
    #[must_use]
    pub const fn most_tracked(&self) -> (usize, usize) {
        self.most
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.flows.len() * (size_of::<u64>() + size_of::<Flow>())
            + self.due.len() * size_of::<(Time, u64)>()
            + self.scores.len() * size_of::<(u32, (u64, u64))>()
            + self.hosts_by_use.len() * size_of::<(u64, u32)>()
    }
}

/// RTTs after which a window paced over one RTT has arrived, with a margin for queueing.
const ARRIVAL_LIMIT: Ratio = Ratio::new(5, 4);
