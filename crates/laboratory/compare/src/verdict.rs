//! The verdict of a race: the fastest scheme, the fastest without harm, and ties.
//!
//! Completion times are compared seed by seed ([`may_be_smallest`]). Harm is the worse of the delay
//! of the reference's short flows and of the loss of rate of long flows. It is judged by a margin
//! and not by its significance: with enough seeds any harm is significant, and with few seeds none
//! is. The rules are in docs/definitions.md.

use clap::ValueEnum;
use headstart_report::statistics::{Interval, may_be_smallest};
use headstart_startup::catalogue::Needs;
use headstart_startup::scheme::Scheme;

use crate::race::{LEAST_SEEDS, Race, SchemeResult};

/// The flows that a scheme harms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HarmedFlows {
    /// Short flows of the reference: completion time with the scheme, over the time among
    /// themselves.
    ShortFlows,
    /// Long flows: their rate with the reference, over their rate with the scheme.
    LongFlows,
}

/// Cost of a scheme to other flows: 1 is none, 2 is half of the speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Harm {
    /// Factor of the harm, with the interval if there are several seeds.
    pub interval: Interval,
    /// The harmed flows.
    pub harmed: HarmedFlows,
}

/// Harm against the most that is accepted, by its interval; the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HarmVerdict {
    /// The upper end is below the margin.
    Harmless,
    /// The interval reaches over the margin, or there is none.
    NotKnown,
    /// The lower end is above the margin.
    Harmful,
}

/// The harm that is accepted unless told otherwise: others take one percent longer.
pub const MOST_HARM: f64 = 0.01;

impl Harm {
    /// The verdict, if others may take longer by the share `most`.
    #[must_use]
    pub fn verdict(&self, most: f64) -> HarmVerdict {
        let margin = 1.0 + most;
        if self.interval.high <= margin {
            HarmVerdict::Harmless
        } else if self.interval.low > margin {
            HarmVerdict::Harmful
        } else {
            HarmVerdict::NotKnown
        }
    }

    /// True if chance is known: there are enough seeds for an interval.
    #[must_use]
    pub fn has_interval(&self) -> bool {
        !self.interval.low.is_nan()
    }

    /// The number of seeds with which the interval would not reach over the margin any more, if the
    /// number stays and the interval shrinks with the root of the seeds. `None` without interval.
    #[must_use]
    pub fn seeds_to_tell(&self, most: f64, seeds: usize) -> Option<f64> {
        let distance = (self.interval.value - 1.0 - most).abs();
        let reach = if self.interval.value > 1.0 + most {
            self.interval.value - self.interval.low
        } else {
            self.interval.high - self.interval.value
        };
        self.has_interval().then(|| (seeds as f64 * (reach / distance).powi(2)).ceil())
    }
}

impl SchemeResult {
    /// The worse of the costs to short flows and to long flows: by the verdict, then the larger.
    /// `None` without other flows.
    fn worst_harm(&self, most: f64) -> Option<Harm> {
        let seeds = self.mean().by_seed.len();
        let known = |interval: Interval| {
            if seeds >= LEAST_SEEDS {
                interval
            } else {
                Interval { low: f64::NAN, high: f64::NAN, ..interval }
            }
        };
        let short =
            Harm { interval: known(self.measured["harm"].interval()), harmed: HarmedFlows::ShortFlows };
        let long = self.known("long_flow_share").map(|share| Harm {
            interval: known(Interval {
                value: 1.0 / share.value,
                low: 1.0 / share.high,
                high: 1.0 / share.low,
            }),
            harmed: HarmedFlows::LongFlows,
        });
        [Some(short), long].into_iter().flatten().filter(|harm| !harm.interval.value.is_nan()).max_by(
            |a, b| {
                let is_larger = a.interval.value.total_cmp(&b.interval.value);
                a.verdict(most).cmp(&b.verdict(most)).then(is_larger)
            },
        )
    }

    /// True if the scheme can be ranked: transfers finished, and the machine kept up.
    fn counts(&self) -> bool {
        self.invalid.0 == 0 && self.mean().value.is_finite() && !self.is_unfinished()
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
    /// Schemes that may be the fastest; the first has the smallest mean.
    pub fastest: Vec<usize>,
    /// The harmless schemes that may be the fastest. Empty for one or two seeds, which say nothing
    /// about harm.
    pub harmless: Vec<usize>,
    /// Schemes of unknown harm that may be faster than all harmless ones.
    pub not_known: Vec<usize>,
    /// Schemes that are known to harm others, the worst first.
    pub harmful: Vec<usize>,
    /// Schemes that gave the same runs, packet for packet.
    pub identical: Vec<IdenticalSchemes>,
}

/// Schemes whose runs were the same, packet for packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdenticalSchemes {
    /// The identical schemes, slow start first.
    pub members: Vec<usize>,
    /// The first is slow start: no member ever left it.
    pub is_slow_start: bool,
}

impl Race {
    /// The worse harm of a scheme, to short or to long flows. `None` without other flows.
    #[must_use]
    pub fn worst_harm(&self, scheme_result: &SchemeResult) -> Option<Harm> {
        scheme_result.worst_harm(self.most_harm)
    }

    /// Number of schemes whose intervals of harm hold at once: all but the reference.
    #[must_use]
    pub fn judged(&self) -> usize {
        self.scheme_results.iter().filter(|result| result.entry.name != self.reference.name).count()
    }

    /// The fastest harmless schemes among those that a server can have without a record, a hint or
    /// routers.
    #[must_use]
    pub fn harmless_anywhere(&self) -> Vec<usize> {
        let is_one = |place: &usize| {
            let result = &self.scheme_results[*place];
            let harm = self.worst_harm(result).map(|harm| harm.verdict(self.most_harm));
            let needs = matches!(result.entry.needs, Needs::Nothing | Needs::FlowSize);
            needs && result.counts() && harm == Some(HarmVerdict::Harmless)
        };
        self.fastest_of((0..self.scheme_results.len()).filter(is_one).collect())
    }

    /// The winners.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let counting = || (0..self.scheme_results.len()).filter(|place| self.scheme_results[*place].counts());
        let of = |wanted: &[HarmVerdict]| -> Vec<usize> {
            let is_wanted = |place: &usize| {
                let harm = self.worst_harm(&self.scheme_results[*place]);
                harm.is_some_and(|harm| wanted.contains(&harm.verdict(self.most_harm)))
            };
            counting().filter(is_wanted).collect()
        };
        let harmless = of(&[HarmVerdict::Harmless]);
        // Compared with the harmless ones alone: a faster one of unknown harm may turn out to be
        // harmful.
        let may_win = |place: &usize| self.fastest_of([&harmless[..], &[*place]].concat()).contains(place);
        // The reference's harm is none, however few of its flows were met.
        let is_judged = |place: &usize| self.scheme_results[*place].entry.name != self.reference.name;
        let open = of(&[HarmVerdict::NotKnown]).into_iter().filter(is_judged);
        let mut not_known: Vec<usize> = open.filter(may_win).collect();
        self.sort(&mut not_known, SortKey::Time);
        // Flows of a scheme that never finishes harm all the same.
        let mut harmful: Vec<usize> = (0..self.scheme_results.len())
            .filter(|place| {
                let harm = self.worst_harm(&self.scheme_results[*place]);
                harm.is_some_and(|harm| harm.verdict(self.most_harm) == HarmVerdict::Harmful)
            })
            .collect();
        self.sort(&mut harmful, SortKey::Harm);
        harmful.reverse();
        Verdict {
            fastest: self.fastest_of(counting().collect()),
            not_known,
            harmful,
            harmless: self.fastest_of(harmless),
            identical: self.identical(),
        }
    }

    /// Schemes of `places` that may be the fastest, the smallest mean first.
    fn fastest_of(&self, places: Vec<usize>) -> Vec<usize> {
        let samples: Vec<&[f64]> =
            places.iter().map(|place| self.scheme_results[*place].mean().by_seed.as_slice()).collect();
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
            let number = |name| {
                let value = scheme_result.measured[name].value;
                if value.is_nan() { f64::INFINITY } else { value }
            };
            match key {
                SortKey::Time => number("mean_ms"),
                SortKey::P50 => number("p50_ms"),
                SortKey::P99 => number("p99_ms"),
                SortKey::Rtts => number("mean_round_trips"),
                SortKey::Loss => number("loss_percent"),
                SortKey::Sent => number("bytes_sent_over_useful"),
                SortKey::Harm => {
                    let harm = self.worst_harm(scheme_result);
                    harm.map_or(f64::INFINITY, |harm| harm.interval.value)
                }
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
    /// Median completion time.
    P50,
    /// 99th percentile of completion times.
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
mod tests {
    use super::*;
    use crate::samples::{race, scheme_result};

    #[test]
    fn a_harm_beyond_the_margin_ranks_before_a_larger_one_that_may_be_noise() {
        let worst = |harm: &[f64], share: &[f64]| {
            scheme_result("iw2", &[1.0; 3])
                .harm_of(harm)
                .long_share_of(share)
                .0
                .worst_harm(MOST_HARM)
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
    fn harm_is_judged_by_a_margin_and_not_by_the_number_of_seeds() {
        let harm = |by_seed: &[f64]| {
            let made = scheme_result("iw2", &vec![1.0; by_seed.len()]).harm_of(by_seed).0;
            made.worst_harm(MOST_HARM).expect("it has other flows")
        };
        // Around 0.4 % in all of them; sixty-four seeds make that significant, and not harmful.
        let seeds = |count: usize| -> Vec<f64> {
            (0..count).map(|seed| if seed % 2 == 0 { 1.014 } else { 0.994 }).collect()
        };
        for (by_seed, expected) in [
            (seeds(2), HarmVerdict::NotKnown),
            (seeds(4), HarmVerdict::NotKnown),
            (seeds(64), HarmVerdict::Harmless),
            (vec![1.05, 1.04, 1.05, 1.045], HarmVerdict::Harmful),
            (vec![1.0; 3], HarmVerdict::Harmless),
        ] {
            assert_eq!(harm(&by_seed).verdict(MOST_HARM), expected, "{} seeds", by_seed.len());
        }
        let needed = harm(&seeds(4)).seeds_to_tell(MOST_HARM, 4).expect("an interval");
        assert!((10.0..100.0).contains(&needed), "{needed} seeds");
        assert_eq!(harm(&seeds(2)).seeds_to_tell(MOST_HARM, 2), None);
    }

    #[test]
    fn a_harm_is_harder_to_know_among_many_schemes() {
        let judged = |schemes: usize| {
            let made = |_| {
                scheme_result("iw32", &[1.0; 8])
                    .harm_of(&[1.0, 1.004, 1.008, 0.996, 1.012, 1.0, 1.004, 1.008])
                    .0
            };
            let race = race((0..schemes).map(made).collect());
            race.worst_harm(&race.scheme_results[0]).expect("it has other flows").verdict(MOST_HARM)
        };
        assert_eq!([judged(1), judged(20)], [HarmVerdict::Harmless, HarmVerdict::NotKnown]);
    }

    #[test]
    fn a_faster_scheme_of_unknown_harm_is_named_beside_the_fastest_harmless_one() {
        let quick =
            scheme_result("jump-start", &[180.0, 181.0, 179.0, 180.0]).harm_of(&[1.03, 0.98, 1.02, 0.99]).0;
        let safe = scheme_result("iw10", &[240.0, 241.0, 239.0, 240.0]).0;
        let verdict = race(vec![quick, safe]).verdict();
        assert_eq!((verdict.fastest, verdict.harmless, verdict.not_known), (vec![0], vec![1], vec![0]));
    }

    #[test]
    fn the_harm_of_the_reference_is_not_in_question() {
        let alone = scheme_result("iw10", &[240.0, 241.0]).harm_of(&[1.0, 1.0]).0;
        let other = scheme_result("jump-start", &[180.0, 181.0]).harm_of(&[1.0, 1.0]).0;
        assert_eq!(race(vec![alone, other]).verdict().not_known, [1], "two seeds tell nothing of others");
    }

    #[test]
    fn every_scheme_of_unknown_harm_that_may_beat_the_harmless_ones_is_named() {
        let open = |name, mean: f64| {
            scheme_result(name, &[mean, mean + 1.0, mean - 1.0, mean]).harm_of(&[1.03, 0.98, 1.02, 0.99]).0
        };
        let safe = scheme_result("iw10", &[240.0, 241.0, 239.0, 240.0]).0;
        let verdict =
            race(vec![open("jump-start", 180.0), open("iw32", 200.0), open("iw2", 300.0), safe]).verdict();
        assert_eq!((verdict.harmless, verdict.not_known), (vec![3], vec![0, 1]), "iw2 is slower anyway");
    }

    #[test]
    fn a_scheme_without_a_measurement_is_ranked_last() {
        let unknown = scheme_result("iw2", &[f64::NAN, 1.0]).0;
        let mut busy = scheme_result("iw3", &[1.0, 1.0]).0;
        busy.invalid = (1, 4);
        let race = race(vec![unknown, busy, scheme_result("iw10", &[9.0, 9.1, 9.0]).0]);
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
