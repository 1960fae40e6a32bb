//! Decide where the names of the series stand, and draw them there.

use super::canvas::{Canvas, PathData, Place, shorten, text_width};
use super::draw::data::{mark_path, series_class, series_dash};
use super::series::{Join, Series};
use super::{Figure, Role};

const FONT: f64 = 12.0;
const LINE: f64 = 17.0;
const SAMPLE: f64 = 26.0;
const GAP: f64 = 14.0;
/// The widest legend that may stand beside the plot: more would squeeze the plot.
const WIDEST_RIGHT: f64 = 170.0;

#[derive(Clone, Copy, Debug)]
pub(super) struct LegendEntry<'a> {
    series: &'a Series,
    index: usize,
    /// True if it stands for series of several colours.
    is_plain: bool,
    /// The series whose line covers its line.
    under: Option<&'a str>,
}

impl LegendEntry<'_> {
    /// The name, and where the line is if it cannot be seen.
    fn text(&self) -> String {
        let name = &self.series.name;
        self.under.map_or_else(|| name.clone(), |other| format!("{name} (under {other})"))
    }
}

/// The lines of a figure's legend. Series shown only on demand come last: no gaps.
pub(super) fn entries(figure: &Figure) -> Vec<LegendEntry<'_>> {
    let is_plain = matches!(figure.role, Role::Overlay { .. });
    let covered = if is_plain { vec![] } else { figure.covered() };
    let mut entries: Vec<LegendEntry<'_>> = Vec::new();
    for (index, series) in figure.series.iter().enumerate() {
        if !is_plain || entries.iter().all(|entry| entry.series.name != series.name) {
            let under = covered.get(index).copied().flatten();
            entries.push(LegendEntry { series, index, is_plain, under });
        }
    }
    entries.sort_by_key(|entry| entry.series.style.on_demand);
    entries
}

/// The legend's place in the drawing, decided before the plot's size is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Layout {
    None,
    Right {
        width: f64,
    },
    /// One row below, each name as wide as it is.
    Row,
    /// Columns below, all as wide as the widest name.
    Below {
        columns: usize,
        column_width: f64,
        rows: usize,
    },
}

impl Layout {
    /// Chooses for `entries` in a drawing that is `width` wide: below while that takes one or two
    /// rows, else to the right if names are short. There is none if every series labels its points,
    /// or if the only series has no name.
    pub fn choose(entries: &[LegendEntry<'_>], width: f64) -> Self {
        let names: Vec<String> = entries.iter().map(LegendEntry::text).collect();
        let labelled = |one: &LegendEntry<'_>| {
            let points = &one.series.points;
            !points.is_empty() && points.iter().all(|p| p.label.is_some())
        };
        let needless = entries.iter().all(labelled) || names.iter().all(|name| name.is_empty());
        if needless {
            return Self::None;
        }
        let entry = names.iter().map(|name| entry_width(name)).fold(0.0, f64::max);
        let column_width = (entry + GAP).min(width);
        let columns = ((width / column_width).floor() as usize).clamp(1, names.len());
        let rows = names.len().div_ceil(columns);
        let together: f64 = names.iter().map(|name| entry_width(name) + GAP).sum();
        if together <= width + GAP {
            Self::Row
        } else if rows > 2 && entry <= WIDEST_RIGHT {
            Self::Right { width: entry }
        } else {
            Self::Below { columns, column_width, rows }
        }
    }

    /// Height it needs beside the plot.
    pub fn height_beside(self, count: usize) -> f64 {
        if matches!(self, Self::Right { .. }) { count as f64 * LINE } else { 0.0 }
    }

    /// Width it takes from the plot.
    pub fn width_beside(self) -> f64 {
        if let Self::Right { width } = self { width + GAP } else { 0.0 }
    }

    /// Height it takes below the axis.
    pub fn height_below(self) -> f64 {
        match self {
            Self::Below { rows, .. } => rows as f64 * LINE + 8.0,
            Self::Row => LINE + 8.0,
            Self::None | Self::Right { .. } => 0.0,
        }
    }

    /// Draws it with its upper left corner at `corner`.
    pub fn draw(self, canvas: &mut Canvas, entries: &[LegendEntry<'_>], corner: Place) {
        let (columns, column_width, width) = match self {
            Self::None => return,
            Self::Row => (entries.len(), 0.0, f64::INFINITY),
            Self::Right { width } => (1, width, width),
            Self::Below { columns, column_width, .. } => (columns, column_width, column_width - GAP),
        };
        let mut along_row = corner.0;
        canvas.open("g", &[("fill", "currentColor".into()), ("font-size", FONT.into())]);
        for (index, entry) in entries.iter().enumerate() {
            let one = entry.series;
            let x = if self == Self::Row {
                along_row
            } else {
                corner.0 + (index % columns) as f64 * column_width
            };
            let text = entry.text();
            along_row += entry_width(&text) + GAP;
            let y = corner.1 + (index / columns) as f64 * LINE + LINE / 2.0;
            let kept = if one.style.on_demand { "more" } else { "" };
            canvas.open("g", &[("class", kept.into()), ("data-name", one.name.as_str().into())]);
            canvas.text("title", &[], &one.name);
            let colour = if entry.is_plain { String::new() } else { series_class(one, entry.index) };
            canvas.open("g", &[("class", colour.as_str().into())]);
            sample(canvas, one, entry.index, (x, y));
            canvas.close();
            let name = shorten(&text, FONT, width - SAMPLE - 6.0);
            canvas.text(
                "text",
                &[
                    ("x", (x + SAMPLE + 6.0).into()),
                    ("y", (y + 4.2).into()),
                    ("font-weight", "normal".into()),
                ],
                &name,
            );
            canvas.close();
        }
        canvas.close();
    }
}

/// Width of a name together with its sample.
fn entry_width(name: &str) -> f64 {
    // A reader's font may be a little wider.
    SAMPLE + 6.0 + text_width(name, FONT) * 1.05
}

/// A piece of the line with its mark.
fn sample(canvas: &mut Canvas, series: &Series, index: usize, (x, y): Place) {
    if series.style.join != Join::None {
        let attributes = [
            ("stroke", "currentColor".into()),
            ("stroke-width", 1.8.into()),
            ("stroke-dasharray", series_dash(series, index).into()),
        ];
        canvas.line((x, y), (x + SAMPLE, y), &attributes);
    }
    if let Some(mark) = series.style.mark {
        let mut data = PathData::default();
        let mark = mark.resolve(series.style.slot.unwrap_or(index));
        data.move_to((x + SAMPLE / 2.0, y));
        data.raw(mark.commands());
        mark_path(canvas, &data, mark);
    }
}
