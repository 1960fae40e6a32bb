//! The UDP relay on this host's loopback, in real time.

use std::io::{self, Write};
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use headstart_emu::clock::Clock;
use headstart_emu::error::RelayError;
use headstart_emu::lateness::Tolerance;
use headstart_emu::log::Log;
use headstart_emu::packet::{Content, HeaderSummary, Packet};
use headstart_emu::path::{PacketOutcome, Path};
use headstart_emu::relay::{self, Handle};
use headstart_emu::udp::{self, Settings};
use headstart_net::jitter::Order;
use headstart_net::{Direction, ElementPlan, Limit, LinkPlan, PathPlan, QueueDiscipline, Seed};
use headstart_units::{Packets, Rate, Ratio, Span, Time};

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics").write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Time limit for a certain event, generous for a loaded host.
const PATIENCE: Duration = Duration::from_secs(60);

fn socket(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind(address).expect("a free port");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    socket
}

fn plain(mbit: u64, delay_ms: u64, packets: u64) -> PathPlan {
    let limit = Limit::packets(Packets::new(packets));
    PathPlan::dumbbell(Rate::from_mbit_per_sec(mbit), Span::from_millis(2 * delay_ms), limit)
}

/// Ordinary priority: tests must not compete for the host.
fn how() -> relay::Settings {
    relay::Settings { real_time: false, tolerance: Tolerance::default(), spin: Span::ZERO }
}

fn start(settings: Settings, plan: &PathPlan, log: Option<Log>) -> (SocketAddr, Handle) {
    let [up, down] = Direction::BOTH.map(|direction| Path::of(plan, direction, Seed(1)));
    udp::start(settings, up, down, Clock::start(), how(), log).expect("a relay")
}

#[test]
fn a_datagram_and_its_response_take_a_round_trip() {
    for loopback in ["127.0.0.1:0", "[::1]:0"] {
        let server = socket(loopback);
        let plan = plain(100, 20, 100);
        let (address, handle) = start(Settings::before(server.local_addr().expect("bound")), &plan, None);
        let client = socket(loopback);
        client.connect(address).expect("loopback");
        let clock = Clock::start();
        client.send(b"question").expect("sent");
        let mut buffer = [0; 100];
        let (length, from) = server.recv_from(&mut buffer).expect("the question");
        assert_eq!(&buffer[..length], b"question");
        server.send_to(b"answer", from).expect("sent");
        let length = client.recv(&mut buffer).expect("the answer");
        assert_eq!(&buffer[..length], b"answer");
        let took = clock.now().since(Time::ZERO);
        assert!(took >= Span::from_millis(40), "{took}");
        let summary = handle.stop().expect("it went well");
        assert_eq!((summary.up.sent, summary.down.sent, summary.up.inside), (1, 1, 0));
    }
}

#[test]
fn each_client_gets_its_own_responses() {
    let server = socket("127.0.0.1:0");
    let plan = plain(100, 1, 1000);
    let (address, handle) = start(Settings::before(server.local_addr().expect("bound")), &plan, None);
    let clients: Vec<UdpSocket> = (0..20).map(|_| socket("127.0.0.1:0")).collect();
    for (client, number) in clients.iter().zip(0_u8..) {
        client.send_to(&[number], address).expect("sent");
    }
    for _ in &clients {
        let mut buffer = [0; 10];
        let (_, from) = server.recv_from(&mut buffer).expect("a question");
        server.send_to(&[buffer[0], 99], from).expect("sent");
    }
    for (client, number) in clients.iter().zip(0_u8..) {
        let mut buffer = [0; 10];
        let (length, from) = client.recv_from(&mut buffer).expect("an answer");
        assert_eq!((&buffer[..length], from), (&[number, 99][..], address));
    }
    drop(handle);
}

#[test]
fn clients_beyond_the_limit_are_counted_and_existing_ones_continue() {
    let server = socket("127.0.0.1:0");
    let plan = plain(100, 1, 1000);
    let settings = Settings { most_clients: 1, ..Settings::before(server.local_addr().expect("bound")) };
    let (address, handle) = start(settings, &plan, None);
    let (first, second) = (socket("127.0.0.1:0"), socket("127.0.0.1:0"));
    let mut buffer = [0; 10];
    first.send_to(&[1], address).expect("sent");
    server.recv_from(&mut buffer).expect("the first");
    second.send_to(&[2], address).expect("sent");
    first.send_to(&[3], address).expect("sent");
    server.recv_from(&mut buffer).expect("the third");
    assert_eq!(buffer[0], 3);
    let summary = handle.stop().expect("it went well");
    assert_eq!(summary.up.errors.get(&RelayError::NoClient), Some(&1));
}

#[test]
fn an_unreachable_server_is_counted_and_the_relay_continues() {
    // A connected socket refuses all but its peer, and keeps its port from others. Only a port
    // bound by number is kept when the socket is disconnected.
    let found = || UdpSocket::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let again = |_| UdpSocket::bind(found().expect("a port")).ok();
    let server = (0..100).find_map(again).expect("nobody takes a hundred ports");
    server.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    server.connect("127.0.0.1:9").expect("a peer");
    let gone = server.local_addr().expect("bound");
    let plan = plain(100, 1, 1000);
    let (address, handle) = start(Settings::before(gone), &plan, None);
    let client = socket("127.0.0.1:0");
    for _ in 0..5 {
        client.send_to(&[1], address).expect("sent");
        // The expected answer is a refusal, which arrives within this time.
        client.set_read_timeout(Some(Duration::from_millis(30))).expect("a time-out");
        assert!(client.recv(&mut [0; 10]).is_err());
    }
    rustix::net::connect_unspec(&server).expect("everybody's");
    client.send_to(&[7], address).expect("sent");
    let mut buffer = [0; 10];
    server.recv(&mut buffer).expect("it is there now");
    assert_eq!(buffer[0], 7);
    let summary = handle.stop().expect("it went well");
    let gone: u64 = [&summary.up, &summary.down]
        .iter()
        .filter_map(|direction| direction.errors.get(&RelayError::Unreachable))
        .sum();
    assert!(gone >= 1, "{summary:?}");
}

struct Logged {
    at: Time,
    event: String,
    number: u64,
    bytes: u64,
    due: Option<Time>,
    cause: String,
}

fn read(text: &str, direction: &str) -> Vec<Logged> {
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    let fields = lines.map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    fields
        .filter(|fields| fields[1] == direction)
        .map(|fields| Logged {
            at: Time::from_nanos(fields[0].parse().expect("a time")),
            event: fields[2].clone(),
            number: fields[3].parse().expect("a number"),
            bytes: fields[4].parse().expect("a size"),
            due: fields[7].parse().ok().map(Time::from_nanos),
            cause: fields[8].clone(),
        })
        .collect()
}

/// Waits until the relay is empty: packets keep their order, so all have left when a datagram sent
/// later arrives. Some are lost; returns the number sent.
fn empty(client: &UdpSocket, address: SocketAddr, server: &UdpSocket) -> usize {
    server.set_read_timeout(Some(Duration::from_secs(1))).expect("a time-out");
    for number in 1_u8..=60 {
        client.send_to(&[number], address).expect("sent");
        let mut buffer = [0; 2000];
        while let Ok(length) = server.recv(&mut buffer) {
            if buffer[..length] == [number] {
                return number.into();
            }
        }
    }
    panic!("the relay lets nothing through");
}

/// In real and in virtual time the element gives the same departures for the same arrivals.
#[test]
fn the_real_clock_and_the_virtual_clock_agree() {
    for (discipline, loss) in
        [(QueueDiscipline::DropTail, 0), (QueueDiscipline::CoDel, 5), (QueueDiscipline::Red, 5)]
    {
        let server = socket("127.0.0.1:0");
        let link = |packets| {
            let limit = Limit::packets(Packets::new(packets));
            LinkPlan::new(Rate::from_mbit_per_sec(8), Span::from_millis(10), limit)
        };
        let mut plan = PathPlan::links(link(30), LinkPlan { discipline, ..link(15) });
        plan.up.push(ElementPlan::loss(Ratio::percent(loss)));
        plan.up.push(ElementPlan::jitter(Span::from_millis(2), Order::Kept));
        let file = Shared::default();
        let log = Log::new(file.clone(), &[]).expect("a thread");
        let settings = Settings::before(server.local_addr().expect("bound"));
        let (address, handle) = start(settings, &plan, Some(log));
        let client = socket("127.0.0.1:0");
        // Bursts of 20 packets of about 0.8 ms each: the queue overflows now and then.
        for burst in 0..8_usize {
            for n in 0..20 {
                client.send_to(&vec![0; 100 + (burst * 37 + n * 211) % 1300], address).expect("sent");
            }
            server.set_read_timeout(Some(Duration::from_millis(12))).expect("a time-out");
            while server.recv(&mut [0; 2000]).is_ok() {}
        }
        let markers = empty(&client, address, &server);
        handle.stop().expect("it went well");

        let text = String::from_utf8(file.0.lock().expect("nobody panics").clone()).expect("text");
        let logged = read(&text, "up");
        let mut path: Path<Packet> = Path::of(&plan, Direction::Up, Seed(1));
        let mut outcomes = vec![];
        for line in logged.iter().filter(|line| line.event == "arrival") {
            let content =
                Content::Datagram { payload: vec![0; line.bytes as usize - 28], headers: 28, ecn: 0 };
            let header = HeaderSummary::default();
            let packet = Packet { number: line.number, arrived: line.at, client: 0, content, header };
            path.arrive(line.at, packet, &mut outcomes);
        }
        path.advance(Time::from_millis(100_000), &mut outcomes);
        let mut expected: Vec<(u64, Time, String)> = outcomes
            .iter()
            .map(|outcome| match outcome {
                PacketOutcome::Out { due, packet } => (packet.number, *due, String::new()),
                PacketOutcome::Dropped { at, packet, reason } => {
                    (packet.number, *at, reason.name().to_owned())
                }
            })
            .collect();
        let mut found: Vec<(u64, Time, String)> = logged
            .iter()
            .filter(|line| line.event != "arrival")
            .map(|line| (line.number, line.due.unwrap_or(line.at), line.cause.clone()))
            .collect();
        expected.sort();
        found.sort();
        assert_eq!(found.len(), 160 + markers);
        assert_eq!(found, expected, "{discipline}");
        assert!(found.iter().any(|(_, _, cause)| !cause.is_empty()), "{discipline}: something was dropped");
    }
}
