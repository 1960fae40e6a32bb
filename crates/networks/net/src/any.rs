//! Every element as one type, for dispatch without a vtable.

use headstart_units::{Bytes, Time};

use crate::changing::ChangingLink;
use crate::element::{Element, Output, Packet, PushResult};
use crate::link::Link;
use crate::managed_link::ManagedLink;
use crate::netem_link::NetemLink;
use crate::plan::Part;
use crate::queueing_delays::QueueingDelays;
use crate::routed_link::RoutedLink;
use crate::trace_link::TraceLink;

macro_rules! any {
    (; $($(#[$doc:meta])* $name:ident($params:ty),)*) => {
        /// Every element.
        #[derive(Debug)]
        pub enum AnyElement<P> {
            /// Constant rate, delay, drop-tail.
            Link(Link<P>),
            /// Constant rate, delay, any queue. Boxed, as RED is large.
            ManagedLink(Box<ManagedLink<P>>),
            /// Constant rate, one limit for delay and queue.
            NetemLink(NetemLink<P>),
            /// A trace, delay, any queue. Boxed, as RED is large.
            TraceLink(Box<TraceLink<P>>),
            /// A link of any kind behind a Quick-Start or RCP router.
            RoutedLink(Box<RoutedLink<AnyElement<P>>>),
            /// A link whose rate and delay change at given times. Boxed, as RED is large.
            ChangingLink(Box<ChangingLink<P>>),
            $($(#[$doc])* $name(<$params as Part>::Element<P>),)*
        }
    };
}

parts!(any);

macro_rules! each {
    ($self:expr, $element:ident => $call:expr; $($(#[$doc:meta])* $name:ident($params:ty),)*) => {
        match $self {
            AnyElement::Link($element) => $call,
            AnyElement::ManagedLink($element) => $call,
            AnyElement::NetemLink($element) => $call,
            AnyElement::TraceLink($element) => $call,
            AnyElement::RoutedLink($element) => $call,
            AnyElement::ChangingLink($element) => $call,
            $(AnyElement::$name($element) => $call,)*
        }
    };
}

/// The link is called directly, all other elements through a call that is not inlined. Nearly all
/// packets cross plain links only, and copying a packet costs more than the link itself.
impl<P: Packet + Clone> Element<P> for AnyElement<P> {
    #[inline(always)]
    fn push(&mut self, now: Time, packet: P) -> PushResult<P> {
        match self {
            Self::Link(link) => link.push(now, packet),
            other => other.push_elsewhere(now, packet),
        }
    }

    #[inline(always)]
    fn pop(&mut self, now: Time) -> Option<Output<P>> {
        match self {
            Self::Link(link) => link.pop(now),
            other => other.pop_elsewhere(now),
        }
    }

    #[inline(always)]
    fn next_at(&self) -> Time {
        match self {
            Self::Link(link) => link.next_at(),
            other => other.next_elsewhere(),
        }
    }

    fn queue(&mut self, now: Time) -> (u64, Bytes) {
        parts!(each self, element => Element::<P>::queue(element, now))
    }

    fn queueing_delays(&mut self) -> Option<&mut Option<QueueingDelays>> {
        parts!(each self, element => Element::<P>::queueing_delays(element))
    }
}

impl<P> AnyElement<P> {
    /// True if a router, capable or not, forwards packets into it and decrements their TTL.
    #[must_use]
    pub const fn is_link(&self) -> bool {
        matches!(
            self,
            Self::Link(_)
                | Self::ManagedLink(_)
                | Self::NetemLink(_)
                | Self::TraceLink(_)
                | Self::RoutedLink(_)
                | Self::ChangingLink(_)
        )
    }
}

impl<P: Packet + Clone> AnyElement<P> {
    #[inline(never)]
    fn push_elsewhere(&mut self, now: Time, packet: P) -> PushResult<P> {
        parts!(each self, element => element.push(now, packet))
    }

    #[inline(never)]
    fn pop_elsewhere(&mut self, now: Time) -> Option<Output<P>> {
        parts!(each self, element => element.pop(now))
    }

    #[inline(never)]
    fn next_elsewhere(&self) -> Time {
        parts!(each self, element => Element::<P>::next_at(element))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::testing::Numbered;

    /// The simulator stores elements in an array; a rare large one must not enlarge the others.
    #[test]
    fn no_element_is_larger_than_the_link() {
        assert!(size_of::<AnyElement<Numbered>>() <= size_of::<Link<Numbered>>() + 8);
    }
}
