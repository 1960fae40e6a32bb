//! The same scenarios over noq and another stack: the same decisions, and the wire within a
//! distance. The results are a table of a document.

use std::path::{Path, PathBuf};

use headstart_adapter::StartReport;
use headstart_startup::catalogue;
use headstart_startup::prior::{Access, Hint};
use headstart_units::{Rate, Span, Time};

use crate::on_noq;
use crate::scenario::{CLIENT, Outcome, RATE, RTT, Scenario};

/// A stack that is compared with noq.
pub struct Stack {
    pub name: &'static str,
    pub run: fn(&Scenario, &str) -> Outcome,
    /// Why it refuses a scheme, if it does.
    pub refusal: fn(&str) -> Option<&'static str>,
    /// Most packets by which it is ahead of noq in a first flight.
    pub ahead: usize,
    /// Most packets by which it is behind noq in a first flight.
    pub behind: usize,
    /// True if its clients acknowledge as noq's do, so that schemes decide alike after that, too.
    pub acknowledges_alike: bool,
    /// Most of noq's time in the scenarios without losses or other events.
    pub slowest: f64,
    /// Path of the program that compares, from the root.
    pub program: &'static str,
}

pub fn scenarios() -> Vec<Scenario> {
    let record = Some((RATE, RTT));
    let hint = Some(Hint { bandwidth: RATE, access: Access::Dsl });
    let new = Scenario::new;
    let known = |name, size| Scenario { record, hint, ..new(name, size) };
    let millis = Span::from_millis;
    vec![
        new("cold", 100_000),
        known("known peer", 100_000),
        Scenario { record: Some((RATE, millis(200))), ..new("stale record", 100_000) },
        Scenario { record: Some((Rate::from_mbit_per_sec(125), RTT)), ..new("wrong record", 500_000) },
        Scenario { hint, ..new("hint", 100_000) },
        Scenario { losses: vec![20, 21, 50], ..known("losses", 100_000) },
        Scenario { losses: vec![84, 85], ..known("lost tail", 100_000) },
        Scenario {
            answers: vec![(millis(0), 5_000); 8].into_iter().chain([(millis(0), 100_000)]).collect(),
            ..known("application limit", 0)
        },
        Scenario {
            answers: vec![(millis(0), 20_000), (millis(200), 100_000), (millis(20), 300_000)],
            ..known("several answers", 0)
        },
        Scenario {
            migration: Some((Time::from_millis(120), (CLIENT.ip(), 11_000).into())),
            ..known("another port", 500_000)
        },
        Scenario {
            migration: Some((Time::from_millis(120), ([10, 0, 0, 9], 11_000).into())),
            ..known("another address", 500_000)
        },
    ]
}

/// Schemes that are compared by default, and those found by name.
fn schemes() -> Vec<String> {
    let others = ["bbr-v3", "prague", "google-quic", "halfback(additional=0%)"];
    let all = catalogue::all().into_iter().map(|entry| entry.name.to_string());
    all.chain(others.iter().filter(|name| catalogue::find(name).is_ok()).map(|&name| name.to_owned()))
        .collect()
}

/// Everything that was decided when the scheme began, as one line.
fn plan(report: &StartReport) -> String {
    format!(
        "{} from {} known {} refused {:?} {:?} burst {} flights {} migrated {}",
        report.arm.name(),
        report.source.name(),
        report.known.is_some(),
        report.refusal,
        report.nothing_to_gain,
        report.burst.get(),
        report.flights,
        report.migrated,
    )
}

/// Decisions at the start, and what the scheme did afterwards.
fn decisions(report: &StartReport) -> String {
    let phases: Vec<_> = report.phases.iter().map(|(_, phase)| *phase).collect();
    format!("{} phases {phases:?} record {:?}", plan(report), report.record_outcome)
}

/// Most packets by which the second is ahead, and behind, in the RTT after its first packet.
fn distance(first: &Outcome, second: &Outcome) -> (usize, usize) {
    let left = |outcome: &Outcome| -> Vec<Span> {
        let begun = outcome.departures.first().copied().unwrap_or_default();
        let after = outcome.departures.iter().map(|at| at.since(begun));
        after.take_while(|&after| after < RTT - Span::from_millis(1)).collect()
    };
    let (first, second) = (left(first), left(second));
    let by = |departures: &[Span], at: Span| departures.iter().filter(|&&it| it <= at).count();
    let times = first.iter().chain(&second);
    let counts: Vec<_> = times.map(|&at| (by(&first, at), by(&second, at))).collect();
    let ahead = counts.iter().map(|(one, other)| other.saturating_sub(*one)).max();
    let behind = counts.iter().map(|(one, other)| one.saturating_sub(*other)).max();
    (ahead.unwrap_or(0), behind.unwrap_or(0))
}

/// The reason why a scheme has no row in the table, or None.
fn reason(scheme: &str, stack: &Stack) -> Option<&'static str> {
    let on_noq = headstart_quic::Choice::find(scheme);
    let noq = match &on_noq {
        Err(headstart_quic::ChoiceError::Unsupported { .. }) => Some("not compared, refused on noq"),
        Err(error) => panic!("{scheme}: {error}"),
        Ok(choice) if choice.scheme().is_none() => Some("not compared, the stack's own on noq"),
        Ok(choice) if choice.needs_duplicate_sender() => Some("not compared, copies at the socket on noq"),
        Ok(_) => None,
    };
    (stack.refusal)(scheme).or(noq)
}

/// A scheme's row of the table.
fn row(scheme: &str, stack: &Stack) -> String {
    let scenarios = scenarios();
    let (mut different, mut slowest, mut known) = (vec![], (0.0, ""), (0, 0, 0.0));
    for scenario in &scenarios {
        let (noq, other) = (on_noq::run(scenario, scheme), (stack.run)(scenario, scheme));
        let what = format!("{scheme}, {}:\n{}\n{}", scenario.name, noq.report, other.report);
        assert_eq!(other.completed.len(), scenario.answers.len(), "all answers arrive: {what}");
        assert!(is_near(noq.report.planned.get(), other.report.planned.get()), "{what}");
        let paces = [&noq, &other].map(|it| it.report.pace.map_or(0, Rate::as_bytes_per_sec));
        assert!(is_near(paces[0], paces[1]), "{what}");
        let [one, two] = [&noq, &other].map(|it| decisions(&it.report));
        let (ahead, behind) = distance(&noq, &other);
        let ratio = other.completion().as_millis_f64() / noq.completion().as_millis_f64();
        if one != two {
            different.push(scenario.name);
        }
        if ratio > slowest.0 {
            slowest = (ratio, scenario.name);
        }
        if scenario.name == "known peer" {
            known = (ahead, behind, ratio);
        }
        // Nothing but the pacer is between a plan and the wire before the first acknowledgement.
        let is_open = ["cold", "known peer", "stale record", "hint"].contains(&scenario.name);
        let [one, two] =
            if stack.acknowledges_alike { [one, two] } else { [&noq, &other].map(|it| plan(&it.report)) };
        assert!(!is_open || one == two, "the same decisions: {one}\n{two}\n{what}");
        let is_close = ahead <= stack.ahead && behind <= stack.behind;
        assert!(!is_open || is_close, "+{ahead}, -{behind} packets: {what}");
        assert!(!is_open || ratio <= stack.slowest, "{ratio} of noq's time: {what}");
    }
    let same = scenarios.len() - different.len();
    let different =
        if different.is_empty() { String::new() } else { format!("; not: {}", different.join(", ")) };
    let (ahead, behind, ratio) = known;
    format!(
        "| `{scheme}` | {same} of {}{different} | {ahead}, {behind} | {ratio:.2} | {:.2} ({}) |",
        scenarios.len(),
        slowest.0,
        slowest.1,
    )
}

/// Within a percent: the handshakes are not equally long to the microsecond.
fn is_near(one: u64, other: u64) -> bool {
    one.abs_diff(other) * 100 <= one.max(other)
}

/// The page above the folder of the package that is tested, which is not the same for both stacks.
fn page() -> PathBuf {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders.map(|it| it.join("docs/adapters.md")).find(|it| it.exists()).expect("docs/adapters.md")
}

/// Compares the stack with noq, and the table with the document's. With `HEADSTART_WRITE_DOCS` in
/// the environment it writes the table instead.
pub fn compare(stack: &Stack) {
    let mut table = format!(
        "| scheme | {}: decisions as on noq | packets ahead, behind | time, of noq's | the most |\n\
         |---|---|--:|--:|---|\n",
        stack.name,
    );
    let mut left_out: Vec<(&str, String)> = vec![];
    for scheme in schemes() {
        let Some(reason) = reason(&scheme, stack) else {
            table += &row(&scheme, stack);
            table.push('\n');
            continue;
        };
        match left_out.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => *names += &format!(", `{scheme}`"),
            None => left_out.push((reason, format!("`{scheme}`"))),
        }
    }
    table += "\n| without a row | reason |\n|---|---|\n";
    for (reason, names) in left_out {
        table += &format!("| {names} | {reason} |\n");
    }
    let text = std::fs::read_to_string(page()).expect("docs/adapters.md");
    let begin = format!("<!-- Written by {} -->\n", stack.program);
    let (before, rest) = text.split_once(&begin).expect("the table's begin");
    let (found, after) = rest.split_once("<!-- end -->\n").expect("the table's end");
    if std::env::var_os("HEADSTART_WRITE_DOCS").is_some() {
        let text = format!("{before}{begin}{table}<!-- end -->\n{after}");
        return std::fs::write(page(), text).expect("docs/adapters.md is writable");
    }
    assert_eq!(found, table, "write it with HEADSTART_WRITE_DOCS=1");
}
