//! Finished runs are kept, and only those that would give the same again are reused.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::{folder, headstart, program, run, text};

/// All that it printed.
fn printed(output: Output) -> String {
    text(output.stdout) + &text(output.stderr)
}

fn file(path: PathBuf) -> String {
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A page of one object of this size, as a browser saves it.
fn har(bytes: u64) -> String {
    format!(
        r#"{{"log":{{"entries":[{{"startedDateTime":"2024-01-01T00:00:00.000Z","time":1,
        "request":{{"method":"GET","url":"https://a.example/","headers":[]}},
        "response":{{"status":200,"headers":[],"bodySize":{bytes},"headersSize":100,
        "content":{{"size":{bytes},"mimeType":"text/html"}}}}}}]}}}}"#
    )
}

const COMMANDS: [(&str, &str); 2] = [
    ("race", "race --schemes iw10 --duration 3s --drain 2s --repeats 2 --out out"),
    ("sweep", "sweep --schemes iw10 --load 10%,30% --duration 3s --drain 2s --repeats 2 --out out"),
];

#[test]
fn a_file_with_changed_content_is_a_new_run() {
    let trace = |every: u32| (1..=400).map(|n| format!("{}\n", n * every)).collect::<String>();
    for (option, before, after) in
        [("--trace input", trace(1), trace(3)), ("--har input", har(40_000), har(400_000))]
    {
        for (name, command) in COMMANDS {
            let folder = folder("kept", &format!("content {name} {option}"));
            let line = format!("{command} {option}");
            let table = folder.join(format!("out/{name}.csv"));
            fs::write(folder.join("input"), &before).expect("an input");
            headstart(&folder, &line);
            let first = file(table.clone());
            fs::write(folder.join("input"), &after).expect("an input");
            headstart(&folder, &line);
            assert_ne!(file(table.clone()), first, "{line}: the old numbers");
            fs::write(folder.join("input"), &before).expect("an input");
            headstart(&folder, &line);
            assert_eq!(file(table), first, "{line}");
        }
    }
}

#[test]
fn a_changed_program_repeats_all_runs() {
    for (name, command) in COMMANDS {
        let folder = folder("kept", &format!("program {name}"));
        // As if it had been built from other sources: bytes after the end of a program in its file
        // are not executed.
        let other = folder.join("headstart");
        fs::copy(env!("CARGO_BIN_EXE_headstart"), &other).expect("a copy");
        let mut bytes = fs::read(&other).expect("a program");
        bytes.push(0);
        fs::write(&other, bytes).expect("a program");

        let all = printed(headstart(&folder, command));
        assert!(!all.contains("were there before"), "{all}");
        let again = printed(headstart(&folder, command));
        assert!(again.contains("were there before"), "{again}");
        let output = run(&other, &folder, command);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !message.contains("were there before"), "{message}");
    }
}

#[test]
fn damaged_lines_are_ignored_and_their_runs_repeated() {
    for (name, command) in COMMANDS {
        let folder = folder("kept", &format!("damaged {name}"));
        headstart(&folder, command);
        let (table, kept) = (folder.join(format!("out/{name}.csv")), folder.join("out/runs.jsonl"));
        let (whole, lines) = (file(table.clone()), file(kept.clone()));
        // As if it had been interrupted in the middle of a line, after another was damaged.
        let damaged = lines.replacen("\"result\":{", "\"result\":[", 1);
        fs::write(&kept, &damaged[..damaged.len() - 100]).expect("a damaged store");
        let message = printed(headstart(&folder, command));
        assert!(message.contains("before"), "{message}");
        assert_eq!(file(table), whole, "{name}");
        assert!(file(kept) == lines, "{name}: the store is whole again");
    }
}

/// The blocks of a folder, by name.
#[cfg(feature = "parquet")]
fn blocks(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = ["points", "seeds"].into_iter().flat_map(|table| {
        let files = fs::read_dir(folder.join(table)).into_iter().flatten();
        let names = files.map(|file| Path::new(table).join(file.expect("a file").file_name()));
        names.filter(|name| name.extension().is_some_and(|end| end == "parquet")).collect::<Vec<_>>()
    });
    let mut files: Vec<_> =
        files.map(|name| (name.clone(), fs::read(folder.join(name)).expect("ours"))).collect();
    files.sort();
    files
}

#[cfg(all(feature = "parquet", unix))]
#[test]
fn a_sweep_in_blocks_that_was_killed_goes_on_from_them() {
    let folder = folder("kept", "blocks");
    let line = "sweep --blocks --schemes iw10 --load 1%..40%:1% --duration 20s --repeats 2";
    let mut first = Command::new(program())
        .args(format!("{line} --out out").split_whitespace())
        .current_dir(&folder)
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("headstart starts");
    while blocks(&folder.join("out")).len() < 6 {
        assert!(first.try_wait().expect("ours").is_none(), "it ended");
        std::thread::yield_now();
    }
    first.kill().expect("it runs");
    first.wait().expect("it ends");
    let kept = blocks(&folder.join("out"));
    assert!(kept.len() < 80, "it was killed before its end");
    let message = printed(headstart(&folder, &format!("{line} --out out")));
    let begun = message.lines().filter(|line| line.contains(" of 40: points ")).count();
    let finished = kept.iter().filter(|(name, _)| name.starts_with("points")).count();
    assert_eq!(begun + finished, 40, "{message}");
    headstart(&folder, &format!("{line} --out whole"));
    assert_eq!(blocks(&folder.join("whole")).len(), 80);
    assert!(blocks(&folder.join("out")) == blocks(&folder.join("whole")), "the same bytes");

    for (options, expected) in [
        (
            "--seed 2",
            "out: found blocks of another sweep, or of other input files (`headstart sweep --blocks",
        ),
        ("--ecn", "out: found blocks of another sweep"),
    ] {
        let output = run(program(), &folder, &format!("{line} {options} --out out"));
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && message.contains(expected), "{options}: {message}");
    }
    let output = run(program(), &folder, "sweep --load 5%,9% --schemes iw10 --duration 1s --out out");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("found results of `sweep --blocks`"), "{message}");
}

#[test]
fn a_second_run_in_one_folder_is_refused_while_the_first_goes_on() {
    let folder = folder("kept", "two at once");
    let mut first = Command::new(env!("CARGO_BIN_EXE_headstart"))
        .args("race --schemes iw10 --duration 100000s --repeats 2 --out out".split_whitespace())
        .current_dir(&folder)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("headstart starts");
    // It prints how to continue once it holds the folder.
    let mut message = String::new();
    let mut lines = BufReader::new(first.stderr.take().expect("a pipe"));
    lines.read_line(&mut message).expect("a line");
    assert!(message.contains("the same command goes on from there"), "{message}");
    for line in [COMMANDS[0].1, COMMANDS[1].1, "trace iw10 --out out"] {
        let output = run(program(), &folder, line);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.contains("out: found another headstart at work in this folder"), "{message}");
    }
    first.kill().expect("it runs");
    first.wait().expect("it ends");
    headstart(&folder, COMMANDS[0].1);
}

/// A command that takes long, interrupted as soon as it has printed the progress of this work.
#[cfg(unix)]
fn interrupted(folder: &Path, line: &str, work: &str) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"))
        .args(line.split_whitespace())
        .current_dir(folder)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("headstart starts");
    let mut message = String::new();
    let mut lines = BufReader::new(command.stderr.take().expect("a pipe"));
    let is_progress = |line: &str| line.contains(&format!(" {work}: ")) && line.ends_with(" left");
    while !message.lines().any(is_progress) {
        assert!(lines.read_line(&mut message).expect("a line") > 0, "{line} ended: {message}");
    }
    let kill = Command::new("kill").args(["-INT", &command.id().to_string()]).status();
    assert!(kill.expect("kill is there").success());
    lines.read_to_string(&mut message).expect("lines");
    (command.wait().expect("it ends").code(), message)
}

#[cfg(unix)]
#[test]
fn ctrl_c_reports_the_stored_runs_and_the_same_command_resumes() {
    for (line, work, shorter) in [
        (
            "race --schemes iw10 --repeats 3000 --out out",
            "racing",
            Some("race --schemes iw10 --repeats 1 --out out"),
        ),
        (
            "sweep --schemes iw10 --load 20%,30% --repeats 3000 --out out",
            "sweeping",
            Some("sweep --schemes iw10 --load 20%,30% --repeats 1 --out out"),
        ),
        ("trace iw10 --flow 1 --duration 1000000s --out out", "tracing", None),
    ] {
        let folder = folder("kept", &format!("interrupted {}", line.split(' ').next().unwrap_or_default()));
        let (code, message) = interrupted(&folder, line, work);
        assert_eq!(code, Some(130), "{message}");
        assert!(
            message.contains(" done, ") && message.contains(" % in all, "),
            "a log tells how far it is: {message}"
        );
        let last = message.lines().last().unwrap_or_default();
        let Some(shorter) = shorter else {
            assert!(last.contains("headstart: stopped: what is in out is as it was before"), "{message}");
            continue;
        };
        assert!(last.starts_with("headstart: stopped: "), "{message}");
        assert!(
            last.contains("finished runs are kept in out/runs.jsonl; the same command goes on"),
            "{message}"
        );
        let kept = last.split(' ').nth(2).and_then(|count| count.parse::<usize>().ok()).expect("a count");
        assert!(file(folder.join("out/runs.jsonl")).lines().count() >= kept && kept > 1, "{message}");
        let again = printed(headstart(&folder, shorter));
        assert!(again.contains("there before"), "{again}");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_the_finished_runs_of_a_paper_and_the_same_command_resumes() {
    let folder = folder("kept", "interrupted paper");
    let runs = || file(folder.join("out/headstart/runs.jsonl")).lines().count();
    let mut left_before = usize::MAX;
    for _ in 0..2 {
        // On a busy machine its cost is estimated above the limit.
        let line = "reproduce headstart --threads 1 --large --out out";
        let (code, message) = interrupted(&folder, line, "reproducing");
        let announced = message.lines().find(|line| line.contains("from a run of each figure"));
        assert!(announced.is_some_and(|line| line.contains(" of processor time and ")), "{message}");
        assert_eq!(code, Some(130), "{message}");
        let last = message.lines().last().unwrap_or_default();
        assert!(last.starts_with("headstart: stopped: "), "{message}");
        assert!(
            last.contains("kept in out/headstart/runs.jsonl; the same command goes on from there"),
            "{message}"
        );
        assert!(runs() > 0, "{message}");
        let progress = message.lines().find(|line| line.contains(" reproducing: ")).expect("progress");
        let left = progress.split(" of ").nth(1).and_then(|rest| rest.split(' ').next());
        let left: usize = left.and_then(|left| left.parse().ok()).expect("a count");
        assert!(left < left_before, "what was kept is not run again: {message}");
        left_before = left;
    }
}

/// No file may grow above a few kilobytes: to a program that is as a disk that is full.
#[cfg(unix)]
#[test]
fn a_full_disk_loses_no_finished_table() {
    for (line, table) in [
        (COMMANDS[0].1, "iw10"),
        (COMMANDS[1].1, "30%"),
        ("race --schemes iw10 --duration 3s --repeats 2 --format json --out out", "\"mean_ms\""),
        ("trace iw10 --out out", "Complete after"),
    ] {
        let folder = folder("kept", &format!("full disk {line}"));
        let script = format!("trap '' XFSZ; ulimit -f 2; exec \"$0\" {line}");
        let output = Command::new("bash")
            .args(["-c", &script, env!("CARGO_BIN_EXE_headstart")])
            .current_dir(&folder)
            .output()
            .expect("bash starts");
        let (printed, message) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{line}: {message}");
        assert!(printed.contains(table), "{line}: {printed}{message}");
        assert!(!printed.contains("Report:"), "{printed}");
        assert!(message.contains("cannot write out/"), "{message}");
        assert_eq!(message.contains("further runs are not stored"), !line.starts_with("trace"), "{message}");
    }
}
