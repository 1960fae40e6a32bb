//! Numbers of a whole curve: capacities, and where two curves cross.

use super::value::{Sample, known, pair};
use super::{Quantity, Scope, UNKNOWN};
use crate::plan::{MixName, number_of};
use headstart_report::statistics::{Interval, mean};
use headstart_study::feasible::{self, Point, Rule};
use headstart_study::setup::REFERENCE;

/// Slow start from two segments, the TCP of Halfback's §4.1.
const TCP: &str = "iw2";

/// The rule that a measure names.
pub(super) fn rule(measure: &str) -> Option<Rule> {
    match measure {
        "capacity.own" => Some(Rule::Own),
        "capacity.absolute" => Some(Rule::Absolute),
        "capacity.reference" => Some(Rule::Reference),
        "capacity.tcp" => Some(Rule::Tcp),
        "capacity.knee" => Some(Rule::Knee),
        _ => None,
    }
}

impl Scope<'_> {
    /// The last load before the first at which the rule is broken, of all seeds and of each.
    pub(super) fn capacity(
        &self,
        rule: Rule,
        scheme: usize,
        mix: MixName,
        points: &[usize],
    ) -> Option<Sample> {
        let curve = |scheme: usize| -> Option<Vec<(f64, Vec<f64>)>> {
            let mut curve = points
                .iter()
                .map(|point| {
                    let load = number_of(self.plan.points[*point].value("load")?)?.0;
                    Some((load, self.numbers("mean", scheme, mix, *point)?))
                })
                .collect::<Option<Vec<_>>>()?;
            curve.sort_by(|a, b| a.0.total_cmp(&b.0));
            Some(curve)
        };
        let own = curve(scheme)?;
        let reference = match rule {
            Rule::Reference => Some(REFERENCE),
            Rule::Tcp => Some(TCP),
            Rule::Own | Rule::Absolute | Rule::Knee => None,
        };
        let reference = match reference {
            Some(name) => {
                Some(curve(self.plan.schemes.iter().position(|scheme| scheme.entry.name == name)?)?)
            }
            None => None,
        };
        let first = own.first()?;
        let find = |value: &dyn Fn(&[f64]) -> f64| {
            let curve: Vec<Point> = own
                .iter()
                .enumerate()
                .map(|(number, (load, seeds))| {
                    let reference = reference.as_ref().map_or(f64::NAN, |curve| value(&curve[number].1));
                    Point { load: *load, mean: value(seeds), reference }
                })
                .collect();
            // A seed without a number at a load has no capacity.
            let lacks =
                |point: &Point| point.mean.is_nan() || (reference.is_some() && point.reference.is_nan());
            if curve.iter().any(lacks) { f64::NAN } else { feasible::capacity(rule, &curve) }
        };
        let seeds = first.1.len();
        Some(Sample {
            pooled: find(&|values| mean(&known(values)).unwrap_or(f64::NAN)),
            by_seed: (0..seeds).map(|seed| find(&|values: &[f64]| values[seed])).collect(),
        })
    }

    /// The first value along an axis at which the quantity of `scheme` rises above `other`'s,
    /// having been below before; between two points it is interpolated. The interval is that of
    /// single seeds, smallest to largest.
    #[must_use]
    pub fn crossing(&self, quantity: &Quantity, other: &str, axis: &str) -> Interval {
        let Some(scheme) = quantity.scheme().or(self.scheme) else { return UNKNOWN };
        let (Some(one), Some(two)) = (self.scheme_of(scheme), self.scheme_of(other)) else { return UNKNOWN };
        let mut curve = vec![];
        for point in self.points(&quantity.place) {
            let x = self.plan.points[point].value(axis).and_then(number_of);
            let mix = quantity.place.mix;
            let measure = quantity.measure();
            if let (Some((x, _)), Some(mut a), Some(mut b)) =
                (x, self.numbers(measure, one, mix, point), self.numbers(measure, two, mix, point))
            {
                pair(&mut a, &mut b);
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
        let value = find(&|values| mean(&known(values)).unwrap_or(f64::NAN));
        let seeds = curve.iter().map(|(_, a, _)| a.len()).min().unwrap_or(0);
        let is_whole = |seed: &usize| curve.iter().all(|(_, a, _)| !a[*seed].is_nan());
        let singles: Vec<f64> =
            (0..seeds).filter(is_whole).map(|seed| find(&|values: &[f64]| values[seed])).collect();
        let fold = |by: fn(f64, f64) -> f64| singles.iter().copied().fold(value, by);
        Interval { value, low: fold(f64::min), high: fold(f64::max) }
    }
}
