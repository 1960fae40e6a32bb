//! A packet simulator for start-up schemes: virtual time, a full TCP model, millions of flows.
//!
//! A run is a [`Scenario`]: a path made of the elements of `headstart-net`, groups of flows with
//! their schemes and settings, and a workload that opens connections. A [`Recorder`] gets its
//! events. The same scenario and seed give the same events, verified by a fingerprint over all.
//!
//! ```
//! use headstart_net::{Limit, PathPlan};
//! use headstart_sim::workload::Opener;
//! use headstart_sim::workload::long::{Listed, Start};
//! use headstart_sim::{FlowReport, Group, Path, Recorder, Scenario, Seed, Simulation, TcpConfig};
//! use headstart_startup::catalogue;
//! use headstart_units::{Bytes, Rate, Span, Time};
//!
//! #[derive(Debug, Default)]
//! struct Reports(Vec<FlowReport>);
//!
//! impl Recorder for Reports {
//!     fn flow(&mut self, report: &FlowReport) {
//!         self.0.push(*report);
//!     }
//! }
//!
//! // One flow of 100 kB, alone on 15 Mbit/s with an RTT of 60 ms and a buffer of 115 kB.
//! let limit = Limit::bytes(Bytes::new(115_000));
//! let plan = PathPlan::dumbbell(Rate::from_mbit_per_sec(15), Span::from_millis(60), limit);
//! let scheme = catalogue::find("jump-start").expect("a name of the catalogue").scheme();
//! let group = Group::new(scheme, TcpConfig::default());
//! let bytes = Bytes::new(100_000);
//! let flow = Start::new(Time::ZERO, bytes);
//! let scenario = Scenario {
//!     path: Path::new(&plan, Seed(1)),
//!     groups: vec![group],
//!     workload: Box::new(Listed::new(vec![flow], Opener::Sender)),
//!     until: Time::from_millis(10_000),
//! };
//! let reports = Simulation::new(scenario, Reports::default()).run().recorder.0;
//! let completion = reports[0].completion_time().expect("the flow completes");
//! // The handshake, and one round trip in which the flow is paced.
//! assert!(completion > Span::from_millis(120) && completion < Span::from_millis(160));
//! ```
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

#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod chain;
pub mod check;
pub mod collect;
pub mod engine;
pub mod flow;
pub mod packet;
pub mod path;
#[cfg(feature = "properties")]
pub mod properties;
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
pub use engine::{Finished, Group, InformedStart, Insight, Scenario, Simulation, Summary, peer_address};
pub use headstart_net::PacketCounts;
pub use path::{Path, PathBuilder};
pub use random::{Random, Seed};
pub use record::{FlowReport, Grant, NullRecorder, Recorder};
pub use tcp::TcpConfig;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
