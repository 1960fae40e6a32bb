//! A socket towards one server that hears when nobody listens there.
//!
//! A host without a listener answers a datagram with "port unreachable" (ICMP). Linux hands that to
//! a UDP socket only if it is connected (RFC 1122 §4.1.3.3 wants it handed up, and leaves open
//! how), and the stack's own are not: they send to many. A client that calls one server can connect
//! its socket. The stack does not wait for errors, and one that it reads together with datagrams
//! would be the end of its whole endpoint: so another descriptor of the same socket waits for them,
//! and the stack never sees one.
//!
//! Such an answer carries no signature: somebody on the way can forge it. It is believed while a
//! connection is being set up, as TCP believes it (RFC 1122 §4.2.3.9), and never afterwards.
//!
//! # Limits
//!
//! Elsewhere than on Linux the socket is not connected: other systems refuse to send to an address
//! from a connected socket. Refusals go unheard there.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use noq::udp::RecvMeta;
use noq::{AsyncUdpSocket, Endpoint, EndpointConfig, Runtime as _, TokioRuntime, UdpSender};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::Notify;

/// An endpoint that calls one server.
#[derive(Clone, Debug)]
pub struct Caller {
    endpoint: Endpoint,
    line: Arc<Line>,
}

/// What was heard of the other end's host.
#[derive(Debug)]
struct Line {
    /// The same socket again, to hear of errors.
    errors: UdpSocket,
    /// A refusal that was read in place of a datagram.
    refused: Notify,
    /// Reads of one or more datagrams.
    heard: AtomicU64,
}

impl Caller {
    /// An endpoint towards `remote`, on a port of the system's choice. To be called within tokio.
    ///
    /// # Errors
    ///
    /// If no socket can be had, or there is no way to `remote`.
    pub fn towards(remote: SocketAddr) -> io::Result<Self> {
        let any: IpAddr =
            if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = std::net::UdpSocket::bind((any, 0))?;
        if cfg!(target_os = "linux") {
            socket.connect(remote)?;
        }
        socket.set_nonblocking(true)?;
        let errors = UdpSocket::from_std(socket.try_clone()?)?;
        let line = Arc::new(Line { errors, refused: Notify::new(), heard: AtomicU64::new(0) });
        let inner = TokioRuntime.wrap_udp_socket(socket)?;
        let socket = Box::new(Socket { inner, line: Arc::clone(&line) });
        let runtime = Arc::new(TokioRuntime);
        let endpoint = Endpoint::new_with_abstract_socket(EndpointConfig::default(), None, socket, runtime)?;
        Ok(Self { endpoint, line })
    }

    /// The stack's endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// How often something came from the other end: not more than there were datagrams, and more
    /// than before if there was another.
    #[must_use]
    pub fn heard(&self) -> u64 {
        self.line.heard.load(Ordering::Relaxed)
    }

    /// Forgets refusals of earlier calls.
    pub(super) fn forget_refusals(&self) {
        // Both may be there or not: it is enough that they are gone.
        let _ = self.line.errors.take_error();
        let _ = futures_util::FutureExt::now_or_never(self.line.refused.notified());
    }

    /// Comes back when the host says that nobody listens.
    pub(super) async fn refused(&self) {
        let errors = &self.line.errors;
        let next = || errors.take_error()?.ok_or_else(|| io::ErrorKind::WouldBlock.into());
        loop {
            let error = tokio::select! {
                error = errors.async_io(Interest::ERROR, next) => error,
                () = self.line.refused.notified() => return,
            };
            match error {
                Ok(error) if is_refusal(&error) => return,
                // An unreachable network or the like: it may be reachable again, and patience has
                // an end.
                Ok(_) => {}
                Err(_) => std::future::pending().await,
            }
        }
    }
}

fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

/// The stack's socket, without refusals.
#[derive(Debug)]
struct Socket {
    inner: Box<dyn AsyncUdpSocket>,
    line: Arc<Line>,
}

impl AsyncUdpSocket for Socket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        // One that meets an error, instead of sending, goes on by itself.
        self.inner.create_sender()
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [io::IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        loop {
            match ready!(self.inner.poll_recv(cx, bufs, meta)) {
                // Reading it took it away: each is met once, so this ends.
                Err(error) if is_refusal(&error) => self.line.refused.notify_one(),
                Ok(count) => {
                    self.line.heard.fetch_add(1, Ordering::Relaxed);
                    return Poll::Ready(Ok(count));
                }
                failed => return Poll::Ready(failed),
            }
        }
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
