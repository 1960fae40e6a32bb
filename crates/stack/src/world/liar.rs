//! A client whose acknowledgements lie.
//!
//! It shakes hands and asks as any client does. When data comes it falls silent and forges packets of its own, which null crypto lets it: each holds
//! one ACK frame (RFC 9000 §19.3). Its packet numbers are far above those of the real client, whose later packets the server
//! then takes for old duplicates.
//!
//! It is told of every datagram at the moment it leaves the server: no real attacker knows more, or sooner.

use bytes::Bytes;

use crate::datagram::Datagram;

/// How a client lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// It acknowledges packets so far ahead of the last one that was sent.
    Ahead(u64),
    /// It acknowledges every number up to the last one that was sent, as one who guesses what is under way.
    Guessing,
    /// It acknowledges what was sent, and nothing else, at the moment it is sent: half a round trip before it has it.
    Early,
    /// It acknowledges what it has, so many times over.
    Storm(u32),
}

/// The forger.
#[derive(Debug)]
pub(super) struct Liar {
    lie: Lie,
    /// Connection id of the server, once the client has used it.
    server: Option<[u8; ID]>,
    /// Ranges of the server's packet numbers that have left (or arrived, for a storm), in order.
    seen: Vec<(u64, u64)>,
    packets: u64,
    next_number: u32,
}

/// Length of connection ids here.
const ID: usize = 8;
/// Data packets before the lies begin: by then the request has been read.
const HONEST: u64 = 3;
/// Number of the first forged packet.
const FIRST_NUMBER: u32 = 1_000_000;
const SEAL: usize = 16;
/// Smaller datagrams are acks and the like.
const DATA: u64 = 300;

impl Liar {
    pub const fn new(lie: Lie) -> Self {
        Self { lie, server: None, seen: vec![], packets: 0, next_number: FIRST_NUMBER }
    }

    /// What the real client sends: lets it pass until the lies begin.
    pub fn lets_pass(&mut self, datagram: &Datagram) -> bool {
        if datagram.is_data()
            && let Some(id) = datagram.contents.get(1..=ID)
        {
            self.server = id.try_into().ok();
        }
        self.packets <= HONEST
    }

    /// A datagram left the server.
    pub fn saw_departure(&mut self, datagram: &Datagram) -> Vec<Bytes> {
        match self.lie {
            Lie::Storm(_) => vec![],
            _ => self.saw(datagram, 1),
        }
    }

    /// A datagram arrived at the client.
    pub fn saw_arrival(&mut self, datagram: &Datagram) -> Vec<Bytes> {
        match self.lie {
            Lie::Storm(times) => self.saw(datagram, times),
            _ => vec![],
        }
    }

    fn saw(&mut self, datagram: &Datagram, times: u32) -> Vec<Bytes> {
        let Some(number) = self.number_of(datagram) else { return vec![] };
        match self.seen.last_mut() {
            Some((_, last)) if number == *last + 1 => *last = number,
            Some((_, last)) if number <= *last => {}
            _ => self.seen.push((number, number)),
        }
        self.packets += u64::from(datagram.payload().get() >= DATA);
        if self.packets <= HONEST {
            return vec![];
        }
        let ranges = match self.lie {
            Lie::Ahead(by) => vec![(number + by, number + by)],
            Lie::Guessing => vec![(0, number)],
            Lie::Early | Lie::Storm(_) => self.seen.clone(),
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
        packet.resize(packet.len() + SEAL, 0);
        Some(packet.into())
    }
}

/// A variable-length integer (RFC 9000 §16), always of eight bytes.
fn put(packet: &mut Vec<u8>, value: u64) {
    packet.extend((value | 0xc0 << 56).to_be_bytes());
}
