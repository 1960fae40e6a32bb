//! Sessions that clients of a server may resume, of which one address has a part.
//!
//! rustls keeps 256 tickets, two for each handshake, and the newest take the place of the oldest: a
//! stranger ends the 0-RTT of everybody with 128 handshakes. Stateless tickets would keep nothing,
//! but with them rustls accepts no 0-RTT, because a repeated one could not be told.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use headstart_host::locked;
use rustls::server::StoresServerSessions;

/// Most tickets, each of some 400 bytes.
const MOST: usize = 65_536;
/// Most tickets of one address, of IPv6 a /64: those of 32 connections.
const MOST_PER_ADDRESS: usize = 64;

/// Tickets of a server's clients.
#[derive(Debug)]
pub struct Tickets {
    most: usize,
    most_per_address: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    sessions: BTreeMap<Vec<u8>, Session>,
    /// Keys by age.
    by_age: BTreeMap<u64, Vec<u8>>,
    /// Ages of the tickets of each address that has some, the oldest first.
    by_address: BTreeMap<IpAddr, VecDeque<u64>>,
}

#[derive(Debug)]
struct Session {
    value: Vec<u8>,
    age: u64,
    address: IpAddr,
}

impl State {
    fn remove(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let Session { value, age, address } = self.sessions.remove(key)?;
        self.by_age.remove(&age);
        if let Some(ages) = self.by_address.get_mut(&address) {
            ages.retain(|it| *it != age);
            if ages.is_empty() {
                self.by_address.remove(&address);
            }
        }
        Some(value)
    }

    fn remove_oldest(&mut self, of: Option<IpAddr>) {
        let age = match of {
            Some(address) => self.by_address.get(&address).and_then(|ages| ages.front().copied()),
            None => self.by_age.keys().next().copied(),
        };
        if let Some(key) = age.and_then(|age| self.by_age.get(&age).cloned()) {
            self.remove(&key);
        }
    }
}

impl Default for Tickets {
    fn default() -> Self {
        Self::new(MOST, MOST_PER_ADDRESS)
    }
}

impl Tickets {
    /// Room for so many tickets, in all and of one address. An older one of the address, or the
    /// oldest of all, makes room for a new one.
    #[must_use]
    pub fn new(most: usize, most_per_address: usize) -> Self {
        Self { most, most_per_address, state: Mutex::default() }
    }

    fn put(&self, address: IpAddr, key: Vec<u8>, value: Vec<u8>) {
        let state = &mut *locked(&self.state);
        state.remove(&key);
        if state.by_address.get(&address).is_some_and(|ages| ages.len() >= self.most_per_address) {
            state.remove_oldest(Some(address));
        } else if state.sessions.len() >= self.most {
            state.remove_oldest(None);
        }
        let age = state.next;
        state.next += 1;
        state.by_age.insert(age, key.clone());
        state.by_address.entry(address).or_default().push_back(age);
        state.sessions.insert(key, Session { value, age, address });
    }
}

/// The tickets as a connection from an address sees them: it gets those of all, as a client may
/// have moved, and adds to its own.
#[derive(Debug)]
pub(crate) struct TicketsOfAddress {
    pub tickets: Arc<Tickets>,
    pub address: IpAddr,
}

impl StoresServerSessions for TicketsOfAddress {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.tickets.put(self.address, key, value);
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        locked(&self.tickets.state).sessions.get(key).map(|session| session.value.clone())
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        locked(&self.tickets.state).remove(key)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_takes_the_place_of_its_own_tickets_until_all_places_are_taken() {
        let tickets = Arc::new(Tickets::new(10, 4));
        let of = |host: u8| TicketsOfAddress {
            tickets: Arc::clone(&tickets),
            address: IpAddr::from([192, 0, 2, host]),
        };
        let (client, stranger) = (of(1), of(2));
        client.put(vec![1], vec![11]);
        for number in 100..200 {
            stranger.put(vec![number], vec![0]);
        }
        assert_eq!(client.get(&[1]), Some(vec![11]));
        assert_eq!((stranger.get(&[195]), stranger.get(&[196])), (None, Some(vec![0])));
        assert_eq!(of(3).take(&[1]), Some(vec![11]), "the client has moved");
        assert_eq!(client.take(&[1]), None, "a ticket is used once");
        for host in 3..6 {
            (0..4).for_each(|number| _ = of(host).put(vec![host, number], vec![0]));
        }
        let state = locked(&tickets.state);
        assert_eq!((state.sessions.len(), state.by_age.len()), (10, 10));
        assert_eq!(state.by_address.values().map(VecDeque::len).sum::<usize>(), 10);
    }
}
