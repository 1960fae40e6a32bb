//! Transfers by unmodified s2n-quic in its own virtual time, for docs/records/s2n-quic.md.
//!
//! Makes the transfers of the file `$TRANSFERS`, one a line, and writes a line for each to
//! `$FOUND`.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use s2n_quic::client::Connect;
use s2n_quic::provider::congestion_controller::{Timestamp, cubic};
use s2n_quic::provider::event::{self, ConnectionMeta, events};
use s2n_quic::provider::io::testing::network::{Buffers, Network};
use s2n_quic::provider::io::testing::{self as virtual_time, Handle as World, primary, spawn, time};
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::rustls;
use s2n_quic::{Client, Server};

#[allow(dead_code, reason = "tests use the rest")]
#[path = "../tests/suite/on_s2n_quic.rs"]
mod on_s2n_quic;
#[allow(dead_code, reason = "tests use the rest")]
#[path = "../../../crates/transports/quinn/tests/suite/scenario.rs"]
mod scenario;

use on_s2n_quic::{CERTIFICATE, HEADERS, NAME, Repeatable, Result, transmit};
use scenario::PACKET;

/// Initial window in bytes: ten full packets beside the end of the handshake.
const FIRST: u32 = 12_500;
/// Packets with data are larger, those with acks alone smaller.
const LEAST_DATA: usize = 200;
const WINDOW: u64 = 4_000_000;

/// One path and object.
struct Transfer {
    bits_per_second: u64,
    rtt: Duration,
    buffer: usize,
    bytes: u64,
    object: u64,
    /// Numbers of the packets that get lost, of those that leave the link.
    lost: BTreeSet<u64>,
}

impl Transfer {
    fn read(line: &str) -> Option<Self> {
        let [_, rate, microseconds, buffer, bytes, object, lost] =
            line.split_whitespace().collect::<Vec<_>>()[..]
        else {
            return None;
        };
        Some(Self {
            bits_per_second: rate.parse().ok()?,
            rtt: Duration::from_micros(microseconds.parse().ok()?),
            buffer: buffer.parse().ok()?,
            bytes: bytes.parse().ok()?,
            object: object.parse().ok()?,
            lost: lost.split(',').filter_map(|number| number.parse().ok()).collect(),
        })
    }
}

/// Measures of a transfer.
#[derive(Default)]
struct Found {
    completed: Duration,
    drops: u64,
    peak: usize,
    exit: Option<Duration>,
    began: Option<Timestamp>,
    /// Packets with data that entered the path, and the window, by round trip.
    rounds: Vec<(u64, u32)>,
    window: u32,
}

/// A link of constant rate behind a drop-tail buffer. The packet being sent is not in the buffer.
#[derive(Default)]
struct Link {
    free_at: Option<Timestamp>,
    waiting: VecDeque<(Timestamp, u64)>,
}

impl Link {
    /// The time at which the packet's last bit has left, if there is room for it.
    fn push(&mut self, now: Timestamp, size: u64, transfer: &Transfer) -> Option<Timestamp> {
        while self.waiting.front().is_some_and(|(begins, _)| *begins <= now) {
            self.waiting.pop_front();
        }
        let begins = match self.free_at {
            Some(free_at) if free_at > now => {
                let bytes: u64 = self.waiting.iter().map(|(_, size)| size).sum();
                if self.waiting.len() >= transfer.buffer || bytes + size > transfer.bytes {
                    return None;
                }
                self.waiting.push_back((free_at, size));
                free_at
            }
            _ => now,
        };
        let end = begins + Duration::from_nanos(size * 8_000_000_000 / transfer.bits_per_second);
        self.free_at = Some(end);
        Some(end)
    }
}

struct State {
    transfer: Transfer,
    found: Found,
    start: Option<Timestamp>,
    client: Option<SocketAddr>,
    links: [Link; 2],
    /// Packets that left the link down.
    left: u64,
}

impl State {
    fn round(&mut self, now: Timestamp) -> Option<&mut (u64, u32)> {
        let round = (now - self.found.began?).as_nanos() / self.transfer.rtt.as_nanos();
        let window = self.found.window;
        let length = self.found.rounds.len().max(round as usize + 1);
        self.found.rounds.resize(length, (0, window));
        self.found.rounds.get_mut(round as usize)
    }

    /// The packet's arrival at the other end, unless it gets lost.
    fn carry(&mut self, now: Timestamp, is_down: bool, length: usize) -> Option<Timestamp> {
        if is_down
            && length > LEAST_DATA
            && let Some(round) = self.round(now)
        {
            round.0 += 1;
        }
        let link = &mut self.links[usize::from(is_down)];
        let end = link.push(now, length as u64 + HEADERS, &self.transfer);
        if is_down {
            self.found.peak = self.found.peak.max(link.waiting.len());
            self.found.drops += u64::from(end.is_none());
            if end.is_some() {
                self.left += 1;
                if self.transfer.lost.contains(&(self.left - 1)) {
                    return None;
                }
            }
        }
        Some(end? + self.transfer.rtt / 2)
    }
}

#[derive(Clone)]
struct Path(Arc<Mutex<State>>);

impl Network for Path {
    fn execute(&mut self, buffers: &Buffers) -> usize {
        let now = time::now();
        transmit(buffers, |packet| {
            let state = &mut *self.0.lock().expect("one thread");
            let from: SocketAddr = packet.path.local_address.0.into();
            state.carry(now, Some(from) != state.client, packet.payload.len())
        })
    }
}

impl event::Subscriber for Path {
    type ConnectionContext = ();

    fn create_connection_context(&mut self, _: &ConnectionMeta, _: &event::ConnectionInfo) {}

    fn on_recovery_metrics(&mut self, _: &mut (), _: &ConnectionMeta, event: &events::RecoveryMetrics) {
        let state = &mut *self.0.lock().expect("one thread");
        state.found.window = event.congestion_window;
        if let Some(round) = state.round(time::now()) {
            round.1 = event.congestion_window;
        }
    }

    fn on_slow_start_exited(&mut self, _: &mut (), _: &ConnectionMeta, _: &events::SlowStartExited) {
        let state = &mut *self.0.lock().expect("one thread");
        let now = time::now();
        state.found.exit = state.found.exit.or(state.start.map(|start| now - start));
    }
}

fn build(world: &World, path: Path) -> Result {
    let (certificate, key) = &*CERTIFICATE;
    let io = || world.builder().with_max_mtu(PACKET + HEADERS as u16).build();
    let limits = || {
        Limits::new()
            .with_data_window(WINDOW)
            .and_then(|limits| limits.with_bidirectional_local_data_window(WINDOW))
            .and_then(|limits| limits.with_max_send_buffer_size(WINDOW as u32))
    };
    let tls = rustls::Client::builder().with_certificate(certificate.as_str());
    let tls = tls.and_then(rustls::client::Builder::build).map_err(|error| error.to_string())?;
    let client = Client::builder().with_io(io()?)?.with_tls(tls)?.with_limits(limits()?)?;
    let client = client.with_random(Repeatable::new(1))?.start()?;
    path.0.lock().expect("one thread").client = Some(client.local_addr()?);
    let tls = rustls::Server::builder().with_certificate(certificate.as_str(), key.as_str());
    let tls = tls.and_then(rustls::server::Builder::build).map_err(|error| error.to_string())?;
    let server = Server::builder().with_io(io()?)?.with_tls(tls)?.with_limits(limits()?)?;
    let server = server.with_random(Repeatable::new(2))?.with_event(path.clone())?;
    let mut server = server
        .with_congestion_controller(cubic::Builder::default().with_initial_congestion_window(FIRST).build())?
        .start()?;
    let address = server.local_addr()?;
    let sent = path.clone();
    spawn(async move {
        let mut connection = server.accept().await.expect("a client");
        let mut stream = connection.accept_bidirectional_stream().await.expect("a stream").expect("a stream");
        while let Ok(Some(_)) = stream.receive().await {}
        let object = {
            let state = &mut *sent.0.lock().expect("one thread");
            state.found.began = Some(time::now());
            state.transfer.object as usize
        };
        let _ = stream.send(Bytes::from(vec![0; object])).await;
        let _ = stream.finish();
        time::delay(Duration::from_secs(600)).await;
    });
    primary::spawn(async move {
        let start = time::now();
        path.0.lock().expect("one thread").start = Some(start);
        let mut connection =
            client.connect(Connect::new(address).with_server_name(NAME)).await.expect("an answer");
        let mut stream = connection.open_bidirectional_stream().await.expect("a stream");
        stream.send(Bytes::from_static(&[0; 8])).await.expect("asked");
        stream.finish().expect("asked");
        while stream.receive().await.expect("answered").is_some() {}
        path.0.lock().expect("one thread").found.completed = time::now() - start;
    });
    Ok(())
}

fn main() -> Result {
    let mut out = String::new();
    for line in std::fs::read_to_string(std::env::var("TRANSFERS")?)?.lines() {
        let transfer = Transfer::read(line).ok_or_else(|| format!("`{line}`"))?;
        let state = State {
            transfer,
            found: Found::default(),
            start: None,
            client: None,
            links: Default::default(),
            left: 0,
        };
        let path = Path(Arc::new(Mutex::new(state)));
        let of_run = path.clone();
        virtual_time::test(path.clone(), move |world: &World| build(world, of_run))?;
        let found = &path.0.lock().expect("one thread").found;
        let milliseconds = |span: Duration| format!("{:.3}", span.as_secs_f64() * 1e3);
        let rounds: Vec<String> =
            found.rounds.iter().map(|(sent, window)| format!("{sent}:{window}")).collect();
        out += &format!(
            "{},{},{},{},{}\n",
            milliseconds(found.completed),
            found.drops,
            found.peak,
            found.exit.map_or("-".to_owned(), milliseconds),
            rounds.join(" ")
        );
    }
    std::fs::write(std::env::var("FOUND")?, out)?;
    Ok(())
}
