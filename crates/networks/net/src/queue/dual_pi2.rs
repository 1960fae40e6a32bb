//! Two queues before one link: a shallow one for L4S traffic, a deeper one for Classic traffic. One
//! probability couples them, so that flows in either get about the same rate.
//!
//! Source: K. De Schepper, B. Briscoe, G. White, "Dual-Queue Coupled Active Queue Management (AQM)
//! for Low Latency, Low Loss, and Scalable Throughput (L4S)", RFC 9332, January 2023. Here are the
//! framework of its section 2 and DualPI2 of its Appendix A, names included, with the overload code
//! of its second pass.
//!
//! ```text
//!              ECT(1), CE                                    p_L = max(p'_L, p_CL): mark
//!           .------------> L queue -- ramp: p'_L -----------.
//!   arrival |                              ^                 +--> weighted round robin --> link
//!           |                     p_CL = k p'                |
//!           '------------> C queue -- PI: p' -- p_C = p'^2 --'
//!              Not-ECT, ECT(0)                               p_C: mark, or drop if not capable
//! ```
//!
//! # Deviations
//!
//! - Appendix A.2 recommends only the kind of the scheduler. Here it is a weighted round robin by
//!   bytes. The L queue has priority as long as the C queue has had a tenth of the bytes sent while
//!   both were backlogged. Linux's `sch_dualpi2.c` has the same share; A.2 names 1/16. Its credit
//!   is reset when either queue is empty; Appendix A.1 has Linux reset it when the link is idle.
//! - The limit is the link's buffer, for both queues, instead of 250 ms at the largest rate.
//! - The ramp uses the sojourn time of the departing packet. Th_len counts it; in A.2 it does not.
//! - Drops of the L queue at saturation have a counter of their own; in Appendix A.2 they share
//!   that of the marks.
//! - Fewer than two full packets that wait are not dropped, as in Linux. Appendix A has no such
//!   bound, and drops everything where one packet alone takes longer than the target.
//! - A packet that finds the link idle passes its queue and the discipline, but not the limit, as
//!   in all queues here.
//! - The controller has no timer: see [`pie`](super::pie).

use headstart_units::{Bytes, Ratio, Span, Time};

use super::pie::{ONE, changed, proportional};
use super::updates::Updates;
use crate::element::{DropReason, Packet, PushResult};
use crate::limit::Limit;
use crate::queue::{DropTail, Dropped};

/// Parameters of DualPI2, with the source of each default.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// The target queueing delay of the C queue. 15 ms: RFC 9332 Appendix A.1.
    pub target: Span,
    /// The longest usual round-trip time (RTT_max). 100 ms: RFC 9332 Appendix A.1.
    pub longest_rtt: Span,
    /// The coupling factor k. 2: RFC 9332 §2.1 and Appendix A.1.
    pub coupling: u64,
    /// Delay at which the L queue's ramp begins (minTh). 800 us: RFC 9332 Appendix A.1.
    pub ramp_begins: Span,
    /// Width of the ramp (range). 400 us: RFC 9332 Appendix A.1.
    pub ramp: Span,
    /// No marking by the ramp with at most this many packets in the L queue (Th_len, RFC 9332
    /// Appendix A.2). 1: Appendix A.1.
    pub least: u64,
    /// Guaranteed share of the C queue, in percent of the link; 100 at most. 10: ours.
    pub classic_share: u8,
    /// Reset value of the scheduler's credit when a queue is empty: one packet. 1500 bytes.
    pub packet: Bytes,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            target: Span::from_millis(15),
            longest_rtt: Span::from_millis(100),
            coupling: 2,
            ramp_begins: Span::from_micros(800),
            ramp: Span::from_micros(400),
            least: 1,
            classic_share: 10,
            packet: Bytes::new(1500),
        }
    }
}

impl Params {
    /// Tupdate = min(target, RTT_max / 3).
    fn period(&self) -> Span {
        self.target.min(self.longest_rtt / 3)
    }

    /// alpha = 0.1 Tupdate / RTT_max^2 and beta = 0.3 / RTT_max, both per second.
    fn gains(&self) -> [Ratio; 2] {
        let rtt = self.longest_rtt.as_nanos().max(1);
        let (period, second) = (self.period().as_nanos(), 1_000_000_000_u64);
        // In millionths, finer than in any source; 15 is the limit of the fixed point.
        let micro = |value: u128| Ratio::new(value.min(15_000_000) as u32, 1_000_000);
        let alpha = u128::from(period) * u128::from(second) * 100_000 / (u128::from(rtt) * u128::from(rtt));
        [micro(alpha), micro(u128::from(second) * 300_000 / u128::from(rtt))]
    }
}

/// Evenly spaced events of a probability, instead of random draws (Appendix A.1, recur).
#[derive(Clone, Copy, Debug, Default)]
struct Recurrence(u64);

impl Recurrence {
    fn recurs(&mut self, likelihood: u64) -> bool {
        self.0 += likelihood.min(ONE);
        let is_due = self.0 > ONE;
        if is_due {
            self.0 -= ONE;
        }
        is_due
    }
}

/// The DualPI2 queue.
#[derive(Debug)]
pub struct DualPi2<P> {
    params: Params,
    gains: [Ratio; 2],
    limit: Limit,
    classic: DropTail<P>,
    l4s: DropTail<P>,
    updates: Updates,
    /// p', in units of [`ONE`].
    base: u64,
    /// prevq.
    delay_before: Span,
    /// cq.count and lq.count; the L queue's for drops at saturation apart.
    classic_hits: Recurrence,
    l4s_marks: Recurrence,
    l4s_drops: Recurrence,
    /// Credit of the C queue in hundredths of bytes: positive if it is served next.
    owed: i64,
}

impl<P> DualPi2<P> {
    /// Two empty queues with one buffer of `limit`.
    #[must_use]
    pub fn new(params: Params, limit: Limit) -> Self {
        Self {
            params,
            gains: params.gains(),
            limit,
            classic: DropTail::new(Limit::NONE),
            l4s: DropTail::new(Limit::NONE),
            updates: Updates::new(params.period()),
            base: 0,
            delay_before: Span::ZERO,
            classic_hits: Recurrence::default(),
            l4s_marks: Recurrence::default(),
            l4s_drops: Recurrence::default(),
            owed: 0,
        }
    }

    pub(crate) fn waiting(&self) -> (u64, Bytes) {
        let ((packets, bytes), (more, more_bytes)) = (self.classic.waiting(), self.l4s.waiting());
        (packets + more, bytes + more_bytes)
    }

    fn advance(&mut self, now: Time) {
        for at in self.updates.due(now) {
            self.update(at);
        }
    }

    /// Appendix A, dualpi2_update.
    fn update(&mut self, now: Time) {
        let waited = |queue: &DropTail<P>| queue.oldest().map_or(Span::ZERO, |since| now.since(since));
        let delay = waited(&self.classic).max(waited(&self.l4s));
        let [alpha, beta] = self.gains;
        let change =
            proportional(alpha, delay, self.params.target) + proportional(beta, delay, self.delay_before);
        self.base = changed(self.base, change);
        self.delay_before = delay;
    }

    /// p_C.
    fn classic_probability(&self) -> u64 {
        ((u128::from(self.base) * u128::from(self.base)) >> 60) as u64
    }

    /// p_CL; more than one counts as one, which is saturation.
    fn coupled_probability(&self) -> u64 {
        self.base.saturating_mul(self.params.coupling).min(ONE)
    }

    /// Appendix A, laqm: p'_L.
    fn native_probability(&self, waited: Span) -> u64 {
        let Params { ramp_begins, ramp, .. } = self.params;
        let above = waited.saturating_sub(ramp_begins).as_nanos();
        if above >= ramp.as_nanos().max(1) {
            ONE
        } else {
            (u128::from(ONE) * u128::from(above) / u128::from(ramp.as_nanos())) as u64
        }
    }

    /// True if the L queue is served next.
    fn serves_l4s(&mut self) -> bool {
        let share = i64::from(self.params.classic_share.min(100));
        match (self.l4s.waiting().0 > 0, self.classic.waiting().0 > 0) {
            (true, true) => self.owed <= 0,
            (has_l4s, _) => {
                // One queue is empty: the credit is reset, and the L queue has the first packet.
                self.owed = -(100 - share) * signed(self.params.packet);
                has_l4s
            }
        }
    }
}

fn signed(bytes: Bytes) -> i64 {
    i64::try_from(bytes.get()).unwrap_or(i64::MAX).min(i64::MAX / 1000)
}

impl<P: Packet> DualPi2<P> {
    pub(crate) fn enqueue(&mut self, now: Time, packet: P) -> PushResult<P> {
        self.advance(now);
        let (packets, bytes) = self.waiting();
        if !self.limit.admits(packets, bytes, packet.size()) {
            return PushResult::Dropped(packet, DropReason::QueueFull);
        }
        self.classify(now, packet)
    }

    pub(crate) fn pass(&mut self, now: Time, packet: P) -> PushResult<P> {
        self.advance(now);
        let PushResult::Accepted = self.classify(now, packet) else {
            unreachable!("its buffer has no limit")
        };
        let mut dropped = Dropped::new();
        if let Some(packet) = self.dequeue(now, &mut dropped) {
            return PushResult::Passed(packet);
        }
        match dropped.pop(Time::NEVER) {
            Some((packet, reason)) => PushResult::Dropped(packet, reason),
            None => PushResult::Accepted,
        }
    }

    /// RFC 9332 §2.3: ECT(1) and CE to the L queue, the rest to the C queue.
    fn classify(&mut self, now: Time, packet: P) -> PushResult<P> {
        let queue = if packet.is_l4s() { &mut self.l4s } else { &mut self.classic };
        queue.enqueue(now, packet)
    }

    /// Appendix A, dualpi2_dequeue with the overload code.
    pub(crate) fn dequeue(&mut self, now: Time, dropped: &mut Dropped<P>) -> Option<P> {
        self.advance(now);
        while self.waiting().0 > 0 {
            let share = i64::from(self.params.classic_share.min(100));
            let is_l4s = self.serves_l4s();
            let next = if is_l4s { self.dequeue_l4s(now) } else { self.dequeue_classic() };
            let is_short = self.waiting().1 < self.params.packet * 2;
            let packet = match next {
                Ok(packet) => packet,
                Err(packet) if is_short => packet,
                Err(packet) => {
                    dropped.push(now, (packet, DropReason::DualPi2));
                    continue;
                }
            };
            let weight = if is_l4s { share } else { share - 100 };
            self.owed = self.owed.saturating_add(weight.saturating_mul(signed(packet.size())));
            return Some(packet);
        }
        None
    }

    /// The first packet of the L queue, marked if due; the error is a packet to be dropped.
    fn dequeue_l4s(&mut self, now: Time) -> Result<P, P> {
        let is_alone = self.l4s.waiting().0 <= self.params.least;
        let Some((since, mut packet)) = self.l4s.dequeue() else { unreachable!("it is its turn") };
        let coupled = self.coupled_probability();
        let likelihood = if coupled < ONE {
            let native = if is_alone { 0 } else { self.native_probability(now.since(since)) };
            native.max(coupled)
        } else {
            if self.l4s_drops.recurs(self.classic_probability()) {
                return Err(packet);
            }
            coupled
        };
        if self.l4s_marks.recurs(likelihood) {
            packet.mark_congestion_experienced();
        }
        Ok(packet)
    }

    /// Takes the next packet of the C queue.
    fn dequeue_classic(&mut self) -> Result<P, P> {
        let Some((_, mut packet)) = self.classic.dequeue() else { unreachable!("it is its turn") };
        if self.classic_hits.recurs(self.classic_probability()) {
            let is_overload = self.coupled_probability() >= ONE;
            if is_overload || !packet.is_ecn_capable() {
                return Err(packet);
            }
            packet.mark_congestion_experienced();
        }
        Ok(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::testing::{Numbered, packet};
    use headstart_units::Packets;

    fn dual() -> DualPi2<Numbered> {
        DualPi2::new(Params::default(), Limit::NONE)
    }

    fn l4s(number: u64) -> Numbered {
        Numbered { ecn_capable: true, is_l4s: true, ..packet(number) }
    }

    fn capable(number: u64) -> Numbered {
        Numbered { ecn_capable: true, ..packet(number) }
    }

    fn take(queue: &mut DualPi2<Numbered>, at: Time, packets: impl IntoIterator<Item = Numbered>) {
        for packet in packets {
            assert_eq!(queue.enqueue(at, packet), PushResult::Accepted);
        }
    }

    #[test]
    fn the_defaults_are_those_of_the_rfc() {
        let params = Params::default();
        assert_eq!((params.target, params.longest_rtt), (Span::from_millis(15), Span::from_millis(100)));
        assert_eq!((params.coupling, params.least), (2, 1));
        assert_eq!((params.ramp_begins, params.ramp), (Span::from_micros(800), Span::from_micros(400)));
        assert_eq!(params.period(), Span::from_millis(15), "min(15 ms, 100 ms / 3)");
        // 0.1 * 0.015 / 0.1^2 and 0.3 / 0.1.
        assert_eq!(params.gains().map(|gain| gain.of(1_000_000)), [150_000, 3_000_000]);
    }

    /// Queueing delays at the head of the C queue at successive updates, and p' in floating point.
    #[test]
    fn the_base_probability_is_that_of_the_pseudocode() {
        let mut queue = dual();
        let (mut p, mut before) = (0.0_f64, 0.0_f64);
        for (row, ms) in [0, 10, 20, 40, 80, 60, 30, 15, 15, 12, 5, 90].into_iter().enumerate() {
            let now = Time::from_millis(1000 * (row as u64 + 1));
            queue.classic = DropTail::new(Limit::NONE);
            assert_eq!(queue.classic.enqueue(now - Span::from_millis(ms), packet(0)), PushResult::Accepted);
            queue.update(now);
            let delay = ms as f64 / 1e3;
            p = (p + 0.15 * (delay - 0.015) + 3.0 * (delay - before)).clamp(0.0, 1.0);
            before = delay;
            let found = queue.base as f64 / ONE as f64;
            assert!((found - p).abs() < 1e-12, "row {row}: {found}, {p} expected");
            let [classic, coupled] =
                [queue.classic_probability(), queue.coupled_probability()].map(|p| p as f64 / ONE as f64);
            assert!((classic - p * p).abs() < 1e-12 && (coupled - (2.0 * p).min(1.0)).abs() < 1e-12);
        }
    }

    #[test]
    fn the_ramp_rises_from_800_to_1200_microseconds() {
        let queue = dual();
        for (micros, percent) in
            [(0, 0), (800, 0), (900, 25), (1000, 50), (1199, 99), (1200, 100), (90_000, 100)]
        {
            let found = queue.native_probability(Span::from_micros(micros));
            assert_eq!(found / (ONE / 100), percent, "{micros} us");
        }
    }

    #[test]
    fn hits_recur_at_the_likelihood_and_evenly_spaced() {
        let mut recurrence = Recurrence::default();
        let hits: Vec<usize> = (0..1000).filter(|_| recurrence.recurs(ONE / 8)).collect();
        assert_eq!(hits.len(), 124, "each eighth, after the first eight made a whole");
        assert!(hits.windows(2).all(|pair| pair[1] - pair[0] == 8));
    }

    #[test]
    fn the_ecn_field_decides_the_queue_and_the_l_queue_goes_first() {
        let mut queue = dual();
        take(&mut queue, Time::ZERO, [packet(0), capable(1), l4s(2)]);
        let mut dropped = Dropped::new();
        let order: Vec<u64> = std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut dropped))
            .map(|packet| packet.number)
            .collect();
        assert_eq!(order, [2, 0, 1]);
    }

    #[test]
    fn a_full_l_queue_leaves_a_tenth_to_the_other() {
        let mut queue = dual();
        take(&mut queue, Time::ZERO, (0..2000).map(l4s).chain((2000..4000).map(packet)));
        let mut dropped = Dropped::new();
        let classic = (0..1000)
            .filter(|_| queue.dequeue(Time::ZERO, &mut dropped).is_some_and(|packet| packet.number >= 2000))
            .count();
        assert!((98..=101).contains(&classic), "{classic} of 1000");
    }

    /// p' of a fifth: a twenty-fifth of the C queue is marked or dropped, two fifths of the L queue
    /// are marked, none dropped.
    #[test]
    fn marks_and_drops_are_coupled_by_the_square() {
        let mut queue = dual();
        queue.base = ONE / 5;
        take(&mut queue, Time::ZERO, (0..1000).map(l4s));
        take(&mut queue, Time::ZERO, (0..1000).map(packet));
        take(&mut queue, Time::ZERO, (0..1000).map(capable));
        let mut dropped = Dropped::new();
        let (mut marked_l4s, mut marked_classic, mut out) = (0, 0, 0);
        while let Some(packet) = queue.dequeue(Time::ZERO, &mut dropped) {
            out += 1;
            marked_l4s += u32::from(packet.marked && packet.is_l4s);
            marked_classic += u32::from(packet.marked && !packet.is_l4s);
        }
        assert!((399..=400).contains(&marked_l4s), "{marked_l4s}");
        assert!((39..=40).contains(&marked_classic), "{marked_classic}");
        assert!((39..=40).contains(&dropped.len()), "{}", dropped.len());
        assert_eq!(out + dropped.len(), 3000);
    }

    #[test]
    fn a_lone_packet_is_never_marked() {
        for (packets, marks) in [(1, 0), (2, 1)] {
            let mut queue = dual();
            queue.l4s_marks = Recurrence(1);
            take(&mut queue, Time::ZERO, (0..packets).map(l4s));
            let mut dropped = Dropped::new();
            let late = Time::from_millis(2);
            let out = std::iter::from_fn(|| queue.dequeue(late, &mut dropped)).filter(|packet| packet.marked);
            assert_eq!(out.count(), marks, "{packets} packets");
        }
    }

    /// A link on which every packet takes longer than the target.
    #[test]
    fn a_packet_alone_is_never_dropped() {
        let mut queue = dual();
        for second in 1..2000 {
            take(&mut queue, Time::from_millis(second * 1000), [packet(second)]);
            let now = Time::from_millis(second * 1000 + 300);
            let left = queue.dequeue(now, &mut Dropped::new()).map(|packet| packet.number);
            assert_eq!(left, Some(second), "p' is {} of {ONE}", queue.base);
        }
    }

    #[test]
    fn at_saturation_both_queues_are_dropped_by_the_square() {
        let mut queue = dual();
        queue.base = ONE / 2;
        take(&mut queue, Time::ZERO, (0..1000).map(l4s).chain((0..1000).map(capable)));
        let mut dropped = Dropped::new();
        let (mut out, mut marked) = (0, 0);
        while let Some(packet) = queue.dequeue(Time::ZERO, &mut dropped) {
            out += 1;
            marked += usize::from(packet.marked);
        }
        assert!((498..=500).contains(&dropped.len()), "a quarter of each: {}", dropped.len());
        assert!((749..=751).contains(&marked), "all that is left of the L queue: {marked}");
        assert_eq!(out + dropped.len(), 2000);
    }

    #[test]
    fn both_queues_share_one_buffer() {
        let mut queue = DualPi2::new(Params::default(), Limit::packets(Packets::new(2)));
        take(&mut queue, Time::ZERO, [l4s(0), packet(1)]);
        for refused in [l4s(2), packet(3)] {
            assert_eq!(
                queue.enqueue(Time::ZERO, refused),
                PushResult::Dropped(refused, DropReason::QueueFull)
            );
        }
        assert_eq!(queue.waiting(), (2, Bytes::new(3000)));
    }

    #[test]
    fn extreme_parameters_neither_panic_nor_lose_packets() {
        let zero = Params {
            target: Span::ZERO,
            longest_rtt: Span::ZERO,
            coupling: 0,
            ramp_begins: Span::ZERO,
            ramp: Span::ZERO,
            least: 0,
            classic_share: 0,
            packet: Bytes::ZERO,
        };
        let most = Params {
            target: Span::MAX,
            longest_rtt: Span::MAX,
            coupling: u64::MAX,
            ramp_begins: Span::MAX,
            ramp: Span::MAX,
            least: u64::MAX,
            classic_share: u8::MAX,
            packet: Bytes::MAX,
        };
        for params in [zero, most] {
            let mut queue = DualPi2::new(params, Limit::NONE);
            take(&mut queue, Time::ZERO, (0..50).map(l4s).chain((50..100).map(packet)));
            let mut dropped = Dropped::new();
            let mut out = 0;
            while queue.dequeue(Time::from_millis(10_000), &mut dropped).is_some() {
                out += 1;
            }
            assert_eq!(out + dropped.len(), 100);
        }
    }
}
