//! Load for a server of HTTP/3, and one line of numbers for `tools/measure-serve.py`.
//!
//! ```text
//! load requests URL CONNECTIONS SECONDS  # one request after the other on each kept connection
//! load connections URL AT_ONCE SECONDS   # one request on each new connection
//! load crowd URL IDLE BUSY SECONDS       # the latter beside idle connections, when told
//! ```
//!
//! Every certificate is trusted and no session is resumed. Numbers: requests, failures, bytes of
//! bodies, seconds, and the 50th and 99th percentile and the maximum of completion times in
//! milliseconds (with the handshake for new connections). `crowd` prints a line when the idle
//! connections are open and waits for a line on its input. Its last number is that of the idle
//! connections that are still open at the end.

#![allow(clippy::disallowed_methods, reason = "it measures")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headstart_web::client::{self, ClientEndpoint, FetchError, KeptConnection, Origin, Trust};
use http::Uri;
use tokio::task::JoinSet;

/// Sockets that the connections share: one receive buffer is too small for thousands.
const SOCKETS: usize = 16;
/// Handshakes under way while idle connections are opened.
const OPENING: usize = 64;
/// The stack's idle timeout is 30 s.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

#[derive(Clone)]
struct Target {
    endpoints: Arc<Vec<ClientEndpoint>>,
    config: noq::ClientConfig,
    remote: SocketAddr,
    host: String,
    url: Uri,
}

impl Target {
    async fn new(url: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let url: Uri = url.parse()?;
        let origin = Origin::of(&url)?;
        let remote = origin.resolve().await?[0];
        let mut tls = client::tls(&Trust::AnyCertificate, None, false)?;
        tls.resumption = rustls::client::Resumption::disabled();
        let mut config = client::plain(tls)?;
        let mut transport = noq::TransportConfig::default();
        transport.keep_alive_interval(Some(KEEP_ALIVE));
        config.transport_config(Arc::new(transport));
        let endpoints = (0..SOCKETS).map(|_| client::endpoint(remote)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { endpoints: Arc::new(endpoints), config, remote, host: origin.name().to_owned(), url })
    }

    async fn open(&self, number: usize) -> Result<KeptConnection, FetchError> {
        let endpoint = &self.endpoints[number % SOCKETS];
        KeptConnection::open(endpoint, self.config.clone(), self.remote, &self.host).await
    }

    /// A page on a new connection, and its bytes.
    async fn visit(&self, number: usize) -> Result<u64, FetchError> {
        let connection = self.open(number).await?;
        let page = connection.get(&self.url).await;
        connection.close();
        page.map(|page| page.bytes)
    }
}

#[derive(Debug, Default)]
struct Tally {
    completions: Vec<Duration>,
    failures: u64,
    bytes: u64,
}

impl Tally {
    fn add(&mut self, begun: Instant, result: Result<u64, FetchError>) {
        match result {
            Ok(bytes) => {
                self.completions.push(begun.elapsed());
                self.bytes += bytes;
            }
            Err(error) => {
                if self.failures == 0 {
                    eprintln!("load: {error}");
                }
                self.failures += 1;
            }
        }
    }

    fn print(mut self, elapsed: Duration, rest: &str) {
        self.completions.sort_unstable();
        let last = self.completions.len().saturating_sub(1);
        let at = |percent: usize| {
            let found = self.completions.get(last * percent / 100).copied().unwrap_or_default();
            found.as_secs_f64() * 1e3
        };
        println!(
            "{} {} {} {:.6} {:.3} {:.3} {:.3}{rest}",
            self.completions.len(),
            self.failures,
            self.bytes,
            elapsed.as_secs_f64(),
            at(50),
            at(99),
            at(100)
        );
    }
}

/// Runs as many tasks at once, and puts what they counted together.
async fn at_once<F>(count: usize, task: impl Fn(usize) -> F) -> Tally
where
    F: Future<Output = Tally> + Send + 'static,
{
    let tasks: JoinSet<Tally> = (0..count).map(task).collect();
    tasks.join_all().await.into_iter().fold(Tally::default(), |mut all, one| {
        all.completions.extend(one.completions);
        all.failures += one.failures;
        all.bytes += one.bytes;
        all
    })
}

async fn requests(target: &Target, connections: usize, wait: Duration) -> Result<(), FetchError> {
    let mut open = vec![];
    for number in 0..connections {
        open.push(Arc::new(target.open(number).await?));
    }
    let begun = Instant::now();
    let tally = at_once(connections, |number| {
        let (connection, url) = (Arc::clone(&open[number]), target.url.clone());
        async move {
            let mut tally = Tally::default();
            // At least one: a large file takes longer than the time.
            loop {
                let begun_here = Instant::now();
                tally.add(begun_here, connection.get(&url).await.map(|page| page.bytes));
                if begun.elapsed() >= wait || tally.failures > 0 {
                    return tally;
                }
            }
        }
    });
    tally.await.print(begun.elapsed(), "");
    Ok(())
}

async fn new_connections(target: &Target, count: usize, wait: Duration) -> (Tally, Duration) {
    let begun = Instant::now();
    let tally = at_once(count, |number| {
        let target = target.clone();
        async move {
            let mut tally = Tally::default();
            while begun.elapsed() < wait {
                tally.add(Instant::now(), target.visit(number).await);
            }
            tally
        }
    });
    (tally.await, begun.elapsed())
}

async fn crowd(target: &Target, idle: usize, busy: usize, wait: Duration) -> Result<(), FetchError> {
    let begun = Instant::now();
    let mut opening = JoinSet::new();
    let mut open = Vec::with_capacity(idle);
    let mut failures = 0;
    for number in 0..idle {
        if opening.len() >= OPENING
            && let Some(Ok(done)) = opening.join_next().await
        {
            match done {
                Ok(connection) => open.push(connection),
                Err(_) => failures += 1,
            }
        }
        let target = target.clone();
        opening.spawn(async move { target.open(number).await });
    }
    for done in opening.join_all().await {
        match done {
            Ok(connection) => open.push(connection),
            Err(error) => {
                eprintln!("load: {error}");
                failures += 1;
            }
        }
    }
    println!("{} {failures} {:.6}", open.len(), begun.elapsed().as_secs_f64());
    // On a thread that may block: the stack goes on meanwhile.
    let _ = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await;
    let (tally, elapsed) = new_connections(target, busy, wait).await;
    let left = open.iter().filter(|connection| connection.is_open()).count();
    tally.print(elapsed, &format!(" {left}"));
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let seconds = |text: &str| text.parse().map(Duration::from_secs_f64);
    match words[..] {
        ["requests", url, count, wait] => {
            requests(&Target::new(url).await?, count.parse()?, seconds(wait)?).await?
        }
        ["connections", url, count, wait] => {
            let (tally, elapsed) =
                new_connections(&Target::new(url).await?, count.parse()?, seconds(wait)?).await;
            tally.print(elapsed, "");
        }
        ["crowd", url, idle, busy, wait] => {
            crowd(&Target::new(url).await?, idle.parse()?, busy.parse()?, seconds(wait)?).await?
        }
        _ => {
            return Err(
                "found other words, expected those at the head of crates/transports/web/examples/load.rs"
                    .into(),
            );
        }
    }
    Ok(())
}
