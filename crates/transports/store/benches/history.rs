//! Cost of the history for a connection: `cargo bench -p headstart-store`.
//!
//! A *look-up* opens a connection and closes it without a measurement. An *update* closes it with
//! one; *new* is a peer that is not known, pushes out the oldest and takes its place. Peers come in
//! an order that no cache foresees. Times are the median of eleven rounds. The file is on whatever
//! disk holds the temporary folder; its thread writes meanwhile.

use std::hint::black_box;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use headstart_startup::history::{Record, RecordUpdate};
use headstart_store::{History, Options, Store, unix_now};
use headstart_units::{Bytes, Rate, Span, Time};

const ROUNDS: usize = 11;
const VISITS: u32 = 100_000;

fn peer(number: u32) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, (number >> 16) as u16, number as u16))
}

fn record(now: Time) -> Record {
    Record {
        saved_at: now,
        btl_bw: Rate::from_mbit_per_sec(25),
        rt_prop: Span::from_millis(50),
        window: Bytes::new(156_250),
        ..Record::default()
    }
}

#[allow(clippy::disallowed_methods)]
fn clock() -> Instant {
    Instant::now()
}

/// Nanoseconds of one visit: the median of all rounds.
fn median(mut visit: impl FnMut(u32)) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS as u32)
        .map(|round| {
            let begun = clock();
            (0..VISITS).for_each(|at| visit((round * VISITS + at).wrapping_mul(0x9e37_79b1)));
            begun.elapsed().as_nanos() as f64 / f64::from(VISITS)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn measure(name: &str, history: &History, capacity: u32) {
    let record = record(unix_now());
    (0..capacity).for_each(|at| {
        let (_, lease) = history.open(peer(at));
        history.close(lease, RecordUpdate::Replace(record));
    });
    let lookup = median(|at| {
        let (known, lease) = history.open(peer(at % capacity));
        history.close(black_box(lease), RecordUpdate::Keep);
        black_box(known);
    });
    let update = median(|at| {
        let (_, lease) = history.open(peer(at % capacity));
        history.close(black_box(lease), RecordUpdate::Replace(black_box(record)));
    });
    let new = median(|at| {
        let (_, lease) = history.open(peer(at | 1 << 31));
        history.close(black_box(lease), RecordUpdate::Replace(black_box(record)));
    });
    let flushed = clock();
    history.flush().expect("the disk has room");
    let flushed = flushed.elapsed();
    let disk = history
        .file_length()
        .map_or("-".to_owned(), |length| format!("{:.1}", length as f64 / f64::from(capacity)));
    println!(
        "{name:<12} {capacity:>9}  {lookup:>8.0}  {update:>8.0}  {new:>8.0}  {:>10}  {disk:>9}  {:>9.1}",
        history.bytes_per_entry(),
        flushed.as_secs_f64() * 1e3,
    );
}

fn main() {
    // `cargo test --benches` only wants to know whether it runs.
    let quick = !std::env::args().any(|argument| argument == "--bench");
    println!("where            peers  look-up/ns  update/ns  new/ns  memory/B    disk/B  flush/ms");
    for capacity in if quick { vec![1000] } else { vec![1000, 65_536, 1_000_000] } {
        measure("memory", &History::in_memory(capacity as usize), capacity);
        let folder = tempfile::tempdir().expect("a folder");
        let options =
            Options { capacity: capacity as usize, interval: Duration::from_millis(500), sync: true };
        let path = folder.path().join("history");
        let (history, _) = History::open(&path, options).expect("a history");
        measure("with a file", &history, capacity);
        drop(history);
        let begun = clock();
        let (history, loaded) = History::open(&path, options).expect("a history");
        println!(
            "             opened again: {} records in {:.0} ms",
            loaded.records,
            begun.elapsed().as_secs_f64() * 1e3
        );
        drop(history);
    }
}
