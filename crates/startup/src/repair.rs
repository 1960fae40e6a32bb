//! Which bytes to send again before anybody asked for them.
//!
//! Window and pace say how many bytes may leave; repair says *which* are sent again. A transport
//! tells a repair policy of every original transmission and every ack, and after it has sent what
//! it could of retransmissions and new data it asks: may I send one more, and which? A transport
//! that cannot send a chosen segment again must refuse the scheme at configuration time.

use headstart_units::Bytes;

/// A transport's view of its segments, numbered from zero in the order of the stream.
pub trait Segments {
    /// The first segment not yet acknowledged cumulatively.
    fn first_unacked(&self) -> u64;
    /// One past the last segment ever sent.
    fn end(&self) -> u64;
    /// Whether the peer is known to have it, cumulatively or selectively.
    fn is_delivered(&self, segment: u64) -> bool;
    /// Payload bytes sent in order before this segment: where in the stream it begins.
    fn offset(&self, segment: u64) -> Bytes;
    /// Every byte of the first flight has been sent once.
    fn is_first_flight_sent(&self) -> bool;
}

/// A repair policy.
#[derive(Clone, Copy, Debug, Default)]
pub enum Repair {
    /// Retransmissions only when a loss was found or a timer went off.
    #[default]
    Reactive,
}

impl Repair {
    /// An original transmission of `segment` left.
    #[inline]
    pub fn on_sent(&mut self, segment: u64) {
        let _ = segment;
    }

    /// An ack arrived that acknowledged something new.
    #[inline]
    pub fn on_ack(&mut self, segments: &impl Segments) {
        let _ = segments;
    }

    /// May one more copy be sent, and of which segment? The answer is taken as sent.
    #[inline]
    pub fn next(&mut self, segments: &impl Segments) -> Option<u64> {
        let _ = segments;
        None
    }

    /// Whether it can ever answer anything but `None`: lets a transport skip the asking.
    #[must_use]
    #[inline]
    pub const fn is_active(&self) -> bool {
        !matches!(self, Self::Reactive)
    }

    /// Whether it wants to be asked before new data, not after it: each copy right behind its original.
    #[must_use]
    #[inline]
    pub const fn is_prompt(&self) -> bool {
        false
    }
}
