//! One flow under the lens: every send, ack, loss, window and pace of it, and the queue it met.

use headstart_sim::packet::Packet;
use headstart_sim::record::{ElementEvent, MessageReport, SenderEvent, SenderTrace};
use headstart_sim::workload::PageReport;
use headstart_sim::{FlowReport, Recorder};
use headstart_units::{Bytes, Time};

/// Never keep more events than this of one flow.
const MOST_EVENTS: usize = 500_000;

/// Keeps the events of one flow, and passes everything on.
#[derive(Debug)]
pub struct Lens<R> {
    /// Whoever listens behind.
    pub inner: R,
    /// What was seen of the flow.
    pub view: View,
    serial: u64,
    is_focused: bool,
}

/// What was seen of one flow.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Its sender's events.
    pub events: Vec<(Time, SenderTrace)>,
    /// Packets and bytes that waited before the bottleneck while it was alive.
    pub queue: Vec<(Time, u64, Bytes)>,
    /// How it ended.
    pub report: Option<FlowReport>,
    /// It had more events than are kept.
    pub is_cut: bool,
}

impl<R> Lens<R> {
    /// Looks at flow number `serial` of the run.
    pub fn new(serial: u64, inner: R) -> Self {
        Self { inner, view: View::default(), serial, is_focused: false }
    }
}

impl<R: Recorder> Recorder for Lens<R> {
    fn flow(&mut self, report: &FlowReport) {
        if report.serial == self.serial {
            self.view.report = Some(*report);
        }
        self.inner.flow(report);
    }

    fn message(&mut self, report: &MessageReport) {
        self.inner.message(report);
    }

    fn page(&mut self, report: &PageReport) {
        self.inner.page(report);
    }

    fn focus(&mut self, serial: u64) {
        self.is_focused = serial == self.serial;
        self.inner.focus(serial);
    }

    fn sender(&mut self, now: Time, trace: impl FnOnce() -> SenderTrace) {
        if !self.is_focused {
            return self.inner.sender(now, trace);
        }
        let trace = trace();
        if self.view.events.len() < MOST_EVENTS {
            self.view.events.push((now, trace));
        } else {
            self.view.is_cut = true;
        }
        self.inner.sender(now, || trace);
    }

    fn queue(&mut self, now: Time, element: usize, length: impl FnOnce() -> (u64, Bytes)) {
        let is_alive = !self.view.events.is_empty() && self.view.report.is_none();
        if element == 0 && is_alive && self.view.queue.len() < MOST_EVENTS {
            let (packets, bytes) = length();
            self.view.queue.push((now, packets, bytes));
        }
    }

    fn element(&mut self, now: Time, element: usize, event: ElementEvent, packet: &Packet) {
        self.inner.element(now, element, event, packet);
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
