//! What travels: headers reduced to what the model needs, sizes as on the link.

use headstart_units::Bytes;

/// A flow's place in the table of live flows; the generation tells it from a later flow in the same place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowId {
    /// Index into the table.
    pub slot: u32,
    /// How often the slot had been used before, modulo 2^16.
    pub generation: u16,
}

/// Explicit congestion notification (RFC 3168), as far as the model needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not capable.
    #[default]
    NotCapable,
    /// Capable (ECT).
    Capable,
    /// Congestion experienced.
    Marked,
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Whose it is: [`FlowId::slot`].
    pub slot: u32,
    /// Whose it is: [`FlowId::generation`].
    pub generation: u16,
    /// Bytes on the link, headers included.
    pub size: u16,
    /// Its route: an index into the path's table.
    pub route: u16,
    /// Which element of its route it crosses next.
    pub hop: u8,
    /// Congestion notification.
    pub ecn: Ecn,
    /// What it carries.
    pub body: Body,
}

impl Packet {
    /// Whose it is.
    #[must_use]
    #[inline]
    pub const fn flow(&self) -> FlowId {
        FlowId { slot: self.slot, generation: self.generation }
    }
}

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Opens a connection; `attempt` counts from zero.
    Syn {
        /// Which attempt this is.
        attempt: u8,
    },
    /// Answers the SYN of that attempt.
    SynAck {
        /// The attempt that is answered.
        attempt: u8,
    },
    /// Completes the handshake of a connection that the receiver opened, or asks for the next message.
    Request {
        /// How many messages have been asked for, this one included.
        number: u32,
        /// The SYN-ACK's attempt, echoed: gives the server its handshake RTT.
        attempt: u8,
    },
    /// One segment of the stream.
    Data {
        /// Number of the segment.
        segment: u32,
        /// Number of this transmission, over the whole connection: what timestamps tell a real TCP
        /// and packet numbers tell QUIC.
        transmission: u32,
    },
    /// An acknowledgement.
    Ack(Acknowledgement),
}

/// An acknowledgement: cumulative, selective, and what set it off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The first segment not yet received.
    pub cumulative: u32,
    /// The segment whose arrival set it off.
    pub trigger: u32,
    /// The transmission of that segment that arrived.
    pub transmission: u32,
    /// Different segments received so far.
    pub received: u32,
    /// Up to three ranges `start..end` received beyond `cumulative`, most recent first (RFC 2018); empty ones are unused.
    pub blocks: [Block; 3],
}

/// Segments `start..end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// First.
    pub start: u32,
    /// One past the last.
    pub end: u32,
}

impl headstart_net::Packet for Packet {
    #[inline]
    fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.size))
    }

    fn is_ecn_capable(&self) -> bool {
        self.ecn != Ecn::NotCapable
    }

    fn mark_congestion_experienced(&mut self) {
        self.ecn = Ecn::Marked;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet and its due time share one cache line: the simulator's speed hangs on it.
    #[test]
    fn a_packet_fits_a_cache_line_with_its_time() {
        assert!(size_of::<Packet>() <= 56, "{}", size_of::<Packet>());
    }
}
