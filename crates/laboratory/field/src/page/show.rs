//! The table and the report of `headstart page`.

use headstart_study::workload::web::har::Kind;

use crate::page::Replay;
use crate::page::load::Visit;
use headstart_report::figure::{Axis, Figure, Range, Series, StackedBars, Style};
use headstart_report::page::{Provenance, Report, Section, Shot};
use headstart_report::statistics::{Interval, mean, positive_mean_interval, positive_ratio_interval};
use headstart_report::table::{Cell, Column, Table};
use headstart_show::counted;

/// Visits of one kind with one scheme.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Sample {
    /// The scheme.
    pub scheme: String,
    /// `cold` or `returning`.
    pub kind: &'static str,
    /// The visits, one for each repetition.
    pub visits: Vec<Visit>,
    /// Time to the last object in the simulator, in milliseconds; `None` over the kernel's TCP.
    pub simulated_ms: Option<f64>,
    /// One more visit, which was filmed: its times are not among the others.
    pub filmed: Option<Visit>,
}

/// A time of a visit.
type Time = fn(&Visit) -> f64;

/// Times of a visit, in the order of the table: name and place in a narrow table, meaning, value.
const TIMES: [(&str, u8, &str, Time); 5] = [
    ("first paint", 4, "first contentful paint, as the browser reports it", |visit| visit.first_paint_ms),
    ("largest paint", 5, "largest contentful paint, as the browser reports it", |visit| {
        visit.largest_paint_ms
    }),
    (
        "above the fold",
        8,
        "arrival of the last object above the fold: the document and the first twenty images that were requested before the HAR's \
         onContentLoad",
        |visit| visit.above_fold_ms,
    ),
    ("load event", 3, "the browser's load event", |visit| visit.load_event_ms),
    ("complete", 9, "arrival of the last object", |visit| visit.complete_ms),
];

impl Sample {
    fn times(&self, of: Time) -> Vec<f64> {
        self.visits.iter().map(of).collect()
    }

    fn mean(&self, of: Time) -> f64 {
        mean(&self.times(of)).unwrap_or(f64::NAN)
    }

    fn complete_ms(&self) -> f64 {
        self.mean(|visit| visit.complete_ms)
    }

    /// Distance of the simulator's time from the browser's, in per cent.
    fn distance(&self) -> Option<f64> {
        Some((self.simulated_ms? / self.complete_ms() - 1.0) * 100.0)
    }

    /// The visit whose last object arrived at the median time.
    fn typical(&self) -> Option<&Visit> {
        let mut visits: Vec<&Visit> = self.visits.iter().collect();
        visits.sort_by(|one, other| one.complete_ms.total_cmp(&other.complete_ms));
        visits.get(visits.len() / 2).copied()
    }

    fn name(&self) -> String {
        format!("{}, {}", self.scheme, self.kind)
    }
}

/// Visits during which the machine did not keep real time.
fn late(samples: &[Sample]) -> usize {
    samples.iter().flat_map(|sample| &sample.visits).filter(|visit| !visit.is_valid).count()
}

/// The table of all samples.
#[must_use]
pub fn table(samples: &[Sample]) -> Table {
    let mut columns = vec![Column::text("scheme"), Column::text("visit")];
    columns.extend(TIMES.map(|(name, priority, ..)| Column::number(name, "ms").priority(priority)));
    columns.extend([
        Column::number("against the first", "%").priority(7),
        Column::number("connections", "").priority(2),
        Column::number("carried", "kB").priority(2),
        Column::number("lost", "packets").priority(3),
        Column::number("simulated", "ms").priority(7),
        Column::number("distance", "%").priority(6),
    ]);
    let mut table = Table::new("", columns);
    for sample in samples {
        let base = samples.iter().find(|other| other.kind == sample.kind).unwrap_or(sample);
        let mut cells = vec![Cell::text(&sample.scheme), Cell::text(sample.kind)];
        cells.extend(TIMES.map(|(.., of)| {
            let times = sample.times(of);
            let shown = Cell::number(sample.mean(of), 0);
            match positive_mean_interval(&times) {
                _ if times.iter().all(|time| *time == 0.0) => Cell::Missing,
                Some(interval) => shown.with_interval(interval.low, interval.high),
                None => shown,
            }
        }));
        let [own, others] = [sample, base].map(|sample| sample.times(|visit| visit.complete_ms));
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let against = Cell::number(percent(sample.complete_ms() / base.complete_ms()), 0);
        cells.push(match positive_ratio_interval(&own, &others) {
            _ if sample.scheme == base.scheme => Cell::Missing,
            Some(interval) => against.with_interval(percent(interval.low), percent(interval.high)),
            None => against,
        });
        cells.extend([
            Cell::number(sample.mean(|visit| visit.connections as f64), 0),
            Cell::number(sample.mean(|visit| visit.carried as f64 / 1e3), 0),
            Cell::number(sample.mean(|visit| visit.lost_packets as f64), 0),
            sample.simulated_ms.map_or(Cell::Missing, |time| Cell::number(time, 0)),
            sample.distance().map_or(Cell::Missing, |share| Cell::number(share, 0)),
        ]);
        table.row(cells);
    }
    let count = samples.first().map_or(0, |sample| sample.visits.len());
    let of = match count {
        1 => "one visit, without an interval".to_owned(),
        _ => format!("mean of {count} visits with its 95 % interval"),
    };
    table.note(&format!(
        "Times from the beginning of the navigation, {of}. Simulated: the last object of the same page over the QUIC stack in virtual \
         time, without a browser. {}",
        agreement(samples)
    ));
    if let late @ 1.. = late(samples) {
        table.note(&format!(
            "In {} of {} this machine was too busy to keep real time: the path was late. Try again when it is quiet.",
            late,
            counted((count * samples.len()) as u64, "visit"),
        ));
    }
    table
}

/// The schemes' times to the last object over the first scheme's, a line for each kind of visit,
/// the fastest first.
#[must_use]
pub fn answer(samples: &[Sample]) -> Vec<String> {
    let line = |kind: &str| {
        let mut of_kind = samples.iter().filter(|sample| sample.kind == kind);
        let base = of_kind.next()?;
        let mut others: Vec<&Sample> = of_kind.collect();
        others.sort_by(|one, other| one.complete_ms().total_cmp(&other.complete_ms()));
        let complete = |sample: &Sample| sample.times(|visit| visit.complete_ms);
        let ratio = |sample: &&Sample| {
            let Interval { value, low, high } = positive_ratio_interval(&complete(sample), &complete(base))?;
            let surely = if high < 1.0 {
                "faster"
            } else if low > 1.0 {
                "slower"
            } else {
                "not surely different"
            };
            Some(format!("{} takes {value:.2} [{low:.2}, {high:.2}], {surely}", sample.scheme))
        };
        let ratios: Vec<String> = others.iter().filter_map(ratio).collect();
        (!ratios.is_empty())
            .then(|| format!("{kind}, of {}'s time to the last object: {}.", base.scheme, ratios.join("; ")))
    };
    let capital = |line: String| line[..1].to_uppercase() + &line[1..];
    ["cold", "returning"].into_iter().filter_map(line).map(capital).collect()
}

/// Agreement of simulator and browser, in words.
fn agreement(samples: &[Sample]) -> String {
    let simulated: Vec<&Sample> = samples.iter().filter(|sample| sample.simulated_ms.is_some()).collect();
    let order = |kind: &str, time: fn(&Sample) -> f64| {
        let mut of_kind: Vec<&&Sample> = simulated.iter().filter(|sample| sample.kind == kind).collect();
        of_kind.sort_by(|one, other| time(one).total_cmp(&time(other)));
        of_kind.iter().map(|sample| sample.scheme.clone()).collect::<Vec<_>>()
    };
    let in_order = |kind: &str| {
        order(kind, Sample::complete_ms) == order(kind, |sample| sample.simulated_ms.unwrap_or_default())
    };
    let words = |kind: &str| format!("{kind}: {}", if in_order(kind) { "the same" } else { "another" });
    let near = |sample: &&&Sample| sample.distance().is_some_and(|distance| distance.abs() <= 10.0);
    let within = simulated.iter().filter(near).count();
    let within = format!("Within 10 % of one another: {within} of {}.", simulated.len());
    if simulated.iter().all(|sample| sample.scheme == simulated[0].scheme) {
        return within;
    }
    format!("Order of the schemes in both, {}, {}. {within}", words("cold"), words("returning"))
}

/// The report: the table, arrivals over time, and a waterfall of each sample.
#[must_use]
pub fn report(samples: &[Sample], replay: &Replay, on: &str, browser: &str, command: &str) -> Report {
    let mut arrivals =
        Figure::new("", Axis::linear("time", "ms").with_range(Range::FromZero), Axis::linear("objects", ""));
    for sample in samples {
        let mut ends: Vec<f64> = sample
            .typical()
            .into_iter()
            .flat_map(|visit| &visit.arrivals)
            .map(|arrival| arrival.ended_ms)
            .collect();
        ends.sort_by(f64::total_cmp);
        let points = ends.iter().zip(1..).map(|(at, count)| (*at, f64::from(count)));
        arrivals.series.push(Series::new(
            &sample.name(),
            Style::steps(),
            std::iter::once((0.0, 0.0)).chain(points),
        ));
    }
    let mut sections = vec![
        Section::Heading("Times by scheme".into()),
        Section::Table(table(samples)),
        Section::Heading("Arrivals".into()),
        Section::Figure {
            svg: arrivals.svg(),
            caption: "Objects that have arrived, in the visit whose last object arrived at the median time."
                .into(),
        },
    ];
    sections.extend(film(samples));
    sections.push(Section::Heading("Waterfalls".into()));
    sections.extend(samples.iter().filter_map(|sample| waterfall(sample, replay)));
    sections.push(Section::Heading("What the numbers mean".into()));
    let mut definitions: Vec<(String, String)> =
        TIMES.iter().map(|(name, _, meaning, _)| ((*name).to_owned(), (*meaning).to_owned())).collect();
    definitions.extend([
        ("cold".into(), "the server has no record of the client".into()),
        (
            "returning".into(),
            "the server has the record of the visit before; the browser's cache is empty".into(),
        ),
        ("distance".into(), "of the simulator's time from the browser's".into()),
        (
            "iw10-linux h2, h1".into(),
            "HTTP/2 or HTTP/1.1 over this machine's TCP with CUBIC, which has no record of a visit; all others are HTTP/3".into(),
        ),
        (
            "carried, lost".into(),
            "bytes that the path carried to the browser, and packets to it that the path lost".into(),
        ),
    ]);
    sections.push(Section::Definitions(definitions));
    let lead = format!(
        "{}: {} of {}, {:.0} kB, loaded by {browser} {on}. {}",
        replay.title,
        counted(replay.nodes.len() as u64, "object"),
        counted(replay.origins as u64, "host"),
        replay.bytes() as f64 / 1e3,
        agreement(samples)
    );
    let facts =
        vec![("headstart".into(), headstart_compare::VERSION.into()), ("browser".into(), browser.into())];
    Report {
        title: "A page in a real browser, by scheme".into(),
        answer: answer(samples),
        lead,
        sections,
        provenance: Provenance { facts, plan: command.into() },
    }
}

/// Columns of the film at most.
const COLUMNS: usize = 12;

/// The film of each sample, on one axis of time.
fn film(samples: &[Sample]) -> Vec<Section> {
    let filmed = || samples.iter().filter_map(|sample| Some((sample.name(), sample.filmed.as_ref()?)));
    let longest = filmed().map(|(_, visit)| visit.complete_ms).fold(0.0, f64::max);
    if longest == 0.0 {
        return vec![];
    }
    let steps = (0..).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
    let step = steps.into_iter().find(|step| (longest / step).ceil() < COLUMNS as f64).unwrap_or(longest);
    let times: Vec<f64> = (0..=(longest / step).ceil() as usize).map(|place| place as f64 * step).collect();
    let row = |(name, visit): (String, &Visit)| {
        let name = format!("{name}: {:.0} ms", visit.complete_ms);
        let shown_at = |at: &f64| visit.frames.iter().rfind(|frame| (0.0..=*at).contains(&frame.at_ms));
        let shown: Vec<_> = times.iter().map(shown_at).collect();
        let shots = shown.chunk_by(|one, other| one == other).map(|same| Shot {
            columns: same.len(),
            jpeg: same[0].map(|frame| frame.jpeg.clone()),
            says: same[0]
                .map_or_else(String::new, |frame| format!("{name}, page from {:.0} ms on", frame.at_ms)),
        });
        (name.clone(), shots.collect())
    };
    vec![
        Section::Heading("Film".into()),
        Section::Film {
            rows: filmed().map(row).collect(),
            times: times.iter().map(|time| format!("{time} ms")).collect(),
        },
        Section::Text(
            "The page as it looked at the time of the column, until the next picture; nothing was shown before the first. \
             Each row is one more visit, with the time of its last object: to film it takes time, so that the table leaves it out."
                .into(),
        ),
    ]
}

/// The objects of the typical visit, each with its waits.
fn waterfall(sample: &Sample, replay: &Replay) -> Option<Section> {
    let visit = sample.typical()?;
    let rows: Vec<(String, Vec<f64>)> = visit
        .arrivals
        .iter()
        .map(|arrival| {
            let node = replay.nodes[arrival.place];
            let kind = match node.kind {
                _ if arrival.place == replay.document => "document",
                Kind::Other => "other",
                Kind::Image => "image",
                Kind::Script => "script",
                Kind::Style => "style",
            };
            let name =
                format!("{} h{} {kind}{}", arrival.place, node.origin, if node.is_above { " *" } else { "" });
            // A browser that does not say when an object began says zero.
            let began = arrival.began_ms.clamp(arrival.asked_ms, arrival.ended_ms);
            (name, vec![arrival.asked_ms, began - arrival.asked_ms, arrival.ended_ms - began])
        })
        .collect();
    let heading = format!("{}: {:.0} ms", sample.name(), visit.complete_ms);
    let bars = StackedBars {
        parts: ["before its request", "to its first byte", "to its last byte"].map(str::to_owned).to_vec(),
        groups: vec![(heading.clone(), rows.len())],
        rows,
        unit: "ms".into(),
        says: format!("Requests and arrivals of each object: {heading}"),
    };
    let caption = "Each object with its host; those above the fold have a star.".to_owned();
    let figure = Section::Figure { svg: bars.svg(), caption };
    Some(Section::Details { summary: heading, sections: vec![figure] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(scheme: &str, kind: &'static str, times: [f64; 4]) -> Sample {
        let visit = |complete_ms| Visit {
            first_paint_ms: 0.0,
            largest_paint_ms: 0.0,
            load_event_ms: 0.0,
            above_fold_ms: 0.0,
            complete_ms,
            connections: 1,
            carried: 0,
            lost_packets: 0,
            arrivals: vec![],
            is_valid: true,
            frames: vec![],
        };
        let visits = times.map(visit).to_vec();
        Sample { scheme: scheme.to_owned(), kind, visits, simulated_ms: None, filmed: None }
    }

    #[test]
    fn the_answer_says_who_is_faster_cold_and_returning() {
        let lines = answer(&[
            sample("iw10", "cold", [100.0, 101.0, 99.0, 100.0]),
            sample("headstart", "cold", [99.0, 104.0, 96.0, 101.0]),
            sample("iw10", "returning", [100.0, 101.0, 99.0, 100.0]),
            sample("headstart", "returning", [70.0, 71.0, 69.0, 70.0]),
            sample("iw64", "returning", [130.0, 131.0, 129.0, 130.0]),
        ]);
        assert!(lines[0].starts_with("Cold, of iw10's time to the last object: headstart takes 1.00 ["));
        assert!(lines[0].ends_with("not surely different."), "{}", lines[0]);
        let (fast, slow) = lines[1].split_once("; ").expect("two schemes");
        assert!(fast.contains("headstart takes 0.70") && fast.ends_with(", faster"), "{fast}");
        assert!(slow.starts_with("iw64 takes 1.30") && slow.ends_with(", slower."), "{slow}");
        assert!(answer(&[sample("iw10", "cold", [1.0; 4])]).is_empty(), "one scheme alone");
    }
}
