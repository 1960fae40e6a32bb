//! Plans are read, cut down and refused.

use super::*;
use headstart_study::carrier::Carriers;

pub(crate) const PAPER: &str = r#"
    title = "A paper"
    citation = "Somebody, somewhere"
    about = "Nothing special."
    path = { rtt = "20 ms" }
    run = { duration = "10 s", repeats = 3 }
    [schemes]
    "TCP" = "iw2"
    "TCP-10" = "iw10"
    "JumpStart" = "jump-start"
    [variants.modern]
    about = "as it is"
    [variants.old]
    about = "as it was"
    transport = { detection = "rfc6675" }
"#;

pub(crate) const PLAN: &str = r#"
    title = "A figure"
    source = "Figure 1"
    shows = "something"
    schemes = ["TCP", "TCP-10", "JumpStart"]
    variants = ["modern", "old"]
    [sweep]
    load = ["10 %", "50 %"]
    buffer = ["30 kB", "115 kB"]
    [quick]
    schemes = ["TCP", "TCP-10"]
    variants = ["modern"]
    run = { repeats = 2 }
    sweep = { buffer = ["30 kB"] }
"#;

pub(crate) fn plan(text: &str, is_quick: bool) -> Result<Plan> {
    Plan::read(text, &Paper::read(PAPER)?, is_quick)
}

#[test]
fn a_plan_is_the_product_of_its_lists_and_quick_cuts_it_down() {
    let full = plan(PLAN, false).expect("fine");
    assert_eq!((full.points.len(), full.schemes.len(), full.variants.len()), (4, 3, 2));
    assert_eq!(full.points[1].value("buffer"), Some("115 kB"));
    let setups = full.setups(Carriers::MODEL).expect("fine");
    assert_eq!(setups.len(), 8);
    assert_eq!(setups[4].1.setup.transport.detection, headstart_study::options::DetectionName::Rfc6675);
    assert_eq!(setups[0].1.setup.run.repeats, 3);

    let quick = plan(PLAN, true).expect("fine");
    assert_eq!((quick.points.len(), quick.schemes.len(), quick.variants.len()), (2, 2, 1));
    assert_eq!(quick.setups(Carriers::MODEL).expect("fine")[0].1.setup.run.repeats, 2);
    assert_eq!(quick.axes, full.axes, "claims may name what only the full plan runs");
}

#[test]
fn mistakes_are_reported_with_key_found_and_expected() {
    for (from, to, parts) in [
        ("shows =", "show =", ["show", "unknown field", "expected one of"]),
        ("\"TCP-10\", \"J", "\"TCP-11\", \"J", ["schemes", "`TCP-11`", "TCP, TCP-10, JumpStart"]),
        ("\"50 %\"]", "\"50\"]", ["sweep: load", "found `50`", "a share in percent"]),
        ("load =", "laod =", ["sweep", "laod", "unexpected argument"]),
        ("buffer = [\"30 kB\"]", "buffer = [\"31 kB\"]", ["quick.sweep.buffer", "`31 kB`", "30 kB, 115 kB"]),
        ("repeats = 2", "repeat = 2", ["quick", "run.repeat", "unknown key"]),
        ("[\"modern\"]", "[\"new\"]", ["quick.variants", "`new`", "modern, old"]),
        (
            "shows =",
            "study = \"contests\"\n    shows =",
            ["study", "found `contests`", "expected one of dumbbell"],
        ),
        (
            "shows =",
            "workload = { newcomers = 4 }\n    shows =",
            [
                "workload.newcomers",
                "a parameter of the studies newcomer-throughput, newcomer-requests in a plan of the study dumbbell",
                "expected one of size",
            ],
        ),
        ("load =", "new-rate =", ["sweep", "new-rate", "unexpected argument"]),
    ] {
        let text = PLAN.replace(from, to);
        assert_ne!(text, PLAN, "{from}");
        let error = format!("{:#}", plan(&text, true).expect_err(to));
        for part in parts {
            assert!(error.contains(part), "{to}: {error}");
        }
    }
    let paper = PAPER.replace("run = {", "workload = { newcomers = 4 }\n    run = {");
    let plan_of = |study: &str| {
        let text = PLAN.replace("shows =", &format!("study = \"{study}\"\n    shows ="));
        Plan::read(&text, &Paper::read(&paper).expect("fine"), false)
    };
    plan_of("newcomer-throughput").expect("its own parameter, set for all figures");
    let error = format!("{:#}", plan_of("flow-pair").expect_err("another study's"));
    for part in [
        "paper",
        "newcomers: found a parameter of the studies newcomer-throughput, newcomer-requests",
        "the study flow-pair",
        "start-gap",
    ] {
        assert!(error.contains(part), "{error}");
    }
    let paper = PAPER.replace("\"iw2\"", "\"tahoe\"");
    let error = format!("{:#}", Paper::read(&paper).expect_err("no such scheme"));
    assert!(error.contains("schemes.TCP: found `tahoe`"), "{error}");
}

#[test]
fn swept_values_become_numbers_in_their_unit() {
    for (text, expected) in [
        ("25 %", (25.0, "%")),
        ("115 kB", (115.0, "kB")),
        ("60 ms", (60.0, "ms")),
        ("15 Mbit/s", (15.0, "Mbit/s")),
        ("20", (20.0, "")),
    ] {
        assert_eq!(number_of(text), Some(expected));
    }
    assert_eq!(number_of("rack"), None);
}

#[test]
fn a_plan_with_too_many_points_is_refused() {
    let values: Vec<String> = (0..200).map(|number| format!("\"{} kB\"", number + 1)).collect();
    let more = format!("size = [{0}]\nreceive-window = [{0}]\n[quick]", values.join(", "));
    let error = format!("{:#}", plan(&PLAN.replace("[quick]", &more), false).expect_err("too many"));
    assert!(error.contains("sweep: found 160000 combinations, expected at most 10000"), "{error}");
}

#[test]
fn a_variant_inherits_from_an_earlier_one_and_overrides_it() {
    let text = format!(
        "{PAPER}
        [variants.old-deep]
        about = \"as old, behind a deep buffer, and without PRR\"
        like = \"old\"
        path = {{ buffer = \"1 MB\" }}
        transport = {{ no-prr = true }}
        [variants.deep]
        about = \"as old-deep, with PRR, found by time\"
        like = \"old-deep\"
        transport = {{ no-prr = false, detection = \"rack\" }}"
    );
    let paper = Paper::read(&text).expect("fine");
    let arguments = |at: usize| paper.variants[at].settings.arguments();
    assert_eq!(arguments(2), ["--buffer=1 MB", "--detection=rfc6675", "--no-prr"]);
    assert_eq!(arguments(3), ["--buffer=1 MB", "--detection=rack"], "and what it is like is as it was:");
    assert_eq!(arguments(1), ["--detection=rfc6675"]);
}

#[test]
fn a_variant_cannot_inherit_from_itself_a_later_one_or_an_unknown_one() {
    let like = |first: &str, second: &str| {
        let text = PAPER
            .replace("about = \"as it is\"", &format!("about = \"as it is\"\n{first}"))
            .replace("about = \"as it was\"", &format!("about = \"as it was\"\n{second}"));
        format!("{:#}", Paper::read(&text).expect_err(second))
    };
    for (first, second, parts) in [
        ("", "like = \"old\"", ["variants.old: like", "found the variant `old`", "expected one of modern"]),
        ("", "like = \"new\"", ["variants.old: like", "found the variant `new`", "expected one of modern"]),
        // A circle.
        (
            "like = \"old\"",
            "like = \"modern\"",
            ["variants.modern: like", "found the variant `old`", "none at all"],
        ),
        ("", "like = 1", ["variants.old: like", "found `1`", "expected the name of a variant"]),
        ("", "alike = \"modern\"", ["variants.old", "unknown field `alike`", "expected one of"]),
    ] {
        let error = like(first, second);
        for part in parts {
            assert!(error.contains(part), "{first} {second}: {error}");
        }
    }
}
