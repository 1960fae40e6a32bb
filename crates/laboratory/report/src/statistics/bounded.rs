//! Intervals within their quantity's range: times and quotients above zero, shares from 0 to 1.
//!
//! Each is Student's t on a scale on which the quantity has no bound, the logarithm of a time or a
//! quotient and the logit of a share. The standard error is carried over to that scale by the delta
//! method (J. M. Bland, D. G. Altman, "Transformations, means, and confidence intervals", BMJ 312,
//! 1996; A. Agresti, "Categorical data analysis", 3rd edition, §3.1 for quotients and logits). The
//! estimate is the mean, or the quotient of means, as without the scale. If the spread is small
//! compared with the estimate, the interval is the mean's.

use super::{Interval, covariance, mean, standard_deviation, student_t};

/// The mean of times or of other numbers above zero; its interval lies above zero.
///
/// `None` of fewer than two, or if the mean is not above zero.
#[must_use]
pub fn positive_mean_interval(sample: &[f64]) -> Option<Interval> {
    let value = mean(sample).filter(|value| *value > 0.0)?;
    let error = standard_deviation(sample)? / value / (sample.len() as f64).sqrt();
    Some(around(value, student_t(sample.len() - 1) * error))
}

/// The mean of shares between 0 and 1; its interval lies there too. A share that is 0 (or 1) in the
/// whole sample is certain as far as the sample tells.
///
/// `None` of fewer than two, or if the mean is outside.
#[must_use]
pub fn share_interval(sample: &[f64]) -> Option<Interval> {
    let value = mean(sample).filter(|value| (0.0..=1.0).contains(value))?;
    let error = standard_deviation(sample)? / (sample.len() as f64).sqrt();
    if value == 0.0 || value == 1.0 {
        return Some(Interval { value, low: value, high: value });
    }
    let factor = (student_t(sample.len() - 1) * error / (value * (1.0 - value))).exp();
    let odds = value / (1.0 - value);
    let share = |odds: f64| if odds.is_finite() { odds / (1.0 + odds) } else { 1.0 };
    Some(Interval { value, low: share(odds / factor), high: share(odds * factor) })
}

/// The mean of `sample` over the mean of `baseline`, paired by seed; its interval lies above zero.
///
/// `None` if the two differ in length or hold fewer than two, or if a mean is not above zero.
#[must_use]
pub fn positive_ratio_interval(sample: &[f64], baseline: &[f64]) -> Option<Interval> {
    if sample.len() != baseline.len() {
        return None;
    }
    let (numerator, denominator) = (mean(sample)?, mean(baseline)?);
    let value = numerator / denominator;
    if !(numerator > 0.0 && denominator > 0.0) {
        return None;
    }
    // Effects common to both cancel in the residuals.
    let residuals: Vec<f64> = sample.iter().zip(baseline).map(|(one, other)| one - value * other).collect();
    let error = (covariance(&residuals, &residuals)? / sample.len() as f64).sqrt() / numerator;
    Some(around(value, student_t(sample.len() - 1) * error))
}

/// As many times less as more.
fn around(value: f64, reach: f64) -> Interval {
    let factor = reach.exp();
    Interval { value, low: value / factor, high: value * factor }
}

#[cfg(test)]
mod tests {
    use super::super::{mean_interval, ratio_interval};
    use super::*;

    fn is_inside(interval: Interval, low: f64, high: f64) -> bool {
        low <= interval.low
            && interval.low <= interval.value
            && interval.value <= interval.high
            && interval.high <= high
    }

    #[test]
    fn intervals_stay_within_the_range_of_their_quantity() {
        let wild: [&[f64]; 3] = [&[300.0, 4500.0], &[0.001, 9.0, 0.002], &[1.0, 1.0]];
        for sample in wild {
            let found = positive_mean_interval(sample).expect("above zero");
            assert!(found.low > 0.0 && is_inside(found, 0.0, f64::INFINITY), "{sample:?}: {found:?}");
        }
        assert!(mean_interval(wild[0]).expect("two").low < 0.0, "the plain interval of the same leaves it");
        for sample in [&[0.0, 0.02][..], &[0.9, 1.0, 1.0], &[0.0, 0.0, 0.0, 1e-6], &[0.5, 0.5], &[0.0, 1.0]] {
            let found = share_interval(sample).expect("shares");
            assert!(is_inside(found, 0.0, 1.0), "{sample:?}: {found:?}");
        }
        let (one, other) = ([400.0, 900.0], [900.0, 450.0]);
        assert!(ratio_interval(&one, &other).is_none(), "nobody knows, by Fieller");
        let found = positive_ratio_interval(&one, &other).expect("above zero");
        assert!(found.low > 0.0 && is_inside(found, 0.0, f64::INFINITY), "{found:?}");
    }

    #[test]
    fn where_little_varies_they_are_the_plain_intervals() {
        let times = [171.0, 173.0, 172.0, 174.0, 175.0];
        let (found, plain) =
            (positive_mean_interval(&times).expect("five"), mean_interval(&times).expect("five"));
        assert!(found.value == plain.value && (found.low - plain.low).abs() < 0.02, "{found:?} {plain:?}");
        let shares = times.map(|time| time / 1000.0);
        let (found, plain) = (share_interval(&shares).expect("five"), mean_interval(&shares).expect("five"));
        assert!((found.low - plain.low).abs() < 2e-5 && (found.high - plain.high).abs() < 2e-5, "{found:?}");
        let other = [180.0, 181.0, 183.0, 182.0, 185.0];
        let (found, plain) = (
            positive_ratio_interval(&times, &other).expect("five"),
            ratio_interval(&times, &other).expect("five"),
        );
        assert!((found.low - plain.low).abs() < 1e-4 && (found.high - plain.high).abs() < 1e-4, "{found:?}");
    }

    #[test]
    fn a_share_that_never_varies_is_itself() {
        for share in [0.0, 1.0, 0.25] {
            let found = share_interval(&[share; 4]).expect("four");
            assert!((found.low - share).abs() < 1e-12 && (found.high - share).abs() < 1e-12, "{found:?}");
        }
    }

    #[test]
    fn values_out_of_range_or_too_few_have_no_interval() {
        assert_eq!(positive_mean_interval(&[0.0, 0.0]), None);
        assert_eq!(positive_mean_interval(&[3.0]), None);
        assert_eq!(positive_mean_interval(&[3.0, f64::NAN]), None);
        assert_eq!(share_interval(&[1.5, 2.0]), None);
        assert_eq!(share_interval(&[0.5]), None);
        assert_eq!(positive_ratio_interval(&[1.0, 2.0], &[2.0]), None);
        assert_eq!(positive_ratio_interval(&[1.0, 2.0], &[0.0, 0.0]), None);
        assert_eq!(positive_ratio_interval(&[1.0], &[2.0]), None);
    }
}
