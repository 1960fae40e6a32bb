//! Departure times of paced packets.

use headstart_adapter::sizes::INITIAL_PACKETS;
use headstart_units::{Bytes, Rate, Ratio, Span, Time};

/// s2n-quic lets a packet leave when its departure time is less than this away, and its timers fire
/// as late: so much of the schedule is made up for.
const GRANULARITY: Span = Span::from_millis(1);
/// Pace of a window without a pace of the scheme (RFC 9002 §7.7).
const WINDOWS_IN_A_ROUND: Ratio = Ratio::percent(125);

/// A pace, and the part of its schedule that is made up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    rate: Rate,
    credit: Span,
}

impl Pace {
    /// The pace that a scheme sets.
    pub const fn of_scheme(rate: Rate) -> Self {
        Self { rate, credit: GRANULARITY }
    }

    /// Pace of a window, ten packets of which may leave together.
    pub fn of_window(window: Bytes, smoothed: Span, packet: Bytes) -> Self {
        let rate = ((window / smoothed) * WINDOWS_IN_A_ROUND).max(Rate::from_bytes_per_sec(1));
        Self { rate, credit: packet * (INITIAL_PACKETS - 1) / rate }
    }
}

/// The schedule of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pacer {
    next: Option<Time>,
}

impl Pacer {
    /// A packet of this size left at `pace`.
    pub fn on_sent(&mut self, now: Time, bytes: Bytes, pace: Option<Pace>) {
        self.next = pace.filter(|pace| pace.rate > Rate::ZERO).map(|Pace { rate, credit }| {
            let due = self.next.unwrap_or(now).max(now - credit);
            due + bytes / rate
        });
    }

    /// The time before which the next packet must not leave.
    pub const fn next(&self) -> Option<Time> {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace::of_scheme(Rate::from_mbit_per_sec(12));
    const PACKET: Bytes = Bytes::new(1_500);

    /// Departures, in ms, of packets sent as early as s2n-quic allows, at a clock of 0.1 ms.
    #[test]
    fn packets_that_leave_early_do_not_raise_the_pace() {
        let mut pacer = Pacer::default();
        let mut sent = 0;
        for tick in 0..1_000_u64 {
            let now = Time::from_millis(1_000) + Span::from_micros(100) * tick;
            while pacer.next().is_none_or(|next| next < now + GRANULARITY) {
                pacer.on_sent(now, PACKET, Some(PACE));
                sent += 1;
            }
        }
        assert!((100..=102).contains(&sent), "{sent} packets of 1 ms in 100 ms");
    }

    #[test]
    fn a_pause_earns_no_burst() {
        let mut pacer = Pacer::default();
        pacer.on_sent(Time::from_millis(1_000), PACKET, Some(PACE));
        let now = Time::from_millis(5_000);
        let mut sent = 0;
        while pacer.next().is_none_or(|next| next <= now) {
            pacer.on_sent(now, PACKET, Some(PACE));
            sent += 1;
        }
        assert_eq!(sent, 2, "what a late timer is made up for, and the packet itself");
        pacer.on_sent(now, PACKET, None);
        assert_eq!(pacer.next(), None);
    }

    #[test]
    fn a_window_leaves_in_ten_packets_and_then_1_25_windows_in_a_round_trip() {
        let pace = Pace::of_window(PACKET * 80, Span::from_millis(100), PACKET);
        let mut pacer = Pacer::default();
        pacer.on_sent(Time::from_millis(400), PACKET, Some(pace));
        let (mut sent, now) = (0, Time::from_millis(500));
        while pacer.next().is_none_or(|next| next <= now) {
            pacer.on_sent(now, PACKET, Some(pace));
            sent += 1;
        }
        assert_eq!(sent, 10, "after a pause");
        assert_eq!(pacer.next(), Some(now + Span::from_millis(1)), "a hundred in a round trip");
    }
}
