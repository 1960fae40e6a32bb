//! Runs in real time, judged by a quota.
//!
//! Tests in real time share the host with other processes. A run in which the host delayed timers
//! too long is repeated; nearly all others must be good.
#![allow(dead_code, reason = "not every test needs all of it")]

use std::fmt::Debug;

use headstart_host::load::{Lateness, WakeupProbe};
use headstart_host::not_run;

/// Serialises runs, which would disturb each other.
pub static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Number of runs that count, and of good ones among them.
#[derive(Clone, Copy, Debug)]
pub struct Quota {
    pub good: usize,
    pub of: usize,
}

/// Attempts for each run that is to count.
const ATTEMPTS: usize = 4;

/// Repeats `run` until in `of` runs the host was on time, as `is_valid` says, and fails if fewer
/// than `good` of them are good. Reports `NOT RUN` and returns `false` on a host that is
/// delayed too often.
pub async fn hold_to<T: Debug>(
    quota: Quota,
    is_valid: impl Fn(&Lateness) -> bool,
    mut run: impl AsyncFnMut() -> T,
    is_good: impl Fn(&T) -> bool,
) -> bool {
    let (mut counted, mut tried) = (vec![], 0);
    while counted.len() < quota.of && tried < quota.of * ATTEMPTS {
        tried += 1;
        let probe = WakeupProbe::start();
        let seen = run().await;
        let late = probe.stop();
        println!("{seen:?}, {late:?}");
        if is_valid(&late) {
            counted.push(seen);
        }
    }
    if counted.len() < quota.of {
        let (kept, of) = (counted.len(), quota.of);
        not_run(&format!("the machine kept time in {kept} of {tried} runs, expected {of}"));
        return false;
    }
    let good = counted.iter().filter(|seen| is_good(seen)).count();
    assert!(
        good >= quota.good,
        "{good} of {} runs are good, expected {}: {counted:#?}",
        quota.of,
        quota.good
    );
    true
}
