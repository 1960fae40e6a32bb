//! The `h3` crate's transport traits for noq's connections and streams.
//!
//! Private, because `h3` is still 0.0.x: none of its types is public in this crate.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures_util::FutureExt as _;
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use headstart_host::locked;
use noq::{ConnectionError, ReadError, VarInt, WriteError};

use crate::frames::{FrameLimit, HEADERS, Refusal};
use crate::server::MAX_FIELD_SECTION;

/// Longest frame other than DATA. The values of a header section within its limit are no longer
/// encoded than decoded, but for a prefix.
const LONGEST_FRAME: u64 = MAX_FIELD_SECTION as u64 + 1024;

/// Most bytes of one read: with more, a fast peer would monopolise one stream's reader.
const READ_AT_ONCE: usize = 64 * 1024;

/// Bytes of frames that are not whole, of all connections of a server: 64 MiB. A connection may
/// have 1/256 of those that are left: 256 KiB alone, 52 kB beside a thousand that take their part,
/// 6 kB beside ten thousand.
const MOST_UNFINISHED: u64 = 64 << 20;
const PART_OF_A_CONNECTION: u64 = 256;

/// Bytes of frames that are kept because they are not whole, of all connections of a server.
#[derive(Clone, Debug, Default)]
pub struct Unfinished(Arc<AtomicU64>);

/// The bytes of one connection.
#[derive(Clone, Debug, Default)]
struct UnfinishedOfConnection {
    all: Unfinished,
    own: Arc<AtomicU64>,
}

impl UnfinishedOfConnection {
    /// True if a stream that kept `before` may keep `now`.
    fn replace(&self, before: u64, now: u64) -> bool {
        let change = |counter: &AtomicU64| {
            let add = |count: u64| Some((count + now).saturating_sub(before));
            // The closure always returns a number.
            let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
            counter.load(Ordering::Relaxed)
        };
        let (all, own) = (change(&self.all.0), change(&self.own));
        now <= before || own <= MOST_UNFINISHED.saturating_sub(all - own.min(all)) / PART_OF_A_CONNECTION
    }
}

type Waiting<T> = Option<Pin<Box<dyn Future<Output = Result<T, ConnectionError>> + Send + Sync>>>;

type Gone = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Ends of the interest in answers, of streams that have been split, until they are taken.
#[derive(Clone, Default)]
pub struct Stops(Arc<Mutex<Vec<(StreamId, Gone)>>>);

impl Stops {
    /// Ends when the client wants no answer on that stream any more, or its connection has ended.
    pub fn take(&self, stream: StreamId) -> Option<Gone> {
        let mut stops = locked(&self.0);
        let at = stops.iter().position(|(id, _)| *id == stream)?;
        Some(stops.swap_remove(at).1)
    }
}

/// A QUIC connection that HTTP/3 can run on.
pub struct Connection {
    /// Collects the requests whose streams were split, if that is wished.
    pub stops: Option<Stops>,
    inner: noq::Connection,
    next_bidi: Waiting<(noq::SendStream, noq::RecvStream)>,
    next_uni: Waiting<noq::RecvStream>,
    opener: Opener,
    unfinished: UnfinishedOfConnection,
}

impl Connection {
    /// A connection among those that share `all`.
    pub fn new(inner: noq::Connection, all: &Unfinished) -> Self {
        let unfinished = UnfinishedOfConnection { all: all.clone(), own: Arc::default() };
        let opener = Opener::new(inner.clone(), unfinished.clone());
        Self { stops: None, opener, inner, next_bidi: None, next_uni: None, unfinished }
    }
}

/// Opens streams.
pub struct Opener {
    inner: noq::Connection,
    bidi: Waiting<(noq::SendStream, noq::RecvStream)>,
    uni: Waiting<noq::SendStream>,
    unfinished: UnfinishedOfConnection,
}

impl Opener {
    fn new(inner: noq::Connection, unfinished: UnfinishedOfConnection) -> Self {
        Self { inner, bidi: None, uni: None, unfinished }
    }
}

/// Continues the operation, or starts it. It outlives a poll: dropping it would lose its waker.
fn poll_next<T, F>(
    waiting: &mut Waiting<T>,
    cx: &mut Context<'_>,
    begin: impl FnOnce() -> F,
) -> Poll<Result<T, ConnectionError>>
where
    F: Future<Output = Result<T, ConnectionError>> + Send + Sync + 'static,
{
    let operation = waiting.get_or_insert_with(|| Box::pin(begin()));
    let done = ready!(operation.as_mut().poll(cx));
    *waiting = None;
    Poll::Ready(done)
}

impl Clone for Opener {
    /// Opens streams of the same connection; operations in progress stay with the original.
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.unfinished.clone())
    }
}

impl<B: Buf> quic::Connection<B> for Connection {
    type RecvStream = RecvStream;
    type OpenStreams = Opener;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionErrorIncoming>> {
        let inner = &self.inner;
        let next = poll_next(&mut self.next_uni, cx, || {
            let inner = inner.clone();
            async move { inner.accept_uni().await }
        });
        let unfinished = &self.unfinished;
        next.map(|stream| {
            stream.map(|it| RecvStream::unidirectional(it, unfinished)).map_err(connection_error)
        })
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, ConnectionErrorIncoming>> {
        let inner = &self.inner;
        let next = poll_next(&mut self.next_bidi, cx, || {
            let inner = inner.clone();
            async move { inner.accept_bi().await }
        });
        let (unfinished, stops) = (&self.unfinished, &self.stops);
        let of_request = |it| BidiStream { stops: stops.clone(), ..BidiStream::of_request(it, unfinished) };
        next.map(|stream| stream.map(of_request).map_err(connection_error))
    }

    fn opener(&self) -> Opener {
        Opener::new(self.inner.clone(), self.unfinished.clone())
    }
}

impl<B: Buf> quic::OpenStreams<B> for Connection {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        quic::OpenStreams::<B>::poll_open_bidi(&mut self.opener, cx)
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        quic::OpenStreams::<B>::poll_open_send(&mut self.opener, cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        quic::OpenStreams::<B>::close(&mut self.opener, code, reason);
    }
}

impl<B: Buf> quic::OpenStreams<B> for Opener {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        let inner = &self.inner;
        let next = poll_next(&mut self.bidi, cx, || {
            let inner = inner.clone();
            async move { inner.open_bi().await }
        });
        let unfinished = &self.unfinished;
        next.map(|stream| {
            stream.map(|it| BidiStream::new(it, unfinished)).map_err(stream_of_closed_connection)
        })
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        let inner = &self.inner;
        let next = poll_next(&mut self.uni, cx, || {
            let inner = inner.clone();
            async move { inner.open_uni().await }
        });
        next.map(|stream| stream.map(SendStream::new).map_err(stream_of_closed_connection))
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        // h3 closes every connection that it drops; that must not replace an earlier close reason.
        if self.inner.close_reason().is_none() {
            self.inner.close(error_code(code.value()), reason);
        }
    }
}

/// The receiving half of a stream.
pub struct RecvStream {
    inner: noq::RecvStream,
    limit: FrameLimit,
    unfinished: UnfinishedOfConnection,
}

impl RecvStream {
    fn unidirectional(inner: noq::RecvStream, unfinished: &UnfinishedOfConnection) -> Self {
        Self { inner, limit: FrameLimit::of_unidirectional(LONGEST_FRAME), unfinished: unfinished.clone() }
    }

    fn of_message(inner: noq::RecvStream, unfinished: &UnfinishedOfConnection) -> Self {
        Self { inner, limit: FrameLimit::of_message(LONGEST_FRAME), unfinished: unfinished.clone() }
    }

    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Result<Option<Bytes>, Refusal>, StreamErrorIncoming>> {
        // The connection stores the read's waker, so that the future may be dropped.
        let chunk = ready!(pin!(self.inner.read_chunk(READ_AT_ONCE)).poll(cx));
        let chunk = chunk.map_err(|error| match error {
            ReadError::Reset(code) => StreamErrorIncoming::StreamTerminated { error_code: code.into_inner() },
            ReadError::ConnectionLost(error) => stream_of_closed_connection(error),
            error @ (ReadError::ClosedStream | ReadError::ZeroRttRejected) => {
                StreamErrorIncoming::Unknown(Box::new(error))
            }
        })?;
        let before = self.limit.unfinished();
        let read = chunk.as_ref().map_or(Ok(()), |chunk| self.limit.read(chunk));
        // A refused frame is not kept any more.
        let fits = self.unfinished.replace(before, self.limit.unfinished());
        if let Err(refusal) = read {
            return Poll::Ready(Ok(Err(refusal)));
        }
        if !fits {
            return Poll::Ready(Err(closing("found too many unfinished frames".to_owned())));
        }
        Poll::Ready(Ok(Ok(chunk)))
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        self.unfinished.replace(self.limit.unfinished(), 0);
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        Poll::Ready(ready!(self.poll_chunk(cx))?.map_err(|_| too_long()))
    }

    fn stop_sending(&mut self, code: u64) {
        // It fails only on a stream that has ended, which needs no stop.
        let _ = self.inner.stop(error_code(code));
    }

    fn recv_id(&self) -> StreamId {
        stream_id(self.inner.id())
    }
}

/// The sending half of a stream.
pub struct SendStream<B: Buf> {
    inner: noq::SendStream,
    writing: Option<WriteBuf<B>>,
}

impl<B: Buf> SendStream<B> {
    fn new(inner: noq::SendStream) -> Self {
        Self { inner, writing: None }
    }
}

impl<B: Buf> quic::SendStream<B> for SendStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        let Some(data) = &mut self.writing else { return Poll::Ready(Ok(())) };
        while data.has_remaining() {
            let written = ready!(Pin::new(&mut self.inner).poll_write(cx, data.chunk()));
            data.advance(written.map_err(write_error)?);
        }
        self.writing = None;
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.writing.is_some() {
            // h3 waits for `poll_ready` between two calls.
            return Err(StreamErrorIncoming::Unknown("data before the stream was ready for it".into()));
        }
        self.writing = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(self.poll_ready(cx))?;
        Poll::Ready(self.inner.finish().map_err(|error| StreamErrorIncoming::Unknown(Box::new(error))))
    }

    fn reset(&mut self, code: u64) {
        // As above: a stream that has ended needs no reset.
        let _ = self.inner.reset(error_code(code));
    }

    fn send_id(&self) -> StreamId {
        stream_id(self.inner.id())
    }
}

/// Both halves of a stream.
pub struct BidiStream<B: Buf> {
    send: SendStream<B>,
    receive: RecvStream,
    /// The connection is a client's, to a server.
    is_request: bool,
    stops: Option<Stops>,
}

impl<B: Buf> BidiStream<B> {
    fn new((send, receive): (noq::SendStream, noq::RecvStream), unfinished: &UnfinishedOfConnection) -> Self {
        let receive = RecvStream::of_message(receive, unfinished);
        Self { send: SendStream::new(send), receive, is_request: false, stops: None }
    }

    /// Of a connection to a server.
    fn of_request(halves: (noq::SendStream, noq::RecvStream), unfinished: &UnfinishedOfConnection) -> Self {
        let mut stream = Self { is_request: true, ..Self::new(halves, unfinished) };
        stream.receive.limit = FrameLimit::of_request(LONGEST_FRAME);
        stream
    }

    /// Answers a request whose fields are too large, and reads no more of it.
    fn refuse_long(&mut self, cx: &mut Context<'_>) -> StreamErrorIncoming {
        let error_code = Code::H3_NO_ERROR.value();
        // There is room for so few bytes, unless the client allows none.
        let _ = Pin::new(&mut self.send.inner).poll_write(cx, FIELDS_TOO_LARGE);
        let _ = self.send.inner.finish();
        quic::RecvStream::stop_sending(&mut self.receive, error_code);
        StreamErrorIncoming::StreamTerminated { error_code }
    }

    /// RFC 9114 §4.1.2.
    fn refuse_malformed(&mut self) -> StreamErrorIncoming {
        let error_code = Code::H3_MESSAGE_ERROR.value();
        quic::SendStream::<B>::reset(&mut self.send, error_code);
        quic::RecvStream::stop_sending(&mut self.receive, error_code);
        StreamErrorIncoming::StreamTerminated { error_code }
    }
}

/// HEADERS with the status 431, whose name is of QPACK's static table.
const FIELDS_TOO_LARGE: &[u8] = b"\x01\x08\x00\x00\x5f\x09\x03431";

impl<B: Buf> quic::BidiStream<B> for BidiStream<B> {
    type SendStream = SendStream<B>;
    type RecvStream = RecvStream;

    fn split(self) -> (SendStream<B>, RecvStream) {
        if let Some(stops) = &self.stops {
            let (id, gone) = (stream_id(self.send.inner.id()), self.send.inner.stopped().map(|_| ()));
            locked(&stops.0).push((id, Box::pin(gone)));
        }
        (self.send, self.receive)
    }
}

impl<B: Buf> quic::RecvStream for BidiStream<B> {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        Poll::Ready(match ready!(self.receive.poll_chunk(cx))? {
            Err(Refusal::TooLong(HEADERS)) if self.is_request => Err(self.refuse_long(cx)),
            Err(Refusal::Malformed) => Err(self.refuse_malformed()),
            chunk => chunk.map_err(|_| too_long()),
        })
    }

    fn stop_sending(&mut self, code: u64) {
        self.receive.stop_sending(code);
    }

    fn recv_id(&self) -> StreamId {
        self.receive.recv_id()
    }
}

impl<B: Buf> quic::SendStream<B> for BidiStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, code: u64) {
        self.send.reset(code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

/// h3 closes the connection.
fn too_long() -> StreamErrorIncoming {
    closing(format!("found a frame of more than {LONGEST_FRAME} bytes"))
}

fn closing(reason: String) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming {
        connection_error: ConnectionErrorIncoming::InternalError(reason),
    }
}

/// h3's codes are all below 2^62; a larger one could only be a bug of h3, and would be truncated.
pub fn error_code(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

fn stream_id(id: noq::StreamId) -> StreamId {
    // noq's identifiers have the same bound as h3's, 2^62.
    StreamId::try_from(u64::from(id)).expect("a stream identifier is below 2^62")
}

fn connection_error(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed(close) => {
            ConnectionErrorIncoming::ApplicationClose { error_code: close.error_code.into_inner() }
        }
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        other => ConnectionErrorIncoming::Undefined(Arc::new(other)),
    }
}

fn stream_of_closed_connection(error: ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming { connection_error: connection_error(error) }
}

fn write_error(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(code) => StreamErrorIncoming::StreamTerminated { error_code: code.into_inner() },
        WriteError::ConnectionLost(error) => stream_of_closed_connection(error),
        error @ (WriteError::ClosedStream | WriteError::ZeroRttRejected) => {
            StreamErrorIncoming::Unknown(Box::new(error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_may_have_a_256th_of_what_the_others_leave() {
        let all = Unfinished::default();
        let connection = || UnfinishedOfConnection { all: all.clone(), own: Arc::default() };
        let alone = connection();
        assert!(alone.replace(0, 256 << 10));
        assert!(!alone.replace(256 << 10, (256 << 10) + 1));
        assert!(alone.replace((256 << 10) + 1, 0), "fewer than before are always fine");
        let others: Vec<_> = (0..1000).map(|_| connection()).collect();
        assert!(others.iter().all(|other| other.replace(0, 52 << 10)));
        assert!(!connection().replace(0, 60 << 10), "beside a thousand that take their part");
    }
}
