//! Limits on open connections, and on answers that hold a file: in all, and of one address.
//!
//! An address is a whole one of IPv4, and of IPv6 the /64. A client's connections are counted at
//! the address from which it opened them, until the stack has forgotten them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use headstart_host::{Exposition, locked};
use headstart_quic::store::client_key;

/// Kinds of places.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Connections over QUIC.
    Quic,
    /// Connections over TCP.
    #[cfg_attr(not(feature = "tcp"), expect(dead_code, reason = "it keeps its place in the counters"))]
    Tcp,
    /// Answers that hold a file.
    File,
    /// Requests passed to other servers.
    #[cfg_attr(not(feature = "tcp"), expect(dead_code, reason = "it keeps its place in the counters"))]
    Request,
}

/// Names of the transports in counters, in the order of [`Kind`].
const TRANSPORTS: [&str; 2] = ["quic", "tcp"];
/// Names of the limits in counters.
const LIMITS: [&str; 2] = ["all", "address"];

/// Counters of open and of refused connections, files and requests.
#[derive(Clone, Debug, Default)]
pub struct ConnectionCounters(Arc<[KindCounters; 4]>);

#[derive(Debug, Default)]
struct KindCounters {
    open: AtomicUsize,
    refused: [AtomicU64; 2],
}

impl ConnectionCounters {
    /// In Prometheus' text format.
    #[must_use]
    pub fn render(&self) -> String {
        let mut metrics = Exposition::default();
        metrics.family("open_connections", "gauge", "Connections that count for the limits.");
        let transports = || TRANSPORTS.iter().zip(&*self.0);
        for (transport, counters) in transports() {
            metrics.sample(&[("transport", transport)], counters.open.load(Ordering::Relaxed));
        }
        let help = "Connections beyond a limit: that of all, or of one address.";
        metrics.family("refused_connections_total", "counter", help);
        for (transport, counters) in transports() {
            for (limit, refused) in LIMITS.iter().zip(&counters.refused) {
                let labels = [("transport", *transport), ("limit", *limit)];
                metrics.sample(&labels, refused.load(Ordering::Relaxed));
            }
        }
        let files = [
            "files",
            "Answers that hold a file.",
            "Requests of files beyond a limit: that of all, or of one address.",
        ];
        let requests = [
            "passed_requests",
            "Requests that were passed on and are in progress.",
            "Requests that were not passed on, beyond a limit: that of all, or of one address.",
        ];
        for ([name, help, help_of_refused], counters) in
            [files, requests].into_iter().zip(&self.0[Kind::File as usize..])
        {
            let open = counters.open.load(Ordering::Relaxed);
            metrics.family(&format!("open_{name}"), "gauge", help).sample(&[], open);
            metrics.family(&format!("refused_{name}_total"), "counter", help_of_refused);
            for (limit, refused) in LIMITS.iter().zip(&counters.refused) {
                metrics.sample(&[("limit", limit)], refused.load(Ordering::Relaxed));
            }
        }
        metrics.take()
    }
}

/// Places of one kind.
#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    most_per_address: usize,
    kind: Kind,
    counters: ConnectionCounters,
    taken: Mutex<Taken>,
}

/// Addresses without a connection have no entry: there are at most as many as connections.
#[derive(Debug, Default)]
struct Taken {
    all: Count,
    by_address: BTreeMap<IpAddr, Count>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    open: usize,
    /// Connections whose client has not proven its address.
    unvalidated: usize,
}

impl Places {
    pub fn new(most: usize, most_per_address: usize, kind: Kind, counters: ConnectionCounters) -> Arc<Self> {
        Arc::new(Self { most, most_per_address, kind, counters, taken: Mutex::default() })
    }

    fn counters(&self) -> &KindCounters {
        &self.counters.0[self.kind as usize]
    }

    /// Places taken.
    pub fn open(&self) -> usize {
        locked(&self.taken).all.open
    }

    /// A place beside `open` connections, for a client that may have forged its address.
    pub fn take(self: &Arc<Self>, address: IpAddr, open: usize) -> Option<Place> {
        let key = client_key(address);
        let taken = &mut *locked(&self.taken);
        let of_address = taken.by_address.get(&key).copied().unwrap_or_default();
        let limits = [open >= self.most, of_address.open >= self.most_per_address];
        if let Some(limit) = limits.iter().position(|is_reached| *is_reached) {
            self.counters().refused[limit].fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let is_tenth = |count: Count, most: usize| count.unvalidated >= (most / 10).max(1);
        let is_scarce = is_tenth(taken.all, self.most) || is_tenth(of_address, self.most_per_address);
        for count in [&mut taken.all, taken.by_address.entry(key).or_default()] {
            count.open += 1;
            count.unvalidated += 1;
        }
        self.counters().open.fetch_add(1, Ordering::Relaxed);
        Some(Place { places: Arc::clone(self), key, is_validated: false, is_scarce })
    }
}

/// A connection's place, which its end makes free.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    key: IpAddr,
    is_validated: bool,
    is_scarce: bool,
}

impl Place {
    /// A tenth of all places, or of the address's, was with clients that had not proven their
    /// addresses: forged ones cannot take more if others are asked to.
    pub const fn is_scarce(&self) -> bool {
        self.is_scarce
    }

    /// The client has proven its address.
    pub fn validated(&mut self) {
        if !std::mem::replace(&mut self.is_validated, true) {
            self.change(|count| count.unvalidated -= 1);
        }
    }

    fn change(&self, change: impl Fn(&mut Count)) {
        let mut taken = locked(&self.places.taken);
        change(&mut taken.all);
        if let Some(count) = taken.by_address.get_mut(&self.key) {
            change(count);
            if count.open == 0 {
                taken.by_address.remove(&self.key);
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.validated();
        self.change(|count| count.open -= 1);
        self.places.counters().open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(most: usize, most_per_address: usize) -> Arc<Places> {
        Places::new(most, most_per_address, Kind::Quic, ConnectionCounters::default())
    }

    fn at(address: &str) -> IpAddr {
        address.parse().expect("an address")
    }

    #[test]
    fn an_address_is_a_whole_one_of_ipv4_and_of_ipv6_the_64() {
        for (first, second, is_same) in [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("2001:db8:1:2:3::", "2001:db8:1:2:ffff::1", true),
            ("2001:db8:1:2::1", "2001:db8:1:3::1", false),
        ] {
            let places = places(10, 1);
            let _first = places.take(at(first), 0).expect("a place");
            assert_eq!(places.take(at(second), 1).is_none(), is_same, "{first} {second}");
        }
    }

    #[test]
    fn nothing_is_kept_of_an_address_without_connections_and_refusals_are_counted() {
        let places = places(3, 2);
        let taken: Vec<Place> = ["192.0.2.1", "192.0.2.1", "192.0.2.2"]
            .map(|address| places.take(at(address), 0).expect("room"))
            .into();
        assert!(places.take(at("192.0.2.1"), 2).is_none());
        assert!(places.take(at("192.0.2.3"), 3).is_none());
        assert_eq!((places.open(), locked(&places.taken).by_address.len()), (3, 2));
        drop(taken);
        assert_eq!((places.open(), locked(&places.taken).by_address.len()), (0, 0));
        let text = places.counters.render();
        for line in [
            "headstart_open_connections{transport=\"quic\"} 0",
            "headstart_refused_connections_total{transport=\"quic\",limit=\"all\"} 1",
            "headstart_refused_connections_total{transport=\"quic\",limit=\"address\"} 1",
            "headstart_refused_connections_total{transport=\"tcp\",limit=\"address\"} 0",
        ] {
            assert!(text.lines().any(|it| it == line), "{text}");
        }
    }

    /// Of an address, and of all together.
    #[test]
    fn places_are_scarce_while_a_tenth_is_with_clients_that_have_not_proven_their_addresses() {
        let places = places(40, 20);
        let mut first = places.take(at("192.0.2.1"), 0).expect("room");
        let second = places.take(at("192.0.2.1"), 1).expect("room");
        assert!(!first.is_scarce() && !second.is_scarce());
        assert!(places.take(at("192.0.2.1"), 2).expect("room").is_scarce());
        first.validated();
        first.validated();
        assert!(!places.take(at("192.0.2.1"), 2).expect("room").is_scarce());
        let others: Vec<Place> =
            (2..5).map(|host| places.take(IpAddr::from([192, 0, 2, host]), 0).expect("room")).collect();
        assert!(others.iter().all(|place| !place.is_scarce()));
        assert!(places.take(at("192.0.2.9"), 5).expect("room").is_scarce());
        drop(others);
        assert!(!places.take(at("192.0.2.9"), 2).expect("room").is_scarce());
    }
}
