//! A connection's sender events in order: for simulations and tests.
//!
//! Recorded only after [`Handle::keep_journal`](crate::Handle::keep_journal), without a bound:
//! take it regularly.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use headstart_host::locked;
use headstart_startup::trace::SenderTrace;
use headstart_units::Time;

/// An event of a sender, and its time. The stack does not report its backlog: `unsent` is zero.
pub type JournalEntry = (Time, SenderTrace);

/// Entries not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    is_kept: AtomicBool,
    entries: Mutex<Vec<JournalEntry>>,
}

impl Journal {
    pub fn keep(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }

    pub fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::Relaxed)
    }

    pub fn add(&self, entry: JournalEntry) {
        locked(&self.entries).push(entry);
    }

    pub fn take(&self) -> Vec<JournalEntry> {
        std::mem::take(&mut *locked(&self.entries))
    }
}
