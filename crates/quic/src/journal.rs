//! What a connection's sender did, event by event: for simulations and tests.
//!
//! Kept only after [`Handle::keep_journal`](crate::Handle::keep_journal), and taken piece by piece, for it has no bound of
//! its own.
//!
//! # Units
//!
//! Places are bytes of the scheme's packets since it began, headers included, in the order in which they left: data that was lost
//! leaves in another packet, at another place.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use headstart_host::locked;
use headstart_units::{Bytes, Rate, Span, Time};

/// What happened at a sender, and how the sender stood afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: Time,
    /// What.
    pub event: Event,
    /// The scheme's packets in flight.
    pub in_flight: Bytes,
    /// The window.
    pub window: Bytes,
    /// The pace, if the scheme sets one.
    pub pace: Option<Rate>,
    /// The smoothed RTT.
    pub smoothed_rtt: Span,
    /// The phase, in the scheme's words.
    pub phase: &'static str,
    /// Loss recovery is under way.
    pub in_recovery: bool,
}

/// What happened at a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The scheme begins: its first full packet is about to leave.
    Established,
    /// A packet left.
    Sent {
        /// Where it begins.
        place: Bytes,
        /// Its size.
        bytes: Bytes,
        /// As many bytes as were lost before leave again.
        is_again: bool,
    },
    /// The same datagram left once more.
    Copied {
        /// Where the original began.
        place: Bytes,
        /// Its size.
        bytes: Bytes,
    },
    /// Packets were acknowledged.
    Acked {
        /// Where the newest of them ended.
        end: Bytes,
        /// Their bytes.
        newly: Bytes,
    },
    /// A packet was declared lost.
    Lost {
        /// Where it began.
        place: Bytes,
        /// Its size.
        bytes: Bytes,
    },
    /// Persistent congestion.
    Timeout,
}

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
