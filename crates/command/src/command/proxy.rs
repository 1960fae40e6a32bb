//! `headstart proxy`: other servers over HTTP/3, with connections that start fast.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;
use headstart_units::Span;
use headstart_web::client::Trust;
use headstart_web::proxy::{Address, MOST_PER_UPSTREAM, Proxy, ProxyConfig};
use headstart_web::site::Site;
use http::uri::PathAndQuery;

use super::serve::{self, ServerArgs};

/// Options of `headstart proxy`.
#[derive(Args, Clone, Debug)]
pub struct ProxyArgs {
    /// A server that gets the requests, over HTTP/1.1; may be repeated, and they take turns
    #[arg(long, required = true, value_name = "URL")]
    pub upstream: Vec<Address>,
    /// Ask each upstream for this path every 5 s; leave it out while its answer is no 2xx or 3xx
    #[arg(long, value_name = "PATH", value_parser = path)]
    pub check: Option<PathAndQuery>,
    /// Requests at once for each upstream, if it can do few: further ones wait [default: no limit]
    #[arg(long, value_name = "COUNT", value_parser = headstart_study::options::whole(1..=u32::MAX as usize))]
    pub most_per_upstream: Option<usize>,
    /// Certificates (PEM) to trust of upstreams over https [default: the system's]
    #[arg(long, value_name = "FILE")]
    pub upstream_trust: Option<PathBuf>,
    /// Send the upstream's name as Host, in place of the client's
    #[arg(long)]
    pub upstream_host: bool,
    /// Clients are proxies whose Forwarded and X-Forwarded-* are true: add to them, do not replace
    #[arg(long)]
    pub trust_forwarded: bool,
    /// Time limit of a connection to an upstream
    #[arg(long, default_value = "5 s", value_name = "TIME", value_parser = limit)]
    pub connect_timeout: Span,
    /// Time limit from the end of a request to the beginning of its answer
    #[arg(long, default_value = "60 s", value_name = "TIME", value_parser = limit)]
    pub answer_timeout: Span,
    /// Longest pause in an answer
    #[arg(long, default_value = "60 s", value_name = "TIME", value_parser = limit)]
    pub idle_timeout: Span,
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

fn path(text: &str) -> Result<PathAndQuery, String> {
    let refused = || format!("found `{text}`, expected a path, such as /health");
    text.parse().ok().filter(|_| text.starts_with('/')).ok_or_else(refused)
}

fn limit(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error: headstart_units::ParseError| error.to_string())?;
    let is_long = span >= Span::from_millis(1);
    is_long.then_some(span).ok_or_else(|| format!("found `{text}`, expected 1 ms at least"))
}

/// Passes requests on until Ctrl-C.
///
/// # Errors
///
/// If an address, a certificate or a file cannot be had.
pub fn proxy(args: ProxyArgs) -> Result<()> {
    let what = args.upstream.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let time = |span: Span| Duration::from_nanos(span.as_nanos());
    let config = ProxyConfig {
        trust: args.upstream_trust.map_or(Trust::System { also: vec![] }, Trust::File),
        trust_forwarded: args.trust_forwarded,
        names_upstream: args.upstream_host,
        check: args.check,
        connect: time(args.connect_timeout),
        first_byte: time(args.answer_timeout),
        idle: time(args.idle_timeout),
        most_per_upstream: args.most_per_upstream.unwrap_or(MOST_PER_UPSTREAM),
        most: args.server.operation.most_connections,
        most_per_address: args.server.operation.most_per_address,
        ..ProxyConfig::default()
    };
    serve::start(args.server, &what, |connections| {
        let config = ProxyConfig { counters: connections.clone(), ..config };
        let opened = Proxy::new(args.upstream, config).context("--upstream-trust")?;
        Ok(Site::Upstreams(Arc::new(opened)))
    })
}
