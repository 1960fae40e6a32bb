//! Copies on real sockets: present on the wire, identical to their originals, and a repair.
//!
//! Their number and their benefit are exact in virtual time (`headstart-virtual-quic`). Here a
//! delayed flight meets its acks sooner and needs fewer, so that only runs without scheduling
//! delays count, and of those nearly all must be good.

mod common;

use std::time::{Duration, Instant};

use common::machine::{ALONE, Quota, hold_to};
use common::{Relay, accept_all, endpoint, fetch, stock_client, stock_server, tls};
use headstart_host::load::Lateness;
use headstart_quic::server::SetupError;
use headstart_quic::{Choice, PreciseRuntime, ServerSetup, StartReport};

const QUOTA: Quota = Quota { good: 5, of: 6 };
/// A scheduling delay that matters: four packets of a flight.
const SEEN: Duration = Duration::from_millis(3);

fn is_on_time(late: &Lateness) -> bool {
    late.is_within(SEEN)
}

/// 100 kB over 60 ms: completion time from the request, duplicate datagrams, the server's report.
async fn download(scheme: &str, doomed_from: Option<usize>) -> (Duration, usize, StartReport) {
    let (server, client) = tls();
    let runtime = PreciseRuntime::new();
    let choice = Choice::find(scheme).expect("carried");
    let setup = ServerSetup::new(stock_server(&server), server.clone(), choice).expect("set up");
    let setup = setup.duplicate_sender(runtime.duplicate_sender());
    let there = endpoint(Some(stock_server(&server)), runtime);
    let kept = accept_all(&there, setup, false);
    let relay = Relay::new(there.local_addr().expect("bound"), Duration::from_millis(30));
    relay.seen.lock().expect("unpoisoned").doomed_from = doomed_from;
    let here = endpoint(None, PreciseRuntime::new());
    let connecting =
        here.connect_with(stock_client(&client), relay.address, common::NAME).expect("connecting");
    let connection = connecting.await.expect("connected");
    #[expect(clippy::disallowed_methods, reason = "real sockets, real time")]
    let from = Instant::now();
    assert_eq!(fetch(&connection, 100_000).await, 100_000);
    let took = from.elapsed();
    // The last acks are still in flight.
    tokio::time::sleep(Duration::from_millis(80)).await;
    let (_, handle) = kept.lock().expect("unpoisoned")[0].clone();
    let (repeated, report) = (relay.seen.lock().expect("unpoisoned").repeated, handle.report());
    println!("{scheme}: {took:?}, {repeated} seen twice; {report}");
    assert!(report.tally.copies as usize >= repeated, "{scheme}: {repeated} seen twice, {report}");
    (took, repeated, report)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_of_a_flight_is_sent_again_and_proactive_sends_all_of_it() {
    let _others_wait = ALONE.lock().await;
    for (scheme, least, most) in
        [("halfback", 35, 44), ("halfback(additional=25%)", 15, 22), ("proactive", 80, 90)]
    {
        let run = async || (scheme, download(scheme, None).await.1);
        if !hold_to(QUOTA, is_on_time, run, |(_, repeated)| (least..=most).contains(repeated)).await {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_tail_is_repaired_in_about_half_the_time() {
    let _others_wait = ALONE.lock().await;
    // In pairs, so that both run on the host under the same load.
    let run = async || {
        let without = download("jump-start", Some(66)).await.0;
        let with = download("halfback", Some(66)).await.0;
        with.as_secs_f64() / without.as_secs_f64()
    };
    hold_to(QUOTA, is_on_time, run, |ratio| *ratio <= 0.6).await;
}

#[test]
fn a_scheme_that_sends_copies_is_refused_without_a_duplicate_sender() {
    let (server, _) = tls();
    let setup = ServerSetup::new(stock_server(&server), server, Choice::find("halfback").expect("carried"));
    let refused = setup.expect("TLS is fine").check().expect_err("no sender of duplicates");
    assert!(matches!(&refused, SetupError::NoDuplicateSender(name) if name == "halfback"), "{refused}");
}
