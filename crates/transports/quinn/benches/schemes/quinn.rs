//! The CUBIC of quinn-proto, through its public trait, with the same events as ours.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::congestion::{Controller, ControllerFactory, CubicConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, RttEstimator,
    ServerConfig, TransportConfig,
};
use rustls::pki_types::PrivateKeyDer;

use crate::{MSS, RTT, SPACING};

/// One acknowledgement in that trait's form.
pub struct Step {
    pub sent_at: Instant,
    pub acked_at: Instant,
}

pub struct Peer {
    pub fresh: Box<dyn Controller>,
    pub steps: Vec<Step>,
    pub rtt: RttEstimator,
}

impl Peer {
    /// CUBIC in slow start, or in avoidance after a cut of a window of the path's size.
    #[expect(clippy::disallowed_methods, reason = "that trait's times can only come from the clock")]
    pub fn new(steps: u32, in_avoidance: bool) -> Self {
        let epoch = Instant::now();
        let rtt = learn_rtt(epoch);
        let (spacing, round_trip) =
            (Duration::from_nanos(SPACING.as_nanos()), Duration::from_nanos(RTT.as_nanos()));
        let mut config = CubicConfig::default();
        config.initial_window(MSS.get() * if in_avoidance { 160 } else { 10 });
        let mut fresh = Arc::new(config).build(epoch, MSS.get() as u16);
        if in_avoidance {
            fresh.on_congestion_event(epoch, epoch, false, MSS.get());
        }
        let begin = epoch + Duration::from_millis(1);
        let steps = (0..steps).map(|n| {
            let sent_at = begin + spacing * n;
            Step { sent_at, acked_at: sent_at + round_trip }
        });
        Self { fresh, steps: steps.collect(), rtt }
    }

    /// Feeds a new controller all events.
    pub fn play(&self) -> u64 {
        let mut controller = self.fresh.clone_box();
        let mut sum = 0;
        for (number, step) in self.steps.iter().enumerate() {
            let step = std::hint::black_box(step);
            controller.on_sent(step.sent_at, MSS.get(), number as u64);
            controller.on_ack(step.acked_at, step.sent_at, MSS.get(), false, &self.rtt);
            sum += controller.window();
        }
        sum
    }
}

/// An RTT estimator cannot be constructed outside that crate, but controllers receive one: connect
/// over a path of that round-trip time, with a controller that keeps it.
fn learn_rtt(epoch: Instant) -> RttEstimator {
    let seen = Arc::new(Mutex::new(None));
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(Spies(seen.clone())));
    let certificate =
        rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("a name makes a certificate");
    let key = PrivateKeyDer::Pkcs8(certificate.signing_key.serialize_der().into());
    let der = certificate.cert.der().clone();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(der.clone()).expect("the certificate just made");
    let server_config = ServerConfig::with_single_cert(vec![der], key).expect("key and certificate fit");
    let mut client_config = ClientConfig::with_root_certificates(Arc::new(roots)).expect("one root");
    client_config.transport_config(Arc::new(transport));

    let endpoint_config = Arc::new(EndpointConfig::default());
    let addresses: [SocketAddr; 2] = [([127, 0, 0, 1], 1).into(), ([127, 0, 0, 1], 2).into()];
    let mut client = Side::new(Endpoint::new(endpoint_config.clone(), None, false, None));
    let mut server = Side::new(Endpoint::new(endpoint_config, Some(Arc::new(server_config)), false, None));
    let connected = client.endpoint.connect(epoch, client_config, addresses[1], "localhost");
    client.connection = Some(connected.expect("a name and an address"));
    let mut now = epoch;
    for _ in 0..16 {
        let packets = client.send(now);
        now += Duration::from_nanos(RTT.as_nanos()) / 2;
        server.receive(now, packets, addresses[0]);
        let packets = server.send(now);
        now += Duration::from_nanos(RTT.as_nanos()) / 2;
        client.receive(now, packets, addresses[1]);
        if let Some(rtt) = *seen.lock().expect("nobody panics while holding it") {
            return rtt;
        }
    }
    panic!("no acknowledgement in sixteen round trips of a handshake");
}

/// One end of that connection.
struct Side {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
}

impl Side {
    fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, connection: None }
    }

    fn send(&mut self, now: Instant) -> Vec<BytesMut> {
        let mut packets = Vec::new();
        if let Some((handle, connection)) = &mut self.connection {
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(answer);
                }
            }
            let mut buffer = Vec::new();
            while let Some(transmit) = connection.poll_transmit(now, 1, &mut buffer) {
                packets.push(BytesMut::from(&buffer[..transmit.size]));
                buffer.clear();
            }
        }
        packets
    }

    fn receive(&mut self, now: Instant, packets: Vec<BytesMut>, from: SocketAddr) {
        let mut buffer = Vec::new();
        for packet in packets {
            match self.endpoint.handle(now, from, None, None, packet, &mut buffer) {
                Some(DatagramEvent::NewConnection(incoming)) => {
                    self.connection = self.endpoint.accept(incoming, now, &mut buffer, None).ok();
                }
                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                    if let Some((_, connection)) = &mut self.connection {
                        connection.handle_event(event);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Builds controllers that keep the estimator they receive.
struct Spies(Arc<Mutex<Option<RttEstimator>>>);

impl ControllerFactory for Spies {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Spy(self.0.clone()))
    }
}

#[derive(Clone)]
struct Spy(Arc<Mutex<Option<RttEstimator>>>);

impl Controller for Spy {
    fn on_ack(&mut self, _: Instant, _: Instant, _: u64, _: bool, rtt: &RttEstimator) {
        *self.0.lock().expect("nobody panics while holding it") = Some(*rtt);
    }
    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: u64) {}
    fn on_mtu_update(&mut self, _: u16) {}
    fn window(&self) -> u64 {
        1 << 20
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
    fn initial_window(&self) -> u64 {
        1 << 20
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
