//! All runs of all figures. A run's numbers are kept ([`headstart_study::jobs`]), and two figures
//! that need the same run share it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use anyhow::{Context, Result};
use headstart_host::{Stopwatch, locked, processor_time};
use headstart_report::jobs::JobStore;
use headstart_startup::catalogue::Needs;
use headstart_units::Ratio;

use crate::plan::{MixName, Plan, Scheme};
use headstart_study::carrier::Carriers;
use headstart_study::estimate::Estimate;
use headstart_study::jobs::{self, KeyedJob};
use headstart_study::progress::{Progress, RunProgress, Work};
use headstart_study::setup::{SchemeMix, Setup};
use headstart_study::study::{INVALID, Numbers, PreparedStudy};

/// Everything that a figure's runs gave.
#[derive(Clone, Debug)]
pub struct Results {
    mixes: Vec<MixName>,
    schemes: usize,
    points: usize,
    repeats: usize,
    /// Variants outside, then points, schemes, mixes, seeds.
    runs: Vec<Numbers>,
}

impl Results {
    /// Results from runs in order: variants outside, then points, schemes, mixes, seeds.
    #[must_use]
    pub fn new(plan: &Plan, repeats: usize, runs: Vec<Numbers>) -> Self {
        Self {
            mixes: plan.mixes.clone(),
            schemes: plan.schemes.len(),
            points: plan.points.len(),
            repeats,
            runs,
        }
    }

    /// The runs of one point, one for each seed; none of a mix that was not run.
    #[must_use]
    pub fn seeds(&self, variant: usize, point: usize, scheme: usize, mix: MixName) -> &[Numbers] {
        let Some(mix) = self.mixes.iter().position(|other| *other == mix) else { return &[] };
        let place = ((variant * self.points + point) * self.schemes + scheme) * self.mixes.len() + mix;
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
    figure: usize,
    mix: SchemeMix,
    seed: u64,
}

/// Runs whatever the named plans need and the folder does not hold yet. Once some runs have been
/// timed, `announce` receives the cost of all that are left, and may refuse it.
///
/// # Errors
/// If a run cannot be done, or the folder not be written; and the error of `announce`.
pub fn run(
    plans: &[(&str, &Plan)],
    carriers: Carriers,
    store: &JobStore,
    threads: Option<usize>,
    announce: &dyn Fn(&Estimate) -> Result<()>,
) -> Result<Vec<Results>> {
    let setups: Vec<_> = plans
        .iter()
        .map(|(name, plan)| plan.setups(carriers).with_context(|| (*name).to_owned()))
        .collect::<Result<_>>()?;
    let mut jobs: BTreeMap<String, Job> = BTreeMap::new();
    let mut wanted: Vec<Vec<String>> = vec![];
    for (figure, ((_, plan), setups)) in plans.iter().zip(&setups).enumerate() {
        let mut keys = vec![];
        for (_, study) in setups {
            let setup = &study.setup;
            let settings = [jobs::settings(setup), jobs::settings(&without_hint(setup))];
            for (scheme, name, seed) in runs_of(plan, setup) {
                let beside = plan.beside.as_ref().filter(|_| name == MixName::Mixed);
                let mix = SchemeMix { tested: scheme.entry, beside: beside.map(|scheme| scheme.entry) };
                // A hint has no effect on a scheme without one: a baseline is run once,
                // whatever others are hinted.
                let long = setup.workload.long_scheme.0;
                let is_hinted = [Some(mix.tested), mix.beside, Some(long)]
                    .into_iter()
                    .flatten()
                    .any(|entry| entry.needs == Needs::Hint);
                let settings = &settings[usize::from(!is_hinted)];
                let key = jobs::key_of(&study.kind(), settings, mix, seed);
                keys.push(key.clone());
                jobs.entry(key.clone()).or_insert(Job { study, figure, mix, seed });
            }
        }
        wanted.push(keys);
    }

    // Real time first: nothing else is to disturb it. It is one run after the other.
    let (real, simulated): (Vec<_>, Vec<_>) =
        jobs.into_iter().partition(|(_, job)| job.study.setup.carrier().is_real_time());
    let mut done: BTreeMap<String, Numbers> = BTreeMap::new();
    for (jobs, threads) in [(real, Some(1)), (simulated, threads)] {
        let jobs: Vec<KeyedJob<Job>> = jobs.into_iter().map(|(key, job)| (Some(key), job)).collect();
        let results = run_estimated(store, &jobs, threads, announce)?;
        done.extend(jobs.into_iter().filter_map(|(key, _)| key).zip(results));
    }
    Ok(plans
        .iter()
        .zip(&setups)
        .zip(wanted)
        .map(|(((_, plan), setups), keys)| {
            let repeats = setups.first().map_or(0, |(_, study)| study.setup.run.repeats as usize);
            let runs = keys.iter().map(|key| done.get(key).cloned().unwrap_or_default()).collect();
            Results::new(plan, repeats, runs)
        })
        .collect())
}

/// Times a run of each figure, one of middle work, announces the cost of what is left, and runs
/// it. Within a figure a run takes as much longer as its work is more. Timed runs are kept.
fn run_estimated(
    store: &JobStore,
    jobs: &[KeyedJob<Job>],
    threads: Option<usize>,
    announce: &dyn Fn(&Estimate) -> Result<()>,
) -> Result<Vec<Numbers>> {
    // Seconds for each unit of work, by figure.
    let paces: Mutex<BTreeMap<usize, f64>> = Mutex::default();
    let run = |job: &&Job, _: &RunProgress| {
        let (watch, before) = (Stopwatch::start(), processor_time());
        let numbers = job.study.run(job.mix, job.seed)?;
        let is_real_time = job.study.setup.carrier().is_real_time();
        let spent = processor_time().saturating_sub(before);
        let spent = if is_real_time || spent.is_zero() { watch.elapsed() } else { spent };
        let pace = spent.as_secs_f64() * job.study.share() / job.study.work();
        locked(&paces).entry(job.figure).or_insert(pace);
        Ok(numbers)
    };
    // A run for which the machine was too busy is run again next time.
    let is_valid = |numbers: &Numbers| !numbers.contains_key(INVALID);
    let jobs: Vec<KeyedJob<&Job>> = jobs.iter().map(|(key, job)| (key.clone(), job)).collect();
    let left = || jobs::unfinished(store, &jobs).into_iter().map(|number| &jobs[number]);
    let at_once = threads.unwrap_or_else(jobs::all_threads);

    let mut figures: BTreeMap<usize, Vec<&KeyedJob<&Job>>> = BTreeMap::new();
    left().for_each(|job| figures.entry(job.1.figure).or_default().push(job));
    let mut middle = vec![];
    let mut memory = 0.0_f64;
    for mut all in figures.into_values() {
        all.sort_by(|(_, one), (_, other)| one.study.work().total_cmp(&other.study.work()));
        middle.push(all[all.len() / 2].clone());
        let most = all.last().map(|(_, job)| Estimate::of(&job.study.setup, at_once as u64).memory);
        memory = memory.max(most.unwrap_or_default());
    }
    let work = Work { runs: middle.len(), seconds: middle.len() as f64, at_once };
    let progress = Progress::new("timing a run of each figure", work);
    jobs::run_all(store, &middle, threads, &progress, |_| 1.0, run, is_valid)?;

    let known = locked(&paces).clone();
    let seconds_of = |job: &&Job| known.get(&job.figure).map_or(0.0, |pace| pace * job.study.work());
    let work = Work { runs: left().count(), seconds: left().map(|(_, job)| seconds_of(job)).sum(), at_once };
    if work.runs > 0 {
        let is_real_time = jobs.iter().any(|(_, job)| job.study.setup.carrier().is_real_time());
        announce(&Estimate::of_timed(work.runs, work.seconds, memory, is_real_time))?;
    }
    let progress = Progress::new("reproducing", work);
    jobs::run_all(store, &jobs, threads, &progress, seconds_of, run, is_valid)
}

/// All runs at one point, in the order of [`Results`].
fn runs_of<'a>(plan: &'a Plan, setup: &Setup) -> impl Iterator<Item = (&'a Scheme, MixName, u64)> {
    let first = setup.run.seed.wrapping_add(plan.further_seeds);
    let repeats = u64::from(setup.run.repeats);
    plan.schemes.iter().flat_map(move |scheme| {
        plan.mixes
            .iter()
            .flat_map(move |mix| (0..repeats).map(move |number| (scheme, *mix, first.wrapping_add(number))))
    })
}

/// A setup without the clients' hint.
fn without_hint(setup: &Setup) -> Setup {
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
            let results = run(&[("tiny", &plan)], Carriers::MODEL, &store, Some(threads), &|_| Ok(()))
                .expect("it runs");
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
