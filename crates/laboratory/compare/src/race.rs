//! The race: all schemes on one path, and the cost of each to other flows.
//!
//! For every scheme and seed there are two runs with the same arrivals, sizes, peers and losses. In
//! one every flow runs the scheme. In the other every second flow does, and the rest run the
//! reference: slow start from ten segments, unless `--reference` names another. The delay of the
//! rest, compared with a run of the reference only, is the scheme's *harm*.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use headstart_report::jobs::JobStore;
use headstart_report::rows::{Column, Table, Value};
use headstart_sim::{Histogram, Seed, Totals};
use headstart_startup::catalogue::{Entry, Needs, Server};
use headstart_startup::sending::LimitedBy;

use crate::flows::Flows;
use crate::measures::{MEASURES, Measure, SeedRuns, times};
use crate::verdict::MOST_HARM;
use headstart_report::statistics::{
    Interval, mean, positive_mean_interval, positive_ratio_interval, share_interval, simultaneous,
};
use headstart_study::estimate::Estimate;
use headstart_study::flow_trace::FlowTrace;
use headstart_study::options::{RouterName, SchemeName};
use headstart_study::progress::{Progress, Work};
use headstart_study::runner::{self, Job, JobResult, run_all};
use headstart_study::schemes;
use headstart_study::setup::{SchemeMix, Setup, TESTED};

/// A number of a scheme over all seeds.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The mean, or the quotient of two means.
    pub value: f64,
    /// Lower end of its 95 % interval; NaN of a single seed.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The value of each seed, in the order of the seeds in which a flow arrived.
    pub by_seed: Vec<f64>,
}

impl Measured {
    /// Value and ends.
    #[must_use]
    pub const fn interval(&self) -> Interval {
        Interval { value: self.value, low: self.low, high: self.high }
    }

    /// A single seed has no interval.
    fn new(interval: Option<Interval>, bare: Option<f64>, by_seed: Vec<f64>) -> Self {
        let value = bare.unwrap_or(f64::NAN);
        let Interval { value, low, high } =
            interval.unwrap_or(Interval { value, low: f64::NAN, high: f64::NAN });
        Self { value, low, high, by_seed }
    }

    /// Of times and other numbers above zero.
    pub fn positive(by_seed: Vec<f64>) -> Self {
        Self::new(positive_mean_interval(&by_seed), mean(&by_seed), by_seed)
    }

    /// Of shares between 0 and 1, in percent.
    pub fn percent(shares: &[f64]) -> Self {
        let percent = |share: f64| 100.0 * share;
        let interval = share_interval(shares).map(|found| Interval {
            value: percent(found.value),
            low: percent(found.low),
            high: percent(found.high),
        });
        let by_seed: Vec<f64> = shares.iter().copied().map(percent).collect();
        Self::new(interval, mean(&by_seed), by_seed)
    }

    /// A measured quotient, paired by seed.
    pub fn ratio(sample: &[f64], baseline: &[f64]) -> Self {
        let bare = mean(sample).zip(mean(baseline)).map(|(one, other)| one / other);
        let by_seed = sample.iter().zip(baseline).map(|(one, other)| one / other).collect();
        Self::new(positive_ratio_interval(sample, baseline), bare, by_seed)
    }
}

/// Results of one scheme.
#[derive(Clone, Debug)]
pub struct SchemeResult {
    /// The scheme.
    pub entry: &'static Entry,
    /// All seeds together.
    pub totals: Totals,
    /// The run's primary times (pages if pages are fetched, flows otherwise), all seeds together.
    pub times: Histogram,
    /// Primary times of each seed in which a flow arrived.
    pub times_by_seed: Vec<Histogram>,
    /// Measures over the seeds, by column.
    pub measured: BTreeMap<&'static str, Measured>,
    /// Memory of the history for each recorded peer.
    pub history_bytes_per_peer: usize,
    /// The scheme's place in the list of requested schemes; in the catalogue without such a list.
    pub asked_at: usize,
    /// Fingerprints of all runs, folded together.
    pub fingerprint: u64,
    /// The runs have fingerprints: in real time no two runs are the same.
    pub has_fingerprint: bool,
    /// Data packets sent in all runs.
    pub data_packets: u64,
    /// Numbers of the scheme for each seed.
    pub seeds: Vec<Row>,
    /// The traced flow, of the first seed.
    pub view: FlowTrace,
    /// Senders reported the bytes sent and lost.
    pub has_counts: bool,
    /// Runs for which the machine was too busy, those of the reference included, and all of them: a
    /// single one invalidates the results.
    pub invalid: (usize, usize),
}

/// The whole race.
#[derive(Clone, Debug)]
pub struct Race {
    /// In the order of the catalogue.
    pub scheme_results: Vec<SchemeResult>,
    /// Pages were fetched, so times are page response times.
    pub is_pages: bool,
    /// The scheme that the others are compared with.
    pub reference: &'static Entry,
    /// Serial number of the traced flow.
    pub traced_serial: u64,
    /// Number of seeds run.
    pub seeds: usize,
    /// Seeds in which no flow arrived, or no page was complete: they do not count.
    pub empty_seeds: usize,
    /// Flows that began in all runs of the schemes.
    pub begun: u64,
    /// The harm to others that is accepted, as a share of their time.
    pub most_harm: f64,
    /// The server that is to run the winner.
    pub server: Option<Server>,
}

/// The cost of the race.
#[must_use]
pub fn estimate(setup: &Setup) -> Estimate {
    let runs = 1 + 2 * entries(setup).len() as u64;
    Estimate::of(setup, u64::from(setup.run.repeats) * runs)
}

/// Work of `jobs` that is not stored yet.
#[must_use]
pub fn work(setup: &Setup, jobs: &[Job], store: &JobStore, flows: Option<&Flows>) -> Work {
    runner::work(setup, jobs, store, flows.map(Flows::parts))
}

/// The keys under which the runs of [`untraced`] are stored.
#[must_use]
pub fn keys(setup: &Setup) -> Vec<String> {
    runner::keys(setup, &untraced(setup))
}

/// [`jobs`] without the trace of a flow, whose results cannot be stored: a point of a sweep.
#[must_use]
pub fn untraced(setup: &Setup) -> Vec<Job> {
    jobs(setup).into_iter().map(|job| Job { look_at: None, ..job }).collect()
}

fn seeds(setup: &Setup) -> Vec<u64> {
    (0..u64::from(setup.run.repeats)).map(|number| setup.run.seed.wrapping_add(number)).collect()
}

/// Flows that are traced, of which one is shown.
pub const TRACED: u64 = 16;

/// Serial numbers of the first and the last traced flow: well into the run, when histories are
/// filled.
fn traced_serials(setup: &Setup) -> (u64, u64) {
    let last = (expected_flows(setup) * 0.6).min(100.0) as u64;
    (last.saturating_sub(TRACED - 1), last)
}

/// Place of the traced flow whose time is nearest to the median of its run, over these runs of all
/// schemes: it shows what the table says.
fn nearest_to_medians(runs: &[&JobResult]) -> usize {
    /// Counts for a flow that is not complete, as a time that is a thousand times too long does.
    const INCOMPLETE: f64 = 7.0;
    let distance = |place: usize| -> f64 {
        let of_run = |run: &&JobResult| {
            let time = run.views.get(place)?.report?.completion_time()?.as_millis_f64();
            let median = tested_times(run, false).quantile(500)?.as_millis_f64();
            Some((time / median).ln().abs()).filter(|distance| distance.is_finite())
        };
        runs.iter().map(|run| of_run(run).unwrap_or(INCOMPLETE)).sum()
    };
    (0..TRACED as usize).min_by(|one, other| distance(*one).total_cmp(&distance(*other))).unwrap_or(0)
}

/// The race's runs: for each seed one with the reference only, then each scheme alone and mixed.
#[must_use]
pub fn jobs(setup: &Setup) -> Vec<Job> {
    let reference = setup.reference();
    let load = setup.workload.load;
    let mut jobs = vec![];
    for seed in seeds(setup) {
        let mix = SchemeMix { tested: reference, beside: Some(reference) };
        jobs.push(Job { mix, load, seed, look_at: None, is_checked: false });
    }
    for entry in entries(setup) {
        for (number, seed) in seeds(setup).into_iter().enumerate() {
            let look_at = (number == 0).then(|| traced_serials(setup));
            jobs.push(Job {
                mix: SchemeMix { tested: entry, beside: None },
                load,
                seed,
                look_at,
                is_checked: number == 0,
            });
            let mix = SchemeMix { tested: entry, beside: Some(reference) };
            jobs.push(Job { mix, load, seed, look_at: None, is_checked: false });
        }
    }
    jobs
}

/// Runs the race by its [`jobs`], traced or [`untraced`]; adds all flows of all runs to `flows`.
///
/// # Errors
/// If a run's packets do not add up, or flows cannot be written.
pub fn race(
    setup: &Setup,
    jobs: &[Job],
    store: &JobStore,
    flows: Option<&mut Flows>,
    progress: &Arc<Progress>,
) -> Result<Race> {
    let results = run_all(setup, jobs, progress, store, flows.as_ref().map(|flows| flows.parts()))?;
    if let Some(flows) = flows {
        flows.append(setup, jobs, &results, setup.run.repeats as usize)?;
    }
    Ok(summary(setup, &results))
}

/// The race whose [`jobs`] have these results, in their order.
#[must_use]
pub fn summary(setup: &Setup, results: &[JobResult]) -> Race {
    let (entries, seeds) = (entries(setup), seeds(setup));
    let (baseline, rest) = results.split_at(seeds.len());
    let is_pages = !setup.pages.is_empty();
    let of_schemes: Vec<&[JobResult]> = rest.chunks(2 * seeds.len()).collect();
    // All schemes have the same arrivals: a seed without a measurement of any scheme had none.
    let has_arrivals: Vec<bool> = (0..seeds.len())
        .map(|number| {
            of_schemes.iter().any(|results| tested_times(&results[2 * number], is_pages).count() > 0)
        })
        .collect();
    let begun = rest.iter().step_by(2).map(|result| result.groups[usize::from(TESTED)].flows).sum();
    let wanted = setup.run.schemes();
    let firsts: Vec<&JobResult> = of_schemes.iter().filter_map(|results| results.first()).collect();
    let place = nearest_to_medians(&firsts);
    let views = firsts.iter().map(|run| run.views.get(place).cloned().unwrap_or_default());
    let scheme_results = entries
        .iter()
        .enumerate()
        .zip(of_schemes.iter().copied().zip(views))
        .map(|((place, entry), (results, view))| SchemeResult {
            view,
            asked_at: wanted.iter().position(|name| name.0.name == entry.name).unwrap_or(place),
            ..scheme_result(entry, results, baseline, &seeds, &has_arrivals, is_pages)
        })
        .collect();
    let reference = setup.reference();
    let scheme_results = hold_at_once(scheme_results, reference);
    let empty_seeds = has_arrivals.iter().filter(|has| !**has).count();
    let traced_serial = traced_serials(setup).0 + place as u64;
    Race {
        scheme_results,
        is_pages,
        reference,
        traced_serial,
        seeds: seeds.len(),
        empty_seeds,
        begun,
        most_harm: MOST_HARM,
        server: setup.run.server,
    }
}

/// Measures of the harm to others.
pub const HARMS: [&str; 2] = ["harm", "long_flow_share"];
/// Intervals of fewer seeds say nothing.
pub const LEAST_SEEDS: usize = 3;

/// Widens the intervals of harm, so that those of all schemes but the reference hold at once. The
/// verdict looks for a harmless one among them, and would otherwise find the one of twenty that
/// passes by chance.
pub fn hold_at_once(mut results: Vec<SchemeResult>, reference: &Entry) -> Vec<SchemeResult> {
    let is_judged = |result: &SchemeResult| result.entry.name != reference.name;
    let count = results.iter().filter(|result| is_judged(result)).count();
    for result in results.iter_mut().filter(|result| is_judged(result)) {
        for name in HARMS {
            let Some(measured) = result.measured.get_mut(name) else { continue };
            let seeds = measured.by_seed.len();
            if seeds >= LEAST_SEEDS {
                let Interval { low, high, .. } = simultaneous(measured.interval(), seeds - 1, count);
                (measured.low, measured.high) = (low, high);
            }
        }
    }
    results
}

/// The requested schemes, each once: those that are compared by default in the order of the
/// catalogue, then the others in the order of the request. Without a request: all that are compared
/// by default and that the transport carries. Those that need routers are left out where no router
/// takes part, since they would be slow start again.
#[must_use]
pub fn entries(setup: &Setup) -> Vec<&'static Entry> {
    let wanted = setup.run.schemes();
    let has_routers = setup.path.routers != RouterName::None;
    let is_wanted = |entry: &&Entry| {
        let is_able = (entry.needs != Needs::Routers || has_routers)
            && setup.carrier().check_scheme(entry, &setup.transport).is_ok()
            && setup.run.server.is_none_or(|server| entry.refusal(server).is_none());
        (wanted.is_empty() && is_able) || wanted.iter().any(|name| name.0.name == entry.name)
    };
    let mut entries: Vec<&Entry> = schemes::all().iter().filter(is_wanted).collect();
    for SchemeName(entry) in wanted {
        if entries.iter().all(|known| known.name != entry.name) {
            entries.push(entry);
        }
    }
    // It may be none of those that are compared by default, as the kernel's own start.
    let reference = setup.reference();
    if wanted.is_empty() && entries.iter().all(|known| known.name != reference.name) {
        entries.insert(0, reference);
    }
    entries
}

/// Expected number of flows or pages.
fn expected_flows(setup: &Setup) -> f64 {
    let payload = setup.offered(setup.workload.load, Seed(setup.run.seed)).as_bytes_per_sec() as f64;
    payload * setup.run.duration.as_secs_f64() / setup.mean_bytes().max(1.0)
}

fn tested_times(result: &JobResult, is_pages: bool) -> &Histogram {
    times(&result.groups[usize::from(TESTED)], is_pages)
}

fn scheme_result(
    entry: &'static Entry,
    results: &[JobResult],
    baseline: &[JobResult],
    seeds: &[u64],
    has_arrivals: &[bool],
    is_pages: bool,
) -> SchemeResult {
    let all: Vec<SeedRuns<'_>> = results
        .chunks(2)
        .zip(baseline)
        .map(|(runs, reference)| SeedRuns { alone: &runs[0], mixed: &runs[1], reference, is_pages })
        .collect();
    let counting: Vec<SeedRuns<'_>> =
        all.iter().zip(has_arrivals).filter(|(_, has)| **has).map(|(runs, _)| *runs).collect();
    let mut totals = Totals::default();
    counting.iter().for_each(|runs| totals.merge(runs.totals()));
    let measured = |measure: &Measure| Some((measure.name, measure.measured(&counting)?));
    SchemeResult {
        entry,
        times: times(&totals, is_pages).clone(),
        times_by_seed: counting.iter().map(|runs| times(runs.totals(), is_pages).clone()).collect(),
        measured: MEASURES.iter().filter_map(measured).collect(),
        history_bytes_per_peer: counting.first().map_or(0, |runs| runs.alone.history_bytes_per_peer),
        fingerprint: results.iter().fold(0, |folded: u64, result| folded.rotate_left(7) ^ result.fingerprint),
        has_fingerprint: results.iter().all(|result| result.fingerprint != 0),
        asked_at: 0,
        data_packets: results.iter().map(|result| result.data_packets).sum(),
        has_counts: counting.iter().all(|runs| runs.alone.has_counts),
        invalid: invalid(results.iter().chain(baseline)),
        view: FlowTrace::default(),
        seeds: all.iter().zip(seeds).map(|(runs, seed)| seed_row(entry, *seed, runs)).collect(),
        totals,
    }
}

/// The numbers of one seed.
fn seed_row(entry: &Entry, seed: u64, runs: &SeedRuns<'_>) -> Row {
    let keys = [("scheme", Value::Text(entry.name.to_string())), ("seed", Value::Count(seed))];
    let of = |measure: &Measure| Some((measure.name, measure.of_seed(runs)?));
    keys.into_iter().chain(MEASURES.iter().filter_map(of)).collect()
}

/// Runs for which the machine was too busy, and all.
pub fn invalid<'a>(results: impl IntoIterator<Item = &'a JobResult>) -> (usize, usize) {
    results
        .into_iter()
        .fold((0, 0), |(bad, all), result| (bad + usize::from(result.invalid.is_some()), all + 1))
}

/// A scheme's result as machines read it: its numbers by name, in order.
pub type Row = Vec<(&'static str, Value)>;

fn table(rows: &[Row]) -> Table {
    let column = |(name, value): &(&str, Value)| Column::new(*name, value.kind());
    let texts = |row: &Row| row.iter().map(|(_, value)| value.to_string()).collect();
    Table {
        columns: rows.first().into_iter().flatten().map(column).collect(),
        rows: rows.iter().map(texts).collect(),
    }
}

impl SchemeResult {
    /// The runs' fingerprint as text, which no program takes for a number; empty without one.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        if self.has_fingerprint { format!("fp:{:016x}", self.fingerprint) } else { String::new() }
    }

    /// The row of `race.csv`.
    #[must_use]
    pub fn row(&self) -> Row {
        let scheme = ("scheme", Value::Text(self.entry.name.to_string()));
        let of = |measure: &Measure| Some((measure.name, measure.of_scheme(self)?));
        std::iter::once(scheme).chain(MEASURES.iter().filter_map(of)).collect()
    }

    /// Starts with a record, as a share of all.
    #[must_use]
    pub fn history_hits(&self) -> f64 {
        self.totals.history_hits as f64 / (self.totals.flows as f64).max(1.0)
    }

    /// Mean time in milliseconds.
    #[must_use]
    pub fn mean(&self) -> &Measured {
        &self.measured["mean_ms"]
    }

    /// A measure by its column, if there is a value.
    #[must_use]
    pub fn known(&self, name: &str) -> Option<&Measured> {
        self.measured.get(name).filter(|measured| measured.value.is_finite())
    }

    /// Share of the time of finished flows under this limit, in per cent, where it is known.
    #[must_use]
    pub fn limited_percent(&self, by: LimitedBy) -> Option<f64> {
        self.known(&format!("{}_percent", by.as_str())).map(|share| share.value)
    }

    /// Mean completion time of flows under each limit, in milliseconds, in the order of
    /// [`LimitedBy::ALL`]: its share of the time of all finished ones, of the mean in the table.
    /// `None` where senders do not report it.
    #[must_use]
    pub fn limited_ms(&self) -> Option<Vec<f64>> {
        // The table's number; that of pages is another.
        let mean = match self.totals.pages.count() {
            0 => self.mean().value,
            _ => self.totals.completion.mean()?.as_millis_f64(),
        };
        LimitedBy::ALL.into_iter().map(|by| Some(self.limited_percent(by)? / 100.0 * mean)).collect()
    }
}

impl Race {
    /// The rows of `race.csv` and of `seeds.csv`, without conditions.
    #[must_use]
    pub fn tables(&self) -> [Table; 2] {
        let results = || self.scheme_results.iter();
        let seeds = results().flat_map(|scheme_result| scheme_result.seeds.iter().cloned());
        [results().map(SchemeResult::row).collect(), seeds.collect::<Vec<_>>()].map(|rows| table(&rows))
    }
}
