//! Two results side by side: the same measures of the same schemes, paired by seed.
//!
//! Both are folders of `race` or `sweep`, of which `seeds.csv` is read. Rows are paired that agree
//! in scheme, seed and, in sweeps, in the varied options. Runs of one seed have the same arrivals,
//! sizes, peers and losses where the conditions that decide them are the same. So the difference of
//! two of them is more certain than either.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::statistics::{Interval, mean, mean_interval};

/// Columns of `seeds.csv` that identify the run of a row.
const NAMES: [&str; 2] = ["scheme", "seed"];
/// A row for each scheme and seed, in the folder of a result.
const FILE: &str = "seeds.csv";
/// The column of the program that ran a row.
const VERSION: &str = "headstart";
/// Most rows without a partner that are listed.
const MAX_LISTED: usize = 3;

#[derive(Debug)]
struct RunFolder {
    folder: PathBuf,
    /// Varied options of a sweep, in order.
    varied: Vec<String>,
    /// Measures and conditions behind them, in order.
    columns: Vec<String>,
    /// By the varied options and the scheme, then by seed.
    rows: BTreeMap<Vec<String>, BTreeMap<u64, Vec<String>>>,
    /// The same keys in the order of the file.
    order: Vec<Vec<String>>,
}

impl RunFolder {
    fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let mut reader = csv::Reader::from_path(&path).with_context(|| {
            format!(
                "{}: found no {FILE} that can be read, expected a folder of `race` or `sweep`",
                folder.display()
            )
        })?;
        let header: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
        let place = |name: &str| {
            let found = header.iter().position(|column| column == name);
            found.with_context(|| format!("{}: found no column `{name}`, expected one", path.display()))
        };
        let [scheme, seed] = [place(NAMES[0])?, place(NAMES[1])?];
        ensure!(seed == scheme + 1, "{}: found `seed` elsewhere than behind `scheme`", path.display());
        let mut side = Self {
            folder: folder.to_path_buf(),
            varied: header[..scheme].to_vec(),
            columns: header[seed + 1..].to_vec(),
            rows: BTreeMap::new(),
            order: vec![],
        };
        for record in reader.records() {
            let record = record.map_err(|error| match error.kind() {
                csv::ErrorKind::UnequalLengths { pos: Some(pos), len, .. } => anyhow!(
                    "{}, line {}: found {len} fields, expected {} as in the header",
                    path.display(),
                    pos.line(),
                    header.len()
                ),
                _ => anyhow!("{}: {error}", path.display()),
            })?;
            let line = record.position().map_or(0, csv::Position::line);
            let fields: Vec<String> = record.iter().map(str::to_owned).collect();
            let number = fields[seed].parse().ok();
            let number = number.with_context(|| {
                format!(
                    "{}, line {line}: found the seed `{}`, expected a number",
                    path.display(),
                    fields[seed]
                )
            })?;
            for (column, field) in header.iter().zip(&fields).skip(seed + 1) {
                ensure!(
                    is_condition(column)
                        || column == VERSION
                        || field.is_empty()
                        || field.parse::<f64>().is_ok(),
                    "{}, line {line}: found `{field}` as {column}, expected a number or nothing",
                    path.display()
                );
            }
            let key = fields[..=scheme].to_vec();
            if !side.rows.contains_key(&key) {
                side.order.push(key.clone());
            }
            let before = side.rows.entry(key).or_default().insert(number, fields[seed + 1..].to_vec());
            ensure!(
                before.is_none(),
                "{}, line {line}: found a second row of seed {number}, expected one",
                path.display()
            );
        }
        ensure!(!side.rows.is_empty(), "{}: found no row, expected one at least", path.display());
        Ok(side)
    }

    fn value(&self, key: &[String], seed: u64, column: &str) -> Option<&str> {
        let at = self.columns.iter().position(|name| name == column)?;
        Some(self.rows.get(key)?.get(&seed)?.get(at)?.as_str())
    }

    /// The value of a condition, if it is the same in all rows.
    fn constant(&self, column: &str) -> Option<&str> {
        let at = self.columns.iter().position(|name| name == column)?;
        let mut values = self.rows.values().flat_map(BTreeMap::values).map(|row| row[at].as_str());
        let first = values.next()?;
        values.all(|value| value == first).then_some(first)
    }
}

/// A measure of a scheme in both results.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Values of the varied options; empty for races.
    pub point: Vec<String>,
    /// The scheme.
    pub scheme: String,
    /// The measure, as its column is called.
    pub measure: String,
    /// Its mean in the first result.
    pub one: f64,
    /// Its mean in the second.
    pub other: f64,
    /// The second less the first, with the 95 % interval of differences by seed; NaN for one seed.
    pub difference: Interval,
    /// All seeds gave the same number, to the last digit.
    pub is_equal: bool,
}

impl Compared {
    /// Chance alone would not give such a difference: its interval does not hold zero.
    #[must_use]
    pub fn differs(&self) -> bool {
        let Interval { low, high, .. } = self.difference;
        !self.is_equal && (low > 0.0 || high < 0.0)
    }
}

/// Two results side by side.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Options varied in both.
    pub varied: Vec<String>,
    /// Conditions in which they differ: name, first, second.
    pub conditions: Vec<[String; 3]>,
    /// Every measure of every scheme and point.
    pub compared: Vec<Compared>,
    /// Seeds.
    pub seeds: usize,
    /// Rows that only one of them has, in words; listed, and left out.
    pub left_out: Vec<String>,
}

/// Compares the results in two folders, in all measures or in those named. Rows that only one of
/// them has are refused, or left out if `is_common`.
///
/// # Errors
/// If a folder has no results, or nothing in it can be paired; with the state found and expected.
pub fn compare(one: &Path, other: &Path, measures: &[String], is_common: bool) -> Result<Difference> {
    let [one, other] = [RunFolder::read(one)?, RunFolder::read(other)?];
    let varied = |side: &RunFolder| match &side.varied[..] {
        [] => "no option".to_owned(),
        names => names.join(", "),
    };
    ensure!(
        one.varied == other.varied,
        "{}: found results that vary over {}, expected {} as in {}",
        other.folder.display(),
        varied(&other),
        varied(&one),
        one.folder.display()
    );
    let mut left_out = vec![];
    for (mine, theirs) in [(&one, &other), (&other, &one)] {
        for key in &mine.order {
            let seeds = |side: &RunFolder| -> BTreeSet<u64> {
                side.rows.get(key).map(|rows| rows.keys().copied().collect()).unwrap_or_default()
            };
            let missing: Vec<String> =
                seeds(mine).difference(&seeds(theirs)).map(ToString::to_string).collect();
            if !missing.is_empty() {
                let point = mine.varied.iter().zip(key).map(|(name, value)| format!(", {name} {value}"));
                left_out.push(format!(
                    "{}: found no row of {}{} with the seeds {}",
                    theirs.folder.display(),
                    key.last().map_or("", String::as_str),
                    point.collect::<String>(),
                    missing.join(", ")
                ));
            }
        }
    }
    if let (false, Some(told)) = (is_common, left_out.get(..left_out.len().min(MAX_LISTED))) {
        let more = left_out.len() - told.len();
        let more = if more > 0 { format!("; and {more} more such") } else { String::new() };
        ensure!(
            told.is_empty(),
            "{}{more}; expected the same as in the other: compare what both have with --common",
            told.join("; ")
        );
    }

    let is_measure = |column: &&String| {
        let is_condition = is_condition(column);
        !is_condition && other.columns.contains(column)
    };
    let known: Vec<String> = one.columns.iter().filter(is_measure).cloned().collect();
    for name in measures {
        if !known.contains(name) {
            bail!("--measures: found `{name}`, expected some of {}", known.join(", "));
        }
    }
    let chosen: Vec<&String> =
        known.iter().filter(|name| measures.is_empty() || measures.contains(name)).collect();
    let mut compared = vec![];
    let mut most_seeds = 0;
    for key in one.order.iter().filter(|key| other.rows.contains_key(*key)) {
        let seeds: Vec<u64> =
            one.rows[key].keys().copied().filter(|seed| other.rows[key].contains_key(seed)).collect();
        most_seeds = most_seeds.max(seeds.len());
        compared.extend(chosen.iter().filter_map(|measure| pair(&one, &other, key, &seeds, measure)));
    }
    ensure!(
        !compared.is_empty(),
        "{}: found no scheme and seed that is in {} too, expected one at least",
        other.folder.display(),
        one.folder.display()
    );
    let conditions = one.columns.iter().filter(|column| is_condition(column)).filter_map(|column| {
        let [here, there] = [one.constant(column)?, other.constant(column)?];
        (here != there).then(|| [column.clone(), here.to_owned(), there.to_owned()])
    });
    let conditions = conditions.collect();
    Ok(Difference { varied: one.varied, conditions, compared, seeds: most_seeds, left_out })
}

/// True for a column of a condition; all other columns are measures.
fn is_condition(column: &str) -> bool {
    crate::conditions::columns().any(|name| name == column)
}

/// One measure of one scheme; `None` if a seed that both have did not measure it.
fn pair(
    one: &RunFolder,
    other: &RunFolder,
    key: &[String],
    seeds: &[u64],
    measure: &str,
) -> Option<Compared> {
    let of = |side: &RunFolder| -> Option<Vec<f64>> {
        seeds.iter().map(|seed| side.value(key, *seed, measure)?.parse().ok()).collect()
    };
    let [here, there] = [of(one)?, of(other)?];
    let differences: Vec<f64> = there.iter().zip(&here).map(|(there, here)| there - here).collect();
    let value = mean(&differences)?;
    let bare = Interval { value, low: f64::NAN, high: f64::NAN };
    let (scheme, point) = key.split_last()?;
    Some(Compared {
        point: point.to_vec(),
        scheme: scheme.clone(),
        measure: measure.to_owned(),
        one: mean(&here)?,
        other: mean(&there)?,
        difference: mean_interval(&differences).unwrap_or(bare),
        is_equal: here == there,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn folder(name: &str, text: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("headstart-diff-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary folder");
        fs::write(path.join(FILE), text).expect("a file");
        path
    }

    const ONE: &str = "scheme,seed,mean_ms,harm,queue\niw10,1,100,1,drop-tail\niw10,2,300,1,drop-tail\niw10,3,200,1,drop-tail\n";

    /// Differences 10, 11, 12: mean 11, deviation 1, t of two degrees 4.302653. The spread of the
    /// seeds is far wider.
    #[test]
    fn differences_are_paired_by_seed() {
        let one = folder("paired", ONE);
        let other = folder(
            "paired2",
            &ONE.replace("100,", "110,")
                .replace("300,", "311,")
                .replace("200,", "212,")
                .replace("drop-tail", "codel"),
        );
        let found = compare(&one, &other, &[], false).expect("they pair");
        assert_eq!(found.conditions, [["queue".to_owned(), "drop-tail".to_owned(), "codel".to_owned()]]);
        let [mean, harm] = &found.compared[..] else { panic!("{found:?}") };
        assert_eq!((mean.one, mean.other, mean.difference.value), (200.0, 211.0, 11.0));
        let reach = 4.302_653 / 3_f64.sqrt();
        assert!((mean.difference.low - (11.0 - reach)).abs() < 1e-4, "{:?}", mean.difference);
        assert!(mean.differs() && !harm.differs() && harm.is_equal);
        let only = compare(&one, &other, &["harm".to_owned()], false).expect("they pair");
        assert_eq!(only.compared.len(), 1);
    }

    #[test]
    fn a_single_seed_shows_no_difference() {
        let one = folder("single", "scheme,seed,mean_ms\niw10,1,100\n");
        let other = folder("single2", "scheme,seed,mean_ms\niw10,1,200\n");
        let found = compare(&one, &other, &[], false).expect("they pair");
        assert!(!found.compared[0].differs() && !found.compared[0].is_equal);
        assert!(found.compared[0].difference.low.is_nan());
    }

    #[test]
    fn results_that_cannot_be_paired_are_refused_by_name() {
        let one = folder("names", ONE);
        let refused = |name: &str, text: &str| {
            let other = folder(name, text);
            format!("{:#}", compare(&one, &other, &[], false).expect_err(name))
        };
        let fewer = refused("fewer", "scheme,seed,mean_ms\niw10,1,100\niw10,2,1\n");
        assert!(
            fewer.contains("found no row of iw10 with the seeds 3") && fewer.contains("--common"),
            "{fewer}"
        );
        let more = refused("more", &(ONE.to_owned() + "pcp,1,1,1,codel\n"));
        assert!(more.contains("found no row of pcp with the seeds 1"), "{more}");
        let sweep = refused("sweep", "load_share,scheme,seed,mean_ms\n0.1,iw10,1,100\n");
        assert!(sweep.contains("vary over load_share, expected no option"), "{sweep}");
        let text = refused("text", "nothing\n");
        assert!(text.contains("found no column `scheme`"), "{text}");
        let seed = refused("seed", "scheme,seed,mean_ms\niw10,x,100\n");
        assert!(seed.contains("line 2") && seed.contains("found the seed `x`"), "{seed}");
        let number = refused("number", "scheme,seed,mean_ms\niw10,1,many\n");
        assert!(number.contains("line 2: found `many` as mean_ms, expected a number"), "{number}");
        let fields = refused("fields", "scheme,seed,mean_ms\niw10,1,1\niw10,2\n");
        assert!(fields.contains("line 3: found 2 fields, expected 3"), "{fields}");
        let nowhere = compare(&one, Path::new("/nowhere"), &[], false).expect_err("nothing is there");
        assert!(format!("{nowhere:#}").contains("found no seeds.csv"), "{nowhere:#}");
        let unknown = compare(&one, &one, &["means".to_owned()], false).expect_err("no such measure");
        assert!(
            format!("{unknown:#}").contains("found `means`, expected some of mean_ms, harm"),
            "{unknown:#}"
        );

        let other = folder("common", "scheme,seed,mean_ms\niw10,1,100\niw10,2,1\n");
        let common = compare(&one, &other, &[], true).expect("two seeds are in both");
        assert_eq!((common.seeds, common.left_out.len(), common.compared.len()), (2, 1, 1));
    }
}
