//! The server over HTTP/3.

use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, UNIX_EPOCH};

use bytes::{Buf as _, Bytes};
use futures_util::future::maybe_done;
use futures_util::{FutureExt as _, StreamExt as _};
use h3::error::{Code, StreamError};
use h3::server::{RequestResolver, RequestStream};
use headstart_host::unix_now;
use http::header::{CONTENT_LENGTH, DATE, TE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use httpdate::HttpDate;
use noq::{Connection, Endpoint, EndpointConfig, Incoming, TransportConfig, VarInt};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access_log::{self, AccessLog};
use crate::adapter::{self, RecvStream, SendStream, Stops, Unfinished};
use crate::admission::{Admission, Session};
use crate::choice;
use crate::identity::CurrentIdentity;
use crate::places::{ConnectionCounters, Kind, Place, Places};
use crate::site::{Body, BoxError, Site};

/// Policies of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Clients may choose a scheme.
    pub scheme_choice: bool,
    /// Validates every address by a Retry before any state is kept for it (RFC 9000 §8.1.2).
    pub retry: bool,
    /// Limit on concurrent connections; more are refused.
    pub most_connections: usize,
    /// Limit on concurrent connections of one address (of IPv6 a /64), for QUIC and TCP apart. Many
    /// clients may share an address, so it is 1000: ten addresses are needed to take all places.
    pub most_per_address: usize,
    /// Counters of open and of refused connections.
    pub connections: ConnectionCounters,
    /// Bytes of answers that wait for acknowledgements, in all connections together: each new one
    /// gets a send window of the part that is its own. 1 GiB. Those that were there before keep
    /// theirs, so that ten thousand hold 6 GiB at worst.
    pub most_unsent: u64,
    /// Time limit of a handshake. 10 s: the stack's idle timeout allows a silent peer 30 s.
    pub handshake: Duration,
    /// Time after which a client over TCP is closed that takes nothing of its answer, or whose acks
    /// are missing (Linux). 30 s, as the stack's idle timeout over QUIC.
    pub stall: Duration,
    /// Time for connections to finish after shutdown.
    pub grace: Duration,
    /// Requests that were passed on and that a client may give up on one connection, before the end
    /// of their answers. Each costs a connection to an upstream, and over HTTP/3 the stack keeps
    /// about 100 bytes of some of them until the connection ends.
    pub most_given_up: u64,
    /// A line for each request.
    pub access_log: Option<AccessLog>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            scheme_choice: false,
            retry: false,
            most_connections: 10_000,
            most_per_address: 1000,
            connections: ConnectionCounters::default(),
            most_unsent: 1 << 30,
            handshake: Duration::from_secs(10),
            stall: Duration::from_secs(30),
            grace: Duration::from_secs(3),
            most_given_up: 10_000,
            access_log: None,
        }
    }
}

/// Send window of a connection among few: the stack's default, 100 Mbit/s at 0.8 s or 800 at 0.1 s.
const LARGEST_SEND_WINDOW: u64 = 10_000_000;
/// Send window of one among many: enough for 5 Mbit/s at 0.1 s.
const SMALLEST_SEND_WINDOW: u64 = 64 * 1024;

/// Bytes of requests over HTTP/2 that wait unread, in all connections together.
#[cfg(feature = "tcp")]
const MOST_UNREAD: u64 = 256 << 20;
#[cfg(feature = "tcp")]
const LARGEST_RECEIVE_WINDOW: u32 = 1 << 20;
/// A connection of HTTP/2 begins with so many (RFC 9113 §6.9.2).
#[cfg(feature = "tcp")]
const SMALLEST_RECEIVE_WINDOW: u32 = 65_535;

impl ServerConfig {
    /// Bytes of answers that may wait for acknowledgements on a new connection, the `open`th.
    #[must_use]
    pub fn send_window(&self, open: usize) -> u64 {
        (self.most_unsent / open.max(1) as u64).clamp(SMALLEST_SEND_WINDOW, LARGEST_SEND_WINDOW)
    }

    /// Bytes that wait unread on a new connection over HTTP/2, the `open`th: 1 MiB among few.
    #[cfg(feature = "tcp")]
    pub(crate) fn receive_window(&self, open: usize) -> u32 {
        let part = MOST_UNREAD / open.max(1) as u64;
        u32::try_from(part).unwrap_or(u32::MAX).clamp(SMALLEST_RECEIVE_WINDOW, LARGEST_RECEIVE_WINDOW)
    }

    pub(crate) fn places(&self, kind: Kind) -> Arc<Places> {
        Places::new(self.most_connections, self.most_per_address, kind, self.connections.clone())
    }
}

/// Limit on a request's header section. 64 KiB, as is common in web servers: bounds the memory that
/// a client can occupy.
pub(crate) const MAX_FIELD_SECTION: u32 = 64 * 1024;

/// Most header fields of a message over HTTP/1.1: hyper needs a number.
#[cfg(feature = "tcp")]
pub(crate) const MOST_FIELDS: usize = 256;

/// Bytes of a client's requests that wait to be read, on one stream: a header section and more.
const STREAM_RECEIVE_WINDOW: u32 = 128 * 1024;
/// Bytes that wait to be read on all streams of a connection. The body of a request is not read
/// while it is answered.
const RECEIVE_WINDOW: u32 = 256 * 1024;

/// Limits on what the stack keeps of a client's requests: its defaults are 125 MB a connection.
#[must_use]
pub fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(STREAM_RECEIVE_WINDOW.into());
    transport.receive_window(RECEIVE_WINDOW.into());
    // Nobody would read them.
    transport.datagram_receive_buffer_size(None);
    transport
}

/// An endpoint of QUIC's version 1. The stack answers a packet of another version with a list of
/// its own, however short the packet is; with its drafts that was 39 bytes for 7.
#[must_use]
pub fn endpoint_config() -> EndpointConfig {
    let mut config = EndpointConfig::default();
    config.supported_versions(vec![1]);
    config
}

/// TLS for HTTP/3. 0-RTT is accepted: a request in it that may change something waits.
///
/// # Errors
///
/// If the cryptography lacks TLS 1.3.
pub fn tls(identity: &Arc<CurrentIdentity>) -> Result<rustls::ServerConfig, rustls::Error> {
    let mut config = rustls::ServerConfig::builder_with_provider(crate::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::clone(identity) as Arc<_>);
    config.alpn_protocols = vec![choice::HTTP3.to_vec()];
    // RFC 9001 §4.6.1 allows only this value and 0.
    config.max_early_data_size = u32::MAX;
    Ok(config)
}

/// Time limit for the rest of a request that has been answered.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves `site` on `endpoint` until `shutdown`, then lets connections finish.
pub async fn serve<A: Admission>(
    endpoint: Endpoint,
    admission: Arc<A>,
    site: Arc<Site>,
    server_config: ServerConfig,
    shutdown: CancellationToken,
) {
    let connections = TaskTracker::new();
    let places = server_config.places(Kind::Quic);
    let server_config = Arc::new(server_config);
    let unfinished = Unfinished::default();
    loop {
        let incoming = tokio::select! {
            () = shutdown.cancelled() => break,
            incoming = endpoint.accept() => incoming,
        };
        let Some(incoming) = incoming else { break };
        let Some(mut place) = places.take(incoming.remote_address().ip(), endpoint.open_connections()) else {
            incoming.refuse();
            continue;
        };
        if incoming.remote_address_validated() {
            place.validated();
        } else if (server_config.retry || place.is_scarce()) && incoming.may_retry() {
            // It fails only for a packet with a token, which was just ruled out.
            let _ = incoming.retry();
            continue;
        }
        let task = ConnectionTask {
            admission: Arc::clone(&admission),
            site: Arc::clone(&site),
            server_config: Arc::clone(&server_config),
            shutdown: shutdown.clone(),
            send_window: server_config.send_window(endpoint.open_connections() + 1),
            unfinished: unfinished.clone(),
        };
        connections.spawn(task.serve(incoming, place));
    }
    connections.close();
    // Peers that ignore the GOAWAY are closed.
    let _ = tokio::time::timeout(server_config.grace, connections.wait()).await;
    endpoint.close(no_error(), b"the server shuts down");
    connections.wait().await;
    endpoint.wait_idle().await;
}

fn no_error() -> VarInt {
    VarInt::from_u64(Code::H3_NO_ERROR.value()).expect("the code of RFC 9114 §8.1 is a small number")
}

struct ConnectionTask<A> {
    admission: Arc<A>,
    site: Arc<Site>,
    server_config: Arc<ServerConfig>,
    shutdown: CancellationToken,
    send_window: u64,
    unfinished: Unfinished,
}

impl<A: Admission> ConnectionTask<A> {
    async fn serve(self, incoming: Incoming, mut place: Place) {
        let remote = incoming.remote_address();
        let requested = self.server_config.scheme_choice.then(|| requested_scheme(&incoming)).flatten();
        let is_validated = incoming.remote_address_validated();
        let (connecting, session) = match self.admission.admit(incoming, requested.as_deref()) {
            Ok(admitted) => admitted,
            Err(error) => {
                tracing::debug!(%remote, %error, "not let in");
                return;
            }
        };
        // Connections that come in can always be had before the end of their handshake.
        let Ok((connection, _)) = connecting.into_0rtt() else { return };
        let mut handshake = pin!(maybe_done(self.handshake(&connection, remote)));
        // A request in 0-RTT is answered at once only if the address is validated: otherwise the
        // answer could not exceed three times the bytes received (RFC 9000 §8.1).
        if !is_validated {
            handshake.as_mut().await;
        }
        if handshake.as_mut().output_mut() != Some(&mut false) {
            place.validated();
            tokio::join!(handshake, self.serve_established(&connection, remote, session));
        }
        keep(place, &connection);
    }

    /// Waits for the end of the handshake, and closes the connection if there is none in time.
    async fn handshake(&self, connection: &Connection, remote: SocketAddr) -> bool {
        let confirmed = connection.handshake_confirmed();
        match tokio::time::timeout(self.server_config.handshake, confirmed).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::debug!(%remote, %error, "the handshake failed");
                false
            }
            Err(_) => {
                tracing::debug!(%remote, "the handshake took too long");
                connection.close(no_error(), b"the handshake took too long");
                false
            }
        }
    }

    async fn serve_established(&self, connection: &Connection, remote: SocketAddr, session: A::Session) {
        connection.set_send_window(self.send_window);
        let session = Arc::new(session);
        session.established(connection);
        if let Err(error) = self.serve_requests(connection, remote, &session).await {
            tracing::debug!(%remote, %error, "the conversation ended");
        }
        session.closed(connection, &connection.closed().await);
    }

    async fn serve_requests(
        &self,
        connection: &Connection,
        remote: SocketAddr,
        session: &Arc<A::Session>,
    ) -> Result<(), h3::error::ConnectionError> {
        let stops = self.site.passes_on().then(Stops::default);
        let given_up = GivenUp::new(self.server_config.most_given_up);
        let mut quic = adapter::Connection::new(connection.clone(), &self.unfinished);
        quic.stops.clone_from(&stops);
        // The future is needed once, and would be most of what an idle connection takes here.
        let build = async {
            h3::server::builder().max_field_section_size(MAX_FIELD_SECTION.into()).build(quic).await
        };
        let mut http = Box::pin(build).await?;
        let mut is_leaving = false;
        loop {
            let next = tokio::select! {
                () = self.shutdown.cancelled(), if !is_leaving => {
                    is_leaving = true;
                    // GOAWAY: requests received are answered, further ones are not.
                    http.shutdown(0).await?;
                    continue;
                }
                () = given_up.are_too_many() => {
                    let load = adapter::error_code(Code::H3_EXCESSIVE_LOAD.value());
                    connection.close(load, b"too many requests were given up");
                    return Ok(());
                }
                next = http.accept() => next?,
            };
            let Some(resolver) = next else {
                // All answers have been written, and may still be in flight: the client closes
                // after the last one (RFC 9114 §5.2). Dropping `http` would close now.
                connection.closed().await;
                return Ok(());
            };
            let exchange = Exchange {
                site: Arc::clone(&self.site),
                session: Arc::clone(session),
                connection: connection.clone(),
                names_scheme: self.server_config.scheme_choice,
                access_log: self.server_config.access_log.clone(),
                remote,
                time_for_fields: self.server_config.handshake,
                stops: stops.clone(),
                given_up: given_up.clone(),
            };
            tokio::spawn(async move {
                if let Err(error) = exchange.run(resolver).await {
                    tracing::debug!(%error, "an answer was cut short");
                }
            });
        }
    }
}

/// Keeps the place of a connection that has ended until the stack has forgotten the connection:
/// then its streams of events end.
fn keep(place: Place, connection: &Connection) {
    let mut events = connection.path_events();
    tokio::spawn(async move {
        while events.next().await.is_some() {}
        drop(place);
    });
}

fn requested_scheme(incoming: &Incoming) -> Option<String> {
    let hello = incoming.decrypt()?;
    let protocols = hello.alpns()?;
    let names: Vec<Bytes> = protocols.filter_map(Result::ok).collect();
    choice::requested_scheme(names.iter().map(AsRef::as_ref)).map(str::to_owned)
}

struct Exchange<S> {
    site: Arc<Site>,
    session: Arc<S>,
    connection: Connection,
    names_scheme: bool,
    access_log: Option<AccessLog>,
    remote: SocketAddr,
    time_for_fields: Duration,
    stops: Option<Stops>,
    given_up: GivenUp,
}

#[derive(Debug, thiserror::Error)]
enum ExchangeError {
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("cannot read the data to send: {0}")]
    Body(#[from] std::io::Error),
    #[error("the request's fields did not come in time")]
    Late,
    #[error("the client gave the request up")]
    GivenUp,
    #[error("found `{0}`, with which the request is malformed")]
    Malformed(&'static str),
}

impl<S: Session> Exchange<S> {
    async fn run(self, resolver: RequestResolver<adapter::Connection, Bytes>) -> Result<(), ExchangeError> {
        let resolved = tokio::time::timeout(self.time_for_fields, resolver.resolve_request()).await;
        let (request, mut stream) = resolved.map_err(|_| ExchangeError::Late)??;
        let mut wrong = field_of_http_1(request.headers());
        // RFC 9114 §4.1.2. A body is read when it is passed on, but nobody asks for an empty one.
        if wrong.is_none() && content_length(request.headers()) == Some(0) {
            let first = tokio::time::timeout(self.time_for_fields, stream.recv_data()).await;
            wrong = first.map_err(|_| ExchangeError::Late)??.map(|_| "content-length: 0");
        }
        if let Some(field) = wrong {
            stream.stop_stream(Code::H3_MESSAGE_ERROR);
            stream.stop_sending(Code::H3_MESSAGE_ERROR);
            return Err(ExchangeError::Malformed(field));
        }
        let mut request = request;
        if self.site.passes_on() && !self.is_early_harmless(&mut request).await {
            return Ok(());
        }
        let is_head = request.method() == Method::HEAD;
        let (log, peer) = (self.access_log.as_ref(), self.remote);
        let id = stream.id();
        let (mut stream, receive) = stream.split();
        let gone = self.stops.as_ref().and_then(|stops| stops.take(id));
        let (body, returned) = RequestBody::new(receive, content_length(request.headers()));
        let (hints, mut hinted) = mpsc::channel(MOST_HINTS);
        if self.site.passes_on() {
            request.extensions_mut().insert(EarlyHints(hints));
            request.extensions_mut().insert(self.given_up.clone());
        }
        let answer = access_log::answer(&self.site, log, peer, Version::HTTP_3, request.map(|()| body));
        // Large, and moved with the task otherwise.
        let mut answer = Box::pin(answer);
        let mut gone = gone.unwrap_or_else(|| Box::pin(std::future::pending()));
        let answer = loop {
            tokio::select! {
                biased;
                Some(hints) = hinted.recv() => match stream.send_response(hints).await {
                    // The client takes fewer fields; the answer may do.
                    Err(StreamError::HeaderTooBig { .. }) => {}
                    sent => sent?,
                },
                answer = answer.as_mut() => break answer,
                // The work of other servers ends with the wish for it.
                () = gone.as_mut() => {
                    stream.stop_stream(Code::H3_REQUEST_CANCELLED);
                    return Err(ExchangeError::GivenUp);
                }
            }
        };
        if let Err(error) = self.send(&mut stream, answer, is_head).await {
            // The client must not take a truncated answer for the whole.
            stream.stop_stream(Code::H3_INTERNAL_ERROR);
            return Err(error);
        }
        // The request's end may be in flight. An endless body is refused (RFC 9114 §4.1).
        let Ok(Ok(mut receive)) = tokio::time::timeout(REQUEST_TIMEOUT, returned).await else {
            return Ok(());
        };
        let rest = async { while let Ok(Some(_)) = receive.recv_data().await {} };
        if tokio::time::timeout(REQUEST_TIMEOUT, rest).await.is_err() {
            receive.stop_sending(Code::H3_NO_ERROR);
        }
        Ok(())
    }

    /// Sends the head of an answer and its body.
    async fn send(
        &self,
        stream: &mut RequestStream<SendStream<Bytes>, Bytes>,
        answer: Response<Body>,
        is_head: bool,
    ) -> Result<(), ExchangeError> {
        let (head, mut body) = answer.into_parts();
        let mut head = Response::from_parts(head, ());
        if self.names_scheme
            && let Some(value) = self.session.scheme().and_then(|name| HeaderValue::from_str(name).ok())
        {
            head.headers_mut().insert(choice::HEADER, value);
        }
        // RFC 9110 §6.6.1; hyper sends it over TCP.
        let now = HttpDate::from(UNIX_EPOCH + Duration::from_nanos(unix_now().as_nanos()));
        if let Ok(now) = HeaderValue::from_str(&now.to_string()) {
            head.headers_mut().entry(DATE).or_insert(now);
        }
        if !is_head
            && head.status() != StatusCode::NOT_MODIFIED
            && let Some(length) = content_length(head.headers())
        {
            self.session.will_send(&self.connection, length);
        }
        stream.send_response(head).await?;
        while let Some(frame) = body.frame().await {
            match frame?.into_data() {
                Ok(data) => stream.send_data(data).await?,
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        stream.send_trailers(trailers).await?;
                    }
                }
            }
        }
        Ok(stream.finish().await?)
    }

    /// A request in 0-RTT may be one that an attacker repeats. Before the end of the handshake only
    /// one that reads is passed on, with a mark for the server behind (RFC 8470 §5.1).
    async fn is_early_harmless(&self, request: &mut Request<()>) -> bool {
        let confirmed = self.connection.handshake_confirmed();
        if !request.method().is_safe() {
            return confirmed.await.is_ok();
        }
        if confirmed.now_or_never().is_none() {
            request.headers_mut().insert(EARLY_DATA, HeaderValue::from_static("1"));
        }
        true
    }
}

/// Early hints (RFC 8297) that wait for their client; further ones are dropped.
const MOST_HINTS: usize = 8;

/// Takes early hints for the client of a request, as an extension of the request.
#[derive(Clone)]
pub(crate) struct EarlyHints(
    #[cfg_attr(not(feature = "tcp"), expect(dead_code, reason = "no other server gives hints"))]
    pub  mpsc::Sender<Response<()>>,
);

/// Counts the requests of a connection that its client did not want any more, as an extension of
/// each.
#[derive(Clone, Debug)]
pub(crate) struct GivenUp(Arc<Given>);

#[derive(Debug)]
struct Given {
    left: AtomicU64,
    too_many: CancellationToken,
}

impl GivenUp {
    pub fn new(most: u64) -> Self {
        Self(Arc::new(Given { left: AtomicU64::new(most), too_many: CancellationToken::new() }))
    }

    #[cfg_attr(not(feature = "tcp"), expect(dead_code, reason = "nothing is passed on"))]
    pub fn note(&self) {
        let less = |left: u64| left.checked_sub(1);
        if self.0.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err() {
            self.0.too_many.cancel();
        }
    }

    pub async fn are_too_many(&self) {
        self.0.too_many.cancelled().await;
    }
}

/// RFC 8470 §5.1.
pub(crate) const EARLY_DATA: HeaderName = HeaderName::from_static("early-data");

type Receive = RequestStream<RecvStream, Bytes>;

/// The body of a request, which gives its stream back at its end.
struct RequestBody {
    stream: Option<Receive>,
    back: Option<oneshot::Sender<Receive>>,
    /// Bytes that are missing, of a request that says how many it has.
    left: Option<u64>,
    /// All data came, and trailers may follow.
    is_complete: bool,
}

impl RequestBody {
    fn new(stream: Receive, length: Option<u64>) -> (Self, oneshot::Receiver<Receive>) {
        let (back, returned) = oneshot::channel();
        (Self { stream: Some(stream), back: Some(back), left: length, is_complete: false }, returned)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some(stream) = &mut self.stream else { return Poll::Ready(None) };
        if !self.is_complete {
            if let Some(mut data) = ready!(stream.poll_recv_data(cx))? {
                let data = data.copy_to_bytes(data.remaining());
                if let Some(left) = &mut self.left {
                    *left = left.checked_sub(data.len() as u64).ok_or("the body is longer than announced")?;
                }
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            // RFC 9114 §4.1.2.
            if self.left.is_some_and(|left| left > 0) {
                return Poll::Ready(Some(Err("the body is shorter than announced".into())));
            }
            self.is_complete = true;
        }
        Poll::Ready(ready!(stream.poll_recv_trailers(cx))?.map(|trailers| Ok(Frame::trailers(trailers))))
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(self.poll(cx));
        if !matches!(&frame, Some(Ok(_))) {
            self.give_back();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl RequestBody {
    /// Nobody waits for the stream of a request that was answered long ago.
    fn give_back(&mut self) {
        if let (Some(stream), Some(back)) = (self.stream.take(), self.back.take())
            && let Err(mut stream) = back.send(stream)
        {
            stream.stop_sending(Code::H3_NO_ERROR);
        }
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// A field that makes a request of HTTP/3 malformed (RFC 9114 §4.2).
fn field_of_http_1(fields: &HeaderMap) -> Option<&'static str> {
    let of_connections = ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];
    let other_than_trailers = |value: &HeaderValue| !value.as_bytes().eq_ignore_ascii_case(b"trailers");
    let te = || fields.get_all(TE).iter().any(other_than_trailers).then_some("te");
    of_connections.into_iter().find(|name| fields.contains_key(*name)).or_else(te)
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of docs/security.md.
    #[test]
    fn a_server_has_limits_by_default() {
        let config = ServerConfig::default();
        assert_eq!((config.most_connections, config.most_per_address), (10_000, 1000));
        assert_eq!((config.handshake, config.stall), (Duration::from_secs(10), Duration::from_secs(30)));
        assert!(!config.scheme_choice && config.access_log.is_none());
        assert_eq!(config.send_window(100), 10_000_000, "among a hundred");
        let all: u64 = (1..=config.most_connections).map(|open| config.send_window(open)).sum();
        assert!(all < 6 << 30, "{all} bytes wait for acknowledgements at worst");
        let windows = |most: usize| (1..=most).map(|open| u64::from(config.receive_window(open)));
        assert_eq!((config.receive_window(1), config.receive_window(256)), (1 << 20, 1 << 20));
        let [of_address, all] =
            [config.most_per_address, config.most_connections].map(|it| windows(it).sum::<u64>());
        assert!(
            of_address < 650 << 20 && all < 1400 << 20,
            "{of_address} and {all} bytes wait unread at worst"
        );
    }
}
