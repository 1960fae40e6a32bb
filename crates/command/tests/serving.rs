//! The commands that serve, fetch and demonstrate, as people run them.

#![expect(clippy::disallowed_methods, reason = "real processes, real time")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use headstart_downlink::{Machine, Network, Past};
use headstart_host::{not_run, unix_now};
use headstart_startup::prior::Access;

#[path = "../../../fuzz/checks/rollout.rs"]
mod rollout;

/// Every input that fuzzing kept; target `rollout`.
#[test]
fn logs_and_counters_of_the_fuzz_corpus_are_judged_or_refused() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/rollout");
    let folder = tempfile::tempdir().expect("a folder");
    for input in std::fs::read_dir(corpus).expect("the corpus") {
        rollout::check(folder.path(), &std::fs::read(input.expect("an input").path()).expect("its bytes"));
    }
}

fn headstart(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
    command.args(arguments).output().expect("the program runs")
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A server that ends with its test.
struct Server {
    child: Child,
    url: String,
    /// Address of its counters, if requested.
    counters: Option<String>,
    home: tempfile::TempDir,
    /// Kept open for its later messages: it would not survive a closed pipe.
    message: BufReader<ChildStderr>,
}

impl Server {
    fn start(options: &[&str]) -> Self {
        Self::start_for(options, None)
    }

    /// Under a service manager that listens at that socket.
    fn start_for(options: &[&str], manager: Option<&Path>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
        command.envs(manager.map(|socket| ("NOTIFY_SOCKET", socket)));
        Self::start_as(command, options)
    }

    /// By a command that the server's arguments follow.
    fn start_as(mut command: Command, options: &[&str]) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let mut child = command
            .args(if options.contains(&"--upstream") { &["proxy"][..] } else { &["serve", "--generate"] })
            .args(if options.contains(&"--listen") { &[][..] } else { &["--listen", "127.0.0.1:0"] })
            .args(options)
            .env("XDG_DATA_HOME", home.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut message = BufReader::new(child.stderr.take().expect("its standard error"));
        let mut counters = None;
        let mut lines = message.by_ref().lines().map_while(Result::ok);
        let is_address = |line: &String| {
            let found = line.split_once("http://").and_then(|(_, rest)| rest.strip_suffix("/metrics"));
            counters = found.map(str::to_owned).or_else(|| counters.take());
            line.contains(" at https://")
        };
        let line = lines.find(is_address).expect("it says where it listens");
        let (_, behind) = line.rsplit_once(" at ").expect("an address");
        let url = behind.split(',').next().expect("an address").to_owned();
        Self { child, url, counters, home, message }
    }

    fn page(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_page_is_served_and_its_fetch_is_timed() {
    let server = Server::start(&[]);
    let page = server.page("bytes/120000");
    let got = headstart(&["get", &page, "--insecure", "--repeat", "2", "--format", "csv"]);
    assert!(got.status.success(), "{}", words(&got.stderr));
    let lines: Vec<String> = words(&got.stdout).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].starts_with("scheme,round,url,status,bytes,handshake_ms"), "{lines:?}");
    assert!(lines[1..].iter().all(|line| line.contains(",200,120000,")), "{lines:?}");
}

/// The URL's query belongs to a path, which RFC 9114 §4.3.1 wants; `..` is the client's to resolve.
#[test]
fn a_query_without_a_path_and_dots_are_asked_for_as_by_a_browser() {
    let server = Server::start(&[]);
    let bare = server.url.trim_end_matches('/');
    for (url, expected) in [
        (format!("{bare}?q=1"), format!("{bare}/?q=1,404")),
        (format!("{bare}/a/../bytes/./1000"), format!("{bare}/bytes/1000,200,1000,")),
    ] {
        let got = headstart(&["get", &url, "--insecure", "--format", "csv"]);
        assert!(words(&got.stdout).contains(&expected), "{}{}", words(&got.stdout), words(&got.stderr));
    }
}

/// The first fetches were well, and the server ends among the others.
#[test]
fn times_of_fetches_before_a_failure_are_printed() {
    let mut server = Server::start(&["--metrics", "127.0.0.1:0"]);
    let page = server.page("bytes/1000");
    let fetches = Command::new(env!("CARGO_BIN_EXE_headstart"))
        .args(["get", &page, "--insecure", "--repeat", "10000", "--format", "csv", "--timeout", "2 s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let begun = Instant::now();
    let ended = || {
        let lines = counted(&server, "headstart_connections_total{");
        lines.lines().filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum::<u64>()
    };
    while ended() < 2 && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    server.child.kill().expect("it runs");
    let got = fetches.wait_with_output().expect("it ends");
    let (rows, message) = (words(&got.stdout), words(&got.stderr));
    assert!(rows.lines().count() > 1 && rows.contains(",200,1000,"), "{rows}{message}");
    assert!(!got.status.success() && !message.is_empty(), "{message}");
}

/// One headstart in front of another, over TLS.
#[test]
fn a_proxy_stands_in_front_of_another_server() {
    let upstream = Server::start(&[]);
    let certificate = upstream.home.path().join("headstart/identity.pem").display().to_string();
    let url = upstream.url.trim_end_matches('/').replace("127.0.0.1", "localhost");
    let options = ["--upstream", &url, "--upstream-trust", &certificate, "--metrics", "127.0.0.1:0"];
    let server = Server::start(&options);
    let got = headstart(&["get", &server.page("bytes/120000"), "--insecure", "--format", "csv"]);
    assert!(words(&got.stdout).contains(",200,120000,"), "{}", words(&got.stderr));
    let answered = format!("headstart_upstream_requests_total{{upstream=\"{url}\",outcome=\"answered\"}}");
    assert_eq!(count(&server, &answered), 1);
}

/// A line for each change, however many requests there are.
#[test]
fn a_proxy_says_why_an_upstream_gives_no_answer() {
    let own_certificate = Server::start(&[]);
    let own_certificate = own_certificate.url.trim_end_matches('/');
    let nonsense = TcpListener::bind("127.0.0.1:0").expect("a port");
    let talks_nonsense = format!("http://{}", nonsense.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in nonsense.incoming().map_while(Result::ok) {
            let _ = (&stream).read(&mut [0; 1000]);
            let _ = (&stream).write_all(b"220 smtp.example ESMTP\r\n");
        }
    });
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let closed = format!("http://{closed}");
    for (upstream, cause) in [
        (own_certificate, "certificate"),
        (&closed, "refused"),
        ("http://nowhere.invalid", "lookup"),
        (&talks_nonsense, "invalid HTTP version"),
    ] {
        let mut server = Server::start(&["--upstream", upstream]);
        for _ in 0..3 {
            headstart(&["get", &server.page(""), "--insecure"]);
        }
        server.child.kill().expect("it runs");
        let mut message = String::new();
        server.message.read_to_string(&mut message).expect("text");
        let lines: Vec<&str> = message.lines().filter(|line| line.contains("WARN")).collect();
        assert!(
            lines.len() == 1 && lines[0].contains(cause) && lines[0].contains(upstream),
            "{cause}: {message}"
        );
    }
}

/// Answers that are not read hold files: the usual soft limit would be used up by ten connections.
#[cfg(target_os = "linux")]
#[test]
fn a_server_may_open_as_many_files_as_the_system_allows() {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -Sn 300; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_headstart")]);
    let server = Server::start_as(command, &[]);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.child.id())).expect("its limits");
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("a limit");
    let mut values = line.split_whitespace();
    assert_eq!(values.next(), values.next(), "{line}");
}

/// Faster than a client reads: the stack ends connections with more than 2048 packets unread.
#[test]
fn a_large_page_is_fetched_as_fast_as_loopback_carries_it() {
    let server = Server::start(&[]);
    for _ in 0..3 {
        let got = headstart(&["get", &server.page("bytes/300000000"), "--insecure", "--format", "csv"]);
        assert!(got.status.success(), "{}", words(&got.stderr));
        assert!(words(&got.stdout).contains(",200,300000000,"), "{}", words(&got.stdout));
    }
}

/// A certificate renewed on disk is taken; one that cannot be used is reported.
#[test]
#[cfg(unix)]
fn sighup_reads_the_certificate_again() {
    use headstart_web::identity::Identity;
    let folder = tempfile::tempdir().expect("a folder");
    let [old, new] = ["old", "new"].map(|name| {
        let folder = folder.path().join(name);
        Identity::load_or_create(&folder, &[]).expect("a certificate");
        folder.join("identity.pem").to_str().expect("a plain path").to_owned()
    });
    let used = folder.path().join("used.pem").to_str().expect("a plain path").to_owned();
    std::fs::copy(&old, &used).expect("copied");
    let mut server = Server::start(&["--certificate", &used, "--key", &used]);
    let url = server.page("bytes/1000");
    let is_trusted_with =
        |certificates: &str| headstart(&["get", &url, "--certificates", certificates]).status.success();
    assert!(is_trusted_with(&old) && !is_trusted_with(&new));

    let mut hang_up = || {
        let process = server.child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &process]).status().expect("kill runs").success());
        let mut lines = server.message.by_ref().lines().map_while(Result::ok);
        lines.find(|line| line.contains("the ") && line.contains("certificate")).expect("an answer")
    };
    std::fs::copy(&new, &used).expect("copied");
    assert!(hang_up().contains("new connections get it"));
    assert!(hang_up().contains("it is the one in use"));
    assert!(is_trusted_with(&new) && !is_trusted_with(&old));
    for (wrong, reason) in [(None, "cannot read it: "), (Some("half"), "found no certificate")] {
        match wrong {
            Some(text) => std::fs::write(&used, text).expect("written"),
            None => std::fs::remove_file(&used).expect("removed"),
        }
        let message = hang_up();
        let of_file = format!("the former certificate stays: {used}: {reason}");
        assert!(message.contains(&of_file) && message.matches("os error").count() <= 1, "{message}");
    }
    std::fs::remove_file(&used).expect("removed");
    assert!(Command::new("mkfifo").arg(&used).status().expect("mkfifo runs").success());
    assert!(hang_up().contains("found no regular file"), "nobody writes to it");
    assert!(is_trusted_with(&new));
}

/// The manager's socket is stood in for by one of the test.
#[test]
#[cfg(unix)]
fn a_service_manager_is_told_of_readiness_reloads_and_the_end() {
    use std::os::unix::net::UnixDatagram;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).expect("a socket");
    manager.set_read_timeout(Some(Duration::from_secs(60))).expect("a time limit");
    let next = || {
        let mut message = [0; 256];
        let length = manager.recv(&mut message).expect("a message in time");
        words(&message[..length])
    };
    let server = Server::start_for(&[], Some(&path));
    assert_eq!(next().trim_end(), "READY=1");
    let process = server.child.id().to_string();
    // A signal that comes at once must not end it: the handlers are there. Bits from signal 1 on.
    #[cfg(target_os = "linux")]
    {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("its status");
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask");
        let caught = u64::from_str_radix(caught.trim(), 16).expect("a mask");
        for number in [1, 2, 15] {
            assert_ne!(caught >> (number - 1) & 1, 0, "signal {number} of {caught:x}");
        }
    }
    let signal =
        |name: &str| Command::new("kill").args([name, process.as_str()]).status().expect("kill runs");
    assert!(signal("-HUP").success());
    let reload = next();
    assert!(reload.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reload}");
    assert_eq!(next().trim_end(), "READY=1");
    assert!(signal("-TERM").success());
    assert_eq!(next().trim_end(), "STOPPING=1");
}

/// The client has begun a download that takes longer than this test.
#[test]
#[cfg(unix)]
fn a_second_signal_ends_connections_that_have_time_left() {
    let mut server = Server::start(&["--grace", "10 min"]);
    let mut client = Command::new(env!("CARGO_BIN_EXE_headstart"))
        .args([
            "get",
            &server.page("bytes/1000000000"),
            "--insecure",
            "--receive-window",
            "64kB",
            "--repeat",
            "9",
        ])
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("a client");
    std::thread::sleep(Duration::from_secs(1));
    let process = server.child.id().to_string();
    let signal = || Command::new("kill").args(["-TERM", &process]).status().expect("kill runs").success();
    let mut lines = server.message.by_ref().lines().map_while(Result::ok);
    assert!(signal() && lines.any(|line| line.contains("shutting down")));
    std::thread::sleep(Duration::from_secs(1));
    assert!(server.child.try_wait().expect("a state").is_none(), "the connection has time left");
    assert!(signal() && lines.any(|line| line.contains("a second signal")));
    assert!(server.child.wait().expect("it ends").success());
    client.kill().expect("it runs");
    client.wait().expect("it ends");
}

/// Files may not grow, as on a disk that is full, and then they may again.
#[test]
#[cfg(target_os = "linux")]
fn a_history_that_cannot_be_written_is_told_and_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("peers.history");
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_headstart")]);
    let history = file.to_str().expect("text");
    let mut server = Server::start_as(shell, &["--history", history, "--metrics", "127.0.0.1:0", "--quiet"]);
    let process = server.child.id().to_string();
    let mut limit = |most: &str, expected: &str| {
        let limited = Command::new("prlimit").args(["--pid", &process, most]).status();
        assert!(limited.expect("prlimit runs").success());
        assert!(headstart(&["get", &server.page("bytes/200000"), "--insecure"]).status.success());
        let mut lines = server.message.by_ref().lines().map_while(Result::ok);
        let message = lines.find(|line| line.contains("histor")).expect("a message");
        assert!(message.contains(expected), "{message}");
        counted(&server, "headstart_history_unwritten ")
    };
    let text = limit("--fsize=0:unlimited", "cannot write: File too large");
    assert!(text.ends_with("\nheadstart_history_unwritten 1"), "{text}");
    let text = limit("--fsize=unlimited:unlimited", "is written again");
    assert!(text.ends_with("\nheadstart_history_unwritten 0"), "{text}");
}

/// As `cp a a`, it takes nothing away. No wrong input is a server that does not answer.
#[test]
fn a_history_is_merged_into_itself_and_an_absent_server_is_a_failure() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("peers.history").display().to_string();
    let server = Server::start(&["--history", &file]);
    assert!(headstart(&["get", &server.page("bytes/200000"), "--insecure"]).status.success());
    drop(server);
    let merged = headstart(&["history", "merge", &file, "--into", &file]);
    assert!(merged.status.success(), "{}", words(&merged.stderr));
    let absent = headstart(&["history", "show", "valkey://127.0.0.1:1/"]);
    assert_eq!(absent.status.code(), Some(1), "{}", words(&absent.stderr));
    let absent = headstart(&["history", "show", "/nowhere/peers.history"]);
    assert_eq!(absent.status.code(), Some(2), "{}", words(&absent.stderr));
}

/// The log's folder goes away. `--quiet` is about connections alone.
#[test]
#[cfg(unix)]
fn a_quiet_server_warns_once_that_its_access_log_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let (logs, former) = (folder.path().join("logs"), folder.path().join("former"));
    std::fs::create_dir(&logs).expect("a folder");
    let file = logs.join("access");
    let mut server = Server::start(&["--quiet", "--access-log", file.to_str().expect("text")]);
    std::fs::rename(&logs, &former).expect("renamed");
    for _ in 0..3 {
        assert!(headstart(&["get", &server.page("bytes/1000"), "--insecure"]).status.success());
    }
    let process = server.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &process]).status().expect("kill runs").success());
    assert!(server.child.wait().expect("it ends").success());
    let mut message = String::new();
    server.message.read_to_string(&mut message).expect("text");
    assert_eq!(message.matches("the access log cannot be reopened").count(), 1, "{message}");
    let text = std::fs::read_to_string(former.join("access")).expect("the former log");
    assert_eq!(text.lines().count(), 3, "{text}");
}

/// Passes sockets of these kinds (`tcp`, `udp`) to the program that follows, as a service manager
/// does. They are bound to one port.
const MANAGER: &str = r#"
import os, socket, sys
kinds, port, sockets = sys.argv[1].split(","), 0, []
for kind in kinds:
    sockets.append(socket.socket(type=socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM))
    sockets[-1].bind(("127.0.0.1", port))
    port = sockets[-1].getsockname()[1]
    if kind == "tcp":
        sockets[-1].listen(16)
for at, number in enumerate([os.dup(one.fileno()) for one in sockets]):
    os.dup2(number, 3 + at, inheritable=True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(kinds)))
print(port, file=sys.stderr, flush=True)
os.execv(sys.argv[2], sys.argv[2:])
"#;

#[test]
#[cfg(unix)]
fn sockets_of_a_service_manager_are_taken_over() {
    let manager = |kinds: &str| {
        let mut command = Command::new("python3");
        command.args(["-c", MANAGER, kinds, env!("CARGO_BIN_EXE_headstart")]);
        command
    };
    if Command::new("python3").arg("--version").output().is_err() {
        return not_run("sockets_of_a_service_manager_are_taken_over: python3 is not installed");
    }
    for (kinds, options) in [("tcp,udp", &[][..]), ("udp", &["--no-tcp"])] {
        let server = Server::start_as(manager(kinds), options);
        let page = server.page("bytes/1000");
        assert!(headstart(&["get", &page, "--insecure"]).status.success(), "{kinds}");
        let address = server.url.trim_start_matches("https://").trim_end_matches('/');
        assert_eq!(TcpStream::connect(address).is_ok(), kinds.contains("tcp"));
    }
    for (kinds, options, found) in [
        ("tcp", &[][..], "found 0 of UDP, 1 of TCP and 0 others, expected one of UDP and one of TCP"),
        ("udp", &[], "found 1 of UDP, 0 of TCP and 0 others, expected one of UDP and one of TCP"),
        ("tcp,udp", &["--no-tcp"], "expected one of UDP and none of TCP (--no-tcp)"),
    ] {
        let home = tempfile::tempdir().expect("a folder");
        let mut command = manager(kinds);
        command.args(["serve", "--generate"]).args(options).env("XDG_DATA_HOME", home.path());
        let refused = command.output().expect("it runs");
        assert_eq!(refused.status.code(), Some(2));
        assert!(words(&refused.stderr).contains(found), "{}", words(&refused.stderr));
    }
}

/// `systemd-analyze` reads the units; reported as not run where it is not installed.
#[test]
fn the_unit_files_are_valid_and_harden_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("headstart");
    std::fs::copy("/bin/true", &program).expect("a program");
    let units = ["headstart.service", "headstart.socket", "headstart-tcp-history.service"];
    for name in units {
        let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
        let text = std::fs::read_to_string(unit).expect("a unit");
        // The program need not be installed here.
        let text = text.replace("/usr/bin/headstart", program.to_str().expect("a plain path"));
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let analyze =
        |words: &[&str]| Command::new("systemd-analyze").args(words).current_dir(folder.path()).output();
    let verify = units.map(|name| format!("./{name}"));
    let Ok(verified) = analyze(&["verify", &verify[0], &verify[1], &verify[2]]) else {
        return not_run("the_unit_files_are_valid_and_harden_the_server: systemd-analyze is not installed");
    };
    let message = words(&verified.stderr);
    let ours: Vec<&str> = message.lines().filter(|line| line.contains("headstart")).collect();
    assert_eq!(ours, Vec::<&str>::new());
    // In tenths: 1.6 when this was written, most of it for the network itself.
    let secure = analyze(&["security", "--offline=true", "--threshold=20", "./headstart.service"]);
    let secure = secure.expect("it was there");
    let last = words(&secure.stdout).lines().last().unwrap_or_default().to_owned();
    assert!(secure.status.success(), "{last} {}", words(&secure.stderr));
}

/// Options of the unit file are the command's.
#[test]
fn the_unit_file_starts_the_server_with_options_that_it_has() {
    let unit = include_str!("../../../packaging/headstart.service");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("a command");
    let arguments: Vec<&str> = start.split(' ').collect();
    assert_eq!(arguments[..2], ["/usr/bin/headstart", "serve"]);
    // With a folder that is not there the server ends once its options are understood.
    let folder = tempfile::tempdir().expect("a folder");
    let absent = folder.path().join("absent").to_str().expect("a plain path").to_owned();
    let with_absent = arguments[1..].iter().map(|argument| argument.replace("/srv/www", &absent));
    let ended = headstart(&with_absent.collect::<Vec<_>>().iter().map(String::as_str).collect::<Vec<_>>());
    let message = words(&ended.stderr);
    assert!(message.contains(&format!("folder {absent}")), "{message}");
}

/// A log with a treatment of half the time; lines of others stand between.
fn rollout_log(connections: usize) -> String {
    let line = |number: usize| {
        let (arm, millis) = [("treatment", 100), ("control", 200)][number % 2];
        let millis = millis + number * 37 % 50;
        format!(
            "2026-11-23T10:00:00Z  INFO scheme=wise-start arm={arm} source=history peer=10.0.{}.{} sent=100000 lost=0 \
             first_flight_lost=0 began={number}.000 lasted_ms={millis} answer_ms={millis} answer_bytes=100000\n",
            number / 256,
            number % 256
        )
    };
    (0..connections).map(line).collect::<String>() + "another line\n"
}

#[test]
fn a_rollout_is_judged_from_its_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("headstart.log");
    let name = file.to_str().expect("a plain path");
    std::fs::write(&file, rollout_log(2_000)).expect("written");
    // The log says nothing of harm to others.
    let careful = headstart(&["ab", name]);
    assert!(words(&careful.stdout).contains("\nkeep testing: "), "{}", words(&careful.stdout));
    let table = headstart(&["ab", name, "--accept-unknown-harm"]);
    assert!(table.status.success(), "{}", words(&table.stderr));
    assert!(words(&table.stdout).contains("\nturn on: first answers take "), "{}", words(&table.stdout));
    let json = headstart(&["ab", name, "--accept-unknown-harm", "--format", "json"]);
    let document: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(document["verdict"], "turn on");
    assert_eq!(document["treatment"]["connections"], 1_000.0);
    let row = &document["rows"].as_array().expect("rows")[0];
    assert_eq!((&row["measure"], &row["size"]), (&"answer_ms".into(), &"100kB".into()));
    assert!((-0.5..-0.4).contains(&row["difference"].as_f64().expect("a number")), "{row}");

    std::fs::write(&file, rollout_log(3).replace("lost=0", "lost=none")).expect("written");
    let refused = headstart(&["ab", name]);
    assert_eq!(refused.status.code(), Some(2));
    let message = words(&refused.stderr);
    assert!(message.contains("line 1: found `lost=none`, expected a number from 0"), "{message}");
}

#[test]
fn the_container_starts_the_server_with_options_that_it_has() {
    let file = include_str!("../../../packaging/Containerfile").replace("\\\n", " ");
    let command = file.lines().find_map(|line| line.strip_prefix("CMD ")).expect("a command");
    let arguments: Vec<String> = serde_json::from_str(command).expect("a JSON array");
    let folder = tempfile::tempdir().expect("a folder");
    let absent = folder.path().join("absent").to_str().expect("a plain path").to_owned();
    let arguments: Vec<&str> = arguments
        .iter()
        .map(|argument| if argument == "/site" { absent.as_str() } else { argument })
        .collect();
    let ended = headstart(&[&["serve"], &arguments[..]].concat());
    let message = words(&ended.stderr);
    assert!(message.contains(&format!("folder {absent}")), "{message}");
}

/// The server's counter of that kind.
fn counted(server: &Server, kind: &str) -> String {
    let mut stream = TcpStream::connect(server.counters.as_ref().expect("counters")).expect("answers");
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("asked");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("told");
    text.lines().filter(|line| line.contains(kind)).collect::<Vec<_>>().join("\n")
}

/// A path to a server, and where it listens.
fn path(options: &[&str]) -> (Child, String) {
    let mut link = Command::new(env!("CARGO_BIN_EXE_headstart"))
        .args(["link", "--duration", "10min"])
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the path starts");
    let mut relay = String::new();
    BufReader::new(link.stdout.take().expect("its output")).read_line(&mut relay).expect("an address");
    (link, relay.trim().to_owned())
}

/// 10 kB at 25 Mbit/s and 50 ms, on real packets: the handshake's round trip is saved. The least of
/// several visits counts, as other load of the machine only adds to it.
#[test]
fn an_answer_in_0_rtt_saves_a_round_trip_over_the_emulator() {
    let server = Server::start(&["--scheme", "headstart", "--quiet"]);
    let address = server.url.trim_start_matches("https://").trim_end_matches('/');
    let (mut link, relay) =
        path(&["--rate", "25mbit", "--rtt", "50ms", "--buffer", "104p", "--udp", address]);
    let page = format!("https://{relay}/bytes/9000");
    let got = headstart(&["get", &page, "--insecure", "--0rtt", "--repeat", "12", "--format", "csv"]);
    let _ = link.kill();
    let _ = link.wait();
    assert!(got.status.success(), "{}", words(&got.stderr));
    let text = words(&got.stdout);
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let least = |early: &str| {
        let fetches = rows.iter().filter(|row| row[9] == early);
        fetches.map(|row| row[7].parse::<f64>().expect("milliseconds")).fold(f64::INFINITY, f64::min)
    };
    assert!(least("false") - least("true") > 45.0, "{text}");
}

/// The server, the path and the client each wrote of a download.
#[test]
fn logs_of_a_download_give_the_options_of_its_path() {
    let mut last = String::new();
    // Another load of the machine changes the path itself.
    for _ in 0..3 {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| folder.path().join(name).to_str().expect("a plain path").to_owned();
        let (logs, log, json) = (file("qlogs"), file("link.log"), file("get.json"));
        std::fs::create_dir(&logs).expect("a folder for qlogs");
        let server = Server::start(&["--scheme", "iw10", "--quiet", "--qlog", &logs]);
        let address = server.url.trim_start_matches("https://").trim_end_matches('/');
        let options = ["--rate", "25mbit", "--rtt", "50ms", "--buffer", "104p", "--log", &log];
        let (mut link, relay) = path(&[&options[..], &["--udp", address]].concat());
        let page = format!("https://{relay}/bytes/12000000");
        let got = headstart(&["get", &page, "--insecure", "--format", "json"]);
        std::fs::write(&json, &got.stdout).expect("a file");
        let stopped = Command::new("kill").args(["-INT", &link.id().to_string()]).status();
        assert!(stopped.is_ok_and(|status| status.success()) && link.wait().is_ok());
        drop(server);
        let qlog = std::fs::read_dir(&logs).expect("qlogs").next().expect("one").expect("a name").path();
        let measured = |file: &str| headstart(&["measure", file]);
        let is_near = |shown: &Output, expected: &[(&str, &str, f64, f64)]| {
            let line = words(&shown.stdout);
            let found: Vec<&str> = line.split_whitespace().collect();
            expected.iter().all(|(option, unit, expected, share)| {
                let place = found.iter().position(|word| word == option);
                let value =
                    place.and_then(|place| found.get(place + 1)?.strip_suffix(unit)?.parse::<f64>().ok());
                value.is_some_and(|value| (value / expected - 1.0).abs() <= *share)
            })
        };
        let [rate, rtt, buffer] =
            [("--rate", "Mbit/s", 25.0, 0.05), ("--rtt", "ms", 50.0, 0.05), ("--buffer", "kB", 156.0, 0.2)];
        let shown = [qlog.to_str().expect("a plain path"), &log, &json].map(measured);
        last = shown.iter().map(|shown| words(&shown.stdout) + &words(&shown.stderr)).collect();
        let all = [rate, rtt, buffer];
        if is_near(&shown[0], &all)
            && is_near(&shown[1], &all)
            && is_near(&shown[2], &[("--rate", "Mbit/s", 25.0, 0.3)])
        {
            let bounds = words(&shown[2].stderr);
            assert!(bounds.contains("at least: no queue ever stood") && bounds.contains("at most"), "{last}");
            let both = headstart(&["measure", &json, &log]);
            assert!(is_near(&both, &all) && !words(&both.stderr).contains("at least"), "{last}");
            return;
        }
    }
    panic!("{last}");
}

/// On real sockets: the server's datagrams say that they may be marked, a queue of the path marks
/// them, the client reads and reports the marks, and the server answers.
#[test]
fn congestion_marks_of_the_path_are_reported_and_answered() {
    for (queue, is_marking) in [("codel", true), ("drop-tail", false)] {
        let server = Server::start(&["--scheme", "iw10", "--metrics", "127.0.0.1:0", "--quiet"]);
        let address = server.url.trim_start_matches("https://").trim_end_matches('/');
        let (mut link, relay) =
            path(&["--rate", "20mbit", "--rtt", "20ms", "--queue", queue, "--udp", address]);
        let page = format!("https://{relay}/bytes/2000000");
        let got = headstart(&["get", &page, "--insecure", "--format", "csv"]);
        let _ = link.kill();
        let _ = link.wait();
        assert!(got.status.success(), "{}", words(&got.stderr));
        let sum = |kind: &str| -> f64 {
            counted(&server, kind)
                .lines()
                .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
                .sum()
        };
        let begun = Instant::now();
        while sum("headstart_connections_total{") < 1.0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "the connection does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(sum("headstart_marks_total{") > 0.0, is_marking);
    }
}

/// From the rate once seen on this network to hint, first flight, and back to the stored rate.
#[test]
fn a_hint_is_measured_sent_accepted_and_improved() {
    let server = Server::start(&["--scheme", "blitzstart", "--metrics", "127.0.0.1:0"]);
    let state = tempfile::tempdir().expect("a folder");
    let get = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
        let page = server.page("bytes/2000000");
        command.args(["get", &page, "--insecure", "--hint", "auto", "--format", "csv"]);
        command.env("XDG_STATE_HOME", state.path()).output().expect("the program runs")
    };
    let Some(network) = Network::find(&Machine::default()) else {
        // Without a network it reports that, and fetches all the same.
        let got = get();
        assert!(got.status.success(), "{}", words(&got.stderr));
        assert!(words(&got.stderr).contains("no hint"), "{}", words(&got.stderr));
        return not_run("this machine has no default route, so no network whose rate could be known");
    };
    let past = Past::new(state.path().join("headstart/networks.json"));
    let seen = "2 Mbit/s".parse().expect("a rate");
    past.observe(&network.key(), seen, Access::Dsl, unix_now()).expect("written");
    let got = get();
    assert!(got.status.success(), "{}", words(&got.stderr));
    assert!(words(&got.stderr).contains("hint: 2 Mbit/s, dsl"), "{}", words(&got.stderr));
    let deadline = Instant::now() + Duration::from_secs(60);
    // On loopback so slow a hint is less than the initial window: granted, and without effect.
    while !counted(&server, "nothing_to_gain_total{reason=\"initial-window\"}").contains(" 1") {
        assert!(Instant::now() < deadline, "{}", counted(&server, "headstart_"));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(counted(&server, "hints_total{outcome=\"received\"}").contains(" 1"));
    // Over loopback it is faster than that, however busy the machine, and is stored so.
    let best = past.best(&network.key(), unix_now()).expect("read").expect("an entry");
    assert!(best.rate > seen, "{}", best.rate);
    assert_eq!(best.access, Access::Dsl);
}

#[test]
fn a_comparison_needs_a_server_that_allows_scheme_requests() {
    let server = Server::start(&[]);
    let refused = headstart(&["get", &server.page("bytes/1"), "--insecure", "--compare", "iw10,halfback"]);
    assert!(!refused.status.success());
    assert!(words(&refused.stderr).contains("--allow-scheme-choice"), "{}", words(&refused.stderr));

    let server = Server::start(&["--allow-scheme-choice"]);
    let page = server.page("bytes/50000");
    let got =
        headstart(&["get", &page, "--insecure", "--compare", "slow-start,halfback", "--format", "json"]);
    assert!(got.status.success(), "{}", words(&got.stderr));
    let fetched: serde_json::Value = serde_json::from_slice(&got.stdout).expect("JSON");
    let schemes: Vec<&str> =
        fetched.as_array().expect("a list").iter().filter_map(|one| one["scheme"].as_str()).collect();
    assert_eq!(schemes, ["iw10", "halfback"]);
}

/// A server of a fleet's history, where one is installed; it ends with the test.
struct HistoryServer {
    child: Child,
    url: String,
}

impl HistoryServer {
    fn start() -> Option<Self> {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port").port();
        Some(Self { child: Self::run(free)?, url: format!("valkey://127.0.0.1:{free}/") })
    }

    /// An empty one, which accepts connections.
    fn run(port: u16) -> Option<Child> {
        let port = port.to_string();
        let options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port];
        let start = |name| Command::new(name).args(options).stdout(Stdio::piped()).spawn();
        let mut child = start("valkey-server").or_else(|_| start("redis-server")).ok()?;
        let mut message =
            BufReader::new(child.stdout.take().expect("its output")).lines().map_while(Result::ok);
        message.find(|line| line.contains("eady to accept connections")).expect("it starts");
        Some(child)
    }

    fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }

    /// Another takes its place and its address, with no record.
    fn replace(&mut self) {
        let port = self.url.trim_end_matches('/').rsplit(':').next().and_then(|port| port.parse().ok());
        self.child = Self::run(port.expect("a port")).expect("it is installed");
    }
}

impl Drop for HistoryServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// From one server, by way of the history's server, to another and to a file; and on without it.
#[test]
fn servers_share_a_history_and_do_without_it() {
    let Some(mut history) = HistoryServer::start() else {
        return not_run("neither valkey-server nor redis-server is installed");
    };
    let start =
        || Server::start(&["--history", &history.url, "--metrics", "127.0.0.1:0", "--shortest-rtt", "0 ms"]);
    let (one, other) = (start(), start());
    let fetch = |server: &Server| {
        let got = headstart(&["get", &server.page("bytes/3000000"), "--insecure"]);
        assert!(got.status.success(), "{}", words(&got.stderr));
    };
    let wait = |server: &Server, sample: &str| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !counted(server, sample).contains(" 1") {
            assert!(Instant::now() < deadline, "{sample}: {}", counted(server, "headstart_fleet"));
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    wait(&one, "headstart_fleet_server{state=\"up\"}");
    wait(&other, "headstart_fleet_server{state=\"up\"}");
    fetch(&one);
    wait(&one, "headstart_fleet_writes_total{outcome=\"written\"}");
    fetch(&other);
    wait(&other, "headstart_fleet_lookups_total{outcome=\"found\"}");

    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("peers.history").display().to_string();
    let message = |arguments: &[&str]| {
        let done = headstart(arguments);
        assert!(done.status.success(), "{arguments:?}: {}", words(&done.stderr));
        words(&done.stdout)
    };
    message(&["history", "merge", &history.url, "--into", &file]);
    for store in [&history.url, &file] {
        let exported = message(&["history", "export", store]);
        let lines: Vec<&str> = exported.lines().collect();
        assert!(
            lines.len() == 2 && lines[0].starts_with("peer,saved_at_s,age_s,rate_bits_per_s,"),
            "{exported}"
        );
        assert!(lines[1].starts_with("127.0.0.1,"), "{exported}");
        assert!(message(&["history", "show", store]).contains("1 peer"));
        assert!(message(&["history", "prune", store, "--older-than", "1 h"]).starts_with("0 of 1 "));
    }
    std::thread::sleep(Duration::from_millis(20));
    assert!(message(&["history", "prune", &file, "--older-than", "1 ms"]).starts_with("1 of 1 "));
    assert!(message(&["history", "prune", &file, "--older-than", "1 ms"]).starts_with("0 of 0 "));

    history.kill();
    fetch(&one);
    wait(&one, "headstart_fleet_server{state=\"away\"}");
    fetch(&one);
}

/// The value of a counter.
fn count(server: &Server, sample: &str) -> u64 {
    let line = counted(server, sample);
    line.rsplit(' ').next().and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

/// Two servers answer a client without a pause while their history's server is killed and comes
/// back without a record.
#[test]
fn a_history_server_killed_in_traffic_comes_back_empty_and_every_page_is_served() {
    let Some(mut history) = HistoryServer::start() else {
        return not_run("neither valkey-server nor redis-server is installed");
    };
    let start =
        || Server::start(&["--history", &history.url, "--metrics", "127.0.0.1:0", "--shortest-rtt", "0 ms"]);
    let servers = [start(), start()];
    let written = "headstart_fleet_writes_total{outcome=\"written\"}";
    let (up, away) = ("headstart_fleet_server{state=\"up\"}", "headstart_fleet_server{state=\"away\"}");
    let until = |sample: &str, expected: [u64; 2]| {
        let deadline = Instant::now() + Duration::from_secs(60);
        let reached = || servers.iter().zip(expected).all(|(server, least)| count(server, sample) >= least);
        while !reached() {
            let fleet = || servers.each_ref().map(|server| counted(server, "headstart_fleet")).join("\n");
            assert!(Instant::now() < deadline, "{sample}: {}", fleet());
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    until(up, [1, 1]);
    let (ends, latest) = (AtomicBool::new(false), Instant::now() + Duration::from_secs(120));
    std::thread::scope(|scope| {
        let visits = servers.each_ref().map(|server| {
            let ends = &ends;
            scope.spawn(move || {
                let mut pages = 0;
                while !ends.load(Ordering::Relaxed) && Instant::now() < latest {
                    let got = headstart(&["get", &server.page("bytes/1000000"), "--insecure"]);
                    assert!(got.status.success(), "page {pages}: {}", words(&got.stderr));
                    pages += 1;
                }
                pages
            })
        });
        until(written, [1, 1]);
        for _ in 0..2 {
            history.kill();
            until(away, [1, 1]);
            let before = servers.each_ref().map(|server| count(server, written));
            history.replace();
            until(up, [1, 1]);
            until(written, before.map(|count| count + 1));
            let message = words(&headstart(&["history", "show", &history.url]).stdout);
            assert!(message.contains("1 peer"), "{message}");
        }
        ends.store(true, Ordering::Relaxed);
        for visit in visits {
            assert!(visit.join().expect("every page was served") > 3, "pages of one server");
        }
    });
}

/// Lines with an error; advice is no second message.
fn complaints(message: &str) -> usize {
    message.lines().filter(|line| line.starts_with("error: ") || line.starts_with("headstart: ")).count()
}

/// Exits with 2 and only one error, which contains all of `expected`.
#[track_caller]
fn assert_refused(arguments: &[&str], expected: &[&str]) {
    let refused = headstart(arguments);
    let message = words(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {message}");
    assert_eq!(complaints(&message), 1, "{arguments:?}: {message}");
    for part in expected {
        assert!(message.contains(part), "{arguments:?} does not say {part}: {message}");
    }
}

#[test]
fn invalid_combinations_are_refused_with_one_message() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (garbage, absent) = (path("garbage"), path("absent"));
    std::fs::write(&garbage, "garbage").expect("a file");
    let (garbage, absent) = (garbage.as_str(), absent.as_str());
    let [one, other] = ["one", "other"].map(|name| {
        headstart_web::identity::Identity::load_or_create(path(name).as_ref(), &[]).expect("a certificate");
        format!("{}/identity.pem", path(name))
    });
    let (one, other) = (one.as_str(), other.as_str());
    let one_listen = "127.0.0.1:4433";
    for (arguments, expected) in [
        (&["serve", ".", "--scheme", "rcp"][..], &["`rcp` is not available over QUIC"][..]),
        (&["serve", ".", "--scheme", "quick-start"], &["`quick-start` is not available over QUIC"]),
        (&["serve", ".", "--scheme", "pcp"], &["`pcp` is not available over QUIC"]),
        (&["serve", ".", "--scheme", "tahoe"], &["found `tahoe`, expected one of", "wise-start"]),
        (&["serve", absent], &["folder", absent]),
        (&["serve", garbage], &["folder", garbage, "found a file, expected a folder"]),
        (&["serve"], &["FOLDER"]),
        (&["serve", ".", "--rollout", "101 %"], &["--rollout", "101 %", "at most 100 %"]),
        (&["serve", ".", "--rollout=-5 %"], &["--rollout", "found `-5 %`", "expected no sign"]),
        (&["serve", ".", "--rollout", "50"], &["--rollout", "found `50`", "`25 %`"]),
        (
            &["serve", ".", "--rollout", "50 %", "--allow-scheme-choice"],
            &["--rollout", "found 50 % with --allow-scheme-choice", "expected one of the two"],
        ),
        (&["serve", ".", "--listen", "localhost:4433"], &["--listen", "found `localhost:4433`", one_listen]),
        (&["serve", ".", "--metrics", "9100"], &["--metrics", "found `9100`", one_listen]),
        (&["serve", ".", "--most-connections", "0"], &["--most-connections", "0"]),
        (&["serve", ".", "--hint-cap", "50"], &["--hint-cap", "found `50`", "Mbit/s"]),
        (&["serve", ".", "--history", garbage], &["history", garbage, "expected a history"]),
        (&["serve", ".", "--history", "http://localhost/"], &["--history", "valkey://localhost:6379/"]),
        (&["proxy"], &["--upstream"]),
        (&["proxy", "--upstream", "ftp://x"], &["found `ftp://x`", "expected http://HOST:PORT"]),
        (&["proxy", "--upstream", "http://x/path"], &["found `http://x/path`", "without a path"]),
        (&["proxy", "--upstream", "http://x", "--check", "health"], &["found `health`", "expected a path"]),
        (
            &["proxy", "--upstream", "http://x", "--connect-timeout", "0 s"],
            &["--connect-timeout", "1 ms at least"],
        ),
        (
            &["proxy", "--upstream", "http://x", "--answer-timeout", "0 s"],
            &["--answer-timeout", "1 ms at least"],
        ),
        (&["proxy", "--upstream", "http://x", "--idle-timeout", "0 s"], &["--idle-timeout", "1 ms at least"]),
        (
            &["proxy", "--upstream", "https://x", "--upstream-trust", garbage],
            &["--upstream-trust", garbage, "found no certificate"],
        ),
        (&["history", "show", absent], &[absent, "found none"]),
        (&["history", "show", garbage], &[garbage, "expected a history"]),
        (&["serve", ".", "--qlog", garbage], &["--qlog", garbage, "found a file, expected a folder"]),
        (&["serve", ".", "--qlog", "no/such"], &["--qlog no/such", "No such file or directory"]),
        (&["serve", ".", "--rollout", "110%"], &["--rollout: found 110 %, expected at most 100 %"]),
        (&["get", "https://b\u{fc}cher.example/"], &["xn--"]),
        (&["serve", ".", "--certificate", absent, "--key", absent], &[absent]),
        (&["serve", ".", "--certificate", garbage, "--key", garbage], &[garbage, "found no certificate"]),
        (&["serve", ".", "--certificate", one, "--key", other], &[one, other, "found no pair"]),
        (
            &["get", "http://localhost/"],
            &["found `http://localhost/`", "expected an https URL (HTTP/3 has no other), such as https://"],
        ),
        (&["get", "https://localhost/", "https://example.org/"], &["expected pages of one server"]),
        (&["get", "https://localhost/", "--hint", "fast"], &["--hint", "found `fast`", "`auto`"]),
        (&["get", "https://localhost/", "--hint=-5 Mbit/s"], &["--hint", "found `-5 Mbit/s`"]),
        (&["get", "https://localhost/", "--access", "dsl"], &["--access", "--hint \"50 Mbit/s\""]),
        (&["get", "https://localhost/", "--timeout", "0 s"], &["--timeout", "found 0 ns", "1 ms"]),
        (&["get", "https://localhost/", "--connect", "4433"], &["--connect", "found `4433`", one_listen]),
        (
            &["get", "https://localhost/", "--compare", "iw10,rcp"],
            &["--compare", "`rcp` is not available over QUIC"],
        ),
        (&["get", "https://localhost/", "--certificates", garbage], &[garbage, "found no certificate"]),
        (&["get", "https://localhost/", "--connect", "127.0.0.1:0"], &["--connect", "1 to 65535"]),
        (
            &["get", "https://localhost/", "--receive-window", "0 B"],
            &["--receive-window", "found `0 B`, expected 1.2 kB at least"],
        ),
        (&["demo", "--rate", "0 Mbit/s"], &["--rate", "found 0"]),
        (&["demo", "--size", "0 B"], &["--size", "found 0 B"]),
        (&["demo", "--rtt", "100 s"], &["--rtt", "found 100 s"]),
        (&["page", "--rate", "0 Mbit/s", "--out", absent], &["--rate", "found 0"]),
        (&["page", "--schemes", "blitzstart", "--out", absent], &["--schemes", "found blitzstart", "hint"]),
        (&["page", garbage, "--shape", "news"], &["--shape", "cannot be used with"]),
        (&["page", "--page", "2"], &["<FILE>"]),
        (&["page", "--buffer", "100 B", "--out", absent], &["--buffer", "found 100 B", "a full packet"]),
        (&["page", "--loss", "100 %", "--out", absent], &["--loss", "found 100 %", "nothing would arrive"]),
        (&["link"], &["--udp ADDRESS:PORT", "command after `--`"]),
        (&["link", "--udp", "127.0.0.1"], &["--udp", "found `127.0.0.1`", one_listen]),
        (&["link", "--udp", "127.0.0.1:0"], &["--udp", "found `127.0.0.1:0`", "1 to 65535"]),
        (&["link", "--udp", one_listen, "--clients", "0"], &["--clients", "from 1"]),
        (&["link", "--udp", one_listen, "--idle", "0s"], &["--idle", "1 ms at least"]),
        (&["link", "--udp", one_listen, "--duration", "0s"], &["--duration", "1 ms at least"]),
        (&["show-link", garbage], &[garbage, "line 1", "found `garbage`", "expected a log"]),
        (&["reproduce", "nopaper"], &["found the paper `nopaper`", "halfback"]),
        (&["reproduce", "halfback", "--figure", "99"], &["--figure", "found `99`", "figure-6"]),
        (&["reproduce", "halfback", "--traces", absent], &["--traces", "no networks of traces"]),
    ] {
        assert_refused(arguments, expected);
    }
}

/// The numbers of a path by name, of which typed ones override theirs.
#[test]
fn a_demo_and_a_link_take_paths_by_name() {
    let demo =
        ["demo", "--path", "dsl", "--rtt", "10 ms", "--size", "5 kB", "--schemes", "iw10", "--repeats", "1"];
    let shown = headstart(&demo);
    let message = words(&shown.stdout);
    assert!(shown.status.success() && message.contains("1.5 Mbit/s, 10 ms round trip"), "{message}");
    let link = ["link", "--path", "geo", "--udp", "127.0.0.1:9", "--duration", "10 ms"];
    let shown = headstart(&link);
    assert!(shown.status.success(), "{}", words(&shown.stderr));
    assert_refused(&["link", "--path", "moon"], &["--path", "moon", "geo"]);
}

#[test]
fn an_option_without_effect_is_reported() {
    let link = |options: &'static str| format!("link --udp 127.0.0.1:9 --duration 10ms {options}");
    let demo = "demo --size 5kB --rtt 2ms --repeats 1 --schemes";
    for (line, message) in [
        (link("--mtu 900"), "--mtu has no effect with --udp"),
        (link("--reorder"), "--reorder has no effect without --jitter"),
        (link("--reorder --jitter 1ms"), ""),
        (link("--router-share 10%"), "--router-share has no effect without --routers share"),
        ("link --clients 3 -- true".to_owned(), "--clients has no effect without --udp"),
        (
            format!("{demo} iw10 --visit 2MB"),
            "--visit has no effect without a scheme that draws on a history",
        ),
        (format!("{demo} wise-start --visit 20kB"), ""),
        ("serve nowhere --scheme halfback --hint-cap 5mbit".to_owned(), "--hint-cap has no effect without"),
        ("serve nowhere --scheme headstart --hint-cap 5mbit".to_owned(), "--hint-cap has no effect without"),
        ("serve nowhere --scheme blitzstart --hint-cap 5mbit".to_owned(), ""),
        ("serve nowhere --scheme headstart --shortest-rtt 20ms".to_owned(), ""),
        ("serve nowhere --scheme iw10 --shortest-rtt 20ms".to_owned(), "--shortest-rtt has no effect with"),
        ("get https://localhost:1/ --0rtt".to_owned(), "--0rtt has no effect without --repeat"),
    ] {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let refusal = words(&headstart(&arguments).stderr);
        assert!(refusal.contains(message), "{line}: {refusal}");
        assert!(!message.is_empty() || !refusal.contains("has no effect"), "{line}: {refusal}");
    }
}

/// A UDP port that is most likely closed.
fn dead_port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.local_addr().expect("an address").port()
}

#[test]
fn a_closed_port_is_reported_at_once_and_a_silent_host_while_waiting() {
    let page = format!("https://127.0.0.1:{}/", dead_port());
    let begin = Instant::now();
    let refused = headstart(&["get", &page, "--timeout", "5 min"]);
    let message = words(&refused.stderr);
    assert_eq!((refused.status.code(), complaints(&message)), (Some(1), 1), "{message}");
    assert!(message.contains("connection refused at 127.0.0.1:"), "{message}");
    assert!(begin.elapsed() < Duration::from_secs(100), "{message}");

    let mute = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let page = format!("https://{}/", mute.local_addr().expect("an address"));
    let silent = headstart(&["get", &page, "--timeout", "4 s"]);
    let message = words(&silent.stderr);
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!((silent.status.code(), lines.len()), (Some(1), 2), "{message}");
    assert!(lines[0].contains("no answer from") && lines[0].contains("--timeout"), "{message}");
    assert!(lines[1].contains("in 4 s: expected a server of HTTP/3 there"), "{message}");
}

#[test]
fn an_abandoned_fetch_closes_its_connection() {
    let server = Server::start(&["--metrics", "127.0.0.1:0"]);
    let refused = headstart(&["get", &server.page("bytes/1"), "--insecure", "--compare", "iw10"]);
    assert!(words(&refused.stderr).contains("--allow-scheme-choice"), "{}", words(&refused.stderr));
    // A server that gets no close waits for half a minute.
    let deadline = Instant::now() + Duration::from_secs(20);
    let ended = || counted(&server, "headstart_connections_total{").lines().any(|line| line.ends_with(" 1"));
    while !ended() {
        assert!(Instant::now() < deadline, "the server still has the connection");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_error_page_does_not_count_as_a_page() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("page");
    let got =
        headstart(&["get", &server.page("nothing"), "--insecure", "-o", file.to_str().expect("a path")]);
    let message = words(&got.stderr);
    assert_eq!((got.status.code(), complaints(&message)), (Some(1), 1), "{message}");
    assert!(message.contains("/nothing: found status 404"), "{message}");
    assert!(words(&got.stdout).contains("404") && !file.exists(), "times are shown, nothing is written");
}

#[test]
fn a_page_is_written_to_standard_output_alone() {
    let server = Server::start(&[]);
    let got = headstart(&["get", &server.page("bytes/5000"), "--insecure", "-o", "-"]);
    assert_eq!((got.status.code(), got.stdout.len()), (Some(0), 5000), "{}", words(&got.stderr));
}

#[test]
fn an_untrusted_certificate_is_refused_with_a_remedy() {
    let server = Server::start(&[]);
    let home = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
    command.args(["get", &server.page("bytes/1")]).env("XDG_DATA_HOME", home.path());
    let refused = command.output().expect("the program runs");
    let message = words(&refused.stderr);
    assert_eq!((refused.status.code(), complaints(&message)), (Some(1), 1), "{message}");
    for part in ["certificate is not trusted", "UnknownIssuer", "--certificates FILE", "--insecure"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_port_in_use_is_reported_once() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let home = tempfile::tempdir().expect("a folder");
    let serve = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
        command.args(["serve", "--generate"]).args(options).env("XDG_DATA_HOME", home.path());
        let refused = command.output().expect("the program runs");
        (refused.status.code(), words(&refused.stderr))
    };
    let (code, message) = serve(&["--listen", &address]);
    assert_eq!((code, complaints(&message), message.matches("in use").count()), (Some(1), 1, 1), "{message}");
    assert!(message.contains(&format!("--listen {address}, TCP")), "{message}");
    assert!(message.contains("end that one, or choose another port"), "{message}");
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let (code, message) = serve(&["--listen", &address, "--no-tcp"]);
    assert_eq!((code, complaints(&message), message.matches("in use").count()), (Some(1), 1, 1), "{message}");
    assert!(message.contains(&format!("--listen {address}, UDP")), "{message}");
    // 192.0.2.0/24 is for documents (RFC 5737).
    let (code, message) = serve(&["--listen", "192.0.2.1:4433"]);
    assert_eq!((code, complaints(&message)), (Some(1), 1), "{message}");
    assert!(message.contains("no network interface of this machine has that address"), "{message}");
}

#[test]
fn the_demonstration_measures_times_above_the_minimum_rtt() {
    let options =
        ["demo", "--schemes", "iw10,s-cubic", "--repeats", "1", "--rtt", "40 ms", "--format", "csv"];
    let shown = headstart(&options);
    assert!(shown.status.success(), "{}", words(&shown.stderr));
    let table = words(&shown.stdout);
    let mut rows = csv::Reader::from_reader(table.as_bytes());
    let heads = rows.headers().expect("a header").clone();
    let complete = heads.iter().position(|name| name.starts_with("complete")).expect("a column of times");
    let rows: Vec<csv::StringRecord> = rows.records().collect::<Result<_, _>>().expect("rows");
    let names: Vec<&str> = rows.iter().filter_map(|row| row.get(0)).collect();
    assert_eq!(names, ["iw10", "s-cubic"]);
    for row in &rows {
        let time: f64 = row[complete].parse().expect("a number");
        // Two round trips, and 100 kB at 25 Mbit/s.
        assert!(time >= 2.0 * 40.0 + 32.0, "{}: {time} ms", &row[0]);
    }
}

/// A page with three hosts in a browser: every object arrives whole over HTTP/3, each host has a
/// connection, and the files are written.
#[test]
fn a_page_loads_in_a_browser_and_its_numbers_are_written() {
    if headstart_field::page::browser::find_browser().is_none() {
        return not_run("there is no Chromium (Debian: chromium)");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("page");
    let options = ["--rate", "50 Mbit/s", "--up-rate", "50 Mbit/s", "--rtt", "10 ms", "--repeats", "1"];
    let line = [&["page", "--format", "json", "--out", out.to_str().expect("text")][..], &options].concat();
    let shown = headstart(&line);
    assert!(shown.status.success(), "{}", words(&shown.stderr));
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
    let rows = json(&words(&shown.stdout))["rows"].clone();
    let names: Vec<_> = rows
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| (row["scheme"].clone(), row["visit"].clone()))
        .collect();
    let expected =
        [("iw10", "cold"), ("iw10", "returning"), ("headstart", "cold"), ("headstart", "returning")];
    assert_eq!(names, expected.map(|(scheme, visit)| (scheme.into(), visit.into())));
    let read = |name: &str| std::fs::read_to_string(out.join(name)).expect(name);
    for sample in json(&read("visits.json")).as_array().expect("samples") {
        let visit = &sample["visits"][0];
        let addresses = [&visit["arrivals"][1]["address"], &sample["filmed"]["arrivals"][0]["address"]];
        assert_eq!(addresses, ["https://o1.search.example/1/0", "https://o0.search.example/0/0"]);
        assert_eq!(
            (visit["connections"].as_u64(), visit["arrivals"].as_array().map(Vec::len)),
            (Some(3), Some(12))
        );
        let time = |name: &str| visit[name].as_f64().expect(name);
        let sum: u64 = visit["arrivals"]
            .as_array()
            .expect("objects")
            .iter()
            .filter_map(|one| one["bytes"].as_u64())
            .sum();
        assert!(visit["carried"].as_u64() > Some(sum) && sum > 300_000, "{visit}");
        assert!(
            time("first_paint_ms") > 0.0 && time("largest_paint_ms") >= time("first_paint_ms"),
            "{visit}"
        );
        assert!(time("above_fold_ms") <= time("complete_ms") && time("load_event_ms") > 0.0, "{visit}");
    }
    assert_eq!(read("page.csv").lines().count(), 5);
    let report = read("report.html");
    assert!(report.contains("headstart, returning") && report.contains("to its first byte"));
    let film = report.split("class=\"wide film\"").nth(1).expect("a film");
    // An empty page, its text, its pictures: three for each of four visits, at least two seen.
    assert!(
        film.matches("data:image/jpeg;base64,").count() >= 4 && film.matches("<th>headstart, ").count() == 2
    );
    assert!(report.len() < 500_000, "{} bytes", report.len());
    let har = out.join("page.har");
    let race = headstart(&[
        "race",
        "--har",
        har.to_str().expect("text"),
        "--duration",
        "5s",
        "--repeats",
        "1",
        "--schemes",
        "iw10",
        "--out",
        out.join("race").to_str().expect("text"),
    ]);
    assert!(race.status.success(), "{}", words(&race.stderr));
}

/// Over the kernel's TCP every object arrives whole too, by the version of HTTP that was asked for.
#[test]
fn a_page_loads_over_tcp_from_a_namespace() {
    if headstart_field::page::browser::find_browser().is_none() {
        return not_run("there is no Chromium (Debian: chromium)");
    }
    loads_over_each_version("chromium");
}

/// In Firefox every object arrives whole over each version of HTTP.
#[test]
fn a_page_loads_in_firefox() {
    if Command::new("firefox-esr").arg("--version").output().is_err() {
        return not_run("there is no Firefox (Debian: firefox-esr)");
    }
    loads_over_each_version("firefox-esr");
}

fn loads_over_each_version(browser: &str) {
    if !headstart_emu::namespace::is_privileged() {
        return not_run("it needs root");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("page");
    let options = ["--rate", "50 Mbit/s", "--up-rate", "50 Mbit/s", "--rtt", "10 ms", "--repeats", "1"];
    let browser = ["page", "--browser", browser, "--schemes", "iw10"];
    let line = ["--http", "h3,h2,h1", "--out", out.to_str().expect("text")];
    let shown = headstart(&[&browser[..], &line, &options].concat());
    assert!(shown.status.success(), "{}", words(&shown.stderr));
    let visits = std::fs::read_to_string(out.join("visits.json")).expect("visits.json");
    let samples: Vec<serde_json::Value> = serde_json::from_str(&visits).expect("samples");
    let protocols = samples.iter().map(|sample| sample["visits"][0]["arrivals"][5]["protocol"].clone());
    assert_eq!(protocols.collect::<Vec<_>>(), ["h3", "h3", "h2", "h2", "http/1.1", "http/1.1"]);
    for sample in samples {
        let is_quic = sample["scheme"] == "iw10";
        let visit = &sample["visits"][0];
        assert!(
            visit["connections"].as_u64() >= Some(3) && visit["carried"].as_u64() > Some(366_000),
            "{visit}"
        );
        assert!(visit["carried"].as_u64() < Some(450_000), "{visit}");
        assert_eq!(sample["simulated_ms"].is_null(), !is_quic);
        // Firefox opens another where the first is slow to come.
        assert!(!is_quic || visit["connections"].as_u64() <= Some(4), "one of each host: {visit}");
        assert!(visit["first_paint_ms"].as_f64() > Some(0.0), "{visit}");
    }
}

/// A browser that ends at once, one that is none, and none at all.
#[test]
fn a_page_without_its_browser_is_refused_or_not_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |browser: &[&str], path: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
        command.args(["page", "--repeats", "1", "--schemes", "iw10", "--out", "out"]).args(browser);
        let shown = command.current_dir(folder.path()).env("PATH", path).output().expect("the program runs");
        (shown.status.code(), words(&shown.stderr))
    };
    let path = std::env::var("PATH").unwrap_or_default();
    let (code, message) = run(&[], "/nowhere");
    assert!(code == Some(2) && message.contains("NOT RUN: found no Chromium in $PATH"), "{message}");
    for (browser, found) in [("./absent", "cannot start it"), ("true", "found no Chromium")] {
        let (code, message) = run(&["--browser", browser], &path);
        assert!(code == Some(2) && message.contains(&format!("--browser {browser}: {found}")), "{message}");
    }
    let script = folder.path().join("browser");
    for (last, found) in
        [("echo gone >&2", "loaded: gone"), ("exec sleep 60", "the page was not complete in 1s")]
    {
        std::fs::write(
            &script,
            format!("#!/bin/sh\ncase $1 in --version) echo Chromium 0; exit ;; esac\n{last}\n"),
        )
        .expect("a file");
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("a program");
        let (code, message) = run(&["--browser", "./browser", "--timeout", "1s"], &path);
        assert!(code == Some(1) && message.contains("iw10, cold") && message.contains(found), "{message}");
    }
    assert!(!folder.path().join("out/report.html").exists(), "nothing is written half");
    // Stopped by a service manager, it leaves neither the browser nor its profile. Killed, it can
    // do nothing more: its browser sees the end of its commands.
    let temporary = folder.path().join("temporary");
    std::fs::create_dir(&temporary).expect("a folder");
    std::fs::write(
        &script,
        "#!/bin/sh\ncase $1 in --version) echo Chromium 0; exit ;; esac\ntouch begun\ncat <&3 >&4\ntouch ended\n",
    )
    .expect("a file");
    let [begun, end] = ["begun", "ended"].map(|name| folder.path().join(name));
    let await_file = |file: &std::path::Path| {
        let since = Instant::now();
        while !file.exists() && since.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(file.exists(), "{}", file.display());
    };
    let stop = |signal: &str| {
        let _ = std::fs::remove_file(&begun);
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
        command.args([
            "page",
            "--repeats",
            "1",
            "--schemes",
            "iw10",
            "--out",
            "out",
            "--browser",
            "./browser",
        ]);
        command.current_dir(folder.path()).env("TMPDIR", &temporary).stderr(std::process::Stdio::piped());
        let running = command.spawn().expect("the program runs");
        await_file(&begun);
        let sent = Command::new("kill").args([signal, &running.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()));
        let ended = running.wait_with_output().expect("it ends");
        assert!(!ended.status.success());
        words(&ended.stderr)
    };
    let message = stop("-TERM");
    assert!(message.contains("stopped: nothing is kept"), "{message}");
    assert_eq!(std::fs::read_dir(&temporary).expect("a folder").count(), 0, "{message}");
    assert!(!end.exists(), "it was ended");
    stop("-KILL");
    await_file(&end);
    // Firefox has no commands: the shell that began it sees their end.
    std::fs::write(
        &script,
        "#!/bin/sh\ncase $1 in --version) echo Mozilla Firefox 0; exit ;; esac\necho $$ >number\nmv number begun\nexec sleep 60\n",
    )
    .expect("a file");
    stop("-KILL");
    let number = std::fs::read_to_string(&begun).expect("a process");
    let words_of = || std::fs::read(format!("/proc/{}/cmdline", number.trim())).unwrap_or_default();
    let since = Instant::now();
    while !words_of().is_empty() {
        assert!(since.elapsed() < Duration::from_secs(20), "process {number} goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
}
