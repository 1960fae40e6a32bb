//! The page's server: for this machine, for those who have its address, and bounded.
//!
//! | hostile request | bound |
//! |---|---|
//! | of another machine | it listens on the loopback address only |
//! | of another page (DNS rebinding too) | `Host`, `Origin`, `Sec-Fetch-Site` must be its own |
//! | without the address | a token of 128 random bits, compared in constant time |
//! | long addresses, headers, bodies | 4 KiB, 16 KiB, none |
//! | slow ones | the head within five seconds, [`CONNECTIONS`] at once |
//! | many runs | [`RUNS`] at once, [`WAITING`] waiting, the rest is refused |
//! | large runs | refused before they begin ([`runs::prepare`]) |

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Query, Request, State as Shared};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde_json::Value;
use subtle::ConstantTimeEq as _;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::runs;
use super::state::State;
use crate::command::call;

/// Most races and flows at once.
pub const RUNS: usize = 2;
/// Most that wait for their turn.
pub const WAITING: usize = 16;
/// Most connections at once.
pub const CONNECTIONS: usize = 64;
/// Longest path and query.
const MAX_ADDRESS: usize = 4096;
/// Time for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(5);

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// No resource but the page's own; figures have styles in their elements.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The server's state.
#[derive(Debug)]
pub struct Server {
    token: String,
    port: u16,
    first: State,
    turns: Arc<Semaphore>,
    /// Requests that run or wait.
    entered: AtomicUsize,
    /// Most that ran or waited at once.
    peak: AtomicUsize,
}

type Values = Query<Vec<(String, String)>>;

impl Server {
    /// A server of this port, whose page begins with this state.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub fn new(port: u16, first: State) -> anyhow::Result<Arc<Self>> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random bytes: {error}"))?;
        let token = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let turns = Arc::new(Semaphore::new(RUNS));
        Ok(Arc::new(Self {
            token,
            port,
            first,
            turns,
            entered: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
        }))
    }

    /// The address of the page.
    #[must_use]
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Serves until the program ends.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        let slots = Arc::new(Semaphore::new(CONNECTIONS));
        let app = self.app();
        loop {
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
            let Ok((socket, _)) = listener.accept().await else {
                // No descriptor is free, for instance.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let service = TowerToHyperService::new(app.clone());
            tokio::spawn(async move {
                let _slot = slot;
                let mut http = hyper::server::conn::http1::Builder::new();
                http.timer(TokioTimer::new())
                    .header_read_timeout(HEAD_TIME)
                    .max_buf_size(16 << 10)
                    .max_headers(64);
                // A client that disconnects does not affect others.
                let _ = http.serve_connection(TokioIo::new(socket), service).await;
            });
        }
    }

    fn app(self: &Arc<Self>) -> Router {
        let text = |kind: &'static str, text: String| {
            get(move || async move { ([(header::CONTENT_TYPE, kind)], text) })
        };
        let style = headstart_report::page::style() + STYLE;
        let catalogue = runs::catalogue(&self.first).to_string();
        let at = |name: &str| format!("/{}/{name}", self.token);
        Router::new()
            .route(&at(""), text("text/html; charset=utf-8", PAGE.to_owned()))
            .route(&at("page.css"), text("text/css; charset=utf-8", style))
            .route(&at("page.js"), text("text/javascript; charset=utf-8", SCRIPT.to_owned()))
            .route(&at("catalogue"), text("application/json", catalogue))
            .route(&at("race"), get(race))
            .route(&at("flows"), get(flows))
            .with_state(Arc::clone(self))
            .layer(middleware::from_fn_with_state(Arc::clone(self), guard))
    }

    /// True if the first part of the path is the token.
    fn admits(&self, path: &str) -> bool {
        let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        bool::from(first.as_bytes().ct_eq(self.token.as_bytes()))
    }

    /// The reason to refuse a request of another page, if there is one.
    fn refusal(&self, headers: &HeaderMap) -> Option<String> {
        let own = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        let text =
            |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or("?").to_owned());
        let host = text(header::HOST).unwrap_or_default();
        if !own.contains(&host) {
            return Some(format!("Host: found `{host}`, expected {}", own[0]));
        }
        if let Some(origin) = text(header::ORIGIN)
            && origin != format!("http://{host}")
        {
            return Some(format!("Origin: found `{origin}`, expected http://{host}"));
        }
        let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
        if site.is_some_and(|site| site != b"same-origin" && site != b"none") {
            return Some("Sec-Fetch-Site: found another site, expected this one".to_owned());
        }
        None
    }

    /// A turn to run, when it comes; `None` if too many wait.
    async fn turn(self: &Arc<Self>) -> Option<Turn> {
        let entered = self.entered.fetch_add(1, Ordering::Relaxed) + 1;
        let entry = Entry(Arc::clone(self));
        if entered > RUNS + WAITING {
            return None;
        }
        self.peak.fetch_max(entered, Ordering::Relaxed);
        let permit = Arc::clone(&self.turns).acquire_owned().await.ok()?;
        Some(Turn { _permit: permit, _entry: entry })
    }
}

/// One request among those that run or wait.
struct Entry(Arc<Server>);

impl Drop for Entry {
    fn drop(&mut self) {
        self.0.entered.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The right to run, until it is dropped.
struct Turn {
    _permit: OwnedSemaphorePermit,
    _entry: Entry,
}

/// Stops a race when its reader is gone.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Refuses what is not a request of the own page, and adds the headers of every answer.
async fn guard(Shared(server): Shared<Arc<Server>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let has_body = headers.contains_key(header::TRANSFER_ENCODING)
        || headers.get(header::CONTENT_LENGTH).is_some_and(|length| length != "0");
    let address = request.uri().path_and_query().map_or(0, |text| text.as_str().len());
    let mut response = if let Some(refusal) = server.refusal(headers) {
        (StatusCode::FORBIDDEN, refusal).into_response()
    } else if address > MAX_ADDRESS {
        let text = format!("address: found {address} bytes, expected {MAX_ADDRESS} at most");
        (StatusCode::URI_TOO_LONG, text).into_response()
    } else if !server.admits(request.uri().path()) {
        let text = "token: found none that is valid, expected the address that `headstart explore` printed";
        (StatusCode::FORBIDDEN, text).into_response()
    } else if has_body {
        (StatusCode::PAYLOAD_TOO_LARGE, "body: found one, expected none").into_response()
    } else {
        next.run(request).await
    };
    if has_body {
        // The body is not read: nothing else can follow on this connection.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    let policy = HeaderValue::from_static("same-origin");
    response.headers_mut().insert("cross-origin-resource-policy", policy.clone());
    response.headers_mut().insert("cross-origin-opener-policy", policy);
    response
}

fn refused(error: &anyhow::Error) -> Response {
    (StatusCode::BAD_REQUEST, call::message(error)).into_response()
}

fn busy() -> Response {
    let text = format!("runs: found {RUNS} at work and {WAITING} waiting, expected fewer: try again");
    (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")], text).into_response()
}

/// A race, whose answers follow one another as events.
async fn race(Shared(server): Shared<Arc<Server>>, Query(values): Values) -> Response {
    let state = match State::new(values) {
        Ok(state) => state,
        Err(error) => return refused(&error),
    };
    let is_stopped = Arc::new(AtomicBool::new(false));
    let stop = StopOnDrop(Arc::clone(&is_stopped));
    let Some(turn) = server.turn().await else { return busy() };
    let (checked, check) = oneshot::channel();
    let (events, answers) = mpsc::channel::<Event>(1);
    tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let prepared = match runs::prepare(state) {
            Ok(prepared) => prepared,
            Err(error) => return drop(checked.send(Err(error))),
        };
        if checked.send(Ok(())).is_err() {
            return;
        }
        let send = |name: &str, value: &Value| {
            events.blocking_send(Event::default().event(name).data(value.to_string())).is_ok()
        };
        if let Err(error) = runs::race(&prepared, &is_stopped, |name, answer| send(name, &answer)) {
            // An error means that the reader has gone.
            send("failed", &Value::String(call::message(&error)));
        }
    });
    match check.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return refused(&error),
        Err(_) => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
    let stream = futures_util::stream::unfold((answers, stop), |(mut answers, stop)| async move {
        let event = answers.recv().await?;
        Some((Ok::<_, Infallible>(event), (answers, stop)))
    });
    Sse::new(stream).into_response()
}

/// Two flows, packet by packet.
async fn flows(Shared(server): Shared<Arc<Server>>, Query(values): Values) -> Response {
    let state = match State::new(values) {
        Ok(state) => state,
        Err(error) => return refused(&error),
    };
    let Some(turn) = server.turn().await else { return busy() };
    let work = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        runs::flows(&state)
    });
    match work.await {
        Ok(Ok(flows)) => ([(header::CONTENT_TYPE, "application/json")], flows.to_string()).into_response(),
        Ok(Err(error)) => refused(&error),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Binds the loopback address; port 0 is any that is free.
///
/// # Errors
/// If the port is in use.
pub async fn bind(port: u16) -> std::io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    /// A race that takes a moment.
    const RACE: &str = "race?schemes=iw10&duration=5s&repeats=1";

    async fn started() -> Arc<Server> {
        let listener = bind(0).await.expect("a port");
        let first = State::new(vec![]).expect("fine");
        let server = Server::new(listener.local_addr().expect("bound").port(), first).expect("random bytes");
        tokio::spawn(Arc::clone(&server).serve(listener));
        server
    }

    /// The answer to these bytes, as far as it comes before the server closes.
    async fn answer(server: &Server, request: &str) -> String {
        let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).await.expect("it listens");
        // It may refuse before all is written.
        let _ = socket.write_all(request.as_bytes()).await;
        let mut text = vec![];
        if let Err(error) = socket.read_to_end(&mut text).await {
            text.extend(format!("\nbroken: {error}").bytes());
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    async fn get(server: &Server, path: &str, headers: &str) -> String {
        let (port, token) = (server.port, &server.token);
        let head = format!(
            "GET /{token}/{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{headers}\r\n"
        );
        answer(server, &head).await
    }

    fn status(answer: &str) -> &str {
        answer.split(' ').nth(1).unwrap_or("none")
    }

    #[tokio::test]
    async fn the_page_and_its_parts_come_with_a_strict_policy() {
        let server = started().await;
        for path in ["", "page.css", "page.js", "catalogue", "flows?size=20kB", RACE] {
            let answer = get(&server, path, "").await;
            assert_eq!(status(&answer), "200", "{path}: {answer}");
            let lower = answer.to_ascii_lowercase();
            for header in [
                "content-security-policy: default-src 'none'; script-src 'self'",
                "x-content-type-options: nosniff",
                "referrer-policy: no-referrer",
                "cross-origin-resource-policy: same-origin",
            ] {
                assert!(lower.contains(header), "{path}: {header}");
            }
        }
        assert!(!PAGE.contains("<script>") && !PAGE.contains("onclick") && !PAGE.contains("//"));
    }

    #[tokio::test]
    async fn another_host_origin_or_site_is_refused() {
        let server = started().await;
        let (port, token) = (server.port, &server.token);
        for host in
            ["evil.example".to_owned(), format!("evil.example:{port}"), "127.0.0.1".to_owned(), String::new()]
        {
            let answer = answer(
                &server,
                &format!("GET /{token}/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
            )
            .await;
            assert!(["400", "403"].contains(&status(&answer)), "{host}: {answer}");
        }
        for (header, expected) in [
            ("Origin: http://evil.example\r\n".to_owned(), "403"),
            ("Origin: null\r\n".to_owned(), "403"),
            (format!("Origin: https://127.0.0.1:{port}\r\n"), "403"),
            ("Sec-Fetch-Site: cross-site\r\n".to_owned(), "403"),
            ("Sec-Fetch-Site: same-site\r\n".to_owned(), "403"),
            (format!("Origin: http://127.0.0.1:{port}\r\nSec-Fetch-Site: same-origin\r\n"), "200"),
            ("Sec-Fetch-Site: none\r\n".to_owned(), "200"),
        ] {
            assert_eq!(status(&get(&server, "", &header).await), expected, "{header}");
        }
    }

    #[tokio::test]
    async fn without_the_token_nothing_is_told() {
        let server = started().await;
        let (port, token) = (server.port, &server.token);
        assert_eq!(token.len(), 32);
        let other = format!("{}{}", &token[..31], if token.ends_with('0') { '1' } else { '0' });
        for path in [
            "/".to_owned(),
            "/page.js".to_owned(),
            format!("/{other}/"),
            format!("/{}/", &token[..31]),
            format!("//x/{token}/"),
        ] {
            let head = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
            let answer = answer(&server, &head).await;
            assert_eq!(status(&answer), "403", "{path}: {answer}");
            assert!(!answer.contains(token.as_str()));
        }
        let another = started().await;
        assert_ne!(another.token, server.token);
    }

    #[tokio::test]
    async fn long_addresses_headers_and_bodies_are_refused() {
        let server = started().await;
        let (port, token) = (server.port, &server.token);
        let long = get(&server, &format!("race?rate={}", "1".repeat(5000)), "").await;
        assert_eq!(status(&long), "414", "{long}");
        let large = get(&server, "", &format!("X: {}\r\n", "1".repeat(40_000))).await;
        assert!(["431", "none"].contains(&status(&large)), "{large}");
        for body in
            ["Content-Length: 1000000000\r\n\r\nxxxx", "Transfer-Encoding: chunked\r\n\r\n4\r\nxxxx\r\n"]
        {
            let head = format!("GET /{token}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{body}");
            assert_eq!(status(&answer(&server, &head).await), "413", "{body}");
        }
        let post = format!("POST /{token}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
        assert_eq!(status(&answer(&server, &post).await), "405");
    }

    #[tokio::test]
    async fn values_outside_of_ranges_are_refused_with_the_options_own_message() {
        let server = started().await;
        for (path, expected) in [
            ("race?loss=101%25", "--loss: found 101 %, expected 100 % at most"),
            ("race?rtt=61s", "--rtt: found 61 s, expected a minute at most"),
            ("race?rate=99999+Gbit/s", "of processor time"),
            ("race?repeats=1000", "--repeats: found 1000, expected a whole number of 64 at most"),
            ("race?har=/etc/passwd", "har: found an option that the page does not have"),
            ("flows?size=1+TB", "--size: found `1 TB`, expected a size"),
            ("flows?buffer=12+parsecs", "--buffer: found `12 parsecs`, expected a buffer"),
        ] {
            let answer = get(&server, path, "").await;
            assert_eq!(status(&answer), "400", "{path}: {answer}");
            assert!(answer.contains(expected), "{path}: {answer}");
        }
    }

    #[tokio::test]
    async fn a_race_stops_when_its_reader_is_gone() {
        let server = started().await;
        let (port, token) = (server.port, &server.token);
        let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("it listens");
        let head = format!(
            "GET /{token}/race?repeats=64&schemes=iw10&duration=60s HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).await.expect("sent");
        let mut start = [0; 12];
        socket.read_exact(&mut start).await.expect("an answer begins");
        assert_eq!(server.entered.load(Ordering::Relaxed), 1);
        drop(socket);
        // 64 seeds would take far longer.
        for _ in 0..600 {
            if server.entered.load(Ordering::Relaxed) == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("it still runs");
    }

    #[tokio::test]
    async fn connections_that_send_nothing_are_closed_and_the_next_ones_served() {
        let server = started().await;
        let mut idle = vec![];
        for _ in 0..CONNECTIONS {
            idle.push(TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).await.expect("it listens"));
        }
        // It waits until they are closed: they stay open at this end.
        assert_eq!(status(&get(&server, "page.js", "").await), "200");
        let mut rest = vec![];
        let _ = idle[0].read_to_end(&mut rest).await;
        assert!(rest.is_empty() || status(&String::from_utf8_lossy(&rest)) == "408", "{rest:?}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_thousand_requests_at_once_stay_bounded_and_all_are_answered() {
        let server = started().await;
        let requests: Vec<_> = (0..1000)
            .map(|_| {
                let server = Arc::clone(&server);
                tokio::spawn(async move {
                    let first = get(&server, RACE, "").await;
                    // The kernel may reset a connection for which its backlog has no room: as a
                    // browser does, once more.
                    if first.starts_with("HTTP") { first } else { get(&server, RACE, "").await }
                })
            })
            .collect();
        let mut answers = std::collections::BTreeMap::<String, u32>::new();
        for request in requests {
            let answer = request.await.expect("no panic");
            assert!(!answer.contains("event: answer") || answer.contains("event: end"), "cut: {answer}");
            *answers.entry(status(&answer).to_owned()).or_default() += 1;
        }
        assert!(server.peak.load(Ordering::Relaxed) <= RUNS + WAITING);
        assert_eq!(
            answers.get("200").copied().unwrap_or(0) + answers.get("503").copied().unwrap_or(0),
            1000,
            "{answers:?}"
        );
        assert!(answers["200"] >= 1 && answers["503"] >= 1, "{answers:?}");
        assert_eq!(server.entered.load(Ordering::Relaxed), 0, "all turns are given back");
    }
}
