//! One program: each integration test by itself would compile the code under it again.

mod chain;
mod closed_forms;
#[path = "../common/mod.rs"]
mod common;
mod conversations;
mod early;
mod headstart;
mod informed;
mod linux;
mod opponents;
mod recovery;
mod replay;
mod routers;
mod udt;
