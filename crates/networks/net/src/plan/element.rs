//! An element as data.

use core::fmt;
use std::sync::Arc;

use headstart_units::{Rate, Ratio, Span, Time};

use super::check::Refusal;
use crate::any::AnyElement;
use crate::changing::{ChangingLink, LinkChange};
use crate::element::{DropReason, Packet};
use crate::jitter::{self, Order};
use crate::limit::Limit;
use crate::link::Link;
use crate::loss;
use crate::managed_link::ManagedLink;
use crate::netem_link::NetemLink;
use crate::queue::QueueDiscipline;
use crate::routed_link::{RoutedLink, RouterPlan};
use crate::seed::Seed;
use crate::trace::Trace;
use crate::trace_link::{AtEnd, TraceLink};

/// The rate at which a link sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkRate {
    /// Constant, apart from the link's changes.
    Constant(Rate),
    /// Rate of a repeated packet-delivery trace.
    Trace(Arc<Trace>),
}

impl LinkRate {
    /// The rate, or the mean of the trace.
    #[must_use]
    pub fn mean(&self) -> Rate {
        match self {
            Self::Constant(rate) => *rate,
            Self::Trace(trace) => trace.mean_rate(),
        }
    }
}

/// A link with its buffer and the router before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkPlan {
    /// Rate of the link.
    pub rate: LinkRate,
    /// One-way propagation delay of the link.
    pub delay: Span,
    /// Buffer of the link.
    pub limit: Limit,
    /// Queue discipline of the link's buffer.
    pub discipline: QueueDiscipline,
    /// The router before it, if it supports Quick-Start or RCP.
    pub router: Option<RouterPlan>,
    /// Timed changes of its rate and delay. Not with a trace or a Quick-Start or RCP router.
    pub changes: Vec<(Time, LinkChange)>,
}

impl LinkPlan {
    /// A link of constant rate with a drop-tail queue, without a Quick-Start or RCP router.
    #[must_use]
    pub const fn new(rate: Rate, delay: Span, limit: Limit) -> Self {
        Self {
            rate: LinkRate::Constant(rate),
            delay,
            limit,
            discipline: QueueDiscipline::DropTail,
            router: None,
            changes: vec![],
        }
    }

    /// The rate of a link of constant rate with a drop-tail queue: [`Link`] implements it, with or
    /// without a Quick-Start or RCP router.
    #[must_use]
    pub const fn plain_rate(&self) -> Option<Rate> {
        match self {
            Self {
                rate: LinkRate::Constant(rate), discipline: QueueDiscipline::DropTail, changes, ..
            } if changes.is_empty() => Some(*rate),
            _ => None,
        }
    }

    /// The link; `seed` is for its queue's draws, and its child for the router's.
    #[must_use]
    pub fn build<P: Packet + Clone>(&self, seed: Seed) -> AnyElement<P> {
        let link = self.build_without_router(seed);
        match self.router {
            None => link,
            Some(router) => {
                let seed = seed.child("router").0;
                AnyElement::RoutedLink(Box::new(RoutedLink::new(router.part(), link, seed)))
            }
        }
    }

    fn build_without_router<P: Packet + Clone>(&self, seed: Seed) -> AnyElement<P> {
        if let Some(rate) = self.plain_rate() {
            return AnyElement::Link(Link::new(rate, self.delay, self.limit));
        }
        match &self.rate {
            LinkRate::Constant(rate)
                if self.discipline == QueueDiscipline::Netem && self.changes.is_empty() =>
            {
                AnyElement::NetemLink(NetemLink::new(*rate, self.delay, self.limit))
            }
            LinkRate::Trace(trace) => {
                let queue = self.discipline.queue(trace.mean_rate(), self.limit, seed.0);
                let link = TraceLink::new(Arc::clone(trace), AtEnd::Repeat, self.delay, queue);
                AnyElement::TraceLink(Box::new(link))
            }
            LinkRate::Constant(rate) => {
                let queue = self.discipline.queue(*rate, self.limit, seed.0);
                let link = ManagedLink::new(*rate, self.delay, queue);
                if self.changes.is_empty() {
                    AnyElement::ManagedLink(Box::new(link))
                } else {
                    let link = ChangingLink::new(link, self.changes.iter().copied());
                    AnyElement::ChangingLink(Box::new(link))
                }
            }
        }
    }
}

/// A part of a path that is no link, as data. Its text is for logs and people.
pub trait Part: fmt::Display {
    /// Name of the part on a path, as in logs and errors.
    const NAME: &'static str;
    /// Name of the seed of its draws: another one changes results.
    const SEED: &'static str = Self::NAME;
    /// The option that sets it, without dashes; of the way back it has the prefix `up-`.
    const OPTION: &'static str = Self::NAME;
    /// Crossing it decrements a packet's time to live.
    const HAS_ROUTER: bool = false;
    /// Some packets are delivered twice.
    const COPIES: bool = false;
    /// The element that packets cross.
    type Element<P>;

    /// The element; its draws begin at `seed`.
    fn build<P>(&self, seed: Seed) -> Self::Element<P>;

    /// Checks its values.
    ///
    /// # Errors
    /// The first value out of its limits.
    fn check(&self) -> Result<(), Refusal> {
        Ok(())
    }

    /// The least delay of every packet.
    fn delay(&self) -> Span {
        Span::ZERO
    }

    /// The cause by which it drops packets, if it does.
    fn drops(&self) -> Option<DropReason> {
        None
    }
}

macro_rules! plans {
    (; $($(#[$doc:meta])* $name:ident($params:ty),)*) => {
        /// An element of one direction.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum ElementPlan {
            /// A link.
            Link(LinkPlan),
            $($(#[$doc])* $name($params),)*
        }

        $(impl From<$params> for ElementPlan {
            fn from(params: $params) -> Self {
                Self::$name(params)
            }
        })*

        impl ElementPlan {
            /// Name and option of each part that is no link.
            pub const PARTS: &'static [(&'static str, &'static str)] =
                &[$((<$params as Part>::NAME, <$params as Part>::OPTION)),*];

            /// For an element that is no link: its name and its seed's.
            #[must_use]
            pub const fn names(&self) -> Option<(&'static str, &'static str)> {
                match self {
                    Self::Link(_) => None,
                    $(Self::$name(_) => Some((<$params as Part>::NAME, <$params as Part>::SEED)),)*
                }
            }

            /// The element; its draws begin at `seed`.
            #[must_use]
            pub fn build<P: Packet + Clone>(&self, seed: Seed) -> AnyElement<P> {
                match self {
                    Self::Link(link) => link.build(seed),
                    $(Self::$name(part) => AnyElement::$name(part.build::<P>(seed)),)*
                }
            }

            pub(super) fn check(&self) -> Result<(), Refusal> {
                match self {
                    Self::Link(link) => link.check(),
                    $(Self::$name(part) => part.check(),)*
                }
            }

            /// True if crossing it decrements a packet's time to live: routers forward into links.
            #[must_use]
            pub const fn has_router(&self) -> bool {
                match self {
                    Self::Link(_) => true,
                    $(Self::$name(_) => <$params as Part>::HAS_ROUTER,)*
                }
            }

            /// True if some packets are delivered twice.
            #[must_use]
            pub const fn copies(&self) -> bool {
                match self {
                    Self::Link(_) => false,
                    $(Self::$name(_) => <$params as Part>::COPIES,)*
                }
            }

            /// The least delay of every packet.
            #[must_use]
            pub fn delay(&self) -> Span {
                match self {
                    Self::Link(link) => link.delay,
                    $(Self::$name(part) => part.delay(),)*
                }
            }

            /// The cause by which a part that is no link drops packets, if it does.
            #[must_use]
            pub fn drops(&self) -> Option<DropReason> {
                match self {
                    Self::Link(_) => None,
                    $(Self::$name(part) => part.drops(),)*
                }
            }
        }

        impl fmt::Display for ElementPlan {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    Self::Link(link) => link.fmt(f),
                    $(Self::$name(part) => part.fmt(f),)*
                }
            }
        }
    };
}

parts!(plans);

impl ElementPlan {
    /// Independent random loss of this share at all times.
    #[must_use]
    pub const fn loss(share: Ratio) -> Self {
        Self::Loss(loss::Params::constant(share))
    }

    /// Random extra delay.
    #[must_use]
    pub const fn jitter(bound: Span, order: Order) -> Self {
        Self::Jitter(jitter::Params { bound, order })
    }
}
