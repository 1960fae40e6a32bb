//! Headstart against attacks and wrong records: the cost to its own flows, and to all others,
//! against the same with IW 10.

use headstart_net::changing::LinkChange;
use headstart_net::{ElementPlan, Limit, PathPlan};
use headstart_sim::engine::peer_address;
use headstart_sim::sizes::Sizes;
use headstart_sim::tcp::config::Probe;
use headstart_sim::workload::Mixed;
use headstart_sim::workload::arrivals::{ArrivalSpec, Arrivals, GapSpec};
use headstart_sim::{Collector, Group, Path, Scenario, Seed, Simulation, TcpConfig};
use headstart_startup::catalogue;
use headstart_startup::history::{FixedHash, MemoryStore, Record, RecordUpdate, Revision, Store};
use headstart_units::{Bytes, Rate, Span, Time};

const UNTIL: Time = Time::from_millis(120_000);

/// Two minutes at that load, and then a drain: 15 Mbit/s, 60 ms, 115 kB, flows of 100 kB.
struct Play {
    /// In percent.
    load: u32,
    change: Option<(Time, LinkChange)>,
    peers: u32,
    /// So many flows to one peer at once, after 20 s.
    storm: usize,
    /// The history at the beginning.
    history: fn(&mut MemoryStore),
}

impl Default for Play {
    fn default() -> Self {
        Self { load: 30, change: None, peers: 20, storm: 0, history: |_| () }
    }
}

impl Play {
    /// Mean completion times: of the scheme's flows, and of IW 10's concurrent ones.
    fn run(&self, scheme: &str) -> (f64, f64) {
        let rate = Rate::from_mbit_per_sec(15);
        let mut path = PathPlan::dumbbell(rate, Span::from_millis(60), Limit::bytes(Bytes::new(115_000)));
        if let (Some(change), ElementPlan::Link(link)) = (self.change, &mut path.down[0]) {
            link.changes.push(change);
        }
        let group = |name| Group {
            history_capacity: 1000,
            ..Group::new(
                catalogue::find(name).expect("a scheme").scheme(),
                TcpConfig { probe: Probe::Quic, ..TcpConfig::default() },
            )
        };
        let arrivals = |gaps, groups, peers, name: &str| {
            let spec = ArrivalSpec {
                groups,
                peers,
                ..ArrivalSpec::new(gaps, Sizes::Fixed(Bytes::new(100_000)), UNTIL)
            };
            Box::new(Arrivals::new(spec, Seed(1).child(name)))
        };
        let gap = Sizes::Fixed(Bytes::new(100_000)).gap_at(rate * headstart_units::Ratio::percent(self.load));
        let usual = arrivals(GapSpec::Poisson(gap), vec![(0, 1), (1, 1)], self.peers, "usual");
        let storm = GapSpec::Given(vec![Time::from_millis(20_000); self.storm]);
        let storm = arrivals(storm, vec![(0, 1)], 1, "storm");
        let scenario = Scenario {
            path: Path::new(&path, Seed(1)),
            groups: vec![group(scheme), group("iw10")],
            workload: Box::new(Mixed::new(vec![usual, storm])),
            until: UNTIL + Span::from_secs(60),
        };
        let mut history = MemoryStore::new(1000, FixedHash::default());
        (self.history)(&mut history);
        let simulation = Simulation::new(scenario, Collector::new(2, Time::ZERO)).with_history(0, history);
        let groups = simulation.run().recorder.groups;
        let mean = |group: usize| groups[group].completion.mean().expect("flows").as_nanos() as f64;
        (mean(0), mean(1))
    }

    /// At low and at high load.
    fn holds(&self, own: f64, others: f64, why: &str) {
        for load in [30, 60, 80] {
            let play = Self { load, ..*self };
            let (before, beside_before) = play.run("iw10");
            let (after, beside_after) = play.run("headstart");
            let ratios = (after / before, beside_after / beside_before);
            println!("{why}, {load} %: own {:.3}, others {:.3}", ratios.0, ratios.1);
            assert!(
                ratios.0 <= own && ratios.1 <= others,
                "{why}, {load} %: {ratios:?}, at most {own} and {others}"
            );
        }
    }
}

#[test]
fn a_thousand_concurrent_starts_to_one_peer_share_one_credit() {
    Play { storm: 1000, ..Play::default() }.holds(1.05, 1.10, "a storm");
}

#[test]
fn the_credit_adapts_to_a_changed_path_at_a_bounded_cost() {
    let middle = Time::from_millis(60_000);
    for (change, why) in [
        (LinkChange::Rate(Rate::from_bits_per_sec(6_000_000)), "0.4 of the rate"),
        (LinkChange::Rate(Rate::from_mbit_per_sec(150)), "ten times the rate"),
        (LinkChange::Delay(Span::from_millis(150)), "three times the RTT"),
        (LinkChange::Delay(Span::from_millis(3)), "half of the RTT"),
    ] {
        Play { change: Some((middle, change)), ..Play::default() }.holds(1.05, 1.10, why);
    }
}

/// Each peer's record has a hundred times the path's capacity, and an RTT that explains any queue.
fn poison(history: &mut MemoryStore, rt_prop: Span) {
    for peer in 0..20 {
        let (_, mut lease) = history.open(peer_address(peer));
        let huge = Bytes::new(20_000_000);
        let fate = Revision::to(huge);
        history.reserve(&mut lease, &mut |_| Bytes::new(1));
        history.release(&mut lease, &fate);
        let record = Record { btl_bw: Rate::from_mbit_per_sec(1500), rt_prop, ..Record::default() };
        history.close(lease, RecordUpdate::Replace(record));
        assert_eq!(history.peek(peer_address(peer)).map(|record| record.credit), Some(huge));
    }
}

#[test]
fn the_credit_recovers_from_a_false_value() {
    let play = |history| Play { history, ..Play::default() };
    play(|it| poison(it, Span::from_millis(60))).holds(1.0, 1.10, "its rate");
    play(|it| poison(it, Span::from_millis(110))).holds(1.0, 1.10, "its RTT too");
}

#[test]
fn first_contacts_of_a_thousand_peers_share_one_credit() {
    Play { peers: 100_000, ..Play::default() }.holds(1.0, 1.10, "strangers");
}
