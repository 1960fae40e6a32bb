//! A sender's counters.

use headstart_units::Bytes;

/// Counters. Sizes are those that the transport reports: over QUIC, of packets without UDP and IP
/// headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Bytes sent since it began to send data, copies excluded.
    pub sent: Bytes,
    /// Bytes acknowledged.
    pub delivered: Bytes,
    /// Bytes sent before the first acknowledgement of any of them.
    pub first_round: Bytes,
    /// Bytes of the first flight.
    pub first_flight: Bytes,
    /// Before any loss it sent more than slow start would have
    /// ([`sent_by_slow_start`](super::sent_by_slow_start)).
    pub is_ahead: bool,
    /// Bytes declared lost.
    pub lost: Bytes,
    /// Bytes of the first flight declared lost.
    pub first_flight_lost: Bytes,
    /// Copies of datagrams sent.
    pub copies: u64,
    /// Bytes of copies sent.
    pub copy_bytes: Bytes,
    /// Congestion marks that reduced the window.
    pub marks: u64,
    /// Losses found spurious.
    pub spurious: u64,
    /// Persistent congestion, as detected by the transport.
    pub timeouts: u64,
}

impl Tally {
    /// Bytes sent, copies included: the load on the path.
    #[must_use]
    pub fn sent_with_copies(&self) -> Bytes {
        self.sent + self.copy_bytes
    }
}
