//! quic-go's side: its own simulated network in virtual time (`interop/quic-go/transfer_test.go`).

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use headstart_net::{ElementPlan, LinkPlan};
use headstart_study::setup::Setup;

use crate::compare::{Case, Found};
use crate::model::Rounds;

/// The only controller of quic-go: Reno, from 32 packets.
pub const CONTROLLER: &str = "reno";

/// Reason for which a judge gave no answer.
pub enum Failure {
    /// Go or its modules are not to be had here.
    Missing(String),
    /// The program does not compile, or ended with an error.
    Broken(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Missing(reason) | Self::Broken(reason)) = self;
        f.write_str(reason)
    }
}

fn ran(command: &mut Command, or: fn(String) -> Failure) -> Result<Output, Failure> {
    let output = command.output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::Missing("go is not installed".to_owned()),
        _ => Failure::Broken(error.to_string()),
    })?;
    if output.status.success() {
        return Ok(output);
    }
    let texts = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    Err(or(format!("{command:?}: {}", texts.concat().trim())))
}

/// The program, compiled.
pub fn build() -> Result<PathBuf, Failure> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/quic-go");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("quic-go-transfers");
    let go = |words: &[&str]| {
        let mut command = Command::new("go");
        command.args(words).current_dir(&source);
        command
    };
    ran(&mut go(&["mod", "download"]), Failure::Missing)?;
    ran(go(&["test", "-c", "-o"]).arg(&program), Failure::Broken)?;
    Ok(program)
}

/// The numbers of a transfer, as the program reads them.
fn line(setup: &Setup, seed: u64) -> Option<String> {
    let plan = setup.path.unchecked_plan(&headstart_study::options::UpOptions::default());
    let [ElementPlan::Link(LinkPlan { rate, delay, limit, .. }), rest @ ..] = &plan.down[..] else {
        return None;
    };
    let loss = match rest {
        [] => 0,
        [ElementPlan::Loss(loss)] => loss.share.of(1_000_000),
        _ => return None,
    };
    let most = |value: u64| value.min(u64::from(u32::MAX));
    Some(format!(
        "{} {} {} {} {loss} {} {seed}",
        rate.mean().as_bits_per_sec(),
        delay.as_nanos() / 500,
        most(limit.packets),
        most(limit.bytes.get()),
        setup.mean_bytes() as u64,
    ))
}

/// The transfers, in this order. quic-go draws connection IDs, and packet numbers that it leaves
/// out, from the system's randomness. So of several runs it is the one of the middle completion.
pub fn run(program: &Path, transfers: &[(Case, Setup, u64)]) -> Result<Vec<(Found, Rounds)>, Failure> {
    let folder = tempfile::tempdir().map_err(|error| Failure::Broken(error.to_string()))?;
    let [orders, found] = ["transfers", "found"].map(|name| folder.path().join(name));
    let mut lines = String::new();
    for (case, setup, seed) in transfers {
        let line = line(setup, *seed).ok_or_else(|| Failure::Broken(format!("{case:?}: not carried")))?;
        lines += &format!("{line}\n").repeat(case.repeats() as usize);
    }
    std::fs::write(&orders, lines).map_err(|error| Failure::Broken(error.to_string()))?;
    // One thread: goroutines that are ready at the same instant run in the same order.
    let mut command = Command::new(program);
    command.args(["-test.run=^TestTransfers$", "-test.timeout=20m"]).current_dir(folder.path());
    command.env("GOMAXPROCS", "1").env("TRANSFERS", &orders).env("FOUND", &found);
    ran(&mut command, Failure::Broken)?;
    let text = std::fs::read_to_string(&found).map_err(|error| Failure::Broken(error.to_string()))?;
    let mut runs = text.lines().map(read);
    let middle = |(case, ..): &(Case, Setup, u64)| {
        let mut runs = runs.by_ref().take(case.repeats() as usize).collect::<Option<Vec<_>>>()?;
        runs.sort_by(|a, b| a.0.completion_ms.total_cmp(&b.0.completion_ms));
        runs.get(runs.len() / 2).cloned()
    };
    transfers.iter().map(middle).collect::<Option<_>>().ok_or_else(|| Failure::Broken(text.clone()))
}

/// `COMPLETION,DROPS,PEAK,EXIT,ROUNDS`; a round is `PACKETS:WINDOW`.
fn read(line: &str) -> Option<(Found, Rounds)> {
    let [completion, drops, peak, exit, rounds] = line.split(',').collect::<Vec<_>>()[..] else {
        return None;
    };
    let found = Found {
        completion_ms: completion.parse().ok()?,
        drops: drops.parse().ok()?,
        peak_queue: peak.parse().ok()?,
        exit_ms: if exit == "-" { None } else { Some(exit.parse().ok()?) },
        is_valid: true,
    };
    let round = |round: &str| {
        let (packets, window) = round.split_once(':')?;
        Some((packets.parse().ok()?, window.parse().ok()?))
    };
    Some((found, rounds.split(' ').map(round).collect::<Option<_>>()?))
}
