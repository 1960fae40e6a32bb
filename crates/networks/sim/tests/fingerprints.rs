//! Runs that must not change unnoticed: two for each scheme, with fingerprints over all events.
//!
//! A difference is no fault by itself: a fix or a better model changes results. It must be
//! intended, though. `HEADSTART_BLESS=1 cargo test -p headstart-sim --test fingerprints` writes the
//! table anew; give the reason in the commit.

mod common;

use std::fmt::Write;

use common::{group, scenario};
use headstart_net::{Limit, PathPlan};
use headstart_sim::sizes::Sizes;
use headstart_sim::workload::arrivals::{ArrivalSpec, Arrivals, GapSpec};
use headstart_sim::{Collector, Group, Seed, Simulation, TcpConfig};
use headstart_startup::catalogue;
use headstart_startup::prior::{Access, Hint};
use headstart_startup::{Scheme, base};
use headstart_units::{Bytes, Rate, Ratio, Span, Time};

/// Halfback's access path at half load of flows of `size`, for twenty seconds: counters of the
/// flows, then the fingerprint.
fn run(scheme: Scheme, size: Bytes) -> String {
    let rate = Rate::from_mbit_per_sec(15);
    let plan = PathPlan::dumbbell(rate, Span::from_millis(60), Limit::bytes(Bytes::new(115_000)));
    let sizes = Sizes::Fixed(size);
    let arrivals = ArrivalSpec {
        peers: 4,
        ..ArrivalSpec::new(
            GapSpec::Poisson(sizes.gap_at(rate * Ratio::percent(50))),
            sizes,
            Time::from_millis(20_000),
        )
    };
    let group = Group {
        hint: Some(Hint { bandwidth: rate, access: Access::Unknown }),
        history_capacity: 100,
        ..group(scheme, base::Kind::Cubic, TcpConfig::default())
    };
    let workload = Box::new(Arrivals::new(arrivals, Seed(1)));
    let scenario = scenario(&plan, group, workload, Time::from_millis(40_000));
    let finished = Simulation::new(scenario, Collector::new(1, Time::ZERO)).run();
    let flows = &finished.recorder.groups[0];
    let millis = |time: Option<Span>| time.map_or(0.0, Span::as_millis_f64);
    let (mean, p99) = (millis(flows.completion.mean()), millis(flows.completion.quantile(990)));
    let bottleneck = finished.path.packet_counts().next().map(|(_, account)| *account).unwrap_or_default();
    let loss = 100.0 * bottleneck.total_dropped() as f64 / bottleneck.offered as f64;
    let (retransmissions, copies) = (flows.counts.retransmissions, flows.counts.copies);
    let fingerprint = finished.summary.fingerprint;
    format!("{mean:.1},{p99:.1},{loss:.2},{retransmissions},{copies},{fingerprint:016x}")
}

const HEADER: &str =
    "scheme,flow size,mean completion (ms),p99 (ms),loss (%),retransmissions,copies,fingerprint\n";

fn table() -> String {
    let mut table = HEADER.to_owned();
    // Opponents that are not compared by default follow.
    let opponents = ["bbr-v3", "prague"].map(|name| catalogue::find(name).expect("it is in the catalogue"));
    for entry in catalogue::all().into_iter().chain(opponents) {
        for (name, size) in [("100 kB", 100_000), ("1 MB", 1_000_000)] {
            let row = run(entry.scheme(), Bytes::new(size));
            writeln!(table, "{},{name},{row}", entry.name).expect("memory suffices");
        }
    }
    table
}

#[test]
fn results_match_the_golden_fingerprints() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fingerprints.csv");
    let found = table();
    if std::env::var_os("HEADSTART_BLESS").is_some() {
        std::fs::write(path, &found).expect("the table can be written");
        return;
    }
    let expected = std::fs::read_to_string(path).expect("the table is there");
    // A row begins with scheme and size.
    let key = |row: &str| row.splitn(3, ',').take(2).collect::<Vec<_>>().join(",");
    let before = |row: &str| expected.lines().find(|before| key(before) == key(row)).unwrap_or("nothing");
    let changed: Vec<String> = found
        .lines()
        .filter(|line| !expected.lines().any(|before| before == *line))
        .map(|line| format!("{line}\n  before {}", before(line)))
        .collect();
    assert!(
        found == expected,
        "{} results changed:\n{}\nif that is meant: HEADSTART_BLESS=1 cargo test -p headstart-sim --test fingerprints",
        changed.len(),
        changed.join("\n")
    );
}

#[test]
fn schemes_have_distinct_fingerprints() {
    let table = table();
    let lines: Vec<Vec<&str>> = table.lines().skip(1).map(|line| line.split(',').collect()).collect();
    // Both fingerprints of a scheme.
    let rows: Vec<(&str, [&str; 2])> =
        lines.chunks(2).map(|pair| (pair[0][0], [pair[0][7], pair[1][7]])).collect();
    for (at, (name, row)) in rows.iter().enumerate() {
        for (other, same) in &rows[..at] {
            // With a probe for every sender's lost tails Reactive is slow start; WiseStart's
            // adaptation is for applications that pause. No router takes part here: schemes that
            // need one fall back to slow start.
            let is_known = matches!((*name, *other), ("reactive", "iw2") | ("wise-start-wa", "wise-start"))
                || ["quick-start", "rcp"].contains(name);
            assert!(is_known || row != same, "{name} does what {other} does");
        }
    }
}
