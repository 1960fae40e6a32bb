//! Figures of a sweep: lines along each axis, heat maps over two, and bars by what held flows back.

use headstart_startup::sending::LimitedBy;

use super::gains::Gain;
use super::{PointResult, Row, Sweep};
use headstart_compare::verdict::HarmVerdict;
use headstart_report::figure::{
    Axis, Figure, Guide, HeatMap, HeatPanel, Point as Mark, Series, StackedBars, Style,
};
use headstart_report::page::Section;

/// Most drawings of a kind; the number left out is printed.
const MAX_DRAWINGS: usize = 8;
/// Schemes with bars in addition to the reference, by the largest gains; and most bars of one
/// drawing.
const MOST_BESIDE: usize = 3;
const MOST_BARS: usize = 60;
/// Most panels of a scheme.
const MAX_PANELS: usize = 60;
/// Most panels of one heat map: text of more is too small on a printed page.
const PANELS: usize = 5;
/// The legend of heat maps.
const COLOURS: &str = "Blue gains, orange loses: the full blue is a gain of 50 % and more, the full orange a loss of 100 % and more.";

const HARM_COLOURS: &str = "Of short and of long flows the worse. Orange is harm, full at 25 % and more; a question mark: not known within 1 %, by the intervals of the point.";
/// Ratios of the fullest colours.
const FULL_GAIN: f64 = 2.0;
const FULL_HARM: f64 = 1.25;

/// The number in the cells of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MapOf {
    /// Gain over the reference.
    Gain,
    /// Harm to others.
    Harm,
}

impl Sweep {
    pub(super) fn lines(&self, axis: usize) -> Vec<Section> {
        let mut sections = vec![];
        let groups = self.along(&[axis]);
        let name = self.axes[axis].words();
        let schemes = self.schemes();
        let picked = [("Mean completion time", "ms", "mean_ms"), ("Harm", "", "harm")];
        for (others, points) in groups.iter().take(MAX_DRAWINGS) {
            for (title, unit, measure) in picked {
                let mut figure =
                    Figure::new("", Axis::linear(&name, self.axes[axis].unit), Axis::linear(title, unit));
                for (slot, scheme) in schemes.iter().enumerate() {
                    let mut marks: Vec<Mark> = vec![];
                    for point in points {
                        let found = point.rows.iter().find(|row| row.scheme == *scheme);
                        let (Some(x), Some(row)) = (point.numbers[axis], found) else { continue };
                        let measured = &row.measured[measure];
                        if !measured.value.is_finite() {
                            continue;
                        }
                        let mark = Mark::new(x, measured.value);
                        let is_bounded = measured.low.is_finite() && measured.high.is_finite();
                        marks.push(if is_bounded {
                            mark.with_y_range(measured.low, measured.high)
                        } else {
                            mark
                        });
                    }
                    marks.sort_by(|one, other| one.x.total_cmp(&other.x));
                    figure.series.push(Series::new(scheme, Style::line_and_marks().with_slot(slot), marks));
                }
                if unit.is_empty() {
                    figure.guides.push(Guide::Y(1.0, "no harm".into()));
                }
                let with = if others.is_empty() { String::new() } else { format!(", with {others}") };
                let caption = format!("{title} along {name}{with}. Bars are 95 % intervals over the seeds.");
                sections.push(Section::Figure { svg: figure.svg(), caption });
            }
        }
        sections.extend(left_out(groups.len(), MAX_DRAWINGS, "combinations of the other options"));
        sections
    }

    /// The values of an axis, in the order of the points.
    fn values(&self, axis: usize) -> Vec<String> {
        let mut values: Vec<String> = vec![];
        for point in &self.points {
            if !values.contains(&point.typed[axis]) {
                values.push(point.typed[axis].clone());
            }
        }
        values
    }

    /// A value of a scheme at these points over the first two axes.
    fn panel(&self, title: &str, scheme: &str, points: &[&PointResult], map: MapOf) -> HeatPanel {
        let percent = |ratio: f64| format!("{:.0}", (100.0 * ratio).round() + 0.0).replace('-', "\u{2212}");
        let value = |row: &String, column: &String| -> Option<(f64, String)> {
            let is_it = |point: &&&PointResult| point.typed[0] == *column && point.typed[1] == *row;
            let point = points.iter().find(is_it)?;
            match map {
                MapOf::Gain => {
                    let ratio = point.ratio(scheme, self.base())?;
                    Some((ratio, percent(1.0 - ratio)))
                }
                MapOf::Harm => {
                    let (harm, verdict) = Self::harm(point, scheme)?;
                    let sign = if verdict == HarmVerdict::NotKnown { "?" } else { "" };
                    Some((harm.interval.value, percent(harm.interval.value - 1.0) + sign))
                }
            }
        };
        let columns = self.values(0);
        let (mut cells, mut texts) = (vec![], vec![]);
        for row in self.values(1) {
            let line: Vec<Option<(f64, String)>> = columns.iter().map(|column| value(&row, column)).collect();
            cells.push(line.iter().map(|cell| cell.as_ref().map(|(ratio, _)| *ratio)).collect());
            texts.push(line.into_iter().map(|cell| cell.unwrap_or_default().1).collect());
        }
        HeatPanel { title: title.to_owned(), cells, texts }
    }

    fn heat_map(&self, panels: Vec<HeatPanel>, says: &str, full: f64) -> HeatMap {
        HeatMap {
            columns: (self.axes[0].words(), self.values(0)),
            rows: (self.axes[1].words(), self.values(1)),
            panels,
            says: says.to_owned(),
            width: HeatMap::WIDTH,
            full,
        }
    }

    /// The gains of all schemes over two axes, a panel for each scheme, with a caption; `None`
    /// where there is nothing to compare.
    pub fn multiples(&self, width: f64) -> Option<(headstart_report::figure::Svg, String)> {
        let [(_, points)] = &self.along(&[0, 1])[..] else { return None };
        if self.axes.len() < 2 {
            return None;
        }
        let panel = |gain: Gain| self.panel(&gain.scheme, &gain.scheme, points, MapOf::Gain);
        let panels: Vec<HeatPanel> = self.gains().into_iter().map(panel).collect();
        let says = format!("Gain over {} in per cent of the mean completion time", self.base());
        let map = HeatMap { width, ..self.heat_map(panels, &says, FULL_GAIN) };
        let verdict = self.verdict()?;
        Some((map.svg(), format!("{says}. {COLOURS} {verdict}.")))
    }

    /// Gain or harm of each scheme over the first two axes, in a panel for each group of the
    /// others.
    pub(super) fn heat_maps(&self, of: MapOf) -> Vec<Section> {
        let base = self.base();
        let has_harm = self.points.iter().flat_map(|point| &point.rows).any(|row| row.harm.is_some());
        if of == MapOf::Harm && !has_harm {
            return vec![];
        }
        let groups = self.along(&[0, 1]);
        let gains = self.gains();
        let shown = &groups[..groups.len().min(MAX_PANELS)];
        let maps = |gain: &Gain| -> Vec<Section> {
            let scheme = &gain.scheme;
            let panel = |(group, points): &(String, Vec<&PointResult>)| {
                let title = if group.is_empty() { scheme.clone() } else { format!("{scheme}: {group}") };
                self.panel(&title, scheme, points, of)
            };
            let count = shown.len().div_ceil(PANELS);
            let map = |(number, some): (usize, &[(String, Vec<&PointResult>)])| {
                let part = if count > 1 { format!(" ({} of {count})", number + 1) } else { String::new() };
                let (says, colours, full) = match of {
                    MapOf::Gain => ("gain over", COLOURS, FULL_GAIN),
                    MapOf::Harm => ("harm: longer time of flows of", HARM_COLOURS, FULL_HARM),
                };
                let share = if of == MapOf::Gain { " of the mean completion time" } else { "" };
                let says = format!("{scheme}: {says} {base} in per cent{share}{part}");
                let map = self.heat_map(some.iter().map(panel).collect(), &says, full);
                Section::Figure { svg: map.svg(), caption: format!("{says}. {colours}") }
            };
            shown.chunks(PANELS).enumerate().map(map).collect()
        };
        let mut sections: Vec<Section> = gains.iter().take(MAX_DRAWINGS).flat_map(maps).collect();
        sections.extend(left_out(gains.len(), MAX_DRAWINGS, "schemes"));
        sections.extend(left_out(groups.len(), MAX_PANELS, "combinations of the other options"));
        sections
    }

    /// Completion times by what held flows back. If three or more options vary, there is a drawing
    /// for each value of the first. Groups are by all others but the last, bars by the last and the
    /// scheme.
    pub(super) fn limits(&self) -> Vec<Section> {
        let count = self.axes.len();
        let (drawings, groups) = (usize::from(count >= 3), count.saturating_sub(1).max(count.min(1)));
        let beside: Vec<String> =
            self.gains().into_iter().take(MOST_BESIDE).map(|gain| gain.scheme).collect();
        let words = |point: &PointResult, axes: std::ops::Range<usize>| {
            let words = axes.map(|axis| format!("{} {}", self.axes[axis].words(), point.typed[axis]));
            words.collect::<Vec<_>>().join(", ")
        };
        let (mut drawn, mut left) = (vec![], 0);
        for point in &self.points {
            let (title, group) = (words(point, 0..drawings), words(point, drawings..groups));
            let is_shown = |row: &&Row| row.scheme == self.base() || beside.contains(&row.scheme);
            for row in point.rows.iter().filter(is_shown) {
                let Some(limited) = row.limited.clone() else { continue };
                if drawn.last().is_none_or(|(known, _)| *known != title) {
                    let with = if title.is_empty() { String::new() } else { format!(", with {title}") };
                    let bars = StackedBars {
                        parts: LimitedBy::ALL.map(|by| by.as_str().to_owned()).to_vec(),
                        rows: vec![],
                        groups: vec![],
                        unit: "ms".into(),
                        says: format!(
                            "Mean completion time of flows by what held back the next packet{with}"
                        ),
                    };
                    drawn.push((title.clone(), bars));
                }
                let Some((_, StackedBars { rows: bars, groups: known, .. })) = drawn.last_mut() else {
                    continue;
                };
                if bars.len() == MOST_BARS {
                    left += 1;
                    continue;
                }
                let name = [&point.typed[groups..], std::slice::from_ref(&row.scheme)].concat().join(", ");
                bars.push((name, limited));
                match known.last_mut().filter(|(name, _)| *name == group) {
                    Some((_, count)) => *count += 1,
                    None => known.push((group.clone(), 1)),
                }
            }
        }
        let figure = |(_, bars): &(String, StackedBars)| Section::Figure {
            svg: bars.svg(),
            caption: format!("{}. Each group has a scale of its own.", bars.says),
        };
        let mut sections: Vec<Section> = drawn.iter().take(MAX_DRAWINGS).map(figure).collect();
        sections.extend(left_out(drawn.len(), MAX_DRAWINGS, "combinations of the other options"));
        sections.extend(left_out(left, 0, "bars"));
        sections
    }
}

fn left_out(count: usize, drawn: usize, what: &str) -> Option<Section> {
    let more = count.checked_sub(drawn).filter(|more| *more > 0)?;
    Some(Section::Text(format!("{more} more {what} are not drawn; sweep.csv has all.")))
}
