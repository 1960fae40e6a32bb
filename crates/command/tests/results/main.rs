//! The results of `headstart`, for people and for machines: their contents, that the same plan
//! gives the same bytes, and which of them are kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

mod data;
mod determinism;
mod kept;
mod race;

/// An empty folder for one test of a module.
fn folder(module: &str, name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(module).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the folder for tests can be made");
    folder
}

/// The program under test.
fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_headstart"))
}

/// Runs `program` in `folder`.
fn run(program: &Path, folder: &Path, arguments: &str) -> Output {
    Command::new(program)
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .expect("headstart starts")
}

/// Runs `headstart` in `folder` to its successful end.
fn headstart(folder: &Path, arguments: &str) -> Output {
    let output = run(program(), folder, arguments);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {message}");
    output
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("output is UTF-8")
}
