//! Starts that know the state of the path.

use headstart_net::{Limit, PathPlan};
use headstart_sim::workload::Opener;
use headstart_sim::workload::long::{Listed, Start};
use headstart_sim::{
    FlowReport, Group, InformedStart, Insight, Path, Recorder, Scenario, Seed, Simulation, TcpConfig,
};
use headstart_startup::{Prior, Scheme, base, catalogue};
use headstart_units::{Bytes, Rate, Span, Time};

const FLOW: Bytes = Bytes::new(100_000);

fn scheme(name: &str) -> Scheme {
    catalogue::find(name).expect(name).scheme()
}

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

#[derive(Debug, Default)]
struct Reports(Vec<FlowReport>);

impl Recorder for Reports {
    fn flow(&mut self, report: &FlowReport) {
        self.0.push(*report);
    }
}

#[test]
fn an_informed_start_is_told_the_queue_and_its_choice_is_used() {
    let limit = Limit::bytes(Bytes::new(115_000));
    let plan = PathPlan::dumbbell(Rate::from_mbit_per_sec(15), Span::from_millis(60), limit);
    let group = Group {
        scheme: scheme("iw10"),
        base: base::Kind::Cubic,
        tcp: TcpConfig::default(),
        hint: None,
        history_capacity: 0,
    };
    let start = |at| Start { at: Time::from_millis(at), group: 0, class: 0, bytes: FLOW, size_known: true };
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
