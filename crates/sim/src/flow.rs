//! A flow: both ends of one connection, and the table of all live ones.
//!
//! Sender and receiver of a flow lie side by side in memory and are used again for a later flow
//! when the connection is over: memory does not grow with finished flows.

use std::collections::VecDeque;

use headstart_startup::Prior;
use headstart_startup::history::Lease;
use headstart_startup::quick_start::Asked;
use headstart_units::{Bytes, Time};

use crate::packet::{FlowId, Note};
use crate::record::Grant;
use crate::schedule::FLOW_TIMERS;
use crate::tcp::{Receiver, Sender};
use crate::workload::Opener;

/// Where a connection stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// The slot is free.
    #[default]
    Free,
    /// The opener has sent its SYN.
    Opening,
    /// The handshake is through at the sender.
    Established,
}

/// How often a SYN or a request is sent before the opener gives up counting attempts apart.
pub const ATTEMPTS: usize = 8;

/// Both ends of one connection.
#[derive(Debug, Default)]
pub struct Flow {
    /// Tells this flow from earlier ones in the same slot.
    pub generation: u16,
    /// Where the connection stands.
    pub stage: Stage,
    /// Which flow of the run it is.
    pub serial: u64,
    /// Whose settings it runs with.
    pub group: u16,
    /// Its class of hosts.
    pub class: u16,
    /// The peer's number.
    pub peer: u32,
    /// Who opened it.
    pub opener: Opener,
    /// The other direction of the connection that has one handshake with this one, until nobody
    /// needs to know any more.
    pub other_half: Option<FlowId>,
    /// Its workload's mark.
    pub tag: u64,
    /// The scheme is told the size.
    pub size_known: bool,
    /// No more messages will follow.
    pub is_closing: bool,
    /// It began from a record of its peer.
    pub had_history: bool,
    /// Its place in the history of its group.
    pub lease: Option<Lease>,
    /// Its first flight is reserved there, and its fate is not known yet.
    pub reserves: bool,

    /// What the sender asked the routers for.
    pub request: Option<Asked>,
    /// What a receiver that opened has to say of it with its first request.
    pub echo: Note,
    /// What came of it.
    pub grant: Grant,
    /// Requests in the middle of the connection, and those of them that began a new start.
    pub again: (u32, u32),

    /// When the first SYN left.
    pub opened_at: Time,
    /// When the sender knew it established.
    pub established_at: Option<Time>,
    /// When the receiver had everything.
    pub completed_at: Option<Time>,
    /// When each attempt of the packet that times the handshake left.
    pub attempts: [Time; ATTEMPTS],
    /// At the opener: the latest attempt of its SYN, and from the SYN-ACK on the one that was
    /// answered.
    pub attempt: u8,
    /// Round trips of the handshake that are over.
    pub handshakes: u8,
    /// The opener has seen the other side answer.
    pub opener_done: bool,
    /// When the opener sends its SYN or request again, and how often it has.
    pub client_at: Time,
    /// Repetitions of the present SYN or request.
    pub client_tries: u32,
    /// Repetitions in all.
    pub client_repeats: u32,

    /// Messages asked for, and those of them that the sender has heard of.
    pub asked: u32,
    /// Requests that reached the sender.
    pub heard: u32,
    /// Sizes of the messages asked for and not yet heard of, and when each message not yet read was
    /// asked for.
    pub wanted: VecDeque<Bytes>,
    /// When each unread message was asked for, and its size.
    pub unread: VecDeque<(Time, Bytes)>,
    /// Bytes read by the receiving application.
    pub read: Bytes,
    /// Bytes handed over for sending.
    pub written: Bytes,

    /// What was known at establishment, kept for the scheme until there is something to send.
    pub waiting: Option<Box<Prior>>,

    /// The sending side.
    pub sender: Sender,
    /// The receiving side.
    pub receiver: Receiver,
    /// The earliest heap entry of each kind of timer.
    pub scheduled: [Time; FLOW_TIMERS],
}

/// The table of live flows.
#[derive(Debug, Default)]
pub struct Flows {
    slots: Vec<Flow>,
    free: Vec<u32>,
    opened: u64,
}

impl Flows {
    /// A slot for a new flow, cleared.
    pub fn open(&mut self) -> (FlowId, &mut Flow) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Flow::default());
            self.slots.len() as u32 - 1
        });
        let flow = &mut self.slots[slot as usize];
        flow.wanted.clear();
        flow.unread.clear();
        flow.receiver.reset();
        *flow = Flow {
            generation: flow.generation,
            stage: Stage::Opening,
            serial: self.opened,
            wanted: std::mem::take(&mut flow.wanted),
            unread: std::mem::take(&mut flow.unread),
            sender: std::mem::take(&mut flow.sender),
            receiver: std::mem::take(&mut flow.receiver),
            scheduled: [Time::NEVER; FLOW_TIMERS],
            client_at: Time::NEVER,
            ..Flow::default()
        };
        self.opened += 1;
        (FlowId { slot, generation: flow.generation }, flow)
    }

    /// The flow, if it is still alive.
    #[inline]
    pub fn get_mut(&mut self, id: FlowId) -> Option<&mut Flow> {
        let flow = self.slots.get_mut(id.slot as usize)?;
        (flow.generation == id.generation && flow.stage != Stage::Free).then_some(flow)
    }

    /// Frees a slot.
    pub fn close(&mut self, id: FlowId) {
        if let Some(flow) = self.get_mut(id) {
            flow.stage = Stage::Free;
            flow.generation = flow.generation.wrapping_add(1);
            self.free.push(id.slot);
        }
    }

    /// All live flows.
    pub fn live(&mut self) -> impl Iterator<Item = (FlowId, &mut Flow)> {
        self.slots
            .iter_mut()
            .enumerate()
            .filter(|(_, flow)| flow.stage != Stage::Free)
            .map(|(slot, flow)| (FlowId { slot: slot as u32, generation: flow.generation }, flow))
    }

    /// Flows opened so far.
    #[must_use]
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// Slots ever needed at the same time.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.slots.len()
    }
}
