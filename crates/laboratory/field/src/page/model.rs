//! The simulator's visit to the same page: the same tree, over the real QUIC stack in virtual time.
//!
//! Each origin has one connection, on which requests leave at once. Of those that leave together
//! the shorter answers arrive first: streams share a connection, and the shorter ones end earlier.
//! A connection begins with a second packet on the way back, as browsers' do: the key that they
//! send is too long for one. The browser itself takes no time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use headstart_sim::Seed;
use headstart_sim::packet::FlowId;
use headstart_sim::workload::{FlowSpec, Opener, Order, PageReport, Workload};
use headstart_study::carrier::{Observer, Run};
use headstart_study::setup::{SchemeMix, Setup};
use headstart_units::{Bytes, Span, Time};

use super::Replay;
use headstart_study::options::SchemeName;

/// Pause between the two visits, for the first one's connections to end.
const PAUSE: Span = Span::from_secs(5);

/// Simulated time for both visits.
const LONGEST: Span = Span::from_secs(4 * 3600);

/// Second packet of a browser's first flight on a link: 1250 bytes of QUIC, UDP and IPv4 headers.
/// With an ML-KEM-768 share of 1184 bytes (FIPS 203) a ClientHello does not fit into one.
const HELLO: Bytes = Bytes::new(1278);

/// Times of the cold visit and the returning one, in milliseconds to the last object.
///
/// # Errors
/// If the run fails.
pub fn visits(setup: &Setup, replay: &Arc<Replay>, scheme: SchemeName, seed: u64) -> Result<[f64; 2]> {
    #[derive(Default)]
    struct Times(Vec<f64>);
    impl Observer for Times {
        fn page(&mut self, report: &PageReport) {
            self.0.push(report.ended_at.since(report.began_at).as_millis_f64());
        }
    }
    let mix = SchemeMix { tested: scheme.0, beside: None };
    let hello = HELLO / setup.path.way_back();
    let workload = Box::new(Visits::new(Arc::clone(replay), hello));
    let until = Time::ZERO + LONGEST;
    let result = Run::new(setup, mix, workload, until, Seed(seed)).observe(Times::default())?;
    let times: Option<[f64; 2]> = result.observer.0.try_into().ok();
    times.context("the simulator did not end both visits")
}

/// Two visits of one client, the second over new connections.
#[derive(Debug)]
struct Visits {
    replay: Arc<Replay>,
    /// Objects to be requested: time, bytes and place.
    due: BTreeSet<(Time, u64, usize)>,
    began_at: Time,
    unread: usize,
    visits_left: usize,
    /// Time of that packet on the way back.
    hello: Span,
    /// Times at which connections may begin, by their origins.
    opens_at: BTreeMap<u16, Time>,
    /// Connections by their origins, and the objects requested on each.
    flows: BTreeMap<u16, (FlowId, VecDeque<usize>)>,
}

impl Visits {
    fn new(replay: Arc<Replay>, hello: Span) -> Self {
        let unread = replay.nodes.len();
        let due = [(Time::ZERO, 0, 0)].into();
        let (opens_at, flows) = (BTreeMap::new(), BTreeMap::new());
        Self { replay, due, began_at: Time::ZERO, unread, visits_left: 1, hello, opens_at, flows }
    }
}

impl Workload for Visits {
    fn next_at(&self) -> Time {
        self.due.first().map_or(Time::NEVER, |(at, ..)| *at)
    }

    fn on_time(&mut self, now: Time, orders: &mut Vec<Order>) {
        let Some((_, size, place)) = self.due.pop_first() else { return };
        let node = self.replay.nodes[place];
        let bytes = Bytes::new(node.bytes);
        if !self.opens_at.contains_key(&node.origin) {
            // The first flights of several connections follow one another.
            let free_at = self.opens_at.values().copied().fold(now, Time::max);
            self.opens_at.insert(node.origin, free_at + self.hello);
            if place == 0 {
                self.began_at = now;
            }
        }
        let opens_at = self.opens_at[&node.origin];
        if now < opens_at {
            self.due.insert((opens_at, size, place));
            return;
        }
        match self.flows.get_mut(&node.origin) {
            Some((flow, requested)) => {
                requested.push_back(place);
                orders.push(Order::Ask { flow: *flow, bytes });
            }
            None => orders.push(Order::Open(FlowSpec {
                opener: Opener::Receiver,
                bytes,
                size_known: true,
                keep_open: true,
                tag: place as u64,
                ..FlowSpec::default()
            })),
        }
    }

    fn on_open(&mut self, flow: FlowId, tag: u64) {
        let place = tag as usize;
        self.flows.insert(self.replay.nodes[place].origin, (flow, [place].into()));
    }

    fn on_message(&mut self, now: Time, flow: FlowId, tag: u64, orders: &mut Vec<Order>) {
        let nodes = &self.replay.nodes;
        let Some((known, requested)) = self.flows.get_mut(&nodes[tag as usize].origin) else { return };
        let Some(place) = requested.pop_front().filter(|_| *known == flow) else { return };
        if nodes[place].leads {
            self.due.insert((now, nodes[place + 1].bytes, place + 1));
        } else {
            // Others wait for the head of a chain of redirects, except for the document's
            // redirects.
            let is_head = |place: &usize| !nodes[*place].is_led_to || *place == self.replay.document;
            let head = (0..=place).rev().find(is_head).unwrap_or(place);
            let waiting = self.replay.requests().filter(|other| nodes[*other].parent == head);
            self.due.extend(waiting.map(|other| (now + nodes[other].think, nodes[other].bytes, other)));
        }
        self.unread -= 1;
        if self.unread == 0 {
            let bytes = Bytes::new(self.replay.bytes());
            let (began_at, ended_at) = (self.began_at, now);
            orders.push(Order::PageDone(PageReport { group: 0, began_at, ended_at, bytes }));
            orders.extend(self.flows.values().map(|(flow, _)| Order::Close(*flow)));
            self.flows.clear();
            self.opens_at.clear();
            if self.visits_left > 0 {
                self.visits_left -= 1;
                self.unread = nodes.len();
                self.due.insert((now + PAUSE, 0, 0));
            }
        }
    }
}
