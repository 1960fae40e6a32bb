//! Bootstrap resamples of a run's seeds.

use headstart_report::statistics::{Interval, quantile};

use super::Scope;

/// Resamples of the seeds, each as many as there are seeds, drawn with replacement (the bootstrap).
///
/// All points, schemes and mixtures are looked at with the same resample, so that what is paired by
/// seed stays paired. The generator is fixed: equal results give equal resamples.
#[derive(Clone, Debug)]
pub struct Resamples(Vec<Vec<usize>>);

/// Enough for a 95 % interval that is right within one percent, and little to compute.
const RESAMPLES: usize = 200;

/// The share of resamples in which a claim must hold to be sure: that of a 95 % interval.
const REQUIRED_SHARE: f64 = 0.95;

impl Resamples {
    /// Resamples of so many seeds; none where there is one seed only, which has no spread.
    #[must_use]
    pub fn new(seeds: usize) -> Self {
        if seeds < 2 {
            return Self(vec![]);
        }
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            // xorshift64*.
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % seeds
        };
        Self((0..RESAMPLES).map(|_| (0..seeds).map(|_| next()).collect()).collect())
    }

    /// The 95 % interval of a number, around the number that all seeds give.
    #[must_use]
    pub fn interval(&self, scope: &Scope<'_>, number: impl Fn(&Scope<'_>) -> f64) -> Interval {
        let value = number(scope);
        let found: Vec<f64> = self.scopes(scope).map(|scope| number(&scope)).collect();
        if found.is_empty() || found.iter().any(|one| one.is_nan()) {
            return Interval { value, low: f64::NAN, high: f64::NAN };
        }
        let at = |share: f64| quantile(&found, share).unwrap_or(f64::NAN);
        Interval { value, low: at(0.025), high: at(0.975) }
    }

    /// True if something holds in 95 % of the resamples; false where there are none.
    #[must_use]
    pub fn are_sure(&self, scope: &Scope<'_>, is_true: impl Fn(&Scope<'_>) -> bool) -> bool {
        let count = self.scopes(scope).filter(|scope| is_true(scope)).count();
        !self.0.is_empty() && count as f64 >= REQUIRED_SHARE * self.0.len() as f64
    }

    fn scopes<'a>(&'a self, scope: &Scope<'a>) -> impl Iterator<Item = Scope<'a>> {
        let scope = *scope;
        self.0.iter().map(move |draw| Scope { draw: Some(draw), ..scope })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Results;
    use crate::{plan, quantity};

    #[test]
    fn a_mean_has_nearly_the_interval_that_student_gives_it() {
        let plan = plan::tests::plan(quantity::tests::PLAN, false).expect("fine");
        let results = Results::new(&plan, 30, vec![]);
        let scope = Scope { plan: &plan, results: &results, variant: 0, scheme: None, at: &[], draw: None };
        // 0 to 29: a mean of 14.5 with a standard error of 1.607.
        let mean = |scope: &Scope<'_>| match scope.draw {
            None => 14.5,
            Some(draw) => draw.iter().sum::<usize>() as f64 / 30.0,
        };
        let found = Resamples::new(30).interval(&scope, mean);
        assert!((found.low - 11.35).abs() < 0.7 && (found.high - 17.65).abs() < 0.7, "{found:?}");
        assert!(Resamples::new(30).are_sure(&scope, |scope| mean(scope) > 10.0));
        assert!(!Resamples::new(30).are_sure(&scope, |scope| mean(scope) > 14.0));
    }

    #[test]
    fn one_seed_is_never_significant_and_has_no_interval() {
        let plan = plan::tests::plan(quantity::tests::PLAN, false).expect("fine");
        let results = Results::new(&plan, 1, vec![]);
        let scope = Scope { plan: &plan, results: &results, variant: 0, scheme: None, at: &[], draw: None };
        assert!(!Resamples::new(1).are_sure(&scope, |_| true));
        assert!(Resamples::new(1).interval(&scope, |_| 1.0).low.is_nan());
    }
}
