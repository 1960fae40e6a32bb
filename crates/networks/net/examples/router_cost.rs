//! Cost of a router: nanoseconds per request and per packet, and bytes of state. Prints a table.
#![allow(clippy::disallowed_methods)]

use std::time::Instant;

use headstart_startup::quick_start::router::{Algorithm, Granularity, Params, extreme};
use headstart_startup::quick_start::{Nonce, Request, Router};
use headstart_startup::rcp::{self, FairRate};
use headstart_units::{Bytes, Rate, Ratio, Span, Time};

const RATE: Rate = Rate::from_mbit_per_sec(10_000);
const ROUNDS: u64 = 2_000_000;

/// Nanoseconds of each call, the best of five.
fn cost(mut call: impl FnMut(u64)) -> f64 {
    let mut best = f64::MAX;
    for round in 0..5 {
        let began = Instant::now();
        for n in 0..ROUNDS {
            call(round * ROUNDS + n);
        }
        best = best.min(began.elapsed().as_nanos() as f64 / ROUNDS as f64);
    }
    best
}

fn main() {
    let threshold = Ratio::percent(90);
    let tracking = extreme::Params::default();
    let algorithms = [
        ("share", Algorithm::Share { alloc_rate: Ratio::percent(50) }),
        ("target", Algorithm::Target { threshold }),
        ("extreme", Algorithm::Extreme { threshold, tracking }),
    ];
    println!(
        "{:10} {:>18} {:>18} {:>18} {:>12}",
        "router", "request granted", "request denied", "other packet", "state"
    );
    for (name, algorithm) in algorithms {
        let params = Params { algorithm, granularity: Granularity::Exact, ..Params::new(RATE) };
        // 100 000 flows of 10 000 hosts.
        let request =
            |kbit: u64| Request { rate: Rate::from_bits_per_sec(kbit * 1000), ttl: 9, nonce: Nonce::new(1) };
        let ask = |router: &mut Router, n: u64, micros: u64| {
            let mut request = request(1);
            let flow = n % 100_000;
            let now = Time::from_nanos(n * micros * 1_000);
            std::hint::black_box(router.on_request(now, &mut request, flow, (flow / 10) as u32, n as u32));
        };
        let mut router = Router::new(params);
        // One each two milliseconds: 750 flows are tracked, each request adds and settles one.
        let granted = cost(|n| ask(&mut router, n, 2_000));
        let mut full = Router::new(Params { algorithm: zero(algorithm), ..params });
        let denied = cost(|n| ask(&mut full, n, 1));
        let end = 5 * ROUNDS * 2_000_000;
        let packet =
            cost(|n| router.on_packet(Time::from_nanos(end + n * 1_200), Bytes::new(1500), n % 100_000));
        println!(
            "{name:10} {granted:>15.1} ns {denied:>15.1} ns {packet:>15.1} ns {:>10} B",
            router.state_bytes()
        );
    }
    let mut rcp = FairRate::new(rcp::Params::new(RATE));
    let rtt = Span::from_millis(50);
    let packet = cost(|n| {
        let now = Time::from_nanos(n * 1_200);
        std::hint::black_box(rcp.on_arrival(now, Bytes::new(1500), rtt));
        rcp.on_taken(now, Bytes::new(1500));
    });
    println!("{:10} {:>18} {:>18} {packet:>15.1} ns {:>10} B", "rcp", "", "", size_of::<FairRate>());
}

/// An algorithm with nothing to grant.
fn zero(algorithm: Algorithm) -> Algorithm {
    let nothing = Ratio::percent(0);
    match algorithm {
        Algorithm::Share { .. } => Algorithm::Share { alloc_rate: nothing },
        Algorithm::Target { .. } => Algorithm::Target { threshold: nothing },
        Algorithm::Extreme { tracking, .. } => Algorithm::Extreme { threshold: nothing, tracking },
    }
}
