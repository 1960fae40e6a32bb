//! The example of an operator's server works as its comments describe.

#[allow(dead_code, reason = "it has a main of its own")]
#[path = "../../examples/s2n_server/main.rs"]
mod s2n_server;

use std::time::Duration;

use s2n_quic::client::Connect;

/// Bytes of an answer to each of two clients, one after the other.
async fn visit_twice(with: bool) -> [usize; 2] {
    let certificate = s2n_server::yours::certificate().expect("a certificate");
    let tls = s2n_server::yours::tls(&certificate).expect("TLS");
    let (listening, address) = tokio::sync::oneshot::channel();
    let any_port = ([127, 0, 0, 1], 0).into();
    let serving = match with {
        true => tokio::spawn(s2n_server::serve(tls, any_port, listening)),
        false => tokio::spawn(s2n_server::serve_without(tls, any_port, listening)),
    };
    let address = address.await.expect("the server listens");
    // It survives datagrams that belong to no connection.
    let stray = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    stray.send_to(&[0xC0; 1200], address).expect("sent");
    let client = s2n_quic::Client::builder()
        .with_tls(certificate.0.as_str())
        .expect("TLS")
        .with_io("127.0.0.1:0")
        .expect("a port")
        .start()
        .expect("a client");
    let mut sizes = [0; 2];
    for size in &mut sizes {
        let visit = async {
            let connect = Connect::new(address).with_server_name("localhost");
            let mut connection = client.connect(connect).await.expect("a connection");
            let mut stream = connection.open_bidirectional_stream().await.expect("a stream");
            stream.send(b"?"[..].into()).await.expect("asked");
            stream.finish().expect("asked");
            let mut size = 0;
            while let Some(part) = stream.receive().await.expect("answered") {
                size += part.len();
            }
            connection.close(0_u32.into());
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
