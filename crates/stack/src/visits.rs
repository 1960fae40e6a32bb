//! Visits of clients to servers over one path, and what each of them saw: the vocabulary of this
//! crate's tests and examples.
//!
//! Every visit has ends of its own, so that anything may differ between two of them: scheme,
//! history, limits, what the client hints.

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

/// What is transferred, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// When the client dials.
    pub at: Time,
    /// How many bytes.
    pub size: Bytes,
    /// The client sends them; otherwise it asks for them.
    pub is_upload: bool,
    /// Whether the run goes on until it is over.
    pub is_awaited: bool,
    /// When the client's address changes, and to what.
    pub moves: Option<(Time, SocketAddr)>,
}

impl Fetch {
    /// A download of `size` from `at` on, whose size the server knows.
    #[must_use]
    pub const fn download(at: Time, size: Bytes) -> Self {
        Self { at, size, is_upload: false, is_awaited: true, moves: None }
    }

    /// An upload of `size` from `at` on, whose size the client knows.
    #[must_use]
    pub const fn upload(at: Time, size: Bytes) -> Self {
        Self { at, size, is_upload: true, is_awaited: true, moves: None }
    }
}

/// A datagram as it left the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When.
    pub at: Time,
    /// UDP payload.
    pub bytes: Bytes,
    /// It begins with a packet of application data.
    pub is_data: bool,
    /// It was a copy.
    pub is_copy: bool,
}

/// What a client saw, and what its sender said.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// When it dialled.
    pub dialled: Time,
    /// When its handshake was through and the request left.
    pub requested: Option<Time>,
    /// When the receiver had read the last byte.
    pub completed: Option<Time>,
    /// What the sender sent.
    pub departures: Vec<Departure>,
    /// What the sender decided.
    pub why: Why,
    /// A digest of every byte that either side sent to the other, and when.
    pub digest: u64,
    /// Copies that equal nothing that left before them.
    pub strange_copies: u64,
    /// Copies to an address to which the stack does not send any more.
    pub stray_copies: u64,
    /// Whether the sender still sends with ECN at the end.
    pub is_ecn_on: bool,
    /// Packets that the sender's stack declared lost.
    pub lost_packets: u64,
    /// Why the sender's connection failed, if it did.
    pub failure: Option<String>,
    originals: BTreeSet<u64>,
    is_over: bool,
}

impl Outcome {
    /// From the request to the last byte: what an established connection takes; [`Span::MAX`] if it
    /// never came.
    #[must_use]
    pub fn response(&self) -> Span {
        match (self.requested, self.completed) {
            (Some(from), Some(to)) => to.since(from),
            _ => Span::MAX,
        }
    }

    /// From dialling to the last byte; [`Span::MAX`] if it never came.
    #[must_use]
    pub fn completion(&self) -> Span {
        self.completed.map_or(Span::MAX, |at| at.since(self.dialled))
    }

    /// Full data packets that left the sender, copies not among them.
    pub fn full_packets(&self) -> impl Iterator<Item = &Departure> {
        self.departures.iter().filter(|it| it.is_data && !it.is_copy && it.bytes >= FULL)
    }
}

const FULL: Bytes = Bytes::new(1_100);

/// Clients, their servers, and one path for all of them.
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
    /// Nobody yet, on this path: down from servers to clients.
    #[must_use]
    pub fn new(plan: PathPlan, seed: u64) -> Self {
        let cast = Cast { choices: vec![], crypto: Crypto::Null, seed: Seed(seed) };
        Self { plan, cast, visits: vec![], forced_losses: vec![], is_blind: false }
    }

    /// Loses these of the senders' data packets ([`Losing`]).
    #[must_use]
    pub fn losing(mut self, forced_losses: impl IntoIterator<Item = u64>) -> Self {
        self.forced_losses.extend(forced_losses);
        self
    }

    /// Servers are the stack as it is, with nothing of ours: to compare with.
    #[must_use]
    pub fn bare(mut self) -> Self {
        self.visits.iter_mut().for_each(|visit| visit.ends.is_bare = true);
        self
    }

    /// Looks at no datagram: for benchmarks. Outcomes are empty then.
    #[must_use]
    pub fn blind(mut self) -> Self {
        self.is_blind = true;
        self
    }

    /// Adds a visit of the peer of that number; returns the visit's number. Visits of one peer come
    /// from one address.
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

    /// Lets the receiver of that visit misbehave. Only null crypto lets it.
    pub fn misbehave(&mut self, number: usize, misbehaviour: Misbehaviour) {
        if let Some(visit) = self.visits.get_mut(number) {
            visit.misbehaviour = Some(misbehaviour);
            visit.ends.outlives_receiver = true;
        }
    }

    /// Plays until every awaited visit is over, or until `deadline`; what each client saw.
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

/// What the simulation takes for a full packet when it estimates how much is unsent.
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

/// When each flow's message was read whole.
#[derive(Debug, Default)]
struct Completions(Vec<(u64, Time)>);

impl Recorder for Completions {
    fn message(&mut self, report: &MessageReport) {
        self.0.push((report.serial, report.read_at));
    }
}

/// Outcomes by the flows' serial numbers.
type Notes = Rc<RefCell<Vec<Outcome>>>;

/// Writes down what passes.
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
