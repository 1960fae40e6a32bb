//! The example of an operator's server works as its comments describe.

#[allow(dead_code, reason = "it has a main of its own")]
#[path = "../../examples/quinn_server/main.rs"]
mod quinn_server;

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use headstart_virtual_quic::Identity;
use headstart_virtual_quic::identity::NAME;

/// Bytes of an answer to each of two clients, one after the other.
async fn visit_twice(with: bool) -> [usize; 2] {
    let identity = Identity::shared().expect("a certificate");
    let config = quinn_server::yours::config(&identity.server().expect("TLS")).expect("TLS 1.3");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("an address");
    let serving = match with {
        true => tokio::spawn(quinn_server::serve(config, socket)),
        false => tokio::spawn(quinn_server::serve_without(config, socket)),
    };
    // It survives datagrams that belong to no connection.
    let stray = UdpSocket::bind("127.0.0.1:0").expect("a port");
    stray.send_to(&[0xC0; 1200], address).expect("sent");
    let client = quinn::Endpoint::client(([127, 0, 0, 1], 0).into()).expect("a port");
    let mut sizes = [0; 2];
    for size in &mut sizes {
        let tls = identity.client().expect("TLS");
        let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(tls).expect("TLS 1.3");
        let config = quinn::ClientConfig::new(Arc::new(crypto));
        let visit = async {
            let connection =
                client.connect_with(config, address, NAME).expect("a call").await.expect("an answer");
            let (mut send, mut receive) = connection.open_bi().await.expect("a stream");
            send.write_all(b"?").await.expect("asked");
            let size = receive.read_to_end(2_000_000).await.expect("answered").len();
            connection.close(0_u32.into(), b"");
            size
        };
        *size = tokio::time::timeout(Duration::from_secs(60), visit).await.expect("in time");
    }
    serving.abort();
    sizes
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_serves_successive_clients_with_this_crate_and_without() {
    for with in [true, false] {
        assert_eq!(visit_twice(with).await, [1_000_000; 2], "with: {with}");
    }
}
