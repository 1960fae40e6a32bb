use super::super::timeline::{
    Event, MSS, Step, ack, apply, loss, mark, play, sent, timeout, withstand_extremes,
};
use super::*;
use crate::history::testing::{absurd_priors, prior_with};

/// 500 kB/s over 200 ms: a window of 100 segments, one every 2 ms at the recorded rate.
fn established(params: Params) -> WiseStart {
    let mut start = WiseStart::new(params);
    let plan = start.establish(&prior_with(500, 200));
    assert_eq!(plan, FlightPlan::paced(MSS, MSS * 100, Rate::from_bytes_per_sec(1_000_000)), "§3.2");
    assert_eq!(start.phase(), "Sending");
    start
}

/// The Sending phase with data in plenty: 20 segments at 1 ms, 10 at 4 ms, the rest at 2 ms.
fn send_everything(start: &mut WiseStart) {
    #[rustfmt::skip]
    let expected = [
        (1..20,   1, 1_000_000, "2 x BtlBw below kappa"),
        (20..30,  4,   250_000, "0.5 x from kappa"),
        (30..101, 2,   500_000, "1 x from one and a half kappa"),
    ];
    let mut at = 0;
    for (segments, spacing, pace, why) in expected {
        for in_flight in segments {
            play(start, &[(sent(at, in_flight), "Sending", 100_000, pace, why)]);
            at += spacing;
        }
    }
    assert_eq!(at, 201, "the last left at 199 ms: the window is full just before the first ack");
}

/// Acks one to six of one segment each, `spacing` milliseconds apart; the last is not played.
fn first_acks(start: &mut WiseStart, spacing: u64) -> Event {
    for n in 0..5 {
        let why = "the window is what is in flight, and nothing is paced";
        play(start, &[(ack(200 + n * spacing, n, 1, 99), "Maintenance", 100_000, 0, why)]);
    }
    ack(200 + 5 * spacing, 5 * spacing, 1, 99)
}

#[test]
fn on_a_path_that_is_faster_than_it_was_it_probes() {
    let mut start = established(Params::default());
    send_everything(&mut start);
    let sixth = first_acks(&mut start, 1);
    #[rustfmt::skip]
    let steps = [
        (sixth,                 "Probe",     100_000, 0, "5 kB in 5 ms x 200 ms: 200 kB, and 100 kB are less"),
        (ack(206, 6, 2, 98),    "Probe",     102_000, 0, "slow start"),
        (ack(207, 7, 2, 100),   "Probe",     104_000, 0, "slow start"),
        (loss(300, 3, 101),     "hand over", 104_000, 0, "a loss ends it as it ends any slow start"),
    ];
    assert_eq!(play(&mut start, &steps), Some(HandOver::to_be_cut(MSS * 104)));
}

#[test]
fn on_a_path_that_is_as_it_was_it_goes_on_with_the_bdp() {
    let mut start = established(Params::default());
    send_everything(&mut start);
    let sixth = first_acks(&mut start, 2);
    let why = "5 kB in 10 ms x 200 ms are the window: Drain, and at once there is nothing to drain";
    assert_eq!(
        play(&mut start, &[(sixth, "hand over", 100_000, 0, why)]),
        Some(HandOver::avoiding(MSS * 100))
    );
}

#[test]
fn on_a_path_that_is_slower_than_it_was_it_drains_first() {
    let mut start = established(Params::default());
    send_everything(&mut start);
    let sixth = first_acks(&mut start, 4);
    #[rustfmt::skip]
    let steps = [
        (sixth,                 "Drain",     99_000, 0, "5 kB in 20 ms x 200 ms: 50 kB"),
        (ack(224, 6, 1, 98),    "Drain",     98_000, 0, "nothing leaves for what arrives"),
        (ack(300, 7, 38, 60),   "Drain",     60_000, 0, ""),
        (ack(340, 8, 11, 49),   "hand over", 50_000, 0, "what is in flight is the BDP: avoidance"),
    ];
    assert_eq!(play(&mut start, &steps), Some(HandOver::avoiding(MSS * 50)));
}

#[test]
fn a_loss_in_drain_or_maintenance_is_subtracted_and_cut() {
    let mut start = established(Params::default());
    send_everything(&mut start);
    play(&mut start, &[(ack(200, 0, 1, 99), "Maintenance", 100_000, 0, "")]);
    let how = play(&mut start, &[(loss(202, 30, 70), "hand over", 70_000, 0, "30 of 100 are lost")]);
    assert_eq!(how, Some(HandOver::to_be_cut(MSS * 70)));
    let mut start = established(Params::default());
    send_everything(&mut start);
    let sixth = first_acks(&mut start, 4);
    let _ = apply(&mut start, sixth);
    let how = play(&mut start, &[(loss(224, 9, 90), "hand over", 90_000, 0, "of 99")]);
    assert_eq!(how, Some(HandOver::to_be_cut(MSS * 90)));
}

/// §3.3.2 "subtracts the number of bytes of lost packets", and continues.
#[test]
fn it_may_continue_after_losses_until_the_decision_and_in_drain() {
    let params = Params { tolerates_loss: true, ..Params::default() };
    let mut start = established(params);
    send_everything(&mut start);
    #[rustfmt::skip]
    let steps = [
        (ack(200, 0, 1, 99),    "Maintenance", 100_000, 0, "in flight, what is acknowledged included"),
        (loss(202, 30, 69),     "Maintenance",  70_000, 0, "30 of 100 are lost"),
        (ack(202, 2, 1, 68),    "Maintenance",  69_000, 0, "one out for each in"),
        (ack(204, 4, 1, 68),    "Maintenance",  69_000, 0, ""),
        (ack(206, 6, 1, 68),    "Maintenance",  69_000, 0, ""),
        (ack(208, 8, 1, 68),    "Maintenance",  69_000, 0, ""),
        (ack(210, 10, 1, 68),   "Probe",        69_000, 0, "5 kB in 10 ms x 200 ms: 100 kB, and 69 kB are less"),
        (loss(212, 1, 67),      "hand over",    69_000, 0, "of slow start a loss is the end"),
    ];
    assert_eq!(play(&mut start, &steps), Some(HandOver::to_be_cut(MSS * 69)));
    let mut start = established(params);
    send_everything(&mut start);
    let sixth = first_acks(&mut start, 4);
    let _ = apply(&mut start, sixth);
    play(&mut start, &[(loss(224, 9, 90), "Drain", 90_000, 0, "of 99")]);
}

#[test]
fn a_mark_loses_nothing_but_is_cut() {
    let mut start = established(Params::default());
    let how = play(&mut start, &[(mark(200, 90), "hand over", 100_000, 0, "by the base")]);
    assert_eq!(how, Some(HandOver::to_be_cut(MSS * 100)));
}

#[test]
fn a_timeout_is_handled_by_the_base() {
    let mut start = established(Params::default());
    let how = play(&mut start, &[(timeout(1000), "hand over", 100_000, 0, "")]);
    assert_eq!(how, Some(HandOver::to_be_cut(MSS * 100)));
}

/// Ten segments, then the application has nothing more: §3.4 against WiseStart-wa.
#[test]
fn an_application_limited_sender_keeps_window_and_pace() {
    for (adaptation, window, pace) in [(true, 100_000, 1_000_000), (false, 10_000, 0)] {
        let mut start = established(Params { adaptation, ..Params::default() });
        for n in 0..10 {
            play(&mut start, &[(sent(4 * n, n + 1), "Sending", 100_000, 1_000_000, "")]);
        }
        let why = "10 kB in 200 ms are far below 1 MB/s";
        play(&mut start, &[(ack(200, 0, 1, 9), "Maintenance", window, pace, why)]);
        for n in 1..5 {
            let in_flight = if adaptation { 9 - n } else { 9 };
            play(
                &mut start,
                &[(ack(200 + 4 * n, 4 * n, 1, in_flight), "Maintenance", window, pace, "and so on")],
            );
        }
        let steps: &[Step] = if adaptation {
            &[(
                ack(220, 20, 1, 4),
                "Probe",
                100_000,
                0,
                "what arrives is no slower than what left: 5 kB in 20 ms",
            )]
        } else {
            &[(ack(220, 20, 1, 9), "Probe", 10_000, 0, "10 kB are less than the BDP")]
        };
        assert_eq!(play(&mut start, steps), None);
    }
}

/// 60 of the 100 segments that the pace allowed.
#[test]
fn an_application_limited_sender_that_fills_the_path_drains() {
    let mut start = established(Params::default());
    for n in 0..60 {
        let _ = apply(&mut start, sent(n * 3, n + 1));
    }
    let _ = apply(&mut start, ack(200, 0, 1, 59));
    assert_eq!(start.allowance().window, MSS * 100, "limited: 60 kB where 100 kB were allowed");
    for n in 1..5 {
        let _ = apply(&mut start, ack(200 + 10 * n, 3 * n, 1, 59 - n));
    }
    #[rustfmt::skip]
    let steps = [
        (ack(250, 15, 1, 54),    "Drain",     54_000, 0, "100 kB/s arrive, 333 kB/s left: the path is full"),
        (ack(400, 200, 34, 20),  "hand over", 20_000, 0, "5 kB in 50 ms x 200 ms"),
    ];
    assert_eq!(play(&mut start, &steps), Some(HandOver::avoiding(MSS * 20)));
}

/// Three segments, a pause, twenty more: of six acks three come before the pause and three after
/// it. Neither the acks nor the acknowledged data came faster than the application's sending.
#[test]
fn a_pause_between_the_acks_is_the_applications_and_not_the_paths() {
    let mut start = established(Params::default());
    for n in 0..3 {
        let _ = apply(&mut start, sent(n, n + 1));
    }
    for n in 0..3 {
        let _ = apply(&mut start, ack(200 + 2 * n, n, 1, 2 - n));
    }
    for n in 0..20 {
        let _ = apply(&mut start, sent(600 + n, n + 1));
    }
    for n in 0..2 {
        let _ = apply(&mut start, ack(800 + 2 * n, 600 + n, 1, 19 - n));
    }
    let why = "5 kB in 604 ms arrive, 5 kB in 602 ms left: the path may have more";
    play(&mut start, &[(ack(804, 602, 1, 17), "Probe", 100_000, 0, why)]);
}

#[test]
fn a_full_window_is_no_limit_of_the_application() {
    let mut start = WiseStart::new(Params::default());
    let _ = start.establish(&prior_with(500, 20));
    for n in 0..10 {
        let _ = apply(&mut start, sent(n, n + 1));
    }
    // The record said 20 ms; the path has 200 ms.
    let why = "ten segments are all that the window allows";
    play(&mut start, &[(ack(200, 0, 1, 9), "Maintenance", 10_000, 0, why)]);
}

#[test]
fn acks_that_arrive_together_decide_nothing() {
    let mut start = established(Params::default());
    send_everything(&mut start);
    for _ in 0..9 {
        play(&mut start, &[(ack(200, 0, 1, 99), "Maintenance", 100_000, 0, "no time has passed")]);
    }
    play(&mut start, &[(ack(201, 1, 1, 99), "Probe", 100_000, 0, "9 kB in 1 ms")]);
}

#[test]
fn the_path_is_as_long_as_the_fastest_of_the_six_acks() {
    let mut start = established(Params::default());
    send_everything(&mut start);
    let _ = apply(&mut start, ack(250, 0, 1, 99));
    for n in 1..6 {
        let _ = apply(&mut start, ack(250 + 4 * n, 50 + 4 * n, 1, 99));
    }
    let why = "5 kB in 20 ms x 200 ms, not x 250 ms";
    let how = play(&mut start, &[(ack(340, 100, 49, 50), "hand over", 50_000, 0, why)]);
    assert_eq!(how, Some(HandOver::avoiding(MSS * 50)));
}

#[test]
fn without_a_record_it_is_the_default_slow_start() {
    let mut start = WiseStart::new(Params::default());
    let prior = Prior { history: None, ..prior_with(1, 1) };
    assert_eq!(start.establish(&prior), FlightPlan::burst(MSS * 10));
    play(&mut start, &[(ack(100, 0, 10, 0), "slow start", 20_000, 0, "doubles")]);
}

#[test]
fn absurd_records_do_no_harm() {
    for adaptation in [false, true] {
        withstand_extremes(&absurd_priors(), 2, || {
            WiseStart::new(Params { adaptation, gamma: 0, ..Params::default() })
        });
    }
}
