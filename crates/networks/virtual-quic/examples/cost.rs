//! The adapter's cost to a server: the same traffic with the unmodified stack and with the adapter,
//! and the cost of a history lookup.
//!
//! ```text
//! cargo run --release -p headstart-virtual-quic --example cost
//! ```
//!
//! Where timing is too noisy, count instructions: `count SCHEME CONNECTIONS` runs so many downloads
//! of 10 kB once, `count SCHEME bulk` one of 20 MB, both with TLS.
//!
//! ```text
//! valgrind --tool=cachegrind --cache-sim=no target/release/examples/cost count halfback 200
//! ```
//!
//! Everything runs in one thread and in virtual time; the figure is that thread's processor time
//! for both endpoints together: the server alone may lose twice the difference. `stack` is the
//! unmodified stack at the server; `stack-cubic` has this project's session and configuration for
//! each connection, but the stack's own controller. Runs alternate; the fastest of each counts.

use std::error::Error;
use std::hash::RandomState;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use headstart_quic::{Choice, Sharded, Store};
use headstart_startup::history::{MemoryStore, Record, RecordUpdate};
use headstart_units::{Bytes, Packets, Rate, Span, Time};
use headstart_virtual_quic::{ConnectionSet, Crypto, Scenario, Transfer};
use rustix::time::{ClockId, clock_gettime};

const RUNS: [&str; 6] = ["stack", "stack-cubic", "iw10", "wise-start", "s-cubic", "halfback"];
const REPEATS: usize = 9;
const CONNECTIONS: u64 = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, run, what] = &arguments[..]
        && word == "count"
    {
        let scenario = match what.parse() {
            Ok(connections) => short(Crypto::Tls, connections),
            Err(_) if what == "bulk" => bulk(Crypto::Tls),
            Err(_) => return Err(format!("found `{what}`, expected `bulk` or how many connections").into()),
        };
        // No clock is read: valgrind does not support how it is done.
        return connections(&scenario, run).map(|connections| drop(connections.run(scenario.deadline)));
    }
    for crypto in [Crypto::Tls, Crypto::Null] {
        compare(&format!("{crypto:?}, one download of 20 MB"), &bulk(crypto))?;
        compare(&format!("{crypto:?}, {CONNECTIONS} downloads of 10 kB"), &short(crypto, CONNECTIONS))?;
    }
    history();
    Ok(())
}

fn path(bytes: Bytes, crypto: Crypto) -> Scenario {
    let scenario =
        Scenario::new(Rate::from_mbit_per_sec(100), Span::from_millis(40), Packets::new(1_000), bytes);
    Scenario { crypto, ..scenario }.with_record(1, 1)
}

fn bulk(crypto: Crypto) -> Scenario {
    path(Bytes::new(20_000_000), crypto)
}

/// Sequential downloads, so that all may start from the record.
fn short(crypto: Crypto, connections: u64) -> Scenario {
    let bytes = Bytes::new(10_000);
    let mut short = path(bytes, crypto);
    let transfer = |number| Transfer::download(Time::from_millis(number * 1_000), bytes);
    short.competitors =
        (1..connections).map(|number| (transfer(number), headstart_quic::choice::slow_start())).collect();
    short.deadline = Time::from_millis((connections + 100) * 1_000);
    short
}

fn compare(name: &str, scenario: &Scenario) -> Result<(), Box<dyn Error>> {
    let mut best = RUNS.map(|_| Duration::MAX);
    for _ in 0..REPEATS {
        for (best, run) in best.iter_mut().zip(RUNS) {
            let connections = connections(scenario, run)?;
            let from = processor_time();
            let _ = connections.run(scenario.deadline);
            *best = (processor_time() - from).min(*best);
        }
    }
    println!("{name}, processor time of both ends:");
    for (run, best_of) in RUNS.iter().zip(best) {
        let share = best[0].as_secs_f64() / best_of.as_secs_f64();
        println!(
            "  {run:12} {:9.3} ms, {:5.1} % of the stack's speed",
            best_of.as_secs_f64() * 1e3,
            share * 100.0
        );
    }
    Ok(())
}

/// `stack` is the unmodified stack at the server.
fn connections(scenario: &Scenario, run: &str) -> Result<ConnectionSet, Box<dyn Error>> {
    let choice = Choice::find(if run == "stack" { "stack-cubic" } else { run })?;
    let mut scenario = scenario.clone();
    for (_, each) in &mut scenario.competitors {
        *each = choice;
    }
    let connections = scenario.connections(choice)?.unobserved();
    Ok(if run == "stack" { connections.unmodified() } else { connections })
}

fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

/// A hundred thousand peers, a million connections.
fn history() {
    let record =
        Record { btl_bw: Rate::from_mbit_per_sec(25), rt_prop: Span::from_millis(50), ..Record::default() };
    let peer = |number: u32| IpAddr::V4(Ipv4Addr::from(number.wrapping_mul(0x9e37_79b9)));
    let stores: [(&str, Box<dyn Store>); 2] = [
        ("sharded", Box::new(Sharded::new(200_000))),
        ("one lock", Box::new(std::sync::Mutex::new(MemoryStore::new(200_000, RandomState::new())))),
    ];
    for (name, store) in stores {
        for number in 0..100_000 {
            let (_, lease) = store.open(peer(number));
            store.close(lease, RecordUpdate::Replace(record));
        }
        let connections = 1_000_000;
        let from = processor_time();
        for number in 0..connections {
            let (_, lease) = store.open(peer(number % 100_000));
            store.close(lease, RecordUpdate::Replace(record));
        }
        let each: Duration = (processor_time() - from) / connections;
        println!("history of 100 000 peers, {name}: {} ns for a look and a write", each.as_nanos());
    }
}
