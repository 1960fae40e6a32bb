//! Queue of copies to be put on the path.

use std::sync::Mutex;

use headstart_host::locked;
use headstart_quic::DuplicateSender;
use headstart_quic::copies::{Duplicate, SendTiming};

/// Copies requested by the server's adapters.
#[derive(Debug, Default)]
pub(crate) struct DuplicateQueue(Mutex<Vec<Duplicate>>);

impl DuplicateSender for DuplicateQueue {
    fn send(&self, copy: Duplicate) {
        locked(&self.0).push(copy);
    }
}

impl DuplicateQueue {
    pub fn take(&self, timing: SendTiming) -> Vec<Duplicate> {
        let mut pending = locked(&self.0);
        let (now, later) = std::mem::take(&mut *pending).into_iter().partition(|copy| copy.timing == timing);
        *pending = later;
        now
    }
}
