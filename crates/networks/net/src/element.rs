//! The trait of every part of a path, and the result for a packet.

use core::fmt::Debug;

use headstart_startup::quick_start::Request;
use headstart_units::{Bytes, Rate, Span, Time};

use crate::queueing_delays::QueueingDelays;

/// The properties of a packet that elements use.
pub trait Packet: Debug {
    /// Size of the packet on the link in bytes, headers included.
    fn size(&self) -> Bytes;
    /// True if it may be marked instead of dropped (RFC 3168 ECT).
    fn is_ecn_capable(&self) -> bool;
    /// Sets the congestion-experienced mark.
    fn mark_congestion_experienced(&mut self);

    /// True if its sender responds to every mark (RFC 9331 §4.1): its ECN field is ECT(1) or CE.
    #[inline]
    fn is_l4s(&self) -> bool {
        false
    }

    /// Zero is served first, where queues have priorities.
    #[inline]
    fn priority(&self) -> u8 {
        0
    }

    /// Key of its flow, for routers that track flows and for per-flow queues.
    #[inline]
    fn flow_key(&self) -> u64 {
        0
    }

    /// Key of its sender, for routers that track hosts.
    #[inline]
    fn host_key(&self) -> u32 {
        0
    }

    /// The Quick-Start request that it carries.
    #[inline]
    fn request(&self) -> Option<Request> {
        None
    }

    /// Replaces the request after a router changed it; `None` removes it from the packet.
    fn set_request(&mut self, request: Option<Request>) {
        let _ = request;
    }

    /// True if its IP header has an option (of IPv6: a hop-by-hop header).
    fn has_ip_option(&self) -> bool {
        self.request().is_some()
    }

    /// A capable router forwards it: lowers a real packet's TTL. The simulator counts routers.
    fn forward(&mut self) {}

    /// Present if RCP routers are to stamp it: its sender's RTT (zero: unknown).
    #[inline]
    fn rate_field_rtt(&self) -> Option<Span> {
        None
    }

    /// An RCP router offers this rate; the packet keeps the smallest.
    fn stamp(&mut self, rate: Rate) {
        let _ = rate;
    }
}

/// A part of a path.
pub trait Element<P>: Debug {
    /// A packet arrives. Times never decrease from call to call.
    fn push(&mut self, now: Time, packet: P) -> PushResult<P>;

    /// Takes the next packet due at or before `now`, delivered or dropped; none of an element that
    /// holds no packets.
    fn pop(&mut self, now: Time) -> Option<Output<P>> {
        let _ = now;
        None
    }

    /// Time of the next call of `pop`; [`Time::NEVER`] while only a `push` can change that. It may
    /// be too early for a packet, but never too late.
    fn next_at(&self) -> Time {
        Time::NEVER
    }

    /// Packets and bytes in its queue at `now`, as its limit counts them; zero without a queue.
    fn queue(&mut self, now: Time) -> (u64, Bytes) {
        let _ = now;
        (0, Bytes::ZERO)
    }

    /// Place of the measured queueing delays, if it has a queue. They are measured once there is
    /// something in it.
    fn queueing_delays(&mut self) -> Option<&mut Option<QueueingDelays>> {
        None
    }
}

impl<P, E: Element<P> + ?Sized> Element<P> for Box<E> {
    fn push(&mut self, now: Time, packet: P) -> PushResult<P> {
        (**self).push(now, packet)
    }
    fn pop(&mut self, now: Time) -> Option<Output<P>> {
        (**self).pop(now)
    }
    fn next_at(&self) -> Time {
        (**self).next_at()
    }
    fn queue(&mut self, now: Time) -> (u64, Bytes) {
        (**self).queue(now)
    }
    fn queueing_delays(&mut self) -> Option<&mut Option<QueueingDelays>> {
        (**self).queueing_delays()
    }
}

/// The result for a packet offered to an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum PushResult<P> {
    /// Accepted; `pop` will return it.
    Accepted,
    /// Forwarded at once.
    Passed(P),
    /// Dropped, with the reason; the caller records it.
    Dropped(P, DropReason),
}

/// A packet that leaves an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Output<P> {
    /// The packet is forwarded to the next element.
    Delivered(P),
    /// Dropped inside, after it had been accepted.
    Dropped(P, DropReason),
}

/// The reason why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// The buffer was full.
    QueueFull,
    /// CoDel (RFC 8289): queueing delay above the target.
    CoDel,
    /// RED: random drop by the average queue.
    Red,
    /// PIE (RFC 8033): random drop.
    Pie,
    /// DualPI2 (RFC 9332): drop by its probability.
    DualPi2,
    /// The policer's bucket had too few tokens.
    Policer,
    /// Independent random loss.
    RandomLoss,
    /// Loss in a burst.
    BurstLoss,
    /// A box drops packets with IP options.
    OptionFilter,
}

impl DropReason {
    /// All causes, in the order of the table of counts.
    pub const ALL: [Self; 9] = [
        Self::QueueFull,
        Self::CoDel,
        Self::Red,
        Self::Pie,
        Self::DualPi2,
        Self::Policer,
        Self::RandomLoss,
        Self::BurstLoss,
        Self::OptionFilter,
    ];

    /// The cause in words, for tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue full",
            Self::CoDel => "CoDel",
            Self::Red => "RED",
            Self::Pie => "PIE",
            Self::DualPi2 => "DualPI2",
            Self::Policer => "policer",
            Self::RandomLoss => "random loss",
            Self::BurstLoss => "burst loss",
            Self::OptionFilter => "option filter",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_listed_once_and_in_order() {
        assert!(DropReason::ALL.is_sorted());
        assert!(DropReason::ALL.iter().all(|reason| !reason.name().is_empty()));
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A packet with a number and a size.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Numbered {
        pub number: u64,
        pub size: Bytes,
        pub ecn_capable: bool,
        pub is_l4s: bool,
        pub marked: bool,
        pub flow: u64,
        pub priority: u8,
    }

    /// Packet `number` of 1500 bytes.
    pub fn packet(number: u64) -> Numbered {
        let size = Bytes::new(1500);
        Numbered { number, size, ecn_capable: false, is_l4s: false, marked: false, flow: 0, priority: 0 }
    }

    impl Packet for Numbered {
        fn size(&self) -> Bytes {
            self.size
        }
        fn is_ecn_capable(&self) -> bool {
            self.ecn_capable
        }
        fn mark_congestion_experienced(&mut self) {
            self.marked = true;
        }
        fn is_l4s(&self) -> bool {
            self.is_l4s
        }
        fn flow_key(&self) -> u64 {
            self.flow
        }
        fn priority(&self) -> u8 {
            self.priority
        }
    }

    /// Runs an element until idle: `(time in microseconds, number)` of the delivered packets.
    pub fn drain(element: &mut impl Element<Numbered>) -> Vec<(u64, u64)> {
        let mut out = vec![];
        while element.next_at() != Time::NEVER {
            let now = element.next_at();
            while let Some(output) = element.pop(now) {
                if let Output::Delivered(packet) = output {
                    out.push((now.as_nanos() / 1000, packet.number));
                }
            }
        }
        out
    }
}
