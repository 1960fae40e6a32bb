//! One program: each integration test by itself would compile the code under it again.

#[path = "../common/mod.rs"]
mod common;
mod example;
mod interop;
mod qlog;
