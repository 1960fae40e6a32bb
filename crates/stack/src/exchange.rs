//! The application: a client opens a stream and names a size; the server answers with so many bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddrV4;

use bytes::Bytes;
use headstart_quic::{Handle, Why};
use headstart_units::{Bytes as Size, Span, Time};
use noq_proto::{Connection, Dir, Event, StreamEvent, StreamId, VarInt};

/// What a client fetches, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// When it dials.
    pub at: Time,
    /// How many bytes it asks for.
    pub size: Size,
    /// How many it sends along with its request: an upload.
    pub upload: Size,
    /// Whether either sender knows beforehand how much it will send.
    pub is_size_known: bool,
    /// Whether the world goes on until it is over.
    pub is_awaited: bool,
    /// When its address changes, and to what.
    pub moves: Option<(Time, SocketAddrV4)>,
}

impl Fetch {
    /// A download of `size` from `at` on, whose size the server knows.
    #[must_use]
    pub const fn download(at: Time, size: Size) -> Self {
        Self { at, size, upload: Size::ZERO, is_size_known: true, is_awaited: true, moves: None }
    }
}

/// A datagram as it left the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When.
    pub at: Time,
    /// UDP payload.
    pub bytes: Size,
    /// It begins with a packet of application data.
    pub is_data: bool,
    /// It was a copy.
    pub is_copy: bool,
}

/// What a client saw, and what its sender said.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// When it dialled.
    pub dialled: Time,
    /// When its handshake was through and the request left.
    pub requested: Option<Time>,
    /// When the first byte of the answer was read.
    pub first_byte: Option<Time>,
    /// When the last byte was.
    pub completed: Option<Time>,
    /// When the server had read all of the request, the upload included.
    pub received: Option<Time>,
    /// Bytes read.
    pub read: Size,
    /// What the server sent to it.
    pub departures: Vec<Departure>,
    /// What it sent to the server.
    pub client_departures: Vec<Departure>,
    /// What the server decided.
    pub why: Why,
    /// What the client decided.
    pub client_why: Why,
    /// A digest of every byte that either side sent to the other, and when.
    pub digest: u64,
    /// Copies that equal nothing that left before them.
    pub strange_copies: u64,
    /// Copies to an address to which the stack does not send any more.
    pub stray_copies: u64,
    /// Whether the server still sends with ECN at the end.
    pub is_ecn_on: bool,
    pub(crate) originals: BTreeSet<u64>,
    /// Packets that the server's stack declared lost.
    pub lost_packets: u64,
    /// Packets that the client's stack declared lost.
    pub client_lost_packets: u64,
    /// Why the server's end gave up, if it did.
    pub failure: Option<String>,
}

impl Outcome {
    /// From the request to the last byte: what an established connection takes; [`Span::MAX`] if it never came.
    #[must_use]
    pub fn response(&self) -> Span {
        match (self.requested, self.completed) {
            (Some(from), Some(to)) => to.since(from),
            _ => Span::MAX,
        }
    }

    /// From dialling to the last byte; [`Span::MAX`] if it never came.
    #[must_use]
    pub fn completion(&self) -> Span {
        self.completed.map_or(Span::MAX, |at| at.since(self.dialled))
    }

    /// Full data packets that left the server, copies not among them.
    pub fn full_packets(&self) -> impl Iterator<Item = &Departure> {
        self.departures.iter().filter(|it| it.is_data && !it.is_copy && it.bytes >= FULL)
    }
}

const FULL: Size = Size::new(1_100);

/// The client's side of an exchange.
#[derive(Debug)]
pub(crate) struct Asking {
    fetch: Fetch,
    stream: Option<StreamId>,
    /// Bytes of the request and the upload that are not written yet.
    unsent: u64,
    head: Vec<u8>,
}

impl Asking {
    pub fn new(fetch: Fetch) -> Self {
        let head = fetch.size.get().to_be_bytes().to_vec();
        Self { fetch, stream: None, unsent: fetch.upload.get(), head }
    }

    /// Works on what has happened. Returns whether the exchange is over.
    pub fn on_events(
        &mut self,
        now: Time,
        connection: &mut Connection,
        handle: Option<&Handle>,
        out: &mut Outcome,
    ) -> bool {
        let mut is_over = false;
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => {
                    out.requested = Some(now);
                    if let Some(handle) =
                        handle.filter(|_| self.fetch.is_size_known && !self.fetch.upload.is_zero())
                    {
                        handle.expect(self.fetch.upload.get() + 8);
                    }
                    self.stream = connection.streams().open(Dir::Bi);
                }
                Event::ConnectionLost { .. } => is_over = true,
                _ => {}
            }
        }
        self.write(connection);
        is_over | self.read(now, connection, out)
    }

    fn write(&mut self, connection: &mut Connection) {
        let Some(stream) = self.stream else { return };
        let mut stream = connection.send_stream(stream);
        if !self.head.is_empty() {
            match stream.write(&self.head) {
                Ok(written) => drop(self.head.drain(..written)),
                Err(_) => return,
            }
            if self.head.is_empty() && self.unsent == 0 {
                let _ = stream.finish();
            }
        }
        if self.head.is_empty() && self.unsent > 0 && pour(&mut stream, &mut self.unsent) {
            let _ = stream.finish();
        }
    }

    fn read(&mut self, now: Time, connection: &mut Connection, out: &mut Outcome) -> bool {
        let Some(stream) = self.stream else { return false };
        let Some(is_finished) = drink(connection, stream, &mut out.read) else { return false };
        if out.read > Size::ZERO {
            out.first_byte.get_or_insert(now);
        }
        if is_finished && out.completed.is_none() {
            out.completed = Some(now);
        }
        out.completed.is_some()
    }
}

/// The server's side.
#[derive(Debug, Default)]
pub(crate) struct Answering {
    streams: BTreeMap<StreamId, Answer>,
}

#[derive(Debug, Default)]
struct Answer {
    head: Vec<u8>,
    is_read: bool,
    unsent: Option<u64>,
}

impl Answering {
    /// Works on what has happened; `is_size_known`: it tells the scheme how much it will send.
    pub fn on_events(
        &mut self,
        now: Time,
        connection: &mut Connection,
        handle: Option<&Handle>,
        is_size_known: bool,
        out: &mut Outcome,
    ) {
        while let Some(event) = connection.poll() {
            match event {
                Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                    while let Some(stream) = connection.streams().accept(Dir::Bi) {
                        self.streams.insert(stream, Answer::default());
                    }
                }
                Event::ConnectionLost { reason } => {
                    handle.iter().for_each(|handle| handle.finish_for(&reason));
                    out.failure = Some(reason.to_string());
                }
                _ => {}
            }
        }
        for (&stream, answer) in &mut self.streams {
            answer.read(now, connection, stream, out);
            // The upload comes first.
            if answer.unsent.is_none()
                && answer.is_read
                && let Ok(head) = <[u8; 8]>::try_from(&answer.head[..])
            {
                let size = u64::from_be_bytes(head);
                if let Some(handle) = handle.filter(|_| is_size_known) {
                    handle.expect(size);
                }
                answer.unsent = Some(size);
            }
            if let Some(unsent @ 1..) = &mut answer.unsent
                && pour(&mut connection.send_stream(stream), unsent)
            {
                let _ = connection.send_stream(stream).finish();
            }
        }
    }
}

impl Answer {
    fn read(&mut self, now: Time, connection: &mut Connection, stream: StreamId, out: &mut Outcome) {
        let mut stream = connection.recv_stream(stream);
        let Ok(mut chunks) = stream.read(true) else { return };
        while let Ok(next) = chunks.next(usize::MAX) {
            let Some(chunk) = next else {
                out.received.get_or_insert(now);
                self.is_read = true;
                break;
            };
            let missing = (8 - self.head.len()).min(chunk.bytes.len());
            self.head.extend_from_slice(&chunk.bytes[..missing]);
        }
        let _ = chunks.finalize();
    }
}

/// Writes zeros until the stack takes no more. Returns whether all are written.
pub(crate) fn pour(stream: &mut noq_proto::SendStream<'_>, unsent: &mut u64) -> bool {
    static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
    while *unsent > 0 {
        let length = usize::try_from(*unsent).unwrap_or(usize::MAX).min(ZEROS.len());
        let mut chunk = [Bytes::from_static(&ZEROS[..length])];
        match stream.write_chunks(&mut &mut chunk[..]) {
            Ok(0) | Err(_) => return false,
            Ok(written) => *unsent -= written as u64,
        }
    }
    true
}

/// Reads and forgets; `None` if there is nothing to read any more. Returns whether the end was read.
pub(crate) fn drink(connection: &mut Connection, stream: StreamId, read: &mut Size) -> Option<bool> {
    let mut stream = connection.recv_stream(stream);
    let mut chunks = stream.read(false).ok()?;
    let mut is_finished = false;
    while let Ok(next) = chunks.next(usize::MAX) {
        match next {
            Some(chunk) => *read += Size::new(chunk.bytes.len() as u64),
            None => {
                is_finished = true;
                break;
            }
        }
    }
    let _ = chunks.finalize();
    Some(is_finished)
}

/// The application's farewell.
pub(crate) const GOODBYE: VarInt = VarInt::from_u32(0);
