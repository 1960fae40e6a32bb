//! Networks of peers, whose paths often have the same access link.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

/// A network: an address without host bits, and the length of its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network {
    address: IpAddr,
    length: u8,
}

impl Network {
    /// The network of an address with a prefix of this length, of all bits at most.
    #[must_use]
    pub fn of(address: IpAddr, length: u8) -> Self {
        let masked = match address {
            IpAddr::V4(it) => {
                let mask = u32::MAX.checked_shl(u32::BITS.saturating_sub(length.into())).unwrap_or(0);
                Ipv4Addr::from_bits(it.to_bits() & mask).into()
            }
            IpAddr::V6(it) => {
                let mask = u128::MAX.checked_shl(u128::BITS.saturating_sub(length.into())).unwrap_or(0);
                Ipv6Addr::from_bits(it.to_bits() & mask).into()
            }
        };
        Self { address: masked, length }
    }

    /// The /24 of an IPv4 address, the /48 of an IPv6 one: as a site usually has.
    #[must_use]
    pub fn of_site(peer: IpAddr) -> Self {
        Self::of(peer, if peer.is_ipv4() { 24 } else { 48 })
    }

    /// The first address of the network.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl FromStr for Network {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (address, length) = text.split_once('/')?;
            let (address, length): (IpAddr, u8) = (address.parse().ok()?, length.parse().ok()?);
            let network = Self::of(address, length);
            let longest = if address.is_ipv4() { 32 } else { 128 };
            (length <= longest && network.address == address).then_some(network)
        };
        let shown = || text.chars().take(SHOWN).collect::<String>();
        let expected = "a network without host bits, such as `203.0.113.0/25`";
        read().ok_or_else(|| format!("found `{}`, expected {expected}", shown()))
    }
}

/// Letters of a wrong line in a message.
const SHOWN: usize = 60;

/// The division of peers into networks: a table of the operator's, where none has a peer its site.
#[derive(Clone, Debug, Default)]
pub struct Networks {
    own: Option<Arc<BTreeMap<u8, BTreeSet<Network>>>>,
}

impl Networks {
    /// The longest network of the table that has the peer; without a table its site.
    #[must_use]
    pub fn find(&self, peer: IpAddr) -> Option<Network> {
        let Some(own) = &self.own else { return Some(Network::of_site(peer)) };
        own.iter().rev().map(|(length, all)| (all, Network::of(peer, *length))).find_map(|(all, network)| {
            // Of the other family, the set has no network of that address.
            all.contains(&network).then_some(network)
        })
    }

    /// As [`Self::find`], and the site of a peer that no network of the table has.
    #[must_use]
    pub fn find_or_site(&self, peer: IpAddr) -> Network {
        self.find(peer).unwrap_or_else(|| Network::of_site(peer))
    }
}

/// A network to a line. Empty lines, and those that begin with `#`, are skipped.
impl FromStr for Networks {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let mut own = BTreeMap::<u8, BTreeSet<Network>>::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let network: Network = line.parse().map_err(|error| format!("line {number}: {error}"))?;
            own.entry(network.length).or_default().insert(network);
        }
        if own.is_empty() {
            return Err("found no network, expected one to a line".to_string());
        }
        Ok(Self { own: Some(Arc::new(own)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn peers_of_a_site_have_one_network() {
        for (address, expected) in [
            ("192.0.2.77", "192.0.2.0/24"),
            ("2001:db8:1:2:3::4", "2001:db8:1::/48"),
            ("255.255.255.255", "255.255.255.0/24"),
        ] {
            assert_eq!(Networks::default().find(peer(address)).expect("one").to_string(), expected);
        }
    }

    #[test]
    fn the_longest_network_of_a_table_has_the_peer_and_wrong_lines_are_refused() {
        let own = "# ours\n203.0.113.0/25\n203.0.0.0/16\n\n 2001:db8:1::/48 \n0.0.0.0/1\n";
        let networks: Networks = own.parse().expect("a table");
        for (address, expected) in [
            ("203.0.113.1", Some("203.0.113.0/25")),
            ("203.0.113.200", Some("203.0.0.0/16")),
            ("2001:db8:1:ffff::7", Some("2001:db8:1::/48")),
            ("9.9.9.9", Some("0.0.0.0/1")),
            ("198.51.100.1", None),
            ("2001:db8:2::1", None),
        ] {
            let found = networks.find(peer(address)).map(|network| network.to_string());
            assert_eq!(found.as_deref(), expected, "{address}");
        }
        assert_eq!(networks.find_or_site(peer("198.51.100.1")).to_string(), "198.51.100.0/24");
        for wrong in
            ["203.0.113.1/25", "192.0.2.0", "192.0.2.0/33", "2001:db8::/129", "net/8", "192.0.2.0/-1", "é/1"]
        {
            let refused = format!("192.0.2.0/24\n{wrong}\n").parse::<Networks>().expect_err(wrong);
            assert!(refused.starts_with(&format!("line 2: found `{wrong}`")), "{refused}");
        }
        assert!("# nothing\n".parse::<Networks>().is_err());
        assert!("2001:db8::1/128\n0.0.0.0/0\n::/0".parse::<Networks>().is_ok());
    }
}
