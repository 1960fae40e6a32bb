//! s2n-quic compared with noq: the scenarios of quinn's suite, and the table of `docs/adapters.md`.
//!
//! `cargo test --test suite --manifest-path interop/s2n-quic/Cargo.toml`

#[path = "../../../../crates/transports/quinn/tests/suite/comparison.rs"]
mod comparison;
#[path = "../../../../crates/transports/quinn/tests/suite/contract.rs"]
mod contract;
mod example;
#[path = "../../../../crates/transports/quinn/tests/suite/on_noq.rs"]
mod on_noq;
mod on_s2n_quic;
#[path = "../../../../crates/transports/quinn/tests/suite/scenario.rs"]
mod scenario;

use headstart_s2n_quic::{Choice, ChoiceError};
use headstart_startup::scheme::foreign::Call;
use headstart_units::{Bytes, Span, Time};

use comparison::{Stack, compare};
use scenario::{RATE, RTT, Scenario};

const S2N_QUIC: Stack = Stack {
    name: "s2n-quic",
    run: on_s2n_quic::run,
    refusal: |scheme| match Choice::find(scheme) {
        Err(ChoiceError::Unsupported { reason, .. }) => Some(reason),
        Err(error) => panic!("{scheme}: {error}"),
        Ok(_) => None,
    },
    // A packet may leave a millisecond early, in which two or three leave at 25 Mbit/s.
    ahead: 6,
    behind: 6,
    // Its clients acknowledge every tenth packet, and fewer after 25 ms.
    acknowledges_alike: false,
    slowest: 1.25,
    program: "interop/s2n-quic/tests/suite/main.rs",
};

#[test]
fn schemes_decide_on_s2n_quic_as_on_noq_and_the_table_of_the_document_says_where_not() {
    compare(&S2N_QUIC);
}

#[test]
fn every_call_of_the_contract_is_made_over_s2n_quic() {
    // It finds no persistent congestion in these scenarios, for which the adapter has a unit test.
    let omits = [&contract::OVER_QUIC[..], &[(Call::OnTimeout, "none of the scenarios has one")]].concat();
    contract::hold("s2n-quic", &omits, &|scenario, entry| {
        on_s2n_quic::run_choice(scenario, Choice::of(entry).expect("carried"));
    });
}

/// Handshake and request, half a round trip for the answer, the flight at the bottleneck's rate.
#[test]
fn a_known_peer_gets_its_answer_within_a_tenth_of_the_bound() {
    let scenario = Scenario { record: Some((RATE, RTT)), ..Scenario::new("known peer", 100_000) };
    let flight = Bytes::new(1_228) * 86 / RATE;
    for scheme in ["s-cubic", "wise-start"] {
        let outcome = on_s2n_quic::run(&scenario, scheme);
        let bound = (outcome.requested.since(Time::ZERO) + RTT + flight).as_millis_f64();
        let took = outcome.completion().as_millis_f64();
        println!("{scheme}: {took:.2} ms, bound {bound:.2} ms: {:.3}", took / bound);
        assert!(took >= bound * 0.99 && took <= bound * 1.1, "{scheme}: {took} ms, bound {bound} ms");
    }
    let cubic = on_s2n_quic::run_unmodified(&scenario).completion();
    println!("s2n-quic's own CUBIC: {:.2} ms", cubic.as_millis_f64());
    let wise = on_s2n_quic::run(&scenario, "wise-start").completion();
    assert!(wise <= cubic - Span::from_millis(100), "{wise:?}, s2n-quic's own {cubic:?}");
}
