//! Copies on real sockets: they are on the wire, they are what was sent, and they repair.
//!
//! How many there are to be, and what they save, is exact in virtual time (`headstart-stack`). Here a flight that is late meets
//! its acks sooner and needs fewer, so that only runs count in which the machine kept time; without enough of them a test says `NOT RUN`.

mod common;

use std::time::{Duration, Instant};

use common::machine::{ALONE, Beside, not_run};
use common::{Relay, accept_all, endpoint, fetch, stock_client, stock_server, tls};
use headstart_quic::server::SetupError;
use headstart_quic::{Choice, PreciseRuntime, ServerSetup, Why};

/// Runs tried for each that is to count.
const ATTEMPTS: usize = 4;
/// A pause of the machine that can be seen: what four packets of a flight take.
const SEEN: Duration = Duration::from_millis(3);

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
    let (repeated, why) = (relay.seen.lock().expect("unpoisoned").repeated, handle.why());
    println!("{scheme}: {took:?}, {repeated} seen twice; {why}");
    assert!(why.tally.copies as usize >= repeated, "{scheme}: {repeated} seen twice, {why}");
    (took, repeated, why)
}

/// As many downloads as asked for, in which the machine kept time; fewer if it seldom does.
async fn downloads(count: usize, scheme: &str, doomed_from: Option<usize>) -> Vec<(Duration, usize)> {
    let mut good = vec![];
    for _ in 0..count * ATTEMPTS {
        let beside = Beside::start();
        let (took, repeated, _) = download(scheme, doomed_from).await;
        let late = beside.stop();
        println!("{late:?}");
        if late.is_in_time(SEEN) {
            good.push((took, repeated));
        }
        if good.len() == count {
            break;
        }
    }
    good
}

fn median<T: Ord + Copy>(of: impl Iterator<Item = T>) -> T {
    let mut all: Vec<T> = of.collect();
    all.sort_unstable();
    all[all.len() / 2]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_of_a_flight_is_sent_again_and_proactive_sends_all_of_it() {
    let _others_wait = ALONE.lock().await;
    for (scheme, least, most) in [("halfback", 35, 44), ("halfback-25", 15, 22), ("proactive", 80, 90)] {
        let good = downloads(3, scheme, None).await;
        if good.len() < 3 {
            return not_run("how many copies are sent");
        }
        let repeated = median(good.iter().map(|(_, repeated)| *repeated));
        assert!((least..=most).contains(&repeated), "{scheme}: {good:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_tail_is_repaired_in_about_half_the_time() {
    let _others_wait = ALONE.lock().await;
    let mut medians = vec![];
    for scheme in ["jump-start", "halfback"] {
        let good = downloads(5, scheme, Some(66)).await;
        if good.len() < 3 {
            return not_run("how fast a lost tail is repaired");
        }
        medians.push(median(good.iter().map(|(took, _)| *took)).as_secs_f64());
    }
    let (without, with) = (medians[0], medians[1]);
    assert!(with <= 0.6 * without, "median: {without} s without copies, {with} s with");
}

#[test]
fn a_scheme_that_sends_copies_is_refused_where_nobody_sends_them() {
    let (server, _) = tls();
    let setup = ServerSetup::new(stock_server(&server), server, Choice::find("halfback").expect("carried"));
    let refused = setup.expect("TLS is fine").check().expect_err("no courier");
    assert!(matches!(refused, SetupError::NoCourier("halfback")), "{refused}");
}
