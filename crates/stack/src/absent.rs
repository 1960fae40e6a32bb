//! A client that cannot be reached for some time, as in a tunnel: an observer around another.
//!
//! Its connection goes on: no datagram of either direction enters the path meanwhile.

use std::ops::Range;

use bytes::Bytes;
use headstart_units::Time;

use crate::simulation::observer::{FlowEnd, ObservedDatagram, Observer};

/// The absence of one flow's client.
#[derive(Debug)]
pub struct AbsentClient<O> {
    inner: O,
    flow: u64,
    absence: Range<Time>,
}

impl<O> AbsentClient<O> {
    /// Drops the datagrams of the flow with that serial number for that time.
    #[must_use]
    pub const fn new(inner: O, flow: u64, absence: Range<Time>) -> Self {
        Self { inner, flow, absence }
    }
}

impl<O: Observer> Observer for AbsentClient<O> {
    fn on_departure(&mut self, observed: &ObservedDatagram<'_>) -> bool {
        let passes = self.inner.on_departure(observed);
        passes && !(observed.flow == self.flow && self.absence.contains(&observed.now))
    }

    fn on_arrival(&mut self, observed: &ObservedDatagram<'_>) {
        self.inner.on_arrival(observed);
    }

    fn forged_packets(&mut self, flow: u64) -> Vec<Bytes> {
        self.inner.forged_packets(flow)
    }

    fn on_flow_end(&mut self, flow: u64, end: &FlowEnd) {
        self.inner.on_flow_end(flow, end);
    }

    fn is_over(&self) -> bool {
        self.inner.is_over()
    }
}
