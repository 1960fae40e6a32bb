//! Packets that a relay could not take or send.

/// DropReason a packet could not be taken or sent, though no element dropped it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RelayError {
    /// The device or socket takes no more.
    Full,
    /// Nobody is there: a connection refused, a device that went down.
    Gone,
    /// The client was silent for too long and has been forgotten, or there are too many.
    NoClient,
    /// It is no packet of a protocol that is known here.
    Malformed,
    /// It is for neighbours only, as a kernel sends them by itself; no router forwards it.
    LinkLocal,
    /// It is for somebody beyond this machine, and only TCP and UDP get there.
    Beyond,
    /// The system said something else.
    Other,
}

impl RelayError {
    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "device full",
            Self::Gone => "nobody there",
            Self::NoClient => "no client",
            Self::Malformed => "malformed",
            Self::LinkLocal => "for neighbours only",
            Self::Beyond => "not carried beyond this machine",
            Self::Other => "system error",
        }
    }
}
