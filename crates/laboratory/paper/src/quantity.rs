//! A number of a claim or a figure, worked out from runs, with its 95 % interval.
//!
//! ```toml
//! value.measure = "mean"
//! value.scheme = "Halfback"
//! value.at = { load = "25 %" }
//! value.over = { scheme = "TCP" }
//! value.as = "reduction"
//! ```
//!
//! | key | meaning |
//! |---|---|
//! | `measure` | a number of a run ([`headstart_study::study`]), or `capacity.RULE`, see below |
//! | `scheme`, `mix`, `at` | whose, in which mixture, at which values of the swept options |
//! | `across` | `mean` or `max` over the points that `at` leaves open |
//! | `statistic` | of seeds: `mean` (default), `median`, `p90`, `p95`, `p99`, `max`, `deviation` |
//! | `over` | what it is divided by: the same, but for the keys given here |
//! | `as` | `ratio` q (default), `change` 100 (q - 1) %, `reduction` 100 (1 - q) %, `difference` |
//!
//! Capacities are `capacity.own`, `capacity.absolute`, `capacity.reference`, `capacity.tcp` and
//! `capacity.knee` (`docs/definitions.md`).
//!
//! Quotients at one point are paired by seed, with Fieller's interval. Aggregates over points have
//! Student's interval of the same aggregate seed by seed, around the aggregate of the pooled
//! points. A capacity has the smallest and the largest of single seeds as its interval.

mod capacity;
mod resample;
#[cfg(test)]
pub(super) mod tests;
mod value;

pub use resample::Resamples;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use toml::Table;

use crate::plan::{Fixed, MixName, Plan};
use crate::run::Results;
use capacity::rule;
use headstart_report::statistics::Interval;

/// A quantity without a value.
pub const UNKNOWN: Interval = Interval { value: f64::NAN, low: f64::NAN, high: f64::NAN };

/// As it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuantityText {
    measure: String,
    scheme: Option<String>,
    #[serde(default)]
    mix: MixName,
    #[serde(default)]
    at: Table,
    across: Option<Across>,
    #[serde(default)]
    statistic: Statistic,
    over: Option<OverText>,
    #[serde(rename = "as")]
    shown_as: Option<ShownAs>,
}

impl QuantityText {
    /// Sets the value of a swept option.
    pub(super) fn fix(&mut self, option: &str, value: &toml::Value) {
        self.at.insert(option.to_owned(), value.clone());
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct OverText {
    measure: Option<String>,
    scheme: Option<String>,
    mix: Option<MixName>,
    #[serde(default)]
    at: Table,
}

/// Aggregation of the points that are left open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Across {
    /// Mean of the points.
    Mean,
    /// The largest.
    Max,
}

/// Aggregation of seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// Mean of the seeds.
    #[default]
    Mean,
    /// Median of the seeds.
    Median,
    /// 90th percentile of the seeds.
    P90,
    /// 95th percentile of the seeds.
    P95,
    /// 99th percentile of the seeds.
    P99,
    /// The largest.
    Max,
    /// Standard deviation of the seeds.
    Deviation,
}

/// Form in which a quotient is shown.
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

/// A number's name, whose it is, and where.
#[derive(Clone, Debug)]
struct Place {
    measure: String,
    scheme: Option<String>,
    mix: MixName,
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
    /// Results of the plan.
    pub results: &'a Results,
    /// Which of the plan's variants.
    pub variant: usize,
    /// The scheme, where the quantity names none.
    pub scheme: Option<&'a str>,
    /// Values of swept options, where the quantity names none.
    pub at: &'a [(String, String)],
    /// The seeds, some of them more than once; `None`: each once ([`Resamples`]).
    pub draw: Option<&'a [usize]>,
}

impl Quantity {
    /// Checks what is written against the plan. `is_series`: a scheme may be left open.
    ///
    /// # Errors
    /// With key, found and expected.
    pub fn read(text: QuantityText, plan: &Plan, is_series: bool) -> Result<Self> {
        let place =
            Place { measure: text.measure, scheme: text.scheme, mix: text.mix, at: fixed(&text.at, plan)? };
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
                over.mix = text.mix.unwrap_or(over.mix);
                over.at.extend(fixed(&text.at, plan)?);
                Some(over)
            }
        };
        ensure!(
            text.shown_as.is_none() || over.is_some(),
            "found the key `as` without `over`, expected both or none"
        );
        let quantity = Self {
            place,
            over,
            across: text.across,
            statistic: text.statistic,
            shown_as: text.shown_as.unwrap_or(ShownAs::Ratio),
        };
        quantity.check(plan)?;
        Ok(quantity)
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

    /// The schemes that it names.
    pub fn schemes(&self) -> impl Iterator<Item = &str> {
        let places = [Some(&self.place), self.over.as_ref()].into_iter().flatten();
        places.filter_map(|place| place.scheme.as_deref())
    }

    /// This quantity, divided by another scheme's.
    #[must_use]
    pub fn over(&self, scheme: &str) -> Self {
        let mut other = self.clone();
        if let Some(over) = &mut other.over {
            over.scheme = Some(scheme.to_owned());
        }
        other
    }

    /// An option has one value in it.
    #[must_use]
    pub fn is_fixed(&self, axis: &str) -> bool {
        self.place.at.contains_key(axis)
    }

    /// True if it is compared with something.
    #[must_use]
    pub fn is_compared(&self) -> bool {
        self.over.is_some()
    }

    /// This quantity of another scheme.
    #[must_use]
    pub fn of(&self, scheme: &str) -> Self {
        let mut other = self.clone();
        other.place.scheme = Some(scheme.to_owned());
        other
    }

    /// This quantity of another measure.
    #[must_use]
    pub fn measuring(&self, measure: &str) -> Self {
        let mut other = self.clone();
        other.place.measure = measure.to_owned();
        if let Some(over) = &mut other.over {
            over.measure = measure.to_owned();
        }
        other
    }

    /// Checks measure, schemes and mixtures against the plan.
    ///
    /// # Errors
    /// With what was found and expected.
    pub fn check(&self, plan: &Plan) -> Result<()> {
        self.place.check(plan)?;
        self.over.as_ref().map_or(Ok(()), |over| over.check(plan).context("over"))
    }

    /// The value of a quotient or a difference, 1 or 0, that means that nothing differs.
    #[must_use]
    pub fn neutral(&self) -> Option<f64> {
        self.over.as_ref().map(|_| if self.shown_as == ShownAs::Ratio { 1.0 } else { 0.0 })
    }
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
                rule(&self.measure).is_some(),
                "measure: found `{}`, expected capacity.own, .absolute, .reference, .tcp or .knee",
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
        ensure!(plan.mixes.contains(&self.mix), "mix: found {:?}, expected one that the plan runs", self.mix);
        Ok(())
    }
}

/// Checks that the full plan runs a scheme.
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
