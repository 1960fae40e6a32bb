//! RCP: a router computes one rate for all flows and stamps it on every packet.
//!
//! Sources: N. Dukkipati, "Rate Control Protocol (RCP): Congestion control to make flows complete
//! quickly", PhD thesis, Stanford 2007 (RCP below); N. Dukkipati, M. Kobayashi, R. Zhang-Shen, N.
//! McKeown, "Processor Sharing Flows in the Internet", IWQoS 2005. Once in each interval T:
//!
//! ```text
//!                            T                        q(t)
//!                           --- ( a (C - y(t)) - b ------ )
//!                           d0                       d0
//!  R(t) = R(t - T) [ 1 +  ------------------------------- ]
//!                                       C
//! ```
//!
//! C is the link's capacity, y the arrival rate in the interval, q the queue, d0 the mean of the
//! RTTs that packets carry. A packet leaves with the smallest rate of all routers; the receiver
//! echoes it and the sender obeys.
//!
//! # Deviations
//!
//! - Sources differ in a and b. The authors' scripts for their paper on flow completion times have
//!   0.1 and 1. Other scripts for their simulator have 0.4 and 1, or 0.4 and 0.4. The default here
//!   is 0.4 and 0.226 of XCP (D. Katabi, M. Handley, C. Rohrs, SIGCOMM 2002; b = a^2 sqrt 2), whose
//!   equation for the aggregate has the same two terms. With 0.1 and 1 new flows meet a shorter
//!   queue, and losses above half load are fewer.
//! - The first flow meets an idle link, at which R has risen to C: R begins there.
//! - Intervals without a packet are computed when the next one arrives, with the same result.
//! - The queue is the data accepted and not yet sent at the end of the interval.

use headstart_units::{Bytes, Rate, Ratio, Span, Time};

/// Parameters of a router, with the source of each default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// C: the link's capacity.
    pub capacity: Rate,
    /// The gain of the spare capacity. 0.4: XCP's.
    pub alpha: Ratio,
    /// The gain of the queue. 0.226: XCP's.
    pub beta: Ratio,
    /// Upper bound of T, which else is d0. 10 ms: RCP.
    pub longest_interval: Span,
    /// d0 before any packet carried an RTT. 100 ms: ours.
    pub first_rtt: Span,
    /// Reciprocal of the weight of a packet's RTT in d0. 50: the authors' simulator.
    pub rtt_gain: u64,
    /// Lower bound of R. One segment a second: the authors' simulator.
    pub least: Rate,
}

impl Params {
    /// The defaults for a link of this capacity.
    #[must_use]
    pub const fn new(capacity: Rate) -> Self {
        Self {
            capacity,
            alpha: Ratio::new(2, 5),
            beta: Ratio::new(113, 500),
            longest_interval: Span::from_millis(10),
            first_rtt: Span::from_millis(100),
            rtt_gain: 50,
            least: Rate::from_bytes_per_sec(1_500),
        }
    }
}

/// A router's RCP side, for one output link.
#[derive(Clone, Copy, Debug)]
pub struct FairRate {
    params: Params,
    /// R: the stamped rate.
    rate: Rate,
    /// d0: the mean RTT.
    rtt: Span,
    /// Bytes that arrived in the present interval.
    arrived: Bytes,
    began_at: Time,
    /// Time at which the link will have sent all accepted data.
    free_at: Time,
}

impl FairRate {
    /// A router at an idle link.
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            rate: params.capacity,
            rtt: params.first_rtt.max(Span::from_nanos(1)),
            arrived: Bytes::ZERO,
            began_at: Time::ZERO,
            free_at: Time::ZERO,
        }
    }

    /// A packet arrives, accepted by the link or not; `rtt` is what it carries, or zero. Returns R.
    pub fn on_arrival(&mut self, now: Time, size: Bytes, rtt: Span) -> Rate {
        self.advance(now);
        self.arrived += size;
        if !rtt.is_zero() {
            let gain = self.params.rtt_gain.max(1);
            self.rtt = self.rtt - self.rtt / gain + rtt / gain;
        }
        self.rate
    }

    /// The link accepted a packet.
    #[inline]
    pub fn on_taken(&mut self, now: Time, size: Bytes) {
        self.free_at = self.free_at.max(now) + size / self.params.capacity;
    }

    /// The fair rate R, and the mean RTT d0.
    #[must_use]
    pub const fn rate(&self) -> (Rate, Span) {
        (self.rate, self.rtt)
    }

    fn advance(&mut self, now: Time) {
        loop {
            let interval = self.rtt.min(self.params.longest_interval).max(Span::from_nanos(1));
            let ends_at = self.began_at + interval;
            if ends_at > now {
                return;
            }
            let queue = self.params.capacity * self.free_at.since(ends_at);
            self.update(interval, queue);
            self.began_at = ends_at;
            if queue.is_zero() && self.rate == self.params.capacity {
                // An idle link's rate does not change: advance to the present interval in one step.
                self.began_at += interval * (now.since(ends_at).as_nanos() / interval.as_nanos());
            }
        }
    }

    /// The rate update equation, multiplied out to a single division.
    fn update(&mut self, interval: Span, queue: Bytes) {
        let Params { capacity, alpha, beta, least, .. } = self.params;
        let wide = |count: u64| i128::from(count.min(1 << 62));
        let arrived = wide((self.arrived / interval).as_bytes_per_sec());
        let capacity_wide = wide(capacity.as_bytes_per_sec());
        let spare = capacity_wide - arrived;
        let spare = if spare < 0 {
            -wide(alpha.of(spare.unsigned_abs() as u64))
        } else {
            wide(alpha.of(spare as u64))
        };
        let drain = wide(beta.of((queue / self.rtt).as_bytes_per_sec()));
        let (t, d0) = (wide(interval.as_nanos()), wide(self.rtt.as_nanos()));
        let rate = wide(self.rate.as_bytes_per_sec());
        // rate x t x difference: 2^40 x 2^24 x 2^41 at a terabyte per second.
        let change = (rate * t).saturating_mul(spare - drain) / (d0 * capacity_wide).max(1);
        // Integer rounding must not stall R below the capacity.
        let step = if change == 0 && spare > drain { 1 } else { change };
        let most = capacity_wide;
        self.rate = Rate::from_bytes_per_sec(
            (rate + step).clamp(wide(least.as_bytes_per_sec()).min(most), most) as u64,
        );
        self.arrived = Bytes::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CAPACITY: Rate = Rate::from_mbit_per_sec(80);
    const SEGMENT: Bytes = Bytes::new(1000);

    /// `flows` senders of 1000-byte packets that follow the stamp after one RTT of 50 ms, for
    /// `millis`. Returns least and most R in kB/s and queue in bytes of the last 100 ms.
    fn obeyed_by(flows: u64, millis: u64) -> ((u64, u64), (u64, u64)) {
        let rtt = Span::from_millis(50);
        let mut router = FairRate::new(Params::new(CAPACITY));
        // One tick of 100 us: the rate that was stamped an RTT ago decides how much arrives.
        let mut stamped =
            alloc::collections::VecDeque::from(alloc::vec![CAPACITY * Ratio::new(1, flows as u32); 500]);
        // In bytes x 10^9.
        let (mut credit, mut rates, mut queues) = (0, (u64::MAX, 0), (u64::MAX, 0));
        for tick in 0..millis * 10 {
            let now = Time::from_nanos(tick * 100_000);
            let rate = stamped.pop_front().expect("an RTT's worth");
            credit += rate.as_bytes_per_sec() * 100_000 * flows;
            while credit >= SEGMENT.get() * 1_000_000_000 {
                credit -= SEGMENT.get() * 1_000_000_000;
                let _ = router.on_arrival(now, SEGMENT, rtt);
                router.on_taken(now, SEGMENT);
            }
            let (rate, _) = router.rate();
            stamped.push_back(rate);
            if tick >= (millis - 100) * 10 {
                let kilo = rate.as_bytes_per_sec() / 1000;
                rates = (rates.0.min(kilo), rates.1.max(kilo));
                let queue = (CAPACITY * router.free_at.since(now)).get();
                queues = (queues.0.min(queue), queues.1.max(queue));
            }
        }
        (rates, queues)
    }

    #[test]
    fn n_obedient_flows_share_the_link_and_leave_no_queue() {
        for flows in [1, 2, 10, 40] {
            let ((least, most), (_, queue)) = obeyed_by(flows, 5_000);
            let fair = 10_000 / flows;
            assert!(
                least * 100 >= fair * 95 && most * 100 <= fair * 105,
                "{flows}: {least} to {most}, not {fair}"
            );
            assert!(queue < 50_000, "{flows}: {queue} bytes wait, a tenth of the bandwidth-delay product");
        }
    }

    /// One interval by hand: C = 10 MB/s, T = 10 ms, d0 = 100 ms, half of C arrived, no queue:
    /// R (1 + 0.1 x 0.4 x 0.5) = 1.02 R.
    #[test]
    fn the_equation_by_hand() {
        let mut router = FairRate::new(Params::new(CAPACITY));
        router.rate = Rate::from_bytes_per_sec(1_000_000);
        let _ = router.on_arrival(Time::ZERO, Bytes::new(50_000), Span::ZERO);
        let rate = router.on_arrival(Time::from_millis(10), Bytes::ZERO, Span::ZERO);
        assert_eq!(rate.as_bytes_per_sec(), 1_020_000);
        // Twice the capacity arrives and 200 kB are queued at the end: y = 2 C, q/d0 = 0.2 C: R (1
        // - 0.1 x (0.4 + 0.226 x 0.1)): half of the 200 kB are sent in the interval.
        let _ = router.on_arrival(Time::from_millis(10), Bytes::new(200_000), Span::ZERO);
        router.on_taken(Time::from_millis(10), Bytes::new(200_000));
        let rate = router.on_arrival(Time::from_millis(20), Bytes::ZERO, Span::ZERO);
        assert_eq!(rate.as_bytes_per_sec(), 1_020_000 - 1_020_000 * 4226 / 100_000);
    }

    #[test]
    fn an_idle_link_offers_all_of_itself() {
        let mut router = FairRate::new(Params::new(CAPACITY));
        router.rate = Rate::from_bytes_per_sec(1_500);
        let rate = router.on_arrival(Time::from_millis(60_000), SEGMENT, Span::ZERO);
        assert_eq!(rate, CAPACITY);
    }

    proptest! {
        /// For any arrivals R stays between its bounds, and d0 between the RTTs that packets carry.
        #[test]
        fn the_rate_stays_within_its_bounds(
            packets in proptest::collection::vec((0_u64..100_000_000, 0_u64..2_000_000, 0_u64..3_000), 1..200),
        ) {
            let params = Params::new(CAPACITY);
            let mut router = FairRate::new(params);
            let mut now = Time::ZERO;
            for (gap, size, rtt) in packets {
                now += Span::from_nanos(gap);
                let rate = router.on_arrival(now, Bytes::new(size), Span::from_millis(rtt));
                router.on_taken(now, Bytes::new(size));
                prop_assert!(rate >= params.least && rate <= params.capacity);
                prop_assert!(router.rate().1 <= Span::from_millis(3_000));
            }
        }
    }
}
