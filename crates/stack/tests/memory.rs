//! The record that one connection writes, and its effect on the next one.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use headstart_net::{Limit, LinkPlan, PathPlan};
use headstart_quic::gates::Arm;
use headstart_quic::store::Sharded;
use headstart_quic::why::{Left, Source};
use headstart_quic::{Access, Choice, ClientSetup, Hint, Metrics, Policy, Rollout, ServerSetup, Store};
use headstart_stack::null::{NoSecret, NullSessions};
use headstart_stack::{Fetch, Outcome, Visits};
use headstart_startup::hint::Steps;
use headstart_startup::history::{FixedHash, MemoryStore, Refusal};
use headstart_units::{Bytes, Packets, Rate, Span, Time};
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
    ServerSetup::with_sessions(base, Arc::new(NullSessions), choice).seed(7)
}

fn client() -> ClientSetup {
    ClientSetup::with_sessions(Arc::new(NullSessions)).transport(transport()).seed(7)
}

fn path(rtt: Span) -> Visits {
    let link = LinkPlan::new(RATE, rtt / 2, Limit::packets(Packets::new(104)));
    Visits::new(PathPlan::link_and_delay(link, rtt / 2), 3)
}

/// Number of the returning peer.
const HOME: u32 = 0;

/// Downloads from one address, at these times (ms).
fn visit(setup: &ServerSetup, at: &[u64], size: u64) -> Vec<Outcome> {
    let mut visits = path(RTT);
    for &at in at {
        visits.add(HOME, Fetch::download(Time::from_millis(at), Bytes::new(size)), client(), setup);
    }
    visits.play(Time::from_millis(1_000_000))
}

#[test]
fn the_second_visit_starts_with_what_the_first_one_measured() {
    for scheme in ["wise-start", "s-cubic", "careful-resume"] {
        let setup = server(scheme).history(Arc::new(Sharded::new(100)));
        let visits = visit(&setup, &[0, 5_000], 2_000_000);
        let [first, second] = &visits[..] else { panic!("two visits") };
        assert_eq!(
            (first.why.arm, first.why.refusal),
            (Arm::Ineligible, Some(Refusal::NoRecord)),
            "{scheme}"
        );
        assert_eq!(first.why.left, Left::Saved, "{scheme}: {}", first.why);
        let known = second.why.known.expect("a record").record;
        let (measured, true_rate) = (known.btl_bw.as_bits_per_sec() as f64, RATE.as_bits_per_sec() as f64);
        assert!(
            (measured / true_rate - 0.977).abs() < 0.03,
            "{scheme}: {measured} bit/s, without IP and UDP headers"
        );
        assert!(known.rt_prop >= RTT && known.rt_prop < RTT + Span::from_millis(1), "{scheme}");
        assert_eq!(known.window, Bytes::ZERO, "never a window");
        assert_eq!((second.why.arm, second.why.source), (Arm::Treatment, Source::History), "{scheme}");
        assert!(second.completion() < first.completion(), "{scheme}");
    }
}

#[test]
fn tcp_cache_alone_leaves_its_window() {
    let setup = server("tcp-cache").history(Arc::new(Sharded::new(100)));
    let visits = visit(&setup, &[0, 5_000], 500_000);
    assert!(visits[1].why.known.is_some_and(|known| known.record.window > Bytes::new(24_000)));
    assert!(visits[1].completion() < visits[0].completion());
}

#[test]
fn one_connection_at_a_time_starts_from_a_record() {
    let setup = server("s-cubic").history(Arc::new(Sharded::new(100)));
    let visits = visit(&setup, &[0, 5_000, 5_010], 2_000_000);
    assert_eq!(visits[1].why.arm, Arm::Treatment);
    assert_eq!((visits[2].why.arm, visits[2].why.refusal), (Arm::Ineligible, Some(Refusal::InUse)));
}

#[test]
fn a_short_visit_measures_nothing_and_leaves_the_record_alone() {
    let setup = server("wise-start").history(shared_store());
    let mut visits = path(RTT);
    for (at, size) in [(0, 2_000_000), (5_000, 20_000), (6_000, 2_000_000)] {
        visits.add(HOME, Fetch::download(Time::from_millis(at), Bytes::new(size)), client(), &setup);
    }
    let visits = visits.play(Time::from_millis(100_000));
    assert_eq!(visits[1].why.left, Left::Nothing, "{}", visits[1].why);
    let record = |visit: &Outcome| visit.why.known.map(|known| known.record);
    assert_eq!(record(&visits[1]), record(&visits[2]));
}

fn shared_store() -> Arc<dyn Store> {
    Arc::new(Mutex::new(MemoryStore::new(100, FixedHash::default())))
}

#[test]
fn a_record_of_another_path_is_refused() {
    let setup = server("s-cubic").history(shared_store());
    let mut near = path(Span::from_millis(20));
    near.add(HOME, Fetch::download(Time::ZERO, Bytes::new(2_000_000)), client(), &setup);
    assert_eq!(near.play(Time::from_millis(100_000))[0].why.left, Left::Saved);
    let mut far = path(Span::from_millis(250));
    far.add(HOME, Fetch::download(Time::from_millis(5_000), Bytes::new(200_000)), client(), &setup);
    let visit = &far.play(Time::from_millis(100_000))[0];
    assert_eq!((visit.why.arm, visit.why.refusal), (Arm::Ineligible, Some(Refusal::RttTooLarge)));
}

#[test]
fn an_old_record_is_refused() {
    let setup = server("s-cubic").history(shared_store());
    let mut visits = path(RTT);
    for at in [0, 700_000] {
        let fetch = Fetch::download(Time::from_millis(at), Bytes::new(2_000_000));
        visits.add(HOME, fetch, client(), &setup);
    }
    let visits = visits.play(Time::from_millis(1_000_000));
    assert_eq!(visits[1].why.refusal, Some(Refusal::Expired));
}

#[test]
fn the_coin_is_drawn_after_eligibility_and_both_arms_are_counted() {
    let metrics = Arc::new(Metrics::default());
    let rollout = Arc::new(Rollout::new(50.0));
    let setup = server("s-cubic")
        .history(Arc::new(Sharded::new(1000)))
        .rollout(Arc::clone(&rollout))
        .metrics(Arc::clone(&metrics));
    let at: Vec<u64> = (0..40).map(|visit| visit * 3_000).collect();
    let visits = visit(&setup, &at, 500_000);
    let count = |arm| visits.iter().filter(|visit| visit.why.arm == arm).count();
    assert_eq!(count(Arm::Ineligible), 1, "the first one only");
    assert!((10..30).contains(&count(Arm::Treatment)) && (10..30).contains(&count(Arm::Control)));
    let control = visits.iter().find(|visit| visit.why.arm == Arm::Control).expect("one");
    assert_eq!((control.why.burst, control.why.source), (Bytes::new(12_000), Source::Nothing), "slow start");
    assert_eq!(metrics.connections(), 40);
    rollout.stop();
    assert_eq!(visit(&setup, &[0], 100_000)[0].why.arm, Arm::Stopped);
}

#[test]
fn a_client_that_dials_again_starts_its_upload_from_its_own_record() {
    let store = shared_store();
    let upload = |at| Fetch::upload(Time::from_millis(at), Bytes::new(1_000_000));
    let plan = PathPlan::dumbbell(RATE, RTT, Limit::packets(Packets::new(104)));
    let mut visits = Visits::new(plan, 3);
    for at in [0, 3_000] {
        let setup = client().scheme(Choice::find("s-cubic").expect("carried")).history(Arc::clone(&store));
        visits.add(HOME, upload(at), setup, &server("iw10"));
    }
    let visits = visits.play(Time::from_millis(100_000));
    let took = |visit: &Outcome| visit.completion().as_millis_f64();
    assert_eq!(visits[0].why.left, Left::Saved, "{}", visits[0].why);
    assert_eq!(visits[1].why.source, Source::History, "{}", visits[1].why);
    println!("first upload {:.1} ms, second {:.1} ms", took(&visits[0]), took(&visits[1]));
    assert!(took(&visits[1]) < 0.8 * took(&visits[0]));
}

#[test]
fn a_client_drops_its_record_at_the_first_loss() {
    let store = shared_store();
    let upload = |at| Fetch::upload(Time::from_millis(at), Bytes::new(1_000_000));
    let plan = PathPlan::dumbbell(RATE, RTT, Limit::packets(Packets::new(104)));
    let play = |at, forced_losses: Vec<u64>| {
        let mut visits = Visits::new(plan.clone(), 3).losing(forced_losses);
        let setup = client().scheme(Choice::find("s-cubic").expect("carried")).history(Arc::clone(&store));
        visits.add(HOME, upload(at), setup, &server("iw10"));
        visits.play(Time::from_millis(100_000)).remove(0).why
    };
    assert_eq!(play(0, vec![]).left, Left::Saved);
    assert_eq!(play(3_000, vec![20]).left, Left::Dropped);
    assert_eq!(play(6_000, vec![]).refusal, Some(Refusal::NoRecord));
}

#[test]
fn a_client_that_always_lies_upward_loses_its_credit_and_others_do_not() {
    let rate = |mbit| Hint { bandwidth: Rate::from_mbit_per_sec(mbit), access: Access::Cable };
    let policy = Policy {
        per_connection: Rate::from_mbit_per_sec(400),
        addresses: NonZeroUsize::MIN.saturating_add(99),
        ..Policy::default()
    };
    let setup = server("blitzstart").limits(policy);
    let mut visits = path(RTT);
    let liars: Vec<_> = (0..8)
        .map(|visit| {
            let fetch = Fetch::download(Time::from_millis(visit * 5_000), Bytes::new(3_000_000));
            visits.add(HOME, fetch, client().exact_hint(rate(10_000)), &setup)
        })
        .collect();
    let honest = Fetch::download(Time::from_millis(45_000), Bytes::new(3_000_000));
    let honest = visits.add(1, honest, client().hint(rate(27)), &setup);
    let visits = visits.play(Time::from_millis(200_000));
    let granted: Vec<u64> = liars
        .iter()
        .map(|&liar| visits[liar].why.granted.expect("asked for").as_bits_per_sec() / 1_000_000)
        .collect();
    println!("granted to the liar: {granted:?} Mbit/s");
    assert_eq!(granted[0], 400, "no more than the cap");
    assert!(granted.windows(2).all(|pair| pair[1] <= pair[0]) && granted[5] == 0, "{granted:?}");
    let rounded = rate(27).quantised(Steps::default()).map(|hint| hint.bandwidth);
    assert_eq!(visits[honest].why.granted, rounded, "rounded down, not cut");
    assert_eq!(rounded, Some(Rate::from_mbit_per_sec(25)));
    assert_eq!(visits[honest].why.source, Source::Hint);
}
