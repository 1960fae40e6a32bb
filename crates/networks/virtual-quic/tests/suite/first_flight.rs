//! First flights, exactly: departure times, completion, and repeatability.

use headstart_quic::{Access, Choice, Gates, Hint};
use headstart_units::{Bytes, Packets, Rate, Span, Time};
use headstart_virtual_quic::{ConnectionOutcome, Crypto, Departure, Scenario};

const RTT: Span = Span::from_millis(50);

/// 25 Mbit/s, 50 ms, 104 packets of buffer, and a record of exactly that.
fn dsl(size: u64) -> Scenario {
    Scenario::new(Rate::from_mbit_per_sec(25), RTT, Packets::new(104), Bytes::new(size)).with_record(1, 1)
}

fn run(scenario: &Scenario, scheme: &str) -> ConnectionOutcome {
    let outcome = scenario.run(scheme).expect("it can be played").remove(0);
    assert!(outcome.completed.is_some(), "{scheme} did not complete: {}", outcome.report);
    outcome
}

/// Times between full data packets, in nanoseconds.
fn gaps<'a>(departures: impl Iterator<Item = &'a Departure>) -> Vec<u64> {
    let times: Vec<Time> = departures.map(|it| it.at).collect();
    times.windows(2).map(|pair| pair[1].since(pair[0]).as_nanos()).collect()
}

#[test]
fn a_paced_flight_leaves_packet_by_packet_at_exactly_its_rate() {
    for mbit in [25, 100] {
        for crypto in [Crypto::Tls, Crypto::Null] {
            let rate = Rate::from_mbit_per_sec(mbit);
            let scenario =
                Scenario::new(rate, RTT, Packets::new(1_000), Bytes::new(300_000)).with_record(1, 1);
            let outcome = run(&Scenario { crypto, ..scenario }, "s-cubic");
            let ideal = (Bytes::new(1_200) / rate).as_nanos();
            // The flight is one BDP; packets after it wait for acks.
            let flight = (mbit * 125_000 / 1_200 / 20) as usize;
            let gaps = gaps(outcome.full_packets().take(flight.min(250)));
            assert!(gaps[0] <= ideal, "the pacer's bucket may hold a part of the second packet");
            for (at, gap) in gaps.iter().enumerate().skip(1) {
                assert!(
                    gap.abs_diff(ideal) <= 1,
                    "{mbit} Mbit/s, {crypto:?}: gap {at} is {gap} ns, not {ideal}"
                );
            }
        }
    }
}

/// The whole flow is paced over one handshake RTT: n packets at intervals of one n-th of it.
#[test]
fn a_jump_start_fills_one_round_trip() {
    let outcome = run(&dsl(100_000), "jump-start");
    let gaps = gaps(outcome.full_packets());
    let ideal = outcome.report.handshake_rtt.as_nanos() / 86;
    assert_eq!(gaps.len(), 84, "85 full packets and the rest");
    // A packet or two of the handshake's end may leave in between.
    assert!(gaps[1..].iter().all(|gap| gap.abs_diff(ideal) * 200 < ideal), "{ideal}: {gaps:?}");
    assert!(gaps[0].abs_diff(ideal) * 50 < ideal, "the bucket is known to a byte or two of a hundred");
}

/// Blitzstart §4: the window, rate times smallest known RTT, is paced over 3/4 of the handshake's.
#[test]
fn a_blitzstart_is_paced_over_three_quarters_of_a_round_trip() {
    let hint = Hint { bandwidth: Rate::from_mbit_per_sec(25), access: Access::Dsl };
    let outcome = run(&dsl(100_000).with_hint(hint), "blitzstart");
    let at_hint = (Bytes::new(1_200) / Rate::from_mbit_per_sec(25)).as_nanos();
    let ideal = at_hint * outcome.report.handshake_rtt.as_nanos() / RTT.as_nanos() * 3 / 4;
    let gaps = gaps(outcome.full_packets());
    assert!(gaps[1..80].iter().all(|gap| gap.abs_diff(ideal) * 200 < ideal), "{ideal}: {gaps:?}");
    assert!(gaps[0].abs_diff(ideal) * 50 < ideal, "{} and not {ideal}", gaps[0]);
    assert_eq!(outcome.report.granted, Some(hint.bandwidth));
}

/// Blitzstart §3: the operator's factor for the buffer of an access technology scales the window.
#[test]
fn each_access_technology_has_its_configured_factor() {
    let planned = |access, scheme| {
        let choice = Choice::find(scheme).expect("carried");
        let scenario = dsl(400_000).with_hint(Hint { bandwidth: Rate::from_mbit_per_sec(20), access });
        scenario.run_choice(choice).expect("it can be played")[0].report.planned
    };
    let plain = planned(Access::Dsl, "blitzstart");
    assert_eq!(plain, Rate::from_mbit_per_sec(20) * RTT);
    assert_eq!(planned(Access::Dsl, "blitzstart(dsl=200%)"), plain * 2);
    assert_eq!(planned(Access::Cable, "blitzstart(dsl=200%)"), plain);
}

#[test]
fn wise_start_paces_at_twice_then_half_then_once_the_recorded_rate() {
    let outcome = run(&dsl(100_000), "wise-start");
    let gaps = gaps(outcome.full_packets());
    let once = (Bytes::new(1_200) / Rate::from_mbit_per_sec(25)).as_nanos();
    for (range, ideal) in [(0..19, once / 2), (20..29, once * 2), (30..60, once)] {
        for at in range {
            assert!(gaps[at].abs_diff(ideal) <= 2, "gap {at} is {}, not {ideal}: {gaps:?}", gaps[at]);
        }
    }
}

/// Slow start's window leaves in one burst, as the stack's own does.
#[test]
fn slow_start_is_that_of_the_stack() {
    let (ours, stacks) = (run(&dsl(100_000), "iw10"), run(&dsl(100_000), "stack-cubic"));
    let burst = |outcome: &ConnectionOutcome| {
        let first = outcome.full_packets().next().expect("one").at;
        outcome.full_packets().filter(|it| it.at == first).count()
    };
    assert!(burst(&ours) >= burst(&stacks), "{} and {}", burst(&ours), burst(&stacks));
    let (ours, stacks) = (ours.completion().as_millis_f64(), stacks.completion().as_millis_f64());
    assert!((ours / stacks - 1.0).abs() < 0.05, "{ours} ms and {stacks} ms");
}

/// Handshake and request, half an RTT for the answer, and the flight at the bottleneck's rate.
#[test]
fn the_right_prior_is_within_five_percent_of_the_ideal_and_far_below_slow_start() {
    let packets = 86;
    let flight = Bytes::new(1_228) * packets / Rate::from_mbit_per_sec(25);
    let slow = run(&dsl(100_000), "stack-cubic").completion();
    for scheme in ["s-cubic", "wise-start", "blitzstart"] {
        let hint = Hint { bandwidth: Rate::from_mbit_per_sec(25), access: Access::Dsl };
        let outcome = run(&dsl(100_000).with_hint(hint), scheme);
        // The server's handshake is complete when the request arrives.
        let handshake = outcome.requested.expect("requested").since(outcome.started) + RTT / 2;
        let ideal = (handshake + RTT / 2 + flight).as_millis_f64();
        let (is, slow) = (outcome.completion().as_millis_f64(), slow.as_millis_f64());
        println!("{scheme}: {is:.2} ms, ideal {ideal:.2} ms, slow start {slow:.2} ms");
        assert!(is >= ideal * 0.99, "{scheme}: faster than possible: {is} ms, ideal {ideal} ms");
        assert!(is <= ideal * 1.05, "{scheme}: {is} ms, ideal {ideal} ms");
        assert!(is <= slow * 0.6, "{scheme}: {is} ms, slow start {slow} ms");
        assert_eq!(outcome.lost_packets, 0, "{scheme}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_one_others() {
    let digests = |seed| -> Vec<u64> {
        let scenario = Scenario { crypto: Crypto::Null, seed, ..dsl(200_000) };
        let competitor = (scenario.transfer, headstart_quic::choice::slow_start());
        let scenario = Scenario { competitors: vec![competitor; 2], ..scenario };
        let outcomes = scenario.run("wise-start").expect("it can be played");
        outcomes.iter().map(|outcome| outcome.digest).collect()
    };
    assert_eq!(digests(1), digests(1));
    assert_ne!(digests(1), digests(2));
}

#[test]
fn with_tls_times_and_sizes_are_the_same_each_time() {
    let departures = || run(&dsl(200_000), "wise-start").departures;
    assert_eq!(departures(), departures());
}

/// The stack requires room for a full packet even if only the rest of the data is left, and probes
/// for larger ones. Neither may delay the end of a flight until the whole of it is acknowledged.
#[test]
fn the_last_packet_of_a_flight_is_not_delayed_at_any_size() {
    for (packet, discovers_mtu) in [(1_200, false), (1_352, false), (1_452, false), (1_200, true)] {
        for size in (100_000..101_600).step_by(160) {
            let scenario = Scenario { packet, discovers_mtu, ..dsl(size) };
            let [jump, halfback] = ["jump-start", "halfback"].map(|it| run(&scenario, it).completed);
            let late = halfback.zip(jump).map(|(halfback, jump)| halfback.since(jump));
            assert!(
                late.is_some_and(|it| it <= Span::from_millis(2)),
                "{size} bytes in packets of {packet}, discovery {discovers_mtu}: {halfback:?}, with jump-start {jump:?}"
            );
        }
    }
}

/// The threshold cuts a longer answer short. Its flight does not contain the last packet of the
/// data, and the room that is left may be less than the largest packet.
#[test]
fn a_flight_that_is_cut_short_is_out_after_a_round_trip_whatever_the_size_of_packets() {
    for (packet, discovers_mtu) in [(1_200, false), (1_352, false), (1_452, false), (1_200, true)] {
        for size in [141_000, 200_000, 300_000] {
            let path =
                Scenario::new(Rate::from_mbit_per_sec(100), RTT, Packets::new(1_000), Bytes::new(size));
            let path = Scenario { packet, discovers_mtu, gates: Gates::OPEN, ..path };
            let outcome = run(&path, "halfback");
            let report = &outcome.report;
            let what = format!("{size} bytes in packets of {packet}, discovery {discovers_mtu}: {report}");
            assert!(report.tally.copies >= 40, "half of the flight: {what}");
            // Handshake, flight, its acks, the rest in as many windows of 140 kB, and one to spare.
            let round_trips = 3 + (size - 1) / 140_000;
            let most = RTT * (round_trips + 1);
            let took = outcome.completed.map(|at| at.since(Time::ZERO));
            assert!(took.is_some_and(|took| took <= most), "{took:?}, {most:?} at most: {what}");
        }
    }
}
