//! Packets that a relay could not receive or send.

/// Reasons why a packet was not received or sent, though no element dropped it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RelayError {
    /// The buffer of the device or socket is full.
    Full,
    /// The connection was refused, or the device went down.
    Unreachable,
    /// The client was silent for too long and has been removed, or there are too many.
    NoClient,
    /// Not a packet of a supported protocol.
    Malformed,
    /// Link-local, as a kernel sends by itself; no router forwards it.
    LinkLocal,
    /// For a destination beyond this host, where only TCP and UDP are supported.
    NotRelayed,
    /// Another error of the system.
    Other,
}

impl RelayError {
    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "device full",
            Self::Unreachable => "unreachable",
            Self::NoClient => "no client",
            Self::Malformed => "malformed",
            Self::LinkLocal => "link-local destination",
            Self::NotRelayed => "protocol not relayed",
            Self::Other => "system error",
        }
    }
}
