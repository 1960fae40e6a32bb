//! Flows that arrive one by one: Poisson at an offered load, or at given times.

use std::sync::Arc;

use headstart_units::{Bytes, Span, Time};

use super::{FlowSpec, Opener, Order, Workload};
use crate::random::{Random, Seed};

pub use crate::sizes::Sizes;

/// A stream of independent flows of one group mix.
#[derive(Debug)]
pub struct Arrivals {
    gaps: Gaps,
    next_at: Time,
    until: Time,
    sizes: Sizes,
    size_draw: Random,
    /// Groups take turns at random with these weights.
    groups: Vec<(u16, u32)>,
    group_draw: Random,
    classes: u16,
    class_draw: Random,
    peers: u32,
    peer_draw: Random,
    opener: Opener,
}

/// Arrival times of flows.
#[derive(Debug)]
pub enum Gaps {
    /// A Poisson process with this mean gap.
    Poisson(Span, Random),
    /// At these times, in order.
    Given(std::vec::IntoIter<Time>),
    /// At these times, in order, with these sizes; and the number taken so far.
    Listed(Arc<[(Time, Bytes)]>, usize),
}

/// Parameters of a stream of arrivals.
#[derive(Debug)]
pub struct ArrivalSpec {
    /// Mean gap of the Poisson process, or the times themselves.
    pub gaps: GapSpec,
    /// Sizes of the flows.
    pub sizes: Sizes,
    /// No flow arrives at or after this time.
    pub until: Time,
    /// Groups and their weights.
    pub groups: Vec<(u16, u32)>,
    /// Classes of hosts, equally likely.
    pub classes: u16,
    /// Different peers, equally likely.
    pub peers: u32,
    /// The end that opens the connections.
    pub opener: Opener,
}

impl ArrivalSpec {
    /// Flows of one group, class and peer, which senders open.
    #[must_use]
    pub fn new(gaps: GapSpec, sizes: Sizes, until: Time) -> Self {
        Self { gaps, sizes, until, groups: vec![(0, 1)], classes: 1, peers: 1, opener: Opener::Sender }
    }
}

/// Arrival times of flows, as specified.
#[derive(Clone, Debug)]
pub enum GapSpec {
    /// A Poisson process with this mean gap.
    Poisson(Span),
    /// At these times, in order.
    Given(Vec<Time>),
    /// At these times, in order, with these sizes.
    Listed(Arc<[(Time, Bytes)]>),
}

impl Arrivals {
    /// The stream with the draws of `seed`.
    #[must_use]
    pub fn new(spec: ArrivalSpec, seed: Seed) -> Self {
        let gaps = match spec.gaps {
            GapSpec::Poisson(mean) => Gaps::Poisson(mean, Random::new(seed.child("gaps"))),
            GapSpec::Given(times) => Gaps::Given(times.into_iter()),
            GapSpec::Listed(list) => Gaps::Listed(list, 0),
        };
        let mut arrivals = Self {
            gaps,
            next_at: Time::ZERO,
            until: spec.until,
            sizes: spec.sizes,
            size_draw: Random::new(seed.child("size")),
            groups: spec.groups,
            group_draw: Random::new(seed.child("group")),
            classes: spec.classes.max(1),
            class_draw: Random::new(seed.child("class")),
            peers: spec.peers.max(1),
            peer_draw: Random::new(seed.child("peer")),
            opener: spec.opener,
        };
        arrivals.step();
        arrivals
    }

    fn step(&mut self) {
        self.next_at = match &mut self.gaps {
            Gaps::Poisson(mean, random) => self.next_at + random.exponential(*mean),
            Gaps::Given(times) => times.next().unwrap_or(Time::NEVER),
            Gaps::Listed(list, next) => {
                *next += 1;
                list.get(*next - 1).map_or(Time::NEVER, |(at, _)| *at)
            }
        };
        if self.next_at >= self.until {
            self.next_at = Time::NEVER;
        }
    }

    fn draw_size(&mut self) -> Bytes {
        match &self.gaps {
            Gaps::Listed(list, next) => list[*next - 1].1,
            Gaps::Poisson(..) | Gaps::Given(_) => self.sizes.pick(self.size_draw.draw()),
        }
    }

    fn draw_group(&mut self) -> u16 {
        if let [(group, _)] = self.groups[..] {
            return group;
        }
        let total: u64 = self.groups.iter().map(|(_, weight)| u64::from(*weight)).sum();
        let mut ticket = self.group_draw.below(total.max(1));
        for (group, weight) in &self.groups {
            if ticket < u64::from(*weight) {
                return *group;
            }
            ticket -= u64::from(*weight);
        }
        0
    }
}

impl Workload for Arrivals {
    fn next_at(&self) -> Time {
        self.next_at
    }

    fn on_time(&mut self, _: Time, orders: &mut Vec<Order>) {
        orders.push(Order::Open(FlowSpec {
            group: self.draw_group(),
            class: self.class_draw.below(u64::from(self.classes)) as u16,
            peer: self.peer_draw.below(u64::from(self.peers)) as u32,
            opener: self.opener,
            bytes: self.draw_size(),
            size_known: true,
            ..FlowSpec::default()
        }));
        self.step();
    }
}
