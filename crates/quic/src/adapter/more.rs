//! What the application says later: more answers on the same connection.
//!
//! Between the application's word and the next packet nobody asks the adapter but for window and
//! pace, which change nothing. So these are answered as if the scheme had heard of it, and with the
//! packet it does.

use headstart_host::locked;
use headstart_startup::trace::SenderEvent;
use headstart_startup::{Plan, Prior, Progress};
use headstart_units::{Bytes, Time};

use super::decided::Decided;
use super::opening::Stage;
use super::{Adapter, INITIAL_PACKETS, SLACK};

/// A later flight, as it would be if it began now.
pub(super) struct More {
    pub controller: Decided,
    pub plan: Plan,
    /// All that the application has said.
    told: Bytes,
    /// What of it has not left.
    left: Bytes,
}

impl Adapter {
    /// The packet with which a scheme begins: a full one, or for a scheme that plans with it the
    /// first after the flow's size was told.
    pub(super) fn is_awaited(&self, bytes: Bytes) -> bool {
        let is_told = || self.plans_with_size && self.shared.expected().is_some();
        bytes + SLACK >= self.packet || is_told()
    }

    /// What a flight of all that the application has said since would be, if there is something and
    /// the scheme makes one.
    #[inline]
    pub(super) fn foresee_more(&self) -> Option<Box<More>> {
        if !self.has_more() || !matches!(self.stage, Stage::Started) {
            return None;
        }
        self.shared.expected().and_then(|told| self.foresee_all_of(told)).map(Box::new)
    }

    /// The application has said more than the scheme has heard of.
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
        // The stack keeps packets for copies from before the first of them leaves.
        if self.copies_left(&controller).is_some() {
            self.shared.tap(true);
        }
        Some(More { controller: Decided::new(controller), plan, told, left })
    }

    /// A packet leaves: the scheme hears of all that the application has said.
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

    /// The application has nothing to send: whether that is all it has said, and not a lull in the
    /// middle of it. How many bytes it makes is estimated from the size of a header.
    pub(super) fn is_all_sent(&self) -> bool {
        let is_told = self.told > Bytes::ZERO && self.shared.expected() == Some(self.told);
        is_told
            && self.is_whole_flow
            && self.ledger.sent() + self.packet > self.first_flight - self.first_flight / ESTIMATED
    }
}

/// Estimates are wrong by less than this part.
const ESTIMATED: u64 = 64;
