//! Output of commands, and their command lines.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use headstart_report::jobs::JobStore;
use headstart_study::dependencies::idle;
#[cfg(unix)]
use signal_hook::{consts::SIGINT, iterator::Signals};

use headstart_report::errors::one_line;
use headstart_report::output::{Folder, OutputError};
use headstart_report::table::{self, Table};
use headstart_study::progress;
use headstart_study::setup::Setup;

/// Writes to standard output; a reader that closed early is no error.
pub fn print(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
}

/// Writes bytes, which need not be text, to standard output.
pub fn print_bytes(bytes: &[u8]) -> Result<()> {
    match std::io::stdout().write_all(bytes) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}

/// True if standard output is a terminal that shows text in bold.
pub fn has_styles() -> bool {
    let [term, no_color] = ["TERM", "NO_COLOR"].map(|name| std::env::var(name).ok());
    table::has_styles(std::io::stdout().is_terminal(), term.as_deref(), no_color.as_deref())
}

/// Prints the lines of an answer and a blank one, if there is an answer.
///
/// # Errors
/// As [`print`].
pub fn answer(lines: impl IntoIterator<Item = String>) -> Result<()> {
    let text: String = lines.into_iter().map(|line| line + "\n").collect();
    if text.is_empty() { Ok(()) } else { print(&(text + "\n")) }
}

/// Prints a table as wide as the terminal.
pub fn print_table(table: &Table) -> Result<()> {
    let width = table::terminal_width(std::env::var("COLUMNS").ok().as_deref());
    print(&table.terminal(width, has_styles()))
}

/// The command line as it can be typed again.
pub fn command_line() -> String {
    typed(arguments().skip(1))
}

/// The words of the command line, the program's first, where this process was begun by another
/// program, such as Python.
static HOSTED: OnceLock<Vec<OsString>> = OnceLock::new();

/// Takes `words`, the program's first, for the command line; the first call counts.
pub fn host(words: Vec<OsString>) {
    let _ = HOSTED.set(words);
}

/// The words of the command line, the program's first.
pub fn words() -> impl Iterator<Item = OsString> {
    HOSTED.get().cloned().unwrap_or_else(|| std::env::args_os().collect()).into_iter()
}

/// The words of this program's command line. Bytes that are not text are shown in their place.
pub fn arguments() -> impl Iterator<Item = String> {
    words().map(|word| word.to_string_lossy().into_owned())
}

/// A command line of these words, as it can be typed.
pub fn typed(words: impl Iterator<Item = String>) -> String {
    words.fold("headstart".to_owned(), |line, argument| {
        let plain = argument.chars().all(|c| c.is_ascii_alphanumeric() || "-_=,.%+/:".contains(c));
        if plain { format!("{line} {argument}") } else { format!("{line} '{argument}'") }
    })
}

/// Prints the path of the file of flows, if requested.
///
/// # Errors
/// If nothing can be printed.
pub fn flows_written(flows: Option<(PathBuf, u64)>) -> Result<()> {
    match flows {
        None => Ok(()),
        Some((path, rows)) => print(&format!("Flows: {} ({rows} rows)\n", path.display())),
    }
}

/// Prints which given options have no effect before the first run; results have these notes too.
pub fn print_idle_options(setup: &mut Setup, given_options: &[String], is_alone: bool) {
    let given = |name: &str| given_options.iter().any(|given| given == name);
    let replaced = (given("path") && setup.path.trace.is_some()).then(|| {
        "--trace replaces the rate of --path; its round-trip time, buffer and losses stay".to_owned()
    });
    for note in replaced.into_iter().chain(idle(setup, given_options, is_alone)) {
        eprintln!("headstart: {note}");
        setup.notes.push(note);
    }
}

/// Notes on kept results: printed before the first run, and again if Ctrl-C ends it.
pub fn install_interrupt_notice(store: &JobStore) {
    let (kept, path) = (store.result_count(), store.path());
    on_interrupt(move || match kept.load(Ordering::Relaxed) {
        0 => "stopped before a run was finished: nothing is kept".to_owned(),
        kept => {
            let runs = if kept == 1 { "run is" } else { "runs are" };
            format!(
                "stopped: {kept} finished {runs} kept in {}; the same command goes on from there",
                path.display()
            )
        }
    });
    eprintln!(
        "headstart: each finished run is kept in {}: after an interruption the same command goes on from there",
        store.path().display()
    );
}

/// At Ctrl-C removes the progress bar, prints these words on a line of their own and exits with
/// 130, as shells expect.
pub fn on_interrupt(words: impl Fn() -> String + Send + 'static) {
    #[cfg(unix)]
    // Without a handler the signal ends the program by default.
    if let Ok(mut signals) = Signals::new([SIGINT]) {
        std::thread::spawn(move || {
            if signals.forever().next().is_none() {
                return;
            }
            // The terminal has printed ^C where the bar was, or behind the last line.
            if !progress::clear() && std::io::stderr().is_terminal() {
                eprintln!();
            }
            eprintln!("headstart: {}", words());
            std::process::exit(130);
        });
    }
    #[cfg(not(unix))]
    drop(words);
}

/// After a table was printed: reports the files that could not be written, of several the last as
/// the command's error.
///
/// # Errors
/// If one of them could not.
pub fn written<E: Into<anyhow::Error>>(files: impl IntoIterator<Item = Result<(), E>>) -> Result<()> {
    let mut failures =
        files.into_iter().filter_map(Result::err).map(Into::into).collect::<Vec<anyhow::Error>>();
    let last = failures.pop();
    for failure in failures {
        eprintln!("headstart: {}", one_line(&failure));
    }
    last.map_or(Ok(()), Err)
}

/// Sorts the kept runs after the last one, and prints the number taken from an earlier command.
///
/// # Errors
/// If the file cannot be written.
pub fn closed(store: JobStore) -> Result<Folder, OutputError> {
    match store.reused_count() {
        0 => {}
        1 => eprintln!("headstart: 1 run was there before, in {}", store.path().display()),
        more => eprintln!("headstart: {more} runs were there before, in {}", store.path().display()),
    }
    store.close()
}
