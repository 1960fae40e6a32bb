//! The race: all schemes on one path, and the cost of each to other flows.
//!
//! For every scheme and seed there are two runs with the same arrivals, sizes, peers and losses. In
//! one every flow runs the scheme. In the other every second flow does, and the rest run slow start
//! from ten segments. The delay of the rest, compared with a run of slow start only, is the
//! scheme's *harm*.

use std::fmt;
use std::sync::Arc;

use anyhow::Result;
use headstart_report::jobs::JobStore;
use headstart_report::rows::Kind;
use headstart_sim::{Histogram, Seed, Totals};
use headstart_startup::catalogue::{Entry, Needs};
use headstart_units::Span;
use serde::Serialize;

use crate::estimate::Estimate;
use crate::flow_trace::FlowTrace;
use crate::flows::Flows;
use crate::options::{RouterName, SchemeName};
use crate::progress::{Progress, Work};
use crate::runner::{self, Job, JobResult, run_all};
use crate::schemes;
use crate::setup::{BESIDE, LONG, SchemeMix, Setup, TESTED};
use crate::statistics::{Interval, mean, positive_mean_interval, positive_ratio_interval, share_interval};
use crate::verdict::MOST_HARM;

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
    pub(crate) fn positive(by_seed: Vec<f64>) -> Self {
        Self::new(positive_mean_interval(&by_seed), mean(&by_seed), by_seed)
    }

    /// Of shares between 0 and 1, in percent.
    pub(crate) fn percent(shares: &[f64]) -> Self {
        let percent = |share: f64| 100.0 * share;
        let interval = share_interval(shares).map(|found| Interval {
            value: percent(found.value),
            low: percent(found.low),
            high: percent(found.high),
        });
        let by_seed: Vec<f64> = shares.iter().copied().map(percent).collect();
        Self::new(interval, mean(&by_seed), by_seed)
    }

    /// Of a quotient, paired by seed.
    fn ratio(sample: &[f64], baseline: &[f64]) -> Self {
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
    /// Mean of those times in milliseconds.
    pub mean_ms: Measured,
    /// Their median.
    pub p50_ms: Measured,
    /// Their 99th percentile.
    pub p99_ms: Measured,
    /// Mean without the handshake.
    pub transfer_ms: Measured,
    /// Mean completion time of flows in round trips of their own path.
    pub rounds: Measured,
    /// Packets dropped by the bottleneck, as a share of those offered to it, in percent.
    pub loss_percent: Measured,
    /// Packets lost at random behind it, as a share of those that got there, in percent, where
    /// there is random loss.
    pub random_loss_percent: Option<Measured>,
    /// Payload bytes sent over bytes delivered.
    pub overhead: Measured,
    /// Time of flows of the reference scheme beside this one, over their time among themselves.
    pub harm: Measured,
    /// Rate of long flows beside this scheme, over their rate beside the reference.
    pub long_share: Option<Measured>,
    /// Starts with a record, as a share of all.
    pub history_hits: f64,
    /// Memory of the history for each recorded peer.
    pub history_bytes_per_peer: usize,
    /// Its place in the list of requested schemes; in the catalogue without such a list.
    pub asked_at: usize,
    /// Fingerprints of all runs, folded together.
    pub fingerprint: u64,
    /// The runs have fingerprints: in real time no two runs are the same.
    pub has_fingerprint: bool,
    /// Data packets sent in all runs.
    pub data_packets: u64,
    /// Its measures of the bottleneck and of its flows, by column.
    pub measures: Vec<(&'static str, Measured)>,
    /// Its numbers for each seed.
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
    let empty_seeds = has_arrivals.iter().filter(|has| !**has).count();
    let traced_serial = traced_serials(setup).0 + place as u64;
    Race {
        scheme_results,
        is_pages,
        traced_serial,
        seeds: seeds.len(),
        empty_seeds,
        begun,
        most_harm: MOST_HARM,
    }
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
            && setup.carrier().check_scheme(entry, &setup.transport).is_ok();
        (wanted.is_empty() && is_able) || wanted.iter().any(|name| name.0.name == entry.name)
    };
    let mut entries: Vec<&Entry> = schemes::all().iter().filter(is_wanted).collect();
    for SchemeName(entry) in wanted {
        if entries.iter().all(|known| known.name != entry.name) {
            entries.push(entry);
        }
    }
    // The kernel's own start is none of those that are compared by default.
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

/// Times of one group of one run: pages where there are any, flows otherwise.
fn times(totals: &Totals, is_pages: bool) -> &Histogram {
    if is_pages { &totals.pages } else { &totals.completion }
}

fn tested_times(result: &JobResult, is_pages: bool) -> &Histogram {
    times(&result.groups[usize::from(TESTED)], is_pages)
}

fn millis(span: Option<Span>) -> f64 {
    span.map_or(f64::NAN, Span::as_millis_f64)
}

fn scheme_result<'a>(
    entry: &'static Entry,
    results: &'a [JobResult],
    baseline: &'a [JobResult],
    seeds: &[u64],
    has_arrivals: &[bool],
    is_pages: bool,
) -> SchemeResult {
    let counting = |results: &mut dyn Iterator<Item = &'a JobResult>| -> Vec<&'a JobResult> {
        results.zip(has_arrivals).filter(|(_, has)| **has).map(|(result, _)| result).collect()
    };
    let alone = counting(&mut results.iter().step_by(2));
    let mixed = counting(&mut results.iter().skip(1).step_by(2));
    let all_baseline = baseline;
    let baseline = counting(&mut baseline.iter());
    let tested = |result: &&JobResult| result.groups[usize::from(TESTED)].clone();
    let each = |figure: &dyn Fn(&Totals) -> f64| -> Measured {
        Measured::positive(alone.iter().map(|result| figure(&result.groups[usize::from(TESTED)])).collect())
    };
    let mut totals = Totals::default();
    alone.iter().map(tested).for_each(|part| totals.merge(&part));

    // With few flows in a seed none may be beside the scheme; then harm is not defined.
    let beside = |result: &JobResult| millis(times(&result.groups[usize::from(BESIDE)], is_pages).mean());
    let (suffered, otherwise): (Vec<f64>, Vec<f64>) = mixed
        .iter()
        .zip(&baseline)
        .map(|(mixed, baseline)| (beside(mixed), beside(baseline)))
        .filter(|(_, otherwise)| otherwise.is_finite())
        .unzip();
    let long = |result: &&JobResult| result.groups[usize::from(LONG)].delivered.get() as f64;
    let long_share = (baseline.iter().map(long).sum::<f64>() > 0.0).then(|| {
        let here: Vec<f64> = alone.iter().map(long).collect();
        let there: Vec<f64> = baseline.iter().map(long).collect();
        Measured::ratio(&here, &there)
    });
    let losses: Vec<f64> = alone.iter().map(|result| loss_percent(result) / 100.0).collect();
    SchemeResult {
        entry,
        times: times(&totals, is_pages).clone(),
        mean_ms: each(&|totals| millis(times(totals, is_pages).mean())),
        p50_ms: each(&|totals| millis(times(totals, is_pages).quantile(500))),
        p99_ms: each(&|totals| millis(times(totals, is_pages).quantile(990))),
        transfer_ms: each(&|totals| millis(totals.transfer.mean())),
        rounds: each(&Totals::mean_rounds),
        loss_percent: Measured::percent(&losses),
        random_loss_percent: alone
            .iter()
            .map(|result| result.at_random.share())
            .collect::<Option<Vec<f64>>>()
            .filter(|shares| !shares.is_empty())
            .map(|shares| Measured::percent(&shares)),
        overhead: each(&overhead),
        harm: Measured::ratio(&suffered, &otherwise),
        long_share,
        history_hits: totals.history_hits as f64 / (totals.flows as f64).max(1.0),
        history_bytes_per_peer: alone.first().map_or(0, |result| result.history_bytes_per_peer),
        fingerprint: results.iter().fold(0, |folded: u64, result| folded.rotate_left(7) ^ result.fingerprint),
        has_fingerprint: results.iter().all(|result| result.fingerprint != 0),
        asked_at: 0,
        data_packets: results.iter().map(|result| result.data_packets).sum(),
        has_counts: alone.iter().all(|result| result.has_counts),
        invalid: invalid(results.iter().chain(all_baseline)),
        measures: {
            let of_seeds: Vec<_> = alone.iter().map(|result| measures(result)).collect();
            // Columns are the same where no flow arrived.
            let names = results.first().map(measures).into_iter().flatten();
            let sample = |at: usize| -> Vec<f64> {
                of_seeds.iter().map(|of_seed| of_seed[at].1).filter(|value| value.is_finite()).collect()
            };
            let named = |(at, (name, _))| (name, Measured::positive(sample(at)));
            names.enumerate().map(named).collect()
        },
        view: FlowTrace::default(),
        seeds: results
            .chunks(2)
            .zip(all_baseline)
            .zip(seeds)
            .map(|((runs, baseline), seed)| seed_row(entry, *seed, [&runs[0], &runs[1], baseline], is_pages))
            .collect(),
        totals,
    }
}

/// The numbers of one seed: of the run alone, the mixed one, and the one with the reference only.
fn seed_row(entry: &Entry, seed: u64, runs: [&JobResult; 3], is_pages: bool) -> Row {
    let [alone, mixed, reference] = runs;
    let totals = &alone.groups[usize::from(TESTED)];
    let time = |per_mille| number(millis(times(totals, is_pages).quantile(per_mille)));
    let beside = |run: &JobResult| millis(times(&run.groups[usize::from(BESIDE)], is_pages).mean());
    let long = |run: &JobResult| run.groups[usize::from(LONG)].delivered.get();
    let counted = |value: u64| if alone.has_counts { Value::Count(value) } else { Value::Number(None) };
    let mut row = vec![
        ("scheme", Value::Text(entry.name.to_string())),
        ("seed", Value::Count(seed)),
        ("mean_ms", number(millis(times(totals, is_pages).mean()))),
        ("p50_ms", time(500)),
        ("p99_ms", time(990)),
        ("mean_without_handshake_ms", number(millis(totals.transfer.mean()))),
        ("mean_round_trips", number(totals.mean_rounds())),
        ("loss_percent", number(loss_percent(alone))),
        ("random_loss_percent", number(alone.at_random.share().map_or(f64::NAN, |share| 100.0 * share))),
        ("bytes_sent_over_useful", number(if alone.has_counts { overhead(totals) } else { f64::NAN })),
        ("beside_mean_ms", number(beside(mixed))),
        ("reference_mean_ms", number(beside(reference))),
        ("harm", number(beside(mixed) / beside(reference))),
        ("long_delivered_bytes", Value::Count(long(alone))),
        ("reference_long_delivered_bytes", Value::Count(long(reference))),
        ("flows", Value::Count(totals.flows)),
        ("unfinished", Value::Count(totals.unfinished)),
        ("retransmissions", counted(totals.counts.retransmissions)),
        ("copies", counted(totals.counts.copies)),
        ("timeouts", counted(totals.counts.timeouts)),
        ("invalid_runs", Value::Count(invalid(runs.into_iter()).0 as u64)),
    ];
    row.extend(measures(alone).into_iter().map(|(name, value)| (name, number(value))));
    row
}

/// Measures of the bottleneck and of a run's flows, by column; NaN without a measurement.
fn measures(result: &JobResult) -> Vec<(&'static str, f64)> {
    let totals = &result.groups[usize::from(TESTED)];
    let seconds = result.ended_at as f64 / 1e9;
    let throughput = if seconds > 0.0 { result.bottleneck_bytes as f64 * 8.0 / seconds } else { f64::NAN };
    let waits =
        |which: fn((u64, u64)) -> u64| result.waits.map_or(f64::NAN, |waits| which(waits) as f64 / 1e6);
    let ratio = |span: Option<Span>| span.map_or(f64::NAN, |span| span.as_nanos() as f64 / 1e6);
    let of_size = |bin| millis(totals.mean_of_size(bin));
    let long = &result.groups[usize::from(LONG)];
    vec![
        ("throughput_bits_per_s", throughput),
        ("utilisation_percent", 100.0 * result.bottleneck_bytes as f64 / result.bottleneck_capacity as f64),
        ("queueing_delay_mean_ms", waits(|(mean, _)| mean)),
        ("queueing_delay_p95_ms", waits(|(_, p95)| p95)),
        ("jain_index", totals.jain().unwrap_or(f64::NAN)),
        ("long_jain_index", long.jain().unwrap_or(f64::NAN)),
        ("slowdown_mean", ratio(totals.slowdown.mean())),
        ("slowdown_p99", ratio(totals.slowdown.quantile(990))),
        ("mean_ms_to_10kB", of_size(0)),
        ("mean_ms_to_100kB", of_size(1)),
        ("mean_ms_to_1MB", of_size(2)),
        ("mean_ms_to_10MB", of_size(3)),
        ("mean_ms_above_10MB", of_size(4)),
    ]
}

/// Payload bytes sent over payload bytes delivered; NaN if none was delivered.
fn overhead(totals: &Totals) -> f64 {
    if totals.delivered.is_zero() { f64::NAN } else { totals.overhead() }
}

/// Packets that the bottleneck dropped, of those offered to it.
fn loss_percent(result: &JobResult) -> f64 {
    100.0 * result.bottleneck.1 as f64 / (result.bottleneck.0 as f64).max(1.0)
}

/// Runs for which the machine was too busy, and all.
fn invalid<'a>(results: impl Iterator<Item = &'a JobResult>) -> (usize, usize) {
    results.fold((0, 0), |(bad, all), result| (bad + usize::from(result.invalid.is_some()), all + 1))
}

/// A scheme's result as machines read it: its numbers by name, in order.
pub type Row = Vec<(&'static str, Value)>;

fn texts(row: &Row) -> Vec<String> {
    row.iter().map(|(_, value)| value.to_string()).collect()
}

fn kinds(row: &Row) -> Vec<(&'static str, Kind)> {
    row.iter().map(|(name, value)| (*name, value.kind())).collect()
}

/// A number of a row, or a text.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A text.
    Text(String),
    /// A count.
    Count(u64),
    /// A measurement, if there is one.
    Number(Option<f64>),
}

impl fmt::Display for Value {
    /// Values without a measurement are empty.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Count(count) => count.fmt(f),
            Self::Number(Some(number)) => number.fmt(f),
            Self::Number(None) => Ok(()),
        }
    }
}

/// Six decimals: further ones are noise, and noise differs by how it is printed.
fn number(value: f64) -> Value {
    Value::Number(value.is_finite().then(|| (value * 1e6).round() / 1e6))
}

impl SchemeResult {
    /// The runs' fingerprint as text, which no program takes for a number; empty without one.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        if self.has_fingerprint { format!("fp:{:016x}", self.fingerprint) } else { String::new() }
    }

    /// Its row.
    #[must_use]
    pub fn row(&self) -> Row {
        let totals = &self.totals;
        let mut row = vec![
            ("scheme", Value::Text(self.entry.name.to_string())),
            ("mean_ms", number(self.mean_ms.value)),
            ("mean_ms_low", number(self.mean_ms.low)),
            ("mean_ms_high", number(self.mean_ms.high)),
            ("p50_ms", number(self.p50_ms.value)),
            ("p99_ms", number(self.p99_ms.value)),
            ("mean_without_handshake_ms", number(self.transfer_ms.value)),
            ("mean_round_trips", number(self.rounds.value)),
            ("loss_percent", number(self.loss_percent.value)),
            (
                "random_loss_percent",
                number(self.random_loss_percent.as_ref().map_or(f64::NAN, |loss| loss.value)),
            ),
            ("bytes_sent_over_useful", number(self.overhead.value)),
            ("harm", number(self.harm.value)),
            ("harm_low", number(self.harm.low)),
            ("harm_high", number(self.harm.high)),
            ("long_flow_share", number(self.long_share.as_ref().map_or(f64::NAN, |share| share.value))),
            ("flows", Value::Count(totals.flows)),
            ("unfinished", Value::Count(totals.unfinished)),
            ("retransmissions", Value::Count(totals.counts.retransmissions)),
            ("copies", Value::Count(totals.counts.copies)),
            ("timeouts", Value::Count(totals.counts.timeouts)),
            ("probes", Value::Count(totals.counts.probes)),
            ("duplicates", Value::Count(totals.duplicates)),
            ("history_hit_rate", number(self.history_hits)),
            ("history_bytes_per_peer", Value::Count(self.history_bytes_per_peer as u64)),
            ("rate_requests", Value::Count(totals.rate_requests)),
            ("rate_grants", Value::Count(totals.granted)),
            ("granted_starts_with_loss", Value::Count(totals.granted_and_failed)),
            ("fingerprint", Value::Text(self.fingerprint())),
            ("invalid_runs", Value::Count(self.invalid.0 as u64)),
        ];
        row.extend(self.measures.iter().map(|(name, measured)| (*name, number(measured.value))));
        row
    }

    /// A measure by its column.
    #[must_use]
    pub fn measure(&self, name: &str) -> Option<&Measured> {
        let found = self.measures.iter().find(|(column, _)| *column == name);
        found.map(|(_, measured)| measured).filter(|measured| measured.value.is_finite())
    }
}

impl Race {
    /// The columns of the rows, with the kinds of their fields.
    #[must_use]
    pub fn kinds(&self) -> Vec<(&'static str, Kind)> {
        self.scheme_results.first().map(|first| kinds(&first.row())).unwrap_or_default()
    }

    /// The same of [`Self::seeds`].
    #[must_use]
    pub fn seed_kinds(&self) -> Vec<(&'static str, Kind)> {
        let first = self.scheme_results.iter().find_map(|scheme_result| scheme_result.seeds.first());
        first.map(kinds).unwrap_or_default()
    }

    /// The rows as text.
    #[must_use]
    pub fn rows(&self) -> Vec<Vec<String>> {
        self.scheme_results.iter().map(|scheme_result| texts(&scheme_result.row())).collect()
    }

    /// The numbers of each scheme and seed, as text.
    #[must_use]
    pub fn seeds(&self) -> Vec<Vec<String>> {
        self.scheme_results.iter().flat_map(|scheme_result| &scheme_result.seeds).map(texts).collect()
    }
}
