//! How a new connection finds its sending rate.
//!
//! A connection begins knowing little: the round-trip time of its handshake, perhaps how much it
//! has to send, perhaps what an earlier connection to the same peer measured. A *scheme* turns that
//! [`Prior`] into a first flight, checks what came of it, and hands over to a *base controller*
//! that runs congestion avoidance for the rest of the connection's life. The [`Controller`] joins
//! the two; it is what a transport holds.
//!
//! Nothing here reads a clock, opens a socket, draws a random number or uses floating point: a
//! scheme is told what happened and when, and answers with what may be sent. That is why the same
//! file runs in the simulator and under a real transport.
//!
//! | module | holds |
//! |---|---|
//! | [`event`] | [`Sent`], [`Ack`], [`Congestion`], [`Timeout`]: what a scheme is told |
//! | [`allowance`] | [`Plan`], [`Allowance`], [`Next`]: what it answers |
//! | [`prior`] | what is known before the first byte; the one door for all of it |
//! | [`catalogue`] | every scheme by name |
//! | [`scheme`] | the trait [`Startup`], the list of all schemes, and one file for each |
//! | [`base`] | the controllers to hand over to: NewReno and CUBIC |
//! | [`repair`] | which bytes to send again before anybody asked: ROPR, Proactive |
//! | [`path`] | measurement shared by all: RTT, delivery rate, rounds, windowed extremes |
//! | [`first_recovery`] | a first flight that was lost in part: the window follows what got through |
//! | [`growth`] | slow start's doubling, with HyStart++ or without |
//! | [`hint`] | what a client tells of its access link: its value on the wire, how coarse, and how much of it is believed |
//! | [`history`] | what earlier connections to a peer measured: record, bounded store |
//! | [`quick_start`] | RFC 4782: formats, the routers' decision, what a sender asks for and believes |
//! | [`rcp`] | the rate that an RCP router stamps |
//! | [`trace`] | what a sender did, event by event |
//! | [`controller`] | joins a scheme and a base; what a transport holds |
//!
//! Start with [`scheme::slow_start`], then any other scheme.

#![no_std]

extern crate alloc;

pub mod allowance;
pub mod base;
pub mod catalogue;
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
pub mod trace;

pub use allowance::{Allowance, HandOver, Next, Plan};
pub use base::Base;
pub use controller::Controller;
pub use event::{Ack, Congestion, Progress, Sent, Signal, Timeout, Transmission};
pub use path::{RateSample, Rtt};
pub use prior::Prior;
pub use scheme::{Scheme, Startup};
