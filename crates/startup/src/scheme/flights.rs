//! Flights of schemes that send what there is over one round trip: the connection's first, and those of later answers.
//!
//! Sources: as [`super::jump_start`] and [`super::halfback`], which say what is not in them.

use headstart_units::{Bytes, Rate};

use crate::allowance::{Allowance, Plan};
use crate::event::{Ack, Progress};
use crate::prior::Prior;

/// A connection's first flight: all at once if any connection may send as much, else over one round trip.
pub(super) fn first_flight(prior: &Prior, limit: Bytes, burst: u64) -> Plan {
    let plan = over_one_round_trip(prior, limit, burst);
    if prior.initial_window.is_zero() || plan.flight > prior.initial_window {
        return plan;
    }
    let window = prior.initial_window.min(limit).min(prior.receive_window).max(plan.allowance.window);
    Plan { flight: plan.flight, ..Plan::burst(window) }
}

/// A flight of what there is to send now, as far as all flights together stay below `limit`. `None` if the window lets as much
/// leave as it is, or if this is a connection with one flow.
///
/// Of the initial window what is not in flight leaves at once, for so it would on any connection; the rest over one round trip, but
/// no more slowly than a flight that is still under way.
pub(super) fn later_flight(
    prior: &Prior,
    so_far: &Progress,
    limit: Bytes,
    under_way: Option<Rate>,
) -> Option<Plan> {
    let room = limit.saturating_sub(so_far.sent);
    if prior.initial_window.is_zero() || room < prior.mss {
        return None;
    }
    let at_once = prior.initial_window.saturating_sub(so_far.in_flight).get() / prior.mss.get();
    let plan = over_one_round_trip(prior, room, at_once);
    if so_far.in_flight + plan.flight <= so_far.window {
        return None;
    }
    let pace = plan.allowance.pace.max(under_way);
    let allowance = Allowance { window: so_far.in_flight + plan.allowance.window, pace };
    Some(Plan { burst: prior.mss * at_once, allowance, ..plan })
}

/// As much of the flow as the receiver and `limit` let through, paced over the handshake RTT: of n segments one
/// leaves at once and the next an n-th of an RTT later. With a `burst`, that many leave at once and the others
/// share the RTT.
fn over_one_round_trip(prior: &Prior, limit: Bytes, burst: u64) -> Plan {
    let mss = prior.mss;
    // The receiver and the limit admit whole segments only; the flow's last segment may be a short one.
    let admitted = prior.receive_window.min(limit).get() / mss.get();
    let wanted = prior.flow_size.map_or(u64::MAX, |size| size.get().div_ceil(mss.get()));
    let segments = admitted.min(wanted).max(1);
    let paced = if burst == 0 { segments } else { segments.saturating_sub(burst).max(1) };
    let window = mss * segments;
    Plan {
        burst: mss * burst.clamp(1, segments),
        flight: prior.flow_size.map_or(window, |size| size.min(window)),
        allowance: Allowance { window, pace: Some(mss * paced / prior.handshake_rtt) },
    }
}

/// Whether all of the first flight has left, as the ack shows it. While segments are missing it may say no too
/// long, never yes too early.
#[inline]
pub(super) fn is_out(flight: Bytes, ack: &Ack) -> bool {
    ack.is_all_sent || ack.delivered + ack.in_flight >= flight
}

#[cfg(test)]
mod tests {
    use super::super::steps::{Event, Says, play};
    use super::super::{Halfback, JumpStart, Scheme, Startup, halfback, jump_start};
    use super::*;
    use crate::base;
    use crate::base::testing::{acked, lost};
    use crate::controller::Controller;
    use crate::event::{Congestion, Signal};
    use headstart_units::{Span, Time};

    const MSS: Bytes = Bytes::new(1000);
    const RTT: Span = Span::from_millis(100);

    /// A connection that may begin with ten segments, has `segments` to send now, and may send 141 in flights.
    fn prior(segments: u64) -> Prior {
        let bare = Prior::bare(Time::ZERO, MSS, RTT, MSS * 141);
        Prior { flow_size: Some(MSS * segments), initial_window: MSS * 10, ..bare }
    }

    fn so_far(sent: u64, in_flight: u64, window: u64) -> Progress {
        Progress {
            sent: MSS * sent,
            segments: sent,
            delivered: MSS * (sent - in_flight),
            in_flight: MSS * in_flight,
            window: MSS * window,
        }
    }

    /// An ack of so many originals.
    fn ack(originals: u64, delivered: u64, in_flight: u64) -> Event {
        Event::Ack(Ack {
            first_flight_acked: MSS * originals,
            delivered: MSS * delivered,
            in_flight: MSS * in_flight,
            ..acked(Time::ZERO, MSS)
        })
    }

    /// RFC 9002 §7.2: ten packets may leave at once on any connection.
    #[test]
    fn what_any_connection_may_send_at_once_is_not_paced() {
        for (segments, at_once, window, pace) in [
            (1, 10, 10, None),
            (10, 10, 10, None),
            (11, 1, 11, Some(Rate::from_bytes_per_sec(110_000))),
            (100, 1, 100, Some(Rate::from_bytes_per_sec(1_000_000))),
        ] {
            let plan = first_flight(&prior(segments), Bytes::MAX, 0);
            assert_eq!((plan.burst, plan.flight), (MSS * at_once, MSS * segments), "{segments}");
            assert_eq!(plan.allowance, Allowance { window: MSS * window, pace }, "{segments}");
            let alone = Prior { initial_window: Bytes::ZERO, ..prior(segments) };
            let paced = Some(MSS * segments / RTT);
            assert_eq!(first_flight(&alone, Bytes::MAX, 0).allowance.pace, paced, "one flow: as its paper");
        }
    }

    #[test]
    fn a_later_flight_is_what_is_new_within_what_is_left_of_the_limit() {
        #[rustfmt::skip]
        let rows = [
            // sent, in flight, window, new    burst, flight, window, pace
            ((1,     0,         10,     60), Some((10, 60,  60,  500_000)), "after a first answer of one segment"),
            ((1,     0,         10,     10), None,                          "the window lets all of it go"),
            ((17,    17,        17,     60), Some((0,  60,  77,  600_000)), "the answer before is under way: nothing at once"),
            ((5,     5,         10,     20), Some((5,  20,  25,  150_000)), "of the initial window five are left"),
            ((41,    0,         10,     200), Some((10, 100, 100, 900_000)), "as far as the limit"),
            ((131,   0,         30,     60), None,                          "what is left of the limit is less than the window"),
            ((141,   0,         10,     60), None,                          "nothing is left of it"),
        ];
        for ((sent, in_flight, window, new), expected, why) in rows {
            let plan = later_flight(&prior(new), &so_far(sent, in_flight, window), MSS * 141, None);
            let expected = expected.map(|(burst, flight, window, pace)| Plan {
                burst: MSS * burst,
                flight: MSS * flight,
                allowance: Allowance { window: MSS * window, pace: Some(Rate::from_bytes_per_sec(pace)) },
            });
            assert_eq!(plan, expected, "{why}");
            let alone = Prior { initial_window: Bytes::ZERO, ..prior(new) };
            assert_eq!(
                later_flight(&alone, &so_far(sent, in_flight, window), MSS * 141, None),
                None,
                "one flow"
            );
        }
    }

    #[test]
    fn a_flight_that_grows_does_not_slow_down() {
        let under_way = Some(Rate::from_bytes_per_sec(1_000_000));
        let grown = |new| later_flight(&prior(new), &so_far(98, 98, 100), MSS * 1000, under_way);
        assert_eq!(
            grown(7).and_then(|plan| plan.allowance.pace),
            under_way,
            "7 over one RTT would be 70 kB/s"
        );
        let faster = Some(Rate::from_bytes_per_sec(1_200_000));
        assert_eq!(grown(120).and_then(|plan| plan.allowance.pace), faster);
    }

    #[test]
    fn jump_start_jumps_again_and_goes_on_in_slow_start() {
        let mut start = JumpStart::new(jump_start::Params::default());
        let _ = start.establish(&prior(1));
        play(&mut start, &[(100, ack(1, 1, 0), Says::Window(11_000), "the initial window, and slow start")]);
        let plan = start.on_more(&prior(60), &so_far(1, 0, 11)).expect("more than the window");
        assert_eq!(start.allowance(), plan.allowance);
        #[rustfmt::skip]
        let steps = [
            (250, ack(1, 2, 40),   Says::Paced(61_000, 500_000), "twenty are still to leave"),
            (300, ack(19, 21, 40), Says::Window(62_000),         "all are out"),
        ];
        play(&mut start, &steps);
        let loss = Congestion { first_flight_lost: MSS, in_flight: MSS * 30, ..lost(Time::ZERO, MSS) };
        let _ = start.on_congestion(&loss);
        assert_eq!(start.on_more(&prior(200), &so_far(61, 30, 31)), None, "never after a loss");
    }

    #[test]
    fn halfback_hands_a_small_answer_over_to_slow_start_and_takes_the_next_one_as_a_flight() {
        for (originals, says, why) in [
            (29, Says::Grows(120_000), "all of it came through, and that was all there was"),
            (20, Says::HandsOver(22_000), "some came through as copies: s is 11 segments in 50 ms"),
        ] {
            let mut start = Halfback::new(halfback::Params::default());
            let _ = start.establish(&prior(1));
            play(
                &mut start,
                &[(100, ack(1, 1, 0), Says::Grows(10_000), "it has measured nothing but itself")],
            );
            let _ = start.on_more(&prior(60), &so_far(1, 0, 12)).expect("more than the window");
            #[rustfmt::skip]
            let steps = [
                (250, ack(1, 2, 40),          Says::Paced(59_000, 500_000), "what is missing of the flight"),
                (300, ack(19, 21, 40),        Says::Window(40_000),         "all are out: copies"),
                (350, ack(11, 32, 29),        Says::Window(29_000),         "past the middle of this flight"),
                (400, ack(originals, 61, 0),  says,                         why),
            ];
            play(&mut start, &steps);
        }
    }

    #[test]
    fn a_flight_of_halfbacks_that_the_threshold_cuts_short_must_be_worth_two_round_trips() {
        for (window, expected) in [(27, true), (28, false)] {
            let mut start = Halfback::new(halfback::Params::default());
            let _ = start.establish(&prior(31));
            play(&mut start, &[(200, ack(31, 31, 0), Says::Grows(62_000), "all of it is delivered")]);
            let plan = start.on_more(&prior(500), &so_far(31, 0, window));
            assert_eq!(plan.is_some(), expected, "110 segments against a window of {window}");
        }
    }

    #[test]
    fn after_a_loss_or_a_mark_no_other_flight_begins() {
        for signal in [Signal::Loss, Signal::CongestionExperienced] {
            let halfback = Scheme::Halfback(Halfback::new(halfback::Params::default()));
            let mut start = Controller::new(halfback, base::Kind::default(), MSS);
            let _ = start.establish(&prior(20));
            assert!(start.clone().on_more(&prior(60), &so_far(20, 5, 20)).is_some());
            start.on_congestion(&Congestion { signal, first_flight_lost: MSS, ..lost(Time::ZERO, MSS) });
            assert_eq!(start.on_more(&prior(60), &so_far(20, 5, 20)), None, "{signal:?}");
        }
    }
}
