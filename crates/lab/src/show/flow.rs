//! One flow: its time-sequence plot, the queue it met, and its events as a table.

use headstart_sim::record::SenderEvent;
use headstart_startup::Transmission;
use headstart_units::Time;

use crate::figure::{Axis, Figure, Guide, PacketKind, Series, Style, Svg};
use crate::flow_trace::{FlowTrace, name};

/// A plot holds no more marks of a kind than this: more cannot be told apart.
const MOST_MARKS: usize = 3000;

fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(MOST_MARKS).max(1);
    points.into_iter().step_by(step).collect()
}

/// Milliseconds since the flow's first SYN.
fn since_opening(view: &FlowTrace, at: Time) -> f64 {
    let opened = view.report.map_or(Time::ZERO, |report| report.opened_at);
    at.since(opened).as_millis_f64()
}

/// Stream offsets over time: what was sent, acknowledged, lost, sent again.
#[must_use]
pub fn time_sequence(view: &FlowTrace, title: &str) -> Svg {
    let mut sent = vec![];
    let mut again = vec![];
    let mut copied = vec![];
    let mut acked = vec![];
    let mut lost = vec![];
    for (at, trace) in &view.events {
        let x = since_opening(view, *at);
        match trace.event {
            SenderEvent::Sent { offset, transmission, .. } => {
                let point = (x, offset as f64 / 1000.0);
                match transmission {
                    Transmission::Original => sent.push(point),
                    Transmission::Retransmission => again.push(point),
                    Transmission::Copy => copied.push(point),
                }
            }
            SenderEvent::Acked { acknowledged, .. } => acked.push((x, acknowledged as f64 / 1000.0)),
            SenderEvent::Lost { offset, .. } => lost.push((x, offset as f64 / 1000.0)),
            SenderEvent::Established | SenderEvent::Timeout => {}
        }
    }
    let mut figure = Figure::new(
        title,
        Axis::linear("time since the SYN", "ms"),
        Axis::linear("place in the stream", "kB"),
    );
    for (kind, points) in [
        (PacketKind::Acked, acked),
        (PacketKind::Sent, sent),
        (PacketKind::Copied, copied),
        (PacketKind::Retransmitted, again),
        (PacketKind::Lost, lost),
    ] {
        if !points.is_empty() {
            figure.series.push(Series::packets(kind, thinned(points)));
        }
    }
    if let Some(report) = view.report
        && let Some(completed) = report.completed_at
    {
        figure.guides.push(Guide::X(since_opening(view, completed), "complete".into()));
    }
    figure.plot_height = 260.0;
    figure.svg()
}

/// Bytes that waited before the bottleneck while the flow was alive, and its window and flight.
///
/// The queue is known when a packet arrives or comes out; between two such moments it is drawn as a straight line.
#[must_use]
pub fn queue(view: &FlowTrace, title: &str) -> Svg {
    let waiting: Vec<(f64, f64)> = view
        .queue
        .iter()
        .map(|(at, _, bytes)| (since_opening(view, *at), bytes.get() as f64 / 1000.0))
        .collect();
    let of = |figure: &dyn Fn(&headstart_sim::record::SenderTrace) -> u64| -> Vec<(f64, f64)> {
        let points =
            view.events.iter().map(|(at, trace)| (since_opening(view, *at), figure(trace) as f64 / 1000.0));
        thinned(points.collect())
    };
    let mut figure =
        Figure::new(title, Axis::linear("time since the SYN", "ms"), Axis::linear("bytes", "kB"));
    figure.series.push(Series::new("queue at the bottleneck", Style::line(), thinned(waiting)));
    figure.series.push(Series::new("in flight", Style::steps(), of(&|trace| trace.in_flight.get())));
    figure.series.push(Series::new(
        "window",
        Style::steps(),
        of(&|trace| trace.window.get().min(10_000_000)),
    ));
    figure.plot_height = 220.0;
    figure.svg()
}

/// The names of [`rows`]' fields.
pub const COLUMNS: [&str; 11] = [
    "time_ns",
    "event",
    "offset_bytes",
    "payload_bytes",
    "acknowledged_bytes",
    "in_flight_bytes",
    "window_bytes",
    "pace_bytes_per_second",
    "smoothed_rtt_ns",
    "phase",
    "in_recovery",
];

/// Every event of the flow, for machines.
pub fn rows(view: &FlowTrace) -> impl Iterator<Item = Vec<String>> {
    view.events.iter().map(|(at, trace)| {
        let (offset, payload, acknowledged) = match trace.event {
            SenderEvent::Sent { offset, payload, .. } | SenderEvent::Lost { offset, payload } => {
                (offset.to_string(), payload.get().to_string(), String::new())
            }
            SenderEvent::Acked { acknowledged, newly } => {
                (String::new(), newly.get().to_string(), acknowledged.to_string())
            }
            SenderEvent::Established | SenderEvent::Timeout => Default::default(),
        };
        vec![
            at.as_nanos().to_string(),
            name(&trace.event).to_owned(),
            offset,
            payload,
            acknowledged,
            trace.in_flight.get().to_string(),
            trace.window.get().to_string(),
            trace.pace.map(|pace| pace.as_bytes_per_sec().to_string()).unwrap_or_default(),
            trace.smoothed_rtt.as_nanos().to_string(),
            trace.phase.to_owned(),
            trace.in_recovery.to_string(),
        ]
    })
}

/// When each phase began, and with which window and pace.
#[must_use]
pub fn phases(view: &FlowTrace) -> Vec<(f64, &'static str, u64, Option<u64>)> {
    let mut phases: Vec<(f64, &'static str, u64, Option<u64>)> = vec![];
    for (at, trace) in &view.events {
        if phases.last().is_none_or(|last| last.1 != trace.phase) {
            let pace = trace.pace.map(|pace| pace.as_bits_per_sec());
            phases.push((since_opening(view, *at), trace.phase, trace.window.get(), pace));
        }
    }
    phases
}
