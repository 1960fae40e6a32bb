//! Drop at the tail at random, with a probability that holds the queueing delay at a target.
//!
//! Source: R. Pan, P. Natarajan, F. Baker, G. White, "Proportional Integral Controller Enhanced
//! (PIE): A Lightweight Control Scheme to Address the Bufferbloat Problem", RFC 8033, February
//! 2017. The basic scheme of its section 4 and Appendix A, and ECN (§5.1).
//!
//! ```text
//!   each 15 ms:  p += scale(p) * (alpha (delay - target) + beta (delay - delay before))
//!                p *= 0.98 while nothing waits
//! ```
//!
//! # Deviations
//!
//! - The queueing delay is measured by arrival times, the second of the two ways of §4.3: that of
//!   the packet that left last, and zero while the queue is empty.
//! - MEAN_PKTSIZE, left open there, is 1500 bytes: no drop with two full packets or less queued.
//! - The burst allowance is renewed with an update, not as a packet arrives (§4.4).
//! - Of the optional elements of section 5 only ECN is implemented. Left out are the departure
//!   rate's estimate (§5.2), switching off (§5.3), derandomisation (§5.4) and the cap on the step
//!   (§5.5).
//! - A packet drawn at a full buffer counts as dropped by the full buffer.
//! - The controller has no timer. Updates that are due are computed before any other operation on
//!   the queue, which gives the same probabilities. After more than 4096 updates without one, about
//!   a minute, the rest is skipped.

use headstart_units::{Bytes, Ratio, Span, Time};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::updates::Updates;
use crate::element::{DropReason, Packet, PushResult};
use crate::limit::Limit;
use crate::queue::DropTail;

/// Parameters of PIE, with the source of each default.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// The target queueing delay (QDELAY_REF). 15 ms: RFC 8033 §4.2.
    pub target: Span,
    /// Interval between updates of the probability (T_UPDATE). 15 ms: RFC 8033 §4.2.
    pub period: Span,
    /// Time without drops after a period of low delay (MAX_BURST). 150 ms: RFC 8033 §4.4.
    pub burst: Span,
    /// Change of probability for each second above the target, below 16. 1/8: RFC 8033 Appendix A.
    pub alpha: Ratio,
    /// Change of probability for each second of growing delay, below 16. 5/4: RFC 8033 Appendix A.
    pub beta: Ratio,
    /// Below this probability packets are marked if ECN-capable (mark_ecnth). 10 %: RFC 8033 §5.1.
    pub marks_below: Ratio,
    /// No drop with at most twice this in the buffer (MEAN_PKTSIZE). 1500 bytes.
    pub packet: Bytes,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            target: Span::from_millis(15),
            period: Span::from_millis(15),
            burst: Span::from_millis(150),
            alpha: Ratio::new(1, 8),
            beta: Ratio::new(5, 4),
            marks_below: Ratio::percent(10),
            packet: Bytes::new(1500),
        }
    }
}

/// One, in the fixed point of probabilities.
pub(super) const ONE: u64 = 1 << 60;

/// `gain` per second times the nanoseconds from `from` to `to`, in units of [`ONE`].
pub(super) fn proportional(gain: Ratio, to: Span, from: Span) -> i128 {
    // Capped at a quarter of an hour, which already makes every probability one or zero.
    const MAX_NANOS: i128 = 1 << 40;
    let nanos = (i128::from(to.as_nanos()) - i128::from(from.as_nanos())).clamp(-MAX_NANOS, MAX_NANOS);
    nanos * i128::from(gain.of(ONE)) / 1_000_000_000
}

/// `probability` plus `change`, clamped to zero and one.
pub(super) fn changed(probability: u64, change: i128) -> u64 {
    (i128::from(probability) + change).clamp(0, i128::from(ONE)) as u64
}

/// The PIE queue.
#[derive(Debug)]
pub struct Pie<P> {
    params: Params,
    buffer: DropTail<P>,
    updates: Updates,
    /// PIE->drop_prob_, in units of [`ONE`].
    probability: u64,
    /// PIE->burst_allowance_.
    allowance: Span,
    /// Queueing delay of the packet that left last; zero with an empty queue (current_qdelay).
    delay: Span,
    /// Queueing delay at the last update (PIE->qdelay_old_).
    delay_before: Span,
    source: Xoshiro256PlusPlus,
}

impl<P> Pie<P> {
    /// An empty queue with a buffer of `limit`; drops are drawn from `seed`.
    #[must_use]
    pub fn new(params: Params, limit: Limit, seed: u64) -> Self {
        Self {
            params,
            buffer: DropTail::new(limit),
            updates: Updates::new(params.period),
            probability: 0,
            allowance: params.burst,
            delay: Span::ZERO,
            delay_before: Span::ZERO,
            source: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    pub(crate) fn waiting(&self) -> (u64, Bytes) {
        self.buffer.waiting()
    }

    fn advance(&mut self, now: Time) {
        for _ in self.updates.due(now) {
            self.update();
        }
    }

    /// Appendix A: calculate_drop_prob.
    fn update(&mut self) {
        let Params { target, period, burst, alpha, beta, .. } = self.params;
        let step =
            proportional(alpha, self.delay, target) + proportional(beta, self.delay, self.delay_before);
        self.probability = changed(self.probability, step / scale(self.probability));
        if self.delay.is_zero() && self.delay_before.is_zero() {
            self.probability -= self.probability / 50;
        }
        // §4.4.
        self.allowance = self.allowance.saturating_sub(period);
        if self.probability == 0 && self.delay < target / 2 && self.delay_before < target / 2 {
            self.allowance = burst;
        }
        self.delay_before = self.delay;
    }

    /// Appendix A: drop_early.
    fn is_drawn(&mut self) -> bool {
        if !self.allowance.is_zero() {
            return false;
        }
        let is_short = self.delay_before < self.params.target / 2 && self.probability < ONE / 5;
        if is_short || self.buffer.waiting().1 <= self.params.packet * 2 {
            return false;
        }
        self.source.next_u64() >> 4 < self.probability
    }
}

/// §4.2: a small probability changes in small steps.
fn scale(probability: u64) -> i128 {
    const SCALES: [(u64, i128); 6] = [
        (ONE / 1_000_000, 2048),
        (ONE / 100_000, 512),
        (ONE / 10_000, 128),
        (ONE / 1000, 32),
        (ONE / 100, 8),
        (ONE / 10, 2),
    ];
    SCALES.iter().find(|(below, _)| probability < *below).map_or(1, |(_, divisor)| *divisor)
}

impl<P: Packet> Pie<P> {
    pub(crate) fn enqueue(&mut self, now: Time, packet: P) -> PushResult<P> {
        self.advance(now);
        if !self.buffer.admits(packet.size()) {
            return PushResult::Dropped(packet, DropReason::QueueFull);
        }
        match self.filter(packet) {
            PushResult::Passed(packet) => self.buffer.enqueue(now, packet),
            fate => fate,
        }
    }

    /// The packet does not wait.
    pub(crate) fn pass(&mut self, now: Time, packet: P) -> PushResult<P> {
        self.advance(now);
        self.delay = Span::ZERO;
        self.filter(packet)
    }

    fn filter(&mut self, mut packet: P) -> PushResult<P> {
        if !self.is_drawn() {
            return PushResult::Passed(packet);
        }
        if packet.is_ecn_capable() && self.probability < self.params.marks_below.of(ONE) {
            packet.mark_congestion_experienced();
            return PushResult::Passed(packet);
        }
        PushResult::Dropped(packet, DropReason::Pie)
    }

    pub(crate) fn dequeue(&mut self, now: Time) -> Option<P> {
        self.advance(now);
        let next = self.buffer.dequeue();
        let is_empty = self.buffer.waiting().0 == 0;
        self.delay = next.as_ref().filter(|_| !is_empty).map_or(Span::ZERO, |(since, _)| now.since(*since));
        next.map(|(_, packet)| packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::testing::{Numbered, packet};
    use headstart_units::Packets;

    fn pie() -> Pie<Numbered> {
        Pie::new(Params::default(), Limit::NONE, 1)
    }

    fn share(probability: u64) -> f64 {
        probability as f64 / ONE as f64
    }

    #[test]
    fn the_defaults_are_those_of_the_rfc() {
        let Params { target, period, burst, alpha, beta, marks_below, packet } = Params::default();
        let ms = Span::from_millis;
        assert_eq!((target, period, burst), (ms(15), ms(15), ms(150)));
        assert_eq!((alpha, beta, marks_below), (Ratio::new(1, 8), Ratio::new(5, 4), Ratio::percent(10)));
        assert_eq!(packet, Bytes::new(1500));
    }

    /// Queueing delays at successive updates, and Appendix A's probability in floating point.
    #[test]
    fn the_probability_is_that_of_the_pseudocode() {
        let mut queue = pie();
        let (mut p, mut old, mut most) = (0.0_f64, 0.0_f64, 0.0_f64);
        let delays = [0, 5, 20, 60, 120, 200, 200, 200, 150, 90, 400, 800, 900, 30, 10, 5, 0, 0, 0, 0];
        for (row, ms) in delays.into_iter().cycle().take(200).enumerate() {
            let now = f64::from(ms) / 1e3;
            let mut step = (now - 0.015) / 8.0 + (now - old) * 1.25;
            step /= match p {
                p if p < 1e-6 => 2048.0,
                p if p < 1e-5 => 512.0,
                p if p < 1e-4 => 128.0,
                p if p < 1e-3 => 32.0,
                p if p < 1e-2 => 8.0,
                p if p < 0.1 => 2.0,
                _ => 1.0,
            };
            p += step;
            p = p.clamp(0.0, 1.0);
            if ms == 0 && old == 0.0 {
                p *= 0.98;
            }
            (old, most) = (now, most.max(p));
            queue.delay = Span::from_millis(u64::from(ms as u32));
            queue.update();
            let found = share(queue.probability);
            assert!((found - p).abs() < 1e-12, "row {row}: {found}, {p} expected");
        }
        assert!(most > 0.1, "every scale was there: {most}");
    }

    #[test]
    fn the_burst_allowance_runs_out_in_ten_updates_and_comes_back_when_the_queue_is_short() {
        let mut queue = pie();
        queue.delay = Span::from_millis(40);
        for left in (0..10).rev() {
            queue.update();
            assert_eq!(queue.allowance, Span::from_millis(15 * left));
        }
        queue.update();
        assert_eq!(queue.allowance, Span::ZERO);
        queue.delay = Span::from_millis(7);
        (queue.delay_before, queue.probability) = (Span::from_millis(7), 0);
        queue.update();
        assert_eq!(queue.allowance, Span::from_millis(150), "under half of the target, twice");
    }

    #[test]
    fn no_drop_occurs_within_the_burst_allowance_or_from_a_short_queue() {
        let full = |queue: &mut Pie<Numbered>| {
            (queue.probability, queue.allowance) = (ONE, Span::ZERO);
            queue.delay_before = Span::from_millis(30);
        };
        for (packets, allowance, drawn) in [(3, 0, true), (2, 0, false), (3, 1, false)] {
            let mut queue = pie();
            for n in 0..packets {
                assert_eq!(queue.enqueue(Time::ZERO, packet(n)), PushResult::Accepted);
            }
            full(&mut queue);
            queue.allowance = Span::from_millis(allowance);
            assert_eq!(queue.is_drawn(), drawn, "{packets} packets, {allowance} ms");
        }
        let mut queue = pie();
        for n in 0..9 {
            assert_eq!(queue.enqueue(Time::ZERO, packet(n)), PushResult::Accepted);
        }
        for (probability, delay, drawn) in [(ONE / 6, 7, 0), (ONE / 4, 7, 1), (ONE / 6, 8, 1)] {
            full(&mut queue);
            (queue.probability, queue.delay_before) = (probability, Span::from_millis(delay));
            let count = (0..1000).filter(|_| queue.is_drawn()).count();
            assert_eq!(usize::from(count > 0), drawn, "{count} of 1000 at {}", share(probability));
        }
    }

    #[test]
    fn a_capable_packet_is_marked_while_the_probability_is_small() {
        for (tenths, capable, lost) in
            [(5, true, false), (5, false, true), (99, true, false), (101, true, true)]
        {
            let mut queue = pie();
            for n in 0..9 {
                assert_eq!(queue.enqueue(Time::ZERO, packet(n)), PushResult::Accepted);
            }
            (queue.probability, queue.allowance) = (ONE / 1000 * tenths, Span::ZERO);
            queue.delay_before = Span::from_millis(30);
            let fates = (0..10_000).map(|n| queue.filter(Numbered { ecn_capable: capable, ..packet(n) }));
            let mut hit = 0;
            for fate in fates {
                match fate {
                    PushResult::Passed(packet) if packet.marked => hit += u64::from(!lost),
                    PushResult::Dropped(_, DropReason::Pie) => hit += u64::from(lost),
                    PushResult::Passed(_) => {}
                    other => panic!("{other:?}"),
                }
            }
            let expected = 10 * tenths;
            assert!(
                hit.abs_diff(expected) * hit.abs_diff(expected) < 16 * expected,
                "{hit}, {expected} expected"
            );
        }
    }

    #[test]
    fn updates_due_between_calls_are_computed_at_their_own_times() {
        let mut polled = pie();
        let mut silent = pie();
        for queue in [&mut polled, &mut silent] {
            for n in 0..5 {
                assert_eq!(queue.enqueue(Time::ZERO, packet(n)), PushResult::Accepted);
            }
            assert!(queue.dequeue(Time::from_millis(100)).is_some());
        }
        for ms in 100..400 {
            polled.advance(Time::from_millis(ms));
        }
        silent.advance(Time::from_millis(399));
        assert_eq!((polled.probability, polled.allowance), (silent.probability, silent.allowance));
        assert!(polled.probability > 0);
        while silent.dequeue(Time::from_millis(400)).is_some() {}
        silent.advance(Time::from_nanos(u64::MAX));
        assert_eq!((silent.probability, silent.allowance), (0, Span::from_millis(150)), "idle for ages");
    }

    #[test]
    fn a_full_buffer_drops_at_any_probability() {
        let mut queue = Pie::new(Params::default(), Limit::packets(Packets::new(1)), 1);
        assert_eq!(queue.enqueue(Time::ZERO, packet(0)), PushResult::Accepted);
        assert_eq!(
            queue.enqueue(Time::ZERO, packet(1)),
            PushResult::Dropped(packet(1), DropReason::QueueFull)
        );
        assert_eq!(queue.dequeue(Time::ZERO), Some(packet(0)));
    }
}
