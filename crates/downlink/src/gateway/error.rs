//! Reasons to reject a gateway's answer.

use core::fmt;
use std::net::IpAddr;
use std::time::Duration;

use crate::estimate::quoted;

/// Reasons to reject a gateway's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No answer arrived.
    Silent {
        /// Time waited.
        waited: Duration,
    },
    /// Only hosts other than the gateway answered.
    Strangers {
        /// Number of their answers.
        count: usize,
    },
    /// A malformed answer to the search.
    Discovery {
        /// The defect.
        why: &'static str,
    },
    /// Not an HTTP URL.
    Url {
        /// The text found.
        found: String,
    },
    /// A URL that names another host than the one that answered.
    Elsewhere {
        /// The text found.
        found: String,
        /// The host that answered.
        host: IpAddr,
    },
    /// A redirection.
    Redirected {
        /// Its destination.
        to: String,
    },
    /// A password is required.
    Password,
    /// A status other than success.
    Status {
        /// The status code.
        code: u16,
    },
    /// An answer above the size limit.
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The time limit passed.
    TimedOut,
    /// The connection failed, or the peer's HTTP is invalid.
    Broken {
        /// The HTTP client's error.
        why: String,
    },
    /// No XML, or XML that is refused.
    Xml {
        /// The parser's error.
        why: String,
    },
    /// No service reports the line.
    NoService,
    /// The service refused the action (CIC §2.4, UDA §3.2.2).
    Fault {
        /// UPnP's code, if there is one.
        code: Option<u32>,
        /// Its description.
        text: String,
    },
    /// An element is missing.
    Missing {
        /// Name of the element.
        what: &'static str,
    },
    /// An implausible rate.
    Rate {
        /// The rate found, and the range expected.
        why: String,
    },
    /// The line is down.
    Down,
    /// A system call failed.
    System {
        /// The system's error.
        why: String,
    },
}

impl Error {
    /// True if no gateway is there, rather than one with a wrong answer.
    #[must_use]
    pub const fn is_absence(&self) -> bool {
        matches!(self, Self::Silent { .. } | Self::Strangers { .. } | Self::NoService)
    }

    /// True if this host or the path failed.
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
