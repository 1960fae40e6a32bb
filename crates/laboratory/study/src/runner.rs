//! Executes independent runs on all cores, with the same results for any number of threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use headstart_report::jobs::JobStore;
use headstart_report::rows::PartWriter;
use headstart_sim::collect::MediaTotals;
use headstart_sim::{Collector, Seed, Totals};
use headstart_startup::catalogue::Entry;
use headstart_units::{Bytes, Ratio, Time};
use serde::{Deserialize, Serialize};

use crate::carrier::{self, Detail, RandomLoss};
use crate::estimate::Estimate;
use crate::flow_rows::{FlowRows, PartFolder};
use crate::flow_trace::{FlowTrace, FlowTracer};
use crate::jobs;
use crate::progress::{Progress, RunProgress, Work};
use crate::setup::{GROUPS, SchemeMix, Setup, TESTED};

/// One run to do.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Schemes that take part.
    pub mix: SchemeMix,
    /// Offered load.
    pub load: Ratio,
    /// The run's seed.
    pub seed: u64,
    /// Check every packet, and trace the flows from one number to another: the run is not stored.
    pub look_at: Option<(u64, u64)>,
    /// Check every packet.
    pub is_checked: bool,
}

/// Result of one run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct JobResult {
    /// By group.
    pub groups: Vec<Totals>,
    /// A hash over its events.
    pub fingerprint: u64,
    /// Data packets sent by all senders.
    pub data_packets: u64,
    /// Packets offered to and dropped at the bottleneck.
    pub bottleneck: (u64, u64),
    /// Packets that met random loss behind it.
    pub at_random: RandomLoss,
    /// Bytes that left the bottleneck, headers included.
    pub bottleneck_bytes: u64,
    /// Bytes that it could have sent until [`Self::ended_at`].
    pub bottleneck_capacity: u64,
    /// Queueing delay before it in nanoseconds: mean and 95th percentile; where that is shown.
    pub waits: Option<(u64, u64)>,
    /// The concurrent real-time flow.
    pub media: MediaTotals,
    /// End of the last flow, or of the run, in nanoseconds.
    pub ended_at: u64,
    /// Memory of the tested group's history for each peer stored.
    pub history_bytes_per_peer: usize,
    /// The traced flows; they are not stored.
    #[serde(skip)]
    pub views: Vec<FlowTrace>,
    /// True if senders reported the bytes that they sent and lost.
    pub has_counts: bool,
    /// Reason why the run is invalid, if it is: the machine was too busy for real time.
    pub invalid: Option<String>,
}

/// Executes one run; its flows are written to `part`, a row each, if that is given.
///
/// # Errors
/// If it cannot be done or its flows cannot be written; or if the checker found a fault: then the
/// simulator is wrong and its figures are invalid.
pub fn run(setup: &Setup, job: &Job, part: Option<&Path>, progress: &RunProgress) -> Result<JobResult> {
    let mut result = None;
    let mut run = || result = Some(run_prepared(setup, job, part, progress));
    let beside = job.mix.beside.unwrap_or(job.mix.tested);
    job.mix.tested.scheme().during_run(&mut || beside.scheme().during_run(&mut run));
    match result {
        Some(result) => result,
        None => bail!("{}: the run was not executed", job.mix.tested.name),
    }
}

fn run_prepared(setup: &Setup, job: &Job, part: Option<&Path>, progress: &RunProgress) -> Result<JobResult> {
    let detail = setup.carrier().detail();
    let warm_up = Time::ZERO + setup.run.warm_up;
    let look_at = job.look_at.filter(|_| detail >= Detail::Events);
    let result = carrier::attempts(setup, job.mix, |hosts| {
        let run = setup.arrivals(job.mix, job.load, Seed(job.seed)).with_progress(progress);
        let rows = part.map(|part| rows(setup, job.mix, part)).transpose()?;
        let totals = (Collector::new(GROUPS, warm_up).against(setup.ideal()), rows);
        Ok(match look_at {
            None if job.is_checked => run.checked().observe_on(hosts, totals)?.map(|totals| (totals, vec![])),
            None => run.observe_on(hosts, totals)?.map(|totals| (totals, vec![])),
            Some(serials) => {
                let result = run.checked().observe_on(hosts, (totals, FlowTracer::new(serials)))?;
                result.map(|(totals, lens)| (totals, lens.views))
            }
        })
    })?;
    let ((totals, rows), views) = result.observer;
    rows.map_or(Ok(()), FlowRows::finish)?;
    let history = result.histories.get(usize::from(TESTED));
    Ok(JobResult {
        groups: totals.groups,
        fingerprint: result.summary.fingerprint,
        data_packets: result.summary.data_packets,
        bottleneck: (result.bottleneck.offered, result.bottleneck.dropped),
        at_random: result.bottleneck.at_random,
        bottleneck_bytes: result.bottleneck.delivered_bytes,
        bottleneck_capacity: setup.capacity(Seed(job.seed), totals.last_at.since(Time::ZERO)).get(),
        waits: result.bottleneck.waits.map(|(mean, p95)| (mean.as_nanos(), p95.as_nanos())),
        media: totals.media,
        ended_at: totals.last_at.as_nanos(),
        history_bytes_per_peer: history.map_or(0, |store| store.bytes_per_entry()),
        views,
        has_counts: detail >= Detail::Counts,
        invalid: result.invalid,
    })
}

/// Writer of the flows of a run of `mix` to `part`.
fn rows(setup: &Setup, mix: SchemeMix, part: &Path) -> Result<FlowRows> {
    let schemes = [mix.tested, mix.beside.unwrap_or(setup.reference()), setup.workload.long_scheme.0];
    let has_counts = setup.carrier().detail() >= Detail::Counts;
    let warm_up = Time::ZERO + setup.run.warm_up;
    let names = schemes.map(|entry| entry.name.to_string());
    Ok(FlowRows::new(PartWriter::create(part)?, names, warm_up, has_counts))
}

/// Work of runs that are not stored, or whose flows are needed and not among the parts.
#[must_use]
pub fn work(setup: &Setup, jobs: &[Job], store: &JobStore, parts: Option<&PartFolder>) -> Work {
    let keyed = keyed(setup, jobs, store, parts);
    let left = jobs::unfinished(store, &keyed);
    let seconds = left.iter().map(|number| seconds(setup, &jobs[*number])).sum();
    let at_once = threads(setup).unwrap_or_else(jobs::all_threads);
    Work { runs: left.len(), seconds, at_once }
}

/// Estimated processor time of a run, in seconds.
fn seconds(setup: &Setup, job: &Job) -> f64 {
    Estimate::at(setup, job.load, 1).seconds
}

/// Threads, if not all cores: concurrent runs would disturb each other in real time.
fn threads(setup: &Setup) -> Option<usize> {
    if setup.carrier().is_real_time() { Some(1) } else { setup.run.threads }
}

/// A run with the file for its flows.
type PlacedJob = (Job, Option<PathBuf>);

fn keyed(
    setup: &Setup,
    jobs: &[Job],
    store: &JobStore,
    parts: Option<&PartFolder>,
) -> Vec<jobs::KeyedJob<PlacedJob>> {
    // Runs with a trace are not stored.
    let keyed = |(job, key): (&Job, String)| {
        let place = parts.map(|parts| parts.file(&key));
        if place.as_ref().is_some_and(|place| !place.exists()) {
            store.remove(&key);
        }
        (job.look_at.is_none().then_some(key), (*job, place))
    };
    jobs.iter().zip(keys(setup, jobs)).map(keyed).collect()
}

/// Executes all runs and returns them in the order of the jobs; stored results are reused, unless
/// their flows are needed as well and are not among the parts.
///
/// # Errors
/// The first error of any run.
pub fn run_all(
    setup: &Setup,
    jobs: &[Job],
    progress: &Arc<Progress>,
    store: &JobStore,
    parts: Option<&PartFolder>,
) -> Result<Vec<JobResult>> {
    let is_valid = |result: &JobResult| result.invalid.is_none();
    let one = |(job, place): &PlacedJob, progress: &RunProgress| run(setup, job, place.as_deref(), progress);
    let seconds_of = |(job, _): &PlacedJob| seconds(setup, job);
    let keyed = keyed(setup, jobs, store, parts);
    jobs::run_all(store, &keyed, threads(setup), progress, seconds_of, one, is_valid)
}

/// The key of each job, derived from all settings that determine its result.
#[must_use]
pub fn keys(setup: &Setup, jobs: &[Job]) -> Vec<String> {
    let at = |load| {
        let mut setup = setup.clone();
        setup.workload.load = load;
        jobs::settings(&setup)
    };
    let mut settings: Vec<(Ratio, String)> = vec![];
    for job in jobs {
        if settings.iter().all(|(load, _)| *load != job.load) {
            settings.push((job.load, at(job.load)));
        }
    }
    let key = |job: &Job| {
        let found = settings.iter().find(|(load, _)| *load == job.load);
        let settings = found.map_or("", |(_, settings)| settings);
        jobs::key_of("race", settings, job.mix, job.seed)
    };
    jobs.iter().map(key).collect()
}

/// One flow alone on the path, of the workload's size.
///
/// # Errors
/// If the checker found a fault.
pub fn run_alone(setup: &Setup, tested: &'static Entry) -> Result<FlowTrace> {
    run_alone_counted(setup, tested).map(|(view, _)| view)
}

/// One flow alone on the path, with the number of packets that the first link's queue dropped.
///
/// # Errors
/// If the checker found a fault.
pub fn run_alone_counted(setup: &Setup, tested: &'static Entry) -> Result<(FlowTrace, u64)> {
    let bytes = Bytes::new(setup.mean_bytes() as u64);
    let run = setup.single_flow(tested, bytes, Seed(setup.run.seed)).checked();
    let mut result = run.observe(FlowTracer::new((0, 0)))?;
    Ok((result.observer.views.remove(0), result.bottleneck.dropped))
}

#[cfg(test)]
mod tests {
    use crate::schemes;
    use headstart_sim::record::SenderEvent;

    use super::*;
    use crate::carrier::Carriers;
    use crate::settings::Settings;

    /// Number of segments that BBR, which paces itself, sends at the first instant.
    fn at_once(pacing: &str) -> usize {
        let line = format!("--rate 25mbit --rtt 50ms --buffer 104p --size 100kB --pacing {pacing}");
        let setup = Settings::parse(Carriers::MODEL, line.split(' ')).expect("fine");
        let view = run_alone(&setup, schemes::find("bbr").expect("it is in the catalogue")).expect("it runs");
        let sent = view.events.iter().filter(|(_, trace)| matches!(trace.event, SenderEvent::Sent { .. }));
        let times: Vec<Time> = sent.map(|(at, _)| *at).collect();
        times.iter().filter(|at| **at == times[0]).count()
    }

    #[test]
    fn with_kernel_pacing_ten_segments_leave_at_once_and_others_are_paced() {
        assert_eq!(at_once("linux-always"), 10);
        // The first is free, and the pacer releases another at the same instant.
        assert_eq!((at_once("linux"), at_once("off")), (2, 2));
    }
}
