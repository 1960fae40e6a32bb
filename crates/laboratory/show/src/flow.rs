//! One flow: its time-sequence plot, the queue before it, and its events as a table.

use headstart_sim::record::SenderEvent;
use headstart_startup::Transmission;
use headstart_units::Time;

use headstart_report::figure::{Axis, Figure, Guide, PacketKind, Range, Role, Series, Style, Svg};
use headstart_report::page::Section;
use headstart_study::flow_trace::{FlowTrace, name};

/// Most marks of a kind in a plot: more cannot be distinguished.
const MAX_MARKS: usize = 3000;

const WINDOW: &str = "window";

fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(MAX_MARKS).max(1);
    points.into_iter().step_by(step).collect()
}

/// Milliseconds since the flow's first SYN.
fn since_opening(view: &FlowTrace, at: Time) -> f64 {
    let opened = view.report.map_or(Time::ZERO, |report| report.opened_at);
    at.since(opened).as_millis_f64()
}

/// One flow's drawings.
#[derive(Clone, Debug)]
pub struct FlowFigures {
    /// The scheme.
    pub scheme: String,
    /// Stream offsets over time.
    pub sequence: Figure,
    /// Queue, flight and window over time; only where the queue was recorded.
    pub queue: Option<Figure>,
    /// Milliseconds from the first SYN to the last byte at the receiver.
    pub completed_ms: Option<f64>,
    /// The flow goes on behind the end of the time axis.
    is_cut: bool,
}

impl FlowFigures {
    /// Drawings of each flow, all on the same axes.
    ///
    /// A flow that takes far longer than most is cut off, for the scale of the others.
    pub fn of<'a>(flows: impl Iterator<Item = (&'a str, &'a FlowTrace)>) -> Vec<Self> {
        /// Medians.
        const LONGEST: f64 = 2.0;
        let mut all: Vec<Self> = flows.map(|(scheme, view)| Self::alone(scheme, view)).collect();
        let mut ends: Vec<f64> = all.iter().filter_map(Self::last).collect();
        ends.sort_by(f64::total_cmp);
        let (Some(longest), Some(median)) = (ends.last(), ends.get(ends.len() / 2)) else { return all };
        // A margin, so that the last point does not lie on the frame.
        let end = longest.min(median * LONGEST) * 1.03;
        for one in &mut all {
            one.is_cut = one.last().is_some_and(|last| last > end);
        }
        share_axes(all.iter_mut().map(|one| &mut one.sequence).collect(), end);
        share_axes(all.iter_mut().filter_map(|one| one.queue.as_mut()).collect(), end);
        all
    }

    fn alone(scheme: &str, view: &FlowTrace) -> Self {
        let completed_ms = view.report.and_then(|report| Some(since_opening(view, report.completed_at?)));
        let note =
            completed_ms.map_or_else(|| "not complete".to_owned(), |ms| format!("complete after {ms:.0} ms"));
        Self {
            scheme: scheme.to_owned(),
            sequence: time_sequence(view, scheme, &note),
            queue: (!view.queue.is_empty()).then(|| queue(view, scheme, &note)),
            completed_ms,
            is_cut: false,
        }
    }

    /// True if the sender's events were recorded.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.sequence.series.is_empty()
    }

    /// When its last event was, or it was complete.
    fn last(&self) -> Option<f64> {
        let points = self.sequence.series.iter().flat_map(|series| &series.points);
        points.map(|point| point.x).chain(self.completed_ms).max_by(f64::total_cmp)
    }

    fn note(&self) -> String {
        match &self.sequence.role {
            Role::Of { note, .. } => note.clone(),
            _ => String::new(),
        }
    }

    /// The drawings as files, each with its name.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, Svg)> {
        let titled = |figure: &Figure| Figure { title: self.scheme.clone(), ..figure.clone() }.svg();
        let queue = self.queue.as_ref().map(|queue| ("queue", titled(queue)));
        [("time-sequence", titled(&self.sequence))].into_iter().chain(queue)
    }

    /// The drawings with their captions.
    #[must_use]
    pub fn sections(&self) -> Vec<Section> {
        if !self.has_events() {
            return vec![];
        }
        let cut = if self.is_cut { " It goes on behind the end of the axis." } else { "" };
        let mut sections = vec![Section::Figure {
            svg: self.sequence.svg(),
            caption: format!("{}: place in the stream over time; {}.{cut}", self.scheme, self.note()),
        }];
        if let Some(queue) = &self.queue {
            sections.push(Section::Figure {
                svg: queue.svg(),
                caption: "Queue before the bottleneck while this flow was alive, its flight and its window."
                    .into(),
            });
        }
        sections
    }
}

/// Two flows over one another.
#[must_use]
pub fn overlay(first: &FlowFigures, second: &FlowFigures) -> Section {
    let over = |one: &Figure, other: &Figure| {
        let mut figure = Figure::overlay(one, other);
        figure.says = format!("Over one another: {} {}", one.description(), other.description());
        figure.plot_height = one.plot_height * 1.3;
        figure
    };
    let mut sequence = over(&first.sequence, &second.sequence);
    // The legend has all kinds: the reader may choose a flow with others.
    for kind in PacketKind::ALL {
        if sequence.series.iter().all(|series| series.name != kind.name()) {
            sequence.series.push(Series::packets(kind, [] as [(f64, f64); 0]));
        }
    }
    let mut views = vec![(sequence.svg(), "Place in the stream over time.".to_owned())];
    if let (Some(one), Some(other)) = (&first.queue, &second.queue) {
        let caption = "Queue before the bottleneck, flight and window of the two, each in its run.";
        views.push((over(one, other).svg(), caption.to_owned()));
    }
    let subjects = [first, second].map(|one| (one.scheme.clone(), one.note()));
    Section::Overlay { subjects, views }
}

/// Gives drawings of one view the same axes: from zero to `end` and to the largest y value.
fn share_axes(figures: Vec<&mut Figure>, end: f64) {
    let highest_of = |is_meant: &dyn Fn(&Series) -> bool| {
        let series = figures.iter().flat_map(|figure| &figure.series).filter(|series| is_meant(series));
        let points = series.flat_map(|series| &series.points).filter(|point| point.x <= end);
        points.map(|point| point.y).fold(0.0, f64::max)
    };
    // An unlimited window would compress all other curves.
    let highest = highest_of(&|_| true).min(2.0 * highest_of(&|series| series.name != WINDOW));
    for figure in figures {
        figure.x.range = Range::Fixed(0.0, end);
        figure.y.range = Range::Fixed(0.0, if highest > 0.0 { highest * 1.05 } else { 1.0 });
    }
}

fn role(scheme: &str, view: &str, note: &str) -> Role {
    Role::Of { subject: scheme.to_owned(), view: view.to_owned(), note: note.to_owned() }
}

/// Stream offsets over time: bytes sent, acknowledged, lost, retransmitted.
fn time_sequence(view: &FlowTrace, scheme: &str, note: &str) -> Figure {
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
    let mut figure =
        Figure::new("", Axis::linear("time since the SYN", "ms"), Axis::linear("place in the stream", "kB"));
    let count = |points: &[(f64, f64)], what: &str| match points.len() {
        0 => String::new(),
        count => format!(", {count} {what}"),
    };
    figure.says = format!(
        "{scheme}, place in the stream over time: {} packets sent{}{}{}, {note}.",
        sent.len(),
        count(&lost, "lost"),
        count(&again, "retransmitted"),
        count(&copied, "proactive copies"),
    );
    figure.role = role(scheme, "sequence", note);
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
    figure
}

/// Bytes queued before the bottleneck during the flow, and its window and flight.
///
/// The queue is recorded whenever a packet arrives or leaves: in between it does not change.
fn queue(view: &FlowTrace, scheme: &str, note: &str) -> Figure {
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
    let mut figure = Figure::new("", Axis::linear("time since the SYN", "ms"), Axis::linear("bytes", "kB"));
    let flight = of(&|trace| trace.in_flight.get());
    let window = of(&|trace| trace.window.get().min(10_000_000));
    let most = |points: &[(f64, f64)]| points.iter().map(|point| point.1).fold(0.0, f64::max);
    figure.says = format!(
        "{scheme}, bytes over time: at most {:.0} kB waited at the bottleneck and {:.0} kB were in flight; the window was {:.0} kB at \
         most.",
        most(&waiting),
        most(&flight),
        most(&window)
    );
    figure.role = role(scheme, "queue", note);
    // Each has a dash of its own: two overlaid flows are distinguished by colour.
    for (number, (name, points)) in
        [("in flight", flight), (WINDOW, window), ("queue at the bottleneck", thinned(waiting))]
            .into_iter()
            .enumerate()
    {
        figure.series.push(Series::new(name, Style::steps().with_slot(number).with_dash(number), points));
    }
    figure.plot_height = 220.0;
    figure
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

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_study::setup::Setup;

    fn traced(size: &str, schemes: &[&str]) -> Vec<(String, FlowTrace)> {
        let line = format!("--rate 15mbit --rtt 60ms --size {size}");
        let setup = headstart_study::settings::Settings::parse(headstart_carriers::ALL, line.split(' '))
            .expect("fine");
        let setup: &Setup = &setup;
        let flow = |name: &&str| {
            let entry = headstart_study::schemes::find(name).expect("it is in the catalogue");
            ((*name).to_owned(), headstart_study::runner::run_alone(setup, entry).expect("it runs"))
        };
        schemes.iter().map(flow).collect()
    }

    fn figures(flows: &[(String, FlowTrace)]) -> Vec<FlowFigures> {
        FlowFigures::of(flows.iter().map(|(name, view)| (name.as_str(), view)))
    }

    #[test]
    fn flows_share_axes_and_show_their_completion() {
        let flows = traced("100kB", &["iw10", "halfback", "iw2"]);
        let figures = figures(&flows);
        let (x, y) = (&figures[0].sequence.x.range, &figures[0].sequence.y.range);
        assert!(figures.iter().all(|one| one.sequence.x.range == *x && one.sequence.y.range == *y));
        assert!(figures.iter().all(|one| one.queue.as_ref().expect("seen").x.range == *x));
        let Range::Fixed(_, end) = *x else { panic!("{x:?}") };
        assert!(end > figures[2].completed_ms.expect("complete"), "the slowest is within");
        assert_eq!(figures[0].note(), "complete after 243 ms");
        let description = figures[1].sequence.description();
        assert!(
            description.starts_with("halfback, ") && description.contains("35 proactive copies"),
            "{description}"
        );
    }

    #[test]
    fn a_much_longer_flow_is_cut_with_a_note() {
        let mut flows = traced("100kB", &["iw10", "halfback", "jump-start"]);
        flows.extend(traced("10MB", &["iw3"]));
        let figures = figures(&flows);
        let captions: Vec<bool> = figures
            .iter()
            .map(|one| match &one.sections()[0] {
                Section::Figure { caption, .. } => caption.contains("behind the end of the axis"),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(captions, [false, false, false, true]);
    }

    #[test]
    fn an_overlay_has_both_flows_and_a_complete_legend() {
        let flows = traced("100kB", &["iw10", "jump-start"]);
        let figures = figures(&flows);
        let Section::Overlay { subjects, views } = overlay(&figures[0], &figures[1]) else {
            panic!("no overlay")
        };
        assert_eq!(subjects[1], ("jump-start".to_owned(), "complete after 149 ms".to_owned()));
        let svg = views[0].0.as_str();
        assert!(svg.contains("data-over=\"sequence\"") && svg.contains("class=\"k0\" data-name=\"sent\""));
        assert!(svg.contains("class=\"k1\" data-name=\"sent\""), "{svg}");
        for kind in PacketKind::ALL {
            assert_eq!(svg.matches(&format!(">{}</text>", kind.name())).count(), 1, "{kind:?}");
        }
    }
}
