//! The table, its leases, and the thread that writes what changed.

use core::fmt;
use core::net::IpAddr;
use core::time::Duration;
use std::hash::RandomState;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use hashbrown::HashSet;
use headstart_adapter::{Sharded, Store};
use headstart_host::{locked, unix_now};
use headstart_startup::history::{
    Counters, Lease, MemoryStore, Networks, Record, RecordUpdate, Revision, SharedCredit, SharedRecord,
    StoreChange,
};
use headstart_units::Bytes;

use crate::error::{Error, Reason};
use crate::file::{Loaded, MAX_SLOTS, Opened, RecordFile};

/// Settings of a history file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Peers remembered at most. 65 536: 4 MiB of file and some 10 MB of memory.
    pub capacity: usize,
    /// Longest delay of a write. Half a second: with the time of the write itself, at most one
    /// second of changes is lost. More than a second is taken as one, less than 10 ms as that.
    pub interval: Duration,
    /// Wait for the disk after each write (`fsync`), so that a power failure loses no more than a
    /// killed process does. Only the thread that writes waits. True.
    pub sync: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { capacity: 1 << 16, interval: Duration::from_millis(500), sync: true }
    }
}

/// A whole host's history, to be cloned into everything that needs it. The last clone writes what
/// is left and waits for it.
#[derive(Clone, Debug)]
pub struct History {
    owner: Arc<Owner>,
}

/// Ends the thread with the last handle.
#[derive(Debug)]
struct Owner {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

struct Shared {
    table: Sharded,
    changed: Mutex<ChangedPeers>,
    file: Option<Mutex<RecordFile>>,
    sync: bool,
    last_error: Mutex<Option<String>>,
    /// Times that the file was gone.
    removals: AtomicU64,
    stop: Mutex<bool>,
    stopped: Condvar,
}

/// Whose slots are out of date.
#[derive(Debug)]
struct ChangedPeers {
    peers: HashSet<IpAddr, RandomState>,
    /// Too many to list, or unknown.
    all: bool,
    limit: usize,
}

impl ChangedPeers {
    fn mark(&mut self, peer: Option<IpAddr>) {
        if let (Some(peer), false) = (peer, self.all) {
            self.peers.insert(peer);
            // Thousands of addresses that push each other out must not fill the list instead.
            if self.peers.len() > self.limit {
                self.mark_all();
            }
        }
    }

    fn mark_all(&mut self) {
        self.peers = HashSet::default();
        self.all = true;
    }
}

impl History {
    /// A history that ends with the process, for `capacity` peers.
    #[must_use]
    pub fn in_memory(capacity: usize) -> Self {
        let shared = Arc::new(Shared::new(capacity.min(MAX_SLOTS), None, false));
        Self { owner: Arc::new(Owner { shared, writer: None }) }
    }

    /// Opens or makes a history file. [`Loaded::notice`] lists its repairs: log them.
    ///
    /// # Errors
    /// If another process uses the file, it is no history, or it cannot be read and written.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<(Self, Loaded), Error> {
        let path = path.as_ref();
        let refuse = |reason| Error { path: path.to_owned(), reason };
        if options.capacity == 0 || options.capacity > MAX_SLOTS {
            return Err(refuse(Reason::Capacity { found: options.capacity }));
        }
        let Opened { mut file, records, mut loaded } = RecordFile::open(path, unix_now())?;
        let table = Shared::new(options.capacity, None, options.sync);
        for (peer, record) in records {
            let changed = table.table.shard(peer).restore(peer, record);
            if let Some(peer) = changed.removed {
                loaded.evicted += 1;
                loaded.records -= 1;
                file.remove(peer)
                    .map_err(|source| refuse(Reason::Io { doing: "make room in it", source }))?;
            }
        }
        file.shrink(options.capacity as u32)
            .map_err(|source| refuse(Reason::Io { doing: "shrink it", source }))?;
        let shared = Arc::new(Shared { file: Some(Mutex::new(file)), ..table });
        let interval = options.interval.clamp(Duration::from_millis(10), Duration::from_secs(1));
        let writing = Arc::clone(&shared);
        let writer = Builder::new()
            .name("headstart-history".to_owned())
            .spawn(move || writing.write_until_stopped(interval))
            .map_err(|source| refuse(Reason::Io { doing: "start the thread that writes it", source }))?;
        Ok((Self { owner: Arc::new(Owner { shared, writer: Some(writer) }) }, loaded))
    }

    fn change(&self, peer: IpAddr, change: impl FnOnce(&mut MemoryStore<RandomState>) -> StoreChange) {
        let shared = &self.owner.shared;
        let changed = change(&mut shared.table.shard(peer));
        if shared.file.is_some() {
            let mut peers = locked(&shared.changed);
            peers.mark(changed.removed);
            peers.mark(changed.written);
        }
    }

    /// Divides first contacts into these networks instead of sites: each has a credit of its own.
    pub fn divide(&self, networks: &Networks) {
        self.owner.shared.table.divide(networks);
    }

    /// Puts a record from elsewhere into the table, unless it has a newer one of that peer.
    pub fn restore(&self, peer: IpAddr, record: Record) {
        self.change(peer, |table| table.restore(peer, record));
    }

    /// All records, in no order.
    #[must_use]
    pub fn records(&self) -> Vec<(IpAddr, Record)> {
        self.owner.shared.records()
    }

    /// Removes a peer's record, if there is one.
    pub fn remove(&self, peer: IpAddr) {
        let (_, lease) = self.open(peer);
        self.close(lease, RecordUpdate::Remove);
    }

    /// Record of a peer, without marking it as used.
    #[must_use]
    pub fn peek(&self, peer: IpAddr) -> Option<Record> {
        self.owner.shared.table.shard(peer).peek(peer)
    }

    /// Writes now what is waiting to be written.
    ///
    /// # Errors
    /// If the system cannot; it is tried again at the next interval.
    pub fn flush(&self) -> io::Result<()> {
        self.owner.shared.flush()
    }

    /// The error of the last attempt to write, if it failed. The table goes on without the
    /// file, which is tried again at every interval.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        locked(&self.owner.shared.last_error).clone()
    }

    /// How often the file was not at its path any more, and was made anew with all records.
    #[must_use]
    pub fn removals(&self) -> u64 {
        self.owner.shared.removals.load(Ordering::Relaxed)
    }

    /// Peers remembered now.
    #[must_use]
    pub fn len(&self) -> usize {
        self.owner.shared.table.len()
    }

    /// True if there is no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hits, misses and evictions so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.owner.shared.table.shards().fold(Counters::default(), |sum, shard| {
            let Counters { hits, misses, evictions } = shard.counters();
            Counters {
                hits: sum.hits + hits,
                misses: sum.misses + misses,
                evictions: sum.evictions + evictions,
            }
        })
    }

    /// Memory that each remembered peer takes, the file's directory included.
    #[must_use]
    pub fn bytes_per_entry(&self) -> usize {
        let shared = &self.owner.shared;
        let directory = shared.file.as_ref().map_or(0, |file| locked(file).directory_bytes());
        let tables = shared.table.shards();
        let total = tables.fold(directory, |sum, shard| sum + shard.bytes_per_entry() * shard.len());
        total.checked_div(self.len()).unwrap_or(0)
    }

    /// Length of the file, in bytes; `None` in memory.
    #[must_use]
    pub fn file_length(&self) -> Option<u64> {
        self.owner.shared.file.as_ref().map(|file| locked(file).length())
    }
}

impl Store for History {
    fn open(&self, peer: IpAddr) -> (Option<SharedRecord>, Lease) {
        self.owner.shared.table.open(peer)
    }

    fn reserve(&self, lease: &mut Lease, plan: &mut dyn FnMut(SharedCredit) -> Bytes) {
        self.owner.shared.table.reserve(lease, plan);
    }

    fn release(&self, lease: &mut Lease, revision: &Revision) {
        self.change(lease.peer(), |table| table.settle_flight(lease, revision));
    }

    fn suspend(&self, lease: &mut Lease) {
        self.owner.shared.table.suspend(lease);
    }

    fn resume(&self, lease: &mut Lease) -> u32 {
        self.owner.shared.table.resume(lease)
    }

    fn close(&self, lease: Lease, outcome: RecordUpdate) {
        self.change(lease.peer(), |table| table.settle(lease, outcome));
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        *locked(&self.shared.stop) = true;
        self.shared.stopped.notify_all();
        if let Some(writer) = self.writer.take() {
            // It cannot have panicked, and `drop` has no way to report that.
            let _ = writer.join();
        }
    }
}

impl Shared {
    fn new(capacity: usize, file: Option<Mutex<RecordFile>>, sync: bool) -> Self {
        let changed = ChangedPeers { peers: HashSet::default(), all: false, limit: capacity.max(1024) };
        Self {
            table: Sharded::new(capacity),
            changed: Mutex::new(changed),
            file,
            sync,
            last_error: Mutex::new(None),
            removals: AtomicU64::new(0),
            stop: Mutex::new(false),
            stopped: Condvar::new(),
        }
    }

    fn records(&self) -> Vec<(IpAddr, Record)> {
        self.table.shards().flat_map(|shard| shard.records().collect::<Vec<_>>()).collect()
    }

    fn write_until_stopped(&self, interval: Duration) {
        loop {
            let stop = locked(&self.stop);
            let waited = self.stopped.wait_timeout_while(stop, interval, |stop| !*stop);
            let stop = *waited.unwrap_or_else(PoisonError::into_inner).0;
            // `last_error` reports an error.
            let _ = self.flush();
            if stop {
                return;
            }
        }
    }

    fn flush(&self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        // Held from before the first change is read until it is written, so that no older state is
        // written over a newer one.
        let mut file = locked(file);
        let result = self.write(&mut file);
        *locked(&self.last_error) = match &result {
            Ok(()) => None,
            Err(error) => Some(format!("history file {}: cannot write: {error}", file.path().display())),
        };
        result
    }

    fn write(&self, file: &mut RecordFile) -> io::Result<()> {
        if file.remake_if_removed()? {
            self.removals.fetch_add(1, Ordering::Relaxed);
            locked(&self.changed).mark_all();
        }
        let batch = self.take_changes(file);
        let written = apply(file, &batch).and_then(|()| match self.sync && !batch.is_empty() {
            true => file.sync(),
            false => Ok(()),
        });
        // Changes that may not have reached the disk are written again at the next interval.
        written.inspect_err(|_| locked(&self.changed).mark_all())
    }

    /// Whose slots to write, with what is to be in them. A change that is not marked yet is
    /// written at the next interval.
    fn take_changes(&self, file: &RecordFile) -> Vec<(IpAddr, Option<Record>)> {
        let (peers, all) = {
            let mut changed = locked(&self.changed);
            (core::mem::take(&mut changed.peers), core::mem::take(&mut changed.all))
        };
        let now = |peer| (peer, self.table.shard(peer).peek(peer));
        if all {
            let removed = file.peers().map(now).filter(|(_, record)| record.is_none());
            let mut batch: Vec<_> = removed.collect();
            batch.extend(self.records().into_iter().map(|(peer, record)| (peer, Some(record))));
            return batch;
        }
        let mut batch: Vec<_> = peers.into_iter().map(now).collect();
        // Removals first: they free slots for insertions.
        batch.sort_by_key(|(_, record)| record.is_some());
        batch
    }
}

fn apply(file: &mut RecordFile, batch: &[(IpAddr, Option<Record>)]) -> io::Result<()> {
    batch.iter().try_for_each(|(peer, record)| match record {
        Some(record) => file.put(*peer, record),
        None => file.remove(*peer),
    })?;
    file.shrink_directory();
    Ok(())
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("table", &self.table).field("file", &self.file).finish()
    }
}
