//! Departure times of first flights, exactly.

use headstart_stack::{Crypto, Scenario};
use headstart_units::{Bytes, Packets, Rate, Span};

fn dsl(size: u64) -> Scenario {
    Scenario::new(Rate::from_mbit_per_sec(25), Span::from_millis(50), Packets::new(104), Bytes::new(size))
}

#[test]
fn look() {
    for crypto in [Crypto::Null, Crypto::Tls] {
        for scheme in [
            "iw10",
            "s-cubic",
            "wise-start",
            "jump-start",
            "halfback",
            "proactive",
            "blitzstart",
            "careful-resume",
            "bbr",
        ] {
            let mut scenario = dsl(100_000).knowing(1, 1);
            scenario.crypto = crypto;
            let out = &scenario.play(scheme).expect("runs")[0];
            println!(
                "{crypto:?} {scheme}: completion {:?} ms, requested {:?}, lost {}, full {}\n  {}",
                out.completion().as_millis_f64(),
                out.requested.map(|at| at.as_nanos()),
                out.lost_packets,
                out.full_packets().count(),
                out.why
            );
            let times: Vec<_> = out
                .departures
                .iter()
                .map(|it| (it.at.as_nanos() / 1000, it.bytes.get(), it.is_copy))
                .take(30)
                .collect();
            println!("  {times:?}");
        }
    }
}
