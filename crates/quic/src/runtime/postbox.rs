//! A socket through which copies leave, each with the ECN codepoint of the latest datagram to the same peer.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use noq::udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use noq::{AsyncUdpSocket, UdpSender};

use crate::copies::{Courier, Duplicate, When};
use crate::store::locked;

/// Sends copies through a second handle of the endpoint's socket.
#[derive(Debug, Default)]
pub(super) struct Postbox {
    outlet: Mutex<Option<Outlet>>,
    /// Peers to which copies may be sent.
    routes: Mutex<BTreeMap<SocketAddr, Route>>,
    /// How many of them there are: nearly always none, and then nobody waits for the lock.
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
    /// Copies of what is being sent.
    waiting: Vec<Duplicate>,
}

impl Postbox {
    /// Copies leave through this socket from now on.
    pub fn open(&self, socket: UdpSocket) -> io::Result<()> {
        let state = UdpSocketState::new((&socket).into())?;
        *locked(&self.outlet) = Some(Outlet { socket, state });
        Ok(())
    }

    /// A copy that does not fit into the socket's buffer is not worth waiting for.
    fn post(&self, copy: &Duplicate, ecn: Option<EcnCodepoint>) {
        if let Some(Outlet { socket, state }) = &*locked(&self.outlet) {
            let (destination, contents) = (copy.destination, &copy.contents[..]);
            let transmit = Transmit { destination, ecn, contents, segment_size: None, src_ip: copy.source };
            if let Err(error) = state.try_send(socket.into(), &transmit) {
                tracing::trace!(target: "headstart", %destination, "copy not sent: {error}");
            }
        }
    }

    /// The stack has sent something to that peer.
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
        // The stack sends with ECN until it finds that the path does not let it through.
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

/// The endpoint's socket, whose senders tell what they sent.
#[derive(Debug)]
pub(super) struct Socket {
    inner: Box<dyn AsyncUdpSocket>,
    postbox: Arc<Postbox>,
}

impl Socket {
    pub fn new(inner: Box<dyn AsyncUdpSocket>, postbox: Arc<Postbox>) -> Self {
        Self { inner, postbox }
    }
}

impl AsyncUdpSocket for Socket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(Sender { inner: self.inner.create_sender(), postbox: Arc::clone(&self.postbox) })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [io::IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.inner.poll_recv(cx, bufs, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

#[derive(Debug)]
struct Sender {
    inner: Pin<Box<dyn UdpSender>>,
    postbox: Arc<Postbox>,
}

impl UdpSender for Sender {
    fn poll_send(
        self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let sent = ready!(this.inner.as_mut().poll_send(transmit, cx));
        this.postbox.sent(transmit);
        Poll::Ready(sent)
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.inner.max_transmit_segments()
    }
}
