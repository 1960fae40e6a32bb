use super::super::steps::{Event, Expected, play};
use super::*;
use crate::base::testing::{MSS, acked, lost, timed_out};
use crate::event::Transmission;
use crate::history::{Record, SharedRecord};
use crate::path::{RateEstimator, Rtt, SendStamp};
use alloc::collections::VecDeque;
use headstart_units::Time;

const RTT: Span = Span::from_millis(100);

fn prior() -> Prior {
    Prior::bare(Time::ZERO, MSS, RTT, Bytes::new(10_000_000))
}

#[test]
fn the_scheme_requires_sent_events() {
    assert!(super::super::Scheme::Pcp(established()).needs_sent_events());
    assert!(super::super::Scheme::Pcp(established()).requirements().every_ack);
}

fn established() -> Pcp {
    let mut pcp = Pcp::new(Params::default());
    let _ = pcp.establish(&prior());
    pcp
}

fn leaves(ms: u64, is_app_limited: bool) -> Sent {
    let transmission = Transmission::Original;
    Sent { now: Time::from_millis(ms), bytes: MSS, in_flight: MSS, transmission, is_app_limited }
}

/// An ack of data sent at `sent` milliseconds, after `rtt` milliseconds, within the first round.
fn ack(sent: u64, rtt: u64) -> Event {
    let (newest_sent_at, rtt) = (Time::from_millis(sent), Span::from_millis(rtt));
    let measured = Rtt { latest: rtt, smoothed: RTT, variation: Span::ZERO, min: RTT };
    let mut ack = Ack { newest_sent_at, rtt_sample: Some(rtt), rtt: measured, ..acked(Time::ZERO, MSS) };
    ack.delivered = Bytes::MAX;
    Event::Ack(ack)
}

#[test]
fn the_first_probe_is_one_segment_in_half_an_rtt_or_a_third_of_the_recorded_rate() {
    let record = Record {
        btl_bw: Rate::from_bytes_per_sec(300_000),
        rt_prop: RTT,
        window: MSS,
        ssthresh: MSS,
        ..Record::default()
    };
    let known = Some(SharedRecord { record, live: 0 });
    for (history, rate, why) in [(None, 20_000, "PCP §3.3"), (known, 100_000, "PCP §3.4")] {
        let plan = Pcp::new(Params::default()).establish(&Prior { history, ..prior() });
        assert_eq!(plan.allowance.pace, Some(Rate::from_bytes_per_sec(rate)), "{why}");
        assert_eq!((plan.burst, plan.flight), (MSS, MSS * 5), "{why}");
    }
}

#[test]
fn accepted_probes_double_the_increase_and_refused_ones_halve_it() {
    let mut pcp = established();
    for n in 0..5 {
        pcp.on_sent(&leaves(50 * n, false));
    }
    assert_eq!(pcp.phase(), "Judging");
    assert_eq!(pcp.allowance().pace, Some(Rate::from_bytes_per_sec(10_000)), "one segment an RTT meanwhile");
    #[rustfmt::skip]
    let steps = [
        (250, ack(150, 100), Expected::Paced(7_000, 10_000),  "the last packet has not been acked"),
        (300, ack(200, 100), Expected::Paced(17_000, 60_000), "flat: base 20, and 40 more are asked for"),
    ];
    play(&mut pcp, &steps);
    for n in 0..5 {
        pcp.on_sent(&leaves(320 + 16 * n, false));
    }
    #[rustfmt::skip]
    let steps = [
        (420, ack(320, 100), Expected::Paced(9_000, 20_000),  "the base rate meanwhile"),
        (450, ack(336, 110), Expected::Paced(9_000, 20_000),  "a queue"),
        (470, ack(352, 120), Expected::Paced(9_000, 20_000),  "that grows"),
        (490, ack(368, 130), Expected::Paced(9_000, 20_000),  "and grows"),
        (524, ack(384, 140), Expected::Paced(13_000, 40_000), "refused: 20 is kept, 20 more are asked for"),
    ];
    play(&mut pcp, &steps);
    for n in 0..5 {
        pcp.on_sent(&leaves(530 + 25 * n, false));
    }
    let loss = |sent| {
        let newest_lost_sent_at = Time::from_millis(sent);
        Event::Congestion(Congestion { newest_lost_sent_at, opens_episode: false, ..lost(Time::ZERO, MSS) })
    };
    #[rustfmt::skip]
    let steps = [
        (640, loss(400), Expected::Paced(9_000, 20_000),  "not a packet of the train"),
        (650, loss(530), Expected::Paced(11_000, 30_000), "a packet of the train: 10 more are asked for"),
    ];
    play(&mut pcp, &steps);
    for n in 0..5 {
        pcp.on_sent(&leaves(700 + 33 * n, false));
    }
    #[rustfmt::skip]
    let steps = [
        (800, loss(700), Expected::Paced(9_000, 20_000),  "less than a segment an RTT is not worth a probe"),
        (900, Event::Timeout(timed_out(Time::ZERO)), Expected::Paced(7_000, 10_000), "a timeout halves the rate"),
        (950, Event::Timeout(timed_out(Time::ZERO)), Expected::Paced(7_000, 10_000), "never below a segment an RTT"),
    ];
    play(&mut pcp, &steps);
    assert_eq!(pcp.phase(), "Waiting");
}

#[test]
fn refusals_at_the_smallest_increase_are_further_and_further_apart() {
    let mut pcp = established();
    pcp.increase = pcp.min_window();
    for rounds in [1, 2, 4, 8, 16, 32, 32] {
        pcp.refuse();
        for round in 0..rounds {
            assert_eq!(pcp.phase(), "Waiting", "round {round} of {rounds}");
            pcp.on_round(RTT);
        }
        assert_eq!(pcp.phase(), "Probing");
    }
}

#[test]
fn a_train_cut_short_by_the_application_shows_only_its_own_rate() {
    let mut pcp = established();
    pcp.increase = Rate::from_bytes_per_sec(1_000_000);
    pcp.begin_probing();
    for (ms, is_app_limited) in [(0, false), (1, false), (21, true)] {
        pcp.on_sent(&leaves(ms, is_app_limited));
    }
    for sent in [0, 1, 21] {
        let Event::Ack(ack) = ack(sent, 100) else { unreachable!() };
        assert_eq!(pcp.on_ack(&ack), Next::Stay);
    }
    assert_eq!(pcp.base, Rate::from_bytes_per_sec(95_238), "2000 bytes in 21 ms");
}

/// PCP §3.2 and §3.5, with a base rate of 100 kB/s on a path of 100 ms.
#[test]
fn a_standing_queue_is_drained_unless_that_never_helps() {
    let mut pcp = established();
    pcp.base = Rate::from_bytes_per_sec(100_000);
    #[rustfmt::skip]
    let rounds = [
        (110, 100_000, "within the slack"),
        (125,  80_000, "100/125 of it has no queue"),
        (125,  80_000, "that data had left before"),
        (100,  80_000, "drained"),
        (160,  50_000, "a queue again"),
        (160,  50_000, "stale"),
        (160,  31_250, "it did not help"),
        (160,  31_250, "stale"),
        (160,  19_531, "nor did that"),
        (160,  19_531, "stale"),
        (160,  18_799, "nor that: a tenth of 37.5 %"),
    ];
    for (met, base, why) in rounds {
        pcp.queue.on_sample(Span::from_millis(met));
        pcp.on_round(RTT);
        assert_eq!(pcp.base, Rate::from_bytes_per_sec(base), "{why}");
    }
}

#[test]
fn a_mark_refuses_the_train_and_halves_the_rate() {
    let mut pcp = established();
    pcp.base = Rate::from_bytes_per_sec(200_000);
    pcp.on_sent(&leaves(0, false));
    let mark = Congestion { signal: Signal::CongestionExperienced, ..lost(Time::ZERO, Bytes::ZERO) };
    let increase = pcp.increase;
    assert_eq!(pcp.on_congestion(&mark), Next::Stay);
    assert_eq!((pcp.base, pcp.increase), (Rate::from_bytes_per_sec(100_000), increase * Ratio::new(1, 2)));
}

/// A link of `capacity` with an unlimited queue, an RTT of 100 ms, and a sender that always has
/// data. Returns the base rate after `seconds`, the longest queueing delay, and bytes delivered.
fn run(capacity: Rate, seconds: u64) -> (Rate, Span, Bytes) {
    let mut pcp = established();
    let (mut estimator, mut rtt) = (RateEstimator::default(), Rtt::default());
    let mut under_way: VecDeque<(Time, SendStamp)> = VecDeque::new();
    let (mut link_free_at, mut next_send_at) = (Time::ZERO, Time::ZERO);
    let (mut longest, mut in_flight) = (Span::ZERO, Bytes::ZERO);
    let end = Time::ZERO + Span::from_secs(seconds);
    loop {
        let allowance = pcp.allowance();
        let may_send = in_flight + MSS <= allowance.window;
        let acked_at = under_way.front().map_or(Time::NEVER, |&(at, _)| at);
        if may_send && next_send_at <= acked_at {
            let now = next_send_at;
            if now > end {
                break;
            }
            let stamp = estimator.on_sent(now, in_flight);
            in_flight += MSS;
            let starts = link_free_at.max(now);
            link_free_at = starts + MSS / capacity;
            longest = longest.max(starts.since(now));
            under_way.push_back((link_free_at + RTT, stamp));
            next_send_at = now + MSS / allowance.pace.expect("PCP always paces");
            pcp.on_sent(&Sent { now, in_flight, ..leaves(0, false) });
        } else {
            let (now, stamp) = under_way.pop_front().expect("a sender that waits has something in flight");
            in_flight -= MSS;
            next_send_at = next_send_at.max(now);
            let sample = now.since(stamp.sent_at);
            rtt.update(sample);
            estimator.on_delivered(now, MSS, &stamp);
            let rate = estimator.sample(now, rtt.min);
            let ack = Ack {
                newest_sent_at: stamp.sent_at,
                rtt_sample: Some(sample),
                rtt,
                in_flight,
                delivered: estimator.delivered(),
                rate,
                ..acked(now, MSS)
            };
            assert_eq!(pcp.on_ack(&ack), Next::Stay);
        }
    }
    (pcp.base_rate(), longest, estimator.delivered())
}

#[test]
fn the_search_finds_the_capacity_of_a_path_and_keeps_its_queue_short() {
    for kilobytes in [30, 100, 1_000, 10_000] {
        let capacity = Rate::from_bytes_per_sec(kilobytes * 1_000);
        let (base, longest, delivered) = run(capacity, 20);
        let used = base.as_bytes_per_sec() * 100 / capacity.as_bytes_per_sec();
        assert!((70..=100).contains(&used), "{kilobytes} kB/s: {used} % found");
        // Slack of the rate compensation, the train's own queue, and growth until the next check.
        let bound = RTT / 8 + (MSS * 4) / capacity + RTT / 50;
        assert!(longest <= bound, "{kilobytes} kB/s: queued for {longest:?}");
        let share = delivered.get() * 100 / (capacity * Span::from_secs(20)).get();
        assert!(share >= 60, "{kilobytes} kB/s: {share} % of what the path could carry");
    }
}
