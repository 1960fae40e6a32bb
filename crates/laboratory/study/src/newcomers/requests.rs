//! Short flows that enter a path on which long ones are established.
//!
//! Source (BS below): Blitzstart §2 (Figure 1) and §4 (Table 1, Figures 2 to 4). The questions that
//! BS §7 leaves open are options: several newcomers, at once or one after another, several long
//! flows, false or coarse hints.
//!
//! Each newcomer is a client that requests one object. Its time counts from the request to the last
//! byte, as in the paper's figures. There, 70 kB behind a buffer of 200 ms take 279 ms, which is
//! one round trip; with a handshake it would be two. Newcomers arrive at a moment drawn by seed
//! from `settling-spread`: at any phase of the long flow's sawtooth.
//!
//! # Deviations
//!
//! - BS §4 captures packets behind the client's switch. Here they are counted as they leave the
//!   bottleneck's link, whose delay is the whole path's: the same but for jitter.
//! - Over the emulator bytes count when the client reads them, without headers: half a round trip
//!   later, and for both sides alike. `utilisation` is left out.
//! - BS lets the long flow "fully utilize the available bandwidth" before the other arrives. Here
//!   that time is `settling-time`.

mod delivery_log;
mod flows;

use anyhow::{Result, ensure};
use clap::Args;
use headstart_sim::{FlowReport, Random, Seed};
use headstart_startup::catalogue::Needs;
use headstart_units::{Bytes, Ratio, Span, Time};

use crate::carrier::{Detail, Run, attempts};
use crate::newcomers::NewcomerParams;
use crate::setup::{LONG, SchemeMix, Setup, TESTED};
use crate::study::{Case, Declared, Measure, Measured, Study};
use delivery_log::DeliveryLog;
use flows::{Arrival, Flows, Role};

/// Long flows begin at this time, half a second apart; earlier flows are complete by then.
const LONG_FROM: Time = Time::from_millis(10_000);
const LONG_APART: Span = Span::from_millis(500);
/// Object of a warm-up flow: enough to measure the path.
const FETCHED: Bytes = Bytes::new(1_000_000);
/// Time for which the long flows are observed before the first newcomer.
const BEFORE: Span = Span::from_secs(5);
/// The numbers of a run.
const REQUESTS: Declared = Declared {
    prefixes: &[""],
    measures: &[
        Measure::new("request", "ms", "from request to last byte, mean over the newcomers"),
        Measure::new("slowest", "ms", "`request` of the slowest of them"),
        Measure::new("lost", "", "segments of a newcomer declared lost, mean").with_detail(Detail::Counts),
        Measure::new("inflation", "%", "payload that newcomers sent in excess of what they delivered")
            .with_detail(Detail::Counts),
        Measure::new(
            "fairness",
            "",
            "bytes of all newcomers over bytes of the long flows, from the first request to the last byte",
        ),
        Measure::new(
            "long.share",
            "%",
            "rate of the long flows while newcomers are there, of their rate in the 5 s before",
        ),
        Measure::new(
            "utilisation",
            "%",
            "bytes that came out of the bottleneck while newcomers were there, of what it could carry",
        )
        .with_detail(Detail::Events),
    ],
};

/// Numbers of a run that is shown.
const TRACE: Declared = Declared {
    prefixes: &[""],
    measures: &[
        Measure::new(
            "slow-start-exit",
            "ms",
            "from the request's arrival until the first newcomer left slow start",
        ),
        Measure::new("exit-window", "%", "window with which it did, of rate x RTT"),
        Measure::new(
            "full-utilisation",
            "ms",
            "from the request's arrival until newcomers used 90 % of the link over a round trip",
        ),
        Measure::new(
            "fair-round",
            "ms",
            "from the request until newcomers had 80 % of the long flows' rate over a round trip",
        ),
        Measure::new(
            "fair",
            "s",
            "from the request until newcomers had 80 % of the long flows' rate over five seconds",
        ),
        Measure::new("is-fair", "%", "100 if they ever had, else 0"),
        Measure::new(
            "newcomer/...",
            "Mbit/s",
            "rate of the newcomers over the last round trip, by milliseconds from the first request plus 200",
        ),
        Measure::new("long/...", "Mbit/s", "rate of the long flows"),
        Measure::new(
            "newcomer-seconds/...",
            "Mbit/s",
            "rate of the newcomers over the last second, by seconds from the first request",
        ),
        Measure::new("long-seconds/...", "Mbit/s", "rate of the long flows"),
    ],
};

type NamedNumbers = Vec<(String, f64)>;

/// Newcomers to established flows, from request to last byte.
///
/// With candidates it executes as many runs, picks the one at the given quantile of its newcomers'
/// times, and returns its throughput over time with its numbers: BS's Figure 3 shows "one of the
/// fastest" runs, and one from the median.
#[derive(Args, Clone, Debug)]
pub struct RequestParams {
    #[command(flatten)]
    flows: NewcomerParams,
    /// Time between one newcomer and the next
    #[arg(long, default_value = "0 ms", value_name = "TIME")]
    newcomer_gap: Span,
    /// Time from the start of the long flows to the first newcomer, to which a random part
    /// of `settling-spread` is added
    #[arg(long, default_value = "30 s", value_name = "TIME")]
    settling_time: Span,
    /// Range of the random time added to `settling-time`
    #[arg(long, default_value = "20 s", value_name = "TIME")]
    settling_spread: Span,
    /// Runs of which one is shown, with throughput over time; `0`: none is
    #[arg(long, default_value_t = 0, value_name = "COUNT", value_parser = crate::options::whole(0..=100_u8))]
    candidates: u8,
    /// Quantile of completion time of the run that is shown
    #[arg(long, default_value = "50 %", value_name = "SHARE")]
    quantile: Ratio,
}

impl Study for RequestParams {
    const NAME: &'static str = "newcomer-requests";
    const ABOUT: &'static str = "newcomers to established flows, from request to last byte";
    const NEEDS: Detail = Detail::Flows;
    const DECLARED: &'static [Declared] = &[REQUESTS, TRACE];

    fn run(&self, case: &Case<'_>) -> Result<Measured> {
        ensure!(case.mix.beside.is_none(), "mixes: found a scheme beside, expected `alone`");
        if self.candidates == 0 {
            let finished = FinishedRun::run(self, case)?;
            return Ok(Measured { numbers: numbers(case.setup, &finished), invalid: finished.invalid });
        }
        let carrier = case.setup.carrier();
        ensure!(
            carrier.detail() >= Detail::Events,
            "candidates: found them over {}, expected a carrier that shows {}",
            carrier.name(),
            Detail::Events.words()
        );
        let mut times: Vec<(f64, Case<'_>)> = (0..u64::from(self.candidates))
            .map(|number| Case { seed: case.seed.wrapping_add(number), ..*case })
            .map(|case| Ok((FinishedRun::run(self, &case)?.mean_request(), case)))
            .collect::<Result<_>>()?;
        times.sort_by(|one, other| one.0.total_cmp(&other.0));
        let last = times.len() - 1;
        let (_, case) = &times[(self.quantile.of(last as u64) as usize).min(last)];
        let finished = FinishedRun::run(self, case)?;
        let mut named = numbers(case.setup, &finished);
        named.extend(event_times(case.setup, &finished));
        named.extend(curves(&finished));
        Ok(named.into_iter().collect())
    }
}

#[derive(Debug)]
struct FinishedRun {
    deliveries: DeliveryLog,
    /// The run's end, for flows that are not complete.
    until: Time,
    rtt: Span,
    /// Reason why it is invalid, if it is.
    invalid: Option<String>,
}

impl FinishedRun {
    fn run(params: &RequestParams, case: &Case<'_>) -> Result<Self> {
        let Case { setup, mix, seed } = *case;
        let seed = Seed(seed);
        let began_at = params.began_at(seed);
        let until = began_at + setup.run.duration;
        let arrivals = params.arrivals(setup, mix, began_at);
        let first = arrivals.iter().filter(|arrival| arrival.role != Role::Newcomer).count() as u64;
        let result = attempts(setup, mix, |hosts| {
            let workload = Box::new(Flows::new(arrivals.clone()));
            let run = Run::new(setup, mix, workload, until, seed).with_a_class_for_each_group();
            run.observe_on(hosts, DeliveryLog::new(began_at - BEFORE, first))
        })?;
        let (deliveries, invalid) = (result.observer, result.invalid);
        Ok(Self { deliveries, until, rtt: setup.rtt(), invalid })
    }

    fn newcomers(&self) -> impl Iterator<Item = &FlowReport> {
        self.deliveries.reports.iter().filter(|report| report.group == TESTED)
    }

    /// Time of its request: the reverse path is empty, so the request took half a round trip.
    fn requested_at(&self, report: &FlowReport) -> Time {
        report.established_at.unwrap_or(self.until) - self.rtt / 2
    }

    fn ended_at(&self, report: &FlowReport) -> Time {
        report.completed_at.unwrap_or(self.until)
    }

    fn request(&self, report: &FlowReport) -> f64 {
        self.ended_at(report).since(self.requested_at(report)).as_millis_f64()
    }

    fn mean_request(&self) -> f64 {
        mean(self.newcomers().map(|report| self.request(report)))
    }

    /// From the first request to the last byte.
    fn time_span(&self) -> (Time, Time) {
        let from = self.newcomers().map(|report| self.requested_at(report)).min().unwrap_or(self.until);
        let to = self.newcomers().map(|report| self.ended_at(report)).max().unwrap_or(self.until);
        (from, to.max(from + Span::from_nanos(1)))
    }
}

impl RequestParams {
    /// Time at which the first newcomer arrives.
    fn began_at(&self, seed: Seed) -> Time {
        let phase =
            Random::new(seed.child("newcomer")).below((self.settling_spread.as_nanos() / 1000).max(1));
        LONG_FROM + self.settling_time + Span::from_micros(phase)
    }

    fn arrivals(&self, setup: &Setup, mix: SchemeMix, began_at: Time) -> Vec<Arrival> {
        let options = &setup.workload;
        let mut arrivals = vec![];
        if matches!(mix.tested.needs, Needs::Hint | Needs::History) {
            arrivals.push(Arrival { at: Time::ZERO, group: TESTED, bytes: FETCHED, role: Role::WarmUp });
        }
        let part = setup.bottleneck() * Span::from_secs(4);
        arrivals.extend((0..u64::from(options.background)).map(|number| Arrival {
            at: LONG_FROM + LONG_APART * number,
            group: LONG,
            bytes: part,
            role: Role::Long,
        }));
        let bytes = Bytes::new(setup.mean_bytes() as u64);
        arrivals.extend((0..u64::from(self.flows.newcomers)).map(|number| Arrival {
            at: began_at + self.newcomer_gap * number,
            group: TESTED,
            bytes,
            role: Role::Newcomer,
        }));
        arrivals
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0_u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    sum / f64::from(count)
}

fn numbers(setup: &Setup, finished: &FinishedRun) -> NamedNumbers {
    let deliveries = &finished.deliveries;
    let (from, to) = finished.time_span();
    let rate = |after: Time, until: Time| {
        deliveries.bytes(LONG, after, until) as f64 / until.since(after).as_secs_f64()
    };
    let newcomers = deliveries.bytes(TESTED, from, to) as f64;
    let slowest = finished.newcomers().map(|report| finished.request(report)).fold(f64::NAN, f64::max);
    let sent: u64 = finished.newcomers().map(|report| report.counts.bytes_sent).sum();
    let delivered: u64 = finished.newcomers().map(|report| report.delivered.get()).sum();
    let could = (setup.bottleneck() * to.since(from)).get() as f64;
    let long = deliveries.bytes(LONG, from, to) as f64;
    [
        ("request", finished.mean_request()),
        ("slowest", slowest),
        ("lost", mean(finished.newcomers().map(|report| report.counts.lost as f64))),
        ("inflation", 100.0 * (sent as f64 / delivered as f64 - 1.0)),
        ("fairness", newcomers / long),
        ("long.share", 100.0 * rate(from, to) / rate(from - BEFORE, from)),
        ("utilisation", 100.0 * (newcomers + long) / could),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Time before the first request at which curves begin.
const SHOWN_BEFORE: Span = Span::from_millis(200);
const STEP: Span = Span::from_millis(10);
/// Steps of curves over a round trip, and seconds of those over a second, at most.
const STEPS: u64 = 320;
const SECONDS: u64 = 120;
/// Thresholds of a full and of a fair share, and the seconds for which a fair one must last.
const FULL: f64 = 0.9;
const FAIR: f64 = 0.8;
const FAIR_FOR: u64 = 5;

fn event_times(setup: &Setup, finished: &FinishedRun) -> NamedNumbers {
    let deliveries = &finished.deliveries;
    let (from, to) = finished.time_span();
    let arrived = from + finished.rtt / 2;
    let mut named = vec![];
    if let Some((at, window)) = deliveries.left_slow_start {
        let bdp = (setup.bottleneck() * finished.rtt).get() as f64;
        named.push(("slow-start-exit".to_owned(), at.since(arrived).as_millis_f64()));
        named.push(("exit-window".to_owned(), 100.0 * window.get() as f64 / bdp));
    }
    let bottleneck = setup.bottleneck().as_bits_per_sec() as f64 / 1e6;
    let filled = (0..SECONDS * 100)
        .map(|number| from + STEP * number)
        .take_while(|at| *at < to)
        .find(|at| deliveries.rate(TESTED, *at, finished.rtt) >= FULL * bottleneck);
    if let Some(at) = filled {
        named.push(("full-utilisation".to_owned(), at.since(arrived).as_millis_f64()));
    }
    let level = (0..SECONDS * 100).map(|number| from + STEP * number).take_while(|at| *at < to).find(|at| {
        deliveries.rate(TESTED, *at, finished.rtt) >= FAIR * deliveries.rate(LONG, *at, finished.rtt)
    });
    if let Some(at) = level {
        named.push(("fair-round".to_owned(), at.since(from).as_millis_f64()));
    }
    let over = Span::from_secs(FAIR_FOR);
    let fair = (FAIR_FOR..SECONDS)
        .map(|second| (second, from + Span::from_secs(second)))
        .take_while(|(_, at)| *at < to)
        .find(|(_, at)| deliveries.rate(TESTED, *at, over) >= FAIR * deliveries.rate(LONG, *at, over));
    named.push(("is-fair".to_owned(), if fair.is_some() { 100.0 } else { 0.0 }));
    if let Some((second, _)) = fair {
        named.push(("fair".to_owned(), (second - FAIR_FOR) as f64));
    }
    named
}

fn curves(finished: &FinishedRun) -> NamedNumbers {
    let deliveries = &finished.deliveries;
    let (from, _) = finished.time_span();
    let second = Span::from_secs(1);
    let mut named = vec![];
    for (name, group) in [("newcomer", TESTED), ("long", LONG)] {
        for number in 0..STEPS {
            let at = from - SHOWN_BEFORE + STEP * number;
            named.push((format!("{name}/{}", number * 10), deliveries.rate(group, at, finished.rtt)));
        }
        for number in 1..SECONDS {
            let at = from + second * number;
            if at < finished.until {
                named.push((format!("{name}-seconds/{number}"), deliveries.rate(group, at, second)));
            }
        }
    }
    named
}

#[cfg(test)]
mod tests;
