//! The commands as functions, for other languages: the same options and the same results, and
//! nothing is printed.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;
#[cfg(feature = "explore")]
use anyhow::bail;
use clap::FromArgMatches as _;
use headstart_report::jobs::JobStore;
use headstart_report::rows::{Column, Kind};
use headstart_study::dependencies::idle;
use headstart_study::study::plain;

use super::{
    Cli, Command, Line, format, race as racing, read, sweep as sweeping, terminal, trace as tracing, words,
};
use crate::conditions::{self, conditions};
use crate::errors::{Refuse as _, one_line};
#[cfg(feature = "explore")]
use crate::estimate::Estimate;
use crate::flows::Flows;
use crate::output::Folder;
use crate::race::Value;
#[cfg(feature = "explore")]
use crate::setup::Setup;
use crate::show::flow::{COLUMNS, rows};

/// A table as text; an empty field was not measured.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
}

/// Results of a command.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Its tables, by name; the first is the main one.
    pub tables: Vec<(&'static str, Table)>,
    /// The command line with the same results.
    pub command: String,
    /// The conditions that all rows have in common, as a JSON object.
    pub conditions: String,
    /// The document of `--format json`, where there is one.
    pub json: Option<String>,
    /// Notes on options that change nothing.
    pub notes: Vec<String>,
}

/// The options of a command, and its line as it can be typed.
fn line(name: &str, options: &[String]) -> Result<(Line, String)> {
    let words = [name].into_iter().chain(options.iter().map(String::as_str));
    let line = read(["headstart"].into_iter().chain(words.clone()).map(OsString::from))?;
    Ok((line, terminal::typed(words.map(str::to_owned))))
}

/// The text of an error, as the command prints it.
#[must_use]
pub fn message(error: &anyhow::Error) -> String {
    error.downcast_ref().map_or_else(|| one_line(error), |usage| plain(usage).to_string())
}

/// `headstart race` with these options, each as `--name=value`. Finished runs are kept in `folder`
/// while it goes on.
///
/// # Errors
/// If an option is refused, or a run fails.
pub fn race(options: &[String], folder: &Path) -> Result<Answer> {
    let (Line { matches, asked }, command) = line("race", options)?;
    let Command::Race(args) = Cli::from_arg_matches(&matches)?.command else { return Ok(Answer::default()) };
    let (mut setup, _, rest) = racing::prepare(args)?;
    let notes = idle(&setup, &words::names(&asked), false);
    setup.notes.extend(notes.iter().cloned());
    let store = JobStore::open(Folder::open(folder).or_refuse()?)?;
    let mut flows = Flows::open(rest.flows.as_ref(), &setup, &store).or_refuse()?;
    let (result, capacities) = racing::measure(&setup, rest.capacity, &mut flows, &store)?;
    flows.map(Flows::finish).transpose()?;
    let named = |kinds: Vec<(&'static str, Kind)>| {
        kinds.into_iter().map(|(name, kind)| Column::new(name, kind)).collect()
    };
    let mut tables = vec![
        ("schemes", Table { columns: named(result.kinds()), rows: result.rows() }),
        ("seeds", Table { columns: named(result.seed_kinds()), rows: result.seeds().1 }),
    ];
    if let Some(capacities) = &capacities {
        let columns = vec![
            Column::new("scheme", Kind::Text),
            Column::new("own_percent", Kind::Count),
            Column::new("absolute_percent", Kind::Count),
            Column::new("reference_percent", Kind::Count),
        ];
        let percent = |value: u32| value.to_string();
        let row = |one: &crate::capacity::Capacity| {
            let [own, absolute, reference] =
                [one.own_percent, one.absolute_percent, one.reference_percent].map(percent);
            vec![one.scheme.clone(), own, absolute, reference]
        };
        tables.push(("capacity", Table { columns, rows: capacities.iter().map(row).collect() }));
    }
    let json = racing::json(&command, &setup, &result, capacities.as_deref())?;
    Ok(Answer { tables, command, conditions: object(conditions(&setup))?, json: Some(json), notes })
}

/// `headstart sweep` with these options, as [`race`].
///
/// # Errors
/// If an option is refused, or a run fails.
pub fn sweep(options: &[String], folder: &Path) -> Result<Answer> {
    let (Line { asked, .. }, command) = line("sweep", options)?;
    let sweeping::Prepared { points, flows, notes, .. } = sweeping::prepare(&asked)?;
    let store = JobStore::open(Folder::open(folder).or_refuse()?)?;
    let mut flows = Flows::open(flows.as_ref(), &points[0].1, &store).or_refuse()?;
    let sweeping::Tables { columns: [columns, seed_columns], rows: [rows, seed_rows], .. } =
        sweeping::measure(points.iter(), &store, flows.as_mut(), |_, _| ())?;
    flows.map(Flows::finish).transpose()?;
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let json = format::document(&command, &names, &rows)?;
    let (point, setup) = &points[0];
    let is_constant = |one: &conditions::Condition| {
        point.varied.iter().all(|(name, _)| one.option.replace('-', "_") != *name)
    };
    let constant = conditions(setup).into_iter().filter(is_constant).collect();
    let tables = vec![
        ("points", Table { columns, rows }),
        ("seeds", Table { columns: seed_columns, rows: seed_rows }),
    ];
    Ok(Answer { tables, command, conditions: object(constant)?, json: Some(json), notes })
}

/// `headstart trace` with these options, of which the first is the scheme: a table of events for
/// each scheme.
///
/// # Errors
/// If an option is refused, or a run fails.
pub fn trace(options: &[String]) -> Result<Answer> {
    let (Line { matches, asked }, command) = line("trace", options)?;
    let Command::Trace(args) = Cli::from_arg_matches(&matches)?.command else { return Ok(Answer::default()) };
    let prepared = tracing::prepare(args)?;
    let notes = idle(&prepared.setup, &words::names(&asked), prepared.flow.is_none());
    let flows = tracing::measure(&prepared)?;
    let kind = |name: &str| match name {
        "event" | "phase" | "in_recovery" => Kind::Text,
        _ => Kind::Count,
    };
    let columns = || COLUMNS.map(|name| Column::new(name, kind(name))).into();
    let table = |(entry, view): &(&'static headstart_startup::catalogue::Entry, _)| {
        (entry.name.as_str(), Table { columns: columns(), rows: rows(view).collect() })
    };
    let tables = flows.iter().map(table).collect();
    Ok(Answer { tables, command, conditions: object(conditions(&prepared.setup))?, json: None, notes })
}

fn object(conditions: Vec<conditions::Condition>) -> Result<String> {
    let named =
        |one: conditions::Condition| Ok((one.name.to_owned(), serde_json::to_value::<Value>(one.value)?));
    let object = conditions.into_iter().map(named).collect::<Result<serde_json::Map<_, _>>>()?;
    Ok(serde_json::Value::Object(object).to_string())
}

/// The setup of `headstart race` with these options, its cost, and its command line; nothing is
/// run.
///
/// # Errors
/// If an option is refused.
#[cfg(feature = "explore")]
pub fn race_setup(options: &[String]) -> Result<(Setup, Estimate, String)> {
    let (Line { matches, asked }, command) = line("race", options)?;
    let Command::Race(args) = Cli::from_arg_matches(&matches)?.command else {
        bail!("race: no such command")
    };
    let (mut setup, estimate, _) = racing::prepare(args)?;
    let notes = idle(&setup, &words::names(&asked), false);
    setup.notes.extend(notes);
    Ok((setup, estimate, command))
}

/// The setup of `headstart trace` with these options, of which the first is the scheme, its
/// schemes, and its command line; nothing is run.
///
/// # Errors
/// If an option is refused.
#[cfg(feature = "explore")]
pub fn trace_setup(options: &[String]) -> Result<(tracing::Prepared, String)> {
    let (Line { matches, .. }, command) = line("trace", options)?;
    let Command::Trace(args) = Cli::from_arg_matches(&matches)?.command else {
        bail!("trace: no such command")
    };
    Ok((tracing::prepare(args)?, command))
}
