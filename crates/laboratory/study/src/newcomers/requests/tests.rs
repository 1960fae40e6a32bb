use super::*;
use crate::schemes;
use crate::settings::prepared;
use clap::{Command, FromArgMatches};

fn setup(text: &str) -> Setup {
    let common = "path = { rate = \"8 Mbit/s\", rtt = \"50 ms\", buffer = \"50 ms\" }\n\
        transport = { receive-window = \"4 MB\", probe = \"quic\" }\n";
    let workload = format!("workload = {{ size = \"70 kB\", long-scheme = \"google-quic\", {text} }}\n");
    prepared("newcomer-requests", &format!("{common}{workload}run = {{ duration = \"60 s\" }}")).setup
}

fn params(words: &str) -> RequestParams {
    let command = RequestParams::augment_args(Command::new(""));
    let matches = command.try_get_matches_from(format!("_ {words}").split_whitespace()).expect("parameters");
    RequestParams::from_arg_matches(&matches).expect("parameters")
}

fn finished_run(setup: &Setup, words: &str, mix: SchemeMix, seed: u64) -> FinishedRun {
    FinishedRun::run(&params(words), &Case { setup, mix, seed }).expect("runs")
}

fn run(setup: &Setup, words: &str, mix: SchemeMix, seed: u64) -> Measured {
    params(words).run(&Case { setup, mix, seed }).expect("runs")
}

fn mix(name: &str) -> SchemeMix {
    SchemeMix { tested: schemes::find(name).expect("a scheme"), beside: None }
}

fn number(measured: &Measured, name: &str) -> f64 {
    measured.numbers.iter().find(|(other, _)| other == name).unwrap_or_else(|| panic!("no {name}")).1
}

#[test]
fn a_newcomer_on_an_empty_path_takes_its_round_trip_and_its_bytes() {
    let found = run(&setup("background = 0"), "", mix("blitzstart"), 1);
    // 70 kB with headers at 8 Mbit/s are 73 ms, and the window of a BDP leaves over 75 % of an RTT.
    let request = number(&found, "request");
    assert!((100.0..200.0).contains(&request), "{request} ms");
    assert_eq!((number(&found, "lost"), number(&found, "inflation")), (0.0, 0.0));
    assert!(!number(&found, "fairness").is_finite(), "there is no long flow");
}

#[test]
fn every_byte_is_accounted_to_its_group() {
    let finished = finished_run(&setup("background = 2"), "--newcomers 3", mix("google-quic"), 1);
    assert_eq!(finished.newcomers().count(), 3);
    let (from, to) = finished.time_span();
    let wire = finished.deliveries.bytes(TESTED, from - Span::from_secs(1), to);
    assert!((3 * 70_000..3 * 90_000).contains(&wire), "{wire} bytes of newcomers");
    let long = finished.deliveries.bytes(LONG, from - BEFORE, from) as f64 / 5e6;
    assert!((0.97..=1.001).contains(&long), "long flows fill the link: {long}");
}

#[test]
fn a_run_ends_soon_after_its_newcomers() {
    let finished = finished_run(&setup("background = 1"), "", mix("google-quic"), 1);
    let (_, to) = finished.time_span();
    let last = finished.deliveries.delivered.last().expect("packets").0;
    assert!(last < to + Span::from_secs(12), "{last:?} is long after {to:?}");
    assert!(finished.deliveries.reports.iter().all(|report| report.completed_at.is_some()));
}

#[test]
fn the_same_seed_is_the_same_contest_and_another_enters_at_another_moment() {
    let setup = setup("background = 1");
    let numbers = |seed| {
        let found = run(&setup, "", mix("blitzstart"), seed);
        found.numbers.into_iter().filter(|(_, value)| value.is_finite()).collect::<Vec<_>>()
    };
    assert_eq!(numbers(1), numbers(1));
    assert_ne!(numbers(1), numbers(2));
}

#[test]
fn a_trace_picks_by_quantile_and_shows_both_flows() {
    let setup = setup("background = 1");
    let shown = |pick: &str| run(&setup, &format!("--candidates 5 --quantile {pick}"), mix("google-quic"), 1);
    let (fastest, slowest) = (shown("0%"), shown("100%"));
    assert!(number(&fastest, "request") < number(&slowest, "request"));
    assert!(number(&fastest, "long/100") > 7.0, "before the request the long flow has the link");
    let peak = (0..STEPS).map(|n| number(&fastest, &format!("newcomer/{}", n * 10))).fold(0.0, f64::max);
    assert!((0.5..=8.01).contains(&peak), "{peak} Mbit/s");
}
