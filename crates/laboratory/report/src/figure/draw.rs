//! Lay a figure out and draw it, from the back to the front.

use std::collections::BTreeSet;

use super::axis::{Axis, FittedAxis, Range, Scale};
use super::canvas::{Canvas, PathData, Place, shorten, text_width, thin_out, trace, wrap};
use super::label::{self, Area, LabelRequest, Obstacle};
use super::legend::{self, Layout};
use super::palette::{self, Mark, class, dash};
use super::series::{Join, Point, Series, Uncertainty};
use super::{Figure, Guide, Role};
use data::{bars, is_inside, is_interval, joined, runs, series};

pub(super) mod data;

pub(super) const WIDTH: f64 = 840.0;
const MARGIN: f64 = 12.0;
const FONT: f64 = 12.0;
const TITLE_FONT: f64 = 15.0;
const LABEL_FONT: f64 = 11.0;

/// Said below a figure with intervals that its frame cuts.
const GOES_ON: &str = "An arrow at the frame: the interval goes on beyond it.";

/// Series of at most so many points have their values written beside their marks.
const MAX_EXACT: usize = 40;

/// A drawing opened by itself has no page around it and brings its colours.
pub(super) fn standalone_sheet() -> String {
    format!(
        "<style>svg:root{{color:#222;background:#fff}}\
         @media screen and (prefers-color-scheme:dark){{svg:root{{color:#ddd;background:#161616}}}}{}</style>\n",
        palette::style_sheet()
    )
}

/// A drawing of this size that is opened and not closed. Those who do not see it get `says`, a
/// page's script gets `rows`, heads first. `class` is the class of its style.
pub(super) fn opened(class: &str, width: f64, height: f64, says: &str, rows: &[Vec<String>]) -> Canvas {
    let mut canvas = Canvas::default();
    let rows = serde_json::to_string(rows).unwrap_or_default();
    let view_box = format!("0 0 {width:.0} {height:.0}");
    canvas.open(
        "svg",
        &[
            ("xmlns", "http://www.w3.org/2000/svg".into()),
            ("class", class.into()),
            ("viewBox", view_box.as_str().into()),
            ("width", width.into()),
            ("height", height.into()),
            ("role", "img".into()),
            ("aria-label", says.into()),
            ("data-rows", rows.as_str().into()),
            ("font-family", "system-ui,sans-serif".into()),
            ("fill", "currentColor".into()),
        ],
    );
    canvas.raw(&standalone_sheet());
    canvas
}

/// The area between the axes, and what places values in it.
struct Plot {
    area: Area,
    x: FittedAxis,
    y: FittedAxis,
}

impl Plot {
    fn x_of(&self, x: f64) -> f64 {
        self.area.left + self.x.share(x) * (self.area.right - self.area.left)
    }

    fn y_of(&self, y: f64) -> f64 {
        self.area.bottom - self.y.share(y) * (self.area.bottom - self.area.top)
    }

    fn place(&self, x: f64, y: f64) -> Place {
        (self.x_of(x), self.y_of(y))
    }
}

pub(super) fn draw(figure: &Figure) -> String {
    let title = wrap(&figure.title, TITLE_FONT, figure.width - 2.0 * MARGIN);
    let y_title = wrap(&figure.y.caption(), FONT, figure.width - 2.0 * MARGIN);
    let entries = legend::entries(figure);
    let layout = Layout::choose(&entries, figure.width - 2.0 * MARGIN);
    let plot_height = figure.plot_height.max(layout.height_beside(entries.len())).max(80.0);

    let top = MARGIN + title.len() as f64 * 20.0 + y_title.len() as f64 * 16.0 + 8.0;
    let bottom = top + plot_height;
    let y = FittedAxis::fit(&figure.y, y_values(figure), plot_height, |_| 15.0);
    let widest = y.ticks.iter().map(|tick| text_width(&tick.label, FONT)).fold(0.0, f64::max);
    let area = Area {
        left: MARGIN + widest + 8.0,
        top,
        right: figure.width - MARGIN - 8.0 - layout.width_beside(),
        bottom,
    };
    let x =
        FittedAxis::fit(&figure.x, x_values(figure), area.right - area.left, |text| text_width(text, FONT));
    let plot = Plot { area, x, y };
    let mut x_title = wrap(&figure.x.caption(), FONT, area.right - area.left);
    if figure.series.iter().any(|series| bars(figure, &plot, series).1) {
        x_title.extend(wrap(GOES_ON, LABEL_FONT, area.right - area.left));
    }
    let height = bottom + 24.0 + x_title.len() as f64 * 16.0 + layout.height_below() + MARGIN;

    let mut canvas = Canvas::default();
    let view_box = format!("0 0 {:.0} {height:.0}", figure.width);
    let description = figure.description();
    let axes_said = [data_axis(&figure.x, &plot.x), data_axis(&figure.y, &plot.y)];
    let box_said = [area.left, area.top, area.right, area.bottom].map(super::canvas::pixels).join(" ");
    let mut attributes = vec![
        ("xmlns", "http://www.w3.org/2000/svg".into()),
        ("viewBox", view_box.as_str().into()),
        ("width", figure.width.into()),
        ("height", height.round().into()),
        ("role", "img".into()),
        ("aria-label", description.as_str().into()),
        ("font-family", "system-ui, sans-serif".into()),
        ("fill", "none".into()),
        ("data-box", box_said.as_str().into()),
        ("data-x", axes_said[0].as_str().into()),
        ("data-y", axes_said[1].as_str().into()),
    ];
    match &figure.role {
        Role::Plain => {}
        Role::Of { subject, view, note } => attributes.extend([
            ("data-of", subject.as_str().into()),
            ("data-view", view.as_str().into()),
            ("data-note", note.as_str().into()),
        ]),
        Role::Overlay { view } => attributes.push(("data-over", view.as_str().into())),
    }
    canvas.open("svg", &attributes);
    canvas.raw(&standalone_sheet());
    lines_of_text(&mut canvas, &title, (MARGIN, MARGIN + 14.0), 20.0, TITLE_FONT, "600");
    lines_of_text(
        &mut canvas,
        &y_title,
        (MARGIN, top - 10.0 - (y_title.len() as f64 - 1.0) * 16.0),
        16.0,
        FONT,
        "normal",
    );
    axes(&mut canvas, figure, &plot);
    let centre = f64::midpoint(area.left, area.right);
    canvas.open("g", &[("text-anchor", "middle".into())]);
    lines_of_text(&mut canvas, &x_title, (centre, bottom + 36.0), 16.0, FONT, "normal");
    canvas.close();

    let texts = guides(&mut canvas, figure, &plot);
    if figure.series.iter().all(|series| !series.points.iter().any(|p| can_show(figure, p))) {
        let middle = (centre, f64::midpoint(top, bottom));
        canvas.open("g", &[("text-anchor", "middle".into()), ("opacity", "0.7".into())]);
        lines_of_text(&mut canvas, &["no data".into()], middle, 16.0, FONT, "normal");
        canvas.close();
    }
    for index in 0..figure.series.len() {
        series(&mut canvas, figure, &plot, index);
    }
    labels(&mut canvas, figure, &plot, &texts);

    let corner = match layout {
        Layout::Right { .. } => (area.right + MARGIN + 6.0, top),
        _ => (MARGIN, bottom + 32.0 + x_title.len() as f64 * 16.0),
    };
    layout.draw(&mut canvas, &entries, corner);
    canvas.finish()
}

/// An axis for a page's script: ends, how values are spread, title and unit, parted by bars.
fn data_axis(axis: &Axis, ruler: &FittedAxis) -> String {
    let scale = match axis.scale {
        Scale::Linear => "linear",
        Scale::Logarithmic => "log",
    };
    let (low, high) = ruler.ends();
    let plain = |text: &str| text.replace('|', "/");
    format!("{low}|{high}|{scale}|{}|{}", plain(&axis.title), plain(&axis.unit))
}

/// Values of a short series for a page's script: x and y of each point, ends of its intervals.
fn data_points(figure: &Figure, series: &Series) -> Option<String> {
    let value = |value: f64, range: Option<(f64, f64)>| match range.filter(|range| is_interval(*range)) {
        None => significant(value),
        Some((low, high)) => format!("{}:{}:{}", significant(value), significant(low), significant(high)),
    };
    let written = || {
        let points = series.points.iter().filter(|point| can_show(figure, point));
        let point =
            |point: &Point| format!("{} {}", value(point.x, point.x_range), value(point.y, point.y_range));
        points.map(point).collect::<Vec<_>>().join(";")
    };
    (series.points.len() <= MAX_EXACT).then(written).filter(|points| !points.is_empty())
}

/// Four significant digits: more than a drawing shows.
pub(super) fn significant(value: f64) -> String {
    let rounded: f64 = format!("{value:.3e}").parse().unwrap_or(value);
    // Minus zero is nothing.
    (rounded + 0.0).to_string()
}

fn can_show(figure: &Figure, point: &Point) -> bool {
    figure.x.can_show(point.x) && figure.y.can_show(point.y)
}

fn ends(range: Option<(f64, f64)>) -> [f64; 2] {
    range.map_or([f64::NAN; 2], |(low, high)| [low, high])
}

/// The points that need room: those that no given end cuts off.
fn points(figure: &Figure) -> impl Iterator<Item = &Point> + Clone {
    let all = figure.series.iter().flat_map(|series| &series.points);
    all.filter(|point| {
        can_show(figure, point) && !figure.x.is_beyond(point.x) && !figure.y.is_beyond(point.y)
    })
}

/// Limit to which intervals may stretch an axis past its values. A wider one is cut at the frame,
/// with an arrow: it must not compress the rest. An axis that begins at zero does not go below it
/// for an interval.
fn axis_range(axis: &Axis, values: impl Iterator<Item = f64>) -> (f64, f64) {
    /// On a logarithmic axis.
    const MAX_FACTOR: f64 = 2.0;
    /// Most room as a share of the values' span, on either side of an axis that is tight around
    /// them.
    const MAX_SHARE: f64 = 1.0;
    let (low, high) = values
        .filter(|&value| axis.can_show(value))
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    match (axis.scale, axis.range) {
        (Scale::Logarithmic, _) => (low / MAX_FACTOR, high * MAX_FACTOR),
        (Scale::Linear, Range::FromZero) if low >= 0.0 => (0.0, f64::INFINITY),
        (Scale::Linear, Range::Tight) if low < high => {
            let most = (high - low) * MAX_SHARE;
            (low - most, high + most)
        }
        (Scale::Linear, _) => (f64::NEG_INFINITY, f64::INFINITY),
    }
}

fn x_values(figure: &Figure) -> impl Iterator<Item = f64> {
    let guides = figure.guides.iter().map(|guide| if let Guide::X(at, _) = guide { *at } else { f64::NAN });
    let (low, high) = axis_range(&figure.x, points(figure).map(|point| point.x));
    points(figure)
        .flat_map(move |point| [point.x].into_iter().chain(ends(point.x_range).map(|x| x.clamp(low, high))))
        .chain(guides)
}

/// All y values that the axis must hold, with room for the text above the guides.
fn y_values(figure: &Figure) -> impl Iterator<Item = f64> {
    let guides =
        figure.guides.iter().filter_map(|guide| if let Guide::Y(at, _) = guide { Some(*at) } else { None });
    let (low, high) = axis_range(&figure.y, points(figure).map(|point| point.y));
    let values = points(figure)
        .flat_map(move |point| [point.y].into_iter().chain(ends(point.y_range).map(|y| y.clamp(low, high))));
    let (lowest, highest) = values
        .clone()
        .chain(guides.clone())
        .filter(|&value| figure.y.can_show(value))
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    let above = move |at: f64| match figure.y.scale {
        Scale::Linear => at + (highest - lowest.min(highest / 2.0)) * 0.08,
        Scale::Logarithmic => at,
    };
    values.chain(guides.flat_map(move |at| [at, above(at)]))
}

fn lines_of_text(canvas: &mut Canvas, lines: &[String], from: Place, step: f64, size: f64, weight: &str) {
    for (index, line) in lines.iter().enumerate() {
        canvas.text(
            "text",
            &[
                ("x", from.0.into()),
                ("y", (from.1 + index as f64 * step).into()),
                ("fill", "currentColor".into()),
                ("font-size", size.into()),
                ("font-weight", weight.into()),
            ],
            line,
        );
    }
}

/// Grid, frame and labels of the ticks.
fn axes(canvas: &mut Canvas, figure: &Figure, plot: &Plot) {
    let Area { left, top, right, bottom } = plot.area;
    canvas.open("g", &[("stroke", "currentColor".into()), ("stroke-width", 1.0.into())]);
    for tick in &plot.x.ticks {
        let x = plot.x_of(tick.at);
        let (strength, length) = if tick.label.is_empty() { ("0.05", 3.0) } else { ("0.13", 5.0) };
        canvas.line((x, top), (x, bottom), &[("stroke-opacity", strength.into())]);
        canvas.line((x, bottom), (x, bottom + length), &[("stroke-opacity", "0.6".into())]);
    }
    for tick in &plot.y.ticks {
        let y = plot.y_of(tick.at);
        let (strength, length) = if tick.label.is_empty() { ("0.05", 3.0) } else { ("0.13", 5.0) };
        canvas.line((left, y), (right, y), &[("stroke-opacity", strength.into())]);
        canvas.line((left - length, y), (left, y), &[("stroke-opacity", "0.6".into())]);
    }
    let solid = [("stroke-opacity", "0.6".into())];
    canvas.line((left, bottom), (right, bottom), &solid);
    canvas.line((left, top), (left, bottom), &solid);
    canvas.close();
    canvas.open("g", &[("fill", "currentColor".into()), ("font-size", FONT.into())]);
    let ticks = plot.x.ticks.iter().filter(|tick| !tick.label.is_empty());
    let ticks = ticks.map(|tick| (plot.x_of(tick.at), tick.label.as_str()));
    for (x, label) in labels_below(ticks, figure.width) {
        let at = [("x", x.into()), ("y", (bottom + 18.0).into()), ("text-anchor", "middle".into())];
        canvas.text("text", &at, label);
    }
    for tick in plot.y.ticks.iter().filter(|tick| !tick.label.is_empty()) {
        let at = [
            ("x", (left - 8.0).into()),
            ("y", (plot.y_of(tick.at) + 4.2).into()),
            ("text-anchor", "end".into()),
        ];
        canvas.text("text", &at, &tick.label);
    }
    canvas.close();
}

/// Where the labels below an axis go, last one first: a long number at the axis' end stays in the
/// picture, and what that pushes it into is left out.
fn labels_below<'a>(
    ticks: impl DoubleEndedIterator<Item = (f64, &'a str)>,
    width: f64,
) -> Vec<(f64, &'a str)> {
    let mut free_to = width - 2.0;
    let mut placed = vec![];
    for (x, label) in ticks.rev() {
        let half = text_width(label, FONT) / 2.0;
        let x = if placed.is_empty() { x.min(free_to - half) } else { x };
        if x + half <= free_to {
            free_to = x - half - 4.0;
            placed.push((x, label));
        }
    }
    placed
}

/// Lines across the plot, each with its text where it covers the least of the data; returns the
/// areas of the texts.
fn guides(canvas: &mut Canvas, figure: &Figure, plot: &Plot) -> Vec<Area> {
    let mut texts = vec![];
    if figure.guides.is_empty() {
        return texts;
    }
    let Area { left, top, right, bottom } = plot.area;
    let attributes = [
        ("stroke", "currentColor".into()),
        ("stroke-opacity", "0.7".into()),
        ("stroke-dasharray", "4 3".into()),
    ];
    let mut covered: Vec<Area> =
        figure.series.iter().flat_map(|one| covered_areas(figure, plot, one)).collect();
    let all = figure.series.iter().flat_map(|one| &one.points).filter(|point| is_inside(figure, plot, point));
    covered.extend(all.flat_map(|point| bar_areas(plot, point)));
    for guide in &figure.guides {
        let (text, from, to) = match guide {
            Guide::X(at, text) if figure.x.can_show(*at) && plot.x.contains(*at) => {
                (text, (plot.x_of(*at), top), (plot.x_of(*at), bottom))
            }
            Guide::Y(at, text) if figure.y.can_show(*at) && plot.y.contains(*at) => {
                (text, (left, plot.y_of(*at)), (right, plot.y_of(*at)))
            }
            _ => continue,
        };
        canvas.line(from, to, &attributes);
        let text = shorten(text, LABEL_FONT, (right - left) / 2.0);
        let half = (text_width(&text, LABEL_FONT) / 2.0, 7.0);
        let area = (0..=10)
            .flat_map(|step| [(step, 1.0), (step, -1.0)])
            .map(|(step, side)| {
                let share = f64::from(step) / 10.0;
                if from.0 == to.0 {
                    let y = top + half.1 + share * (bottom - top - 2.0 * half.1);
                    Area::around((from.0 + side * (half.0 + 5.0), y), half.0, half.1)
                } else {
                    let x = right - half.0 - 2.0 - share * (right - left - 2.0 * half.0 - 4.0);
                    Area::around((x, from.1 - side * (half.1 + 2.0)), half.0, half.1)
                }
            })
            .filter(|area| plot.area.contains(*area))
            .min_by_key(|area| covered.iter().filter(|other| area.overlap(**other) > 0.0).count());
        let Some(area) = area else { continue };
        covered.push(area);
        texts.push(area);
        let at = [
            ("x", f64::midpoint(area.left, area.right).into()),
            ("y", (area.bottom - 3.6).into()),
            ("fill", "currentColor".into()),
            ("font-size", LABEL_FONT.into()),
            ("text-anchor", "middle".into()),
        ];
        canvas.text("text", &at, &text);
    }
    texts
}

fn labels(canvas: &mut Canvas, figure: &Figure, plot: &Plot, taken: &[Area]) {
    let mut wanted = Vec::new();
    let mut texts = Vec::new();
    let mut obstacles: Vec<Obstacle> =
        taken.iter().map(|area| Obstacle { area: *area, weight: label::STRIKES_THROUGH }).collect();
    let bounds = Area { left: plot.area.left + 2.0, right: plot.area.right + 4.0, ..plot.area };
    for series in &figure.series {
        for point in series.points.iter().filter(|point| is_inside(figure, plot, point)) {
            let place = plot.place(point.x, point.y);
            if let Some(text) = &point.label {
                let text = shorten(text, LABEL_FONT, (plot.area.right - plot.area.left) / 2.0);
                let width = text_width(&text, LABEL_FONT);
                wanted.push(LabelRequest { point: place, width, height: LABEL_FONT + 3.0 });
                texts.push((text, series));
                obstacles.extend(
                    bar_areas(plot, point).map(|area| Obstacle { area, weight: label::STRIKES_THROUGH }),
                );
            }
        }
    }
    if wanted.is_empty() {
        return;
    }
    for guide in &figure.guides {
        let area = match guide {
            Guide::X(at, _) => Area { left: plot.x_of(*at), right: plot.x_of(*at), ..plot.area },
            Guide::Y(at, _) => Area { top: plot.y_of(*at), bottom: plot.y_of(*at), ..plot.area },
        };
        // A line has no width of its own.
        let area = Area {
            left: area.left - 1.0,
            top: area.top - 1.0,
            right: area.right + 1.0,
            bottom: area.bottom + 1.0,
        };
        obstacles.push(Obstacle { area, weight: label::STRIKES_THROUGH });
    }
    // Labels are few where points are few; a drawing of thousands needs no such care.
    for series in
        figure.series.iter().filter(|series| series.style.join != Join::None && series.points.len() <= 200)
    {
        let areas = covered_areas(figure, plot, series);
        obstacles.extend(areas.into_iter().map(|area| Obstacle { area, weight: 10.0 }));
    }
    let areas = label::place(&wanted, bounds, &obstacles);
    canvas.open("g", &[("fill", "currentColor".into()), ("font-size", LABEL_FONT.into())]);
    for ((area, label), (text, series)) in areas.iter().zip(&wanted).zip(&texts) {
        canvas.open("g", &[("data-name", series.name.as_str().into())]);
        if let Some((from, to)) = label::leader(label.point, *area) {
            canvas.line(from, to, &[("stroke", "currentColor".into()), ("stroke-opacity", "0.4".into())]);
        }
        // Towards the point, so that a font narrower than expected leaves no gap.
        let (x, anchor) = if area.left >= label.point.0 {
            (area.left, "start")
        } else if area.right <= label.point.0 {
            (area.right, "end")
        } else {
            (f64::midpoint(area.left, area.right), "middle")
        };
        canvas.text(
            "text",
            &[
                ("x", x.into()),
                ("y", (area.bottom - 3.6).into()),
                ("text-anchor", anchor.into()),
                ("font-weight", "normal".into()),
            ],
            text,
        );
        canvas.close();
    }
    canvas.close();
}

/// The areas of a point's bars, upright and flat.
fn bar_areas(plot: &Plot, point: &Point) -> [Area; 2] {
    let place = plot.place(point.x, point.y);
    let y_bar = ends(point.y_range).map(|y| plot.y_of(y));
    let x_bar = ends(point.x_range).map(|x| plot.x_of(x));
    [
        Area { left: place.0 - 3.0, top: y_bar[1], right: place.0 + 3.0, bottom: y_bar[0] },
        Area { left: x_bar[0], top: place.1 - 3.0, right: x_bar[1], bottom: place.1 + 3.0 },
    ]
}

/// Small areas that cover a series' marks and line, for texts that had rather not lie on them.
fn covered_areas(figure: &Figure, plot: &Plot, series: &Series) -> Vec<Area> {
    let mut out = Vec::new();
    for run in runs(figure, series) {
        let places = thin_out(run.iter().map(|point| plot.place(point.x, point.y)).collect());
        if series.style.join == Join::None {
            out.extend(places.iter().map(|place| Area::around(*place, 4.0, 4.0)));
            continue;
        }
        for pair in joined(&places, series.style.join).windows(2) {
            let length = libm::hypot(pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
            let pieces = (length / 8.0).clamp(1.0, 200.0) as u32;
            for piece in 0..pieces {
                let share = f64::from(piece) / f64::from(pieces);
                let between = |a: f64, b: f64| a + (b - a) * share;
                let place = (between(pair[0].0, pair[1].0), between(pair[0].1, pair[1].1));
                out.push(Area::around(place, 1.0, 1.0));
            }
        }
    }
    out
}
