//! What a command line says, as words again.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

/// The options that were given, each as `--name=value` or `--name`, in their order.
#[must_use]
pub fn given(command: &Command, matches: &ArgMatches) -> Vec<String> {
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

/// Whether somebody typed it.
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
