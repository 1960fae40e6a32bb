//! UDT's recovery on a path that drops half of a first flight.

use crate::common::{flow, group, scenario};
use headstart_net::{Limit, LinkPlan, PathPlan};
use headstart_sim::record::{SenderEvent, SenderTrace};
use headstart_sim::tcp::{Detection, TcpConfig};
use headstart_sim::workload::Opener;
use headstart_sim::{FlowReport, Recorder, Simulation};
use headstart_startup::{Transmission, base};
use headstart_units::{Bytes, Rate, Span, Time};

#[derive(Debug, Default)]
struct Events {
    again: Vec<(Time, u64)>,
    timeouts: Vec<Time>,
    report: Option<FlowReport>,
}

impl Recorder for Events {
    fn sender(&mut self, now: Time, trace: impl FnOnce() -> SenderTrace) {
        let trace = trace();
        match trace.event {
            SenderEvent::Sent { offset, transmission: Transmission::Retransmission, .. } => {
                self.again.push((now, offset));
            }
            SenderEvent::Timeout => self.timeouts.push(now),
            _ => {}
        }
    }
    fn flow(&mut self, report: &FlowReport) {
        self.report = Some(*report);
    }
}

/// 100 kB of JumpStart into 4 Mbit/s and 30 kB of buffer: 60 ms of pacing bring 13 Mbit/s.
fn run(handshakes: u8) -> Events {
    let link = |mbit, buffer| {
        let limit = Limit::bytes(Bytes::new(buffer));
        LinkPlan::new(Rate::from_mbit_per_sec(mbit), Span::from_millis(30), limit)
    };
    let plan = PathPlan::links(link(4, 30_000), link(100, 1_000_000));
    let tcp = TcpConfig {
        detection: Detection::Udt,
        prr: false,
        probe: headstart_sim::tcp::Probe::None,
        min_rto: Span::from_secs(1),
        handshakes,
        ..TcpConfig::default()
    };
    let group = group(crate::common::scheme("jump-start"), base::Kind::Reno, tcp);
    let flow = flow(Bytes::new(100_000), Opener::Sender);
    let scenario = scenario(&plan, group, flow, Time::from_millis(60_000));
    Simulation::new(scenario, Events::default()).run().recorder
}

#[test]
fn a_report_sends_all_that_is_missing_at_one_instant() {
    let events = run(1);
    let first = events.again[0].0;
    let burst = events.again.iter().filter(|(at, _)| *at == first).count();
    assert!(burst >= 15, "{burst} segments left together");
    let mut offsets: Vec<u64> = events.again[..burst].iter().map(|(_, offset)| *offset).collect();
    offsets.dedup();
    assert_eq!(offsets.len(), burst, "each of them once");
    let report = events.report.expect("a flow");
    assert_eq!(report.read, Bytes::new(100_000));
}

/// HB §4.2.3: retransmissions may be lost as well, and a timeout sends again what was received.
#[test]
fn a_report_is_repeated_and_a_timeout_goes_back() {
    let events = run(1);
    let mut again: Vec<u64> = events.again.iter().map(|(_, offset)| *offset).collect();
    again.sort_unstable();
    assert!(again.windows(2).any(|pair| pair[0] == pair[1]), "some of the burst was lost again");
    let report = events.report.expect("a flow");
    assert!(!events.timeouts.is_empty() && report.duplicates > 0, "{report:?}");
}

#[test]
fn a_handshake_of_two_round_trips_takes_one_more() {
    let time = |handshakes| run(handshakes).report.and_then(|flow| flow.established_at);
    let difference = time(2).expect("established").since(time(1).expect("established"));
    // Two SYNs of 60 bytes wait for their own serialisation too.
    assert!(difference >= Span::from_millis(60) && difference < Span::from_millis(61), "{difference}");
}
