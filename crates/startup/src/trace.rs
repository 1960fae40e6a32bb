//! A sender's trace, event by event: the same for every transport that a scheme runs on, so that
//! whatever reads a trace reads all.
//!
//! # Units
//!
//! A transport with a byte stream gives offsets in it, and payloads. Over QUIC, where lost data
//! leaves in another packet, they are those of packets in the order in which they left, headers
//! included.

use headstart_units::{Bytes, Rate, Span};

use crate::event::Transmission;

/// What happened at a sender, and how the sender stood afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderTrace {
    /// What happened.
    pub event: SenderEvent,
    /// Bytes in flight.
    pub in_flight: Bytes,
    /// What the application has handed over and was never sent.
    pub unsent: Bytes,
    /// The window.
    pub window: Bytes,
    /// The pace, if the scheme sets one.
    pub pace: Option<Rate>,
    /// The smoothed RTT.
    pub smoothed_rtt: Span,
    /// The phase, in the scheme's words.
    pub phase: &'static str,
    /// Loss recovery is under way.
    pub in_recovery: bool,
}

/// What happened at a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderEvent {
    /// The handshake was through.
    Established,
    /// A segment left.
    Sent {
        /// Where in the stream it begins.
        offset: u64,
        /// Its payload.
        payload: Bytes,
        /// Which sending it was.
        transmission: Transmission,
    },
    /// Data was acknowledged.
    Acked {
        /// Everything before this offset has arrived.
        acknowledged: u64,
        /// Newly acknowledged, selectively or cumulatively.
        newly: Bytes,
    },
    /// A segment was declared lost.
    Lost {
        /// Where in the stream it begins.
        offset: u64,
        /// Its payload.
        payload: Bytes,
    },
    /// The retransmission timer went off.
    Timeout,
}
