//! WebSocket through the proxy: bytes both ways, once both sides have agreed.

use std::io;
use std::sync::{Arc, Mutex};
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

use super::fields::remove_fields_of_connection;
use super::turns::{Pace, Resets, Turn, Way};
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

    /// True if the upstream may answer the handshake so. Over HTTP/2 each status of 2xx would open
    /// a tunnel to the client, which has no key to check the upstream's by.
    pub(super) fn may_answer(&self, answer: &Response<Incoming>) -> bool {
        let headers = answer.headers();
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            return self.key.is_none() || !answer.status().is_success();
        }
        let mut protocols = headers.get_all(UPGRADE).iter();
        let is_websocket =
            protocols.next().is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"websocket"));
        let accepted = headers.get(SEC_WEBSOCKET_ACCEPT);
        let is_accepted = self.key.as_ref().is_none_or(|key| accepted == acceptance(key).as_ref());
        is_websocket && protocols.next().is_none() && is_accepted
    }

    /// The answer to its client, after which bytes are passed on until one side ends, both are
    /// idle, or others get the tunnel's turn.
    pub(super) fn open(
        self,
        mut answer: Response<Incoming>,
        idle: Duration,
        pace: Arc<Pace>,
        places: (Place, Option<Turn>),
    ) -> Response<Body> {
        let resets = answer.extensions().get::<Resets>().cloned();
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
            let moved = Moved { at: Mutex::new(Instant::now()), pace: Arc::clone(&pace) };
            pace.wait(Way::Down, true);
            let up = pump(from_client, to_upstream, idle, &moved);
            let down = pump(from_upstream, to_client, idle, &moved);
            // Both are dropped, and their connections closed, when one has failed.
            let is_whole = tokio::select! {
                done = async { tokio::try_join!(up, down) } => done.is_ok(),
                () = pace.ended() => false,
            };
            if let Some(resets) = resets.filter(|_| !is_whole) {
                resets.set();
            }
        };
        tokio::spawn(self.lease.run(pass));
        let mut told = Response::new(empty());
        (*told.status_mut(), *told.headers_mut()) = (status, headers);
        told
    }
}

/// Bytes of a tunnel that wait, each way.
const TUNNEL_BUFFER: usize = 16 * 1024;

/// Bytes that were moved either way: when, and for the tunnel's pace.
struct Moved {
    at: Mutex<Instant>,
    pace: Arc<Pace>,
}

/// Passes bytes on until the end, or until none has `moved` either way for `idle`.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    idle: Duration,
    moved: &Moved,
) -> io::Result<()> {
    let mut buffer = vec![0; TUNNEL_BUFFER];
    loop {
        let limit = *locked(&moved.at) + idle;
        let count = match tokio::time::timeout_at(limit, from.read(&mut buffer)).await {
            Ok(count) => count?,
            Err(_) if *locked(&moved.at) + idle > Instant::now() => continue,
            Err(late) => return Err(late.into()),
        };
        *locked(&moved.at) = Instant::now();
        moved.pace.moved(Way::Down, count);
        if count == 0 {
            return to.shutdown().await;
        }
        tokio::time::timeout(idle, to.write_all(&buffer[..count])).await??;
    }
}

/// Letters of Base64.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A key of RFC 6455 §4.1: 16 random bytes in Base64, of which the last four bits are 0.
fn key() -> Option<HeaderValue> {
    let mut random = [0; 21];
    crate::provider().secure_random.fill(&mut random).ok()?;
    let letters = random.map(|byte| LETTERS[usize::from(byte % 64)]);
    HeaderValue::from_bytes(&[&letters, &b"A=="[..]].concat()).ok()
}

/// The answer to a key (RFC 6455 §4.2.2): a hash of 20 bytes in Base64.
fn acceptance(key: &HeaderValue) -> Option<HeaderValue> {
    const SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    let text = [key.as_bytes(), SUFFIX].concat();
    let hash = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, &text);
    // Two bytes are left over at the end: three letters, and one that stands for none.
    let letters = hash.as_ref().chunks(3).flat_map(|bytes| {
        let word =
            bytes.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - bytes.len()));
        let count = bytes.len() + 1;
        (0..4).map(move |at| if at < count { LETTERS[(word >> (18 - 6 * at) & 63) as usize] } else { b'=' })
    });
    HeaderValue::from_bytes(&letters.collect::<Vec<u8>>()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_a_key_is_that_of_the_standard() {
        let answer = acceptance(&HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ=="));
        assert_eq!(answer, Some(HeaderValue::from_static("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")));
        assert_eq!(key().map(|key| key.len()), Some(24));
    }
}
