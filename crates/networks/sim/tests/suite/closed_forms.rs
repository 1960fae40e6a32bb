//! Results that arithmetic gives exactly.

use crate::common::{Reports, flow, group, run_checked, scenario, scheme};
use headstart_net::{Limit, PathPlan};
use headstart_sim::tcp::{Probe, ReceiveGrowth};
use headstart_sim::workload::Opener;
use headstart_sim::{ElementModel, FlowReport, TcpConfig};
use headstart_startup::base;
use headstart_startup::scheme::slow_start::Params;
use headstart_startup::scheme::{Scheme, SlowStart};
use headstart_startup::sending::LimitedBy;
use headstart_units::{Bytes, Rate, Span, Time};

struct Alone {
    rate: Rate,
    delay: Span,
    buffer: Limit,
    scheme: Scheme,
    bytes: Bytes,
    tcp: TcpConfig,
}

impl Alone {
    /// One flow alone on its path, checked packet by packet.
    fn run(&self) -> FlowReport {
        let plan = PathPlan::dumbbell(self.rate, self.delay * 2, self.buffer);
        let group = group(self.scheme, base::Kind::Cubic, self.tcp);
        let flow = flow(self.bytes, Opener::Sender);
        let scenario = scenario(&plan, group, flow, Time::from_millis(600_000));
        let finished = run_checked(&ElementModel::of(&plan), scenario, Reports::default());
        assert_eq!(finished.recorder.0.len(), 1);
        finished.recorder.0[0]
    }
}

fn slow_start(initial_window: u64) -> Scheme {
    Scheme::SlowStart(SlowStart::new(Params { initial_window, ..Params::default() }))
}

/// A path so fast that only round trips count.
fn empty_path(scheme: Scheme, segments: u64) -> Alone {
    let tcp = TcpConfig { receive_window: Bytes::new(100_000_000), ..TcpConfig::default() };
    Alone {
        rate: Rate::from_mbit_per_sec(10_000_000),
        delay: Span::from_millis(50),
        buffer: Limit::NONE,
        scheme,
        bytes: tcp.mss * segments,
        tcp,
    }
}

/// Quick-Start equation (2): log2(N/W + 1) round trips, rounded up, without the handshake. The last
/// of them is over when the data is acknowledged; the receiver has it half a round trip sooner.
#[test]
fn slow_start_takes_the_round_trips_of_quick_starts_equation() {
    for window in [1_u64, 2, 3, 10, 32] {
        for segments in [1_u64, 2, 3, 10, 11, 70, 310, 1000] {
            let mut round_trips = 0;
            while window * ((1 << round_trips) - 1) < segments {
                round_trips += 1;
            }
            let report = empty_path(slow_start(window), segments).run();
            let expected = Span::from_millis(100 + 100 * round_trips - 50);
            let took = report.completion_time().expect("completes");
            let excess = took.saturating_sub(expected);
            assert!(
                took >= expected && excess < Span::from_millis(1),
                "{segments} segments from a window of {window}: {took}, expected {expected}"
            );
        }
    }
}

/// JumpStart alone: the handshake, the flight paced over one RTT, half an RTT of propagation, and
/// the transmission of the last segment. The last segment leaves one gap before the end of the RTT.
#[test]
fn a_lone_paced_jump_start_takes_the_handshake_one_round_trip_and_transmission() {
    for segments in [1_u64, 2, 10, 69, 97] {
        let tcp = TcpConfig::default();
        let rate = Rate::from_mbit_per_sec(100);
        let report = Alone {
            rate,
            delay: Span::from_millis(30),
            buffer: Limit::bytes(Bytes::new(115_000)),
            scheme: scheme("jump-start"),
            bytes: tcp.mss * segments,
            tcp,
        }
        .run();
        let handshake = Span::from_millis(60) + tcp.syn / rate * 2;
        let last_leaves = handshake * (segments - 1) / segments;
        let expected = handshake + last_leaves + Bytes::new(1500) / rate + Span::from_millis(30);
        let took = report.completion_time().expect("completes");
        // The pace is whole bytes per second, the gap whole nanoseconds.
        assert!(
            took.abs_diff(expected) < Span::from_micros(1),
            "{segments} segments: {took}, expected {expected}"
        );
        assert_eq!(report.counts.packets_sent, segments);
    }
}

/// A window that covers path and buffer keeps the bottleneck busy.
#[test]
fn a_lone_long_flow_fills_the_link() {
    let tcp = TcpConfig { receive_window: Bytes::new(10_000_000), ..TcpConfig::default() };
    let rate = Rate::from_mbit_per_sec(15);
    let bytes = Bytes::new(100_000_000);
    let report = Alone {
        rate,
        delay: Span::from_millis(30),
        buffer: Limit::bytes(Bytes::new(115_000)),
        scheme: slow_start(10),
        bytes,
        tcp,
    }
    .run();
    let segments = bytes.get().div_ceil(1448);
    let ideal = (bytes + Bytes::new(52 * segments)) / rate;
    let took = report.completion_time().expect("completes");
    let share = ideal.as_secs_f64() / took.as_secs_f64();
    assert!((0.97..=1.0).contains(&share), "{share} of the link");
}

/// The default access path and flow: nothing is lost, nothing is sent twice.
#[test]
fn a_window_within_the_path_is_never_lost() {
    let report = Alone {
        rate: Rate::from_mbit_per_sec(15),
        delay: Span::from_millis(30),
        buffer: Limit::bytes(Bytes::new(115_000)),
        scheme: slow_start(10),
        bytes: Bytes::new(100_000),
        tcp: TcpConfig::default(),
    }
    .run();
    assert_eq!(report.counts.lost, 0);
    assert_eq!(report.counts.bytes_sent, 100_000);
    assert_eq!(report.duplicates, 0);
    // Handshake; 10 segments; 20 more a round trip later and 40 after the next; the last leaves
    // when its ack-clocked window does.
    let took = report.completion_time().expect("completes");
    assert!((Span::from_millis(235)..Span::from_millis(250)).contains(&took), "{took}");
}

/// Cases in which it is known what a flow waits for, each a round trip of 100 ms.
#[test]
fn the_time_of_a_flow_is_divided_by_what_held_it_back() {
    let of = |report: &FlowReport| -> Vec<(&str, u64)> {
        let named = LimitedBy::ALL.map(LimitedBy::as_str).into_iter().zip(report.limited);
        let millis = named.map(|(name, span)| (name, span.as_nanos() / 1_000_000));
        millis.filter(|(_, millis)| *millis > 0).collect()
    };
    let wide = TcpConfig { receive_window: Bytes::new(100_000_000), ..TcpConfig::default() };
    // 10, 20 and 40 segments; the first ack of a window opens the next.
    let report = empty_path(slow_start(10), 70).run();
    assert_eq!(of(&report), [("handshake", 100), ("window", 200), ("path", 50)]);
    // Three times ten segments, whatever the congestion window is.
    let narrow = TcpConfig { receive_window: wide.mss * 10, ..wide };
    let report = Alone { tcp: narrow, ..empty_path(slow_start(100), 30) }.run();
    assert_eq!(of(&report), [("handshake", 100), ("receiver", 200), ("path", 50)]);
    // Segments over one round trip, the last of them one gap before its end.
    let report = Alone { tcp: TcpConfig::default(), ..empty_path(scheme("jump-start"), 97) }.run();
    assert_eq!(of(&report), [("handshake", 100), ("pacer", 98), ("path", 50)]);
    // The last of eight segments find the queue full, and only the timer notices it, 1 s after the
    // first round trip. Slow start from one segment then takes one and a half.
    let tail = Alone {
        rate: Rate::from_mbit_per_sec(10),
        buffer: Limit::bytes(Bytes::new(6000)),
        ..empty_path(slow_start(10), 8)
    };
    let report =
        Alone { tcp: TcpConfig { min_rto: Span::from_secs(1), probe: Probe::None, ..wide }, ..tail }.run();
    let found = of(&report);
    assert_eq!(report.counts.timeouts, 1);
    assert!(matches!(found[..], [("handshake", 100), ("recovery", 1250..1270)]), "{found:?}");
}

/// Segments that the receiver lets through in so many round trips, of a sender that would send all
/// at once, from 64 240 bytes. Linux 6.18: 44, 97, 224, 496 (docs/records/agreement.md). Chromium
/// doubles the window when half of it is read.
#[test]
fn a_receive_window_grows_by_the_receivers_rules() {
    let within = |receive_growth| {
        let tcp = TcpConfig { receive_window: Bytes::new(64_240), receive_growth, ..TcpConfig::default() };
        let mut most = [0; 8];
        for segments in 1..=520 {
            let report = Alone { tcp, ..empty_path(slow_start(10_000), segments) }.run();
            let took = report.completion_time().expect("completes").as_millis_f64();
            // A round trip for the handshake, and half of one for the last segment.
            let rounds = ((took - 50.0) / 100.0).round() as usize;
            most[rounds.min(8) - 1] = segments;
        }
        most
    };
    assert_eq!(within(ReceiveGrowth::Fixed)[..3], [44, 88, 132]);
    // Six segments are the first that exceed an eighth: of 44 acknowledged 42 are announced.
    assert_eq!(within(ReceiveGrowth::Eighths)[..3], [44, 86, 128]);
    assert_eq!(within(ReceiveGrowth::Chromium)[..2], [44, 111]);
    let linux = within(ReceiveGrowth::Linux);
    println!("{linux:?}");
    for (found, kernel) in linux.into_iter().zip([44_u64, 97, 224, 496]) {
        assert!(found.abs_diff(kernel) * 100 <= kernel * 3, "{linux:?}");
    }
}

/// An answer of ten segments to a client's request, on a path of 100 ms.
#[test]
fn the_handshake_takes_its_round_trips_and_those_of_its_certificate() {
    let of = |handshakes, certificate, rate| {
        let tcp = TcpConfig { handshakes, certificate: Bytes::new(certificate), ..TcpConfig::default() };
        let plan = PathPlan::dumbbell(Rate::from_mbit_per_sec(rate), Span::from_millis(100), Limit::NONE);
        let group = group(slow_start(10), base::Kind::Cubic, tcp);
        let scenario =
            scenario(&plan, group, flow(tcp.mss * 10, Opener::Receiver), Time::from_millis(600_000));
        let finished = run_checked(&ElementModel::of(&plan), scenario, Reports::default());
        let report = finished.recorder.0[0];
        (report.completion_time().expect("completes").as_nanos() / 1_000_000, report.min_rtt)
    };
    let fast = 10_000_000;
    // 0-RTT, one round trip for a handshake, and one more for TLS over TCP.
    assert_eq!([0, 1, 2].map(|handshakes| of(handshakes, 0, fast).0), [100, 200, 300]);
    // 3600 bytes before the client answers, ten parts more when it has, and then twice as many; 400
    // bytes are other messages.
    let rounds = [3_200, 3_201, 8_000, 15_200, 30_000].map(|size| of(1, size, fast).0);
    assert_eq!(rounds[..3], [200, 300, 300]);
    assert!(rounds.is_sorted() && rounds[4] <= 400, "{rounds:?}");
    // After a first round trip for TCP there is no limit of three.
    assert_eq!([3_201, 8_000, 14_000].map(|size| of(2, size, fast).0), [300, 300, 300]);
    // The certificate is no part of the path's round-trip time.
    for (handshakes, certificate) in [(0, 0), (1, 0), (1, 8_000), (2, 8_000)] {
        let (_, rtt) = of(handshakes, certificate, fast);
        assert!(rtt.abs_diff(Span::from_millis(100)) < Span::from_millis(1), "{handshakes}: {rtt}");
    }
    let (with, without) = (of(1, 8_000, 8).0, of(1, 0, 8).0);
    assert!((100..=110).contains(&(with - without)), "8 kB take 8 ms of 8 Mbit/s: {with} and {without}");
}

/// Two answers of 310 segments on one connection of 100 ms, with an idle time between. Slow start
/// has 320 segments after the first. The second takes one round trip where they are kept, and more
/// the longer a window has waited that decays.
#[test]
fn the_window_after_an_idle_time_is_the_one_that_its_rule_leaves() {
    use headstart_sim::record::MessageReport;
    use headstart_sim::workload::exchange::{Exchange, SessionSpec, Sessions};
    #[derive(Default)]
    struct Answers(Vec<u64>);
    impl headstart_sim::Recorder for Answers {
        fn message(&mut self, report: &MessageReport) {
            let took = report.read_at.since(report.requested_at);
            self.0.push((took.as_millis_f64() / 100.0).round() as u64);
        }
    }
    let rounds = |rule, idle: u64| {
        let as_linux = rule == "Linux";
        let tcp = TcpConfig {
            as_linux,
            idle_decay: rule == "decay" || as_linux,
            pipe_ack: rule == "RFC 7661",
            receive_window: Bytes::new(100_000_000),
            ..TcpConfig::default()
        };
        let plan =
            PathPlan::dumbbell(Rate::from_mbit_per_sec(10_000_000), Span::from_millis(100), Limit::NONE);
        let exchange = Exchange { think: Span::from_millis(idle), bytes: tcp.mss * 310 };
        let spec = SessionSpec {
            scripts: vec![vec![exchange; 2]],
            gap: Span::from_secs(1),
            until: Time::from_millis(10_000),
            group: 0,
            peers: 1,
        };
        let scenario = headstart_sim::Scenario {
            path: headstart_sim::Path::new(&plan, headstart_sim::Seed(1)),
            groups: vec![group(slow_start(10), base::Kind::Cubic, tcp)],
            workload: Box::new(Sessions::new(spec, headstart_sim::Seed(2))),
            until: Time::from_millis(2_000_000),
        };
        let answers = headstart_sim::Simulation::new(scenario, Answers::default()).run().recorder.0;
        // Of each session the first takes the handshake too.
        let second = answers.iter().copied().find(|rounds| *rounds != answers[0]).unwrap_or(answers[0]);
        (answers[0], second)
    };
    assert_eq!(rounds("restart", 1_000), (6, 1), "slow start that goes on keeps its window");
    // From the last packet to the request there are 100 ms more; the timeout is 200 ms.
    let decayed = [50, 250, 450, 650, 10_000].map(|idle| rounds("decay", idle));
    assert_eq!(decayed, [(6, 1), (6, 2), (6, 3), (6, 4), (6, 5)], "320, 160, 80, 40 and 10 segments");
    // Its timeout is 300 ms.
    let linux = [50, 250, 450, 650, 950, 10_000].map(|idle| rounds("Linux", idle).1);
    assert_eq!(linux, [1, 2, 2, 3, 4, 5], "320, 160, 160, 80, 40 and 10 segments");
    // Five minutes and ten.
    let kept = [50, 10_000, 299_000, 301_000, 601_000].map(|idle| rounds("RFC 7661", idle));
    assert_eq!(kept, [(6, 1), (6, 1), (6, 1), (6, 2), (6, 3)], "320, and then 160 and 80 segments");
}
