//! The search for gateways and their descriptions (UDA §1.3).

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use super::error::Error;
use headstart_host::Deadline;

const TARGETS: [&str; 3] = [
    "urn:schemas-upnp-org:device:InternetGatewayDevice:1",
    "urn:schemas-upnp-org:device:InternetGatewayDevice:2",
    "urn:dslforum-org:device:InternetGatewayDevice:1",
];
/// Limit on datagrams; a gateway sends one for each target, and may repeat them.
const MAX_DATAGRAMS: usize = 64;
/// UDA §1.3.3 gives no limit; real answers have 300 bytes.
const LONGEST: usize = 2048;

/// URL of a description, and the host that sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Location {
    pub gateway: IpAddr,
    pub url: String,
}

/// A search that has been sent.
#[derive(Debug)]
pub(super) struct Search {
    socket: UdpSocket,
    gateway: Option<IpAddr>,
    seen: BTreeSet<String>,
    strangers: usize,
    datagrams: usize,
}

impl Search {
    /// Sends it.
    pub fn begin(to: &[SocketAddr], gateway: Option<IpAddr>) -> Result<Self, Error> {
        let system = |error: std::io::Error| Error::System { reason: error.to_string() };
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(system)?;
        // UDA §1.3.2: "should default to 2".
        socket.set_multicast_ttl_v4(2).map_err(system)?;
        let mut sent = Err(Error::System { reason: "no address for the search request".into() });
        for address in to {
            for target in TARGETS {
                match socket.send_to(search(*address, target).as_bytes(), address) {
                    Ok(_) => sent = Ok(()),
                    // One of several may be unreachable.
                    Err(error) => sent = sent.or(Err(system(error))),
                }
            }
        }
        sent?;
        Ok(Self { socket, gateway, seen: BTreeSet::new(), strangers: 0, datagrams: 0 })
    }

    /// The next new answer; `None` when time is up.
    pub fn next(&mut self, deadline: Deadline) -> Result<Option<Location>, Error> {
        let mut buffer = [0; LONGEST];
        while self.datagrams < MAX_DATAGRAMS {
            let Some(left) = deadline.left() else { return Ok(None) };
            let system = |error: std::io::Error| Error::System { reason: error.to_string() };
            self.socket.set_read_timeout(Some(left)).map_err(system)?;
            let (length, from) = match self.socket.recv_from(&mut buffer) {
                Ok(received) => received,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Ok(None);
                }
                // A closed port at one of the addresses (ICMP), or a signal.
                Err(error)
                    if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::Interrupted) =>
                {
                    continue;
                }
                Err(error) => return Err(system(error)),
            };
            self.datagrams += 1;
            let gateway = from.ip().to_canonical();
            if !self.is_believed(gateway) {
                self.strangers += 1;
                continue;
            }
            if let Some(url) = location(&buffer[..length])?
                && self.seen.insert(url.clone())
            {
                return Ok(Some(Location { gateway, url }));
            }
        }
        Ok(None)
    }

    /// The error if no answer arrived.
    pub fn no_answer(&self, waited: Duration) -> Error {
        match self.strangers {
            0 => Error::NoAnswer { waited },
            count => Error::OtherHosts { count },
        }
    }

    fn is_believed(&self, address: IpAddr) -> bool {
        match self.gateway {
            Some(gateway) => address == gateway.to_canonical(),
            None => is_private(address),
        }
    }
}

fn search(address: SocketAddr, target: &str) -> String {
    // UDA §1.3.2 and §1.3.3: MX belongs to the multicast search.
    let wait = if address.ip().is_multicast() { "MX: 1\r\n" } else { "" };
    format!("M-SEARCH * HTTP/1.1\r\nHOST: {address}\r\nMAN: \"ssdp:discover\"\r\n{wait}ST: {target}\r\n\r\n")
}

/// The description's URL; `None` for datagrams that do not answer the search, which are frequent.
fn location(datagram: &[u8]) -> Result<Option<String>, Error> {
    let Ok(text) = core::str::from_utf8(datagram) else {
        return Err(Error::Discovery { reason: "is no text" });
    };
    let mut lines = text.lines();
    let is_success = lines.next().is_some_and(|line| {
        let mut words = line.split_ascii_whitespace();
        words.next().is_some_and(|version| version.starts_with("HTTP/1.")) && words.next() == Some("200")
    });
    if !is_success {
        return Ok(None);
    }
    let header = |wanted: &str| {
        let mut named = lines.clone().filter_map(|line| line.split_once(':'));
        named
            .find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value.trim().to_owned())
    };
    if !header("ST").is_some_and(|target| TARGETS.contains(&target.as_str())) {
        return Ok(None);
    }
    header("LOCATION").map(Some).ok_or(Error::Discovery { reason: "has no LOCATION" })
}

/// True for an address of this network, or one around it (RFC 1918, RFC 3927, RFC 4193, RFC 6598).
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => {
            let [first, second, ..] = four.octets();
            let is_shared = first == 100 && (64..128).contains(&second);
            four.is_private() || four.is_loopback() || four.is_link_local() || is_shared
        }
        IpAddr::V6(six) => six == Ipv6Addr::LOCALHOST || six.is_unique_local() || six.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn answer(first: &str, headers: &str) -> Result<Option<String>, Error> {
        location(format!("{first}\r\n{headers}\r\n\r\n").as_bytes())
    }

    #[test]
    fn only_a_search_response_yields_a_location() {
        let target = format!("st:{}", TARGETS[0]);
        let found = answer(
            "HTTP/1.1 200 OK",
            &format!("Cache-Control: max-age=1800\r\nlocation :  http://192.0.2.1/d \r\n{target}"),
        );
        assert_eq!(found, Ok(Some("http://192.0.2.1/d".into())), "names know no case, values no blanks");
        assert_eq!(
            answer("NOTIFY * HTTP/1.1", &format!("LOCATION: http://192.0.2.1/\r\n{target}")),
            Ok(None)
        );
        assert_eq!(answer("HTTP/1.1 404 No", &format!("LOCATION: http://192.0.2.1/\r\n{target}")), Ok(None));
        assert_eq!(answer("HTTP/1.1 200 OK", "LOCATION: http://192.0.2.1/\r\nST: upnp:rootdevice"), Ok(None));
        assert_eq!(answer("HTTP/1.1 200 OK", &target), Err(Error::Discovery { reason: "has no LOCATION" }));
        assert_eq!(location(&[0xff, 0xfe]), Err(Error::Discovery { reason: "is no text" }));
    }

    #[test]
    fn private_addresses_are_those_of_the_standards() {
        #[rustfmt::skip]
        let rows = [
            ("10.1.2.3", true), ("172.16.0.1", true), ("172.32.0.1", false), ("192.168.178.1", true), ("169.254.1.1", true),
            ("100.64.0.1", true), ("100.128.0.1", false), ("127.0.0.1", true), ("8.8.8.8", false),
            ("fe80::1", true), ("fd00::1", true), ("2001:db8::1", false), ("::1", true),
        ];
        for (address, expected) in rows {
            assert_eq!(is_private(address.parse().expect("an address")), expected, "{address}");
        }
    }

    proptest! {
        #[test]
        fn no_datagram_causes_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = location(&bytes);
        }
    }
}
