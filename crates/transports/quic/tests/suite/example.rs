//! The example of an operator's server works as its comments describe.

#[allow(dead_code, reason = "it has a main of its own")]
#[path = "../../examples/existing_server/main.rs"]
mod existing_server;
#[path = "../../../store/tests/fleet/server.rs"]
mod history_server;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use crate::common::{NAME, endpoint, localhost, stock_client, tls};
use headstart_host::not_run;
use headstart_quic::Store as _;
use headstart_store::fleet::{Fleet, Options};
use noq::TokioRuntime;

/// The example's server, and what its clients trust.
fn start(history: String) -> (SocketAddr, Arc<rustls::ClientConfig>) {
    let (server_tls, client_tls) = tls();
    // The example negotiates no ALPN; a server with other protocols rejects clients with some.
    let mut client_tls = (*client_tls).clone();
    client_tls.alpn_protocols.clear();
    let mut server_tls = (*server_tls).clone();
    server_tls.alpn_protocols.clear();
    let socket = localhost();
    let address = socket.local_addr().expect("an address");
    tokio::spawn(async move { existing_server::serve(Arc::new(server_tls), socket, &history).await });
    (address, Arc::new(client_tls))
}

async fn visit(address: SocketAddr, client_tls: &Arc<rustls::ClientConfig>) {
    let (client, config) = (endpoint(None, Arc::new(TokioRuntime)), stock_client(client_tls));
    let visit = async {
        let connection =
            client.connect_with(config, address, NAME).expect("a call").await.expect("an answer");
        let (mut send, mut receive) = connection.open_bi().await.expect("a stream");
        send.write_all(b"?").await.expect("asked");
        receive.read_to_end(2_000_000).await.expect("answered").len()
    };
    let bytes = tokio::time::timeout(Duration::from_secs(60), visit).await.expect("in time");
    assert_eq!(bytes, 1_000_000);
}

/// The example also survives datagrams that belong to no connection, and has no history's server.
#[tokio::test(flavor = "multi_thread")]
async fn the_example_serves_successive_clients() {
    let (address, client_tls) = start("valkey://127.0.0.1:1/".to_owned());
    for _ in 0..2 {
        localhost().send_to(&[0xC0; 1200], address).expect("sent");
        visit(address, &client_tls).await;
    }
}

#[test]
fn ten_lines_of_the_example_are_new_at_most() {
    let text = include_str!("../../examples/existing_server/main.rs");
    let marked: Vec<&str> = text.lines().filter(|line| line.contains("// +")).collect();
    assert!((1..=10).contains(&marked.len()), "{marked:#?}");
    for line in text.lines().filter(|line| line.contains("headstart_") || line.contains("setup")) {
        assert!(marked.contains(&line) || line.starts_with("//"), "not marked as new: {line}");
    }
}

/// Another host of the fleet finds the record that the example measured.
#[tokio::test(flavor = "multi_thread")]
async fn the_example_shares_its_records_with_other_hosts() {
    let Some(server) = history_server::Server::start(&[]) else {
        return not_run("neither valkey-server nor redis-server is installed");
    };
    let (address, client_tls) = start(server.url());
    visit(address, &client_tls).await;
    let other = Fleet::open(server.url().parse().expect("an address"), Options::default()).expect("a thread");
    let peer = IpAddr::from(Ipv4Addr::LOCALHOST);
    history_server::until("the record of the client", || {
        other.prefetch(peer);
        other.flush(history_server::TIMEOUT).is_ok() && other.peek(peer).is_some()
    });
}
