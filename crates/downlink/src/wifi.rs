//! Bit rate of the Wi-Fi interface.
//!
//! BS §3.1: "Using the current modulation and coding scheme (MCS) index, an approximated PHY-rate
//! can be calculated", which the kernel does; it is read through nl80211 (generic netlink), which
//! needs no privilege. Of the two directions the one *from* the access point counts; some drivers
//! report only the other.
//!
//! # Limits
//!
//! It has never been run with a radio: the hosts of its development have none. Tests cover the
//! parsing of messages laid out according to the kernel's `nl80211.h`, and a kernel without radios.

mod messages;
mod netlink;

use std::time::Duration;

use headstart_startup::prior::Access;
use headstart_units::Rate;

use crate::estimate::{Estimate, Meaning, Unavailable, WIFI_SHARE, plausible, quoted};
use crate::machine::Machine;
use crate::network::{Kind, Network};

pub use netlink::Nl80211;

/// Queries Wi-Fi interfaces.
pub trait Radio {
    /// The connection of the interface with this index.
    ///
    /// # Errors
    /// The reason, in a few words.
    fn connection(&self, interface: u32, timeout: Duration) -> Result<Connection, String>;
}

/// State of a Wi-Fi connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// True for a client of an access point, false for an access point itself.
    pub is_client: bool,
    /// The network's name.
    pub ssid: Option<String>,
    /// The bit rate from the access point.
    pub received: Option<Rate>,
    /// The bit rate to the access point.
    pub sent: Option<Rate>,
}

/// The connection of the network's interface, if that is Wi-Fi.
///
/// # Errors
/// If it is not, or its driver does not answer.
pub fn connection(
    machine: &Machine,
    radio: &dyn Radio,
    network: Option<&Network>,
    timeout: Duration,
) -> Result<Connection, Unavailable> {
    let network = network.ok_or_else(|| Unavailable::Absent("there is no default route".into()))?;
    let name = &network.interface;
    if network.kind != Kind::Wifi {
        return Err(Unavailable::Absent(format!("{name} is no wireless interface")));
    }
    let index = machine.read(format!("sys/class/net/{name}/ifindex")).ok();
    let index = index.and_then(|text| text.trim().parse().ok());
    let index = index.ok_or_else(|| Unavailable::Failed(format!("{name} has no number")))?;
    radio.connection(index, timeout).map_err(Unavailable::Failed)
}

/// The bound that a connection's bit rate gives.
///
/// # Errors
/// If the interface is not a client, or has no rate.
pub fn estimate(connection: &Connection) -> Result<Estimate, Unavailable> {
    if !connection.is_client {
        return Err(Unavailable::Absent("the radio is no client of an access point".into()));
    }
    let (reported, direction) = match (connection.received, connection.sent) {
        (Some(rate), _) => (rate, "from"),
        (None, Some(rate)) => (rate, "to"),
        (None, None) => {
            return Err(Unavailable::Absent("the radio is not connected, or tells no bit rate".into()));
        }
    };
    let reported = plausible(reported).map_err(Unavailable::Refused)?;
    let ssid = connection.ssid.as_deref().map_or_else(|| "the access point".to_owned(), quoted);
    Ok(Estimate {
        reported,
        expected: reported * WIFI_SHARE,
        access: Access::Wifi,
        age: None,
        meaning: Meaning::Bound,
        detail: format!("bit rate {direction} {ssid}"),
    })
}
