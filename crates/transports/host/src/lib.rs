//! The machine's edges that several crates need: time is read here, locks are taken here, and tests
//! of real time ask here whether the machine kept it.
//!
//! | module | holds |
//! |---|---|
//! | [`clock`] | the wall clock, processor time, and deadlines |
//! | [`mod@file`] | files that are read up to a limit |
//! | [`lock`] | mutexes whose contents outlive a panic |
//! | [`prometheus`] | counters as text for Prometheus |
//! | [`load`] | for tests: wake-up latency of the machine, report of a test that could not run |

pub mod clock;
pub mod file;
pub mod load;
pub mod lock;
pub mod prometheus;

pub use clock::{Deadline, Stopwatch, processor_time, unix_now};
pub use file::{read_at_most, read_text_at_most, without_mark};
pub use load::not_run;
pub use lock::locked;
pub use prometheus::Exposition;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
