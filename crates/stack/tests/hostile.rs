//! Misbehaving receivers over whole connections: they acknowledge packets that they do not have.

use std::sync::Arc;

use headstart_net::{Limit, PathPlan};
use headstart_quic::why::Left;
use headstart_quic::{Choice, ClientSetup, Policy, ServerSetup, Sharded};
use headstart_stack::null::{NoSecret, NullSessions};
use headstart_stack::{Crypto, Fetch, Misbehaviour, Outcome, Scenario, Visits};
use headstart_units::{Bytes, Packets, Rate, Span, Time};

const RATE: Rate = Rate::from_mbit_per_sec(25);
const RTT: Span = Span::from_millis(50);
const SCHEMES: [&str; 4] = ["iw10", "wise-start", "s-cubic", "halfback"];

fn play(scheme: &str, size: u64, lie: Option<Misbehaviour>) -> Outcome {
    let scenario = Scenario::new(RATE, RTT, Packets::new(104), Bytes::new(size)).knowing(1, 1);
    let scenario = Scenario { crypto: Crypto::Null, ..scenario };
    let mut visits = scenario.visits(Choice::find(scheme).expect("carried")).expect("can be set up");
    if let Some(lie) = lie {
        visits.misbehave(0, lie);
    }
    visits.play(scenario.deadline).remove(0)
}

/// Departure of the packet with which misbehaviour begins, after three acknowledged correctly.
fn began_at(outcome: &Outcome) -> Time {
    outcome.full_packets().nth(3).expect("data").at
}

#[test]
fn acks_of_what_was_never_sent_end_the_connection() {
    for scheme in SCHEMES {
        // So far ahead that none of it leaves before the forged ack arrives.
        for ahead in [10_000, 1 << 40] {
            let outcome = play(scheme, 2_000_000, Some(Misbehaviour::Ahead(ahead)));
            let why = outcome.failure.clone().unwrap_or_default();
            assert!(why.contains("unsent packet acked"), "{scheme}, {ahead} ahead: `{why}`");
            // The forged ack takes half a round trip.
            let caught_at = began_at(&outcome) + RTT / 2;
            let late = outcome.full_packets().filter(|it| it.at > caught_at).count();
            assert_eq!(late, 0, "{scheme}, {ahead} ahead: data after it was caught");
            assert_eq!(outcome.completed, None, "{scheme}");
            assert_ne!(outcome.why.left, Left::Saved, "{scheme}: {}", outcome.why);
        }
    }
}

/// The stack skips numbers: one of the first 64, one of the next 64, then of 128, and so on. It
/// remembers the last of them: an ack of a packet not received is detected if the number is skipped
/// before the ack arrives and the next one is not.
#[test]
fn who_acknowledges_by_guessing_is_caught_at_the_first_number_that_was_left_out() {
    for scheme in SCHEMES {
        let outcome = play(scheme, 2_000_000, Some(Misbehaviour::Guessing));
        let why = outcome.failure.clone().unwrap_or_default();
        assert!(why.contains("unsent packet acked"), "{scheme}: `{why}`");
        let sent = outcome.full_packets().count();
        println!("{scheme}: {sent} packets before it was caught");
        assert!(sent < 1_024, "{scheme}: {sent} packets of 1 720");
        assert_ne!(outcome.why.left, Left::Saved, "{scheme}: {}", outcome.why);
    }
}

/// Acks of packets sent but not received are indistinguishable from a short and fast path: the
/// connection may get the server's full rate. Its record is limited to the cap for one connection.
#[test]
fn who_acknowledges_early_starts_next_time_no_faster_than_the_cap() {
    let cap = Rate::from_mbit_per_sec(40);
    let mut base = noq_proto::ServerConfig::new(Arc::new(NullSessions), Arc::new(NoSecret));
    base.transport_config(Arc::default());
    let choice = Choice::find("s-cubic").expect("carried");
    let setup = ServerSetup::with_sessions(base, Arc::new(NullSessions), choice)
        .history(Arc::new(Sharded::new(100)))
        .limits(Policy { per_connection: cap, ..Policy::default() })
        .seed(1);
    let mut world = Visits::new(PathPlan::dumbbell(RATE, RTT, Limit::packets(Packets::new(104))), 3);
    let client = || ClientSetup::with_sessions(Arc::new(NullSessions)).seed(1);
    let fetch = |at| Fetch::download(Time::from_millis(at), Bytes::new(4_000_000));
    let liar = world.add(0, fetch(0), client(), &setup);
    // The first connection is complete, or idle and closed, long before the next one.
    let again = world.add(0, fetch(100_000), client(), &setup);
    world.misbehave(liar, Misbehaviour::Early);
    let visits = world.play(Time::from_millis(300_000));
    let (first, second) = (&visits[liar].why, &visits[again].why);
    let made_up = first.btl_bw.expect("measured");
    println!("made up: {made_up}, then {}", second);
    assert!(made_up > cap * 2, "{made_up}: if it gains nothing by its lie the cap is not tested");
    assert_eq!(first.left, Left::Saved, "{first}");
    assert_eq!(second.pace, Some(cap), "{second}");
    assert!(second.planned <= cap * RTT, "{second}");
}

#[test]
fn a_storm_of_acks_makes_nobody_send_more() {
    for scheme in SCHEMES {
        let size = 300_000;
        let honest = play(scheme, size, None);
        let storm = play(scheme, size, Some(Misbehaviour::Storm(300)));
        let sent = |outcome: &Outcome| outcome.departures.iter().filter(|it| it.bytes.get() > 300).count();
        let (calm, stormy) = (sent(&honest), sent(&storm));
        println!("{scheme}: {calm} packets, in the storm {stormy}");
        assert!(stormy <= calm + calm / 10, "{scheme}: {calm} packets, in the storm {stormy}");
        // The real client gives up at the stack's answer to forged packets that it never sent; the
        // server has no notice of it.
        assert!(storm.why.tally.delivered >= Bytes::new(size), "{scheme}: {}", storm.why);
        let small = storm.departures.iter().filter(|it| it.bytes.get() <= 300).count();
        assert!(small < 600, "{scheme}: {small} small packets in answer to some 75 000");
        assert!(storm.why.tally.delivered <= storm.why.tally.sent, "{scheme}: nothing counts twice");
        assert_eq!(storm.why.tally.spurious, 0, "{scheme}");
    }
}
