//! Starts that know the state of the path.

use headstart_net::{Limit, PathPlan};
use headstart_sim::workload::Opener;
use headstart_sim::workload::long::{Listed, Start};
use headstart_sim::{FlowReport, Group, InformedStart, Insight, Path, Scenario, Seed, Simulation, TcpConfig};
use headstart_startup::{Prior, Scheme, base};
use headstart_units::{Bytes, Rate, Span, Time};

use crate::common::{Reports, group, scenario, scheme};

const FLOW: Bytes = Bytes::new(100_000);

/// The first flow sends all at once, the second ten segments; each checks the state it is told.
#[derive(Debug, Default)]
struct Script {
    starts: usize,
}

impl InformedStart for Script {
    fn choose(&mut self, seen: &Insight, prior: &Prior) -> (Scheme, Prior) {
        self.starts += 1;
        let (queue, others) = (seen.queue.get(), seen.starting + seen.clocked);
        if self.starts == 1 {
            assert_eq!((queue, others), (0, 0), "the path is idle");
            return (scheme("headstart(initial-window=100,initial-credit=100)"), *prior);
        }
        // 10 ms at 15 Mbit/s carry 18.75 kB of some 103.6 kB.
        assert!((80_000..90_000).contains(&queue), "{queue} bytes wait");
        (scheme("iw10"), *prior)
    }
}

#[test]
fn an_informed_start_is_told_the_queue_and_its_choice_is_used() {
    let limit = Limit::bytes(Bytes::new(115_000));
    let plan = PathPlan::dumbbell(Rate::from_mbit_per_sec(15), Span::from_millis(60), limit);
    let group = Group::new(scheme("iw10"), TcpConfig::default());
    let start = |at| Start::new(Time::from_millis(at), FLOW);
    let scenario = Scenario {
        path: Path::new(&plan, Seed(1)),
        groups: vec![group],
        workload: Box::new(Listed::new(vec![start(0), start(10)], Opener::Sender)),
        until: Time::from_millis(10_000),
    };
    let simulation =
        Simulation::new(scenario, Reports::default()).with_informed_start(0, Box::new(Script::default()));
    let reports = simulation.run().recorder.0;
    assert_eq!(reports.iter().map(|it| it.first_flight.get()).collect::<Vec<_>>(), [100_000, 14_480]);
    // The handshake, half a round trip, and 70 packets at 15 Mbit/s.
    let completion = reports[0].completion_time().expect("it completes");
    assert!(completion < Span::from_millis(147), "{completion}");
}

/// Answers of 100 kB to one peer, one after the other, on 100 Mbit/s and 100 ms. Each fills a
/// twelfth of the path: its window limits its delivery rate.
#[test]
fn short_answers_to_a_known_peer_do_not_become_slower_from_visit_to_visit() {
    let plan = PathPlan::dumbbell(
        Rate::from_mbit_per_sec(100),
        Span::from_millis(100),
        Limit::bytes(Bytes::new(115_000)),
    );
    let visits = |name: &str, tcp: TcpConfig| -> Vec<FlowReport> {
        let start = |number: u64| Start::new(Time::from_millis(5_000 * number), Bytes::new(100_000));
        let workload = Box::new(Listed::new((0..20).map(start).collect(), Opener::Sender));
        let group = Group { history_capacity: 10, ..group(scheme(name), base::Kind::Cubic, tcp) };
        let run = scenario(&plan, group, workload, Time::from_millis(200_000));
        Simulation::new(run, Reports::default()).run().recorder.0
    };
    let millis = |flows: &[FlowReport]| -> Vec<f64> {
        flows.iter().map(|flow| flow.completion_time().expect("it ends").as_millis_f64()).collect()
    };
    let wise_start = visits("wise-start", TcpConfig::default());
    let times = millis(&wise_start);
    assert!(times[1..].iter().all(|time| *time < 1.02 * times[1]), "{times:?}");
    let ahead: Vec<u64> = wise_start.iter().map(|flow| flow.counts.ahead).collect();
    assert_eq!((ahead[0], &ahead[1..]), (0, &[1; 19][..]), "but the first, all were ahead of slow start");
    // Its paper's records sink with the delivery rate of a window that was made from them.
    let papers = millis(&visits("wise-start", TcpConfig { records_limited: true, ..TcpConfig::default() }));
    assert!(papers[19] > 1.2 * times[19], "{papers:?}");
    for (name, expected) in [("iw10", 0), ("iw32", 20), ("careful-resume", 19)] {
        let ahead: u64 = visits(name, TcpConfig::default()).iter().map(|flow| flow.counts.ahead).sum();
        assert_eq!(ahead, expected, "{name}");
    }
}
