//! Studies in the emulator, and a race's runs.

use anyhow::{Result, bail};
use headstart_sim::{Collector, Seed};
use headstart_units::Time;

use super::{Played, Stage, attempts};
use crate::contest;
use crate::experiment::study::{GROUPS, Numbers, Study, add, add_group};
use crate::reuse::changed;
use crate::runner::{Job, JobResult};
use crate::setup::{Cast, Setup};

/// Of a run that the machine was too busy for: 1. Nothing else of it counts.
pub const INVALID: &str = "invalid";

/// What senders alone know, and the kernel does not tell.
const COUNTED: [&str; 6] = ["lost", "retransmissions", "copies", "timeouts", "probes", "overhead"];
/// What nobody tells: a real sender's last ack, and what only the model counts apart.
const UNKNOWN: [&str; 3] = ["acknowledged", "retransmissions", "probes"];

/// Does one run of a study.
///
/// # Errors
/// If it is not for the emulator, or cannot be done.
pub fn run(study: Study, setup: &Setup, cast: Cast, seed: u64) -> Result<Numbers> {
    let (mut numbers, invalid) = match study {
        Study::Dumbbell => {
            let played = dumbbell(setup, cast, setup.workload.load, seed)?;
            (told(setup, &played), played.invalid)
        }
        Study::Contest => named(contest::emulate(setup, cast, seed)?),
        Study::Changed => named(changed::emulate(setup, cast, seed)?),
        other => bail!(
            "study: found {other:?}, expected dumbbell, contest or changed in the emulator: the others look into senders, or their paths \
             have more than two ends"
        ),
    };
    if invalid.is_some() {
        numbers = Numbers::from([(INVALID.to_owned(), 1.0)]);
    }
    Ok(numbers)
}

/// Numbers by name, and why they are worth nothing, if they are.
pub type Judged = (Vec<(String, f64)>, Option<String>);

fn named((named, invalid): Judged) -> (Numbers, Option<String>) {
    (named.into_iter().filter(|(_, value)| value.is_finite()).collect(), invalid)
}

/// Flows arrive at one bottleneck.
fn dumbbell(setup: &Setup, cast: Cast, load: headstart_units::Ratio, seed: u64) -> Result<Played> {
    let arrivals_end = Time::ZERO + setup.run.duration;
    attempts(|| {
        let stage = Stage::new(setup, cast)?;
        let workload = setup.build_workload(cast, load, Seed(seed), arrivals_end);
        stage.play(setup, workload, arrivals_end + setup.run.drain, Seed(seed))
    })
}

fn collected(setup: &Setup, played: &Played) -> Collector {
    let mut collector = Collector::new(crate::setup::GROUPS, Time::ZERO + setup.run.warm_up);
    played.tell(&mut collector);
    collector
}

fn told(setup: &Setup, played: &Played) -> Numbers {
    let collector = collected(setup, played);
    let mut numbers = Numbers::new();
    for (prefix, group) in GROUPS {
        add_group(&mut numbers, prefix, &collector.groups[usize::from(group)]);
        for name in COUNTED.into_iter().filter(|_| !played.has_counts).chain(UNKNOWN) {
            numbers.remove(&format!("{prefix}{name}"));
        }
    }
    let (offered, dropped, bytes) = played.bottleneck();
    let could = (setup.bottleneck() * setup.run.duration).get() as f64;
    add(&mut numbers, "link-loss", 100.0 * dropped as f64 / (offered as f64).max(1.0));
    add(&mut numbers, "utilisation", 100.0 * bytes as f64 / could.max(1.0));
    numbers
}

/// Does one run of a race.
///
/// # Errors
/// If it cannot be done.
pub fn race(setup: &Setup, job: &Job) -> Result<JobResult> {
    let played = dumbbell(setup, job.cast, job.load, job.seed)?;
    let collector = collected(setup, &played);
    let (offered, dropped, bytes) = played.bottleneck();
    Ok(JobResult {
        groups: collector.groups,
        summary: headstart_sim::Summary { flows: played.flows.len() as u64, ..Default::default() },
        bottleneck: (offered, dropped),
        bottleneck_bytes: bytes,
        history: Default::default(),
        view: None,
        has_counts: played.has_counts,
        invalid: played.invalid,
    })
}
