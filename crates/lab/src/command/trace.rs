//! `headstart trace`: one flow in detail.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap::Args;
use headstart_startup::catalogue;

use super::terminal::{print, print_table};
use crate::carrier::Detail;
use crate::errors::Refuse as _;
use crate::options::{PathOptions, RunOptions, SchemeName, TransportOptions, WorkloadOptions};
use crate::output::Folder;
use crate::runner::{self, Job};
use crate::setup::{Cast, Setup};
use crate::show;
use crate::table::{Cell, Column, Table};

/// Options of `trace`.
#[derive(Args, Debug)]
pub struct TraceArgs {
    /// The scheme
    pub scheme: SchemeName,
    /// Which flow of the run, counted from zero [default: one flow alone on the path]
    #[arg(long, value_name = "NUMBER")]
    pub flow: Option<u64>,
    #[command(flatten)]
    pub path: PathOptions,
    #[command(flatten)]
    pub workload: WorkloadOptions,
    #[command(flatten)]
    pub run: RunOptions,
    #[command(flatten)]
    pub transport: TransportOptions,
    /// Folder for events.csv, time-sequence.svg and queue.svg
    #[arg(long, default_value = "headstart-trace", value_name = "FOLDER", help_heading = "Output")]
    pub out: PathBuf,
}

/// Runs the flow, prints its phases and writes its events and figures.
pub fn run(args: TraceArgs) -> Result<()> {
    let setup =
        Setup::new(crate::CARRIERS, args.path, args.transport, args.workload, args.run).or_refuse()?;
    if setup.carrier().detail() < Detail::Events {
        return Err(anyhow!(
            "--in: found emulator, expected simulator: a trace looks into a sender (of real packets, `headstart link --log` tells)"
        ))
        .or_refuse();
    }
    let entry = args.scheme.0;
    setup.carrier().carries(entry, &setup.transport).or_refuse()?;
    let view = match args.flow {
        None => runner::run_alone(&setup, entry)?,
        Some(number) => {
            let cast = Cast { tested: entry, beside: None };
            let job = Job { cast, load: setup.workload.load, seed: setup.run.seed, look_at: Some(number) };
            runner::run(&setup, &job)?.view.unwrap_or_default()
        }
    };
    let Some(report) = view.report else {
        let number = args.flow.unwrap_or_default();
        return Err(anyhow!("--flow: found {number}, expected a flow of the run, which has not so many"))
            .or_refuse();
    };
    let folder = Folder::open(&args.out).or_refuse()?;
    folder.write_csv("events.csv", &show::flow::COLUMNS, show::flow::rows(&view))?;
    folder.write("time-sequence.svg", show::flow::time_sequence(&view, &entry.name).as_str().as_bytes())?;
    folder.write("queue.svg", show::flow::queue(&view, &entry.name).as_str().as_bytes())?;

    let mut table = Table::new(
        &format!("{}: {}", entry.name, entry.summary),
        [
            Column::number("at", "ms"),
            Column::text("phase"),
            Column::number("window", "kB"),
            Column::number("pace", "Mbit/s"),
        ],
    );
    for (at, phase, window, pace) in show::flow::phases(&view) {
        table.row([
            Cell::number(at, 1),
            Cell::text(phase),
            Cell::number(window as f64 / 1000.0, 1),
            pace.map_or(Cell::Missing, |bits| Cell::number(bits as f64 / 1e6, 2)),
        ]);
    }
    if args.flow.is_none() && entry.needs == catalogue::Needs::History {
        table.note("Alone on the path it is the first to its peer, of which no history tells: with --flow it is one of a run.");
    }
    print_table(&table)?;
    let counts = &report.counts;
    let completed = report.completion_time().map_or("never".to_owned(), |time| time.to_string());
    print(&format!(
        "\nComplete after {completed}; {} packets, {} lost, {} retransmitted, {} copies, {} timeouts.\n\
         Events and figures: {}\n",
        counts.packets_sent,
        counts.lost,
        counts.retransmissions,
        counts.copies,
        counts.timeouts,
        folder.path().display()
    ))
}
