//! Plays a timeline to a scheme: at this time this happens, then it says that. For tests.

use headstart_units::Time;

use super::Startup;
use crate::allowance::{Allowance, HandOver, Next};
use crate::event::{Ack, Congestion, Timeout};

/// What happens. The time inside is overwritten by that of the row.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    Ack(Ack),
    Congestion(Congestion),
    Timeout(Timeout),
}

/// What the scheme should say to it; bytes and bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// It stays, with this window and no pace of its own.
    Window(u64),
    /// It stays, with this window and pace.
    Paced(u64, u64),
    /// It hands this window over to avoidance.
    HandsOver(u64),
    /// It hands this window over to slow start.
    Grows(u64),
    /// It hands this window over for the base controller to cut.
    Cut(u64),
}

/// Plays rows of (milliseconds, event, answer, reason).
pub fn play(scheme: &mut impl Startup, rows: &[(u64, Event, Says, &str)]) {
    for &(ms, event, expected, why) in rows {
        let now = Time::from_millis(ms);
        let next = match event {
            Event::Ack(ack) => scheme.on_ack(&Ack { now, ..ack }),
            Event::Congestion(signal) => scheme.on_congestion(&Congestion { now, ..signal }),
            Event::Timeout(timeout) => scheme.on_timeout(&Timeout { now, ..timeout }),
        };
        let said = match (next, scheme.allowance()) {
            (Next::Stay, Allowance { window, pace: None }) => Says::Window(window.get()),
            (Next::Stay, Allowance { window, pace: Some(pace) }) => {
                Says::Paced(window.get(), pace.as_bytes_per_sec())
            }
            (Next::HandOver(how), _) if how == HandOver::avoiding(how.window) => {
                Says::HandsOver(how.window.get())
            }
            (Next::HandOver(how), _) if how == HandOver::growing(how.window) => Says::Grows(how.window.get()),
            (Next::HandOver(how), _) if how == HandOver::to_be_cut(how.window) => Says::Cut(how.window.get()),
            (other, _) => panic!("at {ms} ms: {other:?} is none of the usual answers"),
        };
        assert_eq!(said, expected, "at {ms} ms, {} phase: {why}", scheme.phase());
    }
}
