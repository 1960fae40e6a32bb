//! Cost of a fleet's history:
//! `cargo bench -p headstart-store --features fleet --bench fleet -- [PEERS]`.
//!
//! Starts `valkey-server` or `redis-server` and gives it records of as many peers (a million by
//! default). It measures the server's memory for each, without and with a lease, and the records
//! written and looked up per second by one host and by four. It also measures the time that a
//! connection takes from its own thread, which is all that it waits for.

#![allow(clippy::disallowed_methods, reason = "it measures")]

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/fleet/server.rs"]
mod server;

use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use headstart_startup::history::{Record, RecordUpdate};
use headstart_store::fleet::{Address, Fleet, Options, Remote, State};
use headstart_store::{Store, unix_now};
use headstart_units::{Rate, Span};
use server::{Server, until};

const WAIT: Duration = Duration::from_secs(600);

fn peer(number: u32) -> IpAddr {
    // As servers key IPv6 clients, by their network; addresses of IPv4 are shorter.
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, (number >> 16) as u16, number as u16, 0, 0, 0, 0))
}

fn record() -> Record {
    Record {
        saved_at: unix_now(),
        btl_bw: Rate::from_mbit_per_sec(25),
        rt_prop: Span::from_millis(50),
        ..Record::default()
    }
}

fn used_memory(server: &Server) -> u64 {
    server.report("INFO memory", "used_memory:").parse().expect("a number")
}

fn processor(server: &Server) -> f64 {
    let of = |name| server.report("INFO cpu", name).parse::<f64>().expect("a number");
    of("used_cpu_user:") + of("used_cpu_sys:")
}

fn per_second(name: &str, server: &Server, count: u32, run: impl FnOnce()) {
    let (begun, before) = (Instant::now(), processor(server));
    run();
    let (took, busy) = (begun.elapsed().as_secs_f64(), processor(server) - before);
    let (rate, cost) = (f64::from(count) / took, busy * 1e6 / f64::from(count));
    println!("{name}: {rate:.0} per second, {cost:.1} us of the server's processor for each");
}

fn main() {
    let peers: u32 = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(1_000_000);
    let Some(server) = Server::start(&[]) else {
        return println!("NOT RUN: neither valkey-server nor redis-server is installed");
    };
    let address: Address = server.url().parse().expect("an address");
    let empty = used_memory(&server);
    let mut remote = Remote::connect(&address, WAIT).expect("it answers");
    let all: Vec<_> = (0..peers).map(|number| (peer(number), record())).collect();
    per_second("written by merge", &server, peers, || remote.put(&all, WAIT).expect("written"));
    let of_each = |server: &Server| (used_memory(server) - empty) / u64::from(peers);
    println!("memory of the server: {} bytes for each peer", of_each(&server));

    let options = Options { capacity: 1 << 22, lease: WAIT, timeout: WAIT, ..Options::default() };
    let open = || {
        let fleet = Fleet::open(address.clone(), options).expect("a thread");
        until("the server is reached", || fleet.counters().state == State::Up);
        fleet
    };
    let look_up = |fleet: &Fleet, numbers: std::ops::Range<u32>| {
        // Fewer than a host lets wait.
        for number in numbers {
            fleet.prefetch(peer(number));
            if number % 4096 == 4095 {
                fleet.flush(WAIT).expect("answered");
            }
        }
        fleet.flush(WAIT).expect("answered");
    };
    let one = open();
    per_second("looked up by one host", &server, peers, || look_up(&one, 0..peers));
    println!("memory of the server, with a lease of each: {} bytes", of_each(&server));
    let four: Vec<Fleet> = (0..4).map(|_| open()).collect();
    per_second("looked up by four hosts", &server, peers, || {
        std::thread::scope(|scope| {
            for (part, fleet) in (0..4).zip(&four) {
                scope.spawn(move || look_up(fleet, peers / 4 * part..peers / 4 * (part + 1)));
            }
        });
    });
    let visit = |fleet: &Fleet, number| {
        let (_, lease) = fleet.open(peer(number));
        fleet.close(lease, RecordUpdate::Replace(record()));
    };
    per_second("written behind by one host", &server, peers, || {
        (0..peers).for_each(|number| visit(&one, number));
        one.flush(WAIT).expect("written");
    });
    let begun = Instant::now();
    for number in 0..100_000 {
        one.prefetch(peer(number));
        visit(&one, number);
    }
    println!("on a connection's thread: {} ns", begun.elapsed().as_nanos() / 100_000);
    println!("memory of a host: {} bytes for each peer of its table", one.local().bytes_per_entry());
}
