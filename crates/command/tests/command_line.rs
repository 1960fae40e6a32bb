//! The command line for its users: wrong input gives one clear message and nothing is written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder(name: &str) -> PathBuf {
    // Two builds of the command may be tested at the same time.
    let build = Path::new(env!("CARGO_BIN_EXE_headstart")).parent().and_then(Path::file_name);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("command line").join(build.unwrap_or_default());
    let folder = folder.join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the folder for tests can be made");
    folder
}

fn headstart(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_headstart"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("headstart starts")
}

/// Everything in a folder, folders included.
fn files(folder: &Path) -> Vec<String> {
    let mut found: Vec<String> = fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("the folder can be read").file_name().to_string_lossy().into_owned())
        .collect();
    found.sort();
    found
}

const BAD_FILES: [(&str, &str); 15] = [
    ("key.toml", "speed = \"5 Mbit/s\"\n"),
    ("value.toml", "rate = \"15\"\n"),
    ("type.toml", "rate = 1.5\n"),
    ("flag.toml", "ecn = \"yes\"\n"),
    ("syntax.toml", "rate = \"5 Mbit/s\"\nload 5\n"),
    ("words.trace", "1\n2\nthree\n"),
    ("falling.trace", "5\n4\n"),
    ("empty.trace", ""),
    ("slow.trace", "4294967295\n"),
    ("zero.trace", "0\n0\n"),
    ("negative.trace", "1\n-2\n"),
    ("text.har", "this is no HAR\n"),
    ("cut.har", "{\"log\": {\"entries\": [{\"req"),
    ("keyless.har", "{\"logs\": {}}"),
    ("hollow.har", "{\"log\": {\"entries\": []}}"),
];

/// Arguments, and the expected message: place, text found, text expected.
#[rustfmt::skip]
const MISTAKES: &[(&[&str], &[&str])] = &[
    (&["rcae"],                                  &["rcae", "race"]),
    (&["race", "--rate", "15"],                  &["--rate", "15", "Mbit/s"]),
    (&["race", "--rate=-1 Mbit/s"],              &["--rate", "-1 Mbit/s", "expected"]),
    (&["race", "--rate", "0 Mbit/s"],            &["--rate", "0", "expected"]),
    (&["race", "--up-rate", "0 Mbit/s"],         &["--up-rate", "0", "expected"]),
    (&["race", "--rtt", "60"],                   &["--rtt", "60", "ms"]),
    (&["race", "--rtt", "0.001ns"],              &["--rtt", "0.001ns", "1 ns"]),
    (&["race", "--size", "1.5B"],                &["--size", "1.5B", "whole bytes"]),
    (&["race", "--buffer", "1.5p"],              &["--buffer", "1.5p", "whole packets"]),
    (&["race", "--trace", "absent.trace"],       &["--trace", "absent.trace", "cannot read"]),
    (&["race", "--load", "0.00001%"],            &["--load", "0.00001%", "0.0001 %"]),
    (&["race", "--trace", "slow.trace"],         &["--trace", "mean rate", "8 bit/s"]),
    (&["race", "--rtt", "100s"],                 &["--rtt", "100 s", "expected"]),
    (&["assess", "nonsense"],                    &["nonsense", "expected"]),
    (&["assess", "iw10,iw32,iw10"],              &["found `iw10` twice", "expected"]),
    (&["assess", "iw10", "--figure", "x"],       &["--figure", "found `x`", "expected one of load"]),
    (&["race", "--trace", "example:x"],          &["--trace", "found the example `x`", "leo"]),
    (&["race", "--seed", "-1"],                  &["--seed", "-1"]),
    (&["race", "--history", "many"],             &["--history", "found `many`, expected a whole number from 0"]),
    (&["race", "--repeats", "0"],                &["--repeats", "found `0`, expected a whole number from 1 to 10000"]),
    (&["examples", "text.har"],                  &["text.har: found a file, expected a folder"]),
    (&["trace", "iw10", "--flow", "9999999"],    &["--flow", "9999999"]),
    (&["sweep", "--load", "5%,25%", "--har", "text.har"], &["text.har", "HAR"]),
    (&["race", "--rate", "1bit"],                &["--rate", "1bit", "8 bit/s at least"]),
    (&["race", "--rate", "1tbit"],               &["--rate", "1tbit", "Gbit/s"]),
    (&["race", "--cap", "0B", "--size", "internet"], &["--cap", "0 B", "expected more"]),
    (&["race", "--rate", "1000gbit"],            &["processor time", "expected 4 h", "--duration", "--large runs it anyway"]),
    (&["race", "--size", "1B"],                  &["GB of memory", "raise --size", "--large runs it anyway"]),
    (&["race", "--size", "internet", "--cap", "1B"], &["raise --size"]),
    (&["race", "--capacity", "--duration", "1000000s"], &["processor time", "--large runs it anyway"]),
    (&["sweep", "--seed", "1..200000:1"],        &["found 200000 combinations, expected at most 100000, or --blocks"]),
    (&["sweep", "--blocks", "--seed", "1..1000000:1", "--load", "1%..20%:1%"], &["found 20000000 combinations", "10000000"]),
    (&["sweep", "--blocks", "--flows", "flows.csv"], &["--blocks", "--flows"]),
    (&["sweep", "--blocks", "--format", "json"], &["--format: found it with --blocks"]),
    (&["sweep", "--rate", "15mbit,1000gbit"],    &["processor time", "--large runs it anyway"]),
    (&["trace", "iw10", "--size", "10GB"],       &["GB of memory", "--large runs it anyway"]),
    (&["race", "--trace", "/dev/zero"],          &["--trace", "found more than 134217728 bytes"]),
    (&["race", "--buffer", "115"],               &["--buffer", "115", "expected"]),
    (&["race", "--buffer", "x BDP"],             &["--buffer", "x BDP", "expected"]),
    (&["race", "--queue", "fifo"],               &["--queue", "fifo", "codel"]),
    (&["race", "--loss", "120%"],                &["--loss", "120", "100"]),
    (&["race", "--loss", "1"],                   &["--loss", "1", "%"]),
    (&["race", "--burst-loss", "1%"],            &["--burst-loss", "1%", "0.1%,5"]),
    (&["race", "--duplicate", "300%"],           &["--duplicate", "300", "100"]),
    (&["race", "--jitter", "5m"],                &["--jitter", "5m", "expected"]),
    (&["race", "--hop", "10mbit"],               &["--hop", "10mbit", "10mbit/5ms/50kB"]),
    (&["race", "--hop", "0mbit/5ms/50kB"],       &["--hop", "0", "expected"]),
    (&["race", "--schemes", "iw10,tahoe"],       &["--schemes", "tahoe", "halfback"]),
    (&["race", "--base", "vegas"],               &["--base", "vegas", "cubic"]),
    (&["race", "--load", "0%"],                  &["--load", "0 %", "expected"]),
    (&["race", "--load", "600%"],                &["--load", "600", "500 %"]),
    (&["race", "--load", "half"],                &["--load", "half", "%"]),
    (&["race", "--size", "0 B"],                 &["--size", "0 B", "expected"]),
    (&["race", "--size", "gigantic"],            &["--size", "gigantic", "internet"]),
    (&["race", "--duration", "0s"],              &["--duration", "0", "expected"]),
    (&["race", "--initial-rto", "0s"],           &["--initial-rto", "found `0s`, expected 1 us at least"]),
    (&["race", "--duration", "5s", "--warm-up", "6s"], &["--warm-up", "6 s", "5 s"]),
    (&["race", "--repeats", "0"],                &["--repeats", "0", "1"]),
    (&["race", "--seed=-1"],                     &["--seed", "-1"]),
    (&["race", "--quantum", "65"],               &["--quantum", "65", "64"]),
    (&["race", "--mtu", "500 B"],                &["--mtu", "500 B", "576"]),
    (&["race", "--receive-window", "1 kB"],      &["--receive-window", "1 kB", "1448"]),
    (&["race", "--fetch", "persistent:0"],       &["--fetch", "persistent:0", "persistent:6"]),
    (&["race", "--colour", "red"],               &["--colour"]),
    (&["race", "--newcomers", "4"],              &["--newcomers"]),
    (&["race", "--changed", "50%"],              &["--changed"]),
    (&["trace", "iw10", "--population", "wired"], &["--population"]),
    (&["race", "--trace", "nowhere.trace"],      &["--trace", "nowhere.trace"]),
    (&["race", "--trace", "words.trace"],        &["--trace", "words.trace", "line 3", "three", "expected"]),
    (&["race", "--trace", "falling.trace"],      &["--trace", "falling.trace", "line 2", "4 after 5", "expected"]),
    (&["race", "--trace", "empty.trace"],        &["--trace", "empty.trace", "no line", "expected"]),
    (&["race", "--trace", "zero.trace"],         &["--trace", "zero.trace", "line 2", "expected"]),
    (&["race", "--up-trace", "negative.trace"],  &["--up-trace", "negative.trace", "line 2", "-2", "expected"]),
    (&["race", "--har", "nowhere.har"],          &["nowhere.har"]),
    (&["race", "--har", "text.har"],             &["text.har", "line 1", "expected"]),
    (&["race", "--har", "cut.har"],              &["cut.har", "line 1", "expected"]),
    (&["race", "--har", "keyless.har"],          &["keyless.har", "log", "expected"]),
    (&["race", "--har", "hollow.har"],           &["hollow.har", "object"]),
    (&["race", "--out", "words.trace"],          &["words.trace", "file", "folder"]),
    (&["race", "--out", "."],                    &[".", "cut.har", "expected"]),
    (&["race", "--plan", "nowhere.toml"],        &["--plan", "nowhere.toml"]),
    (&["race", "--plan", "key.toml"],            &["--plan: key.toml: speed", "unknown key", "expected one of", "rate"]),
    (&["race", "--plan", "value.toml"],          &["--plan: value.toml: rate", "found `15`", "expected a rate"]),
    (&["trace", "iw10", "--plan", "type.toml"],  &["--plan: type.toml: rate", "found `1.5`", "expected a text"]),
    (&["race", "--plan", "flag.toml"],           &["--plan: flag.toml: ecn", "yes", "expected true or false"]),
    (&["sweep", "--plan", "syntax.toml"],        &["--plan: syntax.toml: line 2", "expected"]),
    (&["race", "--path", "isdn"],                &["--path", "isdn", "dsl"]),
    (&["race", "--size", "-5kB"],                &["--size", "found `-5kB`", "a size above zero"]),
    (&["race", "--load", "-1%"],                 &["--load", "found `-1%`", "expected no sign"]),
    (&["race", "--schemes", "iw10,halfbak"],     &["halfbak", "did you mean `halfback`"]),
    (&["race", "--queue", "codle"],              &["codle", "similar value", "codel"]),
    (&["trace"],                                 &["<SCHEME>"]),
    (&["trace", "tahoe"],                        &["tahoe", "halfback"]),
    (&["trace", "iw10", "--flow", "many"],       &["--flow", "many"]),
    (&["sweep", "--load", "10%,none"],           &["--load", "none", "%"]),
    (&["sweep", "--capacity"],                   &["--capacity"]),
    (&["sweep", "--load", "5%,25%", "--colour", "red"], &["--colour"]),
    (&["trace", "iw10", "--repeats", "3"],       &["--repeats", "trace", "does not have this option"]),
    (&["trace", "iw10", "--schemes", "iw10"],    &["--schemes"]),
    (&["reproduce", "."],                        &["no paper.toml", "a folder of experiments"]),
    (&["reproduce", "halfback", "--list", "--traces", "nowhere"], &["--list", "--traces"]),
    (&["reproduce", "mine/"],                    &["cannot read mine/"]),
];

/// Mistakes in commands of the full program only.
#[cfg(feature = "full")]
#[rustfmt::skip]
const MORE_MISTAKES: &[(&[&str], &[&str])] = &[
    (&["history", "prune", "--older-than", "-1h", "x"], &["--older-than", "found `-1h`", "expected no sign"]),
    (&["race", "--transport", "quic", "--schemes", "iw10,rcp"],  &["--transport quic", "`rcp`", "not available", "header"]),
    (&["trace", "pcp", "--transport", "quic"],   &["--transport quic", "`pcp`", "not available"]),
    (&["race", "--transport", "udp"],            &["--transport", "udp", "quic"]),
    (&["race", "--transport", "quic", "--mtu", "1000 B"], &["--mtu", "found 1 kB", "expected 1228 B at least"]),
    (&["downlink", "--rate", "50"],              &["--rate", "50", "Mbit/s"]),
    (&["downlink", "--rate=-1 Mbit/s"],          &["--rate", "-1"]),
    (&["downlink", "--rate", "8 bit/s"],         &["--rate", "8 bit/s", "64 kbit/s"]),
    (&["downlink", "--access", "dsl"],           &["--rate"]),
    (&["downlink", "--rate", "9Mbit", "--access", "adsl"], &["--access", "adsl", "cable"]),
    (&["serve", "--generate", "--networks", "nowhere.txt"], &["--networks", "cannot read nowhere.txt"]),
    (&["downlink", "--networks", "nowhere.json"], &["--networks nowhere.json", "No such file"]),
    (&["downlink", "--steps", "six"],            &["--steps", "six", "five"]),
    (&["reproduce", "quick-start", "--in", "emulator"], &["--in", "quick-start", "wisestart and halfback"]),
    (&["reproduce", "halfback", "--in", "emulator", "--transport", "quic"], &["--in", "halfback", "points of wisestart"]),
    (&["reproduce", "halfback", "--figure", "1"], &["`1`, whose numbers are in figure-12, expected one of figure-3, "]),
    (&["reproduce", "halfback", "--figure", "99"], &["`99`, expected one of figure-3, "]),
    (&["reproduce", "wisestart", "--in", "emulator", "--figure", "figure-1"], &["--figure", "figure-1", "figure-9", "no others of wisestart"]),
    (&["reproduce", "wisestart", "--transport", "quic"], &["--transport", "found quic", "--in emulator"]),
    (&["reproduce", "./wisestart", "--in", "emulator"], &["--in", "./wisestart", "expected a paper"]),
];

/// A command that was not built is refused, with the way to get it.
#[cfg(not(feature = "full"))]
#[rustfmt::skip]
const MORE_MISTAKES: &[(&[&str], &[&str])] = &[
    (&["serve", "site"],                         &["serve: this build lacks it", "cargo run --release --features full -- ", "cargo install --path crates/command --features full"]),
    (&["serve", "--help"],                       &["serve: this build lacks it", "--features full"]),
    (&["get", "https://localhost:4433/", "--repeat", "5"], &["get: this build lacks it", "--features full"]),
    (&["demo"],                                  &["demo: this build lacks it", "--features full"]),
    (&["link", "--rate", "25mbit", "--", "true"], &["link: this build lacks it", "--features full"]),
    (&["show-link", "log.csv"],                  &["show-link: this build lacks it", "--features full"]),
    (&["downlink", "--format", "json"],          &["downlink: this build lacks it", "--features full"]),
    (&["race", "--in", "emulator"],              &["--in", "emulator, tcp", "--features full"]),
    (&["reproduce", "wisestart", "--in", "emulator"], &["figure-9: --in", "--features full"]),
];

/// And without the QUIC stack.
#[cfg(not(feature = "quic"))]
#[rustfmt::skip]
const QUIC_MISTAKES: &[(&[&str], &[&str])] = &[
    (&["race", "--transport", "quic"],           &["--transport", "simulator, quic", "--features full"]),
    (&["trace", "pcp", "--transport", "quic"],   &["--transport", "simulator, quic", "--features full"]),
    (&["sweep", "--transport", "tcp,quic"],      &["--transport", "simulator, quic", "--features full"]),
    (&["reproduce", "wisestart", "--figure", "stack-figure-9"], &["stack-figure-9", "simulator, quic", "--features full"]),
];

#[cfg(feature = "quic")]
const QUIC_MISTAKES: &[(&[&str], &[&str])] = &[];

/// A line of advice is no second message: only lines with an error count.
fn is_complaint(line: &str) -> bool {
    line.starts_with("error: ") || line.starts_with("headstart: ")
}

#[test]
fn every_mistake_has_one_clear_message_and_writes_nothing() {
    let mut wrong = vec![];
    let all = [MISTAKES, MORE_MISTAKES, QUIC_MISTAKES].concat();
    for (number, (arguments, words)) in all.iter().enumerate() {
        let folder = folder(&format!("mistake {number}"));
        for (name, text) in BAD_FILES {
            fs::write(folder.join(name), text).expect("a file can be written");
        }
        let before = files(&folder);
        let output = headstart(&folder, arguments);
        let (message, printed) =
            (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
        let mut faults = vec![];
        if output.status.code() != Some(2) {
            faults.push(format!("ended with {}, expected 2", output.status));
        }
        if message.contains("panicked") {
            faults.push("panicked".into());
        }
        if message.lines().filter(|line| is_complaint(line)).count() != 1 {
            faults.push("expected one complaint".into());
        }
        if !printed.is_empty() {
            faults.push(format!("printed {printed}"));
        }
        let missing: Vec<_> = words.iter().filter(|word| !message.contains(**word)).collect();
        if !missing.is_empty() {
            faults.push(format!("does not say {missing:?}"));
        }
        let after = files(&folder);
        if before != after {
            faults.push(format!("left {after:?} behind"));
        }
        if !faults.is_empty() {
            wrong.push(format!("headstart {}: {}\n{message}", arguments.join(" "), faults.join("; ")));
        }
    }
    assert!(wrong.is_empty(), "{} of {} mistakes:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

/// The long options of a command, by its help.
fn options(folder: &Path, command: &str) -> Vec<String> {
    let help = String::from_utf8(headstart(folder, &[command, "--help"]).stdout).expect("help is UTF-8");
    let first = |line: &str| {
        let name = line.trim_start().trim_start_matches("-o, ").strip_prefix("--")?;
        Some(name.split([' ', '=']).next()?.to_owned())
    };
    help.lines().filter_map(first).filter(|name| name != "help").collect()
}

// Other systems have no files of such names.
#[cfg(target_os = "linux")]
#[test]
fn no_bytes_of_an_argument_make_a_command_panic() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let folder = folder("bytes");
    let short: &[&str] = &["--duration", "1s", "--repeats", "1", "--schemes", "iw10"];
    let commands: [(&str, &[&str]); 4] =
        [("race", short), ("sweep", &short[..4]), ("trace", &["iw10"]), ("reproduce", &["nobody"])];
    let mut wrong = vec![];
    for (command, others) in commands {
        let names = options(&folder, command);
        assert!(names.len() > 10, "{command}: {names:?}");
        for (at, name) in names.iter().enumerate() {
            let value: &[u8] = [&b"\xff"[..], b"a\xc3,b", b"\xed\xa0\x80.csv", b"10\x80%"][at % 4];
            let bytes = [b"--", name.as_bytes(), b"=", value].concat();
            let output = Command::new(env!("CARGO_BIN_EXE_headstart"))
                .arg(command)
                .args(others)
                .arg(OsStr::from_bytes(&bytes))
                .current_dir(&folder)
                .output()
                .expect("headstart starts");
            let message = String::from_utf8_lossy(&output.stderr);
            if !matches!(output.status.code(), Some(0 | 2)) || message.contains("panicked") {
                wrong.push(format!("{command} {bytes:?}: {}: {message}", output.status));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_command_has_help() {
    let folder = folder("help");
    for (arguments, word) in [
        (&["--help"][..], "race"),
        (&["race", "--help"], "--schemes"),
        (&["sweep", "--help"], "--schemes"),
        (&["trace", "--help"], "--flow"),
        #[cfg(feature = "full")]
        (&["downlink", "--help"], "--access"),
        // All are listed, whatever was built.
        (&["--help"], "serve"),
        #[cfg(not(feature = "full"))]
        (&["--help"], "[--features full]"),
        (&["schemes", "--help"], "schemes"),
        (&["--version"], "headstart"),
    ] {
        let output = headstart(&folder, arguments);
        let message = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && message.contains(word), "{arguments:?}: {message}");
    }
    assert_eq!(files(&folder), [""; 0], "help writes nothing");
}

#[test]
fn a_trace_writes_its_files() {
    let folder = folder("trace");
    let output = headstart(&folder, &["trace", "halfback", "--out", "out"]);
    let message = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && message.contains("Complete after"), "{message}");
    assert_eq!(
        files(&folder.join("out")),
        [".headstart", "events.csv", "queue.svg", "report.html", "time-sequence.svg"]
    );
    let text = |name: &str| fs::read_to_string(folder.join("out").join(name)).expect("UTF-8");
    assert!(text("events.csv").lines().count() > 100, "a flow of 70 segments has more events");
    for figure in ["queue.svg", "time-sequence.svg"] {
        let svg = text(figure);
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{figure}: {svg:.200}");
    }
}

#[test]
fn json_output_is_valid_and_equals_the_files() {
    let folder = folder("json");
    let arguments = [
        "race",
        "--schemes",
        "iw10,blitzstart",
        "--duration",
        "2s",
        "--repeats",
        "2",
        "--format",
        "json",
        "--out",
        "out",
    ];
    let output = headstart(&folder, &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    let written = fs::read(folder.join("out/race.json")).expect("race.json is there");
    assert_eq!(printed, serde_json::from_slice::<serde_json::Value>(&written).expect("JSON"));
    let names: Vec<_> =
        printed["schemes"].as_array().expect("a list").iter().map(|row| &row["scheme"]).collect();
    assert_eq!(names, ["iw10", "blitzstart"]);
}

#[test]
fn an_option_without_effect_is_reported_before_the_run_and_under_its_table() {
    let folder = folder("idle");
    let short = ["--schemes", "iw10", "--duration", "2s", "--repeats", "1"];
    let message = |arguments: &[&str]| {
        let output = headstart(&folder, &[arguments, &short].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (
            String::from_utf8_lossy(&output.stderr).into_owned(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let note = "--reorder has no effect without --jitter";
    let (before, table) = message(&["race", "--reorder"]);
    assert!(before.contains(&format!("headstart: {note}\n")) && table.contains(note), "{before}{table}");
    let (before, _) = message(&["race", "--reorder", "--jitter", "2ms"]);
    assert!(!before.contains("has no effect"), "{before}");
    // At one of its points it counts.
    let (before, _) = message(&["sweep", "--reorder", "--jitter", "0ms,2ms"]);
    assert!(!before.contains("has no effect"), "{before}");
    let (before, _) = message(&["sweep", "--reorder", "--load", "10%,20%"]);
    assert!(before.contains(&format!("headstart: {note}\n")), "{before}");
}

#[test]
fn a_trace_beside_a_named_path_and_a_cut_down_run_say_so() {
    let folder = folder("said");
    let said = |words: &str| {
        let output = headstart(&folder, &words.split(' ').collect::<Vec<_>>());
        assert!(output.status.success(), "{words}");
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
    };
    let race = "race --path lte --schemes iw10 --duration 5s --repeats 1";
    assert!(!said(race).contains("--trace"));
    let found = said(&format!("{race} --trace example:leo"));
    assert!(found.contains("--trace replaces the rate of --path"), "{found}");
    let found = said("reproduce quick-start --figure 13 --quick");
    assert!(found.contains("This is the cut-down run (--quick)"), "{found}");
    let page =
        fs::read_to_string(folder.join("headstart-reproduce/quick-start/report.html")).expect("a page");
    let first = page.split("<h2").next().expect("the part before the first heading");
    assert!(first.contains("This is the cut-down run") && first.contains("claims of the paper"), "{first}");
}

/// The table of a race with these words, without the names of its files and its program.
fn table(folder: &Path, words: &str) -> String {
    let line = format!("race --duration 2s --repeats 1 --format csv {words}");
    let output = headstart(folder, &line.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("CSV is UTF-8")
}

#[test]
fn scheme_names_are_accepted_as_papers_spell_them() {
    let folder = folder("names");
    let ours = table(
        &folder,
        "--schemes wise-start,jump-start,iw10,halfback --queue codel --base reno --size data-center",
    );
    let theirs = table(
        &folder,
        "--schemes WiseStart,Jump-Start,IW10,HALFBACK --queue=CoDel --base NewReno --size Data_Center",
    );
    assert_eq!(ours, theirs);
    assert_eq!(ours.lines().count(), 5);
}

#[test]
fn the_command_line_overrides_the_plan_and_the_plan_the_preset() {
    let folder = folder("plan");
    fs::write(
        folder.join("mine.toml"),
        "path = \"LTE\"\nrtt = \"40 ms\"\nschemes = [\"iw10\", \"Halfback\"]\nrepeats = 3\necn = true\nqueue = \"codel\"\n",
    )
    .expect("a file can be written");
    // CoDel has its usual buffer, not the preset's for drop-tail.
    let path = "--rate 12mbit --up-rate 12mbit --buffer 1000p --up-buffer 100ms";
    let typed =
        table(&folder, &format!("{path} --rtt 40ms --queue codel --ecn --load 40% --schemes iw10,halfback"));
    assert_eq!(typed, table(&folder, "--plan mine.toml --load 40% --save-plan effective.toml"));
    let effective = fs::read_to_string(folder.join("effective.toml")).expect("the plan that was run");
    for line in [
        "path = \"lte\"",
        "rtt = \"40 ms\"",
        "repeats = 1",
        "ecn = true",
        "# rate = \"12 Mbit/s\"",
        "# drain = \"20 s\"",
    ] {
        assert!(effective.lines().any(|found| found == line), "{line} is not in {effective}");
    }
    let output = headstart(&folder, &["race", "--plan", "effective.toml", "--format", "csv"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), typed, "a saved plan gives the same again");
}

#[test]
fn a_sweep_varies_paths_and_prints_the_table_it_writes() {
    let folder = folder("paths");
    let line = "sweep --path dsl,geo --schemes iw10 --duration 5s --repeats 1 --format";
    let print = |format: &str| {
        let output = headstart(&folder, &line.split(' ').chain([format]).collect::<Vec<_>>());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let (csv, json) = (print("csv"), print("json"));
    let text =
        |name: &str| fs::read_to_string(folder.join("headstart-sweep").join(name)).expect("it is there");
    assert_eq!((&csv, &json), (&text("sweep.csv"), &text("sweep.json")));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON and nothing else");
    let rates: Vec<_> =
        json["rows"].as_array().expect("rows").iter().map(|row| &row["rate_bits_per_s"]).collect();
    assert_eq!(rates, [1_500_000, 20_000_000]);
    assert!(
        json["rows"][0]["headstart"]
            .as_str()
            .is_some_and(|version| version.starts_with(env!("CARGO_PKG_VERSION")))
    );
}

#[test]
fn schemes_are_listed() {
    let folder = folder("schemes");
    let output = headstart(&folder, &["schemes"]);
    let message = String::from_utf8_lossy(&output.stdout);
    for entry in headstart_startup::catalogue::all() {
        assert!(message.contains(entry.name.as_str()), "{}", entry.name);
    }
    let line = message.lines().find(|line| line.starts_with("Run only where")).expect("a note");
    for by_name in ["bbr-v3", "prague", "iw10-linux"] {
        assert!(line.contains(by_name) && message.contains(&format!("\n{by_name} ")), "{by_name}: {message}");
    }
}

#[cfg(feature = "full")]
#[test]
fn the_downlink_is_shown_and_converted_to_a_hint() {
    let folder = folder("downlink");
    let options = ["downlink", "--rate", "51.39 Mbit/s", "--access", "dsl", "--networks", "none.json"];
    fs::write(folder.join("none.json"), r#"{"version":1,"networks":[]}"#).expect("a file can be written");
    let output = headstart(&folder, &options);
    let message = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(message.contains("Hint: 50 Mbit/s, dsl (from explicit: 51.39 Mbit/s, dsl)"), "{message}");
    let output = headstart(&folder, &[&options[..], &["--format", "json", "--steps", "exact"]].concat());
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    assert_eq!(printed["hint"]["hint_bits_per_s"], 51_390_000);
    assert_eq!(printed["hint"]["hint_hex"], "01020000c8be");
    assert_eq!(printed["answers"].as_array().map(Vec::len), Some(3));
    assert_eq!(files(&folder), ["none.json"], "asking writes nothing");
}

#[test]
fn reproduce_without_a_paper_lists_all() {
    let folder = folder("papers");
    let [bare, listed] = [&["reproduce"][..], &["reproduce", "--list"]].map(|arguments| {
        let output = headstart(&folder, arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("tables are UTF-8")
    });
    assert_eq!(bare, listed);
    for paper in ["halfback", "quick-start", "fast-startup", "wisestart", "blitzstart"] {
        assert!(bare.contains(paper), "{bare}");
    }
    assert!(bare.contains("reproduce wisestart --in emulator --transport tcp"), "{bare}");
    assert!(files(&folder).is_empty(), "nothing is written");
}

#[test]
fn a_reader_of_notes_that_has_gone_ends_no_run() {
    let folder = folder("notes unread");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_headstart"))
        .args(["race", "--duration", "2s", "--repeats", "1", "--schemes", "iw10"])
        .current_dir(&folder)
        .stderr(writer)
        .output()
        .expect("headstart starts");
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains("iw10 takes"), "the table is printed");
}

/// Windows of a thousand segments must fail where others pay for them. Slow start from ten is the
/// standard, and its results are those on the page.
#[test]
fn an_assessment_finds_a_start_that_harms_others_and_says_what_the_page_says() {
    let folder = folder("assess");
    let wrong = "slow-start(initial-window=1000)";
    let arguments =
        ["assess", &format!("{wrong},iw10"), "--quick", "--figure", "load,bufferbloat,changed-path"];
    let output = headstart(&folder, &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(folder.join("headstart-assess/assessment.csv")).expect("written");
    let rows: Vec<Vec<String>> = text.lines().skip(1).map(csv).collect();
    let result = |criterion: &str, scheme: &str| -> &str {
        let row = rows.iter().find(|row| row[0].starts_with(criterion) && row[4] == scheme);
        row.map_or("no such row", |row| row[5].as_str())
    };
    for criterion in ["Others of the standard kind: their mean time", "Harm as loss", "Bufferbloat"] {
        assert_eq!(result(criterion, wrong), "not shown", "{criterion}");
        assert_eq!(result(criterion, "iw10"), "shown", "{criterion}");
    }
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/assessment.md"));
    let page = page.expect("the page");
    for row in rows.iter().filter(|row| row[4] == "iw10") {
        let shown = format!("| {}: {} |", row[5], row[6]);
        let line = page.lines().find(|line| line.starts_with(&format!("| {} |", row[0])));
        let line = line.unwrap_or_else(|| panic!("no line of {}", row[0]));
        assert!(line.contains(&shown), "{shown} is not in {line}");
    }
}

/// The fields of a line, without their quotes.
fn csv(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            other => fields.last_mut().expect("one at least").push(other),
        }
    }
    fields
}

#[cfg(all(feature = "full", target_os = "linux"))]
#[test]
fn a_log_on_a_full_disk_leaves_the_summary_of_a_run_that_went_well() {
    let folder = folder("full disk");
    let output =
        headstart(&folder, &["link", "--udp", "127.0.0.1:9", "--duration", "50ms", "--log", "/dev/full"]);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && words.contains("crossed the path"), "{words}");
    let last = words.lines().last().unwrap_or_default();
    assert!(last.contains("--log /dev/full") && last.contains("No space left"), "{words}");
}
