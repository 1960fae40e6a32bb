//! The simulator's own scenarios with the real QUIC stack in place of its TCP model.
//!
//! It takes the same [`Scenario`] as [`headstart_sim::Simulation`] (path, groups, workload) and the
//! same [`Recorder`]. So every experiment with the TCP model can be repeated with the stack and the
//! results compared: races, traces, experiments.
//!
//! | the scenario's | over QUIC |
//! |---|---|
//! | sender, receiver | server, client: the receiver initiates every connection |
//! | message | a stream of the size in its request. Answers leave in the order of requests |
//! | segment | a full packet: on the link as large as the group's segments (1500 bytes) |
//! | receive window | flow control of the connection and of each stream |
//! | scheme, base controller, hint, history | adapters of [`headstart_quic`], a server per group |
//! | loss detection, probes, acks, default pacing | the stack's own; group settings are ignored |
//!
//! So that nothing differs but the transport, schemes get the TCP model's inputs: records are not
//! gated ([`headstart_quic::Gates::OPEN`]), hints neither capped nor penalised, copies limited only
//! by their own budget.
//!
//! # Reports
//!
//! - A flow opens as the client connects; it is established as the sender reads the request.
//! - Sent and delivered are bytes of packets with application data, not of payload; their ratio
//!   means the same.
//! - Offsets in a sender's trace are those of packets in the order of departure, since lost data
//!   leaves in other packets. `acknowledged` is the end of the newest packet that an ack covered.
//!   The application's unwritten data is estimated to within a packet.
//! - Retransmissions are the packets declared lost; timeouts are persistent congestion; probes and
//!   retransmissions of the handshake are not reported.
//! - The stack's own controllers trace nothing; its BBR draws from the system's randomness, so that
//!   a run with it cannot be repeated. The lab runs the simulator's BBR instead.
//!
//! # Repeatability
//!
//! One thread, no clock: the same scenario and seed give the same events. With TLS contents are
//! random, so only times and sizes are in the fingerprint; with null crypto every byte is.

mod exchange;
mod flow;
mod host;
pub mod observer;
mod wire;

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use headstart_net::Packet as _;
use headstart_quic::copies::SendTiming;
use headstart_quic::{Choice, DuplicateSender, Epoch, Handle};
use headstart_sim::packet::{FlowId, Packet};
use headstart_sim::record::MessageReport;
use headstart_sim::schedule::{Timer, TimerKind, Timers};
use headstart_sim::workload::{FlowSpec, Order, Workload};
use headstart_sim::{Finished, Path, Recorder, Scenario, Seed, Summary, peer_address};
use headstart_startup::history::{FixedHash, MemoryStore};
use headstart_units::Time;
use noq_proto::{ConnectionIdGenerator, DatagramEvent, FourTuple};

use crate::datagram::Datagram;
use crate::end::{End, Ids, base, endpoint, hash};
use crate::error::ScenarioError;
use crate::identity::NAME;
use exchange::{PendingMessage, RequestSide, ResponseSide};
use flow::{Flow, Flows, PathCounters, Side};
use host::Host;
pub use host::{EndpointSettings, UNCAPPED, transport};
use observer::{ObservedDatagram, Observer};

/// Parameters of a run in addition to the scenario's.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The scheme of each group, in the scenario's order.
    pub choices: Vec<Choice>,
    /// Protection of packets.
    pub crypto: Crypto,
    /// Determines connection ids and the stack's random choices.
    pub seed: Seed,
}

/// Protection of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Crypto {
    /// As on the Internet.
    #[default]
    Tls,
    /// None: for large sweeps.
    Null,
}

/// A run in progress.
pub struct Simulation<R> {
    epoch: Epoch,
    path: Path,
    hosts: Vec<Host>,
    workload: Box<dyn Workload>,
    until: Time,
    now: Time,
    flows: Flows,
    timers: Timers,
    orders: Vec<Order>,
    /// Packets that crossed a path without delay.
    undelayed: VecDeque<Packet>,
    seed: Seed,
    is_null: bool,
    recorder: R,
    observer: Option<Box<dyn Observer>>,
    /// Client address changes: time, flow, new address. The earliest first.
    migrations: VecDeque<(Time, u64, SocketAddr)>,
    summary: Summary,
}

const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 443);

impl<R: Recorder> Simulation<R> {
    /// A run before its start.
    ///
    /// # Errors
    /// An endpoint cannot be set up; or there are not as many choices as groups.
    pub fn new(scenario: Scenario, options: &RunOptions, recorder: R) -> Result<Self, ScenarioError> {
        if options.choices.len() != scenario.groups.len() {
            return Err(ScenarioError::SchemeCount {
                found: options.choices.len(),
                expected: scenario.groups.len(),
            });
        }
        let epoch = Epoch::new(base(), Time::ZERO);
        let hosts = scenario.groups.iter().zip(&options.choices);
        let hosts = hosts.map(|(group, choice)| Host::new(group, *choice, options, epoch));
        let hosts = hosts.collect::<Result<_, _>>()?;
        let Scenario { path, workload, until, .. } = scenario;
        Ok(Self::with_hosts(epoch, path, hosts, workload, until, options, recorder))
    }

    /// A run whose groups are set up with other endpoints than the scenario's; of `options` only
    /// crypto and seed are used.
    pub fn with_endpoints(
        path: Path,
        endpoints: Vec<EndpointSettings>,
        workload: Box<dyn Workload>,
        until: Time,
        options: &RunOptions,
        recorder: R,
    ) -> Self {
        let epoch = Epoch::new(base(), Time::ZERO);
        let hosts = endpoints.into_iter().map(|endpoints| Host {
            endpoints: EndpointSettings {
                server: endpoints.server.epoch(epoch),
                client: endpoints.client.epoch(epoch),
                ..endpoints
            },
            history: Arc::new(Mutex::new(MemoryStore::new(1, FixedHash::default()))),
        });
        Self::with_hosts(epoch, path, hosts.collect(), workload, until, options, recorder)
    }

    fn with_hosts(
        epoch: Epoch,
        path: Path,
        hosts: Vec<Host>,
        workload: Box<dyn Workload>,
        until: Time,
        options: &RunOptions,
        recorder: R,
    ) -> Self {
        Self {
            epoch,
            path,
            hosts,
            workload,
            until,
            now: Time::ZERO,
            flows: Flows::default(),
            timers: Timers::default(),
            orders: vec![],
            undelayed: VecDeque::new(),
            seed: options.seed,
            is_null: options.crypto == Crypto::Null,
            recorder,
            observer: None,
            migrations: VecDeque::new(),
            summary: Summary::default(),
        }
    }

    /// Passes every datagram to `observer`, which may drop it.
    #[must_use]
    pub fn with_observer(mut self, observer: Box<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Changes the clients' addresses of flows, by serial number, at the given times.
    #[must_use]
    pub fn with_migrations(mut self, mut migrations: Vec<(Time, u64, SocketAddr)>) -> Self {
        migrations.sort_unstable();
        self.migrations = migrations.into();
        self
    }

    /// Gives the senders of `group` the history of an earlier run.
    #[must_use]
    pub fn with_history(self, group: u16, history: MemoryStore) -> Self {
        if let Some(host) = self.hosts.get(usize::from(group)) {
            *host.history() = history;
        }
        self
    }

    /// Runs until no event is left, or until the scenario's limit.
    pub fn run(mut self) -> Finished<R> {
        while self.step() {}
        let ended_at = self.now;
        for id in self.flows.live() {
            self.end_flow(id);
            self.summary.unfinished += 1;
        }
        let empty = || MemoryStore::new(1, FixedHash::default());
        let histories = self.hosts.iter().map(|host| std::mem::replace(&mut *host.history(), empty()));
        let histories = histories.collect();
        let (flows, peak_flows) = (self.flows.opened, self.flows.peak());
        Finished {
            summary: Summary { ended_at, flows, peak_flows, ..self.summary },
            path: self.path,
            histories,
            recorder: self.recorder,
        }
    }

    /// Handles one event; `false` when there is none left.
    fn step(&mut self) -> bool {
        let (packet_at, timer_at) = (self.path.next_at(), self.timers.next_at());
        let next_at = packet_at.min(timer_at).min(self.workload.next_at());
        let is_over = self.observer.as_ref().is_some_and(|observer| observer.is_over());
        if next_at > self.until || next_at == Time::NEVER || is_over {
            return false;
        }
        self.now = self.now.max(next_at);
        while let Some(&(at, serial, address)) = self.migrations.front()
            && at <= self.now
        {
            self.migrations.pop_front();
            self.flows.move_to(serial, address);
        }
        self.summary.events += 1;
        if packet_at == next_at {
            if let Some(packet) = self.path.advance(self.now, &mut self.recorder) {
                self.arrive(&packet);
            }
        } else if timer_at == next_at {
            if let Some(timer) = self.timers.pop() {
                self.on_timer(timer);
            }
        } else {
            self.workload.on_time(self.now, &mut self.orders);
        }
        self.process_orders();
        true
    }

    /// Carries out the workload's orders and delivers undelayed packets, until none is left.
    fn process_orders(&mut self) {
        loop {
            if let Some(packet) = self.undelayed.pop_front() {
                self.arrive(&packet);
            } else if self.orders.is_empty() {
                return;
            }
            for order in std::mem::take(&mut self.orders) {
                self.execute(order);
            }
        }
    }

    fn execute(&mut self, order: Order) {
        let now = self.now;
        match order {
            Order::Open(spec) => self.open(spec),
            Order::Ask { flow, bytes } => {
                if let Some(requester) = self.flows.get_mut(flow) {
                    requester.request_side.enqueue_request(PendingMessage { requested_at: now, bytes });
                    self.drive_receiver(flow);
                }
            }
            Order::Write { flow, bytes } => {
                if let Some(writing) = self.flows.get_mut(flow) {
                    writing.request_side.expect(PendingMessage { requested_at: now, bytes });
                    writing.response_side.enqueue(bytes);
                    self.drive_sender(flow);
                }
            }
            Order::Close(flow) => {
                if let Some(closing) = self.flows.get_mut(flow) {
                    closing.is_closing = true;
                    self.end_if_over(flow);
                }
            }
            Order::PageDone(report) => self.recorder.page(&report),
            // A request to routers, which only packets of another transport carry.
            Order::Request(_) | Order::Datagram { .. } => {}
        }
    }

    fn open(&mut self, spec: FlowSpec) {
        let (now, instant) = (self.now, self.epoch.instant(self.now));
        let (id, serial) = self.flows.reserve();
        let host = &self.hosts[usize::from(spec.group)];
        let seed = Seed(self.seed.0 ^ serial);
        let EndpointSettings { client_sends, packet, .. } = host.endpoints;
        let (mut config, handle) = host.endpoints.client.configure(SERVER, NAME);
        let first_id = seed.child("first connection id").0;
        config.initial_dst_cid_provider(Arc::new(move || Ids(first_id).generate_cid()));
        let mut receiver = Side { endpoint: endpoint(seed.child("receiver").0), end: None };
        let mut sender = Side { endpoint: endpoint(seed.child("sender").0), end: None };
        let (client, server) =
            if client_sends { (&mut sender, &mut receiver) } else { (&mut receiver, &mut sender) };
        if let Ok((id, connection)) = client.endpoint.connect(instant, config, SERVER, NAME) {
            let handle = client_sends.then_some(handle);
            handle.iter().for_each(Handle::keep_journal);
            client.end = Some(Box::new(End { id, connection, handle, destination: None, ecn: None }));
        }
        server.endpoint.set_server_config(Some(Arc::new(host.endpoints.server.stack_config().clone())));
        let sends_early = host.endpoints.sends_early;
        let mut request_side = RequestSide::new(sends_early);
        let mut response_side = ResponseSide::default();
        let message = PendingMessage { requested_at: now, bytes: spec.bytes };
        if client_sends {
            request_side.expect(message);
            response_side.enqueue(spec.bytes);
        } else if !spec.bytes.is_zero() {
            request_side.enqueue_request(message);
        }
        let port = FIRST_PORT + (serial % PORTS) as u16;
        self.flows.insert(Box::new(Flow {
            id,
            serial,
            spec,
            address: SocketAddr::new(peer_address(spec.peer), port),
            receiver,
            sender,
            request_side,
            response_side,
            wires: wire::Wires::default(),
            duplicates: Arc::default(),
            is_closing: !spec.keep_open,
            outlives_receiver: host.endpoints.outlives_receiver,
            opened_at: now,
            established_at: None,
            completed_at: None,
            due: Time::NEVER,
            packet,
            counters: PathCounters::default(),
        }));
        if spec.keep_open {
            self.workload.on_open(id, spec.tag);
        }
        self.drive_receiver(id);
        if client_sends {
            self.drive_sender(id);
        }
    }

    // --- packets --------------------------------------------------------------------------------

    /// A datagram leaves one of the endpoints, and is observed.
    fn send(&mut self, id: FlowId, is_forward: bool, datagram: Datagram, is_stray: bool) {
        let Some(observer) = &mut self.observer else { return self.put(id, is_forward, datagram) };
        let Some(flow) = self.flows.get_mut(id) else { return };
        let (now, serial) = (self.now, flow.serial);
        let observed = ObservedDatagram { now, flow: serial, is_forward, datagram: &datagram, is_stray };
        let (passes, forged) = (observer.on_departure(&observed), observer.forged_packets(serial));
        if passes {
            self.put(id, is_forward, datagram);
        }
        self.inject(id, forged);
    }

    /// Puts an observer's packets on the path to the sender.
    fn inject(&mut self, id: FlowId, forged: Vec<bytes::Bytes>) {
        for contents in forged {
            self.put(id, false, Datagram { ecn: None, contents, is_copy: false });
        }
    }

    fn put(&mut self, id: FlowId, is_forward: bool, datagram: Datagram) {
        let Some(flow) = self.flows.get_mut(id) else { return };
        let is_data = is_forward && datagram.is_data();
        if is_data {
            let counted = if datagram.is_copy { &mut flow.counters.copies } else { &mut flow.counters.data };
            counted.0 += 1;
            counted.1 += datagram.payload().get();
            self.summary.data_packets += 1;
        }
        let ecn = self.hosts[usize::from(flow.spec.group)].endpoints.ecn;
        let route = flow.spec.class * 2 + u16::from(!is_forward);
        let packet = flow.wires.send(id, route, ecn, datagram);
        if let Some(packet) = self.path.launch(self.now, packet, &mut self.recorder) {
            self.undelayed.push_back(packet);
        }
    }

    /// A packet has crossed its whole route.
    fn arrive(&mut self, packet: &Packet) {
        let id = packet.flow();
        let instant = self.epoch.instant(self.now);
        let Some(flow) = self.flows.get_mut(id) else { return };
        let Some((contents, ecn)) = flow.wires.receive(packet) else { return };
        let digest = if self.is_null { hash(&contents) } else { packet.size().get() };
        let is_forward = packet.route.is_multiple_of(2);
        mark(&mut self.summary, self.now, id, digest << 1 | u64::from(is_forward));
        let EndpointSettings { client_sends, .. } = self.hosts[usize::from(flow.spec.group)].endpoints;
        if is_forward
            && self.hosts[usize::from(flow.spec.group)].endpoints.server.choice().needs_duplicate_sender()
            && !flow.counters.arrived.insert(hash(&contents))
        {
            flow.counters.duplicates += 1;
        }
        if let Some(observer) = &mut self.observer {
            let datagram = Datagram { ecn, contents: contents.clone(), is_copy: false };
            let (now, serial) = (self.now, flow.serial);
            let observed =
                ObservedDatagram { now, flow: serial, is_forward, datagram: &datagram, is_stray: false };
            observer.on_arrival(&observed);
            let forged = observer.forged_packets(serial);
            self.inject(id, forged);
        }
        if is_forward == client_sends {
            self.at_server(id, is_forward, ecn, &contents);
        } else if let Some(flow) = self.flows.get_mut(id) {
            let side = if is_forward { &mut flow.receiver } else { &mut flow.sender };
            let from = FourTuple::from_remote(SERVER);
            let event = side.endpoint.handle(instant, from, ecn, BytesMut::from(&contents[..]), &mut vec![]);
            if let (Some(DatagramEvent::ConnectionEvent(_, event)), Some(end)) = (event, &mut side.end) {
                end.connection.handle_event(event);
            }
        }
        if is_forward {
            self.drive_receiver(id);
        } else {
            self.drive_sender(id);
        }
    }

    fn at_server(
        &mut self,
        id: FlowId,
        is_forward: bool,
        ecn: Option<noq_proto::EcnCodepoint>,
        contents: &[u8],
    ) {
        let instant = self.epoch.instant(self.now);
        let Some(flow) = self.flows.get_mut(id) else { return };
        let side = if is_forward { &mut flow.receiver } else { &mut flow.sender };
        let from = FourTuple::new(flow.address, Some(SERVER.ip()));
        let mut answer = vec![];
        let event = side.endpoint.handle(instant, from, ecn, BytesMut::from(contents), &mut answer);
        match event {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some(end) = &mut side.end {
                    end.connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let EndpointSettings { server, is_unmodified, .. } =
                    &self.hosts[usize::from(flow.spec.group)].endpoints;
                let setup = match server.choice().needs_duplicate_sender() {
                    true => server
                        .clone()
                        .duplicate_sender(Arc::clone(&flow.duplicates) as Arc<dyn DuplicateSender>),
                    false => server.clone(),
                };
                let (address, local, first) =
                    (incoming.remote_address(), incoming.local_ip(), incoming.orig_dst_cid());
                let (config, handle) =
                    (!is_unmodified).then(|| setup.configure(address, local, first)).unzip();
                if incoming.remote_address_validated() {
                    handle.iter().for_each(Handle::address_validated);
                }
                handle.iter().for_each(Handle::keep_journal);
                let accepted = side.endpoint.accept(incoming, instant, &mut answer, config);
                if let Ok((id, connection)) = accepted {
                    side.end = Some(Box::new(End { id, connection, handle, destination: None, ecn: None }));
                }
            }
            Some(DatagramEvent::Response(transmit)) => {
                let contents = bytes::Bytes::copy_from_slice(&answer[..transmit.size]);
                let datagram = Datagram { ecn: transmit.ecn, contents, is_copy: false };
                self.send(id, !is_forward, datagram, false);
            }
            None => {}
        }
    }

    /// Runs the receiver's endpoint until it has nothing left to do at this instant.
    fn drive_receiver(&mut self, id: FlowId) {
        let (now, instant) = (self.now, self.epoch.instant(self.now));
        let Some(flow) = self.flows.get_mut(id) else { return };
        let Some(mut end) = flow.receiver.end.take() else { return };
        end.settle(&mut flow.receiver.endpoint);
        let messages = flow.request_side.process_events(now, &mut end.connection);
        if !messages.is_empty() && flow.request_side.is_idle() {
            flow.completed_at = Some(now);
        }
        let (tag, keeps_open) = (flow.spec.tag, !flow.is_closing);
        for message in messages {
            self.recorder.message(&MessageReport {
                serial: flow.serial,
                group: flow.spec.group,
                requested_at: message.requested_at,
                read_at: now,
                bytes: message.bytes,
            });
            if keeps_open {
                self.workload.on_message(now, id, tag, &mut self.orders);
            }
        }
        while let Some(datagram) = end.next_datagram(instant) {
            self.send(id, false, datagram, false);
        }
        if let Some(flow) = self.flows.get_mut(id) {
            end.settle(&mut flow.receiver.endpoint);
            flow.receiver.end = Some(end);
        }
        self.schedule(id);
        self.end_if_over(id);
    }

    /// Drives the sender's endpoint.
    fn drive_sender(&mut self, id: FlowId) {
        let (now, instant) = (self.now, self.epoch.instant(self.now));
        let Some(flow) = self.flows.get_mut(id) else { return };
        let Some(mut end) = flow.sender.end.take() else { return };
        end.settle(&mut flow.sender.endpoint);
        let written_before = flow.response_side.written;
        let handle = end.handle.as_ref().filter(|_| flow.spec.size_known);
        let is_more = flow.response_side.process_events(&mut end.connection);
        if is_more {
            flow.established_at.get_or_insert(now);
            if let Some(handle) = handle {
                handle.expect((flow.response_side.written - written_before).get());
            }
        }
        self.send_copies(id, &end, SendTiming::Now);
        while let Some(datagram) = end.next_datagram(instant) {
            self.send(id, true, datagram, false);
            self.send_copies(id, &end, SendTiming::AfterOriginal);
        }
        if let Some(flow) = self.flows.get_mut(id) {
            end.settle(&mut flow.sender.endpoint);
            flow.sender.end = Some(end);
            self.recorder.focus(flow.serial);
            for (at, trace) in flow.traces() {
                self.recorder.sender(at, || trace);
            }
        }
        self.schedule(id);
        self.end_if_over(id);
    }

    fn send_copies(&mut self, id: FlowId, end: &End, timing: SendTiming) {
        let Some(flow) = self.flows.get_mut(id) else { return };
        for copy in flow.duplicates.take(timing) {
            let is_stray = Some(copy.destination) != end.destination;
            let datagram = Datagram { ecn: end.ecn, contents: copy.contents, is_copy: true };
            self.send(id, true, datagram, is_stray);
        }
    }

    // --- timers ---------------------------------------------------------------------------------

    /// Sets a timer if it is due earlier than the one set. A timer that moved later is kept, and
    /// set again when it expires.
    fn schedule(&mut self, id: FlowId) {
        let epoch = self.epoch;
        let Some(flow) = self.flows.get_mut(id) else { return };
        let at = flow.next_at(epoch);
        if at < flow.due {
            flow.due = at;
            self.timers.push(Timer { at, flow: id, kind: TimerKind::Loss });
        }
    }

    fn on_timer(&mut self, timer: Timer) {
        let (id, instant) = (timer.flow, self.epoch.instant(self.now));
        let Some(flow) = self.flows.get_mut(id).filter(|flow| flow.due == timer.at) else { return };
        flow.due = Time::NEVER;
        let is_due = |side: &mut Side| {
            let Some(end) = &mut side.end else { return false };
            let is_due = end.connection.poll_timeout().is_some_and(|at| at <= instant);
            if is_due {
                end.connection.handle_timeout(instant);
            }
            is_due
        };
        let (receiver, sender) = (is_due(&mut flow.receiver), is_due(&mut flow.sender));
        if receiver {
            self.drive_receiver(id);
        }
        if sender {
            self.drive_sender(id);
        }
        self.schedule(id);
    }

    // --- ends -----------------------------------------------------------------------------------

    fn end_if_over(&mut self, id: FlowId) {
        if self.flows.get_mut(id).is_some_and(|flow| flow.is_over()) {
            self.end_flow(id);
        }
    }

    fn end_flow(&mut self, id: FlowId) {
        let Some(mut flow) = self.flows.remove(id) else { return };
        self.recorder.flow(&flow.report(self.now));
        if let Some(handle) = flow.sender.end.as_ref().and_then(|end| end.handle.as_ref()) {
            match &flow.response_side.lost {
                Some(reason) => handle.finish_with(reason),
                None => handle.finish(),
            }
        }
        if let Some(observer) = &mut self.observer {
            observer.on_flow_end(flow.serial, &flow.final_state());
        }
    }
}

/// First port of clients: connections of one peer differ in it.
const FIRST_PORT: u16 = 10_000;
const PORTS: u64 = 50_000;

/// Folds an event into the fingerprint.
fn mark(summary: &mut Summary, now: Time, flow: FlowId, what: u64) {
    let word = now.as_nanos() ^ (u64::from(flow.slot) << 40) ^ what;
    summary.fingerprint = (summary.fingerprint.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
}
