//! A socket that reports its datagrams to a listener, and limits those to addresses that are not
//! validated.

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, UdpSender};

use crate::unvalidated::{Accounts, Paths};

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
    accounts: Arc<Accounts>,
}

impl<L: SendObserver> Socket<L> {
    /// Wraps `inner`, and reports to `observer`.
    #[must_use]
    pub fn new(inner: Box<dyn AsyncUdpSocket>, observer: Arc<L>) -> Self {
        Self { inner, observer, accounts: Arc::default() }
    }
}

impl<L: SendObserver> AsyncUdpSocket for Socket<L> {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(Sender {
            inner: self.inner.create_sender(),
            late: Some(self.inner.create_sender()),
            observer: Arc::clone(&self.observer),
            accounts: Arc::clone(&self.accounts),
            paths: None,
        })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [io::IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(self.inner.poll_recv(cx, bufs, meta))?;
        for datagrams in &meta[..count] {
            self.accounts.received(datagrams.addr, datagrams.len);
        }
        Poll::Ready(Ok(count))
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

/// Sends the datagrams of one connection, or of the endpoint.
#[derive(Debug)]
struct Sender<L> {
    inner: Pin<Box<dyn UdpSender>>,
    /// For what is held until an address is validated.
    late: Option<Pin<Box<dyn UdpSender>>>,
    observer: Arc<L>,
    accounts: Arc<Accounts>,
    /// Paths of a server's connection, once it has sent.
    paths: Option<Arc<Paths>>,
}

impl<L: SendObserver> UdpSender for Sender<L> {
    fn poll_send(
        self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { inner, late, observer, accounts, paths } = self.get_mut();
        if late.is_some() && paths.is_none() {
            *paths = Paths::sending(transmit.destination, late);
        }
        let sent = ready!(match paths {
            None => inner.as_mut().poll_send(transmit, cx),
            Some(paths) => paths.poll_send(accounts, transmit, |part| inner.as_mut().poll_send(part, cx)),
        });
        observer.on_sent(transmit);
        Poll::Ready(sent)
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.inner.max_transmit_segments()
    }
}

impl<L> Drop for Sender<L> {
    fn drop(&mut self) {
        if let Some(paths) = &self.paths {
            paths.unbind();
        }
    }
}
