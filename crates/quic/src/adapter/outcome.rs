//! The record that a connection writes at its end.

use headstart_host::locked;
use headstart_startup::Startup as _;
use headstart_startup::history::RecordUpdate;
use headstart_units::Time;
use noq_proto::Side;

use super::Adapter;
use crate::limits::TOLERATED_LOSS;
use crate::start_report::StartReport;

/// Most phases kept in the report.
const PHASES: usize = 16;

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
        let at = now.since(self.started_at);
        let mut result = locked(&self.shared.result);
        if result.report.phases.len() < PHASES {
            result.report.phases.push((at, phase));
        }
        #[cfg(feature = "qlog")]
        if let Some(log) = self.shared.qlog.get() {
            log.phase(now, &result.report, self.sender.controller().allowance());
        }
    }

    /// Notes in the report that the path has changed.
    pub(super) fn note_migration(&self) {
        self.shared.set_retention(false);
        let mut result = locked(&self.shared.result);
        result.report.migrated = true;
        result.outcome = Some(RecordUpdate::Keep);
    }

    /// Publishes the outcome as it would be if the connection ended now.
    pub(super) fn publish(&self, now: Time) {
        if self.is_late {
            return;
        }
        let mut result = locked(&self.shared.result);
        let outcome = self.outcome(now, &result.report);
        result.last_at = now;
        result.report.tally = *self.sender.tally();
        result.report.min_rtt = self.sender.rtt().min;
        result.report.btl_bw = self.sender.fastest();
        if result.has_reservation
            && let (Some(fate), Some(store)) =
                (self.sender.controller().scheme().credit_revision(), &self.shared.rules.store)
            && let Some(lease) = &mut result.lease
        {
            store.release(lease, &fate);
            result.has_reservation = false;
        }
        if self.sender.is_first_flight_over()
            && let Some(grant) = result.grant.take()
        {
            grant.settle(
                self.sender.tally().first_flight_lost <= self.sender.tally().first_flight * TOLERATED_LOSS,
            );
        }
        if !result.report.migrated {
            result.outcome = Some(outcome);
        }
    }

    fn outcome(&self, now: Time, report: &StartReport) -> RecordUpdate {
        let used = report.known.as_ref();
        let has_lost = !self.sender.tally().first_flight_lost.is_zero();
        if used.is_some() {
            // A client reuses its own record only until the first loss of a first flight. For a
            // scheme that reserves, a loss already lowers the credit.
            let has_misled = self.shared.rules.side == Side::Client
                && !self.sender.controller().scheme().reserves_credit()
                && (has_lost || is_refused_for_rtt(report));
            if self.sender.controller().scheme().discards_history() || has_misled {
                return RecordUpdate::Remove;
            }
        }
        self.sender
            .record(now, used.map(|known| &known.record))
            .map_or(RecordUpdate::Keep, RecordUpdate::Replace)
    }
}

fn is_refused_for_rtt(report: &StartReport) -> bool {
    use headstart_startup::history::Refusal::{RttTooLarge, RttTooSmall};
    matches!(report.refusal, Some(RttTooLarge | RttTooSmall))
}
