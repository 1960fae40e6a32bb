//! A few flows with given sizes and starts: bulk transfers, a newcomer, a single traced flow.

use std::collections::VecDeque;

use headstart_units::{Bytes, Time};

use super::{FlowSpec, Opener, Order, Workload};

/// One flow of the list.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Time at which it opens.
    pub at: Time,
    /// Group of the flow.
    pub group: u16,
    /// Class of hosts of the flow.
    pub class: u16,
    /// Bytes that it sends.
    pub bytes: Bytes,
    /// The size is given to its scheme.
    pub size_known: bool,
}

impl Start {
    /// A flow of known size in the first group and class.
    #[must_use]
    pub const fn new(at: Time, bytes: Bytes) -> Self {
        Self { at, group: 0, class: 0, bytes, size_known: true }
    }
}

/// Flows from a list.
#[derive(Debug)]
pub struct Listed {
    left: VecDeque<Start>,
    opener: Opener,
}

impl Listed {
    /// The given flows, whatever their order.
    #[must_use]
    pub fn new(mut starts: Vec<Start>, opener: Opener) -> Self {
        starts.sort_by_key(|start| start.at);
        Self { left: starts.into(), opener }
    }
}

impl Workload for Listed {
    fn next_at(&self) -> Time {
        self.left.front().map_or(Time::NEVER, |start| start.at)
    }

    fn on_time(&mut self, _: Time, orders: &mut Vec<Order>) {
        if let Some(start) = self.left.pop_front() {
            orders.push(Order::Open(FlowSpec {
                group: start.group,
                class: start.class,
                opener: self.opener,
                bytes: start.bytes,
                size_known: start.size_known,
                ..FlowSpec::default()
            }));
        }
    }
}
