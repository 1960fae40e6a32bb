//! Other servers as contents: each request is passed to one of them over HTTP/1.1.
//!
//! Bodies are passed on as they come, both ways, and never kept whole. Fields of one connection
//! (RFC 9110 §7.6.1) stay on it; framing is written anew, so that a client and an upstream cannot
//! disagree about the end of a request.

mod bodies;
mod dial;
mod fields;
mod tunnel;
mod turns;

use std::error::Error as _;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use headstart_host::{Exposition, locked};
use http::header::{ALT_SVC, CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, HOST, TE, TRANSFER_ENCODING, VIA};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::{HttpConnector, capture_connection};
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tower::timeout::Timeout;
use tower::util::{BoxCloneSyncService, MapResponse};

use self::bodies::{Download, Upload, no_body};
use self::dial::{Asking, Dialled};
use self::fields::{forwarded, join, number, remove_fields_of_connection};
use self::tunnel::Tunnel;
use self::turns::{Full, Pace, Resets, Turn, Turns, Way};
use crate::client::{self, FetchError, Trust};
use crate::places::{ConnectionCounters, Kind, Place, Places};
use crate::server::{EarlyHints, GivenUp, MAX_FIELD_SECTION, MOST_FIELDS};
use crate::site::{Body, BoxError, has_other_coding, no_method, plain};

/// The body of a request.
pub type RequestBody = UnsyncBoxBody<Bytes, BoxError>;

/// The status and the text of an answer that no upstream gave.
type Refusal = (StatusCode, &'static str);

const TOO_MANY: Refusal = (StatusCode::SERVICE_UNAVAILABLE, "too many requests are in progress");
const LOOP: Refusal = (StatusCode::LOOP_DETECTED, "the request has been here before");
const NO_PATH: Refusal = (StatusCode::BAD_REQUEST, "found no path");
const LENGTHS: Refusal = (StatusCode::BAD_REQUEST, "found no valid content-length, or several");
const SLOW_CLIENT: Refusal = (StatusCode::REQUEST_TIMEOUT, "the request did not come in time");
const CUT_SHORT: Refusal = (StatusCode::BAD_REQUEST, "the request has another length than announced");
const UNREACHABLE: Refusal = (StatusCode::BAD_GATEWAY, "the server behind this one cannot be reached");
const BROKEN: Refusal = (StatusCode::BAD_GATEWAY, "the server behind this one gave no valid answer");
const BUSY: Refusal =
    (StatusCode::SERVICE_UNAVAILABLE, "too many requests wait for the server behind this one");
const LATE: Refusal = (StatusCode::GATEWAY_TIMEOUT, "the server behind this one did not answer in time");

/// Most entries of `Via`: a loop through servers that do not look for one ends.
const MOST_HOPS: usize = 20;
/// Connections without a request that are kept for each upstream.
const MOST_IDLE: usize = 256;
/// Time for which they are kept: less than the 5 s of Node and Apache, which could close one while
/// a request is on its way. A request that may be repeated then gets a new one.
const KEPT_IDLE: Duration = Duration::from_secs(4);
/// Requests in progress at one upstream: by default all that may be.
pub const MOST_PER_UPSTREAM: usize = usize::MAX;
/// First pause of an upstream that failed, doubled with each further failure in a row.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Time between two questions after an upstream's health.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Address of an upstream: `http://HOST[:PORT]` or `https://HOST[:PORT]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    scheme: Scheme,
    authority: Authority,
}

impl FromStr for Address {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let refused =
            || format!("found `{text}`, expected http://HOST:PORT or https://HOST:PORT without a path");
        let parts = text.parse::<Uri>().map_err(|_| refused())?.into_parts();
        let is_bare = parts.path_and_query.is_none_or(|path| path == "/");
        match (parts.scheme, parts.authority) {
            (Some(scheme), Some(authority))
                if is_bare
                    && (scheme == Scheme::HTTP || scheme == Scheme::HTTPS)
                    && !authority.as_str().contains('@')
                    && !authority.host().is_empty()
                    && (authority.port_u16().is_some_and(|port| port > 0)
                        || authority.as_str() == authority.host()) =>
            {
                Ok(Self { scheme, authority })
            }
            _ => Err(refused()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority)
    }
}

/// Settings of a proxy.
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    /// Certificates of upstreams over https.
    pub trust: Trust,
    /// Clients are proxies whose `Forwarded` and `X-Forwarded-*` are true, and are added to.
    pub trust_forwarded: bool,
    /// `Host` is the upstream's name, not the one that the client asked for.
    pub names_upstream: bool,
    /// A path that each upstream is asked for, to be left out while it does not answer with 2xx or
    /// 3xx.
    pub check: Option<PathAndQuery>,
    /// Time limit of a connection to an upstream, with its TLS handshake.
    pub connect: Duration,
    /// Time limit from the last byte of a request to the first of its answer.
    pub first_byte: Duration,
    /// Longest pause in an answer.
    pub idle: Duration,
    /// Requests in progress at one upstream: further ones wait, and while they do, one whose client
    /// is slow gives way. One address has all but a quarter of them at most, unless clients are
    /// proxies.
    pub most_per_upstream: usize,
    /// Requests in progress, in all.
    pub most: usize,
    /// Requests in progress of one address (of IPv6 a /64).
    pub most_per_address: usize,
    /// Counters of requests in progress.
    pub counters: ConnectionCounters,
}

impl Default for ProxyConfig {
    fn default() -> Self {
        Self {
            trust: Trust::System { also: vec![] },
            trust_forwarded: false,
            names_upstream: false,
            check: None,
            connect: Duration::from_secs(5),
            first_byte: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            most_per_upstream: MOST_PER_UPSTREAM,
            most: 10_000,
            most_per_address: 1000,
            counters: ConnectionCounters::default(),
        }
    }
}

type Connector = BoxCloneSyncService<Uri, MaybeHttpsStream<Dialled>, BoxError>;

/// Passes requests to upstreams.
#[derive(Debug)]
pub struct Proxy {
    upstreams: Vec<Upstream>,
    config: ProxyConfig,
    client: Client<Connector, Upload>,
    /// Opens a connection for each request: for one whose kept connection had ended.
    anew: Client<Connector, Upload>,
    /// Name in `Via`, of this process alone.
    name: String,
    next: AtomicUsize,
    places: Arc<Places>,
}

impl Proxy {
    /// A proxy in front of `upstreams`, of which there is at least one.
    ///
    /// # Errors
    ///
    /// If the certificates to trust cannot be read.
    pub fn new(upstreams: Vec<Address>, config: ProxyConfig) -> Result<Self, FetchError> {
        let mut tls = client::tls(&config.trust, None, false)?;
        tls.alpn_protocols.clear();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let tcp = MapResponse::new(tcp, Dialled::new as fn(TokioIo<TcpStream>) -> Dialled);
        let https = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
        let connector = Timeout::new(https.wrap_connector(tcp), config.connect);
        let connector = BoxCloneSyncService::new(connector);
        let [client, anew] = [MOST_IDLE, 0].map(|most_idle| {
            Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(KEPT_IDLE)
                .pool_max_idle_per_host(most_idle)
                .http1_max_buf_size(MAX_FIELD_SECTION as usize)
                .http1_max_headers(MOST_FIELDS)
                .build(Connector::clone(&connector))
        });
        let places =
            Places::new(config.most, config.most_per_address, Kind::Request, config.counters.clone());
        let upstream =
            |address| Upstream::new(address, Turns::new(config.most_per_upstream, !config.trust_forwarded));
        let upstreams = upstreams.into_iter().map(upstream).collect();
        Ok(Self { upstreams, config, client, anew, name: pseudonym()?, next: AtomicUsize::new(0), places })
    }

    /// The upstream's answer to a request of a client at `peer`.
    pub(crate) async fn answer(&self, peer: IpAddr, request: Request<RequestBody>) -> Response<Body> {
        let (mut head, body) = request.into_parts();
        let tunnel = Tunnel::wanted(&mut head);
        if head.method == Method::CONNECT {
            return no_method(true);
        }
        let mut interest = Interest(head.extensions.get().cloned());
        let answer = match self.places.take(peer, self.places.open()) {
            Some(place) => self.pass(peer, head, body, tunnel, place).await,
            None => Err(TOO_MANY),
        };
        interest.0 = None;
        answer.unwrap_or_else(|(status, text)| plain(status, text))
    }

    async fn pass(
        &self,
        peer: IpAddr,
        mut head: Parts,
        body: RequestBody,
        tunnel: Option<Tunnel>,
        place: Place,
    ) -> Result<Response<Body>, Refusal> {
        self.rewrite(peer, &mut head)?;
        if let Some(tunnel) = &tunnel {
            tunnel.ask(&mut head.headers);
        }
        let pace = Pace::new(peer);
        let upload = Upload::new(body, Arc::clone(&pace));
        if upload.size_hint().exact().is_none() && !has_content(&head.method) {
            let first = tokio::time::timeout(self.config.first_byte, upload.peek()).await;
            first.map_err(|_| SLOW_CLIENT)?;
            if upload.has_failed() {
                return Err(CUT_SHORT);
            }
            if upload.size_hint().exact().is_none() {
                // hyper takes the body of a GET or HEAD of unknown length for none.
                head.headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
            }
        }
        if !has_content(&head.method) && upload.size_hint().exact() != Some(0) {
            // Some servers ignore such a body, and read it as the next request of the connection,
            // which would be another client's.
            head.headers.append(CONNECTION, HeaderValue::from_static("close"));
        }
        let (answer, turn) = self.ask_all(&head, &upload).await?;
        let places = (place, turn);
        if has_other_coding(answer.headers()) || tunnel.as_ref().is_some_and(|it| !it.may_answer(&answer)) {
            return Err(BROKEN);
        }
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            return tunnel.map(|tunnel| tunnel.open(answer, self.config.idle, pace, places)).ok_or(BROKEN);
        }
        Ok(self.returned(answer, &head, pace, places))
    }

    /// Asks one upstream after the other, as long as it is certain that none has begun with the
    /// request, or harmless if it has.
    async fn ask_all(&self, head: &Parts, upload: &Upload) -> Result<Answered, Refusal> {
        let order = self.order();
        let (mut at, mut is_repeated) = (0, false);
        while let Some(upstream) = order.get(at) {
            let client = if is_repeated { &self.anew } else { &self.client };
            let answer = self.ask(client, upstream, head, upload).await;
            upstream.note(&answer);
            match answer {
                Ok(answer) => return Ok(answer),
                Err(Failure::Unreachable) => at += 1,
                // An idle connection may be closed while the request is on its way (RFC 9112
                // §9.3.1).
                Err(Failure::Closed)
                    if head.method.is_idempotent() && !upload.is_touched() && !is_repeated =>
                {
                    is_repeated = true;
                    at = (at + 1).min(order.len() - 1);
                }
                Err(Failure::Closed | Failure::Broken) => return Err(BROKEN),
                Err(Failure::Late) => return Err(LATE),
                Err(Failure::Busy) => return Err(BUSY),
                Err(Failure::SlowClient) => return Err(SLOW_CLIENT),
                Err(Failure::CutShort) => return Err(CUT_SHORT),
            }
        }
        Err(UNREACHABLE)
    }

    /// All upstreams, from the next one on, those without a place behind. Paused ones come last:
    /// one may have recovered, and there may be no other.
    fn order(&self) -> Vec<&Upstream> {
        let first = self.next.fetch_add(1, Ordering::Relaxed) % self.upstreams.len();
        let (before, behind) = self.upstreams.split_at(first);
        let mut order: Vec<&Upstream> = behind.iter().chain(before).collect();
        if order.len() > 1 {
            let now = Instant::now();
            order.sort_by_key(|upstream| (upstream.pauses(now), upstream.turns.are_taken()));
        }
        order
    }

    async fn ask(
        &self,
        client: &Client<Connector, Upload>,
        upstream: &Upstream,
        head: &Parts,
        upload: &Upload,
    ) -> Result<Answered, Failure> {
        let turn = upstream.turns.take(&upload.pace(), self.config.first_byte).await;
        let turn = turn.map_err(|Full| Failure::Busy)?;
        let mut request = Request::new(upload.clone());
        *request.method_mut() = head.method.clone();
        *request.uri_mut() = upstream.uri(head.uri.path_and_query());
        *request.headers_mut() = head.headers.clone();
        if self.config.names_upstream {
            request.headers_mut().insert(HOST, upstream.host.clone());
        }
        if let Some(EarlyHints(hints)) = head.extensions.get().cloned() {
            hyper::ext::on_informational(&mut request, move |told| {
                // RFC 9110 §15.2: others than the answers to fields that stay on a connection.
                if !matches!(told.status(), StatusCode::CONTINUE | StatusCode::SWITCHING_PROTOCOLS) {
                    let mut hint = Response::new(());
                    *hint.status_mut() = told.status();
                    *hint.headers_mut() = told.headers().clone();
                    remove_fields_of_connection(hint.headers_mut());
                    hint.headers_mut().remove(ALT_SVC);
                    let _ = hints.try_send(hint);
                }
            });
        }
        upload.begin();
        let connection = capture_connection(&mut request);
        tokio::select! {
            answer = Asking::new(client.request(request), connection) => answer.map(|answer| (answer, turn)).map_err(|error| {
                let failure = Failure::of(&error, upload);
                upstream.explain(failure, &error);
                failure
            }),
            failure = self.is_late(upload) => Err(failure),
        }
    }

    /// Ends when no byte of the request has been taken for too long, or too few of them.
    async fn is_late(&self, upload: &Upload) -> Failure {
        let pace = upload.pace();
        let first_byte = self.config.first_byte;
        loop {
            let (moved, waits) = upload.progress();
            let (now, limit) = (Instant::now(), moved + first_byte);
            if now >= limit {
                return if waits { Failure::SlowClient } else { Failure::Late };
            }
            if pace.is_too_slow(Way::Up, first_byte) {
                return Failure::SlowClient;
            }
            tokio::select! {
                () = tokio::time::sleep_until(limit.min(now + first_byte / 4)) => {}
                () = pace.ended() => return Failure::SlowClient,
            }
        }
    }

    /// The request's head as upstreams get it.
    fn rewrite(&self, peer: IpAddr, head: &mut Parts) -> Result<(), Refusal> {
        let of_target = head.uri.authority().and_then(|it| HeaderValue::from_str(it.as_str()).ok());
        let host = of_target.or_else(|| head.headers.get(HOST).cloned());
        if head.uri.path_and_query().is_none_or(|path| !path.as_str().starts_with('/')) {
            return Err(NO_PATH);
        }
        let headers = &mut head.headers;
        let hops =
            || headers.get_all(VIA).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        let is_own = |hop: &[u8]| hop.windows(self.name.len()).any(|part| part == self.name.as_bytes());
        if hops().any(is_own) || hops().count() >= MOST_HOPS {
            return Err(LOOP);
        }
        let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
        if let Some(length) = lengths.next()
            && (lengths.next().is_some() || number(length).is_none())
        {
            return Err(LENGTHS);
        }
        let takes_trailers =
            headers.get_all(TE).iter().any(|te| te.as_bytes().eq_ignore_ascii_case(b"trailers"));
        remove_fields_of_connection(headers);
        // RFC 9110 §10.1.1: the server in front of this answers it as soon as the body is read.
        headers.remove(EXPECT);
        if takes_trailers {
            headers.insert(TE, HeaderValue::from_static("trailers"));
            headers.insert(CONNECTION, HeaderValue::from_static("te"));
        }
        // HTTP/2 and 3 may split it (RFC 9114 §4.2.1).
        if headers.get_all(COOKIE).iter().count() > 1 {
            join(headers, COOKIE, b"; ", None);
        }
        if let Some(host) = &host {
            headers.insert(HOST, host.clone());
        }
        if let Ok(via) = HeaderValue::from_str(&format!("{} {}", version(head.version), self.name)) {
            headers.append(VIA, via);
        }
        let host = host.as_ref().and_then(|host| host.to_str().ok());
        forwarded(headers, peer.to_canonical(), host, self.config.trust_forwarded);
        Ok(())
    }

    /// An upstream's answer as clients get it.
    fn returned(
        &self,
        answer: Response<Incoming>,
        asked: &Parts,
        pace: Arc<Pace>,
        places: (Place, Option<Turn>),
    ) -> Response<Body> {
        let (head, inner) = answer.into_parts();
        let mut headers = head.headers;
        remove_fields_of_connection(&mut headers);
        // It is about the upstream's own ports.
        headers.remove(ALT_SVC);
        let has_body = asked.method != Method::HEAD
            && !matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let length = match has_body {
            true => inner.size_hint().exact(),
            false => headers.get(CONTENT_LENGTH).and_then(number),
        };
        headers.remove(CONTENT_LENGTH);
        if let Some(length) = length.filter(|_| head.status != StatusCode::NO_CONTENT) {
            headers.insert(CONTENT_LENGTH, length.into());
        }
        pace.keep(inner, head.extensions.get::<Resets>().cloned());
        let given_up = asked.extensions.get::<GivenUp>().cloned();
        let body = Download::new(pace, self.config.idle, given_up, places);
        let mut answer = Response::new(body.boxed_unsync());
        (*answer.status_mut(), *answer.headers_mut()) = (head.status, headers);
        answer
    }

    /// Asks each upstream after its health, again and again, if that was wished.
    pub async fn check(&self) {
        let Some(path) = &self.config.check else { return };
        let mut interval = tokio::time::interval(CHECK_INTERVAL);
        loop {
            interval.tick().await;
            futures_util::future::join_all(self.upstreams.iter().map(|upstream| async move {
                let pace = Pace::new(std::net::Ipv4Addr::LOCALHOST.into());
                let mut request = Request::new(Upload::new(no_body(), pace));
                *request.uri_mut() = upstream.uri(Some(path));
                let answer = tokio::time::timeout(CHECK_INTERVAL, self.client.request(request)).await;
                let status = answer.ok().and_then(Result::ok).map(|answer| answer.status());
                upstream.checked(status.is_some_and(|it| it.is_success() || it.is_redirection()));
            }))
            .await;
        }
    }

    /// Counters in Prometheus' text format.
    #[must_use]
    pub fn render(&self) -> String {
        let mut metrics = Exposition::default();
        metrics.family("upstream_up", "gauge", "0 while requests go to other upstreams.");
        let now = Instant::now();
        for upstream in &self.upstreams {
            let name = upstream.address.to_string();
            metrics.sample(&[("upstream", &name)], u8::from(!upstream.pauses(now)));
        }
        metrics.family("upstream_requests_total", "counter", "Requests passed on, by their outcome.");
        for upstream in &self.upstreams {
            let name = upstream.address.to_string();
            for (outcome, count) in OUTCOMES.iter().zip(&upstream.outcomes) {
                let labels = [("upstream", name.as_str()), ("outcome", outcome)];
                metrics.sample(&labels, count.load(Ordering::Relaxed));
            }
        }
        metrics.take()
    }
}

/// An upstream's answer, and the request's turn there.
type Answered = (Response<Incoming>, Option<Turn>);

/// Counts a request as given up unless it is answered before it is dropped.
struct Interest(Option<GivenUp>);

impl Drop for Interest {
    fn drop(&mut self) {
        if let Some(given_up) = &self.0 {
            given_up.note();
        }
    }
}

/// Cause of a request without an answer.
#[derive(Clone, Copy, Debug)]
enum Failure {
    Unreachable,
    /// The connection ended before the answer.
    Closed,
    Broken,
    Late,
    /// No turn was free in time: others of its clients are slow, or many.
    Busy,
    SlowClient,
    /// The request's body ended early, or is not as long as it should be.
    CutShort,
}

/// Names of outcomes in counters: an answer, then those of [`Failure`] in order.
const OUTCOMES: [&str; 8] =
    ["answered", "unreachable", "closed", "broken", "late", "busy", "slow_client", "cut_short"];

impl Failure {
    fn of(error: &Error, upload: &Upload) -> Self {
        let cause = error.source().and_then(|cause| cause.downcast_ref::<hyper::Error>());
        match cause {
            _ if error.is_connect() => Self::Unreachable,
            _ if upload.has_failed() => Self::CutShort,
            Some(cause) if cause.is_parse() || cause.is_user() => Self::Broken,
            _ => Self::Closed,
        }
    }
}

/// One upstream.
#[derive(Debug)]
struct Upstream {
    address: Address,
    host: HeaderValue,
    health: Mutex<Health>,
    turns: Arc<Turns>,
    outcomes: [AtomicU64; OUTCOMES.len()],
}

/// Health of an upstream.
#[derive(Debug, Default)]
struct Health {
    /// Failures since the last answer.
    failures: u32,
    paused_until: Option<Instant>,
    /// The last check failed.
    is_ill: bool,
    /// When the cause of a failure was last logged.
    explained_at: Option<Instant>,
}

impl Upstream {
    fn new(address: Address, turns: Arc<Turns>) -> Self {
        let host = HeaderValue::from_str(address.authority.as_str());
        let host = host.expect("an authority's characters may stand in a header");
        Self { address, host, health: Mutex::default(), turns, outcomes: Default::default() }
    }

    /// The path at this upstream.
    fn uri(&self, path: Option<&PathAndQuery>) -> Uri {
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(self.address.scheme.clone());
        parts.authority = Some(self.address.authority.clone());
        parts.path_and_query = Some(path.cloned().unwrap_or_else(|| PathAndQuery::from_static("/")));
        Uri::from_parts(parts).expect("it has a scheme, an authority and a path that begins with a slash")
    }

    fn pauses(&self, now: Instant) -> bool {
        let health = locked(&self.health);
        health.is_ill || health.paused_until.is_some_and(|until| until > now)
    }

    /// Passive health: an upstream that could not be reached, or was late, pauses.
    fn note<T>(&self, answer: &Result<T, Failure>) {
        let outcome = answer.as_ref().err().map_or(0, |failure| *failure as usize + 1);
        self.outcomes[outcome].fetch_add(1, Ordering::Relaxed);
        let mut health = locked(&self.health);
        match answer {
            Ok(_) if health.failures > 0 => {
                *health = Health { is_ill: health.is_ill, ..Health::default() };
                tracing::warn!(upstream = %self.address, "an upstream answers again");
            }
            Err(failure @ (Failure::Unreachable | Failure::Late)) => {
                if health.failures == 0 && matches!(failure, Failure::Late) {
                    tracing::warn!(upstream = %self.address, "an upstream is late");
                }
                let pause = FIRST_PAUSE.saturating_mul(1 << health.failures.min(10)).min(LONGEST_PAUSE);
                health.failures += 1;
                health.paused_until = Some(Instant::now() + pause);
            }
            _ => {}
        }
    }

    /// Logs the cause of a failure, once in a while.
    fn explain(&self, failure: Failure, error: &Error) {
        if !matches!(failure, Failure::Unreachable | Failure::Broken) {
            return;
        }
        let (mut health, now) = (locked(&self.health), Instant::now());
        if health.explained_at.is_some_and(|at| now - at < LONGEST_PAUSE) {
            return;
        }
        health.explained_at = Some(now);
        let causes = std::iter::successors(error.source(), |cause| (*cause).source());
        let cause = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
        tracing::warn!(upstream = %self.address, cause, "an upstream gave no answer");
    }

    fn checked(&self, is_well: bool) {
        let mut health = locked(&self.health);
        if std::mem::replace(&mut health.is_ill, !is_well) == is_well {
            let now = if is_well { "well" } else { "ill" };
            tracing::warn!(upstream = %self.address, "an upstream is {now}, by its check");
        }
        if is_well {
            health.paused_until = None;
        }
    }
}

/// True if requests of that method have content as a rule. Others are passed on with a body only
/// if there is one: some servers would read it as the next request.
fn has_content(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => "1.1",
    }
}

fn pseudonym() -> Result<String, rustls::Error> {
    let mut random = [0; 8];
    let failed = |_| rustls::Error::General("the system has no random numbers".into());
    crate::provider().secure_random.fill(&mut random).map_err(failed)?;
    Ok(format!("headstart-{:016x}", u64::from_be_bytes(random)))
}
