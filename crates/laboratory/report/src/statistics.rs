//! Statistics of repeated runs: means, 95 % confidence intervals, ratios, quantiles.
//!
//! A sample holds one number for each seed. Its mean lies, in 95 of 100 repetitions, in the
//! interval of Student's t with one degree of freedom less than there are seeds.
//!
//! Two schemes that met the same arrivals (common random numbers) are compared by the ratio of
//! their means with Fieller's interval (E. C. Fieller, "Some problems in interval estimation",
//! 1954), which uses that seed `i` of both had the same arrivals. Effects common to both cancel.
//!
//! # Limits
//!
//! Seeds must be independent of each other, and a mean over a run close to normally distributed;
//! with thousands of flows in a run it is. A number that is not finite makes the result not finite:
//! nothing is dropped silently.

mod best;
mod bounded;

pub use best::{may_be_smallest, simultaneous};
pub use bounded::{positive_mean_interval, positive_ratio_interval, share_interval};

/// A value with the 95 % confidence interval around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// Lower end; equal to the estimate if nothing varied.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// True if `value` lies inside, ends included. A ratio that may be one shows no difference.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Half of its width, printed after the plus-minus sign. A ratio's interval is not symmetric.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// The arithmetic mean; `None` of nothing.
#[must_use]
pub fn mean(sample: &[f64]) -> Option<f64> {
    (!sample.is_empty()).then(|| sample.iter().sum::<f64>() / sample.len() as f64)
}

/// Standard deviation of a sample (divided by one less than its size); `None` of fewer than two.
#[must_use]
pub fn standard_deviation(sample: &[f64]) -> Option<f64> {
    covariance(sample, sample).map(f64::sqrt)
}

/// The mean with its interval; `None` of fewer than two, of which nothing can be said.
#[must_use]
pub fn mean_interval(sample: &[f64]) -> Option<Interval> {
    let value = mean(sample)?;
    let error = standard_deviation(sample)? / (sample.len() as f64).sqrt();
    let reach = student_t(sample.len() - 1) * error;
    Some(Interval { value, low: value - reach, high: value + reach })
}

/// The mean of `sample` over the mean of `baseline`, paired by seed, with Fieller's interval.
///
/// `None` if the two differ in length, hold fewer than two, or the baseline's own mean cannot be
/// distinguished from zero, so that the ratio might be anything.
#[must_use]
pub fn ratio_interval(sample: &[f64], baseline: &[f64]) -> Option<Interval> {
    if sample.len() != baseline.len() {
        return None;
    }
    let (numerator, denominator) = (mean(sample)?, mean(baseline)?);
    let value = numerator / denominator;
    // A ratio t is in the interval if the mean of `sample - t * baseline` is within Student's reach
    // of zero. Let t = value + d and residuals r = sample - value * baseline, whose mean is zero.
    // Then that is a quadratic in d:
    //
    //     (mean^2 - k var_b) d^2 + 2 k cov_rb d - k var_r <= 0,    k = t^2 / n.
    let residuals: Vec<f64> = sample.iter().zip(baseline).map(|(one, other)| one - value * other).collect();
    let scale =
        student_t(sample.len().checked_sub(1).filter(|degrees| *degrees > 0)?).powi(2) / sample.len() as f64;
    let square = denominator * denominator - scale * covariance(baseline, baseline)?;
    if square <= 0.0 {
        return None;
    }
    let linear = scale * covariance(&residuals, baseline)?;
    let root = (linear * linear + square * scale * covariance(&residuals, &residuals)?).sqrt();
    Some(Interval { value, low: value + (-linear - root) / square, high: value + (-linear + root) / square })
}

/// The value below which a share `q` (0 to 1) of a sample lies; `None` of nothing.
///
/// Between two members it is interpolated (definition 7 of Hyndman and Fan 1996, as R and NumPy
/// do): the smallest member is the quantile 0, the largest the quantile 1.
#[must_use]
pub fn quantile(sample: &[f64], q: f64) -> Option<f64> {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let rank = q.clamp(0.0, 1.0) * last as f64;
    let index = rank as usize;
    let (low, high) = (sorted[index], sorted[(index + 1).min(last)]);
    let part = rank - index as f64;
    // Without the test, zero times infinity would spoil a quantile that is a member.
    Some(if part == 0.0 { low } else { low + part * (high - low) })
}

/// The quantile 0.975 of Student's t: two-sided 95 %. Between the rows of the table the wider one
/// holds; above 120 degrees of freedom the normal distribution's does.
#[must_use]
pub fn student_t(degrees: usize) -> f64 {
    match degrees {
        0 => f64::INFINITY,
        1..=30 => STUDENT[degrees - 1],
        31..40 => STUDENT[29],
        40..60 => 2.021_075,
        60..120 => 2.000_298,
        120 => 1.979_930,
        _ => 1.959_964,
    }
}

/// 1 to 30 degrees of freedom.
#[rustfmt::skip]
const STUDENT: [f64; 30] = [
    12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004, 2.262_157, 2.228_139,
    2.200_985, 2.178_813, 2.160_369, 2.144_787, 2.131_450, 2.119_905, 2.109_816, 2.100_922, 2.093_024, 2.085_963,
    2.079_614, 2.073_873, 2.068_658, 2.063_899, 2.059_539, 2.055_529, 2.051_831, 2.048_407, 2.045_230, 2.042_272,
];

/// `None` of fewer than two pairs. Both samples are of one length.
fn covariance(one: &[f64], other: &[f64]) -> Option<f64> {
    let degrees = one.len().checked_sub(1).filter(|degrees| *degrees > 0)?;
    let (mean_one, mean_other) = (mean(one)?, mean(other)?);
    let sum: f64 = one.iter().zip(other).map(|(a, b)| (a - mean_one) * (b - mean_other)).sum();
    Some(sum / degrees as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) -> bool {
        (found - expected).abs() <= 1e-6 * expected.abs().max(1.0)
    }

    /// Student's sleep data (1908), paired differences of ten; R prints 0.7001142 to 2.4598858.
    #[test]
    fn the_interval_of_students_sleep_data() {
        let differences = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let interval = mean_interval(&differences).expect("ten values");
        assert!(close(interval.value, 1.58), "{interval:?}");
        assert!(close(interval.low, 0.700_114_2), "{interval:?}");
        assert!(close(interval.high, 2.459_885_8), "{interval:?}");
        assert!(close(interval.half_width(), 0.879_885_8));
    }

    #[test]
    fn a_deviation_divides_by_one_less() {
        assert!(close(standard_deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap(), 2.138_089_9));
    }

    #[test]
    fn too_few_values_give_no_interval() {
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[3.0]), Some(3.0));
        assert_eq!(mean_interval(&[3.0]), None);
        assert_eq!(ratio_interval(&[1.0], &[2.0]), None);
        assert_eq!(ratio_interval(&[], &[]), None);
        assert_eq!(ratio_interval(&[1.0, 2.0], &[2.0]), None);
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn the_table_falls_towards_the_normal_distribution() {
        for degrees in 1..200 {
            assert!(student_t(degrees) >= student_t(degrees + 1), "{degrees}");
        }
        assert!(close(student_t(1), 12.706_205));
        assert!(close(student_t(30), 2.042_272));
        assert!(close(student_t(1_000), 1.959_964));
    }

    #[test]
    fn common_variation_cancels_in_paired_differences() {
        let baseline = [10.0, 300.0, 45.0, 7.0];
        let half = baseline.map(|value| value / 2.0);
        // Seeds spread wildly; paired, the ratio is certain. A wilder baseline has none: below.
        let steady = [100.0, 130.0, 70.0, 100.0];
        let ratio = ratio_interval(&steady.map(|value| value / 2.0), &steady).expect("a baseline above zero");
        assert!(close(ratio.value, 0.5) && close(ratio.low, 0.5) && close(ratio.high, 0.5), "{ratio:?}");
        assert_eq!(ratio_interval(&half, &baseline), None, "its mean of 90.5 +- 223 may be zero");
    }

    #[test]
    fn over_a_constant_baseline_it_is_the_interval_of_the_mean() {
        let sample = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let ratio = ratio_interval(&sample, &[2.0; 10]).expect("a baseline above zero");
        assert!(close(ratio.low, 0.700_114_2 / 2.0), "{ratio:?}");
        assert!(close(ratio.high, 2.459_885_8 / 2.0), "{ratio:?}");
    }

    /// The definition itself: at both ends the mean of `sample - t * baseline` is exactly Student's
    /// reach from zero.
    #[test]
    fn both_ends_of_the_ratio_are_where_the_difference_becomes_significant() {
        let sample = [9.1, 11.7, 8.4, 10.2, 9.9];
        let baseline = [19.7, 22.8, 18.9, 21.0, 18.0];
        let ratio = ratio_interval(&sample, &baseline).expect("a baseline above zero");
        for end in [ratio.low, ratio.high] {
            let differences: Vec<f64> = sample.iter().zip(baseline).map(|(a, b)| a - end * b).collect();
            let interval = mean_interval(&differences).expect("five values");
            assert!(close(interval.value.abs(), interval.half_width()), "{end}: {interval:?}");
        }
        assert!(ratio.low < ratio.value && ratio.value < ratio.high);
        assert!(ratio.contains(0.48) && !ratio.contains(1.0), "{ratio:?}");
    }

    #[test]
    fn quantiles_of_a_small_sample_are_those_of_r() {
        let sample = [4.0, 1.0, 3.0, 2.0];
        for (q, expected) in [(0.0, 1.0), (0.25, 1.75), (0.5, 2.5), (0.75, 3.25), (0.95, 3.85), (1.0, 4.0)] {
            assert!(close(quantile(&sample, q).unwrap(), expected), "{q}");
        }
        assert_eq!(quantile(&[7.0], 0.99), Some(7.0));
        assert_eq!(quantile(&[1.0, f64::INFINITY], 0.0), Some(1.0));
        assert_eq!(quantile(&[1.0, 2.0], 7.0), Some(2.0), "beyond the ends: the end");
    }

    #[test]
    fn a_number_that_is_not_finite_is_not_dropped() {
        assert!(mean(&[1.0, f64::NAN]).unwrap().is_nan());
        assert!(!mean_interval(&[1.0, f64::INFINITY]).unwrap().high.is_finite());
    }
}
