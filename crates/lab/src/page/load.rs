//! One visit to a replayed page: a server, a path and a browser, all new but the server's history.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use headstart_emu::clock::Clock;
use headstart_emu::{Path as EmulatedPath, relay, udp};
use headstart_host::locked;
use headstart_net::{Direction, PathPlan, Seed};
use headstart_quic::{Choice, Sharded, StartReport};
use headstart_web::identity::Identity;
use headstart_web::open::{self, ServerSettings};
use headstart_web::server::ServerConfig;
use headstart_web::site::Site;
use serde::Serialize;
use tokio::process::{Child, Command};
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;

use super::{Replay, host};

/// Browsers that are looked for, in this order: Debian's name, then others'.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Port of HTTPS, which the addresses of the page have.
const HTTPS: u16 = 443;

/// The browser on this machine, if there is one.
#[must_use]
pub fn find_browser() -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    BROWSERS
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|file| file.is_file())
}

/// Time of one object in a visit, from the beginning of the navigation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Arrival {
    /// The object's place in the page.
    pub place: usize,
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
    /// Time limit of a visit.
    pub timeout: Duration,
    /// Ends the visit under way, its browser and its profile.
    pub stop: CancellationToken,
    identity: Identity,
    key_hash: String,
}

impl Testbed {
    /// A testbed with a certificate of its own.
    ///
    /// # Errors
    /// If the system has no randomness for a key.
    pub fn new(replay: Replay, path: PathPlan, browser: PathBuf, timeout: Duration) -> Result<Self> {
        // It names no host of the page: a browser shares connections among hosts that it names.
        let identity = Identity::temporary()?;
        let key_hash = BASE64_STANDARD.encode(identity.key_hash()?);
        let stop = CancellationToken::new();
        Ok(Self { replay: Arc::new(replay), path, browser, timeout, stop, identity, key_hash })
    }

    /// One visit by a browser without anything in its cache.
    ///
    /// # Errors
    /// If the browser does not start, does not report in time, or an object did not arrive whole.
    pub async fn visit(&self, scheme: Choice, history: &Arc<Sharded>, seed: u64) -> Result<Visit> {
        let identity = self.identity.current()?;
        let settings = ServerSettings::new(&identity, scheme, Arc::clone(history) as Arc<_>);
        let (endpoint, starts) = open::open(settings, SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let reports = Arc::<Mutex<Vec<StartReport>>>::default();
        let collected = Arc::clone(&reports);
        let listener = Arc::new(move |report: &StartReport| locked(&collected).push(report.clone()));
        let starts = Arc::new(starts.report_to(listener));
        let served = endpoint.local_addr()?;
        let shutdown = CancellationToken::new();
        let config = ServerConfig { grace: Duration::ZERO, ..ServerConfig::default() };
        let (report, mut reported) = unbounded_channel();
        let site = Arc::new(Site::Made(self.replay.site(report)));
        let server = tokio::spawn(starts.serve(endpoint, site, config, shutdown.clone()));
        // Down is towards the browser.
        let [up, down] = Direction::BOTH.map(|direction| EmulatedPath::of(&self.path, direction, Seed(seed)));
        let (address, relay) = udp::start(
            udp::Settings::before(served),
            up,
            down,
            Clock::start(),
            relay::Settings::default(),
            None,
        )
        .context("cannot open a UDP port for the path")?;

        let mut browser = Browser::start(self, address)?;
        let found = tokio::select! {
            report = reported.recv() => report.context("the server ended"),
            () = tokio::time::sleep(self.timeout) => {
                Err(anyhow!("the page was not complete in {:?}, expected it in --timeout", self.timeout))
            }
            _ = browser.child.wait() => {
                let (browser, words) = (self.browser.display(), browser.words());
                Err(anyhow!("{browser}: ended before the page had loaded: {words}"))
            }
            () = self.stop.cancelled() => Err(anyhow!("stopped: nothing is kept")),
        };
        // The connections end here, and with them their records are written.
        shutdown.cancel();
        server.await.context("the server failed")?;
        let summary = relay.stop().context("the path")?;
        browser.end().await;
        let report = found?;
        let connections = locked(&reports).len();
        let visit =
            parse(&report).with_context(|| format!("found {report:?}, expected the page's report"))?;
        let (arrivals, [first_paint_ms, largest_paint_ms, load_event_ms]) = visit;
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
            connections,
            carried: summary.down.sent_bytes,
            lost_packets: summary.down.arrived.saturating_sub(summary.down.sent + summary.down.inside),
            arrivals,
            is_valid: summary.is_valid,
        };
        self.check(&visit)?;
        Ok(visit)
    }

    /// Every object arrived whole, over HTTP/3.
    fn check(&self, visit: &Visit) -> Result<()> {
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
                arrival.protocol == "h3",
                "object {place}: found it over {}, expected h3",
                arrival.protocol
            );
        }
        let (found, expected) = (visit.arrivals.len(), self.replay.requests().count() + 1);
        ensure!(found == expected, "found {found} objects, expected {expected}");
        Ok(())
    }
}

/// The script's report: paints and the load event, and the objects.
fn parse(report: &str) -> Option<(Vec<Arrival>, [f64; 3])> {
    let tenths = |text: &str| text.parse::<f64>().ok().map(|tenths| tenths / 10.0);
    let mut rows = report.split('~').map(|row| row.split('_').collect::<Vec<_>>());
    let [first, largest, load] = rows.next()?.try_into().ok()?;
    let arrival = |row: Vec<&str>| {
        let [place, requested, began, ended, bytes, protocol] = row.try_into().ok()?;
        Some(Arrival {
            place: place.parse().ok()?,
            asked_ms: tenths(requested)?,
            began_ms: tenths(began)?,
            ended_ms: tenths(ended)?,
            bytes: bytes.parse().ok()?,
            protocol: protocol.to_owned(),
        })
    };
    Some((rows.map(arrival).collect::<Option<_>>()?, [tenths(first)?, tenths(largest)?, tenths(load)?]))
}

/// A browser and its profile, which are gone when this is dropped.
struct Browser {
    child: Child,
    profile: PathBuf,
}

impl Browser {
    fn start(testbed: &Testbed, relay: SocketAddr) -> Result<Self> {
        static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let profile = std::env::temp_dir().join(format!("headstart-page-{}-{number}", std::process::id()));
        std::fs::create_dir(&profile).with_context(|| format!("cannot create {}", profile.display()))?;
        let hosts: Vec<String> = (0..testbed.replay.origins).map(host).collect();
        let each = |of: &dyn Fn(&String) -> String| hosts.iter().map(of).collect::<Vec<_>>().join(",");
        let forced = each(&|host| format!("{host}:{HTTPS}"));
        // The browser's own requests find no host.
        let rules = format!("{},MAP * ~NOTFOUND", each(&|host| format!("MAP {host}:{HTTPS} {relay}")));
        // The first navigation of a browser waits for its own beginning: it is to an empty page.
        let first = format!("<script>setTimeout(()=>location='{}',700)</script>", testbed.replay.address(0));
        let child = Command::new(&testbed.browser)
            .args(["--headless=new", "--disable-gpu", "--no-first-run", "--disable-background-networking"])
            .args([
                "--disable-component-update",
                "--disable-default-apps",
                "--disable-sync",
                "--disable-extensions",
            ])
            .args(["--window-size=1280,720", "--hide-scrollbars", "--mute-audio", "--disable-dev-shm-usage"])
            // Pages are this program's own; root may not use the sandbox.
            .arg("--no-sandbox")
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(format!("--origin-to-force-quic-on={forced}"))
            .arg(format!("--host-resolver-rules={rules}"))
            .arg(format!("--ignore-certificate-errors-spki-list={}", testbed.key_hash))
            .arg(format!("data:text/html,{first}"))
            // Its other folders go with the profile.
            .env("TMPDIR", &profile)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(profile.join(WORDS))?)
            .kill_on_drop(true)
            .spawn();
        match child {
            Ok(child) => Ok(Self { child, profile }),
            Err(error) => {
                let _ = std::fs::remove_dir_all(&profile);
                bail!("{}: cannot start it: {error}", testbed.browser.display())
            }
        }
    }

    /// Ends the browser. Processes of it that outlive the first may still write to the profile.
    async fn end(mut self) {
        let _ = self.child.kill().await;
        for _ in 0..50 {
            let _ = tokio::fs::remove_dir_all(&self.profile).await;
            // They may have created it again.
            tokio::time::sleep(Duration::from_millis(50)).await;
            if !self.profile.exists() {
                return;
            }
        }
    }

    /// The browser's last words.
    fn words(&self) -> String {
        let words = std::fs::read(self.profile.join(WORDS)).unwrap_or_default();
        String::from_utf8_lossy(&words).trim_end().lines().last().unwrap_or("it said nothing").to_owned()
    }
}

/// File of the browser's messages in its profile.
const WORDS: &str = "headstart.log";

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.start_kill();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}
