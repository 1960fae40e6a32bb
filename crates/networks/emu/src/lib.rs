//! The simulator's path elements on real packets, driven by the real clock.
//!
//! A [`Path`] is one direction: for packets and their arrival times it returns departures and their
//! deadlines. It reads no clock, so the same arrivals give the same departures under a simulator
//! and on a delayed host. A [`Relay`](relay::Relay) drives it in real time: it stamps the packets
//! read from its two ends, sends those that are due, and measures its own lateness.
//!
//! | module | contents |
//! |---|---|
//! | [`path`] | elements in a row, sans I/O |
//! | [`packet`] | a real packet, for the elements |
//! | [`relay`] | the driver: reads, waits, sends, measures |
//! | [`error`] | reasons why a packet was not received or sent |
//! | [`udp`] | its ends for UDP programs, without privileges |
//! | [`tunnel`] | its ends for any program: two TUN devices |
//! | [`device`], [`address`] | TUN devices, their addresses and routes |
//! | [`gateway`] | user-space NAT for a program behind a path |
//! | [`namespace`] | a program in network namespaces of its own, with a device in them |
//! | [`lateness`] | lateness of departures, and its tolerance |
//! | [`log`] | one line for each arrival, departure and drop |
//! | [`record`] | reads that log |
//! | [`signals`] | waits for Ctrl-C, a child or a time limit |
//! | [`clock`] | the only place that reads the clock |

pub mod address;
mod background;
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

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
