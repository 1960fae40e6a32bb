//! Bounds on what clients can occupy: connections, handshakes, and answers that they do not read.

use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Running, TIMEOUT, start, start_with, until};
use headstart_web::access_log::{AccessLog, Destination};
use headstart_web::admission::{Admission, Plain, Session};
use headstart_web::client;
use headstart_web::identity::Identity;
use headstart_web::places::ConnectionCounters;
use headstart_web::server::{self, ServerConfig};
use headstart_web::site::Site;
use noq::{Connecting, Connection, ConnectionError, Endpoint, Incoming, VarInt};
use tokio::net::UdpSocket;
use tokio_util::sync::CancellationToken;

fn generated(_: &tempfile::TempDir) -> Site {
    Site::Generated
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_beyond_the_limit_are_refused_until_there_is_room() {
    let server_config = ServerConfig { most_connections: 2, ..ServerConfig::default() };
    let server = start(server_config, generated).await;
    let endpoint = Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a socket");
    let dial = || async {
        let connecting = endpoint.connect_with(server.client(None, false), server.address, "localhost");
        connecting.expect("begins").await
    };
    let (first, _second) = (dial().await.expect("room"), dial().await.expect("room"));
    let refused = dial().await.expect_err("no room");
    assert!(
        matches!(&refused, ConnectionError::ConnectionClosed(close)
        if u64::from(close.error_code) == 0x2),
        "{refused}"
    );
    first.close(0u32.into(), b"");
    // The server keeps a closed connection for three probe timeouts.
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    while dial().await.is_err() {
        assert!(tokio::time::Instant::now() < deadline, "no room after one has left");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server.stop().await;
}

/// A connection from 127.0.0.`host`.
#[cfg(target_os = "linux")]
async fn dial_from(server: &Running, host: u8) -> Result<Connection, ConnectionError> {
    let endpoint = Endpoint::client(SocketAddr::from(([127, 0, 0, host], 0))).expect("a socket");
    let connecting = endpoint.connect_with(server.client(None, false), server.address, "localhost");
    connecting.expect("begins").await
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn an_address_gets_its_share_and_others_are_served() {
    let server_config = ServerConfig { most_per_address: 2, ..ServerConfig::default() };
    let counters = server_config.connections.clone();
    let server = start(server_config, generated).await;
    let (first, second) =
        (dial_from(&server, 1).await.expect("room"), dial_from(&server, 1).await.expect("room"));
    let refused = dial_from(&server, 1).await.expect_err("its share is taken");
    assert!(
        matches!(&refused, ConnectionError::ConnectionClosed(close) if u64::from(close.error_code) == 0x2),
        "{refused}"
    );
    let other = dial_from(&server, 2).await.expect("another address");
    assert!(
        counters.render().contains("_total{transport=\"quic\",limit=\"address\"} 1\n"),
        "{}",
        counters.render()
    );
    other.close(0u32.into(), b"");
    until("the other is forgotten", || server.endpoint.open_connections() == 2).await;
    until("its place is free", || has_places(&counters, 2)).await;
    // A connection counts until the stack has forgotten it: else a client that opens and closes one
    // after the other would have more.
    first.close(0u32.into(), b"");
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    let third = loop {
        if let Ok(connection) = dial_from(&server, 1).await {
            break connection;
        }
        assert!(tokio::time::Instant::now() < deadline, "no room after one has left");
    };
    assert_eq!(server.endpoint.open_connections(), 2);
    drop((second, third));
    server.stop().await;
}

/// The server's endpoint, and the address of a host in whose name handshakes are begun.
async fn begin_forged_handshake(server_config: ServerConfig) -> (Endpoint, CancellationToken) {
    let keys = tempfile::tempdir().expect("a folder");
    let identity = Identity::load_or_create(keys.path(), &[]).expect("a certificate");
    let tls = server::tls(&identity.current().expect("a key")).expect("TLS");
    let crypto = noq::crypto::rustls::QuicServerConfig::try_from(tls).expect("for QUIC");
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let endpoint = Endpoint::server(noq::ServerConfig::with_crypto(Arc::new(crypto)), any).expect("a port");
    let (address, shutdown) = (endpoint.local_addr().expect("an address"), CancellationToken::new());
    let site = Arc::new(Site::Generated);
    tokio::spawn(server::serve(endpoint.clone(), Arc::new(Plain), site, server_config, shutdown.clone()));
    let trust = client::Trust::File(keys.path().join("identity.pem"));
    let config = client::plain(client::tls(&trust, None, false).expect("TLS")).expect("QUIC");
    forge_handshake(config, address).await;
    (endpoint, shutdown)
}

/// Forwards what a client sends, and drops the answers.
async fn forge_handshake(config: noq::ClientConfig, address: SocketAddr) {
    relay_handshake(config, address, 0).await;
}

/// Forwards the client's first packets and the answers to them, that many times; then once more
/// what the client sends, and drops the answer.
async fn relay_handshake(config: noq::ClientConfig, address: SocketAddr, answers: usize) {
    let forger = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
    let dialler = Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a socket");
    let towards = forger.local_addr().expect("an address");
    let _stays_open = dialler.connect_with(config, towards, "localhost").expect("begins");
    let mut packet = [0; 2048];
    for left in (0..=answers).rev() {
        let (length, client) = forger.recv_from(&mut packet).await.expect("a packet of the client");
        forger.send_to(&packet[..length], address).await.expect("sent");
        // The answer is a Retry or the handshake: either way the server has decided.
        let (length, from) = forger.recv_from(&mut packet).await.expect("an answer");
        assert_eq!(from, address);
        if left > 0 {
            forger.send_to(&packet[..length], client).await.expect("sent");
        }
    }
}

/// The address is not validated by the time, or it is, by a Retry. The place is free when the stack
/// has forgotten the connection.
#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_that_does_not_go_on_is_forgotten_in_time() {
    for retry in [false, true] {
        let handshake = Duration::from_millis(300);
        let server_config = ServerConfig { handshake, retry, ..ServerConfig::default() };
        let counters = server_config.connections.clone();
        let server = start(server_config, generated).await;
        let begun = tokio::time::Instant::now();
        relay_handshake(server.client(None, false), server.address, usize::from(retry)).await;
        until("the handshake is forgotten", || server.endpoint.open_connections() == 0).await;
        until("its place is free", || has_places(&counters, 0)).await;
        let took = begun.elapsed();
        // The stack forgets a silent connection after 30 s.
        assert!((handshake..Duration::from_secs(20)).contains(&took), "retry {retry}: {took:?}");
        server.stop().await;
    }
}

fn has_places(counters: &ConnectionCounters, taken: usize) -> bool {
    counters.render().contains(&format!("open_connections{{transport=\"quic\"}} {taken}\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn with_retry_nothing_is_kept_of_an_address_before_it_is_validated() {
    let server_config = ServerConfig { retry: true, ..ServerConfig::default() };
    let (endpoint, shutdown) = begin_forged_handshake(server_config).await;
    assert_eq!(endpoint.open_connections(), 0);
    shutdown.cancel();
}

/// Forged handshakes get a tenth of the address's share at most. Its owner then shows by a Retry
/// that the address is its own.
#[tokio::test(flavor = "multi_thread")]
async fn forged_handshakes_do_not_keep_the_owner_of_the_address_out() {
    let server_config =
        ServerConfig { most_per_address: 2, grace: Duration::ZERO, ..ServerConfig::default() };
    let server = start(server_config, generated).await;
    for _ in 0..3 {
        forge_handshake(server.client(None, false), server.address).await;
    }
    assert_eq!(server.endpoint.open_connections(), 1, "nothing is kept of the others");
    assert_eq!(server.fetch(&["/bytes/1000"]).await.pages[0].bytes, 1_000);
    server.stop().await;
}

/// A client that has shown its address does not make the next ones show theirs.
#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn validated_clients_leave_the_tenth_of_an_address_to_others() {
    let server_config =
        ServerConfig { most_per_address: 10, grace: Duration::ZERO, ..ServerConfig::default() };
    let server = start(server_config, generated).await;
    let kept = dial_from(&server, 1).await.expect("room");
    // The control stream is opened after the handshake.
    let _control = kept.accept_uni().await.expect("a stream");
    forge_handshake(server.client(None, false), server.address).await;
    assert_eq!(server.endpoint.open_connections(), 2, "no Retry");
    drop(kept);
    server.stop().await;
}

/// Keeps the server's connections.
#[derive(Debug, Default)]
struct Watched(Arc<Mutex<Vec<Connection>>>);

#[derive(Debug)]
struct WatchedSession(Arc<Mutex<Vec<Connection>>>);

impl Admission for Watched {
    type Session = WatchedSession;

    fn admit(
        &self,
        incoming: Incoming,
        _: Option<&str>,
    ) -> Result<(Connecting, WatchedSession), ConnectionError> {
        Ok((incoming.accept()?, WatchedSession(Arc::clone(&self.0))))
    }
}

impl Session for WatchedSession {
    fn established(&self, connection: &Connection) {
        self.0.lock().expect("not poisoned").push(connection.clone());
    }

    fn will_send(&self, _: &Connection, _: u64) {}

    fn scheme(&self) -> Option<&str> {
        None
    }

    fn closed(&self, _: &Connection, _: &ConnectionError) {}
}

/// A request for a gigabyte: HEADERS (RFC 9114 §7.2.2), static names (RFC 9204, Appendix A).
fn request_of_a_gigabyte() -> Vec<u8> {
    let path = b"/bytes/1073741824";
    let mut fields = vec![0, 0, 0xd1, 0xd7, 0x50, 9];
    fields.extend(b"localhost");
    fields.extend([0x51, path.len() as u8]);
    fields.extend(path);
    [vec![0x01, fields.len() as u8], fields].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_gets_no_more_than_it_allows_and_delays_nobody() {
    let watched = Watched::default();
    let connections = Arc::clone(&watched.0);
    let server = start_with(Arc::new(watched), ServerConfig::default(), generated).await;
    let endpoint = Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a socket");
    let connecting = endpoint.connect_with(server.client(None, false), server.address, "localhost");
    let slow = connecting.expect("begins").await.expect("a connection");
    let mut control = slow.open_uni().await.expect("a stream");
    // The control stream, with empty SETTINGS (RFC 9114 §6.2.1).
    control.write_all(&[0x00, 0x04, 0x00]).await.expect("sent");
    let (mut request, _unread) = slow.open_bi().await.expect("a stream");
    request.write_all(&request_of_a_gigabyte()).await.expect("sent");
    request.finish().expect("open");
    // The client can be established before the server is.
    let sent = || {
        connections
            .lock()
            .expect("not poisoned")
            .first()
            .map_or(0, |connection| connection.stats().udp_tx.bytes)
    };
    // As much as the client's flow control allows, 1.25 MB of a stream by default.
    until("the answer begins", || sent() > 1_000_000).await;
    let mut before = 0;
    while before != sent() {
        before = sent();
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let visit = server.fetch(&["/bytes/3000000"]).await;
    assert_eq!(visit.pages[0].bytes, 3_000_000, "the others are served meanwhile");
    assert!(sent() < 2_000_000, "{} bytes to a client that reads nothing", sent());
    slow.close(0u32.into(), b"");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_clients_has_a_bound_in_all_and_the_smallest_window_still_serves() {
    let server_config = ServerConfig { most_unsent: 1, ..ServerConfig::default() };
    let server = start(server_config, generated).await;
    assert_eq!(server.fetch(&["/bytes/3000000"]).await.pages[0].bytes, 3_000_000);
    server.stop().await;

    let server_config = ServerConfig::default();
    let windows = |connections: usize| (1..=connections).map(|open| server_config.send_window(open));
    assert_eq!(windows(100).min(), windows(1).max(), "a hundred connections have all they want");
    assert!(windows(10_000).all(|window| window >= 64 * 1024));
    let in_all: u64 = windows(10_000).sum();
    assert!(in_all < 6 << 30, "{in_all} bytes, if all clients stop to acknowledge");
}

/// Bytes of an answer that a client gets written who is willing to take all of it, and from whom no
/// acknowledgement comes.
async fn written_without_acknowledgements(most_unsent: u64) -> u64 {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("log");
    let log = AccessLog::open(Destination::File(file.clone())).expect("a file");
    let server_config =
        ServerConfig { most_unsent, access_log: Some(log), grace: Duration::ZERO, ..ServerConfig::default() };
    let server = start(server_config, generated).await;
    let relay = Arc::new(UdpSocket::bind("127.0.0.1:0").await.expect("a port"));
    let (towards, behind) = (relay.local_addr().expect("an address"), server.address);
    let left = Arc::new(AtomicUsize::new(usize::MAX));
    let budget = Arc::clone(&left);
    let relaying = tokio::spawn(async move {
        let (mut packet, mut client) = ([0; 2048], behind);
        loop {
            let (length, from) = relay.recv_from(&mut packet).await.expect("a datagram");
            let to = if from == behind { client } else { behind };
            if from != behind {
                client = from;
                if budget.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err() {
                    continue;
                }
            }
            relay.send_to(&packet[..length], to).await.expect("sent");
        }
    });
    let mut config = server.client(None, false);
    let mut transport = noq::TransportConfig::default();
    transport.stream_receive_window(VarInt::MAX).receive_window(VarInt::MAX);
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a socket");
    let connection =
        endpoint.connect_with(config, towards, "localhost").expect("begins").await.expect("a connection");
    // The end of the handshake.
    tokio::time::sleep(Duration::from_millis(300)).await;
    left.store(2, Relaxed);
    let (mut request, _answer) = connection.open_bi().await.expect("a stream");
    request.write_all(&request_of_a_gigabyte()).await.expect("sent");
    tokio::time::sleep(Duration::from_millis(1000)).await;
    server.stop().await;
    let logged = || std::fs::read_to_string(&file).unwrap_or_default();
    until("a line", || logged().ends_with('\n')).await;
    relaying.abort();
    // Behind it are referrer and user agent, both `"-"`.
    logged().trim().rsplit(' ').nth(2).and_then(|bytes| bytes.parse().ok()).expect("a number of bytes")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_waits_for_acknowledgements_behind_the_send_window() {
    let (least, usual) =
        (written_without_acknowledgements(1).await, written_without_acknowledgements(1 << 30).await);
    // With a piece of 64 KiB that is not written whole.
    assert!(least <= 3 * 64 * 1024, "{least} bytes");
    assert!((9_000_000..11_000_000).contains(&usual), "{usual} bytes");
}
