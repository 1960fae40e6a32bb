//! Why a gateway's answer is not used.

use core::fmt;
use std::net::IpAddr;
use std::time::Duration;

use crate::estimate::quoted;

/// Why a gateway's answer is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// Nobody answered.
    Silent {
        /// How long we waited.
        waited: Duration,
    },
    /// Somebody else answered, and only the gateway is believed.
    Strangers {
        /// How many answers came from elsewhere.
        count: usize,
    },
    /// An answer to the search that is none.
    Discovery {
        /// What is wrong with it.
        why: &'static str,
    },
    /// A URL that is none, or not of HTTP.
    Url {
        /// The text found.
        found: String,
    },
    /// A URL that names another host than the one that answered.
    Elsewhere {
        /// The text found.
        found: String,
        /// Who answered.
        host: IpAddr,
    },
    /// It wanted to send us on.
    Redirected {
        /// Where to.
        to: String,
    },
    /// It asks for a password.
    Password,
    /// Another status than that of success.
    Status {
        /// Which.
        code: u16,
    },
    /// More than anybody needs.
    TooLarge {
        /// How much was allowed.
        limit: u64,
    },
    /// Time ran out.
    TimedOut,
    /// It broke the connection, or never made one, or does not speak HTTP.
    Broken {
        /// What the client says of it.
        why: String,
    },
    /// No XML, or XML that is refused.
    Xml {
        /// What the parser says of it.
        why: String,
    },
    /// It has no service that tells of its line.
    NoService,
    /// It knows the service but refuses the action (CIC §2.4, UDA §3.2.2).
    Fault {
        /// UPnP's code, if there is one.
        code: Option<u32>,
        /// Its description.
        text: String,
    },
    /// The answer lacks something.
    Missing {
        /// The element.
        what: &'static str,
    },
    /// A rate that cannot be.
    Rate {
        /// What was found, and what was expected.
        why: String,
    },
    /// Its line is down.
    Down,
    /// The system refused.
    System {
        /// What it said.
        why: String,
    },
}

impl Error {
    /// Whether nobody was there: no answer is no wrong answer.
    #[must_use]
    pub const fn is_absence(&self) -> bool {
        matches!(self, Self::Silent { .. } | Self::Strangers { .. } | Self::NoService)
    }

    /// Whether it is this side's trouble, or the path's.
    #[must_use]
    pub const fn is_failure(&self) -> bool {
        matches!(self, Self::System { .. } | Self::TimedOut | Self::Broken { .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent { waited } => write!(f, "no gateway answered within {} ms", waited.as_millis()),
            Self::Strangers { count } => {
                write!(f, "the gateway did not answer; {count} answers from elsewhere were ignored")
            }
            Self::Discovery { why } => write!(f, "an answer to the search {why}"),
            Self::Url { found } => write!(f, "found {} for a URL, expected one of HTTP", quoted(found)),
            Self::Elsewhere { found, host } => {
                write!(f, "found the URL {}, expected one at {host}, which answered", quoted(found))
            }
            Self::Redirected { to } => write!(f, "redirected to {}, expected an answer", quoted(to)),
            Self::Password => f.write_str("it asks for a password"),
            Self::Status { code } => write!(f, "found HTTP status {code}, expected 200"),
            Self::TooLarge { limit } => write!(f, "found more than {limit} bytes, expected a description"),
            Self::TimedOut => f.write_str("time ran out before it had answered"),
            Self::Broken { why } => write!(f, "the connection broke: {}", quoted(why)),
            Self::Xml { why } => write!(f, "found no XML that is accepted: {}", quoted(why)),
            Self::NoService => f.write_str("it has no service that tells of its line"),
            Self::Fault { code: Some(code), text } => write!(f, "it refused: error {code}, {}", quoted(text)),
            Self::Fault { code: None, text } => write!(f, "it refused: {}", quoted(text)),
            Self::Missing { what } => write!(f, "found an answer without {what}"),
            Self::Rate { why } => f.write_str(why),
            Self::Down => f.write_str("its line is down"),
            Self::System { why } => write!(f, "the system refused: {why}"),
        }
    }
}

impl core::error::Error for Error {}
