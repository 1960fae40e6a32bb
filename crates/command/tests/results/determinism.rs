//! The same plan and seed give the same bytes, with any number of threads and after any number of
//! interruptions of a sweep.

use std::fs;
use std::path::Path;
use std::process::Output;

use super::{folder, headstart};

fn bytes(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Contents of the files, without the command that they quote.
fn without_threads(path: &Path) -> String {
    let text = String::from_utf8(bytes(path)).expect("results are UTF-8");
    text.replace("--threads 1", "--threads N").replace("--threads 2", "--threads N")
}

#[cfg(feature = "quic")]
/// The real QUIC stack in virtual time: with TLS all bytes differ from run to run, but no result.
const QUIC: &str = "race --transport quic --schemes iw10,halfback,wise-start,bbr --duration 3s --drain 2s --repeats 2 --load 50% \
                    --loss 1% --out out";

#[cfg(feature = "quic")]
#[test]
fn a_race_over_quic_writes_the_same_bytes_with_any_number_of_threads() {
    for crypto in ["tls", "null"] {
        let runs = [1, 2].map(|threads| {
            let folder = folder("determinism", &format!("quic {crypto} {threads}"));
            headstart(&folder, &format!("{QUIC} --crypto {crypto} --threads {threads}"));
            folder.join("out")
        });
        for file in ["race.csv", "race.json", "report.html"] {
            let [first, other] = [0, 1].map(|run: usize| without_threads(&runs[run].join(file)));
            assert!(first == other, "{crypto}: {file} differs");
            assert!(first.contains("wise-start"), "{crypto}: {file}");
        }
    }
}

const RACE: &str = "race --schemes iw10,halfback,wise-start,pcp --duration 4s --drain 2s --repeats 3 --load 50% --loss 1% \
                    --jitter 3ms --out out";

#[test]
fn a_race_writes_the_same_bytes_with_any_number_of_threads() {
    let runs = [(1, 1), (2, 2), (3, 2)].map(|(number, threads)| {
        let folder = folder("determinism", &format!("race {number}"));
        let output = headstart(&folder, &format!("{RACE} --threads {threads}"));
        (folder.join("out"), String::from_utf8(output.stdout).expect("tables are UTF-8"))
    });
    let (first, table) = &runs[0];
    assert!(table.contains("halfback"), "{table}");
    for (other, same_table) in &runs[1..] {
        for file in ["race.csv", "race.json", "report.html"] {
            assert!(
                without_threads(&first.join(file)) == without_threads(&other.join(file)),
                "{file} differs"
            );
        }
        assert_eq!(bytes(&first.join("race.csv")), bytes(&other.join("race.csv")));
        assert_eq!(table, same_table);
    }
}

#[test]
fn another_seed_gives_another_race() {
    let folder = folder("determinism", "seeds");
    for seed in [1, 2] {
        headstart(
            &folder,
            &format!("race --schemes iw10 --duration 3s --repeats 1 --seed {seed} --out {seed}"),
        );
    }
    assert_ne!(bytes(&folder.join("1/race.csv")), bytes(&folder.join("2/race.csv")));
}

const SWEEP: &str = "sweep --schemes iw10,jump-start --load 10%,40% --rtt 20ms,60ms --duration 3s --drain 2s --repeats 2 --out out";

/// Messages about runs of an earlier command.
fn before(output: &Output) -> String {
    let message = String::from_utf8_lossy(&output.stderr);
    message.lines().filter(|line| line.contains("before, in")).collect()
}

#[test]
fn an_interrupted_sweep_resumes() {
    let folder = folder("determinism", "sweep");
    let out = folder.join("out");
    let first = headstart(&folder, SWEEP);
    assert_eq!(before(&first), "");
    let whole = bytes(&out.join("sweep.csv"));
    let kept = fs::read_to_string(out.join("runs.jsonl")).expect("runs are kept");
    // Four points with two seeds: iw10 with iw10 (also its mixed run) and alone, and jump-start
    // alone and mixed.
    assert_eq!(kept.lines().count(), 4 * 2 * (2 + 2));

    // As if it had been interrupted after half of the runs, while the next one was being written.
    let lines: Vec<&str> = kept.lines().collect();
    let half = lines[..12].join("\n") + "\n" + &lines[12][..40];
    fs::write(out.join("runs.jsonl"), half).expect("the store can be cut");
    fs::remove_file(out.join("sweep.csv")).expect("the table can be removed");
    let again = headstart(&folder, SWEEP);

    assert_eq!(before(&again), "headstart: 12 runs were there before, in out/runs.jsonl");
    assert_eq!(bytes(&out.join("sweep.csv")), whole);
    assert!(bytes(&out.join("runs.jsonl")) == kept.as_bytes(), "the same store however it was cut up");
}

#[test]
fn an_extended_sweep_runs_only_what_is_new() {
    let folder = folder("determinism", "extended");
    headstart(&folder, "sweep --schemes iw10 --load 10%,20% --duration 2s --repeats 1 --out out");
    let message =
        headstart(&folder, "sweep --schemes iw10 --load 10%,20%,30% --duration 2s --repeats 1 --out out");
    assert_eq!(before(&message), "headstart: 4 runs were there before, in out/runs.jsonl");
    assert!(String::from_utf8_lossy(&message.stdout).contains("3 points"));
}
