//! Observations of a run: packets that leave the bottleneck, and newcomers' reports.

use headstart_sim::FlowReport;
use headstart_sim::packet::Packet;
use headstart_sim::record::{ElementEvent, SenderTrace};
use headstart_startup::growth::SLOW_START;
use headstart_units::{Bytes, Span, Time};

use crate::carrier::Observer;
use crate::setup::GROUPS;

/// The bottleneck is the first element of every path.
const BOTTLENECK: usize = 0;

/// Records events from a moment on.
#[derive(Debug)]
pub struct DeliveryLog {
    from: Time,
    /// Bytes on the wire that left the bottleneck: time, group, number. Where packets are not
    /// shown: bytes that clients read, without headers.
    pub delivered: Vec<(Time, u16, u32)>,
    /// Flows that opened since then.
    pub reports: Vec<FlowReport>,
    /// The flow whose sender is observed.
    watched: u64,
    /// Time at which that flow left slow start, and its window then.
    pub left_slow_start: Option<(Time, Bytes)>,
}

impl DeliveryLog {
    /// Records from `from` on; flow number `watched` is observed until it leaves slow start.
    #[must_use]
    pub fn new(from: Time, watched: u64) -> Self {
        Self { from, delivered: vec![], reports: vec![], watched, left_slow_start: None }
    }

    /// Bytes on the wire of a group in a stretch of time, its end included.
    #[must_use]
    pub fn bytes(&self, group: u16, after: Time, until: Time) -> u64 {
        let begin = self.delivered.partition_point(|(at, ..)| *at <= after);
        let end = self.delivered.partition_point(|(at, ..)| *at <= until);
        let of_group = |(_, whose, bytes): &(Time, u16, u32)| (*whose == group).then_some(u64::from(*bytes));
        self.delivered[begin..end].iter().filter_map(of_group).sum()
    }

    /// As Mbit/s over `window` up to `until`.
    #[must_use]
    pub fn rate(&self, group: u16, until: Time, window: Span) -> f64 {
        let after = Time::ZERO + until.since(Time::ZERO).saturating_sub(window);
        self.bytes(group, after, until) as f64 * 8.0 / 1e6 / window.as_secs_f64()
    }
}

impl Observer for DeliveryLog {
    fn watches(&self) -> bool {
        true
    }

    fn flow(&mut self, report: &FlowReport) {
        if report.opened_at >= self.from {
            self.reports.push(*report);
        }
    }

    fn focus(&mut self, serial: u64) -> bool {
        serial == self.watched && self.left_slow_start.is_none()
    }

    fn sender(&mut self, now: Time, trace: &SenderTrace) {
        if self.left_slow_start.is_none() && trace.phase != SLOW_START {
            self.left_slow_start = Some((now, trace.window));
        }
    }

    fn read(&mut self, at: Time, group: u16, bytes: u32) {
        if at >= self.from {
            self.delivered.push((at, group, bytes));
        }
    }

    fn element(&mut self, now: Time, element: usize, event: ElementEvent, packet: &Packet) {
        if element != BOTTLENECK || now < self.from || event != ElementEvent::Delivered {
            return;
        }
        // Each group is a class of hosts of its own, so a packet's route identifies its group.
        let group = packet.route / 2;
        debug_assert!(usize::from(group) < GROUPS);
        self.delivered.push((now, group, u32::from(packet.size)));
    }
}
