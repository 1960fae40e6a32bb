//! The same scenarios over noq and quinn: the same decisions, and the wire within a distance.

use headstart_quinn::{Access, Choice, ChoiceError, Hint, StartReport};
use headstart_startup::catalogue;
use headstart_units::{Bytes, Packets, Rate, Span, Time};

use crate::scenario::{CLIENT, Outcome, RATE, RTT, Scenario};
use crate::{on_noq, on_quinn};

fn scenarios() -> Vec<Scenario> {
    let record = Some((RATE, RTT));
    let hint = Some(Hint { bandwidth: RATE, access: Access::Dsl });
    let new = Scenario::new;
    let known = |name, size| Scenario { record, hint, ..new(name, size) };
    let millis = Span::from_millis;
    vec![
        new("cold", 100_000),
        known("known peer", 100_000),
        Scenario { record: Some((RATE, millis(200))), ..new("stale record", 100_000) },
        Scenario { record: Some((Rate::from_mbit_per_sec(125), RTT)), ..new("wrong record", 500_000) },
        Scenario { hint, ..new("hint", 100_000) },
        Scenario { losses: vec![20, 21, 50], ..known("losses", 100_000) },
        Scenario { losses: vec![84, 85], ..known("lost tail", 100_000) },
        Scenario {
            answers: vec![(millis(0), 5_000); 8].into_iter().chain([(millis(0), 100_000)]).collect(),
            ..known("application limit", 0)
        },
        Scenario {
            answers: vec![(millis(0), 20_000), (millis(200), 100_000), (millis(20), 300_000)],
            ..known("several answers", 0)
        },
        Scenario {
            migration: Some((Time::from_millis(120), (CLIENT.ip(), 11_000).into())),
            ..known("another port", 500_000)
        },
        Scenario {
            migration: Some((Time::from_millis(120), ([10, 0, 0, 9], 11_000).into())),
            ..known("another address", 500_000)
        },
    ]
}

/// Schemes that are compared by default, and those found by name.
fn schemes() -> Vec<String> {
    let others = ["headstart", "bbr-v3", "prague", "google-quic", "halfback(additional=0%)"];
    let all = catalogue::all().into_iter().map(|entry| entry.name.to_string());
    all.chain(others.iter().filter(|name| catalogue::find(name).is_ok()).map(|&name| name.to_owned()))
        .collect()
}

/// Everything that a scheme and the gates decided, as one line; rates and sizes to a percent.
fn decisions(report: &StartReport) -> String {
    let phases: Vec<_> = report.phases.iter().map(|(_, phase)| *phase).collect();
    format!(
        "{} from {} known {} refused {:?} {:?} burst {} flights {} phases {phases:?} migrated {} record {:?}",
        report.arm.name(),
        report.source.name(),
        report.known.is_some(),
        report.refusal,
        report.nothing_to_gain,
        report.burst.get(),
        report.flights,
        report.migrated,
        report.record_outcome,
    )
}

/// Most packets by which the second is ahead, and behind, in the RTT after its first packet.
fn distance(first: &Outcome, second: &Outcome) -> (usize, usize) {
    let left = |outcome: &Outcome| -> Vec<Span> {
        let begun = outcome.departures.first().copied().unwrap_or_default();
        let after = outcome.departures.iter().map(|at| at.since(begun));
        after.take_while(|&after| after < RTT - Span::from_millis(1)).collect()
    };
    let (first, second) = (left(first), left(second));
    let by = |departures: &[Span], at: Span| departures.iter().filter(|&&it| it <= at).count();
    let times = first.iter().chain(&second);
    let counts: Vec<_> = times.map(|&at| (by(&first, at), by(&second, at))).collect();
    let ahead = counts.iter().map(|(one, other)| other.saturating_sub(*one)).max();
    let behind = counts.iter().map(|(one, other)| one.saturating_sub(*other)).max();
    (ahead.unwrap_or(0), behind.unwrap_or(0))
}

/// A scheme's row in the table of `docs/adapters.md`.
fn row(scheme: &str) -> String {
    let (on_noq, on_quinn) = (headstart_quic::Choice::find(scheme), Choice::find(scheme));
    let noq = match &on_noq {
        Err(headstart_quic::ChoiceError::Unsupported { .. }) => "refused",
        Err(error) => panic!("{scheme}: {error}"),
        Ok(choice) if choice.scheme().is_none() => "the stack's own",
        Ok(choice) if choice.needs_duplicate_sender() => "carried, copies at the socket",
        Ok(_) => "carried",
    };
    let refused = match &on_quinn {
        Err(ChoiceError::Unsupported { reason, .. }) => Some(*reason),
        Err(error) => panic!("{scheme}: {error}"),
        Ok(_) => None,
    };
    if let Some(reason) = refused {
        return format!("| `{scheme}` | {noq} | refused: {reason} | | | |");
    }
    assert_eq!(noq, "carried", "{scheme}: what quinn carries, noq does");
    let scenarios = scenarios();
    let (mut different, mut slowest, mut known) = (vec![], (0.0, ""), (0, 0, 0.0));
    for scenario in &scenarios {
        let (noq, quinn) = (on_noq::run(scenario, scheme), on_quinn::run(scenario, scheme));
        let what = format!("{scheme}, {}:\n{}\n{}", scenario.name, noq.report, quinn.report);
        assert_eq!(quinn.completed.len(), scenario.answers.len(), "all answers arrive: {what}");
        assert!(is_near(noq.report.planned.get(), quinn.report.planned.get()), "{what}");
        let paces = [&noq, &quinn].map(|it| it.report.pace.map_or(0, Rate::as_bytes_per_sec));
        assert!(is_near(paces[0], paces[1]), "{what}");
        let [one, other] = [&noq, &quinn].map(|it| decisions(&it.report));
        let (ahead, behind) = distance(&noq, &quinn);
        let ratio = quinn.completion().as_millis_f64() / noq.completion().as_millis_f64();
        if one != other {
            different.push(scenario.name);
        }
        if ratio > slowest.0 {
            slowest = (ratio, scenario.name);
        }
        if scenario.name == "known peer" {
            known = (ahead, behind, ratio);
        }
        // Nothing but the pacer is between a plan and the wire before the first acknowledgement.
        let is_open = ["cold", "known peer", "stale record", "hint"].contains(&scenario.name);
        assert!(!is_open || one == other, "the same decisions: {one}\n{other}\n{what}");
        assert!(!is_open || (ahead <= AHEAD && behind <= BEHIND), "+{ahead}, -{behind} packets: {what}");
        assert!(!is_open || ratio <= 1.05, "{ratio} of noq's time: {what}");
    }
    let same = scenarios.len() - different.len();
    let different =
        if different.is_empty() { String::new() } else { format!("; not: {}", different.join(", ")) };
    let (ahead, behind, ratio) = known;
    format!(
        "| `{scheme}` | carried | {same} of {}{different} | {ahead}, {behind} | {ratio:.2} | {:.2} ({}) |",
        scenarios.len(),
        slowest.0,
        slowest.1,
    )
}

/// Most packets by which quinn is ahead of noq in a first flight: two buckets, and a tenth of the
/// last fifth of the flight.
const AHEAD: usize = 22;
/// And behind it: while the bucket fills.
const BEHIND: usize = 10;

/// Within a percent: the handshakes are not equally long to the microsecond.
fn is_near(one: u64, other: u64) -> bool {
    one.abs_diff(other) * 100 <= one.max(other)
}

const BEGIN: &str = "<!-- Written by crates/quinn/tests/suite/conformance.rs -->\n";
const END: &str = "<!-- end -->\n";
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/adapters.md");

/// With `HEADSTART_WRITE_DOCS` in the environment it writes the table instead.
#[test]
fn schemes_decide_on_quinn_as_on_noq_and_the_table_of_the_document_says_where_not() {
    let mut table = String::from(
        "| scheme | noq | quinn: decisions as on noq | packets ahead, behind | time, of noq's | the most |\n\
         |---|---|---|--:|--:|---|\n",
    );
    for scheme in schemes() {
        table += &row(&scheme);
        table.push('\n');
    }
    let page = std::fs::read_to_string(PAGE).expect("docs/adapters.md");
    let (before, rest) = page.split_once(BEGIN).expect("the table's begin");
    let (found, after) = rest.split_once(END).expect("the table's end");
    if std::env::var_os("HEADSTART_WRITE_DOCS").is_some() {
        let page = format!("{before}{BEGIN}{table}{END}{after}");
        return std::fs::write(PAGE, page).expect("docs/adapters.md is writable");
    }
    assert_eq!(found, table, "write it with HEADSTART_WRITE_DOCS=1");
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
