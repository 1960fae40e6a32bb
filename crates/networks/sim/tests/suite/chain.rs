//! Routers in a chain with traffic both ways: round trips, reverse traffic, grants in both
//! directions, bare requests.

use crate::common::{Reports, run_checked};
use headstart_net::routed_link::Part;
use headstart_net::{AnyElement, Limit, QueueDiscipline, RouterPlan, option_filter};
use headstart_sim::workload::long::{Listed, Start};
use headstart_sim::workload::spoof::{Source, Spoof, SpoofSpec};
use headstart_sim::workload::web::{ParetoTwo, WebSessions, WebSpec};
use headstart_sim::workload::{Mixed, Opener, Workload};
use headstart_sim::*;
use headstart_startup::base;
use headstart_startup::quick_start::DenialReason;
use headstart_startup::quick_start::router::{Counts, Params};
use headstart_units::{Bytes, Packets, Rate, Ratio, Span, Time};

/// The sender of the Quick-Start paper (§5).
const EXACT: &str = "quick-start(initial-window=3,header=40B,granularity=exact)";
const RATE: Rate = Rate::from_mbit_per_sec(10);
const MSS: Bytes = Bytes::new(1460);

fn millis(count: u64) -> Span {
    Span::from_millis(count)
}

/// Quick-Start §5: two links of 10 Mbit/s and 20 ms, 150 packets; two servers left, one right.
fn spec() -> ChainSpec {
    let link = ChainLink {
        rate: RATE,
        delay: millis(20),
        limit: Limit::packets(Packets::new(150)),
        discipline: QueueDiscipline::DropTail,
    };
    let access = |server, client| Access { server: millis(server), client: millis(client) };
    ChainSpec {
        links: vec![link; 2],
        forward: vec![access(0, 0), access(12, 8)],
        backward: vec![access(5, 30)],
        option_filter: None,
    }
}

fn target(rate: Rate) -> Option<RouterPlan> {
    Some(RouterPlan::QuickStart(Params::new(rate)))
}

fn group(name: &str) -> Group {
    let tcp = TcpConfig { mss: MSS, header: Bytes::new(40), syn: Bytes::new(40), ..TcpConfig::default() };
    crate::common::group(crate::common::scheme(name), base::Kind::Reno, tcp)
}

fn counts(path: &mut Path, element: u16) -> Counts {
    let AnyElement::RoutedLink(link) = path.element_mut(element) else { panic!("a routed link") };
    let Part::QuickStart(router) = link.part() else { panic!("a Quick-Start router") };
    *router.counts()
}

/// Runs a workload with a group for each class; the checker must find no fault.
fn run(
    scheme: &str,
    router: impl Fn(Rate) -> Option<RouterPlan>,
    workload: Box<dyn Workload>,
) -> (Finished<Reports>, Vec<(u16, u16)>) {
    let Chain { path, models, links } = spec().build(router, Seed(1));
    let scenario =
        Scenario { path, groups: vec![group(scheme); 3], workload, until: Time::from_millis(120_000) };
    (run_checked(&models, scenario, Reports::default()), links)
}

/// One flow of `segments` in each class, far apart.
fn one_of_each(segments: u64) -> Box<dyn Workload> {
    let start = |class: u16| Start {
        at: Time::from_millis(u64::from(class) * 20_000),
        group: class,
        class,
        bytes: MSS * segments,
        size_known: true,
    };
    Box::new(Listed::new((0..3).map(start).collect(), Opener::Sender))
}

#[test]
fn a_class_sees_the_round_trip_of_its_own_hosts() {
    let (finished, _) = run("iw3", |_| None, one_of_each(1));
    for (class, (report, expected)) in finished.recorder.0.iter().zip([80, 120, 150]).enumerate() {
        assert_eq!(spec().rtt(class), millis(expected));
        // Serialisation of the SYN on four links, 40 bytes each: 32 us.
        let rtt = report.min_rtt.as_millis_f64();
        assert!(rtt >= expected as f64 && rtt < expected as f64 + 3.0, "{rtt} of {expected}");
    }
}

#[test]
fn routers_of_both_directions_grant() {
    let (mut finished, links) = run(EXACT, target, one_of_each(60));
    assert!(finished.recorder.0.iter().all(|report| matches!(report.grant, Grant::Granted(_))));
    for (there, back) in links {
        assert_eq!(counts(&mut finished.path, there).approved, 2, "two flows go there");
        assert_eq!(counts(&mut finished.path, back).approved, 1, "one comes back");
    }
}

fn web(sessions: u32, servers: u16, first: u16) -> Box<dyn Workload> {
    let spec = WebSpec {
        sessions,
        until: Time::from_millis(60_000),
        pages: 30,
        objects: 10,
        object_gap: millis(10),
        page_gap: millis(800),
        sizes: ParetoTwo::with_mean(400.0, 1.002),
        mss: MSS,
        servers,
        first,
        size_known: true,
    };
    Box::new(WebSessions::new(spec, Seed(5).child(&first.to_string())))
}

/// Data of the right side crosses back with the acks of the left; links account for both.
#[test]
fn reverse_traffic_crosses_the_reverse_links() {
    let both = || Box::new(Mixed::new(vec![web(6, 2, 0), web(3, 1, 2)]));
    let (finished, links) = run(EXACT, target, both());
    let account =
        |element: u16| *finished.path.packet_counts().nth(usize::from(element)).expect("it is there").1;
    let written = |groups: std::ops::Range<u16>| -> u64 {
        let own = finished.recorder.0.iter().filter(|report| groups.contains(&report.group));
        own.map(|report| report.delivered.get()).sum()
    };
    for (there, back) in links {
        assert!(
            account(there).delivered_bytes > written(0..2) && account(back).delivered_bytes > written(2..3)
        );
        assert!(account(back).delivered > account(there).delivered / 2, "acks come back");
    }
    assert!(
        written(2..3) > 1_000_000 && finished.recorder.0.len() > 1_500,
        "{} objects",
        finished.recorder.0.len()
    );
    let (again, _) = run(EXACT, target, both());
    assert_eq!(again.summary, finished.summary, "the same run again");
}

/// Quick-Start §8: a request without a connection is granted by every router, not answered.
#[test]
fn bare_requests_are_granted_without_a_flow() {
    for source in [Source::One(3), Source::Random] {
        let attack = SpoofSpec {
            from: Time::from_millis(1_000),
            until: Time::from_millis(11_000),
            gap: millis(100),
            rate: Rate::from_bytes_per_sec(1_000_000),
            source,
            class: 1,
            size: Bytes::new(40),
        };
        let (mut finished, links) = run("iw3", target, Box::new(Spoof::new(attack, Seed(2))));
        assert_eq!((finished.summary.flows, finished.recorder.0.len()), (0, 0));
        for (number, (there, back)) in links.into_iter().enumerate() {
            let there = counts(&mut finished.path, there);
            assert!((70..130).contains(&there.requests), "{there:?} at link {number}");
            assert!(there.approved > there.requests / 4, "{there:?}");
            assert_eq!(counts(&mut finished.path, back), Counts::default(), "nobody answers");
        }
    }
}

/// RFC 4782 §4.7.2: a SYN that is lost with its request is sent again without it. The connection is
/// plain TCP, later by the SYN's timeout. A box that removes the request costs no time.
#[test]
fn a_request_that_a_box_drops_costs_the_timeout_of_the_syn() {
    let through = |action: Option<option_filter::Action>| {
        let option_filter = action.map(|action| option_filter::Params { action, share: Ratio::ONE });
        let Chain { path, models, .. } = ChainSpec { option_filter, ..spec() }.build(target, Seed(1));
        let groups = vec![group(EXACT); 3];
        let scenario =
            Scenario { path, groups, workload: one_of_each(60), until: Time::from_millis(120_000) };
        run_checked(&models, scenario, Reports::default()).recorder.0
    };
    let open = through(None);
    let dropped = through(Some(option_filter::Action::Drop));
    let removed = through(Some(option_filter::Action::Remove));
    for (class, plain) in run("iw3", target, one_of_each(60)).0.recorder.0.iter().enumerate() {
        let times = [plain, &open[class], &dropped[class], &removed[class]].map(|report| {
            let time = report.completion_time().expect("it ended");
            time.as_millis_f64().round()
        });
        let [tcp, quick, after_drop, after_removal] = times;
        assert!(quick < tcp && after_drop == tcp + 1_000.0 && after_removal == tcp, "{times:?}");
        assert_eq!(dropped[class].grant, Grant::Denied(DenialReason::NoEcho));
    }
}

/// A queue that marks: nothing is lost, and the mark ends Quick-Start's phase.
#[test]
fn queues_of_the_chain_mark() {
    let marking = QueueDiscipline::CoDel;
    let mut marked = spec();
    for link in &mut marked.links {
        *link = ChainLink { rate: Rate::from_mbit_per_sec(2), discipline: marking, ..*link };
    }
    let lost = |ecn: bool| {
        let Chain { path, models, .. } =
            marked.build(|_| Some(RouterPlan::QuickStart(Params::new(RATE))), Seed(1));
        let mut groups = vec![group(EXACT); 3];
        for group in &mut groups {
            group.tcp.ecn = ecn;
        }
        let scenario =
            Scenario { path, groups, workload: one_of_each(60), until: Time::from_millis(120_000) };
        let reports = run_checked(&models, scenario, Reports::default()).recorder.0;
        reports.iter().map(|report| report.counts.lost).sum::<u64>()
    };
    assert_eq!(lost(true), 0);
    assert!(lost(false) > 0);
}
