//! A scheme's row of the [catalogue](crate::catalogue), as its file declares it.

/// A scheme's row, as its file declares it.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The scheme's name, in lower case with hyphens. Names are read without regard to case and
    /// hyphens.
    pub name: &'static str,
    /// Other names of its default setting in papers.
    pub also: &'static [&'static str],
    /// Summary in a few words.
    pub summary: &'static str,
    /// Prior knowledge that it needs, unless its parameters differ
    /// ([`Requirements::needs`](crate::scheme::Requirements::needs)).
    pub needs: Needs,
    /// True if its default setting is part of comparisons without an explicit list of schemes.
    pub is_compared: bool,
    /// Settings of it, or of others, that have names of their own and are compared too.
    pub presets: &'static [Preset],
    /// The transport's own start that it equals by default.
    pub native: Option<Native>,
    /// The reason why a transport over UDP sockets, such as QUIC, cannot carry it.
    pub not_over_udp: Option<&'static str>,
    /// The reason why Linux TCP does not carry it, as `headstart tcp` extends the kernel.
    pub not_over_tcp: Option<&'static str>,
}

impl About {
    /// A scheme that is compared, and that every transport can carry but the kernel's TCP, to
    /// which it has not been ported.
    #[must_use]
    pub const fn new(name: &'static str, needs: Needs, summary: &'static str) -> Self {
        Self {
            name,
            also: &[],
            summary,
            needs,
            is_compared: true,
            presets: &[],
            native: None,
            not_over_udp: None,
            not_over_tcp: Some("it has not been ported to the kernel"),
        }
    }

    /// This row, of a scheme that `headstart tcp` has.
    #[must_use]
    pub const fn over_tcp(mut self) -> Self {
        self.not_over_tcp = None;
        self
    }

    /// This row, with the reason why `headstart tcp` cannot have the scheme.
    #[must_use]
    pub const fn not_over_tcp(mut self, reason: &'static str) -> Self {
        self.not_over_tcp = Some(reason);
        self
    }
}

/// A setting with a name of its own.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The setting's own name.
    pub name: &'static str,
    /// The scheme and its parameters, in canonical spelling.
    pub text: &'static str,
    /// Summary in a few words.
    pub summary: &'static str,
}

/// Prior knowledge that a scheme needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing but the handshake.
    Nothing,
    /// The size of the flow.
    FlowSize,
    /// A record of the peer.
    History,
    /// The peer's hint.
    Hint,
    /// Participation of every router on the path.
    Routers,
}

impl Needs {
    /// The need in words; empty for [`Self::Nothing`].
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::FlowSize => "flow size",
            Self::History => "history",
            Self::Hint => "hint",
            Self::Routers => "routers",
        }
    }
}

/// Servers that run schemes, by the schemes that each can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// `headstart serve` and `headstart proxy`, and other servers on noq.
    Serve,
    /// A server on quinn or s2n-quic, whose congestion controllers cannot ask for copies.
    Quinn,
    /// A server over the kernel's TCP, by `headstart tcp`.
    Tcp,
}

/// Starts built into transports: the only ones of a kernel's TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Native {
    /// Slow start from ten segments until a loss.
    SlowStart,
    /// Slow start from ten segments until Linux's HyStart ends it.
    LinuxHyStart,
    /// BBR.
    Bbr,
}
