//! Peers that do not answer: their connections take no share of the peer's record.
//!
//! A path that was left keeps its state: its peer's address does not answer any more.

use headstart_host::locked;
use headstart_units::Time;

use super::Adapter;

impl Adapter {
    /// A packet leaves.
    #[inline]
    pub(super) fn watch_silence(&mut self, now: Time) {
        if self.silence.begins(now, &self.sender) {
            self.set_silent(true);
        }
    }

    /// An acknowledgement arrived.
    #[inline]
    pub(super) fn end_silence(&mut self, now: Time) {
        if self.silence.ends(now) {
            self.set_silent(false);
        }
    }

    #[cold]
    fn set_silent(&mut self, is_silent: bool) {
        if !self.is_late {
            locked(&self.shared.account).set_silent(self.shared.rules.store(), is_silent);
        }
    }
}
