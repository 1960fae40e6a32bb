//! Feasible capacity: up to which load a scheme still works, by three rules at once.
//!
//! Halfback §4.3.1 calls it the highest utilisation before collapse and gives no rule; the verdict hangs on the rule, so
//! three are reported (`docs/definitions.md` says why these):
//!
//! 1. the mean completion time is at most four times the scheme's own at 5 % load;
//! 2. it is at most one second;
//! 3. it is at most that of slow start from ten segments at the same load.
//!
//! The load rises in steps of 5 % from 5 % to 95 %, all loads with the same seeds. A scheme's capacity by a rule is the
//! last step before the first at which the rule is broken; when all three are, the scheme is not run any further.

use anyhow::Result;
use headstart_startup::catalogue::Entry;
use headstart_units::{Ratio, Span};
use serde::Serialize;

use crate::race::entries;
use crate::runner::{Job, run_all};
use crate::setup::{Cast, Setup, TESTED, reference};

/// Steps of 5 %.
const STEP_PERCENT: u32 = 5;
/// The highest load tried.
const TOP_PERCENT: u32 = 95;
/// Rule 1.
pub const TIMES_OWN: f64 = 4.0;
/// Rule 2.
pub const ABSOLUTE: Span = Span::from_secs(1);

/// What the search found for one scheme.
#[derive(Clone, Debug, Serialize)]
pub struct Capacity {
    /// The scheme's name.
    pub scheme: &'static str,
    /// Rule 1: mean at most four times its own at 5 %, in percent of load; zero if broken at once.
    pub own_percent: u32,
    /// Rule 2: mean at most one second.
    pub absolute_percent: u32,
    /// Rule 3: mean at most that of slow start from ten segments.
    pub reference_percent: u32,
    /// Mean completion time in milliseconds at each load that was run.
    pub curve: Vec<(u32, f64)>,
}

impl Capacity {
    fn alive(&self, at: u32) -> bool {
        let before = at - STEP_PERCENT;
        [self.own_percent, self.absolute_percent, self.reference_percent].contains(&before)
    }
}

/// Searches for the capacity of every scheme that was asked for.
///
/// # Errors
/// As [`run_all`].
pub fn capacity(setup: &Setup) -> Result<Vec<Capacity>> {
    let mut contenders: Vec<(&'static Entry, Capacity)> = entries(setup)
        .into_iter()
        .map(|entry| {
            let found = Capacity {
                scheme: entry.name,
                own_percent: 0,
                absolute_percent: 0,
                reference_percent: 0,
                curve: vec![],
            };
            (entry, found)
        })
        .collect();
    for percent in (STEP_PERCENT..=TOP_PERCENT).step_by(STEP_PERCENT as usize) {
        let alive: Vec<&'static Entry> =
            contenders.iter().filter(|(_, found)| found.alive(percent)).map(|(entry, _)| *entry).collect();
        if alive.is_empty() {
            break;
        }
        let mut run = alive.clone();
        if !run.iter().any(|entry| entry.name == reference().name) {
            run.push(reference());
        }
        let seeds = 0..u64::from(setup.run.repeats);
        let jobs: Vec<Job> = run
            .iter()
            .flat_map(|entry| {
                seeds.clone().map(|number| Job {
                    cast: Cast { tested: entry, beside: None },
                    load: Ratio::percent(percent),
                    seed: setup.run.seed.wrapping_add(number),
                    look_at: None,
                })
            })
            .collect();
        let results = run_all(setup, &jobs, &format!("load {percent} %"))?;
        let means: Vec<f64> = results
            .chunks(setup.run.repeats as usize)
            .map(|seeds| {
                let mut all = headstart_sim::Histogram::default();
                for result in seeds {
                    let totals = &result.groups[usize::from(TESTED)];
                    all.merge(if setup.pages.is_empty() { &totals.completion } else { &totals.pages });
                }
                all.mean().map_or(f64::NAN, Span::as_millis_f64)
            })
            .collect();
        let mean_of =
            |name: &str| run.iter().position(|entry| entry.name == name).map_or(f64::NAN, |at| means[at]);
        let reference_mean = mean_of(reference().name);
        for (entry, found) in &mut contenders {
            if !alive.iter().any(|other| other.name == entry.name) {
                continue;
            }
            let mean = mean_of(entry.name);
            found.curve.push((percent, mean));
            let own = found.curve[0].1;
            let before = percent - STEP_PERCENT;
            for (capacity, holds) in [
                (&mut found.own_percent, mean <= TIMES_OWN * own),
                (&mut found.absolute_percent, mean <= ABSOLUTE.as_millis_f64()),
                (&mut found.reference_percent, mean <= reference_mean),
            ] {
                if holds && *capacity == before {
                    *capacity = percent;
                }
            }
        }
    }
    Ok(contenders.into_iter().map(|(_, found)| found).collect())
}
