//! Number and keys of the packet encrypted last.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The keys that encrypt a packet; they identify the packet number space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Initial,
    Handshake,
    Data,
}

/// Written by the session's keys, read by the congestion controller right after.
#[derive(Debug)]
pub(crate) struct LastEncrypted {
    level: AtomicU8,
    number: AtomicU64,
}

impl Default for LastEncrypted {
    fn default() -> Self {
        Self { level: AtomicU8::new(Level::Initial as u8), number: AtomicU64::new(0) }
    }
}

impl LastEncrypted {
    /// A packet with that number is being encrypted at that level.
    pub fn set(&self, level: Level, number: u64) {
        self.level.store(level as u8, Ordering::Relaxed);
        self.number.store(number, Ordering::Relaxed);
    }

    /// True for a packet of application data: the stack reports it as sent right after.
    pub fn is_data(&self) -> bool {
        self.level.load(Ordering::Relaxed) == Level::Data as u8
    }

    /// Number of the packet.
    pub fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }
}
