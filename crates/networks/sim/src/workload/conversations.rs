//! Replay of connection vectors: the same data of both ends, over the path of the run.
//!
//! ```text
//!  initiator  SYN, a1 ---->        t1        a2 ---->
//!  acceptor           ta   b1 ---->             ... (epoch: a1's hand-over to b1 read, less ta)
//! ```
//!
//! Each end's data is a half-connection of its own in the simulator, with a sender of its own: as
//! in TCP the two directions share nothing but the handshake. That one is the initiator's, so an
//! acceptor has the round-trip time before it has data; and [`Order::Write`] hands its data over at
//! the vector's time. A half without data is not opened.
//!
//! An epoch's duration is the time of the network: the sum over its units of the time from the
//! hand-over to the reading of the last byte. Quiet times of the ends do not count. The first epoch
//! includes the handshake.
//!
//! # Deviations
//!
//! - Acks do not ride on data. ns-2's Tmix has the same in its variant for one-way agents.
//! - No unit is handed over at or after [`ConversationSpec::until`]: connections quiet then end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use headstart_units::{Bytes, Span, Time};

use super::{FlowSpec, Opener, Order, PageReport, Workload};
use crate::packet::FlowId;
use crate::random::{Random, Seed};
use crate::vectors::{Side, Vector, Wait};

/// Parameters of a replay.
#[derive(Clone, Debug)]
pub struct ConversationSpec {
    /// The connections, in the order of their starts.
    pub vectors: Arc<[Vector]>,
    /// Nothing is handed over at or after this time.
    pub until: Time,
    /// Pairs of hosts, equally likely. Classes of a path with two sides: data from left to right in
    /// class `pair`, from right to left in class `pairs + pair`; half of all initiators are on each
    /// side.
    pub pairs: u16,
    /// Parties, equally likely: flows of party `p` belong to groups `p * 2 * pairs + class`.
    pub parties: u16,
    /// Time that a connection stays open after its last unit was read: as if a request may follow.
    pub linger: Span,
    /// The size of their first unit is given to senders.
    pub size_known: bool,
}

/// Connection vectors under way.
#[derive(Debug)]
pub struct Conversations {
    spec: ConversationSpec,
    random: Random,
    /// The next vector to begin.
    next: usize,
    /// Connections that are over, to be closed then.
    closing: VecDeque<(Time, [Option<FlowId>; 2])>,
    /// Next units: time, connection and end.
    due: BTreeSet<(Time, u64, u8)>,
    live: BTreeMap<u64, Live>,
}

#[derive(Debug, Default)]
struct End {
    /// The end's half of the connection, if it sends anything.
    flow: Option<FlowId>,
    /// Numbers of its units that are not handed over yet.
    waiting: VecDeque<u32>,
    /// Units that the other end has not read whole: number, and when it was handed over.
    under_way: VecDeque<(u32, Time)>,
    /// Number of its units that the other end has read.
    read: u32,
    /// When it handed over its last one, and when the last of the other end's was read.
    handed_at: Time,
    read_at: Time,
    /// True if the end's next unit is among those that are due.
    is_due: bool,
}

#[derive(Debug)]
struct Live {
    vector: usize,
    group: [u16; 2],
    ends: [End; 2],
    /// Epoch of each unit, and of each epoch the unread units, the time taken and the bytes so far.
    epoch_of: Vec<u32>,
    epochs: Vec<Epoch>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Epoch {
    unread: u32,
    took: Span,
    bytes: Bytes,
}

const SIDES: [Side; 2] = [Side::Initiator, Side::Acceptor];

impl Conversations {
    /// The vectors, with hosts drawn by `seed`.
    #[must_use]
    pub fn new(spec: ConversationSpec, seed: Seed) -> Self {
        Self {
            spec,
            random: Random::new(seed.child("conversations")),
            next: 0,
            closing: VecDeque::new(),
            due: BTreeSet::new(),
            live: BTreeMap::new(),
        }
    }

    fn next_start(&self) -> Time {
        let start = self.spec.vectors.get(self.next).map_or(Time::NEVER, |vector| vector.start);
        if start < self.spec.until { start } else { Time::NEVER }
    }

    fn begin(&mut self, now: Time, orders: &mut Vec<Order>) {
        let (number, vectors) = (self.next, Arc::clone(&self.spec.vectors));
        let Some(vector) = vectors.get(number) else { return };
        self.next += 1;
        // Drawn for every connection in the same order, with any network.
        let pairs = self.spec.pairs.max(1);
        let pair = self.random.below(u64::from(pairs)) as u16;
        let is_reversed = self.random.below(2) == 1;
        let party = self.random.below(u64::from(self.spec.parties.max(1))) as u16;
        let class = |from: Side| pair + if (from == Side::Acceptor) == is_reversed { 0 } else { pairs };
        let tag = number as u64;
        let epoch_of = vector.epochs();
        let mut epochs = vec![Epoch::default(); epoch_of.last().map_or(0, |last| *last as usize + 1)];
        for (unit, epoch) in vector.units.iter().zip(&epoch_of) {
            epochs[*epoch as usize].unread += 1;
            epochs[*epoch as usize].bytes += unit.bytes;
        }
        let group = SIDES.map(|from| party * 2 * pairs + class(from));
        let mut live = Live { vector: number, group, ends: Default::default(), epoch_of, epochs };
        for from in SIDES {
            let end = &mut live.ends[from as usize];
            let own = (0_u32..).zip(&vector.units).filter(|(_, unit)| unit.from == from);
            end.waiting.extend(own.map(|(number, _)| number));
            (end.handed_at, end.read_at) = (now, now);
            let Some(&first) = end.waiting.front() else { continue };
            // Data without a wait is handed over when the connection is opened.
            let first = vector.units[first as usize];
            let bytes = if first.wait == Wait::None { first.bytes } else { Bytes::ZERO };
            if !bytes.is_zero() {
                let unit = end.waiting.pop_front().unwrap_or_default();
                end.under_way.push_back((unit, now));
            }
            orders.push(Order::Open(FlowSpec {
                group: group[from as usize],
                class: class(from),
                peer: number as u32,
                opener: if from == Side::Initiator { Opener::Sender } else { Opener::Receiver },
                bytes,
                size_known: self.spec.size_known,
                keep_open: true,
                shares_handshake: from == Side::Acceptor
                    && vector.units.iter().any(|unit| unit.from == Side::Initiator),
                tag: tag << 1 | from as u64,
            }));
        }
        self.live.insert(tag, live);
        SIDES.into_iter().for_each(|from| self.consider(tag, from));
    }

    /// Puts the next unit of an end among those that are due, if its time is determined.
    fn consider(&mut self, tag: u64, from: Side) {
        let Some(live) = self.live.get_mut(&tag) else { return };
        let vector = &self.spec.vectors[live.vector];
        let read = live.ends[from.other() as usize].read;
        let end = &mut live.ends[from as usize];
        let Some(&number) = end.waiting.front() else { return };
        if end.is_due {
            return;
        }
        let at = match vector.units[number as usize].wait {
            Wait::None => end.handed_at,
            Wait::Sent(span) => end.handed_at + span,
            Wait::Received(span) => {
                let before = &vector.units[..number as usize];
                let needed = before.iter().filter(|unit| unit.from != from).count() as u32;
                if read < needed {
                    return;
                }
                end.read_at.max(end.handed_at) + span
            }
        };
        end.is_due = true;
        self.due.insert((at, tag, from as u8));
    }

    fn hand_over(&mut self, now: Time, tag: u64, from: Side, orders: &mut Vec<Order>) {
        let Some(live) = self.live.get_mut(&tag) else { return };
        let end = &mut live.ends[from as usize];
        end.is_due = false;
        if end.waiting.is_empty() {
            return;
        }
        if now >= self.spec.until {
            self.cut_off(now, tag, orders);
            return;
        }
        let (Some(flow), Some(number)) = (end.flow, end.waiting.pop_front()) else { return };
        end.handed_at = now;
        end.under_way.push_back((number, now));
        let bytes = self.spec.vectors[live.vector].units[number as usize].bytes;
        orders.push(Order::Write { flow, bytes });
        self.consider(tag, from);
    }

    /// Nothing more is handed over.
    fn cut_off(&mut self, now: Time, tag: u64, orders: &mut Vec<Order>) {
        let Some(live) = self.live.get_mut(&tag) else { return };
        live.ends.iter_mut().for_each(|end| end.waiting.clear());
        self.close_if_over(now, tag, orders);
    }

    fn close_if_over(&mut self, now: Time, tag: u64, orders: &mut Vec<Order>) {
        let Some(live) = self.live.get(&tag) else { return };
        if live.ends.iter().any(|end| !end.waiting.is_empty() || !end.under_way.is_empty()) {
            return;
        }
        let flows = [0, 1].map(|side: usize| live.ends[side].flow);
        self.live.remove(&tag);
        if self.spec.linger.is_zero() {
            orders.extend(flows.into_iter().flatten().map(Order::Close));
        } else {
            self.closing.push_back((now + self.spec.linger, flows));
        }
    }
}

impl Workload for Conversations {
    fn next_at(&self) -> Time {
        let closing = self.closing.front().map_or(Time::NEVER, |(at, _)| *at);
        self.due.first().map_or(Time::NEVER, |(at, ..)| *at).min(self.next_start()).min(closing)
    }

    fn on_time(&mut self, now: Time, orders: &mut Vec<Order>) {
        if self.closing.front().is_some_and(|(at, _)| *at <= now) {
            let flows = self.closing.pop_front().map(|(_, flows)| flows).unwrap_or_default();
            orders.extend(flows.into_iter().flatten().map(Order::Close));
            return;
        }
        match self.due.first() {
            Some(&(at, tag, from)) if at <= now => {
                self.due.pop_first();
                self.hand_over(now, tag, SIDES[usize::from(from)], orders);
            }
            _ => self.begin(now, orders),
        }
    }

    fn on_open(&mut self, flow: FlowId, tag: u64) {
        if let Some(live) = self.live.get_mut(&(tag >> 1)) {
            live.ends[(tag & 1) as usize].flow = Some(flow);
        }
    }

    fn on_message(&mut self, now: Time, _: FlowId, tag: u64, orders: &mut Vec<Order>) {
        let (tag, from) = (tag >> 1, SIDES[(tag & 1) as usize]);
        let Some(live) = self.live.get_mut(&tag) else { return };
        let end = &mut live.ends[from as usize];
        let Some((unit, handed_at)) = end.under_way.pop_front() else { return };
        end.read += 1;
        live.ends[from.other() as usize].read_at = now;
        let epoch = &mut live.epochs[live.epoch_of[unit as usize] as usize];
        epoch.unread -= 1;
        epoch.took += now.since(handed_at);
        if epoch.unread == 0 {
            orders.push(Order::PageDone(PageReport {
                // An epoch is the acceptor's, as far as it answers.
                group: live.group[Side::Acceptor as usize],
                began_at: Time::from_nanos(now.as_nanos().saturating_sub(epoch.took.as_nanos())),
                ended_at: now,
                bytes: epoch.bytes,
            }));
        }
        if now >= self.spec.until {
            return self.cut_off(now, tag, orders);
        }
        self.consider(tag, from.other());
        self.close_if_over(now, tag, orders);
    }
}
