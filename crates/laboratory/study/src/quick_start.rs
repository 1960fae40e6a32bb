//! The set-up of the Quick-Start paper: three routers in a chain, hosts at either end.
//!
//! Source: Quick-Start §5. Two links have the same rate, each with a quarter of the setup's round
//! trip as its one-way delay (20 ms of 80). Segments have 1460 bytes and headers 40. Routers of one
//! kind are before all four links. Three studies run on it:
//!
//! | module | content |
//! |---|---|
//! | [`web`] | web sessions, and half as many in reverse (Figures 3, 5, 6 and 9 to 13) |
//! | [`transfer`] | one transfer, with or without a burst into its flight (Figures 1, 2 and 4) |
//! | [`attack`] | small transfers, and requests without a connection (§8) |
//!
//! A request for exactly the rate of an object needs the round-trip time. The paper's "ideal (even
//! if unrealistic)" request has it, so each class of hosts has a group of its own whose sender
//! assumes the class' true round trip. Senders that always request the same rate do not receive the
//! size of their object: they would not request one that fits into the initial window.

pub mod attack;
pub mod transfer;
pub mod web;

use headstart_net::AnyElement;
use headstart_net::routed_link::Part;
use headstart_sim::{Access, Chain, ChainLink, ChainSpec, Group, Path, Seed, TcpConfig};
use headstart_startup::catalogue::Entry;
use headstart_startup::quick_start::Router;
use headstart_startup::{Scheme, Startup as _};
use headstart_units::{Bytes, Span};

use crate::options::IpOptions;
use crate::setup::Setup;

/// Payload of a segment (Quick-Start §5).
pub const MSS: Bytes = Bytes::new(1460);
/// IP and TCP headers.
pub const HEADER: Bytes = Bytes::new(40);
/// Links of the chain, and number of one-way delays in its round trip.
const LINKS: usize = 2;
const DELAYS: u64 = 2 * LINKS as u64;

/// The chain with these hosts on the left and on the right.
#[must_use]
pub fn spec(setup: &Setup, forward: Vec<Access>, backward: Vec<Access>) -> ChainSpec {
    let (rate, rtt) = (setup.path.rate, setup.rtt());
    let limit = setup.path.buffer.limit(rate, rtt);
    let link = ChainLink { rate, delay: rtt / DELAYS, limit, discipline: setup.path.queue };
    let option_filter = setup.path.ip_options.map(IpOptions::params);
    ChainSpec { links: vec![link; LINKS], forward, backward, option_filter }
}

/// Builds it with the setup's routers.
#[must_use]
pub fn build(setup: &Setup, spec: &ChainSpec, seed: Seed) -> Chain {
    let options = &setup.path;
    spec.build(|rate| options.routing.router(options.routers, rate), seed.child("path"))
}

/// The paper's TCP, except where the setup's options override it.
#[must_use]
pub fn tcp(setup: &Setup) -> TcpConfig {
    TcpConfig { mss: MSS, header: HEADER, syn: HEADER, ..setup.tcp() }
}

/// Senders of a class of hosts with this round-trip time.
#[must_use]
pub fn group(setup: &Setup, entry: &Entry, rtt: Span) -> Group {
    let scheme = match entry.scheme() {
        Scheme::QuickStart(scheme) => Scheme::QuickStart(scheme.assuming_rtt(rtt)),
        other => other,
    };
    Group { base: setup.transport.base, ..Group::new(scheme, tcp(setup)) }
}

/// True if a scheme's senders have the size of their object.
#[must_use]
pub fn knows_flow_size(entry: &Entry) -> bool {
    !entry.scheme().requirements().fixed_request
}

/// The router before an element, if it answers Quick-Start requests.
pub fn router(path: &mut Path, element: u16) -> Option<&Router> {
    let AnyElement::RoutedLink(link) = path.element_mut(element) else { return None };
    match link.part() {
        Part::QuickStart(router) => Some(router),
        Part::Rcp(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::catalogue as studies;
    use crate::schemes;
    use crate::settings::prepared;
    use crate::setup::SchemeMix;
    use crate::study::Numbers;

    const COMMON: &str = r#"
        path = { rate = "10 Mbit/s", rtt = "80 ms", buffer = "150 packets", routers = "extreme", router-rates = "exact" }
        transport = { receive-window = "14.6 MB", base = "reno" }
    "#;

    fn run(study: &str, scheme: &str, rest: &str) -> Numbers {
        let tested = schemes::find(scheme).expect("it is there");
        prepared(study, &format!("{COMMON}{rest}"))
            .run(SchemeMix { tested, beside: None }, 1)
            .expect("it runs")
    }

    /// The sender of the Quick-Start paper (§5).
    const EXACT: &str = "quick-start(initial-window=3,header=40B,granularity=exact)";

    const WEB: &str =
        "workload = { web-sessions = 4, web-object = 60 }\nrun = { duration = \"20 s\", drain = \"0 s\" }";
    const TRANSFER: &str = "workload = { size = \"146 kB\" }\nrun = { duration = \"20 s\" }";
    const ATTACK: &str = "workload = { size = \"29200 B\", load = \"10 %\", attack = \"framing\", attack-requests = 30 }\nrun = { duration = \"30 s\" }";

    /// Every declared number is given (each run checks that there is no other), and the same run
    /// gives the same numbers.
    #[test]
    fn studies_report_all_their_measures_and_are_deterministic() {
        for (study, rest) in
            [("quick-start-web", WEB), ("quick-start-transfer", TRANSFER), ("quick-start-attack", ATTACK)]
        {
            let numbers = run(study, EXACT, rest);
            let found: BTreeSet<&str> = numbers.keys().map(String::as_str).collect();
            for declared in studies::find(study).expect("a study").declared {
                for (prefix, measure) in declared
                    .prefixes
                    .iter()
                    .flat_map(|prefix| declared.measures.iter().map(move |one| (prefix, one)))
                {
                    let name = format!("{prefix}{}", measure.name);
                    // With few connections, none may be large.
                    let may_lack = ["large", "granted"].contains(&name.as_str()) || name.ends_with("/...");
                    assert!(found.contains(name.as_str()) || may_lack, "{study}: {name}");
                }
            }
            assert_eq!(run(study, EXACT, rest), numbers, "{study}");
        }
    }

    /// Quick-Start §6.2: a sender with a known size requests its rate, and sends no request if the
    /// size fits into the initial window.
    #[test]
    fn exact_requests_are_fewer_than_connections_and_fixed_ones_are_not() {
        let exact = run("quick-start-web", EXACT, WEB);
        let fixed = run(
            "quick-start-web",
            "quick-start(amount=2MB/s,granularity=exact,header=40B,initial-window=3)",
            WEB,
        );
        let tcp = run("quick-start-web", "iw3", WEB);
        assert!(exact["requests"] < 0.3 * exact["connections"] && exact["approved"] > 80.0, "{exact:?}");
        assert!(fixed["requests"] >= fixed["connections"] && fixed["approved"] < 40.0);
        assert_eq!((tcp["requests"], tcp["quick-share"]), (0.0, 0.0));
    }

    #[test]
    fn a_framed_host_loses_grants_that_others_keep() {
        let framed = run("quick-start-attack", EXACT, ATTACK);
        assert!(framed["victim.granted"] < 0.3 * framed["before.granted"], "{framed:?}");
        assert!(framed["during.granted"] > framed["victim.granted"]);
        let quiet = run("quick-start-attack", EXACT, &ATTACK.replace("framing", "none"));
        assert!(quiet["victim.granted"] > 0.7 * quiet["before.granted"], "{quiet:?}");
    }
}
