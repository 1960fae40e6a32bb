//! `headstart sweep`: a race at every combination of lists.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, FromArgMatches as _};
use headstart_report::jobs::JobStore;

use super::terminal::{self, print, print_table};
use crate::errors::Refuse as _;
use crate::options::{PathOptions, RunOptions, TransportOptions, WorkloadOptions};
use crate::output::Folder;
use crate::race::race;
use crate::setup::Setup;
use crate::sweep::{self, Point};
use crate::table::{Cell, Column, Table};

/// Options of `sweep`, which are those of its points.
#[derive(Args, Debug)]
pub struct SweepArgs {
    #[command(flatten)]
    pub path: PathOptions,
    #[command(flatten)]
    pub workload: WorkloadOptions,
    #[command(flatten)]
    pub run: RunOptions,
    #[command(flatten)]
    pub transport: TransportOptions,
    /// Folder for sweep.csv
    #[arg(long, default_value = "headstart-sweep", value_name = "FOLDER", help_heading = "Output")]
    pub out: PathBuf,
}

/// The points of a sweep with these options, each parsed, so that a mistake is found before anything runs.
///
/// # Errors
/// If there are too many.
pub fn parse_points(words: &[String]) -> Result<Vec<(Point, SweepArgs)>> {
    let command = SweepArgs::augment_args(clap::Command::new("headstart sweep").max_term_width(100));
    let parse = |point: Point| {
        let line = std::iter::once("headstart sweep").chain(point.arguments.iter().map(String::as_str));
        let matches = command.clone().try_get_matches_from(line);
        let args = matches.and_then(|matches| SweepArgs::from_arg_matches(&matches));
        (point, args.unwrap_or_else(|error| error.exit()))
    };
    Ok(sweep::expand(words)?.into_iter().map(parse).collect())
}

/// Races every point and writes one table of all.
pub fn run(words: &[String]) -> Result<()> {
    let mut points = vec![];
    let mut out = PathBuf::new();
    for (point, args) in parse_points(words).or_refuse()? {
        out = args.out;
        let setup =
            Setup::new(crate::CARRIERS, args.path, args.transport, args.workload, args.run).or_refuse()?;
        points.push((point, setup));
    }
    let store = JobStore::open(Folder::open(&out).or_refuse()?)?;
    terminal::announce(&store);

    let mut columns = vec![];
    let mut rows = vec![];
    let total = points.len();
    for (number, (point, setup)) in points.iter().enumerate() {
        let names: Vec<String> = point.varied.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let which = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
        eprintln!("headstart: point {} of {total}{which}", number + 1);
        let result = race(setup, &store)?;
        columns = result.columns();
        rows.extend(result.rows().into_iter().map(|fields| {
            point.varied.iter().map(|(_, value)| value.clone()).chain(fields).collect::<Vec<String>>()
        }));
    }
    let folder = terminal::closed(store)?;
    let varied: Vec<&str> = points
        .first()
        .map(|(point, _)| point.varied.iter().map(|(name, _)| name.as_str()).collect())
        .unwrap_or_default();
    let header: Vec<&str> = varied.iter().copied().chain(columns).collect();
    let file = folder.write_csv("sweep.csv", &header, &rows)?;

    let mut shown: Vec<Column> = varied.iter().map(|name| Column::text(name)).collect();
    shown.extend([
        Column::text("scheme"),
        Column::number("mean", "ms").priority(9),
        Column::number("p99", "ms").priority(3),
        Column::number("loss", "%").priority(2),
        Column::number("harm", "").priority(8),
    ]);
    let mut table = Table::new("", shown);
    let place = |name: &str| header.iter().position(|other| *other == name);
    for row in &rows {
        let number = |name: &str, decimals| {
            let value = place(name).and_then(|at| row[at].parse().ok());
            value.map_or(Cell::Missing, |value| Cell::number(value, decimals))
        };
        let mut cells: Vec<Cell> = row[..varied.len()].iter().map(|text| Cell::text(text)).collect();
        cells.extend([
            Cell::text(&row[varied.len()]),
            number("mean_ms", 0),
            number("p99_ms", 0),
            number("loss_percent", 2),
            number("harm", 3),
        ]);
        table.row(cells);
    }
    print_table(&table)?;
    print(&format!("\n{total} points. Table: {}\n", file.display()))
}
