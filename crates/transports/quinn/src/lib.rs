//! Fast-start schemes for the connections of an unmodified [quinn](https://docs.rs/quinn) server.
//!
//! A server accepts each connection with a configuration for its peer ([`ServerSetup::configure`]).
//! The connection then starts with the chosen scheme, from the record of earlier connections to the
//! same peer, and writes a record for the next at its end.
//!
//! ```no_run
//! # async fn run(config: quinn::ServerConfig, endpoint: quinn::Endpoint)
//! # -> Result<(), Box<dyn std::error::Error>> {
//! use headstart_quinn::{ServerSetup, Sharded};
//! use std::sync::Arc;
//!
//! let setup = ServerSetup::new(config, "headstart")?.history(Arc::new(Sharded::default()));
//! while let Some(incoming) = endpoint.accept().await {
//!     let (config, start) = setup.configure(incoming.remote_address());
//!     let connecting = incoming.accept_with(config)?;
//!     tokio::spawn(async move {
//!         let connection = connecting.await?;
//!         // Serve `connection` as before.
//!         start.finish(connection.congestion_state());
//!         println!("{}", start.report());
//!         Ok::<_, quinn::ConnectionError>(())
//!     });
//! }
//! # Ok(()) }
//! ```
//!
//! Schemes are found by their names; those that quinn cannot carry are refused with a reason:
//!
//! ```
//! use headstart_quinn::Choice;
//!
//! assert!(Choice::find("careful-resume").is_ok());
//! let refused = Choice::find("halfback").unwrap_err().to_string();
//! assert!(refused.contains("sends packets again that are not lost"));
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`choice`] | schemes by name; those refused, with reasons |
//! | [`setup`] | a server's set-up: one per endpoint |
//! | [`adapter`] | quinn's congestion controller, from a scheme and a base controller |
//! | [`pacing`] | a pace, expressed as a window |
//! | [`handle`] | the application's handle of a connection |
//!
//! Store, gates, rollout, limits, report and counters come from [`headstart_adapter`].
//!
//! # Limits
//!
//! - Packets leave at a scheme's pace only in bursts of ten: [`pacing`]. `docs/adapters.md` has the
//!   distance from exact pacing, measured.
//! - No copies: Halfback and Proactive are refused; so are BBR, Quick-Start, RCP, PCP and Prague.
//! - Hints come from the application ([`ServerSetup::configure_with_hint`]): quinn has no transport
//!   parameters of one's own.
//! - `quinn::ConnectionStats::path.cwnd` shows the window that quinn gets, not the scheme's.

#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod adapter;
pub mod choice;
pub mod handle;
pub mod pacing;
pub mod setup;

pub use choice::Choice;
pub use handle::Handle;
pub use headstart_adapter::{
    ChoiceError, Epoch, Gates, Guard, Limits, Metrics, Policy, Rollout, Sharded, StartReport, Store,
};
pub use headstart_startup::prior::{Access, Hint};
pub use setup::ServerSetup;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
