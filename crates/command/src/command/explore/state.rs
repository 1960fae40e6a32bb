//! The state of the page: options of a race by name, as they stand in its address.

use anyhow::{Result, bail, ensure};

use headstart_report::figure::Figure;
use headstart_study::options::SchemeName;
use headstart_study::setup::REFERENCE;

/// The options that the page has. None of them names a file: a page must not choose what is read.
pub const OPTIONS: [&str; 24] = [
    "path",
    "rate",
    "rtt",
    "buffer",
    "queue",
    "up-rate",
    "up-buffer",
    "loss",
    "burst-loss",
    "jitter",
    "routers",
    "size",
    "cap",
    "load",
    "background",
    "peers",
    "history",
    "hint",
    "hint-share",
    "hint-lie",
    "schemes",
    "duration",
    "repeats",
    "seed",
];

/// Options that mean nothing to a flow alone on its path.
const NOT_ALONE: [&str; 6] = ["load", "background", "peers", "duration", "schemes", "repeats"];

/// The schemes at first.
pub const SCHEMES: &str = "iw10,jump-start,halfback,wise-start,blitzstart,headstart";
/// Seeds of a race at first.
const REPEATS: u32 = 16;
const MAX_REPEATS: u32 = 64;
/// Width of figures on a phone, in pixels: text of 12 to 13 pixels can be read there.
const NARROW: f64 = 430.0;

/// Options with their values, and the two schemes whose flows are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    options: Vec<(String, String)>,
    pair: [String; 2],
    /// The page is narrow: figures are, too.
    is_narrow: bool,
}

impl State {
    /// The state of these names and values; `pair` has the two schemes whose flows are shown.
    ///
    /// # Errors
    /// If a name is unknown or stands twice, a file is named, or there are too many seeds.
    pub fn new(values: Vec<(String, String)>) -> Result<Self> {
        let pair = [REFERENCE.to_owned(), "halfback".to_owned()];
        let mut state = Self { options: vec![], pair, is_narrow: false };
        let mut has_pair = false;
        for (name, value) in values {
            if name == "narrow" {
                state.is_narrow = true;
                continue;
            }
            if name == "pair" {
                ensure!(!has_pair, "pair: found it twice, expected it once");
                has_pair = true;
                let names: headstart_study::options::SchemeNames =
                    value.parse().map_err(|error| anyhow::anyhow!("pair: {error}"))?;
                let [SchemeName(one), SchemeName(other)] = names.0[..] else {
                    bail!("pair: found {} schemes, expected two", names.0.len());
                };
                state.pair = [one.name.to_string(), other.name.to_string()];
                continue;
            }
            ensure!(
                OPTIONS.contains(&name.as_str()),
                "{name}: found an option that the page does not have, expected one of {}",
                OPTIONS.join(", ")
            );
            ensure!(state.option(&name).is_none(), "--{name}: found it twice, expected it once");
            let is_file = name == "size" && value.to_ascii_lowercase().ends_with(".csv");
            ensure!(
                !is_file,
                "--size: found a file, expected a size or a distribution: the page reads no files"
            );
            state.options.push((name, value));
        }
        if state.option("schemes").is_none_or(|text| text.trim().is_empty()) {
            state.options.retain(|(name, _)| name != "schemes");
            state.options.push(("schemes".to_owned(), SCHEMES.to_owned()));
        }
        if let Some(text) = state.option("repeats") {
            let repeats: Result<u32, _> = text.trim().parse();
            ensure!(
                repeats.is_ok_and(|repeats| repeats <= MAX_REPEATS),
                "--repeats: found {text}, expected a whole number of {MAX_REPEATS} at most on the page"
            );
        }
        Ok(state)
    }

    /// The state of a command line's options, each as `--name=value`.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_words(words: &[String]) -> Result<Self> {
        let pairs = words.iter().filter_map(|word| word.strip_prefix("--")?.split_once('='));
        Self::new(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// The value of an option.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All options with their values.
    #[must_use]
    pub fn options(&self) -> &[(String, String)] {
        &self.options
    }

    /// Width of its figures, in pixels.
    #[must_use]
    pub fn width(&self) -> f64 {
        if self.is_narrow { NARROW } else { Figure::WIDTH }
    }

    /// Number of seeds.
    #[must_use]
    pub fn repeats(&self) -> u32 {
        self.option("repeats").and_then(|text| text.parse().ok()).unwrap_or(REPEATS)
    }

    /// The options of the race with this duration and so many seeds.
    #[must_use]
    pub fn race(&self, duration: &str, repeats: u32) -> Vec<String> {
        let own = self.options.iter().filter(|(name, _)| name != "duration" && name != "repeats");
        let mut words: Vec<String> = own.map(|(name, value)| format!("--{name}={value}")).collect();
        words.push(format!("--duration={duration}"));
        words.push(format!("--repeats={repeats}"));
        words
    }

    /// The options of a sweep of that race over RTTs and sizes.
    #[must_use]
    pub fn sweep(&self, rtts: &[String], sizes: &[String], duration: &str, repeats: u32) -> Vec<String> {
        let mut words = self.race(duration, repeats);
        words.retain(|word| !word.starts_with("--rtt=") && !word.starts_with("--size="));
        words.insert(0, format!("--rtt={}", rtts.join(",")));
        words.insert(1, format!("--size={}", sizes.join(",")));
        words
    }

    /// The arguments of `headstart trace` for the two flows.
    #[must_use]
    pub fn trace(&self) -> Vec<String> {
        let [one, other] = &self.pair;
        let own = self.options.iter().filter(|(name, _)| !NOT_ALONE.contains(&name.as_str()));
        let words = own.map(|(name, value)| format!("--{name}={value}"));
        [one.clone()].into_iter().chain(words).chain([format!("--beside={other}")]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(values: &[(&str, &str)]) -> Result<State> {
        State::new(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_state_is_the_options_of_a_race_and_of_a_trace() {
        let state = state(&[
            ("rate", "20 Mbit/s"),
            ("load", "40 %"),
            ("schemes", "iw10,halfback(additional=25%)"),
            ("pair", "iw10,wise-start"),
            ("repeats", "8"),
        ])
        .expect("fine");
        assert_eq!(
            state.race("20s", 4),
            [
                "--rate=20 Mbit/s",
                "--load=40 %",
                "--schemes=iw10,halfback(additional=25%)",
                "--duration=20s",
                "--repeats=4"
            ]
        );
        assert_eq!(state.trace(), ["iw10", "--rate=20 Mbit/s", "--beside=wise-start"]);
        assert_eq!(state.repeats(), 8);
        let words = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let sweep = state.sweep(&words(&["5ms", "9ms"]), &words(&["10kB"]), "1s", 2);
        assert_eq!(sweep[..3], ["--rtt=5ms,9ms", "--size=10kB", "--rate=20 Mbit/s"]);
    }

    #[test]
    fn files_unknown_names_and_too_many_seeds_are_refused_by_name() {
        for (values, expected) in [
            (&[("har", "/etc/passwd")][..], "har: found an option that the page does not have"),
            (&[("trace", "/etc/passwd")], "trace: found an option that the page does not have"),
            (&[("out", "/tmp")], "out: found an option that the page does not have"),
            (&[("size", "/etc/passwd.CSV")], "--size: found a file"),
            (&[("repeats", "65")], "--repeats: found 65, expected a whole number of 64 at most"),
            (&[("repeats", "99999999999999999999")], "--repeats: found 99999999999999999999, expected"),
            (&[("rate", "1mbit"), ("rate", "2mbit")], "--rate: found it twice"),
            (&[("pair", "iw10")], "pair: found 1 schemes, expected two"),
            (&[("pair", "tahoe,iw10")], "pair: "),
        ] {
            let error = state(values).expect_err(expected).to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
