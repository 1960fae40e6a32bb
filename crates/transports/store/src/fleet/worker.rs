//! The queues between connections and the server, and the thread that empties them.

use core::hash::BuildHasher;
use core::net::IpAddr;
use core::time::Duration;
use std::collections::VecDeque;
use std::hash::RandomState;
use std::sync::{Condvar, Mutex, PoisonError};

use hashbrown::{HashMap, HashSet};
use headstart_host::{Deadline, Exposition, locked, unix_now};
use headstart_startup::history::Record;

use super::address::Address;
use super::link::{Answer, Answers, LinkError, Remote};
use super::{Options, emptied, not_from_the_future};
use crate::history::History;

/// Peers that are looked up in one exchange with the server, and records that are written in one.
const BATCH: usize = 256;
/// Peers that wait to be looked up, at most: above that a flood of handshakes costs its starts,
/// and no memory.
const MAX_WAITING: usize = 8192;
/// Leases that are remembered, at most. A peer without one is looked up again.
const MAX_LEASES: usize = 1 << 16;
/// Time between two searches for leases that are over, each of which visits all of them.
const SWEEP: Duration = Duration::from_millis(500);
/// First pause after a failure; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Wait for what need not happen.
const FOREVER: Duration = Duration::from_secs(3600);

/// State of the way to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// No connection yet, or none any more.
    #[default]
    Away,
    /// The server answers.
    Up,
    /// The server answers, and refuses writes: out of memory, or read-only.
    Full,
}

/// Counts of a host's exchange with the fleet's server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// State of the way to the server.
    pub state: State,
    /// Peers that the server was asked for.
    pub asked: u64,
    /// Peers found at the server.
    pub found: u64,
    /// Peers found with a lease of another host.
    pub leased: u64,
    /// Peers that were not asked for, because the server was away or too many waited.
    pub skipped: u64,
    /// Connections that started before the server's answer was there.
    pub late: u64,
    /// Records written.
    pub written: u64,
    /// Writes that the server refused; they are tried again.
    pub refused: u64,
    /// Writes given up, because too many waited.
    pub lost: u64,
    /// Values that are no records of the peer.
    pub damaged: u64,
    /// Connections to the server that failed or broke.
    pub failures: u64,
    /// Writes that wait now.
    pub waiting: usize,
    /// The last failure; `None` if all is well.
    pub last_error: Option<String>,
}

impl Counters {
    /// The counts in Prometheus' text format.
    #[must_use]
    pub fn render(&self) -> String {
        let mut metrics = Exposition::default();
        let mut family = |name: &str, kind: &str, help: &str, samples: &[(&str, u64)]| {
            metrics.family(&format!("fleet_{name}"), kind, help);
            let label = if kind == "gauge" { "state" } else { "outcome" };
            for (value, count) in samples {
                let labels = [(label, *value)];
                metrics.sample(if value.is_empty() { &[] } else { &labels }, count);
            }
        };
        let is = |state| u64::from(self.state == state);
        family(
            "server",
            "gauge",
            "State of the history server.",
            &[("up", is(State::Up)), ("full", is(State::Full)), ("away", is(State::Away))],
        );
        family(
            "lookups_total",
            "counter",
            "Peers looked up on the history server, or not.",
            &[
                ("asked", self.asked),
                ("found", self.found),
                ("leased", self.leased),
                ("skipped", self.skipped),
                ("late", self.late),
            ],
        );
        family(
            "writes_total",
            "counter",
            "Records sent to the history server.",
            &[("written", self.written), ("refused", self.refused), ("lost", self.lost)],
        );
        family("damaged_total", "counter", "Values that are no records.", &[("", self.damaged)]);
        family("failures_total", "counter", "Connections that failed or broke.", &[("", self.failures)]);
        family("waiting", "gauge", "Records that wait to be written.", &[("", self.waiting as u64)]);
        metrics.take()
    }
}

/// Gets the records that the server answers with.
pub(super) type Found = Box<dyn Fn(IpAddr, &Record) + Send + Sync>;

/// State shared by all handles and the thread.
pub(super) struct Shared {
    pub local: History,
    pub counters: Mutex<Counters>,
    options: Options,
    found: Found,
    /// This host, for its leases: unique among the hosts of a fleet, and no secret.
    host: u64,
    queue: Mutex<Queue>,
    wake: Condvar,
    progress: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    wanted: VecDeque<IpAddr>,
    /// Peers in `wanted`, and peers that the server is asked for.
    pending: HashSet<IpAddr, RandomState>,
    /// Peers whose lease this host has, or another one.
    leases: HashMap<IpAddr, KnownLease, RandomState>,
    /// Until then the table of leases is not searched for those that are over.
    swept: Option<Deadline>,
    changed: HashMap<IpAddr, Change, RandomState>,
    /// Changes that the server refused. They delay no others.
    parked: HashMap<IpAddr, Change, RandomState>,
    /// Until then they are not tried again.
    parked_until: Option<Deadline>,
    /// Writes under way.
    writing: usize,
    /// When the writes that wait are due.
    due: Option<Deadline>,
    is_away: bool,
    hurries: bool,
    stops: bool,
}

#[derive(Clone, Copy, Debug)]
struct KnownLease {
    until: Deadline,
    is_ours: bool,
}

/// Content of a write.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// The peer's record, as the local table has it when it is written.
    Newest,
    /// A record that misled a start is to be removed.
    Dropped(Record),
}

impl Queue {
    /// Keeps a change that is newer than one that waits already.
    fn put(&mut self, peer: IpAddr, change: Change, options: &Options) -> bool {
        let is_older = self.parked.remove(&peer).is_some() || self.changed.contains_key(&peer);
        if !is_older && self.unwritten() >= options.capacity {
            return false;
        }
        self.changed.insert(peer, change);
        self.due.get_or_insert_with(|| Deadline::after(options.interval));
        true
    }

    /// Keeps a change for later: a server that is full stays so for a while.
    fn park(&mut self, peer: IpAddr, change: Change, options: &Options) -> bool {
        // There is no later.
        if self.stops || self.unwritten() >= options.capacity {
            return self.stops;
        }
        self.parked.insert(peer, change);
        self.parked_until.get_or_insert_with(|| Deadline::after(options.timeout));
        true
    }

    fn unpark(&mut self) {
        self.parked_until = None;
        if self.parked.is_empty() {
            return;
        }
        self.changed.extend(self.parked.drain());
        self.due = Some(Deadline::after(Duration::ZERO));
    }

    fn unwritten(&self) -> usize {
        self.changed.len() + self.parked.len()
    }

    fn keep_lease(&mut self, peer: IpAddr, lease: KnownLease) {
        let may_sweep = self.swept.is_none_or(|swept| swept.left().is_none());
        if self.leases.len() >= MAX_LEASES && may_sweep {
            self.leases.retain(|_, lease| lease.until.left().is_some());
            self.swept = Some(Deadline::after(SWEEP));
        }
        if self.leases.len() < MAX_LEASES {
            self.leases.insert(peer, lease);
        }
    }
}

/// Work for one exchange.
#[derive(Debug, Default)]
struct Batch {
    wanted: Vec<IpAddr>,
    changed: Vec<(IpAddr, Change)>,
}

impl core::fmt::Debug for Shared {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Shared").field("counters", &self.counters).finish_non_exhaustive()
    }
}

impl Shared {
    pub fn new(local: History, options: Options, found: Found) -> Self {
        Self {
            local,
            counters: Mutex::default(),
            options,
            found,
            host: RandomState::new().hash_one(std::process::id()),
            queue: Mutex::new(Queue { is_away: true, ..Queue::default() }),
            wake: Condvar::new(),
            progress: Condvar::new(),
        }
    }

    pub fn look_up(&self, peer: IpAddr) {
        let mut queue = locked(&self.queue);
        let is_leased = queue.leases.get(&peer).is_some_and(|lease| lease.until.left().is_some());
        if is_leased || queue.pending.contains(&peer) {
            return;
        }
        if queue.is_away || queue.wanted.len() >= MAX_WAITING {
            drop(queue);
            locked(&self.counters).skipped += 1;
            return;
        }
        queue.wanted.push_back(peer);
        queue.pending.insert(peer);
        drop(queue);
        self.wake.notify_one();
    }

    /// True if another host has a lease; true if the server's answer is not there yet.
    pub fn state_of(&self, peer: IpAddr) -> (bool, bool) {
        let queue = locked(&self.queue);
        let lease = queue.leases.get(&peer);
        let is_leased = lease.is_some_and(|lease| !lease.is_ours && lease.until.left().is_some());
        (is_leased, queue.pending.contains(&peer))
    }

    pub fn mark_written(&self, peer: IpAddr) {
        self.mark(peer, Change::Newest);
    }

    pub fn mark_dropped(&self, peer: IpAddr, misled: &Record) {
        self.mark(peer, Change::Dropped(emptied(misled)));
    }

    fn mark(&self, peer: IpAddr, change: Change) {
        if !locked(&self.queue).put(peer, change, &self.options) {
            locked(&self.counters).lost += 1;
        }
        self.wake.notify_one();
    }

    pub fn counters(&self) -> Counters {
        let waiting = {
            let queue = locked(&self.queue);
            queue.unwritten() + queue.writing
        };
        Counters { waiting, ..locked(&self.counters).clone() }
    }

    pub fn hurry(&self) {
        locked(&self.queue).hurries = true;
        self.wake.notify_one();
    }

    pub fn is_idle(&self) -> bool {
        let queue = locked(&self.queue);
        queue.pending.is_empty() && queue.unwritten() == 0 && queue.writing == 0
    }

    pub fn wait_for_progress(&self, wait: Duration) {
        let queue = locked(&self.queue);
        drop(self.progress.wait_timeout(queue, wait).unwrap_or_else(PoisonError::into_inner));
    }

    pub fn stop(&self) {
        let mut queue = locked(&self.queue);
        queue.stops = true;
        queue.unpark();
        drop(queue);
        self.wake.notify_all();
    }

    pub fn work_until_stopped(&self, address: &Address) {
        let mut remote: Option<Remote> = None;
        let mut pause = FIRST_PAUSE;
        loop {
            let result = match &mut remote {
                None => self.connect(address).map(|connected| remote = Some(connected)),
                Some(remote) => match self.next_batch() {
                    None => return,
                    Some(batch) => self.exchange(remote, batch),
                },
            };
            match result {
                Ok(()) => pause = FIRST_PAUSE,
                Err(error) => {
                    remote = None;
                    self.fail(&error);
                    if self.pause(pause) {
                        return;
                    }
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    fn connect(&self, address: &Address) -> Result<Remote, LinkError> {
        let remote = Remote::connect(address, self.options.timeout)?;
        locked(&self.queue).is_away = false;
        let mut counters = locked(&self.counters);
        (counters.state, counters.last_error) = (State::Up, None);
        Ok(remote)
    }

    /// Waits for work. None if it is time to stop and nothing waits.
    fn next_batch(&self) -> Option<Batch> {
        let mut queue = locked(&self.queue);
        loop {
            if queue.parked_until.is_some_and(|until| until.left().is_none()) {
                queue.unpark();
            }
            let is_due = queue.hurries || queue.stops || queue.due.is_some_and(|due| due.left().is_none());
            let writes = is_due && !queue.changed.is_empty();
            if writes || !queue.wanted.is_empty() {
                break;
            }
            if queue.stops {
                return None;
            }
            queue.hurries = false;
            let mut wait = FOREVER;
            for deadline in [queue.due, queue.parked_until] {
                wait = wait.min(deadline.and_then(Deadline::left).unwrap_or(FOREVER));
            }
            queue = self.wake.wait_timeout(queue, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
        let count = queue.wanted.len().min(BATCH);
        let wanted = queue.wanted.drain(..count).collect();
        let is_due = queue.hurries || queue.stops || queue.due.is_some_and(|due| due.left().is_none());
        let peers: Vec<IpAddr> = match is_due {
            true => queue.changed.keys().copied().take(BATCH).collect(),
            false => vec![],
        };
        let changed: Vec<_> =
            peers.into_iter().filter_map(|peer| Some((peer, queue.changed.remove(&peer)?))).collect();
        queue.writing = changed.len();
        if queue.changed.is_empty() {
            queue.due = None;
        }
        Some(Batch { wanted, changed })
    }

    fn exchange(&self, remote: &mut Remote, batch: Batch) -> Result<(), LinkError> {
        let writes: Vec<(IpAddr, Record)> = batch
            .changed
            .iter()
            .filter_map(|(peer, change)| match change {
                Change::Newest => Some((*peer, self.local.peek(*peer)?)),
                Change::Dropped(emptied) => Some((*peer, *emptied)),
            })
            .collect();
        let answered = remote.exchange(self.host, &batch.wanted, &writes, &self.options);
        let mut unwritten = HashSet::with_hasher(RandomState::new());
        if let Ok(answers) = &answered {
            for (peer, answer) in batch.wanted.iter().zip(&answers.records) {
                self.take(*peer, answer);
            }
            unwritten.extend(answers.unwritten.iter().copied());
            self.count(answers, writes.len());
        }
        let mut queue = locked(&self.queue);
        queue.writing = 0;
        for peer in &batch.wanted {
            queue.pending.remove(peer);
        }
        let mut lost = 0;
        for (peer, change) in batch.changed {
            if queue.changed.contains_key(&peer) {
                continue;
            }
            let has_room = if answered.is_err() {
                queue.put(peer, change, &self.options)
            } else {
                !unwritten.contains(&peer) || queue.park(peer, change, &self.options)
            };
            lost += u64::from(!has_room);
        }
        drop(queue);
        locked(&self.counters).lost += lost;
        self.progress.notify_all();
        answered.map(drop)
    }

    fn count(&self, answers: &Answers, writes: usize) {
        let mut counters = locked(&self.counters);
        counters.asked += answers.records.len() as u64;
        counters.refused += answers.unwritten.len() as u64;
        counters.damaged += answers.damaged;
        counters.written += (writes - answers.unwritten.len()) as u64 - answers.damaged;
        // Only a write can tell that it is full no more.
        if let Some(reason) = &answers.full {
            (counters.state, counters.last_error) = (State::Full, Some(reason.clone()));
        } else if writes > 0 {
            (counters.state, counters.last_error) = (State::Up, None);
        }
    }

    /// Takes the server's answer into the local table.
    fn take(&self, peer: IpAddr, answer: &Answer) {
        let held = self.local.peek(peer);
        match answer {
            Answer::None => {
                // It has lost it, or never had it.
                if held.is_some() {
                    self.mark_written(peer);
                }
            }
            Answer::Damaged => locked(&self.counters).damaged += 1,
            Answer::Record { record, lease, is_ours } => {
                let record = not_from_the_future(*record, unix_now());
                self.local.restore(peer, record);
                if *is_ours {
                    (self.found)(peer, &record);
                }
                let mut queue = locked(&self.queue);
                let until = Deadline::after((*lease).min(self.options.lease));
                queue.keep_lease(peer, KnownLease { until, is_ours: *is_ours });
                drop(queue);
                let mut counters = locked(&self.counters);
                counters.found += 1;
                counters.leased += u64::from(!is_ours);
            }
        }
    }

    fn fail(&self, error: &LinkError) {
        let mut queue = locked(&self.queue);
        queue.is_away = true;
        let skipped = queue.wanted.len() as u64;
        queue.wanted.clear();
        queue.pending.clear();
        drop(queue);
        let mut counters = locked(&self.counters);
        counters.skipped += skipped;
        counters.failures += 1;
        (counters.state, counters.last_error) = (State::Away, Some(error.to_string()));
    }

    /// True if it is time to stop.
    fn pause(&self, pause: Duration) -> bool {
        let over = Deadline::after(pause);
        let mut queue = locked(&self.queue);
        loop {
            let left = over.left().filter(|_| !queue.stops);
            let Some(left) = left else { return queue.stops };
            queue = self.wake.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
