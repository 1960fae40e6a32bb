//! A path under the virtual clock: time and frequency of calls change nothing.

use headstart_emu::packet::{Content, HeaderSummary, Packet};
use headstart_emu::path::{PacketOutcome, Path};
use headstart_net::burst_loss::Params;
use headstart_net::changing::LinkChange;
use headstart_net::jitter::Order;
use headstart_net::{
    Direction, ElementPlan, Limit, LinkPlan, LinkRate, PathPlan, QueueDiscipline, Seed, duplicate, loss,
};
use headstart_units::{Bytes, Packets, Rate, Ratio, Span, Time};
use proptest::prelude::*;

fn packet(number: u64, at: Time, bytes: usize) -> Packet {
    let content = Content::Datagram { payload: vec![0; bytes], headers: 28, ecn: (number % 2) as u8 };
    Packet { number, arrived: at, client: 0, content, header: HeaderSummary::default() }
}

/// The distinguishable parts of an outcome.
fn seen(outcome: &PacketOutcome<Packet>) -> (u64, Time, String) {
    match outcome {
        PacketOutcome::Out { due, packet } => (packet.number, *due, format!("out, ecn {}", packet.ecn())),
        PacketOutcome::Dropped { at, packet, reason } => (packet.number, *at, reason.name().to_owned()),
    }
}

fn plan(discipline: QueueDiscipline, mix: u8) -> PathPlan {
    let limit = Limit::packets(Packets::new(20));
    let mut link = LinkPlan::new(Rate::from_mbit_per_sec(10), Span::from_millis(5), limit);
    link.discipline = discipline;
    let mut loss_changes = vec![];
    let is_constant = discipline == QueueDiscipline::Netem;
    if mix & 1 > 0 && !is_constant {
        let at = Time::from_millis;
        link.changes = vec![
            (at(20), LinkChange::Rate(Rate::from_mbit_per_sec(3))),
            (at(60), LinkChange::Rate(Rate::ZERO)),
            (at(90), LinkChange::Rate(Rate::from_mbit_per_sec(20))),
            (at(120), LinkChange::Delay(Span::from_millis(1))),
        ];
        loss_changes = vec![(at(100), Ratio::percent(30)), (at(110), Ratio::percent(0))];
    }
    if mix & 2 > 0 && !is_constant {
        link.rate = LinkRate::Trace(std::sync::Arc::new("1\n2\n5\n5\n9\n".parse().expect("a trace")));
        link.changes.clear();
    }
    let share = Ratio::percent(if mix & 8 > 0 { 3 } else { 0 });
    let loss = ElementPlan::Loss(loss::Params { share, changes: loss_changes });
    let mut plan = PathPlan::links(link.clone(), link);
    if mix & 4 > 0 {
        let limit = Limit::bytes(Bytes::new(9000));
        let hop = LinkPlan::new(Rate::from_mbit_per_sec(8), Span::from_millis(2), limit);
        let bursts = Params::all_or_nothing(Ratio::percent(2), Ratio::percent(40));
        plan.down.extend([ElementPlan::Link(hop), loss, ElementPlan::BurstLoss(bursts)]);
    } else {
        plan.down.push(loss);
    }
    if mix & 8 > 0 {
        let order = if mix & 4 > 0 { Order::Free } else { Order::Kept };
        plan.down.push(ElementPlan::jitter(Span::from_millis(4), order));
        plan.down.push(duplicate::Params { share: Ratio::percent(10) }.into());
    }
    plan.check().expect("a path can be so");
    plan
}

/// Sends packets of these gaps (us) and sizes through a path that is also called at other times.
fn run(
    plan: &PathPlan,
    arrivals: &[(u64, usize)],
    mut ask: impl FnMut(&mut Path<Packet>, Time, Time, &mut Vec<PacketOutcome<Packet>>),
) -> Vec<(u64, Time, String)> {
    let mut path = Path::of(plan, Direction::Down, Seed(1));
    let (mut now, mut outcomes) = (Time::ZERO, vec![]);
    for ((gap, bytes), number) in arrivals.iter().zip(0..) {
        let before = now;
        now += Span::from_micros(*gap);
        ask(&mut path, before, now, &mut outcomes);
        path.arrive(now, packet(number, now, *bytes), &mut outcomes);
    }
    path.advance(Time::from_millis(1_000_000), &mut outcomes);
    let mut seen: Vec<_> = outcomes.iter().map(seen).collect();
    seen.sort();
    seen
}

proptest! {
    /// One driver calls at every deadline; one only with a packet; one at arbitrary times.
    #[test]
    fn the_outcome_does_not_depend_on_polling_times(
        arrivals in proptest::collection::vec((0_u64..3000, 1_usize..1500), 1..200),
        odd in 1_u64..997,
        discipline in proptest::sample::select(QueueDiscipline::ALL.to_vec()),
        mix in 0_u8..16,
    ) {
        let plan = plan(discipline, mix);
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
        prop_assert!(mix & 8 > 0 || out + dropped == arrivals.len());
    }
}

#[test]
fn outcomes_come_in_the_order_of_their_times() {
    let plan = plan(QueueDiscipline::CoDel, 8);
    let mut path = Path::<Packet>::of(&plan, Direction::Down, Seed(1));
    let mut outcomes = vec![];
    for number in 0..300 {
        let now = Time::from_nanos(number * 700_000);
        path.arrive(now, packet(number, now, 1200), &mut outcomes);
    }
    path.advance(Time::from_millis(10_000), &mut outcomes);
    let times: Vec<Time> = outcomes.iter().map(|outcome| seen(outcome).1).collect();
    assert!(times.is_sorted());
    assert!(outcomes.iter().any(|outcome| matches!(outcome, PacketOutcome::Dropped { .. })));
}

#[test]
fn a_path_without_elements_passes_every_packet() {
    let mut path = Path::<Packet>::new([]);
    let mut outcomes = vec![];
    path.arrive(Time::from_millis(3), packet(0, Time::ZERO, 100), &mut outcomes);
    assert_eq!(seen(&outcomes[0]), (0, Time::from_millis(3), "out, ecn 0".to_owned()));
    assert_eq!((path.next_at(), path.queue(Time::ZERO)), (Time::NEVER, (0, Bytes::ZERO)));
}
