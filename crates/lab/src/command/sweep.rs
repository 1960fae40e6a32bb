//! `headstart sweep`: a race at every combination of lists.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, FromArgMatches as _};
use headstart_report::jobs::JobStore;
use headstart_report::rows::RowFile;
use headstart_study::dependencies::idle;

use super::format::{self, Format};
use super::plan::{self, PlanOptions};
use super::terminal::{self, command_line, print, print_table};
use crate::conditions::Around;
use crate::errors::Refuse as _;
use crate::estimate::Estimate;
use crate::flows::Flows;
use crate::options::{PathOptions, RunOptions, TransportOptions, WorkloadOptions};
use crate::output::Folder;
use crate::progress::{Progress, Work};
use crate::race;
use crate::setup::Setup;
use crate::show::sweep::{MOST_CROSSINGS, Sweep};
use crate::sweep::{self, Point};

/// Options of `sweep`, which are those of its points.
#[derive(Args, Debug)]
pub struct SweepArgs {
    #[command(flatten)]
    pub plan: PlanOptions,
    #[command(flatten)]
    pub path: PathOptions,
    #[command(flatten)]
    pub workload: WorkloadOptions,
    #[command(flatten)]
    pub run: RunOptions,
    #[command(flatten)]
    pub transport: TransportOptions,
    /// Write every flow as a row, as .csv or .parquet: docs/data.md has the columns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub flows: Option<RowFile>,
    /// Folder for report.html, sweep.csv, sweep.json and seeds.csv
    #[arg(long, default_value = "headstart-sweep", value_name = "FOLDER", help_heading = "Output")]
    pub out: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", help_heading = "Output")]
    pub format: Format,
}

/// The points of a sweep with these options, each parsed, so that a mistake is found before
/// anything runs.
///
/// # Errors
/// If there are too many.
pub fn parse_points(words: &[String]) -> Result<Vec<(Point, SweepArgs)>> {
    let command = SweepArgs::augment_args(clap::Command::new("headstart sweep").max_term_width(100));
    let parse = |point: Point| {
        // Each point may be on a path of its own.
        let preset = plan::of_preset(&point.arguments);
        let words = preset.iter().chain(&point.arguments).map(String::as_str);
        let matches = command.clone().try_get_matches_from(std::iter::once("headstart sweep").chain(words));
        let args = matches.and_then(|matches| SweepArgs::from_arg_matches(&matches));
        (point, args.unwrap_or_else(|error| error.exit()))
    };
    Ok(sweep::expand(words)?.into_iter().map(parse).collect())
}

/// Races every point and writes one table of all.
pub fn run(words: &[String]) -> Result<()> {
    let mut points = vec![];
    let mut out = PathBuf::new();
    let mut flows = None;
    let mut format = Format::default();
    for (point, args) in parse_points(words).or_refuse()? {
        out = args.out;
        flows = args.flows;
        format = args.format;
        let setup =
            Setup::new(crate::CARRIERS, args.path, args.transport, args.workload, args.run).or_refuse()?;
        points.push((point, setup));
    }
    format.ready().or_refuse()?;
    // An option in use at one point may have no effect at another.
    let asked = super::words::names(words);
    let mut idle_at = points.iter().map(|(_, setup)| idle(setup, &asked, false));
    let first = idle_at.next().unwrap_or_default();
    let everywhere =
        idle_at.fold(first, |notes, at| notes.into_iter().filter(|note| at.contains(note)).collect());
    for note in everywhere {
        eprintln!("headstart: {note}");
    }
    let setups = || points.iter().map(|(_, setup)| setup);
    setups().try_for_each(|setup| setup.carrier().ready()).or_refuse()?;
    let estimate = setups().map(race::estimate).fold(Estimate::default(), Estimate::and);
    estimate.check(setups().any(|setup| setup.run.large)).or_refuse()?;
    let store = JobStore::open(Folder::open(&out).or_refuse()?)?;
    let mut flows = Flows::open(flows.as_ref(), &points[0].1, &store).or_refuse()?;
    terminal::install_interrupt_notice(&store);
    eprintln!("headstart: {estimate}");

    let mut headers = [vec![], vec![]];
    let (mut rows, mut seed_rows, mut swept) = (vec![], vec![], Sweep::default());
    let total = points.len();
    let work =
        setups().map(|setup| race::work(setup, &store, flows.as_ref())).fold(Work::default(), Work::and);
    let progress = Progress::new("sweeping", work);
    for (number, (point, setup)) in points.iter().enumerate() {
        let names: Vec<String> = point.varied.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let which = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
        eprintln!("headstart: point {} of {total}{which}", number + 1);
        let result = race::race(setup, &store, flows.as_mut(), &progress)?;
        let around = Around::new(setup, &point.varied);
        let (seed_columns, seeds) = result.seeds();
        headers = [around.header(&result.columns()), around.header(&seed_columns)]
            .map(|header| header.into_iter().map(str::to_owned).collect());
        rows.extend(result.rows().into_iter().map(|row| around.row(row)));
        seed_rows.extend(seeds.into_iter().map(|row| around.row(row)));
        swept.add(point, setup, &result);
    }
    let [header, seed_header] = headers
        .each_ref()
        .map(|names: &Vec<String>| -> Vec<&str> { names.iter().map(String::as_str).collect() });

    let mut table = swept.table();
    let crossings = swept.crossings_in_words();
    for crossing in crossings.iter().take(MOST_CROSSINGS) {
        table.note(crossing);
    }
    if crossings.len() > MOST_CROSSINGS {
        table.note(&format!(
            "{} more crossings of two schemes: see the report",
            crossings.len() - MOST_CROSSINGS
        ));
    }
    let document = format::document(&header, &rows)?;
    match format {
        Format::Table => print_table(&table)?,
        other => other.print(&header, &rows, || Ok(document.clone()))?,
    }
    let folder = store.folder().clone();
    let file = folder.write_csv("sweep.csv", &header, &rows);
    let place = file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
    let page = folder.write("report.html", swept.report(&command_line()).html().as_bytes());
    let report = page.as_ref().map(|page| page.display().to_string()).unwrap_or_default();
    terminal::written([
        file.map(drop),
        page.map(drop),
        folder.write_csv("seeds.csv", &seed_header, &seed_rows).map(drop),
        folder.write("sweep.json", document.as_bytes()).map(drop),
        terminal::closed(store).map(drop),
    ])?;
    let flows = flows.map(Flows::finish).transpose()?;
    if format != Format::Table {
        return Ok(());
    }
    print(&format!("\n{total} points. Table: {place}\nReport: {report}\n"))?;
    terminal::flows_written(flows)
}
