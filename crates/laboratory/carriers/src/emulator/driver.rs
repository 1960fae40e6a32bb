//! Runs a workload in real time.
//!
//! The driver holds no socket: a [`Transport`] opens connections and requests messages, and reports
//! events over a channel.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Result, bail};
use headstart_emu::clock::Clock;
use headstart_sim::FlowReport;
use headstart_sim::packet::FlowId;
use headstart_sim::record::Counts;
use headstart_sim::record::MessageReport;
use headstart_sim::workload::{FlowSpec, Order, Workload};
use headstart_startup::SlowStartEnd;
use headstart_startup::sending::LimitedBy;
use headstart_units::{Bytes, Span, Time};

use super::EmulatedRun;

/// Carries flows.
pub trait Transport {
    /// Opens a connection, and requests its first message.
    fn open(&mut self, flow: u32, spec: &FlowSpec);
    /// Requests another message.
    fn request(&mut self, flow: u32, bytes: Bytes);
    /// Closes the connection; data in flight is discarded.
    fn close(&mut self, flow: u32);
}

/// Event of a flow.
#[derive(Clone, Debug)]
pub enum FlowEvent {
    /// Bytes were read.
    Read {
        /// The flow.
        flow: u32,
        /// Time of the read.
        at: Time,
        /// Bytes read.
        bytes: u32,
    },
    /// A message was read whole.
    Message {
        /// The flow.
        flow: u32,
        /// Time of its last byte.
        at: Time,
    },
    /// The server's counters; the last event of a flow.
    Served {
        /// The flow.
        flow: u32,
        /// The counters.
        counters: ConnectionCounters,
    },
    /// The connection failed.
    Failed {
        /// The flow.
        flow: u32,
        /// The error.
        reason: String,
    },
}

/// Counters that a server reports of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionCounters {
    /// Time at which it was established.
    pub established_at: Option<Time>,
    /// Smallest RTT of the connection.
    pub min_rtt: Span,
    /// True if it started from a record.
    pub had_history: bool,
    /// Bytes of its first flight.
    pub first_flight: Bytes,
    /// Bytes acknowledged.
    pub delivered: Bytes,
    /// The sender's counters.
    pub counts: Counts,
    /// The sender's account of its limits; all zero where it keeps none.
    pub limited: [Span; LimitedBy::ALL.len()],
    /// The end of slow start; `None` if that lasts, or is not reported.
    pub slow_start_end: Option<SlowStartEnd>,
    /// Last phase of the scheme.
    pub phase: &'static str,
}

#[derive(Debug)]
struct Flow {
    spec: FlowSpec,
    opened_at: Time,
    /// Messages requested and not yet read: time of the request, size.
    pending_requests: std::collections::VecDeque<(Time, Bytes)>,
    written: Bytes,
    read: Bytes,
    /// Time at which the last message was read whole.
    completed_at: Option<Time>,
    closing: bool,
    ended_at: Option<Time>,
    counters: Option<ConnectionCounters>,
}

impl Flow {
    fn report(&self, serial: u64, until: Time, rtt: Span) -> FlowReport {
        let counters = self.counters.unwrap_or_default();
        // Without an RTT sample, the path's own RTT.
        let min_rtt = if counters.min_rtt.is_zero() { rtt } else { counters.min_rtt };
        let mut report = FlowReport {
            serial,
            group: self.spec.group,
            peer: self.spec.peer,
            opened_at: self.opened_at,
            established_at: counters.established_at,
            completed_at: self.completed_at.filter(|_| self.pending_requests.is_empty()),
            ended_at: self.ended_at.or(self.completed_at).unwrap_or(until),
            min_rtt,
            written: self.written,
            read: self.read,
            delivered: if counters.delivered.is_zero() { self.read } else { counters.delivered },
            had_history: counters.had_history,
            first_flight: counters.first_flight,
            counts: counters.counts,
            limited: counters.limited,
            slow_start_end: counters.slow_start_end,
            phase: counters.phase,
            ..FlowReport::default()
        };
        report.close_account();
        report
    }
}

/// Time allowed for servers' counters once all messages have been read.
const COUNTERS_TIMEOUT: Span = Span::from_secs(2);

struct WorkloadDriver<'a> {
    transport: &'a mut dyn Transport,
    workload: Box<dyn Workload>,
    clock: Clock,
    flows: BTreeMap<u32, Flow>,
    result: EmulatedRun,
}

/// A workload with its clock and end.
pub struct WorkloadRun {
    /// The transfers.
    pub workload: Box<dyn Workload>,
    /// Latest end of the run.
    pub until: Time,
    /// The run's clock.
    pub clock: Clock,
    /// The path's round-trip time without queues.
    pub rtt: Span,
}

/// Runs a workload until it is complete, or `until` is reached.
///
/// # Errors
/// If a connection breaks, or the workload orders an action of which a client is incapable.
pub fn run_workload(
    WorkloadRun { workload, until, clock, rtt }: WorkloadRun,
    transport: &mut dyn Transport,
    events: &Receiver<FlowEvent>,
) -> Result<EmulatedRun> {
    let mut driver =
        WorkloadDriver { transport, workload, clock, flows: BTreeMap::new(), result: EmulatedRun::default() };
    loop {
        let now = clock.now();
        if now >= until || driver.is_complete() {
            break;
        }
        if driver.workload.next_at() <= now {
            let mut orders = vec![];
            driver.workload.on_time(now, &mut orders);
            driver.execute(orders)?;
            continue;
        }
        let wake_at = driver.workload.next_at().min(until);
        driver.receive_events(events, wake_at.since(now).min(Span::from_secs(3600)))?;
    }
    let ended_at = clock.now();
    // Close the connections that are still open; then collect the servers' counters.
    let open: Vec<u32> =
        driver.flows.iter().filter(|(_, flow)| !flow.closing).map(|(number, _)| *number).collect();
    for flow in open {
        driver.close(flow);
    }
    let patience = clock.now() + COUNTERS_TIMEOUT;
    while driver.flows.values().any(|flow| flow.counters.is_none()) && clock.now() < patience {
        driver.receive_events(events, patience.since(clock.now()))?;
    }
    for (number, flow) in &driver.flows {
        driver.result.flows.push(flow.report(u64::from(*number), ended_at, rtt));
    }
    driver.result.read.sort_by_key(|(at, ..)| *at);
    Ok(driver.result)
}

impl WorkloadDriver<'_> {
    /// No more arrivals, and all requested messages have been read.
    fn is_complete(&self) -> bool {
        self.workload.next_at() == Time::NEVER && self.flows.values().all(|flow| flow.closing)
    }

    fn receive_events(&mut self, events: &Receiver<FlowEvent>, pause: Span) -> Result<()> {
        match events.recv_timeout(Duration::from_nanos(pause.as_nanos())) {
            Ok(events) => self.handle_event(events),
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => bail!("the transport has ended"),
        }
    }

    fn execute(&mut self, orders: Vec<Order>) -> Result<()> {
        for order in orders {
            match order {
                Order::Open(spec) if spec.bytes.is_zero() => {
                    bail!("found a workload that opens a connection without a request, expected one")
                }
                Order::Open(spec) => {
                    let number = self.flows.len() as u32;
                    let flow = Flow {
                        spec,
                        opened_at: self.clock.now(),
                        pending_requests: [(self.clock.now(), spec.bytes)].into(),
                        written: spec.bytes,
                        read: Bytes::ZERO,
                        completed_at: None,
                        closing: false,
                        ended_at: None,
                        counters: None,
                    };
                    self.flows.insert(number, flow);
                    self.transport.open(number, &spec);
                    if spec.keep_open {
                        self.workload.on_open(id(number), spec.tag);
                    }
                }
                Order::Ask { flow, bytes } => {
                    if let Some(found) = self.flows.get_mut(&flow.slot) {
                        found.pending_requests.push_back((self.clock.now(), bytes));
                        found.written += bytes;
                        self.transport.request(flow.slot, bytes);
                    }
                }
                Order::Close(flow) => self.close(flow.slot),
                Order::PageDone(page) => self.result.pages.push(page),
                Order::Write { .. } => {
                    bail!(
                        "found a workload in which the server sends unrequested data, expected requests only"
                    )
                }
                Order::Request(_) | Order::Datagram { .. } => {
                    bail!(
                        "found a workload with Quick-Start requests, expected none: no transport here sends them"
                    )
                }
            }
        }
        Ok(())
    }

    fn close(&mut self, flow: u32) {
        if let Some(found) = self.flows.get_mut(&flow)
            && !found.closing
        {
            found.closing = true;
            found.ended_at = Some(self.clock.now());
            self.transport.close(flow);
        }
    }

    fn handle_event(&mut self, events: FlowEvent) -> Result<()> {
        match events {
            FlowEvent::Read { flow, at, bytes } => {
                if let Some(found) = self.flows.get_mut(&flow) {
                    found.read += Bytes::new(u64::from(bytes));
                    self.result.read.push((at, found.spec.group, bytes));
                }
            }
            FlowEvent::Message { flow, at } => {
                let Some(found) = self.flows.get_mut(&flow) else { return Ok(()) };
                let Some((requested_at, bytes)) = found.pending_requests.pop_front() else { return Ok(()) };
                found.completed_at = Some(at);
                let (spec, serial) = (found.spec, u64::from(flow));
                self.result.messages.push(MessageReport {
                    serial,
                    group: spec.group,
                    requested_at,
                    read_at: at,
                    bytes,
                });
                if !spec.keep_open {
                    self.close(flow);
                }
                let mut orders = vec![];
                self.workload.on_message(at, id(flow), spec.tag, &mut orders);
                self.execute(orders)?;
            }
            FlowEvent::Served { flow, counters } => {
                if let Some(found) = self.flows.get_mut(&flow) {
                    found.counters = Some(counters);
                }
            }
            FlowEvent::Failed { flow, reason } => {
                // Errors after a close of our own are expected.
                if self.flows.get(&flow).is_some_and(|found| !found.closing) {
                    bail!("flow {flow}: {reason}");
                }
            }
        }
        Ok(())
    }
}

const fn id(flow: u32) -> FlowId {
    FlowId { slot: flow, generation: 0 }
}
