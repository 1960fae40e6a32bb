//! The access line's rate from the home gateway, by UPnP IGD and TR-064.
//!
//! Sources: UPnP Device Architecture 1.1 (UDA: discovery §1, description §2, control §3); UPnP
//! WANCommonInterfaceConfig:1 (CIC: the action GetCommonLinkProperties §2.4.4); DSL Forum TR-064
//! (the same service under another name).
//!
//! ```text
//!  client                                    gateway
//!    | M-SEARCH (multicast, and to the gateway)  |
//!    |------------------------------------------>|     ssdp
//!    |            200 OK, LOCATION               |
//!    |<------------------------------------------|
//!    | GET description                           |     http, description
//!    |<=========================================>|
//!    | POST GetCommonLinkProperties              |     http, soap
//!    |<=========================================>|
//! ```
//!
//! Answers are untrusted:
//!
//! - Only the default gateway is accepted; if it is not known, only private addresses.
//! - Every URL must name the address that answered, as an address: no answer can name another host.
//! - Redirections are refused, proxies of the environment are not used.
//! - Sizes are capped (datagram 2 kB, header 16 kB, document 128 kB, 4096 nodes), as are the
//!   numbers of answers and services. XML with a document type, so with entities, is refused.
//! - One deadline covers everything.
//! - A rate that no line has, or that is the largest number of its type, is rejected. The speed of
//!   an Ethernet port is a bound: many gateways report their port's speed instead of the line's.
//!
//! # Deviations
//!
//! - UDA §1.3.2 specifies a wait of MX seconds. The first valid answer ends the wait.
//! - UDA §1.3.3 allows a search to be sent to one host; here both are sent, for some gateways
//!   answer only one of them.
//! - TR-064 requires a password for most of its services (RFC 7616): this is reported, and the
//!   gateway not used. UPnP IGD beside it needs none.

mod description;
mod error;
mod http;
mod rate;
mod soap;
mod ssdp;
mod xml;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

pub use error::Error;
pub use rate::estimate_of;
pub use soap::LinkProperties;

use headstart_host::Deadline;

/// Addresses to search, and time limit.
#[derive(Clone, Debug)]
pub struct Options {
    /// Destinations of the search.
    pub search: Vec<SocketAddr>,
    /// The only address accepted; `None` accepts any private address.
    pub gateway: Option<IpAddr>,
    /// Time limit for everything.
    pub timeout: Duration,
}

/// UDA §1.3.2.
const MULTICAST: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(239, 255, 255, 250)), PORT);
const PORT: u16 = 1900;

impl Options {
    /// The default gateway, if there is one, and the multicast address.
    #[must_use]
    pub fn new(gateway: Option<Ipv4Addr>, timeout: Duration) -> Self {
        let gateway = gateway.map(IpAddr::V4);
        let search =
            gateway.map(|address| SocketAddr::new(address, PORT)).into_iter().chain([MULTICAST]).collect();
        Self { search, gateway, timeout }
    }
}

/// A gateway's report of its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The gateway's address.
    pub gateway: IpAddr,
    /// The service that answered.
    pub service: String,
    /// The line's properties.
    pub properties: LinkProperties,
}

/// Descriptions fetched from one search.
const MAX_DESCRIPTIONS: usize = 4;
/// Services queried per description. A gateway with two lines has two.
const MAX_SERVICES: usize = 4;
/// Divisor of the time limit for the wait without any answer.
const WAIT_DIVISOR: u32 = 2;

/// Searches the gateway and queries its line. The first line that is up is the answer.
///
/// # Errors
/// If no valid answer arrives: the last reason.
pub fn query(options: &Options) -> Result<Link, Error> {
    let deadline = Deadline::after(options.timeout);
    let wait_until = deadline.or_after(options.timeout / WAIT_DIVISOR);
    let mut search = ssdp::Search::begin(&options.search, options.gateway)?;
    let mut last = None;
    for _ in 0..MAX_DESCRIPTIONS {
        match search.next(wait_until) {
            Ok(Some(location)) => match query_at(&location, deadline) {
                Ok(link) => return Ok(link),
                Err(error) => last = Some(error),
            },
            Ok(None) => break,
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| search.no_answer(options.timeout / WAIT_DIVISOR)))
}

fn query_at(location: &ssdp::Location, deadline: Deadline) -> Result<Link, Error> {
    let client = http::Client::new(location.gateway, deadline);
    let base = client.checked(&location.url)?;
    let services = description::services(&client.get(&base)?, &base)?;
    let mut last = Error::NoService;
    for service in services.into_iter().take(MAX_SERVICES) {
        let answered = client
            .checked(&service.control)
            .and_then(|control| {
                client.call(&control, &service.kind, soap::ACTION, &soap::request(&service.kind))
            })
            .and_then(|answer| soap::properties(&answer));
        match answered {
            Ok(properties) if properties.is_up => {
                let gateway = location.gateway;
                return Ok(Link { gateway, service: service.kind, properties });
            }
            Ok(_) => last = Error::Down,
            Err(error) => last = error,
        }
    }
    Err(last)
}
