//! An application on one network after the other: WS §4.3 and §4.4.2 (Figures 8 and 10).
//!
//! The seed is the number of the scene: seed 1 is the first scene of the first row of seventy, seed
//! 71 the first of the second row. On each, a client opens a connection and replays a session of
//! [`application`](super::application); the server answers. A scheme goes through its row in
//! sequence, with an empty history at first: its records are those left by the scene before. Each
//! row begins anew.
//!
//! All scenes of a row share one run of it, which is kept with the study.
//!
//! With `records = "drawn"` each scene is a peer, its record off the path as in WS Figure 2.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use headstart_sim::Seed;
use headstart_sim::record::SenderEvent;
use headstart_sim::workload::Opener;
use headstart_sim::workload::replay::{From, Replay};
use headstart_startup::catalogue::Entry;
use headstart_startup::history::Record;
use headstart_units::{Bytes, Ratio, Time};

use super::application::{FIRST_SCREEN, SESSION, first_screen, session};
use super::drift::{Drift, drift};
use super::flow_events::{FlowEvents, Start};
use super::networks::{NetworkPath, Rates, SCENES};
use super::trace_folder::TraceFolder;
use super::{RecordParams, Records, history_of, last_record, record_of};
use crate::carrier::{Detail, Run};
use crate::setup::{SchemeMix, Setup, TESTED, reference};
use crate::study::{Case, Declared, Measure, Measured, Study, percent};

const MEASURES: &[Measure] = &[
    Measure::new(
        "aft",
        "ms",
        "first screen: from the SYN until everything asked for in the first second was read",
    ),
    Measure::new("rct", "ms", "mean time from a request of the first second to its last byte"),
    Measure::new("rct.all", "ms", "mean time from any request to its last byte"),
    Measure::new("reduction", "%", "by how much `aft` is below the reference's on the same network"),
    Measure::new("is-improved", "%", "100 if it is below, else 0"),
    Measure::new("loss", "%", "packets that the bottleneck dropped in the session, of those offered"),
    Measure::new("send-buffer-empty", "%", "data packets after which nothing was left to send"),
    Measure::new("requests.first", "%", "requests of the first second, of all"),
    Measure::new("bytes.first", "%", "their bytes, of all"),
    Measure::new("first-ack.window", "kB", "window after the first ack of a start from a record"),
    Measure::new("est-bdp", "kB", "Eq. (1) times the smallest RTT of the same acks"),
    Measure::new("is-drain", "%", "100 if such a start went into Drain, else 0"),
    Measure::new("requests/...", "%", "share of the requests in each second, by its number"),
    Measure::new("bytes/...", "%", "share of the bytes in each second, by its number"),
    Measure::new("unsent/...", "%", "data packets after which no more than so many kB waited"),
];

/// An application on one network after the other; the seed is the network's number.
#[derive(Args, Debug)]
pub struct NetworkSequence {
    #[command(flatten)]
    records: RecordParams,
    /// Rates of the networks that an application meets, over those of the model
    #[arg(long, default_value = "100 %", value_name = "SHARE")]
    scale: Ratio,
    /// Spread of the rates of these networks: the ratio of two of them is raised to this power
    #[arg(long, default_value = "100 %", value_name = "SHARE")]
    spread: Ratio,
    /// Responses of an application, over those of the model
    #[arg(long, default_value = "100 %", value_name = "SHARE")]
    responses: Ratio,
    /// Folder of packet-delivery traces (mahimahi format) in place of generated ones
    #[arg(long, value_name = "FOLDER")]
    traces: Option<TraceFolder>,
    /// Rows that were run, by scheme and number.
    #[arg(skip)]
    rows: Mutex<BTreeMap<(String, u64), Row>>,
}

/// Connections that a client opens on each network, one after the other.
const VISITS: u8 = 6;

/// The numbers of one visit, or of one scene.
type Visit = Vec<(String, f64)>;

/// All scenes of a row, or the error.
type Row = Arc<OnceLock<Result<Vec<Visit>, String>>>;

impl Study for NetworkSequence {
    const NAME: &'static str = "network-sequence";
    const ABOUT: &'static str = "an application on several networks, one after the other";
    const NEEDS: Detail = Detail::Events;
    const DECLARED: &'static [Declared] = &[Declared { prefixes: &[""], measures: MEASURES }];

    /// The first run executes two whole rows, the reference's too; each other scheme one.
    fn share(&self, setup: &Setup) -> f64 {
        0.6 / u64::from(setup.run.repeats).clamp(1, SCENES) as f64
    }

    fn run(&self, case: &Case<'_>) -> Result<Measured> {
        let Case { setup, mix, seed } = *case;
        let number = seed.saturating_sub(1);
        let (row, at) = (number / SCENES, (number % SCENES) as usize);
        let own = self.run_scene(setup, mix.tested, row, at)?;
        let other = self.run_scene(setup, reference(), row, at)?;
        let below = 100.0 * (1.0 - screen_of(&own) / screen_of(&other));
        let mut numbers = own.clone();
        numbers.push(("reduction".to_owned(), below));
        numbers.push(("is-improved".to_owned(), percent(below > 0.0)));
        Ok(numbers.into_iter().collect())
    }
}

impl NetworkSequence {
    fn run_scene(&self, setup: &Setup, tested: &'static Entry, row: u64, at: usize) -> Result<Visit> {
        let row_of = {
            let mut rows = headstart_host::locked(&self.rows);
            Arc::clone(rows.entry((tested.name.to_string(), row)).or_default())
        };
        // A second caller waits for the first: the row is not run twice.
        let visits =
            row_of.get_or_init(|| self.run_row(setup, tested, row).map_err(|error| format!("{error:#}")));
        let visits = visits.as_ref().map_err(|error| anyhow!("{error}"))?;
        visits.get(at).cloned().context("a row has a visit for each scene")
    }

    /// Runs a row, with the histories left by the scene before.
    fn run_row(&self, setup: &Setup, tested: &'static Entry, row: u64) -> Result<Vec<Visit>> {
        let options = self;
        let rates = Rates { scale: options.scale, spread: options.spread };
        let seed = Seed(row).child("row of scenes");
        let mut left = None;
        (0..SCENES)
            .map(|number| {
                let scene = NetworkPath::new(seed, number, &rates, options.traces.as_ref())?;
                let seed = seed.child(&format!("visits {number}"));
                let path = scene.options(&setup.path);
                let here = setup.with_path(path)?;
                let visits = (0..VISITS)
                    .map(|visit| {
                        let seed = seed.child(&format!("visit {visit}"));
                        let record = match options.records.records {
                            Records::Previous => left,
                            Records::Drawn => Some(record_of(&here, drift(seed))),
                            Records::Exact => Some(record_of(&here, Drift { rate: 1.0, rtt: 1.0 })),
                        };
                        let (visit, after) = run_visit(&here, tested, record, options.responses, seed)?;
                        left = after.or(left);
                        Ok(visit)
                    })
                    .collect::<Result<Vec<Visit>>>()?;
                Ok(means_of(&visits))
            })
            .collect()
    }
}

/// The means over the visits to a scene of their measurements.
fn means_of(visits: &[Visit]) -> Visit {
    let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (name, value) in visits.iter().flatten().filter(|(_, value)| value.is_finite()) {
        let sum = sums.entry(name).or_default();
        *sum = (sum.0 + value, sum.1 + 1.0);
    }
    sums.into_iter().map(|(name, (sum, count))| (name.to_owned(), sum / count)).collect()
}

/// Time of a visit's first screen.
fn screen_of(visit: &Visit) -> f64 {
    visit.iter().find(|(name, _)| name == "aft").map_or(f64::NAN, |(_, value)| *value)
}

fn run_visit(
    setup: &Setup,
    tested: &'static Entry,
    record: Option<Record>,
    responses: Ratio,
    seed: Seed,
) -> Result<(Visit, Option<Record>)> {
    let messages = session(seed, responses);
    let screen = first_screen(&messages);
    let workload = Replay::new(messages.clone(), From::FirstRead, TESTED, Opener::Receiver, Time::ZERO);
    let until = Time::ZERO + SESSION + setup.run.drain;
    let run = Run::new(setup, SchemeMix { tested, beside: None }, Box::new(workload), until, seed);
    let mut result = run.with_history(TESTED, history_of(record)).observe(FlowEvents::default())?;
    let left = last_record(&mut result.histories, TESTED);
    let flow = result.observer;
    let ended_at = flow.report.map_or(Time::ZERO, |report| report.ended_at);
    // Messages not read when the run ended count with their age.
    let read_at = |number: usize| flow.messages.get(number).map_or(ended_at, |message| message.read_at);
    let requested_at =
        |number: usize| flow.messages.get(number).map_or(Time::ZERO, |message| message.requested_at);
    let took = |number: usize| read_at(number).since(requested_at(number)).as_millis_f64();
    let mean = |count: usize| (0..count).map(took).sum::<f64>() / count.max(1) as f64;
    let shown_at = (0..screen).map(read_at).max().unwrap_or(ended_at);
    let sent: Vec<&_> =
        flow.events.iter().filter(|(_, trace)| matches!(trace.event, SenderEvent::Sent { .. })).collect();
    let idle = sent.iter().filter(|(_, trace)| trace.unsent.is_zero()).count();
    let bytes =
        |count: usize| messages[..count].iter().map(|message| message.bytes.get() as f64).sum::<f64>();
    let all = messages.len();
    let start = Start::of(&flow.events);
    let mut visit = vec![
        ("aft".to_owned(), shown_at.since(Time::ZERO).as_millis_f64()),
        ("rct".to_owned(), mean(screen)),
        ("rct.all".to_owned(), mean(all)),
        ("loss".to_owned(), 100.0 * flow.dropped as f64 / flow.offered.max(1) as f64),
        ("send-buffer-empty".to_owned(), 100.0 * idle as f64 / sent.len().max(1) as f64),
        ("requests.first".to_owned(), 100.0 * screen as f64 / all as f64),
        ("bytes.first".to_owned(), 100.0 * bytes(screen) / bytes(all)),
    ];
    if let Some(start) = start {
        visit.extend(start.first_window.map(|window| ("first-ack.window".to_owned(), window / 1000.0)));
        visit.extend(start.est_bdp().map(|bdp| ("est-bdp".to_owned(), bdp / 1000.0)));
        visit.push(("is-drain".to_owned(), percent(start.is_drain)));
    }
    for second in 0..SESSION.as_nanos() / FIRST_SCREEN.as_nanos() {
        let (from, to) = (FIRST_SCREEN * second, FIRST_SCREEN * (second + 1));
        let here: Vec<f64> = messages
            .iter()
            .filter(|message| (from..to).contains(&message.at))
            .map(|message| message.bytes.get() as f64)
            .collect();
        visit.push((format!("requests/{}", second + 1), 100.0 * here.len() as f64 / all as f64));
        visit.push((format!("bytes/{}", second + 1), 100.0 * here.iter().sum::<f64>() / bytes(all)));
    }
    // Shares of moments with at most so many bytes unsent (WS Figure 4).
    for kilobytes in [0_u64, 2, 5, 10, 20, 30, 40, 50, 75, 100, 150, 200] {
        let waiting = sent.iter().filter(|(_, trace)| trace.unsent <= Bytes::new(kilobytes * 1000)).count();
        visit.push((format!("unsent/{kilobytes}"), 100.0 * waiting as f64 / sent.len().max(1) as f64));
    }
    Ok((visit, left))
}
