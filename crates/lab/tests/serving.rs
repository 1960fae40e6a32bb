//! The commands that serve, fetch and demonstrate, as people run them.

#![expect(clippy::disallowed_methods, reason = "real processes, real time")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use headstart_downlink::clock::unix_now;
use headstart_downlink::{Machine, Network, Past};
use headstart_startup::prior::Access;

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
    /// Where it counts, if it was asked to.
    counters: Option<String>,
    _home: tempfile::TempDir,
    /// What it says later must find somebody: it would not survive a closed pipe.
    _told: BufReader<ChildStderr>,
}

impl Server {
    fn start(options: &[&str]) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let mut child = Command::new(env!("CARGO_BIN_EXE_headstart"))
            .args(["serve", "--generate", "--listen", "127.0.0.1:0"])
            .args(options)
            .env("XDG_DATA_HOME", home.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut told = BufReader::new(child.stderr.take().expect("its standard error"));
        let mut counters = None;
        let mut lines = told.by_ref().lines().map_while(Result::ok);
        let is_address = |line: &String| {
            let found = line.split_once("http://").and_then(|(_, rest)| rest.strip_suffix("/metrics"));
            counters = found.map(str::to_owned).or_else(|| counters.take());
            line.contains("https://")
        };
        let line = lines.find(is_address).expect("it says where it listens");
        let begin = line.find("https://").expect("an address");
        let url = line[begin..].split(',').next().expect("an address").to_owned();
        Self { child, url, counters, _home: home, _told: told }
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
fn a_page_is_served_and_fetched_with_its_times() {
    let server = Server::start(&[]);
    let page = server.page("bytes/120000");
    let got = headstart(&["get", &page, "--insecure", "--repeat", "2", "--format", "csv"]);
    assert!(got.status.success(), "{}", words(&got.stderr));
    let lines: Vec<String> = words(&got.stdout).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].starts_with("scheme,round,url,status,bytes,handshake_ms"), "{lines:?}");
    assert!(lines[1..].iter().all(|line| line.contains(",200,120000,")), "{lines:?}");
}

/// What the server has counted of that kind so far.
fn counted(server: &Server, kind: &str) -> String {
    let mut stream = TcpStream::connect(server.counters.as_ref().expect("counters")).expect("answers");
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("asked");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("told");
    text.lines().filter(|line| line.contains(kind)).collect::<Vec<_>>().join("\n")
}

/// From what was once seen on this network to the hint, to the server's first flight, and back to what is remembered.
#[test]
fn a_hint_is_found_told_believed_and_bettered() {
    let server = Server::start(&["--scheme", "blitzstart", "--metrics", "127.0.0.1:0"]);
    let state = tempfile::tempdir().expect("a folder");
    let get = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstart"));
        let page = server.page("bytes/2000000");
        command.args(["get", &page, "--insecure", "--hint", "auto", "--format", "csv"]);
        command.env("XDG_STATE_HOME", state.path()).output().expect("the program runs")
    };
    let Some(network) = Network::find(&Machine::default()) else {
        // Nobody to ask: it says so, and fetches all the same.
        let got = get();
        assert!(got.status.success(), "{}", words(&got.stderr));
        assert!(words(&got.stderr).contains("no hint"), "{}", words(&got.stderr));
        println!("NOT RUN: this machine has no default route, so no network whose rate could be known");
        return;
    };
    let past = Past::new(state.path().join("headstart/networks.json"));
    let seen = "2 Mbit/s".parse().expect("a rate");
    past.observe(&network.key(), seen, Access::Dsl, unix_now()).expect("written");
    let got = get();
    assert!(got.status.success(), "{}", words(&got.stderr));
    assert!(words(&got.stderr).contains("hint: 2 Mbit/s, dsl"), "{}", words(&got.stderr));
    let deadline = Instant::now() + Duration::from_secs(60);
    while !counted(&server, "source=\"hint\"").contains(" 1") {
        assert!(Instant::now() < deadline, "{}", counted(&server, "source="));
        std::thread::sleep(Duration::from_millis(20));
    }
    // Over loopback it is faster than that, however busy the machine, and is remembered so.
    let best = past.best(&network.key(), unix_now()).expect("read").expect("an entry");
    assert!(best.rate > seen, "{}", best.rate);
    assert_eq!(best.access, Access::Dsl);
}

#[test]
fn a_comparison_needs_a_server_that_lets_its_clients_choose() {
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

#[test]
fn what_cannot_be_is_refused_with_one_message() {
    for (arguments, expected) in [
        (&["serve", ".", "--scheme", "rcp"][..], "`rcp` is not carried by QUIC"),
        (&["serve", ".", "--scheme", "quick-start"], "`quick-start` is not carried by QUIC"),
        (&["serve", ".", "--scheme", "pcp"], "`pcp` is not carried by QUIC"),
        (&["serve", ".", "--scheme", "tahoe"], "unknown scheme `tahoe`"),
        (&["serve", "no-such-folder"], "no-such-folder"),
        (&["serve"], "FOLDER"),
        (&["serve", ".", "--rollout", "101 %"], "--rollout"),
        (&["get", "http://localhost/"], "expected a URL such as https://"),
        (&["get", "https://localhost/", "https://example.org/"], "expected pages of one server"),
        (&["get", "https://localhost/", "--hint", "fast"], "--hint"),
        (&["demo", "--rate", "0 Mbit/s"], "--rate"),
    ] {
        let refused = headstart(arguments);
        assert!(!refused.status.success(), "{arguments:?}");
        let told = words(&refused.stderr);
        assert!(told.contains(expected), "{arguments:?}: {told}");
    }
}

#[test]
fn the_demonstration_measures_and_no_scheme_is_faster_than_light() {
    let options = ["demo", "--schemes", "iw10,s-cubic", "--repeats", "1", "--rtt", "40 ms", "--csv"];
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
