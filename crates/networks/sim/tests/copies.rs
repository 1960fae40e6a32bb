//! Proactive copies that count as transmissions.

mod common;

use std::collections::BTreeMap;

use common::{flow, group, scenario};
use headstart_net::{Limit, LinkPlan, PathPlan};
use headstart_sim::record::{SenderEvent, SenderTrace};
use headstart_sim::tcp::{Detection, TcpConfig};
use headstart_sim::workload::Opener;
use headstart_sim::{FlowReport, Recorder, Simulation};
use headstart_startup::{Transmission, base};
use headstart_units::{Bytes, Rate, Span, Time};

#[derive(Debug, Default)]
struct Events {
    /// When each segment was last copied, by its offset.
    copied: BTreeMap<u64, Time>,
    /// Retransmissions less than a round trip after a copy of the same segment.
    hasty: u32,
    again: u32,
    report: Option<FlowReport>,
}

impl Recorder for Events {
    fn sender(&mut self, now: Time, trace: impl FnOnce() -> SenderTrace) {
        let trace = trace();
        match trace.event {
            SenderEvent::Sent { offset, transmission: Transmission::Copy, .. } => {
                self.copied.insert(offset, now);
            }
            SenderEvent::Sent { offset, transmission: Transmission::Retransmission, .. } => {
                self.again += 1;
                let copied = self.copied.get(&offset);
                self.hasty += u32::from(copied.is_some_and(|at| now.since(*at) < Span::from_millis(60)));
            }
            _ => {}
        }
    }
    fn flow(&mut self, report: &FlowReport) {
        self.report = Some(*report);
    }
}

/// 100 kB of Halfback into 6 Mbit/s and 30 kB of buffer: 60 ms of pacing bring 13 Mbit/s.
fn run(detection: Detection, copies_count: bool) -> Events {
    let link = |mbit, buffer| {
        let limit = Limit::bytes(Bytes::new(buffer));
        LinkPlan::new(Rate::from_mbit_per_sec(mbit), Span::from_millis(30), limit)
    };
    let plan = PathPlan::links(link(6, 30_000), link(100, 1_000_000));
    let tcp = TcpConfig { detection, copies_count, prr: false, ..TcpConfig::default() };
    let group = group(common::scheme("halfback"), base::Kind::Reno, tcp);
    let flow = flow(Bytes::new(100_000), Opener::Sender);
    let scenario = scenario(&plan, group, flow, Time::from_millis(60_000));
    Simulation::new(scenario, Events::default()).run().recorder
}

#[test]
fn a_segment_is_not_sent_again_within_a_round_trip_of_its_copy() {
    let (plain, counted) = (run(Detection::Rfc6675, false), run(Detection::Rfc6675, true));
    assert!(plain.hasty > 0, "{} of {} come too soon where copies do not count", plain.hasty, plain.again);
    assert_eq!(counted.hasty, 0, "of {}", counted.again);
    assert!(counted.again < plain.again, "{} against {}", counted.again, plain.again);
}

#[test]
fn what_a_lost_copy_leaves_missing_is_still_repaired() {
    for detection in [Detection::Rfc6675, Detection::Udt] {
        let report = run(detection, true).report.expect("a flow");
        assert_eq!(report.read, Bytes::new(100_000));
    }
}
