//! The search for each scheme's feasible capacity ([`feasible`] has the rules).
//!
//! The load rises in steps of 5 % from 5 % to 95 %, all loads with the same seeds. When a scheme
//! has broken all three rules, it is not run any further.

use anyhow::Result;
use headstart_report::jobs::JobStore;
use headstart_startup::catalogue::Entry;
use headstart_units::{Ratio, Span};
use serde::Serialize;

use crate::race::entries;
use headstart_study::estimate::Estimate;
use headstart_study::feasible::{self, Point, Rule};
use headstart_study::progress::Progress;
use headstart_study::runner::{Job, JobResult, run_all, work};
use headstart_study::setup::{SchemeMix, Setup, TESTED, reference};

const STEP_PERCENT: u32 = 5;
/// The highest load tried.
const TOP_PERCENT: u32 = 95;

/// Result of the search for one scheme.
#[derive(Clone, Debug, Serialize)]
pub struct Capacity {
    /// The scheme's name.
    pub scheme: String,
    /// Rule 1: mean at most four times its own at 5 %, in percent of load; zero if broken at once.
    pub own_percent: u32,
    /// Rule 2: mean at most one second.
    pub absolute_percent: u32,
    /// Rule 3: mean at most slow start's from ten segments.
    pub reference_percent: u32,
    /// Mean completion time in milliseconds at each load that was run.
    pub curve: Vec<(u32, f64)>,
}

/// A scheme in the search, with the curve so far.
struct SchemeSearch {
    entry: &'static Entry,
    curve: Vec<Point>,
}

impl SchemeSearch {
    fn percent(&self, rule: Rule) -> u32 {
        feasible::capacity(rule, &self.curve) as u32
    }

    /// By some rule the last load was feasible.
    fn is_alive(&self) -> bool {
        let last = self.curve.last().map_or(0.0, |point| point.load) as u32;
        [Rule::Own, Rule::Absolute, Rule::Reference].iter().any(|rule| self.percent(*rule) == last)
    }
}

/// Upper bound of the search's cost: no scheme breaks a rule.
#[must_use]
pub fn estimate(setup: &Setup) -> Estimate {
    let runs = u64::from(setup.run.repeats) * (1 + entries(setup).len() as u64);
    let loads = (STEP_PERCENT..=TOP_PERCENT).step_by(STEP_PERCENT as usize);
    let costs = loads.map(|percent| Estimate::at(setup, Ratio::percent(percent), runs));
    costs.fold(Estimate::default(), Estimate::plus)
}

/// Searches for the capacity of every requested scheme.
///
/// # Errors
/// As [`run_all`].
pub fn capacity(setup: &Setup, store: &JobStore) -> Result<Vec<Capacity>> {
    search(setup, |percent, jobs| {
        let progress = Progress::new(&format!("load {percent} %"), work(setup, jobs, store, None));
        run_all(setup, jobs, &progress, store, None)
    })
}

/// A search of capacities, where `run` has the jobs of one load, in percent, run in their order.
///
/// # Errors
/// The rules that `run` meets.
pub fn search(
    setup: &Setup,
    mut run: impl FnMut(u32, &[Job]) -> Result<Vec<JobResult>>,
) -> Result<Vec<Capacity>> {
    let mut searches: Vec<SchemeSearch> =
        entries(setup).into_iter().map(|entry| SchemeSearch { entry, curve: vec![] }).collect();
    for percent in (STEP_PERCENT..=TOP_PERCENT).step_by(STEP_PERCENT as usize) {
        let mut alive: Vec<&mut SchemeSearch> = searches.iter_mut().filter(|one| one.is_alive()).collect();
        if alive.is_empty() {
            break;
        }
        let mut tried: Vec<&'static Entry> = alive.iter().map(|one| one.entry).collect();
        if !tried.iter().any(|entry| entry.name == reference().name) {
            tried.push(reference());
        }
        let results = run(percent, &jobs(setup, &tried, percent))?;
        let means = means(setup, &results);
        let mean_of =
            |name: &str| tried.iter().position(|entry| entry.name == name).map_or(f64::NAN, |at| means[at]);
        let reference = mean_of(&reference().name);
        for one in &mut alive {
            one.curve.push(Point { load: f64::from(percent), mean: mean_of(&one.entry.name), reference });
        }
    }
    let found = |one: SchemeSearch| Capacity {
        scheme: one.entry.name.to_string(),
        own_percent: one.percent(Rule::Own),
        absolute_percent: one.percent(Rule::Absolute),
        reference_percent: one.percent(Rule::Reference),
        curve: one.curve.iter().map(|point| (point.load as u32, point.mean)).collect(),
    };
    Ok(searches.into_iter().map(found).collect())
}

/// The runs of these schemes at one load, each with all seeds.
fn jobs(setup: &Setup, entries: &[&'static Entry], percent: u32) -> Vec<Job> {
    entries
        .iter()
        .flat_map(|entry| {
            (0..u64::from(setup.run.repeats)).map(|number| Job {
                mix: SchemeMix { tested: entry, beside: None },
                load: Ratio::percent(percent),
                seed: setup.run.seed.wrapping_add(number),
                look_at: None,
                is_checked: false,
            })
        })
        .collect()
}

/// Mean completion times in milliseconds, in the order of the jobs' schemes.
fn means(setup: &Setup, results: &[JobResult]) -> Vec<f64> {
    let mean = |seeds: &[JobResult]| {
        let mut all = headstart_sim::Histogram::default();
        for result in seeds {
            let totals = &result.groups[usize::from(TESTED)];
            all.merge(if setup.pages.is_empty() { &totals.completion } else { &totals.pages });
        }
        all.mean().map_or(f64::NAN, Span::as_millis_f64)
    };
    results.chunks(setup.run.repeats as usize).map(mean).collect()
}
