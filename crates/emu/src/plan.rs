//! What one direction of a path is made of.

use std::sync::Arc;

use headstart_net::burst_loss::{self, BurstLoss};
use headstart_net::changing::{ChangingLink, ChangingLoss, LinkChange};
use headstart_net::jitter::{Jitter, Order};
use headstart_net::queue::Queue;
use headstart_net::routed_link::Part;
use headstart_net::trace_link::{AtEnd, TraceLink};
use headstart_net::{AnyElement, Duplicate, Limit, Link, Loss, ManagedLink, Packet, RoutedLink, Trace};
use headstart_units::{Rate, Ratio, Span, Time};

use crate::path::Path;

/// How a buffer is kept short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// Drops what finds the buffer full.
    DropTail,
    /// RFC 8289.
    CoDel,
    /// Floyd and Jacobson 1993, gentle.
    Red,
}

/// A link of constant rate.
#[derive(Clone, Debug)]
pub struct LinkPlan {
    /// Its rate.
    pub rate: Rate,
    /// Its propagation delay.
    pub delay: Span,
    /// Its buffer.
    pub limit: Limit,
    /// The part that the router before it takes, if any.
    pub part: Option<Part>,
}

/// One direction: the bottleneck, further links behind it, then what happens to packets at random. The order is that of the
/// simulator's path.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The first link.
    pub bottleneck: LinkPlan,
    /// How its buffer is kept short.
    pub law: Law,
    /// A trace that drives it instead of the rate.
    pub trace: Option<Arc<Trace>>,
    /// What changes about it, and when. With a trace or a router there is nothing to change.
    pub link_changes: Vec<(Time, LinkChange)>,
    /// Further links.
    pub hops: Vec<LinkPlan>,
    /// Loss, each packet for itself.
    pub loss: Ratio,
    /// How that changes, and when.
    pub loss_changes: Vec<(Time, Ratio)>,
    /// Loss in bursts.
    pub burst_loss: Option<burst_loss::Params>,
    /// Random extra delay up to this.
    pub jitter: Span,
    /// What jitter does to the order.
    pub order: Order,
    /// Share of packets that come twice.
    pub duplicate: Ratio,
}

impl Plan {
    /// A plain link.
    #[must_use]
    pub const fn link(rate: Rate, delay: Span, limit: Limit) -> Self {
        Self {
            bottleneck: LinkPlan { rate, delay, limit, part: None },
            law: Law::DropTail,
            trace: None,
            link_changes: vec![],
            hops: vec![],
            loss: Ratio::new(0, 1),
            loss_changes: vec![],
            burst_loss: None,
            jitter: Span::ZERO,
            order: Order::Kept,
            duplicate: Ratio::new(0, 1),
        }
    }

    /// The elements. Each source of chance is seeded by its name.
    #[must_use]
    pub fn path<P: Packet + Clone>(&self, seed: impl Fn(&str) -> u64) -> Path<P> {
        let mut elements = vec![("bottleneck".to_owned(), self.first_link(&seed))];
        let mut add = |name: &str, element| elements.push((name.to_owned(), element));
        for (hop, number) in self.hops.iter().zip(1..) {
            let name = format!("hop {number}");
            let link = AnyElement::Link(Link::new(hop.rate, hop.delay, hop.limit));
            add(&name, routed(hop.part.as_ref(), link, || seed(&format!("{name} router"))));
        }
        let is_some = |ratio: Ratio| ratio.of(u64::from(u32::MAX)) > 0;
        if !self.loss_changes.is_empty() {
            let loss =
                ChangingLoss::new(Loss::new(self.loss, seed("loss")), self.loss_changes.iter().copied());
            add("random loss", AnyElement::ChangingLoss(Box::new(loss)));
        } else if is_some(self.loss) {
            add("random loss", AnyElement::Loss(Loss::new(self.loss, seed("loss"))));
        }
        if let Some(params) = self.burst_loss {
            add("burst loss", AnyElement::BurstLoss(BurstLoss::new(params, seed("burst loss"))));
        }
        if !self.jitter.is_zero() {
            add("jitter", AnyElement::Jitter(Jitter::new(self.jitter, self.order, seed("jitter"))));
        }
        if is_some(self.duplicate) {
            add("duplicates", AnyElement::Duplicate(Duplicate::new(self.duplicate, seed("duplicate"))));
        }
        Path::new(elements)
    }

    fn first_link<P: Packet + Clone>(&self, seed: &impl Fn(&str) -> u64) -> AnyElement<P> {
        let LinkPlan { rate, delay, limit, ref part } = self.bottleneck;
        let link = if let Some(trace) = &self.trace {
            let queue = self.queue(trace.mean_rate(), seed);
            let link = TraceLink::new(Arc::clone(trace), AtEnd::Repeat, delay, queue);
            AnyElement::TraceLink(Box::new(link))
        } else if !self.link_changes.is_empty() {
            let link = ManagedLink::new(rate, delay, self.queue(rate, seed));
            let link = ChangingLink::new(link, self.link_changes.iter().copied());
            return AnyElement::ChangingLink(Box::new(link));
        } else if self.law == Law::DropTail {
            AnyElement::Link(Link::new(rate, delay, limit))
        } else {
            AnyElement::ManagedLink(Box::new(ManagedLink::new(rate, delay, self.queue(rate, seed))))
        };
        routed(part.as_ref(), link, || seed("router"))
    }

    fn queue<P: Packet>(&self, rate: Rate, seed: &impl Fn(&str) -> u64) -> Queue<P> {
        let limit = self.bottleneck.limit;
        match self.law {
            Law::DropTail => Queue::drop_tail(limit),
            Law::CoDel => Queue::codel(limit),
            Law::Red => Queue::red(rate, limit, seed("bottleneck")),
        }
    }
}

fn routed<P: Packet + Clone>(
    part: Option<&Part>,
    link: AnyElement<P>,
    seed: impl Fn() -> u64,
) -> AnyElement<P> {
    match part {
        None => link,
        Some(part) => AnyElement::RoutedLink(Box::new(RoutedLink::new(part.clone(), link, seed()))),
    }
}
