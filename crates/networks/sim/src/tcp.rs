//! The TCP model: a sender and a receiver, sans I/O.
//!
//! | module | holds |
//! |---|---|
//! | [`config`] | options, with defaults and their sources |
//! | [`sender`] | scoreboard, loss recovery, timers, pacing: which packet leaves, and when |
//! | [`udt`] | loss recovery as UDT does it: the Halfback paper's own transport |
//! | [`receiver`] | reassembly, acknowledgements |

pub mod config;
pub mod prr;
pub mod receiver;
pub mod sender;
pub mod udt;

pub use config::{DelayedAck, Detection, ImmediateAck, Pacing, Probe, ReceiveGrowth, TcpConfig};
pub use receiver::Receiver;
pub use sender::Sender;
