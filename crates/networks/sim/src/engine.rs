//! The engine: takes the next event and dispatches it.
//!
//! Events are of three kinds: a packet leaves an element, a timer expires, the workload is due. At
//! the same instant packets come first, then timers, then the workload; packets among themselves
//! are ordered by the number of the element, timers by flow and kind. Nothing else decides an
//! order, so a run is the same everywhere.

mod certificate;
mod halves;
mod informed;
mod opening;

pub use informed::{InformedStart, Insight};
pub use opening::peer_address;

use std::net::{IpAddr, Ipv4Addr};

use headstart_startup::history::{FixedHash, MemoryStore, Store};
use headstart_startup::prior::Hint;
use headstart_startup::quick_start::{DenialReason, Echo, Nonce, RequestInputs, SentRequest};
use headstart_startup::{Prior, Scheme, Startup, base};
use headstart_units::hash::{FNV64, fnv64};
use headstart_units::{Bytes, Ratio, Span, Time};

use crate::flow::{ATTEMPTS, ConnectionState, Flow, Flows};
use crate::packet::{Body, Ecn, FlowId, Label, Packet, RouterOption, Stamp};
use crate::path::Path;
use crate::random::Seed;
use crate::record::{FlowReport, Grant, MessageReport, Recorder};
use crate::schedule::{FLOW_TIMERS, Timer, TimerKind, Timers};
use crate::tcp::TcpConfig;
use crate::tcp::receiver::{AckDecision, Arrival};
use crate::tcp::sender::{Departure, Echoed};
use crate::workload::{BareRequest, FlowSpec, Opener, Order, Workload};

/// Unit of the time of sending that a datagram carries.
const STAMP: Span = Span::from_micros(10);

/// Flows that share settings: a scheme under test, or the background.
#[derive(Clone, Debug)]
pub struct Group {
    /// The start-up scheme, as it is before establishment.
    pub scheme: Scheme,
    /// Congestion avoidance that it hands over to.
    pub base: base::Kind,
    /// Settings of the TCP model.
    pub tcp: TcpConfig,
    /// The hint that peers send (Blitzstart §3); `None`: they send none.
    pub hint: Option<Hint>,
    /// Share of the peers that send it.
    pub hint_share: Ratio,
    /// The hint of the others, if they send one.
    pub other_hint: Option<Hint>,
    /// Peers of which the senders' host keeps a record; zero: no history.
    pub history_capacity: usize,
}

impl Group {
    /// Flows that hand over to CUBIC, without hints or a history.
    #[must_use]
    pub const fn new(scheme: Scheme, tcp: TcpConfig) -> Self {
        let (hint, hint_share, other_hint) = (None, Ratio::ONE, None);
        Self { scheme, base: base::Kind::Cubic, tcp, hint, hint_share, other_hint, history_capacity: 0 }
    }

    /// The hint of a peer: all of its flows send the same.
    fn hint_of(&self, peer: u32) -> Option<Hint> {
        let draw = fnv64(FNV64, peer.to_be_bytes()) % DRAWS;
        if draw < self.hint_share.of(DRAWS) { self.hint } else { self.other_hint }
    }
}

/// Values of the draw that decides which hint a peer sends.
const DRAWS: u64 = 10_000;

/// Complete description of a run.
#[derive(Debug)]
pub struct Scenario {
    /// The path.
    pub path: Path,
    /// The groups that flows belong to.
    pub groups: Vec<Group>,
    /// The traffic.
    pub workload: Box<dyn Workload>,
    /// End of the run, with unfinished flows or without.
    pub until: Time,
}

/// Counters of a run in addition to the events of its recorder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// A hash over the stream of events: equal for equal runs.
    pub fingerprint: u64,
    /// Packets and timers handled.
    pub events: u64,
    /// Data packets sent by all senders.
    pub data_packets: u64,
    /// Flows opened.
    pub flows: u64,
    /// Flows unfinished at the end.
    pub unfinished: u64,
    /// Largest number of concurrent flows.
    pub peak_flows: u64,
    /// The time of the last event.
    pub ended_at: Time,
}

/// A run that is over.
#[derive(Debug)]
pub struct Finished<R> {
    /// Fingerprint of the run, and counts of events, packets and flows.
    pub summary: Summary,
    /// The path, with the account of every packet.
    pub path: Path,
    /// The history of each group.
    pub histories: Vec<MemoryStore>,
    /// The recorder.
    pub recorder: R,
}

/// A run in progress.
#[derive(Debug)]
pub struct Simulation<R> {
    path: Path,
    groups: Vec<Group>,
    /// One for each group: its senders share a host.
    histories: Vec<MemoryStore>,
    workload: Box<dyn Workload>,
    until: Time,
    now: Time,
    flows: Flows,
    timers: Timers,
    orders: Vec<Order>,
    recorder: R,
    summary: Summary,
    last_opened: Option<FlowId>,
    /// The group whose starts know the state of the path, and their choice.
    informed: Option<(u16, Box<dyn InformedStart>)>,
}

impl<R: Recorder> Simulation<R> {
    /// A run that has not begun.
    pub fn new(scenario: Scenario, recorder: R) -> Self {
        let histories = scenario
            .groups
            .iter()
            .map(|group| MemoryStore::new(group.history_capacity, FixedHash::default()));
        Self {
            path: scenario.path,
            histories: histories.collect(),
            groups: scenario.groups,
            workload: scenario.workload,
            until: scenario.until,
            now: Time::ZERO,
            flows: Flows::default(),
            timers: Timers::default(),
            orders: Vec::new(),
            recorder,
            summary: Summary { fingerprint: FNV64, ..Summary::default() },
            last_opened: None,
            informed: None,
        }
    }

    /// The senders of `group` begin with the records of `history`, from an earlier run.
    #[must_use]
    pub fn with_history(mut self, group: u16, history: MemoryStore) -> Self {
        if let Some(mine) = self.histories.get_mut(usize::from(group)) {
            *mine = history;
        }
        self
    }

    /// The flows of `group` start with the scheme that `start` chooses by the state of the path at
    /// each flow's first byte, not with the group's.
    #[must_use]
    pub fn with_informed_start(mut self, group: u16, start: Box<dyn InformedStart>) -> Self {
        self.informed = Some((group, start));
        self
    }

    /// Runs to the end: until no event is left, or until the scenario's limit.
    pub fn run(mut self) -> Finished<R> {
        while self.step() {}
        let ended_at = self.now;
        let mut left: Vec<_> = self.flows.live().map(|(id, flow)| (flow.serial, id)).collect();
        left.sort_unstable();
        for (_, id) in left {
            self.end_flow(id);
            self.summary.unfinished += 1;
        }
        self.summary.ended_at = ended_at;
        self.summary.flows = self.flows.opened();
        self.summary.peak_flows = self.flows.peak() as u64;
        Finished {
            summary: self.summary,
            path: self.path,
            histories: self.histories,
            recorder: self.recorder,
        }
    }

    /// Handles one event; `false` when there is none left.
    #[inline]
    fn step(&mut self) -> bool {
        let (packet_at, timer_at) = (self.path.next_at(), self.timers.next_at());
        let workload_at = self.workload.next_at();
        let next_at = packet_at.min(timer_at).min(workload_at);
        if next_at > self.until || next_at == Time::NEVER {
            return false;
        }
        self.now = next_at;
        self.summary.events += 1;
        if packet_at == next_at {
            if let Some(packet) = self.path.advance(next_at, &mut self.recorder) {
                self.arrive(packet);
            }
        } else if timer_at == next_at {
            if let Some(timer) = self.timers.pop() {
                self.on_timer(timer);
            }
        } else {
            self.workload.on_time(next_at, &mut self.orders);
            self.execute_orders();
        }
        true
    }

    /// Folds an event into the fingerprint.
    #[inline]
    fn mark(&mut self, flow: FlowId, what: u64) {
        let word = self.now.as_nanos() ^ (u64::from(flow.slot) << 40) ^ what;
        self.summary.fingerprint =
            (self.summary.fingerprint.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    // --- orders of the workload ------------------------------------------------------------------

    fn execute_orders(&mut self) {
        let mut orders = std::mem::take(&mut self.orders);
        for order in orders.drain(..) {
            match order {
                Order::Open(spec) => self.open(&spec),
                Order::Ask { flow, bytes } => self.ask(flow, bytes),
                Order::Write { flow, bytes } => self.write(flow, bytes),
                Order::Close(flow) => {
                    if let Some(closing) = self.flows.get_mut(flow) {
                        closing.is_closing = true;
                    }
                    self.end_if_over(flow);
                }
                Order::PageDone(report) => self.recorder.page(&report),
                Order::Request(request) => self.send_bare(&request),
                Order::Datagram { class, size } => self.send_datagram(class, size),
            }
        }
        // Sending may have crossed a path without delay and so made new orders; they follow these.
        orders.append(&mut self.orders);
        self.orders = orders;
        if !self.orders.is_empty() {
            self.execute_orders();
        }
    }

    fn open(&mut self, spec: &FlowSpec) {
        let now = self.now;
        let (id, flow) = self.flows.open();
        flow.group = spec.group;
        flow.class = spec.class;
        flow.peer = spec.peer;
        flow.opener = spec.opener;
        flow.tag = spec.tag;
        flow.size_known = spec.size_known;
        flow.is_closing = !spec.keep_open;
        flow.opened_at = now;
        flow.requests_sent = 1;
        let has_message = !spec.bytes.is_zero();
        if has_message {
            flow.unread.push_back((now, spec.bytes));
        }
        match spec.opener {
            Opener::Sender => {
                flow.requests_received = 1;
                if has_message {
                    flow.written = spec.bytes;
                    self.seat(id);
                    let config = &self.groups[usize::from(spec.group)].tcp;
                    let _ = self.flows.get_mut(id).is_some_and(|it| it.sender.write(now, spec.bytes, config));
                }
            }
            Opener::Receiver => flow.pending_responses.extend(has_message.then_some(spec.bytes)),
        }
        if spec.keep_open {
            self.workload.on_open(id, spec.tag);
        }
        let before = self.last_opened.replace(id);
        match before.filter(|_| spec.shares_handshake) {
            Some(first) => self.join(first, id),
            None => self.send_syn(id),
        }
    }

    /// The flow's sender takes its seat: there is something to send, or the handshake is complete.
    fn seat(&mut self, id: FlowId) {
        if let Some(flow) = self.flows.seat(id) {
            let group = &self.groups[usize::from(flow.group)];
            flow.sender.reset(group.scheme, group.base, &group.tcp);
        }
    }

    fn ask(&mut self, id: FlowId, bytes: Bytes) {
        self.seat(id);
        let now = self.now;
        let Some(flow) = self.flows.get_mut(id) else { return };
        let group = &self.groups[usize::from(flow.group)];
        flow.requests_sent += 1;
        flow.unread.push_back((now, bytes));
        match flow.opener {
            Opener::Sender => {
                flow.requests_received += 1;
                flow.written += bytes;
                if flow.sender.write(now, bytes, &group.tcp) {
                    self.repeat_request(id, bytes);
                }
                self.notify_more(id);
                self.pump(id);
            }
            Opener::Receiver => {
                flow.pending_responses.push_back(bytes);
                // Messages requested before the handshake is complete go with its first request.
                if flow.opener_done {
                    flow.client_tries = 0;
                    self.send_request(id);
                }
            }
        }
    }

    // --- packets ---------------------------------------------------------------------------------

    #[inline(always)]
    fn send(&mut self, flow: FlowId, route: u16, size: u16, ecn: Ecn, body: Body) {
        let FlowId { slot, generation } = flow;
        let packet = Packet { slot, generation, size, route, hop: 0, ecn, body };
        if let Some(packet) = self.path.launch(self.now, packet, &mut self.recorder) {
            self.arrive(packet);
        }
    }

    /// A packet has crossed its whole route.
    #[inline]
    fn arrive(&mut self, packet: Packet) {
        let id = packet.flow();
        match packet.body {
            Body::Data { segment, transmission, is_pushed, label, .. } => {
                self.mark(id, u64::from(segment) << 2);
                let arrival = Arrival { segment, transmission, is_pushed };
                self.on_data(id, arrival, packet.ecn, label.stamp);
            }
            Body::Ack(ack, stamp, marks) => {
                self.mark(id, u64::from(ack.cumulative) << 2 | 1);
                let Some(flow) = self.flows.get_mut(id) else { return };
                let config = &self.groups[usize::from(flow.group)].tcp;
                self.recorder.focus(flow.serial);
                let is_marked = packet.ecn == Ecn::Marked;
                let echo = Echoed { is_marked, marks, stamp };
                flow.sender.on_ack(self.now, &ack, echo, config, &mut self.recorder);
                if flow.has_reservation {
                    self.release(id);
                }
                let Some(flow) = self.flows.get_mut(id) else { return };
                if flow.is_closing && flow.sender.is_done() {
                    self.end_if_over(id);
                }
                self.pump(id);
            }
            Body::Syn { attempt, note } => {
                self.mark(id, 2);
                self.on_syn(id, attempt, self.answer(note, packet.route));
            }
            Body::SynAck { attempt, note } => {
                self.mark(id, 3);
                self.on_syn_ack(id, attempt, note, packet.route);
            }
            Body::Certificate { number, attempt } => {
                self.mark(id, u64::from(number) << 3 | 7);
                self.on_certificate(id, number, attempt, packet.route);
            }
            Body::RateRequest { note } => {
                self.mark(id, 3 << 2 | 2);
                self.on_question(id, self.answer(note, packet.route));
            }
            Body::Answer { note } => {
                self.mark(id, 3 << 2 | 3);
                self.on_answer(id, note);
            }
            Body::Request { number, attempt, note } => {
                self.mark(id, u64::from(number) << 2 | 2);
                self.on_request(id, number, attempt, note);
            }
            Body::Datagram { number } => {
                self.mark(id, u64::from(number));
                let sent_at = Time::ZERO + STAMP * u64::from(number);
                self.recorder.datagram(sent_at, Some(self.now));
            }
        }
    }

    #[inline]
    fn on_data(&mut self, id: FlowId, arrival: Arrival, ecn: Ecn, stamp: Stamp) {
        let now = self.now;
        let Some(flow) = self.flows.get_mut(id) else { return };
        if flow.other_half.is_some() {
            self.establish_other(id);
        } else if !flow.opener_done {
            // An answer in 0-RTT completes the handshake where its SYN-ACK was lost.
            let attempt = flow.attempt;
            self.on_syn_ack(id, attempt, RouterOption::Nothing, 0);
        }
        let Some(flow) = self.flows.get_mut(id) else { return };
        let config = &self.groups[usize::from(flow.group)].tcp;
        // Data answers all requests only if all of them arrived: a later one may have been lost.
        if flow.requests_received == flow.requests_sent {
            flow.client_at = Time::NEVER;
        }
        flow.receiver.stamp = stamp;
        if ecn == Ecn::Marked {
            flow.receiver.marks = flow.receiver.marks.wrapping_add(1);
        }
        let answer = flow.receiver.on_data(now, arrival, &config.delayed_ack);
        while flow.sender.next_message_end().is_some_and(|end| end < flow.receiver.next()) {
            flow.sender.message_read();
            let Some((requested_at, bytes)) = flow.unread.pop_front() else { break };
            flow.read += bytes;
            let (tag, keeps_open) = (flow.tag, !flow.is_closing);
            self.recorder.message(&MessageReport {
                serial: flow.serial,
                group: flow.group,
                requested_at,
                read_at: now,
                bytes,
            });
            if flow.unread.is_empty() {
                flow.completed_at = Some(now);
                flow.sender.limits().stop(now);
            }
            if keeps_open {
                self.workload.on_message(now, id, tag, &mut self.orders);
            }
        }
        if answer == AckDecision::Immediate || ecn == Ecn::Marked {
            self.acknowledge(id, ecn);
        } else {
            self.schedule(id);
        }
        if !self.orders.is_empty() {
            self.execute_orders();
        }
    }

    #[inline]
    fn acknowledge(&mut self, id: FlowId, ecn: Ecn) {
        let Some(flow) = self.flows.get_mut(id) else { return };
        let size = self.groups[usize::from(flow.group)].tcp.header.get() as u16;
        let ack = flow.receiver.acknowledge();
        let (stamp, marks) = (flow.receiver.stamp, flow.receiver.marks);
        let route = Self::forward(flow) + 1;
        let echo = if ecn == Ecn::Marked { Ecn::Marked } else { Ecn::NotCapable };
        self.send(id, route, size, echo, Body::Ack(ack, stamp, marks));
    }

    /// Sends everything that may leave now, and sets the timers.
    #[inline]
    fn pump(&mut self, id: FlowId) {
        let Some(flow) = self.flows.get_mut(id) else { return };
        if flow.state != ConnectionState::Established {
            return;
        }
        self.recorder.focus(flow.serial);
        let route = Self::forward(flow);
        let config = self.groups[usize::from(flow.group)].tcp;
        let ecn = flow.sender.ecn(&config);
        // The flow is looked up once: nothing that an element answers at once can end it.
        while let Some(flow) = self.flows.get_mut(id)
            && let Some(departure) = flow.sender.next_departure(self.now, &config, &mut self.recorder)
        {
            self.summary.data_packets += 1;
            let size = departure.payload + config.header.get() as u16;
            let label = flow.sender.label();
            let Departure { segment, transmission, is_pushed, priority, .. } = departure;
            let body = Body::Data { segment, transmission, is_pushed, priority, label };
            self.send(id, route, size, ecn, body);
        }
        self.schedule(id);
    }

    // --- timers ----------------------------------------------------------------------------------

    /// Puts timers into the heap that are due earlier than their entry there. A timer that moved
    /// later is left: at its expiry it is put back.
    #[inline]
    fn schedule(&mut self, id: FlowId) {
        let Some(flow) = self.flows.get_mut(id) else { return };
        let due = [
            (TimerKind::Loss, flow.sender.loss_timer()),
            (TimerKind::Pace, flow.sender.pace_timer()),
            (TimerKind::DelayedAck, flow.receiver.ack_at),
            (TimerKind::Client, flow.client_at),
        ];
        const { assert!(FLOW_TIMERS == 4) };
        for (kind, at) in due {
            if at < flow.scheduled[kind as usize] {
                flow.scheduled[kind as usize] = at;
                self.timers.push(Timer { at, flow: id, kind });
            }
        }
    }

    fn on_timer(&mut self, timer: Timer) {
        let id = timer.flow;
        let Some(flow) = self.flows.get_mut(id) else { return };
        let scheduled = &mut flow.scheduled[timer.kind as usize];
        if *scheduled != timer.at {
            return;
        }
        *scheduled = Time::NEVER;
        let due = match timer.kind {
            TimerKind::Loss => flow.sender.loss_timer(),
            TimerKind::Pace => flow.sender.pace_timer(),
            TimerKind::DelayedAck => flow.receiver.ack_at,
            TimerKind::Client => flow.client_at,
        };
        if due > self.now {
            self.schedule(id);
            return;
        }
        self.mark(id, 0x100 | timer.kind as u64);
        match timer.kind {
            TimerKind::Loss => {
                let Some(flow) = self.flows.get_mut(id) else { return };
                let config = &self.groups[usize::from(flow.group)].tcp;
                self.recorder.focus(flow.serial);
                flow.sender.on_loss_timer(self.now, config, &mut self.recorder);
                self.pump(id);
            }
            TimerKind::Pace => self.pump(id),
            TimerKind::DelayedAck => self.acknowledge(id, Ecn::NotCapable),
            TimerKind::Client => self.on_client_timer(id),
        }
    }

    // --- ends ------------------------------------------------------------------------------------

    fn end_if_over(&mut self, id: FlowId) {
        let Some(flow) = self.flows.get_mut(id) else { return };
        if flow.is_closing && flow.unread.is_empty() && flow.sender.is_done() {
            self.end_flow(id);
        }
    }

    /// Releases the reservation of the first flight once the flight is acknowledged or lost.
    fn release(&mut self, id: FlowId) {
        let Some(flow) = self.flows.get_mut(id) else { return };
        if let (Some(lease), Some(fate)) =
            (&mut flow.lease, flow.sender.controller().scheme().credit_revision(false))
        {
            self.histories[usize::from(flow.group)].release(lease, &fate);
            flow.has_reservation = false;
        }
    }

    fn end_flow(&mut self, id: FlowId) {
        let Some(flow) = self.flows.get_mut(id) else { return };
        self.recorder.flow(&FlowReport {
            serial: flow.serial,
            group: flow.group,
            peer: flow.peer,
            opened_at: flow.opened_at,
            established_at: flow.established_at,
            completed_at: flow.completed_at.filter(|_| flow.unread.is_empty()),
            ended_at: self.now,
            min_rtt: flow.sender.rtt().min,
            written: flow.written,
            read: flow.read,
            delivered: flow.sender.rate().delivered(),
            duplicates: flow.receiver.duplicates(),
            missed: flow.receiver.missed(),
            handshake_retransmissions: flow.client_repeats,
            had_history: flow.had_history,
            grant: flow.grant,
            later_requests: flow.later_requests,
            first_flight: flow.sender.first_flight_sent(),
            counts: *flow.sender.counts(),
            limited: *flow.sender.limited().spans(),
            slow_start_end: flow.sender.controller().slow_start_end(),
            phase: flow.sender.controller().phase(),
        });
        if flow.has_reservation {
            self.release(id);
        }
        let Some(flow) = self.flows.get_mut(id) else { return };
        if let Some(lease) = flow.lease.take() {
            let outcome = flow.sender.record_update(self.now, &self.groups[usize::from(flow.group)].tcp);
            self.histories[usize::from(flow.group)].close(lease, outcome);
        }
        self.flows.close(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_startup::prior::Access;
    use headstart_startup::scheme::SlowStart;
    use headstart_units::Rate;

    #[test]
    fn a_share_of_the_peers_sends_the_hint_and_the_rest_the_other() {
        let named = |mbit| Some(Hint { bandwidth: Rate::from_mbit_per_sec(mbit), access: Access::Dsl });
        let scheme = Scheme::SlowStart(SlowStart::new(Default::default()));
        for (percent, range) in [(0, 0..=0), (25, 230..=270), (100, 1000..=1000)] {
            let group = Group {
                hint: named(10),
                hint_share: Ratio::percent(percent),
                other_hint: named(200),
                ..Group::new(scheme, TcpConfig::default())
            };
            let hints = (0..1000).map(|peer| group.hint_of(peer));
            let truths = hints.clone().filter(|hint| *hint == named(10)).count();
            assert!(range.contains(&truths), "{truths} of {percent} %");
            assert_eq!(hints.filter(|hint| *hint == named(200)).count(), 1000 - truths);
        }
    }
}
