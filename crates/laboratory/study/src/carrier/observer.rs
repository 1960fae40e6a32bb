//! Observers of a run, for any carrier.

use headstart_sim::packet::Packet;
use headstart_sim::record::{ElementEvent, MessageReport, SenderTrace};
use headstart_sim::workload::PageReport;
use headstart_sim::{Checker, Collector, FlowReport, NullRecorder, Path, Recorder};
use headstart_units::{Bytes, Time};

/// Observes a run. Unlike a [`Recorder`] it can be a trait object, whatever its type.
pub trait Observer {
    /// True if it observes senders, queues or packets as well as reports of flows.
    fn watches(&self) -> bool {
        false
    }

    /// A flow ended, or was still open at the end of the run.
    fn flow(&mut self, report: &FlowReport) {
        let _ = report;
    }

    /// A message was read whole by the receiver.
    fn message(&mut self, report: &MessageReport) {
        let _ = report;
    }

    /// A page was complete.
    fn page(&mut self, report: &PageReport) {
        let _ = report;
    }

    /// A datagram of a real-time flow was sent, or arrived.
    fn datagram(&mut self, sent_at: Time, arrived_at: Option<Time>) {
        let _ = (sent_at, arrived_at);
    }

    /// The next events concern this flow, by serial number; true to receive its sender's events.
    fn focus(&mut self, serial: u64) -> bool {
        let _ = serial;
        false
    }

    /// An event at the sender of that flow.
    fn sender(&mut self, now: Time, trace: &SenderTrace) {
        let _ = (now, trace);
    }

    /// Packets and bytes in the queue before an element.
    fn queue(&mut self, now: Time, element: usize, packets: u64, bytes: Bytes) {
        let _ = (now, element, packets, bytes);
    }

    /// An event of a packet at an element of the path.
    fn element(&mut self, now: Time, element: usize, event: ElementEvent, packet: &Packet) {
        let _ = (now, element, event, packet);
    }

    /// A client of a group read bytes; called only where packets are not shown.
    fn read(&mut self, at: Time, group: u16, bytes: u32) {
        let _ = (at, group, bytes);
    }
}

impl Observer for () {}
impl Observer for NullRecorder {}

impl Observer for Collector {
    fn flow(&mut self, report: &FlowReport) {
        Recorder::flow(self, report);
    }

    fn message(&mut self, report: &MessageReport) {
        Recorder::message(self, report);
    }

    fn page(&mut self, report: &PageReport) {
        Recorder::page(self, report);
    }

    fn datagram(&mut self, sent_at: Time, arrived_at: Option<Time>) {
        Recorder::datagram(self, sent_at, arrived_at);
    }
}

/// Both observe.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn watches(&self) -> bool {
        self.0.watches() || self.1.watches()
    }

    fn flow(&mut self, report: &FlowReport) {
        self.0.flow(report);
        self.1.flow(report);
    }

    fn message(&mut self, report: &MessageReport) {
        self.0.message(report);
        self.1.message(report);
    }

    fn page(&mut self, report: &PageReport) {
        self.0.page(report);
        self.1.page(report);
    }

    fn datagram(&mut self, sent_at: Time, arrived_at: Option<Time>) {
        self.0.datagram(sent_at, arrived_at);
        self.1.datagram(sent_at, arrived_at);
    }

    fn focus(&mut self, serial: u64) -> bool {
        let one = self.0.focus(serial);
        self.1.focus(serial) || one
    }

    fn sender(&mut self, now: Time, trace: &SenderTrace) {
        self.0.sender(now, trace);
        self.1.sender(now, trace);
    }

    fn queue(&mut self, now: Time, element: usize, packets: u64, bytes: Bytes) {
        self.0.queue(now, element, packets, bytes);
        self.1.queue(now, element, packets, bytes);
    }

    fn element(&mut self, now: Time, element: usize, event: ElementEvent, packet: &Packet) {
        self.0.element(now, element, event, packet);
        self.1.element(now, element, event, packet);
    }

    fn read(&mut self, at: Time, group: u16, bytes: u32) {
        self.0.read(at, group, bytes);
        self.1.read(at, group, bytes);
    }
}

/// An observer as the simulator's recorder. Without `WATCHES` it costs nothing per packet.
pub struct ObserverRecorder<'a, const WATCHES: bool> {
    observer: &'a mut dyn Observer,
    is_wanted: bool,
    checker: Option<Checker<NullRecorder>>,
}

impl<'a, const WATCHES: bool> ObserverRecorder<'a, WATCHES> {
    /// Forwards all events to `observer`, or all but events of packets and senders.
    pub fn new(observer: &'a mut dyn Observer) -> Self {
        Self { observer, is_wanted: false, checker: None }
    }
}

impl<'a> ObserverRecorder<'a, true> {
    /// Forwards all events to `observer`, and events of packets to the checker before. Runs with
    /// and without a checker have one type: the simulation is compiled for each type of recorder.
    pub fn with_checker(observer: &'a mut dyn Observer, checker: Option<Checker<NullRecorder>>) -> Self {
        Self { observer, is_wanted: false, checker }
    }

    /// The faults that the checker found.
    pub fn faults(self, path: &Path) -> Vec<String> {
        self.checker.map_or(vec![], |checker| checker.finish(path).0)
    }
}

impl<const WATCHES: bool> Recorder for ObserverRecorder<'_, WATCHES> {
    fn flow(&mut self, report: &FlowReport) {
        self.observer.flow(report);
    }

    fn message(&mut self, report: &MessageReport) {
        self.observer.message(report);
    }

    fn page(&mut self, report: &PageReport) {
        self.observer.page(report);
    }

    fn datagram(&mut self, sent_at: Time, arrived_at: Option<Time>) {
        self.observer.datagram(sent_at, arrived_at);
    }

    #[inline]
    fn focus(&mut self, serial: u64) {
        if WATCHES {
            self.is_wanted = self.observer.focus(serial);
        }
    }

    #[inline]
    fn sender(&mut self, now: Time, trace: impl FnOnce() -> SenderTrace) {
        if WATCHES && self.is_wanted {
            self.observer.sender(now, &trace());
        }
    }

    #[inline]
    fn queue(&mut self, now: Time, element: usize, length: impl FnOnce() -> (u64, Bytes)) {
        if WATCHES {
            let (packets, bytes) = length();
            self.observer.queue(now, element, packets, bytes);
        }
    }

    #[inline]
    fn element(&mut self, now: Time, element: usize, event: ElementEvent, packet: &Packet) {
        if WATCHES {
            if let Some(checker) = &mut self.checker {
                checker.element(now, element, event, packet);
            }
            self.observer.element(now, element, event, packet);
        }
    }
}
