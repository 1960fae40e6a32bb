//! Crossings of the order of two schemes along an axis of a sweep.
//!
//! At each value of the axis the two are compared by the differences of their means, paired by
//! seed. One is faster if the 95 % interval of these does not hold zero. The order crosses between
//! the last value at which one is faster and the first at which the other is. Values between them,
//! at which neither is, widen the gap. The place in the gap is estimated by a straight line between
//! the mean differences.

use headstart_report::statistics::mean_interval;

/// The order of two schemes crosses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// The first of the two is the faster one below.
    pub first_is_faster_below: bool,
    /// The last value at which one is faster.
    pub after: f64,
    /// The first value at which the other is.
    pub before: f64,
    /// Estimated place of the crossing.
    pub about: f64,
}

/// The crossings of two schemes whose means by seed, at each value of the axis, are these.
#[must_use]
pub fn crossings(axis: &[f64], one: &[&[f64]], other: &[&[f64]]) -> Vec<Crossing> {
    let mut found = vec![];
    // Value, mean difference and whether the first is faster: at the last value at which one was,
    // and at each since.
    let mut last: Option<(f64, bool)> = None;
    let mut since: Vec<(f64, f64)> = vec![];
    for (&at, (one, other)) in axis.iter().zip(one.iter().zip(other)) {
        if one.len() != other.len() {
            continue;
        }
        let differences: Vec<f64> = one.iter().zip(*other).map(|(one, other)| one - other).collect();
        let Some(interval) = mean_interval(&differences) else { continue };
        since.push((at, interval.value));
        let is_faster = match (interval.high < 0.0, interval.low > 0.0) {
            (false, false) => continue,
            (is_faster, _) => is_faster,
        };
        if let Some((after, first_is_faster_below)) = last.filter(|(_, before)| *before != is_faster) {
            let about = first_zero(&since).unwrap_or((after + at) / 2.0);
            found.push(Crossing { first_is_faster_below, after, before: at, about });
        }
        last = Some((at, is_faster));
        since = vec![(at, interval.value)];
    }
    found
}

/// First zero of a line through these points.
fn first_zero(points: &[(f64, f64)]) -> Option<f64> {
    points.windows(2).find_map(|pair| {
        let [(from, below), (to, above)] = [pair[0], pair[1]];
        (below.signum() != above.signum()).then(|| from + (to - from) * below / (below - above))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 10, 20, 30 the first is 10 faster, even with the second, and 20 slower; seeds spread by
    /// far more than that.
    #[test]
    fn a_crossing_lies_between_the_last_and_the_first_significant_point() {
        let seeds = [100.0, 300.0, 200.0];
        let noise = [0.5, -0.5, 0.0];
        let shifted = |by: f64| -> Vec<f64> {
            seeds.iter().zip(noise).map(|(seed, noise)| seed + by + noise).collect()
        };
        let one = [shifted(-10.0), shifted(0.0), shifted(20.0)];
        let one: Vec<&[f64]> = one.iter().map(Vec::as_slice).collect();
        let other: Vec<&[f64]> = vec![&seeds; 3];
        let found = crossings(&[10.0, 20.0, 30.0], &one, &other);
        let [crossing] = found[..] else { panic!("{found:?}") };
        assert!(crossing.first_is_faster_below);
        assert_eq!((crossing.after, crossing.before), (10.0, 30.0));
        assert!((crossing.about - 20.0).abs() < 0.5, "{crossing:?}");
        let back = crossings(&[10.0, 20.0, 30.0], &other, &one);
        assert!(!back[0].first_is_faster_below);
    }

    #[test]
    fn differences_within_the_noise_are_no_crossing() {
        let one: [&[f64]; 2] = [&[100.0, 300.0], &[100.0, 310.0]];
        let other: [&[f64]; 2] = [&[110.0, 290.0], &[105.0, 300.0]];
        assert_eq!(crossings(&[1.0, 2.0], &one, &other), []);
        let single: [&[f64]; 2] = [&[1.0], &[9.0]];
        let constant: [&[f64]; 2] = [&[5.0], &[5.0]];
        assert_eq!(crossings(&[1.0, 2.0], &single, &constant), [], "one seed tells nothing");
    }

    #[test]
    fn a_crossing_is_interpolated_linearly() {
        assert_eq!(first_zero(&[(10.0, -1.0), (20.0, 3.0)]), Some(12.5));
        assert_eq!(first_zero(&[(10.0, 1.0), (20.0, 3.0)]), None);
    }
}
