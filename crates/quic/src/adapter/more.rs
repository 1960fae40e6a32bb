//! Flow sizes announced later: more answers on the same connection.
//!
//! Between the announcement and the next packet the stack reads only window and pacing rate, which
//! changes nothing. These are computed from a preview of the next flight; the scheme itself gets
//! the announcement with the packet.

use headstart_host::locked;
use headstart_startup::trace::SenderEvent;
use headstart_startup::{Plan, Prior, Progress};
use headstart_units::{Bytes, Time};

use super::decided::Decided;
use super::opening::Stage;
use super::{Adapter, INITIAL_PACKETS, SLACK};

/// The next flight, as planned if it began now.
pub(super) struct More {
    pub controller: Decided,
    pub plan: Plan,
    /// Bytes announced by the application so far.
    told: Bytes,
    /// Bytes of those not sent yet.
    left: Bytes,
}

impl Adapter {
    /// The packet with which a scheme begins: a full one, or for a scheme that plans with the
    /// flow's size the first after that was announced.
    pub(super) fn is_awaited(&self, bytes: Bytes) -> bool {
        let is_told = || self.plans_with_size && self.shared.expected().is_some();
        bytes + SLACK >= self.packet || is_told()
    }

    /// Preview of a flight of all data announced since the last plan, if there is any and the
    /// scheme plans one.
    #[inline]
    pub(super) fn foresee_more(&self) -> Option<Box<More>> {
        if !self.has_more() || !matches!(self.stage, Stage::Started) {
            return None;
        }
        self.shared.expected().and_then(|told| self.foresee_all_of(told)).map(Box::new)
    }

    /// The application has announced more than the scheme has planned with.
    #[inline]
    pub(super) fn has_more(&self) -> bool {
        self.plans_with_size && self.shared.expected().is_some_and(|told| told > self.told)
    }

    #[cold]
    fn foresee_all_of(&self, told: Bytes) -> Option<More> {
        let left = self.wire(told).saturating_sub(self.ledger.sent());
        let admitted = self.shared.flow_control().min(self.shared.rules.flight_limit);
        let prior = Prior {
            flow_size: Some(left),
            initial_window: self.packet * INITIAL_PACKETS,
            ..Prior::bare(self.heard_at, self.packet, self.rtt.smoothed, self.wire(admitted))
        };
        let so_far = Progress {
            sent: self.ledger.sent(),
            segments: self.ledger.end(),
            delivered: self.rate.delivered(),
            in_flight: self.ledger.in_flight(),
            window: self.controller.allowance().window,
        };
        let mut controller = *self.controller;
        let plan = controller.on_more(&prior, &so_far)?;
        // The stack must retain packets before the first one to be copied leaves.
        if self.copies_left(&controller).is_some() {
            self.shared.tap(true);
        }
        Some(More { controller: Decided::new(controller), plan, told, left })
    }

    /// A packet leaves: passes all announced data to the scheme.
    pub(super) fn learn(&mut self, now: Time) {
        let more = self.foresee_more();
        if more.is_none() && matches!(self.stage, Stage::Started) {
            self.told = self.told.max(self.shared.expected().unwrap_or_default());
        }
        let Some(More { controller, plan, told, left }) = more.map(|more| *more) else { return };
        self.controller = controller;
        self.steady = None;
        self.told = told;
        let sent = self.ledger.sent();
        self.first_flight = sent + plan.flight;
        self.is_whole_flow = left <= plan.flight;
        self.burst = sent + plan.burst;
        self.copy_anew();
        let mut ending = locked(&self.shared.ending);
        ending.why.flights += 1;
        ending.why.flow_size = Some(told);
        drop(ending);
        self.journal(now, SenderEvent::Established);
        self.note_phase(now);
    }

    /// The application has nothing to send: true if all announced data has left, false in a lull
    /// before its end. The size on the wire is estimated from the size of a header.
    pub(super) fn is_all_sent(&self) -> bool {
        let is_told = self.told > Bytes::ZERO && self.shared.expected() == Some(self.told);
        is_told
            && self.is_whole_flow
            && self.ledger.sent() + self.packet > self.first_flight - self.first_flight / ESTIMATED
    }
}

/// The estimate's error is below this fraction (1/64).
const ESTIMATED: u64 = 64;
