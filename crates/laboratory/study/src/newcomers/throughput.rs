//! Effect of a newcomer on an established flow: throughput of both in bins of 60 ms.
//!
//! Source: Halfback §4.3.4 (Figure 15). A TCP flow has the bottleneck to itself. Then a short flow
//! arrives, or several that carry the same bytes between them. The sender's newly acknowledged
//! bytes are counted in bins.
//!
//! Bins are counted from the newcomer's SYN. `half-restored` and `restored` refer to the flow's
//! rate before: its mean over the previous second. A bin counts as recovered if it and all of the
//! next second reach 50 % or 90 %. A flow in congestion avoidance never keeps 100 % in every bin.
//! Where losses are reported late its rate falls twice, first with the newcomer and then by its
//! own window reduction.

use anyhow::Result;
use headstart_sim::record::{SenderEvent, SenderTrace};
use headstart_sim::workload::Opener;
use headstart_sim::workload::long::{Listed, Start};
use headstart_sim::{FlowReport, Random, Seed};
use headstart_units::{Bytes, Span, Time};

use crate::carrier::{Detail, Observer, Run};
use crate::newcomers::NewcomerParams;
use crate::setup::{LONG, TESTED};
use crate::study::{Case, Declared, Measure, Measured, Study};

/// Width of a bin (Halfback §4.3.4).
const BIN: Span = Span::from_millis(60);
/// The newcomer arrives at least so long after the established flow, and within so much more, by
/// seed. One period of the congestion window's sawtooth takes 7 s on Halfback's path, and newcomers
/// must arrive at any phase of it.
const START: Time = Time::from_millis(20_000);
const PHASES: Span = Span::from_secs(10);
/// Time for which both are observed from then on.
const WATCHED: Span = Span::from_secs(8);
/// Bins shown before the newcomer, and those over which the flow's own rate is averaged.
const SHOWN_BEFORE: usize = 10;
const OWN_BINS: usize = 16;
/// Share of its own rate that a bin needs.
const HALF: f64 = 0.5;
const FULL: f64 = 0.9;
/// Bins after it that must not fall below that again: one second.
const HELD: usize = 16;

const MEASURES: &[Measure] = &[
    Measure::new("newcomer", "ms", "completion time of the newcomer, of the last one if there are several"),
    Measure::new(
        "half-restored",
        "ms",
        "from the newcomer's SYN until the established flow has half of its rate again",
    ),
    Measure::new("restored", "ms", "until it has 90 % of it again"),
    Measure::new(
        "ongoing/...",
        "Mbit/s",
        "rate of the flow that is there, by milliseconds from the newcomer's SYN plus 600",
    ),
    Measure::new("arriving/...", "Mbit/s", "rate of the newcomers, likewise"),
];

impl Study for NewcomerParams {
    const NAME: &'static str = "newcomer-throughput";
    const ABOUT: &'static str = "throughput of an established flow while newcomers start";
    const NEEDS: Detail = Detail::Events;
    const DECLARED: &'static [Declared] = &[Declared { prefixes: &[""], measures: MEASURES }];

    fn run(&self, case: &Case<'_>) -> Result<Measured> {
        Ok(measure(case, u64::from(self.newcomers))?.into_iter().collect())
    }
}

fn measure(case: &Case<'_>, newcomers: u64) -> Result<Vec<(String, f64)>> {
    let Case { setup, mix, seed } = *case;
    let seed = Seed(seed);
    let began_at =
        START + Span::from_micros(Random::new(seed.child("newcomer")).below(PHASES.as_nanos() / 1_000));
    let until = began_at + WATCHED;
    let bytes = Bytes::new(setup.mean_bytes() as u64 / newcomers);
    let endless = setup.bottleneck() * until.since(Time::ZERO) * 2;
    let ongoing = Start { at: Time::ZERO, group: LONG, class: 0, bytes: endless, size_known: false };
    let mut starts = vec![ongoing];
    starts.extend((0..newcomers).map(|_| Start { group: TESTED, ..Start::new(began_at, bytes) }));
    let run = Run::new(setup, mix, Box::new(Listed::new(starts, Opener::Sender)), until, seed);
    let throughput = Bins::new(began_at - BIN * (OWN_BINS as u64));
    let Bins { bins, newcomer, .. } = run.observe(throughput)?.observer;
    let rate = |number: usize, is_ongoing: bool| -> f64 {
        let pair = bins.get(number).copied().unwrap_or_default();
        (if is_ongoing { pair.0 } else { pair.1 }) as f64 * 8.0 / 1e6 / BIN.as_secs_f64()
    };
    let own = (0..OWN_BINS).map(|number| rate(number, true)).sum::<f64>() / OWN_BINS as f64;
    let last = OWN_BINS + (WATCHED.as_nanos() / BIN.as_nanos()) as usize;
    let after = OWN_BINS..last;
    let regained = |share: f64| -> f64 {
        let fell = after.clone().find(|bin| rate(*bin, true) < share * own);
        let again = fell.and_then(|fell| {
            (fell..last - HELD).find(|bin| (*bin..=bin + HELD).all(|bin| rate(bin, true) >= share * own))
        });
        // Never below it: zero. Below it to the end: at least the time observed.
        let bins = match (fell, again) {
            (None, _) => 0,
            (Some(_), Some(bin)) => bin - OWN_BINS,
            (Some(_), None) => last - OWN_BINS,
        };
        BIN.as_millis_f64() * bins as f64
    };
    let mut numbers = vec![
        ("newcomer".to_owned(), newcomer.map_or(f64::NAN, Span::as_millis_f64)),
        ("half-restored".to_owned(), regained(HALF)),
        ("restored".to_owned(), regained(FULL)),
    ];
    for (number, bin) in (OWN_BINS - SHOWN_BEFORE..last).enumerate() {
        let at = number as u64 * BIN.as_nanos() / 1_000_000;
        numbers.push((format!("ongoing/{at}"), rate(bin, true)));
        numbers.push((format!("arriving/{at}"), rate(bin, false)));
    }
    Ok(numbers)
}

/// Bytes newly acknowledged in each bin: of the established flow (the first), and of all others.
#[derive(Debug)]
struct Bins {
    from: Time,
    is_ongoing: bool,
    bins: Vec<(u64, u64)>,
    newcomer: Option<Span>,
}

impl Bins {
    fn new(from: Time) -> Self {
        Self { from, is_ongoing: true, bins: vec![], newcomer: None }
    }
}

impl Observer for Bins {
    fn watches(&self) -> bool {
        true
    }

    fn focus(&mut self, serial: u64) -> bool {
        self.is_ongoing = serial == 0;
        true
    }

    fn sender(&mut self, now: Time, trace: &SenderTrace) {
        if now < self.from {
            return;
        }
        let SenderEvent::Acked { newly, .. } = trace.event else { return };
        let bin = (now.since(self.from).as_nanos() / BIN.as_nanos()) as usize;
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, (0, 0));
        }
        let bin = &mut self.bins[bin];
        if self.is_ongoing { bin.0 += newly.get() } else { bin.1 += newly.get() }
    }

    fn flow(&mut self, report: &FlowReport) {
        if report.group == TESTED {
            let age = report.completion_time().unwrap_or_else(|| report.ended_at.since(report.opened_at));
            self.newcomer = self.newcomer.max(Some(age));
        }
    }
}
