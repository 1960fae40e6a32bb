//! Interpretation of a gateway's rate.

use headstart_startup::prior::Access;
use headstart_units::Rate;

use super::Link;
use crate::estimate::{Estimate, Meaning, line_share};

/// Speeds of Ethernet ports in Mbit/s. A rate that equals one of them is most likely the port's.
const PORTS: [u64; 9] = [10, 100, 1_000, 2_500, 5_000, 10_000, 25_000, 40_000, 100_000];

/// A gateway's line as an estimate.
#[must_use]
pub fn estimate_of(link: &Link) -> Estimate {
    let access = link.properties.access;
    let reported = link.properties.downstream;
    let is_port = PORTS.into_iter().any(|speed| reported == Rate::from_mbit_per_sec(speed));
    let is_bound = is_port || access == Access::Ethernet;
    // Nor does a port's speed identify the technology behind it.
    let access = if is_bound { Access::Ethernet } else { access };
    let what = if is_bound { "port speed" } else { "line rate" };
    Estimate {
        reported,
        expected: reported * line_share(access),
        access,
        age: None,
        meaning: if is_bound { Meaning::Bound } else { Meaning::Line },
        detail: format!("{what} reported by {}", link.gateway),
    }
}
