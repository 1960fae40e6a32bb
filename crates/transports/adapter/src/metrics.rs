//! Counters of an endpoint's connections, as Prometheus text.
//!
//! All counters are by arm, so that the control arm can be compared with the treatment. A
//! connection is counted at its end. Serve [`Metrics::render`] at the scrape endpoint.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::gates::{self, Arm, NothingToGain};
use crate::sequential::Moments;
use crate::start_report::{LimitedBy, RecordOutcome, Source, StartReport};
use headstart_host::{Exposition, locked};
use headstart_startup::history::Refusal;

/// Upper bounds of the classes of first answers, in bytes with headers; one more has no bound.
pub const SIZES: [u64; 5] = [10_000, 30_000, 100_000, 300_000, 1_000_000];

/// Names of the classes, as labels.
pub const SIZE_NAMES: [&str; SIZES.len() + 1] = ["10kB", "30kB", "100kB", "300kB", "1MB", "more"];

/// Upper bounds of the histogram of times: 1 ms times powers of two, up to 65 s.
const TIME_BOUNDS: usize = 17;

/// The counters of one endpoint.
#[derive(Debug, Default)]
pub struct Metrics {
    arms: [OfArm; Arm::ALL.len()],
    refusals: [AtomicU64; REFUSALS.len()],
    nothing_to_gain: [AtomicU64; NothingToGain::ALL.len()],
    hints_received: AtomicU64,
    hints_malformed: AtomicU64,
    hints_capped: AtomicU64,
    comparable: Mutex<[Comparable; Arm::ALL.len()]>,
}

/// By what the arms are compared.
#[derive(Debug, Default)]
struct Comparable {
    answers: [Answers; SIZES.len() + 1],
    losses: Moments,
}

#[derive(Debug, Default)]
struct Answers {
    /// Logarithms of times in microseconds.
    logarithms: Moments,
    seconds: f64,
    /// Times at or below each bound, not cumulative; the last has no bound.
    times: [u64; TIME_BOUNDS + 1],
}

#[derive(Debug, Default)]
struct OfArm {
    connections: AtomicU64,
    sources: [AtomicU64; Source::ALL.len()],
    rounds_saved: AtomicI64,
    /// Nanoseconds by what held back the next packet.
    limited: [AtomicU64; LimitedBy::ALL.len()],
    sent: AtomicU64,
    lost: AtomicU64,
    first_flight: AtomicU64,
    first_flight_lost: AtomicU64,
    copies: AtomicU64,
    copy_bytes: AtomicU64,
    spurious: AtomicU64,
    marks: AtomicU64,
    timeouts: AtomicU64,
    saved: AtomicU64,
    dropped: AtomicU64,
    migrated: AtomicU64,
}

const REFUSALS: [Refusal; 7] = [
    Refusal::NoRecord,
    Refusal::Expired,
    Refusal::InUse,
    Refusal::RttTooSmall,
    Refusal::RttTooLarge,
    Refusal::NothingToGain,
    Refusal::Congested,
];

/// Name, help and value of a counter by arm alone.
type Row = (&'static str, &'static str, fn(&OfArm) -> &AtomicU64);

#[rustfmt::skip]
const ROWS: [Row; 12] = [
    ("connections", "Connections that ended.", |it| &it.connections),
    ("sent_bytes", "Bytes of QUIC packets sent, copies among them.", |it| &it.sent),
    ("lost_bytes", "Bytes declared lost.", |it| &it.lost),
    ("first_flight_bytes", "Bytes sent as part of a first flight.", |it| &it.first_flight),
    ("first_flight_lost_bytes", "Bytes of first flights declared lost.", |it| &it.first_flight_lost),
    ("copies", "Copies of datagrams sent.", |it| &it.copies),
    ("copy_bytes", "Bytes of copies sent.", |it| &it.copy_bytes),
    ("spurious", "Losses that turned out to be none.", |it| &it.spurious),
    ("marks", "Congestion marks answered.", |it| &it.marks),
    ("persistent_congestion", "Times that persistent congestion was found.", |it| &it.timeouts),
    ("records_saved", "Records written.", |it| &it.saved),
    ("records_dropped", "Records dropped because they misled.", |it| &it.dropped),
];

fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

impl Metrics {
    /// Counts a connection at its end.
    pub fn count(&self, report: &StartReport) {
        let Some(at) = Arm::ALL.iter().position(|arm| *arm == report.arm) else { return };
        let (arm, tally) = (&self.arms[at], &report.tally);
        add(&arm.connections, 1);
        if let Some(at) = Source::ALL.iter().position(|source| *source == report.source) {
            add(&arm.sources[at], 1);
        }
        arm.rounds_saved.fetch_add(report.rounds_saved().into(), Ordering::Relaxed);
        for (sum, span) in arm.limited.iter().zip(report.limited) {
            add(sum, span.as_nanos());
        }
        add(&arm.sent, tally.sent_with_copies().get());
        add(&arm.lost, tally.lost.get());
        add(&arm.first_flight, tally.first_flight.get());
        add(&arm.first_flight_lost, tally.first_flight_lost.get());
        add(&arm.copies, tally.copies);
        add(&arm.copy_bytes, tally.copy_bytes.get());
        add(&arm.spurious, tally.spurious);
        add(&arm.marks, tally.marks);
        add(&arm.timeouts, tally.timeouts);
        add(&arm.saved, u64::from(report.record_outcome == RecordOutcome::Saved));
        add(&arm.dropped, u64::from(report.record_outcome == RecordOutcome::Dropped));
        add(&arm.migrated, u64::from(report.migrated));
        self.count_comparable(at, report);
        if let Some(at) = report.refusal.and_then(|it| REFUSALS.iter().position(|other| *other == it)) {
            add(&self.refusals[at], 1);
        }
        if let Some(at) =
            report.nothing_to_gain.and_then(|it| NothingToGain::ALL.iter().position(|other| *other == it))
        {
            add(&self.nothing_to_gain[at], 1);
        }
        if let Some(hint) = report.hint {
            add(&self.hints_received, 1);
            add(&self.hints_capped, u64::from(report.granted.is_some_and(|it| it < hint.bandwidth)));
        }
    }

    fn count_comparable(&self, arm: usize, report: &StartReport) {
        let mut comparable = locked(&self.comparable);
        let of = &mut comparable[arm];
        if let Some(share) = report.loss_share() {
            of.losses.add(share);
        }
        if let (Some((size, logarithm)), Some(took)) = (report.answer_class(), report.first_answer.took()) {
            let answers = &mut of.answers[size];
            answers.logarithms.add(logarithm);
            answers.seconds += took.as_millis_f64() / 1000.0;
            let place = (0..TIME_BOUNDS).find(|at| took.as_millis_f64() <= f64::from(1_u32 << at));
            answers.times[place.unwrap_or(TIME_BOUNDS)] += 1;
        }
    }

    /// Counts a malformed hint.
    pub fn count_malformed_hint(&self) {
        add(&self.hints_malformed, 1);
    }

    /// Connections that ended, of all arms.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.arms.iter().map(|arm| arm.connections.load(Ordering::Relaxed)).sum()
    }

    /// All counters in Prometheus' text format, labelled with `scheme`.
    #[must_use]
    pub fn render(&self, scheme: &str) -> String {
        let mut out = Exposition::default();
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let arms = || Arm::ALL.iter().zip(&self.arms);
        for (name, help, counter) in ROWS {
            out.family(&format!("{name}_total"), "counter", help);
            for (arm, of) in arms() {
                out.sample(&[("scheme", scheme), ("arm", arm.name())], value(counter(of)));
            }
        }
        let help = "Connections that ended, by what their first flight was made from.";
        out.family("starts_total", "counter", help);
        for (arm, of) in arms() {
            for (source, counter) in Source::ALL.iter().zip(&of.sources) {
                let labels = [("scheme", scheme), ("arm", arm.name()), ("source", source.name())];
                out.sample(&labels, value(counter));
            }
        }
        // A sum that may shrink is a gauge.
        let help = "Round trips saved against slow start from ten packets, summed up.";
        out.family("rounds_saved", "gauge", help);
        for (arm, of) in arms() {
            let saved = of.rounds_saved.load(Ordering::Relaxed);
            out.sample(&[("scheme", scheme), ("arm", arm.name())], saved);
        }
        let help = "Time of connections by what held back the next packet, up to the last acknowledgement.";
        out.family("limited_seconds_total", "counter", help);
        for (arm, of) in arms() {
            for (limit, sum) in LimitedBy::ALL.into_iter().zip(&of.limited).skip(1) {
                let labels = [("scheme", scheme), ("arm", arm.name()), ("limit", limit.as_str())];
                out.sample(&labels, value(sum) as f64 / 1e9);
            }
        }
        let help = "Records not used, by the gate that they did not pass.";
        out.family("records_refused_total", "counter", help);
        for (refusal, counter) in REFUSALS.into_iter().zip(&self.refusals) {
            out.sample(&[("reason", gates::name(refusal))], value(counter));
        }
        let help = "Connections that began as slow start does, by reason.";
        out.family("nothing_to_gain_total", "counter", help);
        for (reason, counter) in NothingToGain::ALL.into_iter().zip(&self.nothing_to_gain) {
            out.sample(&[("reason", reason.name())], value(counter));
        }
        out.family("hints_total", "counter", "Hints of clients, by outcome.")
            .sample(&[("outcome", "received")], value(&self.hints_received))
            .sample(&[("outcome", "capped")], value(&self.hints_capped))
            .sample(&[("outcome", "malformed")], value(&self.hints_malformed));
        self.render_comparable(&mut out, scheme);
        out.take()
    }

    /// Classes of sizes without an answer are left out.
    fn render_comparable(&self, out: &mut Exposition, scheme: &str) {
        let comparable = locked(&self.comparable);
        let arms = || Arm::ALL.iter().zip(comparable.iter());
        let classes = || {
            arms().flat_map(|(arm, of)| {
                let counted = SIZE_NAMES.iter().zip(&of.answers).filter(|(_, it)| it.logarithms.count > 0);
                counted.map(move |(size, answers)| {
                    ([("scheme", scheme), ("arm", arm.name()), ("size", *size)], answers)
                })
            })
        };
        out.family("answer_seconds", "histogram", "Time of first answers, by their size.");
        for (labels, answers) in classes() {
            let mut sum = 0;
            for (at, count) in answers.times.iter().enumerate() {
                sum += count;
                let is_bound = at < TIME_BOUNDS;
                let bound =
                    if is_bound { format!("{}", 0.001 * f64::from(1_u32 << at)) } else { "+Inf".into() };
                let [scheme, arm, size] = labels;
                out.part("_bucket", &[scheme, arm, size, ("le", &bound)], sum);
            }
            out.part("_sum", &labels, answers.seconds).part("_count", &labels, sum);
        }
        let help = "Sum of the natural logarithms of these times in microseconds.";
        out.family("answer_logarithms_total", "counter", help);
        for (labels, answers) in classes() {
            out.sample(&labels, answers.logarithms.sum);
        }
        out.family("answer_squared_logarithms_total", "counter", "Sum of their squares.");
        for (labels, answers) in classes() {
            out.sample(&labels, answers.logarithms.squares);
        }
        type Value = fn(&Moments) -> f64;
        let rows: [(&str, &str, Value); 3] = [
            ("senders_total", "Connections that sent data.", |it| it.count as f64),
            ("loss_shares_total", "Sum of the shares that they lost of their bytes.", |it| it.sum),
            ("squared_loss_shares_total", "Sum of their squares.", |it| it.squares),
        ];
        for (name, help, value) in rows {
            out.family(name, "counter", help);
            for (arm, of) in arms() {
                out.sample(&[("scheme", scheme), ("arm", arm.name())], value(&of.losses));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start_report::{FirstAnswer, Tally};
    use headstart_units::{Bytes, Span, Time};

    #[test]
    fn both_arms_are_counted_and_every_line_is_prometheus_text() {
        let metrics = Metrics::default();
        let tally = Tally { sent: Bytes::new(1200), first_round: Bytes::new(103_200), ..Tally::default() };
        let report = StartReport {
            arm: Arm::Treatment,
            source: Source::History,
            packet: Bytes::new(1200),
            tally,
            limited: [Span::from_millis(500); LimitedBy::ALL.len()],
            first_answer: FirstAnswer::of(Time::ZERO, Span::from_millis(3), Bytes::new(50_000)),
            ..StartReport::default()
        };
        metrics.count(&report);
        let nothing_to_gain = Some(NothingToGain::ShortPath);
        metrics.count(&StartReport {
            arm: Arm::Control,
            refusal: Some(Refusal::InUse),
            nothing_to_gain,
            ..report
        });
        let text = metrics.render("wise-start");
        for expected in [
            "headstart_connections_total{scheme=\"wise-start\",arm=\"treatment\"} 1",
            "headstart_connections_total{scheme=\"wise-start\",arm=\"control\"} 1",
            "headstart_starts_total{scheme=\"wise-start\",arm=\"treatment\",source=\"history\"} 1",
            "headstart_rounds_saved{scheme=\"wise-start\",arm=\"treatment\"} 3",
            "headstart_limited_seconds_total{scheme=\"wise-start\",arm=\"control\",limit=\"path\"} 0.5",
            "headstart_records_refused_total{reason=\"in-use\"} 1",
            "headstart_nothing_to_gain_total{reason=\"short-path\"} 1",
            "headstart_answer_seconds_bucket{scheme=\"wise-start\",arm=\"control\",size=\"100kB\",le=\"0.002\"} 0",
            "headstart_answer_seconds_bucket{scheme=\"wise-start\",arm=\"control\",size=\"100kB\",le=\"0.004\"} 1",
            "headstart_answer_seconds_count{scheme=\"wise-start\",arm=\"treatment\",size=\"100kB\"} 1",
            "headstart_senders_total{scheme=\"wise-start\",arm=\"treatment\"} 1",
            "headstart_loss_shares_total{scheme=\"wise-start\",arm=\"treatment\"} 0",
        ] {
            assert!(text.lines().any(|line| line == expected), "{expected} is missing in\n{text}");
        }
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            assert!(name.ends_with('}') && value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
        }
    }
}
