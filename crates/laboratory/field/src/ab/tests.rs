use std::fmt::Write as _;
use std::path::Path;

use headstart_quic::gates::Arm;
use headstart_quic::start_report::{FirstAnswer, Tally};
use headstart_quic::{Metrics, StartReport};
use headstart_startup::catalogue::Name;
use headstart_units::{Bytes, Span, Time};

use super::*;

const BOUNDS: Bounds = Bounds { worth: 0.02, most_loss: 0.01, most_harm: 0.05, accepts_unknown_harm: true };

/// Xorshift64*: uniform in (0, 1).
struct Draws(u64);

impl Draws {
    fn of(seed: u64) -> Self {
        Self((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
        (bits as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// A rollout: each peer has a path of its own, and comes several times.
#[derive(Clone, Copy)]
struct Rollout {
    connections: usize,
    peers: usize,
    /// Time of the treatment over the control's.
    ratio: f64,
    /// Share of the bytes that the treatment loses.
    loss: f64,
    /// Time of others concurrent with the treatment, over their time with the control.
    harm: Option<f64>,
}

const ALIKE: Rollout = Rollout { connections: 3_000, peers: 700, ratio: 1.0, loss: 0.0, harm: None };

impl Rollout {
    fn reports(&self, seed: u64) -> Vec<StartReport> {
        let mut draws = Draws::of(seed);
        let paths: Vec<f64> = (0..self.peers).map(|_| 100.0 * (0.8 * draws.normal()).exp()).collect();
        let mut reports = vec![];
        for number in 0..self.connections {
            let peer = (draws.uniform() * self.peers as f64) as usize;
            let arm = if draws.uniform() < 0.5 { Arm::Treatment } else { Arm::Control };
            let is_treated = arm == Arm::Treatment;
            let size = if draws.uniform() < 0.5 { 20_000 } else { 200_000 };
            let path = paths[peer] * if size > 100_000 { 2.0 } else { 1.0 };
            let millis = path * (0.3 * draws.normal()).exp() * if is_treated { self.ratio } else { 1.0 };
            let lost = if is_treated && draws.uniform() < 0.5 { 2.0 * self.loss } else { 0.0 };
            let began = Time::from_millis(number as u64 * 60_000);
            reports.push(report(peer, arm, size, millis, lost, began));
            if let Some(harm) = self.harm {
                let slower = if is_treated { harm } else { 1.0 };
                let millis = path * (0.3 * draws.normal()).exp() * slower;
                reports.push(report(peer, Arm::Ineligible, size, millis, 0.0, began + Span::from_millis(1)));
            }
        }
        reports
    }
}

fn report(peer: usize, arm: Arm, size: u64, millis: f64, lost: f64, began: Time) -> StartReport {
    let took = Span::from_nanos((millis * 1e6) as u64);
    let tally =
        Tally { sent: Bytes::new(size), lost: Bytes::new((size as f64 * lost) as u64), ..Tally::default() };
    StartReport {
        scheme: Name::new("wise-start").expect("short"),
        peer: Some(([10, 0, (peer / 256) as u8, (peer % 256) as u8], 443).into()),
        arm,
        tally,
        first_answer: FirstAnswer::of(began, took, Bytes::new(size)),
        last_at: began + took,
        ..StartReport::default()
    }
}

fn log_of(reports: &[StartReport]) -> String {
    let mut text = String::new();
    for report in reports {
        let _ = writeln!(text, "2026-11-23T10:00:00Z  INFO {report}");
    }
    text
}

fn counters_of(reports: &[StartReport]) -> String {
    let metrics = Metrics::default();
    reports.iter().for_each(|report| metrics.count(report));
    metrics.render("wise-start")
}

fn judged(text: &str) -> Judged {
    judged_files(&[text]).expect("judged")
}

fn judged_files(texts: &[&str]) -> Result<Judged> {
    let folder = tempfile::tempdir().expect("a folder");
    let files: Vec<PathBuf> = (0..texts.len()).map(|at| folder.path().join(format!("file-{at}"))).collect();
    for (file, text) in files.iter().zip(texts) {
        std::fs::write(file, text).expect("written");
    }
    judge(&files, None, &BOUNDS, false)
}

fn swapped(text: &str) -> String {
    text.replace("arm=treatment", "arm=T")
        .replace("arm=control", "arm=treatment")
        .replace("arm=T", "arm=control")
}

fn swapped_counters(text: &str) -> String {
    let swap = text.replace("\"treatment\"", "\"T\"").replace("\"control\"", "\"treatment\"");
    swap.replace("\"T\"", "\"control\"")
}

#[test]
fn a_faster_treatment_is_turned_on_and_with_its_arms_swapped_turned_off() {
    let reports = Rollout { ratio: 0.7, ..ALIKE }.reports(1);
    let (log, counters) = (log_of(&reports), counters_of(&reports));
    for (text, swapped) in [(&log, swapped(&log)), (&counters, swapped_counters(&counters))] {
        let found = judged(text);
        assert_eq!(found.decision, Decision::TurnOn, "{}", found.reason);
        let times = found.times.expect("compared");
        assert!((times.difference.value - 0.7_f64.ln()).abs() < 0.05, "{times:?}");
        assert!(times.low < 0.7_f64.ln() && 0.7_f64.ln() < times.high, "{times:?}");
        let found = judged(&swapped);
        assert_eq!(found.decision, Decision::TurnOff, "{}", found.reason);
        assert!(found.reason.starts_with("first answers take at least"), "{}", found.reason);
    }
}

#[test]
fn peers_with_both_arms_are_compared_among_themselves() {
    let reports = Rollout { ratio: 0.85, connections: 1_500, peers: 300, ..ALIKE }.reports(2);
    let paired = judged(&log_of(&reports)).times.expect("compared");
    let plain = judged(&counters_of(&reports)).times.expect("compared");
    assert!(paired.pairs > 200, "{paired:?}");
    assert!(paired.difference.variance < plain.difference.variance / 3.0, "{paired:?} {plain:?}");
    assert!(paired.high < 0.0, "{paired:?}");
}

#[test]
fn what_loses_more_harms_others_or_saves_nothing_is_turned_off() {
    let faster = Rollout { ratio: 0.7, ..ALIKE };
    for (rollout, reason) in [
        (Rollout { loss: 0.05, ..faster }, "its connections lose"),
        (Rollout { harm: Some(1.3), ..faster }, "other connections of the same peers take"),
        (Rollout { connections: 40_000, peers: 9_000, ..ALIKE }, "it saves"),
    ] {
        let found = judged(&log_of(&rollout.reports(3)));
        assert_eq!(
            (found.decision, found.reason.starts_with(reason)),
            (Decision::TurnOff, true),
            "{}",
            found.reason
        );
    }
    let found = judged(&log_of(&Rollout { harm: Some(1.0), connections: 8_000, ..faster }.reports(3)));
    assert_eq!(found.decision, Decision::TurnOn, "{}", found.reason);
    assert!(found.reason.ends_with("keep within the bounds"), "{}", found.reason);
}

#[test]
fn a_line_that_stands_in_two_files_is_one_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log_of(&Rollout { ratio: 0.7, ..ALIKE }.reports(1));
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    // A rotated log, whose last half stands in the next one as well.
    let half: Vec<&str> = log.lines().skip(log.lines().count() / 2).collect();
    let (whole, rest) = (file("a", &log), file("b", &half.join("\n")));
    let once = judge(std::slice::from_ref(&whole), None, &BOUNDS, false).expect("a log");
    let twice = judge(&[whole.clone(), rest], None, &BOUNDS, false).expect("logs");
    assert_eq!(twice.duplicates, half.len() as u64);
    assert_eq!(once.totals, twice.totals);
    assert_eq!(judge(&[whole.clone(), whole], None, &BOUNDS, false).expect("logs").totals, once.totals);
    // A connection that was sent nothing has no beginning, but its line of `serve` has a time.
    let silent = "2026-11-26T14:17:03.651064Z  INFO scheme=headstart arm=treatment peer=192.0.2.1 sent=0 lost=0 \
                  first_flight_lost=0";
    let silent = file("c", silent);
    let found = judge(&[silent.clone(), silent], None, &BOUNDS, false).expect("logs");
    assert_eq!((found.duplicates, found.totals[0].connections), (1, 1.0));
}

#[test]
fn the_servers_own_congestion_control_is_named() {
    let log = log_of(&Rollout { ratio: 0.7, ..ALIKE }.reports(1));
    assert_eq!(judged(&log).controls, [""; 0]);
    let named =
        log.replace("arm=control", "arm=control cc=bbr").replace("arm=treatment", "arm=treatment cc=cubic");
    assert_eq!(judged(&named).controls, ["bbr", "cubic"]);
}

#[test]
fn a_rollout_whose_harm_is_not_known_is_not_turned_on_unless_that_is_accepted() {
    let reports = Rollout { ratio: 0.7, ..ALIKE }.reports(1);
    let careful = Bounds { accepts_unknown_harm: false, ..BOUNDS };
    for text in [log_of(&reports), counters_of(&reports)] {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), &text).expect("written");
        let decided = |bounds| judge(&[file.path().to_owned()], None, bounds, false).expect("judged");
        assert_eq!(decided(&BOUNDS).decision, Decision::TurnOn);
        let found = decided(&careful);
        assert_eq!(found.decision, Decision::KeepTesting, "{}", found.reason);
        assert!(found.reason.contains("--accept-unknown-harm"), "{}", found.reason);
    }
}

#[test]
fn little_data_decides_nothing() {
    for connections in [1, 30, 200] {
        let reports = Rollout { connections, peers: 50, ..ALIKE }.reports(4);
        let log = log_of(&reports);
        if log.contains("arm=treatment") {
            let found = judged(&log);
            assert_eq!(found.decision, Decision::KeepTesting, "{}", found.reason);
        }
    }
    // Three peers say nothing of others, however often they come.
    let found = judged(&log_of(&Rollout { peers: 3, ratio: 0.5, ..ALIKE }.reports(4)));
    assert_eq!(found.decision, Decision::KeepTesting, "{}", found.reason);
    assert!(found.reason.contains("from 20 different peers"), "{}", found.reason);
}

/// A look after each hundred connections, of peers that come again and again. Of 100 rollouts of a
/// scheme that changes nothing, at most five are judged better or worse.
#[test]
fn a_rollout_of_nothing_is_rarely_misjudged_however_often_one_looks() {
    let mut misled = 0;
    for seed in 0..100 {
        let reports =
            Rollout { connections: 1_200, peers: 60 + 10 * (seed as usize % 40), ..ALIKE }.reports(seed);
        let mut log = log::Log::default();
        for report in &reports {
            log.add(&report.to_string()).expect("a record");
        }
        let (_, records) = log.of_scheme(None).expect("a treatment");
        misled += u32::from((1..=12).any(|look| {
            let times = of_records(String::new(), &records[..look * 100], false).times;
            times.map(|it| it.test(TIME_EFFECT)).is_some_and(|it| it.low > 0.0 || it.high < 0.0)
        }));
    }
    assert!(misled <= 5, "{misled} of 100");
}

#[test]
fn several_texts_count_from_the_first_and_a_restart_from_zero() {
    let reports = Rollout { connections: 900, ..ALIKE }.reports(5);
    let metrics = Metrics::default();
    let mut texts = vec![];
    for part in reports.chunks(300) {
        part.iter().for_each(|report| metrics.count(report));
        texts.push(metrics.render("wise-start"));
    }
    let count = |texts: &[&str]| {
        let found = judged_files(texts).expect("judged");
        found.totals[0].connections + found.totals[1].connections
    };
    assert_eq!(count(&[&texts[2]]), 900.0);
    assert_eq!(count(&[&texts[0], &texts[1], &texts[2]]), 600.0);
    assert_eq!(count(&[&texts[2], &texts[0], &texts[1]]), 600.0, "restarted after the first");
}

#[test]
fn hostile_files_are_refused_with_their_line() {
    let good = log_of(&Rollout { connections: 50, ..ALIKE }.reports(6));
    let with = |line: &str| format!("{good}{line}\n");
    let record = "scheme=wise-start arm=control peer=10.0.0.1 sent=1 lost=0";
    let long = "x".repeat(LONGEST_LINE + 1);
    for (text, expected) in [
        (with(&record.replace("control", "ctrl")), "line 51: found `arm=ctrl`, expected treatment, control"),
        (with(&record.replace("10.0.0.1", "me")), "line 51: found `peer=me`, expected an address"),
        (with(&record.replace("sent=1", "sent=NaN")), "line 51: found `sent=NaN`, expected a number from 0"),
        (with(&record.replace("sent=1", "sent=-1")), "line 51: found `sent=-1`, expected a number from 0"),
        (with(&record.replace(" lost=0", "")), "line 51: found no `lost=`"),
        (with(&record.replace("wise-start", "")), "line 51: found the scheme ``, expected a name"),
        (
            with(&record.replace("wise-", "\x1b[2J")),
            "line 51: found the scheme `\\u{1b}[2Jstart`, expected a name",
        ),
        (with(&long), "line 51: found more than 65536 bytes, expected a shorter line"),
        ("nothing\n".to_owned(), "found no record of a connection, expected lines with `scheme=... arm=...`"),
        (
            format!("{record}\n{}", record.replace("control", "ineligible")),
            "found no connection of the treatment among 2 (1 without an arm), expected both arms",
        ),
        (
            "headstart_connections_total{arm=treatment} 1\n".to_owned(),
            "line 1: found `headstart_connections_total{arm=treatment} 1`, expected labels in braces and a number",
        ),
        (
            "headstart_connections_total{arm=\"treatment\"} 1\n".to_owned(),
            "line 1: found the scheme ``, expected a name",
        ),
        ("headstart_connections_total{scheme=\"a\",arm=\"treatment\"} 1e999\n".to_owned(), "line 1: found"),
    ] {
        let error = format!("{:#}", judged_files(&[&text]).expect_err(expected));
        assert!(error.contains(expected), "{error}");
    }
    let mixed = judged_files(&[&good, "# HELP headstart_connections_total x\n"]).expect_err("two kinds");
    assert!(mixed.to_string().contains("found counters and logs, expected one kind"), "{mixed}");
    assert!(judge(&[Path::new("/nowhere").to_owned()], None, &BOUNDS, false).is_err());
}

#[test]
fn another_programs_lines_and_bytes_that_are_no_text_are_left_out() {
    let text = log_of(&Rollout { connections: 50, ..ALIKE }.reports(7));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("log");
    std::fs::write(&file, [b"\xff\xfe other arm=\n", text.as_bytes(), b"kernel: scheme=x\n"].concat())
        .expect("written");
    let found = judge(&[file], None, &BOUNDS, false).expect("judged");
    assert_eq!(found.totals.map(|it| it.connections).iter().sum::<f64>(), 50.0);
}
