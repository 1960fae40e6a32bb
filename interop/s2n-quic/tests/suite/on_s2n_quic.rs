//! A scenario over s2n-quic, unmodified, in its own virtual time.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use bytes::Bytes;
use headstart_adapter::store::client_key;
use headstart_s2n_quic::{Choice, Handle, ServerSetup};
use headstart_sim::{Random, Seed};
use headstart_units::{Rate, Span, Time};
use s2n_quic::client::Connect;
use s2n_quic::provider::congestion_controller::{Cubic, Timestamp};
use s2n_quic::provider::io::testing::network::{Buffers, Network, Packet};
use s2n_quic::provider::io::testing::{self as virtual_time, Handle as World, primary, spawn, time};
use s2n_quic::provider::random;
use s2n_quic::provider::tls::rustls;
use s2n_quic::{Client, Server};

use crate::scenario::{CLIENT, FULL, Outcome, PACKET, Scenario};

pub const NAME: &str = "localhost";
/// IPv4 and UDP headers.
pub const HEADERS: u64 = 28;
/// Lowest size of a data packet whose loss can be forced, as in `headstart-virtual-quic`.
const DATA: usize = 300;

const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(1, 0, 9, 9));

/// Signatures of the certificate all have one length, so that handshakes do.
pub static CERTIFICATE: LazyLock<(String, String)> = LazyLock::new(|| {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key");
    let mut params = rcgen::CertificateParams::new([NAME.to_owned()]).expect("a name");
    params.serial_number = Some(1_u64.into());
    (params.self_signed(&key).expect("issued").pem(), key.serialize_pem())
});

/// Equal numbers in each run: identifiers of connections, and packet numbers that are skipped.
pub struct Repeatable(Random);

impl Repeatable {
    pub fn new(seed: u64) -> Self {
        Self(Random::new(Seed(seed)))
    }
}

impl random::Generator for Repeatable {
    fn public_random_fill(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&self.0.draw().to_le_bytes()[..part.len()]);
        }
    }

    fn private_random_fill(&mut self, bytes: &mut [u8]) {
        self.public_random_fill(bytes);
    }
}

impl random::Provider for Repeatable {
    type Generator = Self;
    type Error = std::convert::Infallible;

    fn start(self) -> std::result::Result<Self, Self::Error> {
        Ok(self)
    }
}

/// A link from the server to the client, and a delay back.
#[derive(Clone)]
struct Path(Arc<Mutex<State>>);

struct State {
    scenario: Scenario,
    begun: Option<Timestamp>,
    client: Option<SocketAddr>,
    /// Ends of the packets that wait for the link.
    waiting: VecDeque<Timestamp>,
    data_packets: u64,
    outcome: Outcome,
}

impl State {
    /// Since the beginning.
    fn time(&self, at: Timestamp) -> Time {
        Time::ZERO + self.begun.map_or(Span::ZERO, |begun| elapsed(begun, at))
    }

    /// The client's address for the server, as of its migration. Hosts here have addresses of
    /// their own, and s2n-quic refuses a migration to another scope of addresses or ports.
    fn moved(&self, now: Timestamp) -> Option<SocketAddr> {
        let (_, address) = self.scenario.migration.filter(|(at, _)| self.time(now) >= *at)?;
        let before = self.client?;
        let host = if address.ip() == CLIENT.ip() { before.ip() } else { ELSEWHERE };
        Some((host, before.port() + 1).into())
    }

    /// Arrival of a packet of the server's; none if it is lost.
    fn forward(&mut self, now: Timestamp, payload: &[u8]) -> Option<Timestamp> {
        let is_data = payload.first().is_some_and(|first| first & 0x80 == 0);
        self.outcome.packets += 1;
        if is_data && payload.len() as u64 >= FULL {
            let at = self.time(now);
            self.outcome.departures.push(at);
        }
        if is_data && payload.len() >= DATA {
            self.data_packets += 1;
            if self.scenario.losses.contains(&(self.data_packets - 1)) {
                return None;
            }
        }
        while self.waiting.front().is_some_and(|&end| end <= now) {
            self.waiting.pop_front();
        }
        if self.waiting.len() as u64 >= self.scenario.buffer.get() {
            return None;
        }
        let begins = self.waiting.back().copied().unwrap_or(now);
        let end = begins + serialisation(payload.len() as u64 + HEADERS, self.scenario.rate);
        self.waiting.push_back(end);
        Some(end + duration(self.scenario.rtt / 2))
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

fn serialisation(bytes: u64, rate: Rate) -> Duration {
    duration(headstart_units::Bytes::new(bytes) / rate)
}

/// s2n-quic's clock rounds a difference of nothing up to a microsecond.
fn elapsed(begun: Timestamp, at: Timestamp) -> Span {
    Span::from_nanos(at.saturating_duration_since(begun).as_nanos() as u64)
}

/// Sends what waits, each packet to its `arrival` unless it is lost. Returns the number of packets.
pub fn transmit(buffers: &Buffers, mut arrival: impl FnMut(&mut Packet) -> Option<Timestamp>) -> usize {
    let mut count = 0;
    buffers.drain_pending_transmissions(|mut packet| {
        count += 1;
        let Some(arrival) = arrival(&mut packet) else { return Ok(()) };
        packet.switch();
        let buffers = buffers.clone();
        spawn(async move {
            time::delay_until(arrival).await;
            buffers.rx(*packet.path.local_address, |queue| queue.enqueue(packet));
        });
        Ok(())
    });
    count
}

impl Network for Path {
    fn execute(&mut self, buffers: &Buffers) -> usize {
        let now = time::now();
        transmit(buffers, |packet| {
            let state = &mut *self.0.lock().expect("one thread");
            let client = state.client.expect("it began");
            let from: SocketAddr = packet.path.local_address.0.into();
            if from == client {
                if let Some(address) = state.moved(now) {
                    packet.path.local_address = s2n_quic_core::inet::SocketAddress::from(address).into();
                }
                Some(now + duration(state.scenario.rtt - state.scenario.rtt / 2))
            } else {
                packet.path.remote_address = s2n_quic_core::inet::SocketAddress::from(client).into();
                state.forward(now, &packet.payload)
            }
        })
    }
}

/// The scenario with the scheme of that name.
pub fn run(scenario: &Scenario, scheme: &str) -> Outcome {
    run_choice(scenario, Choice::find(scheme).expect("carried"))
}

pub fn run_choice(scenario: &Scenario, choice: Choice) -> Outcome {
    let setup = ServerSetup::new("iw10").expect("carried").scheme(choice);
    let hint = scenario.hint;
    let setup = setup.gates(scenario.gates).hints(move |_| hint).begins_at(Time::ZERO).seed(1);
    simulate(scenario, Some(setup))
}

/// The scenario with s2n-quic's own CUBIC.
pub fn run_unmodified(scenario: &Scenario) -> Outcome {
    simulate(scenario, None)
}

fn simulate(scenario: &Scenario, setup: Option<ServerSetup>) -> Outcome {
    assert!(!scenario.discovers_mtu, "the set-up has one packet size");
    let state = State {
        scenario: scenario.clone(),
        begun: None,
        client: None,
        waiting: VecDeque::new(),
        data_packets: 0,
        outcome: Outcome::default(),
    };
    let path = Path(Arc::new(Mutex::new(state)));
    let handle = Arc::new(Mutex::new(None::<Handle>));
    let (seen, known, scenario) = (path.clone(), Arc::clone(&handle), scenario.clone());
    let result =
        virtual_time::test(path.clone(), move |world: &World| build(world, &scenario, setup, seen, known));
    result.expect("it runs");
    let state = &mut *path.0.lock().expect("one thread");
    let mut outcome = std::mem::take(&mut state.outcome);
    if let Some(handle) = handle.lock().expect("one thread").take() {
        outcome.report = handle.report();
    }
    outcome
}

pub type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

fn build(
    world: &World,
    scenario: &Scenario,
    setup: Option<ServerSetup>,
    path: Path,
    handle: Arc<Mutex<Option<Handle>>>,
) -> Result {
    let (certificate, key) = &*CERTIFICATE;
    let io = || world.builder().with_max_mtu(PACKET + HEADERS as u16).build();
    let tls = rustls::Client::builder().with_certificate(certificate.as_str());
    let tls = tls.and_then(rustls::client::Builder::build).map_err(|error| error.to_string())?;
    let client = Client::builder().with_io(io()?)?.with_tls(tls)?.with_random(Repeatable::new(1))?.start()?;
    let of_client = client.local_addr()?;
    path.0.lock().expect("one thread").client = Some(of_client);

    let tls = rustls::Server::builder().with_certificate(certificate.as_str(), key.as_str());
    let tls = tls.and_then(rustls::server::Builder::build).map_err(|error| error.to_string())?;
    let server = Server::builder().with_io(io()?)?.with_tls(tls)?.with_random(Repeatable::new(2))?;
    let setup = setup.map(|setup| setup.history(scenario.store(client_key(of_client.ip()))));
    let find = setup.clone();
    let mut server = match setup {
        Some(setup) => server.with_congestion_controller(setup)?.start()?,
        None => server.with_congestion_controller(Cubic::default())?.start()?,
    };
    let address = server.local_addr()?;
    spawn(async move {
        while let Some(mut connection) = server.accept().await {
            let of_connection = find.as_ref().and_then(|setup| setup.handle(connection.remote_addr().ok()?));
            handle.lock().expect("one thread").clone_from(&of_connection);
            spawn(async move {
                while let Ok(Some(mut stream)) = connection.accept_bidirectional_stream().await {
                    let mut request = vec![];
                    while let Ok(Some(part)) = stream.receive().await {
                        request.extend_from_slice(&part);
                    }
                    let size = u64::from_be_bytes(request[..].try_into().expect("eight bytes"));
                    if let Some(handle) = &of_connection {
                        handle.expect(size);
                    }
                    let _ = stream.send(Bytes::from(vec![0; size as usize])).await;
                    let _ = stream.finish();
                }
            });
        }
    });
    let (answers, rtt) = (scenario.answers.clone(), scenario.rtt);
    primary::spawn(async move {
        let begun = time::now();
        path.0.lock().expect("one thread").begun = Some(begun);
        let mut connection =
            client.connect(Connect::new(address).with_server_name(NAME)).await.expect("an answer");
        let now = |at: Timestamp| Time::ZERO + elapsed(begun, at);
        path.0.lock().expect("one thread").outcome.requested = now(time::now());
        for (pause, size) in answers {
            if !pause.is_zero() {
                time::delay(duration(pause)).await;
            }
            let mut stream = connection.open_bidirectional_stream().await.expect("a stream");
            stream.send(Bytes::copy_from_slice(&size.to_be_bytes())).await.expect("asked");
            stream.finish().expect("asked");
            let mut length = 0;
            while let Some(part) = stream.receive().await.expect("answered") {
                length += part.len() as u64;
            }
            assert_eq!(length, size);
            path.0.lock().expect("one thread").outcome.completed.push(now(time::now()));
        }
        // Its last acknowledgements.
        time::delay(duration(rtt * 2)).await;
        connection.close(0_u32.into());
        time::delay(Duration::from_secs(5)).await;
    });
    Ok(())
}
