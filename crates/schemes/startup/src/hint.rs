//! A client's hint of its access link: the value on the wire and its quantisation.
//!
//! Source: J. Rüth, K. Wolsing, M. Serror, K. Wehrle, O. Hohlfeld, "Blitz-starting QUIC
//! Connections", technical report, RWTH Aachen (BS below).
//!
//! BS §3 lets a client signal its access technology and an estimate of its bandwidth inside QUIC.
//! Here both travel as the value of one transport parameter (RFC 9000 §7.4) whose number is
//! [`PARAMETER`]; other endpoints ignore it. A client calls [`Hint::quantised`], then
//! [`Hint::emit`]; a server [`Hint::parse`]s the value and limits it by a [`Guard`] or a policy of
//! its own.
//!
//! ```text
//!   0                   1                   2                   3
//!   0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//!  +---------------+---------------+-------------------------------+
//!  |  version 1    |  technology   |  bandwidth in kbit/s ...      |
//!  +---------------+---------------+-------------------------------+
//!  |  ... 32 bits, big-endian      |
//!  +-------------------------------+
//! ```
//!
//! # Deviations
//!
//! - BS gives no format. This one has a fixed length, so that its size does not reveal the value.
//! - BS §7 leaves the quantisation open. [`Steps`] documents the one used here and its cost.

mod guard;
mod steps;

use core::fmt;
use core::str::FromStr;

use headstart_units::Rate;

use crate::prior::{Access, Hint};

pub use guard::Guard;
pub use steps::Steps;

/// The number of the transport parameter. RFC 9000 §22.3: drawn at random from the whole range, to
/// avoid collisions with other experiments; not 31 n + 27, which §18.1 reserves for exercise.
pub const PARAMETER: u64 = 0x1e84_b5c9_07d3_6a42;

/// Size of the parameter's value in bytes.
pub const SIZE: usize = 6;

/// The only version of the format.
pub const VERSION: u8 = 1;

/// Limit of a plausible access link: 400 Gbit/s, the fastest Ethernet that is sold.
const MAX_BANDWIDTH: Rate = Rate::from_mbit_per_sec(400_000);

/// The reason why bytes are no hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// A hint has another length.
    Size {
        /// Number of bytes found.
        found: usize,
    },
    /// A version that is not known here, perhaps of a newer client.
    Version {
        /// The version found.
        found: u8,
    },
    /// A number that no access technology has here.
    Technology {
        /// The number found.
        found: u8,
    },
    /// A bandwidth of zero, impossible for a connected client.
    Nothing,
    /// A bandwidth that no access link has.
    Implausible {
        /// The bandwidth found.
        found: Rate,
    },
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Size { found } => write!(f, "found {found} bytes of hint, expected {SIZE}"),
            Self::Version { found } => write!(f, "found hint version {found}, expected {VERSION}"),
            Self::Technology { found } => {
                let last = Access::ALL.len() - 1;
                write!(f, "found access technology {found}, expected 0 to {last}")
            }
            Self::Nothing => f.write_str("found a bandwidth of 0 bit/s, expected at least 1 kbit/s"),
            Self::Implausible { found } => {
                write!(f, "found a bandwidth of {found}, expected at most {MAX_BANDWIDTH}")
            }
        }
    }
}

impl core::error::Error for Malformed {}

impl Hint {
    /// This hint, rounded down to `steps`; `None` if it is below the smallest step.
    #[must_use]
    pub fn quantised(self, steps: Steps) -> Option<Self> {
        Some(Self { bandwidth: steps.floor(self.bandwidth)?, ..self })
    }

    /// The value of the transport parameter, with the bandwidth rounded down to whole kbit/s;
    /// `None` for less than one. A bandwidth above [`Self::parse`]'s limit is sent as that.
    #[must_use]
    pub fn emit(self) -> Option<[u8; SIZE]> {
        let kbit =
            u32::try_from(self.bandwidth.min(MAX_BANDWIDTH).as_bytes_per_sec() / BYTES_PER_KBIT).ok()?;
        let [b0, b1, b2, b3] = kbit.to_be_bytes();
        (kbit > 0).then_some([VERSION, self.access.code(), b0, b1, b2, b3])
    }

    /// Reads the value of the transport parameter.
    ///
    /// # Errors
    /// If it is not exactly one hint of a version known here, or its bandwidth is impossible. A
    /// server then continues without a hint: a peer with a later version is no attacker.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        // Check the version first: a later one may have another length.
        match bytes.first() {
            Some(&found) if found != VERSION => return Err(Malformed::Version { found }),
            _ => {}
        }
        let size = Malformed::Size { found: bytes.len() };
        let [_, code, bandwidth @ ..]: [u8; SIZE] = bytes.try_into().map_err(|_| size)?;
        let access = Access::from_code(code).ok_or(Malformed::Technology { found: code })?;
        let kbit = u64::from(u32::from_be_bytes(bandwidth));
        let bandwidth = Rate::from_bytes_per_sec(kbit * BYTES_PER_KBIT);
        if bandwidth.is_zero() {
            return Err(Malformed::Nothing);
        }
        if bandwidth > MAX_BANDWIDTH {
            return Err(Malformed::Implausible { found: bandwidth });
        }
        Ok(Self { bandwidth, access })
    }
}

/// 1000 bits.
const BYTES_PER_KBIT: u64 = 125;

impl Access {
    /// All access technologies, in the order of their numbers on the wire.
    pub const ALL: [Self; 7] =
        [Self::Unknown, Self::Ethernet, Self::Dsl, Self::Cable, Self::Wifi, Self::ThreeG, Self::Lte];

    /// The name on a command line and in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Ethernet => "ethernet",
            Self::Dsl => "dsl",
            Self::Cable => "cable",
            Self::Wifi => "wifi",
            Self::ThreeG => "3g",
            Self::Lte => "lte",
        }
    }

    const fn code(self) -> u8 {
        match self {
            Self::Unknown => 0,
            Self::Ethernet => 1,
            Self::Dsl => 2,
            Self::Cable => 3,
            Self::Wifi => 4,
            Self::ThreeG => 5,
            Self::Lte => 6,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no access technology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownAccess;

impl fmt::Display for UnknownAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected an access technology: ")?;
        for (index, access) in Access::ALL.iter().enumerate() {
            write!(f, "{}{access}", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownAccess {}

impl FromStr for Access {
    type Err = UnknownAccess;
    fn from_str(text: &str) -> Result<Self, UnknownAccess> {
        let named = |access: &Self| access.name().eq_ignore_ascii_case(text.trim());
        Self::ALL.into_iter().find(named).ok_or(UnknownAccess)
    }
}

#[cfg(test)]
mod tests;
