//! A process that writes is killed again and again; what it leaves has no torn record and nothing older than what it had
//! flushed. This program runs itself as that process.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{number, peer, record, visit};
use headstart_store::{History, Options};

/// Peers that the process writes in turn; more than the table holds, so that slots are freed and taken all the time.
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

/// Writes for ever, and says which number is surely in the file, or if nobody asks, which it is at.
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
    // The one place of this test where time has to pass.
    #[allow(clippy::disallowed_methods)]
    std::thread::sleep(time);
}

fn start(arguments: &[&str]) -> Child {
    let me = std::env::current_exe().expect("this program");
    let mut command = Command::new(me);
    command.args(arguments).stdout(Stdio::piped()).spawn().expect("a process")
}

/// Kills it and reads its last whole line.
fn kill(mut child: Child) -> Option<u64> {
    child.kill().expect("still there: it writes for ever");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let last = lines.last().and_then(|line| line.parse().ok());
    child.wait().expect("it ends");
    last
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
        let child = start(&["write", name, &at.to_string()]);
        // From before it is ready to deep in the table, a different moment each time.
        pause(Duration::from_micros(300 + round * round * 37 % 41_000));
        let flushed = kill(child);
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

fn killed_without_having_flushed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("history");
    let child = start(&["write-unasked", path.to_str().expect("a name")]);
    pause(Duration::from_millis(2500));
    let last = kill(child).expect("it wrote");
    let found = newest(&path).expect("it was written down");
    // At most one record each millisecond: what is missing is at most a second old.
    assert!(last - found <= 1000, "at {last}, but {found} is the newest in the file");
    println!("killed after {last} records unasked: {} lost", last - found);
}
