//! Figures as a whole: bytes, escaping, and what a reader of the drawing relies on.

use super::*;

fn crowded() -> Figure {
    let mut figure = Figure::new(
        "Load",
        Axis::linear("offered load", "%"),
        Axis::logarithmic("mean completion time", "ms"),
    );
    for index in 0..24_u32 {
        let points = (1..10).map(|step| {
            let y = 100.0 * f64::from(index + 1) / f64::from(10 - step);
            Point::new(f64::from(step * 10), y).with_y_range(y * 0.9, y * 1.1)
        });
        figure.series.push(Series::new(&format!("scheme-{index}"), Style::line_and_marks(), points));
    }
    figure.guides.push(Guide::Y(150.0, "twice the round trip".into()));
    figure
}

/// Every start tag has its end tag, in order.
fn assert_balanced(svg: &str) {
    let mut open = Vec::new();
    for piece in svg.split('<').skip(1) {
        let (tag, _) = piece.split_once('>').expect("every tag is closed");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().expect("a name"));
        }
    }
    assert!(open.is_empty(), "{open:?} left open");
}

#[test]
fn the_same_figure_gives_the_same_bytes() {
    let svg = crowded().svg();
    assert_eq!(svg, crowded().svg());
    assert_balanced(svg.as_str());
}

#[test]
fn a_small_figure_is_drawn_to_the_byte() {
    let mut figure = Figure::new("T", Axis::linear("x", "s"), Axis::linear("y", ""));
    figure.series.push(Series::new("a", Style::steps(), [(0.0, 0.0), (1.0, 2.0), (2.0, 1.0)]));
    let svg = figure.svg();
    // The plot lies from 39.2 to 820 across and 56 to 396 down: the corners of the steps.
    assert!(svg.as_str().contains("d=\"M39.2 396L429.6 396L429.6 56L820 56L820 226\""), "{svg}");
    // What a page's script reads.
    let said = "data-box=\"39.2 56 820 396\" data-x=\"0|2|linear|x|s\" data-y=\"0|2|linear|y|\"";
    assert!(svg.as_str().contains(said), "{svg}");
    assert!(svg.as_str().contains("data-name=\"a\" data-points=\"0 0;1 2;2 1\""), "{svg}");
}

#[test]
fn names_cannot_break_out() {
    let evil = "</title><script>alert(1)</script>\"'&";
    let mut figure = Figure::new(evil, Axis::linear(evil, evil), Axis::linear(evil, evil));
    figure.series.push(Series::new(evil, Style::marks(Mark::Disc), [Point::new(1.0, 1.0).labelled(evil)]));
    figure.guides.push(Guide::X(1.0, evil.into()));
    for legend in [Legend::Below, Legend::Right] {
        figure.legend = legend;
        let svg = figure.svg();
        assert!(!svg.as_str().contains("<script"), "{svg}");
        assert_balanced(svg.as_str());
    }
}

#[test]
fn nothing_that_is_no_number_reaches_the_drawing() {
    let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -1.0, 1.0, 1e300, f64::MIN_POSITIVE];
    for scale in [Scale::Linear, Scale::Logarithmic] {
        let axis = Axis { scale, ..Axis::linear("a", "b") };
        for style in [Style::line_and_marks().with_band(), Style::steps(), Style::marks(Mark::Plus)] {
            let mut figure = Figure::new("", axis.clone(), axis.clone());
            let points = values.iter().flat_map(|&x| {
                values.map(|y| {
                    Point::new(x, y).with_y_range(y, f64::NAN).with_x_range(x, x * 2.0).labelled("p")
                })
            });
            figure.series.push(Series::new("s", style, points));
            let svg = figure.svg();
            assert!(!svg.as_str().contains("NaN") && !svg.as_str().contains("inf"), "{svg}");
        }
    }
}

#[test]
fn an_empty_figure_says_so() {
    let figure = Figure::new("", Axis::linear("x", ""), Axis::logarithmic("y", ""));
    assert!(figure.svg().as_str().contains("no data"));
}

#[test]
fn a_gap_interrupts_the_line() {
    let mut figure = Figure::new("", Axis::linear("x", ""), Axis::linear("y", ""));
    figure.series.push(Series::new(
        "a",
        Style::line(),
        [(0.0, 1.0), (1.0, f64::NAN), (2.0, 1.0), (3.0, 2.0)],
    ));
    let svg = figure.svg();
    let line = svg.as_str().split("<path class=\"line\" d=\"").nth(1).expect("a line");
    assert_eq!(line.split('"').next().map(|data| data.matches('M').count()), Some(2));
}

#[test]
fn a_million_points_stay_a_small_file() {
    let mut figure = Figure::new("", Axis::linear("t", "s"), Axis::linear("queue", "packets"));
    let points = (0..1_000_000_u32).map(|i| (f64::from(i), f64::from(i.wrapping_mul(2_654_435_761) >> 24)));
    figure.series.push(Series::new("queue", Style::steps(), points));
    let bytes = figure.svg().as_str().len();
    assert!(bytes < 150_000, "{bytes}");
}

#[test]
fn a_legend_of_many_stands_beside_and_of_few_below() {
    let figure = crowded();
    let drawn = figure.svg();
    assert!((0..24).all(|index| drawn.as_str().contains(&format!(">scheme-{index}</text>"))));
    let width = 696.0;
    assert!(matches!(
        legend::Layout::choose(Legend::Auto, &legend::entries(&figure), width),
        legend::Layout::Right { .. }
    ));
    assert_eq!(
        legend::Layout::choose(Legend::Auto, &legend::entries(&figure)[..3], width),
        legend::Layout::Row
    );
    let below = legend::Layout::choose(Legend::Below, &legend::entries(&figure), width);
    assert!(matches!(below, legend::Layout::Below { rows: 5, columns: 5, .. }), "{below:?}");
    assert_eq!(legend::Layout::choose(Legend::None, &legend::entries(&figure), width), legend::Layout::None);
}

/// The last number is drawn to the left of its tick, so that it stays in the picture.
#[test]
fn a_long_number_at_the_end_of_an_axis_does_not_cover_the_one_before() {
    let axis = Axis::logarithmic("size", "bytes").with_range(Range::Fixed(1e3, 1e6));
    let mut figure = Figure::new("", axis, Axis::linear("y", ""));
    figure.series.push(Series::new("a", Style::line(), [(1e3, 1.0), (1e6, 2.0)]));
    let svg = figure.svg();
    let labels: Vec<(f64, &str)> = svg
        .as_str()
        .split("<text x=\"")
        .filter_map(|piece| {
            let (attributes, rest) = piece.split_once('>')?;
            let (x, others) = attributes.split_once('"')?;
            let is_below = others.contains("text-anchor=\"middle\"");
            is_below.then_some((x.parse().ok()?, rest.split('<').next()?))
        })
        .filter(|(_, label)| label.starts_with(|first: char| first.is_ascii_digit()))
        .collect();
    assert!(
        labels.len() > 5 && labels.iter().any(|(_, label)| *label == "1\u{202f}000\u{202f}000"),
        "{labels:?}"
    );
    let half = |label: &str| canvas::text_width(label, 12.0) / 2.0;
    for one in &labels {
        for other in labels.iter().filter(|other| other.1 != one.1) {
            assert!((one.0 - other.0).abs() > half(one.1) + half(other.1), "{one:?} covers {other:?}");
        }
    }
}

/// Where the axis' labels say that it begins and ends.
fn y_labels(figure: &Figure) -> Vec<String> {
    let svg = figure.svg();
    let pieces = svg.as_str().split("text-anchor=\"end\">").skip(1);
    pieces.filter_map(|piece| piece.split('<').next().map(str::to_owned)).collect()
}

fn with_interval(scale: Scale, range: Range, (low, high): (f64, f64)) -> Figure {
    let y = Axis { scale, range, ..Axis::linear("y", "ms") };
    let mut figure = Figure::new("", Axis::linear("x", ""), y);
    let points = [Point::new(1.0, 200.0).with_y_range(low, high), Point::new(2.0, 500.0)];
    figure.series.push(Series::new("a", Style::line_and_marks(), points));
    figure
}

#[test]
fn a_wide_interval_does_not_stretch_a_logarithmic_axis_over_decades() {
    let figure = with_interval(Scale::Logarithmic, Range::Auto, (1.0, 600.0));
    assert_eq!(y_labels(&figure), ["100", "200", "300", "500", "700", "1000"]);
    // Nor is it left out for an end that has no place at all.
    let cut = with_interval(Scale::Logarithmic, Range::Auto, (-50.0, 600.0)).svg();
    assert_eq!(cut.as_str().matches("stroke-opacity=\"0.7\"").count(), 1, "{cut}");
}

#[test]
fn an_axis_from_zero_stays_there_whatever_an_interval_says() {
    assert_eq!(y_labels(&with_interval(Scale::Linear, Range::FromZero, (-300.0, 400.0)))[0], "0");
    let auto = with_interval(Scale::Linear, Range::Auto, (-300.0, 400.0));
    assert!(y_labels(&auto)[0].starts_with('\u{2212}'), "{:?}", y_labels(&auto));
}

#[test]
fn an_interval_that_is_cut_has_no_crossbar_at_the_edge() {
    let strokes = |range| {
        let svg = with_interval(Scale::Linear, Range::Fixed(100.0, 600.0), range).svg();
        let (before, _) = svg.as_str().split_once("stroke-opacity=\"0.7\"").expect("a bar");
        let path = before.rsplit("d=\"").next().expect("its path").to_owned();
        path.matches('M').count()
    };
    assert_eq!((strokes((150.0, 300.0)), strokes((50.0, 300.0)), strokes((50.0, 900.0))), (3, 2, 1));
}

#[test]
fn what_one_axis_cuts_off_needs_no_room_on_the_other() {
    let x = Axis::logarithmic("x", "B").with_range(Range::From(500.0));
    let mut figure = Figure::new("", x, Axis::linear("y", ""));
    figure.series.push(Series::new("a", Style::line(), [(90.0, 1e6), (1000.0, 5.0), (9000.0, 9.0)]));
    assert_eq!(y_labels(&figure).last().map(String::as_str), Some("9"));
}
