//! The handshake measures the round trip that was answered.

use headstart_net::jitter::Order;
use headstart_net::{Limit, duplicate};
use headstart_sim::tcp::TcpConfig;
use headstart_sim::workload::Opener;
use headstart_units::{Rate, Ratio, Span, Time};

use headstart_sim::properties::case::{Transfer, disturbed, jitter, link, loss};
use headstart_sim::properties::watch::Watch;

/// Of two SYNs that arrive, the first triggered the SYN-ACK that was answered.
#[test]
fn a_copy_of_the_syn_does_not_shorten_the_handshake() {
    for seed in 0..100 {
        let mut case =
            disturbed(TcpConfig::default(), Transfer::Flows(vec![(0, 1000)], Opener::Receiver, true), seed);
        let plain = link(Rate::from_mbit_per_sec(1000), Span::from_millis(40), Limit::NONE);
        case.forward = vec![plain.clone()];
        case.reverse = vec![
            duplicate::Params { share: Ratio::ONE }.into(),
            jitter(Span::from_millis(60), Order::Free),
            plain,
        ];
        let (_, _, watch) = case.run(Watch::new(&case));
        let (_, established) = watch.flows[&0].established.expect("nothing is lost");
        assert!(established.smoothed_rtt >= case.least_rtt(), "seed {seed}: {}", established.smoothed_rtt);
    }
}

/// Every packet arrives twice, and the handshake still takes both of its round trips.
#[test]
fn a_copy_of_an_answer_does_not_stand_for_that_of_the_next_round_trip() {
    for opener in [Opener::Sender, Opener::Receiver] {
        let tcp = TcpConfig { handshakes: 2, ..TcpConfig::default() };
        let mut case = disturbed(tcp, Transfer::Flows(vec![(0, 1000)], opener, true), 1);
        let plain = link(Rate::from_mbit_per_sec(1000), Span::from_millis(40), Limit::NONE);
        let twice = || vec![duplicate::Params { share: Ratio::ONE }.into(), plain.clone()];
        (case.forward, case.reverse) = (twice(), twice());
        let (_, _, watch) = case.run(Watch::new(&case));
        let (at, _) = watch.flows[&0].established.expect("nothing is lost");
        assert!(at >= Time::ZERO + case.least_rtt() * 2, "{opener:?}: {at:?}");
    }
}

/// A client whose second SYN was too early has the answer to its first one: its request echoes that
/// attempt, in every repetition.
#[test]
fn a_repeated_request_echoes_the_acknowledged_syn() {
    for seed in 0..1_000 {
        let flows = Transfer::Flows(vec![(0, 1000)], Opener::Receiver, true);
        let mut case = disturbed(TcpConfig::default(), flows, seed);
        let plain = link(Rate::from_mbit_per_sec(10), Span::from_millis(505), Limit::NONE);
        case.forward = vec![plain.clone()];
        case.reverse = vec![loss(Ratio::percent(30)), jitter(Span::from_millis(60), Order::Free), plain];
        let (_, _, watch) = case.run(Watch::new(&case));
        let report = &watch.reports[0];
        assert!(
            report.handshake_retransmissions > 6 || report.min_rtt >= case.least_rtt(),
            "seed {seed}: {report:?}"
        );
    }
}
