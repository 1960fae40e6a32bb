//! Cost of a paper's runs, estimated from some of them before the others begin.
//!
//! A set-up is a point of a figure under one variant. Its runs, which differ in scheme, mix and
//! seed, cost about the same; runs of different set-ups may differ a thousandfold. So one run of
//! each set-up is timed, until [`TIMED_SECONDS`] is spent; other set-ups are scaled from the one of
//! the same figure that is nearest in work. Timed runs are kept like any other.

use std::collections::BTreeMap;

/// Processor time for timed runs in seconds; each figure has one timed run at least.
pub const TIMED_SECONDS: f64 = 4.0;

/// A set-up with runs ahead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SetUp {
    /// The figure.
    pub figure: usize,
    /// Work of a run, in any unit that is the same within a figure.
    pub work: f64,
}

/// The set-ups in the order in which they are timed, figures in turn: of each the shortest, the
/// middle one, then the others from the shortest on. The first value is the number of figures.
pub fn order(set_ups: &BTreeMap<usize, SetUp>) -> (usize, Vec<usize>) {
    let mut figures: BTreeMap<usize, Vec<(f64, usize)>> = BTreeMap::new();
    for (number, set_up) in set_ups {
        figures.entry(set_up.figure).or_default().push((set_up.work, *number));
    }
    for all in figures.values_mut() {
        all.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let middle = all.len() / 2;
        if middle > 1 {
            all[1..=middle].rotate_right(1);
        }
    }
    let most = figures.values().map(Vec::len).max().unwrap_or_default();
    let turn = |number: usize| figures.values().filter_map(move |all| all.get(number));
    (figures.len(), (0..most).flat_map(turn).map(|(_, number)| *number).collect())
}

/// Times of some runs.
#[derive(Debug, Default)]
pub struct Times(pub BTreeMap<usize, f64>);

impl Times {
    /// Expected time of a run of a set-up, in seconds.
    pub fn of(&self, number: usize, set_ups: &BTreeMap<usize, SetUp>) -> f64 {
        if let Some(seconds) = self.0.get(&number) {
            return *seconds;
        }
        let Some(this) = set_ups.get(&number) else { return 0.0 };
        let distance = |other: &SetUp| (other.work / this.work).ln().abs();
        let timed = self.0.iter().filter_map(|(number, seconds)| Some((set_ups.get(number)?, *seconds)));
        let nearest = timed
            .filter(|(other, _)| other.figure == this.figure)
            .min_by(|(one, _), (other, _)| distance(one).total_cmp(&distance(other)));
        nearest.map_or(0.0, |(other, seconds)| seconds * this.work / other.work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_ups() -> BTreeMap<usize, SetUp> {
        let figure = |figure, first: usize, works: &[f64]| {
            let one = move |(place, work): (usize, &f64)| (first + place, SetUp { figure, work: *work });
            works.iter().enumerate().map(one).collect::<Vec<_>>()
        };
        [figure(0, 0, &[5.0, 1.0, 4.0, 3.0, 2.0]), figure(1, 5, &[7.0])].concat().into_iter().collect()
    }

    #[test]
    fn every_figure_is_timed_first_and_then_what_is_in_the_middle() {
        assert_eq!(order(&set_ups()), (2, vec![1, 5, 3, 4, 2, 0]));
        assert_eq!(order(&BTreeMap::new()), (0, vec![]));
    }

    #[test]
    fn what_is_not_timed_is_scaled_from_its_nearest_of_the_same_figure() {
        let set_ups = set_ups();
        let times = Times([(1, 0.5), (3, 3.0), (5, 100.0)].into());
        let found: Vec<f64> = (0..7).map(|number| times.of(number, &set_ups)).collect();
        // The second, of work 1, takes 0.5 s; the fourth, of work 3, takes 3 s.
        assert_eq!(found, [5.0, 0.5, 4.0, 3.0, 2.0, 100.0, 0.0]);
    }
}
