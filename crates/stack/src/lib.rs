//! The real QUIC stack in virtual time.
//!
//! noq-proto reads no clock: every timestamp is an argument. So two endpoints of it, unmodified,
//! with the very adapters of [`headstart_quic`], run over the path elements of [`headstart_net`] as
//! the simulator's TCP does: the same inputs give the same departures to the nanosecond. That is
//! where departure times, copies and hints are tested exactly, and what the TCP model can be
//! compared with.
//!
//! ```text
//!   client 1 --+                                             +-- server 1: its own connection, scheme and handle
//!   client 2 --+--- reverse path ----------------------------+-- server 2
//!       ^      |                                             |
//!       +------+------ forward path <------------------------+     what the servers send shares one path: the bottleneck
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`simulation`] | the simulator's own scenarios, with this transport in place of its TCP model; observers of its datagrams |
//! | [`visits`] | visits of clients to servers, and what each of them saw |
//! | [`scenario`] | a bottleneck, schemes and priors in a few lines |
//! | [`misbehaving`] | a receiver that acknowledges what it does not have |
//! | [`datagram`] | packets |
//! | [`request`] | what a client asks for, here and over the emulator |
//! | [`identity`] | a certificate |
//! | [`null`] | sessions without cryptography, for large sweeps |
//!
//! # Repeatability
//!
//! With null crypto the same seed gives the same bytes on the wire. With TLS, whose randomness is
//! its own, times and sizes are the same; the certificate is an Ed25519 one, for signatures of
//! other kinds vary in length.
//!
//! # Limits
//!
//! - Computing takes no time: a handshake is exactly as long as its path.
//! - Servers know of each other only by what they share: history, limits, counters.

pub mod datagram;
mod end;
pub mod identity;
pub mod misbehaving;
pub mod null;
mod post;
pub mod request;
pub mod scenario;
pub mod simulation;
pub mod visits;

pub use datagram::Datagram;
pub use identity::Identity;
pub use misbehaving::{MisbehavingReceiver, Misbehaviour};
pub use request::Request;
pub use scenario::Scenario;
pub use simulation::{Crypto, Simulation};
pub use visits::{Departure, Fetch, Outcome, Visits};
