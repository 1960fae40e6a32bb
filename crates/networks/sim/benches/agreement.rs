//! Our TCP model compared with ns-3's, row by row of `benches/peers/ns3/reference`: `cargo bench -p
//! headstart-sim --bench agreement`.
//!
//! Same arrivals, same dumbbell, same settings; `docs/records/ns3.md` has the results and reasons.
//! Nothing here depends on the machine: the output repeats exactly. `-- --only alone` runs the
//! sections whose names contain that.

mod common;

use std::collections::BTreeMap;

use common::{BULK, Bottleneck, FLOW, PAIRS, SHORT, Turns};
use headstart_sim::{Finished, FlowReport, Recorder, Scenario, Simulation};
use headstart_startup::base;
use headstart_units::{Bytes, Span, Time};

/// Differences up to here are agreement.
const TOLERANCE: f64 = 5.0;
/// Packets of a flow without its data, on the same way: SYN, the handshake's ACK, FIN, last ACK.
const NOT_DATA: f64 = 4.0;

/// Completion times, every single one.
#[derive(Default)]
struct Times {
    nanos: Vec<u64>,
    timeouts: u64,
    delivered: Vec<Bytes>,
}

impl Recorder for Times {
    fn flow(&mut self, report: &FlowReport) {
        let time = report.completion_time().unwrap_or(report.ended_at.since(report.opened_at));
        self.nanos.push(time.as_nanos());
        self.timeouts += report.counts.timeouts;
        self.delivered.push(report.delivered);
    }
}

/// Results of one run, or of one row of a reference table.
#[derive(Clone, Copy, Default)]
struct Outcome {
    mean: f64,
    median: f64,
    /// Data packets dropped, in percent of those offered to the bottleneck.
    loss: f64,
    timeouts: f64,
}

impl Outcome {
    fn average(of: &[Self]) -> Self {
        let mean = |get: fn(&Self) -> f64| of.iter().map(get).sum::<f64>() / of.len() as f64;
        Self {
            mean: mean(|o| o.mean),
            median: mean(|o| o.median),
            loss: mean(|o| o.loss),
            timeouts: mean(|o| o.timeouts),
        }
    }
}

/// One row of a reference table: named columns.
type Row = BTreeMap<String, String>;

fn read(table: &str) -> Vec<Row> {
    let file = common::ns3().join("reference").join(table);
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut lines = text.lines().map(|line| line.split(',').map(String::from));
    let names: Vec<String> = lines.next().into_iter().flatten().collect();
    lines.map(|line| names.iter().cloned().zip(line).collect()).collect()
}

fn number(row: &Row, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column}: found '{}', expected a number", row[column]))
}

/// Results of ns-3. Its `loss_percent` counts handshakes and FINs as offered; here only data.
fn theirs(row: &Row) -> Outcome {
    let dropped = number(row, "packets_dropped");
    let offered = dropped + number(row, "packets_forwarded") - NOT_DATA * number(row, "flows");
    Outcome {
        mean: number(row, "fct_mean_ms"),
        median: number(row, "fct_p50_ms"),
        loss: dropped / offered * 100.0,
        timeouts: number(row, "timeouts"),
    }
}

/// The outcome in our simulator.
fn ours(row: &Row, arrivals: Vec<Time>, pairs: u16) -> Outcome {
    let base = if row["cc"] == "cubic" { base::Kind::Cubic } else { base::Kind::Reno };
    let buffer = Bytes::new(number(row, "buffer_bytes") as u64);
    let tcp = common::like_ns3(number(row, "ack_every") as u32);
    let flows = arrivals.len() as f64;
    let bytes = Bytes::new(number(row, "flow_bytes") as u64);
    let scenario = Scenario {
        path: Bottleneck { buffer, ..SHORT }.dumbbell(pairs),
        groups: vec![common::group(number(row, "initial_window") as u64, base, tcp)],
        workload: Box::new(Turns::new(arrivals, bytes, pairs)),
        until: Time::from_millis(800_000),
    };
    let Finished { recorder: mut times, path, .. } = Simulation::new(scenario, Times::default()).run();
    let account = path.packet_counts().next().map(|(_, account)| *account).unwrap_or_default();
    times.nanos.sort_unstable();
    let millis = |nanos: u64| Span::from_nanos(nanos).as_millis_f64();
    Outcome {
        mean: times.nanos.iter().map(|nanos| millis(*nanos)).sum::<f64>() / flows,
        median: millis(times.nanos[times.nanos.len().div_ceil(2) - 1]),
        loss: account.total_dropped() as f64 / (account.offered as f64 - flows) * 100.0,
        timeouts: times.timeouts as f64,
    }
}

fn percent(ours: f64, theirs: f64) -> f64 {
    if ours == theirs { 0.0 } else { (ours / theirs - 1.0) * 100.0 }
}

fn short(table: &str) -> (usize, usize) {
    println!("\n## {table}\n");
    println!(
        "| controller | IW (segments) | ack every (segments) | load (ratio) | mean: ns-3 (ms) | ours (ms) | (%) | median: ns-3 (ms) | ours (ms) | (%) | loss: ns-3 (%) | ours (%) | (%) | timeouts: ns-3 (count) | ours (count) | within {TOLERANCE:.0} % |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|");
    let mut groups: Vec<(String, Vec<Row>)> = Vec::new();
    for row in read(table) {
        let key = ["cc", "initial_window", "ack_every", "load"].map(|column| row[column].clone()).join(" | ");
        match groups.last_mut() {
            Some((last, rows)) if *last == key => rows.push(row),
            _ => groups.push((key, vec![row])),
        }
    }
    let (mut agreeing, mut judged) = (0, 0);
    for (key, rows) in &groups {
        let their = Outcome::average(&rows.iter().map(theirs).collect::<Vec<_>>());
        let run = |row| {
            let arrivals = common::arrivals(number(row, "load"), number(row, "seed") as u64, 600.0);
            assert_eq!(arrivals.len() as f64, number(row, "flows"), "not the arrivals of the reference");
            ours(row, arrivals, PAIRS)
        };
        let our = Outcome::average(&rows.iter().map(run).collect::<Vec<_>>());
        let differences =
            [percent(our.mean, their.mean), percent(our.median, their.median), percent(our.loss, their.loss)];
        let agrees = differences.iter().all(|difference| difference.abs() <= TOLERANCE);
        let by_design = key.starts_with("newreno");
        judged += usize::from(!by_design);
        agreeing += usize::from(agrees && !by_design);
        let verdict = match (agrees, by_design) {
            (true, _) => "yes",
            (false, true) => "no, by design",
            (false, false) => "**no**",
        };
        println!(
            "| {key} | {:.1} | {:.1} | {:+.1} | {:.1} | {:.1} | {:+.1} | {:.3} | {:.3} | {:+.1} | {:.0} | {:.0} | {verdict} |",
            their.mean,
            our.mean,
            differences[0],
            their.median,
            our.median,
            differences[1],
            their.loss,
            our.loss,
            differences[2],
            their.timeouts,
            our.timeouts,
        );
    }
    (agreeing, judged)
}

/// Delay that the handshake's ACK, a separate packet in ns-3, adds to the data behind it on an
/// empty path. It is 54 bytes at the bottleneck and on the first access link, less the part that
/// overlaps with the first segment.
const HANDSHAKE_ACK_MS: f64 = 0.028_8 + 0.000_432 - 0.012_016;

/// One flow on an empty path: nothing to average.
fn alone() {
    println!("\n## alone.csv\n");
    println!(
        "| controller | IW (segments) | ack every (segments) | flow (B) | buffer (B) | ns-3 (ms) | ours (ms) | (%) | drops: ns-3 (packets) | ours (packets) | same to 1 us |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|");
    let (mut same, mut all) = (0, 0);
    for row in read("alone.csv").iter().filter(|row| row["cc"] == "cubic") {
        let (their, our) = (theirs(row), ours(row, vec![Time::ZERO], 1));
        let offered = number(row, "packets_dropped") / their.loss.max(f64::MIN_POSITIVE);
        let drops = if their.loss > 0.0 { our.loss * offered } else { our.loss };
        let key = ["cc", "initial_window", "ack_every", "flow_bytes", "buffer_bytes"];
        // The reference has three decimals: half a microsecond may be its rounding.
        let is_same = (our.mean + HANDSHAKE_ACK_MS - their.mean).abs() <= 0.001;
        same += usize::from(is_same);
        all += 1;
        println!(
            "| {} | {:.3} | {:.3} | {:+.2} | {:.0} | {:.0} | {} |",
            key.map(|column| row[column].clone()).join(" | "),
            their.mean,
            our.mean,
            percent(our.mean, their.mean),
            number(row, "packets_dropped"),
            drops,
            if is_same { "yes" } else { "" },
        );
    }
    println!(
        "\nSame to the microsecond, less {:.3} us of handshake ACK: {same} of {all}.",
        HANDSHAKE_ACK_MS * 1e3
    );
}

/// Flow by flow where little is lost: how many complete at the same time?
fn by_flow() {
    println!("\n## fct: flow by flow, load 0.25\n");
    println!(
        "| IW (segments) | ack every (segments) | flows (count) | within 0.1 ms (%) | within 1 % (%) |\n|--:|--:|--:|--:|--:|"
    );
    for (window, every) in [(2, 1), (2, 2), (10, 1), (10, 2)] {
        let rows = read(&format!("fct/cubic-iw{window}-ack{every}-load0.25-seed1.csv"));
        let arrivals = common::arrivals(0.25, 1, 600.0);
        assert_eq!(arrivals.len(), rows.len(), "not the arrivals of the reference");
        for (at, row) in arrivals.iter().zip(&rows) {
            assert!(
                (at.as_secs_f64() - number(row, "start_s")).abs() < 2e-9,
                "not the arrivals of the reference"
            );
        }
        let scenario = Scenario {
            path: SHORT.dumbbell(PAIRS),
            groups: vec![common::group(window, base::Kind::Cubic, common::like_ns3(every))],
            workload: Box::new(Turns::new(arrivals, FLOW, PAIRS)),
            until: Time::from_millis(800_000),
        };
        let flows = Simulation::new(scenario, ByFlow::default()).run().recorder.0;
        let their = rows.iter().map(|row| number(row, "fct_s") * 1e3);
        let differences: Vec<_> =
            flows.values().zip(their).map(|(our, their)| ((our - their).abs(), their)).collect();
        let share = |is_near: fn(&(f64, f64)) -> bool| {
            differences.iter().filter(|pair| is_near(pair)).count() as f64 / differences.len() as f64 * 100.0
        };
        println!(
            "| {window} | {every} | {} | {:.1} % | {:.1} % |",
            rows.len(),
            share(|(difference, _)| *difference <= 0.1),
            share(|(difference, their)| difference / their <= 0.01),
        );
    }
}

/// Completion times in milliseconds by serial number.
#[derive(Default)]
struct ByFlow(BTreeMap<u64, f64>);

impl Recorder for ByFlow {
    fn flow(&mut self, report: &FlowReport) {
        let time = report.completion_time().unwrap_or(Span::MAX);
        self.0.insert(report.serial, time.as_millis_f64());
    }
}

/// Goodput over [10, 60] s, loss and shares of the bulk plan.
fn bulk() {
    let text =
        std::fs::read_to_string(common::ns3().join("reference/bulk-hystart-off.json")).expect("reference");
    let member = |name: &str| -> f64 {
        let tail = text.split(&format!("\"{name}\": ")).nth(1).unwrap_or_else(|| panic!("no member {name}"));
        tail.split([',', '\n']).next().and_then(|value| value.parse().ok()).expect("a number")
    };
    let delivered_by = |until: Time| {
        let scenario = Scenario { until, ..common::bulk(BULK.dumbbell(4), 4, common::like_ns3(2)) };
        let finished = Simulation::new(scenario, Times::default()).run();
        let account = finished.path.packet_counts().next().map(|(_, account)| *account).unwrap_or_default();
        (finished.recorder.delivered.iter().map(|bytes| bytes.get()).sum::<u64>(), account, finished.recorder)
    };
    let (before, ..) = delivered_by(Time::from_millis(10_000));
    let (in_all, account, times) = delivered_by(common::BULK_LENGTH);
    let goodput = (in_all - before) as f64 * 8.0 / 50e6;
    let loss = account.total_dropped() as f64 / account.offered as f64 * 100.0;
    println!("\n## bulk\n\n| | ns-3 | ours | % |\n|---|--:|--:|--:|");
    for (name, their, our) in [
        ("goodput, Mbit/s", member("goodput_mbps"), goodput),
        ("loss, %", member("loss") * 100.0, loss),
        ("packets across", member("packets_forwarded"), account.delivered as f64),
        ("timeouts", member("timeouts"), times.timeouts as f64),
    ] {
        println!("| {name} | {their:.3} | {our:.3} | {:+.1} |", percent(our, their));
    }
}

fn main() {
    common::check_twister();
    let (mut agreeing, mut judged) = (0, 0);
    let only = common::option("--only").unwrap_or_default();
    let is_wanted = |section: &str| section.contains(&only);
    for table in ["short-delayed-cubic", "short-immediate", "short-linuxreno", "short-delayed-newreno"] {
        if is_wanted(table) {
            let (yes, all) = short(&format!("{table}.csv"));
            agreeing += yes;
            judged += all;
        }
    }
    println!(
        "\nWithin {TOLERANCE:.0} %: {agreeing} of {judged} configurations (NewReno, which differs by design, not counted)."
    );
    for (section, run) in [("alone", alone as fn()), ("fct", by_flow), ("bulk", bulk)] {
        if is_wanted(section) {
            run();
        }
    }
}
