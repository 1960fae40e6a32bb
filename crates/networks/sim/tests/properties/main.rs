//! Properties of every run, for every path, scheme, setting and workload.
//!
//! `HEADSTART_CASES=5000 cargo test -p headstart-sim --test properties` tests more cases.
//!
//! | module | holds |
//! |---|---|
//! | [`delivery`] | everything is delivered once |
//! | [`recovery`] | timers, probes and retransmissions |
//! | [`handshake`] | the RTT of handshakes that lose packets |
//! | [`pace`] | the pace of first flights |

mod delivery;
mod handshake;
mod pace;
mod recovery;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};

/// Runs `test` over `cases` cases, always the same ones.
pub fn over<S: Strategy>(cases: u32, strategy: S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let wanted = std::env::var("HEADSTART_CASES").ok().and_then(|text| text.parse().ok());
    let config = ProptestConfig {
        cases: wanted.unwrap_or(cases),
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..ProptestConfig::default()
    };
    let source = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, source);
    match runner.run(&strategy, test) {
        Ok(()) => {}
        Err(TestError::Fail(reason, value)) => panic!("{reason}\nin the case {value:?}"),
        Err(error) => panic!("{error}"),
    }
}
