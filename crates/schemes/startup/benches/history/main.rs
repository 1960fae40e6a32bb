//! Cost of the history per connection: one look-up when it begins, one write when it ends
//! (WiseStart §4.2 has 3.6 % more CPU for both, its table and its probing together).
//!
//! The store holds about as many peers as WiseStart's 19 MB did; their order has no cache locality.
//!
//! `cargo bench -p headstart-startup --bench history [-- ROUNDS]`: with two numbers of rounds under
//! a counter of instructions, the difference is the cost of a connection on any machine.

use std::hint::black_box;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Instant;

use headstart_startup::history::{FixedHash, MemoryStore, Record, RecordUpdate, Store};
use headstart_units::{Bytes, Rate, Span, Time};

const PEERS: u64 = 131_072;
const ROUNDS: u64 = 2_000_000;

fn peer(number: u64) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8_u128 << 96 | u128::from(number)))
}

fn visit(store: &mut MemoryStore, number: u64, at: u64) -> bool {
    let (known, lease) = store.open(peer(number));
    let record = Record {
        saved_at: Time::from_nanos(at),
        btl_bw: Rate::from_mbit_per_sec(5),
        rt_prop: Span::from_millis(100),
        window: Bytes::new(62_500),
        ..Record::default()
    };
    store.close(lease, RecordUpdate::Replace(record));
    known.is_some()
}

#[expect(clippy::disallowed_methods, reason = "how long a look-up takes on the clock is what a bench is for")]
fn main() {
    let rounds = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(ROUNDS).max(1);
    let mut store = MemoryStore::new(PEERS as usize, FixedHash::default());
    for number in 0..PEERS {
        visit(&mut store, number, number);
    }
    for (what, peers) in [("all known", PEERS), ("half of them new", 2 * PEERS)] {
        let (mut state, mut hits) = (1_u64, 0_u64);
        let began = Instant::now();
        for round in 0..rounds {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            hits += u64::from(black_box(visit(&mut store, (state >> 33) % peers, PEERS + round)));
        }
        let nanos = began.elapsed().as_nanos() as f64 / rounds as f64;
        let share = 100.0 * hits as f64 / rounds as f64;
        println!("{what}: {nanos:.0} ns for look-up and write together, {share:.0} % hits");
    }
    println!("{} B for each peer", store.bytes_per_entry());
}
