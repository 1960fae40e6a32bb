//! A process that writes is killed again and again; what it leaves has no torn record and nothing
//! older than what it had flushed. This program runs itself as that process.

mod common;

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use common::{number, peer, record, visit};
use headstart_store::{History, Options};

/// Peers that the process writes in turn; more than the table holds: slots are freed and taken.
const PEERS: u64 = 300;
const CAPACITY: usize = 250;
const ROUNDS: u64 = 60;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("write") => write(Path::new(&arguments[2]), arguments[3].parse().expect("a number"), true),
        Some("write-unasked") => write(Path::new(&arguments[2]), 0, false),
        // `cargo test` asks every test program for its list.
        Some("--list") => {}
        _ => {
            killed_at_any_moment();
            killed_without_having_flushed();
        }
    }
}

fn options() -> Options {
    Options { capacity: CAPACITY, sync: false, ..Options::default() }
}

/// Writes without end; prints which number is in the file for certain or, unasked, the current one.
fn write(path: &Path, from: u64, flushing: bool) {
    let (history, loaded) = History::open(path, options()).expect("a history");
    assert_eq!(loaded.notice(), None, "nothing to repair after a kill");
    let mut out = std::io::stdout().lock();
    for at in from.. {
        visit(&history, peer((at % PEERS) as u32), record(at));
        if !flushing {
            pause(Duration::from_millis(1));
        }
        if flushing && at % 7 == 0 {
            history.flush().expect("written");
        }
        if !flushing || at % 7 == 0 {
            writeln!(out, "{at}").and_then(|()| out.flush()).expect("somebody listens");
        }
    }
}

fn pause(time: Duration) {
    // Where time has to pass: before a process is killed, and between two records.
    #[allow(clippy::disallowed_methods)]
    std::thread::sleep(time);
}

/// A process that writes, and what it says of it.
struct Writer {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Writer {
    fn start(arguments: &[&str]) -> Self {
        let me = std::env::current_exe().expect("this program");
        let mut command = Command::new(me);
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().expect("a process");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { child, lines }
    }

    /// The next number that it says, however long that takes.
    fn next(&mut self) -> u64 {
        let line = self.lines.next().expect("it writes for ever").expect("text");
        line.parse().expect("a number")
    }

    /// Kills the writer; returns the last number that it printed and that was not read.
    fn kill(mut self) -> Option<u64> {
        self.child.kill().expect("still there: it writes for ever");
        let last = self.lines.map_while(Result::ok).last().and_then(|line| line.parse().ok());
        self.child.wait().expect("it ends");
        last
    }
}

/// The newest number in the file; nothing in it is torn or in the wrong place.
fn newest(path: &Path) -> Option<u64> {
    let (history, loaded) = History::open(path, options()).expect("a history");
    assert_eq!(loaded.notice(), None, "nothing to repair after a kill");
    assert!(history.len() <= CAPACITY);
    let found = (0..PEERS as u32).filter_map(|at| Some((at, history.peek(peer(at))?)));
    let numbers = found.map(|(at, record)| {
        let number = number(&record).unwrap_or_else(|| panic!("torn: {record:?}"));
        assert_eq!(number % PEERS, u64::from(at), "another peer's record");
        number
    });
    numbers.max()
}

fn killed_at_any_moment() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("history");
    let name = path.to_str().expect("a name");
    let (mut at, mut written) = (0, 0);
    for round in 0..ROUNDS {
        let mut writer = Writer::start(&["write", name, &at.to_string()]);
        let mut flushed = None;
        if round % 2 == 0 {
            // From before it is ready on, however long that takes: a different moment each time.
            pause(Duration::from_micros(300 + round * round * 37 % 41_000));
        } else {
            // Deep in the table.
            (0..round).for_each(|_| flushed = Some(writer.next()));
        }
        let flushed = writer.kill().or(flushed);
        let found = newest(&path);
        if let Some(flushed) = flushed {
            assert!(found >= Some(flushed), "flushed {flushed}, found {found:?}");
            written += flushed - at;
        }
        at = found.map_or(at, |found| found + 1);
    }
    assert!(at > PEERS, "the table was filled: {at}");
    println!("killed {ROUNDS} times: {written} records flushed, none torn, none lost");
}

/// A writer killed after 2.5 s: the last number that it said, and the newest in the file.
fn killed_unasked() -> (u64, u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("history");
    let mut writer = Writer::start(&["write-unasked", path.to_str().expect("a name")]);
    // At most one record each millisecond.
    let mut last = 0;
    while last < 2500 {
        last = writer.next();
    }
    let last = writer.kill().unwrap_or(last);
    (last, newest(&path).expect("it was written down"))
}

fn killed_without_having_flushed() {
    let mut seen = vec![];
    // The thread that writes the file may have been delayed while the other went on, not each time.
    for _ in 0..4 {
        let (last, found) = killed_unasked();
        // Missing records are at most one second old.
        if last - found <= 1000 {
            println!("killed after {last} records unasked: {} lost", last - found);
            return;
        }
        seen.push((last, found));
    }
    panic!("the last record written, and the newest in the file: {seen:?}");
}
