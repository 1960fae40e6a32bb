//! All runs of all figures, on all cores; what was run before is not run again.
//!
//! Every run has a key: a hash of the program, of all settings that decide the run, of its cast and its seed. A run's numbers
//! are appended to `runs.jsonl` in the output folder as soon as they are known, so an interrupted reproduction goes on where
//! it stopped. At the end the file is written anew, ordered by key: the same bytes however the work was cut up. Two
//! figures that need the same run share it.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Mutex;

use anyhow::{Context, Result};
use headstart_startup::catalogue::Needs;
use indicatif::ProgressBar;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::library::Experiment;
use super::plan::{CastName, Plan, Scheme};
use super::study::{INVALID, Numbers, Study};
use crate::carrier::Carriers;
use crate::output::Folder;
use crate::setup::{Cast, Setup};

/// The file of finished runs.
const KEPT: &str = "runs.jsonl";

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

    /// How many seeds each point has.
    #[must_use]
    pub fn repeats(&self) -> usize {
        self.repeats
    }
}

struct Job<'a> {
    key: String,
    study: Study,
    setup: &'a Setup,
    cast: Cast,
    seed: u64,
}

#[derive(Deserialize, Serialize)]
struct Kept {
    key: String,
    numbers: Numbers,
}

/// Runs what the experiments need and the folder does not hold yet.
///
/// # Errors
/// If a run cannot be done, or the folder not be written.
pub fn run(
    experiments: &[Experiment],
    carriers: Carriers,
    folder: &Folder,
    threads: Option<usize>,
) -> Result<Vec<Results>> {
    let build = build_fingerprint();
    let setups: Vec<_> = experiments
        .iter()
        .map(|one| one.plan.setups(carriers).with_context(|| one.name.clone()))
        .collect::<Result<_>>()?;
    let mut jobs: BTreeMap<String, Job> = BTreeMap::new();
    let mut wanted: Vec<Vec<Option<String>>> = vec![];
    for (experiment, setups) in experiments.iter().zip(&setups) {
        let plan = &experiment.plan;
        let mut keys = vec![];
        for (number, (settings, setup)) in setups.iter().enumerate() {
            let (variant, point) =
                (&plan.variants[number / plan.points.len()], &plan.points[number % plan.points.len()]);
            let arguments = settings.arguments();
            // How many seeds there are does not decide what any of them gives.
            let decisive: Vec<&str> =
                arguments.into_iter().filter(|text| !text.starts_with("--repeats=")).collect();
            for (scheme, name, seed) in runs_of(plan, setup) {
                if !variant.only.includes(scheme, point) {
                    keys.push(None);
                    continue;
                }
                let beside = plan.beside.as_ref().filter(|_| name == CastName::Mixed);
                let cast = Cast { tested: scheme.entry, beside: beside.map(|scheme| scheme.entry) };
                let beside = cast.beside.map(|entry| entry.name);
                let who = format!("{:?} {} {beside:?} {seed}", plan.study, cast.tested.name);
                // A hint decides nothing where nobody asks for one: a baseline is run once, whatever is hinted beside it.
                let long = setup.workload.long_scheme.0;
                let is_hinted = [Some(cast.tested), cast.beside, Some(long)]
                    .into_iter()
                    .flatten()
                    .any(|entry| entry.needs == Needs::Hint);
                let decisive =
                    decisive.iter().copied().filter(|text| is_hinted || !text.starts_with("--hint"));
                let texts = std::iter::once(build.as_str()).chain(decisive).chain([who.as_str()]);
                let key = hash(texts);
                keys.push(Some(key.clone()));
                jobs.entry(key.clone()).or_insert(Job { key, study: plan.study, setup, cast, seed });
            }
        }
        wanted.push(keys);
    }

    let path = folder.path().join(KEPT);
    let mut done = kept(&path)?;
    let left: Vec<&Job> = jobs.values().filter(|job| !done.contains_key(&job.key)).collect();
    // Real time first: nothing else is to disturb it. It is one run after the other.
    let (real, simulated): (Vec<&Job>, Vec<&Job>) =
        left.into_iter().partition(|job| job.setup.carrier().is_real_time());
    done.extend(run_jobs(&real, &path, Some(1))?);
    done.extend(run_jobs(&simulated, &path, threads)?);
    let mut text = String::new();
    for (key, numbers) in done.iter().filter(|(_, numbers)| is_kept(numbers)) {
        let line = Kept { key: key.clone(), numbers: numbers.clone() };
        text.push_str(&serde_json::to_string(&line)?);
        text.push('\n');
    }
    folder.write(KEPT, text.as_bytes())?;
    Ok(experiments
        .iter()
        .zip(&setups)
        .zip(wanted)
        .map(|((experiment, setups), keys)| {
            let repeats = setups.first().map_or(0, |(_, setup)| setup.run.repeats as usize);
            let runs = keys
                .iter()
                .map(|key| key.as_ref().and_then(|key| done.get(key)).cloned().unwrap_or_default())
                .collect();
            Results::new(&experiment.plan, repeats, runs)
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

fn run_jobs(jobs: &[&Job], path: &std::path::Path, threads: Option<usize>) -> Result<Vec<(String, Numbers)>> {
    if jobs.is_empty() {
        return Ok(vec![]);
    }
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    let file = Mutex::new(file.with_context(|| format!("cannot write {}", path.display()))?);
    let bar: ProgressBar = crate::runner::progress(jobs.len(), "reproducing");
    let one = |job: &&Job| -> Result<(String, Numbers)> {
        let numbers = job.study.run(job.setup, job.cast, job.seed)?;
        let kept = Kept { key: job.key.clone(), numbers };
        let line = serde_json::to_string(&kept)? + "\n";
        // A poisoned lock means another thread panicked in a write: the line is whole or the reader drops it.
        let mut file = headstart_host::locked(&file);
        file.write_all(line.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
        bar.inc(1);
        Ok((kept.key, kept.numbers))
    };
    let work = || jobs.par_iter().with_max_len(1).map(one).collect::<Result<Vec<_>>>();
    let found = match threads {
        None => work(),
        Some(threads) => rayon::ThreadPoolBuilder::new().num_threads(threads).build()?.install(work),
    };
    bar.finish_and_clear();
    found
}

/// A run for which the machine was too busy is run again next time.
fn is_kept(numbers: &Numbers) -> bool {
    !numbers.contains_key(INVALID)
}

/// What the file of finished runs holds; lines that are cut short or damaged are left out.
fn kept(path: &std::path::Path) -> Result<BTreeMap<String, Numbers>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes)
            .lines()
            .filter_map(|line| serde_json::from_str::<Kept>(line).ok())
            .filter(|kept| is_kept(&kept.numbers))
            .map(|kept| (kept.key, kept.numbers))
            .collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Tells this program from one that was built from other sources: what that one found may not hold any more.
fn build_fingerprint() -> String {
    let program = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
    let words = program.chunks(8).fold(FIRST_BASIS, |hash, chunk| {
        let word = chunk.iter().fold(0, |word: u64, byte| word << 8 | u64::from(*byte));
        (hash ^ word).wrapping_mul(PRIME).rotate_left(23)
    });
    format!("{} {words:016x}", env!("CARGO_PKG_VERSION"))
}

const FIRST_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const SECOND_BASIS: u64 = 0x6c62_272e_07bb_0142;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// FNV-1a from two beginnings.
fn hash<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let (mut one, mut other) = (FIRST_BASIS, SECOND_BASIS);
    for text in texts {
        for byte in text.bytes().chain([0]) {
            one = (one ^ u64::from(byte)).wrapping_mul(PRIME);
            other = (other ^ u64::from(byte)).wrapping_mul(PRIME).rotate_left(29);
        }
    }
    format!("{one:016x}{other:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_short_is_run_again() {
        let path = std::env::temp_dir().join(format!("headstart-kept-{}", std::process::id()));
        std::fs::write(&path, "{\"key\":\"a\",\"numbers\":{\"mean\":0.1}}\n{\"key\":\"b\",\"numb")
            .expect("a temporary file");
        let found = kept(&path).expect("readable");
        std::fs::remove_file(&path).expect("it is there");
        assert_eq!(found.len(), 1);
        assert_eq!(found["a"]["mean"], 0.1);
        assert!(kept(&path).expect("nothing is no error").is_empty());
    }

    /// Runs a tiny plan in a folder of its own and gives back all that a reproduction would write.
    fn reproduced(name: &str, threads: usize, is_cut_off: bool) -> (Vec<u8>, String) {
        use crate::experiment::{draw, plan, quantity};
        let path = std::env::temp_dir().join(format!("headstart-run-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        let folder = Folder::open(&path).expect("a temporary folder");
        let figure = "[[figure]]\nname = \"a\"\ncaption = \"\"\ndraw = \"lines\"\nx = \"load\"\nvalue = { measure = \"mean\", over = { scheme = \"TCP\" } }\ny-axis = {}\n";
        let text = format!("{}{figure}", quantity::tests::PLAN);
        let plan = plan::tests::plan(&text, false).expect("fine");
        let experiment = Experiment { name: "tiny".into(), plan, claims: vec![], notes: String::new(), text };
        let experiments = [experiment];
        if is_cut_off {
            run(&experiments, Carriers::MODEL, &folder, Some(threads)).expect("it runs");
            let kept = std::fs::read_to_string(path.join(KEPT)).expect("written");
            let half: Vec<&str> = kept.lines().take(7).collect();
            std::fs::write(path.join(KEPT), half.join("\n") + "\n{\"key\":\"12").expect("a temporary file");
        }
        let results = run(&experiments, Carriers::MODEL, &folder, Some(threads)).expect("it runs");
        let kept = std::fs::read(path.join(KEPT)).expect("written");
        std::fs::remove_dir_all(&path).expect("it is there");
        let plan = &experiments[0].plan;
        let drawing: &draw::Drawing = &plan.drawings[0];
        let data = drawing.data(plan, &results[0], 0);
        assert_eq!(data.len(), 6, "two schemes at three loads");
        assert!(data[..3].iter().all(|datum| datum.y.value == 1.0), "a scheme over itself");
        assert!(data[3..].iter().all(|datum| datum.y.value < 0.9), "ten segments beat two: {data:?}");
        (kept, drawing.figure(plan, &data, "").svg().to_string())
    }

    #[test]
    fn a_reproduction_gives_the_same_bytes_with_any_threads_and_after_an_interruption() {
        let one = reproduced("one", 1, false);
        // Line by line: a difference is then told by its run, not by pages of numbers.
        let same = |other: (Vec<u8>, String), what: &str| {
            let lines =
                |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect::<Vec<_>>();
            for (mine, theirs) in lines(&one.0).iter().zip(lines(&other.0)) {
                assert_eq!(*mine, theirs, "{what}");
            }
            assert!(one == other, "{what}");
        };
        same(reproduced("two", 2, false), "two threads gave other bytes");
        same(reproduced("again", 2, true), "an interrupted run gave other bytes");
    }

    /// Without serde_json's `float_roundtrip` one number in a few comes back one bit off, and which ones are read back hangs on where
    /// a run was interrupted.
    #[test]
    fn kept_numbers_come_back_to_the_last_bit() {
        let mut random = headstart_sim::random::Random::new(headstart_sim::Seed(1));
        for _ in 0..10_000 {
            let value = random.draw() as f64 / 1e16;
            let numbers = Numbers::from([("mean".to_owned(), value)]);
            let line = serde_json::to_string(&Kept { key: String::new(), numbers }).expect("plain numbers");
            let back: Kept = serde_json::from_str(&line).expect("our own line");
            assert_eq!(back.numbers["mean"].to_bits(), value.to_bits(), "{value}");
        }
    }

    #[test]
    fn keys_tell_where_a_text_ends() {
        assert_ne!(hash(["ab", "c"].into_iter()), hash(["a", "bc"].into_iter()));
    }
}
