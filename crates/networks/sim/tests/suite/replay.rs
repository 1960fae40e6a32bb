//! Messages that are requested at given times on one connection.

use crate::common::{group, scenario, scheme};
use headstart_net::{Limit, PathPlan};
use headstart_sim::record::{MessageReport, SenderTrace};
use headstart_sim::workload::Opener;
use headstart_sim::workload::replay::{From, Message, Replay};
use headstart_sim::{FlowReport, Recorder, Simulation, TcpConfig};
use headstart_startup::base;
use headstart_units::{Bytes, Rate, Span, Time};

#[derive(Debug, Default)]
struct Recording {
    messages: Vec<MessageReport>,
    flows: Vec<FlowReport>,
    unsent: Vec<(Time, u64)>,
}

impl Recorder for Recording {
    fn message(&mut self, report: &MessageReport) {
        self.messages.push(*report);
    }
    fn flow(&mut self, report: &FlowReport) {
        self.flows.push(*report);
    }
    fn sender(&mut self, now: Time, trace: impl FnOnce() -> SenderTrace) {
        self.unsent.push((now, trace().unsent.get()));
    }
}

/// 100 Mbit/s and 100 ms, without queueing.
fn replay(messages: &[(u64, u64)], from: From, opener: Opener) -> Recording {
    replay_with(TcpConfig::default(), messages, from, opener)
}

fn replay_with(tcp: TcpConfig, messages: &[(u64, u64)], from: From, opener: Opener) -> Recording {
    let plan = PathPlan::dumbbell(Rate::from_mbit_per_sec(100), Span::from_millis(100), Limit::NONE);
    let tcp = TcpConfig { receive_window: Bytes::new(1 << 24), ..tcp };
    let group = group(scheme("iw10"), base::Kind::Cubic, tcp);
    let messages = messages
        .iter()
        .map(|(at, bytes)| Message { at: Span::from_millis(*at), bytes: Bytes::new(*bytes) })
        .collect();
    let workload = Box::new(Replay::new(messages, from, 0, opener, Time::from_millis(5)));
    let scenario = scenario(&plan, group, workload, Time::from_millis(60_000));
    Simulation::new(scenario, Recording::default()).run().recorder
}

#[test]
fn messages_are_requested_at_their_times_and_read_in_order() {
    for opener in [Opener::Sender, Opener::Receiver] {
        let heard = replay(&[(0, 1000), (30, 2000), (40, 3000), (800, 4000)], From::Opening, opener);
        let requested: Vec<u64> =
            heard.messages.iter().map(|message| message.requested_at.as_nanos() / 1_000_000).collect();
        assert_eq!(requested, [5, 35, 45, 805], "{opener:?}");
        let sizes: Vec<u64> = heard.messages.iter().map(|message| message.bytes.get()).collect();
        assert_eq!(sizes, [1000, 2000, 3000, 4000]);
        assert_eq!(heard.flows.len(), 1, "closed when the last was read");
        assert_eq!(heard.flows[0].written, Bytes::new(10_000));
    }
}

/// A client's requests before the end of its handshake go with the first one. The server is
/// established one and a half round trips after the SYN. Everything requested until a round trip
/// after the SYN leaves at once.
#[test]
fn requests_during_the_handshake_wait_for_it() {
    let heard = replay(&[(0, 1000), (30, 1000), (60, 1000)], From::Opening, Opener::Receiver);
    for message in &heard.messages {
        let read = message.read_at.as_nanos() / 1_000_000;
        assert!((205..207).contains(&read), "{read}: all after two round trips");
    }
    let first = heard.unsent.first().expect("it was established");
    assert_eq!(*first, (first.0, 3000), "nothing has left when the connection is established");
    assert_eq!(heard.unsent.last().expect("an ack").1, 0);
}

#[test]
fn requests_that_depend_on_the_first_message_follow_its_reading() {
    let heard = replay(&[(0, 1000), (30, 2000), (10, 3000)], From::FirstRead, Opener::Receiver);
    let first = heard.messages[0].read_at;
    let requested: Vec<u64> = heard
        .messages
        .iter()
        .map(|message| message.requested_at.since(first).as_nanos() / 1_000_000)
        .collect();
    assert_eq!(requested, [0, 10, 30], "the first before, the others in the order of their times");
    assert_eq!(heard.messages[1].bytes, Bytes::new(3000));
}

/// Ten segments may leave; five do, and are acknowledged. Fifteen more take one round trip if that
/// has let the window grow, else two.
#[test]
fn application_limited_data_grows_the_window_only_without_validation() {
    for (window_validation, round_trips) in [(true, 2), (false, 1)] {
        let tcp = TcpConfig { window_validation, idle_restart: false, ..TcpConfig::default() };
        let segments = |count: u64| count * tcp.mss.get();
        let heard =
            replay_with(tcp, &[(0, segments(5)), (600, segments(15))], From::Opening, Opener::Receiver);
        let [_, second] = &heard.messages[..] else { panic!("both are read") };
        let took = second.read_at.since(second.requested_at).as_nanos() / 1_000_000;
        assert!((100 * round_trips..100 * round_trips + 5).contains(&took), "{window_validation}: {took} ms");
    }
}
