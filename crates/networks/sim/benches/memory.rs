//! Memory does not grow with the number of flows: `cargo bench -p headstart-sim --bench memory --
//! [--flows 10000000]`.
//!
//! The short plan's flows (100 kB, slow start from ten segments, CUBIC, 60 % load) over a link of
//! 150 Mbit/s with ten times the buffer, where nothing is lost. The last run is over the short
//! plan's own link, where much is lost. A [`Collector`] counts everything, and a history of a
//! thousand peers is kept. Prints the peak resident memory of this process (`VmHWM` of Linux;
//! nothing elsewhere) after 10^5, 10^6, .. flows.

mod common;

use common::{Bottleneck, FLOW, SHORT};
use headstart_sim::workload::arrivals::{ArrivalSpec, Arrivals, GapSpec, Sizes};
use headstart_sim::{Collector, Finished, Scenario, Seed, Simulation, TcpConfig};
use headstart_startup::base;
use headstart_units::{Bytes, Rate, Span, Time};

/// Ten times the short plan's link.
const FAST: Bottleneck = Bottleneck {
    rate: Rate::from_mbit_per_sec(150),
    one_way: Span::from_millis(30),
    buffer: Bytes::new(1_150_000),
};
/// Bits of a flow over 60 %, times 10^9: over the link's rate, the mean gap in nanoseconds.
const GAP_TIMES_RATE: u64 = 1_333_333_333_333_333;

fn run(flows: u64, link: Bottleneck) {
    let mean_gap = Span::from_nanos(GAP_TIMES_RATE / link.rate.as_bits_per_sec());
    let until = Time::ZERO + mean_gap * flows;
    let arrivals = ArrivalSpec {
        peers: 100_000,
        ..ArrivalSpec::new(GapSpec::Poisson(mean_gap), Sizes::Fixed(FLOW), until)
    };
    let mut group = common::group(10, base::Kind::Cubic, TcpConfig::default());
    group.history_capacity = 1000;
    let scenario = Scenario {
        path: link.path(),
        groups: vec![group],
        workload: Box::new(Arrivals::new(arrivals, Seed(1))),
        until: until + Span::from_secs(20),
    };
    let simulation = Simulation::new(scenario, Collector::new(1, Time::ZERO));
    let (Finished { summary, recorder, .. }, wall) = common::timed(|| simulation.run());
    let mean = recorder.groups[0].completion.mean().unwrap_or(Span::ZERO);
    let peak = common::peak_resident()
        .map_or("unknown".into(), |kilobytes| format!("{:.1}", kilobytes as f64 / 1024.0));
    println!(
        "| {} | {} | {} | {} | {} | {:.1} | {peak} | {:.1} | {:.2} |",
        link.rate.as_bits_per_sec() / 1_000_000,
        summary.flows,
        summary.data_packets,
        recorder.groups[0].counts.lost,
        summary.peak_flows,
        mean.as_millis_f64(),
        wall,
        summary.data_packets as f64 / wall / 1e6,
    );
}

fn main() {
    let most = match common::option("--flows").map(|text| text.parse::<u64>()) {
        None => 1_000_000,
        Some(Ok(flows)) => flows,
        Some(Err(error)) => panic!("--flows: {error}"),
    };
    println!(
        "| Mbit/s | flows | data packets | declared lost | most at once | mean, ms | peak resident, MiB | wall, s | M packets/s |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    // From small to large: the peak is the process's, so growth shows in this order only.
    let mut flows = 100_000;
    while flows < most {
        run(flows, FAST);
        flows *= 10;
    }
    run(most, FAST);
    let mut flows = 100_000;
    while flows < most {
        run(flows, SHORT);
        flows *= 10;
    }
}
