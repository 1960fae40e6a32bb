//! The example of an operator's server works as its comments describe.

#[allow(dead_code, reason = "it has a main of its own")]
#[path = "../../examples/existing_server/main.rs"]
mod existing_server;

use std::sync::Arc;
use std::time::Duration;

use crate::common::{NAME, endpoint, localhost, stock_client, tls};
use noq::TokioRuntime;

/// It also survives datagrams that belong to no connection.
#[tokio::test(flavor = "multi_thread")]
async fn the_example_serves_successive_clients() {
    let (server_tls, client_tls) = tls();
    // The example negotiates no ALPN; a server with other protocols rejects clients with some.
    let mut client_tls = (*client_tls).clone();
    client_tls.alpn_protocols.clear();
    let mut server_tls = (*server_tls).clone();
    server_tls.alpn_protocols.clear();
    let socket = localhost();
    let address = socket.local_addr().expect("an address");
    tokio::spawn(existing_server::serve(Arc::new(server_tls), socket));
    let client = endpoint(None, Arc::new(TokioRuntime));
    for _ in 0..2 {
        localhost().send_to(&[0xC0; 1200], address).expect("sent");
        let config = stock_client(&Arc::new(client_tls.clone()));
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
}
