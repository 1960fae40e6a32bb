//! Requests and responses with think times on persistent connections: application-limited starts.
//!
//! A session is one connection on which the client requests one response after another, thinking
//! before each. Sessions arrive as a Poisson process and go through one of the given scripts.

use std::collections::{BTreeMap, BTreeSet};

use headstart_units::{Bytes, Span, Time};

use super::{FlowSpec, Opener, Order, Workload};
use crate::packet::FlowId;
use crate::random::{Random, Seed};

/// One request of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Time from the end of the previous response to the request; ignored for the first request.
    pub think: Span,
    /// Size of the response.
    pub bytes: Bytes,
}

/// Parameters of a stream of sessions.
#[derive(Clone, Debug)]
pub struct SessionSpec {
    /// The scripts, equally likely; each has at least one exchange.
    pub scripts: Vec<Vec<Exchange>>,
    /// Mean gap of the Poisson process.
    pub gap: Span,
    /// No session begins at or after this time.
    pub until: Time,
    /// The group of all sessions.
    pub group: u16,
    /// Different peers, equally likely.
    pub peers: u32,
}

/// Sessions that arrive as a Poisson process.
#[derive(Debug)]
pub struct Sessions {
    spec: SessionSpec,
    random: Random,
    next_at: Time,
    /// Thinking clients: times of their next requests.
    thinking: BTreeSet<(Time, u64, FlowId)>,
    live: BTreeMap<u64, Session>,
    opened: u64,
}

#[derive(Clone, Copy, Debug)]
struct Session {
    script: usize,
    /// Exchanges requested so far.
    requested: usize,
}

impl Sessions {
    /// The stream with the draws of `seed`.
    #[must_use]
    pub fn new(spec: SessionSpec, seed: Seed) -> Self {
        let mut sessions = Self {
            spec,
            random: Random::new(seed.child("sessions")),
            next_at: Time::ZERO,
            thinking: BTreeSet::new(),
            live: BTreeMap::new(),
            opened: 0,
        };
        sessions.step();
        sessions
    }

    fn step(&mut self) {
        self.next_at += self.random.exponential(self.spec.gap);
        if self.next_at >= self.spec.until {
            self.next_at = Time::NEVER;
        }
    }
}

impl Workload for Sessions {
    fn next_at(&self) -> Time {
        self.thinking.first().map_or(Time::NEVER, |(at, ..)| *at).min(self.next_at)
    }

    fn on_time(&mut self, now: Time, orders: &mut Vec<Order>) {
        if self.thinking.first().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, number, flow)) = self.thinking.pop_first() else { return };
            if let Some(session) = self.live.get_mut(&number) {
                let bytes = self.spec.scripts[session.script][session.requested].bytes;
                session.requested += 1;
                orders.push(Order::Ask { flow, bytes });
            }
            return;
        }
        let script = self.random.below(self.spec.scripts.len() as u64) as usize;
        let number = self.opened;
        self.opened += 1;
        self.live.insert(number, Session { script, requested: 1 });
        orders.push(Order::Open(FlowSpec {
            group: self.spec.group,
            peer: self.random.below(u64::from(self.spec.peers.max(1))) as u32,
            opener: Opener::Receiver,
            bytes: self.spec.scripts[script][0].bytes,
            keep_open: true,
            tag: number,
            ..FlowSpec::default()
        }));
        self.step();
    }

    fn on_message(&mut self, now: Time, flow: FlowId, tag: u64, orders: &mut Vec<Order>) {
        let Some(session) = self.live.get(&tag) else { return };
        match self.spec.scripts[session.script].get(session.requested) {
            Some(next) => {
                self.thinking.insert((now + next.think, tag, flow));
            }
            None => {
                self.live.remove(&tag);
                orders.push(Order::Close(flow));
            }
        }
    }
}
