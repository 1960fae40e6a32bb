//! Fast-start schemes for QUIC connections of an unmodified [noq](https://docs.rs/noq) stack.
//!
//! A server that runs noq accepts its connections through [`ServerSetup::accept`] instead of
//! `Incoming::accept`. Each connection then starts with the chosen scheme, from the record of
//! earlier connections to the same peer or from the client's hint of its access link. At its end it
//! writes a record for the next connection, and a report ([`StartReport`]) of the inputs, the
//! decision and the outcome.
//!
//! ```no_run
//! # async fn run(base: noq::ServerConfig, tls: std::sync::Arc<rustls::ServerConfig>)
//! # -> Result<(), Box<dyn std::error::Error>> {
//! use headstart_quic::{Choice, PreciseRuntime, ServerSetup, Sharded};
//! use std::{net::UdpSocket, sync::Arc};
//!
//! let scheme = Choice::find("headstart")?;
//! let setup = ServerSetup::new(base.clone(), tls, scheme)?.history(Arc::new(Sharded::default()));
//! let socket = UdpSocket::bind("[::]:4433")?;
//! let runtime = PreciseRuntime::new();
//! let config = noq::EndpointConfig::default();
//! let endpoint = noq::Endpoint::new(config, Some(base), socket, runtime)?;
//! while let Some(incoming) = endpoint.accept().await {
//!     let accepted = setup.accept(incoming)?;
//!     tokio::spawn(async move {
//!         let (connection, handle) = accepted.established().await?;
//!         // Serve `connection`, then log the report.
//!         println!("{}", handle.report());
//! #       drop(connection);
//!         Ok::<_, noq::ConnectionError>(())
//!     });
//! }
//! # Ok(()) }
//! ```
//!
//! Schemes are found by their names; those that QUIC cannot carry are refused with a reason:
//!
//! ```
//! use headstart_quic::Choice;
//!
//! assert!(Choice::find("halfback(additional=25%)").is_ok());
//! assert!(Choice::find("quick-start").is_err());
//! ```
//!
//! A client uses [`ClientSetup::connect`]. `examples/existing_server` is a whole server.
//!
//! ```text
//!             peer address, connection id              hint, packet numbers, wire bytes
//!   Incoming ----------------------------> accept      TLS session ------------------+
//!                                            |                                       v
//!      Store <-- record, report - Adapter <--+-- one configuration per connection   Shared
//!                                    |                                               ^
//!                                    +-----------------------------------------------+
//!                                    |       scheme and base controller: headstart-startup
//!                                    +--> DuplicateSender: copies of datagrams
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`choice`] | schemes by name; those refused, with reasons |
//! | [`server`], [`client`] | set-up: one per endpoint |
//! | [`pending_connection`] | connections accepted or initiated, not established yet |
//! | [`adapter`] | the stack's congestion controller, from a scheme and a base controller |
//! | [`session`] | the TLS session that carries hints and observes outgoing packets |
//! | [`hint`] | the transport parameter: format, quantisation |
//! | [`resets`] | connections of a former process |
//! | [`tickets`] | sessions that clients may resume, of which an address has a part |
//! | [`token`] | records that clients carry, sealed in address validation tokens |
//! | [`copies`] | proactive retransmission of whole datagrams |
//! | [`journal`] | a sender's events in order: for simulations |
//! | [`runtime`] | timers precise enough for packets less than a millisecond apart |
//! | [`gates`], [`limits`], [`store`] | common to all stacks: conditions, caps on hints, records |
//! | [`start_report`], [`metrics`], [`epoch`] | common to all stacks: report, counters, clock |
//! | [`sequential`], [`guard`] | common to all stacks: arms compared, and a kill switch |
//!
//! # Units
//!
//! Quantities are typed: `Bytes`, `Rate` (bytes per second), `Time` and `Span` (nanoseconds) of
//! `headstart-units`. Sizes on the wire count QUIC packets, without UDP and IP headers.
//!
//! # Features
//!
//! - `qlog`: decisions as events in the stack's qlog files. It costs the stack 5 to 15 % of its
//!   speed, even where no file is written.
//!
//! # Limits
//!
//! - Quick-Start, RCP and PCP are refused: see [`choice`].
//! - `bbr` is the stack's own BBR, not the one of headstart-startup: it uses and writes no record.
//! - Of a connection with several paths only the first runs the scheme; later ones run slow start.

#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod adapter;
pub mod choice;
pub mod client;
pub mod copies;
mod handle;
pub mod hint;
pub mod journal;
mod last_encrypted;
pub mod pending_connection;
#[cfg(feature = "qlog")]
pub mod qlog;
pub mod resets;
pub mod runtime;
pub mod server;
pub mod session;
mod shared;
pub mod tickets;
pub mod token;
mod unvalidated;

pub use headstart_adapter::{epoch, gates, guard, limits, metrics, sequential, start_report, store};

pub use choice::Choice;
pub use client::ClientSetup;
pub use copies::{CopyPolicy, DuplicateSender};
pub use epoch::Epoch;
pub use gates::{Gates, Rollout};
pub use guard::Guard;
pub use handle::Handle;
pub use headstart_adapter::ChoiceError;
pub use headstart_startup::prior::{Access, Hint};
pub use limits::{Limits, Policy};
pub use metrics::Metrics;
pub use pending_connection::PendingConnection;
pub use runtime::PreciseRuntime;
pub use server::ServerSetup;
pub use start_report::StartReport;
pub use store::{Sharded, Store};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
