//! Many runs: finished ones are read from the store, others are executed on all cores and stored.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Result;
use headstart_report::jobs::{JobStore, key};
use rayon::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::progress::{self, Progress, RunProgress};
use crate::setup::{SchemeMix, Setup};

/// A job with its key; one without a key is not stored.
pub type KeyedJob<J> = (Option<String>, J);

/// All settings of a setup that determine the result of a run, but the mix and the seed: contents
/// of files, not their names.
#[must_use]
pub fn settings(setup: &Setup) -> String {
    let mut setup = setup.clone();
    // Mix and seed belong to the job; the number of runs and the place of computation do not
    // affect a result. The pages themselves are in the setup.
    (setup.run.schemes, setup.run.reference) = (None, None);
    (setup.run.seed, setup.run.repeats, setup.run.threads) = (0, 0, None);
    setup.run.large = false;
    setup.workload.har.clear();
    setup.notes.clear();
    format!("{setup:?}")
}

/// The key of a run of `kind` with these settings, as [`settings`] writes them.
#[must_use]
pub fn key_of(kind: &str, settings: &str, mix: SchemeMix, seed: u64) -> String {
    let beside = mix.beside.map_or("-", |entry| entry.name.as_str());
    key([kind, settings, &mix.tested.name, beside, &seed.to_string()])
}

/// The jobs that are to be executed: those without a stored result, each key once.
#[must_use]
pub fn unfinished<J>(store: &JobStore, jobs: &[KeyedJob<J>]) -> Vec<usize> {
    let mut met = BTreeSet::new();
    let is_left =
        |number: &usize| jobs[*number].0.as_ref().is_none_or(|key| !store.contains(key) && met.insert(key));
    (0..jobs.len()).filter(is_left).collect()
}

/// Executes all jobs on the given number of threads, in any order, and returns their results in the
/// order of the jobs. Jobs with one key are executed once. A result that is not `is_valid` is
/// returned but not stored. If storing fails, for instance because the disk is full, a warning is
/// printed and the runs continue. A job counts in `progress` with the processor time that
/// `seconds_of` expects of it.
///
/// # Errors
/// The first error of any job; results finished before it stay stored.
pub fn run_all<J, R>(
    store: &JobStore,
    jobs: &[KeyedJob<J>],
    threads: Option<usize>,
    progress: &Arc<Progress>,
    seconds_of: impl Fn(&J) -> f64 + Sync,
    run: impl Fn(&J, &RunProgress) -> Result<R> + Sync,
    is_valid: impl Fn(&R) -> bool + Sync,
) -> Result<Vec<R>>
where
    J: Sync,
    R: Clone + DeserializeOwned + Serialize + Send,
{
    let mut results: Vec<Option<R>> =
        jobs.iter().map(|(key, _)| key.as_ref().and_then(|key| store.get(key))).collect();
    let mut first_of: BTreeMap<&str, usize> = BTreeMap::new();
    let mut left = vec![];
    for (number, (key, _)) in jobs.iter().enumerate().filter(|(number, _)| results[*number].is_none()) {
        let first = key.as_ref().map_or(number, |key| *first_of.entry(key).or_insert(number));
        if first == number {
            left.push(number);
        }
    }
    let one = |number: &usize| -> Result<(usize, R)> {
        let (key, job) = &jobs[*number];
        let this = progress.run(seconds_of(job));
        let result = run(job, &this)?;
        if let Some(key) = key.as_ref().filter(|_| is_valid(&result))
            && let Err(error) = store.insert(key, &result)
        {
            progress::clear();
            eprintln!("headstart: {error}: further runs are not stored");
        }
        this.finish();
        Ok((*number, result))
    };
    let work = || left.par_iter().with_max_len(1).map(one).collect::<Result<Vec<_>>>();
    // A pool for each call: threads of a pool that stays are not there in a forked process, which
    // would wait for them for ever.
    let threads = useful_threads(threads.unwrap_or_else(all_threads), left.len());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let found = progress.during(|| pool.install(work));
    for (number, result) in found? {
        results[number] = Some(result);
    }
    for (number, (key, _)) in jobs.iter().enumerate().filter(|(_, (key, _))| key.is_some()) {
        let first = key.as_deref().and_then(|key| first_of.get(key));
        if let (None, Some(first)) = (&results[number], first) {
            results[number] = results[*first].clone();
        }
    }
    Ok(results.into_iter().flatten().collect())
}

/// Number of threads without a choice: one for each core.
#[must_use]
pub fn all_threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The threads that have work, of the given number.
fn useful_threads(threads: usize, jobs: usize) -> usize {
    threads.min(jobs).max(1)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use headstart_report::output::Folder;

    use super::*;
    use crate::carrier::Carriers;
    use crate::progress::Work;
    use crate::settings::Settings;

    #[test]
    fn stored_results_are_reused_and_equal_jobs_run_once() {
        let path = std::env::temp_dir().join(format!("headstart-run-all-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        let runs = AtomicUsize::new(0);
        let jobs: Vec<KeyedJob<u32>> =
            [(Some("a"), 1), (Some("b"), 2), (Some("a"), 1), (None, 3), (Some("odd"), 5)]
                .map(|(key, job)| (key.map(str::to_owned), job))
                .into();
        let double = |job: &u32, _: &RunProgress| {
            runs.fetch_add(1, Ordering::Relaxed);
            Ok(2 * job)
        };
        for expected in [4, 2] {
            let store = JobStore::open(Folder::open(&path).expect("ours")).expect("readable");
            runs.store(0, Ordering::Relaxed);
            assert_eq!(unfinished(&store, &jobs).len(), expected, "before they run");
            let progress = Progress::new("", Work::default());
            let results = run_all(&store, &jobs, Some(2), &progress, |_| 1.0, double, |result| *result != 10)
                .expect("fine");
            assert_eq!(results, [2, 4, 2, 6, 10]);
            assert_eq!(runs.load(Ordering::Relaxed), expected, "then only what has no key or is not valid");
        }
        std::fs::remove_dir_all(&path).expect("it is there");
    }

    #[test]
    fn no_idle_thread_is_started() {
        assert_eq!(
            (useful_threads(100_000, 3), useful_threads(2, 3), useful_threads(0, 3), useful_threads(8, 0)),
            (3, 2, 1, 1)
        );
    }

    fn settings_of(line: &str) -> String {
        settings(&Settings::parse(Carriers::MODEL, line.split_whitespace()).expect("fine"))
    }

    #[test]
    fn every_setting_that_decides_a_run_is_in_its_key() {
        let plain = settings_of("");
        for same in
            ["--seed 7", "--repeats 3", "--threads 1", "--large", "--schemes iw10,halfback", "--load 25%"]
        {
            assert_eq!(settings_of(same), plain, "{same}");
        }
        for other in [
            "--load 26%",
            "--rate 16mbit",
            "--hop 10mbit/5ms/50kB",
            "--ecn",
            "--queue fq-codel",
            "--policer 5mbit,50kB",
            "--policer 5mbit,60kB",
            "--router-memory 1s",
            "--long-scheme iw2",
            "--duration 299s",
            "--hint 50%",
        ] {
            assert_ne!(settings_of(other), plain, "{other}");
        }
    }
}
