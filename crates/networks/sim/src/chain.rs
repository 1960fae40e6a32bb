//! Routers in a chain, with traffic both ways: hosts at either end send to hosts at the other.
//!
//! ```text
//!  servers --+                                        +-- clients       (forward classes)
//!            R1 ===== link 1 ===== R2 ===== link 2 ===== R3
//!  clients --+                                        +-- servers       (backward classes)
//! ```
//!
//! Each link is two, one for each direction, each with its own queue and its own router before it.
//! Data of forward classes crosses the links there, and its acks those back; for backward classes
//! it is the other way round. So data of one side queues with acks of the other, as on real links.
//!
//! # Limits
//!
//! Access links have a delay and no rate: in the paper that uses them (Quick-Start §5) they have
//! 1000 Mbit/s, and a packet takes 12 us to cross one. The routers at the ends do not process a
//! request again on the access link to the host.

use headstart_net::{
    AnyElement, Delay, Limit, LinkPlan, OptionFilter, QueueDiscipline, RoutedLink, RouterPlan, option_filter,
};
use headstart_units::{Rate, Span};

use crate::check::ElementModel;
use crate::path::{Path, PathBuilder};
use crate::random::Seed;

/// One link of the chain, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainLink {
    /// Rate of the link.
    pub rate: Rate,
    /// Propagation delay of the link.
    pub delay: Span,
    /// The buffer before the link.
    pub limit: Limit,
    /// Queue discipline of the buffer.
    pub discipline: QueueDiscipline,
}

/// One-way delays of a server and its clients to their ends of the chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// From the server to its router.
    pub server: Span,
    /// From the last router to the client.
    pub client: Span,
}

/// Links and access links of a chain.
#[derive(Clone, Debug)]
pub struct ChainSpec {
    /// The links, from left to right.
    pub links: Vec<ChainLink>,
    /// Servers on the left: classes 0 and up.
    pub forward: Vec<Access>,
    /// Servers on the right: the classes after those.
    pub backward: Vec<Access>,
    /// A box before the first link of either direction that acts on packets with IP options.
    pub option_filter: Option<option_filter::Params>,
}

/// A chain that was built.
#[derive(Debug)]
pub struct Chain {
    /// The path.
    pub path: Path,
    /// Properties of each element that a checker may rely on.
    pub models: Vec<ElementModel>,
    /// The links' elements from left to right, and their twins', in the order of the links.
    pub links: Vec<(u16, u16)>,
}

impl ChainSpec {
    /// Builds the chain; `router` gives the Quick-Start or RCP router before a link of this rate,
    /// if any.
    #[must_use]
    pub fn build(&self, router: impl Fn(Rate) -> Option<RouterPlan>, seed: Seed) -> Chain {
        let mut builder = Builder { path: PathBuilder::default(), models: vec![] };
        let links: Vec<(u16, u16)> = self
            .links
            .iter()
            .enumerate()
            .map(|(number, link)| {
                let mut one = |way: &str| {
                    let name = format!("link {}{way}", number + 1);
                    let seed = seed.child(&name).0;
                    builder.link(name, link, router(link.rate), seed)
                };
                (one(""), one(" back"))
            })
            .collect();
        let mut there: Vec<u16> = links.iter().map(|(there, _)| *there).collect();
        let mut back: Vec<u16> = links.iter().rev().map(|(_, back)| *back).collect();
        if let Some(params) = self.option_filter {
            for (way, name) in [(&mut there, "option filter"), (&mut back, "option filter back")] {
                way.insert(0, builder.option_filter(name, params, seed.child(name).0));
            }
        }
        let mut classes = |hosts: &[Access], data: &[u16], acks: &[u16]| {
            for access in hosts {
                let (server, client) = (builder.access(access.server), builder.access(access.client));
                let route = |from: Option<u16>, middle: &[u16], to: Option<u16>| -> Vec<u16> {
                    from.into_iter().chain(middle.iter().copied()).chain(to).collect()
                };
                builder.path.class(route(server, data, client), route(client, acks, server));
            }
        };
        classes(&self.forward, &there, &back);
        classes(&self.backward, &back, &there);
        Chain { path: builder.path.build(), models: builder.models, links }
    }

    /// The round-trip time of a class without queues and serialisation.
    #[must_use]
    pub fn rtt(&self, class: usize) -> Span {
        let access = self.forward.iter().chain(&self.backward).nth(class).copied().unwrap_or_default();
        let links = self.links.iter().fold(Span::ZERO, |sum, link| sum + link.delay);
        (links + access.server + access.client) * 2
    }
}

struct Builder {
    path: PathBuilder,
    models: Vec<ElementModel>,
}

impl Builder {
    fn link(&mut self, name: String, link: &ChainLink, router: Option<RouterPlan>, seed: u64) -> u16 {
        let ChainLink { rate, delay, limit, discipline } = *link;
        self.models.push(match discipline {
            QueueDiscipline::DropTail => ElementModel::Link { rate, delay, limit },
            _ => ElementModel::Counted,
        });
        let plan = LinkPlan { discipline, ..LinkPlan::new(rate, delay, limit) };
        let plain = plan.build(Seed(seed).child("queue"));
        let element = match router {
            None => plain,
            Some(router) => AnyElement::RoutedLink(Box::new(RoutedLink::new(router.part(), plain, seed))),
        };
        self.path.element(name, element)
    }

    fn option_filter(&mut self, name: &str, params: option_filter::Params, seed: u64) -> u16 {
        self.models.push(ElementModel::Counted);
        self.path.element(name, AnyElement::OptionFilter(OptionFilter::new(params, seed)))
    }

    /// One element serves both directions: a constant delay keeps the order of whatever crosses it.
    fn access(&mut self, delay: Span) -> Option<u16> {
        if delay.is_zero() {
            return None;
        }
        self.models.push(ElementModel::Counted);
        Some(self.path.element("access", AnyElement::Delay(Delay::new(delay))))
    }
}
