//! The kernel's TCP through the emulator against our TCP model through the simulator, on the same paths.
//!
//! Without words: a short form with bands that fail. With `--full FILE`: every path, size and controller, as a Markdown table.
//! With `--against OLD NEW`: the kernel's side is read from such a table, the model's is run anew: seconds instead of a quarter of an hour.
//! Needs root or user namespaces; where there are none it says that it was not run.
//!
//! What is measured, the same way on both sides: completion is from the client's SYN to the last payload byte leaving the path
//! towards it; drops are those of the bottleneck's buffer; the peak queue is the most packets that waited before it; slow start
//! ends when the sender's ssthresh is set, which the kernel is asked every few milliseconds (`ss -ti`).

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use headstart::experiment::settings::Settings;
use headstart::options::SchemeName;
use headstart::runner;
use headstart::show::flow::phases;
use headstart_emu::{namespace, relay};

const PORT: u16 = 8000;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["send", controller, bytes, file] => send(controller, bytes.parse().expect("a number"), file),
        ["receive"] => receive(),
        ["--full", file] => return full(Some(file), 3),
        ["--once", file] => return full(Some(file), 1),
        ["--against", old, new] => return against(old, new),
        _ => return short(),
    }
    ExitCode::SUCCESS
}

// --- the kernel's side ----------------------------------------------------------------------------

/// Sends so many bytes to whoever connects, by that controller; says when ssthresh was set.
fn send(controller: &str, bytes: usize, file: &str) {
    relay::prepare_thread(relay::Urgency::End);
    let listener = TcpListener::bind(("0.0.0.0", PORT)).expect("a free port");
    socket2::SockRef::from(&listener).set_tcp_congestion(controller.as_bytes()).expect("a known controller");
    let (mut stream, _) = listener.accept().expect("a client");
    let is_over = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&is_over);
    let file = file.to_owned();
    let watcher = std::thread::spawn(move || {
        if let Some(nanos) = watch(&asked) {
            std::fs::write(file, nanos.to_string()).expect("a file");
        }
    });
    stream.write_all(&vec![7; bytes]).expect("sent");
    stream.shutdown(std::net::Shutdown::Write).expect("done");
    let _ = stream.read(&mut [0]);
    is_over.store(true, Ordering::Release);
    watcher.join().expect("it watches to the end");
}

/// Asks the kernel for the sender's ssthresh until it has one; when that was, in nanoseconds after 1970.
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
fn receive() {
    relay::prepare_thread(relay::Urgency::End);
    // A setting of this namespace only.
    std::fs::write("/proc/sys/net/ipv4/tcp_rmem", "4096 8000000 16000000").expect("root of its own network");
    let outside = std::env::var(namespace::OUTSIDE).expect("set by the link");
    let mut stream = TcpStream::connect((outside.as_str(), PORT)).expect("a server");
    // It asks nothing: its question would be acknowledged by a packet that the model puts into the first data packet.
    let mut buffer = vec![0; 1 << 18];
    while stream.read(&mut buffer).expect("data") > 0 {}
}

/// What is compared.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    completion_ms: f64,
    drops: u64,
    peak_queue: u64,
    exit_ms: Option<f64>,
    is_valid: bool,
}

fn kernel(path: &str, controller: &str, bytes: u64, seed: u64) -> Result<Found, String> {
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
    // What has arrived: begin and end of each piece of the stream.
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

/// How far the stream is complete.
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

// --- the model's side -----------------------------------------------------------------------------

/// What of the model stands for each controller of the kernel.
fn model_of(controller: &str) -> (&'static str, &'static str) {
    match controller {
        "cubic" => ("iw10-linux", "--base cubic-linux"),
        "bbr" => ("bbr", "--base cubic --pacing linux"),
        _ => ("iw10", "--base reno"),
    }
}

fn model(path: &str, controller: &str, bytes: u64, seed: u64) -> Result<Found, String> {
    let (scheme, base) = model_of(controller);
    let line = format!(
        "{path} {base} --acks linux-growing --receive-window 4MB --opener receiver --size {bytes}B --duration 100s --seed {seed}"
    );
    let setup = Settings::parse(line.split_whitespace()).map_err(|error| format!("{error:#}"))?;
    let entry = scheme.parse::<SchemeName>()?.0;
    let (view, dropped) = runner::run_alone_counted(&setup, entry).map_err(|error| error.to_string())?;
    let report = view.report.ok_or("no flow")?;
    let completion = report.completion_time().ok_or("the model's flow did not complete")?;
    let phases = phases(&view);
    let first = phases.first().map(|phase| phase.1);
    let exit = phases.iter().find(|phase| Some(phase.1) != first);
    Ok(Found {
        completion_ms: completion.as_millis_f64(),
        drops: dropped,
        peak_queue: view.queue.iter().map(|(_, packets, _)| *packets).max().unwrap_or(0),
        exit_ms: exit.map(|phase| phase.0),
        is_valid: true,
    })
}

// --- the comparison -------------------------------------------------------------------------------

const PATHS: [&str; 8] = [
    "--rate 25mbit --rtt 50ms --buffer 104p",
    "--rate 50mbit --rtt 50ms --buffer 208p",
    "--rate 8mbit --rtt 90ms --buffer 140p",
    "--rate 32mbit --rtt 70ms --buffer 560p",
    "--rate 10mbit --rtt 40ms --buffer 20p",
    "--rate 100mbit --rtt 20ms --buffer 100p",
    "--rate 15mbit --rtt 60ms --buffer 115kB",
    "--rate 25mbit --rtt 50ms --buffer 104p --loss 0.5%",
];
const SIZES: [u64; 3] = [100_000, 2_000_000, 10_000_000];
const CONTROLLERS: [&str; 3] = ["reno", "cubic", "bbr"];

/// Within 3 %.
fn completion_agrees(kernel: Found, model: Found) -> bool {
    (kernel.completion_ms - model.completion_ms).abs() <= 0.03 * kernel.completion_ms
}

/// Within 10 % or five packets.
fn packets_agree(kernel: u64, model: u64) -> bool {
    let (kernel, model) = (kernel as f64, model as f64);
    (kernel - model).abs() <= (0.1 * kernel).max(5.0)
}

/// Within 10 %, or what the kernel's clock of asking cannot tell apart. What ends when everything has arrived already is no end that
/// the kernel could be asked for: its socket may be closed.
fn exits_agree(kernel: Found, model: Found) -> bool {
    let in_time = |found: Found| found.exit_ms.filter(|exit| *exit <= found.completion_ms);
    match (in_time(kernel), in_time(model)) {
        (Some(kernel), Some(model)) => (kernel - model).abs() <= (0.1 * kernel).max(8.0),
        (None, None) => true,
        _ => false,
    }
}

fn cannot_run() -> Option<&'static str> {
    if !std::path::Path::new("/dev/net/tun").exists() {
        return Some("there is no /dev/net/tun");
    }
    let works =
        || Command::new("unshare").args(["-rn", "true"]).status().is_ok_and(|status| status.success());
    (!namespace::is_privileged() && !works()).then_some("it needs root or user namespaces")
}

/// The run of the middle completion time of several, of those in which the machine kept real time if there are any.
fn middle(path: &str, controller: &str, bytes: u64, repeats: u64) -> Result<Found, String> {
    let runs = (0..repeats).map(|_| kernel(path, controller, bytes, 1));
    let mut runs = runs.collect::<Result<Vec<_>, _>>()?;
    if runs.iter().any(|run| run.is_valid) {
        runs.retain(|run| run.is_valid);
    }
    runs.sort_by(|a, b| a.completion_ms.total_cmp(&b.completion_ms));
    runs.get(runs.len() / 2).copied().ok_or_else(|| "no run".to_owned())
}

fn full(file: Option<&str>, repeats: u64) -> ExitCode {
    if let Some(reason) = cannot_run() {
        println!("agreement: NOT RUN, could not run here: {reason}");
        return ExitCode::FAILURE;
    }
    let mut table = Table::default();
    for controller in CONTROLLERS {
        for path in PATHS {
            for bytes in SIZES {
                match (middle(path, controller, bytes, repeats), model(path, controller, bytes, 1)) {
                    (Ok(kernel), Ok(model)) => table.row(controller, path, bytes, kernel, model),
                    (Err(error), _) | (_, Err(error)) => {
                        println!("agreement: {controller} {path} {bytes}: {error}");
                    }
                }
            }
        }
    }
    table.write(file)
}

/// The kernel's side of an earlier table beside the model as it is now.
fn against(old: &str, new: &str) -> ExitCode {
    let text = std::fs::read_to_string(old).expect("a table");
    let mut table = Table::default();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, controller, path, size, completion, _, drops, _, queue, _, exit, _, real_time, _] = cells[..]
        else {
            continue;
        };
        let first = |cell: &str| cell.split(',').next().and_then(|number| number.parse::<f64>().ok());
        let Some(completion_ms) = first(completion) else { continue };
        let bytes = size.trim_end_matches(" kB").parse::<u64>().expect("a size") * 1000;
        let path =
            PATHS.iter().find(|known| known.replace("--", "") == path.trim_matches('`')).expect("a path");
        let kernel = Found {
            completion_ms,
            drops: first(drops).expect("a count") as u64,
            peak_queue: first(queue).expect("a count") as u64,
            exit_ms: first(exit),
            is_valid: real_time == "kept",
        };
        match model(path, controller, bytes, 1) {
            Ok(model) => table.row(controller, path, bytes, kernel, model),
            Err(error) => println!("agreement: {controller} {path} {bytes}: {error}"),
        }
    }
    table.write(Some(new))
}

/// The comparison as Markdown.
#[derive(Default)]
struct Table {
    rows: String,
    agree: [usize; 4],
    count: usize,
}

impl Table {
    fn row(&mut self, controller: &str, path: &str, bytes: u64, kernel: Found, model: Found) {
        self.count += 1;
        // BBR has no slow start that ends with a threshold.
        let has_exit = controller != "bbr";
        let verdicts = [
            completion_agrees(kernel, model),
            packets_agree(kernel.drops, model.drops),
            packets_agree(kernel.peak_queue, model.peak_queue),
            !has_exit || exits_agree(kernel, model),
        ];
        let marks = verdicts.map(|agrees| if agrees { "" } else { "**differs**" });
        for (total, agrees) in self.agree.iter_mut().zip(verdicts) {
            *total += usize::from(agrees);
        }
        let ms =
            |time: Option<f64>| time.filter(|_| has_exit).map_or("-".to_owned(), |time| format!("{time:.0}"));
        let percent = 100.0 * (model.completion_ms / kernel.completion_ms - 1.0);
        let row = format!(
            "| {controller} | `{}` | {} kB | {:.1}, {:.1} ({percent:+.1} %) | {} | {}, {} | {} | {}, {} | {} | {}, {} | {} | {} |\n",
            path.replace("--", ""),
            bytes / 1000,
            kernel.completion_ms,
            model.completion_ms,
            marks[0],
            kernel.drops,
            model.drops,
            marks[1],
            kernel.peak_queue,
            model.peak_queue,
            marks[2],
            ms(kernel.exit_ms),
            ms(model.exit_ms),
            marks[3],
            if kernel.is_valid { "kept" } else { "not kept" },
        );
        print!("{row}");
        self.rows += &row;
    }

    fn write(&self, file: Option<&str>) -> ExitCode {
        let line = format!(
            "\nOf {} comparisons {} agree in completion, {} in drops, {} in the peak queue, {} in the end of slow start.\n",
            self.count, self.agree[0], self.agree[1], self.agree[2], self.agree[3]
        );
        print!("{line}");
        let text = format!("{HEAD}{}{line}", self.rows);
        if let Some(file) = file
            && let Err(error) = std::fs::write(file, text)
        {
            println!("agreement: {file}: {error}");
            return ExitCode::FAILURE;
        }
        ExitCode::SUCCESS
    }
}

const HEAD: &str = "| controller | path | size | completion (ms): kernel, model | | drops: kernel, model | | peak queue: kernel, model | | \
     slow-start exit (ms): kernel, model | | real time |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n";

/// The short form: what is known to agree, and must go on to.
fn short() -> ExitCode {
    if let Some(reason) = cannot_run() {
        println!("agreement: NOT RUN, could not run here: {reason}");
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for (controller, path, bytes) in [
        ("reno", PATHS[0], 100_000),
        ("reno", PATHS[0], 2_000_000),
        ("cubic", PATHS[0], 2_000_000),
        ("cubic", PATHS[3], 2_000_000),
        ("bbr", PATHS[0], 2_000_000),
    ] {
        match (middle(path, controller, bytes, 3), model(path, controller, bytes, 1)) {
            (Ok(kernel), Ok(model)) if !kernel.is_valid => {
                println!(
                    "agreement: {controller}, {path}, {bytes} B ... NOT RUN, the machine did not keep real time: {kernel:?}, {model:?}"
                );
            }
            (Ok(kernel), Ok(model)) => {
                let agrees = completion_agrees(kernel, model)
                    && packets_agree(kernel.drops, model.drops)
                    && packets_agree(kernel.peak_queue, model.peak_queue);
                failed += i32::from(!agrees);
                let verdict = if agrees { "ok" } else { "FAILED" };
                println!(
                    "agreement: {controller}, {path}, {bytes} B ... {verdict}: kernel {kernel:?}, model {model:?}"
                );
            }
            (Err(error), _) | (_, Err(error)) => {
                failed += 1;
                println!("agreement: {controller}, {path}, {bytes} B ... FAILED: {error}");
            }
        }
    }
    if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
