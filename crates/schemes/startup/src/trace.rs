//! A sender's trace, event by event, in one format for all transports and readers.
//!
//! # Units
//!
//! A transport with a byte stream reports stream offsets and payload bytes. Over QUIC, where lost
//! data is sent in another packet, offsets and sizes count packets as sent, with headers.

use headstart_units::{Bytes, Rate, Span};

use crate::event::Transmission;

/// An event at a sender, and the sender's state after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderTrace {
    /// The event.
    pub event: SenderEvent,
    /// Bytes in flight.
    pub in_flight: Bytes,
    /// Bytes that the application has written and that were never sent.
    pub unsent: Bytes,
    /// The congestion window in bytes.
    pub window: Bytes,
    /// The pacing rate, if the scheme sets one.
    pub pace: Option<Rate>,
    /// The smoothed RTT.
    pub smoothed_rtt: Span,
    /// The phase, in the scheme's terms.
    pub phase: &'static str,
    /// Loss recovery is under way.
    pub in_recovery: bool,
}

/// An event at a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderEvent {
    /// The handshake was completed.
    Established,
    /// A segment left.
    Sent {
        /// Offset of its first byte in the stream.
        offset: u64,
        /// Payload of the packet in bytes.
        payload: Bytes,
        /// Kind of the transmission.
        transmission: Transmission,
    },
    /// Data was acknowledged.
    Acked {
        /// Cumulative acknowledgement: offset in the stream before which all data has arrived.
        acknowledged: u64,
        /// Bytes newly acknowledged, selectively or cumulatively.
        newly: Bytes,
    },
    /// A segment was declared lost.
    Lost {
        /// Offset of its first byte in the stream.
        offset: u64,
        /// Payload of the packet in bytes.
        payload: Bytes,
    },
    /// The retransmission timer expired.
    Timeout,
}
