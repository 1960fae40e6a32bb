//! A sweep in blocks: the rows of some points are one file, for more points than memory holds.
//!
//! A block is a number of consecutive points. When all of them have been raced, their rows become
//! `seeds/0000000.parquet` and then `points/0000000.parquet`, each whole or not at all: a block
//! with the latter is finished. The process that collects blocks, here or with an executor of
//! Python, keeps nothing of them in memory. The sizes of blocks are derived from the options, so
//! that a sweep that was interrupted finds the same blocks again.
//!
//! # Limits
//!
//! Options are read ahead at a sample of the points only ([`Grid::sample`]). A combination that is
//! refused elsewhere ends the sweep when its block begins.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, ensure};
use headstart_report::jobs::{JobStore, key, program};
use headstart_report::rows::{Table, can_write_parquet, parquet_bytes};
use serde::{Deserialize, Serialize};

use super::{Prepared, ROW_BYTES, measure, read};
use crate::command::format::Format;
use crate::command::terminal::{self, print};
use headstart_compare::conditions::ConditionColumns;
use headstart_compare::race;
use headstart_compare::sweep::{Grid, Point};
use headstart_report::errors::Refuse as _;
use headstart_report::output::Folder;
use headstart_study::estimate::Estimate;
use headstart_study::setup::Setup;

/// Expected processor time of a block: what is lost of one when its process is killed.
const SECONDS: f64 = 30.0;
/// Most points of a block.
const MOST_POINTS: u64 = 1000;
/// A sweep has as many blocks, if it has the points: work for a thousand processes.
const BLOCKS: u64 = 1024;
/// More points than this are a mistake.
const MAX_POINTS: u64 = 10_000_000;
/// The tables of a block, and the folders of their files.
const TABLES: [&str; 2] = ["points", "seeds"];
/// File that identifies the sweep.
const DESCRIPTION: &str = "blocks.json";

/// A sweep that is divided into blocks.
#[derive(Debug)]
pub struct Blocks {
    words: Vec<String>,
    grid: Grid,
    size: u64,
    /// The key of each point of the sample, by number.
    keys: Keys,
    /// Cost of all points.
    pub estimate: Estimate,
    notes: Vec<String>,
    out: PathBuf,
}

/// Hashes of all that decides the results of points, contents of input files included.
pub type Keys = BTreeMap<u64, String>;

/// The rows of a block.
#[derive(Debug)]
pub struct Block {
    /// The tables `points` and `seeds`.
    pub tables: [Table; 2],
    /// The key of each of its points that is in the sample.
    pub keys: Keys,
    /// Cost that was expected of its runs.
    pub estimate: Estimate,
}

impl Block {
    /// Both tables, for [`call::sweep`](crate::command::call::sweep).
    ///
    /// # Errors
    /// None that can be: they are text.
    pub fn rows(&self) -> Result<Vec<u8>> {
        Ok(serde_json::to_vec(&self.tables)?)
    }

    /// Both tables as Parquet.
    ///
    /// # Errors
    /// In a program without Parquet.
    pub fn parquet(&self) -> Result<[Vec<u8>; 2]> {
        let [points, seeds] = self.tables.each_ref().map(|table| parquet_bytes(&table.columns, &table.rows));
        Ok([points?, seeds?])
    }
}

/// The key of a point: of its columns as of its runs, however its values were typed.
fn key_of(point: &Point, setup: &Setup) -> String {
    let varied = ConditionColumns::new(setup, &point.varied).before;
    let varied = varied.into_iter().flat_map(|(name, value)| [name, value.to_string()]);
    let texts: Vec<String> = varied.chain(race::keys(setup)).collect();
    key(texts.iter().map(String::as_str))
}

/// Races the points with these numbers of the sweep of these words, by so many threads unless they
/// say how many. Finished runs are kept in `folder` until the last.
///
/// # Errors
/// If an option is refused, or a run fails.
pub fn race_block(
    words: &[String],
    numbers: Range<u64>,
    threads: Option<usize>,
    folder: Folder,
) -> Result<Block> {
    let grid = Grid::new(words).or_refuse()?;
    ensure!(numbers.end <= grid.count(), "found points {numbers:?}, expected less than {}", grid.count());
    let points = numbers.clone().map(|number| grid.point(number));
    let Prepared { mut points, estimate, .. } = read(words, points)?;
    let sample = grid.sample();
    let of_sample = numbers.zip(&points).filter(|(number, _)| sample.contains(number));
    let keys = of_sample.map(|(number, (point, setup))| (number, key_of(point, setup))).collect();
    for (_, setup) in &mut points {
        setup.run.threads = setup.run.threads.or(threads);
    }
    let store = JobStore::open(folder)?;
    let tables = measure(points.iter(), &store, None, None, |_, _| ())?;
    // They are of no use once the rows are known.
    store.discard()?;
    Ok(Block { tables, keys, estimate })
}

impl Blocks {
    /// Divides the sweep of these words.
    ///
    /// # Errors
    /// If an option or the size of the sweep is refused.
    pub fn new(words: &[String]) -> Result<Self> {
        let grid = Grid::new(words).or_refuse()?;
        let count = grid.count();
        if count > MAX_POINTS {
            let error = anyhow!("found {count} combinations, expected at most {MAX_POINTS}");
            return Err(error).or_refuse();
        }
        let sample = grid.sample();
        let prepared = read(words, sample.iter().map(|number| grid.point(*number)))?;
        let Prepared { points, notes, out, estimate, rows, format, .. } = prepared;
        if format != Format::Table {
            let error = anyhow!("--format: found it with --blocks, expected one: blocks are Parquet");
            return Err(error).or_refuse();
        }
        let share = 1.0 / sample.len() as f64;
        let most = (SECONDS / (estimate.seconds * share).max(1e-9)) as u64;
        let size = most.min(count / BLOCKS).clamp(1, MOST_POINTS);
        let mut estimate = estimate.times(count as f64 * share);
        estimate.memory += rows * share * size as f64 * ROW_BYTES;
        estimate.check(points.iter().any(|(_, setup)| setup.run.large)).or_refuse()?;
        let keys = sample.into_iter().zip(&points);
        let keys = keys.map(|(number, (point, setup))| (number, key_of(point, setup))).collect();
        Ok(Self { words: words.to_vec(), grid, size, keys, estimate, notes, out })
    }

    /// The options that were given, those of a plan included.
    #[must_use]
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Number of blocks.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.grid.count().div_ceil(self.size)
    }

    /// Numbers of the points of a block.
    #[must_use]
    pub fn numbers(&self, block: u64) -> Range<u64> {
        let first = block * self.size;
        first..(first + self.size).min(self.grid.count())
    }

    /// Checks that a block which another process raced is one of this sweep.
    ///
    /// # Errors
    /// If it is of other options, or of other contents of input files.
    pub fn check(&self, keys: &Keys) -> Result<()> {
        let other = keys.iter().find(|(number, key)| self.keys.get(number) != Some(key));
        other.map_or(Ok(()), |(number, _)| {
            let words = self.grid.point(*number).arguments.join(" ");
            Err(anyhow!(
                "executor: found results of other runs than those of {words}, expected the same input files \
                 for every worker"
            ))
        })
    }

    /// A hash of all that decides the results.
    fn key(&self) -> String {
        let divided = format!("{} points, {} a block", self.grid.count(), self.size);
        key(std::iter::once(divided.as_str()).chain(self.keys.values().map(String::as_str)))
    }
}

/// Identifies the sweep of a folder.
#[derive(Deserialize, Serialize)]
struct Description {
    headstart: String,
    program: String,
    key: String,
    command: String,
    points: u64,
    points_of_a_block: u64,
    blocks: u64,
}

/// A folder of blocks, held so that no second sweep writes to it.
#[derive(Debug)]
pub struct BlockFolder {
    folder: Folder,
    tables: [Folder; 2],
}

impl BlockFolder {
    /// Opens a new folder, or one with blocks of this sweep. `command` is its line, for readers.
    ///
    /// # Errors
    /// If there is anything else, if this program writes no Parquet, or if the system refuses.
    pub fn open(path: &Path, blocks: &Blocks, command: &str) -> Result<Self> {
        can_write_parquet("--blocks", "a sweep without it").map_err(anyhow::Error::msg).or_refuse()?;
        let folder = Folder::open(path).or_refuse()?.of_command("sweep --blocks").or_refuse()?;
        let ours = Description {
            headstart: headstart_compare::VERSION.to_owned(),
            program: program()?,
            key: blocks.key(),
            command: command.to_owned(),
            points: blocks.grid.count(),
            points_of_a_block: blocks.size,
            blocks: blocks.count(),
        };
        let place = path.join(DESCRIPTION);
        if place.exists() {
            let text = std::fs::read(&place).with_context(|| format!("cannot read {}", place.display()))?;
            let found: Description =
                serde_json::from_slice(&text).with_context(|| place.display().to_string())?;
            let line = &found.command;
            let other = match () {
                () if found.key != ours.key => "another sweep, or of other input files",
                () if found.program != ours.program => "another build of headstart",
                () => "",
            };
            ensure!(
                other.is_empty(),
                "{}: found blocks of {other} (`{line}`), expected those of this one: write elsewhere with --out",
                path.display()
            );
        } else {
            folder.write(DESCRIPTION, (serde_json::to_string_pretty(&ours)? + "\n").as_bytes())?;
        }
        let [points, seeds] = TABLES.map(|name| folder.folder(name));
        Ok(Self { tables: [points.or_refuse()?, seeds.or_refuse()?], folder })
    }

    /// Leaves the folder to the process that this one was forked from.
    pub fn forget(&self) {
        [&self.folder].into_iter().chain(&self.tables).for_each(Folder::forget);
    }

    /// True if the block is finished.
    #[must_use]
    pub fn has(&self, number: u64) -> bool {
        self.tables[0].path().join(file(number)).exists()
    }

    /// Writes the files of a block.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn write(&self, number: u64, tables: [&[u8]; 2]) -> Result<()> {
        for (folder, bytes) in self.tables.iter().zip(tables).rev() {
            folder.write(&file(number), bytes)?;
        }
        Ok(())
    }

    /// Races what is left of all blocks, one after the other; `begin` gets the number of each.
    ///
    /// # Errors
    /// If a run fails, or its rows cannot be written.
    pub fn run(&self, blocks: &Blocks, begin: impl Fn(u64)) -> Result<()> {
        for number in (0..blocks.count()).filter(|number| !self.has(*number)) {
            begin(number);
            let block = race_block(&blocks.words, blocks.numbers(number), None, self.folder.clone())?;
            let [points, seeds] = block.parquet()?;
            self.write(number, [&points, &seeds])?;
        }
        Ok(())
    }
}

fn file(number: u64) -> String {
    format!("{number:07}.parquet")
}

/// Races every point and writes the blocks.
pub fn run(blocks: Blocks) -> Result<()> {
    for note in &blocks.notes {
        eprintln!("headstart: {note}");
    }
    let out = blocks.out.display().to_string();
    let folder = BlockFolder::open(&blocks.out, &blocks, &terminal::command_line())?;
    let kept = format!("finished blocks are in {out}; the same command goes on from there");
    eprintln!("headstart: {}", blocks.estimate);
    eprintln!("headstart: {kept}");
    terminal::on_interrupt(move || format!("stopped: {kept}"));
    let (count, points) = (blocks.count(), blocks.grid.count());
    folder.run(&blocks, |number| {
        let Range { start, end } = blocks.numbers(number);
        let block = number + 1;
        eprintln!("headstart: block {block} of {count}: points {} to {end} of {points}", start + 1);
    })?;
    print(&format!("{points} points in {count} blocks: {out}/points/*.parquet and {out}/seeds/*.parquet\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(line: &str) -> Blocks {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Blocks::new(&words).expect("allowed")
    }

    #[test]
    fn a_block_takes_about_half_a_minute_unless_there_are_too_few_points() {
        let grid = "--seed=1..100:1 --load=1%..50%:1% --rtt=1ms..200ms:1ms --schemes=iw10 --large";
        for (rest, points) in [("--duration=1s", 1_000_000 / BLOCKS), ("--duration=1000s --repeats=30", 3)] {
            let blocks = blocks(&format!("{grid} {rest}"));
            let seconds = blocks.estimate.seconds / 1e6;
            assert_eq!((blocks.size, blocks.grid.count()), (points, 1_000_000), "{rest}: {seconds} s");
            assert!(seconds * points as f64 <= SECONDS, "{rest}: {seconds} s");
            assert_eq!(blocks.count(), 1_000_000_u64.div_ceil(points), "{rest}");
            assert!(blocks.estimate.memory < 1e9, "{rest}: {:?}", blocks.estimate);
            assert_eq!(blocks.numbers(blocks.count() - 1).end, 1_000_000, "{rest}");
        }
        assert_eq!(blocks("--load=1%..50%:1% --duration=1s").count(), 50, "a point each");
    }

    #[test]
    fn blocks_of_other_runs_are_refused() {
        let ours = blocks("--load=5%,25% --duration=1s --schemes=iw10");
        assert!(ours.check(&ours.keys).is_ok());
        let other = blocks("--load=5%,25% --duration=2s --schemes=iw10");
        let error = ours.check(&other.keys).expect_err("of other runs").to_string();
        assert!(error.contains("--load=5% --duration=1s --schemes=iw10"), "{error}");
    }
}
