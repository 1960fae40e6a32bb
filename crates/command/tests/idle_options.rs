//! Exactly the options without effect are reported: each of the table's rows with and without it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use headstart_carriers::ALL as CARRIERS;
use headstart_study::dependencies::{DEPENDENCIES, Dependency, NONE, idle};
use headstart_study::progress::{Progress, Work};
use headstart_study::runner::{self, Job, JobResult};
use headstart_study::schemes;
use headstart_study::settings::Settings;
use headstart_study::setup::{SchemeMix, Setup};

const BASE: &str = "--rate 9mbit --rtt 30ms --buffer 20kB --load 70% --loss 3% --duration 5s --drain 5s";

fn setup(race: &str, example: &str, trace: &Path) -> Setup {
    // The example's value of an option replaces that of the race.
    let is_set =
        |option: &str| [race, example].iter().any(|words| words.split(' ').any(|word| word == option));
    let base: Vec<&str> = BASE.split(' ').collect();
    let base = base.chunks(2).filter(|pair| !is_set(pair[0])).flatten().copied();
    let race: Vec<&str> = race.split(' ').collect();
    let example: Vec<&str> = example.split(' ').collect();
    let of_example = example.first().copied().filter(|name| name.starts_with("--"));
    let race = race.iter().enumerate().filter(|(at, word)| {
        let name = if word.starts_with("--") { word } else { race[at.saturating_sub(1)] };
        of_example != Some(name)
    });
    let race: Vec<&str> = race.map(|(_, word)| *word).collect();
    let trace = trace.to_str().expect("UTF-8");
    let words = base.chain(race).chain(example).filter(|word| !word.is_empty());
    let words = words.map(|word| if word == "TRACE" { trace } else { word });
    let words: Vec<&str> = words.collect();
    Settings::parse(CARRIERS, words.iter().copied()).unwrap_or_else(|error| panic!("{words:?}: {error:#}"))
}

/// All results of a run.
fn result(setup: &Setup) -> String {
    let tested = setup
        .run
        .schemes()
        .first()
        .map_or_else(|| schemes::find("halfback").expect("it is there"), |name| name.0);
    let job = Job {
        mix: SchemeMix { tested, beside: None },
        load: setup.workload.load,
        seed: 1,
        look_at: None,
        is_checked: false,
    };
    let result =
        runner::run(setup, &job, None, &Progress::new("", Work::default()).run(0.0)).expect("it runs");
    // A table of records has a size and hits though no scheme reads it.
    let result = JobResult { history_bytes_per_peer: 0, ..result };
    let text = serde_json::to_string(&result).expect("it can be written");
    let parts = text.split("\"history_hits\":");
    parts.map(|part| part.trim_start_matches(|digit: char| digit.is_ascii_digit())).collect()
}

/// Written once: tests run at the same time, and one must not read a file that another is writing.
static TRACE: LazyLock<PathBuf> = LazyLock::new(|| {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("idle-options.trace");
    // Two opportunities in three milliseconds: 8 Mbit/s.
    let lines: String =
        (1..=9000).filter(|millis| millis % 3 != 0).map(|millis| format!("{millis}\n")).collect();
    fs::write(&file, lines).expect("a file can be written");
    file
});

fn trace() -> PathBuf {
    TRACE.clone()
}

fn is_built(words: &str) -> bool {
    cfg!(feature = "quic") || !words.contains("--transport quic")
}

#[test]
fn an_option_is_reported_as_without_effect_if_and_only_if_it_has_none() {
    let trace = trace();
    let mut wrong = vec![];
    for Dependency { option, idle: place, example, races, .. } in DEPENDENCIES {
        for (race, is_idle) in
            races.iter().zip([true, false]).filter(|(race, _)| **race != NONE && is_built(race))
        {
            let with = setup(race, example, &trace);
            let notes = idle(&with, &[(*option).to_owned()], false);
            let expected = format!("--{option} has no effect {place}");
            if notes.contains(&expected) != is_idle {
                wrong.push(format!("{race} {example}: said {notes:?}"));
            }
            if (result(&with) == result(&setup(race, "", &trace))) != is_idle {
                wrong.push(format!(
                    "{race}: {example} changes {}",
                    if is_idle { "results" } else { "nothing" }
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A condition that a race meets is not named as missing.
#[test]
fn the_reason_holds_where_one_of_two_conditions_is_met() {
    for (race, example, expected) in [
        (
            "--transport quic --attack flood",
            "--attack-requests 200",
            "without --attack in the simulator's TCP model",
        ),
        (
            "--routers target --schemes iw10",
            "--router-share 10%",
            "without --routers share, target or extreme and a",
        ),
        (
            "--routers extreme --schemes iw10",
            "--router-extras none",
            "without --routers extreme and a scheme that",
        ),
        ("--pages archive2014 --size internet", "--cap 30kB", "without flows of a distribution of sizes"),
    ] {
        if !is_built(race) {
            continue;
        }
        let option = example.trim_start_matches('-').split(' ').next().unwrap_or_default().to_owned();
        let notes = idle(&setup(race, example, &trace()), &[option], false);
        assert!(notes.len() == 1 && notes[0].contains(expected), "{race} {example}: {notes:?}");
    }
}

#[test]
fn every_scheme_states_its_use_of_hints_history_routers_and_pacing() {
    let trace = trace();
    let mut wrong = vec![];
    let families = headstart_startup::catalogue::families().iter().map(|family| family.about().name);
    let by_history = ["halfback(burst-by-history=on)", "halfback(threshold-by-history=on)"];
    for scheme in families.chain(by_history) {
        let race = format!("--schemes {scheme}");
        for (option, example) in [
            ("hint", "--hint 30%"),
            ("history", "--history 1"),
            ("record-limited", "--record-limited"),
            ("routers", "--routers target"),
            ("quantum", "--quantum 8"),
        ] {
            let with = setup(&race, example, &trace);
            let is_said = !idle(&with, &[option.to_owned()], false).is_empty();
            if is_said && result(&with) != result(&setup(&race, "", &trace)) {
                wrong.push(format!("{race}: {example} is said to change nothing"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn options_without_effect_on_a_single_flow_are_reported() {
    let (trace, scheme) = (trace(), schemes::find("wise-start").expect("it is there"));
    let alone = |setup: &Setup| format!("{:?}", runner::run_alone(setup, scheme).expect("it runs"));
    let plain = setup("", "", &trace);
    for example in ["--load 10%", "--background 3", "--long-share 20%", "--peers 2", "--history 1"] {
        let with = setup("", example, &trace);
        let option = example.trim_start_matches('-').split(' ').next().unwrap_or_default().to_owned();
        let notes = idle(&with, std::slice::from_ref(&option), true);
        assert_eq!(notes, [format!("--{option} has no effect without --flow: nothing else is on the path")]);
        assert_eq!(alone(&plain), alone(&with), "{example}");
    }
    assert_ne!(alone(&plain), alone(&setup("", "--size 20kB", &trace)));
}
