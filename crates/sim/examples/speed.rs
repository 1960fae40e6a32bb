//! How fast is the simulator? Runs the short plan and prints data packets per second of wall time.
#![allow(clippy::disallowed_methods)]
use headstart_net::{AnyElement, Limit, Link};
use headstart_sim::workload::Opener;
use headstart_sim::workload::arrivals::{ArrivalSpec, Arrivals, GapSpec, Sizes};
use headstart_sim::*;
use headstart_startup::scheme::SlowStart;
use headstart_startup::{Scheme, base};
use headstart_units::*;

#[derive(Default)]
struct Fct {
    sum: f64,
    n: u64,
    all: Vec<u64>,
    lost: u64,
    to: u64,
    rtx: u64,
}
impl Recorder for Fct {
    fn flow(&mut self, r: &FlowReport) {
        let t = r.completion_time().unwrap_or(r.ended_at.since(r.opened_at));
        self.sum += t.as_secs_f64();
        self.n += 1;
        self.all.push(t.as_nanos());
        self.lost += r.counts.lost;
        self.to += r.counts.timeouts;
        self.rtx += r.counts.retransmissions;
    }
}

fn main() {
    let args: Vec<f64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let load = args.first().copied().unwrap_or(0.6);
    let iw = args.get(1).copied().unwrap_or(10.0) as u64;
    let secs = args.get(2).copied().unwrap_or(600.0);
    for seed in 1..=3 {
        let mut b = PathBuilder::default();
        let rate = Rate::from_mbit_per_sec(15);
        let f = b.element(
            "down",
            AnyElement::Link(Link::new(rate, Span::from_millis(30), Limit::bytes(Bytes::new(115_000)))),
        );
        let r = b.element(
            "up",
            AnyElement::Link(Link::new(rate, Span::from_millis(30), Limit::bytes(Bytes::new(115_000)))),
        );
        b.class(vec![f], vec![r]);
        let size = Bytes::new(100_000);
        let gap = 800_000.0 / (load * 15e6);
        let spec = ArrivalSpec {
            gaps: gaps(load, seed, gap),
            sizes: Sizes::Fixed(size),
            until: Time::from_millis((secs * 1000.0) as u64),
            groups: vec![(0, 1)],
            classes: 1,
            peers: 1,
            opener: Opener::Sender,
        };
        let scheme = Scheme::SlowStart(SlowStart::new(headstart_startup::scheme::slow_start::Params {
            initial_window: iw,
            ..Default::default()
        }));
        let s = Scenario {
            path: b.build(),
            groups: vec![Group {
                scheme,
                base: base::Kind::Cubic,
                tcp: tcp(),
                hint: None,
                history_capacity: 0,
            }],
            workload: Box::new(Arrivals::new(spec, Seed(seed))),
            until: Time::from_millis((secs * 1000.0) as u64 + 20_000),
        };
        let t = std::time::Instant::now();
        let Finished { summary: sum, path, recorder: mut fct, .. } = Simulation::new(s, Fct::default()).run();
        let wall = t.elapsed().as_secs_f64();
        fct.all.sort();
        let (_, acc) = path.accounts().next().unwrap();
        println!(
            "seed {seed} mean {:.1} p50 {:.1} p99 {:.1} ms flows {} unf {} loss {:.3}% to {} rtx {} | {:.2} Mpkt/s {:.1} Mev/s ev/pkt {:.2} fp {:016x} peak {}",
            fct.sum / fct.n as f64 * 1e3,
            fct.all[fct.all.len() / 2] as f64 / 1e6,
            fct.all[fct.all.len() * 99 / 100] as f64 / 1e6,
            fct.n,
            sum.unfinished,
            acc.dropped_in_all() as f64 / acc.offered as f64 * 100.0,
            fct.to,
            fct.rtx,
            sum.data_packets as f64 / wall / 1e6,
            sum.events as f64 / wall / 1e6,
            sum.events as f64 / sum.data_packets as f64,
            sum.fingerprint,
            sum.peak_flows
        );
    }
}

fn gaps(load: f64, seed: u64, gap: f64) -> GapSpec {
    match std::fs::read_to_string(format!("/tmp/arr-{load}-{seed}")) {
        Ok(text) => GapSpec::Given(
            text.lines().map(|l| Time::from_nanos((l.trim().parse::<f64>().unwrap() * 1e9) as u64)).collect(),
        ),
        Err(_) => GapSpec::Poisson(Span::from_nanos((gap * 1e9) as u64)),
    }
}
fn tcp() -> TcpConfig {
    let mode = std::env::var("MODE").unwrap_or_default();
    let mut t = TcpConfig::default();
    if mode.contains("ns3") {
        t.detection = tcp::Detection::Rfc6675;
        t.probe = tcp::Probe::None;
        t.min_rto = Span::from_secs(1);
        t.initial_rto = Span::from_secs(3);
        t.receive_window = Bytes::new(4_000_000);
        t.idle_restart = false;
        if mode.contains("del") {
            t.delayed_ack = tcp::DelayedAck { quick: 1, ..tcp::DelayedAck::SECOND };
        }
    }
    t
}
