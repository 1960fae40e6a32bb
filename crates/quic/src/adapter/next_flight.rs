//! Flow sizes announced later: more answers on the same connection.
//!
//! Between the announcement and the next packet the stack reads only window and pacing rate, which
//! changes nothing. These are computed from a preview of the next flight; the scheme itself gets
//! the announcement with the packet.

use headstart_adapter::announced;
use headstart_host::locked;
use headstart_startup::sending::CachedController;
use headstart_startup::trace::SenderEvent;
use headstart_startup::{FlightPlan, Prior, Progress};
use headstart_units::{Bytes, Time};

use super::first_flight::StartState;
use super::{Adapter, INITIAL_PACKETS, SLACK};

/// The next flight, as planned if it began now.
pub(super) struct NextFlight {
    pub controller: CachedController,
    pub plan: FlightPlan,
    /// Bytes announced by the application so far.
    announced: Bytes,
    /// Bytes of those not sent yet.
    left: Bytes,
}

impl Adapter {
    /// The packet with which a scheme begins: a full one, or for a scheme that plans with the
    /// flow's size the first after that was announced.
    pub(super) fn begins_scheme(&self, bytes: Bytes) -> bool {
        let has_size = || self.plans_with_size && self.shared.expected().is_some();
        bytes + SLACK >= self.sender.packet() || has_size()
    }

    /// Preview of a flight of all data announced since the last plan, if the scheme plans one.
    #[inline]
    pub(super) fn preview_next_flight(&self) -> Option<Box<NextFlight>> {
        if !self.has_more_announced() || !matches!(self.start_state, StartState::Started) {
            return None;
        }
        self.shared.expected().and_then(|announced| self.preview_flight_of(announced)).map(Box::new)
    }

    /// The application has announced more than the scheme has planned with.
    #[inline]
    pub(super) fn has_more_announced(&self) -> bool {
        self.plans_with_size && self.shared.expected().is_some_and(|announced| announced > self.announced)
    }

    #[cold]
    fn preview_flight_of(&self, announced: Bytes) -> Option<NextFlight> {
        let left = self.wire(announced).saturating_sub(self.sender.ledger().sent());
        let admitted = self.shared.flow_control().min(self.shared.rules.flight_limit);
        let prior = Prior {
            flow_size: Some(left),
            initial_window: self.sender.packet() * INITIAL_PACKETS,
            ..Prior::bare(
                self.sender.last_ack_at(),
                self.sender.packet(),
                self.sender.rtt().smoothed,
                self.wire(admitted),
            )
        };
        let so_far = Progress {
            sent: self.sender.ledger().sent(),
            segments: self.sender.ledger().end(),
            delivered: self.sender.delivered(),
            in_flight: self.sender.ledger().in_flight(),
            window: self.sender.controller().allowance().window,
        };
        let mut controller = **self.sender.controller();
        let plan = controller.on_new_data(&prior, &so_far)?;
        // The stack must retain packets before the first one to be copied leaves.
        if self.copies_left(&controller).is_some() {
            self.shared.set_retention(true);
        }
        Some(NextFlight { controller: CachedController::new(controller), plan, announced, left })
    }

    /// A packet leaves: passes all announced data to the scheme.
    pub(super) fn plan_next_flight(&mut self, now: Time) {
        let next_flight = self.preview_next_flight();
        if next_flight.is_none() && matches!(self.start_state, StartState::Started) {
            self.announced = self.announced.max(self.shared.expected().unwrap_or_default());
        }
        let Some(NextFlight { controller, plan, announced, left }) =
            next_flight.map(|next_flight| *next_flight)
        else {
            return;
        };
        self.sender.set_controller(controller);
        self.cached_metrics = None;
        self.announced = announced;
        let sent = self.sender.ledger().sent();
        self.sender.begin_next(plan.flight);
        self.is_whole_flow = left <= plan.flight;
        self.burst = sent + plan.burst;
        self.start_copies();
        let mut account = locked(&self.shared.account);
        account.report.flights += 1;
        account.report.flow_size = Some(announced);
        drop(account);
        self.journal(now, SenderEvent::Established);
        self.note_phase(now);
    }

    /// The application has nothing to send: true if all announced data has left.
    pub(super) fn is_all_sent(&self) -> bool {
        announced::is_all_sent(&self.sender, self.announced, self.shared.expected(), self.is_whole_flow)
    }
}
