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
use tokio::time::{Instant, Sleep};
use tokio_util::task::AbortOnDropHandle;

use super::RequestBody;
use super::fields::{remove_fields_of_answer, remove_fields_of_head};
use super::turns::{Pace, Turn, Way};
use crate::places::Place;
use crate::server::GivenUp;
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
    pace: Arc<Pace>,
}

impl Upload {
    pub(super) fn new(body: RequestBody, pace: Arc<Pace>) -> Self {
        let (is_touched, waits, has_failed) = (false, false, false);
        let moved = Instant::now();
        let taking = Taking { body, peeked: None, is_touched, waits, has_failed, moved, pace };
        Self(Arc::new(Mutex::new(taking)))
    }

    pub(super) fn pace(&self) -> Arc<Pace> {
        Arc::clone(&locked(&self.0).pace)
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
        if std::mem::replace(&mut taking.waits, polled.is_pending()) != taking.waits {
            taking.pace.wait(Way::Up, taking.waits);
        }
        let mut frame = ready!(polled);
        taking.moved = Instant::now();
        match &mut frame {
            Some(Ok(frame)) => {
                taking.is_touched = true;
                taking.pace.moved(Way::Up, frame.data_ref().map_or(0, Bytes::len));
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

/// The body of an upstream's answer, with its places among the requests in progress. The body
/// itself is with its [`Pace`]: it ends with the request's turn, though nobody reads it.
pub(super) struct Download {
    pace: Arc<Pace>,
    idle: Duration,
    waits: Pin<Box<Sleep>>,
    is_waiting: bool,
    has_failed: bool,
    /// Ends the request if the client takes too little.
    watch: Option<AbortOnDropHandle<()>>,
    given_up: Option<GivenUp>,
    _places: (Place, Option<Turn>),
}

impl Download {
    pub(super) fn new(
        pace: Arc<Pace>,
        idle: Duration,
        given_up: Option<GivenUp>,
        places: (Place, Option<Turn>),
    ) -> Self {
        let waits = Box::pin(tokio::time::sleep(idle));
        let (is_waiting, has_failed, watch) = (false, false, None);
        Self { pace, idle, waits, is_waiting, has_failed, watch, given_up, _places: places }
    }

    /// A client that reads nothing does not poll this either.
    fn watch(&mut self) {
        if self.watch.is_some() {
            return;
        }
        let (pace, idle) = (Arc::clone(&self.pace), self.idle);
        self.watch = Some(AbortOnDropHandle::new(tokio::spawn(async move {
            while !pace.is_too_slow(Way::Down, idle) {
                tokio::time::sleep(idle / 4).await;
            }
            pace.end();
        })));
    }
}

impl http_body::Body for Download {
    type Data = Bytes;
    type Error = io::Error;

    /// Time in which the client takes nothing does not count as the upstream's: then nothing is
    /// asked for.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let late = || Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
        let polled =
            self.pace.with_content(|body| (Pin::new(&mut *body).poll_frame(cx), body.is_end_stream()));
        let Some((polled, is_end)) = polled else { return late() };
        let Poll::Ready(mut frame) = polled else {
            if !std::mem::replace(&mut self.is_waiting, true) {
                self.pace.wait(Way::Down, false);
                let limit = Instant::now() + self.idle;
                self.waits.as_mut().reset(limit);
            }
            ready!(self.waits.as_mut().poll(cx));
            self.has_failed = true;
            return late();
        };
        self.is_waiting = false;
        match &mut frame {
            Some(Ok(frame)) => {
                if let Some(trailers) = frame.trailers_mut() {
                    remove_fields_of_answer(trailers);
                }
                if let Some(data) = frame.data_ref().filter(|_| !is_end) {
                    self.pace.moved(Way::Down, data.len());
                    self.pace.wait(Way::Down, true);
                    self.watch();
                }
            }
            Some(Err(_)) => self.has_failed = true,
            None => {}
        }
        Poll::Ready(frame.map(|frame| frame.map_err(io::Error::other)))
    }

    fn is_end_stream(&self) -> bool {
        self.pace.with_content(|body| body.is_end_stream()).unwrap_or(false)
    }

    fn size_hint(&self) -> SizeHint {
        self.pace.with_content(|body| body.size_hint()).unwrap_or_default()
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        let is_whole = self.pace.with_content(|body| body.is_end_stream());
        self.pace.close(is_whole == Some(true));
        if is_whole == Some(false)
            && !self.has_failed
            && let Some(given_up) = &self.given_up
        {
            given_up.note();
        }
    }
}
