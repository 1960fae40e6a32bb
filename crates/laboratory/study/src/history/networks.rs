//! Seventy mobile networks in a row: WS §4.3 and Table 1.
//!
//! WS takes 70 recorded traces of three kinds (stationary cellular, highly variable, Wi-Fi) and
//! draws the rest "randomly selected within the range in Tab. 1". The number of each kind, their
//! rates and their order are not given. Here, by number:
//!
//! | scenes | kind | mean rate, uniform on a logarithmic scale |
//! |---|---|---|
//! | 1 to 24 | stationary cellular | 3 to 10 Mbit/s |
//! | 25 to 47 | highly variable | 2 to 8 Mbit/s |
//! | 48 to 70 | Wi-Fi | 4 to 12 Mbit/s |
//!
//! Parameters drawn for each:
//!
//! - RTT: one of Table 1's ranges (10 to 50, 50 to 100, 100 to 150, 150 to 300 ms), uniform in it.
//! - Jitter: up to a share of the RTT that is uniform between 0 and 0.2, 20 ms at most; in order.
//! - Loss: one of three: none, uniform up to 0.1 %, uniform between 0.1 and 5 %.
//! - Buffer: one of three shares of the BDP (0.3 to 0.9, 0.9 to 1.1, 1.1 to 1.5), then uniform; at
//!   least two packets, including the one in transmission.
//!
//! The rates are chosen so that WiseStart's window after the first ack is that of WS §4.4.2: 37.8
//! kB are 76.26 % of 49.6 kB. That takes a mean BDP of 86 kB, for two reasons. The window of a
//! start is the smaller of the recorded one and the data that the application had to send. Records
//! of an application that pauses are below the path's capacity. [`mobile`] describes the traces.
//! `--scale` makes all networks faster or slower, to measure the effect of their rates.
//!
//! [`mobile`]: headstart_net::trace::mobile

use std::sync::Arc;

use anyhow::Result;
use headstart_net::trace::mobile::{Kind, Mobile};
use headstart_sim::Seed;
use headstart_units::{Bytes, Rate, Ratio, Span};

use super::trace_folder::TraceFolder;
use crate::options::{Buffer, PathOptions, Rtts, TraceFile};
use headstart_sim::Random;

/// Scenes in a row (WS §4.3).
pub const SCENES: u64 = 70;

/// Changes to the rates of all networks of the table above.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Factor on all rates.
    pub scale: Ratio,
    /// Two rates that are a factor of f apart in the table are a factor of f to this power apart.
    pub spread: Ratio,
}

impl Rates {
    /// Rates of the table.
    pub const UNCHANGED: Self = Self { scale: Ratio::ONE, spread: Ratio::ONE };

    /// A range about the same geometric mean.
    fn spread_range(&self, least: f64, most: f64) -> (f64, f64) {
        let power = self.spread.of(1_000_000) as f64 / 1e6;
        let (middle, half) = (libm::sqrt(least * most), libm::pow(libm::sqrt(most / least), power));
        (middle / half, middle * half)
    }
}

/// One network.
#[derive(Clone, Debug)]
pub struct NetworkPath {
    /// Trace that drives its bottleneck.
    pub trace: TraceFile,
    /// Round-trip time without queues.
    pub rtt: Span,
    /// Random extra delay up to this, in order.
    pub jitter: Span,
    /// Random loss, in packets of a million.
    pub loss_ppm: u32,
    /// Buffer as a share of the BDP.
    pub buffer: f64,
}

const RTT_MS: [(f64, f64); 4] = [(10.0, 50.0), (50.0, 100.0), (100.0, 150.0), (150.0, 300.0)];
const JITTER: (f64, f64) = (0.0, 0.2);
const JITTER_MS: f64 = 20.0;
const LOSS_PERCENT: [(f64, f64); 3] = [(0.0, 0.0), (0.0, 0.1), (0.1, 5.0)];
const BUFFER: [(f64, f64); 3] = [(0.3, 0.9), (0.9, 1.1), (1.1, 1.5)];
const MIN_BUFFER: Bytes = Bytes::new(3000);
/// Length of a scene's trace: a session and its overrun.
const LENGTH: Span = Span::from_secs(60);

impl NetworkPath {
    /// Scene `number` of the row that `seed` draws, counted from zero. A folder of the user's
    /// supplies its traces in turn.
    ///
    /// # Errors
    /// If no trace can have the rate drawn.
    pub fn new(seed: Seed, number: u64, rates: &Rates, given: Option<&TraceFolder>) -> Result<Self> {
        let seed = seed.child(&format!("scene {number}"));
        let (kind, least, most) = match number % SCENES {
            ..24 => (Kind::Stationary, 3.0, 10.0),
            24..47 => (Kind::Variable, 2.0, 8.0),
            _ => (Kind::Wifi, 4.0, 12.0),
        };
        let trace = match given.map(|folder| &folder.0[..]) {
            Some(traces @ [_, ..]) => traces[number as usize % traces.len()].clone(),
            _ => {
                let (least, most) = rates.spread_range(least, most);
                let mbit = Random::named(seed, "rate").log_uniform(least, most);
                let mean = Rate::from_bits_per_sec((mbit * 1e6) as u64) * rates.scale;
                let trace = Mobile { kind, mean, length: LENGTH, seed: seed.child("trace").0 }.trace()?;
                TraceFile { name: format!("{kind:?} {number}"), trace: Arc::new(trace) }
            }
        };
        let of = |name: &str, ranges: &[(f64, f64)]| {
            let mut random = Random::named(seed, name);
            let (low, high) = ranges[random.below(ranges.len() as u64) as usize];
            random.between(low, high)
        };
        let rtt_ms = of("RTT", &RTT_MS);
        let jitter_ms = (rtt_ms * of("jitter", &[JITTER])).min(JITTER_MS);
        Ok(Self {
            trace,
            rtt: Span::from_micros((rtt_ms * 1000.0) as u64),
            jitter: Span::from_micros((jitter_ms * 1000.0) as u64),
            loss_ppm: (of("loss", &LOSS_PERCENT) * 10_000.0) as u32,
            buffer: of("buffer", &BUFFER),
        })
    }

    /// The mean rate of its trace.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.trace.trace.mean_rate()
    }

    /// The path as options of a command.
    #[must_use]
    pub fn options(&self, rest: &PathOptions) -> PathOptions {
        let bdp = (self.rate() * self.rtt).get() as f64;
        let buffer = Buffer::Bytes(Bytes::new((bdp * self.buffer) as u64).max(MIN_BUFFER));
        PathOptions {
            rate: self.rate(),
            rtt: Rtts(vec![self.rtt]),
            buffer,
            loss: Ratio::new(self.loss_ppm, 1_000_000),
            jitter: self.jitter,
            trace: Some(self.trace.clone()),
            // A session begins at the start of its scene's trace.
            trace_offset: Some(Span::ZERO),
            up_rate: Some(self.rate()),
            ..rest.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parameters_lie_in_table_1_and_every_range_is_met() {
        let scenes: Vec<NetworkPath> = (0..SCENES)
            .map(|number| NetworkPath::new(Seed(1), number, &Rates::UNCHANGED, None).expect("a scene"))
            .collect();
        let millis: Vec<f64> = scenes.iter().map(|scene| scene.rtt.as_millis_f64()).collect();
        for (low, high) in RTT_MS {
            assert!(millis.iter().any(|rtt| (low..=high).contains(rtt)), "{low} to {high} ms");
        }
        for scene in &scenes {
            assert!((10.0..=300.0).contains(&scene.rtt.as_millis_f64()));
            assert!(scene.jitter <= Span::from_millis(20) && scene.jitter <= scene.rtt / 5);
            assert!((0.3..=1.5).contains(&scene.buffer));
            assert!(scene.loss_ppm <= 50_000);
        }
        let lossless = scenes.iter().filter(|scene| scene.loss_ppm == 0).count();
        assert!((12..36).contains(&lossless), "{lossless} of 70 lose nothing, a third expected");
    }

    #[test]
    fn a_mean_path_holds_86_kb() {
        let mut total = 0.0;
        for row in 0..5 {
            for number in 0..SCENES {
                let scene = NetworkPath::new(Seed(row), number, &Rates::UNCHANGED, None).expect("a scene");
                total += (scene.rate() * scene.rtt).get() as f64;
            }
        }
        let mean = total / 350.0 / 1000.0;
        assert!((80.0..92.0).contains(&mean), "{mean} kB");
    }

    #[test]
    fn rates_are_widened_about_their_middle() {
        let rates = |spread| Rates { scale: Ratio::ONE, spread };
        for (spread, expected) in [(100, (4.0, 9.0)), (200, (8.0 / 3.0, 13.5)), (0, (6.0, 6.0))] {
            let (least, most) = rates(Ratio::percent(spread)).spread_range(4.0, 9.0);
            assert!((least - expected.0).abs() < 1e-9 && (most - expected.1).abs() < 1e-9, "{spread} %");
        }
    }

    #[test]
    fn a_folder_of_traces_replaces_generated_ones() {
        let trace = Arc::new("1\n".parse().expect("12 Mbit/s"));
        let folder = TraceFolder(vec![TraceFile { name: "mine".into(), trace }]);
        let (mine, ours) = (
            NetworkPath::new(Seed(1), 5, &Rates::UNCHANGED, Some(&folder)).expect("a scene"),
            NetworkPath::new(Seed(1), 5, &Rates::UNCHANGED, None).expect("a scene"),
        );
        assert_eq!((mine.trace.name.as_str(), mine.rate()), ("mine", Rate::from_mbit_per_sec(12)));
        assert_eq!((mine.rtt, mine.loss_ppm), (ours.rtt, ours.loss_ppm), "all else is drawn as before");
    }
}
