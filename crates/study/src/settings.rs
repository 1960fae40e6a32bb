//! Tables of options, read as the command line reads them: each parameter is declared once, in [`crate::options`].

use std::collections::BTreeMap;
use std::error::Error as _;

use anyhow::{Context, Result, bail};
use clap::{Args, Command, FromArgMatches, Parser};
use serde::Deserialize;
use toml::{Table, Value};

use crate::carrier::Carriers;
use crate::options::{PathOptions, RunOptions, TransportOptions, WorkloadOptions};
use crate::setup::Setup;

/// Options of a run that a plan does not set: schemes have their own key, threads are the machine's.
const NOT_IN_PLANS: [&str; 2] = ["schemes", "threads"];

/// The four tables of options, as they are written in a file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    /// The path.
    #[serde(default)]
    pub path: Table,
    /// The TCP model.
    #[serde(default)]
    pub transport: Table,
    /// What is transferred.
    #[serde(default)]
    pub workload: Table,
    /// How it is run.
    #[serde(default)]
    pub run: Table,
}

/// Options by name, each with its arguments as a command line has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings(BTreeMap<String, Vec<String>>);

#[derive(Parser, Debug)]
struct Everything {
    #[command(flatten)]
    path: PathOptions,
    #[command(flatten)]
    transport: TransportOptions,
    #[command(flatten)]
    workload: WorkloadOptions,
    #[command(flatten)]
    run: RunOptions,
}

impl Settings {
    /// Reads the tables; every key and every value is checked.
    ///
    /// # Errors
    /// With the key, what was found and what was expected.
    pub fn read(tables: &Tables) -> Result<Self> {
        let mut settings = Self::default();
        settings.read_table::<PathOptions>("path", &tables.path)?;
        settings.read_table::<TransportOptions>("transport", &tables.transport)?;
        settings.read_table::<WorkloadOptions>("workload", &tables.workload)?;
        settings.read_table::<RunOptions>("run", &tables.run)?;
        Ok(settings)
    }

    fn read_table<Options: Args>(&mut self, name: &str, table: &Table) -> Result<()> {
        let known: Vec<String> = Options::augment_args(Command::new(""))
            .get_arguments()
            .filter_map(|argument| argument.get_long().map(str::to_owned))
            .filter(|long| !NOT_IN_PLANS.contains(&long.as_str()))
            .collect();
        for (key, value) in table {
            if !known.contains(key) {
                bail!("{name}.{key}: found an unknown key, expected one of {}", known.join(", "));
            }
            self.set(key, value).with_context(|| format!("{name}.{key}"))?;
        }
        Ok(())
    }

    /// Sets one option of any of the tables.
    ///
    /// # Errors
    /// If there is no such option, or not with such a value.
    pub fn set(&mut self, option: &str, value: &Value) -> Result<()> {
        let texts = match value {
            Value::String(text) => vec![format!("--{option}={text}")],
            Value::Integer(number) => vec![format!("--{option}={number}")],
            Value::Boolean(true) => vec![format!("--{option}")],
            Value::Boolean(false) => vec![],
            Value::Array(values) => values
                .iter()
                .map(|value| match value.as_str() {
                    Some(text) => Ok(format!("--{option}={text}")),
                    None => bail!("found `{value}`, expected a text"),
                })
                .collect::<Result<_>>()?,
            other => bail!("found `{other}`, expected a text with a unit, a whole number, true or false"),
        };
        parse(texts.iter())?;
        self.0.insert(option.to_owned(), texts);
        Ok(())
    }

    /// These settings, with the others' in place of theirs.
    #[must_use]
    pub fn with(&self, others: &Self) -> Self {
        let mut all = self.clone();
        all.0.extend(others.0.iter().map(|(option, texts)| (option.clone(), texts.clone())));
        all
    }

    /// As arguments, in the order of the options' names.
    #[must_use]
    pub fn arguments(&self) -> Vec<&str> {
        self.0.values().flatten().map(String::as_str).collect()
    }

    /// The setup of a command line's words, without the program's name.
    ///
    /// # Errors
    /// If one of them is no option, or they contradict each other.
    pub fn parse<'a>(carriers: Carriers, words: impl Iterator<Item = &'a str>) -> Result<Setup> {
        let words: Vec<String> = words.map(str::to_owned).collect();
        let Everything { path, transport, workload, run } = parse(words.iter())?;
        Setup::new(carriers, path, transport, workload, run)
    }

    /// The setup that they describe.
    ///
    /// # Errors
    /// If they contradict each other.
    pub fn setup(&self, carriers: Carriers) -> Result<Setup> {
        let Everything { path, transport, workload, run } = parse(self.0.values().flatten())?;
        Setup::new(carriers, path, transport, workload, run)
    }
}

fn parse<'a>(arguments: impl Iterator<Item = &'a String>) -> Result<Everything> {
    let line = std::iter::once("").chain(arguments.map(String::as_str));
    let command = Everything::augment_args(Command::new("").no_binary_name(false));
    let matches = command.try_get_matches_from(line).map_err(|error| plain(&error))?;
    Everything::from_arg_matches(&matches).map_err(|error| plain(&error))
}

/// What was wrong, without the command line's advice.
fn plain(error: &clap::Error) -> anyhow::Error {
    if let Some(source) = error.source() {
        return anyhow::anyhow!("{source}");
    }
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    anyhow::anyhow!("{}", lines.join(" ").trim_start_matches("error: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Settings> {
        Settings::read(&toml::from_str(text)?)
    }

    #[test]
    fn a_table_is_read_as_the_command_line_is() {
        let settings = read("path = { rate = \"10 Mbit/s\", reorder = true, hop = [\"10mbit/5ms/50kB\"] }")
            .expect("fine");
        assert_eq!(settings.arguments(), ["--hop=10mbit/5ms/50kB", "--rate=10 Mbit/s", "--reorder"]);
        let setup = settings.setup(Carriers::MODEL).expect("fine");
        assert_eq!((setup.path.rate, setup.path.hops.len()), ("10mbit".parse().expect("a rate"), 1));
    }

    #[test]
    fn mistakes_are_told_with_key_found_and_expected() {
        for (text, parts) in [
            ("path = { rate = \"15\" }", ["path.rate", "found `15`", "expected a rate"]),
            ("path = { rate = 15 }", ["path.rate", "found `15`", "expected a rate"]),
            ("path = { speed = \"15 Mbit/s\" }", ["path.speed", "unknown key", "expected one of rate, rtt"]),
            ("path = { load = \"5 %\" }", ["path.load", "unknown key", "expected one of"]),
            ("path = { queue = \"fq\" }", ["path.queue", "fq", "drop-tail"]),
            ("run = { threads = 2 }", ["run.threads", "unknown key", "duration"]),
            ("run = { repeats = 0 }", ["run.repeats", "0", "1..=1000"]),
        ] {
            let error = format!("{:#}", read(text).expect_err(text));
            for part in parts {
                assert!(error.contains(part), "{text}: {error}");
            }
        }
    }
}
