//! Which of several samples may have the smallest mean: ties are called ties.
//!
//! Subset selection (S. S. Gupta, "On some multiple decision (selection and ranking) rules",
//! Technometrics 7, 1965; J. C. Hsu calls the same "multiple comparisons with the best"): a sample
//! is out if another one is below it by a test. Seed `i` of the one and seed `i` of the other went
//! through the same, so the test is Student's t of the paired differences. Only the sample with the
//! smallest true mean must not be put out, and k - 1 others can do that. So each of its one-sided
//! tests has 5 % over k - 1 (Bonferroni). The subset holds the best with 95 % at least, although
//! the data chose it.

use super::{Interval, mean, standard_deviation};

/// Probability that the best is put out: 5 %.
const LEVEL: f64 = 0.05;

/// For each sample, whether it may be the one with the smallest mean. All are of one length.
///
/// Samples with a value that is not finite are left out. Single numbers cannot be distinguished.
#[must_use]
pub fn may_be_smallest(samples: &[&[f64]]) -> Vec<bool> {
    let is_known = |sample: &[f64]| !sample.is_empty() && sample.iter().all(|value| value.is_finite());
    let known = samples.iter().filter(|sample| is_known(sample)).count();
    let level = LEVEL / known.saturating_sub(1).max(1) as f64;
    let is_out = |one: &[f64]| {
        samples.iter().any(|other| is_known(other) && probability_of_difference(one, other) < level)
    };
    samples.iter().map(|sample| is_known(sample) && !is_out(sample)).collect()
}

/// The interval of a quotient among `count` that all hold at once with 95 % (Bonferroni), from its
/// own 95 % interval of so many degrees of freedom. It is widened on the scale of logarithms.
#[must_use]
pub fn simultaneous(interval: Interval, degrees: usize, count: usize) -> Interval {
    let Interval { value, low, high } = interval;
    let wider =
        quantile_of_t(LEVEL / 2.0 / count.max(1) as f64, degrees) / quantile_of_t(LEVEL / 2.0, degrees);
    Interval { value, low: value * (low / value).powf(wider), high: value * (high / value).powf(wider) }
}

/// The value that Student's t exceeds with this probability, above zero and below a half.
fn quantile_of_t(probability: f64, degrees: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if student_tail(middle, degrees.max(1)) > probability { low = middle } else { high = middle }
    }
    high
}

/// Probability that chance alone puts the mean of `one` as far above `other`'s, or farther,
/// by Student's paired, one-sided test. It is 1 if not above, or with fewer than two pairs.
fn probability_of_difference(one: &[f64], other: &[f64]) -> f64 {
    let differences: Vec<f64> = one.iter().zip(other).map(|(a, b)| a - b).collect();
    let (Some(mean), Some(deviation)) = (mean(&differences), standard_deviation(&differences)) else {
        return 1.0;
    };
    if mean <= 0.0 {
        return 1.0;
    }
    // Without any variation the quotient is infinite, and the probability zero.
    student_tail(mean / (deviation / (differences.len() as f64).sqrt()), differences.len() - 1)
}

/// Probability that Student's t with so many degrees of freedom exceeds `t`, which is not negative
/// (M. Abramowitz, I. A. Stegun, "Handbook of mathematical functions", 26.7.3 and 26.7.4).
fn student_tail(t: f64, degrees: usize) -> f64 {
    let angle = (t / (degrees as f64).sqrt()).atan();
    let square = angle.cos().powi(2);
    let is_odd = degrees % 2 == 1;
    // 1 + 1/2 c^2 + 1 3/(2 4) c^4 + ..., or c + 2/3 c^3 + 2 4/(3 5) c^5 + ...
    let (mut term, mut sum) = if is_odd { (angle.cos(), 0.0) } else { (1.0, 0.0) };
    let terms = if is_odd { (degrees - 1) / 2 } else { degrees / 2 };
    for number in 0..terms {
        sum += term;
        let place = (2 * number + if is_odd { 2 } else { 1 }) as f64;
        term *= square * place / (place + 1.0);
    }
    let inside =
        if is_odd { std::f64::consts::FRAC_2_PI * (angle + angle.sin() * sum) } else { angle.sin() * sum };
    ((1.0 - inside) / 2.0).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::student_t;
    use super::*;

    #[test]
    fn the_tail_beyond_the_quantile_of_the_table_is_a_fortieth() {
        for degrees in (1..=30).chain([120]) {
            let tail = student_tail(student_t(degrees), degrees);
            assert!((tail - 0.025).abs() < 1e-6, "{degrees}: {tail}");
        }
        assert!((student_tail(0.0, 7) - 0.5).abs() < 1e-12);
        assert_eq!(student_tail(f64::INFINITY, 1), 0.0);
        // R: pt(-4.785290, 7) is 0.001, pt(-5.207626, 9) is 0.00028.
        assert!((student_tail(4.785_290, 7) - 0.001).abs() < 1e-8);
    }

    #[test]
    fn the_best_of_every_seed_is_best_despite_variation_between_seeds() {
        let base = [100.0, 300.0, 200.0, 150.0, 250.0, 120.0, 280.0, 170.0];
        let slower = base.map(|time| time + 10.0 + time / 1000.0);
        assert_eq!(may_be_smallest(&[&slower, &base]), [false, true]);
        assert_eq!(may_be_smallest(&[&base, &base]), [true, true], "the same is a tie");
    }

    #[test]
    fn the_best_of_some_seeds_is_a_tie() {
        let one = [508.0, 500.0, 520.0];
        let other = [500.0, 512.0, 515.0];
        assert_eq!(may_be_smallest(&[&one, &other]), [true, true]);
    }

    #[test]
    fn more_comparisons_need_a_larger_difference() {
        let best = [100.0, 101.0, 99.0, 100.0];
        let close = [101.0, 103.0, 101.5, 101.0];
        let far = [200.0, 201.0, 199.5, 200.0];
        assert_eq!(may_be_smallest(&[&close, &best]), [false, true]);
        let mut samples: Vec<&[f64]> = vec![&close, &best];
        samples.extend([&far[..]; 20]);
        let found = may_be_smallest(&samples);
        assert_eq!(found[..3], [true, true, false], "one of twenty-one may look so by chance");
    }

    #[test]
    fn one_seed_or_none_gives_no_comparison() {
        assert_eq!(may_be_smallest(&[&[1.0], &[9.0]]), [true, true]);
        assert_eq!(may_be_smallest(&[&[], &[]]), [false, false]);
        assert_eq!(may_be_smallest(&[&[1.0, f64::NAN], &[9.0, 9.1]]), [false, true]);
    }
}
