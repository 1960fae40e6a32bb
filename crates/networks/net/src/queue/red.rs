//! Drop at the tail at random, the more often the longer the average queue.
//!
//! Source (FJ93 below): S. Floyd, V. Jacobson, "Random Early Detection Gateways for Congestion
//! Avoidance", IEEE/ACM Transactions on Networking 1(4), August 1993; the algorithm is its Figure
//! 2. Gentle mode: S. Floyd, "Recommendation on using the gentle_ variant of RED", March 2000.
//!
//! ```text
//!   probability
//!      1 |                          .--------   from here every packet is dropped
//!        |                      . '
//!        |                  . '
//!  max_p |              . '  (gentle; else 1 from max_th on)
//!        |          . '
//!      0 +--------'---------------------------- average queue
//!              min_th   max_th    2 max_th
//! ```
//!
//! # Deviations
//!
//! - Queue length is counted in packets, the packet being sent not included; FJ93 leaves both open.
//! - The weight is a power of two, as FJ93 proposes for an efficient implementation.
//! - An ECN-capable packet is marked instead of dropped while the probability is below one; at one
//!   it is dropped (as ns-2 and ns-3 do by default).
//! - The queue is idle from a dequeue of the empty queue until a packet is accepted. FJ93 starts
//!   when the queue becomes empty, when a packet may still be in transmission. Idle time that has
//!   shrunk the average once is not counted again if the packet that ended it is dropped.
//! - A packet dropped because the buffer is full restarts the count, as any drop; FJ93 has none.

use headstart_units::{Bytes, Packets, Rate, Ratio, Span, Time};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::element::{DropReason, Packet, PushResult};
use crate::limit::Limit;
use crate::queue::DropTail;

/// Parameters of RED, with the source of each default.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// Average queue below which no packet is dropped (FJ93's min_th). 5 packets: FJ93.
    pub min_threshold: Packets,
    /// Average queue from which on the probability is `max_probability` and more (FJ93's max_th).
    /// 15 packets: FJ93.
    pub max_threshold: Packets,
    /// The drop probability just below `max_threshold` (FJ93's max_p). 1/50: FJ93.
    pub max_probability: Ratio,
    /// The weight of the newest queue length is 2^-`weight_shift` (FJ93's w_q); more than 32 counts
    /// as 32. 9, as 2^-9 is close to the 0.002 of FJ93.
    pub weight_shift: u32,
    /// Gentle mode: the probability rises to one between `max_threshold` and its double, instead of
    /// jumping. On: Floyd's recommendation of 2000.
    pub is_gentle: bool,
    /// Transmission time of a small packet (FJ93's s): the average decays by one step for each such
    /// time of idleness. A packet of 500 bytes: ns-2's default.
    pub packet_time: Span,
}

impl Params {
    /// The defaults for a link of `rate`.
    #[must_use]
    pub fn for_rate(rate: Rate) -> Self {
        Self {
            min_threshold: Packets::new(5),
            max_threshold: Packets::new(15),
            max_probability: Ratio::new(1, 50),
            weight_shift: 9,
            is_gentle: true,
            packet_time: Bytes::new(500) / rate,
        }
    }
}

/// One, in the 32-bit fixed point of averages and probabilities.
const ONE: u64 = 1 << 32;

/// The RED queue.
#[derive(Debug)]
pub struct Red<P> {
    params: Params,
    buffer: DropTail<P>,
    average: Average,
    /// Beginning of the link's idle time.
    idle_since: Option<Time>,
    /// Packets since the last drop or mark; `None` below the lower threshold (FJ93's count of -1).
    count: Option<u64>,
    source: Xoshiro256PlusPlus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    Accept,
    Mark,
    Drop,
}

impl<P> Red<P> {
    /// An empty queue with a buffer of `limit`; drops are drawn from `seed`.
    #[must_use]
    pub fn new(params: Params, limit: Limit, seed: u64) -> Self {
        Self {
            params,
            buffer: DropTail::new(limit),
            average: Average::new(params.weight_shift),
            idle_since: Some(Time::ZERO),
            count: None,
            source: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    pub(crate) fn waiting(&self) -> (u64, Bytes) {
        self.buffer.waiting()
    }

    fn update_average(&mut self, now: Time) {
        let Some(since) = self.idle_since else {
            return self.average.update(self.buffer.waiting().0);
        };
        let packet_time = self.params.packet_time.as_nanos().max(1);
        let missed = now.since(since).as_nanos() / packet_time;
        self.average.decay(missed);
        self.idle_since = Some(since + Span::from_nanos(missed * packet_time));
    }

    /// FJ93's p_b: the probability for this average, before drops are spread out.
    fn base_probability(&self) -> u64 {
        let Params { min_threshold, max_threshold, max_probability, is_gentle, .. } = self.params;
        let average = self.average.fixed;
        let [low, high, twice] =
            [min_threshold.get(), max_threshold.get(), max_threshold.get().saturating_mul(2)]
                .map(|packets| packets.saturating_mul(ONE));
        let top = max_probability.of(ONE).min(ONE);
        if average < low {
            0
        } else if average < high {
            share(top, average - low, high - low)
        } else if is_gentle && average < twice {
            top + share(ONE - top, average - high, high)
        } else {
            ONE
        }
    }

    fn decide(&mut self, is_ecn_capable: bool) -> Decision {
        let base = self.base_probability();
        if self.average.fixed < self.params.min_threshold.get().saturating_mul(ONE) {
            self.count = None;
            return Decision::Accept;
        }
        if base >= ONE {
            self.count = Some(0);
            return Decision::Drop;
        }
        let count = self.count.map_or(0, |count| count.saturating_add(1));
        self.count = Some(count);
        // FJ93: p_a = p_b / (1 - count p_b), so that the gaps between drops are spread evenly.
        let rest = ONE.saturating_sub(base.saturating_mul(count));
        let draw = self.source.next_u64() >> 32;
        let is_hit = draw < share(ONE, base, rest.max(base).max(1));
        if !is_hit {
            return Decision::Accept;
        }
        self.count = Some(0);
        if is_ecn_capable { Decision::Mark } else { Decision::Drop }
    }
}

impl<P: Packet> Red<P> {
    pub(crate) fn enqueue(&mut self, now: Time, packet: P) -> PushResult<P> {
        let has_room = self.buffer.admits(packet.size());
        match self.filter(now, packet, has_room) {
            PushResult::Passed(packet) => self.buffer.enqueue(now, packet),
            fate => fate,
        }
    }

    pub(crate) fn pass(&mut self, now: Time, packet: P) -> PushResult<P> {
        self.filter(now, packet, true)
    }

    pub(crate) fn dequeue(&mut self, now: Time) -> Option<P> {
        let next = self.buffer.dequeue();
        if next.is_none() {
            self.idle_since.get_or_insert(now);
        }
        next.map(|(_, packet)| packet)
    }

    /// Passes, marks or drops the packet.
    fn filter(&mut self, now: Time, mut packet: P, has_room: bool) -> PushResult<P> {
        self.update_average(now);
        let verdict = self.decide(packet.is_ecn_capable());
        if verdict == Decision::Drop {
            return PushResult::Dropped(packet, DropReason::Red);
        }
        if !has_room {
            self.count = self.count.map(|_| 0);
            return PushResult::Dropped(packet, DropReason::QueueFull);
        }
        if verdict == Decision::Mark {
            packet.mark_congestion_experienced();
        }
        self.idle_since = None;
        PushResult::Passed(packet)
    }
}

/// `whole * part / parts`, rounded down; `parts` is not zero.
fn share(whole: u64, part: u64, parts: u64) -> u64 {
    (u128::from(whole) * u128::from(part) / u128::from(parts)) as u64
}

/// FJ93's avg: the exponentially weighted queue length, in packets with 32 binary places.
#[derive(Clone, Copy, Debug)]
struct Average {
    fixed: u64,
    shift: u32,
}

impl Average {
    const fn new(shift: u32) -> Self {
        Self { fixed: 0, shift: if shift > 32 { 32 } else { shift } }
    }

    /// A packet arrives at a queue of `packets`: `avg += w_q (q - avg)`. Rounded towards the old
    /// average, so that each update is short by less than 2^-32 packets.
    fn update(&mut self, packets: u64) {
        let target = packets.min(u64::from(u32::MAX)) * ONE;
        if target >= self.fixed {
            self.fixed += (target - self.fixed) >> self.shift;
        } else {
            self.fixed -= (self.fixed - target) >> self.shift;
        }
    }

    /// `steps` small packets could have passed: `avg *= (1 - w_q)^steps`, squaring with 63 places.
    fn decay(&mut self, mut steps: u64) {
        const UNIT: u64 = 1 << 63;
        let times = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 63) as u64;
        let mut power = UNIT - (UNIT >> self.shift);
        while steps > 0 && self.fixed > 0 {
            if steps & 1 == 1 {
                self.fixed = times(self.fixed, power);
            }
            power = times(power, power);
            steps >>= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::testing::{Numbered, packet};

    fn red(limit: Limit) -> Red<Numbered> {
        Red::new(Params::for_rate(Rate::from_mbit_per_sec(12)), limit, 1)
    }

    fn with_average(tenths: u64) -> Red<Numbered> {
        let mut queue = red(Limit::NONE);
        queue.average.fixed = tenths * ONE / 10;
        queue
    }

    #[test]
    fn the_defaults_are_those_of_the_paper() {
        let params = Params::for_rate(Rate::from_mbit_per_sec(12));
        assert_eq!((params.min_threshold, params.max_threshold), (Packets::new(5), Packets::new(15)));
        assert_eq!(params.max_probability, Ratio::percent(2));
        assert_eq!(params.weight_shift, 9);
        assert_eq!(params.packet_time, Span::from_nanos(333_334));
    }

    #[test]
    fn the_probability_is_that_of_the_figure() {
        for (tenths, gentle, abrupt) in [
            (0, 0.0, 0.0),
            (49, 0.0, 0.0),
            (50, 0.0, 0.0),
            (100, 0.01, 0.01),
            (149, 0.0198, 0.0198),
            (150, 0.02, 1.0),
            (225, 0.51, 1.0),
            (300, 1.0, 1.0),
            (5000, 1.0, 1.0),
        ] {
            for (is_gentle, expected) in [(true, gentle), (false, abrupt)] {
                let mut queue = with_average(tenths);
                queue.params.is_gentle = is_gentle;
                let found = queue.base_probability() as f64 / ONE as f64;
                assert!((found - expected).abs() < 1e-8, "{tenths} tenths: {found}, expected {expected}");
            }
        }
    }

    #[test]
    fn the_fixed_point_average_stays_close_to_the_real_one() {
        let mut average = Average::new(9);
        let mut real = 0.0;
        for n in 0..100_000_u64 {
            let queue = n * 7919 % 50;
            average.update(queue);
            real += (queue as f64 - real) / 512.0;
            if n % 1000 == 999 {
                average.decay(n % 77);
                real *= f64::powi(1.0 - 1.0 / 512.0, (n % 77) as i32);
            }
            let found = average.fixed as f64 / ONE as f64;
            // 2^-32 per update, remembered for 2^9 updates.
            assert!((found - real).abs() < f64::powi(2.0, -23), "{n}: {found}, {real}");
        }
    }

    #[test]
    fn a_long_idle_time_empties_the_average() {
        let mut queue = with_average(200);
        assert_eq!(queue.pass(Time::from_millis(1_000_000), packet(0)), PushResult::Passed(packet(0)));
        assert_eq!(queue.average.fixed, 0);
    }

    /// With the average held at 10 packets p_b is 1/100. FJ93 counts a packet before the decision,
    /// so the gaps between drops are whole numbers from 1 to 99, each equally likely.
    #[test]
    fn gaps_between_drops_are_spread_evenly() {
        let mut queue = with_average(100);
        let mut last = 0;
        let mut gaps = vec![];
        for n in 1..500_000_u64 {
            if queue.decide(false) == Decision::Drop {
                gaps.push(n - last);
                last = n;
            }
        }
        gaps.remove(0);
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
        assert!((49.5..50.5).contains(&mean), "{mean}, 50 expected");
        assert!(gaps.iter().max() <= Some(&100), "{:?}", gaps.iter().max());
        let short = gaps.iter().filter(|gap| **gap <= 25).count() as f64 / gaps.len() as f64;
        assert!((0.23..0.27).contains(&short), "{short} of the gaps are 25 or less, a quarter expected");
    }

    #[test]
    fn capable_packets_are_marked_until_every_packet_is_hit() {
        for (tenths, marked) in [(299, true), (300, false)] {
            let mut queue = with_average(tenths);
            queue.count = Some(1_000_000);
            assert_eq!(queue.decide(true), if marked { Decision::Mark } else { Decision::Drop });
            queue.count = Some(1_000_000);
            assert_eq!(queue.decide(false), Decision::Drop);
        }
    }

    #[test]
    fn a_full_buffer_drops_at_any_average() {
        let mut queue = red(Limit::packets(Packets::new(1)));
        assert_eq!(queue.enqueue(Time::ZERO, packet(0)), PushResult::Accepted);
        assert_eq!(
            queue.enqueue(Time::ZERO, packet(1)),
            PushResult::Dropped(packet(1), DropReason::QueueFull)
        );
        assert_eq!(queue.dequeue(Time::ZERO), Some(packet(0)));
        assert_eq!(queue.enqueue(Time::ZERO, packet(2)), PushResult::Accepted);
    }

    #[test]
    fn a_full_buffer_restarts_the_count() {
        let mut queue = with_average(100);
        queue.buffer = DropTail::new(Limit::packets(Packets::new(0)));
        queue.count = Some(10);
        assert_eq!(
            queue.enqueue(Time::ZERO, packet(0)),
            PushResult::Dropped(packet(0), DropReason::QueueFull)
        );
        assert_eq!(queue.count, Some(0));
    }

    /// 334 microseconds for each small packet: 299 of them in 100 ms.
    #[test]
    fn the_average_shrinks_with_time_only_while_the_link_is_idle() {
        let idle = |queue: &mut Red<Numbered>| {
            queue.update_average(Time::from_millis(100));
            queue.average.fixed as f64 / ONE as f64
        };
        let mut queue = with_average(40);
        assert_eq!(queue.pass(Time::ZERO, packet(0)), PushResult::Passed(packet(0)));
        let one_step = 4.0 * (511.0 / 512.0);
        assert!((idle(&mut queue) - one_step).abs() < 1e-6, "busy: one arrival, one step");
        assert_eq!(queue.dequeue(Time::ZERO), None, "the link asks in vain");
        assert_eq!(queue.dequeue(Time::from_millis(50)), None, "and again, still idle since the first time");
        let steps = one_step * f64::powi(511.0 / 512.0, 299);
        assert!((idle(&mut queue) - steps).abs() < 1e-6, "idle: one step for each small packet");
    }

    #[test]
    fn idle_time_is_not_counted_twice() {
        let mut queue = with_average(400);
        let at = Time::from_millis(10);
        assert_eq!(queue.pass(at, packet(0)), PushResult::Dropped(packet(0), DropReason::Red));
        let average = queue.average.fixed;
        assert_eq!(queue.pass(at, packet(1)), PushResult::Dropped(packet(1), DropReason::Red));
        assert_eq!(queue.average.fixed, average);
    }
}
