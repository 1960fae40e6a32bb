//! Both endpoints of a simulated connection, and the table of live ones.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use headstart_quic::journal::JournalEntry;
use headstart_quic::{Epoch, Handle, StartReport, epoch};
use headstart_sim::FlowReport;
use headstart_sim::packet::FlowId;
use headstart_sim::record::Counts;
use headstart_sim::record::SenderEvent;
use headstart_sim::workload::FlowSpec;
use headstart_startup::Transmission;
use headstart_units::{Bytes, Span, Time};
use noq_proto::{Endpoint, PathId};

use super::exchange::{RequestSide, ResponseSide};
use super::observer::FlowEnd;
use super::wire::Wires;
use crate::duplicate_queue::DuplicateQueue;
use crate::end::End;

/// Bytes of a full packet besides application data: header, frame header, AEAD tag.
const OVERHEAD: Bytes = Bytes::new(37);

/// One end of a connection and its endpoint.
pub(super) struct Side {
    pub endpoint: Endpoint,
    /// Boxed, since it is taken out while it is driven, and a connection has kilobytes.
    pub end: Option<Box<End>>,
}

pub(super) struct Flow {
    pub id: FlowId,
    pub serial: u64,
    pub spec: FlowSpec,
    /// The receiver's address.
    pub address: SocketAddr,
    pub receiver: Side,
    pub sender: Side,
    pub request_side: RequestSide,
    pub response_side: ResponseSide,
    pub wires: Wires,
    pub duplicates: Arc<DuplicateQueue>,
    pub is_closing: bool,
    /// The sender goes on after the receiver's connection has failed.
    pub outlives_receiver: bool,
    pub opened_at: Time,
    pub established_at: Option<Time>,
    pub completed_at: Option<Time>,
    /// Earliest timer set for it.
    pub due: Time,
    /// UDP payload of a full packet.
    pub packet: Bytes,
    pub counters: PathCounters,
}

/// Counters of its datagrams on the path.
#[derive(Default)]
pub(super) struct PathCounters {
    /// Datagrams with application data that the sender sent, and their bytes.
    pub data: (u64, u64),
    pub copies: (u64, u64),
    /// Digests of the datagrams that arrived, where copies may follow; and number of duplicates.
    pub arrived: BTreeSet<u64>,
    pub duplicates: u32,
}

impl Flow {
    /// True if nothing is left to do.
    pub fn is_over(&self) -> bool {
        let is_lost =
            (self.request_side.is_lost && !self.outlives_receiver) || self.response_side.lost.is_some();
        is_lost || (self.is_closing && self.request_side.is_idle() && self.response_side.is_done())
    }

    /// The next timer of either end.
    pub fn next_at(&self, epoch: Epoch) -> Time {
        let of = |side: &Side| {
            let at = side.end.as_ref().and_then(|end| end.connection.poll_timeout());
            at.map_or(Time::NEVER, |at| epoch.time(at))
        };
        of(&self.receiver).min(of(&self.sender))
    }

    /// The sender's journal, completed with the application's backlog.
    pub fn traces(&self) -> Vec<JournalEntry> {
        let handle = self.sender.end.as_ref().and_then(|end| end.handle.as_ref());
        let mut entries = handle.map(Handle::take_journal).unwrap_or_default();
        for (_, trace) in &mut entries {
            trace.unsent = self.unsent(&trace.event);
        }
        entries
    }

    /// The stack does not report its backlog: bytes written less sent, as if none was sent twice.
    fn unsent(&self, event: &SenderEvent) -> Bytes {
        let SenderEvent::Sent { offset, payload, transmission: Transmission::Original } = *event else {
            return Bytes::ZERO;
        };
        let left = Bytes::new(offset) + payload;
        let packets = left.get().div_ceil(self.packet.get().max(1));
        self.response_side.written.saturating_sub(left.saturating_sub(OVERHEAD * packets))
    }

    /// The flow's final state.
    pub fn final_state(&mut self) -> FlowEnd {
        let mut end = self.sender.end.as_mut();
        FlowEnd {
            connected_at: self.request_side.connected_at,
            lost_packets: end.as_mut().map_or(0, |end| end.connection.stats().lost_packets),
            report: end.map(|end| end.report()).unwrap_or_default(),
            failure: self.response_side.lost.as_ref().map(ToString::to_string),
        }
    }

    /// The flow's report.
    pub fn report(&mut self, now: Time) -> FlowReport {
        let (mut report, mut lost, mut min_rtt) = (StartReport::default(), 0, Span::ZERO);
        if let Some(end) = &mut self.sender.end {
            (report, lost) = (end.report(), end.connection.stats().lost_packets);
            let measured = end.connection.rtt(PathId::ZERO).map(epoch::span).unwrap_or_default();
            min_rtt = if report.min_rtt.is_zero() { measured } else { report.min_rtt };
        }
        let (data, copies) = (self.counters.data, self.counters.copies);
        // The stack's own controllers report nothing: data sent and not lost counts as delivered.
        let has_tally = !report.tally.sent.is_zero();
        let sent = if has_tally { report.tally.sent.get() } else { data.1 };
        let share = data.0.saturating_sub(lost);
        let delivered = if has_tally { report.tally.delivered.get() } else { data.1 * share / data.0.max(1) };
        let is_read = self.request_side.is_idle();
        let mut report = FlowReport {
            serial: self.serial,
            group: self.spec.group,
            peer: self.spec.peer,
            opened_at: self.opened_at,
            established_at: self.established_at,
            completed_at: self.completed_at.filter(|_| is_read),
            ended_at: now,
            min_rtt,
            written: self.response_side.written,
            read: self.request_side.read,
            delivered: Bytes::new(delivered),
            duplicates: self.counters.duplicates,
            had_history: report.known.is_some(),
            first_flight: report.tally.first_flight,
            counts: Counts {
                bytes_sent: sent + copies.1,
                packets_sent: data.0 + copies.0,
                retransmissions: lost,
                copies: copies.0,
                lost,
                timeouts: report.tally.timeouts,
                probes: 0,
                first_flight_lost: report.tally.first_flight_lost.get(),
                ahead: u64::from(report.tally.is_ahead),
            },
            limited: report.limited,
            slow_start_end: report.slow_start_end,
            phase: report.decision(),
            ..FlowReport::default()
        };
        report.close_account();
        report
    }
}

#[derive(Default)]
pub(super) struct Flows {
    slots: Vec<(u16, Option<Box<Flow>>)>,
    free: Vec<u32>,
    pub opened: u64,
}

impl Flows {
    /// Reserves a place, and returns its serial number.
    pub fn reserve(&mut self) -> (FlowId, u64) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            self.slots.len() as u32 - 1
        });
        self.opened += 1;
        (FlowId { slot, generation: self.slots[slot as usize].0 }, self.opened - 1)
    }

    pub fn insert(&mut self, flow: Box<Flow>) {
        let slot = flow.id.slot as usize;
        self.slots[slot].1 = Some(flow);
    }

    pub fn get_mut(&mut self, id: FlowId) -> Option<&mut Flow> {
        let (generation, flow) = self.slots.get_mut(id.slot as usize)?;
        flow.as_deref_mut().filter(|_| *generation == id.generation)
    }

    /// Changes the address of that flow's client.
    pub fn move_to(&mut self, serial: u64, address: SocketAddr) {
        let flows = self.slots.iter_mut().filter_map(|(_, flow)| flow.as_deref_mut());
        if let Some(flow) = flows.into_iter().find(|flow| flow.serial == serial) {
            flow.address = address;
        }
    }

    pub fn remove(&mut self, id: FlowId) -> Option<Box<Flow>> {
        let (generation, flow) = self.slots.get_mut(id.slot as usize)?;
        if *generation != id.generation {
            return None;
        }
        let flow = flow.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(id.slot);
        Some(flow)
    }

    /// The live flows, in the order of their opening.
    pub fn live(&self) -> Vec<FlowId> {
        let mut live: Vec<_> =
            self.slots.iter().filter_map(|(_, flow)| flow.as_ref().map(|it| (it.serial, it.id))).collect();
        live.sort_unstable();
        live.into_iter().map(|(_, id)| id).collect()
    }

    /// Highest number of places in use at a time.
    pub fn peak(&self) -> u64 {
        self.slots.len() as u64
    }
}
