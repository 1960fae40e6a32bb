//! The commands as functions, for other languages: the same options and the same results, and
//! nothing is printed.

use std::any::TypeId;
use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::path::Path;

use anyhow::Result;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction};
use headstart_report::jobs::JobStore;
use headstart_report::rows::{Column, Kind, Table, TypedRows, Value};
use headstart_study::dependencies::idle;
use headstart_study::study::plain;
use headstart_units::{Bytes, Rate, Ratio, Span};

use super::sweep::blocks::race_block;
use super::{
    Line, assess as assessing, format, parser, paths as listing, race as racing, read,
    reproduce as reproducing, schemes as describing, sweep as sweeping, terminal, trace as tracing,
};
use headstart_compare::conditions::{self, conditions};
use headstart_compare::flows::Flows;
#[cfg(feature = "explore")]
use headstart_compare::sweep::Point;
use headstart_report::errors::{Refuse as _, one_line};
use headstart_report::output::Folder;
use headstart_show::flow::{COLUMNS, rows};
#[cfg(feature = "explore")]
use headstart_study::estimate::Estimate;
use headstart_study::options::{Buffer, Rtts, SchemeName, SchemeNames, SizeName};
#[cfg(feature = "explore")]
use headstart_study::setup::Setup;

pub use super::sweep::blocks::{Block, BlockFolder, Blocks, Keys};

/// Results of a command.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Tables of the results, by name; the first is the main one.
    pub tables: Vec<(String, Table)>,
    /// The command line with the same results.
    pub command: String,
    /// The conditions that all rows have in common, as a JSON object.
    pub conditions: String,
    /// The document of `--format json`, where there is one.
    pub json: Option<String>,
    /// Notes on options that change nothing.
    pub notes: Vec<String>,
    /// Every flow of a race that keeps them: a row each.
    pub flows: Option<TypedRows>,
}

/// The options of a command, and its line as it can be typed.
fn line(name: &str, options: &[impl AsRef<OsStr>]) -> Result<(Line, String)> {
    let words = [OsStr::new(name)].into_iter().chain(options.iter().map(AsRef::as_ref));
    let line = read([OsStr::new("headstart")].into_iter().chain(words.clone()).map(OsString::from))?;
    Ok((line, terminal::typed(words.map(|word| word.to_string_lossy().into_owned()))))
}

/// The text of an error, behind the option that it is about: `--rtt: found ...`.
#[must_use]
pub fn message(error: &anyhow::Error) -> String {
    let Some(usage) = error.downcast_ref::<clap::Error>() else { return one_line(error) };
    let text = plain(usage).to_string();
    match usage.get(ContextKind::InvalidArg) {
        // As the parser writes it, `--rate <RATE>`.
        Some(ContextValue::String(option)) => {
            let name = option.split(' ').next().unwrap_or_default();
            if text.contains(name) { text } else { format!("{name}: {text}") }
        }
        _ => text,
    }
}

/// `headstart race` with these options, each as `--name=value`. Finished runs are kept in `folder`
/// while it goes on. With `keeps_flows` the answer has every flow.
///
/// # Errors
/// If an option is refused, or a run fails.
pub fn race(options: &[impl AsRef<OsStr>], folder: &Path, keeps_flows: bool) -> Result<Answer> {
    let (line, command) = line("race", options)?;
    let args: racing::RaceArgs = line.arguments()?;
    let (mut setup, _, rest) = racing::prepare(args)?;
    let notes = idle(&setup, &line.names(), false);
    setup.notes.extend(notes.iter().cloned());
    let store = JobStore::open(Folder::open(folder).or_refuse()?)?;
    let mut flows = Flows::open(rest.flows.as_ref(), &setup, &store).or_refuse()?;
    if keeps_flows {
        let all = flows.replace(Flows::in_memory(&store)?);
        anyhow::ensure!(all.is_none(), "--flows: found a file, expected none where flows are kept in memory");
    }
    let (mut result, capacities) = racing::measure(&setup, rest.capacity, &mut flows, &store)?;
    result.most_harm = rest.most_harm.as_f64();
    let kept = match flows {
        Some(flows) if keeps_flows => flows.into_rows(),
        other => other.map(Flows::finish).transpose()?.and(None),
    };
    let [schemes, seeds] = result.tables();
    let mut tables = vec![("schemes".to_owned(), schemes), ("seeds".to_owned(), seeds)];
    if let Some(capacities) = &capacities {
        let columns = vec![
            Column::new("scheme", Kind::Text),
            Column::new("own_percent", Kind::Count),
            Column::new("absolute_percent", Kind::Count),
            Column::new("reference_percent", Kind::Count),
        ];
        let percent = |value: u32| value.to_string();
        let row = |one: &headstart_compare::capacity::Capacity| {
            let [own, absolute, reference] =
                [one.own_percent, one.absolute_percent, one.reference_percent].map(percent);
            vec![one.scheme.clone(), own, absolute, reference]
        };
        tables.push(("capacity".to_owned(), Table { columns, rows: capacities.iter().map(row).collect() }));
    }
    let json = racing::json(&command, &setup, &result, capacities.as_deref())?;
    let conditions = object(conditions(&setup))?;
    Ok(Answer { tables, command, conditions, json: Some(json), notes, flows: kept })
}

/// `headstart sweep` with these options, as [`race()`]. The tables of its blocks, in their order as
/// [`Block::rows`] writes them, are taken in place of runs, if there are any.
///
/// # Errors
/// If an option is refused, or a run fails.
pub fn sweep(options: &[String], folder: &Path, blocks: &[Vec<u8>]) -> Result<Answer> {
    let (Line { given_options, .. }, command) = line("sweep", options)?;
    let sweeping::Prepared { points, flows, notes, .. } = sweeping::prepare(&given_options)?;
    let [all, seeds] = if blocks.is_empty() {
        let store = JobStore::open(Folder::open(folder).or_refuse()?)?;
        let mut flows = Flows::open(flows.as_ref(), &points[0].1, &store).or_refuse()?;
        let found = sweeping::measure(points.iter(), &store, flows.as_mut(), None, |_, _| ())?;
        flows.map(Flows::finish).transpose()?;
        found
    } else {
        let mut tables = [Table::default(), Table::default()];
        for block in blocks {
            let found: [Table; 2] = serde_json::from_slice(block)?;
            tables.iter_mut().zip(found).for_each(|(all, own)| all.append(own));
        }
        tables
    };
    let json = format::document(&command, &all.header(), &all.rows)?;
    let (point, setup) = &points[0];
    let is_constant = |one: &conditions::Condition| {
        point.varied.iter().all(|(name, _)| one.option.replace('-', "_") != *name)
    };
    let constant = conditions(setup).into_iter().filter(is_constant).collect();
    let tables = vec![("points".to_owned(), all), ("seeds".to_owned(), seeds)];
    Ok(Answer { tables, command, conditions: object(constant)?, json: Some(json), notes, flows: None })
}

/// The blocks of `headstart sweep` with these options, and its line; nothing is run.
///
/// # Errors
/// If an option is refused.
pub fn blocks(options: &[String]) -> Result<(Blocks, String)> {
    let (Line { given_options, .. }, command) = line("sweep", options)?;
    Ok((Blocks::new(&given_options)?, command))
}

/// Races the points with these numbers of a sweep of [`Blocks::words`], by one thread unless they
/// say how many. Finished runs are kept in `folder` meanwhile.
///
/// # Errors
/// If an option is refused, or a run fails.
pub fn block(words: &[String], numbers: Range<u64>, folder: &Path) -> Result<Block> {
    race_block(words, numbers, Some(1), Folder::open(folder).or_refuse()?)
}

/// `headstart trace` with these options, the first of which is the scheme: a table of events each.
///
/// # Errors
/// If an option is refused, or a run fails.
pub fn trace(options: &[impl AsRef<OsStr>]) -> Result<Answer> {
    let (line, command) = line("trace", options)?;
    let args: tracing::TraceArgs = line.arguments()?;
    let prepared = tracing::prepare(args)?;
    let notes = idle(&prepared.setup, &line.names(), prepared.flow.is_none());
    let flows = tracing::measure(&prepared)?;
    let kind = |name: &str| match name {
        "event" | "phase" | "in_recovery" => Kind::Text,
        _ => Kind::Count,
    };
    let columns = || COLUMNS.map(|name| Column::new(name, kind(name))).into();
    let table = |(entry, view): &(&'static headstart_startup::catalogue::Entry, _)| {
        (entry.name.to_string(), Table { columns: columns(), rows: rows(view).collect() })
    };
    let tables = flows.iter().map(table).collect();
    let conditions = object(conditions(&prepared.setup))?;
    Ok(Answer { tables, command, conditions, notes, ..Answer::default() })
}

/// `headstart reproduce` with these options, of which the first is the paper: a table of its
/// claims, and one of each figure's data; without a paper a table of all papers.
///
/// # Errors
/// If an option is refused or a run fails; with `--check` if an outcome is not as on record.
pub fn reproduce(options: &[impl AsRef<OsStr>], folder: &Path) -> Result<Answer> {
    let (line, command) = line("reproduce", options)?;
    let args: reproducing::ReproduceArgs = line.arguments()?;
    let reproducing::Tables { tables, surprises } = reproducing::tables(&args, folder)?;
    let tables = tables.into_iter().map(|(name, columns, rows)| (name, Table { columns, rows })).collect();
    let conditions = serde_json::json!({ "paper": args.paper, "quick": args.quick }).to_string();
    Ok(Answer { tables, command, conditions, notes: surprises, ..Answer::default() })
}

/// `headstart assess` with these options, of which the first names the schemes: a table of
/// criteria.
///
/// # Errors
/// If an option is refused or a run fails.
pub fn assess(options: &[impl AsRef<OsStr>], folder: &Path) -> Result<Answer> {
    let (line, command) = line("assess", options)?;
    let args: assessing::AssessArgs = line.arguments()?;
    let (columns, rows) = assessing::rows(&args, folder)?;
    let tables = vec![("assessment".to_owned(), Table { columns, rows })];
    let conditions = serde_json::json!({ "quick": args.quick }).to_string();
    Ok(Answer { tables, command, conditions, ..Answer::default() })
}

/// A table of text.
fn listed(command: String, name: &str, (header, rows): (Vec<String>, Vec<Vec<String>>)) -> Answer {
    let columns = header.into_iter().map(|name| Column::new(name, Kind::Text)).collect();
    let tables = vec![(name.to_owned(), Table { columns, rows })];
    Answer { tables, command, conditions: "{}".to_owned(), ..Answer::default() }
}

/// `headstart list schemes`: the catalogue, or the parameters of the scheme that the word names.
///
/// # Errors
/// If there is no such scheme.
pub fn schemes(options: &[String]) -> Result<Answer> {
    let (line, command) = line("schemes", options)?;
    let args: describing::SchemesArgs = line.arguments()?;
    let name = if args.name.is_some() { "parameters" } else { "schemes" };
    Ok(listed(command, name, describing::table(&args).records()))
}

/// `headstart list paths`.
///
/// # Errors
/// If there is an option: it has none.
pub fn paths(options: &[String]) -> Result<Answer> {
    let (_, command) = line("paths", options)?;
    Ok(listed(command, "paths", listing::table().records()))
}

/// The options of the commands with these names, as they are declared: a row for each.
pub fn options(commands: &[String]) -> Answer {
    let columns = ["command", "option", "kind", "default", "values", "group", "about"];
    let parser = parser();
    let mut rows = vec![];
    for command in commands.iter().filter_map(|name| parser.find_subcommand(name)) {
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            let Some(long) = arg.get_long() else { continue };
            let joined = |texts: Vec<&str>| texts.join(", ");
            let default = arg.get_default_values().iter().filter_map(|text| text.to_str()).collect();
            let values = arg.get_possible_values();
            let values = values.iter().filter(|value| !value.is_hide_set()).map(|value| value.get_name());
            let is_switch = !arg.get_action().takes_values();
            let about = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
            let group = arg.get_help_heading().unwrap_or_default().split(", ").next().unwrap_or_default();
            rows.push(vec![
                command.get_name().to_owned(),
                long.to_owned(),
                kind(arg),
                if is_switch { "off".to_owned() } else { joined(default) },
                if is_switch { String::new() } else { joined(values.collect()) },
                group.to_owned(),
                about,
            ]);
        }
    }
    listed(String::new(), "options", (columns.map(str::to_owned).into(), rows))
}

/// The kind of an option's values, by the type that they are parsed to.
fn kind(arg: &Arg) -> String {
    fn of<T: 'static>() -> TypeId {
        TypeId::of::<T>()
    }
    let kinds = [
        ("rate", vec![of::<Rate>()]),
        ("time", vec![of::<Span>(), of::<Rtts>()]),
        ("size", vec![of::<Bytes>(), of::<SizeName>()]),
        ("size of a buffer", vec![of::<Buffer>()]),
        ("share", vec![of::<Ratio>()]),
        ("count", vec![of::<u8>(), of::<u32>(), of::<u64>(), of::<usize>()]),
        ("scheme", vec![of::<SchemeName>()]),
        ("list of scheme", vec![of::<SchemeNames>()]),
    ];
    let value = arg.get_value_parser().type_id();
    let is_file = |name: &clap::builder::Str| name.contains("FILE") || name.contains("FOLDER");
    let one = match kinds.iter().find(|(_, types)| types.iter().any(|it| value == *it)) {
        _ if !arg.get_action().takes_values() => "switch",
        Some((kind, _)) => kind,
        None if arg.get_value_names().unwrap_or_default().iter().any(is_file) => "file",
        None => "text",
    };
    if matches!(arg.get_action(), ArgAction::Append) { format!("list of {one}") } else { one.to_owned() }
}

fn object(conditions: Vec<conditions::Condition>) -> Result<String> {
    let named =
        |one: conditions::Condition| Ok((one.name.to_owned(), serde_json::to_value::<Value>(one.value)?));
    let object = conditions.into_iter().map(named).collect::<Result<serde_json::Map<_, _>>>()?;
    Ok(serde_json::Value::Object(object).to_string())
}

/// Setup of `headstart race` with these options, its cost and its command line; nothing is run.
///
/// # Errors
/// If an option is refused.
#[cfg(feature = "explore")]
pub fn race_setup(options: &[String]) -> Result<(Setup, Estimate, String)> {
    let (line, command) = line("race", options)?;
    let args: racing::RaceArgs = line.arguments()?;
    let (mut setup, estimate, _) = racing::prepare(args)?;
    let notes = idle(&setup, &line.names(), false);
    setup.notes.extend(notes);
    Ok((setup, estimate, command))
}

/// The points of `headstart sweep` with these options with their setups, and its command line;
/// nothing is run.
///
/// # Errors
/// If an option is refused.
#[cfg(feature = "explore")]
pub fn sweep_setups(options: &[String]) -> Result<(Vec<(Point, Setup)>, String)> {
    let (Line { given_options, .. }, command) = line("sweep", options)?;
    Ok((sweeping::prepare(&given_options)?.points, command))
}

/// The setup of `headstart trace` with these options, of which the first is the scheme, its
/// schemes, and its command line; nothing is run.
///
/// # Errors
/// If an option is refused.
#[cfg(feature = "explore")]
pub fn trace_setup(options: &[String]) -> Result<(tracing::Prepared, String)> {
    let (line, command) = line("trace", options)?;
    let args: tracing::TraceArgs = line.arguments()?;
    Ok((tracing::prepare(args)?, command))
}
