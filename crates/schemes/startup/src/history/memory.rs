//! A bounded store in memory that evicts the least recently used peer.
//!
//! Source: WiseStart §3.2 (an LRU hash table on the server).
//!
//! Entries lie in one slab, linked from the most to the least recently used; a hash table finds
//! them by address. Nothing depends on the order of the hash table, so any hasher gives the same
//! answers: [`FixedHash`] in simulations, a randomly keyed one (such as `std::hash::RandomState`)
//! where untrusted peers choose the addresses.
//!
//! # Limits
//!
//! - A first visit reserves nothing, so that a flood of handshakes cannot evict records: only a
//!   connection with a measurement takes an entry. Connections without one do not count each other.
//! - An entry may be evicted while connections that began from it are alive. They are not counted
//!   any more; when they close, their measurements make a new entry.
//! - First flights are reserved whether there is a record or not, in a table of their own that
//!   holds as many peers as have a first flight under way.

use alloc::vec::Vec;
use core::hash::{BuildHasher, Hasher};
use core::net::IpAddr;
use hashbrown::HashTable;
use headstart_units::hash::{FNV64, fnv64};
use headstart_units::{Bytes, Rate, Span, Time};

use super::credit::{FirstContacts, Revision, SharedCredit};
use super::networks::Networks;
use super::{FlightOutcome, Lease, Record, RecordUpdate, SharedRecord, Store};

/// No entry: the end of a list.
const NONE: u32 = u32::MAX;
const NANOS_PER_MICRO: u64 = 1000;

/// The record is stored field by field, so that small fields share a word.
#[derive(Clone, Copy, Debug)]
struct Entry {
    peer: IpAddr,
    outcome: FlightOutcome,
    /// In whole microseconds.
    handshake_excess: u16,
    live: u32,
    /// The next more recently used entry.
    newer: u32,
    /// The next less recently used entry; in the list of free places, the next free one.
    older: u32,
    saved_at: Time,
    btl_bw: Rate,
    rt_prop: Span,
    window: Bytes,
    ssthresh: Bytes,
    credit: Bytes,
    /// Counts writes to the store: when this entry was made, and when its record was written.
    born: u64,
    written: u64,
}

impl Entry {
    /// The first record of a peer, with the store's count of writes.
    fn new(peer: IpAddr, record: Record, writes: u64) -> Self {
        let Record { saved_at, btl_bw, rt_prop, window, ssthresh, outcome, credit, handshake_excess } =
            record;
        let handshake_excess = (handshake_excess.as_nanos() / NANOS_PER_MICRO).try_into().unwrap_or(u16::MAX);
        let (live, newer, older, born, written) = (0, NONE, NONE, writes, writes);
        Self {
            peer,
            outcome,
            handshake_excess,
            live,
            newer,
            older,
            saved_at,
            btl_bw,
            rt_prop,
            window,
            ssthresh,
            credit,
            born,
            written,
        }
    }

    fn record(&self) -> Record {
        let Self { saved_at, btl_bw, rt_prop, window, ssthresh, outcome, credit, handshake_excess, .. } =
            *self;
        let handshake_excess = Span::from_micros(handshake_excess.into());
        Record { saved_at, btl_bw, rt_prop, window, ssthresh, outcome, credit, handshake_excess }
    }
}

/// Statistics of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections that found a record.
    pub hits: u64,
    /// Connections that found no record.
    pub misses: u64,
    /// Records that made room for others.
    pub evictions: u64,
}

/// Peers whose records changed when a connection closed, for updates of a copy elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct StoreChange {
    /// There is a newer record of this peer.
    pub written: Option<IpAddr>,
    /// This peer's record was removed.
    pub removed: Option<IpAddr>,
}

/// A bounded table of records, evicting the least recently used.
#[derive(Debug)]
pub struct MemoryStore<S = FixedHash> {
    capacity: usize,
    hasher: S,
    table: HashTable<u32>,
    entries: Vec<Entry>,
    newest: u32,
    oldest: u32,
    free: u32,
    writes: u64,
    counters: Counters,
    /// First flights under way, by peer.
    flights: HashTable<(IpAddr, Bytes)>,
    first_contacts: FirstContacts,
    networks: Networks,
}

impl<S: BuildHasher> MemoryStore<S> {
    /// Room for `capacity` peers; with zero nothing is stored. Memory grows with the peers stored.
    /// All of them share one credit of first contacts, as peers behind one access link do.
    #[must_use]
    pub fn new(capacity: usize, hasher: S) -> Self {
        Self::shard(capacity, hasher, FirstContacts::default())
    }

    /// A part of a larger store whose parts share `first_contacts`, and have the same hasher if it
    /// is by network.
    #[must_use]
    pub fn shard(capacity: usize, hasher: S, first_contacts: FirstContacts) -> Self {
        Self {
            capacity: capacity.min(NONE as usize),
            hasher,
            table: HashTable::new(),
            entries: Vec::new(),
            newest: NONE,
            oldest: NONE,
            free: NONE,
            writes: 0,
            counters: Counters::default(),
            flights: HashTable::new(),
            first_contacts,
            networks: Networks::default(),
        }
    }

    /// Divides first contacts into these networks instead of sites. All parts of a store have the
    /// same; outcomes of others are forgotten as theirs come.
    pub fn divide(&mut self, networks: Networks) {
        self.networks = networks;
    }

    /// Peers in the store.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// True if the store is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Capacity in peers.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Hits, misses and evictions so far.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Memory per stored peer in bytes, unused capacity of slab and table included; of an empty
    /// store, the least size of an entry.
    #[must_use]
    pub fn bytes_per_entry(&self) -> usize {
        let allocated = self.entries.capacity() * size_of::<Entry>() + self.table.allocation_size();
        allocated.checked_div(self.len()).unwrap_or(size_of::<Entry>())
    }

    /// Removes everything (RFC 9959 requires a way to do so after a change of configuration).
    pub fn flush(&mut self) {
        self.table.clear();
        self.entries.clear();
        (self.newest, self.oldest, self.free) = (NONE, NONE, NONE);
        self.first_contacts.clear();
    }

    fn network_hash(&self, peer: IpAddr) -> u64 {
        self.hasher.hash_one(self.networks.find_or_site(peer))
    }

    fn find(&self, peer: IpAddr) -> Option<u32> {
        let hash = self.hasher.hash_one(peer);
        self.table.find(hash, |&at| self.entries[at as usize].peer == peer).copied()
    }

    fn unlink(&mut self, at: u32) {
        let Entry { newer, older, .. } = self.entries[at as usize];
        match newer {
            NONE => self.newest = older,
            _ => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            _ => self.entries[older as usize].newer = newer,
        }
    }

    fn link_as_newest(&mut self, at: u32) {
        let before = self.newest;
        let entry = &mut self.entries[at as usize];
        (entry.newer, entry.older) = (NONE, before);
        match before {
            NONE => self.oldest = at,
            _ => self.entries[before as usize].newer = at,
        }
        self.newest = at;
    }

    fn remove(&mut self, at: u32) {
        self.unlink(at);
        let hash = self.hasher.hash_one(self.entries[at as usize].peer);
        if let Ok(found) = self.table.find_entry(hash, |&other| other == at) {
            found.remove();
        }
        self.entries[at as usize].older = self.free;
        self.free = at;
    }

    /// Inserts a record from another store, as the most recently used. Does nothing if the capacity
    /// is zero, or if there is a newer record of that peer.
    pub fn restore(&mut self, peer: IpAddr, record: Record) -> StoreChange {
        self.write(peer.to_canonical(), record)
    }

    /// The record of a peer, without marking it as used.
    #[must_use]
    pub fn peek(&self, peer: IpAddr) -> Option<Record> {
        self.find(peer.to_canonical()).map(|at| self.entries[at as usize].record())
    }

    /// All records, the most recently used first.
    pub fn records(&self) -> impl Iterator<Item = (IpAddr, Record)> + '_ {
        let mut at = self.newest;
        core::iter::from_fn(move || {
            let entry = self.entries.get(at as usize).filter(|_| at != NONE)?;
            at = entry.older;
            Some((entry.peer, entry.record()))
        })
    }

    /// As [`Store::close`]; returns the changes.
    pub fn settle(&mut self, mut lease: Lease, outcome: RecordUpdate) -> StoreChange {
        self.end_flight(&mut lease);
        let Lease { peer, reserved, credit, is_suspended, .. } = lease;
        let mut changed = StoreChange::default();
        if let (Some(found), Some((born, written))) = (self.find(peer), reserved) {
            let entry = &mut self.entries[found as usize];
            // A different entry if the reserved one was evicted and the peer has returned since.
            if entry.born == born {
                entry.live -= u32::from(!is_suspended);
                if outcome == RecordUpdate::Remove && entry.written == written {
                    self.remove(found);
                    changed.removed = Some(peer);
                }
            }
        }
        match outcome {
            RecordUpdate::Replace(record) => {
                self.write(peer, Record { credit: credit.max(record.credit), ..record })
            }
            RecordUpdate::Keep | RecordUpdate::Remove => changed,
        }
    }

    /// As [`Store::release`]; returns the changes.
    pub fn settle_flight(&mut self, lease: &mut Lease, revision: &Revision) -> StoreChange {
        self.end_flight(lease);
        let network = self.network_hash(lease.peer);
        self.first_contacts.revise_doubt(network, revision);
        if lease.reserved.is_none() {
            lease.credit = self.first_contacts.revise(network, revision);
        }
        let Some(at) = self.find(lease.peer) else { return StoreChange::default() };
        let credit = &mut self.entries[at as usize].credit;
        *credit = revision.of(Some(*credit).filter(|credit| !credit.is_zero()));
        StoreChange { written: Some(lease.peer), removed: None }
    }

    fn end_flight(&mut self, lease: &mut Lease) {
        let held = core::mem::take(&mut lease.flight);
        if held.is_zero() {
            return;
        }
        let hash = self.hasher.hash_one(lease.peer);
        if let Ok(mut found) = self.flights.find_entry(hash, |(peer, _)| *peer == lease.peer) {
            let under_way = &mut found.get_mut().1;
            *under_way = under_way.saturating_sub(held);
            if under_way.is_zero() {
                found.remove();
            }
        }
    }

    /// The entry that the lease counts in, unless it was evicted.
    fn entry_of(&mut self, lease: &Lease) -> Option<&mut Entry> {
        let (born, _) = lease.reserved?;
        let at = self.find(lease.peer)?;
        Some(&mut self.entries[at as usize]).filter(|entry| entry.born == born)
    }

    fn write(&mut self, peer: IpAddr, record: Record) -> StoreChange {
        self.writes += 1;
        let Some(at) = self.find(peer) else {
            return self.insert(peer, record);
        };
        self.unlink(at);
        self.link_as_newest(at);
        let entry = &mut self.entries[at as usize];
        if record.saved_at < entry.saved_at {
            return StoreChange::default();
        }
        let credit = entry.credit.max(record.credit);
        let Entry { live, newer, older, born, .. } = *entry;
        *entry =
            Entry { live, newer, older, born, ..Entry::new(peer, Record { credit, ..record }, self.writes) };
        StoreChange { written: Some(peer), removed: None }
    }

    fn insert(&mut self, peer: IpAddr, record: Record) -> StoreChange {
        let mut changed = StoreChange::default();
        if self.capacity == 0 {
            return changed;
        }
        if self.len() == self.capacity {
            changed.removed = Some(self.entries[self.oldest as usize].peer);
            self.remove(self.oldest);
            self.counters.evictions += 1;
        }
        changed.written = Some(peer);
        let entry = Entry::new(peer, record, self.writes);
        let at = match self.free {
            NONE => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
            at => {
                self.free = self.entries[at as usize].older;
                self.entries[at as usize] = entry;
                at
            }
        };
        let Self { table, entries, hasher, .. } = self;
        table.insert_unique(hasher.hash_one(peer), at, |&at| hasher.hash_one(entries[at as usize].peer));
        self.link_as_newest(at);
        changed
    }
}

impl<S: BuildHasher> Store for MemoryStore<S> {
    fn open(&mut self, peer: IpAddr) -> (Option<SharedRecord>, Lease) {
        // An IPv4 peer of a dual-stack socket is the same peer.
        let peer = peer.to_canonical();
        let Some(at) = self.find(peer) else {
            self.counters.misses += 1;
            return (
                None,
                Lease { peer, reserved: None, flight: Bytes::ZERO, credit: Bytes::ZERO, is_suspended: false },
            );
        };
        self.counters.hits += 1;
        self.unlink(at);
        self.link_as_newest(at);
        let entry = &mut self.entries[at as usize];
        let known = SharedRecord { record: entry.record(), live: entry.live };
        entry.live += 1;
        let reserved = Some((entry.born, entry.written));
        (Some(known), Lease { peer, reserved, flight: Bytes::ZERO, credit: Bytes::ZERO, is_suspended: false })
    }

    fn reserve(&mut self, lease: &mut Lease, plan: &mut dyn FnMut(SharedCredit) -> Bytes) {
        let peer = lease.peer;
        let credit = match lease.reserved.and_then(|_| self.find(peer)) {
            Some(at) => Some(self.entries[at as usize].credit).filter(|credit| !credit.is_zero()),
            None => self.first_contacts.credit(self.network_hash(peer)),
        };
        let hash = self.hasher.hash_one(peer);
        let under_way = self.flights.find(hash, |(other, _)| *other == peer);
        let reserved = under_way.map_or(Bytes::ZERO, |(_, bytes)| *bytes);
        let doubt = self.first_contacts.doubt(self.network_hash(peer));
        let flight = plan(SharedCredit { reserved, credit, doubt });
        lease.flight += flight;
        if flight.is_zero() {
            return;
        }
        let Self { flights, hasher, .. } = self;
        let entry = flights.entry(hash, |(other, _)| *other == peer, |(other, _)| hasher.hash_one(other));
        entry.or_insert((peer, Bytes::ZERO)).get_mut().1 += flight;
    }

    fn release(&mut self, lease: &mut Lease, revision: &Revision) {
        let _ = self.settle_flight(lease, revision);
    }

    fn suspend(&mut self, lease: &mut Lease) {
        self.end_flight(lease);
        if !core::mem::replace(&mut lease.is_suspended, true)
            && let Some(entry) = self.entry_of(lease)
        {
            entry.live -= 1;
        }
    }

    fn resume(&mut self, lease: &mut Lease) -> u32 {
        let was_suspended = core::mem::take(&mut lease.is_suspended);
        let Some(entry) = self.entry_of(lease) else { return 0 };
        entry.live += u32::from(was_suspended);
        entry.live.saturating_sub(1)
    }

    fn close(&mut self, lease: Lease, outcome: RecordUpdate) {
        let _ = self.settle(lease, outcome);
    }
}

/// Hashes the same way on every machine and in every run (FNV-1a, with a last mixing step). Only
/// for addresses that no attacker chooses.
#[derive(Clone, Copy, Debug)]
pub struct FixedHash(u64);

impl Default for FixedHash {
    fn default() -> Self {
        Self(FNV64)
    }
}

impl BuildHasher for FixedHash {
    type Hasher = Self;
    fn build_hasher(&self) -> Self {
        *self
    }
}

impl Hasher for FixedHash {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = fnv64(self.0, bytes.iter().copied());
    }

    fn finish(&self) -> u64 {
        // The table takes its position from the low bits and its tag from the high ones.
        self.0 ^ (self.0 >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

#[cfg(test)]
mod tests;
