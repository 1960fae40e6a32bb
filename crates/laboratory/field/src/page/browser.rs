//! A headless browser: Chromium through a pair of pipes (the DevTools protocol), or Firefox, which
//! has all it needs in its profile.
//!
//! It ends when the pipes do, and so with this program, however that ends.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
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
        let (mut command, port) = match way {
            Way::Relay(relay) => {
                let mut shell = Command::new("sh");
                shell.env(namespace::OUTSIDE, relay.ip().to_string());
                (shell, relay.port())
            }
            Way::Link(_, port) => {
                let mut link = Command::new(std::env::current_exe().context("this program")?);
                link.arg("link").args(&testbed.link).arg("--strict");
                link.arg("--log").arg(profile.join(LOG)).args(["--", "sh"]);
                (link, port)
            }
        };
        let http = match way {
            Way::Relay(_) => Http::H3,
            Way::Link(http, _) => http,
        };
        if testbed.is_firefox() {
            firefox(&mut command, testbed, &profile, http, port)?;
        } else {
            chromium(&mut command, testbed, &profile, http, port);
        }
        let child = command
            // The browser's other folders are removed with the profile.
            .env("TMPDIR", &profile)
            .env("HOME", &profile)
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

/// The words of a shell that becomes Chromium.
fn chromium(command: &mut Command, testbed: &Testbed, profile: &Path, http: Http, port: u16) {
    // Descriptors 3 and 4 are the browser's ends of the pipes; no safe code sets them but a
    // shell's. The browser's own requests find no host.
    let shell = format!(
        "exec \"$0\" \"$@\" \"--host-resolver-rules=MAP {}:{HTTPS} ${}:{port},MAP * ~NOTFOUND\" 3<&0 4>&1 </dev/null >/dev/null",
        host("*"),
        namespace::OUTSIDE
    );
    let protocol: &[&str] = match http {
        Http::H3 => &["--origin-to-force-quic-on=*"],
        Http::H2 => &["--disable-quic"],
        Http::H1 => &["--disable-quic", "--disable-http2"],
    };
    command
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
        .arg(format!("data:text/html,{}", first(testbed)));
}

/// The words of a shell that becomes Firefox, and the profile.
fn firefox(command: &mut Command, testbed: &Testbed, profile: &Path, http: Http, port: u16) -> Result<()> {
    let hosts = || (0..testbed.replay.origins).map(host);
    let is_h3 = http == Http::H3;
    let (named, forced) = if is_h3 { (HTTPS, 1) } else { (port, port) };
    let trusted = |host: String| {
        format!("{host}:{named}:\tOID.2.16.840.1.101.3.4.2.1\t{}\t\n", testbed.certificate_hash)
    };
    std::fs::write(profile.join("cert_override.txt"), hosts().map(trusted).collect::<String>())?;
    let services: Vec<String> = hosts().map(|host| format!("{host};h3=:{port}")).collect();
    // Of the browser's own requests, none leaves this host: no program listens at port 1.
    let preferences = [
        ("network.http.http3.enable", json!(is_h3)),
        ("network.http.http3.alt-svc-mapping-for-testing", json!(services.join(","))),
        ("network.http.http3.force-use-alt-svc-mapping-for-testing", json!(is_h3)),
        ("network.http.http3.disable_when_third_party_roots_found", json!(false)),
        ("network.http.http2.enabled", json!(http != Http::H1)),
        ("network.socket.forcePort", json!(format!("{HTTPS}={forced}"))),
        ("network.proxy.type", json!(1)),
        ("network.proxy.ssl", json!("127.0.0.1")),
        ("network.proxy.ssl_port", json!(1)),
        ("network.proxy.http", json!("127.0.0.1")),
        ("network.proxy.http_port", json!(1)),
        ("network.proxy.no_proxies_on", json!(host("*").trim_start_matches("h*"))),
        ("browser.chrome.site_icons", json!(false)),
        ("privacy.reduceTimerPrecision", json!(false)),
    ];
    let line = |(name, value): (&str, Value)| format!("user_pref(\"{name}\", {value});\n");
    let preferences: String = preferences.into_iter().map(line).collect();
    std::fs::write(profile.join("user.js"), preferences)?;
    let page = profile.join("first.html");
    std::fs::write(&page, first(testbed))?;
    // Only the shell knows the server's address. The end of the first pipe ends the browser.
    let shell = format!(
        "echo \"user_pref('network.dns.forceResolve', '${}');\" >>\"$1/user.js\"; exec 3<&0
         {{ cat; kill -9 $$; }} <&3 & exec \"$0\" --profile \"$@\" 3<&- </dev/null >/dev/null",
        namespace::OUTSIDE
    );
    command.args(["-c", &shell]).arg(&testbed.browser).arg(profile);
    command.args(["--headless", "--no-remote"]).arg(page);
    command.env("MOZ_HEADLESS_WIDTH", "1280").env("MOZ_HEADLESS_HEIGHT", "720");
    Ok(())
}

/// The first navigation of a browser waits for its own beginning: it is to an empty page. Firefox
/// begins for longer.
fn first(testbed: &Testbed) -> String {
    let pause_ms = if testbed.is_firefox() { 2000 } else { 700 };
    format!("<script>setTimeout(()=>location='{}',{pause_ms})</script>", testbed.replay.address(0))
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
