//! Shares of a sweep, for several machines: its points, divided by the estimate of their cost.

use std::fmt;
use std::str::FromStr;

use anyhow::{Error, anyhow};

use crate::race;
use crate::setup::Setup;
use crate::sweep::Point;

/// More shards than this are a mistake.
const MAX_SHARDS: u32 = 100_000;

/// One of several shares of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Its number, from 1.
    pub number: u32,
    /// Number of all.
    pub count: u32,
}

impl FromStr for Shard {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parsed = text.split_once('/').and_then(|(number, count)| {
            let shard = Self { number: number.trim().parse().ok()?, count: count.trim().parse().ok()? };
            (1..=shard.count).contains(&shard.number).then_some(shard)
        });
        parsed.filter(|shard| shard.count <= MAX_SHARDS).ok_or_else(|| {
            anyhow!("found `{text}`, expected a shard and their number, 1/16 to 16/16 (at most {MAX_SHARDS})")
        })
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

/// The points of a shard, in their order.
pub fn points(shard: Shard, all: &[(Point, Setup)]) -> impl Iterator<Item = &(Point, Setup)> + Clone {
    // Whole microseconds: every machine divides them in the same way.
    let costs: Vec<u64> = all.iter().map(|(_, setup)| (race::estimate(setup).seconds * 1e6) as u64).collect();
    let shards = divide(&costs, shard.count);
    all.iter().enumerate().filter(move |(at, _)| shards[*at] == shard.number).map(|(_, point)| point)
}

/// The number of each point's shard: the most expensive first, each to the shard with least to do.
fn divide(costs: &[u64], count: u32) -> Vec<u32> {
    let mut order: Vec<usize> = (0..costs.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(costs[*at]));
    let mut loads: std::collections::BTreeSet<(u64, u32)> = (1..=count).map(|number| (0, number)).collect();
    let mut shards = vec![0; costs.len()];
    for at in order {
        let Some((load, number)) = loads.pop_first() else { break };
        shards[at] = number;
        // A point costs more than nothing: shards have points even where none is expensive.
        loads.insert((load + costs[at].max(1), number));
    }
    shards
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_shard_does_more_than_the_mean_and_one_point() {
        let costs: Vec<u64> = (0..500_u64).map(|n| 1 + n * n % 977 * (1 + n % 7)).collect();
        let shards = divide(&costs, 16);
        let of = |shard| -> u64 { (0..500).filter(|at| shards[*at] == shard).map(|at| costs[at]).sum() };
        let loads: Vec<u64> = (1..=16).map(of).collect();
        let (all, most) = (costs.iter().sum::<u64>(), *costs.iter().max().expect("points"));
        assert_eq!(loads.iter().sum::<u64>(), all, "every point is in one shard");
        assert!(loads.iter().all(|load| *load <= all / 16 + most), "{loads:?}");
    }

    #[test]
    fn points_of_one_cost_are_divided_evenly() {
        for cost in [0, 5] {
            let shards = divide(&[cost; 10], 4);
            let sizes = [1, 2, 3, 4].map(|shard| shards.iter().filter(|one| **one == shard).count());
            assert_eq!(sizes, [3, 3, 2, 2]);
        }
    }

    #[test]
    fn a_shard_has_a_number_within_their_count() {
        assert_eq!("3/16".parse::<Shard>().expect("fine"), Shard { number: 3, count: 16 });
        for text in ["0/4", "5/4", "1", "1/0", "a/b", "-1/2", "1/100001"] {
            let error = text.parse::<Shard>().expect_err(text).to_string();
            assert!(error.contains(text) && error.contains("1/16"), "{error}");
        }
    }
}
