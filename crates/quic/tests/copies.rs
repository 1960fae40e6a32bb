//! Copies on real sockets: they are on the wire, they are what was sent, and they repair.

mod common;

use std::time::{Duration, Instant};

use common::{Relay, accept_all, endpoint, fetch, stock_client, stock_server, tls};
use headstart_quic::server::SetupError;
use headstart_quic::{Choice, PreciseRuntime, ServerSetup, Why};

/// 100 kB over 60 ms: how long after the request, how many datagrams came twice, and what the server says.
async fn download(scheme: &str, doomed_from: Option<usize>) -> (Duration, usize, Why) {
    let (server, client) = tls();
    let runtime = PreciseRuntime::new();
    let choice = Choice::find(scheme).expect("carried");
    let setup = ServerSetup::new(stock_server(&server), server.clone(), choice).expect("set up");
    let setup = setup.courier(runtime.courier());
    let there = endpoint(Some(stock_server(&server)), runtime);
    let kept = accept_all(&there, setup, false);
    let relay = Relay::new(there.local_addr().expect("bound"), Duration::from_millis(30));
    relay.seen.lock().expect("unpoisoned").doomed_from = doomed_from;
    let here = endpoint(None, PreciseRuntime::new());
    let connecting = here.connect_with(stock_client(&client), relay.address, common::NAME).expect("dialled");
    let connection = connecting.await.expect("connected");
    #[expect(clippy::disallowed_methods, reason = "real sockets, real time")]
    let from = Instant::now();
    assert_eq!(fetch(&connection, 100_000).await, 100_000);
    let took = from.elapsed();
    // The last acks are still under way.
    tokio::time::sleep(Duration::from_millis(80)).await;
    let (_, handle) = kept.lock().expect("unpoisoned")[0].clone();
    let repeated = relay.seen.lock().expect("unpoisoned").repeated;
    (took, repeated, handle.why())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_of_a_flight_is_sent_again_and_proactive_sends_all_of_it() {
    for (scheme, least, most) in [("halfback", 35, 44), ("halfback-25", 15, 22), ("proactive", 80, 90)] {
        let (_, repeated, why) = download(scheme, None).await;
        println!("{scheme}: {repeated} seen twice; {why}");
        assert!((least..=most).contains(&repeated), "{scheme}: {repeated} seen twice, {why}");
        assert!(why.tally.copies as usize >= repeated, "{scheme}: {why}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_tail_is_repaired_in_about_half_the_time() {
    // The median of a few: on a busy machine one may be delayed, or lose less than it should.
    let mut took = [vec![], vec![]];
    for _ in 0..5 {
        for (took, scheme) in took.iter_mut().zip(["jump-start", "halfback"]) {
            took.push(download(scheme, Some(66)).await.0);
        }
    }
    let [without, with] = took.map(|mut took| {
        took.sort_unstable();
        took[took.len() / 2].as_secs_f64()
    });
    println!("median: {without} s without copies, {with} s with");
    assert!(with <= 0.6 * without, "{with} s and {without} s");
}

#[test]
fn a_scheme_that_sends_copies_is_refused_where_nobody_sends_them() {
    let (server, _) = tls();
    let setup = ServerSetup::new(stock_server(&server), server, Choice::find("halfback").expect("carried"));
    let refused = setup.expect("TLS is fine").check().expect_err("no courier");
    assert!(matches!(refused, SetupError::NoCourier("halfback")), "{refused}");
}
