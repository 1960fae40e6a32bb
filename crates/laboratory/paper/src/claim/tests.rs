//! Claims are judged and refused.

use super::*;
use crate::run::Results;
use crate::{plan, quantity};
use headstart_study::study::Numbers;

fn claim(text: &str, plan: &Plan) -> Result<Claim> {
    Ok(read(&format!("[[claim]]\nsays = \"it\"\nsource = \"there\"\n{text}"), plan)?.remove(0))
}

fn small_plan() -> Plan {
    plan::tests::plan(quantity::tests::PLAN, false).expect("fine")
}

fn judge(text: &str) -> Finding {
    let plan = small_plan();
    claim(text, &plan).expect(text).judge(&plan, &quantity::tests::made_up(&plan), 0)
}

// Times in the made-up results: TCP 410, 500, 950 and TCP-10 210, 320, 950 at 10, 20, 30 %.
const REDUCTION: &str = "value = { measure = \"mean\", scheme = \"TCP-10\", at = { load = \"10 %\" }, over = { scheme = \"TCP\" }, as = \"reduction\" }\n";

#[test]
fn a_number_holds_within_its_tolerance_and_keeps_its_direction() {
    for (text, verdict) in [
        ("paper = 50\nwithin = 2", Verdict::Wide),
        ("paper = 50\nwithin = 30", Verdict::Holds),
        ("paper = 60\nwithin = 2", Verdict::Direction),
        ("paper = -10\nwithin = 2", Verdict::Differs),
        ("at-least = 48", Verdict::Wide),
        ("at-least = 20", Verdict::Holds),
        ("at-least = 49", Verdict::Direction),
        ("at-least = 40\nat-most = 50", Verdict::Wide),
    ] {
        assert_eq!(judge(&format!("{REDUCTION}{text}")).verdict, verdict, "{text}");
    }
    let shown = judge(&format!("{REDUCTION}paper = 50\nwithin = 2\nunit = \"%\"")).shown;
    assert!(shown.starts_with("48.8 % ["), "{shown}");
    let absolute = "value = { measure = \"mean\", scheme = \"TCP\", at = { load = \"10 %\" } }\npaper = 300\nwithin = 50";
    assert_eq!(judge(absolute).verdict, Verdict::Differs, "a bare number has no direction");
}

#[test]
fn orders_are_reported_as_found() {
    let with = |order: &str| {
        judge(&format!("value = {{ measure = \"mean\", at = {{ load = \"20 %\" }} }}\norder = {order}"))
    };
    assert_eq!(with("[\"TCP-10\", \"TCP\"]").verdict, Verdict::Holds);
    let wrong = with("[\"TCP\", \"TCP-10\"]");
    assert_eq!((wrong.verdict, wrong.shown.as_str()), (Verdict::Differs, "TCP-10 320 < TCP 500"));
}

#[test]
fn crossings_are_found_or_reported_as_missing() {
    let with = |rest: &str| {
        judge(&format!(
            "value = {{ measure = \"mean\", scheme = \"TCP-10\" }}\ncrosses = \"TCP\"\nalong = \"load\"\n{rest}"
        ))
    };
    let missing = with("paper = 25\nwithin = 5");
    assert_eq!((missing.verdict, missing.shown.as_str()), (Verdict::Differs, "never"));
}

#[test]
fn a_crossing_at_another_place_keeps_its_direction() {
    let plan = small_plan();
    // Half of TCP's time at 10 %, 60 % of it at 20 %, a third more at 30 %: level at 20 + 10 * 0.4
    // / (0.4 + 1/3) = 25.5 %.
    let times = [400.0, 200.0, 500.0, 300.0, 900.0, 1200.0];
    let runs = times.iter().map(|time| Numbers::from([("mean".to_owned(), *time)])).collect();
    let results = Results::new(&plan, 1, runs);
    for (rest, verdict) in
        [("paper = 25\nwithin = 1", Verdict::Holds), ("paper = 50\nwithin = 10", Verdict::Direction)]
    {
        let text = format!(
            "value = {{ measure = \"mean\", scheme = \"TCP-10\" }}\ncrosses = \"TCP\"\nalong = \"load\"\n{rest}"
        );
        let claim = claim(&text, &plan).expect(&text);
        assert_eq!(claim.judge(&plan, &results, 0).verdict, verdict, "{rest}");
    }
}

#[test]
fn mistakes_are_reported() {
    let plan = small_plan();
    for (text, part) in [
        ("paper = 50", "no tolerance"),
        ("within = 5", "without `paper`"),
        ("order = [\"TCP\"]", "expected two at least"),
        ("crosses = \"TCP\"\nat-least = 1", "without the key `along`"),
        ("crosses = \"TCP\"\nalong = \"rtt\"\nat-least = 1", "expected an option that the plan sweeps"),
        ("paper = 5\nwithin = 1\nreason = \"x\"", "unknown field `reason`"),
        ("paper = 5\nwithin = 1\nquick = \"maybe\"", "unknown variant `maybe`"),
    ] {
        let error = format!("{:#}", claim(&format!("{REDUCTION}{text}"), &plan).expect_err(text));
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn three_digits_are_shown() {
    for (value, text) in
        [(0.0, "0"), (0.5, "0.5"), (1.0 / 3.0, "0.33"), (12.345, "12.3"), (410.4, "410"), (99.97, "100")]
    {
        assert_eq!(digits(value), text);
    }
}

#[test]
fn the_outcome_on_record_is_what_the_keys_of_a_claim_say() {
    let plan = small_plan();
    for (rest, full, quick) in [
        ("", Outcome::Holds, Outcome::Holds),
        ("differs = \"who knows\"", Outcome::Differs, Outcome::Differs),
        ("differs = \"who knows\"\nquick = \"holds\"", Outcome::Differs, Outcome::Holds),
        ("quick = \"not-run\"", Outcome::Holds, Outcome::NotRun),
    ] {
        let claim = claim(&format!("{REDUCTION}paper = 50\nwithin = 2\n{rest}"), &plan).expect(rest);
        assert_eq!((claim.recorded(false), claim.recorded(true)), (full, quick), "{rest}");
    }
}

// TCP 410, 500, 950 and TCP-10 210, 320, 950 at 10, 20, 30 %.
#[test]
fn a_claim_at_each_of_several_values_is_as_good_as_the_worst() {
    let with = |values: &str| {
        judge(&format!(
            "value = {{ measure = \"mean\", scheme = \"TCP-10\", over = {{ scheme = \"TCP\" }} }}\nat-most = 1.2\neach = {{ load = {values} }}"
        ))
    };
    let fine = with("[\"10 %\", \"20 %\"]");
    assert_eq!(fine.verdict, Verdict::Holds, "{}", fine.shown);
    assert!(fine.shown.starts_with("at 2 of 2 ("), "{}", fine.shown);
    let missed = judge(
        "value = { measure = \"mean\", scheme = \"TCP-10\", over = { scheme = \"TCP\" } }\nat-most = 0.8\neach = { load = [\"10 %\", \"20 %\", \"30 %\"] }",
    );
    assert_eq!(missed.verdict, Verdict::Differs);
    assert!(missed.shown.starts_with("at 2 of 3; not at 30 % (30 %: 1"), "{}", missed.shown);
}

#[test]
fn a_table_is_judged_over_all_its_cells() {
    let text = quantity::tests::PLAN.to_owned() + "buffer = [\"30 kB\", \"115 kB\"]\n";
    let plan = plan::tests::plan(&text, false).expect("fine");
    // TCP takes a second everywhere; TCP-10 half and twice of it by load and buffer.
    let quotients: BTreeMap<(&str, &str), f64> = [
        (("10 %", "30 kB"), 0.5),
        (("10 %", "115 kB"), 0.5),
        (("20 %", "30 kB"), 2.0),
        (("20 %", "115 kB"), 0.5),
        (("30 %", "30 kB"), 2.0),
        (("30 %", "115 kB"), 2.0),
    ]
    .into();
    let runs = plan.points.iter().flat_map(|point| {
        let value = |axis: &str| point.value(axis).expect("swept");
        let quotient = quotients[&(value("load"), value("buffer"))];
        [1000.0, 1000.0, 1000.0 * quotient, 1000.0 * quotient]
            .map(|time| Numbers::from([("mean".to_owned(), time)]))
    });
    let results = Results::new(&plan, 2, runs.collect());
    let judge = |by: &str, paper: &str, bound: &str| {
        let text = format!(
            "value = {{ measure = \"mean\", scheme = \"TCP-10\", over = {{ scheme = \"TCP\" }} }}\n{bound}\ntable = {{ rows = \"load\", columns = \"buffer\", by = \"{by}\", paper = {paper} }}"
        );
        let claim = claim(&text, &plan).map_err(|error| format!("{error:#}"))?;
        Ok::<_, String>(claim.judge(&plan, &results, 0))
    };
    let same = "[[0.5, 0.5], [2, 0.5], [2, 2]]";
    // Twice as large in one cell, half in another, and one is not significant.
    let other = "[[1, 0.5], [1, 0.5], [2, nan]]";
    for (by, paper, expected) in [
        ("error", same, 1.0),
        ("error", other, 2_f64.powf(2.0 / 5.0)),
        ("signs", same, 100.0),
        ("signs", "[[2, 0.5], [2, 0.5], [2, 1]]", 80.0),
    ] {
        let found = judge(by, paper, "at-least = -2").expect(paper);
        assert!((found.ours.value - expected).abs() < 1e-9, "{by} {paper}: {}", found.ours.value);
    }
    for (paper, part) in [
        ("[[0.5, 0.5]]", "expected 3 rows of 2 numbers each"),
        ("[[0.5, 0.5], [0, 1], [1, 1]]", "a quotient of zero or less"),
    ] {
        let error = judge("error", paper, "at-most = 2").expect_err(paper);
        assert!(error.contains(part), "{error}");
    }
}

// The value at 10, 20, 30 %: TCP 410, 500, 950, in each seed as well.
#[test]
fn a_trend_is_the_share_of_pairs_that_rise_less_those_that_fall() {
    let with = |scheme: &str, rest: &str| {
        judge(&format!("value = {{ measure = \"mean\", scheme = \"{scheme}\" }}\ntrend = \"load\"\n{rest}"))
    };
    assert_eq!(with("TCP", "at-least = 0.5").verdict, Verdict::Holds);
    assert_eq!(with("TCP", "at-most = 0").verdict, Verdict::Differs);
    assert_eq!(with("TCP", "at-least = 2").verdict, Verdict::Direction);
    let none = "value = { measure = \"mean\", scheme = \"TCP\" }\ntrend = \"size\"\nat-least = 0";
    let plan = small_plan();
    let error = format!("{:#}", claim(none, &plan).expect_err("no such axis"));
    assert!(error.contains("trend") && error.contains("expected an option that the plan sweeps"), "{error}");
}

#[test]
fn a_peak_is_at_the_largest_of_all_values_that_are_run() {
    let with = |at: &str| {
        judge(&format!(
            "value = {{ measure = \"mean\", scheme = \"TCP\" }}\npeak = {{ along = \"load\", at = {at} }}"
        ))
    };
    assert_eq!(with("[\"30 %\"]").verdict, Verdict::Holds);
    assert_eq!(with("[\"20 %\", \"30 %\"]").verdict, Verdict::Holds);
    let wrong = with("[\"10 %\"]");
    assert_eq!((wrong.verdict, wrong.shown.as_str()), (Verdict::Differs, "most at 30 % (950)"));
    for (within, verdict) in [("300", Verdict::Differs), ("600", Verdict::Holds)] {
        let found = judge(&format!(
            "value = {{ measure = \"mean\", scheme = \"TCP\" }}\npeak = {{ along = \"load\", at = [\"20 %\"], within = {within} }}"
        ));
        assert_eq!((found.verdict, found.shown.as_str()), (verdict, "most at 30 % (950), 500 at 20 %"));
    }
}

#[test]
fn extremes_are_those_of_several_schemes() {
    let with = |key: &str, at_most: &str| {
        judge(&format!(
            "value = {{ measure = \"mean\", at = {{ load = \"20 %\" }}, scheme = \"TCP\" }}\n{key} = [\"TCP\", \"TCP-10\"]\n{at_most}"
        ))
    };
    let (most, least) = (with("most", "at-least = 0"), with("least", "at-least = 0"));
    assert_eq!((most.ours.value, least.ours.value), (500.0, 320.0));
    assert!(
        least.ours.low >= 300.0 && least.ours.high <= 340.0,
        "the interval is that of the seeds: {least:?}"
    );
}

#[test]
fn a_quotient_of_crossings_is_a_number() {
    let text = quantity::tests::PLAN.replace("\"TCP-10\"]", "\"TCP-10\", \"JumpStart\"]");
    let plan = plan::tests::plan(&text, false).expect("fine");
    // Above TCP's 100 at 15 % of load, and at 25 %.
    let times = [[100.0, 90.0, 90.0], [100.0, 110.0, 90.0], [100.0, 130.0, 110.0]];
    let seeds = times.iter().flatten().flat_map(|time| [*time, *time]);
    let runs = seeds.map(|time| Numbers::from([("mean".to_owned(), time)])).collect();
    let results = Results::new(&plan, 2, runs);
    let text = "value = { measure = \"mean\", scheme = \"JumpStart\" }\ncrosses = \"TCP\"\nalong = \"load\"\nover-crossing = \"TCP-10\"\npaper = 1.67\nwithin = 0.01";
    let found = claim(text, &plan).expect("fine").judge(&plan, &results, 0);
    assert_eq!((found.verdict, found.shown.as_str()), (Verdict::Holds, "1.67"));
    let without = text.replace("crosses = \"TCP\"\n", "");
    let error = format!("{:#}", claim(&without, &plan).expect_err("no place to look for"));
    assert!(error.contains("`over-crossing` without the key `crosses`"), "{error}");
}

#[test]
fn an_outcome_that_depends_on_the_seeds_is_undecided_in_the_cut_down_run_alone() {
    let plan = small_plan();
    let text = format!("{REDUCTION}paper = 50\nwithin = 2\nquick = \"undecided\"");
    let claim = claim(&text, &plan).expect(&text);
    for verdict in [Verdict::Holds, Verdict::Wide, Verdict::Differs] {
        assert_eq!(claim.outcome(verdict, true), Outcome::Undecided);
        assert_ne!(claim.outcome(verdict, false), Outcome::Undecided);
    }
    assert_eq!(claim.outcome(Verdict::NotRun, true), Outcome::NotRun);
}
