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
        for (datagrams, bytes) in meta[..count].iter_mut().zip(bufs) {
            let stride = datagrams.stride.max(1);
            if bytes[..datagrams.len].chunks(stride).any(asks_for_versions_in_vain) {
                datagrams.len = 0;
            }
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

/// RFC 9000 §14.1.
const SMALLEST_INITIAL: usize = 1200;

/// True for a small datagram of an unknown version, which must not be answered (RFC 9000 §5.2.2):
/// noq would send its versions to whoever is said to have sent it.
fn asks_for_versions_in_vain(datagram: &[u8]) -> bool {
    // The long form; version 0 is a list of versions itself.
    const OF_RFC_9000: [u8; 4] = [0, 0, 0, 1];
    let version = datagram.get(1..5).filter(|_| datagram[0] & 0x80 != 0);
    datagram.len() < SMALLEST_INITIAL && version.is_some_and(|it| it != OF_RFC_9000 && it != [0; 4])
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
