//! The race: all schemes on one path, and what each costs everybody else.
//!
//! For every scheme and seed there are two runs with the same arrivals, sizes, peers and losses: in one every flow runs the
//! scheme, in the other only every second flow does, and the rest run slow start from ten segments. What these
//! suffer, compared with a run in which everybody is like them, is the scheme's *harm*.

use std::fmt;

use anyhow::Result;
use headstart_report::jobs::JobStore;
use headstart_sim::{Histogram, Totals};
use headstart_startup::catalogue::{Entry, Needs};
use headstart_units::Span;
use serde::Serialize;

use crate::flow_trace::FlowTrace;
use crate::flows::Flows;
use crate::options::{RouterName, SchemeName};
use crate::runner::{Job, JobResult, run_all};
use crate::schemes;
use crate::setup::{BESIDE, Cast, LONG, Setup, TESTED};
use crate::statistics::{Interval, mean, mean_interval, ratio_interval};

/// What the race found out about one scheme.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The scheme.
    pub entry: &'static Entry,
    /// All seeds together.
    pub totals: Totals,
    /// The run's primary times (pages if pages are fetched, flows otherwise), all seeds together.
    pub times: Histogram,
    /// Mean of those times in milliseconds.
    pub mean_ms: Interval,
    /// Their median.
    pub p50_ms: Interval,
    /// Their 99th percentile.
    pub p99_ms: Interval,
    /// Mean without the handshake.
    pub transfer_ms: Interval,
    /// Mean completion time of flows in round trips of their own path.
    pub rounds: Interval,
    /// Packets dropped by the bottleneck, as a share of those offered to it, in percent.
    pub loss_percent: Interval,
    /// Payload bytes sent over bytes delivered.
    pub overhead: Interval,
    /// Time of flows of the reference scheme beside this one, over their time among themselves.
    pub harm: Interval,
    /// Rate of long flows beside this scheme, over their rate beside the reference.
    pub long_share: Option<Interval>,
    /// Starts that met a record, as a share of all.
    pub history_hits: f64,
    /// Memory of the history for each peer it remembers.
    pub history_bytes_per_peer: usize,
    /// Fingerprints of all runs, folded together.
    pub fingerprint: u64,
    /// Data packets sent in all runs.
    pub data_packets: u64,
    /// Its numbers for each seed.
    pub seeds: Vec<Row>,
    /// The flow under the lens, of the first seed.
    pub view: FlowTrace,
    /// Senders told what they sent and lost.
    pub has_counts: bool,
    /// Runs for which the machine was too busy, those of the reference included, and all of them: with one of them nothing of this
    /// counts.
    pub invalid: (usize, usize),
}

/// The whole race.
#[derive(Clone, Debug)]
pub struct Race {
    /// In the order of the catalogue.
    pub standings: Vec<Standing>,
    /// Pages were fetched, so times are page response times.
    pub is_pages: bool,
    /// Which flow is under the lens.
    pub lens_serial: u64,
}

/// Runs the race; all flows of all runs are added to `flows`.
///
/// # Errors
/// If a run's packets do not add up, or flows cannot be written.
pub fn race(setup: &Setup, store: &JobStore, flows: Option<&mut Flows>) -> Result<Race> {
    let entries = entries(setup);
    let seeds: Vec<u64> = (0..u64::from(setup.run.repeats)).map(|n| setup.run.seed.wrapping_add(n)).collect();
    // A flow well into the run, when histories are filled; of a short run its last.
    let expected = expected_flows(setup);
    let lens_serial = (expected * 0.6).min(100.0) as u64;
    let reference = setup.reference();

    let mut jobs = vec![];
    for &seed in &seeds {
        let cast = Cast { tested: reference, beside: Some(reference) };
        jobs.push(Job { cast, load: setup.workload.load, seed, look_at: None });
    }
    for entry in &entries {
        for (number, &seed) in seeds.iter().enumerate() {
            let load = setup.workload.load;
            let look_at = (number == 0).then_some(lens_serial);
            jobs.push(Job { cast: Cast { tested: entry, beside: None }, load, seed, look_at });
            jobs.push(Job {
                cast: Cast { tested: entry, beside: Some(reference) },
                load,
                seed,
                look_at: None,
            });
        }
    }
    if setup.carrier().is_real_time() {
        let least = setup.run.duration * jobs.len() as u64;
        eprintln!("headstart: {} runs in real time, {least} at least", jobs.len());
    }
    let results = run_all(setup, &jobs, "racing", store, flows.as_ref().map(|flows| flows.parts()))?;
    if let Some(flows) = flows {
        flows.append(setup, &jobs, &results, seeds.len())?;
    }
    let (baseline, rest) = results.split_at(seeds.len());
    let is_pages = !setup.pages.is_empty();
    let standings = entries
        .iter()
        .zip(rest.chunks(2 * seeds.len()))
        .map(|(entry, results)| standing(entry, results, baseline, &seeds, is_pages))
        .collect();
    Ok(Race { standings, is_pages, lens_serial })
}

/// The schemes that were asked for, each once: those that are compared by default in the order of the catalogue, then the
/// others in the order in which they were asked for. If none was: all that are compared by default, but not those that need routers where no router takes part and they would only be slow start again, nor those that the transport does not carry.
#[must_use]
pub fn entries(setup: &Setup) -> Vec<&'static Entry> {
    let wanted = setup.run.schemes();
    let has_routers = setup.path.routers != RouterName::None;
    let is_wanted = |entry: &&Entry| {
        let is_able = (entry.needs != Needs::Routers || has_routers)
            && setup.carrier().carries(entry, &setup.transport).is_ok();
        (wanted.is_empty() && is_able) || wanted.iter().any(|name| name.0.name == entry.name)
    };
    let mut entries: Vec<&Entry> = schemes::all().iter().filter(is_wanted).collect();
    for SchemeName(entry) in wanted {
        if entries.iter().all(|known| known.name != entry.name) {
            entries.push(entry);
        }
    }
    entries
}

/// Flows or pages that will arrive, about.
fn expected_flows(setup: &Setup) -> f64 {
    let payload = (setup.bottleneck() * setup.workload.load).as_bytes_per_sec() as f64;
    payload * setup.run.duration.as_secs_f64() / setup.mean_bytes().max(1.0)
}

/// Times of one group of one run: pages where there are any, flows otherwise.
fn times(totals: &Totals, is_pages: bool) -> &Histogram {
    if is_pages { &totals.pages } else { &totals.completion }
}

fn millis(span: Option<Span>) -> f64 {
    span.map_or(f64::NAN, Span::as_millis_f64)
}

fn standing(
    entry: &'static Entry,
    results: &[JobResult],
    baseline: &[JobResult],
    seeds: &[u64],
    is_pages: bool,
) -> Standing {
    let alone: Vec<&JobResult> = results.iter().step_by(2).collect();
    let mixed: Vec<&JobResult> = results.iter().skip(1).step_by(2).collect();
    let tested = |result: &&JobResult| result.groups[usize::from(TESTED)].clone();
    let each = |figure: &dyn Fn(&Totals) -> f64| -> Interval {
        let sample: Vec<f64> =
            alone.iter().map(|result| figure(&result.groups[usize::from(TESTED)])).collect();
        interval(&sample)
    };
    let mut totals = Totals::default();
    alone.iter().map(tested).for_each(|part| totals.merge(&part));

    let beside = |result: &JobResult| millis(times(&result.groups[usize::from(BESIDE)], is_pages).mean());
    let suffered: Vec<f64> = mixed.iter().map(|result| beside(result)).collect();
    let otherwise: Vec<f64> = baseline.iter().map(beside).collect();
    let long = |result: &JobResult| result.groups[usize::from(LONG)].delivered.get() as f64;
    let long_share = (baseline.iter().map(long).sum::<f64>() > 0.0).then(|| {
        let here: Vec<f64> = alone.iter().map(|result| long(result)).collect();
        let there: Vec<f64> = baseline.iter().map(long).collect();
        ratio(&here, &there)
    });
    let losses: Vec<f64> = alone.iter().map(|result| loss_percent(result)).collect();
    Standing {
        entry,
        times: times(&totals, is_pages).clone(),
        mean_ms: each(&|totals| millis(times(totals, is_pages).mean())),
        p50_ms: each(&|totals| millis(times(totals, is_pages).quantile(500))),
        p99_ms: each(&|totals| millis(times(totals, is_pages).quantile(990))),
        transfer_ms: each(&|totals| millis(totals.transfer.mean())),
        rounds: each(&Totals::mean_rounds),
        loss_percent: interval(&losses),
        overhead: each(&Totals::overhead),
        harm: ratio(&suffered, &otherwise),
        long_share,
        history_hits: totals.history_hits as f64 / (totals.flows as f64).max(1.0),
        history_bytes_per_peer: alone.first().map_or(0, |result| result.history_bytes_per_peer),
        fingerprint: results.iter().fold(0, |folded: u64, result| folded.rotate_left(7) ^ result.fingerprint),
        data_packets: results.iter().map(|result| result.data_packets).sum(),
        has_counts: alone.iter().all(|result| result.has_counts),
        invalid: invalid(results.iter().chain(baseline)),
        view: alone.first().and_then(|result| result.view.clone()).unwrap_or_default(),
        seeds: (0..alone.len())
            .map(|at| seed_row(entry, seeds[at], [alone[at], mixed[at], &baseline[at]], is_pages))
            .collect(),
        totals,
    }
}

/// The numbers of one seed: of the run alone, the mixed one, and the one in which everybody is the reference.
fn seed_row(entry: &Entry, seed: u64, runs: [&JobResult; 3], is_pages: bool) -> Row {
    let [alone, mixed, reference] = runs;
    let totals = &alone.groups[usize::from(TESTED)];
    let time = |per_mille| number(millis(times(totals, is_pages).quantile(per_mille)));
    let beside = |run: &JobResult| millis(times(&run.groups[usize::from(BESIDE)], is_pages).mean());
    let long = |run: &JobResult| run.groups[usize::from(LONG)].delivered.get();
    let counted = |value: u64| if alone.has_counts { Value::Count(value) } else { Value::Number(None) };
    vec![
        ("scheme", Value::Text(entry.name.to_string())),
        ("seed", Value::Count(seed)),
        ("mean_ms", number(millis(times(totals, is_pages).mean()))),
        ("p50_ms", time(500)),
        ("p99_ms", time(990)),
        ("mean_without_handshake_ms", number(millis(totals.transfer.mean()))),
        ("mean_round_trips", number(totals.mean_rounds())),
        ("loss_percent", number(loss_percent(alone))),
        ("bytes_sent_over_useful", number(if alone.has_counts { totals.overhead() } else { f64::NAN })),
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
    ]
}

/// Packets that the bottleneck dropped, of those offered to it.
fn loss_percent(result: &JobResult) -> f64 {
    100.0 * result.bottleneck.1 as f64 / (result.bottleneck.0 as f64).max(1.0)
}

/// Runs for which the machine was too busy, and all.
fn invalid<'a>(results: impl Iterator<Item = &'a JobResult>) -> (usize, usize) {
    results.fold((0, 0), |(bad, all), result| (bad + usize::from(result.invalid.is_some()), all + 1))
}

/// The interval of a sample; where there is nothing to measure, nothing.
fn interval(sample: &[f64]) -> Interval {
    mean_interval(sample).unwrap_or_else(|| bare(mean(sample).unwrap_or(f64::NAN)))
}

fn ratio(sample: &[f64], baseline: &[f64]) -> Interval {
    let bare_ratio = || mean(sample).unwrap_or(f64::NAN) / mean(baseline).unwrap_or(f64::NAN);
    ratio_interval(sample, baseline).unwrap_or_else(|| bare(bare_ratio()))
}

/// A single seed says nothing of what other seeds would have said.
fn bare(value: f64) -> Interval {
    Interval { value, low: f64::NAN, high: f64::NAN }
}

/// A standing as machines read it: its numbers by name, in order.
pub type Row = Vec<(&'static str, Value)>;

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
    /// What was not measured is empty.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Count(count) => count.fmt(f),
            Self::Number(Some(number)) => number.fmt(f),
            Self::Number(None) => Ok(()),
        }
    }
}

/// Six significant decimals: what is beyond them is noise, and noise differs by how it is printed.
fn number(value: f64) -> Value {
    Value::Number(value.is_finite().then(|| (value * 1e6).round() / 1e6))
}

impl Standing {
    /// Its row.
    #[must_use]
    pub fn row(&self) -> Row {
        let totals = &self.totals;
        vec![
            ("scheme", Value::Text(self.entry.name.to_string())),
            ("mean_ms", number(self.mean_ms.value)),
            ("mean_ms_low", number(self.mean_ms.low)),
            ("mean_ms_high", number(self.mean_ms.high)),
            ("p50_ms", number(self.p50_ms.value)),
            ("p99_ms", number(self.p99_ms.value)),
            ("mean_without_handshake_ms", number(self.transfer_ms.value)),
            ("mean_round_trips", number(self.rounds.value)),
            ("loss_percent", number(self.loss_percent.value)),
            ("bytes_sent_over_useful", number(self.overhead.value)),
            ("harm", number(self.harm.value)),
            ("harm_low", number(self.harm.low)),
            ("harm_high", number(self.harm.high)),
            ("long_flow_share", number(self.long_share.map_or(f64::NAN, |share| share.value))),
            ("flows", Value::Count(totals.flows)),
            ("unfinished", Value::Count(totals.unfinished)),
            ("retransmissions", Value::Count(totals.counts.retransmissions)),
            ("copies", Value::Count(totals.counts.copies)),
            ("timeouts", Value::Count(totals.counts.timeouts)),
            ("probes", Value::Count(totals.counts.probes)),
            ("duplicates", Value::Count(totals.duplicates)),
            ("history_hit_rate", number(self.history_hits)),
            ("history_bytes_per_peer", Value::Count(self.history_bytes_per_peer as u64)),
            ("rate_requests", Value::Count(totals.asked)),
            ("rate_grants", Value::Count(totals.granted)),
            ("granted_starts_with_loss", Value::Count(totals.granted_and_failed)),
            ("fingerprint", Value::Text(format!("{:016x}", self.fingerprint))),
            ("invalid_runs", Value::Count(self.invalid.0 as u64)),
        ]
    }
}

impl Race {
    /// The names of the rows' numbers, in order.
    #[must_use]
    pub fn columns(&self) -> Vec<&'static str> {
        self.standings
            .first()
            .map(|first| first.row().iter().map(|(name, _)| *name).collect())
            .unwrap_or_default()
    }

    /// The numbers of each scheme and seed, as text, behind their names.
    #[must_use]
    pub fn seeds(&self) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let rows = || self.standings.iter().flat_map(|standing| &standing.seeds);
        let names = rows().next().map(|row| row.iter().map(|(name, _)| *name).collect());
        let fields = |row: &Row| row.iter().map(|(_, value)| value.to_string()).collect();
        (names.unwrap_or_default(), rows().map(fields).collect())
    }

    /// The rows as text.
    #[must_use]
    pub fn rows(&self) -> Vec<Vec<String>> {
        let fields = |row: Row| row.into_iter().map(|(_, value)| value.to_string()).collect();
        self.standings.iter().map(|standing| fields(standing.row())).collect()
    }
}
