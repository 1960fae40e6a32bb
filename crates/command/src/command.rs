//! The commands, one file each.

#[cfg(feature = "network")]
mod ab;
mod assess;
pub mod call;
#[cfg(feature = "network")]
mod demo;
#[cfg(feature = "network")]
mod downlink;
#[cfg(feature = "explore")]
mod explore;
pub mod format;
#[cfg(feature = "network")]
mod get;
#[cfg(feature = "fleet")]
mod history;
#[cfg(feature = "network")]
mod idle;
mod layout;
#[cfg(feature = "network")]
mod measure;
#[cfg(not(all(feature = "explore", feature = "fleet", feature = "shell", feature = "tcp")))]
mod not_built;
#[cfg(feature = "network")]
mod page;
mod paths;
mod plan;
#[cfg(feature = "network")]
mod proxy;
mod race;
mod reproduce;
mod sample;
mod schemes;
#[cfg(feature = "network")]
mod serve;
#[cfg(feature = "shell")]
mod shell;
mod sweep;
mod table;
#[cfg(feature = "tcp")]
mod tcp;
mod terminal;
mod trace;
mod words;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ArgMatches;
use clap::builder::ValueParser;

use headstart_report::errors::{Refuse as _, exit_code, one_line};
use table::{BEGIN, COMMANDS, Group, Row};

impl Row {
    /// The command for the parser, with those that it shows.
    fn command(&self) -> clap::Command {
        let shown = COMMANDS.iter().filter_map(|row| {
            let (parent, word) = row.within.filter(|_| self.acts.lacks.is_none())?;
            (parent == self.name && !word.is_empty()).then(|| row.alone().name(word))
        });
        let shown: Vec<clap::Command> = shown.collect();
        // One with arguments of its own takes these or a command.
        let is_alone_too = !shown.is_empty() && !self.alone().is_subcommand_required_set();
        let command = self
            .alone()
            .args_conflicts_with_subcommands(is_alone_too)
            .subcommand_negates_reqs(is_alone_too)
            .disable_help_subcommand(!shown.is_empty())
            .subcommands(shown);
        command.hide(self.within.is_some())
    }

    fn alone(&self) -> clap::Command {
        let command = (self.acts.augment)(clap::Command::new(self.name).allow_negative_numbers(true));
        let command = self.laid_out(command).about(self.listed()).long_about(None);
        let command = if self.more.is_empty() {
            command
        } else {
            command.long_about(format!("{}\n\n{}", self.listed(), self.more))
        };
        if self.examples.is_empty() { command } else { command.after_long_help(self.examples) }
    }

    /// The line of the list, with the feature that is missing.
    fn listed(&self) -> String {
        match self.acts.lacks {
            Some(feature) => format!("{} [--features {feature}]", self.about),
            None => self.about.to_owned(),
        }
    }
}

fn parser() -> clap::Command {
    let header = *clap::builder::Styles::styled().get_header();
    let group = |group: Group| {
        let rows = COMMANDS.iter().filter(|row| row.group == group && row.within.is_none());
        let lines: String = rows.map(|row| format!("  {:<10} {}\n", row.name, row.listed())).collect();
        format!("{header}{}:{header:#}\n{lines}", group.heading())
    };
    let groups: String = Group::ALL.map(group).concat();
    let all = "{about-with-newline}\n{usage-heading} {usage}\n\n";
    let template = format!("{all}{groups}\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    let parser = clap::Command::new("headstart")
        .version(headstart_compare::VERSION)
        .about("Which fast start is best on my path, and what does it cost everybody else?")
        .max_term_width(100)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .help_template(template)
        .after_help(BEGIN);
    parser.subcommands(COMMANDS.iter().map(Row::command))
}

/// The parser with values of `sweep` that are any text: each may be a list.
fn relaxed(parser: clap::Command) -> clap::Command {
    let text = |arg: clap::Arg| {
        if arg.get_action().takes_values() { arg.value_parser(ValueParser::string()) } else { arg }
    };
    parser.mut_subcommand("sweep", |sweep| sweep.mut_args(text))
}

/// A command line as it was read.
pub struct Line {
    /// Options of the line, its preset and its plan.
    matches: ArgMatches,
    /// Options that were typed or are in the plan, as words.
    given_options: Vec<String>,
}

impl Line {
    /// Long names of the given options.
    fn names(&self) -> Vec<String> {
        words::names(&self.given_options)
    }

    /// The command and what belongs to it.
    fn command(&self) -> Option<(&'static Row, &ArgMatches)> {
        let (name, given) = self.matches.subcommand()?;
        let shown = given.subcommand().and_then(|(word, given)| {
            Some((COMMANDS.iter().find(|row| row.within == Some((name, word)))?, given))
        });
        shown.or_else(|| Some((COMMANDS.iter().find(|row| row.name == name)?, given)))
    }

    /// Arguments of the command.
    ///
    /// # Errors
    /// If they are not those of such a command.
    fn arguments<A: clap::FromArgMatches>(&self) -> Result<A, clap::Error> {
        A::from_arg_matches(self.command().map_or(&self.matches, |(_, given)| given))
    }

    fn run(&self) -> anyhow::Result<u8> {
        let Some((row, given)) = self.command() else { return Ok(0) };
        if let Ok(Some(format)) = given.try_get_one::<format::Format>("format") {
            format.check_available().or_refuse()?;
        }
        (row.acts.run)(given, self)
    }
}

/// Reads a command line, its plan and its preset; writes its plan, if requested.
///
/// # Errors
/// As [`clap::Error`] if the parser refuses it.
fn read(words: impl Iterator<Item = OsString>) -> anyhow::Result<Line> {
    let strict = parser();
    let mut parser = relaxed(strict.clone());
    let mut words = words::canonical(&strict, words);
    let mut read = |words: &[OsString]| -> Result<ArgMatches, clap::Error> {
        let matches = parser.try_get_matches_from_mut(words)?;
        if let Some((name, given)) = matches.subcommand()
            && let Some(row) = COMMANDS.iter().find(|row| row.name == name)
            && let Some(command) = parser.find_subcommand_mut(name)
        {
            row.check(command, given)?;
        }
        Ok(matches)
    };
    let mut matches = read(&words)?;
    let mut given_options = vec![];
    if let Some((name, given)) = matches.subcommand()
        && let Some(command) = strict.find_subcommand(name)
    {
        given_options = words::given_options(command, given);
    }
    if let Some((name, given)) = matches.subcommand()
        && let Some(command) = strict.find_subcommand(name).filter(|command| plan::takes_presets(command))
    {
        let typed = given_options;
        let mut before = plan::planned(command, &typed).or_refuse()?;
        given_options = [&before[..], &typed].concat();
        if name == "sweep" {
            plan::save(command, &given_options, given)?;
            return Ok(Line { matches, given_options });
        }
        // A demo has a rate, but none of its own for the way back.
        let mut preset = plan::of_preset(&given_options);
        preset
            .retain(|word| words::names(std::slice::from_ref(word)).iter().all(|it| plan::has(command, it)));
        before.splice(0..0, preset);
        words.splice(2..2, before.into_iter().map(OsString::from));
        matches = read(&words)?;
        if let Some((_, given)) = matches.subcommand() {
            plan::save(command, &given_options, given)?;
        }
    }
    Ok(Line { matches, given_options })
}

/// Takes `words`, the program's first, for the command line and `library` for the program, where
/// another program has loaded it.
pub fn host(words: Vec<OsString>, library: PathBuf) {
    terminal::host(words);
    headstart_report::jobs::host(library);
}

/// Runs the command line; returns the exit code.
#[must_use]
pub fn main() -> u8 {
    read(terminal::words()).and_then(|line| line.run()).unwrap_or_else(|error| {
        if let Some(usage) = error.downcast_ref::<clap::Error>() {
            usage.exit();
        }
        eprintln!("headstart: {}", one_line(&error));
        exit_code(&error)
    })
}
