//! A study: conversion of a setup to a run, its own parameters, and the numbers of a run.
//!
//! A study declares its numbers ([`Declared`]): a claim or a figure on an undeclared one is refused
//! when plans are read, and a run that gives one fails. A name with a slash belongs to a family:
//! `by-size/12589` is the mean completion time of flows of about 12 589 bytes. Its parameters are
//! options that only plans of this study may set.
//!
//! # To add a study
//!
//! Write a type that is a [`Study`] and add a line to the list in `catalogue.rs`. Seeds, threads,
//! kept runs, claims, tables and drawings then work as they are.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::fmt;

use anyhow::{Result, bail, ensure};
use clap::{ArgMatches, Args, Command};

use crate::carrier::{Carrier, Detail};
use crate::estimate::Estimate;
use crate::setup::{SchemeMix, Setup};

/// Numbers of a run, without those that were not measured.
pub type Numbers = BTreeMap<String, f64>;

/// Set to 1 in a run that the machine was too busy for. Its other numbers are invalid.
pub const INVALID: &str = "invalid";

/// Conversion of a setup to a run. A value has the study's parameters, which only its plans may
/// set; all of its printed text determines a run.
pub trait Study: Args + fmt::Debug + Send + Sync + 'static {
    /// Name of the study in plans.
    const NAME: &'static str;
    /// A short description.
    const ABOUT: &'static str;
    /// Detail that it needs of a carrier.
    const NEEDS: Detail;
    /// The numbers that its runs give.
    const DECLARED: &'static [Declared];

    /// Relative work of a run, among runs of this study with other settings.
    fn work(&self, setup: &Setup) -> f64 {
        Estimate::of(setup, 1).seconds
    }

    /// Mean time of a run over the time of a setup's first run: below 1 where runs share work.
    fn share(&self, setup: &Setup) -> f64 {
        let _ = setup;
        1.0
    }

    /// Executes one run.
    ///
    /// # Errors
    /// If it cannot be done.
    fn run(&self, case: &Case<'_>) -> Result<Measured>;
}

/// A run of a study.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// Path, transport and workload, and the carrier of the run.
    pub setup: &'a Setup,
    /// Schemes that take part.
    pub mix: SchemeMix,
    /// Seed of all random draws.
    pub seed: u64,
}

/// A number that runs give, or a family of numbers.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Name of the number. `name/...` is a family, whose members end in their place along x.
    pub name: &'static str,
    /// Unit of the number; empty for a count or a ratio.
    pub unit: &'static str,
    /// Definition of the number, and of x in a family.
    pub definition: &'static str,
    /// Detail that it needs of a carrier.
    pub needs: Detail,
}

impl Measure {
    /// A number that every carrier shows.
    #[must_use]
    pub const fn new(name: &'static str, unit: &'static str, definition: &'static str) -> Self {
        Self { name, unit, definition, needs: Detail::Flows }
    }

    /// One that needs more detail; a carrier that does not show it leaves it out.
    #[must_use]
    pub const fn with_detail(self, needs: Detail) -> Self {
        Self { needs, ..self }
    }
}

/// Declares measures, each with its value of what a run left: the list of them, and a function with
/// their values in the same order.
macro_rules! measures {
    ($(#[$about:meta])* $list:ident, $values:ident of $run:ty: $($measure:expr, $value:expr;)+) => {
        $(#[$about])*
        const $list: &[Measure] = &[$($measure),+];

        fn $values(run: &$run) -> impl Iterator<Item = f64> {
            const ALL: &[fn(&$run) -> f64] = &[$($value),+];
            ALL.iter().map(move |value| value(run))
        }
    };
}
pub(crate) use measures;

/// Numbers that a study declares, each under every one of these prefixes.
#[derive(Clone, Copy, Debug)]
pub struct Declared {
    /// Prefixes of names; the empty one is the scheme under test.
    pub prefixes: &'static [&'static str],
    /// The numbers.
    pub measures: &'static [Measure],
}

impl Declared {
    /// Detail needed for the number of that name, if it is one of these.
    fn needs(&self, name: &str) -> Option<Detail> {
        self.prefixes.iter().filter_map(|prefix| name.strip_prefix(prefix)).find_map(|rest| {
            // The name of a family is that of all its numbers.
            let (family, member) = rest.split_once('/').unwrap_or((rest, "0"));
            let is_it = |measure: &&Measure| match measure.name.strip_suffix("/...") {
                Some(name) => name == family && member.parse::<f64>().is_ok(),
                None => measure.name == rest,
            };
            self.measures.iter().find(is_it).map(|measure| measure.needs)
        })
    }
}

/// Measurements of a run of a study.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Names and values.
    pub numbers: Vec<(String, f64)>,
    /// Reason why they are invalid, if they are: the machine was too busy for real time.
    pub invalid: Option<String>,
}

impl Measured {
    /// Adds a number; one that is not finite counts as not measured.
    pub fn add(&mut self, name: impl Into<String>, value: f64) {
        self.numbers.push((name.into(), value));
    }
}

impl<N: Into<String>> FromIterator<(N, f64)> for Measured {
    fn from_iter<I: IntoIterator<Item = (N, f64)>>(numbers: I) -> Self {
        let numbers = numbers.into_iter().map(|(name, value)| (name.into(), value)).collect();
        Self { numbers, invalid: None }
    }
}

impl<N: Into<String>> Extend<(N, f64)> for Measured {
    fn extend<I: IntoIterator<Item = (N, f64)>>(&mut self, numbers: I) {
        self.numbers.extend(numbers.into_iter().map(|(name, value)| (name.into(), value)));
    }
}

/// A yes or no as 100 or 0, so that its mean over runs is a percentage.
#[must_use]
pub const fn percent(is: bool) -> f64 {
    if is { 100.0 } else { 0.0 }
}

/// A study of the list.
pub struct StudyEntry {
    /// Name of the study in plans.
    pub name: &'static str,
    /// A short description.
    pub about: &'static str,
    /// Detail that it needs of a carrier.
    pub needs: Detail,
    /// The numbers that its runs give.
    pub declared: &'static [Declared],
    augment: fn(Command) -> Command,
    prepare: fn(&ArgMatches) -> Result<WithParams, clap::Error>,
}

/// A study with its parameters, and these as text.
type WithParams = (Box<dyn Prepared>, String);

/// A study of any type with its parameters.
trait Prepared: Send + Sync {
    fn work(&self, setup: &Setup) -> f64;
    fn share(&self, setup: &Setup) -> f64;
    fn run(&self, case: &Case<'_>) -> Result<Measured>;
}

impl<S: Study> Prepared for S {
    fn work(&self, setup: &Setup) -> f64 {
        Study::work(self, setup)
    }

    fn share(&self, setup: &Setup) -> f64 {
        Study::share(self, setup)
    }

    fn run(&self, case: &Case<'_>) -> Result<Measured> {
        Study::run(self, case)
    }
}

impl fmt::Debug for StudyEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl StudyEntry {
    /// The entry of the list.
    #[must_use]
    pub const fn of<S: Study>() -> Self {
        Self {
            name: S::NAME,
            about: S::ABOUT,
            needs: S::NEEDS,
            declared: S::DECLARED,
            augment: S::augment_args,
            prepare: |matches| {
                let study = S::from_arg_matches(matches)?;
                let text = format!("{study:?}");
                Ok((Box::new(study), text))
            },
        }
    }

    /// True if runs give numbers of that name, or a family of it.
    #[must_use]
    pub fn measures(&self, name: &str) -> bool {
        self.declared.iter().any(|declared| declared.needs(name).is_some())
    }

    /// Checks that a carrier shows the detail that the study needs.
    ///
    /// # Errors
    /// If not; names the detail found and the one expected.
    pub fn check(&self, carrier: &dyn Carrier) -> Result<()> {
        ensure!(
            carrier.detail() >= self.needs,
            "study: found `{}` over {}, expected a carrier that shows {}",
            self.name,
            carrier.name(),
            self.needs.words()
        );
        Ok(())
    }

    /// Adds its parameters to a command.
    #[must_use]
    pub fn augment(&self, command: Command) -> Command {
        (self.augment)(command)
    }

    /// Parameters of the study, named as options.
    #[must_use]
    pub fn parameters(&self) -> Vec<String> {
        let command = self.augment(Command::new(""));
        command.get_arguments().filter_map(|argument| argument.get_long().map(str::to_owned)).collect()
    }

    /// Parameters of the study with their defaults and their help, for documentation.
    #[must_use]
    pub fn described(&self) -> Vec<(String, String, String)> {
        let command = self.augment(Command::new(""));
        let one = |argument: &clap::Arg| {
            let defaults: Vec<_> =
                argument.get_default_values().iter().map(|text| text.to_string_lossy()).collect();
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            Some((argument.get_long()?.to_owned(), defaults.join(", "), help))
        };
        command.get_arguments().filter_map(one).collect()
    }

    /// The study with the parameters set, for this setup.
    ///
    /// # Errors
    /// If a parameter is invalid, or the setup's carrier lacks the detail that the study needs.
    pub fn prepare(&'static self, matches: &ArgMatches, setup: Setup) -> Result<PreparedStudy> {
        self.check(setup.carrier())?;
        let (study, parameters) = (self.prepare)(matches).map_err(|error| plain(&error))?;
        Ok(PreparedStudy { setup, entry: self, study, parameters })
    }
}

/// A study with its parameters and its setup.
pub struct PreparedStudy {
    /// Path, transport and workload, and the carrier of the runs.
    pub setup: Setup,
    entry: &'static StudyEntry,
    study: Box<dyn Prepared>,
    /// All parameters that determine a run.
    parameters: String,
}

impl PreparedStudy {
    /// The study and all parameters that determine the result of a run.
    #[must_use]
    pub fn kind(&self) -> String {
        format!("{} {}", self.entry.name, self.parameters)
    }

    /// Relative work of a run, among runs of this study with other settings.
    #[must_use]
    pub fn work(&self) -> f64 {
        self.study.work(&self.setup)
    }

    /// Mean time of a run over the first run's: below 1 where runs share work.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.study.share(&self.setup)
    }

    /// Executes one run.
    ///
    /// # Errors
    /// If it cannot be done, or gives a number that the study does not declare.
    pub fn run(&self, mix: SchemeMix, seed: u64) -> Result<Numbers> {
        let setup = &self.setup;
        let measured = self.study.run(&Case { setup, mix, seed })?;
        if measured.invalid.is_some() {
            return Ok(Numbers::from([(INVALID.to_owned(), 1.0)]));
        }
        let shown = setup.carrier().detail();
        let mut numbers = Numbers::new();
        for (name, value) in measured.numbers.into_iter().filter(|(_, value)| value.is_finite()) {
            let Some(needs) = self.entry.declared.iter().find_map(|declared| declared.needs(&name)) else {
                bail!("the study {} gives `{name}`, which it does not declare", self.entry.name);
            };
            if shown >= needs {
                numbers.insert(name, value);
            }
        }
        Ok(numbers)
    }
}

/// An error in options, without the command line's advice.
#[must_use]
pub fn plain(error: &clap::Error) -> anyhow::Error {
    if let Some(source) = error.source() {
        return anyhow::anyhow!("{source}");
    }
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    anyhow::anyhow!("{}", lines.join(" ").trim_start_matches("error: "))
}
