//! The pace of first flights.

use headstart_net::Limit;
use headstart_sim::workload::Opener;
use headstart_startup::catalogue;
use headstart_units::{Bytes, Rate, Span};
use proptest::prelude::*;

use crate::over;
use headstart_sim::properties::case::{Case, Transfer, link};
use headstart_sim::properties::draw::{case, logarithmic};
use headstart_sim::properties::watch::Watch;

/// WiseStart §3.3.1: twice the measured bottleneck rate, and none measured is above the true one.
#[test]
fn wise_start_paces_at_twice_the_bottleneck_at_most() {
    let path =
        (case(), 500_000..=100_000_000_u64, 1..=100_u64, logarithmic(20_000, 1_000_000), any::<bool>());
    over(1_000, path, |(case, bits, delay, size, adapts)| {
        let rate = Rate::from_bits_per_sec(bits);
        let plain = link(rate, Span::from_millis(delay), Limit::bytes(Bytes::new(100_000)));
        let case = Case {
            entry: catalogue::find(if adapts { "wise-start" } else { "wise-start-wa" })
                .expect("in the catalogue"),
            forward: vec![plain.clone()],
            reverse: vec![plain],
            history_capacity: 1,
            peers: 1,
            transfer: vec![Transfer::Flows(
                (0..4).map(|number| (number * 200_000, size)).collect(),
                Opener::Sender,
                true,
            )],
            ..case
        };
        let (_, _, watch) = case.run(Watch::new(&case));
        for (serial, watched) in &watch.flows {
            let Some((_, trace)) = watched.established else { continue };
            let pace = trace.pace.map_or(0.0, |pace| pace.as_bytes_per_sec() as f64);
            // RFC 5681: two segments in a round trip whatever the rate. A tenth more, because an
            // ack for several segments counts some that arrived before its interval began.
            let least = 2.0 * 2.0 * case.tcp.mss.get() as f64 / trace.smoothed_rtt.as_secs_f64();
            let most = (2.0 * rate.as_bytes_per_sec() as f64).max(least) * 1.1;
            prop_assert!(pace <= most, "flow {serial} is paced at {pace} B/s of {most}");
        }
        Ok(())
    });
}
