//! Answers of the web server.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

#[path = "../checks/answer.rs"]
mod answer;

static SERVER: LazyLock<answer::Server> = LazyLock::new(|| {
    let name = format!("headstart-fuzz-answer-{}", std::process::id());
    answer::Server::new(&std::env::temp_dir().join(name))
});

fuzz_target!(|input: &[u8]| answer::check(&SERVER, input));
