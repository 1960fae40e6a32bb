//! The application of a simulated connection: the receiver sends each request on a stream of its
//! own; the sender answers in the order of the requests.
//!
//! A request is a stream with a [`TransferRequest`]; the answer returns on the same stream. A
//! message without a request arrives on a stream that the sender opens.

use std::collections::{BTreeMap, VecDeque};

use headstart_units::{Bytes, Time};
use noq_proto::{Connection, ConnectionError, Dir, Event, StreamEvent, StreamId};

use crate::request::TransferRequest;

/// A message requested and not read completely.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingMessage {
    pub requested_at: Time,
    pub bytes: Bytes,
}

/// The receiver's side.
#[derive(Debug, Default)]
pub(super) struct RequestSide {
    /// Completion of the handshake.
    pub connected_at: Option<Time>,
    /// Requests leave in 0-RTT where the server allowed it before.
    sends_early: bool,
    /// Requests made before the connection is established, or above the peer's stream limit.
    queue: VecDeque<PendingMessage>,
    open: BTreeMap<StreamId, PendingMessage>,
    /// Messages without a request, in the order of the sender's application.
    unsolicited: VecDeque<PendingMessage>,
    /// Bytes read.
    pub read: Bytes,
    /// The connection failed.
    pub is_lost: bool,
}

impl RequestSide {
    /// A side that requests in 0-RTT, or not.
    pub fn new(sends_early: bool) -> Self {
        Self { sends_early, ..Self::default() }
    }

    pub fn enqueue_request(&mut self, message: PendingMessage) {
        self.queue.push_back(message);
    }

    /// Expects a message that the sender writes without a request.
    pub fn expect(&mut self, message: PendingMessage) {
        self.unsolicited.push_back(message);
    }

    /// True if no message is outstanding.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.open.is_empty() && self.unsolicited.is_empty()
    }

    /// Processes events; returns the messages read completely.
    pub fn process_events(&mut self, now: Time, connection: &mut Connection) -> Vec<PendingMessage> {
        let mut readable = vec![];
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.connected_at = Some(now),
                Event::ConnectionLost { .. } => self.is_lost = true,
                Event::Stream(StreamEvent::Readable { id }) => readable.push(id),
                Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                    while let Some(stream) = connection.streams().accept(Dir::Uni) {
                        if let Some(message) = self.unsolicited.pop_front() {
                            self.open.insert(stream, message);
                            readable.push(stream);
                        }
                    }
                }
                _ => {}
            }
        }
        self.send_requests(connection);
        readable.into_iter().filter_map(|stream| self.read(connection, stream)).collect()
    }

    fn send_requests(&mut self, connection: &mut Connection) {
        let may_send = self.connected_at.is_some() || self.sends_early && connection.has_0rtt();
        while may_send
            && let Some(message) = self.queue.front()
            && let Some(stream) = connection.streams().open(Dir::Bi)
        {
            // Eight bytes fit into any stream window of this crate's endpoints.
            let mut sending = connection.send_stream(stream);
            let _ = sending.write(&TransferRequest::new(message.bytes).emit());
            let _ = sending.finish();
            self.open.insert(stream, *message);
            self.queue.pop_front();
        }
    }

    fn read(&mut self, connection: &mut Connection, stream: StreamId) -> Option<PendingMessage> {
        let is_finished = discard(connection, stream, &mut self.read)?;
        if is_finished { self.open.remove(&stream) } else { None }
    }
}

/// The sender's side.
#[derive(Debug, Default)]
pub(super) struct ResponseSide {
    /// Requests not read completely.
    partial_requests: BTreeMap<StreamId, Vec<u8>>,
    /// Bytes left to write of each answer.
    unwritten: BTreeMap<StreamId, u64>,
    /// Number of answers not acknowledged completely.
    unacknowledged: u64,
    /// Messages submitted before the connection was established.
    queue: VecDeque<Bytes>,
    is_connected: bool,
    /// Bytes requested so far.
    pub written: Bytes,
    /// Reason of the connection's failure, if it failed.
    pub lost: Option<ConnectionError>,
}

impl ResponseSide {
    /// Submits a message without a request.
    pub fn enqueue(&mut self, bytes: Bytes) {
        self.queue.push_back(bytes);
    }

    /// True if all data written is acknowledged.
    pub fn is_done(&self) -> bool {
        self.unacknowledged == 0 && self.queue.is_empty()
    }

    /// Processes events; true if there is more to send than before, which the scheme may learn.
    pub fn process_events(&mut self, connection: &mut Connection) -> bool {
        let before = self.written;
        let mut writable = vec![];
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.is_connected = true,
                Event::ConnectionLost { reason } => self.lost = Some(reason),
                Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                    while let Some(stream) = connection.streams().accept(Dir::Bi) {
                        self.partial_requests.insert(stream, vec![]);
                        writable.extend(self.read_request(connection, stream));
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => {
                    writable.extend(self.read_request(connection, id))
                }
                Event::Stream(StreamEvent::Writable { id }) => writable.push(id),
                Event::Stream(StreamEvent::Finished { .. }) => {
                    self.unacknowledged = self.unacknowledged.saturating_sub(1);
                }
                _ => {}
            }
        }
        while self.is_connected
            && let Some(&bytes) = self.queue.front()
            && let Some(stream) = connection.streams().open(Dir::Uni)
        {
            self.queue.pop_front();
            self.start_response(stream, bytes);
            writable.push(stream);
        }
        self.sort_by_opening(&mut writable);
        for stream in writable {
            self.write(connection, stream);
        }
        self.written > before
    }

    /// Sorts streams in the order of their opening.
    fn sort_by_opening(&self, writable: &mut Vec<StreamId>) {
        writable.sort_unstable();
        writable.dedup();
    }

    /// Reads a request; returns its stream, once the request is complete.
    fn read_request(&mut self, connection: &mut Connection, stream: StreamId) -> Option<StreamId> {
        let head = self.partial_requests.get_mut(&stream)?;
        let mut receiving = connection.recv_stream(stream);
        let mut chunks = receiving.read(true).ok()?;
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            head.extend_from_slice(&chunk.bytes);
        }
        let _ = chunks.finalize();
        let request = TransferRequest::parse(head.get(..TransferRequest::LENGTH)?).ok()?;
        self.partial_requests.remove(&stream);
        self.start_response(stream, request.bytes);
        Some(stream)
    }

    fn start_response(&mut self, stream: StreamId, bytes: Bytes) {
        self.unwritten.insert(stream, bytes.get());
        self.written += bytes;
        self.unacknowledged += 1;
    }

    fn write(&mut self, connection: &mut Connection, stream: StreamId) {
        let Some(unwritten) = self.unwritten.get_mut(&stream) else { return };
        let mut sending = connection.send_stream(stream);
        if write_zeros(&mut sending, unwritten) {
            let _ = sending.finish();
            self.unwritten.remove(&stream);
        }
    }
}

/// Writes zeros until the stack takes no more. True if all are written.
fn write_zeros(stream: &mut noq_proto::SendStream<'_>, unsent: &mut u64) -> bool {
    static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
    while *unsent > 0 {
        let length = usize::try_from(*unsent).unwrap_or(usize::MAX).min(ZEROS.len());
        let mut chunk = [bytes::Bytes::from_static(&ZEROS[..length])];
        match stream.write_chunks(&mut &mut chunk[..]) {
            Ok(0) | Err(_) => return false,
            Ok(written) => *unsent -= written as u64,
        }
    }
    true
}

/// Reads and discards; `None` if nothing can be read any more, true at the end of the stream.
fn discard(connection: &mut Connection, stream: StreamId, read: &mut Bytes) -> Option<bool> {
    let mut stream = connection.recv_stream(stream);
    let mut chunks = stream.read(false).ok()?;
    let mut is_finished = false;
    while let Ok(next) = chunks.next(usize::MAX) {
        match next {
            Some(chunk) => *read += Bytes::new(chunk.bytes.len() as u64),
            None => {
                is_finished = true;
                break;
            }
        }
    }
    let _ = chunks.finalize();
    Some(is_finished)
}
