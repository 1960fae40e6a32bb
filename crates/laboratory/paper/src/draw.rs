//! The figures of a plan, in the paper's own axes, and their data.
//!
//! ```toml
//! [[figure]]
//! name = "completion"                 # of the SVG and CSV files
//! caption = "..."
//! draw = "lines"                      # see below
//! x = "load"                          # the swept option along x (lines), or its points (scatter)
//! value = { measure = "mean" }        # what is along y, of every scheme
//! x-value = { measure = "capacity.own" }  # scatter: what is along x
//! x-axis = { title = "utilisation", unit = "%", from = 0, to = 90 }
//! y-axis = { title = "mean completion time", unit = "ms", scale = "log" }
//! schemes = ["TCP"]                   # if not all
//! # these values in place of one for each scheme:
//! curves = [{ name = "hint 1.0", value = { measure = .., scheme = .. } }]
//! # scatter: further points
//! points = [{ name = "bound", value = { measure = .., scheme = .. }, x-value = { .. } }]
//! each = { size = ["70 kB", "2 MB"] } # a figure for each of these values, which ends its name
//! by = "rtt"                          # a line for each value of this option, not for each scheme
//! # numbers that the paper prints, as hollow marks; a coordinate that it does not print is ours
//! paper = [{ scheme = "TCP", x = 90 }, { scheme = "JumpStart", x = 200, y = 0.7, of = "TCP" }]
//! ```
//!
//! With `of` a mark's y is a multiple of that scheme's value at the same x.
//!
//! | `draw` | shows |
//! |---|---|
//! | `lines` | `value` along the swept option `x`, a line for each scheme |
//! | `scatter` | `value` against `x-value`: a point for each scheme or value of `x` |
//! | `profile` | the family of numbers `value.measure/..` along their own names |
//! | `dots` | the same, a dot for each |
//! | `distribution` | the share of seeds up to a value |
//!
//! There is one drawing for each variant of the plan.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::quantity::{Quantity, QuantityText, Scope, check_scheme};
use crate::plan::{Plan, from_toml, number_of};
use crate::run::Results;
use headstart_report::figure::{Axis, Figure, Mark, Point, Range, Series, Style};
use headstart_report::statistics::Interval;

/// The figures of a plan's file, without all else that it holds.
#[derive(Deserialize)]
struct FiguresText {
    #[serde(default)]
    figure: Vec<FigureText>,
}

/// Reads the `[[figure]]` tables of a plan's file.
///
/// # Errors
/// With line, key, found and expected.
pub fn read(text: &str, plan: &Plan) -> Result<Vec<Drawing>> {
    let figures = from_toml::<FiguresText>(text)?.figure;
    let mut drawings = vec![];
    for (number, figure) in figures.into_iter().enumerate() {
        let place = || format!("figure {}", number + 1);
        for one in figure.each(plan).with_context(place)? {
            drawings.push(Drawing::read(one, plan).with_context(place)?);
        }
    }
    Ok(drawings)
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FigureText {
    name: String,
    caption: String,
    draw: Kind,
    x: Option<String>,
    value: Option<QuantityText>,
    #[serde(default)]
    curves: Vec<CurveText>,
    x_value: Option<QuantityText>,
    #[serde(default)]
    points: Vec<PointText>,
    #[serde(default)]
    x_axis: AxisText,
    y_axis: AxisText,
    schemes: Option<Vec<String>>,
    #[serde(default)]
    each: BTreeMap<String, Vec<toml::Value>>,
    by: Option<String>,
    #[serde(default)]
    paper: Vec<PrintedMark>,
}

impl FigureText {
    /// The figure, or one for each value of the option in `each`.
    fn each(mut self, plan: &Plan) -> Result<Vec<Self>> {
        let mut each = std::mem::take(&mut self.each);
        let Some((option, values)) = each.pop_first() else { return Ok(vec![self]) };
        ensure!(
            each.is_empty() && !values.is_empty() && plan.axes.iter().any(|(name, _)| *name == option),
            "each: found `{option}` with {} values and {} more options, expected one option that the plan sweeps, \
             with its values",
            values.len(),
            each.len()
        );
        let at = |value: toml::Value| {
            let mut one = self.clone();
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let plain = text.replace('.', "-").replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "");
            let plain = plain.to_ascii_lowercase();
            one.name = format!("{}-{plain}", one.name);
            one.caption = format!("{} Here: {}.", one.caption, legend_text(&(option.clone(), text)));
            for quantity in one.value.iter_mut().chain(one.curves.iter_mut().map(|curve| &mut curve.value)) {
                quantity.fix(&option, &value);
            }
            one
        };
        Ok(values.into_iter().map(at).collect())
    }
}

/// A number that the paper prints, of a scheme or curve of the figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PrintedMark {
    scheme: String,
    x: Option<f64>,
    y: Option<f64>,
    of: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CurveText {
    name: String,
    value: QuantityText,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PointText {
    name: String,
    value: QuantityText,
    x_value: QuantityText,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct AxisText {
    #[serde(default)]
    title: String,
    unit: Option<String>,
    #[serde(default)]
    scale: ScaleText,
    from: Option<f64>,
    to: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ScaleText {
    #[default]
    Linear,
    Log,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Lines,
    Scatter,
    Profile,
    Dots,
    Distribution,
}

/// A checked figure.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// The name of its files.
    pub name: String,
    /// Caption: the content, and the point to notice.
    pub caption: String,
    kind: Kind,
    x: Option<String>,
    /// By name: of every scheme, or as the figure lists them.
    curves: Vec<(String, Quantity)>,
    /// True if series have names of their own.
    is_listed: bool,
    x_value: Option<Quantity>,
    /// Further points of a scatter: name, y, x.
    points: Vec<(String, Quantity, Quantity)>,
    x_axis: AxisText,
    y_axis: AxisText,
    by: Option<String>,
    printed: Vec<PrintedMark>,
}

/// One value of a figure.
#[derive(Clone, Debug)]
pub struct Datum {
    /// The scheme, or what else tells this line from the others.
    pub scheme: String,
    /// Along x.
    pub x: Interval,
    /// Along y.
    pub y: Interval,
    /// The value of the swept option, where a scatter has several points of a scheme.
    pub label: String,
}

impl Drawing {
    /// Checks a figure against its plan.
    ///
    /// # Errors
    /// With key, found and expected.
    fn read(text: FigureText, plan: &Plan) -> Result<Self> {
        let schemes = text.schemes.unwrap_or_else(|| plan.known_schemes.clone());
        schemes.iter().try_for_each(|scheme| check_scheme(scheme, plan)).context("schemes")?;
        for (key, axis) in [("x", &text.x), ("by", &text.by)] {
            if let Some(axis) = axis {
                ensure!(
                    plan.axes.iter().any(|(name, _)| name == axis),
                    "{key}: found `{axis}`, expected an option that the plan sweeps"
                );
            }
        }
        ensure!(text.x.is_some() || text.draw != Kind::Lines, "found `lines` without the key `x`");
        ensure!(
            text.x_value.is_some() == (text.draw == Kind::Scatter),
            "x-value: expected it in each figure with draw = `scatter`, and in no other"
        );
        let is_listed = !text.curves.is_empty();
        let curves: Vec<(String, Quantity)> = match (text.value, text.curves) {
            (Some(value), curves) if curves.is_empty() => {
                let value = Quantity::read(value, plan, true).context("value")?;
                schemes.iter().map(|scheme| (scheme.clone(), value.clone())).collect()
            }
            (None, curves) if is_listed && text.draw != Kind::Scatter => curves
                .into_iter()
                .map(|curve| Ok((curve.name, Quantity::read(curve.value, plan, false)?)))
                .collect::<Result<_>>()
                .context("curves")?,
            _ => {
                bail!("found both or none of `value` and `curves`, expected one of them (`scatter`: `value`)")
            }
        };
        ensure!(!curves.is_empty(), "schemes: found none, expected one at least");
        let x_value =
            text.x_value.map(|text| Quantity::read(text, plan, true)).transpose().context("x-value")?;
        ensure!(text.points.is_empty() || text.draw == Kind::Scatter, "found `points` without `scatter`");
        let points = text
            .points
            .into_iter()
            .map(|PointText { name, value, x_value }| {
                Ok((name, Quantity::read(value, plan, false)?, Quantity::read(x_value, plan, false)?))
            })
            .collect::<Result<_>>()
            .context("points")?;
        for mark in &text.paper {
            for name in [Some(&mark.scheme), mark.of.as_ref()].into_iter().flatten() {
                ensure!(
                    curves.iter().any(|(curve, _)| curve == name),
                    "paper: found `{name}`, expected a scheme or curve of the figure"
                );
            }
            ensure!(
                mark.x.is_some() || mark.y.is_some(),
                "paper: found a mark of {} without `x` and `y`, expected one of them",
                mark.scheme
            );
            ensure!(
                mark.of.is_none() || mark.y.is_some(),
                "paper: found `of` without `y`, expected the multiple"
            );
        }
        let is_plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        ensure!(
            !text.name.is_empty() && is_plain(&text.name),
            "name: found `{}`, expected a plain word",
            text.name
        );
        Ok(Self {
            name: text.name,
            caption: text.caption,
            kind: text.draw,
            x: text.x,
            curves,
            is_listed,
            x_value,
            points,
            x_axis: text.x_axis,
            y_axis: text.y_axis,
            by: text.by,
            printed: text.paper,
        })
    }

    /// The figure's values under one variant; what was not run is left out.
    #[must_use]
    pub fn data(&self, plan: &Plan, results: &Results, variant: usize) -> Vec<Datum> {
        let mut data = vec![];
        let is_run = |name: &str| plan.schemes.iter().any(|scheme| scheme.name == name);
        for (name, value) in self.curves.iter().filter(|(name, _)| self.is_listed || is_run(name)) {
            for own in along(self.by.as_deref(), plan) {
                let scope = Scope { plan, results, variant, scheme: Some(name), at: &own, draw: None };
                let label = match own.first() {
                    Some(option) if self.curves.len() == 1 => legend_text(option),
                    Some(option) => format!("{name}, {}", legend_text(option)),
                    None => name.clone(),
                };
                data.extend(self.of_curve(&label, value, &scope));
            }
        }
        for (name, value, x_value) in &self.points {
            let scope = Scope { plan, results, variant, scheme: None, at: &[], draw: None };
            let (x, y) = (x_value.value(&scope), value.value(&scope));
            data.push(Datum { scheme: name.clone(), x, y, label: String::new() });
        }
        data.retain(|datum| datum.x.value.is_finite() && datum.y.value.is_finite());
        data
    }

    fn of_curve(&self, name: &str, value: &Quantity, scope: &Scope<'_>) -> Vec<Datum> {
        let datum = |x: Interval, y: Interval, label: &str| Datum {
            scheme: name.to_owned(),
            x,
            y,
            label: label.to_owned(),
        };
        let mut data = vec![];
        for point in along(self.x.as_deref(), scope.plan) {
            let at: Vec<(String, String)> = scope.at.iter().cloned().chain(point.iter().cloned()).collect();
            let here = Scope { at: &at, ..*scope };
            let label = point.first().map_or("", |(_, value)| value.as_str());
            match self.kind {
                Kind::Lines => {
                    let x = number_of(label).map_or(f64::NAN, |(number, _)| number);
                    data.push(datum(without_interval(x), value.value(&here), label));
                }
                Kind::Scatter => {
                    let x = self.x_value.as_ref().map_or(without_interval(f64::NAN), |x| x.value(&here));
                    data.push(datum(x, value.value(&here), label));
                }
                Kind::Profile | Kind::Dots => {
                    for (member, x) in members(value, &here) {
                        data.push(datum(without_interval(x), value.measuring(&member).value(&here), label));
                    }
                }
                Kind::Distribution => {
                    let mut values = value.by_seed(&here);
                    values.sort_by(f64::total_cmp);
                    let count = values.len() as f64;
                    for (number, value) in values.into_iter().enumerate() {
                        data.push(datum(
                            without_interval(value),
                            without_interval((number + 1) as f64 / count),
                            label,
                        ));
                    }
                }
            }
        }
        data
    }

    /// The drawing.
    #[must_use]
    pub fn figure(&self, plan: &Plan, data: &[Datum], title: &str) -> Figure {
        let unit = self.x.as_deref().and_then(|axis| {
            let (_, values) = plan.axes.iter().find(|(name, _)| name == axis)?;
            number_of(values.first()?).map(|(_, unit)| unit)
        });
        let x = self.x_axis.axis(self.x.as_deref().unwrap_or_default(), unit.unwrap_or_default());
        let mut figure = Figure::new(title, x, self.y_axis.axis("", ""));
        // Schemes have the same look in every figure; other lines, that of their place.
        let mut names: Vec<&str> = plan.known_schemes.iter().map(String::as_str).collect();
        for datum in data {
            if !names.contains(&datum.scheme.as_str()) {
                names.push(&datum.scheme);
            }
        }
        let is_by = self.by.is_some() || self.is_listed;
        names.retain(|name| data.iter().any(|datum| datum.scheme == *name) || !is_by);
        for (slot, name) in names.into_iter().enumerate() {
            let own: Vec<&Datum> = data.iter().filter(|datum| datum.scheme == *name).collect();
            if own.is_empty() {
                continue;
            }
            let points = own.iter().map(|datum| {
                let mut point = Point::new(datum.x.value, datum.y.value);
                if datum.y.low.is_finite() && datum.y.high.is_finite() {
                    point = point.with_y_range(datum.y.low, datum.y.high);
                }
                if self.kind == Kind::Scatter && datum.x.low.is_finite() && datum.x.low < datum.x.high {
                    point = point.with_x_range(datum.x.low, datum.x.high);
                }
                if self.kind == Kind::Scatter && own.len() == 1 { point.labelled(name) } else { point }
            });
            let style = match self.kind {
                Kind::Lines => Style::line_and_marks(),
                Kind::Profile => Style::line(),
                Kind::Dots => Style::marks(Mark::Dot),
                Kind::Distribution => Style::steps(),
                // Several points of a scheme are told apart by their order.
                Kind::Scatter if self.x.is_some() => Style::line_and_marks(),
                Kind::Scatter => Style::marks(Mark::BySlot),
            };
            figure.series.push(Series::new(name, style.with_slot(slot), points));
        }
        let printed: Vec<Point> = self.printed.iter().filter_map(|mark| mark.point(data)).collect();
        if !printed.is_empty() {
            let style = Style::marks(Mark::Ring).with_slot(figure.series.len());
            figure.series.push(Series::new("the paper", style, printed));
        }
        figure
    }
}

impl PrintedMark {
    /// The mark in a figure with these data; `None` where ours, which it lacks, was not run.
    fn point(&self, data: &[Datum]) -> Option<Point> {
        let nearest = |name: &str| {
            let distance = |datum: &&Datum| match (self.x, self.y) {
                (Some(x), _) => (datum.x.value - x).abs(),
                (None, Some(y)) => (datum.y.value - y).abs(),
                (None, None) => 0.0,
            };
            let own = data.iter().filter(|datum| datum.scheme == name);
            own.min_by(|one, other| distance(one).total_cmp(&distance(other)))
        };
        let own = nearest(&self.scheme)?;
        let base = self.of.as_deref().map_or(Some(1.0), |of| Some(nearest(of)?.y.value))?;
        let y = self.y.map_or(own.y.value, |y| y * base);
        Some(Point::new(self.x.unwrap_or(own.x.value), y).labelled(&self.scheme))
    }
}

/// A swept value in a legend: a bare number does not say of what it is.
fn legend_text((option, value): &(String, String)) -> String {
    match number_of(value) {
        Some(_) => format!("{} {value}", option.replace('-', " ")),
        None => value.clone(),
    }
}

/// Each value of a swept option, in the order of the plan; one without a name if there is none.
fn along(axis: Option<&str>, plan: &Plan) -> Vec<Vec<(String, String)>> {
    let Some(axis) = axis else { return vec![vec![]] };
    let mut values: Vec<&str> = vec![];
    for value in plan.points.iter().filter_map(|point| point.value(axis)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values.into_iter().map(|value| vec![(axis.to_owned(), value.to_owned())]).collect()
}

fn without_interval(value: f64) -> Interval {
    Interval { value, low: f64::NAN, high: f64::NAN }
}

/// The names of a family of numbers that runs gave, with the numbers in them.
fn members(value: &Quantity, scope: &Scope<'_>) -> Vec<(String, f64)> {
    let family = format!("{}/", value.measure());
    let names = value.runs(scope).iter().flat_map(|numbers| numbers.keys());
    let member = |name: &String| Some((name.clone(), name.strip_prefix(&family)?.parse().ok()?));
    let found: BTreeMap<String, f64> = names.filter_map(member).collect();
    let mut members: Vec<(String, f64)> = found.into_iter().collect();
    members.sort_by(|a, b| a.1.total_cmp(&b.1));
    members
}

impl AxisText {
    fn axis(&self, title: &str, unit: &str) -> Axis {
        let title = if self.title.is_empty() { title } else { &self.title };
        let unit = self.unit.as_deref().unwrap_or(unit);
        let axis = match self.scale {
            ScaleText::Linear => Axis::linear(title, unit),
            ScaleText::Log => Axis::logarithmic(title, unit),
        };
        match (self.from, self.to) {
            (Some(from), Some(to)) => axis.with_range(Range::Fixed(from, to)),
            (None, Some(to)) => axis.with_range(Range::Fixed(0.0, to)),
            (Some(0.0), None) => axis.with_range(Range::FromZero),
            (Some(from), None) => axis.with_range(Range::From(from)),
            (None, None) => axis,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::plan;
    use crate::quantity::tests::{PLAN, made_up};

    #[test]
    fn a_scatter_has_a_point_for_each_scheme_and_the_further_ones() {
        let further = r#"points = [{ name = "bound", value = { measure = "mean", scheme = "TCP", at = { load = "30 %" } }, x-value = { measure = "capacity.absolute", scheme = "TCP-10" } }]"#;
        let figure = format!(
            r#"{PLAN}
            [[figure]]
            name = "plane"
            caption = ""
            draw = "scatter"
            value = {{ measure = "mean", at = {{ load = "10 %" }} }}
            x-value = {{ measure = "capacity.absolute" }}
            y-axis = {{}}
            {further}"#
        );
        let plan = plan(&figure, false).expect("a plan");
        let drawing = &read(&figure, &plan).expect("a figure")[0];
        let points: Vec<_> = drawing
            .data(&plan, &made_up(&plan), 0)
            .into_iter()
            .map(|datum| (datum.scheme, datum.x.value, datum.y.value))
            .collect();
        let expected = [("TCP", 30.0, 410.0), ("TCP-10", 30.0, 210.0), ("bound", 30.0, 950.0)];
        assert_eq!(points, expected.map(|(name, x, y)| (name.to_owned(), x, y)));
        let lines = figure
            .replace("scatter", "lines")
            .replace("x-value = { measure = \"capacity.absolute\" }\n", "x = \"load\"\n");
        let refused = read(&lines, &plan).expect_err("points belong to a scatter");
        assert!(format!("{refused:#}").contains("found `points` without `scatter`"), "{refused:#}");
    }

    #[test]
    fn a_figure_is_drawn_at_each_of_several_values() {
        let figure = format!(
            "{PLAN}\n[[figure]]\nname = \"times\"\ncaption = \"Times.\"\ndraw = \"distribution\"\n\
             value = {{ measure = \"mean\" }}\neach = {{ load = [\"10 %\", \"20 %\"] }}\ny-axis = {{}}"
        );
        let plan = plan(&figure, false).expect("a plan");
        let drawings = read(&figure, &plan).expect("figures");
        let names: Vec<&str> = drawings.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["times-10", "times-20"]);
        assert_eq!(drawings[1].caption, "Times. Here: load 20 %.");
        // TCP takes 500 at 20 % of load, with either seed.
        assert_eq!(drawings[1].data(&plan, &made_up(&plan), 0)[0].x.value, 500.0);
        for each in ["{ load = [] }", "{ rtt = [\"60 ms\"] }", "{ load = [\"10 %\"], rtt = [\"60 ms\"] }"] {
            let wrong = figure.replace("{ load = [\"10 %\", \"20 %\"] }", each);
            let refused = format!("{:#}", read(&wrong, &plan).expect_err(each));
            assert!(refused.contains("expected one option that the plan sweeps"), "{each}: {refused}");
        }
    }

    #[test]
    fn numbers_that_the_paper_prints_are_hollow_marks_of_their_own() {
        let figure = format!(
            r#"{PLAN}
            [[figure]]
            name = "lines"
            caption = ""
            draw = "lines"
            x = "load"
            value = {{ measure = "mean" }}
            y-axis = {{}}
            paper = [{{ scheme = "TCP", x = 20, y = 333 }}, {{ scheme = "TCP-10", x = 10, y = 0.5, of = "TCP" }}, {{ scheme = "TCP-10", x = 30 }}]"#
        );
        let plan = plan(&figure, false).expect("a plan");
        let drawing = &read(&figure, &plan).expect("a figure")[0];
        let data = drawing.data(&plan, &made_up(&plan), 0);
        let drawn = drawing.figure(&plan, &data, "");
        let marks = drawn.series.last().expect("three series");
        assert_eq!(marks.name, "the paper");
        let places: Vec<(f64, f64)> = marks.points.iter().map(|point| (point.x, point.y)).collect();
        // TCP takes 410 at 10 % of load, TCP-10 950 at 30 %.
        assert_eq!(places, [(20.0, 333.0), (10.0, 205.0), (30.0, 950.0)]);
        for (wrong, part) in [
            ("{ scheme = \"BBR\", x = 20 }", "found `BBR`"),
            ("{ scheme = \"TCP\" }", "without `x` and `y`"),
            ("{ scheme = \"TCP\", x = 1, of = \"TCP-10\" }", "found `of` without `y`"),
        ] {
            let (head, _) = figure.split_once("paper = [").expect("the key");
            let refused = read(&format!("{head}paper = [{wrong}]"), &plan).expect_err(wrong);
            assert!(format!("{refused:#}").contains(part), "{refused:#}");
        }
    }

    #[test]
    fn a_number_in_a_legend_has_its_quantity_and_a_name_has_none() {
        for (option, value, expected) in [
            ("linger", "2 s", "linger 2 s"),
            ("router-share", "90 %", "router share 90 %"),
            ("routers", "target", "target"),
            ("router-measure", "peak:5", "peak:5"),
        ] {
            assert_eq!(legend_text(&(option.to_owned(), value.to_owned())), expected);
        }
    }
}
