//! A link that sends at the opportunities of a packet-delivery trace, as mahimahi's `mm-link`.
//!
//! Source: `ravinet/mahimahi`, `src/frontend/link_queue.cc` and `link_queue.hh`; the behaviour, in
//! own words:
//!
//! - Each line of the trace is an opportunity to send 1504 bytes, and each packet costs its size
//!   and 4 bytes more. The device of mahimahi puts a header of 4 bytes before each packet. So a
//!   packet of 1500 bytes takes an opportunity, and a limit in bytes counts the 4 bytes too.
//! - An opportunity may send several small packets, and the rest of it begins the next one. A
//!   packet leaves with the opportunity that sends its last byte. The rest of an opportunity is
//!   lost when the queue is empty.
//! - A packet that has begun is no longer in the queue. One that has not is, even on an idle link.
//! - A packet that arrives at the instant of an opportunity has missed it.
//! - A trace that repeats has its last time as its period: an opportunity at 0 comes together with
//!   the last one of the round before. A trace that ends stops the link.
//! - Time zero of the run is time zero of the trace, or the offset of [`Trace::beginning_at`].
//!
//! # Deviations
//!
//! - mahimahi sees whole milliseconds only. Here packets arrive to the nanosecond and opportunities
//!   are at whole milliseconds, which decides the same.
//! - mahimahi ends with an error at a packet above 1500 bytes. Here it takes as many opportunities
//!   as its bytes need.
//! - mahimahi's own delay is a separate shell; here it is part of the link, as in
//!   [`Link`](crate::Link).
//!
//! An unused opportunity costs nothing, neither an event nor a step.

use std::sync::Arc;

use headstart_units::{Bytes, Span, Time};

use crate::element::{Element, Output, Packet, PushResult};
use crate::queue::{Dropped, Queue};
use crate::queueing_delays::{Queued, QueueingDelays};
use crate::ring::Ring;
use crate::trace::Trace;

/// Bytes of an opportunity.
const OPPORTUNITY: Bytes = Bytes::new(1504);
/// Bytes that a packet costs besides its size.
const HEADER: Bytes = Bytes::new(4);

/// Continuation after the last line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEnd {
    /// From the first line again.
    Repeat,
    /// None: waiting packets are never sent.
    Stop,
}

/// A trace-driven link and its propagation delay behind any queue.
#[derive(Debug)]
pub struct TraceLink<P> {
    opportunities: Opportunities,
    delay: Span,
    queue: Queue<Queued<P>>,
    /// The packet in transmission, and its bytes still to be sent.
    in_transit: Option<(P, Bytes)>,
    /// Packets in transit, with their arrival at the far end.
    inside: Ring<P>,
    dropped: Dropped<Queued<P>>,
    queueing_delays: Option<QueueingDelays>,
}

impl<P: Packet> TraceLink<P> {
    /// A link that follows `trace`, with a one-way propagation `delay`, behind `queue`.
    #[must_use]
    pub fn new(trace: Arc<Trace>, at_end: AtEnd, delay: Span, queue: Queue<Queued<P>>) -> Self {
        Self {
            opportunities: Opportunities::new(trace, at_end),
            delay,
            queue,
            in_transit: None,
            inside: Ring::new(),
            dropped: Ring::new(),
            queueing_delays: None,
        }
    }

    fn is_waiting(&self) -> bool {
        self.in_transit.is_some() || !self.queue.is_empty()
    }

    /// Uses every opportunity at or before `now`, each at its own time.
    fn advance(&mut self, now: Time) {
        while let Some(at) = self.opportunities.next().filter(|at| *at <= now) {
            let ran_dry = self.send(at);
            self.opportunities.step();
            // The queue is empty, so further opportunities at or before `now` are unused.
            if ran_dry {
                self.opportunities.skip(now);
            }
        }
    }

    /// Uses one opportunity. Returns true if there was too little to send.
    fn send(&mut self, at: Time) -> bool {
        let mut left = OPPORTUNITY;
        while !left.is_zero() {
            let (packet, to_send) = match self.in_transit.take() {
                Some(begun) => begun,
                None => match self.queue.dequeue(at, &mut self.dropped) {
                    Some(queued) => {
                        if let Some(delays) = &mut self.queueing_delays {
                            delays.add(at.since(queued.since));
                        }
                        let size = queued.size();
                        (queued.packet, size)
                    }
                    None => return true,
                },
            };
            if to_send > left {
                self.in_transit = Some((packet, to_send - left));
                return false;
            }
            left -= to_send;
            self.inside.push(at + self.delay, packet);
        }
        false
    }
}

impl<P: Packet> Element<P> for TraceLink<P> {
    fn push(&mut self, now: Time, packet: P) -> PushResult<P> {
        self.advance(now);
        match self.queue.enqueue(now, Queued { packet, since: now, overhead: HEADER }, &mut self.dropped) {
            PushResult::Accepted => PushResult::Accepted,
            PushResult::Passed(queued) => PushResult::Passed(queued.packet),
            PushResult::Dropped(queued, reason) => PushResult::Dropped(queued.packet, reason),
        }
    }

    fn pop(&mut self, now: Time) -> Option<Output<P>> {
        self.advance(now);
        if let Some((queued, reason)) = self.dropped.pop(now) {
            return Some(Output::Dropped(queued.packet, reason));
        }
        self.inside.pop(now).map(Output::Delivered)
    }

    fn next_at(&self) -> Time {
        let out = self.inside.next_at().min(self.dropped.next_at());
        if !self.is_waiting() {
            return out;
        }
        let Some(opportunity) = self.opportunities.next() else { return out };
        // A drop is reported at once, a departure after the delay.
        let wait = if self.queue.drops_at_head() { Span::ZERO } else { self.delay };
        out.min(opportunity + wait)
    }

    fn queue(&mut self, now: Time) -> (u64, Bytes) {
        self.advance(now);
        self.queue.waiting()
    }

    fn queueing_delays(&mut self) -> Option<&mut Option<QueueingDelays>> {
        Some(&mut self.queueing_delays)
    }
}

/// Position of the link in the trace.
#[derive(Debug)]
struct Opportunities {
    trace: Arc<Trace>,
    at_end: AtEnd,
    /// Completed rounds of the trace.
    round: u64,
    /// Index of the next line.
    line: usize,
}

impl Opportunities {
    fn new(trace: Arc<Trace>, at_end: AtEnd) -> Self {
        let begins_at = trace.begins_at_millis();
        let line = trace.as_millis().partition_point(|at| u64::from(*at) < begins_at);
        Self { trace, at_end, round: 0, line }
    }

    fn period_millis(&self) -> u64 {
        self.trace.as_millis().last().copied().unwrap_or(u32::MAX).into()
    }

    /// Time of the next opportunity; `None` if there are no more, or beyond the range of [`Time`].
    fn next(&self) -> Option<Time> {
        if self.round > 0 && self.at_end == AtEnd::Stop {
            return None;
        }
        let in_round = u64::from(*self.trace.as_millis().get(self.line)?);
        let millis = self.round.checked_mul(self.period_millis())?.checked_add(in_round)?;
        let millis = millis.checked_sub(self.trace.begins_at_millis())?;
        millis.checked_mul(1_000_000).map(Time::from_nanos)
    }

    fn step(&mut self) {
        self.line += 1;
        if self.line == self.trace.as_millis().len() {
            self.line = 0;
            self.round += 1;
        }
    }

    /// Skips all opportunities at or before `now` in one step.
    fn skip(&mut self, now: Time) {
        if self.next().is_none_or(|next| next > now) {
            return;
        }
        let millis = now.as_nanos() / 1_000_000 + self.trace.begins_at_millis();
        // A round that ends at `now` has passed, its last line included.
        self.round = millis / self.period_millis();
        let in_round = millis % self.period_millis();
        self.line = self.trace.as_millis().partition_point(|at| u64::from(*at) <= in_round);
    }
}

#[cfg(test)]
mod replay;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::DropReason;
    use crate::element::testing::{Numbered, drain, packet};
    use crate::limit::Limit;
    use headstart_units::Packets;

    fn link(trace: &str, at_end: AtEnd, limit: Limit) -> TraceLink<Numbered> {
        let trace = Arc::new(trace.parse().expect("a trace"));
        TraceLink::new(trace, at_end, Span::from_millis(10), Queue::drop_tail(limit))
    }

    fn sized(number: u64, size: u64) -> Numbered {
        Numbered { size: Bytes::new(size), ..packet(number) }
    }

    #[test]
    fn a_full_packet_takes_one_opportunity() {
        let mut link = link("1\n1\n5\n", AtEnd::Repeat, Limit::NONE);
        for n in 0..5 {
            assert_eq!(link.push(Time::ZERO, packet(n)), PushResult::Accepted);
        }
        assert_eq!(drain(&mut link), [(11_000, 0), (11_000, 1), (15_000, 2), (16_000, 3), (16_000, 4)]);
    }

    /// An acknowledgement of 40 bytes costs 44, so 34 of them fit, and 8 bytes of the 35th.
    #[test]
    fn small_packets_share_an_opportunity_and_straddle_two() {
        let mut link = link("1\n5\n", AtEnd::Repeat, Limit::NONE);
        for n in 0..36 {
            assert_eq!(link.push(Time::ZERO, sized(n, 40)), PushResult::Accepted);
        }
        let out = drain(&mut link);
        assert_eq!(out.iter().filter(|(at, _)| *at == 11_000).count(), 34);
        assert_eq!(out[34..], [(15_000, 34), (15_000, 35)]);
    }

    #[test]
    fn an_opportunity_without_waiting_packets_is_lost() {
        let mut link = link("1\n2\n3\n", AtEnd::Repeat, Limit::NONE);
        assert_eq!(link.push(Time::ZERO, sized(0, 100)), PushResult::Accepted);
        assert_eq!(
            link.push(Time::from_millis(1), packet(1)),
            PushResult::Accepted,
            "too late for the rest of 1 ms"
        );
        assert_eq!(drain(&mut link), [(11_000, 0), (12_000, 1)]);
    }

    #[test]
    fn a_packet_that_has_begun_is_not_in_the_queue_and_one_that_has_not_is() {
        let mut link = link("1\n2\n3\n", AtEnd::Repeat, Limit::packets(Packets::new(2)));
        assert_eq!(link.push(Time::ZERO, sized(0, 800)), PushResult::Accepted);
        assert_eq!(link.push(Time::ZERO, packet(1)), PushResult::Accepted);
        assert_eq!(link.push(Time::ZERO, packet(2)), PushResult::Dropped(packet(2), DropReason::QueueFull));
        assert_eq!(link.queue(Time::ZERO), (2, Bytes::new(804 + 1504)));
        assert_eq!(link.queue(Time::from_millis(1)), (0, Bytes::ZERO), "one is out, one has begun");
    }

    #[test]
    fn a_limit_in_bytes_counts_four_more_for_each_packet() {
        for (limit, taken) in [(3007, 1), (3008, 2)] {
            let mut link = link("1\n", AtEnd::Repeat, Limit::bytes(Bytes::new(limit)));
            let fates = [packet(0), packet(1)].map(|packet| link.push(Time::ZERO, packet));
            assert_eq!(fates.iter().filter(|fate| **fate == PushResult::Accepted).count(), taken);
        }
    }

    /// The period is 5 ms, and the 0 of each round comes together with the 5 of the round before.
    #[test]
    fn the_last_time_is_the_period() {
        let mut link = link("0\n5\n", AtEnd::Repeat, Limit::NONE);
        for n in 0..6 {
            assert_eq!(link.push(Time::from_nanos(1), packet(n)), PushResult::Accepted);
        }
        let times = drain(&mut link).iter().map(|(at, _)| at / 1000).collect::<Vec<_>>();
        assert_eq!(times, [15, 15, 20, 20, 25, 25]);
    }

    #[test]
    fn a_trace_that_stops_stops_the_link() {
        let mut link = link("2\n5\n", AtEnd::Stop, Limit::NONE);
        for n in 0..3 {
            assert_eq!(link.push(Time::ZERO, packet(n)), PushResult::Accepted);
        }
        assert_eq!(drain(&mut link), [(12_000, 0), (15_000, 1)]);
        assert_eq!(link.queue(Time::NEVER), (1, Bytes::new(1504)), "the last one waits for ever");
    }

    #[test]
    fn an_idle_link_has_no_event() {
        let mut link = link("1\n", AtEnd::Repeat, Limit::NONE);
        assert_eq!(link.next_at(), Time::NEVER);
        let late = Time::from_millis(1_000_000_000);
        assert_eq!(link.push(late, packet(0)), PushResult::Accepted);
        assert_eq!(link.next_at(), late + Span::from_millis(11));
        assert_eq!(drain(&mut link).len(), 1);
        assert_eq!(link.next_at(), Time::NEVER);
    }

    #[test]
    fn a_link_that_begins_within_a_trace_wraps_to_its_beginning() {
        let trace: Trace = "0\n2\n9\n10\n".parse().expect("a trace");
        let times = |offset| {
            let trace = Arc::new(trace.beginning_at(Span::from_millis(offset)));
            let mut link = TraceLink::new(trace, AtEnd::Repeat, Span::ZERO, Queue::drop_tail(Limit::NONE));
            // The instant of an opportunity at zero is missed.
            for n in 0..5 {
                assert_eq!(link.push(Time::from_nanos(1), packet(n)), PushResult::Accepted);
            }
            drain(&mut link).iter().map(|(at, _)| at / 1000).collect::<Vec<_>>()
        };
        assert_eq!(times(0), [2, 9, 10, 10, 12]);
        assert_eq!(times(1), [1, 8, 9, 9, 11]);
        assert_eq!(times(9), [1, 1, 3, 10, 11]);
        assert_eq!(times(11), times(1));
        // After idle time: skipped opportunities are skipped here as well.
        let trace = Arc::new(trace.beginning_at(Span::from_millis(9)));
        let mut link = TraceLink::new(trace, AtEnd::Repeat, Span::ZERO, Queue::drop_tail(Limit::NONE));
        assert_eq!(link.push(Time::from_millis(24), packet(0)), PushResult::Accepted);
        assert_eq!(drain(&mut link), [(30_000, 0)]);
    }

    #[test]
    fn a_constant_trace_has_the_requested_rate() {
        let rate = headstart_units::Rate::from_mbit_per_sec(50);
        let trace = Arc::new(Trace::constant(rate).expect("in range"));
        let mut link = TraceLink::new(trace, AtEnd::Repeat, Span::ZERO, Queue::drop_tail(Limit::NONE));
        for n in 0..10_000 {
            assert_eq!(link.push(Time::ZERO, packet(n)), PushResult::Accepted);
        }
        let last = drain(&mut link).last().map(|(at, _)| *at);
        assert_eq!(last, Some(2_400_000), "10 000 packets of 12 000 bits at 50 Mbit/s are 2.4 s");
    }
}
