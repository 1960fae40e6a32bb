//! User-space NAT: terminates a program's TCP and UDP and relays them over this host's sockets.
//!
//! A host that does not forward would drop packets for other hosts, and forwarding is a setting of
//! the whole host. So the path has a second outer end, in a network namespace of its own in which
//! every address is local. The kernel there accepts connections to any destination. The gateway
//! connects to the true address and relays bytes. For each new address and port a socket is opened
//! before the first packet to it is delivered.
//!
//! Only this thread's namespace is changed; it disappears with its sockets.
//!
//! # Limits
//!
//! - Only TCP and UDP are relayed; other packets are counted as errors.
//! - TCP is split into two connections: on the path this host sends with its own congestion
//!   control, not the server's, and the client's handshake completes before the server is
//!   contacted. UDP is relayed as it is, so QUIC is end to end.
//! - A datagram's ECN bits are lost; answers bear address and port of the request's destination.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::device::{self, Device};
use crate::namespace::unshare_network;
use crate::packet::{HeaderSummary, TCP, UDP, version};
use crate::relay::{Urgency, prepare_thread};

/// Limit on destinations, on connections and on UDP clients, each.
const MAX_ENTRIES: usize = 1024;
/// Time limit for a connection to a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Idle timeout of a UDP client.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes relayed at a time; no datagram is longer.
const CHUNK: usize = 65_536;
const BACKLOG: i32 = 128;

/// Destination of a packet: protocol, address and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Destination {
    protocol: u8,
    address: SocketAddr,
}

/// The outer end for destinations beyond this host.
#[derive(Debug)]
pub struct Gateway {
    /// Reads and writes packets.
    pub descriptor: OwnedFd,
    /// Destinations, and whether a socket is open for each.
    destinations: BTreeMap<Destination, Arc<AtomicBool>>,
    /// Addresses, and whether they are local to this host.
    is_local: BTreeMap<IpAddr, bool>,
    first_packets: Sender<FirstPacket>,
}

/// The first packet to a destination, and the flag to set once its socket is open.
type FirstPacket = (Destination, Vec<u8>, Arc<AtomicBool>);

/// Route of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// To this host or another path's end: not through the gateway.
    Local,
    /// To be written to the gateway's descriptor.
    Open,
    /// Queued at the gateway: the first packet to its destination.
    Queued,
    /// Protocol not supported, or too many destinations.
    Refused,
}

impl Gateway {
    /// A gateway whose device is at the other end of the path from `settings.peer`. The calling
    /// thread keeps its namespace; connections are opened from there.
    ///
    /// # Errors
    /// If this process may not create namespaces or devices.
    pub fn new(settings: device::Settings) -> io::Result<Self> {
        let (first_packets, received) = channel();
        let (accepted, events) = channel();
        let (made, device) = channel();
        thread::Builder::new().name("headstart-gateway".into()).spawn(move || {
            prepare_thread(Urgency::End);
            let prepared = prepare(&settings);
            let copy = prepared.as_ref().map_err(copied).and_then(|device| device.descriptor.try_clone());
            let _ = made.send(copy);
            if let Ok(device) = prepared {
                open_all(&device, &received, &accepted);
            }
        })?;
        let descriptor = device.recv().map_err(|_| io::Error::other("the gateway's thread has failed"))??;
        // Runs in the caller's namespace.
        thread::Builder::new().name("headstart-nat".into()).spawn(move || relay_all(&events))?;
        Ok(Self { descriptor, destinations: BTreeMap::new(), is_local: BTreeMap::new(), first_packets })
    }

    /// Routes a packet. The first to an address and port is queued until its socket is open.
    pub fn pass(&mut self, packet: &[u8], header: &HeaderSummary) -> Route {
        let Some(to) = destination(packet) else { return Route::Refused };
        if self.is_local(to) {
            return Route::Local;
        }
        if !matches!(header.protocol, TCP | UDP) || header.to == 0 {
            return Route::Refused;
        }
        let destination = Destination { protocol: header.protocol, address: SocketAddr::new(to, header.to) };
        let count = self.destinations.len();
        let is_open = match self.destinations.entry(destination) {
            Entry::Occupied(known) if known.get().load(Ordering::Acquire) => return Route::Open,
            Entry::Occupied(known) => Arc::clone(known.get()),
            Entry::Vacant(_) if count >= MAX_ENTRIES => return Route::Refused,
            Entry::Vacant(new) => Arc::clone(new.insert(Arc::default())),
        };
        match self.first_packets.send((destination, packet.to_vec(), is_open)) {
            Ok(()) => Route::Queued,
            Err(_) => Route::Refused,
        }
    }

    /// True for an address of this host or of a path's end.
    fn is_local(&mut self, address: IpAddr) -> bool {
        if is_of_a_path(address) {
            return true;
        }
        if self.is_local.len() >= MAX_ENTRIES {
            self.is_local.clear();
        }
        // A local address can be bound; nothing is sent.
        *self.is_local.entry(address).or_insert_with(|| UdpSocket::bind((address, 0)).is_ok())
    }
}

fn copied(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}

/// True for the blocks of [`crate::address`].
fn is_of_a_path(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[0] == 100 && address.octets()[1] & 0xc0 == 64,
        IpAddr::V6(address) => address.segments()[..3] == [0xfd68, 0x6561, 0x6473],
    }
}

fn destination(packet: &[u8]) -> Option<IpAddr> {
    Some(match version(packet)? {
        4 => IpAddr::from(<[u8; 4]>::try_from(packet.get(16..20)?).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(packet.get(24..40)?).ok()?),
    })
}

// --- in the gateway's namespace ------------------------------------------------------------------

fn prepare(settings: &device::Settings) -> io::Result<Device> {
    unshare_network()?;
    device::set_loopback_up()?;
    let device = Device::new("headstart", settings)?;
    device::add_local_routes()?;
    Ok(device)
}

/// A client's connection or datagram, to be relayed.
enum ClientEvent {
    Stream(TcpStream, SocketAddr),
    /// The socket that received it, the client, and the payload.
    Datagram(Arc<UdpSocket>, SocketAddr, Vec<u8>),
}

/// Opens a socket for each destination, and then delivers its first packet.
fn open_all(device: &Device, first_packets: &Receiver<FirstPacket>, accepted: &Sender<ClientEvent>) {
    let mut opened = BTreeSet::new();
    while let Ok((destination, packet, is_open)) = first_packets.recv() {
        if opened.insert(destination) {
            // Without a socket the kernel refuses the connection, which is a valid answer.
            let _ = match destination.protocol {
                TCP => accept_connections(destination.address, accepted.clone()),
                _ => receive_datagrams(destination.address, accepted.clone()),
            };
        }
        let _ = rustix::io::write(&device.descriptor, &packet);
        is_open.store(true, Ordering::Release);
    }
}

fn socket(address: SocketAddr, kind: Type, protocol: Protocol) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    // The address is local in this namespace, but of no device.
    if address.is_ipv4() {
        socket.set_freebind_v4(true)?
    } else {
        socket.set_freebind_v6(true)?
    }
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}

fn accept_connections(address: SocketAddr, accepted: Sender<ClientEvent>) -> io::Result<()> {
    let socket = socket(address, Type::STREAM, Protocol::TCP)?;
    socket.listen(BACKLOG)?;
    let listener = TcpListener::from(socket);
    small_thread(move || {
        prepare_thread(Urgency::End);
        while let Ok((stream, _)) = listener.accept() {
            if accepted.send(ClientEvent::Stream(stream, address)).is_err() {
                break;
            }
        }
    })
}

fn receive_datagrams(address: SocketAddr, accepted: Sender<ClientEvent>) -> io::Result<()> {
    let socket = Arc::new(UdpSocket::from(socket(address, Type::DGRAM, Protocol::UDP)?));
    small_thread(move || {
        prepare_thread(Urgency::End);
        // Receives datagrams of all clients of this destination.
        let mut buffer = vec![0; CHUNK];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let datagram = ClientEvent::Datagram(Arc::clone(&socket), from, buffer[..length].to_vec());
            if accepted.send(datagram).is_err() {
                break;
            }
        }
    })
}

fn small_thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().stack_size(256 * 1024).spawn(work).map(drop)
}

// --- in the caller's namespace -------------------------------------------------------------------

/// A socket to a server for one client, and whether it is still open.
type UdpMapping = (UdpSocket, Arc<AtomicBool>);

/// Relays connections and datagrams to their servers.
fn relay_all(events: &Receiver<ClientEvent>) {
    prepare_thread(Urgency::End);
    let busy = Arc::new(AtomicUsize::new(0));
    let mut mappings: BTreeMap<(SocketAddr, SocketAddr), UdpMapping> = BTreeMap::new();
    while let Ok(event) = events.recv() {
        match event {
            ClientEvent::Stream(stream, address) => {
                if busy.fetch_add(1, Ordering::AcqRel) >= MAX_ENTRIES {
                    busy.fetch_sub(1, Ordering::AcqRel);
                    continue;
                }
                let over = Arc::clone(&busy);
                let _ = small_thread(move || {
                    prepare_thread(Urgency::End);
                    // On failure the client's connection is reset.
                    let _ = connect(&stream, address);
                    over.fetch_sub(1, Ordering::AcqRel);
                });
            }
            ClientEvent::Datagram(listening, from, datagram) => {
                let Ok(address) = listening.local_addr() else { continue };
                mappings.retain(|_, (_, is_open)| is_open.load(Ordering::Acquire));
                if !mappings.contains_key(&(from, address))
                    && mappings.len() < MAX_ENTRIES
                    && let Ok(mapping) = open_mapping(&listening, from, address)
                {
                    mappings.insert((from, address), mapping);
                }
                if let Some((socket, _)) = mappings.get(&(from, address)) {
                    // A refusal concerns an earlier datagram: this one has not been sent.
                    let is_stale = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
                    if socket.send(&datagram).is_err_and(|error| is_stale(&error)) {
                        // A second failure loses the datagram, as UDP may.
                        let _ = socket.send(&datagram);
                    }
                }
            }
        }
    }
}

/// A socket to a server for one client, and a thread that relays the server's answers.
fn open_mapping(listening: &Arc<UdpSocket>, from: SocketAddr, server: SocketAddr) -> io::Result<UdpMapping> {
    let any: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(IDLE_TIMEOUT))?;
    let is_open = Arc::new(AtomicBool::new(true));
    let (server_side, client_side, over) = (socket.try_clone()?, Arc::clone(listening), Arc::clone(&is_open));
    small_thread(move || {
        prepare_thread(Urgency::End);
        let mut buffer = vec![0; CHUNK];
        loop {
            match server_side.recv(&mut buffer) {
                Ok(length) => drop(client_side.send_to(&buffer[..length], from)),
                // The server's port is closed: a later datagram may find it open.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(_) => break,
            }
        }
        over.store(false, Ordering::Release);
    })?;
    Ok((socket, is_open))
}

/// Connects, and relays in both directions until both have ended.
fn connect(stream: &TcpStream, address: SocketAddr) -> io::Result<()> {
    let server = match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
        Ok(server) => server,
        Err(error) => {
            // A reset instead of FIN: nothing was served.
            let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
            return Err(error);
        }
    };
    for one in [stream, &server] {
        one.set_nodelay(true)?;
    }
    let (client, back) = (stream.try_clone()?, server.try_clone()?);
    let down = thread::Builder::new().stack_size(256 * 1024).spawn(move || {
        prepare_thread(Urgency::End);
        let _ = io::copy(&mut &back, &mut &client);
        let _ = client.shutdown(Shutdown::Write);
    })?;
    let _ = io::copy(&mut &*stream, &mut &server);
    let _ = server.shutdown(Shutdown::Write);
    let _ = down.join();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_paths_are_distinguished_from_others() {
        for (address, is_ours) in [
            ("100.64.0.1", true),
            ("100.127.255.255", true),
            ("100.63.0.1", false),
            ("100.128.0.1", false),
            ("10.0.0.1", false),
            ("fd68:6561:6473::6440:4002", true),
            ("fd68:6561:6474::1", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(is_of_a_path(address.parse().expect("an address")), is_ours, "{address}");
        }
    }

    #[test]
    fn the_destination_of_a_packet_is_parsed_and_a_truncated_packet_has_none() {
        let mut packet = vec![0x45; 20];
        packet[16..].copy_from_slice(&[192, 0, 2, 7]);
        assert_eq!(destination(&packet), Some(IpAddr::from([192, 0, 2, 7])));
        assert_eq!(destination(&packet[..19]), None);
        let mut six = vec![0x60; 40];
        six[24..].copy_from_slice(&Ipv6Addr::LOCALHOST.octets());
        assert_eq!(destination(&six), Some(IpAddr::from(Ipv6Addr::LOCALHOST)));
        assert_eq!(destination(&[]), None);
    }
}
