//! One connection on which messages are requested at given times, independently of those before.
//!
//! Source: WiseStart §4.1, "a simple request-response messaging application [..] which sends
//! requests and responses with application traces".

use headstart_units::{Bytes, Span, Time};

use super::{FlowSpec, Opener, Order, Workload};
use crate::packet::FlowId;

/// One message of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Time of its request since the origin of its trace ([`From`]); of the first message: ignored.
    pub at: Span,
    /// Size of the message.
    pub bytes: Bytes,
}

/// Origin of the times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The opening of the connection.
    Opening,
    /// The moment at which the first message was read, which names the further requests.
    FirstRead,
}

/// A trace of messages on one connection, which is closed when the last of them has been read.
#[derive(Debug)]
pub struct Replay {
    spec: FlowSpec,
    opens_at: Time,
    from: From,
    /// When the first message was read.
    first_read_at: Time,
    messages: Vec<Message>,
    requested: usize,
    read: usize,
    flow: Option<FlowId>,
}

impl Replay {
    /// The trace, by a flow of `group` that opens at `opens_at`. The first message is requested
    /// with the opening, the others in the order of their times; without any, nothing happens.
    #[must_use]
    pub fn new(mut messages: Vec<Message>, from: From, group: u16, opener: Opener, opens_at: Time) -> Self {
        if let Some((_, rest)) = messages.split_first_mut() {
            rest.sort_by_key(|message| message.at);
        }
        let bytes = messages.first().map_or(Bytes::ZERO, |message| message.bytes);
        let spec = FlowSpec { group, opener, bytes, keep_open: true, ..FlowSpec::default() };
        Self { spec, opens_at, from, first_read_at: Time::NEVER, messages, requested: 0, read: 0, flow: None }
    }
}

impl Workload for Replay {
    fn next_at(&self) -> Time {
        match self.messages.get(self.requested) {
            None => Time::NEVER,
            Some(_) if self.requested == 0 => self.opens_at,
            Some(message) => match self.from {
                From::Opening => self.opens_at + message.at,
                From::FirstRead if self.first_read_at == Time::NEVER => Time::NEVER,
                From::FirstRead => self.first_read_at + message.at,
            },
        }
    }

    fn on_time(&mut self, _: Time, orders: &mut Vec<Order>) {
        let Some(message) = self.messages.get(self.requested) else { return };
        self.requested += 1;
        match self.flow {
            None => orders.push(Order::Open(self.spec)),
            Some(flow) => orders.push(Order::Ask { flow, bytes: message.bytes }),
        }
    }

    fn on_open(&mut self, flow: FlowId, _: u64) {
        self.flow = Some(flow);
    }

    fn on_message(&mut self, now: Time, flow: FlowId, _: u64, orders: &mut Vec<Order>) {
        self.read += 1;
        self.first_read_at = self.first_read_at.min(now);
        if self.read == self.messages.len() {
            orders.push(Order::Close(flow));
        }
    }
}
