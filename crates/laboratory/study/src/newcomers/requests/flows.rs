//! Arrival schedule: warm-up flows, long flows, newcomers; the run ends when these are complete.
//!
//! A *warm-up flow* is a fetch over the empty path before anything else. It leaves the sender a
//! record of the path, as an earlier visit does (Blitzstart §3: the RTT "from a previous
//! connection"). Long flows always have data to send: while one part is in flight the next is
//! already written. When the last newcomer is complete no more is written, so that the run ends.

use std::collections::VecDeque;

use headstart_sim::packet::FlowId;
use headstart_sim::workload::{FlowSpec, Opener, Order, Workload};
use headstart_units::{Bytes, Time};

/// A flow with an arrival time of its own.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Time at which it opens.
    pub at: Time,
    /// Group of the flow, which is its class of hosts too.
    pub group: u16,
    /// Bytes that it requests; for a long flow, of each part.
    pub bytes: Bytes,
    /// Role of the flow.
    pub role: Role,
}

/// Role of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Fetches an object before the run.
    WarmUp,
    /// Established before and after.
    Long,
    /// Measured by the run.
    Newcomer,
}

/// Parts of a long flow that are written and not read: one in flight, the next queued.
const WRITTEN_PARTS: u32 = 2;
/// First part of a long flow: its completion reports the flow's identifier to the workload.
const FIRST: Bytes = Bytes::new(20_000);

/// The flows of a run.
#[derive(Debug)]
pub struct Flows {
    arrivals: VecDeque<Arrival>,
    /// Flows opened, by tag; a long flow's parts that are written and not read.
    opened: Vec<(Arrival, u32)>,
    newcomers: usize,
}

impl Flows {
    /// A workload of these flows, given in any order.
    #[must_use]
    pub fn new(mut arrivals: Vec<Arrival>) -> Self {
        arrivals.sort_by_key(|arrival| arrival.at);
        let newcomers = arrivals.iter().filter(|arrival| arrival.role == Role::Newcomer).count();
        Self { arrivals: arrivals.into(), opened: vec![], newcomers }
    }
}

impl Workload for Flows {
    fn next_at(&self) -> Time {
        self.arrivals.front().map_or(Time::NEVER, |arrival| arrival.at)
    }

    fn on_time(&mut self, _: Time, orders: &mut Vec<Order>) {
        let Some(arrival) = self.arrivals.pop_front() else { return };
        let is_long = arrival.role == Role::Long;
        orders.push(Order::Open(FlowSpec {
            group: arrival.group,
            class: arrival.group,
            opener: Opener::Receiver,
            bytes: if is_long { FIRST } else { arrival.bytes },
            size_known: !is_long,
            keep_open: true,
            tag: self.opened.len() as u64,
            ..FlowSpec::default()
        }));
        self.opened.push((arrival, 1));
    }

    fn on_message(&mut self, _: Time, flow: FlowId, tag: u64, orders: &mut Vec<Order>) {
        let is_over = self.newcomers == 0;
        let Some((arrival, parts)) = self.opened.get_mut(tag as usize) else { return };
        *parts -= 1;
        match arrival.role {
            Role::WarmUp => {}
            Role::Newcomer => self.newcomers -= 1,
            Role::Long => {
                while !is_over && *parts < WRITTEN_PARTS {
                    orders.push(Order::Ask { flow, bytes: arrival.bytes });
                    *parts += 1;
                }
            }
        }
        if *parts == 0 {
            orders.push(Order::Close(flow));
        }
    }
}
