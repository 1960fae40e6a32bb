//! A number of a claim or a figure, worked out from runs, with its 95 % interval.
//!
//! ```toml
//! value = { measure = "mean", scheme = "Halfback", at = { load = "25 %" }, over = { scheme = "TCP" }, as = "reduction" }
//! ```
//!
//! | key | meaning |
//! |---|---|
//! | `measure` | a number of a run ([`super::study`]), or `capacity.own`, `capacity.absolute`, `capacity.reference` (`docs/definitions.md`) |
//! | `scheme`, `cast`, `at` | whose, in which mixture, at which values of the swept options |
//! | `across` | `mean`, `min` or `max` over the points that `at` leaves open |
//! | `statistic` | over seeds: `mean` (default), `median`, `p90`, `p99` |
//! | `over` | what it is divided by: the same, but for the keys given here |
//! | `as` | of the quotient: `ratio` (default), `change` (100 (q - 1) %), `reduction` (100 (1 - q) %); or `difference` |
//!
//! Quotients at one point are paired by seed, with Fieller's interval; aggregates over points have Student's interval of the
//! same aggregate seed by seed, put around the aggregate of the pooled points. A capacity has the smallest and the largest
//! of single seeds as its interval.

use anyhow::{Context, Result, bail, ensure};
use headstart_units::Span;
use serde::Deserialize;
use toml::Table;

use super::plan::{CastName, Fixed, Plan, number_of};
use super::run::Results;
use crate::setup::REFERENCE;
use crate::statistics::{Interval, mean, mean_interval, quantile, ratio_interval};

/// What is left of a quantity when nothing can be said.
pub const UNKNOWN: Interval = Interval { value: f64::NAN, low: f64::NAN, high: f64::NAN };

/// As it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuantityText {
    measure: String,
    scheme: Option<String>,
    #[serde(default)]
    cast: CastName,
    #[serde(default)]
    at: Table,
    across: Option<Across>,
    #[serde(default)]
    statistic: Statistic,
    over: Option<OverText>,
    #[serde(rename = "as")]
    shown_as: Option<ShownAs>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct OverText {
    measure: Option<String>,
    scheme: Option<String>,
    cast: Option<CastName>,
    #[serde(default)]
    at: Table,
}

/// How points that are left open become one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Across {
    /// Their mean.
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

/// How seeds become one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// Their mean.
    #[default]
    Mean,
    /// Their median.
    Median,
    /// Their 90th percentile.
    P90,
    /// Their 99th percentile.
    P99,
}

/// How a quotient is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShownAs {
    /// As it is.
    Ratio,
    /// By how many percent it is above one.
    Change,
    /// By how many percent it is below one.
    Reduction,
    /// Not a quotient but a difference, in the measure's unit.
    Difference,
}

/// Which rule a capacity follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Own,
    Absolute,
    Reference,
}

/// A number's name, whose it is, and where.
#[derive(Clone, Debug)]
struct Place {
    measure: String,
    scheme: Option<String>,
    cast: CastName,
    at: Fixed,
}

/// A checked quantity.
#[derive(Clone, Debug)]
pub struct Quantity {
    place: Place,
    over: Option<Place>,
    across: Option<Across>,
    statistic: Statistic,
    shown_as: ShownAs,
}

/// Where a quantity is asked for: what it leaves open is taken from here.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Its results.
    pub results: &'a Results,
    /// Which of the plan's variants.
    pub variant: usize,
    /// The scheme, where the quantity names none.
    pub scheme: Option<&'a str>,
    /// Values of swept options, where the quantity names none.
    pub at: &'a [(String, String)],
}

/// One value for each seed, and the value of all seeds together.
#[derive(Clone, Debug)]
struct Sample {
    pooled: f64,
    by_seed: Vec<f64>,
}

impl Quantity {
    /// Checks what is written against the plan. `is_series`: a scheme may be left open.
    ///
    /// # Errors
    /// With key, found and expected.
    pub fn read(text: QuantityText, plan: &Plan, is_series: bool) -> Result<Self> {
        let place =
            Place { measure: text.measure, scheme: text.scheme, cast: text.cast, at: fixed(&text.at, plan)? };
        place.check(plan)?;
        ensure!(
            is_series || place.scheme.is_some(),
            "found no key `scheme`, expected one of {}",
            plan.known_schemes.join(", ")
        );
        let over = match text.over {
            None => None,
            Some(text) => {
                let mut over = place.clone();
                over.measure = text.measure.unwrap_or(over.measure);
                over.scheme = text.scheme.or(over.scheme);
                over.cast = text.cast.unwrap_or(over.cast);
                over.at.extend(fixed(&text.at, plan)?);
                over.check(plan).context("over")?;
                Some(over)
            }
        };
        ensure!(
            text.shown_as.is_none() || over.is_some(),
            "found the key `as` without `over`, expected both or none"
        );
        Ok(Self {
            place,
            over,
            across: text.across,
            statistic: text.statistic,
            shown_as: text.shown_as.unwrap_or(ShownAs::Ratio),
        })
    }

    /// The measure's name.
    #[must_use]
    pub fn measure(&self) -> &str {
        &self.place.measure
    }

    /// Whose it is, if that is fixed.
    #[must_use]
    pub fn scheme(&self) -> Option<&str> {
        self.place.scheme.as_deref()
    }

    /// The same of another scheme.
    #[must_use]
    pub fn of(&self, scheme: &str) -> Self {
        let mut other = self.clone();
        other.place.scheme = Some(scheme.to_owned());
        other
    }

    /// The same of another measure.
    #[must_use]
    pub fn measuring(&self, measure: &str) -> Self {
        let mut other = self.clone();
        other.place.measure = measure.to_owned();
        if let Some(over) = &mut other.over {
            over.measure = measure.to_owned();
        }
        other
    }

    /// It is a quotient or a difference, of which 1 or 0 means that nothing differs.
    #[must_use]
    pub fn neutral(&self) -> Option<f64> {
        self.over.as_ref().map(|_| if self.shown_as == ShownAs::Ratio { 1.0 } else { 0.0 })
    }

    /// The values of each seed; empty if not run.
    #[must_use]
    pub fn by_seed(&self, context: &Scope<'_>) -> Vec<f64> {
        let points = context.points(&self.place);
        let [point] = points[..] else { return vec![] };
        context.sample(&self.place, &[point], self.statistic).map(|sample| sample.by_seed).unwrap_or_default()
    }

    /// What came out; not a number if it was not run, or not measured.
    #[must_use]
    pub fn value(&self, context: &Scope<'_>) -> Interval {
        self.try_value(context).unwrap_or(UNKNOWN)
    }

    fn try_value(&self, context: &Scope<'_>) -> Option<Interval> {
        let is_capacity = rule_of(&self.place.measure).is_some();
        let points = context.points(&self.place);
        if is_capacity {
            let sample = context.sample(&self.place, &points, self.statistic)?;
            let Some(over) = &self.over else { return Some(range(&sample)) };
            let other = context.sample(over, &context.points(over), self.statistic)?;
            return Some(range(&self.combine(&sample, &other)));
        }
        let others = self.over.as_ref().map(|over| context.points(over));
        let mut samples = vec![];
        for (number, point) in points.iter().enumerate() {
            let sample = context.sample(&self.place, &[*point], self.statistic)?;
            let other = match (&self.over, &others) {
                (Some(over), Some(others)) => {
                    let other = if others.len() == 1 { others[0] } else { *others.get(number)? };
                    Some(context.sample(over, &[other], self.statistic)?)
                }
                _ => None,
            };
            // Quotients are paired by seed: both must have the same cases.
            if other.as_ref().is_some_and(|other: &Sample| other.by_seed.len() != sample.by_seed.len()) {
                return None;
            }
            samples.push((sample, other));
        }
        if let [(sample, other)] = &samples[..] {
            return Some(self.single(sample, other.as_ref()));
        }
        let combined: Vec<Sample> = samples
            .iter()
            .map(|(sample, other)| {
                other.as_ref().map_or_else(|| sample.clone(), |other| self.combine(sample, other))
            })
            .collect();
        let across = self.across?;
        let fold = |values: &[f64]| match across {
            Across::Mean => mean(values).unwrap_or(f64::NAN),
            Across::Min => values.iter().copied().fold(f64::NAN, f64::min),
            Across::Max => values.iter().copied().fold(f64::NAN, f64::max),
        };
        let pooled: Vec<f64> = combined.iter().map(|sample| sample.pooled).collect();
        let value = fold(&pooled);
        let seeds = combined.first()?.by_seed.len();
        let by_seed: Vec<f64> = (0..seeds)
            .map(|seed| {
                let values: Vec<f64> = combined.iter().map(|sample| sample.by_seed[seed]).collect();
                fold(&values)
            })
            .collect();
        let reach = match (self.statistic, mean_interval(&by_seed)) {
            (Statistic::Mean, Some(interval)) => interval.half_width(),
            _ => f64::NAN,
        };
        Some(Interval { value, low: value - reach, high: value + reach })
    }

    fn single(&self, sample: &Sample, other: Option<&Sample>) -> Interval {
        let bare = |value: f64| Interval { value, low: f64::NAN, high: f64::NAN };
        let is_mean = self.statistic == Statistic::Mean;
        match other {
            None if is_mean => mean_interval(&sample.by_seed).unwrap_or_else(|| bare(sample.pooled)),
            None => bare(sample.pooled),
            Some(other) if self.shown_as == ShownAs::Difference => {
                let differences: Vec<f64> =
                    sample.by_seed.iter().zip(&other.by_seed).map(|(one, two)| one - two).collect();
                let value = sample.pooled - other.pooled;
                if is_mean { mean_interval(&differences).unwrap_or_else(|| bare(value)) } else { bare(value) }
            }
            Some(other) => {
                let ratio = if is_mean { ratio_interval(&sample.by_seed, &other.by_seed) } else { None };
                let ratio = ratio.unwrap_or_else(|| bare(sample.pooled / other.pooled));
                let (one, two) = (self.shown(ratio.low), self.shown(ratio.high));
                Interval { value: self.shown(ratio.value), low: one.min(two), high: one.max(two) }
            }
        }
    }

    fn combine(&self, sample: &Sample, other: &Sample) -> Sample {
        let one = |one: f64, two: f64| {
            if self.shown_as == ShownAs::Difference { one - two } else { self.shown(one / two) }
        };
        Sample {
            pooled: one(sample.pooled, other.pooled),
            by_seed: sample.by_seed.iter().zip(&other.by_seed).map(|(a, b)| one(*a, *b)).collect(),
        }
    }

    fn shown(&self, ratio: f64) -> f64 {
        match self.shown_as {
            ShownAs::Ratio | ShownAs::Difference => ratio,
            ShownAs::Change => 100.0 * (ratio - 1.0),
            ShownAs::Reduction => 100.0 * (1.0 - ratio),
        }
    }
}

fn range(sample: &Sample) -> Interval {
    let fold = |by: fn(f64, f64) -> f64| sample.by_seed.iter().copied().fold(sample.pooled, by);
    Interval { value: sample.pooled, low: fold(f64::min), high: fold(f64::max) }
}

/// Values of swept options, as written; each must be one that the full plan runs.
///
/// # Errors
/// With the option, found and expected.
pub fn fixed(table: &Table, plan: &Plan) -> Result<Fixed> {
    table
        .iter()
        .map(|(option, value)| {
            let Some((_, values)) = plan.axes.iter().find(|(name, _)| name == option) else {
                let known: Vec<&str> = plan.axes.iter().map(|(name, _)| name.as_str()).collect();
                bail!("at.{option}: found an option that is not swept, expected one of {}", known.join(", "));
            };
            let text = match value {
                toml::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            ensure!(
                values.contains(&text),
                "at.{option}: found `{text}`, expected one of {}",
                values.join(", ")
            );
            Ok((option.clone(), text))
        })
        .collect()
}

impl Place {
    fn check(&self, plan: &Plan) -> Result<()> {
        if self.measure.starts_with("capacity.") {
            ensure!(
                rule_of(&self.measure).is_some(),
                "measure: found `{}`, expected capacity.own, capacity.absolute or capacity.reference",
                self.measure
            );
            ensure!(
                plan.axes.iter().any(|(axis, _)| axis == "load"),
                "measure: found `{}`, expected a plan that sweeps the load",
                self.measure
            );
        } else {
            ensure!(
                plan.study.measures(&self.measure),
                "measure: found `{}`, expected a number that the study gives",
                self.measure
            );
        }
        if let Some(scheme) = &self.scheme {
            check_scheme(scheme, plan)?;
        }
        ensure!(
            plan.casts.contains(&self.cast),
            "cast: found {:?}, expected one that the plan runs",
            self.cast
        );
        Ok(())
    }
}

/// That the full plan runs a scheme.
///
/// # Errors
/// If not.
pub fn check_scheme(scheme: &str, plan: &Plan) -> Result<()> {
    ensure!(
        plan.known_schemes.iter().any(|known| known == scheme),
        "scheme: found `{scheme}`, expected one of {}",
        plan.known_schemes.join(", ")
    );
    Ok(())
}

fn rule_of(measure: &str) -> Option<Rule> {
    match measure {
        "capacity.own" => Some(Rule::Own),
        "capacity.absolute" => Some(Rule::Absolute),
        "capacity.reference" => Some(Rule::Reference),
        _ => None,
    }
}

impl Scope<'_> {
    /// The plan's points that agree with the place, and with this context where the place says nothing.
    fn points(&self, place: &Place) -> Vec<usize> {
        let agrees = |point: &super::plan::Point| {
            point.0.iter().all(|(axis, value)| {
                let wanted = place
                    .at
                    .get(axis)
                    .or_else(|| self.at.iter().find(|(name, _)| name == axis).map(|(_, value)| value));
                wanted.is_none_or(|wanted| wanted == value)
            })
        };
        (0..self.plan.points.len()).filter(|at| agrees(&self.plan.points[*at])).collect()
    }

    fn scheme_of(&self, name: &str) -> Option<usize> {
        self.plan.schemes.iter().position(|scheme| scheme.name == name)
    }

    fn numbers(&self, measure: &str, scheme: usize, cast: CastName, point: usize) -> Option<Vec<f64>> {
        let seeds = self.results.seeds(self.variant, point, scheme, cast);
        // A seed may lack a number that it has no case for, such as a time where packets were lost.
        let values: Vec<f64> = seeds.iter().filter_map(|numbers| numbers.get(measure).copied()).collect();
        if values.is_empty() { None } else { Some(values) }
    }

    fn sample(&self, place: &Place, points: &[usize], statistic: Statistic) -> Option<Sample> {
        let scheme = self.scheme_of(place.scheme.as_deref().or(self.scheme)?)?;
        if let Some(rule) = rule_of(&place.measure) {
            return self.capacity(rule, scheme, place.cast, points);
        }
        let [point] = points else { return None };
        let by_seed = self.numbers(&place.measure, scheme, place.cast, *point)?;
        let pooled = match statistic {
            Statistic::Mean => mean(&by_seed),
            Statistic::Median => quantile(&by_seed, 0.5),
            Statistic::P90 => quantile(&by_seed, 0.9),
            Statistic::P99 => quantile(&by_seed, 0.99),
        }?;
        Some(Sample { pooled, by_seed })
    }

    /// The last load before the first at which the rule is broken, of all seeds and of each.
    fn capacity(&self, rule: Rule, scheme: usize, cast: CastName, points: &[usize]) -> Option<Sample> {
        let curve = |scheme: usize| -> Option<Vec<(f64, Vec<f64>)>> {
            let mut curve = points
                .iter()
                .map(|point| {
                    let load = number_of(self.plan.points[*point].value("load")?)?.0;
                    Some((load, self.numbers("mean", scheme, cast, *point)?))
                })
                .collect::<Option<Vec<_>>>()?;
            curve.sort_by(|a, b| a.0.total_cmp(&b.0));
            Some(curve)
        };
        let own = curve(scheme)?;
        let reference = match rule {
            Rule::Reference => {
                let name = self.plan.schemes.iter().position(|scheme| scheme.entry.name == REFERENCE)?;
                Some(curve(name)?)
            }
            Rule::Own | Rule::Absolute => None,
        };
        let first = own.first()?;
        let find = |value: &dyn Fn(&[f64]) -> f64| {
            let base = value(&first.1);
            let mut last = 0.0;
            for (number, (load, seeds)) in own.iter().enumerate() {
                let mean = value(seeds);
                let limit = match (rule, &reference) {
                    (Rule::Own, _) => crate::capacity::TIMES_OWN * base,
                    (Rule::Absolute, _) => Span::as_millis_f64(crate::capacity::ABSOLUTE),
                    (Rule::Reference, reference) => {
                        reference.as_ref().map_or(f64::NAN, |curve| value(&curve[number].1))
                    }
                };
                if mean > limit {
                    break;
                }
                last = *load;
            }
            last
        };
        let seeds = first.1.len();
        Some(Sample {
            pooled: find(&|values| mean(values).unwrap_or(f64::NAN)),
            by_seed: (0..seeds).map(|seed| find(&|values: &[f64]| values[seed])).collect(),
        })
    }

    /// The first value along an axis at which the quantity of `scheme` rises above that of `other`, having been below
    /// before; between two points it is interpolated. The interval is that of single seeds, smallest to largest.
    #[must_use]
    pub fn crossing(&self, quantity: &Quantity, other: &str, axis: &str) -> Interval {
        let Some(scheme) = quantity.scheme().or(self.scheme) else { return UNKNOWN };
        let (Some(one), Some(two)) = (self.scheme_of(scheme), self.scheme_of(other)) else { return UNKNOWN };
        let mut curve = vec![];
        for point in self.points(&quantity.place) {
            let x = self.plan.points[point].value(axis).and_then(number_of);
            let cast = quantity.place.cast;
            let measure = quantity.measure();
            if let (Some((x, _)), Some(a), Some(b)) =
                (x, self.numbers(measure, one, cast, point), self.numbers(measure, two, cast, point))
            {
                curve.push((x, a, b));
            }
        }
        curve.sort_by(|a, b| a.0.total_cmp(&b.0));
        let find = |value: &dyn Fn(&[f64]) -> f64| {
            let mut before: Option<(f64, f64)> = None;
            for (x, a, b) in &curve {
                let excess = value(a) / value(b) - 1.0;
                if let Some((left, below)) = before
                    && excess > 0.0
                {
                    return left + (x - left) * below / (below - excess);
                }
                if excess <= 0.0 {
                    before = Some((*x, excess));
                }
            }
            f64::NAN
        };
        let value = find(&|values| mean(values).unwrap_or(f64::NAN));
        let singles: Vec<f64> =
            (0..self.results.repeats()).map(|seed| find(&|values: &[f64]| values[seed])).collect();
        let fold = |by: fn(f64, f64) -> f64| singles.iter().copied().fold(value, by);
        Interval { value, low: fold(f64::min), high: fold(f64::max) }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::experiment::plan;
    use crate::experiment::study::Numbers;

    /// Two schemes on three loads with two seeds: completion times that can be reckoned with in the head.
    pub(crate) const PLAN: &str = r#"
        title = "A figure"
        source = "Figure 1"
        shows = "something"
        schemes = ["TCP", "TCP-10"]
        [sweep]
        load = ["10 %", "20 %", "30 %"]
    "#;

    pub(crate) fn made_up(plan: &Plan) -> Results {
        // By load, then scheme, then seed.
        let times = [
            [[400.0, 420.0], [200.0, 220.0]],
            [[500.0, 500.0], [300.0, 340.0]],
            [[1000.0, 900.0], [1200.0, 700.0]],
        ];
        let runs = times
            .iter()
            .flatten()
            .flatten()
            .map(|time| Numbers::from([("mean".to_owned(), *time)]))
            .collect();
        Results::new(plan, 2, runs)
    }

    fn value(text: &str) -> Interval {
        let plan = plan::tests::plan(PLAN, false).expect("fine");
        let results = made_up(&plan);
        let text: QuantityText = toml::from_str(text).expect(text);
        let quantity = Quantity::read(text, &plan, false).expect("fine");
        quantity.value(&Scope { plan: &plan, results: &results, variant: 0, scheme: None, at: &[] })
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "found {found}, expected {expected}");
    }

    #[test]
    fn a_mean_is_that_of_its_seeds() {
        let found = value("measure = \"mean\"\nscheme = \"TCP\"\nat = { load = \"10 %\" }");
        close(found.value, 410.0);
        // Student's t of one degree of freedom times a standard error of 10.
        assert!((found.half_width() - 127.06).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn a_quotient_is_shown_as_asked_for() {
        let with = |shown: &str| {
            value(&format!(
                "measure = \"mean\"\nscheme = \"TCP-10\"\nat = {{ load = \"10 %\" }}\nover = {{ scheme = \"TCP\" }}\nas = \"{shown}\""
            ))
        };
        close(with("ratio").value, 210.0 / 410.0);
        close(with("reduction").value, 100.0 * (1.0 - 210.0 / 410.0));
        close(with("change").value, 100.0 * (210.0 / 410.0 - 1.0));
        close(with("difference").value, -200.0);
        let reduction = with("reduction");
        assert!(reduction.low <= reduction.value && reduction.value <= reduction.high);
    }

    #[test]
    fn points_left_open_become_one_number() {
        let with = |across: &str| {
            value(&format!(
                "measure = \"mean\"\nscheme = \"TCP-10\"\nover = {{ scheme = \"TCP\" }}\nas = \"change\"\nacross = \"{across}\""
            ))
        };
        let single = [100.0 * (210.0 / 410.0 - 1.0), 100.0 * (320.0 / 500.0 - 1.0), 0.0];
        close(with("mean").value, single.iter().sum::<f64>() / 3.0);
        close(with("min").value, single[0]);
        close(with("max").value, 0.0);
        assert!(value("measure = \"mean\"\nscheme = \"TCP\"").value.is_nan(), "open points and no word how");
    }

    #[test]
    fn over_may_name_another_point() {
        close(
            value("measure = \"mean\"\nscheme = \"TCP\"\nat = { load = \"30 %\" }\nover = { at = { load = \"10 %\" } }\nas = \"difference\"").value,
            540.0,
        );
    }

    #[test]
    fn capacities_follow_the_three_rules() {
        let with = |rule: &str, scheme: &str| {
            value(&format!("measure = \"capacity.{rule}\"\nscheme = \"{scheme}\""))
        };
        // TCP: 410, 500, 950; TCP-10: 210, 320, 950.
        for (rule, scheme, expected, low, high) in [
            ("own", "TCP", 30.0, 30.0, 30.0),
            ("own", "TCP-10", 20.0, 20.0, 30.0),
            ("absolute", "TCP-10", 30.0, 20.0, 30.0),
            ("reference", "TCP", 0.0, 0.0, 0.0),
            ("reference", "TCP-10", 30.0, 30.0, 30.0),
        ] {
            let found = with(rule, scheme);
            assert_eq!((found.value, found.low, found.high), (expected, low, high), "{rule} {scheme}");
        }
        close(
            value("measure = \"capacity.own\"\nscheme = \"TCP-10\"\nover = { scheme = \"TCP\" }").value,
            2.0 / 3.0,
        );
    }

    #[test]
    fn curves_cross_between_two_points() {
        let plan = plan::tests::plan(PLAN, false).expect("fine");
        let results = made_up(&plan);
        let text: QuantityText = toml::from_str("measure = \"mean\"\nscheme = \"TCP-10\"").expect("fine");
        let quantity = Quantity::read(text, &plan, false).expect("fine");
        let context = Scope { plan: &plan, results: &results, variant: 0, scheme: None, at: &[] };
        let found = context.crossing(&quantity, "TCP", "load");
        // Level at 30 % when pooled is no crossing; the first seed is 40 % below at 20 % and 20 % above at 30 %.
        assert!(found.value.is_nan(), "{found:?}");
        close(found.low, 20.0 + 10.0 * 0.4 / 0.6);
    }

    #[test]
    fn mistakes_are_told() {
        let plan = plan::tests::plan(PLAN, false).expect("fine");
        for (text, part) in [
            ("measure = \"median\"\nscheme = \"TCP\"", "found `median`"),
            ("measure = \"capacity\"\nscheme = \"TCP\"", "found `capacity`"),
            ("measure = \"capacity.best\"\nscheme = \"TCP\"", "expected capacity.own"),
            ("measure = \"mean\"\nscheme = \"JumpStart\"", "expected one of TCP, TCP-10"),
            ("measure = \"mean\"", "no key `scheme`"),
            ("measure = \"mean\"\nscheme = \"TCP\"\nat = { load = \"15 %\" }", "at.load: found `15 %`"),
            (
                "measure = \"mean\"\nscheme = \"TCP\"\nat = { rtt = \"15 ms\" }",
                "not swept, expected one of load",
            ),
            ("measure = \"mean\"\nscheme = \"TCP\"\ncast = \"mixed\"", "cast: found Mixed"),
            ("measure = \"mean\"\nscheme = \"TCP\"\nas = \"change\"", "without `over`"),
        ] {
            let read: QuantityText = toml::from_str(text).expect(text);
            let error = format!("{:#}", Quantity::read(read, &plan, false).expect_err(text));
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
