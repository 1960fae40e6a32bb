//! UDT's recovery on a path that drops half of a first flight.

use crate::common::{flow, group, scenario};
use headstart_net::{Limit, LinkPlan, PathPlan};
use headstart_sim::record::{SenderEvent, SenderTrace};
use headstart_sim::tcp::{Detection, Reports, TcpConfig, Udt};
use headstart_sim::workload::Opener;
use headstart_sim::{FlowReport, Recorder, Simulation};
use headstart_startup::{Transmission, base};
use headstart_units::{Bytes, Rate, Span, Time};

#[derive(Debug, Default)]
struct Events {
    acknowledged: u64,
    /// Originals that ended more than a window beyond the acknowledged bytes.
    beyond: u32,
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
            SenderEvent::Sent { offset, payload, transmission: Transmission::Original } => {
                let end = offset + payload.get() - self.acknowledged;
                self.beyond += u32::from(end > trace.window.get().max(payload.get()));
            }
            SenderEvent::Acked { acknowledged, .. } => self.acknowledged = acknowledged,
            SenderEvent::Timeout => self.timeouts.push(now),
            _ => {}
        }
    }
    fn flow(&mut self, report: &FlowReport) {
        self.report = Some(*report);
    }
}

/// 100 kB of JumpStart into 4 Mbit/s and 30 kB of buffer: 60 ms of pacing bring 13 Mbit/s.
fn run(udt: Udt, handshakes: u8) -> Events {
    run_with("jump-start", 100_000, udt, handshakes)
}

/// The same of another scheme and size.
fn run_of(scheme: &str, bytes: u64, udt: Udt) -> Events {
    run_with(scheme, bytes, udt, 1)
}

fn run_with(scheme: &str, bytes: u64, udt: Udt, handshakes: u8) -> Events {
    let link = |mbit, buffer| {
        let limit = Limit::bytes(Bytes::new(buffer));
        LinkPlan::new(Rate::from_mbit_per_sec(mbit), Span::from_millis(30), limit)
    };
    let plan = PathPlan::links(link(4, 30_000), link(100, 1_000_000));
    let tcp = TcpConfig {
        detection: Detection::Udt(udt),
        prr: false,
        probe: headstart_sim::tcp::Probe::None,
        min_rto: Span::from_secs(1),
        handshakes,
        ..TcpConfig::default()
    };
    let group = group(crate::common::scheme(scheme), base::Kind::Reno, tcp);
    let flow = flow(Bytes::new(bytes), Opener::Sender);
    let scenario = scenario(&plan, group, flow, Time::from_millis(60_000));
    Simulation::new(scenario, Events::default()).run().recorder
}

#[test]
fn a_report_sends_all_that_is_missing_at_one_instant() {
    let events = run(Udt::default(), 1);
    let first = events.again[0].0;
    let burst = events.again.iter().filter(|(at, _)| *at == first).count();
    assert!(burst >= 15, "{burst} segments left together");
    let mut offsets: Vec<u64> = events.again[..burst].iter().map(|(_, offset)| *offset).collect();
    offsets.dedup();
    assert_eq!(offsets.len(), burst, "each of them once");
    let report = events.report.expect("a flow");
    assert_eq!(report.read, Bytes::new(100_000));
}

#[test]
fn reports_at_once_follow_the_acks_and_are_repeated() {
    let at_once =
        Udt { is_periodic: false, reports: Reports::Every(Span::from_millis(10)), ..Udt::default() };
    let events = run(at_once, 1);
    let first = events.again[0];
    let repeats = events.again.iter().filter(|(_, offset)| *offset == first.1).count();
    // The first retransmission needs a round trip of six intervals at least.
    assert!(repeats >= 6, "{repeats} transmissions of the first missing segment");
    let once = run(Udt { reports: Reports::Once, is_periodic: false, ..Udt::default() }, 1);
    assert!(once.again.len() < events.again.len());
}

#[test]
fn a_report_that_is_never_repeated_leaves_lost_retransmissions_to_the_timeout_and_that_goes_back() {
    let once = Udt { reports: Reports::Once, is_periodic: false, ..Udt::default() };
    let back = run(once, 1);
    let forth = run(Udt { goes_back: false, ..once }, 1);
    assert!(!back.timeouts.is_empty(), "a retransmission was lost");
    let sent = |events: &Events| events.report.expect("a flow").counts.retransmissions;
    assert!(
        sent(&back) > sent(&forth),
        "{} against {}: what was received goes again",
        sent(&back),
        sent(&forth)
    );
    let duplicates = |events: &Events| events.report.expect("a flow").duplicates;
    assert!(duplicates(&back) > duplicates(&forth));
}

/// HB §4.2.3: "the sender needs to wait until timeout when the retransmitted packets are lost".
#[test]
fn a_report_that_names_nothing_twice_leaves_lost_retransmissions_to_the_timeout() {
    let reports = Udt { reports: Reports::Every(Span::from_millis(300)), ..Udt::default() };
    // Segments that were sent again more than once before the first timeout.
    let named_twice = |events: &Events| {
        let timeout = events.timeouts.first().copied().unwrap_or(Time::NEVER);
        let mut again: Vec<u64> =
            events.again.iter().filter(|(at, _)| *at < timeout).map(|(_, offset)| *offset).collect();
        again.sort_unstable();
        again.windows(2).filter(|pair| pair[0] == pair[1]).count()
    };
    let (repeated, once) = (run(reports, 1), run(Udt { repeats: false, ..reports }, 1));
    assert!(named_twice(&repeated) > 0, "some of the burst was lost again");
    assert_eq!(named_twice(&once), 0);
    assert!(!once.timeouts.is_empty(), "which only the timeout repairs");
    assert_eq!(once.report.expect("a flow").read, Bytes::new(100_000));
}

/// UD §6: new data waits while more is sent than acked; an ack names the first missing packet.
#[test]
fn a_window_that_counts_from_the_first_missing_packet_is_never_exceeded_by_what_follows_it() {
    // Slow start overflows the buffer in the middle of the flow: new data follows a hole.
    let beyond = |spans: bool| run_of("iw10", 400_000, Udt { spans, ..Udt::default() }).beyond;
    assert_eq!(beyond(true), 0);
    assert!(beyond(false) > 0, "what is in flight leaves room while a hole is open");
}

#[test]
fn a_handshake_of_two_round_trips_takes_one_more() {
    let time = |handshakes| run(Udt::default(), handshakes).report.and_then(|flow| flow.established_at);
    let difference = time(2).expect("established").since(time(1).expect("established"));
    // Two SYNs of 60 bytes wait for their own serialisation too.
    assert!(difference >= Span::from_millis(60) && difference < Span::from_millis(61), "{difference}");
}
