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
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// Another process has it open, or this one has already.
    #[error("in use by another process, expected to be the only one")]
    InUse,
    /// The file is a folder, a device or a pipe.
    #[error("found something that is no regular file, expected a file")]
    NotRegularFile,
    /// The file is another user's, and more may write it.
    #[error("found another user's file that others may write (mode {mode:o}), expected one's own")]
    Exposed {
        /// Permissions of the file.
        mode: u32,
    },
    /// The file begins as no history does: some other program's file.
    #[error("found a file of another kind, expected a history; it was left as it is")]
    UnknownFormat,
    /// A version that is not known here.
    #[error("found version {found}, expected {}; it was left as it is", crate::file::VERSION)]
    Version {
        /// The version found.
        found: u32,
    },
    /// The header's checksum does not agree with it: nothing in the file can be relied upon.
    #[error("found a damaged header, so that no record can be relied upon; remove the file to begin anew")]
    Header,
    /// The file has more slots than any history.
    #[error("found room for {slots} peers, expected at most {}", crate::file::MAX_SLOTS)]
    TooLarge {
        /// Slots in the file.
        slots: u64,
    },
    /// The requested capacity is larger than a history can have.
    #[error("found a capacity of {found} peers, expected 1 to {}", crate::file::MAX_SLOTS)]
    Capacity {
        /// Peers requested.
        found: usize,
    },
    /// The system refused.
    #[error("cannot {doing}: {source}")]
    Io {
        /// The attempted operation.
        doing: &'static str,
        /// Answer of the system.
        source: io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "history file {}: {}", self.path.display(), self.reason)
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.reason.source()
    }
}
