//! Observers of every datagram of a run: for tests, forced losses and misbehaving receivers.
//!
//! Observers nest: each handles a datagram and passes it on to the one inside it.

use std::collections::BTreeSet;
use std::ops::Range;

use bytes::Bytes;
use headstart_quic::StartReport;
use headstart_units::Time;

use crate::datagram::Datagram;

/// A datagram at one end of the path.
#[derive(Clone, Copy, Debug)]
pub struct ObservedDatagram<'a> {
    /// Time of passing.
    pub now: Time,
    /// Serial number of its flow.
    pub flow: u64,
    /// True from sender to receiver.
    pub is_forward: bool,
    /// The datagram. On arrival it is not marked as a copy.
    pub datagram: &'a Datagram,
    /// A copy to an address that the stack no longer uses.
    pub is_stray: bool,
}

/// Final state of a flow.
#[derive(Clone, Debug, Default)]
pub struct FlowEnd {
    /// Completion of the receiver's handshake, if the receiver initiated the connection.
    pub connected_at: Option<Time>,
    /// The sender's report.
    pub report: StartReport,
    /// Packets that the sender's stack declared lost.
    pub lost_packets: u64,
    /// Reason of the sender's connection failure, if it failed.
    pub failure: Option<String>,
}

/// Observes datagrams between the endpoints and the path.
pub trait Observer {
    /// A datagram is about to enter the path; `false` drops it.
    fn on_departure(&mut self, observed: &ObservedDatagram<'_>) -> bool;

    /// A datagram has crossed the path.
    fn on_arrival(&mut self, observed: &ObservedDatagram<'_>);

    /// Packets to inject on the path to the flow's sender, after the latest datagram.
    fn forged_packets(&mut self, flow: u64) -> Vec<Bytes> {
        let _ = flow;
        vec![]
    }

    /// A flow is over.
    fn on_flow_end(&mut self, flow: u64, end: &FlowEnd);

    /// True if nothing is left to observe: the run may end.
    fn is_over(&self) -> bool {
        false
    }
}

/// Tells whether a datagram enters the path.
type Passes = Box<dyn FnMut(&ObservedDatagram<'_>) -> bool>;

/// Drops datagrams of those that another observer lets pass.
pub struct Filter {
    inner: Box<dyn Observer>,
    passes: Passes,
}

/// Lowest size of a data packet in bytes; smaller packets are acks and the like.
pub(crate) const DATA: u64 = 300;

impl Filter {
    /// Drops packets on purpose, by number of departure from zero on. Packets of 300 bytes and more
    /// of application data on the way to the receiver are counted, retransmissions included. Copies
    /// are not counted, and pass.
    #[must_use]
    pub fn of_losses(inner: Box<dyn Observer>, losses: impl IntoIterator<Item = u64>) -> Self {
        let (losses, mut packets): (BTreeSet<u64>, u64) = (losses.into_iter().collect(), 0);
        let passes = move |observed: &ObservedDatagram<'_>| {
            let datagram = observed.datagram;
            let is_counted = datagram.is_data() && !datagram.is_copy && datagram.payload().get() >= DATA;
            if !observed.is_forward || !is_counted {
                return true;
            }
            packets += 1;
            !losses.contains(&(packets - 1))
        };
        Self { inner, passes: Box::new(passes) }
    }

    /// The client of the flow with that serial number cannot be reached for some time, as in a
    /// tunnel. Its connection goes on: no datagram of either direction enters the path meanwhile.
    #[must_use]
    pub fn of_absence(inner: Box<dyn Observer>, flow: u64, absence: Range<Time>) -> Self {
        let passes =
            move |observed: &ObservedDatagram<'_>| observed.flow != flow || !absence.contains(&observed.now);
        Self { inner, passes: Box::new(passes) }
    }
}

impl Observer for Filter {
    fn on_departure(&mut self, observed: &ObservedDatagram<'_>) -> bool {
        let passes = self.inner.on_departure(observed);
        (self.passes)(observed) && passes
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
