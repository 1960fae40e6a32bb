//! Hit rate and memory of a history: WS §4.2 and Figure 7, on the store itself.
//!
//! WS §2.1: a user opens 5.72 connections a day. WS §4.2: within the first hour of the deployment
//! 24.59 % of them find a record of their address, after 60 h 52.66 %. Were visits a Poisson
//! process from one address for each user, 11 % would in the first hour and all of them after 60 h.
//! So visits are clustered (WS §2.1: "mobile users sometimes switch between multiple
//! applications"), and users change addresses. The model:
//!
//! - Clusters of visits: a Poisson process over all users.
//! - Visits in a cluster: geometric, 1.31 on average; the next begins 4 min after the one before
//!   ended, exponentially distributed.
//! - A connection is open for 60 s on average, exponentially distributed; its record is written
//!   when it closes.
//! - The cluster's address: the user's own with probability 0.39, else a new one.
//!
//! Cluster size and share of own addresses are fitted to the paper's two numbers, which are
//! therefore no test of the model. It predicts the values between them, the cost of a bound on the
//! memory, and the size of an entry.
//!
//! # Limits
//!
//! No daily rhythm, and no address shared by several users: shared addresses would hit more often,
//! with records of others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv6Addr};

use anyhow::Result;
use headstart_sim::{Random, Seed};
use headstart_startup::history::{FixedHash, Lease, MemoryStore, Record, RecordUpdate, Store};
use headstart_units::{Bytes, Rate, Span, Time};

use crate::carrier::Detail;
use crate::setup::Setup;
use crate::study::{Case, Declared, Measure, Measured, NoParams, Profile, Study};

const MEASURES: &[Measure] = &[
    Measure::new("hits.first-hour", "%", "connections of the first hour that met a record"),
    Measure::new("hits.late", "%", "those from hour 60 on"),
    Measure::new("hits.middle", "%", "those of hours 24 to 36"),
    Measure::new("connections", "", "connections for each user and day"),
    Measure::new("memory", "MB", "of the store at the end"),
    Measure::new("memory.growth", "%", "growth of the memory in the last ten hours"),
    Measure::new("entries", "thousands", "peers remembered at the end"),
    Measure::new("bytes-per-entry", "B", "memory over peers remembered"),
    Measure::new("fits", "thousands", "peers that 19 MB remember at this weight"),
];

/// WS §2.1.
const CONNECTIONS_A_DAY: f64 = 5.72;
/// WS §4.1.
const HOURS: usize = 73;
/// WS §4.2, in bytes.
const PAPER_MEMORY: f64 = 19e6;
const CLUSTER: f64 = 1.31;
const AWAY_SECS: f64 = 240.0;
const OPEN_SECS: f64 = 60.0;
const OWN_ADDRESS: f64 = 0.39;

/// Events by time: a visit to a user's address, or its end. The number orders those of one time.
type Event = Reverse<(u64, u64, EventKind)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EventKind {
    Visit { address: u64 },
    End { number: usize },
}

/// Visits to a history, without a network: `peers` users, a store for `history` records.
pub struct HitRate;

impl Study for HitRate {
    const NAME: &'static str = "history-hit-rate";
    const ABOUT: &'static str = "share of the connections whose peer has a record; no packets";
    const NEEDS: Detail = Detail::Topology;
    const DECLARED: &'static [Declared] = &[Declared {
        prefixes: &[""],
        measures: MEASURES,
        profiles: &[
            Profile::new("hits", "%", "connections that met a record, by hour since the deployment"),
            Profile::new("memory", "MB", "memory of the store, likewise"),
        ],
    }];
    type Params = NoParams;

    fn new(_: NoParams) -> Self {
        Self
    }

    fn run(&self, case: &Case<'_>) -> Result<Measured> {
        Ok(run(case.setup, case.seed).into_iter().collect())
    }
}

fn run(setup: &Setup, seed: u64) -> Vec<(String, f64)> {
    let users = u64::from(setup.workload.peers);
    let mut model = VisitModel::new(users, setup.workload.history, Seed(seed).child("visits"));
    let mut hours = vec![];
    for hour in 0..HOURS {
        let (hits, visits) = model.run_until((hour as f64 + 1.0) * 3600.0);
        let memory = (model.store.bytes_per_entry() * model.store.len()) as f64 / 1e6;
        hours.push((hits, visits, memory));
    }
    let share = |from: usize, to: usize| {
        let (hits, visits) =
            hours[from..to].iter().fold((0, 0), |sum, (hits, visits, _)| (sum.0 + hits, sum.1 + visits));
        100.0 * hits as f64 / (visits as f64).max(1.0)
    };
    let visits: u64 = hours.iter().map(|(_, visits, _)| visits).sum();
    let memory = hours[HOURS - 1].2;
    let weight = model.store.bytes_per_entry() as f64;
    let mut numbers: Vec<(String, f64)> = [
        ("hits.first-hour", share(0, 1)),
        ("hits.late", share(60, HOURS)),
        ("hits.middle", share(24, 36)),
        ("connections", visits as f64 / users as f64 / (HOURS as f64 / 24.0)),
        ("memory", memory),
        ("memory.growth", 100.0 * (memory / hours[HOURS - 11].2 - 1.0)),
        ("entries", model.store.len() as f64 / 1000.0),
        ("bytes-per-entry", weight),
        ("fits", PAPER_MEMORY / weight / 1000.0),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    for (hour, (hits, visits, memory)) in hours.iter().enumerate() {
        numbers.push((format!("hits/{}", hour + 1), 100.0 * *hits as f64 / (*visits as f64).max(1.0)));
        numbers.push((format!("memory/{}", hour + 1), *memory));
    }
    numbers
}

struct VisitModel {
    store: MemoryStore,
    random: Random,
    users: u64,
    events: BinaryHeap<Event>,
    /// Leases of open connections; free slots are reused.
    open: Vec<Option<Lease>>,
    free: Vec<usize>,
    /// Start of the next cluster, and the number of events so far.
    cluster_at: f64,
    addresses: u64,
    counted: u64,
}

fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

impl VisitModel {
    fn new(users: u64, room: usize, seed: Seed) -> Self {
        let mut model = Self {
            store: MemoryStore::new(room, FixedHash::default()),
            random: Random::named(seed, "visits"),
            users,
            events: BinaryHeap::new(),
            open: vec![],
            free: vec![],
            cluster_at: 0.0,
            addresses: users,
            counted: 0,
        };
        model.cluster_at = model.gap();
        model
    }

    /// Time until the next cluster, in seconds.
    fn gap(&mut self) -> f64 {
        let rate = self.users as f64 * CONNECTIONS_A_DAY / CLUSTER / 86_400.0;
        self.random.exponential_f64(1.0 / rate)
    }

    /// Processes the events until then; returns the visits that found a record, and all visits.
    fn run_until(&mut self, seconds: f64) -> (u64, u64) {
        let (mut hits, mut visits) = (0, 0);
        loop {
            let next = self.events.peek().map_or(f64::INFINITY, |Reverse((at, ..))| *at as f64 / 1e9);
            if self.cluster_at.min(next) >= seconds {
                return (hits, visits);
            }
            if self.cluster_at <= next {
                let at = self.cluster_at;
                self.begin_cluster(at);
                self.cluster_at += self.gap();
                continue;
            }
            let Some(Reverse((at, _, happening))) = self.events.pop() else { continue };
            match happening {
                EventKind::Visit { address } => {
                    visits += 1;
                    hits += u64::from(self.begin_visit(at, address));
                }
                EventKind::End { number } => self.end_visit(at, number),
            }
        }
    }

    fn begin_cluster(&mut self, at: f64) {
        let user = self.random.below(self.users);
        let address = if self.random.happens(OWN_ADDRESS) {
            user
        } else {
            self.addresses += 1;
            self.addresses
        };
        self.add(nanos(at), EventKind::Visit { address });
    }

    fn add(&mut self, at: u64, happening: EventKind) {
        self.counted += 1;
        self.events.push(Reverse((at, self.counted, happening)));
    }

    fn begin_visit(&mut self, at: u64, address: u64) -> bool {
        let (known, lease) = self.store.open(address_of(address));
        let number = self.free.pop().unwrap_or_else(|| {
            self.open.push(None);
            self.open.len() - 1
        });
        self.open[number] = Some(lease);
        let ends_at = at + nanos(self.random.exponential_f64(OPEN_SECS));
        self.add(ends_at, EventKind::End { number });
        // Geometric: after each visit there is another with the same probability.
        if self.random.happens(1.0 - 1.0 / CLUSTER) {
            let next_at = ends_at + nanos(self.random.exponential_f64(AWAY_SECS)).max(1);
            self.add(next_at, EventKind::Visit { address });
        }
        known.is_some()
    }

    fn end_visit(&mut self, at: u64, number: usize) {
        let Some(lease) = self.open[number].take() else { return };
        self.free.push(number);
        let record = Record {
            saved_at: Time::from_nanos(at),
            btl_bw: Rate::from_mbit_per_sec(5),
            rt_prop: Span::from_millis(100),
            window: Bytes::new(62_500),
            ..Record::default()
        };
        self.store.close(lease, RecordUpdate::Replace(record));
    }
}

/// IPv6 addresses, of the same size in the table as IPv4 ones.
fn address_of(number: u64) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8_u128 << 96 | u128::from(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_return_at_their_rate() {
        let mut model = VisitModel::new(2000, 1_000_000, Seed(1));
        let (_, visits) = model.run_until(10.0 * 86_400.0);
        let each = visits as f64 / 2000.0 / 10.0;
        assert!((5.6..5.85).contains(&each), "{each} connections for each user and day");
    }

    #[test]
    fn a_smaller_store_has_fewer_hits() {
        let (mut large, mut small) =
            (VisitModel::new(500, 1_000_000, Seed(1)), VisitModel::new(500, 100, Seed(1)));
        let day = 86_400.0;
        let ((_, one), (_, two)) = (large.run_until(2.0 * day), small.run_until(2.0 * day));
        assert_eq!(one, two, "the same visits");
        let (known, forgotten) = (large.run_until(3.0 * day).0, small.run_until(3.0 * day).0);
        assert_eq!(small.store.len(), 100);
        assert!(forgotten < known, "{forgotten} of {known}");
        assert!(
            forgotten > known / 5,
            "the next visit of a cluster is known even so: {forgotten} of {known}"
        );
    }
}
