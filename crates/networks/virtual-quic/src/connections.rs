//! Connections of clients to servers over a path, and their outcomes: for tests and examples.
//!
//! Every connection has its own endpoints, so that any two may differ in anything: scheme, history,
//! limits, the client's hint.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;

use headstart_net::PathPlan;
use headstart_quic::{ClientSetup, ServerSetup, StartReport};
use headstart_sim::record::MessageReport;
use headstart_sim::workload::{FlowSpec, Opener, Order, Workload};
use headstart_sim::{Path, Recorder, Seed};
use headstart_units::hash::by_words;
use headstart_units::{Bytes, Span, Time};

use crate::datagram::Datagram;
use crate::end::hash;
use crate::misbehaving::{MisbehavingReceiver, Misbehaviour};
use crate::simulation::observer::{Filter, FlowEnd, ObservedDatagram, Observer};
use crate::simulation::{Crypto, EndpointSettings, RunOptions, Simulation};

/// A transfer and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Start of the connection.
    pub at: Time,
    /// Bytes transferred.
    pub size: Bytes,
    /// The client sends the bytes; otherwise it requests them.
    pub is_upload: bool,
    /// The request leaves in 0-RTT, if an earlier connection of the client got a ticket.
    pub is_early: bool,
    /// The run continues until it is complete.
    pub is_awaited: bool,
    /// Time and new address of a client's migration.
    pub migrations: Option<(Time, SocketAddr)>,
}

impl Transfer {
    /// A download of `size` at `at`; the server's scheme has the size.
    #[must_use]
    pub const fn download(at: Time, size: Bytes) -> Self {
        Self { at, size, is_upload: false, is_early: false, is_awaited: true, migrations: None }
    }

    /// An upload of `size` at `at`; the client's scheme has the size.
    #[must_use]
    pub const fn upload(at: Time, size: Bytes) -> Self {
        Self { at, size, is_upload: true, is_early: false, is_awaited: true, migrations: None }
    }
}

/// A datagram's departure from the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Time of departure.
    pub at: Time,
    /// UDP payload.
    pub bytes: Bytes,
    /// True if it begins with a packet of application data.
    pub is_data: bool,
    /// True for a copy.
    pub is_copy: bool,
}

/// Outcome at the client, and the sender's report.
#[derive(Clone, Debug, Default)]
pub struct ConnectionOutcome {
    /// Start of the connection.
    pub started: Time,
    /// Completion of its handshake and departure of the request.
    pub requested: Option<Time>,
    /// Time when the receiver had read the last byte.
    pub completed: Option<Time>,
    /// Departures from the sender.
    pub departures: Vec<Departure>,
    /// The sender's report.
    pub report: StartReport,
    /// A digest of every byte on the path in both directions, with its time.
    pub digest: u64,
    /// Copies without an equal earlier datagram.
    pub unmatched_copies: u64,
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

impl ConnectionOutcome {
    /// Time from request to last byte, once established; [`Span::MAX`] if it never arrived.
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
        self.completed.map_or(Span::MAX, |at| at.since(self.started))
    }

    /// Full data packets that left the sender, copies excluded.
    pub fn full_packets(&self) -> impl Iterator<Item = &Departure> {
        self.departures.iter().filter(|it| it.is_data && !it.is_copy && it.bytes >= FULL)
    }
}

const FULL: Bytes = Bytes::new(1_100);

/// Clients, their servers, and one path shared by all.
pub struct ConnectionSet {
    plan: PathPlan,
    options: RunOptions,
    connections: Vec<PlannedConnection>,
    forced_losses: Vec<u64>,
    is_unobserved: bool,
}

struct PlannedConnection {
    peer: u32,
    transfer: Transfer,
    endpoints: EndpointSettings,
    misbehaviour: Option<Misbehaviour>,
    absence: Option<Range<Time>>,
}

impl ConnectionSet {
    /// No connections yet, on this path: forward from servers to clients.
    #[must_use]
    pub fn new(plan: PathPlan, seed: u64) -> Self {
        let options = RunOptions { choices: vec![], crypto: Crypto::Null, seed: Seed(seed) };
        Self { plan, options, connections: vec![], forced_losses: vec![], is_unobserved: false }
    }

    /// Drops these of the senders' data packets ([`Filter::of_losses`]).
    #[must_use]
    pub fn with_forced_losses(mut self, forced_losses: impl IntoIterator<Item = u64>) -> Self {
        self.forced_losses.extend(forced_losses);
        self
    }

    /// Runs the servers on the unmodified stack: for comparisons.
    #[must_use]
    pub fn unmodified(mut self) -> Self {
        self.connections.iter_mut().for_each(|connection| connection.endpoints.is_unmodified = true);
        self
    }

    /// Observes no datagram: for benchmarks. Outcomes are then empty.
    #[must_use]
    pub fn unobserved(mut self) -> Self {
        self.is_unobserved = true;
        self
    }

    /// Adds a connection of the peer of that number; returns the connection's number. Connections
    /// of one peer come from one address.
    pub fn add(&mut self, peer: u32, transfer: Transfer, client: ClientSetup, server: &ServerSetup) -> usize {
        let endpoints = EndpointSettings {
            client_sends: transfer.is_upload,
            sends_early: transfer.is_early,
            ..EndpointSettings::new(server.clone(), client, PACKET)
        };
        self.connections.push(PlannedConnection {
            peer,
            transfer,
            endpoints,
            misbehaviour: None,
            absence: None,
        });
        self.connections.len() - 1
    }

    /// Lets the receiver of that connection misbehave. Requires null crypto.
    pub fn misbehave(&mut self, number: usize, misbehaviour: Misbehaviour) {
        if let Some(connection) = self.connections.get_mut(number) {
            connection.misbehaviour = Some(misbehaviour);
            connection.endpoints.outlives_receiver = true;
        }
    }

    /// Lets the client of that connection be out of reach for that time.
    pub fn absent(&mut self, number: usize, absence: Range<Time>) {
        if let Some(connection) = self.connections.get_mut(number) {
            connection.absence = Some(absence);
        }
    }

    /// Runs until every awaited connection is over, or until `deadline`; the outcome of each.
    #[must_use]
    pub fn run(self, deadline: Time) -> Vec<ConnectionOutcome> {
        // Flows are numbered as they open.
        let mut order: Vec<usize> = (0..self.connections.len()).collect();
        order.sort_by_key(|&number| self.connections[number].transfer.at);
        let serial = |number: usize| order.iter().position(|&other| other == number).unwrap_or(0) as u64;
        let workload = Box::new(ScheduledOpenings {
            left: order.iter().rev().map(|&number| opening(number, &self.connections[number])).collect(),
        });
        let started = |&number: &usize| {
            let transfer = self.connections[number].transfer;
            ConnectionOutcome {
                started: transfer.at,
                is_over: !transfer.is_awaited,
                ..ConnectionOutcome::default()
            }
        };
        let outcomes: SharedOutcomes = Rc::new(RefCell::new(order.iter().map(started).collect()));
        let path = Path::new(&self.plan, self.options.seed);
        let mut observer: Box<dyn Observer> = Box::new(DatagramRecorder(Rc::clone(&outcomes)));
        let mut migrations = vec![];
        for (number, connection) in self.connections.iter().enumerate() {
            if let Some(misbehaviour) = connection.misbehaviour {
                observer = Box::new(MisbehavingReceiver::new(observer, serial(number), misbehaviour));
            }
            if let Some(absence) = connection.absence.clone() {
                observer = Box::new(Filter::of_absence(observer, serial(number), absence));
            }
            migrations
                .extend(connection.transfer.migrations.map(|(at, address)| (at, serial(number), address)));
        }
        let endpoints = self.connections.iter().map(|connection| connection.endpoints.clone()).collect();
        let simulation = Simulation::with_endpoints(
            path,
            endpoints,
            workload,
            deadline,
            &self.options,
            Completions::default(),
        );
        let simulation = match self.is_unobserved {
            true => simulation,
            false => simulation.with_observer(Box::new(Filter::of_losses(observer, self.forced_losses))),
        };
        let completions = simulation.with_migrations(migrations).run().recorder;
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

fn opening(number: usize, connection: &PlannedConnection) -> (Time, FlowSpec) {
    let spec = FlowSpec {
        group: number as u16,
        peer: connection.peer,
        opener: Opener::Receiver,
        bytes: connection.transfer.size,
        size_known: true,
        ..FlowSpec::default()
    };
    (connection.transfer.at, spec)
}

/// Connections at given times, the latest first.
#[derive(Debug)]
struct ScheduledOpenings {
    left: Vec<(Time, FlowSpec)>,
}

impl Workload for ScheduledOpenings {
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
type SharedOutcomes = Rc<RefCell<Vec<ConnectionOutcome>>>;

/// Notes every datagram.
struct DatagramRecorder(SharedOutcomes);

impl Observer for DatagramRecorder {
    fn on_departure(&mut self, observed: &ObservedDatagram<'_>) -> bool {
        let ObservedDatagram { now, flow, is_forward, datagram, is_stray } = *observed;
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
            outcome.unmatched_copies += u64::from(!outcome.originals.contains(&digest));
        } else {
            outcome.originals.insert(digest);
            outcome.is_ecn_on = datagram.ecn.is_some();
        }
        true
    }

    fn on_arrival(&mut self, _: &ObservedDatagram<'_>) {}

    fn on_flow_end(&mut self, flow: u64, end: &FlowEnd) {
        if let Some(outcome) = self.0.borrow_mut().get_mut(flow as usize) {
            let FlowEnd { connected_at, report, lost_packets, failure } = end.clone();
            (outcome.requested, outcome.report, outcome.is_over) = (connected_at, report, true);
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
