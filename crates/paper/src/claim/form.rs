//! Numbers of a claim that are more than one quantity.
//!
//! | key | the number |
//! |---|---|
//! | `trend = "load"` | Kendall's tau along a swept option: 1 always rises, -1 always falls |
//! | `most = ["Cubic", "BBR"]`, `least` | largest or smallest value over each of these schemes |
//! | `crosses`, `along`, `over-crossing = "JumpStart"` | its crossing over the other's |
//!
//! A value without `over` takes the largest or smallest of these schemes themselves.
//! A `peak` says at which values of a swept option the value is largest.

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::{Finding, Verdict, digits};
use crate::plan::{Plan, number_of};
use crate::quantity::{Quantity, Resamples, Scope, UNKNOWN, check_scheme};
use headstart_report::statistics::Interval;

/// Rule that makes the claim's number of quantities.
#[derive(Clone, Debug)]
pub(super) enum Form {
    /// It is the quantity.
    Plain,
    /// Kendall's tau along an option.
    Trend { axis: String },
    /// The largest or the smallest over several schemes.
    Extreme { schemes: Vec<String>, is_most: bool },
    /// The quotient of two crossings.
    Crossings { other: String, axis: String, over: String },
}

pub(super) struct FormText {
    pub(super) trend: Option<String>,
    pub(super) most: Option<Vec<String>>,
    pub(super) least: Option<Vec<String>>,
    pub(super) over_crossing: Option<String>,
    pub(super) crosses: Option<String>,
    pub(super) along: Option<String>,
}

impl FormText {
    pub(super) fn read(self, value: &Quantity, plan: &Plan) -> Result<Form> {
        match (self.trend, self.most, self.least, self.over_crossing) {
            (None, None, None, None) => Ok(Form::Plain),
            (Some(axis), None, None, None) => {
                check_axis(&axis, plan).context("trend")?;
                Ok(Form::Trend { axis })
            }
            (None, Some(schemes), None, None) => extreme(schemes, true, plan).context("most"),
            (None, None, Some(schemes), None) => extreme(schemes, false, plan).context("least"),
            (None, None, None, Some(over)) => {
                check_scheme(&over, plan).context("over-crossing")?;
                let other = self.crosses.context("found `over-crossing` without the key `crosses`")?;
                check_scheme(&other, plan).context("crosses")?;
                let axis = self.along.context("found `crosses` without the key `along`")?;
                check_axis(&axis, plan).context("along")?;
                ensure!(
                    !value.is_compared(),
                    "found `over-crossing` of a value with `over`, expected one of them"
                );
                Ok(Form::Crossings { other, axis, over })
            }
            _ => bail!("found two of `trend`, `most`, `least` and `over-crossing`, expected one of them"),
        }
    }
}

fn extreme(schemes: Vec<String>, is_most: bool, plan: &Plan) -> Result<Form> {
    ensure!(schemes.len() > 1, "found {} schemes, expected two at least", schemes.len());
    schemes.iter().try_for_each(|scheme| check_scheme(scheme, plan))?;
    Ok(Form::Extreme { schemes, is_most })
}

fn check_axis(axis: &str, plan: &Plan) -> Result<()> {
    let known: Vec<&str> = plan.axes.iter().map(|(name, _)| name.as_str()).collect();
    ensure!(
        known.contains(&axis),
        "found `{axis}`, expected an option that the plan sweeps: {}",
        known.join(", ")
    );
    Ok(())
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
            Self::Trend { axis } => kendall(&along(axis, value, scope)),
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
            Self::Crossings { other, axis, over } => {
                let at = |value: &Quantity| scope.crossing(value, other, axis).value;
                at(value) / at(&value.of(over))
            }
        }
    }

    /// The number that means that nothing differs, where it compares.
    pub(super) fn neutral(&self, value: &Quantity) -> Option<f64> {
        match self {
            Self::Plain | Self::Extreme { .. } => value.neutral(),
            Self::Trend { .. } => Some(0.0),
            Self::Crossings { .. } => Some(1.0),
        }
    }

    /// The schemes that it names.
    pub(super) fn schemes(&self) -> Vec<&str> {
        match self {
            Self::Plain | Self::Trend { .. } => vec![],
            Self::Extreme { schemes, .. } => schemes.iter().map(String::as_str).collect(),
            Self::Crossings { other, over, .. } => vec![other, over],
        }
    }

    /// The same with other schemes.
    pub(super) fn renamed(&self, name: impl Fn(&String) -> String) -> Self {
        let mut form = self.clone();
        match &mut form {
            Self::Plain | Self::Trend { .. } => {}
            Self::Extreme { schemes, .. } => schemes.iter_mut().for_each(|one| *one = name(one)),
            Self::Crossings { other, over, .. } => (*other, *over) = (name(other), name(over)),
        }
        form
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
    let known = scope.plan.axes.iter().find(|(name, _)| name == axis).map_or(&[][..], |(_, values)| values);
    known
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

/// The value is largest at one of these values of a swept option.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Peak {
    along: String,
    at: Vec<String>,
}

impl Peak {
    pub(super) fn check(&self, value: &Quantity, plan: &Plan) -> Result<()> {
        check_axis(&self.along, plan).context("along")?;
        ensure!(
            !value.is_fixed(&self.along),
            "found a value at one {}, expected that it is left open",
            self.along
        );
        let known =
            plan.axes.iter().find(|(name, _)| *name == self.along).map_or(&[][..], |(_, values)| values);
        ensure!(!self.at.is_empty(), "at: found an empty list, expected values");
        for value in &self.at {
            ensure!(known.contains(value), "at: found `{value}`, expected one of {}", known.join(", "));
        }
        Ok(())
    }

    pub(super) fn shown(&self) -> String {
        format!("most at {}", self.at.join(" or "))
    }

    pub(super) fn judge(&self, value: &Quantity, scope: &Scope<'_>, unit: &str) -> Finding {
        let mut most: Option<(String, f64)> = None;
        for (text, _) in values_of(&self.along, scope) {
            let at = [(self.along.clone(), text.clone())];
            let found = value.value(&Scope { at: &at, ..*scope }).value;
            if found.is_nan() {
                return Finding { verdict: Verdict::NotRun, ours: UNKNOWN, shown: "-".into() };
            }
            if most.as_ref().is_none_or(|(_, before)| found > *before) {
                most = Some((text, found));
            }
        }
        let Some((at, found)) = most else {
            return Finding { verdict: Verdict::NotRun, ours: UNKNOWN, shown: "-".into() };
        };
        let verdict = if self.at.contains(&at) { Verdict::Holds } else { Verdict::Differs };
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        let ours = Interval { value: found, low: f64::NAN, high: f64::NAN };
        Finding { verdict, ours, shown: format!("most at {at} ({}{unit})", digits(found)) }
    }
}
