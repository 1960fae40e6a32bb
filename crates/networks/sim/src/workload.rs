//! Traffic: the trait of all workloads, and one file for each.

pub mod arrivals;
pub mod conversations;
pub mod exchange;
pub mod long;
pub mod media;
pub mod mixed;
pub mod page;
pub mod replay;
pub mod spoof;
pub mod web;

use headstart_units::{Bytes, Time};

use crate::packet::FlowId;

pub use arrivals::Arrivals;
pub use conversations::Conversations;
pub use exchange::Sessions;
pub use long::Listed;
pub use mixed::Mixed;
pub use page::Pages;
pub use replay::Replay;
pub use spoof::{BareRequest, Spoof};
pub use web::WebSessions;

/// Decides the transfers of a run and their times.
pub trait Workload: std::fmt::Debug + Send {
    /// Time of its next call; [`Time::NEVER`] if only a message can change that.
    fn next_at(&self) -> Time;

    /// The time of [`Self::next_at`] has come.
    fn on_time(&mut self, now: Time, orders: &mut Vec<Order>);

    /// A connection that it ordered to stay open has been opened: more messages can be requested.
    fn on_open(&mut self, flow: FlowId, tag: u64) {
        let _ = (flow, tag);
    }

    /// The receiver of a flow has read a message whole.
    fn on_message(&mut self, now: Time, flow: FlowId, tag: u64, orders: &mut Vec<Order>) {
        let _ = (now, flow, tag, orders);
    }
}

/// Actions that a workload orders.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// Open a connection.
    Open(FlowSpec),
    /// Have another message sent on a connection that was left open.
    Ask {
        /// The connection.
        flow: FlowId,
        /// The message's size.
        bytes: Bytes,
    },
    /// Hand a message over at the sender of a connection that was left open, without a request.
    Write {
        /// The connection.
        flow: FlowId,
        /// The message's size.
        bytes: Bytes,
    },
    /// Close a connection that was left open, once everything is acknowledged.
    Close(FlowId),
    /// A page is complete: pass it to the recorder.
    PageDone(PageReport),
    /// Send a Quick-Start request without a connection.
    Request(BareRequest),
    /// Send a datagram of a real-time flow.
    Datagram {
        /// The class of hosts whose route it takes.
        class: u16,
        /// Size in bytes, headers included.
        size: Bytes,
    },
}

/// One page, from its first SYN to its last byte.
#[derive(Clone, Copy, Debug)]
pub struct PageReport {
    /// The group that fetched it.
    pub group: u16,
    /// Time at which its first SYN was sent.
    pub began_at: Time,
    /// Time at which the last byte of its last object was read.
    pub ended_at: Time,
    /// Bytes of all its objects.
    pub bytes: Bytes,
}

/// A connection to be opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowSpec {
    /// Settings of the flow: an index into the run's groups.
    pub group: u16,
    /// Class of hosts of the flow: an index into the classes of the path.
    pub class: u16,
    /// The peer's number: the key of its history.
    pub peer: u32,
    /// The end that sends the SYN.
    pub opener: Opener,
    /// Size of the first message; zero: none yet, the scheme begins with the first one written.
    pub bytes: Bytes,
    /// The size is given to the sender's scheme.
    pub size_known: bool,
    /// The connection is left open for more messages.
    pub keep_open: bool,
    /// The other direction of the connection that the order before opens, with its handshake.
    pub shares_handshake: bool,
    /// Returned to the workload with each message.
    pub tag: u64,
}

/// The end that opens a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Opener {
    /// The data sender: its SYN crosses the data direction (the papers' bulk flows).
    #[default]
    Sender,
    /// The data receiver: a client that requests from a server.
    Receiver,
}
