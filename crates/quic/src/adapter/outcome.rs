//! The record that a connection writes at its end.

use headstart_host::locked;
use headstart_units::Time;
use noq_proto::Side;

use super::Adapter;

impl Adapter {
    /// Notes the scheme's phase, and is true, if it has changed.
    #[inline]
    pub(super) fn note_phase(&mut self, now: Time) -> bool {
        let phase = self.sender.controller().phase();
        // Nearly always it is the same string.
        let is_new = !std::ptr::eq(phase, self.phase) && phase != self.phase && !self.is_late;
        if is_new {
            self.note_new_phase(now, phase);
        }
        is_new
    }

    #[cold]
    fn note_new_phase(&mut self, now: Time, phase: &'static str) {
        self.phase = phase;
        let mut account = locked(&self.shared.account);
        account.note_phase(now.since(self.started_at), phase);
        #[cfg(feature = "qlog")]
        if let Some(log) = self.shared.qlog.get() {
            log.phase(now, &account.report, self.sender.controller().allowance());
        }
    }

    /// Notes in the report that the path has changed.
    pub(super) fn note_migration(&self) {
        self.shared.set_retention(false);
        locked(&self.shared.account).note_migration();
    }

    /// Brings the account up to date with the latest acknowledgement or loss.
    pub(crate) fn publish(&mut self) {
        let Some(at) = self.publication.take().filter(|_| !self.is_late) else { return };
        let rules = &self.shared.rules;
        let is_client = rules.side == Side::Client;
        locked(&self.shared.account).publish(at, &self.sender, rules.store(), is_client);
    }
}
