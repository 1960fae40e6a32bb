//! One short flow over a path of a population: completion time, round trips, losses.
//!
//! Source: Halfback §4.2.1 (Figures 5 to 8) and §4.2.2 (Figure 9). The seed is the number of the
//! path; on it, every scheme meets the same cross traffic and the same random losses. Ten seconds
//! before the measured flow, another one of the scheme has used the path: it leaves a record for
//! schemes with a history (TCP-Cache).

pub mod population;

use anyhow::{Context, Result};
use clap::Args;
use headstart_sim::sizes::Sizes;
use headstart_sim::workload::arrivals::{ArrivalSpec, Arrivals, GapSpec};
use headstart_sim::workload::long::{Listed, Start};
use headstart_sim::workload::{Mixed, Opener, Workload};
use headstart_sim::{FlowReport, Random, Seed};
use headstart_units::{Bytes, Ratio, Span, Time};

use crate::carrier::{Detail, Observer, Run};
use crate::schemes;
use crate::setup::{BESIDE, SchemeMix, Setup, TESTED};
use crate::study::{Case, Declared, Measure, Measured, Study, percent};
use population::{PathSpec, Population};

/// Start of the measured flow.
const START: Time = Time::from_millis(10_000);
/// Cross traffic starts so long before it, and arrives until [`UNTIL`].
const BEFORE: Span = Span::from_secs(3);
const UNTIL: Time = Time::from_millis(14_000);
/// Time at which unfinished flows count with their age.
const END: Time = Time::from_millis(70_000);
/// Size of each flow of the cross traffic.
const CROSS: Bytes = Bytes::new(30_000);
/// Scheme whose losses make a case one "where packet loss happened" (Halfback Figure 8), for all.
const LOSS_REFERENCE: &str = "jump-start";

const MEASURES: &[Measure] = &[
    Measure::new("completion", "ms", "from the first SYN to the last byte at the receiver"),
    Measure::new(
        "rounds",
        "",
        "from establishment to the sender's last ack, in round trips of the flow's own path",
    ),
    Measure::new("is-two-rounds", "%", "100 if that is at most 2.5, else 0"),
    Measure::new("retransmissions", "", "normal retransmissions, copies not"),
    Measure::new("missed", "", "segments that were missing at the receiver when a later one arrived"),
    Measure::new("copies", "", "proactive copies"),
    Measure::new("timeouts", "", "retransmission timeouts"),
    Measure::new("is-lossy", "%", "100 if a segment of this flow was declared lost, else 0"),
    Measure::new("lossy.completion", "ms", "`completion`, on paths where jump-start lost a segment"),
    Measure::new("lossless.completion", "ms", "`completion`, on paths where jump-start lost none"),
];

/// Parameters of a wide-area study.
#[derive(Args, Clone, Debug)]
pub struct WideAreaParams {
    /// Draw the path of each seed from this population, whatever the path's options say
    #[arg(long, value_name = "NAME")]
    population: Option<Population>,
}

impl Study for WideAreaParams {
    const NAME: &'static str = "wide-area";
    const ABOUT: &'static str = "one flow over each path of a population";
    const NEEDS: Detail = Detail::Topology;
    const DECLARED: &'static [Declared] = &[Declared { prefixes: &[""], measures: MEASURES }];

    fn run(&self, case: &Case<'_>) -> Result<Measured> {
        let population = self.population.context("population: found none, expected a population's name")?;
        run_path(population, case)
    }
}

/// Runs one flow over path number `seed` of a population.
fn run_path(population: Population, case: &Case<'_>) -> Result<Measured> {
    let Case { setup, mix, seed } = *case;
    let path = population.path(seed);
    let on_path = setup.with_path(path.options(setup.path.buffer))?;
    let report = run_flow(&on_path, &path, mix, seed)?.context("the flow was not reported")?;
    let acknowledged = report.ended_at.since(report.opened_at);
    let completion = report.completion_time().unwrap_or(acknowledged).as_millis_f64();
    let established = report.established_at.unwrap_or(report.ended_at);
    let rounds =
        report.ended_at.since(established).as_millis_f64() / report.min_rtt.as_millis_f64().max(1e-6);
    let mut numbers = vec![
        ("completion", completion),
        ("rounds", rounds),
        ("is-two-rounds", percent(rounds <= 2.5)),
        ("retransmissions", report.counts.retransmissions as f64),
        ("missed", f64::from(report.missed)),
        ("copies", report.counts.copies as f64),
        ("timeouts", report.counts.timeouts as f64),
        ("is-lossy", percent(report.counts.lost > 0)),
    ];
    let judge = match schemes::find(LOSS_REFERENCE) {
        Ok(tested) if mix.tested.name != LOSS_REFERENCE => {
            run_flow(&on_path, &path, SchemeMix { tested, beside: None }, seed)?
        }
        _ => Some(report),
    };
    match judge.map(|report| report.counts.lost > 0) {
        Some(true) => numbers.push(("lossy.completion", completion)),
        Some(false) => numbers.push(("lossless.completion", completion)),
        None => {}
    }
    Ok(numbers.into_iter().collect())
}

fn run_flow(setup: &Setup, path: &PathSpec, mix: SchemeMix, seed: u64) -> Result<Option<FlowReport>> {
    let seed = Seed(seed).child("wide area");
    let bytes = Bytes::new(setup.mean_bytes() as u64);
    let start = |at| Start { group: TESTED, ..Start::new(at, bytes) };
    let flows = Listed::new(vec![start(Time::ZERO), start(START)], Opener::Sender);
    let mut parts: Vec<Box<dyn Workload>> = vec![Box::new(flows)];
    if path.cross_percent > 0 {
        parts.push(Box::new(cross_traffic(path, seed.child("cross traffic"))));
    }
    let run = Run::new(setup, mix, Box::new(Mixed::new(parts)), END, seed);
    Ok(run.observe(LaterFlow::default())?.observer.0)
}

/// Flows of slow start from ten segments; they begin shortly before the measured flow.
fn cross_traffic(path: &PathSpec, seed: Seed) -> Arrivals {
    let gap = CROSS / (path.rate * Ratio::percent(path.cross_percent));
    let mut gaps = Random::new(seed.child("gaps"));
    let (mut times, mut at) = (vec![], START - BEFORE);
    while at < UNTIL {
        times.push(at);
        at += gaps.exponential(gap);
    }
    let spec = ArrivalSpec {
        groups: vec![(BESIDE, 1)],
        ..ArrivalSpec::new(GapSpec::Given(times), Sizes::Fixed(CROSS), UNTIL)
    };
    Arrivals::new(spec, seed)
}

/// Keeps the report of the later flow under test.
#[derive(Debug, Default)]
struct LaterFlow(Option<FlowReport>);

impl Observer for LaterFlow {
    fn flow(&mut self, report: &FlowReport) {
        if report.group == TESTED && report.opened_at >= START {
            self.0 = Some(*report);
        }
    }
}
