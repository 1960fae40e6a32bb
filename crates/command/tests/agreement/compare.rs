//! Measures that are compared, and the conditions of agreement.

use headstart_report::statistics::{Interval, mean, mean_interval, ratio_interval};

/// One transfer that is made on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The kernel's name of it.
    pub controller: &'static str,
    /// As options of `headstart`.
    pub path: &'static str,
    pub bytes: u64,
}

pub const PATHS: [&str; 10] = [
    "--rate 25mbit --rtt 50ms --buffer 104p",
    "--rate 50mbit --rtt 50ms --buffer 208p",
    "--rate 8mbit --rtt 90ms --buffer 140p",
    "--rate 32mbit --rtt 70ms --buffer 560p",
    "--rate 10mbit --rtt 40ms --buffer 20p",
    "--rate 100mbit --rtt 20ms --buffer 100p",
    "--rate 15mbit --rtt 60ms --buffer 115kB",
    "--rate 25mbit --rtt 50ms --buffer 104p --loss 0.5%",
    // Two of these again, with more jitter than a machine has: where a microsecond decides, the
    // draws decide, on both sides alike.
    "--rate 10mbit --rtt 40ms --buffer 20p --jitter 0.3ms",
    "--rate 100mbit --rtt 20ms --buffer 100p --jitter 0.3ms",
];
const SIZES: [u64; 3] = [100_000, 2_000_000, 10_000_000];
const CONTROLLERS: [&str; 3] = ["reno", "cubic", "bbr"];

impl Case {
    /// The kernel's cases.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::of(&CONTROLLERS)
    }

    pub fn of(controllers: &'static [&'static str]) -> impl Iterator<Item = Self> {
        controllers.iter().flat_map(|controller| {
            PATHS
                .into_iter()
                .flat_map(move |path| SIZES.into_iter().map(move |bytes| Self { controller, path, bytes }))
        })
    }

    /// The case that a record names.
    pub fn find(controller: &str, path: &str, bytes: u64) -> Option<Self> {
        Self::all().find(|case| case.controller == controller && case.path == path && case.bytes == bytes)
    }

    /// Where packets are lost or delayed at random one run is one draw, and several are compared.
    pub fn is_random(&self) -> bool {
        self.path.contains("--loss") || self.path.contains("--jitter")
    }

    pub fn seeds(&self) -> std::ops::RangeInclusive<u64> {
        match (self.is_random(), self.bytes) {
            (false, _) => 1..=1,
            // Reno and CUBIC take 20 s for each.
            (true, 10_000_000..) => 1..=5,
            (true, _) => 1..=9,
        }
    }

    /// Kernel runs with each seed: the median of three removes chance events of the machine.
    pub fn repeats(&self) -> u64 {
        if self.is_random() { 1 } else { 3 }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Found {
    pub completion_ms: f64,
    pub drops: u64,
    pub peak_queue: u64,
    pub exit_ms: Option<f64>,
    /// The machine kept real time.
    pub is_valid: bool,
}

impl Found {
    /// The end of slow start, if it came before everything had arrived. A later one cannot be
    /// sampled in the kernel: its socket may be closed.
    fn exit_in_time(&self) -> Option<f64> {
        self.exit_ms.filter(|exit| *exit <= self.completion_ms)
    }
}

/// The run of the middle completion time, of those in which the machine kept real time, if any.
pub fn middle(mut runs: Vec<Found>) -> Option<Found> {
    if runs.iter().any(|run| run.is_valid) {
        runs.retain(|run| run.is_valid);
    }
    runs.sort_by(|a, b| a.completion_ms.total_cmp(&b.completion_ms));
    runs.get(runs.len() / 2).copied()
}

/// One number of both sides: means over the seeds.
#[derive(Clone, Copy, Debug)]
pub struct Compared {
    pub judge: f64,
    pub model: f64,
    /// Model over judge less one, where several seeds were compared; 95 %.
    pub change: Option<Interval>,
    pub agrees: bool,
}

/// Largest difference of two numbers.
#[derive(Clone, Copy)]
struct Band {
    /// Share of the judge's number.
    share: f64,
    /// Or so much.
    least: f64,
}

const COMPLETION: Band = Band { share: 0.03, least: 0.0 };
const PACKETS: Band = Band { share: 0.1, least: 5.0 };
/// Within 10 %, or the resolution of the sampling in the kernel.
const EXIT: Band = Band { share: 0.1, least: 8.0 };

impl Band {
    /// Compares seed by seed. Of several seeds the means agree if they are within the band, or if
    /// the 95 % interval of their differences contains zero.
    fn compare(self, judge: &[f64], model: &[f64]) -> Option<Compared> {
        let (judge_mean, model_mean) = (mean(judge)?, mean(model)?);
        let is_within = (judge_mean - model_mean).abs() <= (self.share * judge_mean).max(self.least);
        let differences: Vec<f64> = judge.iter().zip(model).map(|(judge, model)| model - judge).collect();
        let may_be_chance = mean_interval(&differences).is_some_and(|interval| interval.contains(0.0));
        let change = ratio_interval(model, judge).map(|ratio| Interval {
            value: ratio.value - 1.0,
            low: ratio.low - 1.0,
            high: ratio.high - 1.0,
        });
        Some(Compared { judge: judge_mean, model: model_mean, change, agrees: is_within || may_be_chance })
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    pub completion: Compared,
    pub drops: Compared,
    pub peak_queue: Compared,
    /// `None` if neither side's slow start ended in time.
    pub exit: Option<Compared>,
    pub exit_agrees: bool,
    pub is_valid: bool,
    pub seeds: usize,
}

impl Verdict {
    /// Of as many runs on both sides, seed by seed.
    pub fn of(case: &Case, judge: &[Found], model: &[Found]) -> Option<Self> {
        let compare = |band: Band, of: &dyn Fn(&Found) -> f64| {
            let numbers = |side: &[Found]| side.iter().map(of).collect::<Vec<_>>();
            band.compare(&numbers(judge), &numbers(model))
        };
        let exits: Vec<_> = judge
            .iter()
            .zip(model)
            .map(|(judge, model)| (judge.exit_in_time(), model.exit_in_time()))
            .collect();
        let both: (Vec<f64>, Vec<f64>) = exits.iter().filter_map(|(judge, model)| judge.zip(*model)).unzip();
        let exit = EXIT.compare(&both.0, &both.1);
        // With chance a slow start may end on one side only, just before the end of the transfer.
        let is_matched =
            case.is_random() || exits.iter().all(|(one, other)| one.is_some() == other.is_some());
        Some(Self {
            completion: compare(COMPLETION, &|found| found.completion_ms)?,
            drops: compare(PACKETS, &|found| found.drops as f64)?,
            peak_queue: compare(PACKETS, &|found| found.peak_queue as f64)?,
            exit,
            exit_agrees: is_matched && exit.is_none_or(|exit| exit.agrees),
            is_valid: judge.iter().all(|run| run.is_valid),
            seeds: judge.len(),
        })
    }

    /// In the order of the table's columns.
    pub fn agrees(&self) -> [bool; 4] {
        [self.completion.agrees, self.drops.agrees, self.peak_queue.agrees, self.exit_agrees]
    }
}
