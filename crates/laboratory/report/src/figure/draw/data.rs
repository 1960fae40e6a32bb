//! Series of a figure: bands, lines, bars of intervals, marks.

use super::*;

pub(super) fn series(canvas: &mut Canvas, figure: &Figure, plot: &Plot, index: usize) {
    let series = &figure.series[index];
    if series.points.is_empty() {
        return;
    }
    let slot = series.style.slot.unwrap_or(index);
    let classes = series_class(series, index);
    let points = data_points(figure, series);
    let mut attributes = vec![("class", classes.as_str().into())];
    if !series.name.is_empty() {
        attributes.push(("data-name", series.name.as_str().into()));
    }
    if let Some(points) = &points {
        attributes.push(("data-points", points.as_str().into()));
    }
    canvas.open("g", &attributes);
    if !series.name.is_empty() {
        canvas.text("title", &[], &series.name);
    }
    let Area { left, top, right, bottom } = plot.area;
    let (width, height) = (right - left, bottom - top);
    let window = format!("{left:.1} {top:.1} {width:.1} {height:.1}");
    let runs = runs(figure, series);
    if series.style.join != Join::None {
        // An inner drawing cuts off what lies beyond the axes; a clip path would need a name.
        canvas.open(
            "svg",
            &[
                ("x", left.into()),
                ("y", top.into()),
                ("width", width.into()),
                ("height", height.into()),
                ("viewBox", window.as_str().into()),
            ],
        );
        if series.style.uncertainty == Uncertainty::Band {
            band(canvas, figure, plot, &runs, series.style.join);
        }
        line(canvas, plot, &runs, series, index);
        canvas.close();
    }
    let (data, _) = bars(figure, plot, series);
    if !data.is_empty() {
        let attributes = [
            ("d", data.as_str().into()),
            ("stroke", "currentColor".into()),
            ("stroke-opacity", "0.7".into()),
        ];
        canvas.empty("path", &attributes);
    }
    if let Some(mark) = series.style.mark {
        marks(canvas, figure, plot, series, mark.resolve(slot));
    }
    canvas.close();
}

/// The class of a series: its colour, and whether a page shows it only when asked for all.
pub(in crate::figure) fn series_class(series: &Series, index: usize) -> String {
    let colour = class(series.style.slot.unwrap_or(index));
    if series.style.on_demand { format!("{colour} more") } else { colour.to_owned() }
}

pub(in crate::figure) fn series_dash(series: &Series, index: usize) -> &'static str {
    series.style.dash.map_or_else(|| dash(series.style.slot.unwrap_or(index)), palette::nth_dash)
}

/// The points of a series, parted wherever one cannot be shown.
pub(super) fn runs<'a>(figure: &Figure, series: &'a Series) -> Vec<Vec<&'a Point>> {
    series
        .points
        .split(|point| !can_show(figure, point))
        .filter(|run| !run.is_empty())
        .map(|run| run.iter().collect())
        .collect()
}

fn line(canvas: &mut Canvas, plot: &Plot, runs: &[Vec<&Point>], series: &Series, index: usize) {
    let mut data = PathData::default();
    for run in runs {
        let places = run.iter().map(|point| plot.place(point.x, point.y)).collect();
        trace(&mut data, &joined(&thin_out(places), series.style.join), true);
    }
    if data.is_empty() {
        return;
    }
    canvas.empty(
        "path",
        &[
            ("class", "line".into()),
            ("d", data.as_str().into()),
            ("stroke", "currentColor".into()),
            ("stroke-width", 1.8.into()),
            ("stroke-dasharray", series_dash(series, index).into()),
            ("stroke-linejoin", "round".into()),
        ],
    );
}

fn band(canvas: &mut Canvas, figure: &Figure, plot: &Plot, runs: &[Vec<&Point>], join: Join) {
    let mut data = PathData::default();
    let shown = |point: &Point| point.y_range.filter(|r| figure.y.can_show(r.0) && figure.y.can_show(r.1));
    for part in runs.iter().flat_map(|run| run.split(|point| shown(point).is_none())) {
        let side = |upper: bool| {
            let places = part.iter().filter_map(|point| {
                shown(point).map(|range| plot.place(point.x, if upper { range.1 } else { range.0 }))
            });
            joined(&thin_out(places.collect()), join)
        };
        if part.len() > 1 {
            trace(&mut data, &side(true), true);
            let mut back = side(false);
            back.reverse();
            trace(&mut data, &back, false);
            data.raw("z");
        }
    }
    if !data.is_empty() {
        let attributes =
            [("d", data.as_str().into()), ("fill", "currentColor".into()), ("fill-opacity", "0.18".into())];
        canvas.empty("path", &attributes);
    }
}

/// The bars of a series' intervals, and whether the frame cuts one.
pub(super) fn bars(figure: &Figure, plot: &Plot, series: &Series) -> (PathData, bool) {
    let mut data = PathData::default();
    let mut is_any_cut = false;
    if series.style.uncertainty != Uncertainty::Bars {
        return (data, is_any_cut);
    }
    let Area { left, top, right, bottom } = plot.area;
    for point in series.points.iter().filter(|point| is_inside(figure, plot, point)) {
        let (x, y) = plot.place(point.x, point.y);
        let mut bar = |ends: [Place; 2], side: Place, is_there: [bool; 2]| {
            trace(&mut data, &ends, true);
            // A crossbar where the interval ends; an arrow's head where the frame cuts it.
            let inwards = [(side.1, -side.0), (-side.1, side.0)];
            for ((at, is_there), inwards) in ends.into_iter().zip(is_there).zip(inwards) {
                let back = if is_there { 0.0 } else { 2.0 };
                let wing = |sign: f64| {
                    (at.0 + back * inwards.0 + sign * side.0, at.1 + back * inwards.1 + sign * side.1)
                };
                trace(&mut data, &[wing(-1.0), at, wing(1.0)], true);
                is_any_cut |= !is_there;
            }
        };
        if let Some((low, high)) = point.y_range.filter(|range| is_interval(*range)) {
            let is_there = [low, high].map(|end| figure.y.can_show(end) && plot.y.contains(end));
            let from = if is_there[0] { plot.y_of(low) } else { bottom };
            let to = if is_there[1] { plot.y_of(high) } else { top };
            bar([(x, from), (x, to)], (3.0, 0.0), is_there);
        }
        if let Some((low, high)) = point.x_range.filter(|range| is_interval(*range)) {
            let is_there = [low, high].map(|end| figure.x.can_show(end) && plot.x.contains(end));
            let from = if is_there[0] { plot.x_of(low) } else { left };
            let to = if is_there[1] { plot.x_of(high) } else { right };
            bar([(from, y), (to, y)], (0.0, 3.0), is_there);
        }
    }
    (data, is_any_cut)
}

/// Both ends are numbers, in their order.
pub(super) fn is_interval((low, high): (f64, f64)) -> bool {
    low.is_finite() && high.is_finite() && low <= high
}

pub(super) fn is_inside(figure: &Figure, plot: &Plot, point: &Point) -> bool {
    can_show(figure, point) && plot.x.contains(point.x) && plot.y.contains(point.y)
}

fn marks(canvas: &mut Canvas, figure: &Figure, plot: &Plot, series: &Series, mark: Mark) {
    let mut data = PathData::default();
    let mut drawn = BTreeSet::new();
    for point in series.points.iter().filter(|point| is_inside(figure, plot, point)) {
        let place = plot.place(point.x, point.y);
        // A mark upon its twin adds bytes and nothing to see.
        if drawn.insert(((place.0 * 2.0).round() as i64, (place.1 * 2.0).round() as i64)) {
            data.move_to(place);
            data.raw(mark.commands());
        }
    }
    if !data.is_empty() {
        mark_path(canvas, &data, mark);
    }
}

pub(in crate::figure) fn mark_path(canvas: &mut Canvas, data: &PathData, mark: Mark) {
    let attributes = if mark.is_filled() {
        [("fill", "currentColor".into()), ("stroke", "none".into())]
    } else {
        // Said outright: in the legend it would inherit the colour of the text.
        [("fill", "none".into()), ("stroke", "currentColor".into())]
    };
    let kind = [("class", "marks".into()), ("d", data.as_str().into())];
    canvas.empty("path", &[&kind[..], &attributes[..], &[("stroke-width", 1.7.into())]].concat());
}

/// The corners of the line through `places`.
pub(super) fn joined(places: &[Place], join: Join) -> Vec<Place> {
    if join != Join::Steps {
        return places.to_vec();
    }
    let mut out = Vec::with_capacity(places.len() * 2);
    for (index, &place) in places.iter().enumerate() {
        if index > 0 && places[index - 1] != place {
            out.push((place.0, places[index - 1].1));
        }
        out.push(place);
    }
    out
}
