//! How late the machine wakes a thread: for tests of real time, which share the machine with
//! everything else that runs.
//!
//! During each of their runs, threads that only sleep measure how late they are woken. On Linux the
//! processor time of other processes is measured too, because a scheduler wakes sleepers at once
//! and delays threads that compute. Where either is too much, the run is discarded and repeated. A
//! test without enough valid runs reports [`not_run`].

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const SLEEP: Duration = Duration::from_millis(1);

/// Wake-up latency of the sleeping threads during a run.
#[derive(Clone, Copy, Debug)]
pub struct Lateness {
    /// Share of the naps that lasted half as long again as they should.
    share: f64,
    /// Median of how late they ended.
    typical: Duration,
    /// The latest of all.
    worst: Duration,
    /// Share of the processors' time that other processes had; zero where the system does not say.
    others: f64,
}

/// Other processes may have this share of the processors' time: half of one, where there are two.
const MAX_OTHER_SHARE: f64 = 0.25;

impl Lateness {
    /// Less than 1 % of naps too long, none later than `tolerated`, and processors were free.
    #[must_use]
    pub fn is_within(&self, tolerated: Duration) -> bool {
        self.share < 0.01 && self.worst <= tolerated && self.others <= MAX_OTHER_SHARE
    }

    /// True if half of the naps or more ended earlier than by `gap` too late: only then can a timer
    /// tell two events apart that are so close.
    #[must_use]
    pub fn resolves(&self, gap: Duration) -> bool {
        self.typical < gap
    }
}

/// Sleeping threads that measure the wake-up latency, one for each core.
#[derive(Debug)]
pub struct WakeupProbe {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Duration>>>,
    before: Option<Ticks>,
}

impl WakeupProbe {
    /// Starts the sleeping threads.
    #[must_use]
    pub fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let cores = thread::available_parallelism().map_or(1, Into::into).min(4);
        let sleeper = |_| {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || sleep_until(&is_over))
        };
        Self { threads: (0..cores).map(sleeper).collect(), is_over, before: Ticks::now() }
    }

    /// Ends the sleeping threads; returns how late they were woken.
    #[must_use]
    pub fn stop(self) -> Lateness {
        self.is_over.store(true, Ordering::Relaxed);
        let mut late: Vec<Duration> =
            self.threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect();
        let others = self.before.zip(Ticks::now()).map_or(0.0, |(before, after)| after.others_since(&before));
        let many = late.iter().filter(|late| **late > SLEEP / 2).count();
        late.sort_unstable();
        Lateness {
            share: many as f64 / late.len().max(1) as f64,
            typical: late.get(late.len() / 2).copied().unwrap_or_default(),
            worst: late.last().copied().unwrap_or_default(),
            others,
        }
    }
}

/// Time of all processors since the machine started, in the kernel's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    total: u64,
    /// Time in which the processors ran no task.
    idle: u64,
    /// Time in which the processors ran this process.
    own: u64,
}

impl Ticks {
    /// As `/proc` has them; `None` where there is none.
    fn now() -> Option<Self> {
        let read = |path| std::fs::read_to_string(path).ok();
        Self::parse(&read("/proc/stat")?, &read("/proc/self/stat")?)
    }

    /// proc(5): `cpu user nice system idle iowait irq softirq steal`, a process: user and system
    /// time in fields 14 and 15; field 2 is a name in parentheses with any text.
    fn parse(machine: &str, process: &str) -> Option<Self> {
        let numbers = |text: &str| -> Vec<u64> { text.split(' ').filter_map(|it| it.parse().ok()).collect() };
        let all = numbers(machine.lines().next()?.strip_prefix("cpu ")?);
        let fields: Vec<&str> = process.rsplit_once(") ")?.1.split(' ').collect();
        let own = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        Some(Self { total: all.iter().take(8).sum(), idle: all.get(3)? + all.get(4)?, own })
    }

    fn others_since(&self, before: &Self) -> f64 {
        let since = |now: u64, then: u64| now.saturating_sub(then);
        let total = since(self.total, before.total).max(1);
        let ours = since(self.idle, before.idle) + since(self.own, before.own);
        total.saturating_sub(ours) as f64 / total as f64
    }
}

/// Naps until it is over; how late each ended.
#[expect(clippy::disallowed_methods, reason = "it is the machine's clock that is measured")]
fn sleep_until(is_over: &AtomicBool) -> Vec<Duration> {
    let mut late = vec![];
    while !is_over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        thread::sleep(SLEEP);
        late.push(begun.elapsed().saturating_sub(SLEEP));
    }
    late
}

/// Reports a test, or a part of one, that this machine cannot run, and why. Written past the test
/// harness's capture of output, which hides what a passing test prints: `ci.sh` lists these lines.
pub fn not_run(reason: &str) {
    let test = thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("NOT RUN: {test}: {reason}\n");
    // With standard error closed, there is no place to report to.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_resolved_where_a_nap_typically_ends_within_it() {
        let late = Lateness {
            share: 0.0,
            typical: Duration::from_micros(96),
            worst: Duration::from_millis(1),
            others: 0.0,
        };
        assert!(late.resolves(Duration::from_micros(97)) && !late.resolves(Duration::from_micros(96)));
    }

    #[test]
    fn processor_time_of_others_is_neither_idle_nor_our_own() {
        let machine = |idle| format!("cpu  100 0 50 {idle} 10 0 0 40 7 7\ncpu0 1 2 3\n");
        let process = |user| format!("12 (a name) with) S 1 1 1 0 -1 4194304 9 0 0 0 {user} 5 0 0 20 0\n");
        let ticks = |idle, user| Ticks::parse(&machine(idle), &process(user)).expect("both are there");
        assert_eq!(ticks(800, 20), Ticks { total: 1_000, idle: 810, own: 25 });
        let before = Ticks { total: 0, idle: 410, own: 0 };
        assert_eq!(ticks(800, 195).others_since(&before), 0.4);
        assert_eq!(Ticks::parse("", ""), None);
    }
}
