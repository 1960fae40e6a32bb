//! A scenario over quinn-proto, unmodified, in virtual time.
//!
//! Client and server are driven as quinn drives them: events, then datagrams in batches of up to
//! ten until none is left, then the timer. Computation takes no time.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use headstart_adapter::store::client_key;
use headstart_net::{Delay, Element, Limit, Link, Output, Packet};
use headstart_quinn::{Choice, Epoch, Handle, ServerSetup};
use headstart_units::{Bytes, Time};
use headstart_virtual_quic::Identity;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointConfig,
    Event, ServerConfig, StreamEvent, StreamId, TransportConfig,
};

use crate::scenario::{CLIENT, FULL, Outcome, PACKET, Scenario};

const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 443);
/// IPv4 and UDP headers.
const HEADERS: u64 = 28;
/// Lowest size of a data packet whose loss can be forced, as in `headstart-virtual-quic`.
const DATA: usize = 300;
/// Most datagrams at once, as quinn asks for.
const BATCH: usize = 10;

/// The contents of answers.
static ZEROS: [u8; 1 << 14] = [0; 1 << 14];

#[derive(Debug)]
struct Datagram {
    contents: BytesMut,
    ecn: Option<EcnCodepoint>,
}

impl Packet for Datagram {
    fn size(&self) -> Bytes {
        Bytes::new(self.contents.len() as u64 + HEADERS)
    }
    fn is_ecn_capable(&self) -> bool {
        self.ecn.is_some()
    }
    fn mark_congestion_experienced(&mut self) {
        self.ecn = Some(EcnCodepoint::Ce);
    }
}

struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
}

impl End {
    fn new(config: Option<Arc<ServerConfig>>, seed: u8) -> Self {
        let endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), config, true, Some([seed; 32]));
        Self { endpoint, connection: None }
    }

    fn settle(&mut self) {
        if let Some((handle, connection)) = &mut self.connection {
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(answer);
                }
            }
        }
    }

    fn send(&mut self, now: Instant) -> Vec<Datagram> {
        self.settle();
        let mut datagrams = vec![];
        if let Some((_, connection)) = &mut self.connection {
            let mut buffer = Vec::new();
            while let Some(transmit) = connection.poll_transmit(now, BATCH, &mut buffer) {
                let size = transmit.segment_size.unwrap_or(transmit.size);
                let pieces = buffer[..transmit.size].chunks(size);
                datagrams.extend(pieces.map(|it| Datagram { contents: it.into(), ecn: transmit.ecn }));
                buffer.clear();
            }
        }
        datagrams
    }

    fn due(&mut self) -> Option<Instant> {
        self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout())
    }

    fn is_due(&mut self, now: Instant) -> bool {
        self.due().is_some_and(|at| at <= now)
    }

    fn on_time(&mut self, now: Instant) {
        let is_due = self.is_due(now);
        if let Some((_, connection)) = self.connection.as_mut().filter(|_| is_due) {
            connection.handle_timeout(now);
        }
    }
}

pub struct Run {
    scenario: Scenario,
    begun: Instant,
    epoch: Epoch,
    now: Time,
    client: End,
    server: End,
    down: Link<Datagram>,
    up: Delay<Datagram>,
    address: SocketAddr,
    setup: Option<ServerSetup>,
    base: Arc<ServerConfig>,
    handle: Option<Handle>,
    /// When the next request is made, and its number.
    request: Option<(Time, usize)>,
    /// Bytes left to be written of each answer.
    unwritten: BTreeMap<StreamId, usize>,
    data_packets: u64,
    outcome: Outcome,
}

/// The transport of both ends.
fn transport(scenario: &Scenario) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let discovery = scenario.discovers_mtu.then(quinn_proto::MtuDiscoveryConfig::default);
    transport.initial_mtu(PACKET).mtu_discovery_config(discovery);
    transport
}

pub fn base(scenario: &Scenario) -> ServerConfig {
    let tls = Identity::shared().and_then(Identity::server).expect("a certificate");
    let crypto = QuicServerConfig::try_from(tls).expect("TLS 1.3");
    let mut base = ServerConfig::with_crypto(Arc::new(crypto));
    base.transport_config(Arc::new(transport(scenario)));
    base
}

/// The scenario with the scheme of that name.
pub fn run(scenario: &Scenario, scheme: &str) -> Outcome {
    run_choice(scenario, Choice::find(scheme).expect("carried"))
}

pub fn run_choice(scenario: &Scenario, choice: Choice) -> Outcome {
    let setup = ServerSetup::new(base(scenario), "iw10").expect("carried").scheme(choice);
    let of_transport = scenario.clone();
    let setup = setup
        .transport(move || transport(&of_transport))
        .history(scenario.store(client_key(CLIENT.ip())))
        .gates(scenario.gates)
        .seed(1);
    Run::new(scenario, Some(setup)).run()
}

/// The scenario with quinn's own CUBIC.
pub fn run_unmodified(scenario: &Scenario) -> Outcome {
    Run::new(scenario, None).run()
}

impl Run {
    pub fn new(scenario: &Scenario, setup: Option<ServerSetup>) -> Self {
        #[expect(clippy::disallowed_methods, reason = "an instant cannot be made in any other way")]
        let begun = Instant::now();
        let epoch = Epoch::new(begun, Time::ZERO);
        let (rate, rtt) = (scenario.rate, scenario.rtt);
        let base = Arc::new(base(scenario));
        Self {
            scenario: scenario.clone(),
            begun,
            epoch,
            now: Time::ZERO,
            client: End::new(None, 1),
            server: End::new(Some(Arc::clone(&base)), 2),
            down: Link::new(rate, rtt / 2, Limit::packets(scenario.buffer)),
            up: Delay::new(rtt - rtt / 2),
            address: CLIENT,
            setup: setup.map(|setup| setup.epoch(epoch)),
            base,
            handle: None,
            request: None,
            unwritten: BTreeMap::new(),
            data_packets: 0,
            outcome: Outcome::default(),
        }
    }

    /// Runs until the last answer was read and all of it acknowledged.
    pub fn run(mut self) -> Outcome {
        self.connect();
        while self.outcome.completed.len() < self.scenario.answers.len() && self.step() {}
        // Its last acknowledgements.
        let until = self.now + self.scenario.rtt * 2;
        while self.next_at() <= until && self.step() {}
        let Some((_, connection)) = &self.server.connection else { return self.outcome };
        self.outcome.lost = connection.stats().path.lost_packets;
        if let Some(handle) = &self.handle {
            handle.finish(connection.congestion_state().clone_box());
            self.outcome.report = handle.report();
        }
        self.outcome
    }

    fn connect(&mut self) {
        let tls = Identity::shared().and_then(Identity::client).expect("a certificate");
        let crypto = QuicClientConfig::try_from(tls).expect("TLS 1.3");
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(Arc::new(transport(&self.scenario)));
        let connected = self.client.endpoint.connect(self.begun, config, SERVER, "localhost");
        self.client.connection = Some(connected.expect("a name and an address"));
        self.drive_client();
    }

    fn next_at(&mut self) -> Time {
        let timers = [self.client.due(), self.server.due()].into_iter().flatten().min();
        let timer = timers.map_or(Time::NEVER, |at| self.epoch.time(at));
        let request = self.request.map_or(Time::NEVER, |(at, _)| at);
        let migration = self.scenario.migration.map_or(Time::NEVER, |(at, _)| at);
        timer.min(self.down.next_at()).min(self.up.next_at()).min(request).min(migration)
    }

    /// Handles the next event; false if there is none.
    fn step(&mut self) -> bool {
        let at = self.next_at();
        if at > Time::from_millis(60_000) {
            return false;
        }
        self.now = self.now.max(at);
        let instant = self.epoch.instant(self.now);
        if let Some((_, address)) = self.scenario.migration.take_if(|(at, _)| *at <= self.now) {
            self.address = address;
        }
        // An end acts only when woken: a pacer that is asked more often lets out smaller bursts.
        let mut wakes_client = self.request.is_some_and(|(at, _)| at <= self.now);
        let mut wakes_server = false;
        while let Some(Output::Delivered(datagram)) = self.down.pop(self.now) {
            self.at_client(instant, datagram);
            wakes_client = true;
        }
        while let Some(Output::Delivered(datagram)) = self.up.pop(self.now) {
            self.at_server(instant, datagram);
            wakes_server = true;
        }
        if self.client.is_due(instant) || wakes_client {
            self.drive_client();
        }
        if self.server.is_due(instant) || wakes_server {
            self.drive_server();
        }
        true
    }

    fn at_client(&mut self, now: Instant, datagram: Datagram) {
        let mut buffer = vec![];
        let Datagram { contents, ecn } = datagram;
        let event = self.client.endpoint.handle(now, SERVER, None, ecn, contents, &mut buffer);
        if let (Some(DatagramEvent::ConnectionEvent(_, event)), Some((_, connection))) =
            (event, &mut self.client.connection)
        {
            connection.handle_event(event);
        }
    }

    /// Not inlined, as [`Self::drive_server`]: what a server computes can so be counted.
    #[inline(never)]
    fn at_server(&mut self, now: Instant, datagram: Datagram) {
        let mut buffer = vec![];
        let Datagram { contents, ecn } = datagram;
        let event =
            self.server.endpoint.handle(now, self.address, Some(SERVER.ip()), ecn, contents, &mut buffer);
        match event {
            Some(DatagramEvent::NewConnection(incoming)) => {
                let peer = incoming.remote_address();
                let hint = self.scenario.hint;
                let configured = self.setup.as_ref().map(|setup| setup.configure_with_hint(peer, hint));
                let (config, handle) = configured.unzip();
                self.handle = handle;
                let config = config.unwrap_or_else(|| Arc::clone(&self.base));
                let accepted = self.server.endpoint.accept(incoming, now, &mut buffer, Some(config));
                self.server.connection = accepted.ok();
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.server.connection {
                    connection.handle_event(event);
                }
            }
            _ => {}
        }
    }

    /// Runs the client until it has nothing left to do at this instant.
    fn drive_client(&mut self) {
        let instant = self.epoch.instant(self.now);
        self.client.on_time(instant);
        self.client.settle();
        self.client_application();
        for datagram in self.client.send(instant) {
            let _ = self.up.push(self.now, datagram);
        }
        self.client.settle();
    }

    /// Drives the server's endpoint.
    #[inline(never)]
    fn drive_server(&mut self) {
        let instant = self.epoch.instant(self.now);
        self.server.on_time(instant);
        self.server.settle();
        self.server_application();
        for datagram in self.server.send(instant) {
            self.outcome.packets += 1;
            let is_data = datagram.contents.first().is_some_and(|first| first & 0x80 == 0);
            if is_data && datagram.contents.len() as u64 >= FULL {
                self.outcome.departures.push(self.now);
            }
            if is_data && datagram.contents.len() >= DATA {
                self.data_packets += 1;
                if self.scenario.losses.contains(&(self.data_packets - 1)) {
                    continue;
                }
            }
            let _ = self.down.push(self.now, datagram);
        }
        self.server.settle();
    }

    fn client_application(&mut self) {
        let Some((_, connection)) = &mut self.client.connection else { return };
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => {
                    self.outcome.requested = self.now;
                    self.request = Some((self.now + self.scenario.answers[0].0, 0));
                }
                Event::Stream(StreamEvent::Readable { id }) => {
                    let mut receive = connection.recv_stream(id);
                    let Ok(mut chunks) = receive.read(true) else { continue };
                    let is_complete = loop {
                        match chunks.next(usize::MAX) {
                            Ok(Some(_)) => {}
                            Ok(None) => break true,
                            Err(_) => break false,
                        }
                    };
                    _ = chunks.finalize();
                    if is_complete {
                        self.outcome.completed.push(self.now);
                        let next = self.outcome.completed.len();
                        let pause = self.scenario.answers.get(next).map(|answer| answer.0);
                        self.request = pause.map(|pause| (self.now + pause, next));
                    }
                }
                _ => {}
            }
        }
        if let Some((_, number)) = self.request.take_if(|(at, _)| *at <= self.now) {
            let stream = connection.streams().open(Dir::Bi).expect("a hundred are allowed");
            let size = self.scenario.answers[number].1.to_be_bytes();
            let mut send = connection.send_stream(stream);
            assert_eq!(send.write(&size).ok(), Some(8));
            send.finish().expect("it is open");
        }
    }

    fn server_application(&mut self) {
        let Some((_, connection)) = &mut self.server.connection else { return };
        let mut readable = vec![];
        while let Some(event) = connection.poll() {
            match event {
                Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                    while let Some(stream) = connection.streams().accept(Dir::Bi) {
                        readable.push(stream);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => readable.push(id),
                _ => {}
            }
        }
        for stream in readable {
            let mut receive = connection.recv_stream(stream);
            let Ok(mut chunks) = receive.read(true) else { continue };
            if let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                let size = u64::from_be_bytes(chunk.bytes[..].try_into().expect("eight bytes at once"));
                if let Some(handle) = &self.handle {
                    handle.expect(size);
                }
                self.unwritten.insert(stream, size as usize);
            }
            _ = chunks.finalize();
        }
        self.unwritten.retain(|&stream, left| {
            let mut send = connection.send_stream(stream);
            while *left > 0 {
                match send.write(&ZEROS[..ZEROS.len().min(*left)]) {
                    Ok(written) => *left -= written,
                    Err(_) => return true,
                }
            }
            send.finish().expect("it is open");
            false
        });
    }
}
