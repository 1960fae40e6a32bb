//! RC3: data that leaves before its turn arrives once, and costs nobody else where priorities hold.

use crate::common::{Reports, group, run_checked, scheme};
use headstart_net::{Limit, LinkPlan, PathPlan, QueueDiscipline};
use headstart_sim::workload::Opener;
use headstart_sim::workload::long::{Listed, Start};
use headstart_sim::{ElementModel, FlowReport, Path, Scenario, Seed, TcpConfig};
use headstart_startup::base;
use headstart_units::{Bytes, Rate, Span, Time};

const RTT: Span = Span::from_millis(60);

/// Flows of these schemes and sizes, opened 1 ms apart, over one link with a buffer of 100 ms.
fn run(mbit: u64, queue: QueueDiscipline, tcp: TcpConfig, flows: &[(&str, u64)]) -> Vec<FlowReport> {
    let rate = Rate::from_mbit_per_sec(mbit);
    let buffer = Limit::bytes(rate * Span::from_millis(100));
    let link = LinkPlan { discipline: queue, ..LinkPlan::new(rate, RTT / 2, buffer) };
    let plan = PathPlan::link_and_delay(link, RTT / 2);
    let groups = flows.iter().map(|(name, _)| group(scheme(name), base::Kind::Cubic, tcp)).collect();
    let starts = flows.iter().enumerate().map(|(n, (_, bytes))| Start {
        group: n as u16,
        ..Start::new(Time::from_millis(n as u64), Bytes::new(*bytes))
    });
    let scenario = Scenario {
        path: Path::new(&plan, Seed(1)),
        groups,
        workload: Box::new(Listed::new(starts.collect(), Opener::Sender)),
        until: Time::from_millis(100_000),
    };
    let mut reports = run_checked(&ElementModel::of(&plan), scenario, Reports::default()).recorder.0;
    reports.sort_by_key(|report| report.group);
    reports
}

fn wide() -> TcpConfig {
    TcpConfig { receive_window: Bytes::new(10_000_000), ..TcpConfig::default() }
}

/// The link is busy from the first round trip on: from the front in order, from the end early.
#[test]
fn a_lone_rc3_flow_takes_the_handshake_one_trip_and_transmission() {
    for segments in [1_u64, 10, 11, 50, 400, 800] {
        let tcp = wide();
        let report = run(100, QueueDiscipline::Priority, tcp, &[("rc3", segments * tcp.mss.get())])[0];
        let rate = Rate::from_mbit_per_sec(100);
        let expected = RTT + tcp.syn / rate * 2 + Bytes::new(1500 * segments) / rate + RTT / 2;
        let took = report.completion_time().expect("completes");
        assert!(
            took.abs_diff(expected) < Span::from_micros(500),
            "{segments} segments: {took}, expected {expected}"
        );
        assert_eq!(report.counts.lost, 0, "{segments} segments");
        // In its turn leaves what has not arrived, or whose acknowledgement is still under way.
        let sent = report.counts.packets_sent;
        assert!(sent <= segments + 64, "{segments} segments: {sent} packets");
    }
}

/// The buffer holds a part of it: the rest is pushed out and leaves in its turn.
#[test]
fn early_data_that_is_dropped_leaves_in_its_turn() {
    for (bytes, window) in [(3_000_000, 10_000_000), (20_000_000, 50_000_000), (3_000_000, 200_000)] {
        let tcp = TcpConfig { receive_window: Bytes::new(window), ..TcpConfig::default() };
        for queue in [QueueDiscipline::Priority, QueueDiscipline::DropTail, QueueDiscipline::CoDel] {
            let report = run(20, queue, tcp, &[("rc3", bytes)])[0];
            assert!(report.completion_time().is_some(), "{bytes} of {window} behind {queue}");
            assert!(report.counts.copies > 0, "{bytes} of {window} behind {queue}");
        }
    }
}

/// The other flow's time with RC3, over its time with slow start. It pays for the burst if no queue
/// has priorities.
#[test]
fn rc3_costs_another_flow_nothing_where_priorities_hold() {
    let beside = |name, queue| {
        let reports = run(20, queue, wide(), &[(name, 1_000_000), ("iw10", 100_000)]);
        reports[1].completion_time().expect("completes").as_secs_f64()
    };
    let harm = |queue| beside("rc3", queue) / beside("iw10", queue);
    let (with, without) = (harm(QueueDiscipline::Priority), harm(QueueDiscipline::DropTail));
    assert!(with < 1.01 && without > 1.05, "{with} with priorities, {without} without");
}
