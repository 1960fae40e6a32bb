//! The verdict of a race: the fastest scheme, the fastest without harm, and ties.
//!
//! Completion times are compared seed by seed ([`may_be_smallest`]). Harm is the worse of the delay
//! of the reference's short flows and of the loss of rate of long flows. It is shown if its
//! interval lies above 1. The rules are in docs/definitions.md.

use clap::ValueEnum;
use headstart_report::statistics::{Interval, may_be_smallest};
use headstart_startup::scheme::Scheme;

use crate::race::{Measured, Race, SchemeResult};

/// The flows that a scheme harms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HarmedFlows {
    /// Short flows of the reference beside it: their completion time over that among themselves.
    ShortFlows,
    /// Long flows beside it: their rate beside the reference, over their rate beside it.
    LongFlows,
}

/// Cost of a scheme to other flows: 1 is none, 2 is half of the speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Harm {
    /// Its factor, with the interval if there are several seeds.
    pub interval: Interval,
    /// The harmed flows.
    pub harmed: HarmedFlows,
}

impl Harm {
    /// True if noise cannot be the reason. A single seed has no interval and shows no harm.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.interval.low > 1.0
    }

    /// True if chance is known: there are several seeds.
    #[must_use]
    pub fn has_interval(&self) -> bool {
        !self.interval.low.is_nan()
    }
}

impl SchemeResult {
    /// The worse of the costs to short flows and to long flows: one that shows before one that does
    /// not, then the larger. `None` without other flows.
    #[must_use]
    pub fn worst_harm(&self) -> Option<Harm> {
        let short = Harm { interval: self.harm.interval(), harmed: HarmedFlows::ShortFlows };
        let long = self.long_share.as_ref().map(|share| Harm {
            interval: Interval { value: 1.0 / share.value, low: 1.0 / share.high, high: 1.0 / share.low },
            harmed: HarmedFlows::LongFlows,
        });
        [Some(short), long].into_iter().flatten().filter(|harm| !harm.interval.value.is_nan()).max_by(
            |a, b| {
                let is_larger = a.interval.value.total_cmp(&b.interval.value);
                a.is_significant().cmp(&b.is_significant()).then(is_larger)
            },
        )
    }

    /// It can be ranked: transfers finished, and the machine kept up.
    fn counts(&self) -> bool {
        self.invalid.0 == 0 && self.mean_ms.value.is_finite() && !self.is_unfinished()
    }

    /// No flow of it was finished: its times are ages at the end of a run.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.totals.flows > 0 && self.totals.unfinished == self.totals.flows
    }

    fn is_slow_start(&self) -> bool {
        matches!(self.entry.scheme(), Scheme::SlowStart(_))
    }
}

/// Schemes by their place in [`Race::scheme_results`], each list with the fastest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Those that may be the fastest; the first has the smallest mean.
    pub fastest: Vec<usize>,
    /// Of those whose harm does not show, those that may be the fastest. Empty for a single seed,
    /// which says nothing about harm.
    pub harmless: Vec<usize>,
    /// Schemes that gave the same runs, packet for packet.
    pub identical: Vec<IdenticalSchemes>,
}

/// Schemes whose runs were the same, packet for packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdenticalSchemes {
    /// All of them, slow start first.
    pub members: Vec<usize>,
    /// The first is slow start: no member ever left it.
    pub is_slow_start: bool,
}

impl Race {
    /// The winners.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let counting = || (0..self.scheme_results.len()).filter(|place| self.scheme_results[*place].counts());
        let is_harmless = |place: &usize| {
            let harm = self.scheme_results[*place].worst_harm();
            harm.is_some_and(|harm| harm.has_interval() && !harm.is_significant())
        };
        Verdict {
            fastest: self.fastest_of(counting().collect()),
            harmless: self.fastest_of(counting().filter(is_harmless).collect()),
            identical: self.identical(),
        }
    }

    /// Those of `places` that may be the fastest, the smallest mean first.
    fn fastest_of(&self, places: Vec<usize>) -> Vec<usize> {
        let samples: Vec<&[f64]> =
            places.iter().map(|place| self.scheme_results[*place].mean_ms.by_seed.as_slice()).collect();
        let may_be = may_be_smallest(&samples);
        let mut fastest: Vec<usize> =
            places.into_iter().zip(may_be).filter(|(_, may_be)| *may_be).map(|(place, _)| place).collect();
        self.sort(&mut fastest, SortKey::Time);
        fastest
    }

    fn identical(&self) -> Vec<IdenticalSchemes> {
        let mut groups: Vec<Vec<usize>> = vec![];
        let finished = |(_, scheme_result): &(usize, &SchemeResult)| !scheme_result.is_unfinished();
        for (place, scheme_result) in self.scheme_results.iter().enumerate().filter(finished) {
            let is_identical = |group: &&mut Vec<usize>| {
                let other = &self.scheme_results[group[0]];
                scheme_result.has_fingerprint && other.fingerprint == scheme_result.fingerprint
            };
            match groups.iter_mut().find(is_identical) {
                Some(group) => group.push(place),
                None => groups.push(vec![place]),
            }
        }
        groups.retain(|group| group.len() > 1);
        let identical = |mut members: Vec<usize>| {
            let is_slow_start = |place: &usize| self.scheme_results[*place].is_slow_start();
            members.sort_by_key(|place| !is_slow_start(place));
            let has_others = members.iter().any(|place| !is_slow_start(place));
            IdenticalSchemes { is_slow_start: has_others && is_slow_start(&members[0]), members }
        };
        groups.into_iter().map(identical).collect()
    }

    /// Puts places into the order of `key`, places without a value last and equal ones unchanged.
    pub fn sort(&self, places: &mut [usize], key: SortKey) {
        let value = |place: &usize| {
            let scheme_result = &self.scheme_results[*place];
            let number =
                |measured: &Measured| if measured.value.is_nan() { f64::INFINITY } else { measured.value };
            match key {
                SortKey::Time => number(&scheme_result.mean_ms),
                SortKey::P50 => number(&scheme_result.p50_ms),
                SortKey::P99 => number(&scheme_result.p99_ms),
                SortKey::Rtts => number(&scheme_result.rounds),
                SortKey::Loss => number(&scheme_result.loss_percent),
                SortKey::Sent => number(&scheme_result.overhead),
                SortKey::Harm => scheme_result.worst_harm().map_or(f64::INFINITY, |harm| harm.interval.value),
                SortKey::Given => scheme_result.asked_at as f64,
            }
        };
        places.sort_by(|a, b| value(a).total_cmp(&value(b)));
    }
}

/// Orders of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SortKey {
    /// Mean completion time of flows, or of pages.
    #[default]
    Time,
    /// Their median.
    P50,
    /// Their 99th percentile.
    P99,
    /// Mean completion time in round trips.
    Rtts,
    /// Packets dropped by the queue.
    Loss,
    /// Bytes sent over bytes delivered.
    Sent,
    /// Harm to others, of short and of long flows the worse.
    Harm,
    /// As --schemes has them.
    Given,
}

#[cfg(test)]
pub(crate) mod tests {
    use headstart_sim::{Histogram, Totals};

    use super::*;
    use crate::flow_trace::FlowTrace;
    use crate::schemes;

    /// A result under construction.
    pub struct ResultBuilder(pub SchemeResult);

    impl ResultBuilder {
        pub fn harm_of(mut self, by_seed: &[f64]) -> Self {
            self.0.harm = Measured::positive(by_seed.to_vec());
            self
        }

        pub fn long_share_of(mut self, by_seed: &[f64]) -> Self {
            self.0.long_share = Some(Measured::positive(by_seed.to_vec()));
            self
        }
    }

    /// Of these means by seed, without harm.
    pub fn scheme_result(name: &str, by_seed: &[f64]) -> ResultBuilder {
        let positive = || Measured::positive(by_seed.to_vec());
        ResultBuilder(SchemeResult {
            entry: schemes::find(name).expect("in the catalogue"),
            totals: Totals::default(),
            times: Histogram::default(),
            mean_ms: positive(),
            p50_ms: positive(),
            p99_ms: positive(),
            transfer_ms: positive(),
            rounds: positive(),
            loss_percent: Measured::percent(&vec![0.0; by_seed.len()]),
            random_loss_percent: None,
            overhead: positive(),
            harm: Measured::positive(vec![1.0; by_seed.len()]),
            long_share: None,
            history_hits: 0.0,
            history_bytes_per_peer: 0,
            asked_at: 0,
            fingerprint: 0,
            has_fingerprint: true,
            data_packets: 0,
            measures: vec![],
            seeds: vec![],
            view: FlowTrace::default(),
            has_counts: true,
            invalid: (0, 0),
        })
    }

    /// Of these, each with another fingerprint unless it has one, in the order of the list.
    pub fn race(scheme_results: Vec<SchemeResult>) -> Race {
        let seeds = scheme_results[0].mean_ms.by_seed.len();
        let numbered = scheme_results.into_iter().enumerate().map(|(place, scheme_result)| SchemeResult {
            asked_at: place,
            fingerprint: if scheme_result.fingerprint == 0 {
                100 + place as u64
            } else {
                scheme_result.fingerprint
            },
            ..scheme_result
        });
        Race {
            scheme_results: numbered.collect(),
            is_pages: false,
            traced_serial: 0,
            seeds,
            empty_seeds: 0,
            begun: 0,
        }
    }

    #[test]
    fn a_significant_harm_ranks_before_a_larger_insignificant_one() {
        let worst = |harm: &[f64], share: &[f64]| {
            scheme_result("iw2", &[1.0; 3])
                .harm_of(harm)
                .long_share_of(share)
                .0
                .worst_harm()
                .expect("both")
                .harmed
        };
        assert_eq!(worst(&[1.2, 1.21, 1.19], &[0.99, 0.98, 0.99]), HarmedFlows::ShortFlows);
        assert_eq!(worst(&[1.05, 1.04, 1.05], &[0.8, 0.81, 0.8]), HarmedFlows::LongFlows);
        assert_eq!(
            worst(&[0.7, 1.9, 1.2], &[0.95, 0.95, 0.96]),
            HarmedFlows::LongFlows,
            "the other is noise"
        );
    }

    #[test]
    fn a_scheme_without_a_measurement_is_ranked_last() {
        let unknown = scheme_result("iw2", &[f64::NAN, 1.0]).0;
        let mut busy = scheme_result("iw3", &[1.0, 1.0]).0;
        busy.invalid = (1, 4);
        let race = race(vec![unknown, busy, scheme_result("iw10", &[9.0, 9.1]).0]);
        let verdict = race.verdict();
        assert_eq!((verdict.fastest, verdict.harmless), (vec![2], vec![2]));
        let mut order = vec![0, 1, 2];
        race.sort(&mut order, SortKey::Time);
        assert_eq!(order, [1, 2, 0]);
        race.sort(&mut order, SortKey::Given);
        assert_eq!(order, [0, 1, 2]);
    }

    #[test]
    fn no_rows_are_identical_in_real_time() {
        let real = |name| {
            let mut made = scheme_result(name, &[1.0, 2.0]).0;
            (made.fingerprint, made.has_fingerprint) = (7, false);
            made
        };
        assert!(race(vec![real("iw2"), real("iw10")]).verdict().identical.is_empty());
    }
}
