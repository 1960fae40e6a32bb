//! Series of a figure: points and their style.

use super::palette::Mark;

/// One value, perhaps with its uncertainty and a name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// Position along x, in the unit of the axis.
    pub x: f64,
    /// Position along y; a value that cannot be shown (infinite, not a number) interrupts the line.
    pub y: f64,
    /// Lower and upper end of the uncertainty in x.
    pub x_range: Option<(f64, f64)>,
    /// Lower and upper end of the uncertainty in y.
    pub y_range: Option<(f64, f64)>,
    /// Written beside the point, clear of other labels.
    pub label: Option<String>,
}

impl Point {
    /// A bare point.
    #[must_use]
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, ..Self::default() }
    }

    /// The point with an uncertainty in x.
    #[must_use]
    pub fn with_x_range(self, low: f64, high: f64) -> Self {
        Self { x_range: Some((low, high)), ..self }
    }

    /// The point with an uncertainty in y.
    #[must_use]
    pub fn with_y_range(self, low: f64, high: f64) -> Self {
        Self { y_range: Some((low, high)), ..self }
    }

    /// The point with a name next to it.
    #[must_use]
    pub fn labelled(self, label: &str) -> Self {
        Self { label: Some(label.into()), ..self }
    }
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Self {
        Self::new(x, y)
    }
}

/// Join between neighbouring points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Join {
    /// Not at all.
    None,
    /// By straight lines.
    #[default]
    Straight,
    /// By steps: a value holds until the next point's x.
    Steps,
}

/// Drawing of uncertainty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Uncertainty {
    /// A bar through each point that has one.
    #[default]
    Bars,
    /// One band along the line (y only).
    Band,
}

/// The looks of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Join between points.
    pub join: Join,
    /// The shape at each point, if any.
    pub mark: Option<Mark>,
    /// Drawing of uncertainty.
    pub uncertainty: Uncertainty,
    /// The look, of 24; by default the series' position. Give a scheme the same one in all figures.
    pub slot: Option<usize>,
    /// The dash of the line: 0 solid, 1 dashed, 2 dotted; that of the slot if not said.
    pub dash: Option<usize>,
    /// Left out of a page until the reader asks for all series; a drawing opened by itself has it.
    pub on_demand: bool,
}

impl Style {
    /// A line without marks.
    #[must_use]
    pub fn line() -> Self {
        Self::default()
    }

    /// A line with a mark at each point.
    #[must_use]
    pub fn line_and_marks() -> Self {
        Self { mark: Some(Mark::BySlot), ..Self::default() }
    }

    /// A step line.
    #[must_use]
    pub fn steps() -> Self {
        Self { join: Join::Steps, ..Self::default() }
    }

    /// Marks alone.
    #[must_use]
    pub fn marks(mark: Mark) -> Self {
        Self { join: Join::None, mark: Some(mark), ..Self::default() }
    }

    /// The style with the uncertainty as a band.
    #[must_use]
    pub fn with_band(self) -> Self {
        Self { uncertainty: Uncertainty::Band, ..self }
    }

    /// The style with the look of `slot`.
    #[must_use]
    pub fn with_slot(self, slot: usize) -> Self {
        Self { slot: Some(slot), ..self }
    }

    /// The style with this dash, whatever the slot: 0 solid, 1 dashed, 2 dotted.
    #[must_use]
    pub fn with_dash(self, dash: usize) -> Self {
        Self { dash: Some(dash), ..self }
    }

    /// The style, left out of a page until the reader asks for all series.
    #[must_use]
    pub fn on_demand(self) -> Self {
        Self { on_demand: true, ..self }
    }
}

/// Points that belong together, under one name in the legend.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name of the series in the legend.
    pub name: String,
    /// Points, in the order in which they are joined.
    pub points: Vec<Point>,
    /// Style of the series.
    pub style: Style,
}

impl Series {
    /// A series of `points`.
    #[must_use]
    pub fn new<P: Into<Point>>(name: &str, style: Style, points: impl IntoIterator<Item = P>) -> Self {
        Self { name: name.into(), points: points.into_iter().map(Into::into).collect(), style }
    }

    /// The marks of one kind of packet in a time-sequence plot.
    #[must_use]
    pub fn packets<P: Into<Point>>(kind: PacketKind, points: impl IntoIterator<Item = P>) -> Self {
        let (mark, slot) = kind.mark_and_slot();
        Self::new(kind.name(), Style::marks(mark).with_slot(slot), points)
    }
}

/// Kind of a packet in a time-sequence plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketKind {
    /// Data sent for the first time.
    Sent,
    /// The highest byte acknowledged.
    Acked,
    /// Data that was dropped or declared lost.
    Lost,
    /// Data sent again because it was thought lost.
    Retransmitted,
    /// Data sent again before anything was known to be lost.
    Copied,
}

impl PacketKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Sent, Self::Acked, Self::Lost, Self::Retransmitted, Self::Copied];

    /// Name of the kind in the legend.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Acked => "acknowledged",
            Self::Lost => "lost",
            Self::Retransmitted => "retransmitted",
            Self::Copied => "proactive copy",
        }
    }

    /// Mark and slot: no two kinds share a shape or a colour.
    fn mark_and_slot(self) -> (Mark, usize) {
        match self {
            Self::Sent => (Mark::Dot, 0),
            Self::Acked => (Mark::Dash, 2),
            Self::Lost => (Mark::Cross, 1),
            Self::Retransmitted => (Mark::Triangle, 3),
            Self::Copied => (Mark::Ring, 4),
        }
    }
}
