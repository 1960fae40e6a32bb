//! A search for Headstart's parameters by successive halving.
//!
//! `... --example matrix -- tune FILE COUNT [SEED]` draws COUNT settings from [`RANGES`]: each
//! parameter keeps its default with probability 0.7. All settings are run on twelve paths of the
//! set `search`, and the best third on 45. The best tenth is run on all whose runs are short and
//! on the default path, and the best fiftieth on all 200 in three repeats. The paths are
//! stratified by RTT, load and long flows. Each run is paired with `iw10` on the same arrivals.
//!
//! Settings are judged by several objectives at once ([`Score::objectives`]). Those that no other
//! setting equals or betters in all of them go on first, then those that only such settings better,
//! and so on. The default goes on in any case.
//!
//! Every run is a line of FILE. The same command continues after an interruption, and the number of
//! threads (`RAYON_NUM_THREADS`) does not change a byte. A file of another program or another
//! search must be deleted; one whose lines are of other runs is refused.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;

use headstart_host::Stopwatch;
use headstart_report::statistics::{mean, quantile};
use headstart_sim::{Random, Seed};
use headstart_startup::catalogue;
use headstart_study::drawn_paths::path::DrawnPath;
use headstart_study::drawn_paths::{path_of, ratio_of};
use headstart_units::Span;
use rayon::prelude::*;

use crate::{default_path, packets, stop};

/// Levels of each parameter beside its default.
const RANGES: [(&str, &[&str]); 7] = [
    ("price", &["4", "8", "16", "24", "48", "64", "128"]),
    ("initial-window", &["4", "6", "8"]),
    ("credit-gain", &["1.5625%", "3.125%", "12.5%", "25%", "50%", "100%"]),
    ("initial-credit", &["10", "16", "24", "32", "40", "64", "80"]),
    ("queue-weight", &["0", "2", "4", "16", "32"]),
    ("min-rtt", &["0ms", "2ms", "5ms", "20ms", "40ms"]),
    ("burst", &["1", "4", "10"]),
];
/// The scheme that every run is paired with.
const REFERENCE: &str = "iw10";
const DEFAULT: &str = "headstart";
/// Packets of a run at most: the long ones wait for the last.
const PACKETS: f64 = 1e5;
/// Seeds of the default path; no result elsewhere is of these.
const DEFAULT_SEEDS: [u64; 4] = [201, 202, 203, 204];
/// Places in [`default_path`]: 25 % alone, and 30, 60 and 80 % beside `iw10` and of `iw10` alone.
const IDLE: usize = 1;
const BESIDE: [usize; 3] = [11, 12, 13];
const ALONE: [usize; 3] = [14, 15, 16];
/// Probability with which a parameter of a setting is not its default.
const CHANGED: f64 = 0.3;
/// Jobs between two writes.
const CHUNK: usize = 128;

/// One stage: how many settings take part, and what is run.
struct Stage {
    settings: usize,
    paths: Vec<u64>,
    repeats: u64,
    default_seeds: &'static [u64],
}

/// The path of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cell {
    /// A path of the set `search`, and a repeat.
    Drawn(u64, u64),
    /// A seed of the default path, and a place in it.
    Default(u64, usize),
}

impl Cell {
    fn path(self) -> DrawnPath {
        match self {
            Self::Drawn(number, repeat) => path_of("search", number, repeat),
            Self::Default(seed, at) => default_path(seed).swap_remove(at),
        }
    }
}

/// Numbers of one run: mean and p99 in ms, loss, long flows in Mbit/s, mean of flows beside in ms.
type Numbers = [f64; 5];
/// All runs so far, by setting.
type Results = BTreeMap<String, BTreeMap<Cell, Numbers>>;

/// Runs the search, and prints effects and frontier.
pub fn run(arguments: &[String]) {
    let (file, count, seed) = match arguments {
        [file, count] => (file, count, "1"),
        [file, count, seed] => (file, count, seed.as_str()),
        _ => stop("expected tune FILE COUNT [SEED]"),
    };
    let (Ok(count), Ok(seed)) = (count.parse::<usize>(), seed.parse::<u64>()) else {
        stop(&format!("found tune {file} {count} {seed}, expected numbers as COUNT and SEED"))
    };
    let mut log = Log::open(file);
    let mut settings = draw(count, seed);
    let mut results = Results::new();
    let stages = stages(count);
    for (number, stage) in stages.iter().enumerate() {
        if settings.len() > stage.settings {
            settings = best(&settings, &results, stage.settings);
        }
        log.run(number + 1, stage, &settings, &mut results);
        if number == 0 {
            print_effects(&settings, &results);
        }
    }
    print_frontier(&settings, &results);
    print_choice(&settings, &results);
}

fn stages(count: usize) -> Vec<Stage> {
    let part = |divisor: usize| (count / divisor).max(1);
    let stage = |settings, paths, repeats, seeds| Stage {
        settings,
        paths,
        repeats,
        default_seeds: &DEFAULT_SEEDS[..seeds],
    };
    vec![
        stage(count, stratified(1), 1, 0),
        stage(part(3), stratified(4), 1, 0),
        stage(part(10), stratified(200), 1, 2),
        stage(part(50), (0..200).collect(), 3, 4),
    ]
}

/// The first paths of each stratum whose runs are short.
fn stratified(of_each: usize) -> Vec<u64> {
    let mut strata: BTreeMap<(bool, usize, bool), Vec<u64>> = BTreeMap::new();
    for number in 0..200 {
        let path = path_of("search", number, 0);
        if packets(&path) > PACKETS {
            continue;
        }
        let load = [0.25, 0.6].iter().filter(|bound| path.load > **bound).count();
        let stratum = (path.plan.rtt(0) < Span::from_millis(10), load, path.long > 0);
        strata.entry(stratum).or_default().push(number);
    }
    let mut chosen: Vec<u64> =
        strata.into_values().flat_map(|paths| paths.into_iter().take(of_each)).collect();
    chosen.sort_unstable();
    chosen
}

/// The default, and settings drawn at random.
fn draw(count: usize, seed: u64) -> Vec<String> {
    let mut random = Random::named(Seed(seed), "settings");
    let mut settings = vec![DEFAULT.to_owned()];
    while settings.len() < count {
        let mut values = vec![];
        for (name, levels) in RANGES {
            if random.happens(CHANGED) {
                values.push(format!("{name}={}", levels[random.below(levels.len() as u64) as usize]));
            }
        }
        let text = format!("{DEFAULT}({})", values.join(","));
        // A name that is too long is refused.
        if !values.is_empty() && !settings.contains(&text) && catalogue::find(&text).is_ok() {
            settings.push(text);
        }
    }
    settings
}

/// The file of results: lines that are there are taken from it.
struct Log {
    file: std::fs::File,
    kept: std::vec::IntoIter<(String, Numbers)>,
    clock: Stopwatch,
}

impl Log {
    fn open(name: &str) -> Self {
        let fail = |error: std::io::Error| -> ! { stop(&format!("{name}: {error}")) };
        let text = match std::fs::read_to_string(name) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => fail(error),
        };
        // A line that was cut short is run again.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let file = OpenOptions::new().create(true).append(true).open(name);
        let file = file.and_then(|file| file.set_len(whole as u64).map(|()| file));
        let file = file.unwrap_or_else(|error| fail(error));
        let kept: Vec<_> = text[..whole].lines().map(|line| parse(name, line)).collect();
        Self { file, kept: kept.into_iter(), clock: Stopwatch::start() }
    }

    /// Runs what the stage lacks.
    fn run(&mut self, number: usize, stage: &Stage, settings: &[String], results: &mut Results) {
        let jobs: Vec<(&str, Cell)> = std::iter::once(REFERENCE)
            .chain(settings.iter().map(String::as_str))
            .flat_map(|setting| {
                cells(stage, setting == REFERENCE).into_iter().map(move |cell| (setting, cell))
            })
            .filter(|(setting, cell)| results.get(*setting).is_none_or(|known| !known.contains_key(cell)))
            .collect();
        let mut add = |(setting, cell): (&str, Cell), numbers| {
            results.entry(setting.to_owned()).or_default().insert(cell, numbers);
        };
        let mut rest = &jobs[..];
        while let [job, others @ ..] = rest
            && let Some((key, numbers)) = self.kept.next()
        {
            let expected = key_of(job);
            if key != expected {
                stop(&format!("found a run of {key}, expected {expected}: the file is of another search"));
            }
            add(*job, numbers);
            rest = others;
        }
        let done = jobs.len() - rest.len();
        for (chunk, jobs_of_chunk) in rest.chunks(CHUNK).enumerate() {
            let runs: Vec<Numbers> = jobs_of_chunk.par_iter().map(one).collect();
            let mut lines = String::new();
            for (job, numbers) in jobs_of_chunk.iter().zip(runs) {
                let line = line_of(job, numbers);
                lines += &line;
                add(*job, parse("a run", line.trim_end()).1);
            }
            if let Err(error) = self.file.write_all(lines.as_bytes()) {
                stop(&error.to_string());
            }
            eprintln!(
                "stage {number}: {} settings, {} of {} runs, {:.0} s",
                settings.len(),
                (done + (chunk + 1) * CHUNK).min(jobs.len()),
                jobs.len(),
                self.clock.elapsed().as_secs_f64()
            );
        }
    }
}

/// The runs of a setting in a stage.
fn cells(stage: &Stage, is_reference: bool) -> Vec<Cell> {
    let drawn = (0..stage.repeats)
        .flat_map(|repeat| stage.paths.iter().map(move |number| Cell::Drawn(*number, repeat)));
    let places = if is_reference { ALONE } else { BESIDE };
    let default = stage
        .default_seeds
        .iter()
        .flat_map(|seed| std::iter::once(IDLE).chain(places).map(|at| Cell::Default(*seed, at)));
    drawn.chain(default).collect()
}

fn one((setting, cell): &(&str, Cell)) -> Numbers {
    let scheme = catalogue::find(setting).unwrap_or_else(|error| stop(&error.to_string())).scheme();
    let run = cell.path().run(scheme);
    [run.mean_ms, run.p99_ms, run.loss, run.long_mbit, run.beside_ms]
}

fn key_of((setting, cell): &(&str, Cell)) -> String {
    match cell {
        Cell::Drawn(number, repeat) => format!("\"{setting}\",{number}.{repeat}"),
        Cell::Default(seed, at) => format!("\"{setting}\",default {seed}.{at}"),
    }
}

fn line_of(job: &(&str, Cell), numbers: Numbers) -> String {
    let [mean, p99, loss, long, beside] = numbers;
    format!("{},{mean:.4},{p99:.4},{loss:.5},{long:.4},{beside:.4}\n", key_of(job))
}

fn parse(name: &str, line: &str) -> (String, Numbers) {
    let mut fields = line.rsplitn(6, ',');
    let mut numbers = [0.0; 5];
    for place in numbers.iter_mut().rev() {
        let number = fields.next().and_then(|text| text.parse().ok());
        *place = number.unwrap_or_else(|| stop(&format!("{name}: found {line}, expected a run")));
    }
    let key = fields.next().unwrap_or_else(|| stop(&format!("{name}: found {line}, expected a run")));
    (key.to_owned(), numbers)
}

/// A setting compared with `iw10`.
struct Score {
    paths: usize,
    /// Mean of the logarithms of the ratios of mean completion times.
    log_ratio: f64,
    /// Paths beyond each bar, and surely beyond it: mean, p99, long flows, losses.
    beyond: [(usize, usize); 4],
    /// Mean over the paths of the logarithms by which they are beyond the bars.
    excess: f64,
    /// On the default path: mean in ms at 25 %, harm at 30, 60 and 80 %.
    default: Option<(f64, [f64; 3])>,
}

impl Score {
    fn of(setting: &str, results: &Results) -> Self {
        let (own, reference) = (&results[setting], &results[REFERENCE]);
        let mut repeats: BTreeMap<u64, Vec<(Numbers, Numbers)>> = BTreeMap::new();
        for (cell, numbers) in own {
            let Cell::Drawn(path, _) = cell else { continue };
            let base = reference[cell];
            // A run in which nothing was finished has no mean.
            if numbers[0] > 0.0 && base[0] > 0.0 {
                repeats.entry(*path).or_default().push((*numbers, base));
            }
        }
        let (mut logs, mut beyond, mut excess) = (0.0, [(0, 0); 4], 0.0);
        for pairs in repeats.values() {
            let ratio = |at: usize| {
                let (own, base): (Vec<f64>, Vec<f64>) =
                    pairs.iter().map(|(own, base)| (own[at], base[at])).unzip();
                ratio_of(&own, &base)
            };
            logs += ratio(0).map_or(0.0, |it| it.value.ln());
            let lossy = mean(&pairs.iter().map(|(_, base)| base[2]).collect::<Vec<_>>());
            let loss = ratio(2).filter(|_| lossy.is_some_and(|loss| loss > 0.01));
            // For long flows less is worse.
            let long = ratio(3);
            for (at, value, nearest, bar) in [
                (0, ratio(0).map(|it| it.value), ratio(0).map(|it| it.low), 1.05),
                (1, ratio(1).map(|it| it.value), ratio(1).map(|it| it.low), 1.10),
                (
                    2,
                    long.map(|it| it.value.max(1e-3).recip()),
                    long.map(|it| it.high.max(1e-3).recip()),
                    1.0 / 0.95,
                ),
                (3, loss.map(|it| it.value), loss.map(|it| it.low), 1.5),
            ] {
                let (Some(value), Some(nearest)) = (value, nearest) else { continue };
                beyond[at].0 += usize::from(value > bar);
                beyond[at].1 += usize::from(nearest > bar);
                excess += (value / bar).ln().max(0.0);
            }
        }
        let count = repeats.len().max(1) as f64;
        Self {
            paths: repeats.len(),
            log_ratio: logs / count,
            beyond,
            excess: excess / count,
            default: on_default(own, reference),
        }
    }

    /// Each is the better the smaller it is: the mean on the drawn paths, the excess beyond the
    /// bars, and on the default path the mean and the largest harm.
    fn objectives(&self) -> [f64; 4] {
        let (idle, harm) =
            self.default.map_or((0.0, 0.0), |(idle, harm)| (idle, harm.into_iter().fold(1.0, f64::max)));
        [self.log_ratio, self.excess, idle, harm]
    }
}

fn on_default(own: &BTreeMap<Cell, Numbers>, reference: &BTreeMap<Cell, Numbers>) -> Option<(f64, [f64; 3])> {
    let over_seeds = |runs: &BTreeMap<Cell, Numbers>, place: usize, column: usize| {
        let values: Vec<f64> = DEFAULT_SEEDS
            .iter()
            .filter(|seed| own.contains_key(&Cell::Default(**seed, IDLE)))
            .map(|seed| runs[&Cell::Default(*seed, place)][column])
            .collect();
        mean(&values)
    };
    let idle = over_seeds(own, IDLE, 0)?;
    let mut harm = [1.0; 3];
    for (harm, (beside, alone)) in harm.iter_mut().zip(BESIDE.into_iter().zip(ALONE)) {
        *harm = over_seeds(own, beside, 4)? / over_seeds(reference, alone, 0)?;
    }
    Some((idle, harm))
}

/// True if the first is at least as good in everything, and better in something.
fn dominates(one: &[f64; 4], other: &[f64; 4]) -> bool {
    one.iter().zip(other).all(|(one, other)| one <= other) && one != other
}

/// Those that no other setting equals or betters in everything.
fn frontier(of: &[(String, [f64; 4])]) -> Vec<usize> {
    (0..of.len()).filter(|at| !of.iter().any(|(_, other)| dominates(other, &of[*at].1))).collect()
}

/// The best `count` settings, front by front; of the last front those with the least sum of ranks.
fn best(settings: &[String], results: &Results, count: usize) -> Vec<String> {
    let mut left: Vec<(String, [f64; 4])> =
        settings.iter().map(|it| (it.clone(), Score::of(it, results).objectives())).collect();
    let mut sums: BTreeMap<String, usize> = BTreeMap::new();
    for objective in 0..4 {
        let mut order: Vec<&(String, [f64; 4])> = left.iter().collect();
        order.sort_by(|one, other| one.1[objective].total_cmp(&other.1[objective]));
        for (rank, (setting, _)) in order.into_iter().enumerate() {
            *sums.entry(setting.clone()).or_default() += rank;
        }
    }
    let mut chosen = vec![DEFAULT.to_owned()];
    left.retain(|(setting, _)| setting != DEFAULT);
    while chosen.len() < count && !left.is_empty() {
        let mut front = frontier(&left);
        front.sort_by_key(|at| sums[&left[*at].0]);
        front.truncate(count - chosen.len());
        chosen.extend(front.iter().map(|at| left[*at].0.clone()));
        let mut at = 0;
        left.retain(|_| {
            at += 1;
            !front.contains(&(at - 1))
        });
    }
    // In the order in which they were drawn, so that the sum of ranks decides on nothing else.
    settings.iter().filter(|it| chosen.contains(it)).cloned().collect()
}

/// The change by each level on average over all settings of the first stage.
fn print_effects(settings: &[String], results: &Results) {
    let scores: Vec<(&String, Score)> = settings.iter().map(|it| (it, Score::of(it, results))).collect();
    println!("| parameter | settings (count) | geometric mean (ratio) | excess beyond the bars |");
    println!("|---|--:|--:|--:|");
    let row = |name: &str, is_of: &dyn Fn(&str) -> bool| {
        let of: Vec<&Score> = scores.iter().filter(|(text, _)| is_of(text)).map(|(_, it)| it).collect();
        let average = |value: fn(&Score) -> f64| {
            mean(&of.iter().map(|it| value(it)).collect::<Vec<_>>()).unwrap_or(f64::NAN)
        };
        println!(
            "| `{name}` | {} | {:.3} | {:.3} |",
            of.len(),
            average(|it| it.log_ratio).exp(),
            average(|it| it.excess)
        );
    };
    for (name, levels) in RANGES {
        let has = |text: &str, value: &str| text.split(['(', ',', ')']).any(|part| part == value);
        let is_default =
            |text: &str| !text.split(['(', ',', ')']).any(|part| part.split('=').next() == Some(name));
        row(&format!("{name}, default"), &is_default);
        for level in levels {
            let value = format!("{name}={level}");
            row(&value, &|text| has(text, &value));
        }
    }
    println!();
}

fn print_frontier(settings: &[String], results: &Results) {
    let scores: BTreeMap<&String, Score> = settings.iter().map(|it| (it, Score::of(it, results))).collect();
    let all: Vec<(String, [f64; 4])> =
        scores.iter().map(|(setting, score)| ((*setting).clone(), score.objectives())).collect();
    let mut rows: Vec<usize> = frontier(&all);
    rows.sort_by(|one, other| all[*one].1[0].total_cmp(&all[*other].1[0]));
    if let Some(default) = all.iter().position(|(setting, _)| setting == DEFAULT)
        && !rows.contains(&default)
    {
        rows.push(default);
    }
    println!(
        "| setting | paths (count) | geometric mean (ratio) | above 1.05 (paths; surely) | p99 above 1.10 (paths; surely) \
         | long flows below 0.95 (paths; surely) | losses above 1.5x (paths; surely) | excess | mean at 25 % (ms) \
         | harm at 30 / 60 / 80 % (ratio) |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|---|");
    for at in rows {
        let setting = &all[at].0;
        let score = &scores[setting];
        let [slow, tail, long, lossy] = score.beyond.map(|(all, surely)| format!("{all}; {surely}"));
        let (idle, harm) = score.default.unwrap_or_default();
        println!(
            "| `{setting}` | {} | {:.3} | {slow} | {tail} | {long} | {lossy} | {:.4} | {idle:.1} | {:.3} / {:.3} / {:.3} |",
            score.paths,
            score.log_ratio.exp(),
            score.excess,
            harm[0],
            harm[1],
            harm[2],
        );
    }
}

/// The best of the settings for each path, chosen by its first repeat and judged by the others.
fn print_choice(settings: &[String], results: &Results) {
    let ratio = |setting: &str, path: u64, repeats: std::ops::Range<u64>| {
        let mut sums = (0.0, 0.0);
        for repeat in repeats {
            let cell = Cell::Drawn(path, repeat);
            let (own, base) = (results.get(setting)?.get(&cell)?, results.get(REFERENCE)?.get(&cell)?);
            sums = (sums.0 + own[0], sums.1 + base[0]);
        }
        (sums.0 > 0.0 && sums.1 > 0.0).then(|| sums.0 / sums.1)
    };
    let mut chosen = vec![];
    for path in 0..200 {
        let first = |setting: &&String| ratio(setting, path, 0..1).unwrap_or(f64::INFINITY);
        let best = settings.iter().min_by(|one, other| first(one).total_cmp(&first(other)));
        chosen.extend(best.and_then(|best| ratio(best, path, 1..3)));
    }
    let logs: Vec<f64> = chosen.iter().map(|ratio| ratio.ln()).collect();
    println!(
        "\nBest setting of each path, chosen by one repeat and judged by two others: {} paths, geometric mean {:.3}, median {:.3}.",
        chosen.len(),
        mean(&logs).map_or(f64::NAN, f64::exp),
        quantile(&chosen, 0.5).unwrap_or(f64::NAN)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(objectives: [f64; 4]) -> (String, [f64; 4]) {
        (format!("{objectives:?}"), objectives)
    }

    #[test]
    fn the_frontier_has_what_nothing_equals_or_betters_in_everything() {
        let all = [
            scored([0.9, 0.2, 0.0, 1.0]),
            scored([0.8, 0.3, 0.0, 1.0]),
            scored([0.9, 0.3, 0.0, 1.0]),
            scored([0.8, 0.3, 0.0, 1.0]),
        ];
        assert_eq!(frontier(&all), [0, 1, 3], "the third is worse than both, and equals are equal");
    }

    #[test]
    fn each_setting_is_another_one_and_in_the_catalogue() {
        let settings = draw(300, 1);
        let different: std::collections::BTreeSet<_> = settings.iter().collect();
        assert_eq!((settings[0].as_str(), different.len()), (DEFAULT, 300));
        assert_ne!(draw(300, 2), settings);
        for setting in &settings {
            let found = catalogue::find(setting).map(|entry| entry.scheme());
            assert!(found.is_ok(), "{setting}: {found:?}");
        }
    }

    #[test]
    fn every_stratum_of_paths_is_there() {
        assert_eq!((stratified(1).len(), stratified(4).len()), (12, 45));
    }

    #[test]
    fn a_search_continues_where_its_file_ends_with_the_same_bytes() {
        let name = std::env::temp_dir().join(format!("headstart-tune-{}", std::process::id()));
        let name = name.to_str().expect("a name");
        let stage = Stage { settings: 3, paths: stratified(1), repeats: 1, default_seeds: &[] };
        let settings = draw(3, 1);
        let run = |threads| {
            let mut results = Results::new();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            pool.install(|| Log::open(name).run(1, &stage, &settings, &mut results));
            let chosen = best(&settings, &results, 2);
            (std::fs::read_to_string(name).expect("a file"), chosen, results)
        };
        let _ = std::fs::remove_file(name);
        let whole = run(2);
        assert_eq!(whole.0.lines().count(), 48, "iw10 and three settings on twelve paths");
        assert!(whole.1.contains(&DEFAULT.to_owned()), "the default goes on in any case");
        std::fs::write(name, &whole.0[..whole.0.len() / 2]).expect("written");
        assert!(run(1) == whole, "cut in the middle of a line, and with one thread");
        std::fs::remove_file(name).expect("removed");
    }
}
