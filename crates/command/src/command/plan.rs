//! `--plan` and `--path`: options from a file and from a named path, in the order of trust.
//!
//! Typed options override the plan, the plan overrides the path's preset, and that overrides the
//! defaults. A plan is a TOML file of options under their own names: `rate = "50 Mbit/s"`, `ecn =
//! true`, `repeats = 4`, `schemes = ["iw10", "halfback"]`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, ValueEnum};
use toml::Value;

use super::words::{self, format_value};
use headstart_compare::sweep::WITH_COMMAS;
use headstart_report::errors::Refuse as _;
use headstart_study::options::{
    PathOptions, PathPreset, QueueDiscipline, RunOptions, TransportOptions, WorkloadOptions, usual_buffer,
};
use headstart_study::setup::Setup;

const MAX_BYTES: u64 = 1 << 20;

/// Sources of options that were not typed.
#[derive(Args, Clone, Debug)]
pub struct PlanOptions {
    /// A path by name; options override its numbers (`headstart list paths`: sources, buffers)
    #[arg(long = "path", value_name = "NAME", help_heading = "Path")]
    pub preset: Option<PathPreset>,
    /// Options from a TOML file, by the same names, as `rate = "50 Mbit/s"`; those that are typed
    /// override them
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    pub plan: Option<PathBuf>,
    /// Write the options of this run as a plan
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    pub save_plan: Option<PathBuf>,
}

/// The options of a run, which `race`, `sweep` and `trace` share.
#[derive(Args, Debug)]
pub struct ExperimentOptions {
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
}

impl ExperimentOptions {
    /// The setup of these options.
    ///
    /// # Errors
    /// If they are refused.
    pub fn setup(self) -> Result<Setup> {
        Setup::new(headstart_carriers::ALL, self.path, self.transport, self.workload, self.run)
    }
}

/// Options about plans, or for one call only.
const NOT_IN_PLANS: [&str; 4] = ["plan", "save-plan", "out", "help"];

/// The words of the plan among the typed ones, without the options that are typed too.
///
/// # Errors
/// With file, key, found and expected.
pub fn planned(command: &Command, typed: &[String]) -> Result<Vec<String>> {
    let Some(file) = last(typed, "plan") else { return Ok(vec![]) };
    let names = words::names(typed);
    let mut planned = read(command, Path::new(file))?;
    planned.retain(|word| is_new(&names, word));
    Ok(planned)
}

/// The words of the preset among `words`, and the usual buffer of an active queue, without the
/// options that they set themselves.
#[must_use]
pub fn of_preset(words: &[String]) -> Vec<String> {
    let names = words::names(words);
    // One that does not exist is refused where all options are read.
    let preset = last(words, "path").and_then(|name| PathPreset::from_str(name, true).ok());
    let mut options: Vec<(&str, &str)> = preset.into_iter().flat_map(PathPreset::options).collect();
    let queue: Option<QueueDiscipline> = last(words, "queue").and_then(|name| name.parse().ok());
    if let Some(packets) = queue.and_then(usual_buffer) {
        options.retain(|(option, _)| *option != "buffer");
        options.push(("buffer", packets));
    }
    let new = options.into_iter().map(|(option, value)| format!("--{option}={value}"));
    new.filter(|word| is_new(&names, word)).collect()
}

fn last<'a>(words: &'a [String], name: &str) -> Option<&'a str> {
    words.iter().rev().find_map(|word| word.strip_prefix("--")?.strip_prefix(name)?.strip_prefix('='))
}

fn is_new(names: &[String], word: &String) -> bool {
    words::names(std::slice::from_ref(word)).iter().all(|name| !names.contains(name))
}

/// True if a command has `--path` by name, and perhaps `--plan`.
#[must_use]
pub fn takes_presets(command: &Command) -> bool {
    has(command, "path")
}

/// True if a command has the option of that long name.
#[must_use]
pub fn has(command: &Command, option: &str) -> bool {
    command.get_arguments().any(|arg| arg.get_long() == Some(option))
}

/// Writes the plan of a command line, if requested.
///
/// # Errors
/// If the file cannot be written.
pub fn save(command: &Command, given_options: &[String], matches: &ArgMatches) -> Result<()> {
    let Some(file) = last(given_options, "save-plan") else { return Ok(()) };
    std::fs::write(file, text(command, given_options, matches))
        .with_context(|| format!("--save-plan: cannot write {file}"))
        .or_refuse()
}

/// The words of a plan.
fn read(command: &Command, file: &Path) -> Result<Vec<String>> {
    let name = file.display();
    let size = std::fs::metadata(file).with_context(|| format!("--plan: cannot read {name}"))?.len();
    if size > MAX_BYTES {
        bail!("--plan: {name}: found {size} bytes, expected at most {MAX_BYTES}");
    }
    let text = std::fs::read_to_string(file).with_context(|| format!("--plan: cannot read {name}"))?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
        anyhow!(
            "--plan: {name}: line {line}: found no TOML ({}), expected a line such as `rate = \"50 Mbit/s\"`",
            error.message()
        )
    })?;
    let is_known =
        |arg: &&Arg| arg.get_long().is_some_and(|long| !NOT_IN_PLANS.contains(&long)) && !arg.is_hide_set();
    let known: Vec<&Arg> = command.get_arguments().filter(is_known).collect();
    let mut all = vec![];
    for (key, value) in &table {
        let Some(arg) = known.iter().find(|arg| arg.get_long() == Some(key)) else {
            let names: Vec<&str> = known.iter().filter_map(|arg| arg.get_long()).collect();
            bail!("--plan: {name}: {key}: found an unknown key, expected one of {}", names.join(", "));
        };
        let words = of_key(arg, key, value, command.get_name() == "sweep")
            .with_context(|| format!("--plan: {name}: {key}"))?;
        all.extend(words);
    }
    Ok(all)
}

fn of_key(arg: &Arg, key: &str, value: &Value, takes_lists: bool) -> Result<Vec<String>> {
    let text = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        other => bail!("found `{other}`, expected a text with a unit, or a whole number"),
    };
    if !arg.get_action().takes_values() {
        return match value {
            Value::Boolean(true) => Ok(vec![format!("--{key}")]),
            Value::Boolean(false) => Ok(vec![]),
            other => bail!("found `{other}`, expected true or false"),
        };
    }
    let values = match value {
        Value::Array(values) => values.iter().map(text).collect::<Result<Vec<_>>>()?,
        one => vec![text(one)?],
    };
    let values: Vec<String> = values.iter().map(|value| format_value(arg, value)).collect();
    for value in &values {
        let separator = if WITH_COMMAS.contains(&format!("--{key}").as_str()) { ';' } else { ',' };
        let pieces: Vec<&str> =
            if takes_lists { value.split(separator).map(str::trim).collect() } else { vec![value] };
        pieces.into_iter().try_for_each(|piece| check(arg, key, piece))?;
    }
    let values = if matches!(arg.get_action(), ArgAction::Append) { values } else { vec![values.join(",")] };
    Ok(values.into_iter().map(|value| format!("--{key}={value}")).collect())
}

/// Checks that the option takes the value.
fn check(arg: &Arg, key: &str, value: &str) -> Result<()> {
    // Conflicts and requirements of other options are not checked here.
    let alone = Command::new("").no_binary_name(true).arg(arg.clone());
    let found = alone.try_get_matches_from([format!("--{key}={value}")]);
    found.map(drop).map_err(|error| headstart_study::study::plain(&error))
}

/// The plan of a command line: the requested options, and all others as comments.
fn text(command: &Command, given_options: &[String], matches: &ArgMatches) -> String {
    let mut plan = String::from("# Options of headstart, to be run with --plan.\n");
    let mut rest = String::from("\n# The rest, as it is by default or by `path`:\n");
    let names = words::names(given_options);
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
        let Some(long) = arg.get_long().filter(|long| !NOT_IN_PLANS.contains(long)) else { continue };
        let id = arg.get_id().as_str();
        let value = if arg.get_action().takes_values() {
            let raw = matches.get_raw(id).into_iter().flatten();
            let values: Vec<String> = raw.map(|value| literal(&value.to_string_lossy())).collect();
            match &values[..] {
                [] => continue,
                [one] => one.clone(),
                many => format!("[{}]", many.join(", ")),
            }
        } else {
            matches.get_flag(id).to_string()
        };
        if names.iter().any(|name| name == long) {
            let _ = writeln!(plan, "{long} = {value}");
        } else {
            let _ = writeln!(rest, "# {long} = {value}");
        }
    }
    plan + &rest
}

fn literal(value: &str) -> String {
    match value.parse::<i64>() {
        Ok(number) if number.to_string() == value => value.to_owned(),
        _ => Value::String(value.to_owned()).to_string(),
    }
}
