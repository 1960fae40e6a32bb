//! Estimates of a client's own downlink before the first byte.
//!
//! Source: J. Rüth, K. Wolsing, M. Serror, K. Wehrle, O. Hohlfeld, "Blitz-starting QUIC
//! Connections", technical report, RWTH Aachen (BS in this crate), §3.1: client-side bandwidth
//! estimation. A [`Survey`] queries every estimator, none of which needs a privilege, and
//! [`choose()`] selects one. Each answer carries its interpretation and its age.
//!
//! | module | estimator | interpretation |
//! |---|---|---|
//! | [`survey`] | an explicit value | the user's |
//! | [`past`] | the largest rate seen on this network | measured end to end |
//! | [`ethernet`] | the link's speed | an upper bound: the link in between |
//!
//! | module | contents |
//! |---|---|
//! | [`estimate`] | estimates, and each kind's share that a transport can expect |
//! | [`mod@choose`] | priority of the sources |
//! | [`network`] | identity of the network: interface, gateway, hardware address |
//! | [`machine`] | the system files that are read, under a root that tests replace |
//!
//! ```no_run
//! use headstart_downlink::{Past, Survey};
//! use headstart_host::unix_now;
//! use headstart_startup::hint::Steps;
//!
//! let report = Survey { past: Past::of_this_user(), ..Survey::default() }.query(unix_now());
//! // The value of transport parameter `headstart_startup::hint::PARAMETER`, if there is a hint.
//! let value: Option<[u8; 6]> = report.hint(Steps::default()).and_then(|hint| hint.emit());
//! ```
//!
//! # Deviations
//!
//! - BS §3.1 would also query the home gateway (UPnP, TR-064) and Wi-Fi's modulation index. The
//!   former reports what it likes, the latter bounds the line at most: neither was ever compared
//!   with a real line.
//!
//! # Limits
//!
//! - Networks are distinguished by their IPv4 default route, or else by the interface's name.
//! - Linux only: the files under `/proc` and `/sys`.

pub mod choose;
pub mod estimate;
pub mod ethernet;
pub mod machine;
pub mod network;
pub mod past;
pub mod survey;

pub use choose::{Choice, NoChoice, choose};
pub use estimate::{Answer, Estimate, Meaning, Source, Unavailable};
pub use machine::Machine;
pub use network::Network;
pub use past::Past;
pub use survey::{Report, Survey};
