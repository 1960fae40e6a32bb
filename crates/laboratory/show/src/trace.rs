//! The report of a trace: one flow in detail, with flows of other schemes.

use headstart_startup::catalogue::Entry;

use super::flow::{self, FlowFigures};
use super::race::{headline, headline_of_one};
use headstart_report::page::{Provenance, Report, Section};
use headstart_report::table::{Cell, Column, Table};
use headstart_study::flow_trace::FlowTrace;
use headstart_study::setup::Setup;

/// When each phase of a flow began, and with which window and pace.
#[must_use]
pub fn phases(entry: &Entry, view: &FlowTrace) -> Table {
    let mut table = Table::new(
        &format!("{}: {}", entry.name, entry.summary),
        [
            Column::number("at", "ms"),
            Column::text("phase"),
            Column::number("window", "kB"),
            Column::number("pace", "Mbit/s"),
        ],
    );
    for (at, phase, window, pace) in flow::phases(view) {
        table.row([
            Cell::number(at, 1),
            Cell::text(phase),
            Cell::number(window as f64 / 1000.0, 1),
            pace.map_or(Cell::Missing, |bits| Cell::number(bits as f64 / 1e6, 2)),
        ]);
    }
    table
}

/// The flow of each scheme; the first is the requested one.
#[must_use]
pub fn report(
    setup: &Setup,
    flows: &[(&'static Entry, FlowTrace)],
    number: Option<u64>,
    command: &str,
) -> Report {
    let figures = FlowFigures::of(flows.iter().map(|(entry, view)| (&*entry.name, view)));
    let mut sections = vec![];
    if let [first, second, ..] = &figures[..] {
        sections.push(Section::Heading("Two flows on one time axis".into()));
        sections.push(flow::overlay(second, first));
    }
    sections.push(Section::Heading("Numbers".into()));
    sections.push(Section::Table(numbers(flows)));
    for ((entry, view), figures) in flows.iter().zip(&figures) {
        sections.push(Section::Heading(entry.name.to_string()));
        sections.extend(figures.sections());
        sections.push(Section::Table(phases(entry, view)));
    }
    let names: Vec<&str> = flows.iter().map(|(entry, _)| &*entry.name).collect();
    let which = number.map_or_else(
        || "Each is alone on the path.".to_owned(),
        |number| format!("Each is flow number {number} of its run, counted from zero: the same arrival."),
    );
    let path = if number.is_some() { headline(setup) } else { headline_of_one(setup) };
    Report {
        title: format!("One flow of {}", names.join(", ")),
        answer: vec![],
        lead: format!("On {path}. {which}"),
        sections,
        provenance: Provenance {
            facts: vec![
                ("headstart".into(), headstart_compare::VERSION.into()),
                ("seed".into(), setup.run.seed.to_string()),
            ],
            plan: command.to_owned(),
        },
    }
}

fn numbers(flows: &[(&'static Entry, FlowTrace)]) -> Table {
    let count = |title: &str| Column::number(title, "packets");
    let mut table = Table::new(
        "",
        [
            Column::text("scheme"),
            Column::number("complete after", "ms"),
            count("sent"),
            count("lost"),
            count("retransmitted"),
            count("copies"),
            Column::number("timeouts", ""),
        ],
    );
    for (entry, view) in flows {
        let mut cells = vec![Cell::text(&entry.name)];
        if let Some(report) = &view.report {
            let counts = &report.counts;
            let completed = report.completion_time();
            cells.push(completed.map_or(Cell::Missing, |time| Cell::number(time.as_millis_f64(), 1)));
            let all =
                [counts.packets_sent, counts.lost, counts.retransmissions, counts.copies, counts.timeouts];
            cells.extend(all.map(Cell::count));
        }
        table.row(cells);
    }
    table
}
