//! One history for the hosts of a fleet: a local table in front of a server that speaks Redis'
//! protocol (Valkey, Redis), reached by a thread of its own.
//!
//! # Course of a connection
//!
//! 1. [`Store::prefetch`], when a client's first packet arrives: the peer is put in a queue and
//!    nothing waits. The thread asks the server for record and lease while the handshake goes on,
//!    and puts a newer record into the local table.
//! 2. [`Store::open`], when the client's address is validated: a look-up in the local
//!    table. If the answer is not there yet, the connection starts with what the table has.
//! 3. [`Store::close`] changes the local table; the peer's newest record is written
//!    behind, once for each interval however many connections it had.
//!
//! # On the server
//!
//! | key | value | lives for |
//! |---|---|---|
//! | `PREFIX{PEER}` | a record, the 64 bytes of [`crate::slot`] | [`Options::lifetime`] |
//! | `PREFIX{PEER}:lease` | number of the host that starts from it | [`Options::lease`] |
//!
//! The newest record wins, whichever host writes last. A record that misled a start is replaced by
//! an empty one, which all hosts refuse to start from. A host that finds a lease of another one
//! counts that as one more concurrent connection: the record is shared, as between
//! connections of one host.
//!
//! # Failures
//!
//! While the server is away, slow or full, starts go on from the local table; [`Counters`] says so.
//! Writes wait, one for each peer and [`Options::capacity`] at most; peers that are looked up are
//! not queued. A server that comes back empty gets a peer's record when it is looked up next.
//!
//! # Limits
//!
//! - A lease is neither renewed nor given back. Two hosts may start from one record at once if
//!   their starts are further apart than it lasts, or if the server is away. A forged first packet
//!   takes one as well.
//! - The credit of a peer ([`Revision`]) is adjusted by each host for itself; the larger one is
//!   kept where two meet.

mod address;
mod link;
mod worker;

use core::net::IpAddr;
use core::time::Duration;
use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use headstart_adapter::Store;
use headstart_host::{Deadline, locked};
use headstart_startup::history::{
    FlightOutcome, Lease, Record, RecordUpdate, Revision, SharedCredit, SharedRecord,
};
use headstart_units::{Bytes, Rate, Span, Time};

use crate::history::History;
pub use address::{Address, AddressError};
pub use link::{LinkError, Remote};
use worker::Shared;
pub use worker::{Counters, State};

/// Settings of a host's part of a fleet's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Peers in the local table, and writes that wait, at most. 65 536.
    pub capacity: usize,
    /// Longest delay of a write, in which writes of one peer become one. 200 ms.
    pub interval: Duration,
    /// Time after its last write for which the server keeps a record. A week, so that who comes
    /// every day or every Monday is known; from records of more than ten minutes only Headstart
    /// starts. The server's `maxmemory` bounds how many there are.
    pub lifetime: Duration,
    /// Longest time for which a host has a record to itself: 3 s. Eight of the record's round trips
    /// are enough where they are shorter: a handshake with Retry, a flight and its repair. They
    /// begin with the peer's first packet, or starts at once would not know of each other.
    pub lease: Duration,
    /// Time after which the server counts as away: for a connection and for an answer. 1 s.
    pub timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            capacity: 1 << 16,
            interval: Duration::from_millis(200),
            lifetime: Duration::from_secs(7 * 24 * 3600),
            lease: Duration::from_secs(3),
            timeout: Duration::from_secs(1),
        }
    }
}

/// A host's part of a fleet's history, to be cloned into everything that needs it. The last clone
/// writes what is left, for [`Options::timeout`] at most.
#[derive(Clone, Debug)]
pub struct Fleet {
    owner: Arc<Owner>,
}

/// Ends the thread with the last handle.
#[derive(Debug)]
struct Owner {
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
}

impl Fleet {
    /// Starts the thread that reaches the server at `address`, which need not be there yet.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn open(address: Address, options: Options) -> io::Result<Self> {
        Self::open_with(address, options, |_, _| {})
    }

    /// As [`Fleet::open`], for a host whose connections start from a table of their own. Each
    /// record that the server answers with is passed to `found` on the thread, unless another host
    /// has its lease.
    ///
    /// # Errors
    /// As [`Fleet::open`].
    pub fn open_with(
        address: Address,
        options: Options,
        found: impl Fn(IpAddr, &Record) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let local = History::in_memory(options.capacity);
        let shared = Arc::new(Shared::new(local, options, Box::new(found)));
        let working = Arc::clone(&shared);
        let worker = Builder::new()
            .name("headstart-fleet".to_owned())
            .spawn(move || working.work_until_stopped(&address))?;
        Ok(Self { owner: Arc::new(Owner { shared, worker: Some(worker) }) })
    }

    fn shared(&self) -> &Shared {
        &self.owner.shared
    }

    /// A record that another table of this host has: the newest of a peer is written behind.
    pub fn put(&self, peer: IpAddr, record: Record) {
        self.shared().local.restore(peer, record);
        self.shared().mark_written(peer);
    }

    /// The record of a peer misled a start at `now`, as another table of this host found out: no
    /// host starts from it any more.
    pub fn drop_record(&self, peer: IpAddr, now: Time) {
        self.shared().local.remove(peer);
        let misled = Record { saved_at: now, outcome: FlightOutcome::Lossy, ..Record::default() };
        self.shared().mark_dropped(peer, &misled);
    }

    /// Record of a peer in the local table, without marking it as used.
    #[must_use]
    pub fn peek(&self, peer: IpAddr) -> Option<Record> {
        self.shared().local.peek(peer)
    }

    /// The table of this host.
    #[must_use]
    pub fn local(&self) -> &History {
        &self.shared().local
    }

    /// Counts so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.shared().counters()
    }

    /// Waits until everything is written and every peer that was asked for is answered.
    ///
    /// # Errors
    /// The last failure, if that takes more than `wait`.
    pub fn flush(&self, wait: Duration) -> Result<(), String> {
        let deadline = Deadline::after(wait);
        self.shared().hurry();
        while !self.shared().is_idle() {
            if deadline.left().is_none() {
                let failure = self.counters().last_error;
                return Err(failure.unwrap_or_else(|| "the server is too slow".to_owned()));
            }
            self.shared().wait_for_progress(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.stop();
        if let Some(worker) = self.worker.take() {
            // It cannot have panicked, and `drop` has no way to report that.
            let _ = worker.join();
        }
    }
}

impl Store for Fleet {
    // A connection of `peer` may come: asks the server for its record. Returns at once.
    fn prefetch(&self, peer: IpAddr) {
        self.shared().look_up(peer.to_canonical());
    }

    // A lease of another host counts as one connection more.
    fn open(&self, peer: IpAddr) -> (Option<SharedRecord>, Lease) {
        let shared = self.shared();
        let (known, lease) = shared.local.open(peer);
        let (is_leased, is_late) = shared.state_of(lease.peer());
        if is_late {
            locked(&shared.counters).late += 1;
        }
        let known = known.map(|known| SharedRecord { live: known.live + u32::from(is_leased), ..known });
        (known, lease)
    }

    fn reserve(&self, lease: &mut Lease, plan: &mut dyn FnMut(SharedCredit) -> Bytes) {
        self.shared().local.reserve(lease, plan);
    }

    fn release(&self, lease: &mut Lease, revision: &Revision) {
        self.shared().local.release(lease, revision);
        self.shared().mark_written(lease.peer());
    }

    // Other hosts go on counting it.
    fn suspend(&self, lease: &mut Lease) {
        self.shared().local.suspend(lease);
    }

    // A lease of another host counts as one connection more.
    fn resume(&self, lease: &mut Lease) -> u32 {
        let (is_leased, _) = self.shared().state_of(lease.peer());
        self.shared().local.resume(lease) + u32::from(is_leased)
    }

    fn close(&self, lease: Lease, outcome: RecordUpdate) {
        let (shared, peer) = (self.shared(), lease.peer());
        let before = shared.local.peek(peer);
        shared.local.close(lease, outcome);
        match outcome {
            RecordUpdate::Replace(_) => shared.mark_written(peer),
            RecordUpdate::Remove if shared.local.peek(peer).is_none() => {
                if let Some(misled) = before {
                    shared.mark_dropped(peer, &misled);
                }
            }
            RecordUpdate::Remove | RecordUpdate::Keep => {}
        }
    }
}

/// The replacement of a record that misled a start: no rate, so that nothing starts from it; newer
/// than that record and older than any that is measured afterwards.
fn emptied(misled: &Record) -> Record {
    Record {
        saved_at: misled.saved_at + Span::from_nanos(1),
        btl_bw: Rate::ZERO,
        window: Bytes::ZERO,
        credit: Bytes::ZERO,
        ..*misled
    }
}

/// The record with a time that is not in the future: a host's clock may be ahead.
fn not_from_the_future(record: Record, now: Time) -> Record {
    Record { saved_at: record.saved_at.min(now), ..record }
}
