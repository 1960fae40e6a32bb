//! An attacker who sends Quick-Start requests and nothing else (Quick-Start §8).
//!
//! The requests belong to no connection: they get no answer, and no data follows. An attacker can
//! be one host, can make its source addresses up, or can use the address of another host, which
//! routers then hold responsible.

use headstart_units::{Bytes, Rate, Span, Time};

use super::{Order, Workload};
use crate::random::{Random, Seed};

/// A packet that requests a rate from the routers of a route, without a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BareRequest {
    /// The class of hosts whose route to the client it takes.
    pub class: u16,
    /// Source address of the request.
    pub host: u32,
    /// The rate requested.
    pub rate: Rate,
    /// Size of the request on the link.
    pub size: Bytes,
    /// Distinguishes it from others: routers that keep flows take each for a flow of its own.
    pub number: u64,
}

/// Source addresses of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The attacker's own, or another host's.
    One(u32),
    /// A new one each time, out of 2^31 that no other host has.
    Random,
}

/// Parameters of the attack.
#[derive(Clone, Copy, Debug)]
pub struct SpoofSpec {
    /// Time of the first request.
    pub from: Time,
    /// No request leaves at or after this time.
    pub until: Time,
    /// Mean gap; they are a Poisson process.
    pub gap: Span,
    /// Rate of each request.
    pub rate: Rate,
    /// Source addresses of the requests.
    pub source: Source,
    /// The class of hosts whose route they take.
    pub class: u16,
    /// Size of a packet.
    pub size: Bytes,
}

/// The attacker.
#[derive(Debug)]
pub struct Spoof {
    spec: SpoofSpec,
    random: Random,
    next_at: Time,
    number: u64,
}

impl Spoof {
    /// The attack with the draws of `seed`.
    #[must_use]
    pub fn new(spec: SpoofSpec, seed: Seed) -> Self {
        let next_at = if spec.from < spec.until { spec.from } else { Time::NEVER };
        Self { spec, random: Random::new(seed.child("spoof")), next_at, number: 0 }
    }
}

impl Workload for Spoof {
    fn next_at(&self) -> Time {
        self.next_at
    }

    fn on_time(&mut self, now: Time, orders: &mut Vec<Order>) {
        let SpoofSpec { class, rate, size, .. } = self.spec;
        let host = match self.spec.source {
            Source::One(host) => host,
            Source::Random => 1 << 31 | self.random.draw() as u32,
        };
        orders.push(Order::Request(BareRequest { class, host, rate, size, number: self.number }));
        self.number += 1;
        self.next_at = now + self.random.exponential(self.spec.gap);
        if self.next_at >= self.spec.until {
            self.next_at = Time::NEVER;
        }
    }
}
