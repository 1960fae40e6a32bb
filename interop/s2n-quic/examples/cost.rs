//! The cost of a scheme on s2n-quic, in instructions of the server.
//!
//! ```text
//! cd interop/s2n-quic
//! RUSTFLAGS='-C symbol-mangling-version=v0' CARGO_PROFILE_RELEASE_DEBUG=line-tables-only \
//!     cargo build --release --example cost
//! for controller in s2n-quic iw10 s-cubic wise-start; do for work in bulk short; do
//!     valgrind --tool=callgrind --callgrind-out-file=/dev/null --collect-atstart=no \
//!         --toggle-collect='bach::task::info::scope::with*Endpoint<s2n_quic::server::*' \
//!         target/release/examples/cost $controller $work
//! done; done
//! ```
//!
//! Both ends run in one thread. The names of the other mangling do not tell them apart.
//!
//! `s2n-quic` is s2n-quic's own CUBIC. The work is that of
//! `crates/transports/quinn/examples/cost.rs`: 20 MB over 100 Mbit/s and 40 ms, or a hundred
//! connections of 1 kB each, in virtual time, with TLS. The packets that left the server are
//! printed.

#[allow(dead_code, reason = "tests use the rest")]
#[path = "../tests/suite/on_s2n_quic.rs"]
mod on_s2n_quic;
#[allow(dead_code, reason = "tests use the rest")]
#[path = "../../../crates/transports/quinn/tests/suite/scenario.rs"]
mod scenario;

use headstart_units::{Packets, Rate, Span};
use scenario::Scenario;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [controller, work] = &arguments[..] else {
        return eprintln!("found {} arguments, expected a controller and `bulk` or `short`", arguments.len());
    };
    let (size, connections) = if work == "bulk" { (20_000_000, 1) } else { (1_000, 100) };
    let (rate, rtt) = (Rate::from_mbit_per_sec(100), Span::from_millis(40));
    let path = Scenario { rate, rtt, buffer: Packets::new(200), ..Scenario::new("cost", size) };
    let scenario = Scenario { record: Some((rate, rtt)), ..path };
    let packets: u64 = match controller.as_str() {
        "s2n-quic" => (0..connections).map(|_| on_s2n_quic::run_unmodified(&scenario).packets).sum(),
        scheme => (0..connections).map(|_| on_s2n_quic::run(&scenario, scheme).packets).sum(),
    };
    println!("{controller} {work}: {packets} packets");
}
