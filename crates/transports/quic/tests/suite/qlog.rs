//! The scheme's decisions among the stack's qlog events, each a record of its own.
#![cfg(feature = "qlog")]

use crate::common::{accept_all, endpoint, fetch, stock_client, stock_server, tls, until};
use headstart_quic::{Choice, PreciseRuntime, ServerSetup};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_writes_one_file_with_both_kinds_of_events() {
    let directory = std::env::temp_dir().join(format!("headstart-qlog-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let (server, client) = tls();
    let runtime = PreciseRuntime::new();
    let choice = Choice::find("wise-start").expect("carried");
    let setup =
        ServerSetup::new(stock_server(&server), server.clone(), choice).expect("set up").qlog(&directory);
    let metrics = setup.counted().clone();
    let there = endpoint(Some(stock_server(&server)), runtime);
    let _kept = accept_all(&there, setup, false);
    let here = endpoint(None, PreciseRuntime::new());
    let address = there.local_addr().expect("bound");
    let connecting =
        here.connect_with(stock_client(&client), address, crate::common::NAME).expect("connecting");
    let connection = connecting.await.expect("connected");
    assert_eq!(fetch(&connection, 200_000).await, 200_000);
    connection.close(0_u32.into(), b"");
    until("counted when closed", || metrics.connections() > 0).await;
    let files: Vec<_> =
        std::fs::read_dir(&directory).expect("there").map(|it| it.expect("one").path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let text = std::fs::read_to_string(&files[0]).expect("text");
    std::fs::remove_dir_all(&directory).expect("cleaned up");
    let records: Vec<&str> = text.split('\u{1e}').skip(1).collect();
    for record in &records {
        serde_json::from_str::<serde_json::Value>(record).unwrap_or_else(|error| panic!("{error}: {record}"));
    }
    let header: serde_json::Value = serde_json::from_str(records[0]).expect("JSON");
    let clock = &header["trace"]["common_fields"]["reference_time"];
    assert_eq!((clock["clock_type"].as_str(), clock["epoch"].as_str()), (Some("monotonic"), Some("unknown")));
    assert_eq!(header["trace"]["event_schemas"].as_array().map(Vec::len), Some(2), "QUIC's and ours");
    for name in ["quic:packet_sent", "headstart:phase", "headstart:ended"] {
        assert!(
            records.iter().any(|record| record.contains(name)),
            "{name} is missing among {}",
            records.len()
        );
    }
}
