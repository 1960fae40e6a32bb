//! Estimates, and for each kind its share that a transport can expect.

use core::fmt;

use headstart_startup::prior::Access;
use headstart_units::{Rate, Ratio, Span};

/// Sources of estimates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A value that the user gives.
    Explicit,
    /// The largest rate seen on this network.
    Past,
    /// The Ethernet link.
    Ethernet,
}

impl Source {
    /// All sources, in order of priority.
    pub const ALL: [Self; 3] = [Self::Explicit, Self::Past, Self::Ethernet];

    /// The name in tables and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Explicit => "explicit",
            Self::Past => "past",
            Self::Ethernet => "ethernet",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Interpretation of an estimate's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A user's value, taken as it is.
    Explicit,
    /// A rate achieved by a transport.
    Measured,
    /// An upper bound.
    Bound,
}

impl fmt::Display for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Explicit => "given",
            Self::Measured => "measured",
            Self::Bound => "upper bound",
        })
    }
}

/// A usable estimate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The rate that the source reports.
    pub reported: Rate,
    /// The rate that a transport can expect.
    pub expected: Rate,
    /// The kind of access link.
    pub access: Access,
    /// Age of the value; `None` if it is current.
    pub age: Option<Span>,
    /// Interpretation of the number.
    pub meaning: Meaning,
    /// Origin, in a few words.
    pub detail: String,
}

/// Reasons why a source has no usable estimate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// The source does not exist here, or was not queried.
    Absent(String),
    /// The source's answer was rejected.
    Refused(String),
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(reason) => f.write_str(reason),
            Self::Refused(reason) => write!(f, "not believed: {reason}"),
        }
    }
}

/// Answer of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The source that was queried.
    pub source: Source,
    /// Estimate of the source.
    pub outcome: Result<Estimate, Unavailable>,
}

/// Share of an Ethernet link's speed that arrives: 1448 of 1538 bytes.
pub const ETHERNET_SHARE: Ratio = Ratio::percent(94);

/// Lowest and highest plausible rate of an access link.
const MIN_RATE: Rate = Rate::from_bytes_per_sec(8_000);
const MAX_RATE: Rate = Rate::from_mbit_per_sec(400_000);

/// Rejects a rate that no access link has: less than 64 kbit/s, more than 400 Gbit/s.
///
/// # Errors
/// The rate found and the range expected.
pub fn plausible(rate: Rate) -> Result<Rate, String> {
    if (MIN_RATE..=MAX_RATE).contains(&rate) {
        return Ok(rate);
    }
    Err(format!("found a rate of {rate}, expected {MIN_RATE} to {MAX_RATE}"))
}
