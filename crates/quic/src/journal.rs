//! What a connection's sender did, event by event: for simulations and tests.
//!
//! Kept only after [`Handle::keep_journal`](crate::Handle::keep_journal), and taken piece by piece,
//! for it has no bound of its own.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use headstart_host::locked;
use headstart_startup::trace::SenderTrace;
use headstart_units::Time;

/// An event of a sender, and when it was. The stack does not say how much it holds: `unsent` is
/// zero.
pub type Entry = (Time, SenderTrace);

/// Entries that nobody has taken yet.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    is_kept: AtomicBool,
    entries: Mutex<Vec<Entry>>,
}

impl Journal {
    pub fn keep(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }

    pub fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::Relaxed)
    }

    pub fn add(&self, entry: Entry) {
        locked(&self.entries).push(entry);
    }

    pub fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut *locked(&self.entries))
    }
}
