//! Changes of a path while it runs.

use std::str::FromStr;

use headstart_units::{Rate, Ratio, Span, Time};

/// Settings that take effect at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Since the beginning.
    pub at: Time,
    /// The new settings.
    pub settings: Vec<Setting>,
}

/// One change. Rate and loss apply to the way down; the way back keeps its own unless named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Rate down, and up too where that was not set apart; zero holds all packets.
    Rate(Rate),
    /// Rate up.
    UpRate(Rate),
    /// Round-trip time without queues, half each way.
    Rtt(Span),
    /// Random loss down.
    Loss(Ratio),
    /// Random loss up.
    UpLoss(Ratio),
}

const EXPECTED: &str = "a time and settings without blanks, such as `10s rate=5mbit rtt=80ms loss=1%`";

impl FromStr for Change {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let at = words.next().ok_or_else(|| format!("found nothing, expected {EXPECTED}"))?;
        let at: Span = at.parse().map_err(|_| format!("found `{at}`, expected {EXPECTED}"))?;
        let settings = words.map(setting).collect::<Result<Vec<_>, _>>()?;
        if settings.is_empty() {
            return Err(format!("found `{text}`, expected {EXPECTED}"));
        }
        Ok(Self { at: Time::ZERO + at, settings })
    }
}

fn setting(word: &str) -> Result<Setting, String> {
    let (name, value) = word.split_once('=').ok_or_else(|| format!("found `{word}`, expected {EXPECTED}"))?;
    let refused = |error: headstart_units::ParseError| format!("{name}: {error}");
    let share = |value: &str| {
        let share: Ratio = value.parse().map_err(refused)?;
        if share.of(1000) > 1000 {
            return Err(format!("{name}: found {value}, expected 100% at most"));
        }
        Ok(share)
    };
    match name {
        "rate" => value.parse().map(Setting::Rate).map_err(refused),
        "up-rate" => value.parse().map(Setting::UpRate).map_err(refused),
        "rtt" => {
            let rtt: Span = value.parse().map_err(refused)?;
            if rtt > Span::from_secs(60) {
                return Err(format!("rtt: found {value}, expected a minute at most"));
            }
            Ok(Setting::Rtt(rtt))
        }
        "loss" => share(value).map(Setting::Loss),
        "up-loss" => share(value).map(Setting::UpLoss),
        _ => Err(format!("found `{name}`, expected rate, up-rate, rtt, loss or up-loss")),
    }
}

/// Reads a schedule: a change on each line, empty lines and comments aside.
///
/// # Errors
/// Line and reason, if one is no change.
pub fn read(text: &str) -> Result<Vec<Change>, String> {
    let mut changes = vec![];
    for (line, number) in text.lines().zip(1..) {
        let content = line.split_once('#').map_or(line, |(before, _)| before).trim();
        if !content.is_empty() {
            changes.push(content.parse().map_err(|error| format!("line {number}: {error}"))?);
        }
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_read_line_by_line() {
        let text = "# halves, then goes dark\n10s rate=5mbit loss=1%\n\n 15.5s  rate=0mbit up-rate=0mbit # dark\n20s rtt=80ms\n";
        let changes = read(text).expect("a schedule");
        assert_eq!(
            changes,
            [
                Change {
                    at: Time::from_millis(10_000),
                    settings: vec![
                        Setting::Rate(Rate::from_mbit_per_sec(5)),
                        Setting::Loss(Ratio::percent(1))
                    ],
                },
                Change {
                    at: Time::from_millis(15_500),
                    settings: vec![Setting::Rate(Rate::ZERO), Setting::UpRate(Rate::ZERO)],
                },
                Change { at: Time::from_millis(20_000), settings: vec![Setting::Rtt(Span::from_millis(80))] },
            ]
        );
    }

    #[test]
    fn an_invalid_change_is_refused_with_line_and_reason() {
        for (text, message) in [
            ("10s", "line 1: found `10s`, expected a time and settings"),
            ("\nsoon rate=1mbit", "line 2: found `soon`, expected a time and settings"),
            ("1s rate", "line 1: found `rate`, expected a time and settings"),
            ("1s speed=1mbit", "line 1: found `speed`, expected rate, up-rate, rtt, loss or up-loss"),
            ("1s rate=5", "line 1: rate: found `5`, expected a rate with its unit"),
            ("1s loss=101%", "line 1: loss: found 101%, expected 100% at most"),
            ("1s rtt=2000s", "line 1: rtt: found 2000s, expected a minute at most"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.starts_with(message), "{error}");
        }
    }
}
