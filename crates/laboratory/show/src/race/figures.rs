//! The figures of a race's report.

use std::collections::BTreeSet;

use headstart_startup::sending::LimitedBy;
use headstart_units::Span;

use crate::flow::{self, FlowFigures};
use headstart_compare::capacity::Capacity;
use headstart_compare::race::{Race, SchemeResult, TRACED};
use headstart_compare::verdict::Harm;
use headstart_report::figure::{Axis, Figure, Guide, Mark, Point, Range, Series, StackedBars, Style, Svg};
use headstart_report::page::Section;

/// The schemes, which a reader can pick, in their order.
pub fn names(race: &Race) -> Vec<String> {
    race.scheme_results.iter().map(|scheme_result| scheme_result.entry.name.to_string()).collect()
}

/// Completion time over harm.
pub fn plane(race: &Race) -> Figure {
    let harm = if race.judged() > 1 { "harm, intervals hold at once" } else { "harm" };
    let mut figure = Figure::new(
        "",
        Axis::linear(harm, "").with_range(Range::Tight),
        Axis::linear("mean completion time", "ms").with_range(Range::Tight),
    );
    for (slot, scheme_result) in race.scheme_results.iter().enumerate() {
        let Some(Harm { interval: harm, .. }) = race.worst_harm(scheme_result) else { continue };
        let mut point =
            Point::new(harm.value, scheme_result.mean().value).labelled(&scheme_result.entry.name);
        if harm.low.is_finite() {
            point = point.with_x_range(harm.low, harm.high);
        }
        if scheme_result.mean().low.is_finite() {
            point = point.with_y_range(scheme_result.mean().low, scheme_result.mean().high);
        }
        figure.series.push(Series::new(
            &scheme_result.entry.name,
            Style::marks(Mark::BySlot).with_slot(slot),
            [point],
        ));
    }
    figure.guides.push(Guide::X(1.0, "no harm".into()));
    figure.plot_height = 420.0;
    figure
}

/// The mean completion time of each scheme, by what held its flows back; `None` where no scheme's
/// senders report it.
pub fn limits(race: &Race) -> Option<Section> {
    let row = |result: &SchemeResult| Some((result.entry.name.to_string(), result.limited_ms()?));
    let mut rows: Vec<_> = race.scheme_results.iter().filter_map(row).collect();
    if rows.is_empty() {
        return None;
    }
    rows.sort_by(|(_, a), (_, b)| a.iter().sum::<f64>().total_cmp(&b.iter().sum::<f64>()));
    let bars = StackedBars {
        parts: LimitedBy::ALL.map(|by| by.as_str().to_owned()).to_vec(),
        says: format!("Mean completion times of {} schemes by what held flows back", rows.len()),
        rows,
        groups: vec![],
        unit: "ms".into(),
    };
    let caption = "Mean completion time of flows by what held back the next packet, the fastest first. The time of a part is its share of all \
                   finished flows' time; pages are in it by their connections."
        .to_owned();
    Some(Section::Figure { svg: bars.svg(), caption })
}

/// The distributions of completion times, in a drawing of this width: at first those of the
/// reference and of the extremes.
pub fn distribution(race: &Race, width: f64) -> Section {
    let mut figure =
        Figure::new("", Axis::logarithmic("completion time", "ms"), Axis::linear("share complete", ""));
    let shown = notable(race);
    for (slot, scheme_result) in race.scheme_results.iter().enumerate() {
        let mut last = -1.0;
        // Steps finer than a pixel only make the file larger.
        let first = scheme_result.times.distribution().next().map(|(span, _)| (span, 0.0));
        let rest = scheme_result.times.distribution().filter(|(_, share)| {
            let is_visible = share - last > 0.002 || *share >= 1.0;
            last = if is_visible { *share } else { last };
            is_visible
        });
        let points = banded(scheme_result, first.into_iter().chain(rest).collect(), |complete| complete);
        let style = Style::steps().with_slot(slot).with_band();
        let style = if shown.contains(&slot) { style } else { style.on_demand() };
        figure.series.push(Series::new(&scheme_result.entry.name, style, points));
    }
    (figure.plot_height, figure.width) = (420.0, width);
    let medians = |scheme_result: &SchemeResult| {
        (scheme_result.measured["p50_ms"].value, scheme_result.entry.name.to_string())
    };
    let mut order: Vec<(f64, String)> = race.scheme_results.iter().map(medians).collect();
    order.retain(|(median, _)| median.is_finite());
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let (Some((least, first)), Some((most, last))) = (order.first(), order.last()) {
        figure.says = format!(
            "Share of flows complete over completion time, of {} schemes. Half of the flows are complete after {least:.0} ms \
             with {first}, the fastest, and after {most:.0} ms with {last}, the slowest.",
            order.len()
        );
    }
    let together: Vec<String> = figure.coinciding().iter().map(|names| names.join(" and ")).collect();
    let mut caption =
        "The share of flows (pages) that are complete after a time, which is logarithmic. Bands are from the least to the most of a seed.".to_owned();
    if shown.len() < race.scheme_results.len() {
        caption += &format!(
            " At first {} and those with the lowest and highest mean and 99th percentile are shown.",
            race.reference.name
        );
    }
    if !together.is_empty() {
        caption += &format!(" Lines that lie on one another: {}.", together.join("; "));
    }
    Section::Figure { svg: figure.svg(), caption }
}

/// The share of flows that take longer, on a logarithmic axis: there tails are apart.
pub fn tails(race: &Race) -> Section {
    /// Steps to a share less far below the last one only make the file larger.
    const VISIBLE: f64 = 0.98;
    let mut figure = Figure::new(
        "",
        Axis::logarithmic("completion time", "ms"),
        Axis::logarithmic("share not complete", ""),
    );
    let shown = notable(race);
    for (slot, scheme_result) in race.scheme_results.iter().enumerate() {
        let mut last = 1.0;
        let steps = scheme_result.times.distribution().filter_map(|(span, complete)| {
            let share = 1.0 - complete;
            // The last flow of all ends the line: nothing is left.
            let is_end = share < 1e-9;
            let is_visible = is_end || share <= VISIBLE * last;
            last = if is_visible && !is_end { share } else { last };
            is_visible.then_some((span, last))
        });
        let first = scheme_result.times.distribution().next().map(|(span, _)| (span, 1.0));
        let points =
            banded(scheme_result, first.into_iter().chain(steps).collect(), |complete| 1.0 - complete);
        let style = Style::steps().with_slot(slot).with_band();
        let style = if shown.contains(&slot) { style } else { style.on_demand() };
        figure.series.push(Series::new(&scheme_result.entry.name, style, points));
    }
    figure.plot_height = 420.0;
    let caption =
        "The share of flows (pages) that are not complete after a time (CCDF), both logarithmic: 0.01 is the 99th percentile. Bands are from the least to the most of a seed, as far as all have flows left.".to_owned();
    Section::Figure { svg: figure.svg(), caption }
}

/// The points of a curve, each with the least and the most of the seeds' own curves there. `shown`
/// makes the value that is drawn of the share of flows that are complete.
fn banded(result: &SchemeResult, points: Vec<(Span, f64)>, shown: fn(f64) -> f64) -> Vec<Point> {
    let mut ranges = vec![(f64::INFINITY, f64::NEG_INFINITY); points.len()];
    let seeds = &result.times_by_seed;
    for seed in seeds.iter().filter(|seed| seed.count() > 0) {
        let (mut complete, mut steps) = (0.0, seed.distribution().peekable());
        for ((at, _), (low, high)) in points.iter().zip(&mut ranges) {
            while let Some((_, share)) = steps.next_if(|(span, _)| span <= at) {
                complete = share;
            }
            let value = shown(complete);
            (*low, *high) = (low.min(value), high.max(value));
        }
    }
    let point = |((at, value), (low, high)): ((Span, f64), (f64, f64))| {
        let point = Point::new(at.as_millis_f64(), value);
        let has_band = seeds.len() > 1 && low <= value && value <= high;
        if has_band { point.with_y_range(low, high) } else { point }
    };
    points.into_iter().zip(ranges).map(point).collect()
}

/// The reference and the extremes of mean and tail; all where they are few.
fn notable(race: &Race) -> BTreeSet<usize> {
    /// Lines that one figure shows well.
    const FEW: usize = 6;
    let count = race.scheme_results.len();
    if count <= FEW {
        return (0..count).collect();
    }
    let mean = |slot: &usize| race.scheme_results[*slot].mean().value;
    let tail = |slot: &usize| race.scheme_results[*slot].measured["p99_ms"].value;
    let known = |value: fn(&SchemeResult) -> f64| {
        (0..count).filter(move |slot| value(&race.scheme_results[*slot]).is_finite())
    };
    let (means, tails) = (known(|one| one.mean().value), known(|one| one.measured["p99_ms"].value));
    let reference =
        race.scheme_results.iter().position(|scheme_result| scheme_result.entry.name == race.reference.name);
    [
        reference,
        means.clone().min_by(|a, b| mean(a).total_cmp(&mean(b))),
        means.max_by(|a, b| mean(a).total_cmp(&mean(b))),
        tails.clone().min_by(|a, b| tail(a).total_cmp(&tail(b))),
        tails.max_by(|a, b| tail(a).total_cmp(&tail(b))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// One flow of each scheme: two over one another, and each by itself, all on the same axes.
pub fn flows(race: &Race) -> Vec<Section> {
    let views =
        race.scheme_results.iter().map(|scheme_result| (&*scheme_result.entry.name, &scheme_result.view));
    let figures = FlowFigures::of(views);
    let mut sections = vec![Section::Text(format!(
        "Flow number {} of the first seed, the same arrival for every scheme, on the same axes. Of {TRACED} flows its times are the \
         nearest to the schemes' medians. A scheme's mean is over all its flows; the time of the flow shown is with its name.",
        race.traced_serial
    ))];
    sections.extend(overlay(race, &figures));
    sections.extend(
        race.scheme_results
            .iter()
            .zip(&figures)
            .map(|(scheme_result, figures)| details(scheme_result, figures)),
    );
    sections
}

/// The reference and the fastest over one another.
fn overlay(race: &Race, figures: &[FlowFigures]) -> Option<Section> {
    let mut order: Vec<usize> = (0..figures.len()).filter(|slot| figures[*slot].has_events()).collect();
    order.sort_by(|a, b| {
        race.scheme_results[*a].mean().value.total_cmp(&race.scheme_results[*b].mean().value)
    });
    let is_reference = |slot: &usize| race.scheme_results[*slot].entry.name == race.reference.name;
    let first = order.iter().copied().find(is_reference).or(order.last().copied())?;
    let second = order.into_iter().find(|slot| *slot != first)?;
    Some(flow::overlay(&figures[first], &figures[second]))
}

fn details(scheme_result: &SchemeResult, figures: &FlowFigures) -> Section {
    let totals = &scheme_result.totals;
    let counts = &totals.counts;
    let per_flow = |count: u64| format!("{:.2}", count as f64 / (totals.flows as f64).max(1.0));
    let mut sections = figures.sections();
    let phases: Vec<String> = flow::phases(&scheme_result.view)
        .iter()
        .map(|(at, phase, window, pace)| {
            let pace = pace.map(|bits| format!(", {:.2} Mbit/s", bits as f64 / 1e6)).unwrap_or_default();
            format!("{at:.1} ms {phase} (window {:.1} kB{pace})", *window as f64 / 1000.0)
        })
        .collect();
    sections.push(Section::Definitions(vec![
        ("flows".into(), format!("{} in all runs, {} unfinished", totals.flows, totals.unfinished)),
        ("retransmissions a flow".into(), per_flow(counts.retransmissions)),
        ("proactive copies a flow".into(), per_flow(counts.copies)),
        ("timeouts a flow".into(), per_flow(counts.timeouts)),
        ("probes a flow".into(), per_flow(counts.probes)),
        ("duplicates delivered a flow".into(), per_flow(totals.duplicates)),
        (
            "history".into(),
            format!(
                "{:.1} % of starts met a record; {} bytes for each peer remembered",
                100.0 * scheme_result.history_hits(),
                scheme_result.history_bytes_per_peer
            ),
        ),
        ("phases of the flow shown".into(), phases.join("; ")),
    ]));
    let this = figures.completed_ms.map_or_else(|| "not complete".to_owned(), |ms| format!("{ms:.0} ms"));
    Section::Details {
        summary: format!(
            "{}: {} (mean {:.0} ms; the flow shown {this})",
            scheme_result.entry.name,
            scheme_result.entry.summary,
            scheme_result.mean().value
        ),
        sections,
    }
}

/// Completion time over feasible capacity.
pub fn capacity_plane(race: &Race, capacities: &[Capacity]) -> Figure {
    let mut figure = Figure::new(
        "",
        Axis::linear("feasible capacity", "% load"),
        Axis::linear("mean completion time", "ms"),
    );
    for (slot, scheme_result) in race.scheme_results.iter().enumerate() {
        if let Some(found) = capacities.iter().find(|found| *scheme_result.entry.name == *found.scheme) {
            let point =
                Point::new(f64::from(found.own_percent), scheme_result.mean().value).labelled(&found.scheme);
            figure.series.push(Series::new(
                &found.scheme,
                Style::marks(Mark::BySlot).with_slot(slot),
                [point],
            ));
        }
    }
    figure.plot_height = 420.0;
    figure
}

/// Mean completion time over load.
pub fn curves(capacities: &[Capacity]) -> Svg {
    let mut figure =
        Figure::new("", Axis::linear("load", "%"), Axis::logarithmic("mean completion time", "ms"));
    for (slot, found) in capacities.iter().enumerate() {
        let points: Vec<(f64, f64)> =
            found.curve.iter().map(|(percent, mean)| (f64::from(*percent), *mean)).collect();
        figure.series.push(Series::new(&found.scheme, Style::line_and_marks().with_slot(slot), points));
    }
    figure.guides.push(Guide::Y(1000.0, "1 s".into()));
    figure.plot_height = 420.0;
    figure.svg()
}

#[cfg(test)]
mod tests {
    use headstart_sim::Histogram;

    use super::*;
    use headstart_compare::samples::{race, scheme_result};

    #[test]
    fn a_curve_has_a_band_from_the_least_to_the_most_of_a_seed() {
        let mut result = scheme_result("iw10", &[1.0, 2.0]).0;
        result.measured.insert("p50_ms", result.mean().clone());
        for slow in [1, 3] {
            let mut seed = Histogram::default();
            (0..4).for_each(|flow| seed.add(Span::from_millis(if flow < slow { 1000 } else { 100 })));
            result.times.merge(&seed);
            result.times_by_seed.push(seed);
        }
        let points = |section| {
            let Section::Figure { svg, .. } = section else { panic!("a figure") };
            let text = svg.as_str().to_owned();
            let points = text.split("data-points=\"").nth(1).and_then(|rest| rest.split('"').next());
            let points = points.expect("few points").to_owned();
            let shares = points.split(';').filter_map(|point| point.split(' ').nth(1).map(str::to_owned));
            (shares.collect::<Vec<_>>(), text.matches("fill-opacity=\"0.18\"").count())
        };
        let race = race(vec![result]);
        assert_eq!(
            points(distribution(&race, Figure::WIDTH)),
            (["0", "0.5:0.25:0.75", "1:1:1"].map(str::to_owned).to_vec(), 1)
        );
        assert_eq!(points(tails(&race)).0, ["1", "0.5:0.25:0.75", "0.5"].map(str::to_owned));
    }

    #[test]
    fn one_slow_flow_of_a_hundred_is_apart_in_the_tail() {
        let mut result = scheme_result("iw10", &[1.0]).0;
        result.measured.insert("p99_ms", result.mean().clone());
        (0..99).for_each(|_| result.times.add(Span::from_millis(100)));
        result.times.add(Span::from_millis(1000));
        let Section::Figure { svg, .. } = tails(&race(vec![result])) else { panic!("a figure") };
        let points = svg.as_str().split("data-points=\"").nth(1).and_then(|rest| rest.split('"').next());
        let shares: Vec<&str> =
            points.expect("few points").split(';').filter_map(|point| point.split(' ').nth(1)).collect();
        assert_eq!(shares, ["1", "0.01", "0.01"], "all, then one of a hundred until it is complete");
        assert!(svg.as_str().contains("|log|share not complete|"));
    }
}
