//! Reports driven by hand: any sequence of them keeps windows within bounds and the ledger right.

use std::net::Ipv4Addr;
use std::time::Duration;

use headstart_adapter::start_report::RecordOutcome;
use headstart_adapter::store::client_key;
use headstart_adapter::{Gates, Handle, Sharded, Store};
use headstart_startup::catalogue;
use headstart_startup::history::{Record, RecordUpdate};
use headstart_startup::prior::{Access, Hint};
use headstart_units::Rate;
use proptest::prelude::*;
use s2n_quic_core::event::builder::{BbrState, SlowStartExitCause};
use s2n_quic_core::packet::number::PacketNumberSpace;
use s2n_quic_core::recovery::bandwidth::{Bandwidth, RateSample};
use s2n_quic_core::time::{Clock as _, NoopClock};

use super::*;
use crate::choice::Choice;
use crate::setup::ServerSetup;

const PEER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const SIZE: u16 = 1_200;

struct Quiet;

impl Publisher for Quiet {
    fn on_slow_start_exited(&mut self, _: SlowStartExitCause, _: u32) {}
    fn on_delivery_rate_sampled(&mut self, _: RateSample) {}
    fn on_pacing_rate_updated(&mut self, _: Bandwidth, _: u32, _: num_rational::Ratio<u64>) {}
    fn on_bbr_state_changed(&mut self, _: BbrState) {}
}

struct NotRandom;

impl Generator for NotRandom {
    fn public_random_fill(&mut self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
    fn private_random_fill(&mut self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

/// A packet that the stack sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Timestamp,
    bytes: u16,
    packet: Packet,
    is_open: bool,
}

/// The part of s2n-quic that calls the controller, in its order.
struct Stack {
    adapter: Adapter,
    handle: Handle,
    now: Timestamp,
    rtt: RttEstimator,
    sent: Vec<Sent>,
}

impl Stack {
    /// With a record of the peer.
    fn new(scheme: &str, gates: Gates, rate: u64, rtt: Span) -> Self {
        let store = Arc::new(Sharded::new(10));
        let record = Record {
            btl_bw: Rate::from_bytes_per_sec(rate),
            rt_prop: rtt,
            window: Bytes::new(rate),
            ..Record::default()
        };
        let (_, lease) = store.open(client_key(PEER.into()));
        store.close(lease, RecordUpdate::Replace(record));
        let hint = Hint { bandwidth: Rate::from_bytes_per_sec(rate), access: Access::Lte };
        let setup = ServerSetup::new(scheme).expect("carried").history(store).gates(gates).seed(1);
        let setup = setup.begins_at(Time::from_millis(1)).hints(move |_| Some(hint));
        let adapter = setup.accept((PEER, 443).into(), SIZE);
        let handle = setup.handle((PEER, 443).into()).expect("it is live");
        let rtt = RttEstimator::new(Duration::from_millis(333));
        Self { adapter, handle, now: NoopClock.get_time(), rtt, sent: vec![] }
    }

    /// A stack after a handshake over 50 ms.
    fn after_handshake(scheme: &str) -> Self {
        let mut stack = Self::new(scheme, Gates::default(), 3_125_000, Span::from_millis(50));
        stack.send(SIZE, None);
        stack.send(SIZE, None);
        stack.wait(50);
        stack.acknowledge(0..2);
        stack
    }

    fn wait(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    fn send(&mut self, bytes: u16, app_limited: Option<bool>) {
        let packet = self.adapter.on_packet_sent(self.now, bytes.into(), app_limited, &self.rtt, &mut Quiet);
        self.sent.push(Sent { at: self.now, bytes, packet, is_open: bytes > 0 });
    }

    /// Data, until window or pacer stops it.
    fn send_all(&mut self, most: usize) -> usize {
        let may_leave = |stack: &Self| {
            let departure = stack.adapter.earliest_departure_time();
            !stack.adapter.is_congestion_limited() && departure.is_none_or(|at| at.has_elapsed(stack.now))
        };
        let begun = self.sent.len();
        while self.sent.len() - begun < most && may_leave(self) {
            self.send(SIZE, Some(false));
        }
        self.sent.len() - begun
    }

    fn settle(&mut self, range: std::ops::Range<usize>) -> Vec<Sent> {
        let end = range.end.min(self.sent.len());
        let chosen = self.sent[range.start.min(end)..end].iter_mut().filter(|it| it.is_open);
        chosen
            .map(|it| {
                it.is_open = false;
                *it
            })
            .collect()
    }

    fn acknowledge(&mut self, range: std::ops::Range<usize>) {
        let acked = self.settle(range);
        self.report(&acked);
    }

    fn report(&mut self, acked: &[Sent]) {
        let Some(newest) = acked.last() else { return };
        let sample = self.now.saturating_duration_since(newest.at).max(Duration::from_micros(1));
        let space = PacketNumberSpace::ApplicationData;
        self.rtt.update_rtt(Duration::ZERO, sample, self.now, true, space);
        self.adapter.on_rtt_update(newest.at, self.now, &self.rtt, &mut Quiet);
        let bytes = acked.iter().map(|it| usize::from(it.bytes)).sum();
        let (adapter, random) = (&mut self.adapter, &mut NotRandom);
        adapter.on_ack(newest.at, bytes, newest.packet, &self.rtt, random, self.now, &mut Quiet);
        if self.adapter.in_flight.is_zero() {
            assert_eq!(self.adapter.driver.sender.ledger().oldest(), None, "wrong guesses do not last");
        }
    }

    fn lose(&mut self, range: std::ops::Range<usize>, is_persistent: bool) {
        for lost in self.settle(range) {
            let (packet, random) = (lost.packet, &mut NotRandom);
            let bytes = lost.bytes.into();
            self.adapter.on_packet_lost(bytes, packet, is_persistent, true, random, self.now, &mut Quiet);
        }
    }

    fn check(&self) {
        let adapter = &self.adapter;
        let open = self.sent.iter().filter(|it| it.is_open);
        let in_flight: u64 = open.clone().map(|it| u64::from(it.bytes)).sum();
        assert_eq!(u64::from(adapter.bytes_in_flight()), in_flight);
        let ledger = adapter.driver.sender.ledger();
        assert!(adapter.congestion_window() >= 2 * u32::from(SIZE), "{}", adapter.congestion_window());
        assert_eq!(adapter.window, adapter.compute_window(), "kept as it is");
        let tally = adapter.tally();
        let settled = tally.delivered + tally.lost + ledger.in_flight();
        assert_eq!(tally.sent, settled, "each packet has one fate");
    }
}

/// Reports of a stack, in any order.
#[derive(Clone, Debug)]
enum Event {
    Send {
        bytes: u16,
        count: u8,
        app_limited: Option<bool>,
    },
    /// The packets at these places are acknowledged at once, but for every one so many.
    Ack {
        from: u16,
        count: u8,
        skip: u8,
    },
    Lose {
        from: u16,
        count: u8,
        is_persistent: bool,
    },
    Discard(u16),
    Mark,
    Mtu(u16),
    Wait(u32),
    Clone,
    Expect(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let limited = prop_oneof![1 => Just(None), 6 => any::<bool>().prop_map(Some)];
    prop_oneof![
        8 => (prop_oneof![3 => Just(SIZE), 1 => 0..1_400_u16], 1..12_u8, limited)
            .prop_map(|(bytes, count, app_limited)| Event::Send { bytes, count, app_limited }),
        6 => (0..300_u16, 1..40_u8, 0..5_u8).prop_map(|(from, count, skip)| Event::Ack { from, count, skip }),
        2 => (0..300_u16, 1..20_u8, any::<bool>())
            .prop_map(|(from, count, is_persistent)| Event::Lose { from, count, is_persistent }),
        1 => (0..300_u16).prop_map(Event::Discard),
        1 => Just(Event::Mark),
        1 => (1_200..1_452_u16).prop_map(Event::Mtu),
        4 => (0..100_000_u32).prop_map(Event::Wait),
        1 => Just(Event::Clone),
        1 => any::<u64>().prop_map(Event::Expect),
    ]
}

fn play(scheme: &str, events: &[Event], rate: u64, rtt: Span) {
    let mut stack = Stack::new(scheme, Gates::OPEN, rate, rtt);
    for event in events {
        match *event {
            Event::Send { bytes, count, app_limited } => {
                for _ in 0..count {
                    stack.send(bytes, app_limited);
                }
            }
            Event::Ack { from, count, skip } => {
                let (mut acked, end) = (vec![], from + u16::from(count));
                for place in (from..end).filter(|place| skip == 0 || place % (u16::from(skip) + 1) != 0) {
                    acked.extend(stack.settle(usize::from(place)..usize::from(place) + 1));
                }
                stack.report(&acked);
            }
            Event::Lose { from, count, is_persistent } => {
                stack.lose(usize::from(from)..usize::from(from) + usize::from(count), is_persistent);
            }
            // Packets of the handshake, and probes, which are never the scheme's.
            Event::Discard(from) => {
                let place = usize::from(from);
                if stack.sent.get(place).is_some_and(|it| !matches!(it.packet, Packet::Data(_))) {
                    let bytes = stack.settle(place..place + 1).iter().map(|it| usize::from(it.bytes)).sum();
                    stack.adapter.on_packet_discarded(bytes, &mut Quiet);
                }
            }
            Event::Mark => stack.adapter.on_explicit_congestion(1, stack.now, &mut Quiet),
            Event::Mtu(size) => stack.adapter.on_mtu_update(size, &mut Quiet),
            Event::Wait(micros) => stack.now += Duration::from_micros(micros.into()),
            Event::Clone => stack.adapter = stack.adapter.clone(),
            Event::Expect(bytes) => {
                stack.handle.expect(bytes);
                stack.adapter.window = stack.adapter.compute_window();
            }
        }
        stack.check();
    }
    drop(stack.adapter);
    assert!(!stack.handle.report().to_string().is_empty());
}

fn carried() -> Vec<&'static str> {
    let families = catalogue::families().iter().map(|family| family.about().name);
    families.filter(|name| Choice::find(name).is_ok()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_sequence_of_reports_makes_a_window_absurd_or_the_ledger_wrong(
        events in proptest::collection::vec(event(), 1..120),
        which in 0..64_usize,
        rate in prop_oneof![Just(0), Just(1), 1..10_000_000_u64, Just(u64::MAX)],
        rtt in prop_oneof![Just(0), Just(1), 1..1_000_000_000_u64, Just(u64::MAX)],
    ) {
        let schemes = carried();
        play(schemes[which % schemes.len()], &events, rate, Span::from_nanos(rtt));
    }
}

#[test]
fn a_known_peer_gets_its_flight_at_the_pace_of_its_record() {
    let mut stack = Stack::after_handshake("s-cubic");
    let begun = stack.now;
    let mut sent = stack.send_all(1_000);
    assert_eq!(sent, 3, "a millisecond early, 1200 bytes each 0.384 ms");
    while stack.now < begun + Duration::from_millis(40) {
        stack.now += Duration::from_micros(100);
        sent += stack.send_all(1_000);
    }
    // 25 Mbit/s for 40 ms, and the packets that leave early.
    assert!((104..=108).contains(&sent), "{sent} packets");
    assert_eq!(stack.adapter.controller().phase(), "paced");
    stack.check();
}

#[test]
fn an_unknown_peer_gets_the_initial_window_at_once() {
    let mut stack = Stack::after_handshake("iw10");
    assert_eq!(stack.send_all(1_000), 10);
    stack.wait(50);
    stack.acknowledge(2..12);
    let mut sent = stack.send_all(1_000);
    assert!((10..=12).contains(&sent), "{sent} at once, and those that leave a millisecond early");
    for _ in 0..20 {
        stack.wait(1);
        sent += stack.send_all(1_000);
    }
    assert_eq!(sent, 20, "slow start doubles it, at 1.25 windows in a round trip");
}

#[test]
fn packets_below_a_gap_are_not_taken_for_delivered() {
    let mut stack = Stack::after_handshake("iw10");
    assert_eq!(stack.send_all(1_000), 10);
    stack.wait(50);
    // The second packet is lost: each acknowledgement covers two.
    for first in [2, 4, 6] {
        let acked: Vec<Sent> = stack.settle(first..first + 2);
        let acked = if first == 2 { &acked[..1] } else { &acked[..] };
        stack.report(acked);
    }
    stack.sent[3].is_open = true;
    let open = stack.adapter.driver.sender.ledger().oldest().map(|packet| packet.number);
    assert_eq!(open, Some(1), "it is the one that is lost");
    stack.lose(3..4, false);
    assert_eq!(stack.adapter.tally().lost, Bytes::new(1_200));
    stack.check();
}

#[test]
fn a_wrong_guess_is_corrected_by_the_loss() {
    let mut stack = Stack::after_handshake("iw10");
    assert_eq!(stack.send_all(1_000), 10);
    stack.wait(50);
    // Packets 0 and 2 arrive: 1 and 2 count as delivered, until 1 is lost.
    let [first, third] = [2, 4].map(|place| stack.settle(place..place + 1)[0]);
    stack.report(&[first, third]);
    let open = |stack: &Stack| stack.adapter.driver.sender.ledger().oldest().map(|packet| packet.number);
    assert_eq!(open(&stack), Some(0));
    stack.lose(3..4, false);
    assert_eq!(open(&stack), Some(3));
    assert_eq!(stack.adapter.tally().lost, Bytes::new(1_200));
    stack.check();
}

#[test]
fn what_is_not_the_schemes_does_not_enter_its_account() {
    let mut stack = Stack::after_handshake("iw10");
    stack.send(0, Some(true));
    stack.send(1_452, Some(true));
    stack.send(900, None);
    assert_eq!(stack.adapter.tally().sent, Bytes::ZERO);
    assert_eq!(stack.adapter.bytes_in_flight(), 2_352);
    stack.adapter.on_packet_discarded(1_452, &mut Quiet);
    assert_eq!(stack.send_all(1_000), 10, "the handshake's packets take no room");
}

/// Acknowledgements often cover a probe of the path's MTU and data that left before it.
#[test]
fn an_acknowledgement_whose_newest_packet_is_a_probe_delivers_the_data_before_it() {
    let mut stack = Stack::after_handshake("iw10");
    stack.send(SIZE, Some(false));
    stack.send(SIZE, Some(false));
    stack.send(1_452, Some(false));
    stack.wait(50);
    stack.acknowledge(2..5);
    assert_eq!(stack.adapter.tally().delivered, Bytes::new(2_400));
    assert_eq!(stack.adapter.driver.sender.ledger().in_flight(), Bytes::ZERO);
}

#[test]
fn a_path_to_which_a_connection_migrated_runs_slow_start_and_writes_no_record() {
    let mut stack = Stack::new("s-cubic", Gates::default(), 3_125_000, Span::from_millis(50));
    stack.send(SIZE, Some(false));
    stack.wait(50);
    stack.acknowledge(0..1);
    assert_eq!(stack.send_all(1_000), 10, "not the record's flight");
    stack.wait(50);
    stack.acknowledge(1..11);
    let Stack { adapter, handle, .. } = stack;
    drop(adapter);
    assert!(handle.report().migrated);
    assert_eq!(handle.report().record_outcome, RecordOutcome::Nothing);
}

#[test]
fn a_record_is_written_when_the_controller_is_dropped() {
    let mut stack = Stack::after_handshake("iw10");
    for _ in 0..4 {
        let begun = stack.sent.len();
        for _ in 0..50 {
            stack.send_all(1_000);
            stack.wait(1);
        }
        stack.acknowledge(begun..stack.sent.len());
    }
    let copy = stack.adapter.clone();
    let Stack { adapter, handle, .. } = stack;
    drop(adapter);
    assert_eq!(handle.report().record_outcome, RecordOutcome::Open);
    drop(copy);
    assert_eq!(handle.report().record_outcome, RecordOutcome::Saved);
}

#[test]
fn a_handle_is_found_while_its_connection_lives() {
    let setup = ServerSetup::new("iw10").expect("carried");
    let peer = (PEER, 443).into();
    let first = setup.accept(peer, SIZE);
    let second = setup.accept(peer, SIZE);
    drop(first);
    assert!(setup.handle(peer).is_some(), "the later connection stays");
    drop(second);
    assert!(setup.handle(peer).is_none());
}

/// A client that vanished is sent probes, at 1, 3 and 7 probe timeouts.
#[test]
fn a_connection_whose_client_is_gone_takes_no_share_until_it_answers() {
    let mut stack = Stack::after_handshake("s-cubic");
    let handle = stack.handle.clone();
    let live = || {
        let store = handle.0.rules.store().expect("a store");
        let (known, lease) = store.open(client_key(PEER.into()));
        store.close(lease, RecordUpdate::Keep);
        known.expect("a record").live
    };
    stack.wait(10_000);
    stack.send(SIZE, Some(false));
    assert_eq!(live(), 1, "idle before: it counts");
    for (wait, expected) in [(200, 1), (400, 0), (800, 0)] {
        stack.wait(wait);
        stack.send(SIZE, Some(false));
        assert_eq!(live(), expected, "after {wait} ms more");
    }
    stack.wait(100);
    stack.acknowledge(5..6);
    assert_eq!(live(), 1, "it answered");
    stack.wait(20_000);
    stack.send(SIZE, Some(false));
    assert_eq!(live(), 0);
    drop(stack);
    assert_eq!(live(), 0, "its share is given back once");
}

#[test]
fn a_packet_keeps_eight_bytes_and_its_number_is_found_beyond_32_bits() {
    assert_eq!(size_of::<Packet>(), 8);
    for end in [0, 1, 1_000, 1 << 32, (1 << 32) + 5, (7 << 32) - 1] {
        for back in [0_u64, 1, 5, 100_000] {
            let whole = u64::saturating_sub(end, back);
            assert_eq!(number(whole as u32, end), whole, "{back} before {end}");
        }
    }
}
