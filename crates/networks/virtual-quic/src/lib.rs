//! The real QUIC stack in virtual time.
//!
//! noq-proto reads no clock: every timestamp is an argument. So two of its endpoints, unmodified,
//! with the adapters of [`headstart_quic`], run over the path elements of [`headstart_net`] as the
//! simulator's TCP does. The same inputs give the same departures to the nanosecond. Departure
//! times, copies and hints are tested exactly here, and the TCP model is compared with it.
//!
//! ```text
//!   client 1 --+                                 +-- server 1: connection, scheme, handle
//!   client 2 --+--- reverse path ----------------+-- server 2
//!       ^      |                                 |
//!       +------+------ forward path <------------+     shared by all servers: the bottleneck
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`simulation`] | the simulator's scenarios over this transport; observers of its datagrams |
//! | [`connections`] | connections of clients to servers, and the outcome of each |
//! | [`scenario`] | a bottleneck, schemes and priors in a few lines |
//! | [`misbehaving`] | a receiver that acknowledges data it does not have |
//! | [`datagram`] | packets |
//! | [`request`] | a client's request, here and over the emulator |
//! | [`identity`] | a certificate |
//! | [`null`] | sessions without cryptography, for large sweeps |
//!
//! # Repeatability
//!
//! With null crypto the same seed gives the same bytes on the wire. With TLS, which draws its own
//! randomness, times and sizes are the same; the certificate is an Ed25519 one, for signatures of
//! other kinds vary in length.
//!
//! # Limits
//!
//! - Computation takes no virtual time: a handshake takes exactly the path's delay.
//! - Servers share only history, limits and counters.

pub mod connections;
pub mod datagram;
mod duplicate_queue;
mod end;
mod error;
pub mod identity;
pub mod misbehaving;
pub mod null;
pub mod request;
pub mod scenario;
pub mod simulation;

pub use connections::{ConnectionOutcome, ConnectionSet, Departure, Transfer};
pub use datagram::Datagram;
pub use error::ScenarioError;
pub use identity::Identity;
pub use misbehaving::{MisbehavingReceiver, Misbehaviour};
pub use request::TransferRequest;
pub use scenario::Scenario;
pub use simulation::{Crypto, Simulation};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
