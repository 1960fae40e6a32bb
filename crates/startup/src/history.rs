//! What earlier connections to a peer measured.
//!
//! WiseStart §3.2: a table keyed by peer address; each entry holds when it was recorded, the maximum
//! delivery rate (BtlBw) and the minimum RTT (RTprop). TCP-Cache needs the window and threshold beside
//! them. Written when a connection closes, read when the next one is established.

use headstart_units::{Bytes, Rate, Span, Time};

/// What one connection left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was recorded.
    pub saved_at: Time,
    /// The maximum delivery rate, from samples that were not application-limited if there were any.
    pub btl_bw: Rate,
    /// The minimum RTT.
    pub rt_prop: Span,
    /// The congestion window at the end.
    pub window: Bytes,
    /// The slow start threshold at the end; [`Bytes::MAX`] if none was ever set.
    pub ssthresh: Bytes,
    /// How that connection's own start ended.
    pub ended: Ended,
}

/// How a start ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ended {
    /// No packet of the first flight was lost.
    #[default]
    Clean,
    /// Some were.
    Lossy,
}

/// A record as a new connection meets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The record itself.
    pub record: Record,
    /// Other connections that began from it and are still alive.
    pub live: u32,
}
