//! Web sessions as ns-2 generates them: pages in turn, objects on connections of their own.
//!
//! Source: Quick-Start §5 and the web traffic generator that comes with ns-2 (its model: A.
//! Feldmann et al., "Dynamics of IP traffic", SIGCOMM 1999). Defaults of the generator that the
//! paper does not state are as in S. Floyd's published scripts: sessions begin at times uniform
//! over the run, and objects of a page follow each other after exponential gaps of 10 ms mean.
//!
//! ```text
//! session |--- page 1 ---|   gap   |--- page 2 ---|   gap   |--- ...
//!          |object|           (exponential, from the end of a page)
//!           |object--------|
//!             |object|        (each a connection; the page ends with the last)
//! ```
//!
//! The sizes are Pareto of the second kind, in whole packets: `P(X > x) = (1 + x / scale)^-shape`
//! with the scale that gives the mean. With a shape just above one nearly all of that mean is in
//! objects so large that hardly any run has one. With a mean of 400 packets and a shape of 1.002
//! half of all objects have one packet, one in a hundred more than 78.
//!
//! Each session draws from a seed of its own, in an order that does not depend on the network: two
//! schemes get the same pages and objects.
//!
//! # Deviations
//!
//! - In ns-2 a client's request is a packet on a connection of its own, and the server answers on
//!   another one that it opens. Here the request is not sent: the server opens at the page's time,
//!   and its SYN has the Quick-Start request.
//! - A page's server is drawn for each page from all; server and client belong to one class of
//!   hosts, so the distance of a session's client varies.
//! - An object has at most 2^24 packets: a draw of ns-2 can be larger, but no run gets there.

use std::collections::{BTreeMap, BTreeSet};

use headstart_units::{Bytes, Span, Time};

use super::{FlowSpec, Opener, Order, PageReport, Workload};
use crate::packet::FlowId;
use crate::random::{Random, Seed, unit_above_zero};

/// Pareto of the second kind, also called Lomax, in whole packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParetoTwo {
    scale: f64,
    shape: f64,
}

/// The largest object.
const MAX_PACKETS: f64 = 16_777_216.0;

impl ParetoTwo {
    /// The distribution of this mean, in packets before rounding up; the shape must be above one.
    #[must_use]
    pub fn with_mean(mean: f64, shape: f64) -> Self {
        Self { scale: mean * (shape - 1.0), shape }
    }

    /// Packets of one object; `draw` is uniform over all 64-bit numbers.
    #[must_use]
    pub fn packets(&self, draw: u64) -> u64 {
        // libm's power, so that every machine draws the same.
        let uniform = unit_above_zero(draw);
        let size = self.scale * (libm::pow(uniform, -1.0 / self.shape) - 1.0);
        size.ceil().clamp(1.0, MAX_PACKETS) as u64
    }
}

/// Parameters of the sessions of one side.
#[derive(Clone, Debug)]
pub struct WebSpec {
    /// Number of sessions.
    pub sessions: u32,
    /// Sessions begin before this time, uniformly; no page begins at or after it.
    pub until: Time,
    /// Pages of a session.
    pub pages: u32,
    /// Objects of a page.
    pub objects: u32,
    /// Mean gap between two objects of a page.
    pub object_gap: Span,
    /// Mean gap between the end of a page and the next one.
    pub page_gap: Span,
    /// Sizes of objects.
    pub sizes: ParetoTwo,
    /// Payload of a packet.
    pub mss: Bytes,
    /// Number of servers, equally likely.
    pub servers: u16,
    /// Group and class of the first server; others have the next ones. A flow's peer is its server.
    pub first: u16,
    /// The sizes of objects are given to senders.
    pub size_known: bool,
}

/// Kind of a session's next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Object,
    Page,
}

/// Web sessions.
#[derive(Debug)]
pub struct WebSessions {
    spec: WebSpec,
    due: BTreeSet<(Time, u32, Step)>,
    live: BTreeMap<u32, Session>,
}

#[derive(Debug)]
struct Session {
    random: Random,
    pages_left: u32,
    server: u16,
    page_began_at: Time,
    page_bytes: Bytes,
    /// Objects of the page: not yet requested, and not yet read.
    waiting: u32,
    unread: u32,
}

impl WebSessions {
    /// The sessions with the draws of `seed`.
    #[must_use]
    pub fn new(spec: WebSpec, seed: Seed) -> Self {
        let seed = seed.child("web sessions");
        let mut web = Self { due: BTreeSet::new(), live: BTreeMap::new(), spec };
        for number in 0..web.spec.sessions {
            let mut random = Random::new(seed.child(&number.to_string()));
            let starts = Time::from_nanos(random.below(web.spec.until.as_nanos().max(1)));
            let session = Session {
                random,
                pages_left: web.spec.pages,
                server: 0,
                page_began_at: starts,
                page_bytes: Bytes::ZERO,
                waiting: 0,
                unread: 0,
            };
            web.live.insert(number, session);
            web.due.insert((starts, number, Step::Page));
        }
        web
    }

    fn begin_page(&mut self, now: Time, number: u32, orders: &mut Vec<Order>) {
        let Some(session) = self.live.get_mut(&number) else { return };
        session.pages_left -= 1;
        session.server = session.random.below(u64::from(self.spec.servers.max(1))) as u16;
        session.page_began_at = now;
        session.page_bytes = Bytes::ZERO;
        (session.waiting, session.unread) = (self.spec.objects, self.spec.objects);
        self.ask(now, number, orders);
    }

    fn ask(&mut self, now: Time, number: u32, orders: &mut Vec<Order>) {
        let Some(session) = self.live.get_mut(&number) else { return };
        let bytes = self.spec.mss * self.spec.sizes.packets(session.random.draw());
        session.page_bytes += bytes;
        session.waiting -= 1;
        let host = self.spec.first + session.server;
        orders.push(Order::Open(FlowSpec {
            group: host,
            class: host,
            peer: u32::from(host),
            opener: Opener::Sender,
            bytes,
            size_known: self.spec.size_known,
            keep_open: true,
            shares_handshake: false,
            tag: u64::from(number),
        }));
        if session.waiting > 0 {
            let gap = session.random.exponential(self.spec.object_gap);
            self.due.insert((now + gap, number, Step::Object));
        }
    }
}

impl Workload for WebSessions {
    fn next_at(&self) -> Time {
        self.due.first().map_or(Time::NEVER, |(at, ..)| *at)
    }

    fn on_time(&mut self, now: Time, orders: &mut Vec<Order>) {
        match self.due.pop_first() {
            Some((_, number, Step::Page)) => self.begin_page(now, number, orders),
            Some((_, number, Step::Object)) => self.ask(now, number, orders),
            None => {}
        }
    }

    fn on_message(&mut self, now: Time, flow: FlowId, tag: u64, orders: &mut Vec<Order>) {
        let number = tag as u32;
        let Some(session) = self.live.get_mut(&number) else { return };
        orders.push(Order::Close(flow));
        session.unread -= 1;
        if session.unread > 0 {
            return;
        }
        orders.push(Order::PageDone(PageReport {
            group: self.spec.first + session.server,
            began_at: session.page_began_at,
            ended_at: now,
            bytes: session.page_bytes,
        }));
        let next_at = now + session.random.exponential(self.spec.page_gap);
        if session.pages_left == 0 || next_at >= self.spec.until {
            self.live.remove(&number);
        } else {
            self.due.insert((next_at, number, Step::Page));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ns-2's `ParetoII`: scale = mean x (shape - 1) = 0.8; u = 1/2 is 0.8 x (2^(1/1.002) - 1) =
    /// 0.798 packets, rounded up; u = 1/1000 is 0.8 x (1000^(1/1.002) - 1) = 788.2.
    #[test]
    fn sizes_follow_the_generators_formula() {
        let sizes = ParetoTwo::with_mean(400.0, 1.002);
        let at = |share: f64| sizes.packets(((1.0 - share) * u64::MAX as f64) as u64);
        for (share, packets) in [(0.0, 1), (0.5, 1), (0.79, 3), (0.9, 8), (0.99, 79), (0.999, 789)] {
            assert_eq!(at(share), packets, "{share}");
        }
        assert_eq!(sizes.packets(0), 1 << 24, "the largest");
        assert_eq!(ParetoTwo::with_mean(60.0, 1.002).packets(u64::MAX), 1, "never nothing");
    }

    fn spec() -> WebSpec {
        WebSpec {
            sessions: 5,
            until: Time::from_millis(100_000),
            pages: 3,
            objects: 4,
            object_gap: Span::from_millis(10),
            page_gap: Span::from_millis(800),
            sizes: ParetoTwo::with_mean(60.0, 1.002),
            mss: Bytes::new(1460),
            servers: 2,
            first: 7,
            size_known: true,
        }
    }

    /// Runs sessions on a network that takes `millis` per object; returns flows by session.
    fn played(millis: u64) -> BTreeMap<u64, Vec<(u16, u64)>> {
        let mut web = WebSessions::new(spec(), Seed(3));
        let mut under_way: BTreeSet<(Time, u64)> = BTreeSet::new();
        let mut opened: BTreeMap<u64, Vec<(u16, u64)>> = BTreeMap::new();
        let mut pages = 0;
        loop {
            let done_at = under_way.first().map_or(Time::NEVER, |(at, _)| *at);
            let now = web.next_at().min(done_at);
            if now == Time::NEVER {
                break;
            }
            let mut orders = vec![];
            if done_at == now {
                let (_, tag) = under_way.pop_first().expect("it is there");
                web.on_message(now, FlowId::default(), tag >> 16, &mut orders);
            } else {
                web.on_time(now, &mut orders);
            }
            for order in orders {
                match order {
                    Order::Open(flow) => {
                        assert!((7..9).contains(&flow.group) && flow.group == flow.class);
                        let of_session = opened.entry(flow.tag).or_default();
                        of_session.push((flow.group, flow.bytes.get()));
                        let unique = flow.tag << 16 | of_session.len() as u64;
                        under_way.insert((now + Span::from_millis(millis), unique));
                    }
                    Order::PageDone(_) => pages += 1,
                    _ => {}
                }
            }
        }
        assert_eq!(pages, 15);
        opened
    }

    #[test]
    fn every_session_fetches_its_pages_for_any_network_delay() {
        let slow = played(900);
        assert_eq!(slow.len(), 5);
        assert!(slow.values().all(|objects| objects.len() == 12));
        assert_eq!(played(20), slow, "two networks, the same objects of the same servers");
    }

    #[test]
    fn no_page_begins_after_the_end() {
        let until = Time::from_millis(1);
        let web = WebSessions::new(WebSpec { until, ..spec() }, Seed(3));
        assert!(web.due.iter().all(|(at, ..)| *at < until));
    }
}
