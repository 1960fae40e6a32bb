//! Flows over real QUIC: a server for each group, clients on own addresses, the relay between.
//!
//! A client opens a stream for each message; its [`TransferRequest`] holds the flow's number, the
//! size wanted and whether the server's scheme learns that size. A group is identified by the
//! client's address, 127.g.x.y for peer x.y of group g - 16: the relay sends from the client's own
//! address, so that histories distinguish peers.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use anyhow::{Context, Result};
use bytes::Bytes as Buffer;
use headstart_emu::clock::Clock;
use headstart_emu::{relay, udp};
use headstart_host::locked;
use headstart_quic::{
    ClientSetup, CopyPolicy, Gates, Handle, PreciseRuntime, ServerSetup, Sharded, StartReport,
};
use headstart_sim::Group;
use headstart_sim::record::Counts;
use headstart_sim::workload::FlowSpec;
use headstart_units::{Bytes, Time};
use headstart_virtual_quic::{TransferRequest, simulation};
use headstart_web::client::{Trust, tls};
use headstart_web::identity::Identity;
use headstart_web::{open, server};
use noq::crypto::rustls::QuicServerConfig;
use noq::{Connection, Endpoint, EndpointConfig, VarInt};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::driver::{ConnectionCounters, FlowEvent, Transport, WorkloadRun, run_workload};
use super::{DuplexPath, EmulatedRun, missed_deadlines};
use crate::virtual_quic::carried;
use headstart_study::setup::{GROUPS, SchemeMix, Setup};

/// The second byte of a client's address is this and its group's number.
const FIRST_NET: u8 = 16;
/// Bytes that a server writes at a time.
const CHUNK: usize = 64 * 1024;
/// Bytes that a client reads at a time.
const READ_AT_ONCE: usize = 64 * 1024;

/// Servers with their histories, and the set-ups of clients.
pub struct Testbed {
    runtime: Runtime,
    server: Endpoint,
    served: SocketAddr,
    clients: Vec<ClientSetup>,
    /// Destination of the servers' counters: the current run.
    event_sender: EventSender,
}

impl Drop for Testbed {
    fn drop(&mut self) {
        self.server.close(VarInt::from_u32(0), b"");
    }
}

impl super::hosts::Testbed for Testbed {
    fn new(setup: &Setup, mix: SchemeMix, groups: &[Group]) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .on_thread_start(|| {
                relay::prepare_thread(relay::Urgency::End);
            })
            .build()?;
        let _within = runtime.enter();
        let identity = Identity::temporary()?;
        let tls_server = Arc::new(server::tls(&identity.current()?)?);
        let crypto = QuicServerConfig::try_from(Arc::clone(&tls_server)).context("TLS")?;
        let base = noq::ServerConfig::with_crypto(Arc::new(crypto));
        let precise = PreciseRuntime::new();
        let entries = [mix.tested, mix.beside.unwrap_or(setup.reference()), setup.workload.long_scheme.0];
        let (mut servers, mut clients) = (vec![], vec![]);
        for (entry, group) in entries.iter().zip(groups) {
            // Configure the stack exactly as in the simulator, packet sizes included, so that only
            // the clock differs.
            let transport = simulation::transport(group);
            let mut base = base.clone();
            base.transport_config(Arc::new(transport.clone()));
            let choice = carried(entry)?;
            let server = ServerSetup::new(base, Arc::clone(&tls_server), choice)?
                .history(Arc::new(Sharded::new(setup.workload.history)))
                .gates(Gates::OPEN)
                .limits(simulation::UNCAPPED)
                .copies(CopyPolicy { stop_at_congestion: false, budget: Bytes::MAX })
                .base_controller(group.base)
                .flight_limit(group.tcp.receive_window.get())
                .duplicate_sender(precise.duplicate_sender());
            server.check()?;
            servers.push(server);
            let client =
                ClientSetup::new(Arc::new(tls(&Trust::AnyCertificate, None, false)?))?.transport(transport);
            clients.push(match group.hint {
                Some(hint) => client.exact_hint(hint),
                None => client,
            });
        }
        let socket = open::socket(SocketAddr::from(([127, 0, 0, 1], 0))).context("the server's socket")?;
        let server = Endpoint::new(EndpointConfig::default(), Some(base), socket, precise)?;
        let served = server.local_addr()?;
        let event_sender = EventSender::default();
        tokio::spawn(serve(server.clone(), Arc::new(servers), Arc::clone(&event_sender)));
        drop(_within);
        Ok(Self { runtime, server, served, clients, event_sender })
    }

    fn run(&self, DuplexPath { up, down }: DuplexPath, run: WorkloadRun) -> Result<EmulatedRun> {
        let clock = run.clock;
        let _within = self.runtime.enter();
        let mut ends = udp::Settings::before(self.served);
        (ends.most_clients, ends.keeps_addresses) = (1 << 16, true);
        let (address, relay) = udp::start(ends, up, down, clock, relay::Settings::default(), None)
            .context("cannot open a UDP port for the path")?;
        let (event_sender, events): (Sender<FlowEvent>, Receiver<FlowEvent>) = channel();
        *locked(&self.event_sender) = Some((event_sender.clone(), clock));
        let mut carrier = Clients {
            remote: address,
            setups: &self.clients,
            endpoints: BTreeMap::new(),
            flows: BTreeMap::new(),
            event_sender,
            clock,
        };
        let result = run_workload(run, &mut carrier, &events);
        *locked(&self.event_sender) = None;
        for endpoint in carrier.endpoints.values() {
            endpoint.close(VarInt::from_u32(0), b"");
        }
        let mut result = result?;
        result.path = relay.stop().context("the path")?;
        result.invalid = missed_deadlines(&result.path);
        Ok(result)
    }
}

// --- the servers --------------------------------------------------------------------------------

/// Receiver of connections' events and its clock: those of the current run.
type EventSender = Arc<std::sync::Mutex<Option<(Sender<FlowEvent>, Clock)>>>;

/// The group encoded in a client's address.
fn group_of(address: IpAddr) -> usize {
    match address.to_canonical() {
        IpAddr::V4(address) => usize::from(address.octets()[1].saturating_sub(FIRST_NET)).min(GROUPS - 1),
        IpAddr::V6(_) => 0,
    }
}

async fn serve(endpoint: Endpoint, setups: Arc<Vec<ServerSetup>>, event_sender: EventSender) {
    while let Some(incoming) = endpoint.accept().await {
        let setup = &setups[group_of(incoming.remote_address().ip())];
        let Ok(accepted) = setup.accept(incoming) else { continue };
        let event_sender = Arc::clone(&event_sender);
        tokio::spawn(async move {
            let handle = accepted.handle.clone();
            let Ok(connection) = accepted.connecting.await else { return };
            let Some((event_sender, clock)) = locked(&event_sender).clone() else { return };
            let established_at = clock.now();
            let flow = answer(&connection, &handle).await;
            handle.update(connection.congestion_state(noq::PathId::ZERO));
            handle.finish();
            let (report, path) = (handle.report(), connection.path_stats(noq::PathId::ZERO));
            let mut counters = counters(&report, established_at);
            // The stack's own controllers keep no tally; take the stack's loss counter.
            if let Some(path) = path.filter(|_| report.tally.sent.is_zero()) {
                counters.counts.lost = path.lost_packets;
            }
            if let Some(flow) = flow {
                let _ = event_sender.send(FlowEvent::Served { flow, counters });
            }
        });
    }
}

fn counters(report: &StartReport, established_at: Time) -> ConnectionCounters {
    let tally = report.tally;
    let packet = report.packet.get().max(1);
    ConnectionCounters {
        established_at: Some(established_at),
        min_rtt: report.min_rtt,
        had_history: report.known.is_some() && report.refusal.is_none(),
        first_flight: tally.first_flight,
        delivered: tally.delivered,
        counts: Counts {
            bytes_sent: tally.sent_with_copies().get(),
            packets_sent: tally.sent.get() / packet + tally.copies,
            copies: tally.copies,
            lost: tally.lost.get().div_ceil(packet),
            timeouts: tally.timeouts,
            first_flight_lost: tally.first_flight_lost.get(),
            ahead: u64::from(tally.is_ahead),
            ..Counts::default()
        },
        limited: report.limited,
        slow_start_end: report.slow_start_end,
        phase: report.decision(),
    }
}

/// Answers every stream until the connection ends; returns the flow's number.
async fn answer(connection: &Connection, handle: &Handle) -> Option<u32> {
    let mut flow = None;
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let mut written = [0; TransferRequest::TAGGED];
        if receive.read_exact(&mut written).await.is_err() {
            continue;
        }
        let Ok(TransferRequest { bytes, tag: Some(tag) }) = TransferRequest::parse(&written) else {
            continue;
        };
        let bytes = bytes.get();
        flow = Some(tag.flow);
        if tag.announces_size {
            handle.expect(bytes);
        }
        tokio::spawn(async move {
            static ZEROS: [u8; CHUNK] = [0; CHUNK];
            let mut left = bytes;
            while left > 0 {
                let length = left.min(CHUNK as u64);
                if send.write_chunk(Buffer::from_static(&ZEROS[..length as usize])).await.is_err() {
                    return;
                }
                left -= length;
            }
            let _ = send.finish();
        });
    }
    flow
}

// --- the clients --------------------------------------------------------------------------------

struct Clients<'a> {
    remote: SocketAddr,
    setups: &'a [ClientSetup],
    endpoints: BTreeMap<Ipv4Addr, Endpoint>,
    flows: BTreeMap<u32, UnboundedSender<Bytes>>,
    event_sender: Sender<FlowEvent>,
    clock: Clock,
}

impl Clients<'_> {
    /// The endpoint of a peer, created on first use.
    fn endpoint(&mut self, spec: &FlowSpec) -> std::io::Result<Endpoint> {
        let [_, _, high, low] = spec.peer.to_be_bytes();
        let address = Ipv4Addr::new(127, FIRST_NET + spec.group.min(GROUPS as u16 - 1) as u8, high, low);
        if let Some(endpoint) = self.endpoints.get(&address) {
            return Ok(endpoint.clone());
        }
        let socket = UdpSocket::bind((address, 0))?;
        let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, PreciseRuntime::new())?;
        self.endpoints.insert(address, endpoint.clone());
        Ok(endpoint)
    }
}

impl Transport for Clients<'_> {
    fn open(&mut self, flow: u32, spec: &FlowSpec) {
        let (orders, ordered) = unbounded_channel();
        let _ = orders.send(spec.bytes);
        self.flows.insert(flow, orders);
        let (event_sender, clock) = (self.event_sender.clone(), self.clock);
        let failed = move |event_sender: &Sender<FlowEvent>, reason: String| {
            let _ = event_sender.send(FlowEvent::Failed { flow, reason });
        };
        let endpoint = match self.endpoint(spec) {
            Ok(endpoint) => endpoint,
            Err(error) => return failed(&event_sender, format!("no socket: {error}")),
        };
        let setup = &self.setups[usize::from(spec.group).min(GROUPS - 1)];
        let connecting = match setup.connect(&endpoint, self.remote, "localhost") {
            Ok(dialling) => dialling.connecting,
            Err(error) => return failed(&event_sender, error.to_string()),
        };
        let announces_size = spec.size_known;
        tokio::spawn(async move {
            let connection = match connecting.await {
                Ok(connection) => connection,
                Err(error) => return failed(&event_sender, error.to_string()),
            };
            let mut ordered = ordered;
            while let Some(bytes) = ordered.recv().await {
                let one = MessageRequest {
                    connection: connection.clone(),
                    flow,
                    bytes,
                    announces_size,
                    event_sender: event_sender.clone(),
                    clock,
                };
                tokio::spawn(one.run());
            }
            connection.close(VarInt::from_u32(0), b"");
        });
    }

    fn request(&mut self, flow: u32, bytes: Bytes) {
        if let Some(orders) = self.flows.get(&flow) {
            let _ = orders.send(bytes);
        }
    }

    fn close(&mut self, flow: u32) {
        self.flows.remove(&flow);
    }
}

struct MessageRequest {
    connection: Connection,
    flow: u32,
    bytes: Bytes,
    announces_size: bool,
    event_sender: Sender<FlowEvent>,
    clock: Clock,
}

impl MessageRequest {
    async fn run(self) {
        let Self { flow, clock, .. } = self;
        let event = match self.fetch().await {
            Ok(()) => FlowEvent::Message { flow, at: clock.now() },
            Err(reason) => FlowEvent::Failed { flow, reason },
        };
        let _ = self.event_sender.send(event);
    }

    async fn fetch(&self) -> Result<(), String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let request = TransferRequest::tagged(self.bytes, self.flow, self.announces_size);
        let (mut send, mut receive) = self.connection.open_bi().await.map_err(|error| text(&error))?;
        send.write_all(&request.emit()).await.map_err(|error| text(&error))?;
        send.finish().map_err(|error| text(&error))?;
        let mut left = self.bytes.get();
        while let Some(chunk) = receive.read_chunk(READ_AT_ONCE).await.map_err(|error| text(&error))? {
            left = left.saturating_sub(chunk.len() as u64);
            let (flow, at, bytes) = (self.flow, self.clock.now(), chunk.len() as u32);
            let _ = self.event_sender.send(FlowEvent::Read { flow, at, bytes });
        }
        if left > 0 { Err(format!("the server closed {left} bytes before the end")) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_bytes_and_packets_that_were_sent() {
        let tally = headstart_quic::start_report::Tally {
            sent: Bytes::new(120_000),
            delivered: Bytes::new(120_000),
            copies: 50,
            copy_bytes: Bytes::new(60_000),
            ..Default::default()
        };
        let report = StartReport { packet: Bytes::new(1_200), tally, ..StartReport::default() };
        let counts = counters(&report, Time::ZERO).counts;
        assert_eq!((counts.bytes_sent, counts.packets_sent, counts.copies), (180_000, 150, 50));
    }

    #[test]
    fn the_group_follows_from_the_address_of_a_client() {
        for (address, group) in
            [([127, 16, 0, 0], 0), ([127, 17, 3, 9], 1), ([127, 18, 0, 1], 2), ([127, 0, 0, 1], 0)]
        {
            assert_eq!(group_of(IpAddr::from(address)), group);
        }
    }
}
