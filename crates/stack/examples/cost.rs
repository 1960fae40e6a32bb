//! What the adapter costs: the same traffic with the stack's own controller and with ours, and what one connection's set-up and
//! one look into the history take.
//!
//! ```text
//! cargo run --release -p headstart-stack --example cost
//! ```
//!
//! Everything runs in one thread and in virtual time, so what is measured is computing: packets through both endpoints,
//! sealed and opened. Runs alternate, and the median of each is taken.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::error::Error;
use std::hash::RandomState;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use headstart_quic::{Sharded, Store};
use headstart_stack::{Crypto, Scenario};
use headstart_startup::history::{Ended, MemoryStore, Outcome, Record};
use headstart_units::{Bytes, Packets, Rate, Span, Time};

const SCHEMES: [&str; 5] = ["stack-cubic", "iw10", "wise-start", "halfback", "stack-cubic"];

fn main() -> Result<(), Box<dyn Error>> {
    let path = |bytes| {
        Scenario::new(Rate::from_mbit_per_sec(100), Span::from_millis(40), Packets::new(1_000), bytes)
    };
    for crypto in [Crypto::Tls, Crypto::Null] {
        let bulk = Scenario { crypto, ..path(Bytes::new(20_000_000)) };
        compare(&format!("{crypto:?}, 20 MB"), &bulk.knowing(1, 1), 5, 1)?;
        let short = Scenario { crypto, ..path(Bytes::new(10_000)) };
        compare(&format!("{crypto:?}, 10 kB, connections"), &short.knowing(1, 1), 7, 100)?;
    }
    history();
    Ok(())
}

fn compare(name: &str, scenario: &Scenario, repeats: usize, times: u32) -> Result<(), Box<dyn Error>> {
    let mut took = SCHEMES.map(|_| vec![]);
    for _ in 0..repeats {
        for (took, scheme) in took.iter_mut().zip(SCHEMES) {
            let from = Instant::now();
            for _ in 0..times {
                scenario.play(scheme)?;
            }
            took.push(from.elapsed() / times);
        }
    }
    println!("{name}:");
    let medians = took.map(|mut took| {
        took.sort_unstable();
        took[took.len() / 2]
    });
    for (scheme, median) in SCHEMES.iter().zip(medians) {
        let share = medians[0].as_secs_f64() / median.as_secs_f64();
        println!(
            "  {scheme:14} {:9.3} ms, {:5.1} % of the stack alone",
            median.as_secs_f64() * 1e3,
            share * 100.0
        );
    }
    Ok(())
}

/// A hundred thousand peers, a million visits.
fn history() {
    let record = Record {
        saved_at: Time::ZERO,
        btl_bw: Rate::from_mbit_per_sec(25),
        rt_prop: Span::from_millis(50),
        window: Bytes::ZERO,
        ssthresh: Bytes::MAX,
        ended: Ended::Clean,
    };
    let peer = |number: u32| IpAddr::V4(Ipv4Addr::from(number.wrapping_mul(0x9e37_79b9)));
    let stores: [(&str, Box<dyn Store>); 2] = [
        ("sharded", Box::new(Sharded::new(100_000))),
        ("one lock", Box::new(std::sync::Mutex::new(MemoryStore::new(100_000, RandomState::new())))),
    ];
    for (name, store) in stores {
        for number in 0..100_000 {
            let (_, lease) = store.open(peer(number));
            store.close(lease, Outcome::Measured(record));
        }
        let visits = 1_000_000;
        let from = Instant::now();
        for number in 0..visits {
            let (_, lease) = store.open(peer(number % 100_000));
            store.close(lease, Outcome::Measured(record));
        }
        let each: Duration = from.elapsed() / visits;
        println!("history, {name}: {} ns for a look and a write", each.as_nanos());
    }
}
