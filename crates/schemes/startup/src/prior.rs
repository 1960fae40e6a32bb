//! The prior: all that is known before the first byte.
//!
//! Its values are estimates, each with its source and age; a scheme never fetches one itself.

use headstart_units::{Bytes, Rate, Span, Time};

use crate::history::{SharedCredit, SharedRecord};

/// Everything known when the connection is established.
#[derive(Clone, Copy, Debug)]
pub struct Prior {
    /// Time of establishment.
    pub now: Time,
    /// Maximum segment size: payload bytes of a full packet.
    pub mss: Bytes,
    /// Round-trip time of the handshake.
    pub handshake_rtt: Span,
    /// A packet of the handshake was retransmitted, so `handshake_rtt` may be ambiguous and the
    /// path may be congested.
    pub handshake_retransmitted: bool,
    /// Bytes that the application has ready or announces; `None` if unknown.
    pub flow_size: Option<Bytes>,
    /// The window that the receiver advertised, in bytes.
    pub receive_window: Bytes,
    /// The transport's initial window in bytes (RFC 9002 §7.2). Zero: not set, and each connection
    /// carries one flow, as in the papers' set-ups.
    pub initial_window: Bytes,
    /// The path record of earlier connections to this peer.
    pub history: Option<SharedRecord>,
    /// The credit shared with this host's other first flights to the peer; `None`: no accounting.
    pub shared_credit: Option<SharedCredit>,
    /// The peer's hint of its own access link.
    pub hint: Option<Hint>,
    /// The rate that every router on the path granted (RFC 4782), or that routers stamped (RCP).
    pub granted: Option<Rate>,
}

impl Prior {
    /// A prior with only the values that every handshake provides.
    #[must_use]
    pub const fn bare(now: Time, mss: Bytes, handshake_rtt: Span, receive_window: Bytes) -> Self {
        Self {
            now,
            mss,
            handshake_rtt,
            handshake_retransmitted: false,
            flow_size: None,
            receive_window,
            initial_window: Bytes::ZERO,
            history: None,
            shared_credit: None,
            hint: None,
            granted: None,
        }
    }

    /// The most that can usefully be sent at once: the receiver bounds it, and a known flow size.
    #[must_use]
    pub fn sendable(&self) -> Bytes {
        self.flow_size.unwrap_or(Bytes::MAX).min(self.receive_window)
    }
}

/// A client's hint of its access link (Blitzstart §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The client's estimate of its downlink bandwidth.
    pub bandwidth: Rate,
    /// The kind of access link.
    pub access: Access,
}

/// The access technologies a client can name (Blitzstart §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Ethernet to a gateway of unknown technology.
    Ethernet,
    /// Digital subscriber line.
    Dsl,
    /// Cable (DOCSIS).
    Cable,
    /// Wireless LAN.
    Wifi,
    /// Third-generation mobile.
    ThreeG,
    /// Fourth-generation mobile.
    Lte,
    /// Anything else, or not announced.
    Unknown,
}
