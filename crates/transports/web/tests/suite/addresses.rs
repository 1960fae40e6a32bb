//! Clients that send in the name of another address, and clients whose address changes.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use headstart_quic::Rollout;
use headstart_web::client::Trust;
use headstart_web::identity::Identity;
use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, Endpoint, EndpointConfig, Runtime as _, TokioRuntime, UdpSender};

use crate::common::TIMEOUT;
use crate::starts;

/// Sends from a second address on demand, which stands for one that is forged: datagrams that
/// arrive there are counted, and nobody answers.
#[derive(Debug)]
struct Victim {
    socket: UdpSocket,
    is_named: AtomicBool,
    /// Bytes sent in its name.
    named: AtomicU64,
    /// Length to which datagrams are filled up.
    filled: AtomicUsize,
}

impl Victim {
    fn new() -> Arc<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.set_nonblocking(true).expect("a socket");
        Arc::new(Self {
            socket,
            is_named: AtomicBool::new(false),
            named: AtomicU64::new(0),
            filled: AtomicUsize::new(0),
        })
    }

    /// Bytes that have arrived.
    fn received(&self) -> u64 {
        let mut buffer = [0; 2048];
        std::iter::from_fn(|| self.socket.recv(&mut buffer).ok()).map(|bytes| bytes as u64).sum()
    }
}

#[derive(Debug)]
struct Forging {
    inner: Box<dyn AsyncUdpSocket>,
    victim: Arc<Victim>,
}

impl AsyncUdpSocket for Forging {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(ForgingSender { inner: self.inner.create_sender(), victim: Arc::clone(&self.victim) })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [io::IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.inner.poll_recv(cx, bufs, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

#[derive(Debug)]
struct ForgingSender {
    inner: Pin<Box<dyn UdpSender>>,
    victim: Arc<Victim>,
}

impl UdpSender for ForgingSender {
    fn poll_send(
        self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { inner, victim } = self.get_mut();
        if !victim.is_named.load(Ordering::Relaxed) {
            return inner.as_mut().poll_send(transmit, cx);
        }
        let mut datagram = transmit.contents.to_vec();
        let length = datagram.len().max(victim.filled.load(Ordering::Relaxed));
        datagram.resize(length, 0);
        victim.named.fetch_add(length as u64, Ordering::Relaxed);
        Poll::Ready(victim.socket.send_to(&datagram, transmit.destination).map(drop))
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        NonZeroUsize::MIN
    }
}

fn client(victim: &Arc<Victim>) -> Endpoint {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let inner = TokioRuntime.wrap_udp_socket(socket).expect("a socket");
    let socket = Box::new(Forging { inner, victim: Arc::clone(victim) });
    let config = EndpointConfig::default();
    Endpoint::new_with_abstract_socket(config, None, socket, Arc::new(TokioRuntime)).expect("an endpoint")
}

fn config() -> noq::ClientConfig {
    let tls = headstart_web::client::tls(&Trust::AnyCertificate, None, false).expect("TLS");
    headstart_web::client::plain(tls).expect("QUIC")
}

/// A certificate of that many names, whose length they make.
fn identity(folder: &std::path::Path, names: usize) -> Identity {
    let paths = ["certificate.pem", "key.pem"].map(|name| folder.join(name));
    let names: Vec<String> = (0..names).map(|n| format!("host-{n}.example.org")).collect();
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    std::fs::write(&paths[0], made.cert.pem()).expect("a file");
    std::fs::write(&paths[1], made.signing_key.serialize_pem()).expect("a file");
    Identity::from_pem(&paths[0], &paths[1]).expect("a pair")
}

/// RFC 9000 §8.1. The certificate's names make chains of one datagram up to several.
#[tokio::test(flavor = "multi_thread")]
async fn before_its_handshake_an_address_gets_three_times_its_bytes_at_most() {
    for names in [0, 60, 130, 200, 330] {
        let keys = tempfile::tempdir().expect("a folder");
        let identity = identity(keys.path(), names);
        let (server, _) = starts::start_as("iw10", Rollout::default(), &identity);
        let mut forged = vec![];
        for filled in [1200, 1201, 1220, 1250, 1300, 1399, 1472] {
            let victim = Victim::new();
            victim.is_named.store(true, Ordering::Relaxed);
            victim.filled.store(filled, Ordering::Relaxed);
            let endpoint = client(&victim);
            let connecting = endpoint.connect_with(config(), server.address, "localhost");
            forged.push((filled, victim, endpoint, connecting.expect("begins")));
        }
        // The server's first probe comes after a second.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        for (filled, victim, ..) in &forged {
            let (named, received) = (victim.named.load(Ordering::Relaxed), victim.received());
            assert!(received > 0, "{filled}: no answer");
            assert!(received <= 3 * named, "{names} names, {filled}: {received} bytes for {named}");
        }
        let honest = Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a socket");
        let connecting = honest.connect_with(config(), server.address, "localhost");
        let begun = tokio::time::Instant::now();
        let connection = connecting.expect("begins").await.expect("a connection");
        assert!(begun.elapsed() < Duration::from_secs(20), "{names} names: {:?}", begun.elapsed());
        connection.close(0_u32.into(), b"");
        server.endpoint.close(0_u32.into(), b"");
    }
}

/// RFC 9000 §9.3: a client sends from its address and in the name of another, in turns.
#[tokio::test(flavor = "multi_thread")]
async fn changes_of_path_send_an_address_three_times_what_came_in_its_name() {
    for scheme in ["iw10", "wise-start", "halfback", "proactive", "headstart"] {
        let (server, _) = starts::start(scheme, Rollout::default());
        let victim = Victim::new();
        let endpoint = client(&victim);
        let connecting = endpoint.connect_with(config(), server.address, "localhost");
        let connection = connecting.expect("begins").await.expect("a connection");
        // Something is under way all the time.
        let (mut request, _answer) = connection.open_bi().await.expect("a stream");
        request.write_all(&crate::hostile::request("/bytes/100000000")).await.expect("sent");
        for _ in 0..100 {
            for is_named in [false, true] {
                victim.is_named.store(is_named, Ordering::Relaxed);
                if let Some(path) = connection.path(noq::PathId::ZERO) {
                    let _ = path.ping();
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        let (named, received) = (victim.named.load(Ordering::Relaxed), victim.received());
        println!("{scheme}: {received} bytes for {named}");
        assert!(named >= 2000, "{scheme}: {named} bytes were sent in its name");
        assert!(received <= 3 * named, "{scheme}: {received} bytes for {named}");
        server.endpoint.close(0_u32.into(), b"");
    }
}

/// A NAT that gives its client another port again and again while an answer is under way.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_complete_although_the_address_of_its_client_changes() {
    for scheme in ["iw10", "wise-start", "halfback", "proactive"] {
        let (server, _) = starts::start(scheme, Rollout::default());
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let endpoint = Endpoint::client(local).expect("a socket");
        let mut config = config();
        let mut transport = noq::TransportConfig::default();
        // Slow enough for many changes.
        transport.stream_receive_window(60_000_u32.into());
        config.transport_config(Arc::new(transport));
        let connecting = endpoint.connect_with(config, server.address, "localhost");
        let connection = connecting.expect("begins").await.expect("a connection");
        let (mut request, mut answer) = connection.open_bi().await.expect("a stream");
        request.write_all(&crate::hostile::request("/bytes/3000000")).await.expect("sent");
        request.finish().expect("open");
        let mut bytes = 0;
        let read = async {
            while let Some(chunk) = answer.read_chunk(60_000).await.expect("it goes on") {
                bytes += chunk.len();
                if bytes % 3 == 0 {
                    endpoint.rebind(UdpSocket::bind(local).expect("a port")).expect("another socket");
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, read).await.expect("in time");
        assert!((3_000_000..3_001_000).contains(&bytes), "{scheme}: {bytes}");
        server.endpoint.close(0_u32.into(), b"");
    }
}
