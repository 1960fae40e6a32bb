//! A TUN device: packets routed into it are read from its descriptor; those written there arrive.
//!
//! A device is not persistent: it disappears with its last descriptor, with its addresses and
//! routes, whichever way its process ends. Nothing here changes another device or a setting of the
//! whole host.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, OwnedFd};

use neli::ToBytes;
use neli::consts::nl::NlmF;
use neli::consts::rtnl::{
    Ifa, IfaF, Ifla, RtAddrFamily, RtScope, RtTable, Rta, RtaType, Rtm, RtmF, Rtn, Rtprot,
};
use neli::consts::socket::NlFamily;
use neli::nl::{NlPayload, Nlmsghdr, NlmsghdrBuilder};
use neli::rtnl::{
    Ifaddrmsg, IfaddrmsgBuilder, Ifinfomsg, IfinfomsgBuilder, Rtattr, RtattrBuilder, Rtmsg, RtmsgBuilder,
};
use neli::socket::synchronous::NlSocketHandle;
use neli::types::{Buffer, RtBuffer};
use neli::utils::Groups;
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

/// Packets that the kernel queues for a delayed relay: 100 ms of full packets at 1 Gbit/s.
const QUEUE: u32 = 8192;

/// A device with its addresses and routes, up.
#[derive(Debug)]
pub struct Device {
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
        Ok(Self { descriptor })
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
    // A host without IPv6 has no IPv6 behind the path.
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

/// A netlink socket for routing. It has no thread of its own: a process that makes a user namespace
/// must have one thread.
struct Netlink(NlSocketHandle);

/// The error of a message that lacks a field: a fault of this file.
fn unbuilt(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("a request to the kernel could not be built: {error}"))
}

fn attribute<T>(kind: T, payload: impl ToBytes + neli::Size) -> io::Result<Rtattr<T, Buffer>>
where
    T: RtaType,
{
    RtattrBuilder::default().rta_type(kind).rta_payload(payload).build().map_err(unbuilt)
}

fn address_attribute<T: RtaType>(kind: T, address: IpAddr) -> io::Result<Rtattr<T, Buffer>> {
    match address {
        IpAddr::V4(address) => attribute(kind, address.octets()),
        IpAddr::V6(address) => attribute(kind, address.octets()),
    }
}

const fn family(is_six: bool) -> RtAddrFamily {
    if is_six { RtAddrFamily::Inet6 } else { RtAddrFamily::Inet }
}

impl Netlink {
    fn new() -> io::Result<Self> {
        NlSocketHandle::connect(NlFamily::Route, None, Groups::empty())
            .map(Self)
            .map_err(|error| io::Error::other(format!("netlink cannot be used here: {error}")))
    }

    fn request<P>(&self, what: &str, kind: Rtm, message: P, flags: NlmF) -> io::Result<()>
    where
        P: neli::Size + ToBytes + neli::FromBytesWithInput<Input = usize>,
    {
        let request = NlmsghdrBuilder::default()
            .nl_type(kind)
            .nl_flags(NlmF::REQUEST | NlmF::ACK | flags)
            .nl_payload(NlPayload::Payload(message))
            .build()
            .map_err(unbuilt)?;
        let of_netlink = |error| io::Error::other(format!("{what}: the kernel's answer: {error}"));
        self.0.send(&request).map_err(of_netlink)?;
        let (answers, _) = self.0.recv::<Rtm, P>().map_err(of_netlink)?;
        for answer in answers {
            let answer: Nlmsghdr<Rtm, P> = answer.map_err(of_netlink)?;
            if let NlPayload::Err(error) = answer.nl_payload() {
                return Err(with_context(what, &io::Error::from_raw_os_error(-error.error())));
            }
        }
        Ok(())
    }

    fn set_up(&self, index: u32, lengths: Option<(u32, u32)>) -> io::Result<()> {
        let mut attributes = RtBuffer::new();
        if let Some((mtu, queue)) = lengths {
            attributes.push(attribute(Ifla::Mtu, mtu)?);
            attributes.push(attribute(Ifla::Txqlen, queue)?);
        }
        let message: Ifinfomsg = IfinfomsgBuilder::default()
            .ifi_family(RtAddrFamily::Unspecified)
            .ifi_index(i32::try_from(index).map_err(unbuilt)?)
            .up()
            .rtattrs(attributes)
            .build()
            .map_err(unbuilt)?;
        self.request("cannot bring the device up", Rtm::Setlink, message, NlmF::empty())
    }

    fn add_address(&self, index: u32, ours: IpAddr, peer: IpAddr) -> io::Result<()> {
        let message: Ifaddrmsg = IfaddrmsgBuilder::default()
            .ifa_family(family(ours.is_ipv6()))
            .ifa_prefixlen(if ours.is_ipv6() { 128 } else { 32 })
            .ifa_flags(IfaF::NODAD)
            .ifa_scope(RtScope::Universe)
            .ifa_index(index)
            .rtattrs(
                [address_attribute(Ifa::Local, ours)?, address_attribute(Ifa::Address, peer)?]
                    .into_iter()
                    .collect(),
            )
            .build()
            .map_err(unbuilt)?;
        let flags = NlmF::CREATE | NlmF::EXCL;
        self.request("cannot give the device its address", Rtm::Newaddr, message, flags)
    }

    /// All addresses are local, except those with a more specific route. In the main table: the
    /// local table precedes all others, and would divert answers from the device.
    fn add_local_route(&self, index: u32, is_six: bool) -> io::Result<()> {
        let message = route(index, is_six, RtScope::Host, Rtn::Local, None)?;
        let flags = NlmF::CREATE | NlmF::EXCL;
        self.request("cannot make all addresses local", Rtm::Newroute, message, flags)
    }

    fn add_route(&self, index: u32, to: Option<(IpAddr, u8)>, is_six: bool) -> io::Result<()> {
        let scope = if is_six { RtScope::Universe } else { RtScope::Link };
        let message = route(index, is_six, scope, Rtn::Unicast, to)?;
        let flags = NlmF::CREATE | NlmF::EXCL;
        self.request("cannot set the route across the path", Rtm::Newroute, message, flags)
    }
}

/// A route of the main table through the device of `index`, to everywhere without a destination.
fn route(index: u32, is_six: bool, scope: RtScope, kind: Rtn, to: Option<(IpAddr, u8)>) -> io::Result<Rtmsg> {
    let mut attributes = RtBuffer::new();
    attributes.push(attribute(Rta::Oif, index)?);
    if let Some((first, _)) = to {
        attributes.push(address_attribute(Rta::Dst, first)?);
    }
    RtmsgBuilder::default()
        .rtm_family(family(is_six))
        .rtm_dst_len(to.map_or(0, |(_, length)| length))
        .rtm_src_len(0)
        .rtm_tos(0)
        .rtm_table(RtTable::Main)
        .rtm_protocol(Rtprot::Static)
        .rtm_scope(scope)
        .rtm_type(kind)
        .rtm_flags(RtmF::empty())
        .rtattrs(attributes)
        .build()
        .map_err(unbuilt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_the_kernel_refuses_is_an_error_that_names_it() {
        let netlink = Netlink::new().expect("every process may open a netlink socket");
        // No device has this index, and without privileges none may be changed.
        let error = netlink.set_up(i32::MAX as u32, None).expect_err("no device has this index");
        assert!(error.to_string().starts_with("cannot bring the device up"), "{error}");
    }
}
