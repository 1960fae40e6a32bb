//! Connections to upstreams, of which those with a request that was given up end by a reset.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Extensions;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{CaptureConnection, Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::turns::Resets;

/// A connection to an upstream.
#[derive(Debug)]
pub(super) struct Dialled {
    inner: TokioIo<TcpStream>,
    resets: Resets,
    /// The upstream reads no more. It may have answered before it stopped to read the request.
    is_deaf: bool,
}

impl Dialled {
    pub fn new(inner: TokioIo<TcpStream>) -> Self {
        Self { inner, resets: Resets::default(), is_deaf: false }
    }

    /// Lets hyper go on to read the answer: it looks at none behind a failure to write.
    fn written(&mut self, polled: Poll<io::Result<usize>>, length: usize) -> Poll<io::Result<usize>> {
        match polled {
            Poll::Ready(Err(error))
                if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) =>
            {
                self.is_deaf = true;
                Poll::Ready(Ok(length))
            }
            other => other,
        }
    }
}

impl Drop for Dialled {
    fn drop(&mut self) {
        if self.resets.is_set() {
            // It fails only for a connection that has ended.
            let _ = socket2::SockRef::from(self.inner.inner()).set_linger(Some(Duration::ZERO));
        }
    }
}

impl Connection for Dialled {
    fn connected(&self) -> Connected {
        self.inner.connected().extra(self.resets.clone())
    }
}

impl Read for Dialled {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl Write for Dialled {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_deaf {
            return Poll::Ready(Ok(bytes.len()));
        }
        let polled = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.written(polled, bytes.len())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.resets.is_set() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = pieces.iter().map(|piece| piece.len()).sum();
        if self.is_deaf {
            return Poll::Ready(Ok(length));
        }
        let polled = Pin::new(&mut self.inner).poll_write_vectored(cx, pieces);
        self.written(polled, length)
    }
}

/// A request whose connection ends by a reset if its answer is not waited for.
pub(super) struct Asking<F> {
    request: F,
    connection: CaptureConnection,
    is_answered: bool,
}

impl<F> Asking<F> {
    pub const fn new(request: F, connection: CaptureConnection) -> Self {
        Self { request, connection, is_answered: false }
    }
}

impl<F: Future + Unpin> Future for Asking<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let polled = Pin::new(&mut self.request).poll(cx);
        self.is_answered |= polled.is_ready();
        polled
    }
}

impl<F> Drop for Asking<F> {
    /// Before the request itself is dropped: its connection is closed by another task.
    fn drop(&mut self) {
        if let Some(connected) = self.connection.connection_metadata().as_ref().filter(|_| !self.is_answered)
        {
            let mut extras = Extensions::new();
            connected.get_extras(&mut extras);
            if let Some(resets) = extras.remove::<Resets>() {
                resets.set();
            }
        }
    }
}
