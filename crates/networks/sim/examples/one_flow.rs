//! One flow alone on a path, by scheme: `cargo run -p headstart-sim --example one_flow`.

use headstart_net::{Limit, PathPlan};
use headstart_sim::workload::Opener;
use headstart_sim::workload::long::{Listed, Start};
use headstart_sim::{FlowReport, Group, Path, Recorder, Scenario, Seed, Simulation, TcpConfig};
use headstart_startup::catalogue;
use headstart_units::{Bytes, Rate, Span, Time};

#[derive(Debug, Default)]
struct Reports(Vec<FlowReport>);

impl Recorder for Reports {
    fn flow(&mut self, report: &FlowReport) {
        self.0.push(*report);
    }
}

/// Completion time of 100 kB at 15 Mbit/s, with an RTT of 60 ms and a buffer of 115 kB.
fn completion_time(scheme: &str) -> Span {
    let limit = Limit::bytes(Bytes::new(115_000));
    let plan = PathPlan::dumbbell(Rate::from_mbit_per_sec(15), Span::from_millis(60), limit);
    let group =
        Group::new(catalogue::find(scheme).expect("a name of the catalogue").scheme(), TcpConfig::default());
    let bytes = Bytes::new(100_000);
    let flow = Start::new(Time::ZERO, bytes);
    let scenario = Scenario {
        path: Path::new(&plan, Seed(1)),
        groups: vec![group],
        workload: Box::new(Listed::new(vec![flow], Opener::Sender)),
        until: Time::from_millis(10_000),
    };
    let finished = Simulation::new(scenario, Reports::default()).run();
    finished.recorder.0[0].completion_time().expect("the flow completes")
}

fn main() {
    for scheme in ["iw10", "iw32", "jump-start", "halfback", "headstart"] {
        println!("{scheme:12} {:.0} ms", completion_time(scheme).as_secs_f64() * 1e3);
    }
}

#[test]
fn slow_start_takes_four_rounds_after_the_handshake_and_jump_start_one() {
    assert!(completion_time("iw10") > Span::from_millis(240));
    assert!(completion_time("jump-start") < Span::from_millis(160));
}
