//! The simulator's path elements on real packets, driven by the real clock.
//!
//! A [`Path`] is one direction: it is told which packet arrived and when, and answers what comes
//! out and when that is due. It knows no clock, so the same arrivals give the same departures
//! whether a simulator drives it or a machine that is late. A [`Relay`](relay::Relay) is such a
//! machine: it stamps what it reads from its two ends, sends what is due, and measures how late it
//! was.
//!
//! | module | holds |
//! |---|---|
//! | [`path`] | elements in a row, sans I/O |
//! | [`packet`] | a real packet as the elements see it |
//! | [`relay`] | the driver: reads, waits, sends, measures |
//! | [`error`] | why a packet could not be taken or sent |
//! | [`udp`] | its ends for UDP programs, without privileges |
//! | [`tunnel`] | its ends for any program: two TUN devices |
//! | [`device`], [`address`] | making such a device and giving it addresses and routes |
//! | [`gateway`] | how a program behind a path reaches the world beyond this machine |
//! | [`namespace`] | a program in network namespaces of its own, with a device in them |
//! | [`lateness`] | how late departures were, and whether that is too late |
//! | [`log`] | one line for each arrival, departure and drop |
//! | [`record`] | reading that again |
//! | [`capture`] | both sides as pcapng |
//! | [`signals`] | waiting for Ctrl-C, for a child, or for some time |
//! | [`clock`] | the only place that reads time |

pub mod address;
mod background;
pub mod capture;
pub mod clock;
pub mod device;
pub mod error;
pub mod gateway;
pub mod lateness;
pub mod log;
pub mod namespace;
pub mod packet;
pub mod path;
pub mod record;
pub mod relay;
pub mod signals;
#[cfg(test)]
mod testing;
pub mod tunnel;
pub mod udp;

pub use path::Path;
