//! A connection over a path that has changed since it was recorded: WS §4.4.1 and Figure 9, and every step of Algorithm 1.
//!
//! A first connection of the same scheme runs over the path as it was and leaves its record. Then the connection that counts runs
//! over the path as it is, from that record. Or the record is drawn: as far from the path as WS Figure 2 found two connections of one peer.
//!
//! The buffer is that of the path as it is: only then does "S-Cubic drop a lot of packets when the new bandwidth is reduced to less than half"
//! (WS §4.4.1); before a buffer of the old BDP it would not.

use anyhow::{Context, Result, ensure};
use headstart_sim::record::SenderEvent;
use headstart_sim::workload::long::{Listed, Start as Begin};
use headstart_sim::workload::replay::{From, Message, Replay};
use headstart_sim::{Scenario, Seed};
use headstart_startup::Transmission;
use headstart_startup::history::{Ended, Record};
use headstart_units::{Bytes, Rate, Span, Time};

use super::options::Records;
use super::priors::{Drift, drift};
use super::watch::{Decision, Start, Watch};
use super::{history_of, record_left};
use crate::real::study::Judged;
use crate::real::{self, Played, attempts};
use crate::setup::{Cast, Setup, TESTED};
use crate::transport;

/// Names of the numbers, with what they mean.
pub const MEASURES: &[(&str, &str)] = &[
    ("completion", "from the first SYN to the last byte at the receiver, ms"),
    ("dropped", "bytes of data packets that the bottleneck dropped, kB"),
    ("is-lossy", "100 if it dropped any, else 0"),
    ("timeouts", "retransmission timeouts"),
    ("drift", "the path's rate over the record's"),
    ("drift.rtt", "the path's RTT over the record's"),
    ("drift.within", "100 if the rate is within 20 % of the record's, else 0"),
    ("drift.rtt-within", "100 if the RTT is within 20 % of the record's, else 0"),
    ("drift.beyond", "100 if the rate changed more than five times, else 0"),
    ("window", "window at establishment over the recorded BDP (line 6)"),
    ("pace", "pace at establishment over the recorded rate (line 7)"),
    ("rate.below-kappa", "sending rate of the first 20 segments over the recorded rate"),
    ("rate.from-kappa", "that of the next 10 (line 12)"),
    ("rate.beyond", "that of the rest of the window (line 15)"),
    ("first-ack.window", "window after the first ack over what was in flight when it arrived (line 20)"),
    ("first-ack.window-kilobytes", "window after the first ack, kB"),
    ("first-ack.is-paced", "100 if packets are still paced after it, else 0 (line 21, §3.4)"),
    ("gamma", "which ack decided (line 23)"),
    ("estimate", "Eq. (1), worked out again from the acks, over the path's payload rate"),
    ("estimate.rtt", "smallest RTT of these acks over the path's"),
    (
        "agrees",
        "100 if Probe or Drain is what Eq. (1) and line 26 say, else 0; of starts that were not limited",
    ),
    ("is-probe", "100 if the start went on to Probe, else 0"),
    ("is-drain", "100 if it went on to Drain, else 0"),
    ("is-lost", "100 if a loss came before the decision, else 0"),
];

/// Families of numbers for time-sequence plots: kB, by milliseconds since the SYN.
pub const PROFILES: &[&str] = &["sent", "acked", "lost", "again", "window", "in-flight"];

/// This scheme's record says what the path is, whatever those of the others say (WS §4.4.1).
const IDEAL: &str = "s-cubic-held";
/// Time-sequence plots end this many round trips after the SYN.
const SHOWN: u64 = 6;

/// Runs it. `is_shown`: with the families for plots.
///
/// # Errors
/// If the path cannot be built.
pub fn run(setup: &Setup, cast: Cast, seed: u64, is_shown: bool) -> Result<Vec<(String, f64)>> {
    let options = &setup.workload.reuse;
    let seed = Seed(seed).child("changed path");
    let now = at_rate(setup, setup.bottleneck() * options.changed)?;
    let records = if cast.tested.name == IDEAL { Records::Exact } else { options.records };
    let (drift, record) = match records {
        Records::Previous => {
            let bytes = Bytes::new(setup.mean_bytes() as u64);
            let (scenario, _) = setup.alone(cast.tested, bytes, seed.child("before"));
            let alone = Cast { beside: None, ..cast };
            let trial = transport::Trial::new(setup, alone, seed.child("before"));
            let mut finished = trial.run(scenario, headstart_sim::Deaf)?;
            let record = record_left(&mut finished, TESTED).context("the first connection left no record")?;
            (Drift { rate: options.changed.of(1_000_000) as f64 / 1e6, rtt: 1.0 }, record)
        }
        Records::Drawn => {
            let drift = drift(seed);
            (drift, record_of(&now, drift))
        }
        Records::Exact => {
            let same = Drift { rate: 1.0, rtt: 1.0 };
            (same, record_of(&now, same))
        }
    };
    let (scenario, watch) = {
        let (path, _) = now.build_path(seed);
        let scenario = Scenario {
            path,
            groups: now.groups(cast),
            workload: Box::new(Replay::new(
                messages(&now),
                From::Opening,
                TESTED,
                setup.opener(),
                Time::ZERO,
            )),
            until: Time::ZERO + now.run.duration + now.run.drain,
        };
        (scenario, Watch::default())
    };
    let watch = transport::Trial::new(&now, cast, seed)
        .with_history(TESTED, history_of(Some(record)))
        .run(scenario, watch)?
        .recorder;
    let mut numbers = numbers(&now, &watch, drift, &record)?;
    if is_shown {
        numbers.extend(families(&now, &watch));
    }
    Ok(numbers)
}

/// The same in the emulator: the first connection over the path as it was and the second over the path as it is, both of one client
/// and one server. Only what is seen from outside is told. Says why the run is worth nothing if it is.
///
/// # Errors
/// If the transport cannot carry it, or what is asked for is the simulator's alone.
pub fn emulate(setup: &Setup, cast: Cast, seed: u64) -> Result<Judged> {
    let options = &setup.workload.reuse;
    ensure!(
        options.records == Records::Previous && cast.tested.name != IDEAL,
        "--records: found {:?} ({}), expected previous in the emulator: records are what connections leave",
        options.records,
        cast.tested.name
    );
    ensure!(
        options.first_part.is_none(),
        "--first-part: found it in the emulator, where a server sends only what was asked for"
    );
    let seed = Seed(seed).child("changed path");
    let now = at_rate(setup, setup.bottleneck() * options.changed)?;
    let bytes = Bytes::new(setup.mean_bytes() as u64);
    let until = Time::ZERO + setup.run.duration + setup.run.drain;
    let single = || {
        // As in the simulator, where the application does not say how much there will be.
        let start = Begin { at: Time::ZERO, group: TESTED, class: 0, bytes, size_known: false };
        Box::new(Listed::new(vec![start], setup.opener()))
    };
    let played = attempts(|| {
        let stage = real::Stage::new(setup, cast)?;
        let before = stage.play(setup, single(), until, seed.child("before"))?;
        let played = stage.play(&now, single(), until, seed)?;
        Ok(Played { invalid: before.invalid.or(played.invalid), ..played })
    })?;
    let report = played.flows.first().context("the flow was not reported")?;
    let completion = report.completion_time().unwrap_or_else(|| report.ended_at.since(report.opened_at));
    let dropped = played.path.down.elements.first().map_or(0, |(_, account)| account.dropped_bytes);
    let numbers = [
        ("completion", completion.as_millis_f64()),
        ("dropped", dropped as f64 / 1000.0),
        ("is-lossy", percent(dropped > 0)),
        ("drift", options.changed.of(1_000_000) as f64 / 1e6),
        ("drift.rtt", 1.0),
    ];
    Ok((numbers.map(|(name, value)| (name.to_owned(), value)).to_vec(), played.invalid))
}

/// The same setup over a path of another rate.
fn at_rate(setup: &Setup, rate: Rate) -> Result<Setup> {
    let mut path = setup.path.clone();
    path.rate = rate;
    Setup::new(path, setup.transport.clone(), setup.workload.clone(), setup.run.clone())
}

/// The payload rate of a path: what a delivery rate can at most be.
fn payload_rate(setup: &Setup) -> f64 {
    let tcp = setup.tcp();
    setup.bottleneck().as_bytes_per_sec() as f64 * tcp.mss.get() as f64 / (tcp.mss + tcp.header).get() as f64
}

/// What a connection would have recorded of the path before it drifted.
fn record_of(setup: &Setup, drift: Drift) -> Record {
    let rt_prop = setup.rtt().as_secs_f64() / drift.rtt;
    let btl_bw = Rate::from_bytes_per_sec((payload_rate(setup) / drift.rate) as u64);
    let rt_prop = Span::from_micros((rt_prop * 1e6) as u64);
    let window = btl_bw * rt_prop;
    Record { saved_at: Time::ZERO, btl_bw, rt_prop, window, ssthresh: Bytes::MAX, ended: Ended::Clean }
}

fn messages(setup: &Setup) -> Vec<Message> {
    let (bytes, options) = (Bytes::new(setup.mean_bytes() as u64), &setup.workload.reuse);
    match options.first_part {
        Some(first) if first < bytes => vec![
            Message { at: Span::ZERO, bytes: first },
            Message { at: options.pause, bytes: bytes - first },
        ],
        _ => vec![Message { at: Span::ZERO, bytes }],
    }
}

fn percent(is: bool) -> f64 {
    if is { 100.0 } else { 0.0 }
}

fn numbers(setup: &Setup, watch: &Watch, drift: Drift, record: &Record) -> Result<Vec<(String, f64)>> {
    let report = watch.report.context("the flow was not reported")?;
    let completion = report.completion_time().unwrap_or_else(|| report.ended_at.since(report.opened_at));
    let is_near = |ratio: f64| (ratio - 1.0).abs() < 0.2;
    let mut numbers = vec![
        ("completion", completion.as_millis_f64()),
        ("dropped", watch.dropped_bytes as f64 / 1000.0),
        ("is-lossy", percent(watch.dropped > 0)),
        ("timeouts", report.counts.timeouts as f64),
        ("drift", drift.rate),
        ("drift.rtt", drift.rtt),
        ("drift.within", percent(is_near(drift.rate))),
        ("drift.rtt-within", percent(is_near(drift.rtt))),
        ("drift.beyond", percent(drift.rate > 5.0 || drift.rate < 0.2)),
    ];
    let btl_bw = record.btl_bw.as_bytes_per_sec() as f64;
    if let Some(start) = Start::of(&watch.events) {
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

fn families(setup: &Setup, watch: &Watch) -> Vec<(String, f64)> {
    let opened_at = watch.report.map_or(Time::ZERO, |report| report.opened_at);
    let until = opened_at + setup.rtt() * SHOWN;
    let mut numbers = vec![];
    for (number, (at, trace)) in watch.events.iter().take_while(|(at, _)| *at <= until).enumerate() {
        // The event's number tells points of one instant apart: a millionth of a millisecond each.
        let millis = at.since(opened_at).as_millis_f64();
        let mut add = |family: &str, bytes: u64| {
            let at = (millis * 1e3).round() / 1e3;
            numbers.push((format!("{family}/{at:.3}{:06}", number % 1_000_000), bytes as f64 / 1000.0));
        };
        match trace.event {
            SenderEvent::Sent { offset, transmission: Transmission::Original, .. } => add("sent", offset),
            SenderEvent::Sent { offset, .. } => add("again", offset),
            SenderEvent::Acked { acknowledged, .. } => add("acked", acknowledged),
            SenderEvent::Lost { offset, .. } => add("lost", offset),
            SenderEvent::Established | SenderEvent::Timeout => {}
        }
        add("window", trace.window.get());
        add("in-flight", trace.in_flight.get());
    }
    numbers
}
