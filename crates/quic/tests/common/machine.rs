//! Whether the machine let anybody keep time.
//!
//! Tests of real time share it with everything else that runs. Beside each of their runs threads that only sleep see whether
//! they are woken in time; where they are not, the run says nothing of what was tested, and is made again.
#![allow(dead_code, reason = "not every test needs all of it")]

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// One run at a time: they would disturb each other.
pub static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

const NAP: Duration = Duration::from_millis(1);

/// How late the sleepers were woken.
#[derive(Clone, Copy, Debug)]
pub struct Lateness {
    /// Of all naps, those that lasted half as long again.
    share: f64,
    /// The latest of all.
    worst: Duration,
}

impl Lateness {
    /// One nap in a hundred too long: every core is wanted by somebody else. One long enough to be seen in what is measured: the same.
    pub fn is_in_time(&self, tolerated: Duration) -> bool {
        self.share < 0.01 && self.worst <= tolerated
    }
}

/// Sleepers, one for each core.
pub struct Beside {
    is_over: Arc<AtomicBool>,
    sleepers: Vec<JoinHandle<Vec<Duration>>>,
}

impl Beside {
    pub fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let cores = thread::available_parallelism().map_or(1, Into::into).min(4);
        let sleeper = |_| {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || sleep_until(&is_over))
        };
        Self { sleepers: (0..cores).map(sleeper).collect(), is_over }
    }

    pub fn stop(self) -> Lateness {
        self.is_over.store(true, Ordering::Relaxed);
        let late: Vec<Duration> =
            self.sleepers.into_iter().flat_map(|it| it.join().expect("it only sleeps")).collect();
        let many = late.iter().filter(|late| **late > NAP / 2).count();
        Lateness {
            share: many as f64 / late.len().max(1) as f64,
            worst: late.into_iter().max().unwrap_or_default(),
        }
    }
}

/// Naps until told to stop; how late each ended.
#[expect(clippy::disallowed_methods, reason = "it is the machine's clock that is tested")]
fn sleep_until(is_over: &AtomicBool) -> Vec<Duration> {
    let mut late = vec![];
    while !is_over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        thread::sleep(NAP);
        late.push(begun.elapsed().saturating_sub(NAP));
    }
    late
}

/// Says so past the capture of output: who reads the log shall see it.
pub fn not_run(what: &str) {
    let _ = std::io::stderr()
        .write_all(format!("NOT RUN: {what}: this machine wakes nobody in time\n").as_bytes());
}
