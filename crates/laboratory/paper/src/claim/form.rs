//! Numbers of a claim that are more than one quantity.
//!
//! | key | the number |
//! |---|---|
//! | `trend = "load"` | Kendall's tau along a swept option: 1 always rises, -1 always falls |
//! | `most = ["Cubic", "BBR"]`, `least` | largest or smallest value over each of these schemes |
//! | `crosses`, `along`, `over-crossing = "JumpStart"` | its crossing over the other's |
//! | `table = { rows = "size", columns = "hint", by = "error", paper = [[..], ..] }` | see below |
//!
//! A value without `over` takes the largest or smallest of these schemes themselves.
//! A `peak` says at which values of a swept option the value is largest.
//!
//! A `table` is a quotient at all values of two swept options, `nan` where the paper finds no
//! significant difference. It is judged `by` one number over all cells. `error` is the typical
//! factor between ours and the paper's, the exponential of the mean of |ln ours/paper|. `signs` is
//! the percentage of cells on the paper's side of one.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::{ClaimText, Finding, Verdict, digits};
use crate::plan::{Plan, number_of};
use crate::quantity::{Quantity, Resamples, Scope, UNKNOWN, check_scheme};
use headstart_report::figure::{Figure, HeatMap, HeatPanel};
use headstart_report::statistics::Interval;

/// Subject of a claim.
#[derive(Clone, Debug)]
pub(super) enum Form {
    /// The quantity.
    Plain,
    /// Kendall's tau along an option.
    Trend(String),
    /// The largest or the smallest over several schemes.
    Extreme { schemes: Vec<String>, is_most: bool },
    /// A crossing, or its quotient over another scheme's crossing.
    Crossing { other: String, axis: String, over: Option<String> },
    /// One number over all cells of a table.
    Table(Printed),
    /// Schemes, the smallest first.
    Order(Vec<String>),
    /// The place of the largest value.
    Peak(Peak),
}

/// A table that the paper prints, and the number by which ours is held against it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Printed {
    rows: String,
    columns: String,
    by: Agreement,
    paper: Vec<Vec<f64>>,
}

/// A table that the paper prints, and ours.
#[derive(Clone, Debug)]
pub struct PrintedTable {
    /// The drawing.
    pub map: HeatMap,
    /// Name of each cell, the paper's quotient, and ours.
    pub numbers: Vec<(String, f64, f64)>,
}

/// Number over the cells of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Agreement {
    /// The typical factor between the two.
    Error,
    /// Percentage of cells on the same side of one.
    Signs,
}

impl Form {
    pub(super) fn read(text: &mut ClaimText, value: &Quantity, plan: &Plan) -> Result<Self> {
        let keys = [
            ("trend", text.trend.is_some()),
            ("most", text.most.is_some()),
            ("least", text.least.is_some()),
            ("crosses", text.crosses.is_some()),
            ("table", text.table.is_some()),
            ("order", text.order.is_some()),
            ("peak", text.peak.is_some()),
        ];
        let found: Vec<&str> =
            keys.into_iter().filter(|(_, is_there)| *is_there).map(|(key, _)| key).collect();
        ensure!(found.len() < 2, "found the keys {}, expected one of them", found.join(" and "));
        ensure!(
            text.over_crossing.is_none() || text.crosses.is_some(),
            "found `over-crossing` without the key `crosses`"
        );
        let several = |names: Vec<String>| -> Result<Vec<String>> {
            ensure!(names.len() > 1, "found {} schemes, expected two at least", names.len());
            names.iter().try_for_each(|scheme| check_scheme(scheme, plan))?;
            Ok(names)
        };
        Ok(if let Some(axis) = text.trend.take() {
            check_axis(&axis, plan).context("trend")?;
            Self::Trend(axis)
        } else if let Some(names) = text.most.take() {
            Self::Extreme { schemes: several(names).context("most")?, is_most: true }
        } else if let Some(names) = text.least.take() {
            Self::Extreme { schemes: several(names).context("least")?, is_most: false }
        } else if let Some(other) = text.crosses.take() {
            let (axis, over) = (text.along.take(), text.over_crossing.take());
            let axis = axis.context("found `crosses` without the key `along`")?;
            check_axis(&axis, plan).context("along")?;
            check_scheme(&other, plan).context("crosses")?;
            if let Some(over) = &over {
                check_scheme(over, plan).context("over-crossing")?;
                ensure!(
                    !value.is_compared(),
                    "found `over-crossing` of a value with `over`, expected one of them"
                );
            }
            Self::Crossing { other, axis, over }
        } else if let Some(table) = text.table.take() {
            table.check(value, plan).context("table")?;
            Self::Table(table)
        } else if let Some(names) = text.order.take() {
            Self::Order(several(names).context("order")?)
        } else if let Some(peak) = text.peak.take() {
            peak.check(value, plan).context("peak")?;
            Self::Peak(peak)
        } else {
            Self::Plain
        })
    }
}

pub(super) fn check_axis(axis: &str, plan: &Plan) -> Result<()> {
    let known: Vec<&str> = plan.axes.iter().map(|(name, _)| name.as_str()).collect();
    ensure!(
        known.contains(&axis),
        "found `{axis}`, expected an option that the plan sweeps: {}",
        known.join(", ")
    );
    Ok(())
}

/// All values of a swept option.
fn axis_values<'a>(axis: &str, plan: &'a Plan) -> &'a [String] {
    plan.axes.iter().find(|(name, _)| name == axis).map_or(&[][..], |(_, values)| values)
}

/// Values of a swept option, each of which the full plan runs.
pub(super) fn check_values(axis: &str, values: &[String], plan: &Plan) -> Result<()> {
    let known = axis_values(axis, plan);
    for value in values {
        ensure!(known.contains(value), "{axis}: found `{value}`, expected one of {}", known.join(", "));
    }
    Ok(())
}

impl Printed {
    fn check(&self, value: &Quantity, plan: &Plan) -> Result<()> {
        ensure!(value.neutral() == Some(1.0), "found a value that is no quotient, expected `over`");
        for axis in [&self.rows, &self.columns] {
            check_axis(axis, plan)?;
            ensure!(!value.is_fixed(axis), "found a value at one {axis}, expected that it is left open");
        }
        let (rows, columns) = (axis_values(&self.rows, plan).len(), axis_values(&self.columns, plan).len());
        ensure!(
            self.paper.len() == rows && self.paper.iter().all(|row| row.len() == columns),
            "paper: expected {rows} rows of {columns} numbers each, as the plan's {} and {}",
            self.rows,
            self.columns
        );
        ensure!(
            self.paper.iter().flatten().all(|cell| cell.is_nan() || *cell > 0.0),
            "paper: found a quotient of zero or less, expected more, or `nan` where nothing is significant"
        );
        Ok(())
    }

    /// Ours and the paper's in each cell, row by row. Not a number where ours was not run, or where
    /// the paper finds no difference.
    fn all_cells(&self, value: &Quantity, scope: &Scope<'_>) -> Vec<Vec<(f64, f64)>> {
        let (rows, columns) = (axis_values(&self.rows, scope.plan), axis_values(&self.columns, scope.plan));
        let row = |(row, printed): (&String, &Vec<f64>)| {
            let cell = |(column, paper): (&String, &f64)| {
                let at = [(self.rows.clone(), row.clone()), (self.columns.clone(), column.clone())];
                (value.value(&Scope { at: &at, ..*scope }).value, *paper)
            };
            columns.iter().zip(printed).map(cell).collect()
        };
        rows.iter().zip(&self.paper).map(row).collect()
    }

    /// Ours and the paper's where there are both.
    fn cells(&self, value: &Quantity, scope: &Scope<'_>) -> Vec<(f64, f64)> {
        let mut cells = self.all_cells(value, scope).concat();
        cells.retain(|(ours, paper)| ours.is_finite() && paper.is_finite());
        cells
    }

    /// The paper's quotients and ours, cell by cell, coloured by how far they are apart.
    pub(super) fn heat_map(&self, value: &Quantity, scope: &Scope<'_>, says: &str) -> Option<PrintedTable> {
        if self.by != Agreement::Error {
            return None;
        }
        let (rows, columns) = (axis_values(&self.rows, scope.plan), axis_values(&self.columns, scope.plan));
        let cells = self.all_cells(value, scope);
        let per_cell = |of: &dyn Fn(&(f64, f64)) -> String| {
            cells.iter().map(|row| row.iter().map(of).collect()).collect::<Vec<Vec<String>>>()
        };
        let map = HeatMap {
            columns: (self.columns.clone(), columns.to_vec()),
            rows: (self.rows.clone(), rows.to_vec()),
            panels: vec![HeatPanel {
                cells: cells
                    .iter()
                    .map(|row| {
                        row.iter()
                            .map(|(ours, paper)| Some(ours / paper).filter(|it| it.is_finite()))
                            .collect()
                    })
                    .collect(),
                texts: per_cell(&|(ours, paper)| format!("{} | {}", digits(*paper), digits(*ours))),
                ..HeatPanel::default()
            }],
            says: format!("{says}: the paper's | ours"),
            width: Figure::WIDTH,
            full: 2.0,
        };
        let mut numbers = vec![];
        for (row, found) in rows.iter().zip(&cells) {
            for (column, (ours, paper)) in columns.iter().zip(found) {
                numbers.push((format!("{row}, {column}"), *paper, *ours));
            }
        }
        Some(PrintedTable { map, numbers })
    }

    fn number(&self, value: &Quantity, scope: &Scope<'_>) -> f64 {
        let cells = self.cells(value, scope);
        let mean = |of: fn(&(f64, f64)) -> f64| cells.iter().map(of).sum::<f64>() / cells.len() as f64;
        match self.by {
            Agreement::Error => mean(|(ours, paper)| (ours / paper).ln().abs()).exp(),
            Agreement::Signs => {
                // A quotient that is printed as one has no side.
                let sided: Vec<f64> = cells
                    .iter()
                    .filter(|(_, paper)| *paper != 1.0)
                    .map(|(ours, paper)| f64::from(u8::from((ours - 1.0) * (paper - 1.0) > 0.0)))
                    .collect();
                100.0 * sided.iter().sum::<f64>() / sided.len() as f64
            }
        }
    }
}

impl Form {
    /// The number, with its interval.
    pub(super) fn value(&self, value: &Quantity, scope: &Scope<'_>) -> Interval {
        let without_interval = |value: f64| Interval { value, low: f64::NAN, high: f64::NAN };
        if scope.draw.is_some() {
            return without_interval(self.number(value, scope));
        }
        let own = match self {
            Self::Plain => value.value(scope),
            _ => without_interval(self.number(value, scope)),
        };
        if own.value.is_nan() || own.low.is_finite() {
            return own;
        }
        Resamples::new(scope.results.repeats()).interval(scope, |scope| self.number(value, scope))
    }

    fn number(&self, value: &Quantity, scope: &Scope<'_>) -> f64 {
        match self {
            Self::Plain => value.value(scope).value,
            Self::Trend(axis) => kendall(&along(axis, value, scope)),
            Self::Extreme { schemes, is_most } => {
                let of = |scheme: &String| {
                    let one = if value.is_compared() { value.over(scheme) } else { value.of(scheme) };
                    one.value(scope).value
                };
                let found: Vec<f64> = schemes.iter().map(of).collect();
                if found.iter().any(|one| one.is_nan()) {
                    return f64::NAN;
                }
                let by = if *is_most { f64::max } else { f64::min };
                found.into_iter().reduce(by).unwrap_or(f64::NAN)
            }
            Self::Crossing { other, axis, over: Some(over) } => {
                let at = |value: &Quantity| scope.crossing(value, other, axis).value;
                at(value) / at(&value.of(over))
            }
            Self::Table(table) => table.number(value, scope),
            // They have more to say than a number.
            Self::Crossing { .. } | Self::Order(_) | Self::Peak(_) => f64::NAN,
        }
    }

    /// The number that means that nothing differs, where it compares.
    pub(super) fn neutral(&self, value: &Quantity) -> Option<f64> {
        match self {
            Self::Trend(_) => Some(0.0),
            Self::Crossing { over: Some(_), .. } => Some(1.0),
            Self::Table(_) => None,
            _ => value.neutral(),
        }
    }

    /// The schemes that it names.
    pub(super) fn schemes(&self) -> Vec<&str> {
        match self {
            Self::Extreme { schemes, .. } | Self::Order(schemes) => {
                schemes.iter().map(String::as_str).collect()
            }
            Self::Crossing { other, over, .. } => {
                [other].into_iter().chain(over).map(String::as_str).collect()
            }
            Self::Plain | Self::Trend(_) | Self::Table(_) | Self::Peak(_) => vec![],
        }
    }
}

/// The values at all values of an option that are run, in the option's order.
fn along(axis: &str, value: &Quantity, scope: &Scope<'_>) -> Vec<f64> {
    let mut points: Vec<(f64, f64)> = vec![];
    for (text, x) in values_of(axis, scope) {
        let at = [(axis.to_owned(), text)];
        points.push((x, value.value(&Scope { at: &at, ..*scope }).value));
    }
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    points.into_iter().map(|(_, value)| value).collect()
}

/// The values of an option that are run, each with its number (its place, where it has none).
fn values_of(axis: &str, scope: &Scope<'_>) -> Vec<(String, f64)> {
    axis_values(axis, scope.plan)
        .iter()
        .enumerate()
        .filter(|(_, value)| scope.plan.points.iter().any(|point| point.value(axis) == Some(value.as_str())))
        .map(|(place, value)| (value.clone(), number_of(value).map_or(place as f64, |(number, _)| number)))
        .collect()
}

/// Pairs that rise less those that fall, over all pairs.
fn kendall(values: &[f64]) -> f64 {
    if values.len() < 2 || values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    let (mut sum, mut pairs) = (0.0, 0.0);
    for (place, one) in values.iter().enumerate() {
        for other in &values[place + 1..] {
            pairs += 1.0;
            sum += if other > one {
                1.0
            } else if other < one {
                -1.0
            } else {
                0.0
            };
        }
    }
    sum / pairs
}

/// The value is largest at one of these values of a swept option, or `within` its unit of the
/// largest.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Peak {
    along: String,
    at: Vec<String>,
    #[serde(default)]
    within: f64,
}

impl Peak {
    pub(super) fn check(&self, value: &Quantity, plan: &Plan) -> Result<()> {
        check_axis(&self.along, plan).context("along")?;
        ensure!(
            !value.is_fixed(&self.along),
            "found a value at one {}, expected that it is left open",
            self.along
        );
        ensure!(!self.at.is_empty(), "at: found an empty list, expected values");
        check_values(&self.along, &self.at, plan).context("at")
    }

    pub(super) fn shown(&self) -> String {
        let at = self.at.join(" or ");
        if self.within > 0.0 {
            format!("at {at}, within {} of the most", digits(self.within))
        } else {
            format!("most at {at}")
        }
    }

    pub(super) fn judge(&self, value: &Quantity, scope: &Scope<'_>, unit: &str) -> Finding {
        let mut most: Option<(String, f64)> = None;
        let mut claimed: Option<(String, f64)> = None;
        for (text, _) in values_of(&self.along, scope) {
            let at = [(self.along.clone(), text.clone())];
            let found = value.value(&Scope { at: &at, ..*scope }).value;
            if found.is_nan() {
                return Finding { verdict: Verdict::NotRun, ours: UNKNOWN, shown: "-".into() };
            }
            if self.at.contains(&text) && claimed.as_ref().is_none_or(|(_, before)| found > *before) {
                claimed = Some((text.clone(), found));
            }
            if most.as_ref().is_none_or(|(_, before)| found > *before) {
                most = Some((text, found));
            }
        }
        let (Some((at, found)), Some((there, claimed))) = (most, claimed) else {
            return Finding { verdict: Verdict::NotRun, ours: UNKNOWN, shown: "-".into() };
        };
        let verdict = if claimed + self.within >= found { Verdict::Holds } else { Verdict::Differs };
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        let ours = Interval { value: found, low: f64::NAN, high: f64::NAN };
        let mut shown = format!("most at {at} ({}{unit})", digits(found));
        if self.within > 0.0 && there != at {
            shown += &format!(", {}{unit} at {there}", digits(claimed));
        }
        Finding { verdict, ours, shown }
    }
}
