//! Finished runs were there before, and only what would come out again is taken from them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder for one test, empty.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kept").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the folder for tests can be made");
    folder
}

fn run(program: &Path, folder: &Path, arguments: &str) -> Output {
    Command::new(program)
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .expect("headstart starts")
}

/// Runs `headstart` in `folder`, and gives back what it printed.
fn headstart(folder: &Path, arguments: &str) -> String {
    let output = run(Path::new(env!("CARGO_BIN_EXE_headstart")), folder, arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned() + &said
}

fn text(path: PathBuf) -> String {
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
fn a_file_with_another_content_behind_the_same_name_is_another_run() {
    let trace = |every: u32| (1..=400).map(|n| format!("{}\n", n * every)).collect::<String>();
    for (option, before, after) in
        [("--trace input", trace(1), trace(3)), ("--har input", har(40_000), har(400_000))]
    {
        for (name, command) in COMMANDS {
            let folder = folder(&format!("content {name} {option}"));
            let line = format!("{command} {option}");
            let table = folder.join(format!("out/{name}.csv"));
            fs::write(folder.join("input"), &before).expect("an input");
            headstart(&folder, &line);
            let first = text(table.clone());
            fs::write(folder.join("input"), &after).expect("an input");
            headstart(&folder, &line);
            assert_ne!(text(table.clone()), first, "{line}: the old numbers");
            fs::write(folder.join("input"), &before).expect("an input");
            headstart(&folder, &line);
            assert_eq!(text(table), first, "{line}");
        }
    }
}

#[test]
fn another_program_runs_everything_again() {
    for (name, command) in COMMANDS {
        let folder = folder(&format!("program {name}"));
        // As if it had been built from other sources: what follows a program in its file is not executed.
        let other = folder.join("headstart");
        fs::copy(env!("CARGO_BIN_EXE_headstart"), &other).expect("a copy");
        let mut bytes = fs::read(&other).expect("a program");
        bytes.push(0);
        fs::write(&other, bytes).expect("a program");

        let all = headstart(&folder, command);
        assert!(!all.contains("were there before"), "{all}");
        let again = headstart(&folder, command);
        assert!(again.contains("were there before"), "{again}");
        let output = run(&other, &folder, command);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !said.contains("were there before"), "{said}");
    }
}

#[test]
fn damaged_lines_are_ignored_and_their_runs_done_again() {
    for (name, command) in COMMANDS {
        let folder = folder(&format!("damaged {name}"));
        headstart(&folder, command);
        let (table, kept) = (folder.join(format!("out/{name}.csv")), folder.join("out/runs.jsonl"));
        let (whole, lines) = (text(table.clone()), text(kept.clone()));
        // As if it had been interrupted in the middle of a line, after another was damaged.
        let damaged = lines.replacen("\"result\":{", "\"result\":[", 1);
        fs::write(&kept, &damaged[..damaged.len() - 100]).expect("a damaged store");
        let said = headstart(&folder, command);
        assert!(said.contains("before"), "{said}");
        assert_eq!(text(table), whole, "{name}");
        assert!(text(kept) == lines, "{name}: the store is whole again");
    }
}

#[test]
fn a_second_run_in_one_folder_is_refused_while_the_first_goes_on() {
    let folder = folder("two at once");
    let mut first = Command::new(env!("CARGO_BIN_EXE_headstart"))
        .args("race --schemes iw10 --duration 100000s --repeats 2 --out out".split_whitespace())
        .current_dir(&folder)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("headstart starts");
    // It says how to go on when it holds the folder.
    let mut said = String::new();
    let mut lines = BufReader::new(first.stderr.take().expect("a pipe"));
    lines.read_line(&mut said).expect("a line");
    assert!(said.contains("the same command goes on from there"), "{said}");
    for line in [COMMANDS[0].1, COMMANDS[1].1, "trace iw10 --out out"] {
        let output = run(Path::new(env!("CARGO_BIN_EXE_headstart")), &folder, line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("out: found another headstart at work in this folder"), "{said}");
    }
    first.kill().expect("it runs");
    first.wait().expect("it ends");
    headstart(&folder, COMMANDS[0].1);
}
