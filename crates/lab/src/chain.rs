//! The set-up of the Quick-Start paper: three routers in a chain, hosts at either end.
//!
//! Source: Quick-Start §5. Two links of the same rate, each with a quarter of the setup's round trip as its one-way delay (20 ms of 80);
//! segments of 1460 bytes and headers of 40; routers of one kind before all four links. Three studies run on it:
//!
//! | module | what runs |
//! |---|---|
//! | [`web`] | web sessions, with half as many the other way (Figures 3, 5, 6 and 9 to 13) |
//! | [`transfer`] | one transfer, with or without a burst that meets its flight (Figures 1, 2 and 4) |
//! | [`attack`] | small transfers, and requests that no connection stands behind (§8) |
//!
//! A request for exactly the rate of an object needs the round-trip time. The paper's "ideal (even if unrealistic)" request
//! knows it, so each class of hosts has a group of its own whose sender assumes the class' true round trip. Senders that always
//! ask for the same are not told how large their object is: they would not ask for one that fits into the initial window.

pub mod attack;
pub mod transfer;
pub mod web;

use headstart_net::AnyElement;
use headstart_net::routed_link::Part;
use headstart_sim::{Access, Chain, ChainLink, ChainSpec, Group, Path, Seed, TcpConfig};
use headstart_startup::base;
use headstart_startup::catalogue::Entry;
use headstart_startup::quick_start::{Amount, Router};
use headstart_startup::scheme::{QuickStart, Scheme, quick_start};
use headstart_units::{Bytes, Span};

use crate::options::BaseName;
use crate::setup::Setup;

/// Payload of a segment (Quick-Start §5).
pub const MSS: Bytes = Bytes::new(1460);
/// IP and TCP headers.
pub const HEADER: Bytes = Bytes::new(40);
/// Links of the chain, and one-way delays that make up its round trip.
const LINKS: usize = 2;
const DELAYS: u64 = 2 * LINKS as u64;

/// The chain with these hosts on the left and on the right.
#[must_use]
pub fn spec(setup: &Setup, forward: Vec<Access>, backward: Vec<Access>) -> ChainSpec {
    let (rate, rtt) = (setup.path.rate, setup.rtt());
    let limit = setup.path.buffer.limit(rate, rtt);
    ChainSpec { links: vec![ChainLink { rate, delay: rtt / DELAYS, limit }; LINKS], forward, backward }
}

/// Builds it with the setup's routers.
#[must_use]
pub fn build(setup: &Setup, spec: &ChainSpec, seed: Seed) -> Chain {
    let options = &setup.path;
    spec.build(|rate| options.routing.part(options.routers, rate), seed.child("path"))
}

/// The paper's TCP, as far as the setup's options do not say otherwise.
#[must_use]
pub fn tcp(setup: &Setup) -> TcpConfig {
    TcpConfig { mss: MSS, header: HEADER, syn: HEADER, ..setup.tcp() }
}

/// Senders of a class of hosts with this round-trip time.
#[must_use]
pub fn group(setup: &Setup, entry: &Entry, rtt: Span) -> Group {
    let scheme = match entry.scheme() {
        Scheme::QuickStart(start) => {
            let params = quick_start::Params { assumed_rtt: rtt, ..*start.params() };
            Scheme::QuickStart(QuickStart::new(params))
        }
        other => other,
    };
    let base = match setup.transport.base {
        BaseName::Cubic => base::Kind::Cubic,
        BaseName::Reno => base::Kind::Reno,
    };
    Group { scheme, base, tcp: tcp(setup), hint: None, history_capacity: 0 }
}

/// Whether a scheme's senders are told how large their object is.
#[must_use]
pub fn is_told_size(entry: &Entry) -> bool {
    match entry.scheme() {
        Scheme::QuickStart(start) => !matches!(start.params().amount, Amount::Fixed(_)),
        _ => true,
    }
}

/// The router before an element, if it answers Quick-Start requests.
pub fn router(path: &mut Path, element: u16) -> Option<&Router> {
    let AnyElement::RoutedLink(link) = path.element_mut(element) else { return None };
    match link.part() {
        Part::QuickStart(router) => Some(router),
        Part::Rcp(_) => None,
    }
}
