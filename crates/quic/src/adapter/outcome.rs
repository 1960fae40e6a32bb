//! The record that a connection writes at its end.

use headstart_host::locked;
use headstart_units::Time;
use noq_proto::Side;

use super::Adapter;

impl Adapter {
    /// Notes the scheme's phase if it has changed.
    #[inline]
    pub(super) fn note_phase(&mut self, now: Time) {
        let phase = self.sender.controller().phase();
        // Nearly always it is the same string.
        if !std::ptr::eq(phase, self.phase) && phase != self.phase && !self.is_late {
            self.note_new_phase(now, phase);
        }
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

    /// Publishes the outcome as it would be if the connection ended now.
    pub(super) fn publish(&self, now: Time) {
        if !self.is_late {
            let rules = &self.shared.rules;
            let is_client = rules.side == Side::Client;
            locked(&self.shared.account).publish(now, &self.sender, rules.store(), is_client);
        }
    }
}
