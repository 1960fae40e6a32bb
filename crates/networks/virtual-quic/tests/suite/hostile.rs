//! Misbehaving receivers over whole connections: they acknowledge packets that they do not have.

use std::sync::Arc;

use headstart_net::{Limit, PathPlan};
use headstart_quic::start_report::RecordOutcome;
use headstart_quic::{Choice, ClientSetup, Policy, ServerSetup, Sharded};
use headstart_units::{Bytes, Packets, Rate, Span, Time};
use headstart_virtual_quic::null::{NoSecret, NullSessions};
use headstart_virtual_quic::{ConnectionOutcome, ConnectionSet, Crypto, Misbehaviour, Scenario, Transfer};

const RATE: Rate = Rate::from_mbit_per_sec(25);
const RTT: Span = Span::from_millis(50);
const SCHEMES: [&str; 5] = ["iw10", "wise-start", "s-cubic", "halfback", "headstart"];

fn run(scheme: &str, size: u64, lie: Option<Misbehaviour>) -> ConnectionOutcome {
    let scenario = Scenario::new(RATE, RTT, Packets::new(104), Bytes::new(size)).with_record(1, 1);
    let scenario = Scenario { crypto: Crypto::Null, ..scenario };
    let mut connections =
        scenario.connections(Choice::find(scheme).expect("carried")).expect("can be set up");
    if let Some(lie) = lie {
        connections.misbehave(0, lie);
    }
    connections.run(scenario.deadline).remove(0)
}

/// Connections of one peer, whose record has this cap: the first receiver acknowledges early, and
/// has ended, complete or idle, before those that begin at these milliseconds.
fn after_an_early_one(
    scheme: &str,
    cap: Rate,
    size: u64,
    later: &[u64],
    until: u64,
) -> Vec<ConnectionOutcome> {
    let mut base = noq_proto::ServerConfig::new(Arc::new(NullSessions), Arc::new(NoSecret));
    base.transport_config(Arc::default());
    let choice = Choice::find(scheme).expect("carried");
    let setup = ServerSetup::with_session_factory(base, Arc::new(NullSessions), choice)
        .history(Arc::new(Sharded::new(100)))
        .limits(Policy { per_connection: cap, ..Policy::default() })
        .seed(1);
    let mut connections =
        ConnectionSet::new(PathPlan::dumbbell(RATE, RTT, Limit::packets(Packets::new(104))), 3);
    for at in [0].iter().chain(later) {
        let client = ClientSetup::with_session_factory(Arc::new(NullSessions)).seed(1);
        connections.add(0, Transfer::download(Time::from_millis(*at), Bytes::new(size)), client, &setup);
    }
    connections.misbehave(0, Misbehaviour::Early);
    connections.run(Time::from_millis(until))
}

/// Departure of the packet with which misbehaviour begins, after three acknowledged correctly.
fn began_at(outcome: &ConnectionOutcome) -> Time {
    outcome.full_packets().nth(3).expect("data").at
}

#[test]
fn acks_of_unsent_packets_end_the_connection() {
    for scheme in SCHEMES {
        // So far ahead that none of it leaves before the forged ack arrives.
        for ahead in [10_000, 1 << 40] {
            let outcome = run(scheme, 2_000_000, Some(Misbehaviour::Ahead(ahead)));
            let failure = outcome.failure.clone().unwrap_or_default();
            assert!(failure.contains("unsent packet acked"), "{scheme}, {ahead} ahead: `{failure}`");
            // The forged ack takes half a round trip.
            let caught_at = began_at(&outcome) + RTT / 2;
            let late = outcome.full_packets().filter(|it| it.at > caught_at).count();
            assert_eq!(late, 0, "{scheme}, {ahead} ahead: data after it was caught");
            assert_eq!(outcome.completed, None, "{scheme}");
            assert_ne!(outcome.report.record_outcome, RecordOutcome::Saved, "{scheme}: {}", outcome.report);
        }
    }
}

/// The stack skips numbers: one of the first 64, one of the next 64, then of 128, and so on. It
/// remembers the last of them: an ack of a packet not received is detected if the number is skipped
/// before the ack arrives and the next one is not.
#[test]
fn a_receiver_that_guesses_acks_is_detected_at_the_first_skipped_packet_number() {
    for scheme in SCHEMES {
        let outcome = run(scheme, 2_000_000, Some(Misbehaviour::Guessing));
        let failure = outcome.failure.clone().unwrap_or_default();
        assert!(failure.contains("unsent packet acked"), "{scheme}: `{failure}`");
        let sent = outcome.full_packets().count();
        println!("{scheme}: {sent} packets before it was caught");
        assert!(sent < 1_024, "{scheme}: {sent} packets of 1 720");
        assert_ne!(outcome.report.record_outcome, RecordOutcome::Saved, "{scheme}: {}", outcome.report);
    }
}

/// Acks of packets sent but not received are indistinguishable from a short and fast path: the
/// connection may get the server's full rate. Its record is limited to the cap for one connection.
#[test]
fn a_receiver_that_acknowledges_early_next_starts_within_the_cap() {
    let cap = Rate::from_mbit_per_sec(40);
    let connections = after_an_early_one("s-cubic", cap, 4_000_000, &[100_000], 300_000);
    let (first, second) = (&connections[0].report, &connections[1].report);
    let made_up = first.btl_bw.expect("measured");
    println!("made up: {made_up}, then {}", second);
    assert!(made_up > cap * 2, "{made_up}: if it gains nothing by its lie the cap is not tested");
    assert_eq!(first.record_outcome, RecordOutcome::Saved, "{first}");
    assert_eq!(second.pace, Some(cap), "{second}");
    assert!(second.planned <= cap * RTT, "{second}");
}

/// Clients behind one address share its record. A neighbour that
/// makes up a fast path misleads the honest ones that follow within the cap, and until one of them
/// has measured the path.
#[test]
fn a_record_poisoned_by_a_neighbour_misleads_one_start_within_the_cap() {
    let cap = Rate::from_mbit_per_sec(100);
    for scheme in ["wise-start", "s-cubic", "careful-resume", "headstart"] {
        let outcomes = after_an_early_one(scheme, cap, 2_000_000, &[100_000, 200_000], 400_000);
        let reports = [1, 2].map(|number| &outcomes[number].report);
        let known = reports.map(|report| report.known.map(|known| known.record.btl_bw));
        println!("{scheme}: made up {:?}, then {:?}", known[0], known[1]);
        assert!(known[0] > Some(cap), "{scheme}: made up {:?}", known[0]);
        assert!(reports[0].planned <= cap * RTT * 11 / 10, "{scheme}: {}", reports[0]);
        assert!(outcomes[1].completed.is_some(), "{scheme}");
        // Headstart records twice the rate of a flight that the path did not spread.
        let most = if scheme == "headstart" { RATE * 2 } else { RATE };
        assert!(known[1] <= Some(most), "{scheme}: the next one meets {:?}", known[1]);
    }
}

/// Mean response of honest connections of 100 kB under IW 10, which alternate with as many of one
/// misbehaving peer under `scheme`: 15 Mbit/s, 60 ms, 115 kB.
fn honest_beside(scheme: &str, size: u64, lie: Misbehaviour) -> f64 {
    let setup = |scheme| {
        let mut base = noq_proto::ServerConfig::new(Arc::new(NullSessions), Arc::new(NoSecret));
        base.transport_config(Arc::default());
        ServerSetup::with_session_factory(
            base,
            Arc::new(NullSessions),
            Choice::find(scheme).expect("carried"),
        )
        .history(Arc::new(Sharded::new(100)))
        .seed(1)
    };
    let (usual, tested) = (setup("iw10"), setup(scheme));
    let path = PathPlan::dumbbell(
        Rate::from_mbit_per_sec(15),
        Span::from_millis(60),
        Limit::bytes(Bytes::new(115_000)),
    );
    let mut connections = ConnectionSet::new(path, 3);
    let client = || ClientSetup::with_session_factory(Arc::new(NullSessions)).seed(1);
    let honest: Vec<usize> = (0..80)
        .map(|number| {
            let begin = number * 300;
            let download = Transfer::download(Time::from_millis(begin), Bytes::new(100_000));
            let honest = connections.add(number as u32 % 20, download, client(), &usual);
            // Lost packets were acknowledged and never arrive.
            let download = Transfer::download(Time::from_millis(begin + 133), Bytes::new(size));
            let taken = Transfer { is_awaited: false, ..download };
            let liar = connections.add(100, taken, client(), &tested);
            connections.misbehave(liar, lie);
            honest
        })
        .collect();
    let outcomes = connections.run(Time::from_millis(100_000));
    let times = honest.iter().map(|number| outcomes[*number].response().as_nanos() as f64 / 1e6);
    times.sum::<f64>() / honest.len() as f64
}

/// Bar 6 of docs/headstart.md: against the same receivers under IW 10. Each packet that leaves is
/// acknowledged as it does, so that no loss ever lowers the credit.
#[test]
fn receivers_that_acknowledge_early_cost_others_no_more_with_headstart_than_with_iw10() {
    for (size, lie) in
        [(100_000, Misbehaviour::Early), (300_000, Misbehaviour::Early), (300_000, Misbehaviour::Guessing)]
    {
        let [usual, tested] = ["iw10", "headstart"].map(|scheme| honest_beside(scheme, size, lie));
        println!("{lie:?}, {size} bytes: {usual:.0} ms with iw10, {tested:.0} ms, {:.3}", tested / usual);
        assert!(tested <= usual * 1.10, "{lie:?}, {size} bytes: {usual} ms with iw10, {tested} ms");
    }
}

#[test]
fn an_ack_storm_does_not_increase_sending() {
    for scheme in SCHEMES {
        let size = 300_000;
        let honest = run(scheme, size, None);
        let storm = run(scheme, size, Some(Misbehaviour::Storm(300)));
        let sent =
            |outcome: &ConnectionOutcome| outcome.departures.iter().filter(|it| it.bytes.get() > 300).count();
        let (calm, stormy) = (sent(&honest), sent(&storm));
        println!("{scheme}: {calm} packets, in the storm {stormy}");
        assert!(stormy <= calm + calm / 10, "{scheme}: {calm} packets, in the storm {stormy}");
        // The real client gives up at the stack's answer to forged packets that it never sent; the
        // server has no notice of it.
        assert!(storm.report.tally.delivered >= Bytes::new(size), "{scheme}: {}", storm.report);
        let small = storm.departures.iter().filter(|it| it.bytes.get() <= 300).count();
        assert!(small < 600, "{scheme}: {small} small packets in answer to some 75 000");
        assert!(storm.report.tally.delivered <= storm.report.tally.sent, "{scheme}: nothing counts twice");
        assert_eq!(storm.report.tally.spurious, 0, "{scheme}");
    }
}
