//! Fast-starting connections, from the first packet to the record written.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use crate::common::{Running, until};
use headstart_quic::token::TokenKeys;
use headstart_quic::{Choice, Gates, Rollout, Sharded, StartReport};
use headstart_units::Span;
use headstart_web::client::{self, KeptConnection};
use headstart_web::identity::Identity;
use headstart_web::open::{self, ServerSettings};
use headstart_web::server::{self, ServerConfig};
use headstart_web::site::Site;
use tokio_util::sync::CancellationToken;

pub type Reports = Arc<Mutex<Vec<StartReport>>>;

/// A server whose clients may choose; collects the report of each connection.
pub fn start(usual: &str, rollout: Rollout) -> (Running, Reports) {
    let keys = tempfile::tempdir().expect("a folder for keys");
    let identity = Identity::load_or_create(keys.path(), &[]).expect("a certificate");
    let (server, reports) = start_as(usual, rollout, &identity);
    (Running { keys, ..server }, reports)
}

/// An endpoint with another certificate.
pub fn start_as(usual: &str, rollout: Rollout, identity: &Identity) -> (Running, Reports) {
    start_with(usual, rollout, identity, None)
}

fn start_with(
    usual: &str,
    rollout: Rollout,
    identity: &Identity,
    token_keys: Option<TokenKeys>,
) -> (Running, Reports) {
    let keys = tempfile::tempdir().expect("a folder for keys");
    let identity = identity.current().expect("a key");
    let choice = Choice::find(usual).expect("a scheme");
    let plan = ServerSettings {
        others: Choice::all().collect(),
        rollout: Arc::new(rollout),
        // The RTT of loopback is below the lowest one for a fast start.
        gates: Gates { shortest_rtt: Span::ZERO, ..Gates::default() },
        token_keys,
        ..ServerSettings::new(&identity, choice, Arc::new(Sharded::new(64)))
    };
    let (endpoint, starts) = open::open(plan, SocketAddr::from(([127, 0, 0, 1], 0))).expect("an endpoint");
    let address = endpoint.local_addr().expect("an address");
    let reports = Reports::default();
    let collected = Arc::clone(&reports);
    let starts = starts.report_to(Arc::new(move |report: &StartReport| {
        collected.lock().expect("not poisoned").push(report.clone())
    }));
    let shutdown = CancellationToken::new();
    let server_config = ServerConfig { scheme_choice: true, ..ServerConfig::default() };
    let site = Arc::new(Site::Generated);
    let done = tokio::spawn(server::serve(
        endpoint.clone(),
        Arc::new(starts),
        site,
        server_config,
        shutdown.clone(),
    ));
    (Running { address, endpoint, shutdown, done, files: crate::common::files(), keys, identity }, reports)
}

async fn last(reports: &Reports, count: usize) -> StartReport {
    let told = || reports.lock().expect("not poisoned").get(count - 1).cloned();
    until(&format!("what the server says of connection {count}"), || told().is_some()).await;
    told().expect("it was there")
}

/// RFC 9000 §5.2.2: below 1200 bytes they must be dropped.
#[tokio::test(flavor = "multi_thread")]
async fn a_small_datagram_of_an_unknown_version_gets_no_answer() {
    let (server, _) = start("headstart", Rollout::default());
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a port");
    socket.connect(server.address).await.expect("an address");
    // Version, and identifiers of eight bytes of the client's choice.
    let datagram = |number: u8, length: usize| {
        let mut bytes = vec![0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8];
        bytes.extend([number; 8]);
        bytes.push(8);
        bytes.extend([number; 8]);
        bytes.resize(length, 0);
        bytes
    };
    for (number, length) in [(1, 26), (2, 1199), (3, 1200)] {
        socket.send(&datagram(number, length)).await.expect("sent");
    }
    let mut answer = [0; 100];
    let count = tokio::time::timeout(crate::common::TIMEOUT, socket.recv(&mut answer)).await;
    let count = count.expect("in time").expect("an answer");
    assert_eq!(answer[..15], [&[answer[0], 0, 0, 0, 0, 8][..], &[3; 8], &[8]].concat(), "to the large one");
    assert!(count < 60, "{count} bytes");
    server.stop().await;
}

/// A client's packets go on to another process, as after a crash: it has the same certificate.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_begins_anew_resets_the_connections_of_the_one_before() {
    let keys = tempfile::tempdir().expect("a folder for keys");
    let identity = Identity::load_or_create(keys.path(), &[]).expect("a certificate");
    let (before, _) = start_as("headstart", Rollout::default(), &identity);
    let address = before.address;
    // Datagrams both ways, until the server is replaced.
    let relay = Arc::new(tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a port"));
    let there = Arc::new(tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a port"));
    let at = relay.local_addr().expect("an address");
    let target = Arc::new(Mutex::new(address));
    let client = Arc::new(Mutex::new(at));
    let (from, to) = (Arc::clone(&relay), Arc::clone(&there));
    let (current, known) = (Arc::clone(&target), Arc::clone(&client));
    tokio::spawn(async move {
        let mut bytes = [0; 2000];
        while let Ok((count, sender)) = from.recv_from(&mut bytes).await {
            *known.lock().expect("not poisoned") = sender;
            let target = *current.lock().expect("not poisoned");
            let _ = to.send_to(&bytes[..count], target).await;
        }
    });
    let current = Arc::clone(&target);
    tokio::spawn(async move {
        let mut bytes = [0; 2000];
        while let Ok((count, sender)) = there.recv_from(&mut bytes).await {
            let client = *client.lock().expect("not poisoned");
            if sender == *current.lock().expect("not poisoned") {
                let _ = relay.send_to(&bytes[..count], client).await;
            }
        }
    });
    let endpoint = noq::Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a socket");
    let trust = client::Trust::AnyCertificate;
    let config = client::plain(client::tls(&trust, None, false).expect("TLS")).expect("QUIC");
    let connection = endpoint.connect_with(config, at, "localhost").expect("begins").await;
    let connection = connection.expect("a connection");
    connection.handshake_confirmed().await.expect("it is");
    // The next one has the port of the former.
    *target.lock().expect("not poisoned") = at;
    before.stop().await;
    let plan = identity.current().expect("a key");
    let plan =
        ServerSettings::new(&plan, Choice::find("headstart").expect("one"), Arc::new(Sharded::new(64)));
    let (next, starts) = open::open(plan, address).expect("the port is free");
    let serving = tokio::spawn(async move {
        let _starts = starts;
        while let Some(incoming) = next.accept().await {
            incoming.ignore();
        }
    });
    *target.lock().expect("not poisoned") = address;
    let mut stream = connection.open_uni().await.expect("a stream");
    stream.write_all(&[7; 10_000]).await.expect("there is room");
    let closed = tokio::time::timeout(crate::common::TIMEOUT / 10, connection.closed()).await;
    assert!(matches!(closed, Ok(noq::ConnectionError::Reset)), "{closed:?}");
    serving.abort();
}

/// rustls keeps 256 tickets, two of each handshake.
#[tokio::test(flavor = "multi_thread")]
async fn handshakes_of_a_stranger_do_not_end_the_0_rtt_of_others() {
    let (server, _) = start("headstart", Rollout::default());
    let config = server.client(None, true);
    assert!(!server.fetch_as(config.clone(), &["/bytes/1000"]).await.early_data);
    let stranger = noq::Endpoint::client(SocketAddr::from(([127, 0, 0, 2], 0))).expect("a socket");
    for _ in 0..150 {
        let connecting = stranger.connect_with(server.client(None, false), server.address, "localhost");
        let connection = connecting.expect("begins").await.expect("a connection");
        connection.handshake_confirmed().await.expect("its tickets are made");
        connection.close(0u32.into(), b"");
    }
    assert!(server.fetch_as(config, &["/bytes/1000"]).await.early_data);
    server.stop().await;
}

/// Servers with one certificate and separate histories, as of an anycast address.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_carries_its_record_to_another_server_that_has_the_key() {
    for (secret, is_known) in [(1, true), (2, false)] {
        let keys = tempfile::tempdir().expect("a folder for keys");
        let identity = Identity::load_or_create(keys.path(), &[]).expect("a certificate");
        let tokens = |secret: u8| TokenKeys::new(&[[secret; 32]]);
        let (here, at_first) = start_with("wise-start", Rollout::default(), &identity, tokens(1));
        let (there, at_last) = start_with("wise-start", Rollout::default(), &identity, tokens(secret));
        let here = Running { keys, ..here };
        let client = here.client(None, false);
        for visit in 1..=2 {
            here.fetch_as(client.clone(), &["/bytes/2000000"]).await;
            last(&at_first, visit).await;
        }
        there.fetch_as(client, &["/bytes/2000000"]).await;
        let known = last(&at_last, 1).await.known;
        assert_eq!(known.is_some(), is_known, "{known:?}");
        // A token has whole microseconds, and the second visit's record.
        let of_token = |report: &StartReport| report.known.map(|known| known.record.btl_bw);
        let second = last(&at_first, 2).await;
        assert_eq!(known.map(|it| it.record.btl_bw), of_token(&second).filter(|_| is_known));
        here.stop().await;
        there.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_supported_scheme_serves_a_page_under_its_name() {
    let (server, reports) = start("iw10", Rollout::default());
    let tuned = ["halfback(additional=25%)", "slow-start(initial-window=20)"];
    let tuned = tuned.map(|text| Choice::find(text).expect("carried"));
    for (number, choice) in Choice::all().chain(tuned).enumerate() {
        let visit = server.fetch_as(server.client(Some(choice.name()), false), &["/bytes/150000"]).await;
        let page = &visit.pages[0];
        assert_eq!((page.bytes, page.scheme.as_deref()), (150_000, Some(choice.name())));
        assert_eq!(last(&reports, number + 1).await.scheme, choice.name());
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unsupported_schemes_are_refused_by_name_and_a_requesting_client_gets_the_default() {
    for name in ["quick-start", "rcp", "pcp"] {
        assert!(Choice::find(name).is_err_and(|refused| refused.to_string().contains(name)));
    }
    let (server, _) = start("halfback", Rollout::default());
    for asked in ["rcp", "nonsense"] {
        let visit = server.fetch_as(server.client(Some(asked), false), &["/bytes/1000"]).await;
        assert_eq!(visit.pages[0].scheme.as_deref(), Some("halfback"));
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_enlarged_by_path_mtu_discovery_belong_to_the_flight() {
    let (server, reports) = start("iw10", Rollout::default());
    let visit = server.fetch(&["/bytes/2000000"]).await;
    assert_eq!(visit.pages[0].bytes, 2_000_000);
    let report = last(&reports, 1).await;
    assert!(report.tally.sent.get() >= 2_000_000, "sent {}, of 2 MB", report.tally.sent.get());
    assert!(report.tally.delivered.get() >= 1_900_000, "delivered {}, of 2 MB", report.tally.delivered.get());
    server.stop().await;
}

/// Either side updates keys after 10 to 1000 packets. Of small requests the client sends most, so
/// that it is often the first. None of these connections stalls.
#[tokio::test(flavor = "multi_thread")]
async fn both_sides_update_keys_in_long_connections() {
    let (server, _) = start("iw10", Rollout::default());
    let server = Arc::new(server);
    let mut visits = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let server = Arc::clone(&server);
        visits.spawn(async move {
            let endpoint = client::endpoint(server.address).expect("a socket");
            let config = server.client(None, false);
            let kept =
                KeptConnection::open(&endpoint, config, server.address, "localhost").await.expect("open");
            let url = &server.plan(&["/bytes/100"]).urls[0];
            for _ in 0..1000 {
                assert_eq!(kept.get(url).await.expect("a page").bytes, 100);
            }
        });
    }
    // One that stalls ends with an error, by the idle timeout.
    visits.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_size_of_a_page_is_known_before_its_first_byte() {
    let (server, reports) = start("jump-start", Rollout::default());
    server.fetch(&["/bytes/60000"]).await;
    let report = last(&reports, 1).await;
    assert_eq!(report.flow_size.map(|size| size.get()), Some(60_000));
    assert_eq!(report.source, headstart_quic::start_report::Source::FlowSize);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_rollout_of_zero_no_connection_uses_the_scheme() {
    let (server, reports) = start("jump-start", Rollout::new(0.0));
    server.fetch(&["/bytes/60000"]).await;
    let report = last(&reports, 1).await;
    assert_eq!(report.arm, headstart_quic::gates::Arm::Control);
    assert_eq!(report.source, headstart_quic::start_report::Source::Nothing);
    server.stop().await;
}

/// The server's connection ID that a client makes up; the stack keeps one in mind for 30 s.
const ID: [u8; 8] = [1; 8];

/// An Initial packet of a client (RFC 9000 §17.2.2) with these frames and reserved bits.
fn initial(keys: &rustls::quic::Keys, number: u8, frames: &[u8], reserved: u8) -> Vec<u8> {
    // The type with a packet number of two bytes, the version, two connection IDs and no token.
    let mut packet = vec![0xC1 | reserved << 2];
    packet.extend(1_u32.to_be_bytes());
    packet.push(8);
    packet.extend(ID);
    packet.push(8);
    packet.extend([9; 8]);
    packet.push(0);
    let length = 2 + frames.len() + keys.local.packet.tag_len();
    packet.extend((0x4000 | length as u16).to_be_bytes());
    let number_at = packet.len();
    packet.extend([0, number]);
    let mut payload = frames.to_vec();
    let tag = keys.local.packet.encrypt_in_place(number.into(), &packet, &mut payload).expect("sealed");
    packet.extend(payload);
    packet.extend(tag.as_ref());
    // RFC 9001 §5.4.2: the sample begins four bytes behind the beginning of the packet number.
    let sample = packet[number_at + 4..number_at + 20].to_vec();
    let (head, rest) = packet.split_at_mut(number_at);
    keys.local.header.encrypt_in_place(&sample, &mut head[0], &mut rest[..2]).expect("protected");
    packet
}

/// noq 1.4 panics at a packet with reserved bits of a connection whose client has closed it. It
/// holds the lock of the endpoint then: one datagram from any address ended the server.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_closes_and_goes_on_against_the_rules_does_not_end_the_server() {
    let (server, _) = start("wise-start", Rollout::default());
    let suite =
        rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256.tls13().and_then(|it| it.quic_suite());
    let suite = suite.expect("for QUIC");
    // CONNECTION_CLOSE without an error, and padding.
    let mut close = vec![0x1C, 0, 0, 0];
    close.resize(1100, 0);
    let keys = suite.keys(&ID, rustls::Side::Client, rustls::quic::Version::V1);
    let mut datagram = initial(&keys, 0, &close, 0);
    datagram.extend(initial(&keys, 1, &[0; 100], 3));
    let client = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
    client.send_to(&datagram, server.address).await.expect("sent");
    assert_eq!(server.fetch(&["/bytes/1000"]).await.pages[0].bytes, 1000);
}
