//! Properties of every element, for any arrivals and any times of calls.

use std::collections::BTreeSet;
use std::sync::Arc;

use headstart_net::burst_loss;
use headstart_net::jitter::Order;
use headstart_net::option_filter::{self, Action};
use headstart_net::trace_link::AtEnd;
use headstart_net::{
    AnyElement, DropReason, Element, ElementPlan, Limit, Link, ManagedLink, Output, Packet, PushResult,
    Queue, QueueDiscipline, Seed, Trace, TraceLink, delay, duplicate, loss, policer,
};
use headstart_units::{Bytes, Packets, Rate, Ratio, Span, Time};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbered {
    number: u64,
    size: Bytes,
    ecn_capable: bool,
    is_l4s: bool,
    marked: bool,
    flow: u64,
    has_option: bool,
}

impl Packet for Numbered {
    fn size(&self) -> Bytes {
        self.size
    }
    fn is_ecn_capable(&self) -> bool {
        self.ecn_capable
    }
    fn mark_congestion_experienced(&mut self) {
        self.marked = true;
    }
    fn is_l4s(&self) -> bool {
        self.is_l4s
    }
    fn flow_key(&self) -> u64 {
        self.flow
    }
    fn has_ip_option(&self) -> bool {
        self.has_option
    }
    fn priority(&self) -> u8 {
        (self.flow % 5) as u8
    }
}

/// A queue to be built repeatedly.
#[derive(Clone, Copy, Debug)]
enum QueueKind {
    DropTail,
    CoDel,
    Red(u64),
    Pie(u64),
    FqCoDel(u64),
    DualPi2,
    Priority,
}

impl QueueKind {
    fn build<P: Packet>(self, rate: Rate, limit: Limit) -> Queue<P> {
        match self {
            Self::DropTail => Queue::drop_tail(limit),
            Self::CoDel => Queue::codel(limit),
            Self::Red(seed) => Queue::red(rate, limit, seed),
            Self::Pie(seed) => QueueDiscipline::Pie.queue(rate, limit, seed),
            Self::FqCoDel(seed) => QueueDiscipline::FqCoDel.queue(rate, limit, seed),
            Self::DualPi2 => QueueDiscipline::DualPi2.queue(rate, limit, 0),
            Self::Priority => QueueDiscipline::Priority.queue(rate, limit, 0),
        }
    }
}

/// An element to be built repeatedly.
#[derive(Clone, Debug)]
enum Recipe {
    Link(Rate, Span, Limit),
    ManagedLink(Rate, Span, Limit, QueueKind),
    TraceLink(Arc<Trace>, AtEnd, Span, Limit, QueueKind),
    Part(ElementPlan, u64),
}

impl Recipe {
    fn build(&self) -> AnyElement<Numbered> {
        match self.clone() {
            Self::Link(rate, delay, limit) => AnyElement::Link(Link::new(rate, delay, limit)),
            Self::ManagedLink(rate, delay, limit, kind) => {
                AnyElement::ManagedLink(Box::new(ManagedLink::new(rate, delay, kind.build(rate, limit))))
            }
            Self::TraceLink(trace, at_end, delay, limit, kind) => {
                let queue = kind.build(trace.mean_rate(), limit);
                AnyElement::TraceLink(Box::new(TraceLink::new(trace, at_end, delay, queue)))
            }
            Self::Part(part, seed) => part.build(Seed(seed)),
        }
    }

    /// Limit of waiting packets and bytes; zero without a queue.
    fn limit(&self) -> Limit {
        match self {
            Self::Link(.., limit)
            | Self::ManagedLink(_, _, limit, _)
            | Self::TraceLink(_, _, _, limit, _) => *limit,
            _ => Limit { packets: 0, bytes: Bytes::ZERO },
        }
    }

    fn may_lose_for(&self, reason: DropReason) -> bool {
        let kind = match self {
            Self::Link(..) => QueueKind::DropTail,
            Self::ManagedLink(.., kind) | Self::TraceLink(.., kind) => *kind,
            Self::Part(part, _) => return part.drops() == Some(reason),
        };
        match kind {
            QueueKind::DropTail | QueueKind::Priority => reason == DropReason::QueueFull,
            QueueKind::CoDel | QueueKind::FqCoDel(_) => {
                reason == DropReason::QueueFull || reason == DropReason::CoDel
            }
            QueueKind::Red(_) => reason == DropReason::QueueFull || reason == DropReason::Red,
            QueueKind::Pie(_) => reason == DropReason::QueueFull || reason == DropReason::Pie,
            QueueKind::DualPi2 => reason == DropReason::QueueFull || reason == DropReason::DualPi2,
        }
    }

    /// Packets of a lane keep their order, packets of different lanes need not; `None`: none does.
    fn lane(&self, packet: &Numbered) -> Option<u64> {
        match self {
            Self::Part(ElementPlan::Jitter(jitter), _) if jitter.order == Order::Free => None,
            Self::ManagedLink(.., kind) | Self::TraceLink(.., kind) => match kind {
                QueueKind::FqCoDel(_) => Some(packet.flow),
                QueueKind::DualPi2 => Some(u64::from(packet.is_l4s)),
                QueueKind::Priority => Some(u64::from(packet.priority().min(3))),
                _ => Some(0),
            },
            _ => Some(0),
        }
    }
}

fn rates() -> impl Strategy<Value = Rate> {
    prop_oneof![
        (1..200_u64).prop_map(Rate::from_mbit_per_sec),
        (1..10_000_000_u64).prop_map(Rate::from_bytes_per_sec)
    ]
}

fn spans() -> impl Strategy<Value = Span> {
    prop_oneof![Just(Span::ZERO), (0..50_000_000_u64).prop_map(Span::from_nanos)]
}

fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (0..60_u64).prop_map(|packets| Limit::packets(Packets::new(packets))),
        (0..60_000_u64).prop_map(|bytes| Limit::bytes(Bytes::new(bytes))),
        Just(Limit::NONE),
    ]
}

fn queues() -> impl Strategy<Value = QueueKind> {
    prop_oneof![
        Just(QueueKind::DropTail),
        Just(QueueKind::CoDel),
        any::<u64>().prop_map(QueueKind::Red),
        any::<u64>().prop_map(QueueKind::Pie),
        any::<u64>().prop_map(QueueKind::FqCoDel),
        Just(QueueKind::DualPi2),
        Just(QueueKind::Priority),
    ]
}

fn policers() -> impl Strategy<Value = policer::Params> {
    let burst = prop_oneof![0..100_000_u64, Just(u64::MAX)].prop_map(Bytes::new);
    (prop_oneof![rates(), Just(Rate::ZERO)], burst).prop_map(|(rate, burst)| policer::Params { rate, burst })
}

fn ratios() -> impl Strategy<Value = Ratio> {
    (0..110_u32).prop_map(Ratio::percent)
}

fn traces() -> impl Strategy<Value = Arc<Trace>> {
    prop::collection::vec(0..60_u32, 1..30).prop_map(|mut millis| {
        millis.sort_unstable();
        millis.push(60);
        Arc::new(Trace::from_millis(millis).expect("in order"))
    })
}

/// Every part that is no link, with any values: also those that a plan's check refuses.
fn parts() -> impl Strategy<Value = ElementPlan> {
    let order = prop_oneof![Just(Order::Kept), Just(Order::Free)];
    let action = prop_oneof![Just(Action::Drop), Just(Action::Remove)];
    let changes =
        prop::collection::vec((any::<u32>().prop_map(|at| Time::from_nanos(at.into())), ratios()), 0..3);
    prop_oneof![
        Just(delay::NonCapableRouter.into()),
        spans().prop_map(|delay| delay::Params { delay }.into()),
        (spans(), order).prop_map(|(bound, order)| ElementPlan::jitter(bound, order)),
        (ratios(), changes).prop_map(|(share, changes)| loss::Params { share, changes }.into()),
        policers().prop_map(ElementPlan::Policer),
        [ratios(), ratios(), ratios(), ratios()].prop_map(|[enter, leave, loss_when_good, loss_when_bad]| {
            burst_loss::Params { enter, leave, loss_when_good, loss_when_bad }.into()
        }),
        ratios().prop_map(|share| duplicate::Params { share }.into()),
        (action, ratios()).prop_map(|(action, share)| option_filter::Params { action, share }.into()),
        (prop::collection::vec(spans(), 1..9), spans()).prop_map(|(delays, offset)| {
            headstart_net::delay_trace::Params { delays: delays.into(), offset }.into()
        }),
    ]
}

#[test]
fn every_part_is_drawn() {
    let mut runner = TestRunner::deterministic();
    let drawn: BTreeSet<&str> = (0..500)
        .map(|_| {
            parts().new_tree(&mut runner).expect("nothing is rejected").current().names().expect("no link").0
        })
        .collect();
    assert_eq!(drawn.len(), ElementPlan::PARTS.len(), "{drawn:?}");
}

fn recipes() -> impl Strategy<Value = Recipe> {
    let at_end = prop_oneof![Just(AtEnd::Repeat), Just(AtEnd::Stop)];
    prop_oneof![
        1 => (rates(), spans(), limits()).prop_map(|(rate, delay, limit)| Recipe::Link(rate, delay, limit)),
        1 => (rates(), spans(), limits(), queues())
            .prop_map(|(rate, delay, limit, kind)| Recipe::ManagedLink(rate, delay, limit, kind)),
        1 => (traces(), at_end, spans(), limits(), queues()).prop_map(|(trace, at_end, delay, limit, kind)| {
            Recipe::TraceLink(trace, at_end, delay, limit, kind)
        }),
        7 => (parts(), any::<u64>()).prop_map(|(part, seed)| Recipe::Part(part, seed)),
    ]
}

/// Arrivals in order of time.
fn arrivals() -> impl Strategy<Value = Vec<(Time, Numbered)>> {
    let gap = prop_oneof![4 => Just(0), 8 => 0..2_000_000_u64, 1 => 0..500_000_000_u64];
    let size = prop_oneof![4 => Just(1500), 1 => Just(40), 1 => 1..1500_u64];
    let flow = prop_oneof![Just(1), 0..5_u64];
    prop::collection::vec((gap, size, any::<bool>(), any::<bool>(), flow), 1..200).prop_map(|arrivals| {
        let mut now = Time::ZERO;
        let arrive = |((gap, size, ecn_capable, is_l4s, flow), number)| {
            now += Span::from_nanos(gap);
            let (size, is_l4s) = (Bytes::new(size), is_l4s && ecn_capable);
            let has_option = number % 3 == 0;
            (now, Numbered { number, size, ecn_capable, is_l4s, marked: false, flow, has_option })
        };
        arrivals.into_iter().zip(0..).map(arrive).collect()
    })
}

fn any_nanos() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..100_000_000_u64, Just(u64::MAX)]
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Outcome {
    delivered: Vec<(Time, Numbered)>,
    dropped: Vec<(Time, Numbered, DropReason)>,
}

/// Drives an element as the simulator does: departures, then arrivals, `look` before each.
fn drive(
    element: &mut AnyElement<Numbered>,
    arrivals: &[(Time, Numbered)],
    mut look: impl FnMut(&mut AnyElement<Numbered>, Time),
) -> Outcome {
    let mut outcome = Outcome::default();
    for (at, packet) in arrivals {
        pop_until(element, *at, &mut outcome);
        look(element, *at);
        match element.push(*at, *packet) {
            PushResult::Accepted => assert!(element.next_at() >= *at, "what is inside comes out later"),
            PushResult::Passed(packet) => outcome.delivered.push((*at, packet)),
            PushResult::Dropped(packet, reason) => outcome.dropped.push((*at, packet, reason)),
        }
    }
    pop_until(element, Time::from_nanos(u64::MAX - 1), &mut outcome);
    outcome
}

fn pop_until(element: &mut AnyElement<Numbered>, end: Time, outcome: &mut Outcome) {
    while element.next_at() <= end {
        let now = element.next_at();
        while let Some(output) = element.pop(now) {
            match output {
                Output::Delivered(packet) => outcome.delivered.push((now, packet)),
                Output::Dropped(packet, reason) => outcome.dropped.push((now, packet, reason)),
            }
        }
        assert!(element.next_at() > now, "after pop nothing is due");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn every_packet_comes_out_once_or_is_dropped_once_or_is_still_inside(
        recipe in recipes(),
        arrivals in arrivals(),
    ) {
        let mut element = recipe.build();
        let outcome = drive(&mut element, &arrivals, |_, _| {});
        let mut seen = vec![0; arrivals.len()];
        for packet in outcome.delivered.iter().map(|(_, packet)| packet) {
            let (_, sent) = arrivals[packet.number as usize];
            prop_assert!(!packet.marked || packet.ecn_capable);
            prop_assert_eq!(Numbered { marked: false, ..*packet }, sent, "nothing but the mark has changed");
            seen[packet.number as usize] += 1;
        }
        for (_, packet, reason) in &outcome.dropped {
            prop_assert!(recipe.may_lose_for(*reason), "{:?}", reason);
            seen[packet.number as usize] += 1;
        }
        let inside = seen.iter().filter(|times| **times == 0).count() as u64;
        match recipe {
            Recipe::Part(part, _) if part.copies() => {
                prop_assert!(seen.iter().all(|times| *times == 1 || *times == 2));
            }
            Recipe::TraceLink(_, AtEnd::Stop, ..) => {
                prop_assert!(seen.iter().all(|times| *times <= 1));
                let waiting = element.queue(Time::from_nanos(u64::MAX - 1)).0;
                prop_assert!((waiting..=waiting + 1).contains(&inside), "those that wait and one in transit");
            }
            _ => prop_assert!(seen.iter().all(|times| *times == 1)),
        }
    }

    #[test]
    fn packets_keep_their_order_except_through_reordering_elements(
        recipe in recipes(),
        arrivals in arrivals(),
    ) {
        let delivered = drive(&mut recipe.build(), &arrivals, |_, _| {}).delivered;
        prop_assert!(delivered.is_sorted_by_key(|(at, _)| *at), "time does not go back");
        for lane in 0..5 {
            let lane = delivered.iter().filter(|(_, packet)| recipe.lane(packet) == Some(lane));
            prop_assert!(lane.is_sorted_by_key(|(_, packet)| packet.number));
        }
    }

    #[test]
    fn the_queue_is_never_above_its_limit(recipe in recipes(), arrivals in arrivals()) {
        let limit = recipe.limit();
        drive(&mut recipe.build(), &arrivals, |element, now| {
            let (packets, bytes) = element.queue(now);
            assert!(packets <= limit.packets && bytes <= limit.bytes, "{packets} packets, {bytes}");
        });
    }

    #[test]
    fn the_same_seed_gives_the_same_outcome_and_polling_changes_nothing(
        recipe in recipes(),
        arrivals in arrivals(),
    ) {
        let once = drive(&mut recipe.build(), &arrivals, |_, _| {});
        let again = drive(&mut recipe.build(), &arrivals, |_, _| {});
        prop_assert_eq!(&once, &again);
        let looked = drive(&mut recipe.build(), &arrivals, |element, now| {
            let _ = element.queue(now);
            assert_eq!(element.pop(now), None);
        });
        prop_assert_eq!(&once, &looked);
    }

    #[test]
    fn no_link_is_faster_than_its_rate_over_any_interval(
        rate in rates(),
        delay in spans(),
        limit in limits(),
        kind in queues(),
        arrivals in arrivals(),
    ) {
        for recipe in [Recipe::Link(rate, delay, limit), Recipe::ManagedLink(rate, delay, limit, kind)] {
            let delivered = drive(&mut recipe.build(), &arrivals, |_, _| {}).delivered;
            for (index, (begin, _)) in delivered.iter().enumerate() {
                let mut bytes = Bytes::ZERO;
                for (end, packet) in &delivered[index + 1..] {
                    bytes += packet.size;
                    prop_assert!(end.since(*begin) >= bytes / rate);
                }
            }
        }
    }

    /// RFC 2697 §3: no interval passes more than burst plus rate x interval, in whole packets.
    #[test]
    fn no_policer_passes_more_than_burst_and_rate(
        params in policers(),
        arrivals in arrivals(),
    ) {
        let delivered = drive(&mut Recipe::Part(params.into(), 0).build(), &arrivals, |_, _| {}).delivered;
        prop_assert!(!params.rate.is_zero() || delivered.is_empty());
        for (index, (begin, _)) in delivered.iter().enumerate() {
            let mut bytes = Bytes::ZERO;
            for (end, packet) in &delivered[index..] {
                bytes += packet.size;
                // Both quotients of the bucket are rounded to nanoseconds.
                let filled = params.rate * (end.since(*begin) + Span::from_nanos(1));
                prop_assert!(bytes <= params.burst + filled, "{bytes} in {}", end.since(*begin));
            }
        }
    }

    /// Conversely: if packets are small compared with the burst, a steady excess gets the whole
    /// rate.
    #[test]
    fn a_policer_passes_its_rate(rate in 100_000..10_000_000_u64, burst in 3_000..50_000_u64) {
        let params = policer::Params { rate: Rate::from_bytes_per_sec(rate), burst: Bytes::new(burst) };
        // Twice the rate for ten seconds.
        let count = 10 * 2 * rate / 1500;
        let packet = |number| Numbered {
            number, size: Bytes::new(1500), ecn_capable: false, is_l4s: false, marked: false, flow: 0,
            has_option: false,
        };
        let arrivals: Vec<_> =
            (0..count).map(|n| (Time::from_nanos(n * 10_000_000_000 / count), packet(n))).collect();
        let delivered = drive(&mut Recipe::Part(params.into(), 0).build(), &arrivals, |_, _| {}).delivered.len() as u64;
        let expected = (10 * rate + burst) / 1500;
        prop_assert!(delivered.abs_diff(expected) <= 3, "{delivered} of {expected}");
    }

    #[test]
    fn no_trace_link_sends_more_than_its_opportunities_over_any_interval(
        trace in traces(),
        limit in limits(),
        kind in queues(),
        arrivals in arrivals(),
    ) {
        let recipe = Recipe::TraceLink(Arc::clone(&trace), AtEnd::Repeat, Span::ZERO, limit, kind);
        let delivered = drive(&mut recipe.build(), &arrivals, |_, _| {}).delivered;
        // Opportunities from time zero up to and at a millisecond.
        let period = u64::from(*trace.as_millis().last().expect("not empty"));
        let lines = trace.as_millis().len() as u64;
        let opportunities = |ms: u64| {
            let in_round = trace.as_millis().iter().filter(|at| u64::from(**at) <= ms % period).count() as u64;
            ms / period * lines + in_round
        };
        for (index, (begin, _)) in delivered.iter().enumerate() {
            let begin = begin.as_nanos() / 1_000_000;
            let before = if begin == 0 { 0 } else { opportunities(begin - 1) };
            let mut cost = 0;
            for (end, packet) in &delivered[index..] {
                cost += packet.size.get() + 4;
                let count = opportunities(end.as_nanos() / 1_000_000) - before;
                // All but one byte of the first packet may have been sent before the interval.
                prop_assert!(cost <= count * 1504 + 1503);
            }
        }
    }

    #[test]
    fn a_managed_link_with_a_plain_buffer_is_a_link(
        rate in rates(),
        delay in spans(),
        limit in limits(),
        arrivals in arrivals(),
    ) {
        let mut lengths = [vec![], vec![]];
        let recipes = [Recipe::Link(rate, delay, limit), Recipe::ManagedLink(rate, delay, limit, QueueKind::DropTail)];
        let [link, managed] = [0, 1].map(|index| {
            drive(&mut recipes[index].build(), &arrivals, |element, now| lengths[index].push(element.queue(now)))
        });
        prop_assert_eq!(link, managed);
        prop_assert_eq!(&lengths[0], &lengths[1]);
    }

    /// Times that go back are a fault of the driver; the element must not panic.
    #[test]
    fn no_element_panics_or_creates_packets_for_any_times(
        recipe in recipes(),
        calls in prop::collection::vec((0..5, any_nanos()), 1..100),
    ) {
        let mut element = recipe.build();
        let (mut pushed, mut out) = (0, 0);
        for (call, nanos) in calls {
            let now = Time::from_nanos(nanos);
            match call {
                0 | 1 => {
                    let size = Bytes::new(1500);
                    let (ecn_capable, is_l4s) = (call == 0, pushed % 2 == 0 && call == 0);
                    let packet =
                        Numbered { number: pushed, size, ecn_capable, is_l4s, marked: false, flow: pushed % 3, has_option: false };
                    pushed += 1;
                    out += u64::from(element.push(now, packet) != PushResult::Accepted);
                }
                2 | 3 => out += u64::from(element.pop(now).is_some()),
                _ => prop_assert!(element.queue(now).0 <= pushed),
            }
            let _ = element.next_at();
            let most = if matches!(&recipe, Recipe::Part(part, _) if part.copies()) { 2 * pushed } else { pushed };
            prop_assert!(out <= most);
        }
    }
}

proptest! {
    #[test]
    fn a_printed_trace_parses_to_itself(mut millis in prop::collection::vec(any::<u32>(), 1..200)) {
        millis.sort_unstable();
        prop_assume!(millis[millis.len() - 1] > 0);
        let trace = Trace::from_millis(millis).expect("in order");
        prop_assert_eq!(trace.to_string().parse::<Trace>(), Ok(trace));
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in prop::collection::vec(prop_oneof![Just(b'\n'), b'0'..=b'9', any::<u8>()], 0..60)) {
        match Trace::from_bytes(&text) {
            Ok(trace) => prop_assert_eq!(Trace::from_bytes(trace.to_string().as_bytes()), Ok(trace)),
            Err(error) => prop_assert!(error.to_string().contains("expected")),
        }
    }
}
