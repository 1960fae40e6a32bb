//! Identity of a network.
//!
//! The same interface connects to many networks. A network is recognised by its gateway: of all
//! properties visible without privileges, the gateway's hardware address distinguishes networks
//! best. Without it, the identity is the interface and the gateway's address, which many homes
//! share.

use std::net::Ipv4Addr;

use crate::machine::Machine;

/// The kind of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ethernet.
    Ethernet,
    /// A radio of the IEEE 802.11 family.
    Wifi,
    /// A mobile modem.
    Mobile,
    /// A tunnel, a bridge, one end of a virtual pair: no physical link.
    Virtual,
}

/// The network behind the default route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Name of the interface.
    pub interface: String,
    /// Kind of network.
    pub kind: Kind,
    /// The gateway's address.
    pub gateway: Option<Ipv4Addr>,
    /// The gateway's hardware address.
    pub hardware_address: Option<String>,
}

impl Network {
    /// Reads the system's state; `None` without a default route.
    #[must_use]
    pub fn find(machine: &Machine) -> Option<Self> {
        let route = machine.default_route()?;
        let hardware_address =
            route.gateway.and_then(|gateway| machine.hardware_address(gateway, &route.interface));
        let kind = kind(machine, &route.interface);
        Some(Self { interface: route.interface, kind, gateway: route.gateway, hardware_address })
    }

    /// Key under which its observations are stored.
    #[must_use]
    pub fn key(&self) -> String {
        match (&self.hardware_address, self.gateway) {
            (Some(hardware), _) => format!("gateway {hardware}"),
            (None, Some(gateway)) => format!("{} via {gateway}", self.interface),
            (None, None) => self.interface.clone(),
        }
    }
}

/// `ARPHRD_ETHER`.
const ETHERNET: &str = "1";

fn kind(machine: &Machine, interface: &str) -> Kind {
    let at = |file: &str| format!("sys/class/net/{interface}/{file}");
    let is = |file: &str, expected: &str| machine.read(at(file)).is_ok_and(|text| text.trim() == expected);
    let mobile =
        || machine.read(at("uevent")).is_ok_and(|text| text.lines().any(|line| line == "DEVTYPE=wwan"));
    if machine.has(at("phy80211")) || machine.has(at("wireless")) {
        Kind::Wifi
    } else if mobile() {
        Kind::Mobile
    } else if machine.has(at("device")) && is("type", ETHERNET) {
        Kind::Ethernet
    } else {
        Kind::Virtual
    }
}
