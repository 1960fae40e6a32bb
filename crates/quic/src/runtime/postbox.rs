//! A socket through which copies leave, each with the ECN codepoint of the latest datagram to the
//! same peer.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use headstart_host::locked;
use noq::udp::{EcnCodepoint, Transmit, UdpSocketState};

use super::socket::Listener;
use crate::copies::{Courier, Duplicate, When};

/// Sends copies through a second handle of the endpoint's socket.
#[derive(Debug, Default)]
pub(super) struct Postbox {
    outlet: Mutex<Option<Outlet>>,
    /// Peers to which copies may be sent.
    routes: Mutex<BTreeMap<SocketAddr, Route>>,
    /// Their number: nearly always zero, and then no lock is taken.
    open: AtomicUsize,
}

#[derive(Debug)]
struct Outlet {
    socket: UdpSocket,
    state: UdpSocketState,
}

#[derive(Debug)]
struct Route {
    users: usize,
    ecn: Option<EcnCodepoint>,
    /// Copies of the datagram being sent.
    waiting: Vec<Duplicate>,
}

impl Postbox {
    /// Sends copies through this socket from now on.
    pub fn open(&self, socket: UdpSocket) -> io::Result<()> {
        let state = UdpSocketState::new((&socket).into())?;
        *locked(&self.outlet) = Some(Outlet { socket, state });
        Ok(())
    }

    /// A copy that does not fit into the socket's buffer is dropped.
    fn post(&self, copy: &Duplicate, ecn: Option<EcnCodepoint>) {
        if let Some(Outlet { socket, state }) = &*locked(&self.outlet) {
            let (destination, contents) = (copy.destination, &copy.contents[..]);
            let transmit = Transmit { destination, ecn, contents, segment_size: None, src_ip: copy.source };
            if let Err(error) = state.try_send(socket.into(), &transmit) {
                tracing::trace!(target: "headstart", %destination, "copy not sent: {error}");
            }
        }
    }
}

impl Listener for Postbox {
    fn sent(&self, transmit: &Transmit<'_>) {
        if self.open.load(Ordering::Relaxed) == 0 {
            return;
        }
        let waiting = match locked(&self.routes).get_mut(&transmit.destination) {
            Some(route) => {
                route.ecn = transmit.ecn;
                std::mem::take(&mut route.waiting)
            }
            None => return,
        };
        for copy in &waiting {
            self.post(copy, transmit.ecn);
        }
    }
}

impl Courier for Postbox {
    fn begin(&self, destination: SocketAddr) {
        let mut routes = locked(&self.routes);
        // The stack sends with ECN until its validation fails on the path.
        let fresh = Route { users: 0, ecn: Some(EcnCodepoint::Ect0), waiting: vec![] };
        routes.entry(destination).or_insert(fresh).users += 1;
        self.open.store(routes.len(), Ordering::Relaxed);
    }

    fn carry(&self, copy: Duplicate) {
        let ecn = match locked(&self.routes).get_mut(&copy.destination) {
            Some(route) if copy.when == When::Behind => return route.waiting.push(copy),
            Some(route) => route.ecn,
            None => return,
        };
        self.post(&copy, ecn);
    }

    fn end(&self, destination: SocketAddr) {
        let mut routes = locked(&self.routes);
        if let Some(route) = routes.get_mut(&destination) {
            route.users -= 1;
            if route.users == 0 {
                routes.remove(&destination);
            }
        }
        self.open.store(routes.len(), Ordering::Relaxed);
    }
}
