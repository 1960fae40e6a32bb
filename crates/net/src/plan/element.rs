//! An element as data.

use std::sync::Arc;

use headstart_units::{Rate, Ratio, Span, Time};

use crate::any::AnyElement;
use crate::burst_loss::{self, BurstLoss};
use crate::changing::{ChangingLink, ChangingLoss, LinkChange};
use crate::delay::Delay;
use crate::duplicate::Duplicate;
use crate::element::Packet;
use crate::jitter::{Jitter, Order};
use crate::limit::Limit;
use crate::link::Link;
use crate::loss::Loss;
use crate::managed_link::ManagedLink;
use crate::netem_link::NetemLink;
use crate::option_filter::{self, OptionFilter};
use crate::policer::{self, Policer};
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
    /// That of a repeated packet-delivery trace.
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
    /// Its rate.
    pub rate: LinkRate,
    /// Its one-way propagation delay.
    pub delay: Span,
    /// Its buffer.
    pub limit: Limit,
    /// Its queue discipline.
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

/// An element of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElementPlan {
    /// A link.
    Link(LinkPlan),
    /// A router without Quick-Start and RCP that forwards at once and decrements the time to live.
    NonCapableRouter,
    /// The same delay for every packet.
    Delay(Span),
    /// Independent random loss of each packet.
    Loss {
        /// The share of packets that are lost.
        share: Ratio,
        /// Later shares, with their times.
        changes: Vec<(Time, Ratio)>,
    },
    /// Random loss in bursts.
    BurstLoss(burst_loss::Params),
    /// Random extra delay.
    Jitter {
        /// The longest extra delay.
        bound: Span,
        /// Effect on the order of packets.
        order: Order,
    },
    /// The share of packets that are delivered twice.
    Duplicate(Ratio),
    /// A policer: packets beyond its rate and burst are dropped.
    Policer(policer::Params),
    /// A box that drops packets with IP options, or removes Quick-Start requests.
    OptionFilter(option_filter::Params),
}

impl ElementPlan {
    /// Kinds of elements that are named by their kind.
    pub(super) const KINDS: usize = 8;

    /// For an element that is no link: its name, the number of its kind, and the name of its seed.
    pub(super) const fn kind(&self) -> Option<(&'static str, usize, &'static str)> {
        Some(match self {
            Self::Link(_) => return None,
            Self::NonCapableRouter => ("non-capable router", 0, "non-capable router"),
            Self::Delay(_) => ("delay", 1, "delay"),
            Self::Loss { .. } => ("random loss", 2, "loss"),
            Self::BurstLoss(_) => ("burst loss", 3, "burst loss"),
            Self::Jitter { .. } => ("jitter", 4, "jitter"),
            Self::Duplicate(_) => ("duplicates", 5, "duplicate"),
            Self::Policer(_) => ("policer", 6, "policer"),
            Self::OptionFilter(_) => ("option filter", 7, "option filter"),
        })
    }

    /// The element; its draws begin at `seed`.
    #[must_use]
    pub fn build<P: Packet + Clone>(&self, seed: Seed) -> AnyElement<P> {
        match self {
            Self::Link(link) => link.build(seed),
            Self::NonCapableRouter => AnyElement::Delay(Delay::new(Span::ZERO)),
            Self::Delay(delay) => AnyElement::Delay(Delay::new(*delay)),
            Self::Loss { share, changes } => {
                let loss = Loss::new(*share, seed.0);
                if changes.is_empty() {
                    AnyElement::Loss(loss)
                } else {
                    let loss = ChangingLoss::new(loss, changes.iter().copied());
                    AnyElement::ChangingLoss(Box::new(loss))
                }
            }
            Self::BurstLoss(params) => AnyElement::BurstLoss(BurstLoss::new(*params, seed.0)),
            Self::Jitter { bound, order } => AnyElement::Jitter(Jitter::new(*bound, *order, seed.0)),
            Self::Duplicate(share) => AnyElement::Duplicate(Duplicate::new(*share, seed.0)),
            Self::Policer(params) => AnyElement::Policer(Policer::new(*params)),
            Self::OptionFilter(params) => AnyElement::OptionFilter(OptionFilter::new(*params, seed.0)),
        }
    }

    /// True if crossing it decrements a packet's time to live: routers forward into links.
    #[must_use]
    pub const fn has_router(&self) -> bool {
        matches!(self, Self::Link(_) | Self::NonCapableRouter)
    }

    /// The least delay of every packet.
    #[must_use]
    pub const fn delay(&self) -> Span {
        match self {
            Self::Link(link) => link.delay,
            Self::Delay(delay) => *delay,
            _ => Span::ZERO,
        }
    }
}
