//! WebSocket through the proxy: bytes both ways, once both sides have agreed.

use std::io;
use std::sync::Mutex;
use std::time::Duration;

use headstart_host::locked;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::Instant;

use super::Turn;
use super::fields::remove_fields_of_connection;
use crate::places::Place;
use crate::site::{Body, empty};
use crate::tcp::Lease;

/// A request for a tunnel of WebSocket: by `Upgrade` over HTTP/1.1, or by CONNECT over HTTP/2 (RFC
/// 8441). Upstreams get the former. No other protocol is passed on: h2c would carry requests that
/// are not seen here.
pub(super) struct Tunnel {
    client: OnUpgrade,
    lease: Lease,
    /// Over HTTP/2 there is none.
    key: Option<HeaderValue>,
}

const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");

impl Tunnel {
    pub(super) fn wanted(head: &mut Parts) -> Option<Self> {
        // Requests without a tunnel must not keep a connection's place when it ends.
        let lease = head.extensions.remove::<Lease>()?;
        let client = head.extensions.remove::<OnUpgrade>()?;
        let is_websocket = |name: &[u8]| name.eq_ignore_ascii_case(WEBSOCKET.as_bytes());
        if head.method == Method::CONNECT {
            let protocol = head.extensions.get::<hyper::ext::Protocol>()?;
            is_websocket(protocol.as_str().as_bytes()).then_some(())?;
            head.method = Method::GET;
            return Some(Self { client, lease, key: Some(key()?) });
        }
        let is_one = head.method == Method::GET && head.headers.get_all(UPGRADE).iter().count() == 1;
        let is_websocket = is_one && is_websocket(head.headers[UPGRADE].as_bytes());
        is_websocket.then_some(Self { client, lease, key: None })
    }

    /// Fields of its connection to an upstream.
    pub(super) fn ask(&self, headers: &mut HeaderMap) {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, WEBSOCKET);
        if let Some(key) = &self.key {
            headers.insert(SEC_WEBSOCKET_KEY, key.clone());
        }
    }

    /// The answer to its client, after which bytes are passed on until one side ends or both are
    /// idle.
    pub(super) fn open(
        self,
        mut answer: Response<Incoming>,
        idle: Duration,
        places: (Place, Turn),
    ) -> Response<Body> {
        let upstream = hyper::upgrade::on(&mut answer);
        let mut headers = std::mem::take(answer.headers_mut());
        remove_fields_of_connection(&mut headers);
        let status = if self.key.is_some() {
            headers.remove(SEC_WEBSOCKET_ACCEPT);
            StatusCode::OK
        } else {
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            headers.insert(UPGRADE, WEBSOCKET);
            StatusCode::SWITCHING_PROTOCOLS
        };
        let pass = async move {
            let _places = places;
            let Ok((client, upstream)) = tokio::try_join!(self.client, upstream) else { return };
            let (from_client, to_client) = tokio::io::split(TokioIo::new(client));
            let (from_upstream, to_upstream) = tokio::io::split(TokioIo::new(upstream));
            let moved = Mutex::new(Instant::now());
            let up = pump(from_client, to_upstream, idle, &moved);
            // Both are dropped, and their connections closed, when one has failed.
            let _ = tokio::try_join!(up, pump(from_upstream, to_client, idle, &moved));
        };
        tokio::spawn(self.lease.run(pass));
        let mut told = Response::new(empty());
        (*told.status_mut(), *told.headers_mut()) = (status, headers);
        told
    }
}

/// Bytes of a tunnel that wait, each way.
const TUNNEL_BUFFER: usize = 16 * 1024;

/// Passes bytes on until the end, or until none has `moved` either way for `idle`.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    idle: Duration,
    moved: &Mutex<Instant>,
) -> io::Result<()> {
    let mut buffer = vec![0; TUNNEL_BUFFER];
    loop {
        let limit = *locked(moved) + idle;
        let count = match tokio::time::timeout_at(limit, from.read(&mut buffer)).await {
            Ok(count) => count?,
            Err(_) if *locked(moved) + idle > Instant::now() => continue,
            Err(late) => return Err(late.into()),
        };
        *locked(moved) = Instant::now();
        if count == 0 {
            return to.shutdown().await;
        }
        tokio::time::timeout(idle, to.write_all(&buffer[..count])).await??;
    }
}

/// A key of RFC 6455 §4.1: 16 random bytes in Base64, of which the last four bits are 0.
fn key() -> Option<HeaderValue> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut random = [0; 21];
    crate::provider().secure_random.fill(&mut random).ok()?;
    let letters = random.map(|byte| LETTERS[usize::from(byte % 64)]);
    HeaderValue::from_bytes(&[&letters, &b"A=="[..]].concat()).ok()
}
