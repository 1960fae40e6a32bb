//! Proactive retransmission: which bytes to send again without a detected loss.
//!
//! Window and pace limit how many bytes leave; repair selects *which* are sent again. A transport
//! reports every original transmission and every ack to a repair policy, and after its
//! retransmissions and new data it requests the next segment to copy. A transport that cannot send
//! a chosen segment again must refuse the scheme at configuration time.

pub mod early;
pub mod proactive;
pub mod ropr;

use headstart_units::Bytes;

pub use early::Early;
pub use proactive::Proactive;
pub use ropr::Ropr;

/// A transport's view of its segments, numbered from zero in the order of the stream.
pub trait Segments {
    /// The first segment not yet acknowledged cumulatively.
    fn first_unacked(&self) -> u64;
    /// One past the last segment ever sent in order.
    fn end(&self) -> u64;
    /// One past the last segment of the data at hand that the receiver has room for, sent or not.
    /// By default only what was sent: such a transport refuses schemes of [`Early`].
    fn written_end(&self) -> u64 {
        self.end()
    }
    /// True if it was acknowledged, cumulatively or selectively.
    fn is_delivered(&self, segment: u64) -> bool;
    /// Offset of the segment's first byte in the stream.
    fn offset(&self, segment: u64) -> Bytes;
    /// Every byte of the first flight has been sent once.
    fn is_first_flight_sent(&self) -> bool;
}

/// A repair policy.
#[derive(Clone, Copy, Debug, Default)]
pub enum Repair {
    /// No copies: retransmission only after a detected loss or a timeout.
    #[default]
    Reactive,
    /// Copies of the first flight, clocked by its acks (Halfback).
    Ropr(Ropr),
    /// Every packet twice (Proactive TCP).
    Proactive(Proactive),
    /// The data's end before its turn, at low priorities (RC3).
    Early(Early),
}

impl Repair {
    /// An original transmission of `segment` left.
    #[inline]
    pub fn on_sent(&mut self, segment: u64) {
        if let Self::Proactive(proactive) = self {
            proactive.on_sent(segment);
        }
    }

    /// An ack arrived that acknowledged so many new packets.
    #[inline]
    pub fn on_ack(&mut self, packets: u64, segments: &impl Segments) {
        if let Self::Ropr(ropr) = self {
            ropr.on_ack(packets, segments);
        }
    }

    /// A congestion signal: a loss, a mark, a timeout.
    #[inline]
    pub fn on_congestion(&mut self) {
        if let Self::Ropr(ropr) = self {
            ropr.on_congestion();
        }
    }

    /// The next segment to copy, or to send before its turn, if any. A returned segment counts as
    /// sent.
    #[inline]
    pub fn next(&mut self, segments: &impl Segments) -> Option<u64> {
        match self {
            Self::Reactive => None,
            Self::Ropr(ropr) => ropr.next(segments),
            Self::Proactive(proactive) => proactive.next(segments),
            Self::Early(early) => early.next(segments),
        }
    }

    /// Priority at which the segment that [`Self::next`] returned leaves. Zero is the priority of
    /// all other packets; higher numbers are served after lower ones.
    #[must_use]
    pub fn priority(&self) -> u8 {
        if let Self::Early(early) = self { early.priority() } else { 0 }
    }

    /// True if it may still return a segment; else a transport may skip the call.
    #[must_use]
    #[inline]
    pub const fn is_active(&self) -> bool {
        match self {
            Self::Reactive => false,
            Self::Ropr(ropr) => !ropr.is_over(),
            Self::Proactive(_) => true,
            Self::Early(early) => !early.is_over(),
        }
    }

    /// True if copies precede new data, each right behind its original.
    #[must_use]
    #[inline]
    pub const fn is_prompt(&self) -> bool {
        matches!(self, Self::Proactive(_))
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    /// A stream of segments of 1000 bytes, counted from one as the papers do.
    pub struct Stream {
        delivered: Vec<bool>,
        sent: u64,
        flight: u64,
        written: u64,
    }

    impl Stream {
        /// `flight` segments in the first flight, of which `sent` have been sent.
        pub fn new(flight: u64, sent: u64) -> Self {
            Self { delivered: vec![false; 1000], sent, flight, written: sent }
        }

        /// The application has written up to packet `last`.
        pub fn written(self, last: u64) -> Self {
            Self { written: last, ..self }
        }

        /// Sends up to packet `last`.
        pub fn send_up_to(&mut self, last: u64) {
            self.sent = last;
        }

        /// Packet number `packet` has arrived.
        pub fn deliver(&mut self, packet: u64) {
            self.delivered[packet as usize - 1] = true;
        }

        /// An ack for `packet` arrives: returns the packets that `repair` then copies.
        pub fn ack(&mut self, repair: &mut Repair, packet: u64) -> Vec<u64> {
            self.deliver(packet);
            repair.on_ack(1, self);
            self.copies(repair)
        }

        /// The packets that `repair` copies now.
        pub fn copies(&self, repair: &mut Repair) -> Vec<u64> {
            core::iter::from_fn(|| repair.next(self)).map(|segment| segment + 1).collect()
        }
    }

    impl Segments for Stream {
        fn first_unacked(&self) -> u64 {
            self.delivered.iter().position(|&is| !is).unwrap_or(self.delivered.len()) as u64
        }
        fn end(&self) -> u64 {
            self.sent
        }
        fn written_end(&self) -> u64 {
            self.written
        }
        fn is_delivered(&self, segment: u64) -> bool {
            self.delivered[segment as usize]
        }
        fn offset(&self, segment: u64) -> Bytes {
            Bytes::new(1000) * segment
        }
        fn is_first_flight_sent(&self) -> bool {
            self.sent >= self.flight
        }
    }

    #[test]
    fn without_a_policy_nothing_is_copied() {
        let mut stream = Stream::new(10, 10);
        let mut repair = Repair::default();
        assert_eq!(stream.ack(&mut repair, 1), []);
        assert!(!repair.is_active());
    }

    #[test]
    fn a_policy_is_small_enough_to_be_kept_for_every_flow() {
        assert!(size_of::<Repair>() <= 96, "{} bytes", size_of::<Repair>());
    }
}
