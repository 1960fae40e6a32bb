//! `headstart measure downlink`: estimates of this machine's downlink, and the hint that it would
//! send to a server.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use headstart_downlink::estimate::plausible;
use headstart_downlink::{Answer, Network, Past, Report, Survey, Unavailable};
use headstart_host::unix_now;
use headstart_startup::hint::Steps;
use headstart_startup::prior::{Access, Hint};
use headstart_units::{Rate, Span};
use serde_json::{Value, json};

use super::format::Format;
use super::terminal::print;
use headstart_report::errors::Refuse as _;
use headstart_report::table::{Cell, Column, Table};

/// Options of `headstart measure downlink`.
#[derive(Args, Clone, Debug)]
pub struct DownlinkArgs {
    /// The rate of the access line, in place of all estimates: `50 Mbit/s`
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub rate: Option<Rate>,
    /// Technology of the access line: unknown, ethernet, dsl, cable, wifi, 3g, lte
    #[arg(long, value_name = "NAME", requires = "rate", default_value = "unknown")]
    pub access: Access,
    /// Steps to which the hint is rounded, so that it does not identify you
    #[arg(long, value_enum, default_value_t)]
    pub steps: StepsName,
    /// File with the rates of networks [default: headstart/networks.json in your state folder]
    #[arg(long, value_name = "FILE")]
    pub networks: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

/// Rounding of a hint.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum StepsName {
    /// Ten steps to a decade: 10, 12.5, 16, 20 ...
    #[default]
    Ten,
    /// Five steps to a decade: 10, 16, 25 ...
    Five,
    /// As estimated; identifies you
    Exact,
}

impl StepsName {
    const fn steps(self) -> Steps {
        match self {
            Self::Ten => Steps::Ten,
            Self::Five => Steps::Five,
            Self::Exact => Steps::Exact,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Ten => "ten",
            Self::Five => "five",
            Self::Exact => "exact",
        }
    }
}

fn rate(text: &str) -> Result<Rate, String> {
    text.parse().map_err(|error: headstart_units::ParseError| error.to_string()).and_then(plausible)
}

/// Queries every estimator and prints the answers.
pub fn run(args: &DownlinkArgs) -> anyhow::Result<()> {
    if let Some(file) = &args.networks {
        fs::read(file).with_context(|| format!("--networks {}", file.display())).or_refuse()?;
    }
    let report = ask(args);
    match args.format {
        Format::Json => print(&(serde_json::to_string_pretty(&document(&report, args.steps))? + "\n")),
        other => other.print_table(&table(&report, args.steps)),
    }
}

/// Queries every estimator.
fn ask(args: &DownlinkArgs) -> Report {
    let explicit = args.rate.map(|bandwidth| Hint { bandwidth, access: args.access });
    let past = args.networks.clone().map(Past::new).or_else(Past::of_this_user);
    Survey { explicit, past, ..Survey::default() }.query(unix_now())
}

/// All answers in one table, and the hint.
fn table(report: &Report, steps: StepsName) -> Table {
    let place = report.network.as_ref().map_or_else(|| "no network".to_owned(), describe);
    let mut table = Table::new(
        &format!("Downlink: {place}"),
        [
            Column::text("source"),
            Column::text("says").priority(9),
            Column::text("usable").priority(8),
            Column::text("means").priority(6),
            Column::text("access").priority(7),
            Column::text("age").priority(4),
            Column::text("where from, or why not").priority(9),
        ],
    );
    for Answer { source, outcome } in &report.answers {
        let name = Cell::text(source.name());
        table.row(match outcome {
            Ok(estimate) => [
                name,
                Cell::text(&estimate.reported.to_string()),
                Cell::text(&estimate.expected.to_string()),
                Cell::text(&estimate.meaning.to_string()),
                Cell::text(estimate.access.name()),
                Cell::text(&estimate.age.map_or_else(|| "now".to_owned(), age)),
                Cell::text(&estimate.detail),
            ],
            Err(why) => {
                let [a, b, c, d, e] = [const { Cell::Missing }; 5];
                [name, a, b, c, d, e, Cell::text(&why.to_string())]
            }
        });
    }
    table.note(&verdict(report, steps));
    table
}

/// The hint, in a sentence.
fn verdict(report: &Report, steps: StepsName) -> String {
    let choice = match &report.choice {
        Ok(choice) => choice,
        Err(why) => return format!("{why}. If you know better: --rate \"50 Mbit/s\" --access dsl"),
    };
    let bound = choice.bounded_by.map_or_else(String::new, |by| format!(", bounded by {by}"));
    let from = format!("from {}{bound}: {}, {}", choice.source, choice.hint.bandwidth, choice.hint.access);
    match report.hint(steps.steps()) {
        Some(hint) => format!("Hint: {}, {} ({from})", hint.bandwidth, hint.access),
        None => format!("no hint: too small to be worth one ({from})"),
    }
}

fn describe(network: &Network) -> String {
    format!("{} ({})", network.interface, network.key())
}

fn age(age: Span) -> String {
    let seconds = age.as_nanos() / 1_000_000_000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// All answers and the hint, for machines.
fn document(report: &Report, steps: StepsName) -> Value {
    let network = report.network.as_ref().map(|network| {
        json!({
            "interface": network.interface,
            "kind": format!("{:?}", network.kind).to_lowercase(),
            "gateway": network.gateway,
            "hardware_address": network.hardware_address,
            "key": network.key(),
        })
    });
    let hint = report.choice.as_ref().ok().map(|choice| {
        let hint = report.hint(steps.steps());
        json!({
            "bits_per_s": choice.hint.bandwidth.as_bits_per_sec(),
            "access": choice.hint.access.name(),
            "source": choice.source.name(),
            "bounded_by": choice.bounded_by.map(headstart_downlink::Source::name),
            "steps": steps.name(),
            "hint_bits_per_s": hint.map(|hint| hint.bandwidth.as_bits_per_sec()),
            "hint_hex": hint.and_then(Hint::emit).map(|bytes| hex(&bytes)),
        })
    });
    json!({
        "headstart": headstart_compare::VERSION,
        "network": network,
        "answers": report.answers.iter().map(answer).collect::<Vec<_>>(),
        "hint": hint,
        "why_no_hint": report.choice.as_ref().err().map(ToString::to_string),
    })
}

fn answer(answer: &Answer) -> Value {
    let source = answer.source.name();
    match &answer.outcome {
        Ok(estimate) => json!({
            "source": source,
            "outcome": "estimate",
            "says_bits_per_s": estimate.reported.as_bits_per_sec(),
            "expects_bits_per_s": estimate.expected.as_bits_per_sec(),
            "access": estimate.access.name(),
            "means": estimate.meaning.to_string(),
            "age_s": estimate.age.map(|age| age.as_nanos() / 1_000_000_000),
            "detail": estimate.detail,
        }),
        Err(why) => {
            let (outcome, why) = match why {
                Unavailable::Absent(why) => ("absent", why),
                Unavailable::Refused(why) => ("refused", why),
            };
            json!({ "source": source, "outcome": outcome, "detail": why })
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_downlink::{Estimate, Meaning, NoChoice, Source, choose};

    fn estimate(rate: u64, meaning: Meaning, access: Access) -> Estimate {
        let reported = Rate::from_mbit_per_sec(rate);
        let age = (meaning == Meaning::Measured).then(|| Span::from_secs(12 * 86_400));
        Estimate { reported, expected: reported, access, age, meaning, detail: "somewhere".into() }
    }

    fn report(answers: Vec<Answer>) -> Report {
        let choice = choose(&answers);
        Report { network: None, answers, choice }
    }

    fn measured_behind_a_slow_wire() -> Report {
        let answer = |source, estimate| Answer { source, outcome: Ok(estimate) };
        let absent =
            Answer { source: Source::Explicit, outcome: Err(Unavailable::Absent("nothing given".into())) };
        report(vec![
            absent,
            answer(Source::Past, estimate(103, Meaning::Measured, Access::Dsl)),
            answer(Source::Ethernet, estimate(27, Meaning::Bound, Access::Ethernet)),
        ])
    }

    #[test]
    fn the_table_shows_every_estimate_and_the_one_in_use() {
        let text = table(&measured_behind_a_slow_wire(), StepsName::Ten).terminal(140, false);
        for expected in [
            "103 Mbit/s",
            "measured",
            "12 days",
            "nothing given",
            "Hint: 25 Mbit/s, ethernet (from past, bounded by ethernet: 27 Mbit/s, ethernet)",
        ] {
            assert!(text.contains(expected), "{expected} in\n{text}");
        }
    }

    #[test]
    fn without_a_hint_the_reason_and_the_remedy_are_shown() {
        let text = verdict(&report(vec![]), StepsName::Ten);
        assert_eq!(
            text,
            format!("{}. If you know better: --rate \"50 Mbit/s\" --access dsl", NoChoice::Nothing)
        );
    }

    #[test]
    fn the_json_has_the_encoded_hint() {
        let document = document(&measured_behind_a_slow_wire(), StepsName::Five);
        assert_eq!(document["hint"]["hint_bits_per_s"], 25_000_000);
        assert_eq!(document["hint"]["hint_hex"], "0101000061a8");
        assert_eq!(document["answers"][1]["age_s"], 12 * 86_400);
        assert_eq!(document["answers"][0]["outcome"], "absent");
        assert_eq!(document["why_no_hint"], Value::Null);
    }
}
