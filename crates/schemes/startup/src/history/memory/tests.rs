use super::*;
use crate::history::testing::prior_with;
use alloc::vec::Vec;
use headstart_units::Rate;
use proptest::prelude::*;

fn peer(number: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, number])
}

fn record(rate: u64, saved_at: u64) -> Record {
    let template = prior_with(rate, 100).history.expect("a record").record;
    Record { saved_at: Time::from_millis(saved_at), ..template }
}

fn store(capacity: usize) -> MemoryStore {
    MemoryStore::new(capacity, FixedHash::default())
}

/// A connection to `number` that measures `rate`.
fn visit(store: &mut MemoryStore, number: u8, rate: u64) {
    let (_, lease) = store.open(peer(number));
    store.close(lease, RecordUpdate::Replace(record(rate, rate)));
}

fn rate_of(known: Option<SharedRecord>) -> Option<Rate> {
    known.map(|known| known.record.btl_bw)
}

#[test]
fn the_next_connection_gets_the_record_of_the_last() {
    let mut store = store(8);
    let (known, lease) = store.open(peer(1));
    assert_eq!(known, None);
    store.close(lease, RecordUpdate::Replace(record(5, 0)));
    let (known, lease) = store.open(IpAddr::V6(core::net::Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped()));
    assert_eq!(known, Some(SharedRecord { record: record(5, 0), live: 0 }), "however the address is written");
    store.close(lease, RecordUpdate::Keep);
    assert_eq!(store.counters(), Counters { hits: 1, misses: 1, evictions: 0 });
}

#[test]
fn concurrent_starts_from_one_record_count_each_other() {
    let mut store = store(8);
    visit(&mut store, 1, 5);
    let (first, first_lease) = store.open(peer(1));
    let (second, second_lease) = store.open(peer(1));
    assert_eq!((first.map(|known| known.live), second.map(|known| known.live)), (Some(0), Some(1)));
    store.close(first_lease, RecordUpdate::Replace(record(6, 6)));
    let (third, third_lease) = store.open(peer(1));
    assert_eq!(third.map(|known| known.live), Some(1), "the second is alive, though the record is new");
    store.close(second_lease, RecordUpdate::Keep);
    store.close(third_lease, RecordUpdate::Keep);
    assert_eq!(store.open(peer(1)).0.map(|known| known.live), Some(0));
}

#[test]
fn a_connection_whose_peer_is_silent_is_not_counted_until_it_answers() {
    let mut store = store(8);
    visit(&mut store, 1, 5);
    let (_, mut lost) = store.open(peer(1));
    reserve(&mut store, &mut lost, 500);
    store.suspend(&mut lost);
    store.suspend(&mut lost);
    let (known, mut next) = store.open(peer(1));
    assert_eq!(known.map(|known| known.live), Some(0));
    assert_eq!(reserve(&mut store, &mut next, 700).0, 0, "its first flight has left the path");
    store.resume(&mut lost);
    store.resume(&mut lost);
    let (known, mut third) = store.open(peer(1));
    assert_eq!(known.map(|known| known.live), Some(2));
    assert_eq!(reserve(&mut store, &mut third, 0).0, 700, "it does not reserve again");
    store.suspend(&mut lost);
    for lease in [lost, next, third] {
        store.close(lease, RecordUpdate::Keep);
    }
    assert_eq!(store.open(peer(1)).0.map(|known| known.live), Some(0));
}

/// Reserves `bytes`; returns the shared room before.
fn reserve(store: &mut MemoryStore, lease: &mut Lease, bytes: u64) -> (u64, Option<u64>) {
    let mut found = None;
    store.reserve(lease, &mut |room| {
        found = Some((room.reserved.get(), room.credit.map(Bytes::get)));
        Bytes::new(bytes)
    });
    found.expect("asked at once")
}

fn fate(earned: u64, spent: u64) -> Revision {
    let [start, earned, most, spent, least] = [50_000, earned, 90_000, spent, 10_000].map(Bytes::new);
    Revision { start, earned, most, spent, least, known: Bytes::ZERO }
}

#[test]
fn first_flights_to_a_peer_are_reserved_until_their_outcome_or_the_close() {
    let mut store = store(8);
    let (_, mut first) = store.open(peer(1));
    let (_, mut second) = store.open(peer(1));
    let (_, mut elsewhere) = store.open(peer(2));
    assert_eq!(reserve(&mut store, &mut first, 30_000), (0, None));
    assert_eq!(reserve(&mut store, &mut second, 20_000), (30_000, None), "though there is no record");
    assert_eq!(reserve(&mut store, &mut elsewhere, 10_000), (0, None));
    store.release(&mut first, &fate(0, 0));
    let (_, mut third) = store.open(peer(1));
    assert_eq!(reserve(&mut store, &mut third, 1).0, 20_000, "the first is over");
    store.close(second, RecordUpdate::Keep);
    store.close(first, RecordUpdate::Keep);
    store.close(elsewhere, RecordUpdate::Keep);
    let (_, mut fourth) = store.open(peer(1));
    assert_eq!(reserve(&mut store, &mut fourth, 0).0, 1, "nobody's reservation ends twice");
    store.close(third, RecordUpdate::Remove);
    store.close(fourth, RecordUpdate::Keep);
    assert!(store.flights.is_empty(), "nothing is kept of those who are gone");
}

#[test]
fn each_peer_has_a_credit_and_first_contacts_share_one() {
    let mut store = store(8);
    let (_, mut lease) = store.open(peer(1));
    assert_eq!(reserve(&mut store, &mut lease, 1), (0, None));
    store.release(&mut lease, &fate(0, 20_000));
    store.close(lease, RecordUpdate::Replace(record(5, 0)));
    assert_eq!(store.peek(peer(1)).map(|record| record.credit.get()), Some(30_000), "its record has it");
    let (_, mut stranger) = store.open(peer(2));
    assert_eq!(reserve(&mut store, &mut stranger, 1), (0, Some(30_000)), "who was never seen has learnt");
    store.close(stranger, RecordUpdate::Keep);
    let (_, mut again) = store.open(peer(1));
    assert_eq!(reserve(&mut store, &mut again, 1), (0, Some(30_000)));
    store.release(&mut again, &fate(4_000, 0));
    store.close(again, RecordUpdate::Replace(record(6, 6)));
    assert_eq!(store.peek(peer(1)).map(|record| record.credit.get()), Some(34_000), "a new record keeps it");
    let (_, mut stranger) = store.open(peer(3));
    assert_eq!(reserve(&mut store, &mut stranger, 1).1, Some(30_000), "known peers say nothing of others");
    store.close(stranger, RecordUpdate::Replace(record(7, 7)));
    let larger = Record { credit: Bytes::new(60_000), ..record(8, 8) };
    let (_, lease) = store.open(peer(1));
    store.close(lease, RecordUpdate::Replace(larger));
    assert_eq!(store.peek(peer(1)).map(|record| record.credit.get()), Some(60_000), "it carried more");
}

#[test]
fn the_least_recently_used_peer_is_evicted_first() {
    let mut store = store(2);
    visit(&mut store, 1, 1);
    visit(&mut store, 2, 2);
    visit(&mut store, 1, 3);
    visit(&mut store, 3, 4);
    assert_eq!((store.len(), store.capacity(), store.counters().evictions), (2, 2, 1));
    assert!(store.find(peer(2)).is_none());
    assert!(store.find(peer(1)).is_some() && store.find(peer(3)).is_some());
}

#[test]
fn a_record_may_be_evicted_while_its_connections_are_open() {
    let mut store = store(1);
    visit(&mut store, 1, 1);
    let (_, early) = store.open(peer(1));
    let (_, late) = store.open(peer(1));
    visit(&mut store, 2, 2);
    visit(&mut store, 1, 3);
    let (known, newest) = store.open(peer(1));
    assert_eq!(known.map(|known| known.live), Some(0), "nobody else began from this one");
    store.close(early, RecordUpdate::Remove);
    assert!(store.find(peer(1)).is_some(), "not the record that misled it");
    store.close(late, RecordUpdate::Replace(record(4, 4)));
    let (known, last) = store.open(peer(1));
    assert_eq!(known, Some(SharedRecord { record: record(4, 4), live: 1 }));
    store.close(newest, RecordUpdate::Keep);
    store.close(last, RecordUpdate::Keep);
}

#[test]
fn a_wrong_record_is_removed_unless_it_was_replaced() {
    let mut store = store(4);
    visit(&mut store, 1, 1);
    let (_, misled) = store.open(peer(1));
    store.close(misled, RecordUpdate::Remove);
    assert!(store.is_empty());
    visit(&mut store, 1, 1);
    let (_, misled) = store.open(peer(1));
    visit(&mut store, 1, 2);
    store.close(misled, RecordUpdate::Remove);
    assert_eq!(rate_of(store.open(peer(1)).0), Some(Rate::from_bytes_per_sec(2000)));
}

#[test]
fn the_newest_record_is_kept_in_any_order_of_closing() {
    let mut store = store(4);
    let (_, slow) = store.open(peer(1));
    visit(&mut store, 1, 9);
    store.close(slow, RecordUpdate::Replace(record(1, 8)));
    assert_eq!(rate_of(store.open(peer(1)).0), Some(Rate::from_bytes_per_sec(9000)));
}

#[test]
fn with_zero_capacity_nothing_is_stored() {
    let mut store = store(0);
    visit(&mut store, 1, 1);
    visit(&mut store, 1, 1);
    assert_eq!((store.len(), store.counters()), (0, Counters { hits: 0, misses: 2, evictions: 0 }));
}

#[test]
fn a_flush_removes_all_records_and_open_connections_stay_valid() {
    let mut store = store(4);
    visit(&mut store, 1, 1);
    let (_, lease) = store.open(peer(1));
    store.flush();
    visit(&mut store, 1, 2);
    store.close(lease, RecordUpdate::Remove);
    assert_eq!(store.open(peer(1)).0.map(|known| known.live), Some(0));
}

/// A hundred thousand peers, about the number that WiseStart §4.2 kept in 19 MB.
#[test]
fn an_entry_costs_some_hundred_bytes() {
    let mut store = store(1 << 16);
    for number in 0..1u32 << 16 {
        let (_, lease) = store.open(IpAddr::from(number.to_be_bytes()));
        store.close(lease, RecordUpdate::Replace(record(1, 1)));
    }
    let bytes = store.bytes_per_entry();
    assert!((size_of::<Entry>()..160).contains(&bytes), "{bytes} bytes");
    assert_eq!(size_of::<Entry>(), 96, "credit and excess cost nothing");
}

/// The simplest store: a list, most recently used first. Leases count live connections.
#[derive(Default)]
struct Model {
    capacity: usize,
    /// Peer, record, serial number of the entry, and of the record.
    entries: Vec<(u8, Record, u64, u64)>,
    /// Serial numbers of entry and record held by each open connection.
    held: Vec<Option<(u64, u64)>>,
    /// Open connections that are suspended, in the same order.
    suspended: Vec<bool>,
    serial: u64,
    evictions: u64,
}

impl Model {
    fn open(&mut self, number: u8) -> Option<SharedRecord> {
        let Some(at) = self.entries.iter().position(|entry| entry.0 == number) else {
            self.held.push(None);
            self.suspended.push(false);
            return None;
        };
        let entry = self.entries.remove(at);
        self.entries.insert(0, entry);
        let counted = self.held.iter().zip(&self.suspended).filter(|(_, suspended)| !**suspended);
        let live = counted.filter(|(held, _)| held.is_some_and(|held| held.0 == entry.2)).count() as u32;
        self.held.push(Some((entry.2, entry.3)));
        self.suspended.push(false);
        Some(SharedRecord { record: entry.1, live })
    }

    fn close(&mut self, connection: usize, number: u8, outcome: RecordUpdate) {
        let held = self.held.swap_remove(connection);
        self.suspended.swap_remove(connection);
        self.serial += 1;
        match outcome {
            RecordUpdate::Keep => {}
            RecordUpdate::Remove => self.entries.retain(|entry| Some((entry.2, entry.3)) != held),
            RecordUpdate::Replace(record) => {
                let mut entry = (number, record, self.serial, self.serial);
                if let Some(at) = self.entries.iter().position(|entry| entry.0 == number) {
                    let old = self.entries.remove(at);
                    entry.2 = old.2;
                    if old.1.saved_at > record.saved_at {
                        entry = old;
                    }
                }
                self.entries.insert(0, entry);
                if self.entries.len() > self.capacity {
                    self.entries.pop();
                    self.evictions += 1;
                }
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Open(u8),
    Close { connection: usize, kind: u8, rate: u64, saved_at: u64 },
    Suspend { connection: usize, is_suspended: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let open = (0..6u8).prop_map(Step::Open);
    let close = (any::<usize>(), 0..4u8, 1..9u64, 0..9u64)
        .prop_map(|(connection, kind, rate, saved_at)| Step::Close { connection, kind, rate, saved_at });
    let suspend = (any::<usize>(), any::<bool>())
        .prop_map(|(connection, is_suspended)| Step::Suspend { connection, is_suspended });
    proptest::collection::vec(prop_oneof![open, close, suspend], 0..200)
}

proptest! {
    #[test]
    fn the_store_behaves_as_a_plain_list(capacity in 1..5usize, steps in steps()) {
        let mut store = store(capacity);
        let mut model = Model { capacity, ..Model::default() };
        let mut open = Vec::new();
        for step in steps {
            match step {
                Step::Open(number) => {
                    let (known, lease) = store.open(peer(number));
                    open.push((number, lease));
                    prop_assert_eq!(known, model.open(number));
                }
                Step::Close { connection, kind, rate, saved_at } if !open.is_empty() => {
                    let connection = connection % open.len();
                    let (number, lease) = open.swap_remove(connection);
                    let outcome = match kind {
                        0 => RecordUpdate::Keep,
                        1 => RecordUpdate::Remove,
                        _ => RecordUpdate::Replace(record(rate, saved_at)),
                    };
                    store.close(lease, outcome);
                    model.close(connection, number, outcome);
                }
                Step::Suspend { connection, is_suspended } if !open.is_empty() => {
                    let connection = connection % open.len();
                    model.suspended[connection] = is_suspended;
                    let (_, lease) = &mut open[connection];
                    if is_suspended {
                        store.suspend(lease);
                    } else {
                        store.resume(lease);
                    }
                }
                Step::Close { .. } | Step::Suspend { .. } => {}
            }
            prop_assert_eq!(store.len(), model.entries.len());
            prop_assert_eq!(store.counters().evictions, model.evictions);
            let mut at = store.newest;
            for entry in &model.entries {
                prop_assert_eq!(store.entries[at as usize].peer, peer(entry.0));
                at = store.entries[at as usize].older;
            }
            prop_assert_eq!(at, NONE);
        }
    }
}

#[test]
fn changes_are_returned_for_copies_of_the_store() {
    let mut store = store(2);
    let settle = |store: &mut MemoryStore, number, outcome| {
        let (_, lease) = store.open(peer(number));
        assert_eq!(lease.peer(), peer(number));
        let StoreChange { written, removed } = store.settle(lease, outcome);
        (written, removed)
    };
    let measured = |rate| RecordUpdate::Replace(record(rate, rate));
    assert_eq!(settle(&mut store, 1, RecordUpdate::Keep), (None, None));
    assert_eq!(settle(&mut store, 1, measured(5)), (Some(peer(1)), None));
    assert_eq!(settle(&mut store, 1, measured(4)), (None, None), "older than what is known");
    assert_eq!(settle(&mut store, 2, measured(5)), (Some(peer(2)), None));
    assert_eq!(settle(&mut store, 3, measured(6)), (Some(peer(3)), Some(peer(1))), "pushed out");
    assert_eq!(settle(&mut store, 3, RecordUpdate::Remove), (None, Some(peer(3))));
    assert_eq!(
        settle(&mut store, 3, RecordUpdate::Remove),
        (None, None),
        "there was nothing to be misled by"
    );
}

#[test]
fn a_restored_record_does_not_replace_a_newer_one() {
    let mut store = store(1);
    let mapped = IpAddr::V6(core::net::Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped());
    assert_eq!(store.restore(mapped, record(5, 5)), StoreChange { written: Some(peer(1)), removed: None });
    assert_eq!(store.restore(peer(1), record(4, 4)), StoreChange::default());
    assert_eq!(store.peek(mapped), Some(record(5, 5)));
    assert_eq!(store.counters(), Counters::default(), "a peek is no visit");
    assert_eq!(store.records().collect::<Vec<_>>(), [(peer(1), record(5, 5))]);
    let changed = store.restore(peer(2), record(3, 3));
    assert_eq!(changed, StoreChange { written: Some(peer(2)), removed: Some(peer(1)) });
    let mut none = MemoryStore::new(0, FixedHash::default());
    assert_eq!(none.restore(peer(1), record(5, 5)), StoreChange::default());
}
