//! One run of a study, and the numbers that come of it.
//!
//! A number's name says whose it is: `mean` is that of the scheme under test, `beside.mean` of the other half in a mixture,
//! `long.mean` of long flows. A name with a slash is one of a profile: `by-size/12589` is the mean completion time of
//! flows of about 12 589 bytes.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use headstart_sim::{Collector, FlowReport, Seed, Totals};
use headstart_units::{Span, Time};
use serde::Deserialize;

use crate::carrier::{Carrier, Detail, Observer, attempts};
use crate::connection_vectors as conversations;
use crate::history::{changed_path as changed, hit_rate as visits, network_sequence as scenarios, pair};
use crate::newcomers::{requests as contest, throughput as newcomer};
use crate::options::SizeName;
use crate::quick_start as chain;
use crate::setup::{self, BESIDE, Cast, LONG, Setup, TESTED};
use crate::wide_area;

/// What a run gives; what was not measured is not there.
pub type Numbers = BTreeMap<String, f64>;

/// How a plan's setup becomes a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Study {
    /// Flows arrive at one bottleneck.
    #[default]
    Dumbbell,
    /// One flow over each path of a population; the seed is the path's number.
    WideArea,
    /// A newcomer beside a flow that is there.
    Newcomer,
    /// Web sessions over three routers in a chain (Quick-Start §5).
    Web,
    /// One transfer over that chain.
    Transfer,
    /// Connection vectors over a dumbbell of nine round-trip times (fast-startup slides).
    Conversations,
    /// Requests without connections, beside honest transfers (Quick-Start §8).
    Attack,
    /// A connection over a path that has changed since it was recorded.
    Changed,
    /// The same, with every step of its start.
    Anatomy,
    /// An application on one network after the other; the seed is the network's number.
    Scenarios,
    /// Two long flows on one link.
    Pair,
    /// Visits to a history, without a network.
    Visits,
    /// Newcomers beside established flows, from request to last byte.
    Contest,
    /// One of several such runs, with throughput over time.
    ContestTrace,
}

/// Numbers of each group, with what they mean.
pub const GROUP_MEASURES: &[(&str, &str)] = &[
    ("mean", "mean completion time, ms"),
    ("p50", "median completion time, ms"),
    ("p90", "90th percentile of completion times, ms"),
    ("p99", "99th percentile of completion times, ms"),
    ("acknowledged", "mean time from the first SYN to the sender's last ack, ms"),
    ("transfer", "mean completion time without the handshake, ms"),
    ("rounds", "mean completion time in round trips of the flow's own path"),
    ("lost", "segments declared lost, for each flow"),
    ("retransmissions", "normal retransmissions, probes included, copies not, for each flow"),
    ("copies", "proactive copies for each flow"),
    ("timeouts", "retransmission timeouts for each flow"),
    ("probes", "probes for each flow"),
    ("overhead", "payload bytes sent over payload bytes delivered"),
    ("flows", "flows that began after the warm-up"),
    ("unfinished", "those of them that the run's end cut off"),
    ("delivered", "payload bytes delivered"),
    ("page.mean", "mean page response time, ms"),
    ("page.p50", "median page response time, ms"),
];

/// Numbers of the run.
pub const RUN_MEASURES: &[(&str, &str)] = &[
    ("link-loss", "packets dropped by the bottleneck, percent of those offered"),
    (
        "utilisation",
        "bytes that came out of the bottleneck, percent of what its rate could carry while flows arrived",
    ),
];

/// Names before a group's numbers.
pub const GROUPS: [(&str, u16); 3] = [("", TESTED), ("beside.", BESIDE), ("long.", LONG)];

impl Study {
    /// Does one run.
    ///
    /// # Errors
    /// If it is not for the setup's carrier, or cannot be done.
    pub fn run(self, setup: &Setup, cast: Cast, seed: u64) -> Result<Numbers> {
        self.check(setup.carrier())?;
        let measured: Measured = match self {
            Self::Dumbbell => dumbbell(setup, cast, seed)?,
            Self::WideArea => wide_area::survey(setup, cast, seed)?.into(),
            Self::Newcomer => newcomer::watch(setup, cast, seed)?.into(),
            Self::Web => chain::web::browse(setup, cast, seed).into(),
            Self::Transfer => chain::transfer::send(setup, cast, seed).into(),
            Self::Conversations => conversations::play(setup, cast, seed).into(),
            Self::Attack => chain::attack::mount(setup, cast, seed).into(),
            Self::Changed => changed::run(setup, cast, seed, false)?,
            Self::Anatomy => changed::run(setup, cast, seed, true)?,
            Self::Scenarios => scenarios::visit(setup, cast, seed)?.into(),
            Self::Pair => pair::watch(setup, cast, seed)?.into(),
            Self::Visits => visits::run(setup, seed).into(),
            Self::Contest => contest::run(setup, cast, seed)?,
            Self::ContestTrace => contest::trace(setup, cast, seed)?,
        };
        if measured.invalid.is_some() {
            return Ok(Numbers::from([(INVALID.to_owned(), 1.0)]));
        }
        Ok(measured.numbers.into_iter().filter(|(_, value)| value.is_finite()).collect())
    }

    /// That a carrier shows what the study needs.
    ///
    /// # Errors
    /// If not, with what was found and expected.
    pub fn check(self, carrier: &dyn Carrier) -> Result<()> {
        ensure!(
            carrier.detail() >= self.needs(),
            "study: found {self:?} over {}, expected a carrier that shows {}",
            carrier.name(),
            self.needs().words()
        );
        Ok(())
    }

    /// How much it has to be shown.
    const fn needs(self) -> Detail {
        match self {
            Self::Dumbbell | Self::Changed | Self::Contest => Detail::Flows,
            Self::Newcomer | Self::Anatomy | Self::Scenarios | Self::Pair | Self::ContestTrace => {
                Detail::Events
            }
            Self::WideArea
            | Self::Web
            | Self::Transfer
            | Self::Conversations
            | Self::Attack
            | Self::Visits => Detail::Topology,
        }
    }

    /// Whether the study gives numbers of that name, or a profile of it.
    #[must_use]
    pub fn measures(self, name: &str) -> bool {
        let (family, member) = name.split_once('/').unwrap_or((name, "0"));
        let is_one_of = |known: &[(&str, &str)]| known.iter().any(|(known, _)| *known == name);
        let is_profile_of = |known: &[&str]| known.contains(&family) && member.parse::<f64>().is_ok();
        match self {
            Self::Web => is_one_of(chain::web::MEASURES) || is_profile_of(chain::web::PROFILES),
            Self::Transfer => {
                is_one_of(chain::transfer::MEASURES) || is_profile_of(chain::transfer::PROFILES)
            }
            Self::Conversations => conversations::measures(name),
            Self::Attack => is_one_of(chain::attack::MEASURES),
            Self::Changed => is_one_of(changed::MEASURES),
            Self::Anatomy => is_one_of(changed::MEASURES) || is_profile_of(changed::PROFILES),
            Self::Scenarios => is_one_of(scenarios::MEASURES) || is_profile_of(scenarios::PROFILES),
            // The same of the two the other way round.
            Self::Pair => match name.strip_prefix("first.") {
                Some(rest) if !rest.starts_with("first.") => self.measures(rest),
                _ => is_one_of(pair::MEASURES) || is_profile_of(pair::PROFILES),
            },
            Self::Visits => is_one_of(visits::MEASURES) || is_profile_of(visits::PROFILES),
            Self::WideArea => is_one_of(wide_area::MEASURES),
            Self::Contest => is_one_of(contest::MEASURES),
            Self::ContestTrace => {
                is_one_of(contest::MEASURES)
                    || is_one_of(contest::TRACE_MEASURES)
                    || (contest::PROFILES.contains(&family) && member.parse::<u64>().is_ok())
            }
            Self::Newcomer => {
                is_one_of(newcomer::MEASURES)
                    || (newcomer::PROFILES.contains(&family) && member.parse::<u64>().is_ok())
            }
            Self::Dumbbell => {
                let of_a_group = GROUPS.iter().any(|(prefix, _)| {
                    name.strip_prefix(prefix)
                        .is_some_and(|rest| GROUP_MEASURES.iter().any(|(known, _)| *known == rest))
                });
                of_a_group
                    || RUN_MEASURES.iter().any(|(known, _)| *known == name)
                    || (family == BY_SIZE && member.parse::<u64>().is_ok())
            }
        }
    }
}

/// What a run of a study gives.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Names and values; what is not finite was not measured.
    pub numbers: Vec<(String, f64)>,
    /// Why they are worth nothing, if they are: the machine was too busy for real time.
    pub invalid: Option<String>,
}

impl<N: Into<String>> From<Vec<(N, f64)>> for Measured {
    fn from(numbers: Vec<(N, f64)>) -> Self {
        let numbers = numbers.into_iter().map(|(name, value)| (name.into(), value)).collect();
        Self { numbers, invalid: None }
    }
}

/// Of a run that the machine was too busy for: 1. Nothing else of it counts.
pub const INVALID: &str = "invalid";

/// Numbers of a group that need what senders count, and those of which only a simulator knows.
const OF_COUNTS: [&str; 4] = ["lost", "copies", "timeouts", "overhead"];
const OF_EVENTS: [&str; 3] = ["acknowledged", "retransmissions", "probes"];

fn dumbbell(setup: &Setup, cast: Cast, seed: u64) -> Result<Measured> {
    let warm_up = Time::ZERO + setup.run.warm_up;
    let result = attempts(setup, cast, |hosts| {
        let sizes = BySize { warm_up, bins: BTreeMap::new() };
        let observer = (Collector::new(setup::GROUPS, warm_up), sizes);
        setup.arrivals(cast, setup.workload.load, Seed(seed)).observe_on(hosts, observer)
    })?;
    let (collector, sizes) = &result.observer;
    let mut numbers = Numbers::new();
    let detail = setup.carrier().detail();
    for (prefix, group) in GROUPS {
        add_group(&mut numbers, prefix, &collector.groups[usize::from(group)]);
        let counted = OF_COUNTS.iter().filter(|_| detail < Detail::Counts);
        for name in counted.chain(OF_EVENTS.iter().filter(|_| detail < Detail::Events)) {
            numbers.remove(&format!("{prefix}{name}"));
        }
    }
    let bottleneck = &result.bottleneck;
    let could = (setup.bottleneck() * setup.run.duration).get() as f64;
    let lost = 100.0 * bottleneck.dropped as f64 / (bottleneck.offered as f64).max(1.0);
    add(&mut numbers, "link-loss", lost);
    add(&mut numbers, "utilisation", 100.0 * bottleneck.delivered_bytes as f64 / could.max(1.0));
    if let SizeName::Named(_) = setup.workload.size {
        for (bin, (count, total)) in &sizes.bins {
            add(
                &mut numbers,
                &format!("{BY_SIZE}/{}", middle_of(*bin)),
                total.as_millis_f64() / *count as f64,
            );
        }
    }
    Ok(Measured { numbers: numbers.into_iter().collect(), invalid: result.invalid })
}

/// Adds a number, if it is one.
pub fn add(numbers: &mut Numbers, name: &str, value: f64) {
    if value.is_finite() {
        numbers.insert(name.to_owned(), value);
    }
}

/// Adds what one group's flows add up to.
pub fn add_group(numbers: &mut Numbers, prefix: &str, totals: &Totals) {
    if totals.flows == 0 && totals.pages.count() == 0 {
        return;
    }
    let flows = totals.flows as f64;
    let counts = &totals.counts;
    let millis = |span: Option<Span>| span.map_or(f64::NAN, Span::as_millis_f64);
    for (name, value) in [
        ("mean", millis(totals.completion.mean())),
        ("p50", millis(totals.completion.quantile(500))),
        ("p90", millis(totals.completion.quantile(900))),
        ("p99", millis(totals.completion.quantile(990))),
        ("acknowledged", millis(totals.acknowledged.mean())),
        ("transfer", millis(totals.transfer.mean())),
        ("rounds", totals.mean_rounds()),
        ("lost", counts.lost as f64 / flows),
        ("retransmissions", counts.retransmissions as f64 / flows),
        ("copies", counts.copies as f64 / flows),
        ("timeouts", counts.timeouts as f64 / flows),
        ("probes", counts.probes as f64 / flows),
        ("overhead", totals.overhead()),
        ("flows", flows),
        ("unfinished", totals.unfinished as f64),
        ("delivered", totals.delivered.get() as f64),
        ("page.mean", millis(totals.pages.mean())),
        ("page.p50", millis(totals.pages.quantile(500))),
    ] {
        add(numbers, &format!("{prefix}{name}"), value);
    }
}

/// The profile of completion times by flow size.
pub const BY_SIZE: &str = "by-size";

/// Upper ends of the bins, ten for each factor of ten, in thousandths of it.
const BIN_ENDS: [u64; 10] = [1259, 1585, 1995, 2512, 3162, 3981, 5012, 6310, 7943, 10_000];

/// Which bin a size falls into: ten for each power of ten.
fn bin_of(bytes: u64) -> u32 {
    let power = bytes.max(1).ilog10();
    let thousandths = u128::from(bytes.max(1)) * 1000 / 10_u128.pow(power);
    let step = BIN_ENDS.iter().position(|end| thousandths < u128::from(*end)).unwrap_or(9);
    power * 10 + step as u32
}

/// The geometric middle of a bin, in whole bytes.
fn middle_of(bin: u32) -> u64 {
    let begin = |bin: u32| {
        let thousandths = if bin.is_multiple_of(10) { 1000 } else { BIN_ENDS[bin as usize % 10 - 1] };
        u128::from(thousandths) * 10_u128.pow(bin / 10)
    };
    ((begin(bin) * begin(bin + 1)).isqrt() / 1000) as u64
}

/// Keeps the completion times of the tested group apart by size.
#[derive(Debug)]
struct BySize {
    warm_up: Time,
    bins: BTreeMap<u32, (u64, Span)>,
}

impl Observer for BySize {
    fn flow(&mut self, report: &FlowReport) {
        if report.group == TESTED && report.opened_at >= self.warm_up {
            let age = report.completion_time().unwrap_or_else(|| report.ended_at.since(report.opened_at));
            let bin = self.bins.entry(bin_of(report.written.get())).or_default();
            *bin = (bin.0 + 1, bin.1 + age);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_fall_into_ten_bins_for_each_factor_of_ten() {
        for (bytes, bin) in
            [(0, 0), (1, 0), (9, 9), (10, 10), (99_999, 49), (100_000, 50), (126_000, 51), (1_000_000, 60)]
        {
            assert_eq!(bin_of(bytes), bin, "{bytes}");
        }
        for bin in 20..70 {
            assert_eq!(bin_of(middle_of(bin)), bin);
        }
        assert_eq!(middle_of(50), 112_205);
    }

    #[test]
    fn names_of_numbers_are_checked() {
        for name in ["mean", "beside.mean", "long.overhead", "link-loss", "by-size/112205", "by-size"] {
            assert!(Study::Dumbbell.measures(name), "{name}");
        }
        for name in ["", "median", "besides.mean", "by-size/large", "long.link-loss"] {
            assert!(!Study::Dumbbell.measures(name), "{name}");
        }
        for name in ["fair", "first.share.late", "flow-1/12.5", "first.flow-2/0"] {
            assert!(Study::Pair.measures(name), "{name}");
        }
        for name in ["first", "first.first.fair", "flow-3/0", "first.flow-1/x"] {
            assert!(!Study::Pair.measures(name), "{name}");
        }
    }
}
