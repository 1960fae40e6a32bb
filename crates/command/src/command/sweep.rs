//! `headstart sweep`: a race at every combination of lists.

pub(super) mod blocks;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, FromArgMatches as _};
use headstart_report::jobs::JobStore;
use headstart_report::rows::{self, RowFile};
use headstart_study::dependencies::idle;

use super::format::{self, Format};
use super::plan::{self, ExperimentOptions};
use super::terminal::{self, command_line, print, print_table};
use blocks::Blocks;
use headstart_compare::conditions::ConditionColumns;
use headstart_compare::flows::Flows;
use headstart_compare::race;
use headstart_compare::sweep::{self, Point};
use headstart_report::errors::Refuse as _;
use headstart_report::output::Folder;
use headstart_show::sweep::{MAX_CROSSINGS, Sweep};
use headstart_study::estimate::Estimate;
use headstart_study::progress::{Progress, Work};
use headstart_study::setup::Setup;

/// Options of `sweep`.
#[derive(Args, Debug)]
pub struct SweepArgs {
    #[command(flatten)]
    pub experiment: ExperimentOptions,
    /// Write every flow as a row, as .csv or .parquet: docs/data.md has the columns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub flows: Option<RowFile>,
    /// Write points/*.parquet and seeds/*.parquet and no report: for up to 10 million points, see
    /// docs/scale.md
    #[arg(long, conflicts_with = "flows", help_heading = "Output")]
    pub blocks: bool,
    /// Folder for report.html, sweep.csv, sweep.json and seeds.csv, or for blocks
    #[arg(long, default_value = "headstart-sweep", value_name = "FOLDER", help_heading = "Output")]
    pub out: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", help_heading = "Output")]
    pub format: Format,
}

/// The options of these points: a mistake is found before anything runs.
///
/// # Errors
/// If one is refused.
pub fn parse_points(points: impl IntoIterator<Item = Point>) -> Result<Vec<(Point, SweepArgs)>> {
    let mut command = SweepArgs::augment_args(clap::Command::new("headstart sweep").max_term_width(100));
    let mut parse = |point: Point| -> Result<_> {
        // Each point may be on a path of its own.
        let preset = plan::of_preset(&point.arguments);
        let words = preset.iter().chain(&point.arguments).map(String::as_str);
        let words = std::iter::once("headstart sweep").chain(words);
        let matches = command.try_get_matches_from_mut(words);
        let args = matches.and_then(|matches| SweepArgs::from_arg_matches(&matches));
        Ok((point, args?))
    };
    points.into_iter().map(&mut parse).collect()
}

/// A sweep before its first run.
#[derive(Default)]
pub struct Prepared {
    /// Points of the sweep, each with its setup.
    pub points: Vec<(Point, Setup)>,
    /// File of the flows.
    pub flows: Option<RowFile>,
    /// Notes on options that change nothing at any point.
    pub notes: Vec<String>,
    /// Folder of the results.
    pub out: PathBuf,
    /// Rows are written in blocks.
    in_blocks: bool,
    format: Format,
    estimate: Estimate,
    /// Rows of the tables.
    rows: f64,
}

/// Reads and checks every point of a sweep.
///
/// # Errors
/// If an option or the size of the sweep is refused.
pub fn prepare(words: &[String]) -> Result<Prepared> {
    let mut prepared = read(words, sweep::expand(words).or_refuse()?)?;
    prepared.estimate.memory += prepared.rows * ROW_BYTES;
    let is_allowed = prepared.points.iter().any(|(_, setup)| setup.run.large);
    prepared.estimate.check(is_allowed).or_refuse()?;
    Ok(prepared)
}

/// Memory of a row of the tables in bytes, with a share of all else that is kept of a point. Each
/// scheme has a row, and each of its seeds.
const ROW_BYTES: f64 = 8e3;

/// Reads these points of a sweep of any size.
fn read(words: &[String], points: impl IntoIterator<Item = Point>) -> Result<Prepared> {
    let mut prepared = Prepared::default();
    for (point, args) in parse_points(points)? {
        prepared.out = args.out;
        prepared.flows = args.flows;
        prepared.format = args.format;
        prepared.in_blocks = args.blocks;
        let setup = args.experiment.setup().or_refuse()?;
        prepared.points.push((point, setup));
    }
    prepared.format.check_available().or_refuse()?;
    let points = &prepared.points;
    // An option in use at one point may have no effect at another.
    let given_options = super::words::names(words);
    let mut idle_at = points.iter().map(|(_, setup)| idle(setup, &given_options, false));
    let first = idle_at.next().unwrap_or_default();
    let notes =
        idle_at.fold(first, |notes: Vec<_>, at| notes.into_iter().filter(|note| at.contains(note)).collect());
    let setups = || points.iter().map(|(_, setup)| setup);
    setups().try_for_each(|setup| setup.carrier().check_available()).or_refuse()?;
    let estimate = setups().fold(Estimate::default(), |all, setup| all.plus(race::estimate(setup)));
    let rows = |setup: &Setup| race::entries(setup).len() as f64 * f64::from(1 + setup.run.repeats);
    let rows = setups().map(rows).sum();
    Ok(Prepared { notes, estimate, rows, ..prepared })
}

/// Races every point: the tables of all points, and of all seeds. `begin` gets each point before it
/// is run, and `swept`, the data of the report, its race.
///
/// # Errors
/// If a run fails.
pub fn measure<'a>(
    points: impl Iterator<Item = &'a (Point, Setup)> + Clone,
    store: &JobStore,
    mut flows: Option<&mut Flows>,
    mut swept: Option<&mut Sweep>,
    begin: impl Fn(usize, &Point),
) -> Result<[rows::Table; 2]> {
    let work =
        points.clone().map(|(_, setup)| race::work(setup, &race::untraced(setup), store, flows.as_deref()));
    let progress = Progress::new("sweeping", work.fold(Work::default(), Work::plus));
    let mut tables = <[rows::Table; 2]>::default();
    for (number, (point, setup)) in points.enumerate() {
        begin(number, point);
        let result = race::race(setup, &race::untraced(setup), store, flows.as_deref_mut(), &progress)?;
        let around = ConditionColumns::new(setup, &point.varied);
        for (table, own) in tables.iter_mut().zip(result.tables()) {
            table.append(around.around(own));
        }
        if let Some(swept) = &mut swept {
            swept.add(point, setup, &result);
        }
    }
    Ok(tables)
}

/// Races every point and writes one table of all, or one of each block.
pub fn run(words: &[String]) -> Result<()> {
    if words.iter().any(|word| word == "--blocks") {
        return blocks::run(Blocks::new(words)?);
    }
    let prepared = prepare(words)?;
    for note in &prepared.notes {
        eprintln!("headstart: {note}");
    }
    let Prepared { points, flows, format, estimate, out, .. } = prepared;
    let store = JobStore::open(Folder::open(&out).or_refuse()?.of_command("sweep").or_refuse()?)?;
    let command = &command_line();
    let mut flows = Flows::open(flows.as_ref(), &points[0].1, &store).or_refuse()?;
    terminal::install_interrupt_notice(&store);
    eprintln!("headstart: {estimate}");

    let total = points.len();
    let begin = |number: usize, point: &Point| {
        let names: Vec<String> = point.varied.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let which = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
        eprintln!("headstart: point {} of {total}{which}", number + 1);
    };
    let mut swept = Sweep::default();
    let [all, seeds] = measure(points.iter(), &store, flows.as_mut(), Some(&mut swept), begin)?;

    let mut table = swept.table();
    let crossings = swept.crossings_in_words();
    for crossing in crossings.iter().take(MAX_CROSSINGS) {
        table.note(crossing);
    }
    if crossings.len() > MAX_CROSSINGS {
        table.note(&format!(
            "{} more crossings of two schemes: see the report",
            crossings.len() - MAX_CROSSINGS
        ));
    }
    match format {
        Format::Table => {
            terminal::answer(swept.answer().into_iter().map(|line| line + "."))?;
            print_table(&table)?;
        }
        other => {
            other.print(&all.header(), &all.rows, || format::document(command, &all.header(), &all.rows))?
        }
    }
    let folder = store.folder().clone();
    let file = folder.write_csv("sweep.csv", &all.header(), &all.rows);
    let place = file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
    let page = folder.write("report.html", swept.report(command).html().as_bytes());
    let report = page.as_ref().map(|page| page.display().to_string()).unwrap_or_default();
    terminal::written([
        file.map(drop),
        page.map(drop),
        folder.write_csv("seeds.csv", &seeds.header(), &seeds.rows).map(drop),
        folder
            .write_with("sweep.json", |file| format::write_document(file, command, &all.header(), &all.rows))
            .map(drop),
        terminal::closed(store).map(drop),
    ])?;
    let flows = flows.map(Flows::finish).transpose()?.flatten();
    if format != Format::Table {
        return Ok(());
    }
    let points = if total == 1 { "point" } else { "points" };
    print(&format!("\n{total} {points}. Table: {place}\nReport: {report}\n"))?;
    terminal::flows_written(flows)
}
