//! Queues before a link, and the disciplines that drop or mark their packets.
//!
//! A queue is a part of a link, not an element: the link dequeues a packet when it can send one.
//!
//! | module | drops |
//! |---|---|
//! | [`drop_tail`] | at the tail, when the buffer is full |
//! | [`codel`] | at the head, when the queueing delay exceeds a target (RFC 8289) |
//! | [`red`] | at the tail, at random, when the average queue is long (Floyd and Jacobson 1993) |
//! | [`pie`] | at the tail, at random, to hold the queueing delay at a target (RFC 8033) |
//! | [`fq_codel`] | as CoDel, each flow in a queue of its own (RFC 8290) |
//! | [`dual_pi2`] | at the head, Classic and L4S traffic in coupled queues (RFC 9332) |
//! | [`priority`] | at the tail of the lowest priority, when the buffer is full |
//!
//! `netem` is drop-tail with the packets in the link's delay counted: [`crate::netem_link`].
//! All but drop-tail, `netem` and `priority` mark a packet instead of dropping it if it is
//! ECN-capable (RFC 3168).

pub mod codel;
pub mod drop_tail;
pub mod dual_pi2;
pub mod fq_codel;
pub mod pie;
pub mod priority;
pub mod red;
mod updates;

use core::fmt;
use core::str::FromStr;

use headstart_units::{Bytes, Rate, Time};

use crate::element::{DropReason, Packet, PushResult};
use crate::limit::Limit;
use crate::ring::Ring;

pub use codel::CoDel;
pub use drop_tail::DropTail;
pub use dual_pi2::DualPi2;
pub use fq_codel::FqCoDel;
pub use pie::Pie;
pub use priority::Priority;
pub use red::Red;

/// The discipline of a queue, with its usual parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueDiscipline {
    /// Drops arrivals at a full buffer.
    #[default]
    DropTail,
    /// Drop-tail, where the buffer also holds the packets in the link's delay: a link of its own,
    /// [`NetemLink`](crate::NetemLink), at a constant rate only.
    Netem,
    /// CoDel, RFC 8289.
    CoDel,
    /// RED, Floyd and Jacobson 1993, gentle.
    Red,
    /// PIE, RFC 8033.
    Pie,
    /// FQ-CoDel, RFC 8290.
    FqCoDel,
    /// DualPI2, RFC 9332.
    DualPi2,
    /// Packets of a lower priority wait for all others.
    Priority,
}

impl QueueDiscipline {
    /// Every discipline.
    pub const ALL: [Self; 8] = [
        Self::DropTail,
        Self::Netem,
        Self::CoDel,
        Self::Red,
        Self::Pie,
        Self::FqCoDel,
        Self::DualPi2,
        Self::Priority,
    ];

    /// Name of the discipline in options and plans.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DropTail => "drop-tail",
            Self::Netem => "netem",
            Self::CoDel => "codel",
            Self::Red => "red",
            Self::Pie => "pie",
            Self::FqCoDel => "fq-codel",
            Self::DualPi2 => "dualpi2",
            Self::Priority => "priority",
        }
    }

    /// A queue of `limit` before a link of `rate`; RED and PIE draw from `seed`, and FQ-CoDel
    /// hashes flows by it.
    #[must_use]
    pub fn queue<P: Packet>(self, rate: Rate, limit: Limit, seed: u64) -> Queue<P> {
        match self {
            Self::DropTail | Self::Netem => Queue::drop_tail(limit),
            Self::CoDel => Queue::codel(limit),
            Self::Red => Queue::red(rate, limit, seed),
            Self::Pie => Queue::Pie(Pie::new(pie::Params::default(), limit, seed)),
            Self::FqCoDel => Queue::FqCoDel(FqCoDel::new(fq_codel::Params::default(), limit, seed)),
            Self::DualPi2 => Queue::DualPi2(DualPi2::new(dual_pi2::Params::default(), limit)),
            Self::Priority => Queue::Priority(Priority::new(limit)),
        }
    }
}

impl fmt::Display for QueueDiscipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for QueueDiscipline {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|discipline| discipline.name() == text);
        found.ok_or_else(|| format!("found `{text}`, expected {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// Packets that a queue dropped during a dequeue, with their times.
pub(crate) type Dropped<P> = Ring<(P, DropReason)>;

/// Every queue, for dispatch without a vtable.
#[derive(Debug)]
pub enum Queue<P> {
    /// Drops arrivals at a full buffer.
    DropTail(DropTail<P>),
    /// Drops at the head by queueing delay.
    CoDel(CoDel<P>),
    /// Drops at the tail by average length.
    Red(Red<P>),
    /// Drops at the tail by queueing delay.
    Pie(Pie<P>),
    /// Drops at the head by queueing delay, per flow.
    FqCoDel(FqCoDel<P>),
    /// Drops at the head by queueing delay, in two queues.
    DualPi2(DualPi2<P>),
    /// Drops at the tail of the lowest priority.
    Priority(Priority<P>),
}

macro_rules! each {
    ($self:expr, $queue:ident => $call:expr) => {
        match $self {
            Queue::DropTail($queue) => $call,
            Queue::CoDel($queue) => $call,
            Queue::Red($queue) => $call,
            Queue::Pie($queue) => $call,
            Queue::FqCoDel($queue) => $call,
            Queue::DualPi2($queue) => $call,
            Queue::Priority($queue) => $call,
        }
    };
}

impl<P: Packet> Queue<P> {
    /// A plain buffer of `limit`.
    #[must_use]
    pub const fn drop_tail(limit: Limit) -> Self {
        Self::DropTail(DropTail::new(limit))
    }

    /// CoDel with the parameters of RFC 8289 in a buffer of `limit`.
    #[must_use]
    pub fn codel(limit: Limit) -> Self {
        Self::CoDel(CoDel::new(codel::Params::default(), limit))
    }

    /// RED with the usual parameters before a link of `rate`, in a buffer of `limit`.
    #[must_use]
    pub fn red(rate: Rate, limit: Limit, seed: u64) -> Self {
        Self::Red(Red::new(red::Params::for_rate(rate), limit, seed))
    }

    /// A packet arrives that has to wait: accepted or dropped. Others dropped to make room go to
    /// `dropped`.
    pub(crate) fn enqueue(&mut self, now: Time, packet: P, dropped: &mut Dropped<P>) -> PushResult<P> {
        match self {
            Self::DropTail(queue) => queue.enqueue(now, packet),
            Self::CoDel(queue) => queue.enqueue(now, packet),
            Self::Red(queue) => queue.enqueue(now, packet),
            Self::Pie(queue) => queue.enqueue(now, packet),
            Self::FqCoDel(queue) => queue.enqueue(now, packet, dropped),
            Self::DualPi2(queue) => queue.enqueue(now, packet),
            Self::Priority(queue) => queue.enqueue(now, packet, dropped),
        }
    }

    /// A packet arrives at an idle link and need not wait: passed or dropped. The limit does not
    /// apply, as the packet being sent is not in the buffer, but the discipline counts it.
    pub(crate) fn pass(&mut self, now: Time, packet: P) -> PushResult<P> {
        match self {
            Self::DropTail(_) | Self::Priority(_) => PushResult::Passed(packet),
            Self::CoDel(queue) => queue.pass(packet),
            Self::Red(queue) => queue.pass(now, packet),
            Self::Pie(queue) => queue.pass(now, packet),
            Self::FqCoDel(queue) => queue.pass(now, packet),
            Self::DualPi2(queue) => queue.pass(now, packet),
        }
    }

    /// The link is free: the next packet to send, if any. Packets dropped before go to `dropped`.
    pub(crate) fn dequeue(&mut self, now: Time, dropped: &mut Dropped<P>) -> Option<P> {
        match self {
            Self::DropTail(queue) => queue.dequeue().map(|(_, packet)| packet),
            Self::CoDel(queue) => queue.dequeue(now, dropped),
            Self::Red(queue) => queue.dequeue(now),
            Self::Pie(queue) => queue.dequeue(now),
            Self::FqCoDel(queue) => queue.dequeue(now, dropped),
            Self::DualPi2(queue) => queue.dequeue(now, dropped),
            Self::Priority(queue) => queue.dequeue(),
        }
    }

    /// Waiting packets and bytes.
    pub(crate) fn waiting(&self) -> (u64, Bytes) {
        each!(self, queue => queue.waiting())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting().0 == 0
    }

    /// True if a dequeue may drop packets. If not, a link need not dequeue on time: a later call
    /// for an earlier instant gives the same packets.
    pub(crate) const fn drops_at_head(&self) -> bool {
        matches!(self, Self::CoDel(_) | Self::FqCoDel(_) | Self::DualPi2(_))
    }
}
