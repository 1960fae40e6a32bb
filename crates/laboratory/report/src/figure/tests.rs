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
    // Attributes that the script of a page reads.
    let attributes = "data-box=\"39.2 56 820 396\" data-x=\"0|2|linear|x|s\" data-y=\"0|2|linear|y|\"";
    assert!(svg.as_str().contains(attributes), "{svg}");
    assert!(svg.as_str().contains("data-name=\"a\" data-points=\"0 0;1 2;2 1\""), "{svg}");
}

#[test]
fn names_are_escaped() {
    let evil = "</title><script>alert(1)</script>\"'&";
    let mut figure = Figure::new(evil, Axis::linear(evil, evil), Axis::linear(evil, evil));
    figure.series.push(Series::new(
        evil,
        Style::marks(Mark::Disc),
        [Point::new(1.0, 1.0).labelled(evil), (2.0, 2.0).into()],
    ));
    figure.guides.push(Guide::X(1.0, evil.into()));
    let svg = figure.svg();
    assert!(!svg.as_str().contains("<script"), "{svg}");
    assert_balanced(svg.as_str());
}

#[test]
fn values_that_are_not_finite_are_not_drawn() {
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
fn an_empty_figure_has_a_note() {
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
    let of = |count: usize| legend::Layout::choose(&legend::entries(&figure)[..count], width);
    assert!(matches!(of(24), legend::Layout::Right { .. }));
    assert!(matches!(of(8), legend::Layout::Below { rows: 2, columns: 6, .. }), "{:?}", of(8));
    assert_eq!((of(3), of(0)), (legend::Layout::Row, legend::Layout::None));
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

/// Labels of the y axis.
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
fn an_interval_that_is_cut_has_an_arrow_at_the_frame() {
    let arrows = |range, interval| {
        let svg = with_interval(Scale::Linear, range, interval).svg();
        let (before, _) = svg.as_str().split_once("stroke-opacity=\"0.7\"").expect("a bar");
        let path = before.rsplit("d=\"").next().and_then(|rest| rest.split('"').next()).expect("its path");
        // A bar and two crossbars have two places each, an arrow's head three.
        let turns = |stroke: &str| stroke.matches(['L', ' ']).count() == 5;
        let strokes: Vec<&str> = path.split('M').skip(1).collect();
        assert_eq!(strokes.len(), 3, "{path}");
        let arrows = strokes.into_iter().filter(|stroke| turns(stroke)).count();
        assert_eq!(svg.as_str().contains("An arrow at the frame"), arrows > 0, "{svg}");
        arrows
    };
    let fixed = Range::Fixed(100.0, 600.0);
    let ranges = [(150.0, 300.0), (50.0, 300.0), (50.0, 900.0)];
    assert_eq!(ranges.map(|interval| arrows(fixed, interval)), [0, 1, 2]);
    // A tight axis holds intervals of up to the span of its values on either side.
    let ranges = [(-90.0, 790.0), (-300.0, 300.0), (-300.0, 1300.0)];
    assert_eq!(ranges.map(|interval| arrows(Range::Tight, interval)), [0, 1, 2]);
}

#[test]
fn points_beyond_one_axis_do_not_widen_the_other() {
    let x = Axis::logarithmic("x", "B").with_range(Range::From(500.0));
    let mut figure = Figure::new("", x, Axis::linear("y", ""));
    figure.series.push(Series::new("a", Style::line(), [(90.0, 1e6), (1000.0, 5.0), (9000.0, 9.0)]));
    assert_eq!(y_labels(&figure).last().map(String::as_str), Some("9"));
}

#[test]
fn a_line_that_another_one_covers_has_a_sign_in_the_legend() {
    let mut figure = Figure::new("", Axis::linear("load", "%"), Axis::linear("mean", "ms"));
    let line = |name: &str, heights: [f64; 3], style: Style| {
        let points = [10.0, 20.0, 30.0].into_iter().zip(heights);
        Series::new(name, style, points)
    };
    figure.series.push(line("TCP", [400.0, 500.0, 900.0], Style::line()));
    figure.series.push(line("other", [100.0, 200.0, 300.0], Style::line()));
    figure.series.push(line("dashed", [100.0, 200.0, 300.0], Style { dash: Some(1), ..Style::line() }));
    figure.series.push(line("Reactive", [400.5, 500.5, 900.0], Style::line()));
    let svg = figure.svg();
    assert!(svg.as_str().contains(">TCP (under Reactive)<"), "{}", svg.as_str());
    assert_eq!(svg.as_str().matches("(under ").count(), 1, "a line is seen through a dashed one");
    figure.series.remove(3);
    assert!(!figure.svg().as_str().contains("(under "));
}

#[test]
fn coinciding_lines_are_named() {
    let mut figure = Figure::new("", Axis::linear("x", ""), Axis::linear("y", ""));
    for (name, end) in [("a", 1.0), ("b", 2.0), ("c", 1.0), ("d", 3.0), ("e", 2.0)] {
        figure.series.push(Series::new(name, Style::line(), [(0.0, 0.0), (1.0, end)]));
    }
    figure.series.push(Series::new("empty", Style::line(), [] as [(f64, f64); 0]));
    assert_eq!(figure.coinciding(), [["a", "c"], ["b", "e"]]);
}

#[test]
fn an_overlay_distinguishes_flows_by_colour_and_events_by_shape() {
    let of = |subject: &str, end: f64| {
        let mut figure = Figure::new("", Axis::linear("x", ""), Axis::linear("y", ""));
        figure.role = Role::Of { subject: subject.into(), view: "v".into(), note: "n".into() };
        figure.series.push(Series::packets(PacketKind::Lost, [(0.0, 1.0), (1.0, end)]));
        figure.series.push(Series::new(
            "w",
            Style::line().with_slot(5).with_dash(1),
            [(0.0, 1.0), (1.0, end)],
        ));
        figure
    };
    let (one, other) = (of("p", 2.0), of("q", 3.0));
    assert!(one.svg().as_str().contains("data-of=\"p\" data-view=\"v\" data-note=\"n\""));
    let svg = Figure::overlay(&one, &other).svg();
    for part in [
        "data-over=\"v\"",
        "<g class=\"k0\" data-name=\"lost\"",
        "<g class=\"k1\" data-name=\"lost\"",
        "<g class=\"k0\" data-name=\"w\"",
        "stroke-dasharray=\"7 3\"",
    ] {
        assert!(svg.as_str().contains(part), "{part}: {svg}");
    }
    assert_eq!(svg.as_str().matches(">lost</text>").count(), 1, "the legend has each kind once");
}

#[test]
fn a_page_takes_a_drawing_without_its_own_colours() {
    let figure = crowded().svg();
    assert!(figure.as_str().contains("<style>svg:root") && !figure.inline().contains("<style>"));
}

/// A race's completion times over harm, with intervals: points that coincide, and bars that cross.
const RACE: [(&str, [f64; 3], [f64; 3]); 22] = [
    ("iw2", [0.9844, 0.9735, 0.9954], [416.5, 414.9, 418.1]),
    ("iw3", [0.981, 0.9672, 0.995], [362.2, 360.6, 363.9]),
    ("iw10", [1.0, 1.0, 1.0], [257.5, 254.6, 260.3]),
    ("iw10-hystart", [0.9983, 0.9964, 1.0], [260.1, 258.5, 261.7]),
    ("iw32", [0.9981, 0.9843, 1.012], [193.5, 190.9, 196.1]),
    ("iw32-paced", [0.9936, 0.9757, 1.011], [194.2, 190.6, 197.9]),
    ("iw64", [1.06, 1.042, 1.078], [221.9, 211.2, 232.6]),
    ("reactive", [0.9844, 0.9735, 0.9954], [416.5, 414.9, 418.1]),
    ("proactive", [1.074, 1.027, 1.121], [546.5, 524.1, 569.0]),
    ("jump-start", [1.008, 0.9764, 1.039], [173.1, 164.6, 181.5]),
    ("halfback", [1.043, 1.025, 1.061], [189.4, 180.9, 198.0]),
    ("halfback-forward", [1.046, 1.03, 1.063], [198.4, 186.8, 210.0]),
    ("halfback-burst", [1.051, 1.034, 1.069], [191.1, 182.4, 199.7]),
    ("pcp", [0.9799, 0.9659, 0.994], [412.5, 403.4, 421.5]),
    ("rapid-start", [0.9873, 0.9786, 0.996], [250.8, 247.3, 254.3]),
    ("bbr", [0.983, 0.9738, 0.9922], [283.3, 281.3, 285.3]),
    ("tcp-cache", [1.027, 1.011, 1.045], [219.9, 213.8, 226.1]),
    ("s-cubic", [0.9784, 0.9667, 0.9904], [246.3, 238.3, 254.2]),
    ("wise-start", [0.994, 0.9735, 1.015], [193.6, 187.7, 199.5]),
    ("wise-start-wa", [0.994, 0.9735, 1.015], [193.6, 187.7, 199.5]),
    ("careful-resume", [1.0, 1.0, 1.0], [257.5, 254.6, 260.3]),
    ("blitzstart", [1.036, 1.008, 1.064], [176.4, 166.1, 186.7]),
];

/// The number in an attribute of a tag.
fn attribute(tag: &str, name: &str) -> f64 {
    let (_, rest) = tag.split_once(&format!(" {name}=\"")).expect("the attribute");
    rest.split('"').next().and_then(|text| text.parse().ok()).expect("a number")
}

#[test]
fn nothing_strikes_through_a_label_and_leaders_do_not_cross() {
    let tight = |title: &str| Axis::linear(title, "").with_range(Range::Tight);
    let mut figure = Figure::new("", tight("harm"), tight("time"));
    for (name, x, y) in RACE {
        let point = Point::new(x[0], y[0]).with_x_range(x[1], x[2]).with_y_range(y[1], y[2]).labelled(name);
        figure.series.push(Series::new(name, Style::marks(Mark::BySlot), [point]));
    }
    figure.guides.push(Guide::X(1.0, "no harm".into()));
    figure.plot_height = 480.0;
    let svg = figure.svg();
    let mut strikes: Vec<label::Area> = Vec::new();
    let mut texts: Vec<(label::Area, &str)> = Vec::new();
    let mut leaders: Vec<[(f64, f64); 2]> = Vec::new();
    for tag in svg.as_str().split('<') {
        // Bars: `M from L to` for each stroke.
        if tag.starts_with("path d=") && tag.contains("stroke-opacity=\"0.7\"") {
            let data = tag.split('"').nth(1).expect("path data");
            for stroke in data.split('M').skip(1) {
                let ends: Vec<f64> =
                    stroke.split(['L', ' ']).map(|text| text.parse().expect("a place")).collect();
                // An interval without width is a point.
                let [_, _, _, _] = ends[..] else { continue };
                strikes.push(label::Area {
                    left: ends[0].min(ends[2]),
                    top: ends[1].min(ends[3]),
                    right: ends[0].max(ends[2]),
                    bottom: ends[1].max(ends[3]),
                });
            }
        }
        if tag.starts_with("line") && tag.contains("stroke-dasharray=\"4 3\"") {
            let x = attribute(tag, "x1");
            strikes.push(label::Area {
                left: x,
                right: x,
                top: attribute(tag, "y1"),
                bottom: attribute(tag, "y2"),
            });
        }
        if tag.starts_with("line") && tag.contains("stroke-opacity=\"0.4\"") {
            leaders.push([("x1", "y1"), ("x2", "y2")].map(|(x, y)| (attribute(tag, x), attribute(tag, y))));
        }
        let is_name = |text: &str| RACE.iter().any(|(name, _, _)| *name == text);
        if let Some((_, text)) = tag.split_once('>').filter(|(_, text)| is_name(text))
            && tag.contains("font-weight=\"normal\"")
        {
            let width = canvas::text_width(text, 11.0);
            let before = match () {
                () if tag.contains("\"end\"") => width,
                () if tag.contains("\"middle\"") => width / 2.0,
                () => 0.0,
            };
            let left = attribute(tag, "x") - before;
            let baseline = attribute(tag, "y");
            let area = label::Area { left, right: left + width, top: baseline - 9.0, bottom: baseline + 2.0 };
            texts.push((area, text));
        }
    }
    assert_eq!(texts.len(), RACE.len());
    assert!(strikes.len() > 2 * RACE.len(), "bars are found: {}", strikes.len());
    for (area, text) in &texts {
        for strike in &strikes {
            let is_struck = strike.left < area.right
                && strike.right > area.left
                && strike.top < area.bottom
                && strike.bottom > area.top;
            assert!(!is_struck, "{text} at {area:?} is struck through by {strike:?}");
        }
    }
    for (index, one) in leaders.iter().enumerate() {
        for other in &leaders[..index] {
            assert!(!label::cross(one[0], one[1], other[0], other[1]), "{one:?} crosses {other:?}");
        }
    }
}

#[test]
fn no_label_lies_on_the_text_of_a_guide() {
    let mut touching = vec![];
    for count in 1..12_u32 {
        let mut figure = Figure::new("", Axis::linear("harm", ""), Axis::linear("time", "ms"));
        // One point after the other along the line, each with a label as long as the guide's text.
        for number in 0..count {
            let place = Point::new(1.0 + f64::from(number % 2) * 0.002, 100.0 + 20.0 * f64::from(number));
            let series =
                Series::new(&format!("s{number}"), Style::marks(Mark::Disc), [place.labelled("schemes")]);
            figure.series.push(series);
        }
        figure.series.push(Series::new("far", Style::marks(Mark::Disc), [Point::new(1.3, 150.0)]));
        figure.guides.push(Guide::X(1.0, "no harm".into()));
        let svg = figure.svg();
        let number = |text: &str, name: &str| -> f64 {
            let rest = text.split(&format!("{name}=\"")).nth(1).expect("an attribute");
            rest.split('"').next().expect("its end").parse().expect("a number")
        };
        let area = |text: &str, words: &str| {
            let (x, y, wide) = (number(text, "x"), number(text, "y"), super::canvas::text_width(words, 12.0));
            let left = match () {
                () if text.contains("\"middle\"") => x - wide / 2.0,
                () if text.contains("\"end\"") => x - wide,
                () => x,
            };
            label::Area { left, right: left + wide, top: y - 10.0, bottom: y + 2.0 }
        };
        let texts: Vec<&str> = svg.as_str().split("<text").skip(1).collect();
        let of = |words: &'static str| {
            let found = texts.iter().filter(move |text| text.contains(&format!(">{words}<")));
            found.map(move |text| area(text, words)).collect::<Vec<_>>()
        };
        let guide = of("no harm")[0];
        assert_eq!(of("schemes").len(), count as usize);
        if of("schemes").into_iter().any(|label| label.overlap(guide) > 1.0) {
            touching.push(count);
        }
    }
    assert_eq!(touching, [0; 0]);
}
