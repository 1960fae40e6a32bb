//! Records by peer, shared by all connections of a host.
//!
//! [`headstart_startup::history`] defines a store's behaviour; here many threads share it.
//! [`Sharded`] is the default: bounded, evicting the least recently used, with one lock per shard.
//! A store of your own (on disk, in a database) implements [`Store`]; one that implements
//! [`history::Store`] need only be put into a [`Mutex`].
//!
//! # Keys
//!
//! A server keys by the peer's address, of which for IPv6 only the network part counts (RFC 6177: a
//! site has one /64 at least). A client keys by remote address *and* server name ([`server_key`]),
//! for servers at different distances share one address of a content network.

use std::fmt::Debug;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard};

use headstart_host::locked;
use headstart_startup::history::{
    self, FirstContacts, Lease, MemoryStore, Networks, RecordUpdate, Revision, SharedCredit, SharedRecord,
};
use headstart_units::Bytes;
use headstart_units::hash::{FNV128, fnv128};

/// A shared store of records.
pub trait Store: Send + Sync + Debug {
    /// A packet from `peer` may begin a connection: a store that has records elsewhere may fetch
    /// this one. The address may be forged; nothing may wait.
    fn prefetch(&self, peer: IpAddr) {
        let _ = peer;
    }

    /// A connection to `peer` starts: its record, and a lease that counts the connection as live.
    fn open(&self, peer: IpAddr) -> (Option<SharedRecord>, Lease);

    /// The connection's first flight begins: reads the room that the peer's connections share and
    /// reserves the bytes that `plan` returns, in one step. `plan` takes no lock that a store may
    /// hold.
    fn reserve(&self, lease: &mut Lease, plan: &mut dyn FnMut(SharedCredit) -> Bytes);

    /// Every packet of its first flight is acknowledged or lost.
    fn release(&self, lease: &mut Lease, revision: &Revision);

    /// A flight not begun, or a peer that does not answer: the lease does not count as live until
    /// [`Self::resume`].
    fn suspend(&self, lease: &mut Lease);

    /// The lease counts as live again; returns the number of others that do.
    fn resume(&self, lease: &mut Lease) -> u32;

    /// The connection is over: writes the outcome and releases the lease.
    fn close(&self, lease: Lease, outcome: RecordUpdate);
}

impl<S: history::Store + Send + Debug> Store for Mutex<S> {
    fn open(&self, peer: IpAddr) -> (Option<SharedRecord>, Lease) {
        locked(self).open(peer)
    }

    fn reserve(&self, lease: &mut Lease, plan: &mut dyn FnMut(SharedCredit) -> Bytes) {
        locked(self).reserve(lease, plan);
    }

    fn release(&self, lease: &mut Lease, revision: &Revision) {
        locked(self).release(lease, revision);
    }

    fn suspend(&self, lease: &mut Lease) {
        locked(self).suspend(lease);
    }

    fn resume(&self, lease: &mut Lease) -> u32 {
        locked(self).resume(lease)
    }

    fn close(&self, lease: Lease, outcome: RecordUpdate) {
        locked(self).close(lease, outcome);
    }
}

/// A bounded store in memory, sharded so that connections seldom contend for a lock.
#[derive(Debug)]
pub struct Sharded {
    hasher: RandomState,
    shards: Vec<Mutex<MemoryStore<RandomState>>>,
}

/// Enough that the cores of a large server rarely want the same.
const SHARDS: usize = 16;
/// Below this many peers there is one shard: a small table forgets exactly the least recently used.
const MIN_SHARDED_CAPACITY: usize = 4096;

impl Sharded {
    /// A store for `capacity` peers; each shard holds its part, so that a few may be evicted early.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let count = if capacity < MIN_SHARDED_CAPACITY { 1 } else { SHARDS };
        // One key for all parts: the network of a peer has its credit at the same place for each.
        let (contacts, hasher) = (FirstContacts::by_network(), RandomState::new());
        let shard = |number| {
            // The first take what does not divide evenly, so that the sum is what was asked for.
            let capacity = capacity / count + usize::from(number < capacity % count);
            Mutex::new(MemoryStore::shard(capacity, hasher.clone(), contacts.clone()))
        };
        Self { hasher: RandomState::new(), shards: (0..count).map(shard).collect() }
    }

    /// The shard of a peer, however its address is written.
    pub fn shard(&self, peer: IpAddr) -> MutexGuard<'_, MemoryStore<RandomState>> {
        let hash = self.hasher.hash_one(peer.to_canonical());
        // The remainder is below the number of shards, which is a usize.
        locked(&self.shards[(hash % self.shards.len() as u64) as usize])
    }

    /// All shards, one after the other.
    pub fn shards(&self) -> impl Iterator<Item = MutexGuard<'_, MemoryStore<RandomState>>> {
        self.shards.iter().map(locked)
    }

    /// Divides first contacts into these networks instead of sites: each has a credit of its own.
    pub fn divide(&self, networks: &Networks) {
        self.shards().for_each(|mut shard| shard.divide(networks.clone()));
    }

    /// Number of peers stored.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards().map(|shard| shard.len()).sum()
    }

    /// True if nothing is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all records (RFC 9959 calls for this after a change of configuration).
    pub fn flush(&self) {
        self.shards().for_each(|mut shard| shard.flush());
    }
}

/// Room for the peers of a busy day: about 20 MB when full.
impl Default for Sharded {
    fn default() -> Self {
        Self::new(1 << 17)
    }
}

impl Store for Sharded {
    fn open(&self, peer: IpAddr) -> (Option<SharedRecord>, Lease) {
        history::Store::open(&mut *self.shard(peer), peer)
    }

    fn reserve(&self, lease: &mut Lease, plan: &mut dyn FnMut(SharedCredit) -> Bytes) {
        history::Store::reserve(&mut *self.shard(lease.peer()), lease, plan);
    }

    fn release(&self, lease: &mut Lease, revision: &Revision) {
        history::Store::release(&mut *self.shard(lease.peer()), lease, revision);
    }

    fn suspend(&self, lease: &mut Lease) {
        history::Store::suspend(&mut *self.shard(lease.peer()), lease);
    }

    fn resume(&self, lease: &mut Lease) -> u32 {
        history::Store::resume(&mut *self.shard(lease.peer()), lease)
    }

    fn close(&self, lease: Lease, outcome: RecordUpdate) {
        history::Store::close(&mut *self.shard(lease.peer()), lease, outcome);
    }
}

/// The key of a peer that initiated a connection: the whole IPv4 address, of IPv6 the /64.
#[must_use]
pub fn client_key(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        v4 => v4,
    }
}

/// The key of a server: a unique local address (RFC 4193) hashed from its address and name, so that
/// any store can hold it. The hash is the same in every run, for stores on disk; a client chooses
/// its servers, so that no peer can provoke a collision.
#[must_use]
pub fn server_key(remote: IpAddr, server_name: &str) -> IpAddr {
    let address = match remote.to_canonical() {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    let name = server_name.bytes().map(|byte| byte.to_ascii_lowercase());
    let hash = fnv128(FNV128, address.to_be_bytes().into_iter().chain(name));
    // fd00::/8: locally assigned.
    IpAddr::V6(Ipv6Addr::from_bits((hash >> 8) | (0xfd << 120)))
}

/// The record of a peer, without a share in it.
#[must_use]
pub fn peek(store: &dyn Store, peer: IpAddr) -> Option<SharedRecord> {
    let (known, lease) = store.open(peer);
    store.close(lease, RecordUpdate::Keep);
    known
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_startup::history::Record;
    use headstart_units::{Rate, Span};
    use std::net::Ipv4Addr;

    fn record(mbit: u64) -> Record {
        Record { btl_bw: Rate::from_mbit_per_sec(mbit), rt_prop: Span::from_millis(50), ..Record::default() }
    }

    fn peer(number: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from(number))
    }

    #[test]
    fn the_next_connection_gets_the_record_of_the_last() {
        let stores: [&dyn Store; 2] =
            [&Sharded::new(10), &Mutex::new(MemoryStore::new(10, RandomState::new()))];
        for store in stores {
            let (known, lease) = store.open(peer(1));
            assert_eq!(known, None);
            store.close(lease, RecordUpdate::Replace(record(25)));
            let (known, first) = store.open(peer(1));
            assert_eq!(known, Some(SharedRecord { record: record(25), live: 0 }));
            let (known, second) = store.open(peer(1));
            assert_eq!(known.map(|it| it.live), Some(1), "they know of each other");
            store.close(first, RecordUpdate::Remove);
            assert_eq!(store.open(peer(1)).0, None);
            store.close(second, RecordUpdate::Keep);
        }
    }

    /// A first contact whose flight earns 1000 bytes of credit and loses `spent`. Returns the
    /// credit before it.
    fn start_flight(store: &Sharded, number: u32, spent: u64) -> Option<u64> {
        let (_, mut lease) = store.open(peer(number));
        let mut credit = None;
        store.reserve(&mut lease, &mut |shared| {
            credit = shared.credit.map(Bytes::get);
            Bytes::new(1)
        });
        let [start, earned, most, spent, least] = [50_000, 1000, 900_000, spent, 1].map(Bytes::new);
        store.release(&mut lease, &Revision { start, earned, most, spent, least, known: Bytes::ZERO });
        store.close(lease, RecordUpdate::Keep);
        credit
    }

    #[test]
    fn first_contacts_of_a_network_share_one_credit_in_all_shards() {
        let store = Sharded::new(10_000);
        let start_flight = |number, spent| start_flight(&store, number, spent);
        assert_eq!(start_flight(0, 0), None);
        for number in 1..100 {
            let (credit, own) = (start_flight(number, 0), 50_000 + 1000 * u64::from(number));
            // Until the network has outcomes of its own, all first contacts together share one,
            // which a single network moves by less and less.
            let is_own = number >= 8;
            assert!(credit == Some(own) || (!is_own && credit < Some(own)), "peer {number}: {credit:?}");
            assert!(credit > Some(50_000), "peer {number}: {credit:?}");
        }
        store.flush();
        assert_eq!(start_flight(100, 0), None);
    }

    #[test]
    fn networks_of_the_operators_have_a_credit_each() {
        // The second half of a site loses everything.
        let credits = |store: &Sharded| {
            let flight = |number, spent| start_flight(store, number, spent);
            (0..20).for_each(|number| {
                flight(number, 0);
                flight(128 + number, 10_000);
            });
            [flight(20, 0), flight(148, 0)]
        };
        let store = Sharded::new(10_000);
        let [first, second] = credits(&store);
        assert_eq!(first.map(|it| it + 1000), second, "without a table they are one network");
        store.flush();
        store.divide(&"0.0.0.0/25\n0.0.0.128/25".parse().expect("a table"));
        let [first, second] = credits(&store);
        assert!(first > Some(10_000) && second < Some(1_000), "{first:?} {second:?}");
    }

    #[test]
    fn the_store_stays_within_its_capacity() {
        let store = Sharded::new(10_000);
        for number in 0..40_000 {
            let (_, lease) = store.open(peer(number));
            store.close(lease, RecordUpdate::Replace(record(1)));
        }
        assert!((9_000..=10_000).contains(&store.len()), "{}", store.len());
        store.flush();
        assert!(store.is_empty());
    }

    #[test]
    fn an_ipv6_site_is_one_peer_and_a_mapped_address_its_ipv4_one() {
        let at = |text: &str| text.parse::<IpAddr>().expect("an address");
        assert_eq!(client_key(at("2001:db8:1:2:3:4:5:6")), client_key(at("2001:db8:1:2::1")));
        assert_ne!(client_key(at("2001:db8:1:2::1")), client_key(at("2001:db8:1:3::1")));
        assert_eq!(client_key(at("::ffff:192.0.2.7")), at("192.0.2.7"));
    }

    #[test]
    fn a_server_is_keyed_by_address_and_name() {
        let key = server_key(peer(7), "example.org");
        assert_eq!(key, server_key(peer(7), "EXAMPLE.org"), "names know no case");
        assert_ne!(key, server_key(peer(7), "example.com"));
        assert_ne!(key, server_key(peer(8), "example.org"));
        assert!(matches!(key, IpAddr::V6(it) if it.octets()[0] == 0xfd));
    }
}
