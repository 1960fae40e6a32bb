//! Departure times on real sockets.
//!
//! The host may be loaded, and a sender that is not scheduled cannot keep time. So only flights
//! without scheduling delays count, and of those nearly all must be evenly spaced.

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::machine::{ALONE, Quota, hold_to};
use common::{Relay, Watched, accept_all, endpoint, fetch, stock_client, stock_server, tls};
use headstart_host::load::Lateness;
use headstart_quic::store::client_key;
use headstart_quic::{Choice, Epoch, Gates, ServerSetup, Sharded, Store};
use headstart_startup::history::{Record, RecordUpdate};
use headstart_units::{Bytes, Rate, Span};

const QUOTA: Quota = Quota { good: 10, of: 12 };
const PACKET: u64 = 1_200;
/// A scheduling delay that matters: a twentieth of a flight, which takes 50 ms.
const SEEN: Duration = Duration::from_micros(2_500);

#[derive(Debug)]
struct Spacing {
    /// Time from the flight's first packet to its last, over the ideal.
    whole: f64,
    median: f64,
    /// Most packets that left within a tenth of a gap of each other.
    longest_burst: usize,
}

fn spacing(times: &[Instant], ideal: Duration) -> Spacing {
    let mut gaps: Vec<Duration> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (mut longest_burst, mut burst) = (1, 1);
    for gap in &gaps {
        burst = if *gap < ideal / 10 { burst + 1 } else { 1 };
        longest_burst = longest_burst.max(burst);
    }
    let whole = (times[times.len() - 1] - times[0]).as_secs_f64() / (ideal * gaps.len() as u32).as_secs_f64();
    gaps.sort_unstable();
    Spacing { whole, median: gaps[gaps.len() / 2].as_secs_f64() / ideal.as_secs_f64(), longest_burst }
}

/// The first flight of S-Cubic with a record of `mbit` and 50 ms, through a relay of 50 ms.
async fn flight(mbit: u64) -> Spacing {
    let (server, client) = tls();
    let (runtime, log) = Watched::precise();
    let store = Arc::new(Sharded::new(10));
    let rtt = Span::from_millis(50);
    let (_, lease) = store.open(client_key(std::net::Ipv4Addr::LOCALHOST.into()));
    let btl_bw = Rate::from_mbit_per_sec(mbit);
    let epoch = Epoch::now();
    #[expect(clippy::disallowed_methods, reason = "a record of now")]
    let saved_at = epoch.time(Instant::now());
    let record = Record { saved_at, btl_bw, rt_prop: rtt, ..Record::default() };
    store.close(lease, RecordUpdate::Replace(record));
    let choice = Choice::find("s-cubic").expect("carried");
    let setup = ServerSetup::new(stock_server(&server), server.clone(), choice).expect("set up");
    let there = endpoint(Some(stock_server(&server)), runtime);
    let kept = accept_all(&there, setup.history(store).gates(Gates::OPEN), false);
    let relay = Relay::new(there.local_addr().expect("bound"), Duration::from_millis(25));
    let here = endpoint(None, headstart_quic::PreciseRuntime::new());
    let connecting =
        here.connect_with(stock_client(&client), relay.address, common::NAME).expect("connecting");
    let connection = connecting.await.expect("connected");
    let packets = btl_bw.as_bytes_per_sec() / 20 / PACKET;
    assert_eq!(fetch(&connection, packets * PACKET).await as u64, packets * PACKET);
    let (_, handle) = kept.lock().expect("unpoisoned")[0].clone();
    assert_eq!(handle.report().pace, Some(btl_bw), "{}", handle.report());
    let log = log.lock().expect("unpoisoned");
    // The handshake's datagrams precede: at most three full ones.
    let full: Vec<Instant> =
        log.iter().filter(|(_, size)| *size as u64 == PACKET).map(|(at, _)| *at).collect();
    let begins =
        (1..full.len()).find(|&at| full[at] - full[at - 1] > Duration::from_millis(20)).expect("a pause");
    let ideal = Duration::from_nanos((Bytes::new(PACKET) / btl_bw).as_nanos());
    // Packets after the first ack belong to another flight.
    let end = full.len().min(begins + packets as usize * 9 / 10);
    spacing(&full[begins..end], ideal)
}

async fn keeps_time(mbit: u64) {
    let _others_wait = ALONE.lock().await;
    let is_good = |spacing: &Spacing| {
        let is_even = (spacing.whole - 1.0).abs() <= 0.05 && (spacing.median - 1.0).abs() <= 0.05;
        is_even && spacing.longest_burst <= 10
    };
    let gap = Duration::from_nanos((Bytes::new(PACKET) / Rate::from_mbit_per_sec(mbit)).as_nanos());
    let is_on_time = |late: &Lateness| late.is_within(SEEN) && late.resolves(gap);
    hold_to(QUOTA, is_on_time, async || flight(mbit).await, is_good).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_flight_is_paced_at_25_mbit_per_second() {
    keeps_time(25).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_flight_is_paced_at_100_mbit_per_second() {
    keeps_time(100).await;
}
