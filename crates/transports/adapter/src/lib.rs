//! Priors, rules and reports of a connection's start: the part common to all QUIC stacks.
//!
//! A stack's adapter passes to a `Sender` of [`headstart_startup::sending`] the packets that leave,
//! arrive and are lost. The rest of a start does not depend on a stack and is here. Before the
//! start: the record and the hint that a connection may use, its arm, and the bytes that it
//! reserves. After it: the report and the new record.
//!
//! ```
//! use headstart_adapter::{Gates, Sharded, Store};
//! use headstart_startup::history::{FlightOutcome, Record, RecordUpdate};
//! use headstart_units::{Bytes, Rate, Span, Time};
//!
//! // The first connection to a peer ends, and leaves a record.
//! let (store, peer) = (Sharded::new(1_000), [192, 0, 2, 1].into());
//! let (known, lease) = store.open(peer);
//! assert!(known.is_none());
//! store.close(lease, RecordUpdate::Replace(Record {
//!     saved_at: Time::from_millis(1_000),
//!     btl_bw: Rate::from_mbit_per_sec(50),
//!     rt_prop: Span::from_millis(30),
//!     window: Bytes::new(200_000),
//!     ..Record::default()
//! }));
//!
//! // A second one finds it: of use on a path with that RTT, and expired after ten minutes.
//! let (known, _lease) = store.open(peer);
//! let judged = |at, rtt| Gates::default().judge(known, at, rtt, Bytes::new(14_720));
//! let (minute, hour) = (Time::from_millis(61_000), Time::from_millis(3_600_000));
//! assert!(judged(minute, Span::from_millis(31)).is_ok());
//! assert!(judged(minute, Span::from_millis(400)).is_err());
//! assert!(judged(hour, Span::from_millis(31)).is_err());
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`account`] | one connection: judges its inputs, keeps its report, writes its record |
//! | [`announced`] | announced data compared with a plan |
//! | [`choice`], [`draws`] | schemes by name, and those that a stack refuses; the draw of an arm |
//! | [`connection`] | settings of an endpoint; a connection's state outside of its controller |
//! | [`driver`] | one path's scheme: when it begins, further flights, what is published |
//! | [`publication`] | the events after which the account is brought up to date |
//! | [`gates`] | conditions for the use of a record; percentage and kill switch |
//! | [`limits`] | caps on hints: per connection, per address, in total |
//! | [`store`] | records by peer, shared by all connections |
//! | [`start_report`], [`metrics`] | the report of a connection, and its counters per endpoint |
//! | [`sequential`], [`guard`] | two arms compared at any time; a kill switch that acts on it |
//! | [`silence`] | peers that do not answer |
//! | [`epoch`] | a stack's instants as this project's time |
//! | [`sizes`] | application data as packets |

#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod account;
pub mod announced;
pub mod choice;
pub mod connection;
pub mod draws;
pub mod driver;
pub mod epoch;
pub mod gates;
pub mod guard;
pub mod limits;
pub mod metrics;
pub mod publication;
pub mod sequential;
mod setters;
pub mod silence;
pub mod sizes;
pub mod start_report;
pub mod store;

pub use account::{Account, Inputs};
pub use choice::{Choice, ChoiceError, ChoiceOn, Stack};
pub use connection::{Connection, Handle, Rules};
pub use draws::Draws;
pub use driver::Driver;
pub use epoch::{Epoch, EpochCache};
pub use gates::{Gates, Rollout};
pub use guard::Guard;
pub use limits::{Limits, Policy};
pub use metrics::Metrics;
pub use publication::Publication;
pub use start_report::StartReport;
pub use store::{Sharded, Store};

#[doc(hidden)]
pub use headstart_startup::base::Kind as BaseKind;
#[doc(hidden)]
pub use headstart_startup::catalogue::Needs;
#[doc(hidden)]
pub use headstart_units::Bytes;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
