//! What commands print, and how they were called.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use headstart_report::jobs::JobStore;
use headstart_study::dependencies::idle;

use crate::output::Folder;
use crate::setup::Setup;
use crate::table::{self, Table};

/// Writes to standard output; a reader that went away early is no error.
pub fn print(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}

/// Prints a table as wide as the terminal.
pub fn print_table(table: &Table) -> Result<()> {
    let width = table::terminal_width(std::env::var("COLUMNS").ok().as_deref());
    let bold = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    print(&table.terminal(width, bold))
}

/// The command line as it can be typed again.
pub fn command_line() -> String {
    std::env::args().skip(1).fold("headstart".to_owned(), |line, argument| {
        let plain = argument.chars().all(|c| c.is_ascii_alphanumeric() || "-_=,.%+/:".contains(c));
        if plain { format!("{line} {argument}") } else { format!("{line} '{argument}'") }
    })
}

/// Where the flows are, if they were asked for.
///
/// # Errors
/// If nothing can be printed.
pub fn flows_written(flows: Option<(PathBuf, u64)>) -> Result<()> {
    match flows {
        None => Ok(()),
        Some((path, rows)) => print(&format!("Flows: {} ({rows} rows)\n", path.display())),
    }
}

/// Says which of the options that were given change nothing, before the first run; whoever reads the results is told too.
pub fn say_idle(setup: &mut Setup, asked: &[String], is_alone: bool) {
    for note in idle(setup, asked, is_alone) {
        eprintln!("headstart: {note}");
        setup.notes.push(note);
    }
}

/// How results are kept: said before the first run.
pub fn announce(store: &JobStore) {
    eprintln!(
        "headstart: each finished run is kept in {}: after an interruption the same command goes on from there",
        store.path().display()
    );
}

/// Orders what was kept, after the last run, and says what was taken from an earlier one.
///
/// # Errors
/// If the file cannot be written.
pub fn closed(store: JobStore) -> Result<Folder> {
    match store.reused() {
        0 => {}
        1 => eprintln!("headstart: 1 run was there before, in {}", store.path().display()),
        more => eprintln!("headstart: {more} runs were there before, in {}", store.path().display()),
    }
    Ok(store.close()?)
}
