//! An unprivileged path between UDP programs: clients send to the relay, the relay to the server.
//!
//! Each client has its own socket to the server, so that answers find their way back. Clients idle
//! for too long are removed, and their number is limited. ECN marks cross the relay both ways.

use std::collections::BTreeMap;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use headstart_net::Direction;
use headstart_units::{Span, Time};
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use socket2::{Domain, Protocol, Socket, Type};

use crate::clock::Clock;
use crate::error::RelayError;
use crate::log::Log;
use crate::packet::{Content, HeaderSummary, Packet, UDP};
use crate::path::Path;
use crate::relay::{self, Ends, Handle, Inbox, Relay, Stop};

/// Addresses and limits of a relay.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Address for clients; port 0 selects a free one.
    pub listen: SocketAddr,
    /// The server.
    pub server: SocketAddr,
    /// Limit on concurrent clients.
    pub most_clients: usize,
    /// Idle timeout of a client, in both directions.
    pub idle: Span,
    /// The server receives from the client's own address, not the relay's: for clients of this
    /// host, on loopback addresses.
    pub keeps_addresses: bool,
}

impl Settings {
    /// A relay for programs of this host in front of `server`, on a free loopback port.
    #[must_use]
    pub const fn before(server: SocketAddr) -> Self {
        let loopback = match server {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        };
        let listen = SocketAddr::new(loopback, 0);
        Self { listen, server, most_clients: 256, idle: Span::from_secs(120), keeps_addresses: false }
    }
}

/// Buffer requested of the kernel for a socket, in bytes; it may grant less.
const SOCKET_BUFFER: usize = 8 << 20;
/// Most bytes of a datagram.
const LONGEST: usize = 65_536;
const LISTENER: u64 = 0;
const STOP: u64 = u64::MAX;

#[derive(Debug)]
struct Port {
    socket: UdpSocket,
    state: UdpSocketState,
}

#[derive(Debug)]
struct Client {
    address: SocketAddr,
    /// The relay's address that the client sends to.
    ours: Option<IpAddr>,
    port: Port,
    last: Time,
}

/// The ends of a UDP path.
#[derive(Debug)]
pub struct UdpEnds {
    settings: Settings,
    epoll: std::os::fd::OwnedFd,
    listener: Port,
    /// Clients by number, counted from one.
    clients: BTreeMap<u64, Client>,
    numbers: BTreeMap<SocketAddr, u64>,
    next_number: u64,
    /// Sockets that may be readable.
    ready: Vec<u64>,
    buffer: Vec<u8>,
    headers: u8,
    /// Refusals reported by a send, to be counted with the next read.
    refused: u64,
    _stop: Stop,
}

impl Port {
    fn new(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        // A larger buffer helps; the system's limit is acceptable.
        let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
        let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
        socket.bind(&address.into())?;
        let socket = UdpSocket::from(socket);
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Self { socket, state })
    }

    fn send(&self, to: SocketAddr, from: Option<IpAddr>, packet: &Packet) -> io::Result<()> {
        let transmit = Transmit {
            destination: to,
            ecn: EcnCodepoint::from_bits(packet.ecn()),
            contents: packet.bytes(),
            segment_size: None,
            src_ip: from,
        };
        self.state.try_send((&self.socket).into(), &transmit)
    }
}

impl UdpEnds {
    /// Binds the listening port.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub fn new(settings: Settings, stop: Stop) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let listener = Port::new(settings.listen)?;
        let add =
            |fd, number| epoll::add(&epoll, fd, epoll::EventData::new_u64(number), epoll::EventFlags::IN);
        add(std::os::fd::AsFd::as_fd(&listener.socket), LISTENER)?;
        add(std::os::fd::AsFd::as_fd(stop.descriptor()), STOP)?;
        // Bytes of the UDP and IP headers on a link.
        let headers = if settings.server.is_ipv4() { 28 } else { 48 };
        Ok(Self {
            settings,
            epoll,
            listener,
            clients: BTreeMap::new(),
            numbers: BTreeMap::new(),
            next_number: 1,
            ready: vec![],
            buffer: vec![0; LONGEST * BATCH_SIZE],
            headers,
            refused: 0,
            _stop: stop,
        })
    }

    /// The address for clients.
    ///
    /// # Errors
    /// If the system does not report it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.socket.local_addr()
    }

    /// The number of the client at `address`; a new one if there is room.
    fn client(&mut self, address: SocketAddr, ours: Option<IpAddr>, now: Time) -> Option<u64> {
        if let Some(number) = self.numbers.get(&address) {
            return Some(*number);
        }
        if self.clients.len() >= self.settings.most_clients {
            return None;
        }
        let from: IpAddr = match self.settings.server {
            _ if self.settings.keeps_addresses => address.ip(),
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let port = Port::new(SocketAddr::new(from, 0)).ok()?;
        // Connected, so that a closed port is detected and no other host can answer.
        port.socket.connect(self.settings.server).ok()?;
        let number = self.next_number;
        let data = epoll::EventData::new_u64(number);
        epoll::add(&self.epoll, &port.socket, data, epoll::EventFlags::IN).ok()?;
        self.next_number += 1;
        self.clients.insert(number, Client { address, ours, port, last: now });
        self.numbers.insert(address, number);
        Some(number)
    }

    /// Reads a batch from one socket; true if it held any.
    fn read(&mut self, number: u64, clock: &Clock, into: &mut Inbox) -> bool {
        let direction = if number == LISTENER { Direction::Up } else { Direction::Down };
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let mut buffer = core::mem::take(&mut self.buffer);
        let found = {
            let port = match self.clients.get(&number) {
                Some(client) => &client.port,
                None => &self.listener,
            };
            let mut slices: Vec<IoSliceMut<'_>> = buffer.chunks_mut(LONGEST).map(IoSliceMut::new).collect();
            port.state.recv((&port.socket).into(), &mut slices, &mut metas)
        };
        let count = match found {
            Ok(count) => count,
            Err(error) => {
                self.buffer = buffer;
                // The read reports a refused connection once; the socket stays usable.
                return match relay_error(&error) {
                    RelayError::Full => false,
                    other => {
                        into.error(direction, other);
                        error.kind() == io::ErrorKind::ConnectionRefused
                    }
                };
            }
        };
        let arrived = clock.now();
        for (meta, bytes) in metas.iter().zip(buffer.chunks(LONGEST)).take(count) {
            let client = match direction {
                Direction::Up => self.client(meta.addr, meta.dst_ip, arrived),
                Direction::Down => Some(number),
            };
            // One read may hold several datagrams of equal size, the last one shorter (GRO).
            for payload in bytes[..meta.len.min(LONGEST)].chunks(meta.stride.max(1)) {
                let Some(client) = client else {
                    into.error(direction, RelayError::NoClient);
                    continue;
                };
                let ecn = meta.ecn.map_or(0, |ecn| ecn as u8);
                let (from, to) = match direction {
                    Direction::Up => (meta.addr.port(), self.settings.server.port()),
                    Direction::Down => {
                        let address = self.clients.get(&client).map(|client| client.address.port());
                        (self.settings.server.port(), address.unwrap_or(0))
                    }
                };
                let header = HeaderSummary {
                    protocol: UDP,
                    from,
                    to,
                    payload: payload.len() as u32,
                    ..HeaderSummary::default()
                };
                let content = Content::Datagram { payload: payload.to_vec(), headers: self.headers, ecn };
                into.packet(direction, Packet { number: 0, arrived, client, content, header });
            }
            if let Some(client) = client.and_then(|client| self.clients.get_mut(&client)) {
                client.last = arrived;
            }
        }
        self.buffer = buffer;
        true
    }
}

fn relay_error(error: &io::Error) -> RelayError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => RelayError::Full,
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::NetworkDown
        | io::ErrorKind::ConnectionReset => RelayError::Unreachable,
        _ => RelayError::Other,
    }
}

impl Ends for UdpEnds {
    fn wait(&mut self, timeout: Option<Span>) -> io::Result<()> {
        let mut events =
            [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; 64];
        // Polls the epoll descriptor itself: epoll's own timeout is in milliseconds, rounded up.
        if timeout != Some(Span::ZERO) {
            let mut polled = [PollFd::new(&self.epoll, PollFlags::IN)];
            match poll(&mut polled, timeout.map(timespec).as_ref()) {
                Ok(0) => return Ok(()),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match epoll::wait(&self.epoll, &mut events[..], Some(&timespec(Span::ZERO))) {
            Ok(count) => {
                self.ready.extend(events[..count].iter().map(|event| event.data.u64()));
                Ok(())
            }
            Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn receive(&mut self, clock: &Clock, into: &mut Inbox) -> io::Result<bool> {
        for _ in 0..core::mem::take(&mut self.refused) {
            into.error(Direction::Down, RelayError::Unreachable);
        }
        if self.ready.is_empty() {
            // A spinning relay does not wait, so poll here.
            self.wait(Some(Span::ZERO))?;
        }
        // The next wait reports sockets with remaining datagrams again.
        while let Some(number) = self.ready.pop() {
            if number != STOP && self.read(number, clock, into) {
                break;
            }
        }
        Ok(!self.ready.is_empty())
    }

    fn send(&mut self, direction: Direction, packet: &Packet) -> Result<(), RelayError> {
        let Some(client) = self.clients.get_mut(&packet.client) else { return Err(RelayError::NoClient) };
        let result = match direction {
            Direction::Up => match client.port.send(self.settings.server, None, packet) {
                // The error is of an earlier datagram: this one was not sent; the port may be open.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    self.refused += 1;
                    client.port.send(self.settings.server, None, packet)
                }
                result => result,
            },
            Direction::Down => self.listener.send(client.address, client.ours, packet),
        };
        result.map_err(|error| relay_error(&error))
    }

    fn on_second(&mut self, now: Time) {
        let idle = self.settings.idle;
        self.clients.retain(|_, client| now.since(client.last) <= idle);
        let clients = &self.clients;
        self.numbers.retain(|_, number| clients.contains_key(number));
    }
}

/// Starts a relay on its own thread; returns its address for clients and its handle.
///
/// # Errors
/// If the address cannot be bound or no thread can be started.
pub fn start(
    settings: Settings,
    up: Path<Packet>,
    down: Path<Packet>,
    clock: Clock,
    how: relay::Settings,
    log: Option<Log>,
) -> io::Result<(SocketAddr, Handle)> {
    let stop = Stop::new()?;
    let ends = UdpEnds::new(settings, stop.clone())?;
    let address = ends.address()?;
    let handle = Relay::new(ends, up, down, clock, how).with_log(log).start(stop)?;
    Ok((address, handle))
}

/// A timeout in the system's type.
pub(crate) fn timespec(span: Span) -> Timespec {
    let nanos = span.as_nanos();
    // A day at most, which fits every system's type.
    Timespec { tv_sec: (nanos / 1_000_000_000).min(86_400) as _, tv_nsec: (nanos % 1_000_000_000) as _ }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_has_microsecond_resolution() {
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        let mut ends =
            UdpEnds::new(Settings::before(server), Stop::new().expect("a descriptor")).expect("a port");
        let clock = Clock::start();
        let took = |wait: &mut dyn FnMut()| {
            let before = clock.now();
            wait();
            clock.now().since(before)
        };
        let (short, soon) = (Span::from_micros(100), Span::from_micros(900));
        let mut shortest = Span::from_secs(1);
        let mut anybodys = shortest;
        // On a loaded host most waits are late; one in time is proof enough.
        for _ in 0..2000 {
            shortest = shortest.min(took(&mut || ends.wait(Some(short)).expect("it waits")));
            assert!(shortest >= short, "{shortest}");
            if shortest < soon {
                return;
            }
            let pause = std::time::Duration::from_nanos(short.as_nanos());
            anybodys = anybodys.min(took(&mut || std::thread::park_timeout(pause)));
        }
        assert!(anybodys >= soon, "{shortest}, where a thread that only sleeps takes {anybodys}");
        headstart_host::not_run("this machine wakes nobody within a millisecond");
    }

    /// The kernel reports a refusal with the next operation, which then fails.
    #[test]
    fn a_refused_datagram_does_not_lose_later_ones() {
        // Only a port bound by number is kept when the socket is disconnected.
        let found = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|it| it.local_addr());
        let again = |_| UdpSocket::bind(found().expect("a port")).ok();
        let server = (0..100).find_map(again).expect("nobody takes a hundred ports");
        // A connected socket: it refuses all but its peer.
        server.connect((Ipv4Addr::LOCALHOST, 9)).expect("a peer");
        let address = server.local_addr().expect("bound");
        let mut ends = UdpEnds::new(Settings::before(address), Stop::new().expect("one")).expect("a port");
        let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let from = client.local_addr().expect("bound");
        let number = ends.client(from, None, Time::ZERO).expect("room");
        let packet = |text: &[u8]| {
            let content = Content::Datagram { payload: text.to_vec(), headers: 28, ecn: 0 };
            let header = HeaderSummary::default();
            Packet { number: 0, arrived: Time::ZERO, client: number, content, header }
        };
        ends.send(Direction::Up, &packet(b"too early")).expect("what becomes of it is not known yet");
        rustix::net::connect_unspec(&server).expect("everybody's");
        ends.send(Direction::Up, &packet(b"in time")).expect("sent");
        server.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("a time-out");
        let mut buffer = [0; 20];
        let length = server.recv(&mut buffer).expect("it was sent");
        assert_eq!(&buffer[..length], b"in time");
        let mut inbox = Inbox::default();
        ends.receive(&Clock::start(), &mut inbox).expect("read");
        assert_eq!(inbox.errors, [(Direction::Down, RelayError::Unreachable)]);
    }
}
