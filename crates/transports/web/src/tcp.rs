//! The same site over HTTP/1.1 and HTTP/2 on TCP, which advertise HTTP/3 (Alt-Svc, RFC 7838).

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::header::{ALT_SVC, EXPECT};
use http::{HeaderValue, StatusCode};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::access_log::{self, AccessLog};
use crate::identity::CurrentIdentity;
use crate::places::{Kind, Place};
use crate::server::{GivenUp, MAX_FIELD_SECTION, MOST_FIELDS, ServerConfig};
use crate::site::Site;

/// The protocols of TLS over TCP, the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Time for which a client may remember the alternative service: a day, RFC 7838's own default.
const REMEMBER: Duration = Duration::from_secs(24 * 3600);

/// TLS for TCP.
///
/// # Errors
///
/// If the cryptography lacks the usual versions of TLS.
pub fn tls(identity: &Arc<CurrentIdentity>) -> Result<Arc<rustls::ServerConfig>, rustls::Error> {
    let mut config = rustls::ServerConfig::builder_with_provider(crate::provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::clone(identity) as Arc<_>);
    // Nothing is kept of a client that may come back: no stranger can take its place.
    config.ticketer = rustls::crypto::ring::Ticketer::new()?;
    config.alpn_protocols = PROTOCOLS.iter().map(|name| name.to_vec()).collect();
    Ok(Arc::new(config))
}

/// Serves `site` on `listener` until `shutdown`, then completes requests. `port` is that of HTTP/3.
///
/// Boxed, so that it is compiled here: an `async fn` is compiled with the optimisation of the crate
/// that polls it.
#[must_use]
pub fn serve(
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    site: Arc<Site>,
    port: u16,
    server_config: ServerConfig,
    shutdown: CancellationToken,
) -> BoxFuture<'static, ()> {
    async move {
        let service = Service {
            tls: TlsAcceptor::from(tls),
            site,
            alt_svc: HeaderValue::from_str(&format!("h3=\":{port}\"; ma={}", REMEMBER.as_secs()))
                .expect("digits and quotation marks may stand in a header"),
            handshake: server_config.handshake,
            most_given_up: server_config.most_given_up,
            receive_window: 0,
            access_log: server_config.access_log.clone(),
            shutdown: shutdown.clone(),
        };
        let places = server_config.places(Kind::Tcp);
        let (connections, ended) = (TaskTracker::new(), CancellationToken::new());
        loop {
            let accepted = tokio::select! {
                () = shutdown.cancelled() => break,
                accepted = accept(&listener, server_config.stall) => accepted,
            };
            let (stream, remote) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Mostly too many open files: some will be closed soon.
                    tracing::warn!(%error, "a TCP connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let Some(place) = places.take(remote.ip(), places.open()) else { continue };
            let mut service = service.clone();
            service.receive_window = server_config.receive_window(places.open());
            let lease = Lease { _place: Arc::new(place), _open: connections.token(), ended: ended.clone() };
            tokio::spawn(async move {
                let log = service.access_log.clone();
                // Large, and moved with the task otherwise.
                let served = Box::pin(service.serve_connection(stream, remote, lease.clone()));
                if let Some(Err(error)) = lease.run(served).await {
                    tracing::debug!(%remote, %error, "a TCP connection ended");
                    if let (Some(log), Some(status)) = (log, refusal(&*error)) {
                        log.refused(remote, status);
                    }
                }
            });
        }
        connections.close();
        let _ = tokio::time::timeout(server_config.grace, connections.wait()).await;
        ended.cancel();
        connections.wait().await;
    }
    .boxed()
}

/// A connection's place, which a tunnel keeps: hyper is done with a connection of HTTP/1.1 when its
/// tunnel begins.
#[derive(Clone)]
pub(crate) struct Lease {
    _place: Arc<Place>,
    _open: TaskTrackerToken,
    /// Cancelled when the time to finish is over.
    ended: CancellationToken,
}

impl Lease {
    /// Runs the task of the connection; `None` if the time was over before.
    pub async fn run<T>(self, task: impl Future<Output = T>) -> Option<T> {
        self.ended.run_until_cancelled(task).await
    }
}

/// The status with which hyper answered a request of HTTP/1.1 that it could not read.
fn refusal(error: &(dyn std::error::Error + 'static)) -> Option<StatusCode> {
    let error =
        error.downcast_ref::<hyper::Error>().filter(|it| it.is_parse() && !it.is_parse_version_h2())?;
    let is_long = error.is_parse_too_large();
    Some(if is_long { StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE } else { StatusCode::BAD_REQUEST })
}

/// A connection whose packets leave at once: the end of a small answer would wait for the ack of
/// its beginning, which Linux delays by 40 ms. The kernel closes it when its peer takes nothing for
/// `stall`.
async fn accept(listener: &TcpListener, stall: Duration) -> io::Result<(TcpStream, SocketAddr)> {
    let (stream, remote) = listener.accept().await?;
    // They fail only for a connection that has ended.
    let _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(&stream).set_tcp_user_timeout(Some(stall));
    #[cfg(not(target_os = "linux"))]
    let _ = stall;
    Ok((stream, remote))
}

const TOO_MANY_GIVEN_UP: &str = "too many requests were given up";

#[derive(Clone)]
struct Service {
    tls: TlsAcceptor,
    site: Arc<Site>,
    alt_svc: HeaderValue,
    handshake: Duration,
    most_given_up: u64,
    /// Bytes that wait unread on a connection over HTTP/2.
    receive_window: u32,
    access_log: Option<AccessLog>,
    shutdown: CancellationToken,
}

impl Service {
    async fn serve_connection(
        self,
        stream: TcpStream,
        remote: SocketAddr,
        lease: Lease,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let stream = tokio::time::timeout(self.handshake, self.tls.accept(stream)).await??;
        let has_asked = AtomicBool::new(false);
        let given_up = GivenUp::new(self.most_given_up);
        let answer = service_fn(|mut request: http::Request<Incoming>| {
            has_asked.store(true, Ordering::Relaxed);
            if self.site.passes_on() {
                request.extensions_mut().insert(lease.clone());
                request.extensions_mut().insert(given_up.clone());
            }
            let (site, alt_svc) = (Arc::clone(&self.site), self.alt_svc.clone());
            let (log, version) = (self.access_log.clone(), request.version());
            Box::pin(async move {
                let request = RequestBody::of(request);
                let mut answer = access_log::answer(&site, log.as_ref(), remote, version, request).await;
                answer.headers_mut().insert(ALT_SVC, alt_svc);
                Ok::<_, Infallible>(answer)
            })
        });
        let mut builder = Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(self.handshake);
        builder.http2().timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(30));
        builder.http1().max_buf_size(MAX_FIELD_SECTION as usize).max_headers(MOST_FIELDS);
        builder.http2().max_header_list_size(MAX_FIELD_SECTION);
        builder.http2().initial_connection_window_size(self.receive_window);
        builder.http2().initial_stream_window_size(self.receive_window);
        if self.site.passes_on() {
            // RFC 8441: a tunnel to an upstream.
            builder.http2().enable_connect_protocol();
        }
        let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), answer));
        // Neither of the protocols has a limit for the time until its first bytes.
        let is_late = async {
            tokio::time::sleep(self.handshake).await;
            if has_asked.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            done = connection.as_mut() => return done,
            () = is_late => return Err("no request came".into()),
            () = given_up.are_too_many() => return Err(TOO_MANY_GIVEN_UP.into()),
            () = self.shutdown.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        tokio::select! {
            done = connection => done,
            () = given_up.are_too_many() => Err(TOO_MANY_GIVEN_UP.into()),
        }
    }
}

/// Longest time for the rest of a request that has been answered.
const DRAIN: Duration = Duration::from_secs(5);

/// The body of a request. If nobody reads it to its end, it is read for a while nevertheless. Many
/// clients see no answer if a reset of the stream, or of the connection, tells them meanwhile to
/// send no more (RFC 9112 §9.6, RFC 9113 §8.1).
struct RequestBody {
    /// Until its end.
    inner: Option<Incoming>,
    /// The client waits before it sends a body, and hyper would tell it to send.
    waits: bool,
}

impl RequestBody {
    fn of(request: http::Request<Incoming>) -> http::Request<Self> {
        let waits = request.headers().contains_key(EXPECT);
        request.map(|body| Self { inner: Some(body), waits })
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.inner else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(cx);
        if let Poll::Ready(None | Some(Err(_))) = polled {
            self.inner = None;
        }
        self.waits = false;
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or_else(|| SizeHint::with_exact(0), Incoming::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let rest = self.inner.take().filter(|body| !body.is_end_stream() && !self.waits);
        if let Some(mut body) = rest {
            tokio::spawn(async move {
                let rest = async { while let Some(Ok(_)) = body.frame().await {} };
                let _ = tokio::time::timeout(DRAIN, rest).await;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_an_answer_does_not_wait_for_an_ack() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (client, accepted) =
            tokio::join!(TcpStream::connect(address), accept(&listener, Duration::from_secs(1)));
        let (stream, remote) = accepted.expect("a connection");
        assert_eq!(remote, client.expect("a connection").local_addr().expect("an address"));
        assert!(stream.nodelay().expect("an option"));
    }
}
