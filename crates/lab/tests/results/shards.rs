//! A sweep in shards: `sweep --shard` and `merge` write what one process writes, and refuse what
//! does not belong together.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{folder, headstart, program, run};

/// The one line with which a command refuses its input.
fn refusal(program: &Path, folder: &Path, arguments: &str) -> String {
    let output = run(program, folder, arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

/// The files of a folder and their bytes.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let file = |path: PathBuf| (path.display().to_string(), fs::read(&path).expect("a file"));
    let named = entries.map(|entry| file(entry.expect("an entry").path()));
    named.map(|(name, bytes)| (name.rsplit('/').next().unwrap_or_default().to_owned(), bytes)).collect()
}

const SWEEP: &str =
    "sweep --schemes iw10,halfback --load 10%,30%,50% --rtt 20ms,60ms --duration 3s --repeats 2 --out s";

#[test]
fn merged_shards_are_the_bytes_of_one_process() {
    let (whole, parts) = (folder("shards", "whole"), folder("shards", "parts"));
    headstart(&whole, SWEEP);
    for shard in ["3/3", "1/3", "2/3"] {
        headstart(&parts, &format!("{SWEEP} --shard {shard}"));
    }
    assert!(!parts.join("s").exists(), "a shard writes to its own folder only");
    headstart(&parts, "merge s");
    let (expected, found) = (files(&whole.join("s")), files(&parts.join("s")));
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for name in ["report.html", "sweep.csv", "sweep.json", "seeds.csv", "runs.jsonl"] {
        assert!(expected[name] == found[name], "{name} differs");
        assert!(!found[name].is_empty(), "{name}");
    }
    let lines = |folder: &str| {
        let text = fs::read_to_string(parts.join(folder).join("runs.jsonl")).expect("a store");
        text.lines().count()
    };
    let of_shards = ["1", "2", "3"].map(|shard| lines(&format!("s.shards/{shard}-of-3")));
    assert_eq!(of_shards.iter().sum::<usize>(), lines("s"), "no run is done twice");
    assert!(of_shards.iter().all(|lines| *lines > 0), "{of_shards:?}");
}

#[test]
fn missing_shards_are_named() {
    let folder = folder("shards", "missing");
    let said = refusal(program(), &folder, "merge s");
    assert!(said.contains("no complete shard in s.shards") && said.contains("sweep --shard"), "{said}");
    for shard in ["2/4", "4/4"] {
        headstart(&folder, &format!("{SWEEP} --shard={shard}"));
    }
    let said = refusal(program(), &folder, "merge s");
    assert!(said.contains("found 2 of 4 shards complete, missing: 1, 3"), "{said}");
    assert!(!folder.join("s").exists(), "nothing is written");
}

#[test]
fn shards_of_another_plan_or_program_are_refused() {
    let folder = folder("shards", "other");
    let input = |every: u32| (1..=400).map(|n| format!("{}\n", n * every)).collect::<String>();
    let line = "sweep --schemes iw10 --load 10%,30% --duration 2s --repeats 1 --trace input --out s";
    fs::write(folder.join("input"), input(1)).expect("an input");
    headstart(&folder, &format!("{line} --shard 1/2"));

    headstart(&folder, &format!("{line} --seed 7 --shard 2/2"));
    let said = refusal(program(), &folder, "merge s");
    assert!(said.contains("2-of-2") && said.contains("another plan") && said.contains("--seed 7"), "{said}");

    fs::write(folder.join("input"), input(3)).expect("an input");
    headstart(&folder, &format!("{line} --shard 2/2"));
    let said = refusal(program(), &folder, "merge s");
    assert!(said.contains("another plan") && said.contains("the same files"), "{said}");

    // As if built from other sources: bytes after a program's end in its file are not executed.
    fs::write(folder.join("input"), input(1)).expect("an input");
    let other = folder.join("headstart");
    fs::copy(program(), &other).expect("a copy");
    let mut bytes = fs::read(&other).expect("a program");
    bytes.push(0);
    fs::write(&other, bytes).expect("a program");
    assert!(run(&other, &folder, &format!("{line} --shard 2/2")).status.success());
    let said = refusal(program(), &folder, "merge s");
    assert!(said.contains("2-of-2") && said.contains("another program"), "{said}");

    headstart(&folder, &format!("{line} --shard 2/2"));
    fs::write(folder.join("input"), input(2)).expect("an input");
    let said = refusal(program(), &folder, "merge s");
    assert!(said.contains("expected the same files"), "{said}");

    fs::write(folder.join("input"), input(1)).expect("an input");
    headstart(&folder, &format!("{line} --shard 1/3"));
    let said = refusal(program(), &folder, "merge s");
    assert!(said.contains("one of 3 shards beside some of 2"), "{said}");
    fs::remove_dir_all(folder.join("s.shards/1-of-3")).expect("it is there");
    headstart(&folder, "merge s");
}

#[test]
fn a_shard_that_lost_runs_is_refused() {
    let folder = folder("shards", "damaged");
    for shard in ["1/2", "2/2"] {
        headstart(&folder, &format!("{SWEEP} --shard {shard}"));
    }
    let store = folder.join("s.shards/2-of-2/runs.jsonl");
    let text = fs::read_to_string(&store).expect("a store");
    fs::write(&store, &text[..text.len() - 100]).expect("a damaged store");
    let output = run(program(), &folder, "merge s");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("lack runs of 1 points"), "{said}");
    headstart(&folder, &format!("{SWEEP} --shard 2/2"));
    headstart(&folder, "merge s");
}

#[test]
fn the_scripts_for_clusters_are_scripts() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/sweep.slurm");
    let status = Command::new("bash").arg("-n").arg(&script).status().expect("bash starts");
    assert!(status.success(), "{}", script.display());
    // Without Slurm, its variables given by hand, it runs the shard and the merge.
    let folder = folder("shards", "slurm");
    let path = program().parent().expect("a folder").display().to_string();
    let submit = |variables: &[(&str, &str)]| {
        let output = Command::new("bash")
            .arg(&script)
            .args("--schemes iw10 --load 10%,30% --duration 2s --repeats 1 --out s".split_whitespace())
            .current_dir(&folder)
            .env("PATH", format!("{path}:{}", std::env::var("PATH").unwrap_or_default()))
            .envs(variables.iter().copied())
            .output()
            .expect("bash starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    for task in ["1", "2"] {
        submit(&[("SLURM_ARRAY_TASK_ID", task), ("SLURM_ARRAY_TASK_COUNT", "2")]);
    }
    headstart(&folder, "merge s");
    assert!(folder.join("s/sweep.csv").exists());
}
