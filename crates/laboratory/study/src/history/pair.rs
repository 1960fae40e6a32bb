//! Two long flows on one link, opened together or one after the other: WS §4.4.3 and Figure 11.
//!
//! Every flow that draws on a record has "run through the bottleneck alone in advance". The second
//! flow opens `--start-gap` after the first, and up to one second later by seed, so that it meets
//! any point of the first one's sawtooth. Flows that open together do so within 10 ms. In a mixture
//! the scheme under test opens second. Numbers that begin with `first.` are of the same two with
//! the scheme under test first.
//!
//! The pair is *fair* once the smaller of the two rates stays at three quarters of the larger or
//! above for five seconds (Jain's index of 0.98). The time is the beginning of these five seconds,
//! counted from the opening of the second flow.

use anyhow::{Context, Result};
use clap::Args;
use headstart_sim::record::{SenderEvent, SenderTrace};
use headstart_sim::workload::Opener;
use headstart_sim::workload::long::{Listed, Start};
use headstart_sim::{Random, Seed};
use headstart_units::{Bytes, Span, Time};

use super::{history_of, last_record};
use crate::carrier::{Detail, Observer, Run};
use crate::setup::{BESIDE, TESTED};
use crate::study::{Case, Declared, Measure, Measured, Study};

const MEASURES: &[Measure] = &[
    Measure::new("fair", "s", "until both have about the same rate; as long as they were watched if never"),
    Measure::new("is-fair", "%", "100 if they ever do, else 0"),
    Measure::new("share", "%", "the second flow's share of what both got in its first five seconds"),
    Measure::new("share.late", "%", "its share from ten seconds on"),
    Measure::new("lost", "", "segments of the second flow declared lost in its first five seconds"),
    // Of the run with the setup's first seed: a mean would hide the sawtooth.
    Measure::new("flow-1/...", "Mbit/s", "rate of the first flow, by milliseconds since its opening"),
    Measure::new("flow-2/...", "Mbit/s", "rate of the second flow, likewise"),
];

const BIN: Span = Span::from_millis(100);
const WATCHED: Span = Span::from_secs(40);
/// Plots are coarser.
const SHOWN_BINS: usize = 5;
const HOLDS_FOR: usize = 50;
const MIN_QUOTIENT: f64 = 0.75;

/// Opening of the second flow.
#[derive(Args, Clone, Debug)]
pub struct PairParams {
    /// Time from the opening of the first flow to the opening of the second
    #[arg(long, default_value = "0 s", value_name = "TIME")]
    start_gap: Span,
}

impl Study for PairParams {
    const NAME: &'static str = "flow-pair";
    const ABOUT: &'static str = "two long flows on one link";
    const NEEDS: Detail = Detail::Events;
    const DECLARED: &'static [Declared] = &[Declared { prefixes: &["", "first."], measures: MEASURES }];

    fn run(&self, case: &Case<'_>) -> Result<Measured> {
        let mut measured: Measured = run_pair(case, self.start_gap, false)?.into_iter().collect();
        if case.mix.beside.is_some() {
            let swapped = run_pair(case, self.start_gap, true)?;
            measured.extend(swapped.into_iter().map(|(name, value)| (format!("first.{name}"), value)));
        }
        Ok(measured)
    }
}

fn run_pair(case: &Case<'_>, start_gap: Span, is_tested_first: bool) -> Result<Vec<(String, f64)>> {
    let Case { setup, mix, seed } = *case;
    let seed = Seed(seed).child("pair");
    let within = if start_gap.is_zero() { Span::from_millis(10) } else { Span::from_secs(1) };
    let second_at = Time::ZERO + start_gap + Span::from_nanos(Random::new(seed).below(within.as_nanos()));
    let until = second_at + WATCHED;
    let bytes = setup.bottleneck() * until.since(Time::ZERO) * 2;
    let other = if mix.beside.is_some() { BESIDE } else { TESTED };
    let (first, second) = if is_tested_first { (TESTED, other) } else { (other, TESTED) };
    let start = |at, group| Start { at, group, class: 0, bytes, size_known: false };
    let starts = vec![start(Time::ZERO, first), start(second_at, second)];
    let mut run = Run::new(setup, mix, Box::new(Listed::new(starts, Opener::Sender)), until, seed);
    for (group, entry) in [(TESTED, Some(mix.tested)), (BESIDE, mix.beside)] {
        let Some(entry) = entry else { continue };
        let alone = setup.single_flow(entry, Bytes::new(setup.mean_bytes() as u64), seed.child("alone"));
        let mut histories = alone.observe(())?.histories;
        let record = last_record(&mut histories, TESTED).context("the flow that ran alone left no record")?;
        run = run.with_history(group, history_of(Some(record)));
    }
    let rates = run.observe(Rates { from: second_at, ..Rates::default() })?.observer;
    Ok(numbers(&rates, second_at, case.seed == setup.run.seed))
}

fn numbers(rates: &Rates, second_at: Time, is_shown: bool) -> Vec<(String, f64)> {
    let begin = bin(second_at);
    let count = (WATCHED.as_nanos() / BIN.as_nanos()) as usize;
    let sum = |flow: usize, from: usize, to: usize| -> f64 {
        (from..to).map(|bin| rates.bins.get(bin).map_or(0, |bin| bin[flow]) as f64).sum()
    };
    let is_fair = |from: usize| {
        let (one, two) = (sum(0, from, from + HOLDS_FOR), sum(1, from, from + HOLDS_FOR));
        one.min(two) >= MIN_QUOTIENT * one.max(two)
    };
    let fair = (begin..begin + count - HOLDS_FOR).find(|from| is_fair(*from)).map(|bin| bin - begin);
    let share = |from: usize, to: usize| {
        let (one, two) = (sum(0, from, to), sum(1, from, to));
        100.0 * two / (one + two).max(1.0)
    };
    let seconds = |bins: usize| BIN.as_secs_f64() * bins as f64;
    let named = [
        ("fair", seconds(fair.unwrap_or(count))),
        ("is-fair", if fair.is_some() { 100.0 } else { 0.0 }),
        ("share", share(begin, begin + HOLDS_FOR)),
        ("share.late", share(begin + 2 * HOLDS_FOR, begin + count)),
        ("lost", rates.lost as f64),
    ];
    let mut numbers: Vec<(String, f64)> =
        named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    for step in 0..if is_shown { (begin + count) / SHOWN_BINS } else { 0 } {
        let (from, to) = (step * SHOWN_BINS, (step + 1) * SHOWN_BINS);
        let at = BIN.as_nanos() / 1_000_000 * from as u64;
        for flow in [0, 1] {
            let rate = sum(flow, from, to) * 8.0 / 1e6 / seconds(SHOWN_BINS);
            numbers.push((format!("flow-{}/{at}", flow + 1), rate));
        }
    }
    numbers
}

fn bin(at: Time) -> usize {
    (at.since(Time::ZERO).as_nanos() / BIN.as_nanos()) as usize
}

/// Bytes newly acknowledged in each bin by flow, and losses of the second one after its opening.
#[derive(Debug, Default)]
struct Rates {
    from: Time,
    flow: usize,
    bins: Vec<[u64; 2]>,
    lost: u64,
}

impl Observer for Rates {
    fn watches(&self) -> bool {
        true
    }

    fn focus(&mut self, serial: u64) -> bool {
        self.flow = (serial as usize).min(1);
        true
    }

    fn sender(&mut self, now: Time, trace: &SenderTrace) {
        match trace.event {
            SenderEvent::Acked { newly, .. } => {
                let bin = bin(now);
                if bin >= self.bins.len() {
                    self.bins.resize(bin + 1, [0; 2]);
                }
                self.bins[bin][self.flow] += newly.get();
            }
            SenderEvent::Lost { .. } if now < self.from + BIN * HOLDS_FOR as u64 => {
                self.lost += self.flow as u64;
            }
            _ => {}
        }
    }
}
