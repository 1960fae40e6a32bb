//! Pages as browsers fetch them: a document, then its objects over parallel or persistent connections.
//!
//! The client opens the connections. The first object of a page is its document; when that is read, the others are
//! asked for in order, each connection carrying one object at a time. [`Fetch`] says whether connections are kept and
//! how many there are for each origin, or whether one connection carries everything at once.
//!
//! The page's response time runs from the first SYN to the last byte of the last object.
//!
//! # Limits
//!
//! Objects do not discover further objects, and neither parsing nor scripts take time: a page is as fast as
//! its network.

use std::collections::{BTreeMap, VecDeque};

use headstart_units::{Bytes, Span, Time};

use super::{FlowSpec, Opener, Order, PageReport, Workload};
use crate::packet::FlowId;
use crate::random::{Random, Seed};

/// One object of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Which of the page's origins it comes from.
    pub origin: u16,
    /// Its size on the wire.
    pub bytes: Bytes,
}

/// How objects are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetch {
    /// A connection for each object, so many at a time from each origin (HTTP/1.0).
    Parallel(u16),
    /// So many connections to each origin, kept open, one object at a time on each (HTTP/1.1; browsers use six).
    Persistent(u16),
    /// One connection to each origin carries all its objects at once (HTTP/2).
    Multiplexed,
}

/// Pages that arrive as a Poisson process.
#[derive(Debug)]
pub struct Pages {
    pages: Vec<Vec<Object>>,
    fetch: Fetch,
    gap: Span,
    next_at: Time,
    until: Time,
    groups: Vec<(u16, u32)>,
    peers: u32,
    random: Random,
    live: BTreeMap<u32, Visit>,
    opened: u32,
}

/// What a stream of pages consists of.
#[derive(Clone, Debug)]
pub struct PageSpec {
    /// The pages, equally likely. Each has at least one object.
    pub pages: Vec<Vec<Object>>,
    /// How objects are fetched.
    pub fetch: Fetch,
    /// Mean gap of the Poisson process.
    pub gap: Span,
    /// No page begins at or after this time.
    pub until: Time,
    /// Groups and their weights; a page belongs to one group as a whole.
    pub groups: Vec<(u16, u32)>,
    /// Different peers, equally likely.
    pub peers: u32,
}

/// A page being fetched.
#[derive(Debug)]
struct Visit {
    began_at: Time,
    group: u16,
    peer: u32,
    bytes: Bytes,
    document_read: bool,
    /// Objects not asked for yet, by origin.
    waiting: BTreeMap<u16, VecDeque<Bytes>>,
    unread: usize,
    /// Connections kept open: how many messages each still owes, and its origin.
    connections: BTreeMap<FlowId, u16>,
}

impl Pages {
    /// The stream with the draws of `seed`.
    #[must_use]
    pub fn new(spec: PageSpec, seed: Seed) -> Self {
        let mut pages = Self {
            pages: spec.pages,
            fetch: spec.fetch,
            gap: spec.gap,
            next_at: Time::ZERO,
            until: spec.until,
            groups: spec.groups,
            peers: spec.peers.max(1),
            random: Random::new(seed.child("pages")),
            live: BTreeMap::new(),
            opened: 0,
        };
        pages.step();
        pages
    }

    fn step(&mut self) {
        self.next_at += self.random.exponential(self.gap);
        if self.next_at >= self.until {
            self.next_at = Time::NEVER;
        }
    }

    fn open(visit: &Visit, number: u32, origin: u16, bytes: Bytes, is_kept: bool, orders: &mut Vec<Order>) {
        orders.push(Order::Open(FlowSpec {
            group: visit.group,
            class: 0,
            peer: visit.peer,
            opener: Opener::Receiver,
            bytes,
            size_known: true,
            keep_open: true,
            shares_handshake: false,
            tag: u64::from(number) << 17 | u64::from(origin) << 1 | u64::from(is_kept),
        }));
    }

    /// The document is read: connections to every origin are opened and everything that may be is asked for.
    fn begin_objects(visit: &mut Visit, number: u32, fetch: Fetch, first: FlowId, orders: &mut Vec<Order>) {
        let origins: Vec<u16> = visit.waiting.keys().copied().collect();
        for origin in origins {
            let mut connections = match fetch {
                Fetch::Parallel(count) | Fetch::Persistent(count) => count.max(1),
                Fetch::Multiplexed => 1,
            };
            let is_kept = !matches!(fetch, Fetch::Parallel(_));
            // The document's own connection goes on with the document's origin.
            if is_kept && visit.connections.get(&first) == Some(&origin) {
                connections -= 1;
                Self::ask_next(visit, origin, first, fetch, orders);
            }
            for _ in 0..connections {
                let Some(bytes) = visit.waiting.get_mut(&origin).and_then(VecDeque::pop_front) else { break };
                Self::open(visit, number, origin, bytes, is_kept, orders);
                if fetch == Fetch::Multiplexed {
                    break;
                }
            }
        }
    }

    /// Asks for the origin's next object on a connection that is free; all of them if it carries many at once.
    fn ask_next(visit: &mut Visit, origin: u16, flow: FlowId, fetch: Fetch, orders: &mut Vec<Order>) -> bool {
        let Some(waiting) = visit.waiting.get_mut(&origin) else { return false };
        let before = orders.len();
        let many = if fetch == Fetch::Multiplexed { waiting.len() } else { 1.min(waiting.len()) };
        orders.extend(waiting.drain(..many).map(|bytes| Order::Ask { flow, bytes }));
        orders.len() > before
    }
}

impl Workload for Pages {
    fn next_at(&self) -> Time {
        self.next_at
    }

    fn on_time(&mut self, now: Time, orders: &mut Vec<Order>) {
        let page = &self.pages[self.random.below(self.pages.len() as u64) as usize];
        let total: u64 = self.groups.iter().map(|(_, weight)| u64::from(*weight)).sum();
        let mut ticket = self.random.below(total.max(1));
        let mut group = self.groups[0].0;
        for (candidate, weight) in &self.groups {
            if ticket < u64::from(*weight) {
                group = *candidate;
                break;
            }
            ticket -= u64::from(*weight);
        }
        let mut waiting: BTreeMap<u16, VecDeque<Bytes>> = BTreeMap::new();
        for object in &page[1..] {
            waiting.entry(object.origin).or_default().push_back(object.bytes);
        }
        let visit = Visit {
            began_at: now,
            group,
            peer: self.random.below(u64::from(self.peers)) as u32,
            bytes: page.iter().map(|object| object.bytes).sum(),
            document_read: false,
            waiting,
            unread: page.len(),
            connections: BTreeMap::new(),
        };
        let number = self.opened;
        self.opened += 1;
        let is_kept = !matches!(self.fetch, Fetch::Parallel(_));
        Self::open(&visit, number, page[0].origin, page[0].bytes, is_kept, orders);
        self.live.insert(number, visit);
        self.step();
    }

    fn on_message(&mut self, now: Time, flow: FlowId, tag: u64, orders: &mut Vec<Order>) {
        let number = (tag >> 17) as u32;
        let (origin, is_kept) = ((tag >> 1) as u16, tag & 1 == 1);
        let Some(visit) = self.live.get_mut(&number) else { return };
        visit.unread -= 1;
        if is_kept {
            visit.connections.insert(flow, origin);
        } else {
            orders.push(Order::Close(flow));
        }
        if !visit.document_read {
            visit.document_read = true;
            Self::begin_objects(visit, number, self.fetch, flow, orders);
        } else if is_kept {
            Self::ask_next(visit, origin, flow, self.fetch, orders);
        } else if let Some(bytes) = visit.waiting.get_mut(&origin).and_then(VecDeque::pop_front) {
            Self::open(visit, number, origin, bytes, false, orders);
        }
        if visit.unread == 0 {
            orders.push(Order::PageDone(PageReport {
                group: visit.group,
                began_at: visit.began_at,
                ended_at: now,
                bytes: visit.bytes,
            }));
            orders.extend(visit.connections.keys().map(|flow| Order::Close(*flow)));
            self.live.remove(&number);
        }
    }
}
