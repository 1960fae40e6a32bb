//! Progress of many runs, by the simulated time that they cover, and an estimate of the time left.
//!
//! On a terminal a bar is redrawn from the first second on; into a file or a pipe a line is written
//! every five seconds, so that a log distinguishes a long run from one that hangs.

use std::fmt;
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use headstart_host::{Stopwatch, locked};
use headstart_sim::packet::FlowId;
use headstart_sim::workload::{Order, Workload};
use headstart_units::Time;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The work of one run, in parts.
const RUN: u64 = 1_000_000;
/// Interval between updates of the bar.
const REDRAW: Duration = Duration::from_millis(100);
/// Interval between lines of a log.
const LINE: Duration = Duration::from_secs(5);

/// The bar on the terminal, shared with [`clear`].
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Removes the bar, so that a message is on a line of its own. Returns true if there was one.
pub fn clear() -> bool {
    let bar = locked(&BAR).take();
    bar.inspect(ProgressBar::finish_and_clear).is_some()
}

/// The progress of several runs.
#[derive(Debug)]
pub struct Progress {
    title: String,
    runs: u64,
    finished: AtomicU64,
    /// Work done in all runs, in parts of [`RUN`].
    covered: AtomicU64,
    began: Stopwatch,
}

/// The progress of one run.
#[derive(Clone, Debug)]
pub struct RunProgress {
    all: Arc<Progress>,
    covered: Arc<AtomicU64>,
}

impl Progress {
    /// Starts the progress of so many runs.
    #[must_use]
    pub fn new(title: &str, runs: usize) -> Arc<Self> {
        Arc::new(Self {
            title: title.to_owned(),
            runs: runs as u64,
            finished: AtomicU64::new(0),
            covered: AtomicU64::new(0),
            began: Stopwatch::start(),
        })
    }

    /// Starts one more run.
    #[must_use]
    pub fn run(self: &Arc<Self>) -> RunProgress {
        RunProgress { all: Arc::clone(self), covered: Arc::default() }
    }

    /// Share of the work done.
    fn share(&self) -> f64 {
        self.covered.load(Ordering::Relaxed) as f64 / (self.runs * RUN).max(1) as f64
    }

    /// State after `elapsed`, in words.
    fn words(&self, elapsed: Duration) -> String {
        let (finished, share) = (self.finished.load(Ordering::Relaxed), self.share());
        // Before a thousandth is done, the estimate is unreliable.
        let left = if share >= 0.001 {
            format!("about {} left", Roughly(elapsed.mul_f64((1.0 - share) / share)))
        } else {
            "time left not known yet".to_owned()
        };
        let runs = if self.runs == 1 { "run" } else { "runs" };
        format!("{finished} of {} {runs} done, {:.1} % in all, {left}", self.runs, 100.0 * share)
    }

    /// Does the work, and meanwhile shows its progress on standard error.
    pub fn during<R>(&self, work: impl FnOnce() -> R) -> R {
        thread::scope(|scope| {
            let (goes_on, ended) = mpsc::channel();
            scope.spawn(move || self.show(&ended));
            let result = work();
            drop(goes_on);
            result
        })
    }

    /// Shows it until the sender is dropped.
    fn show(&self, ended: &Receiver<()>) {
        let bar = std::io::stderr().is_terminal().then(|| self.bar());
        (*locked(&BAR)).clone_from(&bar);
        let interval = if bar.is_some() { REDRAW } else { LINE };
        while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
            let words = self.words(self.began.elapsed());
            match &bar {
                Some(bar) => {
                    bar.set_position(self.covered.load(Ordering::Relaxed));
                    bar.set_message(words);
                }
                None => eprintln!("headstart: {}: {words}", self.title),
            }
        }
        clear();
    }

    fn bar(&self) -> ProgressBar {
        let target = ProgressDrawTarget::stderr_with_hz(10);
        let bar = ProgressBar::with_draw_target(Some(self.runs * RUN), target);
        if let Ok(style) = ProgressStyle::with_template("{prefix} {wide_bar} {msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(self.title.clone());
        bar.set_message(self.words(Duration::ZERO));
        bar
    }
}

impl RunProgress {
    /// Records that the run has reached `now` of `end`. A repeated run counts only beyond its
    /// earlier progress.
    pub fn reach(&self, now: Time, end: Time) {
        let share = now.as_nanos() as f64 / end.as_nanos().max(1) as f64;
        self.cover((share.min(1.0) * RUN as f64) as u64);
    }

    /// Records the end of the run.
    pub fn finish(&self) {
        self.cover(RUN);
        self.all.finished.fetch_add(1, Ordering::Relaxed);
    }

    fn cover(&self, covered: u64) {
        let before = self.covered.fetch_max(covered, Ordering::Relaxed);
        self.all.covered.fetch_add(covered.saturating_sub(before), Ordering::Relaxed);
    }

    /// A workload that reports progress; arrivals end at `end`.
    #[must_use]
    pub fn watch(&self, workload: Box<dyn Workload>, end: Time) -> Box<dyn Workload> {
        Box::new(ProgressWorkload { workload, end, progress: self.clone() })
    }
}

/// A workload whose arrivals report the progress of the run.
#[derive(Debug)]
struct ProgressWorkload {
    workload: Box<dyn Workload>,
    end: Time,
    progress: RunProgress,
}

impl Workload for ProgressWorkload {
    fn next_at(&self) -> Time {
        self.workload.next_at()
    }

    fn on_time(&mut self, now: Time, orders: &mut Vec<Order>) {
        self.progress.reach(now, self.end);
        self.workload.on_time(now, orders);
    }

    fn on_open(&mut self, flow: FlowId, tag: u64) {
        self.workload.on_open(flow, tag);
    }

    fn on_message(&mut self, now: Time, flow: FlowId, tag: u64, orders: &mut Vec<Order>) {
        self.workload.on_message(now, flow, tag, orders);
    }
}

/// A rounded duration: `40 s`, `12 min`, `3 h 20 min`.
#[derive(Clone, Copy, Debug)]
pub struct Roughly(pub Duration);

impl fmt::Display for Roughly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAY: u64 = 24 * 3600;
        // Never "0 s" before the end.
        let seconds = self.0.as_secs().max(1);
        match seconds {
            0..100 => write!(f, "{seconds} s"),
            100..6000 => write!(f, "{} min", seconds.div_ceil(60)),
            6000..DAY if seconds % 3600 < 60 => write!(f, "{} h", seconds / 3600),
            6000..DAY => write!(f, "{} h {} min", seconds / 3600, seconds % 3600 / 60),
            DAY.. => write!(f, "{} days", seconds.div_ceil(DAY)),
        }
    }
}

#[cfg(test)]
mod tests {
    use headstart_sim::Seed;
    use headstart_sim::workload::Opener;
    use headstart_sim::workload::arrivals::{ArrivalSpec, Arrivals, GapSpec, Sizes};
    use headstart_units::{Bytes, Span};

    use super::*;

    #[test]
    fn progress_is_shown_before_the_first_run_ends() {
        let progress = Progress::new("racing", 10);
        let run = progress.run();
        let second = Duration::from_secs(1);
        assert_eq!(progress.words(second), "0 of 10 runs done, 0.0 % in all, time left not known yet");
        run.reach(Time::from_millis(50_000), Time::from_millis(100_000));
        assert_eq!(progress.words(second), "0 of 10 runs done, 5.0 % in all, about 19 s left");
        run.reach(Time::from_millis(20_000), Time::from_millis(100_000));
        assert!(progress.words(second).contains("5.0 %"), "a run that begins anew takes nothing back");
        run.finish();
        assert_eq!(progress.words(second), "1 of 10 runs done, 10.0 % in all, about 9 s left");
    }

    #[test]
    fn the_remaining_time_is_never_zero() {
        let progress = Progress::new("racing", 1);
        progress.run().reach(Time::from_millis(999), Time::from_millis(1000));
        let words = progress.words(Duration::from_millis(10));
        assert!(words.ends_with("about 1 s left"), "{words}");
        let said = |seconds| Roughly(Duration::from_secs(seconds)).to_string();
        assert_eq!([said(99), said(3000), said(12_000)], ["99 s", "50 min", "3 h 20 min"]);
        assert_eq!(said(14_400), "4 h");
        assert_eq!(said(1_000_000), "12 days");
    }

    #[test]
    fn an_observed_workload_makes_the_same_draws_and_reports_progress() {
        let end = Time::from_millis(1000);
        let arrivals = || {
            let gaps = GapSpec::Poisson(Span::from_millis(10));
            let sizes = Sizes::Fixed(Bytes::new(1));
            let (groups, opener) = (vec![(0, 1)], Opener::Sender);
            let spec = ArrivalSpec { gaps, sizes, until: end, groups, classes: 1, peers: 5, opener };
            Box::new(Arrivals::new(spec, Seed(1)))
        };
        let progress = Progress::new("racing", 1);
        let (mut alone, mut watched) = (arrivals(), progress.run().watch(arrivals(), end));
        let (mut ours, mut theirs) = (vec![], vec![]);
        while alone.next_at() != Time::NEVER {
            let now = alone.next_at();
            assert_eq!(watched.next_at(), now);
            alone.on_time(now, &mut ours);
            watched.on_time(now, &mut theirs);
            let exact = now.as_nanos() as f64 / end.as_nanos() as f64;
            assert!((progress.share() - exact).abs() < 1e-5, "{} at {exact}", progress.share());
        }
        assert_eq!(format!("{theirs:?}"), format!("{ours:?}"));
        assert!(ours.len() > 50 && watched.next_at() == Time::NEVER);
    }
}
