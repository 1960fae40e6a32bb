//! Says what this machine lacks to compile libbpf, whose own build only says `make failed`.
//!
//! Cargo builds first what most crates need: this one begins before libbpf, one that needs libbpf
//! would begin after it.

use std::process::{Command, Stdio};

/// Commands that have to succeed, and the Debian package of each.
const NEEDED: [(&str, &str); 5] = [
    ("cc --version", "gcc"),
    ("make --version", "make"),
    ("pkg-config --version", "pkg-config"),
    ("cc -E -x c -include gelf.h /dev/null", "libelf-dev"),
    ("cc -E -x c -include zlib.h /dev/null", "zlib1g-dev"),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_cross = std::env::var_os("HOST") != std::env::var_os("TARGET");
    if cfg!(not(feature = "libbpf")) || is_cross {
        return;
    }
    let runs = |line: &str| {
        let mut words = line.split(' ');
        let mut command = Command::new(words.next().unwrap_or_default());
        let status = command.args(words).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let missing: Vec<&str> =
        NEEDED.iter().filter(|(line, _)| !runs(line)).map(|(_, package)| *package).collect();
    if !missing.is_empty() {
        println!(
            "cargo::error=found no way to compile libbpf for the feature `tcp`, expected Debian's packages: \
             apt-get install {}",
            missing.join(" ")
        );
    }
}
