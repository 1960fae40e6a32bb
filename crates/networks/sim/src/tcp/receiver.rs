//! The receiving side: reassembly and acknowledgements.
//!
//! Keeps out-of-order segments as sorted ranges, and reports up to three ranges, the most recently
//! changed first (RFC 2018 §4). Acknowledges out-of-order and duplicate arrivals at once (RFC 5681
//! §4.2; or as QUIC does, see [`ImmediateAck`]), others as configured.

use headstart_units::Time;

use super::config::{DelayedAck, ImmediateAck};
use crate::packet::{Acknowledgement, Block, Stamp};

/// The receiver's answer to a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckDecision {
    /// Acknowledge now.
    Immediate,
    /// Acknowledge when the timer expires, unless another segment arrives first.
    Delayed,
}

/// A data packet at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Number of the segment.
    pub segment: u32,
    /// Number of the transmission.
    pub transmission: u32,
    /// The last of several that left as one buffer.
    pub is_pushed: bool,
}

/// A receiver.
#[derive(Debug, Default)]
pub struct Receiver {
    /// The first segment not yet received.
    next: u32,
    /// Ranges received beyond `next`, in order, never touching each other.
    ranges: Vec<Block>,
    /// A segment of each of the ranges that changed most recently.
    recent: [u32; 3],
    /// Different segments received.
    received: u32,
    /// Segments that arrived although they were here already.
    duplicates: u32,
    /// Segments that were missing when a later one arrived first.
    missed: u32,
    unacknowledged: u32,
    last: (u32, u32),
    /// Number of the next transmission if none is missing.
    next_transmission: u32,
    /// Packets that are still acknowledged at once because of a gap between transmissions.
    immediate: u32,
    /// The stamp of the last packet that arrived, to be echoed.
    pub stamp: Stamp,
    /// Packets that arrived with a mark, modulo 256, to be echoed.
    pub marks: u8,
    /// Expiry of the delayed-ack timer.
    pub ack_at: Time,
}

impl Receiver {
    /// Empties the receiver; keeps its memory.
    pub fn reset(&mut self) {
        self.ranges.clear();
        *self = Self { ranges: std::mem::take(&mut self.ranges), ack_at: Time::NEVER, ..Self::default() };
    }

    /// The first segment not yet received: the application can read everything before it.
    #[inline]
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Segments that arrived although they were here already.
    pub fn duplicates(&self) -> u32 {
        self.duplicates
    }

    /// Segments that were missing when a later one arrived first: losses that the receiver noticed,
    /// as UDT's receiver counts them. A retransmission that is lost again is not one.
    pub fn missed(&self) -> u32 {
        self.missed
    }

    /// A data packet arrived.
    #[inline]
    pub fn on_data(&mut self, now: Time, arrival: Arrival, config: &DelayedAck) -> AckDecision {
        let Arrival { segment, transmission, is_pushed } = arrival;
        self.last = (segment, transmission);
        let is_immediate = self.is_immediate(transmission, config.immediate);
        if segment == self.next && self.ranges.is_empty() {
            self.next += 1;
            self.received += 1;
        } else {
            self.out_of_order(segment);
            if config.immediate == ImmediateAck::OutOfOrder {
                return AckDecision::Immediate;
            }
        }
        self.unacknowledged += 1;
        let is_due_now = is_immediate || is_pushed && config.ack_on_push;
        if is_due_now || self.unacknowledged >= config.every || self.received <= config.quick {
            return AckDecision::Immediate;
        }
        if self.ack_at == Time::NEVER {
            self.ack_at = now + config.timeout;
        }
        AckDecision::Delayed
    }

    /// True for the first packets after a new gap, and for a packet that was overtaken.
    #[inline]
    fn is_immediate(&mut self, transmission: u32, immediate: ImmediateAck) -> bool {
        let ImmediateAck::NewGap(packets) = immediate else { return false };
        if transmission < self.next_transmission {
            return true;
        }
        if transmission > self.next_transmission {
            self.immediate = packets;
        }
        self.next_transmission = transmission + 1;
        let is_immediate = self.immediate > 0;
        self.immediate = self.immediate.saturating_sub(1);
        is_immediate
    }

    fn out_of_order(&mut self, segment: u32) {
        // The first range that ends at or after the segment.
        let at = self.ranges.partition_point(|range| range.end < segment);
        let is_known = segment < self.next
            || self.ranges.get(at).is_some_and(|range| range.start <= segment && segment < range.end);
        if is_known {
            self.duplicates += 1;
            return;
        }
        self.received += 1;
        let end = self.ranges.last().map_or(self.next, |range| range.end);
        self.missed += segment.saturating_sub(end);
        match self.ranges.get_mut(at) {
            Some(range) if range.end == segment => {
                range.end += 1;
                let end = range.end;
                if self.ranges.get(at + 1).is_some_and(|following| following.start == end) {
                    let following = self.ranges.remove(at + 1);
                    self.ranges[at].end = following.end;
                }
            }
            Some(range) if range.start == segment + 1 => range.start = segment,
            _ => self.ranges.insert(at, Block { start: segment, end: segment + 1 }),
        }
        if self.ranges[0].start == self.next {
            self.next = self.ranges.remove(0).end;
        }
        if !self.recent.contains(&segment) {
            self.recent = [segment, self.recent[0], self.recent[1]];
        }
    }

    /// The acknowledgement to send now.
    #[inline]
    pub fn acknowledge(&mut self) -> Acknowledgement {
        self.unacknowledged = 0;
        self.ack_at = Time::NEVER;
        let (trigger, transmission) = self.last;
        Acknowledgement {
            cumulative: self.next,
            trigger,
            transmission,
            received: self.received,
            blocks: if self.ranges.is_empty() { Default::default() } else { self.blocks() },
        }
    }

    fn blocks(&self) -> [Block; 3] {
        let mut blocks = [Block::default(); 3];
        let mut count = 0;
        // The range of the segment that just arrived, then those that changed before it, then the
        // lowest. The last fills the remaining place, so that a range whose report was lost is
        // repeated.
        let named = std::iter::once(self.last.0).chain(self.recent).filter_map(|segment| {
            let at = self.ranges.partition_point(|range| range.end <= segment);
            self.ranges.get(at).filter(|range| range.start <= segment).copied()
        });
        for range in named.chain(self.ranges.iter().copied()) {
            if count < blocks.len() && !blocks[..count].contains(&range) {
                blocks[count] = range;
                count += 1;
            }
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver() -> Receiver {
        let mut receiver = Receiver::default();
        receiver.reset();
        receiver
    }

    fn plain(segment: u32, transmission: u32) -> Arrival {
        Arrival { segment, transmission, is_pushed: false }
    }

    fn block(start: u32, end: u32) -> Block {
        Block { start, end }
    }

    #[test]
    fn every_second_segment_is_acknowledged_or_the_timer_does_it() {
        let mut receiver = receiver();
        let config = DelayedAck::SECOND;
        assert_eq!(receiver.on_data(Time::ZERO, plain(0, 0), &config), AckDecision::Delayed);
        assert_eq!(receiver.ack_at, Time::from_millis(200));
        assert_eq!(receiver.on_data(Time::from_millis(1), plain(1, 1), &config), AckDecision::Immediate);
        assert_eq!(receiver.acknowledge().cumulative, 2);
        assert_eq!(receiver.ack_at, Time::NEVER);
    }

    #[test]
    fn quick_acks_come_first() {
        let mut receiver = receiver();
        let config = DelayedAck { quick: 2, ..DelayedAck::SECOND };
        let answers: Vec<_> = (0..4)
            .map(|segment| {
                let answer = receiver.on_data(Time::ZERO, plain(segment, segment), &config);
                if answer == AckDecision::Immediate {
                    receiver.acknowledge();
                }
                answer
            })
            .collect();
        assert_eq!(
            answers,
            [AckDecision::Immediate, AckDecision::Immediate, AckDecision::Delayed, AckDecision::Immediate]
        );
    }

    /// Linux tcp_input.c, tcp_measure_rcv_mss: a full segment with PSH is acknowledged as soon as
    /// the application has read it.
    #[test]
    fn as_linux_the_end_of_a_buffer_is_acknowledged_at_once() {
        use AckDecision::{Delayed, Immediate};
        let config = |ack_on_push| DelayedAck { ack_on_push, ..DelayedAck::SECOND };
        // Of three segments that leave as one buffer the last has PSH; a lone one has not.
        let arrivals = [(0, false), (1, false), (2, true), (3, false)];
        for (ack_on_push, answers) in [
            (true, [Delayed, Immediate, Immediate, Delayed]),
            (false, [Delayed, Immediate, Delayed, Immediate]),
        ] {
            let mut receiver = receiver();
            for ((segment, is_pushed), expected) in arrivals.into_iter().zip(answers) {
                let arrival = Arrival { is_pushed, ..plain(segment, segment) };
                let answer = receiver.on_data(Time::ZERO, arrival, &config(ack_on_push));
                assert_eq!(answer, expected, "segment {segment}, heeds PSH: {ack_on_push}");
                if answer == Immediate {
                    receiver.acknowledge();
                }
            }
        }
    }

    /// RFC 9000 §13.2.1: an immediate ack for a packet after a gap, and for one that was overtaken;
    /// none for an old gap and for retransmissions.
    #[test]
    fn as_quic_only_a_new_gap_triggers_an_immediate_ack() {
        use AckDecision::{Delayed, Immediate};
        let config = |packets| DelayedAck { immediate: ImmediateAck::NewGap(packets), ..DelayedAck::SECOND };
        // Segment and transmission. Transmissions 2 and 3 are lost, and 6 overtakes 5; segment 2 is
        // sent again as transmission 7, 3 as 8.
        let arrivals = [(0, 0), (1, 1), (4, 4), (6, 6), (5, 5), (2, 7), (3, 8), (7, 9)];
        for (packets, answers) in [
            (1, [Delayed, Immediate, Immediate, Immediate, Immediate, Delayed, Immediate, Delayed]),
            (4, [Delayed, Immediate, Immediate, Immediate, Immediate, Immediate, Immediate, Immediate]),
        ] {
            let mut receiver = receiver();
            for ((segment, transmission), expected) in arrivals.into_iter().zip(answers) {
                let answer = receiver.on_data(Time::ZERO, plain(segment, transmission), &config(packets));
                assert_eq!(answer, expected, "transmission {transmission}, {packets} after a gap");
                if answer == Immediate {
                    receiver.acknowledge();
                }
            }
            assert_eq!((receiver.next(), receiver.received, receiver.duplicates()), (8, 8, 0));
        }
    }

    #[test]
    fn holes_are_reported_most_recent_first_and_close_when_filled() {
        let mut receiver = receiver();
        let immediate = DelayedAck::IMMEDIATE;
        #[rustfmt::skip]
        let steps = [
            // segment  cumulative  blocks
            (0, 1, vec![]),
            (2, 1, vec![block(2, 3)]),
            (4, 1, vec![block(4, 5), block(2, 3)]),
            (6, 1, vec![block(6, 7), block(4, 5), block(2, 3)]),
            (3, 1, vec![block(2, 5), block(6, 7)]),
            (1, 5, vec![block(6, 7)]),
            (5, 7, vec![]),
        ];
        for (segment, cumulative, blocks) in steps {
            assert_eq!(receiver.on_data(Time::ZERO, plain(segment, 0), &immediate), AckDecision::Immediate);
            let ack = receiver.acknowledge();
            let reported: Vec<_> = ack.blocks.into_iter().filter(|b| b.start != b.end).collect();
            assert_eq!((ack.cumulative, reported), (cumulative, blocks), "after segment {segment}");
        }
        assert_eq!(receiver.received, 7);
    }

    /// Halfback §4.2.3: "the total number of packet losses noticed by the receiver".
    #[test]
    fn a_loss_is_noticed_once_when_a_later_segment_arrives() {
        let mut receiver = receiver();
        for (segment, missed) in [(0, 0), (3, 2), (4, 2), (1, 2), (7, 4), (5, 4), (2, 4), (8, 4), (10, 5)] {
            receiver.on_data(Time::ZERO, plain(segment, 0), &DelayedAck::IMMEDIATE);
            assert_eq!(receiver.missed(), missed, "segment {segment}");
        }
    }

    #[test]
    fn duplicates_are_counted_and_acknowledged_at_once() {
        let mut receiver = receiver();
        for segment in [0, 0, 2, 2, 1, 1] {
            assert_eq!(
                receiver.on_data(Time::ZERO, plain(segment, 0), &DelayedAck::IMMEDIATE),
                AckDecision::Immediate
            );
        }
        assert_eq!((receiver.next(), receiver.duplicates(), receiver.received), (3, 3, 3));
    }
}
