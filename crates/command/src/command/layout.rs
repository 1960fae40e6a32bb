//! Layout of help: `-h` has the options that most runs need and fits a screen, `--help` has
//! everything, the rarely needed last.
//!
//! Options are declared once, in groups that several commands share. A [`Layout`] lists those that
//! a command shows first.

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Command};

use super::words::is_given;

/// The layout of one command's help.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The command.
    pub name: &'static str,
    /// Long names of the options of `-h`.
    common: &'static str,
    /// Texts in `-h` that are not those of [`BRIEF`].
    texts: &'static [Brief],
}

/// An option by its long name, and its text in `-h`; empty: the first line of `--help`.
type Brief = (&'static str, &'static str);

/// Texts that are shorter than in `--help`.
const BRIEF: &[Brief] = &[
    ("path", "A path by name (`headstart paths`)"),
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

/// The commands whose help is longer than a screen.
const LAYOUTS: &[Layout] = &[
    Layout {
        name: "race",
        common: "path rate rtt buffer loss trace size load background har schemes duration repeats in transport \
                 out format plan",
        texts: &[],
    },
    Layout {
        name: "sweep",
        common: "path rate rtt buffer loss trace size load background har schemes duration repeats in transport out",
        texts: &[],
    },
    Layout {
        name: "trace",
        common: "flow path rate rtt buffer loss trace size load background transport out",
        texts: &[("flow", "Which flow of a run [default: one alone on the path]")],
    },
    Layout {
        name: "explore",
        common: "path rate rtt buffer loss size load background schemes duration repeats port no-open plan",
        texts: &[],
    },
    Layout {
        name: "link",
        common: "path rate rtt buffer loss jitter trace up-rate udp serve change log duration strict",
        texts: &[("jitter", "Random extra delay up to this"), ("duration", "")],
    },
    Layout {
        name: "page",
        common: "shape path rate rtt buffer schemes repeats browser out format",
        texts: &[
            ("shape", "A synthetic page, instead of a HAR"),
            ("rate", "Rate of the link, towards the browser [default: all of the path `cable`]"),
            ("rtt", ""),
            ("buffer", ""),
            ("schemes", ""),
        ],
    },
    Layout {
        name: "serve",
        common: "generate listen scheme history certificate key name rollout kill-switch metrics qlog",
        texts: &[],
    },
    Layout {
        name: "proxy",
        common: "upstream check listen scheme history certificate key name rollout kill-switch metrics qlog",
        texts: &[],
    },
];

/// The layout of a command, if it has one.
#[must_use]
pub fn of(name: &str) -> Option<&'static Layout> {
    LAYOUTS.iter().find(|layout| layout.name == name)
}

/// A parser with the help of all its commands laid out.
#[must_use]
pub fn laid_out(parser: Command) -> Command {
    let names: Vec<String> = parser.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    names.iter().filter_map(|name| of(name)).fold(parser, |parser, layout| {
        parser.mut_subcommand(layout.name, |command| {
            // One that was not built has no options.
            if has_options(&command) { layout.of(&command) } else { command }
        })
    })
}

fn has_options(command: &Command) -> bool {
    command.get_arguments().any(|arg| arg.get_long().is_some())
}

impl Layout {
    /// The command again, with its options in order: headings stand where their first option does.
    #[must_use]
    pub fn of(&self, command: &Command) -> Command {
        let mut args: Vec<Arg> = command.get_arguments().map(|arg| self.placed(arg)).collect();
        args.sort_by_key(|arg| arg.is_hide_short_help_set());
        let mut laid = Command::new(self.name)
            .allow_negative_numbers(command.is_allow_negative_numbers_set())
            .disable_help_flag(command.is_disable_help_flag_set())
            .args(args)
            .groups(command.get_groups().cloned());
        if let Some(about) = command.get_about() {
            laid = laid.about(about.clone());
        }
        if let Some(about) = command.get_long_about() {
            laid = laid.long_about(about.clone());
        }
        match command.get_after_long_help() {
            Some(text) => laid.after_long_help(text.clone()),
            None => laid,
        }
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
        self.common.split(' ').any(|name| name == long)
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
            let Some(layout) = of(command.get_name()).filter(|_| has_options(&command)) else { continue };
            let help = command.render_long_help().to_string();
            let at = |long: &str| {
                let ends = [format!("--{long} "), format!("--{long}\n")];
                ends.iter().find_map(|end| {
                    help.find(&format!("      {end}")).or_else(|| help.find(&format!(", {end}")))
                })
            };
            let mut last_common = 0;
            for long in layout.common.split(' ') {
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
        for layout in LAYOUTS {
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
