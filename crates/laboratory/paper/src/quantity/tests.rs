//! Quantities against numbers that can be reckoned with in the head.

use super::*;
use crate::plan;
use headstart_study::study::Numbers;

/// Two schemes on three loads with two seeds: completion times that are easy to compute.
pub(crate) const PLAN: &str = r#"
    title = "A figure"
    source = "Figure 1"
    shows = "something"
    schemes = ["TCP", "TCP-10"]
    [sweep]
    load = ["10 %", "20 %", "30 %"]
"#;

pub(crate) fn made_up(plan: &Plan) -> Results {
    // By load, then scheme, then seed.
    let times = [
        [[400.0, 420.0], [200.0, 220.0]],
        [[500.0, 500.0], [300.0, 340.0]],
        [[1000.0, 900.0], [1200.0, 700.0]],
    ];
    let runs =
        times.iter().flatten().flatten().map(|time| Numbers::from([("mean".to_owned(), *time)])).collect();
    Results::new(plan, 2, runs)
}

fn value(text: &str) -> Interval {
    let plan = plan::tests::plan(PLAN, false).expect("fine");
    let results = made_up(&plan);
    let text: QuantityText = toml::from_str(text).expect(text);
    let quantity = Quantity::read(text, &plan, false).expect("fine");
    quantity.value(&Scope { plan: &plan, results: &results, variant: 0, scheme: None, at: &[], draw: None })
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "found {found}, expected {expected}");
}

#[test]
fn a_mean_is_that_of_its_seeds() {
    let found = value("measure = \"mean\"\nscheme = \"TCP\"\nat = { load = \"10 %\" }");
    close(found.value, 410.0);
    // Student's t of one degree of freedom times a standard error of 10.
    assert!((found.half_width() - 127.06).abs() < 0.01, "{found:?}");
}

#[test]
fn a_quotient_is_shown_as_asked_for() {
    let with = |shown: &str| {
        value(&format!(
            "measure = \"mean\"\nscheme = \"TCP-10\"\nat = {{ load = \"10 %\" }}\nover = {{ scheme = \"TCP\" }}\nas = \"{shown}\""
        ))
    };
    close(with("ratio").value, 210.0 / 410.0);
    close(with("reduction").value, 100.0 * (1.0 - 210.0 / 410.0));
    close(with("change").value, 100.0 * (210.0 / 410.0 - 1.0));
    close(with("difference").value, -200.0);
    let reduction = with("reduction");
    assert!(reduction.low <= reduction.value && reduction.value <= reduction.high);
}

#[test]
fn points_left_open_become_one_number() {
    let with = |across: &str| {
        value(&format!(
            "measure = \"mean\"\nscheme = \"TCP-10\"\nover = {{ scheme = \"TCP\" }}\nas = \"change\"\nacross = \"{across}\""
        ))
    };
    let single = [100.0 * (210.0 / 410.0 - 1.0), 100.0 * (320.0 / 500.0 - 1.0), 0.0];
    close(with("mean").value, single.iter().sum::<f64>() / 3.0);
    close(with("max").value, 0.0);
    assert!(value("measure = \"mean\"\nscheme = \"TCP\"").value.is_nan(), "open points and no word how");
}

#[test]
fn over_may_name_another_point() {
    close(
        value("measure = \"mean\"\nscheme = \"TCP\"\nat = { load = \"30 %\" }\nover = { at = { load = \"10 %\" } }\nas = \"difference\"").value,
        540.0,
    );
}

/// Results in which some seeds lack a number at some points: by load, then scheme, then seed.
fn with_holes(text: &str) -> Interval {
    let plan = plan::tests::plan(PLAN, false).expect("fine");
    let lacking = f64::NAN;
    let times = [
        [[400.0, 420.0, 440.0], [200.0, 220.0, 240.0]],
        [[lacking, 500.0, 540.0], [300.0, lacking, 340.0]],
        [[1000.0, lacking, 900.0], [1200.0, 700.0, 800.0]],
    ];
    let numbers = |time: &f64| match time.is_nan() {
        true => Numbers::new(),
        false => Numbers::from([("mean".to_owned(), *time)]),
    };
    let results = Results::new(&plan, 3, times.iter().flatten().flatten().map(numbers).collect());
    let text: QuantityText = toml::from_str(text).expect(text);
    let quantity = Quantity::read(text, &plan, false).expect("fine");
    let scope = Scope { plan: &plan, results: &results, variant: 0, scheme: None, at: &[], draw: None };
    let _ = quantity.by_seed(&scope);
    for draw in [[0, 0, 0], [1, 1, 1], [2, 1, 0]] {
        let drawn = Scope { draw: Some(&draw), ..scope };
        let _ = (quantity.value(&drawn), scope.crossing(&quantity, "TCP", "load"));
    }
    quantity.value(&scope)
}

#[test]
fn seeds_that_lack_a_number_are_left_out_of_both_sides() {
    let at = |load: &str, shown: &str| {
        let over = format!("over = {{ scheme = \"TCP\" }}\nas = \"{shown}\"");
        with_holes(&format!("measure = \"mean\"\nscheme = \"TCP-10\"\nat = {{ load = \"{load}\" }}\n{over}"))
    };
    // The third seed alone has both.
    close(at("20 %", "ratio").value, 340.0 / 540.0);
    assert!(at("20 %", "ratio").low.is_nan(), "one pair has no interval");
    close(at("30 %", "ratio").value, 2000.0 / 1900.0);
    close(at("30 %", "difference").value, 50.0);
    // Pairs of 200 and -100: a mean of 50 with a standard error of 150.
    assert!((at("30 %", "difference").half_width() - 12.706 * 150.0).abs() < 0.1);
}

#[test]
fn seeds_that_lack_a_number_at_one_point_have_none_across_them() {
    for across in ["mean", "max"] {
        let found = with_holes(&format!("measure = \"mean\"\nscheme = \"TCP\"\nacross = \"{across}\""));
        close(found.value, if across == "max" { 950.0 } else { (420.0 + 520.0 + 950.0) / 3.0 });
        assert!(found.low.is_nan(), "the third seed alone has all: {found:?}");
    }
    let one = with_holes("measure = \"mean\"\nscheme = \"TCP-10\"\nacross = \"mean\"");
    // The first seed's 1700 / 3 and the third's 1380 / 3.
    assert!((one.half_width() - 12.706 * 160.0 / 3.0).abs() < 0.1, "{one:?}");
    for rule in ["own", "absolute", "reference"] {
        let found = with_holes(&format!("measure = \"capacity.{rule}\"\nscheme = \"TCP-10\""));
        assert!(found.low <= found.value && found.value <= found.high, "{rule}: {found:?}");
    }
}

#[test]
fn capacities_follow_the_three_rules() {
    let with =
        |rule: &str, scheme: &str| value(&format!("measure = \"capacity.{rule}\"\nscheme = \"{scheme}\""));
    // TCP: 410, 500, 950; TCP-10: 210, 320, 950.
    for (rule, scheme, expected, low, high) in [
        ("own", "TCP", 30.0, 30.0, 30.0),
        ("own", "TCP-10", 20.0, 20.0, 30.0),
        ("absolute", "TCP-10", 30.0, 20.0, 30.0),
        ("reference", "TCP", 0.0, 0.0, 0.0),
        ("reference", "TCP-10", 30.0, 30.0, 30.0),
    ] {
        let found = with(rule, scheme);
        assert_eq!((found.value, found.low, found.high), (expected, low, high), "{rule} {scheme}");
    }
    close(
        value("measure = \"capacity.own\"\nscheme = \"TCP-10\"\nover = { scheme = \"TCP\" }").value,
        2.0 / 3.0,
    );
}

#[test]
fn curves_cross_between_two_points() {
    let plan = plan::tests::plan(PLAN, false).expect("fine");
    let results = made_up(&plan);
    let text: QuantityText = toml::from_str("measure = \"mean\"\nscheme = \"TCP-10\"").expect("fine");
    let quantity = Quantity::read(text, &plan, false).expect("fine");
    let context = Scope { plan: &plan, results: &results, variant: 0, scheme: None, at: &[], draw: None };
    let found = context.crossing(&quantity, "TCP", "load");
    // Pooled, level at 30 % is no crossing; the first seed is -40 % at 20 %, +20 % at 30 %.
    assert!(found.value.is_nan(), "{found:?}");
    close(found.low, 20.0 + 10.0 * 0.4 / 0.6);
}

#[test]
fn mistakes_are_reported() {
    let plan = plan::tests::plan(PLAN, false).expect("fine");
    for (text, part) in [
        ("measure = \"median\"\nscheme = \"TCP\"", "found `median`"),
        ("measure = \"capacity\"\nscheme = \"TCP\"", "found `capacity`"),
        ("measure = \"capacity.best\"\nscheme = \"TCP\"", "expected capacity.own"),
        ("measure = \"mean\"\nscheme = \"JumpStart\"", "expected one of TCP, TCP-10"),
        ("measure = \"mean\"", "no key `scheme`"),
        ("measure = \"mean\"\nscheme = \"TCP\"\nat = { load = \"15 %\" }", "at.load: found `15 %`"),
        ("measure = \"mean\"\nscheme = \"TCP\"\nat = { rtt = \"15 ms\" }", "not swept, expected one of load"),
        ("measure = \"mean\"\nscheme = \"TCP\"\nmix = \"mixed\"", "mix: found Mixed"),
        ("measure = \"mean\"\nscheme = \"TCP\"\nas = \"change\"", "without `over`"),
    ] {
        let read: QuantityText = toml::from_str(text).expect(text);
        let error = format!("{:#}", Quantity::read(read, &plan, false).expect_err(text));
        assert!(error.contains(part), "{text}: {error}");
    }
}
