use alloc::vec;
use alloc::vec::Vec;

use super::super::timeline::{Event, MSS, apply, play, timeout, withstand_extremes};
use super::marks::MARK_ONE;
use super::*;
use crate::base::testing::{acked, lost};
use crate::history::testing::{absurd_priors, prior_with};
use crate::path::RateSample;

/// An ack at `at` milliseconds of `segments`, after which `in_flight` are in flight and `delivered`
/// delivered, `prior` of them when the newest left; the rate sample is `rate` kB/s. Milliseconds
/// count from 7 s.
fn ack(at: u64, segments: u64, in_flight: u64, (prior, delivered): (u64, u64), rate: u64) -> Ack {
    let since = MSS * (delivered - prior);
    Ack {
        in_flight: MSS * in_flight,
        delivered: MSS * delivered,
        rate: RateSample {
            delivered: since,
            interval: since / Rate::from_bytes_per_sec(rate * 1000),
            prior_delivered: MSS * prior,
            is_app_limited: false,
        },
        ..acked(Time::from_millis(7_000 + at), MSS * segments)
    }
}

/// `segments` were declared lost when `delivered` had been delivered.
fn loss(at: u64, segments: u64, delivered: u64) -> Congestion {
    Congestion { delivered: MSS * delivered, ..lost(Time::from_millis(7_000 + at), MSS * segments) }
}

fn established() -> BbrV3 {
    let mut bbr = BbrV3::new(Params::default());
    let plan = bbr.establish(&prior_with(1, 1));
    assert_eq!((plan.burst, plan.flight), (MSS * 2, MSS * 10));
    assert_eq!(plan.allowance.pace, Some(Rate::from_bytes_per_sec(277_000)), "2.77 x 10 kB over 100 ms");
    bbr
}

/// In Cruise on a path of 250 kB/s and 100 ms; 245 segments have been delivered. Aggregates of 40
/// segments were acknowledged.
fn cruising() -> BbrV3 {
    let mut bbr = established();
    #[rustfmt::skip]
    let steps = [
        (Event::Ack(ack(100, 10, 10, (0, 10), 100)),    "Startup", 20_000, 277_000, "round 1: 100 kB/s, less than the first pace"),
        (Event::Ack(ack(200, 20, 20, (10, 30), 200)),   "Startup", 40_000, 548_460, "round 2: 2.77 x 0.99 x 200 kB/s"),
        (Event::Ack(ack(300, 40, 40, (30, 70), 250)),   "Startup", 80_000, 685_575, "round 3: just a quarter more"),
        (Event::Ack(ack(460, 40, 80, (70, 110), 250)),  "Startup", 120_000, 685_575, "round 4: no more; 2 x 25 kB + 40 kB are not reached yet"),
        (Event::Ack(ack(620, 40, 80, (110, 150), 250)), "Startup", 120_000, 685_575, "round 5: no more, and they are"),
        (Event::Ack(ack(780, 40, 80, (150, 190), 250)), "Drain",    90_000, 123_750, "round 6: the pipe is full"),
        (Event::Ack(ack(860, 20, 60, (180, 210), 250)), "Drain",    90_000, 123_750, "60 in flight, 25 are the aim"),
        (Event::Ack(ack(1000, 35, 25, (190, 245), 250)), "ProbeBW_CRUISE", 90_000, 247_500, "drained: Down, and at once on to Cruise"),
    ];
    play(&mut bbr, &steps);
    bbr
}

#[test]
fn it_finds_the_bandwidth_drains_its_queue_and_cruises() {
    let _ = cruising();
}

/// LossLowerBounds: at least the bytes delivered in the last round, at most 0.7 of the bound.
#[test]
fn losses_lower_the_short_term_bounds_once_a_round() {
    for (rate, bw, why) in [(100, 175_000, "0.7 x 250 kB/s"), (200, 200_000, "what was delivered")] {
        let mut bbr = cruising();
        let _ = bbr.on_ack(&ack(1100, 10, 25, (245, 270), rate));
        let _ = bbr.on_congestion(&loss(1110, 2, 272));
        let _ = bbr.on_ack(&ack(1150, 5, 25, (250, 275), rate));
        assert_eq!(
            (bbr.bw_shortterm, bbr.inflight_shortterm),
            (Rate::MAX, Bytes::MAX),
            "the round is not over"
        );
        let _ = bbr.on_ack(&ack(1210, 10, 25, (272, 297), rate));
        assert_eq!(bbr.bw_shortterm, Rate::from_bytes_per_sec(bw), "{why}");
        assert_eq!(bbr.inflight_shortterm, Bytes::new(63_000), "0.7 x 90 kB, 25 kB were delivered");
        assert_eq!(bbr.allowance().pace, Some(Rate::from_bytes_per_sec(bw * 99 / 100)));
        let _ = bbr.on_ack(&ack(1310, 10, 25, (297, 322), rate));
        assert_eq!(bbr.inflight_shortterm, Bytes::new(63_000), "a round without losses changes nothing");
        bbr.start_refill(&ack(1320, 1, 25, (310, 323), rate));
        assert_eq!((bbr.bw_shortterm, bbr.inflight_shortterm), (Rate::MAX, Bytes::MAX), "forgotten to probe");
    }
}

/// For the tests below: Refill for a round, then Up with `longterm` segments as the bound.
fn probing(longterm: u64) -> BbrV3 {
    let mut bbr = cruising();
    bbr.inflight_longterm = MSS * longterm;
    bbr.start_refill(&ack(1010, 1, 25, (200, 246), 250));
    let _ = bbr.on_ack(&ack(1050, 5, 26, (230, 256), 250));
    assert_eq!(bbr.phase(), "ProbeBW_REFILL", "not a round yet");
    let _ = bbr.on_ack(&ack(1120, 5, 30, (256, 286), 250));
    assert_eq!(bbr.phase(), "ProbeBW_UP");
    bbr
}

#[test]
fn it_refills_for_a_round_and_then_probes_a_quarter_faster() {
    let bbr = probing(1000);
    assert_eq!(bbr.allowance().pace, Some(Rate::from_bytes_per_sec(309_375)), "1.25 x 0.99 x 250 kB/s");
    // 2.25 x 25 kB, 40 kB for ack aggregation, and two segments more in Up.
    assert_eq!(bbr.allowance().window, Bytes::new(95_000), "it grows by what is acknowledged");
}

/// HandleInflightTooHigh and InflightAtLoss by hand: 30 segments delivered and 2 lost since the
/// packet left. The threshold is crossed a little above 0.02 x 30 lost ones, at 30 + 0.6 / 0.98.
#[test]
fn too_many_losses_while_probing_set_the_long_term_bound_and_end_the_probe() {
    let mut bbr = probing(1000);
    bbr.inflight_longterm = Bytes::MAX;
    let _ = bbr.on_congestion(&loss(1220, 2, 306));
    let _ = bbr.on_ack(&ack(1220, 10, 28, (286, 316), 250));
    assert_eq!((bbr.phase(), bbr.prev_probe_too_high), ("ProbeBW_DOWN", true));
    assert_eq!(bbr.inflight_longterm, Bytes::new(30_612));
    // The next probe stops at the bound that this one set.
    bbr.phase = Phase::Up;
    let sample = Sample {
        rate: None,
        delivered: MSS,
        is_app_limited: false,
        tx_in_flight: MSS,
        lost: Bytes::ZERO,
        begins_round: false,
        ends_loss_round: false,
    };
    assert!(!bbr.is_time_to_go_down(&ack(1300, 1, 30, (300, 317), 250), &sample));
    assert!(bbr.is_time_to_go_down(&ack(1300, 1, 31, (300, 317), 250), &sample));
    assert!(bbr.prev_probe_precautionary);
}

#[test]
fn a_loss_of_two_percent_is_not_too_much() {
    let mut bbr = probing(1000);
    bbr.inflight_longterm = Bytes::MAX;
    for (lost, delivered, too_high) in [(0, 100, false), (2, 98, false), (2, 97, true), (2, 0, false)] {
        let sample = Sample {
            rate: None,
            delivered: MSS * delivered,
            is_app_limited: false,
            tx_in_flight: MSS * (delivered + lost),
            lost: MSS * lost,
            begins_round: false,
            ends_loss_round: false,
        };
        assert_eq!(bbr.is_inflight_too_high(&sample), too_high, "{lost} of {}", delivered + lost);
    }
}

/// ProbeInflightLongtermUpward: 1, 2, 4 segments more in successive rounds, over a window of acks.
#[test]
fn the_long_term_bound_rises_ever_faster_while_probing() {
    let mut bbr = probing(40);
    assert_eq!((bbr.window, bbr.inflight_longterm), (MSS * 40, MSS * 40));
    let sample = |begins_round| Sample {
        rate: None,
        delivered: MSS,
        is_app_limited: false,
        tx_in_flight: MSS,
        lost: Bytes::ZERO,
        begins_round,
        ends_loss_round: false,
    };
    for expected in [41, 43, 47, 55] {
        let segments = bbr.window.get() / 1000;
        for n in 1..=segments {
            (bbr.is_limited, bbr.window) = ([true; 2], bbr.inflight_longterm);
            bbr.probe_upward(&ack(1200, 1, 20, (286, 287), 250), &sample(n == segments));
        }
        assert_eq!(bbr.inflight_longterm, MSS * expected);
        bbr.window = bbr.inflight_longterm;
    }
    bbr.is_limited = [false; 2];
    bbr.probe_upward(&ack(1200, 100, 20, (286, 287), 250), &sample(false));
    assert_eq!(bbr.inflight_longterm, MSS * 55, "nobody uses what there is");
}

#[test]
fn half_a_bdp_for_200_ms_and_a_round_shows_the_path_without_a_queue() {
    let mut bbr = cruising();
    let late = |at, in_flight, span: (u64, u64)| Ack {
        rtt_sample: Some(Span::from_millis(120)),
        ..ack(at, 1, in_flight, span, 250)
    };
    let _ = bbr.on_ack(&late(6_100, 25, (260, 285)));
    assert_eq!(
        (bbr.phase(), bbr.allowance().window),
        ("ProbeRTT", Bytes::new(12_500)),
        "no 100 ms for five seconds"
    );
    let _ = bbr.on_ack(&late(6_150, 12, (265, 290)));
    let _ = bbr.on_ack(&late(6_349, 12, (290, 302)));
    assert_eq!(bbr.phase(), "ProbeRTT", "a round, but 199 ms");
    let _ = bbr.on_ack(&late(6_351, 12, (291, 303)));
    assert_eq!(bbr.phase(), "ProbeBW_CRUISE");
    assert_eq!(bbr.min_rtt, Span::from_millis(100), "ten seconds have not gone by");
}

/// Linux: average = 15/16 average + 1/16 share; a round with marks cuts by a third of it.
#[test]
fn marks_cut_the_short_term_bound_by_a_third_of_their_average() {
    let marked = |ack: Ack, segments: u64| Ack { marked: MSS * segments, ..ack };
    let mut bbr = cruising();
    let _ = bbr.on_ack(&marked(ack(1100, 10, 25, (245, 270), 250), 5));
    let _ = bbr.on_ack(&ack(1210, 10, 25, (272, 297), 250));
    // One, after eight rounds without a mark, and 5 of 45 acknowledged in the round that then ends.
    let expected = f64::powi(15.0 / 16.0, 8) * 15.0 / 16.0 + 5.0 / 10.0 / 16.0;
    let average = f64::from(bbr.marks.average) / f64::from(MARK_ONE);
    assert!((average - expected).abs() < 0.04, "{average}, about {expected} expected");
    let cut = bbr.inflight_shortterm.get() as f64 / 90_000.0;
    assert!((cut - (1.0 - average / 3.0)).abs() < 0.02, "{cut}");
    assert_eq!(bbr.bw_shortterm, Rate::MAX, "the rate is bounded by losses only");
    let mut deaf = BbrV3 { params: Params { responds_to_marks: false, ..Params::default() }, ..cruising() };
    let _ = deaf.on_ack(&marked(ack(1100, 10, 25, (245, 270), 250), 5));
    let _ = deaf.on_ack(&ack(1210, 10, 25, (272, 297), 250));
    assert_eq!(deaf.inflight_shortterm, Bytes::MAX);
}

#[test]
fn two_rounds_of_which_half_was_marked_end_startup() {
    let mut bbr = established();
    let mut phases = vec![];
    for round in 1..5 {
        let (prior, delivered) = (10 * (round - 1), 10 * round);
        let base = ack(100 * round, 10, 10, (prior, delivered), 100 << round);
        let _ = bbr.on_ack(&Ack { marked: MSS * 5, ..base });
        phases.push(bbr.phase());
    }
    assert_eq!(phases[0], "Startup");
    assert!(phases.contains(&"Drain") || phases.contains(&"ProbeBW_CRUISE"), "{phases:?}");
    assert!(bbr.inflight_longterm < Bytes::MAX);
}

#[test]
fn losses_since_a_transmission_are_known_to_a_sixth_of_a_window() {
    let mut losses = Losses::default();
    let at = |delivered: u64| Ack { delivered: MSS * delivered, ..acked(Time::ZERO, MSS) };
    for delivered in 1..=100 {
        losses.on_ack(&at(delivered), MSS * 40);
        if delivered == 70 {
            losses.lost += MSS * 3;
        }
    }
    for (since, lost) in [(60, 3), (65, 3), (76, 0), (99, 0)] {
        assert_eq!(losses.since(MSS * since, MSS * 100), MSS * lost, "{since}");
    }
}

#[test]
fn waits_between_probes_are_two_to_three_seconds_and_differ() {
    let mut bbr = cruising();
    let waits: Vec<Span> = (0..50)
        .map(|_| {
            bbr.start_down(&ack(1000, 1, 1, (1, 2), 1));
            bbr.probe_at.since(Time::from_millis(8_000))
        })
        .collect();
    assert!(waits.iter().all(|wait| (Span::from_secs(2)..Span::from_secs(3)).contains(wait)));
    let mean = waits.iter().map(|wait| wait.as_secs_f64()).sum::<f64>() / 50.0;
    assert!((2.35..2.65).contains(&mean), "{mean}");
}

#[test]
fn a_timeout_leaves_one_segment_until_acks_come() {
    let mut bbr = cruising();
    apply(&mut bbr, timeout(9000));
    assert_eq!(bbr.allowance().window, MSS);
    let _ = bbr.on_ack(&ack(2100, 1, 0, (245, 246), 250));
    assert!(bbr.allowance().window >= MSS * 4);
}

#[test]
fn absurd_numbers_neither_panic_nor_stop_it() {
    withstand_extremes(&absurd_priors(), 1, || BbrV3::new(Params::default()));
}
