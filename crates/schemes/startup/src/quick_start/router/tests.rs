use super::*;
use crate::quick_start::{Nonce, SentRequest};
use alloc::vec::Vec;
use proptest::prelude::*;

const BANDWIDTH: Rate = Rate::from_mbit_per_sec(10);

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn exact(algorithm: Algorithm) -> Params {
    Params { algorithm, granularity: Granularity::Exact, ..Params::new(BANDWIDTH) }
}

fn target(percent: u32) -> Algorithm {
    Algorithm::Target { threshold: Ratio::percent(percent) }
}

fn extreme(tracking: extreme::Params) -> Algorithm {
    Algorithm::Extreme { threshold: Ratio::percent(90), tracking }
}

/// Requests `kbit` kbit/s; returns kbit/s, rounded down, zero for every kind of denial.
fn ask(router: &mut Router, millis: u64, flow: u64, host: u32, kbit: u64) -> u64 {
    let (_, mut request) = SentRequest::new(Rate::from_bits_per_sec(kbit * 1000), 64, 9, Nonce::new(1));
    match router.on_request(at(millis), &mut request, flow, host, 0) {
        RequestResult::Approved(rate) => {
            assert_eq!((request.rate, request.ttl), (rate, 8));
            rate.as_bits_per_sec() / 1000
        }
        _ => 0,
    }
}

/// Fills `percent` of the link from one time to another, packet by packet.
fn load(router: &mut Router, millis: core::ops::Range<u64>, percent: u64) {
    for millisecond in millis {
        // A millisecond at 10 Mbit/s is 1250 bytes.
        router.on_packet(at(millisecond), Bytes::new(1250 * percent / 100), u64::MAX);
    }
}

/// QS Figure 7: ALLOC_RATE of the free rate, at any utilisation.
#[test]
fn share_grants_a_share_of_what_is_free() {
    let mut router = Router::new(exact(Algorithm::Share { alloc_rate: Ratio::percent(50) }));
    #[rustfmt::skip]
    let rows = [
        (0,   20_000, 5_000, "half of an idle link"),
        (1,   20_000, 2_500, "half of what is left"),
        (2,    1_000, 1_000, "no more than was asked for"),
    ];
    for (millis, requested, granted, why) in rows {
        assert_eq!(ask(&mut router, millis, millis, 0, requested), granted, "{why}");
    }
    load(&mut router, 0..1000, 90);
    assert_eq!(ask(&mut router, 1000, 9, 0, 20_000), 500, "half of the last tenth, however busy the link is");
}

/// QS Figure 8: up to the threshold, and nothing above it.
#[test]
fn target_grants_up_to_the_threshold() {
    let mut router = Router::new(exact(target(90)));
    #[rustfmt::skip]
    let rows = [
        (0,   8_000, 8_000, "room for all of it"),
        (1,   8_000, 1_000, "the rest up to 90 %"),
        (2,   8_000,     0, "nothing is left"),
        (200, 8_000, 8_000, "the grants are forgotten after 150 ms and a bit"),
    ];
    for (millis, requested, granted, why) in rows {
        assert_eq!(ask(&mut router, millis, millis, 0, requested), granted, "{why}");
    }
    load(&mut router, 1000..1900, 40);
    assert_eq!(ask(&mut router, 1900, 5, 0, 20_000), 5_000, "90 % less the 40 % in use");
    load(&mut router, 2000..2900, 95);
    assert_eq!(ask(&mut router, 2900, 6, 0, 20_000), 0, "above the threshold");
}

#[test]
fn four_bits_round_down_and_the_rounded_rate_counts() {
    let mut router = Router::new(Params { granularity: Granularity::Encoded, ..exact(target(90)) });
    let granted: Vec<u64> = (0..6).map(|n| ask(&mut router, n, n, 0, 20_480)).collect();
    assert_eq!(
        granted,
        [5_120, 2_560, 1_280, 0, 0, 0],
        "40 kbit/s of the 9000 are left, and there is no code for them"
    );
}

#[test]
fn a_denial_ignores_zeroes_or_deletes_the_option() {
    for (denial, expected, ttl) in [
        (Denial::Ignore, RequestResult::Untouched, 9),
        (Denial::Zero, RequestResult::Zeroed, 0),
        (Denial::Delete, RequestResult::Delete, 9),
    ] {
        let mut router = Router::new(Params { denial, ..exact(target(0)) });
        let (_, mut request) = SentRequest::new(BANDWIDTH, 64, 9, Nonce::new(1));
        assert_eq!(router.on_request(at(0), &mut request, 0, 0, 0), expected);
        assert_eq!(request.ttl, ttl, "{denial:?}");
        assert_eq!(*router.counts(), Counts { requests: 1, ..Counts::default() });
    }
}

#[test]
fn a_denied_request_is_forwarded_without_cost() {
    let mut router = Router::new(Params { requests_per_second: Some(1), ..exact(target(90)) });
    let (_, mut request) = SentRequest::new(Rate::ZERO, 64, 9, Nonce::new(1));
    assert_eq!(router.on_request(at(0), &mut request, 0, 0, 0), RequestResult::Untouched);
    assert_eq!(*router.counts(), Counts::default());
}

#[test]
fn requests_beyond_the_limit_are_not_processed() {
    let mut router = Router::new(Params { requests_per_second: Some(10), ..exact(target(90)) });
    let granted = (0..1000).filter(|n| ask(&mut router, *n, *n, 0, 10) > 0).count();
    assert!((10..=11).contains(&granted), "{granted}");
    assert_eq!(router.counts().beyond_limit, 1000 - granted as u64);
}

/// QS §7.2: the grant counts in full until the data arrives, and less with each packet.
#[test]
fn extreme_releases_a_grant_as_the_flow_uses_it() {
    let mut router =
        Router::new(exact(extreme(extreme::Params { fair: false, ..extreme::Params::default() })));
    assert_eq!(ask(&mut router, 0, 1, 0, 8_000), 8_000);
    router.on_packet(at(0), Bytes::new(60), 1);
    assert_eq!(router.outstanding(at(400)).as_bits_per_sec(), 8_000_000, "longer than Target's memory");
    // 1 MB/s for 400 ms: 400 packets of 1000 bytes, one each millisecond.
    for n in 0..100 {
        router.on_packet(at(400 + n), Bytes::new(1000), 1);
    }
    assert_eq!(router.outstanding(at(499)).as_bits_per_sec(), 6_000_000, "a quarter has come");
    for n in 100..400 {
        router.on_packet(at(400 + n), Bytes::new(1000), 1);
    }
    assert_eq!(router.outstanding(at(799)), Rate::ZERO, "all of it has come");
    assert_eq!(router.outstanding(at(900)), Rate::ZERO);
    assert_eq!(ask(&mut router, 900, 2, 1, 1_000), 1_000, "settled by now");
    assert_eq!((router.score(0), router.tracked()), (utilisation::FULL, (1, 1)));
}

/// QS Equation 4 with w = 0.2: `0.2 x 1 + 0.8 x 0 = 0.2`; then `0.2 x 0.2 + 0.8 x 0 = 0.04`; a good
/// start from there: `0.2 x 1 + 0.8 x 0.04`.
#[test]
fn a_host_that_does_not_use_its_grant_gets_less_next_time() {
    let mut router =
        Router::new(exact(extreme(extreme::Params { fair: false, ..extreme::Params::default() })));
    assert_eq!(ask(&mut router, 0, 1, 7, 8_000), 8_000);
    assert_eq!(ask(&mut router, 1_500, 2, 7, 8_000), 1_600, "0.2 after one that never came");
    assert_eq!(router.score(8), utilisation::FULL, "others are not blamed");
    assert_eq!(ask(&mut router, 3_000, 3, 7, 8_000), 320, "0.04 after two");
    for n in 0..110 {
        router.on_packet(at(3_100 + n), Bytes::new(1000), 3);
    }
    assert_eq!(ask(&mut router, 3_300, 4, 7, 8_000), 1_856, "used: on the way back");
}

/// A host that uses none of its grants keeps the least rate; one used grant raises it.
#[test]
fn a_host_that_requests_too_much_is_reduced_and_can_recover() {
    let params = extreme::Params { fair: false, ..extreme::Params::default() };
    let mut router = Router::new(exact(extreme(params)));
    for n in 0..12 {
        ask(&mut router, n * 1_500, n, 7, 160_000);
    }
    assert_eq!(ask(&mut router, 18_000, 12, 7, 160_000), 80, "0.2^12 of 160 Mbit/s would be nothing");
    assert_eq!(ask(&mut router, 19_500, 13, 7, 40), 40, "who asks for less gets that");
    for n in 0..10 {
        router.on_packet(at(19_600 + n), Bytes::new(1000), 13);
    }
    assert_eq!(ask(&mut router, 21_000, 14, 7, 10_000), 2_000, "a fifth after one good start");
}

#[test]
fn no_flow_gets_more_than_a_fair_share_while_others_get_nothing() {
    let mut router = Router::new(exact(extreme(extreme::Params::default())));
    assert_eq!(ask(&mut router, 0, 1, 1, 20_000), 9_000, "alone: all of it");
    assert_eq!(ask(&mut router, 10, 2, 2, 20_000), 0, "the second gets nothing");
    // Flow 1's data passes; the third request meets a free link and the memory of the second.
    for n in 0..113 {
        router.on_packet(at(20 + n / 10), Bytes::new(1000), 1);
    }
    assert_eq!(ask(&mut router, 50, 3, 3, 20_000), 3_000, "a third of 9 Mbit/s: three asked lately");
}

/// A flood of requests from spoofed hosts: memory stays within its bound, and after the flood a
/// legitimate request gets its full rate within one interval.
#[test]
fn spoofed_requests_use_bounded_state() {
    let tracking = extreme::Params { flows: 64, hosts: 128, ..extreme::Params::default() };
    let mut router = Router::new(exact(extreme(tracking)));
    let bound = {
        let each_flow = 8 + 16 + 128;
        let each_host = 24 + 16;
        router.state_bytes() + 64 * each_flow + 128 * each_host
    };
    for n in 0..200_000_u64 {
        ask(&mut router, n / 20, n, n as u32, 8 + n % 100);
        let (flows, hosts) = router.tracked();
        assert!(flows <= 64 && hosts <= 128);
        assert!(router.state_bytes() <= bound, "{} bytes", router.state_bytes());
    }
    let after = 10_000 + 1_500 + 10;
    assert_eq!(ask(&mut router, after, u64::MAX, u32::MAX, 20_000), 9_000, "recovered within one interval");
}

proptest! {
    /// For any flood of spoofed hosts and any algorithm: memory stays within its bound, and unused
    /// grants are free again when the memory of approvals expires (Extreme: its interval).
    #[test]
    fn the_router_recovers_from_a_flood_within_its_memory(
        algorithm in algorithms(),
        requests in proptest::collection::vec((0_u64..40, 1_u64..40_000), 1..400),
        bins in 1_u8..=16,
    ) {
        let params = Params { memory_bins: bins, ..exact(algorithm) };
        let (mut router, mut fresh) = (Router::new(params), Router::new(params));
        let (mut millis, mut number) = (0, 0);
        for (gap, kbit) in requests {
            (millis, number) = (millis + gap, number + 1);
            ask(&mut router, millis, number, 1_000 + number as u32, kbit);
            let (flows, hosts) = router.tracked();
            prop_assert!(flows <= 10 && hosts <= 2);
            prop_assert!(router.state_bytes() <= Router::new(params).state_bytes() + 10 * 200 + 2 * 100);
        }
        let memory = if matches!(algorithm, Algorithm::Extreme { .. }) { 1_500 } else { 2 * 150 };
        let after = millis + memory + 1;
        prop_assert_eq!(router.outstanding(at(after)), Rate::ZERO);
        prop_assert_eq!(ask(&mut router, after, 0, 1, 8_000), ask(&mut fresh, after, 0, 1, 8_000));
    }
}

/// An event at a router.
#[derive(Clone, Copy, Debug)]
enum Step {
    Packet { bytes: u64, flow: u64 },
    Request { kbit: u64, flow: u64, host: u32 },
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let packet = (40_u64..1500, 0_u64..20).prop_map(|(bytes, flow)| Step::Packet { bytes, flow });
    let request = (1_u64..40_000, 0_u64..20, 0_u32..4).prop_map(|(kbit, flow, host)| Step::Request {
        kbit,
        flow,
        host,
    });
    // Mostly packets, some of them back to back.
    let step = prop_oneof![4 => packet, 1 => request];
    proptest::collection::vec((prop_oneof![Just(0_u64), 1_u64..30_000_000], step), 1..300)
}

fn algorithms() -> impl Strategy<Value = Algorithm> {
    let share = (1_u32..=100).prop_map(|percent| Algorithm::Share { alloc_rate: Ratio::percent(percent) });
    let target_up_to = (0_u32..=100).prop_map(target);
    let tracking = (any::<bool>(), any::<bool>(), 0_usize..10).prop_map(|(scores, fair, flows)| {
        extreme(extreme::Params { scores, fair, flows, hosts: 2, ..extreme::Params::default() })
    });
    prop_oneof![share, target_up_to, tracking]
}

proptest! {
    /// Over random traffic no grant exceeds the requested rate or the algorithm's free rate
    /// (recomputed here from a list of all grants), and the request carries the granted rate.
    #[test]
    fn grants_never_exceed_what_the_algorithm_allows(steps in steps(), algorithm in algorithms(), encoded: bool) {
        let granularity = if encoded { Granularity::Encoded } else { Granularity::Exact };
        let mut router = Router::new(Params { granularity, ..exact(algorithm) });
        let memory = Span::from_millis(150);
        let mut now = Time::ZERO;
        let mut grants: Vec<(Time, u64)> = Vec::new();
        for (gap, step) in steps {
            now += Span::from_nanos(gap);
            match step {
                Step::Packet { bytes, flow } => router.on_packet(now, Bytes::new(bytes), flow),
                Step::Request { kbit, flow, host } => {
                    let wanted = Rate::from_bits_per_sec(kbit * 1000);
                    let used = part(BANDWIDTH, router.utilisation(now)).as_bytes_per_sec();
                    let tracked_before = router.outstanding(now).as_bytes_per_sec();
                    let (_, mut request) = SentRequest::new(wanted, 64, 0, Nonce::new(0));
                    let verdict = router.on_request(now, &mut request, flow, host, 0);
                    let RequestResult::Approved(granted) = verdict else { continue };
                    prop_assert!(granted <= wanted && request.rate == granted && !granted.is_zero());
                    let granted = granted.as_bytes_per_sec();
                    let recent: u64 =
                        grants.iter().filter(|(at, _)| now.since(*at) < memory).map(|(_, rate)| rate).sum();
                    let bandwidth = BANDWIDTH.as_bytes_per_sec();
                    match algorithm {
                        Algorithm::Share { alloc_rate } => {
                            let free = bandwidth.saturating_sub(used).saturating_sub(recent);
                            prop_assert!(granted <= alloc_rate.of(free), "{granted} of {free}");
                        }
                        Algorithm::Target { threshold } => {
                            prop_assert!(granted + recent + used <= threshold.of(bandwidth));
                        }
                        Algorithm::Extreme { threshold, .. } => {
                            prop_assert!(granted + tracked_before + used <= threshold.of(bandwidth));
                        }
                    }
                    prop_assert!(router.outstanding(now).as_bytes_per_sec() >= granted);
                    grants.push((now, granted));
                }
            }
        }
    }
}
