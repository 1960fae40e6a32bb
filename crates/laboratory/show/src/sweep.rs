//! The report of a sweep: gains, crossings of two schemes, and figures.

mod figures;
mod gains;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use headstart_paper::claim::digits;

use crate::cell;
use headstart_compare::conditions::ConditionColumns;
use headstart_compare::crossing::{Crossing, crossings};
use headstart_compare::measures;
use headstart_compare::race::{Measured, Race};
use headstart_compare::sweep::Point;
use headstart_compare::verdict::{Harm, MOST_HARM};
use headstart_report::page::{Provenance, Report, Section};
use headstart_report::table::{Column, Table};
use headstart_study::setup::Setup;

use figures::MapOf;

/// More crossings than this do not stand in the terminal.
pub const MAX_CROSSINGS: usize = 6;

/// Measures of the table.
const SHOWN: [&str; 4] = ["mean_ms", "p99_ms", "loss_percent", "harm"];

/// Kept results of a point's race: no flows and no distributions.
#[derive(Clone, Debug)]
pub struct PointResult {
    /// The values of the options that vary, as they were typed.
    typed: Vec<String>,
    /// Values of the options that vary, as numbers in the unit of their axis, where they are
    /// numbers.
    numbers: Vec<Option<f64>>,
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
struct Row {
    scheme: String,
    measured: BTreeMap<&'static str, Measured>,
    /// The worse harm, to short or to long flows, with an interval that holds for all schemes of
    /// the point at once.
    harm: Option<Harm>,
    /// Mean completion time of flows by what held them back, in milliseconds.
    limited: Option<Vec<f64>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SweptOption {
    /// Column of its values in tables: the option with `_` for `-`.
    column: String,
    /// Unit of its numbers, empty for a count and for a value in words.
    unit: &'static str,
}

impl SweptOption {
    fn words(&self) -> String {
        self.column.replace('_', "-")
    }

    fn with_unit(&self, number: impl std::fmt::Display) -> String {
        if self.unit.is_empty() { number.to_string() } else { format!("{number} {}", self.unit) }
    }
}

/// Unit in which the report draws a column of conditions, and the factor from the column's own.
fn drawn_unit(column: &str) -> (&'static str, f64) {
    match column {
        "rtt_s" | "jitter_s" | "min_rto_s" | "initial_rto_s" => ("ms", 1e3),
        _ if column.ends_with("bits_per_s") => ("Mbit/s", 1e-6),
        _ if column.ends_with("_bytes") => ("kB", 1e-3),
        _ if column.ends_with("_share") => ("%", 100.0),
        _ if column.ends_with("_s") => ("s", 1.0),
        _ => ("", 1.0),
    }
}

/// `value` times `factor`, without the digits that only the product of two binary fractions has.
fn scaled(value: f64, factor: f64) -> f64 {
    (value * factor * 1e9).round() / 1e9
}

impl PointResult {
    /// Mean completion time of a scheme over another's.
    fn ratio(&self, scheme: &str, base: &str) -> Option<f64> {
        let mean =
            |name: &str| Some(self.rows.iter().find(|row| row.scheme == name)?.measured["mean_ms"].value);
        Some(mean(scheme)? / mean(base)?)
    }
}

/// A sweep that is over.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    axes: Vec<SweptOption>,
    points: Vec<PointResult>,
    /// Schemes of any point, in the order in which they came.
    schemes: Vec<String>,
    /// The scheme that the others are compared with.
    reference: Option<&'static str>,
}

#[derive(Clone, Debug)]
struct NamedCrossing {
    axis: SweptOption,
    schemes: [String; 2],
    /// Values of the other axes there.
    others: String,
    crossing: Crossing,
}

impl Sweep {
    /// Adds the race of a point.
    pub fn add(&mut self, point: &Point, setup: &Setup, race: &Race) {
        let (mut axes, mut numbers) = (vec![], vec![]);
        for (name, typed) in &point.varied {
            let own = ConditionColumns::new(setup, &[(name.clone(), typed.clone())]).before;
            let number = own
                .iter()
                .find_map(|(column, value)| Some((column.clone(), value.to_string().parse().ok()?)));
            let (unit, factor) = number.as_ref().map_or(("", 1.0), |(column, _)| drawn_unit(column));
            axes.push(SweptOption { column: name.clone(), unit });
            numbers.push(number.map(|(_, number): (String, f64)| scaled(number, factor)));
        }
        (self.axes, self.reference) = (axes, Some(race.reference.name.as_str()));
        let row = |scheme_result: &headstart_compare::race::SchemeResult| Row {
            scheme: scheme_result.entry.name.to_string(),
            measured: SHOWN.into_iter().map(|name| (name, scheme_result.measured[name].clone())).collect(),
            harm: race.worst_harm(scheme_result),
            limited: scheme_result.limited_ms(),
        };
        let typed = point.varied.iter().map(|(_, value)| value.clone()).collect();
        let rows: Vec<Row> = race.scheme_results.iter().map(row).collect();
        self.keep(PointResult { typed, numbers, rows });
    }

    fn keep(&mut self, point: PointResult) {
        for row in &point.rows {
            if !self.schemes.contains(&row.scheme) {
                self.schemes.push(row.scheme.clone());
            }
        }
        self.points.push(point);
    }

    /// Every point and scheme, with intervals.
    #[must_use]
    pub fn table(&self) -> Table {
        let mut columns: Vec<Column> = self.axes.iter().map(|axis| Column::text(&axis.column)).collect();
        columns.push(Column::text("scheme"));
        let shown: Vec<_> =
            measures::shown().into_iter().filter(|(it, _)| SHOWN.contains(&it.name)).collect();
        columns.extend(shown.iter().map(|(_, it)| Column { better: None, ..it.column() }));
        let mut table = Table::new("", columns);
        for point in &self.points {
            for row in &point.rows {
                let mut cells: Vec<_> =
                    point.typed.iter().map(|text| headstart_report::table::Cell::text(text)).collect();
                cells.push(headstart_report::table::Cell::text(&row.scheme));
                cells
                    .extend(shown.iter().map(|(measure, it)| cell(&row.measured[measure.name], it.decimals)));
                table.row(cells);
            }
        }
        table
    }

    fn schemes(&self) -> Vec<&str> {
        self.schemes.iter().map(String::as_str).collect()
    }

    /// Axes with more than one value, all of them numbers.
    fn numeric(&self) -> Vec<usize> {
        let is_numeric = |axis: &usize| {
            let mut numbers = self.points.iter().map(|point| point.numbers[*axis]);
            let first = numbers.next().flatten();
            let all = self.points.iter().all(|point| point.numbers[*axis].is_some());
            all && numbers.any(|number| number != first)
        };
        (0..self.axes.len()).filter(is_numeric).collect()
    }

    /// The points along these axes, one group for each combination of the others' values, in words.
    fn along(&self, axes: &[usize]) -> Vec<(String, Vec<&PointResult>)> {
        let mut groups: Vec<(String, Vec<&PointResult>)> = vec![];
        let mut places = BTreeMap::new();
        for point in &self.points {
            let others = (0..self.axes.len()).filter(|axis| !axes.contains(axis));
            let words: Vec<String> =
                others.map(|axis| format!("{} {}", self.axes[axis].words(), point.typed[axis])).collect();
            let words = words.join(", ");
            let place = *places.entry(words.clone()).or_insert(groups.len());
            if place == groups.len() {
                groups.push((words, vec![]));
            }
            groups[place].1.push(point);
        }
        groups
    }

    fn crossings(&self) -> Vec<NamedCrossing> {
        let mut named = vec![];
        let schemes = self.schemes();
        for axis in self.numeric() {
            for (others, mut points) in self.along(&[axis]) {
                let at = |point: &PointResult| point.numbers[axis].unwrap_or(f64::NAN);
                points.sort_by(|one, other| at(one).total_cmp(&at(other)));
                let values: Vec<f64> = points.iter().map(|point| at(point)).collect();
                let of = |scheme: &str| -> Option<Vec<&[f64]>> {
                    let row =
                        |point: &'_ &PointResult| point.rows.iter().position(|row| row.scheme == scheme);
                    let places: Vec<usize> = points.iter().map(row).collect::<Option<_>>()?;
                    let means = points
                        .iter()
                        .zip(places)
                        .map(|(point, at)| &point.rows[at].measured["mean_ms"].by_seed[..]);
                    Some(means.collect())
                };
                for (number, one) in schemes.iter().enumerate() {
                    for other in &schemes[number + 1..] {
                        let (Some(mine), Some(theirs)) = (of(one), of(other)) else { continue };
                        named.extend(crossings(&values, &mine, &theirs).into_iter().map(|crossing| {
                            NamedCrossing {
                                axis: self.axes[axis].clone(),
                                schemes: [(*one).to_owned(), (*other).to_owned()],
                                others: others.clone(),
                                crossing,
                            }
                        }));
                    }
                }
            }
        }
        named
    }

    /// Each crossing in a sentence.
    #[must_use]
    pub fn crossings_in_words(&self) -> Vec<String> {
        let sentence = |named: NamedCrossing| {
            let NamedCrossing { axis, schemes: [one, other], others, crossing } = named;
            let (below, above) = if crossing.first_is_faster_below { (&one, &other) } else { (&other, &one) };
            let mut text = format!(
                "{below} is faster than {above} up to {} {}, slower from {} on (crosses at about {})",
                axis.words(),
                axis.with_unit(crossing.after),
                axis.with_unit(crossing.before),
                axis.with_unit(short(crossing.about))
            );
            if !others.is_empty() {
                let _ = write!(text, ", with {others}");
            }
            text
        };
        self.crossings().into_iter().map(sentence).collect()
    }

    /// The scheme that the others are compared with.
    fn base(&self) -> &str {
        let schemes = self.schemes();
        self.reference.filter(|name| schemes.contains(name)).or(schemes.first().copied()).unwrap_or_default()
    }

    /// The whole report.
    #[must_use]
    pub fn report(&self, command: &str) -> Report {
        let words = self.crossings_in_words();
        let schemes = self.schemes();
        let mut sections = vec![Section::Picks(schemes.iter().map(|name| (*name).to_owned()).collect())];
        let verdict = self.verdict();
        if verdict.is_some() {
            sections.push(Section::Heading(format!("Gain over {}, and harm to others", self.base())));
            sections.push(Section::Table(self.gain_table()));
            if self.axes.len() >= 2 {
                sections.extend(self.heat_maps(MapOf::Gain));
                sections.extend(self.heat_maps(MapOf::Harm));
            }
        }
        sections.push(Section::Heading("Where the order crosses".into()));
        let text = |words: &[String]| {
            Section::Text(words.iter().map(|text| format!("{text}.")).collect::<Vec<_>>().join("\n\n"))
        };
        let (first, rest) = words.split_at(words.len().min(MAX_CROSSINGS));
        sections.push(if words.is_empty() {
            Section::Text(
                "Along no axis of numbers does the order of two schemes change by more than chance explains."
                    .into(),
            )
        } else {
            text(first)
        });
        let folded = |summary: String, sections| Section::Details { summary, sections };
        if !rest.is_empty() {
            sections.push(folded(format!("{} more", rest.len()), vec![text(rest)]));
        }
        for axis in self.numeric() {
            let name = self.axes[axis].words();
            sections.push(Section::Heading(format!("Along {name}")));
            let lines = self.lines(axis);
            if self.axes.len() >= 2 {
                sections.push(folded(format!("Mean and harm along {name}"), lines));
            } else {
                sections.extend(lines);
            }
        }
        let limits = self.limits();
        if !limits.is_empty() {
            sections.push(Section::Heading("Where the time goes".into()));
            sections.push(folded("Mean completion times by what held flows back".into(), limits));
        }
        sections.push(Section::Heading("All points".into()));
        sections.push(folded(
            format!("{} points with intervals", self.points.len()),
            vec![Section::Table(self.table())],
        ));
        sections.push(Section::Heading("What the numbers mean".into()));
        let mut terms = measures::definitions(|name| SHOWN.contains(&name));
        terms.push((
                "gain".into(),
                format!("Mean completion time that a scheme saves over {} at a point, in per cent of the latter. At one point it may be chance.", self.base()),
            ));
        terms.push((
            "known to harm".into(),
            format!(
                "Others take more than {} % longer, by a 95 % interval that holds at once for all schemes of the point; harm is not \
                 known where the interval reaches over that. The verdict names the largest gain that is harmless at every point. \
                 Of forty points a scheme may be known to harm at one by chance.",
                digits(100.0 * MOST_HARM)
            ),
        ));
        terms.push((
                "crosses".into(),
                "Between the last value at which one scheme is faster and the first at which the other is, each by differences paired by seed \
                 whose 95 % interval does not hold zero; about where a straight line between the mean differences is zero."
                    .into(),
            ));
        sections.push(Section::Definitions(terms));
        let points = self.points.len();
        let axes: Vec<String> = self.axes.iter().map(SweptOption::words).collect();
        Report {
            title: "A sweep".into(),
            answer: self.answer().into_iter().map(|line| line + ".").collect(),
            lead: [
                Some(format!("{points} points over {}", axes.join(", "))),
                match words.len() {
                    0 | 1 => words.first().cloned(),
                    more => Some(format!("The order of two schemes crosses {more} times")),
                },
            ]
            .into_iter()
            .flatten()
            .map(|sentence| sentence + ".")
            .collect::<Vec<_>>()
            .join(" "),
            sections,
            provenance: Provenance {
                facts: vec![("points".into(), points.to_string())],
                plan: command.to_owned(),
            },
        }
    }
}

/// Three digits: it is an estimate.
fn short(value: f64) -> String {
    let digits = 2 - value.abs().log10().floor().clamp(-9.0, 9.0) as i32;
    let scale = 10_f64.powi(digits);
    let rounded = (value * scale).round() / scale;
    if digits <= 0 { format!("{rounded:.0}") } else { rounded.to_string() }
}

#[cfg(test)]
mod tests {
    use headstart_report::statistics::Interval;

    use super::*;
    use headstart_compare::verdict::HarmedFlows;

    fn point(typed: &[&str], numbers: &[f64], means: [[f64; 3]; 2]) -> PointResult {
        let row = |(scheme, by_seed): (&str, [f64; 3])| {
            let mean = Measured::positive(by_seed.into());
            let limited = Some(vec![mean.value / 2.0; 2]);
            Row {
                scheme: scheme.to_owned(),
                measured: SHOWN.map(|name| (name, mean.clone())).into(),
                harm: None,
                limited,
            }
        };
        PointResult {
            typed: typed.iter().map(|text| (*text).to_owned()).collect(),
            numbers: numbers.iter().map(|number| Some(*number)).collect(),
            rows: ["iw10", "jump-start"].into_iter().zip(means).map(row).collect(),
        }
    }

    /// JumpStart is faster at 10 % and slower at 50 %, at either RTT.
    fn kept(axes: Vec<SweptOption>, points: Vec<PointResult>, reference: Option<&'static str>) -> Sweep {
        let mut swept = Sweep { axes, reference, ..Sweep::default() };
        points.into_iter().for_each(|point| swept.keep(point));
        swept
    }

    fn sweep() -> Sweep {
        let axes = [("load", "%"), ("rtt", "ms")]
            .map(|(option, unit)| SweptOption { column: option.to_owned(), unit });
        let (fast, slow) =
            ([[100.0, 110.0, 105.0], [80.0, 91.0, 84.0]], [[100.0, 110.0, 105.0], [140.0, 151.0, 144.0]]);
        let mut points = vec![];
        for (load, percent, means) in [("10%", 10.0, fast), ("50%", 50.0, slow)] {
            for (rtt, ms) in [("20ms", 20.0), ("60ms", 60.0)] {
                points.push(point(&[load, rtt], &[percent, ms], means));
            }
        }
        kept(axes.into(), points, None)
    }

    #[test]
    fn the_report_has_lines_heat_maps_and_crossings() {
        let sweep = sweep();
        let words = sweep.crossings_in_words();
        assert_eq!(words.len(), 2, "{words:?}");
        assert!(
            words[0].starts_with(
                "jump-start is faster than iw10 up to load 10 %, slower from 50 % on (crosses at about 2"
            ) && words[0].ends_with("with rtt 20ms"),
            "{words:?}"
        );
        let html = sweep.report("headstart sweep").html();
        for part in [
            "Along load<",
            "load (%)",
            "Mean completion time along load, with rtt 20ms.",
            "Along rtt<",
            "rtt (ms)",
            "Where the order crosses",
            "Gain over iw10",
            ">19<",
            ">\u{2212}38<",
            ">load 10%<",
            ">60ms, jump-start<",
            ">85 ms<",
            "jump-start loses 9.52 % against iw10 in the median; it gains more than 5 % on 2 of 4 and loses more than that on 2.",
        ] {
            assert!(html.contains(part), "{part}");
        }
        assert_eq!(
            html.matches("<figure").count(),
            2 * 2 + 2 * 2 + 1 + 1,
            "two measures along each axis, one heat map, and where the time goes"
        );
    }

    #[test]
    fn a_scheme_that_harms_at_one_point_is_not_the_winner() {
        let mut swept = sweep();
        for point in &mut swept.points {
            let is_crowded = point.typed[0] == "50%";
            for row in &mut point.rows {
                row.measured.insert("mean_ms", Measured::positive(vec![90.0; 3]));
                let harm = |value: f64| Harm {
                    interval: Interval { value, low: value - 0.005, high: value + 0.005 },
                    harmed: HarmedFlows::ShortFlows,
                };
                row.harm = Some(harm(if row.scheme == "jump-start" && is_crowded { 1.2 } else { 1.0 }));
                if row.scheme == "jump-start" {
                    row.measured.insert("mean_ms", Measured::positive(vec![60.0; 3]));
                }
            }
            let mut third = point.rows[0].clone();
            third.scheme = "iw32".to_owned();
            third.measured.insert("mean_ms", Measured::positive(vec![81.0; 3]));
            point.rows.push(third);
        }
        swept.schemes.push("iw32".to_owned());
        assert_eq!(
            swept.verdict().expect("schemes"),
            "iw32 gains 10 % over iw10 in the median; it gains more than 5 % on 4 of 4 and loses more than that on \
             none; harmless on all 4. Known to harm others: jump-start on 2 of 4 (most: 1.200 [1.195, 1.205] at load 50%, \
             rtt 20ms)"
        );
        let html = swept.report("headstart sweep").html();
        assert_eq!(html.matches("harm: longer time of flows of iw10").count(), 2 * 2, "a map of each");
        assert!(html.contains(">20<") && !html.contains(">0?<"), "all is known");
        let wide = Interval { value: 1.0, low: 0.9, high: 1.1 };
        let open = swept.points[0].rows.last_mut().and_then(|row| row.harm.as_mut()).expect("iw32's");
        open.interval = wide;
        let verdict = swept.verdict().expect("schemes");
        assert!(
            verdict.starts_with(
                "No scheme is known to be harmless within 1 % at every point. iw32 gains 10 % over iw10 in the median; it \
                 gains more than 5 % on 4 of 4 and loses more than that on none; its harm is not known on 1 (most: 1.000 \
                 [0.900, 1.100] at load 10%, rtt 20ms). Known to harm others: jump-start"
            ),
            "{verdict}"
        );
        let unmeasured = swept.points[1].rows.last_mut().expect("iw32's");
        unmeasured.harm = None;
        let verdict = swept.verdict().expect("schemes");
        assert!(verdict.contains("its harm is not known on 2 (most: 1.000"), "{verdict}");
        assert!(swept.report("headstart sweep").html().contains(">0?<"));
    }

    #[test]
    fn two_hundred_points_have_one_verdict_and_a_heat_map_with_panels() {
        let (mut points, mut percent) = (vec![], vec![]);
        for number in 0..200 {
            let [load, rtt, size] = [number % 10, number / 10 % 5, number / 50].map(|it| it.to_string());
            // Of a fifth of the points 4 %, of the rest a share that grows to 40 %.
            let gain = if number % 5 == 0 { 0.04 } else { 0.4 * f64::from(number) / 200.0 };
            percent.push(100.0 * gain);
            let means = [[100.0; 3], [100.0 * (1.0 - gain); 3]];
            points.push(point(&[&load, &rtt, &size], &[f64::from(number); 3], means));
        }
        let axes = ["load", "rtt", "size"].map(|option| SweptOption { column: option.to_owned(), unit: "" });
        let swept = kept(axes.into(), points, Some("iw10"));
        percent.sort_by(f64::total_cmp);
        let more = percent.iter().filter(|gain| **gain > 5.0).count();
        assert_eq!(
            swept.verdict().expect("two schemes"),
            format!(
                "jump-start gains {} % over iw10 in the median; it gains more than 5 % on {more} of 200 and loses more than that on none",
                digits(f64::midpoint(percent[99], percent[100]))
            )
        );
        let html = swept.report("headstart sweep").html();
        let open = html.split("<details>").next().expect("the part that is not folded");
        assert_eq!(open.matches("<figure").count(), 1, "all gains stand in one figure");
        assert_eq!(open.matches("<rect ").count(), 200, "a cell for each point");
        assert!(
            open.contains(">jump-start: size 0<") && open.contains(">jump-start: size 3<"),
            "a panel for each"
        );
    }

    #[test]
    fn axes_have_the_units_that_people_write() {
        let cases = [
            ("rate_bits_per_s", 12.5e6, 12.5, "Mbit/s"),
            ("up_rate_bits_per_s", 1e6, 1.0, "Mbit/s"),
            ("buffer_bytes", 115_000.0, 115.0, "kB"),
            ("random_loss_share", 0.07, 7.0, "%"),
            ("rtt_s", 0.06, 60.0, "ms"),
            ("duration_s", 30.0, 30.0, "s"),
            ("buffer_packets", 100.0, 100.0, ""),
        ];
        for (column, value, expected, unit) in cases {
            let (found, factor) = drawn_unit(column);
            assert_eq!((scaled(value, factor), found), (expected, unit), "{column}");
        }
    }

    #[test]
    fn an_estimate_has_three_digits() {
        for (value, expected) in
            [(0.234_56, "0.235"), (12.345, "12.3"), (1_234_567.0, "1230000"), (50.0, "50")]
        {
            assert_eq!(short(value), expected);
        }
    }
}
