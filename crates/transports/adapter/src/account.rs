//! The account of one connection's start: its inputs, reservations, report and record.
//!
//! ```text
//!  judge ----> establish ----> publish ... publish ----> close
//!  record,     reserves the    revises the credit,      writes the
//!  hint, arm   first flight    foresees the record      record
//! ```

use std::net::IpAddr;
use std::sync::Arc;

use headstart_startup::catalogue::Needs;
use headstart_startup::history::{Lease, RecordUpdate, Refusal, Revision};
use headstart_startup::prior::Hint;
use headstart_startup::sending::Sender;
use headstart_startup::{Controller, FlightPlan, Prior, Startup as _};
use headstart_units::{Bytes, Rate, Span, Time};

use crate::gates::{Arm, Gates, NothingToGain, Rollout, refusal};
use crate::limits::{Grant, Limits, TOLERATED_LOSS};
use crate::sizes::INITIAL_PACKETS;
use crate::start_report::{RecordOutcome, Source, StartReport};
use crate::store::Store;

/// A connection's inputs, and the rules by which they are judged.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The store of records, if one is kept.
    pub store: Option<&'a dyn Store>,
    /// Conditions for the use of a record and of a fast start.
    pub gates: &'a Gates,
    /// Share of the connections that run the scheme.
    pub rollout: &'a Rollout,
    /// Caps on hints and records.
    pub limits: &'a Arc<Limits>,
    /// The input that the scheme cannot do without.
    pub needs: Needs,
    /// The store's key.
    pub key: IpAddr,
    /// The address that hints are granted to.
    pub peer: IpAddr,
    /// A number drawn uniformly, which decides the arm.
    pub number: u64,
    /// The peer's hint.
    pub hint: Option<Hint>,
}

/// The account of one connection.
#[derive(Debug, Default)]
pub struct Account {
    /// The report so far.
    pub report: StartReport,
    lease: Option<Lease>,
    /// Conditions for the use of the record, and caps, from when it was judged.
    conditions: Option<(Gates, Arc<Limits>)>,
    /// The hint and its address, until the first flight begins.
    claim: Option<(IpAddr, Hint)>,
    /// The store holds a reservation for its first flight.
    has_reservation: bool,
    /// Revision of the credit if the connection ended now, while there is a reservation.
    last_revision: Option<Revision>,
    grant: Option<Grant>,
    /// The outcome as it would be written now.
    outcome: Option<RecordUpdate>,
    is_closed: bool,
}

/// Most phases kept in the report.
const PHASES: usize = 16;

impl Account {
    /// An account that begins with this report.
    #[must_use]
    pub fn new(report: StartReport) -> Self {
        Self { report, ..Self::default() }
    }

    /// The RTT was measured: opens the record and judges it, grants the hint, and draws the arm.
    /// True if the scheme may begin from `prior`; otherwise the control scheme takes its place.
    pub fn judge(&mut self, inputs: &Inputs<'_>, sender: &Sender, prior: &mut Prior) -> bool {
        let Inputs { gates, needs, .. } = *inputs;
        let (now, rtt, packet) = (prior.now, sender.rtt().min, sender.packet());
        let report = &mut self.report;
        (report.handshake_rtt, report.packet) = (rtt, packet);
        report.hint = inputs.hint;
        let initial_window = packet * INITIAL_PACKETS;
        if let Some(store) = inputs.store {
            let requirements = sender.controller().scheme().requirements();
            let (known, mut lease) = store.open(requirements.history_key(inputs.key));
            // It takes a share when its first flight begins.
            store.suspend(&mut lease);
            let mut gates = gates.with_credit(requirements.reserves_credit);
            // The peers of a prefix are not one another's concurrent starts.
            gates.alone &= !requirements.by_prefix;
            let judged = gates.judge(known, now, rtt, initial_window);
            (report.known, report.refusal) = (known, refusal(&judged));
            prior.history = judged.ok().map(|known| inputs.limits.cap_record(known));
            self.conditions = Some((gates, Arc::clone(inputs.limits)));
            slow_down(sender.controller(), inputs.limits, prior);
            self.lease = Some(lease);
        } else if needs == Needs::History {
            report.refusal = Some(Refusal::NoRecord);
        }
        if let (Needs::Hint, Some(mut hint)) = (needs, inputs.hint) {
            self.claim = Some((inputs.peer, hint));
            self.conditions = Some((*gates, Arc::clone(inputs.limits)));
            let offer = inputs.limits.offer(inputs.peer, hint.bandwidth);
            report.granted = Some(offer.unwrap_or(Rate::ZERO));
            prior.hint = offer.map(|rate| {
                hint.bandwidth = rate;
                hint
            });
            slow_down(sender.controller(), inputs.limits, prior);
            let planned = prior.hint.map_or(Bytes::MAX, |hint| hint.bandwidth * rtt);
            if !gates.exceeds_initial_window(planned, initial_window) {
                prior.hint = None;
                report.nothing_to_gain = Some(NothingToGain::InitialWindow);
            }
        }
        let is_eligible = match needs {
            Needs::History => prior.history.is_some(),
            Needs::Hint => prior.hint.is_some(),
            Needs::Nothing | Needs::FlowSize | Needs::Routers => true,
        };
        let is_paced = || is_paced(sender.controller(), prior);
        let is_short = is_eligible && rtt < gates.shortest_rtt && (needs != Needs::Nothing || is_paced());
        // Headstart itself begins as slow start on a short path.
        let is_short =
            is_short || (sender.controller().scheme().requirements().reserves_credit && !is_paced());
        if is_short {
            report.nothing_to_gain = Some(NothingToGain::ShortPath);
        }
        report.arm = inputs.rollout.draw(is_eligible && !is_short, inputs.number);
        let runs = !is_short && !matches!(report.arm, Arm::Control | Arm::Stopped);
        if !runs || prior.hint.is_none() {
            self.claim = None;
        }
        runs
    }

    /// Plans the first flight; reserves it in the store if the scheme shares a peer's credit.
    pub fn establish(
        &mut self,
        store: Option<&dyn Store>,
        sender: &mut Sender,
        prior: &mut Prior,
    ) -> FlightPlan {
        self.take_share(store, sender, prior);
        let reserves = sender.controller().scheme().requirements().reserves_credit;
        let (Some(store), Some(lease)) = (store, self.lease.as_mut().filter(|_| reserves)) else {
            return sender.update(|controller| controller.establish(prior));
        };
        let mut plan = FlightPlan::burst(sender.packet());
        store.reserve(lease, &mut |credit| {
            prior.shared_credit = Some(credit);
            plan = sender.update(|controller| controller.establish(prior));
            plan.flight.min(prior.flow_size.unwrap_or(Bytes::MAX))
        });
        self.has_reservation = true;
        plan
    }

    /// The first flight begins: takes a share of the record and a grant of the hint. Others may
    /// have begun since these were judged.
    fn take_share(&mut self, store: Option<&dyn Store>, sender: &Sender, prior: &mut Prior) {
        let had_input = prior.history.is_some() || prior.hint.is_some();
        let Some((gates, limits)) = self.conditions.take() else { return };
        if let (Some(store), Some(lease)) = (store, &mut self.lease) {
            let live = store.resume(lease);
            if let Some(known) = self.report.known.as_mut().filter(|known| known.live != live) {
                known.live = live;
                if prior.history.is_some() {
                    let initial_window = sender.packet() * INITIAL_PACKETS;
                    let judged = gates.judge(Some(*known), prior.now, sender.rtt().min, initial_window);
                    self.report.refusal = refusal(&judged);
                    prior.history = judged.ok().map(|known| limits.cap_record(known));
                    slow_down(sender.controller(), &limits, prior);
                }
            }
        }
        if let Some((peer, mut hint)) = self.claim.take() {
            self.grant = limits.grant(peer, hint.bandwidth);
            self.report.granted = Some(self.grant.as_ref().map_or(Rate::ZERO, Grant::rate));
            prior.hint = self.grant.as_ref().map(|grant| {
                hint.bandwidth = grant.rate();
                hint
            });
            slow_down(sender.controller(), &limits, prior);
        }
        let has_input = prior.history.is_some() || prior.hint.is_some();
        if had_input && !has_input && self.report.arm == Arm::Treatment {
            self.report.arm = Arm::Ineligible;
        }
    }

    /// The first flight begins: notes its plan. `announced` are the bytes announced by the
    /// application; `nothing_to_gain` a reason that was found with the plan.
    pub fn begin(
        &mut self,
        plan: &FlightPlan,
        needs: Needs,
        announced: Option<Bytes>,
        nothing_to_gain: Option<NothingToGain>,
    ) {
        let report = &mut self.report;
        report.flow_size = announced;
        (report.burst, report.planned, report.pace, report.flights) =
            (plan.burst, plan.flight, plan.allowance.pace, 1);
        report.source = match (report.arm, needs) {
            _ if nothing_to_gain == Some(NothingToGain::LongAnswer) => Source::Nothing,
            (Arm::Treatment, Needs::History) => Source::History,
            (Arm::Treatment, Needs::Hint) => Source::Hint,
            (Arm::Treatment, Needs::FlowSize) => Source::FlowSize,
            _ => Source::Nothing,
        };
        report.nothing_to_gain = nothing_to_gain.or(report.nothing_to_gain);
    }

    /// A phase began at `at`, counted from the beginning of the first flight.
    pub fn note_phase(&mut self, at: Span, phase: &'static str) {
        if self.report.phases.len() < PHASES {
            self.report.phases.push((at, phase));
        }
    }

    /// The path has changed: no record is written.
    pub fn note_migration(&mut self) {
        self.report.migrated = true;
        self.keep_record();
    }

    /// No record is written, and no credit revised unless a later event is published.
    pub fn keep_record(&mut self) {
        self.outcome = Some(RecordUpdate::Keep);
        self.last_revision = None;
    }

    /// The peer does not answer, or answers again: a connection without an answer takes no share of
    /// its peer's record.
    pub fn set_silent(&mut self, store: Option<&dyn Store>, is_silent: bool) {
        if let (Some(store), Some(lease)) = (store, &mut self.lease) {
            if is_silent {
                store.suspend(lease);
            } else {
                store.resume(lease);
            }
        }
    }

    /// Updates the outcome as if the connection ended now, and releases the reservation of the
    /// first flight once that is over. An older event than the last, of a controller that another
    /// has replaced, has no effect, and none has one after the end.
    pub fn publish(&mut self, now: Time, sender: &Sender, store: Option<&dyn Store>, is_client: bool) {
        if self.is_closed || now < self.report.last_at {
            return;
        }
        let outcome = self.outcome(now, sender, is_client);
        self.report.last_at = now;
        self.report.tally = *sender.tally();
        self.report.limited = *sender.limits().spans();
        self.report.slow_start_end = sender.controller().slow_start_end();
        self.report.first_answer = *sender.first_answer();
        self.report.min_rtt = sender.rtt().min;
        self.report.btl_bw = sender.fastest();
        let scheme = sender.controller().scheme();
        self.last_revision = scheme.credit_revision(true).filter(|_| self.has_reservation);
        if scheme.credit_revision(false).is_some() {
            self.release(store);
        }
        if sender.is_first_flight_over()
            && let Some(grant) = self.grant.take()
        {
            let tally = sender.tally();
            grant.settle(tally.first_flight_lost <= tally.first_flight * TOLERATED_LOSS);
        }
        if !self.report.migrated {
            self.outcome = Some(outcome);
        }
    }

    /// The reservation of the first flight ends, with the revision that is known.
    fn release(&mut self, store: Option<&dyn Store>) {
        if let (Some(fate), Some(store), Some(lease)) = (self.last_revision.take(), store, &mut self.lease) {
            store.release(lease, &fate);
            self.has_reservation = false;
        }
    }

    fn outcome(&self, now: Time, sender: &Sender, is_client: bool) -> RecordUpdate {
        let used = self.report.known.as_ref();
        let update = sender.record_update(now, used.map(|known| &known.record));
        if used.is_some() {
            // A client reuses its own record only until the first loss of a first flight. For a
            // scheme that reserves, a loss already lowers the credit.
            let has_lost = !sender.tally().first_flight_lost.is_zero();
            let reserves = sender.controller().scheme().requirements().reserves_credit;
            if is_client && !reserves && (has_lost || is_refused_for_rtt(&self.report)) {
                return RecordUpdate::Remove;
            }
        }
        if update != RecordUpdate::Keep {
            return update;
        }
        // A record of a much shorter path misleads every start that measures nothing itself.
        let is_of_another_path = used.is_some_and(|known| known.record.rt_prop * 2 < sender.rtt().min);
        if is_of_another_path && self.report.source == Source::History {
            RecordUpdate::Remove
        } else {
            RecordUpdate::Keep
        }
    }

    /// The connection is over: writes the outcome and releases reservations. True for the first
    /// call; later ones have no effect.
    pub fn close(&mut self, store: Option<&dyn Store>) -> bool {
        if std::mem::replace(&mut self.is_closed, true) {
            return false;
        }
        let outcome = self.outcome.take().unwrap_or(RecordUpdate::Keep);
        self.report.record_outcome = match outcome {
            RecordUpdate::Replace(_) if store.is_some() => RecordOutcome::Saved,
            RecordUpdate::Remove if self.lease.is_some() => RecordOutcome::Dropped,
            _ => RecordOutcome::Nothing,
        };
        if !self.report.migrated {
            self.release(store);
        }
        if let (Some(store), Some(lease)) = (store, self.lease.take()) {
            store.close(lease, outcome);
        }
        self.grant = None;
        true
    }
}

/// Lowers the rate of record and hint so that no first flight is paced above the cap: some schemes
/// pace it faster than the rate that they know.
fn slow_down(controller: &Controller, limits: &Limits, prior: &mut Prior) {
    let (fastest, foreseen) = (limits.fastest(), Controller::clone(controller).establish(prior));
    let Some(pace) = foreseen.allowance.pace.filter(|pace| *pace > fastest) else { return };
    let lowered = |rate: Rate| {
        let product = u128::from(rate.as_bytes_per_sec()) * u128::from(fastest.as_bytes_per_sec());
        let quotient = product / u128::from(pace.as_bytes_per_sec().max(1));
        Rate::from_bytes_per_sec(u64::try_from(quotient).unwrap_or(u64::MAX))
    };
    if let Some(known) = &mut prior.history {
        known.record.btl_bw = lowered(known.record.btl_bw);
    }
    if let Some(hint) = &mut prior.hint {
        hint.bandwidth = lowered(hint.bandwidth);
    }
}

/// The scheme would pace its first flight.
fn is_paced(controller: &Controller, prior: &Prior) -> bool {
    Controller::clone(controller).establish(prior).allowance.pace.is_some()
}

fn is_refused_for_rtt(report: &StartReport) -> bool {
    matches!(report.refusal, Some(Refusal::RttTooLarge | Refusal::RttTooSmall))
}
