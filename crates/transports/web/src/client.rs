//! Fetches pages over HTTP/3 and measures their completion times.
//!
//! Timing starts before the first packet is sent, after name resolution, and stops when the last
//! byte of the body has been read. So the handshake counts, as everywhere in headstart
//! (`docs/definitions.md`).
//!
//! ICMP port unreachable ends the attempt at once, silence at the limit ([`ClientEndpoint`]).

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::future::join_all;
use h3::error::Code;
use http::{Method, Request, Response, StatusCode, Uri};
use noq::{Connection, ConnectionError, TransportErrorCode, VarInt};
use rustls::RootCertStore;
use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::adapter;
use crate::choice;

mod certificates;
mod endpoint;

pub use endpoint::ClientEndpoint;

/// Certificates that a client trusts.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Certificates that the operating system trusts, and `also`.
    System {
        /// Certificates beside the system's: for example self-signed ones of
        /// [`identity`](crate::identity).
        also: Vec<CertificateDer<'static>>,
    },
    /// Only those in this PEM file.
    File(PathBuf),
    /// Every certificate. For measurements, where nothing is at stake.
    AnyCertificate,
}

/// Errors of a client or of a fetch.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The file of certificates to trust has none.
    #[error("{0}: found no certificate, expected at least one in PEM")]
    NoCertificate(PathBuf),
    /// The certificates to trust could not be read.
    #[error("{path}: {source}")]
    Trust {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: pem::Error,
    },
    /// TLS could not be set up.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The URL does not identify a page.
    #[error(
        "found `{found}`, expected an https URL (HTTP/3 has no other), such as https://example.org/page, with a port of 1 to 65535 if any"
    )]
    Url {
        /// The URL.
        found: String,
    },
    /// The name has no address, or no socket could be opened.
    #[error("{host}: {source}")]
    Socket {
        /// The host.
        host: String,
        /// Cause.
        source: io::Error,
    },
    /// The stack refused to start the connection.
    #[error("{host}: {source}")]
    Connect {
        /// The host.
        host: String,
        /// Cause.
        source: noq::ConnectError,
    },
    /// The host reports its port as unreachable (ICMP).
    #[error("{host}: connection refused at {remote}, UDP: expected a server of HTTP/3 there")]
    Refused {
        /// The host.
        host: String,
        /// The address tried.
        remote: SocketAddr,
    },
    /// The server's certificate is not trusted.
    #[error("{host}: its certificate is not trusted: {reason}")]
    Certificate {
        /// The host.
        host: String,
        /// The verifier's reason.
        reason: String,
    },
    /// The connection failed.
    #[error("{host}: {source}")]
    Connection {
        /// The host.
        host: String,
        /// Cause.
        source: ConnectionError,
    },
    /// The answer ended before its announced length (RFC 9114 §4.1.2).
    #[error("{url}: found {found} bytes, expected the {expected} of its content-length")]
    Truncated {
        /// The page.
        url: String,
        /// Bytes that came.
        found: u64,
        /// Bytes announced.
        expected: u64,
    },
    /// The server refused the requests that were sent in 0-RTT.
    #[error("{host}: 0-RTT was refused, again and again")]
    EarlyDataRefused {
        /// The host.
        host: String,
    },
    /// HTTP/3 failed.
    #[error("{0}")]
    Http(Box<dyn std::error::Error + Send + Sync>),
    /// No packet of the server arrived.
    #[error(
        "{host}: no answer from {remote}, UDP, in {} s: expected a server of HTTP/3 there, and that no firewall is in between",
        .after.as_secs_f64()
    )]
    NoAnswer {
        /// The host.
        host: String,
        /// The address tried.
        remote: SocketAddr,
        /// Time waited.
        after: Duration,
    },
    /// The time limit passed.
    #[error("{host}: not complete after {} s", .after.as_secs_f64())]
    TimedOut {
        /// The host.
        host: String,
        /// Time waited.
        after: Duration,
    },
}

/// TLS alerts about a certificate (RFC 8446 §6): from bad_certificate to certificate_unknown,
/// unknown_ca, and decrypt_error, which reports an invalid signature.
const CERTIFICATE_ALERTS: [u8; 7] = [42, 43, 44, 45, 46, 48, 51];

/// webpki's names of errors that users meet, in words.
fn in_words(reason: String) -> String {
    let found = [
        ("CaUsedAsEndEntity", "it is one of an issuer, and not itself among those that are trusted"),
        (
            "UnsupportedSignatureAlgorithmForPublicKey",
            "its signature is of another type than the issuer's key",
        ),
    ];
    found.iter().find(|(name, _)| reason.contains(name)).map_or(reason, |(_, words)| (*words).to_owned())
}

impl FetchError {
    fn connection(host: &str, source: ConnectionError) -> Self {
        let host = host.to_owned();
        match source {
            ConnectionError::TransportError(error)
                if CERTIFICATE_ALERTS
                    .iter()
                    .any(|&alert| error.code == TransportErrorCode::crypto(alert)) =>
            {
                Self::Certificate { host, reason: in_words(error.reason) }
            }
            source => Self::Connection { host, source },
        }
    }
}

/// TLS for a client: trusted certificates, the scheme requested, and 0-RTT for servers with a
/// ticket. One configuration shares the tickets of all its connections.
///
/// # Errors
///
/// If the file of certificates cannot be read.
pub fn tls(
    trust: &Trust,
    scheme: Option<&str>,
    early_data: bool,
) -> Result<rustls::ClientConfig, FetchError> {
    let builder = rustls::ClientConfig::builder_with_provider(crate::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?;
    let mut config = match trust {
        Trust::AnyCertificate => builder
            .dangerous()
            .with_custom_certificate_verifier(certificates::Certificates::any())
            .with_no_client_auth(),
        Trust::File(path) => {
            let failed = |source| FetchError::Trust { path: path.clone(), source };
            let certificates = CertificateDer::pem_file_iter(path)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(failed)?;
            if certificates.is_empty() {
                return Err(FetchError::NoCertificate(path.clone()));
            }
            builder
                .dangerous()
                .with_custom_certificate_verifier(certificates::Certificates::of(certificates)?)
                .with_no_client_auth()
        }
        Trust::System { also } => {
            let system = rustls_native_certs::load_native_certs().certs;
            let all = system.into_iter().chain(also.iter().cloned());
            builder.with_root_certificates(roots(all)).with_no_client_auth()
        }
    };
    config.alpn_protocols = choice::offer(scheme);
    config.enable_early_data = early_data;
    config.resumption = Resumption::in_memory_sessions(256);
    Ok(config)
}

fn roots(certificates: impl IntoIterator<Item = CertificateDer<'static>>) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    // Systems ship certificates older than the current rules: those are skipped, as everywhere.
    roots.add_parsable_certificates(certificates);
    roots
}

/// The stack's own configuration for a client, without headstart: the baseline.
///
/// # Errors
///
/// If TLS has no cipher suite that QUIC can begin with.
pub fn plain(tls: rustls::ClientConfig) -> Result<noq::ClientConfig, FetchError> {
    let crypto = noq::crypto::rustls::QuicClientConfig::try_from(tls)
        .map_err(|error| FetchError::Http(Box::new(error)))?;
    Ok(noq::ClientConfig::new(Arc::new(crypto)))
}

/// Server of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Name or address.
    pub host: String,
    /// UDP port.
    pub port: u16,
}

impl Origin {
    /// The origin of a URL; HTTP/3 supports only `https` (RFC 9114 §3.1).
    ///
    /// # Errors
    ///
    /// If the URL has another scheme or no host.
    pub fn of(url: &Uri) -> Result<Self, FetchError> {
        let refused = || FetchError::Url { found: url.to_string() };
        if url.scheme_str() != Some("https") {
            return Err(refused());
        }
        let host = url.host().filter(|host| !host.is_empty()).ok_or_else(refused)?;
        let authority = url.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, rest)| rest);
        let port = match host_and_port.strip_prefix(host) {
            None | Some("" | ":") => 443,
            Some(_) => url.port_u16().filter(|port| *port > 0).ok_or_else(refused)?,
        };
        Ok(Self { host: host.to_owned(), port })
    }

    /// The URL with a path, of which `.` and `..` are resolved (RFC 3986 §5.2.4), as browsers ask.
    ///
    /// # Errors
    ///
    /// If it is none.
    pub fn page(text: &str) -> Result<Uri, String> {
        let url: Uri = text.parse().map_err(|error| match text.is_ascii() {
            true => format!("{error}"),
            false => format!("{error}: letters beyond ASCII are written as in `xn--...` and `%C3%BC`"),
        })?;
        let mut parts = url.into_parts();
        let Some(target) = &parts.path_and_query else {
            return Uri::from_parts(parts).map_err(|it| it.to_string());
        };
        let (path, query) =
            target.as_str().split_at(target.as_str().find('?').unwrap_or(target.as_str().len()));
        let mut resolved: Vec<&str> = vec![];
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        for (at, segment) in segments.iter().enumerate() {
            let is_last = at + 1 == segments.len();
            match *segment {
                "." => {}
                ".." => _ = resolved.pop(),
                other => {
                    resolved.push(other);
                    continue;
                }
            }
            // A folder.
            if is_last {
                resolved.push("");
            }
        }
        let target = format!("/{}{query}", resolved.join("/"));
        parts.path_and_query = Some(target.parse().map_err(|error| format!("{error}"))?);
        Uri::from_parts(parts).map_err(|error| error.to_string())
    }

    /// The host without the brackets that an IPv6 address has in a URL.
    #[must_use]
    pub fn name(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// Addresses of the origin.
    ///
    /// # Errors
    ///
    /// If the name cannot be resolved.
    pub async fn resolve(&self) -> Result<Vec<SocketAddr>, FetchError> {
        let failed = |source| FetchError::Socket { host: self.host.clone(), source };
        let found: Vec<SocketAddr> =
            tokio::net::lookup_host((self.name(), self.port)).await.map_err(failed)?.collect();
        if found.is_empty() {
            return Err(failed(io::Error::new(io::ErrorKind::NotFound, "the name has no address")));
        }
        Ok(found)
    }
}

/// An endpoint that can reach `remote`, on a port of the system's choice. Requires a tokio context.
///
/// # Errors
///
/// If no socket can be opened.
pub fn endpoint(remote: SocketAddr) -> io::Result<ClientEndpoint> {
    ClientEndpoint::to(remote)
}

/// Attempts with 0-RTT: rustls keeps eight tickets of a server.
const MOST_TICKETS: usize = 9;

fn is_local(reason: ConnectionError) -> bool {
    matches!(reason, ConnectionError::LocallyClosed)
}

/// One connection and the pages fetched over it.
#[derive(Clone, Debug)]
pub struct Visit {
    /// Completion of the handshake. With 0-RTT, requests left before.
    pub established: Duration,
    /// The server accepted requests sent in 0-RTT.
    pub early_data: bool,
    /// The pages, in the order of the URLs.
    pub pages: Vec<Page>,
    /// Smoothed round-trip time at the end.
    pub rtt: Duration,
    /// Packets that this client declared lost.
    pub lost: u64,
}

impl Visit {
    /// Completion of the last page.
    #[must_use]
    pub fn complete(&self) -> Duration {
        self.pages.iter().map(|page| page.complete).max().unwrap_or_default()
    }
}

/// One page.
#[derive(Clone, Debug)]
pub struct Page {
    /// HTTP status of the answer.
    pub status: StatusCode,
    /// The scheme that governs the connection, if the server reports it.
    pub scheme: Option<String>,
    /// Bytes of the body.
    pub bytes: u64,
    /// Arrival of the body's first byte; of the answer's header, if there is no body.
    pub first_byte: Duration,
    /// Arrival of the last byte.
    pub complete: Duration,
    /// The body, if it was to be kept.
    pub body: Option<Vec<u8>>,
}

/// Pages to fetch over one connection, with a time limit.
#[derive(Clone, Debug)]
pub struct FetchPlan {
    /// Server of the pages.
    pub origin: Origin,
    /// The pages, all requested at once.
    pub urls: Vec<Uri>,
    /// Keep the bodies.
    pub keep: bool,
    /// Time limit for all of it.
    pub timeout: Duration,
}

impl FetchPlan {
    /// Connects to `remote`, fetches the pages and closes the connection.
    ///
    /// # Errors
    ///
    /// If the port is unreachable, the connection fails, or the time limit passes.
    pub async fn run(
        &self,
        endpoint: &ClientEndpoint,
        config: noq::ClientConfig,
        remote: SocketAddr,
    ) -> Result<Visit, FetchError> {
        let host = || self.origin.host.clone();
        let reads_before = endpoint.reads();
        endpoint.discard_errors();
        let begin = Instant::now();
        let (established_flag, opened) = watch::channel(false);
        let visit = async {
            // A ticket serves once, and a server that was started anew refuses all of them.
            for _ in 0..MOST_TICKETS {
                let connecting = endpoint
                    .endpoint()
                    .connect_with(config.clone(), remote, self.origin.name())
                    .map_err(|source| FetchError::Connect { host: host(), source })?;
                match self.connect_and_fetch(connecting, begin, established_flag.clone()).await {
                    Err(FetchError::EarlyDataRefused { .. }) => {}
                    done => return done,
                }
            }
            Err(FetchError::EarlyDataRefused { host: host() })
        };
        let done = tokio::select! {
            done = tokio::time::timeout(self.timeout, visit) => done,
            () = refused(endpoint, opened) => return Err(FetchError::Refused { host: host(), remote }),
        };
        let is_unanswered = endpoint.reads() == reads_before;
        match done {
            Err(_) if is_unanswered => {
                Err(FetchError::NoAnswer { host: host(), remote, after: self.timeout })
            }
            Err(_) => Err(FetchError::TimedOut { host: host(), after: self.timeout }),
            // The stack's own time limit may pass first.
            Ok(Err(FetchError::Connection { source: ConnectionError::TimedOut, .. })) if is_unanswered => {
                Err(FetchError::NoAnswer { host: host(), remote, after: begin.elapsed() })
            }
            Ok(done) => done,
        }
    }

    async fn connect_and_fetch(
        &self,
        connecting: noq::Connecting,
        begin: Instant,
        established_flag: watch::Sender<bool>,
    ) -> Result<Visit, FetchError> {
        let failed = |source| FetchError::connection(&self.origin.host, source);
        let mut established = None;
        let (connection, early) = match connecting.into_0rtt() {
            Ok((connection, accepted)) => (connection, Some(accepted)),
            Err(connecting) => {
                let connection = connecting.await.map_err(failed)?;
                established = Some(begin.elapsed());
                established_flag.send_replace(true);
                (connection, None)
            }
        };
        let is_early = early.is_some();
        let handshake = async {
            match early {
                None => false,
                Some(accepted) => {
                    let accepted = accepted.await;
                    established.get_or_insert_with(|| begin.elapsed());
                    established_flag.send_replace(true);
                    accepted
                }
            }
        };
        let (pages, early_data) = tokio::join!(self.fetch_all(&connection, begin), handshake);
        if is_early && !early_data && pages.is_err() && connection.close_reason().is_none_or(is_local) {
            return Err(FetchError::EarlyDataRefused { host: self.origin.host.clone() });
        }
        let path = connection.path_stats(noq::PathId::ZERO);
        let visit = pages.map(|pages| Visit {
            established: established.unwrap_or_default(),
            early_data,
            pages,
            rtt: path.as_ref().map(|path| path.rtt).unwrap_or_default(),
            lost: path.map(|path| path.lost_packets).unwrap_or_default(),
        });
        connection.close(no_error(), b"");
        visit
    }

    async fn fetch_all(&self, connection: &Connection, begin: Instant) -> Result<Vec<Page>, FetchError> {
        let sender = speak_http(connection).await?;
        let fetches = self.urls.iter().map(|url| fetch(sender.clone(), url, begin, self.keep));
        join_all(fetches).await.into_iter().collect()
    }
}

/// A connection that stays open between pages.
pub struct KeptConnection {
    connection: Connection,
    sender: RequestSender,
}

impl std::fmt::Debug for KeptConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptConnection").field("connection", &self.connection).finish_non_exhaustive()
    }
}

impl KeptConnection {
    /// Connects to `remote`, a server of that name.
    ///
    /// # Errors
    ///
    /// If the connection fails.
    pub async fn open(
        endpoint: &ClientEndpoint,
        config: noq::ClientConfig,
        remote: SocketAddr,
        host: &str,
    ) -> Result<Self, FetchError> {
        let failed = |source| FetchError::Connect { host: host.to_owned(), source };
        let connecting = endpoint.endpoint().connect_with(config, remote, host).map_err(failed)?;
        let connection = connecting.await.map_err(|source| FetchError::connection(host, source))?;
        let sender = speak_http(&connection).await?;
        Ok(Self { connection, sender })
    }

    /// Fetches a page, whose times count from now.
    ///
    /// # Errors
    ///
    /// If the connection fails.
    pub async fn get(&self, url: &Uri) -> Result<Page, FetchError> {
        fetch(self.sender.clone(), url, Instant::now(), false).await
    }

    /// False after the connection was closed or lost.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.connection.close_reason().is_none()
    }

    /// Closes it.
    pub fn close(self) {
        self.connection.close(no_error(), b"");
    }
}

type RequestSender = h3::client::SendRequest<adapter::Opener, Bytes>;

fn no_error() -> VarInt {
    VarInt::from_u32(u32::try_from(Code::H3_NO_ERROR.value()).unwrap_or(0))
}

async fn speak_http(connection: &Connection) -> Result<RequestSender, FetchError> {
    let (mut driver, sender) = h3::client::builder()
        .build::<_, _, Bytes>(adapter::Connection::new(connection.clone(), &adapter::Unfinished::default()))
        .await
        .map_err(|error| FetchError::Http(Box::new(error)))?;
    // Reads the server's settings; ends with the connection, never before it: closing the control
    // stream is an error to the server (RFC 9114 §6.2.1).
    tokio::spawn(async move { driver.wait_idle().await });
    Ok(sender)
}

/// The URL without the name of a user and a password, which no request has (RFC 9114 §4.3.1).
fn without_user(url: &Uri) -> Option<Uri> {
    let mut parts = url.clone().into_parts();
    if let Some(authority) = &parts.authority
        && let Some((_, rest)) = authority.as_str().rsplit_once('@')
    {
        parts.authority = Some(rest.parse().ok()?);
    }
    Uri::from_parts(parts).ok()
}

async fn fetch(mut sender: RequestSender, url: &Uri, begin: Instant, keep: bool) -> Result<Page, FetchError> {
    let http = |error: h3::error::StreamError| FetchError::Http(Box::new(error));
    let request = Request::builder()
        .method(Method::GET)
        .uri(without_user(url).ok_or_else(|| FetchError::Url { found: url.to_string() })?)
        .header(http::header::USER_AGENT, concat!("headstart/", env!("CARGO_PKG_VERSION")))
        .body(())
        .map_err(|_| FetchError::Url { found: url.to_string() })?;
    let mut stream = sender.send_request(request).await.map_err(http)?;
    match stream.finish().await {
        // A server may refuse the rest of the request; its answer is valid (RFC 9114 §4.1).
        Err(h3::error::StreamError::RemoteTerminate { code, .. }) if code == Code::H3_NO_ERROR => {}
        done => done.map_err(http)?,
    }
    let mut answer = stream.recv_response().await.map_err(http)?;
    // RFC 9110 §15.2: any number of them may come before the answer.
    while answer.status().is_informational() {
        answer = stream.recv_response().await.map_err(http)?;
    }
    let mut first_byte = None;
    let mut bytes = 0;
    let mut body = keep.then(Vec::new);
    while let Some(mut chunk) = stream.recv_data().await.map_err(http)? {
        first_byte.get_or_insert_with(|| begin.elapsed());
        bytes += chunk.remaining() as u64;
        if let Some(body) = &mut body {
            body.extend_from_slice(&chunk.copy_to_bytes(chunk.remaining()));
        }
    }
    let length = answer.headers().get(http::header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let may_be_empty = matches!(answer.status(), StatusCode::NOT_MODIFIED | StatusCode::NO_CONTENT);
    if let Some(expected) = length.filter(|length| *length != bytes && !may_be_empty) {
        return Err(FetchError::Truncated { url: url.to_string(), found: bytes, expected });
    }
    let complete = begin.elapsed();
    let first_byte = first_byte.unwrap_or(complete);
    Ok(Page { status: answer.status(), scheme: scheme_of(&answer), bytes, first_byte, complete, body })
}

/// Completes when the host reports the port unreachable, while the connection is not open yet.
async fn refused(endpoint: &ClientEndpoint, opened: watch::Receiver<bool>) {
    endpoint.refused().await;
    if *opened.borrow() {
        std::future::pending::<()>().await;
    }
}

fn scheme_of(answer: &Response<()>) -> Option<String> {
    Some(answer.headers().get(choice::HEADER)?.to_str().ok()?.to_owned())
}
