//! The real QUIC stack in virtual time.
//!
//! noq-proto reads no clock: every timestamp is an argument. So two endpoints of it, unmodified, with the very adapters of
//! [`headstart_quic`], run over the path elements of [`headstart_net`] as the simulator's TCP does: the same inputs give the
//! same departures to the nanosecond. That is where departure times, copies and hints are tested exactly, and what the
//! TCP model can be compared with.
//!
//! ```text
//!   client 1 --+                                             +-- its own connection, scheme and handle
//!   client 2 --+--- reverse path ---> server endpoint -------+
//!       ^      |                          |
//!       +------+------ forward path <-----+     what the server sends shares one path: the bottleneck
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`world`] | the endpoints, the paths between them, and the loop over events |
//! | [`exchange`] | the application: a request that names a size, an answer of that size; what is measured |
//! | [`simulation`] | the simulator's own scenarios, with this transport in place of its TCP model |
//! | [`scenario`] | a bottleneck, schemes and priors in a few lines |
//! | [`datagram`], [`path`] | packets, and the elements they cross |
//! | [`request`] | what a client asks for, here and over the emulator |
//! | [`identity`] | a certificate |
//! | [`null`] | sessions without cryptography, for large sweeps |
//!
//! # Repeatability
//!
//! With null crypto the same seed gives the same bytes on the wire. With TLS, whose randomness is its own, times and
//! sizes are the same; the certificate is an Ed25519 one, for signatures of other kinds vary in length.
//!
//! # Limits
//!
//! - Computing takes no time: a handshake is exactly as long as its path.
//! - One server, one request for each connection.

pub mod datagram;
mod end;
pub mod exchange;
pub mod identity;
pub mod null;
pub mod path;
mod post;
pub mod request;
pub mod scenario;
pub mod simulation;
pub mod world;

pub use datagram::Datagram;
pub use exchange::{Departure, Fetch, Outcome};
pub use identity::Identity;
pub use path::Path;
pub use request::Request;
pub use scenario::Scenario;
pub use simulation::Simulation;
pub use world::{Crypto, Lie, World};
