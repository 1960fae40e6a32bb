//! Pages as browsers fetch them: a document, then objects over parallel or persistent connections.
//!
//! The client opens the connections. The first object of a page is its document; when that is read,
//! the others are requested in order, each connection carrying one object at a time. [`Fetch`] sets
//! whether connections are kept and their number for each origin, or one connection for everything
//! at once. A redirect ([`Object::leads`]) delays its target, the document too, until it is read.
//!
//! The page's response time runs from the first SYN to the last byte of the last object. A client
//! may fetch it again ([`PageSpec::again`]), after a pause and over the connections that it kept;
//! such a page's time runs from its first request.
//!
//! # Limits
//!
//! Objects other than redirects do not discover further objects, and neither parsing nor scripts
//! take time: a page is as fast as its network.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use headstart_units::{Bytes, Span, Time};

use super::{FlowSpec, Opener, Order, PageReport, Workload};
use crate::packet::FlowId;
use crate::random::{Random, Seed};

/// One object of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// Origin of the object, one of the page's.
    pub origin: u16,
    /// Size of the object on the wire.
    pub bytes: Bytes,
    /// True for a redirect: the object after it is requested once it is read.
    pub leads: bool,
}

/// Connections that fetch the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetch {
    /// A connection for each object, at most that many at a time to each origin (HTTP/1.0).
    Parallel(u16),
    /// So many connections to each origin, kept open, one object at a time on each (HTTP/1.1;
    /// browsers use six).
    Persistent(u16),
    /// One connection to each origin carries all its objects at once (HTTP/2).
    Multiplexed,
}

/// Pages that arrive as a Poisson process.
#[derive(Debug)]
pub struct Pages {
    pages: Vec<Vec<Object>>,
    fetches: Vec<Fetch>,
    gap: Span,
    next_at: Time,
    until: Time,
    groups: Vec<(u16, u32)>,
    peers: u32,
    again: (u32, Span),
    random: Random,
    live: BTreeMap<u32, Visit>,
    /// Visits between two pages, with the time of the next one's request.
    pausing: BTreeSet<(Time, u32)>,
    opened: u32,
}

/// Parameters of a stream of pages.
#[derive(Clone, Debug)]
pub struct PageSpec {
    /// The pages, equally likely. Each has at least one object, and fewer than 32 768.
    pub pages: Vec<Vec<Object>>,
    /// How the objects of each page are fetched, the last for all further pages. At least one.
    pub fetches: Vec<Fetch>,
    /// Mean gap of the Poisson process.
    pub gap: Span,
    /// No page begins at or after this time.
    pub until: Time,
    /// Groups and their weights; a page belongs to one group as a whole.
    pub groups: Vec<(u16, u32)>,
    /// Different peers, equally likely.
    pub peers: u32,
    /// Times that a client fetches its page again, and the pause before each of them.
    pub again: (u32, Span),
}

/// A page being fetched.
#[derive(Debug)]
struct Visit {
    began_at: Time,
    group: u16,
    peer: u32,
    bytes: Bytes,
    page: usize,
    /// Times that it will be fetched again.
    left: u32,
    fetch: Fetch,
    document_read: bool,
    /// Objects not requested yet, by origin, as places in the page.
    waiting: BTreeMap<u16, VecDeque<usize>>,
    unread: usize,
    /// Connections kept open that have answered once.
    connections: BTreeMap<FlowId, Connection>,
    /// Connections to each origin that are open or being opened.
    opened: BTreeMap<u16, u16>,
}

/// A connection that is kept open.
#[derive(Debug)]
struct Connection {
    origin: u16,
    /// The objects requested and not yet answered, in order.
    outstanding: VecDeque<usize>,
}

/// Fields of a connection's tag: visit, origin, true if it is kept, and the first object requested.
struct Tag {
    visit: u32,
    origin: u16,
    is_kept: bool,
    object: usize,
}

impl Tag {
    fn word(&self) -> u64 {
        (self.object as u64) << 49
            | u64::from(self.visit) << 17
            | u64::from(self.origin) << 1
            | u64::from(self.is_kept)
    }

    fn of(word: u64) -> Self {
        Self {
            visit: (word >> 17) as u32,
            origin: (word >> 1) as u16,
            is_kept: word & 1 == 1,
            object: (word >> 49) as usize,
        }
    }
}

impl Pages {
    /// The stream with the draws of `seed`.
    #[must_use]
    pub fn new(spec: PageSpec, seed: Seed) -> Self {
        let mut pages = Self {
            pages: spec.pages,
            fetches: spec.fetches,
            gap: spec.gap,
            next_at: Time::ZERO,
            until: spec.until,
            groups: spec.groups,
            peers: spec.peers.max(1),
            again: spec.again,
            random: Random::new(seed.child("pages")),
            live: BTreeMap::new(),
            pausing: BTreeSet::new(),
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

    /// The objects of a page that no redirect leads to, by origin.
    fn independent(page: &[Object]) -> BTreeMap<u16, VecDeque<usize>> {
        let mut waiting: BTreeMap<u16, VecDeque<usize>> = BTreeMap::new();
        for (object, pair) in (1..).zip(page.windows(2)).filter(|(_, pair)| !pair[0].leads) {
            waiting.entry(pair[1].origin).or_default().push_back(object);
        }
        waiting
    }

    fn open(visit: &mut Visit, number: u32, page: &[Object], object: usize, orders: &mut Vec<Order>) {
        let Object { origin, bytes, .. } = page[object];
        let tag = Tag { visit: number, origin, is_kept: visit.is_kept(), object };
        *visit.opened.entry(origin).or_default() += 1;
        orders.push(Order::Open(FlowSpec {
            group: visit.group,
            peer: visit.peer,
            opener: Opener::Receiver,
            bytes,
            size_known: true,
            keep_open: true,
            tag: tag.word(),
            ..FlowSpec::default()
        }));
    }

    /// The document is read: connects to every origin, requests every object without a redirect.
    fn begin_objects(visit: &mut Visit, number: u32, page: &[Object], orders: &mut Vec<Order>) {
        let origins: Vec<u16> = visit.waiting.keys().copied().collect();
        for origin in origins {
            // The connection of document or redirect continues with other objects of its origin.
            let idle: Vec<FlowId> = visit.idle(origin).collect();
            for flow in idle {
                Self::request_next(visit, page, flow, orders);
            }
            while visit.may_open(origin) {
                let Some(object) = visit.waiting.get_mut(&origin).and_then(VecDeque::pop_front) else {
                    break;
                };
                Self::open(visit, number, page, object, orders);
            }
        }
    }

    /// Requests the origin's next object on a free connection; all objects if it multiplexes.
    fn request_next(visit: &mut Visit, page: &[Object], flow: FlowId, orders: &mut Vec<Order>) {
        let Some(connection) = visit.connections.get_mut(&flow) else { return };
        let Some(waiting) = visit.waiting.get_mut(&connection.origin) else { return };
        let many = if visit.fetch == Fetch::Multiplexed { waiting.len() } else { 1.min(waiting.len()) };
        for object in waiting.drain(..many) {
            connection.outstanding.push_back(object);
            orders.push(Order::Ask { flow, bytes: page[object].bytes });
        }
    }

    /// Requests the target of a redirect, as soon as its origin has a connection for it.
    fn follow(visit: &mut Visit, number: u32, page: &[Object], object: usize, orders: &mut Vec<Order>) {
        let Object { origin, bytes, .. } = page[object];
        let free = visit.idle(origin).next();
        if let Some((flow, connection)) =
            free.and_then(|flow| Some((flow, visit.connections.get_mut(&flow)?)))
        {
            connection.outstanding.push_back(object);
            orders.push(Order::Ask { flow, bytes });
        } else if visit.may_open(origin) {
            Self::open(visit, number, page, object, orders);
        } else {
            visit.waiting.entry(origin).or_default().push_front(object);
        }
    }
}

impl Visit {
    fn is_kept(&self) -> bool {
        !matches!(self.fetch, Fetch::Parallel(_))
    }

    /// Connections of an origin that can take a request now.
    fn idle(&self, origin: u16) -> impl Iterator<Item = FlowId> + '_ {
        let is_idle = move |connection: &Connection| {
            connection.origin == origin
                && (self.fetch == Fetch::Multiplexed || connection.outstanding.is_empty())
        };
        self.connections.iter().filter(move |(_, one)| is_idle(one)).map(|(flow, _)| *flow)
    }

    fn may_open(&self, origin: u16) -> bool {
        let most = match self.fetch {
            Fetch::Parallel(count) | Fetch::Persistent(count) => count.max(1),
            Fetch::Multiplexed => 1,
        };
        self.opened.get(&origin).is_none_or(|opened| *opened < most)
    }
}

impl Workload for Pages {
    fn next_at(&self) -> Time {
        self.pausing.first().map_or(self.next_at, |(at, _)| self.next_at.min(*at))
    }

    fn on_time(&mut self, now: Time, orders: &mut Vec<Order>) {
        if let Some((_, number)) = self.pausing.first().copied().filter(|(at, _)| *at <= now) {
            self.pausing.pop_first();
            let Some(visit) = self.live.get_mut(&number) else { return };
            let page = &self.pages[visit.page];
            (visit.began_at, visit.document_read, visit.unread) = (now, false, page.len());
            visit.waiting = Self::independent(page);
            return Self::follow(visit, number, page, 0, orders);
        }
        let place = self.random.below(self.pages.len() as u64) as usize;
        let page = &self.pages[place];
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
        let mut visit = Visit {
            began_at: now,
            group,
            peer: self.random.below(u64::from(self.peers)) as u32,
            bytes: page.iter().map(|object| object.bytes).sum(),
            page: place,
            left: self.again.0,
            fetch: self.fetches[place.min(self.fetches.len() - 1)],
            document_read: false,
            waiting: Self::independent(page),
            unread: page.len(),
            connections: BTreeMap::new(),
            opened: BTreeMap::new(),
        };
        let number = self.opened;
        self.opened += 1;
        Self::open(&mut visit, number, page, 0, orders);
        self.live.insert(number, visit);
        self.step();
    }

    fn on_message(&mut self, now: Time, flow: FlowId, tag: u64, orders: &mut Vec<Order>) {
        let Tag { visit: number, origin, is_kept, object } = Tag::of(tag);
        let Some(visit) = self.live.get_mut(&number) else { return };
        let page = &self.pages[visit.page];
        visit.unread -= 1;
        let read = if is_kept {
            let first = || Connection { origin, outstanding: [object].into() };
            visit.connections.entry(flow).or_insert_with(first).outstanding.pop_front().unwrap_or(object)
        } else {
            orders.push(Order::Close(flow));
            visit.opened.entry(origin).and_modify(|opened| *opened -= 1);
            object
        };
        let next = Some(read + 1).filter(|next| page[read].leads && *next < page.len());
        if let Some(next) = next {
            Self::follow(visit, number, page, next, orders);
        }
        if !visit.document_read {
            if next.is_none() {
                visit.document_read = true;
                Self::begin_objects(visit, number, page, orders);
            }
        } else if is_kept {
            let is_free = visit.idle(origin).any(|idle| idle == flow);
            if is_free {
                Self::request_next(visit, page, flow, orders);
            }
        } else if visit.may_open(origin)
            && let Some(object) = visit.waiting.get_mut(&origin).and_then(VecDeque::pop_front)
        {
            Self::open(visit, number, page, object, orders);
        }
        if visit.unread == 0 {
            orders.push(Order::PageDone(PageReport {
                group: visit.group,
                began_at: visit.began_at,
                ended_at: now,
                bytes: visit.bytes,
            }));
            let at = now + self.again.1;
            if visit.left > 0 && at < self.until {
                visit.left -= 1;
                self.pausing.insert((at, number));
                return;
            }
            orders.extend(visit.connections.keys().map(|flow| Order::Close(*flow)));
            self.live.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: u16 = 0;
    const CDN: u16 = 1;

    fn object(origin: u16, bytes: u64) -> Object {
        Object { origin, bytes: Bytes::new(bytes), leads: false }
    }

    fn redirect(origin: u16, bytes: u64) -> Object {
        Object { leads: true, ..object(origin, bytes) }
    }

    fn spec(page: &[Object]) -> PageSpec {
        PageSpec {
            pages: vec![page.to_vec()],
            fetches: vec![Fetch::Multiplexed],
            gap: Span::from_secs(1),
            until: Time::NEVER,
            groups: vec![(0, 1)],
            peers: 1,
            again: (0, Span::ZERO),
        }
    }

    /// Fetches one page; after each step the first requested and unread object is read. Returns the
    /// requests of each step, by size.
    fn steps(page: &[Object], fetch: Fetch) -> Vec<Vec<u64>> {
        let mut pages = Pages::new(PageSpec { fetches: vec![fetch], ..spec(page) }, Seed(1));
        let (mut orders, mut flows, mut requested, mut steps) = (vec![], 0, VecDeque::new(), vec![]);
        let mut tags = BTreeMap::new();
        pages.on_time(pages.next_at(), &mut orders);
        loop {
            let mut step = vec![];
            for order in orders.drain(..) {
                match order {
                    Order::Open(spec) => {
                        let flow = FlowId { slot: flows, generation: 0 };
                        flows += 1;
                        tags.insert(flow, spec.tag);
                        step.push(spec.bytes.get());
                        requested.push_back(flow);
                    }
                    Order::Ask { flow, bytes } => {
                        step.push(bytes.get());
                        requested.push_back(flow);
                    }
                    Order::PageDone(report) => {
                        let bytes: Bytes = page.iter().map(|object| object.bytes).sum();
                        assert_eq!((report.bytes, requested.len()), (bytes, 0), "all was asked for and read");
                        return steps;
                    }
                    _ => {}
                }
            }
            steps.push(step);
            let flow = requested.pop_front().expect("a page is read to its end");
            pages.on_message(Time::from_millis(1), flow, tags[&flow], &mut orders);
        }
    }

    #[test]
    fn a_page_is_fetched_again_over_its_connection_after_a_pause() {
        let mut pages =
            Pages::new(PageSpec { again: (2, Span::from_secs(3)), ..spec(&[object(SITE, 7)]) }, Seed(1));
        pages.until = pages.next_at() + Span::from_secs(5);
        let (mut orders, flow) = (vec![], FlowId { slot: 0, generation: 0 });
        pages.on_time(pages.next_at(), &mut orders);
        let [Order::Open(opened)] = &orders[..] else { panic!("{orders:?}") };
        let (mut now, tag) = (Time::from_millis(100), opened.tag);
        for again in [true, false] {
            orders.clear();
            pages.next_at = Time::NEVER;
            pages.on_message(now, flow, tag, &mut orders);
            assert!(matches!(orders[0], Order::PageDone(_)));
            // The third request would come after the end.
            assert_eq!((orders.len() == 1, pages.next_at() != Time::NEVER), (again, again), "{orders:?}");
            if again {
                now += Span::from_secs(3);
                assert_eq!(pages.next_at(), now);
                orders.clear();
                pages.on_time(now, &mut orders);
                assert!(
                    matches!(orders[..], [Order::Ask { bytes, .. }] if bytes == Bytes::new(7)),
                    "{orders:?}"
                );
            }
        }
        assert!(matches!(orders[1], Order::Close(_)), "{orders:?}");
    }

    #[test]
    fn a_redirect_delays_the_document_and_the_document_the_rest() {
        let page = [redirect(SITE, 1), redirect(CDN, 2), object(CDN, 3), object(SITE, 4), object(CDN, 5)];
        for fetch in [Fetch::Persistent(6), Fetch::Parallel(6), Fetch::Multiplexed] {
            assert_eq!(steps(&page, fetch)[..4], [vec![1], vec![2], vec![3], vec![4, 5]], "{fetch:?}");
        }
    }

    #[test]
    fn a_redirect_of_an_object_delays_that_object_alone() {
        let page = [object(SITE, 1), redirect(SITE, 2), object(CDN, 3), object(SITE, 4), object(CDN, 5)];
        for (fetch, expected) in [
            (Fetch::Persistent(6), vec![vec![1], vec![2, 4, 5], vec![3]]),
            (Fetch::Parallel(6), vec![vec![1], vec![2, 4, 5], vec![3]]),
            // The connection to the other host has no answer yet: the redirect's target waits.
            (Fetch::Multiplexed, vec![vec![1], vec![2, 4, 5], vec![], vec![], vec![3]]),
            (Fetch::Persistent(1), vec![vec![1], vec![2, 5], vec![4], vec![3]]),
            (Fetch::Parallel(1), vec![vec![1], vec![2, 5], vec![4], vec![3]]),
        ] {
            let found = steps(&page, fetch);
            assert_eq!(found[..expected.len()], expected, "{fetch:?}: {found:?}");
        }
    }

    #[test]
    fn a_page_that_ends_in_a_redirect_ends() {
        assert_eq!(steps(&[redirect(SITE, 1)], Fetch::Multiplexed), [[1]]);
        assert_eq!(steps(&[object(SITE, 1), redirect(SITE, 2)], Fetch::Persistent(6))[..2], [[1], [2]]);
    }
}
