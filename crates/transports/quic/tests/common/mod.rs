//! Parts shared by tests on real sockets: a certificate, a server that sends as many bytes as
//! requested, a relay that delays, and a runtime that logs departures.
#![allow(dead_code, reason = "not every test needs all of it")]
#![expect(clippy::disallowed_methods, reason = "real sockets, real time")]

pub mod machine;

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use headstart_quic::runtime::socket::{SendObserver, Socket};
use headstart_quic::{PendingConnection, PreciseRuntime, ServerSetup};
use noq::udp::Transmit;
use noq::{AsyncTimer, AsyncUdpSocket, Runtime};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

pub const NAME: &str = "localhost";

pub fn tls() -> (Arc<rustls::ServerConfig>, Arc<rustls::ClientConfig>) {
    let issued = rcgen::generate_simple_self_signed([NAME.to_owned()]).expect("a certificate");
    let certificate = issued.cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(issued.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .expect("a fitting key");
    (server.alpn_protocols, server.max_early_data_size) = (vec![b"size".to_vec()], u32::MAX);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).expect("a root");
    let mut client = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    (client.alpn_protocols, client.enable_early_data) = (vec![b"size".to_vec()], true);
    (Arc::new(server), Arc::new(client))
}

/// The stack's own configuration of a server: an operator's existing one.
pub fn stock_server(tls: &Arc<rustls::ServerConfig>) -> noq::ServerConfig {
    let crypto = noq_proto::crypto::rustls::QuicServerConfig::try_from(Arc::clone(tls)).expect("suits QUIC");
    let mut config = noq::ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(transport()));
    config
}

pub fn stock_client(tls: &Arc<rustls::ClientConfig>) -> noq::ClientConfig {
    let crypto = noq_proto::crypto::rustls::QuicClientConfig::try_from(Arc::clone(tls)).expect("suits QUIC");
    let mut config = noq::ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(transport()));
    config
}

pub fn transport() -> noq::TransportConfig {
    let mut transport = noq::TransportConfig::default();
    transport.initial_mtu(1_200).mtu_discovery_config(None);
    transport
}

pub fn localhost() -> UdpSocket {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket")
}

pub fn endpoint(server: Option<noq::ServerConfig>, runtime: Arc<dyn Runtime>) -> noq::Endpoint {
    noq::Endpoint::new(noq::EndpointConfig::default(), server, localhost(), runtime).expect("an endpoint")
}

/// Answers every stream with as many zeros as requested.
pub async fn serve(connection: noq::Connection, handle: Option<headstart_quic::Handle>) {
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let Ok(request) = receive.read_to_end(8).await else { continue };
        let size = u64::from_be_bytes(request.try_into().unwrap_or_default());
        if let Some(handle) = &handle {
            handle.expect(size);
        }
        let _ = send.write_all(&vec![0; size as usize]).await;
        let _ = send.finish();
        let _ = send.stopped().await;
    }
}

/// Accepts with `setup` until the endpoint is closed; keeps the handle of each connection.
pub fn accept_all(
    endpoint: &noq::Endpoint,
    setup: ServerSetup,
    retry: bool,
) -> Arc<Mutex<Vec<(bool, headstart_quic::Handle)>>> {
    let (endpoint, kept) = (endpoint.clone(), Arc::new(Mutex::new(vec![])));
    let handles = Arc::clone(&kept);
    tokio::spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            let is_validated = incoming.remote_address_validated();
            if retry && !is_validated {
                incoming.retry().expect("may retry");
                continue;
            }
            let accepted = setup.accept(incoming).expect("accepted");
            handles.lock().expect("unpoisoned").push((is_validated, accepted.handle.clone()));
            tokio::spawn(answer(accepted));
        }
    });
    kept
}

async fn answer(accepted: PendingConnection) {
    if let Ok((connection, handle)) = accepted.established().await {
        serve(connection, Some(handle)).await;
    }
}

/// Requests `size` bytes; returns the number received.
pub async fn fetch(connection: &noq::Connection, size: u64) -> usize {
    let (mut send, mut receive) = connection.open_bi().await.expect("a stream");
    send.write_all(&size.to_be_bytes()).await.expect("sent");
    send.finish().expect("open");
    receive.read_to_end(size as usize).await.expect("all of it").len()
}

/// Delays every datagram between a client and a server; runs in a thread until it is dropped.
pub struct Relay {
    pub address: SocketAddr,
    is_over: Arc<AtomicBool>,
    pub seen: Arc<Mutex<Seen>>,
}

/// Observations of a relay in the direction of the client.
#[derive(Default)]
pub struct Seen {
    /// Drops new datagrams from this data packet (of 300 bytes or more) on, until a pause.
    pub doomed_from: Option<usize>,
    pub contents: Vec<Vec<u8>>,
    pub repeated: usize,
    pub lost: usize,
    last: Option<Instant>,
}

/// A flight ends when nothing new has arrived for this time.
const PAUSE: Duration = Duration::from_millis(15);

impl Seen {
    /// True if the datagram is forwarded.
    fn meet(&mut self, datagram: &[u8]) -> bool {
        if datagram.len() < 300 || datagram[0] & 0x80 != 0 {
            return true;
        }
        if self.contents.iter().any(|other| other == datagram) {
            self.repeated += 1;
            return true;
        }
        self.contents.push(datagram.to_vec());
        let now = Instant::now();
        let is_pause = self.last.replace(now).is_some_and(|last| now - last > PAUSE);
        if is_pause && self.lost > 0 {
            self.doomed_from = None;
        }
        let is_doomed = self.doomed_from.is_some_and(|from| self.contents.len() > from);
        self.lost += usize::from(is_doomed);
        !is_doomed
    }
}

impl Relay {
    pub fn new(server: SocketAddr, one_way: Duration) -> Self {
        let (near, far, is_over) = (localhost(), localhost(), Arc::new(AtomicBool::new(false)));
        let address = near.local_addr().expect("bound");
        let (flag, seen) = (Arc::clone(&is_over), Arc::<Mutex<Seen>>::default());
        let watch = Arc::clone(&seen);
        std::thread::spawn(move || relay(&near, &far, server, one_way, &flag, &watch));
        Self { address, is_over, seen }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn relay(
    near: &UdpSocket,
    far: &UdpSocket,
    server: SocketAddr,
    delay: Duration,
    is_over: &AtomicBool,
    seen: &Mutex<Seen>,
) {
    for socket in [near, far] {
        socket.set_nonblocking(true).expect("a socket");
    }
    let (mut buf, mut client) = ([0; 2_000], None);
    let mut up: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    let mut down: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    while !is_over.load(Ordering::Relaxed) {
        while let Ok((length, from)) = near.recv_from(&mut buf) {
            client = Some(from);
            up.push_back((Instant::now() + delay, buf[..length].to_vec()));
        }
        while let Ok((length, _)) = far.recv_from(&mut buf) {
            if seen.lock().expect("unpoisoned").meet(&buf[..length]) {
                down.push_back((Instant::now() + delay, buf[..length].to_vec()));
            }
        }
        let now = Instant::now();
        for (queue, socket, to) in [(&mut up, far, Some(server)), (&mut down, near, client)] {
            while queue.front().is_some_and(|(at, _)| *at <= now) {
                if let (Some((_, datagram)), Some(to)) = (queue.pop_front(), to) {
                    let _ = socket.send_to(&datagram, to);
                }
            }
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Waits for a certain event, on a loaded host too.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..60_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("waited a minute in vain: {what}");
}

/// Logs departures: time and size of every datagram.
#[derive(Debug)]
pub struct Watched {
    pub inner: Arc<dyn Runtime>,
    pub log: Log,
}

pub type Log = Arc<Mutex<Vec<(Instant, usize)>>>;

impl Watched {
    pub fn new(inner: Arc<dyn Runtime>) -> (Arc<Self>, Log) {
        let log = Log::default();
        (Arc::new(Self { inner, log: Arc::clone(&log) }), log)
    }

    pub fn precise() -> (Arc<Self>, Log) {
        Self::new(PreciseRuntime::new())
    }
}

impl Runtime for Watched {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        self.inner.new_timer(at)
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.inner.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Box<dyn AsyncUdpSocket>> {
        let inner = self.inner.wrap_udp_socket(socket)?;
        Ok(Box::new(Socket::new(inner, Arc::new(Notes(Arc::clone(&self.log))))))
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }
}

/// Logs each datagram of a send.
#[derive(Debug)]
struct Notes(Log);

impl SendObserver for Notes {
    fn on_sent(&self, transmit: &Transmit<'_>) {
        let (now, segment) = (Instant::now(), transmit.segment_size.unwrap_or(transmit.contents.len()));
        let mut log = self.0.lock().expect("unpoisoned");
        log.extend(transmit.contents.chunks(segment.max(1)).map(|datagram| (now, datagram.len())));
    }
}
