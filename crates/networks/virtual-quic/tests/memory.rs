//! The record that one connection writes, and its effect on the next one.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use headstart_net::{Limit, LinkPlan, PathPlan};
use headstart_quic::gates::Arm;
use headstart_quic::start_report::{RecordOutcome, Source};
use headstart_quic::store::Sharded;
use headstart_quic::token::TokenKeys;
use headstart_quic::{Access, Choice, ClientSetup, Hint, Metrics, Policy, Rollout, ServerSetup, Store};
use headstart_startup::hint::Steps;
use headstart_startup::history::{FixedHash, MemoryStore, Refusal};
use headstart_units::{Bytes, Packets, Rate, Span, Time};
use headstart_virtual_quic::null::{NoSecret, NullSessions};
use headstart_virtual_quic::{ConnectionOutcome, ConnectionSet, Transfer};
use noq_proto::TransportConfig;

const RATE: Rate = Rate::from_mbit_per_sec(25);
const RTT: Span = Span::from_millis(50);

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.initial_mtu(1_200).mtu_discovery_config(None);
    transport
}

fn server(scheme: &str) -> ServerSetup {
    let mut base = noq_proto::ServerConfig::new(Arc::new(NullSessions), Arc::new(NoSecret));
    base.transport_config(Arc::new(transport()));
    let choice = Choice::find(scheme).expect("carried");
    ServerSetup::with_session_factory(base, Arc::new(NullSessions), choice).seed(7)
}

fn client() -> ClientSetup {
    ClientSetup::with_session_factory(Arc::new(NullSessions)).transport(transport()).seed(7)
}

fn path(rtt: Span) -> ConnectionSet {
    let link = LinkPlan::new(RATE, rtt / 2, Limit::packets(Packets::new(104)));
    ConnectionSet::new(PathPlan::link_and_delay(link, rtt / 2), 3)
}

/// Number of the returning peer.
const HOME: u32 = 0;

/// Downloads from one address, at these times (ms).
fn run_connections(setup: &ServerSetup, at: &[u64], size: u64) -> Vec<ConnectionOutcome> {
    let mut connections = path(RTT);
    for &at in at {
        connections.add(HOME, Transfer::download(Time::from_millis(at), Bytes::new(size)), client(), setup);
    }
    connections.run(Time::from_millis(1_000_000))
}

#[test]
fn the_second_connection_starts_from_the_record_of_the_first() {
    for scheme in ["wise-start", "s-cubic", "careful-resume"] {
        let setup = server(scheme).history(Arc::new(Sharded::new(100)));
        let connections = run_connections(&setup, &[0, 5_000], 2_000_000);
        let [first, second] = &connections[..] else { panic!("two visits") };
        assert_eq!(
            (first.report.arm, first.report.refusal),
            (Arm::Ineligible, Some(Refusal::NoRecord)),
            "{scheme}"
        );
        assert_eq!(first.report.record_outcome, RecordOutcome::Saved, "{scheme}: {}", first.report);
        let known = second.report.known.expect("a record").record;
        let (measured, true_rate) = (known.btl_bw.as_bits_per_sec() as f64, RATE.as_bits_per_sec() as f64);
        assert!(
            (measured / true_rate - 0.977).abs() < 0.03,
            "{scheme}: {measured} bit/s, without IP and UDP headers"
        );
        assert!(known.rt_prop >= RTT && known.rt_prop < RTT + Span::from_millis(1), "{scheme}");
        assert_eq!(known.window, Bytes::ZERO, "never a window");
        assert_eq!((second.report.arm, second.report.source), (Arm::Treatment, Source::History), "{scheme}");
        assert!(second.completion() < first.completion(), "{scheme}");
    }
}

/// Ten packets and their acks show the path's rate, though slow start has used 10 of 25 Mbit/s.
#[test]
fn an_answer_too_short_to_fill_the_path_lets_the_next_one_arrive_at_the_paths_rate() {
    for scheme in ["wise-start", "s-cubic"] {
        let setup = server(scheme).history(Arc::new(Sharded::new(100)));
        let connections = run_connections(&setup, &[0, 5_000, 10_000], 100_000);
        let bound = RTT * 2 + Bytes::new(100_000) / RATE;
        for later in &connections[1..] {
            let known = later.report.known.expect("a record").record;
            let ratio = known.btl_bw.as_bits_per_sec() as f64 / RATE.as_bits_per_sec() as f64;
            println!("{scheme}: {ratio:.3} of the rate, {:.1} ms", later.completion().as_millis_f64());
            assert!((0.9..1.02).contains(&ratio), "{scheme}: {ratio} of the path's rate: {}", later.report);
            assert!(later.completion() < bound + bound / 20, "{scheme}: {}", later.report);
        }
    }
}

#[test]
fn only_tcp_cache_stores_its_window() {
    let setup = server("tcp-cache").history(Arc::new(Sharded::new(100)));
    let connections = run_connections(&setup, &[0, 5_000], 500_000);
    assert!(connections[1].report.known.is_some_and(|known| known.record.window > Bytes::new(24_000)));
    assert!(connections[1].completion() < connections[0].completion());
}

/// Peers 0 and 1 have addresses of one /24.
#[test]
fn a_peer_begins_with_the_window_that_another_of_its_prefix_had_and_of_tcp_cache_it_does_not() {
    for (scheme, is_known) in [("prefix-window", true), ("tcp-cache", false)] {
        let setup = server(scheme).history(Arc::new(Sharded::new(100)));
        let mut connections = path(RTT);
        for (peer, at) in [(HOME, 0), (HOME + 1, 5_000)] {
            let download = Transfer::download(Time::from_millis(at), Bytes::new(500_000));
            connections.add(peer, download, client(), &setup);
        }
        let done = connections.run(Time::from_millis(1_000_000));
        assert_eq!(done[1].report.known.is_some(), is_known, "{}", done[1].report);
        assert_eq!(done[1].report.planned > Bytes::new(24_000), is_known, "{}", done[1].report);
    }
}

#[test]
fn connections_at_once_each_start_from_their_share_of_the_record() {
    for scheme in ["s-cubic", "wise-start"] {
        let setup = server(scheme).history(Arc::new(Sharded::new(100)));
        let connections = run_connections(&setup, &[0, 5_000, 5_010, 5_100], 2_000_000);
        for (others, connection) in (0..).zip(&connections[1..]) {
            let report = &connection.report;
            let known = report.known.expect("a record");
            assert_eq!(known.live, others, "{report}");
            assert_eq!((report.arm, report.refusal), (Arm::Treatment, None), "{report}");
            let whole = known.record.bdp().expect("measured").get();
            let (planned, share) = (report.planned.get(), whole / (u64::from(others) + 1));
            assert!(
                planned.abs_diff(share) <= 1_500,
                "with {others} others: {planned} of {whole} bytes\n{report}"
            );
        }
    }
}

/// A client in a tunnel takes no share of its address's record, and takes it again afterwards.
#[test]
fn a_client_that_does_not_answer_leaves_the_record_to_others_until_it_returns() {
    let ms = Time::from_millis;
    for (absence, expected) in [(None, [1, 1]), (Some(ms(6_000)..ms(8_500)), [0, 1])] {
        let setup = server("s-cubic").history(Arc::new(Sharded::new(100)));
        let mut connections = path(RTT);
        let visits = [(0, 2_000_000), (5_000, 40_000_000), (8_000, 100_000), (12_000, 100_000)];
        for (at, size) in visits {
            connections.add(HOME, Transfer::download(ms(at), Bytes::new(size)), client(), &setup);
        }
        if let Some(absence) = absence.clone() {
            connections.absent(1, absence);
        }
        let outcomes = connections.run(ms(1_000_000));
        let [_, long, during, after] = &outcomes[..] else { panic!("four visits") };
        let live = [during, after].map(|visit| visit.report.known.expect("a record").live);
        assert_eq!(live, expected, "{absence:?}\n{}\n{}", during.report, after.report);
        // 40 MB take 12.8 s at the rate of the link.
        assert!(long.completed.is_some_and(|at| at > ms(17_000)), "{absence:?}: {:?}", long.completed);
        if absence.is_some() {
            assert!(during.completion() < RTT * 4, "as if alone: {:?}", during.completion());
        }
    }
}

#[test]
fn a_share_of_no_more_than_the_initial_window_is_not_used() {
    let setup = server("s-cubic").history(Arc::new(Sharded::new(100)));
    let at: Vec<u64> = [0].into_iter().chain((0..14).map(|number| 5_000 + 10 * number)).collect();
    let connections = run_connections(&setup, &at, 2_000_000);
    let last = &connections[14].report;
    assert_eq!((last.arm, last.refusal), (Arm::Ineligible, Some(Refusal::InUse)), "{last}");
}

#[test]
fn a_short_connection_measures_nothing_and_keeps_the_record() {
    let setup = server("wise-start").history(shared_store());
    let mut connections = path(RTT);
    for (at, size) in [(0, 2_000_000), (5_000, 20_000), (6_000, 2_000_000)] {
        connections.add(HOME, Transfer::download(Time::from_millis(at), Bytes::new(size)), client(), &setup);
    }
    let connections = connections.run(Time::from_millis(100_000));
    assert_eq!(connections[1].report.record_outcome, RecordOutcome::Nothing, "{}", connections[1].report);
    let record = |connection: &ConnectionOutcome| connection.report.known.map(|known| known.record);
    assert_eq!(record(&connections[1]), record(&connections[2]));
}

/// A path that has become a fifth as fast, with a short queue: answers of 100 kB are much shorter
/// than the recorded path, and lose.
#[test]
fn short_answers_that_lose_correct_a_record_that_is_too_fast() {
    let slow = Rate::from_mbit_per_sec(5);
    for scheme in ["wise-start", "s-cubic", "headstart"] {
        let setup = server(scheme).history(shared_store());
        let visits = run_connections(&setup, &[0, 2_000], 2_000_000);
        assert_eq!(visits[1].report.record_outcome, RecordOutcome::Saved, "{scheme}");
        let link = LinkPlan::new(slow, RTT / 2, Limit::packets(Packets::new(20)));
        let mut after = ConnectionSet::new(PathPlan::link_and_delay(link, RTT / 2), 3);
        for at in [10_000, 20_000, 30_000] {
            let transfer = Transfer::download(Time::from_millis(at), Bytes::new(100_000));
            after.add(HOME, transfer, client(), &setup);
        }
        let visits = after.run(Time::from_millis(100_000));
        let known = |visit: usize| visits[visit].report.known.expect("a record").record.btl_bw;
        let lost = |visit: usize| visits[visit].report.tally.lost;
        let (first, second, third) = (known(0), known(1), known(2));
        println!("{scheme}: {first}, {second}, {third}; lost {}, {}, {}", lost(0), lost(1), lost(2));
        assert!(first > slow * 4 && !lost(0).is_zero(), "{scheme}: it meets {first}, loses {}", lost(0));
        assert!(second < slow * 2, "{scheme}: the second visit meets {second}");
        assert!(lost(2) < lost(0), "{scheme}: {} and then {} are lost", lost(0), lost(2));
    }
}

/// Ten packets that leave at once say nothing about a record that they were not made from.
#[test]
fn a_control_that_loses_keeps_the_record_and_so_does_an_answer_of_three_packets() {
    for scheme in ["wise-start", "headstart"] {
        let store = shared_store();
        let setup = server(scheme).history(Arc::clone(&store));
        let visits = run_connections(&setup, &[0, 2_000], 2_000_000);
        assert_eq!(visits[1].report.record_outcome, RecordOutcome::Saved, "{scheme}");
        let controls = server(scheme).history(store).rollout(Arc::new(Rollout::new(0.0)));
        let link = LinkPlan::new(RATE, RTT / 2, Limit::packets(Packets::new(4)));
        let mut after = ConnectionSet::new(PathPlan::link_and_delay(link, RTT / 2), 3);
        for (at, size, setup) in
            [(10_000, 30_000, &controls), (20_000, 3_000, &setup), (30_000, 50_000, &setup)]
        {
            let transfer = Transfer::download(Time::from_millis(at), Bytes::new(size));
            after.add(HOME, transfer, client(), setup);
        }
        let visits = after.run(Time::from_millis(100_000));
        let record = |visit: usize| visits[visit].report.known.expect("a record").record;
        let (first, lost) = (&visits[0].report, visits[0].report.tally.first_flight_lost);
        assert_eq!((first.arm, lost.is_zero()), (Arm::Control, false), "{scheme}: {first}");
        assert_eq!((record(1), record(2)), (record(0), record(0)), "{scheme}");
    }
}

#[test]
fn a_short_flight_of_headstart_raises_its_record_where_the_path_did_not_spread_it() {
    let setup = server("headstart").history(shared_store());
    let visits = run_connections(&setup, &[0, 5_000, 10_000, 15_000], 100_000);
    let known = |visit: usize| visits[visit].report.known.expect("a record").record.btl_bw;
    println!("{}, {}, {}", known(1), known(2), known(3));
    assert!(known(1) < RATE && known(2) > RATE, "{}, then {}", known(1), known(2));
    assert!(known(3) > RATE, "{}", known(3));
}

fn shared_store() -> Arc<dyn Store> {
    Arc::new(Mutex::new(MemoryStore::new(100, FixedHash::default())))
}

#[test]
fn a_record_of_another_path_is_refused() {
    let setup = server("s-cubic").history(shared_store());
    let mut near = path(Span::from_millis(20));
    near.add(HOME, Transfer::download(Time::ZERO, Bytes::new(2_000_000)), client(), &setup);
    assert_eq!(near.run(Time::from_millis(100_000))[0].report.record_outcome, RecordOutcome::Saved);
    let mut far = path(Span::from_millis(250));
    far.add(HOME, Transfer::download(Time::from_millis(5_000), Bytes::new(200_000)), client(), &setup);
    let connection = &far.run(Time::from_millis(100_000))[0];
    assert_eq!(
        (connection.report.arm, connection.report.refusal),
        (Arm::Ineligible, Some(Refusal::RttTooLarge))
    );
}

#[test]
fn an_old_record_is_refused_but_for_headstart_that_corrects_it() {
    for (scheme, refusal) in [("s-cubic", Some(Refusal::Expired)), ("headstart", None)] {
        let setup = server(scheme).history(shared_store());
        let mut connections = path(RTT);
        for at in [0, 700_000] {
            let transfer = Transfer::download(Time::from_millis(at), Bytes::new(2_000_000));
            connections.add(HOME, transfer, client(), &setup);
        }
        let connections = connections.run(Time::from_millis(1_000_000));
        assert_eq!(connections[1].report.refusal, refusal, "{scheme}");
    }
}

#[test]
fn arms_are_drawn_after_eligibility_and_both_are_counted() {
    let metrics = Arc::new(Metrics::default());
    let rollout = Arc::new(Rollout::new(50.0));
    let setup = server("s-cubic")
        .history(Arc::new(Sharded::new(1000)))
        .rollout(Arc::clone(&rollout))
        .metrics(Arc::clone(&metrics));
    let at: Vec<u64> = (0..40).map(|connection| connection * 3_000).collect();
    let connections = run_connections(&setup, &at, 500_000);
    let count = |arm| connections.iter().filter(|connection| connection.report.arm == arm).count();
    assert_eq!(count(Arm::Ineligible), 1, "the first one only");
    assert!((10..30).contains(&count(Arm::Treatment)) && (10..30).contains(&count(Arm::Control)));
    let control = connections.iter().find(|connection| connection.report.arm == Arm::Control).expect("one");
    assert_eq!(
        (control.report.burst, control.report.source),
        (Bytes::new(12_000), Source::Nothing),
        "slow start"
    );
    assert_eq!(metrics.connections(), 40);
    rollout.stop();
    assert_eq!(run_connections(&setup, &[0], 100_000)[0].report.arm, Arm::Stopped);
}

#[test]
fn a_returning_client_starts_its_upload_from_its_own_record() {
    let store = shared_store();
    let upload = |at| Transfer::upload(Time::from_millis(at), Bytes::new(1_000_000));
    let plan = PathPlan::dumbbell(RATE, RTT, Limit::packets(Packets::new(104)));
    let mut connections = ConnectionSet::new(plan, 3);
    for at in [0, 3_000] {
        let setup = client().scheme(Choice::find("s-cubic").expect("carried")).history(Arc::clone(&store));
        connections.add(HOME, upload(at), setup, &server("iw10"));
    }
    let connections = connections.run(Time::from_millis(100_000));
    let took = |connection: &ConnectionOutcome| connection.completion().as_millis_f64();
    assert_eq!(connections[0].report.record_outcome, RecordOutcome::Saved, "{}", connections[0].report);
    assert_eq!(connections[1].report.source, Source::History, "{}", connections[1].report);
    println!("first upload {:.1} ms, second {:.1} ms", took(&connections[0]), took(&connections[1]));
    assert!(took(&connections[1]) < 0.8 * took(&connections[0]));
}

#[test]
fn a_client_drops_its_record_at_the_first_loss() {
    let store = shared_store();
    let upload = |at| Transfer::upload(Time::from_millis(at), Bytes::new(1_000_000));
    let plan = PathPlan::dumbbell(RATE, RTT, Limit::packets(Packets::new(104)));
    let run = |at, forced_losses: Vec<u64>| {
        let mut connections = ConnectionSet::new(plan.clone(), 3).with_forced_losses(forced_losses);
        let setup = client().scheme(Choice::find("s-cubic").expect("carried")).history(Arc::clone(&store));
        connections.add(HOME, upload(at), setup, &server("iw10"));
        connections.run(Time::from_millis(100_000)).remove(0).report
    };
    assert_eq!(run(0, vec![]).record_outcome, RecordOutcome::Saved);
    assert_eq!(run(3_000, vec![20]).record_outcome, RecordOutcome::Dropped);
    assert_eq!(run(6_000, vec![]).refusal, Some(Refusal::NoRecord));
}

#[test]
fn a_client_that_always_overstates_loses_its_credit_and_others_do_not() {
    let rate = |mbit| Hint { bandwidth: Rate::from_mbit_per_sec(mbit), access: Access::Cable };
    let policy = Policy {
        per_connection: Rate::from_mbit_per_sec(400),
        addresses: NonZeroUsize::MIN.saturating_add(99),
        ..Policy::default()
    };
    let setup = server("blitzstart").limits(policy);
    let mut connections = path(RTT);
    let misbehaving: Vec<_> = (0..8)
        .map(|connection| {
            let transfer = Transfer::download(Time::from_millis(connection * 5_000), Bytes::new(3_000_000));
            connections.add(HOME, transfer, client().exact_hint(rate(10_000)), &setup)
        })
        .collect();
    let honest = Transfer::download(Time::from_millis(45_000), Bytes::new(3_000_000));
    let honest = connections.add(1, honest, client().hint(rate(27)), &setup);
    let connections = connections.run(Time::from_millis(200_000));
    let granted: Vec<u64> = misbehaving
        .iter()
        .map(|&misbehaving| {
            connections[misbehaving].report.granted.expect("asked for").as_bits_per_sec() / 1_000_000
        })
        .collect();
    println!("granted to the liar: {granted:?} Mbit/s");
    assert_eq!(granted[0], 400, "no more than the cap");
    assert!(granted.windows(2).all(|pair| pair[1] <= pair[0]) && granted[5] == 0, "{granted:?}");
    let rounded = rate(27).quantised(Steps::default()).map(|hint| hint.bandwidth);
    assert_eq!(connections[honest].report.granted, rounded, "rounded down, not cut");
    assert_eq!(rounded, Some(Rate::from_mbit_per_sec(25)));
    assert_eq!(connections[honest].report.source, Source::Hint);
}

/// Two servers of an anycast address without a common store: a client's token carries its record.
#[test]
fn the_third_visit_starts_fast_at_another_server_of_the_fleet() {
    let fleet = |secret: u8| {
        let keys = TokenKeys::new(&[[secret; 32]]).expect("one").with_clock(|| Time::from_millis(20_000));
        server("headstart").history(Arc::new(Sharded::new(100))).tokens(keys)
    };
    let visits = |last: &ServerSetup, first: &ServerSetup| {
        let mut connections = path(RTT);
        let client = client();
        for (at, setup) in [(0, first), (5_000, first), (10_000, first), (15_000, last)] {
            let transfer = Transfer::download(Time::from_millis(at), Bytes::new(100_000));
            connections.add(HOME, transfer, client.clone(), setup);
        }
        let outcomes = connections.run(Time::from_millis(1_000_000));
        for outcome in &outcomes {
            println!("{:.1} ms {}", outcome.completion().as_millis_f64(), outcome.report);
        }
        outcomes
    };
    let same = {
        let server = fleet(1);
        visits(&server, &server)
    };
    let other = visits(&fleet(1), &fleet(1));
    let stranger = visits(&fleet(2), &fleet(1));
    let [same, other, stranger] =
        [&same, &other, &stranger].map(|outcomes| outcomes[3].completion().as_millis_f64());
    let bound = (RTT * 2 + Bytes::new(100_000) / RATE).as_millis_f64();
    println!("same {same:.1} ms, other {other:.1} ms, stranger {stranger:.1} ms, bound {bound:.1} ms");
    assert!((other / same - 1.0).abs() < 0.03, "{other} and {same} ms");
    assert!(stranger > 1.03 * same, "without the key there is no record: {stranger} and {same} ms");
}
