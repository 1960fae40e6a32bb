//! A connection over a path that has changed since it was recorded: WS §4.4.1 and Figure 9, and
//! every step of Algorithm 1.
//!
//! A first connection of the same scheme runs over the path as it was and leaves its record. Then
//! the measured connection runs over the path as it is, from that record. Or the record is
//! drawn: as far from the path as WS Figure 2 found two connections of one peer.
//!
//! The buffer is that of the path as it is: "S-Cubic drops a lot of packets when the new bandwidth
//! is reduced to less than half of the old connection" (WS §4.4.1). With the old BDP it would not.

use anyhow::{Context, Result, ensure};
use clap::Args;
use headstart_sim::Seed;
use headstart_sim::record::SenderEvent;
use headstart_sim::workload::Workload;
use headstart_sim::workload::long::{Listed, Start as Begin};
use headstart_sim::workload::replay::{From, Message, Replay};
use headstart_startup::history::Record;
use headstart_startup::{Startup as _, Transmission};
use headstart_units::{Bytes, Rate, Ratio, Span, Time};

use super::algorithm_1::{Decision, FlowEvents, Start};
use super::drift::{Drift, drift};
use super::{RecordParams, Records, history_of, last_record};
use crate::carrier::{Detail, Run, RunResult, attempts};
use crate::setup::{Setup, TESTED};
use crate::study::{Case, Declared, Measure, Measured, Profile, Study, percent};

const MEASURES: &[Measure] = &[
    Measure::new("completion", "ms", "from the first SYN to the last byte at the receiver"),
    Measure::new("dropped", "kB", "bytes of data packets that the bottleneck dropped"),
    Measure::new("is-lossy", "%", "100 if it dropped any, else 0"),
    Measure::new("timeouts", "", "retransmission timeouts").with_detail(Detail::Counts),
    Measure::new("drift", "", "the path's rate over the record's"),
    Measure::new("drift.rtt", "", "the path's RTT over the record's"),
    Measure::new("drift.within", "%", "100 if the rate is within 20 % of the record's, else 0"),
    Measure::new("drift.rtt-within", "%", "100 if the RTT is within 20 % of the record's, else 0"),
    Measure::new("drift.rtt-close", "%", "100 if the RTT is within 6 ms of the record's, else 0"),
    Measure::new("drift.beyond", "%", "100 if the rate changed more than five times, else 0"),
    Measure::new("window", "", "window at establishment over the recorded BDP (line 6)"),
    Measure::new("pace", "", "pace at establishment over the recorded rate (line 7)"),
    Measure::new("rate.below-kappa", "", "sending rate of the first 20 segments over the recorded rate"),
    Measure::new("rate.from-kappa", "", "that of the next 10 (line 12)"),
    Measure::new("rate.beyond", "", "that of the rest of the window (line 15)"),
    Measure::new(
        "first-ack.window",
        "",
        "window after the first ack over what was in flight when it arrived (line 20)",
    ),
    Measure::new("first-ack.window-kilobytes", "kB", "window after the first ack"),
    Measure::new(
        "first-ack.is-paced",
        "%",
        "100 if packets are still paced after it, else 0 (line 21, §3.4)",
    ),
    Measure::new("gamma", "", "which ack decided (line 23)"),
    Measure::new("estimate", "", "Eq. (1), worked out again from the acks, over the path's payload rate"),
    Measure::new("estimate.rtt", "", "smallest RTT of these acks over the path's"),
    Measure::new(
        "agrees",
        "%",
        "100 if Probe or Drain is what Eq. (1) and line 26 say, else 0; of starts that were not limited",
    ),
    Measure::new("is-probe", "%", "100 if the start went on to Probe, else 0"),
    Measure::new("is-drain", "%", "100 if it went on to Drain, else 0"),
    Measure::new("is-lost", "%", "100 if a loss came before the decision, else 0"),
];

/// Time-sequence plots end this many round trips after the SYN.
const SHOWN: u64 = 6;

/// Change of the path, and data sent over it.
#[derive(Args, Clone, Debug)]
pub struct ChangedPathParams {
    /// Rate of the path by the time its record is used, as a share of --rate
    #[arg(long, default_value = "100 %", value_name = "SHARE")]
    new_rate: Ratio,
    /// Data available at first; the rest of the flow follows after --pause
    #[arg(long, value_name = "SIZE")]
    first_part: Option<Bytes>,
    /// Time from the opening to the rest of the flow
    #[arg(long, default_value = "0 ms", value_name = "TIME")]
    pause: Span,
    #[command(flatten)]
    records: RecordParams,
}

/// A connection over a path that has changed since it was recorded.
pub struct ChangedPath(ChangedPathParams);

impl Study for ChangedPath {
    const NAME: &'static str = "changed-path";
    const ABOUT: &'static str = "a connection over a path that has changed since it was recorded";
    const NEEDS: Detail = Detail::Flows;
    const DECLARED: &'static [Declared] = &[Declared { prefixes: &[""], measures: MEASURES, profiles: &[] }];
    type Params = ChangedPathParams;

    fn new(params: ChangedPathParams) -> Self {
        Self(params)
    }

    fn run(&self, case: &Case<'_>) -> Result<Measured> {
        run(&self.0, case, false)
    }
}

/// The same, with every step of its start.
pub struct ChangedPathTrace(ChangedPathParams);

impl Study for ChangedPathTrace {
    const NAME: &'static str = "changed-path-trace";
    const ABOUT: &'static str = "a connection over a changed path, with every event of its start";
    const NEEDS: Detail = Detail::Events;
    const DECLARED: &'static [Declared] = &[Declared {
        prefixes: &[""],
        measures: MEASURES,
        profiles: &[
            Profile::new("sent", "kB", "offset of each segment sent first, by milliseconds since the SYN"),
            Profile::new("retransmitted", "kB", "offset of each segment sent again, likewise"),
            Profile::new("acked", "kB", "what was acknowledged, likewise"),
            Profile::new("lost", "kB", "offset of each segment declared lost, likewise"),
            Profile::new("window", "kB", "the window, likewise"),
            Profile::new("in-flight", "kB", "bytes in flight, likewise"),
        ],
    }];
    type Params = ChangedPathParams;

    fn new(params: ChangedPathParams) -> Self {
        Self(params)
    }

    fn run(&self, case: &Case<'_>) -> Result<Measured> {
        run(&self.0, case, true)
    }
}

/// Runs the study. `is_shown`: with the families for plots.
///
/// # Errors
/// If the path cannot be built; if the carrier cannot set and read histories, and records are to be
/// others than connections leave.
fn run(options: &ChangedPathParams, case: &Case<'_>, is_shown: bool) -> Result<Measured> {
    let Case { setup, mix, seed } = *case;
    let seed = Seed(seed).child("changed path");
    let mut path = setup.path.clone();
    path.rate = setup.bottleneck() * options.new_rate;
    let now = setup.with_path(path)?;
    // Ideal's record is that of the path itself, for any `records` of the others. It has the link's
    // rate, where connections record payload: "the bandwidth and BDP" (WS §4.4.1).
    let is_ideal = mix.tested.scheme().requirements().holds_record;
    let records = if is_ideal { Records::Exact } else { options.records.records };
    let carrier = setup.carrier();
    let has_histories = carrier.detail() >= Detail::Events;
    ensure!(
        has_histories || records == Records::Previous,
        "--records: found {records:?} ({}), expected previous over {}: records come from earlier connections",
        mix.tested.name,
        carrier.name()
    );
    ensure!(
        has_histories || options.first_part.is_none(),
        "--first-part: found it over {}, where a server sends only what was asked for",
        carrier.name()
    );
    let mut drawn = (Drift { rate: options.new_rate.of(1_000_000) as f64 / 1e6, rtt: 1.0 }, None);
    match records {
        Records::Previous => {}
        Records::Drawn => {
            let drift = drift(seed);
            drawn = (drift, Some(record_of(&now, drift)));
        }
        Records::Exact => {
            let same = Drift { rate: 1.0, rtt: 1.0 };
            let mut record = record_of(&now, same);
            if is_ideal {
                record.btl_bw = now.bottleneck();
                record.window = record.btl_bw * record.rt_prop;
            }
            drawn = (same, Some(record));
        }
    }
    let (drift, known) = drawn;
    let result = attempts(setup, mix, |hosts| {
        let (mut record, mut invalid) = (known, None);
        if records == Records::Previous {
            let bytes = Bytes::new(setup.mean_bytes() as u64);
            let mut before = setup.single_flow(mix.tested, bytes, seed.child("before"));
            if !has_histories {
                before.workload = single(setup);
            }
            let mut before = before.observe_on(hosts, ())?;
            invalid = before.invalid;
            if has_histories {
                let left = last_record(&mut before.histories, TESTED);
                record = Some(left.context("the first connection left no record")?);
            }
        }
        let workload: Box<dyn Workload> = if has_histories {
            Box::new(Replay::new(messages(&now, options), From::Opening, TESTED, setup.opener(), Time::ZERO))
        } else {
            single(&now)
        };
        let until = Time::ZERO + now.run.duration + now.run.drain;
        let mut run = Run::new(&now, mix, workload, until, seed);
        if let Some(record) = record {
            run = run.with_history(TESTED, history_of(Some(record)));
        }
        let result = run.observe_on(hosts, FlowEvents::default())?;
        let invalid = invalid.or(result.invalid.clone());
        Ok(RunResult { invalid, ..result.map(|flow| (flow, record)) })
    })?;
    let (flow, record) = &result.observer;
    let dropped = result.bottleneck.dropped_bytes.unwrap_or(flow.dropped_bytes);
    let mut numbers = numbers(&now, flow, dropped, drift, record.as_ref())?;
    if is_shown {
        numbers.extend(families(&now, flow));
    }
    Ok(Measured { numbers, invalid: result.invalid })
}

/// One flow requested by the client, whose size the server's scheme does not receive: as in the
/// simulator, where the application does not announce it.
fn single(setup: &Setup) -> Box<dyn Workload> {
    let bytes = Bytes::new(setup.mean_bytes() as u64);
    let start = Begin { at: Time::ZERO, group: TESTED, class: 0, bytes, size_known: false };
    Box::new(Listed::new(vec![start], setup.opener()))
}

/// The payload rate of a path: the upper bound of a delivery rate.
fn payload_rate(setup: &Setup) -> f64 {
    let tcp = setup.tcp();
    setup.bottleneck().as_bytes_per_sec() as f64 * tcp.mss.get() as f64 / (tcp.mss + tcp.header).get() as f64
}

/// Record that a connection would have made of the path before it drifted.
fn record_of(setup: &Setup, drift: Drift) -> Record {
    let rt_prop = setup.rtt().as_secs_f64() / drift.rtt;
    let btl_bw = Rate::from_bytes_per_sec((payload_rate(setup) / drift.rate) as u64);
    let rt_prop = Span::from_micros((rt_prop * 1e6) as u64);
    let window = btl_bw * rt_prop;
    Record { btl_bw, rt_prop, window, ..Record::default() }
}

fn messages(setup: &Setup, options: &ChangedPathParams) -> Vec<Message> {
    let bytes = Bytes::new(setup.mean_bytes() as u64);
    match options.first_part {
        Some(first) if first < bytes => vec![
            Message { at: Span::ZERO, bytes: first },
            Message { at: options.pause, bytes: bytes - first },
        ],
        _ => vec![Message { at: Span::ZERO, bytes }],
    }
}

fn numbers(
    setup: &Setup,
    flow: &FlowEvents,
    dropped: u64,
    drift: Drift,
    record: Option<&Record>,
) -> Result<Vec<(String, f64)>> {
    let report = flow.report.context("the flow was not reported")?;
    let completion = report.completion_time().unwrap_or_else(|| report.ended_at.since(report.opened_at));
    let rtt = setup.rtt().as_millis_f64();
    let is_near = |ratio: f64| (ratio - 1.0).abs() < 0.2;
    let mut numbers = vec![
        ("completion", completion.as_millis_f64()),
        ("dropped", dropped as f64 / 1000.0),
        ("is-lossy", percent(dropped > 0)),
        ("timeouts", report.counts.timeouts as f64),
        ("drift", drift.rate),
        ("drift.rtt", drift.rtt),
        ("drift.within", percent(is_near(drift.rate))),
        ("drift.rtt-within", percent(is_near(drift.rtt))),
        ("drift.rtt-close", percent((rtt - rtt / drift.rtt).abs() < 6.0)),
        ("drift.beyond", percent(drift.rate > 5.0 || drift.rate < 0.2)),
    ];
    if let (Some(start), Some(record)) = (Start::of(&flow.events), record) {
        let btl_bw = record.btl_bw.as_bytes_per_sec() as f64;
        let nan = f64::NAN;
        let rate = |at: usize| start.rates[at].map_or(nan, |rate| rate / btl_bw);
        let is_unlimited = !start.was_paced && start.decision.is_some_and(|it| it != Decision::Lost);
        let filled = start.est_bdp().map(|bdp| start.window_before >= bdp);
        numbers.extend([
            ("window", start.window / record.bdp().map_or(nan, |bdp| bdp.get() as f64)),
            ("pace", start.pace / btl_bw),
            ("rate.below-kappa", rate(0)),
            ("rate.from-kappa", rate(1)),
            ("rate.beyond", rate(2)),
            ("first-ack.window", start.first_ack.map_or(nan, |ack| ack.window / ack.in_flight)),
            ("first-ack.window-kilobytes", start.first_ack.map_or(nan, |ack| ack.window / 1000.0)),
            ("first-ack.is-paced", start.first_ack.map_or(nan, |ack| percent(ack.is_paced))),
            ("is-probe", percent(start.decision == Some(Decision::Probe))),
            ("is-drain", percent(start.decision == Some(Decision::Drain))),
            ("is-lost", percent(start.decision == Some(Decision::Lost))),
        ]);
        if start.decision.is_some_and(|it| it != Decision::Lost) {
            numbers.push(("gamma", start.acks as f64));
            numbers.push(("estimate", start.est_btl_bw.map_or(nan, |rate| rate / payload_rate(setup))));
            let rtt = setup.rtt().as_secs_f64();
            numbers.push(("estimate.rtt", start.est_rt_prop.map_or(nan, |least| least / rtt)));
        }
        if let (true, Some(is_filled)) = (is_unlimited, filled) {
            numbers.push(("agrees", percent(is_filled == (start.decision == Some(Decision::Drain)))));
        }
    }
    Ok(numbers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn families(setup: &Setup, flow: &FlowEvents) -> Vec<(String, f64)> {
    let opened_at = flow.report.map_or(Time::ZERO, |report| report.opened_at);
    let until = opened_at + setup.rtt() * SHOWN;
    let mut numbers = vec![];
    for (number, (at, trace)) in flow.events.iter().take_while(|(at, _)| *at <= until).enumerate() {
        // The event's number distinguishes points of one instant: a nanosecond each.
        let millis = at.since(opened_at).as_millis_f64();
        let mut add = |family: &str, bytes: u64| {
            let at = (millis * 1e3).round() / 1e3;
            numbers.push((format!("{family}/{at:.3}{:06}", number % 1_000_000), bytes as f64 / 1000.0));
        };
        match trace.event {
            SenderEvent::Sent { offset, transmission: Transmission::Original, .. } => add("sent", offset),
            SenderEvent::Sent { offset, .. } => add("retransmitted", offset),
            SenderEvent::Acked { acknowledged, .. } => add("acked", acknowledged),
            SenderEvent::Lost { offset, .. } => add("lost", offset),
            SenderEvent::Established | SenderEvent::Timeout => {}
        }
        add("window", trace.window.get());
        add("in-flight", trace.in_flight.get());
    }
    numbers
}
