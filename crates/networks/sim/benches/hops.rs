//! How many packet-hops does the simulator work out in a second, and what does a live flow take?
//! `cargo bench -p headstart-sim --bench hops -- [--case NAME] [--runs 5]`.
//!
//! A packet-hop is a packet, of data or not, that leaves a link. Each case changes one thing of the
//! first: ten endless flows over one drop-tail link. Rate and buffer grow with the flows, ten full
//! packets of bandwidth-delay product for each. Each run is a process of its own, so that its peak
//! of resident memory is the case's. Times are of the processor.

mod common;

use std::process::Command;
use std::sync::Arc;

use headstart_net::trace::Trace;
use headstart_net::{ElementPlan, Limit, LinkPlan, LinkRate, PathPlan, QueueDiscipline};
use headstart_sim::workload::arrivals::{ArrivalSpec, Arrivals, GapSpec, Sizes};
use headstart_sim::workload::long::{Listed, Start};
use headstart_sim::workload::page::{Fetch, Object, PageSpec, Pages};
use headstart_sim::workload::{Opener, Workload};
use headstart_sim::{Collector, Finished, Path, Scenario, Seed, Simulation, TcpConfig};
use headstart_startup::base;
use headstart_units::{Bytes, Rate, Ratio, Span, Time};

const RTT: Span = Span::from_millis(60);
/// Bits of a full packet, and packets of bandwidth-delay product for each flow.
const FLOW_BITS: u64 = 1500 * 8 * 10;
/// About so many data packets in each run, if `--packets` does not say another number.
const PACKETS: u64 = 3_000_000;

#[derive(Clone, Copy)]
enum Traffic {
    Endless,
    Pages,
    /// Poisson arrivals of this size, at this load of the first link in percent.
    Sizes(u64, u64),
}

#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    links: u32,
    flows: u64,
    discipline: QueueDiscipline,
    has_trace: bool,
    /// In percent.
    loss: u32,
    ecn: bool,
    traffic: Traffic,
}

const FIRST: Case = Case {
    name: "ten flows",
    links: 1,
    flows: 10,
    discipline: QueueDiscipline::DropTail,
    has_trace: false,
    loss: 0,
    ecn: false,
    traffic: Traffic::Endless,
};

const CASES: [Case; 20] = [
    FIRST,
    Case { name: "3 links", links: 3, ..FIRST },
    Case { name: "5 links", links: 5, ..FIRST },
    Case { name: "1000 flows", flows: 1000, ..FIRST },
    Case { name: "1000 flows, 5 links", flows: 1000, links: 5, ..FIRST },
    Case { name: "100 000 flows", flows: 100_000, ..FIRST },
    Case { name: "100 000 flows, 5 links", flows: 100_000, links: 5, ..FIRST },
    Case { name: "CoDel", discipline: QueueDiscipline::CoDel, ..FIRST },
    Case { name: "CoDel with ECN", discipline: QueueDiscipline::CoDel, ecn: true, ..FIRST },
    Case { name: "FQ-CoDel", discipline: QueueDiscipline::FqCoDel, ..FIRST },
    Case { name: "FQ-CoDel, 1000 flows", discipline: QueueDiscipline::FqCoDel, flows: 1000, ..FIRST },
    Case { name: "FQ-CoDel, 100 000 flows", discipline: QueueDiscipline::FqCoDel, flows: 100_000, ..FIRST },
    Case { name: "DualPI2 with ECN", discipline: QueueDiscipline::DualPi2, ecn: true, ..FIRST },
    Case { name: "PIE", discipline: QueueDiscipline::Pie, ..FIRST },
    Case { name: "RED", discipline: QueueDiscipline::Red, ..FIRST },
    Case { name: "trace", has_trace: true, ..FIRST },
    Case { name: "loss of 1 %", loss: 1, ..FIRST },
    Case { name: "pages of 20 objects at 60 %", traffic: Traffic::Pages, ..FIRST },
    Case { name: "100 kB at 60 %", traffic: Traffic::Sizes(100_000, 60), ..FIRST },
    Case { name: "1 byte at 130 %", traffic: Traffic::Sizes(1, 130), ..FIRST },
];

impl Case {
    fn rate(&self) -> Rate {
        Rate::from_bits_per_sec(FLOW_BITS * 1_000_000_000 / RTT.as_nanos() * self.flows)
    }

    fn path(&self) -> Path {
        let limit = Limit::bytes(Bytes::new(FLOW_BITS / 8 * self.flows));
        let mut link = LinkPlan::new(self.rate(), RTT / 2 / u64::from(self.links), limit);
        link.discipline = self.discipline;
        if self.has_trace {
            link.rate = LinkRate::Trace(Arc::new(Trace::constant(self.rate()).expect("a trace")));
        }
        let back = LinkPlan::new(self.rate(), link.delay, limit);
        let mut plan = PathPlan::links(link.clone(), back.clone());
        for _ in 1..self.links {
            plan.down.push(ElementPlan::Link(link.clone()));
            plan.up.push(ElementPlan::Link(back.clone()));
        }
        if self.loss > 0 {
            plan.down.push(ElementPlan::loss(Ratio::percent(self.loss)));
        }
        Path::new(&plan, Seed(1))
    }

    /// Time in which the first link sends so many full packets; of small ones it sends more.
    fn length(&self) -> Span {
        let packets = number("--packets").unwrap_or(PACKETS);
        let full = if matches!(self.traffic, Traffic::Sizes(1, _)) { packets / 20 } else { packets };
        Bytes::new(full * 1500) / self.rate()
    }

    fn workload(&self, until: Time) -> Box<dyn Workload> {
        let arrivals = |bits: u64, load: u64| {
            let gap = Bytes::new(bits / 8) / self.rate() * 100 / load;
            let until = until - Span::from_millis(500);
            (gap, until)
        };
        match self.traffic {
            Traffic::Endless => {
                // Within the first second, so that no burst of SYNs fills the buffer.
                let start = |n: u64| Start {
                    size_known: false,
                    ..Start::new(Time::ZERO + Span::from_secs(1) * n / self.flows, Bytes::new(1 << 40))
                };
                Box::new(Listed::new((0..self.flows).map(start).collect(), Opener::Sender))
            }
            Traffic::Pages => {
                let object = Object { origin: 0, bytes: Bytes::new(20_000), leads: false };
                let (gap, until) = arrivals(20 * 20_000 * 8, 60);
                let spec = PageSpec {
                    pages: vec![vec![object; 20]],
                    fetches: vec![Fetch::Persistent(6)],
                    gap,
                    until,
                    groups: vec![(0, 1)],
                    peers: 1000,
                    again: (0, Span::ZERO),
                };
                Box::new(Pages::new(spec, Seed(1)))
            }
            Traffic::Sizes(bytes, load) => {
                let headers = bytes.div_ceil(1460) * 40;
                let (gap, until) = arrivals((bytes + headers) * 8, load);
                let spec = ArrivalSpec {
                    peers: 1000,
                    opener: Opener::Receiver,
                    ..ArrivalSpec::new(GapSpec::Poisson(gap), Sizes::Fixed(Bytes::new(bytes)), until)
                };
                Box::new(Arrivals::new(spec, Seed(1)))
            }
        }
    }

    /// One run, as numbers in a line: packet-hops, data packets, events, most flows, seconds, kB.
    fn run(&self) {
        let until = Time::ZERO + self.length().max(Span::from_secs(2));
        let tcp = TcpConfig { ecn: self.ecn, ..TcpConfig::default() };
        let scenario = Scenario {
            path: self.path(),
            groups: vec![common::group(10, base::Kind::Cubic, tcp)],
            workload: self.workload(until),
            until,
        };
        let simulation = Simulation::new(scenario, Collector::new(1, Time::ZERO));
        let before = common::processor_seconds();
        let (Finished { summary, path, .. }, wall) = common::timed(|| simulation.run());
        let after = common::processor_seconds();
        let seconds = before.zip(after).map_or(wall, |(before, after)| after - before);
        let is_link =
            |name: &str| name.starts_with("bottleneck") || name.contains("back") || name.starts_with("hop");
        let links = path.packet_counts().filter(|(name, _)| is_link(name));
        let hops: u64 = links.map(|(_, counts)| counts.delivered).sum();
        let memory = common::peak_resident().unwrap_or(0);
        println!(
            "{hops} {} {} {} {seconds} {memory}",
            summary.data_packets, summary.events, summary.peak_flows
        );
    }
}

fn number(option: &str) -> Option<u64> {
    common::option(option).map(|text| text.parse().unwrap_or_else(|_| panic!("{option}: a number")))
}

fn main() {
    if let Some(name) = common::option("--this") {
        return CASES.iter().find(|case| case.name == name).expect("a case of this name").run();
    }
    let runs = number("--runs").unwrap_or(3);
    let packets = number("--packets").unwrap_or(PACKETS).to_string();
    let only = common::option("--case");
    println!(
        "| case | packet-hops (count) | most flows at once (count) | events/hop | ns/hop, median | M hops/s, median (best) | peak resident (MiB) |\n|---|--:|--:|--:|--:|--:|--:|"
    );
    for case in CASES.iter().filter(|case| only.as_deref().is_none_or(|only| only == case.name)) {
        let program = std::env::current_exe().expect("this program");
        let one = || {
            let arguments = ["--this", case.name, "--packets", &packets];
            let output = Command::new(&program).args(arguments).output().expect("a process");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let numbers: Vec<f64> = text.split_whitespace().map(|word| word.parse().expect(&text)).collect();
            <[f64; 6]>::try_from(numbers).unwrap_or_else(|_| panic!("{}: {text}", case.name))
        };
        let all: Vec<_> = (0..runs).map(|_| one()).collect();
        let [hops, _, events, flows, _, memory] = all[0];
        let speeds: Vec<f64> = all.iter().map(|run| run[0] / run[4] / 1e6).collect();
        let best = speeds.iter().copied().fold(0.0, f64::max);
        let middle = common::median(&speeds);
        println!(
            "| {} | {hops} | {flows} | {:.2} | {:.0} | {middle:.1} ({best:.1}) | {:.0} |",
            case.name,
            events / hops,
            1e3 / middle,
            memory / 1024.0
        );
    }
}
