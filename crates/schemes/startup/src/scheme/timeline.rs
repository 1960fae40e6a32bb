//! Timelines for tests: events, the allowance after each, and the reason.
//!
//! Times are milliseconds; by default the RTT is 100 ms, and segments have 1000 bytes.

use headstart_units::{Bytes, Rate, Span, Time};

use super::Startup;
use crate::allowance::{HandOver, Next};
use crate::base::testing::{acked, lost, timed_out};
use crate::base::{self, Base};
use crate::event::{Ack, Congestion, Sent, Signal, Timeout, Transmission};
use crate::path::Rtt;
use crate::prior::Prior;

pub use crate::base::testing::MSS;

/// An event of a scheme.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    Sent(Sent),
    Ack(Ack),
    Congestion(Congestion),
    Timeout(Timeout),
}

/// An original segment was sent; `in_flight` segments are in flight with it.
pub fn sent(at: u64, in_flight: u64) -> Event {
    Event::Sent(Sent {
        now: Time::from_millis(at),
        bytes: MSS,
        in_flight: MSS * in_flight,
        transmission: Transmission::Original,
        is_app_limited: false,
    })
}

/// `segments` were acknowledged, the newest left at `sent_at`; `in_flight` remain in flight.
pub fn ack(at: u64, sent_at: u64, segments: u64, in_flight: u64) -> Event {
    let rtt = Span::from_millis(at - sent_at);
    Event::Ack(Ack {
        newest_sent_at: Time::from_millis(sent_at),
        rtt_sample: Some(rtt),
        rtt: Rtt { latest: rtt, smoothed: rtt, variation: Span::ZERO, min: rtt },
        in_flight: MSS * in_flight,
        ..acked(Time::from_millis(at), MSS * segments)
    })
}

/// `segments` were declared lost; `in_flight` remain in flight.
pub fn loss(at: u64, segments: u64, in_flight: u64) -> Event {
    Event::Congestion(Congestion {
        prior_in_flight: MSS * (in_flight + segments),
        in_flight: MSS * in_flight,
        ..lost(Time::from_millis(at), MSS * segments)
    })
}

/// A packet arrived with a CE mark.
pub fn mark(at: u64, in_flight: u64) -> Event {
    let Event::Congestion(loss) = loss(at, 0, in_flight) else { unreachable!("a loss is congestion") };
    Event::Congestion(Congestion { signal: Signal::CongestionExperienced, ..loss })
}

pub fn timeout(at: u64) -> Event {
    Event::Timeout(timed_out(Time::from_millis(at)))
}

/// Event, phase (`hand over` ends the scheme), window, pace per second (0: none) in bytes, and why.
pub type Step = (Event, &'static str, u64, u64, &'static str);

/// Feeds `scheme` all events in order and compares; returns the hand-over if there was one.
pub fn play(scheme: &mut impl Startup, steps: &[Step]) -> Option<HandOver> {
    let mut handed_over = None;
    for (row, &(event, phase, window, pace, why)) in steps.iter().enumerate() {
        let next = apply(scheme, event);
        let allowance = scheme.allowance();
        let found = match next {
            Next::Stay => (scheme.phase(), allowance.window.get()),
            Next::HandOver(how) => {
                handed_over = Some(how);
                ("hand over", how.window.get())
            }
        };
        assert_eq!(found, (phase, window), "row {row}: {why}");
        if handed_over.is_none() {
            let found = allowance.pace.map_or(0, |rate| rate.as_bytes_per_sec());
            assert_eq!(found, pace, "row {row}, pace: {why}");
        }
    }
    handed_over
}

/// Feeds the scheme one event; returns its decision.
pub fn apply(scheme: &mut impl Startup, event: Event) -> Next {
    match event {
        Event::Sent(sent) => {
            scheme.on_sent(&sent);
            Next::Stay
        }
        Event::Ack(ack) => scheme.on_ack(&ack),
        Event::Congestion(signal) => scheme.on_congestion(&signal),
        Event::Timeout(timeout) => scheme.on_timeout(&timeout),
    }
}

/// Begins from each prior and applies all events, extreme amounts included: nothing may panic, the
/// window stays at `minimum` segments or more, and the pace stays above zero.
pub fn withstand_extremes<S: Startup>(priors: &[Prior], minimum: u64, new: impl Fn() -> S) {
    for prior in priors {
        let mut scheme = new();
        let plan = scheme.establish(prior);
        let floor = prior.mss * minimum;
        assert!(plan.flight >= floor && plan.allowance.window >= floor, "{plan:?} of {prior:?}");
        // Only with the longest handshake RTT may a pace round down to zero.
        let moves = |pace: Option<Rate>| prior.handshake_rtt == Span::MAX || pace != Some(Rate::ZERO);
        assert!(moves(plan.allowance.pace), "{plan:?} of {prior:?}");
        let huge = Bytes::new(1 << 40);
        for now in [Time::ZERO, prior.now, prior.now + Span::from_secs(100), Time::NEVER] {
            for bytes in [Bytes::new(1), prior.mss, huge] {
                let sent = Sent {
                    now,
                    bytes,
                    in_flight: bytes,
                    transmission: Transmission::Original,
                    is_app_limited: false,
                };
                scheme.on_sent(&sent);
                let rtt = Rtt { latest: Span::MAX, smoothed: Span::from_nanos(1), ..Rtt::default() };
                let loss = Congestion { delivered: huge, ..lost(now, bytes) };
                let timeout = timed_out(now);
                for next in [
                    scheme.on_ack(&Ack { rtt, ..acked(now, bytes) }),
                    scheme.on_ack(&Ack { rtt: Rtt::default(), rtt_sample: None, ..acked(now, bytes) }),
                    scheme.on_congestion(&loss),
                    scheme.on_ack(&acked(now, bytes)),
                    scheme.on_timeout(&timeout),
                ] {
                    assert!(moves(scheme.allowance().pace), "{scheme:?} of {prior:?}");
                    match next {
                        Next::Stay => {}
                        Next::HandOver(how) => {
                            assert!(how.window >= floor, "{how:?} of {prior:?}");
                            inherit(&how, prior.mss, now);
                        }
                    }
                }
            }
        }
    }
}

/// Both base controllers accept the state that they inherit.
fn inherit(how: &HandOver, mss: Bytes, now: Time) {
    for kind in [base::Kind::Reno, base::Kind::Cubic] {
        let mut base = Base::new(kind, mss);
        base.take_over(how);
        for _ in 0..3 {
            base.on_congestion(&lost(now, mss));
            base.on_ack(&acked(now + Span::from_secs(1), mss));
            assert!(base.window() >= mss, "{how:?}");
        }
        base.on_timeout(&timed_out(now));
        base.on_ack(&acked(now + Span::from_secs(2), mss));
        assert!(base.window() >= mss, "{how:?}");
    }
}
