use super::super::steps::{Event, Expected, play};
use super::*;
use crate::base::testing::{acked, lost, timed_out};
use crate::growth::SLOW_START;
use crate::history::testing::{absurd_priors, prior_with};
use crate::history::{SharedCredit, SharedRecord};
use alloc::vec::Vec;
use headstart_units::Time;

/// The record that replaces the one before, after this measurement.
fn kept_record(start: &Headstart, measured: Record) -> Record {
    match start.record_update(Some(measured)) {
        RecordUpdate::Replace(record) => record,
        other => panic!("{other:?}"),
    }
}

const MSS: Bytes = Bytes::new(1000);
const RTT: Span = Span::from_millis(100);

/// A first contact with 100 segments to send and a receive window of 141.
fn first_contact() -> Prior {
    let bare = Prior::bare(Time::from_millis(7_000), MSS, RTT, MSS * 141);
    Prior { flow_size: Some(MSS * 100), shared_credit: Some(SharedCredit::default()), ..bare }
}

/// A peer whose smallest RTT is `rt_prop` and whose credit is `credit` segments; its rate is low.
fn recorded_peer(rt_prop: u64, credit: u64) -> Prior {
    let shared_credit = SharedCredit { credit: Some(MSS * credit), ..SharedCredit::default() };
    let record = prior_with(100, rt_prop).history;
    Prior { history: record, shared_credit: Some(shared_credit), ..first_contact() }
}

/// As [`recorded_peer`], of a path that holds so many segments. The credit of 80 is more than three
/// quarters of them.
fn peer_of_path(segments: u64) -> Prior {
    let mut prior = recorded_peer(100, 80);
    let shared = prior.history.as_mut().expect("a record");
    shared.record.btl_bw = MSS * segments / RTT;
    prior
}

/// Whole segments of these tests in the credit of first contacts, of which theirs are smaller.
fn initial_credit() -> u64 {
    (SEGMENT * Params::default().initial_credit).get() / MSS.get()
}

/// Segments of the flight that is planned.
fn planned(prior: &Prior) -> u64 {
    Headstart::new(Params::default()).establish(prior).flight.get() / MSS.get()
}

/// An ack of `originals` segments; `delivered` and `in_flight` in segments, after it.
fn ack(originals: u64, delivered: u64, in_flight: u64, in_recovery: bool) -> Event {
    Event::Ack(Ack {
        newly_acked: MSS * originals,
        first_flight_acked: MSS * originals,
        delivered: MSS * delivered,
        in_flight: MSS * in_flight,
        in_recovery,
        ..acked(Time::ZERO, MSS)
    })
}

fn loss(of_flight: u64, in_flight: u64) -> Event {
    Event::Congestion(Congestion {
        first_flight_lost: MSS * of_flight,
        in_flight: MSS * in_flight,
        ..lost(Time::ZERO, MSS)
    })
}

#[test]
fn two_segments_leave_at_once_and_all_within_one_round_trip() {
    let of = |segments, prior: Prior| {
        let prior = Prior { flow_size: Some(MSS * segments), ..prior };
        let plan = Headstart::new(Params::default()).establish(&prior);
        (plan.burst, plan.flight, plan.allowance.pace)
    };
    let at_first = SEGMENT * Params::default().initial_credit;
    #[rustfmt::skip]
    let rows = [
        (100, peer_of_path(100),    80, MSS * 80, "the credit in one RTT"),
        (78,  peer_of_path(100),    78, MSS * 80, "a flow of nearly that"),
        (45,  peer_of_path(100),    45, MSS * 80, "a shorter one at the pace of the credit"),
        (20,  peer_of_path(100),    20, MSS * 40, "but at most at twice its own"),
        (20,  peer_of_path(30),     20, MSS * 30, "and at most at the path's"),
        (20,  peer_of_path(5),      20, MSS * 20, "the flow itself in one RTT"),
        (40,  first_contact(), 40, at_first, "or at the credit of a first contact"),
    ];
    for (segments, prior, flight, in_one_rtt, why) in rows {
        assert_eq!(of(segments, prior), (MSS * 2, MSS * flight, Some(in_one_rtt / RTT)), "{why}");
    }
    let few = Prior { flow_size: Some(MSS * 9), ..recorded_peer(100, 80) };
    let plan = Headstart::new(Params::default()).establish(&few);
    assert_eq!((plan.burst, plan.flight, plan.allowance.pace), (MSS * 10, MSS * 9, None), "as RFC 6928");
}

#[test]
fn the_flight_is_the_credit_less_reservations() {
    let (initial_credit, initial_window) = (initial_credit(), Params::default().initial_window);
    let with = |reserved: u64, credit| {
        let shared_credit = SharedCredit { reserved: MSS * reserved, credit, doubt: 0 };
        Prior { shared_credit: Some(shared_credit), ..recorded_peer(100, 0) }
    };
    let first = |reserved: u64, credit| Prior { history: None, ..with(reserved, credit) };
    let at = |millis, prior: Prior| Prior { handshake_rtt: Span::from_millis(millis), ..prior };
    #[rustfmt::skip]
    let rows = [
        (first_contact(),                                     initial_credit,  "nobody knows anything"),
        (Prior { shared_credit: None, ..first_contact() },             initial_credit,  "nobody keeps account"),
        (first(0, Some(MSS * 30)),                       30,    "first contacts have learnt"),
        (first(initial_credit - 20, None),                         20,    "a second first contact at the same time"),
        (with(0, None),                                  initial_credit,  "a record of a scheme that keeps no credit"),
        (with(0, Some(MSS * 70)),                        70,    "the credit"),
        (with(0, Some(MSS * 120)),                       100,   "there is no more to send"),
        (with(40, Some(MSS * 70)),                       30,    "others are under way"),
        (with(69, Some(MSS * 70)),                       initial_window, "never less than RFC 6928 allows"),
        (with(0, Some(MSS)),                             initial_window, "nor if the credit is less"),
        (at(9, recorded_peer(9, 80)),                     initial_window, "a path too short for pacing to be worth its while"),
        (at(16, recorded_peer(9, 80)),                     initial_window, "nor longer for a queue"),
        (at(45, recorded_peer(100, 80)),                  80,    "a shorter path than on record"),
        (at(101, recorded_peer(100, 80)),                 80,    "noise of the handshake"),
        (at(1_001, recorded_peer(100, 80)),               initial_window, "a queue without end, or another path"),
    ];
    for (prior, segments, why) in rows {
        assert_eq!(planned(&prior), segments, "{why}");
    }
}

#[test]
fn losses_of_a_network_take_its_records_back_to_a_first_contact() {
    let with = |credit, doubt| Prior {
        flow_size: Some(MSS * 500),
        receive_window: MSS * 1000,
        shared_credit: Some(SharedCredit { credit: Some(MSS * credit), doubt, ..SharedCredit::default() }),
        ..recorded_peer(100, 0)
    };
    #[rustfmt::skip]
    let rows = [
        (with(200, 0),         200,              "nothing was lost"),
        (with(200, 250_000),   150,              "three quarters of it"),
        (with(200, 1_000_000), initial_credit(), "as a first contact"),
        (with(40, 1_000_000),  40,               "or the credit, if that is less"),
        (Prior { history: None, ..with(200, 1_000_000) }, 200, "the credit of first contacts has its own losses"),
    ];
    for (prior, segments, why) in rows {
        assert_eq!(planned(&prior), segments, "{why}");
    }
}

#[test]
fn a_longer_queue_in_the_handshake_never_gives_a_larger_flight() {
    let at = |millis| Prior { handshake_rtt: Span::from_millis(millis), ..recorded_peer(100, 100) };
    let flights: Vec<u64> = (100..300).map(|millis| planned(&at(millis))).collect();
    assert!(flights.is_sorted_by(|before, after| before >= after), "{flights:?}");
    assert_eq!((flights[0], flights[100]), (100, 11), "{flights:?}");
}

/// A record of 100 ms, of that rate in kB/s, with a credit of 60 segments.
fn recorded_rate(kilobytes_per_sec: u64) -> Prior {
    let mut prior = recorded_peer(100, 60);
    let record = &mut prior.history.as_mut().expect("it has one").record;
    record.btl_bw = Rate::from_bytes_per_sec(kilobytes_per_sec * 1000);
    prior
}

#[test]
fn a_record_allows_its_rate_for_one_rtt_and_never_ages() {
    for (rate, outcome, segments, why) in [
        (1000, FlightOutcome::Clean, 75, "three quarters of its 100 segments in 100 ms"),
        (300, FlightOutcome::Clean, 60, "the credit is more than 22"),
        (1000, FlightOutcome::Lossy, 75, "after a loss the rate on record is one that arrived"),
    ] {
        let mut prior = recorded_rate(rate);
        prior.history.as_mut().expect("it has one").record.outcome = outcome;
        prior.now += Span::from_secs(100_000_000);
        assert_eq!(planned(&prior), segments, "{why}");
    }
    let mut prior = recorded_rate(1000);
    prior.handshake_rtt = Span::from_millis(151);
    assert_eq!(planned(&prior), 15, "75 / (1 + 8 x 50 ms / 100 ms): less for a queue");
    let mut prior = recorded_rate(1000);
    prior.shared_credit = prior.shared_credit.map(|it| SharedCredit { reserved: MSS * 45, ..it });
    assert_eq!(planned(&prior), 30, "others hold 45 of the 75");
}

#[test]
fn the_record_is_the_rate_of_the_flights_arrival_or_twice_that_if_the_path_was_not_full() {
    let measured = prior_with(300, 100).history.map(|SharedRecord { record, .. }| record).expect("a record");
    let kilobytes = |start: &Headstart| kept_record(start, measured).btl_bw.as_bytes_per_sec() / 1000;
    // 60 segments leave at 600 kB/s, one in 1.67 ms.
    for (spacing, lost, expected, why) in [
        (2500, 0, 400, "one in 2.5 ms: the path was full"),
        (1700, 0, 1176, "as they left: it may carry more"),
        (10, 0, 1199, "compressed acks are no faster than the flight"),
        (1700, 1, 588, "after a loss the rate that arrived"),
        (5000, 0, 300, "the delivery rate was higher later"),
        (5000, 1, 200, "and counts for nothing after a loss"),
    ] {
        let mut start = Headstart::new(Params::default());
        let _ = start.establish(&recorded_rate(100));
        let _ = (lost > 0).then(|| start.on_congestion(&Congestion { first_flight_lost: MSS, ..lost_now() }));
        for packet in 0..30 {
            let _ = start.on_ack(&Ack {
                now: Time::from_millis(7_100) + Span::from_micros(packet * spacing),
                newest_sent_at: Time::from_millis(7_000) + Span::from_micros(packet * 1667),
                in_recovery: lost > 0,
                ..acked(Time::ZERO, MSS)
            });
        }
        assert_eq!(kilobytes(&start), expected, "{why}");
    }
    let mut start = Headstart::new(Params::default());
    let _ = start.establish(&recorded_rate(500));
    assert_eq!(kilobytes(&start), 500, "a short clean flight says nothing against the record");
    let _ = start.on_congestion(&Congestion { first_flight_lost: MSS, ..lost_now() });
    assert_eq!(kilobytes(&start), 300, "a loss does");
}

#[test]
fn a_connection_too_short_to_measure_more_records_its_flight() {
    let play = |acks: u64, spacing: u64, lost: bool| {
        let mut start = Headstart::new(Params::default());
        let _ = start.establish(&recorded_rate(9000));
        for packet in 0..acks {
            let now = Time::from_millis(7_100) + Span::from_micros(packet * spacing);
            let newest_sent_at = Time::from_millis(7_000) + Span::from_micros(packet * 1667);
            let mut rtt = crate::path::Rtt::default();
            rtt.update(RTT);
            let _ = start.on_ack(&Ack { newest_sent_at, rtt, ..acked(now, MSS) });
        }
        let _ = lost.then(|| start.on_congestion(&Congestion { first_flight_lost: MSS, ..lost_now() }));
        match start.record_update(None) {
            RecordUpdate::Replace(record) => {
                Some((record.btl_bw.as_bytes_per_sec() / 1000, record.rt_prop, record.outcome))
            }
            _ => None,
        }
    };
    assert_eq!(play(30, 2500, false), Some((400, RTT, FlightOutcome::Clean)), "the path was full");
    assert_eq!(play(30, 1700, false), Some((9000, RTT, FlightOutcome::Clean)), "it was not");
    assert_eq!(play(30, 1700, true), Some((588, RTT, FlightOutcome::Lossy)), "the rate that arrived");
    assert_eq!(play(3, 2500, false), None, "three packets do not tell");
    assert_eq!(play(3, 2500, true), Some((9000, RTT, FlightOutcome::Lossy)), "but a loss does");
    assert_eq!(play(0, 2500, true), None, "nothing arrived");
}

#[test]
fn a_loss_or_a_mark_of_the_flight_leaves_a_lossy_record() {
    let measured = prior_with(1000, 100).history.map(|SharedRecord { record, .. }| record).expect("a record");
    let mark = Congestion { signal: Signal::CongestionExperienced, ..lost(Time::ZERO, Bytes::ZERO) };
    let cases = [
        (None, FlightOutcome::Clean),
        (Some(mark), FlightOutcome::Lossy),
        (Some(Congestion { first_flight_lost: MSS, ..lost_now() }), FlightOutcome::Lossy),
    ];
    for (signal, outcome) in cases {
        let mut start = Headstart::new(Params::default());
        let _ = start.establish(&recorded_peer(100, 80));
        let _ = signal.map(|signal| start.on_congestion(&signal));
        assert_eq!(kept_record(&start, measured).outcome, outcome, "{signal:?}");
    }
}

#[test]
fn a_delivered_flight_is_paced_once_and_raises_the_credit() {
    let mut start = Headstart::new(Params::default());
    let _ = start.establish(&peer_of_path(100));
    #[rustfmt::skip]
    let steps = [
        // Its last ack comes 100 ms after the first: the path spread it.
        (101, ack(1, 1, 60, false),   Expected::Paced(81_000, 800_000), "nineteen segments are still to leave"),
        (102, ack(1, 2, 78, false),   Expected::Window(82_000),         "all of it is out: no more pacing"),
        (201, ack(78, 80, 20, false), Expected::Window(160_000),        "slow start goes on"),
    ];
    play(&mut start, &steps);
    let fate = start.credit_revision(false).expect("known");
    let earned = MSS * 80 * Params::default().credit_gain / TAKEN;
    assert_eq!((fate.earned, fate.spent, fate.most), (earned, Bytes::ZERO, MSS * 160));
    assert_eq!(fate.of(Some(MSS * 80)), MSS * 80 + earned);
    play(&mut start, &[(300, loss(0, 50), Expected::Cut(160_000), "a later loss is the base controller's")]);
}

#[test]
fn a_flight_that_the_path_spread_earns_a_quarter() {
    for (spacing, part, why) in [(2, 4, "the queue was there before"), (1, 1, "there was room to spare")] {
        let mut start = Headstart::new(Params::default());
        let _ = start.establish(&peer_of_path(100));
        for packet in 0..80 {
            let _ = start.on_ack(&Ack {
                now: Time::from_millis(7_100 + packet * spacing),
                newest_sent_at: Time::from_millis(7_000 + packet),
                first_flight_acked: MSS,
                delivered: MSS * (packet + 1),
                ..acked(Time::ZERO, MSS)
            });
        }
        let earned = start.credit_revision(false).map(|fate| fate.earned);
        assert_eq!(earned, Some(MSS * 80 * Params::default().credit_gain / part), "{why}");
    }
}

#[test]
fn a_flight_with_losses_is_repaired_and_lowers_the_credit() {
    let mut start = Headstart::new(Params::default());
    let _ = start.establish(&peer_of_path(100));
    #[rustfmt::skip]
    let steps = [
        (101, ack(40, 40, 40, false), Expected::Window(120_000),   "half of it"),
        (103, loss(4, 36),            Expected::Window(37_000),    "one segment may be sent again"),
        (150, ack(36, 76, 4, true),   Expected::Window(38_000),    "half of the 76 that got through"),
        (205, ack(0, 80, 0, false),   Expected::HandsOver(38_000), "the repair is done"),
    ];
    play(&mut start, &steps);
    let (fate, Params { credit_gain, price, .. }) =
        (start.credit_revision(false).expect("known"), Params::default());
    let earned = MSS * 76 * credit_gain / TAKEN;
    assert_eq!((fate.earned, fate.spent), (earned, MSS * 4 * credit_gain * price));
    assert_eq!(fate.least, MSS * 10);
}

#[test]
fn unresolved_bytes_count_as_lost_after_a_timeout() {
    let mut start = Headstart::new(Params::default());
    let _ = start.establish(&peer_of_path(100));
    assert_eq!(start.credit_revision(false), None, "nothing is known yet");
    #[rustfmt::skip]
    let steps = [
        (100, ack(1, 1, 79, false),                  Expected::Window(81_000), "one segment got through, and then nothing"),
        (400, Event::Timeout(timed_out(Time::ZERO)), Expected::Cut(1_000),     "the flight's size is no measure"),
    ];
    play(&mut start, &steps);
    assert_eq!(
        start.credit_revision(false).map(|fate| fate.earned),
        Some(MSS * Params::default().credit_gain)
    );
}

#[test]
fn a_mark_ends_the_start_and_has_its_price() {
    let mut start = Headstart::new(Params::default());
    let _ = start.establish(&recorded_peer(100, 80));
    let mark = Congestion { signal: Signal::CongestionExperienced, ..lost(Time::ZERO, Bytes::ZERO) };
    play(&mut start, &[(100, Event::Congestion(mark), Expected::Cut(80_000), "as in slow start")]);
    let (fate, Params { credit_gain, price, .. }) =
        (start.credit_revision(false).expect("known"), Params::default());
    assert_eq!(fate.spent, MSS * 10 * credit_gain * price, "as if an eighth had been lost");
}

#[test]
fn ten_segments_start_and_fail_as_slow_start_does() {
    let mut start = Headstart::new(Params::default());
    let _ = start.establish(&recorded_peer(100, 10));
    play(&mut start, &[(110, loss(1, 9), Expected::Cut(10_000), "the base controller cuts")]);
}

/// In equilibrium one byte in 1 + price is lost, whatever the path's capacity.
#[test]
fn the_equilibrium_of_the_credit_follows_price_and_path() {
    let mut credit = None;
    let (mut lost, mut sent) = (0, 0);
    for visit in 0..4_000_u64 {
        // Capacity of the path: 20 to 99 segments, and from the 2000th visit half of that.
        let shared_credit = (20 + visit * 7_919 % 80) / (1 + visit / 2_000);
        let mut prior = Prior { flow_size: None, ..recorded_peer(100, 0) };
        prior.shared_credit = Some(SharedCredit { credit, ..SharedCredit::default() });
        let mut start = Headstart::new(Params::default());
        let flight = start.establish(&prior).flight.get() / MSS.get();
        let through = flight.min(shared_credit);
        if flight > through {
            let _ = start
                .on_congestion(&Congestion { first_flight_lost: MSS * (flight - through), ..lost_now() });
        }
        let Event::Ack(ack) = ack(through, through, 0, false) else { unreachable!("an ack") };
        let _ = start.on_ack(&ack);
        credit = Some(start.credit_revision(false).expect("its fate is known").of(credit));
        if visit % 2_000 >= 200 {
            (lost, sent) = (lost + flight - through, sent + flight);
        }
    }
    let expected = 1.0 / (1 + Params::default().price) as f64;
    let share = lost as f64 / sent as f64;
    assert!((0.5..1.3).contains(&(share / expected)), "{share} of {expected}");
}

fn lost_now() -> Congestion {
    lost(Time::ZERO, MSS)
}

#[test]
fn the_smallest_rtt_is_stored_and_rises_slowly() {
    let mut start = Headstart::new(Params::default());
    let _ = start.establish(&recorded_peer(100, 80));
    let measured = prior_with(1000, 180).history.map(|SharedRecord { record, .. }| record).expect("a record");
    let kept = kept_record(&start, measured);
    assert_eq!(kept, Record { rt_prop: Span::from_millis(110), ..measured });
    let shorter = Record { rt_prop: Span::from_millis(60), ..measured };
    assert_eq!(kept_record(&start, shorter).rt_prop, shorter.rt_prop, "it falls at once");
}

#[test]
fn processing_of_the_handshake_is_learnt_and_is_not_a_queue() {
    let millis = Span::from_millis;
    let handshake = |rtt, excess, prior: Prior| {
        let mut prior = Prior { handshake_rtt: rtt, ..prior };
        if let Some(known) = &mut prior.history {
            known.record.handshake_excess = excess;
        }
        prior
    };
    let measured = prior_with(1000, 100).history.map(|SharedRecord { record, .. }| record).expect("a record");
    let learnt = |prior: &Prior| {
        let mut start = Headstart::new(Params::default());
        let _ = start.establish(prior);
        kept_record(&start, measured).handshake_excess
    };
    #[rustfmt::skip]
    let rows = [
        (103, None,            millis(3),  "a first contact: 100 ms are the path's"),
        (400, None,            millis(20), "the rest is a queue"),
        (103, Some(millis(0)), millis(3) / 8, "it rises slowly"),
        (103, Some(millis(8)), millis(3),  "and falls at once"),
        (99,  Some(millis(8)), millis(0),  "shorter than the path of this connection"),
    ];
    for (rtt, before, expected, why) in rows {
        let prior = before.map_or_else(first_contact, |_| recorded_peer(100, 80));
        let prior = handshake(millis(rtt), before.unwrap_or_default(), prior);
        assert_eq!(learnt(&prior), expected, "{why}");
    }
    let known = |rtt, excess| handshake(millis(rtt), millis(excess), recorded_peer(100, 80));
    let ambiguous = Prior { handshake_retransmitted: true, ..known(300, 5) };
    assert_eq!(learnt(&ambiguous), millis(5), "a retransmission makes the RTT ambiguous");

    assert_eq!(planned(&known(104, 3)), 80, "processing and a millisecond of noise");
    assert!(planned(&known(104, 0)) < 80, "without the record that is a queue");
    assert_eq!(planned(&known(113, 3)), planned(&known(110, 0)), "the queue is the rest");
    assert_eq!(planned(&known(130, 1_000)), planned(&known(110, 0)), "no record hides a longer queue");

    let pace = |rtt, excess| {
        let mut prior = known(rtt, excess);
        prior.history.as_mut().expect("a record").record.btl_bw = Rate::from_mbit_per_sec(1_000);
        Headstart::new(Params::default()).establish(&prior).allowance.pace
    };
    assert_eq!(pace(104, 4), pace(100, 0), "the path does not need the time of the ends");
    assert_eq!(pace(104, 9), pace(100, 0), "but the RTT on record");
    assert!(pace(104, 4) > pace(104, 3) && pace(99, 9) > pace(100, 0));
}

#[test]
fn no_prior_makes_it_panic_or_send_without_end() {
    for mut prior in absurd_priors() {
        for credit in [None, Some(Bytes::ZERO), Some(Bytes::MAX)] {
            for reserved in [Bytes::ZERO, Bytes::MAX] {
                prior.shared_credit = Some(SharedCredit { reserved, credit, doubt: 0 });
                let mut start = Headstart::new(Params::default());
                let plan = start.establish(&prior);
                assert!(plan.flight <= LARGEST_WINDOW && plan.burst <= prior.mss * 10, "{prior:?}: {plan:?}");
                let _ = start.on_ack(&acked(Time::ZERO, prior.mss));
                let _ = start.on_congestion(&lost(Time::ZERO, prior.mss));
                let _ = start.credit_revision(false).map(|fate| fate.of(credit));
            }
        }
    }
}

#[test]
fn a_first_contact_gets_the_same_bytes_in_packets_of_any_size() {
    let mut flights = Vec::new();
    for mss in [1_200, 1_448, 8_948] {
        let prior = Prior { mss: Bytes::new(mss), receive_window: Bytes::new(1_000_000), ..first_contact() };
        let flight = Headstart::new(Params::default()).establish(&prior).flight.get();
        flights.push((flight / mss, flight));
    }
    assert_eq!(flights, [(60, 72_000), (50, 72_400), (10, 89_480)], "jumbo packets: RFC 6928's ten");
}

#[test]
fn a_connection_that_ends_early_moves_the_credit_by_what_is_known() {
    let mut start = Headstart::new(Params::default());
    let _ = start.establish(&peer_of_path(100));
    let steps =
        [(201, ack(64, 64, 16, false), Expected::Window(144_000), "all has left, sixteen are not known")];
    play(&mut start, &steps);
    let Params { credit_gain: gain, price, .. } = Params::default();
    assert_eq!(start.credit_revision(false), None);
    let (of_64, none) = (start.credit_revision(true).expect("a part"), Bytes::ZERO);
    assert_eq!((of_64.earned, of_64.most, of_64.spent), (MSS * 64 * gain, MSS * 128, none));
    let _ = start.on_congestion(&Congestion { first_flight_lost: MSS * 8, ..lost_now() });
    let with_loss = start.credit_revision(true).expect("a part");
    assert_eq!((with_loss.earned, with_loss.most), (MSS * 64 * gain, MSS * 144));
    assert_eq!(with_loss.spent, MSS * 8 * gain * price);
}

#[test]
fn slow_start_after_the_flight_pauses_and_slows_down_when_delay_grows() {
    let played = |prior: &Prior, rounds: &[(u64, u64, &str)]| {
        let mut start = Headstart::new(Params::default());
        let _ = start.establish(prior);
        for (round, &(acks, rtt, phase)) in (0..).zip(rounds) {
            for packet in 0..acks {
                let mut ack = Ack {
                    rtt_sample: Some(Span::from_millis(rtt)),
                    delivered: MSS * (round * 40 + packet + 80),
                    ..acked(Time::from_millis(7_100 + round * 100), MSS)
                };
                ack.rate.prior_delivered = MSS * (round * 40 + 40);
                let _ = start.on_ack(&ack);
            }
            assert_eq!(start.phase(), phase, "round {round}");
        }
    };
    played(&peer_of_path(100), &[(40, 100, SLOW_START), (40, 150, "pause"), (40, 150, "CSS")]);
    played(&peer_of_path(81), &[(3, 100, SLOW_START)]);
    played(&peer_of_path(80), &[(3, 100, "pause"), (40, 100, SLOW_START)]);
}
