//! Windows stay within bounds for any sequence of reports, hostile peers' included.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use headstart_adapter::store::client_key;
use headstart_adapter::{Epoch, Gates, Sharded, Store};
use headstart_startup::catalogue;
use headstart_startup::history::{Record, RecordUpdate};
use headstart_startup::prior::{Access, Hint};
use proptest::prelude::*;
use quinn_proto::congestion::Controller as _;

use super::*;
use crate::choice::Choice;
use crate::handle::Handle;
use crate::setup::ServerSetup;

const PEER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const SIZE: u16 = 1_200;

/// Reports of a stack, in any order.
#[derive(Clone, Debug)]
enum Event {
    /// A batch of so many packets leaves, the last of them of that size.
    Send {
        full: u8,
        last: u16,
    },
    /// The packets at these places among all ever sent are acknowledged.
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
    Mtu(u16),
    Wait(u32),
    /// The peer's port changes.
    Clone,
    Expect(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0..10_u8, 1..1201_u16).prop_map(|(full, last)| Event::Send { full, last }),
        6 => (0..400_u16, 1..40_u8, any::<bool>())
            .prop_map(|(from, count, app_limited)| Event::Ack { from, count, app_limited }),
        2 => (0..400_u16, 1..40_u8, any::<bool>())
            .prop_map(|(from, count, persistent)| Event::Lose { from, count, persistent }),
        1 => Just(Event::Mark),
        1 => (1200..1452_u16).prop_map(Event::Mtu),
        4 => (0..100_000_u32).prop_map(Event::Wait),
        1 => Just(Event::Clone),
        1 => any::<u64>().prop_map(Event::Expect),
    ]
}

/// An adapter with an absurd record and hint, and its connection's handle.
fn adapter(scheme: &str, gates: Gates, now: Instant, rate: u64, rtt: Span) -> (Adapter, Handle) {
    let store = Arc::new(Sharded::new(10));
    let record = Record {
        btl_bw: Rate::from_bytes_per_sec(rate),
        rt_prop: rtt,
        window: Bytes::new(rate),
        ..Record::default()
    };
    let (_, lease) = store.open(client_key(PEER.into()));
    store.close(lease, RecordUpdate::Replace(record));
    let base = quinn_proto::ServerConfig::with_crypto(Arc::new(NoCrypto));
    let setup = ServerSetup::new(base, scheme).expect("carried").history(store).gates(gates).seed(1);
    let setup = setup.epoch(Epoch::new(now, Time::from_millis(1)));
    let hint = Hint { bandwidth: Rate::from_bytes_per_sec(rate), access: Access::Lte };
    let (factory, handle) = setup.factory((PEER, 443).into(), Some(hint));
    let controller = factory.build(now, SIZE).into_any();
    (*controller.downcast::<Adapter>().expect("it makes nothing else"), handle)
}

/// A configuration needs sessions, which these tests never make.
struct NoCrypto;

impl quinn_proto::crypto::ServerConfig for NoCrypto {
    fn initial_keys(
        &self,
        _: u32,
        _: &quinn_proto::ConnectionId,
    ) -> Result<quinn_proto::crypto::Keys, quinn_proto::crypto::UnsupportedVersion> {
        Err(quinn_proto::crypto::UnsupportedVersion)
    }
    fn retry_tag(&self, _: u32, _: &quinn_proto::ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &quinn_proto::transport_parameters::TransportParameters,
    ) -> Box<dyn quinn_proto::crypto::Session> {
        unreachable!("no connection is made")
    }
}

fn play(scheme: &str, events: &[Event], rate: u64, rtt: Span) {
    #[expect(clippy::disallowed_methods, reason = "an instant cannot be made in any other way")]
    let mut now = Instant::now();
    let (mut adapter, handle) = adapter(scheme, Gates::OPEN, now, rate, rtt);
    let mut mtu = SIZE;
    // Departure, size and fate of all packets; those below 64 bytes are not in flight.
    let mut sent: Vec<(Instant, u16, bool)> = vec![];
    let mut in_flight = 0;
    for event in events {
        let settled = |sent: &mut Vec<(Instant, u16, bool)>, from: u16, count: u8| {
            let chosen = sent.iter_mut().skip(from.into()).take(count.into()).filter(|it| it.2);
            chosen.map(|it| (it.0, std::mem::replace(&mut it.2, false)).0).zip(0_u32..).last().map(|it| it.0)
        };
        let open = |sent: &[(Instant, u16, bool)], from: u16, count: u8| -> Vec<(Instant, u16)> {
            let chosen = sent.iter().skip(from.into()).take(count.into()).filter(|it| it.2);
            chosen.map(|it| (it.0, it.1)).collect()
        };
        match *event {
            Event::Send { full, last } => {
                let sizes = std::iter::repeat_n(mtu, full.into()).chain([last.min(mtu)]);
                let before = sent.len();
                sent.extend(sizes.map(|size| (now, size, size >= 64)));
                let batch: u64 = sent[before..].iter().map(|it| u64::from(it.1)).sum();
                in_flight += sent[before..].iter().filter(|it| it.2).map(|it| u64::from(it.1)).sum::<u64>();
                adapter.on_sent(now, batch, sent.len() as u64);
            }
            // As quinn does it, except that its `RttEstimator` cannot be built outside of it.
            Event::Ack { from, count, app_limited } => {
                let acked = open(&sent, from, count);
                settled(&mut sent, from, count);
                for &(at, size) in &acked {
                    let time = adapter.sent_clock.time(at);
                    adapter.acked(time, Bytes::new(size.into()), app_limited, || Span::from_millis(50));
                    in_flight -= u64::from(size);
                }
                adapter.on_end_acks(now, in_flight, app_limited, Some(0));
            }
            Event::Lose { from, count, persistent } => {
                let lost = open(&sent, from, count);
                settled(&mut sent, from, count);
                let bytes: u64 = lost.iter().map(|it| u64::from(it.1)).sum();
                in_flight -= bytes;
                if let Some(&(at, _)) = lost.last() {
                    adapter.on_congestion_event(now, at, persistent, bytes);
                }
            }
            Event::Mark => adapter.on_congestion_event(now, now, false, 0),
            Event::Mtu(size) => {
                mtu = size;
                adapter.on_mtu_update(mtu);
            }
            Event::Wait(micros) => now += Duration::from_micros(micros.into()),
            Event::Clone => adapter = adapter.clone(),
            Event::Expect(bytes) => handle.expect(bytes),
        }
        assert!(adapter.window() > 2_400, "{event:?}: {}", adapter.window());
        assert!(adapter.window() <= 1 << 41, "{event:?}: {}", adapter.window());
        assert_eq!(adapter.window(), adapter.compute_window(), "{event:?}: kept as it is");
    }
    drop(adapter);
    assert!(!handle.report().to_string().is_empty());
}

fn carried() -> Vec<&'static str> {
    let families = catalogue::families().iter().map(|family| family.about().name);
    families.filter(|name| Choice::find(name).is_ok()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_reported_event_makes_a_window_absurd(
        events in proptest::collection::vec(event(), 1..150),
        which in 0..64_usize,
        rate in prop_oneof![Just(0), Just(1), 1..10_000_000_u64, Just(u64::MAX)],
        rtt in prop_oneof![Just(0), Just(1), 1..1_000_000_000_u64, Just(u64::MAX)],
    ) {
        let schemes = carried();
        play(schemes[which % schemes.len()], &events, rate, Span::from_nanos(rtt));
    }
}

/// An adapter with a record of 25 Mbit/s over 50 ms, whose handshake took as long.
fn after_handshake(scheme: &str) -> (Adapter, Handle, Instant) {
    #[expect(clippy::disallowed_methods, reason = "an instant cannot be made in any other way")]
    let begun = Instant::now();
    let (mut adapter, handle) = adapter(scheme, Gates::default(), begun, 3_125_000, Span::from_millis(50));
    adapter.on_sent(begun, 2_400, 1);
    let now = begun + Duration::from_millis(50);
    for _ in 0..2 {
        let at = adapter.sent_clock.time(begun);
        adapter.acked(at, Bytes::new(1_200), true, || Span::from_millis(333));
    }
    adapter.on_end_acks(now, 0, true, Some(1));
    (adapter, handle, now)
}

/// 0.8 windows are reported for a window in a round trip: quinn sends 1.25 times what it is told.
#[test]
fn a_flight_paced_over_a_round_trip_is_reported_as_four_fifths_of_its_window() {
    let (mut adapter, _, now) = after_handshake("s-cubic");
    assert_eq!(adapter.window(), 125_001);
    adapter.on_sent(now, 12_000, 9);
    assert_eq!(adapter.controller().phase(), "paced");
    assert_eq!(adapter.window(), 125_001, "as long as it is not in use");
    adapter.on_sent(now, 120_000, 109);
    assert_eq!(adapter.window(), 132_000 + 4_800 + 1, "four packets more than are in flight");
    adapter.on_sent(now, 24_000, 129);
    assert_eq!(adapter.window(), 156_251, "the scheme's own window at last");
}

#[test]
fn what_is_not_in_flight_leaves_the_account() {
    let (mut adapter, _, now) = after_handshake("iw10");
    let later = |millis| now + Duration::from_millis(millis);
    adapter.on_sent(now, 1_200, 0);
    // An acknowledgement of many ranges: quinn does not count it as in flight.
    adapter.on_sent(later(1), 400, 1);
    adapter.on_sent(later(2), 1_200, 2);
    assert_eq!(adapter.driver.sender.ledger().in_flight(), Bytes::new(2_800));
    for millis in [0, 2] {
        let at = adapter.sent_clock.time(later(millis));
        adapter.acked(at, Bytes::new(1_200), false, || Span::from_millis(50));
    }
    adapter.on_end_acks(later(52), 0, false, Some(2));
    assert_eq!(adapter.driver.sender.ledger().in_flight(), Bytes::ZERO);
    assert_eq!(adapter.tally().sent, Bytes::new(2_400));
    assert_eq!(adapter.tally().lost, Bytes::ZERO);
}

#[test]
fn lost_bytes_are_those_of_the_oldest_packets() {
    let (mut adapter, _, now) = after_handshake("iw10");
    let later = |millis| now + Duration::from_millis(millis);
    for millis in 0..4 {
        adapter.on_sent(later(millis), 2_400, 2 * millis + 1);
    }
    let at = adapter.sent_clock.time(later(3));
    adapter.acked(at, Bytes::new(1_200), false, || Span::from_millis(50));
    adapter.on_end_acks(later(53), 7 * 1_200, false, Some(6));
    adapter.on_congestion_event(later(53), later(0), false, 2_400);
    assert_eq!(adapter.tally().lost, Bytes::new(2_400));
    let oldest = adapter.driver.sender.ledger().oldest().map(|packet| packet.number);
    assert_eq!(oldest, Some(2), "the first of the second batch");
    assert_eq!(adapter.driver.sender.ledger().in_flight(), Bytes::new(5 * 1_200));
}

#[test]
fn a_record_is_written_when_the_last_controller_is_dropped() {
    let (mut adapter, handle, now) = after_handshake("iw10");
    let mut at = now;
    for _ in 0..15 {
        adapter.on_sent(at, 12_000, 0);
        let sent = adapter.sent_clock.time(at);
        at += Duration::from_millis(50);
        for _ in 0..10 {
            adapter.acked(sent, Bytes::new(1_200), false, || Span::from_millis(50));
        }
        adapter.on_end_acks(at, 0, false, Some(0));
    }
    let exported = adapter.clone_box();
    drop(adapter);
    let outcome = |handle: &Handle| handle.report().record_outcome;
    assert_eq!(outcome(&handle), headstart_adapter::start_report::RecordOutcome::Open);
    drop(exported);
    assert_eq!(outcome(&handle), headstart_adapter::start_report::RecordOutcome::Saved);
    assert!(!handle.report().migrated, "a clone that was only looked at is no migration");
}

/// Connections that share the record of the peer.
fn live(handle: &Handle) -> u32 {
    let store = handle.0.0.rules.store().expect("a store");
    let (known, lease) = store.open(client_key(PEER.into()));
    store.close(lease, RecordUpdate::Keep);
    known.expect("a record").live
}

/// A client that vanished is sent probes, at 1, 3 and 7 probe timeouts.
#[test]
fn a_connection_whose_client_is_gone_takes_no_share_until_it_answers() {
    let (mut adapter, handle, mut now) = after_handshake("s-cubic");
    now += Duration::from_secs(10);
    adapter.on_sent(now, 1_200, 1);
    assert_eq!(live(&handle), 1, "idle before: it counts");
    for (after, number, expected) in [(200, 2, 1), (600, 3, 0), (1_400, 4, 0)] {
        adapter.on_sent(now + Duration::from_millis(after), 1_200, number);
        assert_eq!(live(&handle), expected, "after {after} ms");
    }
    let probe = adapter.sent_clock.time(now + Duration::from_millis(1_400));
    now += Duration::from_millis(1_500);
    adapter.acked(probe, Bytes::new(1_200), false, || Span::from_millis(50));
    adapter.on_end_acks(now, 3_600, false, Some(4));
    assert_eq!(live(&handle), 1, "it answered");
    adapter.on_sent(now + Duration::from_secs(20), 1_200, 5);
    assert_eq!(live(&handle), 0);
    drop(adapter);
    assert_eq!(live(&handle), 0, "its share is given back once");
}
