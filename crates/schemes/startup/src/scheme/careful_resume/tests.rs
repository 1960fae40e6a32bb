use super::super::timeline::{Event, MSS, ack, apply, loss, mark, play, sent, timeout, withstand_extremes};
use super::*;
use crate::history::testing::{absurd_priors, prior_with};
use headstart_units::Rate;

fn discards_history(start: &CarefulResume) -> bool {
    start.record_update(None) == RecordUpdate::Remove
}

/// 2 MB/s over 100 ms: saved_cwnd is 200 segments, so the jump is to 100.
fn established(params: Params) -> CarefulResume {
    let mut start = CarefulResume::new(params);
    assert_eq!(
        start.establish(&prior_with(2000, 100)),
        FlightPlan::burst(MSS * 10),
        "the initial window and no more"
    );
    for n in 1..=10 {
        play(&mut start, &[(sent(0, n), "Reconnaissance", 10_000, 0, "")]);
    }
    start
}

/// Up to the jump: the initial ten are acknowledged, twenty are in flight.
fn jumped(params: Params) -> CarefulResume {
    let mut start = established(params);
    #[rustfmt::skip]
    let steps = [
        (ack(100, 0, 9, 10),    "Reconnaissance",  19_000, 0,         "slow start; one initial segment is missing"),
        (sent(100, 19),         "Reconnaissance",  19_000, 0,         "nine more leave, which are not initial data"),
        (ack(101, 0, 1, 20),    "Unvalidated",    100_000, 990_099,   "all are there: 100 kB over 101 ms"),
    ];
    play(&mut start, &steps);
    start
}

/// The jump has left at 102 to 181 ms and fills the window.
fn validating() -> CarefulResume {
    let mut start = jumped(Params::default());
    for n in 1..80 {
        play(&mut start, &[(sent(101 + n, 20 + n), "Unvalidated", 100_000, 990_099, "still leaving")]);
    }
    play(&mut start, &[(sent(181, 100), "Validating", 100_000, 0, "the flight is the window")]);
    start
}

#[test]
fn a_path_as_it_was_validates_the_jump() {
    let mut start = validating();
    #[rustfmt::skip]
    let steps = [
        (ack(200, 100, 20, 80),     "Validating", 120_000, 0, "slow start goes on"),
        (ack(202, 102, 1, 99),      "Validating", 121_000, 0, "the first of the jump arrived"),
        (ack(280, 180, 78, 100),    "Validating", 199_000, 0, "all but the last"),
        (ack(281, 181, 1, 120),     "Normal",     200_000, 0, "and the last: the jump fitted"),
        (ack(300, 200, 10, 150),    "Normal",     210_000, 0, "slow start"),
        (loss(310, 1, 149),         "hand over",  210_000, 0, "ended by a loss as ever"),
    ];
    assert_eq!(play(&mut start, &steps), Some(HandOver::to_be_cut(MSS * 210)));
    assert!(!discards_history(&start));
    assert_eq!(start.refusal(), None);
}

#[test]
fn a_jump_with_losses_retreats_to_half_of_the_delivered_bytes() {
    let mut start = validating();
    #[rustfmt::skip]
    let steps = [
        (ack(200, 100, 20, 80),     "Validating",   120_000, 0, "PipeSize is 20 + 20"),
        (ack(202, 102, 10, 90),     "Validating",   130_000, 0, "PipeSize is 50"),
        (loss(210, 30, 60),         "Safe Retreat",  25_000, 0, "half of it"),
        (loss(215, 10, 50),         "Safe Retreat",  25_000, 0, "more losses change nothing"),
        (ack(220, 150, 20, 30),     "Safe Retreat",  25_000, 0, "the window does not grow, PipeSize does: 70"),
        (ack(281, 181, 10, 20),     "hand over",     25_000, 0, "the last unvalidated packet arrived: PipeSize is 80"),
    ];
    let how = play(&mut start, &steps).expect("hands over");
    assert_eq!((how.ssthresh, how.cut), (MSS * 40, false), "PipeSize x 0.5, and no second cut");
    assert!(discards_history(&start), "the record misled it");
}

#[test]
fn congestion_while_the_jump_leaves_is_a_retreat_too() {
    for event in [loss(130, 1, 40), mark(130, 40)] {
        let mut start = jumped(Params::default());
        let _ = apply(&mut start, sent(110, 21));
        play(&mut start, &[(event, "Safe Retreat", 10_000, 0, "half of PipeSize, which is 20")]);
        assert!(discards_history(&start));
        let how = play(&mut start, &[(ack(211, 111, 20, 1), "hand over", 10_000, 0, "PipeSize is 40")]);
        assert_eq!(how.map(|how| how.ssthresh), Some(MSS * 20));
    }
}

#[test]
fn safe_retreat_never_goes_below_two_segments() {
    let mut start = established(Params::default());
    let Event::Ack(ack) = ack(100, 0, 10, 0) else { unreachable!("an ack") };
    let _ = start.on_ack(&ack);
    assert_eq!(start.phase(), "Unvalidated");
    play(&mut start, &[(loss(130, 1, 0), "Safe Retreat", 2_000, 0, "PipeSize is nothing")]);
}

/// The event with a smoothed RTT of `millis`.
fn on_a_path_of(millis: u64, event: Event) -> Event {
    let Event::Ack(ack) = event else { unreachable!("an ack") };
    let rtt = crate::path::Rtt { smoothed: Span::from_millis(millis), ..ack.rtt };
    Event::Ack(Ack { rtt, ..ack })
}

/// The three exits of the Unvalidated Phase.
#[test]
fn the_unvalidated_phase_ends_when_all_was_sent_or_one_was_acked_or_an_rtt_passed() {
    let mut start = jumped(Params::default());
    for n in 1..=40 {
        let _ = apply(&mut start, sent(101 + n, 20 + n));
    }
    let why = "an ack of the first unvalidated packet, early: the window falls to the flight";
    let early = on_a_path_of(100, ack(160, 102, 1, 59));
    play(&mut start, &[(early, "Validating", 59_000, 0, why)]);

    let mut start = jumped(Params::default());
    for n in 1..=40 {
        let _ = apply(&mut start, sent(101 + n, 20 + n));
    }
    play(&mut start, &[(sent(203, 61), "Validating", 61_000, 0, "102 ms have passed since the jump")]);

    let mut start = jumped(Params::default());
    for n in 1..=40 {
        let _ = apply(&mut start, sent(101 + n, 20 + n));
    }
    let _ = apply(&mut start, ack(200, 99, 10, 50));
    let late = on_a_path_of(101, ack(203, 101, 1, 49));
    play(&mut start, &[(late, "Validating", 49_000, 0, "the same, found by an ack")]);
}

#[test]
fn an_unused_jump_leaves_the_previous_window() {
    let mut start = jumped(Params::default());
    let _ = apply(&mut start, sent(110, 21));
    let _ = apply(&mut start, ack(200, 100, 20, 1));
    let why = "one in flight, and PipeSize is 41: there is nothing to validate";
    play(&mut start, &[(ack(210, 110, 1, 0), "Normal", 41_000, 0, why)]);
    assert!(!discards_history(&start));
}

#[test]
fn a_flight_no_larger_than_what_is_validated_needs_no_validation() {
    for (in_flight, phase) in [(22, "Normal"), (23, "Validating")] {
        let mut start = jumped(Params::default());
        let _ = apply(&mut start, sent(110, 21));
        let _ = apply(&mut start, ack(200, 100, 1, 20));
        let _ = apply(&mut start, sent(201, 23));
        let why = "PipeSize is 22";
        let last = on_a_path_of(101, ack(202, 110, 1, in_flight));
        play(&mut start, &[(last, phase, in_flight * 1000, 0, why)]);
    }
}

#[test]
fn a_flight_below_the_initial_window_needs_none_either() {
    let mut start = established(Params::default());
    let _ = apply(&mut start, ack(100, 0, 10, 0));
    for n in 1..=5 {
        let _ = apply(&mut start, sent(100 + n, n));
    }
    let why = "PipeSize is one, and the initial window is always allowed";
    play(&mut start, &[(ack(200, 101, 1, 4), "Normal", 10_000, 0, why)]);
}

#[test]
fn hystarts_exit_is_respected() {
    let mut start = established(Params::default());
    start.growth = None;
    let how = play(&mut start, &[(ack(100, 0, 10, 20), "hand over", 10_000, 0, "no jump into a queue")]);
    assert_eq!(how, Some(HandOver::avoiding(MSS * 10)));
    let mut start = validating();
    start.growth = None;
    #[rustfmt::skip]
    let steps = [
        (ack(202, 102, 21, 80),  "Validating", 100_000, 0, "the window rests, and the jump is still watched"),
        (ack(281, 181, 80, 20),  "hand over",  100_000, 0, "then avoidance"),
    ];
    assert_eq!(play(&mut start, &steps), Some(HandOver::avoiding(MSS * 100)));
}

#[test]
fn the_jump_waits_until_the_window_is_the_limit() {
    let mut start = established(Params::default());
    let Event::Ack(ack) = ack(100, 0, 10, 0) else { unreachable!("an ack") };
    assert_eq!(start.on_ack(&Ack { is_window_limited: false, ..ack }), Next::Stay);
    assert_eq!(start.phase(), "Reconnaissance");
    let _ = start.on_ack(&ack);
    assert_eq!(start.phase(), "Unvalidated");
}

#[test]
fn the_jump_is_half_of_the_saved_window_and_no_more_than_the_operator_allows() {
    for (max_jump, expected) in [(None, MSS * 100), (Some(MSS * 101), MSS * 100), (Some(MSS * 60), MSS * 60)]
    {
        let mut start = established(Params { max_jump, ..Params::default() });
        let _ = apply(&mut start, ack(100, 0, 10, 20));
        let pace = expected / Span::from_millis(100);
        assert_eq!(start.allowance(), Allowance { window: expected, pace: Some(pace) });
    }
}

/// CR, Unvalidated Phase (Pacing transmission): "MUST use pacing based on the current RTT".
#[test]
fn a_path_that_grew_longer_is_paced_more_slowly() {
    let mut start = established(Params::default());
    let _ = apply(&mut start, ack(400, 0, 10, 20));
    assert_eq!(start.allowance().pace, Some(Rate::from_bytes_per_sec(250_000)), "100 kB over 400 ms");
}

#[test]
fn a_record_is_used_only_if_valid() {
    type Spoil = fn(&mut Prior);
    let cases: [(Spoil, Refusal, bool); 5] = [
        (|prior| prior.history = None, Refusal::NoRecord, false),
        (|prior| spoil(prior).record.btl_bw = Rate::ZERO, Refusal::NoRecord, false),
        (|prior| spoil(prior).live = 1, Refusal::InUse, false),
        (|prior| prior.now = Time::from_millis(605_001), Refusal::Expired, true),
        (|prior| prior.now = Time::NEVER, Refusal::Expired, true),
    ];
    for (spoil, why, discards) in cases {
        let mut prior = prior_with(2000, 100);
        spoil(&mut prior);
        let mut start = CarefulResume::new(Params::default());
        let _ = start.establish(&prior);
        assert_eq!(
            (start.phase(), start.refusal(), discards_history(&start)),
            ("Normal", Some(why), discards)
        );
        play(&mut start, &[(ack(100, 0, 10, 10), "Normal", 20_000, 0, "slow start as ever")]);
    }
    let mut prior = prior_with(2000, 100);
    prior.now = Time::from_millis(605_000);
    let mut start = CarefulResume::new(Params::default());
    let _ = start.establish(&prior);
    assert_eq!(start.refusal(), None, "ten minutes exactly");
}

fn spoil(prior: &mut Prior) -> &mut crate::history::SharedRecord {
    prior.history.as_mut().expect("a record")
}

#[test]
fn a_path_with_another_rtt_is_refused() {
    for (rtt, expected) in
        [(50, Some(Refusal::RttTooSmall)), (51, None), (1000, None), (1001, Some(Refusal::RttTooLarge))]
    {
        let mut start = established(Params::default());
        let _ = apply(&mut start, ack(2000, 2000 - rtt, 10, 20));
        assert_eq!(start.refusal(), expected, "{rtt} ms");
        assert_eq!(start.phase(), if expected.is_some() { "Normal" } else { "Unvalidated" });
        assert!(!discards_history(&start), "the other network may come back");
    }
}

#[test]
fn a_jump_that_gains_nothing_is_not_made() {
    let mut start = CarefulResume::new(Params::default());
    let _ = start.establish(&prior_with(400, 100));
    play(&mut start, &[(ack(100, 0, 10, 10), "Normal", 20_000, 0, "half of 40 segments are 20")]);
    assert_eq!(start.refusal(), Some(Refusal::NothingToGain));
}

#[test]
fn congestion_in_reconnaissance_has_the_usual_response() {
    for (event, window) in [(loss(100, 1, 9), 10_000), (mark(100, 9), 10_000), (timeout(1000), 10_000)] {
        let mut start = established(Params::default());
        let how = play(&mut start, &[(event, "hand over", window, 0, "normal congestion control")]);
        assert_eq!(how, Some(HandOver::to_be_cut(MSS * 10)));
        assert_eq!((start.refusal(), discards_history(&start)), (Some(Refusal::Congested), false));
    }
}

#[test]
fn a_timeout_after_the_jump_ends_it_and_discards_the_record() {
    let mut start = validating();
    let _ = apply(&mut start, ack(200, 100, 20, 80));
    let how = play(&mut start, &[(timeout(1000), "hand over", 40_000, 0, "PipeSize, for the base to cut")]);
    assert_eq!(how, Some(HandOver::to_be_cut(MSS * 40)));
    assert!(discards_history(&start));
}

#[test]
fn absurd_records_do_no_harm() {
    for exit in [Exit::Loss, Exit::HyStart, Exit::Search] {
        let lifetime = Span::MAX;
        withstand_extremes(&absurd_priors(), 2, || {
            CarefulResume::new(Params { lifetime, exit, ..Params::default() })
        });
    }
}
