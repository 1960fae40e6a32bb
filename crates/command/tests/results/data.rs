//! The files of numbers: their contents, and their complete description in `docs/data.md`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::{folder, headstart, program, run, text};

/// A file's rows, each by the names of its columns.
fn rows(path: &Path) -> Vec<BTreeMap<String, String>> {
    let mut reader =
        csv::Reader::from_path(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    reader.deserialize().map(|row| row.expect("a row")).collect()
}

fn columns(path: &Path) -> Vec<String> {
    let mut reader = csv::Reader::from_path(path).expect("it is there");
    reader.headers().expect("a header").iter().map(str::to_owned).collect()
}

fn number(row: &BTreeMap<String, String>, name: &str) -> f64 {
    row[name].parse().unwrap_or_else(|_| panic!("{name}: {:?}", row[name]))
}

/// The columns that a section of the dictionary describes.
fn described(section: &str) -> Vec<String> {
    let text =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/data.md")).expect("it is there");
    let (_, rest) =
        text.split_once(&format!("\n## {section}\n")).unwrap_or_else(|| panic!("no section {section}"));
    let own = rest.split("\n## ").next().unwrap_or_default();
    let cells = own.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    cells
        .flat_map(|cell| cell.split("`, `").map(|name| name.trim_matches('`').to_owned()).collect::<Vec<_>>())
        .collect()
}

const RACE: &str =
    "race --schemes iw10,halfback --duration 4s --drain 2s --repeats 2 --warm-up 1s --load 40% --out out";

#[test]
fn every_column_has_a_description_and_no_other_exists() {
    let folder = folder("data", "dictionary");
    headstart(&folder, &format!("{RACE} --flows flows.csv"));
    headstart(
        &folder,
        "sweep --schemes iw10 --duration 2s --repeats 2 --load 10%,20% --out sweep --flows all.csv",
    );
    headstart(&folder, "trace iw10 --out trace");
    let race = [described("Conditions"), described("race.csv and sweep.csv")].concat();
    let seeds = [race.clone(), described("seeds.csv")].concat();
    let flows = [described("Conditions"), described("The file of --flows")].concat();
    for (file, known, is_all) in [
        ("out/race.csv", &race, true),
        ("sweep/sweep.csv", &race, true),
        ("out/seeds.csv", &seeds, false),
        ("sweep/seeds.csv", &seeds, false),
        ("flows.csv", &flows, true),
        ("all.csv", &flows, true),
        ("trace/events.csv", &described("events.csv"), true),
    ] {
        let found = columns(&folder.join(file));
        for name in &found {
            assert!(known.contains(name), "{file}: docs/data.md does not describe {name}");
        }
        for name in known.iter().filter(|_| is_all) {
            assert!(found.contains(name), "{file} has no column {name}, which docs/data.md describes");
        }
    }
    for name in described("seeds.csv") {
        assert!(columns(&folder.join("out/seeds.csv")).contains(&name), "seeds.csv has no column {name}");
    }
}

#[test]
fn a_figure_names_its_axes_and_their_units() {
    let folder = folder("data", "figure");
    headstart(&folder, "reproduce wisestart --quick --figure figure-2 --out out");
    let out = folder.join("out/wisestart");
    let claims = columns(&out.join("claims.csv"));
    assert_eq!(claims, described("claims.csv"));
    let [x, y] = ["x_completion_time_ms", "y_share_of_the_records"];
    let names = |name: &str| ["", "_low", "_high"].map(|end| format!("{name}{end}"));
    let expected = [vec!["scheme".to_owned(), "at".to_owned()], names(x).into(), names(y).into()].concat();
    assert_eq!(columns(&out.join("figure-2-completion-quic.csv")), expected);
}

#[test]
fn conditions_are_numbers_in_the_unit_of_their_column() {
    let folder = folder("data", "conditions");
    headstart(&folder, &format!("{RACE} --rate 12.5mbit --rtt 20ms --buffer 104p"));
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("out/race.json")).expect("written")).expect("JSON");
    for row in rows(&folder.join("out/race.csv")) {
        for (name, value) in [("rate_bits_per_s", 12.5e6), ("rtt_s", 0.02), ("load_share", 0.4)] {
            assert_eq!(number(&row, name), value, "{name}");
            assert_eq!(json["conditions"][name].as_f64(), Some(value), "{name}");
        }
        assert_eq!((row["buffer_bytes"].as_str(), row["buffer_packets"].as_str()), ("", "104"));
    }
    headstart(
        &folder,
        "sweep --schemes iw10 --duration 2s --repeats 1 --load 10%,20% --quantum 1,2 --out sweep",
    );
    let points: Vec<_> = rows(&folder.join("sweep/sweep.csv"))
        .iter()
        .map(|row| (number(row, "load_share"), row["quantum"].clone()))
        .collect();
    let expected =
        [(0.1, "1"), (0.1, "2"), (0.2, "1"), (0.2, "2")].map(|(load, text)| (load, text.to_owned()));
    assert_eq!(points, expected);
    assert_eq!(columns(&folder.join("sweep/sweep.csv"))[..3], ["load_share", "quantum", "scheme"]);
}

/// Mean (unfinished flows with their age) and counts by scheme and seed are the table's.
#[test]
fn the_rows_of_flows_add_up_to_the_table() {
    let folder = folder("data", "flows");
    headstart(&folder, &format!("{RACE} --flows flows.csv"));
    let flows = rows(&folder.join("flows.csv"));
    let seeds = rows(&folder.join("out/seeds.csv"));
    assert_eq!(seeds.len(), 4);
    for of_seed in &seeds {
        let is = |row: &BTreeMap<String, String>, run: &str, role: &str| {
            row["run"] == run
                && row["role"] == role
                && row["seed"] == of_seed["seed"]
                && row["after_warm_up"] == "1"
                && (run == "reference" || row["run_scheme"] == of_seed["scheme"])
        };
        let time = |row: &BTreeMap<String, String>| {
            let age = || (number(row, "end_s") - number(row, "start_s")) * 1000.0;
            row["completion_ms"].parse().unwrap_or_else(|_| age())
        };
        for (run, role, column) in [
            ("alone", "tested", "mean_ms"),
            ("mixed", "beside", "beside_mean_ms"),
            ("reference", "beside", "reference_mean_ms"),
        ] {
            let own: Vec<_> = flows.iter().filter(|row| is(row, run, role)).collect();
            let mean = own.iter().map(|row| time(row)).sum::<f64>() / own.len() as f64;
            assert!((mean - number(of_seed, column)).abs() < 1e-4, "{run}: {mean}, not {}", of_seed[column]);
            if run == "alone" {
                assert_eq!(own.len() as f64, number(of_seed, "flows"));
                let copies: f64 = own.iter().map(|row| number(row, "copies")).sum();
                assert_eq!(copies, number(of_seed, "copies"));
                assert!(own.iter().all(|row| row["scheme"] == of_seed["scheme"] && !row["phase"].is_empty()));
            }
        }
    }
    let means: Vec<f64> = seeds[2..].iter().map(|row| number(row, "mean_ms")).collect();
    let table = rows(&folder.join("out/race.csv"));
    assert!((number(&table[1], "mean_ms") - (means[0] + means[1]) / 2.0).abs() < 1e-5);
}

#[test]
fn flows_are_the_same_bytes_whatever_the_threads_and_after_an_interruption() {
    let folder = folder("data", "threads");
    let line = |threads: u32, out: &str| {
        format!(
            "sweep --schemes iw10,halfback --load 10%,40% --duration 3s --drain 2s --repeats 2 --threads {threads} --out {out} --flows {out}.csv"
        )
    };
    headstart(&folder, &line(1, "one"));
    headstart(&folder, &line(2, "two"));
    let bytes = |name: &str| fs::read(folder.join(name)).expect("written");
    assert!(bytes("one.csv") == bytes("two.csv"), "another number of threads, other bytes");
    assert!(!folder.join("one/flows.parts").exists(), "parts are removed when they are together");

    // As if it had been interrupted: of the runs that are kept, only some have their part.
    fs::create_dir_all(folder.join("two/flows.parts")).expect("a folder");
    let kept = fs::read_to_string(folder.join("two/runs.jsonl")).expect("written");
    let key = kept
        .lines()
        .next()
        .and_then(|line| line.split("\"key\":\"").nth(1)?.split('"').next())
        .expect("a key");
    fs::write(folder.join(format!("two/flows.parts/{key}.partial")), "half a li").expect("a file");
    fs::remove_file(folder.join("two.csv")).expect("it was there");
    headstart(&folder, &line(2, "two"));
    assert!(bytes("one.csv") == bytes("two.csv"), "what is missing is run again");
}

#[test]
fn a_page_is_a_row_and_its_connections_are_others() {
    let folder = folder("data", "pages");
    headstart(
        &folder,
        "race --pages archive2014 --schemes iw10 --duration 20s --repeats 1 --load 30% --out out --flows flows.csv",
    );
    let flows = rows(&folder.join("flows.csv"));
    let pages: Vec<f64> = flows
        .iter()
        .filter(|row| row["kind"] == "page" && row["run"] == "alone")
        .map(|row| number(row, "completion_ms"))
        .collect();
    assert!(flows.iter().filter(|row| row["kind"] == "flow").count() > pages.len());
    let mean = pages.iter().sum::<f64>() / pages.len() as f64;
    let table = rows(&folder.join("out/race.csv"));
    assert!((mean - number(&table[0], "mean_ms")).abs() < 1e-4, "{mean}");
}

#[cfg(feature = "parquet")]
#[test]
fn a_parquet_file_has_its_magic_numbers() {
    let folder = folder("data", "parquet");
    headstart(&folder, &format!("{RACE} --flows flows.parquet"));
    let bytes = fs::read(folder.join("flows.parquet")).expect("written");
    for line in [&format!("{RACE} --format parquet"), "paths --format parquet", "schemes --format parquet"] {
        let printed = run(program(), &folder, line).stdout;
        let ends = [&printed[..4], &printed[printed.len() - 4..]];
        assert_eq!(ends, [b"PAR1", b"PAR1"], "{line}: {} bytes", printed.len());
    }
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{} bytes", bytes.len());
}

#[cfg(not(feature = "parquet"))]
#[test]
fn without_the_parquet_feature_the_message_names_it() {
    let folder = folder("data", "no parquet");
    let race = format!("{RACE} --flows flows.parquet");
    let other = ["sweep --format parquet", "sweep --blocks"].map(str::to_owned);
    for line in [race, format!("{RACE} --format parquet")]
        .into_iter()
        .chain(other)
        .chain(["schemes --format parquet".to_owned()])
    {
        let output = run(program(), &folder, &line);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {message}");
        assert!(
            message.contains("cargo install --path crates/command --features parquet"),
            "{line}: {message}"
        );
    }
}

#[test]
fn a_file_of_flows_that_cannot_be_written_is_refused_before_anything_runs() {
    let folder = folder("data", "refused");
    for (name, word) in
        [("nowhere/flows.csv", "nowhere/flows.csv"), ("flows.txt", "expected a name that ends in .csv")]
    {
        let output = run(program(), &folder, &format!("{RACE} --flows {name}"));
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(word) && message.contains("flows"), "{message}");
        assert!(!folder.join("out/race.csv").exists());
    }
}

/// The measures of one scheme, alone on 15 Mbit/s and 60 ms.
fn measured(name: &str, options: &str) -> BTreeMap<String, String> {
    let folder = folder("data", name);
    headstart(&folder, &format!("race --repeats 4 --peers 1000 --out out {options}"));
    rows(&folder.join("out/race.csv")).remove(0)
}

fn close(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() < share, "{found}, expected {expected}");
}

/// A flow of one segment waits twice: with its SYN, and with its data. All other time is fixed.
#[test]
fn queueing_delay_explains_completion_and_utilisation_matches_the_load() {
    let row = measured("waits", "--schemes iw10 --size 1448B --load 60% --duration 60s --buffer 10MB");
    let rate = 15e6;
    let [syn, data] = [60.0, 1500.0].map(|bytes: f64| bytes * 8.0 / rate);
    let flows = 0.6 * rate / (1448.0 * 8.0);
    close(number(&row, "utilisation_percent"), 100.0 * flows * (syn + data), 0.01);
    close(number(&row, "throughput_bits_per_s"), flows * (syn + data) * rate, 0.01);
    let waits = number(&row, "mean_ms") - 90.0 - (2.0 * syn + data) * 1000.0;
    close(number(&row, "queueing_delay_mean_ms"), waits / 2.0, 0.02);
}

/// A long flow with a window of 200 kB: the queue has all bytes that the path does not hold.
#[test]
fn a_window_beyond_the_bdp_fills_the_queue() {
    let row = measured(
        "window",
        "--schemes iw10 --size 1448B --load 0.01% --background 1 --receive-window 141kB --long-window 200kB --duration 60s --buffer 10MB",
    );
    let segments = (200_000.0 / 1448.0_f64).floor();
    let wait = segments * 1500.0 * 8.0 / 15e6 - 0.060 - (1500.0 + 52.0) * 8.0 / 15e6;
    close(number(&row, "queueing_delay_p95_ms"), wait * 1000.0, 0.02);
    close(number(&row, "queueing_delay_mean_ms"), wait * 1000.0, 0.03);
    assert!(number(&row, "utilisation_percent") > 99.0);
}

/// Two round trips and a half are lost by slow start from two segments: 400 ms against 145 ms.
#[test]
fn slowdown_is_measured_against_the_handshake_and_the_rate() {
    let row = measured("ideal", "--schemes iw10 --size 1448B --load 0.1% --duration 200s");
    close(number(&row, "slowdown_mean"), 1.0, 0.002);
    let row = measured("slow", "--schemes iw2 --size 100kB --load 0.1% --duration 400s");
    let ideal = 90.0 + (100_000.0 + 70.0 * 52.0) * 8.0 / 15_000.0;
    close(number(&row, "slowdown_mean"), number(&row, "mean_ms") / ideal, 0.005);
    assert!(number(&row, "slowdown_p99") >= number(&row, "slowdown_mean"));
}

/// Alone on a path each flow of a size has the same rate; with others of all sizes it has not.
#[test]
fn equal_flows_are_fair_and_sizes_fall_into_their_bins() {
    let row = measured("fair", "--schemes iw10 --size 50kB --load 0.2% --duration 400s");
    close(number(&row, "jain_index"), 1.0, 0.01);
    assert_eq!(row["mean_ms_to_100kB"], row["mean_ms"]);
    assert_eq!((row["mean_ms_to_10kB"].as_str(), row["mean_ms_to_1MB"].as_str()), ("", ""));
    let row = measured("mixed", "--schemes iw10 --size internet --load 20% --duration 60s");
    assert!(number(&row, "jain_index") < 0.9);
    assert!(number(&row, "mean_ms_to_10kB") < number(&row, "mean_ms_to_1MB"));
    assert_eq!(row["mean_ms_above_10MB"], "");
    let row = measured("long", "--schemes iw10 --background 2 --load 1% --duration 60s");
    let long = number(&row, "long_jain_index");
    assert!((0.5..=1.0).contains(&long), "{long}");
    assert!(number(&row, "utilisation_percent") > 90.0);
}

/// Two sizes with known weights, and three flows at known times.
#[test]
fn sizes_and_arrivals_from_files_are_used() {
    let folder = folder("data", "own");
    fs::write(folder.join("sizes.csv"), "size_bytes,weight\n1448,1\n14480,1\n").expect("a file");
    headstart(
        &folder,
        "race --schemes iw10 --size sizes.csv --duration 20s --repeats 1 --load 10% --out sizes --flows s.csv",
    );
    let flows = rows(&folder.join("s.csv"));
    let sizes: std::collections::BTreeSet<&str> =
        flows.iter().map(|row| row["size_bytes"].as_str()).collect();
    assert_eq!(sizes.into_iter().collect::<Vec<_>>(), ["1448", "14480"]);
    let small = flows.iter().filter(|row| row["size_bytes"] == "1448").count() as f64 / flows.len() as f64;
    assert!((small - 0.5).abs() < 0.06, "{small}");

    fs::write(folder.join("starts.csv"), "start_s,size_bytes\n0.25,1448\n1,100000\n1.5,14480\n99,1\n")
        .expect("a file");
    let line = "race --schemes iw10,halfback --arrivals starts.csv --duration 4s --repeats 2 --out starts --flows a.csv";
    let message = text(headstart(&folder, line).stdout);
    assert!(message.contains("1 of 4 flows begin after --duration 4 s"), "{message}");
    for run in ["alone", "reference"] {
        let found: Vec<(String, String)> = rows(&folder.join("a.csv"))
            .iter()
            .filter(|row| row["run"] == run && row["run_scheme"] == "iw10" && row["seed"] == "2")
            .map(|row| (row["start_s"].clone(), row["size_bytes"].clone()))
            .collect();
        let mut expected = [("0.25", "1448"), ("1", "100000"), ("1.5", "14480")]
            .map(|(at, size)| (at.to_owned(), size.to_owned()));
        expected.sort();
        let mut found = found;
        found.sort();
        assert_eq!(found, expected, "{run}");
    }
    let row = &rows(&folder.join("starts/race.csv"))[0];
    assert_eq!((row["flows"].as_str(), row["arrivals"].as_str()), ("6", "starts.csv"));
    close(number(row, "load_share"), 115_928.0 * 8.0 / (4.0 * 15e6), 0.001);

    for (file, text, words) in [
        ("bad.csv", "size_bytes,weight\n10,x\n", "bad.csv, line 2: found `10,x`, expected two numbers"),
        ("none.csv", "", "none.csv: found nothing, expected the header"),
    ] {
        fs::write(folder.join(file), text).expect("a file");
        let output = run(program(), &folder, &format!("race --size {file}"));
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && message.contains(words), "{message}");
    }
    headstart(&folder, "examples");
    let line =
        "race --schemes iw10 --arrivals starts.csv --trace drive.down --duration 4s --repeats 2 --out traced";
    let message = text(headstart(&folder, line).stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(message.contains("its share of the mean rate of all of drive.down"), "{message}");
    let output = run(program(), &folder, "race --arrivals starts.csv --load 10%");
    assert_eq!(output.status.code(), Some(2), "the load is what the file makes of it");
    let output = run(program(), &folder, "race --arrivals starts.csv --duration 100ms");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && message.contains("--arrivals: found no flow"), "{message}");
}

/// Records have the draft's types, packet numbers occur once, lost or acked packets were sent.
#[test]
fn a_trace_is_qlog_as_the_draft_has_it() {
    let folder = folder("data", "qlog");
    let line = "trace halfback --buffer 20p --size 300kB --loss 2% --out t --qlog flow.sqlog";
    let message = text(headstart(&folder, line).stdout);
    assert!(message.contains("qlog: flow.sqlog"), "{message}");
    let text = fs::read_to_string(folder.join("flow.sqlog")).expect("written");
    let mut records = text.split('\u{1e}').skip(1).map(|record| {
        assert!(record.ends_with('\n'), "{record}");
        serde_json::from_str::<serde_json::Value>(record).expect("JSON")
    });
    let head = records.next().expect("a head");
    serde_json::from_value::<qlog::QlogSeq>(head.clone()).expect("a head as the draft has it");
    assert_eq!(head["file_schema"], "urn:ietf:params:qlog:file:sequential");
    let mut sent = std::collections::BTreeSet::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut last = 0.0;
    for record in records {
        let name = record["name"].as_str().expect("a name").to_owned();
        let time = record["time"].as_f64().expect("a time");
        assert!(time >= last, "{record}");
        last = time;
        *counts.entry(name.clone()).or_default() += 1;
        if !name.starts_with("quic:") {
            continue;
        }
        serde_json::from_value::<qlog::events::Event>(record.clone())
            .unwrap_or_else(|error| panic!("{error}: {record}"));
        let number = record["data"]["header"]["packet_number"].as_u64();
        match name.as_str() {
            "quic:packet_sent" => assert!(sent.insert(number.expect("a number")), "{record}"),
            "quic:packet_lost" => assert!(sent.contains(&number.expect("a number")), "{record}"),
            "quic:packet_received" => {
                for frame in record["data"]["frames"].as_array().expect("frames") {
                    for range in frame["acked_ranges"].as_array().into_iter().flatten() {
                        let [first, last] = [0, 1].map(|end: usize| range[end].as_u64().expect("a number"));
                        assert!((first..=last).all(|number| sent.contains(&number)), "{record}");
                    }
                }
            }
            _ => {}
        }
    }
    for name in [
        "packet_sent",
        "packet_received",
        "packet_lost",
        "recovery_metrics_updated",
        "congestion_state_updated",
    ] {
        assert!(counts.get(&format!("quic:{name}")).is_some_and(|count| *count > 0), "no {name}: {counts:?}");
    }
    for (name, words) in
        [("flow.txt", "ends in .qlog or .sqlog"), ("nowhere/flow.sqlog", "a folder that does not exist")]
    {
        let output = run(program(), &folder, &format!("trace iw10 --qlog {name}"));
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && message.contains(words), "{message}");
    }
}

/// qvis opens documents with a version that it knows, and takes category and name from the event.
#[test]
fn a_trace_has_the_qlog_version_of_qvis() {
    let folder = folder("data", "qvis");
    let line = "trace halfback --buffer 20p --size 300kB --loss 2% --out t --qlog";
    let message = text(headstart(&folder, &format!("{line} flow.qlog")).stdout);
    assert!(message.contains("qlog: flow.qlog"), "{message}");
    let text = fs::read_to_string(folder.join("flow.qlog")).expect("written");
    let file: serde_json::Value = serde_json::from_str(&text).expect("one document");
    assert_eq!((&file["qlog_version"], &file["qlog_format"]), (&"draft-02".into(), &"JSON".into()));
    let trace = &file["traces"][0];
    assert_eq!(trace["vantage_point"]["type"], "server");
    let events = trace["events"].as_array().expect("events");
    let mut names = std::collections::BTreeSet::new();
    for event in events {
        let name = event["name"].as_str().unwrap_or_else(|| panic!("no name: {event}"));
        assert!(event["time"].is_number() && event["data"].is_object(), "{event}");
        if name.ends_with(":packet_sent") || name.ends_with(":packet_lost") {
            let header = &event["data"]["header"];
            assert!(header["packet_number"].is_u64() && header["packet_type"] == "1RTT", "{event}");
        }
        names.insert(name.to_owned());
    }
    for name in [
        "transport:packet_sent",
        "transport:packet_received",
        "recovery:packet_lost",
        "recovery:metrics_updated",
        "recovery:congestion_state_updated",
    ] {
        assert!(names.contains(name), "no {name}: {names:?}");
    }
    headstart(&folder, &format!("{line} flow.sqlog"));
    let sequence = fs::read_to_string(folder.join("flow.sqlog")).expect("written");
    assert_eq!(sequence.lines().count(), events.len() + 1, "the same events, and a head");
}

#[test]
fn a_sweep_writes_a_report_with_crossings() {
    let folder = folder("data", "report");
    let line = "sweep --schemes iw10,halfback --load 10%..70%:30% --rtt 20ms,60ms --duration 10s --repeats 3 --out out";
    let message = text(headstart(&folder, line).stdout);
    assert!(message.contains("Report: out/report.html") && message.contains("6 points"), "{message}");
    let html = fs::read_to_string(folder.join("out/report.html")).expect("written");
    let (answer, _) = message.split_once("\n\n").expect("an answer before the table");
    assert!(answer.starts_with("No scheme is known to be harmless"), "{answer}");
    assert!(answer.contains("\nKnown to harm others: halfback"), "{answer}");
    assert!(
        html.contains("<p class=\"answer\">No scheme is known to be harmless"),
        "the page begins with it"
    );
    for part in [
        "Along load<",
        "Along rtt<",
        "Gain over iw10, and harm to others<",
        "Where the order crosses",
        "All points",
    ] {
        assert!(html.contains(part), "{part}");
    }
    let loads: Vec<String> =
        rows(&folder.join("out/sweep.csv")).iter().map(|row| row["load_share"].clone()).collect();
    assert_eq!(loads, ["0.1", "0.1", "0.1", "0.1", "0.4", "0.4", "0.4", "0.4", "0.7", "0.7", "0.7", "0.7"]);
}
