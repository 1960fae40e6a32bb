//! How late the machine wakes a thread: for tests of real time, which share the machine with everything else that runs.
//!
//! Beside each of their runs, threads that only sleep measure how late they are woken. Where they are late, the run says
//! nothing of the code under test, and is made again; a test without enough runs that say something reports
//! [`not_run`].

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const NAP: Duration = Duration::from_millis(1);

/// How late the sleepers were woken during a run.
#[derive(Clone, Copy, Debug)]
pub struct Lateness {
    /// Share of the naps that lasted half as long again as they should.
    share: f64,
    /// The latest of all.
    worst: Duration,
}

impl Lateness {
    /// Fewer than one nap in a hundred was too long, and none was later than `tolerated`.
    #[must_use]
    pub fn is_in_time(&self, tolerated: Duration) -> bool {
        self.share < 0.01 && self.worst <= tolerated
    }
}

/// Sleepers, one for each core.
#[derive(Debug)]
pub struct Sleepers {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Duration>>>,
}

impl Sleepers {
    /// Starts them.
    #[must_use]
    pub fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let cores = thread::available_parallelism().map_or(1, Into::into).min(4);
        let sleeper = |_| {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || sleep_until(&is_over))
        };
        Self { threads: (0..cores).map(sleeper).collect(), is_over }
    }

    /// Ends them; how late they were woken.
    #[must_use]
    pub fn stop(self) -> Lateness {
        self.is_over.store(true, Ordering::Relaxed);
        let late: Vec<Duration> =
            self.threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect();
        let many = late.iter().filter(|late| **late > NAP / 2).count();
        Lateness {
            share: many as f64 / late.len().max(1) as f64,
            worst: late.into_iter().max().unwrap_or_default(),
        }
    }
}

/// Naps until it is over; how late each ended.
#[expect(clippy::disallowed_methods, reason = "it is the machine's clock that is measured")]
fn sleep_until(is_over: &AtomicBool) -> Vec<Duration> {
    let mut late = vec![];
    while !is_over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        thread::sleep(NAP);
        late.push(begun.elapsed().saturating_sub(NAP));
    }
    late
}

/// Reports a test, or a part of one, that this machine cannot run, and why. Written past the test harness's capture of
/// output, which hides what a passing test prints: `ci.sh` lists these lines at its end.
pub fn not_run(reason: &str) {
    let test = thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("NOT RUN: {test}: {reason}\n");
    // A closed standard error leaves nobody to report to.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}
