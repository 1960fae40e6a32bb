//! One visit to a replayed page: a server, a path and a browser, all new but the server's history.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use clap::ValueEnum;
use headstart_emu::clock::Clock;
use headstart_emu::record::{ParsedEvent, ParsedLog};
use headstart_emu::{Path as EmulatedPath, relay, udp};
use headstart_host::locked;
use headstart_net::{Direction, PathPlan, Seed};
use headstart_quic::{Choice, Sharded, StartReport};
use headstart_web::identity::Identity;
use headstart_web::open::{self, ServerSettings};
use headstart_web::server::ServerConfig;
use headstart_web::site::Site;
use headstart_web::tcp;
use serde::Serialize;
use socket2::{Domain, Socket, Type};
use tokio::net::TcpListener;
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;

use super::Replay;
use super::browser::{Browser, Ended, Frame, Way};

/// Time of one object in a visit, from the beginning of the navigation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Arrival {
    /// The object's place in the page.
    pub place: usize,
    /// The object's address in the HAR, its beginning if that is long.
    pub address: String,
    /// Time of its request in milliseconds.
    pub asked_ms: f64,
    /// Time of its first byte in milliseconds.
    pub began_ms: f64,
    /// Time of its last byte in milliseconds.
    pub ended_ms: f64,
    /// Bytes of its body that arrived.
    pub bytes: u64,
    /// Protocol that carried it, as the browser names it.
    pub protocol: String,
}

/// Measures of a visit.
#[derive(Clone, Debug, Serialize)]
pub struct Visit {
    /// First contentful paint in milliseconds; zero if nothing was painted.
    pub first_paint_ms: f64,
    /// Largest contentful paint in milliseconds; zero if nothing was painted.
    pub largest_paint_ms: f64,
    /// The browser's load event in milliseconds.
    pub load_event_ms: f64,
    /// Arrival of the last object above the fold in milliseconds.
    pub above_fold_ms: f64,
    /// Arrival of the last object in milliseconds.
    pub complete_ms: f64,
    /// Connections that the server had.
    pub connections: usize,
    /// Bytes that the path carried to the browser, IP headers included.
    pub carried: u64,
    /// Packets to the browser that the path lost.
    pub lost_packets: u64,
    /// The document and the objects that were asked for.
    pub arrivals: Vec<Arrival>,
    /// The machine kept real time.
    pub is_valid: bool,
    /// Pictures of the page, if the visit was filmed.
    #[serde(skip)]
    pub frames: Vec<Frame>,
}

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Http {
    /// HTTP/3, with each of the schemes
    H3,
    /// HTTP/2 over the kernel's TCP, with CUBIC (root)
    H2,
    /// HTTP/1.1 over the kernel's TCP, with CUBIC (root)
    H1,
}

/// The transport of a visit.
#[derive(Clone, Debug)]
pub enum Carrier {
    /// HTTP/3 over QUIC with a scheme.
    Quic(Box<Choice>),
    /// Another version over the kernel's TCP.
    Tcp(Http),
}

impl Carrier {
    /// Name in tables.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Quic(choice) => choice.name().to_owned(),
            Self::Tcp(http) => format!("iw10-linux {}", headstart_study::options::choice_name(*http)),
        }
    }

    /// The protocol as the browser names it.
    const fn protocol(&self) -> &'static str {
        match self {
            Self::Quic(_) => "h3",
            Self::Tcp(Http::H1) => "http/1.1",
            Self::Tcp(_) => "h2",
        }
    }
}

/// Page, path, browser and certificate of several visits.
#[derive(Debug)]
pub struct Testbed {
    /// The page.
    pub replay: Arc<Replay>,
    /// The path.
    pub path: PathPlan,
    /// The browser.
    pub browser: PathBuf,
    /// The browser's name and version.
    pub version: String,
    /// The path as options of `headstart link`.
    pub link: Vec<String>,
    /// Time limit of a visit.
    pub timeout: Duration,
    /// Ends the visit under way, its browser and its profile.
    pub stop: CancellationToken,
    /// Hash of the server's key, by which the browser knows it.
    pub(super) key_hash: String,
    /// Hash of the server's certificate in Firefox's words.
    pub(super) certificate_hash: String,
    identity: Identity,
}

impl Testbed {
    /// A testbed with a certificate of its own.
    ///
    /// # Errors
    /// If the system has no randomness for a key.
    pub fn new(
        replay: Replay,
        path: PathPlan,
        link: Vec<String>,
        (browser, version): (PathBuf, String),
        timeout: Duration,
    ) -> Result<Self> {
        // It names no host of the page: a browser shares connections among hosts that it names.
        let identity = Identity::temporary()?;
        let key_hash = BASE64_STANDARD.encode(identity.key_hash()?);
        let bytes = identity.certificate_hash()?;
        let certificate_hash = bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":");
        let (replay, stop) = (Arc::new(replay), CancellationToken::new());
        Ok(Self { replay, path, link, browser, version, timeout, stop, identity, key_hash, certificate_hash })
    }

    /// Firefox is driven in another way than Chromium, and has no film.
    #[must_use]
    pub fn is_firefox(&self) -> bool {
        self.version.contains("Firefox")
    }

    /// One visit by a browser without anything in its cache. To film it takes time of the browser.
    ///
    /// # Errors
    /// If the browser does not start, does not report in time, or an object did not arrive whole.
    pub async fn visit(
        &self,
        carrier: &Carrier,
        history: &Arc<Sharded>,
        seed: u64,
        is_filmed: bool,
    ) -> Result<Visit> {
        let identity = self.identity.current()?;
        let reports = Arc::<Mutex<Vec<StartReport>>>::default();
        let shutdown = CancellationToken::new();
        let config = ServerConfig { grace: Duration::ZERO, ..ServerConfig::default() };
        let (report, mut reported) = unbounded_channel();
        let site = Arc::new(Site::Made(self.replay.site(report)));
        let (server, way, relay) = match carrier {
            Carrier::Quic(scheme) => {
                let settings = ServerSettings::new(&identity, **scheme, Arc::clone(history) as Arc<_>);
                let (endpoint, starts) = open::open(settings, SocketAddr::from(([127, 0, 0, 1], 0)))?;
                let collected = Arc::clone(&reports);
                let listener = Arc::new(move |report: &StartReport| locked(&collected).push(report.clone()));
                let starts = Arc::new(starts.report_to(listener));
                let served = endpoint.local_addr()?;
                let server = tokio::spawn(starts.serve(endpoint, site, config, shutdown.clone()));
                let (address, relay) = self.relay(served, seed)?;
                (server, Way::Relay(address), Some(relay))
            }
            Carrier::Tcp(http) => {
                let listener = kernel_listener().context("cannot open a TCP port for the path")?;
                let port = listener.local_addr()?.port();
                let tls = tcp::tls(&identity)?;
                let server = tokio::spawn(tcp::serve(listener, tls, site, 0, config, shutdown.clone()));
                (server, Way::Link(*http, port), None)
            }
        };
        let mut browser = Browser::start(self, way, is_filmed)?;
        let found = tokio::select! {
            report = reported.recv() => report.context("the server ended"),
            () = tokio::time::sleep(self.timeout) => {
                Err(anyhow!("the page was not complete in {:?}, expected it in --timeout", self.timeout))
            }
            words = browser.ended() => {
                Err(anyhow!("{}: ended before the page had loaded: {words}", self.browser.display()))
            }
            () = self.stop.cancelled() => Err(anyhow!("stopped: nothing is kept")),
        };
        // The connections end here, and with them their records are written.
        shutdown.cancel();
        server.await.context("the server failed")?;
        let summary = relay.map(|relay| relay.stop().context("the path")).transpose()?;
        let mut ended = browser.end().await;
        let report = found?;
        let crossing = match summary {
            Some(summary) => Crossing {
                connections: locked(&reports).len(),
                carried: summary.down.sent_bytes,
                lost_packets: summary.down.arrived.saturating_sub(summary.down.sent + summary.down.inside),
                is_valid: summary.is_valid,
            },
            None => Crossing::of_log(&ended).context("the path's log")?,
        };
        let visit =
            parse(&report).with_context(|| format!("found {report:?}, expected the page's report"))?;
        let (mut arrivals, [began_ms, first_paint_ms, largest_paint_ms, load_event_ms]) = visit;
        for arrival in &mut arrivals {
            arrival.address = self.replay.urls.get(arrival.place).cloned().unwrap_or_default();
        }
        for frame in &mut ended.frames {
            frame.at_ms -= began_ms;
        }
        let last = |is_counted: &dyn Fn(usize) -> bool| {
            let counted = arrivals.iter().filter(|arrival| is_counted(arrival.place));
            counted.map(|arrival| arrival.ended_ms).fold(0.0, f64::max)
        };
        let visit = Visit {
            first_paint_ms,
            largest_paint_ms,
            load_event_ms,
            above_fold_ms: last(&|place| self.replay.nodes.get(place).is_some_and(|node| node.is_above)),
            complete_ms: last(&|_| true),
            connections: crossing.connections,
            carried: crossing.carried,
            lost_packets: crossing.lost_packets,
            arrivals,
            is_valid: crossing.is_valid,
            frames: ended.frames,
        };
        self.check(&visit, carrier.protocol())?;
        Ok(visit)
    }

    /// The path for HTTP/3, with its address.
    fn relay(&self, served: SocketAddr, seed: u64) -> Result<(SocketAddr, relay::Handle)> {
        // Down is towards the browser.
        let [up, down] = Direction::BOTH.map(|direction| EmulatedPath::of(&self.path, direction, Seed(seed)));
        // Every host is a connection; a browser may open a second one.
        let most_clients = 2 * self.replay.origins + 64;
        let settings = udp::Settings { most_clients, ..udp::Settings::before(served) };
        udp::start(settings, up, down, Clock::start(), relay::Settings::default(), None)
            .context("cannot open a UDP port for the path")
    }

    /// Every object arrived whole, over that protocol.
    fn check(&self, visit: &Visit, protocol: &str) -> Result<()> {
        let expected = std::iter::once(self.replay.document).chain(self.replay.requests());
        for (place, arrival) in expected.zip(&visit.arrivals) {
            let target = (place..).find(|place| !self.replay.nodes[*place].leads).unwrap_or(place);
            let bytes = self.replay.nodes[target].bytes;
            ensure!(
                arrival.place == place && arrival.bytes == bytes,
                "object {place}: found {} bytes, expected {bytes}",
                arrival.bytes
            );
            ensure!(
                arrival.protocol == protocol,
                "object {place}: found it over {}, expected {protocol}",
                arrival.protocol
            );
        }
        let (found, expected) = (visit.arrivals.len(), self.replay.requests().count() + 1);
        ensure!(found == expected, "found {found} objects, expected {expected}");
        Ok(())
    }
}

/// Counts of a visit on the path.
struct Crossing {
    connections: usize,
    carried: u64,
    lost_packets: u64,
    is_valid: bool,
}

impl Crossing {
    /// By the log of `headstart link`.
    fn of_log(ended: &Ended) -> Result<Self> {
        let log = ParsedLog::read(ended.log.as_bytes())?;
        let mut it = Self { connections: 0, carried: 0, lost_packets: 0, is_valid: ended.is_valid };
        for line in log.entries.iter().filter(|line| line.direction == Direction::Down) {
            match line.event {
                ParsedEvent::Departure { .. } => it.carried += u64::from(line.bytes),
                ParsedEvent::Drop { .. } => it.lost_packets += 1,
                ParsedEvent::Arrival { .. } => {}
            }
        }
        let opens =
            |line: &&str| line.contains(",up,arrival,") && line.contains(",tcp,") && line.contains(",S,");
        it.connections = ended.log.lines().filter(opens).count();
        Ok(it)
    }
}

/// A port of all addresses, for TCP with CUBIC whatever the system's default is.
fn kernel_listener() -> std::io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_tcp_congestion(b"cubic")?;
    socket.bind(&SocketAddr::from(([0, 0, 0, 0], 0)).into())?;
    socket.listen(1024)?;
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket.into())
}

/// The script's report: its origin of time, paints and the load event, and the objects.
fn parse(report: &str) -> Option<(Vec<Arrival>, [f64; 4])> {
    let tenths = |text: &str| text.parse::<f64>().ok().map(|tenths| tenths / 10.0);
    let mut rows = report.split('~').map(|row| row.split('_').collect::<Vec<_>>());
    let [began, first, largest, load] = rows.next()?.try_into().ok()?;
    let arrival = |row: Vec<&str>| {
        let [place, requested, began, ended, bytes, protocol] = row.try_into().ok()?;
        Some(Arrival {
            place: place.parse().ok()?,
            address: String::new(),
            asked_ms: tenths(requested)?,
            began_ms: tenths(began)?,
            ended_ms: tenths(ended)?,
            bytes: bytes.parse().ok()?,
            protocol: protocol.to_owned(),
        })
    };
    let times = [tenths(began)?, tenths(first)?, tenths(largest)?, tenths(load)?];
    Some((rows.map(arrival).collect::<Option<_>>()?, times))
}
