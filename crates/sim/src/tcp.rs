//! The TCP model: a sender and a receiver, sans I/O.
//!
//! | module | holds |
//! |---|---|
//! | [`config`] | everything that can be chosen, with defaults and their sources |
//! | [`sender`] | scoreboard, loss recovery, timers, pacing: what leaves and when |
//! | [`receiver`] | reassembly, acknowledgements |

pub mod config;
pub mod prr;
pub mod receiver;
pub mod sender;

pub use config::{DelayedAck, Detection, Pacing, Probe, TcpConfig};
pub use receiver::Receiver;
pub use sender::Sender;
