//! The actual sending rate, compared with the pacing rate.
//!
//! WiseStart §3.4 detects an application-limited sender by comparing the two. Time in which the
//! window was full does not count, since the path was then the limit. Since the pacing rate
//! changes, it is kept as the time that the bytes would have taken at the rates set when they left.

use headstart_units::{Rate, Ratio, Span, Time};

use crate::event::Sent;

/// The actual sending rate and the pacing rate of a sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendRate {
    began: Option<Time>,
    /// Time that the bytes would have taken at the pacing rates set when they left.
    due: Span,
    /// Time during which the window was full.
    blocked: Span,
    blocked_since: Option<Time>,
}

impl SendRate {
    /// Data left at the pacing rate `pace`; `is_full` if the window has no room for more.
    pub fn on_sent(&mut self, sent: &Sent, pace: Option<Rate>, is_full: bool) {
        self.unblock(sent.now);
        self.began.get_or_insert(sent.now);
        if let Some(pace) = pace {
            self.due += sent.bytes / pace;
        }
        self.blocked_since = is_full.then_some(sent.now);
    }

    /// The window may have opened.
    pub fn on_ack(&mut self, now: Time) {
        self.unblock(now);
    }

    fn unblock(&mut self, now: Time) {
        if let Some(since) = self.blocked_since.take() {
            self.blocked += now.since(since);
        }
    }

    fn elapsed(&self, now: Time) -> Span {
        self.began.map_or(Span::ZERO, |began| now.since(began)).saturating_sub(self.blocked)
    }

    /// True if data left clearly more slowly than the pacing rate.
    #[must_use]
    pub fn is_app_limited(&self, now: Time) -> bool {
        self.due < self.elapsed(now) * LIMITED_SHARE
    }
}

/// Share of the pacing rate below which a sender is limited: timers and bursts slow it slightly.
const LIMITED_SHARE: Ratio = Ratio::new(9, 10);

#[cfg(test)]
mod tests {
    use headstart_units::Bytes;

    use super::*;
    use crate::event::Transmission;

    /// Segments of 1000 bytes at 1 MB/s, one each `spacing` microseconds from `epoch` on.
    fn send(rate: &mut SendRate, epoch: u64, spacing: u64, segments: u64, fills: bool) -> Time {
        let mut now = Time::from_millis(epoch);
        for n in 1..=segments {
            let bytes = Bytes::new(1000);
            let transmission = Transmission::Original;
            let sent = Sent { now, bytes, in_flight: bytes * n, transmission, is_app_limited: false };
            rate.on_sent(&sent, Some(Rate::from_bytes_per_sec(1_000_000)), fills && n == segments);
            now += Span::from_micros(spacing);
        }
        now
    }

    #[test]
    fn sending_below_the_allowance_counts_as_application_limited() {
        for (spacing, expected) in
            [(900, false), (1_000, false), (1_100, false), (1_200, true), (5_000, true)]
        {
            let mut rate = SendRate::default();
            let now = send(&mut rate, 777, spacing, 10, false);
            assert_eq!(rate.is_app_limited(now), expected, "every {spacing} us");
        }
    }

    #[test]
    fn a_sender_that_stops_is_application_limited_unless_its_window_is_full() {
        for (fills, expected) in [(false, true), (true, false)] {
            let mut rate = SendRate::default();
            let now = send(&mut rate, 777, 1_000, 10, fills);
            rate.on_ack(now + Span::from_millis(50));
            assert_eq!(rate.is_app_limited(now + Span::from_millis(50)), expected);
        }
    }
}
