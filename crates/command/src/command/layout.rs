//! Layout of help: `-h` has the options that most runs need and fits a screen, `--help` has
//! everything, the rarely needed last.
//!
//! Options are declared once, in groups that several commands share. The table of commands lists
//! those that a command shows first.

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Command};

use super::table::Row;
use super::words::is_given;

/// An option by its long name, and its text in `-h`; empty: the first line of `--help`.
pub type Brief = (&'static str, &'static str);

/// Texts that are shorter than in `--help`.
const BRIEF: &[Brief] = &[
    ("path", "A path by name (`headstart list paths`)"),
    ("plan", "Options from a TOML file"),
    ("rate", "Rate of the bottleneck"),
    ("rtt", "Round-trip time without queues"),
    ("buffer", "Buffer of the bottleneck, as `115 kB`, `104p`, `50 ms`, `1 BDP`"),
    ("loss", "Random loss behind the bottleneck"),
    ("trace", "Packet-delivery trace instead of a rate"),
    ("size", "Size of a flow, or `mixed`, `internet`, `data-center`, `enterprise`"),
    ("load", "Offered load"),
    ("background", "Concurrent long flows"),
    ("har", "A page that a browser saved, instead of flows"),
    ("schemes", "Schemes to compare, as `iw10,halfback` [default: all]"),
    ("duration", "Simulated time"),
    ("in", "Simulated, or in real time on real packets"),
    ("transport", "What carries the data"),
    ("out", "Folder for the results"),
];

fn has_options(command: &Command) -> bool {
    command.get_arguments().any(|arg| arg.get_long().is_some())
}

impl Row {
    /// The command with its options in order: headings stand where their first option does.
    #[must_use]
    pub fn laid_out(&self, command: Command) -> Command {
        // One that was not built has no options.
        if self.first.is_empty() || !has_options(&command) {
            return command;
        }
        let mut args: Vec<Arg> = command.get_arguments().map(|arg| self.placed(arg)).collect();
        args.sort_by_key(|arg| arg.is_hide_short_help_set());
        Command::new(self.name)
            .allow_negative_numbers(command.is_allow_negative_numbers_set())
            .disable_help_flag(command.is_disable_help_flag_set())
            .args(args)
            .groups(command.get_groups().cloned())
    }

    fn placed(&self, arg: &Arg) -> Arg {
        let arg = arg.clone();
        let Some(long) = arg.get_long().map(str::to_owned) else { return arg };
        if self.leaves_out(&long) {
            return arg.hide(true).hide_short_help(true);
        }
        if self.shows_first(&long) {
            let mut texts = self.texts.iter().chain(BRIEF);
            let brief = texts.find(|(name, _)| *name == long).map_or("", |(_, text)| text);
            let full = arg.get_long_help().or(arg.get_help()).cloned().unwrap_or_default();
            return if brief.is_empty() { arg } else { arg.help(brief).long_help(full) };
        }
        let heading = arg.get_help_heading().map(|heading| format!("{heading}, rarely needed"));
        arg.hide_short_help(true).help_heading(heading.unwrap_or_else(|| "Rarely needed".to_owned()))
    }

    fn shows_first(&self, long: &str) -> bool {
        self.first.split(' ').any(|name| name == long)
    }

    /// True if an option of a shared group means nothing to the command: it does not show it, and
    /// refuses it.
    fn leaves_out(&self, long: &str) -> bool {
        match self.name {
            #[cfg(feature = "explore")]
            "explore" => !super::explore::is_known(long),
            "trace" => ["in", "schemes", "repeats", "threads", "warm-up"].contains(&long),
            _ => false,
        }
    }

    /// Refuses options that the command does not use.
    ///
    /// # Errors
    /// As for an option that does not exist.
    pub fn check(&self, command: &mut Command, matches: &ArgMatches) -> Result<(), clap::Error> {
        let unused = command.get_arguments().find(|arg| {
            let is_unused = arg.get_long().is_some_and(|long| self.leaves_out(long));
            is_unused && is_given(arg, matches)
        });
        let Some(long) = unused.and_then(Arg::get_long).map(str::to_owned) else { return Ok(()) };
        let name = self.name;
        Err(command.error(
            ErrorKind::UnknownArgument,
            format!("unexpected argument '--{long}' found: `{name}` does not have this option"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::parser;
    use crate::command::table::COMMANDS;

    /// The default width of a terminal, and the lines that fit on it with the prompt.
    const WIDTH: usize = 80;
    const SCREEN: usize = 40;

    fn commands() -> impl Iterator<Item = Command> {
        let parser = parser().term_width(WIDTH);
        let of = |command: &Command| command.clone().term_width(WIDTH);
        parser
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(of)
            .collect::<Vec<_>>()
            .into_iter()
    }

    #[test]
    fn the_short_help_of_every_command_fits_a_screen() {
        for mut command in commands().chain([parser().term_width(WIDTH)]) {
            let help = command.render_help().to_string();
            let name = command.get_name();
            assert!(help.lines().count() <= SCREEN, "{name} -h has {} lines:\n{help}", help.lines().count());
            let longest = help.lines().map(|line| line.chars().count()).max().unwrap_or_default();
            assert!(longest <= WIDTH, "{name} -h has a line of {longest} columns:\n{help}");
        }
    }

    #[test]
    fn the_long_help_has_every_option_with_the_rarely_needed_last() {
        for mut command in commands() {
            let is_it = |row: &&Row| row.name == command.get_name() && !row.first.is_empty();
            let Some(layout) = COMMANDS.iter().find(is_it).filter(|_| has_options(&command)) else {
                continue;
            };
            let help = command.render_long_help().to_string();
            let at = |long: &str| {
                let ends = [format!("--{long} "), format!("--{long}\n")];
                ends.iter().find_map(|end| {
                    help.find(&format!("      {end}")).or_else(|| help.find(&format!(", {end}")))
                })
            };
            let mut last_common = 0;
            for long in layout.first.split(' ') {
                let place = at(long).unwrap_or_else(|| panic!("{} has no --{long}", layout.name));
                last_common = last_common.max(place);
            }
            for long in command.get_arguments().filter_map(Arg::get_long) {
                if layout.leaves_out(long) {
                    assert_eq!(at(long), None, "{} shows --{long}", layout.name);
                } else if !layout.shows_first(long) && long != "help" {
                    assert!(at(long) > Some(last_common), "{} shows --{long} too early", layout.name);
                }
            }
        }
    }

    #[test]
    fn an_option_without_effect_on_a_command_is_refused() {
        for layout in COMMANDS.iter().filter(|row| !row.first.is_empty()) {
            let mut parser = parser();
            let command = parser.find_subcommand_mut(layout.name).expect("it is there");
            let longs: Vec<&str> = command.get_arguments().filter_map(Arg::get_long).collect();
            let unused: Vec<String> =
                longs.into_iter().filter(|long| layout.leaves_out(long)).map(str::to_owned).collect();
            for long in &unused {
                let takes_value = |arg: &Arg| arg.get_action().takes_values();
                let any = |arg: &Arg| {
                    let text = clap::builder::ValueParser::string();
                    let arg = arg.clone().required(false);
                    if takes_value(&arg) { arg.value_parser(text) } else { arg }
                };
                let is_flag = |arg: &Arg| arg.get_long() == Some(long.as_str()) && !takes_value(arg);
                let value = if command.get_arguments().any(is_flag) { "" } else { "=1" };
                // `--page` alone lacks what it requires.
                let relaxed = Command::new("")
                    .disable_help_flag(true)
                    .ignore_errors(true)
                    .args(command.get_arguments().map(any));
                let matches = relaxed.try_get_matches_from(["", &format!("--{long}{value}")]).expect(long);
                let error = layout.check(command, &matches).expect_err(long).to_string();
                assert!(error.contains(&format!("unexpected argument '--{long}'")), "{error}");
            }
        }
    }
}
