//! Tables of options, parsed as on the command line: each parameter is declared once, in
//! [`crate::options`].

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches, Parser};
use serde::Deserialize;
use toml::{Table, Value};

use crate::carrier::Carriers;
use crate::catalogue;
use crate::options::{PathOptions, RunOptions, TransportOptions, WorkloadOptions};
use crate::setup::Setup;
use crate::study::{PreparedStudy, StudyEntry, plain};

/// Run options that a plan does not set: schemes have their own key, threads depend on the machine.
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
    /// The workload.
    #[serde(default)]
    pub workload: Table,
    /// Execution of the runs.
    #[serde(default)]
    pub run: Table,
}

/// Options by name, each with its arguments as on a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings(BTreeMap<String, Vec<String>>);

#[derive(Parser, Debug)]
struct AllOptions {
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
    /// Reads the tables; every key and every value is checked. The parameters of studies are keys
    /// of `workload`: those of this study, or of any where none is named yet.
    ///
    /// # Errors
    /// Names the key, the value found and the one expected.
    pub fn read(tables: &Tables, study: Option<&StudyEntry>) -> Result<Self> {
        let mut settings = Self::default();
        let parameters = match study {
            Some(study) => study.parameters(),
            None => catalogue::ALL.iter().flat_map(StudyEntry::parameters).collect(),
        };
        settings.read_table("path", &tables.path, options::<PathOptions>(), study)?;
        settings.read_table("transport", &tables.transport, options::<TransportOptions>(), study)?;
        let workload = [options::<WorkloadOptions>(), parameters].concat();
        settings.read_table("workload", &tables.workload, workload, study)?;
        settings.read_table("run", &tables.run, options::<RunOptions>(), study)?;
        Ok(settings)
    }

    fn read_table(
        &mut self,
        name: &str,
        table: &Table,
        known: Vec<String>,
        study: Option<&StudyEntry>,
    ) -> Result<()> {
        for (key, value) in table {
            if !known.contains(key) {
                let found = other_studies(key).map_or("an unknown key".to_owned(), |owners| {
                    let own = study.map_or("none", |study| study.name);
                    format!("a parameter of {owners} in a plan of the study {own}")
                });
                bail!("{name}.{key}: found {found}, expected one of {}", known.join(", "));
            }
            self.set(key, value, study).with_context(|| format!("{name}.{key}"))?;
        }
        Ok(())
    }

    /// Checks that every option is one of a run or a parameter of this study.
    ///
    /// # Errors
    /// Names the option, the value found and the one expected.
    pub fn check(&self, study: &StudyEntry) -> Result<()> {
        let parameters = study.parameters();
        for option in self.0.keys().filter(|option| !parameters.contains(option)) {
            if let Some(owners) = other_studies(option) {
                let own = if parameters.is_empty() { "none".to_owned() } else { parameters.join(", ") };
                bail!(
                    "{option}: found a parameter of {owners} in a plan of the study {}, whose parameters are: {own}; expected one of these or \
                     an option of `race`",
                    study.name
                );
            }
        }
        Ok(())
    }

    /// Sets an option of any table, or a parameter of the study (of any where none is named yet).
    ///
    /// # Errors
    /// If there is no such option, or its value is invalid.
    pub fn set(&mut self, option: &str, value: &Value, study: Option<&StudyEntry>) -> Result<()> {
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
        let owner = study.or_else(|| catalogue::with_parameter(option).first().copied());
        matches(texts.iter(), owner)?;
        self.0.insert(option.to_owned(), texts);
        Ok(())
    }

    /// The settings, overridden by the others.
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
        setup(&matches(words.iter(), None)?, carriers)
    }

    /// The study with the setup and the parameters that they describe.
    ///
    /// # Errors
    /// If they contradict each other, or the study does not support the carrier that they choose.
    pub fn prepare(&self, study: &'static StudyEntry, carriers: Carriers) -> Result<PreparedStudy> {
        let matches = matches(self.0.values().flatten(), Some(study))?;
        study.prepare(&matches, setup(&matches, carriers)?)
    }
}

/// True for an option of a run without a value.
#[must_use]
pub fn is_switch(option: &str) -> bool {
    let command = AllOptions::augment_args(Command::new(""));
    command.get_arguments().any(|arg| arg.get_long() == Some(option) && !arg.get_action().takes_values())
}

/// Names of the options that a plan's table may set.
fn options<Options: Args>() -> Vec<String> {
    let command = Options::augment_args(Command::new(""));
    let names = command.get_arguments().filter_map(|argument| argument.get_long().map(str::to_owned));
    names.filter(|long| !NOT_IN_PLANS.contains(&long.as_str())).collect()
}

/// The studies that have a parameter of that name, in words.
fn other_studies(parameter: &str) -> Option<String> {
    let names: Vec<&str> = catalogue::with_parameter(parameter).iter().map(|study| study.name).collect();
    match names[..] {
        [] => None,
        [one] => Some(format!("the study {one}")),
        _ => Some(format!("the studies {}", names.join(", "))),
    }
}

fn matches<'a>(
    arguments: impl Iterator<Item = &'a String>,
    study: Option<&StudyEntry>,
) -> Result<ArgMatches> {
    let line = std::iter::once("").chain(arguments.map(String::as_str));
    let mut command = AllOptions::augment_args(Command::new("").no_binary_name(false));
    if let Some(study) = study {
        command = study.augment(command);
    }
    command.try_get_matches_from(line).map_err(|error| plain(&error))
}

fn setup(matches: &ArgMatches, carriers: Carriers) -> Result<Setup> {
    let AllOptions { path, transport, workload, run } =
        AllOptions::from_arg_matches(matches).map_err(|error| plain(&error))?;
    Setup::new(carriers, path, transport, workload, run)
}

/// The study of that name with these tables.
#[cfg(test)]
pub(crate) fn prepared(study: &str, text: &str) -> PreparedStudy {
    let study = catalogue::find(study).expect("a study");
    let tables: Tables = toml::from_str(text).expect("tables");
    let settings = Settings::read(&tables, Some(study)).expect("options");
    settings.prepare(study, Carriers::MODEL).expect("a setup")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Settings> {
        Settings::read(&toml::from_str(text)?, None)
    }

    #[test]
    fn a_table_of_settings_parses_as_the_command_line() {
        let settings = read("path = { rate = \"10 Mbit/s\", reorder = true, hop = [\"10mbit/5ms/50kB\"] }")
            .expect("fine");
        assert_eq!(settings.arguments(), ["--hop=10mbit/5ms/50kB", "--rate=10 Mbit/s", "--reorder"]);
        let study = &catalogue::ALL[0];
        let setup = settings.prepare(study, Carriers::MODEL).expect("fine").setup;
        assert_eq!((setup.path.rate, setup.path.hops.len()), ("10mbit".parse().expect("a rate"), 1));
    }

    #[test]
    fn mistakes_are_reported_with_key_found_and_expected() {
        for (text, parts) in [
            ("path = { rate = \"15\" }", ["path.rate", "found `15`", "expected a rate"]),
            ("path = { rate = 15 }", ["path.rate", "found `15`", "expected a rate"]),
            ("path = { speed = \"15 Mbit/s\" }", ["path.speed", "unknown key", "expected one of rate, rtt"]),
            ("path = { load = \"5 %\" }", ["path.load", "unknown key", "expected one of"]),
            ("path = { queue = \"fq\" }", ["path.queue", "fq", "drop-tail"]),
            ("run = { threads = 2 }", ["run.threads", "unknown key", "duration"]),
            ("run = { repeats = 0 }", ["run.repeats", "found `0`", "expected a whole number from 1 to 1000"]),
        ] {
            let error = format!("{:#}", read(text).expect_err(text));
            for part in parts {
                assert!(error.contains(part), "{text}: {error}");
            }
        }
    }
}
