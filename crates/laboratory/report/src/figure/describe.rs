//! Say in a sentence what a figure shows, from its data.

use super::axis::Axis;
use super::draw::significant;
use super::series::{Point, Series};
use super::{Figure, Guide};

/// Names that a sentence lists before it only counts them.
const MAX_NAMES: usize = 6;

/// Describes the axes, the number of series, and the extremes.
pub(super) fn description(figure: &Figure) -> String {
    let mut text = String::new();
    if !figure.title.is_empty() {
        text.push_str(&figure.title);
        text.push_str(": ");
    }
    text.push_str(&figure.y.caption());
    text.push_str(" over ");
    text.push_str(&figure.x.caption());
    let shown: Vec<(&Series, &Point)> = figure
        .series
        .iter()
        .flat_map(|series| series.points.iter().map(move |point| (series, point)))
        .filter(|(_, point)| figure.x.can_show(point.x) && figure.y.can_show(point.y))
        .collect();
    let by_y = |a: &&(&Series, &Point), b: &&(&Series, &Point)| a.1.y.total_cmp(&b.1.y);
    let (Some(low), Some(high)) = (shown.iter().min_by(by_y), shown.iter().max_by(by_y)) else {
        text.push_str(". There are no data.");
        return text;
    };
    let names: Vec<&str> =
        figure.series.iter().map(|series| series.name.as_str()).filter(|name| !name.is_empty()).collect();
    match names.len() {
        0 => {}
        1..=MAX_NAMES => text.push_str(&format!(" of {}", names.join(", "))),
        count => text.push_str(&format!(" of {count} series")),
    }
    let end = |(series, point): &(&Series, &Point)| {
        let whose = if names.len() > 1 { format!("{}, ", series.name) } else { String::new() };
        format!("{} ({whose}at {})", value(&figure.y, point.y), value(&figure.x, point.x))
    };
    if low.1.y < high.1.y {
        text.push_str(&format!(". Lowest: {}; highest: {}.", end(low), end(high)));
    } else {
        text.push_str(&format!(". All values are {}.", value(&figure.y, low.1.y)));
    }
    for guide in &figure.guides {
        let (axis, at, name) = match guide {
            Guide::X(at, name) => (&figure.x, at, name),
            Guide::Y(at, name) => (&figure.y, at, name),
        };
        text.push_str(&format!(" A line marks {name} at {}.", value(axis, *at)));
    }
    text
}

/// A value with its axis' unit.
fn value(axis: &Axis, value: f64) -> String {
    let number = significant(value);
    if axis.unit.is_empty() { number } else { format!("{number} {}", axis.unit) }
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Figure, Guide, Mark, Point, Series, Style};

    #[test]
    fn a_description_locates_the_extremes() {
        let mut figure = Figure::new("", Axis::linear("harm", ""), Axis::linear("mean time", "ms"));
        assert_eq!(figure.description(), "mean time (ms) over harm. There are no data.");
        for (name, x, y) in [("a", 1.0, 312.46), ("b", 1.25, 173.0)] {
            figure.series.push(Series::new(name, Style::marks(Mark::Disc), [Point::new(x, y)]));
        }
        figure.guides.push(Guide::X(1.0, "no harm".into()));
        assert_eq!(
            figure.description(),
            "mean time (ms) over harm of a, b. Lowest: 173 ms (b, at 1.25); highest: 312.5 ms (a, at 1). \
             A line marks no harm at 1."
        );
    }

    #[test]
    fn the_description_of_a_figure_precedes_that_of_its_data() {
        let mut figure = Figure::new("T", Axis::linear("x", ""), Axis::linear("y", ""));
        figure.says = "Half of it.".into();
        assert!(figure.svg().as_str().contains("aria-label=\"Half of it.\""));
    }
}
