//! Traces of single flows: sends, acks, losses, window and pacing rate, and the bottleneck's queue.

use headstart_sim::FlowReport;
use headstart_sim::record::{SenderEvent, SenderTrace};
use headstart_units::{Bytes, Time};

use crate::carrier::Observer;

/// Most events kept of all traced flows.
const MAX_EVENTS: usize = 500_000;

/// Keeps the events of a few flows.
#[derive(Debug)]
pub struct FlowTracer {
    /// Traces of the flows, in order.
    pub views: Vec<FlowTrace>,
    first: u64,
    focused: Option<usize>,
}

/// Trace of one flow.
#[derive(Clone, Debug, Default)]
pub struct FlowTrace {
    /// Events of the flow's sender.
    pub events: Vec<(Time, SenderTrace)>,
    /// Packets and bytes in the bottleneck's queue during the flow.
    pub queue: Vec<(Time, u64, Bytes)>,
    /// Report at its end.
    pub report: Option<FlowReport>,
    /// True if it had more events than are kept.
    pub is_cut: bool,
}

impl FlowTracer {
    /// Traces the run's flows of these numbers, from the first to the last.
    #[must_use]
    pub fn new((first, last): (u64, u64)) -> Self {
        let count = (last - first + 1) as usize;
        Self { views: vec![FlowTrace::default(); count], first, focused: None }
    }

    fn place(&self, serial: u64) -> Option<usize> {
        let place = usize::try_from(serial.checked_sub(self.first)?).ok()?;
        (place < self.views.len()).then_some(place)
    }
}

impl Observer for FlowTracer {
    fn watches(&self) -> bool {
        true
    }

    fn flow(&mut self, report: &FlowReport) {
        if let Some(place) = self.place(report.serial) {
            self.views[place].report = Some(*report);
        }
    }

    fn focus(&mut self, serial: u64) -> bool {
        self.focused = self.place(serial);
        self.focused.is_some()
    }

    fn sender(&mut self, now: Time, trace: &SenderTrace) {
        let most = MAX_EVENTS / self.views.len();
        let Some(view) = self.focused.map(|place| &mut self.views[place]) else { return };
        if view.events.len() < most {
            view.events.push((now, *trace));
        } else {
            view.is_cut = true;
        }
    }

    fn queue(&mut self, now: Time, element: usize, packets: u64, bytes: Bytes) {
        let most = MAX_EVENTS / self.views.len();
        for view in self.views.iter_mut().filter(|_| element == 0) {
            let is_alive = !view.events.is_empty() && view.report.is_none();
            if is_alive && view.queue.len() < most {
                view.queue.push((now, packets, bytes));
            }
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
