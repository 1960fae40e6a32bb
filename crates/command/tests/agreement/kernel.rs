//! The kernel's side: its TCP sends through `headstart link`, measured by the log and `ss -ti`.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use headstart_emu::{namespace, relay};

use crate::compare::{Case, Found};

const PORT: u16 = 8000;

/// Sends so many bytes to each client, by that controller; prints when ssthresh was set.
pub fn send(controller: &str, bytes: usize, file: &str) {
    relay::prepare_thread(relay::Urgency::End);
    let listener = TcpListener::bind(("0.0.0.0", PORT)).expect("a free port");
    socket2::SockRef::from(&listener).set_tcp_congestion(controller.as_bytes()).expect("a known controller");
    let (mut stream, _) = listener.accept().expect("a client");
    let is_over = Arc::new(AtomicBool::new(false));
    let stops = Arc::clone(&is_over);
    let file = file.to_owned();
    let watcher = std::thread::spawn(move || {
        if let Some(nanos) = watch(&stops) {
            std::fs::write(file, nanos.to_string()).expect("a file");
        }
    });
    stream.write_all(&vec![7; bytes]).expect("sent");
    stream.shutdown(std::net::Shutdown::Write).expect("done");
    let _ = stream.read(&mut [0]);
    is_over.store(true, Ordering::Release);
    watcher.join().expect("it watches to the end");
}

/// Samples the sender's ssthresh until it is set; returns that time, in nanoseconds after 1970.
fn watch(is_over: &AtomicBool) -> Option<u128> {
    while !is_over.load(Ordering::Acquire) {
        let output = Command::new("ss").args(["-tinH", "state", "connected"]).output().ok()?;
        #[expect(clippy::disallowed_methods, reason = "it is held against the beginning of the relay's log")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_nanos();
        if String::from_utf8_lossy(&output.stdout).contains(" ssthresh:") {
            return Some(now);
        }
        std::thread::park_timeout(Duration::from_millis(3));
    }
    None
}

/// Connects and reads to the end. Its window is wide open from the beginning, as the model's.
pub fn receive() {
    relay::prepare_thread(relay::Urgency::End);
    // A setting of this namespace only.
    std::fs::write("/proc/sys/net/ipv4/tcp_rmem", "4096 8000000 16000000").expect("root of its own network");
    let outside = std::env::var(namespace::OUTSIDE).expect("set by the link");
    let mut stream = TcpStream::connect((outside.as_str(), PORT)).expect("a server");
    // It sends no request: its ack would be a packet; the model's is in the first data packet.
    let mut buffer = vec![0; 1 << 18];
    while stream.read(&mut buffer).expect("data") > 0 {}
}

pub fn run(case: &Case, seed: u64) -> Result<Found, String> {
    let Case { controller, path, bytes } = *case;
    let folder = std::env::temp_dir();
    let name = |what: &str| folder.join(format!("headstart-agreement-{}-{what}", std::process::id()));
    let (log, exit) = (name("log"), name("exit"));
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let server = format!("exec {} send {controller} {bytes} {}", this.display(), exit.display());
    let output = Command::new(env!("CARGO_BIN_EXE_headstart"))
        .arg("link")
        .args(path.split_whitespace())
        .args(["--strict", "--seed", &seed.to_string(), "--log"])
        .arg(&log)
        .args(["--serve", &server, "--"])
        .arg(&this)
        .arg("receive")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let summary = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    if !matches!(code, Some(0 | 3)) {
        return Err(format!("{path}, {controller}, {bytes}: {}: {summary}", output.status));
    }
    let text = std::fs::read_to_string(&log).map_err(|error| error.to_string())?;
    let exit_text = std::fs::read_to_string(&exit).unwrap_or_default();
    for file in [&log, &exit] {
        let _ = std::fs::remove_file(file);
    }
    let mut found = read_log(&text, bytes, exit_text.parse().ok())?;
    found.is_valid = code == Some(0);
    Ok(found)
}

/// Reads the relay's log; data comes down.
fn read_log(text: &str, bytes: u64, exit_at: Option<u128>) -> Result<Found, String> {
    let began = text.lines().find_map(|line| line.strip_prefix("# began: ")?.split(' ').next());
    let began: u128 =
        began.and_then(|text| text.replace('.', "").parse().ok()).ok_or("the log has no date")?;
    let mut found = Found::default();
    let mut opened: Option<u64> = None;
    let mut first_sequence: Option<u32> = None;
    let mut under_way: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    // Received data: begin and end of each piece of the stream.
    let mut pieces: BTreeMap<u64, u64> = BTreeMap::new();
    let mut completed: Option<u64> = None;
    for line in text.lines().filter(|line| !line.starts_with('#')).skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
        let (Some(at), Some(packet)) = (number(0), number(3)) else { continue };
        match (fields[1], fields[2]) {
            ("up", "arrival") if fields[12].contains('S') => opened = opened.or(Some(at)),
            ("down", "arrival") => {
                found.peak_queue = found.peak_queue.max(number(5).unwrap_or(0));
                let sequence = number(13).unwrap_or(0) as u32;
                if fields[12].contains('S') {
                    first_sequence = Some(sequence.wrapping_add(1));
                } else if let (Some(first), Some(payload @ 1..)) = (first_sequence, number(14)) {
                    let offset = u64::from(sequence.wrapping_sub(first));
                    under_way.insert(packet, (offset, offset + payload));
                }
            }
            ("down", "drop") => {
                under_way.remove(&packet);
                found.drops += u64::from(fields[8] == "queue full");
            }
            ("down", "departure") => {
                if let Some((begin, end)) = under_way.remove(&packet) {
                    let known = pieces.entry(begin).or_insert(end);
                    *known = end.max(*known);
                    if completed.is_none() && reaches(&pieces) >= bytes {
                        completed = Some(at);
                    }
                }
            }
            _ => {}
        }
    }
    let (opened, completed) = opened.zip(completed).ok_or("the transfer did not complete")?;
    found.completion_ms = (completed - opened) as f64 / 1e6;
    let exit = exit_at.and_then(|nanos| nanos.checked_sub(began + u128::from(opened)));
    found.exit_ms = exit.map(|nanos| nanos as f64 / 1e6);
    Ok(found)
}

/// Offset up to which the stream is complete.
fn reaches(pieces: &BTreeMap<u64, u64>) -> u64 {
    let mut reached = 0;
    for (begin, end) in pieces {
        if *begin > reached {
            break;
        }
        reached = reached.max(*end);
    }
    reached
}

/// Why there can be no real packets here; `None` if there can.
pub fn cannot_run() -> Option<&'static str> {
    if !std::path::Path::new("/dev/net/tun").exists() {
        return Some("there is no /dev/net/tun");
    }
    let works =
        || Command::new("unshare").args(["-rn", "true"]).status().is_ok_and(|status| status.success());
    (!namespace::is_privileged() && !works()).then_some("it needs root or user namespaces")
}

/// True if this kernel has that controller. One that is restricted is found out when it is chosen.
pub fn knows(controller: &str) -> bool {
    use socket2::{Domain, Socket, Type};
    let chosen = Socket::new(Domain::IPV4, Type::STREAM, None)
        .and_then(|socket| socket.set_tcp_congestion(controller.as_bytes()));
    !chosen.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}
