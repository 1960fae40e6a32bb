//! A socket that reports its datagrams to a listener.

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, UdpSender};

/// Receives every datagram sent.
pub trait SendObserver: Debug + Send + Sync + 'static {
    /// The stack has sent `transmit`.
    fn on_sent(&self, transmit: &Transmit<'_>);
}

/// An endpoint's socket, whose senders report to a listener.
#[derive(Debug)]
pub struct Socket<L> {
    inner: Box<dyn AsyncUdpSocket>,
    observer: Arc<L>,
}

impl<L: SendObserver> Socket<L> {
    /// Wraps `inner`, and reports to `observer`.
    #[must_use]
    pub fn new(inner: Box<dyn AsyncUdpSocket>, observer: Arc<L>) -> Self {
        Self { inner, observer }
    }
}

impl<L: SendObserver> AsyncUdpSocket for Socket<L> {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(Sender { inner: self.inner.create_sender(), observer: Arc::clone(&self.observer) })
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
struct Sender<L> {
    inner: Pin<Box<dyn UdpSender>>,
    observer: Arc<L>,
}

impl<L: SendObserver> UdpSender for Sender<L> {
    fn poll_send(
        self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let sent = ready!(this.inner.as_mut().poll_send(transmit, cx));
        this.observer.on_sent(transmit);
        Poll::Ready(sent)
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.inner.max_transmit_segments()
    }
}
