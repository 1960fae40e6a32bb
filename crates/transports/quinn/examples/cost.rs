//! The adapter's cost to a server on quinn, in instructions.
//!
//! ```text
//! cargo build --release -p headstart-quinn --example cost
//! for controller in quinn iw10 s-cubic; do for work in bulk short; do
//!     valgrind --tool=callgrind --callgrind-out-file=/dev/null --collect-atstart=no \
//!         --toggle-collect='*at_server*' --toggle-collect='*drive_server*' \
//!         target/release/examples/cost $controller $work
//! done; done
//! ```
//!
//! `quinn` is quinn's own CUBIC. `bulk` is a download of 20 MB over 100 Mbit/s and 40 ms, `short`
//! a hundred connections of 1 kB each. All of it runs in virtual time, with TLS. Only what the
//! server computes is counted. The packets that left it are printed.

#[allow(dead_code, reason = "tests use the rest")]
#[path = "../tests/suite/on_quinn.rs"]
mod on_quinn;
#[allow(dead_code, reason = "tests use the rest")]
#[path = "../tests/suite/scenario.rs"]
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
        "quinn" => (0..connections).map(|_| on_quinn::run_unmodified(&scenario).packets).sum(),
        scheme => (0..connections).map(|_| on_quinn::run(&scenario, scheme).packets).sum(),
    };
    println!("{controller} {work}: {packets} packets");
}
