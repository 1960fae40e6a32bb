//! A scenario over noq, in `headstart-virtual-quic`.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use headstart_net::{Limit, LinkPlan, PathPlan};
use headstart_quic::server::SetupError;
use headstart_quic::store::client_key;
use headstart_quic::{Choice, ClientSetup, ServerSetup};
use headstart_sim::packet::FlowId;
use headstart_sim::record::MessageReport;
use headstart_sim::workload::{FlowSpec, Opener, Order, Workload};
use headstart_sim::{Path, Recorder, Seed, peer_address};
use headstart_units::{Bytes, Time};
use headstart_virtual_quic::simulation::observer::{Filter, FlowEnd, ObservedDatagram, Observer};
use headstart_virtual_quic::simulation::{EndpointSettings, RunOptions};
use headstart_virtual_quic::{Crypto, Identity, Simulation};
use noq_proto::crypto::rustls::QuicServerConfig;

use crate::scenario::{FULL, Outcome, PACKET, Scenario};

/// Requests each answer after the one before.
#[derive(Debug)]
pub struct Requests {
    scenario: Scenario,
    flow: Option<FlowId>,
    next_at: Time,
    requested: usize,
}

impl Requests {
    pub fn of(scenario: &Scenario) -> Box<Self> {
        Box::new(Self { scenario: scenario.clone(), flow: None, next_at: Time::ZERO, requested: 0 })
    }
}

impl Workload for Requests {
    fn next_at(&self) -> Time {
        self.next_at
    }

    fn on_time(&mut self, _: Time, orders: &mut Vec<Order>) {
        self.next_at = Time::NEVER;
        let bytes = Bytes::new(self.scenario.answers[self.requested].1);
        self.requested += 1;
        orders.push(match self.flow {
            Some(flow) => Order::Ask { flow, bytes },
            None => Order::Open(FlowSpec {
                opener: Opener::Receiver,
                bytes,
                size_known: true,
                keep_open: true,
                ..FlowSpec::default()
            }),
        });
    }

    fn on_open(&mut self, flow: FlowId, _: u64) {
        self.flow = Some(flow);
    }

    fn on_message(&mut self, now: Time, flow: FlowId, _: u64, orders: &mut Vec<Order>) {
        match self.scenario.answers.get(self.requested) {
            Some((pause, _)) => self.next_at = now + *pause,
            None => orders.push(Order::Close(flow)),
        }
    }
}

#[derive(Default)]
struct Messages(Vec<MessageReport>);

impl Recorder for Messages {
    fn message(&mut self, report: &MessageReport) {
        self.0.push(*report);
    }
}

struct Notes(Rc<RefCell<Outcome>>);

impl Observer for Notes {
    fn on_departure(&mut self, observed: &ObservedDatagram<'_>) -> bool {
        if observed.is_forward && observed.datagram.is_data() && observed.datagram.payload().get() >= FULL {
            self.0.borrow_mut().departures.push(observed.now);
        }
        true
    }

    fn on_arrival(&mut self, _: &ObservedDatagram<'_>) {}

    fn on_flow_end(&mut self, _: u64, end: &FlowEnd) {
        let mut outcome = self.0.borrow_mut();
        (outcome.report, outcome.lost) = (end.report.clone(), end.lost_packets);
        outcome.requested = end.connected_at.expect("a handshake");
    }
}

pub fn run(scenario: &Scenario, scheme: &str) -> Outcome {
    run_choice(scenario, Choice::find(scheme).expect("carried"))
}

pub fn run_choice(scenario: &Scenario, choice: Choice) -> Outcome {
    setup(scenario, choice).expect("it can be set up")
}

fn setup(scenario: &Scenario, choice: Choice) -> Result<Outcome, Box<dyn std::error::Error>> {
    let tls = Identity::shared()?.server()?;
    let crypto = QuicServerConfig::try_from(Arc::clone(&tls)).map_err(SetupError::from)?;
    let mut transport = noq_proto::TransportConfig::default();
    let discovery = scenario.discovers_mtu.then(noq_proto::MtuDiscoveryConfig::default);
    transport.initial_mtu(PACKET).mtu_discovery_config(discovery);
    let mut base = noq_proto::ServerConfig::with_crypto(Arc::new(crypto));
    base.transport_config(Arc::new(transport.clone()));
    let server = ServerSetup::new(base, tls, choice)?;
    let server = server.history(scenario.store(client_key(peer_address(0)))).gates(scenario.gates).seed(1);
    let client = ClientSetup::new(Identity::shared()?.client()?)?.transport(transport).seed(1);
    let client = match scenario.hint {
        Some(hint) => client.exact_hint(hint),
        None => client,
    };
    let endpoints = EndpointSettings::new(server, client, Bytes::new(PACKET.into()));
    let (rate, rtt) = (scenario.rate, scenario.rtt);
    let link = LinkPlan::new(rate, rtt / 2, Limit::packets(scenario.buffer));
    let path = Path::new(&PathPlan::link_and_delay(link, rtt - rtt / 2), Seed(1));
    let options = RunOptions { choices: vec![], crypto: Crypto::Tls, seed: Seed(1) };
    let until = Time::from_millis(60_000);
    let outcome = Rc::new(RefCell::new(Outcome::default()));
    let notes = Filter::of_losses(Box::new(Notes(Rc::clone(&outcome))), scenario.losses.iter().copied());
    let run = Simulation::with_endpoints(
        path,
        vec![endpoints],
        Requests::of(scenario),
        until,
        &options,
        Messages::default(),
    );
    let moves = scenario.migration.iter().map(|&(at, address)| (at, 0, address)).collect();
    let messages = run.with_observer(Box::new(notes)).with_migrations(moves).run().recorder.0;
    let mut outcome = outcome.take();
    outcome.completed = messages.iter().map(|message| message.read_at).collect();
    Ok(outcome)
}
