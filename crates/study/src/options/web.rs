//! What the experiments of the Quick-Start paper are told beyond what a race is (for `reproduce`).

use clap::{Args, ValueEnum};

/// Web sessions over a chain of routers, and what disturbs them.
#[derive(Args, Clone, Debug)]
pub struct WebOptions {
    /// Web sessions, and as many servers; half as many of both the other way (for `reproduce`)
    #[arg(long, default_value_t = 10, value_name = "COUNT", hide = true, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub web_sessions: u32,
    /// Mean size of an object in packets (for `reproduce`)
    #[arg(long, default_value_t = 400, value_name = "PACKETS", hide = true, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub web_object: u32,
    /// How far away hosts are (for `reproduce`)
    #[arg(long, default_value = "wide", value_name = "RANGE", hide = true)]
    pub web_hosts: HostsName,
    /// A burst of so many packets from elsewhere meets the flight of a transfer (for `reproduce`)
    #[arg(long, default_value_t = 0, value_name = "PACKETS", hide = true, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub cross_burst: u32,
    /// Requests without connections (for `reproduce`)
    #[arg(long, default_value = "none", value_name = "KIND", hide = true)]
    pub attack: AttackName,
    /// Such requests a second (for `reproduce`)
    #[arg(long, default_value_t = 20, value_name = "COUNT", hide = true, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub attack_requests: u32,
}

/// How far away hosts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HostsName {
    /// Access delays of 12 ms in the mean and 110 ms at most, one way.
    Wide,
    /// Round trips of 80 to 120 ms.
    Narrow,
}

/// Attacks by requests alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AttackName {
    /// None.
    None,
    /// Small requests from made-up addresses: work for the router.
    Storm,
    /// Large requests from the attacker's own address.
    OneHost,
    /// Large requests from made-up addresses.
    MadeUp,
    /// Large requests that bear an honest host's address.
    Framing,
}
