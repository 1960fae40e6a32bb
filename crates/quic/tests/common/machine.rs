//! Runs in real time, judged by a quota.
//!
//! Tests of real time share the machine with everything else that runs. A run beside which the
//! machine woke nobody in time says nothing of the code under test and is made again; of those that
//! count, nearly all must be good.
#![allow(dead_code, reason = "not every test needs all of it")]

use std::fmt::Debug;
use std::time::Duration;

use headstart_host::load::Sleepers;
use headstart_host::not_run;

/// One run at a time: they would disturb each other.
pub static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// How many runs count, and how many of them must be good.
#[derive(Clone, Copy, Debug)]
pub struct Quota {
    pub good: usize,
    pub of: usize,
}

/// Runs tried for each that is to count.
const ATTEMPTS: usize = 4;

/// Makes `run` until as many runs as the quota asks for passed without a pause of the machine
/// longer than `tolerated`, and fails if fewer than the quota of them are good. Reports `NOT RUN`
/// where the machine pauses too often; `false` then.
pub async fn hold_to<T: Debug>(
    quota: Quota,
    tolerated: Duration,
    mut run: impl AsyncFnMut() -> T,
    is_good: impl Fn(&T) -> bool,
) -> bool {
    let (mut counted, mut tried) = (vec![], 0);
    while counted.len() < quota.of && tried < quota.of * ATTEMPTS {
        tried += 1;
        let beside = Sleepers::start();
        let seen = run().await;
        let late = beside.stop();
        println!("{seen:?}, {late:?}");
        if late.is_in_time(tolerated) {
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
