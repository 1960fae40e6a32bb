//! Copies that wait to be put on the path.

use std::sync::{Mutex, PoisonError};

use headstart_quic::Courier;
use headstart_quic::copies::{Duplicate, When};

/// What the server's adapters want sent again.
#[derive(Debug, Default)]
pub(crate) struct Post(Mutex<Vec<Duplicate>>);

impl Courier for Post {
    fn carry(&self, copy: Duplicate) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(copy);
    }
}

impl Post {
    pub fn take(&self, when: When) -> Vec<Duplicate> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, later) = std::mem::take(&mut *waiting).into_iter().partition(|copy| copy.when == when);
        *waiting = later;
        now
    }
}
