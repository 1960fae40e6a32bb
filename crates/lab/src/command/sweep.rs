//! `headstart sweep`: a race at every combination of lists.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::Parser;
use headstart_report::jobs::JobStore;

use super::examples;
use super::race::RaceArgs;
use super::terminal::{self, print, print_table};
use crate::errors::Refuse as _;
use crate::output::Folder;
use crate::race::race;
use crate::setup::Setup;
use crate::sweep;
use crate::table::{Cell, Column, Table};

/// Races every point and writes one table of all.
pub fn run(arguments: &[String]) -> Result<()> {
    // The sweep's own parser is the race's: each point is parsed, so that a mistake is found before anything runs.
    #[derive(Parser, Debug)]
    #[command(
        name = "headstart sweep",
        max_term_width = 100,
        about = "As `race`, where any option takes a list",
        after_long_help = examples::SWEEP
    )]
    struct PointArgs {
        #[command(flatten)]
        args: RaceArgs,
    }
    let parse = |arguments: &[String]| {
        let line = std::iter::once("headstart sweep".to_owned()).chain(arguments.iter().cloned());
        PointArgs::try_parse_from(line).unwrap_or_else(|error| error.exit()).args
    };
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        parse(&["--help".to_owned()]);
    }
    let points = sweep::expand(arguments).or_refuse()?;
    let mut setups = vec![];
    let mut out = PathBuf::from("headstart-sweep");
    for point in &points {
        let args = parse(&point.arguments);
        if args.capacity || args.json {
            return Err(anyhow!("--capacity and --json are the race's: a sweep writes sweep.csv"))
                .or_refuse();
        }
        if args.out != Path::new("headstart-race") {
            out = args.out;
        }
        setups.push(
            Setup::new(crate::CARRIERS, args.path, args.transport, args.workload, args.run).or_refuse()?,
        );
    }
    let store = JobStore::open(Folder::open(&out).or_refuse()?)?;
    terminal::announce(&store);

    let mut columns = vec![];
    let mut rows = vec![];
    let total = points.len();
    for (number, (point, setup)) in points.iter().zip(&setups).enumerate() {
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
        .map(|point| point.varied.iter().map(|(name, _)| name.as_str()).collect())
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
