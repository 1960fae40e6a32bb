//! Timelines for tests, whose rows give the hand-over: to avoidance, to slow start, or to be cut.
//!
//! [`super::timeline`] has the same events; its rows name the phase instead.

use headstart_units::Time;

use super::Startup;
use super::timeline::apply;
use crate::allowance::{Allowance, HandOver, Next};
use crate::event::{Ack, Congestion, Sent, Timeout};

pub use super::timeline::Event;

/// Expected answer of the scheme, in bytes and bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The scheme stays, with this window and no pace of its own.
    Window(u64),
    /// The scheme stays, with this window and pace.
    Paced(u64, u64),
    /// The scheme hands this window over to avoidance.
    HandsOver(u64),
    /// The scheme hands this window over to slow start.
    Grows(u64),
    /// The scheme hands this window over for the base controller to cut.
    Cut(u64),
}

/// Plays rows of (milliseconds, event, answer, reason).
pub fn play(scheme: &mut impl Startup, rows: &[(u64, Event, Expected, &str)]) {
    for &(ms, event, expected, why) in rows {
        let now = Time::from_millis(ms);
        let next = apply(scheme, at(now, event));
        let decision = match (next, scheme.allowance()) {
            (Next::Stay, Allowance { window, pace: None }) => Expected::Window(window.get()),
            (Next::Stay, Allowance { window, pace: Some(pace) }) => {
                Expected::Paced(window.get(), pace.as_bytes_per_sec())
            }
            (Next::HandOver(how), _) if how == HandOver::avoiding(how.window) => {
                Expected::HandsOver(how.window.get())
            }
            (Next::HandOver(how), _) if how == HandOver::growing(how.window) => {
                Expected::Grows(how.window.get())
            }
            (Next::HandOver(how), _) if how == HandOver::to_be_cut(how.window) => {
                Expected::Cut(how.window.get())
            }
            (other, _) => panic!("at {ms} ms: {other:?} is none of the usual answers"),
        };
        assert_eq!(decision, expected, "at {ms} ms, {} phase: {why}", scheme.phase());
    }
}

/// The event at the time of its row.
fn at(now: Time, event: Event) -> Event {
    match event {
        Event::Sent(sent) => Event::Sent(Sent { now, ..sent }),
        Event::Ack(ack) => Event::Ack(Ack { now, ..ack }),
        Event::Congestion(signal) => Event::Congestion(Congestion { now, ..signal }),
        Event::Timeout(timeout) => Event::Timeout(Timeout { now, ..timeout }),
    }
}
