//! A connection over a path that has changed since it was recorded: WS §4.4.1 and Figure 9.
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
use headstart_sim::workload::Workload;
use headstart_sim::workload::long::{Listed, Start as Begin};
use headstart_sim::workload::replay::{From, Message, Replay};
use headstart_startup::Startup as _;
use headstart_units::{Bytes, Ratio, Span, Time};

use super::drift::{Drift, drift};
use super::flow_events::FlowEvents;
use super::{RecordParams, Records, history_of, last_record, record_of};
use crate::carrier::{Detail, Run, RunResult, attempts};
use crate::setup::{Setup, TESTED};
use crate::study::{Case, Declared, Measure, Measured, Study, percent};

const MEASURES: &[Measure] = &[
    Measure::new("completion", "ms", "from the first SYN to the last byte at the receiver"),
    Measure::new("dropped", "kB", "bytes of data packets that the bottleneck dropped"),
    Measure::new("drift", "", "the path's rate over the record's"),
    Measure::new("drift.rtt", "", "the path's RTT over the record's"),
    Measure::new("drift.within", "%", "100 if the rate is within 20 % of the record's, else 0"),
    Measure::new("drift.rtt-within", "%", "100 if the RTT is within 20 % of the record's, else 0"),
    Measure::new("drift.rtt-close", "%", "100 if the RTT is within 6 ms of the record's, else 0"),
    Measure::new("drift.beyond", "%", "100 if the rate changed more than five times, else 0"),
];

/// Change of the path.
#[derive(Args, Clone, Debug)]
pub struct ChangedPathParams {
    /// Rate of the path by the time its record is used, as a share of --rate
    #[arg(long, default_value = "100 %", value_name = "SHARE")]
    new_rate: Ratio,
    #[command(flatten)]
    records: RecordParams,
}

impl Study for ChangedPathParams {
    const NAME: &'static str = "changed-path";
    const ABOUT: &'static str = "a connection over a path that has changed since it was recorded";
    const NEEDS: Detail = Detail::Flows;
    const DECLARED: &'static [Declared] = &[Declared { prefixes: &[""], measures: MEASURES }];

    fn run(&self, case: &Case<'_>) -> Result<Measured> {
        run(self, case)
    }
}

/// Runs the study.
///
/// # Errors
/// If the path cannot be built; if the carrier cannot set and read histories, and records are to be
/// others than connections leave.
fn run(options: &ChangedPathParams, case: &Case<'_>) -> Result<Measured> {
    let Case { setup, mix, seed } = *case;
    let seed = Seed(seed).child("changed path");
    let mut path = setup.path.clone();
    path.rate = setup.bottleneck() * options.new_rate;
    let now = setup.with_path(path)?;
    // Ideal's record is the path itself, for any `records` of the others. It has the link's
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
            let message = Message { at: Span::ZERO, bytes: Bytes::new(now.mean_bytes() as u64) };
            Box::new(Replay::new(vec![message], From::Opening, TESTED, setup.opener(), Time::ZERO))
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
        Ok(RunResult { invalid, ..result })
    })?;
    let flow = &result.observer;
    let dropped = result.bottleneck.dropped_bytes.unwrap_or(flow.dropped_bytes);
    Ok(Measured { numbers: numbers(&now, flow, dropped, drift)?, invalid: result.invalid })
}

/// One flow requested by the client, whose size the server's scheme does not receive: as in the
/// simulator, where the application does not announce it.
fn single(setup: &Setup) -> Box<dyn Workload> {
    let bytes = Bytes::new(setup.mean_bytes() as u64);
    let start = Begin { at: Time::ZERO, group: TESTED, class: 0, bytes, size_known: false };
    Box::new(Listed::new(vec![start], setup.opener()))
}

fn numbers(setup: &Setup, flow: &FlowEvents, dropped: u64, drift: Drift) -> Result<Vec<(String, f64)>> {
    let report = flow.report.context("the flow was not reported")?;
    let completion = report.completion_time().unwrap_or_else(|| report.ended_at.since(report.opened_at));
    let rtt = setup.rtt().as_millis_f64();
    let is_near = |ratio: f64| (ratio - 1.0).abs() < 0.2;
    let numbers = [
        ("completion", completion.as_millis_f64()),
        ("dropped", dropped as f64 / 1000.0),
        ("drift", drift.rate),
        ("drift.rtt", drift.rtt),
        ("drift.within", percent(is_near(drift.rate))),
        ("drift.rtt-within", percent(is_near(drift.rtt))),
        ("drift.rtt-close", percent((rtt - rtt / drift.rtt).abs() < 6.0)),
        ("drift.beyond", percent(drift.rate > 5.0 || drift.rate < 0.2)),
    ];
    Ok(numbers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}
