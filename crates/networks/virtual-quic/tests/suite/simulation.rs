//! The simulator's own scenarios over the real stack: repeatable, consistent, and in agreement with
//! the TCP model where both are the same.

use headstart_net::{ElementPlan, Limit, PathPlan};
use headstart_quic::Choice;
use headstart_sim::record::{ElementEvent, SenderEvent, SenderTrace};
use headstart_sim::tcp::DelayedAck;
use headstart_sim::workload::arrivals::{ArrivalSpec, Arrivals, GapSpec};
use headstart_sim::workload::long::{Listed, Start};
use headstart_sim::workload::replay::{From, Message, Replay};
use headstart_sim::workload::{Opener, Workload};
use headstart_sim::{
    Checker, Collector, ElementModel, FlowReport, Group, Path, Recorder, Scenario, Seed, TcpConfig,
    peer_address,
};
use headstart_startup::history::{FixedHash, MemoryStore, Record, RecordUpdate, Store};
use headstart_startup::sending::LimitedBy;
use headstart_startup::{base, catalogue};
use headstart_units::{Bytes, Packets, Rate, Ratio, Span, Time};
use headstart_virtual_quic::simulation::RunOptions;
use headstart_virtual_quic::{Crypto, Simulation};

const RATE: Rate = Rate::from_mbit_per_sec(25);
const RTT: Span = Span::from_millis(50);

fn group(scheme: &str) -> Group {
    // The stack's own controller has no catalogue entry; the run's options name it.
    let entry = catalogue::find(if scheme == "stack-cubic" { "iw10" } else { scheme }).expect("a scheme");
    let tcp = TcpConfig { receive_window: Bytes::new(4_000_000), ..TcpConfig::default() };
    Group { base: base::Kind::default(), history_capacity: 64, ..Group::new(entry.scheme(), tcp) }
}

fn path(loss: Option<Ratio>) -> PathPlan {
    let mut plan = PathPlan::dumbbell(RATE, RTT, Limit::packets(Packets::new(104)));
    plan.down.extend(loss.map(ElementPlan::loss));
    plan
}

fn scenario(scheme: &str, workload: Box<dyn Workload>, loss: Option<Ratio>, until: u64) -> Scenario {
    let path = Path::new(&path(loss), Seed(7));
    Scenario { path, groups: vec![group(scheme)], workload, until: Time::from_millis(until) }
}

fn options(scheme: &str, crypto: Crypto, seed: u64) -> RunOptions {
    RunOptions { choices: vec![Choice::find(scheme).expect("carried")], crypto, seed: Seed(seed) }
}

fn alone(bytes: u64) -> Box<dyn Workload> {
    let start = Start::new(Time::ZERO, Bytes::new(bytes));
    Box::new(Listed::new(vec![start], Opener::Receiver))
}

fn arriving(seed: u64) -> Box<dyn Workload> {
    let sizes = headstart_sim::sizes::Sizes::Fixed(Bytes::new(60_000));
    Box::new(Arrivals::new(
        ArrivalSpec {
            peers: 8,
            opener: Opener::Receiver,
            ..ArrivalSpec::new(GapSpec::Poisson(Span::from_millis(30)), sizes, Time::from_millis(1_500))
        },
        Seed(seed),
    ))
}

#[derive(Default)]
struct Tape {
    traces: Vec<(Time, SenderTrace)>,
    reports: Vec<FlowReport>,
    messages: Vec<(Bytes, Time)>,
    dropped: u64,
}

impl Recorder for Tape {
    fn flow(&mut self, report: &FlowReport) {
        self.reports.push(*report);
    }
    fn message(&mut self, report: &headstart_sim::record::MessageReport) {
        self.messages.push((report.bytes, report.read_at));
    }
    fn sender(&mut self, now: Time, trace: impl FnOnce() -> SenderTrace) {
        self.traces.push((now, trace()));
    }
    fn element(&mut self, _: Time, element: usize, event: ElementEvent, _: &headstart_sim::packet::Packet) {
        self.dropped += u64::from(element == 0 && matches!(event, ElementEvent::Refused(_)));
    }
}

fn run(scheme: &str, workload: Box<dyn Workload>, record: Option<Record>) -> Tape {
    let scenario = scenario(scheme, workload, None, 60_000);
    let simulation = Simulation::new(scenario, &options(scheme, Crypto::Null, 1), Tape::default());
    let simulation = simulation.expect("can be set up");
    let mut history = MemoryStore::new(16, FixedHash::default());
    if let Some(record) = record {
        let (_, lease) = history.open(peer_address(0));
        history.close(lease, RecordUpdate::Replace(record));
    }
    simulation.with_history(0, history).run().recorder
}

fn right() -> Record {
    Record {
        // Headers take their part of the path's rate.
        btl_bw: Rate::from_mbit_per_sec(24),
        rt_prop: RTT,
        window: RATE * RTT,
        ..Record::default()
    }
}

#[test]
fn the_same_seed_is_the_same_run_to_the_last_byte_on_any_number_of_threads() {
    let run = |scheme: &'static str, crypto, seed| {
        let scenario = scenario(scheme, arriving(seed), Some(Ratio::percent(1)), 20_000);
        let simulation =
            Simulation::new(scenario, &options(scheme, crypto, seed), Collector::new(1, Time::ZERO));
        let finished = simulation.expect("can be set up").run();
        (finished.summary, finished.recorder.groups)
    };
    for crypto in [Crypto::Null, Crypto::Tls] {
        for scheme in ["iw10", "wise-start", "halfback"] {
            let once = run(scheme, crypto, 1);
            assert!(once.0.flows > 30 && once.1[0].unfinished == 0, "{scheme}: {:?}", once.0);
            let elsewhere: Vec<_> =
                (0..2).map(|_| std::thread::spawn(move || run(scheme, crypto, 1))).collect();
            for again in elsewhere {
                let again = again.join().expect("no panic");
                assert_eq!(again.0, once.0, "{scheme}, {crypto:?}");
                assert!(again.1 == once.1, "{scheme}, {crypto:?}: totals");
            }
            assert_ne!(run(scheme, crypto, 2).0.fingerprint, once.0.fingerprint, "{scheme}, {crypto:?}");
        }
    }
}

/// The simulator's own checks of links hold for these packets too.
#[test]
fn every_packet_is_accounted_for() {
    for scheme in ["iw64", "halfback", "stack-cubic"] {
        let loss = Some(Ratio::percent(2));
        let scenario = scenario(scheme, arriving(3), loss, 20_000);
        let checker = Checker::new(&ElementModel::of(&path(loss)), Collector::new(1, Time::ZERO));
        let simulation = Simulation::new(scenario, &options(scheme, Crypto::Null, 3), checker);
        let finished = simulation.expect("can be set up").run();
        let (faults, collector) = finished.recorder.finish(&finished.path);
        assert_eq!(faults, Vec::<String>::new(), "{scheme}");
        let totals = &collector.groups[0];
        assert!(totals.flows > 30 && totals.unfinished == 0, "{scheme}: {} flows", totals.flows);
        assert!(totals.counts.lost > 0, "{scheme}: two per cent of the packets are lost");
        assert_eq!(totals.counts.copies > 0, scheme == "halfback");
        assert!((1.0..1.8).contains(&totals.overhead()), "{scheme}: {}", totals.overhead());
        // A repair at the end lasts until its ack, but the flow is complete before. The stack's own
        // controllers keep no account.
        let limited = totals.limited.iter().sum::<u64>() as f64 / totals.flows as f64;
        let mean = totals.completion.mean().expect("there are flows").as_nanos() as f64;
        let is_whole = (limited / mean - 1.0).abs() < 1e-6;
        assert_eq!(is_whole, scheme != "stack-cubic", "{scheme}: {limited} of {mean} ns");
    }
}

/// Slow start from ten packets takes the same number of round trips in both models.
#[test]
fn an_empty_path_matches_the_tcp_model() {
    for (scheme, bytes) in [("iw10", 10_000), ("iw10", 300_000), ("jump-start", 100_000)] {
        let quic = run(scheme, alone(bytes), None).reports[0];
        let simulation =
            headstart_sim::Simulation::new(scenario(scheme, alone(bytes), None, 60_000), Tape::default());
        let tcp = simulation.run().recorder.reports[0];
        let ms = |report: FlowReport| report.completion_time().expect("complete").as_millis_f64();
        println!("{scheme}, {bytes} bytes: QUIC {:.1} ms, TCP {:.1} ms", ms(quic), ms(tcp));
        assert!((ms(quic) / ms(tcp) - 1.0).abs() < 0.06, "{scheme}: {} and {} ms", ms(quic), ms(tcp));
        assert_eq!(quic.read, Bytes::new(bytes));
        assert!(quic.min_rtt >= RTT && quic.min_rtt < RTT + Span::from_millis(2), "{:?}", quic.min_rtt);
    }
}

#[test]
fn a_receiver_acknowledges_as_rarely_as_it_is_asked() {
    let acks = |every| {
        let mut scenario = scenario("iw10", alone(300_000), None, 60_000);
        let timeout = Span::from_millis(25);
        scenario.groups[0].tcp.delayed_ack = DelayedAck { every, timeout, ..DelayedAck::SECOND };
        let run = Simulation::new(scenario, &options("iw10", Crypto::Null, 1), Tape::default());
        let traces = run.expect("can be set up").run().recorder.traces;
        traces.iter().filter(|(_, trace)| matches!(trace.event, SenderEvent::Acked { .. })).count()
    };
    // Some 207 packets.
    let (second, tenth) = (acks(2), acks(10));
    assert!((100..=115).contains(&second) && (20..=30).contains(&tenth), "{second}, {tenth}");
}

/// The stack paces what the model sends at once: window and pacer count together.
#[test]
fn flows_wait_for_the_same_in_both_models() {
    for (scheme, bytes, window) in
        [("iw10", 300_000, 4_000_000), ("jump-start", 100_000, 4_000_000), ("iw32", 1_000_000, 65_536)]
    {
        let scenario = || {
            let mut scenario = scenario(scheme, alone(bytes), None, 60_000);
            scenario.groups[0].tcp.receive_window = Bytes::new(window);
            scenario
        };
        let quic = Simulation::new(scenario(), &options(scheme, Crypto::Null, 1), Tape::default());
        let quic = quic.expect("can be set up").run().recorder.reports[0];
        let tcp = headstart_sim::Simulation::new(scenario(), Tape::default()).run().recorder.reports[0];
        let shares = |report: &FlowReport| {
            let all = report.completion_time().expect("complete");
            let sum = report.limited.iter().fold(Span::ZERO, |sum, span| sum + *span);
            assert_eq!(sum, all, "{scheme}: {report:?}");
            let share = |by: LimitedBy| 100.0 * report.limited[by as usize].as_secs_f64() / all.as_secs_f64();
            let sent = share(LimitedBy::Window) + share(LimitedBy::Pacer);
            [share(LimitedBy::Handshake), sent, share(LimitedBy::Receiver), share(LimitedBy::Path)]
        };
        let both = [shares(&quic), shares(&tcp)];
        println!("{scheme}, {bytes} bytes: QUIC {:.1?}, TCP {:.1?} per cent", both[0], both[1]);
        for (quic, tcp) in both[0].iter().zip(both[1]) {
            assert!((quic - tcp).abs() < 4.0, "{scheme}: {both:.1?}");
        }
        assert_eq!(both[0][2] > 50.0, window < 100_000, "{scheme}: {both:.1?}");
    }
}

#[test]
fn a_start_from_a_record_is_traced_step_by_step() {
    let tape = run("wise-start", alone(300_000), Some(right()));
    let established = tape.traces[0].1;
    assert_eq!((established.event, established.phase), (SenderEvent::Established, "Sending"));
    assert_eq!(established.pace, Some(Rate::from_mbit_per_sec(48)), "twice the recorded rate");
    assert!(tape.reports[0].had_history);
    let mut place = 0;
    for (_, trace) in &tape.traces {
        if let SenderEvent::Sent { offset, payload, .. } = trace.event {
            assert_eq!(offset, place, "one packet after the other");
            place += payload.get();
        }
    }
    assert!((300_000..330_000).contains(&place), "{place} bytes");
    assert!(tape.traces.iter().any(|(_, trace)| trace.phase == "Probe"), "the record is right");
    let acked = |trace: &SenderTrace| match trace.event {
        SenderEvent::Acked { newly, .. } => newly.get(),
        _ => 0,
    };
    assert_eq!(
        tape.traces.iter().map(|(_, trace)| acked(trace)).sum::<u64>(),
        tape.reports[0].delivered.get()
    );
}

#[test]
fn a_connection_starts_from_the_record_of_the_previous_one() {
    let first = scenario("wise-start", alone(2_000_000), None, 60_000);
    let simulation = Simulation::new(first, &options("wise-start", Crypto::Null, 1), Tape::default());
    let mut finished = simulation.expect("can be set up").run();
    let (known, lease) = finished.histories[0].open(peer_address(0));
    finished.histories[0].close(lease, RecordUpdate::Keep);
    let record = known.expect("a record").record;
    let share = record.btl_bw.as_bits_per_sec() as f64 / RATE.as_bits_per_sec() as f64;
    assert!((0.95..1.0).contains(&share), "{share} of the path's rate, which headers have a part of");
    let (cold, hot) =
        (run("wise-start", alone(200_000), None), run("wise-start", alone(200_000), Some(record)));
    let ms = |tape: &Tape| tape.reports[0].completion_time().expect("complete").as_millis_f64();
    assert!(ms(&hot) < 0.75 * ms(&cold), "{} and {} ms", ms(&hot), ms(&cold));
}

/// One connection, several messages, in the order of their requests.
#[test]
fn messages_on_one_connection_come_one_after_the_other() {
    let message = |at, bytes| Message { at: Span::from_millis(at), bytes: Bytes::new(bytes) };
    let messages = vec![message(0, 5_000), message(120, 80_000), message(121, 3_000), message(900, 1_000)];
    let tape =
        run("iw10", Box::new(Replay::new(messages, From::Opening, 0, Opener::Receiver, Time::ZERO)), None);
    let sizes: Vec<u64> = tape.messages.iter().map(|(bytes, _)| bytes.get()).collect();
    assert_eq!(sizes, [5_000, 80_000, 3_000, 1_000]);
    assert_eq!(tape.reports[0].read, Bytes::new(89_000));
    assert!(tape.reports[0].completed_at.is_some_and(|at| at > Time::from_millis(950)));
}

/// More peers than the history holds: it does not grow, and evicted peers start without a record.
#[test]
fn the_history_stays_within_its_capacity() {
    let room = 50;
    let arrivals = ArrivalSpec {
        peers: 100_000,
        opener: Opener::Receiver,
        ..ArrivalSpec::new(
            GapSpec::Poisson(Span::from_millis(4)),
            headstart_sim::sizes::Sizes::Fixed(Bytes::new(3_000)),
            Time::from_millis(10_000),
        )
    };
    let mut scenario = scenario("wise-start", Box::new(Arrivals::new(arrivals, Seed(1))), None, 20_000);
    scenario.groups[0].history_capacity = room;
    let simulation =
        Simulation::new(scenario, &options("wise-start", Crypto::Null, 1), Collector::new(1, Time::ZERO));
    let finished = simulation.expect("can be set up").run();
    let totals = &finished.recorder.groups[0];
    assert!(totals.flows > 2_000 && totals.unfinished == 0, "{} flows", totals.flows);
    assert!(finished.histories[0].len() <= room, "{} records", finished.histories[0].len());
}

/// A client closes its connection as soon as it has the answer, so that its last acknowledgements
/// never leave.
#[test]
fn a_credit_rises_over_quic_as_over_tcp_although_clients_close_at_once() {
    let start = |serial: u64| Start::new(Time::from_millis(500 * serial), Bytes::new(60_000));
    let visits =
        || -> Box<dyn Workload> { Box::new(Listed::new((0..12).map(start).collect(), Opener::Receiver)) };
    let credit = |mut histories: Vec<MemoryStore>| {
        let (found, lease) = histories[0].open(peer_address(0));
        histories[0].close(lease, RecordUpdate::Keep);
        found.expect("a record").record.credit.get()
    };
    let scenario = || scenario("headstart", visits(), None, 60_000);
    let simulation = Simulation::new(scenario(), &options("headstart", Crypto::Null, 1), Tape::default())
        .expect("can be set up");
    let over_quic = credit(simulation.run().histories);
    let over_tcp = credit(headstart_sim::Simulation::new(scenario(), Tape::default()).run().histories);
    assert!(over_tcp > 110_000, "{over_tcp}");
    assert!(over_quic * 100 > over_tcp * 98, "{over_quic} over QUIC, {over_tcp} over TCP");
}

#[test]
fn a_run_needs_a_scheme_for_each_group() {
    let none = RunOptions { choices: vec![], crypto: Crypto::Null, seed: Seed(1) };
    let error = Simulation::new(scenario("iw10", alone(1), None, 1), &none, Tape::default()).err();
    let error = error.expect("refused").to_string();
    assert!(error.contains("found 0") && error.contains("expected 1"), "{error}");
}

/// From the first packet to the last byte of an answer of one packet, so that every other
/// difference is small.
#[test]
fn certificates_cost_in_the_model_what_they_cost_over_the_stack() {
    for (rate, rtt) in [(RATE, RTT), (Rate::from_mbit_per_sec(5), Span::from_millis(100))] {
        for kilobytes in [1, 2, 3, 4, 8, 16, 30] {
            let scenario = || {
                let plan = PathPlan::dumbbell(rate, rtt, Limit::packets(Packets::new(104)));
                let mut group = group("iw10");
                group.tcp.certificate = Bytes::new(kilobytes * 1000);
                let (path, until) = (Path::new(&plan, Seed(7)), Time::from_millis(60_000));
                Scenario { path, groups: vec![group], workload: alone(1000), until }
            };
            let took = |tape: Tape| {
                let flow = tape.reports.first().and_then(FlowReport::completion_time);
                flow.expect("completes").as_millis_f64()
            };
            let stack = Simulation::new(scenario(), &options("iw10", Crypto::Tls, 1), Tape::default());
            let stack = took(stack.expect("can be set up").run().recorder);
            let model = took(headstart_sim::Simulation::new(scenario(), Tape::default()).run().recorder);
            println!("{kilobytes} kB, {rate}, {rtt}: stack {stack:.1} ms, model {model:.1} ms");
            assert!((model / stack - 1.0).abs() <= 0.02, "{kilobytes} kB: {model} ms, {stack} ms");
        }
    }
}
