//! Reasons to reject a gateway's answer.

use core::fmt;
use std::net::IpAddr;
use std::time::Duration;

use crate::estimate::quoted;

/// Reasons to reject a gateway's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No answer arrived.
    NoAnswer {
        /// Time waited.
        waited: Duration,
    },
    /// Only hosts other than the gateway answered.
    OtherHosts {
        /// Number of their answers.
        count: usize,
    },
    /// A malformed answer to the search.
    Discovery {
        /// The defect.
        reason: &'static str,
    },
    /// Not an HTTP URL.
    Url {
        /// The text found.
        found: String,
    },
    /// A URL that names another host than the one that answered.
    ForeignUrl {
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
        reason: String,
    },
    /// No XML, or XML that is refused.
    Xml {
        /// The parser's error.
        reason: String,
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
        reason: String,
    },
    /// The line is down.
    Down,
    /// A system call failed.
    System {
        /// The system's error.
        reason: String,
    },
}

impl Error {
    /// True if no gateway is there, rather than one with a wrong answer.
    #[must_use]
    pub const fn is_absence(&self) -> bool {
        matches!(self, Self::NoAnswer { .. } | Self::OtherHosts { .. } | Self::NoService)
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
            Self::NoAnswer { waited } => write!(f, "no gateway answered within {} ms", waited.as_millis()),
            Self::OtherHosts { count } => {
                write!(f, "the gateway did not answer; {count} answers from elsewhere were ignored")
            }
            Self::Discovery { reason } => write!(f, "an answer to the search {reason}"),
            Self::Url { found } => write!(f, "found {} for a URL, expected one of HTTP", quoted(found)),
            Self::ForeignUrl { found, host } => {
                write!(f, "found the URL {}, expected one at {host}, which answered", quoted(found))
            }
            Self::Redirected { to } => write!(f, "redirected to {}, expected an answer", quoted(to)),
            Self::Password => f.write_str("it requires a password"),
            Self::Status { code } => write!(f, "found HTTP status {code}, expected 200"),
            Self::TooLarge { limit } => write!(f, "found more than {limit} bytes, expected a description"),
            Self::TimedOut => f.write_str("the time limit passed before it had answered"),
            Self::Broken { reason } => write!(f, "the connection failed: {}", quoted(reason)),
            Self::Xml { reason } => write!(f, "found no XML that is accepted: {}", quoted(reason)),
            Self::NoService => f.write_str("it has no service that reports its line"),
            Self::Fault { code: Some(code), text } => write!(f, "it refused: error {code}, {}", quoted(text)),
            Self::Fault { code: None, text } => write!(f, "it refused: {}", quoted(text)),
            Self::Missing { what } => write!(f, "found an answer without {what}"),
            Self::Rate { reason } => f.write_str(reason),
            Self::Down => f.write_str("its line is down"),
            Self::System { reason } => write!(f, "the system refused: {reason}"),
        }
    }
}

impl core::error::Error for Error {}
