//! The kernel's TCP in the emulator against our TCP model in the simulator, on the same paths.
//!
//! | words | action |
//! |---|---|
//! | none | the short form, with bands that fail |
//! | `--full RUNS TABLE [WORDS]` | cases with these words: kernel's runs and comparison |
//! | `--table RUNS TABLE` | only the comparison, with the present model: seconds |
//!
//! Needs root or user namespaces; without them it reports that it was not run.
//!
//! Measures are the same on both sides. Completion is from the client's SYN to the last payload
//! byte leaving the path towards it. Drops are those of the bottleneck's buffer. The peak queue is
//! the most packets that waited before it. Slow start ends when the sender's ssthresh is set, which
//! is sampled in the kernel every few milliseconds (`ss -ti`). Its BBR sets it as start-up ends.

mod compare;
mod kernel;
mod model;
mod record;

use std::process::ExitCode;

use compare::{Case, Found, PATHS, Verdict, middle};
use record::{Run, Table};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["send", controller, bytes, file] => kernel::send(controller, bytes.parse().expect("a number"), file),
        ["receive"] => kernel::receive(),
        ["--full", runs, table] => return told(full(runs, "").and_then(|()| tabulate(runs, table))),
        ["--full", runs, table, words] => {
            return told(full(runs, words).and_then(|()| tabulate(runs, table)));
        }
        ["--table", runs, table] => return told(tabulate(runs, table)),
        _ => return short(),
    }
    ExitCode::SUCCESS
}

fn told(outcome: Result<(), String>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("agreement: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A run of chance for which the machine was too busy is tried again, so often in all.
const TRIES: usize = 3;

fn measure(case: &Case, seed: u64) -> Result<Found, String> {
    let runs = (0..case.repeats()).map(|_| kernel::run(case, seed));
    let mut runs = runs.collect::<Result<Vec<_>, _>>()?;
    while runs.len() < TRIES && runs.iter().all(|run| !run.is_valid) {
        runs.push(kernel::run(case, seed)?);
    }
    middle(runs).ok_or_else(|| "no run".to_owned())
}

/// Measures the kernel; the file is written after each case: finished measurements are kept.
fn full(file: &str, words: &str) -> Result<(), String> {
    if let Some(reason) = kernel::cannot_run() {
        return Err(format!("could not run here: {reason}"));
    }
    let mut runs = vec![];
    for case in Case::all() {
        let name = format!("{} {} {}", case.controller, case.path, case.bytes);
        if !words.split(' ').all(|word| name.contains(word)) {
            continue;
        }
        for seed in case.seeds() {
            match measure(&case, seed) {
                Ok(found) => runs.push(Run { case, seed, found }),
                Err(error) => println!("agreement: {name}, seed {seed}: {error}"),
            }
        }
        println!("{name}");
        std::fs::write(file, record::write(&runs)).map_err(|error| format!("{file}: {error}"))?;
    }
    Ok(())
}

/// The kernel's runs of a file beside the model as it is now.
fn tabulate(runs: &str, file: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(runs).map_err(|error| format!("{runs}: {error}"))?;
    let runs = record::read(&text).map_err(|error| format!("{runs}: {error}"))?;
    let mut table = Table::default();
    for case in Case::all() {
        let (seeds, kernel): (Vec<u64>, Vec<Found>) =
            runs.iter().filter(|run| run.case == case).map(|run| (run.seed, run.found)).unzip();
        if seeds.is_empty() {
            continue;
        }
        let model = seeds.iter().map(|seed| model::run(&case, *seed)).collect::<Result<Vec<_>, _>>();
        let model = model.map_err(|error| format!("{case:?}: {error}"))?;
        table.row(&case, &Verdict::of(&case, &kernel, &model).ok_or("no run")?);
    }
    let text = table.text();
    print!("{}", text.lines().last().unwrap_or_default());
    std::fs::write(file, text).map_err(|error| format!("{file}: {error}"))
}

/// The short form: cases that agreed before, and must continue to.
fn short() -> ExitCode {
    if let Some(reason) = kernel::cannot_run() {
        headstart_host::not_run(&format!("agreement: {reason}"));
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for (controller, path, bytes) in [
        ("reno", PATHS[0], 100_000),
        ("reno", PATHS[0], 2_000_000),
        ("cubic", PATHS[0], 2_000_000),
        ("cubic", PATHS[3], 2_000_000),
        ("bbr", PATHS[0], 2_000_000),
    ] {
        let case = Case { controller, path, bytes };
        let name = format!("agreement: {controller}, {path}, {bytes} B");
        if !kernel::knows(controller) {
            headstart_host::not_run(&format!("{name}: this kernel has no {controller}"));
            continue;
        }
        match (measure(&case, 1), model::run(&case, 1)) {
            (Ok(kernel), Ok(model)) if !kernel.is_valid => {
                headstart_host::not_run(&format!(
                    "{name}: the machine did not keep real time: {kernel:?}, {model:?}"
                ));
            }
            (Ok(kernel), Ok(model)) => {
                let agrees = Verdict::of(&case, &[kernel], &[model]).is_some_and(|verdict| {
                    verdict.completion.agrees && verdict.drops.agrees && verdict.peak_queue.agrees
                });
                failed += i32::from(!agrees);
                let verdict = if agrees { "ok" } else { "FAILED" };
                println!("{name} ... {verdict}: kernel {kernel:?}, model {model:?}");
            }
            (Err(error), _) | (_, Err(error)) => {
                failed += 1;
                println!("{name} ... FAILED: {error}");
            }
        }
    }
    if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
