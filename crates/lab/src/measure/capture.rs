//! TCP segments of a packet capture: pcap (of any resolution) and pcapng, of Ethernet, raw IP and
//! Linux's "any" device. Headers are enough: captures may cut the payload off.

use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use etherparse::{LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TransportSlice};
use headstart_units::Time;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};

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

/// Segments that are read at most: some 7 GB of full packets.
const MAX_SEGMENTS: usize = 5_000_000;

/// Bytes of a block at most: pcapng blocks of a full 64 kB frame and its options fit twice.
const BUFFER: usize = 1 << 18;

/// The TCP segments of a capture, in its order; and whether there were more than can be read.
///
/// # Errors
/// The file cannot be read, is neither pcap nor pcapng, is damaged, or has an unknown link layer.
pub fn read(file: &Path) -> Result<(Vec<Segment>, bool)> {
    let opened = File::open(file)?;
    let mut reader = match create_reader(BUFFER, opened) {
        Ok(reader) => reader,
        Err(PcapError::Eof) => bail!("found an empty file, expected a pcap or pcapng capture"),
        Err(_) => bail!("found no header of pcap or pcapng, expected a packet capture (tcpdump -w)"),
    };
    let mut interfaces: Vec<Interface> = vec![];
    let mut segments = vec![];
    let mut ticks_per_second = 1_000_000;
    let mut has_grown = true;
    loop {
        let (length, block) = match reader.next() {
            Ok(next) => next,
            Err(PcapError::Eof) => return Ok((segments, false)),
            Err(PcapError::Incomplete(_)) if has_grown => {
                let before = reader.data().len();
                reader.refill().map_err(|_| anyhow::anyhow!("cannot be read any further"))?;
                has_grown = reader.data().len() > before;
                continue;
            }
            // A capture that was interrupted ends within a block.
            Err(PcapError::Incomplete(_) | PcapError::UnexpectedEof) => return Ok((segments, false)),
            Err(_) => bail!("damaged after {} TCP segments", segments.len()),
        };
        has_grown = true;
        let frame = match &block {
            PcapBlockOwned::LegacyHeader(header) => {
                ticks_per_second = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
                interfaces = vec![Interface { link: header.network, ticks_per_second, offset: 0 }];
                None
            }
            PcapBlockOwned::Legacy(packet) => {
                let ticks = u64::from(packet.ts_sec) * ticks_per_second + u64::from(packet.ts_usec);
                Some((0, ticks, packet.data))
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                interfaces.clear();
                None
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(described)) => {
                interfaces.push(Interface {
                    link: described.linktype,
                    ticks_per_second: described
                        .ts_resolution()
                        .filter(|ticks| *ticks > 0)
                        .context("found timestamps of another resolution than powers of ten")?,
                    offset: described.if_tsoffset,
                });
                None
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                Some((packet.if_id as usize, ticks, packet.data))
            }
            PcapBlockOwned::NG(_) => None,
        };
        if let Some((interface, ticks, data)) = frame {
            let number = interface as u32;
            let interface =
                interfaces.get(interface).context("a packet of an interface that was not described")?;
            if segments.len() == MAX_SEGMENTS {
                return Ok((segments, true));
            }
            segments.extend(segment(interface, number, ticks, data)?);
        }
        reader.consume(length);
    }
}

struct Interface {
    link: Linktype,
    ticks_per_second: u64,
    /// Seconds to add.
    offset: i64,
}

impl Interface {
    fn time(&self, ticks: u64) -> Time {
        let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(self.ticks_per_second);
        let offset = u64::try_from(self.offset).unwrap_or(0).saturating_mul(1_000_000_000);
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX).saturating_add(offset))
    }
}

/// Bytes of the header of Linux's "any" device, second version; the IP packet follows.
const COOKED: usize = 20;

fn segment(interface: &Interface, number: u32, ticks: u64, data: &[u8]) -> Result<Option<Segment>> {
    let sliced = match interface.link {
        Linktype::ETHERNET => LaxSlicedPacket::from_ethernet(data).ok(),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 | Linktype(12) => LaxSlicedPacket::from_ip(data).ok(),
        Linktype::LINUX_SLL => data.get(16..).and_then(|packet| LaxSlicedPacket::from_ip(packet).ok()),
        Linktype::LINUX_SLL2 => data.get(COOKED..).and_then(|packet| LaxSlicedPacket::from_ip(packet).ok()),
        Linktype::NULL | Linktype::LOOP => {
            data.get(4..).and_then(|packet| LaxSlicedPacket::from_ip(packet).ok())
        }
        Linktype(other) => {
            bail!("found link layer {other}, expected Ethernet (1), raw IP (101) or Linux's (113, 276)")
        }
    };
    // The "any" device's header names the true interface, in network order (bytes 4 to 8).
    let number = match (interface.link, data.get(4..8)) {
        (Linktype::LINUX_SLL2, Some(index)) => index.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)),
        _ => number,
    };
    let Some(LaxSlicedPacket { net: Some(net), transport: Some(TransportSlice::Tcp(tcp)), .. }) = sliced
    else {
        return Ok(None);
    };
    let (source, destination, total) = match &net {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            let addresses = (IpAddr::from(header.source_addr()), IpAddr::from(header.destination_addr()));
            (addresses.0, addresses.1, u32::from(header.total_len()))
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let addresses = (IpAddr::from(header.source_addr()), IpAddr::from(header.destination_addr()));
            (addresses.0, addresses.1, u32::from(header.payload_length()) + 40)
        }
        LaxNetSlice::Arp(_) => return Ok(None),
    };
    let ip = match net {
        LaxNetSlice::Ipv4(ip) => u32::from(ip.header().ihl()) * 4,
        _ => 40,
    };
    let headers = ip + tcp.header_len() as u32;
    let (mut maximum_segment, mut timestamps, mut behind_hole) = (None, None, None);
    for option in tcp.options_iterator().map_while(Result::ok) {
        match option {
            TcpOptionElement::MaximumSegmentSize(size) => maximum_segment = Some(size),
            TcpOptionElement::Timestamp(value, echo) => timestamps = Some((value, echo)),
            TcpOptionElement::SelectiveAcknowledgement((_, end), _) => behind_hole = Some(end),
            _ => {}
        }
    }
    Ok(Some(Segment {
        at: interface.time(ticks),
        from: SocketAddr::new(source, tcp.source_port()),
        to: SocketAddr::new(destination, tcp.destination_port()),
        sequence: tcp.sequence_number(),
        acknowledges: tcp.ack().then(|| tcp.acknowledgment_number()),
        payload: total.saturating_sub(headers),
        headers,
        is_syn: tcp.syn(),
        maximum_segment,
        timestamps,
        behind_hole,
        interface: number,
    }))
}
