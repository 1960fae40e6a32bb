//! Integration tests, as one program.

mod comparison;
mod conformance;
mod contract;
mod example;
mod on_noq;
mod on_quinn;
mod scenario;

use headstart_net::{ElementPlan, Limit, PathPlan, loss};
use headstart_sim::tcp::Pacing;
use headstart_sim::{Collector, Group, Path, Seed, Simulation, TcpConfig};
use headstart_startup::catalogue::Entry;
use headstart_units::{Ratio, Time};

use contract::{OVER_QUIC, hold};
use scenario::Scenario;

#[test]
fn every_call_of_the_contract_is_made_over_noq() {
    hold("noq", &OVER_QUIC, &|scenario, entry| {
        let choice = headstart_quic::Choice::of(entry).expect("carried");
        on_noq::run_choice(scenario, choice);
    });
}

#[test]
fn every_call_of_the_contract_is_made_over_quinn() {
    hold("quinn", &OVER_QUIC, &|scenario, entry| {
        let choice = headstart_quinn::Choice::of(entry).expect("carried");
        on_quinn::run_choice(scenario, choice);
    });
}

/// The scenario in the simulator's TCP model. Losses are drawn.
fn run_model(scenario: &Scenario, entry: &Entry) {
    let mut path = PathPlan::dumbbell(scenario.rate, scenario.rtt, Limit::packets(scenario.buffer));
    if !scenario.losses.is_empty() {
        let changes =
            vec![(Time::from_millis(150), Ratio::ONE), (Time::from_millis(3000), Ratio::percent(0))];
        path.down.push(ElementPlan::Loss(loss::Params { share: Ratio::percent(2), changes }));
    }
    let tcp = TcpConfig { several_responses: true, pacing: Pacing::Linux, ..TcpConfig::default() };
    let group = Group { hint: scenario.hint, history_capacity: 100, ..Group::new(entry.scheme(), tcp) };
    let scenario = headstart_sim::Scenario {
        path: Path::new(&path, Seed(1)),
        groups: vec![group],
        workload: on_noq::Requests::of(scenario),
        until: Time::from_millis(60_000),
    };
    Simulation::new(scenario, Collector::new(1, Time::ZERO)).run();
}

#[test]
fn every_call_of_the_contract_is_made_in_the_model() {
    hold("the model", &[], &run_model);
}
