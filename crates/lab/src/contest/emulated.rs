//! A contest in the emulator: the same flows over a real transport.
//!
//! # Deviations
//!
//! - Bytes count when the client reads them, without headers, not as they come out of the bottleneck: half a round trip later, and of
//!   both sides alike.
//! - Which of the bottleneck's drops were the long flows' nobody knows, and `long.lost` and `utilisation` are left out.

use anyhow::{Result, ensure};
use headstart_sim::Seed;

use super::tape::Tape;
use super::workload::Flows;
use super::{BEFORE, Contest, arrivals, began_at, hinted, numbers};
use crate::real::study::Judged;
use crate::real::{Stage, attempts};
use crate::setup::{Cast, Setup};

const UNKNOWN: [&str; 2] = ["long.lost", "utilisation"];
/// What senders count.
const COUNTED: [&str; 3] = ["lost", "inflation", "beside.lost"];

/// Runs one, and says why it is worth nothing if it is.
///
/// # Errors
/// If the transport cannot carry it.
pub fn emulate(setup: &Setup, cast: Cast, seed: u64) -> Result<Judged> {
    let seed = Seed(seed);
    let hint = hinted(setup, seed);
    ensure!(
        setup.workload.hint_step.of(1_000_000) <= 1_000_000,
        "--hint-step: found {}, expected 100 % in the emulator",
        setup.workload.hint_step
    );
    let began_at = began_at(setup, seed);
    let until = began_at + setup.run.duration;
    let played = attempts(|| {
        let stage = Stage::new(setup, cast)?;
        stage.play(setup, Box::new(Flows::new(arrivals(setup, cast, began_at))), until, seed)
    })?;
    let mut tape = Tape::new(began_at - BEFORE, 0);
    tape.delivered = played.read.iter().filter(|(at, ..)| *at >= began_at - BEFORE).copied().collect();
    // Acquaintances and long flows opened long before.
    tape.reports = played.flows.iter().filter(|flow| flow.opened_at >= began_at).copied().collect();
    let contest = Contest { tape, hint, until, rtt: setup.rtt() };
    let mut named = numbers(setup, &contest);
    named.retain(|(name, _)| {
        let name = name.as_str();
        !UNKNOWN.contains(&name) && (played.has_counts || !COUNTED.contains(&name))
    });
    Ok((named, played.invalid))
}
