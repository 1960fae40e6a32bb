//! Attacks on Quick-Start routers by requests alone, without connections.
//!
//! Source: Quick-Start §8.
//!
//! | attack | requests | source address |
//! |---|---|---|
//! | flood | 80 kbit/s each | made up |
//! | one host | 20 MB/s each | the attacker's own |
//! | spoofed | 20 MB/s each | made up |
//! | framing | 20 MB/s each | that of one honest host, the victim |

use clap::ValueEnum;
use headstart_sim::workload::spoof::{Source, SpoofSpec};
use headstart_units::{Bytes, Rate, Span, Time};

/// Rates of the attack's small and large requests.
const SMALL: Rate = Rate::from_bits_per_sec(80_000);
const LARGE: Rate = Rate::from_bytes_per_sec(20_000_000);
/// Source address of the framing attack, an honest host's; and an address that none of them has.
pub(crate) const VICTIM: u32 = 0;
const ATTACKER: u32 = 1 << 30;

/// Attacks by requests alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AttackName {
    /// None.
    None,
    /// Small requests from spoofed addresses: work for the router.
    Flood,
    /// Large requests from the attacker's own address.
    OneHost,
    /// Large requests from spoofed addresses.
    Spoofed,
    /// Large requests that bear an honest host's address.
    Framing,
}

impl AttackName {
    /// So many of its requests a second, each of this `size` on the link.
    pub(crate) fn spoof(self, per_second: u32, from: Time, until: Time, size: Bytes) -> Option<SpoofSpec> {
        let (source, rate) = match self {
            Self::None => return None,
            Self::Flood => (Source::Random, SMALL),
            Self::OneHost => (Source::One(ATTACKER), LARGE),
            Self::Spoofed => (Source::Random, LARGE),
            Self::Framing => (Source::One(VICTIM), LARGE),
        };
        let gap = Span::from_nanos(1_000_000_000 / u64::from(per_second));
        Some(SpoofSpec { from, until, gap, rate, source, class: 0, size })
    }
}
