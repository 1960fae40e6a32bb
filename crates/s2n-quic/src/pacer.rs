//! Departure times of paced packets.

use headstart_units::{Bytes, Rate, Span, Time};

/// s2n-quic lets a packet leave when its departure time is less than this away, and its timers fire
/// as late: so much of the schedule is made up for.
const GRANULARITY: Span = Span::from_millis(1);

/// The schedule of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pacer {
    next: Option<Time>,
}

impl Pacer {
    /// A packet left, at that pace.
    pub fn on_sent(&mut self, now: Time, bytes: Bytes, pace: Option<Rate>) {
        self.next = pace.filter(|pace| *pace > Rate::ZERO).map(|pace| {
            let due = self.next.unwrap_or(now).max(now - GRANULARITY);
            due + bytes / pace
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

    const PACE: Rate = Rate::from_mbit_per_sec(12);
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
}
