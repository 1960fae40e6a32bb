//! Cost of runs, before the first of them begins: flows, packets, memory, processor time.
//!
//! Derived from rate, load, sizes, duration and the number of runs, to within a factor of two. The
//! costs of a packet and of a flow were measured with a release build on one core of 2023, as
//! `docs/records/costs.md` measures them.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Result, ensure};
use headstart_sim::workload::page::{Fetch, Object};
use headstart_units::{Bytes, Ratio};

use crate::options::{CryptoName, TransportName};
use crate::progress::ApproximateDuration;
use crate::setup::Setup;

/// Processor time (in real time: elapsed time) above which runs need `--large`: four hours.
pub const MAX_SECONDS: f64 = 4.0 * 3600.0;
/// Memory above which a usual machine begins to swap: 2 GB.
pub const MAX_MEMORY: f64 = 2e9;

/// Processor time of a data packet, with its acknowledgement, in seconds.
const PACKET_SECONDS: f64 = 0.35e-6;
/// Processor time of a flow, in seconds.
const FLOW_SECONDS: f64 = 1e-6;
/// Processor time of a flow that an overloaded link delays, with its retransmissions, in seconds.
const OVERLOADED_FLOW_SECONDS: f64 = 8e-6;
/// Processor time of a packet of the QUIC stack, with TLS and without, in seconds.
const QUIC_PACKET_SECONDS: [f64; 2] = [32e-6, 18e-6];
/// Memory of a live flow of the TCP model, and of each of its packets, in bytes.
const FLOW_BYTES: f64 = 2_000.0;
const PACKET_BYTES: f64 = 85.0;
/// Memory of a live connection of the QUIC stack, in bytes.
const QUIC_FLOW_BYTES: f64 = 180_000.0;
/// Memory of the events in a trace of one flow, in bytes for each packet.
const TRACED_PACKET_BYTES: f64 = 300.0;
/// Memory of the program, in bytes.
const PROGRAM_BYTES: f64 = 10e6;
/// Memory of the results of a run that others are compared with, in bytes.
const RESULT_BYTES: f64 = 30e3;

/// Approximate cost of some runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Number of runs.
    pub runs: f64,
    /// Flows in all of them; zero if they are not counted.
    pub flows: f64,
    /// Data packets in all of them; zero if they are not counted.
    pub packets: f64,
    /// Peak of memory, in bytes.
    pub memory: f64,
    /// Processor time in seconds; in real time, elapsed time.
    pub seconds: f64,
    /// True if the runs follow one another in real time.
    pub is_real_time: bool,
    /// Highest load on the bottleneck in any run, with headers, over its rate: above 1 flows queue.
    pub wire_load: f64,
}

impl Estimate {
    /// Estimate for so many runs of a setup at its load, with its number of threads.
    #[must_use]
    pub fn of(setup: &Setup, runs: u64) -> Self {
        Self::at(setup, setup.workload.load, runs)
    }

    /// Estimate for so many runs of a setup at another load.
    #[must_use]
    pub fn at(setup: &Setup, load: Ratio, runs: u64) -> Self {
        let tcp = setup.tcp();
        let (mss, header) = (tcp.mss.get() as f64, tcp.header.get() as f64);
        let rate = setup.bottleneck().as_bytes_per_sec() as f64;
        let duration = setup.run.duration.as_secs_f64();
        let payload = rate * load.as_f64();
        let mean = (setup.mean_bytes() / connections(setup)).max(1.0);
        let flows_a_second = payload / mean;
        let segments = (mean / mss + 0.5).max(1.0);

        let wire = mean + segments * header + tcp.syn.get() as f64;
        let wire_load = flows_a_second * wire / rate.max(1.0);
        let flows = flows_a_second * duration;
        let endless = if setup.workload.background > 0 {
            rate * (duration + setup.run.drain.as_secs_f64()) / mss
        } else {
            0.0
        };
        let packets = flows * segments + endless;

        // Live flows: arrivals within the duration of a flow, and flows that are never served.
        let rtt = setup.rtt().as_secs_f64();
        let takes = rtt * (3.0 + (1.0 + segments / 10.0).log2()) + mean / rate.max(1.0);
        let piled_up = flows * (1.0 - 1.0 / wire_load.max(1.0));
        let alive = (flows_a_second * takes).min(flows).max(piled_up) + f64::from(setup.workload.background);
        let window = (tcp.receive_window.get() as f64 / mss).min(segments);
        let is_quic = setup.transport.transport == TransportName::Quic;
        let flow_bytes = if is_quic { QUIC_FLOW_BYTES } else { FLOW_BYTES + window * PACKET_BYTES };
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = setup.run.threads.unwrap_or(cores).min(runs as usize).max(1);

        let is_real_time = setup.carrier().is_real_time();
        let packet_seconds = match (is_quic, setup.transport.crypto) {
            (false, _) => PACKET_SECONDS,
            (true, CryptoName::Tls) => QUIC_PACKET_SECONDS[0],
            (true, CryptoName::Null) => QUIC_PACKET_SECONDS[1],
        };
        let flow_seconds = if wire_load > 1.0 { OVERLOADED_FLOW_SECONDS } else { FLOW_SECONDS };
        let seconds = if is_real_time { duration } else { packets * packet_seconds + flows * flow_seconds };
        let runs = runs as f64;
        Self {
            runs,
            flows: runs * flows,
            packets: runs * packets,
            memory: PROGRAM_BYTES + threads as f64 * alive * flow_bytes + runs * RESULT_BYTES,
            seconds: runs * seconds,
            is_real_time,
            wire_load,
        }
    }

    /// Estimate for one flow of so many bytes, of which every event is kept.
    #[must_use]
    pub fn traced(setup: &Setup, bytes: Bytes) -> Self {
        let packets = bytes.get() as f64 / setup.tcp().mss.get() as f64;
        let memory = PROGRAM_BYTES + packets * TRACED_PACKET_BYTES;
        Self { runs: 1.0, flows: 1.0, packets, memory, seconds: packets * PACKET_SECONDS, ..Self::default() }
    }

    /// So many times the runs, one after the other.
    #[must_use]
    pub fn times(self, times: f64) -> Self {
        let [runs, flows, packets, seconds] =
            [self.runs, self.flows, self.packets, self.seconds].map(|one| one * times);
        Self { runs, flows, packets, seconds, ..self }
    }

    /// The sum of both, run one after the other.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            runs: self.runs + other.runs,
            flows: self.flows + other.flows,
            packets: self.packets + other.packets,
            memory: self.memory.max(other.memory),
            seconds: self.seconds + other.seconds,
            is_real_time: self.is_real_time || other.is_real_time,
            wire_load: self.wire_load.max(other.wire_load),
        }
    }

    /// Cost of runs of which some were timed; their flows and packets are not counted.
    #[must_use]
    pub fn of_timed(runs: usize, seconds: f64, memory: f64, is_real_time: bool) -> Self {
        Self { runs: runs as f64, seconds, memory, is_real_time, ..Self::default() }
    }

    /// Refuses a cost above [`MAX_SECONDS`] or [`MAX_MEMORY`], unless it `is_allowed`.
    ///
    /// # Errors
    /// Names the cost, and the options that would reduce it.
    pub fn check(&self, is_allowed: bool) -> Result<()> {
        let is_small = self.seconds <= MAX_SECONDS && self.memory <= MAX_MEMORY;
        let least = Self { seconds: MAX_SECONDS, memory: MAX_MEMORY, ..*self };
        let (most_time, most_memory) = (least.time(), Memory(MAX_MEMORY));
        let mut change =
            String::from("shorten --duration, or lower --rate, --load or --repeats, or name fewer --schemes");
        if self.packets == 0.0 {
            change = String::from("take --quick, or name figures with --figure");
        } else if self.wire_load > 1.0 {
            change = format!(
                "raise --size (with headers and handshakes these flows need {:.0} % of the link and pile up), or {change}",
                100.0 * self.wire_load
            );
        }
        ensure!(
            is_allowed || is_small,
            "found {self}, expected {most_time} and {most_memory} at most: {change}; --large runs it anyway"
        );
        Ok(())
    }

    fn time(&self) -> String {
        let time = ApproximateDuration(std::time::Duration::from_secs_f64(self.seconds.min(1e15)));
        if self.is_real_time { format!("{time} of real time") } else { format!("{time} of processor time") }
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = if self.runs == 1.0 { "run" } else { "runs" };
        write!(f, "{} {runs}", self.runs)?;
        if self.packets > 0.0 {
            write!(f, " of {} flows and {} packets in all", Count(self.flows), Count(self.packets))?;
        }
        write!(f, ", about {} and {}", self.time(), Memory(self.memory))
    }
}

/// Connections for each flow or page.
fn connections(setup: &Setup) -> f64 {
    let of = |(number, page): (usize, &Vec<Object>)| -> usize {
        let fetch = setup.fetches[number.min(setup.fetches.len() - 1)];
        let mut objects: BTreeMap<u16, usize> = BTreeMap::new();
        page.iter().for_each(|object| *objects.entry(object.origin).or_default() += 1);
        let each = |count: &usize| match fetch {
            Fetch::Parallel(_) => *count,
            Fetch::Persistent(most) => usize::from(most).min(*count),
            Fetch::Multiplexed => 1,
        };
        objects.values().map(each).sum()
    };
    let all: usize = setup.pages.iter().enumerate().map(of).sum();
    let answers = f64::from(setup.workload.answers);
    if setup.pages.is_empty() { 1.0 } else { all as f64 / setup.pages.len() as f64 / answers }
}

/// A large number in words.
struct Count(f64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ..1e4 => write!(f, "{:.0}", self.0),
            ..1e6 => write!(f, "{:.0} thousand", self.0 / 1e3),
            ..1e9 => write!(f, "{:.1} million", self.0 / 1e6),
            _ => write!(f, "{:.0} thousand million", self.0 / 1e9),
        }
    }
}

struct Memory(f64);

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ..1e9 => write!(f, "{:.0} MB of memory", self.0 / 1e6),
            _ => write!(f, "{:.1} GB of memory", self.0 / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::{Carriers, Run};
    use crate::schemes;
    use crate::settings::Settings;
    use crate::setup::SchemeMix;
    use headstart_sim::{Collector, Seed};

    fn setup(line: &str) -> Setup {
        let line = format!("--threads 2 {line}");
        Settings::parse(Carriers::MODEL, line.split_whitespace()).expect("fine")
    }

    #[test]
    fn the_estimate_matches_the_cost_of_a_run() {
        for line in [
            "--duration 60s",
            "--duration 60s --load 80%",
            "--duration 20s --size 10kB",
            "--duration 20s --size internet",
            "--duration 10s --rate 100mbit",
            "--duration 10s --background 2",
            "--duration 60s --pages archive2014",
        ] {
            let setup = setup(line);
            let tested = schemes::find("iw10").expect("it is in the catalogue");
            let run: Run<'_> =
                setup.arrivals(SchemeMix { tested, beside: None }, setup.workload.load, Seed(1));
            let found = run.observe(Collector::new(3, headstart_units::Time::ZERO)).expect("it runs").summary;
            let estimate = Estimate::of(&setup, 1);
            for (expected, found) in [(estimate.flows, found.flows), (estimate.packets, found.data_packets)] {
                let ratio = found as f64 / expected;
                assert!((0.5..2.0).contains(&ratio), "{line}: {found} where {expected} was expected");
            }
        }
    }

    #[test]
    fn runs_beyond_time_or_memory_are_refused_with_a_remedy() {
        for (line, words) in [
            ("--rate 1000gbit", "shorten --duration"),
            ("--size 1B --duration 5s", "raise --size"),
            ("--size internet --cap 1B", "raise --size"),
            ("--duration 1000000s", "shorten --duration"),
            ("--rate 1gbit --duration 30000s", "--repeats"),
        ] {
            let estimate = Estimate::of(&setup(line), 360);
            let error = estimate.check(false).expect_err(line).to_string();
            assert!(error.contains(words) && error.contains("--large runs it anyway"), "{error}");
            estimate.check(true).expect("it was allowed");
        }
    }

    #[test]
    fn timed_runs_beyond_the_limit_are_refused_with_a_proposal() {
        let cost = |hours: f64| Estimate::of_timed(1379, hours * 3600.0, 30e6, false);
        assert_eq!(cost(0.025).to_string(), "1379 runs, about 90 s of processor time and 30 MB of memory");
        cost(3.9).check(false).expect("below the limit");
        let error = cost(5.0).check(false).expect_err("beyond it").to_string();
        assert!(error.contains("--quick") && error.contains("--large runs it anyway"), "{error}");
        cost(5.0).check(true).expect("it was allowed");
    }

    #[test]
    fn everyday_runs_are_not_refused() {
        for line in
            ["", "--rate 1gbit --duration 60s", "--load 95%", "--size 10GB --duration 5s", "--background 10"]
        {
            Estimate::of(&setup(line), 360).check(false).expect(line);
        }
        let large = setup("--size 10GB");
        assert!(
            Estimate::traced(&large, Bytes::new(10_000_000_000)).check(false).is_err(),
            "its events fill the memory"
        );
    }

    #[test]
    fn points_of_a_sweep_add_time_but_not_memory() {
        let one = Estimate::of(&setup(""), 10);
        let two = one.plus(one);
        assert_eq!((two.runs, two.memory), (20.0, one.memory));
        assert!((two.seconds - 2.0 * one.seconds).abs() < 1e-9);
    }
}
