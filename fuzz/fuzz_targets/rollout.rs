//! Files of `headstart ab`.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

#[path = "../checks/rollout.rs"]
mod rollout;

/// In memory where the system has such a folder.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let folder = folder.join(format!("headstart-fuzz-rollout-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
});

fuzz_target!(|input: &[u8]| rollout::check(&FOLDER, input));
