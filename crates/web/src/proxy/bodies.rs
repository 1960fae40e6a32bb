//! Bodies on their way: of requests to upstreams, and of answers to clients.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use headstart_host::locked;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};

use super::fields::{remove_fields_of_connection, remove_fields_of_head};
use super::{RequestBody, Turn};
use crate::places::Place;
use crate::site::BoxError;

pub(super) fn no_body() -> RequestBody {
    http_body_util::Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// The body of a request, which can be given to a second upstream as long as no first one has
/// taken a part.
#[derive(Clone)]
pub(super) struct Upload(Arc<Mutex<Taking>>);

struct Taking {
    body: RequestBody,
    /// A frame that was read to see whether there is one.
    peeked: Option<Frame<Bytes>>,
    /// An upstream has taken a frame.
    is_touched: bool,
    /// An upstream waits for the client.
    waits: bool,
    has_failed: bool,
    /// When the last frame was taken.
    moved: Instant,
}

impl Upload {
    pub(super) fn new(body: RequestBody) -> Self {
        let (is_touched, waits, has_failed) = (false, false, false);
        let moved = Instant::now();
        Self(Arc::new(Mutex::new(Taking { body, peeked: None, is_touched, waits, has_failed, moved })))
    }

    pub(super) fn begin(&self) {
        locked(&self.0).moved = Instant::now();
    }

    /// Waits until there is a frame, or none.
    pub(super) async fn peek(&self) {
        std::future::poll_fn(|cx| {
            let mut taking = locked(&self.0);
            match ready!(Pin::new(&mut taking.body).poll_frame(cx)) {
                Some(Ok(frame)) => taking.peeked = Some(frame),
                Some(Err(_)) => taking.has_failed = true,
                // One of chunks does not know itself that it is at its end.
                None => taking.body = no_body(),
            }
            Poll::Ready(())
        })
        .await;
    }

    pub(super) fn is_touched(&self) -> bool {
        locked(&self.0).is_touched
    }

    pub(super) fn has_failed(&self) -> bool {
        locked(&self.0).has_failed
    }

    pub(super) fn progress(&self) -> (Instant, bool) {
        let taking = locked(&self.0);
        (taking.moved, taking.waits)
    }
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let taking = &mut *locked(&self.0);
        let polled = match taking.peeked.take() {
            Some(frame) => Poll::Ready(Some(Ok(frame))),
            None => Pin::new(&mut taking.body).poll_frame(cx),
        };
        taking.waits = polled.is_pending();
        let mut frame = ready!(polled);
        taking.moved = Instant::now();
        match &mut frame {
            Some(Ok(frame)) => {
                taking.is_touched = true;
                if let Some(trailers) = frame.trailers_mut() {
                    remove_fields_of_head(trailers);
                }
            }
            Some(Err(_)) => taking.has_failed = true,
            None => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        let taking = locked(&self.0);
        taking.peeked.is_none() && taking.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let taking = locked(&self.0);
        if taking.peeked.is_some() {
            return SizeHint::default();
        }
        if taking.body.is_end_stream() { SizeHint::with_exact(0) } else { taking.body.size_hint() }
    }
}

/// The body of an upstream's answer, with its places among the requests in progress.
pub(super) struct Download {
    pub(super) inner: Incoming,
    pub(super) idle: Duration,
    pub(super) waits: Pin<Box<Sleep>>,
    pub(super) is_waiting: bool,
    pub(super) _places: (Place, Turn),
}

impl http_body::Body for Download {
    type Data = Bytes;
    type Error = io::Error;

    /// Time in which the client takes nothing does not count: then nothing is asked for.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let Poll::Ready(mut frame) = Pin::new(&mut self.inner).poll_frame(cx) else {
            if !std::mem::replace(&mut self.is_waiting, true) {
                let limit = Instant::now() + self.idle;
                self.waits.as_mut().reset(limit);
            }
            ready!(self.waits.as_mut().poll(cx));
            return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
        };
        self.is_waiting = false;
        if let Some(Ok(frame)) = &mut frame
            && let Some(trailers) = frame.trailers_mut()
        {
            remove_fields_of_connection(trailers);
        }
        Poll::Ready(frame.map(|frame| frame.map_err(io::Error::other)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
