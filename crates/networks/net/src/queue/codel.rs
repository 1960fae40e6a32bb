//! Drop at the head, at a rising rate, when the queueing delay exceeded a target for an interval.
//!
//! Source: K. Nichols, V. Jacobson, A. McGregor, J. Iyengar, "Controlled Delay Active Queue
//! Management", RFC 8289, January 2018. The code follows the annotated pseudocode of its section 5,
//! names included.
//!
//! ```text
//!                 above target for an interval: drop
//!          +--------------------------------------------+
//!          |                                            v
//!     Not dropping                                  Dropping --+
//!          ^                                            |  ^   | each drop_next: drop, then
//!          +--------------------------------------------+  +---+ + interval / sqrt(count)
//!             below target, or no more than a packet waits
//! ```
//!
//! # Deviations
//!
//! - An ECN-capable packet is marked instead of dropped, and is then the packet that leaves:
//!   marking removes nothing from the queue, so no second packet is dequeued in its place. The
//!   pseudocode only drops; Linux (`include/net/codel_impl.h`) does it this way.
//! - The pseudocode assumes a monotonic clock and counters that wrap. Here both saturate.
//! - A packet that finds the link idle counts with a queueing delay of zero, without a buffer.

use headstart_units::{Bytes, Span, Time};

use crate::element::{DropReason, Packet, PushResult};
use crate::limit::Limit;
use crate::queue::{DropTail, Dropped};

/// Parameters of CoDel, with the source of each default.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// The acceptable queueing delay. 5 ms: RFC 8289 §4.
    pub target: Span,
    /// Time for which it may be exceeded; about the longest usual RTT. 100 ms: RFC 8289 §4.
    pub interval: Span,
    /// No drop with at most this many bytes in the buffer: one packet, the largest. 1500 bytes.
    pub max_packet: Bytes,
}

impl Default for Params {
    fn default() -> Self {
        Self { target: Span::from_millis(5), interval: Span::from_millis(100), max_packet: Bytes::new(1500) }
    }
}

/// The CoDel queue.
#[derive(Debug)]
pub struct CoDel<P> {
    params: Params,
    buffer: DropTail<P>,
    /// Time at which delays will have exceeded the target for an interval; `None` below it.
    first_above_time: Option<Time>,
    /// Time of the next drop, while dropping.
    drop_next: Time,
    /// Drops since dropping began.
    count: u64,
    /// `count` when dropping last began.
    last_count: u64,
    is_dropping: bool,
}

impl<P> CoDel<P> {
    /// An empty queue with a buffer of `limit`.
    #[must_use]
    pub const fn new(params: Params, limit: Limit) -> Self {
        Self {
            params,
            buffer: DropTail::new(limit),
            first_above_time: None,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
            is_dropping: false,
        }
    }

    pub(crate) fn waiting(&self) -> (u64, Bytes) {
        self.buffer.waiting()
    }
}

impl<P: Packet> CoDel<P> {
    pub(crate) fn enqueue(&mut self, now: Time, packet: P) -> PushResult<P> {
        self.buffer.enqueue(now, packet)
    }

    /// Removes the packet at the head without updating CoDel: for a drop by another rule.
    pub(crate) fn take_head(&mut self) -> Option<P> {
        self.buffer.dequeue().map(|(_, packet)| packet)
    }

    /// A packet that does not wait is below any target, so it always passes.
    pub(crate) fn pass(&mut self, packet: P) -> PushResult<P> {
        self.first_above_time = None;
        self.is_dropping = false;
        PushResult::Passed(packet)
    }

    pub(crate) fn dequeue(&mut self, now: Time, dropped: &mut Dropped<P>) -> Option<P> {
        let (mut packet, mut may_drop) = self.dodequeue(now)?;
        if self.is_dropping {
            self.is_dropping = may_drop;
            while self.is_dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                if packet.is_ecn_capable() {
                    packet.mark_congestion_experienced();
                    self.drop_next = self.control_law(self.drop_next);
                    return Some(packet);
                }
                dropped.push(now, (packet, DropReason::CoDel));
                (packet, may_drop) = self.dodequeue(now)?;
                if may_drop {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.is_dropping = false;
                }
            }
        } else if may_drop {
            self.begin_dropping(now);
            if packet.is_ecn_capable() {
                packet.mark_congestion_experienced();
                return Some(packet);
            }
            dropped.push(now, (packet, DropReason::CoDel));
            (packet, _) = self.dodequeue(now)?;
        }
        Some(packet)
    }

    /// The packet at the head, and true if CoDel allows to drop it.
    fn dodequeue(&mut self, now: Time) -> Option<(P, bool)> {
        let Some((since, packet)) = self.buffer.dequeue() else {
            self.first_above_time = None;
            self.is_dropping = false;
            return None;
        };
        if now.since(since) < self.params.target || self.buffer.waiting().1 <= self.params.max_packet {
            self.first_above_time = None;
            return Some((packet, false));
        }
        let first_above_time = *self.first_above_time.get_or_insert(now + self.params.interval);
        // The time just set lies in the future, unless the interval is zero.
        Some((packet, now >= first_above_time))
    }

    fn begin_dropping(&mut self, now: Time) {
        self.is_dropping = true;
        // After a recent dropping state, begin near the drop rate that controlled the queue then.
        let delta = self.count.saturating_sub(self.last_count);
        let is_recent = now.since(self.drop_next) < self.params.interval * 16;
        self.count = if delta > 1 && is_recent { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.control_law(now);
    }

    /// RFC 8289 §5.6: `t + interval / sqrt(count)`.
    fn control_law(&self, time: Time) -> Time {
        time + over_square_root(self.params.interval, self.count)
    }
}

/// `interval / sqrt(count)` in whole nanoseconds, rounded down: less than one nanosecond short.
///
/// The root of the rounded quotient of squares, rounded again, is the exact value rounded once. No
/// whole number lies strictly between a real number's square root and that of its whole part. Count
/// zero counts as one.
fn over_square_root(interval: Span, count: u64) -> Span {
    let nanos = interval.as_nanos();
    let root = match nanos.checked_mul(nanos) {
        Some(square) => (square / count.max(1)).isqrt(),
        None => (u128::from(nanos) * u128::from(nanos) / u128::from(count.max(1))).isqrt() as u64,
    };
    Span::from_nanos(root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::testing::{Numbered, packet};

    #[test]
    fn the_defaults_are_those_of_the_rfc() {
        let Params { target, interval, max_packet } = Params::default();
        assert_eq!((target, interval), (Span::from_millis(5), Span::from_millis(100)));
        assert_eq!(max_packet, Bytes::new(1500));
    }

    /// `root <= interval / sqrt(count) < root + 1`, all three squared and times `count`.
    #[test]
    fn the_inverse_square_root_is_less_than_a_nanosecond_short() {
        let intervals = [0, 1, 99, 100_000_000, 4_294_967_296, 1_000_000_000_000];
        let counts = (1..2000).chain((11..40).map(|shift| (1 << shift) - 1)).chain([u64::MAX]);
        for count in counts {
            for nanos in intervals {
                let root = u128::from(over_square_root(Span::from_nanos(nanos), count).as_nanos());
                let square = u128::from(nanos) * u128::from(nanos);
                assert!(root * root * u128::from(count) <= square, "{nanos} over root of {count}");
                assert!(square < (root + 1) * (root + 1) * u128::from(count), "{nanos} over root of {count}");
            }
        }
        assert_eq!(over_square_root(Span::MAX, 1), Span::MAX);
    }

    /// A queue with a packet of each millisecond up to 1000, dequeued once per millisecond from 50
    /// on: every packet has waited 50 ms or more. `(milliseconds, number of the dropped packet)`.
    fn drops(ecn_capable: bool) -> (Vec<(u64, u64)>, Vec<u64>) {
        let mut queue = CoDel::new(Params::default(), Limit::NONE);
        let (mut dropped, mut marked) = (vec![], vec![]);
        for ms in 0..1000 {
            let new = Numbered { ecn_capable, ..packet(ms) };
            assert_eq!(queue.enqueue(Time::from_millis(ms), new), PushResult::Accepted);
            if ms < 50 {
                continue;
            }
            let mut ring = Dropped::new();
            let out = queue.dequeue(Time::from_millis(ms), &mut ring).expect("a long queue");
            while let Some((packet, reason)) = ring.pop(Time::NEVER) {
                assert_eq!(reason, DropReason::CoDel);
                dropped.push((ms, packet.number));
            }
            if out.marked {
                marked.push(ms);
            }
        }
        (dropped, marked)
    }

    #[test]
    fn drops_come_at_the_times_of_the_control_law() {
        // Above the target from 50 ms on, so dropping begins at 150 ms. The next drops are 100 ms /
        // sqrt(1), 100 ms / sqrt(2) and so on later, rounded up to the millisecond of the dequeue.
        let (drops, marked) = drops(false);
        let mut expected = vec![150];
        let mut next = 150.0;
        for count in 1..100 {
            next += 100.0 / f64::from(count).sqrt();
            expected.push(f64::ceil(next) as u64);
        }
        expected.retain(|ms| *ms < 1000);
        assert_eq!(drops.iter().map(|(ms, _)| *ms).collect::<Vec<_>>(), expected);
        assert_eq!(drops[..2], [(150, 100), (250, 201)], "at 150 packets 100 and 101 leave the queue");
        assert!(marked.is_empty());
    }

    #[test]
    fn capable_packets_are_marked_at_the_same_times_and_none_is_lost() {
        // Marks do not shorten the queue, and here every delay is above the target.
        let (dropped, marked) = drops(true);
        let times: Vec<u64> = drops(false).0.iter().map(|(ms, _)| *ms).collect();
        assert!(dropped.is_empty());
        assert_eq!(marked, times);
    }

    #[test]
    fn a_short_wait_ends_the_dropping() {
        let mut queue = CoDel::new(Params::default(), Limit::NONE);
        let mut ring = Dropped::new();
        for n in 0..60 {
            assert_eq!(queue.enqueue(Time::ZERO, packet(n)), PushResult::Accepted);
        }
        for ms in [10, 60, 109] {
            assert!(queue.dequeue(Time::from_millis(ms), &mut ring).is_some());
        }
        assert!(ring.is_empty(), "not yet above for an interval");
        let next = queue.dequeue(Time::from_millis(110), &mut ring).map(|packet| packet.number);
        assert_eq!((next, ring.pop(Time::NEVER)), (Some(4), Some((packet(3), DropReason::CoDel))));
        assert!(queue.is_dropping);
        while queue.waiting().0 > 2 {
            assert!(queue.dequeue(Time::from_millis(111), &mut ring).is_some());
        }
        assert!(queue.dequeue(Time::from_millis(111), &mut ring).is_some());
        assert!(!queue.is_dropping, "one packet left behind it is not a queue");
        assert!(ring.is_empty());
    }

    #[test]
    fn a_queue_that_returns_soon_resumes_the_old_drop_rate() {
        // `delta > 1` and `now - drop_next < 16 interval`, of RFC 8289 §5.
        for (drops, pause_ms, count) in
            [(8, 1599, 8), (2, 1599, 2), (1, 1599, 1), (8, 1600, 1), (8, 10_000, 1)]
        {
            let mut queue: CoDel<Numbered> = CoDel::new(Params::default(), Limit::NONE);
            (queue.count, queue.last_count, queue.drop_next) = (2 + drops, 2, Time::from_millis(500));
            queue.begin_dropping(Time::from_millis(500 + pause_ms));
            assert_eq!((queue.count, queue.last_count), (count, count), "{drops} drops, {pause_ms} ms ago");
        }
    }

    #[test]
    fn a_packet_that_is_not_queued_ends_the_dropping() {
        let mut queue: CoDel<Numbered> = CoDel::new(Params::default(), Limit::NONE);
        (queue.is_dropping, queue.first_above_time) = (true, Some(Time::ZERO));
        assert_eq!(queue.pass(packet(0)), PushResult::Passed(packet(0)));
        assert_eq!((queue.is_dropping, queue.first_above_time), (false, None));
    }
}
