//! The record that a connection writes at its end.
//!
//! A record is a delivery rate and a minimum RTT, never a window; only TCP-Cache, which is nothing
//! but a cached window, stores its window and threshold too. Application-limited samples measure
//! the application, and a flow shorter than the bandwidth-delay product measures nothing: the
//! previous record then stays. A sender that has not left slow start may have measured no more than
//! its window: the packet train of its first flight then counts, too.

use headstart_host::locked;
use headstart_startup::Startup;
use headstart_startup::history::{FlightOutcome, Record, RecordUpdate};
use headstart_units::{Bytes, Time};
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
        let phase = self.controller.phase();
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
            log.phase(now, &result.report, self.controller.allowance());
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
        result.report.tally = self.tally;
        result.report.min_rtt = self.rtt.min;
        result.report.btl_bw = self.fastest;
        if result.has_reservation
            && let (Some(fate), Some(store)) =
                (self.controller.scheme().credit_revision(), &self.shared.rules.store)
            && let Some(lease) = &mut result.lease
        {
            store.release(lease, &fate);
            result.has_reservation = false;
        }
        if self.is_first_flight_over()
            && let Some(grant) = result.grant.take()
        {
            grant.settle(self.tally.first_flight_lost <= self.tally.first_flight * TOLERATED_LOSS);
        }
        if !result.report.migrated {
            result.outcome = Some(outcome);
        }
    }

    /// Every packet of the first flight is acknowledged or lost.
    fn is_first_flight_over(&self) -> bool {
        let known = self.tally.delivered + self.tally.lost;
        self.ledger.sent() > Bytes::ZERO && known >= self.first_flight.min(self.ledger.sent())
    }

    fn outcome(&self, now: Time, report: &StartReport) -> RecordUpdate {
        let used = report.known.as_ref();
        let has_lost = !self.tally.first_flight_lost.is_zero();
        if used.is_some() {
            // A client reuses its own record only until the first loss of a first flight. For a
            // scheme that reserves, a loss already lowers the credit.
            let has_misled = self.shared.rules.side == Side::Client
                && !self.controller.scheme().reserves_credit()
                && (has_lost || is_refused_for_rtt(report));
            if self.controller.scheme().discards_history() || has_misled {
                return RecordUpdate::Remove;
            }
        }
        let fastest = self.rate.fastest();
        let filled = used.and_then(|known| known.record.bdp()).is_none_or(|bdp| self.tally.delivered >= bdp);
        match self.fastest {
            Some(btl_bw) if !fastest.is_app_limited && filled => {
                let is_cache = self.controller.scheme().caches_window();
                let allowance = self.controller.allowance();
                let is_growing = self.controller.is_slow_start() && self.tally.lost.is_zero();
                let btl_bw = if is_growing { self.train.rate(self.packet, btl_bw) } else { btl_bw };
                RecordUpdate::Replace(self.controller.scheme().record_to_store(Record {
                    saved_at: now,
                    btl_bw,
                    rt_prop: self.rtt.min,
                    window: if is_cache { allowance.window } else { Bytes::ZERO },
                    ssthresh: if is_cache { self.controller.ssthresh() } else { Bytes::MAX },
                    outcome: if has_lost { FlightOutcome::Lossy } else { FlightOutcome::Clean },
                    credit: Bytes::ZERO,
                }))
            }
            _ => RecordUpdate::Keep,
        }
    }
}

fn is_refused_for_rtt(report: &StartReport) -> bool {
    use headstart_startup::history::Refusal::{RttTooLarge, RttTooSmall};
    matches!(report.refusal, Some(RttTooLarge | RttTooSmall))
}
