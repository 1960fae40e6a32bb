//! Answers to requests in 0-RTT: ten packets until the first acknowledgement, less for a replay.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes as Contents, BytesMut};
use headstart_net::{Limit, PathPlan};
use headstart_quic::token::{SECRET, TokenKeys};
use headstart_quic::{Choice, ClientSetup, ServerSetup, Sharded, StartReport, Store};
use headstart_sim::record::MessageReport;
use headstart_sim::workload::Opener;
use headstart_sim::workload::long::{Listed, Start};
use headstart_sim::{Path, Recorder, Seed, peer_address};
use headstart_units::{Bytes, Packets, Rate, Span, Time};
use headstart_virtual_quic::null::NoSecret;
use headstart_virtual_quic::simulation::observer::{FlowEnd, ObservedDatagram, Observer};
use headstart_virtual_quic::simulation::{EndpointSettings, RunOptions};
use headstart_virtual_quic::{Crypto, Identity, Simulation};
use noq_proto::crypto::rustls::QuicServerConfig;
use noq_proto::{DatagramEvent, Dir, Endpoint, EndpointConfig, FourTuple, TransportConfig};

const RATE: Rate = Rate::from_mbit_per_sec(25);
const RTT: Span = Span::from_millis(50);
const SIZE: u64 = 100_000;
/// UDP payload of a full packet.
const PACKET: u16 = 1200;

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.initial_mtu(PACKET).mtu_discovery_config(None);
    transport
}

/// Servers of one fleet: common keys, but nothing else.
struct Fleet {
    tls: Arc<rustls::ServerConfig>,
    choice: Choice,
}

impl Fleet {
    fn new(scheme: &str) -> Self {
        let tls = Identity::shared().and_then(Identity::server).expect("a certificate");
        Self { tls, choice: Choice::find(scheme).expect("carried") }
    }

    fn server(&self) -> ServerSetup {
        let crypto = QuicServerConfig::try_from(Arc::clone(&self.tls)).expect("for QUIC");
        let mut base = noq_proto::ServerConfig::new(Arc::new(crypto), Arc::new(NoSecret));
        base.transport_config(Arc::new(transport()));
        let setup = ServerSetup::new(base, Arc::clone(&self.tls), self.choice).expect("TLS for QUIC");
        let keys =
            TokenKeys::new(&[[7; SECRET]]).expect("one secret").with_clock(|| Time::from_millis(10_000));
        setup.history(Arc::new(Sharded::new(10)) as Arc<dyn Store>).tokens(keys)
    }
}

#[derive(Default)]
struct Seen {
    /// Datagrams of clients, with the number of their flow.
    from_clients: Vec<(u64, Contents)>,
    reports: Vec<StartReport>,
}

struct Tap(Rc<RefCell<Seen>>);

impl Observer for Tap {
    fn on_departure(&mut self, observed: &ObservedDatagram<'_>) -> bool {
        if !observed.is_forward {
            self.0.borrow_mut().from_clients.push((observed.flow, observed.datagram.contents.clone()));
        }
        true
    }

    fn on_arrival(&mut self, _: &ObservedDatagram<'_>) {}

    fn on_flow_end(&mut self, _: u64, end: &FlowEnd) {
        self.0.borrow_mut().reports.push(end.report.clone());
    }
}

#[derive(Default)]
struct Times(Vec<Span>);

impl Recorder for Times {
    fn message(&mut self, report: &MessageReport) {
        self.0.push(report.read_at.since(report.requested_at));
    }
}

/// Visits of one client, two seconds apart, each to one of `servers`; from 0-RTT or not.
fn visits(servers: &[ServerSetup], visits: &[(u16, bool)]) -> (Vec<Span>, Seen) {
    let client = ClientSetup::new(Identity::shared().and_then(Identity::client).expect("a certificate"));
    let client = client.expect("TLS for QUIC").transport(transport()).seed(1);
    let endpoints = servers.iter().flat_map(|server| {
        [false, true].map(|sends_early| EndpointSettings {
            sends_early,
            ..EndpointSettings::new(server.clone(), client.clone(), Bytes::new(PACKET.into()))
        })
    });
    let starts = visits.iter().enumerate().map(|(number, (server, is_early))| Start {
        at: Time::from_millis(2_000 * number as u64),
        group: 2 * server + u16::from(*is_early),
        class: 0,
        bytes: Bytes::new(SIZE),
        size_known: true,
    });
    let plan = PathPlan::dumbbell(RATE, RTT, Limit::packets(Packets::new(104)));
    let seen = Rc::new(RefCell::new(Seen::default()));
    let simulation = Simulation::with_endpoints(
        Path::new(&plan, Seed(1)),
        endpoints.collect(),
        Box::new(Listed::new(starts.collect(), Opener::Receiver)),
        Time::from_millis(60_000),
        &RunOptions { choices: vec![], crypto: Crypto::Tls, seed: Seed(1) },
        Times::default(),
    );
    let times = simulation.with_observer(Box::new(Tap(Rc::clone(&seen)))).run().recorder.0;
    (times, seen.take())
}

/// A small answer saves the handshake's round trip, a large one the time of its first ten packets.
/// The rest starts from the record, as behind any handshake.
#[test]
fn an_answer_in_0_rtt_has_ten_packets_and_then_its_record() {
    for scheme in ["headstart", "wise-start", "s-cubic", "careful-resume"] {
        let normal = [(0, false); 4];
        let [(slow, _), (early, seen)] = [(0, false), (0, true)].map(|last| {
            let server = Fleet::new(scheme).server();
            visits(&[server], &[&normal[..], &[last]].concat())
        });
        let [early, slow] = [early[4], slow[4]].map(Span::as_millis_f64);
        println!("{scheme}: {early:.1} ms in 0-RTT, {slow:.1} without");
        let report = &seen.reports[4];
        assert!(report.known.is_some() && report.refusal.is_none(), "{report}");
        assert!(early < slow, "{scheme}: {early} and {slow} ms");
    }
}

/// Bytes of the first datagrams of a recorded visit, and those that they get from `server` in the
/// first half second, before probes.
fn replayed(server: &ServerSetup, datagrams: &[Contents]) -> (u64, u64) {
    #[expect(clippy::disallowed_methods, reason = "an instant cannot be made in any other way")]
    let start = Instant::now();
    let config = Arc::new(EndpointConfig::new(Arc::new(NoSecret)));
    let mut endpoint = Endpoint::new(config, Some(Arc::new(server.stack_config().clone())), true);
    let address = std::net::SocketAddr::new(peer_address(0), 10_000);
    let from = FourTuple::new(address, None);
    let (mut paid, mut answered, mut accepted) = (0, 0, None);
    for contents in datagrams {
        paid += contents.len() as u64;
        let mut answer = vec![];
        match endpoint.handle(start, from, None, BytesMut::from(&contents[..]), &mut answer) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                let (config, handle) = server.configure(address, None, incoming.orig_dst_cid());
                if incoming.remote_address_validated() {
                    handle.address_validated();
                }
                // A later datagram, to the server's identifier, is nobody's: it does not decrypt.
                let Ok((id, connection)) = endpoint.accept(incoming, start, &mut answer, Some(config)) else {
                    continue;
                };
                handle.expect(SIZE);
                accepted = Some((id, connection, handle));
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                accepted.as_mut().expect("the first makes one").1.handle_event(event);
            }
            Some(DatagramEvent::Response(transmit)) => answered += transmit.size as u64,
            None => {}
        }
    }
    let (id, mut connection, _handle) = accepted.expect("the first makes one");
    if let Some(stream) = connection.streams().open(Dir::Uni) {
        connection.send_stream(stream).write(&[7; SIZE as usize]).expect("there is room");
    }
    let (mut now, end) = (start, start + Duration::from_millis(500));
    while now < end {
        connection.handle_timeout(now);
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(answer) = endpoint.handle_event(id, event) {
                connection.handle_event(answer);
            }
        }
        let mut buffer = vec![];
        while let Some(transmit) = connection.poll_transmit(now, NonZeroUsize::MIN, &mut buffer) {
            answered += transmit.size as u64;
            buffer.clear();
        }
        now = connection.poll_timeout().unwrap_or(end).max(now + Duration::from_micros(1));
    }
    (paid, answered)
}

#[test]
fn a_replay_in_0_rtt_gets_no_more_than_three_times_its_bytes() {
    let fleet = Fleet::new("headstart");
    let servers = [fleet.server(), fleet.server()];
    let (_, seen) = visits(&servers, &[(0, false), (0, false), (0, false), (0, true)]);
    // All that the client sent before the first answer: its first datagram or two.
    let mut first: Vec<Contents> = seen
        .from_clients
        .iter()
        .filter(|(flow, _)| *flow == 3)
        .map(|(_, contents)| contents.clone())
        .collect();
    first.truncate(2);
    let (paid, answered) = replayed(&servers[0], &first);
    println!("replayed: {answered} bytes for {paid}");
    assert!(answered <= 3 * paid, "{answered} bytes for {paid}");
    // A server that has not seen the token takes it once, and sends ten packets, whatever the
    // record. A probe or two may follow.
    let (paid, answered) = replayed(&servers[1], &first);
    println!("elsewhere: {answered} bytes for {paid}");
    assert!((3 * paid..=10 * u64::from(PACKET)).contains(&answered), "{answered} bytes for {paid}");
    let (paid, answered) = replayed(&servers[1], &first);
    assert!(answered <= 3 * paid, "{answered} bytes for {paid}");
}
