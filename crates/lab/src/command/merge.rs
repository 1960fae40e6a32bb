//! `headstart sweep --shard` and `headstart merge`: a sweep over several machines.
//!
//! Each shard is a folder with the store of its finished runs and, once it is complete, the file
//! `shard.json`. They are merged into one store, from which the sweep writes its files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use headstart_report::jobs::{JobStore, key};
use serde::{Deserialize, Serialize};

use super::sweep::{self, Prepared};
use super::terminal::{self, print};
use crate::errors::Refuse as _;
use crate::output::Folder;
use crate::race;
use crate::setup::Setup;
use crate::shard::{self, Shard};
use crate::sweep::Point;

/// The file of a complete shard.
const FILE: &str = "shard.json";

/// Options of `merge`.
#[derive(Args, Debug)]
pub struct MergeArgs {
    /// `--out` of the sweep: FOLDER.shards is merged into FOLDER
    #[arg(default_value = "headstart-sweep", value_name = "FOLDER")]
    folder: PathBuf,
}

/// The sweep of a complete shard.
#[derive(Deserialize, Serialize)]
struct Manifest {
    number: u32,
    count: u32,
    program: String,
    /// A hash of all runs of the sweep.
    plan: String,
    /// Words of the sweep's command line, without the shard.
    words: Vec<String>,
}

fn shards_of(out: &Path) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".shards");
    name.into()
}

fn plan(prepared: &Prepared) -> String {
    let keys: Vec<String> = prepared.points.iter().flat_map(|(_, setup)| race::keys(setup)).collect();
    key(keys.iter().map(String::as_str))
}

/// The words of a command line without its shard.
fn without_shard(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut words = words;
    let mut kept = vec![];
    while let Some(word) = words.next() {
        match word.as_str() {
            "--shard" => drop(words.next()),
            _ if word.starts_with("--shard=") => {}
            _ => kept.push(word),
        }
    }
    kept
}

/// Checks that all results can be stored, and with that taken from one machine to another.
///
/// # Errors
/// If a run is in real time.
pub fn check_divisible(points: &[(Point, Setup)]) -> Result<()> {
    let is_real_time = points.iter().any(|(_, setup)| setup.carrier().is_real_time());
    ensure!(
        !is_real_time,
        "--in: found emulator, expected simulator: runs in real time may be left out, and cannot be divided among machines"
    );
    Ok(())
}

/// Runs one shard of a sweep.
///
/// # Errors
/// If a run fails, or a file cannot be written.
pub fn run_shard(shard: Shard, prepared: &Prepared) -> Result<()> {
    check_divisible(&prepared.points).or_refuse()?;
    let name = format!("{}-of-{}", shard.number, shard.count);
    let folder = Folder::open(&shards_of(&prepared.out).join(name)).or_refuse()?;
    // It is written again when the shard is complete.
    let complete = folder.path().join(FILE);
    if complete.exists() {
        fs::remove_file(&complete).with_context(|| format!("cannot remove {}", complete.display()))?;
    }
    let store = JobStore::open(folder)?;
    terminal::install_interrupt_notice(&store);
    let points = shard::points(shard, &prepared.points);
    eprintln!("headstart: shard {shard}: {} of {} points", points.clone().count(), prepared.points.len());
    sweep::measure(points, &store, None, |_, _| ())?;
    let manifest = Manifest {
        number: shard.number,
        count: shard.count,
        program: store.program().to_owned(),
        plan: plan(prepared),
        words: without_shard(terminal::arguments().skip(1)),
    };
    let folder = terminal::closed(store)?;
    let file = folder.write(FILE, &serde_json::to_vec_pretty(&manifest)?)?;
    print(&format!("Shard {shard}: {}\n", file.display()))
}

/// The complete shards in a folder, in order, with their folders.
fn complete(folder: &Path) -> Result<Vec<(Manifest, PathBuf)>> {
    let mut found = vec![];
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.with_context(|| format!("cannot read {}", folder.display()))?.path();
        let file = path.join(FILE);
        if file.exists() {
            let text = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let manifest: Manifest = serde_json::from_slice(&text)
                .with_context(|| format!("{}: expected the file of a shard", file.display()))?;
            found.push((manifest, path));
        }
    }
    found.sort_by_key(|(manifest, _)| (manifest.count, manifest.number));
    Ok(found)
}

/// Checks that they are all shards of one sweep by this program.
fn check(found: &[(Manifest, PathBuf)], program: &str, folder: &Path) -> Result<()> {
    let Some((first, _)) = found.first() else {
        bail!(
            "found no complete shard in {}, expected those of `headstart sweep --shard 1/N`",
            folder.display()
        );
    };
    for (one, path) in found {
        let path = path.display();
        ensure!(
            one.program == program,
            "{path}: found a shard by another program ({}), expected this one ({program})",
            one.program
        );
        ensure!(
            one.count == first.count,
            "{path}: found one of {} shards beside some of {}, expected one sweep",
            one.count,
            first.count
        );
        let [this, other] = [one, first].map(|one| terminal::typed(one.words.iter().cloned()));
        ensure!(
            one.plan == first.plan && this == other,
            "{path}: found a shard of another plan, `{this}`, expected one of `{other}`, with the same files"
        );
    }
    let numbers: BTreeMap<u32, &Path> =
        found.iter().map(|(one, path)| (one.number, path.as_path())).collect();
    let missing: Vec<String> = (1..=first.count)
        .filter(|number| !numbers.contains_key(number))
        .map(|number| number.to_string())
        .collect();
    ensure!(
        missing.is_empty(),
        "{}: found {} of {} shards complete, missing: {}",
        folder.display(),
        numbers.len(),
        first.count,
        missing.join(", ")
    );
    Ok(())
}

/// Merges the shards of a sweep and writes its files.
///
/// # Errors
/// If shards are missing or do not belong together, or a file cannot be written.
pub fn run(args: &MergeArgs) -> Result<()> {
    let folder = shards_of(&args.folder);
    let found = complete(&folder).or_refuse()?;
    check(&found, &headstart_report::jobs::program()?, &folder).or_refuse()?;
    let store = JobStore::open(Folder::open(&args.folder).or_refuse()?)?;
    let manifest = &found[0].0;
    let line = ["headstart"].into_iter().map(str::to_owned).chain(manifest.words.iter().cloned());
    let asked = super::read(line.map(OsString::from))?.asked;
    let prepared = sweep::prepare_any_size(&asked)?;
    if plan(&prepared) != manifest.plan {
        let typed = terminal::typed(manifest.words.iter().cloned());
        let error = anyhow::anyhow!(
            "{}: found the shards of another plan than `{typed}` is here, expected the same files and folder",
            folder.display()
        );
        return Err(error).or_refuse();
    }
    for (_, path) in &found {
        store.take_over(Folder::open(path).or_refuse()?)?;
    }
    let lost =
        prepared.points.iter().filter(|(_, setup)| !race::keys(setup).iter().all(|key| store.contains(key)));
    let lost = lost.count();
    ensure!(
        lost == 0,
        "{}: found damaged shards that lack runs of {lost} points, expected all: run them again",
        folder.display()
    );
    sweep::run_in(prepared, store, &terminal::typed(manifest.words.iter().cloned()))
}
