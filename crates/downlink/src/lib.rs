//! What a client can know of its own downlink before the first byte.
//!
//! Source: J. Rüth, K. Wolsing, M. Serror, K. Wehrle, O. Hohlfeld, "Blitz-starting QUIC
//! Connections", technical report, RWTH Aachen (BS in this crate), §3.1: client-side bandwidth
//! estimation. A [`Survey`] asks every estimator there is, none of which needs a privilege, and
//! [`choose()`] decides which one is used. Each answer says what it means and how old it is.
//!
//! | module | estimator | what its number means |
//! |---|---|---|
//! | [`survey`] | an explicit value | what a person said |
//! | [`past`] | the largest rate seen on this network | what was measured, end to end |
//! | [`gateway`] | the home gateway, by UPnP IGD and TR-064 | what the access line is synchronised or provisioned to |
//! | [`wifi`] | the radio's bit rate, by nl80211 | an upper bound: the air in between |
//! | [`ethernet`] | the link's speed | an upper bound: the wire in between |
//!
//! | module | holds |
//! |---|---|
//! | [`estimate`] | what an answer is, and by how much each kind is scaled down to what a transport can get |
//! | [`mod@choose`] | the order of trust |
//! | [`network`] | which network this is: interface, gateway, hardware address, name |
//! | [`machine`] | the files of the system that are read, under a root that tests replace |
//!
//! ```no_run
//! use headstart_downlink::{Past, Survey};
//! use headstart_host::unix_now;
//! use headstart_startup::hint::Steps;
//!
//! let report = Survey { past: Past::of_this_user(), ..Survey::default() }.ask(unix_now());
//! // The value of transport parameter `headstart_startup::hint::PARAMETER`, if there is anything to tell.
//! let value: Option<[u8; 6]> = report.hint(Steps::default()).and_then(|hint| hint.emit());
//! ```
//!
//! # Deviations
//!
//! - BS §3.1 would query Wi-Fi's modulation index; the kernel computes the bit rate from it, which
//!   is asked for instead.
//! - BS §3.1: mobile access (LTE) cannot be estimated with what systems expose. Nor is it here; a
//!   past maximum still can.
//!
//! # Limits
//!
//! - Networks are told apart by their IPv4 default route. Without one there is only the interface's
//!   name.
//! - Linux only: the files under `/proc` and `/sys`, and nl80211.

pub mod choose;
pub mod estimate;
pub mod ethernet;
pub mod gateway;
pub mod machine;
pub mod network;
pub mod past;
pub mod survey;
pub mod wifi;

pub use choose::{Choice, NoChoice, choose};
pub use estimate::{Answer, Estimate, Meaning, Source, Unavailable};
pub use machine::Machine;
pub use network::Network;
pub use past::Past;
pub use survey::{Report, Survey};
