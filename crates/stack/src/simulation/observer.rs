//! A view of every datagram of a run, with a hand on it: what tests look at, losses on purpose,
//! receivers that misbehave.
//!
//! Observers are decorators: each sees what passes, and passes it on to the one inside it.

use std::collections::BTreeSet;

use bytes::Bytes;
use headstart_quic::Why;
use headstart_units::Time;

use crate::datagram::Datagram;

/// A datagram at one end of the path.
#[derive(Clone, Copy, Debug)]
pub struct Passing<'a> {
    /// When.
    pub now: Time,
    /// Serial number of its flow.
    pub flow: u64,
    /// From sender to receiver.
    pub is_forward: bool,
    /// The datagram. Of one that arrives it is not known whether it was a copy.
    pub datagram: &'a Datagram,
    /// A copy to an address to which the stack does not send any more.
    pub is_stray: bool,
}

/// What is known of a flow when it is over.
#[derive(Clone, Debug, Default)]
pub struct Last {
    /// When the receiver's handshake was through, if it was the receiver who dialled.
    pub connected_at: Option<Time>,
    /// The sender's record.
    pub why: Why,
    /// Packets that the sender's stack declared lost.
    pub lost_packets: u64,
    /// Why the sender's connection failed, if it did.
    pub failure: Option<String>,
}

/// Sees what passes between the ends and the path.
pub trait Observer {
    /// A datagram is about to enter the path. Returns whether it does; otherwise it is lost.
    fn leaves(&mut self, passing: &Passing<'_>) -> bool;

    /// A datagram has crossed the path.
    fn arrives(&mut self, passing: &Passing<'_>);

    /// Packets to be put on the way to the flow's sender after what was seen last.
    fn forged(&mut self, flow: u64) -> Vec<Bytes> {
        let _ = flow;
        vec![]
    }

    /// A flow is over.
    fn ended(&mut self, flow: u64, last: &Last);

    /// Nothing more is to be seen: the run may end.
    fn is_over(&self) -> bool {
        false
    }
}

impl Observer for Box<dyn Observer> {
    fn leaves(&mut self, passing: &Passing<'_>) -> bool {
        (**self).leaves(passing)
    }

    fn arrives(&mut self, passing: &Passing<'_>) {
        (**self).arrives(passing);
    }

    fn forged(&mut self, flow: u64) -> Vec<Bytes> {
        (**self).forged(flow)
    }

    fn ended(&mut self, flow: u64, last: &Last) {
        (**self).ended(flow, last);
    }

    fn is_over(&self) -> bool {
        (**self).is_over()
    }
}

/// Loses packets on purpose: those of 300 bytes and more of application data on the way to the
/// receiver, by number as they leave, whatever is in them. Copies are not counted, and pass.
#[derive(Debug)]
pub struct Losing<O> {
    inner: O,
    forced_losses: BTreeSet<u64>,
    packets: u64,
}

/// Smaller packets are acks and the like.
pub(crate) const DATA: u64 = 300;

impl<O> Losing<O> {
    /// Loses these, counted from zero.
    #[must_use]
    pub fn new(inner: O, forced_losses: impl IntoIterator<Item = u64>) -> Self {
        Self { inner, forced_losses: forced_losses.into_iter().collect(), packets: 0 }
    }
}

impl<O: Observer> Observer for Losing<O> {
    fn leaves(&mut self, passing: &Passing<'_>) -> bool {
        let passes = self.inner.leaves(passing);
        let datagram = passing.datagram;
        let is_counted = datagram.is_data() && !datagram.is_copy && datagram.payload().get() >= DATA;
        if !passing.is_forward || !is_counted {
            return passes;
        }
        self.packets += 1;
        passes && !self.forced_losses.remove(&(self.packets - 1))
    }

    fn arrives(&mut self, passing: &Passing<'_>) {
        self.inner.arrives(passing);
    }

    fn forged(&mut self, flow: u64) -> Vec<Bytes> {
        self.inner.forged(flow)
    }

    fn ended(&mut self, flow: u64, last: &Last) {
        self.inner.ended(flow, last);
    }

    fn is_over(&self) -> bool {
        self.inner.is_over()
    }
}
