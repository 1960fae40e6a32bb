//! Priors, rules and reports of a connection's start: the part common to all QUIC stacks.
//!
//! A stack's adapter tells a `Sender` of [`headstart_startup::sending`] of the packets that leave,
//! arrive and are lost. The rest of a start does not depend on a stack and is here. Before the
//! start: the record and the hint that a connection may use, its arm, and the bytes that it
//! reserves. After it: the report and the new record.
//!
//! | module | contents |
//! |---|---|
//! | [`account`] | one connection: judges its inputs, keeps its report, writes its record |
//! | [`gates`] | conditions for the use of a record; percentage and kill switch |
//! | [`limits`] | caps on hints: per connection, per address, in total |
//! | [`store`] | records by peer, shared by all connections |
//! | [`start_report`], [`metrics`] | the report of a connection, and its counters per endpoint |
//! | [`sequential`], [`guard`] | two arms compared at any time; a kill switch that acts on it |
//! | [`epoch`] | a stack's instants as this project's time |
//! | [`sizes`] | application data as packets |

#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod account;
pub mod epoch;
pub mod gates;
pub mod guard;
pub mod limits;
pub mod metrics;
pub mod sequential;
pub mod sizes;
pub mod start_report;
pub mod store;

pub use account::{Account, Inputs};
pub use epoch::{Epoch, EpochCache};
pub use gates::{Gates, Rollout};
pub use guard::Guard;
pub use limits::{Limits, Policy};
pub use metrics::Metrics;
pub use start_report::StartReport;
pub use store::{Sharded, Store};

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
