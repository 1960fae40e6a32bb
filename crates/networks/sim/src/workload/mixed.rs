//! Several workloads at once: short flows with long ones, a newcomer with an established flow.

use headstart_units::Time;

use super::{FlowSpec, Order, Workload};
use crate::packet::FlowId;

/// The top byte of a tag is the part that ordered the flow; the rest is that part's own.
const SHIFT: u32 = 56;

/// Workloads side by side.
#[derive(Debug)]
pub struct Mixed(Vec<Box<dyn Workload>>);

impl Mixed {
    /// Workloads that run together, each with its own tags.
    ///
    /// # Panics
    /// If there are more than 256.
    #[must_use]
    pub fn new(parts: Vec<Box<dyn Workload>>) -> Self {
        assert!(parts.len() <= 256, "a tag's top byte numbers the parts");
        Self(parts)
    }
}

/// Marks the flows that a part has just ordered as its own.
fn claim(part: usize, orders: &mut [Order]) {
    for order in orders {
        if let Order::Open(FlowSpec { tag, .. }) = order {
            debug_assert!(*tag >> SHIFT == 0, "a part's tags leave the top byte free");
            *tag |= (part as u64) << SHIFT;
        }
    }
}

impl Workload for Mixed {
    fn next_at(&self) -> Time {
        self.0.iter().map(|part| part.next_at()).min().unwrap_or(Time::NEVER)
    }

    fn on_time(&mut self, now: Time, orders: &mut Vec<Order>) {
        for (number, part) in self.0.iter_mut().enumerate() {
            if part.next_at() <= now {
                let before = orders.len();
                part.on_time(now, orders);
                claim(number, &mut orders[before..]);
            }
        }
    }

    fn on_open(&mut self, flow: FlowId, tag: u64) {
        if let Some(part) = self.0.get_mut((tag >> SHIFT) as usize) {
            part.on_open(flow, tag & ((1 << SHIFT) - 1));
        }
    }

    fn on_message(&mut self, now: Time, flow: FlowId, tag: u64, orders: &mut Vec<Order>) {
        let number = (tag >> SHIFT) as usize;
        let before = orders.len();
        if let Some(part) = self.0.get_mut(number) {
            part.on_message(now, flow, tag & ((1 << SHIFT) - 1), orders);
            claim(number, &mut orders[before..]);
        }
    }
}
