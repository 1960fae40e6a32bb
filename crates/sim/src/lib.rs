//! A packet simulator for start-up schemes: virtual time, a full TCP model, millions of flows.
//!
//! A run is a [`Scenario`]: a path made of the elements of `headstart-net`, groups of flows with
//! their schemes and settings, and a workload that opens connections. A [`Recorder`] gets its
//! events. The same scenario and seed give the same events, verified by a fingerprint over all of
//! them.
//!
//! | module | holds |
//! |---|---|
//! | [`engine`] | the run itself: the next event, and its dispatch |
//! | [`path`] | elements, routes, and the account of every packet |
//! | [`chain`] | routers in a chain with traffic both ways |
//! | [`tcp`] | the TCP model: sender, receiver, settings |
//! | [`flow`] | both ends of a connection, and the table of live ones |
//! | [`workload`] | the traffic |
//! | [`vectors`] | connections from traces (Tmix), and drawn from statistics |
//! | [`record`] | events and reports of a run |
//! | [`collect`] | totals of a run, in bounded memory |
//! | [`check`] | an independent check of every packet of a run |
//! | [`random`] | seeds by name |
//! | [`sizes`] | distributions of flow sizes |
//! | [`schedule`], [`ring`], [`packet`] | timers, ring buffers, packets |

pub mod chain;
pub mod check;
pub mod collect;
pub mod engine;
pub mod flow;
pub mod packet;
pub mod path;
pub mod random;
pub mod record;
pub mod ring;
pub mod schedule;
pub mod sizes;
pub mod tcp;
pub mod vectors;
pub mod workload;

pub use chain::{Access, Chain, ChainLink, ChainSpec};
pub use check::{Checker, ElementModel};
pub use collect::{Collector, Histogram, Ideal, SIZE_BINS, Totals};
pub use engine::{Finished, Group, Scenario, Simulation, Summary, peer_address};
pub use headstart_net::PacketCounts;
pub use path::{Path, PathBuilder};
pub use random::{Random, Seed};
pub use record::{FlowReport, Grant, NullRecorder, Recorder};
pub use tcp::TcpConfig;

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
