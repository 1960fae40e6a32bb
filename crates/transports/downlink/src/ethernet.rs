//! Speed of the Ethernet link.
//!
//! BS §3.1: access speeds "are usually inferior to typical gigabit Ethernet that is deployed within
//! a home". So this is an upper bound and never an estimate of its own.

use headstart_startup::prior::Access;
use headstart_units::Rate;

use crate::estimate::{ETHERNET_SHARE, Estimate, Meaning, Unavailable, plausible};
use crate::machine::Machine;
use crate::network::{Kind, Network};

/// Speed of the default route's interface, as reported by its driver.
///
/// # Errors
/// If the interface is not Ethernet, is down, or its driver has no speed.
pub fn estimate(machine: &Machine, network: Option<&Network>) -> Result<Estimate, Unavailable> {
    let network = network.ok_or_else(|| Unavailable::Absent("there is no default route".into()))?;
    let name = &network.interface;
    if network.kind != Kind::Ethernet {
        return Err(Unavailable::Absent(format!("{name} is no wire")));
    }
    // The driver returns EINVAL while the link is down.
    let text = machine
        .read(format!("sys/class/net/{name}/speed"))
        .map_err(|_| Unavailable::Absent(format!("the driver of {name} reports no speed")))?;
    let megabits: i64 = text
        .trim()
        .parse()
        .map_err(|_| Unavailable::Refused(format!("the speed of {name} is not a number")))?;
    // -1 (SPEED_UNKNOWN), which some drivers print as unsigned.
    let Some(megabits) =
        u64::try_from(megabits).ok().filter(|speed| !matches!(speed, 0 | 65_535 | 4_294_967_295))
    else {
        return Err(Unavailable::Absent(format!("the driver of {name} does not know its speed")));
    };
    let reported = Rate::from_bits_per_sec(megabits.saturating_mul(1_000_000));
    let reported = plausible(reported).map_err(Unavailable::Refused)?;
    Ok(Estimate {
        reported,
        expected: reported * ETHERNET_SHARE,
        access: Access::Ethernet,
        age: None,
        meaning: Meaning::Bound,
        detail: format!("speed of {name}"),
    })
}
