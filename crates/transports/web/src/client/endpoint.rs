//! A socket towards one server that detects ICMP port unreachable.
//!
//! Linux reports the ICMP error of a closed port to a UDP socket only if it is connected. RFC 1122
//! §4.1.3.3 requires a report, and leaves open how. The stack's own sockets are not connected: they
//! send to many peers. A client of one server can connect its socket. The stack does not wait for
//! errors, and one that it read together with datagrams would end its whole endpoint. So another
//! descriptor of the same socket waits for them, and the stack never sees one.
//!
//! ICMP is not authenticated: a host on the path can forge it. It is trusted during connection
//! establishment, as in TCP (RFC 1122 §4.2.3.9), and never afterwards.
//!
//! # Limits
//!
//! The socket is connected on Linux only: other systems refuse to send to an address from a
//! connected socket. There port unreachable is not detected.

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

use crate::open;

/// An endpoint for connections to one server.
#[derive(Clone, Debug)]
pub struct ClientEndpoint {
    endpoint: Endpoint,
    error_queue: Arc<ErrorQueue>,
}

/// Signals of the server's host.
#[derive(Debug)]
struct ErrorQueue {
    /// A second descriptor of the same socket, for errors.
    errors: UdpSocket,
    /// An error that was read in place of a datagram.
    refused: Notify,
    /// Reads of one or more datagrams.
    reads: AtomicU64,
}

impl ClientEndpoint {
    /// An endpoint towards `remote`, on a port of the system's choice. Requires a tokio context.
    ///
    /// # Errors
    ///
    /// If no socket can be opened, or there is no route to `remote`.
    pub fn to(remote: SocketAddr) -> io::Result<Self> {
        let any: IpAddr =
            if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = open::socket((any, 0).into())?;
        if cfg!(target_os = "linux") {
            socket.connect(remote)?;
        }
        socket.set_nonblocking(true)?;
        let errors = UdpSocket::from_std(socket.try_clone()?)?;
        let error_queue = Arc::new(ErrorQueue { errors, refused: Notify::new(), reads: AtomicU64::new(0) });
        let inner = TokioRuntime.wrap_udp_socket(socket)?;
        let socket = Box::new(Socket { inner, error_queue: Arc::clone(&error_queue) });
        let runtime = Arc::new(TokioRuntime);
        let endpoint = Endpoint::new_with_abstract_socket(EndpointConfig::default(), None, socket, runtime)?;
        Ok(Self { endpoint, error_queue })
    }

    /// The stack's endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Number of reads with datagrams of the server: at most the number of datagrams, and higher
    /// after every further one.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.error_queue.reads.load(Ordering::Relaxed)
    }

    /// Discards errors of earlier connections.
    pub(super) fn discard_errors(&self) {
        // Both, one or none may be pending.
        let _ = self.error_queue.errors.take_error();
        let _ = futures_util::FutureExt::now_or_never(self.error_queue.refused.notified());
    }

    /// Completes when the host reports the port unreachable.
    pub(super) async fn refused(&self) {
        let errors = &self.error_queue.errors;
        let next = || errors.take_error()?.ok_or_else(|| io::ErrorKind::WouldBlock.into());
        loop {
            let error = tokio::select! {
                error = errors.async_io(Interest::ERROR, next) => error,
                () = self.error_queue.refused.notified() => return,
            };
            match error {
                Ok(error) if is_refusal(&error) => return,
                // An unreachable network or the like: it may return within the time limit.
                Ok(_) => {}
                Err(_) => std::future::pending().await,
            }
        }
    }
}

fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

/// The stack's socket, without these errors.
#[derive(Debug)]
struct Socket {
    inner: Box<dyn AsyncUdpSocket>,
    error_queue: Arc<ErrorQueue>,
}

impl AsyncUdpSocket for Socket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        // A sender that meets an error continues by itself.
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
                // Reading the error cleared it, so this loop ends.
                Err(error) if is_refusal(&error) => self.error_queue.refused.notify_one(),
                Ok(count) => {
                    self.error_queue.reads.fetch_add(1, Ordering::Relaxed);
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
