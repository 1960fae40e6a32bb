//! The version with the commit that the program is built from, for `--version` and every result.
//!
//! A build without git, or of sources that are no checkout, has the version alone; for packages
//! `HEADSTART_COMMIT` sets the commit. The same commit gives the same text.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=HEADSTART_COMMIT");
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let commit = std::env::var("HEADSTART_COMMIT").ok().or_else(commit).filter(|commit| !commit.is_empty());
    let version = commit.map_or(version.clone(), |commit| format!("{version} ({commit})"));
    println!("cargo:rustc-env=HEADSTART_VERSION={version}");
}

/// The commit of this checkout, with a `+` if the sources differ from it.
fn commit() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().ok()?;
    // A checkout of another project around these sources is not theirs.
    let top = Path::new(&git(&root, &["rev-parse", "--show-toplevel"])?).canonicalize().ok()?;
    if top != root {
        return None;
    }
    const BUILT: [&str; 4] = ["crates", "experiments", "Cargo.toml", "Cargo.lock"];
    let log = git(&root, &["rev-parse", "--git-path", "logs/HEAD"])?;
    for path in BUILT.into_iter().chain([log.as_str()]) {
        let path = root.join(path);
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    let commit = git(&root, &["rev-parse", "--short=12", "HEAD"])?;
    let changed =
        git(&root, &[&["status", "--porcelain", "--untracked-files=no", "--"][..], &BUILT].concat())?;
    Some(if changed.is_empty() { commit } else { commit + "+" })
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
