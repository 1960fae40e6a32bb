//! Requests without a connection, during honest transfers: the loss with each kind of router, and
//! the time of its recovery.
//!
//! Source: Quick-Start §8, with the attacks of [`AttackName`](crate::options::AttackName). Honest
//! hosts send transfers of one size as a Poisson process and request exactly the rate they need.
//! The attack lasts for the second third of the run.
//!
//! Grants to honest flows are given as a share of their requests, zero for those that were denied.
//! A router that grants every flow a little has lost as much as one that denies most.

use anyhow::Result;
use clap::Args;
use headstart_sim::workload::arrivals::{ArrivalSpec, Arrivals, GapSpec, Sizes};
use headstart_sim::workload::spoof::Spoof;
use headstart_sim::workload::{Mixed, Workload};
use headstart_sim::{Access, Chain, FlowReport, Grant, Scenario, Seed};
use headstart_units::{Bytes, Span, Time};

use super::{HEADER, MSS, build, group, router, spec};
use crate::carrier::{Detail, Observer, model};
use crate::options::attack::VICTIM;
use crate::study::{Case, Declared, Measure, Measured, Study};

/// Honest flows this soon after the attack's start or end count for neither phase.
const SETTLING: Span = Span::from_secs(2);

/// Numbers of each third of the run: before the attack, during it and after it.
const THIRD_MEASURES: &[Measure] = &[
    Measure::new("approved", "%", "honest requests approved"),
    Measure::new("granted", "%", "what honest flows were granted, of what they asked for"),
    Measure::new("mean", "ms", "mean completion time of honest flows"),
];

const MEASURES: &[Measure] = &[
    Measure::new(
        "victim.granted",
        "%",
        "what the victim of framing was granted during the attack, of what it asked for",
    ),
    Measure::new("recovery", "ms", "from the end of the attack to the first honest request that is approved"),
    Measure::new("examined", "1/s", "requests that the first router looked at during the attack"),
    Measure::new("max-flows", "", "most flows that the first router remembered at the same time"),
    Measure::new("max-hosts", "", "most hosts that it remembered"),
    Measure::new("state", "B", "its state at the end"),
];

/// Requests without connections, during honest transfers.
#[derive(Args, Debug)]
pub struct Attack {}

impl Study for Attack {
    const NAME: &'static str = "quick-start-attack";
    const ABOUT: &'static str = "requests without connections, during honest transfers (Quick-Start §8)";
    const NEEDS: Detail = Detail::Topology;
    const DECLARED: &'static [Declared] = &[
        Declared { prefixes: &["before.", "during.", "after."], measures: THIRD_MEASURES },
        Declared { prefixes: &[""], measures: MEASURES },
    ];

    fn run(&self, case: &Case<'_>) -> Result<Measured> {
        Ok(run_attack(case).into_iter().collect())
    }
}

fn run_attack(case: &Case<'_>) -> Vec<(String, f64)> {
    let Case { setup, mix, seed } = *case;
    let seed = Seed(seed);
    let options = &setup.workload;
    let chain = spec(setup, vec![Access::default()], vec![]);
    let rtt = chain.rtt(0);
    let third = setup.run.duration / 3;
    let (from, to, until) = (Time::ZERO + third, Time::ZERO + third * 2, Time::ZERO + setup.run.duration);
    let bytes = Bytes::new(setup.mean_bytes() as u64);
    let sizes = Sizes::Fixed(bytes);
    let honest = Arrivals::new(
        ArrivalSpec {
            peers: options.peers,
            ..ArrivalSpec::new(GapSpec::Poisson(sizes.gap_at(setup.path.rate * options.load)), sizes, until)
        },
        seed.child("honest"),
    );
    let mut parts: Vec<Box<dyn Workload>> = vec![Box::new(honest)];
    if let Some(attack) = options.attack.spoof(options.attack_requests, from, to, HEADER) {
        parts.push(Box::new(Spoof::new(attack, seed.child("attack"))));
    }
    let Chain { path, links, .. } = build(setup, &chain, seed);
    let scenario = Scenario {
        path,
        groups: vec![group(setup, mix.tested, rtt)],
        workload: Box::new(Mixed::new(parts)),
        until: until + setup.run.drain,
    };
    let request = bytes + HEADER * bytes.get().div_ceil(MSS.get());
    let wanted = (request / rtt).as_bytes_per_sec() as f64;
    let recorder = HonestFlows { thirds: [from, to], wanted, ..HonestFlows::default() };
    let mut finished = model::simulate(scenario, recorder);
    let mut numbers = finished.recorder.numbers(to);
    if let Some(router) = links.first().and_then(|(there, _)| router(&mut finished.path, *there)) {
        let counts = router.counts();
        // Outside of the attack the one request of every honest flow is processed.
        let looked_at = (counts.requests - counts.beyond_limit) as f64;
        let during = (looked_at - finished.recorder.outside).max(0.0) / third.as_secs_f64();
        let (flows, hosts) = router.most_tracked();
        numbers.extend([
            ("examined".to_owned(), during),
            ("max-flows".to_owned(), flows as f64),
            ("max-hosts".to_owned(), hosts as f64),
            ("state".to_owned(), router.state_bytes() as f64),
        ]);
    }
    numbers
}

#[derive(Clone, Copy, Debug, Default)]
struct Phase {
    flows: f64,
    approved: f64,
    granted: f64,
    millis: f64,
}

#[derive(Debug, Default)]
struct HonestFlows {
    /// Start and end of the attack.
    thirds: [Time; 2],
    /// Rate that each requests, in bytes per second.
    wanted: f64,
    thirds_counted: [Phase; 3],
    victim: (f64, f64),
    /// Flows that began before the attack or after it.
    outside: f64,
    /// Times of approved requests.
    approved: Vec<Time>,
}

impl Observer for HonestFlows {
    fn flow(&mut self, report: &FlowReport) {
        let Some(time) = report.completion_time() else { return };
        let granted = match report.grant {
            Grant::Granted(rate) => rate.as_bytes_per_sec() as f64 / self.wanted,
            _ => 0.0,
        };
        let at = report.opened_at;
        if granted > 0.0 {
            self.approved.push(at);
        }
        self.outside += f64::from(u8::from(at < self.thirds[0] || at >= self.thirds[1]));
        let number = self.thirds.iter().filter(|begins| at >= **begins).count();
        if number > 0 && at < self.thirds[number - 1] + SETTLING {
            return;
        }
        let third = &mut self.thirds_counted[number];
        third.flows += 1.0;
        third.approved += f64::from(u8::from(granted > 0.0));
        third.granted += granted;
        third.millis += time.as_millis_f64();
        if number == 1 && report.peer == VICTIM {
            self.victim = (self.victim.0 + 1.0, self.victim.1 + granted);
        }
    }
}

impl HonestFlows {
    fn numbers(&self, ended_at: Time) -> Vec<(String, f64)> {
        let mut numbers = vec![];
        for (name, third) in ["before", "during", "after"].into_iter().zip(&self.thirds_counted) {
            let mean = |sum: f64| sum / third.flows;
            numbers.extend([
                (format!("{name}.approved"), 100.0 * mean(third.approved)),
                (format!("{name}.granted"), 100.0 * mean(third.granted)),
                (format!("{name}.mean"), mean(third.millis)),
            ]);
        }
        numbers.push(("victim.granted".to_owned(), 100.0 * self.victim.1 / self.victim.0));
        let first = self.approved.iter().filter(|at| **at >= ended_at).min();
        let recovery = first.map_or(f64::NAN, |at| at.since(ended_at).as_millis_f64());
        numbers.push(("recovery".to_owned(), recovery));
        numbers
    }
}
