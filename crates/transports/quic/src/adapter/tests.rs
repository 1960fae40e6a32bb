//! Windows and rates stay within bounds for any sequence of reports, hostile peers' included.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use headstart_startup::history::Record;
use headstart_startup::prior::{Access, Hint};
use headstart_units::{Ratio, Span};
use noq_proto::Side;
use noq_proto::congestion::Controller as _;
use proptest::prelude::*;

use super::*;
use crate::choice::Choice;
use crate::gates::Gates;
use crate::last_encrypted::Level;
use crate::store::{Sharded, Store, client_key};

const PEER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// Reports of a stack, in any order.
#[derive(Clone, Debug)]
enum Event {
    /// So many packets of a size leave, as data or not.
    Send {
        count: u8,
        bytes: u16,
        is_data: bool,
    },
    /// Packets at these places among all ever sent are acknowledged, for the first time or not.
    Ack {
        from: u16,
        count: u8,
        app_limited: bool,
    },
    /// Packets at these places are lost.
    Lose {
        from: u16,
        count: u8,
        persistent: bool,
    },
    Mark,
    Spurious,
    Blocked,
    Mtu(u16),
    Wait(u32),
    /// The peer's port changes.
    Clone,
    Expect(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (1..20_u8, 30..1500_u16, any::<bool>()).prop_map(|(count, bytes, is_data)| Event::Send { count, bytes, is_data }),
        4 => (1..40_u8).prop_map(|count| Event::Send { count, bytes: 1200, is_data: true }),
        6 => (0..400_u16, 1..40_u8, any::<bool>()).prop_map(|(from, count, app_limited)| Event::Ack { from, count, app_limited }),
        2 => (0..400_u16, 1..40_u8, any::<bool>()).prop_map(|(from, count, persistent)| Event::Lose { from, count, persistent }),
        1 => Just(Event::Mark),
        1 => Just(Event::Spurious),
        1 => Just(Event::Blocked),
        1 => (1200..1452_u16).prop_map(Event::Mtu),
        4 => (0..100_000_u32).prop_map(Event::Wait),
        1 => Just(Event::Clone),
        1 => any::<u64>().prop_map(Event::Expect),
    ]
}

/// An absurd record and hint.
fn shared(choice: Choice, gates: Gates, now: Instant, rate: u64, rtt: u64) -> Arc<Shared> {
    let store = Arc::new(Sharded::new(10));
    let mut rules = crate::shared::Rules::new(Side::Server, choice);
    rules.epoch = crate::Epoch::new(now, Time::from_millis(1));
    let record = Record {
        btl_bw: Rate::from_bytes_per_sec(rate),
        rt_prop: Span::from_nanos(rtt),
        window: Bytes::new(rate),
        ..Record::default()
    };
    let (_, lease) = store.open(client_key(PEER.into()));
    store.close(lease, headstart_startup::history::RecordUpdate::Replace(record));
    rules.common_mut().store = Some(store);
    rules.common_mut().gates = gates;
    let shared = Shared::new(Arc::new(rules), (PEER, 443).into(), None, client_key(PEER.into()), 0, None);
    shared.set_peer_parameters(
        Some(Hint { bandwidth: Rate::from_bytes_per_sec(rate), access: Access::Lte }),
        Some(rate),
    );
    shared
}

/// Packets as the stack remembers them: number, time, size.
type Sent = Vec<(u64, Instant, u16)>;

fn play(choice: Choice, events: &[Event], rate: u64, rtt: u64) {
    #[expect(clippy::disallowed_methods, reason = "an instant cannot be made in any other way")]
    let mut now = Instant::now();
    let shared = shared(choice, Gates::OPEN, now, rate, rtt);
    let mut adapter = Adapter::new(Arc::clone(&shared), now, 1200, true);
    let (mut sent, mut number, mut in_flight): (Sent, u64, u64) = (vec![], 0, 0);
    for event in events {
        match *event {
            Event::Send { count, bytes, is_data } => {
                for _ in 0..count {
                    let level = if is_data { Level::Data } else { Level::Handshake };
                    shared.last_encrypted.set(level, number);
                    adapter.on_packet_sent(now, bytes, number);
                    sent.push((number, now, bytes));
                    in_flight += u64::from(bytes);
                    number += 1 + number % 3;
                }
            }
            Event::Lose { from, count, persistent } => {
                let lost: Sent = sent.iter().skip(from.into()).take(count.into()).copied().collect();
                for &(number, _, bytes) in &lost {
                    adapter.on_packet_lost(bytes, number, now);
                    in_flight = in_flight.saturating_sub(bytes.into());
                }
                if let Some(&(number, at, _)) = lost.last() {
                    adapter.on_congestion_event(now, at, persistent, false, 0, number);
                }
            }
            Event::Mark => adapter.on_congestion_event(now, now, false, true, 0, number),
            Event::Spurious => adapter.on_spurious_congestion_event(),
            Event::Blocked => adapter.on_cwnd_limited(),
            Event::Mtu(mtu) => adapter.on_mtu_update(mtu),
            Event::Wait(micros) => now += Duration::from_micros(micros.into()),
            Event::Expect(bytes) => crate::Handle(Arc::clone(&shared)).expect(bytes),
            // As the stack does it, except that its `RttEstimator` cannot be built outside of it.
            Event::Ack { from, count, app_limited } => {
                let acked: Sent = sent.iter().skip(from.into()).take(count.into()).copied().collect();
                let time = |at| shared.rules.epoch.time(at);
                for &(number, at, bytes) in &acked {
                    let (bytes, smoothed) = (Bytes::new(bytes.into()), Span::from_millis(50));
                    adapter.acked(time(at), bytes, number, app_limited, || smoothed);
                    in_flight = in_flight.saturating_sub(bytes.get());
                }
                let left = Bytes::new(in_flight);
                adapter.end_of_acks(time(now), left, app_limited, acked.last().map(|(number, ..)| *number));
            }
            Event::Clone => adapter = adapter.clone(),
        }
        assert!(adapter.window() >= 2_400, "{event:?}: {}", adapter.window());
        assert!(adapter.window() <= 1 << 41, "{event:?}: {}", adapter.window());
        assert_ne!(adapter.metrics().pacing_rate, Some(0), "{event:?}");
        let metrics = [adapter.metrics(), adapter.compute_metrics().into()]
            .map(|it| (it.congestion_window, it.ssthresh, it.pacing_rate, it.bandwidth_estimate));
        assert_eq!(metrics[0], metrics[1], "{event:?}: {:?}", adapter.cached_metrics);
        assert_eq!(adapter.window(), metrics[0].0, "{event:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn no_reported_event_makes_a_window_or_a_rate_absurd(
        events in proptest::collection::vec(event(), 1..200),
        which in 0..64_usize,
        rate in prop_oneof![Just(0), Just(1), 1..10_000_000_u64, Just(u64::MAX)],
        rtt in prop_oneof![Just(0), Just(1), 1..1_000_000_000_u64, Just(u64::MAX)],
    ) {
        let choices: Vec<Choice> = Choice::all().filter(|choice| choice.scheme().is_some()).collect();
        play(choices[which % choices.len()], &events, rate, rtt);
    }
}

/// One flow for every scheme, from handshake to end: none stalls.
#[test]
fn every_scheme_lets_a_flow_finish() {
    for choice in Choice::all().filter(|choice| choice.scheme().is_some()) {
        let mut events = vec![
            Event::Send { count: 2, bytes: 1200, is_data: false },
            Event::Wait(50_000),
            Event::Ack { from: 0, count: 2, app_limited: true },
            Event::Expect(100_000),
        ];
        for round in 0..20 {
            events.push(Event::Send { count: 5, bytes: 1200, is_data: true });
            events.push(Event::Wait(10_000));
            events.push(Event::Ack { from: 2 + round * 5, count: 5, app_limited: false });
        }
        play(choice, &events, 3_125_000, 50_000_000);
    }
}

/// An adapter whose handshake took `rtt`, with a record and a hint of `rate` over just that.
fn after_handshake(scheme: &str, gates: Gates, rate: Rate, rtt: Duration) -> (Arc<Shared>, Adapter, Instant) {
    #[expect(clippy::disallowed_methods, reason = "an instant cannot be made in any other way")]
    let begun = Instant::now();
    let span = crate::epoch::span(rtt);
    let choice = Choice::find(scheme).expect("carried");
    let shared = shared(choice, gates, begun, rate.as_bytes_per_sec(), span.as_nanos());
    let mut adapter = Adapter::new(Arc::clone(&shared), begun, 1200, true);
    shared.last_encrypted.set(Level::Handshake, 0);
    adapter.on_packet_sent(begun, 1200, 0);
    let now = begun + rtt;
    let time = |at| shared.rules.epoch.time(at);
    adapter.acked(time(begun), Bytes::new(1200), 0, true, || span);
    adapter.end_of_acks(time(now), Bytes::ZERO, true, Some(0));
    shared.last_encrypted.set(Level::Data, 1);
    (shared, adapter, now)
}

/// RFC 9002 §7.3.2: the recovery period is over with an ack of what was sent in it. A loss from
/// before it may be found later.
#[test]
fn a_loss_from_before_a_cut_is_no_second_cut_where_it_is_found_after_recovery() {
    let rtt = Duration::from_millis(50);
    let (shared, mut adapter, now) = after_handshake("iw10", Gates::OPEN, Rate::from_mbit_per_sec(10), rtt);
    crate::Handle(Arc::clone(&shared)).expect(1_000_000);
    for number in 1..=8 {
        adapter.on_packet_sent(now, 1200, number);
    }
    let mut lose = |number: u64, sent: Instant, found: Instant| {
        adapter.on_packet_lost(1200, number, found);
        adapter.on_congestion_event(found, sent, false, false, 0, number);
        if number == 2 {
            adapter.on_packet_sent(found + rtt / 10, 1200, 9);
            adapter.on_packet_sent(found + rtt / 10, 1200, 10);
            let at = shared.rules.epoch.time(found + rtt / 10);
            adapter.acked(at, Bytes::new(1200), 9, false, || crate::epoch::span(rtt));
            adapter.end_of_acks(shared.rules.epoch.time(found + rtt), Bytes::new(1200), false, Some(9));
        }
        adapter.window()
    };
    let (cut, later) = (lose(2, now, now + rtt), lose(8, now, now + rtt * 2 + rtt / 10));
    assert!(cut < 12_000 && later >= cut, "{cut} and {later} of 12 000 bytes");
    let again = lose(10, now + rtt + rtt / 10, now + rtt * 3);
    assert!(again < later, "{again}: what was sent after the cut is cut for anew");
}

/// RFC 9438 §4.9.2 is for losses that were none. A copy repairs one that was.
#[test]
fn a_cut_is_undone_if_the_lost_arrive_after_all_but_not_if_copies_may_have_arrived_for_them() {
    let rtt = Duration::from_millis(50);
    let windows = |copies: u64| {
        let (shared, mut adapter, now) =
            after_handshake("iw10", Gates::OPEN, Rate::from_mbit_per_sec(10), rtt);
        crate::Handle(Arc::clone(&shared)).expect(1_000_000);
        (1..=8).for_each(|number| adapter.on_packet_sent(now, 1200, number));
        (0..copies).for_each(|_| adapter.driver.sender.on_copied(Bytes::new(1200)));
        let before = adapter.window();
        adapter.on_packet_lost(1200, 2, now + rtt);
        adapter.on_congestion_event(now + rtt, now, false, false, 1200, 2);
        let cut = adapter.window();
        adapter.on_spurious_congestion_event();
        (before, cut, adapter.window())
    };
    let (before, cut, after) = windows(0);
    assert!(cut < before && after == before, "{before}, {cut}, {after}");
    let (_, cut, after) = windows(1);
    assert_eq!(after, cut);
}

#[test]
fn on_a_path_shorter_than_the_gate_every_scheme_runs_slow_start_and_reports_the_gate() {
    use crate::gates::{Arm, NothingToGain};
    use crate::start_report::Source;
    let short = Gates::default().shortest_rtt;
    let (below, at) = (Duration::from_nanos(short.as_nanos() - 1), Duration::from_nanos(short.as_nanos()));
    for scheme in ["wise-start", "s-cubic", "careful-resume", "halfback", "jump-start", "blitzstart"] {
        for (gates, rtt, is_gated) in
            [(Gates::default(), below, true), (Gates::default(), at, false), (Gates::OPEN, below, false)]
        {
            let (shared, mut adapter, now) =
                after_handshake(scheme, gates, Rate::from_mbit_per_sec(1_000), rtt);
            crate::Handle(Arc::clone(&shared)).expect(100_000);
            adapter.on_packet_sent(now, 1200, 1);
            let report = crate::Handle(Arc::clone(&shared)).report();
            assert_eq!(
                report.nothing_to_gain == Some(NothingToGain::ShortPath),
                is_gated,
                "{scheme}: {report}"
            );
            assert_eq!(report.arm == Arm::Ineligible, is_gated, "{scheme}: {report}");
            assert_eq!(report.to_string().contains(" nothing_to_gain=short-path"), is_gated, "{report}");
            if is_gated {
                assert_eq!((report.burst, report.pace), (Bytes::new(12_000), None), "{scheme}: {report}");
                assert_eq!(adapter.metrics().congestion_window, 12_000, "{scheme}");
            }
        }
    }
    // A record and a hint of two packets are not used on a longer path either.
    let rate = Rate::from_mbit_per_sec(5);
    for scheme in ["wise-start", "s-cubic", "careful-resume", "blitzstart"] {
        let (shared, mut adapter, now) = after_handshake(scheme, Gates::default(), rate, at * 2);
        adapter.on_packet_sent(now, 1200, 1);
        let report = crate::Handle(shared).report();
        assert_eq!((report.arm, report.source), (Arm::Ineligible, Source::Nothing), "{scheme}: {report}");
        assert!(report.planned >= Bytes::new(12_000), "{scheme}: {report}");
        assert!(report.to_string().contains("nothing"), "{scheme}: {report}");
        assert!(adapter.metrics().congestion_window >= 12_000, "{scheme}");
    }
    // Slow start itself reports no such reason.
    let (shared, mut adapter, now) =
        after_handshake("iw10", Gates::default(), Rate::from_mbit_per_sec(1_000), below);
    adapter.on_packet_sent(now, 1200, 1);
    assert_eq!(crate::Handle(shared).report().nothing_to_gain, None);
}

#[test]
fn a_response_within_the_initial_window_is_not_paced_until_there_is_more_to_send() {
    use crate::gates::NothingToGain;
    let rtt = Duration::from_millis(50);
    for (announced, gates, is_small) in
        [(11_000, Gates::default(), true), (12_000, Gates::default(), false), (11_000, Gates::OPEN, false)]
    {
        let rate = Rate::from_mbit_per_sec(25);
        let (shared, mut adapter, now) = after_handshake("s-cubic", gates, rate, rtt);
        let handle = crate::Handle(Arc::clone(&shared));
        handle.expect(announced);
        let pace = rate.as_bytes_per_sec();
        for number in 0..9 {
            adapter.on_packet_sent(now, 1200, 1 + number);
            let rate = adapter.metrics().pacing_rate.expect("a rate");
            assert_eq!(rate > pace * 10, is_small, "{announced} bytes, packet {number}: {rate}");
        }
        let reason = is_small.then_some(NothingToGain::InitialWindow);
        assert_eq!(handle.report().nothing_to_gain, reason, "{announced} bytes");
        handle.expect(100_000);
        assert_eq!(adapter.metrics().pacing_rate, Some(pace), "{announced} bytes and more");
    }
}

/// 833 packets: Halfback would take nine round trips, slow start takes seven. With 250 packets on a
/// path that holds 52 its copies would delay the rest.
#[test]
fn a_response_that_slow_start_sends_as_fast_is_left_to_it() {
    use crate::gates::NothingToGain;
    let rtt = Duration::from_millis(50);
    for (scheme, announced, mbit, gates, is_left) in [
        ("halfback", 1_000_000, 25, Gates::default(), true),
        ("halfback", 300_000, 25, Gates::default(), false),
        ("halfback", 300_000, 10, Gates::default(), true),
        ("halfback", 130_000, 10, Gates::default(), false),
        ("halfback", 1_000_000, 25, Gates::OPEN, false),
        ("jump-start", 1_000_000, 25, Gates::default(), false),
    ] {
        let rate = Rate::from_mbit_per_sec(mbit);
        let (shared, mut adapter, now) = after_handshake(scheme, gates, rate, rtt);
        let handle = crate::Handle(Arc::clone(&shared));
        handle.expect(announced);
        adapter.on_packet_sent(now, 1200, 1);
        let report = handle.report();
        let reason = is_left.then_some(NothingToGain::LongAnswer);
        assert_eq!(report.nothing_to_gain, reason, "{scheme}, {announced} bytes: {report}");
        assert_eq!(
            report.source == crate::start_report::Source::Nothing,
            is_left,
            "{scheme}, {announced} bytes: {report}"
        );
        assert_eq!(report.pace.is_none(), is_left, "{scheme}, {announced} bytes: {report}");
        assert_eq!(adapter.metrics().congestion_window == 12_000, is_left, "{scheme}, {announced} bytes");
    }
}

/// A server's tickets, tokens and settings leave between the first ack and the request. A low rate
/// keeps the bucket small until a paced flight begins. At it, the first packet of the flight would
/// wait 5 ms for the tokens they took, longer than a whole answer on a short path.
#[test]
fn the_first_packet_of_a_paced_flight_does_not_wait_after_small_packets() {
    let mbit = Rate::from_mbit_per_sec(25);
    for small in [0, 1, 4, 8] {
        let (_shared, mut adapter, now) =
            after_handshake("s-cubic", Gates::default(), mbit, Duration::from_millis(50));
        let wait = |adapter: &Adapter, tokens: f64| {
            let rate = adapter.metrics().pacing_rate.expect("it is paced") as f64;
            (1200.0 - tokens).max(0.0) / rate
        };
        // The stack's bucket at 1.9 packets per 10 ms: all packets leave at once.
        let mut tokens: f64 = 1200.0 * 1.9;
        for number in 0..small {
            adapter.on_packet_sent(now, 400, 1 + number);
            tokens = (tokens - 400.0).max(0.0);
        }
        let waited = wait(&adapter, tokens);
        assert!(waited < 10e-6, "after {small} small packets a full one waits {waited} s");
        adapter.on_packet_sent(now, 1200, 100);
        let rate = adapter.metrics().pacing_rate.expect("it is paced");
        assert!(rate <= mbit.as_bytes_per_sec(), "after {small} small packets: {rate}");
    }
}

/// Ends of a connection, after its last acknowledgement.
#[derive(Clone, Copy, Debug)]
enum End {
    /// The stack drops the controller.
    Drop,
    /// The application finishes with the connection's state.
    Finish,
    /// Every acknowledgement was published.
    Published,
}

/// A long answer, with packets in flight at every acknowledgement, and at the end too unless it
/// `is_complete`. Gives the record, the report, and the time of the last acknowledgement.
fn long_answer(end: End, is_complete: bool) -> (Record, crate::StartReport, Time) {
    let rate = Rate::from_mbit_per_sec(25);
    let (shared, mut adapter, begun) =
        after_handshake("wise-start", Gates::OPEN, rate, Duration::from_millis(50));
    let time = |at| shared.rules.epoch.time(at);
    let sent_at = |number: u64| begun + Duration::from_micros(384 * number);
    let handle = crate::Handle(Arc::clone(&shared));
    let (packets, mut published) = (600, 0);
    // 50 ms at 384 us for each packet, which are the link's 25 Mbit/s at first and less later on.
    for number in 0..packets + 130 {
        if number < packets {
            adapter.on_packet_sent(sent_at(number), 1200, 1 + number);
        }
        let Some(acked) = number.checked_sub(130).filter(|acked| is_complete || acked + 9 < packets) else {
            continue;
        };
        let now = sent_at(number) + Duration::from_micros(acked);
        adapter.acked(time(sent_at(acked)), Bytes::new(1200), 1 + acked, false, || Span::from_millis(50));
        let in_flight = adapter.driver.sender.ledger().in_flight();
        let before = handle.report().last_at;
        adapter.end_of_acks(time(now), in_flight, false, Some(1 + acked));
        published += u64::from(handle.report().last_at != before);
        if matches!(end, End::Published) {
            adapter.driver.on_other_loss(time(now));
        }
    }
    let last_ack_at = adapter.driver.sender.last_ack_at();
    match end {
        End::Drop => {}
        End::Finish => handle.update(Some(adapter.clone_box())),
        End::Published => published = 0,
    }
    assert!(published < 10, "{end:?}: the account was locked at {published} acknowledgements");
    if matches!(end, End::Drop) {
        drop(adapter);
    } else {
        handle.finish();
    }
    let (known, _) = shared.connection.rules.store().expect("it keeps records").open(shared.connection.key);
    (known.expect("a record").record, handle.report(), last_ack_at)
}

#[test]
fn without_a_lock_for_each_acknowledgement_the_record_is_as_of_the_last() {
    for is_complete in [true, false] {
        let (record, report, last_ack_at) = long_answer(End::Published, is_complete);
        assert_eq!((record.saved_at, report.last_at), (last_ack_at, last_ack_at));
        for end in [End::Drop, End::Finish] {
            let ended = long_answer(end, is_complete);
            assert_eq!((ended.0, ended.1.tally), (record, report.tally), "{end:?}, complete: {is_complete}");
            assert_eq!(ended.1.to_string(), report.to_string(), "{end:?}, complete: {is_complete}");
        }
    }
}

/// The stack keeps the old path's controller after the peer's port has changed, and drops it later.
#[test]
fn the_controller_of_an_old_path_changes_nothing_at_its_end() {
    let rate = Rate::from_mbit_per_sec(25);
    let (shared, mut old, now) = after_handshake("iw10", Gates::OPEN, rate, Duration::from_millis(50));
    let time = |at| shared.rules.epoch.time(at);
    for number in 1..=4 {
        old.on_packet_sent(now, 1200, number);
    }
    let ack = |adapter: &mut Adapter, number, millis| {
        adapter.acked(time(now), Bytes::new(1200), number, false, || Span::from_millis(50));
        let in_flight = adapter.driver.sender.ledger().in_flight();
        adapter.end_of_acks(time(now + Duration::from_millis(millis)), in_flight, false, Some(number));
    };
    ack(&mut old, 1, 50);
    ack(&mut old, 2, 51);
    let mut new = old.clone();
    new.on_packet_sent(now + Duration::from_millis(52), 1200, 5);
    ack(&mut new, 3, 60);
    new.driver.publish();
    let handle = crate::Handle(Arc::clone(&shared));
    let delivered = handle.report().tally.delivered;
    assert_eq!(delivered, Bytes::new(3_600));
    drop(old);
    assert_eq!(handle.report().tally.delivered, delivered);
    drop(new);
    let (known, _) = shared.connection.rules.store().expect("it keeps records").open(shared.connection.key);
    assert!(handle.report().migrated && known.is_some_and(|known| known.record.saved_at == Time::ZERO));
}

/// A client that vanished is sent probes, at 1, 3 and 7 probe timeouts.
#[test]
fn a_connection_whose_client_is_gone_takes_no_share_until_it_answers() {
    let rtt = Duration::from_millis(50);
    let (shared, mut adapter, mut now) =
        after_handshake("s-cubic", Gates::default(), Rate::from_mbit_per_sec(25), rtt);
    let store = Arc::clone(shared.connection.rules.store.as_ref().expect("a store"));
    let live = || {
        let (known, lease) = store.open(client_key(PEER.into()));
        store.close(lease, headstart_startup::history::RecordUpdate::Keep);
        known.expect("a record").live
    };
    now += Duration::from_secs(10);
    adapter.on_packet_sent(now, 1200, 1);
    assert_eq!(live(), 1, "idle before: it counts");
    for (after, number, expected) in [(200, 2, 1), (600, 3, 0), (1400, 4, 0)] {
        adapter.on_packet_sent(now + Duration::from_millis(after), 1200, number);
        assert_eq!(live(), expected, "after {after} ms");
    }
    now += Duration::from_millis(1500);
    let time = |at| shared.rules.epoch.time(at);
    adapter.acked(time(now), Bytes::new(1200), 4, false, || Span::from_millis(50));
    adapter.end_of_acks(time(now), Bytes::new(3600), false, Some(4));
    assert_eq!(live(), 1, "it answered");
    adapter.on_packet_sent(now + Duration::from_secs(20), 1200, 5);
    assert_eq!(live(), 0);
    crate::Handle(Arc::clone(&shared)).finish();
    drop(adapter);
    assert_eq!(live(), 0, "its share is given back once");
}

/// Connections that ask for nothing take nothing.
#[test]
fn a_share_of_a_record_and_of_hints_begins_with_the_first_flight() {
    use headstart_adapter::limits::Policy;
    let (rate, rtt) = (Rate::from_mbit_per_sec(25), Duration::from_millis(50));
    for scheme in ["wise-start", "blitzstart"] {
        let (shared, mut adapter, now) = after_handshake(scheme, Gates::default(), rate, rtt);
        let (rules, key) = (&shared.connection.rules, shared.connection.key);
        let store = rules.store().expect("it keeps records");
        let live = || {
            let (known, lease) = store.open(key);
            store.close(lease, headstart_startup::history::RecordUpdate::Keep);
            known.expect("a record").live
        };
        assert_eq!((live(), rules.limits.in_use()), (0, Rate::ZERO), "{scheme}: idle");
        // Another connection begins meanwhile.
        let (_, other) = store.open(key);
        crate::Handle(Arc::clone(&shared)).expect(500_000);
        adapter.on_packet_sent(now, 1200, 1);
        assert_eq!(live(), 2, "{scheme}: both have begun");
        let pace = shared.connection.report().pace.expect("it is paced");
        if scheme == "wise-start" {
            assert_eq!(pace.as_bytes_per_sec(), rate.as_bytes_per_sec(), "twice of a half");
        } else {
            assert_eq!(rules.limits.in_use(), rate);
            assert!(pace <= Policy::default().per_connection);
        }
        store.close(other, headstart_startup::history::RecordUpdate::Keep);
        crate::Handle(Arc::clone(&shared)).finish();
        drop(adapter);
        assert_eq!((live(), rules.limits.in_use()), (0, Rate::ZERO), "{scheme}: given back");
    }
}

#[test]
fn no_first_flight_is_paced_beyond_the_cap_of_a_connection() {
    let cap = headstart_adapter::limits::Policy::default().per_connection;
    for scheme in ["wise-start", "s-cubic", "blitzstart"] {
        let rate = Rate::from_mbit_per_sec(5_000);
        let (shared, mut adapter, now) =
            after_handshake(scheme, Gates::default(), rate, Duration::from_millis(20));
        crate::Handle(Arc::clone(&shared)).expect(50_000_000);
        adapter.on_packet_sent(now, 1200, 1);
        let Some(pace) = shared.connection.report().pace else {
            panic!("{scheme}: {}", shared.connection.report())
        };
        assert!(pace <= cap && pace >= cap * Ratio::percent(90), "{scheme}: {pace}");
    }
}

/// Headstart leaves paths below 10 ms to slow start.
#[test]
fn a_connection_that_headstart_leaves_to_slow_start_is_not_treated() {
    use crate::gates::{Arm, NothingToGain};
    for (millis, is_treated) in [(5, false), (9, false), (11, true), (50, true)] {
        let rate = Rate::from_mbit_per_sec(25);
        let (shared, mut adapter, now) =
            after_handshake("headstart", Gates::default(), rate, Duration::from_millis(millis));
        crate::Handle(Arc::clone(&shared)).expect(500_000);
        adapter.on_packet_sent(now, 1200, 1);
        let report = shared.connection.report();
        assert_eq!(report.arm == Arm::Treatment, is_treated, "{millis} ms: {report}");
        assert_eq!(report.nothing_to_gain == Some(NothingToGain::ShortPath), !is_treated, "{millis} ms");
    }
}
