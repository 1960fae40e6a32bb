//! Results and races made by hand, for tests of what judges and shows them.

use headstart_sim::{Histogram, Totals};
use headstart_study::flow_trace::FlowTrace;
use headstart_study::schemes;

use crate::race::{Measured, Race, SchemeResult, hold_at_once};
use crate::verdict::MOST_HARM;

/// A result under construction.
pub struct ResultBuilder(pub SchemeResult);

impl ResultBuilder {
    /// With this harm to short flows, by seed.
    #[must_use]
    pub fn harm_of(mut self, by_seed: &[f64]) -> Self {
        self.0.measured.insert("harm", Measured::positive(by_seed.to_vec()));
        self
    }

    /// With this share of what long flows had beside the reference, by seed.
    #[must_use]
    pub fn long_share_of(mut self, by_seed: &[f64]) -> Self {
        self.0.measured.insert("long_flow_share", Measured::positive(by_seed.to_vec()));
        self
    }
}

/// A result with these means by seed, without harm.
///
/// # Panics
/// If no scheme has that name.
#[must_use]
pub fn scheme_result(name: &str, by_seed: &[f64]) -> ResultBuilder {
    let all = |value: f64| vec![value; by_seed.len()];
    ResultBuilder(SchemeResult {
        entry: schemes::find(name).expect("in the catalogue"),
        totals: Totals::default(),
        times: Histogram::default(),
        times_by_seed: vec![],
        measured: [
            ("mean_ms", Measured::positive(by_seed.to_vec())),
            ("loss_percent", Measured::percent(&all(0.0))),
            ("bytes_sent_over_useful", Measured::positive(all(1.0))),
            ("harm", Measured::positive(all(1.0))),
        ]
        .into(),
        history_bytes_per_peer: 0,
        asked_at: 0,
        fingerprint: 0,
        has_fingerprint: true,
        data_packets: 0,
        seeds: vec![],
        view: FlowTrace::default(),
        has_counts: true,
        invalid: (0, 0),
    })
}

/// A race of these results, each with another fingerprint unless it has one, in the order of
/// the list.
///
/// # Panics
/// Without a result.
#[must_use]
pub fn race(scheme_results: Vec<SchemeResult>) -> Race {
    let seeds = scheme_results[0].mean().by_seed.len();
    let numbered = scheme_results.into_iter().enumerate().map(|(place, scheme_result)| SchemeResult {
        asked_at: place,
        fingerprint: if scheme_result.fingerprint == 0 {
            100 + place as u64
        } else {
            scheme_result.fingerprint
        },
        ..scheme_result
    });
    let reference = headstart_study::setup::reference();
    Race {
        scheme_results: hold_at_once(numbered.collect(), reference),
        is_pages: false,
        traced_serial: 0,
        seeds,
        empty_seeds: 0,
        begun: 0,
        most_harm: MOST_HARM,
        server: None,
        reference,
    }
}
