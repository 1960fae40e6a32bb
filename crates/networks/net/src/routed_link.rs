//! A link behind a Quick-Start or RCP router.
//!
//! The algorithms are `headstart-startup`'s, applied here to packets. The router processes each
//! packet on arrival, changes its request or stamp, and counts packets that the link accepts. A
//! link without such a router is a plain one: it forwards requests and stamps unchanged, as a
//! router does that does not support them.
//!
//! # Limits
//!
//! Packets dropped after acceptance (CoDel) count as sent. For a trace-driven link the router uses
//! the mean rate only, which limits the accuracy of its utilisation.

use headstart_startup::quick_start::Router;
use headstart_startup::quick_start::router::{self, RequestResult};
use headstart_startup::rcp::{self, FairRate};
use headstart_units::{Bytes, Time};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::element::{Element, Output, Packet, PushResult};
use crate::queueing_delays::QueueingDelays;

/// The parameters of a Quick-Start or RCP router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterPlan {
    /// Processes Quick-Start requests (RFC 4782).
    QuickStart(router::Params),
    /// Stamps RCP's fair rate.
    Rcp(rcp::Params),
}

impl RouterPlan {
    /// A router before its first packet.
    #[must_use]
    pub fn part(self) -> Part {
        match self {
            Self::QuickStart(params) => Part::QuickStart(Box::new(Router::new(params))),
            Self::Rcp(params) => Part::Rcp(FairRate::new(params)),
        }
    }
}

/// A Quick-Start or RCP router, with its state.
#[derive(Clone, Debug)]
pub enum Part {
    /// Processes Quick-Start requests (RFC 4782).
    QuickStart(Box<Router>),
    /// Stamps its fair rate.
    Rcp(FairRate),
}

/// A link `L` behind a Quick-Start or RCP router.
#[derive(Debug)]
pub struct RoutedLink<L> {
    part: Part,
    link: L,
    random: Xoshiro256PlusPlus,
}

impl<L> RoutedLink<L> {
    /// A router before `link`; `seed` is for the nonces of lowered requests.
    #[must_use]
    pub fn new(part: Part, link: L, seed: u64) -> Self {
        Self { part, link, random: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// The router's state, for its counters.
    #[must_use]
    pub fn part(&self) -> &Part {
        &self.part
    }
}

impl<P: Packet, L: Element<P>> Element<P> for RoutedLink<L> {
    fn push(&mut self, now: Time, mut packet: P) -> PushResult<P> {
        let (size, flow) = (packet.size(), packet.flow_key());
        match &mut self.part {
            Part::QuickStart(router) => {
                let host = packet.host_key();
                if let Some(mut request) = packet.request() {
                    let random = self.random.next_u32();
                    let verdict = router.on_request(now, &mut request, flow, host, random);
                    packet.set_request((verdict != RequestResult::Delete).then_some(request));
                }
            }
            Part::Rcp(router) => {
                let rtt = packet.rate_field_rtt();
                let rate = router.on_arrival(now, size, rtt.unwrap_or_default());
                if rtt.is_some() {
                    packet.stamp(rate);
                }
            }
        }
        packet.forward();
        let fate = self.link.push(now, packet);
        if matches!(fate, PushResult::Accepted) {
            match &mut self.part {
                Part::QuickStart(router) => router.on_packet(now, size, flow),
                Part::Rcp(router) => router.on_taken(now, size),
            }
        }
        fate
    }

    fn pop(&mut self, now: Time) -> Option<Output<P>> {
        self.link.pop(now)
    }

    fn next_at(&self) -> Time {
        self.link.next_at()
    }

    fn queue(&mut self, now: Time) -> (u64, Bytes) {
        self.link.queue(now)
    }

    fn queueing_delays(&mut self) -> Option<&mut Option<QueueingDelays>> {
        self.link.queueing_delays()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::testing::{Numbered, drain, packet};
    use crate::{Limit, Link};
    use headstart_startup::quick_start::router::{Algorithm, Denial, Params};
    use headstart_startup::quick_start::{Nonce, Request, SentRequest};
    use headstart_units::{Rate, Ratio, Span};

    const RATE: Rate = Rate::from_mbit_per_sec(12);

    /// A packet with a Quick-Start request, or to be stamped.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Asking {
        packet: Numbered,
        request: Option<Request>,
        stamp: Option<Rate>,
    }

    impl Packet for Asking {
        fn size(&self) -> Bytes {
            self.packet.size
        }
        fn is_ecn_capable(&self) -> bool {
            false
        }
        fn mark_congestion_experienced(&mut self) {}
        fn request(&self) -> Option<Request> {
            self.request
        }
        fn set_request(&mut self, request: Option<Request>) {
            self.request = request;
        }
        fn rate_field_rtt(&self) -> Option<Span> {
            self.stamp.map(|_| Span::from_millis(20))
        }
        fn stamp(&mut self, rate: Rate) {
            self.stamp = self.stamp.map(|stamped| stamped.min(rate));
        }
    }

    fn asking(kbit: u64) -> Asking {
        let (_, request) = SentRequest::new(Rate::from_bits_per_sec(kbit * 1000), 64, 9, Nonce::new(7));
        Asking { packet: packet(0), request: Some(request), stamp: None }
    }

    fn link<P: Packet>() -> Link<P> {
        Link::new(RATE, Span::from_millis(10), Limit::NONE)
    }

    fn target(denial: Denial, percent: u32) -> Part {
        let algorithm = Algorithm::Target { threshold: Ratio::percent(percent) };
        Part::QuickStart(Box::new(Router::new(Params { algorithm, denial, ..Params::new(RATE) })))
    }

    fn through(part: Part, packet: Asking) -> Asking {
        let mut element = RoutedLink::new(part, link(), 1);
        assert_eq!(element.push(Time::ZERO, packet), PushResult::Accepted);
        let Some(Output::Delivered(out)) = element.pop(element.next_at()) else { panic!("it comes out") };
        out
    }

    #[test]
    fn requests_are_lowered_zeroed_deleted_or_left_alone_on_their_way() {
        let granted = through(target(Denial::Zero, 90), asking(20_480)).request.expect("still there");
        assert_eq!(
            (granted.rate.as_bits_per_sec(), granted.ttl),
            (10_240_000, 8),
            "90 % of 12 Mbit/s, in four bits"
        );
        let zeroed = through(target(Denial::Zero, 0), asking(20_480)).request.expect("still there");
        assert_eq!((zeroed.rate, zeroed.ttl), (Rate::ZERO, 0));
        assert_eq!(through(target(Denial::Delete, 0), asking(20_480)).request, None);
        assert_eq!(through(target(Denial::Ignore, 0), asking(20_480)), asking(20_480));
    }

    #[test]
    fn rcp_stamps_packets_with_a_rate_field_and_never_raises_it() {
        let part = || Part::Rcp(FairRate::new(rcp::Params::new(RATE)));
        let with = |stamp| Asking { packet: packet(0), request: None, stamp };
        assert_eq!(through(part(), with(Some(Rate::MAX))).stamp, Some(RATE));
        let less = Rate::from_mbit_per_sec(1);
        assert_eq!(through(part(), with(Some(less))).stamp, Some(less));
        assert_eq!(through(part(), with(None)).stamp, None);
    }

    /// A packet per millisecond is all the link can carry, so use is measured as full.
    #[test]
    fn the_router_sees_what_its_link_carries() {
        let mut element = RoutedLink::new(target(Denial::Zero, 90), link(), 1);
        for n in 0..600 {
            let plain = Asking { packet: packet(n), request: None, stamp: None };
            assert_eq!(element.push(Time::from_millis(n), plain), PushResult::Accepted);
        }
        let full = element.push(Time::from_millis(600), asking(80));
        assert_eq!(full, PushResult::Accepted);
        let Part::QuickStart(router) = &mut element.part else { panic!("as built") };
        assert_eq!((router.counts().requests, router.counts().approved), (1, 0));
        assert_eq!(router.utilisation(Time::from_millis(600)), 1_000_000_000);
    }

    /// A packet without a request crosses it as the plain link.
    #[test]
    fn packets_without_an_option_see_a_plain_link() {
        let mut plain = link();
        let mut routed = RoutedLink::new(target(Denial::Zero, 90), link(), 1);
        for n in 0..50 {
            let now = Time::from_nanos(n * 700_000);
            assert_eq!(plain.push(now, packet(n)), routed.push(now, packet(n)));
            assert_eq!(plain.queue(now), routed.queue(now));
        }
        assert_eq!(drain(&mut plain), drain(&mut routed));
    }
}
