//! Limits what goes to an address that is not validated (RFC 9000 §8) to three times what came
//! from there.
//!
//! noq 1.4 begins a datagram while one byte of that is left, so that one too many may leave. It
//! counts anew after each change of path: a client that forges another address again and again
//! makes an amplifier of the server. Here the socket counts, which knows what came from an address.
//! The session's keys tell it which addresses are validated: by a packet of the handshake (§8.1),
//! or by the PATH_RESPONSE to a PATH_CHALLENGE that went there (§8.2).
//!
//! Datagrams above the limit are held until the address is validated or has sent more. A few are;
//! others are dropped, as the network might.
//!
//! # Deviations
//!
//! noq expands its first PATH_CHALLENGE to 1200 bytes or fills it with data, whatever came from the
//! new address. A client whose address changed while it received sends only small packets. So a
//! connection may exceed the limit by [`ADVANCES`] datagrams, no more than its client sent for
//! the handshake. It gets those back whose address is validated.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use headstart_host::locked;
use noq::UdpSender;
use noq::udp::{EcnCodepoint, Transmit};

use crate::last_encrypted::Level;

/// RFC 9000 §8.1.
const LIMIT: u64 = 3;
/// Datagrams to new addresses of a connection in advance. Two: the client has sent two of that size
/// before its handshake is over.
const ADVANCES: usize = 2;
/// Datagrams that wait for an address to be validated. The stack exceeds the limit by one; after
/// more bytes have come it may do so again.
const MOST_HELD: usize = 4;
/// Validated addresses that a connection remembers, and challenges that it waits for.
const MOST_ADDRESSES: usize = 8;
/// Addresses of one of the two generations of accounts: about 1 MB.
const GENERATION: usize = 16_384;

/// Bytes from and to one address.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    received: u64,
    sent: u64,
}

/// Bytes from each address, and those that went there before it was validated. The addresses that
/// were silent for longest are forgotten.
#[derive(Debug, Default)]
pub(crate) struct Accounts(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: BTreeMap<SocketAddr, Account>,
    old: BTreeMap<SocketAddr, Account>,
}

impl Accounts {
    fn update(&self, address: SocketAddr, change: impl FnOnce(&mut Account)) {
        let Generations { young, old } = &mut *locked(&self.0);
        if let Some(account) = young.get_mut(&address) {
            return change(account);
        }
        let mut account = old.remove(&address).unwrap_or_default();
        change(&mut account);
        if young.len() >= GENERATION {
            *old = std::mem::take(young);
        }
        young.insert(address, account);
    }

    /// `bytes` came from `address`.
    pub fn received(&self, address: SocketAddr, bytes: usize) {
        self.update(address, |account| account.received += bytes as u64);
    }

    fn sent(&self, address: SocketAddr, bytes: usize) {
        self.update(address, |account| account.sent += bytes as u64);
    }

    /// Bytes that may go to an address that is not validated.
    fn room(&self, address: SocketAddr) -> usize {
        let generations = locked(&self.0);
        let account = generations.young.get(&address).or_else(|| generations.old.get(&address));
        let Account { received, sent } = account.copied().unwrap_or_default();
        usize::try_from((LIMIT * received).saturating_sub(sent)).unwrap_or(usize::MAX)
    }
}

/// A datagram that waits.
#[derive(Debug)]
struct Held {
    destination: SocketAddr,
    ecn: Option<EcnCodepoint>,
    source: Option<IpAddr>,
    contents: Bytes,
}

impl Held {
    fn transmit(&self) -> Transmit<'_> {
        Transmit {
            destination: self.destination,
            ecn: self.ecn,
            contents: &self.contents,
            segment_size: None,
            src_ip: self.source,
        }
    }
}

type Token = [u8; 8];

/// The addresses of a server's connection.
#[derive(Debug)]
pub(crate) struct Paths {
    /// The client's address at the start.
    peer: SocketAddr,
    is_bound: AtomicBool,
    has_handshaken: AtomicBool,
    is_probing: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The latest datagram went there.
    destination: Option<SocketAddr>,
    /// The latest last.
    validated: VecDeque<SocketAddr>,
    /// The challenge in the packet encrypted last, which is being sent.
    written: Option<Token>,
    /// Challenges on their way, and where they went.
    challenges: VecDeque<(Token, SocketAddr)>,
    /// Addresses that got a datagram in advance, each as often as it did.
    advances: Vec<SocketAddr>,
    held: VecDeque<Held>,
    /// Sends what was held when an address is validated.
    late: Option<Pin<Box<dyn UdpSender>>>,
}

thread_local! {
    /// The connection whose packet was encrypted last, until its socket knows it: the stack sends
    /// each datagram right after it has encrypted it.
    static ENCRYPTING: RefCell<Option<Arc<Paths>>> = const { RefCell::new(None) };
}

impl Paths {
    pub fn new(peer: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            peer,
            is_bound: AtomicBool::new(false),
            has_handshaken: AtomicBool::new(false),
            is_probing: AtomicBool::new(false),
            state: Mutex::default(),
        })
    }

    /// The connection that is about to send to `destination`.
    pub fn sending(destination: SocketAddr, late: &mut Option<Pin<Box<dyn UdpSender>>>) -> Option<Arc<Self>> {
        let paths = ENCRYPTING.take().filter(|paths| paths.peer == destination)?;
        paths.is_bound.store(true, Ordering::Relaxed);
        locked(&paths.state).late = late.take();
        Some(paths)
    }

    /// A packet with that plaintext is being encrypted.
    pub fn on_encrypt(self: &Arc<Self>, level: Level, plaintext: &[u8]) {
        if !self.is_bound.load(Ordering::Relaxed) {
            ENCRYPTING.set(Some(Arc::clone(self)));
        }
        if level == Level::Data
            && let Some(token) = challenge(plaintext)
        {
            locked(&self.state).written = Some(token);
        }
    }

    /// A packet with that plaintext is authentic.
    pub fn on_decrypt(&self, level: Level, plaintext: &[u8]) {
        if level == Level::Handshake {
            self.handshaken();
        }
        if level != Level::Data || !self.is_probing.load(Ordering::Relaxed) {
            return;
        }
        let mut state = locked(&self.state);
        let answered = |token: &Token| {
            plaintext.windows(1 + token.len()).any(|it| it[0] == PATH_RESPONSE && it[1..] == token[..])
        };
        // A peer that names the token has received the challenge, whatever frame it is in.
        let Some(at) = state.challenges.iter().position(|(token, _)| answered(token)) else { return };
        let (_, address) = state.challenges[at];
        state.challenges.retain(|(_, other)| *other != address);
        self.is_probing.store(!state.challenges.is_empty(), Ordering::Relaxed);
        state.validate(address);
    }

    /// The client's first address is validated: by its token, or by a packet of the handshake.
    pub fn handshaken(&self) {
        if !self.has_handshaken.swap(true, Ordering::Relaxed) {
            locked(&self.state).validate(self.peer);
        }
    }

    /// A datagram goes to `destination`: of a caller without this crate's sockets.
    pub fn sending_to(&self, destination: SocketAddr) {
        locked(&self.state).destination = Some(destination);
    }

    /// The address of the client's present path.
    pub fn destination(&self) -> Option<IpAddr> {
        locked(&self.state).destination.map(|destination| destination.ip())
    }

    /// Sends `transmit` as far as the limit allows.
    pub fn poll_send(
        &self,
        accounts: &Accounts,
        transmit: &Transmit<'_>,
        mut send: impl FnMut(&Transmit<'_>) -> Poll<std::io::Result<()>>,
    ) -> Poll<std::io::Result<()>> {
        let destination = transmit.destination;
        let mut state = locked(&self.state);
        state.destination = Some(destination);
        if let Some(token) = state.written.take() {
            state.challenges.keep_last(MOST_ADDRESSES - 1);
            state.challenges.push_back((token, destination));
            self.is_probing.store(true, Ordering::Relaxed);
        }
        if state.validated.contains(&destination) {
            drop(state);
            return send(transmit);
        }
        if state.held.front().is_some_and(|held| held.destination != destination) {
            state.held.clear();
        }
        while let Some(held) = state.held.front() {
            if held.contents.len() > accounts.room(destination) {
                break;
            }
            if send(&held.transmit())?.is_pending() {
                return Poll::Pending;
            }
            accounts.sent(destination, held.contents.len());
            state.held.pop_front();
        }
        let (whole, segment) = (transmit.contents.len(), transmit.segment_size);
        let segment = segment.unwrap_or(whole).max(1);
        let room = accounts.room(destination);
        let mut first = if whole <= room { whole } else { room / segment * segment };
        let is_advance =
            first == 0 && self.has_handshaken.load(Ordering::Relaxed) && state.advances.len() < ADVANCES;
        if is_advance {
            first = segment.min(whole);
        }
        if first > 0 {
            let part = Transmit {
                contents: &transmit.contents[..first],
                segment_size: transmit.segment_size.filter(|segment| *segment < first),
                ..*transmit
            };
            if send(&part)?.is_pending() {
                return Poll::Pending;
            }
            accounts.sent(destination, first);
            if is_advance {
                state.advances.push(destination);
            }
        }
        let room = MOST_HELD - state.held.len();
        state.held.extend(transmit.contents[first..].chunks(segment).take(room).map(|contents| Held {
            destination,
            ecn: transmit.ecn,
            source: transmit.src_ip,
            contents: Bytes::copy_from_slice(contents),
        }));
        Poll::Ready(Ok(()))
    }

    /// The socket is gone; another may follow.
    pub fn unbind(&self) {
        self.is_bound.store(false, Ordering::Relaxed);
    }
}

impl State {
    fn validate(&mut self, address: SocketAddr) {
        self.validated.retain(|other| *other != address);
        self.validated.keep_last(MOST_ADDRESSES - 1);
        self.validated.push_back(address);
        self.advances.retain(|other| *other != address);
        let mut context = Context::from_waker(Waker::noop());
        for held in self.held.drain(..).filter(|held| held.destination == address) {
            if let Some(late) = &mut self.late {
                // A datagram that does not fit into the socket's buffer is lost.
                let _ = late.as_mut().poll_send(&held.transmit(), &mut context);
            }
        }
    }
}

trait KeepLast {
    /// Removes all but the last `length`.
    fn keep_last(&mut self, length: usize);
}

impl<T> KeepLast for VecDeque<T> {
    fn keep_last(&mut self, length: usize) {
        self.drain(..self.len().saturating_sub(length));
    }
}

const PING: u8 = 0x01;
const ACK: u8 = 0x02;
const ACK_ECN: u8 = 0x03;
const PATH_CHALLENGE: u8 = 0x1a;
const PATH_RESPONSE: u8 = 0x1b;
const HANDSHAKE_DONE: u8 = 0x1e;
/// IMMEDIATE_ACK of draft-ietf-quic-ack-frequency.
const IMMEDIATE_ACK: u8 = 0x1f;

/// The challenge of a packet of the stack. Only acknowledgements and frames without contents stand
/// before it; a packet is padded at its end.
fn challenge(mut frames: &[u8]) -> Option<Token> {
    loop {
        let (kind, rest) = frames.split_first()?;
        frames = rest;
        match *kind {
            PATH_CHALLENGE => return frames.first_chunk().copied(),
            PING | HANDSHAKE_DONE | IMMEDIATE_ACK => {}
            ACK | ACK_ECN => {
                // Largest, delay, number of ranges, first range; then two for each (§19.3).
                varint(&mut frames)?;
                varint(&mut frames)?;
                let ranges = varint(&mut frames)?;
                let counts = if *kind == ACK_ECN { 3 } else { 0 };
                for _ in 0..1 + 2 * ranges + counts {
                    varint(&mut frames)?;
                }
            }
            _ => return None,
        }
    }
}

/// RFC 9000 §16.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let length = 1 << (bytes.first()? >> 6);
    let (number, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    let whole = number.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    Some(whole & (u64::MAX >> (64 - 8 * length + 2)))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use proptest::prelude::*;

    const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 443);
    const VICTIM: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2)), 443);

    /// Bytes that leave of `bytes` in datagrams of 1200.
    fn send(paths: &Paths, accounts: &Accounts, destination: SocketAddr, bytes: usize) -> usize {
        let contents = vec![7; bytes];
        let transmit = Transmit {
            destination,
            ecn: None,
            contents: &contents,
            segment_size: (bytes > 1200).then_some(1200),
            src_ip: None,
        };
        let mut left = 0;
        let sent = paths.poll_send(accounts, &transmit, |part| {
            left += part.contents.len();
            Poll::Ready(Ok(()))
        });
        assert!(matches!(sent, Poll::Ready(Ok(()))));
        left
    }

    fn challenged(paths: &Arc<Paths>, accounts: &Accounts, destination: SocketAddr, token: Token) -> usize {
        let frames = [&[ACK, 9, 0, 1, 4, 0, 2, PING, PATH_CHALLENGE][..], &token, &[0; 1100]].concat();
        paths.on_encrypt(Level::Data, &frames);
        send(paths, accounts, destination, 1200)
    }

    #[test]
    fn an_address_gets_three_times_what_it_sent_until_its_handshake() {
        let (paths, accounts) = (Paths::new(CLIENT), Accounts::default());
        accounts.received(CLIENT, 1250);
        assert_eq!(send(&paths, &accounts, CLIENT, 4 * 1200 + 100), 3600, "the rest is held");
        assert_eq!(send(&paths, &accounts, CLIENT, 150), 150, "as much as is left");
        assert_eq!(send(&paths, &accounts, CLIENT, 1), 0);
        accounts.received(CLIENT, 400);
        assert_eq!(send(&paths, &accounts, CLIENT, 1), 1200, "what was held comes first");
        paths.on_decrypt(Level::Data, &[]);
        assert_eq!(send(&paths, &accounts, CLIENT, 1200), 0, "0-RTT can be replayed");
        paths.on_decrypt(Level::Handshake, &[]);
        assert_eq!(send(&paths, &accounts, CLIENT, 12_000), 12_000);
    }

    #[test]
    fn a_new_address_is_validated_by_its_own_challenge_alone() {
        let (paths, accounts) = (Paths::new(CLIENT), Accounts::default());
        paths.handshaken();
        accounts.received(VICTIM, 31);
        assert_eq!(challenged(&paths, &accounts, CLIENT, [1; 8]), 1200);
        assert_eq!(challenged(&paths, &accounts, VICTIM, [2; 8]), 1200, "in advance");
        let response = |token: Token| [&[ACK, 9, 0, 0, 4, PATH_RESPONSE][..], &token].concat();
        paths.on_decrypt(Level::Data, &response([1; 8]));
        paths.on_decrypt(Level::Data, &response([3; 8]));
        paths.on_decrypt(Level::Initial, &response([2; 8]));
        assert_eq!(send(&paths, &accounts, VICTIM, 3600), 1200, "the second in advance");
        paths.on_decrypt(Level::Data, &response([2; 8]));
        assert_eq!(send(&paths, &accounts, VICTIM, 3600), 3600);
    }

    /// Counts what is sent late to the victim.
    #[derive(Clone, Debug, Default)]
    struct Late(Arc<AtomicUsize>);

    impl UdpSender for Late {
        fn poll_send(
            self: Pin<&mut Self>,
            transmit: &Transmit<'_>,
            _: &mut Context<'_>,
        ) -> Poll<std::io::Result<()>> {
            if transmit.destination == VICTIM {
                self.0.fetch_add(transmit.contents.len(), Ordering::Relaxed);
            }
            Poll::Ready(Ok(()))
        }
    }

    proptest! {
        /// A client that moves as it likes, and answers no challenge of the other address.
        #[test]
        fn changes_of_path_send_no_more_than_three_times_beyond_the_advances(
            moves in prop::collection::vec(
                (any::<bool>(), any::<bool>(), 20_usize..1500, 1_usize..5000), 1..300),
        ) {
            let (paths, accounts, late) = (Paths::new(CLIENT), Accounts::default(), Late::default());
            accounts.received(CLIENT, 1200);
            paths.handshaken();
            locked(&paths.state).late = Some(Box::pin(late.clone()));
            let (mut came, mut went) = (0, 0);
            let mut challenge: Option<Token> = None;
            for (n, (is_victim, answers, received, sent)) in moves.into_iter().enumerate() {
                let address = if is_victim { VICTIM } else { CLIENT };
                accounts.received(address, received);
                let token = (n as u64).to_be_bytes();
                let mut left = challenged(&paths, &accounts, address, token);
                left += send(&paths, &accounts, address, sent);
                if is_victim {
                    (came, went) = (came + received, went + left);
                } else {
                    challenge = Some(token);
                }
                if let Some(token) = challenge.filter(|_| answers) {
                    paths.on_decrypt(Level::Data, &[&[PATH_RESPONSE][..], &token].concat());
                }
                let went = went + late.0.load(Ordering::Relaxed);
                prop_assert!(went <= 3 * came + ADVANCES * 1200);
            }
        }
    }

    #[test]
    fn the_accounts_of_addresses_are_bounded_and_keep_the_latest() {
        let accounts = Accounts::default();
        for n in 0..3 * GENERATION as u32 {
            accounts.received((std::net::Ipv4Addr::from_bits(n), 1).into(), 10);
            accounts.received(CLIENT, 1);
        }
        let generations = locked(&accounts.0);
        assert!(generations.young.len() <= GENERATION && generations.old.len() <= GENERATION);
        drop(generations);
        assert_eq!(accounts.room(CLIENT), 9 * GENERATION);
    }
}
