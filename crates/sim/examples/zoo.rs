//! All schemes at one load.
#![allow(clippy::disallowed_methods)]
use headstart_net::{AnyElement, Limit, Link};
use headstart_sim::workload::Opener;
use headstart_sim::workload::arrivals::{ArrivalSpec, Arrivals, GapSpec, Sizes};
use headstart_sim::*;
use headstart_startup::prior::{Access, Hint};
use headstart_startup::{base, catalogue};
use headstart_units::*;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let loads: Vec<f64> = args
        .first()
        .map_or(vec![0.05, 0.25, 0.5, 0.7, 0.85], |l| l.split(',').map(|x| x.parse().unwrap()).collect());
    let only = args.get(1).cloned().unwrap_or_default();
    for entry in catalogue::ALL.iter().filter(|e| e.name.contains(&only)) {
        print!("{:18}", entry.name);
        for &load in &loads {
            let secs = 300.0;
            let rate = Rate::from_mbit_per_sec(15);
            let (delay, limit) = (Span::from_millis(30), Limit::bytes(Bytes::new(115_000)));
            let mut b = PathBuilder::default();
            let f = b.element("down", AnyElement::Link(Link::new(rate, delay, limit)));
            let r = b.element("up", AnyElement::Link(Link::new(rate, delay, limit)));
            b.class(vec![f], vec![r]);
            let spec = ArrivalSpec {
                gaps: GapSpec::Poisson(Span::from_nanos((800_000.0 / (load * 15e6) * 1e9) as u64)),
                sizes: Sizes::Fixed(Bytes::new(100_000)),
                until: Time::from_millis((secs * 1000.0) as u64),
                groups: vec![(0, 1)],
                classes: 1,
                peers: 20,
                opener: Opener::Sender,
            };
            let s = Scenario {
                path: b.build(),
                groups: vec![Group {
                    scheme: entry.scheme(),
                    base: base::Kind::Cubic,
                    tcp: TcpConfig::default(),
                    hint: Some(Hint { bandwidth: rate, access: Access::Unknown }),
                    history_capacity: 1000,
                }],
                workload: Box::new(Arrivals::new(spec, Seed(1))),
                until: Time::from_millis((secs * 1000.0) as u64 + 20_000),
            };
            let t = std::time::Instant::now();
            let claim = Claim::Link { rate, delay, limit };
            let fin = Simulation::new(s, Checker::new(&[claim, claim], Collector::new(1, Time::ZERO))).run();
            let (faults, col) = fin.recorder.finish(&fin.path);
            let wall = t.elapsed().as_secs_f64();
            let g = &col.groups[0];
            print!(
                " | {:6.0} l{:4.1}% o{:.2} u{} {:.1}M",
                g.completion.mean().unwrap().as_millis_f64(),
                g.loss() * 100.0,
                g.overhead(),
                g.unfinished,
                fin.summary.data_packets as f64 / wall / 1e6
            );
            if !faults.is_empty() {
                print!(" FAULTS {faults:?}");
            }
        }
        println!();
    }
}
