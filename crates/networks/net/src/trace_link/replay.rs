//! The link compared with a replay that processes every opportunity of its trace in turn.

use proptest::prelude::*;

use super::*;
use crate::element::DropReason;
use crate::element::testing::{Numbered, packet};
use crate::limit::Limit;
use crate::queue::{CoDel, Dropped, codel, red};
use headstart_units::{Packets, Rate};

/// A packet's result: time, number, marked or not, and the reason of a drop.
type Event = (Time, u64, bool, Option<DropReason>);

/// The source's loop in its own shape: a queue, a packet in transit, a count of bytes.
struct Replay {
    schedule: Vec<u64>,
    repeats: bool,
    next_delivery: usize,
    base_millis: u64,
    finished: bool,
    queue: Queue<Queued<Numbered>>,
    in_transit: Option<Numbered>,
    bytes_to_transmit: i64,
    delay: Span,
    events: Vec<Event>,
}

impl Replay {
    fn next_delivery_time(&self) -> u64 {
        (self.schedule[self.next_delivery] + self.base_millis) * 1_000_000
    }

    fn rationalize(&mut self, now: Time) {
        while !self.finished && self.next_delivery_time() <= now.as_nanos() {
            let this_delivery_time = Time::from_nanos(self.next_delivery_time());
            self.next_delivery += 1;
            if self.next_delivery == self.schedule.len() {
                self.next_delivery = 0;
                self.base_millis += self.schedule[self.schedule.len() - 1];
                self.finished = !self.repeats;
            }
            let mut bytes_left: i64 = 1504;
            while bytes_left > 0 {
                if self.in_transit.is_none() {
                    let mut dropped = Dropped::new();
                    let next = self.queue.dequeue(this_delivery_time, &mut dropped);
                    while let Some((Queued { packet, .. }, reason)) = dropped.pop(Time::NEVER) {
                        self.events.push((this_delivery_time, packet.number, packet.marked, Some(reason)));
                    }
                    let Some(Queued { packet, .. }) = next else { break };
                    self.bytes_to_transmit = packet.size.get() as i64 + 4;
                    self.in_transit = Some(packet);
                }
                self.bytes_to_transmit -= bytes_left;
                bytes_left = 0;
                if self.bytes_to_transmit <= 0 {
                    bytes_left = -self.bytes_to_transmit;
                    let packet = self.in_transit.take().expect("in transit");
                    self.events.push((this_delivery_time + self.delay, packet.number, packet.marked, None));
                }
            }
        }
    }

    fn push(&mut self, now: Time, packet: Numbered) {
        self.rationalize(now);
        let queued = Queued { packet, since: now, overhead: HEADER };
        if let PushResult::Dropped(Queued { packet, .. }, reason) =
            self.queue.enqueue(now, queued, &mut Dropped::new())
        {
            self.events.push((now, packet.number, packet.marked, Some(reason)));
        }
    }
}

/// Kind of the queue, and its limit.
#[derive(Clone, Debug)]
enum Kind {
    DropTail(Limit),
    CoDel(Limit, u64),
    Red(Limit, u64),
}

impl Kind {
    fn queue(&self) -> Queue<Queued<Numbered>> {
        match *self {
            Self::DropTail(limit) => Queue::drop_tail(limit),
            Self::CoDel(limit, target_millis) => {
                let target = Span::from_millis(target_millis);
                let params = codel::Params { target, interval: target * 20, ..codel::Params::default() };
                Queue::CoDel(CoDel::new(params, limit))
            }
            Self::Red(limit, seed) => {
                let mut params = red::Params::for_rate(Rate::from_mbit_per_sec(12));
                params.weight_shift = 3;
                Queue::Red(red::Red::new(params, limit, seed))
            }
        }
    }
}

fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (0..60_u64).prop_map(|packets| Limit::packets(Packets::new(packets))),
        (0..60_000_u64).prop_map(|bytes| Limit::bytes(Bytes::new(bytes))),
        Just(Limit::NONE),
    ]
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        limits().prop_map(Kind::DropTail),
        (limits(), 1..5_u64).prop_map(|(limit, target)| Kind::CoDel(limit, target)),
        (limits(), any::<u64>()).prop_map(|(limit, seed)| Kind::Red(limit, seed)),
    ]
}

fn traces() -> impl Strategy<Value = Trace> {
    prop::collection::vec(0..40_u32, 1..20).prop_map(|mut millis| {
        millis.sort_unstable();
        let last = millis.len() - 1;
        millis[last] = millis[last].max(1);
        Trace::from_millis(millis).expect("sorted, and the last is not zero")
    })
}

/// Arrivals: the gap before each in nanoseconds (often a whole number of milliseconds, to meet
/// opportunities), size and whether it may be marked.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u64, bool)>> {
    let gap = prop_oneof![
        4 => Just(0),
        4 => 0..3_000_000_u64,
        2 => (0..4_u64).prop_map(|ms| ms * 1_000_000),
        1 => (0..500_u64).prop_map(|ms| ms * 1_000_000),
    ];
    let size = prop_oneof![Just(1500), Just(40), 0..4000_u64];
    prop::collection::vec((gap, size, any::<bool>()), 1..150)
}

/// Runs the link event by event; with `polls_extra`, calls `pop` more often than `next_at` asks.
fn run(link: &mut TraceLink<Numbered>, arrivals: &[(Time, Numbered)], polls_extra: bool) -> Vec<Event> {
    let mut events = vec![];
    let until = |link: &mut TraceLink<Numbered>, end: Time, events: &mut Vec<Event>| {
        while link.next_at() <= end {
            let now = link.next_at();
            while let Some(output) = link.pop(now) {
                events.push(match output {
                    Output::Delivered(packet) => (now, packet.number, packet.marked, None),
                    Output::Dropped(packet, reason) => (now, packet.number, packet.marked, Some(reason)),
                });
            }
            assert!(link.next_at() > now, "pop has given what is due");
        }
    };
    for (at, packet) in arrivals {
        until(link, *at, &mut events);
        if polls_extra {
            let _ = link.queue(*at);
            assert_eq!(link.pop(*at), None);
        }
        if let PushResult::Dropped(packet, reason) = link.push(*at, *packet) {
            events.push((*at, packet.number, packet.marked, Some(reason)));
        }
    }
    until(link, END, &mut events);
    events
}

const END: Time = Time::from_millis(200_000);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_accounting_is_that_of_a_replay_of_every_opportunity(
        trace in traces(),
        at_end in prop_oneof![9 => Just(AtEnd::Repeat), 1 => Just(AtEnd::Stop)],
        delay in prop_oneof![Just(Span::ZERO), Just(Span::from_millis(7))],
        kind in kinds(),
        arrivals in arrivals(),
        polls_extra in any::<bool>(),
    ) {
        let mut now = Time::ZERO;
        let arrivals: Vec<_> = arrivals
            .iter()
            .zip(0..)
            .map(|((gap, size, ecn_capable), number)| {
                now += Span::from_nanos(*gap);
                (now, Numbered { size: Bytes::new(*size), ecn_capable: *ecn_capable, ..packet(number) })
            })
            .collect();
        let mut replay = Replay {
            schedule: trace.as_millis().iter().map(|ms| u64::from(*ms)).collect(),
            repeats: at_end == AtEnd::Repeat,
            next_delivery: 0,
            base_millis: 0,
            finished: false,
            queue: kind.queue(),
            in_transit: None,
            bytes_to_transmit: 0,
            delay,
            events: vec![],
        };
        for (at, packet) in &arrivals {
            replay.push(*at, *packet);
        }
        replay.rationalize(END);
        let mut link = TraceLink::new(Arc::new(trace), at_end, delay, kind.queue());
        let mut events = run(&mut link, &arrivals, polls_extra);
        prop_assert_eq!(link.queue(END), replay.queue.waiting());
        // Both lists hold each packet once; the replay notes departures before the delay.
        events.sort_by_key(|event| event.1);
        replay.events.retain(|event| event.0 <= END);
        replay.events.sort_by_key(|event| event.1);
        prop_assert_eq!(events, replay.events);
    }
}
