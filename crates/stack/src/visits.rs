//! Connections of clients to servers over one path, and their outcomes: for this crate's tests and
//! examples.
//!
//! Every connection has its own endpoints, so that any two may differ in anything: scheme, history,
//! limits, the client's hint.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::rc::Rc;

use headstart_net::PathPlan;
use headstart_quic::{ClientSetup, ServerSetup, Why};
use headstart_sim::record::MessageReport;
use headstart_sim::workload::{FlowSpec, Opener, Order, Workload};
use headstart_sim::{Path, Recorder, Seed};
use headstart_units::hash::by_words;
use headstart_units::{Bytes, Span, Time};

use crate::datagram::Datagram;
use crate::end::hash;
use crate::misbehaving::{MisbehavingReceiver, Misbehaviour};
use crate::simulation::observer::{Last, Losing, Observer, Passing};
use crate::simulation::{Cast, Crypto, Ends, Simulation};

/// A transfer and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// Start of the connection.
    pub at: Time,
    /// Bytes transferred.
    pub size: Bytes,
    /// The client sends them; otherwise it requests them.
    pub is_upload: bool,
    /// The run continues until it is complete.
    pub is_awaited: bool,
    /// Time and new address of a client's migration.
    pub moves: Option<(Time, SocketAddr)>,
}

impl Fetch {
    /// A download of `size` at `at`; the server's scheme has the size.
    #[must_use]
    pub const fn download(at: Time, size: Bytes) -> Self {
        Self { at, size, is_upload: false, is_awaited: true, moves: None }
    }

    /// An upload of `size` at `at`; the client's scheme has the size.
    #[must_use]
    pub const fn upload(at: Time, size: Bytes) -> Self {
        Self { at, size, is_upload: true, is_awaited: true, moves: None }
    }
}

/// A datagram's departure from the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Time of departure.
    pub at: Time,
    /// UDP payload.
    pub bytes: Bytes,
    /// It begins with a packet of application data.
    pub is_data: bool,
    /// It was a copy.
    pub is_copy: bool,
}

/// Outcome at the client, and the sender's report.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Start of the connection.
    pub dialled: Time,
    /// Completion of its handshake and departure of the request.
    pub requested: Option<Time>,
    /// Time when the receiver had read the last byte.
    pub completed: Option<Time>,
    /// Departures from the sender.
    pub departures: Vec<Departure>,
    /// The sender's report.
    pub why: Why,
    /// A digest of every byte on the path in both directions, with its time.
    pub digest: u64,
    /// Copies without an equal earlier datagram.
    pub strange_copies: u64,
    /// Copies to an address that the stack no longer uses.
    pub stray_copies: u64,
    /// True if the sender still sends with ECN at the end.
    pub is_ecn_on: bool,
    /// Packets that the sender's stack declared lost.
    pub lost_packets: u64,
    /// Reason of the sender's connection failure, if it failed.
    pub failure: Option<String>,
    originals: BTreeSet<u64>,
    is_over: bool,
}

impl Outcome {
    /// Time from the request to the last byte, on an established connection; [`Span::MAX`] if it
    /// never arrived.
    #[must_use]
    pub fn response(&self) -> Span {
        match (self.requested, self.completed) {
            (Some(from), Some(to)) => to.since(from),
            _ => Span::MAX,
        }
    }

    /// Time from the connection's start to the last byte; [`Span::MAX`] if it never arrived.
    #[must_use]
    pub fn completion(&self) -> Span {
        self.completed.map_or(Span::MAX, |at| at.since(self.dialled))
    }

    /// Full data packets that left the sender, copies excluded.
    pub fn full_packets(&self) -> impl Iterator<Item = &Departure> {
        self.departures.iter().filter(|it| it.is_data && !it.is_copy && it.bytes >= FULL)
    }
}

const FULL: Bytes = Bytes::new(1_100);

/// Clients, their servers, and one path shared by all.
pub struct Visits {
    plan: PathPlan,
    cast: Cast,
    visits: Vec<Visit>,
    forced_losses: Vec<u64>,
    is_blind: bool,
}

struct Visit {
    peer: u32,
    fetch: Fetch,
    ends: Ends,
    misbehaviour: Option<Misbehaviour>,
}

impl Visits {
    /// No connections yet, on this path: forward from servers to clients.
    #[must_use]
    pub fn new(plan: PathPlan, seed: u64) -> Self {
        let cast = Cast { choices: vec![], crypto: Crypto::Null, seed: Seed(seed) };
        Self { plan, cast, visits: vec![], forced_losses: vec![], is_blind: false }
    }

    /// Drops these of the senders' data packets ([`Losing`]).
    #[must_use]
    pub fn losing(mut self, forced_losses: impl IntoIterator<Item = u64>) -> Self {
        self.forced_losses.extend(forced_losses);
        self
    }

    /// Runs the servers on the unmodified stack: for comparisons.
    #[must_use]
    pub fn bare(mut self) -> Self {
        self.visits.iter_mut().for_each(|visit| visit.ends.is_bare = true);
        self
    }

    /// Observes no datagram: for benchmarks. Outcomes are then empty.
    #[must_use]
    pub fn blind(mut self) -> Self {
        self.is_blind = true;
        self
    }

    /// Adds a connection of the peer of that number; returns the connection's number. Connections
    /// of one peer come from one address.
    pub fn add(&mut self, peer: u32, fetch: Fetch, client: ClientSetup, server: &ServerSetup) -> usize {
        let ends = Ends {
            server: server.clone(),
            client,
            client_sends: fetch.is_upload,
            is_bare: false,
            ecn: true,
            packet: PACKET,
            outlives_receiver: false,
        };
        self.visits.push(Visit { peer, fetch, ends, misbehaviour: None });
        self.visits.len() - 1
    }

    /// Lets the receiver of that connection misbehave. Requires null crypto.
    pub fn misbehave(&mut self, number: usize, misbehaviour: Misbehaviour) {
        if let Some(visit) = self.visits.get_mut(number) {
            visit.misbehaviour = Some(misbehaviour);
            visit.ends.outlives_receiver = true;
        }
    }

    /// Runs until every awaited connection is over, or until `deadline`; the outcome of each.
    #[must_use]
    pub fn play(self, deadline: Time) -> Vec<Outcome> {
        // Flows are numbered as they open.
        let mut order: Vec<usize> = (0..self.visits.len()).collect();
        order.sort_by_key(|&number| self.visits[number].fetch.at);
        let serial = |number: usize| order.iter().position(|&other| other == number).unwrap_or(0) as u64;
        let workload = Box::new(Openings {
            left: order.iter().rev().map(|&number| opening(number, &self.visits[number])).collect(),
        });
        let dialled = |&number: &usize| {
            let fetch = self.visits[number].fetch;
            Outcome { dialled: fetch.at, is_over: !fetch.is_awaited, ..Outcome::default() }
        };
        let outcomes: Notes = Rc::new(RefCell::new(order.iter().map(dialled).collect()));
        let path = Path::new(&self.plan, self.cast.seed);
        let mut observer: Box<dyn Observer> = Box::new(Watching(Rc::clone(&outcomes)));
        let mut moves = vec![];
        for (number, visit) in self.visits.iter().enumerate() {
            if let Some(misbehaviour) = visit.misbehaviour {
                observer = Box::new(MisbehavingReceiver::new(observer, serial(number), misbehaviour));
            }
            moves.extend(visit.fetch.moves.map(|(at, address)| (at, serial(number), address)));
        }
        let ends = self.visits.iter().map(|visit| visit.ends.clone()).collect();
        let simulation =
            Simulation::between(path, ends, workload, deadline, &self.cast, Completions::default());
        let simulation = match self.is_blind {
            true => simulation,
            false => simulation.observed(Box::new(Losing::new(observer, self.forced_losses))),
        };
        let completions = simulation.moving(moves).run().recorder;
        let mut outcomes = outcomes.take();
        for (flow, at) in completions.0 {
            if let Some(outcome) = outcomes.get_mut(flow as usize) {
                outcome.completed = Some(at);
            }
        }
        (0..order.len()).map(|number| std::mem::take(&mut outcomes[serial(number) as usize])).collect()
    }
}

/// A full packet, in bytes, for the estimate of unsent data.
const PACKET: Bytes = Bytes::new(1_200);

fn opening(number: usize, visit: &Visit) -> (Time, FlowSpec) {
    let spec = FlowSpec {
        group: number as u16,
        class: 0,
        peer: visit.peer,
        opener: Opener::Receiver,
        bytes: visit.fetch.size,
        size_known: true,
        keep_open: false,
        shares_handshake: false,
        tag: 0,
    };
    (visit.fetch.at, spec)
}

/// Connections at given times, the latest first.
#[derive(Debug)]
struct Openings {
    left: Vec<(Time, FlowSpec)>,
}

impl Workload for Openings {
    fn next_at(&self) -> Time {
        self.left.last().map_or(Time::NEVER, |(at, _)| *at)
    }

    fn on_time(&mut self, _: Time, orders: &mut Vec<Order>) {
        orders.extend(self.left.pop().map(|(_, spec)| Order::Open(spec)));
    }
}

/// Completion time of each flow's message.
#[derive(Debug, Default)]
struct Completions(Vec<(u64, Time)>);

impl Recorder for Completions {
    fn message(&mut self, report: &MessageReport) {
        self.0.push((report.serial, report.read_at));
    }
}

/// Outcomes by the flows' serial numbers.
type Notes = Rc<RefCell<Vec<Outcome>>>;

/// Notes every datagram.
struct Watching(Notes);

impl Observer for Watching {
    fn leaves(&mut self, passing: &Passing<'_>) -> bool {
        let Passing { now, flow, is_forward, datagram, is_stray } = *passing;
        let mut outcomes = self.0.borrow_mut();
        let Some(outcome) = outcomes.get_mut(flow as usize) else { return true };
        outcome.digest =
            by_words(by_words(outcome.digest, &now.as_nanos().to_be_bytes()), &datagram.contents);
        if !is_forward {
            return true;
        }
        outcome.departures.push(note(now, datagram));
        outcome.stray_copies += u64::from(is_stray);
        let digest = hash(&datagram.contents);
        if datagram.is_copy {
            outcome.strange_copies += u64::from(!outcome.originals.contains(&digest));
        } else {
            outcome.originals.insert(digest);
            outcome.is_ecn_on = datagram.ecn.is_some();
        }
        true
    }

    fn arrives(&mut self, _: &Passing<'_>) {}

    fn ended(&mut self, flow: u64, last: &Last) {
        if let Some(outcome) = self.0.borrow_mut().get_mut(flow as usize) {
            let Last { connected_at, why, lost_packets, failure } = last.clone();
            (outcome.requested, outcome.why, outcome.is_over) = (connected_at, why, true);
            (outcome.lost_packets, outcome.failure) = (lost_packets, failure);
        }
    }

    fn is_over(&self) -> bool {
        self.0.borrow().iter().all(|outcome| outcome.is_over)
    }
}

fn note(at: Time, datagram: &Datagram) -> Departure {
    Departure { at, bytes: datagram.payload(), is_data: datagram.is_data(), is_copy: datagram.is_copy }
}
