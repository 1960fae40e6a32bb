//! A TUN device: packets routed into it can be read from its descriptor, and packets written there
//! arrive from it.
//!
//! A device is not persistent: it disappears with its last descriptor, with its addresses and
//! routes, whichever way its process ends. Nothing here changes another device or a setting of the
//! whole host.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, OwnedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tun_rs::DeviceBuilder;

use crate::address::{Block, beside};

/// Settings of a device.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Local address.
    pub ours: Ipv4Addr,
    /// The address at the other end of the path.
    pub peer: Ipv4Addr,
    /// Destination of its route: the other end's block; `None` for the default route.
    pub leads_to: Option<Block>,
    /// MTU in bytes.
    pub mtu: u16,
}

/// Packets that the kernel queues for a delayed relay: ten times a hundredth of a second at 1
/// Gbit/s.
const QUEUE: u32 = 8192;

/// A device with its addresses and routes, up.
#[derive(Debug)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Reads and writes packets; non-blocking.
    pub descriptor: OwnedFd,
}

impl Device {
    /// Creates a device in this thread's namespace.
    ///
    /// # Errors
    /// If this process lacks the privilege, or an address or route is taken.
    pub fn new(name: &str, settings: &Settings) -> io::Result<Self> {
        let device = DeviceBuilder::new()
            .name(name)
            .packet_information(false)
            .enable(false)
            .build_sync()
            .map_err(|error| with_context("cannot make a TUN device", &error))?;
        let name = device.name()?;
        let descriptor = device.as_fd().try_clone_to_owned()?;
        drop(device);
        let flags = fcntl_getfl(&descriptor)?;
        fcntl_setfl(&descriptor, flags | OFlags::NONBLOCK)?;

        let index = index(&name)?;
        let netlink = Netlink::new()?;
        // Disables the kernel's neighbour discovery: the path has no neighbours.
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/addr_gen_mode"), "1");
        netlink.set_up(index, Some((u32::from(settings.mtu), QUEUE)))?;
        netlink.add_address(index, settings.ours.into(), settings.peer.into())?;
        netlink.add_route(
            index,
            settings.leads_to.map(|block| (IpAddr::from(block.prefix().0), block.prefix().1)),
            false,
        )?;
        // A host without IPv6 has paths without IPv6.
        let six = netlink.add_address(index, beside(settings.ours).into(), beside(settings.peer).into());
        if six.is_ok() {
            let leads_to =
                settings.leads_to.map(|block| (beside(block.prefix().0).into(), 96 + block.prefix().1));
            netlink.add_route(index, leads_to, true)?;
        }
        Ok(Self { name, descriptor })
    }
}

/// Brings up the loopback of this thread's namespace.
///
/// # Errors
/// If this process lacks the privilege.
pub fn set_loopback_up() -> io::Result<()> {
    Netlink::new()?.set_up(index("lo")?, None)
}

/// Makes every address without a more specific route local to this thread's namespace, so that
/// sockets accept packets for any destination.
///
/// # Errors
/// If this process lacks the privilege.
pub fn add_local_routes() -> io::Result<()> {
    let netlink = Netlink::new()?;
    let index = index("lo")?;
    netlink.add_local_route(index, false)?;
    // A host without IPv6 has no IPv6 beyond the path.
    let _ = netlink.add_local_route(index, true);
    Ok(())
}

/// True if a route of this thread's namespace, other than the default, leads into `block`.
///
/// # Errors
/// If the table cannot be read.
pub fn is_taken(block: Block) -> io::Result<bool> {
    let table = std::fs::read_to_string("/proc/self/net/route")?;
    let routes = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok().map(u32::swap_bytes);
        let (first, mask) = (number(1)?, number(7)?);
        // The table is in the host's byte order.
        Some(if cfg!(target_endian = "little") {
            (first, mask)
        } else {
            (first.swap_bytes(), mask.swap_bytes())
        })
    });
    Ok(routes
        .filter(|(_, mask)| *mask != 0)
        .any(|(first, mask)| Block::from_mask(first, mask).overlaps(block)))
}

fn with_context(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

fn index(name: &str) -> io::Result<u32> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    Ok(rustix::net::netdevice::name_to_index(&socket, name)?)
}

/// A netlink socket for routing.
struct Netlink(Socket);

impl Netlink {
    fn new() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self(socket))
    }

    fn request(&self, what: &str, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::from(message));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.0.send(&bytes, 0)?;
        let (answer, _) = self.0.recv_from_full()?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
            .map_err(|error| io::Error::other(format!("{what}: the kernel's answer: {error}")))?;
        match answer.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(with_context(what, &error.to_io())),
            _ => Ok(()),
        }
    }

    fn set_up(&self, index: u32, lengths: Option<(u32, u32)>) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        if let Some((mtu, queue)) = lengths {
            message.attributes = vec![LinkAttribute::Mtu(mtu), LinkAttribute::TxQueueLen(queue)];
        }
        self.request("cannot bring the device up", RouteNetlinkMessage::SetLink(message), 0)
    }

    fn add_address(&self, index: u32, ours: IpAddr, peer: IpAddr) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.index = index;
        (message.header.family, message.header.prefix_len) = match ours {
            IpAddr::V4(_) => (AddressFamily::Inet, 32),
            IpAddr::V6(_) => (AddressFamily::Inet6, 128),
        };
        message.header.flags = AddressHeaderFlags::Nodad;
        message.attributes = vec![AddressAttribute::Local(ours), AddressAttribute::Address(peer)];
        let message = RouteNetlinkMessage::NewAddress(message);
        self.request("cannot give the device its address", message, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// All addresses are local, except those with a more specific route. In the main table: the
    /// local table precedes all others, and would divert answers from the device.
    fn add_local_route(&self, index: u32, is_six: bool) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: if is_six { AddressFamily::Inet6 } else { AddressFamily::Inet },
            table: RouteHeader::RT_TABLE_MAIN,
            protocol: RouteProtocol::Static,
            scope: RouteScope::Host,
            kind: RouteType::Local,
            ..RouteHeader::default()
        };
        message.attributes = vec![RouteAttribute::Oif(index)];
        let message = RouteNetlinkMessage::NewRoute(message);
        self.request("cannot make all addresses local", message, NLM_F_CREATE | NLM_F_EXCL)
    }

    fn add_route(&self, index: u32, to: Option<(IpAddr, u8)>, is_six: bool) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: if is_six { AddressFamily::Inet6 } else { AddressFamily::Inet },
            destination_prefix_length: to.map_or(0, |(_, length)| length),
            table: RouteHeader::RT_TABLE_MAIN,
            protocol: RouteProtocol::Static,
            scope: if is_six { RouteScope::Universe } else { RouteScope::Link },
            kind: RouteType::Unicast,
            ..RouteHeader::default()
        };
        message.attributes = vec![RouteAttribute::Oif(index)];
        if let Some((first, _)) = to {
            message.attributes.push(RouteAttribute::Destination(RouteAddress::from(first)));
        }
        let message = RouteNetlinkMessage::NewRoute(message);
        self.request("cannot set the route across the path", message, NLM_F_CREATE | NLM_F_EXCL)
    }
}
