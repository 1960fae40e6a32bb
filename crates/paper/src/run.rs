//! All runs of all figures. A run's numbers are kept ([`headstart_study::jobs`]), and two figures
//! that need the same run share it.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use headstart_report::jobs::JobStore;
use headstart_startup::catalogue::Needs;
use headstart_units::Ratio;

use crate::plan::{CastName, Plan, Scheme};
use headstart_study::carrier::Carriers;
use headstart_study::jobs::{self, Keyed};
use headstart_study::progress::RunProgress;
use headstart_study::setup::{Cast, Setup};
use headstart_study::study::{INVALID, Numbers, PreparedStudy};

/// Everything that a figure's runs gave.
#[derive(Clone, Debug)]
pub struct Results {
    casts: Vec<CastName>,
    schemes: usize,
    points: usize,
    repeats: usize,
    /// Variants outside, then points, schemes, casts, seeds.
    runs: Vec<Numbers>,
}

impl Results {
    /// Results from runs in order: variants outside, then points, schemes, casts, seeds.
    #[must_use]
    pub fn new(plan: &Plan, repeats: usize, runs: Vec<Numbers>) -> Self {
        Self {
            casts: plan.casts.clone(),
            schemes: plan.schemes.len(),
            points: plan.points.len(),
            repeats,
            runs,
        }
    }

    /// The runs of one point, one for each seed; none of a cast that was not run.
    #[must_use]
    pub fn seeds(&self, variant: usize, point: usize, scheme: usize, cast: CastName) -> &[Numbers] {
        let Some(cast) = self.casts.iter().position(|other| *other == cast) else { return &[] };
        let place = ((variant * self.points + point) * self.schemes + scheme) * self.casts.len() + cast;
        self.runs.get(place * self.repeats..(place + 1) * self.repeats).unwrap_or_default()
    }

    /// Number of seeds of each point.
    #[must_use]
    pub fn repeats(&self) -> usize {
        self.repeats
    }
}

struct Job<'a> {
    study: &'a PreparedStudy,
    cast: Cast,
    seed: u64,
}

/// Runs whatever the named plans need and the folder does not hold yet.
///
/// # Errors
/// If a run cannot be done, or the folder not be written.
pub fn run(
    plans: &[(&str, &Plan)],
    carriers: Carriers,
    store: &JobStore,
    threads: Option<usize>,
) -> Result<Vec<Results>> {
    let setups: Vec<_> = plans
        .iter()
        .map(|(name, plan)| plan.setups(carriers).with_context(|| (*name).to_owned()))
        .collect::<Result<_>>()?;
    let mut jobs: BTreeMap<String, Job> = BTreeMap::new();
    let mut wanted: Vec<Vec<Option<String>>> = vec![];
    for ((_, plan), setups) in plans.iter().zip(&setups) {
        let mut keys = vec![];
        for (number, (_, study)) in setups.iter().enumerate() {
            let setup = &study.setup;
            let (variant, point) =
                (&plan.variants[number / plan.points.len()], &plan.points[number % plan.points.len()]);
            let settings = [jobs::settings(setup), jobs::settings(&unhinted(setup))];
            for (scheme, name, seed) in runs_of(plan, setup) {
                if !variant.only.includes(scheme, point) {
                    keys.push(None);
                    continue;
                }
                let beside = plan.beside.as_ref().filter(|_| name == CastName::Mixed);
                let cast = Cast { tested: scheme.entry, beside: beside.map(|scheme| scheme.entry) };
                // A hint decides nothing where nobody asks for one: a baseline is run once,
                // whatever is hinted beside it.
                let long = setup.workload.long_scheme.0;
                let is_hinted = [Some(cast.tested), cast.beside, Some(long)]
                    .into_iter()
                    .flatten()
                    .any(|entry| entry.needs == Needs::Hint);
                let settings = &settings[usize::from(!is_hinted)];
                let key = jobs::key_of(&study.kind(is_hinted), settings, cast, seed);
                keys.push(Some(key.clone()));
                jobs.entry(key.clone()).or_insert(Job { study, cast, seed });
            }
        }
        wanted.push(keys);
    }

    // Real time first: nothing else is to disturb it. It is one run after the other.
    let (real, simulated): (Vec<_>, Vec<_>) =
        jobs.into_iter().partition(|(_, job)| job.study.setup.carrier().is_real_time());
    let mut done: BTreeMap<String, Numbers> = BTreeMap::new();
    for (jobs, threads) in [(real, Some(1)), (simulated, threads)] {
        let jobs: Vec<Keyed<Job>> = jobs.into_iter().map(|(key, job)| (Some(key), job)).collect();
        let run = |job: &Job, _: &RunProgress| job.study.run(job.cast, job.seed);
        // A run for which the machine was too busy is run again next time.
        let is_valid = |numbers: &Numbers| !numbers.contains_key(INVALID);
        let results = jobs::run_all(store, &jobs, threads, "reproducing", run, is_valid)?;
        done.extend(jobs.into_iter().filter_map(|(key, _)| key).zip(results));
    }
    Ok(plans
        .iter()
        .zip(&setups)
        .zip(wanted)
        .map(|(((_, plan), setups), keys)| {
            let repeats = setups.first().map_or(0, |(_, study)| study.setup.run.repeats as usize);
            let runs = keys
                .iter()
                .map(|key| key.as_ref().and_then(|key| done.get(key)).cloned().unwrap_or_default())
                .collect();
            Results::new(plan, repeats, runs)
        })
        .collect())
}

/// Everybody's runs at one point, in the order of [`Results`].
fn runs_of<'a>(plan: &'a Plan, setup: &Setup) -> impl Iterator<Item = (&'a Scheme, CastName, u64)> {
    let (first, repeats) = (setup.run.seed, u64::from(setup.run.repeats));
    plan.schemes.iter().flat_map(move |scheme| {
        plan.casts
            .iter()
            .flat_map(move |cast| (0..repeats).map(move |number| (scheme, *cast, first.wrapping_add(number))))
    })
}

/// The same setup without the clients' hint.
fn unhinted(setup: &Setup) -> Setup {
    let mut setup = setup.clone();
    setup.workload.hint = Ratio::ONE;
    setup
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_report::output::Folder;

    /// Runs a tiny plan in a folder of its own and gives back all that a reproduction would write.
    fn reproduced(name: &str, threads: usize, is_cut_off: bool) -> (String, String) {
        use crate::{draw, plan, quantity};
        let path = std::env::temp_dir().join(format!("headstart-run-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        let store = || JobStore::open(Folder::open(&path).expect("a temporary folder")).expect("readable");
        let figure = "[[figure]]\nname = \"a\"\ncaption = \"\"\ndraw = \"lines\"\nx = \"load\"\nvalue = { measure = \"mean\", over = { scheme = \"TCP\" } }\ny-axis = {}\n";
        let text = format!("{}{figure}", quantity::tests::PLAN);
        let plan = plan::tests::plan(&text, false).expect("fine");
        let run_all = || {
            let store = store();
            let results = run(&[("tiny", &plan)], Carriers::MODEL, &store, Some(threads)).expect("it runs");
            store.close().expect("written");
            (results, std::fs::read_to_string(path.join("runs.jsonl")).expect("written"))
        };
        if is_cut_off {
            let (_, kept) = run_all();
            let half: Vec<&str> = kept.lines().take(7).collect();
            std::fs::write(path.join("runs.jsonl"), half.join("\n") + "\n{\"key\":\"12")
                .expect("a temporary file");
        }
        let (results, kept) = run_all();
        std::fs::remove_dir_all(&path).expect("it is there");
        let drawing = &draw::read(&text, &plan).expect("fine")[0];
        let data = drawing.data(&plan, &results[0], 0);
        assert_eq!(data.len(), 6, "two schemes at three loads");
        assert!(data[..3].iter().all(|datum| datum.y.value == 1.0), "a scheme over itself");
        assert!(data[3..].iter().all(|datum| datum.y.value < 0.9), "ten segments beat two: {data:?}");
        (kept, drawing.figure(&plan, &data, "").svg().to_string())
    }

    #[test]
    fn a_reproduction_gives_the_same_bytes_with_any_threads_and_after_an_interruption() {
        let one = reproduced("one", 1, false);
        // Line by line: a difference is then shown by its run, not by pages of numbers.
        let same = |other: (String, String), difference: &str| {
            for (mine, theirs) in one.0.lines().zip(other.0.lines()) {
                assert_eq!(mine, theirs, "{difference}");
            }
            assert!(one == other, "{difference}");
        };
        same(reproduced("two", 2, false), "two threads gave other bytes");
        same(reproduced("again", 2, true), "an interrupted run gave other bytes");
    }
}
