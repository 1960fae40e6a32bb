//! Parts of a path: packets go in, the same packets come out, later or never.
//!
//! An [`Element`] is told what arrived and when, and answers what became of it. It reads no clock and
//! opens no socket, so the simulator drives it with virtual time and an emulator with the real clock.
//! Each element has one effect; a path is a list of them, sender to receiver.
//!
//! | module | holds |
//! |---|---|
//! | [`element`] | the trait, what becomes of a packet, and the enum of all elements |
//! | [`link`] | a constant rate, a propagation delay and a drop-tail queue |
//! | [`limit`] | what a buffer counts and how much it holds |

pub mod element;
pub mod limit;
pub mod link;

pub use element::{AnyElement, Element, Fate, Output, Packet, Why};
pub use limit::Limit;
pub use link::Link;
