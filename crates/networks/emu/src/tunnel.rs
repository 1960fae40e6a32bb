//! A path between two TUN devices, in any two namespaces.

use std::io;
use std::os::fd::OwnedFd;

use headstart_net::Direction;
use headstart_units::Span;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::clock::Clock;
use crate::error::RelayError;
use crate::gateway::{Gateway, Route};
use crate::packet::{Content, HeaderSummary, Packet, is_link_local, version};
use crate::relay::{Ends, Inbox, Stop};
use crate::udp::timespec;

/// Packets read from one device before the other.
const BATCH: usize = 32;
/// Most bytes of a packet on a device.
const MAX_PACKET: usize = 65_536;

/// The two devices.
#[derive(Debug)]
pub struct TunnelEnds {
    /// The program's device.
    inside: Side,
    outside: Side,
    /// The gateway for other hosts, and whether it has failed.
    gateway: Option<(Gateway, bool)>,
    stop: Stop,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum From {
    Inside,
    Outside,
    Gateway,
}

#[derive(Debug)]
struct Side {
    descriptor: OwnedFd,
    is_down: bool,
}

impl TunnelEnds {
    /// A path between the program's device and that outside; both descriptors are non-blocking.
    #[must_use]
    pub fn new(inside: OwnedFd, outside: OwnedFd, stop: Stop) -> Self {
        let side = |descriptor| Side { descriptor, is_down: false };
        Self {
            inside: side(inside),
            outside: side(outside),
            gateway: None,
            stop,
            buffer: vec![0; MAX_PACKET],
        }
    }

    /// Adds a gateway for other hosts.
    #[must_use]
    pub fn with_gateway(mut self, gateway: Option<Gateway>) -> Self {
        self.gateway = gateway.map(|gateway| (gateway, false));
        self
    }

    /// Reads up to a batch; true if there may be more.
    fn read(&mut self, direction: Direction, from: From, clock: &Clock, into: &mut Inbox) -> bool {
        let (descriptor, is_down) = match (from, &mut self.gateway) {
            (From::Inside, _) => (&self.inside.descriptor, &mut self.inside.is_down),
            (From::Gateway, Some((gateway, is_down))) => (&gateway.descriptor, is_down),
            (From::Gateway, None) => return false,
            (From::Outside, _) => (&self.outside.descriptor, &mut self.outside.is_down),
        };
        for _ in 0..BATCH {
            if *is_down {
                return false;
            }
            match rustix::io::read(descriptor, &mut self.buffer[..]) {
                Ok(length) => match accept(&self.buffer[..length]) {
                    Ok(()) => into.packet(direction, packet(&self.buffer[..length], clock)),
                    Err(error) => into.error(direction, error),
                },
                Err(Errno::AGAIN) => return false,
                Err(Errno::INTR) => {}
                Err(error) => {
                    // A device that went down is not read again.
                    *is_down = true;
                    into.error(direction, relay_error(error));
                }
            }
        }
        true
    }
}

fn packet(bytes: &[u8], clock: &Clock) -> Packet {
    let (header, content) = (HeaderSummary::of_ip(bytes), Content::Ip(bytes.to_vec()));
    Packet { number: 0, arrived: clock.now(), client: 0, content, header }
}

/// Refuses packets that no router would forward.
fn accept(bytes: &[u8]) -> Result<(), RelayError> {
    match version(bytes) {
        None => Err(RelayError::Malformed),
        Some(_) if is_link_local(bytes) => Err(RelayError::LinkLocal),
        Some(_) => Ok(()),
    }
}

fn relay_error(error: Errno) -> RelayError {
    match error {
        Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM => RelayError::Full,
        Errno::BADFD | Errno::IO | Errno::NODEV | Errno::NXIO => RelayError::Unreachable,
        Errno::INVAL | Errno::MSGSIZE => RelayError::Malformed,
        _ => RelayError::Other,
    }
}

impl Ends for TunnelEnds {
    fn wait(&mut self, timeout: Option<Span>) -> io::Result<()> {
        let timeout = timeout.map(timespec);
        let mut polled = vec![PollFd::new(self.stop.descriptor(), PollFlags::IN)];
        for side in [&self.inside, &self.outside] {
            if !side.is_down {
                polled.push(PollFd::new(&side.descriptor, PollFlags::IN));
            }
        }
        if let Some((gateway, false)) = &self.gateway {
            polled.push(PollFd::new(&gateway.descriptor, PollFlags::IN));
        }
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn receive(&mut self, clock: &Clock, into: &mut Inbox) -> io::Result<bool> {
        let up = self.read(Direction::Up, From::Inside, clock, into);
        let down = self.read(Direction::Down, From::Outside, clock, into);
        let outer = self.read(Direction::Down, From::Gateway, clock, into);
        Ok(up || down || outer)
    }

    fn send(&mut self, direction: Direction, packet: &Packet) -> Result<(), RelayError> {
        let mut to = match direction {
            Direction::Up => &self.outside.descriptor,
            Direction::Down => &self.inside.descriptor,
        };
        if let (Direction::Up, Some((gateway, _))) = (direction, &mut self.gateway) {
            match gateway.pass(packet.bytes(), &packet.header) {
                Route::Local => {}
                Route::Open => to = &gateway.descriptor,
                Route::Queued => return Ok(()),
                Route::Refused => return Err(RelayError::NotRelayed),
            }
        }
        loop {
            match rustix::io::write(to, packet.bytes()) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(relay_error(error)),
            }
        }
    }
}
