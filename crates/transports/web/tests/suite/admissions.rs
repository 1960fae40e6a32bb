//! Events of an admission before and during each connection, and the scheme reported to clients.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Running, TIMEOUT, folder, start, start_with, until};
use headstart_web::admission::{Admission, Session};
use headstart_web::client;
use headstart_web::server::ServerConfig;
use headstart_web::site::Site;
use noq::{Connecting, Connection, ConnectionError, Incoming};

#[derive(Debug, Default)]
struct EventLog {
    events: Arc<Mutex<Vec<String>>>,
}

#[derive(Debug)]
struct LoggedSession {
    all: Arc<Mutex<Vec<String>>>,
    scheme: String,
}

impl LoggedSession {
    fn log(&self, what: String) {
        self.all.lock().expect("not poisoned").push(what);
    }
}

impl Admission for EventLog {
    type Session = LoggedSession;

    fn admit(
        &self,
        incoming: Incoming,
        scheme: Option<&str>,
    ) -> Result<(Connecting, LoggedSession), ConnectionError> {
        let scheme = scheme.unwrap_or("the usual").to_owned();
        let events = LoggedSession { all: Arc::clone(&self.events), scheme };
        events.log(format!("{}, validated {}", events.scheme, incoming.remote_address_validated()));
        Ok((incoming.accept()?, events))
    }
}

impl Session for LoggedSession {
    fn established(&self, _: &Connection) {
        self.log("established".into());
    }

    fn will_send(&self, _: &Connection, bytes: u64) {
        self.log(format!("will send {bytes}"));
    }

    fn scheme(&self) -> Option<&str> {
        Some(&self.scheme)
    }

    fn closed(&self, _: &Connection, reason: &ConnectionError) {
        let code = match reason {
            ConnectionError::ApplicationClosed(close) => close.error_code.into_inner(),
            other => return self.log(format!("closed: {other}")),
        };
        self.log(format!("closed by the peer with {code:#x}"));
    }
}

fn event_log() -> (Arc<EventLog>, Arc<Mutex<Vec<String>>>) {
    let admission = EventLog::default();
    let events = Arc::clone(&admission.events);
    (Arc::new(admission), events)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admission_observes_a_connection_and_the_size_of_each_response() {
    let (admission, events) = event_log();
    let server = start_with(admission, ServerConfig::default(), folder).await;
    server.fetch(&["/picture.png"]).await;
    // A server closes its connections at shutdown: the client's own close must arrive before.
    let closed = || events.lock().expect("not poisoned").iter().any(|line| line.starts_with("closed"));
    until("the client's close", closed).await;
    server.stop().await;
    let events = events.lock().expect("not poisoned").clone();
    assert_eq!(
        events,
        ["the usual, validated false", "established", "will send 300000", "closed by the peer with 0x100"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_may_request_a_scheme_if_the_server_allows_it() {
    for (allows, told) in [(true, Some("halfback")), (false, None)] {
        let (admission, events) = event_log();
        let server_config = ServerConfig { scheme_choice: allows, ..ServerConfig::default() };
        let server = start_with(admission, server_config, folder).await;
        let visit = server.fetch_as(server.client(Some("halfback"), false), &["/"]).await;
        assert_eq!(visit.pages[0].scheme.as_deref(), told);
        let first = events.lock().expect("not poisoned")[0].clone();
        assert_eq!(first.starts_with("halfback"), allows, "{first}");
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_scheme_choice_ignores_requests() {
    let server = start(ServerConfig::default(), folder).await;
    let visit = server.fetch_as(server.client(Some("halfback"), false), &["/"]).await;
    assert_eq!((visit.pages[0].bytes, visit.pages[0].scheme.clone()), (13, None));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_validates_an_address_and_a_token_spares_the_next_connection_it() {
    for (retry, expected) in [(true, [true, true]), (false, [false, true])] {
        let (admission, events) = event_log();
        let server = start_with(admission, ServerConfig { retry, ..ServerConfig::default() }, folder).await;
        let config = server.client(None, false);
        let first = server.fetch_as(config.clone(), &["/"]).await;
        let second = server.fetch_as(config, &["/"]).await;
        assert_eq!([first.pages[0].bytes, second.pages[0].bytes], [13, 13]);
        server.stop().await;
        let events = events.lock().expect("not poisoned").clone();
        let validated: Vec<bool> =
            events.iter().filter_map(|line| line.split_once(", validated ")?.1.parse().ok()).collect();
        assert_eq!(validated, expected, "retry {retry}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_shuts_down_finishes_its_responses() {
    let (admission, events) = event_log();
    let server_config = ServerConfig { grace: TIMEOUT, ..ServerConfig::default() };
    let server = start_with(admission, server_config, |_| Site::Generated).await;
    let fetch = server.plan(&["/bytes/50000000"]);
    let config = server.client(None, false);
    let endpoint = client::endpoint(server.address).expect("a socket");
    let address = server.address;
    let fetching = tokio::spawn(async move { fetch.run(&endpoint, config, address).await });
    let asked = || events.lock().expect("not poisoned").iter().any(|line| line.starts_with("will send"));
    until("a request", asked).await;
    server.stop().await;
    let visit = fetching.await.expect("no panic").expect("the whole answer");
    assert_eq!(visit.pages[0].bytes, 50_000_000);
}

/// Datagrams of a client that begins with a request in 0-RTT, as many as it sends at once; the
/// answers are lost.
pub async fn begin_early(config: noq::ClientConfig, server: &Running, bytes: &[u8]) {
    let relay = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a port");
    let dialler = noq::Endpoint::client(([127, 0, 0, 1], 0).into()).expect("a socket");
    let towards = relay.local_addr().expect("an address");
    let connecting = dialler.connect_with(config, towards, "localhost").expect("begins");
    let (connection, _) = connecting.into_0rtt().expect("a ticket");
    let (mut request, _answer) = connection.open_bi().await.expect("a stream");
    request.write_all(bytes).await.expect("sent");
    request.finish().expect("open");
    let mut packet = [0; 2048];
    loop {
        let sent = tokio::time::timeout(Duration::from_millis(100), relay.recv_from(&mut packet)).await;
        let Ok(received) = sent else { return };
        let (length, from) = received.expect("a datagram");
        if from != server.address {
            relay.send_to(&packet[..length], server.address).await.expect("sent");
        }
    }
}

/// Without a token from before, anybody may have sent the request in another's name.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_in_0_rtt_waits_for_the_handshake_unless_its_address_is_validated() {
    for has_token in [true, false] {
        let (admission, events) = event_log();
        let server = start_with(admission, ServerConfig::default(), folder).await;
        let mut config = server.client(None, true);
        server.fetch_as(config.clone(), &["/"]).await;
        if !has_token {
            config.token_store(Arc::new(noq::TokenMemoryCache::default()));
        }
        begin_early(config, &server, b"a request, which is not read").await;
        let events = || events.lock().expect("not poisoned").clone();
        let count = |word: &str| events().iter().filter(|line| line.starts_with(word)).count();
        until("the second connection", || count("the usual") == 2).await;
        if has_token {
            until("it is served", || count("established") == 2).await;
        } else {
            tokio::time::sleep(Duration::from_millis(200)).await;
            assert_eq!(count("established"), 1, "{:?}", events());
        }
        server.shutdown.cancel();
    }
}
