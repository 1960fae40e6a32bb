//! Start-up of congestion control: how a new connection finds its sending rate.
//!
//! The inputs are few: the round-trip time of the handshake, perhaps the flow size, perhaps a path
//! record of an earlier connection to the same peer. A *scheme* turns that [`Prior`] into a first
//! flight and observes its acknowledgements and losses. It hands over to a *base controller*, which
//! runs congestion avoidance for the rest of the connection. The [`Controller`] joins the two; a
//! transport holds one per connection.
//!
//! Nothing here reads a clock, opens a socket, draws a random number or uses floating point: events
//! and their times go in, window and pace come out. So the same file runs in the simulator and
//! under a real transport.
//!
//! ```
//! use headstart_startup::{Controller, Prior, base, catalogue};
//! use headstart_units::{Bytes, Span, Time};
//!
//! let (mss, rtt) = (Bytes::new(1448), Span::from_millis(50));
//! let bare = Prior::bare(Time::from_millis(50), mss, rtt, Bytes::new(1_000_000));
//! let prior = Prior { flow_size: Some(Bytes::new(100_000)), ..bare };
//!
//! // JumpStart paces the flow, 70 segments, over the RTT of the handshake.
//! let scheme = catalogue::find("jump-start").expect("a name of the catalogue").scheme();
//! let mut controller = Controller::new(scheme, base::Kind::Cubic, mss);
//! let plan = controller.establish(&prior);
//! assert_eq!(plan.flight, Bytes::new(100_000));
//! assert_eq!(plan.allowance.pace, Some(mss * 70 / rtt));
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`event`] | input of a scheme: [`Sent`], [`Ack`], [`Congestion`], [`Timeout`] |
//! | [`allowance`] | its decisions: [`FlightPlan`], [`Allowance`], [`Next`] |
//! | [`prior`] | all that is known before the first byte |
//! | [`catalogue`] | every scheme by name |
//! | [`scheme`] | the trait [`Startup`], the list of all schemes, and one file for each |
//! | [`base`] | the controllers to hand over to: NewReno and CUBIC |
//! | [`repair`] | proactive retransmission: ROPR, Proactive |
//! | [`path`] | measurement shared by all: RTT, delivery rate, rounds, windowed extremes |
//! | [`first_recovery`] | recovery of a first flight: the window follows the delivered bytes |
//! | [`growth`] | slow start's doubling and its exits: HyStart, HyStart++, SEARCH |
//! | [`hint`] | a client's hint of its access link: format, quantisation, limits |
//! | [`history`] | path records of earlier connections to a peer, and a bounded store |
//! | [`quick_start`] | RFC 4782: formats, the routers' decision, the sender's request and checks |
//! | [`rcp`] | the rate that an RCP router stamps |
//! | [`sending`] | a sender's account of its packets: from a transport's reports to events |
//! | [`trace`] | a sender's events |
//! | [`controller`] | joins a scheme and a base controller; held by a transport |
//! | [`conformance`] | a scheme's answers compared with vectors |
//!
//! Start with [`scheme::slow_start`], then any other scheme.

#![no_std]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

extern crate alloc;

mod about;
pub mod allowance;
pub mod base;
pub mod catalogue;
pub mod conformance;
pub mod controller;
pub mod event;
pub mod first_recovery;
pub mod growth;
pub mod hint;
pub mod history;
mod name;
pub mod parameters;
pub mod path;
pub mod prior;
pub mod quick_start;
pub mod rcp;
pub mod repair;
pub mod scheme;
pub mod sending;
pub mod trace;

pub use allowance::{Allowance, FlightPlan, HandOver, Next};
pub use base::Base;
pub use controller::{Controller, EndedBy, SlowStartEnd};
pub use event::{Ack, Congestion, Progress, Sent, Signal, Timeout, Transmission};
pub use path::{RateSample, Rtt};
pub use prior::Prior;
pub use scheme::{Scheme, Startup};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
