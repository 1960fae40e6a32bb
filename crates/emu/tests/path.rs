//! A path under the virtual clock: whoever asks, and how late, changes nothing.

use headstart_emu::packet::{Content, Headline, Parcel};
use headstart_emu::path::{Outcome, Path};
use headstart_emu::plan::{Law, LinkPlan, Plan};
use headstart_net::Limit;
use headstart_net::burst_loss::Params;
use headstart_net::changing::LinkChange;
use headstart_net::jitter::Order;
use headstart_units::{Bytes, Packets, Rate, Ratio, Span, Time};
use proptest::prelude::*;

fn parcel(number: u64, at: Time, bytes: usize) -> Parcel {
    let content = Content::Datagram { payload: vec![0; bytes], headers: 28, ecn: (number % 2) as u8 };
    Parcel { number, arrived: at, client: 0, content, headline: Headline::default() }
}

/// What can be told apart of an outcome.
fn seen(outcome: &Outcome<Parcel>) -> (u64, Time, String) {
    match outcome {
        Outcome::Out { due, packet } => (packet.number, *due, format!("out, ecn {}", packet.ecn())),
        Outcome::Dropped { at, packet, why } => (packet.number, *at, why.name().to_owned()),
    }
}

fn plan(law: Law, mix: u8) -> Plan {
    let limit = Limit::packets(Packets::new(20));
    let mut plan = Plan::link(Rate::from_mbit_per_sec(10), Span::from_millis(5), limit);
    plan.law = law;
    if mix & 1 > 0 {
        let at = Time::from_millis;
        plan.link_changes = vec![
            (at(20), LinkChange::Rate(Rate::from_mbit_per_sec(3))),
            (at(60), LinkChange::Rate(Rate::ZERO)),
            (at(90), LinkChange::Rate(Rate::from_mbit_per_sec(20))),
            (at(120), LinkChange::Delay(Span::from_millis(1))),
        ];
        plan.loss_changes = vec![(at(100), Ratio::percent(30)), (at(110), Ratio::percent(0))];
    }
    if mix & 2 > 0 {
        plan.trace = Some(std::sync::Arc::new("1\n2\n5\n5\n9\n".parse().expect("a trace")));
        plan.link_changes.clear();
    }
    if mix & 4 > 0 {
        let hop = Limit::bytes(Bytes::new(9000));
        plan.hops = vec![LinkPlan {
            rate: Rate::from_mbit_per_sec(8),
            delay: Span::from_millis(2),
            limit: hop,
            part: None,
        }];
        plan.burst_loss = Some(Params::all_or_nothing(Ratio::percent(2), Ratio::percent(40)));
    }
    if mix & 8 > 0 {
        plan.jitter = Span::from_millis(4);
        plan.order = if mix & 4 > 0 { Order::Free } else { Order::Kept };
        plan.duplicate = Ratio::percent(10);
        plan.loss = Ratio::percent(3);
    }
    plan
}

/// Sends packets of these gaps (us) and sizes through a path that is also asked at other times.
fn run(
    plan: &Plan,
    arrivals: &[(u64, usize)],
    mut ask: impl FnMut(&mut Path<Parcel>, Time, Time, &mut Vec<Outcome<Parcel>>),
) -> Vec<(u64, Time, String)> {
    let mut path = plan.path(|name| name.len() as u64);
    let (mut now, mut outcomes) = (Time::ZERO, vec![]);
    for ((gap, bytes), number) in arrivals.iter().zip(0..) {
        let before = now;
        now += Span::from_micros(*gap);
        ask(&mut path, before, now, &mut outcomes);
        path.arrive(now, parcel(number, now, *bytes), &mut outcomes);
    }
    path.advance(Time::from_millis(1_000_000), &mut outcomes);
    let mut seen: Vec<_> = outcomes.iter().map(seen).collect();
    seen.sort();
    seen
}

proptest! {
    /// One driver asks at every deadline on time; one only when it has a packet to hand over; one at odd times.
    #[test]
    fn early_late_and_odd_askers_see_the_same(
        arrivals in proptest::collection::vec((0_u64..3000, 1_usize..1500), 1..200),
        odd in 1_u64..997,
        law in prop_oneof![Just(Law::DropTail), Just(Law::CoDel), Just(Law::Red)],
        mix in 0_u8..16,
    ) {
        let plan = plan(law, mix);
        let punctual = run(&plan, &arrivals, |path, _, until, out| {
            while path.next_at() < until {
                let at = path.next_at();
                path.advance(at, out);
            }
        });
        let lazy = run(&plan, &arrivals, |_, _, _, _| {});
        let odd = run(&plan, &arrivals, |path, from, until, out| {
            let mut at = from + Span::from_micros(odd);
            while at < until {
                path.advance(at, out);
                at += Span::from_micros(odd);
            }
        });
        prop_assert_eq!(&punctual, &lazy);
        prop_assert_eq!(&punctual, &odd);
        let out = punctual.iter().filter(|(_, _, what)| what.starts_with("out")).count();
        let dropped = punctual.len() - out;
        prop_assert!(out + dropped >= arrivals.len(), "every packet has an end");
        prop_assert!(plan.duplicate != Ratio::percent(0) || out + dropped == arrivals.len());
    }
}

#[test]
fn outcomes_come_in_the_order_of_their_times() {
    let plan = plan(Law::CoDel, 8);
    let mut path = plan.path::<Parcel>(|name| name.len() as u64);
    let mut outcomes = vec![];
    for number in 0..300 {
        let now = Time::from_nanos(number * 700_000);
        path.arrive(now, parcel(number, now, 1200), &mut outcomes);
    }
    path.advance(Time::from_millis(10_000), &mut outcomes);
    let times: Vec<Time> = outcomes.iter().map(|outcome| seen(outcome).1).collect();
    assert!(times.is_sorted());
    assert!(outcomes.iter().any(|outcome| matches!(outcome, Outcome::Dropped { .. })));
}

#[test]
fn a_path_without_elements_lets_everything_pass() {
    let mut path = Path::<Parcel>::new([]);
    let mut outcomes = vec![];
    path.arrive(Time::from_millis(3), parcel(0, Time::ZERO, 100), &mut outcomes);
    assert_eq!(seen(&outcomes[0]), (0, Time::from_millis(3), "out, ecn 0".to_owned()));
    assert_eq!((path.next_at(), path.queue(Time::ZERO)), (Time::NEVER, (0, Bytes::ZERO)));
}
