//! A flow: both ends of one connection, and the table of all live ones.
//!
//! Senders and slots are reused for a later flow when the connection is over: memory does not grow
//! with finished flows.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;

use headstart_startup::Prior;
use headstart_startup::history::Lease;
use headstart_startup::quick_start::SentRequest;
use headstart_units::{Bytes, Time};

use crate::packet::{FlowId, RouterOption};
use crate::record::Grant;
use crate::schedule::FLOW_TIMERS;
use crate::tcp::{Receiver, Sender};
use crate::workload::Opener;

/// State of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionState {
    /// The slot is free.
    #[default]
    Free,
    /// The opener has sent its SYN.
    Opening,
    /// The handshake is complete at the sender.
    Established,
}

/// The certificate of a connection on its way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Certificate {
    /// Parts that the accepting side has sent.
    pub sent: u8,
    /// First parts of them that the opener has acknowledged.
    pub acknowledged: u8,
    /// Parts that were acknowledged when they were last sent anew, from one on.
    pub restarted_at: Option<u8>,
    /// Parts that the opener has, a bit for each.
    pub arrived: u64,
    /// Time at which the first of them arrived.
    pub first_at: Time,
    /// All were sent once, and the SYN-ACK.
    pub is_whole: bool,
    /// The note of the SYN-ACK behind them.
    pub note: RouterOption,
    /// The SYN-ACK that overtook one of them, with its attempt and route.
    pub answer: Option<(u8, RouterOption, u16)>,
}

/// Attempts of a SYN or a request that the opener counts apart.
pub const ATTEMPTS: usize = 8;

/// Both ends of one connection.
#[derive(Debug, Default)]
pub struct Flow {
    /// Distinguishes this flow from earlier ones in the same slot.
    pub generation: u16,
    /// State of the connection.
    pub state: ConnectionState,
    /// Serial number of the flow in the run, by opening.
    pub serial: u64,
    /// Index of its group, whose settings it has.
    pub group: u16,
    /// Class of hosts of the flow.
    pub class: u16,
    /// The peer's number.
    pub peer: u32,
    /// The side that opened it.
    pub opener: Opener,
    /// The connection's other direction, which shares its handshake, until that is complete.
    pub other_half: Option<FlowId>,
    /// Tag of its workload, returned with each message.
    pub tag: u64,
    /// The size is given to the scheme.
    pub size_known: bool,
    /// The application closes the connection after the present messages.
    pub is_closing: bool,
    /// True if the flow began from a record of its peer.
    pub had_history: bool,
    /// Lease of its peer's record in the history of its group.
    pub lease: Option<Lease>,
    /// True while the flow's first flight is reserved in the history, and neither acknowledged nor
    /// lost.
    pub has_reservation: bool,

    /// The sender's request to the routers.
    pub request: Option<SentRequest>,
    /// Answer to it that a receiver that opened carries in its first request.
    pub echo: RouterOption,
    /// Result of the request.
    pub grant: Grant,
    /// Requests in the middle of the connection, and how many of them began a new start.
    pub later_requests: (u32, u32),

    /// Time at which the first SYN left.
    pub opened_at: Time,
    /// Time of establishment at the sender.
    pub established_at: Option<Time>,
    /// Time at which the receiver had every byte.
    pub completed_at: Option<Time>,
    /// Times at which the attempts of the packet that times the handshake left.
    pub attempts: [Time; ATTEMPTS],
    /// At the opener: latest attempt of its SYN, and from the SYN-ACK on the answered one.
    pub attempt: u8,
    /// The first attempt of the present round trip of the handshake.
    pub first_attempt: u8,
    /// Round trips of the handshake that are over.
    pub handshakes: u8,
    /// Parts of the certificate, and acknowledgements of them.
    pub certificate: Certificate,
    /// The opener has received an answer of the other side.
    pub opener_done: bool,
    /// Time at which the opener sends its SYN or request again.
    pub client_at: Time,
    /// Repetitions of the present SYN or request.
    pub client_tries: u32,
    /// Repetitions in all.
    pub client_repeats: u32,

    /// Messages requested.
    pub requests_sent: u32,
    /// Requests that reached the sender.
    pub requests_received: u32,
    /// Sizes of the messages requested and not yet known to the sender.
    pub pending_responses: VecDeque<Bytes>,
    /// Time of the request for each unread message, and its size.
    pub unread: VecDeque<(Time, Bytes)>,
    /// Bytes read by the receiving application.
    pub read: Bytes,
    /// Bytes handed over for sending.
    pub written: Bytes,

    /// The prior at establishment, kept for the scheme until there is data to send.
    pub waiting: Option<Box<Prior>>,

    /// The sending side, from the flow's first request on.
    pub sender: Seat,
    /// The receiving side.
    pub receiver: Receiver,
    /// The earliest heap entry of each kind of timer.
    pub scheduled: [Time; FLOW_TIMERS],
}

/// The place of a sender. It is three quarters of a flow's memory: in overload most flows are
/// waiting for an answer to their SYN, and need none.
#[derive(Debug, Default)]
pub struct Seat(Option<Box<Sender>>);

/// Stands in for the sender of a flow that has none yet.
static IDLE: LazyLock<Sender> = LazyLock::new(Sender::default);

impl Deref for Seat {
    type Target = Sender;

    #[inline]
    fn deref(&self) -> &Sender {
        self.0.as_deref().unwrap_or_else(|| &IDLE)
    }
}

impl DerefMut for Seat {
    #[inline]
    fn deref_mut(&mut self) -> &mut Sender {
        debug_assert!(self.0.is_some(), "found a change to a sender before `Flows::seat`");
        self.0.get_or_insert_default()
    }
}

/// The table of live flows.
#[derive(Debug, Default)]
pub struct Flows {
    slots: Vec<Flow>,
    free: Vec<u32>,
    /// Senders of flows that are over. They keep their memory.
    #[expect(clippy::vec_box, reason = "a sender moves between its flows by its address")]
    spare: Vec<Box<Sender>>,
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
        flow.pending_responses.clear();
        flow.unread.clear();
        flow.receiver.reset();
        *flow = Flow {
            generation: flow.generation,
            state: ConnectionState::Opening,
            serial: self.opened,
            pending_responses: std::mem::take(&mut flow.pending_responses),
            unread: std::mem::take(&mut flow.unread),
            receiver: std::mem::take(&mut flow.receiver),
            scheduled: [Time::NEVER; FLOW_TIMERS],
            client_at: Time::NEVER,
            ..Flow::default()
        };
        self.opened += 1;
        (FlowId { slot, generation: flow.generation }, flow)
    }

    /// The flow, if it is in the table.
    #[inline]
    pub fn get_mut(&mut self, id: FlowId) -> Option<&mut Flow> {
        let flow = self.slots.get_mut(id.slot as usize)?;
        (flow.generation == id.generation && flow.state != ConnectionState::Free).then_some(flow)
    }

    /// The flow, if it has just been given a sender: one that has to be reset.
    pub fn seat(&mut self, id: FlowId) -> Option<&mut Flow> {
        let flow = self.slots.get_mut(id.slot as usize)?;
        if flow.sender.0.is_some() || flow.generation != id.generation || flow.state == ConnectionState::Free
        {
            return None;
        }
        flow.sender.0 = Some(self.spare.pop().unwrap_or_default());
        Some(flow)
    }

    /// Frees a slot.
    pub fn close(&mut self, id: FlowId) {
        if let Some(flow) = self.get_mut(id) {
            flow.state = ConnectionState::Free;
            flow.generation = flow.generation.wrapping_add(1);
            if let Some(mut sender) = flow.sender.0.take() {
                sender.end();
                self.spare.push(sender);
            }
            self.free.push(id.slot);
        }
    }

    /// All live flows.
    pub fn live(&mut self) -> impl Iterator<Item = (FlowId, &mut Flow)> {
        self.slots
            .iter_mut()
            .enumerate()
            .filter(|(_, flow)| flow.state != ConnectionState::Free)
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
