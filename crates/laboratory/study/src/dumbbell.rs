//! Flows arrive at one bottleneck: measurements of each group of them.
//!
//! The prefix of a number names its group: `mean` is that of the scheme under test, `beside.mean`
//! of the other half in a mixture, `long.mean` of long flows.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};
use headstart_net::{ElementPlan, LinkPlan, LinkRate};
use headstart_sim::{Collector, FlowReport, Seed, Totals};
use headstart_units::{Span, Time};

use crate::carrier::model::Model;
use crate::carrier::{Carrier as _, Detail, Observer, attempts};
use crate::informed::Informed;
use crate::options::{SizeName, UpOptions};
use crate::setup::{self, BESIDE, LONG, REFERENCE, Setup, TESTED};
use crate::study::{Case, Declared, Measure, Measured, Study, measures};

measures! {
    /// Measures of a group of flows.
    GROUP_MEASURES, group_values of Totals:
    Measure::new("mean", "ms", "mean completion time"), |it| millis(it.completion.mean());
    Measure::new("p50", "ms", "median completion time"), |it| millis(it.completion.quantile(500));
    Measure::new("p90", "ms", "90th percentile of completion times"), |it| millis(it.completion.quantile(900));
    Measure::new("p99", "ms", "99th percentile of completion times"), |it| millis(it.completion.quantile(990));
    Measure::new("acknowledged", "ms", "mean time from the first SYN to the sender's last ack").with_detail(Detail::Events), |it| millis(it.acknowledged.mean());
    Measure::new("transfer", "ms", "mean completion time without the handshake"), |it| millis(it.transfer.mean());
    Measure::new("rounds", "", "mean completion time in round trips of the flow's own path"), |it| it.mean_rounds();
    Measure::new("lost", "per flow", "segments declared lost").with_detail(Detail::Counts), |it| it.counts.lost as f64 / it.flows as f64;
    Measure::new("retransmissions", "per flow", "normal retransmissions, probes included, copies not").with_detail(Detail::Events), |it| it.counts.retransmissions as f64 / it.flows as f64;
    Measure::new("missed", "per flow", "segments that were missing at the receiver when a later one arrived, in the TCP model").with_detail(Detail::Topology), |it| it.missed as f64 / it.flows as f64;
    Measure::new("copies", "per flow", "proactive copies").with_detail(Detail::Counts), |it| it.counts.copies as f64 / it.flows as f64;
    Measure::new("timeouts", "per flow", "retransmission timeouts").with_detail(Detail::Counts), |it| it.counts.timeouts as f64 / it.flows as f64;
    Measure::new("probes", "per flow", "probes").with_detail(Detail::Events), |it| it.counts.probes as f64 / it.flows as f64;
    Measure::new("overhead", "", "payload bytes sent over payload bytes delivered").with_detail(Detail::Counts), |it| it.overhead();
    Measure::new("flows", "", "flows that began after the warm-up"), |it| it.flows as f64;
    Measure::new("unfinished", "", "flows that the run's end cut off"), |it| it.unfinished as f64;
    Measure::new("delivered", "", "payload bytes delivered"), |it| it.delivered.get() as f64;
    Measure::new("page.mean", "ms", "mean page response time"), |it| millis(it.pages.mean());
    Measure::new("page.p50", "ms", "median page response time"), |it| millis(it.pages.quantile(500));
}

const RUN_MEASURES: &[Measure] = &[
    Measure::new("link-loss", "%", "packets dropped by the bottleneck, of those offered"),
    Measure::new("queue.mean", "ms", "mean time before the bottleneck's first byte of a packet"),
    Measure::new("queue.p95", "ms", "95th percentile of the same"),
    Measure::new("media.p95", "ms", "one-way delay of 95 % of the real-time flow's packets at most"),
    Measure::new("media.loss", "%", "packets of the real-time flow that did not arrive"),
    Measure::new(
        "utilisation",
        "%",
        "bytes that came out of the bottleneck, of what its rate could carry while flows arrived",
    ),
    Measure::new(
        "by-size/...",
        "ms",
        "mean completion time by flow size in bytes, of a distribution of sizes",
    ),
];

/// Names before a group's numbers.
const GROUPS: [(&str, u16); 3] = [("", TESTED), ("beside.", BESIDE), ("long.", LONG)];

/// Parameters of the study.
#[derive(Args, Clone, Copy, Debug)]
pub struct DumbbellParams {
    /// Decision at the first byte: the scheme's own, or the informed start's in place of iw10's
    #[arg(long, default_value = "own", value_name = "START")]
    start: StartName,
}

/// Decisions at the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StartName {
    /// Decisions of the scheme.
    Own,
    /// Decisions of the informed start ([`Informed`]), once for all schemes: in the runs of `iw10`.
    Informed,
}

impl Study for DumbbellParams {
    const NAME: &'static str = "dumbbell";
    const ABOUT: &'static str = "flows arrive at one bottleneck";
    const NEEDS: Detail = Detail::Flows;
    const DECLARED: &'static [Declared] = &[
        Declared { prefixes: &["", "beside.", "long."], measures: GROUP_MEASURES },
        Declared { prefixes: &[""], measures: RUN_MEASURES },
    ];

    fn run(&self, case: &Case<'_>) -> Result<Measured> {
        let Case { setup, mix, seed } = *case;
        let warm_up = Time::ZERO + setup.run.warm_up;
        let arrivals = || setup.arrivals(mix, setup.workload.load, Seed(seed));
        let observer = || {
            let sizes = BySize { warm_up, bins: BTreeMap::new() };
            (Collector::new(setup::GROUPS, warm_up), sizes)
        };
        let result = match self.start {
            StartName::Own => attempts(setup, mix, |hosts| arrivals().observe_on(hosts, observer()))?,
            StartName::Informed if mix.tested.name != REFERENCE => return Ok(Measured::default()),
            StartName::Informed => {
                let mut observer = observer();
                let result = arrivals().simulate(&informed(setup, seed)?, &mut observer)?;
                result.map(|()| observer)
            }
        };
        let (collector, sizes) = &result.observer;
        let mut measured = Measured { invalid: result.invalid, ..Measured::default() };
        for (prefix, group) in GROUPS {
            add_group(&mut measured, prefix, &collector.groups[usize::from(group)]);
        }
        let bottleneck = &result.bottleneck;
        let could = setup.capacity(Seed(seed), setup.run.duration).get() as f64;
        let lost = 100.0 * bottleneck.dropped as f64 / (bottleneck.offered as f64).max(1.0);
        measured.add("link-loss", lost);
        measured.add("utilisation", 100.0 * bottleneck.delivered_bytes as f64 / could.max(1.0));
        let waits =
            bottleneck.waits.map_or([f64::NAN; 2], |(mean, p95)| [mean, p95].map(Span::as_millis_f64));
        let media = &collector.media;
        for (name, value) in [
            ("queue.mean", waits[0]),
            ("queue.p95", waits[1]),
            ("media.p95", millis(media.delays.quantile(950))),
            ("media.loss", media.loss().map_or(f64::NAN, |loss| 100.0 * loss)),
        ] {
            if value.is_finite() {
                measured.add(name, value);
            }
        }
        if let SizeName::Named(_) = setup.workload.size {
            for (bin, (count, total)) in &sizes.bins {
                let name = format!("by-size/{}", middle_of(*bin));
                measured.add(name, total.as_millis_f64() / *count as f64);
            }
        }
        Ok(measured)
    }
}

/// The start that knows the state of the setup's path.
fn informed(setup: &Setup, seed: u64) -> Result<Informed> {
    let model = Model.selection();
    ensure!(setup.carrier().selection() == model, "start: found `informed` outside the TCP model");
    let plan = setup.path_for(Seed(seed)).unchecked_plan(&UpOptions::default());
    match plan.down.first() {
        Some(ElementPlan::Link(LinkPlan { rate: LinkRate::Constant(rate), limit, .. })) => {
            Ok(Informed::new(&plan, *rate, limit.bytes, None))
        }
        first => bail!("start: found {first:?} first on the path, expected a link of constant rate"),
    }
}

/// Adds the numbers of one group.
fn add_group(measured: &mut Measured, prefix: &str, totals: &Totals) {
    if totals.flows == 0 && totals.pages.count() == 0 {
        return;
    }
    for (measure, value) in GROUP_MEASURES.iter().zip(group_values(totals)) {
        measured.add(format!("{prefix}{}", measure.name), value);
    }
}

fn millis(span: Option<Span>) -> f64 {
    span.map_or(f64::NAN, Span::as_millis_f64)
}

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

/// Completion times of the tested group by size.
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
    use crate::carrier::Carriers;
    use crate::schemes;
    use crate::settings::Settings;
    use crate::setup::SchemeMix;

    #[test]
    fn the_informed_start_takes_the_place_of_iw10_alone() {
        let line = "--load 25% --duration 20s --probe quic --receive-window 141kB";
        let setup = Settings::parse(Carriers::MODEL, line.split(' ')).expect("options");
        let mean = |start, scheme| {
            let mix = SchemeMix { tested: schemes::find(scheme).expect("a scheme"), beside: None };
            let case = Case { setup: &setup, mix, seed: 1 };
            let measured = DumbbellParams { start }.run(&case).expect("it runs");
            measured.numbers.into_iter().find(|(name, _)| name == "mean").map(|(_, value)| value)
        };
        let [own, informed] = [StartName::Own, StartName::Informed].map(|start| mean(start, "iw10"));
        assert!(informed < own.map(|own| own * 0.7), "{informed:?} ms, {own:?} without");
        assert_eq!(mean(StartName::Informed, "headstart"), None, "it was run once, for iw10");
    }

    /// Quick-Start §8: what is granted to nobody is missing for flows that ask.
    #[test]
    fn an_attack_by_requests_takes_grants_from_flows() {
        let granted = |attack: &str| {
            let line = format!("--routers target --load 10% --duration 30s --attack {attack}");
            let setup = Settings::parse(Carriers::MODEL, line.split(' ')).expect("options");
            let mix = SchemeMix { tested: schemes::find("quick-start").expect("a scheme"), beside: None };
            let collector = Collector::new(setup::GROUPS, Time::ZERO);
            let run = setup.arrivals(mix, setup.workload.load, Seed(1)).observe(collector).expect("it runs");
            let totals = &run.observer.groups[usize::from(TESTED)];
            100 * totals.granted / totals.rate_requests
        };
        let [quiet, few, many] =
            ["none", "spoofed --attack-requests 1", "spoofed --attack-requests 30"].map(granted);
        assert!(few < quiet && many < few - 20, "{quiet}, {few} and {many} % are granted");
    }

    /// 1200 bytes at 15 Mbit/s over half of 60 ms, and what is lost on the way.
    #[test]
    fn a_real_time_flow_has_the_delay_and_loss_of_its_path() {
        let measured = |line: &str| {
            let line = format!("--load 1% --size 1kB --duration 60s {line}");
            let setup = Settings::parse(Carriers::MODEL, line.split(' ')).expect("options");
            let mix = SchemeMix { tested: schemes::find("iw10").expect("a scheme"), beside: None };
            let case = Case { setup: &setup, mix, seed: 1 };
            let numbers = DumbbellParams { start: StartName::Own }.run(&case).expect("it runs").numbers;
            ["media.p95", "media.loss"]
                .map(|name| numbers.iter().find(|(one, _)| one == name).map_or(f64::NAN, |(_, value)| *value))
        };
        let [delay, loss] = measured("--media 1mbit");
        assert!((30.6..30.9).contains(&delay) && loss == 0.0, "{delay} ms, {loss} %");
        let [_, loss] = measured("--media 1mbit --loss 10%");
        assert!((9.0..11.0).contains(&loss), "{loss} %");
        let [delay, loss] = measured("--rate 1mbit --buffer 60kB --media 1.2mbit");
        assert!(delay > 400.0 && (10.0..22.0).contains(&loss), "a full queue: {delay} ms, {loss} %");
    }

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
}
