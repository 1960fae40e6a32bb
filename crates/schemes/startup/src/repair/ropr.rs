//! Copy the first flight from its end, one segment for each that arrived, until copies and acks
//! meet.
//!
//! Source (HB below): Q. Li, M. Dong, P. B. Godfrey, "Halfback: Running Short Flows Quickly and
//! Safely", CoNEXT 2015, §3.2 (ROPR: reverse-ordered proactive retransmission), §3.4 (the example
//! of ten packets), §5 (forward order, line rate, more or less additional bandwidth).
//!
//! ```text
//!            first ack with the              copies and acks have met,
//!            whole flight sent               or a budget is used
//!  waiting ------------------> copying ------------------------------> over
//! ```
//!
//! | | order | copies for each packet that arrived | budget, of the flight |
//! |---|---|---|---|
//! | Halfback | from the end | 1 | none |
//! | Halfback-forward | from the beginning | 1 | 1/2 |
//! | Halfback-burst | from the end | all at the first ack | 1/2 |
//!
//! # Deviations
//!
//! - HB §3.2 has one copy "for each one of the paced packets that leaves the bottleneck queue", HB
//!   §3.4 "for each ACK received". These are two clocks if an ack is for several packets
//!   ([`Per`]). Packets are the default: half of the flow is then sent again, as HB §3.2 says.
//!   A copy that arrives as the first of its segment counts as a packet.
//! - HB §3.4 ends when all that is not acknowledged has been sent again, without a budget. In
//!   forward order and at line rate, where acks do not meet copies, a budget gives the 50 % of
//!   HB §5.
//! - HB §5 does not say how many copies Halfback-burst sends: as many as Halfback.
//! - "unACKed" (§3.4) is taken as not acknowledged in any way: SACKed segments are skipped.
//! - HB runs normal retransmission with the copies, independently as far as described; a
//!   retransmitted segment can be copied too. [`Params::stops_at_congestion`] is ours, and off.

use headstart_units::{Bytes, Ratio};

use super::Segments;

/// Order in which the first flight is copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// From the end towards the acks (HB §3.2).
    #[default]
    Reverse,
    /// From the first unacknowledged segment on (HB §5, Halfback-forward).
    Forward,
}

/// Events that [`Clock::Counted`] counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Per {
    /// Packets that are known to have arrived (HB §3.2).
    #[default]
    Packet,
    /// Acks, however many packets one is for (HB §3.4).
    Ack,
}

/// Clock of the copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Copies for each packet or ack ([`Per`]; HB §3.2).
    Counted(Ratio),
    /// The first ack releases all of them at once (HB §5, Halfback-burst).
    LineRate,
}

crate::words!(Order { Reverse = "reverse", Forward = "forward" });
crate::words!(Per { Packet = "packet", Ack = "ack" });
crate::word_or_share!(Clock { LineRate = "line-rate", Counted });

/// Parameters of the policy, with the source of each default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Reverse: HB §3.2.
    pub order: Order,
    /// One copy for each: HB §3.2. HB §5 proposes two for every three.
    pub clock: Clock,
    /// Events that the clock counts.
    pub per: Per,
    /// Limit of copies as a share of the flight's segments. None: HB §3.4.
    pub budget: Ratio,
    /// Stop after a congestion signal. Off: HB §4.2.1 runs both side by side.
    pub stops_at_congestion: bool,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            order: Order::Reverse,
            clock: Clock::Counted(Ratio::ONE),
            per: Per::Packet,
            budget: Ratio::ONE,
            stops_at_congestion: false,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The first flight is not sent completely, or no ack has arrived since.
    Waiting,
    Copying(Copies),
    Over,
}

#[derive(Clone, Copy, Debug)]
struct Copies {
    /// One past the flight's last segment.
    end: u64,
    /// In reverse order one past the next candidate, in forward order the next candidate.
    cursor: u64,
    counted: u64,
    sent: u64,
    budget: u64,
}

/// Proactive retransmission of the first flight.
#[derive(Clone, Copy, Debug)]
pub struct Ropr {
    params: Params,
    flight: Bytes,
    /// The flight's first segment.
    first: u64,
    phase: Phase,
}

impl Ropr {
    /// Copies of a first flight of `flight` bytes.
    #[must_use]
    pub const fn new(params: Params, flight: Bytes) -> Self {
        Self { params, flight, first: 0, phase: Phase::Waiting }
    }

    /// Copies of a later flight, which begins with segment `first` and ends `flight` bytes from the
    /// connection's beginning.
    #[must_use]
    pub const fn from(self, first: u64) -> Self {
        Self { first, ..self }
    }

    /// The parameters it was made with.
    #[must_use]
    pub const fn params(&self) -> Params {
        self.params
    }

    /// True once it has sent its last copy.
    #[must_use]
    #[inline]
    pub const fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    pub(super) fn on_congestion(&mut self) {
        if self.params.stops_at_congestion {
            self.phase = Phase::Over;
        }
    }

    #[inline]
    pub(super) fn on_ack(&mut self, packets: u64, segments: &impl Segments) {
        let counted = if self.params.per == Per::Ack { 1 } else { packets };
        match &mut self.phase {
            // HB §3.2: acks that arrive while the flight is still being paced trigger nothing.
            Phase::Waiting if segments.is_first_flight_sent() => self.begin_copying(counted, segments),
            Phase::Copying(copies) => copies.counted += counted,
            Phase::Waiting | Phase::Over => {}
        }
    }

    fn begin_copying(&mut self, counted: u64, segments: &impl Segments) {
        let mut end = segments.end();
        while end > 0 && segments.offset(end - 1) >= self.flight {
            end -= 1;
        }
        let cursor = match self.params.order {
            Order::Reverse => end,
            Order::Forward => self.first,
        };
        let budget = self.params.budget.of(end.saturating_sub(self.first));
        self.phase = Phase::Copying(Copies { end, cursor, counted, sent: 0, budget });
    }

    #[inline]
    pub(super) fn next(&mut self, segments: &impl Segments) -> Option<u64> {
        let Phase::Copying(copies) = &mut self.phase else { return None };
        let allowed = match self.params.clock {
            Clock::Counted(share) => share.of(copies.counted),
            Clock::LineRate => u64::MAX,
        };
        if copies.sent >= copies.budget {
            self.phase = Phase::Over;
            return None;
        }
        if copies.sent >= allowed {
            return None;
        }
        let found = match self.params.order {
            Order::Reverse => copies.last_missing(segments),
            Order::Forward => copies.first_missing(segments),
        };
        if found.is_some() {
            copies.sent += 1;
        } else {
            self.phase = Phase::Over;
        }
        found
    }
}

impl Copies {
    fn last_missing(&mut self, segments: &impl Segments) -> Option<u64> {
        let first = segments.first_unacked();
        while self.cursor > first {
            self.cursor -= 1;
            if !segments.is_delivered(self.cursor) {
                return Some(self.cursor);
            }
        }
        None
    }

    fn first_missing(&mut self, segments: &impl Segments) -> Option<u64> {
        self.cursor = self.cursor.max(segments.first_unacked());
        while self.cursor < self.end {
            self.cursor += 1;
            if !segments.is_delivered(self.cursor - 1) {
                return Some(self.cursor - 1);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::Repair;
    use super::super::testing::Stream;
    use super::*;
    use alloc::vec::Vec;

    fn repair(params: Params) -> Repair {
        Repair::Ropr(Ropr::new(params, Bytes::new(10_000)))
    }

    /// Acks 1 to `acks` of a flight of ten, all arriving in order: the copies after each.
    fn play(params: Params, acks: u64) -> Vec<Vec<u64>> {
        let (mut stream, mut repair) = (Stream::new(10, 10), repair(params));
        (1..=acks).map(|packet| stream.ack(&mut repair, packet)).collect()
    }

    /// HB §3.4, the example of ten packets.
    #[test]
    fn ten_packets_meet_half_way() {
        let (mut stream, mut repair) = (Stream::new(10, 10), repair(Params::default()));
        for (ack, copy) in [(1, 10), (2, 9), (3, 8), (4, 7), (5, 6)] {
            assert_eq!(stream.ack(&mut repair, ack), [copy], "ack {ack}");
            assert_eq!(stream.copies(&mut repair), [], "one copy for one ack");
        }
        assert_eq!(stream.ack(&mut repair, 6), [], "all the unacknowledged have been sent again");
        assert!(!repair.is_active(), "the phase is left");
    }

    /// HB §3.2: a packet that left the queue, or, by the letter of §3.4, an ack.
    #[test]
    fn an_ack_for_two_packets_sends_two_copies_or_one() {
        for (per, copies) in [(Per::Packet, &[10, 9][..]), (Per::Ack, &[10])] {
            let mut stream = Stream::new(10, 10);
            let mut repair = repair(Params { per, ..Params::default() });
            stream.deliver(1);
            stream.deliver(2);
            repair.on_ack(2, &stream);
            assert_eq!(stream.copies(&mut repair), copies, "{per:?}");
        }
    }

    /// HB §3.4: the phase is left when all that is not acknowledged was sent again, no earlier.
    #[test]
    fn copies_end_where_every_missing_packet_has_been_copied() {
        let (mut stream, mut repair) = (Stream::new(10, 10), repair(Params::default()));
        for (packet, copies) in [(5, &[10][..]), (6, &[9]), (7, &[8]), (8, &[4]), (9, &[3]), (10, &[2])] {
            assert_eq!(stream.ack(&mut repair, packet), copies, "1 to 4 were lost");
        }
        assert_eq!(stream.ack(&mut repair, 4), [1], "more than half of the flight");
        assert_eq!(stream.ack(&mut repair, 3), []);
        assert!(!repair.is_active());
    }

    /// HB §3.2: no copy competes with the paced packets.
    #[test]
    fn acks_before_the_whole_flight_is_out_trigger_nothing() {
        let (mut stream, mut repair) = (Stream::new(10, 8), repair(Params::default()));
        assert_eq!(stream.ack(&mut repair, 1), []);
        assert_eq!(stream.ack(&mut repair, 2), []);
        stream.send_up_to(10);
        assert_eq!(stream.copies(&mut repair), [], "the last packet leaving is no ack");
        assert_eq!(stream.ack(&mut repair, 3), [10], "the first that counts");
    }

    #[test]
    fn selectively_acknowledged_segments_are_skipped() {
        let (mut stream, mut repair) = (Stream::new(10, 10), repair(Params::default()));
        for packet in [10, 9, 7] {
            stream.deliver(packet);
        }
        assert_eq!(stream.ack(&mut repair, 1), [8]);
        assert_eq!(stream.ack(&mut repair, 2), [6]);
    }

    #[test]
    fn a_hole_near_the_beginning_is_copied_last() {
        let (mut stream, mut repair) = (Stream::new(10, 10), repair(Params::default()));
        assert_eq!(stream.ack(&mut repair, 1), [10]);
        for packet in 3..=9 {
            stream.deliver(packet);
        }
        assert_eq!(stream.ack(&mut repair, 10), [2], "3 to 9 have arrived, 2 has not");
        assert_eq!(stream.ack(&mut repair, 2), []);
        assert!(!repair.is_active());
    }

    #[test]
    fn only_the_first_flight_is_covered() {
        let (mut stream, mut repair) = (Stream::new(10, 30), repair(Params::default()));
        assert_eq!(stream.ack(&mut repair, 1), [10], "not 30");
    }

    #[test]
    fn the_budget_holds() {
        for (percent, copies) in [(0, 0), (20, 2), (50, 5), (100, 9)] {
            let budget = Ratio::percent(percent);
            let all: Vec<_> =
                play(Params { clock: Clock::LineRate, budget, ..Params::default() }, 10).concat();
            assert_eq!(all.len(), copies, "{percent} % of ten");
        }
    }

    /// HB §5: Halfback-forward differs in the order alone, Halfback-burst in the rate alone.
    #[test]
    fn the_variants_differ_in_one_thing_each() {
        let half = Params { budget: Ratio::new(1, 2), ..Params::default() };
        let forward = Params { order: Order::Forward, ..half };
        let each: [&[u64]; 7] = [&[2], &[3], &[4], &[5], &[6], &[], &[]];
        assert_eq!(play(forward, 7), each);
        let burst = Params { clock: Clock::LineRate, ..half };
        let each: [&[u64]; 3] = [&[10, 9, 8, 7, 6], &[], &[]];
        assert_eq!(play(burst, 3), each);
    }

    /// HB §5: "two retransmissions for every three ACKs".
    #[test]
    fn copies_may_be_fewer_than_acks_or_more() {
        let two_for_three = Params { clock: Clock::Counted(Ratio::new(2, 3)), ..Params::default() };
        let each: [&[u64]; 6] = [&[], &[10], &[9], &[], &[8], &[7]];
        assert_eq!(play(two_for_three, 6), each);
        let two_for_one = Params { clock: Clock::Counted(Ratio::new(2, 1)), ..Params::default() };
        let each: [&[u64]; 3] = [&[10, 9], &[8, 7], &[6, 5]];
        assert_eq!(play(two_for_one, 3), each);
    }

    #[test]
    fn congestion_ends_the_copies_only_if_configured() {
        for (stops_at_congestion, copies) in [(false, Vec::from([9])), (true, Vec::new())] {
            let mut stream = Stream::new(10, 10);
            let mut repair = repair(Params { stops_at_congestion, ..Params::default() });
            assert_eq!(stream.ack(&mut repair, 1), [10]);
            repair.on_congestion();
            assert_eq!(stream.ack(&mut repair, 2), copies);
        }
    }
}
