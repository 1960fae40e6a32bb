//! Start-up schemes on a real QUIC stack, unmodified.
//!
//! An operator who has a noq server changes one line: where it accepts a connection,
//! [`ServerSetup::accept`] does. The connection then starts as the chosen scheme says, from what
//! earlier connections measured or the client hints, and leaves behind a record for the next one
//! and a [`Why`] that says what was decided and for what reason.
//!
//! ```text
//!             peer address, connection id              hint, packet numbers, wire bytes
//!   Incoming ----------------------------> accept      TLS session ------------------+
//!                                            |                                       v
//!      Store <--- record, why --- Adapter <--+-- one configuration per connection   Shared
//!                                    |                                               ^
//!                                    +-----------------------------------------------+
//!                                    |  scheme and base controller: headstart-startup, the simulator's own
//!                                    +--> Courier: copies of datagrams (Halfback, Proactive)
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`choice`] | schemes by name, and why some are refused |
//! | [`server`], [`client`] | set-up: one per endpoint |
//! | [`opening`] | connections that were accepted or dialled |
//! | [`adapter`] | the stack's congestion controller over a scheme and a base controller |
//! | [`session`] | the TLS session that carries hints and sees every packet |
//! | [`hint`] | the transport parameter: format, quantisation |
//! | [`limits`] | what hints may claim: for each connection, address, and in total |
//! | [`gates`] | when a record is not used, although there is one; percentage and kill switch |
//! | [`store`] | records by peer, shared by all connections |
//! | [`copies`] | datagrams sent again: what is kept, and who sends it |
//! | [`why`], [`metrics`] | what was decided: for each connection, and counted |
//! | [`journal`] | what a sender did, event by event: for simulations |
//! | [`runtime`] | timers precise enough for packets less than a millisecond apart |
//! | [`epoch`] | the stack's instants as ours |
//!
//! # Limits
//!
//! - Quick-Start, RCP and PCP are not carried: [`choice`] says why.
//! - `bbr` is the stack's own BBR, not the one of headstart-startup: it has neither history nor
//!   record.
//! - Of a connection with several paths only the first is sped up.

pub mod adapter;
pub mod choice;
pub mod client;
pub mod copies;
pub mod epoch;
pub mod gates;
pub mod hint;
pub mod journal;
pub mod limits;
pub mod metrics;
pub mod opening;
#[cfg(feature = "qlog")]
pub mod qlog;
pub mod runtime;
mod sealing;
pub mod server;
pub mod session;
pub mod shared;
pub mod store;
pub mod why;

pub use choice::{Choice, Refused};
pub use client::ClientSetup;
pub use copies::{CopyPolicy, Courier};
pub use epoch::Epoch;
pub use gates::{Gates, Rollout};
pub use headstart_startup::prior::{Access, Hint};
pub use limits::{Limits, Policy};
pub use metrics::Metrics;
pub use opening::Opening;
pub use runtime::PreciseRuntime;
pub use server::ServerSetup;
pub use shared::Handle;
pub use store::{Sharded, Store};
pub use why::Why;
