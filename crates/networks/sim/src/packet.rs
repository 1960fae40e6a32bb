//! Packets: headers reduced to the fields that the model needs, sizes as on the link.

use headstart_startup::quick_start::{Echo, Nonce, Request};
use headstart_units::{Bytes, Rate, Span};

/// A flow's place in the table of live flows; the generation tells later flows of a place apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowId {
    /// Index into the table.
    pub slot: u32,
    /// Number of earlier uses of the slot, modulo 2^16.
    pub generation: u16,
}

/// Explicit congestion notification (RFC 3168), as far as the model needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not capable.
    #[default]
    NotCapable,
    /// Capable, ECT(0).
    Capable,
    /// Capable, ECT(1): its sender answers every mark (RFC 9331 §4.1).
    L4s,
    /// Congestion experienced.
    Marked,
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Flow of the packet: [`FlowId::slot`].
    pub slot: u32,
    /// Flow of the packet: [`FlowId::generation`].
    pub generation: u16,
    /// Bytes on the link, headers included.
    pub size: u16,
    /// Route of the packet: an index into the path's table.
    pub route: u16,
    /// Index, in its route, of the next element to cross.
    pub hop: u8,
    /// Congestion notification.
    pub ecn: Ecn,
    /// Headers and payload.
    pub body: Body,
}

impl Packet {
    /// The flow to which it belongs.
    #[must_use]
    #[inline]
    pub const fn flow(&self) -> FlowId {
        FlowId { slot: self.slot, generation: self.generation }
    }

    /// The packet without the fields that a router may change.
    #[must_use]
    pub fn without_notes(mut self) -> Self {
        match &mut self.body {
            Body::Syn { note, .. } | Body::SynAck { note, .. } | Body::Request { note, .. } => {
                *note = RouterOption::Nothing;
            }
            Body::Data { label, .. } => *label = Label::default(),
            Body::RateRequest { note } => *note = RouterOption::Nothing,
            Body::Answer { .. } | Body::Ack(..) | Body::Certificate { .. } | Body::Datagram { .. } => {}
        }
        self
    }

    fn note(&self) -> RouterOption {
        match self.body {
            Body::Syn { note, .. } | Body::SynAck { note, .. } | Body::RateRequest { note } => note,
            _ => RouterOption::Nothing,
        }
    }

    fn note_mut(&mut self) -> Option<&mut RouterOption> {
        match &mut self.body {
            Body::Syn { note, .. } | Body::SynAck { note, .. } | Body::RateRequest { note } => Some(note),
            _ => None,
        }
    }

    fn label_mut(&mut self) -> Option<&mut Label> {
        match &mut self.body {
            Body::Data { label, .. } => Some(label),
            Body::Syn { note: RouterOption::Labelled(label), .. }
            | Body::SynAck { note: RouterOption::Labelled(label), .. } => Some(label),
            _ => None,
        }
    }
}

/// Type and headers of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Opens a connection.
    Syn {
        /// Number of the attempt, from zero.
        attempt: u8,
        /// Request to the routers, or their answer.
        note: RouterOption,
    },
    /// Answers the SYN of that attempt.
    SynAck {
        /// The attempt that is answered.
        attempt: u8,
        /// Request to the routers, or their answer.
        note: RouterOption,
    },
    /// A part of the accepting side's certificate; from the opener its acknowledgement.
    Certificate {
        /// Number of the part, from zero; in an acknowledgement, parts that arrived in a row.
        number: u8,
        /// Number of the SYN that it answers.
        attempt: u8,
    },
    /// Completes the handshake of a receiver-opened connection, or requests the next message.
    Request {
        /// Messages requested so far, this one included.
        number: u32,
        /// The SYN-ACK's attempt, echoed: gives the server its handshake RTT.
        attempt: u8,
        /// The routers' answer.
        note: RouterOption,
    },
    /// One segment of the stream.
    Data {
        /// Number of the segment.
        segment: u32,
        /// Number of this transmission, over the whole connection: in place of a real TCP's
        /// timestamps and QUIC's packet numbers.
        transmission: u32,
        /// The last of several that left as one buffer (TCP's PSH flag, as Linux sets it).
        is_pushed: bool,
        /// Served after packets of lower numbers, where queues have priorities.
        priority: u8,
        /// For RCP routers.
        label: Label,
    },
    /// A request to the routers in the middle of a connection.
    RateRequest {
        /// The request.
        note: RouterOption,
    },
    /// The receiver's answer to it.
    Answer {
        /// The echo.
        note: RouterOption,
    },
    /// An acknowledgement, the stamp of the packet that triggered it, and the number of data
    /// packets that arrived with a mark so far, modulo 256. It is AccECN's counter (RFC 9768
    /// §3.2.2), which has three bits there.
    Ack(Acknowledgement, Stamp, u8),
    /// Another transport's packet: of its handshakes, acknowledgements and requests, or of a
    /// real-time flow.
    Datagram {
        /// Number under which its transport keeps the contents; of a real-time flow the time of
        /// sending, in tens of microseconds.
        number: u32,
    },
}

/// Request to routers in a packet of the handshake, or their answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RouterOption {
    /// Nothing.
    #[default]
    Nothing,
    /// A Quick-Start request.
    Request {
        /// The request.
        request: Carried,
        /// The requesting host.
        host: u32,
    },
    /// The receiver's answer to a request; the byte is the difference of the TTLs.
    Answering(Carried),
    /// RCP routers are to stamp it.
    Labelled(Label),
    /// The receiver's echo of the stamp.
    Stamped(Stamp),
}

/// A rate, a byte and a nonce, four-byte aligned so that packets stay small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    rate: [u32; 2],
    nonce: u32,
    byte: u8,
}

impl Carried {
    const fn new(rate: Rate, nonce: Nonce, byte: u8) -> Self {
        let bytes = rate.as_bytes_per_sec();
        Self { rate: [(bytes >> 32) as u32, bytes as u32], nonce: nonce.bits(), byte }
    }

    const fn rate(self) -> Rate {
        Rate::from_bytes_per_sec((self.rate[0] as u64) << 32 | self.rate[1] as u64)
    }
}

impl From<Request> for Carried {
    fn from(request: Request) -> Self {
        Self::new(request.rate, request.nonce, request.ttl)
    }
}

impl From<Carried> for Request {
    fn from(carried: Carried) -> Self {
        Self { rate: carried.rate(), ttl: carried.byte, nonce: Nonce::new(carried.nonce) }
    }
}

impl From<Echo> for Carried {
    fn from(echo: Echo) -> Self {
        Self::new(echo.rate, echo.nonce, echo.ttl_difference)
    }
}

impl From<Carried> for Echo {
    fn from(carried: Carried) -> Self {
        let (rate, nonce) = (carried.rate(), Nonce::new(carried.nonce));
        Self { rate, ttl_difference: carried.byte, nonce }
    }
}

/// Fields of a data packet for RCP routers: a stamp, and its sender's RTT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// The smallest rate so far.
    pub stamp: Stamp,
    /// The sender's RTT in microseconds, as a stamp is coded; zero if it is not known.
    rtt: u16,
}

impl Label {
    /// As a sender writes it, without a limit.
    #[must_use]
    pub fn unstamped(rtt: Span) -> Self {
        Self { stamp: Stamp::UNLIMITED, rtt: coded(rtt.as_nanos() / 1000).min(Stamp::UNLIMITED.0 - 1) }
    }
}

/// A rate in eleven bits and a binary exponent of five: right to a thousandth, which room in an ack
/// allows. RCP's own header has more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp(u16);

const MANTISSA: u32 = 11;

/// The code of the largest value that is at most `value`.
const fn coded(value: u64) -> u16 {
    let exponent = (64 - value.leading_zeros()).saturating_sub(MANTISSA);
    if exponent > 31 { u16::MAX } else { (exponent << MANTISSA) as u16 | (value >> exponent) as u16 }
}

const fn decoded(code: u16) -> u64 {
    (code as u64 & ((1 << MANTISSA) - 1)) << (code >> MANTISSA)
}

impl Stamp {
    /// The packet is not to be stamped.
    pub const NONE: Self = Self(0);
    /// No router has stamped it yet.
    pub const UNLIMITED: Self = Self(u16::MAX);

    /// A rate, rounded down by a thousandth at most; never less than one byte per second.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        Self(coded(rate.as_bytes_per_sec().max(1)).min(Self::UNLIMITED.0 - 1))
    }

    /// The rate; `None` if no router stamped one.
    #[must_use]
    #[inline]
    pub fn rate(self) -> Option<Rate> {
        match self {
            Self::NONE | Self::UNLIMITED => None,
            Self(code) => Some(Rate::from_bytes_per_sec(decoded(code))),
        }
    }
}

/// An acknowledgement: cumulative, selective, and the segment that triggered it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The first segment not yet received.
    pub cumulative: u32,
    /// The segment whose arrival triggered it.
    pub trigger: u32,
    /// The transmission of that segment that arrived.
    pub transmission: u32,
    /// Different segments received so far.
    pub received: u32,
    /// Up to three ranges `start..end` received beyond `cumulative`, most recent first (RFC 2018);
    /// empty ones are unused.
    pub blocks: [Block; 3],
}

/// Segments `start..end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The first segment of the range.
    pub start: u32,
    /// One past the last segment of the range.
    pub end: u32,
}

impl headstart_net::Packet for Packet {
    #[inline]
    fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.size))
    }

    fn is_ecn_capable(&self) -> bool {
        self.ecn != Ecn::NotCapable
    }

    fn is_l4s(&self) -> bool {
        matches!(self.ecn, Ecn::L4s | Ecn::Marked)
    }

    fn mark_congestion_experienced(&mut self) {
        self.ecn = Ecn::Marked;
    }

    fn flow_key(&self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    fn priority(&self) -> u8 {
        if let Body::Data { priority, .. } = self.body { priority } else { 0 }
    }

    fn host_key(&self) -> u32 {
        if let RouterOption::Request { host, .. } = self.note() { host } else { 0 }
    }

    fn request(&self) -> Option<Request> {
        if let RouterOption::Request { request, .. } = self.note() { Some(request.into()) } else { None }
    }

    fn set_request(&mut self, request: Option<Request>) {
        let host = headstart_net::Packet::host_key(self);
        if let Some(note) = self.note_mut() {
            *note = request.map_or(RouterOption::Nothing, |request| RouterOption::Request {
                request: request.into(),
                host,
            });
        }
    }

    fn rate_field_rtt(&self) -> Option<Span> {
        let label = match self.body {
            Body::Data { label, .. }
            | Body::Syn { note: RouterOption::Labelled(label), .. }
            | Body::SynAck { note: RouterOption::Labelled(label), .. } => label,
            _ => return None,
        };
        (label.stamp != Stamp::NONE).then(|| Span::from_micros(decoded(label.rtt)))
    }

    fn stamp(&mut self, rate: Rate) {
        if let Some(label) = self.label_mut()
            && label.stamp != Stamp::NONE
        {
            let least = label.stamp.rate().map_or(rate, |stamped| stamped.min(rate));
            label.stamp = Stamp::new(least);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet and its due time share one cache line: the simulator's speed depends on it.
    #[test]
    fn a_packet_fits_a_cache_line_with_its_time() {
        assert!(size_of::<Packet>() <= 56, "{}", size_of::<Packet>());
    }

    #[test]
    fn a_stamp_is_right_to_a_thousandth_and_never_too_large() {
        for bits in 0..42 {
            for offset in [0, 1, 77] {
                let rate = Rate::from_bytes_per_sec((1 << bits) + offset * (1 << bits) / 100);
                let found = Stamp::new(rate).rate().expect("a rate");
                assert!(
                    found <= rate
                        && (rate.as_bytes_per_sec() - found.as_bytes_per_sec()) * 1000
                            <= rate.as_bytes_per_sec()
                );
            }
        }
        assert_eq!(Stamp::new(Rate::ZERO).rate(), Some(Rate::from_bytes_per_sec(1)), "zero would mean none");
        assert_eq!((Stamp::NONE.rate(), Stamp::UNLIMITED.rate()), (None, None));
        assert!(Stamp::new(Rate::MAX).rate().is_some());
    }

    #[test]
    fn the_smallest_stamp_stays_and_requests_come_back_as_they_were_written() {
        use headstart_net::Packet as _;
        let label = Label::unstamped(Span::from_millis(64));
        let packet =
            |body| Packet { slot: 1, generation: 2, size: 60, route: 0, hop: 0, ecn: Ecn::NotCapable, body };
        let mut data =
            packet(Body::Data { segment: 0, transmission: 0, is_pushed: false, priority: 0, label });
        assert_eq!(data.rate_field_rtt(), Some(Span::from_millis(64)));
        for mbit in [8, 2, 4] {
            data.stamp(Rate::from_mbit_per_sec(mbit));
        }
        let Body::Data { label, .. } = data.body else { panic!("data") };
        assert_eq!(label.stamp, Stamp::new(Rate::from_mbit_per_sec(2)));
        let mut plain = packet(Body::Data {
            segment: 0,
            transmission: 0,
            is_pushed: false,
            priority: 0,
            label: Label::default(),
        });
        assert_eq!(plain.rate_field_rtt(), None);
        plain.stamp(Rate::ZERO);
        assert_eq!(plain.without_notes(), plain);

        let request =
            Request { rate: Rate::from_bytes_per_sec(u64::MAX / 3), ttl: 9, nonce: Nonce::new(12_345) };
        let note = RouterOption::Request { request: request.into(), host: 77 };
        let mut syn = packet(Body::Syn { attempt: 0, note });
        assert_eq!((syn.request(), syn.host_key()), (Some(request), 77));
        syn.set_request(None);
        assert_eq!(syn.request(), None);
    }
}
