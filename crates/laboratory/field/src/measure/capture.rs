//! TCP segments of a packet capture: pcap and pcapng of any resolution and of the link layers of
//! [`frames`]. Headers are enough: captures may cut the payload off.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::{IpAddr, SocketAddr};

use anyhow::{Context as _, Result, bail};
use etherparse::{LaxIpSlice, TcpOptionElement, TcpSlice, ip_number};
use headstart_units::{Span, Time};
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};

use super::frames::{self, Inner};

/// A TCP segment as captured.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Time of the capture, since an arbitrary origin.
    pub at: Time,
    /// Address and port of the end that sent it.
    pub from: SocketAddr,
    /// Address and port of the end to which it goes.
    pub to: SocketAddr,
    /// Sequence number of its first byte.
    pub sequence: u32,
    /// Acknowledgement number, if it acknowledges.
    pub acknowledges: Option<u32>,
    /// Bytes of payload.
    pub payload: u32,
    /// Bytes of IP and TCP headers.
    pub headers: u32,
    /// True if it opens a connection, or answers that.
    pub is_syn: bool,
    /// The option of a SYN.
    pub maximum_segment: Option<u16>,
    /// Value and echo (RFC 7323 §3.2).
    pub timestamps: Option<(u32, u32)>,
    /// End of the data behind a hole that arrived last (RFC 2018 §4: the first block has it).
    pub behind_hole: Option<u32>,
    /// The interface on which it was captured: where several are, each may have every packet.
    pub interface: u32,
}

/// Contents of a capture.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    /// TCP segments in the order of their times.
    pub segments: Vec<Segment>,
    /// There were more than can be read.
    pub is_cut: bool,
    /// Frames that are no TCP segments, by the name of what they are.
    pub others: BTreeMap<String, u64>,
    /// How often the clock was set back, and the longest of these steps. Times behind a step are
    /// moved on by it.
    pub steps: (u32, Span),
}

/// Segments that are read at most: some 7 GB of full packets.
const MAX_SEGMENTS: usize = 5_000_000;

/// Bytes of a block at most: pcapng blocks of a full 64 kB frame and its options fit twice.
const BUFFER: usize = 1 << 18;

/// Reads a capture.
///
/// # Errors
/// It cannot be read, is neither pcap nor pcapng, is damaged, or has an unknown link layer.
pub fn read(content: impl Read) -> Result<Capture> {
    let mut reader = match create_reader(BUFFER, content) {
        Ok(reader) => reader,
        Err(PcapError::Eof) => bail!("found an empty file, expected a pcap or pcapng capture"),
        Err(_) => bail!("found no header of pcap or pcapng, expected a packet capture (tcpdump -w)"),
    };
    let mut interfaces: Vec<Interface> = vec![];
    let mut found = Capture::default();
    // The interface that has captured each segment: its clock is another one's, perhaps.
    let mut clocks = vec![];
    let mut ticks_per_second = 1_000_000;
    let mut has_grown = true;
    loop {
        let (length, block) = match reader.next() {
            Ok(next) => next,
            Err(PcapError::Eof) => break,
            Err(PcapError::Incomplete(_)) if has_grown => {
                let before = reader.data().len();
                reader.refill().map_err(|_| anyhow::anyhow!("cannot be read any further"))?;
                has_grown = reader.data().len() > before;
                continue;
            }
            // A capture that was interrupted ends within a block.
            Err(PcapError::Incomplete(_) | PcapError::UnexpectedEof) => break,
            Err(_) => bail!("damaged after {} TCP segments", found.segments.len()),
        };
        has_grown = true;
        let frame = match &block {
            PcapBlockOwned::LegacyHeader(header) => {
                ticks_per_second = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
                interfaces = vec![Interface::new(header.network, ticks_per_second, 0)];
                None
            }
            PcapBlockOwned::Legacy(packet) => {
                let ticks = u64::from(packet.ts_sec) * ticks_per_second + u64::from(packet.ts_usec);
                Some((0, ticks, packet.data, packet.origlen))
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                interfaces.clear();
                None
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(described)) => {
                let ticks = resolution(described.if_tsresol)?;
                interfaces.push(Interface::new(described.linktype, ticks, described.if_tsoffset));
                None
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                Some((packet.if_id as usize, ticks, packet.data, packet.origlen))
            }
            PcapBlockOwned::NG(Block::SimplePacket(_)) => {
                *found.others.entry("packets without times".into()).or_default() += 1;
                None
            }
            PcapBlockOwned::NG(_) => None,
        };
        if let Some((number, ticks, data, length)) = frame {
            let interface =
                interfaces.get(number).context("a packet of an interface that was not described")?;
            if found.segments.len() == MAX_SEGMENTS {
                found.is_cut = true;
                break;
            }
            match segment(interface, number as u32, ticks, data, length)? {
                Ok(segment) => {
                    found.segments.push(segment);
                    clocks.push(number as u32);
                }
                Err(other) => *found.others.entry(other).or_default() += 1,
            }
        }
        reader.consume(length);
    }
    found.steps = mend_steps(&mut found.segments, &clocks);
    // Processors and interfaces write what they have captured in turns.
    found.segments.sort_by_key(|segment| segment.at);
    Ok(found)
}

/// Ticks in a second, of powers of ten and of two (pcapng, option if_tsresol).
fn resolution(option: u8) -> Result<u64> {
    let power = u32::from(option & 0x7f);
    let ticks = if option < 0x80 { 10_u64.checked_pow(power) } else { 1_u64.checked_shl(power) };
    ticks.with_context(|| {
        format!("found timestamps of resolution {option:#04x}, expected at most 2^63 a second")
    })
}

/// Least step of a clock. Neighbours that changed places are closer than that, or few.
const STEP: Span = Span::from_millis(2);
/// So many segments in a row are before the latest one, where a clock was set back.
const ROW: usize = 16;

/// Moves times behind a step on by it, for each clock. Returns the number of steps and the longest.
fn mend_steps(segments: &mut [Segment], clocks: &[u32]) -> (u32, Span) {
    let (mut count, mut longest) = (0, Span::ZERO);
    let different: BTreeSet<u32> = clocks.iter().copied().collect();
    for clock in different {
        let places: Vec<usize> = (0..clocks.len()).filter(|place| clocks[*place] == clock).collect();
        let (mut latest, mut shift) = (Time::ZERO, Span::ZERO);
        for (number, place) in places.iter().enumerate() {
            let step = latest.since(segments[*place].at + shift);
            if step >= STEP {
                let row = &places[number..places.len().min(number + ROW)];
                if row.len() >= 4 && row.iter().all(|place| segments[*place].at + shift < latest) {
                    (count, longest, shift) = (count + 1, longest.max(step), shift + step);
                }
            }
            segments[*place].at += shift;
            latest = latest.max(segments[*place].at);
        }
    }
    (count, longest)
}

struct Interface {
    link: Linktype,
    ticks_per_second: u64,
    /// Seconds to add.
    offset: i64,
}

impl Interface {
    fn new(link: Linktype, ticks_per_second: u64, offset: i64) -> Self {
        // The upper bits tell whether frames end with a checksum, and its length.
        Self { link: Linktype(link.0 & 0xffff), ticks_per_second, offset }
    }

    fn time(&self, ticks: u64) -> Time {
        let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(self.ticks_per_second);
        let offset = u64::try_from(self.offset).unwrap_or(0).saturating_mul(1_000_000_000);
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX).saturating_add(offset))
    }
}

/// Reads the TCP segment of a frame, or names what else is in it.
fn segment(
    interface: &Interface,
    number: u32,
    ticks: u64,
    frame: &[u8],
    length: u32,
) -> Result<Result<Segment, String>> {
    let mut packet = match frames::packet(interface.link, frame)? {
        Inner::Ip(packet) => packet,
        Inner::Other(name) => return Ok(Err(name)),
    };
    // The "any" device's header names the true interface, in network order (bytes 4 to 8).
    let number = match (interface.link, frame.get(4..8)) {
        (Linktype::LINUX_SLL2, Some(index)) => index.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)),
        _ => number,
    };
    let mut outer = 0;
    let (ip, before) = loop {
        let Ok((ip, _)) = LaxIpSlice::from_slice(packet) else {
            return Ok(Err("IP headers that are wrong or cut".into()));
        };
        let before = headers(&ip);
        let within = packet.get(before as usize..).unwrap_or_default();
        if !matches!(ip.payload().ip_number, ip_number::IPV4 | ip_number::IPV6) || outer > 0 {
            break (ip, before);
        }
        // IP within IP: DS-Lite, 6in4.
        (outer, packet) = (before, within);
    };
    let content = ip.payload();
    if content.fragmented {
        return Ok(Err("fragments of IP packets".into()));
    }
    if content.ip_number != ip_number::TCP {
        let name = content.ip_number.keyword_str().map(str::to_owned);
        return Ok(Err(name.unwrap_or_else(|| format!("IP protocol {}", content.ip_number.0))));
    }
    let Ok(tcp) = TcpSlice::from_slice(content.payload) else {
        return Ok(Err("TCP headers that are wrong or cut".into()));
    };
    // Segmentation offload and jumbograms have no length: the frame's tells it.
    let of_frame = length.saturating_sub((frame.len() - packet.len()) as u32);
    let (source, destination, total) = match &ip {
        LaxIpSlice::Ipv4(ip) => {
            let header = ip.header();
            let addresses = (IpAddr::from(header.source_addr()), IpAddr::from(header.destination_addr()));
            (addresses.0, addresses.1, u32::from(header.total_len()))
        }
        LaxIpSlice::Ipv6(ip) => {
            let header = ip.header();
            let addresses = (IpAddr::from(header.source_addr()), IpAddr::from(header.destination_addr()));
            let length = u32::from(header.payload_length());
            (addresses.0, addresses.1, if length == 0 { 0 } else { length + 40 })
        }
    };
    let total = if total == 0 { of_frame } else { total };
    let inner = before + tcp.header_len() as u32;
    let headers = outer + inner;
    let (mut maximum_segment, mut timestamps, mut behind_hole) = (None, None, None);
    for option in tcp.options_iterator().map_while(Result::ok) {
        match option {
            TcpOptionElement::MaximumSegmentSize(size) => maximum_segment = Some(size),
            TcpOptionElement::Timestamp(value, echo) => timestamps = Some((value, echo)),
            TcpOptionElement::SelectiveAcknowledgement((_, end), _) => behind_hole = Some(end),
            _ => {}
        }
    }
    Ok(Ok(Segment {
        at: interface.time(ticks),
        from: SocketAddr::new(source, tcp.source_port()),
        to: SocketAddr::new(destination, tcp.destination_port()),
        sequence: tcp.sequence_number(),
        acknowledges: tcp.ack().then(|| tcp.acknowledgment_number()),
        payload: total.saturating_sub(inner),
        headers,
        is_syn: tcp.syn(),
        maximum_segment,
        timestamps,
        behind_hole,
        interface: number,
    }))
}

/// Bytes from the beginning of an IP header to what it carries: options and extensions included.
fn headers(ip: &LaxIpSlice<'_>) -> u32 {
    let length = match ip {
        LaxIpSlice::Ipv4(ip) => {
            let authentication = ip.extensions().auth.map_or(0, |header| header.slice().len());
            ip.header().slice().len() + authentication
        }
        LaxIpSlice::Ipv6(ip) => ip.header().slice().len() + ip.extensions().slice().len(),
    };
    length as u32
}
