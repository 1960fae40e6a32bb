//! The end of a recovery: 64 segments at once meet a path of 16 and a buffer of 16.

use crate::common::{flow, group, scenario, scheme};
use headstart_net::{Limit, LinkPlan, PathPlan};
use headstart_sim::record::{SenderEvent, SenderTrace};
use headstart_sim::tcp::{Detection, Probe, TcpConfig};
use headstart_sim::workload::Opener;
use headstart_sim::{FlowReport, Recorder, Simulation};
use headstart_startup::base;
use headstart_units::{Bytes, Packets, Rate, Span, Time};

const BURST: u64 = 64 * 1448;

#[derive(Debug, Default)]
struct Windows {
    window: u64,
    /// Times that the window fell before the burst was acknowledged.
    falls: u32,
    is_over: bool,
    lost: u64,
}

impl Recorder for Windows {
    fn sender(&mut self, _: Time, trace: impl FnOnce() -> SenderTrace) {
        let trace = trace();
        if let SenderEvent::Acked { acknowledged, .. } = trace.event {
            self.is_over |= acknowledged >= BURST;
        }
        let window = trace.window.get();
        self.falls += u32::from(window < self.window && !self.is_over);
        self.window = window;
    }
    fn flow(&mut self, report: &FlowReport) {
        self.lost = report.counts.lost;
    }
}

fn run(recovery_period: bool) -> Windows {
    let link = |kbit: u64, buffer| {
        let limit = Limit::bytes(Bytes::new(buffer));
        LinkPlan::new(Rate::from_bits_per_sec(kbit * 1000), Span::from_millis(20), limit)
    };
    let plan = PathPlan::links(link(4_800, 24_000), link(100_000, 1_000_000));
    let tcp = TcpConfig { recovery_period, prr: false, probe: Probe::Quic, ..TcpConfig::default() };
    let group = group(scheme("iw64"), base::Kind::Cubic, tcp);
    let workload = flow(Bytes::new(1_000_000), Opener::Sender);
    let scenario = scenario(&plan, group, workload, Time::from_millis(60_000));
    Simulation::new(scenario, Windows::default()).run().recorder
}

/// RFC 6675: nothing but a timeout reduces the window again in a recovery.
#[test]
fn a_recovery_up_to_a_point_reduces_the_window_once() {
    assert_eq!(run(false).falls, 1);
}

/// RFC 9002 §7.3.2: 45 segments (70 % of 64) are still too many for path and buffer, and so are 31
/// where the queue is still full. The loss of one that left after a reduction is another.
#[test]
fn a_loss_after_a_recovery_period_began_reduces_the_window_again() {
    let (period, point) = (run(true), run(false));
    assert_eq!(period.falls, 3);
    assert!(period.lost * 2 < point.lost, "{} and {} segments lost", period.lost, point.lost);
}

/// JumpStart's 70 segments over one round trip into 6 Mbit/s and 20 packets of buffer: every second
/// one of the later ones is lost, the last one among them.
fn timeouts_of_a_lost_tail(rescue: bool) -> u64 {
    #[derive(Debug, Default)]
    struct Report(Option<FlowReport>);
    impl Recorder for Report {
        fn flow(&mut self, report: &FlowReport) {
            self.0 = Some(*report);
        }
    }
    let link = |mbit, packets| {
        LinkPlan::new(
            Rate::from_mbit_per_sec(mbit),
            Span::from_millis(30),
            Limit::packets(Packets::new(packets)),
        )
    };
    let plan = PathPlan::links(link(6, 20), link(100, 1_000));
    let tcp = TcpConfig {
        detection: Detection::Rfc6675,
        probe: Probe::None,
        prr: false,
        rescue,
        ..TcpConfig::default()
    };
    let group = group(scheme("jump-start"), base::Kind::Reno, tcp);
    let scenario = scenario(&plan, group, flow(tcp.mss * 70, Opener::Sender), Time::from_millis(60_000));
    let report = Simulation::new(scenario, Report::default()).run().recorder.0.expect("a flow");
    assert_eq!(report.read, tcp.mss * 70);
    report.counts.timeouts
}

/// RFC 6675 §4, NextSeg rules 3 and 4; Halfback §3.4 has a sender that waits for the timeout.
#[test]
fn a_lost_tail_waits_for_a_timeout_unless_it_is_rescued() {
    assert_eq!([true, false].map(timeouts_of_a_lost_tail), [0, 1]);
}
