//! A peer that comes back: 1 MB every three seconds at 100 Mbit/s and 50 ms. Other peers' flows of
//! the Internet's sizes are a concurrent load of 20 %.

use headstart_net::{Limit, PathPlan};
use headstart_sim::sizes::Sizes;
use headstart_sim::tcp::config::Probe;
use headstart_sim::workload::arrivals::{ArrivalSpec, Arrivals, GapSpec};
use headstart_sim::workload::long::{Listed, Start};
use headstart_sim::workload::{Mixed, Opener};
use headstart_sim::{FlowReport, Group, Path, Recorder, Scenario, Seed, Simulation, TcpConfig};
use headstart_startup::Scheme;
use headstart_units::{Bytes, Rate, Ratio, Span, Time};

const VISITS: usize = 20;
const PEER: u16 = 0;
const OTHERS: u16 = 1;
const BETWEEN: Span = Span::from_secs(3);

pub const COLUMNS: &str = "seed,scheme,visit,ms,first_flight_bytes,lost_packets";

/// The peer's flows.
#[derive(Debug, Default)]
struct Visits(Vec<FlowReport>);

impl Recorder for Visits {
    fn flow(&mut self, report: &FlowReport) {
        if report.group == PEER {
            self.0.push(*report);
        }
    }
}

/// Prints a line of CSV for each visit.
pub fn print(seed: u64, name: &str, scheme: Scheme) {
    let seed_of_run = Seed(seed).child("known");
    let (rate, rtt) = (Rate::from_mbit_per_sec(100), Span::from_millis(50));
    let plan = PathPlan::dumbbell(rate, rtt, Limit::bytes(rate * rtt));
    let receive_window = Bytes::new(6_000_000);
    let tcp = TcpConfig { probe: Probe::Quic, receive_window, ..TcpConfig::default() };
    let group = Group { history_capacity: 1000, ..Group::new(scheme, tcp) };
    let start = |visit: usize| Start {
        group: PEER,
        ..Start::new(Time::ZERO + BETWEEN * (visit as u64 + 1), Bytes::new(1_000_000))
    };
    let visits = Listed::new((0..VISITS).map(start).collect(), Opener::Receiver);
    let sizes = Sizes::internet(Bytes::new(5_000_000));
    let until = Time::ZERO + BETWEEN * (VISITS as u64 + 1);
    let others = ArrivalSpec {
        gaps: GapSpec::Poisson(sizes.gap_at(rate * Ratio::percent(20))),
        sizes,
        until,
        groups: vec![(OTHERS, 1)],
        classes: 1,
        peers: 100,
        opener: Opener::Receiver,
    };
    let others = Arrivals::new(others, seed_of_run.child("workload"));
    let scenario = Scenario {
        path: Path::new(&plan, seed_of_run),
        groups: vec![group.clone(), group],
        workload: Box::new(Mixed::new(vec![Box::new(visits), Box::new(others)])),
        until: until + Span::from_secs(20),
    };
    let Visits(mut flows) = Simulation::new(scenario, Visits::default()).run().recorder;
    flows.sort_by_key(|flow| flow.opened_at);
    for (visit, flow) in flows.iter().enumerate() {
        let ms = flow.completion_time().map_or(f64::NAN, |span| span.as_nanos() as f64 / 1e6);
        let (flight, lost) = (flow.first_flight.get(), flow.counts.lost);
        println!("{seed},\"{name}\",{},{ms:.1},{flight},{lost}", visit + 1);
    }
}
