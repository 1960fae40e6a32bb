//! Queue of copies to be put on the path.

use std::sync::Mutex;

use headstart_host::locked;
use headstart_quic::Courier;
use headstart_quic::copies::{Duplicate, When};

/// Copies requested by the server's adapters.
#[derive(Debug, Default)]
pub(crate) struct Post(Mutex<Vec<Duplicate>>);

impl Courier for Post {
    fn carry(&self, copy: Duplicate) {
        locked(&self.0).push(copy);
    }
}

impl Post {
    pub fn take(&self, when: When) -> Vec<Duplicate> {
        let mut waiting = locked(&self.0);
        let (now, later) = std::mem::take(&mut *waiting).into_iter().partition(|copy| copy.when == when);
        *waiting = later;
        now
    }
}
