//! quinn compared with noq: decisions, the wire and the time.

use headstart_quinn::{Choice, ChoiceError};
use headstart_units::{Bytes, Packets, Rate, Span, Time};

use crate::comparison::{Stack, compare};
use crate::scenario::{Outcome, RATE, RTT, Scenario};
use crate::{on_noq, on_quinn};

const QUINN: Stack = Stack {
    name: "quinn",
    run: on_quinn::run,
    refusal: |scheme| match Choice::find(scheme) {
        Err(ChoiceError::Unsupported { reason, .. }) => Some(reason),
        Err(error) => panic!("{scheme}: {error}"),
        Ok(_) => None,
    },
    // Two buckets, and a tenth of the last fifth of the flight; and while the bucket fills.
    ahead: 22,
    behind: 10,
    acknowledges_alike: true,
    slowest: 1.05,
    program: "crates/transports/quinn/tests/suite/conformance.rs",
};

#[test]
fn schemes_decide_on_quinn_as_on_noq_and_the_table_of_the_document_says_where_not() {
    compare(&QUINN);
}

/// Handshake and request, half a round trip for the answer, the flight at the bottleneck's rate.
#[test]
fn a_known_peer_gets_its_answer_within_a_twentieth_of_the_bound_on_noq_and_a_tenth_on_quinn() {
    let scenario = Scenario { record: Some((RATE, RTT)), ..Scenario::new("known peer", 100_000) };
    let flight = Bytes::new(1_228) * 86 / RATE;
    let stacks = [("noq", on_noq::run as fn(&_, &_) -> _, 1.05), ("quinn", on_quinn::run, 1.1)];
    for scheme in ["s-cubic", "wise-start"] {
        for (stack, run, most) in stacks {
            let outcome: Outcome = run(&scenario, scheme);
            let bound = (outcome.requested.since(Time::ZERO) + RTT + flight).as_millis_f64();
            let took = outcome.completion().as_millis_f64();
            println!("{scheme} on {stack}: {took:.2} ms, bound {bound:.2} ms: {:.3}", took / bound);
            assert!(took >= bound * 0.99 && took <= bound * most, "{scheme} on {stack}: {took}, {bound}");
            assert_eq!(outcome.lost, 0, "{scheme} on {stack}");
        }
    }
    let cubic = on_quinn::run_unmodified(&scenario).completion().as_millis_f64();
    println!("quinn's own CUBIC: {cubic:.2} ms");
    let wise = on_quinn::run(&scenario, "wise-start").completion().as_millis_f64();
    assert!(wise <= cubic * 0.6, "{wise} ms, quinn's own {cubic} ms");
}

/// The pacer's bucket is full when a flight begins, and filled once more when it is found empty.
#[test]
fn a_paced_flight_leaves_quinn_in_bursts_of_at_most_twenty_packets_and_then_ten_at_the_scheme_s_pace() {
    for (mbit, most) in [(25, 10), (40, 10)] {
        let rate = Rate::from_mbit_per_sec(mbit);
        let path = Scenario { rate, buffer: Packets::new(1_000), ..Scenario::new("paced", 300_000) };
        let outcome = on_quinn::run(&Scenario { record: Some((rate, RTT)), ..path }, "s-cubic");
        let begun = outcome.departures[0];
        let mut bursts: Vec<(Span, u64)> = vec![];
        for at in outcome.departures.iter().map(|at| at.since(begun)).take_while(|&at| at < RTT * 3 / 4) {
            match bursts.last_mut() {
                Some((last, packets)) if *last == at => *packets += 1,
                _ => bursts.push((at, 1)),
            }
        }
        let sizes: Vec<u64> = bursts.iter().map(|(_, packets)| *packets).collect();
        println!("{mbit} Mbit/s: {bursts:.1?}");
        assert!(sizes[0] <= 20 && sizes[1..].iter().all(|&size| size <= most), "{sizes:?}");
        // The pace: what left between the first and the last of these, but for that burst.
        let (last, _) = bursts[bursts.len() - 1];
        let after: u64 = sizes[1..].iter().sum();
        let pace = (Bytes::new(1_200) * after / last).as_bits_per_sec();
        let wanted = rate.as_bits_per_sec();
        assert!(pace.abs_diff(wanted) * 20 <= wanted, "{pace} bit/s, wanted {wanted}: {bursts:?}");
    }
}

/// A larger packet than the scheme began with is found on the way; its probes are not the scheme's.
#[test]
fn path_mtu_discovery_costs_no_more_than_on_noq() {
    for scheme in ["iw10", "s-cubic", "jump-start"] {
        let scenario = Scenario { record: Some((RATE, RTT)), ..Scenario::new("discovery", 300_000) };
        let [on_quinn, on_noq] = [on_quinn::run as fn(&_, &_) -> _, on_noq::run].map(|run| {
            let [without, with] = [false, true].map(|discovers_mtu| -> Outcome {
                run(&Scenario { discovers_mtu, ..scenario.clone() }, scheme)
            });
            let phases = |outcome: &Outcome| outcome.report.phases.iter().map(|it| it.1).collect::<Vec<_>>();
            assert_eq!(phases(&with), phases(&without), "{scheme}");
            assert_eq!(with.lost, 0, "{scheme}");
            with.completion().as_millis_f64() / without.completion().as_millis_f64()
        });
        println!("{scheme}: {on_quinn:.3} of the time without discovery, on noq {on_noq:.3}");
        assert!(on_quinn <= on_noq + 0.03, "{scheme}: {on_quinn:.3}, on noq {on_noq:.3}");
    }
}

/// quinn requires room for a full packet even if only the rest of the data is left, and tells no
/// controller of the probes that it has in flight.
#[test]
fn the_last_packet_of_a_flight_is_not_delayed_at_any_size() {
    for size in (100_000..101_600).step_by(160) {
        let run = |discovers_mtu| {
            let scenario = Scenario { discovers_mtu, ..Scenario::new("any size", size) };
            on_quinn::run(&scenario, "jump-start").completion().as_millis_f64()
        };
        let (without, with) = (run(false), run(true));
        // Two round trips before the flight, half of one after it.
        assert!(without <= 160.0 && with <= 160.0, "{size} bytes: {without} ms, with discovery {with} ms");
    }
}
