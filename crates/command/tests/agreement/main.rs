//! Our TCP model against the kernel's TCP in the emulator and gVisor's in virtual time, on the same
//! paths, and against a published capture. Our QUIC in virtual time against quic-go and s2n-quic in
//! theirs.
//!
//! | words | action |
//! |---|---|
//! | none | the short form of the kernel's and all but 10 MB of the others', with bands that fail |
//! | `--full RUNS TABLE [WORDS]` | cases with these words: kernel's runs and comparison |
//! | `--table RUNS TABLE` | only the comparison, with the present model: seconds |
//! | `--quic-go TABLE FIGURE` | quic-go's runs and comparison |
//! | `--s2n-quic TABLE FIGURE` | s2n-quic's |
//! | `--gvisor TABLE FIGURE` | gVisor's, with its faults mended and as it is |
//!
//! The kernel needs root or user namespaces, quic-go and gVisor need Go, s2n-quic its crates;
//! without them it reports that they were not run.
//!
//! Measures are the same on both sides. Completion is from the client's SYN to the last payload
//! byte leaving the path towards it. Drops are counted at the bottleneck's buffer. The peak queue
//! is the most packets that waited before it. Slow start ends when the sender's ssthresh is set,
//! which is sampled in the kernel every few milliseconds (`ss -ti`). Its BBR sets it as start-up
//! ends.

mod compare;
mod judge;
mod kernel;
mod model;
mod record;

use std::process::ExitCode;

use compare::{Case, Found, PATHS, Verdict, middle};
use judge::{Failure, Judge};
use model::Rounds;
use record::{Run, Table};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["send", controller, bytes, file] => kernel::send(controller, bytes.parse().expect("a number"), file),
        ["receive"] => kernel::receive(),
        ["--full", runs, table] => return exit_code(full(runs, "").and_then(|()| tabulate(runs, table))),
        ["--full", runs, table, words] => {
            return exit_code(full(runs, words).and_then(|()| tabulate(runs, table)));
        }
        ["--table", runs, table] => return exit_code(tabulate(runs, table)),
        ["--quic-go", table, figure] => return exit_code(tabulate_other(&[judge::QUIC_GO], table, figure)),
        ["--s2n-quic", table, figure] => return exit_code(tabulate_other(&[judge::S2N_QUIC], table, figure)),
        ["--gvisor", table, figure] => return exit_code(tabulate_other(&judge::GVISOR, table, figure)),
        _ => {
            let quic = [&judge::QUIC_GO, &judge::S2N_QUIC];
            let others = quic.into_iter().chain(&judge::GVISOR).map(short_other).sum::<usize>();
            return if short() + usize::from(!published()) + others > 0 {
                ExitCode::FAILURE
            } else {
                ExitCode::SUCCESS
            };
        }
    }
    ExitCode::SUCCESS
}

fn exit_code(outcome: Result<(), String>) -> ExitCode {
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

/// The kernel's runs of a file, compared with the model as it is now.
fn tabulate(runs: &str, file: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(runs).map_err(|error| format!("{runs}: {error}"))?;
    let runs = record::read(&text).map_err(|error| format!("{runs}: {error}"))?;
    let mut table = Table::new("kernel", true);
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

/// A case of another stack's, compared with ours.
struct Judged {
    case: Case,
    verdict: Verdict,
    /// With the first seed.
    rounds: [Rounds; 2],
}

/// Cases up to so large an object. Both sides draw their losses by themselves: `draws` seeds.
fn judged(judge: &Judge, largest: u64, draws: u64) -> Result<Vec<Judged>, Failure> {
    let program = judge.build()?;
    // Jitter serves real machines, whose clocks have some.
    let is_meant = |case: &Case| !case.path.contains("jitter") && case.bytes <= largest;
    let seeds = |case: &Case| if case.is_random() { draws } else { 1 };
    let (mut transfers, mut model) = (vec![], vec![]);
    for case in Case::of(judge.controllers).filter(is_meant) {
        for seed in 1..=seeds(&case) {
            let (setup, scheme) = (judge.model)(&case, seed).map_err(Failure::Broken)?;
            model.push(model::transfer(&setup, scheme).map_err(Failure::Broken)?);
            transfers.push((case, setup));
        }
    }
    let judge = judge::run(judge, program, &transfers)?;
    let mut all = vec![];
    let (mut transfers, mut judge, mut model) = (&transfers[..], &judge[..], &model[..]);
    while let Some((case, ..)) = transfers.first() {
        let count = seeds(case) as usize;
        let (here, others) = judge.split_at(count);
        let (ours, rest) = model.split_at(count);
        let found = |side: &[(Found, Rounds)]| side.iter().map(|run| run.0).collect::<Vec<_>>();
        let verdict = Verdict::of(case, &found(here), &found(ours));
        let verdict = verdict.ok_or_else(|| Failure::Broken(format!("{case:?}: no run")))?;
        all.push(Judged { case: *case, verdict, rounds: [here[0].1.clone(), ours[0].1.clone()] });
        (transfers, judge, model) = (&transfers[count..], others, rest);
    }
    Ok(all)
}

/// Seeds of the record where losses are random.
const DRAWS: u64 = 40;

/// The comparison with another stack as tables and a figure of the first of `judges`.
fn tabulate_other(judges: &[Judge], file: &str, figure: &str) -> Result<(), String> {
    let write =
        |file: &str, text: String| std::fs::write(file, text).map_err(|error| format!("{file}: {error}"));
    let mut text = String::new();
    for (at, judge) in judges.iter().enumerate() {
        let name = judge.name;
        let all = judged(judge, u64::MAX, DRAWS).map_err(|failure| failure.to_string())?;
        let mut table = Table::new(name, false);
        for Judged { case, verdict, .. } in &all {
            table.row(case, verdict);
        }
        let shown = |one: &&Judged| one.case.bytes == 2_000_000 && !one.case.is_random();
        let shown: Vec<_> = all.iter().filter(shown).map(|one| (&one.case, &one.rounds)).collect();
        text += &table.text();
        text += &record::rounds(&format!("packets sent: {name}, model"), &shown, |round| round.0);
        text += &record::rounds(&format!("window (kB): {name}, model"), &shown, |round| round.1 / 1000);
        if at == 0 {
            // As many as can be told apart.
            write(figure, record::figure(name, &shown[..3]))?;
        }
    }
    write(file, text)
}

/// Number of comparisons with another stack that failed.
fn short_other(judge: &Judge) -> usize {
    let name = judge.name;
    let all = match judged(judge, 2_000_000, 9) {
        Ok(all) => all,
        Err(Failure::Missing(reason)) => {
            headstart_host::not_run(&format!("agreement: {name}: {reason}"));
            return 0;
        }
        Err(Failure::Broken(error)) => {
            println!("agreement: {name} ... FAILED: {error}");
            return 1;
        }
    };
    let mut failed = 0;
    for Judged { case, verdict, .. } in &all {
        let Some(agrees) = (judge.agrees)(case, verdict) else { continue };
        failed += usize::from(!agrees);
        println!("agreement: {name}, {case:?} ... {}: {verdict:?}", if agrees { "ok" } else { "FAILED" });
    }
    failed
}

/// Packets that Linux CUBIC sent in each of its first round trips on bare metal, the same in 20
/// runs of 100 MiB. The capture is published with QUIC Steps, CoNEXT 2025, DOI 10.1145/3730985.
const PUBLISHED: [u64; 10] = [10, 20, 40, 80, 144, 126, 138, 139, 139, 139];
/// The capture's token bucket and netem's delays.
const PUBLISHED_PATH: &str = "--rate 40mbit --rtt 40ms --buffer 143p";

/// True if the model has sent as many by the end of each round trip, to 5 %.
fn published() -> bool {
    let case = Case { controller: "cubic", path: PUBLISHED_PATH, bytes: 10_000_000 };
    let sent = match model::rounds_of(&case, 1) {
        Ok((_, rounds)) => rounds.into_iter().map(|round| round.0).take(PUBLISHED.len()).collect::<Vec<_>>(),
        Err(error) => {
            println!("agreement: {case:?} ... FAILED: {error}");
            return false;
        }
    };
    let until = |end: usize, sent: &[u64]| sent[..end].iter().sum::<u64>();
    let agrees = sent.len() == PUBLISHED.len()
        && (1..=sent.len()).all(|end| {
            let (ours, theirs) = (until(end, &sent), until(end, &PUBLISHED));
            ours.abs_diff(theirs) * 20 <= theirs
        });
    let outcome = if agrees { "ok" } else { "FAILED" };
    println!("agreement: a published capture ... {outcome}: {PUBLISHED:?}, model {sent:?}");
    agrees
}

/// The short form: cases that agreed before, and must continue to. The number that did not.
fn short() -> usize {
    if let Some(reason) = kernel::cannot_run() {
        headstart_host::not_run(&format!("agreement: {reason}"));
        return 0;
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
                failed += usize::from(!agrees);
                let verdict = if agrees { "ok" } else { "FAILED" };
                println!("{name} ... {verdict}: kernel {kernel:?}, model {model:?}");
            }
            (Err(error), _) | (_, Err(error)) => {
                failed += 1;
                println!("{name} ... FAILED: {error}");
            }
        }
    }
    failed
}
