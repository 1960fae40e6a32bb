//! Connection vectors over a dumbbell: every scheme carries all data of a vector, at its times.

use std::sync::Arc;

use headstart_net::{AnyElement, Delay, Limit, Loss, QueueDiscipline};
use headstart_sim::record::MessageReport;
use headstart_sim::vectors::web::{WebSpec, WebVectors};
use headstart_sim::vectors::{self, Vector};
use headstart_sim::workload::conversations::{ConversationSpec, Conversations};
use headstart_sim::workload::{Mixed, PageReport, Workload};
use headstart_sim::{
    Access, Chain, ChainLink, ChainSpec, FlowReport, Group, PathBuilder, Recorder, Scenario, Seed,
    Simulation, Summary, TcpConfig,
};
use headstart_startup::catalogue;
use headstart_units::{Bytes, Packets, Rate, Ratio, Span, Time};

#[derive(Debug, Default)]
struct Recording {
    epochs: Vec<PageReport>,
    messages: Vec<MessageReport>,
    flows: Vec<FlowReport>,
}

impl Recorder for Recording {
    fn flow(&mut self, report: &FlowReport) {
        self.flows.push(*report);
    }
    fn message(&mut self, report: &MessageReport) {
        self.messages.push(*report);
    }
    fn page(&mut self, report: &PageReport) {
        self.epochs.push(*report);
    }
}

/// Two pairs of hosts, 20 ms and 100 ms apart, or one of 100 ms.
fn run(scheme: &str, vectors: Vec<Vector>, pairs: u16, rate: Rate, until: u64) -> (Recording, Summary) {
    let near = Access { server: Span::from_millis(5), client: Span::from_millis(5) };
    let far = Access { server: Span::ZERO, client: Span::from_millis(50) };
    let hosts = if pairs == 1 { vec![far] } else { vec![near, far] };
    let link = ChainLink {
        rate,
        delay: Span::ZERO,
        limit: Limit::packets(Packets::new(50)),
        discipline: QueueDiscipline::DropTail,
    };
    let spec = ChainSpec { links: vec![link], forward: hosts.clone(), backward: hosts, option_filter: None };
    let Chain { path, .. } = spec.build(|_| None, Seed(1));
    let scheme = catalogue::find(scheme).expect("a scheme").scheme();
    let group = Group::new(scheme, TcpConfig::default());
    let until = Time::from_millis(until);
    let linger = Span::ZERO;
    let spec =
        ConversationSpec { vectors: vectors.into(), until, pairs, parties: 1, linger, size_known: true };
    // Inside of a mixture, so that its tags are tried too.
    let parts: Vec<Box<dyn Workload>> = vec![Box::new(Conversations::new(spec, Seed(2)))];
    let scenario = Scenario {
        path,
        groups: vec![group; 2 * usize::from(pairs)],
        workload: Box::new(Mixed::new(parts)),
        until: until + Span::from_secs(60),
    };
    let finished = Simulation::new(scenario, Recording::default()).run();
    (finished.recorder, finished.summary)
}

fn read(text: &str) -> Vec<Vector> {
    vectors::read::from_bytes(text.as_bytes()).expect("fine")
}

const FAST: Rate = Rate::from_mbit_per_sec(100_000);

fn millis(report: &PageReport) -> u64 {
    (report.ended_at.since(report.began_at).as_millis_f64() + 0.5) as u64
}

/// A round trip of 100 ms on a link so fast that serialisation takes no time.
#[test]
fn the_duration_of_an_epoch_excludes_quiet_times() {
    // A request within one segment, an answer of ten; then the same again after two seconds; then
    // the acceptor sends without a request.
    let vectors =
        read("SEQ 0 3\n> 300\nt 30000\n< 14480\nt 2000000\n> 300\nt 30000\n< 14480\nt 500000\n< 100\n");
    let (heard, summary) = run("iw10", vectors, 1, FAST, 10_000);
    assert_eq!(summary.unfinished, 0);
    let took: Vec<u64> = heard.epochs.iter().map(millis).collect();
    assert_eq!(took, [200, 100, 50], "handshake and both ways; both ways; one way");
    let bytes: Vec<u64> = heard.epochs.iter().map(|epoch| epoch.bytes.get()).collect();
    assert_eq!(bytes, [14_780, 14_780, 100]);
    // The handshake and half a round trip, 30 ms, half a round trip; 2 s; half, 30 ms, half; half a
    // second after its hand-over, half.
    let read_at = |epoch: &PageReport| (epoch.ended_at.as_nanos() + 500_000) / 1_000_000;
    assert_eq!(heard.epochs.iter().map(read_at).collect::<Vec<_>>(), [230, 2360, 2860]);
}

#[test]
fn a_window_of_three_takes_another_round_trip_for_nine_segments() {
    let vectors = || read("SEQ 0 1\n> 300\nt 30000\n< 13032\n");
    let took = |scheme| millis(&run(scheme, vectors(), 1, FAST, 10_000).0.epochs[0]);
    assert_eq!((took("iw10"), took("iw3")), (200, 300));
}

#[test]
fn an_acceptor_may_send_first_and_a_half_without_data_is_not_opened() {
    let (heard, summary) =
        run("iw10", read("SEQ 0 2\n< 50\nt 10000\n> 20\nSEQ 0 1\n< 70\n"), 1, FAST, 10_000);
    assert_eq!((summary.flows, summary.unfinished), (3, 0));
    let mut took: Vec<u64> = heard.epochs.iter().map(millis).collect();
    took.sort_unstable();
    // SYN, SYN-ACK, and with the ack of that one the acceptor is established and sends.
    assert_eq!(took, [50, 200, 200]);
}

#[test]
fn the_ends_of_a_concurrent_connection_do_not_wait_for_each_other() {
    let (heard, summary) = run(
        "iw10",
        read("CONC 0 2 2\nc> 100\nt> 250000\nc> 100\nc< 100\nt< 400000\nc< 100\n"),
        1,
        FAST,
        10_000,
    );
    assert_eq!((heard.epochs.len(), summary.unfinished), (4, 0));
    let mut at: Vec<u64> = heard.epochs.iter().map(|epoch| epoch.ended_at.as_nanos() / 1_000_000).collect();
    at.sort_unstable();
    assert_eq!(at, [150, 200, 300, 450]);
}

/// Connections of one request and one answer, of a segment each, over 50 ms each way that lose so
/// many packets of a hundred at random. Returns the recorder and the number of packets sent.
fn exchange(connections: u64, lost: u32, scheme: &str) -> (Recording, u64) {
    let mut path = PathBuilder::default();
    let mut way = |seed: u64| {
        let loss = path.element("loss", AnyElement::Loss(Loss::new(Ratio::percent(lost), seed)));
        vec![loss, path.element("delay", AnyElement::Delay(Delay::new(Span::from_millis(50))))]
    };
    let (there, back) = (way(1), way(2));
    path.class(there.clone(), back.clone()).class(back, there);
    let text: String = (0..connections).map(|n| format!("SEQ {} 1\n> 300\n< 300\n", n * 10_000)).collect();
    let until = Time::from_millis(connections * 10 + 60_000);
    let linger = Span::ZERO;
    let spec = ConversationSpec {
        vectors: read(&text).into(),
        until,
        pairs: 1,
        parties: 1,
        linger,
        size_known: true,
    };
    let scheme = catalogue::find(scheme).expect("a scheme").scheme();
    let tcp = TcpConfig::default();
    let group = Group::new(scheme, tcp);
    let scenario = Scenario {
        path: path.build(),
        groups: vec![group; 2],
        workload: Box::new(Conversations::new(spec, Seed(2))),
        until: until + Span::from_secs(120),
    };
    let finished = Simulation::new(scenario, Recording::default()).run();
    assert_eq!(finished.summary.unfinished, 0);
    // Every packet crosses one of the elements of loss.
    let sent = finished
        .path
        .packet_counts()
        .filter(|(name, _)| *name == "loss")
        .map(|(_, account)| account.offered)
        .sum();
    (finished.recorder, sent)
}

#[test]
fn a_connection_with_data_in_both_directions_has_one_handshake() {
    let (heard, sent) = exchange(1, 0, "iw10");
    assert_eq!(sent, 7, "SYN, SYN-ACK and its ack; two segments and their acks");
    assert_eq!(millis(&heard.epochs[0]), 200);
    // An acceptor's request to routers has no place in the SYN-ACK here.
    let (heard, sent) = exchange(1, 0, "rcp");
    assert_eq!((sent, millis(&heard.epochs[0])), (8, 200));
}

/// A SYN or a SYN-ACK that is lost costs a second, its ack nothing: the request replaces it. At a
/// loss of one in ten that is 1 - 0.9^2 = 19 % of connections; with two handshakes 41 %.
#[test]
fn a_lost_handshake_is_no_more_likely_than_two_packets_are_to_be_lost() {
    for scheme in ["iw10", "quick-start", "rcp"] {
        let (heard, _) = exchange(2_000, 10, scheme);
        let late = heard.epochs.iter().filter(|epoch| millis(epoch) >= 1_150).count();
        assert!((340..500).contains(&late), "{scheme}: {late} of 2000 took a second longer");
    }
}

#[test]
fn nothing_is_written_after_the_end() {
    let (heard, summary) = run("iw10", read("SEQ 0 2\n> 10\n< 10\nt 9000000\n> 10\n< 10\n"), 1, FAST, 5_000);
    assert_eq!((heard.epochs.len(), summary.unfinished), (1, 0));
}

/// Every scheme carries every unit once, in both directions, on a link that drops.
#[test]
fn all_data_is_delivered_under_every_scheme() {
    let duration = Span::from_secs(20);
    let vectors = || {
        let web = WebVectors::new(WebSpec { largest: Bytes::new(300_000), ..WebSpec::default() }, Seed(9));
        vectors::offered(web.map(short), Bytes::new(12_000_000), duration, Vector::payload)
    };
    // Quiet times of seconds would be cut off at the end.
    fn short(mut vector: Vector) -> Vector {
        vector.units.truncate(2);
        vector
    }
    let sent: u64 = vectors().iter().flat_map(|vector| &vector.units).map(|unit| unit.bytes.get()).sum();
    for entry in catalogue::all() {
        let until = 20_000;
        let (heard, summary) = run(&entry.name, vectors(), 2, Rate::from_mbit_per_sec(10), until);
        assert_eq!(summary.unfinished, 0, "{}", entry.name);
        let read: u64 = heard.messages.iter().map(|message| message.bytes.get()).sum();
        let epochs: u64 = heard.epochs.iter().map(|epoch| epoch.bytes.get()).sum();
        // Starts fill the run to its end; a request that arrived after it is not answered.
        let late: u64 = sent - read;
        assert!(late * 100 < sent, "{}: {late} of {sent} bytes were late", entry.name);
        assert!(epochs <= read && read - epochs < 100_000, "{}", entry.name);
        let written: u64 = heard.flows.iter().map(|flow| flow.written.get()).sum();
        assert_eq!(written, read, "{}", entry.name);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let vectors: Vec<Vector> = WebVectors::new(WebSpec::default(), Seed(4)).take(300).collect();
    let fingerprint =
        || run("jump-start", vectors.clone(), 2, Rate::from_mbit_per_sec(10), 60_000).1.fingerprint;
    assert_eq!(fingerprint(), fingerprint());
    let shared: Arc<[Vector]> = vectors.into();
    assert_eq!(shared.len(), 300);
}
