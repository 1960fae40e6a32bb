//! One transfer over the chain.
//!
//! Source: Quick-Start §5 ("These simulations use FTP to transfer a file of a given size over the
//! network given above with no reverse traffic present"), Figures 1, 2 and 4. All of the round trip
//! is in the chain's links.

use anyhow::Result;
use clap::Args;
use headstart_sim::record::{SenderEvent, SenderTrace};
use headstart_sim::workload::Opener;
use headstart_sim::workload::long::{Listed, Start};
use headstart_sim::{Access, Chain, FlowReport, Scenario, Seed};
use headstart_units::{Bytes, Span, Time};

use super::{MSS, build, group, knows_flow_size, spec};
use crate::carrier::{Detail, Observer, model};
use crate::study::{Case, Declared, Measure, Measured, Study};

const MEASURES: &[Measure] = &[
    Measure::new("completion", "ms", "from the SYN to the last byte at the receiver"),
    Measure::new("rounds", "", "that in round trips of the path"),
    Measure::new("rounds-to-ack", "", "from the SYN to the sender's last ack, in round trips of the path"),
    Measure::new("lost", "", "packets declared lost"),
    Measure::new("first-flight", "", "packets of the first flight"),
    Measure::new("first-flight-lost", "", "packets of the first flight that were declared lost"),
    Measure::new("timeouts", "", "retransmission timeouts"),
    Measure::new("least-window", "", "packets of the smallest congestion window"),
    Measure::new("sent/...", "packets", "what was sent, by seconds"),
];

/// Study of one transfer over a chain of routers.
#[derive(Args, Debug)]
pub struct Transfer {}

impl Study for Transfer {
    const NAME: &'static str = "quick-start-transfer";
    const ABOUT: &'static str = "one transfer over a chain of routers (Quick-Start §4)";
    const NEEDS: Detail = Detail::Topology;
    const DECLARED: &'static [Declared] = &[Declared { prefixes: &[""], measures: MEASURES }];

    fn run(&self, case: &Case<'_>) -> Result<Measured> {
        Ok(send(case).into_iter().collect())
    }
}

fn send(case: &Case<'_>) -> Vec<(String, f64)> {
    let Case { setup, mix, seed } = *case;
    let seed = Seed(seed);
    let bytes = Bytes::new(setup.mean_bytes() as u64);
    let chain = spec(setup, vec![Access::default()], vec![]);
    let rtt = chain.rtt(0);
    let size_known = knows_flow_size(mix.tested);
    let starts = vec![Start { size_known, ..Start::new(Time::ZERO, bytes) }];
    let Chain { path, .. } = build(setup, &chain, seed);
    let scenario = Scenario {
        path,
        groups: vec![group(setup, mix.tested, rtt)],
        workload: Box::new(Listed::new(starts, Opener::Sender)),
        until: Time::ZERO + setup.run.duration,
    };
    let finished = model::simulate(scenario, Sequence::default());
    let Some(report) = finished.recorder.report else { return vec![] };
    let least_window = finished.recorder.least_window.map_or(0, Bytes::get);
    let acknowledged = report.ended_at.since(report.opened_at);
    let completion = report.completion_time().unwrap_or(acknowledged);
    let rounds = |time: Span| time.as_secs_f64() / rtt.as_secs_f64().max(1e-9);
    let segments = |bytes: u64| bytes as f64 / MSS.get() as f64;
    let mut numbers: Vec<(String, f64)> = [
        ("completion", completion.as_millis_f64()),
        ("rounds", rounds(completion)),
        ("rounds-to-ack", rounds(acknowledged)),
        ("lost", report.counts.lost as f64),
        ("first-flight", segments(report.first_flight.get())),
        ("first-flight-lost", segments(report.counts.first_flight_lost)),
        ("timeouts", report.counts.timeouts as f64),
        ("least-window", segments(least_window)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    if seed.0 == setup.run.seed {
        numbers.extend(finished.recorder.numbers());
    }
    numbers
}

/// Data that the first flow of a run sends.
#[derive(Debug, Default)]
struct Sequence {
    sent: Vec<(Time, u64)>,
    least_window: Option<Bytes>,
    report: Option<FlowReport>,
}

impl Sequence {
    fn numbers(&self) -> Vec<(String, f64)> {
        let mut after = 0;
        let number = |(at, bytes): &(Time, u64)| {
            // Packets of one instant are placed a microsecond apart, each with its own name.
            let micros = (at.as_nanos() / 1000).max(after);
            after = micros + 1;
            let name = format!("sent/{}.{:06}", micros / 1_000_000, micros % 1_000_000);
            (name, *bytes as f64 / MSS.get() as f64)
        };
        self.sent.iter().map(number).collect()
    }
}

impl Observer for Sequence {
    fn watches(&self) -> bool {
        true
    }

    fn focus(&mut self, serial: u64) -> bool {
        serial == 0
    }

    fn sender(&mut self, now: Time, trace: &SenderTrace) {
        let least = self.least_window.map_or(trace.window, |least| least.min(trace.window));
        self.least_window = Some(least);
        if let SenderEvent::Sent { offset, .. } = trace.event {
            self.sent.push((now, offset + MSS.get()));
        }
    }

    fn flow(&mut self, report: &FlowReport) {
        if report.serial == 0 {
            self.report = Some(*report);
        }
    }
}
