//! What an answer is, and by how much each kind is scaled down to what a transport can get.

use core::fmt;

use headstart_startup::prior::Access;
use headstart_units::{Rate, Ratio, Span};

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A person.
    Explicit,
    /// The largest rate seen on this network.
    Past,
    /// The home gateway.
    Gateway,
    /// The radio.
    Wifi,
    /// The wire.
    Ethernet,
}

impl Source {
    /// All, the most trusted first.
    pub const ALL: [Self; 5] = [Self::Explicit, Self::Past, Self::Gateway, Self::Wifi, Self::Ethernet];

    /// The name in tables and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Explicit => "explicit",
            Self::Past => "past",
            Self::Gateway => "gateway",
            Self::Wifi => "wifi",
            Self::Ethernet => "ethernet",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What an answer's number means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// What somebody said, to be taken as it is.
    Told,
    /// What a transport really got.
    Measured,
    /// What the access line carries.
    Line,
    /// Not more than this, and nobody knows how much less.
    Bound,
}

impl fmt::Display for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Told => "told",
            Self::Measured => "measured",
            Self::Line => "line rate",
            Self::Bound => "upper bound",
        })
    }
}

/// An answer that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The rate as the source says it.
    pub says: Rate,
    /// What of it a transport can expect.
    pub expects: Rate,
    /// The kind of access link.
    pub access: Access,
    /// How old it is; `None` if it was asked for just now.
    pub age: Option<Span>,
    /// What the number means.
    pub meaning: Meaning,
    /// Where it comes from, in a few words.
    pub detail: String,
}

/// Why there is no answer that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// There is no such thing here, or nothing was asked.
    Absent(String),
    /// It answered, but not so that it could be believed.
    Refused(String),
    /// It could not be asked.
    Failed(String),
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(why) => f.write_str(why),
            Self::Refused(why) => write!(f, "not believed: {why}"),
            Self::Failed(why) => write!(f, "failed: {why}"),
        }
    }
}

/// What one source had to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Who.
    pub source: Source,
    /// What.
    pub outcome: Result<Estimate, Unavailable>,
}

/// What of a line's rate arrives as payload.
///
/// The rate of a digital subscriber line counts the frames (or ATM cells) of the line: of 1492
/// bytes of IP, ATM needs 32 cells of 53 bytes, which leaves 0.85 of it to payload; packet mode
/// leaves 0.93. The smaller is taken, for nobody says which. Others are provisioned in Ethernet
/// frames: 1448 bytes of payload take 1538 on the wire.
#[must_use]
pub const fn share_of_line(access: Access) -> Ratio {
    match access {
        Access::Dsl => Ratio::percent(85),
        Access::ThreeG | Access::Lte => Ratio::percent(75),
        Access::Ethernet | Access::Cable | Access::Wifi | Access::Unknown => Ratio::percent(94),
    }
}

/// What of a radio's bit rate arrives: half. Preambles, acknowledgements, contention and the other
/// direction share the air (BS §3.1: from the bit rate "an approximate bandwidth can be derived").
pub const SHARE_OF_AIR: Ratio = Ratio::percent(50);

/// What of a wire's speed arrives: 1448 of 1538 bytes.
pub const SHARE_OF_WIRE: Ratio = Ratio::percent(94);

/// Nobody's link is slower and still worth a hint, or faster.
const LEAST: Rate = Rate::from_bytes_per_sec(8_000);
const MOST: Rate = Rate::from_mbit_per_sec(400_000);

/// Refuses a rate that no access link has: less than 64 kbit/s, more than 400 Gbit/s.
///
/// # Errors
/// What was found and what was expected.
pub fn plausible(rate: Rate) -> Result<Rate, String> {
    if (LEAST..=MOST).contains(&rate) {
        return Ok(rate);
    }
    Err(format!("found a rate of {rate}, expected {LEAST} to {MOST}"))
}

/// A peer's text for people to read: short, and without anything that a terminal would obey.
#[must_use]
pub fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut short: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push_str("...");
    }
    format!("`{short}`")
}
