//! A socket through which copies leave, with the ECN codepoint of the latest datagram to the peer.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use headstart_host::locked;
use noq::udp::{EcnCodepoint, Transmit, UdpSocketState};

use super::socket::SendObserver;
use crate::copies::{Duplicate, DuplicateSender, SendTiming};

/// Sends copies through a second handle of the endpoint's socket.
#[derive(Debug, Default)]
pub(super) struct DuplicateSocket {
    handle: Mutex<Option<SendHandle>>,
    /// Peers to which copies may be sent.
    peers: Mutex<BTreeMap<SocketAddr, Peer>>,
    /// Number of those peers: nearly always zero, and then no lock is taken.
    peer_count: AtomicUsize,
}

#[derive(Debug)]
struct SendHandle {
    socket: UdpSocket,
    state: UdpSocketState,
}

#[derive(Debug)]
struct Peer {
    users: usize,
    ecn: Option<EcnCodepoint>,
    /// Copies of the datagram being sent.
    pending: Vec<Duplicate>,
}

impl DuplicateSocket {
    /// Sends copies through this socket from now on.
    pub fn set_socket(&self, socket: UdpSocket) -> io::Result<()> {
        let state = UdpSocketState::new((&socket).into())?;
        *locked(&self.handle) = Some(SendHandle { socket, state });
        Ok(())
    }

    /// A copy that does not fit into the socket's buffer is dropped.
    fn transmit(&self, copy: &Duplicate, ecn: Option<EcnCodepoint>) {
        if let Some(SendHandle { socket, state }) = &*locked(&self.handle) {
            let (destination, contents) = (copy.destination, &copy.contents[..]);
            let transmit = Transmit { destination, ecn, contents, segment_size: None, src_ip: copy.source };
            if let Err(error) = state.try_send(socket.into(), &transmit) {
                tracing::trace!(target: "headstart", %destination, "copy not sent: {error}");
            }
        }
    }
}

impl SendObserver for DuplicateSocket {
    fn on_sent(&self, transmit: &Transmit<'_>) {
        if self.peer_count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let pending = match locked(&self.peers).get_mut(&transmit.destination) {
            Some(peer) => {
                peer.ecn = transmit.ecn;
                std::mem::take(&mut peer.pending)
            }
            None => return,
        };
        for copy in &pending {
            self.transmit(copy, transmit.ecn);
        }
    }
}

impl DuplicateSender for DuplicateSocket {
    fn register(&self, destination: SocketAddr) {
        let mut peers = locked(&self.peers);
        // The stack sends with ECN until its validation fails on the path.
        let fresh = Peer { users: 0, ecn: Some(EcnCodepoint::Ect0), pending: vec![] };
        peers.entry(destination).or_insert(fresh).users += 1;
        self.peer_count.store(peers.len(), Ordering::Relaxed);
    }

    fn send(&self, copy: Duplicate) {
        let ecn = match locked(&self.peers).get_mut(&copy.destination) {
            Some(peer) if copy.timing == SendTiming::AfterOriginal => return peer.pending.push(copy),
            Some(peer) => peer.ecn,
            None => return,
        };
        self.transmit(&copy, ecn);
    }

    fn unregister(&self, destination: SocketAddr) {
        let mut peers = locked(&self.peers);
        if let Some(peer) = peers.get_mut(&destination) {
            peer.users -= 1;
            if peer.users == 0 {
                peers.remove(&destination);
            }
        }
        self.peer_count.store(peers.len(), Ordering::Relaxed);
    }
}
