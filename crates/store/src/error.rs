//! The reasons why a history file is refused.

use core::fmt;
use std::io;
use std::path::PathBuf;

/// The reason why a history file is refused. The file is unchanged.
#[derive(Debug)]
pub struct Error {
    /// The refused file.
    pub path: PathBuf,
    /// The fault that was found.
    pub reason: Reason,
}

/// Fault of a history file.
#[derive(Debug)]
pub enum Reason {
    /// Another process has it open, or this one has already.
    InUse,
    /// The file is a folder, a device or a pipe.
    NotRegularFile,
    /// The file begins as no history does: some other program's file.
    UnknownFormat,
    /// A version that is not known here.
    Version {
        /// The version found.
        found: u32,
    },
    /// The header's checksum does not agree with it: nothing in the file can be relied upon.
    Header,
    /// The file has more slots than any history.
    TooLarge {
        /// Slots in the file.
        slots: u64,
    },
    /// The requested capacity is larger than a history can have.
    Capacity {
        /// Peers requested.
        found: usize,
    },
    /// The system refused.
    Io {
        /// The attempted operation.
        doing: &'static str,
        /// Answer of the system.
        source: io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "history file {}: ", self.path.display())?;
        match &self.reason {
            Reason::InUse => f.write_str("in use by another process, expected to be the only one"),
            Reason::NotRegularFile => f.write_str("found something that is no regular file, expected a file"),
            Reason::UnknownFormat => {
                f.write_str("found a file of another kind, expected a history; it was left as it is")
            }
            Reason::Version { found } => {
                write!(f, "found version {found}, expected {}; it was left as it is", crate::file::VERSION)
            }
            Reason::Header => f.write_str(
                "found a damaged header, so that no record can be relied upon; remove the file to begin anew",
            ),
            Reason::TooLarge { slots } => {
                write!(f, "found room for {slots} peers, expected at most {}", crate::file::MAX_SLOTS)
            }
            Reason::Capacity { found } => {
                write!(f, "found a capacity of {found} peers, expected 1 to {}", crate::file::MAX_SLOTS)
            }
            Reason::Io { doing, source } => write!(f, "cannot {doing}: {source}"),
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.reason {
            Reason::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
