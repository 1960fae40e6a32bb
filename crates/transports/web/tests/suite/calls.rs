//! A client detects a server that is not there.

use std::net::SocketAddr;
use std::time::Duration;

use crate::common::{Running, start};
use headstart_web::client::{self, FetchError, FetchPlan, Visit};
use headstart_web::server::ServerConfig;
use headstart_web::site::Site;
use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout};

/// Generous for a loaded host.
const AGES: Duration = Duration::from_secs(120);

async fn server() -> Running {
    start(ServerConfig::default(), |_| Site::Generated).await
}

async fn fetch(server: &Running, plan: &FetchPlan, remote: SocketAddr) -> Result<Visit, FetchError> {
    let endpoint = client::endpoint(remote).expect("a socket");
    plan.run(&endpoint, server.client(None, false), remote).await
}

/// A closed UDP port, as far as can be determined.
async fn dead_port() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").await.and_then(|socket| socket.local_addr()).expect("a port")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_port_fails_the_connection_at_once() {
    let server = server().await;
    let plan = FetchPlan { timeout: AGES, ..server.plan(&["/bytes/1"]) };
    let dead = dead_port().await;
    let begin = Instant::now();
    let refused = fetch(&server, &plan, dead).await;
    assert!(matches!(refused, Err(FetchError::Refused { remote, .. }) if remote == dead), "{refused:?}");
    assert!(begin.elapsed() < AGES / 2, "at once, and not when patience ends");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_host_is_distinguished_from_a_slow_one() {
    let server = server().await;
    let plan = FetchPlan { timeout: Duration::from_millis(300), ..server.plan(&["/bytes/1"]) };
    let mute = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
    let silent = fetch(&server, &plan, mute.local_addr().expect("an address")).await;
    assert!(matches!(silent, Err(FetchError::NoAnswer { .. })), "{silent:?}");
    let said = silent.expect_err("no answer").to_string();
    assert!(said.contains("UDP, in 0.3 s: expected"), "{said}");

    let much = FetchPlan { timeout: Duration::from_millis(300), ..server.plan(&["/bytes/1000000000"]) };
    let slow = fetch(&server, &much, server.address).await;
    assert!(matches!(slow, Err(FetchError::TimedOut { .. })), "{slow:?}");
    let said = slow.expect_err("too slow").to_string();
    assert!(said.ends_with("not complete after 0.3 s"), "{said}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_client_can_connect_again() {
    let server = server().await;
    let plan = FetchPlan { timeout: AGES, ..server.plan(&["/bytes/1000"]) };
    // A port that is closed at first and a relay to the server later.
    let port = dead_port().await;
    let endpoint = client::endpoint(port).expect("a socket");
    let refused = plan.run(&endpoint, server.client(None, false), port).await;
    assert!(matches!(refused, Err(FetchError::Refused { .. })), "{refused:?}");
    let relay = Relay::open(port, server.address).await;
    let visit = plan.run(&endpoint, server.client(None, false), port).await.expect("a page");
    assert_eq!(visit.pages[0].bytes, 1000);
    relay.close();
    server.stop().await;
}

/// ICMP is not authenticated: it does not end an open connection, and the peer may return.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_does_not_end_a_connection_that_is_open() {
    let server = server().await;
    let relay = Relay::open(dead_port().await, server.address).await;
    let remote = relay.address;
    let plan = FetchPlan { timeout: Duration::from_secs(3), ..server.plan(&["/bytes/1000000000"]) };
    let endpoint = client::endpoint(remote).expect("a socket");
    let calling = endpoint.clone();
    let config = server.client(None, false);
    let fetching = tokio::spawn(async move { plan.run(&calling, config, remote).await });
    // The handshake and more: the server's flight is one or two reads.
    let open = async {
        while endpoint.reads() < 20 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(AGES, open).await.expect("the answer begins");
    relay.close();
    let ended = fetching.await.expect("no panic");
    assert!(matches!(ended, Err(FetchError::TimedOut { .. })), "{ended:?}");
    server.stop().await;
}

/// Relays datagrams between one client and a server until it is closed; then its port is closed.
struct Relay {
    address: SocketAddr,
    carrying: tokio::task::JoinHandle<()>,
}

impl Relay {
    async fn open(at: SocketAddr, server: SocketAddr) -> Self {
        let outside = UdpSocket::bind(at).await.expect("a port that was free");
        let inside = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
        inside.connect(server).await.expect("a way");
        let address = outside.local_addr().expect("an address");
        let carrying = tokio::spawn(async move {
            let (mut up, mut down) = ([0; 65536], [0; 65536]);
            let mut client = None;
            loop {
                tokio::select! {
                    Ok((length, from)) = outside.recv_from(&mut up) => {
                        client = Some(from);
                        let _ = inside.send(&up[..length]).await;
                    }
                    Ok(length) = inside.recv(&mut down) => {
                        if let Some(client) = client {
                            let _ = outside.send_to(&down[..length], client).await;
                        }
                    }
                    else => {}
                }
            }
        });
        Self { address, carrying }
    }

    fn close(&self) {
        self.carrying.abort();
    }
}
