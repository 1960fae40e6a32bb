//! Losses are repaired: no timer is lost, and none expires without a delay or a loss.

use headstart_net::jitter::Order;
use headstart_net::{ElementPlan, Limit};
use headstart_sim::NullRecorder;
use headstart_sim::tcp::{DelayedAck, Probe, TcpConfig};
use headstart_sim::workload::Opener;
use headstart_sim::workload::page::Fetch;
use headstart_units::{Bytes, Rate, Ratio, Span, Time};
use proptest::prelude::*;

use crate::over;
use headstart_sim::properties::case::{Case, Transfer, bursts, disturbed, jitter, link};
use headstart_sim::properties::draw::{case, delay, logarithmic, rate};
use headstart_sim::properties::watch::Watch;

/// Requests that follow one another on one connection: answers to one do not acknowledge the next.
#[test]
fn a_lost_request_is_repeated_although_earlier_responses_arrive() {
    for seed in 0..100 {
        let page = Transfer::Pages(vec![(0, 10_000); 8], Fetch::Multiplexed, 1_000);
        let (summary, _, NullRecorder) = disturbed(TcpConfig::default(), page, seed).run(NullRecorder);
        assert_eq!(summary.unfinished, 0, "seed {seed}");
    }
}

/// The reordering timer finds losses, the window allows no packet, and the rest of the data in
/// flight is lost too: without a probe the connection would stall.
#[test]
fn a_quic_probe_stays_armed_when_the_reordering_timer_finds_losses() {
    for seed in 0..100 {
        let tcp = TcpConfig { probe: Probe::Quic, prr: false, ..TcpConfig::default() };
        let flows = Transfer::Flows(vec![(0, 300_000)], Opener::Sender, true);
        let (summary, _, NullRecorder) = disturbed(tcp, flows, seed).run(NullRecorder);
        assert_eq!(summary.unfinished, 0, "seed {seed}");
    }
}

/// A burst of losses that lasts for packets, not for time: each probe is one step out of it.
#[test]
fn a_quic_probe_comes_back_within_the_longest_timeout() {
    for seed in 0..100 {
        let tcp = TcpConfig { probe: Probe::Quic, ..TcpConfig::default() };
        let flows = Transfer::Flows(vec![(0, 100_000)], Opener::Sender, true);
        let mut case = disturbed(tcp, flows, seed);
        case.forward.push(bursts(Ratio::percent(2), Ratio::new(1, 30)));
        let (summary, _, NullRecorder) = case.run(NullRecorder);
        // Some bursts are 300 packets long, and there are about two for each 100 packets.
        assert!(summary.ended_at < Time::from_millis(40_000_000), "seed {seed}: {summary:?}");
    }
}

/// One to three plain links with as much buffer as it takes, and packets delayed but in order.
fn faultless_direction() -> impl Strategy<Value = Vec<ElementPlan>> {
    let late =
        proptest::option::of((0..=60_u64).prop_map(|bound| jitter(Span::from_millis(bound), Order::Kept)));
    let link = (rate(), delay()).prop_map(|(rate, delay)| link(rate, delay, Limit::NONE));
    proptest::collection::vec((late, link), 1..=3)
        .prop_map(|parts| parts.into_iter().flat_map(|(late, link)| [late, Some(link)]).flatten().collect())
}

fn faultless_case() -> impl Strategy<Value = Case> {
    (case(), faultless_direction(), faultless_direction()).prop_map(|(case, forward, reverse)| Case {
        forward,
        reverse,
        // No timer expires: any segment sent twice was then declared lost although it was not.
        tcp: TcpConfig {
            probe: Probe::None,
            min_rto: Span::from_secs(100_000),
            initial_rto: Span::from_secs(100_000),
            max_rto: Span::from_secs(100_000),
            ..case.tcp
        },
        ..case
    })
}

/// Without loss and overtaking only copies are sent twice, and no packet waits for a timeout.
#[test]
fn no_retransmission_occurs_without_loss() {
    over(2_000, faultless_case(), |case| {
        let (summary, _, watch) = case.run(Watch::new(&case));
        prop_assert_eq!(summary.unfinished, 0);
        for report in &watch.reports {
            let counts = &report.counts;
            let probes = if case.entry.name == "reactive" { counts.probes } else { 0 };
            // A probe may carry new data.
            prop_assert!(counts.retransmissions <= probes, "{report:?}");
            prop_assert_eq!((counts.lost, counts.timeouts), (0, 0), "{:?}", report);
            let name = &case.entry.name;
            let makes_copies = name == "proactive" || name == "rc3" || name.starts_with("halfback");
            prop_assert!(counts.copies == 0 || makes_copies, "{report:?}");
            // A copy may still be on its way when everything is acknowledged.
            prop_assert!(u64::from(report.duplicates) <= counts.copies + probes, "{report:?}");
        }
        Ok(())
    });
}

/// A path with a margin before every timer: none expires there.
fn calm_case() -> impl Strategy<Value = Case> {
    let rate = (20_000_000..=1_000_000_000_u64).prop_map(Rate::from_bits_per_sec);
    let delay = (1..=50_u64).prop_map(Span::from_millis);
    let ack = prop_oneof![
        Just(DelayedAck::IMMEDIATE),
        Just(DelayedAck { every: 2, timeout: Span::from_millis(40), ..DelayedAck::SECOND }),
        Just(DelayedAck { every: 2, timeout: Span::from_millis(40), quick: 16, ..DelayedAck::SECOND }),
    ];
    (case(), rate, delay, ack, logarithmic(1, 300_000)).prop_map(|(case, rate, delay, delayed_ack, size)| {
        let link = vec![link(rate, delay, Limit::NONE)];
        Case {
            forward: link.clone(),
            reverse: link,
            tcp: TcpConfig {
                delayed_ack,
                receive_window: Bytes::new(141_000),
                min_rto: Span::from_millis(200),
                ..case.tcp
            },
            transfer: vec![Transfer::Flows(
                vec![(0, size), (60_000, size), (120_000, size)],
                Opener::Sender,
                true,
            )],
            ..case
        }
    })
}

#[test]
fn no_timer_fires_without_delay() {
    over(2_000, calm_case(), |case| {
        let (_, _, watch) = case.run(Watch::new(&case));
        for report in &watch.reports {
            let counts = &report.counts;
            prop_assert_eq!(
                (counts.retransmissions, counts.timeouts, counts.probes, counts.lost),
                (0, 0, 0, 0),
                "{:?}",
                report
            );
        }
        Ok(())
    });
}
