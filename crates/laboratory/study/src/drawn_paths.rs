//! A scheme compared with `iw10` on paths drawn from written distributions, on the same arrivals.
//!
//! The seed is the number of the path. Its rate, RTT, buffer, losses, load, sizes and peers are all
//! drawn ([`sets`]), whatever the options of path and workload say. Everybody has QUIC's probe
//! timeout and CUBIC. Each path is run with several arrivals; ratios are of means over them, with
//! Fieller's 95 % interval. A path is *surely* beyond a bar if all of its interval is.
//!
//! The example `matrix` of this crate prints the single runs and the informed start.

pub mod bound;
pub mod kinds;
pub mod path;
pub mod sets;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use clap::Args;
use headstart_report::statistics::{Interval, mean, ratio_interval};

use crate::carrier::Detail;
use crate::schemes;
use crate::setup::Setup;
use crate::study::{Case, Declared, Measure, Measured, Study, percent};
use path::{DrawnPath, Outcome};

/// All ratios are over this scheme.
const REFERENCE: &str = "iw10";

const MEASURES: &[Measure] = &[
    Measure::new("mean", "ms", "mean completion time of flows, or of pages where the path has pages"),
    Measure::new("ratio", "", "`mean` over the mean of iw10 on the same path and arrivals"),
    Measure::new(
        "log-ratio",
        "",
        "natural logarithm of `ratio`; its mean over paths is the logarithm of the geometric mean",
    ),
    Measure::new("p99-ratio", "", "the 99th percentile of completion times over iw10's"),
    Measure::new(
        "long-ratio",
        "",
        "goodput of the long flows over their goodput with iw10, on paths that have some",
    ),
    Measure::new("loss-ratio", "", "share of packets lost over iw10's, where iw10 lost more than 1 %"),
    Measure::new(
        "beside-ratio",
        "",
        "mean time of other traffic over its time with iw10, where there is some",
    ),
    Measure::new("least-ratio", "", "mean of the best order of service over the mean of iw10"),
    Measure::new("is-slower", "%", "100 if `ratio` is above 1.05, else 0"),
    Measure::new("is-surely-slower", "%", "100 if all of its interval is"),
    Measure::new("is-p99-slower", "%", "100 if `p99-ratio` is above 1.10, else 0"),
    Measure::new("is-surely-p99-slower", "%", "100 if all of its interval is"),
    Measure::new("is-unfair", "%", "100 if `long-ratio` is below 0.95, else 0"),
    Measure::new("is-surely-unfair", "%", "100 if all of its interval is"),
    Measure::new("is-lossier", "%", "100 if `loss-ratio` is above 1.5, else 0"),
    Measure::new("is-surely-lossier", "%", "100 if all of its interval is"),
];

/// A scheme and `iw10` on path number `seed` of a set.
#[derive(Args, Debug)]
pub struct DrawnPaths {
    /// Set of paths: `wide` and `more` have other kinds; any other word is a set of its own
    #[arg(long, value_name = "NAME", default_value = "unseen")]
    set: String,
    /// Runs of each path, with other arrivals and losses
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    arrival_draws: u64,
    /// Runs of [`REFERENCE`], by path: all schemes share them.
    #[arg(skip)]
    references: Mutex<BTreeMap<u64, Arc<[Outcome]>>>,
}

impl Study for DrawnPaths {
    const NAME: &'static str = "drawn-paths";
    const ABOUT: &'static str = "a scheme compared with iw10 on paths drawn from written distributions";
    const NEEDS: Detail = Detail::Topology;
    const DECLARED: &'static [Declared] = &[Declared { prefixes: &[""], measures: MEASURES }];

    fn work(&self, _: &Setup) -> f64 {
        self.arrival_draws as f64
    }

    fn run(&self, case: &Case<'_>) -> Result<Measured> {
        ensure!(case.mix.beside.is_none(), "mixes: found a scheme beside, expected `alone`");
        let reference = self.reference(case.seed)?;
        let tested = case.mix.tested;
        let own = if tested.name == REFERENCE {
            Arc::clone(&reference)
        } else {
            self.paths(case.seed).map(|path| path.run(tested.scheme())).collect()
        };
        Ok(compared(&own, &reference))
    }
}

impl DrawnPaths {
    fn paths(&self, number: u64) -> impl Iterator<Item = DrawnPath> {
        (0..self.arrival_draws).map(move |repeat| path_of(&self.set, number, repeat))
    }

    fn reference(&self, number: u64) -> Result<Arc<[Outcome]>> {
        let kept = || self.references.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept().get(&number).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let scheme = schemes::find(REFERENCE)?.scheme();
        let runs: Arc<[Outcome]> = self.paths(number).map(|path| path.run(scheme)).collect();
        kept().insert(number, Arc::clone(&runs));
        Ok(runs)
    }
}

/// Path `number` of a set; each repeat has other arrivals and losses.
#[must_use]
pub fn path_of(set: &str, number: u64, repeat: u64) -> DrawnPath {
    match set {
        "wide" => kinds::drawn(number, repeat),
        "more" => kinds::drawn_of_more(number, repeat),
        _ if set.starts_with("people") => sets::drawn_for_people(set, number, repeat),
        _ => sets::drawn(set, number, repeat, sets::RATES),
    }
}

fn compared(own: &[Outcome], reference: &[Outcome]) -> Measured {
    // A run in which nothing was finished has no mean.
    let pairs: Vec<(&Outcome, &Outcome)> =
        own.iter().zip(reference).filter(|(own, other)| own.mean_ms > 0.0 && other.mean_ms > 0.0).collect();
    let mut measured = Measured::default();
    let sample = |of: fn(&Outcome) -> f64| -> (Vec<f64>, Vec<f64>) {
        pairs.iter().map(|(own, other)| (of(own), of(other))).unzip()
    };
    let ratio = |of| {
        let (own, other) = sample(of);
        ratio_of(&own, &other)
    };
    let Some(time) = ratio(|run| run.mean_ms) else { return measured };
    let (own_times, reference_times) = sample(|run| run.mean_ms);
    measured.add("mean", mean(&own_times).unwrap_or(f64::NAN));
    measured.add("log-ratio", libm::log(time.value));
    if let Some(least) = ratio_of(&sample(|run| run.least_ms).1, &reference_times) {
        measured.add("least-ratio", least.value);
    }
    let lossy = mean(&sample(|run| run.loss).1).is_some_and(|loss| loss > 0.01);
    for (name, ratio, is_above, bar) in [
        ("", Some(time), true, 1.05),
        ("p99-", ratio(|run| run.p99_ms), true, 1.10),
        ("long-", ratio(|run| run.long_mbit), false, 0.95),
        ("loss-", ratio(|run| run.loss).filter(|_| lossy), true, 1.5),
        ("beside-", ratio(|run| run.beside_ms), true, f64::NAN),
    ] {
        let Some(ratio) = ratio else { continue };
        measured.add(format!("{name}ratio"), ratio.value);
        let names = match name {
            "" => ["is-slower", "is-surely-slower"],
            "p99-" => ["is-p99-slower", "is-surely-p99-slower"],
            "long-" => ["is-unfair", "is-surely-unfair"],
            "loss-" => ["is-lossier", "is-surely-lossier"],
            _ => continue,
        };
        let nearest = if is_above { ratio.low } else { ratio.high };
        for (name, value) in names.into_iter().zip([ratio.value, nearest]) {
            measured.add(name, percent(if is_above { value > bar } else { value < bar }));
        }
    }
    measured
}

/// The ratio of two means; without repeats its ends are the ratio itself. `None` over nothing.
pub fn ratio_of(own: &[f64], reference: &[f64]) -> Option<Interval> {
    let value = mean(own)? / mean(reference).filter(|reference| *reference > 0.0)?;
    // Few and very different repeats: nothing is certain.
    let unknown = Interval { value, low: f64::NEG_INFINITY, high: f64::INFINITY };
    Some(match ratio_interval(own, reference) {
        Some(interval) => interval,
        None if own.len() > 1 => unknown,
        None => Interval { value, low: value, high: value },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_sim::workload::page::Fetch;
    use headstart_units::{Rate, Ratio};

    fn outcome(mean_ms: f64, long_mbit: f64) -> Outcome {
        Outcome {
            mean_ms,
            larger_ms: mean_ms,
            p50_ms: mean_ms,
            p99_ms: mean_ms,
            finished: 1,
            unfinished: 0,
            loss: 0.0,
            first_flight_loss: 0.0,
            long_mbit,
            beside_ms: 0.0,
            least_ms: mean_ms / 2.0,
        }
    }

    fn number(measured: &Measured, name: &str) -> Option<f64> {
        measured.numbers.iter().find(|(found, _)| found == name).map(|(_, value)| *value)
    }

    #[test]
    fn a_path_is_surely_slower_only_if_its_whole_interval_is() {
        let reference = [100.0, 102.0, 98.0].map(|time| outcome(time, 0.0));
        let surely = compared(&[110.0, 112.0, 108.0].map(|time| outcome(time, 0.0)), &reference);
        assert_eq!(
            (number(&surely, "is-slower"), number(&surely, "is-surely-slower")),
            (Some(100.0), Some(100.0))
        );
        let perhaps = compared(&[101.0, 140.0, 90.0].map(|time| outcome(time, 0.0)), &reference);
        assert_eq!(
            (number(&perhaps, "is-slower"), number(&perhaps, "is-surely-slower")),
            (Some(100.0), Some(0.0))
        );
        assert_eq!(number(&surely, "long-ratio"), None, "there are no long flows");
        assert_eq!(number(&surely, "loss-ratio"), None, "nothing was lost");
    }

    #[test]
    fn long_flows_are_judged_by_what_they_lose() {
        let compared = compared(&[outcome(50.0, 4.0)], &[outcome(100.0, 8.0)]);
        assert_eq!((number(&compared, "ratio"), number(&compared, "long-ratio")), (Some(0.5), Some(0.5)));
        assert_eq!(
            (number(&compared, "is-slower"), number(&compared, "is-unfair")),
            (Some(0.0), Some(100.0))
        );
        assert_eq!(number(&compared, "least-ratio"), Some(0.5));
    }

    #[test]
    fn runs_in_which_nothing_was_finished_are_left_out() {
        let reference = [outcome(100.0, 0.0), outcome(0.0, 0.0)];
        let compared = compared(&[outcome(90.0, 0.0), outcome(5.0, 0.0)], &reference);
        assert_eq!(number(&compared, "ratio"), Some(0.9));
        assert!(super::compared(&[outcome(0.0, 0.0)], &[outcome(1.0, 0.0)]).numbers.is_empty());
    }

    #[test]
    fn a_path_with_crossing_traffic_harms_it_or_not_but_runs() {
        let crossed = (0..9).map(|number| path_of("wide", number, 0)).find(|path| path.crossing.is_some());
        let crossed = crossed.expect("one of nine kinds");
        let run = crossed.run(schemes::find("headstart").expect("it is there").scheme());
        assert!(run.finished > 0 && run.beside_ms > 0.0, "{run:?}");
    }

    #[test]
    fn more_kinds_of_paths_are_what_they_are_called() {
        let more: Vec<_> = (0..4).map(|number| path_of("more", number, 0)).collect();
        assert!(matches!(more[0].pages, Some((_, Fetch::Multiplexed))));
        let (coarse, exact) = (more[1].hint, sets::drawn("more", 1, 0, sets::RATES).hint);
        assert!(
            coarse < exact && coarse > exact.map(|rate| rate * Ratio::percent(50)),
            "{coarse:?} for {exact:?}"
        );
        assert_eq!((more[2].hint, more[3].rate), (None, Rate::from_mbit_per_sec(10_000)));
        let run = more[0].run(schemes::find("blitzstart").expect("it is there").scheme());
        assert!(run.finished > 0, "{run:?}");
    }
}
