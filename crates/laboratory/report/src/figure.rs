//! Draw figures as SVG: line charts, distributions, labelled scatters, time-sequence plots, steps.
//!
//! A [`Figure`] is plain data; [`Figure::svg`] draws it 840 pixels wide. Text and axes take the
//! colour of the surrounding page (`currentColor`) and series that of a class, so one drawing
//! serves light and dark. Opened by itself, a drawing brings its own colours. There is no script,
//! no outside reference and no identifier, so that any number of figures can stand in one page.
//! Attributes say what a page's script needs to read values: ends of the axes (`data-x`, `data-y`),
//! names of series (`data-name`) and, where points are few, their values (`data-points`). The same
//! figure gives the same bytes, on any machine.
//!
//! ```
//! use headstart_report::figure::{Axis, Figure, Series, Style};
//!
//! let (load, mean) = (Axis::linear("load", "%"), Axis::linear("mean", "ms"));
//! let mut figure = Figure::new("Completion time", load, mean);
//! let points = [(10.0, 310.0), (50.0, 350.0)];
//! figure.series.push(Series::new("iw10", Style::line_and_marks(), points));
//! assert!(figure.svg().as_str().starts_with("<svg "));
//! ```

mod axis;
mod bars;
mod canvas;
mod describe;
mod draw;
mod heat;
mod label;
mod legend;
mod palette;
mod series;

use std::fmt;

pub use axis::{Axis, Range, Scale, Tick};
pub use bars::StackedBars;
pub use heat::{HeatMap, HeatPanel};
pub use palette::Mark;
pub(crate) use palette::style_sheet;
pub use series::{Join, PacketKind, Point, Series, Style, Uncertainty};

/// Everything a drawing shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Above the drawing; may be empty if the page has a caption.
    pub title: String,
    /// The drawing in a sentence, for those who do not see it; empty: made from the data.
    pub says: String,
    /// Role of the figure where a page combines figures.
    pub role: Role,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Series, later ones drawn above earlier ones.
    pub series: Vec<Series>,
    /// Straight lines across the plot, e.g. the capacity or the size of the buffer.
    pub guides: Vec<Guide>,
    /// Height of the area between the axes, in pixels; a legend beside it may stretch it.
    pub plot_height: f64,
    /// Width of the whole drawing, in pixels: a page shows it as wide as itself.
    pub width: f64,
}

impl Figure {
    /// Width in a report, in pixels.
    pub const WIDTH: f64 = draw::WIDTH;

    /// A figure without content.
    #[must_use]
    pub fn new(title: &str, x: Axis, y: Axis) -> Self {
        Self {
            title: title.into(),
            says: String::new(),
            role: Role::Plain,
            x,
            y,
            series: Vec::new(),
            guides: Vec::new(),
            plot_height: 340.0,
            width: Self::WIDTH,
        }
    }

    /// The drawing.
    #[must_use]
    pub fn svg(&self) -> Svg {
        let kept = self.series.iter().filter(|series| !series.style.on_demand).count();
        Svg { text: draw::draw(self), series: (kept, self.series.len()) }
    }

    /// The drawing in a sentence: what was said of it, or what its data say.
    #[must_use]
    pub fn description(&self) -> String {
        if self.says.is_empty() { describe::description(self) } else { self.says.clone() }
    }

    /// Names of series whose lines lie exactly on one another, in groups of two and more.
    #[must_use]
    pub fn coinciding(&self) -> Vec<Vec<&str>> {
        let places = |series: &Series| -> Vec<(u64, u64)> {
            series.points.iter().map(|point| (point.x.to_bits(), point.y.to_bits())).collect()
        };
        let mut groups: std::collections::BTreeMap<Vec<(u64, u64)>, Vec<&str>> = Default::default();
        for series in self.series.iter().filter(|series| !series.points.is_empty()) {
            groups.entry(places(series)).or_default().push(&series.name);
        }
        let mut groups: Vec<Vec<&str>> = groups.into_values().filter(|names| names.len() > 1).collect();
        let position = |names: &Vec<&str>| self.series.iter().position(|series| series.name == names[0]);
        groups.sort_by_key(position);
        groups
    }

    /// For each series the name of a later one whose solid line covers its line.
    fn covered(&self) -> Vec<Option<&str>> {
        let height = |y: f64| if self.y.scale == Scale::Logarithmic { y.ln() } else { y };
        let shown = |series: &Series| -> Vec<(f64, f64)> {
            let points = series.points.iter().map(|point| (point.x, height(point.y)));
            points.filter(|(x, y)| x.is_finite() && y.is_finite()).collect()
        };
        let all: Vec<Vec<(f64, f64)>> = self.series.iter().map(shown).collect();
        let heights = || all.iter().flatten().map(|(_, y)| *y);
        let (low, high) = heights().fold((f64::MAX, f64::MIN), |(low, high), y| (low.min(y), high.max(y)));
        // A line is nearly two pixels wide.
        let near = (high - low) * 1.5 / self.plot_height;
        let covers = |lower: usize, upper: usize| {
            let [below, above] = [lower, upper].map(|index| &self.series[index].style);
            let is_line = below.join != Join::None && above.join == below.join;
            let is_seen = draw::data::series_dash(&self.series[upper], upper) != "none"
                || (above.on_demand && !below.on_demand);
            let mut pairs = all[lower].iter().zip(&all[upper]);
            let meets = |(one, other): (&(f64, f64), &(f64, f64))| {
                one.0.to_bits() == other.0.to_bits() && (one.1 - other.1).abs() <= near
            };
            let count = all[lower].len();
            is_line && !is_seen && count > 1 && count == all[upper].len() && pairs.all(meets)
        };
        let count = self.series.len();
        let upper = |lower: usize| (lower + 1..count).rev().find(|upper| covers(lower, *upper));
        (0..count).map(|lower| upper(lower).map(|upper| self.series[upper].name.as_str())).collect()
    }

    /// Two drawings of the same view over one another: the first in the first colour, the second in
    /// the second. Axes, height and guides' positions are the first's where the two differ.
    #[must_use]
    pub fn overlay(first: &Self, second: &Self) -> Self {
        let layer = |figure: &Self, slot: usize| -> Vec<Series> {
            let style =
                |series: &Series| Style { dash: Some(series.style.dash.unwrap_or(0)), ..series.style };
            figure
                .series
                .iter()
                .map(|series| Series { style: style(series).with_slot(slot), ..series.clone() })
                .collect()
        };
        let view = match &first.role {
            Role::Of { view, .. } | Role::Overlay { view } => view.clone(),
            Role::Plain => String::new(),
        };
        let mut series = layer(first, 0);
        series.extend(layer(second, 1));
        Self { role: Role::Overlay { view }, series, guides: vec![], ..first.clone() }
    }
}

/// Role of a drawing where a page combines several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Not at all.
    #[default]
    Plain,
    /// The figure shows one subject, e.g. a scheme; drawings of the same view can be laid over one
    /// another.
    Of {
        /// Whose it is.
        subject: String,
        /// The aspect shown, e.g. `sequence`: one word.
        view: String,
        /// Said beside its name where it is one of an overlay, e.g. `complete after 433 ms`.
        note: String,
    },
    /// Two subjects' drawings of this view, over one another. The legend has each kind of series
    /// once, without colour.
    Overlay {
        /// The view: a word.
        view: String,
    },
}

/// A labelled line at one value of an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Guide {
    /// A vertical line at this x.
    X(f64, String),
    /// A horizontal line at this y.
    Y(f64, String),
}

/// A finished drawing.
///
/// Only [`Figure::svg`] makes one, so it may be put into a page as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Svg {
    text: String,
    /// How many series a page shows at first, and how many there are.
    series: (usize, usize),
}

impl Svg {
    /// The drawing as text, a complete SVG file.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn series(&self) -> (usize, usize) {
        self.series
    }

    /// The drawing without the colours that it has when opened by itself: a page has its own.
    #[must_use]
    pub fn inline(&self) -> String {
        self.text.replacen(&draw::standalone_sheet(), "", 1)
    }
}

impl fmt::Display for Svg {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
