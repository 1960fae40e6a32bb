//! A parsed command line, as words again.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use headstart_startup::parameters::is_same_name;

/// The options that were given, each as `--name=value` or `--name`, in their order.
#[must_use]
pub fn given_options(command: &Command, matches: &ArgMatches) -> Vec<String> {
    let mut words: Vec<(usize, String)> = vec![];
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        let Some(long) = arg.get_long().filter(|_| is_given(arg, matches)) else { continue };
        let places = matches.indices_of(id).into_iter().flatten();
        if arg.get_action().takes_values() {
            let values = matches.get_raw(id).into_iter().flatten();
            words.extend(places.zip(values.map(|value| format!("--{long}={}", value.to_string_lossy()))));
        } else {
            words.extend(places.map(|place| (place, format!("--{long}"))));
        }
    }
    words.sort();
    words.into_iter().map(|(_, word)| word).collect()
}

/// True if it was typed.
#[must_use]
pub fn is_given(arg: &Arg, matches: &ArgMatches) -> bool {
    matches.try_contains_id(arg.get_id().as_str()).is_ok()
        && matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
}

/// The long names of the options among such words.
#[must_use]
pub fn names(words: &[String]) -> Vec<String> {
    let name = |word: &String| word.trim_start_matches('-').split('=').next().unwrap_or_default().to_owned();
    words.iter().map(name).collect()
}

/// The words of a command line with the values of enumerated options as help spells them: case,
/// hyphens, underscores and spaces do not matter. A negative value is no option.
#[must_use]
pub fn canonical(parser: &Command, words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words = with_negative_values(words);
    let name = words.get(1).and_then(|name| name.to_str()).unwrap_or_default();
    let Some(command) = parser.find_subcommand(name) else { return words };
    let inner = words.get(2).and_then(|word| command.find_subcommand(word));
    let (command, first) = inner.map_or((command, 2), |inner| (inner, 3));
    let option = |name: &str| {
        let is_it = |arg: &&Arg| {
            arg.get_long() == Some(name)
                || arg.get_all_aliases().into_iter().flatten().any(|alias| alias == name)
        };
        command.get_arguments().find(is_it)
    };
    let mut before: Option<&Arg> = None;
    for word in words.iter_mut().skip(first) {
        let (named, text) = (before.take(), word.to_str().unwrap_or_default().to_owned());
        if text == "--" {
            break;
        }
        match (text.strip_prefix("--"), named) {
            (Some(long), _) => match long.split_once('=') {
                Some((name, value)) => {
                    if let Some(arg) = option(name) {
                        *word = format!("--{name}={}", format_value(arg, value)).into();
                    }
                }
                None => before = option(long),
            },
            (None, Some(arg)) if !arg.get_possible_values().is_empty() => {
                *word = format_value(arg, &text).into()
            }
            (None, _) => {}
        }
    }
    words
}

/// With `--option=-1` for `--option -1`, so that the option refuses it, and says what it expects.
fn with_negative_values(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let is_negative = |word: &[u8]| matches!(word, [b'-', b'0'..=b'9' | b'.', ..]);
    let mut joined: Vec<OsString> = vec![];
    let mut is_over = false;
    for word in words {
        let option = joined.last_mut().filter(|before| {
            let before = before.as_encoded_bytes();
            before.len() > 2 && before.starts_with(b"--") && !before.contains(&b'=')
        });
        match option {
            Some(option) if !is_over && is_negative(word.as_encoded_bytes()) => {
                option.push("=");
                option.push(word);
            }
            _ => {
                is_over |= word == "--";
                joined.push(word);
            }
        }
    }
    joined
}

/// A value, or a list of them, as help spells it; other text is left as it is.
#[must_use]
pub fn format_value(arg: &Arg, value: &str) -> String {
    let known = arg.get_possible_values();
    if known.is_empty() || !arg.get_action().takes_values() {
        return value.to_owned();
    }
    let one = |text: &str| {
        let is_it = |known: &&clap::builder::PossibleValue| {
            known.get_name_and_aliases().any(|name| is_same_name(name, text.trim()))
        };
        known.iter().find(is_it).map_or_else(|| text.to_owned(), |known| known.get_name().to_owned())
    };
    value.split(',').map(one).collect::<Vec<_>>().join(",")
}
