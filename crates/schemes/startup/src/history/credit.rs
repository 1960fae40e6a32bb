//! The credit of Headstart: bytes that first flights may hold together, priced by what they lose.
//!
//! A peer has its credit in its record. First contacts have none yet: they share one, and once a
//! network has enough outcomes of its own, the credit of that network.

use core::sync::atomic::{AtomicU64, Ordering};

use alloc::sync::Arc;
use headstart_units::{Bytes, Ratio};

/// The shared credit, at the time when a connection plans its first flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedCredit {
    /// First flights of other connections to this peer that are not acknowledged yet, in bytes.
    pub reserved: Bytes,
    /// Bytes that first flights to this peer may hold together. For a peer without a record: the
    /// credit of first contacts with its network, or with any peer. `None`: no flight has ended.
    pub credit: Option<Bytes>,
    /// Share by which first flights of the peer's network were too large of late, in millionths.
    pub doubt: u32,
}

impl SharedCredit {
    /// Share of a known peer's flight that its network's flights of late leave of it.
    #[must_use]
    pub const fn trust(&self) -> Ratio {
        Ratio::new(MILLION.saturating_sub(self.doubt), MILLION)
    }
}

const MILLION: u32 = 1_000_000;

/// Revision of a credit by the outcome of a first flight, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revision {
    /// Initial credit, where there is none yet.
    pub start: Bytes,
    /// Bytes added for the delivered bytes.
    pub earned: Bytes,
    /// The credit does not rise above this. One that is above already stays, and falls to it if
    /// more is lost than gained, by more than `least`: what was in flight then did not fit.
    pub most: Bytes,
    /// Bytes subtracted for the lost bytes.
    pub spent: Bytes,
    /// The credit does not fall below this; one that is below already stays.
    pub least: Bytes,
    /// Bytes of the flight whose fate is known.
    pub known: Bytes,
}

impl Revision {
    /// An outcome that raises a smaller credit to this one.
    #[must_use]
    pub const fn to(credit: Bytes) -> Self {
        let none = Bytes::ZERO;
        Self { start: credit, earned: credit, most: credit, spent: none, least: credit, known: none }
    }

    /// The credit after the outcome.
    #[must_use]
    pub fn of(&self, credit: Option<Bytes>) -> Bytes {
        let mut before = credit.unwrap_or(self.start);
        if self.spent > self.earned + self.least {
            before = before.min(self.most);
        }
        let raised = before.max((before + self.earned).min(self.most));
        raised.min(raised.saturating_sub(self.spent).max(self.least))
    }

    /// The doubt in records after the outcome: as a credit of the size of the flight, at a quarter
    /// of the speed, since the peers of a network share it. A flight of the least says nothing.
    fn doubt_after(&self, before: u64) -> u64 {
        if self.known <= self.least {
            return before;
        }
        let part = |bytes: Bytes| {
            let millionths = u128::from(bytes.get()) * u128::from(MILLION);
            (millionths / (4 * u128::from(self.known.get()))).min(u128::from(MILLION)) as u64
        };
        (before.saturating_sub(part(self.earned)) + part(self.spent)).min(u64::from(MILLION))
    }

    /// The credit of all after an outcome of a network that has had so many. The first one moves it
    /// by an eighth at most, each further one by half as much.
    fn of_all(&self, credit: Option<Bytes>, outcomes: u64) -> Bytes {
        let before = credit.unwrap_or(self.start);
        let part = before / (LARGEST_PART << outcomes.min(OWN_FROM));
        self.of(credit).clamp(before.saturating_sub(part), before + part)
    }
}

/// Part of the credit of all by which one outcome moves it at most.
const LARGEST_PART: u64 = 8;

/// The credit of first contacts, in bytes. Clones are the same: the parts of one store share it.
///
/// Peers of one network often have the same kind of access link, and a server has clients of
/// 1 Mbit/s and of 1 Gbit/s. So a network follows the credit of all until it has had [`OWN_FROM`]
/// outcomes; from then on its own flights alone move its credit.
///
/// Strangers may lose on purpose, or be on a path that loses for reasons of its own. So an outcome
/// moves the credit of all by an eighth at most, and the next of the same network by half as much.
/// From [`OWN_FROM`] outcomes on it moves that of the network alone. One network has about a
/// quarter. Without networks, as in simulations, each outcome counts in full.
///
/// # Limits
///
/// - A liar with addresses of many networks moves the credit of all with each of them. After
///   losses in twenty networks in a row a fourteenth of it is left, or the least.
/// - Networks lie in a table of fixed size, by their hash. A newer one takes the place of an older
///   one with the same index, which then starts from the credit of all again. A host with many more
///   networks than places seldom has eight outcomes of one.
#[derive(Clone, Debug, Default)]
pub struct FirstContacts {
    all: Arc<AtomicU64>,
    networks: Arc<[AtomicU64]>,
    /// The doubt in records, of each network by the index of its hash: tag and millionths. Without
    /// networks all peers have one.
    doubts: Arc<[AtomicU64]>,
    doubt: Arc<AtomicU64>,
}

/// Outcomes of a network from which on it has a credit of its own. Eight flights move a credit by
/// half or more; fewer say less about the network than all networks do together.
pub const OWN_FROM: u64 = 8;

/// Networks that are counted; all take 256 kB.
const NETWORKS: usize = 1 << 15;

/// A network in one word: 20 bits of its hash, four of the count of outcomes, 40 of the credit.
#[derive(Clone, Copy)]
struct Slot {
    tag: u64,
    outcomes: u64,
    credit: u64,
}

const CREDIT_BITS: u32 = 40;
const OUTCOMES_BITS: u32 = 4;
const TAG_SHIFT: u32 = CREDIT_BITS + OUTCOMES_BITS;

impl Slot {
    const fn unpack(word: u64) -> Self {
        Self {
            tag: word >> TAG_SHIFT,
            outcomes: (word >> CREDIT_BITS) & ((1 << OUTCOMES_BITS) - 1),
            credit: word & ((1 << CREDIT_BITS) - 1),
        }
    }

    fn pack(self) -> u64 {
        let credit = self.credit.min((1 << CREDIT_BITS) - 1);
        (self.tag << TAG_SHIFT) | (self.outcomes.min(OWN_FROM) << CREDIT_BITS) | credit
    }
}

impl FirstContacts {
    /// A credit for each network, in addition to the credit of all.
    #[must_use]
    pub fn by_network() -> Self {
        let table = || (0..NETWORKS).map(|_| AtomicU64::new(0)).collect();
        Self { networks: table(), doubts: table(), ..Self::default() }
    }

    fn doubt_word(&self, hash: u64) -> (&AtomicU64, u64) {
        let word = hash.checked_rem(self.doubts.len() as u64).and_then(|at| self.doubts.get(at as usize));
        word.map_or((&*self.doubt, 0), |word| (word, hash & !DOUBT))
    }

    /// The doubt in records of the network with this hash, in millionths.
    pub(super) fn doubt(&self, hash: u64) -> u32 {
        let (word, tag) = self.doubt_word(hash);
        doubt_in(word.load(Ordering::Relaxed), tag) as u32
    }

    /// Applies `revision` to the doubt in records of the network with this hash.
    pub(super) fn revise_doubt(&self, hash: u64, revision: &Revision) {
        let (word, tag) = self.doubt_word(hash);
        let change = |before| Some(tag | revision.doubt_after(doubt_in(before, tag)));
        // The closure always returns a number.
        let _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }

    fn slot(&self, hash: u64) -> Option<(&AtomicU64, u64)> {
        let at = hash.checked_rem(self.networks.len() as u64)?;
        Some((self.networks.get(at as usize)?, hash >> TAG_SHIFT))
    }

    /// The credit of a network with this hash; `None`: no flight has ended yet.
    pub(super) fn credit(&self, hash: u64) -> Option<Bytes> {
        let own = self.slot(hash).and_then(|(word, tag)| {
            let slot = Slot::unpack(word.load(Ordering::Relaxed));
            (slot.tag == tag && slot.outcomes >= OWN_FROM).then_some(slot.credit)
        });
        known(own.unwrap_or_else(|| self.all.load(Ordering::Relaxed)))
    }

    /// Applies `revision` to the credit of the network with this hash, which begins with that of
    /// all, and to the latter; returns the former.
    pub(super) fn revise(&self, hash: u64, revision: &Revision) -> Bytes {
        let of_all = self.all.load(Ordering::Relaxed);
        let Some((word, tag)) = self.slot(hash) else {
            let change = |before| Some(revision.of(known(before)).get());
            let before = self.all.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
            return revision.of(known(before.unwrap_or_else(|unchanged| unchanged)));
        };
        let before = |word| Some(Slot::unpack(word)).filter(|slot| slot.tag == tag && slot.outcomes > 0);
        let change = |word| {
            let before = before(word);
            let credit = revision.of(known(before.map_or(of_all, |slot| slot.credit)));
            Slot { tag, outcomes: before.map_or(0, |slot| slot.outcomes) + 1, credit: credit.get() }
        };
        let replaced =
            word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| Some(change(word).pack()));
        let replaced = replaced.unwrap_or_else(|unchanged| unchanged);
        let outcomes = before(replaced).map_or(0, |slot| slot.outcomes);
        if outcomes < OWN_FROM {
            let change = |before| Some(revision.of_all(known(before), outcomes).get());
            // The closure always returns a number.
            let _ = self.all.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
        }
        Bytes::new(change(replaced).credit)
    }

    /// Forgets every outcome.
    pub(super) fn clear(&self) {
        for word in [&*self.all, &*self.doubt].into_iter().chain(&*self.networks).chain(&*self.doubts) {
            word.store(0, Ordering::Relaxed);
        }
    }
}

/// Bits of a word that hold the doubt.
const DOUBT: u64 = (1 << 20) - 1;

/// The doubt of the network with this tag; another's says nothing.
const fn doubt_in(word: u64, tag: u64) -> u64 {
    if word & !DOUBT == tag { word & DOUBT } else { 0 }
}

fn known(credit: u64) -> Option<Bytes> {
    (credit != 0).then(|| Bytes::new(credit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fate(earned: u64, spent: u64) -> Revision {
        let [start, earned, most, spent, least] = [50_000, earned, 90_000, spent, 10_000].map(Bytes::new);
        Revision { start, earned, most, spent, least, known: Bytes::new(100_000) }
    }

    #[test]
    fn a_credit_above_what_was_in_flight_falls_to_it_when_much_is_lost() {
        for (credit, earned, spent, expected, why) in [
            (500_000, 5_000, 0, 500_000, "nothing is lost"),
            (500_000, 5_000, 15_000, 485_000, "the price of a few segments"),
            (500_000, 5_000, 15_001, 74_999, "more: from twice the bytes in flight on"),
            (80_000, 5_000, 15_001, 69_999, "it was less"),
            (12_000, 5_000, 15_001, 10_000, "not below the least"),
        ] {
            assert_eq!(fate(earned, spent).of(Some(Bytes::new(credit))), Bytes::new(expected), "{why}");
        }
    }

    #[test]
    fn a_credit_changes_within_its_bounds_and_is_not_clamped_to_them() {
        #[rustfmt::skip]
        let rows = [
            // before         earned   spent    after
            (None,            0,       0,       50_000, "it begins somewhere"),
            (Some(50_000),    5_000,   0,       55_000, "what came through raises it"),
            (Some(88_000),    5_000,   0,       90_000, "up to what the flight can say"),
            (Some(95_000),    5_000,   0,       95_000, "and one that is higher already stays"),
            (Some(50_000),    1_000,   21_000,  30_000, "losses lower it"),
            (Some(20_000),    0,       90_000,  10_000, "down to the least"),
            (Some(4_000),     0,       90_000,  4_000,  "and one that is lower already stays"),
        ];
        for (before, earned, spent, after, why) in rows {
            assert_eq!(fate(earned, spent).of(before.map(Bytes::new)), Bytes::new(after), "{why}");
        }
    }

    const SLOW: u64 = 7 << TAG_SHIFT;
    const FAST: u64 = (8 << TAG_SHIFT) + 1;
    const NEW: u64 = (9 << TAG_SHIFT) + 2;

    /// Revises each network in turn, with a flight that keeps or loses what it earned.
    fn play(contacts: &FirstContacts, rounds: u64) {
        for _ in 0..rounds {
            contacts.revise(SLOW, &fate(0, 4000));
            contacts.revise(FAST, &fate(4000, 0));
        }
    }

    #[test]
    fn a_network_follows_all_first_contacts_until_it_has_outcomes_of_its_own() {
        let contacts = FirstContacts::by_network();
        assert_eq!(contacts.credit(NEW), None);
        play(&contacts, OWN_FROM - 1);
        let of_all = contacts.credit(NEW);
        assert_eq!((contacts.credit(SLOW), contacts.credit(FAST)), (of_all, of_all));
        play(&contacts, 20);
        let of_all = contacts.credit(NEW);
        assert_eq!(contacts.credit(SLOW), Some(Bytes::new(10_000)), "the slow one loses at any size");
        assert_eq!(contacts.credit(FAST), Some(Bytes::new(90_000)), "the fast one never does");
        assert!(of_all > Some(Bytes::new(30_000)) && of_all < Some(Bytes::new(70_000)), "{of_all:?}");
        contacts.clear();
        assert_eq!(contacts.credit(FAST), None);
    }

    #[test]
    fn losses_of_a_network_cost_trust_in_its_records_and_flights_that_fit_restore_it() {
        for (contacts, other) in [(FirstContacts::by_network(), 0), (FirstContacts::default(), 250_000)] {
            contacts.revise_doubt(SLOW, &fate(0, 100_000));
            assert_eq!((contacts.doubt(SLOW), contacts.doubt(FAST)), (250_000, other));
            contacts.revise_doubt(SLOW, &fate(20_000, 0));
            assert_eq!(contacts.doubt(SLOW), 200_000, "by a quarter of the share that it earned");
            let few = Revision { known: Bytes::new(10_000), ..fate(0, 100_000) };
            contacts.revise_doubt(SLOW, &few);
            assert_eq!(contacts.doubt(SLOW), 200_000, "ten segments say nothing");
            (0..9).for_each(|_| contacts.revise_doubt(SLOW, &fate(0, 1_000_000)));
            assert_eq!(contacts.doubt(SLOW), MILLION, "no trust is left");
            contacts.clear();
            assert_eq!(contacts.doubt(SLOW), 0);
        }
    }

    #[test]
    fn without_networks_all_first_contacts_share_one_credit() {
        let contacts = FirstContacts::default();
        play(&contacts, 20);
        assert_eq!(contacts.credit(SLOW), contacts.credit(FAST));
    }

    /// A stranger that loses most of an answer, and as many more of the network as like.
    #[test]
    fn one_network_moves_the_credit_of_all_by_about_a_quarter_at_most() {
        for (earned, spent) in [(0, 90_000), (90_000, 0)] {
            let contacts = FirstContacts::by_network();
            contacts.revise(FAST, &fate(0, 0));
            assert_eq!(contacts.credit(NEW), Some(Bytes::new(50_000)));
            let moved = |contacts: &FirstContacts| contacts.credit(NEW).map(|it| it.get().abs_diff(50_000));
            contacts.revise(SLOW, &fate(earned, spent));
            assert_eq!(moved(&contacts), Some(6_250), "the first moves it by an eighth");
            contacts.revise(SLOW, &fate(earned, spent));
            assert!(moved(&contacts) < Some(9_800), "the second by a sixteenth");
            (0..100_u64).for_each(|_| _ = contacts.revise(SLOW, &fate(earned, spent)));
            assert!(moved(&contacts) < Some(14_000), "{:?}", contacts.credit(NEW));
            let own = if earned > 0 { 90_000 } else { 10_000 };
            assert_eq!(contacts.credit(SLOW), Some(Bytes::new(own)), "its own credit is its own affair");
        }
    }

    #[test]
    fn a_network_that_takes_the_place_of_another_begins_with_the_credit_of_all() {
        let contacts = FirstContacts::by_network();
        play(&contacts, 20);
        let same_place = SLOW ^ (1 << 63);
        assert_eq!(contacts.credit(same_place), contacts.credit(NEW));
        contacts.revise(same_place, &fate(0, 0));
        assert_eq!(contacts.credit(SLOW), contacts.credit(NEW), "what was there is forgotten");
    }

    /// Miri tries other orders of the threads with each seed (`tools/weekly.sh`).
    #[test]
    fn threads_lose_no_outcome() {
        extern crate std;
        const ROUNDS: u64 = 5;
        let few = || FirstContacts {
            networks: (0..16).map(|_| AtomicU64::new(0)).collect(),
            ..FirstContacts::default()
        };
        let contacts = few();
        // Less than the smallest part, so that the order does not matter.
        let revise = |hash| (0..ROUNDS).for_each(|_| _ = contacts.revise(hash, &fate(10, 0)));
        std::thread::scope(|scope| {
            scope.spawn(|| revise(SLOW));
            scope.spawn(|| revise(SLOW));
        });
        let alone = few();
        (0..2 * ROUNDS).for_each(|_| _ = alone.revise(SLOW, &fate(10, 0)));
        let credit = |of: &FirstContacts| of.all.load(Ordering::Relaxed);
        assert_eq!(credit(&contacts), credit(&alone), "as one after the other");
        let (word, _) = contacts.slot(SLOW).expect("a place");
        let slot = Slot::unpack(word.load(Ordering::Relaxed));
        assert_eq!(slot.outcomes, OWN_FROM, "it has had more");
    }
}
