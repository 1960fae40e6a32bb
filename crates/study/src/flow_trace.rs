//! Trace of one flow: every send, ack, loss, window and pacing rate, and the bottleneck's queue.

use headstart_sim::FlowReport;
use headstart_sim::record::{SenderEvent, SenderTrace};
use headstart_units::{Bytes, Time};

use crate::carrier::Observer;

/// Most events kept of one flow.
const MAX_EVENTS: usize = 500_000;

/// Keeps the events of one flow.
#[derive(Debug)]
pub struct FlowTracer {
    /// Trace of the flow.
    pub view: FlowTrace,
    serial: u64,
    is_focused: bool,
}

/// Trace of one flow.
#[derive(Clone, Debug, Default)]
pub struct FlowTrace {
    /// Its sender's events.
    pub events: Vec<(Time, SenderTrace)>,
    /// Packets and bytes in the bottleneck's queue during the flow.
    pub queue: Vec<(Time, u64, Bytes)>,
    /// Report at its end.
    pub report: Option<FlowReport>,
    /// True if it had more events than are kept.
    pub is_cut: bool,
}

impl FlowTracer {
    /// Traces flow number `serial` of the run.
    #[must_use]
    pub fn new(serial: u64) -> Self {
        Self { view: FlowTrace::default(), serial, is_focused: false }
    }
}

impl Observer for FlowTracer {
    fn watches(&self) -> bool {
        true
    }

    fn flow(&mut self, report: &FlowReport) {
        if report.serial == self.serial {
            self.view.report = Some(*report);
        }
    }

    fn focus(&mut self, serial: u64) -> bool {
        self.is_focused = serial == self.serial;
        self.is_focused
    }

    fn sender(&mut self, now: Time, trace: &SenderTrace) {
        if !self.is_focused {
            return;
        }
        if self.view.events.len() < MAX_EVENTS {
            self.view.events.push((now, *trace));
        } else {
            self.view.is_cut = true;
        }
    }

    fn queue(&mut self, now: Time, element: usize, packets: u64, bytes: Bytes) {
        let is_alive = !self.view.events.is_empty() && self.view.report.is_none();
        if element == 0 && is_alive && self.view.queue.len() < MAX_EVENTS {
            self.view.queue.push((now, packets, bytes));
        }
    }
}

/// The event's name, for tables and files.
#[must_use]
pub fn name(event: &SenderEvent) -> &'static str {
    use headstart_startup::Transmission;
    match event {
        SenderEvent::Established => "established",
        SenderEvent::Sent { transmission: Transmission::Original, .. } => "sent",
        SenderEvent::Sent { transmission: Transmission::Retransmission, .. } => "retransmitted",
        SenderEvent::Sent { transmission: Transmission::Copy, .. } => "copied",
        SenderEvent::Acked { .. } => "acked",
        SenderEvent::Lost { .. } => "lost",
        SenderEvent::Timeout => "timeout",
    }
}
