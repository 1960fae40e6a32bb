//! The test kit: schemes by name, groups, flows, and runs in which every packet is checked.
#![allow(dead_code, reason = "each test uses its part")]

use headstart_net::PathPlan;
use headstart_sim::workload::long::{Listed, Start};
use headstart_sim::workload::{Opener, Workload};
use headstart_sim::{
    Checker, ElementModel, Finished, FlowReport, Group, Path, Recorder, Scenario, Seed, Simulation, TcpConfig,
};
use headstart_startup::base;
use headstart_startup::catalogue;
use headstart_startup::scheme::Scheme;
use headstart_units::{Bytes, Time};

#[derive(Debug, Default)]
pub struct Reports(pub Vec<FlowReport>);

impl Recorder for Reports {
    fn flow(&mut self, report: &FlowReport) {
        self.0.push(*report);
    }
}

pub fn scheme(name: &str) -> Scheme {
    catalogue::find(name).expect("it is in the catalogue").scheme()
}

/// Hosts without hint and history.
pub fn group(scheme: Scheme, base: base::Kind, tcp: TcpConfig) -> Group {
    Group { base, ..Group::new(scheme, tcp) }
}

/// One flow of known size at the beginning.
pub fn flow(bytes: Bytes, opener: Opener) -> Box<dyn Workload> {
    let start = Start::new(Time::ZERO, bytes);
    Box::new(Listed::new(vec![start], opener))
}

/// One group on the path of `plan`.
pub fn scenario(plan: &PathPlan, group: Group, workload: Box<dyn Workload>, until: Time) -> Scenario {
    plan.check().expect("a path can be so");
    Scenario { path: Path::new(plan, Seed(1)), groups: vec![group], workload, until }
}

/// Runs it with every packet checked.
pub fn run_checked<R: Recorder>(models: &[ElementModel], scenario: Scenario, recorder: R) -> Finished<R> {
    let Finished { summary, path, histories, recorder } =
        Simulation::new(scenario, Checker::new(models, recorder)).run();
    let (faults, recorder) = recorder.finish(&path);
    assert_eq!(faults, Vec::<String>::new());
    Finished { summary, path, histories, recorder }
}
