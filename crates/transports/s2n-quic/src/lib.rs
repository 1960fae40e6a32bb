//! Fast-start schemes for the connections of an unmodified
//! [s2n-quic](https://docs.rs/s2n-quic) server.
//!
//! A [`ServerSetup`] is a provider of congestion controllers (s2n-quic's feature
//! `unstable-congestion-controller`). Each accepted connection starts with the chosen scheme, from
//! the record of earlier connections to the same peer, and writes a record for the next at its end.
//!
//! ```text
//! let setup = ServerSetup::new("headstart")?.history(Arc::new(Sharded::default()));
//! let server = s2n_quic::Server::builder()
//!     .with_congestion_controller(setup.clone())?
//!     // TLS and address as before.
//!     .start()?;
//! ```
//!
//! Schemes are found by their names; those that s2n-quic cannot carry are refused with a reason:
//!
//! ```
//! use headstart_s2n_quic::{Choice, ServerSetup};
//!
//! assert!(ServerSetup::new("headstart").is_ok());
//! let refused = Choice::find("halfback").unwrap_err().to_string();
//! assert!(refused.contains("sends packets again that are not lost"));
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`choice`] | schemes by name; those refused, with reasons |
//! | [`setup`] | a server's set-up: one per endpoint |
//! | [`controller`] | s2n-quic's congestion controller, from a scheme and a base controller |
//!
//! Store, gates, rollout, limits, report and counters come from [`headstart_adapter`].
//!
//! # Limits
//!
//! - No copies: Halfback and Proactive are refused; so are Quick-Start, RCP, PCP and Prague.
//! - s2n-quic tells a controller the peer's address and nothing else of its connection. So hints
//!   come from a function of the address ([`ServerSetup::hints`]), and the application finds its
//!   connection's handle by the peer's address ([`ServerSetup::handle`]).
//! - Servers only: records are kept by the peer's address.

#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod choice;
pub mod controller;
mod pacer;
pub mod setup;
mod shared;

pub use choice::Choice;
pub use headstart_adapter::{
    ChoiceError, Gates, Guard, Handle, Limits, Metrics, Policy, Rollout, Sharded, StartReport, Store,
};
pub use headstart_startup::prior::{Access, Hint};
pub use setup::ServerSetup;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
