//! Interoperation with the unmodified stack: hints are ignored, and every protocol feature works.

use std::sync::Arc;

use crate::common::{accept_all, endpoint, fetch, serve, stock_client, stock_server, tls, transport, until};
use headstart_quic::session::HandshakeData;
use headstart_quic::{Access, Choice, ClientSetup, Hint, PreciseRuntime, ServerSetup};
use headstart_units::Rate;
use noq::TokioRuntime;

const HINT: Hint = Hint { bandwidth: Rate::from_bits_per_sec(24_576_000), access: Access::Dsl };

fn setup(server: &Arc<rustls::ServerConfig>, scheme: &str, runtime: &PreciseRuntime) -> ServerSetup {
    let choice = Choice::find(scheme).expect("carried");
    let setup = ServerSetup::new(stock_server(server), Arc::clone(server), choice).expect("set up");
    setup.duplicate_sender(runtime.duplicate_sender())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stock_client_is_served_with_every_scheme() {
    let (server, client) = tls();
    for choice in Choice::all() {
        let runtime = PreciseRuntime::new();
        let setup = setup(&server, choice.name(), &runtime);
        let endpoint_there = endpoint(Some(stock_server(&server)), runtime);
        let kept = accept_all(&endpoint_there, setup, false);
        let here = endpoint(None, Arc::new(TokioRuntime));
        let address = endpoint_there.local_addr().expect("bound");
        let connecting =
            here.connect_with(stock_client(&client), address, crate::common::NAME).expect("connecting");
        let connection = connecting.await.expect("connected");
        assert_eq!(fetch(&connection, 300_000).await, 300_000, "{}", choice.name());
        let (_, handle) = kept.lock().expect("unpoisoned")[0].clone();
        assert_eq!(handle.hint(), None, "it gave none");
        if choice.scheme().is_some() {
            // The report is as of the latest ack, which may still be in flight.
            until(choice.name(), || handle.report().tally.delivered.get() > 12_000).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stock_server_ignores_the_hint() {
    let (server, client) = tls();
    let there = endpoint(Some(stock_server(&server)), Arc::new(TokioRuntime));
    let address = there.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Some(incoming) = there.accept().await {
            let connection = incoming.await.expect("accepted");
            tokio::spawn(serve(connection, None));
        }
    });
    let here = endpoint(None, PreciseRuntime::new());
    let setup = ClientSetup::new(client).expect("set up").transport(transport()).exact_hint(HINT);
    let connecting = setup.connect(&here, address, crate::common::NAME).expect("connecting");
    let (connection, handle) = connecting.established().await.expect("connected");
    assert_eq!(fetch(&connection, 300_000).await, 300_000);
    assert_eq!(handle.hint(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hints_are_sent_both_ways_and_known_before_the_response() {
    let (server, client) = tls();
    let runtime = PreciseRuntime::new();
    let back = Hint { bandwidth: Rate::from_bits_per_sec(1_024_000), access: Access::Ethernet };
    let setup = setup(&server, "blitzstart", &runtime).exact_hint(back);
    let there = endpoint(Some(stock_server(&server)), runtime);
    let kept = accept_all(&there, setup, false);
    let here = endpoint(None, PreciseRuntime::new());
    let setup = ClientSetup::new(client).expect("set up").transport(transport()).exact_hint(HINT);
    let connecting =
        setup.connect(&here, there.local_addr().expect("bound"), crate::common::NAME).expect("connecting");
    let (connection, handle) = connecting.established().await.expect("connected");
    let data = connection.handshake_data().expect("there").downcast::<HandshakeData>().expect("its type");
    assert_eq!(data.protocol.as_deref(), Some(&b"size"[..]));
    assert_eq!(fetch(&connection, 100_000).await, 100_000);
    let (_, theirs) = kept.lock().expect("unpoisoned")[0].clone();
    assert_eq!((handle.hint(), theirs.hint()), (Some(back), Some(HINT)));
    assert_eq!(theirs.report().granted, Some(HINT.bandwidth));
}

/// 0-RTT, Retry and NEW_TOKEN tokens, all through this crate's sessions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_protocol_features_still_work() {
    let (server, client) = tls();
    let runtime = PreciseRuntime::new();
    let setup = setup(&server, "wise-start", &runtime);
    let there = endpoint(Some(stock_server(&server)), runtime);
    let address = there.local_addr().expect("bound");
    let kept = accept_all(&there, setup, true);
    let here = endpoint(None, PreciseRuntime::new());
    let setup = ClientSetup::new(client).expect("set up").transport(transport()).exact_hint(HINT);

    let first = setup.connect(&here, address, crate::common::NAME).expect("connecting");
    let (connection, _) = first.established().await.expect("connected after a Retry");
    assert_eq!(fetch(&connection, 10_000).await, 10_000);
    assert_eq!(kept.lock().expect("unpoisoned").len(), 1, "the first attempt was answered with a Retry");
    // Token and tickets arrive with the first data.
    connection.close(0_u32.into(), b"");

    let second = setup.connect(&here, address, crate::common::NAME).expect("connecting");
    let (connection, accepted) = second.connecting.into_0rtt().expect("a ticket is there");
    assert_eq!(fetch(&connection, 10_000).await, 10_000);
    assert!(accepted.await, "0-RTT was accepted");
    let (is_validated, handle) = kept.lock().expect("unpoisoned")[1].clone();
    assert!(is_validated, "by the token of a NEW_TOKEN frame, or there would have been a Retry");
    assert_eq!(handle.hint(), Some(HINT), "the hint is of this connection's own first message");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_record_is_there_as_soon_as_the_connection_is_closed() {
    let (server, client) = tls();
    let runtime = PreciseRuntime::new();
    let store = Arc::new(headstart_quic::Sharded::new(10));
    let setup = setup(&server, "wise-start", &runtime).history(store.clone());
    let metrics = Arc::clone(setup.counted());
    let there = endpoint(Some(stock_server(&server)), runtime);
    let kept = accept_all(&there, setup, false);
    let here = endpoint(None, PreciseRuntime::new());
    let dial =
        || here.connect_with(stock_client(&client), there.local_addr().expect("bound"), crate::common::NAME);
    let connection = dial().expect("connecting").await.expect("connected");
    assert_eq!(fetch(&connection, 3_000_000).await, 3_000_000);
    connection.close(0_u32.into(), b"");
    until("counted when closed", || metrics.connections() > 0).await;
    let (_, handle) = kept.lock().expect("unpoisoned")[0].clone();
    assert_eq!(store.len(), 1, "{}", handle.report());
}
