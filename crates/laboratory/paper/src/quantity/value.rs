//! From runs to a number: seeds, quotients, aggregates over points.

use super::capacity::rule;
use super::{Across, Place, Quantity, Scope, ShownAs, Statistic, UNKNOWN};
use crate::plan::{MixName, Point};
use headstart_report::statistics::{
    Interval, mean, mean_interval, quantile, ratio_interval, standard_deviation,
};
use headstart_study::feasible::Rule;
use headstart_study::study::{INVALID, Numbers};

/// One value for each seed, not a number where it has none, and the value of all seeds together.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) pooled: f64,
    pub(super) by_seed: Vec<f64>,
}

/// The values of the seeds that have one.
pub(super) fn known(by_seed: &[f64]) -> Vec<f64> {
    by_seed.iter().copied().filter(|value| !value.is_nan()).collect()
}

/// Leaves out the seeds that lack a number in one of the two: what is compared is paired by seed.
pub(super) fn pair(one: &mut [f64], two: &mut [f64]) {
    for (one, two) in one.iter_mut().zip(two) {
        if one.is_nan() || two.is_nan() {
            (*one, *two) = (f64::NAN, f64::NAN);
        }
    }
}

impl Quantity {
    /// The values of each seed that has one; empty if not run.
    #[must_use]
    pub fn by_seed(&self, context: &Scope<'_>) -> Vec<f64> {
        let points = context.points(&self.place);
        let [point] = points[..] else { return vec![] };
        context.of_place(&self.place, &[point]).map(|by_seed| known(&by_seed)).unwrap_or_default()
    }

    /// All numbers of each seed at the one point that this is about; none if it was not run.
    #[must_use]
    pub fn runs<'a>(&self, context: &Scope<'a>) -> &'a [Numbers] {
        let points = context.points(&self.place);
        let scheme = self.place.scheme.as_deref().or(context.scheme).and_then(|name| context.scheme_of(name));
        match (&points[..], scheme) {
            ([point], Some(scheme)) => context.results.seeds(context.variant, *point, scheme, self.place.mix),
            _ => &[],
        }
    }

    /// Runs that this is about for which the machine was too busy, and all of them.
    #[must_use]
    pub fn invalid_runs(&self, context: &Scope<'_>) -> (usize, usize) {
        let places = [Some(&self.place), self.over.as_ref()].into_iter().flatten();
        let runs = places.flat_map(|place| {
            let of_place = place.scheme.as_deref().or(context.scheme);
            let schemes = (0..context.plan.schemes.len())
                .filter(move |number| of_place.is_none_or(|name| context.plan.schemes[*number].name == name));
            let points = context.points(place);
            schemes.flat_map(move |scheme| {
                let seeds = |point: &usize| context.results.seeds(context.variant, *point, scheme, place.mix);
                points.iter().flat_map(seeds).collect::<Vec<_>>()
            })
        });
        runs.fold((0, 0), |(invalid, all), run| (invalid + usize::from(run.contains_key(INVALID)), all + 1))
    }

    /// The quantity's value; not a number if it was not run, or not measured.
    #[must_use]
    pub fn value(&self, context: &Scope<'_>) -> Interval {
        self.try_value(context).unwrap_or(UNKNOWN)
    }

    fn try_value(&self, context: &Scope<'_>) -> Option<Interval> {
        let points = context.points(&self.place);
        if let Some(rule) = rule(&self.place.measure) {
            let sample = context.capacity_of(rule, &self.place, &points)?;
            let Some(over) = &self.over else { return Some(range(&sample)) };
            let other = context.capacity_of(rule, over, &context.points(over))?;
            return Some(range(&self.combine(&sample, &other)));
        }
        let others = self.over.as_ref().map(|over| context.points(over));
        let mut samples = vec![];
        for (number, point) in points.iter().enumerate() {
            let mut by_seed = context.of_place(&self.place, &[*point])?;
            let mut other = match (&self.over, &others) {
                (Some(over), Some(others)) => {
                    let other = if others.len() == 1 { others[0] } else { *others.get(number)? };
                    Some(context.of_place(over, &[other])?)
                }
                _ => None,
            };
            if let Some(other) = &mut other {
                pair(&mut by_seed, other);
            }
            let other = other.map(|other| self.pooled(other));
            samples.push((self.pooled(by_seed)?, if let Some(other) = other { Some(other?) } else { None }));
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
            _ if values.iter().any(|value| value.is_nan()) => f64::NAN,
            Across::Mean => mean(values).unwrap_or(f64::NAN),
            Across::Max => values.iter().copied().fold(f64::NAN, f64::max),
        };
        let pooled: Vec<f64> = combined.iter().map(|sample| sample.pooled).collect();
        let value = fold(&pooled);
        // A seed that lacks a number at one of the points has none across them.
        let seeds = combined.first()?.by_seed.len();
        let by_seed = (0..seeds).map(|seed| {
            let values: Vec<f64> = combined.iter().map(|sample| sample.by_seed[seed]).collect();
            fold(&values)
        });
        let reach = match (self.statistic, mean_interval(&known(&by_seed.collect::<Vec<_>>()))) {
            (Statistic::Mean, Some(interval)) => interval.half_width(),
            _ => f64::NAN,
        };
        Some(Interval { value, low: value - reach, high: value + reach })
    }

    /// All seeds together; `None` if no seed has a value.
    fn pooled(&self, by_seed: Vec<f64>) -> Option<Sample> {
        let values = known(&by_seed);
        let pooled = match self.statistic {
            Statistic::Mean => mean(&values),
            Statistic::Median => quantile(&values, 0.5),
            Statistic::P90 => quantile(&values, 0.9),
            Statistic::P95 => quantile(&values, 0.95),
            Statistic::P99 => quantile(&values, 0.99),
            Statistic::Max => quantile(&values, 1.0),
            Statistic::Deviation => standard_deviation(&values),
        }?;
        Some(Sample { pooled, by_seed })
    }

    fn single(&self, sample: &Sample, other: Option<&Sample>) -> Interval {
        let without_interval = |value: f64| Interval { value, low: f64::NAN, high: f64::NAN };
        let is_mean = self.statistic == Statistic::Mean;
        match other {
            None if is_mean => {
                mean_interval(&known(&sample.by_seed)).unwrap_or_else(|| without_interval(sample.pooled))
            }
            None => without_interval(sample.pooled),
            Some(other) if self.shown_as == ShownAs::Difference => {
                let differences: Vec<f64> =
                    sample.by_seed.iter().zip(&other.by_seed).map(|(one, two)| one - two).collect();
                let value = sample.pooled - other.pooled;
                if is_mean {
                    mean_interval(&known(&differences)).unwrap_or_else(|| without_interval(value))
                } else {
                    without_interval(value)
                }
            }
            Some(other) => {
                let (one, two) = (known(&sample.by_seed), known(&other.by_seed));
                let ratio = if is_mean { ratio_interval(&one, &two) } else { None };
                let ratio = ratio.unwrap_or_else(|| without_interval(sample.pooled / other.pooled));
                // Times, counts and shares are not negative, and neither are their quotients.
                let (one, two) =
                    (self.shown(if ratio.low < 0.0 { 0.0 } else { ratio.low }), self.shown(ratio.high));
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

impl Scope<'_> {
    /// The plan's points that agree with the place, and with this context where that is silent.
    pub(super) fn points(&self, place: &Place) -> Vec<usize> {
        let agrees = |point: &Point| {
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

    pub(super) fn scheme_of(&self, name: &str) -> Option<usize> {
        self.plan.schemes.iter().position(|scheme| scheme.name == name)
    }

    /// A measure's number of each seed, not a number where a seed has no case for it, such as a
    /// time where packets were lost. `None` if no seed has one.
    pub(super) fn numbers(
        &self,
        measure: &str,
        scheme: usize,
        mix: MixName,
        point: usize,
    ) -> Option<Vec<f64>> {
        let seeds = self.results.seeds(self.variant, point, scheme, mix);
        // A run of a too busy machine says nothing, and what is left would be another sample.
        if seeds.iter().any(|numbers| numbers.contains_key(INVALID)) {
            return None;
        }
        let number = |numbers: &Numbers| numbers.get(measure).copied().unwrap_or(f64::NAN);
        let values: Vec<f64> = match self.draw {
            None => seeds.iter().map(number).collect(),
            Some(draw) => draw.iter().map(|seed| seeds.get(*seed).map_or(f64::NAN, number)).collect(),
        };
        values.iter().any(|value| !value.is_nan()).then_some(values)
    }

    fn of_place(&self, place: &Place, points: &[usize]) -> Option<Vec<f64>> {
        let scheme = self.scheme_of(place.scheme.as_deref().or(self.scheme)?)?;
        if let Some(rule) = rule(&place.measure) {
            return Some(self.capacity(rule, scheme, place.mix, points)?.by_seed);
        }
        let [point] = points else { return None };
        self.numbers(&place.measure, scheme, place.mix, *point)
    }

    fn capacity_of(&self, rule: Rule, place: &Place, points: &[usize]) -> Option<Sample> {
        let scheme = self.scheme_of(place.scheme.as_deref().or(self.scheme)?)?;
        self.capacity(rule, scheme, place.mix, points)
    }
}
