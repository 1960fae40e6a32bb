use super::super::timeline::{Event, MSS, apply, loss, mark, play, sent, timeout, withstand_extremes};
use super::*;
use crate::base::testing::acked;
use crate::history::testing::{absurd_priors, prior_with};
use crate::path::RateSample;

/// An ack at `at` milliseconds of `segments`, after which `in_flight` are in flight and `delivered`
/// delivered, `prior` of them when the newest left; the rate sample is `rate` kB/s. Milliseconds
/// count from 7 s.
fn ack(at: u64, segments: u64, in_flight: u64, (prior, delivered): (u64, u64), rate: u64) -> Ack {
    Ack {
        in_flight: MSS * in_flight,
        delivered: MSS * delivered,
        rate: RateSample {
            delivered: Bytes::new(rate),
            interval: Span::from_millis(1),
            prior_delivered: MSS * prior,
            is_app_limited: false,
        },
        ..acked(Time::from_millis(7_000 + at), MSS * segments)
    }
}

fn established() -> Bbr {
    let mut bbr = Bbr::new(Params::default());
    let plan = bbr.establish(&prior_with(1, 1));
    assert_eq!((plan.burst, plan.flight), (MSS * 2, MSS * 10));
    assert_eq!(
        plan.allowance.pace,
        Some(Rate::from_bytes_per_sec(285_783)),
        "0.99 x 2.887 x 10 kB over 100 ms"
    );
    bbr
}

/// In ProbeBW on a path of 250 kB/s and 100 ms; 240 segments have been delivered. Their acks were
/// aggregated, for which the window has room of up to 100 ms of data: 25 kB.
fn cruising() -> Bbr {
    let mut bbr = established();
    #[rustfmt::skip]
    let steps = [
        (Event::Ack(ack(100, 10, 10, (0, 10), 100)),    "Startup", 20_000, 285_784, "round 1: 100 kB/s"),
        (Event::Ack(ack(200, 20, 20, (10, 30), 200)),   "Startup", 40_000, 571_569, "round 2: 200 kB/s"),
        (Event::Ack(ack(300, 40, 40, (30, 70), 250)),   "Startup", 80_000, 714_462, "round 3: 250 kB/s, just a quarter more"),
        (Event::Ack(ack(350, 10, 70, (40, 80), 250)),   "Startup", 80_000, 714_462, "2.887 x 25 kB + 6 kB, made even, are reached"),
        (Event::Ack(ack(460, 40, 80, (70, 120), 250)),  "Startup", 80_000, 714_462, "round 4: no more"),
        (Event::Ack(ack(620, 40, 80, (120, 160), 250)), "Startup", 80_000, 714_462, "round 5: no more"),
        (Event::Ack(ack(780, 40, 60, (160, 200), 250)), "Drain",  102_000,  85_077, "round 6: the pipe is full; 73 + 25 + 3 segments, made even"),
        (Event::Ack(ack(800, 31, 29, (170, 231), 250)), "Drain",  102_000,  85_077, "29 in flight: 25 kB + 3 kB is the aim"),
        (Event::Ack(ack(810, 9, 28, (170, 240), 250)),  "ProbeBW", 82_000, 247_500, "drained: cruise; 50 + 25 + 6 segments, made even"),
    ];
    play(&mut bbr, &steps);
    bbr
}

#[test]
fn it_finds_the_bandwidth_drains_its_queue_and_cruises() {
    let _ = cruising();
}

/// `lib/ngtcp2_bbr.c` of 2022: the first pace is for an RTT of a millisecond, and the send quantum,
/// added three times, is 64 KiB or ten segments.
#[test]
fn as_ngtcp2_it_paces_nothing_until_the_pipe_was_full_and_leaves_more_room() {
    let mut bbr = Bbr::new(Params { as_ngtcp2: true, ..Params::default() });
    let plan = bbr.establish(&prior_with(1, 1));
    assert_eq!((plan.burst, plan.flight), (MSS * 66, MSS * 10));
    assert_eq!(
        plan.allowance.pace,
        Some(Rate::from_bytes_per_sec(28_867_000)),
        "739 / 256 x 10 kB over 1 ms"
    );
    #[rustfmt::skip]
    let steps = [
        (Event::Ack(ack(100, 10, 10, (0, 10), 100)),    "Startup", 20_000, 28_867_000, "round 1: 100 kB/s"),
        (Event::Ack(ack(200, 20, 20, (10, 30), 200)),   "Startup", 40_000, 28_867_000, "round 2: 200 kB/s"),
        (Event::Ack(ack(300, 40, 40, (30, 70), 250)),   "Startup", 80_000, 28_867_000, "round 3: 250 kB/s"),
        (Event::Ack(ack(460, 40, 80, (70, 120), 250)),  "Startup", 120_000, 28_867_000, "round 4: 2.89 x 25 kB + 192 KiB are not reached"),
        (Event::Ack(ack(620, 40, 80, (120, 160), 250)), "Startup", 160_000, 28_867_000, "round 5: no more"),
        (Event::Ack(ack(780, 40, 60, (160, 200), 250)), "ProbeBW", 80_000, 250_000, "round 6: the pipe is full, and there is room for what is in flight: 2 x 25 kB + 30 kB"),
    ];
    play(&mut bbr, &steps);
}

/// BBR §4.3.4.3: six phases of one RTprop at 1, then 5/4 until that much is in flight, then 3/4.
#[test]
fn the_gain_cycle_probes_and_yields() {
    let mut bbr = cruising();
    let (mut at, mut delivered) = (810, 240);
    for _ in 2..7 {
        at += 101;
        delivered += 25;
        play(
            &mut bbr,
            &[(
                Event::Ack(ack(at, 25, 25, (delivered - 25, delivered), 250)),
                "ProbeBW",
                82_000,
                247_500,
                "1",
            )],
        );
    }
    #[rustfmt::skip]
    let steps = [
        (Event::Ack(ack(1_416, 25, 25, (365, 390), 250)), "ProbeBW", 84_000, 309_375, "5/4, and two segments more"),
        (Event::Ack(ack(1_517, 25, 5, (390, 415), 250)),  "ProbeBW", 84_000, 309_375, "5/4 until 32 + 6 + 2 segments are in flight"),
        (Event::Ack(ack(1_518, 1, 39, (390, 416), 250)),  "ProbeBW", 82_000, 185_625, "40 were: 3/4"),
        (Event::Ack(ack(1_519, 1, 32, (390, 417), 250)),  "ProbeBW", 82_000, 185_625, "33 in flight are more than 32"),
        (Event::Ack(ack(1_520, 1, 30, (390, 418), 250)),  "ProbeBW", 82_000, 247_500, "31 are not: 1"),
    ];
    play(&mut bbr, &steps);
}

#[test]
fn a_loss_ends_the_probe_of_a_shallow_path() {
    let mut bbr = Bbr::new(Params { cycle_start: 0, ..Params::default() });
    let _ = bbr.establish(&prior_with(1, 1));
    bbr.begin_probe_bw(Time::from_millis(7_000));
    let quiet = ack(101, 1, 0, (0, 1), 250);
    let mut lossy = bbr;
    let _ = bbr.on_ack(&quiet);
    assert!(matches!(bbr.phase, Phase::ProbeBw { index: PROBING, .. }), "not enough in flight yet");
    let _ = apply(&mut lossy, loss(7_101, 1, 1));
    let _ = lossy.on_ack(&quiet);
    assert!(matches!(lossy.phase, Phase::ProbeBw { index: YIELDING, .. }), "it does not fit");
    assert!(lossy.lost.is_zero(), "and says nothing of the next probe");
}

#[test]
fn the_cycle_begins_at_its_parameter_but_never_in_the_yielding_phase() {
    for (cycle_start, expected) in [(0, 0), (1, 2), (2, 2), (7, 7), (8, 0), (9, 2)] {
        let mut bbr = Bbr::new(Params { cycle_start, ..Params::default() });
        bbr.begin_probe_bw(Time::ZERO);
        assert!(matches!(bbr.phase, Phase::ProbeBw { index, .. } if index == expected), "{cycle_start}");
    }
}

/// BBR §4.3.5: four segments for 200 ms and a round trip, every ten seconds without a lower RTT.
#[test]
fn it_drains_the_path_when_the_rtt_has_grown_old() {
    let mut bbr = cruising();
    let late = |ack: Ack| Event::Ack(Ack { rtt_sample: Some(Span::from_millis(120)), ..ack });
    #[rustfmt::skip]
    let steps = [
        (late(ack(10_809, 1, 25, (240, 241), 250)), "ProbeBW",  82_000, 247_500, "RTprop was seen at 810 ms"),
        (late(ack(10_811, 1, 25, (241, 242), 250)), "ProbeRTT",  4_000, 247_500, "10 s and 1 ms ago"),
        (late(ack(10_850, 21, 4, (242, 263), 250)), "ProbeRTT",  4_000, 247_500, "drained: 200 ms from here"),
        (late(ack(11_000, 4, 4, (263, 267), 40)),   "ProbeRTT",  4_000, 247_500, "a slow sample says nothing"),
        (late(ack(11_049, 4, 4, (267, 271), 40)),   "ProbeRTT",  4_000, 247_500, "199 ms"),
        (late(ack(11_050, 4, 4, (267, 271), 40)),   "ProbeBW",  86_000, 247_500, "200 ms and a round: back, on the way to 60 + 25 + 6 segments"),
    ];
    play(&mut bbr, &steps);
    assert_eq!(bbr.rt_prop, Span::from_millis(120));
}

#[test]
fn an_idle_connection_needs_no_probe() {
    let mut bbr = cruising();
    let _ = apply(&mut bbr, sent(30_000, 1));
    let _ = bbr.on_ack(&ack(23_100, 1, 0, (240, 241), 250));
    assert_eq!(bbr.phase(), "ProbeBW");
    let _ = bbr.on_ack(&ack(33_101, 1, 30, (241, 242), 250));
    assert_eq!(bbr.phase(), "ProbeRTT", "but ten busy seconds later it does");
}

/// 30 rounds at four segments must not lower BtlBw.
#[test]
fn samples_while_probing_the_rtt_do_not_count_for_the_bandwidth() {
    let mut bbr = cruising();
    bbr.phase = Phase::ProbeRtt { done: None };
    for n in 1..=30 {
        let _ = bbr.on_ack(&ack(810 + n, 4, 5, (236 + 4 * n, 240 + 4 * n), 40));
    }
    assert_eq!(bbr.btl_bw.get(), Rate::from_bytes_per_sec(250_000));
}

#[test]
fn if_the_pipe_was_not_full_it_goes_on_filling_it() {
    let mut bbr = established();
    let long = |ack: Ack| Ack { rtt_sample: None, ..ack };
    let _ = bbr.on_ack(&long(ack(10_001, 1, 4, (0, 1), 100)));
    assert_eq!(bbr.phase(), "ProbeRTT");
    let _ = bbr.on_ack(&long(ack(10_202, 1, 4, (1, 2), 100)));
    assert_eq!((bbr.phase(), bbr.window), ("Startup", MSS * 11), "and is back at its window");
    let _ = bbr.on_ack(&long(ack(10_203, 1, 4, (2, 3), 100)));
    assert_eq!(bbr.phase(), "Startup", "not again for ten seconds, though there was no sample");
}

#[test]
fn startup_never_slows_down() {
    let mut bbr = established();
    let steps =
        [(Event::Ack(ack(100, 10, 10, (0, 10), 10)), "Startup", 10_000, 285_783, "10 kB/s may be noise")];
    play(&mut bbr, &steps);
}

/// Until the initial window has arrived, the sample is too small for an estimate.
#[test]
fn the_first_window_of_acks_always_grows_the_window() {
    let mut bbr = established();
    #[rustfmt::skip]
    let steps = [
        (Event::Ack(ack(100, 9, 10, (0, 9), 1)),    "Startup", 19_000, 285_783, "2.887 x 100 B + 6 kB, but only nine came"),
        (Event::Ack(ack(101, 1, 10, (0, 10), 1)),   "Startup", 19_000, 285_783, "now it counts"),
    ];
    play(&mut bbr, &steps);
}

#[test]
fn after_a_timeout_the_pipe_is_not_taken_for_full() {
    let mut bbr = established();
    for n in 1..=3 {
        let _ = bbr.on_ack(&ack(100 * n, 1, 1, (n - 1, n), 100));
    }
    assert_eq!(bbr.full_rounds, 2);
    let _ = apply(&mut bbr, timeout(8_000));
    let _ = bbr.on_ack(&ack(1_000, 1, 1, (3, 4), 100));
    assert_eq!((bbr.phase(), bbr.full_rounds), ("Startup", 0));
}

#[test]
fn a_retransmitted_handshake_gives_no_rtt() {
    let mut bbr = Bbr::new(Params::default());
    let _ = bbr.establish(&Prior { handshake_retransmitted: true, ..prior_with(1, 1) });
    assert_eq!(bbr.rt_prop, Span::MAX);
}

/// BBR §4.1.1.3: the maximum of ten rounds.
#[test]
fn bandwidth_that_has_gone_is_forgotten_after_ten_rounds() {
    let mut bbr = cruising();
    let rounds = (1..=12).map(|n| {
        let _ = bbr.on_ack(&ack(810 + n, 1, 25, (239 + n, 240 + n), 100));
        bbr.btl_bw.get().as_bytes_per_sec()
    });
    let kept = rounds.filter(|&rate| rate == 250_000).count();
    // The last fast sample is of the sixth round.
    assert_eq!(kept as u64, BTL_BW_ROUNDS);
}

#[test]
fn samples_of_a_limiting_application_count_only_if_they_are_faster() {
    for (rate, expected) in [(100, 250_000), (300, 300_000)] {
        let mut bbr = cruising();
        for n in 1..=20 {
            let mut ack = ack(810 + n, 1, 25, (239 + n, 240 + n), rate);
            ack.rate.is_app_limited = true;
            let _ = bbr.on_ack(&ack);
        }
        assert_eq!(bbr.btl_bw.get(), Rate::from_bytes_per_sec(expected));
    }
}

#[test]
fn a_limiting_application_does_not_fill_the_pipe() {
    let mut bbr = established();
    for n in 1..=20 {
        let mut ack = ack(100 * n, 1, 1, (n - 1, n), 100);
        ack.rate.is_app_limited = true;
        let _ = bbr.on_ack(&ack);
    }
    assert_eq!(bbr.phase(), "Startup");
}

/// BBR §4.2.3.4: packet conservation for a round, then slow start, then the window before.
#[test]
fn a_loss_conserves_packets_for_a_round_and_takes_nothing_for_good() {
    let mut bbr = cruising();
    let recovering = |ack: Ack| Event::Ack(Ack { in_recovery: true, ..ack });
    let first = loss(7_820, 10, 15);
    let Event::Congestion(more) = loss(7_830, 2, 20) else { unreachable!("a loss") };
    let more = Event::Congestion(Congestion { opens_episode: false, ..more });
    #[rustfmt::skip]
    let steps = [
        (first,                                              "ProbeBW", 16_000, 247_500, "what is in flight, and one"),
        (recovering(ack(820, 5, 15, (200, 245), 250)),       "ProbeBW", 20_000, 247_500, "one out for one in"),
        (more,                                               "ProbeBW", 18_000, 247_500, "less what is lost"),
        (recovering(ack(910, 5, 12, (241, 250), 250)),       "ProbeBW", 18_000, 247_500, "what was sent before says nothing"),
        (recovering(ack(920, 5, 12, (245, 255), 250)),       "ProbeBW", 23_000, 247_500, "a round later it grows"),
        (Event::Ack(ack(1_000, 5, 12, (250, 260), 250)),     "ProbeBW", 82_000, 247_500, "and is back when all is well"),
    ];
    play(&mut bbr, &steps);
}

/// Linux's bbr_set_cwnd_to_recover_or_restore and bbr_check_full_bw_reached: a recovery restarts
/// the round, so the rounds of the full-pipe check take longer.
#[test]
fn a_recovery_begins_the_round_anew() {
    let recovering = |ack: Ack| Ack { in_recovery: true, ..ack };
    for (is_lossy, expected) in [(false, [1, 1, 2]), (true, [0, 1, 1])] {
        let mut bbr = established();
        let _ = bbr.on_ack(&ack(100, 10, 10, (0, 10), 100));
        if is_lossy {
            let _ = apply(&mut bbr, loss(7_110, 1, 10));
        }
        let wrap = |ack| if is_lossy { recovering(ack) } else { ack };
        let _ = bbr.on_ack(&wrap(ack(110, 2, 10, (0, 12), 100)));
        let rounds = [(120, 10, 14), (130, 12, 16), (140, 15, 18)].map(|(at, prior, delivered)| {
            let _ = bbr.on_ack(&wrap(ack(at, 2, 10, (prior, delivered), 100)));
            bbr.full_rounds
        });
        assert_eq!(rounds, expected, "a loss: {is_lossy}");
    }
}

/// 25 segments were in flight; 240 had been delivered.
#[test]
fn after_a_timeout_it_grows_from_one_segment_until_all_is_repaired() {
    let mut bbr = cruising();
    let timeout = |at, delivered| {
        let Event::Timeout(timeout) = timeout(at) else { unreachable!("a timeout") };
        Event::Timeout(Timeout { prior_in_flight: MSS * 25, delivered: MSS * delivered, ..timeout })
    };
    #[rustfmt::skip]
    let steps = [
        (timeout(8_500, 240),                                "ProbeBW",  1_000, 247_500, "one segment, the model stays"),
        (Event::Ack(ack(1_600, 1, 0, (240, 241), 250)),      "ProbeBW",  4_000, 247_500, "four at least"),
        (Event::Ack(ack(1_700, 4, 4, (241, 245), 250)),      "ProbeBW",  8_000, 247_500, "slow start"),
        (timeout(9_500, 245),                                "ProbeBW",  1_000, 247_500, "again"),
        (Event::Ack(ack(2_900, 1, 0, (245, 246), 250)),      "ProbeBW",  4_000, 247_500, "and again four"),
        (Event::Ack(ack(3_000, 23, 0, (246, 269), 250)),     "ProbeBW", 27_000, 247_500, "one is missing"),
        (Event::Ack(ack(3_100, 1, 0, (246, 270), 250)),      "ProbeBW", 82_000, 247_500, "all are here: what was before both"),
    ];
    assert_eq!(play(&mut bbr, &steps), None);
}

#[test]
fn marks_are_ignored() {
    let mut bbr = cruising();
    play(&mut bbr, &[(mark(7_820, 20), "ProbeBW", 82_000, 247_500, "version 1 knows no ECN")]);
}

/// BBR §4.2.2.
#[test]
fn a_quantum_is_a_1024th_of_a_second_on_a_fast_path() {
    let mut bbr = established();
    for (bytes_per_sec, segments) in
        [(149_000, 1), (150_000, 2), (3_071_000, 2), (3_072_000, 3), (30_720_000, 30), (300_000_000, 65)]
    {
        bbr.pace = Rate::from_bytes_per_sec(bytes_per_sec);
        assert_eq!(bbr.send_quantum(), segments, "{bytes_per_sec} B/s");
    }
}

#[test]
fn without_a_handshake_rtt_it_begins_as_on_a_path_of_a_millisecond() {
    let mut bbr = Bbr::new(Params::default());
    let plan = bbr.establish(&Prior { handshake_rtt: Span::ZERO, ..prior_with(1, 1) });
    assert_eq!(plan.allowance.pace, Some(Rate::from_bytes_per_sec(28_578_330)));
    assert_eq!(bbr.inflight(HIGH_GAIN), MSS * 10, "the initial window while RTprop is unknown");
}

#[test]
fn absurd_paths_do_no_harm() {
    withstand_extremes(&absurd_priors(), 4, || Bbr::new(Params::default()));
    let mut bbr = established();
    for rate in [0, 1, u64::MAX] {
        let mut ack = ack(100, 1, 1, (0, 1), 1);
        ack.rate.delivered = Bytes::new(rate);
        ack.rate.interval = Span::from_nanos(1);
        for _ in 0..20 {
            let _ = bbr.on_ack(&ack);
        }
        assert!(bbr.window >= MSS * 4 && !bbr.pace.is_zero());
    }
}

#[test]
fn a_hint_is_the_first_estimate_and_starts_probe_bw() {
    use crate::prior::{Access, Hint};
    let hint = Some(Hint { bandwidth: Rate::from_mbit_per_sec(8), access: Access::Dsl });
    let params = Params { begins_from_hint: true, ..Params::default() };
    let mut bbr = Bbr::new(params);
    let plan = bbr.establish(&Prior { hint, ..prior_with(1, 60) });
    // 1 MB/s, less one percent, over the recorded 60 ms: twice 60 kB, and three quanta of two.
    assert_eq!(
        plan.allowance,
        Allowance { window: MSS * 126, pace: Some(Rate::from_bytes_per_sec(990_000)) }
    );
    assert_eq!((plan.flight, bbr.phase()), (MSS * 126, "ProbeBW"));
    for params in [params, Params::default()] {
        let none = Some(Hint { bandwidth: Rate::ZERO, access: Access::Dsl });
        let mut bbr = Bbr::new(params);
        assert_eq!(bbr.establish(&Prior { hint: none, ..prior_with(1, 60) }).flight, MSS * 10, "no hint");
        assert_eq!(bbr.phase(), "Startup");
    }
    withstand_extremes(&absurd_priors(), 1, || Bbr::new(params));
}
