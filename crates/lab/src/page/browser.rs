//! A headless Chromium, driven through a pair of pipes (the DevTools protocol).
//!
//! It ends when the pipes do, and so with this program, however that ends.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use headstart_emu::namespace;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::load::{Http, Testbed};
use super::{HTTPS, host};

/// Browsers that are looked for, in this order: Debian's name, then others'.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// The browser on this machine, if there is one.
#[must_use]
pub fn find_browser() -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    BROWSERS
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|file| file.is_file())
}

/// A picture of the page.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Time from which on it was shown, in milliseconds.
    pub at_ms: f64,
    /// A JPEG in base64.
    pub jpeg: String,
}

/// A browser and its profile, which are gone when this is dropped.
pub(super) struct Browser {
    child: Child,
    profile: PathBuf,
    film: JoinHandle<Vec<Frame>>,
    close: CancellationToken,
    is_behind_link: bool,
}

/// The browser's way to the server.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    /// HTTP/3 to a relay.
    Relay(SocketAddr),
    /// Another protocol to this port, from a namespace behind `headstart link`.
    Link(Http, u16),
}

/// Traces of a visit.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// The pictures of a visit that was filmed.
    pub frames: Vec<Frame>,
    /// The log of `headstart link`.
    pub log: String,
    /// The machine kept real time, as `headstart link` tells.
    pub is_valid: bool,
}

impl Browser {
    /// Begins a visit.
    pub fn start(testbed: &Testbed, way: Way, is_filmed: bool) -> Result<Self> {
        static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let profile = std::env::temp_dir().join(format!("headstart-page-{}-{number}", std::process::id()));
        std::fs::create_dir(&profile).with_context(|| format!("cannot create {}", profile.display()))?;
        let (mut command, server, protocol): (_, _, &[&str]) = match way {
            Way::Relay(relay) => (Command::new("sh"), relay.to_string(), &["--origin-to-force-quic-on=*"]),
            Way::Link(http, port) => {
                let mut link = Command::new(std::env::current_exe().context("this program")?);
                link.arg("link").args(&testbed.link).arg("--strict");
                link.arg("--log").arg(profile.join(LOG)).args(["--", "sh"]);
                let protocol: &[&str] = if http == Http::H1 {
                    &["--disable-quic", "--disable-http2"]
                } else {
                    &["--disable-quic"]
                };
                (link, format!("${}:{port}", namespace::OUTSIDE), protocol)
            }
        };
        // Descriptors 3 and 4 are the browser's ends of the pipes; no safe code sets them but a
        // shell's. The browser's own requests find no host.
        let shell = format!(
            "exec \"$0\" \"$@\" \"--host-resolver-rules=MAP {}:{HTTPS} {server},MAP * ~NOTFOUND\" 3<&0 4>&1 </dev/null >/dev/null",
            host("*")
        );
        // The first navigation of a browser waits for its own beginning: it is to an empty page.
        let first = format!("<script>setTimeout(()=>location='{}',700)</script>", testbed.replay.address(0));
        let child = command
            .args(["-c", &shell])
            .arg(&testbed.browser)
            .args(["--headless=new", "--disable-gpu", "--no-first-run", "--disable-background-networking"])
            .args([
                "--disable-component-update",
                "--disable-default-apps",
                "--disable-sync",
                "--disable-extensions",
            ])
            .args(["--window-size=1280,720", "--hide-scrollbars", "--mute-audio", "--disable-dev-shm-usage"])
            // Pages are this program's own; root may not use the sandbox.
            .args(["--no-sandbox", "--remote-debugging-pipe"])
            .args(protocol)
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(format!("--ignore-certificate-errors-spki-list={}", testbed.key_hash))
            .arg(format!("data:text/html,{first}"))
            // Chromium's other folders are removed with the profile.
            .env("TMPDIR", &profile)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(profile.join(WORDS))?)
            .kill_on_drop(true)
            .spawn();
        match child {
            Ok(mut child) => {
                let pipes = child.stdin.take().zip(child.stdout.take()).context("the browser's pipes")?;
                let close = CancellationToken::new();
                let film = tokio::spawn(film(pipes, is_filmed, close.clone()));
                let is_behind_link = matches!(way, Way::Link(..));
                Ok(Self { child, profile, film, close, is_behind_link })
            }
            Err(error) => {
                let _ = std::fs::remove_dir_all(&profile);
                bail!("{}: cannot start it: {error}", testbed.browser.display())
            }
        }
    }

    /// Waits until the browser ends by itself; its last words.
    pub async fn ended(&mut self) -> String {
        let _ = self.child.wait().await;
        let words = std::fs::read(self.profile.join(WORDS)).unwrap_or_default();
        String::from_utf8_lossy(&words).trim_end().lines().last().unwrap_or("it said nothing").to_owned()
    }

    /// Ends the browser. Processes of it that outlive the first may still write to the profile.
    pub async fn end(mut self) -> Ended {
        if !self.is_behind_link {
            let _ = self.child.kill().await;
        }
        self.close.cancel();
        let frames = (&mut self.film).await.unwrap_or_default();
        // The link writes its log at its end.
        let patience = if self.is_behind_link { Duration::from_secs(10) } else { Duration::ZERO };
        let status = tokio::time::timeout(patience, self.child.wait()).await;
        let _ = self.child.kill().await;
        let is_valid = status.is_ok_and(|ended| ended.is_ok_and(|status| status.code() != Some(LATE)));
        let log = std::fs::read_to_string(self.profile.join(LOG)).unwrap_or_default();
        for _ in 0..50 {
            let _ = tokio::fs::remove_dir_all(&self.profile).await;
            // They may have created it again.
            tokio::time::sleep(Duration::from_millis(50)).await;
            if !self.profile.exists() {
                break;
            }
        }
        Ended { frames, log, is_valid }
    }
}

/// Holds the pipes until they are closed or the browser ends. Keeps the pictures if it is filmed.
async fn film(
    (mut commands, events): (ChildStdin, ChildStdout),
    is_filmed: bool,
    close: CancellationToken,
) -> Vec<Frame> {
    let mut events = BufReader::new(events);
    let mut frames = vec![];
    if is_filmed {
        let params = json!({ "autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true });
        tell(&mut commands, "Target.setAutoAttach", &params, &Value::Null).await;
    }
    let mut message = vec![];
    while let Some(Ok(1..)) = close.run_until_cancelled(events.read_until(0, &mut message)).await {
        message.pop();
        let event: Value = serde_json::from_slice(&message).unwrap_or_default();
        message.clear();
        let params = &event["params"];
        match event["method"].as_str() {
            Some("Target.attachedToTarget") if params["targetInfo"]["type"] == "page" => {
                let film = json!({ "format": "jpeg", "quality": 50, "maxWidth": 240, "maxHeight": 160 });
                tell(&mut commands, "Page.startScreencast", &film, &params["sessionId"]).await;
            }
            Some("Page.screencastFrame") => {
                let seen = json!({ "sessionId": params["sessionId"] });
                tell(&mut commands, "Page.screencastFrameAck", &seen, &event["sessionId"]).await;
                let at_ms = params["metadata"]["timestamp"].as_f64().map(|seconds| seconds * 1e3);
                let jpeg = params["data"].as_str().map(str::to_owned);
                frames.extend(at_ms.zip(jpeg).map(|(at_ms, jpeg)| Frame { at_ms, jpeg }));
            }
            _ => {}
        }
    }
    frames
}

/// Sends a command of the protocol. A browser that has ended takes none.
async fn tell(commands: &mut ChildStdin, method: &str, params: &Value, session: &Value) {
    let mut command = json!({ "id": 1, "method": method, "params": params });
    if session.is_string() {
        command["sessionId"] = session.clone();
    }
    let _ = commands.write_all(format!("{command}\0").as_bytes()).await;
}

/// File of the browser's messages in its profile.
const WORDS: &str = "headstart.log";

/// File of the log of `headstart link` in the profile.
const LOG: &str = "link.csv";

/// Exit code of `headstart link --strict` on a machine that was too busy.
const LATE: i32 = 3;

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.start_kill();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}
