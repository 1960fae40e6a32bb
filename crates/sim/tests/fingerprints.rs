//! Runs that must not change unnoticed: two for each scheme, told by the fingerprint over all its events.
//!
//! A difference is no fault by itself: a fix or a better model changes results. It must be meant, though. When it is,
//! `HEADSTART_BLESS=1 cargo test -p headstart-sim --test fingerprints` writes the table anew; say in the commit why.

use std::fmt::Write;

use headstart_net::{AnyElement, Limit, Link};
use headstart_sim::sizes::Sizes;
use headstart_sim::workload::Opener;
use headstart_sim::workload::arrivals::{ArrivalSpec, Arrivals, GapSpec};
use headstart_sim::{Group, NullRecorder, PathBuilder, Scenario, Seed, Simulation, TcpConfig};
use headstart_startup::catalogue::{self, Entry};
use headstart_startup::prior::{Access, Hint};
use headstart_startup::{Scheme, base};
use headstart_units::{Bytes, Rate, Ratio, Span, Time};

/// Halfback's access path at half load of flows of `size`, for twenty seconds.
fn fingerprint(scheme: Scheme, size: Bytes) -> u64 {
    let (rate, delay) = (Rate::from_mbit_per_sec(15), Span::from_millis(30));
    let limit = Limit::bytes(Bytes::new(115_000));
    let mut path = PathBuilder::default();
    let forward = path.element("forward", AnyElement::Link(Link::new(rate, delay, limit)));
    let reverse = path.element("reverse", AnyElement::Link(Link::new(rate, delay, limit)));
    path.class(vec![forward], vec![reverse]);
    let sizes = Sizes::Fixed(size);
    let arrivals = ArrivalSpec {
        gaps: GapSpec::Poisson(sizes.gap_at(rate * Ratio::percent(50))),
        sizes,
        until: Time::from_millis(20_000),
        groups: vec![(0, 1)],
        classes: 1,
        peers: 4,
        opener: Opener::Sender,
    };
    let group = Group {
        scheme,
        base: base::Kind::Cubic,
        tcp: TcpConfig::default(),
        hint: Some(Hint { bandwidth: rate, access: Access::Unknown }),
        history_capacity: 100,
    };
    let scenario = Scenario {
        path: path.build(),
        groups: vec![group],
        workload: Box::new(Arrivals::new(arrivals, Seed(1))),
        until: Time::from_millis(40_000),
    };
    Simulation::new(scenario, NullRecorder).run().summary.fingerprint
}

const HEADER: &str = "scheme,100 kB,1 MB\n";

fn table() -> String {
    let row = |mut table: String, entry: &Entry| {
        let [short, long] = [100_000, 1_000_000].map(|size| fingerprint(entry.scheme(), Bytes::new(size)));
        writeln!(table, "{},{short:016x},{long:016x}", entry.name).expect("memory suffices");
        table
    };
    catalogue::ALL.iter().fold(HEADER.to_owned(), row)
}

#[test]
fn results_change_only_when_they_are_meant_to() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fingerprints.csv");
    let found = table();
    if std::env::var_os("HEADSTART_BLESS").is_some() {
        std::fs::write(path, &found).expect("the table can be written");
        return;
    }
    let expected = std::fs::read_to_string(path).expect("the table is there");
    let changed: Vec<String> = found
        .lines()
        .filter(|line| !expected.lines().any(|before| before == *line))
        .map(|line| {
            let name = line.split(',').next().unwrap_or_default();
            let before = expected.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(','));
            format!("{line}, before {}", before.unwrap_or("nothing"))
        })
        .collect();
    assert!(
        found == expected,
        "the results of {} schemes changed:\n{}\nif that is meant: HEADSTART_BLESS=1 cargo test -p headstart-sim --test fingerprints",
        changed.len(),
        changed.join("\n")
    );
}

#[test]
fn schemes_are_told_apart() {
    let table = table();
    let rows: Vec<(&str, &str)> = table.lines().skip(1).filter_map(|line| line.split_once(',')).collect();
    for (at, (name, row)) in rows.iter().enumerate() {
        for (other, same) in &rows[..at] {
            // With a probe for everybody's lost tails Reactive is slow start; WiseStart's adaptation is for
            // applications that pause. No router takes part here: those who need one fall back to slow start.
            let is_known = matches!((*name, *other), ("reactive", "iw2") | ("wise-start-wa", "wise-start"))
                || ["quick-start", "rcp"].contains(name);
            assert!(is_known || row != same, "{name} does what {other} does");
        }
    }
}
