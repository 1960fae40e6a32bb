//! Opponents and queues of today against the closed forms of their texts: PIE's target, FQ-CoDel's
//! sparse flows, a policer's rate, the coupling of DualPI2 between Prague and Reno, and BBRv3's
//! operating point.

use std::collections::BTreeMap;

use crate::common::{group, run_checked, scheme};
use headstart_net::{Direction, ElementPlan, Limit, LinkPlan, PathPlan, QueueDiscipline, policer};
use headstart_sim::packet::{Body, Ecn, Packet};
use headstart_sim::record::ElementEvent;
use headstart_sim::workload::Opener;
use headstart_sim::workload::long::{Listed, Start};
use headstart_sim::{ElementModel, FlowReport, Path, Recorder, Scenario, Seed, TcpConfig};
use headstart_startup::base;
use headstart_units::{Bytes, Packets, Rate, Span, Time};

/// Measurements of flows at the bottleneck, after a time to settle.
#[derive(Debug)]
struct Watch {
    bottleneck: usize,
    from: Time,
    /// Data packets that wait or travel, with their time of entry.
    inside: BTreeMap<(u32, u32), Time>,
    /// From arrival at the bottleneck to its link's far end, per flow by opening.
    took: BTreeMap<u32, Vec<Span>>,
    marks: BTreeMap<u32, u64>,
    delivered: BTreeMap<u32, u64>,
    reports: Vec<FlowReport>,
}

impl Recorder for Watch {
    fn flow(&mut self, report: &FlowReport) {
        self.reports.push(*report);
    }

    fn element(&mut self, now: Time, element: usize, event: ElementEvent, packet: &Packet) {
        let Body::Data { transmission, .. } = packet.body else { return };
        if element != self.bottleneck || now < self.from {
            return;
        }
        let key = (packet.slot, transmission);
        match event {
            ElementEvent::Accepted => {
                self.inside.insert(key, now);
            }
            ElementEvent::Delivered => {
                let Some(since) = self.inside.remove(&key) else { return };
                self.took.entry(packet.slot).or_default().push(now.since(since));
                *self.delivered.entry(packet.slot).or_default() += u64::from(packet.size);
                *self.marks.entry(packet.slot).or_default() += u64::from(packet.ecn == Ecn::Marked);
            }
            _ => {
                self.inside.remove(&key);
            }
        }
    }
}

/// A link, the elements before it, and flows.
struct Bench {
    rate: Rate,
    rtt: Span,
    buffer: Limit,
    queue: QueueDiscipline,
    policer: Option<policer::Params>,
    seed: u64,
    seconds: u64,
    ecn: bool,
    base: base::Kind,
}

impl Bench {
    fn new(mbit: u64, rtt: u64, queue: QueueDiscipline) -> Self {
        Self {
            rate: Rate::from_mbit_per_sec(mbit),
            rtt: Span::from_millis(rtt),
            buffer: Limit::packets(Packets::new(2000)),
            queue,
            policer: None,
            seed: 1,
            seconds: 60,
            ecn: false,
            base: base::Kind::Reno,
        }
    }

    /// Flows of these schemes that never end, opened 10 ms apart, and then `more`; measurements
    /// after a sixth of the time.
    fn run(&self, schemes: &[&str], more: &[Start]) -> Met {
        let link = LinkPlan { discipline: self.queue, ..LinkPlan::new(self.rate, self.rtt / 2, self.buffer) };
        let mut plan = PathPlan::link_and_delay(link, self.rtt / 2);
        plan.down.splice(0..0, self.policer.map(ElementPlan::Policer));
        plan.check().expect("a path can be so");
        let tcp = TcpConfig { receive_window: Bytes::new(50_000_000), ecn: self.ecn, ..TcpConfig::default() };
        let groups = schemes.iter().map(|name| group(scheme(name), self.base, tcp)).collect();
        let endless = Bytes::new(1 << 40);
        let start = |n: usize| Start {
            at: Time::from_millis(10 * n as u64),
            group: n as u16,
            class: 0,
            bytes: endless,
            size_known: false,
        };
        let starts = (0..schemes.len()).map(start).chain(more.iter().copied()).collect();
        let until = Time::from_millis(self.seconds * 1000);
        let scenario = Scenario {
            path: Path::new(&plan, Seed(self.seed)),
            groups,
            workload: Box::new(Listed::new(starts, Opener::Sender)),
            until,
        };
        // Links come first, then the other elements.
        let watch = Watch {
            bottleneck: 0,
            from: Time::from_millis(self.seconds * 1000 / 6),
            inside: BTreeMap::new(),
            took: BTreeMap::new(),
            marks: BTreeMap::new(),
            delivered: BTreeMap::new(),
            reports: vec![],
        };
        assert_eq!(plan.direction(Direction::Down).len(), 1 + usize::from(self.policer.is_some()));
        let finished = run_checked(&ElementModel::of(&plan), scenario, watch);
        Met {
            watch: finished.recorder,
            least: self.rtt / 2 + Bytes::new(1500) / self.rate,
            rate: self.rate,
            seconds: self.seconds as f64 * 5.0 / 6.0,
        }
    }
}

/// Measurements of a bench's flows.
struct Met {
    watch: Watch,
    least: Span,
    rate: Rate,
    seconds: f64,
}

impl Met {
    /// Milliseconds that packets of a flow waited: mean, and 99th percentile.
    fn wait(&self, flow: u32) -> (f64, f64) {
        let mut waits: Vec<f64> = self.watch.took[&flow]
            .iter()
            .map(|took| took.saturating_sub(self.least).as_millis_f64())
            .collect();
        waits.sort_by(f64::total_cmp);
        (waits.iter().sum::<f64>() / waits.len() as f64, waits[waits.len() * 99 / 100])
    }

    /// A flow's share of the link.
    fn share(&self, flow: u32) -> f64 {
        let bytes = self.watch.delivered.get(&flow).copied().unwrap_or(0);
        bytes as f64 / self.seconds / self.rate.as_bytes_per_sec() as f64
    }

    fn shares(&self, flows: u32) -> f64 {
        (0..flows).map(|flow| self.share(flow)).sum()
    }

    fn marked(&self, flow: u32) -> f64 {
        self.watch.marks.get(&flow).copied().unwrap_or(0) as f64 / self.watch.took[&flow].len() as f64
    }

    fn lost(&self, flow: usize) -> f64 {
        let counts = self.watch.reports[flow].counts;
        counts.lost as f64 / counts.packets_sent as f64
    }
}

/// RFC 8033 §4.2: the queueing delay is held at 15 ms, with any flows. Two flows halve too often.
#[test]
fn pie_holds_its_target() {
    for seed in 1..=3 {
        for (flows, least) in [(2, 10.0), (5, 13.0), (20, 14.0)] {
            let bench = Bench { seed, ..Bench::new(20, 60, QueueDiscipline::Pie) };
            let met = bench.run(&vec!["iw10"; flows], &[]);
            let (mean, _) = met.wait(0);
            assert!((least..18.0).contains(&mean), "{flows} flows, seed {seed}: {mean} ms");
            let used = met.shares(flows as u32);
            assert!(used > 0.94, "{flows} flows, seed {seed}: {used} of the link");
        }
    }
}

/// RFC 8290 §1: a flow that sends a packet now and then waits for the packets that are being sent,
/// 1.2 ms each, not for the queue of the others. In one queue it waits as they do.
#[test]
fn sparse_flows_do_not_wait_in_fq_codel() {
    let start = |n: u64| Start::new(Time::from_millis(10_000 + 500 * n), Bytes::new(1000));
    let sparse: Vec<Start> = (0..99).map(start).collect();
    let wait = |queue| {
        let bench = Bench { buffer: Limit::packets(Packets::new(200)), ..Bench::new(10, 40, queue) };
        let met = bench.run(&["iw10", "iw10"], &sparse);
        assert!(met.shares(2) > 0.97, "{queue}: {} of the link", met.shares(2));
        assert!(met.share(0) / met.share(1) < 1.3 || queue != QueueDiscipline::FqCoDel);
        met.wait(2)
    };
    let (mean, late) = wait(QueueDiscipline::FqCoDel);
    assert!(mean < 1.2 && late < 2.4, "{mean} ms, {late} ms at most");
    let (codel, _) = wait(QueueDiscipline::CoDel);
    let (plain, _) = wait(QueueDiscipline::DropTail);
    assert!(codel > 4.0 * mean && plain > 100.0, "{codel} ms and {plain} ms");
}

/// RFC 9332 §1: Prague's packets wait for less than a millisecond, Reno's for 15, and with a
/// coupling of two both get about as much. They get as much where Prague takes its round trip for
/// the 25 ms that Reno's has. Prague gets less than three times as much where its round trip is
/// shorter by the wait and nothing compensates for it.
#[test]
fn prague_and_reno_share_a_dual_queue() {
    for (mbit, rtt, most) in [(10, 20, 2.0), (40, 10, 1.3), (40, 20, 2.0), (40, 50, 2.9), (100, 30, 2.9)] {
        let met = Bench::new(mbit, rtt, QueueDiscipline::DualPi2).run(&["prague", "iw10"], &[]);
        let ((prague, late), (reno, _)) = (met.wait(0), met.wait(1));
        assert!(prague < 1.0 && late < 1.5, "{mbit} Mbit/s, {rtt} ms: {prague} ms, {late} ms");
        assert!((10.0..18.0).contains(&reno), "{mbit} Mbit/s, {rtt} ms: {reno} ms");
        let ratio = met.share(0) / met.share(1);
        assert!((0.8..most).contains(&ratio), "{mbit} Mbit/s, {rtt} ms: {ratio}");
        assert!(met.shares(2) > 0.97, "{mbit} Mbit/s, {rtt} ms: {} of the link", met.shares(2));
        assert_eq!(met.lost(0), 0.0, "L4S traffic is marked");
        assert!(met.marked(0) > 0.0 && met.lost(1) > 0.0, "both hear of it");
    }
}

#[test]
fn five_pragues_and_five_others_share_a_dual_queue() {
    for other in [base::Kind::Reno, base::Kind::Cubic] {
        let bench = Bench { base: other, ..Bench::new(40, 10, QueueDiscipline::DualPi2) };
        let schemes: Vec<&str> = [["prague"; 5], ["iw10"; 5]].concat();
        let met = bench.run(&schemes, &[]);
        let (ours, theirs) = (met.shares(5), met.shares(10) - met.shares(5));
        assert!((0.5..2.0).contains(&(ours / theirs)), "{other:?}: {ours} and {theirs}");
        let (mean, _) = met.wait(0);
        assert!(mean < 1.0 && met.shares(10) > 0.98, "{other:?}: {mean} ms, {} of the link", met.shares(10));
    }
}

/// Only the ramp of 0.8 to 1.2 ms limits Prague; 1.2 ms is a single packet at 10 Mbit/s.
#[test]
fn pragues_alone_fill_a_link_with_a_wait_of_a_millisecond() {
    for (mbit, rtt, used) in [(10, 20, 0.95), (40, 10, 0.98), (40, 50, 0.97), (100, 30, 0.98)] {
        let met = Bench::new(mbit, rtt, QueueDiscipline::DualPi2).run(&["prague", "prague"], &[]);
        let (mean, _) = met.wait(0);
        assert!(mean < 1.1, "{mbit} Mbit/s, {rtt} ms: {mean} ms");
        assert!(met.shares(2) > used, "{mbit} Mbit/s, {rtt} ms: {} of the link", met.shares(2));
        assert!(met.share(0) / met.share(1) < 1.8, "{} and {}", met.share(0), met.share(1));
    }
}

#[test]
fn no_flow_gets_more_than_its_policer_passes() {
    for name in ["iw10", "bbr", "bbr-v3", "prague"] {
        let params = policer::Params { rate: Rate::from_mbit_per_sec(5), burst: Bytes::new(60_000) };
        let bench =
            Bench { policer: Some(params), seconds: 30, ..Bench::new(50, 40, QueueDiscipline::DropTail) };
        let met = bench.run(&[name], &[]);
        let most = 0.1 + 60_000.0 / met.seconds / 6.25e6;
        assert!((0.095..=most).contains(&met.share(0)), "{name}: {} of the link", met.share(0));
        assert!(met.lost(0) > 0.0 && met.wait(0).0 < 0.1, "{name}: a policer drops and holds nothing back");
    }
}

/// BBR3 §3.1: throughput with little in the queue; a deep buffer is not filled.
#[test]
fn bbr_v3_fills_a_link_without_filling_its_buffer() {
    for bdps in [0.5, 1.0, 4.0] {
        let buffer = Limit::bytes(Bytes::new((250_000.0 * bdps) as u64));
        let bench = || Bench { buffer, ..Bench::new(50, 40, QueueDiscipline::DropTail) };
        let met = bench().run(&["bbr-v3"], &[]);
        assert!(met.share(0) > 0.95, "{bdps} BDP: {} of the link", met.share(0));
        assert!(
            met.wait(0).0 < 4.0 && met.lost(0) < 0.005,
            "{bdps} BDP: {:?} ms, {}",
            met.wait(0),
            met.lost(0)
        );
        let met = bench().run(&["bbr-v3"; 3], &[]);
        let shares = [0, 1, 2].map(|flow| met.share(flow));
        let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
        assert!(sum > 0.95 && sum * sum / 3.0 / squares > 0.95, "{bdps} BDP: {shares:?}");
        assert!(met.lost(0) < 0.01, "{bdps} BDP: {}", met.lost(0));
    }
}

/// The purpose of version 3: in shallow buffers version 1 leaves Reno nearly nothing, because it
/// does not react to losses.
#[test]
fn bbr_v3_leaves_reno_more_than_version_1_does_in_a_shallow_buffer() {
    for bdps in [0.5, 1.0] {
        let buffer = Limit::bytes(Bytes::new((250_000.0 * bdps) as u64));
        let beside = |name| {
            let met =
                Bench { buffer, ..Bench::new(50, 40, QueueDiscipline::DropTail) }.run(&[name, "iw10"], &[]);
            (met.share(1), met.lost(0))
        };
        let ((one, lost_by_one), (three, lost_by_three)) = (beside("bbr"), beside("bbr-v3"));
        assert!(three > 1.5 * one, "{bdps} BDP: {three}, {one} with version 1");
        assert!(lost_by_three < lost_by_one, "{bdps} BDP: {lost_by_three}, {lost_by_one}");
    }
}

#[test]
fn bbr_v3_responds_to_marks_instead_of_losses() {
    let met = Bench { ecn: true, seconds: 30, ..Bench::new(20, 40, QueueDiscipline::CoDel) }
        .run(&["bbr-v3"; 2], &[]);
    assert_eq!((met.lost(0), met.lost(1)), (0.0, 0.0));
    assert!(met.marked(0) > 0.0 && met.shares(2) > 0.9, "{} {}", met.marked(0), met.shares(2));
}
