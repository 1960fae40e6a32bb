//! A receiver that acknowledges packets it does not have: an observer around another.
//!
//! It completes the handshake and sends its request as any client does. Once data arrives, the
//! client's packets are dropped and forged ones sent instead, which null crypto permits: each holds
//! one ACK frame (RFC 9000 §19.3). Their packet numbers are far above the real client's,
//! whose later packets the server then drops as old duplicates.
//!
//! It observes every datagram as it leaves the server: no real attacker knows more or earlier.

use bytes::Bytes;

use crate::datagram::Datagram;
use crate::simulation::observer::{DATA, FlowEnd, ObservedDatagram, Observer};

/// Kinds of misbehaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    /// Acknowledges packets this far ahead of the last one sent.
    Ahead(u64),
    /// Acknowledges every number up to the last one sent, without having received them.
    Guessing,
    /// Acknowledges exactly the packets sent, as they leave: half a round trip too early.
    Early,
    /// Acknowledges the packets received, this many times over.
    Storm(u32),
}

/// The misbehaving receiver of one flow.
pub struct MisbehavingReceiver {
    inner: Box<dyn Observer>,
    flow: u64,
    misbehaviour: Misbehaviour,
    /// Connection id of the server, once the client has used it.
    server: Option<[u8; ID]>,
    /// Ranges of the server's packet numbers that have left (or arrived, for a storm), in order.
    seen: Vec<(u64, u64)>,
    packets: u64,
    next_number: u32,
    /// Acknowledgements forged after the latest datagram.
    forged: Vec<Bytes>,
}

/// Length of connection ids here, in bytes.
const ID: usize = 8;
/// Data packets before the misbehaviour: by then the request has been read.
const CORRECT_PACKETS: u64 = 3;
/// Number of the first forged packet.
const FIRST_NUMBER: u32 = 1_000_000;
const TAG: usize = 16;

impl Observer for MisbehavingReceiver {
    fn on_departure(&mut self, observed: &ObservedDatagram<'_>) -> bool {
        let passes = self.inner.on_departure(observed);
        if observed.flow != self.flow {
            return passes;
        }
        if observed.is_forward {
            if !matches!(self.misbehaviour, Misbehaviour::Storm(_)) {
                self.forged = self.observe(observed.datagram, 1);
            }
            return passes;
        }
        passes && self.passes_through(observed.datagram)
    }

    fn on_arrival(&mut self, observed: &ObservedDatagram<'_>) {
        self.inner.on_arrival(observed);
        if let Misbehaviour::Storm(times) = self.misbehaviour
            && observed.is_forward
            && observed.flow == self.flow
        {
            self.forged = self.observe(observed.datagram, times);
        }
    }

    fn forged_packets(&mut self, flow: u64) -> Vec<Bytes> {
        let mut forged = self.inner.forged_packets(flow);
        if flow == self.flow {
            forged.append(&mut self.forged);
        }
        forged
    }

    fn on_flow_end(&mut self, flow: u64, end: &FlowEnd) {
        self.inner.on_flow_end(flow, end);
    }

    fn is_over(&self) -> bool {
        self.inner.is_over()
    }
}

impl MisbehavingReceiver {
    /// Lets the receiver of the flow with that serial number misbehave.
    #[must_use]
    pub fn new(inner: Box<dyn Observer>, flow: u64, misbehaviour: Misbehaviour) -> Self {
        let (seen, forged) = (vec![], vec![]);
        Self { inner, flow, misbehaviour, server: None, seen, packets: 0, next_number: FIRST_NUMBER, forged }
    }

    /// True if the real client's datagram passes: until the misbehaviour begins.
    fn passes_through(&mut self, datagram: &Datagram) -> bool {
        if datagram.is_data()
            && let Some(id) = datagram.contents.get(1..=ID)
        {
            self.server = id.try_into().ok();
        }
        self.packets <= CORRECT_PACKETS
    }

    fn observe(&mut self, datagram: &Datagram, times: u32) -> Vec<Bytes> {
        let Some(number) = self.number_of(datagram) else { return vec![] };
        match self.seen.last_mut() {
            Some((_, last)) if number == *last + 1 => *last = number,
            Some((_, last)) if number <= *last => {}
            _ => self.seen.push((number, number)),
        }
        self.packets += u64::from(datagram.payload().get() >= DATA);
        if self.packets <= CORRECT_PACKETS {
            return vec![];
        }
        let ranges = match self.misbehaviour {
            Misbehaviour::Ahead(by) => vec![(number + by, number + by)],
            Misbehaviour::Guessing => vec![(0, number)],
            Misbehaviour::Early | Misbehaviour::Storm(_) => self.seen.clone(),
        };
        (0..times).filter_map(|_| self.forge(&ranges)).collect()
    }

    /// The packet number of a packet of application data (RFC 9000 §17.3.1, appendix A.3).
    fn number_of(&self, datagram: &Datagram) -> Option<u64> {
        let first = *datagram.contents.first().filter(|first| **first & 0x80 == 0)?;
        let length = usize::from(first & 3) + 1;
        let bytes = datagram.contents.get(1 + ID..1 + ID + length)?;
        let truncated = bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let window = 1_u64 << (8 * length);
        let expected = self.seen.last().map_or(0, |(_, last)| last + 1);
        let candidate = (expected & !(window - 1)) | truncated;
        Some(if candidate + window / 2 <= expected { candidate + window } else { candidate })
    }

    /// A packet with one ACK frame of these ranges, lowest first.
    fn forge(&mut self, ranges: &[(u64, u64)]) -> Option<Bytes> {
        let server = self.server?;
        let (&(mut low, high), older) = ranges.split_last()?;
        let mut packet = vec![0x43];
        packet.extend(server);
        packet.extend(self.next_number.to_be_bytes());
        self.next_number += 1;
        packet.push(0x02);
        // Largest, delay, count of the ranges below, length of the first.
        for value in [high, 0, older.len() as u64, high - low] {
            put(&mut packet, value);
        }
        for &(from, to) in older.iter().rev() {
            put(&mut packet, low - to - 2);
            put(&mut packet, to - from);
            low = from;
        }
        packet.resize(packet.len() + TAG, 0);
        Some(packet.into())
    }
}

/// A variable-length integer (RFC 9000 §16), always of eight bytes.
fn put(packet: &mut Vec<u8>, value: u64) {
    packet.extend((value | 0xc0 << 56).to_be_bytes());
}
