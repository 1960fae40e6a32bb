//! The record that a connection writes at its end.
//!
//! A record is a delivery rate and a minimum RTT, never a window; only TCP-Cache, which is nothing
//! but a cached window, stores its window and threshold too. Application-limited samples measure
//! the application, and a flow shorter than the bandwidth-delay product measures nothing: the
//! previous record then stays.

use headstart_host::locked;
use headstart_startup::Startup;
use headstart_startup::history::{Ended, Outcome, Record};
use headstart_units::{Bytes, Time};
use noq_proto::Side;

use super::Adapter;
use crate::limits::TOLERATED;
use crate::why::Why;

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
        let mut ending = locked(&self.shared.ending);
        if ending.why.phases.len() < PHASES {
            ending.why.phases.push((at, phase));
        }
        #[cfg(feature = "qlog")]
        if let Some(log) = self.shared.qlog.get() {
            log.phase(now, &ending.why, self.controller.allowance());
        }
    }

    /// Notes in the report that the path has changed.
    pub(super) fn note_migration(&self) {
        self.shared.tap(false);
        let mut ending = locked(&self.shared.ending);
        ending.why.migrated = true;
        ending.outcome = Some(Outcome::Nothing);
    }

    /// Publishes the outcome as it would be if the connection ended now.
    pub(super) fn publish(&self, now: Time) {
        if self.is_late {
            return;
        }
        let mut ending = locked(&self.shared.ending);
        let outcome = self.outcome(now, &ending.why);
        ending.last_at = now;
        ending.why.tally = self.tally;
        ending.why.min_rtt = self.rtt.min;
        ending.why.btl_bw = self.fastest;
        if ending.reserves
            && let (Some(fate), Some(store)) = (self.controller.scheme().fate(), &self.shared.rules.store)
            && let Some(lease) = &mut ending.lease
        {
            store.release(lease, &fate);
            ending.reserves = false;
        }
        if self.is_first_flight_over()
            && let Some(grant) = ending.grant.take()
        {
            grant.settle(self.tally.first_flight_lost <= self.tally.first_flight * TOLERATED);
        }
        if !ending.why.migrated {
            ending.outcome = Some(outcome);
        }
    }

    /// Every packet of the first flight is acknowledged or lost.
    fn is_first_flight_over(&self) -> bool {
        let known = self.tally.delivered + self.tally.lost;
        self.ledger.sent() > Bytes::ZERO && known >= self.first_flight.min(self.ledger.sent())
    }

    fn outcome(&self, now: Time, why: &Why) -> Outcome {
        let began_from = why.known.as_ref();
        let has_lost = !self.tally.first_flight_lost.is_zero();
        if began_from.is_some() {
            // A client reuses its own record only until the first loss of a first flight. For a
            // scheme that reserves, a loss already lowers the credit.
            let is_betrayed = self.shared.rules.side == Side::Client
                && !self.controller.scheme().reserves()
                && (has_lost || is_refused_for_rtt(why));
            if self.controller.scheme().discards_history() || is_betrayed {
                return Outcome::Misled;
            }
        }
        let fastest = self.rate.fastest();
        let filled =
            began_from.and_then(|known| known.record.bdp()).is_none_or(|bdp| self.tally.delivered >= bdp);
        match self.fastest {
            Some(btl_bw) if !fastest.is_app_limited && filled => {
                let is_cache = self.controller.scheme().caches_window();
                let allowance = self.controller.allowance();
                Outcome::Measured(self.controller.scheme().remember(Record {
                    saved_at: now,
                    btl_bw,
                    rt_prop: self.rtt.min,
                    window: if is_cache { allowance.window } else { Bytes::ZERO },
                    ssthresh: if is_cache { self.controller.ssthresh() } else { Bytes::MAX },
                    ended: if has_lost { Ended::Lossy } else { Ended::Clean },
                    credit: Bytes::ZERO,
                }))
            }
            _ => Outcome::Nothing,
        }
    }
}

fn is_refused_for_rtt(why: &Why) -> bool {
    use headstart_startup::history::Refusal::{RttTooLarge, RttTooSmall};
    matches!(why.refusal, Some(RttTooLarge | RttTooSmall))
}
