//! Draw figures as SVG: line charts, distributions, labelled scatters, time-sequence plots, steps.
//!
//! A [`Figure`] is plain data; [`Figure::svg`] draws it 720 pixels wide. Text and axes take the colour of
//! the surrounding page (`currentColor`), so one drawing serves light and dark; opened by itself, a drawing
//! brings its own background. There is no script, no outside reference and no identifier, so that any number
//! of figures can stand in one page. The same figure gives the same bytes, on any machine.
//!
//! ```
//! use headstart_report::figure::{Axis, Figure, Series, Style};
//!
//! let mut figure = Figure::new("Completion time", Axis::linear("load", "%"), Axis::linear("mean", "ms"));
//! figure.series.push(Series::new("iw10", Style::line_and_marks(), [(10.0, 310.0), (50.0, 350.0)]));
//! assert!(figure.svg().as_str().starts_with("<svg "));
//! ```

mod axis;
mod canvas;
mod draw;
mod label;
mod legend;
mod palette;
mod series;

use std::fmt;

pub use axis::{Axis, Range, Scale, Tick};
pub use legend::Legend;
pub use palette::Mark;
pub use series::{Join, PacketKind, Point, Series, Style, Uncertainty};

/// Everything a drawing shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Above the drawing, and its name for those who hear it; may be empty if the page has a caption.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn; later series above earlier ones.
    pub series: Vec<Series>,
    /// Straight lines across the plot, e.g. the capacity or the size of the buffer.
    pub guides: Vec<Guide>,
    /// Where names of series stand.
    pub legend: Legend,
    /// Height of the area between the axes, in pixels; a legend beside it may stretch it.
    pub plot_height: f64,
}

impl Figure {
    /// A figure without content.
    #[must_use]
    pub fn new(title: &str, x: Axis, y: Axis) -> Self {
        Self {
            title: title.into(),
            x,
            y,
            series: Vec::new(),
            guides: Vec::new(),
            legend: Legend::Auto,
            plot_height: 340.0,
        }
    }

    /// The drawing.
    #[must_use]
    pub fn svg(&self) -> Svg {
        Svg(draw::draw(self))
    }
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
/// Only [`Figure::svg`] makes one, so whoever holds it may put it into a page as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Svg(String);

impl Svg {
    /// The drawing as text, a complete SVG file.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Svg {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
