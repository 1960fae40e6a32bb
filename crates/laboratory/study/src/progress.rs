//! Progress of many runs, by the simulated time that they cover and the work of each, and an
//! estimate of the time left.
//!
//! On a terminal a bar is redrawn from the first second on. Into a file or a pipe a line is written
//! every five seconds, so that a log distinguishes a long run from one that hangs.

use std::cell::RefCell;
use std::fmt;
use std::io::IsTerminal as _;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use headstart_host::{Stopwatch, locked};
use headstart_sim::packet::FlowId;
use headstart_sim::workload::{Order, Workload};
use headstart_units::Time;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The work of all runs, in parts.
const ALL: f64 = 1e12;
/// Share of the work after which the observed time counts as much as the estimated one. An estimate
/// may be wrong by a factor of two.
const TRUST: f64 = 0.02;
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

/// Work ahead of some runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Number of runs.
    pub runs: usize,
    /// The runs' estimated processor time in seconds; in real time, elapsed time.
    pub seconds: f64,
    /// Number of runs at once.
    pub at_once: usize,
}

impl Work {
    /// The sum of two amounts of work.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            runs: self.runs + other.runs,
            seconds: self.seconds + other.seconds,
            at_once: self.at_once.max(other.at_once),
        }
    }

    /// Estimated time of it all.
    fn time(&self) -> f64 {
        self.seconds / self.at_once.clamp(1, self.runs.max(1)) as f64
    }
}

thread_local! {
    /// The monitor of the runs that this thread starts.
    static MONITOR: RefCell<Option<Arc<RunMonitor>>> = const { RefCell::new(None) };
}

/// A caller's view of runs, in place of standard error, and its means to stop them.
#[derive(Debug, Default)]
pub struct RunMonitor {
    is_stopped: Arc<AtomicBool>,
    current: Mutex<Option<Arc<Progress>>>,
}

/// The progress of runs at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgressState {
    /// The work in words, such as "racing".
    pub title: String,
    /// Runs that are finished.
    pub finished: u64,
    /// All runs.
    pub runs: u64,
    /// Share of the work done, from 0 to 1.
    pub share: f64,
}

/// The payload of the panic that ends a stopped run.
#[derive(Clone, Copy, Debug)]
pub struct StoppedRun;

impl RunMonitor {
    /// Does the work, whose runs on this thread and its pools are watched.
    pub fn run<R>(self: &Arc<Self>, work: impl FnOnce() -> R) -> R {
        let before = MONITOR.with(|monitor| monitor.borrow_mut().replace(Arc::clone(self)));
        let result = work();
        MONITOR.with(|monitor| *monitor.borrow_mut() = before);
        result
    }

    /// Ends all runs at their next arrival, by a panic with [`StoppedRun`] that no hook reports.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// The runs at present; `None` before the first.
    #[must_use]
    pub fn state(&self) -> Option<ProgressState> {
        let current = locked(&self.current);
        current.as_ref().map(|progress| ProgressState {
            title: progress.title.clone(),
            finished: progress.finished.load(Ordering::Relaxed),
            runs: progress.work.runs as u64,
            share: progress.share(),
        })
    }
}

/// The progress of several runs.
#[derive(Debug)]
pub struct Progress {
    title: String,
    work: Work,
    finished: AtomicU64,
    /// Work done in all runs, of [`ALL`] parts.
    covered: AtomicU64,
    began: Stopwatch,
    /// Set by the monitor of these runs, if there is one.
    is_stopped: Option<Arc<AtomicBool>>,
}

/// The progress of one run.
#[derive(Clone, Debug)]
pub struct RunProgress {
    all: Arc<Progress>,
    covered: Arc<AtomicU64>,
    /// Work of the run, in parts of all.
    parts: f64,
}

impl Progress {
    /// Starts the progress of runs with this work.
    #[must_use]
    pub fn new(title: &str, work: Work) -> Arc<Self> {
        let monitor = MONITOR.with(|monitor| monitor.borrow().clone());
        let progress = Arc::new(Self {
            title: title.to_owned(),
            work,
            finished: AtomicU64::new(0),
            covered: AtomicU64::new(0),
            began: Stopwatch::start(),
            is_stopped: monitor.as_ref().map(|monitor| Arc::clone(&monitor.is_stopped)),
        });
        if let Some(monitor) = monitor {
            *locked(&monitor.current) = Some(Arc::clone(&progress));
        }
        progress
    }

    /// Starts one more run, of so many of the work's seconds.
    ///
    /// # Panics
    /// With [`StoppedRun`], if the monitor of the runs has stopped them.
    #[must_use]
    pub fn run(self: &Arc<Self>, seconds: f64) -> RunProgress {
        self.end_if_stopped();
        let share = if self.work.seconds > 0.0 {
            seconds / self.work.seconds
        } else {
            1.0 / self.work.runs.max(1) as f64
        };
        RunProgress { all: Arc::clone(self), covered: Arc::default(), parts: ALL * share }
    }

    fn end_if_stopped(&self) {
        if self.is_stopped.as_ref().is_some_and(|is_stopped| is_stopped.load(Ordering::Relaxed)) {
            resume_unwind(Box::new(StoppedRun));
        }
    }

    fn share(&self) -> f64 {
        (self.covered.load(Ordering::Relaxed) as f64 / ALL).min(1.0)
    }

    /// State after `elapsed`, in words.
    fn words(&self, elapsed: Duration) -> String {
        let (finished, share) = (self.finished.load(Ordering::Relaxed), self.share());
        // By the estimate at first, and more and more by the time that the work has taken so far.
        let all = (elapsed.as_secs_f64() + TRUST * self.work.time()) / (share + TRUST);
        let left = ApproximateDuration(Duration::from_secs_f64(((1.0 - share) * all).clamp(0.0, 1e12)));
        let Work { runs, .. } = self.work;
        let of = if runs == 1 { "run" } else { "runs" };
        format!("{finished} of {runs} {of} done, {:.1} % in all, about {left} left", 100.0 * share)
    }

    /// Does the work, and meanwhile shows its progress on standard error, unless it is watched.
    pub fn during<R>(&self, work: impl FnOnce() -> R) -> R {
        if self.is_stopped.is_some() {
            return work();
        }
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
        // A dumb terminal cannot draw a line again.
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let bar = (std::io::stderr().is_terminal() && !is_dumb).then(|| self.bar());
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
        let bar = ProgressBar::with_draw_target(Some(ALL as u64), target);
        if let Ok(style) = ProgressStyle::with_template("{prefix} {wide_bar} {msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(self.title.clone());
        bar.set_message(self.words(Duration::ZERO));
        bar
    }
}

impl RunProgress {
    /// The run has reached `now` of `end`. Repeated, it counts from its earlier progress.
    ///
    /// # Panics
    /// With [`StoppedRun`], if the monitor of it has stopped it.
    pub fn advance_to(&self, now: Time, end: Time) {
        self.all.end_if_stopped();
        let share = now.as_nanos() as f64 / end.as_nanos().max(1) as f64;
        self.add_share(share.min(1.0));
    }

    /// Records the end of the run.
    pub fn finish(&self) {
        self.add_share(1.0);
        self.all.finished.fetch_add(1, Ordering::Relaxed);
    }

    fn add_share(&self, share: f64) {
        let covered = (share * self.parts) as u64;
        let before = self.covered.fetch_max(covered, Ordering::Relaxed);
        self.all.covered.fetch_add(covered.saturating_sub(before), Ordering::Relaxed);
    }

    /// A workload that reports progress; arrivals end at `end`.
    #[must_use]
    pub fn wrap(&self, workload: Box<dyn Workload>, end: Time) -> Box<dyn Workload> {
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
        self.progress.advance_to(now, self.end);
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
pub struct ApproximateDuration(pub Duration);

impl fmt::Display for ApproximateDuration {
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
    use headstart_sim::workload::Opener;
    use headstart_sim::workload::long::{Listed, Start};
    use headstart_units::Bytes;

    use super::*;

    fn progress(runs: usize, seconds: f64) -> Arc<Progress> {
        Progress::new("racing", Work { runs, seconds, at_once: 2 })
    }

    #[test]
    fn runs_count_by_their_work_and_the_time_so_far_corrects_the_estimate() {
        let progress = progress(4, 100.0);
        let (long, short) = (progress.run(90.0), progress.run(10.0));
        let words = |elapsed| progress.words(Duration::from_secs(elapsed));
        // 100 s of processor time on two threads.
        assert_eq!(words(0), "0 of 4 runs done, 0.0 % in all, about 50 s left");
        short.finish();
        assert_eq!(words(10), "1 of 4 runs done, 10.0 % in all, about 82 s left");
        long.advance_to(Time::from_millis(50_000), Time::from_millis(100_000));
        long.advance_to(Time::from_millis(20_000), Time::from_millis(100_000));
        assert!(words(90).contains("55.0 %"), "a run that begins anew takes nothing back: {}", words(90));
        // 55 % took 90 s, not the 27 s of the estimate.
        assert!(words(90).ends_with("about 71 s left"), "{}", words(90));
        long.finish();
        assert!(
            words(200).starts_with("2 of 4 runs done, 100.0 %") && words(200).ends_with("about 1 s left")
        );
    }

    #[test]
    fn times_are_rounded_and_never_zero() {
        let text = |seconds| ApproximateDuration(Duration::from_secs(seconds)).to_string();
        assert_eq!([text(0), text(99), text(3000), text(12_000)], ["1 s", "99 s", "50 min", "3 h 20 min"]);
        assert_eq!([text(14_400), text(1_000_000)], ["4 h", "12 days"]);
    }

    #[test]
    fn a_watch_has_the_progress_of_its_own_runs_and_stops_them() {
        let monitor = Arc::new(RunMonitor::default());
        assert_eq!(monitor.state(), None, "nothing was started");
        let work = |runs| Work { runs, seconds: 0.0, at_once: 1 };
        let other = Progress::new("sweeping", work(3));
        let progress = monitor.run(|| Progress::new("racing", work(2)));
        let second = |run: &RunProgress| run.advance_to(Time::from_millis(1000), Time::from_millis(2000));
        second(&progress.run(0.0));
        let state = monitor.state().expect("runs began");
        assert_eq!(state, ProgressState { title: "racing".to_owned(), finished: 0, runs: 2, share: 0.25 });
        let run = progress.run(0.0);
        monitor.stop();
        let is_stopped = |work: &dyn Fn()| {
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            ended.expect_err("it was stopped").is::<StoppedRun>()
        };
        assert!(is_stopped(&|| second(&run)), "a run that goes on");
        assert!(is_stopped(&|| drop(progress.run(0.0))), "no other begins");
        second(&other.run(0.0));
        let after = Progress::new("racing", work(1));
        assert!(after.is_stopped.is_none(), "the monitor ended with its work");
    }

    #[test]
    fn arrivals_report_the_progress_of_a_run() {
        let (progress, end) = (progress(1, 5.0), Time::from_millis(1000));
        let start = |at| Start::new(Time::from_millis(at), Bytes::new(1));
        let listed = Box::new(Listed::new(vec![start(100), start(700)], Opener::Sender));
        let mut watched = progress.run(5.0).wrap(listed, end);
        for share in [0.1, 0.7] {
            watched.on_time(watched.next_at(), &mut vec![]);
            assert!((progress.share() - share).abs() < 1e-5, "{} at {share}", progress.share());
        }
        assert_eq!(watched.next_at(), Time::NEVER);
    }
}
